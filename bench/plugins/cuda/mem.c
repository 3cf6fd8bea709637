// SPDX-License-Identifier: Apache-2.0
/*
 * GPU memory: allocation, copies, fills, dma-buf handles for RDMA registration, and the time of a
 * copy by the device's own events.
 *
 * The driver's own library is opened by name for the dma-buf calls alone: a program that never asks
 * for one needs no libcuda.so.1 to load this file.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/mem/mem_ops.h"
#include "bench/plugins/cuda/cuda_priv.h"

static int count(void)
{
	int n = 0;
	if (cudaGetDeviceCount(&n) != cudaSuccess) {
		cudaGetLastError();
		return 0;
	}
	return n;
}

static int use(int device, struct fb_err *e)
{
	cudaError_t rc = cudaSetDevice(device);
	return rc == cudaSuccess ? 0 : cuda_fail(e, rc, "cudaSetDevice(%d)", device);
}

static int describe(int device, char *buf, size_t len, struct fb_err *e)
{
	struct cudaDeviceProp p;
	cudaError_t rc = cudaGetDeviceProperties(&p, device);
	if (rc != cudaSuccess)
		return cuda_fail(e, rc, "cudaGetDeviceProperties(%d)", device);
	char bus[32] = "";
	rc = cudaDeviceGetPCIBusId(bus, sizeof(bus), device);
	if (rc != cudaSuccess)
		return cuda_fail(e, rc, "cudaDeviceGetPCIBusId(%d)", device);
	snprintf(buf, len, "%s, %zu GiB, %s", p.name, p.totalGlobalMem >> 30, bus);
	return 0;
}

static int mem_alloc(int device, size_t bytes, void **p, struct fb_err *e)
{
	int rc = use(device, e);
	if (rc != 0)
		return rc;
	cudaError_t cr = cudaMalloc(p, bytes);
	if (cr == cudaSuccess)
		return 0;
	rc = cuda_fail(e, cr, "cudaMalloc of %zu bytes on device %d", bytes, device);
	fb_hint(e, "nvidia-smi shows who holds the memory; ask for less with a smaller size");
	return rc;
}

static void mem_free(int device, void *p)
{
	if (p && cudaSetDevice(device) == cudaSuccess)
		cudaFree(p);
}

static int copy(int device, void *dst, const void *src, size_t bytes, struct fb_err *e)
{
	int rc = use(device, e);
	if (rc != 0)
		return rc;
	cudaError_t cr = cudaMemcpy(dst, src, bytes, cudaMemcpyDefault);
	/* A copy within the device returns before it is done. */
	if (cr == cudaSuccess)
		return cuda_poll(cudaStreamLegacy, NULL, "cudaMemcpy", e);
	return cuda_fail(e, cr, "cudaMemcpy of %zu bytes on device %d", bytes, device);
}

static int fill(int device, void *p, int byte, size_t bytes, struct fb_err *e)
{
	int rc = use(device, e);
	if (rc != 0)
		return rc;
	cudaError_t cr = cudaMemset(p, byte, bytes);
	if (cr == cudaSuccess)
		return cuda_poll(cudaStreamLegacy, NULL, "cudaMemset", e);
	return cuda_fail(e, cr, "cudaMemset of %zu bytes on device %d", bytes, device);
}

/* The driver calls of a dma-buf, in the versions that CUDA 11.7 brought and later ones keep. */
struct driver {
	CUresult (*get)(CUdevice *, int);
	CUresult (*attribute)(int *, CUdevice_attribute, CUdevice);
	CUresult (*handle)(void *, CUdeviceptr, size_t, CUmemRangeHandleType, unsigned long long);
};

