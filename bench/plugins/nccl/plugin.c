// SPDX-License-Identifier: Apache-2.0
/*
 * The nccl plug-in: collectives between GPUs, one rank per thread or process, one GPU per rank.
 *
 * Deadlines. NCCL's own non-blocking communicators start a thread for every operation (ncclGroupEnd
 * with blocking = 0), which would be measured with it, so the communicator is a blocking one, and
 * two guards keep every call finite: it is created in a thread that is waited for with a deadline,
 * and a guard thread aborts the communicator when a call does not come back in time. What runs on
 * the device is only ever polled.
 *
 * Symbols later than NCCL 2.24 are never linked.
 */
#include <cuda_runtime_api.h>
#include <errno.h>
#include <nccl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/core/plugin.h"
#include "collectives/coll_ops.h"

#define STRING2(x) #x
#define STRING(x)  STRING2(x)
#define BUILT                                                         \
	"NCCL " STRING(NCCL_MAJOR) "." STRING(NCCL_MINOR) "." STRING( \
		NCCL_PATCH) ", CUDA runtime " STRING(CUDART_VERSION)

struct coll_comm {
	struct coll_env env;
	int device;
	ncclComm_t comm;
	cudaStream_t stream;
	pthread_t guard;
	bool guarded;
	atomic_bool guard_stop;
	atomic_uint_fast64_t call_since; /**< now() at which a call into NCCL began; 0: none */
	atomic_bool aborted;
	char pending[64]; /**< what wait() waits for */
};

static int cuda_error(struct fb_err *e, cudaError_t rc, const char *what, int device)
{
	int code = rc == cudaErrorMemoryAllocation ? ENOMEM : EIO;
	cudaGetLastError();
	return fb_fail(e, FB_EXIT_UNMEASURED, code, "%s on device %d: %s (%s)", what, device,
		cudaGetErrorString(rc), cudaGetErrorName(rc));
}

static int nccl_error(struct fb_err *e, struct coll_comm *c, ncclResult_t rc, const char *what)
{
	if (c && atomic_load(&c->aborted)) {
		fb_fail(e, FB_EXIT_UNMEASURED, ETIMEDOUT,
			"%s did not come back within %llu s and was aborted", what,
			(unsigned long long)(c->env.timeout_ns / 1000000000u));
		fb_hint(e, "a rank is missing or cannot be reached: NCCL_DEBUG=INFO shows how far "
			   "it came");
		return -ETIMEDOUT;
	}
	const char *detail = ncclGetLastError(c ? c->comm : NULL);
	fb_fail(e, FB_EXIT_UNMEASURED, rc == ncclRemoteError ? ECONNRESET : EIO, "%s: %s%s%s", what,
		ncclGetErrorString(rc), detail && *detail ? ": " : "", detail ? detail : "");
	fb_hint(e, "NCCL_DEBUG=INFO tells more");
	return e ? e->code : -EIO;
}

static void nccl_version(char *buf, size_t len)
{
	int v = 0;
	ncclGetVersion(&v);
	/* 2.9 changed the encoding from MmPP to Mmmpp. */
	if (v < 10000)
		snprintf(buf, len, "%d.%d.%d", v / 1000, v % 1000 / 100, v % 100);
	else
		snprintf(buf, len, "%d.%d.%d", v / 10000, v % 10000 / 100, v % 100);
}

static int probe(char *found, size_t len, struct fb_err *why)
{
	char version[32];
	int n = 0, driver = 0;
	nccl_version(version, sizeof(version));
	cudaError_t rc = cudaGetDeviceCount(&n);
	if (rc == cudaSuccess && n > 0) {
		snprintf(found, len, "NCCL %s found; %d CUDA device%s", version, n,
			n == 1 ? "" : "s");
		return 0;
	}
	cudaGetLastError();
	cudaDriverGetVersion(&driver);
	const char *reason = rc == cudaSuccess ? "the runtime counts none" : cudaGetErrorString(rc);
	snprintf(found, len, "NCCL %s found; no CUDA device: %s", version, reason);
	fb_fail(why, FB_EXIT_SKIP, ENODEV, "NCCL %s found; no CUDA device: %s", version, reason);
	if (driver == 0)
		fb_hint(why, "no NVIDIA driver is loaded: run it on a machine with a GPU, or use "
			     "--backend mpi or --backend local");
	else
		fb_hint(why,
			"the driver serves CUDA up to %d.%d: see nvidia-smi and "
			"CUDA_VISIBLE_DEVICES",
			driver / 1000, driver % 1000 / 10);
	return -ENODEV;
}

