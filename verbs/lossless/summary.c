// SPDX-License-Identifier: Apache-2.0
/*
 * The summary of a node that stands in a document, and facts made from one again.
 */
#include "verbs/lossless/summary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "verbs/lossless/checks_priv.h"

#define MAX_PORTS 1024

/* ---- out ------------------------------------------------------------------------------------- */

static void set_text(json_t *j, const char *key, const struct fact_text *t)
{
	if (fact_known(&t->f))
		fb_json_set_str(j, key, t->v);
}

static void set_int(json_t *j, const char *key, const struct fact_int *v)
{
	if (fact_known(&v->f))
		fb_json_set_int(j, key, v->v);
}

static void set_pfc(json_t *j, const struct port_facts *p)
{
	if (!fact_known(&p->dcb.pfc_f))
		return;
	json_t *list = json_array();
	for (int i = 0; i < 8; i++)
		if (p->dcb.pfc.en >> i & 1)
			json_array_append_new(list, json_integer(i));
	json_object_set_new(j, "pfc", list);
}

static void set_map(json_t *j, const struct port_facts *p)
{
	json_t *map = json_object();
	for (int dscp = 0; dscp < 64; dscp++) {
		const char *how, *why;
		char key[8];
		int prio = facts_dscp_priority(p, dscp, &how, &why);
		snprintf(key, sizeof(key), "%d", dscp);
		if (prio >= 0)
			fb_json_set_int(map, key, prio);
	}
	if (json_object_size(map) > 0)
		json_object_set(j, "dscp_map", map);
	json_decref(map);
}

/* The first RoCE v2 GID with a routable address, else the first one of v2: what R07 compares. */
static const struct gid_fact *chosen(const struct port_facts *p)
{
	const struct gid_fact *local = NULL;
	for (int i = 0; i < p->gids; i++) {
		const struct gid_fact *g = &p->gid[i];
		if (g->v2 && !g->link_local)
			return g;
		if (g->v2 && !local)
			local = g;
	}
	return local;
}

static json_t *port_json(const struct port_facts *p)
{
	json_t *j = json_object();
	const struct gid_fact *g = chosen(p);
	fb_json_set_str(j, "device", p->device);
	fb_json_set_int(j, "port", p->port);
	fb_json_set_bool(j, "ethernet", p->ethernet);
	fb_json_set_str(j, "family", p->family);
	if (p->netdev[0])
		fb_json_set_str(j, "netdev", p->netdev);
	set_text(j, "firmware", &p->fw);
	set_text(j, "board", &p->board);
	set_text(j, "rate", &p->rate);
	set_int(j, "netdev_mtu", &p->netdev_mtu);
	set_int(j, "rdma_mtu", &p->active_mtu);
	set_int(j, "traffic_class", &p->traffic_class);
	set_int(j, "cma_tos", &p->cma_tos);
	set_pfc(j, p);
	if (p->ethernet)
		set_map(j, p);
	if (g) {
		json_t *gid = json_object();
		fb_json_set_int(gid, "index", g->index);
		fb_json_set_bool(gid, "ipv4", g->ipv4);
		fb_json_set_bool(gid, "link_local", g->link_local);
		json_object_set_new(j, "gid", gid);
	}
	return j;
}

json_t *summary_json(const struct node_facts *n)
{
	static const char *const names[] = {"NCCL_IB_TC", "NCCL_IB_FIFO_TC", "UCX_IB_TRAFFIC_CLASS",
		"NCCL_IB_SL", "NCCL_IB_GID_INDEX"};
	json_t *j = json_object(), *ports = json_array();
	fb_json_set_str(j, "host", n->host);
	set_text(j, "recorded", &n->recorded);
	if (fact_known(&n->env_f)) {
		json_t *env = json_object();
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			fb_json_set_str(env, names[i], fb_json_str(n->env, names[i], NULL));
		json_object_set_new(j, "env", env);
	}
	for (int i = 0; i < n->ports; i++)
		json_array_append_new(ports, port_json(&n->port[i]));
	json_object_set_new(j, "ports", ports);
	return j;
}

/* ---- back ------------------------------------------------------------------------------------ */

static void tell(struct fact *f, const char *name, const char *key)
{
	f->state = FACT_KNOWN;
	snprintf(f->read, sizeof(f->read), "%.120s: %s", name, key);
}

static void get_text(const json_t *j, const char *name, const char *key, struct fact_text *t)
{
	const char *s = fb_json_str(j, key, NULL);
	if (!s)
		return;
	snprintf(t->v, sizeof(t->v), "%s", s);
	tell(&t->f, name, key);
}

