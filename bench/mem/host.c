// SPDX-License-Identifier: Apache-2.0
/*
 * Ordinary host memory behind the same table as a GPU's, so that code over memory can be tested
 * where there is no GPU.
 */
#include "bench/mem/mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/clock.h"

static int probe(char *found, size_t len, struct fb_err *why)
{
	snprintf(found, len, "host memory");
	return 0;
}

static int count(void)
{
	return 1;
}

static int only_one(int device, struct fb_err *e)
{
	if (device == 0)
		return 0;
	return fb_fail(e, FB_EXIT_UNMEASURED, ENODEV,
		"device %d: host memory is one device, number 0", device);
}

static int describe(int device, char *buf, size_t len, struct fb_err *e)
{
	int rc = only_one(device, e);
	if (rc != 0)
		return rc;
	double pages = (double)sysconf(_SC_PHYS_PAGES), page = (double)sysconf(_SC_PAGESIZE);
	snprintf(buf, len, "host memory, %.0f GiB", pages * page / 0x1p30);
	return 0;
}

static int mem_alloc(int device, size_t bytes, void **p, struct fb_err *e)
{
	int rc = only_one(device, e);
	if (rc != 0)
		return rc;
	rc = posix_memalign(p, 4096, bytes > 0 ? bytes : 1);
	if (rc == 0)
		return 0;
	*p = NULL;
	fb_fail(e, FB_EXIT_UNMEASURED, rc, "no memory for %zu bytes", bytes);
	fb_hint(e, "ask for less, or free some: free -h");
	return -rc;
}

static void mem_free(int device, void *p)
{
	free(p);
}

static int copy(int device, void *dst, const void *src, size_t bytes, struct fb_err *e)
{
	memcpy(dst, src, bytes);
	return 0;
}

static int fill(int device, void *p, int byte, size_t bytes, struct fb_err *e)
{
	memset(p, byte, bytes);
	return 0;
}

static int dmabuf_fd(int device, void *p, size_t bytes, int *fd, uint64_t *offset, struct fb_err *e)
{
	return fb_fail(e, FB_EXIT_UNMEASURED, EOPNOTSUPP,
		"host memory needs no dma-buf: it is registered by its address");
}

static int copy_time(int device, void *dst, const void *src, size_t bytes, int iters, uint64_t *ns,
	struct fb_err *e)
{
	uint64_t begin = fb_clock_ns();
	for (int i = 0; i < iters; i++)
		memcpy(dst, src, bytes);
	*ns = (fb_clock_ns() - begin) / (uint64_t)(iters > 0 ? iters : 1);
	return 0;
}

const struct fb_mem_ops fb_mem_host = {
	.name = "host",
	.probe = probe,
	.count = count,
	.describe = describe,
	.alloc = mem_alloc,
	.free = mem_free,
	.copy = copy,
	.fill = fill,
	.dmabuf_fd = dmabuf_fd,
	.copy_time = copy_time,
};