static int open_driver(struct driver *d, struct fb_err *e)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return fb_fail(
			e, FB_EXIT_UNMEASURED, EOPNOTSUPP, "no NVIDIA driver: %s", dlerror());
	*(void **)&d->get = dlsym(lib, "cuDeviceGet");
	*(void **)&d->attribute = dlsym(lib, "cuDeviceGetAttribute");
	*(void **)&d->handle = dlsym(lib, "cuMemGetHandleForAddressRange");
	if (d->get && d->attribute && d->handle)
		return 0;
	fb_fail(e, FB_EXIT_UNMEASURED, EOPNOTSUPP,
		"this NVIDIA driver has no cuMemGetHandleForAddressRange");
	fb_hint(e, "dma-buf of GPU memory needs a driver of CUDA 11.7 (515) or later");
	return -EOPNOTSUPP;
}

static int dmabuf_fd(int device, void *p, size_t bytes, int *fd, uint64_t *offset, struct fb_err *e)
{
	struct driver d = {0};
	CUdevice dev;
	int supported = 0;
	int rc = use(device, e);
	if (rc == 0)
		rc = open_driver(&d, e);
	if (rc != 0)
		return rc;
	if (d.get(&dev, device) == CUDA_SUCCESS)
		d.attribute(&supported, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, dev);
	if (!supported) {
		fb_fail(e, FB_EXIT_UNMEASURED, EOPNOTSUPP,
			"device %d gives no dma-buf of its memory", device);
		fb_hint(e, "it needs the open kernel modules of the NVIDIA driver and Linux 5.12; "
			   "else load nvidia-peermem");
		return -EOPNOTSUPP;
	}
	/* A dma-buf begins and ends on host pages. */
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t first = (uint64_t)(uintptr_t)p & ~(page - 1);
	uint64_t end = ((uint64_t)(uintptr_t)p + bytes + page - 1) & ~(page - 1);
	CUresult cr = d.handle(fd, (CUdeviceptr)first, (size_t)(end - first),
		CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
	if (cr != CUDA_SUCCESS)
		return fb_fail(e, FB_EXIT_UNMEASURED, EOPNOTSUPP,
			"cuMemGetHandleForAddressRange of %zu bytes on device %d: CUDA driver "
			"error %d",
			bytes, device, (int)cr);
	*offset = (uint64_t)(uintptr_t)p - first;
	return 0;
}

static int copy_time(int device, void *dst, const void *src, size_t bytes, int iters, uint64_t *ns,
	struct fb_err *e)
{
	cudaStream_t stream = NULL;
	cudaEvent_t begin = NULL, end = NULL;
	float ms = 0;
	int rc = use(device, e);
	if (rc != 0)
		return rc;
	cudaError_t cr = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
	if (cr == cudaSuccess)
		cr = cudaEventCreate(&begin);
	if (cr == cudaSuccess)
		cr = cudaEventCreate(&end);
	if (cr == cudaSuccess)
		cr = cudaEventRecord(begin, stream);
	for (int i = 0; i < iters && cr == cudaSuccess; i++)
		cr = cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, stream);
	if (cr == cudaSuccess)
		cr = cudaEventRecord(end, stream);
	if (cr == cudaSuccess)
		rc = cuda_poll(NULL, end, "a copy on the device", e);
	if (cr == cudaSuccess && rc == 0)
		cr = cudaEventElapsedTime(&ms, begin, end);
	if (cr != cudaSuccess)
		rc = cuda_fail(
			e, cr, "timing %d copies of %zu bytes on device %d", iters, bytes, device);
	*ns = (uint64_t)((double)ms * 1e6 / (iters > 0 ? iters : 1));
	if (end)
		cudaEventDestroy(end);
	if (begin)
		cudaEventDestroy(begin);
	if (stream)
		cudaStreamDestroy(stream);
	return rc;
}

const struct fb_mem_ops cuda_mem_ops = {
	.name = "cuda",
	.probe = cuda_probe,
	.count = count,
	.describe = describe,
	.alloc = mem_alloc,
	.free = mem_free,
	.copy = copy,
	.fill = fill,
	.dmabuf_fd = dmabuf_fd,
	.copy_time = copy_time,
};
