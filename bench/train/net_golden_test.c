// SPDX-License-Identifier: Apache-2.0
/*
 * The net against PyTorch: losses and every gradient of both families as
 * scripts/oracle/train_golden.py wrote them from autograd in float64. In f64, in f32 with the plain
 * loops and with oneDNN; and bf16 against f32.
 */
#include <errno.h>

#include "bench/core/plugin.h"
#include "bench/train/net_rig.h"

#define SEQS 2
#define SEQ  70 /* more than a tile of attention, and no multiple of one */

static const struct {
	const struct model *m;
	const char *file;
} goldens[] = {
	{&rig_llama, FB_TESTDATA("bench/train", "golden_llama.bin")},
	{&rig_gpt2, FB_TESTDATA("bench/train", "golden_gpt2.bin")},
};
#define GOLDENS (sizeof(goldens) / sizeof(goldens[0]))

/* The files are little-endian, as are all machines that this is built for. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "golden files are little-endian");

static void get(FILE *f, void *p, size_t bytes, const char *file)
{
	if (fread(p, 1, bytes, f) != bytes)
		fail_msg("%s ends early", file);
}

/* All records into g[unit], laid out as the model's units; each tensor must be there once. */
static double read_golden(const struct rig *r, const char *file, double *g[RIG_UNITS])
{
	double loss;
	FILE *f = fopen(file, "rb");
	if (!f)
		fail_msg("%s: %s", file, strerror(errno));
	get(f, &loss, sizeof(loss), file);
	for (int u = 0; u < RIG_UNITS; u++) {
		g[u] = malloc((size_t)r->unit[u].elements * sizeof(double));
		assert_non_null(g[u]);
		for (int i = 0; i < r->unit[u].n; i++) {
			const struct model_tensor *t = &r->unit[u].t[i];
			struct {
				int32_t unit;
				char name[28];
				int32_t n;
			} head;
			get(f, &head, sizeof(head), file);
			head.name[sizeof(head.name) - 1] = '\0';
			assert_int_equal(head.unit, u);
			assert_string_equal(head.name, tensor_name(t->kind));
			assert_int_equal(head.n, t->rows * t->cols);
			for (int64_t j = 0; j < head.n; j++) {
				float v;
				get(f, &v, sizeof(v), file);
				g[u][t->offset + j] = v;
			}
		}
	}
	assert_int_equal(fgetc(f), EOF);
	fclose(f);
	return loss;
}

static void free_grads(double *g[RIG_UNITS])
{
	for (int u = 0; u < RIG_UNITS; u++)
		free(g[u]);
}

/* Each tensor within `most`; of those whose exact gradient is zero nothing but a bound. */
static void assert_close(
	struct rig *r, double *const ours[RIG_UNITS], double *const want[RIG_UNITS], double most)
{
	double all = rig_norm_all(want, r), worst = 0;
	for (int u = 0; u < RIG_UNITS; u++) {
		for (int i = 0; i < r->unit[u].n; i++) {
			const struct model_tensor *t = &r->unit[u].t[i];
			int64_t n = t->rows * t->cols;
			const double *a = ours[u] + t->offset;
			double error = rig_error(a, want[u] + t->offset, n, all);
			if (t->zero_grad) {
				print_message("%s: %d/%s has no gradient; rounding left %.2g\n",
					r->m.name, u, tensor_name(t->kind), rig_norm(a, n));
				error = rig_norm(a, n) / all;
			}
			if (!(error <= most))
				fail_msg("%s %s: %d/%s: error %.3g of %.3g", r->m.name,
					tr_dtype_names[r->net.work], u, tensor_name(t->kind), error,
					rig_norm(want[u] + t->offset, n));
			worst = error > worst ? error : worst;
		}
	}
	print_message("%s %s: worst error %.2g\n", r->m.name, tr_dtype_names[r->net.work], worst);
}

