# SPDX-License-Identifier: Apache-2.0
# fabricbench: one non-recursive makefile. Each folder's module.mk only lists its sources:
#   SRC    C files of the program and its library      TESTS  *_test.c, one cmocka program each
#   FUZZ   *_fuzz.c, one libFuzzer program each        PLUGIN_x  sources of fabricbench-x.so
# `make help` lists the targets. Settings: CC= V=1 SAN=address,undefined DEBUG=1 WERROR=1 B=folder
#                                          MPICC= NVCC= CUDA_HOME= NCCL_HOME= PREFIX= DESTDIR=

VERSION := 0.1.0
B      ?= build
PREFIX ?= /usr/local
ifeq ($(origin CC),default)
CC := gcc
endif
SHELL := /bin/sh
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules
empty :=
space := $(empty) $(empty)
comma := ,

ifeq ($(V),1)
Q :=
else
Q := @
endif
say = @printf '  %-7s %s\n' $(1) $(2)

# -- flags ------------------------------------------------------------------------------------
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 -Wundef -Wvla \
	-Wwrite-strings -Wpointer-arith -Wno-unused-parameter
OPT  := $(if $(DEBUG),-O0,-O2)
BASE_CFLAGS := -std=gnu11 $(OPT) -g -fPIC -fno-omit-frame-pointer -fno-strict-aliasing $(WARN) \
	$(if $(WERROR),-Werror) $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=undefined) $(EXTRA_CFLAGS)
BASE_LDFLAGS := $(if $(SAN),-fsanitize=$(SAN)) $(EXTRA_LDFLAGS)

# Objects of one set of flags live in one folder: other flags never mix with them.
flags_id := $(shell printf '%s' '$(CC) $(BASE_CFLAGS) $(MPICC) $(NVCC) $(CUDA_HOME) $(NCCL_HOME)' | cksum | cut -d' ' -f1)
FLAVOUR  := $(notdir $(firstword $(CC)))$(if $(SAN),-$(subst $(comma),-,$(SAN)))$(if $(DEBUG),-debug)-$(flags_id)
O := $(B)/$(FLAVOUR)

# -- detection --------------------------------------------------------------------------------
# `scripts/detect` writes the answers once per flavour; the table is printed by `make` when it is made.
NO_DETECT := help clean format-check format dist-clean check-layers
ifneq ($(if $(MAKECMDGOALS),$(filter-out $(NO_DETECT),$(MAKECMDGOALS)),all),)
-include $(O)/config.mk
endif
$(O)/config.mk: scripts/detect
	@mkdir -p $(O)
	@CC='$(CC)' MPICC='$(MPICC)' NVCC='$(NVCC)' CUDA_HOME='$(CUDA_HOME)' NCCL_HOME='$(NCCL_HOME)' \
		scripts/detect --mk $@ --table $(O)/detected.txt && cat $(O)/detected.txt

# -- sources ----------------------------------------------------------------------------------
SRC :=
TESTS :=
FUZZ :=
include bench/core/module.mk bench/oob/module.mk bench/mem/module.mk bench/train/module.mk \
	bench/predict/module.mk \
	bench/module.mk bench/plugins/module.mk verbs/module.mk collectives/module.mk topo/module.mk \
	reports/module.mk

DEPS_CFLAGS := $(sort $(HWLOC_CFLAGS) $(JANSSON_CFLAGS) $(INIH_CFLAGS) $(MNL_CFLAGS) $(XML2_CFLAGS) \
	$(ARCHIVE_CFLAGS) $(VERBS_CFLAGS) $(RDMACM_CFLAGS))
DEPS_LIBS := $(HWLOC_LIBS) $(JANSSON_LIBS) $(INIH_LIBS) $(MNL_LIBS) $(XML2_LIBS) $(ARCHIVE_LIBS) \
	$(RDMACM_LIBS) $(VERBS_LIBS)
