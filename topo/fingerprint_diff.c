// SPDX-License-Identifier: Apache-2.0
/*
 * What differs between two shapes, by device and in words.
 *
 * Both shapes are lists, depth first; they are aligned as sequences (Needleman-Wunsch), where equal
 * kind, model, depth, NUMA node and PCI address each add to a pair's worth. So a missing device
 * shifts nothing: neither GPU numbers nor bus numbers decide what is compared with what. What the
 * alignment leaves over is then paired as moved, and the rest is missing or extra.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/fingerprint.h"
#include "topo/topo_priv.h"

enum {
	LONE = -1,
	MAX_ENTRIES = 64, /* two nodes that differ in more are no nodes of one kind */
};

struct work {
	const struct topo_shape *ref, *node;
	int *to_node, *to_ref; /* LONE: no partner */
	int *ref_depth, *node_depth;
	struct topo_diff *d;
	bool gpus_differ; /* some GPU is missing or extra: links may lead to where it was */
	bool failed;
};

const char *topo_diff_name(enum topo_diff_kind k)
{
	static const char *const names[] = {
		"missing", "extra", "moved", "replaced", "changed", "order", "cpus"};

	return names[k];
}

/* ---- alignment ------------------------------------------------------------------------------- */

static void depths(const struct topo_shape *s, int *depth)
{
	for (size_t i = 0; i < s->n_items; i++)
		depth[i] = s->items[i].parent >= 0 ? depth[s->items[i].parent] + 1 : 0;
}

static bool same_model(const struct topo_shape_item *a, const struct topo_shape_item *b)
{
	return a->kind == b->kind && a->cls == b->cls && a->vendor == b->vendor &&
	       a->device == b->device;
}

/** Worth of a pair; 0: they are no pair. */
static int worth(const struct work *w, size_t i, size_t k)
{
	const struct topo_shape_item *a = &w->ref->items[i], *b = &w->node->items[k];
	bool depth = w->ref_depth[i] == w->node_depth[k], model = same_model(a, b);

	if (a->kind != b->kind || (!model && !depth))
		return 0;
	return 4 + 8 * model + 3 * depth + 3 * (a->numa == b->numa) +
	       2 * (a->bdf[0] && strcmp(a->bdf, b->bdf) == 0) +
	       (a->name[0] && strcmp(a->name, b->name) == 0);
}

static int align(struct work *w)
{
	size_t n = w->ref->n_items, m = w->node->n_items, row = m + 1;
	int *best = calloc((n + 1) * row, sizeof(*best));

	if (!best)
		return -ENOMEM;
	/* best[i][k]: of the tails from i and k on. */
	for (size_t i = n; i-- > 0;)
		for (size_t k = m; k-- > 0;) {
			int a = best[(i + 1) * row + k], b = best[i * row + k + 1];
			int v = worth(w, i, k), both = v ? v + best[(i + 1) * row + k + 1] : 0;

			a = a > b ? a : b;
			best[i * row + k] = a > both ? a : both;
		}
	for (size_t i = 0, k = 0; i < n && k < m;) {
		int v = worth(w, i, k);

		if (v && best[i * row + k] == v + best[(i + 1) * row + k + 1]) {
			w->to_node[i] = (int)k;
			w->to_ref[k] = (int)i;
			i++;
			k++;
		} else if (best[i * row + k] == best[(i + 1) * row + k]) {
			i++;
		} else {
			k++;
		}
	}
	free(best);
	return 0;
}

/** The bridge of the node that most devices below bridge `a` have above them, as many steps up. */
static int elected(const struct work *w, int a, unsigned *votes, unsigned *most)
{
	int best = LONE;

	*most = 0;
	for (size_t i = (size_t)a + 1; i < w->ref->n_items; i++) {
		int up = (int)i, k = w->to_node[i];

		if (w->ref->items[i].parent < a)
			break; /* depth first: nothing further is below a */
		if (w->ref->items[i].kind == TOPO_SHAPE_BRIDGE || k == LONE)
			continue;
		while (up > a && k >= 0) {
			up = w->ref->items[up].parent;
			k = w->node->items[k].parent;
		}
		if (up != a || k < 0 || !same_model(&w->ref->items[a], &w->node->items[k]))
			continue;
		if (++votes[k] > *most || (votes[k] == *most && w->to_node[a] == k)) {
			*most = votes[k];
			best = k;
		}
	}
	return best;
}

