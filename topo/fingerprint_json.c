// SPDX-License-Identifier: Apache-2.0
/*
 * The shape in a topology document and back. A document may come from anywhere: every number is
 * held against its range, a parent must stand before its child, and the hash is made anew.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "topo/fingerprint.h"
#include "topo/topo_priv.h"

#define MAX_DEPTH 81 /* as deep as a tree is followed */

static const char *const kinds[] = {"bridge", "gpu", "nic", "nvswitch", "accelerator"};
static const char *const link_kinds[] = {"nvlink", "xgmi", "c2c"};

static json_t *links_json(const struct topo_shape_item *it)
{
	json_t *a = json_array();

	for (size_t i = 0; i < it->n_links; i++) {
		const struct topo_shape_link *l = &it->links[i];
		const char to[2] = {l->to, '\0'};
		json_t *o = json_object();

		fb_json_set_str(o, "kind", link_kinds[l->kind]);
		fb_json_set_str(o, "to", to);
		if (l->item >= 0)
			fb_json_set_int(o, "item", l->item);
		fb_json_set_int(o, "count", l->count);
		json_array_append_new(a, o);
	}
	return a;
}

void topo_shape_json(const struct topo_shape *s, json_t *doc)
{
	json_t *shape = json_object(), *items = json_array();

	fb_json_set_str(shape, "source", s->source);
	fb_json_set_str(shape, "cpus", s->cpus);
	fb_json_set_str(shape, "order", s->order);
	for (size_t i = 0; i < s->n_items; i++) {
		const struct topo_shape_item *it = &s->items[i];
		json_t *o = json_object();

		fb_json_set_str(o, "kind", kinds[it->kind]);
		fb_json_set_int(o, "parent", it->parent);
		fb_json_set_int(o, "class", it->cls);
		fb_json_set_int(o, "vendor", it->vendor);
		fb_json_set_int(o, "device", it->device);
		fb_json_set_int(o, "numa", it->numa);
		json_object_set_new(o, "max_speed", fb_json_real(it->max_gts));
		fb_json_set_int(o, "max_width", it->max_width);
		fb_json_set_int(o, "rdma", it->rdma);
		if (it->name[0])
			fb_json_set_str(o, "name", it->name);
		if (it->bdf[0])
			fb_json_set_str(o, "bdf", it->bdf);
		if (it->n_links)
			json_object_set_new(o, "links", links_json(it));
		json_array_append_new(items, o);
	}
	json_object_set_new(shape, "devices", items);
	fb_json_set_str(doc, "fingerprint", s->fingerprint);
	json_object_set_new(doc, "shape", shape);
}

/* ---- back ------------------------------------------------------------------------------------ */

/** @return the word's index, or -1 */
static int index_of(const char *const *words, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(words[i], word) == 0)
			return (int)i;
	return -1;
}

static bool in_range(const json_t *o, const char *key, int64_t min, int64_t max, int64_t *v)
{
	*v = fb_json_int(o, key, min - 1);
	return *v >= min && *v <= max;
}

static int read_links(const json_t *a, size_t n_items, struct topo_shape_item *it)
{
	const json_t *o;
	size_t i;

	if (json_array_size(a) > TOPO_SHAPE_MAX_LINKS)
		return -EINVAL;
	json_array_foreach (a, i, o) {
		int kind = index_of(link_kinds, 3, fb_json_str(o, "kind", ""));
		const char *to = fb_json_str(o, "to", "");
		int64_t item = fb_json_int(o, "item", TOPO_UNKNOWN), count;

		if (kind < 0 || !*to || to[1] || !strchr("gsc?", *to) || item < TOPO_UNKNOWN ||
			item >= (int64_t)n_items || !in_range(o, "count", 0, 1 << 20, &count))
			return -EINVAL;
		struct topo_shape_link *l =
			topo_grow((void **)&it->links, &it->n_links, sizeof(*l));

		if (!l)
			return -ENOMEM;
		*l = (struct topo_shape_link){
			(enum topo_fast_kind)kind, (int)item, *to, (unsigned)count};
	}
	return 0;
}

