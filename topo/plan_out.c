// SPDX-License-Identifier: Apache-2.0
/*
 * The plan as text, JSON, Open MPI's rankfile and lines for NCCL, numactl and taskset. Nothing is
 * decided here; names come from files that may hold anything, so control characters are replaced.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "topo/plan.h"
#include "topo/topo_priv.h"

static const char *clean(const char *s, char *buf, size_t len)
{
	topo_copy(buf, len, s);
	return buf;
}

static const char *name_of(const struct topo_plan *p, size_t dev, char buf[TOPO_NAME])
{
	return clean(p->devs[dev].name, buf, TOPO_NAME);
}

/** "mlx5_0, mlx5_1" */
static void add_nics(
	const struct topo_plan *p, const struct topo_plan_gpu *g, struct fb_strbuf *out)
{
	char buf[TOPO_NAME];

	for (size_t i = 0; i < g->n_nics; i++)
		fb_strbuf_printf(
			out, "%s%s", i ? "," : "", name_of(p, p->nics[g->nics[i]].dev, buf));
}

/** ":2" when the device has several ports and some, but not all, are ACTIVE. */
static void add_ports(
	const struct topo_rdma *r, const char *name, bool first, struct fb_strbuf *out)
{
	size_t active = 0;

	for (size_t i = 0; i < r->n_ports; i++)
		active += r->ports[i].state == 4;
	if (r->n_ports < 2 || active == 0 || active == r->n_ports) {
		fb_strbuf_printf(out, "%s%s", first ? "" : ",", name);
		return;
	}
	for (size_t i = 0; i < r->n_ports; i++)
		if (r->ports[i].state == 4) {
			fb_strbuf_printf(out, "%s%s:%u", first ? "" : ",", name, r->ports[i].num);
			first = false;
		}
}

/** Files that name NICs by their PCI function alone do not know the device's name. */
static bool names_functions(const struct topo *t, const struct topo_plan *p)
{
	for (size_t i = 0; i < p->n_nics; i++) {
		const struct topo_dev *d = &p->devs[p->nics[i].dev];

		if (p->nics[i].role == TOPO_NIC_COMPUTE && d->pci >= 0 &&
			strcmp(d->name, t->pci[d->pci].bdf) == 0)
			return true;
	}
	return false;
}

void topo_plan_hca(const struct topo *t, const struct topo_plan *p, struct fb_strbuf *out)
{
	char buf[TOPO_NAME];
	bool first = true;

	for (size_t g = 0; g < p->n_gpus; g++)
		if (p->gpus[g].ambiguous)
			return;
	if (names_functions(t, p))
		return;
	for (size_t i = 0; i < p->n_nics; i++) {
		const struct topo_dev *d = &p->devs[p->nics[i].dev];

		if (p->nics[i].role != TOPO_NIC_COMPUTE)
			continue;
		name_of(p, p->nics[i].dev, buf);
		if (first)
			fb_strbuf_add(out, "=");
		if (d->type == TOPO_DEV_RDMA)
			add_ports(&t->rdma[d->index], buf, first, out);
		else
			fb_strbuf_printf(out, "%s%s", first ? "" : ",", buf);
		first = false;
	}
}

/* ---- text ------------------------------------------------------------------------------------ */

static void gpu_rows(const struct topo_plan *p, struct fb_strbuf *out)
{
	char buf[TOPO_NAME], num[3][16];
	int w = 6;

	for (size_t g = 0; g < p->n_gpus; g++) {
		struct fb_strbuf nics = {0};

		add_nics(p, &p->gpus[g], &nics);
		if (!p->gpus[g].ambiguous && (int)nics.len + 2 > w)
			w = (int)nics.len + 2;
		fb_strbuf_free(&nics);
	}
	fb_strbuf_printf(out, "  %-8s%-*s%-6s%-6s%-6s%-7s%s\n", "GPU", w, "NICs", "path", "rail",
		"NUMA", "cores", "CPUs");
	for (size_t g = 0; g < p->n_gpus; g++) {
		const struct topo_plan_gpu *gpu = &p->gpus[g];
		struct fb_strbuf nics = {0};
		bool matched = !gpu->ambiguous && gpu->n_nics;

		if (matched)
			add_nics(p, gpu, &nics);
		snprintf(num[0], sizeof(num[0]), "%d", matched ? p->nics[gpu->nics[0]].rail : 0);
		snprintf(num[1], sizeof(num[1]), "%d", gpu->numa);
		snprintf(num[2], sizeof(num[2]), "%u", gpu->n_cores);
		fb_strbuf_printf(out, "  %-8s%-*s%-6s%-6s%-6s%-7s%s\n", name_of(p, gpu->dev, buf),
			w,
			matched          ? nics.s
			: gpu->ambiguous ? "?"
					 : "none",
			matched ? topo_path_name(gpu->path) : "?", matched ? num[0] : "?",
			gpu->numa >= 0 ? num[1] : "?", gpu->n_cores ? num[2] : "?",
			gpu->cpus ? gpu->cpus : "?");
		fb_strbuf_free(&nics);
	}
}

