// SPDX-License-Identifier: Apache-2.0
/*
 * The one door to /sys and /proc. In a recorded tree `..` stops at its top and a symbolic link,
 * absolute or relative, is followed inside it, so that a recording can never show a fact of the
 * machine that examines it. Linux 5.6 and later do that by openat2(); before, and where a sandbox
 * refuses it, the tree is walked here component by component, at some ten times the cost.
 */
#include "bench/core/sysroot.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench/core/sysroot_tar.h"

#define MAX_LINKS 40 /* the kernel's own limit */

int fb_sysroot_open(struct fb_sysroot *r, const char *dir, struct fb_err *e)
{
	*r = (struct fb_sysroot){.dir = NULL};
	if (!dir || strcmp(dir, "/") == 0)
		return 0;
	struct stat st;
	if (stat(dir, &st) < 0) {
		int rc = fb_fail(e, FB_EXIT_USAGE, errno, "cannot use %s as recorded system: %s",
			dir, strerror(errno));
		fb_hint(e,
			"name the folder that holds the recorded sys/ and proc/, or leave --sysroot out");
		return rc;
	}
	char *top = NULL;
	if (S_ISREG(st.st_mode)) {
		int rc = fb_sysroot_tar_unpack(dir, &r->temp, &top, e);
		if (rc < 0)
			return rc;
	} else if (!S_ISDIR(st.st_mode)) {
		int rc = fb_fail(e, FB_EXIT_USAGE, ENOTDIR,
			"cannot use %s as recorded system: it is neither a folder nor a file", dir);
		fb_hint(e, "give the recording's top folder, or a tar file of it");
		return rc;
	}
	r->dir = realpath(top ? top : dir, NULL);
	free(top);
	if (!r->dir) {
		int rc = fb_fail(e, FB_EXIT_USAGE, errno, "cannot use %s as recorded system: %s",
			dir, strerror(errno));
		fb_sysroot_close(r);
		return rc;
	}
	if (strcmp(r->dir, "/") == 0)
		fb_sysroot_close(r);
	else
		r->top = open(r->dir, O_PATH | O_DIRECTORY | O_CLOEXEC) + 1;
	return 0;
}

void fb_sysroot_close(struct fb_sysroot *r)
{
	fb_sysroot_tar_remove(r->temp);
	free(r->temp);
	free(r->dir);
	if (r->top > 0)
		close(r->top - 1);
	*r = (struct fb_sysroot){.dir = NULL};
}

bool fb_sysroot_is_live(const struct fb_sysroot *r)
{
	return !r || !r->dir;
}

static const char *prefix(const struct fb_sysroot *r)
{
	return fb_sysroot_is_live(r) ? "" : r->dir;
}

static int join(const struct fb_sysroot *r, const char *inside, char *buf, size_t len)
{
	int n = snprintf(buf, len, "%s%s", prefix(r), *inside ? inside : "/");
	return n < 0 || (size_t)n >= len ? -ENAMETOOLONG : 0;
}

/* What is still to be walked, and what has been: both paths inside the tree. */
struct walk {
	char todo[PATH_MAX];
	char done[PATH_MAX];
	int links;
};

static void drop_last(char *path)
{
	char *slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
}

/* Put the target of a link before what is still to be walked. */
static int take_link(struct walk *w, const char *target, const char *rest)
{
	char next[PATH_MAX];
	if (++w->links > MAX_LINKS)
		return -ELOOP;
	int n = snprintf(next, sizeof(next), "%s/%s", target, rest);
	if (n < 0 || (size_t)n >= sizeof(next))
		return -ENAMETOOLONG;
	if (target[0] == '/')
		w->done[0] = '\0';
	else
		drop_last(w->done);
	memcpy(w->todo, next, (size_t)n + 1);
	return 0;
}

/* One step; *p is what is left of w->todo. */
static int step(const struct fb_sysroot *r, struct walk *w, char **p)
{
	char *name = *p + strspn(*p, "/");
	size_t n = strcspn(name, "/");
	char *rest = name + n;
	*p = rest;
	if (n == 0 || (n == 1 && name[0] == '.'))
		return 0;
	if (n == 2 && name[0] == '.' && name[1] == '.') {
		drop_last(w->done);
		return 0;
	}
	size_t have = strlen(w->done);
	if (have + 1 + n >= sizeof(w->done))
		return -ENAMETOOLONG;
	w->done[have] = '/';
	memcpy(w->done + have + 1, name, n);
	w->done[have + 1 + n] = '\0';

	char full[PATH_MAX], target[PATH_MAX];
	int rc = join(r, w->done, full, sizeof(full));
	if (rc < 0)
		return rc;
	ssize_t k = readlink(full, target, sizeof(target) - 1);
	if (k < 0)
		return errno == EINVAL ? 0 : -errno; /* EINVAL: it is there and no link */
	target[k] = '\0';
	rc = take_link(w, target, rest);
	*p = w->todo;
	return rc;
}

