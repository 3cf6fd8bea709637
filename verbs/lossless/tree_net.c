// SPDX-License-Identifier: Apache-2.0
/*
 * Words of a .tree file about an interface: its DCB tables and what ethtool tells of it, gathered
 * until all lines are read and then written as answers.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "verbs/lossless/ethtool.h"
#include "verbs/lossless/tree_words.h"

/* ---- DCB ------------------------------------------------------------------------------------- */

static int priorities(struct tree_maker *m, char **w, int n, uint8_t *bits)
{
	*bits = 0;
	if (n == 2 && strcmp(w[1], "none") == 0)
		return 0;
	for (int i = 1; i < n; i++) {
		long v;
		int rc = tree_number(m, w[i], 7, &v);
		if (rc < 0)
			return rc;
		*bits |= (uint8_t)(1u << v);
	}
	return n > 1 ? 0 : tree_wrong(m, "%s PRIORITY..., or none", w[0]);
}

int tree_do_pfc(struct tree_maker *m, char **w, int n)
{
	int rc = tree_want_net(m);
	if (rc < 0)
		return rc;
	struct dcb_facts *d = &m->net->dcb;
	bool peer = strcmp(w[0], "peer-pfc") == 0;
	struct dcb_pfc *p = peer ? &d->peer_pfc : &d->pfc;
	struct fact *f = peer ? &d->peer_pfc_f : &d->pfc_f;
	if (f->state != FACT_KNOWN)
		p->cap = 8;
	f->state = FACT_KNOWN;
	m->net->has_dcb = true;
	return priorities(m, w, n, &p->en);
}

/* pfc-cap CLASSES; pfc-delay METRES */
int tree_do_pfc_field(struct tree_maker *m, char **w, int n)
{
	long v = 0;
	int rc = tree_want_net(m);
	if (rc == 0 && n != 2)
		rc = tree_wrong(m, "%s NUMBER", w[0]);
	if (rc == 0)
		rc = tree_number(m, w[1], strcmp(w[0], "pfc-cap") == 0 ? 8 : 65535, &v);
	if (rc < 0)
		return rc;
	if (strcmp(w[0], "pfc-cap") == 0)
		m->net->dcb.pfc.cap = (uint8_t)v;
	else
		m->net->dcb.pfc.delay = (uint16_t)v;
	return 0;
}

int tree_do_app(struct tree_maker *m, char **w, int n)
{
	static const char *const names[] = {"", "ethertype", "tcp", "udp", "any", "dscp"};
	long protocol, prio, selector = 0;
	int rc = tree_want_net(m);
	if (rc < 0)
		return rc;
	struct dcb_facts *d = &m->net->dcb;
	bool peer = strcmp(w[0], "peer-app") == 0;
	struct dcb_app_entry *list = peer ? d->peer_app : d->app;
	int *k = peer ? &d->peer_apps : &d->apps;
	(peer ? &d->peer_app_f : &d->app_f)->state = FACT_KNOWN;
	m->net->has_dcb = true;
	if (n == 2 && strcmp(w[1], "none") == 0) {
		*k = 0;
		return 0;
	}
	if (n != 4)
		return tree_wrong(
			m, "%s dscp|udp|tcp|any|ethertype PROTOCOL PRIORITY, or none", w[0]);
	for (int i = 1; i < 6; i++)
		if (strcmp(w[1], names[i]) == 0)
			selector = i;
	rc = selector ? 0 : tree_number(m, w[1], 255, &selector);
	if (rc == 0)
		rc = tree_number(m, w[2], 65535, &protocol);
	if (rc == 0)
		rc = tree_number(m, w[3], 255, &prio);
	if (rc == 0 && *k == DCB_MAX_APP)
		rc = tree_wrong(m, "more than %d entries", DCB_MAX_APP);
	if (rc == 0)
		list[(*k)++] = (struct dcb_app_entry){
			(uint8_t)selector, (uint8_t)prio, (uint16_t)protocol};
	return rc;
}

