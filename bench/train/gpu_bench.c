// SPDX-License-Identifier: Apache-2.0
/*
 * gpu-check's two benchmarks: the rate of copies within a device's memory, and of matrix products,
 * each beside its data-sheet peak where the device is known.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/train/gpu_priv.h"

struct state {
	const struct gpu_cfg *cfg;
	struct fb_run *run;
	/* of the point in progress */
	int device;
	void *mem[3];
	struct gemm_plan *plan;
	struct gemm_shape shape;
};

static void release(struct state *s)
{
	if (s->plan)
		s->cfg->gemm->destroy(s->plan);
	s->plan = NULL;
	for (int i = 0; i < 3; i++) {
		if (s->mem[i])
			s->cfg->mem->free(s->device, s->mem[i]);
		s->mem[i] = NULL;
	}
}

static int setup(struct fb_run *run, const void *cfg, void **st, struct fb_err *e)
{
	struct state *s = calloc(1, sizeof(*s));
	if (!s)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the benchmark");
	s->cfg = cfg;
	s->run = run;
	*st = s;
	return 0;
}

static void teardown(void *st)
{
	if (!st)
		return;
	release(st);
	free(st);
}

static void device_name(const struct state *s, int device, char *buf, size_t len)
{
	if (s->cfg->mem->describe(device, buf, len, NULL) != 0)
		buf[0] = '\0';
}

static const struct gpu_peak *peak_of(const struct state *s, int device)
{
	char name[128];
	device_name(s, device, name, sizeof(name));
	return gpu_peak_of(name);
}

static json_t *facts(void *st, const struct fb_point *p)
{
	struct state *s = st;
	char name[128];
	json_t *f = json_object();
	device_name(s, (int)(p->user >> 8), name, sizeof(name));
	fb_json_set_str(f, "device", name);
	if (s->plan)
		fb_json_set_str(f, "implementation", s->cfg->gemm->impl(s->plan));
	return f;
}

static int add_point(struct fb_point_list *l, json_t *params, const char *name, uint64_t size,
	int device, int kind, struct fb_err *e)
{
	struct fb_point *p = fb_point_add(l, params, "%s", name);
	if (!p)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the list of points");
	p->size = size;
	p->user = (uint64_t)device << 8 | (uint64_t)kind;
	return 0;
}

/* ---- copies -----------------------------------------------------------------------------------
 */

static int copy_points(void *st, struct fb_point_list *l, struct fb_err *e)
{
	struct state *s = st;
	int rc = 0;
	for (int d = 0; d < s->cfg->devices && rc == 0; d++) {
		char name[64];
		json_t *p = json_object();
		snprintf(name, sizeof(name), "gpu.copy/%s/%d/%llu", s->cfg->mem->name, d,
			(unsigned long long)s->cfg->copy_bytes);
		fb_json_set_str(p, "memory", s->cfg->mem->name);
		fb_json_set_int(p, "device", d);
		fb_json_set_int(p, "size", (int64_t)s->cfg->copy_bytes);
		rc = add_point(l, p, name, s->cfg->copy_bytes, d, 0, e);
	}
	return rc;
}

static int copy_metrics(void *st, const struct fb_point *p, struct fb_metric *m)
{
	const struct gpu_peak *peak = peak_of(st, (int)(p->user >> 8));
	m[0] = (struct fb_metric){
		.name = "time", .unit = "ns", .better = "lower", .kind = FB_METRIC_TIME};
	m[1] = (struct fb_metric){.name = "memory_bandwidth",
		.unit = "bytes/s",
		.better = "higher",
		.kind = FB_METRIC_RATE,
		.per_unit = 2.0 * (double)p->size,
		.bound = peak ? peak->memory : 0};
	if (peak)
		snprintf(m[1].bound_why, sizeof(m[1].bound_why), "memory bandwidth: %s",
			peak->source);
	return 2;
}

