// SPDX-License-Identifier: Apache-2.0
/*
 * The shape of a model: its tensors and units, their start values, and the counts made from them.
 * Every count is made of the tensors or of the sizes, never from a table. Presets and model files
 * are in model_file.c.
 */
#include "bench/train/model.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define MAX_PARAMS      1000000000000000 /* exact in a double, and bytes of all states fit in int64 */
#define MAX_LAYERS      65536
#define MAX_WIDTH       (1 << 24) /* a hundred times the widest known: tokens * width fit in int64 */
#define START_DEVIATION 0.02      /* GPT-2's and Megatron's */

const char *const model_family_names[] = {"llama", "gpt2", NULL};
const char *const mfu_convention_names[] = {"6n", "palm", "causal"};

/* ---- checks ---------------------------------------------------------------------------------- */

/* sum += a*b*c, refusing what passes MAX_PARAMS on the way. The operands are checked sizes > 0. */
static bool add_product(int64_t *sum, int64_t a, int64_t b, int64_t c)
{
	int64_t p;
	return !__builtin_mul_overflow(a, b, &p) && !__builtin_mul_overflow(p, c, &p) &&
	       !__builtin_add_overflow(*sum, p, sum) && *sum <= MAX_PARAMS;
}

static bool counts_fit(const struct model *m)
{
	int64_t sum = 0, h = m->hidden, l = m->layers;
	int64_t q = m->heads * m->head_dim, kv = m->kv_heads * m->head_dim;
	/* no fewer than any family has: biases and norms are at most one more row of each matrix */
	return add_product(&sum, 2 * l, h, q) && add_product(&sum, 2 * l, h, kv) &&
	       add_product(&sum, 3 * l, h, m->ffn) && add_product(&sum, 16, l, h) &&
	       add_product(&sum, 4, l, q) && add_product(&sum, 2, l, m->ffn) &&
	       add_product(&sum, 2, m->vocab, h) && add_product(&sum, 1, m->positions, h);
}

int model_check(const struct model *m, struct fb_err *e)
{
	const struct {
		const char *key;
		int64_t v, most;
	} sizes[] = {
		{"layers", m->layers, MAX_LAYERS},
		{"hidden", m->hidden, MAX_WIDTH},
		{"heads", m->heads, MAX_WIDTH},
		{"kv-heads", m->kv_heads, MAX_WIDTH},
		{"head-dim", m->head_dim, MAX_WIDTH},
		{"ffn", m->ffn, MAX_WIDTH},
		{"vocab", m->vocab, MAX_WIDTH},
		{"positions", m->positions, INT32_MAX},
	};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (sizes[i].v <= 0)
			return fb_fail_usage(e, "model %s: %s = %lld: a size over 0 is needed",
				m->name, sizes[i].key, (long long)sizes[i].v);
		if (sizes[i].v > sizes[i].most)
			return fb_fail_usage(e, "model %s: %s = %lld: at most %lld", m->name,
				sizes[i].key, (long long)sizes[i].v, (long long)sizes[i].most);
	}
	int64_t width = m->heads * m->head_dim;
	if (width > MAX_WIDTH)
		return fb_fail_usage(e, "model %s: heads * head-dim = %lld: at most %d", m->name,
			(long long)width, MAX_WIDTH);
	if (m->heads % m->kv_heads != 0)
		return fb_fail_usage(e,
			"model %s: heads = %lld is no multiple of kv-heads = %lld: each key-value "
			"head serves the same number of query heads",
			m->name, (long long)m->heads, (long long)m->kv_heads);
	if (m->family == MODEL_LLAMA && m->head_dim % 2 != 0)
		return fb_fail_usage(e,
			"model %s: head-dim = %lld is odd: rotary positions turn pairs", m->name,
			(long long)m->head_dim);
	if (m->family == MODEL_LLAMA && !(isfinite(m->rope_base) && m->rope_base > 1))
		return fb_fail_usage(e, "model %s: rope-base = %g: a number over 1 is needed",
			m->name, m->rope_base);
	if (!(m->eps > 0 && m->eps < 1))
		return fb_fail_usage(e, "model %s: eps = %g: a number between 0 and 1 is needed",
			m->name, m->eps);
	if (!counts_fit(m))
		return fb_fail_usage(
			e, "model %s: more than 10^15 parameters: sizes are out of range", m->name);
	return 0;
}

/* ---- units ----------------------------------------------------------------------------------- */

static void add(struct model_unit *u, enum tensor_kind k, int64_t rows, int64_t cols)
{
	struct model_tensor *t = &u->t[u->n++];
	*t = (struct model_tensor){
		.kind = k,
		.rows = rows,
		.cols = cols,
		.offset = u->elements,
		.decay = cols > 1,
		/* softmax does not change when a constant is added to all keys' scores of a query,
		 * and a key's bias adds the same to each */
		.zero_grad = k == TENSOR_K_BIAS,
	};
	u->elements += rows * cols;
}

/* A matrix and, in GPT-2, its bias; the bias's kind follows the weight's. */
static void add_linear(
	const struct model *m, struct model_unit *u, enum tensor_kind k, int64_t out, int64_t in)
{
	add(u, k, out, in);
	if (m->family == MODEL_GPT2)
		add(u, (enum tensor_kind)(k + 1), out, 1);
}

static void add_norm(const struct model *m, struct model_unit *u, enum tensor_kind k)
{
	add(u, k, m->hidden, 1);
	if (m->family == MODEL_GPT2)
		add(u, (enum tensor_kind)(k + 1), m->hidden, 1);
}

