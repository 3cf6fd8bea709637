// SPDX-License-Identifier: Apache-2.0
/*
 * verbs.latency: ping-pong by sends or writes, or single reads and atomics. One thread a rail, one
 * message in flight ("idle, closed loop"). The loops are in loops_lat.c.
 */
#include "verbs/benches.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/pace.h"
#include "verbs/state.h"
#include "verbs/xrc.h"

/**
 * Messages before each batch that nobody counts: between batches the threads sleep on the control
 * channel, and caches, power states and the scheduler's favour for whoever has just slept are no
 * part of a fabric's latency. Both ends add them.
 */
#define LEAD 4

struct lat_rail {
	struct verbs_lat l;
	uint64_t *ns; /**< samples of a rail that is not the only one */
	size_t cap, n;
};
struct lat_own {
	struct lat_rail rail[VERBS_MAX_RAILS];
	verbs_lat_loop loop;
	verbs_lat_pace pace;
	uint64_t iters;
	uint64_t asked; /**< messages of the point so far, warm-up and the dropped ones included */
	struct fb_sink *sink;
	bool many;
	struct fb_err wrong; /**< the first message that was not what had been sent */
};

static void set_requests(
	struct verbs_state *s, struct lat_rail *lr, unsigned i, enum verbs_op op, uint64_t size)
{
	struct verbs_rail *r = &s->rail[i];
	struct verbs_lat *l = &lr->l;
	uintptr_t base = (uintptr_t)r->buf;

	memset(l, 0, sizeof *l);
	l->qp = r->qp[0];
	l->srq = r->xrc ? r->xrc->srq[0] : NULL;
	l->tx = (struct verbs_cq){.cq = r->tx_cq, .ch = r->tx_ch};
	l->rx = (struct verbs_cq){.cq = r->rx_cq, .ch = r->rx_ch};
	verbs_request(r, 0, op, &l->wr, &l->sge, size);
	l->fetched = (uint64_t *)(void *)(r->buf + verbs_send_off(r, 0));
	l->rsge = (struct ibv_sge){.addr = base + verbs_recv_off(r, 0),
		.length = (uint32_t)r->span,
		.lkey = r->mr->lkey};
	l->rwr = (struct ibv_recv_wr){.sg_list = &l->rsge, .num_sge = 1};
	if (size && size <= r->inline_cap && verbs_ops[op].inlines)
		l->flags = IBV_SEND_INLINE;
	if (size) {
		l->recv_last = r->buf + verbs_data_off(r, 0) + size - 1;
		l->send_last = r->buf + verbs_send_off(r, 0) + size - 1;
	}
	l->signal_every = r->dev->software ? VERBS_SIGNAL_EVERY_SOFTWARE : VERBS_SIGNAL_EVERY;
	l->lost_ns = r->dev->software ? VERBS_LOST_NS_SOFTWARE : VERBS_LOST_NS;
	l->silence_ns = VERBS_SILENCE(l->lost_ns) + s->job->p.interval_ns;
	l->what = s->what;
}

static int prepare(void *st, const struct fb_point *p, struct fb_err *e)
{
	struct verbs_state *s = st;
	struct lat_own *own = s->own;
	enum verbs_op op = verbs_point_op(p);
	const struct verbs_transport_info *t = &verbs_transports[s->job->p.transport];
	unsigned first, count = verbs_point_rails(s, p, &first);

	(void)e;
	verbs_state_prepare(s, p);
	own->loop = (t->shared  ? verbs_lat_choose_shared
		     : t->acked ? verbs_lat_choose
				: verbs_lat_choose_lossy)(op, s->job->p.events, s->rank == 0);
	own->pace = s->job->p.interval_ns && s->rank == 0 ? verbs_lat_paced : verbs_lat_at_once;
	own->many = count > 1;
	own->asked = 0;
	memset(&own->wrong, 0, sizeof own->wrong);
	for (unsigned i = first; i < first + count; i++)
		set_requests(s, &own->rail[i], i, op, p->size);
	return 0;
}

static int run_rail(struct verbs_state *s, unsigned rail, struct verbs_wait *w, void *arg)
{
	struct lat_own *own = arg;
	struct lat_rail *lr = &own->rail[rail];
	struct fb_sink mine = {.ns = lr->ns, .cap = lr->cap};
	struct fb_sink *sink = own->many ? &mine : own->sink;
	uint64_t dropped[LEAD];
	struct fb_sink lead = {.ns = dropped, .cap = LEAD};
	int rc;

	lr->l.wait = *w;
	rc = own->loop(&lr->l, LEAD, &lead);
	/* Neither the lead nor the warm-up is paced; the target only follows. */
	if (rc == 0)
		rc = (fb_run_counting(s->run) ? own->pace : verbs_lat_at_once)(
			&lr->l, own->loop, s->job->p.interval_ns, own->iters, sink);
	verbs_cq_ack(&lr->l.tx);
	verbs_cq_ack(&lr->l.rx);
	lr->n = sink->n;
	return rc;
}

