SRC += collectives/formula.c collectives/pattern.c collectives/combine.c collectives/local.c
TESTS += collectives/bench_test.c collectives/formula_test.c collectives/pattern_test.c collectives/local_test.c
SRC += collectives/verify.c collectives/bench.c collectives/cmd.c
