// SPDX-License-Identifier: Apache-2.0
/* The gate: each verdict, the exit status that follows, and that few launches never pass. */
#include "bench/core/test.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/hist.h"
#include "bench/core/json.h"
#include "bench/core/result.h"
#include "reports/compare_priv.h"
#include "reports/rank.h"
#include "reports/report.h"

#define SMALL FB_TESTDATA("reports", "small.json")

/* What one side measured: launches of one latency and one bandwidth. */
struct side {
	unsigned launches;
	double latency_ns, bandwidth;
	double noise; /* relative step from launch to launch */
};

static json_t *result(
	json_t *like, unsigned launch, const char *name, const char *metric, double value)
{
	json_t *r = json_deep_copy(like);
	fb_json_set_str(r, "case", name);
	fb_json_set_str(r, "metric", metric);
	fb_json_set_int(r, "launch", launch);
	json_object_set_new(r, "value", json_real(value));
	return r;
}

static json_t *latency(json_t *like, unsigned launch, double ns)
{
	struct fb_hist *h = malloc(sizeof(*h));
	assert_non_null(h);
	fb_hist_init(h);
	for (int i = 0; i < 200; i++)
		fb_hist_add(h, (uint64_t)ns);
	json_t *r = result(like, launch, "verbs.latency/send/rc/poll/2", "latency", ns);
	json_object_set_new(r, "hist", fb_hist_to_json(h));
	fb_json_set_int(r, "n", 200);
	free(h);
	return r;
}

static json_t *document(const struct side *s)
{
	struct fb_err e = {0};
	json_t *doc = fb_doc_load(SMALL, &e);
	if (!doc)
		fail_msg("%s", e.msg);
	json_t *results = json_array(), *old = json_object_get(doc, "results"), *lat = NULL,
	       *bw = NULL, *r;
	size_t i;
	json_array_foreach (old, i, r) {
		if (!lat && json_object_get(r, "hist"))
			lat = r;
		if (!bw && strcmp(fb_json_str(r, "metric", ""), "bandwidth") == 0)
			bw = r;
	}
	for (unsigned l = 1; l <= s->launches; l++) {
		double k = 1 + s->noise * ((double)(l * 5 % 7) - 3);
		json_array_append_new(results, latency(lat, l, s->latency_ns * k));
		json_array_append_new(results, result(bw, l, "verbs.bandwidth/write/rc/one/1024",
						       "bandwidth", s->bandwidth * k));
	}
	json_object_set_new(doc, "results", results);
	return doc;
}

static void save(const json_t *doc, char *path)
{
	int fd = mkstemps(path, 5);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(json_dump_file(doc, path, JSON_COMPACT), 0);
}

static const struct cmp_rules usual = {.floor_pct = -1, .level = 0.95, .max_gated = 20};

/* cmp_judge()'s code; a failure before it ends the test. */
static int judge(
	json_t *base, json_t *cand, const struct cmp_rules *rules, struct cmp *c, struct fb_err *e)
{
	char a[] = "/tmp/fabricbench-base-XXXXXX.json", b[] = "/tmp/fabricbench-cand-XXXXXX.json";
	memset(c, 0, sizeof(*c));
	save(base, a);
	save(cand, b);
	if (cmp_add(c, a, false, e) != 0 || cmp_add(c, b, true, e) != 0)
		fail_msg("%s", e->msg);
	cmp_close_load(c, rules);
	unlink(a);
	unlink(b);
	json_decref(base);
	json_decref(cand);
	return cmp_judge(c, rules, e);
}

static struct cmp load(json_t *base, json_t *cand, const struct cmp_rules *rules)
{
	struct fb_err e = {0};
	struct cmp c;
	if (judge(base, cand, rules ? rules : &usual, &c, &e) != 0)
		fail_msg("%s", e.msg);
	return c;
}

static const struct cmp_metric *metric(const struct cmp *c, const char *name)
{
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->v[i].metric, name) == 0)
			return &c->v[i];
	fail_msg("no metric %s", name);
	return NULL;
}

static void expect(
	struct side base, struct side cand, enum cmp_verdict lat, enum cmp_verdict bw, int status)
{
	struct cmp c = load(document(&base), document(&cand), NULL);
	const struct cmp_metric *l = metric(&c, "latency p50"), *b = metric(&c, "bandwidth");
	if (l->verdict != lat || b->verdict != bw)
		fail_msg("latency %s (%s), bandwidth %s (%s)", cmp_verdict_names[l->verdict],
			l->why, cmp_verdict_names[b->verdict], b->why);
	assert_true(l->gated && b->gated);
	assert_int_equal(cmp_status(&c), status);
	cmp_free(&c);
}