GIT := $(shell git describe --always --dirty 2>/dev/null)
CPPFLAGS := -I. -I$(O)/gen -D_GNU_SOURCE
CFLAGS  = $(BASE_CFLAGS) $(DEPS_CFLAGS)
# DT_RPATH, not DT_RUNPATH: it also serves the libraries of the relocatable tar that need each other.
LDFLAGS = $(BASE_LDFLAGS) -Wl,-rpath,'$$ORIGIN/../lib' -Wl,--disable-new-dtags -Wl,--as-needed
LIBS    = $(DEPS_LIBS) -lpthread -ldl -lm

OBJ      := $(SRC:%.c=$(O)/%.o)
MAIN_OBJ := $(O)/bench/main.o
LIB      := $(O)/libfabricbench.a
PROGRAM  := $(O)/fabricbench
TEST_BIN := $(TESTS:%.c=$(O)/%)
FUZZ_BIN := $(FUZZ:%.c=$(O)/%)
PLUGINS  := $(if $(filter 1,$(HAVE_MPI)),$(O)/fabricbench-mpi.so) \
	    $(if $(filter 1,$(HAVE_DNNL)),$(O)/fabricbench-dnnl.so) \
	    $(if $(filter 1,$(HAVE_CUDA)),$(O)/fabricbench-cuda.so) \
	    $(if $(filter 1,$(HAVE_CUDA)),$(if $(filter 1,$(HAVE_NCCL)),$(O)/fabricbench-nccl.so))
# What a plug-in shares with the program is compiled into it: it needs no symbol of ours at run time.
PLUGIN_CORE := bench/core/err.c

.PHONY: all program plugins mpi dnnl cuda nccl check check-layers check-headers format-check format \
	lint fuzz bench dist install clean help tests

## all: the program and every plug-in whose library was found
all: program plugins $(O)/compile_commands.json
program: $(PROGRAM)
	@mkdir -p $(B); ln -sfn $(FLAVOUR)/fabricbench $(B)/fabricbench
plugins: $(PLUGINS)
## mpi: rebuild that one plug-in, for a site's MPI: make mpi MPICC=/opt/site/bin/mpicc
mpi: $(O)/fabricbench-mpi.so
dnnl: $(O)/fabricbench-dnnl.so
cuda: $(O)/fabricbench-cuda.so
nccl: $(O)/fabricbench-nccl.so

# -- rules ------------------------------------------------------------------------------------
$(O)/gen/embed.h: $(EMBED) scripts/embed
	@mkdir -p $(O)/gen
	@scripts/embed $@ $(EMBED)
$(O)/gen/version.h: FORCE
	@mkdir -p $(O)/gen
	@printf '#define FB_VERSION "%s"\n#define FB_GIT "%s"\n#define FB_CFLAGS "%s"\n#define FB_PREFIX "%s"\n' '$(VERSION)' '$(GIT)' '$(strip $(OPT) $(SAN))' '$(PREFIX)' > $@.tmp
	@cmp -s $@.tmp $@ || mv $@.tmp $@; rm -f $@.tmp
.PHONY: FORCE
FORCE:

$(O)/%.o: %.c $(O)/config.mk | $(O)/gen/embed.h $(O)/gen/version.h
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(CFLAGS_$(<)) -MMD -MP -c -o $@ $<
$(LIB): $(OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $(OBJ)
$(PROGRAM): $(MAIN_OBJ) $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(MAIN_OBJ) $(LIB) $(LIBS)
$(TEST_BIN): $(O)/%: $(O)/%.o $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) $(LDFLAGS_$*.c) -o $@ $< $(LIB) $(LIBS) $(CMOCKA_LIBS) $(GSL_LIBS)
$(FUZZ_BIN): $(O)/%: $(O)/%.o $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -fsanitize=fuzzer -o $@ $< $(LIB) $(LIBS)

