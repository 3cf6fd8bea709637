// SPDX-License-Identifier: Apache-2.0
/*
 * DCB answers of the kernel, byte for byte. Attributes come in any order and number; a wrong length
 * or nesting spoils the fact concerned and nothing beside it.
 */
#include "verbs/lossless/dcb.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/dcbnl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "bench/core/json.h"

/* Linux 6.3; older headers lack it. */
#define APP_TRUST_TABLE 11
#define ANSWER_MAX      65536

static void all_ieee(struct dcb_facts *d, enum fact_state s, const char *why)
{
	struct fact *const f[] = {&d->ieee, &d->ets_f, &d->pfc_f, &d->app_f, &d->buffer_f,
		&d->peer_pfc_f, &d->peer_ets_f, &d->peer_app_f, &d->trust_f};
	for (size_t i = 0; i < sizeof(f) / sizeof(f[0]); i++) {
		f[i]->state = s;
		snprintf(f[i]->why, sizeof(f[i]->why), "%s", why);
	}
}

static void broken(struct fact *f, const char *why)
{
	f->state = FACT_BROKEN;
	snprintf(f->why, sizeof(f->why), "%s", why);
}

/* What is not known of an answer that is cut off may have been in what is missing. */
static void cut_off(struct dcb_facts *d, bool dcbx)
{
	static const char why[] = "the kernel's answer is cut off";
	struct fact *const f[] = {&d->ieee, &d->ets_f, &d->pfc_f, &d->app_f, &d->buffer_f,
		&d->peer_pfc_f, &d->peer_ets_f, &d->peer_app_f, &d->trust_f};
	if (dcbx) {
		broken(&d->dcbx_f, why);
		return;
	}
	for (size_t i = 0; i < sizeof(f) / sizeof(f[0]); i++)
		if (f[i]->state != FACT_KNOWN || i == 0)
			broken(f[i], why);
}

