SRC += bench/core/err.c bench/core/log.c bench/core/strbuf.c
SRC += bench/core/json.c bench/core/sysroot.c
SRC += bench/core/plan.c bench/core/proc.c
TESTS += bench/core/plan_test.c bench/core/proc_test.c
FUZZ += bench/core/plan_fuzz.c
