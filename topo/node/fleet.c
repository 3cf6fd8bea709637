// SPDX-License-Identifier: Apache-2.0
/*
 * Other nodes: what of a node is compared, from where others' is read, and what most of them have.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/check_others.h"
#include "bench/core/json.h"
#include "topo/fingerprint.h"
#include "topo/node/node_priv.h"

#define MAX_NODES    100000
#define MAX_DOCUMENT (64u << 20)

/* ---- the summary ----------------------------------------------------------------------------- */

static json_t *firmware_list(const struct node *n)
{
	json_t *list = json_array();
	for (size_t i = 0; i < n->t->n_rdma; i++) {
		const struct topo_rdma *r = &n->t->rdma[i];
		if (!r->fw[0])
			continue;
		json_t *o = json_object();
		fb_json_set_str(o, "device", r->name);
		fb_json_set_str(o, "board", r->board[0] ? r->board : NULL);
		fb_json_set_str(o, "version", r->fw);
		json_array_append_new(list, o);
	}
	return list;
}

/* "18" of all GPUs, or "18 18 17"; NULL: no GPU tells. */
static const char *links_text(const struct node *n, char *buf, size_t len)
{
	size_t at = 0;
	int first = -1;
	bool same = true, told = false;
	buf[0] = '\0';
	for (size_t i = 0; i < n->n_dev; i++) {
		if (n->dev[i].gpu < 0)
			continue;
		int links = node_nvlinks(n, &n->dev[i]);
		first = told ? first : links;
		same = same && links == first;
		told = told || links >= 0;
		if (at < len)
			at += (size_t)snprintf(buf + at, len - at, "%s%d", at ? " " : "", links);
	}
	if (told && same)
		snprintf(buf, len, "%d", first);
	return told ? buf : NULL;
}

static void add_shape(const struct node *n, json_t *o)
{
	struct topo_shape *shape = NULL;
	if (topo_shape_make(n->t, &shape) != 0)
		return;
	topo_shape_json(shape, o);
	topo_shape_free(shape);
}

const json_t *node_summary(struct node *n)
{
	char text[1024];
	if (n->summary)
		return n->summary;
	json_t *o = json_object(), *drivers = json_object();
	fb_json_set_str(o, "schema", TOPO_SCHEMA); /* the shape is read back by it */
	fb_json_set_str(o, "host", n->host);
	fb_json_set_str(o, "product", n->product[0] ? n->product : NULL);
	fb_json_set_int(o, "gpus", (int64_t)node_count_gpus(n));
	if (n->t->n_gpus > 0) {
		const struct topo_pci *p = &n->t->pci[n->t->gpus[0].pci];
		const struct gpu_fact *g = gpu_facts_find(&n->gpus, p->bdf);
		snprintf(text, sizeof(text), "%04x:%04x", p->vendor, p->device);
		fb_json_set_str(o, "gpu_pci", text);
		fb_json_set_str(o, "gpu_model", g && g->model[0] ? g->model : n->t->gpus[0].model);
	}
	fb_json_set_int(o, "nics", (int64_t)node_count_role(n, NODE_ROLE_COMPUTE));
	fb_json_set_str(o, "nvlinks", links_text(n, text, sizeof(text)));
	if (node_memory(n) > 0)
		fb_json_set_int(o, "memory_bytes", (int64_t)node_memory(n));
	for (size_t i = 0; node_drivers[i]; i++)
		if (node_driver(n, node_drivers[i], text, 128))
			fb_json_set_str(drivers, node_drivers[i], text);
	json_object_set_new(o, "drivers", drivers);
	json_object_set_new(o, "firmware", firmware_list(n));
	add_shape(n, o);
	n->summary = o;
	return o;
}

