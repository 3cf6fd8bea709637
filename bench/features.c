// SPDX-License-Identifier: Apache-2.0
/*
 * `fabricbench features`: every part the suite can use, whether it is here, and if not why and what
 * would bring it. It only looks: nothing is initialised, no MPI, no GPU context. It must run with
 * no plug-in at all.
 *
 * `proven_on` says on what hardware this code has really run, not what was found here.
 */
#include "bench/features.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/opt.h"
#include "bench/core/plugin.h"
#include "bench/core/proc.h"
#include "bench/core/sysroot.h"
#include "bench/mem/mem_ops.h"
#include "version.h"

enum state { FOUND, MISSING, UNUSABLE };
static const char *const state_names[] = {"found", "missing", "unusable"};

struct cfg {
	bool json;
};
static const struct fb_opt opts[] = {
	{.name = "json",
		.type = FB_OPT_FLAG,
		.offset = offsetof(struct cfg, json),
		.help = "print a JSON document, schema " FEATURES_SCHEMA},
	{.name = NULL},
};

static void fill_spec(struct fb_opt_spec *spec, struct cfg *cfg)
{
	*spec = (struct fb_opt_spec){
		.command = "features",
		.usage = "[options]",
		.summary =
			"List the parts that this program can use: found, missing or unusable, why, and "
			"what would bring them.",
		.notes =
			"proven_on: the hardware on which this code has really run (none, one node, one "
			"GPU, N GPUs,\nN nodes, lab). The status is 0 whatever is missing.",
		.sets = {{"Output", opts, cfg}},
	};
}

/* Strings that are NULL or empty are left out: absent is not "". */
static void add(json_t *parts, const char *name, enum state st, const char *version,
	const char *reason, const char *remedy, const char *proven_on)
{
	json_t *p = json_object();
	fb_json_set_str(p, "name", name);
	fb_json_set_str(p, "state", state_names[st]);
	fb_json_set_str(p, "version", version && *version ? version : NULL);
	fb_json_set_str(p, "reason", reason && *reason ? reason : NULL);
	fb_json_set_str(p, "remedy", remedy && *remedy ? remedy : NULL);
	fb_json_set_str(p, "proven_on", proven_on);
	json_array_append_new(parts, p);
}

/* ---- plug-ins ---------------------------------------------------------------------------------
 */

static const struct {
	const char *plugin, *proven_on;
} proofs[] = {{"mpi", "one node"}, {"dnnl", "one node"}, {"cuda", "none"}, {"nccl", "none"}};

static const char *proven_on(const char *plugin)
{
	for (size_t i = 0; i < sizeof(proofs) / sizeof(proofs[0]); i++)
		if (strcmp(proofs[i].plugin, plugin) == 0)
			return proofs[i].proven_on;
	return "none";
}

static void add_plugin(json_t *parts, const char *name)
{
	char part[64], found[256] = "", version[400];
	struct fb_err why = {0};
	snprintf(part, sizeof(part), "plug-in %s", name);
	const struct fb_plugin *p = fb_plugin_open(name, &why);
	if (!p) {
		add(parts, part, why.code == -ENOENT ? MISSING : UNUSABLE, NULL, why.msg, why.hint,
			proven_on(name));
		return;
	}
	int rc = p->probe(found, sizeof(found), &why);
	snprintf(version, sizeof(version), "%s (built with %s)", found, p->built);
	add(parts, part, rc == 0 ? FOUND : UNUSABLE, version, rc == 0 ? NULL : why.msg, why.hint,
		proven_on(name));
}

/* ---- hardware by sysfs ------------------------------------------------------------------------
 */

static unsigned count_names(const struct fb_sysroot *r, const char *path, char *list, size_t len)
{
	char **names = NULL;
	size_t used = 0;
	list[0] = '\0';
	int n = fb_sysroot_list(r, path, &names);
	for (int i = 0; i < n; i++) {
		int w = snprintf(list + used, len - used, "%s%s", i > 0 ? ", " : "", names[i]);
		used = w > 0 && (size_t)w < len - used ? used + (size_t)w : used;
	}
	if (n > 0)
		fb_sysroot_names_free(names);
	return n > 0 ? (unsigned)n : 0;
}

