// SPDX-License-Identifier: Apache-2.0
/*
 * Parameter counts against published ones, tensors against the counts, FLOPs against closed forms,
 * start values against the normal distribution, model files against what people write wrongly.
 */
#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/test.h"
#include "bench/train/model_rig.h"

#define DATA(f) FB_TESTDATA("bench/train", f)

static struct model find(const char *name)
{
	struct model m;
	struct fb_err e = {0};
	if (model_find(name, &m, &e) != 0)
		fail_msg("%s: %s", name, e.msg);
	assert_int_equal(model_check(&m, &e), 0);
	return m;
}

/* llama3-8b: torchtitan's log prints it; llama3-1b: Meta's model card says 1.23B; MPT's: MosaicML's
 * tables; GPT-2: Radford et al. The others by the closed forms of the families, worked out apart.
 */
static const struct {
	const char *name;
	int64_t params, matmul, block;
} golden[] = {
	{"gpt2-124m", 124439808, 123532032, 7087872},
	{"llama3-1b", 1235814400, 1235746816, 60821504},
	{"llama3-8b", 8030261248, 7504658432, 218112000},
	{"llama3-70b", 70553706496, 69501714432, 855654400},
	{"llama3-405b", 405853388800, 403747897344, 3187703808},
	{DATA("llama2-7b.ini"), 6738415616, 6607077376, 202383360},
	{DATA("llama2-13b.ini"), 13015864320, 12851609600, 317204480},
	{DATA("llama2-70b.ini"), 68976648192, 68713185280, 855654400},
	{DATA("gpt3-175b.ini"), 174604259328, 174563733504, 1812099072},
	{DATA("mpt-7b.ini"), 6658859008, 6648758272, 201379840},
};

static void parameter_counts_are_the_published_ones(void **state)
{
	for (size_t i = 0; i < sizeof(golden) / sizeof(golden[0]); i++) {
		struct model m = find(golden[i].name);
		struct model_unit block;
		model_unit(&m, 0, &block);
		assert_int_equal(model_params(&m), golden[i].params);
		assert_int_equal(model_matmul_params(&m), golden[i].matmul);
		assert_int_equal(block.elements, golden[i].block);
	}
}

/* N = L*(2*h*a*d + 2*h*k*d + 3*h*f + 2*h) + h + 2*V*h; L*(12h^2 + 13h) + (V + T)*h + 2h */
static int64_t closed_form(const struct model *m)
{
	int64_t h = m->hidden, l = m->layers, v = m->vocab;
	if (m->family == MODEL_GPT2)
		return l * (12 * h * h + 13 * h) + (v + m->positions) * h + 2 * h;
	return l * (2 * h * m->heads * m->head_dim + 2 * h * m->kv_heads * m->head_dim +
			   3 * h * m->ffn + 2 * h) +
	       h + (m->tied ? 1 : 2) * v * h;
}

static void mpt_and_gpt_sizes_follow_from_their_shapes(void **state)
{
	static const struct {
		int64_t layers, hidden, params;
	} mpt[] = {
		{12, 768, 125311488},
		{24, 1024, 355985408},
		{24, 1536, 760470528},
		{24, 2048, 1315950592},
		{32, 2560, 2651837440},
		{32, 4096, 6658859008},
		{40, 5120, 12853954560},
		{48, 7168, 29975214080},
		{80, 8192, 64862437376},
	};
	struct model m = find(DATA("mpt-7b.ini"));
	for (size_t i = 0; i < sizeof(mpt) / sizeof(mpt[0]); i++) {
		m.layers = mpt[i].layers;
		m.hidden = mpt[i].hidden;
		m.ffn = 4 * m.hidden;
		m.heads = m.kv_heads = m.hidden / 64;
		m.head_dim = 64;
		assert_int_equal(model_params(&m), mpt[i].params);
		assert_int_equal(closed_form(&m), mpt[i].params);
	}
}

static const char *const all[] = {"tiny", "gpt2-124m", "llama3-1b", "llama3-8b", "llama3-70b",
	"llama3-405b", DATA("llama2-7b.ini"), DATA("llama2-70b.ini"), DATA("gpt3-175b.ini")};
#define ALL (sizeof(all) / sizeof(all[0]))

