// SPDX-License-Identifier: Apache-2.0
/*
 * The text of a .tree file: files, folders, links, and words for what would be long (a device, a
 * GID, DCB tables, ethtool's texts). testdata/README.md describes each. Later lines override
 * earlier ones, included files' too.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/json.h"
#include "bench/core/strbuf.h"
#include "verbs/lossless/ethtool.h"
#include "verbs/lossless/facts_priv.h"
#include "verbs/lossless/tree.h"
#include "verbs/lossless/tree_priv.h"

#define FILE_MAX    (1u << 20)
#define NETDEVS_MAX 64
#define NEST_MAX    8
#define WORDS_MAX   64

/* What one interface's DCB and ethtool will answer. */
struct net {
	char name[32];
	struct dcb_facts dcb;
	bool has_dcb;
	int error; /* an errno instead of an answer */
	json_t *stats;
	char speed[32], modes[512];
	int rx, tx, autoneg; /* -1: no pause parameters */
};

struct maker {
	struct fb_sysroot root;
	char device[64], bdf[16], driver[32];
	int port;
	struct net *net; /* the selected one */
	struct net all[NETDEVS_MAX];
	int nets;
	struct fb_strbuf hidden, env;
	const char *file;
	int line, depth;
	struct fb_err *e;
};

static int FB_PRINTF(2, 3) wrong(struct maker *m, const char *fmt, ...)
{
	char why[400];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return fb_fail_usage(m->e, "%s:%d: %s", m->file, m->line, why);
}

