// SPDX-License-Identifier: Apache-2.0
/*
 * Tests of what `verbs load` and `verbs incast` stand on: the open-loop schedule's arithmetic,
 * Jain's index, the parameters' wire form, and the flow and the probe on a device made of
 * functions.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "verbs/flow.h"
#include "verbs/incast_run.h"
#include "verbs/load.h"
#include "verbs/null_device.h"
#include "verbs/probe.h"
#include "verbs/schedule.h"

/* ---- the schedule ---------------------------------------------------------------------------- */

static void test_schedule_keeps_its_times(void **state)
{
	struct verbs_schedule s;

	(void)state;
	verbs_schedule_init(&s, 1000, 250);
	assert_int_equal(verbs_schedule_due(&s), 1000);
	for (int i = 0; i < 4; i++)
		verbs_schedule_pass(&s);
	assert_int_equal(verbs_schedule_due(&s), 2000);
	assert_int_equal(verbs_schedule_late(&s, 1999), 0);
	/* A stall of 10 gaps: every event of it is late by what is left of the stall. */
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(verbs_schedule_late(&s, 4500), 2500 - 250 * i);
		verbs_schedule_pass(&s);
	}
	assert_int_equal(verbs_schedule_late(&s, 4500), 0);
}

static void test_schedule_fractions(void **state)
{
	struct verbs_schedule s;

	(void)state;
	/* 64 B at 400 Gb/s: 1.28 ns; a hundred million of them are 0.128 s, to a part in a million.
	 */
	verbs_schedule_init(&s, 5, 1.28);
	s.k = 100000000;
	assert_in_range(verbs_schedule_due(&s), 5 + 127999900, 5 + 128000100);
	/* A day at one event an hour does not overflow. */
	verbs_schedule_init(&s, 0, 3600e9);
	s.k = 24;
	assert_int_equal(verbs_schedule_due(&s), 86400000000000ull);
}

static void test_schedule_pause_keeps_the_backlog(void **state)
{
	struct verbs_schedule s;

	(void)state;
	verbs_schedule_init(&s, 0, 100);
	s.k = 7;
	assert_int_equal(verbs_schedule_late(&s, 1000), 300);
	verbs_schedule_resume(&s, 50000, 300);
	assert_int_equal(verbs_schedule_late(&s, 50000), 300);
	verbs_schedule_pass(&s);
	assert_int_equal(verbs_schedule_late(&s, 50000), 200);
	/* Without one, the pause is nobody's lateness. */
	verbs_schedule_resume(&s, 90000, 0);
	assert_int_equal(verbs_schedule_late(&s, 90000), 0);
	assert_int_equal(verbs_schedule_due(&s), 90000);
}

static void test_schedule_forgives_no_more_than_told(void **state)
{
	struct verbs_schedule s;

	(void)state;
	verbs_schedule_init(&s, 0, 100);
	assert_int_equal(verbs_schedule_forgive(&s, 800, 800), 0);
	assert_int_equal(verbs_schedule_forgive(&s, 1000, 800), 200);
	assert_int_equal(verbs_schedule_late(&s, 1000), 800);
	assert_int_equal(verbs_schedule_forgive(&s, 1000, 800), 0);
}

/* ---- fairness -------------------------------------------------------------------------------- */

static void test_jain(void **state)
{
	static const double same[] = {5, 5, 5, 5}, one[] = {9, 0, 0, 0}, two[] = {1, 3},
			    none[] = {0, 0};

	(void)state;
	assert_float_equal(verbs_jain(same, 4), 1, 1e-12);
	assert_float_equal(verbs_jain(one, 4), 0.25, 1e-12);
	assert_float_equal(verbs_jain(two, 2), 0.8, 1e-12); /* 16 / (2 * 10) */
	assert_float_equal(verbs_jain(same, 1), 1, 1e-12);
	assert_true(isnan(verbs_jain(none, 2)));
	assert_true(isnan(verbs_jain(none, 0)));
}

/* ---- parameters ------------------------------------------------------------------------------ */

