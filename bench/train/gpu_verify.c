// SPDX-License-Identifier: Apache-2.0
/*
 * gpu-check's checks: what is written into a device's memory comes back unchanged, through copies
 * and fills; its matrix products are those of the CPU.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/json.h"
#include "bench/core/log.h"
#include "bench/core/units.h"
#include "bench/train/gpu_priv.h"

#define CHUNK (16u << 20)

bool gpu_add_check(struct fb_doc *doc, const char *id, const char *observed, const char *expected,
	const char *source, const char *read, const struct fb_err *e)
{
	const char *state = "pass";
	if (e->code == -EBADMSG)
		state = "fail";
	else if (e->code == -EOPNOTSUPP || e->exit == FB_EXIT_SKIP)
		state = "skip";
	else if (e->code != 0)
		state = "error";
	json_t *c = json_object(), *want = json_object();
	fb_json_set_str(c, "id", id);
	fb_json_set_str(c, "state", state);
	fb_json_set_str(c, "observed", e->code == 0 ? observed : e->msg);
	fb_json_set_str(want, "value", expected);
	fb_json_set_str(want, "source", source);
	json_object_set_new(c, "expected", want);
	fb_json_set_str(c, "read", read);
	fb_json_set_str(c, "remedy", e->hint);
	if (e->code == 0 || e->hint[0] == '\0')
		json_object_set_new(c, "remedy", json_null());
	json_object_set_new(c, "side_effect", json_null());
	fb_json_set_str(c, "evidence", "constructed");
	if (e->code != 0)
		fb_json_set_str(c, "reason", e->msg);
	fb_doc_add_check(doc, c);
	return strcmp(state, "fail") == 0 || strcmp(state, "error") == 0;
}

/* Word i of the pattern: an address line or a bit that is stuck changes some of them. */
static void pattern(uint64_t *out, size_t words, size_t first)
{
	for (size_t i = 0; i < words; i++) {
		uint64_t x = (first + i + 1) * 0x9e3779b97f4a7c15u;
		out[i] = x ^ (x >> 29);
	}
}

static int differs(
	const char *what, int device, size_t offset, uint64_t want, uint64_t got, struct fb_err *e)
{
	fb_fail(e, FB_EXIT_WRONG_DATA, EBADMSG,
		"device %d, %s: offset %zu: expected 0x%016llx, got 0x%016llx", device, what,
		offset, (unsigned long long)want, (unsigned long long)got);
	fb_hint(e, "nvidia-smi -q -d ECC,ROW_REMAPPER; a device that does it again is replaced");
	return -EBADMSG;
}

/* Compare a chunk of a device's memory with what `want` holds. */
static int compare(const struct fb_mem_ops *m, int device, const void *there, size_t offset,
	const uint64_t *want, uint64_t *got, size_t bytes, const char *what, struct fb_err *e)
{
	int rc = m->copy(device, got, (const char *)there + offset, bytes, e);
	if (rc != 0 || memcmp(got, want, bytes) == 0)
		return rc;
	size_t i = 0;
	while (got[i] == want[i])
		i++;
	return differs(what, device, offset + i * 8, want[i], got[i], e);
}

/* Host to device, device to device, fill, and back. */
static int check_memory(const struct fb_mem_ops *m, int device, size_t bytes, struct fb_err *e)
{
	void *a = NULL, *b = NULL;
	uint64_t *want = malloc(CHUNK), *got = malloc(CHUNK);
	int rc = 0;
	if (!want || !got) {
		fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the pattern");
		rc = -ENOMEM;
	}
	if (rc == 0)
		rc = m->alloc(device, bytes, &a, e);
	if (rc == 0)
		rc = m->alloc(device, bytes, &b, e);
	for (size_t at = 0; at < bytes && rc == 0; at += CHUNK) {
		size_t n = bytes - at < CHUNK ? bytes - at : CHUNK;
		pattern(want, n / 8, at / 8);
		rc = m->copy(device, (char *)a + at, want, n, e);
	}
	if (rc == 0)
		rc = m->copy(device, b, a, bytes, e);
	if (rc == 0)
		rc = m->fill(device, a, 0x5a, bytes, e);
	for (size_t at = 0; at < bytes && rc == 0; at += CHUNK) {
		size_t n = bytes - at < CHUNK ? bytes - at : CHUNK;
		pattern(want, n / 8, at / 8);
		rc = compare(m, device, b, at, want, got, n, "copied pattern", e);
		memset(want, 0x5a, n);
		if (rc == 0)
			rc = compare(m, device, a, at, want, got, n, "filled with 0x5a", e);
	}
	if (a)
		m->free(device, a);
	if (b)
		m->free(device, b);
	free(want);
	free(got);
	return rc;
}

