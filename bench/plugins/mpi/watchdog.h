/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A deadline for the two MPI calls that cannot be tested for completion: MPI_Init_thread and
 * MPI_Finalize. When it passes, the process says why and ends with status 3: a thread inside MPI
 * cannot be called back.
 */
#ifndef PLUGINS_MPI_WATCHDOG_H
#define PLUGINS_MPI_WATCHDOG_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct watchdog {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool done, started;
	uint64_t ns;
	const char *what, *remedy;
};

/** Begin to watch over `what` for ns. Without a thread for it the call goes unwatched, and the
 * caller is told: @return 0 or an errno, positive */
int watchdog_begin(struct watchdog *w, uint64_t ns, const char *what, const char *remedy);
void watchdog_end(struct watchdog *w);

#endif
