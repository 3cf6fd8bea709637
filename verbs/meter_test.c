// SPDX-License-Identifier: Apache-2.0
/* Limited rates, bytes over time and paced latency, on a device made of functions. */
#include "bench/core/test.h"

#include <errno.h>
#include <string.h>

#include "bench/core/json.h"
#include "verbs/benches.h"
#include "verbs/load.h"
#include "verbs/loops.h"
#include "verbs/null_device.h"
#include "verbs/state.h"

#define MS 1000000u

struct rig {
	struct null_device dev;
	struct verbs_bw b;
	struct verbs_bw_qp qp[3];
	struct ibv_sge sge[3];
	struct ibv_send_wr chain[3][8];
	uint8_t data[64];
	uint64_t credit_in[3], credit_out[3];
	struct verbs_series series;
	struct fb_err err;
	atomic_int stop;
};

static void init(struct rig *r, unsigned nqp, unsigned list, enum ibv_wr_opcode opcode)
{
	memset(r, 0, sizeof *r);
	null_device_init(&r->dev);
	verbs_series_reset(&r->series, 5 * MS);
	r->b = (struct verbs_bw){.qp = r->qp,
		.nqp = nqp,
		.depth = 64,
		.rx_depth = 128,
		.post_list = list,
		.cq_mod = 4,
		.tx.cq = &r->dev.tx,
		.rx.cq = &r->dev.rx,
		.what = "write of 64 B",
		.meter = {.series = &r->series, .size = 1000},
		.wait = {.stop = &r->stop,
			.deadline = fb_deadline_in(10000u * (uint64_t)MS),
			.e = &r->err}};
	for (unsigned q = 0; q < nqp; q++) {
		struct verbs_bw_qp *b = &r->qp[q];
		b->qp = &r->dev.qp[q];
		b->chain = r->chain[q];
		r->sge[q] = (struct ibv_sge){.addr = (uintptr_t)r->data, .length = sizeof r->data};
		for (unsigned k = 0; k < list; k++)
			b->chain[k] = (struct ibv_send_wr){
				.sg_list = &r->sge[q], .num_sge = 1, .opcode = opcode};
		b->credit_in = &r->credit_in[q];
		b->credit_out = &r->credit_out[q];
		b->credit_sge = (struct ibv_sge){.addr = (uintptr_t)b->credit_out, .length = 8};
		b->credit_wr = (struct ibv_send_wr){.wr_id = VERBS_WR_CREDIT | (uint64_t)q << 32,
			.sg_list = &b->credit_sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED};
	}
}

/* Never faster than asked for, whatever the machine does meanwhile; and all of it is posted. */
static void a_limited_rate_is_never_exceeded(void **state)
{
	static const struct {
		unsigned qps, list;
		uint64_t iters;
	} cases[] = {{1, 1, 100}, {3, 1, 100}, {2, 4, 101}, {1, 8, 3}};

	(void)state;
	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct rig r;
		uint64_t elapsed = 0, want = cases[i].iters * 100000;
		init(&r, cases[i].qps, cases[i].list, IBV_WR_RDMA_WRITE);
		r.b.meter.gap_ns = 100000;
		assert_int_equal(
			verbs_bw_choose_paced(false, false, false)(&r.b, cases[i].iters, &elapsed),
			0);
		assert_int_equal(r.dev.posted, cases[i].iters);
		assert_true(elapsed >= want);
		assert_true(r.dev.max_chain <= cases[i].list);
		for (unsigned q = 0; q < cases[i].qps; q++) {
			assert_int_equal(r.qp[q].left, 0);
			assert_int_equal(r.qp[q].in_flight, 0);
			assert_true(r.qp[q].sent > 0 || cases[i].iters < cases[i].qps);
		}
	}
}

/* A batch that begins far behind its schedule posts all at once: the deadline is advanced, it is
 * not "now and a gap". */
static void a_late_schedule_catches_up(void **state)
{
	struct rig r;
	uint64_t elapsed = 0;

	(void)state;
	init(&r, 1, 1, IBV_WR_RDMA_WRITE);
	r.b.meter.gap_ns = 0.001; /* every slot is already past */
	assert_int_equal(verbs_bw_choose_paced(false, false, false)(&r.b, 1000, &elapsed), 0);
	assert_int_equal(r.dev.posted, 1000);
	assert_int_equal(r.b.meter.to_grant, 0);
}

static void a_limited_send_waits_for_credits_too(void **state)
{
	struct rig r;
	uint64_t elapsed = 0;

	(void)state;
	init(&r, 1, 1, IBV_WR_SEND);
	r.b.meter.gap_ns = 1000;
	r.b.wait.deadline = fb_deadline_in(20 * MS);
	assert_int_equal(
		verbs_bw_choose_paced(true, false, false)(&r.b, 1000, &elapsed), -ETIMEDOUT);
	assert_int_equal(r.dev.posted, r.b.rx_depth);
}

