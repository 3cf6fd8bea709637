// SPDX-License-Identifier: Apache-2.0
/*
 * The probe's schedule around the latency loops: each probe is one iteration of the loop that
 * `verbs latency` runs.
 */
#include "verbs/probe.h"

#include <string.h>
#include <time.h>

#include "bench/core/clock.h"

/* One exchange, so that the answering end has come from the control channel. */
#define LEAD 1
/* A sleep ends up to 50 us late (the kernel's timer slack): the rest is spun. */
#define WAKE_NS 60000u
/* Sleep in slices, so that a stop is noticed. */
#define SLICE_NS 20000000u

void verbs_probe_init(struct verbs_probe *p, struct verbs_rail *r, enum verbs_op op, uint64_t size,
	bool events, bool client, uint64_t interval_ns, const char *what)
{
	struct verbs_lat *l = &p->l;
	uintptr_t base = (uintptr_t)r->buf;
	bool fetch = verbs_ops[op].fetches;

	memset(p, 0, sizeof *p);
	l->qp = r->qp[0];
	l->tx = (struct verbs_cq){.cq = r->tx_cq, .ch = r->tx_ch};
	l->rx = (struct verbs_cq){.cq = r->rx_cq, .ch = r->rx_ch};
	l->sge = (struct ibv_sge){
		.addr = base + (fetch ? verbs_recv_off(r, 0) : verbs_send_off(r, 0)),
		.length = (uint32_t)size,
		.lkey = r->mr->lkey};
	l->wr = (struct ibv_send_wr){
		.sg_list = &l->sge, .num_sge = size ? 1 : 0, .opcode = verbs_ops[op].opcode};
	l->wr.wr.rdma.rkey = r->remote.rkey;
	l->wr.wr.rdma.remote_addr =
		r->remote.addr + (fetch ? verbs_send_off(r, 0) : verbs_recv_off(r, 0));
	l->rsge = (struct ibv_sge){.addr = base + verbs_recv_off(r, 0),
		.length = (uint32_t)r->span,
		.lkey = r->mr->lkey};
	l->rwr = (struct ibv_recv_wr){.sg_list = &l->rsge, .num_sge = 1};
	if (size && size <= r->inline_cap && verbs_ops[op].inlines)
		l->flags = IBV_SEND_INLINE;
	if (size) {
		l->recv_last = r->buf + verbs_recv_off(r, 0) + size - 1;
		l->send_last = r->buf + verbs_send_off(r, 0) + size - 1;
	}
	l->signal_every = r->dev->software ? VERBS_SIGNAL_EVERY_SOFTWARE : VERBS_SIGNAL_EVERY;
	l->what = what;
	p->loop = verbs_lat_choose(op, events, client);
	p->interval_ns = interval_ns;
	p->scale = fetch ? 1 : 2;
	p->naps = r->dev->software;
}

static void ack(struct verbs_probe *p)
{
	verbs_cq_ack(&p->l.tx);
	verbs_cq_ack(&p->l.rx);
}

int verbs_probe_lead(struct verbs_probe *p, struct verbs_wait *w)
{
	uint64_t dropped[LEAD];
	struct fb_sink lead = {.ns = dropped, .cap = LEAD};
	int rc;

	if (!p->loop)
		return 0;
	p->l.wait = *w;
	rc = p->loop(&p->l, LEAD, &lead);
	ack(p);
	return rc;
}

/* @return ns at which it is over (at or after `due`), or 0 when the wait is to be given up */
static uint64_t wait_until(struct verbs_probe *p, uint64_t due)
{
	uint64_t now, since = 0;
	unsigned spins = 0;

	while ((now = fb_clock_ns()) < due) {
		if (p->naps && due - now > WAKE_NS) {
			uint64_t ns = due - now - WAKE_NS;
			struct timespec t = {0, (long)(ns < SLICE_NS ? ns : SLICE_NS)};
			nanosleep(&t, NULL);
			if (verbs_wait_check(&p->l.wait))
				return 0;
		} else if (++spins % VERBS_SPINS == 0 && verbs_wait_slow(&p->l.wait, &since)) {
			return 0;
		}
	}
	return now;
}

int verbs_probe_run(struct verbs_probe *p, struct verbs_wait *w, uint64_t iters, uint64_t until,
	struct fb_sink *s)
{
	uint64_t now = fb_clock_ns(), took;
	struct fb_sink one = {.ns = &took, .cap = 1};
	int rc = 0;

	p->l.wait = *w;
	if (!p->started)
		verbs_schedule_init(&p->sched, now, (double)p->interval_ns);
	else
		verbs_schedule_resume(&p->sched, now, p->backlog);
	p->started = true;
	for (uint64_t i = 0; i < iters && rc == 0; i++) {
		uint64_t due = verbs_schedule_due(&p->sched);
		if (until && (due >= until || now >= until))
			break;
		now = wait_until(p, due);
		if (!now) {
			rc = w->e->code ? w->e->code : -1;
			break;
		}
		rc = p->loop(&p->l, 1, &one);
		if (rc)
			break;
		s->ns[i] = now - due + took * p->scale;
		s->n = i + 1;
		if (now - due > p->most_behind)
			p->most_behind = now - due;
		verbs_schedule_pass(&p->sched);
		now = fb_clock_ns();
	}
	p->backlog = verbs_schedule_late(&p->sched, fb_clock_ns());
	ack(p);
	return rc;
}

int verbs_probe_answer(struct verbs_probe *p, struct verbs_wait *w, uint64_t iters)
{
	struct fb_sink none = {0};
	int rc;

	if (!p->loop)
		return 0;
	p->l.wait = *w;
	rc = p->loop(&p->l, iters, &none);
	ack(p);
	return rc;
}