static void verdicts(void **state)
{
	struct side base = {7, 5000, 10e9, 0.001};
	expect(base, base, CMP_PASS, CMP_PASS, FB_EXIT_OK);
	expect(base, (struct side){7, 5500, 10e9, 0.001}, CMP_REGRESSED, CMP_PASS, FB_EXIT_FAILED);
	expect(base, (struct side){7, 5000, 9e9, 0.001}, CMP_PASS, CMP_REGRESSED, FB_EXIT_FAILED);
	expect(base, (struct side){7, 4000, 12e9, 0.001}, CMP_IMPROVED, CMP_IMPROVED, FB_EXIT_OK);
	/* Within the floors of 2 % and 1 %. */
	expect(base, (struct side){7, 5050, 9.96e9, 0.001}, CMP_PASS, CMP_PASS, FB_EXIT_OK);
}

/* Launches that differ by 3 % steps tell nothing about 2 %. */
static void noise_is_inconclusive(void **state)
{
	struct side noisy = {7, 5000, 10e9, 0.03};
	expect(noisy, noisy, CMP_INCONCLUSIVE, CMP_INCONCLUSIVE, FB_EXIT_OK);
	struct cmp_rules strict = usual;
	strict.strict = true;
	struct cmp c = load(document(&noisy), document(&noisy), &strict);
	assert_int_equal(cmp_status(&c), FB_EXIT_FAILED);
	cmp_free(&c);
}

static void few_launches_never_pass(void **state)
{
	struct side six = {6, 5000, 10e9, 0}, ten = {10, 5000, 10e9, 0};
	expect(six, ten, CMP_INCONCLUSIVE, CMP_INCONCLUSIVE, FB_EXIT_OK);
	expect(ten, six, CMP_INCONCLUSIVE, CMP_INCONCLUSIVE, FB_EXIT_OK);
	/* One launch is a look, not a gate. */
	struct side one = {1, 5000, 10e9, 0};
	expect(one, one, CMP_INCONCLUSIVE, CMP_INCONCLUSIVE, FB_EXIT_OK);
	struct cmp c = load(document(&six), document(&ten), NULL);
	assert_string_equal(
		metric(&c, "bandwidth")->why, "needs at least 7 launches a side, has 6 and 10");
	cmp_free(&c);
	/* The same launch twice is one launch. */
	json_t *twice = document(&six), *results = json_object_get(twice, "results");
	size_t n = json_array_size(results);
	for (size_t i = 0; i < n; i++)
		json_array_append(results, json_array_get(results, i));
	c = load(twice, document(&ten), NULL);
	assert_int_equal(metric(&c, "bandwidth")->base.n, 6);
	assert_int_equal(metric(&c, "bandwidth")->verdict, CMP_INCONCLUSIVE);
	cmp_free(&c);
}

/* 15 ns of 100 ns are 15 %, and less than the 20 ns that a median must move. */
static void absolute_floor(void **state)
{
	struct side base = {7, 100, 10e9, 0}, cand = {7, 115, 10e9, 0};
	expect(base, cand, CMP_PASS, CMP_PASS, FB_EXIT_OK);
	cand.latency_ns = 140;
	expect(base, cand, CMP_REGRESSED, CMP_PASS, FB_EXIT_FAILED);
}

static void floor_of_the_user(void **state)
{
	struct side base = {7, 5000, 10e9, 0.001}, cand = {7, 5500, 9.4e9, 0.001};
	struct cmp_rules rules = {.floor_pct = 20, .level = 0.95, .max_gated = 20};
	struct cmp c = load(document(&base), document(&cand), &rules);
	assert_int_equal(metric(&c, "latency p50")->verdict, CMP_PASS);
	assert_int_equal(metric(&c, "bandwidth")->verdict, CMP_PASS);
	cmp_free(&c);
}

/* With m gated metrics the smallest p counts m times: 7 launches a side give 0.00058, which 90
 * metrics of equal weight cannot turn into a finding. */