static void get_int(const json_t *j, const char *name, const char *key, struct fact_int *v)
{
	const json_t *x = json_object_get(j, key);
	if (!json_is_integer(x))
		return;
	v->v = json_integer_value(x);
	tell(&v->f, name, key);
}

static void get_pfc(const json_t *j, const char *name, struct port_facts *p)
{
	const json_t *list = json_object_get(j, "pfc"), *x;
	size_t i;
	if (!json_is_array(list))
		return;
	json_array_foreach (list, i, x)
		if (json_is_integer(x) && json_integer_value(x) >= 0 && json_integer_value(x) < 8)
			p->dcb.pfc.en |= (uint8_t)(1u << json_integer_value(x));
	tell(&p->dcb.pfc_f, name, "pfc");
}

static void get_map(const json_t *j, const char *name, struct port_facts *p)
{
	const json_t *map = json_object_get(j, "dscp_map");
	memset(p->dscp2prio, -1, sizeof(p->dscp2prio));
	if (!json_is_object(map))
		return;
	for (int dscp = 0; dscp < 64; dscp++) {
		char key[8];
		snprintf(key, sizeof(key), "%d", dscp);
		int64_t prio = fb_json_int(map, key, -1);
		p->dscp2prio[dscp] = (int8_t)(prio >= 0 && prio < 8 ? prio : -1);
	}
	tell(&p->dscp2prio_f, name, "dscp_map");
}

static void get_gid(const json_t *j, const char *name, struct port_facts *p)
{
	const json_t *g = json_object_get(j, "gid");
	tell(&p->gids_f, name, "gid");
	if (!json_is_object(g))
		return;
	p->gid[0] = (struct gid_fact){.index = (int)fb_json_int(g, "index", -1),
		.v2 = true,
		.ipv4 = json_is_true(json_object_get(g, "ipv4")),
		.link_local = json_is_true(json_object_get(g, "link_local"))};
	p->gids = 1;
}

static int get_port(const json_t *j, const char *name, struct port_facts *p)
{
	const char *device = fb_json_str(j, "device", NULL);
	int64_t port = fb_json_int(j, "port", -1);
	if (!device || !*device || port < 1 || port > 255)
		return -EINVAL;
	snprintf(p->device, sizeof(p->device), "%.63s", device);
	p->port = (int)port;
	p->ethernet = json_is_true(json_object_get(j, "ethernet"));
	snprintf(p->family, sizeof(p->family), "%.15s", fb_json_str(j, "family", ""));
	snprintf(p->netdev, sizeof(p->netdev), "%.31s", fb_json_str(j, "netdev", ""));
	get_text(j, name, "firmware", &p->fw);
	get_text(j, name, "board", &p->board);
	get_text(j, name, "rate", &p->rate);
	get_int(j, name, "netdev_mtu", &p->netdev_mtu);
	get_int(j, name, "rdma_mtu", &p->active_mtu);
	get_int(j, name, "traffic_class", &p->traffic_class);
	get_int(j, name, "cma_tos", &p->cma_tos);
	get_pfc(j, name, p);
	get_map(j, name, p);
	get_gid(j, name, p);
	return 0;
}

int summary_read(const json_t *j, const char *name, struct node_facts *n, struct fb_err *e)
{
	const json_t *ports = json_object_get(j, "ports"), *port, *env = json_object_get(j, "env");
	const char *host = fb_json_str(j, "host", NULL);
	size_t i, many = json_array_size(ports);
	memset(n, 0, sizeof(*n));
	if (!host || !json_is_array(ports) || many > MAX_PORTS) {
		fb_fail_usage(e, "%s holds no facts of a node (its key \"fabric\")", name);
		fb_hint(e, "give documents that fabricbench check wrote with -o");
		return -EINVAL;
	}
	snprintf(n->host, sizeof(n->host), "%.63s", host);
	n->env = json_is_object(env) ? json_deep_copy(env) : json_object();
	n->env_source = json_object();
	if (json_is_object(env))
		tell(&n->env_f, name, "env");
	n->port = calloc(many ? many : 1, sizeof(*n->port));
	if (!n->port || !n->env || !n->env_source) {
		facts_free(n);
		return fb_fail(
			e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the facts of %s", name);
	}
	json_array_foreach (ports, i, port) {
		if (get_port(port, name, &n->port[i]) < 0) {
			facts_free(n);
			return fb_fail_usage(
				e, "%s: fabric.ports[%zu] has no device and port", name, i);
		}
		n->ports++;
	}
	return 0;
}
