/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of checks share: which DSCP and priority the node is meant to use, and how a fact
 * that is not known becomes a skip. */
#ifndef VERBS_LOSSLESS_CHECKS_PRIV_H
#define VERBS_LOSSLESS_CHECKS_PRIV_H

#include "verbs/lossless/checks.h"

/** A live window below this proves nothing. */
#define CHECK_FLOOR_BYTES   (1u << 20)
#define CHECK_FLOOR_PACKETS 1000

/** A traffic class that somebody on this node sets, as the byte it is. */
struct used_class {
	int byte;
	char by[96]; /**< "NCCL_IB_TC", "rdma_cm's default_roce_tos" */
};
/** The variables by which applications set one; NULL at the end. */
extern const char *const check_class_names[];
/** What one of them says. Empty and NCCL's own default, -1, are not set; UCX's "auto" is 106 on
 * RoCE v2. @return 1: *byte; 0: not set; -EINVAL: no class (*text is what stands there) */
int check_class_of(const struct node_facts *n, const char *name, int *byte, const char **text);
/** All that are set, at most max. Unset and 0 are left out. */
int check_used_classes(const struct check_input *in, struct used_class *out, int max);

/** The priorities that RoCE data is meant to use: the profile's, else those that the used classes
 * map to. @return bits; 0: not known, *why says why; *source says where from */
unsigned check_roce_priorities(const struct check_input *in, const char **source, const char **why);
/** Does the map prove that somebody gave a DSCP where a traffic class byte belongs? The value is
 * lossless as a DSCP, and lossy as the byte that it is. */
bool check_byte_is_dscp(const struct check_input *in, int byte);
/** Bits with PFC. @return false: not known, and f is a skip with the reason */
bool check_pfc(const struct check_input *in, struct fb_finding *f, unsigned *bits);
/** "3", "3 and 4", "none" @return buf */
const char *check_bits_text(unsigned bits, char *buf, size_t len);

/** "dscp" or "pcp"; NULL: not known, and f is a skip. *how says by which table. */
const char *check_trust(const struct check_input *in, struct fb_finding *f, char *how, size_t len);
/** Sets f's `read`. A fact that is not known also makes f a skip (absent, hidden) or an error
 * (broken). @return known */
bool check_need(const struct fact *fact, struct fb_finding *f);
/** A port's state that IBTA has no name for proves nothing: f is an error. @return it has one */
bool check_state(const struct fact_text *state, struct fb_finding *f);
/** Soft-RoCE, siw: what belongs to hardware is skipped. */
bool check_software(const struct check_input *in, struct fb_finding *f);
/** The live checks: is there a window with load? Else f is a skip that says so. */
bool check_window(const struct check_input *in, struct fb_finding *f);
/** Growth of a counter in the window; -1: not available. */
int64_t check_grew(const struct check_input *in, const char *name);
/** printf-like name. */
int64_t check_grewf(const struct check_input *in, const char *fmt, ...) FB_PRINTF(2, 3);
/** "in 10.0 s with 12.3 GB and 3000000 packets: " at the start of what a live check observed. */
const char *check_window_text(const struct check_input *in, char *buf, size_t len);

#define CHECK_PROFILE_SOURCE(in) \
	((in)->profile->name[0] ? (in)->profile->name : (in)->profile->path)

/* The tables' parts. */
void roce_r01(const struct check_input *in, struct fb_finding *f);
void roce_r02(const struct check_input *in, struct fb_finding *f);
void roce_r03(const struct check_input *in, struct fb_finding *f);
void roce_r04(const struct check_input *in, struct fb_finding *f);
void roce_r05(const struct check_input *in, struct fb_finding *f);
void roce_r06(const struct check_input *in, struct fb_finding *f);
void roce_r07(const struct check_input *in, struct fb_finding *f);
void roce_r08(const struct check_input *in, struct fb_finding *f);
void roce_r09(const struct check_input *in, struct fb_finding *f);
void roce_r10(const struct check_input *in, struct fb_finding *f);
void roce_r11(const struct check_input *in, struct fb_finding *f);
void roce_r12(const struct check_input *in, struct fb_finding *f);
void roce_r13(const struct check_input *in, struct fb_finding *f);
void roce_r14(const struct check_input *in, struct fb_finding *f);
void roce_r15(const struct check_input *in, struct fb_finding *f);
void roce_r16(const struct check_input *in, struct fb_finding *f);
void roce_r17(const struct check_input *in, struct fb_finding *f);
void roce_r18(const struct check_input *in, struct fb_finding *f);
void roce_r19(const struct check_input *in, struct fb_finding *f);
void roce_r20(const struct check_input *in, struct fb_finding *f);
void roce_r21(const struct check_input *in, struct fb_finding *f);
void roce_r22(const struct check_input *in, struct fb_finding *f);
void roce_r23(const struct check_input *in, struct fb_finding *f);
void roce_r24(const struct check_input *in, struct fb_finding *f);
void roce_r25(const struct check_input *in, struct fb_finding *f);
void roce_r26(const struct check_input *in, struct fb_finding *f);
void roce_r27(const struct check_input *in, struct fb_finding *f);
void roce_r28(const struct check_input *in, struct fb_finding *f);
void roce_r29(const struct check_input *in, struct fb_finding *f);
void roce_r30(const struct check_input *in, struct fb_finding *f);
void roce_r31(const struct check_input *in, struct fb_finding *f);
void roce_r32(const struct check_input *in, struct fb_finding *f);
void roce_r33(const struct check_input *in, struct fb_finding *f);
void roce_r34(const struct check_input *in, struct fb_finding *f);
void roce_r35(const struct check_input *in, struct fb_finding *f);
void roce_r36(const struct check_input *in, struct fb_finding *f);
void roce_r37(const struct check_input *in, struct fb_finding *f);
void roce_r38(const struct check_input *in, struct fb_finding *f);
void roce_r39(const struct check_input *in, struct fb_finding *f);
void roce_r40(const struct check_input *in, struct fb_finding *f);
void roce_r41(const struct check_input *in, struct fb_finding *f);
void roce_r42(const struct check_input *in, struct fb_finding *f);
void ib_i01(const struct check_input *in, struct fb_finding *f);
void ib_i02(const struct check_input *in, struct fb_finding *f);
void ib_i03(const struct check_input *in, struct fb_finding *f);
void ib_i04(const struct check_input *in, struct fb_finding *f);
void ib_i05(const struct check_input *in, struct fb_finding *f);
void ib_i06(const struct check_input *in, struct fb_finding *f);
void ib_i07(const struct check_input *in, struct fb_finding *f);
void ib_i08(const struct check_input *in, struct fb_finding *f);
void ib_i09(const struct check_input *in, struct fb_finding *f);
void ib_i10(const struct check_input *in, struct fb_finding *f);
void ib_i11(const struct check_input *in, struct fb_finding *f);
void ib_i12(const struct check_input *in, struct fb_finding *f);
void ib_i13(const struct check_input *in, struct fb_finding *f);

#endif