static void tensors_lie_one_after_another(void **state)
{
	for (size_t i = 0; i < ALL; i++) {
		struct model m = find(all[i]);
		assert_int_equal(model_params(&m), closed_form(&m));
		for (int root = 0; root < 2; root++) {
			struct model_unit u;
			int64_t at = 0;
			model_unit(&m, root ? m.layers : m.layers - 1, &u);
			assert_in_range(u.n, 2, MODEL_MAX_TENSORS);
			for (int t = 0; t < u.n; t++) {
				const struct model_tensor *x = &u.t[t];
				assert_int_equal(x->offset, at);
				at += x->rows * x->cols;
				assert_ptr_equal(model_unit_tensor(&u, x->kind), x);
				assert_int_equal(x->decay, x->cols > 1);
				assert_int_equal(x->zero_grad, x->kind == TENSOR_K_BIAS);
				assert_non_null(strchr(tensor_name(x->kind), '.'));
			}
			assert_int_equal(u.elements, at);
		}
	}
}

static void families_have_their_tensors(void **state)
{
	struct model_unit u;
	struct model m = find("tiny");
	model_unit(&m, 0, &u);
	assert_int_equal(u.n, 9);
	assert_int_equal(model_unit_tensor(&u, TENSOR_Q)->rows, 64);
	assert_int_equal(model_unit_tensor(&u, TENSOR_K)->rows, 32);
	assert_int_equal(model_unit_tensor(&u, TENSOR_O)->cols, 64);
	assert_int_equal(model_unit_tensor(&u, TENSOR_DOWN)->cols, 100);
	assert_null(model_unit_tensor(&u, TENSOR_K_BIAS));
	assert_null(model_unit_tensor(&u, TENSOR_EMBED));
	model_unit(&m, m.layers, &u);
	assert_int_equal(u.n, 3);
	assert_int_equal(model_unit_tensor(&u, TENSOR_HEAD)->rows, 258);
	m = find("llama3-1b"); /* tied: the head is the embedding */
	model_unit(&m, m.layers, &u);
	assert_int_equal(u.n, 2);
	assert_null(model_unit_tensor(&u, TENSOR_HEAD));
	m = find("gpt2-124m");
	model_unit(&m, 3, &u);
	assert_int_equal(u.n, 16);
	assert_null(model_unit_tensor(&u, TENSOR_GATE));
	assert_int_equal(model_unit_tensor(&u, TENSOR_UP_BIAS)->rows, 3072);
	model_unit(&m, m.layers, &u);
	assert_int_equal(u.n, 4);
	assert_int_equal(model_unit_tensor(&u, TENSOR_POSITIONS)->rows, 1024);
}

/* The smallest preset must be awkward: padding, and heads that do not add up to hidden. */
static void tiny_divides_badly(void **state)
{
	struct model m = find("tiny");
	struct model_unit u;
	assert_int_equal(model_params(&m), 75250);
	assert_true(m.heads * m.head_dim != m.hidden && m.kv_heads < m.heads);
	for (int root = 0; root < 2; root++) {
		model_unit(&m, root ? m.layers : 0, &u);
		assert_true(u.elements % 3 != 0 && u.elements % 8 != 0);
	}
	assert_true(model_params(&m) % 3 != 0 && model_params(&m) % 8 != 0);
}

static void near(double a, double b, double rel)
{
	if (!(fabs(a - b) <= rel * fabs(b)))
		fail_msg("%.17g is not %.17g", a, b);
}

/* GFLOP per token at 8192, forward and backward: full attention, causal as 2*s*a*d, and 6N. */
static void flops_are_the_closed_forms(void **state)
{
	static const struct {
		const char *name;
		double full, causal, six_n;
	} known[] = {
		{"llama3-8b", 57.91, 51.47, 48.18},
		{"llama3-70b", 481.43, 449.22, 423.32},
		{"llama3-405b", 2625.42, 2523.96, 2435.12},
	};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct model m = find(known[i].name);
		struct model_flops f;
		model_flops(&m, 8192, &f);
		double m6 = 6.0 * (double)model_matmul_params(&m);
		near(3 * (f.linear + f.head), m6, 1e-15);
		near(3 * (f.linear + f.head + f.core_full) / 1e9, known[i].full, 1e-4);
		near(model_flops_per_token(&m, 8192, MFU_CAUSAL) / 1e9, known[i].causal, 1e-4);
		near(model_flops_per_token(&m, 8192, MFU_6N) / 1e9, known[i].six_n, 1e-4);
		near(model_flops_per_token(&m, 8192, MFU_PALM),
			6.0 * (double)model_params(&m) + 12.0 * (double)m.layers * (double)m.heads *
								 (double)m.head_dim * 8192.0,
			1e-15);
	}
}

