// SPDX-License-Identifier: Apache-2.0
/*
 * JSON habits over jansson, and whole files in and out. Nothing here knows what a document means.
 *
 * A file is replaced by rename, so a reader sees the old one or the new one, whole; a device or a
 * pipe given as output is written in place, never replaced.
 */
#include "bench/core/json.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/strbuf.h"

json_t *fb_json_real(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

void fb_json_set_real(json_t *obj, const char *key, double v, const char *reason)
{
	json_object_set_new(obj, key, fb_json_real(v));
	if (!isfinite(v)) {
		char name[128];
		snprintf(name, sizeof(name), "%s_reason", key);
		fb_json_set_str(obj, name, reason ? reason : "not a finite number");
	}
}

void fb_json_set_int(json_t *obj, const char *key, int64_t v)
{
	json_object_set_new(obj, key, json_integer(v));
}

void fb_json_set_str(json_t *obj, const char *key, const char *s)
{
	if (!s)
		return;
	json_t *v = json_string(s);
	if (!v) {
		struct fb_strbuf b = {0};
		for (const char *p = s; *p;) {
			size_t n = fb_utf8_len(p);
			if (n > 0)
				fb_strbuf_addn(&b, p, n);
			else
				fb_strbuf_add(&b, "\xef\xbf\xbd");
			p += n > 0 ? n : 1;
		}
		char *clean = fb_strbuf_take(&b);
		v = clean ? json_string(clean) : NULL;
		free(clean);
	}
	json_object_set_new(obj, key, v);
}

static bool same_members(const json_t *a, const json_t *b)
{
	const char *key;
	json_t *v;
	if (json_object_size(a) != json_object_size(b))
		return false;
	json_object_foreach ((json_t *)a, key, v)
		if (!fb_json_same(v, json_object_get(b, key)))
			return false;
	return true;
}

bool fb_json_same(const json_t *a, const json_t *b)
{
	if (json_is_object(a) && json_is_object(b))
		return same_members(a, b);
	if (json_is_array(a) && json_is_array(b)) {
		size_t n = json_array_size(a);
		bool same = n == json_array_size(b);
		for (size_t i = 0; i < n && same; i++)
			same = fb_json_same(json_array_get(a, i), json_array_get(b, i));
		return same;
	}
	if (json_is_number(a) && json_is_number(b) && json_typeof(a) != json_typeof(b))
		return json_number_value(a) == json_number_value(b);
	return a == b || json_equal(a, b);
}

void fb_json_set_bool(json_t *obj, const char *key, int v)
{
	json_object_set_new(obj, key, json_boolean(v));
}

const char *fb_json_str(const json_t *obj, const char *key, const char *def)
{
	const char *s = json_string_value(json_object_get(obj, key));
	return s ? s : def;
}

int64_t fb_json_int(const json_t *obj, const char *key, int64_t def)
{
	const json_t *v = json_object_get(obj, key);
	return json_is_integer(v) ? (int64_t)json_integer_value(v) : def;
}

double fb_json_num(const json_t *obj, const char *key, double def)
{
	const json_t *v = json_object_get(obj, key);
	return json_is_number(v) ? json_number_value(v) : def;
}

json_t *fb_json_parse(const char *text, size_t len, const char *name, struct fb_err *e)
{
	json_error_t je;
	json_t *j = json_loadb(text, len, JSON_REJECT_DUPLICATES, &je);
	if (!j)
		fb_fail(e, FB_EXIT_USAGE, EINVAL, "%s:%d:%d: not valid JSON: %s", name,
			je.line > 0 ? je.line : 1, je.column > 0 ? je.column : 1, je.text);
	return j;
}

static int read_all(int fd, size_t max, char **text, size_t *len)
{
	size_t cap = 16384, n = 0;
	char *buf = malloc(cap);
	if (!buf)
		return -ENOMEM;
	for (;;) {
		if (n + 1 == cap) {
			char *more = realloc(buf, cap * 2);
			if (!more) {
				free(buf);
				return -ENOMEM;
			}
			buf = more;
			cap *= 2;
		}
		ssize_t k = read(fd, buf + n, cap - n - 1);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0 || n + (size_t)(k > 0 ? k : 0) > max) {
			int rc = k < 0 ? -errno : -EFBIG;
			free(buf);
			return rc;
		}
		if (k == 0)
			break;
		n += (size_t)k;
	}
	buf[n] = '\0';
	*text = buf;
	*len = n;
	return 0;
}

