// SPDX-License-Identifier: Apache-2.0
/* The Claims section: every claim with its verdict, nothing without claims, hostile texts escaped.
 */
#include "bench/core/test.h"

#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/result.h"
#include "reports/claims.h"

static char *section_of(const json_t *doc)
{
	struct fb_strbuf b = {0};
	rep_html_claims(&b, doc);
	return fb_strbuf_take(&b);
}

static void section_of_a_document(void **state)
{
	(void)state;
	struct fb_err e = {0};
	json_t *doc = fb_doc_load("reports/testdata/every-key.json", &e);
	assert_non_null(doc);
	char *s = section_of(doc);
	assert_non_null(s);
	static const char *const says[] = {"<h2>Claims</h2>",
		"2 published figures: 0 possible, 1 impossible, 0 depends, 1 unsourced.",
		"<td class=\"invalid\">impossible</td><td class=\"n\">146 %</td>",
		"<td class=\"suspect\">unsourced</td><td class=\"n\">-</td>", "3420 tok/s",
		"loss scaling"};
	for (size_t i = 0; i < sizeof(says) / sizeof(says[0]); i++)
		if (!strstr(s, says[i]))
			fail_msg("the section does not say %s", says[i]);
	free(s);
	json_object_del(doc, "claims");
	s = section_of(doc);
	assert_true(!s || s[0] == '\0');
	free(s);
	json_decref(doc);
}

static void hostile_texts(void **state)
{
	(void)state;
	static const char text[] =
		"{\"claims\":[{\"id\":\"<b>&\\\"\",\"verdict\":\"<i>\",\"factor_pct\":\"x\",\"why\":\"<script>\","
		"\"claimed\":\"<u>\",\"source\":\"</td>\"}, 7, null]}";
	struct fb_err e = {0};
	json_t *doc = fb_json_parse(text, sizeof(text) - 1, "t", &e);
	assert_non_null(doc);
	char *s = section_of(doc);
	assert_non_null(s);
	assert_null(strstr(s, "<script>"));
	assert_null(strstr(s, "<b>"));
	assert_null(strstr(s, "<u>"));
	assert_null(strstr(s, "<i>"));
	assert_non_null(strstr(s, "&lt;script&gt;"));
	free(s);
	json_decref(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(section_of_a_document),
		cmocka_unit_test(hostile_texts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