static struct verbs_load_params some_load(void)
{
	return (struct verbs_load_params){.interval_ns = 250000,
		.bg_rate = 6250000000ull,
		.bg_size = 65536,
		.bg_op = VERBS_READ,
		.bg_direction = VERBS_BOTH,
		.bg_traffic_class = 104,
		.bg_sl = 3,
		.bg_depth = 64,
		.role = VERBS_ROLE_VICTIM};
}

static void test_wire_form(void **state)
{
	struct verbs_load_params a = some_load(), b;
	json_t *j = verbs_load_to_json(&a);
	struct fb_err e = {0};

	(void)state;
	assert_int_equal(verbs_load_from_json(&b, j, &e), 0);
	assert_int_equal(a.interval_ns, b.interval_ns);
	assert_int_equal(a.bg_rate, b.bg_rate);
	assert_int_equal(a.bg_size, b.bg_size);
	assert_int_equal(a.bg_op, b.bg_op);
	assert_int_equal(a.bg_direction, b.bg_direction);
	assert_int_equal(a.bg_traffic_class, b.bg_traffic_class);
	assert_int_equal(a.bg_sl, b.bg_sl);
	assert_int_equal(a.bg_depth, b.bg_depth);
	assert_int_equal(a.role, b.role);
	json_decref(j);
}

static void refuse(const char *key, json_t *value)
{
	struct verbs_load_params a = some_load(), b;
	json_t *j = verbs_load_to_json(&a);
	struct fb_err e = {0};

	if (value)
		json_object_set_new(j, key, value);
	else
		json_object_del(j, key);
	assert_int_equal(verbs_load_from_json(&b, j, &e), -EPROTO);
	assert_non_null(strstr(e.msg, key));
	json_decref(j);
}

static void test_wire_form_is_not_believed(void **state)
{
	struct verbs_load_params b;
	struct fb_err e = {0};

	(void)state;
	refuse("bg_size", json_integer(0));
	refuse("bg_size", json_integer((json_int_t)VERBS_MAX_MSG + 1));
	refuse("bg_depth", json_integer(VERBS_MAX_DEPTH));
	refuse("bg_depth", json_string("8"));
	refuse("bg_op", json_string("fetch-add"));
	refuse("bg_op", NULL);
	refuse("bg_direction", json_integer(3));
	refuse("bg_rate", json_integer(-1));
	refuse("bg_traffic_class", json_integer(256));
	refuse("interval_ns", NULL);
	refuse("role", json_integer(2));
	assert_int_equal(verbs_load_from_json(&b, NULL, &e), -EPROTO);
}

static void test_who_posts_and_who_consumes(void **state)
{
	struct verbs_load_params l = some_load();

	(void)state;
	l.bg_op = VERBS_WRITE;
	l.bg_direction = VERBS_OUT;
	assert_true(verbs_load_issues(&l, true));
	assert_false(verbs_load_issues(&l, false));
	assert_false(verbs_load_consumes(&l, false)); /* a write needs no receive */
	l.bg_direction = VERBS_IN;
	assert_false(verbs_load_issues(&l, true));
	assert_true(verbs_load_issues(&l, false));
	/* Bytes of a read flow towards whoever posts it. */
	l.bg_op = VERBS_READ;
	assert_true(verbs_load_issues(&l, true));
	assert_false(verbs_load_issues(&l, false));
	l.bg_op = VERBS_SEND;
	assert_true(verbs_load_consumes(&l, true));
	assert_false(verbs_load_consumes(&l, false));
	l.bg_direction = VERBS_BOTH;
	assert_true(verbs_load_issues(&l, true) && verbs_load_issues(&l, false));
	assert_true(verbs_load_consumes(&l, true) && verbs_load_consumes(&l, false));
}

/* ---- a device made of functions -------------------------------------------------------------- */

struct rig {
	struct null_device d;
	struct verbs_dev dev;
	struct verbs_rail rail;
	struct ibv_qp *qp[1];
	struct ibv_mr mr;
	struct verbs_params p;
	uint8_t mem[4096];
	struct verbs_flow flow;
	struct verbs_probe probe;
	atomic_int stop;
};

