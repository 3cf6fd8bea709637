// SPDX-License-Identifier: Apache-2.0
/*
 * Kinds of memory. Huge pages are asked for once and refused with the figures of /proc/meminfo; a
 * GPU's are registered by dma-buf where kernel and driver have it, else by a peer-memory module.
 */
#include "verbs/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/core/plugin.h"
#include "bench/core/units.h"
#include "verbs/place.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

static const struct fb_sysroot live = {.dir = NULL};

const char *const verbs_memory_names[] = {"host", "huge", "gpu", NULL};

static uint64_t meminfo(const char *text, const char *key)
{
	const char *p = strstr(text, key);

	return p ? strtoull(p + strlen(key), NULL, 10) : 0;
}

void verbs_huge_pages(const struct fb_sysroot *r, uint64_t *size, uint64_t *total, uint64_t *left)
{
	char text[8192];
	uint64_t free_pages, reserved;

	*size = *total = *left = 0;
	if (fb_sysroot_read(r, "/proc/meminfo", text, sizeof text) < 0)
		return;
	*size = meminfo(text, "Hugepagesize:") * 1024;
	*total = meminfo(text, "HugePages_Total:");
	free_pages = meminfo(text, "HugePages_Free:");
	/* Reserved ones are promised to others though nobody has touched them yet. */
	reserved = meminfo(text, "HugePages_Rsvd:");
	*left = free_pages > reserved ? free_pages - reserved : 0;
}

static int no_huge_pages(size_t len, int err, struct fb_err *e)
{
	uint64_t size, total, left, need;
	char one[32], all[32];

	verbs_huge_pages(&live, &size, &total, &left);
	if (!size) {
		fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM,
			"--memory huge: this kernel has no huge pages (no Hugepagesize in /proc/meminfo)");
		fb_hint(e, "measure with --memory host");
		return -ENOMEM;
	}
	need = (len + size - 1) / size;
	fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM,
		"--memory huge: %s of buffers need %llu huge pages of %s; %llu are reserved and %llu of "
		"them free (/proc/meminfo): %s",
		fb_fmt_size(len, all, sizeof all), (unsigned long long)need,
		fb_fmt_size(size, one, sizeof one), (unsigned long long)total,
		(unsigned long long)left, strerror(err));
	fb_hint(e, "as root: sysctl vm.nr_hugepages=%llu; or --memory host",
		(unsigned long long)total - left + need);
	return -ENOMEM;
}

static int map_host(struct verbs_mem *m, int node, struct fb_err *e)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), total, left;
	char s[32];

	if (m->kind == VERBS_MEM_HUGE) {
		verbs_huge_pages(&live, &page, &total, &left);
		if (!page)
			return no_huge_pages(m->len, ENOMEM, e);
		flags |= MAP_HUGETLB;
	}
	m->map_len = (size_t)((m->len + page - 1) / page * page);
	m->p = mmap(NULL, m->map_len, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (m->p == MAP_FAILED) {
		int err = errno;
		m->p = NULL;
		if (m->kind == VERBS_MEM_HUGE)
			return no_huge_pages(m->len, err, e);
		fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "cannot allocate %s of buffers",
			fb_fmt_size(m->len, s, sizeof s));
		fb_hint(e, "smaller --size or fewer --qps");
		return -ENOMEM;
	}
	m->node = verbs_place_memory(m->p, m->map_len, node);
	/* A cgroup's limit on huge pages strikes at the first touch, with SIGBUS; asked for this
	 * way it is an error. Kernels without it say EINVAL, and the pages come at the touch below.
	 */
	if (m->kind == VERBS_MEM_HUGE && madvise(m->p, m->map_len, MADV_POPULATE_WRITE) != 0 &&
		errno != EINVAL) {
		int err = errno;
		munmap(m->p, m->map_len);
		m->p = NULL;
		return no_huge_pages(m->len, err, e);
	}
	memset(m->p, 0, m->map_len);
	if (m->kind == VERBS_MEM_HUGE)
		snprintf(m->how, sizeof m->how, "huge pages of %s", fb_fmt_size(page, s, sizeof s));
	else
		snprintf(m->how, sizeof m->how, "host memory");
	return 0;
}

int verbs_mem_alloc_ops(
	struct verbs_mem *m, const struct fb_mem_ops *ops, int gpu, size_t len, struct fb_err *e)
{
	void *p = NULL;
	int rc;

	memset(m, 0, sizeof *m);
	m->node = -1;
	m->kind = VERBS_MEM_GPU;
	m->gpu = gpu;
	if (gpu >= ops->count()) {
		fb_fail(e, FB_EXIT_UNMEASURED, ENODEV, "--memory gpu:%d: there %s %d GPU%s here",
			gpu, ops->count() == 1 ? "is" : "are", ops->count(),
			ops->count() == 1 ? "" : "s");
		fb_hint(e, "nvidia-smi -L lists them; the first is --memory gpu:0");
		return -ENODEV;
	}
	rc = ops->alloc(gpu, len, &p, e);
	if (rc == 0)
		rc = ops->fill(gpu, p, 0, len, e);
	if (rc) {
		if (p)
			ops->free(gpu, p);
		return rc;
	}
	m->ops = ops;
	m->p = p;
	m->len = m->map_len = len;
	snprintf(m->how, sizeof m->how, "GPU %d", gpu);
	return 0;
}

