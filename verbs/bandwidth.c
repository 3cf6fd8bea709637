// SPDX-License-Identifier: Apache-2.0
/*
 * verbs.bandwidth: as many messages as --depth in flight on each of --qps queue pairs, in one
 * direction or in both. The loops are in loops_bw.c.
 *
 * The send credits of a queue pair count through the whole session, for every point and batch.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/oob/oob.h"
#include "verbs/benches.h"
#include "verbs/load.h"
#include "verbs/series.h"
#include "verbs/state.h"
#include "verbs/xrc.h"

struct bw_rail {
	struct verbs_bw b;
	struct ibv_send_wr *chains; /**< post_list for each slot of each QP */
	struct ibv_sge *sges;       /**< one for each slot of each QP */
	uint64_t elapsed;
	struct verbs_series series; /**< of what was acknowledged or arrived here */
	unsigned next;              /**< queue pair whose messages are looked at next */
};
/** Lossy: so many messages in a row of which none came are a dead path. */
#define MAX_UNHEARD 16

struct bw_own {
	struct bw_rail rail[VERBS_MAX_RAILS];
	verbs_bw_loop loop;
	uint64_t iters;
	uint64_t *done;   /**< atomics of the point so far, for each QP; [0]: of all, for adds */
	uint64_t unheard; /**< lossy: messages since the last that came */
	uint64_t sent,
		taken; /**< lossy: messages of the point that went to the receiver, and came */
	struct verbs_series series; /**< of the point: rails, and both directions, added up */
	struct fb_err wrong;        /**< the first message that was not what had been sent */
};

static void set_credit(struct verbs_rail *r, struct verbs_bw_qp *bq, unsigned q)
{
	bq->credit_in = verbs_credit_in(r, q);
	bq->credit_out = verbs_credit_out(r, q);
	bq->credit_sge = (struct ibv_sge){.addr = (uintptr_t)bq->credit_out,
		.length = sizeof(uint64_t),
		.lkey = r->ctl_mr->lkey};
	bq->credit_wr = (struct ibv_send_wr){.wr_id = VERBS_WR_CREDIT | (uint64_t)q << 32,
		.sg_list = &bq->credit_sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED};
	bq->credit_wr.wr.rdma.rkey = r->remote.credit_rkey;
	if (r->xrc)
		bq->credit_wr.qp_type.xrc.remote_srqn = r->xrc->remote_srqn[q];
	bq->credit_wr.wr.rdma.remote_addr = r->remote.credit_addr + q * sizeof(uint64_t);
}