static void holm_over_the_gated(void **state)
{
	struct side base = {7, 5000, 10e9, 0.001}, cand = {7, 5500, 9e9, 0.001};
	json_t *docs[2] = {document(&base), document(&cand)};
	for (int d = 0; d < 2; d++) {
		json_t *results = json_object_get(docs[d], "results");
		size_t n = json_array_size(results);
		for (size_t i = 0; i < n; i++)
			for (int k = 0; k < 45; k++) {
				char name[80];
				json_t *r = json_deep_copy(json_array_get(results, i));
				snprintf(name, sizeof(name), "%s/%d", fb_json_str(r, "case", "?"),
					k);
				fb_json_set_str(r, "case", name);
				json_array_append_new(results, r);
			}
	}
	struct cmp_rules rules = {.floor_pct = -1, .level = 0.95, .max_gated = 20};
	struct cmp c = load(json_incref(docs[0]), json_incref(docs[1]), &rules);
	assert_int_equal(c.gated, 20);
	for (size_t i = 0; i < c.n; i++)
		if (c.v[i].gated)
			assert_int_equal(c.v[i].verdict, CMP_REGRESSED);
	cmp_free(&c);
	/* A gate that could not fail is refused. */
	struct fb_err e = {0};
	rules.max_gated = 1000;
	assert_int_equal(judge(docs[0], docs[1], &rules, &c, &e), -ERANGE);
	assert_int_equal(e.exit, FB_EXIT_UNMEASURED);
	assert_true(c.gated > 85);
	assert_non_null(strstr(e.msg, "cannot fail"));
	assert_non_null(strstr(e.hint, "gate 85 metrics at most"));
	cmp_free(&c);
}

static void patterns_choose(void **state)
{
	static const char *const gates[] = {"verbs.bandwidth/*:bandwidth"};
	struct side base = {7, 5000, 10e9, 0.001}, cand = {7, 9000, 10e9, 0.001};
	struct cmp_rules rules = {.floor_pct = -1, .level = 0.95, .gates = gates, .ngates = 1};
	struct cmp c = load(document(&base), document(&cand), &rules);
	assert_int_equal(c.gated, 1);
	/* It is worse, is said to be, and gates nothing. */
	assert_int_equal(metric(&c, "latency p50")->verdict, CMP_REGRESSED);
	assert_int_equal(cmp_status(&c), FB_EXIT_OK);
	assert_string_equal(c.unmatched, "");
	cmp_free(&c);
	static const char *const none[] = {"nothing*"};
	rules.gates = none;
	c = load(document(&base), document(&cand), &rules);
	assert_int_equal(cmp_status(&c), FB_EXIT_UNMEASURED);
	cmp_free(&c);
	/* A mistyped pattern among others is told. */
	static const char *const typo[] = {
		"verbs.bandwidth/*:busbw", "verbs.bandwidth/*:bandwidth", "coll/*:busbw"};
	rules.gates = typo;
	rules.ngates = 3;
	c = load(document(&base), document(&cand), &rules);
	assert_int_equal(c.gated, 1);
	assert_string_equal(c.unmatched, "verbs.bandwidth/*:busbw, coll/*:busbw");
	cmp_free(&c);
	/* So is one of a floor or a waiver, which would say nothing. */
	struct gate_floor floors[] = {{.what = "p50", .relative = 0.05, .absolute = -1},
		{.what = "one",
			.metric = "verbs.bandwidth/*:busbw",
			.relative = 0.05,
			.absolute = -1}};
	struct gate_waiver waivers[] = {{.metric = "*:bandwidth", .verdict = "REGRESSED"},
		{.metric = "verbs.latency/*:busbw", .verdict = "REGRESSED"}};
	const struct gate gate = {
		.floor = floors, .n_floors = 2, .waiver = waivers, .n_waivers = 2};
	rules.gates = gates;
	rules.ngates = 1;
	rules.gate = &gate;
	c = load(document(&base), document(&cand), &rules);
	assert_string_equal(c.unmatched, "verbs.bandwidth/*:busbw, verbs.latency/*:busbw");
	cmp_free(&c);
}

