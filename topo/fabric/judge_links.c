// SPDX-License-Identifier: Apache-2.0
/*
 * Width and speed of each link. What both ends could do decides where the source tells it
 * (iblinkinfo's "Could be", PortInfo). A plain ibnetdiscover file does not: there a link is held
 * against the best of the links between the same two kinds of device.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/fabric/fabric_priv.h"

enum { SPEED, WIDTH, PROPERTIES };
static const enum fabric_check check_of[PROPERTIES] = {FAB_SPEED, FAB_WIDTH};

/* Links of one kind: values and how many have each. */
struct kind {
	bool told;             /* the devices are known */
	bool many[PROPERTIES]; /* a row has told that many are slow */
	int n[PROPERTIES];
	struct {
		unsigned value;
		int n;
	} v[PROPERTIES][8];
};
struct kinds {
	struct fabric_map index;
	FABRIC_TAB(struct kind, kind);
};

static unsigned value_of(const struct fabric_port *p, int what)
{
	unsigned v = what == SPEED ? p->speed : p->width;
	return v == FABRIC_BAD_WIDTH && what == WIDTH ? 0 : v;
}

static bool comparable(unsigned v, int what)
{
	return v > 0 && (what == WIDTH || v < FABRIC_SPEEDS);
}

static unsigned link_value(const struct fabric *f, const struct fabric_link *l, int what)
{
	unsigned a = value_of(&f->port.v[l->a], what), b = value_of(&f->port.v[l->b], what);
	if (!comparable(a, what) || !comparable(b, what))
		return comparable(a, what) ? a : comparable(b, what) ? b : 0;
	return a < b ? a : b;
}

static bool inner(const struct fabric *f, const struct fabric_link *l)
{
	return f->node.v[f->port.v[l->a].node].aggregation ||
	       f->node.v[f->port.v[l->b].node].aggregation;
}

static const char *words(unsigned v, int what, char *buf, size_t len)
{
	if (what == SPEED)
		return fabric_speed_name(v, buf, len);
	snprintf(buf, len, "%ux", v);
	return buf;
}

/* ---- links of the same kind ------------------------------------------------------------------ */

static uint64_t kind_key(const struct fabric *f, const struct fabric_link *l, bool *told)
{
	const struct fabric_node *m = &f->node.v[f->port.v[l->a].node];
	const struct fabric_node *n = &f->node.v[f->port.v[l->b].node];
	uint64_t a = (uint64_t)m->vendor << 32 | m->device,
		 b = (uint64_t)n->vendor << 32 | n->device;
	*told = m->ids && n->ids;
	if (m->kind == n->kind && a > b) {
		uint64_t t = a;
		a = b;
		b = t;
	}
	const uint64_t parts[] = {m->kind, n->kind, *told, *told ? a : 0, *told ? b : 0};
	return fabric_hash((const char *)parts, sizeof(parts), 4);
}

static void count(struct kind *k, unsigned v, int what)
{
	if (!comparable(v, what))
		return;
	k->n[what]++;
	for (size_t i = 0; i < sizeof(k->v[0]) / sizeof(k->v[0][0]); i++) {
		if (k->v[what][i].n && k->v[what][i].value != v)
			continue;
		k->v[what][i].value = v;
		k->v[what][i].n++;
		return;
	}
}

static bool count_kinds(const struct fabric *f, struct kinds *k)
{
	for (size_t i = 0; i < f->link.n; i++) {
		const struct fabric_link *l = &f->link.v[i];
		bool told;
		uint64_t key = kind_key(f, l, &told);
		int at = fabric_map_get(&k->index, key);
		if (at < 0) {
			struct kind *new = FABRIC_ADD(k->kind);
			at = (int)k->kind.n - 1;
			if (!new || fabric_map_set(&k->index, key, at) < 0)
				return false;
			new->told = told;
		}
		if (!k->kind.v)
			return false;
		for (int what = 0; what < PROPERTIES && !inner(f, l); what++)
			count(&k->kind.v[at], link_value(f, l, what), what);
	}
	return true;
}

/* The best that at least two of a kind have; 0: too few to say. */
static unsigned best_of_kind(const struct kind *k, int what, int *n)
{
	unsigned best = 0;
	for (size_t i = 0; i < sizeof(k->v[0]) / sizeof(k->v[0][0]) && k->n[what] >= 3; i++)
		if (k->v[what][i].n >= 2 && k->v[what][i].value > best) {
			best = k->v[what][i].value;
			*n = k->v[what][i].n;
		}
	return best;
}