static void rig_open(struct rig *r, enum verbs_op op, uint64_t rate)
{
	memset(r, 0, sizeof *r);
	null_device_init(&r->d);
	r->qp[0] = &r->d.qp[0];
	r->rail = (struct verbs_rail){.dev = &r->dev,
		.mr = &r->mr,
		.tx_cq = &r->d.tx,
		.rx_cq = &r->d.rx,
		.qp = r->qp,
		.nqp = 1,
		.buf = r->mem,
		.buf_len = sizeof r->mem,
		.span = 1024,
		.slots = 1};
	r->dev.numa_node = -1;
	r->p.numa = VERBS_NUMA_OFF;
	r->p.depth = 8;
	r->p.rx_depth = 16;
	r->p.load = (struct verbs_load_params){.bg_rate = rate,
		.bg_size = 1000,
		.bg_op = op,
		.bg_direction = VERBS_OUT,
		.bg_depth = 8};
	verbs_flow_init(&r->flow, &r->rail, &r->p, true, &r->stop, "a background");
}

static void test_flow_keeps_its_rate(void **state)
{
	static struct rig r;
	struct fb_err e = {0};
	uint64_t began, took;
	double want;

	(void)state;
	rig_open(&r, VERBS_WRITE, 20000000); /* 1000 B every 50 us */
	began = fb_clock_ns();
	assert_int_equal(verbs_flow_start(&r.flow, fb_deadline_in(20000000000ull), &e), 0);
	while (verbs_flow_done(&r.flow) < 200 && fb_clock_ns() - began < 10000000000ull)
		;
	assert_int_equal(verbs_flow_end(&r.flow, &e), 0);
	took = fb_clock_ns() - began;
	/* Never faster than asked for, whatever the machine does: one window of catching up. */
	want = (double)took / 50000;
	assert_true((double)verbs_flow_done(&r.flow) <= want + 8 + 1);
	assert_true(verbs_flow_done(&r.flow) >= 200);
	assert_int_equal(r.d.signaled, r.d.posted);
	assert_int_equal(r.flow.in_flight, 0);
}

static void test_flow_stops_at_a_failed_completion(void **state)
{
	static struct rig r;
	struct fb_err e = {0};
	uint64_t until = fb_deadline_in(10000000000ull);

	(void)state;
	rig_open(&r, VERBS_WRITE, 0);
	r.d.fail_after = 100;
	assert_int_equal(verbs_flow_start(&r.flow, fb_deadline_in(20000000000ull), &e), 0);
	while (!atomic_load(&r.stop) && fb_clock_ns() < until)
		;
	assert_true(atomic_load(&r.stop)); /* whoever shares it is told */
	assert_int_equal(verbs_flow_end(&r.flow, &e), -ETIMEDOUT);
	assert_non_null(strstr(e.msg, "a background"));
}

static void test_flow_gives_up_at_its_deadline(void **state)
{
	static struct rig r;
	struct fb_err e = {0};
	uint64_t until = fb_deadline_in(10000000000ull);

	(void)state;
	rig_open(&r, VERBS_WRITE, 0);
	r.d.silent_after = 10;
	assert_int_equal(verbs_flow_start(&r.flow, fb_deadline_in(50000000), &e), 0);
	while (!atomic_load(&r.stop) && fb_clock_ns() < until)
		;
	assert_int_equal(verbs_flow_end(&r.flow, &e), -ETIMEDOUT);
	assert_true(r.flow.in_flight > 0);
}

static void test_flow_waits_for_credits(void **state)
{
	static struct rig r;
	struct fb_err e = {0};
	volatile uint64_t *granted;
	uint64_t until = fb_deadline_in(10000000000ull);

	(void)state;
	rig_open(&r, VERBS_SEND, 0);
	granted = r.flow.credit_in;
	assert_int_equal(verbs_flow_start(&r.flow, fb_deadline_in(20000000000ull), &e), 0);
	while (verbs_flow_done(&r.flow) < 16 && fb_clock_ns() < until)
		;
	assert_int_equal(verbs_flow_done(&r.flow), 16); /* as many as receives are posted */
	*granted = 5;
	while (verbs_flow_done(&r.flow) < 21 && fb_clock_ns() < until)
		;
	assert_int_equal(verbs_flow_end(&r.flow, &e), 0);
	assert_int_equal(verbs_flow_done(&r.flow), 21);
}