static void what_cannot_be_compared(void **state)
{
	struct side side = {7, 5000, 10e9, 0.001};
	json_t *cand = document(&side), *r;
	size_t i;
	/* A case that is gone. */
	json_array_remove(json_object_get(cand, "results"), 0);
	for (i = 0; i < json_array_size(json_object_get(cand, "results"));) {
		r = json_array_get(json_object_get(cand, "results"), i);
		if (json_object_get(r, "hist"))
			json_array_remove(json_object_get(cand, "results"), i);
		else
			i++;
	}
	struct cmp c = load(document(&side), cand, NULL);
	assert_int_equal(metric(&c, "latency p50")->verdict, CMP_MISSING);
	assert_int_equal(cmp_status(&c), FB_EXIT_FAILED);
	cmp_free(&c);
	/* An invalid launch. */
	cand = document(&side);
	r = json_array_get(json_object_get(cand, "results"), 3);
	json_object_set_new(r, "validity",
		json_pack("{s:s,s:[s]}", "state", "invalid", "reasons", "the link went down"));
	c = load(document(&side), cand, NULL);
	assert_int_equal(metric(&c, "bandwidth")->verdict, CMP_INVALID);
	assert_non_null(strstr(metric(&c, "bandwidth")->why, "the link went down"));
	assert_int_equal(cmp_status(&c), FB_EXIT_UNMEASURED);
	cmp_free(&c);
	/* Another parameter. */
	cand = document(&side);
	json_array_foreach (json_object_get(cand, "results"), i, r)
		fb_json_set_int(json_object_get(r, "params"), "mtu", 4096);
	c = load(document(&side), cand, NULL);
	assert_int_equal(metric(&c, "latency p50")->verdict, CMP_INCOMPARABLE);
	cmp_free(&c);
	/* Another unit, another sense: the figures are no two of one thing. */
	for (int sense = 0; sense < 2; sense++) {
		cand = document(&side);
		json_array_foreach (json_object_get(cand, "results"), i, r)
			fb_json_set_str(r, sense ? "better" : "unit", sense ? "lower" : "Gb/s");
		c = load(document(&side), cand, NULL);
		assert_int_equal(metric(&c, "bandwidth")->verdict, CMP_INCOMPARABLE);
		assert_string_equal(
			metric(&c, "bandwidth")->why, sense ? "better: \"higher\" against \"lower\""
							    : "unit: \"bytes/s\" against \"Gb/s\"");
		assert_int_equal(cmp_status(&c), FB_EXIT_UNMEASURED);
		cmp_free(&c);
	}
	/* A base whose data were wrong measured nothing to compare with. */
	cand = document(&side);
	fb_json_set_int(json_object_get(cand, "run"), "exit", FB_EXIT_WRONG_DATA);
	c = load(cand, document(&side), NULL);
	assert_int_equal(metric(&c, "bandwidth")->verdict, CMP_INVALID);
	assert_int_equal(cmp_status(&c), FB_EXIT_UNMEASURED);
	cmp_free(&c);
	/* Wrong data. */
	cand = document(&side);
	json_array_append_new(json_object_get(cand, "errors"),
		json_pack("{s:s,s:s,s:i,s:i}", "message", "byte 7 is wrong", "remedy", "", "code",
			-5, "exit", FB_EXIT_WRONG_DATA));
	c = load(document(&side), cand, NULL);
	assert_int_equal(cmp_status(&c), FB_EXIT_WRONG_DATA);
	cmp_free(&c);
}

static void another_system(void **state)
{
	struct side side = {7, 5000, 10e9, 0.001};
	struct cmp_rules rules = {.floor_pct = -1, .level = 0.95, .max_gated = 20};
	for (int any = 0; any < 2; any++) {
		json_t *cand = document(&side);
		json_t *host = json_array_get(
			json_object_get(json_object_get(cand, "system"), "hosts"), 0);
		json_object_set_new(
			json_object_get(host, "cpu"), "model", json_string("Another CPU"));
		rules.any_system = any;
		struct cmp c = load(document(&side), cand, &rules);
		assert_int_equal(
			metric(&c, "bandwidth")->verdict, any ? CMP_PASS : CMP_INCOMPARABLE);
		if (!any)
			assert_non_null(strstr(metric(&c, "bandwidth")->why, "Another CPU"));
		assert_int_equal(cmp_status(&c), any ? FB_EXIT_OK : FB_EXIT_UNMEASURED);
		cmp_free(&c);
	}
}

static json_t *host_of(json_t *doc)
{
	return json_array_get(json_object_get(json_object_get(doc, "system"), "hosts"), 0);
}

