// SPDX-License-Identifier: Apache-2.0
/* Sizes, durations, rates and numbers, both ways; edit distance. */
#include "bench/core/test.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "bench/core/units.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void test_sizes(void **st)
{
	static const struct {
		const char *s;
		uint64_t v;
	} good[] = {{"0", 0}, {"64", 64}, {"64K", 65536}, {"64k", 65536}, {"64KiB", 65536},
		{"64Ki", 65536}, {"3B", 3}, {"1M", 1 << 20}, {"2G", UINT64_C(2) << 30},
		{"1T", UINT64_C(1) << 40}, {"7E", UINT64_C(7) << 60},
		{"9223372036854775807", INT64_MAX}, {"0000000000000000000000001", 1}};
	for (size_t i = 0; i < COUNT(good); i++) {
		uint64_t v = 1234;
		assert_int_equal(fb_parse_size(good[i].s, &v, NULL), 0);
		assert_int_equal(v, good[i].v);
	}
	static const struct {
		const char *s;
		int rc;
		const char *msg;
	} bad[] = {
		{"12Q", -EINVAL,
			"\"12Q\" is not a size: unknown suffix \"Q\"; sizes are written 64, 64K, 1M, 2G"},
		{"64KB", -EINVAL,
			"\"64KB\" is not a size: unknown suffix \"KB\"; sizes are written 64, 64K, 1M, 2G"},
		{"", -EINVAL, "\"\" is not a size: it is empty; sizes are written 64, 64K, 1M, 2G"},
		{"-1", -EINVAL,
			"\"-1\" is not a size: it has a sign; sizes are written 64, 64K, 1M, 2G"},
		{"+1", -EINVAL,
			"\"+1\" is not a size: it has a sign; sizes are written 64, 64K, 1M, 2G"},
		{" 1", -EINVAL,
			"\" 1\" is not a size: it starts with no digit; sizes are written 64, 64K, 1M, 2G"},
		{"K", -EINVAL,
			"\"K\" is not a size: it starts with no digit; sizes are written 64, 64K, 1M, 2G"},
		{"1.5M", -EINVAL,
			"\"1.5M\" is not a size: unknown suffix \".5M\"; sizes are written 64, 64K, 1M, 2G"},
		{"1 ", -EINVAL,
			"\"1 \" is not a size: unknown suffix \" \"; sizes are written 64, 64K, 1M, 2G"},
		{"9223372036854775808", -ERANGE,
			"\"9223372036854775808\" is too large for a size (over 2^63-1)"},
		{"8E", -ERANGE, "\"8E\" is too large for a size (over 2^63-1)"},
		{"99999999999999999999999", -ERANGE,
			"\"99999999999999999999999\" is too large for a size (over 2^63-1)"},
	};
	for (size_t i = 0; i < COUNT(bad); i++) {
		uint64_t v = 1234;
		struct fb_err e = {0};
		assert_int_equal(fb_parse_size(bad[i].s, &v, &e), bad[i].rc);
		assert_string_equal(e.msg, bad[i].msg);
		assert_int_equal(e.exit, FB_EXIT_USAGE);
		assert_int_equal(v, 1234);
	}
}

static void test_durations(void **st)
{
	static const struct {
		const char *s;
		uint64_t ns;
	} good[] = {{"10s", 10000000000}, {"500ms", 500000000}, {"20us", 20000}, {"100ns", 100},
		{"5m", 300000000000}, {"5min", 300000000000}, {"2h", 7200000000000},
		{"3", 3000000000}, {"1.5s", 1500000000}, {".5us", 500}, {"0.0000000015", 2},
		{"0.1ns", 0}, {"0", 0}, {"0.1s", 100000000},
		{"1.23456789012345678901234567890s", 1234567890}};
	for (size_t i = 0; i < COUNT(good); i++) {
		uint64_t ns = 1234;
		assert_int_equal(fb_parse_duration(good[i].s, &ns, NULL), 0);
		assert_int_equal(ns, good[i].ns);
	}
	static const char *const bad[] = {
		"", "s", "-1s", "1 s", "1S", "1d", "1e3", "1.2.3", ".", "nan"};
	for (size_t i = 0; i < COUNT(bad); i++) {
		uint64_t ns = 1234;
		struct fb_err e = {0};
		assert_int_equal(fb_parse_duration(bad[i], &ns, &e), -EINVAL);
		assert_non_null(strstr(e.msg, "durations are written 10s, 500ms, 20us, 100ns, 5m"));
		assert_int_equal(ns, 1234);
	}
	uint64_t ns;
	assert_int_equal(fb_parse_duration("9223372036s", &ns, NULL), 0);
	assert_int_equal(fb_parse_duration("9223372037s", &ns, NULL), -ERANGE);
	assert_int_equal(fb_parse_duration("18446744073709551615h", &ns, NULL), -ERANGE);
}

static void test_rates(void **st)
{
	static const struct {
		const char *s;
		double v;
	} good[] = {{"10Gb/s", 1.25e9}, {"5GB/s", 5e9}, {"500MB/s", 5e8}, {"0", 0}, {"8b/s", 1},
		{"1.5Gbit/s", 187500000}, {"100Gbps", 1.25e10}, {"1kB/s", 1000}, {"1TB/s", 1e12}};
	for (size_t i = 0; i < COUNT(good); i++) {
		double v = -1;
		assert_int_equal(fb_parse_rate(good[i].s, &v, NULL), 0);
		assert_float_equal(v, good[i].v, 1e-9 * good[i].v);
	}
	static const char *const bad[] = {
		"", "10", "10G", "10Gb", "Gb/s", "-1Gb/s", "1GiB/s", "1xB/s"};
	for (size_t i = 0; i < COUNT(bad); i++) {
		double v = -1;
		struct fb_err e = {0};
		assert_int_equal(fb_parse_rate(bad[i], &v, &e), -EINVAL);
		assert_non_null(strstr(e.msg, "rates are written 10Gb/s, 5GB/s, 500MB/s"));
		assert_true(v == -1);
	}
	double v;
	assert_int_equal(fb_parse_rate("99999999999999999999Gb/s", &v, NULL), -ERANGE);
}

