// SPDX-License-Identifier: Apache-2.0
/* Fuzz target: files of expected values, and a run with no results judged by one that was accepted.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "reports/compare_expected.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct expected x;
	struct fb_err e = {0};
	char *text = malloc(size + 1);
	json_t *doc = json_pack("{s:[{s:s, s:s, s:s, s:f, s:s, s:{s:i}}]}", "results", "case",
		"verbs.bandwidth/write", "metric", "bandwidth", "unit", "bytes/s", "value", 4e10,
		"where", "hardware", "params", "size", 1 << 20);
	if (text && doc) {
		memcpy(text, data, size);
		text[size] = '\0';
		if (expected_parse(text, "fuzz.csv", &x, &e) == 0) {
			if (x.n > 0 && expected_judge(&x, x.row[0].kind, doc, &e) == 0)
				json_decref(expected_json(&x, x.row[0].kind));
			expected_free(&x);
		}
	}
	json_decref(doc);
	free(text);
	return 0;
}
