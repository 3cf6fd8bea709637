# What everything else stands on: errors, options, clock, statistics, results, plans, children, the door to /sys.
SRC += bench/core/err.c bench/core/log.c bench/core/strbuf.c
SRC += bench/core/opt.c bench/core/opt_help.c bench/core/units.c bench/core/clock.c bench/core/hist.c bench/core/stats.c \
	bench/core/bound.c
SRC += bench/core/json.c bench/core/sysroot.c
SRC += bench/core/ini.c bench/core/cmd.c bench/core/plan.c bench/core/proc.c
TESTS += bench/core/opt_test.c bench/core/units_test.c bench/core/clock_test.c
TESTS += bench/core/hist_test.c bench/core/stats_test.c bench/core/bound_test.c
TESTS += bench/core/err_test.c bench/core/log_test.c bench/core/strbuf_test.c
FUZZ += bench/core/opt_fuzz.c
TESTS += bench/core/plan_test.c bench/core/proc_test.c
FUZZ += bench/core/plan_fuzz.c
SRC += bench/core/plugin.c
SRC += bench/core/result.c bench/core/doc_read.c bench/core/doc_shape.c bench/core/table.c bench/core/stop.c bench/core/anon.c bench/core/sysinfo.c \
	bench/core/sysinfo_dev.c bench/core/point.c bench/core/gate.c
TESTS += bench/core/json_test.c bench/core/doc_read_test.c
FUZZ += bench/core/result_fuzz.c
TESTS += bench/core/sysroot_test.c bench/core/sysinfo_test.c
TESTS += bench/core/result_test.c bench/core/table_test.c
TESTS += bench/core/plugin_test.c
TESTS += bench/core/gate_test.c
SRC += bench/core/check.c bench/core/check_opts.c bench/core/check_others.c
TESTS += bench/core/check_test.c
SRC += bench/core/sysroot_tar.c
CFLAGS_bench/core/sysroot_tar.c = $(if $(filter 1,$(HAVE_ARCHIVE)),-DFB_HAVE_ARCHIVE)
TESTS += bench/core/sysroot_tar_test.c
FUZZ += bench/core/sysroot_tar_fuzz.c
SRC += bench/core/shipped.c
SRC += bench/core/tell.c
TESTS += bench/core/tell_test.c
