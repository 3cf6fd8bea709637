// SPDX-License-Identifier: Apache-2.0
/*
 * The shared part of the RDMA benchmarks.
 */
#include "verbs/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/log.h"
#include "verbs/counters.h"

static const struct fb_sysroot live = {.dir = NULL};

enum verbs_op verbs_point_op(const struct fb_point *p)
{
	return (enum verbs_op)(p->user & 0xff);
}

unsigned verbs_point_rails(const struct verbs_state *s, const struct fb_point *p, unsigned *first)
{
	unsigned rail = (unsigned)(p->user >> 8);

	*first = rail < s->n ? rail : 0;
	return rail < s->n ? 1 : s->n;
}

int verbs_state_probe(const void *cfg, struct fb_err *why)
{
	(void)cfg;
	return verbs_any_device(why);
}

int verbs_state_open(
	struct fb_run *run, const struct verbs_job *job, struct verbs_state **out, struct fb_err *e)
{
	struct fb_oob *o = fb_run_oob(run);
	struct verbs_state *s = calloc(1, sizeof *s);
	int rc;

	if (!s)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the session");
	s->job = job;
	s->run = run;
	s->rank = (unsigned)fb_oob_rank(o);
	for (unsigned i = 0; i < VERBS_MAX_RAILS; i++)
		s->thread_node[i] = -1;
	for (unsigned i = 0; i < job->node->n; i++) {
		struct verbs_dev *dev = &job->node->dev[i];
		rc = verbs_rail_open(&s->rail[i], dev, &job->p,
			verbs_place_node(job->p.numa, dev->numa_node), e);
		if (rc)
			break;
		s->n++;
	}
	/* One outcome for both before anybody waits for the other's description. */
	rc = fb_oob_agree(o, e, fb_run_deadline(run));
	if (rc == 0)
		rc = verbs_connect(s->rail, s->n, &job->p, o, fb_run_deadline(run), e);
	if (rc) {
		verbs_state_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

void verbs_state_close(struct verbs_state *s)
{
	if (!s)
		return;
	verbs_place_back(&s->placed);
	for (unsigned i = 0; i < s->n; i++)
		verbs_rail_close(&s->rail[i]);
	json_decref(s->counters[0]);
	json_decref(s->counters[1]);
	free(s);
}

/* ---- the sweep ------------------------------------------------------------------------------- */

const struct verbs_end *verbs_state_end(
	const struct verbs_state *s, const struct verbs_rail *r, bool client)
{
	return (s->rank == 0) == client ? &r->local : &r->remote;
}

bool verbs_state_software(const struct verbs_rail *r)
{
	return verbs_driver_software(r->local.driver) || verbs_driver_software(r->remote.driver);
}

static json_t *point_params(
	const struct verbs_state *s, enum verbs_op op, uint64_t size, unsigned rail)
{
	const struct verbs_params *p = &s->job->p;
	const struct verbs_rail *r = &s->rail[rail < s->n ? rail : 0];
	const struct verbs_end *client = verbs_state_end(s, r, true);
	json_t *j = json_object();

	if (!j)
		return NULL;
	fb_json_set_str(j, "op", verbs_ops[op].name);
	fb_json_set_str(j, "transport", verbs_transports[p->transport].name);
	fb_json_set_str(j, "completion", p->events ? "events" : "poll");
	fb_json_set_int(j, "size", (int64_t)size);
	fb_json_set_int(j, "mtu", r->path_mtu);
	fb_json_set_bool(
		j, "inline", verbs_ops[op].inlines && size <= client->inline_cap && size > 0);
	fb_json_set_int(j, "traffic_class", p->traffic_class);
	fb_json_set_int(j, "sl", p->sl);
	if (p->memory != VERBS_MEM_HOST)
		fb_json_set_str(j, "memory", verbs_memory_names[p->memory]);
	if (p->rdma_cm)
		fb_json_set_bool(j, "rdma_cm", 1);
	if (p->vlan)
		fb_json_set_int(j, "vlan", p->vlan);
	if (p->flow_label)
		fb_json_set_int(j, "flow_label", p->flow_label);
	if (rail < s->n) {
		fb_json_set_str(j, "device", client->device);
		fb_json_set_str(j, "peer_device", verbs_state_end(s, r, false)->device);
		if (s->n > 1)
			fb_json_set_int(j, "rail", rail);
	} else {
		fb_json_set_str(j, "device", "all");
		fb_json_set_str(j, "rail", "all");
		fb_json_set_int(j, "rails", s->n);
	}
	if (p->bench == VERBS_BANDWIDTH) {
		fb_json_set_int(j, "depth", p->depth);
		fb_json_set_int(j, "qps", p->qps);
		fb_json_set_int(j, "post_list", p->post_list);
		fb_json_set_int(j, "cq_mod", p->cq_mod);
		fb_json_set_str(j, "direction", p->bidirectional ? "both" : "one");
		if (p->rate)
			fb_json_set_int(j, "rate", (int64_t)p->rate);
	}
	if (p->interval_ns)
		fb_json_set_int(j, "interval_ns", (int64_t)p->interval_ns);
	if (p->loopback)
		fb_json_set_bool(j, "loopback", 1);
	return j;
}

/* A batch begins and ends with an empty window: of so many windows the middle ones are what is
 * asked for. */
#define FULL_WINDOWS 4u

/* Where nothing is acknowledged nothing tells a sender to wait either. Where the CPU is the NIC,
 * the receiver cannot keep up by design: a batch is no longer than the receives that are posted. */
static uint64_t batch_limit(const struct verbs_state *s, enum verbs_op op, unsigned rail)
{
	const struct verbs_params *p = &s->job->p;

	if (p->bench != VERBS_BANDWIDTH || verbs_transports[p->transport].acked ||
		!verbs_ops[op].takes_receive ||
		!verbs_state_software(&s->rail[rail < s->n ? rail : 0]))
		return 0;
	return (uint64_t)p->rx_depth;
}

/* How long a batch of a slow pace may be: its length is guessed from batches without one. */
#define PACED_NS 100000000u

int verbs_state_points(void *st, struct fb_point_list *l, struct fb_err *e)
{
	struct verbs_state *s = st;
	const struct verbs_params *p = &s->job->p;
	/* Several rails: each singly, then all at once. */
	unsigned last = s->n > 1 ? s->n : 0;

	for (unsigned rail = 0; rail <= last; rail++) {
		char which[32] = "";
		if (s->n > 1 && rail < s->n)
			snprintf(which, sizeof which, "/rail%u", rail);
		else if (s->n > 1)
			snprintf(which, sizeof which, "/rails");
		for (int o = 0; o < p->nops; o++) {
			enum verbs_op op = (enum verbs_op)p->ops[o];
			bool atomic = verbs_ops[op].atomic;
			for (int k = 0; k < (atomic ? 1 : p->nsizes); k++) {
				uint64_t size = atomic ? 8 : p->sizes[k];
				json_t *params = point_params(s, op, size, rail);
				struct fb_point *pt =
					params ? fb_point_add(l, params,
							 "verbs.%s/%s/%s/%s%s%s/%llu",
							 verbs_bench_names[p->bench],
							 verbs_ops[op].name,
							 verbs_transports[p->transport].name,
							 p->events ? "events" : "poll",
							 p->bidirectional ? "/both" : "", which,
							 (unsigned long long)size)
					       : NULL;
				if (!pt)
					return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM,
						"no memory for the sweep");
				pt->size = size;
				pt->max_batch = p->interval_ns ? PACED_NS / p->interval_ns + 1
							       : batch_limit(s, op, rail);
				if (p->bench == VERBS_BANDWIDTH)
					pt->min_batch = FULL_WINDOWS * (uint64_t)p->depth *
							(uint64_t)p->qps;
				pt->user = (uint64_t)op | (uint64_t)rail << 8;
			}
		}
	}
	return 0;
}

/* ---- counters and facts ---------------------------------------------------------------------- */

/* Run control gathers the ends' counters, and names the source's rank. */
int verbs_state_counters(void *st, json_t **out, struct fb_err *e)
{
	struct verbs_state *s = st;
	json_t *j = json_object();

	if (!j)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for counters");
	for (unsigned i = 0; i < s->n; i++) {
		const struct verbs_dev *d = s->rail[i].dev;
		char key[96];
		json_t *c;
		if (i == 0)
			verbs_counters_settle(&live, d->name, d->port);
		c = verbs_counters_read(&live, d->name, d->port);
		snprintf(key, sizeof key, "%s/%u", d->name, d->port);
		if (c && json_object_size(c))
			json_object_set(j, key, c);
		json_decref(c);
	}
	json_decref(s->counters[0]);
	s->counters[0] = s->counters[1];
	s->counters[1] = json_incref(j);
	*out = j;
	return 0;
}

void verbs_state_judge(struct verbs_state *s, struct fb_validity *v)
{
	if (s->job->p.loopback && s->rank == 0)
		fb_validity_add(v, FB_VALID, "loopback: both ends are this host, not a fabric");
	if (!s->counters[0] || !s->counters[1])
		return;
	for (unsigned i = 0; i < s->n; i++) {
		const struct verbs_dev *d = s->rail[i].dev;
		int64_t grown[VERBS_NUM_CLASSES];
		char key[96], text[256];
		snprintf(key, sizeof key, "%s/%u", d->name, d->port);
		verbs_counters_classify(d->driver, json_object_get(s->counters[0], key),
			json_object_get(s->counters[1], key), grown);
		if (verbs_loss_text(grown, text, sizeof text)[0])
			fb_validity_add(
				v, FB_SUSPECT, "%s counted during the point: %s", key, text);
	}
}

/* "rxe0/1" is ours, "rank1/rxe0/1" the peer's. */
static const char *driver_of(const void *arg, const char *source)
{
	const struct verbs_state *s = arg;
	bool peer = !strncmp(source, "rank", 4) && strchr(source, '/') != strrchr(source, '/');
	const char *name = peer ? strchr(source, '/') + 1 : source;
	char key[96];

	for (unsigned i = 0; i < s->n; i++) {
		const struct verbs_rail *r = &s->rail[i];
		snprintf(key, sizeof key, "%s/%u", peer ? r->remote.device : r->dev->name,
			peer ? r->remote.port : r->dev->port);
		if (!strcmp(key, name))
			return peer ? r->remote.driver : r->dev->driver;
	}
	return "";
}

void verbs_state_classes(struct verbs_state *s, json_t *result)
{
	json_t *counters = json_object_get(result, "counters");

	if (counters)
		verbs_counters_extend(counters, driver_of, s);
}

/* Names of hosts and addresses stand in system.hosts[] alone. */
static json_t *peer_facts(const struct verbs_end *x)
{
	json_t *j = json_object();

	fb_json_set_str(j, "device", x->device);
	fb_json_set_int(j, "port", x->port);
	fb_json_set_str(j, "driver", x->driver);
	fb_json_set_str(j, "fw", x->fw);
	fb_json_set_str(j, "link_layer",
		x->link_layer == IBV_LINK_LAYER_INFINIBAND ? "InfiniBand" : "Ethernet");
	fb_json_set_int(j, "gid_index", x->gid_index);
	fb_json_set_str(j, "gid_type", verbs_gid_type_names[x->gid_type]);
	fb_json_set_str(j, "gid_family", verbs_gid_family_names[x->gid_family]);
	fb_json_set_int(j, "active_mtu", x->mtu);
	return j;
}

static void add_placement(const struct verbs_state *s, unsigned rail, json_t *j)
{
	const struct verbs_rail *r = &s->rail[rail];
	int thread_node = s->thread_node[rail];
	char text[160];

	if (r->mem_node >= 0)
		fb_json_set_int(j, "memory_node", r->mem_node);
	if (thread_node >= 0)
		fb_json_set_int(j, "thread_node", thread_node);
	if (s->job->p.numa == VERBS_NUMA_OFF)
		snprintf(text, sizeof text, "left to the system (--numa off)");
	else if (s->job->p.numa == VERBS_NUMA_AUTO && r->dev->numa_node < 0)
		snprintf(text, sizeof text, "left to the system: the NIC's NUMA node is not known");
	else if (r->mem_node >= 0 && thread_node >= 0)
		snprintf(text, sizeof text, "thread and buffers on NUMA node %d", r->mem_node);
	else
		snprintf(text, sizeof text, "thread %s, buffers %s: the system refused the rest",
			thread_node >= 0 ? "bound" : "not bound",
			r->mem_node >= 0 ? "placed" : "not placed");
	fb_json_set_str(j, "placement", text);
}

/* Asked of the queue pair itself where the device tells: rdma_cm chooses on its own. */
static void add_used(const struct verbs_rail *r, json_t *j)
{
	if (!r->used_known)
		return;
	fb_json_set_int(j, "gid_index", r->used.index);
	fb_json_set_str(j, "gid_type", verbs_gid_type_names[r->used.type]);
	fb_json_set_str(j, "gid_family", verbs_gid_family_names[r->used.family]);
	if (r->used.vlan)
		fb_json_set_int(j, "vlan", r->used.vlan);
	fb_json_set_int(j, "traffic_class", r->used_tc);
	fb_json_set_str(j, "gid_read", "ibv_query_qp");
}

json_t *verbs_state_facts(void *st, const struct fb_point *p)
{
	struct verbs_state *s = st;
	const struct verbs_op_info *op = &verbs_ops[verbs_point_op(p)];
	unsigned first, count = verbs_point_rails(s, p, &first);
	json_t *j = json_object(), *rails = json_array();

	if (!j || !rails) {
		json_decref(j);
		json_decref(rails);
		return NULL;
	}
	fb_json_set_str(
		j, "definition", s->job->p.bench == VERBS_LATENCY ? op->latency : op->bandwidth);
	for (unsigned i = first; i < first + count; i++) {
		struct verbs_rail *r = &s->rail[i];
		json_t *one = verbs_dev_facts(r->dev);
		fb_json_set_int(one, "path_mtu", r->path_mtu);
		fb_json_set_str(one, "memory", r->mem.how);
		fb_json_set_str(one, "connected_by", r->cm ? "rdma_cm" : "exchange");
		add_used(r, one);
		fb_json_set_int(one, "qp_timeout", r->qp_timeout);
		fb_json_set_int(one, "retry", r->retry);
		fb_json_set_int(one, "rnr_retry", r->rnr_retry);
		add_placement(s, i, one);
		json_object_set_new(one, "peer", peer_facts(&r->remote));
		json_array_append_new(rails, one);
	}
	json_object_set_new(j, "rails", rails);
	return j;
}