/**
 * Bridges look alike, so the alignment pairs them by luck: a slot that lost its GPU may take the
 * bridge of the NIC beside it. Their devices know better.
 */
static int elect_bridges(struct work *w)
{
	size_t n = w->ref->n_items, m = w->node->n_items;
	int *choice = calloc(n + 1, sizeof(int)), *owner = calloc(m + 1, sizeof(int));
	unsigned *weight = calloc(n + 1, sizeof(*weight)), *votes = calloc(m + 1, sizeof(*votes));
	int rc = choice && owner && weight && votes ? 0 : -ENOMEM;

	for (size_t k = 0; !rc && k < m; k++)
		owner[k] = LONE;
	for (size_t i = 0; !rc && i < n; i++) {
		choice[i] = LONE;
		if (w->ref->items[i].kind != TOPO_SHAPE_BRIDGE)
			continue;
		memset(votes, 0, m * sizeof(*votes));
		int b = choice[i] = elected(w, (int)i, votes, &weight[i]);

		if (b != LONE && (owner[b] == LONE || weight[owner[b]] < weight[i]))
			owner[b] = (int)i;
	}
	for (size_t i = 0; !rc && i < n; i++) {
		int b = choice[i], old = w->to_node[i];

		if (b == LONE || owner[b] != (int)i || old == b)
			continue;
		if (old != LONE)
			w->to_ref[old] = LONE;
		if (w->to_ref[b] != LONE)
			w->to_node[w->to_ref[b]] = LONE;
		w->to_node[i] = b;
		w->to_ref[b] = (int)i;
	}
	free(choice);
	free(owner);
	free(weight);
	free(votes);
	return rc;
}

/** Do both hang on the same bridge, as far as the alignment tells? */
static bool same_parent(const struct work *w, size_t i, size_t k)
{
	int a = w->ref->items[i].parent, b = w->node->items[k].parent;

	if (a < 0 || b < 0)
		return a < 0 && b < 0;
	return w->to_node[a] == b;
}

/** Leftovers that only stand in another order among their siblings are the same. */
static void pair_siblings(struct work *w)
{
	for (size_t i = 0; i < w->ref->n_items; i++) {
		for (size_t k = 0; w->to_node[i] == LONE && k < w->node->n_items; k++) {
			const struct topo_shape_item *a = &w->ref->items[i];
			const struct topo_shape_item *b = &w->node->items[k];

			if (w->to_ref[k] != LONE || !same_model(a, b) || a->numa != b->numa ||
				!same_parent(w, i, k))
				continue;
			w->to_node[i] = (int)k;
			w->to_ref[k] = (int)i;
		}
	}
}

/* ---- words ----------------------------------------------------------------------------------- */

static const char *label(const struct topo_shape_item *it)
{
	return it->name[0] ? it->name : it->bdf[0] ? it->bdf : "a device without a name";
}

/** "mlx5_2 at 0000:3b:00.0"; the name alone of what has no PCI function. */
static const char *named(const struct topo_shape_item *it, char *buf, size_t len)
{
	if (!it->bdf[0])
		return label(it);
	snprintf(buf, len, "%s at %s", label(it), it->bdf);
	return buf;
}

static bool below(const struct topo_shape *s, size_t i, int bridge)
{
	for (int up = s->items[i].parent; up >= 0; up = s->items[up].parent)
		if (up == bridge)
			return true;
	return false;
}

/** "NUMA node 0, on a switch with GPU1, mlx5_2": the devices below the nearest bridge that has
 * others. */
static const char *place(const struct topo_shape *s, size_t i, char *buf, size_t len)
{
	const struct topo_shape_item *it = &s->items[i];
	size_t n = 0;

	if (it->numa >= 0)
		n = (size_t)snprintf(buf, len, "NUMA node %d", it->numa);
	else
		n = (size_t)snprintf(buf, len, "no known NUMA node");
	for (int up = it->parent; up >= 0; up = s->items[up].parent) {
		unsigned found = 0;

		for (size_t k = 0; k < s->n_items && n < len; k++) {
			if (k == i || s->items[k].kind == TOPO_SHAPE_BRIDGE || !below(s, k, up))
				continue;
			if (found < 3)
				n += (size_t)snprintf(buf + n, len - n, "%s%s",
					found ? ", " : ", on a switch with ", label(&s->items[k]));
			else if (found == 3)
				n += (size_t)snprintf(buf + n, len - n, " and more");
			found++;
		}
		if (found)
			return buf;
	}
	/* What has no PCI function is on no port. */
	if (it->bdf[0])
		snprintf(buf + n, len - n, ", on a root port of its own");
	return buf;
}

