// SPDX-License-Identifier: Apache-2.0
/*
 * Trees: what a description may say and how a wrong one is refused; made identities; and this
 * machine, recorded and read back.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/json.h"
#include "bench/core/sysinfo_dev.h"
#include "verbs/lossless/test_tree.h"
#include "verbs/lossless/tree_anon.h"

static char top[64];

static int make_top(void **state)
{
	snprintf(top, sizeof(top), "/tmp/fb-trees-XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}
static int remove_top(void **state)
{
	return nftw(top, test_tree_remove, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *under_top(const char *name)
{
	static char path[2][128];
	static int k;
	k = !k;
	snprintf(path[k], sizeof(path[k]), "%s/%s", top, name);
	return path[k];
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void words(void **state)
{
	struct test_tree t;
	char buf[256];
	test_tree_make(&t, NULL,
		"device mlx5_0 mlx5_core 0000:3b:00.0 eth2\nport 1\n"
		"@port/state = 4: ACTIVE\n"
		"@pci/numa_node = 1\n"
		"/sys/a/b = one\\n\\ttwo\n"
		"/sys/a/b = three\\nfour\n"
		"/sys/gone/deep/x = 1\n"
		"remove /sys/gone\n"
		"link /sys/l -> /sys/a\n"
		"dir /sys/empty\n"
		"/../../../outside = no\n"
		"counter a name of words 7\n"
		"# a comment\n\n   \n");
	assert_int_equal(fb_sysroot_read(&t.root, "/sys/a/b", buf, sizeof(buf)), 10);
	assert_string_equal(buf, "three\nfour");
	assert_true(fb_sysroot_read(&t.root, "/sys/l/b", buf, sizeof(buf)) > 0);
	assert_true(fb_sysroot_exists(&t.root, "/sys/empty"));
	assert_false(fb_sysroot_exists(&t.root, "/sys/gone"));
	assert_true(fb_sysroot_exists(&t.root, "/outside"));
	assert_true(fb_sysroot_readf(&t.root, buf, sizeof(buf),
			    "/sys/class/infiniband/mlx5_0/device/numa_node") > 0);
	assert_string_equal(buf, "1");
	assert_true(fb_sysroot_realpath(
			    &t.root, "/sys/class/net/eth2/device/driver", buf, sizeof(buf)) == 0);
	assert_string_equal(buf, "/sys/bus/pci/drivers/mlx5_core");
	assert_true(
		fb_sysroot_readf(&t.root, buf, sizeof(buf),
			"/sys/class/infiniband/mlx5_0/ports/1/hw_counters/a name of words") > 0);
	test_tree_close(&t);
}

static void wrong_lines(void **state)
{
	static const char *const lines[] = {"nonsense", "pfc 3", "netdev eth0\npfc 8",
		"netdev eth0\npfc x", "netdev eth0\npfc", "port 1", "@port/state = 1", "@x/y = 1",
		"device a b", "gid 0 v2 ::1", "device m d 0000:00:00.0\nport 1\ngid 0 v2 10.0.0.1",
		"netdev eth0\nets tsa=strict", "netdev eth0\nets prio-tc=1,2,3",
		"netdev eth0\nets x", "netdev eth0\napp dscp 26", "netdev eth0\napp sctp 26 3",
		"netdev eth0\nbuffer y", "netdev eth0\ndcbx yes", "netdev eth0\nstat x",
		"netdev eth0\nstat x -1", "netdev eth0\npause rx=maybe",
		"netdev eth0\napptrust both", "netdev eth0\nno-dcb EINVAL",
		"netdev a-name-that-is-longer-than-any-interface", "env NCCL_IB_TC", "memlock",
		"hidden sys", "link /a /b", "link a -> /b", "dir x", "remove /not/there",
		"include no-such.tree", "include wrong.tree"};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct fb_err e = {0};
		char dir[32];
		snprintf(dir, sizeof(dir), "wrong-%zu", i);
		write_file(under_top("wrong.tree"), lines[i]);
		int rc = tree_expand(under_top("wrong.tree"), under_top(dir), &e);
		if (rc >= 0)
			fail_msg("\"%s\" was taken", lines[i]);
		assert_int_equal(e.exit, FB_EXIT_USAGE);
		assert_non_null(strstr(e.msg, ".tree"));
	}
}

static void only_into_an_empty_folder(void **state)
{
	struct fb_err e = {0};
	write_file(under_top("a.tree"), "/sys/a = 1\n");
	assert_int_equal(mkdir(under_top("full"), 0700), 0);
	write_file(under_top("full/mine"), "kept");
	assert_int_equal(tree_expand(under_top("a.tree"), under_top("full"), &e), -ENOTEMPTY);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	assert_int_not_equal(access(under_top("full/sys"), F_OK), 0);
	fb_err_clear(&e);
	assert_int_equal(tree_record(under_top("full"), false, &e), -ENOTEMPTY);
	fb_err_clear(&e);
	assert_true(tree_record("/", false, &e) < 0);
	fb_err_clear(&e);
	assert_true(tree_record(under_top("no/such/parent"), false, &e) < 0);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	fb_err_clear(&e);
	assert_true(tree_record(under_top("a.tree"), false, &e) < 0);
}

static void made(struct tree_anon *a, const char *path, const char *from, const char *to)
{
	char *text = tree_anon_text(a, path, from, strlen(from));
	assert_non_null(text);
	assert_string_equal(text, to);
	free(text);
}

static void made_identities(void **state)
{
	struct tree_anon a = {.n = 0};
#define GIDS "/sys/devices/x/infiniband/mlx5_0/ports/1/gids/"
	made(&a, GIDS "0", "fe80:0000:0000:0000:526b:4bff:fec1:0a2b\n",
		"fe80:0000:0000:0000:0200:00ff:fe00:0001\n");
	made(&a, GIDS "2", "0000:0000:0000:0000:0000:ffff:c0a8:0107\n",
		"0000:0000:0000:0000:0000:ffff:0a00:0002\n");
	made(&a, GIDS "4", "2a00:1450:0000:0000:0000:0000:0000:2004\n",
		"2001:0db8:0000:0000:0000:0000:0000:0003\n");
	/* the RoCE v2 twin has the same bytes, and keeps them the same */
	made(&a, GIDS "1", "fe80:0000:0000:0000:526b:4bff:fec1:0a2b\n",
		"fe80:0000:0000:0000:0200:00ff:fe00:0001\n");
	made(&a, GIDS "9", "0000:0000:0000:0000:0000:0000:0000:0000\n",
		"0000:0000:0000:0000:0000:0000:0000:0000\n");
	made(&a, GIDS "10", "not a GID of 1.2.3.4", "\n");
	made(&a, "/sys/x/node_guid", "506b:4b03:00c1:0a2b\n", "0200:0000:0000:0001\n");
	made(&a, "/sys/x/sys_image_guid", "506b:4b03:00c1:0a2b\n", "0200:0000:0000:0001\n");
	made(&a, "/sys/x/node_desc", "node17 HCA-1\n", "\n");
	made(&a, "/sys/class/net/eth2/address", "50:6b:4b:c1:0a:2b\n", "02:00:00:00:00:01\n");
	made(&a, "/sys/class/net/eth3/address", "50:6b:4b:c1:0a:2c\n", "02:00:00:00:00:02\n");
	made(&a, "/sys/class/net/eth2/address", "50:6b:4b:c1:0a:2b\n", "02:00:00:00:00:01\n");
	made(&a, "/sys/class/net/lo/address", "00:00:00:00:00:00\n", "00:00:00:00:00:00\n");
	/* a name made of an address */
	made(&a, "/sys/x/ndevs/0", "enx506b4bc10a2b\n", "enx020000000001\n");
	made(&a, "/sys/x/fw_ver", "22.41.1000\n", "22.41.1000\n");
	assert_false(a.failed);
	tree_anon_free(&a);
