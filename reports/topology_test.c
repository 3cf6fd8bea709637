// SPDX-License-Identifier: Apache-2.0
/* The topology's part of the page: the plan, what has none, and texts that would be markup. */
#include "bench/core/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/json.h"
#include "reports/report_priv.h"

static const char doc[] =
	"{\"packages\": [], \"numa_nodes\": [], \"gpus\": [{\"name\": \"GPU0\"}], \"nics\": [],"
	" \"rdma_devices\": [], \"paths\": [{\"a\": \"GPU0\", \"b\": \"GPU1\", \"type\": \"NV18\"}],"
	" \"plan\": [{\"gpu\": \"GPU0\", \"nics\": [\"mlx5_<0>\", \"mlx5_1\"], \"path\": \"PIX\","
	" \"rail\": 0, \"numa\": 1, \"cpus\": \"4-7\"}],"
	" \"ambiguous\": [{\"gpu\": \"GPU1\", \"why\": \"2 NICs are equally near\"}],"
	" \"plan_notes\": [\"no local NIC for GPU0\"]}";

static void test_plan(void **state)
{
	char dir[] = "/tmp/fabricbench-topology-XXXXXX", path[128];
	struct fb_strbuf b = {0};
	struct fb_err e = {0};

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/topology.json", dir);
	assert_int_equal(fb_write_file_atomic(path, doc, strlen(doc), &e), 0);
	rep_html_topology(&b, dir);
	assert_false(b.failed);
	assert_non_null(strstr(b.s, "<h3>Plan</h3>"));
	assert_non_null(strstr(b.s, "<td>mlx5_&lt;0&gt;, mlx5_1</td><td>PIX</td>"));
	assert_non_null(strstr(b.s, "<td>4-7</td>"));
	assert_non_null(strstr(b.s, "No plan for GPU1: 2 NICs are equally near."));
	assert_non_null(strstr(b.s, "Plan: no local NIC for GPU0."));
	assert_non_null(strstr(b.s, ">NV18<"));
	fb_strbuf_free(&b);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
