SRC += bench/oob/oob.c bench/oob/open.c bench/oob/env.c bench/oob/local.c bench/oob/frame.c