static int devices(void)
{
	int n = 0;
	if (cudaGetDeviceCount(&n) != cudaSuccess) {
		cudaGetLastError();
		return 0;
	}
	return n;
}

static const ncclDataType_t types[COLL_DTYPE_COUNT] = {
	[COLL_INT8] = ncclInt8,
	[COLL_UINT8] = ncclUint8,
	[COLL_INT32] = ncclInt32,
	[COLL_INT64] = ncclInt64,
	[COLL_FLOAT] = ncclFloat32,
	[COLL_DOUBLE] = ncclFloat64,
	[COLL_HALF] = ncclFloat16,
	[COLL_BFLOAT16] = ncclBfloat16,
};
static const ncclRedOp_t redops[COLL_REDOP_COUNT] = {
	[COLL_SUM] = ncclSum,
	[COLL_PROD] = ncclProd,
	[COLL_MAX] = ncclMax,
	[COLL_MIN] = ncclMin,
};

static bool supports(enum coll_op op, enum coll_dtype dtype, enum coll_redop redop)
{
	return (unsigned)op < COLL_OP_COUNT && (unsigned)dtype < COLL_DTYPE_COUNT &&
	       (unsigned)redop < COLL_REDOP_COUNT;
}

/* ---- creation, in a thread that is waited for with a deadline ---------------------------------
 */

struct creation {
	pthread_mutex_t lock;
	pthread_cond_t done_cond;
	int users; /**< who frees: the thread or the caller, whoever leaves last */
	bool done;
	int device, size, rank;
	ncclUniqueId id;
	ncclComm_t comm;
	cudaError_t cuda;
	ncclResult_t rc;
	char detail[256];
};

static void creation_leave(struct creation *k)
{
	pthread_mutex_lock(&k->lock);
	int left = --k->users;
	pthread_mutex_unlock(&k->lock);
	if (left == 0) {
		pthread_cond_destroy(&k->done_cond);
		pthread_mutex_destroy(&k->lock);
		free(k);
	}
}

static void *creation_main(void *arg)
{
	struct creation *k = arg;
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	config.blocking = 1;
	ncclComm_t comm = NULL;
	ncclResult_t rc = ncclSuccess;
	cudaError_t cr = cudaSetDevice(k->device);
	if (cr == cudaSuccess)
		rc = ncclCommInitRankConfig(&comm, k->size, k->id, k->rank, &config);
	const char *detail = rc == ncclSuccess ? "" : ncclGetLastError(NULL);
	pthread_mutex_lock(&k->lock);
	k->cuda = cr;
	k->rc = rc;
	k->comm = comm;
	k->done = true;
	snprintf(k->detail, sizeof(k->detail), "%s", detail ? detail : "");
	pthread_cond_signal(&k->done_cond);
	pthread_mutex_unlock(&k->lock);
	creation_leave(k);
	return NULL;
}

