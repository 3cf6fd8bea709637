// SPDX-License-Identifier: Apache-2.0
/*
 * Loss by netem or by a command, and its guard.
 */
#include "verbs/loss_maker.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/proc.h"

#define TC_NS      30000000000ull
#define COMMAND_NS 60000000000ull
/* The guard's own work when it is told to end. */
#define GUARD_NS 70000000000ull

extern char **environ;

const char *const verbs_loss_hows[] = {"given", "netem", "command", NULL};

const char *verbs_loss_percent(double percent, char *buf, size_t len)
{
	char *end;

	snprintf(buf, len, "%.6f", percent);
	end = buf + strlen(buf);
	while (end > buf + 1 && end[-1] == '0')
		*--end = '\0';
	if (end > buf + 1 && end[-1] == '.')
		end[-1] = '\0';
	return buf;
}

/* ---- tc -------------------------------------------------------------------------------------- */

int verbs_loss_read_qdisc(const char *json, double *loss, char *kind, size_t len)
{
	json_t *all = json_loads(json, JSON_REJECT_DUPLICATES, NULL);
	const json_t *one, *random;
	const char *k;
	size_t i;
	int rc = json_is_array(all) ? 1 : -EPROTO;

	*loss = NAN;
	kind[0] = '\0';
	json_array_foreach (all, i, one) {
		if (!json_is_true(json_object_get(one, "root")))
			continue;
		k = fb_json_str(one, "kind", "");
		snprintf(kind, len, "%s", k);
		random = json_object_get(json_object_get(one, "options"), "loss-random");
		if (!strcmp(k, "netem")) {
			*loss = fb_json_num(random, "loss", 0);
			rc = 0;
		} else if (strcmp(fb_json_str(one, "handle", "0:"), "0:") != 0) {
			/* The kernel's default has no handle of its own. */
			rc = -EBUSY;
		}
	}
	json_decref(all);
	return rc;
}

static bool says(const struct fb_proc_result *r, const char *words)
{
	return (r->err && strstr(r->err, words)) || (r->out && strstr(r->out, words));
}

static void cut_line(char *text)
{
	if (text)
		text[strcspn(text, "\n")] = '\0';
}

static int tc_failed(struct verbs_loss_maker *m, struct fb_proc_result *r, struct fb_err *e)
{
	if (says(r, "not permitted")) {
		fb_fail(e, FB_EXIT_SKIP, EPERM,
			"making loss on %s needs CAP_NET_ADMIN, which this process does not have",
			m->what);
		fb_hint(e,
			"run it as root on the host that sends; or give --loss-command, or --given "
			"where the links have their rates");
		return -EPERM;
	}
	if (says(r, "Cannot find device")) {
		fb_fail(e, FB_EXIT_USAGE, ENODEV, "there is no network device %s here", m->what);
		fb_hint(e, "`rdma link` tells the network device of each RDMA device");
		return -ENODEV;
	}
	if (says(r, "qdisc kind is unknown") || says(r, "No such file or directory")) {
		fb_fail(e, FB_EXIT_SKIP, ENOENT, "this kernel has no netem");
		fb_hint(e, "modprobe sch_netem (Debian: the kernel package; Red Hat: "
			   "kernel-modules-extra)");
		return -ENOENT;
	}
	cut_line(r->err);
	fb_fail(e, FB_EXIT_UNMEASURED, EIO, "tc on %s ended with status %d: %s", m->what, r->status,
		r->err && *r->err ? r->err : "it said nothing");
	fb_hint(e, "see it by: tc qdisc show dev %s", m->what);
	return -EIO;
}

static int run_tc(struct verbs_loss_maker *m, const char *const *argv, struct fb_proc_result *r,
	struct fb_err *e)
{
	static const char *const env[] = {"LC_ALL=C", NULL};
	struct fb_proc_opts o = {
		.env = env, .capture = 65536, .deadline_ns = fb_deadline_in(TC_NS)};
	int rc = fb_proc_run(argv, &o, r, e);

	return rc == 0 && r->status != 0 ? tc_failed(m, r, e) : rc;
}

static int show(struct verbs_loss_maker *m, double *loss, char *kind, size_t len, struct fb_err *e)
{
	const char *const argv[] = {
		m->program, "-j", "qdisc", "show", "dev", m->what, "root", NULL};
	struct fb_proc_result r = {0};
	int rc = run_tc(m, argv, &r, e);

	if (rc == 0) {
		rc = verbs_loss_read_qdisc(r.out ? r.out : "", loss, kind, len);
		if (rc == -EPROTO)
			fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
				"tc -j qdisc show dev %s printed no JSON that tells of its root",
				m->what);
	}
	fb_proc_result_free(&r);
	return rc;
}