/* Any one fact that differs is named, in either direction, and may be allowed by that name. */
static void facts_that_differ(void **state)
{
	static const struct {
		const char *at, *was, *is, *name;
	} facts[] = {
		{"kernel", "{\"release\":\"6.1.0\"}", "{\"release\":\"6.2.0\"}",
			"kernel.release: \"6.1.0\" against \"6.2.0\""},
		{"kernel", "{\"clocksource\":\"tsc\"}", "{\"clocksource\":\"hpet\"}",
			"kernel.clocksource: \"tsc\" against \"hpet\""},
		{"kernel", "{\"boot\":[\"iommu=pt\"]}", "{\"boot\":[]}",
			"kernel.boot: [\"iommu=pt\"] against []"},
		{"cpu", "{\"governors\":[\"performance\"]}", "{\"governors\":[\"powersave\"]}",
			"cpu.governors: [\"performance\"] against [\"powersave\"]"},
		{"cpu", "{\"microcode\":\"0x1\"}", "{}", "cpu.microcode: \"0x1\" against absent"},
		{"rdma", "[{\"name\":\"mlx5_0\",\"fw\":\"22.36\"}]",
			"[{\"name\":\"mlx5_7\",\"fw\":\"22.40\"}]",
			"rdma[0].fw: \"22.36\" against \"22.40\""},
		{"rdma", "[{\"ports\":[{\"rate\":\"200 Gb/sec (4X HDR)\"}]}]",
			"[{\"ports\":[{\"rate\":\"100 Gb/sec (2X HDR)\"}]}]",
			"rdma[0].ports[0].rate: \"200 Gb/sec (4X HDR)\" against \"100 Gb/sec (2X "
			"HDR)\""},
		{"rdma", "[{\"ports\":[{\"link_layer\":\"Ethernet\"}]}]",
			"[{\"ports\":[{\"link_layer\":\"InfiniBand\"}]}]",
			"rdma[0].ports[0].link_layer: \"Ethernet\" against \"InfiniBand\""},
		{"rdma", "[{\"ports\":[{}]}]", "[{\"ports\":[{},{}]}]",
			"rdma[0].ports: 1 against 2"},
		{"nics", "[{\"mtu\":9000}]", "[{\"mtu\":1500}]", "nics[0].mtu: 9000 against 1500"},
		{"nics", "[{\"speed_mbps\":100000}]", "[{\"speed_mbps\":25000}]",
			"nics[0].speed_mbps: 100000 against 25000"},
		{"gpus", "[{\"device_id\":\"0x2330\"}]", "[]", "gpus: 1 against 0"},
		{"gpus", "[{\"clocks\":1980}]", "[{\"clocks\":1410}]",
			"gpus[0].clocks: 1980 against 1410"},
		{"libraries", "{\"rdma-core\":\"44.0\",\"only\":\"1\"}", "{\"rdma-core\":\"50.0\"}",
			"libraries.rdma-core: \"44.0\" against \"50.0\""},
	};
	struct side side = {7, 5000, 10e9, 0.001};
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		char name[80];
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(facts[i].name, ":"),
			facts[i].name);
		for (int allowed = 0; allowed < 2; allowed++) {
			const char *const allow[] = {name};
			struct cmp_rules rules = usual;
			json_t *base = document(&side), *cand = document(&side);
			json_object_set_new(
				host_of(base), facts[i].at, json_loads(facts[i].was, 0, NULL));
			json_object_set_new(
				host_of(cand), facts[i].at, json_loads(facts[i].is, 0, NULL));
			rules.allow = allow;
			rules.nallow = (size_t)allowed;
			struct cmp c = load(base, cand, &rules);
			const struct cmp_metric *m = metric(&c, "bandwidth");
			if (m->verdict != (allowed ? CMP_PASS : CMP_INCOMPARABLE) ||
				(!allowed && strcmp(m->why, facts[i].name) != 0))
				fail_msg("%s: %s: %s", facts[i].name, cmp_verdict_names[m->verdict],
					m->why);
			assert_int_equal(cmp_status(&c), allowed ? FB_EXIT_OK : FB_EXIT_UNMEASURED);
			cmp_free(&c);
		}
	}
}

/* A later document of a side counts as the first does. */
static void second_block_elsewhere(void **state)
{
	struct side side = {7, 5000, 10e9, 0.001};
	struct fb_err e = {0};
	struct cmp c = {0};
	json_t *later = document(&side);
	fb_json_set_str(json_object_get(host_of(later), "cpu"), "model", "Another CPU");
	assert_int_equal(cmp_add_doc(&c, document(&side), false, &e), 0);
	assert_int_equal(cmp_add_doc(&c, document(&side), true, &e), 0);
	assert_int_equal(cmp_add_doc(&c, later, true, &e), 0);
	cmp_close_load(&c, &usual);
	assert_int_equal(cmp_judge(&c, &usual, &e), 0);
	assert_int_equal(metric(&c, "bandwidth")->verdict, CMP_INCOMPARABLE);
	assert_non_null(strstr(c.differs, "Another CPU"));
	cmp_free(&c);
}

/* Launches of one side that are unlike its first are no noise of one thing: the fact and the launch
 * are told. */
