// SPDX-License-Identifier: Apache-2.0
/* What `run` says while it works: the time left, the value, the line on a terminal, the plain one.
 */
#include "bench/core/test.h"

#include <string.h>

#include "bench/core/strbuf.h"
#include "bench/run/live.h"
#include "bench/run/run_priv.h"

#define SECOND 1000000000ull

static char time_key[] = "time", twenty[] = "20s";
static struct fb_plan_key told[] = {{.name = time_key, .value = twenty}};
static struct fb_job jobs[] = {
	{.name = "told", .deadline_ns = 600 * SECOND, .keys = told, .nkeys = 1},
	{.name = "untold", .deadline_ns = 60 * SECOND},
};

/* Two launches of each job, in turn. */
static void plan_of_two(struct run *r, struct run_part parts[4])
{
	memset(parts, 0, 4 * sizeof(parts[0]));
	memset(r, 0, sizeof(*r));
	for (unsigned i = 0; i < 4; i++) {
		parts[i].job = &jobs[i % 2];
		parts[i].launch = i / 2 + 1;
	}
	r->parts = parts;
	r->nparts = 4;
}

static void time_left(void **state)
{
	static struct run r;
	static struct run_part parts[4];
	struct live_left left;
	plan_of_two(&r, parts);
	live_left(&r, &left);
	assert_float_equal(left.seconds, 160, 1e-9);
	assert_true(left.bounded);
	parts[0].state = RUN_COMPLETE; /* what a launch took tells more than the plan */
	parts[0].seconds = 5;
	live_left(&r, &left);
	assert_float_equal(left.seconds, 60 + 5 + 60, 1e-9);
	parts[1].state = RUN_COMPLETE;
	parts[1].seconds = 2;
	live_left(&r, &left);
	assert_float_equal(left.seconds, 5 + 2, 1e-9);
	assert_false(left.bounded);
	parts[1].state = RUN_FAILED; /* how long a failure took tells nothing */
	live_left(&r, &left);
	assert_float_equal(left.seconds, 5 + 60, 1e-9);
	for (int i = 0; i < 4; i++)
		parts[i].state = RUN_COMPLETE;
	live_left(&r, &left);
	assert_float_equal(left.seconds, 0, 1e-9);
}

static void values(void **state)
{
	static const struct {
		const char *metric, *unit, *text;
		double v;
		int size;
	} rows[] = {
		{"latency", "ns", "latency 1.63 us at 64 B", 1630, 64},
		{"bandwidth", "bytes/s", "bandwidth 98.1 Gb/s at 1 MiB", 98.1e9 / 8, 1 << 20},
		{"busbw", "bytes/s", "busbw 3.21 GB/s at 4 MiB", 3.21e9, 4 << 20},
		{"mfu", "", "mfu 0.412", 0.412, -1},
		{"messages", "1/s", "messages 1.5e+03 1/s", 1500, -1},
	};
	char buf[96];
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *r = json_pack("{s:s,s:s,s:f,s:{}}", "metric", rows[i].metric, "unit",
			rows[i].unit, "value", rows[i].v, "params");
		if (rows[i].size >= 0)
			json_object_set_new(
				json_object_get(r, "params"), "size", json_integer(rows[i].size));
		assert_string_equal(live_value(r, buf, sizeof(buf)), rows[i].text);
		json_object_set_new(r, "value", json_null());
		assert_string_equal(live_value(r, buf, sizeof(buf)), "");
		json_decref(r);
	}
}

static void clocks(void **state)
{
	char buf[32];
	assert_string_equal(live_clock(0, buf, sizeof(buf)), "0:00");
	assert_string_equal(live_clock(59.6, buf, sizeof(buf)), "1:00");
	assert_string_equal(live_clock(754, buf, sizeof(buf)), "12:34");
	assert_string_equal(live_clock(10867, buf, sizeof(buf)), "3:01:07");
	assert_string_equal(live_clock(-3, buf, sizeof(buf)), "0:00");
}

static void the_line(void **state)
{
	struct live_state s = {.part = 3,
		.parts = 14,
		.name = "read, launch 1",
		.gone = 42,
		.part_gone = 10,
		.expected = 20,
		.left = {100, false}};
	char buf[240];
	assert_string_equal(live_line(&s, 0, buf, sizeof(buf)),
		"[3/14] read, launch 1  0:42 gone, about 1:30 left");
	s.part_gone = 500; /* late: the others still need their time */
	s.left.bounded = true;
	snprintf(s.last, sizeof(s.last), "send busbw 3 GB/s");
	assert_string_equal(live_line(&s, 0, buf, sizeof(buf)),
		"[3/14] read, launch 1  0:42 gone, at most 1:20 left  last: send busbw 3 GB/s");
	assert_string_equal(live_line(&s, 12, buf, sizeof(buf)), "[3/14] read,");
	snprintf(s.name, sizeof(s.name), "\xc3\xa9\xc3\xa9\xc3\xa9");
	assert_string_equal(live_line(&s, 9, buf, sizeof(buf)), "[3/14] \xc3\xa9\xc3\xa9");
}