static int creation_wait(struct creation *k, struct coll_comm *c, struct fb_err *e)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)(c->env.timeout_ns / 1000000000u);
	until.tv_nsec += (long)(c->env.timeout_ns % 1000000000u);
	if (until.tv_nsec >= 1000000000L) {
		until.tv_nsec -= 1000000000L;
		until.tv_sec++;
	}
	int rc = 0;
	pthread_mutex_lock(&k->lock);
	while (!k->done && rc == 0)
		rc = pthread_cond_timedwait(&k->done_cond, &k->lock, &until);
	bool done = k->done;
	pthread_mutex_unlock(&k->lock);
	if (!done) {
		fb_fail(e, FB_EXIT_UNMEASURED, ETIMEDOUT,
			"ncclCommInitRankConfig of rank %d of %d was not done within %llu s",
			c->env.rank, c->env.size,
			(unsigned long long)(c->env.timeout_ns / 1000000000u));
		fb_hint(e, "NCCL_DEBUG=INFO shows how far it came; NCCL_SOCKET_IFNAME chooses the "
			   "interface; a firewall between the hosts stops it");
		return -ETIMEDOUT;
	}
	if (k->cuda != cudaSuccess)
		return cuda_error(e, k->cuda, "cudaSetDevice", k->device);
	if (k->rc != ncclSuccess) {
		fb_fail(e, FB_EXIT_UNMEASURED, EIO,
			"ncclCommInitRankConfig of rank %d of %d on device %d: %s%s%s", c->env.rank,
			c->env.size, k->device, ncclGetErrorString(k->rc), k->detail[0] ? ": " : "",
			k->detail);
		fb_hint(e, "NCCL_DEBUG=INFO tells more");
		return -EIO;
	}
	c->comm = k->comm;
	return 0;
}

static int create_comm(struct coll_comm *c, const ncclUniqueId *id, struct fb_err *e)
{
	struct creation *k = calloc(1, sizeof(*k));
	if (!k)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a communicator");
	k->users = 2;
	k->device = c->device;
	k->size = c->env.size;
	k->rank = c->env.rank;
	k->id = *id;
	pthread_mutex_init(&k->lock, NULL);
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&k->done_cond, &attr);
	pthread_condattr_destroy(&attr);
	pthread_t thread;
	int rc = pthread_create(&thread, NULL, creation_main, k);
	if (rc != 0) {
		k->users = 1;
		creation_leave(k);
		return fb_fail(e, FB_EXIT_UNMEASURED, rc, "no thread for ncclCommInitRankConfig");
	}
	pthread_detach(thread);
	rc = creation_wait(k, c, e);
	creation_leave(k);
	return rc;
}

/* ---- the guard over calls that NCCL does not return from --------------------------------------
 */

static void *guard_main(void *arg)
{
	struct coll_comm *c = arg;
	const struct timespec nap = {0, 50000000};
	while (!atomic_load(&c->guard_stop)) {
		nanosleep(&nap, NULL);
		uint64_t since = atomic_load(&c->call_since);
		uint64_t now = c->env.now();
		if (since != 0 && now > since && now - since > c->env.timeout_ns &&
			!atomic_exchange(&c->aborted, true)) {
			cudaSetDevice(c->device);
			ncclCommAbort(c->comm);
		}
	}
	return NULL;
}

static int open_comm(const struct coll_env *env, struct coll_comm **out, struct fb_err *e)
{
	int n = devices();
	if (env->local_rank >= n) {
		fb_fail(e, FB_EXIT_UNMEASURED, ENODEV,
			"rank %d is number %d on this host, which has %d CUDA device%s", env->rank,
			env->local_rank, n, n == 1 ? "" : "s");
		fb_hint(e, "start no more ranks per host than GPUs; NCCL takes one GPU per rank");
		return -ENODEV;
	}
	struct coll_comm *c = calloc(1, sizeof(*c));
	if (!c)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a communicator");
	c->env = *env;
	c->device = env->local_rank;
	/* Rank 0's failure reaches the others as an empty id, so that nobody waits for it. */
	ncclUniqueId id;
	memset(&id, 0, sizeof(id));
	ncclResult_t nr = ncclSuccess;
	if (env->rank == 0)
		nr = ncclGetUniqueId(&id);
	int rc = env->bcast(env->arg, &id, sizeof(id), e);
	if (rc == 0 && nr != ncclSuccess)
		rc = nccl_error(e, NULL, nr, "ncclGetUniqueId");
	static const ncclUniqueId none;
	if (rc == 0 && memcmp(&id, &none, sizeof(id)) == 0)
		rc = fb_fail(e, FB_EXIT_UNMEASURED, EIO, "rank 0 could not make NCCL's unique id");
	if (rc != 0)
		goto free_c;
	rc = create_comm(c, &id, e);
	if (rc != 0)
		goto free_c;
	cudaError_t cr = cudaSetDevice(c->device);
	if (cr == cudaSuccess)
		cr = cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking);
	if (cr != cudaSuccess) {
		rc = cuda_error(e, cr, "cudaStreamCreate", c->device);
		goto abort_comm;
	}
	rc = pthread_create(&c->guard, NULL, guard_main, c);
	if (rc != 0) {
		rc = fb_fail(e, FB_EXIT_UNMEASURED, rc, "no thread to guard NCCL's calls");
		goto destroy_stream;
	}
	c->guarded = true;
	*out = c;
	return 0;