static void launches_that_differ(void **state)
{
	static const struct {
		const char *of, *key, *json, *says;
	} rows[] = {
		{"params", "size", "64", "parameter size: 1024 against 64"},
		{"params", "qps", "8", "parameter qps: absent against 8"},
		{"params", "op", NULL, "parameter op: \"write\" against absent"},
		{"params", "transport", "\"ud\"", "parameter transport: \"rc\" against \"ud\""},
		{NULL, "where", "\"hardware\"", "measured on lab against hardware"},
		{NULL, "unit", "\"bits/s\"", "unit: \"bytes/s\" against \"bits/s\""},
		{NULL, "better", "\"lower\"", "better: \"higher\" against \"lower\""},
		{NULL, "load", "\"open\"", "load: \"closed\" against \"open\""},
		{"facts", "backend_facts", "\"NCCL 2\"",
			"facts.backend_facts: \"NCCL 1\" against \"NCCL 2\""},
		{"facts", "rails", "[{\"path_mtu\":1024}]",
			"facts.rails[0].path_mtu: 4096 against 1024"},
	};
	struct side side = {8, 5000, 10e9, 0.001};
	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		bool cand = i & 1;
		char says[200];
		json_t *docs[2] = {document(&side), document(&side)}, *r, *of;
		size_t k;
		for (int d = 0; d < 2; d++)
			json_array_foreach (json_object_get(docs[d], "results"), k, r) {
				json_t *params = json_deep_copy(json_object_get(r, "params"));
				fb_json_set_str(params, "op", "write");
				fb_json_set_str(params, "transport", "rc");
				fb_json_set_int(params, "size", 1024);
				json_object_set_new(r, "params", params);
				fb_json_set_str(r, "where", "lab");
				fb_json_set_str(r, "load", "closed");
				json_object_set_new(r, "facts",
					json_pack("{s:s,s:[{s:i}]}", "backend_facts", "NCCL 1",
						"rails", "path_mtu", 4096));
			}
		/* The fifth launch's bandwidth. */
		r = json_array_get(json_object_get(docs[cand], "results"), 9);
		of = rows[i / 2].of ? json_object_get(r, rows[i / 2].of) : r;
		if (rows[i / 2].json)
			json_object_set_new(of, rows[i / 2].key,
				json_loads(rows[i / 2].json, JSON_DECODE_ANY, NULL));
		else
			json_object_del(of, rows[i / 2].key);
		snprintf(says, sizeof(says), "%s, launch %d/%s#5 is unlike the side's first: %s",
			cand ? "candidate" : "base", cand ? 2 : 1, fb_json_str(r, "job", ""),
			rows[i / 2].says);
		struct cmp c = load(docs[0], docs[1], NULL);
		const struct cmp_metric *m = metric(&c, "bandwidth");
		if (m->verdict != CMP_INCOMPARABLE || strcmp(m->why, says) != 0)
			fail_msg("%s: %s, not %s", cmp_verdict_names[m->verdict], m->why, says);
		assert_int_equal(metric(&c, "latency p50")->verdict, CMP_PASS);
		assert_int_equal(cmp_status(&c), FB_EXIT_UNMEASURED);
		cmp_free(&c);
	}
}

/* The same of documents: what both sides' may differ in, one side's may not. */
static void documents_that_differ(void **state)
{
	static const char *const allow[] = {"env.NCCL_*"};
	struct side side = {4, 5000, 10e9, 0.001};
	for (int way = 0; way < 3; way++) {
		struct cmp_rules rules = usual;
		struct cmp c = {0};
		struct fb_err e = {0};
		rules.allow = allow;
		rules.nallow = way == 2;
		for (int d = 0; d < 4; d++) {
			bool cand = d % 2;
			json_t *doc = document(&side);
			/* Way 0: the candidate's, both. Else its second alone. */
			if (cand && (way == 0 || d == 3))
				json_object_set_new(host_of(doc), "env",
					json_pack("{s:s}", "NCCL_ALGO", "Tree"));
			assert_int_equal(cmp_add_doc(&c, doc, cand, &e), 0);
		}
		cmp_close_load(&c, &rules);
		assert_int_equal(cmp_judge(&c, &rules, &e), 0);
		const struct cmp_metric *m = metric(&c, "bandwidth");
		assert_int_equal(m->verdict, way == 1 ? CMP_INCOMPARABLE : CMP_PASS);
		if (way == 1)
			assert_string_equal(m->why,
				"candidate, document 2 (launch 1) is unlike the side's first: "
				"env.NCCL_ALGO: absent against \"Tree\"");
		cmp_free(&c);
	}
}