static int read_item(const json_t *o, size_t at, size_t n, struct topo_shape_item *it)
{
	int kind = index_of(kinds, sizeof(kinds) / sizeof(*kinds), fb_json_str(o, "kind", ""));
	int64_t parent, cls, vendor, device, numa, width, rdma;
	double gts = fb_json_num(o, "max_speed", -1);

	if (kind < 0 || !in_range(o, "parent", -1, (int64_t)at - 1, &parent) ||
		!in_range(o, "class", 0, 0xffff, &cls) ||
		!in_range(o, "vendor", 0, 0xffff, &vendor) ||
		!in_range(o, "device", 0, 0xffff, &device) ||
		!in_range(o, "numa", -1, 1 << 20, &numa) ||
		!in_range(o, "max_width", 0, 255, &width) ||
		!in_range(o, "rdma", 0, 1 << 16, &rdma) || !(gts >= 0 && gts < 1e6))
		return -EINVAL;
	*it = (struct topo_shape_item){.kind = (enum topo_shape_kind)kind,
		.parent = (int)parent,
		.cls = (uint32_t)cls,
		.vendor = (uint16_t)vendor,
		.device = (uint16_t)device,
		.numa = (int)numa,
		.max_gts = gts,
		.max_width = (unsigned)width,
		.rdma = (unsigned)rdma};
	topo_copy(it->name, sizeof(it->name), fb_json_str(o, "name", ""));
	topo_copy(it->bdf, sizeof(it->bdf), fb_json_str(o, "bdf", ""));
	return read_links(json_object_get(o, "links"), n, it);
}

static int depth(const struct topo_shape *s, int i)
{
	int n = 0;

	while (s->items[i].parent >= 0 && n <= MAX_DEPTH) {
		i = s->items[i].parent;
		n++;
	}
	return n;
}

int topo_shape_from_json(
	const json_t *doc, const char *name, struct topo_shape **out, struct fb_err *e)
{
	const json_t *shape = json_object_get(doc, "shape");
	const json_t *items = json_object_get(shape, "devices"), *o;
	size_t i, n = json_array_size(items);

	*out = NULL;
	if (strcmp(fb_json_str(doc, "schema", ""), TOPO_SCHEMA) != 0 || !json_is_array(items)) {
		fb_fail(e, FB_EXIT_USAGE, EINVAL, "%s is no topology document with a shape", name);
		fb_hint(e, "make one on the node: fabricbench topo --json -o node.json");
		return -EINVAL;
	}
	if (n > TOPO_SHAPE_MAX_ITEMS)
		return fb_fail(e, FB_EXIT_USAGE, EFBIG, "%s: a shape of %zu devices; at most %d",
			name, n, TOPO_SHAPE_MAX_ITEMS);
	struct topo_shape *s = calloc(1, sizeof(*s));
	int rc = -ENOMEM;

	if (!s)
		goto no_memory;
	s->items = calloc(n + 1, sizeof(*s->items));
	s->order = strdup(fb_json_str(shape, "order", ""));
	if (!s->items || !s->order)
		goto no_memory;
	topo_copy(s->source, sizeof(s->source), fb_json_str(shape, "source", ""));
	topo_copy(s->cpus, sizeof(s->cpus), fb_json_str(shape, "cpus", ""));
	json_array_foreach (items, i, o) {
		s->n_items = i + 1;
		rc = read_item(o, i, n, &s->items[i]);
		if (!rc && depth(s, (int)i) > MAX_DEPTH)
			rc = -EINVAL;
		if (rc == -EINVAL) {
			fb_fail(e, FB_EXIT_USAGE, EINVAL, "%s: shape.devices[%zu] is not sound",
				name, i);
			goto free_shape;
		}
		if (rc)
			goto no_memory;
	}
	rc = topo_shape_hash(s);
	if (rc)
		goto no_memory;
	*out = s;
	return 0;
no_memory:
	rc = fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %s", name);
free_shape:
	topo_shape_free(s);
	return rc;
}