static int put(struct maker *m, const char *path, const char *text)
{
	return tree_write(&m->root, path, text, strlen(text), m->e);
}
static int FB_PRINTF(3, 4) putf(struct maker *m, const char *text, const char *fmt, ...)
{
	char path[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	return put(m, path, text);
}

/* ---- words ----------------------------------------------------------------------------------- */

static int number(struct maker *m, const char *s, long most, long *v)
{
	char *end;
	errno = 0;
	*v = strtol(s, &end, 0);
	if (end == s || *end || errno || *v < 0 || *v > most)
		return wrong(m, "\"%s\" is no number up to %ld", s, most);
	return 0;
}

/* "0,0,0,3,0,0,6,0" */
static int eight(struct maker *m, const char *s, long most, long v[8])
{
	for (int i = 0; i < 8; i++) {
		char *end;
		errno = 0;
		v[i] = strtol(s, &end, 0);
		if (end == s || errno || v[i] < 0 || v[i] > most || *end != (i < 7 ? ',' : '\0'))
			return wrong(m, "eight numbers up to %ld, with commas, belong here", most);
		s = end + 1;
	}
	return 0;
}

static int want_net(struct maker *m)
{
	return m->net ? 0 : wrong(m, "\"netdev NAME\" belongs before this");
}
static int want_port(struct maker *m)
{
	return m->port ? 0 : wrong(m, "\"device\" and \"port\" belong before this");
}

static int do_netdev(struct maker *m, char **w, int n)
{
	char path[128];
	m->net = NULL;
	if (n != 2 || strlen(w[1]) >= sizeof(m->all[0].name))
		return wrong(m, "netdev NAME");
	for (int i = 0; i < m->nets; i++)
		if (strcmp(m->all[i].name, w[1]) == 0)
			m->net = &m->all[i];
	snprintf(path, sizeof(path), "/sys/class/net/%s", w[1]);
	if (m->net)
		return 0;
	if (m->nets == NETDEVS_MAX)
		return wrong(m, "more than %d interfaces", NETDEVS_MAX);
	m->net = &m->all[m->nets++];
	*m->net = (struct net){.rx = -1, .tx = -1, .autoneg = -1};
	snprintf(m->net->name, sizeof(m->net->name), "%s", w[1]);
	return tree_mkdir(&m->root, path, true, m->e);
}

static int soft_device(struct maker *m, char *netdev)
{
	char word[] = "netdev", *select[] = {word, netdev};
	int rc = putf(m, netdev, "/sys/class/infiniband/%s/parent", m->device);
	return rc < 0 ? rc : do_netdev(m, select, 2);
}

/* device NAME DRIVER BDF [NETDEV...]; device NAME rxe|siw NETDEV */
static int do_device(struct maker *m, char **w, int n)
{
	char dir[128], path[192];
	int rc = 0;
	if (n < 4 || strlen(w[1]) >= sizeof(m->device) || strlen(w[2]) >= sizeof(m->driver))
		return wrong(
			m, "device NAME DRIVER BDF [NETDEV...], or device NAME rxe|siw NETDEV");
	snprintf(m->device, sizeof(m->device), "%s", w[1]);
	snprintf(m->driver, sizeof(m->driver), "%s", w[2]);
	m->port = 0;
	m->bdf[0] = '\0';
	bool siw = strcmp(w[2], "siw") == 0;
	rc = putf(m, siw ? "4: RNIC\n" : "1: CA\n", "/sys/class/infiniband/%s/node_type", w[1]);
	if (rc == 0 && (siw || strcmp(w[2], "rxe") == 0))
		return soft_device(m, w[3]);
	if (strlen(w[3]) >= sizeof(m->bdf))
		return wrong(m, "\"%s\" is no PCI address", w[3]);
	snprintf(m->bdf, sizeof(m->bdf), "%s", w[3]);
	snprintf(dir, sizeof(dir), "/sys/devices/pci%.7s/%s", m->bdf, m->bdf);
	snprintf(path, sizeof(path), "/sys/bus/pci/drivers/%s", m->driver);
	if (rc == 0)
		rc = tree_mkdir(&m->root, path, true, m->e);
	if (rc == 0)
		rc = tree_mkdir(&m->root, dir, true, m->e);
	char link[192];
	snprintf(link, sizeof(link), "%s/driver", dir);
	if (rc == 0)
		rc = tree_link(&m->root, link, path, m->e);
	snprintf(link, sizeof(link), "/sys/bus/pci/devices/%s", m->bdf);
	if (rc == 0)
		rc = tree_link(&m->root, link, dir, m->e);
	snprintf(link, sizeof(link), "/sys/class/infiniband/%s/device", m->device);
	if (rc == 0)
		rc = tree_link(&m->root, link, dir, m->e);
	for (int i = 4; i < n && rc == 0; i++) {
		char *select[] = {w[0], w[i]};
		rc = do_netdev(m, select, 2);
		snprintf(path, sizeof(path), "%s/net/%.31s", dir, w[i]);
		if (rc == 0)
			rc = tree_mkdir(&m->root, path, true, m->e);
		snprintf(link, sizeof(link), "/sys/class/net/%.31s/device", w[i]);
		if (rc == 0)
			rc = tree_link(&m->root, link, dir, m->e);
	}
	return rc;
}

static int do_port(struct maker *m, char **w, int n)
{
	long v;
	char path[128];
	if (n != 2 || !m->device[0])
		return wrong(m, "port NUMBER, after \"device\"");
	int rc = number(m, w[1], 255, &v);
	if (rc < 0)
		return rc;
	m->port = (int)v;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%d", m->device, m->port);
	return tree_mkdir(&m->root, path, true, m->e);
}

/* gid INDEX v1|v2|ib ADDRESS|none [NETDEV] */
static int do_gid(struct maker *m, char **w, int n)
{
	struct in6_addr a = {0};
	char text[64];
	long index;
	int rc = want_port(m);
	if (rc == 0 && (n < 4 || n > 5))
		rc = wrong(m, "gid INDEX v1|v2|ib ADDRESS [NETDEV]");
	if (rc == 0)
		rc = number(m, w[1], 65535, &index);
	if (rc == 0 && strcmp(w[3], "none") != 0 && inet_pton(AF_INET6, w[3], &a) != 1)
		rc = wrong(m, "\"%s\" is no IPv6 address (an IPv4 one is ::ffff:A.B.C.D)", w[3]);
	if (rc < 0)
		return rc;
	size_t at = 0;
	for (int i = 0; i < 16; i += 2)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%02x%02x", i ? ":" : "",
			a.s6_addr[i], a.s6_addr[i + 1]);
	snprintf(text + at, sizeof(text) - at, "\n");
#define PORT_AT "/sys/class/infiniband/%s/ports/%d/"
	rc = putf(m, text, PORT_AT "gids/%ld", m->device, m->port, index);
	if (rc == 0 && strcmp(w[3], "none") != 0)
		rc = putf(m, strcmp(w[2], "v2") == 0 ? "RoCE v2\n" : "IB/RoCE v1\n",
			PORT_AT "gid_attrs/types/%ld", m->device, m->port, index);
	if (rc == 0 && n == 5)
		rc = putf(m, w[4], PORT_AT "gid_attrs/ndevs/%ld", m->device, m->port, index);
	return rc;
}

