// SPDX-License-Identifier: Apache-2.0
/*
 * rdma_cm with queue pairs of our own: without a QP at the id, librdmacm hands the response to us
 * (RDMA_CM_EVENT_CONNECT_RESPONSE), rdma_init_qp_attr() gives the attributes of each state, and
 * rdma_establish() ends the handshake. See rdma_connect(3) and rdma_establish(3).
 */
#include "verbs/cm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/clock.h"
#include "bench/core/result.h"

#define RESOLVE_MS 5000
/* One whole handshake; the manager's own retries take up to about a minute, which helps nobody. */
#define STEP_NS  15000000000ull
#define SLICE_MS 50
#define MAGIC    0x66627631u /* "fbv1" */

struct verbs_cm {
	struct rdma_event_channel *ch;
	struct rdma_cm_id *listen;
	struct rdma_cm_id **id; /**< one for each QP */
	unsigned nqp;
	unsigned port;
};

/* What a request carries: which of our queue pairs it is for. Network order. */
struct request {
	uint32_t magic;
	uint32_t qp;
};

/* An event, after it was acknowledged. */
struct seen {
	struct rdma_cm_id *id;
	enum rdma_cm_event_type type;
	int status;
	uint32_t qpn;
	struct request req;
	bool has_req;
};

socklen_t verbs_cm_sockaddr(
	const union ibv_gid *gid, uint32_t ifindex, unsigned port, struct sockaddr_storage *ss)
{
	enum verbs_gid_family family = verbs_gid_family_of(gid, false);

	memset(ss, 0, sizeof *ss);
	if (family == VERBS_GID_IPV4) {
		struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
		memcpy(&in.sin_addr, gid->raw + 12, 4);
		memcpy(ss, &in, sizeof in);
		return sizeof in;
	}
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	memcpy(&in6.sin6_addr, gid->raw, 16);
	if (family == VERBS_GID_LINK_LOCAL)
		in6.sin6_scope_id = ifindex;
	memcpy(ss, &in6, sizeof in6);
	return sizeof in6;
}

static int failed(const struct verbs_rail *r, const char *what, int err, struct fb_err *e)
{
	char gid[INET6_ADDRSTRLEN];

	fb_fail(e, FB_EXIT_UNMEASURED, err, "rdma_cm on %s (%s): %s: %s", r->dev->name,
		verbs_gid_str(&r->dev->gid.raw, gid, sizeof gid), what, strerror(err));
	return -err;
}

static int set_tos(
	struct verbs_rail *r, struct rdma_cm_id *id, const struct verbs_params *p, struct fb_err *e)
{
	uint8_t tos = (uint8_t)p->traffic_class;

	if (!tos)
		return 0; /* the port's own default (configfs default_roce_tos) stays */
	if (rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof tos) == 0)
		return 0;
	return failed(r, "setting the traffic class (RDMA_OPTION_ID_TOS)", errno, e);
}

int verbs_cm_open(struct verbs_rail *r, const struct verbs_params *p, struct fb_err *e)
{
	struct sockaddr_storage ss;
	struct verbs_cm *cm;
	int rc;

	if (r->dev->port_attr.link_layer == IBV_LINK_LAYER_INFINIBAND) {
		fb_fail(e, FB_EXIT_UNMEASURED, EOPNOTSUPP,
			"--rdma-cm: %s is InfiniBand, where the manager needs IPoIB addresses; only RoCE "
			"is supported",
			r->dev->name);
		fb_hint(e, "leave --rdma-cm out");
		return -EOPNOTSUPP;
	}
	cm = calloc(1, sizeof *cm);
	if (cm)
		cm->id = calloc(r->nqp, sizeof *cm->id);
	if (!cm || !cm->id) {
		free(cm);
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for rdma_cm");
	}
	cm->nqp = r->nqp;
	r->cm = cm; /* from here verbs_rail_close() frees it */
	cm->ch = rdma_create_event_channel();
	if (!cm->ch) {
		rc = failed(r, "rdma_create_event_channel", errno, e);
		fb_hint(e, "modprobe rdma_ucm; /dev/infiniband/rdma_cm must be writable");
		return rc;
	}
	fcntl(cm->ch->fd, F_SETFL, fcntl(cm->ch->fd, F_GETFL) | O_NONBLOCK);
	if (rdma_create_id(cm->ch, &cm->listen, NULL, RDMA_PS_TCP) != 0) {
		cm->listen = NULL;
		return failed(r, "rdma_create_id", errno, e);
	}
	rc = set_tos(r, cm->listen, p, e);
	if (rc)
		return rc;
	verbs_cm_sockaddr(&r->dev->gid.raw, r->dev->gid.ifindex, 0, &ss);
	if (rdma_bind_addr(cm->listen, (struct sockaddr *)&ss) != 0 ||
		rdma_listen(cm->listen, (int)r->nqp) != 0) {
		rc = failed(r, "listening on the device's address", errno, e);
		fb_hint(e, "the GID's address must be on its netdev: ip addr show dev %s",
			r->dev->netdev);
		return rc;
	}
	cm->port = ntohs(rdma_get_src_port(cm->listen));
	return 0;
}

