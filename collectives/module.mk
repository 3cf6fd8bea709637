# Sweeps of collective operations over a backend, with expected values and bus bandwidth.
SRC += collectives/formula.c collectives/pattern.c collectives/combine.c collectives/local.c
TESTS += collectives/bench_test.c collectives/formula_test.c collectives/pattern_test.c collectives/local_test.c
SRC += collectives/verify.c collectives/bench.c collectives/cmd.c
SRC += collectives/p2p_local.c collectives/exchange.c
TESTS += collectives/exchange_test.c collectives/p2p_local_test.c collectives/p2p_mpi_test.c
# -O2 of GCC leaves loops of unknown length as they are.
CFLAGS_collectives/combine.c := $(if $(DEBUG),,-O3)
