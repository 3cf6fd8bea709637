// SPDX-License-Identifier: Apache-2.0
/* What a comparison prints: the table, the JSON object, JUnit, Markdown for a pull request. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/units.h"
#include "reports/compare_priv.h"
#include "reports/report_priv.h"

static double median_of(const struct cmp_side *s)
{
	double m = NAN, *v = s->n > 0 ? malloc(s->n * sizeof(*v)) : NULL;
	if (v) {
		memcpy(v, s->v, s->n * sizeof(*v));
		fb_sort(v, s->n);
		m = fb_median_sorted(v, s->n);
	}
	free(v);
	return m;
}

/* For people: us, GB/s and millions, the unit beside. */
static const char *human(const struct cmp_metric *m, double v, char *buf, size_t len)
{
	char num[32];
	bool bytes = strcmp(m->unit, "bytes/s") == 0, per_s = strcmp(m->unit, "1/s") == 0;
	double k = m->time ? 1e-3 : bytes ? 1e-9 : per_s ? 1e-6 : 1;
	const char *unit = m->time ? "us" : bytes ? "GB/s" : per_s ? "M/s" : m->unit;
	if (isfinite(v))
		snprintf(buf, len, "%s %s", rep_num(v * k, num, sizeof(num)), unit);
	else
		snprintf(buf, len, "-");
	return buf;
}

static const char *change(const struct cmp_metric *m, char *buf, size_t len)
{
	if (m->ratio.valid)
		snprintf(buf, len, "%+.2f %% [%+.2f, %+.2f]", 100 * (m->ratio.est - 1),
			100 * (m->ratio.lo - 1), 100 * (m->ratio.hi - 1));
	else if (isfinite(m->ratio.est))
		snprintf(buf, len, "%+.2f %%", 100 * (m->ratio.est - 1));
	else
		snprintf(buf, len, "-");
	return buf;
}

/* The verdict with its reason, and who waived it. */
static const char *verdict(const struct cmp_metric *m, char *buf, size_t len)
{
	snprintf(buf, len, "%s%s%s", cmp_verdict_names[m->verdict], m->why[0] ? ": " : "", m->why);
	if (m->waiver) {
		size_t n = strlen(buf);
		snprintf(buf + n, len - n, " (waived until %s by %s: %s)", m->waiver->expires,
			m->waiver->owner, m->waiver->reason);
	}
	return buf;
}

static void count_verdicts(const struct cmp *c, size_t count[CMP_VERDICTS], size_t *waived)
{
	memset(count, 0, CMP_VERDICTS * sizeof(*count));
	*waived = 0;
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].gated) {
			count[c->v[i].verdict]++;
			*waived += c->v[i].waiver != NULL;
		}
}

/* ---- the table ------------------------------------------------------------------------------- */

static void print_metric(const struct cmp_metric *m, int width, FILE *out)
{
	char name[240], a[48], b[48], moved[64], text[1200], safe[2400];
	snprintf(name, sizeof(name), "%s %s", m->name, m->metric);
	fprintf(out, "%c %-*s %12s %12s  %-26s ", m->gated ? '*' : ' ', width, name,
		human(m, median_of(&m->base), a, sizeof(a)),
		human(m, median_of(&m->cand), b, sizeof(b)), change(m, moved, sizeof(moved)));
	if (isfinite(m->p))
		fprintf(out, "%-8.2g ", m->p);
	else
		fprintf(out, "%-8s ", "-");
	fprintf(out, "%s\n", fb_safe_text(verdict(m, text, sizeof(text)), safe, sizeof(safe)));
}

/* The most over the gated metrics of one of their figures; NAN: none has it. */
static double most(const struct cmp *c, size_t offset)
{
	double most = NAN;
	for (size_t i = 0; i < c->n; i++) {
		double v = *(const double *)(const void *)((const char *)&c->v[i] + offset);
		if (c->v[i].gated && isfinite(v) && !(most >= v))
			most = v;
	}
	return most;
}
#define MOST(c, field) most(c, offsetof(struct cmp_metric, field))

/* What the gate could have seen, and what it would take. */
static void print_power(const struct cmp *c, FILE *out)
{
	char each[32];
	double need80 = MOST(c, need80), need97 = MOST(c, need97);
	if (!isfinite(MOST(c, seen80)))
		return;
	fprintf(out,
		"Noise from launch to launch: %.2g %% at most. A change of %.2g %% would have been "
		"seen in 80 of 100 such comparisons,\none of %.2g %% in 97.\n",
		100 * MOST(c, noise), 100 * MOST(c, seen80), 100 * MOST(c, seen97));
	fprintf(out,
		"For these floors (no change passes, twice the floor is seen): %.0f launches a side "
		"for 80 of 100, %.0f for 97",
		need80, need97);
	if (isfinite(c->seconds))
		fprintf(out, "; %.0f and %.0f minutes at %s a launch",
			ceil(2 * need80 * c->seconds / 60), ceil(2 * need97 * c->seconds / 60),
			fb_fmt_duration(c->seconds * 1e9, each, sizeof(each)));
	fprintf(out, ".\n");
}

