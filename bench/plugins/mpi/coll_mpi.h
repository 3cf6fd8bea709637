/* SPDX-License-Identifier: Apache-2.0 */
/* The collective backend of the mpi plug-in. */
#ifndef PLUGINS_MPI_COLL_MPI_H
#define PLUGINS_MPI_COLL_MPI_H

struct coll_ops;

extern const struct coll_ops mpi_coll_ops;

#endif
