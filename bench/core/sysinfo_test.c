// SPDX-License-Identifier: Apache-2.0
/* Facts of a host, read from a recorded tree; the environment; anonymous copies. */
#include "bench/core/test.h"

#include <stdlib.h>
#include <string.h>

#include "bench/core/anon.h"
#include "bench/core/json.h"
#include "bench/core/sysinfo.h"

#define TREE "bench/core/testdata/sysroot"

static json_t *recorded(bool anonymous)
{
	struct fb_sysroot r;
	struct fb_err e = {0};
	assert_int_equal(fb_sysroot_open(&r, TREE, &e), 0);
	json_t *host = fb_sysinfo_host(&r, anonymous);
	fb_sysroot_close(&r);
	assert_non_null(host);
	return host;
}

static json_t *at(json_t *j, const char *key, size_t i)
{
	json_t *v = json_array_get(json_object_get(j, key), i);
	assert_non_null(v);
	return v;
}

static void test_machine(void **state)
{
	(void)state;
	json_t *h = recorded(false);
	assert_string_equal(fb_json_str(h, "name", ""), "node07.example.com");
	assert_string_equal(fb_json_str(h, "os", ""), "Debian GNU/Linux 12 (bookworm)");
	json_t *cpu = json_object_get(h, "cpu");
	assert_string_equal(fb_json_str(cpu, "model", ""), "Intel(R) Xeon(R) Platinum 8480+");
	/* cpu2 is offline. */
	assert_int_equal(fb_json_int(cpu, "threads", 0), 3);
	assert_int_equal(fb_json_int(cpu, "cores", 0), 3);
	assert_int_equal(fb_json_int(cpu, "packages", 0), 2);
	assert_int_equal(json_array_size(json_object_get(cpu, "governors")), 2);
	char *flags = json_dumps(json_object_get(cpu, "flags"), JSON_COMPACT);
	assert_string_equal(flags,
		"[\"avx2\",\"avx512f\",\"amx_tile\",\"amx_bf16\",\"constant_tsc\","
		"\"nonstop_tsc\",\"rdtscp\"]");
	free(flags);
	json_t *kernel = json_object_get(h, "kernel");
	char *boot = json_dumps(json_object_get(kernel, "boot"), JSON_COMPACT);
	assert_string_equal(boot, "[\"isolcpus=2-3\",\"iommu=pt\",\"nohz_full=2-3\"]");
	free(boot);
	assert_int_equal(fb_json_int(at(h, "numa", 1), "memory_bytes", 0), 8157640ll * 1024);
	assert_string_equal(fb_json_str(at(h, "numa", 1), "distance", ""), "10 21");
	json_t *mem = json_object_get(h, "memory");
	assert_int_equal(fb_json_int(mem, "total_bytes", 0), 16315280ll * 1024);
	assert_string_equal(fb_json_str(mem, "transparent_huge_pages", ""), "madvise");
	assert_string_equal(fb_json_str(mem, "locked_memory_limit", ""), "unlimited");
	assert_int_equal(fb_json_int(json_object_get(mem, "huge_pages"), "2048kB", 0), 512);
	/* A recording has no process of ours in it. */
	assert_null(json_object_get(h, "env"));
	assert_null(json_object_get(h, "clock"));
	json_decref(h);
}

static void test_devices(void **state)
{
	(void)state;
	json_t *h = recorded(false);
	json_t *rdma = at(h, "rdma", 0), *nic = at(h, "nics", 0), *gpu = at(h, "gpus", 0);
	assert_string_equal(fb_json_str(rdma, "name", ""), "mlx5_0");
	assert_string_equal(fb_json_str(rdma, "fw", ""), "22.36.1010");
	assert_string_equal(fb_json_str(rdma, "driver", ""), "mlx5_core");
	assert_string_equal(fb_json_str(rdma, "bdf", ""), "0000:3b:00.0");
	assert_int_equal(fb_json_int(rdma, "numa", -1), 0);
	assert_string_equal(json_string_value(at(rdma, "netdevs", 0)), "ens1f0");
	assert_string_equal(fb_json_str(at(rdma, "ports", 0), "state", ""), "ACTIVE");
	assert_string_equal(fb_json_str(at(rdma, "ports", 0), "link_layer", ""), "Ethernet");
	assert_int_equal(json_array_size(json_object_get(h, "nics")), 1); /* lo is none */
	assert_int_equal(fb_json_int(nic, "speed_mbps", 0), 200000);
	assert_int_equal(json_array_size(json_object_get(h, "gpus")), 1);
	assert_string_equal(fb_json_str(gpu, "vendor", ""), "NVIDIA");
	assert_string_equal(fb_json_str(gpu, "driver", ""), "nvidia");
	assert_null(json_object_get(gpu, "numa")); /* -1: unknown */
	json_decref(h);
}

static void test_anonymous_host(void **state)
{
	(void)state;
	json_t *plain = recorded(false), *h = recorded(true);
	char *before = json_dumps(plain, 0), *text = json_dumps(h, 0);
	static const char *const secrets[] = {
		"node07", "example.com", "b8:3f:d2:b5:12:34", "b83f:d203:00b5:1234"};
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
		assert_non_null(strstr(before, secrets[i]));
		assert_null(strstr(text, secrets[i]));
	}
	assert_string_equal(fb_json_str(h, "name", ""), "host0");
	/* What matters for a figure is still there. */
	assert_string_equal(fb_json_str(at(h, "rdma", 0), "bdf", ""), "0000:3b:00.0");
	free(before);
	free(text);
	json_decref(plain);
	json_decref(h);
}