#undef GIDS
}

/* The serial number of a card is its hardware address with two bytes in the middle. */
static void serial_numbers(void **state)
{
	uint8_t c[4096], before[4096];
	for (size_t i = 0; i < sizeof(c); i++)
		c[i] = (uint8_t)(i * 7 + 1);
	/* AER at 0x100, the serial number at 0x150, ACS after it, and back: a ring. */
	const uint8_t aer[] = {0x01, 0x00, 0x02, 0x15}, serial[] = {0x03, 0x00, 0x01, 0x20},
		      acs[] = {0x0d, 0x00, 0x01, 0x10};
	memcpy(c + 0x100, aer, 4);
	memcpy(c + 0x150, serial, 4);
	memcpy(c + 0x200, acs, 4);
	memcpy(before, c, sizeof(c));
	tree_anon_config(c, sizeof(c));
	memset(before + 0x154, 0, 8);
	assert_memory_equal(c, before, sizeof(c));
	/* Cut off before its end, or without extended space: nothing beyond is touched. */
	memcpy(c + 0x154, serial, 4);
	memcpy(before, c, sizeof(c));
	tree_anon_config(c, 0x158);
	tree_anon_config(c, 64);
	tree_anon_config(c, 0);
	assert_memory_equal(c, before, sizeof(c));
}

