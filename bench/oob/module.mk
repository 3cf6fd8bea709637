# How ranks find each other and talk outside the fabric.
SRC += bench/oob/oob.c bench/oob/open.c bench/oob/env.c bench/oob/local.c \
	bench/oob/frame.c bench/oob/conn.c bench/oob/tcp.c bench/oob/dial.c bench/oob/listen.c bench/oob/meet.c
TESTS += bench/oob/tcp_test.c
TESTS += bench/oob/mpi_test.c
TESTS += bench/oob/meet_test.c
TESTS += bench/oob/oob_test.c bench/oob/frame_test.c bench/oob/env_test.c
FUZZ += bench/oob/control_fuzz.c