void model_unit(const struct model *m, int64_t unit, struct model_unit *u)
{
	int64_t h = m->hidden, q = m->heads * m->head_dim, kv = m->kv_heads * m->head_dim;
	memset(u, 0, sizeof(*u));
	if (unit == m->layers) {
		add(u, TENSOR_EMBED, m->vocab, h);
		if (m->family == MODEL_GPT2)
			add(u, TENSOR_POSITIONS, m->positions, h);
		add_norm(m, u, TENSOR_NORM_F);
		if (!m->tied)
			add(u, TENSOR_HEAD, m->vocab, h);
		return;
	}
	add_norm(m, u, TENSOR_NORM1);
	add_linear(m, u, TENSOR_Q, q, h);
	add_linear(m, u, TENSOR_K, kv, h);
	add_linear(m, u, TENSOR_V, kv, h);
	add_linear(m, u, TENSOR_O, h, q);
	add_norm(m, u, TENSOR_NORM2);
	if (m->family == MODEL_LLAMA)
		add(u, TENSOR_GATE, m->ffn, h);
	add_linear(m, u, TENSOR_UP, m->ffn, h);
	add_linear(m, u, TENSOR_DOWN, h, m->ffn);
}

/* ---- start values ---------------------------------------------------------------------------- */

/* splitmix64's finalizer (Steele, Lea, Flood, OOPSLA 2014): a counter becomes 64 random bits. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* The normal distribution's inverse, to 7 digits: Wichura, algorithm AS 241 (PPND7), Applied
 * Statistics 37 (1988). One value from one counter, whichever rank asks. */
static double normal_inverse(double p)
{
	double q = p - 0.5;
	if (fabs(q) <= 0.425) {
		double r = 0.180625 - q * q;
		return q *
		       (((5.9109374720e+01 * r + 1.5929113202e+02) * r + 5.0434271938e+01) * r +
			       3.3871327179e+00) /
		       (((6.7187563600e+01 * r + 7.8757757664e+01) * r + 1.7895169469e+01) * r +
			       1.0);
	}
	double r = sqrt(-log(q < 0 ? p : 1.0 - p));
	double x;
	if (r <= 5.0) {
		r -= 1.6;
		x = (((1.7023821103e-01 * r + 1.3067284816e+00) * r + 2.7568153900e+00) * r +
			    1.4234372777e+00) /
		    ((1.2021132975e-01 * r + 7.3700164250e-01) * r + 1.0);
	} else {
		r -= 5.0;
		x = (((1.7337203997e-02 * r + 4.2868294337e-01) * r + 3.0812263860e+00) * r +
			    6.6579051150e+00) /
		    ((1.2258202635e-02 * r + 2.4197894225e-01) * r + 1.0);
	}
	return q < 0 ? -x : x;
}

static bool is_norm_weight(enum tensor_kind k)
{
	return k == TENSOR_NORM1 || k == TENSOR_NORM2 || k == TENSOR_NORM_F;
}

void model_init(const struct model *m, int64_t unit, const struct model_tensor *t, uint64_t seed,
	int64_t first, int64_t n, float *out)
{
	if (t->cols == 1 && !is_norm_weight(t->kind)) {
		memset(out, 0, (size_t)n * sizeof(*out));
		return;
	}
	if (is_norm_weight(t->kind)) {
		for (int64_t i = 0; i < n; i++)
			out[i] = 1;
		return;
	}
	double deviation = START_DEVIATION;
	/* what a residual branch adds shrinks with the number of branches (GPT-2, section 2.3) */
	if (t->kind == TENSOR_O || t->kind == TENSOR_DOWN)
		deviation /= sqrt(2.0 * (double)m->layers);
	uint64_t stream = mix(mix(mix(seed) ^ (uint64_t)unit) ^ (uint64_t)t->kind);
	for (int64_t i = 0; i < n; i++) {
		uint64_t bits = mix(stream ^ mix((uint64_t)(first + i)));
		/* 53 bits, in the middle of their steps: never 0 or 1 */
		double p = ((double)(bits >> 11) + 0.5) * 0x1p-53;
		out[i] = (float)(deviation * normal_inverse(p));
	}
}

/* ---- counts ---------------------------------------------------------------------------------- */

int64_t model_params(const struct model *m)
{
	struct model_unit block, root;
	model_unit(m, 0, &block);
	model_unit(m, m->layers, &root);
	return m->layers * block.elements + root.elements;
}

static int64_t block_matmul_params(const struct model *m)
{
	struct model_unit u;
	int64_t sum = 0;
	model_unit(m, 0, &u);
	for (int i = 0; i < u.n; i++)
		if (u.t[i].cols > 1)
			sum += u.t[i].rows * u.t[i].cols;
	return sum;
}

int64_t model_matmul_params(const struct model *m)
{
	return m->layers * block_matmul_params(m) + m->vocab * m->hidden;
}

void model_flops(const struct model *m, int64_t seq, struct model_flops *f)
{
	double lad = (double)m->layers * (double)(m->heads * m->head_dim);
	f->linear = 2.0 * (double)m->layers * (double)block_matmul_params(m);
	f->core_full = 4.0 * (double)seq * lad;
	f->core_causal = 2.0 * (double)(seq + 1) * lad;
	f->head = 2.0 * (double)m->vocab * (double)m->hidden;
}

double model_flops_per_token(const struct model *m, int64_t seq, enum mfu_convention c)
{
	struct model_flops f;
	model_flops(m, seq, &f);
	switch (c) {
	case MFU_6N: return 6.0 * (double)model_params(m);
	case MFU_PALM: return 6.0 * (double)model_params(m) + 3.0 * f.core_full;
	case MFU_CAUSAL:
	default: return 3.0 * (f.linear + f.core_causal + f.head);
	}
}
