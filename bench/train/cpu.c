// SPDX-License-Identifier: Apache-2.0
/*
 * The CPU as a device: see device.h. One compute thread, the caller's; every call has run when it
 * returns. This file keeps the memory, the plans of products, the first error and the counts, cuts
 * long arrays into pieces between which messages may move, and calls the kernels of the instruction
 * set and work type chosen at open.
 */
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/core/clock.h"
#include "bench/train/cpu_priv.h"
#include "bench/train/gemm_plain.h"

#define POLL_NS 200000u /* messages move at least that often, as far as pieces allow */
#define PIECE   16384   /* elements between two looks at the clock */
/* Large arrays lie on huge pages where the kernel has some: fewer faults, and fewer TLB misses in
 * products and in the optimizer. Below HUGE_FROM rounding up to whole pages costs too much. */
#define HUGE_PAGE ((size_t)2 << 20)
#define HUGE_FROM (4 * HUGE_PAGE)

const char *const tr_dtype_names[] = {"fp32", "bf16", "fp64", "int64", NULL};

/* ---- instruction sets ------------------------------------------------------------------------ */

static bool have(const struct cpu_isa *isa)
{
#if defined(__x86_64__)
	__builtin_cpu_init();
	if (isa == &cpu_isa_avx512)
		return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
	if (isa == &cpu_isa_avx2)
		return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
	return true;
}

const struct cpu_isa *cpu_isa_find(struct fb_err *e)
{
	static const struct cpu_isa *const all[] = {
#if defined(__x86_64__)
		&cpu_isa_avx512,
		&cpu_isa_avx2,
#endif
		&cpu_isa_base
	};
	const char *wish = getenv("FABRICBENCH_ISA");
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (wish && strcmp(wish, all[i]->name) != 0)
			continue;
		if (have(all[i]))
			return all[i];
		if (wish) {
			fb_fail(e, FB_EXIT_USAGE, ENODEV,
				"FABRICBENCH_ISA=%s: this processor does not have it", wish);
			return NULL;
		}
	}
	fb_fail(e, FB_EXIT_USAGE, EINVAL, "FABRICBENCH_ISA=%s: no such instruction set here", wish);
	fb_hint(e, "it is base, avx2 or avx512; unset it for the best one");
	return NULL;
}

/* ---- the device ------------------------------------------------------------------------------ */

static int pin(struct tr_dev *d, struct fb_err *e)
{
	cpu_set_t one;
	if (d->cfg.core < 0)
		return 0;
	d->affinity = calloc(1, sizeof(cpu_set_t));
	if (!d->affinity)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a set of CPUs");
	CPU_ZERO(&one);
	if (d->cfg.core < CPU_SETSIZE)
		CPU_SET((size_t)d->cfg.core, &one);
	if (sched_getaffinity(0, sizeof(cpu_set_t), d->affinity) == 0 &&
		sched_setaffinity(0, sizeof(one), &one) == 0)
		return 0;
	fb_fail(e, FB_EXIT_UNMEASURED, errno, "cannot run a rank on CPU %d: %s", d->cfg.core,
		strerror(errno));
	fb_hint(e, "taskset -p $$ shows the CPUs that are allowed here");
	free(d->affinity);
	d->affinity = NULL;
	return e ? e->code : -EINVAL;
}

static int cpu_open(const struct tr_dev_cfg *cfg, struct tr_dev **out, struct fb_err *e)
{
	*out = NULL;
	if (cfg->work != TR_F32 && cfg->work != TR_BF16 && cfg->work != TR_F64)
		return fb_fail(e, FB_EXIT_USAGE, EINVAL, "the CPU works in fp32, bf16 or fp64");
	struct tr_dev *d = calloc(1, sizeof(*d));
	if (!d)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a device");
	d->cfg = *cfg;
	d->isa = cpu_isa_find(e);
	if (!d->isa) {
		free(d);
		return e ? e->code : -EINVAL;
	}
	d->k = d->isa->kernels[cfg->work];
	d->w = tr_dtype_size(cfg->work);
	d->g = tr_dtype_size(tr_grad_dtype(cfg->work));
	d->polled = fb_clock_ns();
	int rc = pin(d, e);
	if (rc != 0) {
		free(d);
		return rc;
	}
	*out = d;
	return 0;
}

