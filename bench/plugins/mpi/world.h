/* SPDX-License-Identifier: Apache-2.0 */
/* The control channel of the mpi plug-in. */
#ifndef PLUGINS_MPI_WORLD_H
#define PLUGINS_MPI_WORLD_H

struct fb_oob_provider;

extern const struct fb_oob_provider mpi_oob_provider;

#endif
