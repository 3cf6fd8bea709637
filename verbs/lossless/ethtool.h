/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ethtool's ioctls: pause parameters, statistics, link speed; live, or from recorded text in the
 * form that the ethtool program prints (ethtool IF, -a IF, -S IF).
 */
#ifndef VERBS_LOSSLESS_ETHTOOL_H
#define VERBS_LOSSLESS_ETHTOOL_H

#include "verbs/lossless/facts.h"

#define ETHTOOL_RECORDED_LINK  "/ethtool/%s.link"
#define ETHTOOL_RECORDED_PAUSE "/ethtool/%s.pause"
#define ETHTOOL_RECORDED_STATS "/ethtool/%s.stats"

/** Fills pause_*, stats, speed_mbps of p, whose netdev is set. */
void ethtool_read(const struct fb_sysroot *r, struct port_facts *p);
/** The same three as text, for the recorder; a refusal is text too ("Cannot get settings: ...").
 * Caller frees. @return 0; -ENODEV, -EINVAL: no such interface, nothing is set */
int ethtool_text(const char *ifname, char **link, char **pause, char **stats);

#endif
