// SPDX-License-Identifier: Apache-2.0
/* Errors: the first cause stays, the remedy belongs to it, everything fits and ends with NUL. */
#include "bench/core/test.h"

#include <errno.h>
#include <string.h>

#include "bench/core/err.h"

static void test_first_cause_stays(void **st)
{
	struct fb_err e = {0};
	assert_int_equal(
		fb_fail(&e, FB_EXIT_UNMEASURED, ENODEV, "no device %s", "mlx5_9"), -ENODEV);
	assert_int_equal(fb_fail(&e, FB_EXIT_FAILED, EIO, "later"), -EIO);
	assert_int_equal(fb_fail_usage(&e, "later still"), -EINVAL);
	assert_int_equal(e.code, -ENODEV);
	assert_int_equal(e.exit, FB_EXIT_UNMEASURED);
	assert_string_equal(e.msg, "no device mlx5_9");
	fb_hint(&e, "see %s", "ibv_devices");
	fb_hint(&e, "another");
	assert_string_equal(e.hint, "see ibv_devices");
	char buf[128];
	assert_string_equal(
		fb_err_str(&e, buf, sizeof(buf)), "no device mlx5_9\n  remedy: see ibv_devices");
	fb_err_clear(&e);
	assert_string_equal(fb_err_str(&e, buf, sizeof(buf)), "no error");
	assert_int_equal(fb_fail_usage(&e, "fresh"), -EINVAL);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	assert_string_equal(fb_err_str(&e, buf, sizeof(buf)), "fresh");
}

static void test_codes(void **st)
{
	/* Either sign; 0 is no cause and becomes EIO; no struct loses the text, not the code. */
	struct fb_err e = {0};
	assert_int_equal(fb_fail(&e, FB_EXIT_FAILED, -EPERM, "x"), -EPERM);
	assert_int_equal(e.code, -EPERM);
	fb_err_clear(&e);
	assert_int_equal(fb_fail(&e, FB_EXIT_FAILED, 0, "x"), -EIO);
	assert_int_equal(fb_fail(NULL, FB_EXIT_FAILED, ENOMEM, "x"), -ENOMEM);
	fb_hint(NULL, "x");
	fb_err_clear(NULL);
	fb_err_clear(&e);
	fb_hint(&e, "a remedy of nothing");
	assert_string_equal(e.hint, "");
}

static void test_long_texts_are_cut(void **st)
{
	char text[2000], buf[8] = "1234567";
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	struct fb_err e = {0};
	fb_fail_usage(&e, "%s", text);
	fb_hint(&e, "%s", text);
	assert_int_equal(strlen(e.msg), sizeof(e.msg) - 1);
	assert_int_equal(strlen(e.hint), sizeof(e.hint) - 1);
	assert_string_equal(fb_err_str(&e, buf, 4), "xxx");
	assert_int_equal(buf[4], '5');
	fb_err_str(&e, buf, 0);
	assert_string_equal(buf, "xxx");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_cause_stays),
		cmocka_unit_test(test_codes),
		cmocka_unit_test(test_long_texts_are_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