static void against_torch(enum tr_dtype work, const struct gemm_ops *gemm, double most)
{
	for (size_t i = 0; i < GOLDENS; i++) {
		struct rig r;
		double *want[RIG_UNITS], *ours[RIG_UNITS];

		rig_open(&r, goldens[i].m, work, SEQS, SEQ, TR_RECOMPUTE_NONE, gemm);
		double loss = read_golden(&r, goldens[i].file, want);
		double our_loss = rig_gradients(&r);
		if (!(fabs(our_loss - loss) <= most * loss))
			fail_msg("%s: loss %.12g, torch's %.12g", r.m.name, our_loss, loss);
		for (int u = 0; u < RIG_UNITS; u++)
			ours[u] = rig_grads(&r, u);
		assert_close(&r, ours, want, most);
		free_grads(ours);
		free_grads(want);
		rig_close(&r);
	}
}

static void f64_equals_torch(void **state)
{
	against_torch(TR_F64, NULL, 1e-7); /* the files hold float32 */
}
static void f32_equals_torch(void **state)
{
	against_torch(TR_F32, NULL, 1e-5);
}
static void f32_by_dnnl_equals_torch(void **state)
{
	struct fb_err why = {0};
	const struct fb_plugin *plugin = fb_plugin_open("dnnl", &why);
	if (!plugin)
		fb_test_skip("net-dnnl", "%s", why.msg);
	against_torch(TR_F32, plugin->gemm, 1e-5);
}

/* ---- bf16 ------------------------------------------------------------------------------------ */

static double dot(const double *a, const double *b, int64_t n)
{
	double sum = 0;
	for (int64_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

/* How a gradient lies to the one wanted. */
struct likeness {
	double ab, aa, bb;
};
static struct likeness likeness(const double *a, const double *b, int64_t n)
{
	return (struct likeness){dot(a, b, n), dot(a, a, n), dot(b, b, n)};
}
static double norm_error(const struct likeness *l)
{
	return fabs(sqrt(l->aa / l->bb) - 1);
}
static double cosine(const struct likeness *l)
{
	return l->ab / sqrt(l->aa * l->bb);
}

/* Of a whole gradient the norm within 2e-2 and the cosine 0.999; of each tensor twice as far. */
static void bf16_against_torch(const struct gemm_ops *gemm)
{
	for (size_t i = 0; i < GOLDENS; i++) {
		struct rig r;
		double *want[RIG_UNITS];
		struct likeness all = {0, 0, 0};

		rig_open(&r, goldens[i].m, TR_BF16, SEQS, SEQ, TR_RECOMPUTE_NONE, gemm);
		double loss = read_golden(&r, goldens[i].file, want);
		double our_loss = rig_gradients(&r);
		for (int u = 0; u < RIG_UNITS; u++) {
			double *g = rig_grads(&r, u);
			for (int k = 0; k < r.unit[u].n; k++) {
				const struct model_tensor *t = &r.unit[u].t[k];
				struct likeness l = likeness(
					g + t->offset, want[u] + t->offset, t->rows * t->cols);
				if (!t->zero_grad &&
					!(norm_error(&l) <= 4e-2 && cosine(&l) >= 0.998))
					fail_msg(
						"%s bf16: %d/%s: norm off by %.3g, cosine 1 - %.3g",
						r.m.name, u, tensor_name(t->kind), norm_error(&l),
						1 - cosine(&l));
				all.ab += l.ab;
				all.aa += l.aa;
				all.bb += l.bb;
			}
			free(g);
		}
		print_message("%s bf16: loss off by %.2g, norm by %.2g, cosine 1 - %.2g\n",
			r.m.name, fabs(our_loss / loss - 1), norm_error(&all), 1 - cosine(&all));
		assert_true(fabs(our_loss - loss) <= 1e-2 * loss);
		assert_true(norm_error(&all) <= 2e-2);
		assert_true(cosine(&all) >= 0.999);
		free_grads(want);
		rig_close(&r);
	}
}

static void bf16_is_near_torch(void **state)
{
	bf16_against_torch(NULL);
}
static void bf16_by_dnnl_is_near_torch(void **state)
{
	struct fb_err why = {0};
	const struct fb_plugin *plugin = fb_plugin_open("dnnl", &why);
	if (!plugin)
		fb_test_skip("net-dnnl-bf16", "%s", why.msg);
	bf16_against_torch(plugin->gemm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f64_equals_torch),
		cmocka_unit_test(f32_equals_torch),
		cmocka_unit_test(f32_by_dnnl_equals_torch),
		cmocka_unit_test(bf16_is_near_torch),
		cmocka_unit_test(bf16_by_dnnl_is_near_torch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
