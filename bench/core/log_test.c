// SPDX-License-Identifier: Apache-2.0
/* The logger: levels, prefix, one line per event on stderr and nothing on stdout. */
#include "bench/core/test.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/log.h"

static char out[8192];
static int saved = -1, file = -1;

static void begin(void)
{
	char path[] = "/tmp/fb-log-test-XXXXXX";
	fflush(stderr);
	saved = dup(STDERR_FILENO);
	file = mkstemp(path);
	assert_true(saved >= 0 && file >= 0);
	unlink(path);
	dup2(file, STDERR_FILENO);
}

static const char *end(void)
{
	dup2(saved, STDERR_FILENO);
	close(saved);
	ssize_t n = pread(file, out, sizeof(out) - 1, 0);
	close(file);
	out[n > 0 ? n : 0] = '\0';
	return out;
}

static void test_levels(void **st)
{
	fb_log_set_level(FB_LOG_WARN);
	begin();
	fb_error("one %d", 1);
	fb_warn("two");
	fb_info("three");
	fb_debug("four");
	assert_string_equal(end(), "fabricbench: error: one 1\nfabricbench: warn: two\n");
	assert_true(fb_log_enabled(FB_LOG_WARN));
	assert_false(fb_log_enabled(FB_LOG_INFO));
	fb_log_set_level(FB_LOG_DEBUG);
	begin();
	fb_debug("four");
	assert_string_equal(end(), "fabricbench: debug: four\n");
	fb_log_set_level(FB_LOG_WARN);
}

static void test_environment(void **st)
{
	setenv("FABRICBENCH_LOG", "info", 1);
	fb_log_init();
	assert_true(fb_log_enabled(FB_LOG_INFO));
	assert_false(fb_log_enabled(FB_LOG_DEBUG));
	setenv("FABRICBENCH_LOG", "loud", 1);
	begin();
	fb_log_init();
	assert_string_equal(end(),
		"fabricbench: warn: FABRICBENCH_LOG=loud is not one of error, warn, info, "
		"debug; ignored\n");
	assert_true(fb_log_enabled(FB_LOG_INFO)); /* unchanged */
	unsetenv("FABRICBENCH_LOG");
	fb_log_init();
	fb_log_set_level(FB_LOG_WARN);
}

static void test_prefix_and_errors(void **st)
{
	struct fb_err e = {0};
	fb_fail_usage(&e, "no such host");
	fb_hint(&e, "look at the list");
	fb_log_set_prefix("rank 3");
	begin();
	fb_log_err(&e);
	assert_string_equal(
		end(), "fabricbench rank 3: error: no such host\n  remedy: look at the list\n");
	fb_log_set_prefix(NULL);
	begin();
	fb_error("x");
	assert_string_equal(end(), "fabricbench: error: x\n");
}

static void test_long_lines_end(void **st)
{
	char text[5000];
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	begin();
	fb_error("%s", text);
	const char *s = end();
	assert_true(strlen(s) < 2048 + 1);
	assert_int_equal(s[strlen(s) - 1], '\n');
}

/* What a file or a child gave does not steer the terminal; lines and other scripts stay. */
static void test_nothing_steers(void **st)
{
	begin();
	fb_error("a\x1b[2J\x07\r\x7f \xc2\x9b"
		 "5n \xc3\xa9\tb\n  c");
	assert_string_equal(end(), "fabricbench: error: a?[2J??? ??5n \xc3\xa9\tb\n  c\n");
}

/* stderr is a file here, not a terminal: no progress lines in logs. */
static void test_no_progress_into_files(void **st)
{
	begin();
	fb_progress("%d %%", 50);
	fb_progress_end();
	assert_string_equal(end(), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_prefix_and_errors),
		cmocka_unit_test(test_long_lines_end),
		cmocka_unit_test(test_nothing_steers),
		cmocka_unit_test(test_no_progress_into_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
