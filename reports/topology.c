// SPDX-License-Identifier: Apache-2.0
/*
 * The topology in the page: the drawing, and what topology.json says in tables. It knows the keys
 * of that file and nothing of how they were found; a key that is absent shows as "-".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/units.h"
#include "reports/report_priv.h"

#define TOPOLOGY_MAX (16u << 20)
#define MATRIX_MAX   24 /* devices whose path matrix still fits a page */

static json_t *load(const char *base, struct fb_err *e)
{
	char path[4096], *text = NULL;
	size_t len = 0;
	snprintf(path, sizeof(path), "%s/topology.json", base);
	if (fb_read_file(path, TOPOLOGY_MAX, &text, &len, e) != 0)
		return NULL;
	json_t *j = fb_json_parse(text, len, "topology.json", e);
	free(text);
	return j;
}

static void start(struct fb_strbuf *b, const char *title, const char *const *names)
{
	rep_tag(b, "h3", NULL, "%s", title);
	fb_strbuf_add(b, "<div class=\"wide\"><table><thead><tr>");
	for (; *names; names++)
		rep_tag(b, "th", NULL, "%s", *names);
	fb_strbuf_add(b, "</tr></thead><tbody>\n");
}

static void end(struct fb_strbuf *b)
{
	fb_strbuf_add(b, "</tbody></table></div>\n");
}

static void int_cell(struct fb_strbuf *b, const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);
	if (json_is_integer(v))
		rep_tag(b, "td", "n", "%lld", (long long)json_integer_value(v));
	else
		rep_tag(b, "td", "n", "-");
}

static void rate_cell(struct fb_strbuf *b, const json_t *o)
{
	double bps = fb_json_num(o, "rate_bps", 0);
	rep_tag(b, "td", "n", bps > 0 ? "%g Gb/s" : "-", bps / 1e9);
}

static void link_cell(struct fb_strbuf *b, const json_t *link)
{
	double speed = fb_json_num(link, "speed", 0);
	if (!(speed > 0)) {
		rep_tag(b, "td", NULL, "-");
		return;
	}
	bool down = json_is_true(json_object_get(link, "downtrained"));
	rep_tag(b, "td", down ? "invalid" : NULL, "%g GT/s x%lld%s", speed,
		(long long)fb_json_int(link, "width", 0),
		down ? " (below what both ends can do)" : "");
}

static void numa_table(struct fb_strbuf *b, const json_t *t)
{
	static const char *const names[] = {
		"NUMA node", "package", "CPUs", "memory", "distances", NULL};
	const json_t *n, *d;
	size_t i, k;
	start(b, "NUMA nodes", names);
	json_array_foreach (json_object_get(t, "numa_nodes"), i, n) {
		char size[32];
		int64_t bytes = fb_json_int(n, "memory_bytes", 0);
		fb_strbuf_add(b, "<tr>");
		int_cell(b, n, "id");
		int_cell(b, n, "package");
		rep_tag(b, "td", NULL, "%s", fb_json_str(n, "cpus", "-"));
		rep_tag(b, "td", "n", "%s",
			bytes > 0 ? fb_fmt_size((uint64_t)bytes, size, sizeof(size)) : "-");
		fb_strbuf_add(b, json_object_get(n, "distances") ? "<td>" : "<td>-");
		json_array_foreach (json_object_get(n, "distances"), k, d)
			rep_text(b, "%s%lld", k ? " " : "", (long long)json_integer_value(d));
		fb_strbuf_add(b, "</td></tr>\n");
	}
	end(b);
}