static const char *model(const struct topo_shape_item *it, char *buf, size_t len)
{
	const char *maker = topo_vendor_name(it->vendor);

	if (!it->vendor && !it->cls)
		return "a device of a model that is not told";
	snprintf(buf, len, "%s%s%s [%04x:%04x]", maker ? maker : "", maker ? " " : "",
		topo_class_name(it->cls << 8), it->vendor, it->device);
	return buf;
}

static void FB_PRINTF(4, 5)
	report(struct work *w, enum topo_diff_kind kind, const char *device, const char *fmt, ...)
{
	struct topo_diff_entry *e = topo_grow((void **)&w->d->e, &w->d->n, sizeof(*e));
	va_list ap;

	if (!e) {
		w->failed = true;
		return;
	}
	e->kind = kind;
	snprintf(e->device, sizeof(e->device), "%s", device);
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
}

/** Checked before the words are made: places are searched for. */
static bool full(const struct work *w)
{
	return w->d->n >= MAX_ENTRIES || w->failed;
}

/* ---- missing, extra, moved ------------------------------------------------------------------- */

static void report_moved(struct work *w, size_t i, size_t k)
{
	const struct topo_shape_item *a = &w->ref->items[i], *b = &w->node->items[k];
	char from[200], to[200], was[100], is[100];

	report(w, TOPO_DIFF_MOVED, label(b), "%s: %s; in the reference %s: %s",
		named(b, is, sizeof(is)), place(w->node, k, to, sizeof(to)),
		named(a, was, sizeof(was)), place(w->ref, i, from, sizeof(from)));
}

/** A leftover of the reference and one of the node, of one model: it has moved. */
static void pair_moved(struct work *w)
{
	for (size_t i = 0; i < w->ref->n_items && !full(w); i++) {
		const struct topo_shape_item *a = &w->ref->items[i];

		for (size_t k = 0; a->kind != TOPO_SHAPE_BRIDGE && w->to_node[i] == LONE &&
				   k < w->node->n_items;
			k++) {
			if (w->to_ref[k] != LONE || !same_model(a, &w->node->items[k]))
				continue;
			report_moved(w, i, k);
			w->to_node[i] = (int)k;
			w->to_ref[k] = (int)i;
		}
	}
}

static void report_lone(struct work *w)
{
	char where[200], what[100], who[100];

	for (size_t i = 0; i < w->ref->n_items && !full(w); i++) {
		const struct topo_shape_item *it = &w->ref->items[i];

		if (it->kind == TOPO_SHAPE_BRIDGE || w->to_node[i] != LONE)
			continue;
		w->gpus_differ |= it->kind == TOPO_SHAPE_GPU;
		report(w, TOPO_DIFF_MISSING, label(it), "%s: %s, %s", named(it, who, sizeof(who)),
			model(it, what, sizeof(what)), place(w->ref, i, where, sizeof(where)));
	}
	for (size_t k = 0; k < w->node->n_items && !full(w); k++) {
		const struct topo_shape_item *it = &w->node->items[k];

		if (it->kind == TOPO_SHAPE_BRIDGE || w->to_ref[k] != LONE)
			continue;
		w->gpus_differ |= it->kind == TOPO_SHAPE_GPU;
		report(w, TOPO_DIFF_EXTRA, label(it), "%s: %s, %s", named(it, who, sizeof(who)),
			model(it, what, sizeof(what)), place(w->node, k, where, sizeof(where)));
	}
}

/* ---- pairs that differ ----------------------------------------------------------------------- */

/** What a bridge is above, so that people find it. */
static const char *title(const struct topo_shape *s, size_t i, char *buf, size_t len)
{
	const struct topo_shape_item *it = &s->items[i];

	if (it->kind != TOPO_SHAPE_BRIDGE) {
		snprintf(buf, len, "%s", label(it));
		return buf;
	}
	for (size_t k = i + 1; k < s->n_items; k++)
		if (s->items[k].kind != TOPO_SHAPE_BRIDGE && below(s, k, (int)i)) {
			snprintf(buf, len, "the bridge %s above %s", it->bdf, label(&s->items[k]));
			return buf;
		}
	snprintf(buf, len, "the bridge %s", it->bdf);
	return buf;
}

