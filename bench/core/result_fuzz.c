// SPDX-License-Identifier: Apache-2.0
/* Fuzz target: the reader of result documents, and the table of whatever it accepts. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "bench/core/anon.h"
#include "bench/core/result.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fb_err e = {0};
	json_t *doc = fb_doc_parse((const char *)data, size, "fuzz", &e);
	if (!doc)
		return 0;
	FILE *sink = fopen("/dev/null", "w");
	if (sink) {
		fb_table_print(doc, sink);
		fclose(sink);
	}
	struct fb_anon a = {0};
	json_decref(fb_anon_copy(&a, doc));
	fb_anon_free(&a);
	json_decref(doc);
	return 0;
}