static void print_unmatched(const struct cmp *c, FILE *out)
{
	if (c->unmatched[0])
		fprintf(out,
			"Warning: the base has no metric that the gate's pattern %s matches.\n",
			c->unmatched);
}

void cmp_print_table(const struct cmp *c, bool all, FILE *out)
{
	int width = 20;
	char change_head[48];
	size_t count[CMP_VERDICTS], waived;
	for (size_t i = 0; i < c->n; i++) {
		int n = (int)(strlen(c->v[i].name) + strlen(c->v[i].metric)) + 1;
		if ((all || c->v[i].gated) && n > width)
			width = n;
	}
	snprintf(change_head, sizeof(change_head), "change [%.4g %% interval]", 100 * c->level);
	fprintf(out, "  %-*s %12s %12s  %-26s %-8s %s\n", width, "metric (* gated)", "base",
		"candidate", change_head, "p", "verdict");
	for (size_t i = 0; i < c->n; i++)
		if (all || c->v[i].gated)
			print_metric(&c->v[i], width, out);
	count_verdicts(c, count, &waived);
	fprintf(out, "\n%s: %zu of %zu metrics gated", cmp_state(c), c->gated, c->n);
	for (int v = 0; v < CMP_VERDICTS; v++)
		if (count[v] > 0)
			fprintf(out, ", %zu %s", count[v], cmp_verdict_names[v]);
	if (waived > 0)
		fprintf(out, ", %zu of them waived", waived);
	if (c->added > 0)
		fprintf(out, "; %zu only in the candidate", c->added);
	fprintf(out, "\n");
	if (count[CMP_INCONCLUSIVE] > 0 && !c->strict && cmp_status(c) == FB_EXIT_OK)
		fprintf(out,
			"Warning: what is INCONCLUSIVE was not shown to be as fast as before (--strict "
			"makes it a failure).\n");
	print_unmatched(c, out);
	print_power(c, out);
	if (c->wrong_data)
		fprintf(out, "The candidate's document records wrong data.\n");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *side_json(const struct cmp_side *s)
{
	json_t *o = json_object(), *v = json_array();
	for (size_t i = 0; i < s->n; i++)
		json_array_append_new(v, fb_json_real(s->v[i]));
	fb_json_set_int(o, "launches", (int64_t)s->n);
	json_object_set_new(o, "median", fb_json_real(median_of(s)));
	json_object_set_new(o, "values", v);
	return o;
}

static json_t *floor_json(const struct cmp_metric *m)
{
	json_t *o = json_object();
	json_object_set_new(o, "relative", fb_json_real(m->floor_rel));
	json_object_set_new(o, "absolute", fb_json_real(m->floor_abs));
	json_object_set_new(o, "effective", fb_json_real(m->floor));
	if (m->floor_reason)
		fb_json_set_str(o, "reason", m->floor_reason);
	return o;
}

static json_t *ratio_json(const struct fb_ci *ci)
{
	json_t *o = json_object();
	json_object_set_new(o, "est", fb_json_real(ci->est));
	json_object_set_new(o, "lo", fb_json_real(ci->lo));
	json_object_set_new(o, "hi", fb_json_real(ci->hi));
	json_object_set_new(o, "level", fb_json_real(ci->level));
	return o;
}

static json_t *waiver_json(const struct gate_waiver *w)
{
	json_t *o = json_object();
	fb_json_set_str(o, "name", w->name);
	fb_json_set_str(o, "reason", w->reason);
	fb_json_set_str(o, "owner", w->owner);
	fb_json_set_str(o, "expires", w->expires);
	return o;
}

static json_t *metric_json(const struct cmp_metric *m)
{
	json_t *o = json_object(), *power = json_object();
	fb_json_set_str(o, "case", m->name);
	fb_json_set_str(o, "metric", m->metric);
	fb_json_set_str(o, "unit", m->unit);
	fb_json_set_str(o, "better", m->lower ? "lower" : "higher");
	fb_json_set_bool(o, "gated", m->gated);
	fb_json_set_str(o, "verdict", cmp_verdict_names[m->verdict]);
	if (m->why[0])
		fb_json_set_str(o, "why", m->why);
	if (m->waiver)
		json_object_set_new(o, "waiver", waiver_json(m->waiver));
	json_object_set_new(o, "base", side_json(&m->base));
	json_object_set_new(o, "candidate", side_json(&m->cand));
	json_object_set_new(o, "ratio", ratio_json(&m->ratio));
	json_object_set_new(o, "floor", floor_json(m));
	json_object_set_new(o, "p", fb_json_real(m->p));
	json_object_set_new(o, "p_worse_than_floor", fb_json_real(m->p_worse));
	json_object_set_new(o, "p_better_than_floor", fb_json_real(m->p_better));
	json_object_set_new(power, "noise", fb_json_real(m->noise));
	json_object_set_new(power, "detectable_80", fb_json_real(m->seen80));
	json_object_set_new(power, "detectable_97", fb_json_real(m->seen97));
	json_object_set_new(power, "launches_80", fb_json_real(m->need80));
	json_object_set_new(power, "launches_97", fb_json_real(m->need97));
	json_object_set_new(o, "power", power);
	return o;
}

json_t *cmp_json(const struct cmp *c, const struct cmp_names *names)
{
	json_t *o = json_object(), *metrics = json_array();
	fb_json_set_str(o, "schema", "fabricbench-compare/1");
	fb_json_set_str(o, "base", names->base);
	fb_json_set_str(o, "candidate", names->cand);
	fb_json_set_str(o, "state", cmp_state(c));
	fb_json_set_int(o, "exit", cmp_status(c));
	fb_json_set_bool(o, "strict", c->strict);
	fb_json_set_int(o, "gated", (int64_t)c->gated);
	fb_json_set_int(o, "only_in_candidate", (int64_t)c->added);
	if (c->differs[0])
		fb_json_set_str(o, "differs", c->differs);
	if (c->unmatched[0])
		fb_json_set_str(o, "unmatched_gates", c->unmatched);
	json_object_set_new(o, "launch_seconds", fb_json_real(c->seconds));
	for (size_t i = 0; i < c->n; i++)
		json_array_append_new(metrics, metric_json(&c->v[i]));
	json_object_set_new(o, "metrics", metrics);
	return o;
}

/* ---- for CI ---------------------------------------------------------------------------------- */

static void junit_case(const struct cmp *c, const struct cmp_metric *m, FILE *out)
{
	char text[1200], moved[64];
	enum cmp_verdict v = cmp_effective(m);
	struct fb_strbuf b = {0};
	const char *element = v == CMP_REGRESSED || v == CMP_MISSING      ? "failure"
			      : v == CMP_INCOMPARABLE || v == CMP_INVALID ? "error"
			      : v == CMP_INCONCLUSIVE && c->strict        ? "failure"
			      : v == CMP_INCONCLUSIVE || m->verdict != v  ? "skipped"
									  : NULL;
	fb_strbuf_add(&b, "    <testcase classname=\"");
	fb_strbuf_add_xml(&b, m->name);
	fb_strbuf_add(&b, "\" name=\"");
	fb_strbuf_add_xml(&b, m->metric);
	fb_strbuf_add(&b, "\">\n");
	if (element) {
		fb_strbuf_printf(&b, "      <%s message=\"", element);
		fb_strbuf_add_xml(&b, verdict(m, text, sizeof(text)));
		fb_strbuf_add(&b, "\"/>\n");
	}
	fb_strbuf_add(&b, "      <system-out>");
	fb_strbuf_add_xml(&b, change(m, moved, sizeof(moved)));
	fb_strbuf_add(&b, "</system-out>\n    </testcase>\n");
	fputs(b.s && !b.failed ? b.s : "", out);
	fb_strbuf_free(&b);
}

void cmp_junit(const struct cmp *c, FILE *out)
{
	size_t count[CMP_VERDICTS] = {0}, waived = 0;
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].gated) {
			count[cmp_effective(&c->v[i])]++;
			waived += c->v[i].waiver != NULL;
		}
	size_t unsure = count[CMP_INCONCLUSIVE];
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite "
		"name=\"fabricbench compare\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" "
		"skipped=\"%zu\">\n",
		c->gated, count[CMP_REGRESSED] + count[CMP_MISSING] + (c->strict ? unsure : 0),
		count[CMP_INCOMPARABLE] + count[CMP_INVALID], (c->strict ? 0 : unsure) + waived);
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].gated)
			junit_case(c, &c->v[i], out);
	fputs("  </testsuite>\n</testsuites>\n", out);
}

