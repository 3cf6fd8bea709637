// SPDX-License-Identifier: Apache-2.0
/*
 * The cuda plug-in: GPU memory and GPU matrix products. It links the CUDA runtime statically, which
 * itself opens libcuda.so.1 only when called: so it loads, and tells what is missing, on a machine
 * without a driver.
 */
#include "bench/plugins/cuda/cuda_priv.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bench/core/plugin.h"

#define STRING2(x) #x
#define STRING(x)  STRING2(x)

/* No operation of this plug-in takes nearly as long on a GPU that is alive. */
#define LIMIT_NS 60000000000u

int cuda_fail(struct fb_err *e, cudaError_t rc, const char *fmt, ...)
{
	char what[256];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	int code = rc == cudaErrorMemoryAllocation ? ENOMEM : EIO;
	if (rc == cudaErrorNoDevice || rc == cudaErrorInsufficientDriver ||
		rc == cudaErrorInvalidDevice)
		code = ENODEV;
	cudaGetLastError(); /* a sticky text must not reach the next call */
	return fb_fail(e, FB_EXIT_UNMEASURED, code, "%s: %s (%s)", what, cudaGetErrorString(rc),
		cudaGetErrorName(rc));
}

static uint64_t mono_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int cuda_poll(cudaStream_t stream, cudaEvent_t event, const char *what, struct fb_err *e)
{
	uint64_t end = mono_ns() + LIMIT_NS;
	for (;;) {
		cudaError_t rc = event ? cudaEventQuery(event) : cudaStreamQuery(stream);
		if (rc == cudaSuccess)
			return 0;
		if (rc != cudaErrorNotReady)
			return cuda_fail(e, rc, "%s", what);
		if (mono_ns() > end) {
			fb_fail(e, FB_EXIT_UNMEASURED, ETIMEDOUT,
				"%s: the GPU has not finished within 60 s", what);
			fb_hint(e, "look for Xid errors: dmesg | grep -i xid; nvidia-smi -q");
			return -ETIMEDOUT;
		}
		sched_yield();
	}
}

int cuda_probe(char *found, size_t len, struct fb_err *why)
{
	int version = CUDART_VERSION, driver = 0, n = 0;
	cudaRuntimeGetVersion(&version);
	cudaDriverGetVersion(&driver);
	cudaError_t rc = cudaGetDeviceCount(&n);
	if (rc == cudaSuccess && n > 0) {
		snprintf(found, len, "CUDA %d.%d runtime, driver for %d.%d, %d device%s found",
			version / 1000, version % 1000 / 10, driver / 1000, driver % 1000 / 10, n,
			n == 1 ? "" : "s");
		return 0;
	}
	cudaGetLastError();
	const char *reason = rc == cudaSuccess ? "it counts none" : cudaGetErrorString(rc);
	snprintf(found, len, "CUDA %d.%d runtime found; no CUDA device: %s", version / 1000,
		version % 1000 / 10, reason);
	fb_fail(why, FB_EXIT_SKIP, ENODEV, "no CUDA device: %s", reason);
	if (driver == 0)
		fb_hint(why,
			"no NVIDIA driver is loaded: on a machine with a GPU install the driver "
			"(nvidia-smi must work); in a container give it the GPUs (--gpus all)");
	else if (driver < version)
		fb_hint(why,
			"the driver serves CUDA up to %d.%d: install a newer driver, or build with "
			"an older toolkit (CUDA_HOME=...)",
			driver / 1000, driver % 1000 / 10);
	else
		fb_hint(why, "see nvidia-smi -L and CUDA_VISIBLE_DEVICES");
	return -ENODEV;
}

static const struct fb_plugin plugin = {
	.abi = FB_PLUGIN_ABI,
	.name = "cuda",
	.built = "CUDA runtime " STRING(CUDART_VERSION),
	.probe = cuda_probe,
	.mem = &cuda_mem_ops,
	.gemm = &cuda_gemm_ops,
};

__attribute__((visibility("default"))) const struct fb_plugin *fabricbench_plugin_v1(void)
{
	return &plugin;
}