static void known(struct fact *f)
{
	if (f->state == FACT_BROKEN)
		return;
	f->state = FACT_KNOWN;
	f->why[0] = '\0';
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* Calls fn for each whole attribute of [p, p + len). @return false when bytes are left over that
 * are no attribute. */
static bool each(const void *p, size_t len, void (*fn)(const struct nlattr *a, struct dcb_facts *d),
	struct dcb_facts *d)
{
	const char *at = p;
	while (len > 0) {
		const struct nlattr *a = (const void *)at;
		if (len < sizeof(*a) || a->nla_len < sizeof(*a) || a->nla_len > len)
			return false;
		fn(a, d);
		size_t step = MNL_ALIGN(a->nla_len);
		if (step >= len)
			return true;
		at += step;
		len -= step;
	}
	return true;
}

static const void *payload(const struct nlattr *a)
{
	return mnl_attr_get_payload(a);
}
static size_t payload_len(const struct nlattr *a)
{
	return mnl_attr_get_payload_len(a);
}

/* A fixed structure, copied out because answers are only 4-byte aligned. */
static bool fixed(const struct nlattr *a, void *out, size_t size, struct fact *f)
{
	if (payload_len(a) != size) {
		char why[96];
		snprintf(why, sizeof(why), "the kernel's answer has %zu bytes here instead of %zu",
			payload_len(a), size);
		broken(f, why);
		return false;
	}
	memcpy(out, payload(a), size);
	known(f);
	return true;
}

static void read_ets(const struct nlattr *a, struct dcb_ets *out, struct fact *f)
{
	struct ieee_ets x;
	if (!fixed(a, &x, sizeof(x), f))
		return;
	out->willing = x.willing;
	out->cap = x.ets_cap;
	out->cbs = x.cbs;
	memcpy(out->tc_tx_bw, x.tc_tx_bw, 8);
	memcpy(out->tsa, x.tc_tsa, 8);
	memcpy(out->prio_tc, x.prio_tc, 8);
}

static void read_pfc(const struct nlattr *a, struct dcb_pfc *out, struct fact *f)
{
	struct ieee_pfc x;
	if (!fixed(a, &x, sizeof(x), f))
		return;
	out->cap = x.pfc_cap;
	out->en = x.pfc_en;
	out->mbc = x.mbc;
	out->delay = x.delay;
	memcpy(out->sent, x.requests, sizeof(out->sent));
	memcpy(out->received, x.indications, sizeof(out->received));
}

static void read_buffer(const struct nlattr *a, struct dcb_facts *d)
{
	struct dcbnl_buffer x;
	if (!fixed(a, &x, sizeof(x), &d->buffer_f))
		return;
	memcpy(d->buffer.prio2buffer, x.prio2buffer, 8);
	memcpy(d->buffer.size, x.buffer_size, sizeof(d->buffer.size));
	d->buffer.total = x.total_size;
}

static void add_app(const struct nlattr *a, struct dcb_app_entry *list, int *n, struct fact *f)
{
	struct dcb_app x;
	if (mnl_attr_get_type(a) != DCB_ATTR_IEEE_APP)
		return;
	if (!fixed(a, &x, sizeof(x), f))
		return;
	if (*n == DCB_MAX_APP)
		broken(f, "more APP entries than any port has");
	else
		list[(*n)++] = (struct dcb_app_entry){x.selector, x.priority, x.protocol};
}
static void own_app(const struct nlattr *a, struct dcb_facts *d)
{
	add_app(a, d->app, &d->apps, &d->app_f);
}
/* The peer's entries are attributes of another number in the same form. */
static void peer_app(const struct nlattr *a, struct dcb_facts *d)
{
	struct dcb_app x;
	if (!fixed(a, &x, sizeof(x), &d->peer_app_f))
		return;
	if (d->peer_apps < DCB_MAX_APP)
		d->peer_app[d->peer_apps++] =
			(struct dcb_app_entry){x.selector, x.priority, x.protocol};
}

static void trust_entry(const struct nlattr *a, struct dcb_facts *d)
{
	if (payload_len(a) != 1)
		broken(&d->trust_f, "an entry of the trust table is no byte");
	else if (d->trusts < 8)
		d->trust[d->trusts++] = *(const uint8_t *)payload(a);
}

static void nested(const struct nlattr *a, void (*fn)(const struct nlattr *a, struct dcb_facts *d),
	struct dcb_facts *d, struct fact *f)
{
	known(f);
	if (!each(payload(a), payload_len(a), fn, d))
		broken(f, "the table is cut off");
}

static void ieee_entry(const struct nlattr *a, struct dcb_facts *d)
{
	switch (mnl_attr_get_type(a)) {
	case DCB_ATTR_IEEE_ETS: read_ets(a, &d->ets, &d->ets_f); break;
	case DCB_ATTR_IEEE_PFC: read_pfc(a, &d->pfc, &d->pfc_f); break;
	case DCB_ATTR_IEEE_APP_TABLE: nested(a, own_app, d, &d->app_f); break;
	case DCB_ATTR_IEEE_PEER_ETS: read_ets(a, &d->peer_ets, &d->peer_ets_f); break;
	case DCB_ATTR_IEEE_PEER_PFC: read_pfc(a, &d->peer_pfc, &d->peer_pfc_f); break;
	case DCB_ATTR_IEEE_PEER_APP: nested(a, peer_app, d, &d->peer_app_f); break;
	case DCB_ATTR_DCB_BUFFER: read_buffer(a, d); break;
	case APP_TRUST_TABLE: nested(a, trust_entry, d, &d->trust_f); break;
	default: break; /* a newer kernel's */
	}
}

static void top_entry(const struct nlattr *a, struct dcb_facts *d)
{
	switch (mnl_attr_get_type(a)) {
	case DCB_ATTR_IEEE:
		all_ieee(d, FACT_ABSENT, "not in the kernel's answer: the driver does not have it");
		d->apps = d->peer_apps = d->trusts = 0;
		known(&d->ieee);
		if (!each(payload(a), payload_len(a), ieee_entry, d))
			cut_off(d, false);
		break;
	case DCB_ATTR_DCBX: fixed(a, &d->dcbx, 1, &d->dcbx_f); break;
	default: break;
	}
}

/* ---- messages -------------------------------------------------------------------------------- */

static void refused(struct dcb_facts *d, int code, bool dcbx)
{
	char why[96];
	enum fact_state s = FACT_BROKEN;
	if (code == EOPNOTSUPP || code == ENODEV) {
		s = FACT_ABSENT;
		snprintf(why, sizeof(why), "the driver has no DCB (%s)", strerror(code));
	} else if (code == EPERM || code == EACCES) {
		s = FACT_HIDDEN;
		snprintf(why, sizeof(why), "not for this user (%s)", strerror(code));
	} else {
		snprintf(why, sizeof(why), "the kernel answered: %s", strerror(code));
	}
	if (!dcbx) {
		all_ieee(d, s, why);
	} else {
		d->dcbx_f.state = s;
		snprintf(d->dcbx_f.why, sizeof(d->dcbx_f.why), "%s", why);
	}
}

static void read_message(const struct nlmsghdr *h, struct dcb_facts *d, bool dcbx)
{
	size_t body = h->nlmsg_len - MNL_NLMSG_HDRLEN;
	const char *p = mnl_nlmsg_get_payload(h);
	if (h->nlmsg_type == NLMSG_ERROR) {
		int32_t code = 0;
		if (body >= sizeof(code))
			memcpy(&code, p, sizeof(code));
		if (code != 0 && code > -4096 && code < 4096)
			refused(d, code < 0 ? -code : code, dcbx);
		else if (code != 0)
			refused(d, EPROTO, dcbx);
		return;
	}
	if (h->nlmsg_type != RTM_GETDCB && h->nlmsg_type != RTM_SETDCB)
		return;
	if (body < sizeof(struct dcbmsg)) {
		cut_off(d, dcbx);
		return;
	}
	p += MNL_ALIGN(sizeof(struct dcbmsg));
	body -= MNL_ALIGN(sizeof(struct dcbmsg)) < body ? MNL_ALIGN(sizeof(struct dcbmsg)) : body;
	if (!each(p, body, top_entry, d))
		cut_off(d, dcbx);
}

static void read_messages(const void *answer, size_t len, struct dcb_facts *d, bool dcbx)
{
	const char *at = answer;
	bool any = false;
	while (len >= MNL_NLMSG_HDRLEN) {
		struct nlmsghdr h;
		memcpy(&h, at, sizeof(h));
		if (h.nlmsg_len < MNL_NLMSG_HDRLEN || h.nlmsg_len > len) {
			cut_off(d, dcbx);
			return;
		}
		read_message((const struct nlmsghdr *)(const void *)at, d, dcbx);
		any = true;
		size_t step = MNL_ALIGN(h.nlmsg_len);
		if (step >= len)
			return;
		at += step;
		len -= step;
	}
	if (!any || len > 0)
		cut_off(d, dcbx);
}

/* Nothing of an answer can be told: of all that it is asked for. */
static void all_broken(struct dcb_facts *d, bool dcbx, const char *why)
{
	if (dcbx)
		broken(&d->dcbx_f, why);
	else
		all_ieee(d, FACT_BROKEN, why);
}

void dcb_parse(const void *answer, size_t len, bool dcbx, struct dcb_facts *d)
{
	/* Recorded bytes lie anywhere; attributes want 4. */
	void *copy = malloc(len ? len : 1);
	if (!copy) {
		all_broken(d, dcbx, "no memory for the kernel's answer");
		return;
	}
	if (len > 0)
		memcpy(copy, answer, len);
	read_messages(copy, len, d, dcbx);
	free(copy);
	/* An acknowledgement alone, or another message: nothing was said. */
	if ((dcbx ? &d->dcbx_f : &d->ieee)->state == FACT_UNREAD)
		all_broken(d, dcbx, "the kernel answered, but not this question");
}

/* ---- asking ---------------------------------------------------------------------------------- */

static size_t request(char *buf, const char *ifname, bool dcbx)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
	h->nlmsg_type = RTM_GETDCB;
	h->nlmsg_flags = NLM_F_REQUEST;
	h->nlmsg_seq = 1;
	struct dcbmsg *m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
	m->dcb_family = AF_UNSPEC;
	m->cmd = dcbx ? DCB_CMD_GDCBX : DCB_CMD_IEEE_GET;
	mnl_attr_put_strz(h, DCB_ATTR_IFNAME, ifname);
	return h->nlmsg_len;
}

