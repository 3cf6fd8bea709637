// SPDX-License-Identifier: Apache-2.0
/*
 * Rails: registering, creating, exchanging, connecting. Nothing here is timed.
 */
#include "verbs/conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/stats.h"
#include "bench/core/sysinfo.h"
#include "bench/core/units.h"
#include "verbs/cm.h"
#include "verbs/place.h"
#include "verbs/xrc.h"

/* ---- pattern --------------------------------------------------------------------------------- */

static inline uint8_t pattern_byte(size_t i, unsigned rank, unsigned q)
{
	uint32_t x = (uint32_t)i * 2654435761u + rank * 40503u + q * 97u + 1u;

	return (uint8_t)(x >> 24 ^ x >> 13);
}

void verbs_pattern_fill(uint8_t *p, size_t len, unsigned rank, unsigned q)
{
	for (size_t i = 0; i < len; i++)
		p[i] = pattern_byte(i, rank, q);
}

size_t verbs_pattern_check(const uint8_t *p, size_t len, unsigned rank, unsigned q)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != pattern_byte(i, rank, q))
			return i + 1;
	return 0;
}

/* ---- local side ------------------------------------------------------------------------------ */

void verbs_qp_defaults(const char *driver, const struct verbs_params *p, unsigned *timeout,
	unsigned *retry, unsigned *rnr_retry)
{
	bool rxe = !strcmp(driver, "rxe");

	/* rxe: an ack timeout below 16 retransmits on a clean link, and 7 retries mean for ever
	 * (rxe_comp.c). 14 and 7 elsewhere are perftest's. 7 RNR retries mean for ever everywhere.
	 */
	*timeout = p->qp_timeout != VERBS_AUTO ? (unsigned)p->qp_timeout : rxe ? 20 : 14;
	*retry = p->retry != VERBS_AUTO ? (unsigned)p->retry : rxe ? 6 : 7;
	*rnr_retry = p->rnr_retry != VERBS_AUTO ? (unsigned)p->rnr_retry : 6;
}

/* Messages of a batch land in turn in as many areas as stay within a second-level cache, and within
 * what an ordinary user may lock. Soft limits; both ends must come to the same number. Whether a
 * shared receive queue gives out its receives in turn is the device's affair. */
#define SLOTS       8u
#define SLOTS_BYTES (256u << 10)
#define RAIL_BYTES  (16u << 20)

static unsigned slots_for(const struct verbs_params *p, size_t span)
{
	size_t one = SLOTS_BYTES / span, all = RAIL_BYTES / (span * (size_t)p->qps);
	size_t n = one < all ? one : all;

	if (p->bench != VERBS_BANDWIDTH || verbs_transports[p->transport].shared || n < 1)
		return 1;
	return n < SLOTS ? (unsigned)n : SLOTS;
}

static int alloc_memory(
	struct verbs_rail *r, const struct verbs_params *p, int mem_node, struct fb_err *e)
{
	int rc;

	r->grh = verbs_transports[p->transport].datagram ? VERBS_GRH : 0;
	r->span = (size_t)((verbs_params_max_size(p) + r->grh + 63) & ~63ull);
	r->slots = slots_for(p, r->span);
	r->buf_len = verbs_credit_off(r, 2 * r->nqp);
	if (p->memory != VERBS_MEM_GPU && (rc = verbs_memlock_check(r->buf_len, e)) != 0)
		return rc;
	rc = verbs_mem_alloc(
		&r->mem, (enum verbs_memory)p->memory, p->gpu, r->buf_len, mem_node, e);
	if (rc)
		return rc;
	r->buf = r->mem.p;
	r->mem_node = r->mem.node;
	if (verbs_mem_on_host(&r->mem)) {
		r->host = r->buf;
		r->ctl = r->buf + verbs_credit_off(r, 0);
		return 0;
	}
	rc = verbs_mem_alloc(
		&r->ctl_mem, VERBS_MEM_HOST, 0, 2 * r->nqp * sizeof(uint64_t), mem_node, e);
	r->ctl = r->ctl_mem.p;
	r->host = calloc(1, r->buf_len);
	if (rc == 0 && !r->host)
		rc = fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a copy of the GPU's");
	return rc;
}