static int copy_prepare(void *st, const struct fb_point *p, struct fb_err *e)
{
	struct state *s = st;
	const struct fb_mem_ops *m = s->cfg->mem;
	release(s);
	s->device = (int)(p->user >> 8);
	int rc = m->alloc(s->device, p->size, &s->mem[0], e);
	if (rc == 0)
		rc = m->alloc(s->device, p->size, &s->mem[1], e);
	if (rc == 0)
		rc = m->fill(s->device, s->mem[0], 0x3c, p->size, e);
	if (rc == 0)
		rc = m->fill(s->device, s->mem[1], 0, p->size, e);
	return rc;
}

static int copy_measure(
	void *st, const struct fb_point *p, uint64_t iters, struct fb_sink *sink, struct fb_err *e)
{
	struct state *s = st;
	for (uint64_t i = 0; i < iters; i++) {
		int rc = s->cfg->mem->copy_time(
			s->device, s->mem[1], s->mem[0], p->size, 1, &sink->ns[i], e);
		if (rc == 0 && (i & 15) == 15)
			rc = fb_run_check(s->run, e);
		if (rc != 0)
			return rc;
	}
	sink->n = iters;
	return 0;
}

/* The last bytes of the copy, and the first. */
static int copy_check(void *st, const struct fb_point *p, struct fb_validity *v, struct fb_err *e)
{
	struct state *s = st;
	unsigned char ends[2] = {0, 0};
	int rc = s->cfg->mem->copy(s->device, &ends[0], s->mem[1], 1, e);
	if (rc == 0)
		rc = s->cfg->mem->copy(s->device, &ends[1], (char *)s->mem[1] + p->size - 1, 1, e);
	if (rc == 0 && (ends[0] != 0x3c || ends[1] != 0x3c))
		rc = fb_fail(e, FB_EXIT_WRONG_DATA, EBADMSG,
			"device %d: a copy of %llu bytes holds 0x%02x at its start and 0x%02x at its "
			"end, not 0x3c",
			s->device, (unsigned long long)p->size, ends[0], ends[1]);
	return rc;
}

/* ---- matrix products --------------------------------------------------------------------------
 */

static int gemm_points(void *st, struct fb_point_list *l, struct fb_err *e)
{
	struct state *s = st;
	int rc = 0;
	for (int d = 0; d < s->cfg->devices; d++) {
		for (int t = GEMM_F32; t <= GEMM_BF16 && rc == 0; t++) {
			char name[64];
			const char *dtype = gemm_dtype_name((enum gemm_dtype)t);
			json_t *p = json_object();
			snprintf(name, sizeof(name), "gpu.gemm/%s/%s/%d/%llu", s->cfg->gemm->name,
				dtype, d, (unsigned long long)s->cfg->gemm_size);
			fb_json_set_str(p, "library", s->cfg->gemm->name);
			fb_json_set_str(p, "dtype", dtype);
			fb_json_set_int(p, "device", d);
			fb_json_set_int(p, "m", (int64_t)s->cfg->gemm_size);
			fb_json_set_int(p, "n", (int64_t)s->cfg->gemm_size);
			fb_json_set_int(p, "k", (int64_t)s->cfg->gemm_size);
			rc = add_point(l, p, name, 0, d, t, e);
		}
	}
	return rc;
}

static int gemm_metrics(void *st, const struct fb_point *p, struct fb_metric *m)
{
	struct state *s = st;
	const struct gpu_peak *peak = peak_of(s, (int)(p->user >> 8));
	bool bf16 = (p->user & 0xff) == GEMM_BF16;
	double n = (double)s->cfg->gemm_size;
	m[0] = (struct fb_metric){
		.name = "time", .unit = "ns", .better = "lower", .kind = FB_METRIC_TIME};
	/* a multiplication and an addition each */
	m[1] = (struct fb_metric){.name = "rate",
		.unit = "flop/s",
		.better = "higher",
		.kind = FB_METRIC_RATE,
		.per_unit = 2 * n * n * n,
		.bound = !peak  ? 0
			 : bf16 ? peak->bf16
				: peak->f32};
	if (peak)
		snprintf(m[1].bound_why, sizeof(m[1].bound_why), "dense %s peak: %s",
			bf16 ? "bf16 tensor" : "f32", peak->source);
	return 2;
}