int fb_read_file(const char *path, size_t max, char **text, size_t *len, struct fb_err *e)
{
	/* O_NONBLOCK: a FIFO without a writer must not hang us before fstat() can refuse it. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		int rc = fb_fail(
			e, FB_EXIT_USAGE, errno, "cannot read %s: %s", path, strerror(errno));
		fb_hint(e, "give the path of a file that exists and may be read");
		return rc;
	}
	struct stat st;
	int rc = fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
	if (rc == -EINVAL) {
		fb_fail(e, FB_EXIT_USAGE, EINVAL, "cannot read %s: it is not a regular file", path);
		fb_hint(e, "give the path of a file, not of a folder or device");
	}
	if (rc == 0)
		rc = read_all(fd, max, text, len);
	close(fd);
	if (rc == -EFBIG)
		fb_fail(e, FB_EXIT_USAGE, EFBIG, "cannot read %s: it is larger than %zu bytes",
			path, max);
	else if (rc < 0)
		fb_fail(e, FB_EXIT_USAGE, rc, "cannot read %s: %s", path, strerror(-rc));
	return rc;
}

static int write_all(int fd, const char *p, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static int fail_write(const char *path, int rc, struct fb_err *e)
{
	fb_fail(e, FB_EXIT_UNMEASURED, rc, "cannot write %s: %s", path, strerror(-rc));
	if (rc == -ENOSPC || rc == -EDQUOT)
		fb_hint(e, "free space on that file system or give another path");
	else
		fb_hint(e, "give a path in a folder that exists and may be written");
	return rc;
}

/* /dev/full, /dev/stdout, a FIFO: no rename over it, it would replace the device itself. */
static int write_in_place(const char *path, const void *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	int rc = write_all(fd, data, len);
	if (close(fd) < 0 && rc == 0)
		rc = -errno;
	return rc;
}

static int sync_folder(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int rc = fsync(fd) < 0 ? -errno : 0;
	close(fd);
	/* Some network file systems cannot sync a folder; the rename has happened all the same. */
	return rc == -EINVAL || rc == -EROFS ? 0 : rc;
}

static int replace_file(const char *path, const void *data, size_t len)
{
	char folder[PATH_MAX], tmp[PATH_MAX];
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	int flen = slash ? (int)(slash - path) : 0;
	if (*base == '\0')
		return -EISDIR;
	if (snprintf(folder, sizeof(folder), "%.*s", slash ? (flen ? flen : 1) : 1,
		    slash ? path : ".") >= (int)sizeof(folder) ||
		snprintf(tmp, sizeof(tmp), "%.*s.%.200s.tmp%ld", slash ? flen + 1 : 0, path, base,
			(long)getpid()) >= (int)sizeof(tmp))
		return -ENAMETOOLONG;
	/* A leftover of a killed process with our number is ours to replace. */
	unlink(tmp);
	int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	int rc = write_all(fd, data, len);
	if (rc == 0 && fsync(fd) < 0)
		rc = -errno;
	if (close(fd) < 0 && rc == 0)
		rc = -errno;
	if (rc == 0 && rename(tmp, path) < 0)
		rc = -errno;
	if (rc < 0) {
		unlink(tmp);
		return rc;
	}
	return sync_folder(folder);
}

int fb_write_file_atomic(const char *path, const void *data, size_t len, struct fb_err *e)
{
	struct stat st;
	char real[PATH_MAX];
	const char *target = path;
	int rc;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		rc = -EISDIR;
	} else if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		rc = write_in_place(path, data, len);
	} else {
		/* Through a symbolic link, the file it names is replaced and the link stays. */
		if (realpath(path, real))
			target = real;
		rc = replace_file(target, data, len);
	}
	return rc < 0 ? fail_write(path, rc, e) : 0;
}
