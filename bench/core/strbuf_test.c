// SPDX-License-Identifier: Apache-2.0
/* A growing string: growth, escaping, handing over, failure remembered. */
#include "bench/core/test.h"

#include <stdlib.h>
#include <string.h>

#include "bench/core/strbuf.h"

static void test_growth(void **st)
{
	struct fb_strbuf b = {0};
	for (int i = 0; i < 1000; i++)
		fb_strbuf_printf(&b, "%03d,", i);
	assert_int_equal(b.len, 4000);
	assert_true(b.cap > b.len);
	assert_memory_equal(b.s, "000,001,", 8);
	assert_string_equal(b.s + 3992, "998,999,");
	fb_strbuf_addn(&b, "a\0b", 3);
	assert_int_equal(b.len, 4003);
	assert_memory_equal(b.s + 4000, "a\0b", 4);
	char *s = fb_strbuf_take(&b);
	assert_non_null(s);
	free(s);
	assert_null(b.s);
	assert_int_equal(b.len, 0);
}

static void test_empty_is_a_string(void **st)
{
	struct fb_strbuf b = {0};
	fb_strbuf_addn(&b, NULL, 0);
	fb_strbuf_add(&b, "");
	fb_strbuf_printf(&b, "%s", "");
	char *s = fb_strbuf_take(&b);
	assert_string_equal(s, "");
	free(s);
	s = fb_strbuf_take(&b);
	assert_string_equal(s, "");
	free(s);
	fb_strbuf_free(&b);
	fb_strbuf_free(&b);
}

static void test_xml(void **st)
{
	struct fb_strbuf b = {0};
	fb_strbuf_add_xml(&b, "<a b=\"c\">'&\t\n\x01\x1f\xc3\xa9</a>");
	assert_string_equal(b.s,
		"&lt;a b=&quot;c&quot;&gt;&#39;&amp;\t\n\xef\xbf\xbd\xef\xbf\xbd\xc3\xa9&lt;/a&gt;");
	fb_strbuf_free(&b);
	assert_null(b.s);
}

static void test_characters(void **st)
{
	static const char *const bad[] = {"\x80", "\xc1\x81", "\xc3", "\xe2\x82", "\xed\xa0\x80",
		"\xe0\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"};
	assert_int_equal(fb_utf8_len("a"), 1);
	assert_int_equal(fb_utf8_len("\xc3\xa9"), 2);
	assert_int_equal(fb_utf8_len("\xe2\x82\xac"), 3);
	assert_int_equal(fb_utf8_len("\xf0\x9f\x98\x80"), 4);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(fb_utf8_len(bad[i]), 0);
}

static void test_markdown(void **st)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	assert_non_null(f);
	fb_markdown_cell(f, "a|b\n<i>`*\x1b[2J \xc3\xa9 \xc3");
	assert_int_equal(fclose(f), 0);
	assert_string_equal(text, "a\\|b &lt;i>\\`\\*\xef\xbf\xbd\\[2J \xc3\xa9 \xef\xbf\xbd");
	free(text);
}

static void test_failure_is_remembered(void **st)
{
	struct fb_strbuf b = {0};
	fb_strbuf_add(&b, "kept");
	b.failed = true; /* what a failed allocation leaves */
	fb_strbuf_add(&b, "lost");
	fb_strbuf_printf(&b, "%d", 1);
	assert_int_equal(b.len, 4);
	assert_null(fb_strbuf_take(&b));
	assert_null(b.s);
	assert_false(b.failed); /* ready for use again */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_empty_is_a_string),
		cmocka_unit_test(test_xml),
		cmocka_unit_test(test_characters),
		cmocka_unit_test(test_markdown),
		cmocka_unit_test(test_failure_is_remembered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