/* The loop's clock is real, so the stall is: the schedule is set back by hand. */
static void test_probe_counts_from_when_it_was_due(void **state)
{
	static struct rig r;
	struct fb_err e = {0};
	uint64_t ns[10];
	struct fb_sink s = {.ns = ns, .cap = 10};
	struct verbs_wait w;

	(void)state;
	rig_open(&r, VERBS_WRITE, 0);
	w = (struct verbs_wait){NULL, &r.stop, fb_deadline_in(20000000000ull), &e};
	verbs_probe_init(&r.probe, &r.rail, VERBS_READ, 64, false, true, 1000000, "a probe");
	r.probe.started = true;
	r.probe.backlog = 5000000; /* it ended 5 ms behind: five probes and the one due now */
	verbs_schedule_init(&r.probe.sched, 0, 1000000);
	assert_int_equal(verbs_probe_run(&r.probe, &w, 10, 0, &s), 0);
	assert_int_equal(s.n, 10);
	for (int i = 0; i < 5; i++)
		assert_true(ns[i] >= 5000000u - 1000000u * (unsigned)i);
	assert_true(r.probe.most_behind >= 5000000);
	/* None is due before `until`: nothing is measured. */
	s.n = 0;
	assert_int_equal(verbs_probe_run(&r.probe, &w, 10, fb_clock_ns() - 1, &s), 0);
	assert_int_equal(s.n, 0);
}

static void test_probe_tells_its_cause(void **state)
{
	static struct rig r;
	struct fb_err e = {0};
	uint64_t ns[10];
	struct fb_sink s = {.ns = ns, .cap = 10};
	struct verbs_wait w;

	(void)state;
	rig_open(&r, VERBS_WRITE, 0);
	w = (struct verbs_wait){NULL, &r.stop, fb_deadline_in(20000000000ull), &e};
	r.d.fail_after = 3;
	verbs_probe_init(&r.probe, &r.rail, VERBS_READ, 64, false, true, 1000, "a probe");
	assert_int_equal(verbs_probe_run(&r.probe, &w, 10, 0, &s), -ETIMEDOUT);
	assert_int_equal(s.n, 3);
	assert_non_null(strstr(e.msg, "a probe"));
	/* Another thread gave up. */
	fb_err_clear(&e);
	rig_open(&r, VERBS_WRITE, 0);
	verbs_probe_init(&r.probe, &r.rail, VERBS_READ, 64, false, true, 1000000000, "a probe");
	atomic_store(&r.stop, 1);
	s.n = 0;
	assert_int_equal(verbs_probe_run(&r.probe, &w, 10, 0, &s), -ECANCELED);
}

/* ---- results --------------------------------------------------------------------------------- */

static int parse_load(char **argv, int argc, struct verbs_params *p, struct fb_err *e)
{
	struct verbs_options v = {0};
	struct verbs_load_options lo = {0};
	struct fb_opt_spec spec = {.command = "verbs load",
		.sets = {{"RDMA", verbs_load_opts, &v}, {"Load", verbs_load_extra_opts, &lo}}};
	int rc = fb_opt_parse(&spec, argc, argv, e);

	if (rc == 0)
		rc = verbs_load_params(p, &v, &lo, e);
	fb_opt_free(&spec);
	return rc;
}

static void test_options_of_a_load(void **state)
{
	static const struct {
		const char *option, *says;
	} refused[] = {{"--op=fetch-add", "a probe is a send, a write or a read"},
		{"--memory=gpu", "the CPU looks at these buffers"},
		{"--device=a,b", "one device here"}, {"--transport=uc", "needs the transport rc"}};
	struct verbs_params p;
	struct fb_err e = {0};

	(void)state;
	for (unsigned i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		char *argv[] = {
			(char *)(uintptr_t) "x", (char *)(uintptr_t)refused[i].option, NULL};
		fb_err_clear(&e);
		assert_int_equal(parse_load(argv, 2, &p, &e), -EINVAL);
		assert_int_equal(e.exit, FB_EXIT_USAGE);
		if (!strstr(e.msg, refused[i].says))
			fail_msg("%s: %s", refused[i].option, e.msg);
	}
	char *one[] = {(char *)(uintptr_t) "x", NULL};
	char *all[] = {(char *)(uintptr_t) "x", (char *)(uintptr_t) "-a", NULL};
	fb_err_clear(&e);
	assert_int_equal(parse_load(one, 1, &p, &e), 0);
	assert_int_equal(p.sizes[0], 64);
	assert_int_equal(parse_load(all, 2, &p, &e), 0);
	assert_int_equal(p.nsizes, 23);
}

