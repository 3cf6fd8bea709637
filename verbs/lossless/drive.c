// SPDX-License-Identifier: Apache-2.0
/*
 * Making the load of --drive: sessions to all hosts, what they tell of themselves, probes of the
 * path, then the incast between two readings of every port. Each host that fails is left out and
 * keeps its cause; only a stop or a lack of memory ends the whole.
 */
#include "verbs/lossless/drive.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/sysinfo.h"
#include "verbs/incast_run.h"
#include "verbs/lossless/checks_priv.h"
#include "verbs/lossless/live.h"
#include "verbs/lossless/summary.h"

/* Room before and after the slots, in which senders start and end one after the other. */
#define EDGE_NS   200000000u
#define SLOTS     20
#define ANSWER_NS 20000000000ull

struct run {
	const struct drive_ask *a;
	struct drive *d;
	struct verbs_node node;
	struct verbs_incast x;
	int *of; /* by session: the host's place in d->peer */
	unsigned sessions;
	/* the sniffer */
	int sniff_fd;
	bool sniffing;
	pthread_t sniffer;
	atomic_int sniff_stop;
	uint64_t sniff_until;
};

/* ---- what is asked for ----------------------------------------------------------------------- */

static int choose_class(const struct drive_ask *a, struct drive *d)
{
	const struct profile *p = a->profile;
	struct used_class used[8];
	if (a->cfg->traffic_class >= 0) {
		snprintf(d->class_by, sizeof(d->class_by), "--traffic-class");
		return a->cfg->traffic_class;
	}
	if (p->given && p->roce_dscp[0] >= 0) {
		snprintf(d->class_by, sizeof(d->class_by), "the profile");
		return p->roce_dscp[0] << 2 | 2; /* ECN-capable */
	}
	if (d->port >= 0) {
		const struct check_input in = {
			.node = a->facts, .port = &a->facts->port[d->port], .profile = p};
		if (check_used_classes(&in, used, 8) > 0) {
			snprintf(d->class_by, sizeof(d->class_by), "%s", used[0].by);
			return used[0].byte;
		}
	}
	snprintf(d->class_by, sizeof(d->class_by), "nobody: the default");
	return 0;
}

/* As `verbs incast` makes them of its options. */
static int make_params(
	const struct run *r, struct verbs_params *p, struct verbs_dev_want *want, struct fb_err *e)
{
	static char op[] = "read", small[] = "64";
	const struct drive_cfg *c = r->a->cfg;
	struct verbs_options v;
	struct fb_opt_spec base = {.command = "check", .sets = {{"", verbs_load_opts, &v}}};
	memset(&v, 0, sizeof(v));
	int rc = fb_opt_defaults(&base, e);
	if (rc < 0)
		return rc;
	struct verbs_options mine = v;
	int class = r->d->traffic_class;
	const struct verbs_load_options load = {.interval_ns = c->interval_ns,
		.bg_rate = c->rate,
		.bg_size = c->size,
		.bg_op = 1, /* write, see load_params.c */
		.bg_direction = VERBS_IN,
		.bg_traffic_class = class,
		.bg_sl = v.sl,
		.bg_depth = c->depth};
	mine.op = op;
	mine.size = small;
	mine.inline_max = 0;
	mine.device = (char *)(uintptr_t)r->a->device;
	mine.peer_device = c->peer_device;
	mine.gid_index = c->gid_index;
	mine.traffic_class = c->victim_traffic_class >= 0 ? c->victim_traffic_class : class;
	rc = verbs_params_from_options(p, &mine, VERBS_LATENCY, e);
	if (rc == 0)
		rc = verbs_load_from_options(&p->load, &load, p, e);
	p->bench = VERBS_INCAST;
	if (rc == 0)
		verbs_params_want(&mine, p, want);
	fb_opt_free(&base);
	return rc;
}

/* The port of the facts that a device's is; -1: none. */
static int find_port(const struct node_facts *n, const char *device, unsigned port)
{
	for (int i = 0; i < n->ports; i++)
		if (strcmp(n->port[i].device, device) == 0 && (unsigned)n->port[i].port == port)
			return i;
	return -1;
}

