/* SPDX-License-Identifier: Apache-2.0 */
/* Data-sheet peaks of GPUs: the denominators of every share of peak, and how much memory they have.
 * Dense rates only; the sparse ones that data sheets print first are twice as high and belong to no
 * dense product. */
#ifndef TRAIN_PEAKS_H
#define TRAIN_PEAKS_H

#include <stddef.h>

struct gpu_peak {
	const char *name;   /**< found in the device's name */
	double bf16;        /**< FLOP/s, tensor cores, dense, f32 accumulation */
	double tf32;        /**< FLOP/s, tensor cores, dense */
	double f32;         /**< FLOP/s, without tensor cores */
	double memory;      /**< bytes/s, read and write together */
	const char *source; /**< the data sheet */
	/** Bytes of memory. A data sheet's "80GB" is 80 * 2^30: the driver reports that less half a
	 * percent (81559 MiB on an H100, 143771 MiB on an H200). */
	double capacity;
	const char *label; /**< the product, for tables: "H100 SXM 80GB"; NULL: a second name of
			      another row */
};

/** By the device's name as the driver gives it; NULL: not in the table. */
const struct gpu_peak *gpu_peak_of(const char *device_name);
/** All rows. */
const struct gpu_peak *gpu_peak_all(size_t *n);

#endif
