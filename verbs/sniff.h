/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `verbs sniff`: counts RoCE v2 packets that arrive at an interface by DSCP and ECN, so that a test
 * sees what was really marked on the wire. Needs CAP_NET_RAW.
 */
#ifndef VERBS_SNIFF_H
#define VERBS_SNIFF_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/opt.h"

#define VERBS_SNIFF_DSCP 64
#define VERBS_SNIFF_ECN  4

struct verbs_sniffed {
	uint64_t n[VERBS_SNIFF_DSCP][VERBS_SNIFF_ECN];
	uint64_t manager; /**< of these, for QP 1: connection management, which marks differently */
	uint64_t other;   /**< IP packets that are no RoCE v2 */
};
/**
 * Count one packet from its IP header on. Exposed for tests.
 * @param proto ethertype: 0x0800 or 0x86dd; others are ignored
 */
void verbs_sniff_packet(struct verbs_sniffed *s, unsigned proto, const uint8_t *ip, size_t len);

/** Listen at an interface. @return 0 and *fd, to be closed; -EINVAL: no such interface (exit 2);
 * -EPERM without CAP_NET_RAW (exit 3) */
int verbs_sniff_open(const char *interface, int *fd, struct fb_err *e) FB_MUST_CHECK;
/** Count what arrives until the deadline, a stop of the program, or *stop (may be NULL) is set. */
void verbs_sniff_until(int fd, uint64_t deadline, atomic_int *stop, struct verbs_sniffed *s);
/** Packets that the kernel could not hand over since the last call. */
unsigned verbs_sniff_drops(int fd);

/** The command. @return its exit status */
int verbs_sniff_main(int argc, char **argv);

#endif
