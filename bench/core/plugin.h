/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plug-ins: fabricbench-mpi.so, -dnnl.so, -cuda.so, -nccl.so. Each exports one function,
 * fabricbench_plugin_v1(), and fills ops tables, nothing else. Opened RTLD_NOW | RTLD_LOCAL,
 * searched in $FABRICBENCH_PLUGINS (colon-separated), the program's folder,
 * ../lib/fabricbench from it, and PREFIX/lib/fabricbench. Never closed: CUDA and MPI do not survive
 * dlclose.
 */
#ifndef FB_CORE_PLUGIN_H
#define FB_CORE_PLUGIN_H

#include <stddef.h>

#include "bench/core/err.h"

#define FB_PLUGIN_ABI    2
#define FB_PLUGIN_SYMBOL "fabricbench_plugin_v1"

struct fb_oob_provider; /* bench/oob/oob_ops.h */
struct coll_ops;        /* collectives/coll_ops.h */
struct fb_mem_ops;      /* bench/mem/mem_ops.h */
struct gemm_ops;        /* bench/train/gemm_ops.h */
struct p2p_ops;         /* collectives/p2p_ops.h */

struct fb_plugin {
	unsigned abi;      /**< FB_PLUGIN_ABI */
	const char *name;  /**< "mpi" */
	const char *built; /**< what it was compiled against, e.g. "Open MPI 4.1.4" */
	/**
	 * Look without touching: what is here ("NCCL 2.28.9 found"), and 0; or -ENODEV with what is
	 * missing and what brings it. `found` is filled in both cases. Must not initialise MPI.
	 */
	int (*probe)(char *found, size_t len, struct fb_err *why);
	const struct fb_oob_provider *oob;
	const struct coll_ops *coll;
	const struct fb_mem_ops *mem;
	const struct gemm_ops *gemm;
	const struct p2p_ops *p2p; /**< the messages of a training step; NULL: none */
};
/** What a plug-in exports; its table is constant and its own. */
const struct fb_plugin *fabricbench_plugin_v1(void);

/** Names of all plug-ins, NULL-terminated. */
extern const char *const fb_plugin_names[];
/**
 * Open a plug-in (once; later calls return the same).
 * @return the plug-in, or NULL: -ENOENT not built or not found (the folders searched are named),
 * -ENOEXEC other version, -ELIBACC a library it needs is missing (dlerror's text): exit 77 in *why;
 * the caller that was ordered to use it makes 3 of that.
 */
const struct fb_plugin *fb_plugin_open(const char *name, struct fb_err *why);

#endif
