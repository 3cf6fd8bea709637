// SPDX-License-Identifier: Apache-2.0
/* CSV: read back by RFC 4180, every cell is what the document has; hostile texts stay in their
 * cell. */
#include "bench/core/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/result.h"
#include "reports/csv.h"

/* The next cell from *s into buf. @return what ended it: ',', '\n' or 0 */
static int cell(const char **s, char *buf, size_t len)
{
	size_t n = 0;
	bool quoted = **s == '"';
	*s += quoted;
	while (**s) {
		if (quoted && **s == '"') {
			if ((*s)[1] != '"') {
				(*s)++;
				break;
			}
			(*s)++;
		} else if (!quoted && (**s == ',' || **s == '\r')) {
			break;
		}
		assert_true(n + 1 < len);
		buf[n++] = *(*s)++;
	}
	buf[n] = '\0';
	if (**s == ',') {
		(*s)++;
		return ',';
	}
	if (**s == '\0')
		return 0;
	assert_true((*s)[0] == '\r' && (*s)[1] == '\n');
	*s += 2;
	return '\n';
}

static void results_come_back(void **state)
{
	struct fb_err e = {0};
	struct fb_strbuf b = {0};
	char buf[2048];
	json_t *doc = fb_doc_load(FB_TESTDATA("reports", "small.json"), &e), *r;
	size_t i;
	assert_non_null(doc);
	rep_csv_results(&b, doc);
	const char *s = b.s;
	int columns = 1;
	while (cell(&s, buf, sizeof(buf)) == ',')
		columns++;
	assert_int_equal(columns, 15);
	json_array_foreach (json_object_get(doc, "results"), i, r) {
		for (int c = 0; c < columns; c++) {
			int end = cell(&s, buf, sizeof(buf));
			assert_int_equal(end, c + 1 == columns ? '\n' : ',');
			if (c == 0)
				assert_string_equal(buf, fb_json_str(r, "case", ""));
			if (c == 7 && json_is_number(json_object_get(r, "value")))
				assert_true(strtod(buf, NULL) == fb_json_num(r, "value", NAN));
			if (c == 7 && json_is_null(json_object_get(r, "value")))
				assert_string_equal(buf, "");
		}
	}
	assert_int_equal(*s, 0);
	fb_strbuf_free(&b);
	json_decref(doc);
}

static void hostile_texts(void **state)
{
	static const char *const texts[] = {
		"a,b", "say \"no\"", "two\r\nlines", "=1+1", "@x", "", "`id`"};
	json_t *doc = json_object(), *checks = json_array();
	struct fb_strbuf b = {0};
	char buf[256];
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		json_array_append_new(
			checks, json_pack("{s:s,s:s,s:{s:s,s:s}}", "id", "R1", "observed", texts[i],
					"expected", "value", texts[i], "source", "x"));
	json_object_set_new(doc, "checks", checks);
	rep_csv_checks(&b, doc);
	const char *s = b.s;
	while (cell(&s, buf, sizeof(buf)) == ',')
		;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		for (int c = 0; c < 11; c++) {
			cell(&s, buf, sizeof(buf));
			if (c == 4 || c == 5)
				assert_string_equal(
					strchr("=@", texts[i][0]) && *texts[i] ? buf + 1 : buf,
					texts[i]);
			if ((c == 4 || c == 5) && (texts[i][0] == '=' || texts[i][0] == '@'))
				assert_int_equal(buf[0], '\'');
		}
	assert_int_equal(*s, 0);
	fb_strbuf_free(&b);
	json_decref(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_come_back),
		cmocka_unit_test(hostile_texts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