static void test_run_control_of_a_tail(void **state)
{
	struct fb_runctl_cfg rc = {
		.min_iters = 100, .max_time_ns = 1000000000, .point_timeout_ns = 60000000000ull};
	struct fb_runctl_cfg fixed = {.iters = 50, .min_iters = 100, .max_time_ns = 1};

	(void)state;
	verbs_load_run_control(&rc);
	assert_int_equal(rc.min_iters, 1000);
	assert_int_equal(rc.max_time_ns, 10000000000ull);
	verbs_load_run_control(&fixed);
	assert_int_equal(fixed.min_iters, 100);
	assert_int_equal(fixed.max_time_ns, 1);
}

static void test_result_of_a_distribution(void **state)
{
	static struct fb_hist h;
	json_t *j = verbs_result_new("a/b", NULL, "latency", "ns", "lower", NAN, "no sample");

	(void)state;
	fb_hist_init(&h);
	verbs_result_hist(j, &h);
	assert_true(json_is_null(json_object_get(j, "value")));
	assert_string_equal(fb_json_str(j, "value_reason", ""), "no sample");
	for (uint64_t i = 1; i <= 200; i++)
		fb_hist_add(&h, i);
	verbs_result_hist(j, &h);
	assert_int_equal(fb_json_int(j, "value", 0), 100);
	assert_int_equal(fb_json_int(j, "n", 0), 200);
	assert_null(json_object_get(j, "value_reason"));
	assert_null(json_object_get(j, "samples"));
	assert_non_null(json_object_get(json_object_get(j, "stats"), "p90"));
	assert_null(json_object_get(json_object_get(j, "stats"), "p99")); /* 200 are too few */
	json_decref(j);
}

/* ---- documents ------------------------------------------------------------------------------- */

static struct fb_doc *new_doc(void)
{
	static char name[] = "fabricbench";
	char *argv[] = {name};
	struct fb_output_cfg out = {.quiet = true, .timeout = 60000000000ull};
	struct fb_err e = {0};
	struct fb_doc *d = fb_doc_new("verbs load", 1, argv, &out, &e);

	assert_non_null(d);
	return d;
}

static const json_t *find(struct fb_doc *d, const char *name, const char *metric)
{
	size_t i;
	json_t *r;

	json_array_foreach (json_object_get(fb_doc_json(d), "results"), i, r)
		if (!strcmp(fb_json_str(r, "case", ""), name) &&
			!strcmp(fb_json_str(r, "metric", ""), metric))
			return r;
	return NULL;
}

static void add_probe(struct fb_doc *d, const char *name, uint64_t n, uint64_t ns, double out)
{
	static struct fb_hist h;
	json_t *r = verbs_result_new(name, NULL, "latency", "ns", "lower", NAN, "none");

	fb_hist_init(&h);
	for (uint64_t i = 0; i < n; i++)
		fb_hist_add(&h, ns);
	verbs_result_hist(r, &h);
	if (out > 0)
		json_object_set_new(
			r, "facts", json_pack("{s:{s:f}}", "background", "achieved_out", out));
	fb_doc_add_result(d, r);
}

static void test_effects_of_a_background(void **state)
{
	struct fb_doc *d = new_doc();
	struct fb_err e = {0};

	(void)state;
	add_probe(d, "verbs.load/send/rc/poll/idle/64", 1000, 100, 0);
	add_probe(d, "verbs.load/send/rc/poll/on/64", 1000, 250, 1e9);
	add_probe(d, "verbs.load/send/rc/poll/idle/640", 1000, 200, 0);
	verbs_load_effects(d);
	assert_float_equal(
		fb_json_num(find(d, "verbs.load/send/rc/poll/effect/64", "p99_ratio"), "value", 0),
		2.5, 1e-9);
	assert_float_equal(
		fb_json_num(
			find(d, "verbs.load/send/rc/poll/effect/64", "background_out"), "value", 0),
		1e9, 1);
	/* Rates that nobody measured and sizes without a background make no result. */
	assert_null(find(d, "verbs.load/send/rc/poll/effect/64", "background_in"));
	assert_null(find(d, "verbs.load/send/rc/poll/effect/640", "p99_ratio"));
	assert_int_equal(fb_doc_validate(fb_doc_json(d), "effects", &e), 0);
	fb_doc_free(d);
}

