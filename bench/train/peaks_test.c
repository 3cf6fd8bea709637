// SPDX-License-Identifier: Apache-2.0
/* Device names as drivers give them find the right row. */
#include "bench/core/test.h"
#include "bench/train/peaks.h"

static void names_find_their_row(void **state)
{
	static const struct {
		const char *name;
		double bf16, memory;
	} known[] = {
		{"NVIDIA H200, 139 GiB, 0000:19:00.0", 989.4e12, 4.8e12},
		{"NVIDIA H100 80GB HBM3, 79 GiB, 0000:19:00.0", 989.4e12, 3.35e12},
		{"NVIDIA H100 PCIe, 79 GiB", 756e12, 2.0e12},
		{"NVIDIA H100 NVL, 93 GiB", 835.5e12, 3.9e12},
		{"NVIDIA A100-SXM4-80GB, 79 GiB", 312e12, 2.039e12},
		{"NVIDIA A100-SXM4-40GB, 39 GiB", 312e12, 1.555e12},
		{"NVIDIA B200, 178 GiB", 2250e12, 8.0e12},
	};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const struct gpu_peak *p = gpu_peak_of(known[i].name);
		assert_non_null(p);
		assert_true(p->bf16 == known[i].bf16);
		assert_true(p->memory == known[i].memory);
		/* dense tf32 is half of bf16 on every one of them */
		assert_true(p->bf16 / p->tf32 > 1.99 && p->bf16 / p->tf32 < 2.01);
	}
}

static void unknown_devices_have_no_peak(void **state)
{
	assert_null(gpu_peak_of("NVIDIA GeForce RTX 4090, 23 GiB"));
	assert_null(gpu_peak_of("host memory, 23 GiB"));
	assert_null(gpu_peak_of(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_find_their_row),
		cmocka_unit_test(unknown_devices_have_no_peak),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
