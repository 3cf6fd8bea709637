/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of one work type; cpu_kernels.h includes it with CPU_W, CPU_G (types), CPU_LOAD,
 * CPU_STORE (between them), CPU_E (elem.h's functions of G) and CPU_K (names). What each does is
 * said in device.h. Alone it is nothing.
 */
#ifdef CPU_W

/* Fold the lanes by halves. */
static CPU_G CPU_K(fold)(CPU_G *lane)
{
	for (int half = CPU_LANES / 2; half > 0; half /= 2)
		for (int i = 0; i < half; i++)
			lane[i] += lane[i + half];
	return lane[0];
}

/* sum over i < n of `term`, an expression of i */
#define CPU_SUM(result, n, term)                                      \
	do {                                                          \
		CPU_G lane_[CPU_LANES] = {0};                         \
		int64_t whole_ = (n) - (n) % CPU_LANES;               \
		for (int64_t at_ = 0; at_ < whole_; at_ += CPU_LANES) \
			for (int l_ = 0; l_ < CPU_LANES; l_++) {      \
				int64_t i = at_ + l_;                 \
				lane_[l_] += (term);                  \
			}                                             \
		for (int64_t i = whole_; i < (n); i++)                \
			lane_[i - whole_] += (term);                  \
		(result) = CPU_K(fold)(lane_);                        \
	} while (0)

static void CPU_K(embed_fwd)(void *x_, const int32_t *token, const void *table_, const void *pos_,
	int64_t first, int64_t n, int64_t seq, int64_t cols)
{
	for (int64_t t = first; t < first + n; t++) {
		CPU_W *x = (CPU_W *)x_ + t * cols;
		const CPU_W *row = (const CPU_W *)table_ + (int64_t)token[t] * cols;
		if (!pos_) {
			memcpy(x, row, (size_t)cols * sizeof(*x));
			continue;
		}
		const CPU_W *pos = (const CPU_W *)pos_ + t % seq * cols;
		CPU_MAP
		for (int64_t i = 0; i < cols; i++)
			x[i] = CPU_STORE(CPU_LOAD(row[i]) + CPU_LOAD(pos[i]));
	}
}

static void CPU_K(add_row)(CPU_G *sum, const CPU_W *x, int64_t n)
{
	CPU_MAP
	for (int64_t i = 0; i < n; i++)
		sum[i] += CPU_LOAD(x[i]);
}

static void CPU_K(embed_bwd)(void *dtable, void *dpos, const int32_t *token, const void *dx,
	int64_t first, int64_t n, int64_t seq, int64_t cols)
{
	for (int64_t t = first; t < first + n; t++) {
		const CPU_W *row = (const CPU_W *)dx + t * cols;
		CPU_K(add_row)((CPU_G *)dtable + (int64_t)token[t] * cols, row, cols);
		if (dpos)
			CPU_K(add_row)((CPU_G *)dpos + t % seq * cols, row, cols);
	}
}

static void CPU_K(norm_fwd)(void *y_, void *mean_, void *rstd_, const void *x_, const void *w_,
	const void *b_, int64_t rows, int64_t cols, double eps)
{
	const CPU_W *w = w_, *b = b_;
	for (int64_t r = 0; r < rows; r++) {
		const CPU_W *x = (const CPU_W *)x_ + r * cols;
		CPU_W *y = (CPU_W *)y_ + r * cols;
		CPU_G mean = 0, square;
		if (mean_) {
			CPU_SUM(mean, cols, CPU_LOAD(x[i]));
			mean /= (CPU_G)cols;
			((CPU_G *)mean_)[r] = mean;
		}
		CPU_SUM(square, cols, (CPU_LOAD(x[i]) - mean) * (CPU_LOAD(x[i]) - mean));
		CPU_G rstd = (CPU_G)(1.0 / sqrt((double)square / (double)cols + eps));
		((CPU_G *)rstd_)[r] = rstd;
		if (b) {
			CPU_MAP
			for (int64_t i = 0; i < cols; i++)
				y[i] = CPU_STORE(CPU_E(norm)(CPU_LOAD(x[i]), mean, rstd,
					CPU_LOAD(w[i]), CPU_LOAD(b[i])));
			continue;
		}
		CPU_MAP
		for (int64_t i = 0; i < cols; i++)
			y[i] = CPU_STORE(
				CPU_E(norm)(CPU_LOAD(x[i]), mean, rstd, CPU_LOAD(w[i]), 0));
	}
}

static void CPU_K(norm_bwd)(void *dx_, void *dw_, void *db_, const void *dy_, const void *x_,
	const void *w_, const void *mean_, const void *rstd_, int64_t rows, int64_t cols)
{
	const CPU_W *w = w_;
	CPU_G *dw = dw_, *db = db_;
	for (int64_t r = 0; r < rows; r++) {
		const CPU_W *x = (const CPU_W *)x_ + r * cols, *dy = (const CPU_W *)dy_ + r * cols;
		CPU_W *dx = (CPU_W *)dx_ + r * cols;
		CPU_G mean = mean_ ? ((const CPU_G *)mean_)[r] : 0, s0 = 0, s1;
		CPU_G rstd = ((const CPU_G *)rstd_)[r];
		CPU_SUM(s1, cols,
			CPU_LOAD(w[i]) * CPU_LOAD(dy[i]) * ((CPU_LOAD(x[i]) - mean) * rstd));
		s1 /= (CPU_G)cols;
		if (mean_) {
			CPU_SUM(s0, cols, CPU_LOAD(w[i]) * CPU_LOAD(dy[i]));
			s0 /= (CPU_G)cols;
		}
		CPU_MAP
		for (int64_t i = 0; i < cols; i++) {
			CPU_G xhat = (CPU_LOAD(x[i]) - mean) * rstd, g = CPU_LOAD(dy[i]);
			dx[i] = CPU_STORE(CPU_LOAD(dx[i]) +
					  CPU_E(norm_dx)(g, xhat, CPU_LOAD(w[i]), rstd, s0, s1));
			dw[i] += g * xhat;
		}
		if (db)
			CPU_K(add_row)(db, dy, cols);
	}
}

static void CPU_K(rope)(void *x_, const void *cos_, const void *sin_, int64_t first, int64_t n,
	int64_t seq, int64_t heads, int64_t d, int dir)
{
	const int64_t half = d / 2;
	for (int64_t t = first; t < first + n; t++) {
		const CPU_G *c = (const CPU_G *)cos_ + t % seq * half;
		const CPU_G *s = (const CPU_G *)sin_ + t % seq * half;
		for (int64_t h = 0; h < heads; h++) {
			CPU_W *a = (CPU_W *)x_ + (t * heads + h) * d, *b = a + half;
			CPU_MAP
			for (int64_t i = 0; i < half; i++) {
				CPU_G u = CPU_LOAD(a[i]), v = CPU_LOAD(b[i]),
				      sine = s[i] * (CPU_G)dir;
				a[i] = CPU_STORE(CPU_E(rope)(u, v, c[i], sine));
				b[i] = CPU_STORE(CPU_E(rope)(v, -u, c[i], sine));
			}
		}
	}
}

static void CPU_K(swiglu_fwd)(void *h_, const void *g_, const void *u_, int64_t n)
{
	CPU_W *h = h_;
	const CPU_W *g = g_, *u = u_;
	CPU_MAP
	for (int64_t i = 0; i < n; i++)
		h[i] = CPU_STORE(CPU_E(silu)(CPU_LOAD(g[i])) * CPU_LOAD(u[i]));
}

static void CPU_K(swiglu_bwd)(
	void *dg_, void *du_, const void *dh_, const void *g_, const void *u_, int64_t n)
{
	CPU_W *dg = dg_, *du = du_;
	const CPU_W *dh = dh_, *g = g_, *u = u_;
	CPU_MAP
	for (int64_t i = 0; i < n; i++) {
		CPU_G d = CPU_LOAD(dh[i]), gate = CPU_LOAD(g[i]), up = CPU_LOAD(u[i]);
		dg[i] = CPU_STORE(CPU_E(swiglu_dg)(d, gate, up));
		du[i] = CPU_STORE(CPU_E(swiglu_du)(d, gate));
	}
}

static void CPU_K(gelu_fwd)(void *y_, const void *x_, int64_t n)
{
	CPU_W *y = y_;
	const CPU_W *x = x_;
	CPU_MAP
	for (int64_t i = 0; i < n; i++)
		y[i] = CPU_STORE(CPU_E(gelu)(CPU_LOAD(x[i])));
}

static void CPU_K(gelu_bwd)(void *dx_, const void *dy_, const void *x_, int64_t n)
{
	CPU_W *dx = dx_;
	const CPU_W *dy = dy_, *x = x_;
	CPU_MAP
	for (int64_t i = 0; i < n; i++)
		dx[i] = CPU_STORE(CPU_E(gelu_dx)(CPU_LOAD(dy[i]), CPU_LOAD(x[i])));
}

static void CPU_K(bias_fwd)(void *y_, const void *b_, int64_t rows, int64_t cols)
{
	const CPU_W *b = b_;
	for (int64_t r = 0; r < rows; r++) {
		CPU_W *y = (CPU_W *)y_ + r * cols;
		CPU_MAP
		for (int64_t i = 0; i < cols; i++)
			y[i] = CPU_STORE(CPU_LOAD(y[i]) + CPU_LOAD(b[i]));
	}
}

static void CPU_K(bias_bwd)(void *db, const void *dy, int64_t rows, int64_t cols)
{
	for (int64_t r = 0; r < rows; r++)
		CPU_K(add_row)(db, (const CPU_W *)dy + r * cols, cols);
}

static void CPU_K(add)(void *y_, const void *a_, const void *b_, int64_t n)
{
	CPU_W *y = y_;
	const CPU_W *a = a_, *b = b_;
	CPU_MAP
	for (int64_t i = 0; i < n; i++)
		y[i] = CPU_STORE(CPU_LOAD(a[i]) + CPU_LOAD(b[i]));
}

/* The largest of a row of W; a NaN may be lost here, its exp() brings it back. */
static CPU_G CPU_K(row_max)(const CPU_W *x, int64_t n)
{
	CPU_G lane[CPU_LANES], most;
	int64_t whole = n - n % CPU_LANES;
	for (int l = 0; l < CPU_LANES; l++)
		lane[l] = (CPU_G)-INFINITY;
	for (int64_t b = 0; b < whole; b += CPU_LANES)
		for (int l = 0; l < CPU_LANES; l++) {
			CPU_G v = CPU_LOAD(x[b + l]);
			lane[l] = v > lane[l] ? v : lane[l];
		}
	for (int64_t i = whole; i < n; i++)
		lane[i - whole] =
			CPU_LOAD(x[i]) > lane[i - whole] ? CPU_LOAD(x[i]) : lane[i - whole];
	most = lane[0];
	for (int l = 1; l < CPU_LANES; l++)
		most = lane[l] > most ? lane[l] : most;
	return most;
}

static void CPU_K(xent)(
	void *logits, double *loss, const int32_t *target, int64_t rows, int64_t cols, double scale)
{
	for (int64_t r = 0; r < rows; r++) {
		CPU_W *x = (CPU_W *)logits + r * cols;
		if (target[r] < 0) {
			memset(x, 0, (size_t)cols * sizeof(*x));
			continue;
		}
		CPU_G most = CPU_K(row_max)(x, cols);
		double sum = 0;
		/* In parts, so that a float lane never adds thousands of terms. */
		int64_t at = 0;
		do {
			const CPU_W *part = x + at;
			int64_t n = cols - at < 4096 ? cols - at : 4096;
			CPU_G s;
			CPU_SUM(s, n, CPU_E(exp)(CPU_LOAD(part[i]) - most));
			sum += (double)s;
			at += n;
		} while (at < cols);
		*loss += log(sum) + (double)most - (double)CPU_LOAD(x[target[r]]);
		CPU_G rate = (CPU_G)(scale / sum);
		CPU_G hit = CPU_E(exp)(CPU_LOAD(x[target[r]]) - most) * rate - (CPU_G)scale;
		CPU_MAP
		for (int64_t i = 0; i < cols; i++)
			x[i] = CPU_STORE(CPU_E(exp)(CPU_LOAD(x[i]) - most) * rate);
		x[target[r]] = CPU_STORE(hit);
	}
}

/* Attention's tiles hold scores as [key][CPU_TILE queries]: a row is one key's, so that maxima and
 * sums of the queries run down the rows, a vector of queries at a time. Queries over the tile's
 * count compute on what is there and are never read. */

/* What a query may not see counts as -inf: key c comes `past` or more places after the first. */
static void CPU_K(mask)(CPU_G *s, int64_t keys, int64_t past)
{
	for (int64_t c = past < 0 ? 0 : past + 1; c < keys; c++) {
		int hidden = c - past < CPU_TILE ? (int)(c - past) : CPU_TILE;
		CPU_MAP
		for (int j = 0; j < CPU_TILE; j++)
			s[c * CPU_TILE + j] = j < hidden ? (CPU_G)-INFINITY : s[c * CPU_TILE + j];
	}
}

static void CPU_K(attn_turn)(void *to_, const void *from_, int64_t rows, int64_t d)
{
	CPU_W *to = to_;
	const CPU_W *from = from_;
	for (int64_t c = 0; c < d; c++)
		for (int64_t r = 0; r < rows; r++)
			to[c * CPU_TILE + r] = from[r * d + c];
}

/* More keys for a tile's queries: P = exp(scale * s - max), the running maximum and sum, and by
 * what the output so far is to be multiplied. The first keys begin with max -inf and sum 0. */
static void CPU_K(attn_softmax)(void *P, void *s_, void *max_, void *sum_, void *fix_, int64_t keys,
	int64_t past, double scale_)
{
	CPU_G *s = s_, *max = max_, *sum = sum_, *fix = fix_, scale = (CPU_G)scale_;
	CPU_G most[CPU_TILE], off[CPU_TILE], part[CPU_TILE];
	CPU_W *p = P;
	CPU_K(mask)(s, keys, past);
	for (int j = 0; j < CPU_TILE; j++)
		most[j] = (CPU_G)-INFINITY;
	for (int64_t c = 0; c < keys; c++)
		for (int j = 0; j < CPU_TILE; j++) {
			CPU_G v = s[c * CPU_TILE + j];
			most[j] = v > most[j] ? v : most[j];
		}
	for (int j = 0; j < CPU_TILE; j++) {
		CPU_G v = most[j] * scale;
		most[j] = v > max[j] ? v : max[j];
		/* All -inf, or NaN: no maximum to take off; a NaN goes on by itself. */
		off[j] = most[j] > (CPU_G)-INFINITY ? most[j] : 0;
		part[j] = 0;
	}
	for (int64_t c = 0; c < keys; c++) {
		CPU_MAP
		for (int j = 0; j < CPU_TILE; j++) {
			CPU_G e = CPU_E(exp)(s[c * CPU_TILE + j] * scale - off[j]);
			part[j] += e;
			p[c * CPU_TILE + j] = CPU_STORE(e);
		}
	}
	for (int j = 0; j < CPU_TILE; j++) {
		fix[j] = CPU_E(exp)(max[j] - off[j]);
		sum[j] = sum[j] * fix[j] + part[j];
		max[j] = most[j];
	}
}

static void CPU_K(attn_rescale)(void *o_, const void *fix_, int64_t rows, int64_t d)
{
	for (int64_t r = 0; r < rows; r++) {
		CPU_G *o = (CPU_G *)o_ + r * d, fix = ((const CPU_G *)fix_)[r];
		CPU_MAP
		for (int64_t i = 0; i < d; i++)
			o[i] *= fix;
	}
}

static void CPU_K(attn_finish)(void *o_, int64_t ldo, const void *G_o, const void *max_,
	const void *sum_, void *lse, int64_t rows, int64_t d)
{
	for (int64_t r = 0; r < rows; r++) {
		CPU_W *o = (CPU_W *)o_ + r * ldo;
		const CPU_G *from = (const CPU_G *)G_o + r * d;
		CPU_G sum = ((const CPU_G *)sum_)[r], part = 1 / sum;
		CPU_MAP
		for (int64_t i = 0; i < d; i++)
			o[i] = CPU_STORE(from[i] * part);
		((CPU_G *)lse)[r] = (CPU_G)((double)((const CPU_G *)max_)[r] + log((double)sum));
	}
}

static void CPU_K(attn_dot)(
	void *dot, const void *a_, const void *b_, int64_t ld, int64_t rows, int64_t d)
{
	for (int64_t r = 0; r < rows; r++) {
		const CPU_W *a = (const CPU_W *)a_ + r * ld, *b = (const CPU_W *)b_ + r * ld;
		CPU_G sum;
		CPU_SUM(sum, d, CPU_LOAD(a[i]) * CPU_LOAD(b[i]));
		((CPU_G *)dot)[r] = sum;
	}
}

/* From scores and dP: P again, and dS. lse and dot are of CPU_TILE queries. */
static void CPU_K(attn_grad)(void *P, void *dS, void *s_, const void *dp_, const void *lse_,
	const void *dot_, int64_t keys, int64_t past, double scale_)
{
	CPU_G *s = s_, scale = (CPU_G)scale_;
	const CPU_G *dp = dp_, *lse = lse_, *dot = dot_;
	CPU_W *p = P, *ds = dS;
	CPU_K(mask)(s, keys, past);
	for (int64_t c = 0; c < keys; c++) {
		CPU_MAP
		for (int j = 0; j < CPU_TILE; j++) {
			int64_t i = c * CPU_TILE + j;
			CPU_G e = CPU_E(exp)(s[i] * scale - lse[j]);
			ds[i] = CPU_STORE(CPU_E(attn_ds)(e, dp[i], dot[j], scale));
			p[i] = CPU_STORE(e);
		}
	}
}

static void CPU_K(attn_store)(void *x_, int64_t ldx, const void *from_, int64_t rows, int64_t d)
{
	for (int64_t r = 0; r < rows; r++) {
		CPU_W *x = (CPU_W *)x_ + r * ldx;
		const CPU_G *from = (const CPU_G *)from_ + r * d;
		CPU_MAP
		for (int64_t i = 0; i < d; i++)
			x[i] = CPU_STORE(from[i]);
	}
}

static void CPU_K(adamw)(const struct tr_adamw *a, void *p_, void *m_, void *v_, const void *grad_,
	double grad_scale, void *work_, int64_t n)
{
	const struct CPU_E(adam)
		c = {(CPU_G)a->lr, (CPU_G)a->beta1, (CPU_G)a->beta2, (CPU_G)(1 - a->beta1),
			(CPU_G)(1 - a->beta2), (CPU_G)(1 / (1 - pow(a->beta1, (double)a->t))),
			(CPU_G)(1 / (1 - pow(a->beta2, (double)a->t))), (CPU_G)a->eps,
			(CPU_G)a->decay, (CPU_G)grad_scale};
	CPU_G *p = p_, *m = m_, *v = v_;
	const CPU_G *grad = grad_;
	CPU_W *work = work_;
	if (!work) {
		CPU_MAP
		for (int64_t i = 0; i < n; i++)
			CPU_E(adamw)(&c, grad[i], &p[i], &m[i], &v[i]);
		return;
	}
	CPU_MAP
	for (int64_t i = 0; i < n; i++) {
		CPU_E(adamw)(&c, grad[i], &p[i], &m[i], &v[i]);
		work[i] = CPU_STORE(p[i]);
	}
}

static void CPU_K(sumsq)(double *sum, const void *x_, int64_t n)
{
	const CPU_G *x = x_;
	double lane[CPU_LANES] = {0};
	int64_t whole = n - n % CPU_LANES;
	for (int64_t b = 0; b < whole; b += CPU_LANES)
		for (int l = 0; l < CPU_LANES; l++)
			lane[l] += (double)x[b + l] * (double)x[b + l];
	for (int64_t i = whole; i < n; i++)
		lane[i - whole] += (double)x[i] * (double)x[i];
	*sum += fold_f64(lane);
}

/* In units of 2^-TR_FIXED_BITS; false when it does not fit, or is no number. */
static bool CPU_K(fixed_round)(double v, int64_t *out)
{
	double u = v * (double)(INT64_C(1) << TR_FIXED_BITS);
	if (!(u > -9.2e18 && u < 9.2e18))
		return false;
	*out = llrint(u);
	return true;
}

static bool CPU_K(sumsq_fixed)(int64_t *sum, const void *x_, int64_t n)
{
	const CPU_G *x = x_;
	bool good = true;
	for (int64_t i = 0; i < n; i++) {
		int64_t u = 0;
		good &= CPU_K(fixed_round)((double)x[i] * (double)x[i], &u);
		good &= !__builtin_add_overflow(*sum, u, sum);
	}
	return good;
}

static bool CPU_K(fixed_add)(int64_t *dst, const void *src_, int64_t n)
{
	const CPU_G *src = src_;
	bool good = true;
	for (int64_t i = 0; i < n; i++) {
		int64_t u = 0;
		good &= CPU_K(fixed_round)((double)src[i], &u);
		good &= !__builtin_add_overflow(dst[i], u, &dst[i]);
	}
	return good;
}

static void CPU_K(fixed_to)(void *dst_, const int64_t *src, int64_t n)
{
	CPU_G *dst = dst_;
	for (int64_t i = 0; i < n; i++)
		dst[i] = (CPU_G)((double)src[i] / (double)(INT64_C(1) << TR_FIXED_BITS));
}

static const struct cpu_kernels CPU_K(kernels) = {
	.embed_fwd = CPU_K(embed_fwd),
	.embed_bwd = CPU_K(embed_bwd),
	.norm_fwd = CPU_K(norm_fwd),
	.norm_bwd = CPU_K(norm_bwd),
	.rope = CPU_K(rope),
	.swiglu_fwd = CPU_K(swiglu_fwd),
	.swiglu_bwd = CPU_K(swiglu_bwd),
	.gelu_fwd = CPU_K(gelu_fwd),
	.gelu_bwd = CPU_K(gelu_bwd),
	.bias_fwd = CPU_K(bias_fwd),
	.bias_bwd = CPU_K(bias_bwd),
	.add = CPU_K(add),
	.xent = CPU_K(xent),
	.attn_turn = CPU_K(attn_turn),
	.attn_softmax = CPU_K(attn_softmax),
	.attn_rescale = CPU_K(attn_rescale),
	.attn_finish = CPU_K(attn_finish),
	.attn_dot = CPU_K(attn_dot),
	.attn_grad = CPU_K(attn_grad),
	.attn_store = CPU_K(attn_store),
	.adamw = CPU_K(adamw),
	.sumsq = CPU_K(sumsq),
	.sumsq_fixed = CPU_K(sumsq_fixed),
	.fixed_add = CPU_K(fixed_add),
	.fixed_to = CPU_K(fixed_to),
};

#undef CPU_SUM
#undef CPU_W
#undef CPU_G
#undef CPU_LOAD
#undef CPU_STORE
#undef CPU_E
#undef CPU_K
#endif
