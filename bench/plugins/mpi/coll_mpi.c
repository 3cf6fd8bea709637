// SPDX-License-Identifier: Apache-2.0
/*
 * Collectives over MPI-3.1: non-blocking operations and MPI_Test loops, so that every wait has a
 * deadline. MPI itself was initialised by this plug-in's out-of-band provider (plugin.c); the
 * communicator is a duplicate of the world, so that no message meets the provider's.
 *
 * MPI has no type for half and bfloat16: supports() refuses them. Its counts are int: larger ones
 * are refused by name.
 */
#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/plugin.h"
#include "bench/plugins/mpi/coll_mpi.h"
#include "bench/plugins/mpi/util.h"
#include "collectives/coll_ops.h"

struct coll_comm {
	struct coll_env env;
	MPI_Comm comm;
	MPI_Request request;
	const char *pending; /**< name of the operation begun; NULL: none */
	bool aborted;
};

static const char *const names[COLL_OP_COUNT] = {"MPI_Iallreduce", "MPI_Iallgather",
	"MPI_Ireduce_scatter_block", "MPI_Ibcast", "MPI_Ialltoall"};

static int probe(char *found, size_t len, struct fb_err *why)
{
	char version[MPI_MAX_LIBRARY_VERSION_STRING];
	int n = 0;
	MPI_Get_library_version(version, &n);
	version[strcspn(version, ",\n")] = '\0';
	snprintf(found, len, "%s found", version);
	if (mpi_initialized())
		return 0;
	fb_fail(why, FB_EXIT_SKIP, ENODEV,
		"MPI is not initialised: no launcher started this process");
	fb_hint(why, "start the ranks by mpirun -n N or srun --mpi=pmix, or use --backend local");
	return -ENODEV;
}

static MPI_Datatype type_of(enum coll_dtype t)
{
	switch (t) {
	case COLL_INT8: return MPI_INT8_T;
	case COLL_UINT8: return MPI_UINT8_T;
	case COLL_INT32: return MPI_INT32_T;
	case COLL_INT64: return MPI_INT64_T;
	case COLL_FLOAT: return MPI_FLOAT;
	case COLL_DOUBLE: return MPI_DOUBLE;
	case COLL_HALF:
	case COLL_BFLOAT16:
	case COLL_DTYPE_COUNT: break;
	}
	return MPI_DATATYPE_NULL;
}

static MPI_Op op_of(enum coll_redop op)
{
	switch (op) {
	case COLL_SUM: return MPI_SUM;
	case COLL_PROD: return MPI_PROD;
	case COLL_MAX: return MPI_MAX;
	case COLL_MIN: return MPI_MIN;
	case COLL_REDOP_COUNT: break;
	}
	return MPI_OP_NULL;
}

static bool supports(enum coll_op op, enum coll_dtype dtype, enum coll_redop redop)
{
	return (unsigned)op < COLL_OP_COUNT && (unsigned)redop < COLL_REDOP_COUNT &&
	       type_of(dtype) != MPI_DATATYPE_NULL;
}

static int wait_comm(struct coll_comm *c, uint64_t deadline, struct fb_err *e)
{
	while (c->pending) {
		int done = 0;
		int rc = MPI_Test(&c->request, &done, MPI_STATUS_IGNORE);
		if (rc != MPI_SUCCESS) {
			const char *what = c->pending;
			c->pending = NULL;
			return mpi_error(e, rc, what);
		}
		if (done)
			c->pending = NULL;
		else if (c->env.now() >= deadline)
			return fb_fail(e, FB_EXIT_UNMEASURED, ETIMEDOUT,
				"rank %d: %s has not finished in time", c->env.rank, c->pending);
	}
	return 0;
}

static int open_comm(const struct coll_env *env, struct coll_comm **out, struct fb_err *e)
{
	int rc = mpi_check_world(env->rank, env->size, e);
	if (rc != 0)
		return rc;
	struct coll_comm *c = calloc(1, sizeof(*c));
	if (!c)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a communicator");
	c->env = *env;
	int mr = MPI_Comm_idup(MPI_COMM_WORLD, &c->comm, &c->request);
	if (mr != MPI_SUCCESS) {
		rc = mpi_error(e, mr, "MPI_Comm_idup");
		goto free_c;
	}
	c->pending = "MPI_Comm_idup";
	rc = wait_comm(c, env->now() + env->timeout_ns, e);
	if (rc != 0)
		goto free_c;
	MPI_Comm_set_errhandler(c->comm, MPI_ERRORS_RETURN);
	*out = c;
	return 0;
free_c:
	free(c);
	return rc;
}