static int grow(
	struct lat_own *own, unsigned first, unsigned count, uint64_t iters, struct fb_err *e)
{
	for (unsigned i = first; i < first + count; i++) {
		struct lat_rail *lr = &own->rail[i];
		if (lr->cap < iters) {
			uint64_t *more = realloc(lr->ns, iters * sizeof *more);
			if (!more)
				return fb_fail(
					e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for samples");
			memset(more, 0, iters * sizeof *more); /* no page fault in the timed loop */
			lr->ns = more;
			lr->cap = iters;
		}
	}
	return 0;
}

/* The last message, but for the byte that numbers it where the loops watch memory. */
static int look(struct verbs_state *s, const struct fb_point *p, struct fb_err *e)
{
	enum verbs_op op = verbs_point_op(p);
	bool numbered = op == VERBS_WRITE || !verbs_transports[s->job->p.transport].acked;

	if (verbs_ops[op].atomic || (verbs_ops[op].fetches && s->rank != 0))
		return 0;
	return verbs_state_check_data(s, p, numbered ? p->size - 1 : p->size, e);
}

static int measure(
	void *st, const struct fb_point *p, uint64_t iters, struct fb_sink *sink, struct fb_err *e)
{
	struct verbs_state *s = st;
	struct lat_own *own = s->own;
	unsigned first, count = verbs_point_rails(s, p, &first);
	int rc;

	own->asked += iters + LEAD;
	if (iters > s->longest)
		s->longest = iters;
	if (!own->loop)
		return 0; /* the target of a read has nothing to do */
	own->iters = iters;
	own->sink = sink;
	if (own->many && s->rank == 0 && (rc = grow(own, first, count, iters, e)) != 0)
		return rc;
	rc = verbs_state_each(s, p, run_rail, own, e);
	/* Told when the point is over. Of a short batch that may be lost whole, nothing can be. */
	if (rc == 0 && own->wrong.code == 0 && verbs_transports[s->job->p.transport].acked)
		(void)!look(s, p, &own->wrong);
	if (rc || !own->many || s->rank != 0)
		return rc;
	/* Striped over the rails, an operation is done when its slowest rail is. */
	sink->n = iters;
	for (unsigned k = first; k < first + count; k++)
		if (own->rail[k].n < sink->n)
			sink->n = own->rail[k].n;
	for (uint64_t i = 0; i < sink->n; i++) {
		uint64_t worst = 0;
		for (unsigned k = first; k < first + count; k++)
			if (own->rail[k].ns[i] > worst)
				worst = own->rail[k].ns[i];
		sink->ns[i] = worst;
	}
	return 0;
}

static int check(void *st, const struct fb_point *p, struct fb_validity *v, struct fb_err *e)
{
	struct verbs_state *s = st;
	struct lat_own *own = s->own;
	enum verbs_op op = verbs_point_op(p);
	const struct verbs_transport_info *t = &verbs_transports[s->job->p.transport];
	unsigned first, count = verbs_point_rails(s, p, &first);
	uint64_t lost = 0, wrong = 0;

	verbs_state_judge(s, v);
	for (unsigned i = first; i < first + count; i++) {
		lost += own->rail[i].l.lost;
		wrong += own->rail[i].l.wrong;
	}
	if (lost)
		fb_validity_add(v, FB_SUSPECT,
			"%llu of %llu messages lost: %s acknowledges nothing, and no answer came "
			"within %d ms",
			(unsigned long long)lost, (unsigned long long)own->asked * count, t->name,
			(int)(own->rail[first].l.lost_ns / 1000000));
	if (wrong)
		return verbs_state_wrong_values(s, op, wrong, e);
	if (verbs_ops[op].atomic)
		return s->rank == 0 ? 0 : verbs_state_check_words(s, p, &own->asked, 1, e);
	if (!t->acked)
		return look(s, p, e);
	if (own->wrong.code)
		*e = own->wrong;
	return own->wrong.code;
}

static int metrics(void *st, const struct fb_point *p, struct fb_metric *m)
{
	(void)st;
	(void)p;
	memset(m, 0, sizeof *m);
	m->name = "latency";
	m->unit = "ns";
	m->better = "lower";
	m->kind = FB_METRIC_TIME;
	return 1;
}

static int setup(struct fb_run *run, const void *cfg, void **st, struct fb_err *e)
{
	struct verbs_state *s;
	int rc = verbs_state_open(run, cfg, &s, e);

	if (rc)
		return rc;
	s->own = calloc(1, sizeof(struct lat_own));
	if (!s->own) {
		verbs_state_close(s);
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the session");
	}
	*st = s;
	return 0;
}

static void extend(void *st, const struct fb_point *p, const struct fb_metric *m, json_t *result)
{
	verbs_state_classes(st, result);
}

static void teardown(void *st)
{
	struct verbs_state *s = st;
	struct lat_own *own = s ? s->own : NULL;

	for (unsigned i = 0; own && i < VERBS_MAX_RAILS; i++)
		free(own->rail[i].ns);
	free(own);
	verbs_state_close(s);
}

const struct fb_bench verbs_latency_bench = {.abi = FB_BENCH_ABI,
	.name = "verbs.latency",
	.summary = "RDMA latency of one message in flight",
	.needs = FB_NEED_PEER | FB_NEED_RDMA,
	.opts = verbs_latency_opts,
	.cfg_size = sizeof(struct verbs_job),
	.combine = FB_COMBINE_OWNER,
	.load = "closed",
	.sync = "pingpong",
	.definition =
		"half of the round trip for sends and writes, the full round trip for reads and atomics",
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
