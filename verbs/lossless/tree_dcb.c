// SPDX-License-Identifier: Apache-2.0
/*
 * The kernel's DCB answers, made of facts: what dcb.c reads, the other way round. Order and nesting
 * are those of net/dcb/dcbnl.c dcbnl_ieee_fill().
 */
#include <libmnl/libmnl.h>
#include <linux/dcbnl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "verbs/lossless/tree_priv.h"

#define APP_TRUST_TABLE 11 /* Linux 6.3: DCB_ATTR_DCB_APP_TRUST_TABLE */
#define DCB_APP_ENTRY   2  /* of a selector that is not IEEE's */
/* Header, message, name, and every table at its largest. */
#define LARGEST 8192

static struct nlmsghdr *head(char *buf, const char *ifname, uint8_t cmd)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
	h->nlmsg_type = RTM_GETDCB;
	h->nlmsg_seq = 1;
	struct dcbmsg *m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
	m->dcb_family = AF_UNSPEC;
	m->cmd = cmd;
	mnl_attr_put_strz(h, DCB_ATTR_IFNAME, ifname);
	return h;
}

static void put_ets(struct nlmsghdr *h, uint16_t type, const struct dcb_ets *e)
{
	struct ieee_ets x = {.willing = e->willing, .ets_cap = e->cap, .cbs = e->cbs};
	memcpy(x.tc_tx_bw, e->tc_tx_bw, 8);
	memcpy(x.tc_rx_bw, e->tc_tx_bw, 8);
	memcpy(x.tc_tsa, e->tsa, 8);
	memcpy(x.prio_tc, e->prio_tc, 8);
	mnl_attr_put(h, type, sizeof(x), &x);
}

static void put_pfc(struct nlmsghdr *h, uint16_t type, const struct dcb_pfc *p)
{
	struct ieee_pfc x = {.pfc_cap = p->cap, .pfc_en = p->en, .mbc = p->mbc, .delay = p->delay};
	memcpy(x.requests, p->sent, sizeof(x.requests));
	memcpy(x.indications, p->received, sizeof(x.indications));
	mnl_attr_put(h, type, sizeof(x), &x);
}

static void put_apps(struct nlmsghdr *h, uint16_t type, const struct dcb_app_entry *a, int n)
{
	struct nlattr *table = mnl_attr_nest_start(h, type);
	for (int i = 0; i < n; i++) {
		const struct dcb_app x = {.selector = a[i].selector,
			.priority = a[i].priority,
			.protocol = a[i].protocol};
		mnl_attr_put(h, DCB_ATTR_IEEE_APP, sizeof(x), &x);
	}
	mnl_attr_nest_end(h, table);
}

static void put_buffer(struct nlmsghdr *h, const struct dcb_buffer *b)
{
	struct dcbnl_buffer x = {.total_size = b->total};
	memcpy(x.prio2buffer, b->prio2buffer, 8);
	memcpy(x.buffer_size, b->size, sizeof(x.buffer_size));
	mnl_attr_put(h, DCB_ATTR_DCB_BUFFER, sizeof(x), &x);
}

static void put_trust(struct nlmsghdr *h, const struct dcb_facts *d)
{
	struct nlattr *table = mnl_attr_nest_start(h, APP_TRUST_TABLE);
	for (int i = 0; i < d->trusts; i++)
		mnl_attr_put_u8(
			h, d->trust[i] > 5 ? DCB_APP_ENTRY : DCB_ATTR_IEEE_APP, d->trust[i]);
	mnl_attr_nest_end(h, table);
}

size_t tree_dcb_ieee(const struct dcb_facts *d, const char *ifname, char *buf, size_t len)
{
	if (len < LARGEST)
		return 0;
	memset(buf, 0, len);
	struct nlmsghdr *h = head(buf, ifname, DCB_CMD_IEEE_GET);
	struct nlattr *ieee = mnl_attr_nest_start(h, DCB_ATTR_IEEE);
	if (fact_known(&d->ets_f))
		put_ets(h, DCB_ATTR_IEEE_ETS, &d->ets);
	if (fact_known(&d->pfc_f))
		put_pfc(h, DCB_ATTR_IEEE_PFC, &d->pfc);
	if (fact_known(&d->buffer_f))
		put_buffer(h, &d->buffer);
	if (fact_known(&d->app_f))
		put_apps(h, DCB_ATTR_IEEE_APP_TABLE, d->app, d->apps);
	if (fact_known(&d->trust_f))
		put_trust(h, d);
	if (fact_known(&d->peer_ets_f))
		put_ets(h, DCB_ATTR_IEEE_PEER_ETS, &d->peer_ets);
	if (fact_known(&d->peer_pfc_f))
		put_pfc(h, DCB_ATTR_IEEE_PEER_PFC, &d->peer_pfc);
	if (fact_known(&d->peer_app_f))
		put_apps(h, DCB_ATTR_IEEE_PEER_APP, d->peer_app, d->peer_apps);
	mnl_attr_nest_end(h, ieee);
	return h->nlmsg_len;
}

size_t tree_dcb_dcbx(const struct dcb_facts *d, const char *ifname, char *buf, size_t len)
{
	if (len < LARGEST)
		return 0;
	memset(buf, 0, len);
	struct nlmsghdr *h = head(buf, ifname, DCB_CMD_GDCBX);
	mnl_attr_put_u8(h, DCB_ATTR_DCBX, d->dcbx);
	return h->nlmsg_len;
}

size_t tree_dcb_error(int code, char *buf, size_t len)
{
	if (len < LARGEST)
		return 0;
	memset(buf, 0, len);
	struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
	h->nlmsg_type = NLMSG_ERROR;
	struct nlmsgerr *m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
	m->error = -code;
	m->msg.nlmsg_len = MNL_NLMSG_HDRLEN;
	m->msg.nlmsg_type = RTM_GETDCB;
	return h->nlmsg_len;
}