/* ---- this machine ---------------------------------------------------------------------------- */

static char own[64][64];
static int owns;

static void add_own(const char *s)
{
	if (strlen(s) >= 4 && owns < 64)
		snprintf(own[owns++], sizeof(own[0]), "%s", s);
}

/* Hardware addresses, in both spellings, and the host's name. */
static void own_identities(void)
{
	const struct fb_sysroot live = {.dir = NULL};
	char **names = NULL, mac[64];
	fb_sysroot_list(&live, "/sys/class/net", &names);
	for (char **p = names; p && *p; p++) {
		if (fb_sysroot_readf(&live, mac, sizeof(mac), "/sys/class/net/%s/address", *p) <=
				0 ||
			strncmp(mac, "00:00:00:00:00:00", 17) == 0)
			continue;
		add_own(mac);
		char *to = mac;
		for (const char *s = mac; *s; s++)
			if (*s != ':')
				*to++ = *s;
		*to = '\0';
		add_own(mac);
	}
	fb_sysroot_names_free(names);
}

static int no_own_identity(const char *path, const struct stat *st, int type, struct FTW *f)
{
	char *text = NULL;
	size_t len;
	struct fb_err e = {0};
	for (int i = 0; i < owns; i++)
		if (strstr(path, own[i]))
			fail_msg("%s is named after %s", path, own[i]);
	if (type != FTW_F || fb_read_file(path, 1 << 22, &text, &len, &e) < 0)
		return 0;
	for (int i = 0; i < owns; i++)
		if (memmem(text, len, own[i], strlen(own[i])))
			fail_msg("%s holds %s", path, own[i]);
	free(text);
	return 0;
}

static void same_fact(const char *what, const struct fact *a, const struct fact *b)
{
	if (a->state != b->state)
		fail_msg("%s: %d (%s) live, %d (%s) recorded", what, a->state, a->why, b->state,
			b->why);
}

/* What is equal of a port whatever moves meanwhile. */
static void same_port(const struct port_facts *a, const struct port_facts *b)
{
	assert_string_equal(a->device, b->device);
	assert_string_equal(a->family, b->family);
	assert_string_equal(a->driver, b->driver);
	assert_string_equal(a->bdf, b->bdf);
	assert_string_equal(a->netdev, b->netdev);
	assert_string_equal(a->state.v, b->state.v);
	assert_string_equal(a->rate.v, b->rate.v);
	assert_int_equal(a->netdev_mtu.v, b->netdev_mtu.v);
	assert_int_equal(a->active_mtu.v, b->active_mtu.v);
	assert_int_equal(a->gids, b->gids);
	for (int i = 0; i < a->gids; i++) {
		assert_int_equal(a->gid[i].index, b->gid[i].index);
		assert_int_equal(a->gid[i].v2, b->gid[i].v2);
		assert_int_equal(a->gid[i].ipv4, b->gid[i].ipv4);
		assert_int_equal(a->gid[i].link_local, b->gid[i].link_local);
	}
	same_fact("pfc", &a->dcb.pfc_f, &b->dcb.pfc_f);
	same_fact("dcbx", &a->dcb.dcbx_f, &b->dcb.dcbx_f);
	same_fact("pause", &a->pause_rx.f, &b->pause_rx.f);
	same_fact("stats", &a->stats_f, &b->stats_f);
	same_fact("counters", &a->counters_f, &b->counters_f);
	same_fact("speed", &a->speed_mbps.f, &b->speed_mbps.f);
	same_fact("trust", &a->trust.f, &b->trust.f);
	same_fact("cma", &a->cma_mode.f, &b->cma_mode.f);
	same_fact("cnp", &a->cnp_dscp.f, &b->cnp_dscp.f);
}

