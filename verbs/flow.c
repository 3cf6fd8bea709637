// SPDX-License-Identifier: Apache-2.0
/*
 * The background flow's loop and thread. Sends use the credits of loops_bw.c: the consumer writes
 * how many receives it has taken, and the sender never has more outstanding than are posted.
 */
#include "verbs/flow.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "bench/core/clock.h"
#include "verbs/place.h"
#include "verbs/wc.h"

#define POLL_MANY 16
/* Longest nap of a thread on a software device: also how late it may notice that it is to end. */
#define NAP_NS 1000000u
/* No use in sleeping for less: the kernel's own slack is 50 us. */
#define NAP_MIN_NS 60000u

void verbs_flow_init(struct verbs_flow *f, struct verbs_rail *r, const struct verbs_params *p,
	bool client, atomic_int *stop, const char *what)
{
	enum verbs_op op = p->load.bg_op;
	bool fetch = verbs_ops[op].fetches;
	uintptr_t base = (uintptr_t)r->buf;

	memset(f, 0, sizeof *f);
	f->qp = r->qp[0];
	f->tx = (struct verbs_cq){.cq = r->tx_cq, .ch = r->tx_ch};
	f->rx = (struct verbs_cq){.cq = r->rx_cq, .ch = r->rx_ch};
	f->sge = (struct ibv_sge){
		.addr = base + (fetch ? verbs_recv_off(r, 0) : verbs_send_off(r, 0)),
		.length = (uint32_t)p->load.bg_size,
		.lkey = r->mr->lkey};
	/* Each message is signalled: a flow may be told to end after any of them. */
	f->wr = (struct ibv_send_wr){.sg_list = &f->sge,
		.num_sge = 1,
		.opcode = verbs_ops[op].opcode,
		.send_flags = IBV_SEND_SIGNALED};
	f->wr.wr.rdma.rkey = r->remote.rkey;
	f->wr.wr.rdma.remote_addr =
		r->remote.addr + (fetch ? verbs_send_off(r, 0) : verbs_recv_off(r, 0));
	f->rsge = (struct ibv_sge){.addr = base + verbs_recv_off(r, 0),
		.length = (uint32_t)r->span,
		.lkey = r->mr->lkey};
	f->rwr = (struct ibv_recv_wr){.sg_list = &f->rsge, .num_sge = 1};
	f->credit_in = (volatile uint64_t *)(void *)(r->buf + verbs_credit_off(r, 0));
	f->credit_out = (uint64_t *)(void *)(r->buf + verbs_credit_src_off(r, 0));
	f->credit_sge = (struct ibv_sge){
		.addr = (uintptr_t)f->credit_out, .length = sizeof(uint64_t), .lkey = r->mr->lkey};
	f->credit_wr = (struct ibv_send_wr){.wr_id = VERBS_WR_CREDIT,
		.sg_list = &f->credit_sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED};
	f->credit_wr.wr.rdma.rkey = r->remote.rkey;
	f->credit_wr.wr.rdma.remote_addr = r->remote.credit_addr;
	f->depth = (unsigned)p->depth;
	f->rx_depth = (unsigned)p->rx_depth;
	f->issues = verbs_load_issues(&p->load, client);
	f->consumes = verbs_load_consumes(&p->load, client);
	f->credits = verbs_ops[op].takes_receive;
	f->sleeps = r->dev->software;
	f->gap_ns = p->load.bg_rate ? (double)p->load.bg_size / (double)p->load.bg_rate * 1e9 : 0;
	f->place_node = verbs_place_node(p->numa, r->dev->numa_node);
	f->stop = stop;
	f->what = what;
}

static __attribute__((noinline, cold)) int post_failed(struct verbs_flow *f, int err)
{
	return fb_fail(
		&f->err, FB_EXIT_UNMEASURED, err, "posting a %s: %s", f->what, strerror(err));
}

/* How many may be posted now, by the window, by credits. */
static unsigned room(const struct verbs_flow *f)
{
	unsigned n = f->depth - f->in_flight;

	if (f->credits) {
		uint64_t granted = *f->credit_in + f->rx_depth - f->sent;
		if (granted < n)
			n = (unsigned)granted;
	}
	return n;
}

/* Post what is due. @return messages posted, or -errno */
static int fill(struct verbs_flow *f)
{
	unsigned n = room(f);
	int posted = 0;

	while (n-- > 0) {
		struct ibv_send_wr *bad;
		int err;
		if (f->gap_ns > 0) {
			if (fb_clock_ns() < verbs_schedule_due(&f->pace))
				break;
			verbs_schedule_pass(&f->pace);
		}
		err = ibv_post_send(f->qp, &f->wr, &bad);
		if (err)
			return post_failed(f, err);
		f->in_flight++;
		f->sent++;
		posted++;
	}
	return posted;
}

static int drain_tx(struct verbs_flow *f)
{
	struct ibv_wc wc[POLL_MANY];
	int n = ibv_poll_cq(f->tx.cq, POLL_MANY, wc), done = 0;

	if (n < 0)
		return post_failed(f, EIO);
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			return verbs_wc_fail(&f->err, &wc[i], f->what);
		if (wc[i].wr_id & VERBS_WR_CREDIT) {
			f->credits_in_flight--;
		} else {
			f->in_flight--;
			done++;
		}
	}
	if (done)
		atomic_fetch_add_explicit(&f->done, (unsigned long long)done, memory_order_relaxed);
	return n;
}