int dcb_ask(const char *ifname, bool dcbx, void **answer, size_t *len)
{
	char ask[256];
	*answer = NULL;
	*len = 0;
	if (strlen(ifname) >= 32)
		return -EINVAL;
	struct mnl_socket *s = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	if (!s)
		return -errno;
	int rc = 0;
	/* The kernel answers from the call itself; a broken driver must not hang us all the same.
	 */
	const struct timeval limit = {.tv_sec = 2};
	setsockopt(mnl_socket_get_fd(s), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	char *buf = malloc(ANSWER_MAX);
	ssize_t n = -1;
	if (!buf)
		errno = ENOMEM;
	else if (mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) == 0 &&
		 mnl_socket_sendto(s, ask, request(ask, ifname, dcbx)) > 0)
		n = mnl_socket_recvfrom(s, buf, ANSWER_MAX);
	if (n < 0) {
		rc = -errno;
		free(buf);
	} else {
		*answer = buf;
		*len = (size_t)n;
	}
	mnl_socket_close(s);
	return rc;
}

static void name_reads(struct dcb_facts *d, const char *ieee, const char *dcbx)
{
	struct fact *const f[] = {&d->ieee, &d->ets_f, &d->pfc_f, &d->app_f, &d->buffer_f,
		&d->peer_pfc_f, &d->peer_ets_f, &d->peer_app_f, &d->trust_f};
	for (size_t i = 0; i < sizeof(f) / sizeof(f[0]); i++)
		snprintf(f[i]->read, sizeof(f[i]->read), "%s", ieee);
	snprintf(d->dcbx_f.read, sizeof(d->dcbx_f.read), "%s", dcbx);
}