unsigned verbs_cm_port(const struct verbs_cm *cm)
{
	return cm->port;
}

static void close_listener(struct verbs_cm *cm)
{
	if (cm->listen)
		rdma_destroy_id(cm->listen);
	cm->listen = NULL;
}

void verbs_cm_close(struct verbs_cm *cm)
{
	if (!cm)
		return;
	for (unsigned q = 0; q < cm->nqp; q++)
		if (cm->id[q])
			rdma_destroy_id(cm->id[q]); /* ends the connection too */
	close_listener(cm);
	if (cm->ch)
		rdma_destroy_event_channel(cm->ch);
	free(cm->id);
	free(cm);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void take(const struct rdma_cm_event *ev, struct seen *s)
{
	memset(s, 0, sizeof *s);
	s->id = ev->id;
	s->type = ev->event;
	s->status = ev->status;
	if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		s->qpn = ev->param.conn.qp_num;
		/* The manager pads private data to its whole field. */
		if (ev->param.conn.private_data &&
			ev->param.conn.private_data_len >= sizeof s->req) {
			memcpy(&s->req, ev->param.conn.private_data, sizeof s->req);
			s->has_req = true;
		}
	}
}

static int next_event(struct verbs_cm *cm, const struct verbs_rail *r, struct fb_oob *o,
	uint64_t deadline, const char *what, struct seen *s, struct fb_err *e)
{
	for (;;) {
		struct pollfd pf = {.fd = cm->ch->fd, .events = POLLIN};
		struct rdma_cm_event *ev;
		int rc;
		if (rdma_get_cm_event(cm->ch, &ev) == 0) {
			take(ev, s);
			rdma_ack_cm_event(ev);
			return 0;
		}
		if (errno != EAGAIN && errno != EINTR)
			return failed(r, what, errno, e);
		rc = fb_oob_lost(o, e);
		if (rc)
			return rc;
		if (fb_stop_requested())
			return fb_fail(e, FB_EXIT_UNMEASURED, EINTR, "stopped by a signal");
		if (fb_clock_ns() > deadline) {
			rc = failed(r, what, ETIMEDOUT, e);
			fb_hint(e,
				"does the peer's address answer from this netdev? ping it; is UDP port "
				"4791 open on the way?");
			return rc;
		}
		(void)poll(&pf, 1, SLICE_MS);
	}
}

static int unexpected(
	const struct verbs_rail *r, const char *what, const struct seen *s, struct fb_err *e)
{
	/* Of a rejection the status is the manager's own reason code, else a negative errno. */
	int err = s->status < 0 ? -s->status : ECONNREFUSED;
	char gid[INET6_ADDRSTRLEN];

	fb_fail(e, FB_EXIT_UNMEASURED, err, "rdma_cm on %s: %s towards %s: %s (status %d%s%s)",
		r->dev->name, what, verbs_gid_str(&r->remote.gid, gid, sizeof gid),
		rdma_event_str(s->type), s->status, s->status < 0 ? ": " : "",
		s->status < 0 ? strerror(-s->status) : "");
	fb_hint(e,
		"ping that address from %s; compare ip route get and the rdma_cm module at both ends",
		r->dev->netdev[0] ? r->dev->netdev : r->dev->name);
	return -err;
}