static void the_plain_line(void **state)
{
	static struct run r;
	static struct run_part parts[4];
	char buf[1024];
	plan_of_two(&r, parts);
	parts[0].state = RUN_COMPLETE;
	parts[0].seconds = 5;
	assert_string_equal(live_part_line(&r, &parts[0], 0, "busbw 3 GB/s", buf, sizeof(buf)),
		"[ 1/4] told                     launch 1  complete      5.0 s  busbw 3 GB/s; "
		"at most 2:05 left");
	parts[1].state = RUN_FAILED;
	parts[2].state = parts[3].state = RUN_COMPLETE;
	snprintf(parts[1].reason, sizeof(parts[1].reason), "no route");
	assert_string_equal(live_part_line(&r, &parts[1], 1, "", buf, sizeof(buf)),
		"[ 2/4] untold                   launch 1  failed        0.0 s  no route");
}

/* Points of the part: on the line, and in what is left where only a deadline was known. */
static void points_on_the_line(void **state)
{
	struct live_state s = {.part = 3,
		.parts = 14,
		.point = 2,
		.points = 7,
		.name = "read, launch 1",
		.gone = 42,
		.part_gone = 10,
		.expected = 600,
		.deadline = 600,
		.left = {660, true},
		.last_job = "read",
		.last = "latency 1.63 us at 64 B"};
	char buf[250];
	assert_string_equal(live_line(&s, 0, buf, sizeof(buf)),
		"[3/14] read, launch 1, point 2/7  0:42 gone, at most 10:50 left  "
		"last: read latency 1.63 us at 64 B");
	live_refine(&s); /* two of seven took 10 s, so all take 35; and 60 s for the others */
	assert_float_equal(s.expected, 35, 1e-9);
	assert_string_equal(live_line(&s, 0, buf, sizeof(buf)),
		"[3/14] read, launch 1, point 2/7  0:42 gone, about 1:25 left  "
		"last: read latency 1.63 us at 64 B");
	/* The less room, the less of what is least asked for. */
	assert_string_equal(live_line(&s, 95, buf, sizeof(buf)),
		"[3/14] read, launch 1, point 2/7  about 1:25 left  "
		"last: read latency 1.63 us at 64 B");
	assert_string_equal(live_line(&s, 80, buf, sizeof(buf)),
		"[3/14] read, launch 1, point 2/7  about 1:25 left  "
		"last: latency 1.63 us at 64 B");
	assert_string_equal(
		live_line(&s, 40, buf, sizeof(buf)), "[3/14] read, launch 1, point 2/7  about ");
	/* Slower than thought is seen too, up to the deadline; with others bounded it stays so. */
	s.part_gone = 300;
	s.others_bounded = true;
	live_refine(&s);
	assert_float_equal(s.expected, 600, 1e-9);
	assert_float_equal(s.left.seconds, 660, 1e-9);
	assert_true(s.left.bounded);
	s.deadline = 0; /* the plan or an earlier launch knew better */
	s.expected = 20;
	live_refine(&s);
	assert_float_equal(s.expected, 20, 1e-9);
}

static void no_byte_steers(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
			"plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
		{"\x1b[2J\a\r\n\t\x7f", "\\x1b[2J\\x07\\x0d\\x0a\\x09\\x7f"},
		{"\xc2\x9b"
		 "5n",
			"\\xc2\\x9b5n"}, /* CSI as U+009B */
		{"\x9b"
		 "5n \xff \xc0\x8a \xe2\x82",
			"\\x9b5n \\xff \\xc0\\x8a \\xe2\\x82"},
	};
	char buf[128];
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(fb_safe_text(rows[i].in, buf, sizeof(buf)), rows[i].out);
	char small[8];
	assert_string_equal(fb_safe_text("abc\x1b\x1b", small, sizeof(small)), "abc\\x1b");
	assert_string_equal(fb_safe_text("abcdef\xc3\xa9", small, sizeof(small)), "abcdef");
}

static void the_point_line(void **state)
{
	static struct run r;
	static struct run_part parts[4];
	char buf[1024];
	plan_of_two(&r, parts);
	json_t *result = json_pack("{s:s,s:s,s:f,s:{s:i}}", "metric", "latency", "unit", "ns",
		"value", 1630.0, "params", "size", 64);
	struct fb_told t = {.point = 2,
		.points = 7,
		.name = "verbs.latency/send/64",
		.ended = true,
		.result = result};
	assert_string_equal(live_point_line(&r, &parts[0], 0, &t, buf, sizeof(buf)),
		"[ 1/4] told                     launch 1  point 2/7     "
		"latency 1.63 us at 64 B  verbs.latency/send/64");
	t.name = "a\x1b]0;x\a";
	json_object_set_new(result, "metric", json_string("\x1b[2J"));
	assert_string_equal(live_point_line(&r, &parts[0], 0, &t, buf, sizeof(buf)),
		"[ 1/4] told                     launch 1  point 2/7     "
		"\\x1b[2J 1.63 us at 64 B  a\\x1b]0;x\\x07");
	t.result = NULL;
	t.name = "x";
	assert_string_equal(live_point_line(&r, &parts[0], 0, &t, buf, sizeof(buf)),
		"[ 1/4] told                     launch 1  point 2/7     x");
	json_decref(result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_left),
		cmocka_unit_test(values),
		cmocka_unit_test(clocks),
		cmocka_unit_test(the_line),
		cmocka_unit_test(the_plain_line),
		cmocka_unit_test(points_on_the_line),
		cmocka_unit_test(no_byte_steers),
		cmocka_unit_test(the_point_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