static bool link_differs(const struct topo_shape_item *a, const struct topo_shape_item *b)
{
	/* Not equal beyond what writing as text and reading back may change. */
	return a->max_width != b->max_width || a->max_gts > b->max_gts + 0.05 ||
	       b->max_gts > a->max_gts + 0.05;
}

static void compare_pair(struct work *w, size_t i, size_t k)
{
	const struct topo_shape_item *a = &w->ref->items[i], *b = &w->node->items[k];
	char name[120], x[100], y[100];

	title(w->node, k, name, sizeof(name));
	if (!same_model(a, b))
		report(w, TOPO_DIFF_REPLACED, label(b), "%s: %s instead of %s", name,
			model(b, x, sizeof(x)), model(a, y, sizeof(y)));
	if (a->numa != b->numa) {
		snprintf(x, sizeof(x), "%d", b->numa);
		snprintf(y, sizeof(y), "%d", a->numa);
		report(w, TOPO_DIFF_CHANGED, label(b), "%s: NUMA node %s instead of %s", name,
			b->numa >= 0 ? x : "unknown", a->numa >= 0 ? y : "unknown");
	}
	if (link_differs(a, b))
		report(w, TOPO_DIFF_CHANGED, label(b),
			"%s: its PCIe link can do %s, in the reference %s", name,
			topo_fmt_link(b->max_gts, b->max_width, x, sizeof(x)),
			topo_fmt_link(a->max_gts, a->max_width, y, sizeof(y)));
	if (a->rdma != b->rdma)
		report(w, TOPO_DIFF_CHANGED, label(b), "%s: %u RDMA device%s on it instead of %u",
			name, b->rdma, b->rdma == 1 ? "" : "s", a->rdma);
}

static unsigned links_to(
	const struct topo_shape_item *it, enum topo_fast_kind kind, char to, int item)
{
	unsigned n = 0;

	for (size_t i = 0; i < it->n_links; i++)
		if (it->links[i].kind == kind && it->links[i].to == to &&
			(to != 'g' || it->links[i].item == item))
			n += it->links[i].count;
	return n;
}

static const char *peer_text(const struct topo_shape *s, char to, int item)
{
	return to == 'g' && item >= 0 ? label(&s->items[item])
	       : to == 's'            ? "the switches"
	       : to == 'c'            ? "its CPU"
				      : "what is not in the tree";
}

/** Links of one kind to one peer, each pair of GPUs once: the lower end tells, unless it alone is
 * right. */
static void compare_links(struct work *w, size_t i, size_t k)
{
	static const char *const words[] = {"NVLink", "xGMI link", "NVLink-C2C"};
	const struct topo_shape_item *a = &w->ref->items[i], *b = &w->node->items[k];

	for (int pass = 0; pass < 2; pass++) {
		const struct topo_shape_item *from = pass ? b : a;

		for (size_t l = 0; l < from->n_links; l++) {
			const struct topo_shape_link *x = &from->links[l];
			int ri = x->item, ni = ri;

			if (x->to == 'g' && x->item >= 0) {
				/* A peer that is missing takes its links along. */
				int mate = pass ? w->to_ref[x->item] : w->to_node[x->item];

				if (mate == LONE)
					continue;
				ri = pass ? mate : x->item;
				ni = pass ? x->item : mate;
			}
			unsigned want = links_to(a, x->kind, x->to, ri);
			unsigned have = links_to(b, x->kind, x->to, ni);

			if (want == have || (pass && want) || (x->to == '?' && w->gpus_differ))
				continue;
			if (x->to == 'g' && ri >= 0 && (size_t)ri < i &&
				links_to(&w->ref->items[ri], x->kind, 'g', (int)i) !=
					links_to(&w->node->items[ni], x->kind, 'g', (int)k))
				continue;
			report(w, TOPO_DIFF_CHANGED, label(b), "%s: %u %s%s to %s instead of %u",
				label(b), have, words[x->kind], have == 1 ? "" : "s",
				peer_text(w->node, x->to, ni), want);
		}
	}
}

/** Bridges tell only what their devices do not: a narrower slot shows at the device too. */
static void compare_pairs(struct work *w)
{
	size_t before = w->d->n;

	for (size_t i = 0; i < w->ref->n_items && !full(w); i++)
		if (w->to_node[i] != LONE && w->ref->items[i].kind != TOPO_SHAPE_BRIDGE) {
			size_t k = (size_t)w->to_node[i];

			if (!same_parent(w, i, k) &&
				(w->ref->items[i].parent < 0 || w->node->items[k].parent < 0 ||
					w->to_ref[w->node->items[k].parent] != LONE ||
					w->to_node[w->ref->items[i].parent] != LONE))
				report_moved(w, i, k);
			compare_pair(w, i, k);
			compare_links(w, i, k);
		}
	for (size_t i = 0; i < w->ref->n_items && w->d->n == before; i++)
		if (w->to_node[i] != LONE && w->ref->items[i].kind == TOPO_SHAPE_BRIDGE)
			compare_pair(w, i, (size_t)w->to_node[i]);
}

