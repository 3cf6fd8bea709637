// SPDX-License-Identifier: Apache-2.0
/* JSON habits, and whole files in and out. */
#include "bench/core/test.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/json.h"

static void test_numbers(void **state)
{
	(void)state;
	json_t *j = json_object();
	fb_json_set_real(j, "a", 1.5, "unused");
	fb_json_set_real(j, "b", NAN, "no sample");
	fb_json_set_real(j, "c", INFINITY, NULL);
	assert_true(json_is_real(json_object_get(j, "a")));
	assert_null(json_object_get(j, "a_reason"));
	assert_true(json_is_null(json_object_get(j, "b")));
	assert_string_equal(fb_json_str(j, "b_reason", ""), "no sample");
	assert_true(json_is_null(json_object_get(j, "c")));
	assert_non_null(json_object_get(j, "c_reason"));
	char *text = json_dumps(j, 0);
	assert_non_null(text);
	free(text);
	json_decref(j);
}

static void test_strings(void **state)
{
	(void)state;
	json_t *j = json_object();
	fb_json_set_str(j, "plain", "abc");
	fb_json_set_str(j, "utf8", "gr\xc3\xbc\xc3\x9f");
	fb_json_set_str(j, "latin1", "gr\xfc\xdf");
	fb_json_set_str(j, "cut", "a\xe2\x82");
	fb_json_set_str(j, "surrogate", "\xed\xa0\x80");
	fb_json_set_str(j, "none", NULL);
	assert_string_equal(fb_json_str(j, "plain", ""), "abc");
	assert_string_equal(fb_json_str(j, "utf8", ""), "gr\xc3\xbc\xc3\x9f");
	assert_string_equal(fb_json_str(j, "latin1", ""), "gr\xef\xbf\xbd\xef\xbf\xbd");
	assert_string_equal(fb_json_str(j, "cut", ""), "a\xef\xbf\xbd\xef\xbf\xbd");
	assert_non_null(fb_json_str(j, "surrogate", NULL));
	assert_null(json_object_get(j, "none"));
	json_decref(j);
}

static void test_getters(void **state)
{
	(void)state;
	json_t *j = json_pack("{s:s,s:i,s:f}", "s", "x", "i", 3, "r", 2.5);
	assert_string_equal(fb_json_str(j, "i", "def"), "def");
	assert_int_equal(fb_json_int(j, "i", -1), 3);
	assert_int_equal(fb_json_int(j, "r", -1), -1);
	assert_true(fb_json_num(j, "i", -1) == 3);
	assert_true(fb_json_num(j, "r", -1) == 2.5);
	assert_true(isnan(fb_json_num(j, "s", NAN)));
	assert_string_equal(fb_json_str(NULL, "s", "def"), "def");
	json_decref(j);
}

struct dir {
	char path[64], file[96];
};

static void make_dir(struct dir *d)
{
	snprintf(d->path, sizeof(d->path), "/tmp/fb-json-XXXXXX");
	assert_non_null(mkdtemp(d->path));
	snprintf(d->file, sizeof(d->file), "%s/out.json", d->path);
}

static void assert_content(const char *path, const char *want)
{
	char *text;
	size_t len;
	struct fb_err e = {0};
	assert_int_equal(fb_read_file(path, 100, &text, &len, &e), 0);
	assert_string_equal(text, want);
	assert_int_equal(len, strlen(want));
	free(text);
}

static void test_files(void **state)
{
	(void)state;
	struct dir d;
	struct fb_err e = {0};
	char link[96], *text;
	size_t len;
	make_dir(&d);
	assert_int_equal(fb_write_file_atomic(d.file, "one", 3, &e), 0);
	assert_int_equal(fb_write_file_atomic(d.file, "two", 3, &e), 0);
	assert_content(d.file, "two");
	assert_int_equal(fb_read_file(d.file, 2, &text, &len, &e), -EFBIG);
	fb_err_clear(&e);
	/* A link stays a link; what it names is replaced. */
	snprintf(link, sizeof(link), "%s/link", d.path);
	assert_int_equal(symlink("out.json", link), 0);
	assert_int_equal(fb_write_file_atomic(link, "three", 5, &e), 0);
	assert_content(d.file, "three");
	struct stat st;
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	/* Nothing is left beside them. */
	unlink(link);
	unlink(d.file);
	assert_int_equal(rmdir(d.path), 0);
}

static void test_write_failures(void **state)
{
	(void)state;
	struct fb_err e = {0};
	struct stat st;
	assert_int_equal(fb_write_file_atomic("/dev/full", "x", 1, &e), -ENOSPC);
	assert_int_equal(e.exit, FB_EXIT_UNMEASURED);
	assert_non_null(strstr(e.msg, "/dev/full"));
	assert_true(e.hint[0] != '\0');
	/* The device is still one: no file took its place. */
	assert_int_equal(stat("/dev/full", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	fb_err_clear(&e);
	assert_int_equal(fb_write_file_atomic("/tmp", "x", 1, &e), -EISDIR);
	fb_err_clear(&e);
	assert_int_equal(fb_write_file_atomic("/no/such/folder/x", "x", 1, &e), -ENOENT);
	fb_err_clear(&e);
	assert_int_equal(fb_write_file_atomic("/tmp/", "x", 1, &e), -EISDIR);
}

static void test_same(void **st)
{
	static const struct {
		const char *a, *b;
		bool same;
	} rows[] = {{"0", "0.0", true}, {"1", "1.5", false}, {"[1, 2.0]", "[1.0, 2]", true},
		{"[1, 2]", "[1]", false},
		{"{\"a\": 1, \"b\": [0]}", "{\"b\": [0.0], \"a\": 1.0}", true},
		{"{\"a\": 1}", "{\"b\": 1}", false}, {"{\"a\": 1}", "{}", false},
		{"{}", "[]", false}, {"\"1\"", "1", false}, {"null", "null", true},
		{"false", "0", false}, {"9007199254740993", "9007199254740992", false}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *a = json_loads(rows[i].a, JSON_DECODE_ANY, NULL),
		       *b = json_loads(rows[i].b, JSON_DECODE_ANY, NULL);
		assert_true(a && b);
		if (fb_json_same(a, b) != rows[i].same || fb_json_same(b, a) != rows[i].same)
			fail_msg("%s and %s", rows[i].a, rows[i].b);
		assert_false(fb_json_same(a, NULL));
		json_decref(a);
		json_decref(b);
	}
	assert_true(fb_json_same(NULL, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_getters),
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_write_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