/* "ets,strict,ets,..." */
static int read_tsa(struct tree_maker *m, const char *s, uint8_t tsa[8])
{
	static const struct {
		const char *name;
		uint8_t v;
	} names[] = {{"strict", 0}, {"cbs", 1}, {"ets", 2}, {"vendor", 255}};
	for (int i = 0; i < 8; i++) {
		size_t k = strcspn(s, ","), j = 0;
		while (j < 4 && (strlen(names[j].name) != k || strncmp(s, names[j].name, k) != 0))
			j++;
		if (j == 4 || s[k] != (i < 7 ? ',' : '\0'))
			return tree_wrong(m, "tsa= takes eight of strict, cbs, ets, vendor");
		tsa[i] = names[j].v;
		s += k + 1;
	}
	return 0;
}

int tree_do_ets(struct tree_maker *m, char **w, int n)
{
	int rc = tree_want_net(m);
	if (rc < 0)
		return rc;
	struct dcb_facts *d = &m->net->dcb;
	bool peer = strcmp(w[0], "peer-ets") == 0;
	struct dcb_ets *e = peer ? &d->peer_ets : &d->ets;
	(peer ? &d->peer_ets_f : &d->ets_f)->state = FACT_KNOWN;
	m->net->has_dcb = true;
	if (!e->cap)
		e->cap = 8;
	for (int i = 1; i < n && rc == 0; i++) {
		long v[8], one;
		if (strncmp(w[i], "tsa=", 4) == 0) {
			rc = read_tsa(m, w[i] + 4, e->tsa);
		} else if (strncmp(w[i], "bw=", 3) == 0) {
			rc = tree_eight(m, w[i] + 3, 100, v);
			for (int k = 0; k < 8 && rc == 0; k++)
				e->tc_tx_bw[k] = (uint8_t)v[k];
		} else if (strncmp(w[i], "prio-tc=", 8) == 0) {
			rc = tree_eight(m, w[i] + 8, 7, v);
			for (int k = 0; k < 8 && rc == 0; k++)
				e->prio_tc[k] = (uint8_t)v[k];
		} else if (strncmp(w[i], "willing=", 8) == 0) {
			rc = tree_number(m, w[i] + 8, 1, &one);
			e->willing = (uint8_t)(rc == 0 ? one : 0);
		} else {
			rc = tree_wrong(m, "%s takes prio-tc=, tsa=, bw=, willing=", w[0]);
		}
	}
	return rc;
}

int tree_do_buffer(struct tree_maker *m, char **w, int n)
{
	int rc = tree_want_net(m);
	if (rc < 0)
		return rc;
	struct dcb_buffer *b = &m->net->dcb.buffer;
	m->net->dcb.buffer_f.state = FACT_KNOWN;
	m->net->has_dcb = true;
	for (int i = 1; i < n && rc == 0; i++) {
		long v[8], one;
		if (strncmp(w[i], "map=", 4) == 0) {
			rc = tree_eight(m, w[i] + 4, 7, v);
			for (int k = 0; k < 8 && rc == 0; k++)
				b->prio2buffer[k] = (uint8_t)v[k];
		} else if (strncmp(w[i], "size=", 5) == 0) {
			rc = tree_eight(m, w[i] + 5, UINT32_MAX, v);
			for (int k = 0; k < 8 && rc == 0; k++)
				b->size[k] = (uint32_t)v[k];
		} else if (strncmp(w[i], "total=", 6) == 0) {
			rc = tree_number(m, w[i] + 6, UINT32_MAX, &one);
			b->total = (uint32_t)(rc == 0 ? one : 0);
		} else {
			rc = tree_wrong(m, "buffer takes map=, size=, total=");
		}
	}
	return rc;
}

