// SPDX-License-Identifier: Apache-2.0
/*
 * Data-sheet peaks. The first row whose name stands in the device's name counts, so a name comes
 * before each that it contains ("GB200" before "B200", "GH200" before "H200").
 */
#include "bench/train/peaks.h"

#include <string.h>

#define GIB 1073741824.0

static const struct gpu_peak peaks[] = {
	{"A100-SXM4-80GB", 312e12, 156e12, 19.5e12, 2.039e12, "NVIDIA A100 80GB data sheet",
		80 * GIB, "A100 SXM 80GB"},
	{"A100-SXM-80GB", 312e12, 156e12, 19.5e12, 2.039e12, "NVIDIA A100 80GB data sheet",
		80 * GIB, NULL},
	{"A100 80GB PCIe", 312e12, 156e12, 19.5e12, 1.935e12, "NVIDIA A100 80GB data sheet",
		80 * GIB, "A100 PCIe 80GB"},
	{"A100", 312e12, 156e12, 19.5e12, 1.555e12, "NVIDIA A100 40GB data sheet", 40 * GIB,
		"A100 40GB"},
	{"H100 PCIe", 756e12, 378e12, 51e12, 2.0e12, "NVIDIA H100 PCIe data sheet, dense", 80 * GIB,
		"H100 PCIe 80GB"},
	{"H100 NVL", 835.5e12, 417.5e12, 60e12, 3.9e12, "NVIDIA H100 data sheet, dense", 94 * GIB,
		"H100 NVL 94GB"},
	{"H100", 989.4e12, 494.7e12, 67e12, 3.35e12, "NVIDIA H100 SXM data sheet, dense", 80 * GIB,
		"H100 SXM 80GB"},
	/* Grace Hopper: an H100 of 96 GB, or one with an H200's memory */
	{"GH200 144G", 989.4e12, 494.7e12, 67e12, 4.9e12, "NVIDIA GH200 data sheet, dense",
		144 * GIB, "GH200 144GB"},
	{"GH200", 989.4e12, 494.7e12, 67e12, 4.0e12, "NVIDIA GH200 data sheet, dense", 96 * GIB,
		"GH200 96GB"},
	{"H200 NVL", 835.5e12, 417.5e12, 60e12, 4.8e12, "NVIDIA H200 data sheet, dense", 141 * GIB,
		"H200 NVL 141GB"},
	{"H200", 989.4e12, 494.7e12, 67e12, 4.8e12, "NVIDIA H200 data sheet, dense", 141 * GIB,
		"H200 SXM 141GB"},
	/* GB200 NVL72: 360 PFLOP/s bf16 with sparsity, 5.76 PFLOP/s f32, 13.4 TB, 576 TB/s over 72
	 * GPUs */
	{"GB200", 2500e12, 1250e12, 80e12, 8.0e12, "NVIDIA GB200 NVL72 data sheet, dense",
		186 * GIB, "GB200 186GB"},
	/* HGX B200: 36 PFLOP/s bf16 with sparsity, 600 TFLOP/s f32, 1.44 TB over 8 GPUs */
	{"B200", 2250e12, 1125e12, 75e12, 8.0e12, "NVIDIA HGX B200 data sheet, dense", 180 * GIB,
		"B200 180GB"},
};

const struct gpu_peak *gpu_peak_of(const char *device_name)
{
	for (size_t i = 0; i < sizeof(peaks) / sizeof(peaks[0]); i++)
		if (strstr(device_name, peaks[i].name))
			return &peaks[i];
	return NULL;
}

const struct gpu_peak *gpu_peak_all(size_t *n)
{
	*n = sizeof(peaks) / sizeof(peaks[0]);
	return peaks;
}