/* Three are told, the others counted: whoever allows one knows that it is not all. */
static void many_facts_differ(void **state)
{
	struct side side = {7, 5000, 10e9, 0.001};
	json_t *cand = document(&side);
	fb_json_set_str(json_object_get(host_of(cand), "cpu"), "model", "Another");
	fb_json_set_int(json_object_get(host_of(cand), "cpu"), "cores", 77);
	fb_json_set_int(json_object_get(host_of(cand), "cpu"), "threads", 78);
	fb_json_set_int(json_object_get(host_of(cand), "cpu"), "packages", 79);
	fb_json_set_str(json_object_get(host_of(cand), "cpu"), "microcode", "0x99");
	struct cmp c = load(document(&side), cand, NULL);
	const char *why = metric(&c, "bandwidth")->why;
	assert_non_null(strstr(why, "cpu.model: "));
	assert_non_null(strstr(why, "; cpu.cores: "));
	assert_string_equal(why + strlen(why) - strlen("; and 2 more facts"), "; and 2 more facts");
	assert_string_equal(why, c.differs);
	cmp_free(&c);
}

/* A waiver takes a verdict back; where nothing else was judged, nothing was. */
static void waivers_judge_nothing(void **state)
{
	static const char text[] =
		"[gate]\nmetrics = *:bandwidth\n[waiver w]\nmetric = *:bandwidth\n"
		"verdict = INCOMPARABLE\nreason = r\nowner = o\n"
		"expires = 2999-01-31\n";
	struct side side = {7, 5000, 10e9, 0.001};
	struct gate g;
	struct fb_err e = {0};
	static const char *const all[] = {"*"};
	assert_int_equal(gate_parse(text, strlen(text), "g", &g, &e), 0);
	struct cmp_rules rules = usual;
	rules.gate = &g;
	rules.gates = all;
	rules.ngates = 1;
	for (int both = 0; both < 2; both++) {
		json_t *cand = document(&side), *r;
		size_t i;
		json_array_foreach (json_object_get(cand, "results"), i, r)
			if (both || !json_object_get(r, "hist"))
				fb_json_set_str(r, "where", "lab");
		static const char *const bandwidth[] = {"*:bandwidth"};
		rules.gates = both ? bandwidth : all;
		struct cmp c = load(document(&side), cand, &rules);
		assert_int_equal(metric(&c, "bandwidth")->verdict, CMP_INCOMPARABLE);
		assert_non_null(metric(&c, "bandwidth")->waiver);
		assert_int_equal(cmp_status(&c), both ? FB_EXIT_UNMEASURED : FB_EXIT_OK);
		cmp_free(&c);
	}
	gate_free(&g);
}

/* 1,000 samples give a p99, 999 none: the result is there, and nothing is missing. */
static void percentile_without_samples(void **state)
{
	struct side side = {8, 5000, 10e9, 0};
	json_t *docs[2] = {document(&side), document(&side)}, *r;
	size_t i;
	for (int d = 0; d < 2; d++)
		json_array_foreach (json_object_get(docs[d], "results"), i, r) {
			struct fb_hist *h = malloc(sizeof(*h));
			assert_non_null(h);
			fb_hist_init(h);
			for (int k = 0; k < (d ? 999 : 1000); k++)
				fb_hist_add(h, 5000);
			if (json_object_get(r, "hist")) {
				json_object_set_new(r, "hist", fb_hist_to_json(h));
				fb_json_set_int(r, "n", d ? 999 : 1000);
			}
			free(h);
		}
	struct cmp c = load(docs[0], docs[1], NULL);
	assert_int_equal(metric(&c, "latency p50")->verdict, CMP_PASS);
	assert_int_equal(metric(&c, "latency p99")->verdict, CMP_INCONCLUSIVE);
	assert_string_equal(metric(&c, "latency p99")->why,
		"needs at least 7 launches a side, has 8 and 0 with the 1000 samples of this "
		"percentile");
	assert_int_equal(cmp_status(&c), FB_EXIT_OK);
	cmp_free(&c);
}

/* Processor time to load and close n metrics that the candidate lists from the last to the first.
 */
