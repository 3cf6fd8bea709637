// SPDX-License-Identifier: Apache-2.0
/*
 * Data-sheet peaks. The first row whose name stands in the device's name counts, so the longer
 * names come first.
 */
#include "bench/train/peaks.h"

#include <stddef.h>
#include <string.h>

static const struct gpu_peak peaks[] = {
	/* NVIDIA HGX B200: 36 PFLOP/s bf16 with sparsity over 8 GPUs, 600 TFLOP/s f32 over 8 */
	{"B200", 2250e12, 1125e12, 75e12, 8.0e12, "NVIDIA HGX B200 data sheet, dense"},
	{"H200 NVL", 835.5e12, 417.5e12, 60e12, 4.8e12, "NVIDIA H200 data sheet, dense"},
	{"H200", 989.4e12, 494.7e12, 67e12, 4.8e12, "NVIDIA H200 data sheet, dense"},
	{"H100 NVL", 835.5e12, 417.5e12, 60e12, 3.9e12, "NVIDIA H100 data sheet, dense"},
	{"H100 PCIe", 756e12, 378e12, 51e12, 2.0e12, "NVIDIA H100 PCIe data sheet, dense"},
	{"H100", 989.4e12, 494.7e12, 67e12, 3.35e12, "NVIDIA H100 SXM data sheet, dense"},
	{"A100-SXM4-80GB", 312e12, 156e12, 19.5e12, 2.039e12, "NVIDIA A100 80GB data sheet"},
	{"A100 80GB PCIe", 312e12, 156e12, 19.5e12, 1.935e12, "NVIDIA A100 80GB data sheet"},
	{"A100", 312e12, 156e12, 19.5e12, 1.555e12, "NVIDIA A100 40GB data sheet"},
};

const struct gpu_peak *gpu_peak_of(const char *device_name)
{
	for (size_t i = 0; i < sizeof(peaks) / sizeof(peaks[0]); i++)
		if (strstr(device_name, peaks[i].name))
			return &peaks[i];
	return NULL;
}