static void device_table(struct fb_strbuf *b, const json_t *t)
{
	static const char *const names[] = {
		"device", "kind", "PCI address", "NUMA node", "PCIe link", "rate", NULL};
	const json_t *d;
	size_t i;
	if (json_array_size(json_object_get(t, "gpus")) +
			json_array_size(json_object_get(t, "nics")) ==
		0)
		return;
	start(b, "GPUs and NICs", names);
	json_array_foreach (json_object_get(t, "gpus"), i, d) {
		fb_strbuf_add(b, "<tr>");
		rep_tag(b, "td", NULL, "%s", fb_json_str(d, "name", "?"));
		rep_tag(b, "td", NULL, "%s",
			fb_json_str(d, "model", fb_json_str(d, "vendor", "GPU")));
		rep_tag(b, "td", "code", "%s", fb_json_str(d, "bdf", "-"));
		int_cell(b, d, "numa");
		link_cell(b, json_object_get(d, "link"));
		rep_tag(b, "td", "n", "-");
		fb_strbuf_add(b, "</tr>\n");
	}
	json_array_foreach (json_object_get(t, "nics"), i, d) {
		fb_strbuf_add(b, "<tr>");
		rep_tag(b, "td", NULL, "%s", fb_json_str(d, "name", "?"));
		rep_tag(b, "td", NULL, "%s", fb_json_str(d, "kind", "NIC"));
		rep_tag(b, "td", "code", "%s", fb_json_str(d, "bdf", "-"));
		int_cell(b, d, "numa");
		link_cell(b, json_object_get(d, "link"));
		rate_cell(b, d);
		fb_strbuf_add(b, "</tr>\n");
	}
	end(b);
}

static void port_rows(struct fb_strbuf *b, const json_t *d)
{
	const json_t *p;
	size_t i;
	json_array_foreach (json_object_get(d, "ports"), i, p) {
		fb_strbuf_add(b, "<tr>");
		rep_tag(b, "td", NULL, "%s", fb_json_str(d, "name", "?"));
		rep_tag(b, "td", NULL, "%s",
			json_is_true(json_object_get(d, "software"))
				? "software (no hardware)"
				: fb_json_str(d, "driver", "-"));
		int_cell(b, p, "port");
		rep_tag(b, "td", NULL, "%s", fb_json_str(p, "state", "-"));
		rep_tag(b, "td", NULL, "%s", fb_json_str(p, "link_layer", "-"));
		rep_tag(b, "td", NULL, "%s", fb_json_str(p, "rate", "-"));
		rep_tag(b, "td", NULL, "%s",
			fb_json_str(p, "netdev", fb_json_str(d, "netdev", "-")));
		rep_tag(b, "td", NULL, "%s", fb_json_str(d, "firmware", "-"));
		fb_strbuf_add(b, "</tr>\n");
	}
}

static void rdma_table(struct fb_strbuf *b, const json_t *t)
{
	static const char *const names[] = {"RDMA device", "driver", "port", "state", "link layer",
		"rate", "netdev", "firmware", NULL};
	const json_t *devs = json_object_get(t, "rdma_devices"), *d;
	size_t i;
	if (json_array_size(devs) == 0) {
		rep_tag(b, "p", "quiet", "This host has no RDMA device.");
		return;
	}
	start(b, "RDMA devices", names);
	json_array_foreach (devs, i, d)
		port_rows(b, d);
	end(b);
}

static void names_cell(struct fb_strbuf *b, const json_t *names)
{
	const json_t *n;
	size_t i;
	fb_strbuf_add(b, json_array_size(names) ? "<td>" : "<td>-");
	json_array_foreach (names, i, n)
		rep_text(b, "%s%s", i ? ", " : "", json_is_string(n) ? json_string_value(n) : "?");
	fb_strbuf_add(b, "</td>");
}

/** What each GPU's rank is planned to use, and what the tree leaves open. */
static void plan_table(struct fb_strbuf *b, const json_t *t)
{
	static const char *const names[] = {
		"GPU", "NICs", "path", "rail", "NUMA node", "CPUs of its rank", NULL};
	const json_t *plan = json_object_get(t, "plan"), *open = json_object_get(t, "ambiguous"),
		     *o;
	size_t i;
	if (json_array_size(plan)) {
		start(b, "Plan", names);
		json_array_foreach (plan, i, o) {
			fb_strbuf_add(b, "<tr>");
			rep_tag(b, "td", NULL, "%s", fb_json_str(o, "gpu", "?"));
			names_cell(b, json_object_get(o, "nics"));
			rep_tag(b, "td", NULL, "%s", fb_json_str(o, "path", "-"));
			int_cell(b, o, "rail");
			int_cell(b, o, "numa");
			rep_tag(b, "td", NULL, "%s", fb_json_str(o, "cpus", "-"));
			fb_strbuf_add(b, "</tr>\n");
		}
		end(b);
	}
	json_array_foreach (open, i, o)
		rep_tag(b, "p", "quiet", "No plan for %s: %s.", fb_json_str(o, "gpu", "?"),
			fb_json_str(o, "why", "the tree does not tell"));
	json_array_foreach (json_object_get(t, "plan_notes"), i, o)
		rep_tag(b, "p", "quiet", "Plan: %s.",
			json_is_string(o) ? json_string_value(o) : "?");
}