/* Both ends are this one: what arrives is counted and timed here. */
static void arrivals_are_counted_at_the_receiver(void **state)
{
	struct rig r;
	uint64_t elapsed = 0, bytes = 0;

	(void)state;
	init(&r, 1, 1, IBV_WR_SEND);
	r.dev.echo_sends = true;
	r.dev.credit_to = &r.credit_in[0];
	r.b.meter.gap_ns = 50000;
	assert_int_equal(verbs_bw_choose_paced(true, false, true)(&r.b, 400, &elapsed), 0);
	assert_int_equal(r.b.meter.taken, 400);
	assert_true(r.b.meter.span_ns > 0);
	assert_true(r.b.meter.first < 400);
	assert_true(verbs_meter_received_ns(&r.b.meter) >= r.b.meter.span_ns);
	/* All bytes are in the series, and none twice: the open window has the rest. */
	for (unsigned i = 0; i < r.series.n; i++)
		bytes += r.series.entry[i];
	assert_int_equal(bytes + r.series.open, 400 * 1000);
}

static void one_burst_tells_no_time(void **state)
{
	struct verbs_meter m = {.size = 10};

	(void)state;
	verbs_meter_start(&m, 0);
	verbs_meter_arrived(&m, 16);
	verbs_meter_end(&m, fb_clock_ns());
	assert_int_equal(verbs_meter_received_ns(&m), 0);
	/* 4 of 16 came at once; the others took 120 ns: all of them take 160. */
	m = (struct verbs_meter){.taken = 16, .first = 4, .span_ns = 120};
	assert_int_equal(verbs_meter_received_ns(&m), 160);
}

static void warm_up_is_not_recorded(void **state)
{
	struct rig r;
	uint64_t elapsed = 0;

	(void)state;
	init(&r, 1, 1, IBV_WR_RDMA_WRITE);
	r.b.meter.series = NULL;
	assert_int_equal(verbs_bw_choose(false, false, true, false)(&r.b, 1000, &elapsed), 0);
	assert_int_equal(r.series.base_ns, 0);
	r.b.meter.series = &r.series;
	elapsed = 0;
	assert_int_equal(verbs_bw_choose(false, false, true, false)(&r.b, 1000, &elapsed), 0);
	assert_int_equal(r.series.base_ns, elapsed);
}

/* ---- bytes over time ------------------------------------------------------------------------- */

/* 100 ms windows of 1,000 messages of 1 KB; the link is away for 300 ms in the middle. */
static void a_flapping_link_shows(void **state)
{
	struct verbs_series s;
	json_t *r = json_object();
	const json_t *worst;
	uint64_t t = 0;

	(void)state;
	verbs_series_reset(&s, 100 * MS);
	for (unsigned i = 0; i < 2000; i++) {
		if (i == 1000)
			t += 300 * MS;
		t += MS / 10;
		verbs_series_add(&s, t, 1000);
	}
	verbs_series_end_batch(&s, t);
	verbs_series_extend(&s, 1000, r);
	worst = json_object_get(r, "worst_window");
	assert_true(fb_json_num(worst, "value", -1) <= 1000 * 10.0);
	assert_int_equal(fb_json_int(worst, "window_ns", 0), 100 * MS);
	assert_in_range(fb_json_int(worst, "t_ns", 0), 100 * MS, 300 * MS);
	assert_int_equal(json_array_size(json_object_get(r, "intervals")), 5);
	json_decref(r);
}

static void a_long_series_stays_bounded(void **state)
{
	struct verbs_series s;
	json_t *r = json_object();
	uint64_t total = 0;

	(void)state;
	verbs_series_reset(&s, MS);
	for (uint64_t i = 0; i < 100000; i++)
		verbs_series_add(&s, i * MS, i == 77777 ? 3 : 50);
	verbs_series_end_batch(&s, 100000 * (uint64_t)MS);
	assert_true(s.n <= VERBS_SERIES_MAX);
	assert_true(s.n > VERBS_SERIES_MAX / 3);
	for (unsigned i = 0; i < s.n; i++)
		total += s.entry[i];
	assert_int_equal(total, 99999 * 50 + 3);
	/* The worst window is still one of those asked for, at its own place. */
	assert_int_equal(s.worst_bytes, 3);
	assert_int_equal(s.worst_at, 77777);
	verbs_series_extend(&s, 1, r);
	assert_true(json_array_size(json_object_get(r, "intervals")) <= VERBS_SERIES_MAX);
	json_decref(r);
}

