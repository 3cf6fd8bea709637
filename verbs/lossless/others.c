// SPDX-License-Identifier: Apache-2.0
/*
 * Facts from elsewhere: trees and documents of other nodes, and a recording beside the live
 * machine.
 */
#include "verbs/lossless/others.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/core/check_others.h"
#include "bench/core/json.h"
#include "bench/core/strbuf.h"
#include "verbs/lossless/summary.h"

#define MAX_NODES    100000
#define MAX_DOCUMENT (64u << 20)

/* ---- other nodes ----------------------------------------------------------------------------- */

static bool is_taken(const struct others *o, const char *host, const char *own_host)
{
	bool taken = strcmp(host, own_host) == 0;
	for (int i = 0; i < o->n && !taken; i++)
		taken = strcmp(o->node[i]->host, host) == 0;
	return taken;
}

/* Takes n. A node that is there already is left out. */
static int add(struct others *o, struct node_facts *n, const char *own_host, struct fb_err *e)
{
	if (is_taken(o, n->host, own_host)) {
		facts_free(n);
		return 0;
	}
	struct node_facts *copy = malloc(sizeof(*copy)), **more = NULL;
	if (copy && o->n < MAX_NODES)
		more = realloc(o->node, ((size_t)o->n + 1) * sizeof(struct node_facts *));
	if (!more) {
		free(copy);
		facts_free(n);
		return fb_fail(
			e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for more than %d nodes", o->n);
	}
	*copy = *n;
	o->node = more;
	o->node[o->n++] = copy;
	return 0;
}

/* Nodes that were recorded without their names are told apart by those of their files. */
static void name_node(struct node_facts *n, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash && slash[1] ? slash + 1 : path;
	if (strcmp(n->host, "recorded") == 0 || strcmp(n->host, "localhost") == 0 ||
		strncmp(n->host, "host", 4) == 0 || n->host[0] == '\0')
		snprintf(n->host, sizeof(n->host), "%.63s", base);
}

struct reading {
	struct others *o;
	const char *own_host, *own_dir;
};

/* Of a live machine a tree under its name is a recording, of a tree another one is another node. */
static int add_tree(const struct reading *in, const char *dir, struct fb_err *e)
{
	struct fb_sysroot r;
	struct node_facts n;
	char host[sizeof(n.host)];
	int rc = fb_sysroot_open(&r, dir, e);
	if (rc < 0)
		return rc;
	rc = facts_read(&r, NULL, &n, e);
	fb_sysroot_close(&r);
	if (rc < 0)
		return rc;
	name_node(&n, dir);
	const char *own = in->own_dir ? in->own_host : "";
	snprintf(host, sizeof(host), "%s", n.host);
	for (int i = 1; i <= FB_OTHERS_FOLDERS && is_taken(in->o, n.host, own); i++)
		fb_others_tell_apart(n.host, sizeof(n.host), host, dir, i);
	return add(in->o, &n, in->own_host, e);
}

/* @return 1: a document, and none of a check; kind says of what */
static int add_document(struct others *o, const char *path, const char *own_host, bool strict,
	char kind[FB_OTHERS_KIND], struct fb_err *e)
{
	char *text = NULL;
	size_t len = 0;
	struct fb_err why = {0};
	struct node_facts n;
	int rc = fb_read_file(path, MAX_DOCUMENT, &text, &len, &why);
	json_t *doc = rc == 0 ? fb_json_parse(text, len, path, &why) : NULL;
	const json_t *fabric = json_object_get(doc, "fabric");
	if (json_object_get(fabric, "leaves")) /* of topo fabric: it tells of no node */
		fabric = NULL;
	free(text);
	rc = rc < 0 ? rc : !doc ? -EINVAL : !fabric && !strict ? 1 : 0;
	if (rc == 1)
		fb_others_kind(doc, kind);
	if (rc == 0)
		rc = summary_read(fabric, path, &n, &why);
	json_decref(doc);
	if (rc == 0) {
		name_node(&n, path);
		return add(o, &n, own_host, e);
	}
	if (rc < 0)
		*e = e->code ? *e : why;
	return rc;
}

static int read_document(
	void *arg, const char *path, bool named, char kind[FB_OTHERS_KIND], struct fb_err *e)
{
	const struct reading *r = arg;
	return add_document(r->o, path, r->own_host, named, kind, e);
}

static int read_tree(void *arg, const char *path, struct fb_err *e)
{
	return add_tree(arg, path, e);
}

int others_read(const struct fb_opt_list *names, const char *own_host, const char *own_dir,
	struct others *o, struct fb_err *e)
{
	static const struct fb_others_reader reader = {read_document, read_tree,
		"documents of checks", "fabricbench check all -o HOST.json"};
	struct reading r = {o, own_host, own_dir};
	*o = (struct others){0};
	int rc = fb_check_others(names, own_dir, &reader, &r, &o->passed, e);
	if (rc < 0)
		others_free(o);
	return rc;
}

void others_free(struct others *o)
{
	for (int i = 0; i < o->n; i++) {
		facts_free(o->node[i]);
		free(o->node[i]);
	}
	free(o->node);
	*o = (struct others){0};
}

/* ---- a recording beside the live machine ----------------------------------------------------- */

#define AT(field)                                                                           \
	{                                                                                   \
		offsetof(struct port_facts, field), sizeof(((struct port_facts *)0)->field) \
	}
/* Facts that only root can read on some kernels: each begins with its struct fact. */
static const struct {
	size_t offset, size;
} whole[] = {AT(cnp_dscp), AT(cnp_prio), AT(traffic_class), AT(cma_mode), AT(cma_tos), AT(trust),
	AT(active_mtu), AT(fw), AT(board), AT(pause_rx), AT(pause_tx), AT(pause_autoneg),
	AT(speed_mbps), AT(max_speed_mbps), AT(netdev_mtu), AT(netdev_state), AT(relaxed_ordering),
	AT(acs_redirect)};
#undef AT

static void note(struct fb_strbuf *taken, const struct fact *f)
{
	fb_strbuf_printf(taken, "\n%s\n", f->read);
}

static bool better(const struct fact *live, const struct fact *tree)
{
	return live->state == FACT_HIDDEN && fact_known(tree);
}

/* Root looked, and there is no such file: that is told too. What the recorder could not see is
 * hidden in the tree as well (FACTS_RECORDED_HIDDEN), and stays so. */
static bool better_file(const struct fact *live, const struct fact *tree)
{
	return better(live, tree) || (live->state == FACT_HIDDEN && tree->state == FACT_ABSENT &&
					     strncmp(tree->read, "/sys/", 5) == 0);
}

static void overlay_port(
	struct port_facts *live, const struct port_facts *tree, struct fb_strbuf *taken)
{
	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
		char *to = (char *)live + whole[i].offset;
		const char *from = (const char *)tree + whole[i].offset;
		if (!better_file((const struct fact *)(const void *)to,
			    (const struct fact *)(const void *)from))
			continue;
		memcpy(to, from, whole[i].size);
		note(taken, (const struct fact *)(const void *)from);
	}
	if (better(&live->dscp2prio_f, &tree->dscp2prio_f)) {
		live->dscp2prio_f = tree->dscp2prio_f;
		memcpy(live->dscp2prio, tree->dscp2prio, sizeof(live->dscp2prio));
		note(taken, &tree->dscp2prio_f);
	}
	if (better(&live->np_enable_f, &tree->np_enable_f)) {
		live->np_enable_f = tree->np_enable_f;
		memcpy(live->np_enable, tree->np_enable, sizeof(live->np_enable));
		note(taken, &tree->np_enable_f);
	}
	if (better(&live->rp_enable_f, &tree->rp_enable_f)) {
		live->rp_enable_f = tree->rp_enable_f;
		memcpy(live->rp_enable, tree->rp_enable, sizeof(live->rp_enable));
		note(taken, &tree->rp_enable_f);
	}
	if (better(&live->dcb.ieee, &tree->dcb.ieee)) {
		live->dcb = tree->dcb;
		note(taken, &tree->dcb.ieee);
	}
}