static int open_node(struct run *r, struct fb_err *e)
{
	struct verbs_dev_want want;
	int rc = make_params(r, &r->x.job.p, &want, e);
	if (rc == 0)
		rc = verbs_node_open(&r->node, &want, e);
	if (rc < 0)
		return rc;
	const struct verbs_dev *dev = &r->node.dev[0];
	r->d->port = find_port(r->a->facts, dev->name, dev->port);
	snprintf(r->d->where, sizeof(r->d->where), "%s/%u", dev->name, dev->port);
	/* Which class this node sets is known of the port that was opened. */
	r->d->traffic_class = choose_class(r->a, r->d);
	rc = make_params(r, &r->x.job.p, &want, e);
	r->x.job.node = &r->node;
	r->x.job.hardware = !dev->software;
	if (!r->x.job.p.load.interval_ns)
		r->x.job.p.load.interval_ns =
			dev->software ? VERBS_PROBE_NS_SOFTWARE : VERBS_PROBE_NS;
	if (dev->software) /* the CPU is the NIC's: no polling */
		r->x.job.p.events = 1;
	return rc;
}

/* ---- sessions -------------------------------------------------------------------------------- */

static void lose(struct drive_peer *p, const struct fb_err *why)
{
	p->lost = true;
	p->why = *why;
}

/* @return 0, whether the host came or not; -EINTR */
static int join(struct run *r, int i, struct fb_err *e)
{
	struct drive_peer *p = &r->d->peer[i];
	struct verbs_incast_peer *s = &r->x.peer[r->sessions];
	const struct fb_oob_cfg *o = r->a->reach;
	const struct verbs_reach how = {.port = o->port > 0 ? o->port : FB_OOB_DEFAULT_PORT,
		.token = o->token,
		.connect_timeout_ns = o->timeout_ns};
	struct fb_err why = {0};
	*s = (struct verbs_incast_peer){.name = p->name};
	int rc = verbs_incast_join(&r->x, r->sessions, &how, r->a->deadline, &why);
	if (rc == 0) {
		p->joined = true;
		r->of[r->sessions++] = i;
		return 0;
	}
	verbs_incast_drop(s, &why);
	if (fb_stop_requested()) {
		*e = why;
		return -EINTR;
	}
	lose(p, &why);
	return 0;
}

static int join_all(struct run *r, struct fb_err *e)
{
	int rc = 0, n = r->d->peers;
	r->x.nsenders = (unsigned)n; /* until it is known who came: all are asked to send */
	for (int i = 0; rc == 0 && i < n; i++) {
		if (r->d->peer[i].victim)
			r->x.nsenders = r->sessions;
		rc = join(r, i, e);
	}
	bool victim = r->sessions > 0 && r->d->peer[r->of[r->sessions - 1]].victim;
	r->x.victim = victim;
	r->x.nsenders = r->sessions - victim;
	return rc;
}

/* A session's order outside of the incast's own. A host that does not answer is lost. */
static json_t *ask(struct run *r, unsigned k, json_t *order)
{
	struct verbs_incast_peer *s = &r->x.peer[k];
	json_t *answer = NULL;
	struct fb_err why = {0};
	if (s->lost) {
		json_decref(order);
		return NULL;
	}
	if (verbs_incast_ask(s, order, &answer, fb_deadline_in(ANSWER_NS), &why) == 0)
		return answer;
	s->lost = true;
	s->why = why;
	return NULL;
}

