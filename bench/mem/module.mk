SRC += bench/mem/host.c
TESTS += bench/mem/host_test.c