static int register_memory(struct verbs_rail *r, const struct verbs_params *p, struct fb_err *e)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE; /* credits are written */

	for (int i = 0; i < p->nops; i++)
		access |= (int)verbs_ops[p->ops[i]].access;
	r->mr = verbs_mem_register(&r->mem, r->pd, r->dev->name, access, e);
	r->ctl_mr = r->mr;
	if (r->mr && r->ctl_mem.p)
		r->ctl_mr = verbs_mem_register(&r->ctl_mem, r->pd, r->dev->name,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, e);
	return r->ctl_mr ? 0 : e->code;
}

static int create_cqs(struct verbs_rail *r, const struct verbs_params *p, struct fb_err *e)
{
	int tx = (int)r->nqp * (p->depth + VERBS_CREDIT_SLOTS);
	int rx = (int)r->nqp * p->rx_depth;

	if (tx > r->dev->attr.max_cqe || rx > r->dev->attr.max_cqe) {
		fb_fail(e, FB_EXIT_USAGE, EINVAL,
			"%d QPs of depth %d and %d receives need completion queues of %d and %d; %s takes %d",
			(int)r->nqp, p->depth, p->rx_depth, tx, rx, r->dev->name,
			r->dev->attr.max_cqe);
		fb_hint(e, "fewer --qps, or smaller --depth and --rx-depth");
		return -EINVAL;
	}
	if (p->events) {
		r->tx_ch = ibv_create_comp_channel(r->dev->ctx);
		r->rx_ch = ibv_create_comp_channel(r->dev->ctx);
		if (!r->tx_ch || !r->rx_ch)
			return fb_fail(e, FB_EXIT_UNMEASURED, errno,
				"cannot create a completion channel on %s: %s", r->dev->name,
				strerror(errno));
	}
	r->tx_cq = ibv_create_cq(r->dev->ctx, tx, NULL, r->tx_ch, 0);
	if (r->tx_cq)
		r->rx_cq = ibv_create_cq(r->dev->ctx, rx, NULL, r->rx_ch, 0);
	if (!r->rx_cq) {
		int err = errno;
		fb_fail(e, FB_EXIT_UNMEASURED, err, "cannot create a completion queue on %s: %s",
			r->dev->name, strerror(err));
		fb_hint(e, "smaller --depth and --rx-depth; with ENOMEM also ulimit -l");
		return -err;
	}
	return 0;
}

static struct ibv_qp_init_attr qp_wants(const struct verbs_rail *r, const struct verbs_params *p)
{
	struct ibv_qp_init_attr a = {.send_cq = r->tx_cq,
		.recv_cq = r->rx_cq,
		.qp_type = verbs_transports[p->transport].type,
		.cap = {.max_send_wr = (uint32_t)(p->depth + VERBS_CREDIT_SLOTS),
			.max_recv_wr = (uint32_t)p->rx_depth,
			.max_send_sge = 1,
			.max_recv_sge = 1}};

	if (r->xrc) { /* it only sends */
		a.recv_cq = NULL;
		a.cap.max_recv_wr = a.cap.max_recv_sge = 0;
	}
	return a;
}

static struct ibv_qp *try_inline(
	const struct verbs_rail *r, const struct verbs_params *p, unsigned bytes)
{
	struct ibv_qp_init_attr a = qp_wants(r, p);

	a.cap.max_inline_data = bytes;
	return ibv_create_qp(r->pd, &a);
}

/* What the device takes is found by asking: a larger inline area than the message needs costs send
 * queue memory, so the ladder starts at what small messages profit from. */
static struct ibv_qp *create_qp(struct verbs_rail *r, const struct verbs_params *p)
{
	static const unsigned ladder[] = {236, 188, 124, 60, 28, 0};
	struct ibv_qp *qp = NULL;