static void test_numbers(void **st)
{
	uint64_t v = 0;
	assert_int_equal(fb_parse_u64("18446744073709551615", 0, UINT64_MAX, &v, NULL), 0);
	assert_true(v == UINT64_MAX);
	assert_int_equal(fb_parse_u64("0xffFF", 0, UINT64_MAX, &v, NULL), 0);
	assert_int_equal(v, 0xffff);
	assert_int_equal(fb_parse_u64("010", 0, 100, &v, NULL), 0);
	assert_int_equal(v, 10); /* never octal */
	assert_int_equal(fb_parse_u64("18446744073709551616", 0, UINT64_MAX, &v, NULL), -ERANGE);
	assert_int_equal(fb_parse_u64("0x10000000000000000", 0, UINT64_MAX, &v, NULL), -ERANGE);
	assert_int_equal(fb_parse_u64("5", 6, 9, &v, NULL), -ERANGE);
	assert_int_equal(fb_parse_u64("10", 6, 9, &v, NULL), -ERANGE);
	static const char *const bad[] = {"", "0x", "-1", "+1", "1x", "1 ", "x1", "1.0", "1K"};
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(fb_parse_u64(bad[i], 0, UINT64_MAX, &v, NULL), -EINVAL);
	assert_int_equal(v, 10);
}

static void test_formats(void **st)
{
	static const struct {
		uint64_t v;
		const char *s, *exact;
	} sizes[] = {{0, "0 B", "0"}, {3, "3 B", "3"}, {1000, "1000 B", "1000"},
		{1023, "1023 B", "1023"}, {1024, "1 KiB", "1K"}, {65536, "64 KiB", "64K"},
		{1572864, "1.5 MiB", "1536K"}, {1048575, "1 MiB", "1048575"},
		{1047500, "1023 KiB", "1047500"}, {UINT64_C(2) << 30, "2 GiB", "2G"},
		{UINT64_MAX, "16 EiB", "18446744073709551615"}};
	char buf[64];
	for (size_t i = 0; i < COUNT(sizes); i++) {
		assert_string_equal(fb_fmt_size(sizes[i].v, buf, sizeof(buf)), sizes[i].s);
		assert_string_equal(
			fb_fmt_size_exact(sizes[i].v, buf, sizeof(buf)), sizes[i].exact);
		uint64_t back;
		if (sizes[i].v <= INT64_MAX) {
			assert_int_equal(fb_parse_size(buf, &back, NULL), 0);
			assert_int_equal(back, sizes[i].v);
		}
	}
	static const struct {
		double ns;
		const char *s;
	} times[] = {{0, "0 ns"}, {0.5, "0.500 ns"}, {1, "1.00 ns"}, {12.34, "12.3 ns"},
		{999.4, "999 ns"}, {999.6, "1.00 us"}, {1230, "1.23 us"}, {9996, "10.0 us"},
		{45.6e6, "45.6 ms"}, {1e9, "1.00 s"}, {3.6e12, "3600 s"}, {-1230, "-1.23 us"},
		{NAN, "-"}, {INFINITY, "-"}};
	for (size_t i = 0; i < COUNT(times); i++)
		assert_string_equal(fb_fmt_duration(times[i].ns, buf, sizeof(buf)), times[i].s);
	assert_string_equal(fb_fmt_gbps(98.1e9 / 8, buf, sizeof(buf)), "98.1 Gb/s");
	assert_string_equal(fb_fmt_gbps(5e10, buf, sizeof(buf)), "400 Gb/s");
	assert_string_equal(fb_fmt_gbps(1234567, buf, sizeof(buf)), "0.00988 Gb/s");
	assert_string_equal(fb_fmt_gbps(0, buf, sizeof(buf)), "0 Gb/s");
	assert_string_equal(fb_fmt_gbps(NAN, buf, sizeof(buf)), "-");
	assert_string_equal(fb_fmt_duration(1234, buf, 4), "1.2"); /* cut, but terminated */
}

static void test_edit_distance(void **st)
{
	assert_int_equal(fb_edit_distance("", ""), 0);
	assert_int_equal(fb_edit_distance("", "abc"), 3);
	assert_int_equal(fb_edit_distance("write", "write"), 0);
	assert_int_equal(fb_edit_distance("wrte", "write"), 1);
	assert_int_equal(fb_edit_distance("abdc", "abcd"), 1); /* neighbours swapped */
	assert_int_equal(fb_edit_distance("kitten", "sitting"), 3);
	assert_int_equal(fb_edit_distance("ca", "abc"), 3); /* optimal string alignment, not 2 */
	char a[301], b[201];
	memset(a, 'x', 300);
	memset(b, 'x', 200);
	a[300] = b[200] = '\0';
	assert_int_equal(fb_edit_distance(a, b), 100);
	assert_int_equal(fb_edit_distance(b, a), 100);
	assert_int_equal(fb_edit_distance(a, "x"), 299);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_edit_distance),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