static void cpu_close(struct tr_dev *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->plan_cap; i++)
		if (d->plans[i].ops)
			d->plans[i].ops->destroy(d->plans[i].plan);
	/* The thread that opened also closes; if its CPUs are gone there is nothing to restore. */
	if (d->affinity)
		(void)!sched_setaffinity(0, sizeof(cpu_set_t), d->affinity);
	free(d->affinity);
	free(d->plans);
	free(d->rope.G_cos);
	free(d->rope.G_sin);
	free(d->scratch);
	free(d);
}

static int cpu_alloc(struct tr_dev *d, size_t bytes, void **p, struct fb_err *e)
{
	size_t align = bytes >= HUGE_FROM ? HUGE_PAGE : 64;
	size_t whole = (bytes + align - 1) / align * align;
	*p = whole >= bytes ? aligned_alloc(align, whole ? whole : align) : NULL;
	if (!*p)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM,
			"no memory for %zu bytes of the training step", bytes);
	if (align == HUGE_PAGE) /* a wish: small pages are slower, and as right */
		(void)!madvise(*p, whole, MADV_HUGEPAGE);
	memset(*p, 0, whole);
	return 0;
}

static void cpu_free(struct tr_dev *d, void *p)
{
	free(p);
}

static int cpu_error(struct tr_dev *d, struct fb_err *e)
{
	if (d->err.code && e)
		*e = d->err;
	return d->err.code;
}

static void poll_now(struct tr_dev *d)
{
	if (!d->cfg.poll)
		return;
	d->cfg.poll(d->cfg.poll_arg);
	d->polled = fb_clock_ns();
}

static void poll_late(struct tr_dev *d)
{
	if (d->cfg.poll && fb_clock_ns() - d->polled >= POLL_NS)
		poll_now(d);
}

void *cpu_scratch(struct tr_dev *d, size_t bytes)
{
	if (d->err.code)
		return NULL;
	if (bytes <= d->scratch_bytes)
		return d->scratch;
	free(d->scratch);
	d->scratch_bytes = 0;
	if (cpu_alloc(d, bytes, &d->scratch, &d->err) != 0)
		return NULL;
	d->scratch_bytes = bytes;
	return d->scratch;
}

/* ---- products -------------------------------------------------------------------------------- */

static bool same_shape(const struct gemm_shape *a, const struct gemm_shape *b)
{
	return a->m == b->m && a->n == b->n && a->k == b->k && a->lda == b->lda &&
	       a->ldb == b->ldb && a->ldc == b->ldc && a->trans_a == b->trans_a &&
	       a->trans_b == b->trans_b && a->in == b->in && a->out == b->out &&
	       a->alpha == b->alpha && a->beta == b->beta;
}

/* FNV-1a over the shape's numbers, one word at a time. */
static size_t hash_shape(const struct gemm_shape *s)
{
	const uint64_t kind = (uint64_t)s->trans_a | (uint64_t)s->trans_b << 1 |
			      (uint64_t)s->in << 2 | (uint64_t)s->out << 4 |
			      (uint64_t)(s->beta != 0) << 6;
	const uint64_t words[] = {(uint64_t)s->m, (uint64_t)s->n, (uint64_t)s->k, (uint64_t)s->lda,
		(uint64_t)s->ldb, (uint64_t)s->ldc, kind};
	uint64_t h = 0xcbf29ce484222325u;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		h = (h ^ words[i]) * 0x100000001b3u;
	return (size_t)(h ^ h >> 32);
}

/* The shape's slot, or the free one where it belongs; the table is never full. */
static struct cpu_plan *slot_of(struct cpu_plan *plans, size_t cap, const struct gemm_shape *s)
{
	size_t i = hash_shape(s) & (cap - 1);
	while (plans[i].ops && !same_shape(&plans[i].s, s))
		i = (i + 1) & (cap - 1);
	return &plans[i];
}

