/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What LLDP says is at the other end of a switch's ports, from a file of its own: lldpctl's text,
 * key=value and JSON (both of its JSON forms), SONiC's `show lldp table`, and NVIDIA's `nv show
 * interface` with lldp, as table or JSON.
 */
#ifndef VERBS_LOSSLESS_SWITCH_LLDP_H
#define VERBS_LOSSLESS_SWITCH_LLDP_H

#include <jansson.h>

#include "verbs/lossless/switch.h"

#define SWITCH_MAX_LINKS 4096

struct switch_link {
	char port[64];               /**< here */
	char host[64], far_port[64]; /**< at the other end */
	char descr[64];              /**< how that port is described: at times its name */
};
/** Neighbours; free by switch_lldp_free(). */
struct switch_lldp {
	char path[256];
	struct switch_link *link;
	int n;
	bool failed; /**< no memory, or more than SWITCH_MAX_LINKS */
};

/**
 * @param name of the file, for messages
 * @return 0; 1: it is nothing of LLDP's; -EINVAL (exit 2), -ENOMEM
 */
int switch_lldp_parse(const char *text, size_t len, const char *name, struct switch_lldp *l,
	struct fb_err *e) FB_MUST_CHECK;
/** The neighbours in lldpctl's object or list `lldp`, added to l. A port without a neighbour that
 * has names is left out. */
void switch_lldp_of_lldpctl(const json_t *lldp, struct switch_lldp *l);
/** Is it a MAC address, and no name? */
bool switch_is_mac(const char *text);
void switch_lldp_free(struct switch_lldp *l);

/**
 * Whose neighbours are they? The switch that the file's name or its folder's name holds as a word;
 * else the only one whose file is in the same folder; else the only one there is.
 * @param before the switch that was given just before the file, where each file is followed by its
 * neighbours; -1: they were not given so
 * @return its index; -EINVAL (exit 2) where it cannot be told
 */
int switch_lldp_owner(const struct switch_lldp *l, const struct switch_facts *sw, int n, int before,
	struct fb_err *e) FB_MUST_CHECK;
/** Note the neighbours at s's ports, over those of its own file. A configuration that speaks of all
 * ports as one ("swp*") gets a port for each of them.
 * @return 0; -EINVAL: s has none of the ports, or has its neighbours from another file (exit 2) */
int switch_lldp_apply(
	const struct switch_lldp *l, struct switch_facts *s, struct fb_err *e) FB_MUST_CHECK;

#endif
