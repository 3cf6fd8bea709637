// SPDX-License-Identifier: Apache-2.0
/* Counters of each driver's port, read from trees and normalised: what a driver has no counter for
 * is absent, and never 0. */
#include "bench/core/test.h"

#include <string.h>

#include "bench/core/json.h"
#include "verbs/counters.h"

#define NONE (-1)

struct known {
	const char *driver, *device;
	int64_t grown[VERBS_NUM_CLASSES];
};

/* Sums of the files in testdata/counters/DRIVER/{before,after}. */
static const struct known drivers[] = {
	{"mlx5", "mlx5_0",
		{[VERBS_LOSS_SEEN] = 8,
			[VERBS_NAK] = 3,
			[VERBS_TIMEOUT] = 3,
			[VERBS_RNR] = 4,
			[VERBS_ECN] = 500,
			[VERBS_CNP_SENT] = 400,
			[VERBS_CNP_HANDLED] = 250,
			[VERBS_CNP_IGNORED] = 0,
			[VERBS_ICRC] = 6,
			[VERBS_RETRY_EXHAUSTED] = 1}},
	{"bnxt_re", "bnxt_re0",
		{[VERBS_LOSS_SEEN] = 5,
			[VERBS_NAK] = 0,
			[VERBS_TIMEOUT] = 3,
			[VERBS_RNR] = 1,
			[VERBS_ECN] = NONE,
			[VERBS_CNP_SENT] = NONE,
			[VERBS_CNP_HANDLED] = NONE,
			[VERBS_CNP_IGNORED] = NONE,
			[VERBS_ICRC] = NONE,
			[VERBS_RETRY_EXHAUSTED] = 0}},
	{"irdma", "irdma0",
		{[VERBS_LOSS_SEEN] = NONE,
			[VERBS_NAK] = NONE,
			[VERBS_TIMEOUT] = NONE,
			[VERBS_RNR] = NONE,
			[VERBS_ECN] = 10,
			[VERBS_CNP_SENT] = 6,
			[VERBS_CNP_HANDLED] = 1,
			[VERBS_CNP_IGNORED] = 0,
			[VERBS_ICRC] = NONE,
			[VERBS_RETRY_EXHAUSTED] = NONE}},
	{"efa", "rdmap0s6",
		{[VERBS_LOSS_SEEN] = 2,
			[VERBS_NAK] = NONE,
			[VERBS_TIMEOUT] = NONE,
			[VERBS_RNR] = NONE,
			[VERBS_ECN] = NONE,
			[VERBS_CNP_SENT] = NONE,
			[VERBS_CNP_HANDLED] = NONE,
			[VERBS_CNP_IGNORED] = NONE,
			[VERBS_ICRC] = NONE,
			[VERBS_RETRY_EXHAUSTED] = NONE}},
	{"rxe", "rxe0",
		{[VERBS_LOSS_SEEN] = 17,
			[VERBS_NAK] = 14,
			[VERBS_TIMEOUT] = 29,
			[VERBS_RNR] = 0,
			[VERBS_ECN] = NONE,
			[VERBS_CNP_SENT] = NONE,
			[VERBS_CNP_HANDLED] = NONE,
			[VERBS_CNP_IGNORED] = NONE,
			[VERBS_ICRC] = NONE,
			[VERBS_RETRY_EXHAUSTED] = 1}},
};

static json_t *read_tree(const struct known *k, const char *when)
{
	char path[128];
	struct fb_sysroot r = {.dir = path};
	json_t *j;

	snprintf(path, sizeof path, "verbs/testdata/counters/%s/%s", k->driver, when);
	j = verbs_counters_read(&r, k->device, 1);
	assert_true(json_object_size(j) > 0);
	assert_null(json_object_get(j, "lifespan"));
	return j;
}

static void each_driver(void **state)
{
	for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++) {
		json_t *before = read_tree(&drivers[i], "before"),
		       *after = read_tree(&drivers[i], "after");
		int64_t grown[VERBS_NUM_CLASSES];
		verbs_counters_classify(drivers[i].driver, before, after, grown);
		for (int c = 0; c < VERBS_NUM_CLASSES; c++)
			if (grown[c] != drivers[i].grown[c])
				fail_msg("%s, %s: %lld and not %lld", drivers[i].driver,
					verbs_class_names[c], (long long)grown[c],
					(long long)drivers[i].grown[c]);
		/* The same counters under a driver that is not known here tell nothing. */
		verbs_counters_classify("siw", before, after, grown);
		for (int c = 0; c < VERBS_NUM_CLASSES; c++)
			assert_int_equal(grown[c], -1);
		json_decref(before);
		json_decref(after);
	}
}

static void resets_are_unknown(void **state)
{
	json_t *before = json_pack("{s:i,s:i}", "out_of_sequence", 9, "packet_seq_err", 1);
	json_t *after = json_pack("{s:i,s:i}", "out_of_sequence", 2, "packet_seq_err", 1);
	int64_t grown[VERBS_NUM_CLASSES];

	verbs_counters_classify("mlx5", before, after, grown);
	assert_int_equal(grown[VERBS_LOSS_SEEN], -1);
	assert_int_equal(grown[VERBS_NAK], 0);
	json_decref(before);
	json_decref(after);
}

static const char *two_drivers(const void *arg, const char *source)
{
	return !strncmp(source, "rank1/", 6) ? "irdma" : "rxe";
}
static const char *no_driver(const void *arg, const char *source)
{
	return "";
}

static void results_have_classes(void **state)
{
	json_t *c = json_pack("{s:{s:{s:i,s:i},s:{s:i}},s:{s:{s:i,s:i},s:{s:i}},s:{}}", "before",
		"rxe0/1", "out_of_seq_request", 1, "sent_pkts", 5, "rank1/irdma0/1", "RxECNMrkd", 2,
		"after", "rxe0/1", "out_of_seq_request", 4, "sent_pkts", 50, "rank1/irdma0/1",
		"RxECNMrkd", 2, "delta");
	const json_t *classes, *by;

	assert_non_null(c);
	verbs_counters_extend(c, two_drivers, NULL);
	classes = json_object_get(c, "classes");
	assert_int_equal(json_object_size(classes), VERBS_NUM_CLASSES);
	assert_int_equal(fb_json_int(classes, "loss_seen", -2), 3);
	assert_int_equal(fb_json_int(classes, "ecn", -2), 0); /* counted, and there was none */
	assert_true(json_is_null(json_object_get(classes, "timeout")));
	by = json_object_get(c, "classes_by");
	assert_int_equal(fb_json_int(json_object_get(by, "rxe0/1"), "loss_seen", -2), 3);
	assert_null(json_object_get(json_object_get(by, "rxe0/1"), "ecn"));
	assert_int_equal(fb_json_int(json_object_get(by, "rank1/irdma0/1"), "ecn", -2), 0);
	assert_non_null(strstr(fb_json_str(c, "classes_note", ""), "not available: nak, timeout"));
	verbs_counters_extend(c, no_driver, NULL);
	assert_true(json_is_null(json_object_get(json_object_get(c, "classes"), "loss_seen")));
	json_decref(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_driver),
		cmocka_unit_test(resets_are_unknown),
		cmocka_unit_test(results_have_classes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
