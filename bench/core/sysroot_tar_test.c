// SPDX-License-Identifier: Apache-2.0
/*
 * Recordings as tar files, made here header by header: what is read, and every way out of the
 * private folder that a file may try. Behind each refusal nothing of the folder is left.
 */
#include "bench/core/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "bench/core/json.h"
#include "bench/core/sysroot.h"
#include "bench/core/sysroot_tar.h"

#define BOMB(file) FB_TESTDATA("bench/core", "sysroot_tar/" file)

/* A folder of our own as TMPDIR, so that leftovers are seen. */
static char home[64];

static int make_home(void **state)
{
	if (!fb_sysroot_tar_supported())
		return 0;
	snprintf(home, sizeof(home), "/tmp/fabricbench-tar-test-XXXXXX");
	return mkdtemp(home) && setenv("TMPDIR", home, 1) == 0 ? 0 : -1;
}

static int remove_home(void **state)
{
	unsetenv("TMPDIR");
	fb_sysroot_tar_remove(home[0] ? home : NULL);
	return 0;
}

static unsigned leftovers(void)
{
	DIR *d = opendir(home);
	unsigned n = 0;

	assert_non_null(d);
	for (struct dirent *de; (de = readdir(d));)
		n += strncmp(de->d_name, "fabricbench-recording", 21) == 0;
	closedir(d);
	return n;
}

/* ---- tar files, by hand (POSIX.1-1988 ustar) --------------------------------------------------
 */

struct entry {
	char type; /* '0' file, '1' hard link, '2' link, '3' device, '5' folder */
	const char *name;
	const char *target;
	const char *data;
	size_t pad; /* NULs behind the data, counted in the size */
};

static void put(FILE *f, const struct entry *t)
{
	char h[512] = {0};
	size_t n = (t->data ? strlen(t->data) : 0) + t->pad;
	unsigned sum = 0;

	snprintf(h, 100, "%s", t->name);
	snprintf(h + 100, 8, "0000644");
	snprintf(h + 108, 8, "0000000");
	snprintf(h + 116, 8, "0000000");
	snprintf(h + 124, 12, "%011zo", n);
	snprintf(h + 136, 12, "00000000000");
	memset(h + 148, ' ', 8);
	h[156] = t->type;
	if (t->target)
		snprintf(h + 157, 100, "%s", t->target);
	memcpy(h + 257, "ustar\00000", 8);
	for (size_t i = 0; i < sizeof(h); i++)
		sum += (unsigned char)h[i];
	snprintf(h + 148, 7, "%06o", sum);
	assert_int_equal(fwrite(h, 1, sizeof(h), f), sizeof(h));
	if (t->data)
		fputs(t->data, f);
	for (size_t i = t->pad; i > 0; i--)
		fputc(0, f);
	for (size_t i = n; i % 512; i++)
		fputc(0, f);
}

static void make_tar(char path[128], const struct entry *t, size_t n)
{
	static const char end[1024];

	snprintf(path, 128, "%s/recording.tar", home);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	for (size_t i = 0; i < n; i++)
		put(f, &t[i]);
	assert_int_equal(fwrite(end, 1, sizeof(end), f), sizeof(end));
	assert_int_equal(fclose(f), 0);
}
#define N(a) (sizeof(a) / sizeof(*(a)))

static void need_libarchive(void)
{
	if (!fb_sysroot_tar_supported())
		fb_test_skip("sysroot.tar", "built without libarchive");
}

static void test_read(void **state)
{
	need_libarchive();
	static const struct entry entries[] = {
		{'5', "node17/", NULL, NULL, 0},
		{'0', "node17/sys/class/net/eth0/mtu", NULL, "9000\n", 0},
		{'0', "./node17/sys/class/net/eth0/speed", NULL, "400000\n", 4096 - 7},
		{'2', "node17/sys/class/net/eth1", "eth0", NULL, 0},
		{'1', "node17/sys/class/net/eth0/tx_queue_len", "node17/sys/class/net/eth0/mtu",
			NULL, 0},
		{'0', "node17/sys/config", NULL, "\x86\x80", 4094},
		{'3', "node17/dev-sda", NULL, NULL, 0},
		{'2', "node17/sys/out", "/etc", NULL, 0},
		{'2', "node17/sys/up", "../../../etc", NULL, 0},
	};
	char path[128], buf[8192];
	struct fb_sysroot r;
	struct fb_err e = {0};

	make_tar(path, entries, N(entries));
	if (fb_sysroot_open(&r, path, &e) != 0)
		fail_msg("%s", e.msg);
	assert_false(fb_sysroot_is_live(&r));
	assert_int_equal(leftovers(), 1);
	assert_int_equal(fb_sysroot_read(&r, "/sys/class/net/eth1/mtu", buf, sizeof(buf)), 4);
	assert_string_equal(buf, "9000");
	assert_int_equal(fb_sysroot_read(&r, "/sys/class/net/eth0/speed", buf, sizeof(buf)), 6);
	assert_int_equal(
		fb_sysroot_read(&r, "/sys/class/net/eth0/tx_queue_len", buf, sizeof(buf)), 4);
	/* Not a text: nothing is cut. */
	assert_int_equal(fb_sysroot_read(&r, "/sys/config", buf, sizeof(buf)), 4096);
	assert_false(fb_sysroot_exists(&r, "/dev-sda"));
	/* Links that lead out are not made at all. */
	assert_int_equal(fb_sysroot_realpath(&r, "/sys/out", buf, sizeof(buf)), -ENOENT);
	assert_int_equal(fb_sysroot_realpath(&r, "/sys/up", buf, sizeof(buf)), -ENOENT);
	fb_sysroot_close(&r);
	assert_int_equal(leftovers(), 0);
	fb_sysroot_close(&r);
}