static void ambiguous_rows(const struct topo_plan *p, struct fb_strbuf *out)
{
	char buf[TOPO_NAME];
	bool head = false;

	for (size_t g = 0; g < p->n_gpus; g++) {
		const struct topo_plan_gpu *gpu = &p->gpus[g];

		if (!gpu->ambiguous)
			continue;
		if (!head)
			fb_strbuf_add(out, "\nAmbiguous: the tree does not decide\n");
		head = true;
		fb_strbuf_printf(out, "  %s: ", name_of(p, gpu->dev, buf));
		add_nics(p, gpu, out);
		fb_strbuf_printf(out, ": %s\n", gpu->why);
	}
	if (head)
		fb_strbuf_add(out,
			"  what helps: the provider's topology file (--nccl-xml FILE, and "
			"NCCL_TOPO_FILE for NCCL),\n"
			"  or the switches in the guest's tree; nothing is guessed here\n");
}

static void nic_rows(const struct topo_plan *p, struct fb_strbuf *out)
{
	char buf[TOPO_NAME];
	bool head = false;

	for (size_t i = 0; i < p->n_nics; i++) {
		const struct topo_plan_nic *n = &p->nics[i];

		if (n->role == TOPO_NIC_COMPUTE || (n->role == TOPO_NIC_SPARE && !p->n_gpus))
			continue;
		if (n->role == TOPO_NIC_SPARE) {
			bool tied = false;

			for (size_t g = 0; g < p->n_gpus; g++)
				for (size_t k = 0; k < p->gpus[g].n_nics; k++)
					tied = tied || p->gpus[g].nics[k] == i;
			if (tied)
				continue;
		}
		if (!head)
			fb_strbuf_add(out, "\nNICs of no GPU\n");
		head = true;
		fb_strbuf_printf(out, "  %-14s%s\n", name_of(p, n->dev, buf),
			n->role == TOPO_NIC_SPARE ? "spare: every GPU has nearer ones" : n->why);
	}
}

static void paste_rows(const struct topo *t, const struct topo_plan *p, struct fb_strbuf *out)
{
	struct fb_strbuf hca = {0};
	char buf[TOPO_NAME];

	fb_strbuf_add(out, "\nTo paste (GPUs in the order of CUDA_DEVICE_ORDER=PCI_BUS_ID)\n");
	topo_plan_hca(t, p, &hca);
	if (hca.len)
		fb_strbuf_printf(out, "  export %s=\"%s\"\n",
			p->sockets ? "NCCL_SOCKET_IFNAME" : "NCCL_IB_HCA", hca.s);
	else if (names_functions(t, p))
		fb_strbuf_add(out, "  NCCL_IB_HCA: this source names the NICs' PCI functions only; "
				   "their devices: ls /sys/bus/pci/devices/ADDRESS/infiniband\n");
	fb_strbuf_free(&hca);
	for (size_t g = 0; g < p->n_gpus; g++) {
		const struct topo_plan_gpu *gpu = &p->gpus[g];

		if (!gpu->cpus)
			continue;
		name_of(p, gpu->dev, buf);
		if (gpu->numa >= 0)
			fb_strbuf_printf(out, "  %s: numactl --physcpubind=%s --membind=%d\n", buf,
				gpu->cpus, gpu->numa);
		fb_strbuf_printf(out, "  %s: taskset -c %s\n", buf, gpu->cpus);
	}
}

void topo_plan_text(const struct topo *t, const struct topo_plan *p, struct fb_strbuf *out)
{
	if (!p->n_gpus)
		fb_strbuf_add(out, "No GPU is visible from here: there is nothing to plan.\n");
	else
		fb_strbuf_add(out, "Plan\n");
	if (p->n_gpus)
		gpu_rows(p, out);
	ambiguous_rows(p, out);
	nic_rows(p, out);
	for (size_t i = 0; i < p->n_irq; i++) {
		const struct topo_plan_irq *q = &p->irq[i];

		if (i == 0)
			fb_strbuf_add(out, "\nKept free for interrupts\n");
		fb_strbuf_add(out, "  ");
		if (q->numa >= 0)
			fb_strbuf_printf(out, "NUMA node %d: ", q->numa);
		fb_strbuf_printf(out, "CPUs %s", q->cpus);
		if (q->n_cores)
			fb_strbuf_printf(
				out, ", %u core%s", q->n_cores, q->n_cores == 1 ? "" : "s");
		if (q->n_nics)
			fb_strbuf_printf(
				out, " beside %u NIC%s", q->n_nics, q->n_nics == 1 ? "" : "s");
		fb_strbuf_add(out, "\n");
	}
	for (size_t i = 0; i < p->n_notes; i++) {
		char note[1024];

		fb_strbuf_printf(out, "%s  %s\n", i ? "" : "\nNotes\n",
			clean(p->notes[i], note, sizeof(note)));
	}
	if (p->n_gpus)
		paste_rows(t, p, out);
}

