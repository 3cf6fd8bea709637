# The end-to-end parts and the program's own commands.
SRC += bench/run/check.c bench/run/launch.c bench/run/lab.c bench/run/merge.c bench/run/run.c
SRC += bench/run/live.c
TESTS += bench/run/live_test.c
SRC += bench/runctl.c bench/runctl_start.c bench/runctl_acc.c
SRC += bench/features.c
SRC += bench/null.c
TESTS += bench/runctl_test.c