static void this_machine(void **state)
{
	struct fb_err e = {0};
	struct fb_sysroot live = {.dir = NULL}, tree;
	struct node_facts a, b;
	setenv("NCCL_IB_TC", "106", 1);
	setenv("NCCL_SOCKET_IFNAME", "=192.0.2.7", 1);
	assert_int_equal(tree_record(under_top("here"), false, &e), 0);
	assert_int_equal(fb_sysroot_open(&tree, under_top("here"), &e), 0);
	assert_int_equal(facts_read(&live, NULL, &a, &e), 0);
	assert_int_equal(facts_read(&tree, NULL, &b, &e), 0);
	assert_int_equal(a.ports, b.ports);
	for (int i = 0; i < a.ports; i++)
		same_port(&a.port[i], &b.port[i]);
	assert_string_equal(b.host, "recorded");
	assert_true(fact_known(&b.recorded.f));
	assert_int_equal(strlen(b.recorded.v), 20);
	assert_true(a.memlock.v == b.memlock.v);
	assert_true(a.ipc_lock.v == b.ipc_lock.v);
	assert_true(fact_known(&b.env_f));
	assert_string_equal(fb_json_str(b.env, "NCCL_IB_TC", ""), "106");
	assert_null(strstr(fb_json_str(b.env, "NCCL_SOCKET_IFNAME", ""), "192.0.2.7"));
	facts_free(&a);
	facts_free(&b);

	/* The rest of the machine: the same interfaces, made addresses. */
	json_t *nics = fb_sysinfo_nics(&live), *again = fb_sysinfo_nics(&tree);
	assert_int_equal(json_array_size(nics), json_array_size(again));
	for (size_t i = 0; i < json_array_size(nics); i++) {
		json_t *x = json_array_get(nics, i), *y = json_array_get(again, i);
		assert_string_equal(fb_json_str(x, "driver", "-"), fb_json_str(y, "driver", "-"));
		assert_int_equal(fb_json_int(x, "mtu", -1), fb_json_int(y, "mtu", -1));
	}
	json_decref(nics);
	json_decref(again);
	own_identities();
	assert_int_equal(nftw(under_top("here"), no_own_identity, 16, FTW_PHYS), 0);
	fb_sysroot_close(&tree);
}

static void this_machine_with_names(void **state)
{
	struct fb_err e = {0};
	struct fb_sysroot live = {.dir = NULL}, tree;
	char here[64], there[64];
	assert_int_equal(tree_record(under_top("named"), true, &e), 0);
	assert_int_equal(fb_sysroot_open(&tree, under_top("named"), &e), 0);
	assert_true(fb_sysroot_read(&live, "/proc/sys/kernel/hostname", here, sizeof(here)) >= 0);
	assert_true(fb_sysroot_read(&tree, "/proc/sys/kernel/hostname", there, sizeof(there)) >= 0);
	assert_string_equal(here, there);
	/* /sys may not be mounted here: then there is nothing in the recording either. */
	int live_len = fb_sysroot_read(&live, "/sys/class/net/lo/mtu", here, sizeof(here));
	int tree_len = fb_sysroot_read(&tree, "/sys/class/net/lo/mtu", there, sizeof(there));
	assert_int_equal(live_len, tree_len);
	if (live_len >= 0)
		assert_string_equal(here, there);
	fb_sysroot_close(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(words), cmocka_unit_test(wrong_lines),
		cmocka_unit_test(only_into_an_empty_folder), cmocka_unit_test(made_identities),
		cmocka_unit_test(serial_numbers), cmocka_unit_test(this_machine),
		cmocka_unit_test(this_machine_with_names)};
	return cmocka_run_group_tests(tests, make_top, remove_top);
}
