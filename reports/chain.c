// SPDX-License-Identifier: Apache-2.0
/* See chain.h. */
#include "reports/chain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/units.h"
#include "reports/report_priv.h"

static const json_t *get(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

static bool is_metric(const json_t *r, const char *metric)
{
	return strcmp(fb_json_str(r, "metric", ""), metric) == 0;
}

static bool is_case(const json_t *r, const char *prefix)
{
	return strncmp(fb_json_str(r, "case", ""), prefix, strlen(prefix)) == 0;
}

/* The valid result of a kind with the highest value. */
static const json_t *best(const json_t *doc, const char *prefix, const char *metric)
{
	const json_t *r, *found = NULL;
	double most = 0;
	size_t i;
	json_array_foreach (get(doc, "results"), i, r) {
		double v = fb_json_num(r, "value", NAN);
		if (!is_case(r, prefix) || !is_metric(r, metric) || !(v > most) ||
			strcmp(fb_json_str(get(r, "validity"), "state", ""), "invalid") == 0)
			continue;
		most = v;
		found = r;
	}
	return found;
}

static struct rep_link *add(struct rep_chain *c, const json_t *r)
{
	struct rep_link *l = &c->v[c->n++];
	l->share = NAN;
	snprintf(l->where, sizeof(l->where), "%s", fb_json_str(r, "where", "?"));
	return l;
}

/* The share of the line above, where both were measured in one place. */
static void set_share(struct rep_chain *c, double value, double above)
{
	struct rep_link *l = &c->v[c->n - 1], *up = &c->v[c->n - 2];
	if (strcmp(l->where, up->where) != 0) {
		char here[24], above_it[24];
		memcpy(here, l->where, sizeof(here));
		memcpy(above_it, up->where, sizeof(above_it));
		snprintf(l->rest, sizeof(l->rest),
			"no share: not like for like, this line is from the %s and the one above from the %s",
			here, above_it);
		return;
	}
	l->share = above > 0 ? value / above : NAN;
}

static void size_words(const json_t *r, char *buf, size_t len)
{
	fb_fmt_size((uint64_t)fb_json_int(get(r, "params"), "size", 0), buf, len);
}

/* ---- the wire and RDMA ----------------------------------------------------------------------- */

static double add_rdma(struct rep_chain *c, const json_t *r)
{
	double value = fb_json_num(r, "value", NAN),
	       bound = fb_json_num(get(r, "bound"), "value", NAN);
	char size[32];
	if (isfinite(bound)) {
		struct rep_link *l = add(c, r);
		snprintf(l->what, sizeof(l->what), "What the wire can carry");
		fb_fmt_gbps(bound, l->value, sizeof(l->value));
		snprintf(l->rest, sizeof(l->rest), "%.200s",
			fb_json_str(get(r, "bound"), "why", ""));
	}
	struct rep_link *l = add(c, r);
	size_words(r, size, sizeof(size));
	snprintf(l->what, sizeof(l->what), "RDMA %.40s, %s messages",
		fb_json_str(get(r, "params"), "op", "transfer"), size);
	fb_fmt_gbps(value, l->value, sizeof(l->value));
	if (c->n > 1) {
		set_share(c, value, bound);
		if (isfinite(l->share))
			snprintf(l->rest, sizeof(l->rest),
				"headers are in the bound already: the NIC, PCIe, memory, or too few "
				"messages in flight");
	}
	return value;
}

/* ---- the collective -------------------------------------------------------------------------- */

/* Share of a collective's time that does not depend on its size: the least time of that case's
 * sweep, over this one's. */
static double latency_share(const json_t *doc, const json_t *r)
{
	const char *name = fb_json_str(r, "case", ""), *slash = strrchr(name, '/');
	const json_t *q;
	double least = INFINITY, own = NAN;
	size_t i;
	json_array_foreach (get(doc, "results"), i, q) {
		double v = fb_json_num(q, "value", NAN);
		if (!slash || !is_metric(q, "time") ||
			strncmp(fb_json_str(q, "case", ""), name, (size_t)(slash - name) + 1) != 0)
			continue;
		if (strcmp(fb_json_str(q, "case", ""), name) == 0)
			own = v;
		if (v < least)
			least = v;
	}
	return least / own;
}

static double add_collective(struct rep_chain *c, const json_t *doc, const json_t *r, double rdma)
{
	double value = fb_json_num(r, "value", NAN), latency = latency_share(doc, r);
	char size[32], num[32];
	struct rep_link *l = add(c, r);
	size_words(r, size, sizeof(size));
	snprintf(l->what, sizeof(l->what), "%.40s of %lld ranks, %s, bus bandwidth",
		fb_json_str(get(r, "params"), "op", "collective"),
		(long long)fb_json_int(get(r, "params"), "ranks", 0), size);
	snprintf(l->value, sizeof(l->value), "%s GB/s", rep_num(value / 1e9, num, sizeof(num)));
	if (c->n < 2)
		return value;
	set_share(c, value, rdma);
	if (isfinite(l->share) && isfinite(latency))
		snprintf(l->rest, sizeof(l->rest),
			"%.0f %% of its time is that of the smallest message (latency); the rest is "
			"steps of the algorithm, reduction and copies",
			100 * latency);
	return value;
}

/* ---- the step -------------------------------------------------------------------------------- */

static double mean_of(const json_t *split, const char *key)
{
	return fb_json_num(get(split, key), "mean", 0);
}

/* Bytes that a rank's collectives move in a step, as counted. */
static double collective_bytes(const json_t *r)
{
	static const char *const kinds[] = {"all_gather", "reduce_scatter", "all_reduce"};
	const json_t *bytes = get(get(r, "bytes"), "kinds");
	double sum = 0;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		sum += fb_json_num(get(bytes, kinds[i]), "counted", 0);
	return sum;
}

static double exposed_ns(const json_t *split)
{
	const char *kind;
	const json_t *v;
	double sum = 0;
	json_object_foreach ((json_t *)get(split, "exposed"), kind, v)
		sum += fb_json_num(v, "mean", 0);
	return sum;
}

static void add_communication(struct rep_chain *c, const json_t *r, double busbw)
{
	const json_t *split = get(r, "split");
	double step = mean_of(split, "step"), exposed = exposed_ns(split);
	double bytes = collective_bytes(r), alone = busbw > 0 ? bytes / busbw * 1e9 : NAN;
	char a[32], b[32];
	if (!(step > 0) || !(bytes > 0))
		return;
	struct rep_link *l = add(c, r);
	snprintf(l->what, sizeof(l->what), "Communication that the step waits for (%.60s)",
		fb_json_str(get(r, "params"), "strategy", "?"));
	snprintf(l->value, sizeof(l->value), "%s of %s", fb_fmt_duration(exposed, a, sizeof(a)),
		fb_fmt_duration(step, b, sizeof(b)));
	if (c->n < 2 || !isfinite(alone))
		return;
	set_share(c, 1, 1);
	if (!isfinite(l->share))
		return;
	/* Not a rate: what is hidden behind arithmetic, of what it would take alone. */
	l->share = NAN;
	snprintf(l->rest, sizeof(l->rest),
		"%.3g MB a rank would take %s alone at the line above; %.0f %% of the step is spent "
		"waiting for it",
		bytes / 1e6, fb_fmt_duration(alone, a, sizeof(a)), 100 * exposed / step);
}

static void add_arithmetic(struct rep_chain *c, const json_t *r)
{
	const json_t *split = get(r, "split"), *mfu = get(r, "mfu");
	double step = mean_of(split, "step"), compute = mean_of(split, "compute");
	double sheet = fb_json_num(mfu, "value", NAN);
	double measured = fb_json_num(get(mfu, "measured"), "palm", NAN);
	if (!(step > 0))
		return;
	struct rep_link *l = add(c, r);
	snprintf(l->what, sizeof(l->what), "Arithmetic in the step");
	snprintf(l->value, sizeof(l->value), "%.1f %% of its time", 100 * compute / step);
	snprintf(l->rest, sizeof(l->rest), "%.200s",
		fb_json_str(
			get(r, "verdict"), "why", "the rest is communication and the optimizer"));
	if (!isfinite(sheet) && !isfinite(measured))
		return;
	l = add(c, r);
	snprintf(l->what, sizeof(l->what),
		isfinite(sheet) ? "MFU (6N + 12 L h s, data-sheet peak)"
				: "Model FLOPs of the products' own rate");
	double v = isfinite(sheet) ? sheet : measured;
	snprintf(l->value, sizeof(l->value), "%.1f %%", 100 * v);
	l->share = v / (compute / step);
	snprintf(l->rest, sizeof(l->rest),
		"products below their peak, attention, element-wise work, and FLOPs that no "
		"convention counts");
}

void rep_chain_make(const json_t *doc, struct rep_chain *c)
{
	const json_t *rdma = best(doc, "verbs.bandwidth/", "bandwidth");
	const json_t *coll = best(doc, "coll/all_reduce/", "busbw"), *step = NULL, *r;
	double above = NAN;
	size_t i;
	memset(c, 0, sizeof(*c));
	if (!coll)
		coll = best(doc, "coll/", "busbw");
	json_array_foreach (get(doc, "results"), i, r)
		if (!step && is_case(r, "train/") && is_metric(r, "step_time"))
			step = r;
	if (rdma)
		above = add_rdma(c, rdma);
	if (coll)
		above = add_collective(c, doc, coll, above);
	if (step) {
		add_communication(c, step, above);
		add_arithmetic(c, step);
	}
	/* One kind of figure alone is no chain. */
	if (!rdma + !coll + !step > 1)
		c->n = 0;
}

void rep_html_chain(struct fb_strbuf *b, const struct rep_chain *c)
{
	static const char *const names[] = {
		"line", "value", "share of the line above", "measured on", "the rest"};
	if (c->n == 0)
		return;
	rep_tag(b, "h2", NULL, "From the wire to the step");
	fb_strbuf_add(b, "\n<div class=\"wide\"><table class=\"chain\"><thead><tr>");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		rep_tag(b, "th", NULL, "%s", names[i]);
	fb_strbuf_add(b, "</tr></thead><tbody>\n");
	for (size_t i = 0; i < c->n; i++) {
		const struct rep_link *l = &c->v[i];
		fb_strbuf_add(b, "<tr>");
		rep_tag(b, "td", NULL, "%s", l->what);
		rep_tag(b, "td", "n", "%s", l->value);
		if (isfinite(l->share))
			rep_tag(b, "td", "n", "%.1f %%", 100 * l->share);
		else
			rep_tag(b, "td", "n", "-");
		rep_tag(b, "td", NULL, "%s", l->where);
		rep_tag(b, "td", "long", "%s", l->rest);
		fb_strbuf_add(b, "</tr>\n");
	}
	fb_strbuf_add(b, "</tbody></table></div>\n");
}