	/* Inline data is read by the CPU. */
	if (!verbs_mem_on_host(&r->mem)) {
		r->inline_cap = 0;
		return try_inline(r, p, 0);
	}
	if (p->inline_max != VERBS_AUTO) {
		r->inline_cap = (unsigned)p->inline_max;
		return try_inline(r, p, r->inline_cap);
	}
	for (unsigned i = p->bench == VERBS_LATENCY ? 0 : 3;
		!qp && i < sizeof ladder / sizeof ladder[0]; i++) {
		qp = try_inline(r, p, ladder[i]);
		r->inline_cap = p->bench == VERBS_LATENCY ? ladder[i] : 0;
	}
	return qp;
}

static bool takes_inline(const struct verbs_rail *r, const struct verbs_params *p, unsigned bytes)
{
	struct ibv_qp *qp = try_inline(r, p, bytes);

	return qp && ibv_destroy_qp(qp) == 0;
}

/* No device tells how much it takes inline: a refusal is only explained by what it would take.
 * @return 0 when something else is to blame, -EINVAL with the limit */
static int inline_refused(
	const struct verbs_rail *r, const struct verbs_params *p, struct fb_err *e)
{
	unsigned takes = 0, not = p->inline_max > 0 ? (unsigned)p->inline_max : 0;

	if (!not || !takes_inline(r, p, 0))
		return 0;
	while (not -takes > 1) {
		unsigned mid = takes + (not -takes) / 2;
		if (takes_inline(r, p, mid))
			takes = mid;
		else
			not = mid;
	}
	fb_fail_usage(e, "--inline %d: %s takes at most %u bytes inline", p->inline_max,
		r->dev->name, takes);
	fb_hint(e, "give --inline %u or less, or leave it out", takes);
	return -EINVAL;
}

static int qp_refused(const struct verbs_rail *r, const struct verbs_params *p, unsigned q, int err,
	struct fb_err *e)
{
	int rc = inline_refused(r, p, e);

	if (rc)
		return rc;
	fb_fail(e, FB_EXIT_UNMEASURED, err,
		"cannot create queue pair %u of %u on %s (send %d, receive %d): %s", q + 1, r->nqp,
		r->dev->name, p->depth + VERBS_CREDIT_SLOTS, p->rx_depth, strerror(err));
	fb_hint(e, "the device takes %d QPs of %d work requests; smaller --depth or --qps",
		r->dev->attr.max_qp, r->dev->attr.max_qp_wr);
	return -err;
}

static int create_qps(struct verbs_rail *r, const struct verbs_params *p, struct fb_err *e)
{
	struct fb_rng rng;

	fb_rng_seed(&rng, fb_clock_ns(), (uint64_t)getpid());
	for (unsigned q = 0; q < r->nqp; q++) {
		struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
			.pkey_index = (uint16_t)r->dev->pkey_index,
			.port_num = (uint8_t)r->dev->port,
			.qkey = VERBS_QKEY,
			.qp_access_flags = (unsigned)verbs_transports[p->transport].qp_access};
		int err;
		r->qp[q] = create_qp(r, p);
		if (!r->qp[q])
			return qp_refused(r, p, q, errno, e);
		err = ibv_modify_qp(r->qp[q], &a, verbs_transports[p->transport].init_mask);
		if (err)
			return fb_fail(e, FB_EXIT_UNMEASURED, err, "%s: QP to INIT: %s",
				r->dev->name, strerror(err));
		r->psn[q] = fb_rng_u32(&rng) & 0xffffff;
	}
	return 0;
}

