// SPDX-License-Identifier: Apache-2.0
/*
 * The topology as one JSON object. Unknown numbers are null, unknown texts absent; nothing here
 * names a host unless the caller wants it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/sysinfo.h"
#include "topo/fingerprint.h"
#include "topo/nccl_path.h"
#include "topo/plan.h"
#include "topo/topo_priv.h"

static void set_numa(json_t *o, int numa)
{
	json_object_set_new(o, "numa", numa >= 0 ? json_integer(numa) : json_null());
}

static void set_uint(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, v ? json_integer((json_int_t)v) : json_null());
}

static void set_text(json_t *o, const char *key, const char *s)
{
	if (s && *s)
		fb_json_set_str(o, key, s);
}

/** The CPUs near a device: a key that is always there, null where they are not known. */
static void set_cpus(json_t *o, const char *cpus)
{
	json_object_set_new(o, "cpus", cpus && *cpus ? json_string(cpus) : json_null());
}

static json_t *positive(double v)
{
	return v > 0 ? fb_json_real(v) : json_null();
}

static json_t *link_json(const struct topo *t, int pci)
{
	if (pci < 0)
		return json_null();
	const struct topo_link *l = &t->pci[pci].link;
	json_t *o = json_object();

	json_object_set_new(o, "speed", positive(l->now_gts));
	set_uint(o, "width", l->now_width);
	json_object_set_new(o, "max_speed", positive(l->max_gts));
	set_uint(o, "max_width", l->max_width);
	double bw = topo_link_bandwidth(l->now_gts, l->now_width);

	json_object_set_new(o, "bandwidth", positive(bw > 0 ? bw : l->bandwidth));
	fb_json_set_bool(o, "downtrained", topo_link_downtrained(t, &t->pci[pci]));
	return o;
}

static json_t *packages_json(const struct topo *t)
{
	json_t *a = json_array();

	for (size_t i = 0; i < t->n_packages; i++) {
		const struct topo_package *p = &t->packages[i];
		json_t *o = json_object(), *nodes = json_array();

		fb_json_set_int(o, "id", p->os_index);
		set_text(o, "model", p->model);
		fb_json_set_str(o, "cpus", p->cpus);
		fb_json_set_int(o, "cores", p->cores);
		fb_json_set_int(o, "pus", p->pus);
		for (size_t k = 0; k < t->n_numa; k++)
			if (t->numa[k].package == (int)i)
				json_array_append_new(nodes, json_integer(t->numa[k].os_index));
		json_object_set_new(o, "numa_nodes", nodes);
		json_array_append_new(a, o);
	}
	return a;
}

/** What firmware tells of access to this node's memory, by the node whose CPUs access it. */
static json_t *access_json(const struct topo *t, size_t target)
{
	json_t *a = json_array();

	for (size_t i = 0; i < t->n_numa; i++) {
		size_t at = i * t->n_numa + target;
		double ns = t->latency_ns ? t->latency_ns[at] : NAN;
		double bw = t->bandwidth ? t->bandwidth[at] : NAN;

		if (isnan(ns) && isnan(bw))
			continue;
		json_t *o = json_object();

		fb_json_set_int(o, "from", t->numa[i].os_index);
		json_object_set_new(o, "latency_ns", positive(ns));
		json_object_set_new(o, "bandwidth", positive(bw));
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *numa_json(const struct topo *t)
{
	json_t *a = json_array();

	for (size_t i = 0; i < t->n_numa; i++) {
		const struct topo_numa *n = &t->numa[i];
		json_t *o = json_object();

		fb_json_set_int(o, "id", n->os_index);
		json_object_set_new(o, "package",
			n->package >= 0 ? json_integer(t->packages[n->package].os_index)
					: json_null());
		fb_json_set_str(o, "cpus", n->cpus);
		set_uint(o, "memory_bytes", n->memory);
		set_text(o, "kind", n->kind);
		if (t->distance) {
			json_t *d = json_array();

			for (size_t k = 0; k < t->n_numa; k++)
				json_array_append_new(
					d, json_integer(t->distance[i * t->n_numa + k]));
			json_object_set_new(o, "distances", d);
		}
		if (t->latency_ns || t->bandwidth)
			json_object_set_new(o, "access", access_json(t, i));
		json_array_append_new(a, o);
	}
	return a;
}

/* ---- devices --------------------------------------------------------------------------------- */

struct near {
	const struct topo_dev *dev;
	enum topo_path path;
};

static int compare_near(const void *a, const void *b)
{
	const struct near *x = a, *y = b;

	if (x->path != y->path)
		return (x->path > y->path) - (x->path < y->path);
	return (x->dev > y->dev) - (x->dev < y->dev);
}

/**
 * NICs that can carry training traffic, nearest first. A software RDMA device is its interface
 * under another name: the interface stands for both.
 */
static size_t nearest(const struct topo *t, const struct topo_dev *gpu, const struct topo_dev *devs,
	size_t n, struct near *near)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		if (devs[i].type == TOPO_DEV_GPU ||
			(devs[i].type == TOPO_DEV_RDMA && t->rdma[devs[i].index].soft))
			continue;
		near[k++] = (struct near){&devs[i], topo_path(t, gpu, &devs[i])};
	}
	qsort(near, k, sizeof(*near), compare_near);
	return k;
}

