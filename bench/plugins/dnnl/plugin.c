// SPDX-License-Identifier: Apache-2.0
/*
 * Matrix products on the CPU through oneDNN, whose C interface changed between 2.x and 3.x; both
 * stand here, apart by one #if each. One compute thread per rank: unless OMP_NUM_THREADS says
 * otherwise, the OpenMP runtime below oneDNN is told so for every thread that multiplies.
 *
 * It must not know who multiplies or why: it fills gemm_ops.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <oneapi/dnnl/dnnl.h>

#include "bench/core/plugin.h"
#include "bench/train/gemm_ops.h"

#define STRING2(x) #x
#define STRING(x)  STRING2(x)
#define BUILT                                                                           \
	"oneDNN " STRING(DNNL_VERSION_MAJOR) "." STRING(DNNL_VERSION_MINOR) "." STRING( \
		DNNL_VERSION_PATCH)

struct gemm_plan {
	dnnl_engine_t engine;
	dnnl_stream_t stream;
	dnnl_primitive_desc_t desc;
	dnnl_primitive_t primitive;
	dnnl_memory_t a, b, c;
	char impl[96];
};

static int dnnl_fail(struct fb_err *e, dnnl_status_t s, const char *what)
{
	static const char *const names[] = {"success", "out of memory", "invalid arguments",
		"not implemented for this shape and type", "iterator ends", "runtime error",
		"not required"};
	const char *text = (unsigned)s < sizeof(names) / sizeof(names[0]) ? names[s] : "unknown";
	int code = s == dnnl_out_of_memory ? ENOMEM : s == dnnl_unimplemented ? EOPNOTSUPP : EIO;
	return fb_fail(e, FB_EXIT_UNMEASURED, code, "oneDNN: %s failed: %s", what, text);
}

/* oneDNN spawns OpenMP's threads in the thread that multiplies, and the number is that thread's
 * own. Two OpenMP threads on a shared machine fell below one, hence one unless a person says more.
 */
static void one_thread(void)
{
	static _Thread_local bool done;
	if (done)
		return;
	done = true;
	if (getenv("OMP_NUM_THREADS"))
		return;
	static const char *const runtimes[] = {"libgomp.so.1", "libomp.so.5", "libiomp5.so"};
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
		void *lib = dlopen(runtimes[i], RTLD_LAZY | RTLD_NOLOAD);
		if (!lib)
			continue;
		void (*set)(int) = (void (*)(int))dlsym(lib, "omp_set_num_threads");
		if (set)
			set(1);
	}
}

static int probe(char *found, size_t len, struct fb_err *why)
{
	const dnnl_version_t *v = dnnl_version();
	if (v->major != DNNL_VERSION_MAJOR) {
		snprintf(found, len, "oneDNN %d.%d.%d found", v->major, v->minor, v->patch);
		fb_fail(why, FB_EXIT_SKIP, ENODEV,
			"oneDNN %d.%d.%d is here, but this was built for %s", v->major, v->minor,
			v->patch, BUILT);
		fb_hint(why, "rebuild it here: make dnnl");
		return -ENODEV;
	}
	snprintf(found, len, "oneDNN %d.%d.%d found", v->major, v->minor, v->patch);
	return 0;
}

/* A row-major matrix, transposed by its strides alone. */
static dnnl_status_t memory_desc(dnnl_memory_desc_t *md, int64_t rows, int64_t cols, int64_t ld,
	bool trans, enum gemm_dtype t)
{
	dnnl_dims_t dims = {rows, cols};
	dnnl_dims_t strides = {trans ? 1 : ld, trans ? ld : 1};
	dnnl_data_type_t type = t == GEMM_BF16 ? dnnl_bf16 : dnnl_f32;
#if DNNL_VERSION_MAJOR >= 3
	return dnnl_memory_desc_create_with_strides(md, 2, dims, type, strides);
#else
	return dnnl_memory_desc_init_by_strides(md, 2, dims, type, strides);
#endif
}

/* dst = alpha * A*B + beta * dst, as post-operations in that order. */
static dnnl_status_t attributes(const struct gemm_shape *s, dnnl_primitive_attr_t *attr)
{
	dnnl_post_ops_t ops = NULL;
	dnnl_status_t rc = dnnl_primitive_attr_create(attr);
	if (rc != dnnl_success)
		return rc;
	rc = dnnl_post_ops_create(&ops);
	if (rc == dnnl_success && s->alpha != 1.0f) {
#if DNNL_VERSION_MAJOR >= 3
		rc = dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_linear, s->alpha, 0.0f);
#else
		rc = dnnl_post_ops_append_eltwise(ops, 1.0f, dnnl_eltwise_linear, s->alpha, 0.0f);
#endif
	}
	if (rc == dnnl_success && s->beta != 0.0f) {
#if DNNL_VERSION_MAJOR >= 3
		rc = dnnl_post_ops_append_sum(ops, s->beta, 0, dnnl_data_type_undef);
#else
		rc = dnnl_post_ops_append_sum(ops, s->beta);
#endif
	}
	if (rc == dnnl_success)
		rc = dnnl_primitive_attr_set_post_ops(*attr, ops);
	dnnl_post_ops_destroy(ops);
	return rc;
}