int tree_do_dcbx(struct tree_maker *m, char **w, int n)
{
	static const char *const names[] = {"host", "lld", "cee", "ieee", "static"};
	int rc = tree_want_net(m);
	if (rc < 0)
		return rc;
	uint8_t bits = 0;
	for (int i = 1; i < n; i++) {
		int k = 0;
		while (k < 5 && strcmp(w[i], names[k]) != 0)
			k++;
		if (k == 5 && strcmp(w[i], "none") != 0)
			return tree_wrong(m, "dcbx takes host, lld, cee, ieee, static, or none");
		bits |= (uint8_t)(k < 5 ? 1u << k : 0);
	}
	m->net->dcb.dcbx = bits;
	m->net->dcb.dcbx_f.state = FACT_KNOWN;
	return 0;
}

/* apptrust dscp pcp: selectors in order (Linux 6.3 and later) */
int tree_do_apptrust(struct tree_maker *m, char **w, int n)
{
	int rc = tree_want_net(m);
	if (rc < 0)
		return rc;
	struct dcb_facts *d = &m->net->dcb;
	d->trusts = 0;
	d->trust_f.state = FACT_KNOWN;
	m->net->has_dcb = true;
	for (int i = 1; i < n && i < 9; i++) {
		if (strcmp(w[i], "dscp") != 0 && strcmp(w[i], "pcp") != 0)
			return tree_wrong(m, "apptrust takes dscp and pcp, in order");
		d->trust[d->trusts++] = w[i][0] == 'd' ? 5 : 255; /* DCB_APP_SEL_PCP */
	}
	return 0;
}

int tree_do_no_dcb(struct tree_maker *m, char **w, int n)
{
	int rc = tree_want_net(m);
	if (rc < 0)
		return rc;
	if (n > 2 || (n == 2 && strcmp(w[1], "EPERM") != 0 && strcmp(w[1], "EOPNOTSUPP") != 0))
		return tree_wrong(m, "no-dcb [EPERM|EOPNOTSUPP]");
	m->net->error = n == 2 && strcmp(w[1], "EPERM") == 0 ? EPERM : EOPNOTSUPP;
	return 0;
}

/* ---- ethtool --------------------------------------------------------------------------------- */

int tree_do_stat(struct tree_maker *m, char **w, int n)
{
	char name[96] = "", *end;
	size_t at = 0;
	int rc = tree_want_net(m);
	if (rc == 0 && n < 3)
		rc = tree_wrong(m, "stat NAME VALUE");
	if (rc < 0)
		return rc;
	for (int i = 1; i < n - 1 && at < sizeof(name); i++)
		at += (size_t)snprintf(
			name + at, sizeof(name) - at, "%s%s", i > 1 ? " " : "", w[i]);
	errno = 0;
	long long v = strtoll(w[n - 1], &end, 10);
	if (*end || errno || v < 0)
		return tree_wrong(m, "\"%s\" is no counter's value", w[n - 1]);
	if (!m->net->stats)
		m->net->stats = json_object();
	fb_json_set_int(m->net->stats, name, v);
	return 0;
}

int tree_do_pause(struct tree_maker *m, char **w, int n)
{
	int rc = tree_want_net(m);
	for (int i = 1; i < n && rc == 0; i++) {
		char *eq = strchr(w[i], '=');
		bool on = eq && strcmp(eq, "=on") == 0;
		int *v = strncmp(w[i], "rx=", 3) == 0        ? &m->net->rx
			 : strncmp(w[i], "tx=", 3) == 0      ? &m->net->tx
			 : strncmp(w[i], "autoneg=", 8) == 0 ? &m->net->autoneg
							     : NULL;
		if (!v || !eq || (!on && strcmp(eq, "=off") != 0))
			rc = tree_wrong(m, "pause rx=on|off tx=on|off autoneg=on|off");
		else
			*v = on;
	}
	return rc;
}

