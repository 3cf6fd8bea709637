// SPDX-License-Identifier: Apache-2.0
/* Runs laid over each other: what differs, what is alike, the page and the texts, hostile names. */
#include "bench/core/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/result.h"
#include "reports/overlay.h"
#include "reports/report.h"
#include "reports/test_files.h"
#include "reports/test_page.h"

static const char small_path[] = FB_TESTDATA("reports", "small.json");

#define HOSTILE "`touch owned`|'; \"<script>alert(1)</script>\n# x&"

/* A folder of runs, each a folder with run.json. */
struct runs {
	char dir[40], path[4][128];
	size_t n;
};

static json_t *of_command(void)
{
	json_t *doc = sample(small_path);
	/* As of one command: a plan's options stand beside its document. */
	json_object_del(doc, "plan");
	json_object_set_new(
		doc, "config", json_pack("{s:{},s:{s:i}}", "requested", "effective", "ranks", 2));
	return doc;
}

static json_t *host_of(json_t *doc)
{
	return json_array_get(json_object_get(json_object_get(doc, "system"), "hosts"), 0);
}

static void start(struct runs *r)
{
	memset(r, 0, sizeof(*r));
	snprintf(r->dir, sizeof(r->dir), "/tmp/fabricbench-overlay-XXXXXX");
	assert_non_null(mkdtemp(r->dir));
}

/* Steals doc. */
static void add(struct runs *r, const char *name, json_t *doc)
{
	char file[160];
	struct fb_err e = {0};
	char *text = json_dumps(doc, JSON_INDENT(1));
	char *to = r->path[r->n++];
	memcpy(to, r->dir, strlen(r->dir) + 1);
	strncat(to, "/", 2);
	strncat(to, name, 60);
	assert_int_equal(mkdir(to, 0755), 0);
	snprintf(file, sizeof(file), "%s/run.json", to);
	if (fb_write_file_atomic(file, text, strlen(text), &e) != 0)
		fail_msg("%s", e.msg);
	free(text);
	json_decref(doc);
}

/* Exactly what a test wrote is taken away; a folder with more in it stays, and fails. */
static void stop(struct runs *r)
{
	for (size_t i = 0; i < r->n; i++) {
		char file[160];
		snprintf(file, sizeof(file), "%s/run.json", r->path[i]);
		assert_int_equal(unlink(file), 0);
		assert_int_equal(rmdir(r->path[i]), 0);
	}
	assert_int_equal(rmdir(r->dir), 0);
}

static void load(const struct runs *r, struct overlay *o)
{
	const char *path[4];
	struct fb_err e = {0};
	for (size_t i = 0; i < r->n; i++)
		path[i] = r->path[i];
	if (overlay_load(o, path, NULL, r->n, &e) != 0)
		fail_msg("%s", e.msg);
}

static const struct overlay_fact *fact(const struct overlay *o, const char *name)
{
	for (size_t i = 0; i < o->n_facts; i++)
		if (strcmp(o->fact[i].name, name) == 0)
			return &o->fact[i];
	return NULL;
}

static void cell_is(const struct overlay *o, const char *name, size_t run, const char *want)
{
	struct fb_strbuf b = {0};
	const struct overlay_fact *f = fact(o, name);
	if (!f)
		fail_msg("%s is not among the facts that differ", name);
	overlay_cell(f, run, &b);
	assert_string_equal(b.s, want);
	fb_strbuf_free(&b);
}

static const struct overlay_row *row(const struct overlay *o, const char *name, const char *metric)
{
	for (size_t i = 0; i < o->n_rows; i++)
		if (strcmp(o->row[i].m->name, name) == 0 &&
			strcmp(o->row[i].m->metric, metric) == 0)
			return &o->row[i];
	fail_msg("no row %s %s", name, metric);
	return NULL;
}

