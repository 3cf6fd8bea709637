// SPDX-License-Identifier: Apache-2.0
/*
 * The command: two sets of launches in, one verdict per metric out, as a table or one JSON object.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/opt.h"
#include "reports/compare_priv.h"
#include "reports/report.h"
#include "reports/report_priv.h"

struct compare_cfg {
	char *base, *cand;
	double floor;
	uint64_t max_gated;
	struct fb_opt_list gates;
	bool json, all, any_system;
};

static const struct fb_opt compare_opts[] = {
	{.name = "base",
		.type = FB_OPT_STRING,
		.offset = offsetof(struct compare_cfg, base),
		.arg = "BASE",
		.help = "run directory or result document to compare with",
		.positional = true},
	{.name = "candidate",
		.type = FB_OPT_STRING,
		.offset = offsetof(struct compare_cfg, cand),
		.arg = "CAND",
		.help = "run directory or result document to judge",
		.positional = true},
	{.name = "floor",
		.type = FB_OPT_DOUBLE,
		.offset = offsetof(struct compare_cfg, floor),
		.arg = "PCT",
		.help = "change that is allowed, in percent, the same for every metric; -1: by metric, see below",
		.def = "-1",
		.min = -1,
		.max = 1000},
	{.name = "gate",
		.type = FB_OPT_LIST,
		.offset = offsetof(struct compare_cfg, gates),
		.arg = "PATTERN",
		.help = "gate what matches \"CASE:METRIC\" with *, ? and [], and nothing else"},
	{.name = "max-gated",
		.type = FB_OPT_U64,
		.offset = offsetof(struct compare_cfg, max_gated),
		.arg = "N",
		.help = "without --gate: gate at most so many metrics, ends of sweeps first",
		.def = "20",
		.min = 1,
		.max = 10000},
	{.name = "any-system",
		.type = FB_OPT_FLAG,
		.offset = offsetof(struct compare_cfg, any_system),
		.help = "compare although CPU, devices or firmware differ"},
	{.name = "all",
		.type = FB_OPT_FLAG,
		.offset = offsetof(struct compare_cfg, all),
		.help = "list the metrics that are not gated too"},
	{.name = "json",
		.type = FB_OPT_FLAG,
		.offset = offsetof(struct compare_cfg, json),
		.help = "one JSON object on stdout instead of the table"},
	{0},
};

static const char compare_notes[] =
	"A side is a run with several launches (launches = 10 in its plan), best taken in turn with\n"
	"the other side. Each launch gives one value per metric. The change is Hodges-Lehmann's\n"
	"ratio with its 95 % interval; the test is Mann-Whitney's against the base moved by the\n"
	"floor, adjusted by Holm over the gated metrics.\n"
	"\n"
	"Floors, relative and absolute (both must be exceeded): rates 1 %; p50 2 % and 20 ns;\n"
	"p99 5 % and 100 ns; p99.9 10 % and 100 ns.\n"
	"\n"
	"  PASS          not worse than the floor allows\n"
	"  REGRESSED     surely worse than the floor allows;  IMPROVED: as surely better\n"
	"  INCONCLUSIVE  the launches do not tell; at least 7 a side are needed\n"
	"  MISSING       only the base has it\n"
	"  INCOMPARABLE  another system, place or parameter\n"
	"  INVALID       a launch was marked invalid\n"
	"\n"
	"Exit status, of the gated metrics: 0 all PASS or IMPROVED; 1 one REGRESSED or MISSING;\n"
	"2 unreadable input; 3 one could not be judged; 4 the candidate holds wrong data.";

static struct fb_opt_spec make_spec(struct compare_cfg *cfg)
{
	return (struct fb_opt_spec){
		.command = "compare",
		.usage = "BASE CAND [options]",
		.summary =
			"Has the candidate become slower than the base? Compares launches, metric by metric.",
		.notes = compare_notes,
		.sets = {{"Options", compare_opts, cfg}},
	};
}

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

static void print_metric(const struct cmp_metric *m, int width)
{
	char name[240], a[48], b[48], change[64] = "-";
	snprintf(name, sizeof(name), "%s %s", m->name, m->metric);
	if (m->ratio.valid)
		snprintf(change, sizeof(change), "%+.2f %% [%+.2f, %+.2f]",
			100 * (m->ratio.est - 1), 100 * (m->ratio.lo - 1), 100 * (m->ratio.hi - 1));
	else if (isfinite(m->ratio.est))
		snprintf(change, sizeof(change), "%+.2f %%", 100 * (m->ratio.est - 1));
	printf("%c %-*s %12s %12s  %-26s ", m->gated ? '*' : ' ', width, name,
		human(m, median_of(&m->base), a, sizeof(a)),
		human(m, median_of(&m->cand), b, sizeof(b)), change);
	if (isfinite(m->p))
		printf("%-8.2g ", m->p);
	else
		printf("%-8s ", "-");
	printf("%s%s%s\n", cmp_verdict_names[m->verdict], m->why[0] ? ": " : "", m->why);
}

static void print_table(const struct cmp *c, bool all)
{
	int width = 20;
	size_t count[CMP_VERDICTS] = {0};
	for (size_t i = 0; i < c->n; i++) {
		int n = (int)(strlen(c->v[i].name) + strlen(c->v[i].metric)) + 1;
		if ((all || c->v[i].gated) && n > width)
			width = n;
	}
	printf("  %-*s %12s %12s  %-26s %-8s %s\n", width, "metric (* gated)", "base", "candidate",
		"change [95 % interval]", "p", "verdict");
	for (size_t i = 0; i < c->n; i++) {
		if (c->v[i].gated)
			count[c->v[i].verdict]++;
		if (all || c->v[i].gated)
			print_metric(&c->v[i], width);
	}
	printf("\n%s: %zu of %zu metrics gated", cmp_state(c), c->gated, c->n);
	for (int v = 0; v < CMP_VERDICTS; v++)
		if (count[v] > 0)
			printf(", %zu %s", count[v], cmp_verdict_names[v]);
	if (c->added > 0)
		printf("; %zu only in the candidate", c->added);
	printf("\n");
	double most = 0;
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].gated && c->v[i].detectable > most)
			most = c->v[i].detectable;
	if (most > 0)
		printf("The smallest change that every gated metric would have shown: %.1f %%\n",
			100 * most);
	if (c->wrong_data)
		printf("The candidate's document records wrong data.\n");
}

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

static json_t *metric_json(const struct cmp_metric *m)
{
	json_t *o = json_object(), *ratio = json_object(), *floor = json_object();
	fb_json_set_str(o, "case", m->name);
	fb_json_set_str(o, "metric", m->metric);
	fb_json_set_str(o, "unit", m->unit);
	fb_json_set_str(o, "better", m->lower ? "lower" : "higher");
	fb_json_set_bool(o, "gated", m->gated);
	fb_json_set_str(o, "verdict", cmp_verdict_names[m->verdict]);
	if (m->why[0])
		fb_json_set_str(o, "why", m->why);
	json_object_set_new(o, "base", side_json(&m->base));
	json_object_set_new(o, "candidate", side_json(&m->cand));
	json_object_set_new(ratio, "est", fb_json_real(m->ratio.est));
	json_object_set_new(ratio, "lo", fb_json_real(m->ratio.lo));
	json_object_set_new(ratio, "hi", fb_json_real(m->ratio.hi));
	json_object_set_new(ratio, "level", fb_json_real(m->ratio.level));
	json_object_set_new(o, "ratio", ratio);
	json_object_set_new(floor, "relative", fb_json_real(m->floor_rel));
	json_object_set_new(floor, "absolute", fb_json_real(m->floor_abs));
	json_object_set_new(floor, "effective", fb_json_real(m->floor));
	json_object_set_new(o, "floor", floor);
	json_object_set_new(o, "p", fb_json_real(m->p));
	json_object_set_new(o, "p_worse_than_floor", fb_json_real(m->p_worse));
	json_object_set_new(o, "p_better_than_floor", fb_json_real(m->p_better));
	json_object_set_new(o, "detectable", fb_json_real(m->detectable));
	return o;
}

static int print_json(const struct cmp *c, const struct compare_cfg *cfg, struct fb_err *e)
{
	json_t *o = json_object(), *metrics = json_array();
	fb_json_set_str(o, "schema", "fabricbench-compare/1");
	fb_json_set_str(o, "base", cfg->base);
	fb_json_set_str(o, "candidate", cfg->cand);
	fb_json_set_str(o, "state", cmp_state(c));
	fb_json_set_int(o, "exit", cmp_status(c));
	fb_json_set_int(o, "gated", (int64_t)c->gated);
	fb_json_set_int(o, "only_in_candidate", (int64_t)c->added);
	for (size_t i = 0; i < c->n; i++)
		json_array_append_new(metrics, metric_json(&c->v[i]));
	json_object_set_new(o, "metrics", metrics);
	char *text = json_dumps(o, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
	json_decref(o);
	if (!text)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the JSON output");
	printf("%s\n", text);
	free(text);
	return 0;
}

static int compare(const struct compare_cfg *cfg, struct fb_err *e)
{
	struct cmp c;
	struct cmp_rules rules = {.floor_pct = cfg->floor,
		.level = 0.95,
		.max_gated = cfg->max_gated,
		.gates = cfg->gates.v,
		.ngates = cfg->gates.n,
		.any_system = cfg->any_system};
	if (!cfg->base || !cfg->cand)
		return fb_fail_usage(e, "compare: which two? Usage: fabricbench compare BASE CAND");
	int rc = cmp_load(&c, cfg->base, cfg->cand, e);
	if (rc != 0)
		return rc;
	rc = cmp_judge(&c, &rules, e);
	if (rc == 0 && cfg->json)
		rc = print_json(&c, cfg, e);
	else if (rc == 0)
		print_table(&c, cfg->all);
	if (rc == 0)
		rc = cmp_status(&c);
	cmp_free(&c);
	return rc;
}

static int compare_main(int argc, char **argv)
{
	struct compare_cfg cfg = {0};
	struct fb_err e = {0};
	struct fb_opt_spec spec = make_spec(&cfg);
	int rc = fb_opt_parse(&spec, argc, argv, &e);
	if (rc == 1)
		return FB_EXIT_OK;
	if (rc == 0)
		rc = compare(&cfg, &e);
	fb_opt_free(&spec);
	return rc < 0 ? fb_cmd_fail(&e) : rc;
}

const struct fb_cmd compare_cmd = {
	.name = "compare",
	.summary = "has a candidate become slower than its base? verdict per metric",
	.run = compare_main,
};