static json_t *fast_json(const struct topo *t, size_t gpu)
{
	static const char *const kinds[] = {"nvlink", "xgmi", "c2c"};
	json_t *a = json_array();

	for (size_t i = 0; i < t->n_fast; i++) {
		const struct topo_fast *f = &t->fast[i];
		json_t *o;

		if (f->gpu != (int)gpu)
			continue;
		o = json_object();
		fb_json_set_str(o, "kind", kinds[f->kind]);
		fb_json_set_str(o, "to",
			f->peer >= 0                   ? t->gpus[f->peer].name
			: f->peer_class >> 8 == 0x0680 ? "switch"
			: f->kind == TOPO_FAST_C2C     ? "cpu"
						       : "?");
		set_text(o, "to_bdf", f->peer_bdf);
		fb_json_set_int(o, "links", f->count);
		json_object_set_new(o, "bandwidth", positive(f->bandwidth));
		json_array_append_new(a, o);
	}
	return a;
}

/* Of so many GPUs and NICs that a list of all pairs would fill the memory, each GPU's nearest. */
#define MAX_PAIRS   65536
#define MAX_NEAREST 16

static json_t *gpus_json(const struct topo *t, const struct topo_dev *devs, size_t n)
{
	json_t *a = json_array();
	struct near *near = calloc(n + 1, sizeof(*near));

	for (size_t i = 0; i < n && near; i++) {
		if (devs[i].type != TOPO_DEV_GPU)
			continue;
		const struct topo_gpu *g = &t->gpus[devs[i].index];
		const struct topo_pci *p = &t->pci[g->pci];
		json_t *o = json_object(), *nics = json_array();

		fb_json_set_str(o, "name", g->name);
		json_object_set_new(o, "bdf", p->bdf[0] ? json_string(p->bdf) : json_null());
		set_text(o, "vendor", topo_vendor_name(p->vendor));
		set_text(o, "model", g->model);
		fb_json_set_int(o, "pci_vendor", p->vendor);
		fb_json_set_int(o, "pci_device", p->device);
		set_text(o, "driver", p->driver);
		set_numa(o, p->numa);
		set_cpus(o, p->cpus);
		json_object_set_new(o, "link", link_json(t, g->pci));
		size_t k = nearest(t, &devs[i], devs, n, near);

		if (k > MAX_NEAREST && k * t->n_gpus > MAX_PAIRS)
			k = MAX_NEAREST;
		for (size_t j = 0; j < k; j++) {
			json_t *nic = json_object();

			fb_json_set_str(nic, "name", near[j].dev->name);
			fb_json_set_str(nic, "path", topo_path_name(near[j].path));
			json_array_append_new(nics, nic);
		}
		json_object_set_new(o, "nics", nics);
		json_object_set_new(o, "fast_links", fast_json(t, devs[i].index));
		json_array_append_new(a, o);
	}
	free(near);
	return a;
}

