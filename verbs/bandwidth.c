// SPDX-License-Identifier: Apache-2.0
/*
 * verbs.bandwidth: as many messages as --depth in flight on each of --qps queue pairs, in one
 * direction or in both. The loops are in loops_bw.c.
 *
 * The send credits of a queue pair count through the whole session, for every point and batch.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/benches.h"
#include "verbs/state.h"

struct bw_rail {
	struct verbs_bw b;
	struct ibv_send_wr *chains; /**< post_list for each QP */
	uint64_t elapsed;
};
struct bw_own {
	struct bw_rail rail[VERBS_MAX_RAILS];
	verbs_bw_loop loop;
	uint64_t iters;
};

static void set_credit(struct verbs_rail *r, struct verbs_bw_qp *bq, unsigned q)
{
	bq->credit_in = (volatile uint64_t *)(void *)(r->buf + verbs_credit_off(r, q));
	bq->credit_out = (uint64_t *)(void *)(r->buf + verbs_credit_src_off(r, q));
	bq->credit_sge = (struct ibv_sge){
		.addr = (uintptr_t)bq->credit_out, .length = sizeof(uint64_t), .lkey = r->mr->lkey};
	bq->credit_wr = (struct ibv_send_wr){.wr_id = VERBS_WR_CREDIT | (uint64_t)q << 32,
		.sg_list = &bq->credit_sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED};
	bq->credit_wr.wr.rdma.rkey = r->remote.rkey;
	bq->credit_wr.wr.rdma.remote_addr = r->remote.credit_addr + q * sizeof(uint64_t);
}

static int open_rail(struct verbs_state *s, struct bw_rail *br, unsigned i, struct fb_err *e)
{
	const struct verbs_params *p = &s->job->p;
	struct verbs_rail *r = &s->rail[i];
	struct verbs_bw *b = &br->b;

	b->qp = calloc(r->nqp, sizeof *b->qp);
	br->chains = calloc((size_t)r->nqp * (size_t)p->post_list, sizeof *br->chains);
	if (!b->qp || !br->chains)
		return fb_fail(
			e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %u queue pairs", r->nqp);
	b->nqp = r->nqp;
	b->depth = (unsigned)p->depth;
	b->rx_depth = (unsigned)p->rx_depth;
	b->post_list = (unsigned)p->post_list;
	b->cq_mod = (unsigned)p->cq_mod;
	b->tx = (struct verbs_cq){.cq = r->tx_cq, .ch = r->tx_ch};
	b->rx = (struct verbs_cq){.cq = r->rx_cq, .ch = r->rx_ch};
	b->what = s->what;
	for (unsigned q = 0; q < r->nqp; q++) {
		struct verbs_bw_qp *bq = &b->qp[q];
		bq->qp = r->qp[q];
		bq->chain = br->chains + (size_t)q * b->post_list;
		bq->rsge = (struct ibv_sge){.addr = (uintptr_t)r->buf + verbs_recv_off(r, q),
			.length = (uint32_t)r->span,
			.lkey = r->mr->lkey};
		bq->rwr = (struct ibv_recv_wr){.wr_id = q, .sg_list = &bq->rsge, .num_sge = 1};
		set_credit(r, bq, q);
	}
	return 0;
}

static void set_requests(
	struct verbs_state *s, struct bw_rail *br, unsigned i, enum verbs_op op, uint64_t size)
{
	struct verbs_rail *r = &s->rail[i];
	bool fetch = verbs_ops[op].fetches;

	br->b.flags = verbs_ops[op].inlines && size <= r->inline_cap ? IBV_SEND_INLINE : 0;
	for (unsigned q = 0; q < r->nqp; q++) {
		struct verbs_bw_qp *bq = &br->b.qp[q];
		size_t here = fetch ? verbs_recv_off(r, q) : verbs_send_off(r, q);
		size_t there = fetch ? verbs_send_off(r, q) : verbs_recv_off(r, q);
		bq->sge = (struct ibv_sge){.addr = (uintptr_t)r->buf + here,
			.length = (uint32_t)size,
			.lkey = r->mr->lkey};
		for (unsigned k = 0; k < br->b.post_list; k++) {
			bq->chain[k] = (struct ibv_send_wr){
				.sg_list = &bq->sge, .num_sge = 1, .opcode = verbs_ops[op].opcode};
			bq->chain[k].wr.rdma.rkey = r->remote.rkey;
			bq->chain[k].wr.rdma.remote_addr = r->remote.addr + there;
		}
	}
}

static int prepare(void *st, const struct fb_point *p, struct fb_err *e)
{
	struct verbs_state *s = st;
	struct bw_own *own = s->own;
	const struct verbs_params *par = &s->job->p;
	enum verbs_op op = verbs_point_op(p);
	bool receives = verbs_ops[op].takes_receive;
	bool tx = s->rank == 0 || par->bidirectional, rx = s->rank != 0 || par->bidirectional;
	unsigned first, count = verbs_point_rails(s, p, &first);

	(void)e;
	verbs_state_prepare(s, p);
	own->loop = verbs_bw_choose(receives, par->events, tx, rx && receives);
	for (unsigned i = first; i < first + count; i++)
		set_requests(s, &own->rail[i], i, op, p->size);
	return 0;
}

static int run_rail(struct verbs_state *s, unsigned rail, struct verbs_wait *w, void *arg)
{
	struct bw_own *own = arg;
	struct bw_rail *br = &own->rail[rail];
	int rc;

	(void)s;
	br->b.wait = *w;
	rc = own->loop(&br->b, own->iters, &br->elapsed);
	verbs_cq_ack(&br->b.tx);
	verbs_cq_ack(&br->b.rx);
	return rc;
}

static int measure(
	void *st, const struct fb_point *p, uint64_t iters, struct fb_sink *sink, struct fb_err *e)
{
	struct verbs_state *s = st;
	struct bw_own *own = s->own;
	unsigned first, count = verbs_point_rails(s, p, &first);
	int rc;

	/* A batch is dealt out to the queue pairs one message each in turn: the target knows by
	 * this which were used. */
	if (iters > s->longest)
		s->longest = iters;
	if (!own->loop)
		return 0; /* the target of writes and reads has nothing to do */
	own->iters = iters;
	rc = verbs_state_each(s, p, run_rail, own, e);
	if (rc)
		return rc;
	/* Every rail moved `iters` messages; together they took as long as the slowest. */
	for (unsigned i = first; i < first + count; i++)
		if (own->rail[i].elapsed > sink->elapsed_ns)
			sink->elapsed_ns = own->rail[i].elapsed;
	sink->work = (double)iters * count;
	return 0;
}

static int check(void *st, const struct fb_point *p, struct fb_validity *v, struct fb_err *e)
{
	struct verbs_state *s = st;
	enum verbs_op op = verbs_point_op(p);
	/* Who holds received data: the requester of reads, the target of all else. */
	bool received = verbs_ops[op].fetches ? s->rank == 0 : s->rank != 0;

	verbs_state_judge(s, v);
	if (!received && !s->job->p.bidirectional)
		return 0;
	return verbs_state_check_data(s, p, p->size, e);
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

static int metrics(void *st, const struct fb_point *p, struct fb_metric *m)
{
	struct verbs_state *s = st;

	memset(m, 0, 2 * sizeof *m);
	m[0].name = "bandwidth";
	m[0].unit = "bytes/s";
	m[0].better = "higher";
	m[0].kind = FB_METRIC_RATE;
	m[0].per_unit = (double)p->size;
	m[0].bound = bound_of(s, p, m[0].bound_why, sizeof m[0].bound_why);
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
	}
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
	.teardown = teardown};