/* speed MBPS|unknown [MODE...]: the modes as ethtool names what the port supports */
int tree_do_speed(struct tree_maker *m, char **w, int n)
{
	size_t at = 0;
	int rc = tree_want_net(m);
	if (rc == 0 && n < 2)
		rc = tree_wrong(m, "speed MBPS|unknown [100000baseCR4/Full...]");
	if (rc < 0)
		return rc;
	if (strcmp(w[1], "unknown") == 0)
		snprintf(m->net->speed, sizeof(m->net->speed), "Unknown!");
	else
		snprintf(m->net->speed, sizeof(m->net->speed), "%.20sMb/s", w[1]);
	for (int i = 2; i < n && at < sizeof(m->net->modes); i++)
		at += (size_t)snprintf(m->net->modes + at, sizeof(m->net->modes) - at, "%s%s",
			i > 2 ? " " : "", w[i]);
	return 0;
}

/* ---- answers --------------------------------------------------------------------------------- */

static int put_answer(struct tree_maker *m, const char *fmt_path, const void *bytes, size_t n)
{
	return n ? tree_write(&m->root, fmt_path, bytes, n, m->e)
		 : fb_fail(m->e, FB_EXIT_USAGE, EOVERFLOW, "the DCB answer is too large");
}

int tree_put_dcb(struct tree_maker *m, const struct tree_net *x)
{
	char path[96], buf[16384];
	int rc = 0;
	snprintf(path, sizeof(path), DCB_RECORDED_IEEE, x->name);
	if (x->error)
		rc = put_answer(m, path, buf, tree_dcb_error(x->error, buf, sizeof(buf)));
	else if (x->has_dcb)
		rc = put_answer(m, path, buf, tree_dcb_ieee(&x->dcb, x->name, buf, sizeof(buf)));
	snprintf(path, sizeof(path), DCB_RECORDED_DCBX, x->name);
	if (rc == 0 && x->error)
		rc = put_answer(m, path, buf, tree_dcb_error(x->error, buf, sizeof(buf)));
	else if (rc == 0 && fact_known(&x->dcb.dcbx_f))
		rc = put_answer(m, path, buf, tree_dcb_dcbx(&x->dcb, x->name, buf, sizeof(buf)));
	return rc;
}

int tree_put_ethtool(struct tree_maker *m, const struct tree_net *x)
{
	char path[96];
	struct fb_strbuf b = {0};
	json_t *value;
	const char *name;
	int rc = 0;
	if (x->speed[0]) {
		fb_strbuf_printf(&b, "Settings for %s:\n", x->name);
		if (x->modes[0])
			fb_strbuf_printf(&b, "\tSupported link modes:   %s\n", x->modes);
		fb_strbuf_printf(&b, "\tSpeed: %s\n", x->speed);
		snprintf(path, sizeof(path), ETHTOOL_RECORDED_LINK, x->name);
		rc = tree_put_text(m, path, &b);
	}
	if (rc == 0 && x->rx >= 0) {
		fb_strbuf_printf(&b,
			"Pause parameters for %s:\nAutonegotiate:\t%s\nRX:\t\t%s\nTX:\t\t%s\n",
			x->name, x->autoneg == 1 ? "on" : "off", x->rx == 1 ? "on" : "off",
			x->tx == 1 ? "on" : "off");
		snprintf(path, sizeof(path), ETHTOOL_RECORDED_PAUSE, x->name);
		rc = tree_put_text(m, path, &b);
	}
	if (rc == 0 && x->stats) {
		fb_strbuf_add(&b, "NIC statistics:\n");
		json_object_foreach (x->stats, name, value)
			fb_strbuf_printf(&b, "     %s: %" JSON_INTEGER_FORMAT "\n", name,
				json_integer_value(value));
		snprintf(path, sizeof(path), ETHTOOL_RECORDED_STATS, x->name);
		rc = tree_put_text(m, path, &b);
	}
	return rc;
}