static char *page_of(const struct overlay *o)
{
	struct fb_strbuf b = {0};
	struct rep_figures figures;
	struct fb_err e = {0};
	if (rep_figures_overlay(o->joined, o->n, &figures, &e) != 0)
		fail_msg("%s", e.msg);
	struct rep_page page = {.doc = o->joined,
		.figures = &figures,
		.data_name = "run.json",
		.plots_name = "overlay.plots",
		.no_plots = "gnuplot is not installed"};
	overlay_html(&b, o, &page);
	rep_figures_free(&figures);
	char *s = fb_strbuf_take(&b);
	assert_non_null(s);
	return s;
}

static char *markdown_of(const struct overlay *o)
{
	char *text = NULL;
	size_t len;
	struct fb_err e = {0};
	FILE *f = open_memstream(&text, &len);
	assert_int_equal(overlay_markdown(o, f, &e), 0);
	fclose(f);
	return text;
}

/* ---- likeness -------------------------------------------------------------------------------- */

static void one_run_twice(void **state)
{
	struct runs r;
	struct overlay o;
	struct fb_err e = {0};
	start(&r);
	add(&r, "before", of_command());
	const char *path[] = {r.path[0], r.path[0], r.path[0]};
	assert_int_equal(overlay_load(&o, path, NULL, 3, &e), 0);
	assert_string_equal(o.run[0].label, "before");
	assert_string_equal(o.run[1].label, "before (2)");
	assert_string_equal(o.run[2].label, "before (3)");
	assert_int_equal(o.n_facts, 0);
	assert_int_equal(overlay_likeness(&o), OVERLAY_ALIKE);
	assert_string_equal(overlay_words(&o), "like for like");
	assert_int_equal(o.shared, o.n_rows);
	assert_true(o.n_rows > 20);
	for (size_t i = 0; i < o.n_rows; i++)
		assert_true(fabs(o.row[i].ratio[2].est - 1) < 0.05);
	char *page = page_of(&o);
	well_formed(page);
	assert_non_null(strstr(page, "badge good\">like for like<"));
	assert_null(strstr(page, "not like for like"));
	assert_null(strstr(page, "Not in every run"));
	free(page);
	overlay_free(&o);
	stop(&r);
}

/* Another program that handled the document wrote 1 where 1.0 stood, or the other way round. */
static void to_reals(json_t *v)
{
	const char *key;
	json_t *x;
	size_t i;
	json_object_foreach (v, key, x)
		if (json_is_integer(x))
			json_object_set_new(v, key, json_real((double)json_integer_value(x)));
		else
			to_reals(x);
	json_array_foreach (v, i, x)
		to_reals(x);
}

static void numbers_however_written(void **state)
{
	struct runs r;
	struct overlay o;
	json_t *other = of_command(), *x;
	size_t i;
	json_array_foreach (json_object_get(other, "results"), i, x)
		to_reals(json_object_get(x, "facts"));
	to_reals(json_object_get(other, "config"));
	to_reals(json_object_get(json_object_get(other, "system"), "hosts"));
	start(&r);
	add(&r, "a", of_command());
	add(&r, "b", other);
	load(&r, &o);
	assert_int_equal(o.n_facts, 0);
	overlay_free(&o);
	stop(&r);
}