static double seconds_to_load(size_t n)
{
	struct side one = {1, 5000, 10e9, 0};
	struct fb_err e = {0};
	struct cmp c = {0};
	json_t *docs[2] = {document(&one), document(&one)};
	for (int d = 0; d < 2; d++) {
		json_t *results = json_array(),
		       *like = json_array_get(json_object_get(docs[d], "results"), 1);
		for (size_t i = 0; i < n; i++) {
			char name[40];
			json_t *r = json_copy(like);
			snprintf(name, sizeof(name), "null/%zu", d ? n - 1 - i : i);
			fb_json_set_str(r, "case", name);
			json_array_append_new(results, r);
		}
		json_object_set_new(docs[d], "results", results);
	}
	clock_t began = clock();
	assert_int_equal(cmp_add_doc(&c, docs[0], false, &e), 0);
	assert_int_equal(cmp_add_doc(&c, docs[1], true, &e), 0);
	cmp_close_load(&c, &usual);
	double seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
	assert_int_equal(c.n, n);
	for (size_t i = 0; i < n; i++)
		assert_true(c.v[i].base.n == 1 && c.v[i].cand.n == 1);
	cmp_free(&c);
	return seconds;
}

/* 16 times as many take 16 times as long, not 256 times. */
static void many_metrics(void **state)
{
	double few = seconds_to_load(2000), many = seconds_to_load(32000);
	if (many > 80 * few)
		fail_msg("2,000 metrics take %.4f s, 32,000 take %.4f s", few, many);
}

/* After a second block the places of what was dropped are not taken for another's. */
static void second_block_with_added(void **state)
{
	struct side side = {4, 5000, 10e9, 0.001};
	struct fb_err e = {0};
	struct cmp c = {0};
	for (int block = 0; block < 2; block++) {
		json_t *cand = document(&side), *results = json_object_get(cand, "results");
		json_array_insert_new(
			results, 0, result(json_array_get(results, 1), 1, "new", "x", 1));
		assert_int_equal(cmp_add_doc(&c, document(&side), false, &e), 0);
		assert_int_equal(cmp_add_doc(&c, cand, true, &e), 0);
		cmp_close_load(&c, &usual);
		assert_int_equal(c.added, 1);
		assert_int_equal(metric(&c, "bandwidth")->cand.n, 4 * (block + 1));
		assert_int_equal(metric(&c, "latency p50")->base.n, 4 * (block + 1));
	}
	cmp_free(&c);
}

static int compare(const char *a, const char *b, const char *c)
{
	const char *argv[] = {"compare", a, b, c, NULL};
	int argc = 1;
	while (argv[argc])
		argc++;
	return compare_cmd.run(argc, (char **)argv);
}

static void the_command(void **state)
{
	assert_int_equal(compare("--help", NULL, NULL), FB_EXIT_OK);
	assert_int_equal(compare(SMALL, NULL, NULL), FB_EXIT_USAGE);
	assert_int_equal(compare(SMALL, "/nonexistent.json", NULL), FB_EXIT_USAGE);
	assert_int_equal(compare(SMALL, SMALL, "--gaet=x"), FB_EXIT_USAGE);
	/* What only two sides heed is not lost without a word. */
	assert_int_equal(compare(SMALL, "--expected=oci-h100", NULL), FB_EXIT_UNMEASURED);
	assert_int_equal(compare(SMALL, "--expected=oci-h100", "--junit=/dev/null"), FB_EXIT_USAGE);
	assert_int_equal(compare(SMALL, "--expected=oci-h100", "--strict"), FB_EXIT_USAGE);
	assert_int_equal(compare(SMALL, "--expected-file=/dev/null", NULL), FB_EXIT_USAGE);
	assert_int_equal(compare("--fleet=/tmp", "--gate=*:x", NULL), FB_EXIT_USAGE);
	/* Two launches: a gate that could not fail. */
	assert_int_equal(compare(SMALL, SMALL, NULL), FB_EXIT_UNMEASURED);
	assert_int_equal(compare(SMALL, SMALL, "--json"), FB_EXIT_UNMEASURED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verdicts),
		cmocka_unit_test(noise_is_inconclusive),
		cmocka_unit_test(few_launches_never_pass),
		cmocka_unit_test(absolute_floor),
		cmocka_unit_test(floor_of_the_user),
		cmocka_unit_test(holm_over_the_gated),
		cmocka_unit_test(patterns_choose),
		cmocka_unit_test(what_cannot_be_compared),
		cmocka_unit_test(another_system),
		cmocka_unit_test(facts_that_differ),
		cmocka_unit_test(second_block_elsewhere),
		cmocka_unit_test(launches_that_differ),
		cmocka_unit_test(documents_that_differ),
		cmocka_unit_test(many_facts_differ),
		cmocka_unit_test(waivers_judge_nothing),
		cmocka_unit_test(percentile_without_samples),
		cmocka_unit_test(many_metrics),
		cmocka_unit_test(second_block_with_added),
		cmocka_unit_test(the_command),
	};
	fb_clock_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