static void read_recorded(
	const struct fb_sysroot *r, const char *ifname, bool dcbx, struct dcb_facts *d)
{
	char path[96], real[4096];
	struct fb_err e = {0};
	char *bytes = NULL;
	size_t len = 0;
	if (dcbx)
		snprintf(path, sizeof(path), DCB_RECORDED_DCBX, ifname);
	else
		snprintf(path, sizeof(path), DCB_RECORDED_IEEE, ifname);
	if (fb_sysroot_path(r, path, real, sizeof(real)) == 0 &&
		fb_read_file(real, ANSWER_MAX, &bytes, &len, &e) == 0) {
		dcb_parse(bytes, len, dcbx, d);
		free(bytes);
		return;
	}
	if (dcbx) {
		d->dcbx_f.state = FACT_HIDDEN;
		snprintf(d->dcbx_f.why, sizeof(d->dcbx_f.why), "not recorded");
	} else {
		all_ieee(d, FACT_HIDDEN, "not recorded");
	}
}

static void read_live(const char *ifname, bool dcbx, struct dcb_facts *d)
{
	void *answer = NULL;
	size_t len = 0;
	int rc = dcb_ask(ifname, dcbx, &answer, &len);
	if (rc != 0)
		refused(d, -rc, dcbx);
	else
		dcb_parse(answer, len, dcbx, d);
	free(answer);
}

void dcb_read(const struct fb_sysroot *r, const char *ifname, struct dcb_facts *d)
{
	char ieee[160], dcbx[160];
	bool live = fb_sysroot_is_live(r);
	if (live) {
		snprintf(ieee, sizeof(ieee), "netlink RTM_GETDCB IEEE_GET %s", ifname);
		snprintf(dcbx, sizeof(dcbx), "netlink RTM_GETDCB GDCBX %s", ifname);
	} else {
		snprintf(ieee, sizeof(ieee), DCB_RECORDED_IEEE, ifname);
		snprintf(dcbx, sizeof(dcbx), DCB_RECORDED_DCBX, ifname);
	}
	for (int k = 0; k < 2; k++) {
		if (live)
			read_live(ifname, k == 1, d);
		else
			read_recorded(r, ifname, k == 1, d);
	}
	name_reads(d, ieee, dcbx);
}