static int do_pkey(struct maker *m, char **w, int n)
{
	int rc = want_port(m);
	if (rc == 0 && n != 3)
		rc = wrong(m, "pkey INDEX 0xVALUE");
	return rc < 0 ? rc : putf(m, w[2], PORT_AT "pkeys/%s", m->device, m->port, w[1]);
}

/* A name may hold blanks: irdma's do. */
static int do_counter(struct maker *m, char **w, int n)
{
	char name[96] = "";
	size_t at = 0;
	int rc = want_port(m);
	if (rc == 0 && n < 3)
		rc = wrong(m, "counter NAME VALUE");
	for (int i = 1; i < n - 1 && at < sizeof(name); i++)
		at += (size_t)snprintf(
			name + at, sizeof(name) - at, "%s%s", i > 1 ? " " : "", w[i]);
	return rc < 0 ? rc : putf(m, w[n - 1], PORT_AT "hw_counters/%s", m->device, m->port, name);
}

static int do_active_mtu(struct maker *m, char **w, int n)
{
	char path[128];
	int rc = want_port(m);
	if (rc == 0 && n != 2)
		rc = wrong(m, "active-mtu BYTES");
	snprintf(path, sizeof(path), FACTS_RECORDED_MTU, m->device, m->port);
	return rc < 0 ? rc : put(m, path, w[1]);
}

/* ---- DCB ------------------------------------------------------------------------------------- */

static int priorities(struct maker *m, char **w, int n, uint8_t *bits)
{
	*bits = 0;
	if (n == 2 && strcmp(w[1], "none") == 0)
		return 0;
	for (int i = 1; i < n; i++) {
		long v;
		int rc = number(m, w[i], 7, &v);
		if (rc < 0)
			return rc;
		*bits |= (uint8_t)(1u << v);
	}
	return n > 1 ? 0 : wrong(m, "%s PRIORITY..., or none", w[0]);
}