/* Receives stay posted for the whole session: each is posted again as soon as it completes. */
static int post_receives(struct verbs_rail *r, const struct verbs_params *p, struct fb_err *e)
{
	for (unsigned q = 0; q < r->nqp; q++) {
		struct ibv_sge sge = {.length = (uint32_t)r->span, .lkey = r->mr->lkey};
		struct ibv_recv_wr wr = {.wr_id = q, .sg_list = &sge, .num_sge = 1}, *bad;
		for (int i = 0; i < p->rx_depth; i++) {
			sge.addr = (uintptr_t)r->buf + verbs_slot_off(r, q, (unsigned)i % r->slots);
			int err = r->xrc ? ibv_post_srq_recv(r->xrc->srq[q], &wr, &bad)
					 : ibv_post_recv(r->qp[q], &wr, &bad);
			if (err)
				return fb_fail(e, FB_EXIT_UNMEASURED, err,
					"cannot post receive %d of %d on %s: %s", i + 1,
					p->rx_depth, r->dev->name, strerror(err));
		}
	}
	return 0;
}

int verbs_rail_open(struct verbs_rail *r, struct verbs_dev *dev, const struct verbs_params *p,
	int mem_node, struct fb_err *e)
{
	int rc;

	memset(r, 0, sizeof *r);
	r->dev = dev;
	r->nqp = (unsigned)p->qps;
	r->transport = (enum verbs_transport)p->transport;
	for (int i = 0; i < p->nops; i++) {
		rc = verbs_device_offers(
			&dev->attr, dev->name, (enum verbs_op)p->ops[i], r->transport, e);
		if (rc)
			return rc;
	}
	rc = verbs_port_takes(
		dev->port_attr.max_msg_sz, dev->name, dev->port, verbs_params_max_size(p), e);
	if (rc)
		return rc;
	r->qp = calloc(r->nqp, sizeof *r->qp);
	r->psn = calloc(3 * (size_t)r->nqp, sizeof *r->psn);
	if (!r->qp || !r->psn) {
		rc = fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %u queue pairs", r->nqp);
		goto close;
	}
	r->remote_qpn = r->psn + r->nqp;
	r->remote_psn = r->psn + 2 * (size_t)r->nqp;
	verbs_qp_defaults(dev->driver, p, &r->qp_timeout, &r->retry, &r->rnr_retry);
	rc = alloc_memory(r, p, mem_node, e);
	if (rc)
		goto close;
	r->pd = ibv_alloc_pd(dev->ctx);
	if (!r->pd) {
		rc = fb_fail(e, FB_EXIT_UNMEASURED, errno,
			"cannot allocate a protection domain on %s: %s", dev->name,
			strerror(errno));
		goto close;
	}
	if ((rc = register_memory(r, p, e)) != 0 || (rc = create_cqs(r, p, e)) != 0 ||
		(verbs_transports[p->transport].shared && (rc = verbs_xrc_open(r, p, e)) != 0) ||
		(rc = create_qps(r, p, e)) != 0 || (rc = post_receives(r, p, e)) != 0 ||
		(p->rdma_cm && (rc = verbs_cm_open(r, p, e)) != 0))
		goto close;
	verbs_dev_end(dev, &r->local);
	fb_host_name(r->local.host, sizeof r->local.host);
	r->local.addr = (uintptr_t)r->buf;
	r->local.length = r->buf_len;
	r->local.credit_addr = (uintptr_t)r->ctl;
	r->local.rkey = r->mr->rkey;
	r->local.credit_rkey = r->ctl_mr->rkey;
	r->local.nqp = r->nqp;
	r->local.inline_cap = r->inline_cap;
	return 0;
close:
	verbs_rail_close(r);
	return rc;
}

int verbs_rail_push(struct verbs_rail *r, struct fb_err *e)
{
	return r->host == r->buf ? 0 : verbs_mem_put(&r->mem, 0, r->host, r->buf_len, e);
}

int verbs_rail_pull(struct verbs_rail *r, struct fb_err *e)
{
	return r->host == r->buf ? 0 : verbs_mem_get(&r->mem, 0, r->host, r->buf_len, e);
}