/* By the kernel. @return a descriptor; -errno; -ENOSYS: it must be walked */
static int open_in_top(const struct fb_sysroot *r, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)(unsigned)flags, .resolve = RESOLVE_IN_ROOT};
	if (r->top <= 0)
		return -ENOSYS;
	long fd = syscall(SYS_openat2, r->top - 1, path, &how, sizeof(how));
	if (fd >= 0)
		return (int)fd;
	/* EAGAIN: something was renamed while `..` was looked up. EPERM: a sandbox that does not
	 * know the call. */
	return errno == EAGAIN || errno == EPERM || errno == EINVAL || errno == E2BIG ? -ENOSYS
										      : -errno;
}

/* @return 0; -errno; -ENOSYS: it must be walked */
static int realpath_in_top(const struct fb_sysroot *r, const char *path, char *buf, size_t len)
{
	char own[64], full[PATH_MAX];
	size_t top = strlen(prefix(r));
	int fd = open_in_top(r, path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return fd;
	snprintf(own, sizeof(own), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(own, full, sizeof(full) - 1);
	close(fd);
	if (n < (ssize_t)top || memcmp(full, prefix(r), top) != 0)
		return -ENOSYS; /* no /proc, or the tree was moved meanwhile */
	full[n] = '\0';
	n = snprintf(buf, len, "%s", full[top] ? full + top : "/");
	return n < 0 || (size_t)n >= len ? -ENAMETOOLONG : 0;
}

int fb_sysroot_realpath(const struct fb_sysroot *r, const char *path, char *buf, size_t len)
{
	struct walk w = {.links = 0};
	if (path[0] != '/')
		return -EINVAL;
	int fast = fb_sysroot_is_live(r) ? -ENOSYS : realpath_in_top(r, path, buf, len);
	if (fast != -ENOSYS)
		return fast;
	if (strlen(path) >= sizeof(w.todo))
		return -ENAMETOOLONG;
	memcpy(w.todo, path, strlen(path) + 1);
	for (char *p = w.todo; *p;) {
		int rc = step(r, &w, &p);
		if (rc < 0)
			return rc;
	}
	int n = snprintf(buf, len, "%s", w.done[0] ? w.done : "/");
	return n < 0 || (size_t)n >= len ? -ENAMETOOLONG : 0;
}

/* Where a path of the tree really is; every access below goes through here. */
static int locate(const struct fb_sysroot *r, const char *path, char *full, size_t len)
{
	if (fb_sysroot_is_live(r))
		return join(r, path, full, len);
	char inside[PATH_MAX];
	int rc = fb_sysroot_realpath(r, path, inside, sizeof(inside));
	return rc < 0 ? rc : join(r, inside, full, len);
}

/* @return a descriptor, or -errno */
static int open_inside(const struct fb_sysroot *r, const char *path, int flags)
{
	char full[PATH_MAX];
	int rc = fb_sysroot_is_live(r) || path[0] != '/' ? -ENOSYS : open_in_top(r, path, flags);
	if (rc != -ENOSYS)
		return rc;
	rc = locate(r, path, full, sizeof(full));
	if (rc < 0)
		return rc;
	int fd = open(full, flags);
	return fd < 0 ? -errno : fd;
}

/* `path` without `.`, `..` and double slashes, links left alone: for what does not exist. */
static int lexical(const char *path, char *buf, size_t len)
{
	size_t have = 0;
	buf[0] = '\0';
	for (const char *p = path; *p;) {
		p += strspn(p, "/");
		size_t n = strcspn(p, "/");
		if (n == 2 && p[0] == '.' && p[1] == '.') {
			drop_last(buf);
			have = strlen(buf);
		} else if (n > 0 && !(n == 1 && p[0] == '.')) {
			if (have + 1 + n >= len)
				return -ENAMETOOLONG;
			buf[have] = '/';
			memcpy(buf + have + 1, p, n);
			have += 1 + n;
			buf[have] = '\0';
		}
		p += n;
	}
	return 0;
}

int fb_sysroot_path(const struct fb_sysroot *r, const char *path, char *buf, size_t len)
{
	int rc = locate(r, path, buf, len);
	if (rc == 0 || rc == -ENAMETOOLONG)
		return rc;
	char inside[PATH_MAX];
	rc = lexical(path, inside, sizeof(inside));
	return rc < 0 ? rc : join(r, inside, buf, len);
}

int fb_sysroot_read(const struct fb_sysroot *r, const char *path, char *buf, size_t len)
{
	if (len == 0)
		return -EINVAL;
	buf[0] = '\0';
	int fd = open_inside(r, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return fd;
	struct stat st;
	size_t n = 0;
	int rc = fstat(fd, &st) < 0       ? -errno
		 : S_ISDIR(st.st_mode)    ? -EISDIR
		 : (!S_ISREG(st.st_mode)) ? -EINVAL
					  : 0;
	while (rc == 0 && n + 1 < len) {
		ssize_t k = read(fd, buf + n, len - 1 - n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			rc = -errno;
		if (k <= 0)
			break;
		n += (size_t)k;
	}
	close(fd);
	while (n > 0 && isspace((unsigned char)buf[n - 1]))
		n--;
	buf[rc < 0 ? 0 : n] = '\0';
	return rc < 0 ? rc : (int)n;
}

static int FB_PRINTF(3, 0) format_path(char *path, size_t len, const char *fmt, va_list ap)
{
	int n = vsnprintf(path, len, fmt, ap);
	return n < 0 || (size_t)n >= len ? -ENAMETOOLONG : 0;
}

int fb_sysroot_readf(const struct fb_sysroot *r, char *buf, size_t len, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;
	va_start(ap, fmt);
	int rc = format_path(path, sizeof(path), fmt, ap);
	va_end(ap);
	if (len > 0)
		buf[0] = '\0';
	return rc < 0 ? rc : fb_sysroot_read(r, path, buf, len);
}

int fb_sysroot_read_i64(const struct fb_sysroot *r, int64_t *v, const char *fmt, ...)
{
	char path[PATH_MAX], buf[64], *end;
	va_list ap;
	va_start(ap, fmt);
	int rc = format_path(path, sizeof(path), fmt, ap);
	va_end(ap);
	if (rc == 0)
		rc = fb_sysroot_read(r, path, buf, sizeof(buf));
	if (rc < 0)
		return rc;
	const char *digits = buf[0] == '-' ? buf + 1 : buf;
	bool hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
	errno = 0;
	long long x = strtoll(buf, &end, hex ? 16 : 10);
	if (end == buf || *end != '\0' || errno != 0)
		return -EINVAL;
	*v = x;
	return 0;
}

bool fb_sysroot_exists(const struct fb_sysroot *r, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;
	va_start(ap, fmt);
	int rc = format_path(path, sizeof(path), fmt, ap);
	va_end(ap);
	int fd = rc == 0 ? open_inside(r, path, O_PATH | O_CLOEXEC) : rc;
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* "cpu2" before "cpu10": runs of digits compare as numbers. */
static int natural_cmp(const char *a, const char *b)
{
	while (*a && *b) {
		if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
			a += strspn(a, "0");
			b += strspn(b, "0");
			size_t na = strspn(a, "0123456789"), nb = strspn(b, "0123456789");
			int d = na == nb ? strncmp(a, b, na) : na < nb ? -1 : 1;
			if (d != 0)
				return d;
			a += na;
			b += nb;
		} else if (*a != *b) {
			return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
		} else {
			a++;
			b++;
		}
	}
	return *a ? 1 : *b ? -1 : 0;
}

static int name_cmp(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	int d = natural_cmp(x, y);
	return d != 0 ? d : strcmp(x, y);
}

static int read_names(DIR *d, char ***names)
{
	size_t n = 0, cap = 32;
	char **v = calloc(cap, sizeof(*v));
	if (!v)
		return -ENOMEM;
	struct dirent *de;
	while ((de = readdir(d)) != NULL) {
		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
			continue;
		if (n + 1 == cap) {
			char **more = realloc(v, 2 * cap * sizeof(*v));
			if (!more)
				goto free_names;
			v = more;
			cap *= 2;
		}
		v[n] = strdup(de->d_name);
		if (!v[n])
			goto free_names;
		v[++n] = NULL;
	}
	qsort(v, n, sizeof(*v), name_cmp);
	*names = v;
	return (int)n;

free_names:
	v[n] = NULL;
	fb_sysroot_names_free(v);
	return -ENOMEM;
}

int fb_sysroot_list(const struct fb_sysroot *r, const char *path, char ***names)
{
	*names = NULL;
	int fd = open_inside(r, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	if (!d) {
		int rc = fd >= 0 ? -errno : fd;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	int rc = read_names(d, names);
	closedir(d);
	return rc;
}

void fb_sysroot_names_free(char **names)
{
	for (char **p = names; p && *p; p++)
		free(*p);
	free(names);
}
