# Plug-ins: each fills ops tables, includes nothing else, and becomes fabricbench-NAME.so.
PLUGIN_dnnl := bench/plugins/dnnl/plugin.c
PLUGIN_cuda := bench/plugins/cuda/plugin.c bench/plugins/cuda/mem.c bench/plugins/cuda/gemm.c
PLUGIN_nccl := bench/plugins/nccl/plugin.c
# dlopen stands in libc since glibc 2.34; before, in a library of its own.
DNNL_LIBS += -ldl
# The runtime goes into the plug-in, so that it loads without it and tells what is missing; cuBLASLt is opened by name.
ifneq ($(wildcard $(CUDA_LIBDIR)/libcudart_static.a),)
CUDA_LIBS := $(filter-out -lcublasLt -lcudart,$(CUDA_LIBS)) -lcudart_static -lrt -ldl
else
CUDA_LIBS := $(filter-out -lcublasLt,$(CUDA_LIBS)) -ldl
endif
PLUGIN_mpi := bench/plugins/mpi/plugin.c bench/plugins/mpi/world.c bench/plugins/mpi/watchdog.c \
	bench/plugins/mpi/coll_mpi.c bench/plugins/mpi/p2p_mpi.c bench/plugins/mpi/util.c
