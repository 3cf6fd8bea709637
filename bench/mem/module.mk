# Kinds of memory, and what distance between NUMA nodes costs.
SRC += bench/mem/host.c bench/mem/numa.c
TESTS += bench/mem/host_test.c