static int netem_set(struct verbs_loss_maker *m, double percent, struct fb_err *e)
{
	char loss[40], kind[64] = "";
	const char *const argv[] = {m->program, "qdisc", "replace", "dev", m->what, "root", "netem",
		"limit", "10000", "loss", loss, NULL};
	struct fb_proc_result r = {0};
	double in_effect = NAN;
	int rc;

	verbs_loss_percent(percent, loss, sizeof loss - 1);
	loss[strlen(loss) + 1] = '\0';
	loss[strlen(loss)] = '%';
	rc = run_tc(m, argv, &r, e);
	fb_proc_result_free(&r);
	if (rc == 0)
		rc = show(m, &in_effect, kind, sizeof kind, e);
	if (rc < 0)
		return rc;
	if (rc == 0 && fabs(in_effect * 100 - percent) <= 1e-4 + 1e-3 * percent)
		return 0;
	return fb_fail(e, FB_EXIT_UNMEASURED, EIO,
		"%s was told to lose %s, but tc shows %s with a loss of %g %%", m->what, loss,
		kind[0] ? kind : "no queueing discipline", in_effect * 100);
}

static int netem_open(struct verbs_loss_maker *m, struct fb_err *e)
{
	char kind[64];
	double loss;
	int rc;

	if (fb_find_program("tc", m->program, sizeof m->program) != 0) {
		static const char *const places[] = {"/usr/sbin/tc", "/sbin/tc"};
		m->program[0] = '\0';
		for (unsigned i = 0; !m->program[0] && i < 2; i++)
			if (access(places[i], X_OK) == 0)
				snprintf(m->program, sizeof m->program, "%s", places[i]);
	}
	if (!m->program[0]) {
		fb_fail(e, FB_EXIT_SKIP, ENOENT, "tc is not installed, which sets netem");
		fb_hint(e, "apt-get install iproute2; or give --loss-command or --given");
		return -ENOENT;
	}
	rc = show(m, &loss, kind, sizeof kind, e);
	if (rc == 1)
		return 0;
	if (rc != 0 && rc != -EBUSY)
		return rc;
	fb_fail(e, FB_EXIT_USAGE, EBUSY,
		"%s has a queueing discipline that somebody configured (%s): making loss would "
		"replace it, and could not bring it back",
		m->what, kind);
	fb_hint(e, "if it may go: tc qdisc del dev %s root; else make loss with --loss-command",
		m->what);
	return -EBUSY;
}

/* ---- a command ------------------------------------------------------------------------------- */

static int command_set(struct verbs_loss_maker *m, double percent, struct fb_err *e)
{
	char rate[40];
	const char *const argv[] = {m->program, rate, NULL};
	struct fb_proc_opts o = {.capture = 4096, .deadline_ns = fb_deadline_in(COMMAND_NS)};
	struct fb_proc_result r = {0};
	int rc;

	verbs_loss_percent(percent, rate, sizeof rate);
	rc = fb_proc_run(argv, &o, &r, e);
	cut_line(r.err);
	if (rc == 0 && r.status != 0)
		rc = fb_fail(e, FB_EXIT_UNMEASURED, EIO,
			"the loss command, %s %s, ended with status %d: %s", m->what, rate,
			r.status, r.err && *r.err ? r.err : "it said nothing");
	fb_proc_result_free(&r);
	return rc;
}

static int command_open(struct verbs_loss_maker *m, struct fb_err *e)
{
	if (strchr(m->what, '/') ? access(m->what, X_OK) == 0
				 : fb_find_program(m->what, m->program, sizeof m->program) == 0) {
		if (!m->program[0])
			snprintf(m->program, sizeof m->program, "%s", m->what);
		return 0;
	}
	fb_fail(e, FB_EXIT_USAGE, ENOENT, "the loss command %s is no program that can be run",
		m->what);
	fb_hint(e, "it is run with the rate in percent as its one argument (0.5; 0 ends the loss)");
	return -ENOENT;
}

/* ---- the guard ------------------------------------------------------------------------------- */

/*
 * The shell is told the command in its own words ("$@") and nothing is made of text. A line: end it
 * now. The end of file: the process is gone, perhaps in the middle of a tc of its own, so that it
 * is ended twice.
 */