static json_t *nics_json(const struct topo *t, const struct topo_plan *plan)
{
	const struct topo_dev *devs = plan->devs;
	size_t n = plan->n_devs;
	json_t *a = json_array();

	for (size_t i = 0; i < n; i++) {
		const struct topo_dev *d = &devs[i];
		json_t *o;
		uint64_t rate = 0;

		if (d->type == TOPO_DEV_GPU)
			continue;
		o = json_object();
		fb_json_set_str(o, "name", d->name);
		if (d->pci >= 0)
			fb_json_set_str(o, "bdf", t->pci[d->pci].bdf);
		else
			json_object_set_new(o, "bdf", json_null());
		set_numa(o, d->numa);
		set_cpus(o, d->cpus);
		fb_json_set_str(o, "kind", topo_dev_kind(t, d));
		if (d->type == TOPO_DEV_RDMA) {
			const struct topo_rdma *r = &t->rdma[d->index];

			rate = r->n_ports ? r->ports[0].rate_bps : 0;
			set_text(o, "rdma", r->name);
			set_text(o, "netdev", r->netdev);
		} else {
			rate = t->nics[d->index].rate_bps;
			/* A function's address stands for a name that the source does not tell. */
			set_text(o, "netdev", topo_bdf_len(d->name) ? NULL : d->name);
		}
		set_uint(o, "rate_bps", rate);
		json_object_set_new(o, "link", link_json(t, d->pci));
		const struct topo_plan_nic *nic = topo_plan_nic(plan, i);

		json_object_set_new(
			o, "rail", nic && nic->rail >= 0 ? json_integer(nic->rail) : json_null());
		if (nic) {
			fb_json_set_str(o, "role", topo_nic_role_name(nic->role));
			set_text(o, "why", nic->why);
		}
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *rdma_json(const struct topo *t)
{
	json_t *a = json_array();

	for (size_t i = 0; i < t->n_rdma; i++) {
		const struct topo_rdma *r = &t->rdma[i];
		json_t *o = json_object(), *ports = json_array();

		fb_json_set_str(o, "name", r->name);
		fb_json_set_bool(o, "software", r->soft);
		set_text(o, "netdev", r->netdev);
		set_text(o, "driver", r->driver);
		set_text(o, "firmware", r->fw);
		set_text(o, "board", r->board);
		set_uint(o, "node_type", r->node_type);
		set_numa(o, r->numa);
		set_cpus(o, r->cpus);
		for (size_t k = 0; k < r->n_ports; k++) {
			const struct topo_rdma_port *p = &r->ports[k];
			json_t *q = json_object();

			fb_json_set_int(q, "port", p->num);
			set_text(q, "state", p->state_name);
			set_text(q, "phys_state", p->phys_state);
			set_text(q, "link_layer", p->link_layer);
			set_text(q, "rate", p->rate);
			set_uint(q, "rate_bps", p->rate_bps);
			set_text(q, "netdev", p->netdev);
			json_array_append_new(ports, q);
		}
		json_object_set_new(o, "ports", ports);
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *netdevs_json(const struct topo *t)
{
	json_t *a = json_array();

	for (size_t i = 0; i < t->n_nics; i++) {
		const struct topo_nic *nic = &t->nics[i];
		json_t *o = json_object();

		fb_json_set_str(o, "name", nic->name);
		fb_json_set_bool(o, "virtual", nic->is_virtual);
		if (nic->pci >= 0)
			fb_json_set_str(o, "bdf", t->pci[nic->pci].bdf);
		set_numa(o, nic->numa);
		set_uint(o, "rate_bps", nic->rate_bps);
		set_uint(o, "mtu", (uint64_t)nic->mtu);
		set_text(o, "state", nic->state);
		set_text(o, "driver", nic->driver);
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *pci_json(const struct topo *t)
{
	json_t *a = json_array();

	for (size_t i = 0; i < t->n_pci; i++) {
		const struct topo_pci *p = &t->pci[i];
		json_t *o;

		/* A GPU of nvidia-smi's matrix, which names no addresses. */
		if (!p->bdf[0])
			continue;
		o = json_object();
		fb_json_set_str(o, "bdf", p->bdf);
		fb_json_set_int(o, "class", p->class_code);
		fb_json_set_int(o, "vendor", p->vendor);
		fb_json_set_int(o, "device", p->device);
		set_text(o, "driver", p->driver);
		set_text(o, "root", p->root);
		if (p->parent >= 0)
			fb_json_set_str(o, "parent", t->pci[p->parent].bdf);
		if (p->physfn >= 0)
			fb_json_set_str(o, "physfn", t->pci[p->physfn].bdf);
		set_numa(o, p->numa);
		if (p->link.now_gts > 0 || p->link.max_gts > 0 || p->link.bandwidth > 0)
			json_object_set_new(o, "link", link_json(t, (int)i));
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *paths_json(const struct topo *t, const struct topo_dev *devs, size_t n)
{
	enum topo_nccl *nccl = topo_matrix_fits(t, n) ? calloc(n * n + 1, sizeof(*nccl)) : NULL;
	json_t *a = json_array();
	char type[32];

	if (!nccl || topo_nccl_classes(t, devs, n, nccl) != 0)
		n = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n; k++) {
			bool fast = topo_path(t, &devs[i], &devs[k]) == TOPO_PATH_NV;
			double bw = fast ? topo_fast_bandwidth(t, devs[i].index, devs[k].index)
					 : topo_path_bandwidth(t, &devs[i], &devs[k]);
			json_t *o = json_object();

			fb_json_set_str(o, "a", devs[i].name);
			fb_json_set_str(o, "b", devs[k].name);
			fb_json_set_str(o, "type",
				topo_path_text(t, &devs[i], &devs[k], type, sizeof(type)));
			json_object_set_new(o, "bandwidth", positive(bw));
			fb_json_set_str(o, "nccl", topo_nccl_name(nccl[i * n + k]));
			json_array_append_new(a, o);
		}
	free(nccl);
	return a;
}

json_t *topo_to_json(const struct topo *t, bool anonymous)
{
	static const char *const sources[] = {
		"live", "sysroot", "hwloc-xml", "nccl-xml", "nvidia-smi"};
	struct topo_plan *plan;
	struct topo_shape *shape;
	char host[256];

	if (topo_plan_make(t, &plan, NULL) != 0)
		return NULL;
	if (topo_shape_make(t, &shape) != 0) {
		topo_plan_free(plan);
		return NULL;
	}
	json_t *o = json_object(), *warnings = json_array();

	fb_json_set_str(o, "schema", TOPO_SCHEMA);
	fb_json_set_str(o, "source",
		t->source <= TOPO_FROM_SMI ? sources[t->source] : sources[TOPO_FROM_SYSROOT]);
	fb_json_set_bool(o, "recorded", !t->live);
	fb_json_set_bool(o, "virtual_machine", t->virtual_machine);
	if (!anonymous && t->live) {
		fb_host_name(host, sizeof(host));
		fb_json_set_str(o, "host", host);
	}
	/* NCCL's files and nvidia-smi's text tell no cores, and not always CPUs. */
	bool told = t->source != TOPO_FROM_NCCL_XML && t->source != TOPO_FROM_SMI;

	json_object_set_new(o, "cores", told || t->cores ? json_integer(t->cores) : json_null());
	json_object_set_new(o, "pus", told || t->pus ? json_integer(t->pus) : json_null());
	json_object_set_new(o, "packages", packages_json(t));
	json_object_set_new(o, "numa_nodes", numa_json(t));
	json_object_set_new(o, "gpus", gpus_json(t, plan->devs, plan->n_devs));
	json_object_set_new(o, "nics", nics_json(t, plan));
	json_object_set_new(o, "rdma_devices", rdma_json(t));
	json_object_set_new(o, "netdevs", netdevs_json(t));
	json_object_set_new(o, "pci", pci_json(t));
	json_object_set_new(o, "paths", paths_json(t, plan->devs, plan->n_devs));
	topo_plan_json(t, plan, o);
	for (size_t i = 0; i < t->n_warnings; i++) {
		json_t *s = json_string(t->warnings[i]);

		json_array_append_new(warnings, s ? s : json_string("(a note that is not UTF-8)"));
	}
	json_object_set_new(o, "warnings", warnings);
	topo_shape_json(shape, o);
	topo_shape_free(shape);
	topo_plan_free(plan);
	return o;
}
