// SPDX-License-Identifier: Apache-2.0
/* The door to /sys and /proc, on a recorded tree with links that try to get out of it. */
#include "bench/core/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/sysroot.h"
#include "bench/core/sysroot_tar.h"

#define TREE "bench/core/testdata/sysroot"

static struct fb_sysroot tree;

static int open_tree(void **state)
{
	struct fb_err e = {0};
	(void)state;
	return fb_sysroot_open(&tree, TREE, &e);
}

static int close_tree(void **state)
{
	(void)state;
	fb_sysroot_close(&tree);
	return 0;
}

static void test_open(void **state)
{
	(void)state;
	struct fb_sysroot r;
	struct fb_err e = {0};
	assert_int_equal(fb_sysroot_open(&r, NULL, &e), 0);
	assert_true(fb_sysroot_is_live(&r));
	assert_int_equal(fb_sysroot_open(&r, "/", &e), 0);
	assert_true(fb_sysroot_is_live(&r));
	assert_int_equal(fb_sysroot_open(&r, "/no/such/tree", &e), -ENOENT);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	fb_err_clear(&e);
	assert_int_equal(fb_sysroot_open(&r, TREE "/proc/cmdline", &e),
		fb_sysroot_tar_supported() ? -EINVAL : -ENOTSUP);
	assert_false(fb_sysroot_is_live(&tree));
}

static void test_read(void **state)
{
	(void)state;
	char buf[64], small[4];
	assert_int_equal(fb_sysroot_read(&tree, "/trap/seven", buf, sizeof(buf)), 3);
	assert_string_equal(buf, "  7");
	assert_int_equal(fb_sysroot_read(&tree, "/trap/empty", buf, sizeof(buf)), 0);
	assert_string_equal(buf, "");
	assert_int_equal(fb_sysroot_read(&tree, "/proc/cmdline", small, sizeof(small)), 3);
	assert_string_equal(small, "BOO");
	assert_int_equal(fb_sysroot_read(&tree, "/trap", buf, sizeof(buf)), -EISDIR);
	assert_int_equal(fb_sysroot_read(&tree, "/no/file", buf, sizeof(buf)), -ENOENT);
	assert_string_equal(buf, "");
	assert_int_equal(
		fb_sysroot_readf(&tree, buf, sizeof(buf), "/sys/class/net/%s/mtu", "lo"), 5);
	assert_string_equal(buf, "65536");
}

static void test_integers(void **state)
{
	(void)state;
	int64_t v = 99;
	assert_int_equal(fb_sysroot_read_i64(&tree, &v, "/trap/%s", "hex"), 0);
	assert_int_equal(v, 31);
	assert_int_equal(fb_sysroot_read_i64(&tree, &v, "/trap/seven"), 0);
	assert_int_equal(v, 7);
	assert_int_equal(fb_sysroot_read_i64(&tree, &v, "/trap/zero"), 0);
	assert_int_equal(v, 0);
	assert_int_equal(
		fb_sysroot_read_i64(&tree, &v, "/sys/bus/pci/devices/0000:5e:00.0/numa_node"), 0);
	assert_int_equal(v, -1);
	v = 99;
	assert_int_equal(fb_sysroot_read_i64(&tree, &v, "/trap/bad"), -EINVAL);
	assert_int_equal(fb_sysroot_read_i64(&tree, &v, "/trap/empty"), -EINVAL);
	assert_int_equal(v, 99);
}

static void test_confined(void **state)
{
	(void)state;
	char buf[256];
	/* /etc/hostname and /etc/passwd are on this machine, not in the tree. */
	assert_int_equal(access("/etc/passwd", R_OK), 0);
	assert_int_equal(fb_sysroot_read(&tree, "/trap/absolute", buf, sizeof(buf)), -ENOENT);
	assert_int_equal(fb_sysroot_read(&tree, "/trap/climbs", buf, sizeof(buf)), -ENOENT);
	assert_int_equal(
		fb_sysroot_read(&tree, "/../../../../../../../../../etc/passwd", buf, sizeof(buf)),
		-ENOENT);
	assert_int_equal(fb_sysroot_read(&tree, "/trap/loop", buf, sizeof(buf)), -ELOOP);
	assert_int_equal(fb_sysroot_read(&tree, "/trap/broken", buf, sizeof(buf)), -ENOENT);
	/* An absolute link leads to the tree's own file. */
	assert_true(fb_sysroot_read(&tree, "/trap/inside", buf, sizeof(buf)) > 0);
	assert_non_null(strstr(buf, "isolcpus=2-3"));
	/* `..` above the top stays at the top. */
	assert_true(fb_sysroot_read(&tree, "/../../proc/meminfo", buf, sizeof(buf)) > 0);
	assert_false(fb_sysroot_exists(&tree, "/trap/absolute"));
	assert_true(fb_sysroot_exists(&tree, "/trap/%s", "inside"));
}

