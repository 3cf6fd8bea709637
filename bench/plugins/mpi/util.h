/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the mpi plug-in share: errors of MPI in words, and is MPI at work? */
#ifndef PLUGINS_MPI_UTIL_H
#define PLUGINS_MPI_UTIL_H

#include <stdbool.h>

#include "bench/core/err.h"

/** "what: MPI's text". @return -EIO */
int mpi_error(struct fb_err *e, int rc, const char *what);
/** MPI_Init has been called, MPI_Finalize has not. */
bool mpi_initialized(void);
/** The ranks that met must be MPI's world. @return 0, -ENODEV (MPI did not start them), -EPROTO */
int mpi_check_world(int rank, int size, struct fb_err *e);

#endif