const char *node_value(const json_t *summary, const char *key, char *buf, size_t len)
{
	char first[48];
	const char *dot = strchr(key, '.');
	const json_t *v = summary;
	if (dot) {
		snprintf(first, sizeof(first), "%.*s", (int)(dot - key), key);
		v = json_object_get(v, first);
		key = dot + 1;
	}
	v = json_object_get(v, key);
	if (json_is_string(v))
		snprintf(buf, len, "%s", json_string_value(v));
	else if (json_is_integer(v))
		snprintf(buf, len, "%lld", (long long)json_integer_value(v));
	else
		return NULL;
	return buf;
}

/* ---- votes ----------------------------------------------------------------------------------- */

bool node_same_kind(const json_t *own, const json_t *peer)
{
	static const char *const keys[] = {"product", "gpu_pci"};
	for (size_t i = 0; i < 2; i++) {
		const char *a = fb_json_str(own, keys[i], NULL),
			   *b = fb_json_str(peer, keys[i], NULL);
		if (a && b)
			return strcmp(a, b) == 0;
	}
	return true;
}

/* Wide enough for a fingerprint, a version, counts of links. */
typedef char vote_text[160];

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* What this node's kind tells under a key, this node's own first. @return how many */
static unsigned collect_votes(struct node *n, const char *key, vote_text *votes)
{
	const json_t *own = node_summary(n);
	unsigned told = node_value(own, key, votes[0], sizeof(vote_text)) != NULL;
	for (size_t i = 0; i < n->fleet.n; i++)
		if (node_same_kind(own, n->fleet.peer[i]) &&
			node_value(n->fleet.peer[i], key, votes[told], sizeof(vote_text)))
			told++;
	return told;
}

enum node_vote node_majority(struct node *n, const char *key, char *buf, size_t len, unsigned *of)
{
	vote_text *votes = n->fleet.n ? calloc(n->fleet.n + 1, sizeof(*votes)) : NULL, own, last;
	unsigned told = votes ? collect_votes(n, key, votes) : 0, run = 0;
	bool self = node_value(node_summary(n), key, own, sizeof(own)) != NULL;
	enum node_vote vote = NODE_VOTE_NONE;
	*of = told;
	if (told > (self ? 1u : 0u)) {
		snprintf(last, sizeof(last), "%s", votes[told - 1]);
		qsort(votes, told, sizeof(*votes), by_text);
		vote = NODE_VOTE_TIED;
		snprintf(buf, len, "%s", last);
		for (unsigned i = 0; i < told; i++) {
			run = i > 0 && strcmp(votes[i], votes[i - 1]) == 0 ? run + 1 : 1;
			if (2 * run > told) {
				vote = NODE_VOTE_WON;
				snprintf(buf, len, "%s", votes[i]);
			}
		}
	}
	free(votes);
	return vote;
}

/* ---- reading others -------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

static bool is_taken(const struct node_fleet *f, const char *host, const char *own_host)
{
	bool taken = strcmp(host, own_host) == 0;
	for (size_t i = 0; i < f->n && !taken; i++)
		taken = strcmp(fb_json_str(f->peer[i], "host", ""), host) == 0;
	return taken;
}

/* Nodes that were recorded without names go by those of their files. */
static void name_peer(json_t *peer, const char *path)
{
	const char *host = fb_json_str(peer, "host", "");
	if (!*host || strcmp(host, "recorded") == 0 || strcmp(host, "localhost") == 0 ||
		strncmp(host, "host", 4) == 0)
		fb_json_set_str(peer, "host", base_name(path));
}

