// SPDX-License-Identifier: Apache-2.0
/*
 * XRC domains, receive queues and target queue pairs. Attributes of each state: IBTA vol. 1, 11.2.5
 * and annex A14.
 */
#include "verbs/xrc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/conn.h"

static int refuse(struct fb_err *e, const struct verbs_rail *r, const char *what)
{
	int err = errno ? errno : EIO;

	fb_fail(e, FB_EXIT_UNMEASURED, err, "cannot create %s on %s: %s", what, r->dev->name,
		strerror(err));
	fb_hint(e,
		"fewer --qps or a smaller --rx-depth; max_srq and max_srq_wr in ibv_devinfo -v are "
		"the device's limits");
	return -err;
}

static int open_one(
	struct verbs_rail *r, const struct verbs_params *p, unsigned q, struct fb_err *e)
{
	struct verbs_xrc *x = r->xrc;
	struct ibv_srq_init_attr_ex s = {.attr = {.max_wr = (uint32_t)p->rx_depth, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
		.xrcd = x->domain,
		.cq = r->rx_cq,
		.pd = r->pd};
	struct ibv_qp_init_attr_ex t = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = x->domain};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
		.pkey_index = (uint16_t)r->dev->pkey_index,
		.port_num = (uint8_t)r->dev->port,
		.qp_access_flags = (unsigned)verbs_transports[VERBS_XRC].qp_access};
	int err;

	errno = 0;
	x->srq[q] = ibv_create_srq_ex(r->dev->ctx, &s);
	if (!x->srq[q] || ibv_get_srq_num(x->srq[q], &x->srqn[q]) != 0)
		return refuse(e, r, "an XRC receive queue");
	x->target[q] = ibv_create_qp_ex(r->dev->ctx, &t);
	if (!x->target[q])
		return refuse(e, r, "an XRC target queue pair");
	err = ibv_modify_qp(x->target[q], &a, verbs_transports[VERBS_XRC].init_mask);
	return err ? fb_fail(e, FB_EXIT_UNMEASURED, err, "%s: XRC target to INIT: %s", r->dev->name,
			     strerror(err))
		   : 0;
}

int verbs_xrc_open(struct verbs_rail *r, const struct verbs_params *p, struct fb_err *e)
{
	struct ibv_xrcd_init_attr d = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT};
	struct verbs_xrc *x = r->xrc = calloc(1, sizeof *x);
	int rc = 0;

	if (!x)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for XRC");
	x->n = r->nqp;
	x->srq = calloc(r->nqp, sizeof *x->srq);
	x->target = calloc(r->nqp, sizeof *x->target);
	x->srqn = calloc(3 * (size_t)r->nqp, sizeof *x->srqn);
	if (!x->srq || !x->target || !x->srqn)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for XRC");
	x->remote_srqn = x->srqn + r->nqp;
	x->remote_qpn = x->srqn + 2 * (size_t)r->nqp;
	errno = 0;
	x->domain = ibv_open_xrcd(r->dev->ctx, &d);
	if (!x->domain)
		return refuse(e, r, "an XRC domain");
	for (unsigned q = 0; rc == 0 && q < r->nqp; q++)
		rc = open_one(r, p, q, e);
	return rc;
}

void verbs_xrc_close(struct verbs_xrc *x)
{
	if (!x)
		return;
	for (unsigned q = 0; q < x->n; q++) {
		if (x->target && x->target[q])
			ibv_destroy_qp(x->target[q]);
		if (x->srq && x->srq[q])
			ibv_destroy_srq(x->srq[q]);
	}
	if (x->domain)
		ibv_close_xrcd(x->domain);
	free(x->srqn);
	free(x->target);
	free(x->srq);
	free(x);
}

void verbs_xrc_describe(const struct verbs_xrc *x, unsigned q, json_t *one)
{
	json_array_append_new(one, json_integer(x->target[q]->qp_num));
	json_array_append_new(one, json_integer(x->srqn[q]));
}

int64_t verbs_xrc_read(struct verbs_xrc *x, unsigned q, const json_t *one)
{
	json_int_t target = json_integer_value(json_array_get(one, 2));
	json_int_t srq = json_integer_value(json_array_get(one, 3));

	if (!json_is_integer(json_array_get(one, 2)) || !json_is_integer(json_array_get(one, 3)) ||
		target < 0 || target > 0xffffff || srq < 0 || srq > 0xffffff)
		return -EPROTO;
	x->remote_qpn[q] = (uint32_t)json_integer_value(json_array_get(one, 0));
	x->remote_srqn[q] = (uint32_t)srq;
	return target;
}

int verbs_xrc_connect(struct verbs_rail *r, unsigned q, struct ibv_qp_attr a, struct fb_err *e)
{
	int err;

	a.dest_qp_num = r->xrc->remote_qpn[q];
	/* Of all transports' targets this one alone is a responder and nothing else. */
	err = ibv_modify_qp(r->xrc->target[q], &a,
		verbs_transports[VERBS_XRC].rtr_mask | IBV_QP_MAX_DEST_RD_ATOMIC |
			IBV_QP_MIN_RNR_TIMER);
	return err ? fb_fail(e, FB_EXIT_UNMEASURED, err, "%s: XRC target to RTR: %s", r->dev->name,
			     strerror(err))
		   : 0;
}
