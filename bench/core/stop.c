// SPDX-License-Identifier: Apache-2.0
/*
 * The watching thread. Signals are blocked everywhere and read from a signalfd, so this is ordinary
 * code that may allocate and lock. Its state is global because signals belong to the process.
 */
#include "bench/core/stop.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/result.h"

#define DEFAULT_GRACE_NS 400000000u

/* Set by the watching thread; read anywhere, also between the iterations of a measurement. */
static _Atomic int stop_reason;
static _Atomic int stop_signal;

static struct {
	pthread_mutex_t lock; /* guards all below */
	bool watching, end;
	pthread_t thread;
	sigset_t before; /* the mask that fb_stop_unwatch() restores */
	int sigfd, wakefd;
	uint64_t deadline, grace;
	void (*last_words)(void *arg);
	void *arg;
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER, .sigfd = -1, .wakefd = -1};

bool fb_stop_requested(void)
{
	return atomic_load_explicit(&stop_reason, memory_order_relaxed) != FB_STOP_NONE;
}

enum fb_stop fb_stop_reason(int *sig)
{
	if (sig)
		*sig = stop_signal;
	return (enum fb_stop)stop_reason;
}

const char *fb_stop_signal_name(int sig)
{
	return sig == SIGINT ? "SIGINT" : sig == SIGHUP ? "SIGHUP" : "SIGTERM";
}

static void wake(void)
{
	uint64_t one = 1;
	/* The counter of an eventfd of ours cannot be full: the write cannot fail. */
	if (watch.wakefd >= 0 && write(watch.wakefd, &one, sizeof(one)) < 0)
		return;
}

/* The one exit outside main(): whatever this process is doing, it has not looked at the request
 * for the whole grace (a driver call that hangs, a dead file system), so returning to main() is no
 * longer possible and a hang would be the alternative. */
static void end_process(void)
{
	if (watch.last_words)
		watch.last_words(watch.arg);
	_exit(FB_EXIT_UNMEASURED);
}

static void request_stop(enum fb_stop why, int sig)
{
	int none = FB_STOP_NONE;
	if (stop_reason == FB_STOP_NONE)
		stop_signal = sig;
	atomic_compare_exchange_strong(&stop_reason, &none, (int)why);
}

static void drain(int fd)
{
	uint64_t count;
	while (read(fd, &count, sizeof(count)) > 0)
		;
}

static void take_signals(void)
{
	struct signalfd_siginfo si;
	while (read(watch.sigfd, &si, sizeof(si)) == (ssize_t)sizeof(si))
		request_stop(FB_STOP_SIGNAL, (int)si.ssi_signo);
}

static void *watch_main(void *arg)
{
	(void)arg;
	uint64_t due = 0; /* when the grace ends; 0 until a stop is requested */
	for (;;) {
		pthread_mutex_lock(&watch.lock);
		bool end = watch.end;
		uint64_t deadline = watch.deadline, now = fb_clock_ns();
		if (!end && deadline != 0 && now >= deadline)
			request_stop(FB_STOP_DEADLINE, 0);
		if (!end && due == 0 && stop_reason != FB_STOP_NONE)
			due = now + watch.grace;
		if (!end && due != 0 && now >= due)
			end_process();
		pthread_mutex_unlock(&watch.lock);
		if (end)
			return NULL;
		uint64_t next = due ? due : deadline;
		struct pollfd fds[2] = {{.fd = watch.sigfd, .events = POLLIN},
			{.fd = watch.wakefd, .events = POLLIN}};
		poll(fds, 2, next ? fb_deadline_poll_ms(next) : -1);
		if (fds[1].revents)
			drain(watch.wakefd);
		if (fds[0].revents)
			take_signals();
	}
}

static void close_fds(void)
{
	if (watch.sigfd >= 0)
		close(watch.sigfd);
	if (watch.wakefd >= 0)
		close(watch.wakefd);
	watch.sigfd = watch.wakefd = -1;
}

/* With the lock held. */
static int start_watching(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	int rc = -pthread_sigmask(SIG_BLOCK, &set, &watch.before);
	if (rc < 0)
		return rc;
	/* A reader that goes away is a failed write with a cause, not a silent death. */
	signal(SIGPIPE, SIG_IGN);
	watch.sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	watch.wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (watch.sigfd < 0 || watch.wakefd < 0) {
		rc = -errno;
		goto restore_mask;
	}
	stop_reason = FB_STOP_NONE;
	stop_signal = 0;
	watch.end = false;
	watch.deadline = 0;
	watch.grace = DEFAULT_GRACE_NS;
	rc = -pthread_create(&watch.thread, NULL, watch_main, NULL);
	if (rc < 0)
		goto restore_mask;
	watch.watching = true;
	return 0;

restore_mask:
	close_fds();
	pthread_sigmask(SIG_SETMASK, &watch.before, NULL);
	return rc;
}

int fb_stop_watch(struct fb_err *e)
{
	pthread_mutex_lock(&watch.lock);
	int rc = watch.watching ? 0 : start_watching();
	pthread_mutex_unlock(&watch.lock);
	if (rc < 0)
		return fb_fail(
			e, FB_EXIT_UNMEASURED, rc, "cannot watch for signals: %s", strerror(-rc));
	return 0;
}

void fb_stop_unwatch(void)
{
	pthread_mutex_lock(&watch.lock);
	bool was = watch.watching;
	watch.end = true;
	watch.watching = false;
	watch.last_words = NULL;
	wake();
	pthread_mutex_unlock(&watch.lock);
	if (!was)
		return;
	pthread_join(watch.thread, NULL);
	close_fds();
	pthread_sigmask(SIG_SETMASK, &watch.before, NULL);
}

void fb_stop_set_deadline(uint64_t deadline_ns)
{
	pthread_mutex_lock(&watch.lock);
	watch.deadline = deadline_ns;
	wake();
	pthread_mutex_unlock(&watch.lock);
}

void fb_stop_set_grace(uint64_t ns)
{
	pthread_mutex_lock(&watch.lock);
	watch.grace = ns;
	pthread_mutex_unlock(&watch.lock);
}

void fb_stop_set_last_words(void (*fn)(void *arg), void *arg)
{
	pthread_mutex_lock(&watch.lock);
	watch.last_words = fn;
	watch.arg = arg;
	pthread_mutex_unlock(&watch.lock);
}
