// SPDX-License-Identifier: Apache-2.0
/* Labels of a run: how they are read, what is refused; and the counters of a host's ports. */
#include "bench/core/test.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/json.h"
#include "bench/train/train_priv.h"

static struct fb_opt_list list(const char **v, size_t n)
{
	return (struct fb_opt_list){.v = v, .n = n};
}

/* Numbers are numbers, in the params and in the case; what only looks like one is text. */
static void values(void **state)
{
	const char *v[] = {"loss=0.1", "transport=mpi over ucx", "rank=-3", "serial=007", "ten=1e1",
		"version=1.2.3", "eq=a=b"};
	struct fb_opt_list l = list(v, sizeof(v) / sizeof(v[0]));
	struct fb_err e = {0};
	char text[64];
	json_t *p = json_object();
	assert_int_equal(train_labels_check(&l, p, &e), 0);
	train_labels_into(&l, p);
	assert_true(json_is_real(json_object_get(p, "loss")));
	assert_true(fb_json_num(p, "loss", 0) == 0.1);
	assert_true(fb_json_num(p, "rank", 0) == -3);
	assert_string_equal(fb_json_str(p, "transport", ""), "mpi over ucx");
	assert_string_equal(fb_json_str(p, "serial", ""), "007");
	assert_string_equal(fb_json_str(p, "ten", ""), "1e1");
	assert_string_equal(fb_json_str(p, "version", ""), "1.2.3");
	assert_string_equal(fb_json_str(p, "eq", ""), "a=b");
	assert_string_equal(train_labels_case(&l, text, sizeof(text)), "/loss=0.1/rank=-3");
	assert_string_equal(train_labels_case(&l, text, 6), "/loss");
	json_decref(p);
}

static void refused(const char *why, const char **v, size_t n)
{
	struct fb_opt_list l = list(v, n);
	struct fb_err e = {0};
	json_t *p = json_pack("{s:i}", "seq", 8);
	assert_int_equal(train_labels_check(&l, p, &e), -EINVAL);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	if (!strstr(e.msg, why))
		fail_msg("\"%s\" does not say \"%s\"", e.msg, why);
	json_decref(p);
}

static void bad(void **state)
{
	static const struct {
		const char *why, *v[2];
		size_t n;
	} cases[] = {
		{"no KEY=VALUE", {"loss"}, 1},
		{"no KEY=VALUE", {"=1"}, 1},
		{"no KEY=VALUE", {""}, 1},
		{"no KEY=VALUE", {"Loss=1"}, 1},
		{"no KEY=VALUE", {"1loss=1"}, 1},
		{"no KEY=VALUE", {"a key=1"}, 1},
		{"no KEY=VALUE", {"a23456789_123456789_12345=1"}, 1},
		{"no value", {"loss="}, 1},
		{"a factor of that name", {"loss=1", "seq=4"}, 2},
		{"given twice", {"loss=1", "loss=2"}, 2},
	};
	const char *nine[9] = {"a=1", "b=1", "c=1", "d=1", "e=1", "f=1", "g=1", "h=1", "i=1"};
	char large[100];
	const char *one = large;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *v[2] = {cases[i].v[0], cases[i].v[1]};
		refused(cases[i].why, v, cases[i].n);
	}
	refused("at most 8", nine, 9);
	snprintf(large, sizeof(large), "key=%090d", 1);
	refused("too long", &one, 1);
}

static void put(const char *dir, const char *path, const char *text)
{
	char full[512];
	snprintf(full, sizeof(full), "%s/%s", dir, path);
	for (char *s = full + strlen(dir) + 1; (s = strchr(s, '/')) != NULL; *s++ = '/') {
		*s = '\0';
		assert_true(mkdir(full, 0755) == 0 || errno == EEXIST);
	}
	FILE *f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static int drop(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	return remove(path);
}

/* Both folders of every port; no lifespan, which is a setting; a port without counters is absent.
 */
static void ports(void **state)
{
	char dir[] = "/tmp/ports-test-XXXXXX";
	char nowhere[] = "/nonexistent";
	struct fb_sysroot r = {0}, none = {.dir = nowhere};
	struct fb_err e = {0};
	json_t *j = train_ports_read(&none);
	assert_int_equal(json_object_size(j), 0);
	json_decref(j);
	assert_non_null(mkdtemp(dir));
	put(dir, "sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts", "12\n");
	put(dir, "sys/class/infiniband/rxe0/ports/1/hw_counters/lifespan", "10\n");
	put(dir, "sys/class/infiniband/rxe0/ports/1/hw_counters/odd", "no number\n");
	put(dir, "sys/class/infiniband/mlx5_0/ports/2/counters/port_xmit_data", "9000000000\n");
	put(dir, "sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
	assert_int_equal(fb_sysroot_open(&r, dir, &e), 0);
	j = train_ports_read(&r);
	assert_int_equal(json_object_size(j), 2);
	assert_int_equal(json_object_size(json_object_get(j, "rxe0/1")), 1);
	assert_int_equal(fb_json_int(json_object_get(j, "rxe0/1"), "sent_pkts", 0), 12);
	assert_true(fb_json_int(json_object_get(j, "mlx5_0/2"), "port_xmit_data", 0) == 9000000000);
	json_decref(j);
	fb_sysroot_close(&r);
	assert_int_equal(nftw(dir, drop, 8, FTW_DEPTH | FTW_PHYS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),
		cmocka_unit_test(bad),
		cmocka_unit_test(ports),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
