/* SPDX-License-Identifier: Apache-2.0 */
/* Data-sheet peaks of GPUs: the denominators of every share of peak. Dense rates only; the sparse
 * ones that data sheets print first are twice as high and belong to no dense product. */
#ifndef TRAIN_PEAKS_H
#define TRAIN_PEAKS_H

struct gpu_peak {
	const char *name;   /**< found in the device's name */
	double bf16;        /**< FLOP/s, tensor cores, dense, f32 accumulation */
	double tf32;        /**< FLOP/s, tensor cores, dense */
	double f32;         /**< FLOP/s, without tensor cores */
	double memory;      /**< bytes/s, read and write together */
	const char *source; /**< the data sheet */
};

/** By the device's name as the driver gives it; NULL: not in the table. */
const struct gpu_peak *gpu_peak_of(const char *device_name);

#endif
