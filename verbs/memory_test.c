// SPDX-License-Identifier: Apache-2.0
/* Kinds of memory: host memory for real, huge pages from a recorded machine and by refusal, a GPU's
 * by the table that host memory fills, which cannot do dma-buf. */
#include "bench/core/test.h"

#include <errno.h>
#include <string.h>

#include "bench/mem/mem.h"
#include "verbs/cm.h"
#include "verbs/memory.h"

static void host_memory(void **state)
{
	struct verbs_mem m;
	struct fb_err e = {0};
	uint8_t got[4];

	assert_int_equal(verbs_mem_alloc(&m, VERBS_MEM_HOST, 0, 10000, -1, &e), 0);
	assert_true(verbs_mem_on_host(&m));
	assert_int_equal(m.len, 10000);
	assert_true(m.map_len >= 10000);
	assert_int_equal(m.p[9999], 0);
	assert_int_equal(verbs_mem_put(&m, 9996, "abcd", 4, &e), 0);
	assert_memory_equal(m.p + 9996, "abcd", 4);
	assert_int_equal(verbs_mem_get(&m, 9996, got, 4, &e), 0);
	assert_memory_equal(got, "abcd", 4);
	verbs_mem_free(&m);
	assert_null(m.p);
	verbs_mem_free(&m);
}

static void huge_pages_as_recorded(void **state)
{
	char with[] = "verbs/testdata/huge-some", without[] = "verbs/testdata/huge-none";
	const struct fb_sysroot some = {.dir = with}, none = {.dir = without};
	uint64_t size, total, left;

	verbs_huge_pages(&some, &size, &total, &left);
	assert_int_equal(size, 2u << 20);
	assert_int_equal(total, 64);
	assert_int_equal(left, 30 - 6); /* what is promised to others is not free */
	verbs_huge_pages(&none, &size, &total, &left);
	assert_int_equal(size, 0);
	assert_int_equal(total, 0);
	assert_int_equal(left, 0);
}

/* More than any machine has: refused with figures and a remedy, whatever is reserved here. */
static void huge_pages_refused(void **state)
{
	struct verbs_mem m;
	struct fb_err e = {0};

	assert_int_equal(verbs_mem_alloc(&m, VERBS_MEM_HUGE, 0, (size_t)1 << 44, -1, &e), -ENOMEM);
	assert_int_equal(e.exit, FB_EXIT_UNMEASURED);
	assert_non_null(strstr(e.msg, "huge pages"));
	assert_true(strstr(e.hint, "vm.nr_hugepages") || strstr(e.hint, "--memory host"));
	verbs_mem_free(&m);
}

static void gpu_by_its_table(void **state)
{
	struct verbs_mem m;
	struct fb_err e = {0};
	uint8_t got[8];

	assert_int_equal(verbs_mem_alloc_ops(&m, &fb_mem_host, 0, 4096, &e), 0);
	assert_false(verbs_mem_on_host(&m));
	assert_int_equal(verbs_mem_put(&m, 4088, "12345678", 8, &e), 0);
	assert_int_equal(verbs_mem_get(&m, 4088, got, 8, &e), 0);
	assert_memory_equal(got, "12345678", 8);
	verbs_mem_free(&m);
	assert_int_equal(verbs_mem_alloc_ops(&m, &fb_mem_host, 1, 4096, &e), -ENODEV);
	assert_non_null(strstr(e.msg, "gpu:1"));
}

static void manager_addresses(void **state)
{
	struct sockaddr_storage ss;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	union ibv_gid g;

	assert_int_equal(verbs_gid_parse("10.1.2.3", &g), 0);
	assert_int_equal(verbs_cm_sockaddr(&g, 7, 4000, &ss), sizeof in);
	memcpy(&in, &ss, sizeof in);
	assert_int_equal(in.sin_family, AF_INET);
	assert_int_equal(ntohs(in.sin_port), 4000);
	assert_int_equal(ntohl(in.sin_addr.s_addr), 0x0a010203);
	assert_int_equal(verbs_gid_parse("fd00::1", &g), 0);
	assert_int_equal(verbs_cm_sockaddr(&g, 7, 0, &ss), sizeof in6);
	memcpy(&in6, &ss, sizeof in6);
	assert_int_equal(in6.sin6_family, AF_INET6);
	assert_int_equal(in6.sin6_scope_id, 0);
	assert_memory_equal(&in6.sin6_addr, g.raw, 16);
	assert_int_equal(verbs_gid_parse("fe80::1", &g), 0);
	assert_int_equal(verbs_cm_sockaddr(&g, 7, 0, &ss), sizeof in6);
	memcpy(&in6, &ss, sizeof in6);
	assert_int_equal(in6.sin6_scope_id, 7); /* a link-local address means nothing without it */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host_memory),
		cmocka_unit_test(huge_pages_as_recorded),
		cmocka_unit_test(huge_pages_refused),
		cmocka_unit_test(gpu_by_its_table),
		cmocka_unit_test(manager_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
