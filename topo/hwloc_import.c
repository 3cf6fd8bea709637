// SPDX-License-Identifier: Apache-2.0
/*
 * hwloc reads an XML text, twice: first in a child process, which may crash, loop or fill its
 * memory without harm, then here. hwloc 2.9 takes its files on trust: it follows sets and parents
 * that a file leaves out, and asserts what it expects.
 */
#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "topo/hwloc_xml.h"

#define TRIAL_CPU_S   2            /* the largest file that passes the check takes a tenth */
#define TRIAL_WALL_MS 30000        /* on a machine that has no time for us */
#define TRIAL_MEMORY  (1ull << 30) /* beside what this process has already */

/** @return 0 or -errno; *hw is NULL then */
static int load(const char *xml, size_t len, hwloc_topology_t *hw)
{
	*hw = NULL;
	errno = 0;
	if (hwloc_topology_init(hw) != 0) {
		*hw = NULL;
		return errno ? -errno : -ENOMEM;
	}
	hwloc_topology_set_io_types_filter(*hw, HWLOC_TYPE_FILTER_KEEP_ALL);
	hwloc_topology_set_flags(*hw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
	/* The ending NUL counts, as in what hwloc exports itself. */
	if (hwloc_topology_set_xmlbuffer(*hw, xml, (int)len + 1) == 0 &&
		hwloc_topology_load(*hw) == 0)
		return 0;
	int rc = errno ? -errno : -EINVAL;

	hwloc_topology_destroy(*hw);
	*hw = NULL;
	return rc;
}

/* ---- the child ------------------------------------------------------------------------------- */

static void limit(int what, rlim_t max)
{
	struct rlimit r = {max, max};

	setrlimit(what, &r);
}

/** Pages of address space in use now; 0: unknown. */
static unsigned long pages_in_use(void)
{
	unsigned long n = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f) {
		if (fscanf(f, "%lu", &n) != 1)
			n = 0;
		fclose(f);
	}
	return n;
}

/** @param out what hwloc says of the file goes there */
static void child(const char *xml, size_t len, int out)
{
	static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU};
	unsigned long long used =
		(unsigned long long)pages_in_use() * (unsigned long long)sysconf(_SC_PAGESIZE);
	hwloc_topology_t hw;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (size_t i = 0; i < sizeof(deadly) / sizeof(*deadly); i++)
		signal(deadly[i], SIG_DFL);
	if (null >= 0)
		dup2(null, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	setenv("HWLOC_XML_VERBOSE", "1", 1);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_CPU, TRIAL_CPU_S);
	/* A sanitizer's shadow is terabytes of address space: no limit can be told there. */
	if (used && used < 64ull << 30)
		limit(RLIMIT_AS, (rlim_t)(used + TRIAL_MEMORY));
	int rc = load(xml, len, &hw);

	if (rc == 0)
		hwloc_topology_destroy(hw);
	_exit(rc ? 1 : 0);
}

/**
 * Read until the pipe's other end closes, which is with the child; then wait for that.
 * @param said the beginning of what the child wrote
 * @return the child's wait status, or -errno
 */
static int wait_for(pid_t pid, int fd, char *said, size_t len)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t used = 0;
	int status = 0;

	for (;;) {
		char buf[1024];
		int n = poll(&p, 1, TRIAL_WALL_MS);

		if (n < 0 && errno == EINTR)
			continue;
		ssize_t k = n > 0 ? read(fd, buf, sizeof(buf)) : -1;

		if (k < 0 && n > 0 && errno == EINTR)
			continue;
		if (k < 0)
			kill(pid, SIGKILL);
		if (k <= 0)
			break;
		size_t keep = (size_t)k < len - 1 - used ? (size_t)k : len - 1 - used;

		memcpy(said + used, buf, keep);
		used += keep;
	}
	said[used] = '\0';
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return status;
}

/** The line of hwloc's that tells the cause: not what it says of every file, nor of every failure.
 */
static void cause(const char *said, char *why, size_t len)
{
	static const char *const noise[] = {"without DTD", "discovery failed", "Loading XML"};
	char line[160];

	snprintf(why, len, "no reason told");
	for (const char *s = said; *s;) {
		size_t n = strcspn(s, "\n");
		bool telling = n > 0;

		snprintf(line, sizeof(line), "%.*s", (int)n, s);
		for (size_t i = 0; i < sizeof(noise) / sizeof(*noise); i++)
			telling = telling && !strstr(line, noise[i]);
		if (telling) {
			const char *text = strstr(line, ": ");

			topo_copy(why, len, text ? text + 2 : line);
			return;
		}
		s += n + (s[n] == '\n');
	}
}

/** @return 0: hwloc lives and reads it */
static int try_in_child(const char *xml, size_t len, const char *what, struct fb_err *e)
{
	char said[2048], why[160];
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) != 0)
		return fb_fail(e, FB_EXIT_UNMEASURED, errno, "cannot try %s: pipe: %s", what,
			strerror(errno));
	pid_t pid = fork();

	if (pid < 0) {
		int err = errno;

		close(fds[0]);
		close(fds[1]);
		return fb_fail(
			e, FB_EXIT_UNMEASURED, err, "cannot try %s: fork: %s", what, strerror(err));
	}
	if (pid == 0) {
		close(fds[0]);
		child(xml, len, fds[1]);
	}
	close(fds[1]);
	int status = wait_for(pid, fds[0], said, sizeof(said));

	close(fds[0]);
	if (status < 0)
		return fb_fail(e, FB_EXIT_UNMEASURED, status, "cannot try %s: waitpid: %s", what,
			strerror(-status));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	cause(said, why, sizeof(why));
	if (WIFEXITED(status))
		return fb_fail(e, FB_EXIT_USAGE, EINVAL,
			"%s: not what hwloc writes, or not whole: hwloc says: %s", what, why);
	return fb_fail(e, FB_EXIT_USAGE, EINVAL, "%s: hwloc dies of it (%s): it contradicts itself",
		what, strsignal(WTERMSIG(status)));
}

int topo_import_hwloc_xml(
	const char *xml, size_t len, const char *what, struct hwloc_topology **hw, struct fb_err *e)
{
	struct topo_env guards[] = {
		{"HWLOC_HIDE_ERRORS", "2", NULL},
		{"HWLOC_COMPONENTS", NULL, NULL},
		{"HWLOC_THISSYSTEM", NULL, NULL},
		{"HWLOC_XML_VERBOSE", NULL, NULL},
		{"HWLOC_LIBXML", NULL, NULL},
		{"HWLOC_LIBXML_IMPORT", NULL, NULL},
		{"HWLOC_PCI_LOCALITY", NULL, NULL},
	};
	size_t n_guards = sizeof(guards) / sizeof(*guards);

	topo_env_enter(guards, n_guards);
	int rc = try_in_child(xml, len, what, e);

	if (!rc) {
		rc = load(xml, len, hw);
		if (rc)
			rc = fb_fail(e, FB_EXIT_UNMEASURED, rc, "hwloc cannot read %s: %s", what,
				strerror(-rc));
	}
	topo_env_leave(guards, n_guards);
	if (rc == -EINVAL)
		fb_hint(e,
			"export it again: lstopo --of xml FILE.xml; lstopo -i %s tells whether "
			"hwloc's own tools read it",
			what);
	return rc;
}