/*
 * oneDNN offers its implementations in an order of its own. With f32 operands of which B lies as it
 * is multiplied, its second, gemm:jit, was the faster for all but small products: on Sapphire
 * Rapids with 2.6 by 3 to 15 %, and twice as fast where B's rows are a multiple of 4 KB apart (n =
 * 3072: 141 against 73 GFLOP/s). With B transposed, or bf16, its first choice is as fast or faster.
 */
static bool suits_gemm_jit(const struct gemm_shape *s)
{
	return s->in == GEMM_F32 && !s->trans_b &&
	       (double)s->m * (double)s->n * (double)s->k >= 256.0 * 256.0 * 256.0;
}

static bool is_impl(const_dnnl_primitive_desc_t desc, const char *name)
{
	const char *impl = NULL;
	return dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, (void *)&impl) ==
		       dnnl_success &&
	       impl && strcmp(impl, name) == 0;
}

/* The implementation of that name where it is offered, else oneDNN's first choice. */
#if DNNL_VERSION_MAJOR >= 3
static dnnl_status_t choose(struct gemm_plan *p, const dnnl_memory_desc_t *a,
	const dnnl_memory_desc_t *b, const dnnl_memory_desc_t *c, dnnl_primitive_attr_t attr,
	const char *name)
{
	dnnl_status_t rc =
		dnnl_matmul_primitive_desc_create(&p->desc, p->engine, *a, *b, NULL, *c, attr);
	while (rc == dnnl_success && name && !is_impl(p->desc, name)) {
		if (dnnl_primitive_desc_next_impl(p->desc) == dnnl_success)
			continue;
		dnnl_primitive_desc_destroy(p->desc);
		p->desc = NULL;
		rc = dnnl_matmul_primitive_desc_create(&p->desc, p->engine, *a, *b, NULL, *c, attr);
		break;
	}
	return rc;
}
#else
static dnnl_status_t choose(struct gemm_plan *p, const dnnl_memory_desc_t *a,
	const dnnl_memory_desc_t *b, const dnnl_memory_desc_t *c, dnnl_primitive_attr_t attr,
	const char *name)
{
	dnnl_matmul_desc_t md;
	dnnl_primitive_desc_iterator_t all = NULL;
	dnnl_status_t rc = dnnl_matmul_desc_init(&md, a, b, NULL, c);
	if (rc == dnnl_success)
		rc = dnnl_primitive_desc_iterator_create(&all, &md, attr, p->engine, NULL);
	if (rc != dnnl_success)
		return rc;
	p->desc = dnnl_primitive_desc_iterator_fetch(all);
	while (name && dnnl_primitive_desc_iterator_next(all) == dnnl_success) {
		dnnl_primitive_desc_t other = dnnl_primitive_desc_iterator_fetch(all);
		if (is_impl(other, name)) {
			dnnl_primitive_desc_destroy(p->desc);
			p->desc = other;
			break;
		}
		dnnl_primitive_desc_destroy(other);
	}
	dnnl_primitive_desc_iterator_destroy(all);
	return p->desc ? dnnl_success : dnnl_unimplemented;
}
#endif

static dnnl_status_t make_desc(struct gemm_plan *p, const struct gemm_shape *s,
	dnnl_memory_desc_t *a, dnnl_memory_desc_t *b, dnnl_memory_desc_t *c)
{
	dnnl_status_t rc = memory_desc(a, s->m, s->k, s->lda, s->trans_a, s->in);
	if (rc == dnnl_success)
		rc = memory_desc(b, s->k, s->n, s->ldb, s->trans_b, s->in);
	if (rc == dnnl_success)
		rc = memory_desc(c, s->m, s->n, s->ldc, false, s->out);
	if (rc != dnnl_success)
		return rc;
	dnnl_primitive_attr_t attr = NULL;
	rc = attributes(s, &attr);
	if (rc == dnnl_success)
		rc = choose(p, a, b, c, attr, suits_gemm_jit(s) ? "gemm:jit" : NULL);
	if (attr)
		dnnl_primitive_attr_destroy(attr);
	return rc;
}

static void destroy(struct gemm_plan *p)
{
	if (!p)
		return;
	dnnl_memory_t memories[] = {p->a, p->b, p->c};
	for (int i = 0; i < 3; i++)
		if (memories[i])
			dnnl_memory_destroy(memories[i]);
	if (p->primitive)
		dnnl_primitive_destroy(p->primitive);
	if (p->desc)
		dnnl_primitive_desc_destroy(p->desc);
	if (p->stream)
		dnnl_stream_destroy(p->stream);
	if (p->engine)
		dnnl_engine_destroy(p->engine);
	free(p);
}