/* What an InfiniBand and a RoCE fabric differ in, and the places that it stands in. */
static void every_kind_of_fact(void **state)
{
	struct runs r;
	struct overlay o;
	json_t *a = of_command(), *b = of_command(), *x;
	size_t i;
	json_object_set_new(host_of(a), "rdma",
		json_pack("[{s:s,s:s,s:[{s:s,s:s}]}]", "name", "mlx5_0", "fw", "28.1", "ports",
			"link_layer", "InfiniBand", "rate", "400 Gb/sec"));
	json_object_set_new(host_of(b), "rdma",
		json_pack("[{s:s,s:s,s:[{s:s,s:s}]}]", "name", "mlx5_7", "fw", "28.2", "ports",
			"link_layer", "Ethernet", "rate", "400 Gb/sec"));
	json_object_set_new(json_object_get(host_of(b), "libraries"), "libc", json_string("2.40"));
	json_object_set_new(json_object_get(host_of(a), "libraries"), "nccl", json_string("2.24"));
	json_object_set_new(host_of(b), "env", json_pack("{s:s}", "NCCL_IB_HCA", "mlx5"));
	json_object_set_new(host_of(b), "name", json_string("elsewhere"));
	json_object_set_new(json_object_get(b, "tool"), "version", json_string("0.2.0"));
	json_object_set_new(a, "config",
		json_pack("{s:{},s:{s:i,s:s,s:s}}", "requested", "effective", "iters", 100,
			"output", "a.json", "server", "n1"));
	json_object_set_new(b, "config",
		json_pack("{s:{},s:{s:i,s:s,s:s}}", "requested", "effective", "iters", 200,
			"output", "b.json", "server", "n2"));
	json_array_foreach (json_object_get(b, "results"), i, x) {
		json_t *params = json_object_get(x, "params");
		if (json_object_get(params, "mtu"))
			json_object_set_new(params, "mtu", json_integer(4096));
		if (strcmp(fb_json_str(x, "where", ""), "lab") == 0)
			json_object_set_new(x, "where", json_string("imported"));
		if (json_object_get(params, "backend"))
			json_object_set_new(
				x, "facts", json_pack("{s:s}", "backend_facts", "NCCL 2.25"));
	}
	json_array_foreach (json_object_get(a, "results"), i, x)
		if (json_object_get(json_object_get(x, "params"), "backend"))
			json_object_set_new(
				x, "facts", json_pack("{s:s}", "backend_facts", "NCCL 2.24"));
	start(&r);
	add(&r, "ib", a);
	add(&r, "roce", b);
	load(&r, &o);
	assert_int_equal(overlay_likeness(&o), OVERLAY_DIFFERS);
	cell_is(&o, "rdma[0].ports[0].link_layer", 0, "InfiniBand");
	cell_is(&o, "rdma[0].ports[0].link_layer", 1, "Ethernet");
	cell_is(&o, "rdma[0].fw", 1, "28.2");
	cell_is(&o, "libraries.libc", 1, "2.40");
	cell_is(&o, "env.NCCL_IB_HCA", 0, "absent");
	cell_is(&o, "tool.version", 1, "0.2.0");
	cell_is(&o, "config.iters", 1, "200");
	cell_is(&o, "params.mtu", 0, "1024");
	cell_is(&o, "params.mtu", 1, "4096");
	cell_is(&o, "where", 0, "lab");
	cell_is(&o, "where", 1, "imported");
	cell_is(&o, "facts.backend_facts", 1, "NCCL 2.25");
	/* Names, addresses and where output went are none; nor what one alone has loaded. */
	static const char *const none[] = {"config.output", "config.server", "libraries.nccl",
		"rdma[0].ports[0].rate", "rdma[0].name", "name", "rdma", "hosts"};
	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		if (fact(&o, none[i]))
			fail_msg("%s is told as a difference", none[i]);
	assert_int_equal(o.n_facts, 9);
	/* Those that compare refuses over stand first, and are the ones that it names. */
	assert_int_equal(o.judged, 5);
	for (i = 0; i < o.n_facts; i++)
		assert_int_equal(o.fact[i].judged, i < o.judged);
	char *page = page_of(&o), *md = markdown_of(&o);
	well_formed(page);
	assert_non_null(strstr(page, "badge bad\">not like for like<"));
	assert_non_null(strstr(page, "9 facts differ"));
	assert_non_null(strstr(page, "\">IMPORTED</span>"));
	assert_non_null(strstr(page, "\">LAB</span>"));
	assert_non_null(strstr(page, "lab / imported"));
	assert_non_null(strstr(md, ": **not like for like**"));
	assert_non_null(strstr(md,
		"| rdma\\[0\\].ports\\[0\\].link\\_layer | host 0 | InfiniBand | Ethernet | refuses |"));
	free(page);
	free(md);
	overlay_free(&o);
	stop(&r);
}