/** The contents of /sys, or of /sys/class/infiniband, without the folders above them. */
static void test_parts_of_sys(void **state)
{
	need_libarchive();
	static const struct entry rdma[] = {
		{'0', "a/b/mlx5_0/ports/1/rate", NULL, "400 Gb/sec (4X NDR)\n", 0},
		{'0', "a/b/mlx5_1/ports/1/rate", NULL, "400 Gb/sec (4X NDR)\n", 0},
	};
	static const struct entry sys[] = {
		{'0', "class/net/eth0/mtu", NULL, "1500\n", 0},
		{'5', "devices", NULL, NULL, 0},
	};
	char path[128];
	struct fb_sysroot r;
	struct fb_err e = {0};

	make_tar(path, rdma, N(rdma));
	assert_int_equal(fb_sysroot_open(&r, path, &e), 0);
	assert_true(fb_sysroot_exists(&r, "/sys/class/infiniband/mlx5_1/ports/1/rate"));
	fb_sysroot_close(&r);
	make_tar(path, sys, N(sys));
	assert_int_equal(fb_sysroot_open(&r, path, &e), 0);
	assert_true(fb_sysroot_exists(&r, "/sys/class/net/eth0/mtu"));
	fb_sysroot_close(&r);
	assert_int_equal(leftovers(), 0);
}

/** A tree beside other things, as hwloc's recordings with dumps of CPUID have it. */
static void test_tree_beside_others(void **state)
{
	need_libarchive();
	static const struct entry one[] = {
		{'0', "node17/cpuid/pu0", NULL, "0\n", 0},
		{'0', "node17/README", NULL, "by hand\n", 0},
		{'0', "node17/fsroot/sys/class/net/eth0/mtu", NULL, "1500\n", 0},
		{'0', "node17/zz/pu1", NULL, "0\n", 0},
	};
	static const struct entry two[] = {
		{'0', "nodes/node17/sys/class/net/eth0/mtu", NULL, "1500\n", 0},
		{'0', "nodes/node18/sys/class/net/eth0/mtu", NULL, "9000\n", 0},
	};
	static const struct entry none[] = {
		{'0', "node17/hwloc-cpuid-info", NULL, "Architecture: x86\n", 0},
		{'0', "node17/pu0", NULL, "0\n", 0},
	};
	char path[128];
	struct fb_sysroot r;
	struct fb_err e = {0};

	make_tar(path, one, N(one));
	assert_int_equal(fb_sysroot_open(&r, path, &e), 0);
	assert_true(fb_sysroot_exists(&r, "/sys/class/net/eth0/mtu"));
	fb_sysroot_close(&r);
	make_tar(path, none, N(none));
	assert_int_equal(fb_sysroot_open(&r, path, &e), 0);
	assert_true(fb_sysroot_exists(&r, "/hwloc-cpuid-info"));
	fb_sysroot_close(&r);
	/* Which of two is not guessed. */
	make_tar(path, two, N(two));
	assert_int_equal(fb_sysroot_open(&r, path, &e), 0);
	assert_false(fb_sysroot_exists(&r, "/sys/class/net/eth0/mtu"));
	fb_sysroot_close(&r);
	assert_int_equal(leftovers(), 0);
}

/** Without TMPDIR a tree lies in memory where any would fit, else on the disk. */
static void test_where(void **state)
{
	need_libarchive();
	static const struct entry one[] = {{'0', "sys/x", NULL, "1\n", 0}};
	struct statvfs fs = {0};
	char path[128], dir[128];
	struct fb_sysroot r;
	struct fb_err e = {0};

	make_tar(path, one, 1);
	unsetenv("TMPDIR");
	assert_int_equal(fb_sysroot_open(&r, path, &e), 0);
	setenv("TMPDIR", home, 1);
	snprintf(dir, sizeof(dir), "%s", r.temp);
	fb_sysroot_close(&r);
	assert_int_not_equal(access(dir, F_OK), 0);
	bool room = access("/dev/shm", W_OK | X_OK) == 0 && statvfs("/dev/shm", &fs) == 0 &&
		    fs.f_bavail * fs.f_frsize >= 3ull << 30 && fs.f_favail >= 1000000;

	if (room)
		assert_memory_equal(dir, "/dev/shm/fabricbench-", 21);
	else
		assert_non_null(strstr(dir, "/fabricbench-recording-"));
}