destroy_stream:
	cudaStreamDestroy(c->stream);
abort_comm:
	ncclCommAbort(c->comm);
free_c:
	free(c);
	return rc;
}

static int buf_alloc(struct coll_comm *c, size_t bytes, void **p, struct fb_err *e)
{
	cudaSetDevice(c->device);
	cudaError_t rc = cudaMalloc(p, bytes);
	if (rc == cudaSuccess)
		return 0;
	char what[64];
	snprintf(what, sizeof(what), "cudaMalloc of %zu bytes", bytes);
	int code = cuda_error(e, rc, what, c->device);
	fb_hint(e, "a smaller --max-bytes needs less memory; nvidia-smi shows who holds it");
	return code;
}

static void buf_free(struct coll_comm *c, void *p)
{
	if (p && cudaSetDevice(c->device) == cudaSuccess)
		cudaFree(p);
}

static int poll_stream(struct coll_comm *c, uint64_t deadline, struct fb_err *e)
{
	for (unsigned polls = 1;; polls++) {
		cudaError_t rc = cudaStreamQuery(c->stream);
		if (rc == cudaSuccess)
			return 0;
		if (rc != cudaErrorNotReady)
			return cuda_error(e, rc, c->pending, c->device);
		/* A peer's death shows here only; asking is dear beside a poll. */
		if (polls % 256 == 0) {
			ncclResult_t async = ncclSuccess;
			ncclResult_t nr = ncclCommGetAsyncError(c->comm, &async);
			if (nr == ncclSuccess)
				nr = async;
			if (nr != ncclSuccess && nr != ncclInProgress)
				return nccl_error(e, c, nr, c->pending);
		}
		if (c->env.now() >= deadline)
			return fb_fail(e, FB_EXIT_UNMEASURED, ETIMEDOUT,
				"rank %d: %s has not finished in time", c->env.rank, c->pending);
		sched_yield();
	}
}

static int copy(struct coll_comm *c, void *dst, const void *src, size_t bytes,
	enum cudaMemcpyKind kind, const char *what, struct fb_err *e)
{
	cudaError_t rc = cudaSetDevice(c->device);
	if (rc == cudaSuccess)
		rc = cudaMemcpyAsync(dst, src, bytes, kind, c->stream);
	if (rc != cudaSuccess)
		return cuda_error(e, rc, what, c->device);
	snprintf(c->pending, sizeof(c->pending), "%s", what);
	return poll_stream(c, c->env.now() + c->env.timeout_ns, e);
}

static int upload(struct coll_comm *c, void *dst, const void *src, size_t bytes, struct fb_err *e)
{
	return copy(c, dst, src, bytes, cudaMemcpyHostToDevice, "a copy to the GPU", e);
}

static int download(struct coll_comm *c, void *dst, const void *src, size_t bytes, struct fb_err *e)
{
	return copy(c, dst, src, bytes, cudaMemcpyDeviceToHost, "a copy from the GPU", e);
}

static ncclResult_t alltoall(struct coll_comm *c, const struct coll_call *k)
{
	size_t block = k->count * coll_dtype_size(k->dtype);
	ncclResult_t rc = ncclGroupStart();
	for (int i = 0; i < c->env.size && rc == ncclSuccess; i++) {
		rc = ncclSend((const char *)k->send + (size_t)i * block, k->count, types[k->dtype],
			i, c->comm, c->stream);
		if (rc == ncclSuccess)
			rc = ncclRecv((char *)k->recv + (size_t)i * block, k->count,
				types[k->dtype], i, c->comm, c->stream);
	}
	ncclResult_t end = ncclGroupEnd();
	return rc != ncclSuccess ? rc : end;
}

