SRC += bench/core/err.c bench/core/log.c bench/core/strbuf.c
SRC += bench/core/json.c bench/core/sysroot.c
