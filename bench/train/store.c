// SPDX-License-Identifier: Apache-2.0
/*
 * A thread that reads and writes one file. The rank hands it one transfer at a time; both meet at a
 * mutex, twice per transfer.
 */
#include "bench/train/store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/units.h"

enum state { IDLE, BEGUN, DONE, ENDING };

struct store {
	int fd;
	char dir[256];
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake; /* to the thread: a transfer, or the end */
	enum state state;
	bool write;
	void *buf;
	size_t bytes, offset;
	uint64_t delay_ns;
	double slow;
	int error; /* errno of the last transfer */
};

static int transfer(const struct store *s)
{
	char *p = s->buf;
	uint64_t began = fb_clock_ns();
	for (size_t done = 0; done < s->bytes;) {
		size_t left = s->bytes - done;
		off_t at = (off_t)(s->offset + done);
		ssize_t n = s->write ? pwrite(s->fd, p + done, left, at)
				     : pread(s->fd, p + done, left, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? errno : EIO;
		done += (size_t)n;
	}
	uint64_t ns = s->delay_ns + (uint64_t)(s->slow * (double)(fb_clock_ns() - began));
	struct timespec more = {
		.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
	if (s->delay_ns > 0 || s->slow > 0)
		nanosleep(&more, NULL);
	return 0;
}

static void *work(void *arg)
{
	struct store *s = arg;
	pthread_mutex_lock(&s->lock);
	for (;;) {
		while (s->state != BEGUN && s->state != ENDING)
			pthread_cond_wait(&s->wake, &s->lock);
		if (s->state == ENDING)
			break;
		pthread_mutex_unlock(&s->lock);
		int error = transfer(s);
		pthread_mutex_lock(&s->lock);
		s->error = error;
		if (s->state == BEGUN)
			s->state = DONE;
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static int make_file(struct store *s, size_t bytes, struct fb_err *e)
{
	char path[300], size[32];
	snprintf(path, sizeof(path), "%s/fabricbench-XXXXXX", s->dir);
	s->fd = mkostemp(path, O_CLOEXEC);
	if (s->fd < 0) {
		int rc = fb_fail(e, FB_EXIT_UNMEASURED, errno,
			"cannot make a file for the optimizer's state in %s: %s", s->dir,
			strerror(errno));
		fb_hint(e, "give a folder that exists and may be written: --offload-to DIR");
		return rc;
	}
	unlink(path);
	int code = bytes ? posix_fallocate(s->fd, 0, (off_t)bytes) : 0;
	if (code == 0)
		return 0;
	int rc = fb_fail(e, FB_EXIT_UNMEASURED, code, "no room for %s of optimizer state in %s: %s",
		fb_fmt_size(bytes, size, sizeof(size)), s->dir, strerror(code));
	fb_hint(e,
		"free space there, give another folder with --offload-to DIR, or use host memory: "
		"--offload-to host");
	return rc;
}

int store_open(const char *dir, size_t bytes, struct store **out, struct fb_err *e)
{
	struct store *s = calloc(1, sizeof(*s));
	if (!s)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the offloaded state");
	snprintf(s->dir, sizeof(s->dir), "%s", dir);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->wake, NULL);
	int rc = make_file(s, bytes, e);
	if (rc != 0)
		goto close_file;
	int code = pthread_create(&s->thread, NULL, work, s);
	if (code != 0) {
		rc = fb_fail(e, FB_EXIT_UNMEASURED, code, "cannot start the thread of %s: %s", dir,
			strerror(code));
		goto close_file;
	}
	*out = s;
	return 0;
close_file:
	if (s->fd >= 0)
		close(s->fd);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return rc;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->state = ENDING;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	close(s->fd);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

void store_slow(struct store *s, uint64_t delay_ns, double slow)
{
	pthread_mutex_lock(&s->lock);
	s->delay_ns = delay_ns;
	s->slow = slow;
	pthread_mutex_unlock(&s->lock);
}

void store_start(struct store *s, bool write, void *buf, size_t bytes, size_t offset)
{
	pthread_mutex_lock(&s->lock);
	s->write = write;
	s->buf = buf;
	s->bytes = bytes;
	s->offset = offset;
	s->state = BEGUN;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
}

int store_test(struct store *s, bool *done, struct fb_err *e)
{
	pthread_mutex_lock(&s->lock);
	*done = s->state != BEGUN;
	int error = *done ? s->error : 0;
	pthread_mutex_unlock(&s->lock);
	if (error == 0)
		return 0;
	return fb_fail(e, FB_EXIT_UNMEASURED, error, "%s of optimizer state %s %s failed: %s",
		s->write ? "writing" : "reading", s->write ? "to" : "from", s->dir,
		strerror(error));
}
