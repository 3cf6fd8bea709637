// SPDX-License-Identifier: Apache-2.0
/* Completion statuses in words: every one explains itself, and its text fits. */
#include "bench/core/test.h"

#include <errno.h>
#include <string.h>

#include "verbs/wc.h"

static void every_status_has_causes_and_a_next_check(void **state)
{
	(void)state;
	for (int s = IBV_WC_SUCCESS; s <= IBV_WC_TM_RNDV_INCOMPLETE; s++) {
		const struct verbs_wc_info *info = verbs_wc_lookup((enum ibv_wc_status)s);
		assert_int_equal(info->status, s);
		assert_int_equal(strncmp(info->name, "IBV_WC_", 7) == 0 ||
					 strncmp(info->name, "IBV_WC_TM_", 10) == 0,
			1);
		assert_true(strlen(info->causes) > 10);
		assert_true(info->next[0]);
		for (int k = IBV_WC_SUCCESS; k < s; k++)
			assert_string_not_equal(
				info->name, verbs_wc_lookup((enum ibv_wc_status)k)->name);
	}
	assert_non_null(strstr(verbs_wc_lookup((enum ibv_wc_status)99)->name, "unknown"));
}

static void the_longest_text_is_not_cut(void **state)
{
	static const char what[] =
		"fetch_add of 8 B from mlx5_bond_0 to mlx5_bond_0 on a-host-with-a-long-name.example";
	static const uint32_t codes[] = {0x81, 0xf9, 0x51, 0x52, 0x8a, 0x88, 0};

	(void)state;
	for (int s = IBV_WC_SUCCESS + 1; s <= IBV_WC_TM_RNDV_INCOMPLETE; s++) {
		for (unsigned i = 0; i < sizeof codes / sizeof codes[0]; i++) {
			struct ibv_wc wc = {
				.status = (enum ibv_wc_status)s, .vendor_err = codes[i]};
			struct fb_err e = {0};
			const char *next, *text = verbs_wc_vendor(wc.status, wc.vendor_err, &next);
			assert_true(verbs_wc_fail(&e, &wc, what) < 0);
			assert_true(strlen(e.msg) < sizeof e.msg - 1);
			assert_true(strlen(e.hint) < sizeof e.hint - 1);
			assert_non_null(strstr(e.msg, verbs_wc_lookup(wc.status)->name));
			assert_non_null(strstr(e.msg, what));
			if (text)
				assert_non_null(strstr(e.msg, text));
			if (next)
				assert_non_null(strstr(e.hint, next));
		}
	}
}

static void no_answer_at_all_names_the_path(void **state)
{
	struct ibv_wc wc = {.status = IBV_WC_RETRY_EXC_ERR, .vendor_err = 0x81};
	struct fb_err e = {0};

	(void)state;
	assert_int_equal(verbs_wc_fail(&e, &wc, "send of 2 B"), -ETIMEDOUT);
	assert_non_null(strstr(e.msg, "4791"));
	assert_non_null(strstr(e.msg, "GID type"));
	assert_non_null(strstr(e.hint, "ping"));
	assert_non_null(strstr(e.hint, "fabricbench check"));
	assert_int_equal(e.exit, FB_EXIT_UNMEASURED);
}

/* 0x81 is the code of exhausted retries alone: beside another status it says nothing. */
static void a_vendor_code_belongs_to_its_status(void **state)
{
	const char *next;

	(void)state;
	assert_null(verbs_wc_vendor(IBV_WC_REM_OP_ERR, 0x81, &next));
	assert_null(next);
	assert_null(verbs_wc_vendor(IBV_WC_RETRY_EXC_ERR, 0, &next));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_status_has_causes_and_a_next_check),
		cmocka_unit_test(the_longest_text_is_not_cut),
		cmocka_unit_test(no_answer_at_all_names_the_path),
		cmocka_unit_test(a_vendor_code_belongs_to_its_status),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