static int start(struct coll_comm *c, const struct coll_call *k, struct fb_err *e)
{
	static const char *const names[COLL_OP_COUNT] = {"ncclAllReduce", "ncclAllGather",
		"ncclReduceScatter", "ncclBroadcast", "alltoall by ncclSend and ncclRecv"};
	if (!supports(k->op, k->dtype, k->redop))
		return fb_fail(e, FB_EXIT_USAGE, EINVAL, "unknown operation %d", (int)k->op);
	ncclDataType_t t = types[k->dtype];
	ncclRedOp_t op = redops[k->redop];
	ncclResult_t rc = ncclInvalidArgument;
	atomic_store(&c->call_since, c->env.now());
	switch (k->op) {
	case COLL_ALL_REDUCE:
		rc = ncclAllReduce(k->send, k->recv, k->count, t, op, c->comm, c->stream);
		break;
	case COLL_ALL_GATHER:
		rc = ncclAllGather(k->send, k->recv, k->count, t, c->comm, c->stream);
		break;
	case COLL_REDUCE_SCATTER:
		rc = ncclReduceScatter(k->send, k->recv, k->count, t, op, c->comm, c->stream);
		break;
	case COLL_BROADCAST:
		rc = ncclBroadcast(k->send, k->recv, k->count, t, k->root, c->comm, c->stream);
		break;
	case COLL_ALLTOALL: rc = alltoall(c, k); break;
	case COLL_OP_COUNT: break;
	}
	atomic_store(&c->call_since, 0);
	if (rc != ncclSuccess)
		return nccl_error(e, c, rc, names[k->op]);
	snprintf(c->pending, sizeof(c->pending), "%s", names[k->op]);
	return 0;
}

static int describe(struct coll_comm *c, char *buf, size_t len)
{
	char version[32], bus[32] = "";
	struct cudaDeviceProp p;
	nccl_version(version, sizeof(version));
	memset(&p, 0, sizeof(p));
	if (cudaGetDeviceProperties(&p, c->device) != cudaSuccess)
		return -EIO;
	cudaDeviceGetPCIBusId(bus, sizeof(bus), c->device);
	snprintf(buf, len, "NCCL %s, device %d: %s %s; alltoall by grouped send and receive",
		version, c->device, p.name, bus);
	return 0;
}

static void stop_guard(struct coll_comm *c)
{
	if (!c->guarded)
		return;
	atomic_store(&c->guard_stop, true);
	pthread_join(c->guard, NULL);
	c->guarded = false;
}

static void abort_comm(struct coll_comm *c)
{
	if (!atomic_exchange(&c->aborted, true)) {
		cudaSetDevice(c->device);
		ncclCommAbort(c->comm);
	}
}

/* A healthy communicator is finalized by its destruction, which waits for the peers: the guard
 * stands over it too. */
static void close_comm(struct coll_comm *c)
{
	if (!c)
		return;
	cudaSetDevice(c->device);
	atomic_store(&c->call_since, c->env.now());
	bool aborted = atomic_load(&c->aborted);
	if (!aborted)
		ncclCommDestroy(c->comm);
	atomic_store(&c->call_since, 0);
	stop_guard(c);
	cudaStreamDestroy(c->stream);
	free(c);
}

static const struct coll_ops coll = {
	.name = "nccl",
	.memory = "device",
	.probe = probe,
	.supports = supports,
	.open = open_comm,
	.alloc = buf_alloc,
	.free = buf_free,
	.upload = upload,
	.download = download,
	.start = start,
	.wait = poll_stream,
	.describe = describe,
	.abort = abort_comm,
	.close = close_comm,
	.devices = devices,
};

static const struct fb_plugin plugin = {
	.abi = FB_PLUGIN_ABI,
	.name = "nccl",
	.built = BUILT,
	.probe = probe,
	.coll = &coll,
};

__attribute__((visibility("default"))) const struct fb_plugin *fabricbench_plugin_v1(void)
{
	return &plugin;
}
