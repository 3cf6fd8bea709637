// SPDX-License-Identifier: Apache-2.0
/*
 * Small things that collectives and messages over MPI both need. Never initialises MPI.
 */
#include "bench/plugins/mpi/util.h"

#include <errno.h>
#include <mpi.h>

int mpi_error(struct fb_err *e, int rc, const char *what)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int len = 0;
	MPI_Error_string(rc, text, &len);
	return fb_fail(e, FB_EXIT_UNMEASURED, EIO, "%s: %s", what, text);
}

bool mpi_initialized(void)
{
	int begun = 0, ended = 0;
	MPI_Initialized(&begun);
	MPI_Finalized(&ended);
	return begun && !ended;
}

int mpi_check_world(int rank, int size, struct fb_err *e)
{
	int world_size = 0, world_rank = 0;
	if (!mpi_initialized()) {
		fb_fail(e, FB_EXIT_UNMEASURED, ENODEV,
			"the mpi backend needs ranks that MPI started");
		fb_hint(e, "start them by mpirun -n N or srun --mpi=pmix, with --comm mpi or auto");
		return -ENODEV;
	}
	MPI_Comm_size(MPI_COMM_WORLD, &world_size);
	MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
	if (world_size == size && world_rank == rank)
		return 0;
	return fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
		"MPI's world is rank %d of %d, but the ranks that met are %d of %d", world_rank,
		world_size, rank, size);
}