static void test_a_small_sample_has_no_ratio(void **state)
{
	struct fb_doc *d = new_doc();
	const json_t *r;
	struct fb_err e = {0};

	(void)state;
	add_probe(d, "verbs.load/send/rc/poll/idle/64", 1000, 100, 0);
	add_probe(d, "verbs.load/send/rc/poll/on/64", 100, 250, 0);
	verbs_load_effects(d);
	r = find(d, "verbs.load/send/rc/poll/effect/64", "p99_ratio");
	assert_true(json_is_null(json_object_get(r, "value")));
	assert_non_null(fb_json_str(r, "value_reason", NULL));
	assert_int_equal(fb_doc_validate(fb_doc_json(d), "effects", &e), 0);
	fb_doc_free(d);
}

static const char *reason_of(const json_t *r, size_t i)
{
	const json_t *all = json_object_get(json_object_get(r, "validity"), "reasons");
	const char *text = json_string_value(json_array_get(all, i));

	return text ? text : "";
}

static const char *state_of(const json_t *r)
{
	return fb_json_str(json_object_get(r, "validity"), "state", "");
}

/* What is far below the rate that was asked for is not that rate's figure, and not silently so. */
static void test_a_rate_that_was_missed(void **state)
{
	static const struct {
		double got, asked;
		const char *state;
	} cases[] = {{1e9, 1e9, "valid"}, {0.951e9, 1e9, "valid"}, {1.2e9, 1e9, "valid"},
		{0.949e9, 1e9, "suspect"}, {1, 1e12, "suspect"}, {NAN, 1e9, "valid"}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		json_t *r = verbs_result_new(
			"a", NULL, "bandwidth", "bytes/s", "higher", cases[i].got, "none");
		verbs_result_rate_judge(r, cases[i].got, cases[i].asked);
		assert_string_equal(state_of(r), cases[i].state);
		assert_int_equal(strstr(reason_of(r, 0), "of requested") != NULL,
			!strcmp(cases[i].state, "suspect"));
		json_decref(r);
	}
}

/* A doubt adds to the reasons; the state is the worst of all, in whatever order they come. */
static void test_doubts_add_up(void **state)
{
	json_t *r = verbs_result_new("a", NULL, "b", "1", "higher", 1, NULL);

	(void)state;
	verbs_result_doubt(r, FB_VALID, "by the way");
	assert_string_equal(state_of(r), "valid");
	verbs_result_doubt(r, FB_INVALID, "over the bound by %d", 7);
	verbs_result_doubt(r, FB_SUSPECT, "lost");
	assert_string_equal(state_of(r), "invalid");
	assert_string_equal(reason_of(r, 0), "by the way");
	assert_string_equal(reason_of(r, 1), "over the bound by 7");
	assert_string_equal(reason_of(r, 2), "lost");
	json_decref(r);
}

static json_t *port(int64_t lost)
{
	return json_pack("{s:s,s:{s:I}}", "driver", "rxe", "counters", "out_of_seq_request",
		(json_int_t)lost);
}