static int wait_for(struct verbs_cm *cm, const struct verbs_rail *r, struct fb_oob *o,
	uint64_t deadline, enum rdma_cm_event_type want, const char *what, struct fb_err *e)
{
	struct seen s = {0};
	int rc = next_event(cm, r, o, deadline, what, &s, e);

	if (rc)
		return rc;
	return s.type == want ? 0 : unexpected(r, what, &s, e);
}

/* ---- states ---------------------------------------------------------------------------------- */

static int to_rts(struct verbs_rail *r, unsigned q, struct rdma_cm_id *id,
	const struct verbs_params *p, struct fb_err *e)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR};
	int mask, err;

	if (rdma_init_qp_attr(id, &a, &mask) != 0)
		return failed(r, "rdma_init_qp_attr for RTR", errno, e);
	a.path_mtu = (enum ibv_mtu)verbs_mtu_enum(r->path_mtu);
	a.min_rnr_timer = 12; /* as without the manager: conn.c */
	if (p->flow_label)
		a.ah_attr.grh.flow_label = (uint32_t)p->flow_label;
	if (p->sl)
		a.ah_attr.sl = (uint8_t)p->sl;
	err = ibv_modify_qp(r->qp[q], &a, mask);
	if (err)
		return failed(r, "QP to RTR", err, e);
	memset(&a, 0, sizeof a);
	a.qp_state = IBV_QPS_RTS;
	if (rdma_init_qp_attr(id, &a, &mask) != 0)
		return failed(r, "rdma_init_qp_attr for RTS", errno, e);
	a.timeout = (uint8_t)r->qp_timeout;
	a.retry_cnt = (uint8_t)r->retry;
	a.rnr_retry = (uint8_t)r->rnr_retry;
	err = ibv_modify_qp(r->qp[q], &a, mask);
	return err ? failed(r, "QP to RTS", err, e) : 0;
}

static void fill_param(const struct verbs_rail *r, unsigned q, const struct request *req,
	struct rdma_conn_param *c)
{
	unsigned own = r->dev->attr.max_qp_init_rd_atom > 0
			       ? (unsigned)r->dev->attr.max_qp_init_rd_atom
			       : 1;
	unsigned reads = own < r->remote.max_rd_atomic ? own : r->remote.max_rd_atomic;

	memset(c, 0, sizeof *c);
	c->private_data = req;
	c->private_data_len = req ? sizeof *req : 0;
	c->responder_resources = (uint8_t)r->local.max_rd_atomic;
	c->initiator_depth = (uint8_t)(reads ? reads : 1);
	c->retry_count = (uint8_t)r->retry;
	c->rnr_retry_count = (uint8_t)r->rnr_retry;
	c->qp_num = r->qp[q]->qp_num;
}

/* ---- active side ----------------------------------------------------------------------------- */

static int resolve(struct verbs_rail *r, struct rdma_cm_id *id, const struct verbs_params *p,
	unsigned port, struct fb_oob *o, uint64_t deadline, struct fb_err *e)
{
	struct sockaddr_storage src, dst;
	int rc;

	rc = set_tos(r, id, p, e);
	if (rc)
		return rc;
	verbs_cm_sockaddr(&r->dev->gid.raw, r->dev->gid.ifindex, 0, &src);
	verbs_cm_sockaddr(&r->remote.gid, r->dev->gid.ifindex, port, &dst);
	if (rdma_resolve_addr(id, (struct sockaddr *)&src, (struct sockaddr *)&dst, RESOLVE_MS) !=
		0)
		return failed(r, "rdma_resolve_addr", errno, e);
	rc = wait_for(
		r->cm, r, o, deadline, RDMA_CM_EVENT_ADDR_RESOLVED, "resolving the address", e);
	if (rc)
		return rc;
	if (!id->verbs || strcmp(ibv_get_device_name(id->verbs->device), r->dev->name) != 0 ||
		id->port_num != r->dev->port) {
		fb_fail(e, FB_EXIT_UNMEASURED, EADDRNOTAVAIL,
			"rdma_cm goes out by %s port %u, and not by %s port %u",
			id->verbs ? ibv_get_device_name(id->verbs->device) : "no device",
			id->port_num, r->dev->name, r->dev->port);
		fb_hint(e, "routes decide: look at ip route get, or leave --rdma-cm out");
		return -EADDRNOTAVAIL;
	}
	if (rdma_resolve_route(id, RESOLVE_MS) != 0)
		return failed(r, "rdma_resolve_route", errno, e);
	return wait_for(
		r->cm, r, o, deadline, RDMA_CM_EVENT_ROUTE_RESOLVED, "resolving the route", e);
}

