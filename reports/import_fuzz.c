// SPDX-License-Identifier: Apache-2.0
/* Fuzz target: each importer over any text. The first byte chooses the tool. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "reports/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const tools[] = {
		"perftest", "nccl-tests", "osu", "torchtitan", "megatron"};
	static const struct import_model model = {8e9, 1e15, 32, 4096, 8192, 8};
	struct fb_err e = {0};
	if (size < 1)
		return 0;
	char *text = malloc(size);
	json_t *results = json_array();
	if (text && results) {
		memcpy(text, data + 1, size - 1);
		text[size - 1] = '\0';
		if (import_text(tools[data[0] % 5], "fuzz", text,
			    data[0] & 128 ? "all_reduce" : NULL, &model, 1, results, &e) != 0)
			json_array_clear(results);
	}
	json_decref(results);
	free(text);
	return 0;
}
