// SPDX-License-Identifier: Apache-2.0
/* Device names as drivers give them find the right row. */
#include <string.h>

#include "bench/core/test.h"
#include "bench/train/peaks.h"

static void names_find_their_row(void **state)
{
	static const struct {
		const char *name;
		double bf16, memory;
		int gib;
	} known[] = {
		{"NVIDIA H200, 139 GiB, 0000:19:00.0", 989.4e12, 4.8e12, 141},
		{"NVIDIA H100 80GB HBM3, 79 GiB, 0000:19:00.0", 989.4e12, 3.35e12, 80},
		{"NVIDIA H100 PCIe, 79 GiB", 756e12, 2.0e12, 80},
		{"NVIDIA H100 NVL, 93 GiB", 835.5e12, 3.9e12, 94},
		{"NVIDIA A100-SXM4-80GB, 79 GiB", 312e12, 2.039e12, 80},
		{"NVIDIA A100-SXM4-40GB, 39 GiB", 312e12, 1.555e12, 40},
		{"NVIDIA B200, 178 GiB", 2250e12, 8.0e12, 180},
		{"NVIDIA GB200, 184 GiB", 2500e12, 8.0e12, 186},
		{"NVIDIA GH200 480GB, 94 GiB", 989.4e12, 4.0e12, 96},
		{"NVIDIA GH200 144G HBM3e, 143 GiB", 989.4e12, 4.9e12, 144},
		{"NVIDIA H200 NVL, 139 GiB", 835.5e12, 4.8e12, 141},
		{"NVIDIA A100 80GB PCIe, 79 GiB", 312e12, 1.935e12, 80},
		{"NVIDIA A100-PCIE-40GB, 39 GiB", 312e12, 1.555e12, 40},
		{"NVIDIA A100-SXM-80GB, 79 GiB", 312e12, 2.039e12, 80},
	};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const struct gpu_peak *p = gpu_peak_of(known[i].name);
		assert_non_null(p);
		assert_true(p->bf16 == known[i].bf16);
		assert_true(p->memory == known[i].memory);
		assert_true(p->capacity == known[i].gib * 1073741824.0);
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

/* A row that an earlier one's name hides would never be found. */
static void every_row_is_found_by_its_own_name(void **state)
{
	size_t n, m = 0;
	const struct gpu_peak *all = gpu_peak_all(&n);
	assert_true(n >= 12);
	for (size_t i = 0; i < n; i++) {
		assert_ptr_equal(gpu_peak_of(all[i].name), &all[i]);
		assert_true(all[i].capacity > 0 && all[i].source != NULL);
		for (size_t j = 0; j < i; j++)
			assert_true(!all[i].label || !all[j].label ||
				    strcmp(all[i].label, all[j].label) != 0);
		m += all[i].label != NULL;
	}
	assert_true(m >= 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_find_their_row),
		cmocka_unit_test(unknown_devices_have_no_peak),
		cmocka_unit_test(every_row_is_found_by_its_own_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