static void add_rdma(json_t *parts, const struct fb_sysroot *r)
{
	char list[256], version[320];
	unsigned n = count_names(r, "/sys/class/infiniband", list, sizeof(list));
	if (n > 0) {
		snprintf(version, sizeof(version), "%u device%s: %s", n, n == 1 ? "" : "s", list);
		add(parts, "RDMA devices", FOUND, version, NULL, NULL, "lab");
		return;
	}
	add(parts, "RDMA devices", MISSING, NULL, "/sys/class/infiniband is absent or empty",
		"load the adapter's driver (mlx5_ib, ...); without an adapter use Soft-RoCE "
		"(modprobe rdma_rxe; rdma link add rxe0 type rxe netdev eth0) or scripts/lab/lab",
		"lab");
}

/* GPUs that the bus knows, whether or not a driver does. */
static unsigned count_gpus(const struct fb_sysroot *r)
{
	char **names = NULL;
	unsigned gpus = 0;
	int n = fb_sysroot_list(r, "/sys/bus/pci/devices", &names);
	for (int i = 0; i < n; i++) {
		int64_t vendor = 0, class = 0;
		if (fb_sysroot_read_i64(r, &vendor, "/sys/bus/pci/devices/%s/vendor", names[i]) !=
				0 ||
			fb_sysroot_read_i64(r, &class, "/sys/bus/pci/devices/%s/class", names[i]) !=
				0)
			continue;
		/* 10de: NVIDIA; class 0300 VGA and 0302 3D controllers */
		gpus += vendor == 0x10de && (class >> 8 == 0x0302 || class >> 8 == 0x0300);
	}
	if (n > 0)
		fb_sysroot_names_free(names);
	return gpus;
}

static void add_gpus(json_t *parts, const struct fb_sysroot *r)
{
	char version[256] = "", found[192] = "";
	struct fb_err why = {0};
	unsigned on_bus = count_gpus(r);
	const struct fb_plugin *p = fb_plugin_open("cuda", &why);
	if (p && p->mem && p->mem->probe(found, sizeof(found), &why) == 0) {
		char name[128] = "";
		if (p->mem->describe(0, name, sizeof(name), NULL) != 0)
			name[0] = '\0';
		snprintf(version, sizeof(version), "%d; the first: %s", p->mem->count(), name);
		add(parts, "NVIDIA GPUs", FOUND, version, NULL, NULL, "none");
		return;
	}
	if (on_bus == 0) {
		add(parts, "NVIDIA GPUs", MISSING, NULL,
			"no NVIDIA display or 3D controller among the PCI devices",
			"collectives and training run on the CPU here", "none");
		return;
	}
	snprintf(version, sizeof(version), "%u on the PCI bus", on_bus);
	add(parts, "NVIDIA GPUs", UNUSABLE, version, why.msg, why.hint, "none");
}

/* ---- programs ---------------------------------------------------------------------------------
 */

static const struct {
	const char *part, *program, *reason, *remedy, *proven_on;
} programs[] = {
	{"lab", "qemu-system-x86_64",
		"qemu-system-x86_64 is not in PATH: no guests, so no RDMA figures without an adapter",
		"apt-get install qemu-system-x86 busybox-static", "lab"},
	{"plots", "gnuplot", "gnuplot is not in PATH: reports have tables and no plots",
		"apt-get install gnuplot-nox fonts-dejavu-core", "one node"},
	{"mpirun", "mpirun", "mpirun is not in PATH: MPI ranks need srun or another launcher",
		"apt-get install openmpi-bin", "one node"},
};

