// SPDX-License-Identifier: Apache-2.0
/* The wire format: what is written is read back, and what is cut, long or foreign is refused. */
#include "bench/core/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/oob/oob_priv.h"

static void header(void **state)
{
	uint8_t p[OOB_HDR];
	struct oob_hdr h;
	static const uint8_t want[OOB_HDR] = {
		'F', 'B', 'O', 'C', 0, OOB_PROTOCOL, OOB_DATA, 0, 1, 2, 3, 4};
	oob_hdr_put(p, OOB_DATA, 0x01020304);
	assert_memory_equal(p, want, sizeof(want));
	assert_int_equal(oob_hdr_get(p, &h), 0);
	assert_int_equal(h.protocol, OOB_PROTOCOL);
	assert_int_equal(h.type, OOB_DATA);
	assert_int_equal(h.len, 0x01020304);
	p[0] = 'f';
	assert_int_equal(oob_hdr_get(p, &h), -EPROTO);
	assert_true(oob_is_ours((const uint8_t *)"FB", 2));
	assert_false(oob_is_ours((const uint8_t *)"FX", 2));
	assert_int_equal(oob_frame_limit(0), 0);
	assert_int_equal(oob_frame_limit(OOB_BYE), 0);
	assert_true(oob_frame_limit(OOB_DATA) > FB_OOB_MAX_MSG);
}

static void hello(void **state)
{
	struct fb_strbuf b = {0};
	struct oob_hello in = {.version = "1.2.3",
				 .host = "node07",
				 .token = "t\303\244",
				 .role = OOB_RANK,
				 .rank = -1,
				 .size = 256},
			 out;
	oob_hello_put(&b, &in);
	assert_int_equal(oob_hello_get(b.s, b.len, OOB_PROTOCOL, &out), 0);
	assert_memory_equal(&in, &out, sizeof(in));
	/* every shorter one is refused, and so is a longer one */
	for (size_t n = 0; n < b.len; n++)
		assert_int_equal(oob_hello_get(b.s, n, OOB_PROTOCOL, &out), -EPROTO);
	fb_strbuf_addn(&b, "x", 1);
	assert_int_equal(oob_hello_get(b.s, b.len, OOB_PROTOCOL, &out), -EPROTO);
	/* another protocol's hello is read as far as it is promised */
	assert_int_equal(oob_hello_get(b.s, b.len, OOB_PROTOCOL + 1, &out), 0);
	assert_string_equal(out.version, "1.2.3");
	assert_string_equal(out.host, "node07");
	assert_int_equal(out.size, 0);
	/* a host name over the limit; control characters in one */
	static const uint8_t bad[] = "\1v\xff";
	assert_int_equal(oob_hello_get(bad, 3, OOB_PROTOCOL + 1, &out), -EPROTO);
	static const uint8_t esc[] = "\1v\4\x1b[2J";
	assert_int_equal(oob_hello_get(esc, 7, OOB_PROTOCOL + 1, &out), 0);
	assert_string_equal(out.host, "?[2J");
	fb_strbuf_free(&b);
}

static void errors(void **state)
{
	struct fb_strbuf b = {0};
	struct fb_err in = {0}, out;
	char version[OOB_VERSION];
	fb_fail(&in, FB_EXIT_WRONG_DATA, EIO, "it broke");
	fb_hint(&in, "mend it");
	oob_err_put(&b, &in);
	assert_int_equal(oob_err_get(b.s, b.len, version, &out), 0);
	assert_int_equal(out.code, -EIO);
	assert_int_equal(out.exit, FB_EXIT_WRONG_DATA);
	assert_string_equal(out.msg, "it broke");
	assert_string_equal(out.hint, "mend it");
	for (size_t n = 0; n < b.len; n++)
		assert_int_equal(oob_err_get(b.s, n, version, &out), -EPROTO);
	/* a positive code, and an exit status that is none of ours */
	static const uint8_t positive[] = "\1v\0\0\0\5\0\0\0\1\0\0\0";
	assert_int_equal(oob_err_get(positive, 14, version, &out), -EPROTO);
	static const uint8_t odd[] = "\1v\xff\xff\xff\xfb\0\0\0\x2a\0\0\0";
	assert_int_equal(oob_err_get(odd, 14, version, &out), 0);
	assert_int_equal(out.code, -5);
	assert_int_equal(out.exit, FB_EXIT_UNMEASURED);
	fb_strbuf_free(&b);
}

static void welcome(void **state)
{
	struct fb_strbuf b = {0};
	static const char hosts[3][OOB_HOST] = {"a", "", "node02"};
	char got[3][OOB_HOST];
	oob_welcome_put(&b, hosts, 3);
	assert_int_equal(oob_welcome_get(b.s, b.len, got, 3), 0);
	assert_string_equal(got[2], "node02");
	assert_int_equal(oob_welcome_get(b.s, b.len, got, 2), -EPROTO);
	for (size_t n = 0; n < b.len; n++)
		assert_int_equal(oob_welcome_get(b.s, n, got, 3), -EPROTO);
	fb_strbuf_free(&b);
}

static void words(void **state)
{
	char buf[40];
	struct fb_strbuf b = {0};
	assert_string_equal(oob_printable("SSH-2.0-x\r\nmore", 15, buf, sizeof(buf)), "SSH-2.0-x");
	assert_string_equal(oob_printable("\1\2\xff", 3, buf, sizeof(buf)), "???");
	assert_string_equal(oob_printable("abcdefghijklmnopqrstuvwxyz", 26, buf, sizeof(buf)),
		"abcdefghijklmnopqrstuvwx...");
	assert_string_equal(oob_printable("abc", 3, buf, 6), "ab");
	assert_true(oob_token_equal("", ""));
	assert_true(oob_token_equal("abc", "abc"));
	assert_false(oob_token_equal("abc", "abd"));
	assert_false(oob_token_equal("abc", "abcabc"));
	assert_false(oob_token_equal("abcabc", "abc"));
	assert_false(oob_token_equal("a", ""));
	assert_false(oob_token_equal("", "a"));
	const bool has[] = {true, false, true, false, false, true, false, false, false};
	oob_missing(&b, has, 9);
	assert_string_equal(b.s, "1, 3, 4, 6-8");
	fb_strbuf_free(&b);
}

static void test_switch(void **state)
{
	uint8_t p[OOB_HDR];
	assert_int_equal(oob_protocol(), OOB_PROTOCOL);
	setenv("FABRICBENCH_TEST_PROTOCOL", "7", 1);
	assert_int_equal(oob_protocol(), 7);
	oob_hdr_put(p, OOB_HELLO, 0);
	assert_int_equal(p[5], 7);
	setenv("FABRICBENCH_TEST_PROTOCOL", "x", 1);
	assert_int_equal(oob_protocol(), OOB_PROTOCOL);
	unsetenv("FABRICBENCH_TEST_PROTOCOL");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header),
		cmocka_unit_test(hello),
		cmocka_unit_test(errors),
		cmocka_unit_test(welcome),
		cmocka_unit_test(words),
		cmocka_unit_test(test_switch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
