// SPDX-License-Identifier: Apache-2.0
/* See tell.h. */
#include "bench/core/tell.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/json.h"
#include "bench/core/result.h"

#define MAX_POINTS 10000000
#define MAX_READS  16 /* of 4 KiB, per call: a flood must not hold the caller */

/* ---- telling --------------------------------------------------------------------------------- */

void fb_tell_open(struct fb_tell *t)
{
	const char *where = getenv(FB_TELL_ENV);
	unsigned long long inode;
	char path[64], end;
	struct stat st;
	memset(t, 0, sizeof(*t));
	t->fd = -1;
	if (!where || sscanf(where, "%63s %llu%c", path, &inode, &end) != 2 ||
		strncmp(path, "/proc/", 6) != 0)
		return;
	/* For both directions: Linux then opens it without a wait, and as we are a reader ourselves
	 * the real one's end costs us no SIGPIPE. */
	int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) &&
		(unsigned long long)st.st_ino == inode)
		t->fd = fd;
	else if (fd >= 0)
		close(fd);
}

void fb_tell_take(struct fb_tell *t)
{
	fb_tell_open(t);
	unsetenv(FB_TELL_ENV);
}

void fb_tell_close(struct fb_tell *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}

/* Steals msg. */
static void send_line(struct fb_tell *t, json_t *msg)
{
	char line[FB_TELL_MAX];
	size_t n = msg ? json_dumpb(msg, line, sizeof(line) - 1, JSON_COMPACT) : 0;
	json_decref(msg);
	if (n == 0 || n >= sizeof(line))
		return;
	line[n++] = '\n';
	/* All of it or nothing (n < PIPE_BUF); a full pipe has a slow reader, who gets the next. */
	if (write(t->fd, line, n) < 0 && errno != EAGAIN && errno != EINTR)
		fb_tell_close(t);
}

/* A name may be cut within a character: its bytes are mended, for no JSON may hold them. */
static json_t *message(const struct fb_tell *t)
{
	json_t *m = json_pack(
		"{s:I,s:I}", "point", (json_int_t)t->point, "points", (json_int_t)t->points);
	fb_json_set_str(m, "name", t->name);
	return m;
}

void fb_tell_begin(struct fb_tell *t, unsigned point, unsigned points, const char *name)
{
	if (t->fd < 0)
		return;
	t->point = point;
	t->points = points;
	snprintf(t->name, sizeof(t->name), "%s", name);
	send_line(t, message(t));
}

void fb_tell_end(struct fb_tell *t, struct fb_doc *doc)
{
	if (t->fd < 0)
		return;
	const json_t *all = doc ? json_object_get(fb_doc_json(doc), "results") : NULL;
	const json_t *r = json_array_get(all, json_array_size(all) - 1);
	json_t *result = json_object();
	if (r) {
		json_object_set(result, "metric", json_object_get(r, "metric"));
		json_object_set(result, "unit", json_object_get(r, "unit"));
		json_object_set(result, "value", json_object_get(r, "value"));
		json_object_set_new(result, "params",
			json_pack("{s:O?}", "size",
				json_object_get(json_object_get(r, "params"), "size")));
	}
	json_t *msg = message(t);
	json_object_set_new(msg, "result", result);
	send_line(t, msg);
}

/* ---- listening ------------------------------------------------------------------------------- */

int fb_listen_open(struct fb_listen *l)
{
	int fd[2];
	struct stat st;
	memset(l, 0, sizeof(*l));
	l->r = l->w = -1;
	if (pipe2(fd, O_CLOEXEC | O_NONBLOCK) != 0)
		return -errno;
	l->r = fd[0];
	l->w = fd[1];
	if (fstat(l->w, &st) != 0) {
		int rc = -errno;
		fb_listen_close(l);
		return rc;
	}
	snprintf(l->env, sizeof(l->env), FB_TELL_ENV "=/proc/%ld/fd/%d %llu", (long)getpid(), l->w,
		(unsigned long long)st.st_ino);
	return 0;
}

void fb_listen_close(struct fb_listen *l)
{
	if (l->r >= 0)
		close(l->r);
	if (l->w >= 0)
		close(l->w);
	l->r = l->w = -1;
}

static void one_line(const char *line, size_t n, fb_told_fn *told, void *arg)
{
	json_t *msg = json_loadb(line, n, JSON_REJECT_DUPLICATES, NULL);
	int64_t point = fb_json_int(msg, "point", 0), points = fb_json_int(msg, "points", 0);
	const json_t *result = json_object_get(msg, "result");
	if (point >= 1 && point <= points && points <= MAX_POINTS)
		told(arg, &(struct fb_told){.point = (unsigned)point,
				  .points = (unsigned)points,
				  .name = fb_json_str(msg, "name", ""),
				  .ended = json_is_object(result),
				  .result = json_object_size(result) ? result : NULL});
	json_decref(msg);
}

void fb_listen_bytes(struct fb_listen *l, const char *bytes, size_t n, fb_told_fn *told, void *arg)
{
	for (size_t i = 0; i < n; i++) {
		if (bytes[i] == '\n') {
			if (!l->skip && l->len > 0)
				one_line(l->line, l->len, told, arg);
			l->len = 0;
			l->skip = false;
		} else if (l->len == FB_TELL_MAX) {
			l->skip = true;
		} else {
			l->line[l->len++] = bytes[i];
		}
	}
}

void fb_listen_read(struct fb_listen *l, fb_told_fn *told, void *arg)
{
	char bytes[4096];
	for (int i = 0; i < MAX_READS && l->r >= 0; i++) {
		ssize_t n = read(l->r, bytes, sizeof(bytes));
		if (n <= 0)
			return;
		fb_listen_bytes(l, bytes, (size_t)n, told, arg);
	}
}