static int give_credit(struct verbs_flow *f)
{
	struct ibv_send_wr *bad;
	int err;

	if (f->consumed - f->credited < (f->rx_depth / 4 ? f->rx_depth / 4 : 1) ||
		f->credits_in_flight >= VERBS_CREDIT_SLOTS)
		return 0;
	*f->credit_out = f->consumed;
	f->credited = f->consumed;
	f->credits_in_flight++;
	err = ibv_post_send(f->qp, &f->credit_wr, &bad);
	return err ? post_failed(f, err) : 0;
}

static int drain_rx(struct verbs_flow *f)
{
	struct ibv_wc wc[POLL_MANY];
	int n = ibv_poll_cq(f->rx.cq, POLL_MANY, wc), rc;

	if (n < 0)
		return post_failed(f, EIO);
	for (int i = 0; i < n; i++) {
		struct ibv_recv_wr *bad;
		if (wc[i].status != IBV_WC_SUCCESS)
			return verbs_wc_fail(&f->err, &wc[i], f->what);
		rc = ibv_post_recv(f->qp, &f->rwr, &bad);
		if (rc)
			return post_failed(f, rc);
		f->consumed++;
	}
	if (n)
		atomic_fetch_add_explicit(&f->taken, (unsigned long long)n, memory_order_relaxed);
	rc = give_credit(f);
	return rc ? rc : n;
}

static int nap(struct verbs_flow *f, struct verbs_wait *w, uint64_t ns)
{
	struct timespec t = {0, (long)(ns < NAP_NS ? ns : NAP_NS)};

	(void)f;
	nanosleep(&t, NULL);
	return verbs_wait_check(w);
}

/* Nothing moved: on a NIC spin; on a software device leave the CPU to it until the next completion,
 * the next receive, or the next message that is due. */
static int rest(struct verbs_flow *f, struct verbs_wait *w, unsigned *spins, uint64_t *since)
{
	uint64_t now, due;

	if (!f->sleeps)
		return ++*spins % VERBS_SPINS == 0 ? verbs_wait_slow(w, since) : 0;
	if (f->issues && f->gap_ns > 0 && room(f) > 0) {
		now = fb_clock_ns();
		due = verbs_schedule_due(&f->pace);
		return due > now + NAP_MIN_NS ? nap(f, w, due - now) : verbs_wait_check(w);
	}
	/* Credits arrive without an event, and two queues cannot be slept on at once. */
	if (f->issues && f->consumes)
		return nap(f, w, NAP_MIN_NS);
	if (f->consumes && f->rx.ch)
		return verbs_cq_sleep(&f->rx, w);
	if (f->issues && f->in_flight && f->tx.ch)
		return verbs_cq_sleep(&f->tx, w);
	return nap(f, w, NAP_MIN_NS);
}

static int turn(struct verbs_flow *f, bool post, int *moved)
{
	int n = post && f->issues ? fill(f) : 0;

	*moved = 0;
	if (n < 0)
		return n;
	*moved += n;
	n = drain_tx(f);
	if (n < 0)
		return n;
	*moved += n;
	n = f->consumes ? drain_rx(f) : 0;
	if (n < 0)
		return n;
	*moved += n;
	return 0;
}

int verbs_flow_run(struct verbs_flow *f)
{
	struct verbs_wait w = {NULL, f->stop, f->deadline, &f->err};
	/* A flow that was held up may make good for what its window holds, not more. */
	uint64_t most = (uint64_t)(f->gap_ns * f->depth), since = 0;
	unsigned spins = 0;
	int rc = 0, moved;

	verbs_schedule_init(&f->pace, fb_clock_ns(), f->gap_ns);
	while (rc == 0) {
		bool ending = atomic_load_explicit(&f->quit, memory_order_relaxed);
		if (ending && !f->in_flight && !f->credits_in_flight)
			break;
		rc = turn(f, !ending, &moved);
		if (rc == 0 && moved)
			since = 0;
		else if (rc == 0)
			rc = rest(f, &w, &spins, &since);
		if (f->gap_ns > 0 && f->issues) {
			uint64_t gone = verbs_schedule_forgive(&f->pace, fb_clock_ns(), most);
			if (gone)
				atomic_fetch_add_explicit(&f->let_go, gone, memory_order_relaxed);
		}
	}
	verbs_cq_ack(&f->tx);
	verbs_cq_ack(&f->rx);
	if (rc)
		atomic_store(f->stop, 1);
	return rc;
}

static void *thread_main(void *arg)
{
	struct verbs_flow *f = arg;
	struct verbs_placed placed;

	verbs_place_thread(f->place_node, &placed);
	(void)verbs_flow_run(f);
	return NULL;
}

int verbs_flow_start(struct verbs_flow *f, uint64_t deadline, struct fb_err *e)
{
	int err;

	if (!f->issues && !f->consumes)
		return 0; /* the peer's NIC does it all */
	f->deadline = deadline;
	fb_err_clear(&f->err);
	atomic_store(&f->quit, 0);
	err = pthread_create(&f->thread, NULL, thread_main, f);
	if (err)
		return fb_fail(e, FB_EXIT_UNMEASURED, err,
			"cannot start the thread of the background flow: %s", strerror(err));
	f->running = true;
	return 0;
}

int verbs_flow_end(struct verbs_flow *f, struct fb_err *e)
{
	if (!f->running)
		return 0;
	atomic_store(&f->quit, 1);
	pthread_join(f->thread, NULL); /* it looks at its deadline at least every 20 ms */
	f->running = false;
	if (f->err.code && e->code == 0)
		*e = f->err;
	return f->err.code;
}

void verbs_flow_kill(struct verbs_flow *f)
{
	struct fb_err ignored = {0};

	if (!f->running)
		return;
	atomic_store(f->stop, 1);
	(void)!verbs_flow_end(f, &ignored);
}