static int gemm_prepare(void *st, const struct fb_point *p, struct fb_err *e)
{
	struct state *s = st;
	const struct fb_mem_ops *m = s->cfg->mem;
	enum gemm_dtype t = (enum gemm_dtype)(p->user & 0xff);
	int64_t n = (int64_t)s->cfg->gemm_size;
	size_t elements = (size_t)(n * n), bytes = elements * gemm_dtype_size(t);
	release(s);
	s->device = (int)(p->user >> 8);
	s->shape = gemm_dense(n, n, n, t, false, false, 0);
	void *host = malloc(bytes);
	if (!host)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a matrix of %zu bytes",
			bytes);
	int rc = 0;
	for (int i = 0; i < 3 && rc == 0; i++) {
		rc = m->alloc(s->device, bytes, &s->mem[i], e);
		if (rc != 0 || i == 2)
			continue;
		gemm_fill(host, elements, t, (uint64_t)i + 1);
		rc = m->copy(s->device, s->mem[i], host, bytes, e);
	}
	free(host);
	return rc == 0 ? s->cfg->gemm->create(s->device, &s->shape, &s->plan, e) : rc;
}

static int gemm_measure(
	void *st, const struct fb_point *p, uint64_t iters, struct fb_sink *sink, struct fb_err *e)
{
	struct state *s = st;
	const struct gemm_ops *g = s->cfg->gemm;
	for (uint64_t i = 0; i < iters; i++) {
		uint64_t begin = fb_clock_ns();
		int rc = g->run(s->plan, s->mem[0], s->mem[1], s->mem[2], e);
		if (rc == 0)
			rc = g->sync(s->plan, e);
		sink->ns[i] = fb_clock_ns() - begin;
		if (rc == 0 && (i & 15) == 15)
			rc = fb_run_check(s->run, e);
		if (rc != 0)
			return rc;
	}
	sink->n = iters;
	return 0;
}

static int gemm_check_point(
	void *st, const struct fb_point *p, struct fb_validity *v, struct fb_err *e)
{
	struct state *s = st;
	const struct gemm_place place = {s->cfg->gemm, s->cfg->mem, s->device};
	return gemm_check_samples(&place, &s->shape, s->mem[2], 256, e);
}

static const struct fb_opt no_opts[] = {{.name = NULL}};

const struct fb_bench gpu_copy_bench = {
	.abi = FB_BENCH_ABI,
	.name = "gpu.copy",
	.summary = "Copies within a device's memory, timed by the device",
	.opts = no_opts,
	.cfg_size = sizeof(struct gpu_cfg),
	.combine = FB_COMBINE_OWNER,
	.load = "closed",
	.sync = "none",
	.definition =
		"one copy within the device by its own clock; bandwidth counts what is read and what "
		"is written",
	.setup = setup,
	.points = copy_points,
	.metrics = copy_metrics,
	.prepare = copy_prepare,
	.measure = copy_measure,
	.check = copy_check,
	.facts = facts,
	.teardown = teardown,
};

const struct fb_bench gpu_gemm_bench = {
	.abi = FB_BENCH_ABI,
	.name = "gpu.gemm",
	.summary = "Square matrix products on a device",
	.opts = no_opts,
	.cfg_size = sizeof(struct gpu_cfg),
	.combine = FB_COMBINE_OWNER,
	.load = "closed",
	.sync = "none",
	.definition = "one product and its completion by the host's clock; rate is 2*m*n*k / time",
	.setup = setup,
	.points = gemm_points,
	.metrics = gemm_metrics,
	.prepare = gemm_prepare,
	.measure = gemm_measure,
	.check = gemm_check_point,
	.facts = facts,
	.teardown = teardown,
};
