SRC += verbs/addr.c verbs/bandwidth.c verbs/cmd.c verbs/conn.c verbs/counters.c verbs/crew.c verbs/dev.c \
	verbs/latency.c verbs/loops.c verbs/loops_bw.c verbs/loops_lat.c verbs/ops.c verbs/params.c \
	verbs/place.c verbs/serve.c verbs/session.c verbs/state.c verbs/wait.c verbs/wc.c
TESTS += verbs/loops_test.c
TESTS += verbs/addr_test.c verbs/params_test.c