static void test_paths(void **state)
{
	(void)state;
	char buf[512], want[512];
	assert_int_equal(
		fb_sysroot_realpath(&tree, "/sys/class/infiniband/mlx5_0/device", buf, sizeof(buf)),
		0);
	assert_string_equal(buf, "/sys/devices/pci0000:3a/0000:3b:00.0");
	assert_int_equal(fb_sysroot_realpath(&tree, "relative", buf, sizeof(buf)), -EINVAL);
	assert_int_equal(fb_sysroot_realpath(&tree, "/sys/class", buf, 5), -ENAMETOOLONG);
	assert_int_equal(fb_sysroot_path(&tree, "/sys/../sys//class/./net", buf, sizeof(buf)), 0);
	snprintf(want, sizeof(want), "%s/sys/class/net", tree.dir);
	assert_string_equal(buf, want);
	/* What is not there keeps to the tree, too. */
	assert_int_equal(fb_sysroot_path(&tree, "/../../no/such", buf, sizeof(buf)), 0);
	snprintf(want, sizeof(want), "%s/no/such", tree.dir);
	assert_string_equal(buf, want);
}

/* By the kernel and walked here: the same answers, whatever a path does. */
static void test_both_ways(void **state)
{
	static const char *const paths[] = {"/", "/trap", "/trap/seven", "/proc/cmdline",
		"/no/file", "/trap/../proc/cmdline", "/../../proc/cmdline", "/trap/seven/below",
		"//proc//./cmdline", "/trap/absolute", "/trap/climbs", "/trap/loop",
		"/trap/dangling", "proc/cmdline", ""};
	struct fb_sysroot walked = {.dir = tree.dir};
	char **names = NULL;
	(void)state;
	assert_true(tree.top > 0);
	int n = fb_sysroot_list(&walked, "/trap", &names);
	assert_true(n > 3);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]) + (size_t)n; i++) {
		char trap[256], a[4096] = "", b[4096] = "", x[64], y[64];
		char **one = NULL, **two = NULL;
		size_t k = i - (size_t)n;
		if (i < (size_t)n)
			snprintf(trap, sizeof(trap), "/trap/%s", names[i]);
		const char *path = i < (size_t)n ? trap : paths[k];
		int rc = fb_sysroot_realpath(&tree, path, a, sizeof(a));
		assert_int_equal(fb_sysroot_realpath(&walked, path, b, sizeof(b)), rc);
		if (rc == 0)
			assert_string_equal(a, b);
		assert_int_equal(fb_sysroot_read(&tree, path, x, sizeof(x)),
			fb_sysroot_read(&walked, path, y, sizeof(y)));
		assert_string_equal(x, y);
		assert_int_equal(fb_sysroot_exists(&tree, "%s", path),
			fb_sysroot_exists(&walked, "%s", path));
		assert_int_equal(
			fb_sysroot_list(&tree, path, &one), fb_sysroot_list(&walked, path, &two));
		fb_sysroot_names_free(one);
		fb_sysroot_names_free(two);
	}
	fb_sysroot_names_free(names);
}

static void test_list(void **state)
{
	(void)state;
	char **names;
	int n = fb_sysroot_list(&tree, "/sys/devices/system/cpu", &names);
	assert_int_equal(n, 5);
	/* Numbers in order: cpu10 after cpu2. */
	assert_string_equal(names[0], "cpu0");
	assert_string_equal(names[2], "cpu2");
	assert_string_equal(names[3], "cpu10");
	assert_string_equal(names[4], "online");
	assert_null(names[5]);
	fb_sysroot_names_free(names);
	assert_int_equal(fb_sysroot_list(&tree, "/no/such", &names), -ENOENT);
	assert_null(names);
	assert_int_equal(fb_sysroot_list(&tree, "/proc/cmdline", &names), -ENOTDIR);
}

static void test_live(void **state)
{
	(void)state;
	struct fb_sysroot live = {.dir = NULL};
	char buf[256];
	assert_true(fb_sysroot_read(&live, "/proc/self/status", buf, sizeof(buf)) > 0);
	assert_int_equal(fb_sysroot_realpath(&live, "/proc/self", buf, sizeof(buf)), 0);
	assert_int_equal(strtol(buf + strlen("/proc/"), NULL, 10), getpid());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_integers),
		cmocka_unit_test(test_confined),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_both_ways),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_live),
	};
	return cmocka_run_group_tests(tests, open_tree, close_tree);
}