static int slower(const struct kind *k, int what, unsigned than)
{
	int n = 0;
	for (size_t i = 0; i < sizeof(k->v[0]) / sizeof(k->v[0][0]); i++)
		if (k->v[what][i].value < than)
			n += k->v[what][i].n;
	return n;
}

/* ---- judging --------------------------------------------------------------------------------- */

static void remedy(const struct fabric *f, const struct fabric_link *l, struct fb_finding *o)
{
	const struct fabric_port *p = &f->port.v[l->a];
	unsigned lid = f->node.v[p->node].kind == FABRIC_SWITCH ? f->node.v[p->node].lid : p->lid;
	if (lid)
		fb_find_remedy(o, "the link goes down",
			"reseat or replace the cable and its modules; ibportstate %u %u query tells what "
			"both ends can",
			lid, p->num);
}

static void start(struct fabric_judge *j, enum fabric_check c, const struct fabric_link *l,
	struct fb_finding *o)
{
	char a[FABRIC_LABEL], b[FABRIC_LABEL];
	fabric_start(j, c, o, "%.76s - %.76s", fabric_port_label(j->f, l->a, a),
		fabric_port_label(j->f, l->b, b));
	remedy(j->f, l, o);
}

static void observe(const struct fabric *f, const struct fabric_link *l, struct fb_finding *o,
	enum fb_check_state s)
{
	unsigned w = link_value(f, l, WIDTH), v = link_value(f, l, SPEED);
	double gbps = fabric_gbps(w, v);
	char speed[32], width[16];
	snprintf(width, sizeof(width), w ? "%ux" : "?x", w);
	fb_find(o, s, gbps > 0 ? "%s %s, %g Gb/s" : "%s %s", width,
		fabric_speed_name(v, speed, sizeof(speed)), gbps);
}

/* Both ends' best; 0: not told. 12x and 8x are claimed by emulators and used by nobody. */
static unsigned best_of_ends(
	const struct fabric *f, const struct fabric_link *l, int what, unsigned widest)
{
	const struct fabric_port *p = &f->port.v[l->a], *q = &f->port.v[l->b];
	unsigned a = what == SPEED ? p->max_speed : p->max_width;
	unsigned b = what == SPEED ? q->max_speed : q->max_width;
	if (!comparable(a, what) || !comparable(b, what) || a == FABRIC_BAD_WIDTH ||
		b == FABRIC_BAD_WIDTH)
		return 0;
	unsigned best = a < b ? a : b;
	if (what == WIDTH && best > 4 && widest <= 4)
		best = 4;
	return best;
}

/* @return true: told */
static bool judge_ends(struct fabric_judge *j, const struct fabric_link *l, int what)
{
	const struct fabric *f = j->f;
	unsigned a = value_of(&f->port.v[l->a], what), b = value_of(&f->port.v[l->b], what);
	struct fb_finding o;
	char x[32], y[32];
	if (!comparable(a, what) || !comparable(b, what) || a == b)
		return false;
	start(j, check_of[what], l, &o);
	fb_find(&o, FB_CHECK_FAIL, "the ends disagree: %s here, %s there",
		words(a, what, x, sizeof(x)), words(b, what, y, sizeof(y)));
	fb_find_expected(&o, "both ends of one cable", "the same at both ends");
	fabric_keep(j, check_of[what], &o);
	return true;
}

/* Links of one kind that are slow in such numbers that design is as likely as fault: one row. */
static void tell_many(struct fabric_judge *j, struct kind *k, int what, unsigned best, int slow)
{
	struct fb_finding o;
	char text[32];
	if (k->many[what])
		return;
	k->many[what] = true;
	fabric_start(j, check_of[what], &o, "fabric");
	fb_find(&o, k->told ? FB_CHECK_WARN : FB_CHECK_INFO,
		"%d of %d links %s are below the best of them", slow, k->n[what],
		k->told ? "between the same devices" : "of one sort, whose devices are not told,");
	fb_find_expected(
		&o, "the best of these links", "%s", words(best, what, text, sizeof(text)));
	fabric_keep(j, check_of[what], &o);
}

static void judge_by_kind(
	struct fabric_judge *j, const struct fabric_link *l, struct kind *k, int what, unsigned v)
{
	struct fb_finding o;
	char text[32];
	int n = 0;
	unsigned best = best_of_kind(k, what, &n);
	if (v >= best)
		return;
	int slow = slower(k, what, best), all = k->n[what];
	bool few = slow == 1 || slow * 4 <= all;
	if (!few && (!k->told || slow * 2 > all)) {
		tell_many(j, k, what, best, slow);
		return;
	}
	start(j, check_of[what], l, &o);
	observe(j->f, l, &o, few && k->told ? FB_CHECK_FAIL : FB_CHECK_WARN);
	fb_find_expected(&o,
		k->told ? "the best of the links between the same devices"
			: "the best of such links; what the devices are is not told",
		"%s, as %d of %d", words(best, what, text, sizeof(text)), n, all);
	fabric_keep(j, check_of[what], &o);
}

