/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: is a page closed, and inert? */
#ifndef REPORTS_TEST_PAGE_H
#define REPORTS_TEST_PAGE_H

#include "bench/core/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Every element is closed in order; attribute values are quoted; no script, nothing from elsewhere.
 */
static inline void well_formed(const char *page)
{
	char open[64][24];
	size_t depth = 0;
	const char *c = strchr(page, '<');
	assert_int_equal(strncmp(page, "<!DOCTYPE html>\n", 16), 0);
	for (c = page + 15; (c = strchr(c, '<')) != NULL;) {
		char name[24] = "";
		const char *end = c + 1;
		bool in_quotes = false;
		while (*end && (in_quotes || *end != '>')) {
			in_quotes = *end == '"' ? !in_quotes : in_quotes;
			assert_false(!in_quotes && *end == '<');
			end++;
		}
		assert_true(*end == '>');
		bool closing = c[1] == '/';
		sscanf(c + 1 + closing, "%23[a-zA-Z0-9]", name);
		assert_true(name[0] != '\0');
		assert_string_not_equal(name, "script");
		if (closing) {
			assert_true(depth > 0);
			assert_string_equal(open[--depth], name);
		} else if (end[-1] != '/') {
			assert_true(depth < 64);
			memcpy(open[depth++], name, sizeof(name));
		}
		c = end;
	}
	assert_int_equal(depth, 0);
	assert_null(strstr(page, "src=\"http"));
	assert_null(strstr(page, "<script"));
}

#endif