static void what_cannot_be_told_is_null_with_its_reason(void **state)
{
	struct verbs_series s;
	json_t *r = json_object();

	(void)state;
	verbs_series_reset(&s, 100 * MS);
	verbs_series_add(&s, 50 * MS, 1000);
	verbs_series_end_batch(&s, 99 * MS);
	verbs_series_extend(&s, 1, r);
	assert_true(json_is_null(json_object_get(r, "worst_window")));
	assert_non_null(strstr(fb_json_str(r, "worst_window_reason", ""), "shorter than"));
	/* Sixteen megabytes at a time in a window that holds twenty say nothing of the link. */
	verbs_series_add(&s, 150 * MS, 20 << 20);
	verbs_series_end_batch(&s, 200 * MS);
	verbs_series_extend(&s, 16 << 20, r);
	assert_true(json_is_null(json_object_get(r, "worst_window")));
	assert_non_null(strstr(fb_json_str(r, "worst_window_reason", ""), "--cq-mod 1"));
	json_decref(r);
}

static void a_series_survives_the_control_channel(void **state)
{
	struct verbs_series s, back;
	json_t *j;

	(void)state;
	verbs_series_reset(&s, MS);
	for (uint64_t i = 0; i < 1000; i++)
		verbs_series_add(&s, i * MS, i);
	verbs_series_end_batch(&s, 1000 * (uint64_t)MS);
	j = verbs_series_to_json(&s);
	assert_int_equal(verbs_series_from_json(&back, j), 0);
	assert_int_equal(back.n, s.n);
	assert_memory_equal(back.entry, s.entry, sizeof s.entry);
	assert_int_equal(back.worst_at, s.worst_at);
	assert_int_equal(back.merged, 2);
	json_array_append_new(json_object_get(j, "bytes"), json_integer(-1));
	assert_int_equal(verbs_series_from_json(&back, j), -EPROTO);
	fb_json_set_int(j, "window_ns", 0);
	assert_int_equal(verbs_series_from_json(&back, j), -EPROTO);
	json_decref(j);
}

/* A point that misses its rate says so in each of its figures; of atomics, which move no payload to
 * speak of, the rate is that of the words that they work on. */
static void a_missed_rate_stands_in_every_figure(void **state)
{
	static const struct {
		enum verbs_op op;
		bool both, has_rate;
		double value; /* messages a second, of 1000 bytes or of a word */
		double share;
		const char *valid;
	} cases[] = {{VERBS_WRITE, false, false, 9.4e5, 0.94, "suspect"},
		{VERBS_WRITE, false, false, 9.6e5, 0.96, "valid"},
		{VERBS_WRITE, true, false, 1.88e6, 0.94, "suspect"},
		{VERBS_FETCH_ADD, false, true, 1.25e6, 0.01, "suspect"},
		{VERBS_CMP_SWAP, false, true, 1.25e8, 1, "valid"}};

	(void)state;
	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		bool atomic = verbs_ops[cases[i].op].atomic;
		struct verbs_job job = {.p = {.bench = VERBS_BANDWIDTH,
						.rate = 1000000000,
						.bidirectional = cases[i].both}};
		struct verbs_state s = {.job = &job};
		struct fb_point p = {.size = atomic ? 8 : 1000, .user = cases[i].op};
		struct fb_metric m = {.name = "message_rate", .per_unit = 1};
		json_t *r =
			verbs_result_new("a", NULL, m.name, "1/s", "higher", cases[i].value, NULL);
		const json_t *v = json_object_get(r, "validity"), *rate;
		verbs_bandwidth_bench.extend(&s, &p, &m, r);
		assert_string_equal(fb_json_str(v, "state", ""), cases[i].valid);
		assert_int_equal(json_array_size(json_object_get(v, "reasons")),
			!strcmp(cases[i].valid, "suspect"));
		rate = json_object_get(r, "rate");
		assert_int_equal(rate != NULL, cases[i].has_rate);
		if (rate)
			assert_float_equal(fb_json_num(rate, "share", 0), cases[i].share, 1e-9);
		json_decref(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_limited_rate_is_never_exceeded),
		cmocka_unit_test(a_late_schedule_catches_up),
		cmocka_unit_test(a_limited_send_waits_for_credits_too),
		cmocka_unit_test(arrivals_are_counted_at_the_receiver),
		cmocka_unit_test(one_burst_tells_no_time),
		cmocka_unit_test(warm_up_is_not_recorded),
		cmocka_unit_test(a_flapping_link_shows),
		cmocka_unit_test(a_long_series_stays_bounded),
		cmocka_unit_test(what_cannot_be_told_is_null_with_its_reason),
		cmocka_unit_test(a_series_survives_the_control_channel),
		cmocka_unit_test(a_missed_rate_stands_in_every_figure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