static void test_results_of_an_incast(void **state)
{
	static struct verbs_incast x;
	static struct verbs_incast_peer peers[3];
	static struct verbs_dev dev;
	const json_t *r, *sent;
	struct fb_err e = {0};

	(void)state;
	x = (struct verbs_incast){.job.p.load = some_load(),
		.doc = new_doc(),
		.peer = peers,
		.nsenders = 3,
		.slots = 8,
		.where = "lab",
		.own_before = port(5),
		.own_after = port(7)};
	x.job.p.load.bg_op = VERBS_WRITE;
	for (unsigned i = 0; i < 3; i++) {
		peers[i].end.rail.dev = &dev;
		peers[i].end.rail.path_mtu = 4096;
		peers[i].before = port(1);
		peers[i].after = port(1);
		for (unsigned s = 0; s < x.slots; s++) {
			peers[i].bytes[s] = 1000.0 * (i + 1); /* 1, 2 and 3 GB/s */
			peers[i].ns[s] = 1000;
		}
		peers[i].rate = 1e9 * (i + 1);
	}
	verbs_incast_results(&x, 2);
	r = find(x.doc, "verbs.incast/write/65536/2", "goodput");
	assert_float_equal(fb_json_num(r, "value", 0), 3e9, 1);
	/* 6.25 GB/s were asked of each of two. */
	assert_float_equal(fb_json_num(json_object_get(r, "rate"), "share", 0), 0.24, 1e-9);
	sent = json_object_get(r, "per_rank");
	assert_int_equal(json_array_size(sent), 2);
	assert_float_equal(fb_json_num(json_array_get(sent, 1), "value", 0), 2e9, 1);
	assert_float_equal(
		fb_json_num(find(x.doc, "verbs.incast/write/65536/2", "fairness"), "value", 0), 0.9,
		1e-9); /* 9 / (2 * 5) */
	/* A loss at the receiver is seen, one that was there before is not; unknown is not 0. The
	 * senders' rate is a doubt of its own. */
	assert_string_equal(fb_json_str(json_object_get(r, "validity"), "state", ""), "suspect");
	assert_int_equal(
		json_array_size(json_object_get(json_object_get(r, "validity"), "reasons")), 2);
	assert_non_null(strstr(reason_of(r, 0), "achieved 24.0 Gb/s of requested 100 Gb/s"));
	assert_non_null(strstr(reason_of(r, 1), "receiver counted"));
	assert_non_null(
		strstr(fb_json_str(json_object_get(r, "facts"), "pause", ""), "not available"));
	r = json_object_get(r, "counters");
	assert_int_equal(fb_json_int(json_object_get(r, "classes"), "loss_seen", -1), 2);
	assert_true(json_is_null(json_object_get(json_object_get(r, "classes"), "ecn")));
	r = json_object_get(r, "classes_by");
	assert_int_equal(fb_json_int(json_object_get(r, "receiver"), "loss_seen", -1), 2);
	assert_int_equal(fb_json_int(json_object_get(r, "sender1"), "loss_seen", -1), 0);
	assert_int_equal(fb_doc_validate(fb_doc_json(x.doc), "incast", &e), 0);
	fb_doc_free(x.doc);
	json_decref(x.own_before);
	json_decref(x.own_after);
	for (unsigned i = 0; i < 3; i++) {
		json_decref(peers[i].before);
		json_decref(peers[i].after);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_schedule_keeps_its_times),
		cmocka_unit_test(test_schedule_fractions),
		cmocka_unit_test(test_schedule_pause_keeps_the_backlog),
		cmocka_unit_test(test_schedule_forgives_no_more_than_told),
		cmocka_unit_test(test_jain),
		cmocka_unit_test(test_wire_form),
		cmocka_unit_test(test_wire_form_is_not_believed),
		cmocka_unit_test(test_who_posts_and_who_consumes),
		cmocka_unit_test(test_flow_keeps_its_rate),
		cmocka_unit_test(test_flow_stops_at_a_failed_completion),
		cmocka_unit_test(test_flow_gives_up_at_its_deadline),
		cmocka_unit_test(test_flow_waits_for_credits),
		cmocka_unit_test(test_probe_counts_from_when_it_was_due),
		cmocka_unit_test(test_probe_tells_its_cause),
		cmocka_unit_test(test_options_of_a_load),
		cmocka_unit_test(test_run_control_of_a_tail),
		cmocka_unit_test(test_result_of_a_distribution),
		cmocka_unit_test(test_effects_of_a_background),
		cmocka_unit_test(test_a_small_sample_has_no_ratio),
		cmocka_unit_test(test_a_rate_that_was_missed),
		cmocka_unit_test(test_doubts_add_up),
		cmocka_unit_test(test_results_of_an_incast),
	};

	fb_clock_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