/* Page-aligned: a buffer's alignment changes the copy loops that MPI's shared memory takes. */
static int buf_alloc(struct coll_comm *c, size_t bytes, void **p, struct fb_err *e)
{
	int rc = posix_memalign(p, 4096, bytes > 0 ? bytes : 1);
	if (rc == 0)
		return 0;
	*p = NULL;
	fb_fail(e, FB_EXIT_UNMEASURED, rc, "no memory for a buffer of %zu bytes", bytes);
	fb_hint(e, "a smaller --max-bytes needs less");
	return -rc;
}

static void buf_free(struct coll_comm *c, void *p)
{
	free(p);
}

static int copy(struct coll_comm *c, void *dst, const void *src, size_t bytes, struct fb_err *e)
{
	memcpy(dst, src, bytes);
	return 0;
}

static int too_many(const struct coll_call *k, struct fb_err *e)
{
	fb_fail(e, FB_EXIT_UNMEASURED, EOVERFLOW,
		"%s of %zu elements: MPI 3.1 counts by int, at most %d", names[k->op], k->count,
		INT_MAX);
	fb_hint(e, "use a wider --dtype or a smaller --max-bytes");
	return -EOVERFLOW;
}

static int start(struct coll_comm *c, const struct coll_call *k, struct fb_err *e)
{
	if (!supports(k->op, k->dtype, k->redop))
		return fb_fail(e, FB_EXIT_USAGE, EINVAL, "unknown operation %d", (int)k->op);
	if (k->count > INT_MAX)
		return too_many(k, e);
	int n = (int)k->count, rc = MPI_ERR_ARG;
	MPI_Datatype t = type_of(k->dtype);
	switch (k->op) {
	case COLL_ALL_REDUCE:
		rc = MPI_Iallreduce(k->send, k->recv, n, t, op_of(k->redop), c->comm, &c->request);
		break;
	case COLL_ALL_GATHER:
		rc = MPI_Iallgather(k->send, n, t, k->recv, n, t, c->comm, &c->request);
		break;
	case COLL_REDUCE_SCATTER:
		rc = MPI_Ireduce_scatter_block(
			k->send, k->recv, n, t, op_of(k->redop), c->comm, &c->request);
		break;
	case COLL_BROADCAST:
		/* The root sends its own buffer, and copies it to itself meanwhile: NCCL's meaning
		 * of a broadcast between two buffers. */
		if (c->env.rank == k->root) {
			rc = MPI_Ibcast(
				(void *)(uintptr_t)k->send, n, t, k->root, c->comm, &c->request);
			memcpy(k->recv, k->send, k->count * coll_dtype_size(k->dtype));
		} else {
			rc = MPI_Ibcast(k->recv, n, t, k->root, c->comm, &c->request);
		}
		break;
	case COLL_ALLTOALL:
		rc = MPI_Ialltoall(k->send, n, t, k->recv, n, t, c->comm, &c->request);
		break;
	case COLL_OP_COUNT: break;
	}
	if (rc != MPI_SUCCESS)
		return mpi_error(e, rc, names[k->op]);
	c->pending = names[k->op];
	return 0;
}

static int describe(struct coll_comm *c, char *buf, size_t len)
{
	char version[MPI_MAX_LIBRARY_VERSION_STRING];
	int n = 0;
	MPI_Get_library_version(version, &n);
	version[strcspn(version, ",\n")] = '\0';
	snprintf(buf, len, "%s, non-blocking operations, algorithm chosen by MPI", version);
	return 0;
}

/* What is still pending can neither be waited for nor freed; the program is about to end. */
static void abort_comm(struct coll_comm *c)
{
	c->aborted = true;
}

static void close_comm(struct coll_comm *c)
{
	if (!c)
		return;
	/* Freeing is collective by the standard, local in practice; never after a failure. */
	if (!c->aborted && !c->pending && mpi_initialized())
		MPI_Comm_free(&c->comm);
	free(c);
}

const struct coll_ops mpi_coll_ops = {
	.name = "mpi",
	.memory = "host",
	.probe = probe,
	.supports = supports,
	.open = open_comm,
	.alloc = buf_alloc,
	.free = buf_free,
	.upload = copy,
	.download = copy,
	.start = start,
	.wait = wait_comm,
	.describe = describe,
	.abort = abort_comm,
	.close = close_comm,
};
