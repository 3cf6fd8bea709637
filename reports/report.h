/* SPDX-License-Identifier: Apache-2.0 */
/* Reports read results only: a run directory or a result document in, figures and one
 * self-contained HTML file out. */
#ifndef REPORTS_REPORT_H
#define REPORTS_REPORT_H

#include "bench/core/cmd.h"

/** `fabricbench report DIR|FILE`. */
extern const struct fb_cmd report_cmd;

#endif