void verbs_rail_close(struct verbs_rail *r)
{
	verbs_cm_close(r->cm);
	for (unsigned q = 0; r->qp && q < r->nqp; q++)
		if (r->qp[q])
			ibv_destroy_qp(r->qp[q]);
	verbs_xrc_close(r->xrc);
	if (r->ah)
		ibv_destroy_ah(r->ah);
	if (r->rx_cq)
		ibv_destroy_cq(r->rx_cq);
	if (r->tx_cq)
		ibv_destroy_cq(r->tx_cq);
	if (r->rx_ch)
		ibv_destroy_comp_channel(r->rx_ch);
	if (r->tx_ch)
		ibv_destroy_comp_channel(r->tx_ch);
	if (r->ctl_mr && r->ctl_mr != r->mr)
		ibv_dereg_mr(r->ctl_mr);
	if (r->mr)
		ibv_dereg_mr(r->mr);
	if (r->pd)
		ibv_dealloc_pd(r->pd);
	if (r->host != r->buf)
		free(r->host);
	verbs_mem_free(&r->ctl_mem);
	verbs_mem_free(&r->mem);
	free(r->psn);
	free(r->qp);
	memset(r, 0, sizeof *r);
}

/* ---- requests -------------------------------------------------------------------------------- */

void verbs_request(const struct verbs_rail *r, unsigned q, enum verbs_op op, struct ibv_send_wr *wr,
	struct ibv_sge *sge, uint64_t size)
{
	const struct verbs_op_info *o = &verbs_ops[op];
	/* What is fetched lands where nothing else is looked for: an atomic's answer must not cover
	 * the word that the peer's atomics work on. */
	size_t here = o->fetches && !o->atomic ? verbs_data_off(r, q) : verbs_send_off(r, q);
	size_t there = o->fetches && !o->atomic ? verbs_send_off(r, q) : verbs_recv_off(r, q);

	*sge = (struct ibv_sge){
		.addr = (uintptr_t)r->buf + here, .length = (uint32_t)size, .lkey = r->mr->lkey};
	*wr = (struct ibv_send_wr){.sg_list = sge, .num_sge = size ? 1 : 0, .opcode = o->opcode};
	if (o->immediate)
		wr->imm_data = verbs_imm(q);
	if (r->xrc)
		wr->qp_type.xrc.remote_srqn = r->xrc->remote_srqn[q];
	if (verbs_transports[r->transport].datagram) {
		wr->wr.ud.ah = r->ah;
		wr->wr.ud.remote_qpn = r->remote_qpn[q];
		wr->wr.ud.remote_qkey = VERBS_QKEY;
	} else if (o->atomic) {
		wr->wr.atomic.rkey = r->remote.rkey;
		wr->wr.atomic.remote_addr =
			r->remote.addr + (op == VERBS_FETCH_ADD ? verbs_recv_off(r, 0) : there);
		wr->wr.atomic.compare_add = op == VERBS_FETCH_ADD ? 1 : 0;
		wr->wr.atomic.swap = op == VERBS_FETCH_ADD ? 0 : 1;
	} else {
		wr->wr.rdma.rkey = r->remote.rkey;
		wr->wr.rdma.remote_addr = r->remote.addr + there;
	}
}

void verbs_request_slot(const struct verbs_rail *r, enum verbs_op op, unsigned slot,
	struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	if (op == VERBS_READ)
		sge->addr += slot * r->span;
	else if (op == VERBS_WRITE || op == VERBS_WRITE_IMM)
		wr->wr.rdma.remote_addr += slot * r->span;
}

/* ---- exchange and connect -------------------------------------------------------------------- */

