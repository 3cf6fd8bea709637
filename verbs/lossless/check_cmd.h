/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fabricbench check`: which sub-commands it has, and how a window of time comes into it. What a
 * check looks at is in checks.h; nothing here reads a fact itself.
 */
#ifndef VERBS_LOSSLESS_CHECK_CMD_H
#define VERBS_LOSSLESS_CHECK_CMD_H

#include "bench/core/cmd.h"
#include "bench/core/opt.h"
#include "verbs/lossless/checks.h"

struct fb_doc;

/**
 * Where windows come from. One such table may be set in check_cmd.c; its options then stand in the
 * help of every sub-command under "Live".
 */
struct check_live_ops {
	const struct fb_opt *opts; /**< over a struct of cfg_size bytes, zeroed */
	size_t cfg_size;
	/** Take from the arguments what no option table can hold (a command after --); argc
	 * shrinks.
	 * @return 0 or -EINVAL (exit 2) */
	int (*cut)(void *cfg, int *argc, char **argv, struct fb_err *e);
	bool (*wanted)(const void *cfg); /**< was a window asked for? */
	/**
	 * Fill windows[i] for n->port[i], zeroed before. Ends by its own deadline; leaves ns 0 and
	 * `why` where a port has no window. May warn in doc. Windows are released whatever it
	 * returns. @return 0, or -errno with *e (its exit is the command's)
	 */
	int (*fill)(const void *cfg, const struct fb_sysroot *r, const struct node_facts *n,
		struct port_window *windows, struct fb_doc *doc, struct fb_err *e);
};

/** The group: check roce, check ib, check all; without a second word: --list, --explain ID. */
extern const struct fb_cmd check_cmd;

#endif