static const char guard[] =
	"trap '' INT TERM HUP; if read -r word; then exec \"$@\"; fi; \"$@\"; sleep 1; exec \"$@\"";

static int spawn_guard(const char *const *argv, int read_end, pid_t *pid)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t at;
	int rc = posix_spawn_file_actions_init(&fa);

	if (rc)
		return rc;
	rc = posix_spawnattr_init(&at);
	if (rc) {
		posix_spawn_file_actions_destroy(&fa);
		return rc;
	}
	/* A session of its own: what ends this process's group must not end the guard. */
	posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSID);
	posix_spawn_file_actions_adddup2(&fa, read_end, 0);
	posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", O_WRONLY, 0);
	rc = posix_spawn(pid, "/bin/sh", &fa, &at, (char *const *)(uintptr_t)argv, environ);
	posix_spawnattr_destroy(&at);
	posix_spawn_file_actions_destroy(&fa);
	return rc;
}

static int start_guard(struct verbs_loss_maker *m, struct fb_err *e)
{
	const char *const netem[] = {"/bin/sh", "-c", guard, "guard", m->program, "qdisc", "del",
		"dev", m->what, "root", NULL};
	const char *const command[] = {"/bin/sh", "-c", guard, "guard", m->program, "0", NULL};
	int fd[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0)
		return fb_fail(e, FB_EXIT_UNMEASURED, errno, "socketpair: %s", strerror(errno));
	rc = spawn_guard(m->how == VERBS_LOSS_NETEM ? netem : command, fd[0], &m->guard);
	close(fd[0]);
	if (rc) {
		close(fd[1]);
		m->guard = 0;
		return fb_fail(e, FB_EXIT_UNMEASURED, rc,
			"no guard that would surely end the loss could be started: %s",
			strerror(rc));
	}
	m->guard_fd = fd[1];
	return 0;
}

/* @return the guard's status, or -1 where it did not end */
static int end_guard(struct verbs_loss_maker *m)
{
	static const struct timespec pause = {0, 5000000};
	uint64_t deadline = fb_deadline_in(GUARD_NS);
	int status = -1;

	/* Told and not killed: it has work to do. */
	(void)!send(m->guard_fd, "end\n", 4, MSG_NOSIGNAL);
	close(m->guard_fd);
	m->guard_fd = -1;
	for (;;) {
		pid_t got = waitpid(m->guard, &status, WNOHANG);
		if (got == m->guard || (got < 0 && errno != EINTR) || fb_clock_ns() > deadline) {
			status = got == m->guard && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
			break;
		}
		nanosleep(&pause, NULL);
	}
	m->guard = 0;
	return status;
}

/* ---- the maker ------------------------------------------------------------------------------- */

int verbs_loss_maker_open(
	struct verbs_loss_maker *m, enum verbs_loss_how how, const char *what, struct fb_err *e)
{
	int rc = 0;

	memset(m, 0, sizeof *m);
	m->guard_fd = -1;
	m->how = how;
	if (how == VERBS_LOSS_GIVEN)
		return 0;
	if (snprintf(m->what, sizeof m->what, "%s", what) >= (int)sizeof m->what)
		return fb_fail_usage(e, "%.40s...: the name is too long", what);
	rc = how == VERBS_LOSS_NETEM ? netem_open(m, e) : command_open(m, e);
	if (rc == 0)
		rc = start_guard(m, e);
	if (rc == 0)
		rc = verbs_loss_maker_set(m, 0, e);
	if (rc) {
		struct fb_err ignored = {0};
		verbs_loss_maker_close(m, &ignored);
	}
	return rc;
}

int verbs_loss_maker_set(struct verbs_loss_maker *m, double percent, struct fb_err *e)
{
	if (m->how == VERBS_LOSS_NETEM)
		return netem_set(m, percent, e);
	return m->how == VERBS_LOSS_COMMAND ? command_set(m, percent, e) : 0;
}

int verbs_loss_maker_close(struct verbs_loss_maker *m, struct fb_err *e)
{
	int status;

	if (!m->guard)
		return 0;
	status = end_guard(m);
	if (status == 0)
		return 0;
	fb_fail(e, FB_EXIT_UNMEASURED, EIO, "the loss made by %s may still be there: %s %s",
		verbs_loss_hows[m->how], m->what,
		status < 0 ? "could not be undone in time" : "ended with an error");
	if (m->how == VERBS_LOSS_NETEM)
		fb_hint(e, "tc qdisc del dev %s root", m->what);
	else
		fb_hint(e, "%s 0", m->what);
	return -EIO;
}