/* A summary does not say it; the session does. */
static void tell_layer(struct port_facts *p, int layer)
{
	p->link_layer.f.state = FACT_KNOWN;
	snprintf(p->link_layer.v, sizeof(p->link_layer.v), "%s",
		layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand");
}

static void take_facts(struct run *r, unsigned k)
{
	struct drive_peer *p = &r->d->peer[r->of[k]];
	json_t *answer = ask(r, k, json_pack("{s:s}", "do", "facts"));
	struct node_facts *n = calloc(1, sizeof(*n));
	struct fb_err why = {0};
	if (n && answer && summary_read(json_object_get(answer, "fabric"), p->name, n, &why) == 0) {
		int port = find_port(n, fb_json_str(answer, "device", ""),
			(unsigned)fb_json_int(answer, "rdma_port", 0));
		p->facts = n;
		p->port = port >= 0 ? &n->port[port] : NULL;
		if (port >= 0)
			tell_layer(&n->port[port], r->x.peer[k].end.rail.remote.link_layer);
		fb_doc_hide(r->a->doc, n->host);
		n = NULL;
	}
	free(n);
	json_decref(answer);
}

/* ---- the path -------------------------------------------------------------------------------- */

static void probe_path(struct run *r, unsigned k)
{
	struct drive_peer *p = &r->d->peer[r->of[k]];
	const struct verbs_rail *rail = &r->x.peer[k].end.rail;
	const struct port_facts *own = r->d->port >= 0 ? &r->a->facts->port[r->d->port] : NULL;
	struct drive_route route = {.from = rail->local.gid,
		.to = rail->remote.gid,
		.word = (fb_clock_ns() ^ (uint64_t)(uintptr_t)rail) >> 1,
		.netdev_mtu = own && fact_known(&own->netdev_mtu.f) ? (int)own->netdev_mtu.v : 0,
		.rdma_mtu = (int)rail->path_mtu};
	snprintf(route.netdev, sizeof(route.netdev), "%s", rail->dev->netdev);
	json_t *answer = ask(
		r, k, json_pack("{s:s, s:I}", "do", "path-open", "word", (json_int_t)route.word));
	route.port = (int)fb_json_int(answer, "port", 0);
	if (route.port > 0)
		drive_path_probe(&route, &p->path);
	else
		snprintf(p->path.why, sizeof(p->path.why), "%.150s",
			fb_json_str(answer, "why", "it did not answer"));
	json_decref(answer);
	if (!p->path.tried)
		return;
	answer = ask(r, k, json_pack("{s:s}", "do", "path-close"));
	drive_path_arrived(answer, &p->path);
	json_decref(answer);
}

/* ---- the sniffer ----------------------------------------------------------------------------- */

static void *sniff(void *arg)
{
	struct run *r = arg;
	verbs_sniff_until(r->sniff_fd, r->sniff_until, &r->sniff_stop, &r->d->wire);
	return NULL;
}

/* Packets of a NIC pass the kernel by; those of Soft-RoCE can be looked at. */
static void sniff_start(struct run *r)
{
	const struct verbs_dev *dev = &r->node.dev[0];
	struct fb_err why = {0};
	if (!dev->software) {
		snprintf(r->d->sniff_why, sizeof(r->d->sniff_why),
			"packets of a NIC pass the kernel by");
		return;
	}
	if (verbs_sniff_open(dev->netdev, &r->sniff_fd, &why) < 0) {
		snprintf(r->d->sniff_why, sizeof(r->d->sniff_why),
			"%.100s: it needs root, or CAP_NET_RAW", why.msg);
		return;
	}
	r->sniff_until = fb_deadline_in(2 * (r->d->duration_ns + ANSWER_NS));
	r->sniffing = pthread_create(&r->sniffer, NULL, sniff, r) == 0;
	if (!r->sniffing)
		close(r->sniff_fd);
	r->d->sniffed = r->sniffing;
}

static void sniff_end(struct run *r)
{
	if (!r->sniffing)
		return;
	atomic_store(&r->sniff_stop, 1);
	pthread_join(r->sniffer, NULL);
	r->d->wire_drops = verbs_sniff_drops(r->sniff_fd);
	close(r->sniff_fd);
	r->sniffing = false;
}

/* ---- the load -------------------------------------------------------------------------------- */

static bool window_of(const json_t *before, const json_t *after, struct port_window *w)
{
	struct live_reading a, b;
	bool both = live_reading_from(json_object_get(before, "reading"), &a);
	both = live_reading_from(json_object_get(after, "reading"), &b) && both;
	if (both)
		live_window(&a, &b, w);
	live_reading_free(&a);
	live_reading_free(&b);
	return both;
}

/* What the receiver's NIC counted by priority, where its driver does (mlx5's names). */
static void count_priorities(struct port_window *w)
{
	for (int i = 0; i < 8; i++) {
		char name[32];
		snprintf(name, sizeof(name), "rx_prio%d_packets", i);
		w->peer_prio_packets[i] = fb_json_int(w->stats, name, -1);
	}
}

static void take_windows(struct run *r)
{
	struct drive *d = r->d;
	uint64_t each;
	d->path_mtu = r->x.peer[0].end.rail.path_mtu;
	each = d->path_mtu ? (d->size + d->path_mtu - 1) / d->path_mtu : 1;
	for (unsigned k = 0; k < r->sessions; k++) {
		struct verbs_incast_peer *s = &r->x.peer[k];
		struct drive_peer *p = &d->peer[r->of[k]];
		if (s->lost)
			lose(p, &s->why);
		p->sent = s->sent;
		p->rate = s->rate;
		d->bytes += s->sent * d->size;
		d->packets += s->sent * (each ? each : 1);
		p->window.why = "its counters were not read at both ends of the load";
		if (!p->lost)
			window_of(s->before, s->after, &p->window);
	}
	d->reads = r->x.victim && !r->x.peer[r->x.nsenders].lost ? r->x.hist->n : 0;
	if (d->port < 0 || !window_of(r->x.own_before, r->x.own_after, &d->windows[d->port]))
		return;
	struct port_window *w = &d->windows[d->port];
	count_priorities(w);
	w->sent_packets = (int64_t)d->packets;
	w->sent_dscp = d->dscp;
}

static int load(struct run *r, struct fb_err *e)
{
	struct drive *d = r->d;
	r->x.some = r->x.wide = true;
	r->x.lead_ns = r->x.tail_ns = EDGE_NS;
	r->x.slots = SLOTS;
	r->x.slot_ns = d->duration_ns / SLOTS;
	r->x.where = fb_where(r->x.job.hardware ? "hardware" : "cpu");
	if (r->x.victim) {
		r->x.hist = malloc(sizeof(*r->x.hist));
		if (!r->x.hist)
			return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a histogram");
	}
	sniff_start(r);
	int rc = verbs_incast_steps(&r->x, e);
	sniff_end(r);
	take_windows(r);
	return rc;
}

static int with_node(struct run *r, struct fb_err *e)
{
	int rc = join_all(r, e);
	for (unsigned k = 0; rc == 0 && k < r->sessions; k++) {
		take_facts(r, k);
		probe_path(r, k);
	}
	if (rc == 0 && fb_stop_requested())
		rc = fb_fail(e, FB_EXIT_UNMEASURED, EINTR, "stopped by a signal");
	if (rc == 0 && r->x.nsenders > 0)
		rc = load(r, e);
	else
		snprintf(r->d->no_load, sizeof(r->d->no_load),
			"no load: none of the hosts of --drive came");
	verbs_incast_leave(&r->x, e);
	return rc;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Senders first; of three and more hosts the last is the victim where none is named. */
static int list_hosts(const struct drive_cfg *c, struct drive *d, struct fb_doc *doc)
{
	size_t n = c->hosts.n + (c->victim ? 1 : 0);
	d->peer = calloc(n, sizeof(*d->peer));
	if (!d->peer)
		return -ENOMEM;
	d->peers = (int)n;
	for (size_t i = 0; i < n; i++) {
		d->peer[i].name = i < c->hosts.n ? c->hosts.v[i] : c->victim;
		fb_doc_hide(doc, d->peer[i].name);
	}
	d->peer[n - 1].victim = c->victim || n >= 3;
	return 0;
}

static void explain_windows(struct drive *d)
{
	if (!d->no_load[0])
		snprintf(d->no_load, sizeof(d->no_load), "no load here: that of --drive went to %s",
			d->where);
	for (int i = 0; i < d->n_windows; i++)
		d->windows[i].why = d->no_load;
}

int drive_run(const struct drive_ask *a, struct drive *d, struct fb_err *e)
{
	struct run r = {.a = a, .d = d, .x = {.doc = a->doc}, .sniff_fd = -1};
	struct fb_err why = {0};
	*d = (struct drive){.port = -1, .size = a->cfg->size, .duration_ns = a->cfg->duration_ns};
	d->windows = calloc((size_t)a->facts->ports + 1, sizeof(*d->windows));
	d->n_windows = a->facts->ports;
	int rc = d->windows ? list_hosts(a->cfg, d, a->doc) : -ENOMEM;
	r.of = rc == 0 ? calloc((size_t)d->peers, sizeof(*r.of)) : NULL;
	r.x.peer = rc == 0 ? calloc((size_t)d->peers, sizeof(*r.x.peer)) : NULL;
	if (!r.of || !r.x.peer) {
		free(r.of);
		free(r.x.peer);
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %d hosts", d->peers);
	}
	rc = open_node(&r, &why);
	d->dscp = r.x.job.p.load.bg_traffic_class >> 2;
	d->victim_dscp = r.x.job.p.traffic_class >> 2;
	if (rc == 0) {
		rc = with_node(&r, e);
	} else {
		/* That no port here can be used is what the other checks tell of. */
		for (int i = 0; i < d->peers; i++)
			lose(&d->peer[i], &why);
		snprintf(d->no_load, sizeof(d->no_load), "no load: %.300s", why.msg);
		free(r.x.peer);
		rc = 0;
	}
	verbs_node_close(&r.node);
	free(r.of);
	explain_windows(d);
	return rc;
}

static void free_window(struct port_window *w)
{
	json_decref(w->stats);
	json_decref(w->counters);
}

void drive_free(struct drive *d)
{
	for (int i = 0; i < d->peers; i++) {
		free_window(&d->peer[i].window);
		if (d->peer[i].facts)
			facts_free(d->peer[i].facts);
		free(d->peer[i].facts);
	}
	for (int i = 0; i < d->n_windows; i++)
		free_window(&d->windows[i]);
	free(d->peer);
	free(d->windows);
	*d = (struct drive){.port = -1};
}
