/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of a training step over MPI. */
#ifndef PLUGINS_MPI_P2P_MPI_H
#define PLUGINS_MPI_P2P_MPI_H

struct p2p_ops;

extern const struct p2p_ops mpi_p2p_ops;

#endif