static void test_ways_out(void **state)
{
	need_libarchive();
	static const struct {
		struct entry entries[2];
		const char *why;
	} cases[] = {
		{{{'0', "/tmp/fabricbench-absolute", NULL, "x\n", 0}}, "leads out"},
		{{{'0', "sys/../../fabricbench-dots", NULL, "x\n", 0}}, "leads out"},
		{{{'1', "sys/shadow", "/etc/shadow", NULL, 0}}, "leads out"},
		{{{'1', "sys/shadow", "sys/../../../etc/passwd", NULL, 0}}, "leads out"},
		{{{'2', "sys/d", "class", NULL, 0}, {'0', "sys/d/x", NULL, "x\n", 0}},
			"through a link"},
		{{{'0', "sys/d", NULL, "x\n", 0}, {'0', "sys/d/x", NULL, "x\n", 0}},
			"through a link"},
	};
	char path[128];
	struct stat st;

	for (size_t i = 0; i < N(cases); i++) {
		struct fb_sysroot r;
		struct fb_err e = {0};

		make_tar(path, cases[i].entries, cases[i].entries[1].name ? 2 : 1);
		assert_int_equal(fb_sysroot_open(&r, path, &e), -EINVAL);
		assert_int_equal(e.exit, FB_EXIT_USAGE);
		if (!strstr(e.msg, cases[i].why))
			fail_msg("case %zu: %s", i, e.msg);
		assert_null(r.dir);
		fb_sysroot_close(&r);
		assert_int_equal(leftovers(), 0);
	}
	assert_int_not_equal(stat("/tmp/fabricbench-absolute", &st), 0);
}

static void write_file(const char *path, const char *data, size_t n)
{
	FILE *f = fopen(path, "a");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static void test_no_recording(void **state)
{
	need_libarchive();
	static const struct entry one[] = {{'0', "sys/x", NULL, "1\n", 0}};
	char path[128], other[128];
	struct fb_sysroot r;
	struct fb_err e = {0};

	snprintf(other, sizeof(other), "%s/other", home);
	write_file(other, "not a tar file at all\n", 22);
	assert_int_equal(fb_sysroot_open(&r, other, &e), -EINVAL);
	assert_non_null(strstr(e.hint, ".tar"));
	/* Cut in the middle of a file's contents. */
	make_tar(path, one, 1);
	assert_int_equal(truncate(path, 513), 0);
	fb_err_clear(&e);
	assert_int_equal(fb_sysroot_open(&r, path, &e), -EINVAL);
	assert_int_equal(truncate(path, 0), 0);
	fb_err_clear(&e);
	assert_int_equal(fb_sysroot_open(&r, path, &e), -EINVAL);
	assert_int_equal(leftovers(), 0);
}

/** Eight GiB of zeros in a few dozen KiB. */
static void test_bomb(void **state)
{
	need_libarchive();
	char path[128], *data;
	size_t n;
	struct fb_sysroot r;
	struct fb_err e = {0};

	snprintf(path, sizeof(path), "%s/bomb.tar.gz", home);
	assert_int_equal(fb_read_file(BOMB("bomb-head.gz"), 1 << 20, &data, &n, &e), 0);
	write_file(path, data, n);
	free(data);
	assert_int_equal(fb_read_file(BOMB("bomb-1mib.gz"), 1 << 20, &data, &n, &e), 0);
	for (int i = 0; i < 40; i++)
		write_file(path, data, n);
	free(data);
	assert_int_equal(fb_sysroot_open(&r, path, &e), -EFBIG);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	assert_int_equal(leftovers(), 0);
}

static void test_no_room(void **state)
{
	need_libarchive();
	static const struct entry one[] = {{'0', "sys/x", NULL, "1\n", 0}};
	char path[128];
	struct fb_sysroot r;
	struct fb_err e = {0};

	make_tar(path, one, 1);
	setenv("TMPDIR", "/nonexistent", 1);
	assert_int_equal(fb_sysroot_open(&r, path, &e), -ENOENT);
	setenv("TMPDIR", home, 1);
	assert_int_equal(e.exit, FB_EXIT_UNMEASURED);
	assert_non_null(strstr(e.hint, "TMPDIR"));
}

static void test_without_libarchive(void **state)
{
	struct fb_sysroot r;
	struct fb_err e = {0};

	if (fb_sysroot_tar_supported())
		return;
	assert_int_equal(fb_sysroot_open(&r, BOMB("bomb-head.gz"), &e), -ENOTSUP);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	assert_non_null(strstr(e.hint, "tar -xf"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_parts_of_sys),
		cmocka_unit_test(test_tree_beside_others),
		cmocka_unit_test(test_where),
		cmocka_unit_test(test_ways_out),
		cmocka_unit_test(test_no_recording),
		cmocka_unit_test(test_bomb),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_without_libarchive),
	};

	return cmocka_run_group_tests(tests, make_home, remove_home);
}