static int do_pfc(struct maker *m, char **w, int n)
{
	int rc = want_net(m);
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
static int do_pfc_field(struct maker *m, char **w, int n)
{
	long v;
	int rc = want_net(m);
	if (rc == 0 && n != 2)
		rc = wrong(m, "%s NUMBER", w[0]);
	if (rc == 0)
		rc = number(m, w[1], strcmp(w[0], "pfc-cap") == 0 ? 8 : 65535, &v);
	if (rc < 0)
		return rc;
	if (strcmp(w[0], "pfc-cap") == 0)
		m->net->dcb.pfc.cap = (uint8_t)v;
	else
		m->net->dcb.pfc.delay = (uint16_t)v;
	return 0;
}

static int do_app(struct maker *m, char **w, int n)
{
	static const char *const names[] = {"", "ethertype", "tcp", "udp", "any", "dscp"};
	long protocol, prio, selector = 0;
	int rc = want_net(m);
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
		return wrong(m, "%s dscp|udp|tcp|any|ethertype PROTOCOL PRIORITY, or none", w[0]);
	for (int i = 1; i < 6; i++)
		if (strcmp(w[1], names[i]) == 0)
			selector = i;
	rc = selector ? 0 : number(m, w[1], 255, &selector);
	if (rc == 0)
		rc = number(m, w[2], 65535, &protocol);
	if (rc == 0)
		rc = number(m, w[3], 255, &prio);
	if (rc == 0 && *k == DCB_MAX_APP)
		rc = wrong(m, "more than %d entries", DCB_MAX_APP);
	if (rc == 0)
		list[(*k)++] = (struct dcb_app_entry){
			(uint8_t)selector, (uint8_t)prio, (uint16_t)protocol};
	return rc;
}

/* "ets,strict,ets,..." */
static int read_tsa(struct maker *m, const char *s, uint8_t tsa[8])
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
			return wrong(m, "tsa= takes eight of strict, cbs, ets, vendor");
		tsa[i] = names[j].v;
		s += k + 1;
	}
	return 0;
}

static int do_ets(struct maker *m, char **w, int n)
{
	int rc = want_net(m);
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
			rc = eight(m, w[i] + 3, 100, v);
			for (int k = 0; k < 8 && rc == 0; k++)
				e->tc_tx_bw[k] = (uint8_t)v[k];
		} else if (strncmp(w[i], "prio-tc=", 8) == 0) {
			rc = eight(m, w[i] + 8, 7, v);
			for (int k = 0; k < 8 && rc == 0; k++)
				e->prio_tc[k] = (uint8_t)v[k];
		} else if (strncmp(w[i], "willing=", 8) == 0) {
			rc = number(m, w[i] + 8, 1, &one);
			e->willing = (uint8_t)(rc == 0 ? one : 0);
		} else {
			rc = wrong(m, "%s takes prio-tc=, tsa=, bw=, willing=", w[0]);
		}
	}
	return rc;
}

static int do_buffer(struct maker *m, char **w, int n)
{
	int rc = want_net(m);
	if (rc < 0)
		return rc;
	struct dcb_buffer *b = &m->net->dcb.buffer;
	m->net->dcb.buffer_f.state = FACT_KNOWN;
	m->net->has_dcb = true;
	for (int i = 1; i < n && rc == 0; i++) {
		long v[8], one;
		if (strncmp(w[i], "map=", 4) == 0) {
			rc = eight(m, w[i] + 4, 7, v);
			for (int k = 0; k < 8 && rc == 0; k++)
				b->prio2buffer[k] = (uint8_t)v[k];
		} else if (strncmp(w[i], "size=", 5) == 0) {
			rc = eight(m, w[i] + 5, UINT32_MAX, v);
			for (int k = 0; k < 8 && rc == 0; k++)
				b->size[k] = (uint32_t)v[k];
		} else if (strncmp(w[i], "total=", 6) == 0) {
			rc = number(m, w[i] + 6, UINT32_MAX, &one);
			b->total = (uint32_t)(rc == 0 ? one : 0);
		} else {
			rc = wrong(m, "buffer takes map=, size=, total=");
		}
	}
	return rc;
}

static int do_dcbx(struct maker *m, char **w, int n)
{
	static const char *const names[] = {"host", "lld", "cee", "ieee", "static"};
	int rc = want_net(m);
	if (rc < 0)
		return rc;
	uint8_t bits = 0;
	for (int i = 1; i < n; i++) {
		int k = 0;
		while (k < 5 && strcmp(w[i], names[k]) != 0)
			k++;
		if (k == 5 && strcmp(w[i], "none") != 0)
			return wrong(m, "dcbx takes host, lld, cee, ieee, static, or none");
		bits |= (uint8_t)(k < 5 ? 1u << k : 0);
	}
	m->net->dcb.dcbx = bits;
	m->net->dcb.dcbx_f.state = FACT_KNOWN;
	return 0;
}