/* Every node calls its first device the same: a recording of another one tells nothing here. */
static bool same_hardware(const struct port_facts *a, const struct port_facts *b)
{
	return strcmp(a->device, b->device) == 0 && a->port == b->port &&
	       strcmp(a->bdf, b->bdf) == 0 && strcmp(a->family, b->family) == 0 &&
	       (!fact_known(&a->board.f) || !fact_known(&b->board.f) ||
		       strcmp(a->board.v, b->board.v) == 0);
}

int facts_overlay(struct node_facts *live, const struct node_facts *tree, char **taken)
{
	struct fb_strbuf b = {0};
	int matched = 0;
	for (int i = 0; i < live->ports; i++)
		for (int k = 0; k < tree->ports; k++)
			if (same_hardware(&live->port[i], &tree->port[k])) {
				overlay_port(&live->port[i], &tree->port[k], &b);
				matched++;
			}
	*taken = b.len > 0 || b.failed ? fb_strbuf_take(&b) : NULL;
	return matched;
}

bool facts_age(const char *recorded, int64_t now_s, char *buf, size_t len)
{
	struct tm t = {0};
	const char *end = strptime(recorded, "%Y-%m-%dT%H:%M:%S", &t);
	if (!end || (strcmp(end, "Z") != 0 && *end != '\0'))
		return false;
	int64_t s = now_s - (int64_t)timegm(&t);
	if (s < -60)
		snprintf(buf, len, "in the future");
	else if (s < 3600)
		snprintf(buf, len, "%lld min ago", (long long)(s < 0 ? 0 : s / 60));
	else if (s < 48 * 3600)
		snprintf(buf, len, "%lld h ago", (long long)(s / 3600));
	else
		snprintf(buf, len, "%lld days ago", (long long)(s / 86400));
	return true;
}

/* Does a check rest on something that the recording answered? */
static bool rests_on(const char *read, const char *taken)
{
	for (const char *line = taken; line && *line;) {
		char one[200];
		size_t n = strcspn(line, "\n");
		snprintf(one, sizeof(one), "%.*s", (int)(n < sizeof(one) ? n : 0), line);
		if (*one && strstr(read, one))
			return true;
		line += n + (line[n] == '\n');
	}
	return false;
}

void facts_mark_ages(json_t *checks, const char *taken, bool all, const char *age)
{
	json_t *check;
	size_t i;
	if (!age[0])
		return;
	json_array_foreach (checks, i, check) {
		char text[400];
		const char *read = fb_json_str(check, "read", "");
		if (!all && !rests_on(read, taken))
			continue;
		snprintf(text, sizeof(text), "%.300s (recorded: %s)", read, age);
		fb_json_set_str(check, "read", text);
	}
}
