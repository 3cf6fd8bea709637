/* SPDX-License-Identifier: Apache-2.0 */
/* What opt.c and opt_help.c share; nobody else includes it. */
#ifndef FB_CORE_OPT_IMPL_H
#define FB_CORE_OPT_IMPL_H

#include "bench/core/opt.h"

#define FB_OPT_MAX_SETS ((int)(sizeof(((struct fb_opt_spec *)0)->sets) / sizeof(struct fb_opt_set)))

/* An option in its place. */
struct found {
	const struct fb_opt *opt;
	int set;
	size_t index;
};

#define for_each_set(spec, s)    for (int s = 0; s < FB_OPT_MAX_SETS && (spec)->sets[s].opts; s++)
#define for_each_opt(spec, s, o) for (const struct fb_opt *o = (spec)->sets[s].opts; o->name; o++)

/** The option that a letter belongs to: the first table's that has it. */
bool fb_opt_by_letter(const struct fb_opt_spec *spec, char letter, struct found *f);
/** The limits of a value; false when there are none. */
bool fb_opt_range(const struct fb_opt *o, int64_t *min, int64_t *max);
/** A limit as its option's values are written. */
void fb_opt_limit_text(const struct fb_opt *o, int64_t limit, char *buf, size_t len);
/** yes, no, true, false, 1, 0 into a bool. */
int fb_opt_flag_value(void *p, const char *text, struct fb_err *e);
/** What the help and messages call the argument: never NULL, "" for a flag. */
const char *fb_opt_arg_name(const struct fb_opt *o);

#endif