static json_t *describe(const struct verbs_rail *rails, unsigned n, const struct verbs_params *p)
{
	json_t *all = json_array();

	for (unsigned i = 0; all && i < n; i++) {
		json_t *j = verbs_end_to_json(&rails[i].local), *qps = json_array();
		for (unsigned q = 0; q < rails[i].nqp; q++) {
			json_t *one = json_pack(
				"[i,i]", (int)rails[i].qp[q]->qp_num, (int)rails[i].psn[q]);
			if (rails[i].xrc)
				verbs_xrc_describe(rails[i].xrc, q, one);
			json_array_append_new(qps, one);
		}
		json_object_set_new(j, "qps", qps);
		json_object_set_new(j, "settings", verbs_params_settings(p));
		if (rails[i].cm)
			fb_json_set_int(j, "cm_port", verbs_cm_port(rails[i].cm));
		json_array_append_new(all, j);
	}
	return all;
}

static int read_qps(struct verbs_rail *r, const json_t *j, struct fb_err *e)
{
	const json_t *qps = json_object_get(j, "qps");

	if (json_array_size(qps) != r->nqp || r->remote.nqp != r->nqp ||
		r->remote.length != r->buf_len)
		return fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
			"the peer has %zu queue pairs and %llu bytes, we have %u and %zu",
			json_array_size(qps), (unsigned long long)r->remote.length, r->nqp,
			r->buf_len);
	for (unsigned q = 0; q < r->nqp; q++) {
		const json_t *one = json_array_get(qps, q);
		json_int_t qpn = json_integer_value(json_array_get(one, 0));
		json_int_t psn = json_integer_value(json_array_get(one, 1));
		if (json_array_size(one) != (r->xrc ? 4 : 2) || qpn < 0 || qpn > 0xffffff ||
			psn < 0 || psn > 0xffffff)
			return fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
				"the peer's queue pair %u has no valid number", q);
		if (r->xrc && (qpn = verbs_xrc_read(r->xrc, q, one)) < 0)
			return fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
				"the peer's queue pair %u has no valid XRC numbers", q);
		r->remote_qpn[q] = (uint32_t)qpn;
		r->remote_psn[q] = (uint32_t)psn;
	}
	return 0;
}

static int connect_qp(struct verbs_rail *r, unsigned q, const struct verbs_params *p,
	const struct ibv_ah_attr *ah, struct fb_err *e)
{
	const struct verbs_transport_info *t = &verbs_transports[p->transport];
	int own = r->dev->attr.max_qp_init_rd_atom;
	unsigned reads = own > 0 && (unsigned)own < r->remote.max_rd_atomic
				 ? (unsigned)own
				 : r->remote.max_rd_atomic;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
		.path_mtu = (enum ibv_mtu)verbs_mtu_enum(r->path_mtu),
		.dest_qp_num = r->remote_qpn[q],
		.rq_psn = r->remote_psn[q],
		.max_dest_rd_atomic = (uint8_t)r->local.max_rd_atomic,
		.min_rnr_timer = 12, /* 0.64 ms; smaller ones cause RNR storms on rxe */
		.ah_attr = *ah};
	int err = r->xrc ? verbs_xrc_connect(r, q, a, e) : 0;

	if (err)
		return err;
	err = ibv_modify_qp(r->qp[q], &a, t->rtr_mask);
	if (err) {
		fb_fail(e, FB_EXIT_UNMEASURED, err, "%s: QP to RTR, towards %s on %s: %s",
			r->dev->name, r->remote.device, r->remote.host, strerror(err));
		fb_hint(e,
			err == ETIMEDOUT || err == EHOSTUNREACH || err == ENETUNREACH
				? "the peer's GID has no route or does not answer ARP: ping its address from "
				  "this netdev"
				: "compare GID, MTU and P_Key with the device's limits; look at dmesg");
		return -err;
	}
	memset(&a, 0, sizeof a);
	a.qp_state = IBV_QPS_RTS;
	a.timeout = (uint8_t)r->qp_timeout;
	a.retry_cnt = (uint8_t)r->retry;
	a.rnr_retry = (uint8_t)r->rnr_retry;
	a.sq_psn = r->psn[q];
	a.max_rd_atomic = (uint8_t)(reads ? reads : 1);
	err = ibv_modify_qp(r->qp[q], &a, t->rts_mask);
	return err ? fb_fail(e, FB_EXIT_UNMEASURED, err, "%s: QP to RTS: %s", r->dev->name,
			     strerror(err))
		   : 0;
}