/* apptrust dscp pcp: selectors in order (Linux 6.3 and later) */
static int do_apptrust(struct maker *m, char **w, int n)
{
	int rc = want_net(m);
	if (rc < 0)
		return rc;
	struct dcb_facts *d = &m->net->dcb;
	d->trusts = 0;
	d->trust_f.state = FACT_KNOWN;
	m->net->has_dcb = true;
	for (int i = 1; i < n && i < 9; i++) {
		if (strcmp(w[i], "dscp") != 0 && strcmp(w[i], "pcp") != 0)
			return wrong(m, "apptrust takes dscp and pcp, in order");
		d->trust[d->trusts++] = w[i][0] == 'd' ? 5 : 255; /* DCB_APP_SEL_PCP */
	}
	return 0;
}

static int do_no_dcb(struct maker *m, char **w, int n)
{
	int rc = want_net(m);
	if (rc < 0)
		return rc;
	if (n > 2 || (n == 2 && strcmp(w[1], "EPERM") != 0 && strcmp(w[1], "EOPNOTSUPP") != 0))
		return wrong(m, "no-dcb [EPERM|EOPNOTSUPP]");
	m->net->error = n == 2 && strcmp(w[1], "EPERM") == 0 ? EPERM : EOPNOTSUPP;
	return 0;
}

/* ---- ethtool --------------------------------------------------------------------------------- */

static int do_stat(struct maker *m, char **w, int n)
{
	char name[96] = "", *end;
	size_t at = 0;
	int rc = want_net(m);
	if (rc == 0 && n < 3)
		rc = wrong(m, "stat NAME VALUE");
	if (rc < 0)
		return rc;
	for (int i = 1; i < n - 1 && at < sizeof(name); i++)
		at += (size_t)snprintf(
			name + at, sizeof(name) - at, "%s%s", i > 1 ? " " : "", w[i]);
	errno = 0;
	long long v = strtoll(w[n - 1], &end, 10);
	if (*end || errno || v < 0)
		return wrong(m, "\"%s\" is no counter's value", w[n - 1]);
	if (!m->net->stats)
		m->net->stats = json_object();
	fb_json_set_int(m->net->stats, name, v);
	return 0;
}

static int do_pause(struct maker *m, char **w, int n)
{
	int rc = want_net(m);
	for (int i = 1; i < n && rc == 0; i++) {
		char *eq = strchr(w[i], '=');
		bool on = eq && strcmp(eq, "=on") == 0;
		int *v = strncmp(w[i], "rx=", 3) == 0        ? &m->net->rx
			 : strncmp(w[i], "tx=", 3) == 0      ? &m->net->tx
			 : strncmp(w[i], "autoneg=", 8) == 0 ? &m->net->autoneg
							     : NULL;
		if (!v || (!on && strcmp(eq, "=off") != 0))
			rc = wrong(m, "pause rx=on|off tx=on|off autoneg=on|off");
		else
			*v = on;
	}
	return rc;
}