static void judge_link(struct fabric_judge *j, const struct fabric_link *l, struct kind *k,
	int what, unsigned widest)
{
	unsigned v = link_value(j->f, l, what), best = best_of_ends(j->f, l, what, widest);
	struct fb_finding o;
	char text[32];
	if (judge_ends(j, l, what) || !comparable(v, what))
		return;
	if (best == 0) {
		judge_by_kind(j, l, k, what, v);
		return;
	}
	if (v >= best)
		return;
	start(j, check_of[what], l, &o);
	observe(j->f, l, &o, FB_CHECK_FAIL);
	fb_find_expected(
		&o, "the best that both ends support", "%s", words(best, what, text, sizeof(text)));
	fabric_keep(j, check_of[what], &o);
}

/* Did the source print something for which it, or we, have no name? *code gets the number, if one
 * was told. */
static bool nameless(const struct fabric *f, const struct fabric_link *l, int what, unsigned *code)
{
	const int ends[] = {l->a, l->b};
	bool seen = false;
	for (int i = 0; i < 2; i++) {
		const struct fabric_port *p = &f->port.v[ends[i]];
		if (what == WIDTH) {
			seen = seen || p->width == FABRIC_BAD_WIDTH;
		} else if (p->width && (p->speed == FABRIC_NO_SPEED || p->speed & FABRIC_CODE)) {
			seen = true;
			*code = p->speed & FABRIC_CODE ? p->speed : *code;
		}
	}
	return seen;
}

/* Rates that the source has no name for, once. */
static void tell_unknown(struct fabric_judge *j, int what, int unknown, unsigned code)
{
	char text[32] = "";
	if (!unknown)
		return;
	if (what == SPEED && code)
		fabric_speed_name(code, text, sizeof(text));
	fabric_sum(j, check_of[what], FB_CHECK_INFO,
		"%d link%s of a %s that the source has no name for%s%s: not judged", unknown,
		unknown == 1 ? "" : "s", what == SPEED ? "speed" : "width", text[0] ? ", " : "",
		text);
}

static void sum_up(struct fabric_judge *j, int what, const int *of, int judged)
{
	char text[200] = "", name[32];
	size_t n = 0;
	if (j->bad[check_of[what]] > 0)
		return;
	if (judged == 0) {
		if (j->rows[check_of[what]] == 0)
			fabric_sum(j, check_of[what], FB_CHECK_SKIP,
				"the source tells no link's %s", what == SPEED ? "speed" : "width");
		return;
	}
	for (int v = 1; v < 64 && n + 32 < sizeof(text); v++)
		if (of[v])
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%d %s", n ? ", " : "",
				of[v], words((unsigned)v, what, name, sizeof(name)));
	fabric_sum(j, check_of[what], FB_CHECK_PASS, "%s", text);
}

void fabric_judge_links(struct fabric_judge *j)
{
	const struct fabric *f = j->f;
	struct kinds k = {.kind = {.v = NULL}};
	unsigned widest = 0;
	j->failed = !count_kinds(f, &k);
	for (size_t i = 0; i < f->link.n; i++)
		if (link_value(f, &f->link.v[i], WIDTH) > widest)
			widest = link_value(f, &f->link.v[i], WIDTH);
	for (int what = 0; what < PROPERTIES && !j->failed; what++) {
		int of[64] = {0}, judged = 0, unknown = 0;
		unsigned code = 0;
		for (size_t i = 0; i < f->link.n; i++) {
			const struct fabric_link *l = &f->link.v[i];
			bool told;
			if (inner(f, l))
				continue;
			unsigned v = link_value(f, l, what);
			if (comparable(v, what) && v < 64) {
				of[v]++;
				judged++;
			} else if (nameless(f, l, what, &code)) {
				unknown++;
			}
			int at = fabric_map_get(&k.index, kind_key(f, l, &told));
			if (at >= 0 && k.kind.v)
				judge_link(j, l, &k.kind.v[at], what, widest);
		}
		tell_unknown(j, what, unknown, code);
		sum_up(j, what, of, judged);
	}
	fabric_map_free(&k.index);
	free(k.kind.v);
}
