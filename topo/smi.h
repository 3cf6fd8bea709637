/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The matrix that `nvidia-smi topo -m` and `-mp` print.
 */
#ifndef TOPO_SMI_H
#define TOPO_SMI_H

#include "topo/topo_priv.h"

/**
 * topo_load_smi() of a text that is in memory already.
 * @param text text[len] is '\0'
 * @param what the file's name, for messages
 */
int topo_parse_smi(const char *text, size_t len, const char *what, struct topo **out,
	struct fb_err *e) FB_MUST_CHECK;

#endif
