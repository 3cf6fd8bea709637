// SPDX-License-Identifier: Apache-2.0
/* Finding plug-ins: the folders named when there is none, a file that is none, and each opened
 * once. */
#include "bench/core/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/plugin.h"

static char dir[64];
static char before[4096];

static int setup(void **state)
{
	const char *env = getenv("FABRICBENCH_PLUGINS");
	snprintf(before, sizeof(before), "%s", env ? env : "");
	snprintf(dir, sizeof(dir), "/tmp/fabricbench-plugin.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char path[128];
	for (size_t i = 0; fb_plugin_names[i]; i++) {
		snprintf(path, sizeof(path), "%s/fabricbench-%s.so", dir, fb_plugin_names[i]);
		unlink(path);
	}
	return rmdir(dir);
}

static void unknown(void **state)
{
	struct fb_err e = {0};
	assert_null(fb_plugin_open("rocm", &e));
	assert_int_equal(e.exit, FB_EXIT_USAGE);
}

static void the_searched_folders_are_named(void **state)
{
	struct fb_err e = {0};
	char list[128];
	snprintf(list, sizeof(list), "/nonexistent:%s", dir);
	setenv("FABRICBENCH_PLUGINS", list, 1);
	/* the tests stand in a folder of their own: no plug-in is beside them */
	assert_null(fb_plugin_open("nccl", &e));
	assert_int_equal(e.code, -ENOENT);
	assert_int_equal(e.exit, FB_EXIT_SKIP);
	assert_non_null(strstr(e.msg, "/nonexistent, "));
	assert_non_null(strstr(e.msg, dir));
	assert_non_null(strstr(e.msg, "/lib/fabricbench"));
	assert_non_null(strstr(e.hint, "make nccl"));
}

static void a_file_that_is_no_plugin(void **state)
{
	struct fb_err e = {0};
	char path[128];
	snprintf(path, sizeof(path), "%s/fabricbench-dnnl.so", dir);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs("text", f);
	fclose(f);
	setenv("FABRICBENCH_PLUGINS", dir, 1);
	assert_null(fb_plugin_open("dnnl", &e));
	assert_int_equal(e.code, -ELIBACC);
	assert_non_null(strstr(e.msg, path));
	unlink(path);
	/* a library, but none of ours; a failure is not remembered */
	fb_err_clear(&e);
	if (symlink("/lib/x86_64-linux-gnu/libm.so.6", path) != 0 || access(path, R_OK) != 0)
		fb_test_skip("plugin-foreign", "libm.so.6 is not where Debian has it");
	assert_null(fb_plugin_open("dnnl", &e));
	assert_int_equal(e.code, -ENOEXEC);
	assert_non_null(strstr(e.msg, FB_PLUGIN_SYMBOL));
}

static void opened_once(void **state)
{
	struct fb_err e = {0};
	char found[256];
	setenv("FABRICBENCH_PLUGINS", before, 1);
	const struct fb_plugin *p = fb_plugin_open("mpi", &e);
	if (!p)
		fb_test_skip("plugin-mpi", "%s", e.msg);
	assert_ptr_equal(fb_plugin_open("mpi", &e), p);
	assert_string_equal(p->name, "mpi");
	assert_int_equal(p->abi, FB_PLUGIN_ABI);
	assert_int_equal(p->probe(found, sizeof(found), &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown),
		cmocka_unit_test(the_searched_folders_are_named),
		cmocka_unit_test(a_file_that_is_no_plugin),
		cmocka_unit_test(opened_once),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