/* Causal attention pair by pair: query t has t+1 keys, each costs 2*d for the score and 2*d for the
 * value, in every head. */
static void causal_core_is_the_mean_over_positions(void **state)
{
	struct model m = find("tiny");
	struct model_flops f;
	const int64_t seq = 37;
	double sum = 0;
	for (int64_t t = 0; t < seq; t++)
		sum += (double)(m.layers * m.heads * (t + 1) * 4 * m.head_dim);
	model_flops(&m, seq, &f);
	near(f.core_causal, sum / (double)seq, 1e-15);
	near(f.core_full, (double)(m.layers * m.heads * seq * 4 * m.head_dim), 1e-15);
	model_flops(&m, 1, &f);
	near(f.core_causal, f.core_full, 1e-15);
}

/* Shares of 6N to the exact count, Llama-3: known how far 6N leads astray at long contexts. */
static void six_n_against_the_exact_count(void **state)
{
	struct model m70 = find("llama3-70b"), m8 = find("llama3-8b");
	static const int64_t seq[] = {2048, 8192, 131072};
	static const double ratio70[] = {0.996, 0.942, 0.454}, ratio8[] = {1.033, 0.936, 0.325};
	for (int i = 0; i < 3; i++) {
		near(model_flops_per_token(&m70, seq[i], MFU_6N) /
				model_flops_per_token(&m70, seq[i], MFU_CAUSAL),
			ratio70[i], 2e-3);
		near(model_flops_per_token(&m8, seq[i], MFU_6N) /
				model_flops_per_token(&m8, seq[i], MFU_CAUSAL),
			ratio8[i], 2e-3);
	}
}

static void start_values_are_normal(void **state)
{
	enum { N = 100000 };
	struct model m = find("gpt2-124m");
	struct model_unit u;
	float *x = malloc(N * sizeof(*x));
	assert_non_null(x);
	model_unit(&m, 0, &u);
	const enum tensor_kind kinds[] = {TENSOR_Q, TENSOR_O};
	const double deviation[] = {0.02, 0.02 / sqrt(24.0)};
	for (int k = 0; k < 2; k++) {
		double s1 = 0, s2 = 0, s4 = 0;
		int inside = 0;
		model_init(&m, 0, model_unit_tensor(&u, kinds[k]), 7, 0, N, x);
		for (int i = 0; i < N; i++) {
			double z = (double)x[i] / deviation[k];
			s1 += z;
			s2 += z * z;
			s4 += z * z * z * z;
			inside += fabs(z) < 1.959964;
		}
		/* five standard errors of each */
		assert_true(fabs(s1 / N) < 5 / sqrt(N));
		assert_true(fabs(s2 / N - 1) < 5 * sqrt(2.0 / N));
		assert_true(fabs(s4 / N - 3) < 5 * sqrt(96.0 / N));
		assert_true(fabs((double)inside / N - 0.95) < 5 * sqrt(0.0475 / N));
	}
	/* Kolmogorov's distance to the distribution itself, by the probability of each value */
	int bins[64] = {0};
	model_init(&m, 0, model_unit_tensor(&u, TENSOR_Q), 8, 0, N, x);
	for (int i = 0; i < N; i++)
		bins[(int)(gsl_cdf_ugaussian_P((double)x[i] / 0.02) * 64)]++;
	for (int b = 0, below = 0; b < 63; b++) {
		below += bins[b];
		assert_true(fabs((double)below / N - (b + 1) / 64.0) < 2 / sqrt(N));
	}
	free(x);
}

static int differ(const float *a, const float *b, int n)
{
	int d = 0;
	for (int i = 0; i < n; i++)
		d += a[i] != b[i];
	return d;
}