static int alloc_gpu(struct verbs_mem *m, int gpu, size_t len, struct fb_err *e)
{
	struct fb_err why = {0};
	const struct fb_plugin *plugin = fb_plugin_open("cuda", &why);
	char found[256] = "";

	if (plugin && plugin->mem && plugin->mem->probe(found, sizeof found, &why) == 0)
		return verbs_mem_alloc_ops(m, plugin->mem, gpu, len, e);
	/* It was ordered: what is a skip elsewhere could not be measured here. */
	fb_fail(e, FB_EXIT_UNMEASURED, why.code ? -why.code : ENODEV, "--memory gpu: %s",
		why.msg[0] ? why.msg : "the cuda plug-in has no memory");
	fb_hint(e, "%s%s--memory host measures without a GPU", why.hint, why.hint[0] ? "; " : "");
	return e ? e->code : -ENODEV;
}

int verbs_mem_alloc(struct verbs_mem *m, enum verbs_memory kind, int gpu, size_t len, int node,
	struct fb_err *e)
{
	memset(m, 0, sizeof *m);
	m->kind = kind;
	m->node = -1;
	if (kind == VERBS_MEM_GPU)
		return alloc_gpu(m, gpu, len, e);
	m->len = len;
	return map_host(m, node, e);
}

void verbs_mem_free(struct verbs_mem *m)
{
	if (m->p && m->ops)
		m->ops->free(m->gpu, m->p);
	else if (m->p)
		munmap(m->p, m->map_len);
	memset(m, 0, sizeof *m);
}

/* ---- registration ---------------------------------------------------------------------------- */

static struct ibv_mr *register_gpu(
	struct verbs_mem *m, struct ibv_pd *pd, const char *device, int access, struct fb_err *e)
{
	struct fb_err why = {0};
	struct ibv_mr *mr = NULL;
	uint64_t offset = 0;
	int fd = -1, err = 0, rc = m->ops->dmabuf_fd(m->gpu, m->p, m->len, &fd, &offset, &why);

	if (rc == 0) {
		mr = ibv_reg_dmabuf_mr(pd, offset, m->len, (uintptr_t)m->p, fd, access);
		err = errno;
		close(fd); /* the registration holds the dma-buf */
		if (mr) {
			snprintf(m->how, sizeof m->how, "GPU %d by dma-buf", m->gpu);
			return mr;
		}
		fb_fail(&why, FB_EXIT_UNMEASURED, err, "ibv_reg_dmabuf_mr: %s", strerror(err));
	}
	mr = ibv_reg_mr(pd, m->p, m->len, access);
	if (mr) {
		snprintf(m->how, sizeof m->how, "GPU %d by peer memory", m->gpu);
		return mr;
	}
	err = errno;
	fb_fail(e, FB_EXIT_UNMEASURED, err,
		"cannot register memory of GPU %d with %s: not by dma-buf (%s), not by peer memory "
		"(ibv_reg_mr: %s)",
		m->gpu, device, why.msg, strerror(err));
	fb_hint(e,
		"dma-buf needs Linux 5.12, the open GPU kernel modules and a driver of the NIC that "
		"takes it; peer memory needs modprobe nvidia_peermem");
	return NULL;
}

struct ibv_mr *verbs_mem_register(
	struct verbs_mem *m, struct ibv_pd *pd, const char *device, int access, struct fb_err *e)
{
	struct ibv_mr *mr;
	char s[32];
	int err;

	if (m->ops)
		return register_gpu(m, pd, device, access, e);
	mr = ibv_reg_mr(pd, m->p, m->len, access);
	if (mr)
		return mr;
	err = errno;
	fb_fail(e, FB_EXIT_UNMEASURED, err, "cannot register %s of memory with %s: %s",
		fb_fmt_size(m->len, s, sizeof s), device, strerror(err));
	fb_hint(e,
		err == ENOMEM
			? "locked memory (ulimit -l; limits.d) or the device's own limits: smaller "
			  "--size or fewer --qps"
			: "look at dmesg");
	return NULL;
}

/* ---- touching it ----------------------------------------------------------------------------- */

bool verbs_mem_on_host(const struct verbs_mem *m)
{
	return !m->ops;
}

int verbs_mem_put(struct verbs_mem *m, size_t off, const void *from, size_t len, struct fb_err *e)
{
	if (m->ops)
		return len ? m->ops->copy(m->gpu, m->p + off, from, len, e) : 0;
	memcpy(m->p + off, from, len);
	return 0;
}

int verbs_mem_get(const struct verbs_mem *m, size_t off, void *to, size_t len, struct fb_err *e)
{
	if (m->ops)
		return len ? m->ops->copy(m->gpu, to, m->p + off, len, e) : 0;
	memcpy(to, m->p + off, len);
	return 0;
}