static int connect_one(struct verbs_rail *r, unsigned q, const struct verbs_params *p,
	unsigned port, struct fb_oob *o, uint64_t deadline, struct fb_err *e)
{
	struct request req = {htonl(MAGIC), htonl(q)};
	struct rdma_conn_param c;
	struct rdma_cm_id *id;
	int rc;

	if (rdma_create_id(r->cm->ch, &id, NULL, RDMA_PS_TCP) != 0)
		return failed(r, "rdma_create_id", errno, e);
	r->cm->id[q] = id;
	rc = resolve(r, id, p, port, o, deadline, e);
	if (rc)
		return rc;
	fill_param(r, q, &req, &c);
	if (rdma_connect(id, &c) != 0)
		return failed(r, "rdma_connect", errno, e);
	rc = wait_for(r->cm, r, o, deadline, RDMA_CM_EVENT_CONNECT_RESPONSE, "connecting", e);
	if (rc == 0)
		rc = to_rts(r, q, id, p, e);
	if (rc == 0 && rdma_establish(id) != 0)
		rc = failed(r, "rdma_establish", errno, e);
	return rc;
}

/* ---- passive side ---------------------------------------------------------------------------- */

/* @return 1: ours and answered; 0: a stranger, turned away; -errno */
static int accept_one(
	struct verbs_rail *r, const struct seen *s, const struct verbs_params *p, struct fb_err *e)
{
	unsigned q = s->has_req ? ntohl(s->req.qp) : r->nqp;
	struct rdma_conn_param c;
	int rc;

	if (!s->has_req || ntohl(s->req.magic) != MAGIC || q >= r->nqp || r->cm->id[q] ||
		s->qpn != r->remote_qpn[q]) {
		(void)rdma_reject(s->id, NULL, 0);
		rdma_destroy_id(s->id);
		return 0;
	}
	r->cm->id[q] = s->id;
	rc = to_rts(r, q, s->id, p, e);
	if (rc) {
		(void)rdma_reject(s->id, NULL, 0);
		return rc;
	}
	fill_param(r, q, NULL, &c);
	if (rdma_accept(s->id, &c) != 0)
		return failed(r, "rdma_accept", errno, e);
	return 1;
}

static int accept_all(struct verbs_rail *r, const struct verbs_params *p, struct fb_oob *o,
	uint64_t deadline, struct fb_err *e)
{
	unsigned up = 0;

	while (up < r->nqp) {
		struct seen s = {0};
		int rc =
			next_event(r->cm, r, o, deadline, "waiting for the peer's requests", &s, e);
		if (rc)
			return rc;
		if (s.type == RDMA_CM_EVENT_CONNECT_REQUEST)
			rc = accept_one(r, &s, p, e);
		else if (s.type == RDMA_CM_EVENT_ESTABLISHED)
			up++;
		else
			rc = unexpected(r, "accepting", &s, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int verbs_cm_connect(struct verbs_rail *r, const struct verbs_params *p, unsigned peer_port,
	struct fb_oob *o, uint64_t deadline, struct fb_err *e)
{
	uint64_t limit = fb_deadline_in(STEP_NS + r->nqp * 50000000ull);
	int rc = 0;

	if (limit > deadline)
		limit = deadline;
	if (fb_oob_rank(o) != 0)
		return accept_all(r, p, o, limit, e);
	close_listener(r->cm);
	for (unsigned q = 0; rc == 0 && q < r->nqp; q++)
		rc = connect_one(r, q, p, peer_port, o, limit, e);
	return rc;
}
