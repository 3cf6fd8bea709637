/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DCB over netlink (RTM_GETDCB, IEEE): asking the kernel through libmnl, and reading the answer's
 * bytes, live or recorded. Sources: Linux include/uapi/linux/dcbnl.h, net/dcb/dcbnl.c.
 */
#ifndef VERBS_LOSSLESS_DCB_H
#define VERBS_LOSSLESS_DCB_H

#include "verbs/lossless/facts.h"

/** Where a recorded tree keeps the answers of IEEE_GET and GDCBX of an interface. */
#define DCB_RECORDED_IEEE "/netlink/dcb/%s.ieee"
#define DCB_RECORDED_DCBX "/netlink/dcb/%s.dcbx"

/** Read one answer (a whole netlink message, or several) to IEEE_GET, or with dcbx to GDCBX; it may
 * lie anywhere. Truncated, wrongly nested or oversized
 * attributes make the facts concerned FACT_BROKEN and touch nothing else; unknown ones are skipped.
 * NLMSG_ERROR -EOPNOTSUPP is FACT_ABSENT, -EPERM FACT_HIDDEN. */
void dcb_parse(const void *answer, size_t len, bool dcbx, struct dcb_facts *d);
/** Ask (live), or read the recorded answer, and parse. */
void dcb_read(const struct fb_sysroot *r, const char *ifname, struct dcb_facts *d);
/** The raw answers, for the recorder. *len 0: none. Caller frees. @return 0 or -errno */
int dcb_ask(const char *ifname, bool dcbx, void **answer, size_t *len);

#endif