static int check_dmabuf(const struct fb_mem_ops *m, int device, struct fb_err *e)
{
	void *p = NULL;
	int fd = -1;
	uint64_t offset = 0;
	int rc = m->alloc(device, 2u << 20, &p, e);
	if (rc != 0)
		return rc;
	rc = m->dmabuf_fd(device, p, 2u << 20, &fd, &offset, e);
	if (fd >= 0)
		close(fd);
	m->free(device, p);
	return rc;
}

/* Every transposition, with and without C added, in one type. */
static int check_gemm(const struct gemm_place *p, enum gemm_dtype t, struct fb_err *e)
{
	int rc = 0;
	for (int kind = 0; kind < 8 && rc == 0; kind++) {
		struct gemm_shape s =
			gemm_dense(256, 192, 320, t, kind & 1, kind & 2, kind & 4 ? 1.0f : 0.0f);
		rc = gemm_check(p, &s, e);
	}
	return rc;
}

static unsigned check_device(const struct gpu_cfg *cfg, struct fb_doc *doc, int device)
{
	char id[64], size[32], what[128];
	const char *prefix = cfg->on == 1 ? "cpu" : "gpu";
	unsigned failed = 0;
	struct fb_err e = {0};
	fb_progress("device %d: memory", device);
	snprintf(id, sizeof(id), "%s.%d.memory", prefix, device);
	snprintf(what, sizeof(what), "%s came back unchanged",
		fb_fmt_size(cfg->check_bytes, size, sizeof(size)));
	(void)!check_memory(cfg->mem, device, cfg->check_bytes & ~(uint64_t)7, &e);
	failed += gpu_add_check(doc, id, what, "every byte as written",
		"the pattern that was written", "copies to, on and from the device, and a fill",
		&e);

	fb_err_clear(&e);
	snprintf(id, sizeof(id), "%s.%d.dmabuf", prefix, device);
	(void)!check_dmabuf(cfg->mem, device, &e);
	failed += gpu_add_check(doc, id, "a dma-buf of device memory was given",
		"a dma-buf, so that RDMA can reach the memory",
		"Linux dma-buf, CUDA 11.7 and later", "cuMemGetHandleForAddressRange", &e);

	for (int t = GEMM_F32; t <= GEMM_BF16; t++) {
		const struct gemm_place place = {cfg->gemm, cfg->mem, device};
		fb_err_clear(&e);
		fb_progress("device %d: %s matrix products", device,
			gemm_dtype_name((enum gemm_dtype)t));
		snprintf(id, sizeof(id), "%s.%d.gemm.%s", prefix, device,
			gemm_dtype_name((enum gemm_dtype)t));
		if (cfg->gemm)
			(void)!check_gemm(&place, (enum gemm_dtype)t, &e);
		else
			e = cfg->gemm_why;
		failed +=
			gpu_add_check(doc, id, "8 products of 256 x 192 x 320, every element equal",
				"every element equal, bit for bit", "a triple loop on the CPU",
				"one product of each transposition, with and without C", &e);
	}
	return failed;
}

unsigned gpu_run_checks(const struct gpu_cfg *cfg, struct fb_doc *doc)
{
	unsigned failed = 0;
	for (int d = 0; d < cfg->devices && !fb_stop_requested(); d++)
		failed += check_device(cfg, doc, d);
	fb_progress_end();
	return failed;
}