void cmp_markdown(const struct cmp *c, const struct cmp_names *names, FILE *out)
{
	char a[48], b[48], moved[64], text[1200];
	fprintf(out, "**%s** - ", cmp_state(c));
	fb_markdown_cell(out, names->cand);
	fputs(" against ", out);
	fb_markdown_cell(out, names->base);
	fprintf(out, ", %zu of %zu metrics gated\n\n", c->gated, c->n);
	fprintf(out,
		"| metric | base | candidate | change [%.4g %% interval] | verdict |\n"
		"|---|---:|---:|---:|---|\n",
		100 * c->level);
	for (size_t i = 0; i < c->n; i++) {
		const struct cmp_metric *m = &c->v[i];
		if (!m->gated)
			continue;
		const char *const cells[] = {human(m, median_of(&m->base), a, sizeof(a)),
			human(m, median_of(&m->cand), b, sizeof(b)),
			change(m, moved, sizeof(moved)), verdict(m, text, sizeof(text))};
		fputs("| ", out);
		fb_markdown_cell(out, m->name);
		fputc(' ', out);
		fb_markdown_cell(out, m->metric);
		for (size_t k = 0; k < sizeof(cells) / sizeof(cells[0]); k++) {
			fputs(" | ", out);
			fb_markdown_cell(out, cells[k]);
		}
		fputs(" |\n", out);
	}
	fputc('\n', out);
	if (c->unmatched[0]) {
		fputs("No metric of the base matches ", out);
		fb_markdown_cell(out, c->unmatched);
		fputs(".\n\n", out);
	}
	print_power(c, out);
}