PLUGIN_LINK = -shared -Wl,--disable-new-dtags -Wl,--as-needed -Wl,--exclude-libs,ALL
$(O)/plugin-mpi/%.o: %.c $(O)/config.mk | $(O)/gen/version.h
	@mkdir -p $(@D)
	$(call say,MPICC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(BASE_CFLAGS) -fvisibility=hidden $(JANSSON_CFLAGS) $(patsubst -I%,-isystem %,$(MPI_CFLAGS)) -MMD -MP -c -o $@ $<
$(O)/fabricbench-mpi.so: $(PLUGIN_mpi:%.c=$(O)/plugin-mpi/%.o) $(PLUGIN_CORE:%.c=$(O)/plugin-mpi/%.o)
	$(call say,LD,$@)
	$(Q)$(CC) $(BASE_LDFLAGS) $(PLUGIN_LINK) -o $@ $^ $(MPI_LIBS) -lpthread
$(O)/plugin-dnnl/%.o: %.c $(O)/config.mk | $(O)/gen/version.h
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(BASE_CFLAGS) -fvisibility=hidden $(DNNL_CFLAGS) -MMD -MP -c -o $@ $<
$(O)/fabricbench-dnnl.so: $(PLUGIN_dnnl:%.c=$(O)/plugin-dnnl/%.o) $(PLUGIN_CORE:%.c=$(O)/plugin-dnnl/%.o)
	$(call say,LD,$@)
	$(Q)$(CC) $(BASE_LDFLAGS) $(PLUGIN_LINK) -o $@ $^ $(DNNL_LIBS)
# CUDA headers are system headers here: their own warnings are not ours.
$(O)/plugin-cuda/%.o: %.c $(O)/config.mk | $(O)/gen/version.h
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(BASE_CFLAGS) -fvisibility=hidden $(patsubst -I%,-isystem %,$(CUDA_CFLAGS) $(NCCL_CFLAGS)) -MMD -MP -c -o $@ $<
$(O)/plugin-cuda/%.cu.o: %.cu $(O)/config.mk | $(O)/gen/version.h
	@mkdir -p $(@D)
	$(call say,NVCC,$<)
	$(Q)$(NVCC) -I. -O2 -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra $(if $(WERROR),-Werror all-warnings) \
		$(CUDA_GENCODE) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<
cuda_objs = $(patsubst %.c,$(O)/plugin-cuda/%.o,$(filter %.c,$(1))) $(patsubst %.cu,$(O)/plugin-cuda/%.cu.o,$(filter %.cu,$(1)))
$(O)/fabricbench-cuda.so: $(call cuda_objs,$(PLUGIN_cuda) $(PLUGIN_CORE))
	$(call say,LD,$@)
	$(Q)$(CC) $(BASE_LDFLAGS) $(PLUGIN_LINK) -o $@ $^ $(CUDA_LIBS) -lpthread
$(O)/fabricbench-nccl.so: $(call cuda_objs,$(PLUGIN_nccl) $(PLUGIN_CORE))
	$(call say,LD,$@)
	$(Q)$(CC) $(BASE_LDFLAGS) $(PLUGIN_LINK) -o $@ $^ $(NCCL_LIBS) $(CUDA_LIBS) -lpthread

ALL_C := $(SRC) bench/main.c $(TESTS) $(FUZZ) $(PLUGIN_mpi) $(PLUGIN_dnnl) $(filter %.c,$(PLUGIN_cuda) $(PLUGIN_nccl))
$(O)/compile_commands.json: Makefile $(O)/config.mk
	@{ printf '[\n'; sep=; for f in $(SRC) bench/main.c $(TESTS); do \
	   printf '%s{"directory":"%s","file":"%s","command":"%s -c %s"}\n' "$$sep" '$(CURDIR)' "$$f" \
	   '$(CC) $(CPPFLAGS) $(CFLAGS)' "$$f"; sep=$(comma); done; printf ']\n'; } > $@
	@ln -sfn $(FLAVOUR)/compile_commands.json $(B)/compile_commands.json

# -- tests ------------------------------------------------------------------------------------
tests: $(TEST_BIN)
## check: build and run every unit test; ends with "N passed, N failed, N skipped"
check: all tests
	@FABRICBENCH_PLUGINS=$(CURDIR)/$(O) FABRICBENCH=$(CURDIR)/$(PROGRAM) \
	LSAN_OPTIONS=suppressions=$(CURDIR)/scripts/lsan.supp:print_suppressions=0 \
	UBSAN_OPTIONS=print_stacktrace=1 scripts/check-units $(TEST_BIN)
## check-layers: prove that folders include only what DESIGN's edges allow
check-layers:
	@scripts/check-layers
## check-headers: prove that every header compiles alone
check-headers: $(O)/config.mk $(O)/gen/embed.h $(O)/gen/version.h
	@scripts/check-headers '$(CC) $(CPPFLAGS) $(CFLAGS) $(patsubst -I%,-isystem %,$(MPI_CFLAGS) $(DNNL_CFLAGS) \
		$(CUDA_CFLAGS) $(NCCL_CFLAGS)) -Werror' $(patsubst fabricbench-%.so,%,$(notdir $(PLUGINS)))
FORMATTED = $(shell git ls-files '*.c' '*.h' '*.cu')
## format-check: clang-format finds nothing to change;  format: let it change
format-check:
	@clang-format --dry-run -Werror $(FORMATTED)
format:
	@clang-format -i $(FORMATTED)
## lint: clang-tidy, cppcheck, shellcheck, codespell
lint: $(O)/compile_commands.json $(O)/gen/embed.h $(O)/gen/version.h
	@scripts/lint $(O) $(SRC) bench/main.c
FUZZ_SECONDS ?= 60
## fuzz: every fuzz target for FUZZ_SECONDS (60) with clang's libFuzzer and the sanitizers; FUZZ_SEED repeats a run
fuzz:
	@$(MAKE) --no-print-directory CC=clang SAN=address,undefined EXTRA_CFLAGS=-fsanitize=fuzzer-no-link fuzz-run
.PHONY: fuzz-run
fuzz-run: $(FUZZ_BIN)
	@FUZZ_SEED=$(FUZZ_SEED) scripts/fuzz $(FUZZ_SECONDS) $(FUZZ_BIN)
## bench: measure the suite itself: ratios, taken in turn, with intervals
bench: all tests
	@FABRICBENCH=$(CURDIR)/$(PROGRAM) scripts/bench
## dist: one relocatable tar that runs on a machine without network
dist: all
	@scripts/dist $(VERSION) $(O) $(B)
## install: into DESTDIR/PREFIX
install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/fabricbench $(DESTDIR)$(PREFIX)/share/fabricbench/plans \
		$(DESTDIR)$(PREFIX)/share/fabricbench/profiles $(DESTDIR)$(PREFIX)/share/fabricbench/expect \
		$(DESTDIR)$(PREFIX)/share/fabricbench/scripts/lab $(DESTDIR)$(PREFIX)/share/fabricbench/scripts/slurm
	install -m 755 $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/fabricbench
	$(if $(strip $(PLUGINS)),install -m 755 $(PLUGINS) $(DESTDIR)$(PREFIX)/lib/fabricbench/)
	install -m 644 reports/schema.json $(DESTDIR)$(PREFIX)/share/fabricbench/
	install -m 644 scripts/plans/*.ini $(DESTDIR)$(PREFIX)/share/fabricbench/plans/
	install -m 644 scripts/profiles/*.ini $(DESTDIR)$(PREFIX)/share/fabricbench/profiles/
	install -m 644 scripts/expect/*.ini $(DESTDIR)$(PREFIX)/share/fabricbench/expect/
	install -m 755 scripts/launch scripts/record scripts/lib.sh $(DESTDIR)$(PREFIX)/share/fabricbench/scripts/
	install -m 755 scripts/lab/lab scripts/lab/prepare.sh scripts/lab/init scripts/lab/guest-init scripts/lab/loss-train \
		$(DESTDIR)$(PREFIX)/share/fabricbench/scripts/lab/
	install -m 755 scripts/slurm/validate.sbatch scripts/slurm/prolog-check $(DESTDIR)$(PREFIX)/share/fabricbench/scripts/slurm/
## clean: remove everything built
clean:
	rm -rf $(B)
## help: this list
help:
	@sed -n 's/^## \([^:]*\): \(.*\)/  \1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
	 while IFS='|' read -r t d; do printf '%-16s %s\n' "$$t" "$$d"; done
	@printf '\nSettings: CC= V=1 SAN=address,undefined DEBUG=1 WERROR=1 B=folder MPICC= NVCC= CUDA_HOME= NCCL_HOME= PREFIX= DESTDIR=\n'

-include $(shell find $(O) -name '*.d' 2>/dev/null)
