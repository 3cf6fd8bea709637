// SPDX-License-Identifier: Apache-2.0
/*
 * The watching thread. It is the one place that ends the process: the main thread is inside the MPI
 * library then, and nothing else can.
 */
#include "bench/plugins/mpi/watchdog.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/core/err.h"

static void bark(const struct watchdog *w)
{
	const char *rank = getenv("OMPI_COMM_WORLD_RANK");
	char host[65] = "?", line[768];
	if (!rank)
		rank = getenv("PMI_RANK");
	(void)gethostname(host, sizeof(host) - 1);
	int n = snprintf(line, sizeof(line),
		"fabricbench: rank %s on %s: %s did not end within %.0f s\n  remedy: %s\n",
		rank ? rank : "?", host, w->what, (double)w->ns / 1e9, w->remedy);
	if (n > 0)
		(void)!write(STDERR_FILENO, line, strlen(line));
	_exit(FB_EXIT_UNMEASURED);
}

static void *watch(void *p)
{
	struct watchdog *w = p;
	struct timespec end;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += (time_t)(w->ns / 1000000000u);
	end.tv_nsec += (long)(w->ns % 1000000000u);
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	pthread_mutex_lock(&w->lock);
	int rc = 0;
	while (!w->done && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&w->cond, &w->lock, &end);
	const bool late = !w->done;
	pthread_mutex_unlock(&w->lock);
	if (late)
		bark(w);
	return NULL;
}

int watchdog_begin(struct watchdog *w, uint64_t ns, const char *what, const char *remedy)
{
	memset(w, 0, sizeof(*w));
	w->ns = ns;
	w->what = what;
	w->remedy = remedy;
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->cond, &attr);
	pthread_condattr_destroy(&attr);
	/* Signals are the program's: this thread takes none. */
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int rc = pthread_create(&w->thread, NULL, watch, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	w->started = rc == 0;
	return rc;
}

void watchdog_end(struct watchdog *w)
{
	if (w->started) {
		pthread_mutex_lock(&w->lock);
		w->done = true;
		pthread_cond_signal(&w->cond);
		pthread_mutex_unlock(&w->lock);
		pthread_join(w->thread, NULL);
	}
	pthread_cond_destroy(&w->cond);
	pthread_mutex_destroy(&w->lock);
}
