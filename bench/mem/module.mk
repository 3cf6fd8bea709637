SRC += bench/mem/host.c bench/mem/numa.c
TESTS += bench/mem/host_test.c
