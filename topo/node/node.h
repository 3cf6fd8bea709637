/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fabricbench check node`: is this node built, placed and set as it must be, and is all of it
 * there? The table of its checks, for those who tell of them; what they look at is in node_priv.h.
 */
#ifndef TOPO_NODE_NODE_H
#define TOPO_NODE_NODE_H

#include "bench/core/check.h"
#include "bench/core/opt.h"

struct node_run;

/** One check: what is known of it, and what makes its findings (one or more). */
struct node_check {
	struct fb_check_def def;
	void (*run)(struct node_run *c);
};
extern const struct node_check node_checks[]; /**< ends with def.id NULL */

/** The command. @return the exit status */
int check_node_run(int argc, char **argv);
/** Its option tables, for plans. */
const struct fb_opt_spec *check_node_spec(void);

#endif
