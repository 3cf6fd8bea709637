/* SPDX-License-Identifier: Apache-2.0 */
/* Reports read results only: a run directory or a result document in, figures and one
 * self-contained HTML file out; or two of them in, and a verdict out. */
#ifndef REPORTS_REPORT_H
#define REPORTS_REPORT_H

#include "bench/core/cmd.h"

/** `fabricbench report DIR|FILE`. */
extern const struct fb_cmd report_cmd;
/** `fabricbench compare BASE CAND`. */
extern const struct fb_cmd compare_cmd;
/** `fabricbench import TOOL FILE...`. */
extern const struct fb_cmd import_cmd;

#endif