static dnnl_status_t make_memories(
	struct gemm_plan *p, dnnl_memory_desc_t *a, dnnl_memory_desc_t *b, dnnl_memory_desc_t *c)
{
	dnnl_memory_desc_t *descs[] = {a, b, c};
	dnnl_memory_t *memories[] = {&p->a, &p->b, &p->c};
	for (int i = 0; i < 3; i++) {
#if DNNL_VERSION_MAJOR >= 3
		dnnl_status_t rc =
			dnnl_memory_create(memories[i], *descs[i], p->engine, DNNL_MEMORY_NONE);
#else
		dnnl_status_t rc =
			dnnl_memory_create(memories[i], descs[i], p->engine, DNNL_MEMORY_NONE);
#endif
		if (rc != dnnl_success)
			return rc;
	}
	return dnnl_success;
}

static int create(int device, const struct gemm_shape *s, struct gemm_plan **out, struct fb_err *e)
{
	if (s->m <= 0 || s->n <= 0 || s->k <= 0)
		return fb_fail(e, FB_EXIT_USAGE, EINVAL, "a product of %lld x %lld x %lld is empty",
			(long long)s->m, (long long)s->n, (long long)s->k);
	if (s->in == GEMM_F64 || s->out == GEMM_F64)
		return fb_fail(e, FB_EXIT_UNMEASURED, EOPNOTSUPP,
			"oneDNN multiplies f32 and bf16 here; f64 is the plain loops' own");
	struct gemm_plan *p = calloc(1, sizeof(*p));
	if (!p)
		return fb_fail(
			e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a matrix product's plan");
	one_thread();
	dnnl_memory_desc_t a, b, c;
	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	memset(&c, 0, sizeof(c));
	const char *what = "dnnl_engine_create";
	dnnl_status_t rc = dnnl_engine_create(&p->engine, dnnl_cpu, 0);
	if (rc == dnnl_success) {
		what = "dnnl_stream_create";
		rc = dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags);
	}
	if (rc == dnnl_success) {
		what = s->in == GEMM_BF16 ? "a bf16 matmul" : "an f32 matmul";
		rc = make_desc(p, s, &a, &b, &c);
	}
	if (rc == dnnl_success) {
		what = "dnnl_primitive_create";
		rc = dnnl_primitive_create(&p->primitive, p->desc);
	}
	if (rc == dnnl_success) {
		what = "dnnl_memory_create";
		rc = make_memories(p, &a, &b, &c);
	}
#if DNNL_VERSION_MAJOR >= 3
	dnnl_memory_desc_t descs[] = {a, b, c};
	for (int i = 0; i < 3; i++)
		if (descs[i])
			dnnl_memory_desc_destroy(descs[i]);
#endif
	if (rc != dnnl_success) {
		destroy(p);
		return dnnl_fail(e, rc, what);
	}
	const char *impl = NULL;
	rc = dnnl_primitive_desc_query(p->desc, dnnl_query_impl_info_str, 0, (void *)&impl);
	snprintf(p->impl, sizeof(p->impl), "%s", rc == dnnl_success && impl ? impl : "unknown");
	*out = p;
	return 0;
}

static int run(struct gemm_plan *p, const void *a, const void *b, void *c, struct fb_err *e)
{
	one_thread();
	/* oneDNN's handles are not const, but it only reads the sources. */
	dnnl_status_t rc = dnnl_memory_set_data_handle(p->a, (void *)(uintptr_t)a);
	if (rc == dnnl_success)
		rc = dnnl_memory_set_data_handle(p->b, (void *)(uintptr_t)b);
	if (rc == dnnl_success)
		rc = dnnl_memory_set_data_handle(p->c, c);
	if (rc != dnnl_success)
		return dnnl_fail(e, rc, "dnnl_memory_set_data_handle");
	const dnnl_exec_arg_t args[] = {
		{DNNL_ARG_SRC, p->a}, {DNNL_ARG_WEIGHTS, p->b}, {DNNL_ARG_DST, p->c}};
	rc = dnnl_primitive_execute(p->primitive, p->stream, 3, args);
	if (rc == dnnl_success)
		rc = dnnl_stream_wait(p->stream);
	return rc == dnnl_success ? 0 : dnnl_fail(e, rc, "dnnl_primitive_execute");
}

/* A CPU stream of oneDNN has run when run() returns. */
static int sync_plan(struct gemm_plan *p, struct fb_err *e)
{
	return 0;
}

static const char *impl_name(const struct gemm_plan *p)
{
	return p->impl;
}

static const struct gemm_ops gemm = {
	.name = "dnnl",
	.memory = "host",
	.probe = probe,
	.create = create,
	.run = run,
	.sync = sync_plan,
	.impl = impl_name,
	.destroy = destroy,
};

static const struct fb_plugin plugin = {
	.abi = FB_PLUGIN_ABI,
	.name = "dnnl",
	.built = BUILT,
	.probe = probe,
	.gemm = &gemm,
};

__attribute__((visibility("default"))) const struct fb_plugin *fabricbench_plugin_v1(void)
{
	return &plugin;
}