/* One list: what compare names is what stands here as refused. */
static void compare_asks_the_same(void **state)
{
	struct runs r;
	struct overlay o;
	struct cmp c = {0};
	struct fb_err e = {0};
	static const struct cmp_rules rules = {.floor_pct = -1, .level = 0.95, .max_gated = 1};
	json_t *b = of_command();
	json_object_set_new(json_object_get(host_of(b), "kernel"), "release", json_string("6.12"));
	start(&r);
	add(&r, "a", of_command());
	add(&r, "b", b);
	load(&r, &o);
	assert_int_equal(o.n_facts, 1);
	assert_string_equal(o.fact[0].name, "kernel.release");
	assert_true(o.fact[0].judged);
	assert_int_equal(cmp_add(&c, r.path[0], false, &e), 0);
	assert_int_equal(cmp_add(&c, r.path[1], true, &e), 0);
	cmp_close_load(&c, &rules);
	assert_string_equal(c.differs, "kernel.release: \"6.1.0-20-amd64\" against \"6.12\"");
	cmp_free(&c);
	overlay_free(&o);
	stop(&r);
}

/* Nothing differs, because nothing is told: that is no likeness. */
static void what_is_not_told(void **state)
{
	struct runs r;
	struct overlay o;
	start(&r);
	for (int i = 0; i < 2; i++) {
		json_t *doc = of_command();
		json_object_set_new(json_object_get(doc, "system"), "hosts", json_array());
		add(&r, i ? "b" : "a", doc);
	}
	load(&r, &o);
	assert_int_equal(o.n_facts, 0);
	assert_int_equal(overlay_likeness(&o), OVERLAY_UNKNOWN);
	char *page = page_of(&o);
	assert_non_null(strstr(page, "badge open\">like for like as far as known<"));
	assert_non_null(strstr(page, "a does not tell what machine it is from."));
	free(page);
	overlay_free(&o);
	stop(&r);
}

/* A plan's document alone does not tell the options of its jobs. */
static void a_plan_without_its_options(void **state)
{
	struct runs r;
	struct overlay o;
	start(&r);
	for (int i = 0; i < 2; i++) {
		json_t *doc = of_command();
		json_object_set_new(doc, "plan",
			json_pack("{s:s,s:i,s:[]}", "title", "A plan", "jobs", 0, "parts"));
		add(&r, i ? "b" : "a", doc);
	}
	load(&r, &o);
	assert_int_equal(o.n_facts, 0);
	assert_int_equal(overlay_likeness(&o), OVERLAY_UNKNOWN);
	char *md = markdown_of(&o);
	assert_non_null(strstr(md, "b does not tell its options."));
	free(md);
	overlay_free(&o);
	stop(&r);
}

/* Two hundred hosts with another kernel are one row. */
static void one_row_for_all_hosts(void **state)
{
	struct runs r;
	struct overlay o;
	char text[60];
	start(&r);
	for (int i = 0; i < 2; i++) {
		json_t *doc = of_command(), *host = host_of(doc);
		json_t *hosts = json_object_get(json_object_get(doc, "system"), "hosts");
		for (int k = 0; k < 199; k++) {
			json_t *copy = json_deep_copy(host);
			if (i && k != 7)
				json_object_set_new(json_object_get(copy, "kernel"), "release",
					json_string("6.12"));
			json_array_append_new(hosts, copy);
		}
		add(&r, i ? "b" : "a", doc);
	}
	load(&r, &o);
	assert_int_equal(o.n_facts, 1);
	assert_int_equal(o.fact[0].hosts, 198);
	assert_string_equal(overlay_hosts(&o.fact[0], text, sizeof(text)), "198 hosts, first 1");
	overlay_free(&o);
	stop(&r);
}