/* Takes the reference. A node that is there already is left out. */
static int add(struct node_fleet *f, json_t *peer, const char *own_host, struct fb_err *e)
{
	if (is_taken(f, fb_json_str(peer, "host", ""), own_host)) {
		json_decref(peer);
		return 0;
	}
	json_t **more = f->n < MAX_NODES ? realloc(f->peer, (f->n + 1) * sizeof(json_t *)) : NULL;
	if (!more) {
		json_decref(peer);
		return fb_fail(
			e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for more than %zu nodes", f->n);
	}
	f->peer = more;
	f->peer[f->n++] = peer;
	return 0;
}

struct reading {
	struct node_fleet *f;
	const char *own_host, *own_dir;
};

/* Of a live machine a tree under its name is a recording, of a tree another one is another node. */
static int add_peer_tree(const struct reading *in, json_t *peer, const char *dir, struct fb_err *e)
{
	const char *own = in->own_dir ? in->own_host : "";
	char host[80], name[160];
	name_peer(peer, dir);
	snprintf(host, sizeof(host), "%s", fb_json_str(peer, "host", ""));
	snprintf(name, sizeof(name), "%s", host);
	for (int i = 1; i <= FB_OTHERS_FOLDERS && is_taken(in->f, name, own); i++)
		fb_others_tell_apart(name, sizeof(name), host, dir, i);
	fb_json_set_str(peer, "host", name);
	return add(in->f, peer, in->own_host, e);
}

static int add_tree(const struct reading *in, const char *dir, struct fb_err *e)
{
	struct fb_sysroot r;
	struct node n;
	int rc = fb_sysroot_open(&r, dir, e);
	if (rc < 0)
		return rc;
	rc = node_open(&n, &r, e);
	if (rc == 0) {
		json_t *peer = json_deep_copy(node_summary(&n));
		node_close(&n);
		rc = peer ? add_peer_tree(in, peer, dir, e)
			  : fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %s", dir);
	}
	fb_sysroot_close(&r);
	return rc;
}

/* @return 1: a document, and none of check node; kind says of what */
static int add_document(struct node_fleet *f, const char *path, const char *own_host, bool strict,
	char kind[FB_OTHERS_KIND], struct fb_err *e)
{
	char *text = NULL;
	size_t len = 0;
	struct fb_err why = {0};
	int rc = fb_read_file(path, MAX_DOCUMENT, &text, &len, &why);
	json_t *doc = rc == 0 ? fb_json_parse(text, len, path, &why) : NULL;
	json_t *node = json_object_get(doc, "node");
	free(text);
	rc = rc < 0 ? rc : !doc ? -EINVAL : json_is_object(node) ? 0 : strict ? -EINVAL : 1;
	if (rc == 0) {
		json_incref(node);
		json_decref(doc);
		name_peer(node, path);
		return add(f, node, own_host, e);
	}
	if (rc == 1)
		fb_others_kind(doc, kind);
	json_decref(doc);
	if (rc < 0 && why.code != 0)
		*e = e->code ? *e : why;
	else if (rc < 0) {
		fb_fail_usage(e, "%s is no document of check node: it has no key node", path);
		fb_hint(e, "fabricbench check node -o HOST.json on each node makes them");
	}
	return rc;
}

static int read_document(
	void *arg, const char *path, bool named, char kind[FB_OTHERS_KIND], struct fb_err *e)
{
	const struct reading *r = arg;
	return add_document(r->f, path, r->own_host, named, kind, e);
}

static int read_tree(void *arg, const char *path, struct fb_err *e)
{
	return add_tree(arg, path, e);
}

int node_fleet_read(const struct fb_opt_list *names, const char *own_host, const char *own_dir,
	struct node_fleet *f, struct fb_err *e)
{
	static const struct fb_others_reader reader = {read_document, read_tree,
		"documents of check node", "fabricbench check node -o HOST.json"};
	struct reading r = {f, own_host, own_dir};
	*f = (struct node_fleet){.n = 0};
	int rc = fb_check_others(names, own_dir, &reader, &r, &f->passed, e);
	if (rc < 0)
		node_fleet_free(f);
	return rc;
}

void node_fleet_free(struct node_fleet *f)
{
	for (size_t i = 0; i < f->n; i++)
		json_decref(f->peer[i]);
	free(f->peer);
	*f = (struct node_fleet){.n = 0};
}