static bool grow_plans(struct tr_dev *d)
{
	size_t cap = d->plan_cap ? 2 * d->plan_cap : 64;
	struct cpu_plan *more = calloc(cap, sizeof(*more));
	if (!more) {
		fb_fail(&d->err, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the products' plans");
		return false;
	}
	for (size_t i = 0; i < d->plan_cap; i++)
		if (d->plans[i].ops)
			*slot_of(more, cap, &d->plans[i].s) = d->plans[i];
	free(d->plans);
	d->plans = more;
	d->plan_cap = cap;
	return true;
}

static struct cpu_plan *plan_of(struct tr_dev *d, const struct gemm_shape *s)
{
	if (2 * d->plan_count >= d->plan_cap && !grow_plans(d))
		return NULL;
	struct cpu_plan *p = slot_of(d->plans, d->plan_cap, s);
	if (p->ops)
		return p;
	const struct gemm_ops *ops = d->cfg.gemm && s->in != GEMM_F64 ? d->cfg.gemm : &gemm_plain;
	struct fb_err why = {0};
	int rc = ops->create(0, s, &p->plan, &why);
	if (rc == -EOPNOTSUPP && ops != &gemm_plain) {
		/* bf16 on a processor for which the library has none: right, and slow. */
		fb_err_clear(&why);
		ops = &gemm_plain;
		rc = ops->create(0, s, &p->plan, &why);
	}
	if (rc != 0) {
		d->err = why;
		return NULL;
	}
	p->s = *s;
	p->ops = ops;
	d->plan_count++;
	return p;
}

static void spin_until(uint64_t end)
{
	while (fb_clock_ns() < end)
		;
}

void cpu_product(struct tr_dev *d, const struct gemm_shape *s, const void *a, const void *b,
	void *c, double *flops, uint64_t *ns)
{
	struct cpu_plan *p = d->err.code ? NULL : plan_of(d, s);
	if (!p)
		return;
	uint64_t start = fb_clock_ns();
	if (p->ops->run(p->plan, a, b, c, &d->err) != 0)
		return;
	uint64_t end = fb_clock_ns();
	if (d->cfg.gemm_slow > 0) {
		end += (uint64_t)((double)(end - start) * d->cfg.gemm_slow);
		spin_until(end);
	}
	p->calls++;
	*flops += 2.0 * (double)s->m * (double)s->n * (double)s->k;
	*ns += end - start;
	poll_now(d);
}

static void cpu_gemm(
	struct tr_queue *q, const struct gemm_shape *s, const void *a, const void *b, void *c)
{
	struct tr_dev *d = q->dev;
	cpu_product(d, s, a, b, c, &d->count.linear_flops, &d->count.linear_ns);
	if (d->err.code)
		return;
	d->count.linear_calls++;
	if (d->cfg.gemm_delay_ns) {
		spin_until(fb_clock_ns() + d->cfg.gemm_delay_ns);
		d->count.linear_ns += d->cfg.gemm_delay_ns;
	}
}

static void cpu_count(struct tr_dev *d, struct tr_count *c)
{
	*c = d->count;
}

static void cpu_shapes(struct tr_dev *d,
	void (*fn)(void *arg, const struct gemm_shape *s, const char *impl, uint64_t calls),
	void *arg)
{
	for (size_t i = 0; i < d->plan_cap; i++) {
		const struct cpu_plan *p = &d->plans[i];
		if (p->ops)
			fn(arg, &p->s, p->ops->impl(p->plan), p->calls);
	}
}

/* ---- kernels, piece by piece ----------------------------------------------------------------- */

/* Run `call` over [at, at + len) of n, `step` at a time; nothing after an error. */
#define PIECES(d, n, step, call)                                                \
	do {                                                                    \
		int64_t step_ = (step) > 0 ? (step) : 1;                        \
		for (int64_t at = 0; at < (n) && !(d)->err.code; at += step_) { \
			int64_t len = (n)-at < step_ ? (n)-at : step_;          \
			call;                                                   \
			poll_late(d);                                           \
		}                                                               \
	} while (0)

/* Element `at` of an array; NULL stays NULL. */
static void *on(const void *p, int64_t at, size_t size)
{
	return p ? (char *)(uintptr_t)p + (size_t)at * size : NULL;
}
#define W(p, at) on(p, at, d->w)
#define G(p, at) on(p, at, d->g)

static void cpu_copy(struct tr_queue *q, void *dst, const void *src, size_t bytes)
{
	struct tr_dev *d = q->dev;
	PIECES(d, (int64_t)bytes, 8 * PIECE,
		memcpy((char *)dst + at, (const char *)src + at, (size_t)len));
}

static void cpu_zero(struct tr_queue *q, void *dst, size_t bytes)
{
	struct tr_dev *d = q->dev;
	PIECES(d, (int64_t)bytes, 8 * PIECE, memset((char *)dst + at, 0, (size_t)len));
}

static void cpu_embed_fwd(struct tr_queue *q, void *x, const int32_t *token, const void *table,
	const void *pos, int64_t tokens, int64_t seq, int64_t cols)
{
	struct tr_dev *d = q->dev;
	PIECES(d, tokens, PIECE / cols, d->k->embed_fwd(x, token, table, pos, at, len, seq, cols));
}

static void cpu_embed_bwd(struct tr_queue *q, void *dtable, void *dpos, const int32_t *token,
	const void *dx, int64_t tokens, int64_t seq, int64_t cols)
{
	struct tr_dev *d = q->dev;
	PIECES(d, tokens, PIECE / cols,
		d->k->embed_bwd(dtable, dpos, token, dx, at, len, seq, cols));
}

static void cpu_norm_fwd(struct tr_queue *q, void *y, void *mean, void *rstd, const void *x,
	const void *w, const void *b, int64_t rows, int64_t cols, double eps)
{
	struct tr_dev *d = q->dev;
	PIECES(d, rows, PIECE / cols,
		d->k->norm_fwd(W(y, at * cols), G(mean, at), G(rstd, at), W(x, at * cols), w, b,
			len, cols, eps));
}

static void cpu_norm_bwd(struct tr_queue *q, void *dx, void *dw, void *db, const void *dy,
	const void *x, const void *w, const void *mean, const void *rstd, int64_t rows,
	int64_t cols)
{
	struct tr_dev *d = q->dev;
	PIECES(d, rows, PIECE / cols,
		d->k->norm_bwd(W(dx, at * cols), dw, db, W(dy, at * cols), W(x, at * cols), w,
			G(mean, at), G(rstd, at), len, cols));
}

/* Angles of each position and pair, once per shape: position * base^(-2i/d), in G as every
 * framework does; the cosine is that of the rounded angle. */
static bool rope_table(struct tr_dev *d, int64_t seq, int64_t dim, double base)
{
	struct cpu_rope *t = &d->rope;
	if (t->G_cos && t->seq >= seq && t->d == dim && t->base == base)
		return true;
	free(t->G_cos);
	free(t->G_sin);
	memset(t, 0, sizeof(*t));
	size_t bytes = (size_t)(seq * dim / 2) * d->g;
	if (cpu_alloc(d, bytes, &t->G_cos, &d->err) != 0 ||
		cpu_alloc(d, bytes, &t->G_sin, &d->err) != 0)
		return false;
	for (int64_t p = 0; p < seq; p++) {
		for (int64_t i = 0; i < dim / 2; i++) {
			double inv = pow(base, -2.0 * (double)i / (double)dim);
			int64_t at = p * (dim / 2) + i;
			if (d->g == sizeof(double)) {
				((double *)t->G_cos)[at] = cos((double)p * inv);
				((double *)t->G_sin)[at] = sin((double)p * inv);
				continue;
			}
			float angle = (float)p * (float)inv;
			((float *)t->G_cos)[at] = (float)cos((double)angle);
			((float *)t->G_sin)[at] = (float)sin((double)angle);
		}
	}
	t->seq = seq;
	t->d = dim;
	t->base = base;
	return true;
}

static void cpu_rope(struct tr_queue *q, void *x, int64_t tokens, int64_t seq, int64_t heads,
	int64_t dim, double base, int dir)
{
	struct tr_dev *d = q->dev;
	if (d->err.code || !rope_table(d, seq, dim, base))
		return;
	PIECES(d, tokens, PIECE / (heads * dim),
		d->k->rope(x, d->rope.G_cos, d->rope.G_sin, at, len, seq, heads, dim, dir));
}

static void cpu_swiglu_fwd(struct tr_queue *q, void *h, const void *g, const void *u, int64_t n)
{
	struct tr_dev *d = q->dev;
	PIECES(d, n, PIECE, d->k->swiglu_fwd(W(h, at), W(g, at), W(u, at), len));
}

static void cpu_swiglu_bwd(struct tr_queue *q, void *dg, void *du, const void *dh, const void *g,
	const void *u, int64_t n)
{
	struct tr_dev *d = q->dev;
	PIECES(d, n, PIECE,
		d->k->swiglu_bwd(W(dg, at), W(du, at), W(dh, at), W(g, at), W(u, at), len));
}

static void cpu_gelu_fwd(struct tr_queue *q, void *y, const void *x, int64_t n)
{
	struct tr_dev *d = q->dev;
	PIECES(d, n, PIECE, d->k->gelu_fwd(W(y, at), W(x, at), len));
}

static void cpu_gelu_bwd(struct tr_queue *q, void *dx, const void *dy, const void *x, int64_t n)
{
	struct tr_dev *d = q->dev;
	PIECES(d, n, PIECE, d->k->gelu_bwd(W(dx, at), W(dy, at), W(x, at), len));
}

static void cpu_bias_fwd(struct tr_queue *q, void *y, const void *b, int64_t rows, int64_t cols)
{
	struct tr_dev *d = q->dev;
	PIECES(d, rows, PIECE / cols, d->k->bias_fwd(W(y, at * cols), b, len, cols));
}

static void cpu_bias_bwd(struct tr_queue *q, void *db, const void *dy, int64_t rows, int64_t cols)
{
	struct tr_dev *d = q->dev;
	PIECES(d, rows, PIECE / cols, d->k->bias_bwd(db, W(dy, at * cols), len, cols));
}

static void cpu_add(struct tr_queue *q, void *y, const void *a, const void *b, int64_t n)
{
	struct tr_dev *d = q->dev;
	PIECES(d, n, PIECE, d->k->add(W(y, at), W(a, at), W(b, at), len));
}

static void cpu_xent(struct tr_queue *q, void *logits, double *loss, const int32_t *target,
	int64_t rows, int64_t cols, double scale)
{
	struct tr_dev *d = q->dev;
	PIECES(d, rows, PIECE / cols,
		d->k->xent(W(logits, at * cols), loss, target + at, len, cols, scale));
}

static bool flat_type(struct tr_dev *d, enum tr_dtype a, enum tr_dtype b)
{
	if (a != TR_I64 && b != TR_I64)
		return true;
	if (!d->err.code)
		fb_fail(&d->err, FB_EXIT_UNMEASURED, EINVAL,
			"a sum of %s and %s: int64 is fixed point and goes by fixed_add and fixed_to",
			tr_dtype_names[a], tr_dtype_names[b]);
	return false;
}

static void cpu_cast(struct tr_queue *q, void *dst, enum tr_dtype to, const void *src,
	enum tr_dtype from, int64_t n)
{
	struct tr_dev *d = q->dev;
	size_t a = tr_dtype_size(to), b = tr_dtype_size(from);
	if (to == TR_I64 && from == TR_I64)
		cpu_copy(q, dst, src, (size_t)n * a);
	else if (flat_type(d, to, from))
		PIECES(d, n, PIECE, d->isa->cast[to][from](on(dst, at, a), on(src, at, b), len));
}

/* Fixed-point sums of fixed-point sums: they too must fit. */
static void add_i64(struct tr_dev *d, int64_t *dst, const int64_t *src, int64_t n)
{
	bool good = true;
	for (int64_t i = 0; i < n; i++)
		good &= !__builtin_add_overflow(dst[i], src[i], &dst[i]);
	if (!good)
		fb_fail(&d->err, FB_EXIT_WRONG_DATA, ERANGE,
			"a sum of fixed-point gradients is over 2^%d", 63 - TR_FIXED_BITS);
}

static void cpu_accumulate(struct tr_queue *q, void *dst, enum tr_dtype to, const void *src,
	enum tr_dtype from, int64_t n)
{
	struct tr_dev *d = q->dev;
	size_t a = tr_dtype_size(to), b = tr_dtype_size(from);
	if (to == TR_I64 && from == TR_I64)
		PIECES(d, n, PIECE, add_i64(d, on(dst, at, a), on(src, at, b), len));
	else if (flat_type(d, to, from))
		PIECES(d, n, PIECE,
			d->isa->accumulate[to][from](on(dst, at, a), on(src, at, b), len));
}

static void fits(struct tr_dev *d, bool good, const char *what)
{
	if (good)
		return;
	fb_fail(&d->err, FB_EXIT_WRONG_DATA, ERANGE,
		"%s is not finite or over 2^%d, the end of the deterministic mode's fixed point",
		what, 63 - TR_FIXED_BITS);
	fb_hint(&d->err, "a lower learning rate, or a run without --deterministic");
}

static void cpu_fixed_add(struct tr_queue *q, int64_t *dst, const void *src, int64_t n)
{
	struct tr_dev *d = q->dev;
	PIECES(d, n, PIECE, fits(d, d->k->fixed_add(dst + at, G(src, at), len), "a gradient"));
}

static void cpu_fixed_to(struct tr_queue *q, void *dst, const int64_t *src, int64_t n)
{
	struct tr_dev *d = q->dev;
	PIECES(d, n, PIECE, d->k->fixed_to(G(dst, at), src + at, len));
}

static void cpu_sumsq(struct tr_queue *q, double *sum, const void *x, int64_t n)
{
	struct tr_dev *d = q->dev;
	PIECES(d, n, PIECE, d->k->sumsq(sum, G(x, at), len));
}

static void cpu_sumsq_fixed(struct tr_queue *q, int64_t *sum, const void *x, int64_t n)
{
	struct tr_dev *d = q->dev;
	PIECES(d, n, PIECE,
		fits(d, d->k->sumsq_fixed(sum, G(x, at), len), "the gradient's sum of squares"));
}

static void cpu_adamw(struct tr_queue *q, const struct tr_adamw *a, void *p, void *m, void *v,
	const void *grad, double grad_scale, void *work, int64_t n)
{
	struct tr_dev *d = q->dev;
	PIECES(d, n, PIECE,
		d->k->adamw(a, G(p, at), G(m, at), G(v, at), G(grad, at), grad_scale, W(work, at),
			len));
}

const struct tr_dev_ops tr_cpu = {
	.name = "cpu",
	.memory = "host",
	.open = cpu_open,
	.close = cpu_close,
	.alloc = cpu_alloc,
	.free = cpu_free,
	.copy = cpu_copy,
	.zero = cpu_zero,
	.error = cpu_error,
	.gemm = cpu_gemm,
	.embed_fwd = cpu_embed_fwd,
	.embed_bwd = cpu_embed_bwd,
	.norm_fwd = cpu_norm_fwd,
	.norm_bwd = cpu_norm_bwd,
	.rope = cpu_rope,
	.attn_fwd = cpu_attn_fwd,
	.attn_bwd = cpu_attn_bwd,
	.swiglu_fwd = cpu_swiglu_fwd,
	.swiglu_bwd = cpu_swiglu_bwd,
	.gelu_fwd = cpu_gelu_fwd,
	.gelu_bwd = cpu_gelu_bwd,
	.bias_fwd = cpu_bias_fwd,
	.bias_bwd = cpu_bias_bwd,
	.add = cpu_add,
	.xent = cpu_xent,
	.cast = cpu_cast,
	.accumulate = cpu_accumulate,
	.fixed_add = cpu_fixed_add,
	.fixed_to = cpu_fixed_to,
	.sumsq = cpu_sumsq,
	.sumsq_fixed = cpu_sumsq_fixed,
	.adamw = cpu_adamw,
	.count = cpu_count,
	.shapes = cpu_shapes,
	.attn_flops = cpu_attn_flops,
};
