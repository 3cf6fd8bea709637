SRC += bench/train/gemm_check.c bench/train/peaks.c bench/train/gpu_check.c bench/train/gpu_verify.c bench/train/gpu_bench.c
TESTS += bench/train/gemm_test.c bench/train/peaks_test.c
SRC += bench/train/model.c bench/train/model_file.c bench/train/strategy.c
TESTS += bench/train/model_test.c
SRC += bench/train/net.c bench/train/net_block.c bench/train/net_head.c
SRC += bench/train/schedule.c
SRC += bench/train/engine.c bench/train/engine_mem.c bench/train/engine_tasks.c bench/train/engine_run.c bench/train/tokens.c bench/train/store.c
