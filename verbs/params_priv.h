/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What options (params.c) and the wire form (params_wire.c) check alike: rules over finished
 * parameters. Nothing here is for other files.
 */
#ifndef VERBS_PARAMS_PRIV_H
#define VERBS_PARAMS_PRIV_H

#include "verbs/params.h"

/** Operations, transport and sizes: what the standard lets go together. @return 0 or -EINVAL with
 * the names of what does not */
int verbs_params_fit(const struct verbs_params *p, bool events, struct fb_err *e);
/** Can this kind of memory do what these operations need? @return 0 or -EINVAL */
int verbs_params_memory_fits(const struct verbs_params *p, struct fb_err *e);
/** Is `text` an address that a GID may have? @param name the option's, for the message; e may be
 * NULL. @return 0 or -EINVAL */
int verbs_params_check_address(const char *name, const char *text, struct fb_err *e);

#endif