static void start_values_depend_on_place_alone(void **state)
{
	struct model m = find("tiny");
	struct model_unit u;
	float whole[3200], part[3200], other[3200];
	model_unit(&m, 0, &u);
	const struct model_tensor *q = model_unit_tensor(&u, TENSOR_Q);
	assert_int_equal(q->rows * q->cols, 3200);
	model_init(&m, 0, q, 1, 0, 3200, whole);
	for (int64_t at = 0, n = 1; at < 3200; at += n, n = n * 3 < 3200 - at - n ? n * 3 : n) {
		if (n > 3200 - at)
			n = 3200 - at;
		model_init(&m, 0, q, 1, at, n, part);
		assert_int_equal(differ(part, whole + at, (int)n), 0);
	}
	/* another seed, unit or tensor gives other values */
	model_init(&m, 0, q, 2, 0, 3200, other);
	assert_true(differ(other, whole, 3200) > 3000);
	model_init(&m, 1, q, 1, 0, 3200, other);
	assert_true(differ(other, whole, 3200) > 3000);
	model_init(&m, 0, model_unit_tensor(&u, TENSOR_GATE), 1, 0, 3200, other);
	assert_true(differ(other, whole, 3200) > 3000);
	model_init(&m, 0, model_unit_tensor(&u, TENSOR_NORM2), 1, 0, 50, other);
	for (int i = 0; i < 50; i++)
		assert_true(other[i] == 1);
	m = find("gpt2-124m");
	model_unit(&m, 0, &u);
	model_init(&m, 0, model_unit_tensor(&u, TENSOR_NORM2_BIAS), 1, 0, 50, other);
	for (int i = 0; i < 50; i++)
		assert_true(other[i] == 0);
}

static void unknown_names_get_the_nearest(void **state)
{
	struct model m;
	struct fb_err e = {0};
	assert_int_equal(model_find("lama3-8b", &m, &e), -EINVAL);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	assert_non_null(strstr(e.msg, "\"lama3-8b\""));
	assert_non_null(strstr(e.msg, "nearest is \"llama3-8b\""));
	assert_non_null(strstr(e.hint, "gpt2-124m"));
	fb_err_clear(&e);
	assert_int_equal(model_find("/nonexistent/model", &m, &e), -ENOENT);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	fb_err_clear(&e);
	assert_int_equal(model_find("nosuchfile.ini", &m, &e), -ENOENT);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	for (int i = 0; model_preset_names[i]; i++)
		assert_string_equal(find(model_preset_names[i]).name, model_preset_names[i]);
}

static void files_fill_in_what_follows(void **state)
{
	struct model m = find(DATA("gpt3-175b.ini"));
	assert_string_equal(m.name, "gpt3-175b");
	assert_int_equal(m.family, MODEL_GPT2);
	assert_int_equal(m.head_dim, 128);
	assert_int_equal(m.kv_heads, 96);
	assert_true(m.tied && m.rope_base == 0 && m.eps == 1e-5);
	m = find(DATA("llama2-70b.ini"));
	assert_int_equal(m.kv_heads, 8);
	assert_true(!m.tied && m.rope_base == 10000);
	assert_int_equal(find(DATA("mpt-7b.ini")).ffn, 16384);
}

/* A file of these lines; what of it is read. */
static int read_text(const char *text, size_t len, struct model *m, struct fb_err *e)
{
	char path[] = "/tmp/fabricbench-model-XXXXXX.ini";
	int fd = mkstemps(path, 4);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	close(fd);
	int rc = model_find(path, m, e);
	unlink(path);
	return rc;
}

#define GOOD "family=llama\nlayers=2\nhidden=64\nheads=4\nffn=128\nvocab=100\npositions=64\n"