static int create_ah(struct verbs_rail *r, struct ibv_ah_attr *ah, struct fb_err *e)
{
	int err;

	r->ah = ibv_create_ah(r->pd, ah);
	if (r->ah)
		return 0;
	err = errno;
	fb_fail(e, FB_EXIT_UNMEASURED, err, "%s: address handle towards %s on %s: %s", r->dev->name,
		r->remote.device, r->remote.host, strerror(err));
	fb_hint(e, "the peer's GID has no route or does not answer ARP: ping its address from this "
		   "netdev");
	return -err;
}

/* The path's MTU is known now, and no packet has gone out. */
static int sizes_fit(const struct verbs_rail *r, const struct verbs_params *p, struct fb_err *e)
{
	for (int i = 0; i < p->nops; i++) {
		for (int k = 0; k < p->nsizes && !verbs_ops[p->ops[i]].atomic; k++) {
			int rc = verbs_size_fits((enum verbs_bench_kind)p->bench,
				(enum verbs_op)p->ops[i], r->transport, p->sizes[k], r->path_mtu,
				e);
			if (rc)
				return rc;
		}
	}
	return 0;
}

static int connect_rail(
	struct verbs_rail *r, const json_t *theirs, const struct verbs_params *p, struct fb_err *e)
{
	struct verbs_path_want want = {.sl = (unsigned)p->sl,
		.traffic_class = (unsigned)p->traffic_class,
		.flow_label = (unsigned)p->flow_label,
		.hop_limit = (unsigned)p->hop_limit};
	struct ibv_ah_attr ah;
	int rc = verbs_end_from_json(&r->remote, theirs, e);

	if (rc == 0)
		rc = verbs_params_settings_fit(p, json_object_get(theirs, "settings"), e);
	if (rc == 0)
		rc = verbs_ends_fit(&r->local, &r->remote, (unsigned)p->mtu, e);
	if (rc < 0)
		return rc;
	r->path_mtu = (unsigned)rc;
	rc = sizes_fit(r, p, e);
	if (rc == 0)
		rc = read_qps(r, theirs, e);
	if (rc == 0)
		rc = verbs_path(&r->local, &r->remote, &want, &ah, e);
	if (p->rdma_cm)
		return rc; /* the manager finds the path, once both ends have come so far */
	if (rc == 0 && verbs_transports[p->transport].datagram)
		rc = create_ah(r, &ah, e);
	for (unsigned q = 0; rc == 0 && q < r->nqp; q++)
		rc = connect_qp(r, q, p, &ah, e);
	return rc;
}

/* What the first QP was really told: its address vector names an entry of the GID table. */
static void find_used(struct verbs_rail *r)
{
	struct ibv_qp_attr a;
	struct ibv_qp_init_attr init;

	memset(&a, 0, sizeof a);
	r->used_known = verbs_transports[r->transport].type != IBV_QPT_UD &&
			ibv_query_qp(r->qp[0], &a, IBV_QP_AV, &init) == 0 && a.ah_attr.is_global &&
			verbs_dev_gid_at(r->dev, a.ah_attr.grh.sgid_index, &r->used) == 0;
	r->used_tc = a.ah_attr.grh.traffic_class;
}

static int connect_by_cm(struct verbs_rail *rails, unsigned n, const json_t *theirs,
	const struct verbs_params *p, struct fb_oob *o, uint64_t deadline, struct fb_err *e)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < n; i++) {
		int64_t port = fb_json_int(json_array_get(theirs, i), "cm_port", 0);
		if (port < 1 || port > 65535)
			rc = fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
				"the peer has named no rdma_cm port for rail %u", i);
		else
			rc = verbs_cm_connect(&rails[i], p, (unsigned)port, o, deadline, e);
	}
	/* The server waits for requests and not for us: what ends them must reach it. */
	if (rc && fb_oob_rank(o) == 0)
		fb_oob_abort(o, e);
	return rc;
}