/* speed MBPS|unknown [MODE...]: the modes as ethtool names what the port supports */
static int do_speed(struct maker *m, char **w, int n)
{
	size_t at = 0;
	int rc = want_net(m);
	if (rc == 0 && n < 2)
		rc = wrong(m, "speed MBPS|unknown [100000baseCR4/Full...]");
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

/* ---- the node -------------------------------------------------------------------------------- */

static int do_env(struct maker *m, char **w, int n)
{
	if (n < 2 || !strchr(w[1], '='))
		return wrong(m, "env NAME=VALUE");
	fb_strbuf_printf(&m->env, "%s\n", w[1]);
	return 0;
}

static int do_hidden(struct maker *m, char **w, int n)
{
	if (n != 2 || w[1][0] != '/')
		return wrong(m, "hidden /PATH");
	fb_strbuf_printf(&m->hidden, "%s\n", w[1]);
	return 0;
}

/* memlock BYTES|unlimited [ipc-lock] */
static int do_memlock(struct maker *m, char **w, int n)
{
	char text[256];
	if (n < 2 || n > 3 || (n == 3 && strcmp(w[2], "ipc-lock") != 0))
		return wrong(m, "memlock BYTES|unlimited [ipc-lock]");
	snprintf(text, sizeof(text),
		"Limit                     Soft Limit           Hard Limit           Units\n"
		"Max locked memory         %-20.20s %-20.20s bytes\n",
		w[1], w[1]);
	int rc = put(m, "/proc/self/limits", text);
	snprintf(text, sizeof(text), "Name:\tfabricbench\nCapEff:\t%016x\n", n == 3 ? 1 << 14 : 0);
	return rc < 0 ? rc : put(m, "/proc/self/status", text);
}

/* recorded TIME (2026-01-31T12:00:00Z) */
static int do_recorded(struct maker *m, char **w, int n)
{
	if (n != 2)
		return wrong(m, "recorded 2026-01-31T12:00:00Z");
	return put(m, FACTS_RECORDED_TIME, w[1]);
}

static int do_dir(struct maker *m, char **w, int n)
{
	if (n != 2 || w[1][0] != '/')
		return wrong(m, "dir /PATH");
	return tree_mkdir(&m->root, w[1], true, m->e);
}

static int do_link(struct maker *m, char **w, int n)
{
	if (n != 4 || w[1][0] != '/' || strcmp(w[2], "->") != 0 || w[3][0] != '/')
		return wrong(m, "link /PATH -> /TARGET");
	return tree_link(&m->root, w[1], w[3], m->e);
}

static int remove_all(struct maker *m, const char *path)
{
	char real[4096], sub[512], **names = NULL;
	struct stat st;
	int rc = 0;
	if (fb_sysroot_path(&m->root, path, real, sizeof(real)) < 0 || lstat(real, &st) < 0)
		return wrong(m, "there is no %s to remove", path);
	if (!S_ISDIR(st.st_mode))
		return unlink(real) == 0 ? 0 : wrong(m, "cannot remove %s", path);
	fb_sysroot_list(&m->root, path, &names);
	for (char **p = names; p && *p && rc == 0; p++) {
		char link[4096 + 256];
		snprintf(link, sizeof(link), "%s/%.250s", real, *p);
		snprintf(sub, sizeof(sub), "%s/%s", path, *p);
		if (lstat(link, &st) == 0 && S_ISLNK(st.st_mode))
			unlink(link);
		else
			rc = remove_all(m, sub);
	}
	fb_sysroot_names_free(names);
	if (rc == 0 && rmdir(real) < 0)
		rc = wrong(m, "cannot remove %s: %s", path, strerror(errno));
	return rc;
}

static int do_remove(struct maker *m, char **w, int n)
{
	if (n != 2 || w[1][0] != '/')
		return wrong(m, "remove /PATH");
	return remove_all(m, w[1]);
}

static int do_file(struct maker *m, const char *file);

static int do_include(struct maker *m, char **w, int n)
{
	char path[512];
	const char *slash = strrchr(m->file, '/');
	if (n != 2)
		return wrong(m, "include FILE.tree");
	snprintf(path, sizeof(path), "%.*s%s", slash ? (int)(slash + 1 - m->file) : 0, m->file,
		w[1]);
	return do_file(m, path);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* @port/state: a path under what is selected. */
static int full_path(struct maker *m, const char *s, char *out, size_t len)
{
	const char *slash = strchr(s, '/');
	size_t k = slash ? (size_t)(slash - s) : strlen(s);
	const char *rest = s + k;
	int rc = 0;
#define IS(word) (strlen(word) == k && strncmp(s, word, k) == 0)
	if (*s == '/') {
		snprintf(out, len, "%s", s);
	} else if (IS("@dev") && m->device[0]) {
		snprintf(out, len, "/sys/class/infiniband/%s%s", m->device, rest);
	} else if (IS("@pci") && m->bdf[0]) {
		snprintf(out, len, "/sys/devices/pci%.7s/%s%s", m->bdf, m->bdf, rest);
	} else if (IS("@cc") && m->bdf[0]) {
		snprintf(out, len, "/sys/kernel/debug/mlx5/%s/cc_params%s", m->bdf, rest);
	} else if (IS("@net") && m->net) {
		snprintf(out, len, "/sys/class/net/%s%s", m->net->name, rest);
	} else if (IS("@port") && m->port) {
		snprintf(out, len, "/sys/class/infiniband/%s/ports/%d%s", m->device, m->port, rest);
	} else if (IS("@tc") && m->port) {
		snprintf(out, len, "/sys/class/infiniband/%s/tc/%d%s", m->device, m->port, rest);
	} else if (IS("@cma") && m->port) {
		snprintf(out, len, "/sys/kernel/config/rdma_cm/%s/ports/%d%s", m->device, m->port,
			rest);
	} else {
		rc = wrong(m,
			"\"%s\": a path begins with /, or with @dev, @port, @pci, @net, @cc, "
			"@cma, @tc of what is selected",
			s);
	}
#undef IS
	return rc;
}

/* \n and \t of a value. */
static void unescape(char *s)
{
	char *to = s;
	for (; *s; s++) {
		if (*s == '\\' && (s[1] == 'n' || s[1] == 't')) {
			*to++ = s[1] == 'n' ? '\n' : '\t';
			s++;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

static const struct {
	const char *word;
	int (*run)(struct maker *m, char **w, int n);
} words[] = {{"device", do_device}, {"port", do_port}, {"netdev", do_netdev}, {"gid", do_gid},
	{"pkey", do_pkey}, {"counter", do_counter}, {"active-mtu", do_active_mtu}, {"pfc", do_pfc},
	{"peer-pfc", do_pfc}, {"pfc-cap", do_pfc_field}, {"pfc-delay", do_pfc_field},
	{"app", do_app}, {"peer-app", do_app}, {"ets", do_ets}, {"peer-ets", do_ets},
	{"buffer", do_buffer}, {"dcbx", do_dcbx}, {"apptrust", do_apptrust}, {"no-dcb", do_no_dcb},
	{"stat", do_stat}, {"pause", do_pause}, {"speed", do_speed}, {"env", do_env},
	{"hidden", do_hidden}, {"memlock", do_memlock}, {"recorded", do_recorded}, {"dir", do_dir},
	{"link", do_link}, {"remove", do_remove}, {"include", do_include}};

static int do_line(struct maker *m, char *line)
{
	char path[512], *w[WORDS_MAX], *eq = NULL;
	int n = 0;
	if (line[0] == '/' || line[0] == '@')
		eq = strstr(line, " =");
	if (eq) {
		char *value = eq + 2 + strspn(eq + 2, " \t");
		*eq = '\0';
		unescape(value);
		int rc = full_path(m, line, path, sizeof(path));
		size_t k = strlen(value);
		value[k] = '\n'; /* over the line's end: the buffer has room */
		return rc < 0 ? rc : tree_write(&m->root, path, value, k + 1, m->e);
	}
	char expanded[4][512];
	for (char *s = line; *s && n < WORDS_MAX;) {
		size_t k = strcspn(s, " \t");
		char *next = s + k + strspn(s + k, " \t");
		s[k] = '\0';
		w[n++] = s;
		s = next;
	}
	for (int i = 1; i < n && i < 4; i++) {
		if (w[i][0] != '@')
			continue;
		int rc = full_path(m, w[i], expanded[i], sizeof(expanded[i]));
		if (rc < 0)
			return rc;
		w[i] = expanded[i];
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].word, w[0]) == 0)
			return words[i].run(m, w, n);
	return wrong(m, "\"%s\" is no word of this format", w[0]);
}

static int do_file(struct maker *m, const char *file)
{
	char *text = NULL;
	size_t len;
	const char *outer = m->file;
	int outer_line = m->line, rc;
	if (m->depth == NEST_MAX)
		return wrong(m, "includes are nested too deep");
	rc = fb_read_file(file, FILE_MAX, &text, &len, m->e);
	if (rc < 0) {
		if (m->e)
			m->e->exit = FB_EXIT_USAGE;
		return rc;
	}
	m->file = file;
	m->line = 0;
	m->depth++;
	for (char *line = text; line && rc == 0;) {
		char *end = line + strcspn(line, "\n"), *next = *end ? end + 1 : NULL;
		*end = '\0';
		while (end > line && isspace((unsigned char)end[-1]))
			*--end = '\0';
		line += strspn(line, " \t");
		m->line++;
		if (*line && *line != '#')
			rc = do_line(m, line);
		line = next;
	}
	m->depth--;
	m->file = outer;
	m->line = outer_line;
	free(text);
	return rc;
}

/* ---- what is written at the end -------------------------------------------------------------- */

static int put_answer(struct maker *m, const char *fmt_path, const void *bytes, size_t n)
{
	return n ? tree_write(&m->root, fmt_path, bytes, n, m->e)
		 : fb_fail(m->e, FB_EXIT_USAGE, EOVERFLOW, "the DCB answer is too large");
}

static int put_dcb(struct maker *m, const struct net *x)
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

static int put_text(struct maker *m, const char *path, struct fb_strbuf *b)
{
	int rc = b->failed ? fb_fail(m->e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %s", path)
		 : b->len  ? tree_write(&m->root, path, b->s, b->len, m->e)
			   : 0;
	fb_strbuf_free(b);
	return rc;
}

static int put_ethtool(struct maker *m, const struct net *x)
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
		rc = put_text(m, path, &b);
	}
	if (rc == 0 && x->rx >= 0) {
		fb_strbuf_printf(&b,
			"Pause parameters for %s:\nAutonegotiate:\t%s\nRX:\t\t%s\nTX:\t\t%s\n",
			x->name, x->autoneg == 1 ? "on" : "off", x->rx == 1 ? "on" : "off",
			x->tx == 1 ? "on" : "off");
		snprintf(path, sizeof(path), ETHTOOL_RECORDED_PAUSE, x->name);
		rc = put_text(m, path, &b);
	}
	if (rc == 0 && x->stats) {
		fb_strbuf_add(&b, "NIC statistics:\n");
		json_object_foreach (x->stats, name, value)
			fb_strbuf_printf(&b, "     %s: %" JSON_INTEGER_FORMAT "\n", name,
				json_integer_value(value));
		snprintf(path, sizeof(path), ETHTOOL_RECORDED_STATS, x->name);
		rc = put_text(m, path, &b);
	}
	return rc;
}

int tree_expand(const char *file, const char *dir, struct fb_err *e)
{
	struct maker *m = calloc(1, sizeof(*m));
	if (!m)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %s", file);
	m->e = e;
	m->file = file;
	int rc = tree_open(&m->root, dir, e);
	if (rc < 0)
		goto free_maker;
	rc = do_file(m, file);
	for (int i = 0; i < m->nets && rc == 0; i++) {
		rc = put_dcb(m, &m->all[i]);
		if (rc == 0)
			rc = put_ethtool(m, &m->all[i]);
	}
	if (rc == 0)
		rc = put_text(m, FACTS_RECORDED_HIDDEN, &m->hidden);
	if (rc == 0)
		rc = put_text(m, FACTS_RECORDED_ENV, &m->env);
	fb_sysroot_close(&m->root);
free_maker:
	for (int i = 0; i < m->nets; i++)
		json_decref(m->all[i].stats);
	fb_strbuf_free(&m->hidden);
	fb_strbuf_free(&m->env);
	free(m);
	return rc;
}
