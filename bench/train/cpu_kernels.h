/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of the CPU's kernels for one instruction set; cpu_base.c, cpu_avx2.c and cpu_avx512.c
 * include it with CPU_ISA defined and the compiler told what it may use. It includes
 * cpu_kernels_work.h once per work type; double first, whose fold() the others use too.
 *
 * A map's outputs may be its inputs, element for element, which CPU_MAP tells the compiler.
 * A sum keeps CPU_LANES partial sums: element i goes to lane i % CPU_LANES, in order, and the lanes
 * are folded by halves. So its value depends neither on the width of a vector nor on the compiler.
 */
#include "bench/train/cpu_priv.h"
#include "bench/train/elem.h"

#ifdef CPU_ISA

#ifdef __clang__
#define CPU_MAP _Pragma("clang loop vectorize(assume_safety)")
#else
#define CPU_MAP _Pragma("GCC ivdep")
#endif

#define CPU_W        double
#define CPU_G        double
#define CPU_LOAD(v)  (v)
#define CPU_STORE(v) (v)
#define CPU_E(name)  elem_##name##_d
#define CPU_K(name)  name##_f64
#include "bench/train/cpu_kernels_work.h"

#define CPU_W        float
#define CPU_G        float
#define CPU_LOAD(v)  (v)
#define CPU_STORE(v) (v)
#define CPU_E(name)  elem_##name##_f
#define CPU_K(name)  name##_f32
#include "bench/train/cpu_kernels_work.h"

#define CPU_W        uint16_t
#define CPU_G        float
#define CPU_LOAD(v)  elem_from_bf16(v)
#define CPU_STORE(v) elem_to_bf16(v)
#define CPU_E(name)  elem_##name##_f
#define CPU_K(name)  name##_bf16
#include "bench/train/cpu_kernels_work.h"

/* dst = src and dst += src for every pair of types. */
#define CPU_PAIR(name, to, from, put, get, wide)                       \
	static void cast_##name(void *dst, const void *src, int64_t n) \
	{                                                              \
		to *d = dst;                                           \
		const from *s = src;                                   \
		CPU_MAP                                                \
		for (int64_t i = 0; i < n; i++)                        \
			d[i] = put(get(s[i]));                         \
	}
#define CPU_PAIR_ADD(name, to, from, put, own, get, wide)                    \
	static void accumulate_##name(void *dst, const void *src, int64_t n) \
	{                                                                    \
		to *d = dst;                                                 \
		const from *s = src;                                         \
		CPU_MAP                                                      \
		for (int64_t i = 0; i < n; i++)                              \
			d[i] = put((wide)own(d[i]) + (wide)get(s[i]));       \
	}
#define CPU_SAME(v) (v)
#define CPU_TO_F(v) ((float)(v))
#define CPU_TO_D(v) ((double)(v))
#define CPU_TO_H(v) elem_to_bf16((float)(v))
#define CPU_BOTH(name, to, from, put, own, get, wide) \
	CPU_PAIR(name, to, from, put, get, wide)      \
	CPU_PAIR_ADD(name, to, from, put, own, get, wide)
CPU_BOTH(ff, float, float, CPU_TO_F, CPU_SAME, CPU_SAME, float)
CPU_BOTH(fh, float, uint16_t, CPU_TO_F, CPU_SAME, elem_from_bf16, float)
CPU_BOTH(fd, float, double, CPU_TO_F, CPU_SAME, CPU_SAME, double)
CPU_BOTH(hf, uint16_t, float, CPU_TO_H, elem_from_bf16, CPU_SAME, float)
CPU_BOTH(hh, uint16_t, uint16_t, CPU_TO_H, elem_from_bf16, elem_from_bf16, float)
CPU_BOTH(hd, uint16_t, double, CPU_TO_H, elem_from_bf16, CPU_SAME, double)
CPU_BOTH(df, double, float, CPU_TO_D, CPU_SAME, CPU_SAME, double)
CPU_BOTH(dh, double, uint16_t, CPU_TO_D, CPU_SAME, elem_from_bf16, double)
CPU_BOTH(dd, double, double, CPU_TO_D, CPU_SAME, CPU_SAME, double)

/* A block of a plain product; its sums stay in registers. Missing rows repeat the last one. */
#define CPU_BLOCK(name, real)                                                               \
	static void name(int64_t k, const real *a, int64_t row, int64_t step, int64_t rows, \
		const real *b, real *c)                                                     \
	{                                                                                   \
		const real *a1 = rows > 1 ? a + row : a, *a2 = rows > 2 ? a1 + row : a1;    \
		const real *a3 = rows > 3 ? a2 + row : a2;                                  \
		real s0[CPU_COLS] = {0}, s1[CPU_COLS] = {0};                                \
		real s2[CPU_COLS] = {0}, s3[CPU_COLS] = {0};                                \
		for (int64_t i = 0; i < k; i++)                                             \
			for (int j = 0; j < CPU_COLS; j++) {                                \
				real v = b[i * CPU_COLS + j];                               \
				s0[j] += a[i * step] * v;                                   \
				s1[j] += a1[i * step] * v;                                  \
				s2[j] += a2[i * step] * v;                                  \
				s3[j] += a3[i * step] * v;                                  \
			}                                                                   \
		memcpy(c, s0, sizeof(s0));                                                  \
		memcpy(c + CPU_COLS, s1, sizeof(s1));                                       \
		memcpy(c + 2 * CPU_COLS, s2, sizeof(s2));                                   \
		memcpy(c + 3 * CPU_COLS, s3, sizeof(s3));                                   \
	}
CPU_BLOCK(block_f, float)
CPU_BLOCK(block_d, double)

#define CPU_NAME2(isa) cpu_isa_##isa
#define CPU_NAME(isa)  CPU_NAME2(isa)
#define CPU_TEXT2(isa) #isa
#define CPU_TEXT(isa)  CPU_TEXT2(isa)
const struct cpu_isa CPU_NAME(CPU_ISA) = {
	.name = CPU_TEXT(CPU_ISA),
	.kernels = {[TR_F32] = &kernels_f32, [TR_BF16] = &kernels_bf16, [TR_F64] = &kernels_f64},
	.block_f = block_f,
	.block_d = block_d,
	.cast = {[TR_F32] = {[TR_F32] = cast_ff, [TR_BF16] = cast_fh, [TR_F64] = cast_fd},
		[TR_BF16] = {[TR_F32] = cast_hf, [TR_BF16] = cast_hh, [TR_F64] = cast_hd},
		[TR_F64] = {[TR_F32] = cast_df, [TR_BF16] = cast_dh, [TR_F64] = cast_dd}},
	.accumulate = {[TR_F32] = {[TR_F32] = accumulate_ff,
			       [TR_BF16] = accumulate_fh,
			       [TR_F64] = accumulate_fd},
		[TR_BF16] = {[TR_F32] = accumulate_hf,
			[TR_BF16] = accumulate_hh,
			[TR_F64] = accumulate_hd},
		[TR_F64] = {[TR_F32] = accumulate_df,
			[TR_BF16] = accumulate_dh,
			[TR_F64] = accumulate_dd}},
};

#endif
