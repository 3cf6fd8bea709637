/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A background flow: one queue pair kept busy by a thread of its own, at a given rate or as fast as
 * it goes, for as long as it is told to. It counts what the peer has acknowledged; whoever owns it
 * reads the count at the edges of a window.
 *
 * The thread sleeps where the device is software and spins where it is a NIC; it never branches on
 * options. It knows neither sessions nor results.
 */
#ifndef VERBS_FLOW_H
#define VERBS_FLOW_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "verbs/conn.h"
#include "verbs/loops.h"
#include "verbs/schedule.h"

struct verbs_flow {
	/* what it works on; set by verbs_flow_init() */
	struct ibv_qp *qp;
	struct verbs_cq tx, rx;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_recv_wr rwr;
	struct ibv_sge rsge;
	struct ibv_send_wr credit_wr;
	struct ibv_sge credit_sge;
	volatile uint64_t *credit_in; /**< receives the peer has consumed, written by it */
	uint64_t *credit_out;
	unsigned depth, rx_depth;
	bool issues, consumes, credits;
	bool sleeps;    /**< the device is software: the CPU is the NIC's */
	double gap_ns;  /**< between two messages; 0: as fast as it goes */
	int place_node; /**< NUMA node of the thread; -1: anywhere */
	const char *what;
	/* of the session: credits outlive a stop */
	uint64_t sent, consumed, credited;
	unsigned in_flight, credits_in_flight;
	struct verbs_schedule pace;
	/* between the thread and its owner */
	pthread_t thread;
	bool running;
	atomic_int quit;      /**< stop posting, let all complete, end */
	atomic_int *stop;     /**< give up at once; set by the thread too when it fails */
	atomic_ullong done;   /**< messages acknowledged since the start of the session */
	atomic_ullong taken;  /**< receives consumed */
	atomic_ullong let_go; /**< ns of schedule that could not be kept */
	uint64_t deadline;
	struct fb_err err;
};

/**
 * Ready a flow over the first queue pair of a connected rail.
 * @param p the background's own parameters (verbs_load_bg_params)
 * @param stop shared with whoever else is to end when this fails
 */
void verbs_flow_init(struct verbs_flow *f, struct verbs_rail *r, const struct verbs_params *p,
	bool client, atomic_int *stop, const char *what);
/** Start the thread; it gives up at `deadline`. @return 0 or -EAGAIN (exit 3) */
int verbs_flow_start(struct verbs_flow *f, uint64_t deadline, struct fb_err *e) FB_MUST_CHECK;
/** Let it complete what is under way and end; safe when it does not run. @return 0 or the thread's
 * cause */
int verbs_flow_end(struct verbs_flow *f, struct fb_err *e) FB_MUST_CHECK;
/** Give up without waiting for completions. */
void verbs_flow_kill(struct verbs_flow *f);
/** The thread's own body, for tests: runs until f->quit. @return 0 or -errno, f->err filled */
int verbs_flow_run(struct verbs_flow *f);

/** Messages completed so far; any thread may ask. */
static inline uint64_t verbs_flow_done(struct verbs_flow *f)
{
	return atomic_load_explicit(&f->done, memory_order_relaxed);
}

#endif