/* ---- rankfile -------------------------------------------------------------------------------- */

int topo_plan_rankfile(const struct topo_plan *p, const struct fb_opt_list *hosts,
	struct fb_strbuf *out, struct fb_err *e)
{
	size_t nodes = hosts->n ? hosts->n : 1;

	if (!p->n_gpus)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENODATA, "no rankfile: no GPU is visible");
	for (size_t g = 0; g < p->n_gpus; g++)
		if (!p->gpus[g].cores) {
			fb_fail(e, FB_EXIT_UNMEASURED, ENODATA,
				"no rankfile: the cores near %s are not known",
				p->devs[p->gpus[g].dev].name);
			fb_hint(e, "Open MPI counts cores as hwloc does: read the node itself, a "
				   "recorded tree or hwloc's XML");
			return -ENODATA;
		}
	fb_strbuf_printf(out,
		"# One rank a GPU, in the order of CUDA_DEVICE_ORDER=PCI_BUS_ID; slots are logical "
		"cores.\n# mpirun --rankfile FILE -np %zu ...\n",
		nodes * p->n_gpus);
	for (size_t n = 0; n < nodes; n++)
		for (size_t g = 0; g < p->n_gpus; g++)
			fb_strbuf_printf(out, "rank %zu=%s slot=%s\n", n * p->n_gpus + g,
				hosts->n ? hosts->v[n] : "localhost", p->gpus[g].cores);
	return 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *gpu_json(const struct topo_plan *p, const struct topo_plan_gpu *g)
{
	json_t *o = json_object(), *nics = json_array();

	fb_json_set_str(o, "gpu", p->devs[g->dev].name);
	for (size_t i = 0; i < g->n_nics; i++) {
		json_t *name = json_string(p->devs[p->nics[g->nics[i]].dev].name);

		json_array_append_new(nics, name ? name : json_string("?"));
	}
	json_object_set_new(o, "nics", nics);
	fb_json_set_str(o, "path", topo_path_name(g->path));
	if (!g->ambiguous)
		json_object_set_new(o, "rail",
			g->n_nics ? json_integer(p->nics[g->nics[0]].rail) : json_null());
	json_object_set_new(o, "numa", g->numa >= 0 ? json_integer(g->numa) : json_null());
	if (g->cpus)
		fb_json_set_str(o, "cpus", g->cpus);
	json_object_set_new(o, "cores", g->n_cores ? json_integer(g->n_cores) : json_null());
	if (g->cores)
		fb_json_set_str(o, "logical_cores", g->cores);
	if (g->ambiguous)
		fb_json_set_str(o, "why", g->why);
	return o;
}

void topo_plan_json(const struct topo *t, const struct topo_plan *p, json_t *doc)
{
	json_t *plan = json_array(), *ambiguous = json_array(), *irq = json_array();
	json_t *notes = json_array();
	struct fb_strbuf hca = {0};

	for (size_t g = 0; g < p->n_gpus; g++)
		json_array_append_new(
			p->gpus[g].ambiguous ? ambiguous : plan, gpu_json(p, &p->gpus[g]));
	for (size_t i = 0; i < p->n_irq; i++) {
		const struct topo_plan_irq *q = &p->irq[i];
		json_t *o = json_object();

		json_object_set_new(o, "numa", q->numa >= 0 ? json_integer(q->numa) : json_null());
		fb_json_set_str(o, "cpus", q->cpus);
		json_object_set_new(
			o, "cores", q->n_cores ? json_integer(q->n_cores) : json_null());
		fb_json_set_int(o, "nics", q->n_nics);
		json_array_append_new(irq, o);
	}
	for (size_t i = 0; i < p->n_notes; i++) {
		json_t *s = json_string(p->notes[i]);

		json_array_append_new(notes, s ? s : json_string("(a note that is not UTF-8)"));
	}
	json_object_set_new(doc, "plan", plan);
	json_object_set_new(doc, "ambiguous", ambiguous);
	json_object_set_new(doc, "irq_cpus", irq);
	json_object_set_new(doc, "plan_notes", notes);
	topo_plan_hca(t, p, &hca);
	if (hca.len)
		fb_json_set_str(doc, p->sockets ? "nccl_socket_ifname" : "nccl_ib_hca", hca.s);
	fb_strbuf_free(&hca);
}