static void plan_options(void **state)
{
	struct runs r;
	struct overlay o;
	struct fb_err e = {0};
	char ini[2][160];
	start(&r);
	for (int i = 0; i < 2; i++) {
		char text[120];
		add(&r, i ? "b" : "a", of_command());
		snprintf(ini[i], sizeof(ini[i]), "%s/plan.ini", r.path[i]);
		int n = snprintf(text, sizeof(text),
			"[rdma]\ncommand = verbs latency\nserver = n%d\nqps = %d\ndeadline = %dm\n",
			i, i + 1, i + 1);
		assert_int_equal(fb_write_file_atomic(ini[i], text, (size_t)n, &e), 0);
	}
	load(&r, &o);
	assert_int_equal(o.n_facts, 1);
	cell_is(&o, "plan.rdma.qps", 0, "1");
	cell_is(&o, "plan.rdma.qps", 1, "2");
	overlay_free(&o);
	unlink(ini[0]);
	unlink(ini[1]);
	stop(&r);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* `launches` of every result, `factor` times as fast, a per mille apart. */
static json_t *launched(int launches, double factor)
{
	json_t *doc = of_command(), *results = json_object_get(doc, "results"), *all = json_array(),
	       *x;
	size_t i;
	json_array_foreach (results, i, x) {
		double v = fb_json_num(x, "value", NAN);
		if (fb_json_int(x, "launch", 0) != 1)
			continue;
		for (int k = 1; k <= launches; k++) {
			json_t *copy = json_deep_copy(x);
			fb_json_set_int(copy, "launch", k);
			if (!json_object_get(x, "hist"))
				json_object_set_new(
					copy, "value", json_real(v * factor * (1 + 0.001 * k)));
			json_array_append_new(all, copy);
		}
	}
	json_object_set_new(doc, "results", all);
	return doc;
}

static void ratios_and_their_intervals(void **state)
{
	static const char name[] = "verbs.bandwidth/write/rc/one/65536";
	struct runs r;
	struct overlay o;
	char text[80];
	start(&r);
	add(&r, "a", launched(5, 1));
	add(&r, "b", launched(5, 1.25));
	add(&r, "c", launched(1, 0.5));
	load(&r, &o);
	const struct overlay_row *x = row(&o, name, "bandwidth");
	assert_int_equal(x->runs, 3);
	assert_int_equal(x->side[1]->n, 5);
	assert_true(fabs(overlay_median(x->side[0]) - 46754006702 * 1.003) < 1);
	assert_true(isnan(x->ratio[0].est));
	assert_true(x->ratio[1].valid && fabs(x->ratio[1].est - 1.25) < 1e-9);
	assert_true(x->ratio[1].lo < 1.25 && x->ratio[1].lo > 1.24);
	/* One launch has a ratio and no interval. */
	assert_false(x->ratio[2].valid);
	assert_true(fabs(x->ratio[2].est - 0.5 * 1.001 / 1.003) < 1e-9);
	assert_string_equal(overlay_ratio(&x->ratio[2], text, sizeof(text)), "0.4990");
	assert_non_null(strstr(overlay_ratio(&x->ratio[1], text, sizeof(text)), "1.250 [1.24"));
	overlay_free(&o);
	stop(&r);
}

static void disjoint_runs(void **state)
{
	struct runs r;
	struct overlay o;
	struct overlay_only *only;
	json_t *doc[2] = {of_command(), of_command()}, *x;
	size_t i;
	for (int k = 0; k < 2; k++) {
		json_t *kept = json_array();
		json_array_foreach (json_object_get(doc[k], "results"), i, x)
			if ((strncmp(fb_json_str(x, "case", ""), "coll", 4) == 0) == k)
				json_array_append(kept, x);
		json_object_set_new(doc[k], "results", kept);
	}
	start(&r);
	add(&r, "rdma", doc[0]);
	add(&r, "coll", doc[1]);
	load(&r, &o);
	assert_int_equal(o.shared, 0);
	size_t n = overlay_only(&o, &only);
	assert_int_equal(n, 5);
	assert_string_equal(only[0].what, "verbs.latency/send/rc/poll latency");
	assert_true(only[0].has[0] && !only[0].has[1]);
	assert_string_equal(only[4].what, "coll.all_reduce/local busbw");
	assert_int_equal(only[4].n, 3);
	free(only);
	char *page = page_of(&o), *md = markdown_of(&o);
	well_formed(page);
	assert_non_null(strstr(page, "No two of the runs measured the same thing."));
	assert_non_null(strstr(page, "Not in every run"));
	assert_null(strstr(page, "side by side</h3>"));
	assert_non_null(strstr(md, "| coll.all\\_reduce/local busbw | 3 | coll | rdma |"));
	free(page);
	free(md);
	overlay_free(&o);
	stop(&r);
}

/* ---- charts ---------------------------------------------------------------------------------- */

static void a_curve_per_run(void **state)
{
	static const char *const ids[] = {"verbs-latency-latency-send",
		"verbs-latency-latency-read", "verbs-latency-latency-send-tail",
		"verbs-latency-latency-read-tail", "verbs-bandwidth-bandwidth-write",
		"coll-busbw-all-reduce"};
	struct runs r;
	struct overlay o;
	struct rep_figures f;
	struct fb_err e = {0};
	start(&r);
	add(&r, "a", of_command());
	add(&r, "b", of_command());
	add(&r, "c", of_command());
	load(&r, &o);
	assert_int_equal(rep_figures_overlay(o.joined, o.n, &f, &e), 0);
	assert_int_equal(f.n, 6);
	for (size_t i = 0; i < 6; i++) {
		size_t k = 0;
		while (k < f.n && strcmp(f.v[k].id, ids[i]) != 0)
			k++;
		if (k == f.n)
			fail_msg("no figure %s", ids[i]);
		/* The collective was measured over two backends. */
		assert_int_equal(f.v[k].n, i == 5 ? 6 : 3);
		struct fb_strbuf b = {0};
		rep_gp_text(&b, &f.v[k]);
		/* Each run by a dash of its own, and by a point where the curve has points. */
		assert_non_null(strstr(b.s, " dt 1 title "));
		assert_non_null(strstr(b.s, " dt (12,5) title "));
		assert_non_null(strstr(b.s, " dt (3,4) title "));
		if (f.v[k].kind != REP_TAIL)
			assert_true(strstr(b.s, " pt 7 ") && strstr(b.s, " pt 5 ") &&
				    strstr(b.s, " pt 9 "));
		fb_strbuf_free(&b);
		assert_string_equal(f.v[k].series[i == 5 ? 2 : 1].label, i == 5 ? "b, mpi" : "b");
		assert_int_equal(f.v[k].series[i == 5 ? 2 : 1].run, 1);
	}
	rep_figures_free(&f);
	overlay_free(&o);
	stop(&r);
}

/* A curve from another kind of place than its neighbour says so. */
static void places_in_the_key(void **state)
{
	struct runs r;
	struct overlay o;
	struct rep_figures f;
	struct fb_err e = {0};
	json_t *b = of_command(), *x;
	size_t i;
	json_array_foreach (json_object_get(b, "results"), i, x)
		json_object_set_new(x, "where", json_string("hardware"));
	start(&r);
	add(&r, "a", of_command());
	add(&r, "b", b);
	load(&r, &o);
	assert_int_equal(rep_figures_overlay(o.joined, o.n, &f, &e), 0);
	for (i = 0; i < f.n; i++) {
		bool alike = strcmp(f.v[i].bench, "verbs.bandwidth") == 0;
		assert_true(alike == !strstr(f.v[i].series[0].label, " ["));
		if (strcmp(f.v[i].bench, "verbs.latency") == 0) {
			assert_string_equal(f.v[i].series[0].label, "a [lab]");
			assert_string_equal(f.v[i].series[1].label, "b [hardware]");
		}
	}
	rep_figures_free(&f);
	overlay_free(&o);
	stop(&r);
}

/* ---- hostile names --------------------------------------------------------------------------- */

static void hostile_names_stay_text(void **state)
{
	struct runs r;
	struct overlay o;
	struct fb_err e = {0};
	json_t *b = of_command(), *x;
	size_t i;
	json_object_set_new(host_of(b), "name", json_string(HOSTILE));
	json_object_set_new(json_object_get(host_of(b), "cpu"), "model", json_string(HOSTILE));
	json_object_set_new(
		b, "plan", json_pack("{s:s,s:i,s:[]}", "title", HOSTILE, "jobs", 0, "parts"));
	json_array_foreach (json_object_get(b, "results"), i, x) {
		json_object_set_new(json_object_get(x, "params"), HOSTILE, json_string(HOSTILE));
		json_object_set_new(json_object_get(x, "params"), REP_RUN, json_string(HOSTILE));
		json_object_set_new(x, REP_RUN, json_integer(-7));
	}
	start(&r);
	add(&r, "a", b);
	add(&r, "b", of_command());
	const char *path[] = {r.path[0], r.path[1]};
	const char *label[] = {
		HOSTILE, "a name of more than forty-seven bytes, cut before \xc3\xa9\xff"};
	assert_int_equal(overlay_load(&o, path, label, 2, &e), 0);
	char *page = page_of(&o), *md = markdown_of(&o);
	well_formed(page);
	assert_null(strstr(md, "<script"));
	assert_null(strstr(md, "\n# x"));
	assert_non_null(strstr(page, "&lt;script&gt;"));
	free(page);
	free(md);
	overlay_free(&o);
	stop(&r);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int report(const char *const *words)
{
	const char *argv[16] = {"report"};
	int argc = 1;
	while (*words)
		argv[argc++] = *words++;
	return report_cmd.run(argc, (char **)argv);
}
#define REPORT(...) report((const char *const[]){__VA_ARGS__, NULL})

static void words_of_the_command(void **state)
{
	struct runs r;
	const char *p[4];
	start(&r);
	add(&r, "a", of_command());
	add(&r, "b,with,commas", of_command());
	p[0] = r.path[0];
	p[1] = r.path[1];
	assert_int_equal(REPORT(p[0], "/nonexistent"), FB_EXIT_USAGE);
	assert_int_equal(REPORT(p[0], r.dir), FB_EXIT_USAGE); /* a folder without run.json */
	assert_int_equal(REPORT(p[0], p[1], "--with", small_path), FB_EXIT_USAGE);
	assert_int_equal(REPORT(p[0], p[1], "--junit", "x.xml"), FB_EXIT_USAGE);
	assert_int_equal(REPORT(p[0], p[1], "--prometheus", "x.prom"), FB_EXIT_USAGE);
	assert_int_equal(REPORT(p[0], p[1], "--label", "one"), FB_EXIT_USAGE);
	assert_int_equal(REPORT(p[0], "--label", "one"), FB_EXIT_USAGE);
	assert_int_equal(REPORT(p[0], p[1], "--format", "md", "--plots-only"), FB_EXIT_USAGE);
	assert_int_equal(
		REPORT(p[0], p[0], p[0], p[0], p[0], p[0], p[0], p[0], p[0]), FB_EXIT_USAGE);
	assert_int_equal(REPORT("--history", r.dir, p[0], p[1]), FB_EXIT_USAGE);
	/* A page has a folder beside it: none is made beside the standard output. */
	assert_int_equal(REPORT(p[0], p[1], "-o", "-"), FB_EXIT_USAGE);
	assert_int_equal(REPORT(p[0], "-o", "-"), FB_EXIT_USAGE);
	assert_int_equal(access("-.plots", F_OK), -1);
	/* Options that would be lost without a word. */
	assert_int_equal(REPORT(p[0], p[1], "--json"), FB_EXIT_USAGE);
	assert_int_equal(REPORT(p[0], "--json"), FB_EXIT_USAGE);
	assert_int_equal(REPORT("--history", r.dir, "--label", "a"), FB_EXIT_USAGE);
	assert_int_equal(REPORT("--history", r.dir, "--with", small_path), FB_EXIT_USAGE);
	stop(&r);
}

static void files_of_the_command(void **state)
{
	static const char *const csv[] = {"runs.csv", "facts.csv", "values.csv", "only.csv"};
	static const char *const begins[] = {"run,what,measured_on,", "fact,host,hosts,compare,",
		"case,metric,unit,better,run,", "what,metrics,run,has_it"};
	struct runs r;
	char path[200], plots[160];
	const char *had = getenv("PATH");
	char *keep = had ? strdup(had) : NULL;
	start(&r);
	add(&r, "a", of_command());
	add(&r, "b,with,commas", of_command());
	setenv("PATH", "/nonexistent", 1); /* no gnuplot: data without pictures */
	int status = REPORT(r.path[0], r.path[1], "--label", "old,new");
	if (keep)
		setenv("PATH", keep, 1);
	free(keep);
	assert_int_equal(status, FB_EXIT_OK);
	snprintf(path, sizeof(path), "%s/overlay.html", r.path[0]);
	char *text = slurp(path);
	assert_non_null(strstr(text, "<h1>old against new</h1>"));
	assert_non_null(strstr(text, "gnuplot is not installed"));
	free(text);
	assert_int_equal(unlink(path), 0);
	snprintf(plots, sizeof(plots), "%s/overlay.plots", r.path[0]);
	for (size_t i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s/%s", plots, csv[i]);
		text = slurp(path);
		assert_int_equal(strncmp(text, begins[i], strlen(begins[i])), 0);
		if (i == 2)
			assert_non_null(strstr(text, ",\"new\",\"hardware\",46847142173.5,"));
		free(text);
		assert_int_equal(unlink(path), 0);
	}
	static const char *const ids[] = {"verbs-latency-latency-send",
		"verbs-latency-latency-read", "verbs-latency-latency-send-tail",
		"verbs-latency-latency-read-tail", "verbs-bandwidth-bandwidth-write",
		"coll-busbw-all-reduce"};
	for (size_t i = 0; i < 6; i++) {
		static const char *const ext[] = {"dat", "csv", "gp"};
		for (int k = 0; k < 3; k++) {
			snprintf(path, sizeof(path), "%s/%s.%s", plots, ids[i], ext[k]);
			assert_int_equal(unlink(path), 0);
		}
	}
	assert_int_equal(rmdir(plots), 0);
	snprintf(path, sizeof(path), "%s/page.md", r.dir);
	assert_int_equal(REPORT(r.path[0], r.path[1], "--format", "md", "-o", path), FB_EXIT_OK);
	text = slurp(path);
	assert_non_null(strstr(text, "## a against b,with,commas: **like for like**"));
	free(text);
	assert_int_equal(unlink(path), 0);
	stop(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_run_twice),
		cmocka_unit_test(numbers_however_written),
		cmocka_unit_test(every_kind_of_fact),
		cmocka_unit_test(compare_asks_the_same),
		cmocka_unit_test(what_is_not_told),
		cmocka_unit_test(a_plan_without_its_options),
		cmocka_unit_test(one_row_for_all_hosts),
		cmocka_unit_test(plan_options),
		cmocka_unit_test(ratios_and_their_intervals),
		cmocka_unit_test(disjoint_runs),
		cmocka_unit_test(a_curve_per_run),
		cmocka_unit_test(places_in_the_key),
		cmocka_unit_test(hostile_names_stay_text),
		cmocka_unit_test(words_of_the_command),
		cmocka_unit_test(files_of_the_command),
	};
	fb_clock_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