/* ---- numbering ------------------------------------------------------------------------------- */

/** Both order texts are lists with "; " between; tells the first entries that differ. */
static void compare_order(struct work *w)
{
	const char *a = w->ref->order, *b = w->node->order;

	for (int told = 0; (*a || *b) && told < 8;) {
		size_t la = strcspn(a, ";"), lb = strcspn(b, ";");

		if (la != lb || strncmp(a, b, la) != 0) {
			char device[TOPO_NAME] = "";

			snprintf(device, sizeof(device), "%.*s", (int)strcspn(b, " ;"), b);
			report(w, TOPO_DIFF_ORDER, device, "%.*s; in the reference %.*s",
				lb < 150 ? (int)lb : 150, b, la < 150 ? (int)la : 150, a);
			told++;
		}
		a += la + (a[la] ? strspn(a + la, "; ") : 0);
		b += lb + (b[lb] ? strspn(b + lb, "; ") : 0);
	}
}

static bool tells_of_places(const struct topo_diff *d)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->e[i].kind <= TOPO_DIFF_MOVED)
			return true;
	return false;
}

/** When no device tells what the hashes saw: bridges that only one of the two has. */
static void report_bridges(struct work *w)
{
	char name[120], what[100];

	for (size_t i = 0; i < w->ref->n_items && !full(w); i++)
		if (w->to_node[i] == LONE)
			report(w, TOPO_DIFF_MISSING, w->ref->items[i].bdf, "%s: %s",
				title(w->ref, i, name, sizeof(name)),
				model(&w->ref->items[i], what, sizeof(what)));
	for (size_t k = 0; k < w->node->n_items && !full(w); k++)
		if (w->to_ref[k] == LONE)
			report(w, TOPO_DIFF_EXTRA, w->node->items[k].bdf, "%s: %s",
				title(w->node, k, name, sizeof(name)),
				model(&w->node->items[k], what, sizeof(what)));
}

static void tell(struct work *w)
{
	pair_siblings(w);
	pair_moved(w);
	report_lone(w);
	compare_pairs(w);
	if (strcmp(w->ref->cpus, w->node->cpus) != 0)
		report(w, TOPO_DIFF_CPUS, "CPUs", "%s; in the reference %s", w->node->cpus,
			w->ref->cpus);
	if (!tells_of_places(w->d) && strcmp(w->ref->order, w->node->order) != 0)
		compare_order(w);
	if (w->d->n == 0)
		report_bridges(w);
	if (w->d->n == 0)
		report(w, TOPO_DIFF_CHANGED, "tree",
			"the same devices hang on the same bridges in another way");
}

int topo_shape_diff(
	const struct topo_shape *ref, const struct topo_shape *node, struct topo_diff *d)
{
	size_t n = ref->n_items, m = node->n_items;
	struct work w = {.ref = ref, .node = node, .d = d};
	int rc = -ENOMEM;

	*d = (struct topo_diff){0};
	if (strcmp(ref->fingerprint, node->fingerprint) == 0)
		return 0;
	w.to_node = calloc(n + 1, sizeof(int));
	w.to_ref = calloc(m + 1, sizeof(int));
	w.ref_depth = calloc(n + 1, sizeof(int));
	w.node_depth = calloc(m + 1, sizeof(int));
	if (!w.to_node || !w.to_ref || !w.ref_depth || !w.node_depth)
		goto free_work;
	for (size_t i = 0; i <= n; i++)
		w.to_node[i] = LONE;
	for (size_t k = 0; k <= m; k++)
		w.to_ref[k] = LONE;
	depths(ref, w.ref_depth);
	depths(node, w.node_depth);
	rc = align(&w);
	if (!rc)
		rc = elect_bridges(&w);
	if (!rc) {
		tell(&w);
		rc = w.failed ? -ENOMEM : 0;
	}
free_work:
	free(w.to_node);
	free(w.to_ref);
	free(w.ref_depth);
	free(w.node_depth);
	return rc;
}
