// SPDX-License-Identifier: Apache-2.0
/*
 * The mpi plug-in: ranks that an MPI launcher started, for the control channel, for collectives and
 * for the messages of a training step. Compiled against one MPI, so `make mpi MPICC=...` rebuilds
 * this file set alone for another.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/plugin.h"
#include "bench/oob/oob_ops.h"
#include "bench/plugins/mpi/coll_mpi.h"
#include "bench/plugins/mpi/p2p_mpi.h"
#include "bench/plugins/mpi/world.h"

#define STRING2(x) #x
#define STRING(x)  STRING2(x)
#if defined(OMPI_MAJOR_VERSION)
#define BUILT                                                                             \
	"Open MPI " STRING(OMPI_MAJOR_VERSION) "." STRING(OMPI_MINOR_VERSION) "." STRING( \
		OMPI_RELEASE_VERSION)
#elif defined(MPICH_VERSION)
#define BUILT "MPICH " MPICH_VERSION
#else
#define BUILT "MPI " STRING(MPI_VERSION) "." STRING(MPI_SUBVERSION)
#endif

/* MPI_Get_library_version() is one of the few calls that MPI-3 allows before MPI_Init. The text of
 * Open MPI is "Open MPI v4.1.4, package: ...", MPICH's has many lines. */
static int probe(char *found, size_t len, struct fb_err *why)
{
	(void)why; /* loaded means found: the library is linked, and says its own version */
	char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
	int n = 0;
	MPI_Get_library_version(text, &n);
	text[sizeof(text) - 1] = '\0';
	text[strcspn(text, ",\n")] = '\0';
	char *v = strstr(text, "Open MPI v");
	if (v == text)
		snprintf(found, len, "Open MPI %s", text + strlen("Open MPI v"));
	else
		snprintf(found, len, "%s", text);
	return 0;
}

static const struct fb_plugin self = {
	.abi = FB_PLUGIN_ABI,
	.name = "mpi",
	.built = BUILT,
	.probe = probe,
	.oob = &mpi_oob_provider,
	.coll = &mpi_coll_ops,
	.p2p = &mpi_p2p_ops,
};

__attribute__((visibility("default"))) const struct fb_plugin *fabricbench_plugin_v1(void)
{
	return &self;
}