/* ---- the matrix of path types ---------------------------------------------------------------- */

static size_t matrix_names(const json_t *paths, const char **names)
{
	static const char *const ends[] = {"a", "b"};
	const json_t *p;
	size_t i, n = 0;
	json_array_foreach (paths, i, p) {
		for (int e = 0; e < 2; e++) {
			const char *name = fb_json_str(p, ends[e], "?");
			size_t k = 0;
			while (k < n && strcmp(names[k], name) != 0)
				k++;
			if (k < n)
				continue;
			if (n == MATRIX_MAX)
				return n + 1;
			names[n++] = name;
		}
	}
	return n;
}

static const char *path_between(const json_t *paths, const char *x, const char *y)
{
	const json_t *p;
	size_t i;
	json_array_foreach (paths, i, p) {
		const char *a = fb_json_str(p, "a", ""), *c = fb_json_str(p, "b", "");
		if ((strcmp(a, x) == 0 && strcmp(c, y) == 0) ||
			(strcmp(a, y) == 0 && strcmp(c, x) == 0))
			return fb_json_str(p, "type", "?");
	}
	return "-";
}

static void matrix(struct fb_strbuf *b, const json_t *t)
{
	const json_t *paths = json_object_get(t, "paths");
	const char *names[MATRIX_MAX + 2] = {"from \\ to"};
	size_t n = matrix_names(paths, names + 1);
	if (n == 0)
		return;
	if (n > MATRIX_MAX) {
		rep_tag(b, "p", "quiet",
			"The matrix of paths has more than %d devices: see topology.json.",
			MATRIX_MAX);
		return;
	}
	names[n + 1] = NULL;
	start(b, "Paths between devices", names);
	for (size_t i = 1; i <= n; i++) {
		fb_strbuf_add(b, "<tr>");
		rep_tag(b, "th", NULL, "%s", names[i]);
		for (size_t k = 1; k <= n; k++)
			rep_tag(b, "td", "mid", "%s",
				i == k ? "X" : path_between(paths, names[i], names[k]));
		fb_strbuf_add(b, "</tr>\n");
	}
	end(b);
	rep_tag(b, "p", "quiet",
		"PIX: one PCIe bridge between them. PXB: several bridges. PHB: through the host bridge. NODE: within a NUMA node. SYS: across NUMA nodes. NV#: over that many NVLinks or xGMI links.");
}

void rep_html_topology(struct fb_strbuf *b, const char *base)
{
	char path[4096];
	struct fb_err e = {0};
	const json_t *w;
	size_t i;
	rep_tag(b, "h2", NULL, "Topology");
	if (!base) {
		rep_tag(b, "p", "quiet",
			"A lone result document carries no topology; the report of a run directory does.");
		return;
	}
	json_t *t = load(base, &e);
	if (t)
		rep_tag(b, "p", NULL, "%lld package(s), %lld cores, %lld threads%s.",
			(long long)json_array_size(json_object_get(t, "packages")),
			(long long)fb_json_int(t, "cores", 0), (long long)fb_json_int(t, "pus", 0),
			json_is_true(json_object_get(t, "virtual_machine"))
				? ", a virtual machine: its PCI tree is what the hypervisor shows"
				: "");
	snprintf(path, sizeof(path), "%s/topology.svg", base);
	fb_strbuf_add(b, "<div class=\"topology\">");
	if (!rep_html_image(b, path, "Topology of this host: packages, caches, PCI devices"))
		rep_tag(b, "p", "quiet", "There is no drawing: topology.svg is missing.");
	fb_strbuf_add(b, "</div>\n");
	if (!t) {
		rep_tag(b, "p", "quiet", "There are no tables: %s", e.msg);
		return;
	}
	fb_strbuf_add(b, "<details><summary>Devices, NUMA nodes and paths</summary>\n");
	numa_table(b, t);
	device_table(b, t);
	rdma_table(b, t);
	plan_table(b, t);
	matrix(b, t);
	json_array_foreach (json_object_get(t, "warnings"), i, w)
		rep_tag(b, "p", "quiet", "Note: %s",
			json_is_string(w) ? json_string_value(w) : "?");
	fb_strbuf_add(b, "</details>\n");
	json_decref(t);
}