/* The manager chooses GIDs by itself: both ends' choices must be of one type, and as asked for. */
static int compare_used(struct verbs_rail *rails, unsigned n, const struct verbs_params *p,
	struct fb_oob *o, uint64_t deadline, struct fb_err *e)
{
	json_t *mine = json_array(), *all = NULL;
	const json_t *theirs;
	int rc;

	for (unsigned i = 0; mine && i < n; i++)
		json_array_append_new(
			mine, json_pack("{s:i,s:i,s:i,s:b}", "gid_index", (int)rails[i].used.index,
				      "gid_type", (int)rails[i].used.type, "gid_family",
				      (int)rails[i].used.family, "known", rails[i].used_known));
	rc = fb_oob_gather_json(o, mine, &all, deadline, e);
	json_decref(mine);
	if (rc == 0)
		rc = fb_oob_bcast_json(o, &all, deadline, e);
	theirs = rc ? NULL : json_array_get(all, fb_oob_rank(o) == 0 ? 1 : 0);
	for (unsigned i = 0; rc == 0 && i < n; i++) {
		struct verbs_rail *r = &rails[i];
		const json_t *one = json_array_get(theirs, i);
		int64_t index = fb_json_int(one, "gid_index", -1),
			type = fb_json_int(one, "gid_type", -1),
			family = fb_json_int(one, "gid_family", -1);
		if (!r->used_known || !json_is_true(json_object_get(one, "known")))
			continue;
		if (index < 0 || index > 65535 || type < 0 || type > VERBS_GID_V2 || family < 0 ||
			family > VERBS_GID_NATIVE) {
			rc = fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
				"the peer has not said which GID rail %u uses", i);
			break;
		}
		r->remote.gid_index = (unsigned)index;
		r->remote.gid_type = (enum verbs_gid_type)type;
		r->remote.gid_family = (enum verbs_gid_family)family;
		rc = verbs_used_fits(&r->used, &r->remote, &r->dev->gid, r->used_tc,
			(unsigned)p->traffic_class, r->dev->name, e);
	}
	json_decref(all);
	return rc;
}

int verbs_connect(struct verbs_rail *rails, unsigned n, const struct verbs_params *p,
	struct fb_oob *o, uint64_t deadline, struct fb_err *e)
{
	json_t *mine = describe(rails, n, p), *all = NULL;
	const json_t *theirs;
	int rc;

	if (!mine)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the exchange");
	rc = fb_oob_gather_json(o, mine, &all, deadline, e);
	json_decref(mine);
	if (rc == 0)
		rc = fb_oob_bcast_json(o, &all, deadline, e);
	if (rc) {
		json_decref(all);
		return rc;
	}
	theirs = json_array_get(all, fb_oob_rank(o) == 0 ? 1 : 0);
	if (json_array_size(theirs) != n) {
		fb_fail(e, FB_EXIT_UNMEASURED, EPROTO, "%u rails here, %zu at the peer", n,
			json_array_size(theirs));
		fb_hint(e,
			"name the same number of devices at both ends with --device and --peer-device");
	}
	for (unsigned i = 0; e->code == 0 && i < n; i++)
		rc = connect_rail(&rails[i], json_array_get(theirs, i), p, e);
	if (p->rdma_cm && fb_oob_agree(o, e, deadline) == 0)
		rc = connect_by_cm(rails, n, theirs, p, o, deadline, e);
	json_decref(all);
	(void)rc;
	for (unsigned i = 0; e->code == 0 && i < n; i++)
		find_used(&rails[i]);
	if (p->rdma_cm && fb_oob_agree(o, e, deadline) == 0)
		(void)compare_used(rails, n, p, o, deadline, e);
	/* Collective, and therefore a barrier too: both ends are in RTS, or both know why not. */
	return fb_oob_agree(o, e, deadline);
}
