# A real training step: model, sharding strategies, schedule, engine, MFU, verdict; the GPU checks beside it.
SRC += bench/train/gemm_check.c bench/train/peaks.c bench/train/gpu_check.c bench/train/gpu_verify.c bench/train/gpu_bench.c
TESTS += bench/train/gemm_test.c bench/train/peaks_test.c
SRC += bench/train/model.c bench/train/model_file.c bench/train/strategy.c \
	bench/train/train_plan.c bench/train/train_plan_print.c
TESTS += bench/train/model_test.c bench/train/strategy_test.c bench/train/train_plan_test.c
FUZZ += bench/train/model_fuzz.c
SRC += bench/train/net.c bench/train/net_block.c bench/train/net_head.c
SRC += bench/train/schedule.c bench/train/schedule_check.c bench/train/schedule_times.c bench/train/timeline.c bench/train/timeline_save.c
TESTS += bench/train/schedule_test.c bench/train/schedule_times_test.c bench/train/timeline_test.c
SRC += bench/train/engine.c bench/train/engine_mem.c bench/train/engine_tasks.c bench/train/engine_run.c bench/train/tokens.c bench/train/store.c
SRC += bench/train/cpu.c bench/train/cpu_attn.c bench/train/gemm_plain.c
# The kernels vectorize without reordering: nothing is contracted, so every width gives the same bits.
SRC += bench/train/cpu_base.c bench/train/cpu_avx2.c bench/train/cpu_avx512.c
CPU_KERNEL_CFLAGS := $(if $(DEBUG),,-O3) -ffp-contract=off -fno-math-errno -fno-trapping-math
# With a sanitizer's checks in them loops cannot be vectorized, and clang would say so of each.
CPU_KERNEL_CFLAGS += $(if $(SAN)$(DEBUG),-Wno-pass-failed)
CFLAGS_bench/train/cpu_base.c := $(CPU_KERNEL_CFLAGS)
CFLAGS_bench/train/cpu_avx2.c := $(CPU_KERNEL_CFLAGS)
CFLAGS_bench/train/cpu_avx512.c := $(CPU_KERNEL_CFLAGS)
CFLAGS_bench/train/gemm_plain.c := $(if $(DEBUG),,-O3)
TESTS += bench/train/cpu_test.c bench/train/cpu_dev_test.c
TESTS += bench/train/engine_test.c
TESTS += bench/train/net_test.c
SRC += bench/train/train.c bench/train/train_opts.c bench/train/train_job.c bench/train/train_bench.c bench/train/train_result.c \
	bench/train/train_text.c bench/train/train_label.c bench/train/train_ports.c bench/train/measure.c bench/train/gemm_rate.c bench/train/verdict.c
TESTS += bench/train/train_label_test.c bench/train/train_test.c bench/train/train_inject_test.c bench/train/train_inject_real_test.c bench/train/verdict_test.c
TESTS += bench/train/net_golden_test.c
