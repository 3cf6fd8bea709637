// SPDX-License-Identifier: Apache-2.0
/*
 * Children by argv. posix_spawn with a new process group and default signals; output is drained
 * while waiting, so that a chatty child never blocks on a full pipe.
 */
#include "bench/core/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/result.h"

extern char **environ;

#define MS 1000000ull

struct pipes {
	int in_w;         /* our end of the child's stdin, or -1 */
	int out_r, err_r; /* our ends of its outputs, or -1 */
	int child[3];     /* what the child gets as 0, 1, 2; -1: inherit */
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_all(struct pipes *p)
{
	close_fd(&p->in_w);
	close_fd(&p->out_r);
	close_fd(&p->err_r);
	for (int i = 0; i < 3; i++)
		close_fd(&p->child[i]);
}

static int output_to(const char *path, int capture, int *ours, int *child, struct fb_err *e)
{
	int fd[2];
	if (path) {
		*child = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (*child < 0)
			return fb_fail(e, FB_EXIT_UNMEASURED, errno, "cannot create %s: %s", path,
				strerror(errno));
	} else if (capture > 0) {
		if (pipe2(fd, O_CLOEXEC) != 0)
			return fb_fail(e, FB_EXIT_UNMEASURED, errno, "pipe: %s", strerror(errno));
		*ours = fd[0];
		*child = fd[1];
	}
	return 0;
}

static int open_pipes(struct pipes *p, const struct fb_proc_opts *o, struct fb_err *e)
{
	int fd[2];
	*p = (struct pipes){-1, -1, -1, {-1, -1, -1}};
	if (o->input) {
		if (pipe2(fd, O_CLOEXEC) != 0)
			return fb_fail(e, FB_EXIT_UNMEASURED, errno, "pipe: %s", strerror(errno));
		p->child[0] = fd[0];
		p->in_w = fd[1];
		fcntl(p->in_w, F_SETFL, O_NONBLOCK);
	} else {
		p->child[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
	int rc = output_to(o->stdout_path, o->capture, &p->out_r, &p->child[1], e);
	if (rc == 0)
		rc = output_to(o->stderr_path, o->capture, &p->err_r, &p->child[2], e);
	if (rc != 0)
		close_all(p);
	return rc;
}

/* The environment with the extra pairs replacing equal names. Only the array is ours. */
static char **merge_env(const char *const *extra)
{
	size_t n = 0, m = 0;
	while (environ[n])
		n++;
	while (extra && extra[m])
		m++;
	char **env = calloc(n + m + 1, sizeof(*env));
	if (!env)
		return NULL;
	size_t k = 0;
	for (size_t i = 0; i < n; i++) {
		size_t name = strcspn(environ[i], "=");
		bool replaced = false;
		for (size_t j = 0; j < m; j++)
			replaced = replaced || (strncmp(environ[i], extra[j], name) == 0 &&
						       extra[j][name] == '=');
		if (!replaced)
			env[k++] = environ[i];
	}
	for (size_t j = 0; j < m; j++)
		env[k++] = (char *)(uintptr_t)extra[j];
	return env;
}

static int spawn(
	const char *const *argv, const struct fb_proc_opts *o, const struct pipes *p, pid_t *pid)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t at;
	sigset_t none, def;
	int rc = posix_spawn_file_actions_init(&fa);
	if (rc != 0)
		return rc;
	rc = posix_spawnattr_init(&at);
	if (rc != 0)
		goto destroy_actions;
	sigemptyset(&none);
	sigemptyset(&def);
	sigaddset(&def, SIGINT);
	sigaddset(&def, SIGTERM);
	sigaddset(&def, SIGHUP);
	sigaddset(&def, SIGPIPE);
	sigaddset(&def, SIGXFSZ);
	posix_spawnattr_setsigmask(&at, &none);
	posix_spawnattr_setsigdefault(&at, &def);
	posix_spawnattr_setpgroup(&at, 0);
	posix_spawnattr_setflags(
		&at, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
	for (int i = 0; i < 3; i++)
		if (p->child[i] >= 0)
			posix_spawn_file_actions_adddup2(&fa, p->child[i], i);
	if (o->cwd)
		posix_spawn_file_actions_addchdir_np(&fa, o->cwd);
	char **env = merge_env(o->env);
	if (env)
		rc = posix_spawnp(pid, argv[0], &fa, &at, (char *const *)(uintptr_t)argv, env);
	else
		rc = ENOMEM;
	free(env);
	posix_spawnattr_destroy(&at);
destroy_actions:
	posix_spawn_file_actions_destroy(&fa);
	return rc;
}

static int start(const char *const *argv, const struct fb_proc_opts *o, struct pipes *p, pid_t *pid,
	struct fb_err *e)
{
	int rc = open_pipes(p, o, e);
	if (rc != 0)
		return rc;
	rc = spawn(argv, o, p, pid);
	for (int i = 0; i < 3; i++)
		close_fd(&p->child[i]);
	if (rc != 0) {
		close_all(p);
		rc = fb_fail(
			e, FB_EXIT_UNMEASURED, rc, "cannot start %s: %s", argv[0], strerror(rc));
		fb_hint(e, "is %s installed, and in PATH?", argv[0]);
	}
	return rc;
}

struct buffer {
	char *s;
	size_t len, cap;
};

/* Read what is there; what is over the cap is read and dropped, so that the child never blocks.
 * @return false at the end */
static bool drain(int fd, struct buffer *b)
{
	char tmp[16384];
	ssize_t n = read(fd, tmp, sizeof(tmp));
	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	if (n == 0)
		return false;
	size_t keep = (size_t)n;
	if (b->len + keep > b->cap)
		keep = b->cap - b->len;
	if (keep > 0) {
		memcpy(b->s + b->len, tmp, keep);
		b->len += keep;
		b->s[b->len] = '\0';
	}
	return true;
}

static void feed(int *fd, const char **in, size_t *left)
{
	ssize_t n = *left > 0 ? write(*fd, *in, *left) : 0;
	if (n > 0) {
		*in += n;
		*left -= (size_t)n;
	}
	if (*left == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		close_fd(fd);
}

static int status_of(int w)
{
	return WIFEXITED(w) ? WEXITSTATUS(w) : 128 + WTERMSIG(w);
}

int fb_proc_stop(pid_t pid, uint64_t grace_ns)
{
	int w = 0;
	if (grace_ns == 0)
		grace_ns = 2000 * MS;
	kill(-pid, SIGTERM);
	uint64_t end = fb_deadline_in(grace_ns);
	while (waitpid(pid, &w, WNOHANG) == 0) {
		if (fb_clock_ns() > end) {
			kill(-pid, SIGKILL);
			while (waitpid(pid, &w, 0) < 0 && errno == EINTR)
				;
			break;
		}
		poll(NULL, 0, 5);
	}
	kill(-pid, SIGKILL); /* what the child itself left running */
	return status_of(w);
}

/* One round of waiting. @return true once the child has ended (*w is its status). */
static bool turn(struct pipes *p, pid_t pid, const struct fb_proc_opts *o, struct buffer *out,
	struct buffer *err, const char **in, size_t *left, int *w)
{
	struct pollfd fds[4] = {{p->out_r, POLLIN, 0}, {p->err_r, POLLIN, 0}, {p->in_w, POLLOUT, 0},
		{o->watched ? o->watch : -1, POLLIN, 0}};
	poll(fds, 4, 10);
	if (fds[0].revents && !drain(p->out_r, out))
		close_fd(&p->out_r);
	if (fds[1].revents && !drain(p->err_r, err))
		close_fd(&p->err_r);
	if (fds[2].revents)
		feed(&p->in_w, in, left);
	if (o->watched && (fds[3].revents & POLLIN))
		o->watched(o->watch_arg);
	return waitpid(pid, w, WNOHANG) == pid;
}

/* After its end: what still stands in the pipes. A grandchild may hold them open, so never wait for
 * the end of file. */
static void drain_rest(struct pipes *p, struct buffer *out, struct buffer *err)
{
	for (int i = 0; i < 2; i++) {
		int fd = i == 0 ? p->out_r : p->err_r;
		if (fd < 0)
			continue;
		fcntl(fd, F_SETFL, O_NONBLOCK);
		for (int k = 0; k < 4096; k++) {
			struct pollfd f = {fd, POLLIN, 0};
			if (poll(&f, 1, 0) <= 0 || !drain(fd, i == 0 ? out : err))
				break;
		}
	}
}

int fb_proc_run(const char *const *argv, const struct fb_proc_opts *o, struct fb_proc_result *r,
	struct fb_err *e)
{
	struct pipes p;
	pid_t pid = -1;
	size_t cap = o->capture > 0 ? (size_t)o->capture : 0;
	struct buffer out = {calloc(1, cap + 1), 0, cap}, err = {calloc(1, cap + 1), 0, cap};
	const char *in = o->input;
	size_t left = o->input ? o->input_len : 0;
	uint64_t began = fb_clock_ns();
	int w = 0;

	memset(r, 0, sizeof(*r));
	r->status = -1;
	int rc = out.s && err.s ? 0 : fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "out of memory");
	if (rc == 0)
		rc = start(argv, o, &p, &pid, e);
	if (rc != 0) {
		free(out.s);
		free(err.s);
		return rc;
	}
	bool ended = false;
	while (!ended && !r->timed_out && !r->stopped) {
		ended = turn(&p, pid, o, &out, &err, &in, &left, &w);
		r->timed_out = !ended && fb_clock_ns() > o->deadline_ns;
		r->stopped = !ended && !r->timed_out && fb_stop_requested();
	}
	if (ended) {
		kill(-pid, SIGKILL);
		r->status = status_of(w);
	} else {
		r->status = fb_proc_stop(pid, o->grace_ns);
	}
	drain_rest(&p, &out, &err);
	if (o->watched)
		o->watched(o->watch_arg);
	close_all(&p);
	r->out = out.s;
	r->out_len = out.len;
	r->err = err.s;
	r->err_len = err.len;
	r->elapsed_ns = fb_clock_ns() - began;
	if (r->timed_out)
		return fb_fail(e, FB_EXIT_UNMEASURED, ETIMEDOUT,
			"%s did not end within its deadline and was stopped", argv[0]);
	if (r->stopped)
		return fb_fail(
			e, FB_EXIT_UNMEASURED, EINTR, "interrupted while %s was running", argv[0]);
	return 0;
}

void fb_proc_result_free(struct fb_proc_result *r)
{
	free(r->out);
	free(r->err);
	r->out = r->err = NULL;
}

int fb_proc_start(
	const char *const *argv, const struct fb_proc_opts *o, pid_t *pid, struct fb_err *e)
{
	struct pipes p;
	struct fb_proc_opts plain = *o;
	plain.capture = 0; /* nobody would drain it */
	plain.input = NULL;
	int rc = start(argv, &plain, &p, pid, e);
	if (rc == 0)
		close_all(&p);
	return rc;
}

int fb_proc_poll(pid_t pid, int *status)
{
	int w = 0;
	if (waitpid(pid, &w, WNOHANG) == 0)
		return 0;
	*status = status_of(w);
	return 1;
}

void fb_proc_signal(pid_t pid)
{
	kill(-pid, SIGTERM);
}

int fb_find_program(const char *name, char *buf, size_t len)
{
	const char *path = getenv("PATH");
	if (strchr(name, '/'))
		return access(name, X_OK) == 0 && snprintf(buf, len, "%s", name) < (int)len
			       ? 0
			       : -ENOENT;
	for (const char *d = path ? path : "/usr/bin:/bin"; *d;) {
		size_t n = strcspn(d, ":");
		if (n > 0 && snprintf(buf, len, "%.*s/%s", (int)n, d, name) < (int)len &&
			access(buf, X_OK) == 0)
			return 0;
		d += n + (d[n] == ':');
	}
	return -ENOENT;
}

int fb_self_path(char *buf, size_t len)
{
	ssize_t n = readlink("/proc/self/exe", buf, len - 1);
	if (n < 0)
		return -errno;
	if ((size_t)n >= len - 1)
		return -ENAMETOOLONG;
	buf[n] = '\0';
	return 0;
}
