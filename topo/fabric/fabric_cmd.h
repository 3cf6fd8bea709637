/* SPDX-License-Identifier: Apache-2.0 */
/* Of `topo fabric`: its table. */
#ifndef TOPO_FABRIC_FABRIC_CMD_H
#define TOPO_FABRIC_FABRIC_CMD_H

#include <jansson.h>
#include <stdio.h>

void fabric_print(const json_t *doc, FILE *out);

#endif
