/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who makes packets get lost, and who surely ends it. Either nobody (the links have their rates),
 * or netem on a network device of this host, by iproute2's tc, or a command of the operator's.
 *
 * From the first loss made until it is taken away a guard process stands by: it waits on a socket
 * whose other end this process holds, so that the loss goes however this process ends, by SIGKILL
 * too. A device whose queueing discipline somebody has configured is refused, because taking netem
 * away would not bring that back.
 */
#ifndef VERBS_LOSS_MAKER_H
#define VERBS_LOSS_MAKER_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "bench/core/err.h"

enum verbs_loss_how { VERBS_LOSS_GIVEN, VERBS_LOSS_NETEM, VERBS_LOSS_COMMAND };
extern const char *const verbs_loss_hows[]; /**< "given", "netem", "command", NULL */

struct verbs_loss_maker {
	enum verbs_loss_how how;
	char what[256];    /**< the network device, or the command */
	char program[512]; /**< full path of tc, or of the command */
	pid_t guard;       /**< 0: none */
	int guard_fd;      /**< the end that must stay open; -1: none */
};

/**
 * Ready it: look whether it can work, and make 0 % loss once. Nothing is lost yet, but the guard
 * stands. @param what device or command; ignored for VERBS_LOSS_GIVEN
 * @return 0; -ENOENT no tc, no netem or no such command, -EPERM no CAP_NET_ADMIN (exit 77); -ENODEV
 * no such device, -EBUSY a configured queueing discipline (exit 2); others exit 3
 */
int verbs_loss_maker_open(struct verbs_loss_maker *m, enum verbs_loss_how how, const char *what,
	struct fb_err *e) FB_MUST_CHECK;
/** From now on that many percent are lost. @return 0, or why not (exit 3) */
int verbs_loss_maker_set(
	struct verbs_loss_maker *m, double percent, struct fb_err *e) FB_MUST_CHECK;
/** Take the loss away, also while a stop is under way. Safe on a zeroed or closed maker. @return 0,
 * or -EIO with the command that does it by hand */
int verbs_loss_maker_close(struct verbs_loss_maker *m, struct fb_err *e);

/** "0.1", "12.5": as tc and commands get it; at most six digits after the point. @return buf */
const char *verbs_loss_percent(double percent, char *buf, size_t len);
/**
 * What `tc -j qdisc show dev DEV root` printed. Exposed for tests.
 * @param loss gets the share of packets that netem loses, NaN where it is not netem
 * @return 1: the kernel's own, or none; 0: netem; -EBUSY: somebody's, whose kind is in `kind`;
 * -EPROTO: not what tc prints
 */
int verbs_loss_read_qdisc(const char *json, double *loss, char *kind, size_t len);

#endif