static void assert_anon(const struct fb_anon *a, const char *text, const char *want)
{
	json_t *j = json_string(text), *copy = fb_anon_copy(a, j);
	assert_string_equal(json_string_value(copy), want);
	json_decref(j);
	json_decref(copy);
}

static void test_anonymous_text(void **state)
{
	(void)state;
	struct fb_anon a = {0};
	assert_int_equal(fb_anon_hide(&a, "node07.example.com", "host0"), 0);
	assert_int_equal(fb_anon_hide(&a, "node1", "host1"), 0);
	assert_int_equal(fb_anon_hide(&a, "localhost", "host2"), 0);
	assert_anon(&a, "rank 3 on node07: refused", "rank 3 on host0: refused");
	assert_anon(&a, "NODE07.example.com:18515", "host0:18515");
	assert_anon(&a, "node1,node12", "host1,node12");
	assert_anon(&a, "my-node1 and node1-x", "my-node1 and node1-x");
	assert_anon(&a, "localhost", "localhost");
	assert_anon(&a, "10.1.2.3:18515 and 2001:db8::17", "[ip]:18515 and [ip]");
	assert_anon(&a, "gid fe80:0000:0000:0000:ba3f:d2ff:feb5:1234", "gid [ip]");
	assert_anon(&a, "gid ::ffff:10.1.2.3, up", "gid [ip], up");
	assert_anon(&a, "b8:3f:d2:b5:12:34", "[mac]");
	assert_anon(&a, "0xb83fd20300b51234 0x1f", "[guid] 0x1f");
	assert_anon(&a, "b83f:d203:00b5:1234", "[guid]");
	/* These look like addresses and are none. */
	assert_anon(&a, "0000:3b:00.0 at 12:34:56, firmware 22.36.1010, 1.2.3.4.5",
		"0000:3b:00.0 at 12:34:56, firmware 22.36.1010, 1.2.3.4.5");
	assert_anon(&a, "300.1.2.3 and 64 bytes: done", "300.1.2.3 and 64 bytes: done");
	fb_anon_free(&a);
}

static void test_anonymous_words(void **state)
{
	(void)state;
	/* A host with the name of a word of the schema must not spoil it. */
	struct fb_anon a = {0};
	fb_anon_hide(&a, "lab", "host0");
	json_t *j = json_pack("{s:s,s:s,s:s}", "where", "lab", "note", "on lab", "gid", "x");
	json_t *copy = fb_anon_copy(&a, j);
	assert_string_equal(fb_json_str(copy, "where", ""), "lab");
	assert_string_equal(fb_json_str(copy, "note", ""), "on host0");
	assert_null(json_object_get(copy, "gid"));
	json_decref(copy);
	json_decref(j);
	fb_anon_free(&a);
}

static void test_env(void **state)
{
	(void)state;
	setenv("NCCL_IB_HCA", "mlx5_0", 1);
	setenv("NCCL_CONF_URI", "https://user:pw@host/x", 1);
	setenv("UCX_TLS_KEY_FILE", "/secret", 1);
	setenv("OMPI_MCA_btl_tcp_if_include", "eth0", 1);
	setenv("OMPI_MCA_orte_hnp_uri", "1", 1);
	setenv("HOME_OF_SECRETS", "x", 1);
	json_t *env = fb_sysinfo_env();
	assert_string_equal(fb_json_str(env, "NCCL_IB_HCA", ""), "mlx5_0");
	assert_string_equal(fb_json_str(env, "OMPI_MCA_btl_tcp_if_include", ""), "eth0");
	assert_null(json_object_get(env, "NCCL_CONF_URI"));
	assert_null(json_object_get(env, "UCX_TLS_KEY_FILE"));
	assert_null(json_object_get(env, "OMPI_MCA_orte_hnp_uri"));
	assert_null(json_object_get(env, "HOME_OF_SECRETS"));
	assert_null(json_object_get(env, "PATH"));
	json_decref(env);
}

static void test_live(void **state)
{
	(void)state;
	const struct fb_sysroot live = {.dir = NULL};
	char name[256];
	fb_host_name(name, sizeof(name));
	json_t *h = fb_sysinfo_host(&live, false);
	assert_string_equal(fb_json_str(h, "name", ""), name);
	assert_true(fb_json_int(json_object_get(h, "cpu"), "threads", 0) > 0);
	assert_non_null(fb_json_str(json_object_get(h, "clock"), "source", NULL));
	json_decref(h);
	unsetenv("FABRICBENCH_LAB");
	assert_string_equal(fb_where("cpu"), "cpu");
	setenv("FABRICBENCH_LAB", "1", 1);
	assert_string_equal(fb_where("cpu"), "lab");
	unsetenv("FABRICBENCH_LAB");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_machine),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_anonymous_host),
		cmocka_unit_test(test_anonymous_text),
		cmocka_unit_test(test_anonymous_words),
		cmocka_unit_test(test_env),
		cmocka_unit_test(test_live),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