static void wrong_files_say_what_and_where(void **state)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{"", "family is missing"},
		{"family=llama\n", "layers is missing"},
		{"family=llama\nlayers=2\nhidden=64\nheads=4\nvocab=9\npositions=9\n",
			"ffn is missing"},
		{"family=lama\n", ":1: family = lama: llama or gpt2"},
		{"family=llama\n\nlayers=0\n", ":3: layers = 0: a whole number over 0"},
		{"layers=-4\n", ":1: layers = -4"},
		{"layers=3.5\n", "layers = 3.5"},
		{"layers=\n", "layers = : no value"},
		{"hidden=99999999999999999999\n", "hidden = 99999999999999999999"},
		{"width=4\n", "unknown key \"width\""},
		{"kv_heads=4\n", "the nearest is \"kv-heads\""},
		{"layers=2\nlayers=2\n", ":2: layers stands twice (first in line 1)"},
		{"[net]\nlayers=2\n", "section [net]"},
		{"layers\n", "neither a comment, nor [SECTION], nor KEY = VALUE"},
		{GOOD "kv-heads=3\n", "heads = 4 is no multiple of kv-heads = 3"},
		{GOOD "head-dim=7\n", "head-dim = 7 is odd"},
		{GOOD "eps=0\n", "eps = 0"},
		{GOOD "eps=1e-5x\n", "eps = 1e-5x: a number is needed"},
		{GOOD "eps=nan\n", "eps = nan"},
		{GOOD "rope-base=-1\n", "rope-base = -1"},
		{GOOD "tied=maybe\n", "tied = maybe: yes or no"},
		{"family=gpt2\nrope-base=1e4\nlayers=2\nhidden=64\nheads=4\nvocab=9\npositions=9\n",
			":2: rope-base belongs to family = llama"},
		{"family=llama\nlayers=2\nhidden=65\nheads=4\nffn=9\nvocab=9\npositions=9\n",
			"head-dim must be given"},
		{"family=llama\nlayers=60000\nhidden=16000000\nheads=4\nffn=16000000\nvocab=9\n"
		 "positions=9\n",
			"more than 10^15 parameters"},
		{"family=llama\nlayers=2\nhidden=4000000000000000000\nheads=2\nffn=9\nvocab=9\n"
		 "positions=9\n",
			"hidden = 4000000000000000000: at most 16777216"},
		{"family=gpt2\nlayers=2\nhidden=9000000000000000000\nheads=4\nvocab=9\n"
		 "positions=9\n",
			"ffn is missing"},
		{"family=llama\nlayers=2\nhidden=64\nheads=16777216\nhead-dim=2\nffn=9\nvocab=9\n"
		 "positions=9\n",
			"heads * head-dim = 33554432: at most"},
		{"family=llama\nlayers=70000\nhidden=64\nheads=4\nffn=9\nvocab=9\npositions=9\n",
			"layers = 70000: at most"},
		{"family=gpt2\nlayers=2\nhidden=64\nheads=4\nvocab=3000000000\npositions=9\n",
			"vocab = 3000000000: at most"},
		{"family=gpt2\nlayers=2\nhidden=64\nheads=4\nvocab=9\npositions=3000000000\n",
			"positions = 3000000000: at most 2147483647"},
	};
	struct model m;
	struct fb_err e = {0};
	assert_int_equal(read_text(GOOD, sizeof(GOOD) - 1, &m, &e), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		fb_err_clear(&e);
		assert_int_equal(read_text(wrong[i].text, strlen(wrong[i].text), &m, &e), -EINVAL);
		assert_int_equal(e.exit, FB_EXIT_USAGE);
		if (!strstr(e.msg, wrong[i].says))
			fail_msg("\"%s\" does not say \"%s\"", e.msg, wrong[i].says);
		assert_non_null(strstr(e.msg, ".ini"));
		assert_non_null(strstr(e.hint, "kv-heads, head-dim"));
	}
	fb_err_clear(&e);
	assert_int_equal(read_text("layers=2\0\n", 10, &m, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "NUL"));
	/* libinih would cut this silently */
	char line[400] = "layers = ";
	memset(line + 9, '0', 300);
	fb_err_clear(&e);
	assert_int_equal(read_text(line, strlen(line), &m, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "the line has 309 bytes"));
	/* an indented line is a line of its own, not more of the value above */
	fb_err_clear(&e);
	static const char indented[] = "family=llama\n  layers=2\n\thidden=64\nheads=4 ; four\n"
				       "ffn=128\nvocab=100\npositions=64\r\n";
	if (read_text(indented, sizeof(indented) - 1, &m, &e) != 0)
		fail_msg("%s", e.msg);
	assert_int_equal(m.hidden, 64);
	assert_int_equal(m.positions, 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parameter_counts_are_the_published_ones),
		cmocka_unit_test(mpt_and_gpt_sizes_follow_from_their_shapes),
		cmocka_unit_test(tensors_lie_one_after_another),
		cmocka_unit_test(families_have_their_tensors),
		cmocka_unit_test(tiny_divides_badly),
		cmocka_unit_test(flops_are_the_closed_forms),
		cmocka_unit_test(causal_core_is_the_mean_over_positions),
		cmocka_unit_test(six_n_against_the_exact_count),
		cmocka_unit_test(start_values_are_normal),
		cmocka_unit_test(start_values_depend_on_place_alone),
		cmocka_unit_test(unknown_names_get_the_nearest),
		cmocka_unit_test(files_fill_in_what_follows),
		cmocka_unit_test(wrong_files_say_what_and_where),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