static int open_rail(struct verbs_state *s, struct bw_rail *br, unsigned i, struct fb_err *e)
{
	const struct verbs_params *p = &s->job->p;
	struct verbs_rail *r = &s->rail[i];
	struct verbs_bw *b = &br->b;

	b->qp = calloc(r->nqp, sizeof *b->qp);
	br->chains = calloc((size_t)r->nqp * (size_t)p->post_list * r->slots, sizeof *br->chains);
	br->sges = calloc((size_t)r->nqp * r->slots, sizeof *br->sges);
	if (!b->qp || !br->chains || !br->sges)
		return fb_fail(
			e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %u queue pairs", r->nqp);
	b->nqp = r->nqp;
	b->depth = (unsigned)p->depth;
	b->rx_depth = (unsigned)p->rx_depth;
	b->post_list = (unsigned)p->post_list;
	b->cq_mod = (unsigned)p->cq_mod;
	b->slots = r->slots;
	b->span = r->span;
	b->tx = (struct verbs_cq){.cq = r->tx_cq, .ch = r->tx_ch};
	b->rx = (struct verbs_cq){.cq = r->rx_cq, .ch = r->rx_ch};
	b->what = s->what;
	for (unsigned q = 0; q < r->nqp; q++) {
		struct verbs_bw_qp *bq = &b->qp[q];
		bq->qp = r->qp[q];
		bq->srq = r->xrc ? r->xrc->srq[q] : NULL;
		bq->chain = br->chains + (size_t)q * b->post_list * r->slots;
		/* rx_depth receives are posted already, from the first slot on. */
		bq->rx_base = (uintptr_t)r->buf + verbs_recv_off(r, q);
		bq->rx_slot = b->rx_depth % r->slots;
		bq->rsge = (struct ibv_sge){.addr = bq->rx_base + bq->rx_slot * r->span,
			.length = (uint32_t)r->span,
			.lkey = r->mr->lkey};
		bq->rwr = (struct ibv_recv_wr){.wr_id = q, .sg_list = &bq->rsge, .num_sge = 1};
		set_credit(r, bq, q);
	}
	return 0;
}

/* A slot for each of the messages that follow each other: entry k of the chain that is slot c's
 * turn goes to slot c + k. */
static void set_chains(
	struct verbs_rail *r, struct bw_rail *br, unsigned q, enum verbs_op op, uint64_t size)
{
	struct ibv_send_wr *wr = br->b.qp[q].chain;
	struct ibv_sge *sge = br->sges + (size_t)q * r->slots;

	for (unsigned c = 0; c < r->slots; c++) {
		for (unsigned k = 0; k < br->b.post_list; k++, wr++) {
			unsigned slot = (c + k) % r->slots;
			verbs_request(r, q, op, wr, &sge[slot], size);
			verbs_request_slot(r, op, slot, wr, &sge[slot]);
		}
	}
}

static void set_requests(
	struct verbs_state *s, struct bw_rail *br, unsigned i, enum verbs_op op, uint64_t size)
{
	struct verbs_rail *r = &s->rail[i];

	br->b.wrong = 0;
	br->b.meter.size = size;
	verbs_series_reset(&br->series, s->job->p.window_ns);
	br->b.imm_mask = verbs_ops[op].immediate ? UINT32_MAX : 0;
	br->b.flags = verbs_ops[op].inlines && size <= r->inline_cap ? IBV_SEND_INLINE : 0;
	for (unsigned q = 0; q < r->nqp; q++) {
		struct verbs_bw_qp *bq = &br->b.qp[q];
		bq->imm = verbs_imm(q);
		bq->next_swap = 0;
		bq->consumed_before = bq->consumed;
		set_chains(r, br, q, op, size);
	}
}

/* Nothing is acknowledged, but messages complete at the receiver, which counts them. */
static bool counted(const struct verbs_state *s, enum verbs_op op)
{
	return !verbs_transports[s->job->p.transport].acked && verbs_ops[op].takes_receive;
}

static verbs_bw_loop choose(const struct verbs_state *s, enum verbs_op op)
{
	const struct verbs_params *p = &s->job->p;
	bool tx = s->rank == 0 || p->bidirectional, rx = s->rank != 0 || p->bidirectional;
	bool receives = verbs_ops[op].takes_receive;
	bool shared = receives && verbs_transports[p->transport].shared;

	if (shared)
		return tx && p->rate ? verbs_bw_choose_shared_paced(rx)
				     : verbs_bw_choose_shared(p->events, tx, rx);
	if (tx && p->rate && counted(s, op))
		return verbs_bw_choose_lossy_paced(rx);
	if (tx && p->rate)
		return verbs_bw_choose_paced(receives, op == VERBS_CMP_SWAP, rx && receives);
	if (counted(s, op))
		return verbs_bw_choose_lossy(p->events, tx, rx);
	if (op == VERBS_CMP_SWAP)
		return tx ? verbs_bw_choose_swap(p->events) : NULL;
	return verbs_bw_choose(receives, p->events, tx, rx && receives);
}

static int prepare(void *st, const struct fb_point *p, struct fb_err *e)
{
	struct verbs_state *s = st;
	struct bw_own *own = s->own;
	enum verbs_op op = verbs_point_op(p);
	unsigned first, count = verbs_point_rails(s, p, &first);

	(void)e;
	verbs_state_prepare(s, p);
	own->loop = choose(s, op);
	own->sent = own->taken = own->unheard = 0;
	memset(&own->wrong, 0, sizeof own->wrong);
	memset(own->done, 0, s->rail[0].nqp * sizeof *own->done);
	for (unsigned i = first; i < first + count; i++) {
		set_requests(s, &own->rail[i], i, op, p->size);
		/* The rails share the rate. */
		if (s->job->p.rate)
			own->rail[i].b.meter.gap_ns =
				(double)p->size * count / (double)s->job->p.rate * 1e9;
	}
	return 0;
}

static int run_rail(struct verbs_state *s, unsigned rail, struct verbs_wait *w, void *arg)
{
	struct bw_own *own = arg;
	struct bw_rail *br = &own->rail[rail];
	int rc;

	br->b.meter.series = fb_run_counting(s->run) ? &br->series : NULL;
	br->b.wait = *w;
	rc = own->loop(&br->b, own->iters, &br->elapsed);
	verbs_cq_ack(&br->b.tx);
	verbs_cq_ack(&br->b.rx);
	return rc;
}

/* As many at a time go to a queue pair: see verbs_dealt(). */
static unsigned chunk_of(const struct verbs_params *p)
{
	return p->rate ? (unsigned)p->post_list : 1;
}

/* The loops share a batch out over the QPs; adds of all QPs meet in one word. */
static void note_atomics(struct verbs_state *s, enum verbs_op op, uint64_t iters)
{
	struct bw_own *own = s->own;
	unsigned nqp = s->rail[0].nqp;

	for (unsigned q = 0; q < nqp; q++)
		own->done[op == VERBS_FETCH_ADD ? 0 : q] +=
			verbs_dealt(iters, nqp, chunk_of(&s->job->p), q);
}

/* What the receiver says of a batch. */
struct tally {
	int64_t rc;
	uint64_t taken, ns;
};

/**
 * Goodput is what the receiver has counted, over the longer of both ends' times. Both ends come
 * here, whatever their loops returned, so that nobody waits in vain. In both directions each end
 * counts for itself.
 */
static int settle(struct verbs_state *s, const struct fb_point *p, int rc, struct fb_sink *sink,
	struct fb_err *e)
{
	struct bw_own *own = s->own;
	unsigned first, count = verbs_point_rails(s, p, &first);
	bool both = s->job->p.bidirectional;
	struct tally mine = {.rc = rc}, all[2];
	struct fb_err lost = {0};
	int err;

	for (unsigned i = first; i < first + count; i++) {
		mine.taken += own->rail[i].b.taken;
		if (own->rail[i].b.taken_ns > mine.ns)
			mine.ns = own->rail[i].b.taken_ns;
	}
	err = fb_oob_allgather(
		fb_run_oob(s->run), &mine, sizeof mine, all, fb_run_deadline(s->run), &lost);
	/* The sender has ended: what still comes belongs to this batch. */
	for (unsigned i = first; rc == 0 && err == 0 && i < first + count; i++)
		rc = verbs_bw_drain(&own->rail[i].b) < 0 ? -EIO : 0;
	if (rc || err) {
		if (!e->code)
			*e = err ? lost : *e;
		return rc ? rc : err;
	}
	if (all[s->rank ^ 1].rc)
		return 0; /* run control brings the peer's cause */
	own->sent += own->iters * count;
	own->taken += all[both ? s->rank : 1].taken;
	sink->work = (double)all[both ? s->rank : 1].taken;
	if (all[both ? s->rank : 1].ns > sink->elapsed_ns)
		sink->elapsed_ns = all[both ? s->rank : 1].ns;
	if (sink->work > 0) {
		own->unheard = 0;
		return 0;
	}
	/* A short batch may be lost whole. To run control no work at all would mean "not told". */
	own->unheard += own->iters * count;
	sink->work = 1e-9;
	if (own->unheard < MAX_UNHEARD)
		return 0;
	fb_fail(e, FB_EXIT_UNMEASURED, ETIMEDOUT, "%s: none of the last %llu messages came",
		s->what, (unsigned long long)own->unheard);
	fb_hint(e,
		"is the path's MTU as large as the ports'? ping -M do -s 4200 tells; --transport rc "
		"tells whether anything passes");
	return -ETIMEDOUT;
}

/* What completes at this end is goodput, in this end's own time; acknowledgements alone tell the
 * sender about everything else. */
static void note_arrivals(
	struct verbs_state *s, unsigned first, unsigned count, struct fb_sink *sink)
{
	struct bw_own *own = s->own;
	bool timed = true;

	for (unsigned i = first; i < first + count; i++) {
		const struct verbs_meter *m = &own->rail[i].b.meter;
		uint64_t ns = verbs_meter_received_ns(m);
		sink->received += (double)m->taken;
		timed = timed && ns > 0;
		if (ns > sink->received_ns)
			sink->received_ns = ns;
	}
	/* A limited rate is judged over its schedule, which the sender keeps. */
	if (!timed || s->job->p.rate)
		sink->received_ns = 0;
}

/* Is this end where the data of `op` ends up? The requester of reads, the target of all else. */
static bool receives_data(const struct verbs_state *s, enum verbs_op op)
{
	bool reads = verbs_ops[op].fetches && !verbs_ops[op].atomic;

	return s->job->p.bidirectional || (reads ? s->rank == 0 : s->rank != 0);
}

/* Does it know, once its loop has ended, that a batch has come? A plain write tells nobody. */
static bool looked_at_by_batch(const struct verbs_state *s, enum verbs_op op)
{
	return receives_data(s, op) && !verbs_ops[op].atomic && op != VERBS_WRITE;
}

struct batch_of {
	struct verbs_state *s;
	unsigned rail;
	enum verbs_op op;
	uint64_t iters;
};

/* The slots that the last messages of queue pair q lie in: n of them from *first on, in turn. */
static unsigned slots_of(void *arg, unsigned q, unsigned *first)
{
	struct batch_of *b = arg;
	const struct verbs_rail *r = &b->s->rail[b->rail];
	const struct verbs_bw_qp *bq = &((struct bw_own *)b->s->own)->rail[b->rail].b.qp[q];
	uint64_t came;

	*first = 0;
	if (!verbs_ops[b->op].takes_receive || b->op == VERBS_WRITE_IMM)
		return verbs_slots_written(b->s, r, q, b->iters);
	came = counted(b->s, b->op) ? bq->consumed - bq->consumed_before
				    : verbs_dealt(b->iters, r->nqp, chunk_of(&b->s->job->p), q);
	if (came > r->slots)
		came = r->slots;
	*first = (unsigned)((bq->consumed - came) % r->slots);
	return (unsigned)came;
}

/* After a batch, outside of its time: the last messages of its queue pairs, as many as there are
 * slots. What is wrong is told when the point is over. */
static void look_at_batch(struct verbs_state *s, const struct fb_point *p, uint64_t iters)
{
	struct bw_own *own = s->own;
	unsigned first, count = verbs_point_rails(s, p, &first);

	for (unsigned i = first; own->wrong.code == 0 && i < first + count; i++) {
		struct batch_of b = {s, i, verbs_point_op(p), iters};
		/* The next batch has to write everything again. Where nothing is acknowledged a
		 * late message may be writing right now. */
		(void)!verbs_state_look(s, &s->rail[i], &own->rail[i].next, p->size,
			!counted(s, b.op), slots_of, &b, &own->wrong);
	}
}

static int measure(
	void *st, const struct fb_point *p, uint64_t iters, struct fb_sink *sink, struct fb_err *e)
{
	struct verbs_state *s = st;
	struct bw_own *own = s->own;
	enum verbs_op op = verbs_point_op(p);
	unsigned first, count = verbs_point_rails(s, p, &first);
	int rc;

	if (verbs_ops[op].atomic)
		note_atomics(s, op, iters);
	/* A batch is dealt out to the queue pairs one message each in turn: the target knows by
	 * this which were used. */
	if (iters > s->longest)
		s->longest = iters;
	if (!own->loop)
		return 0; /* the target of writes, reads and atomics has nothing to do */
	own->iters = iters;
	rc = verbs_state_each(s, p, run_rail, own, e);
	/* Every rail moved `iters` messages; together they took as long as the slowest. */
	for (unsigned i = first; i < first + count; i++)
		if (own->rail[i].elapsed > sink->elapsed_ns)
			sink->elapsed_ns = own->rail[i].elapsed;
	sink->work = (double)iters * count;
	if (counted(s, op))
		rc = settle(s, p, rc, sink, e);
	else
		note_arrivals(s, first, count, sink);
	if (rc == 0 && looked_at_by_batch(s, op))
		look_at_batch(s, p, iters);
	return rc;
}

/* Messages that were lost, and what nobody could count. Told once, by who has the figure. */
static void judge_losses(
	struct verbs_state *s, const struct fb_point *p, enum verbs_op op, struct fb_validity *v)
{
	struct bw_own *own = s->own;
	const struct verbs_transport_info *t = &verbs_transports[s->job->p.transport];

	(void)p;
	if (s->rank != 0 && !s->job->p.bidirectional)
		return;
	if (counted(s, op) && own->taken < own->sent)
		fb_validity_add(v, FB_SUSPECT,
			"%llu of %llu messages lost: %s acknowledges nothing, and the receiver counted "
			"%llu",
			(unsigned long long)(own->sent - own->taken), (unsigned long long)own->sent,
			t->name, (unsigned long long)own->taken);
	else if (!t->acked && !counted(s, op))
		fb_validity_add(v, FB_SUSPECT,
			"nobody counted what arrived: %s acknowledges nothing and a write leaves "
			"nothing to count; write-imm does",
			t->name);
}

/* Where does what the series shows become known: at the receiver, where it completes there. */
static bool known_at_receiver(enum verbs_op op)
{
	return verbs_ops[op].takes_receive;
}

/* Bytes over time of the point: both ends tell theirs, the client adds up. Both come here. */
static int gather_series(struct verbs_state *s, const struct fb_point *p, struct fb_err *e)
{
	struct bw_own *own = s->own;
	unsigned first, count = verbs_point_rails(s, p, &first);
	bool remote = known_at_receiver(verbs_point_op(p));
	struct verbs_series sum = own->rail[first].series, theirs;
	json_t *mine, *all = NULL;
	int rc;

	for (unsigned i = first + 1; i < first + count; i++)
		verbs_series_sum(&sum, &own->rail[i].series);
	mine = verbs_series_to_json(&sum);
	if (!mine)
		mine = json_null(); /* the peer waits for something all the same */
	rc = fb_oob_gather_json(fb_run_oob(s->run), mine, &all, fb_run_deadline(s->run), e);
	json_decref(mine);
	if (rc == 0 && s->rank == 0) {
		bool have = verbs_series_from_json(&theirs, json_array_get(all, 1)) == 0;
		if (have && s->job->p.bidirectional)
			verbs_series_sum(&sum, &theirs);
		else if (have && remote)
			sum = theirs;
		own->series = sum;
	}
	json_decref(all);
	return rc;
}

static int check(void *st, const struct fb_point *p, struct fb_validity *v, struct fb_err *e)
{
	struct verbs_state *s = st;
	struct bw_own *own = s->own;
	enum verbs_op op = verbs_point_op(p);
	unsigned first, count = verbs_point_rails(s, p, &first);
	int rc = gather_series(s, p, e);

	if (rc)
		return rc;
	verbs_state_judge(s, v);
	judge_losses(s, p, op, v);
	if (!receives_data(s, op))
		return 0;
	if (verbs_ops[op].atomic)
		return verbs_state_check_words(
			s, p, own->done, op == VERBS_FETCH_ADD ? 1 : s->rail[first].nqp, e);
	if (own->wrong.code) {
		*e = own->wrong;
		return e->code;
	}
	if (!looked_at_by_batch(s, op))
		rc = verbs_state_check_data(s, p, p->size, e);
	for (unsigned i = first; rc == 0 && i < first + count; i++)
		if (own->rail[i].b.wrong)
			rc = verbs_state_wrong_values(s, op, 1, e);
	return rc;
}

/* Payload that the rails of a point can carry: line rate times header efficiency. Both directions
 * of a full-duplex link add up. */
static double bound_of(struct verbs_state *s, const struct fb_point *p, char *why, size_t len)
{
	unsigned first, count = verbs_point_rails(s, p, &first);
	enum verbs_op op = verbs_point_op(p);
	double sum = 0;

	why[0] = '\0';
	if (!s->job->hardware)
		return 0;
	for (unsigned i = first; i < first + count; i++) {
		const struct verbs_rail *r = &s->rail[i];
		bool grh;
		enum fb_link_layer wire = verbs_wire_of(&r->local, &r->remote, &grh);
		double eff = fb_header_efficiency(
			wire, verbs_ops[op].wire, grh, false, p->size, r->path_mtu);
		if (r->dev->line_rate <= 0)
			return 0;
		sum += r->dev->line_rate * eff * (s->job->p.bidirectional ? 2 : 1);
		snprintf(why, len, "%u x %s, header efficiency %.4f at MTU %u%s", count,
			r->dev->line_rate_s, eff, r->path_mtu,
			s->job->p.bidirectional ? ", both directions" : "");
	}
	return sum;
}

/* Raw rate of the links in use, for gates; 0: not known. */
static double line_rate_of(struct verbs_state *s, const struct fb_point *p)
{
	unsigned first, count = verbs_point_rails(s, p, &first);
	double sum = 0;

	for (unsigned i = first; s->job->hardware && i < first + count; i++) {
		if (s->rail[i].dev->line_rate <= 0)
			return 0;
		sum += s->rail[i].dev->line_rate * (s->job->p.bidirectional ? 2 : 1);
	}
	return sum;
}

/* What became of a limited rate: a point that has missed it says so in each of its figures. The
 * rate is one of payload; of atomics, which have messages alone, the words that they work on. */
static void extend_rate(const struct fb_metric *m, const struct fb_point *p,
	const struct verbs_params *par, json_t *result)
{
	double requested = (double)par->rate * (par->bidirectional ? 2 : 1);
	double achieved = fb_json_num(result, "value", NAN) / m->per_unit * (double)p->size;

	if (!strcmp(m->name, "bandwidth") || verbs_ops[verbs_point_op(p)].atomic)
		verbs_result_rate(result, achieved, requested);
	verbs_result_rate_judge(result, achieved, requested);
}

/* Where the figure is from, bytes over time, and what became of a limited rate. */
static void extend(void *st, const struct fb_point *p, const struct fb_metric *m, json_t *result)
{
	struct verbs_state *s = st;
	struct bw_own *own = s->own;
	const struct verbs_params *par = &s->job->p;
	enum verbs_op op = verbs_point_op(p);
	bool acked = verbs_transports[par->transport].acked;
	/* An acknowledged message may stand for as many as the moderation says; by a schedule the
	 * last of each chain is acknowledged. */
	unsigned together = known_at_receiver(op) ? 1
			    : par->rate           ? (unsigned)par->post_list
						  : (unsigned)par->cq_mod;

	verbs_state_classes(s, result);
	if (par->rate)
		extend_rate(m, p, par, result);
	if (!json_object_get(result, "measured_at"))
		fb_json_set_str(result, "measured_at",
			counted(s, op) ? "receiver"
			: acked        ? "sender, by acknowledgement"
				       : "sender, by its own completions");
	if (strcmp(m->name, "bandwidth") != 0)
		return;
	verbs_series_extend(&own->series, together * p->size, result);
}

static int metrics(void *st, const struct fb_point *p, struct fb_metric *m)
{
	struct verbs_state *s = st;

	memset(m, 0, 2 * sizeof *m);
	if (verbs_ops[verbs_point_op(p)].atomic) {
		m[0].name = "message_rate"; /* an atomic moves no message bytes to speak of */
		m[0].unit = "1/s";
		m[0].better = "higher";
		m[0].kind = FB_METRIC_RATE;
		m[0].per_unit = 1;
		return 1;
	}
	m[0].name = "bandwidth";
	m[0].unit = "bytes/s";
	m[0].better = "higher";
	m[0].kind = FB_METRIC_RATE;
	m[0].per_unit = (double)p->size;
	m[0].bound = bound_of(s, p, m[0].bound_why, sizeof m[0].bound_why);
	m[0].line_rate = line_rate_of(s, p);
	m[1].name = "message_rate";
	m[1].unit = "1/s";
	m[1].better = "higher";
	m[1].kind = FB_METRIC_RATE;
	m[1].per_unit = 1;
	return 2;
}

static void teardown(void *st)
{
	struct verbs_state *s = st;
	struct bw_own *own = s ? s->own : NULL;

	for (unsigned i = 0; own && i < VERBS_MAX_RAILS; i++) {
		free(own->rail[i].b.qp);
		free(own->rail[i].chains);
		free(own->rail[i].sges);
	}
	if (own)
		free(own->done);
	free(own);
	verbs_state_close(s);
}

static int setup(struct fb_run *run, const void *cfg, void **st, struct fb_err *e)
{
	struct verbs_state *s;
	struct bw_own *own;
	int rc = verbs_state_open(run, cfg, &s, e);

	if (rc)
		return rc;
	s->own = own = calloc(1, sizeof *own);
	if (!own) {
		verbs_state_close(s);
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the session");
	}
	own->done = calloc(s->rail[0].nqp, sizeof *own->done);
	if (!own->done)
		rc = fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the session");
	for (unsigned i = 0; rc == 0 && i < s->n; i++)
		rc = open_rail(s, &own->rail[i], i, e);
	if (rc) {
		teardown(s);
		return rc;
	}
	*st = s;
	return 0;
}

const struct fb_bench verbs_bandwidth_bench = {.abi = FB_BENCH_ABI,
	.name = "verbs.bandwidth",
	.summary = "RDMA bandwidth and message rate with many messages in flight",
	.needs = FB_NEED_PEER | FB_NEED_RDMA,
	.opts = verbs_bandwidth_opts,
	.cfg_size = sizeof(struct verbs_job),
	.combine = FB_COMBINE_OWNER,
	.load = "closed",
	.sync = "pipelined",
	.definition =
		"message bytes, without headers, over the time from the first post to the last "
		"completion",
	.probe = verbs_state_probe,
	.setup = setup,
	.points = verbs_state_points,
	.metrics = metrics,
	.prepare = prepare,
	.measure = measure,
	.check = check,
	.counters = verbs_state_counters,
	.facts = verbs_state_facts,
	.teardown = teardown,
	.extend = extend};
