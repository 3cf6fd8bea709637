SRC += bench/core/err.c bench/core/log.c bench/core/strbuf.c