static void add_programs(json_t *parts)
{
	char path[4096];
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		bool here = fb_find_program(programs[i].program, path, sizeof(path)) == 0;
		add(parts, programs[i].part, here ? FOUND : MISSING, here ? path : NULL,
			here ? NULL : programs[i].reason, here ? NULL : programs[i].remedy,
			programs[i].proven_on);
	}
}

/* What the RDMA code can address, and on what it has really run. */
static void add_fabrics(json_t *parts)
{
	add(parts, "RoCE v2", FOUND, "RC send, write, read, also on several rails at once", NULL,
		NULL, "lab");
	add(parts, "InfiniBand addressing", FOUND,
		"LID, SL, P_Key, GRH across subnets: unit-tested on constructed port attributes",
		NULL, NULL, "none");
}

/* What RDMA transports are deliberately not there: a reader must not look for them in vain. */
static void add_left_out(json_t *parts)
{
	add(parts, "transport DC", MISSING, NULL,
		"left out: mlx5's dynamically connected transport is one vendor's own, not verbs'",
		"measure with RC", "none");
	add(parts, "transport SRD", MISSING, NULL,
		"left out: EFA's scalable reliable datagrams are one vendor's own, not verbs'",
		"measure EFA through NCCL: coll --backend nccl with the OFI plug-in", "none");
}

/* ---- output -----------------------------------------------------------------------------------
 */

static json_t *collect(void)
{
	struct fb_sysroot r = {0};
	struct fb_err e = {0};
	json_t *doc = json_object(), *parts = json_array();
	add(parts, "fabricbench", FOUND, FB_VERSION " (" FB_GIT ")", NULL, NULL, "one node");
	for (size_t i = 0; fb_plugin_names[i]; i++)
		add_plugin(parts, fb_plugin_names[i]);
	if (fb_sysroot_open(&r, NULL, &e) == 0) {
		add_gpus(parts, &r);
		add_rdma(parts, &r);
		fb_sysroot_close(&r);
	}
	add_programs(parts);
	add_fabrics(parts);
	add_left_out(parts);
	fb_json_set_str(doc, "schema", FEATURES_SCHEMA);
	json_object_set_new(doc, "parts", parts);
	return doc;
}

static void print_text(const json_t *doc)
{
	size_t i;
	json_t *p;
	printf("%-15s %-9s %-10s %s\n", "part", "state", "proven on",
		"version, or why and what helps");
	json_array_foreach (json_object_get(doc, "parts"), i, p) {
		const char *version = fb_json_str(p, "version", NULL);
		const char *reason = fb_json_str(p, "reason", NULL);
		const char *remedy = fb_json_str(p, "remedy", NULL);
		printf("%-15s %-9s %-10s %s\n", fb_json_str(p, "name", ""),
			fb_json_str(p, "state", ""), fb_json_str(p, "proven_on", ""),
			version ? version : (reason ? reason : ""));
		if (version && reason)
			printf("%-36s %s\n", "", reason);
		if (remedy)
			printf("%-36s remedy: %s\n", "", remedy);
	}
}

static int features_run(int argc, char **argv)
{
	struct cfg cfg = {0};
	struct fb_opt_spec spec;
	struct fb_err e = {0};
	fill_spec(&spec, &cfg);
	int rc = fb_opt_parse(&spec, argc, argv, &e);
	if (rc != 0)
		return rc == 1 ? FB_EXIT_OK : fb_cmd_fail(&e);
	json_t *doc = collect();
	if (cfg.json) {
		char *text = json_dumps(doc, JSON_INDENT(2));
		if (text)
			puts(text);
		free(text);
	} else {
		print_text(doc);
	}
	json_decref(doc);
	fb_opt_free(&spec);
	return fflush(stdout) == 0 ? FB_EXIT_OK : FB_EXIT_UNMEASURED;
}

const struct fb_cmd features_cmd = {
	.name = "features",
	.summary = "list the parts found and missing, and what would bring them",
	.run = features_run,
};
