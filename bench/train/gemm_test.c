// SPDX-License-Identifier: Apache-2.0
/*
 * The matrix products of the dnnl and cuda plug-ins against a triple loop, bit for bit: f32 and
 * bf16, every transposition, beta 0 and 1, padded leading dimensions. And that the check itself
 * finds a wrong product.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/plugin.h"
#include "bench/core/test.h"
#include "bench/mem/mem.h"
#include "bench/train/gemm_check.h"

static void every_kind(const struct gemm_place *p, enum gemm_dtype in, enum gemm_dtype out)
{
	static const int64_t sizes[][3] = {{1, 1, 1}, {33, 17, 65}, {64, 128, 96}, {7, 200, 129}};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (int kind = 0; kind < 8; kind++) {
			struct fb_err e = {0};
			struct gemm_shape s = gemm_dense(sizes[i][0], sizes[i][1], sizes[i][2], in,
				kind & 1, kind & 2, kind & 4 ? 1.0f : 0.0f);
			s.out = out;
			int rc = gemm_check(p, &s, &e);
			if (rc != 0)
				print_message("%s\n", e.msg);
			assert_int_equal(rc, 0);
			s.lda += 8;
			s.ldb += 16;
			s.ldc += 24;
			s.alpha = 0.5f;
			rc = gemm_check(p, &s, &e);
			if (rc != 0)
				print_message("padded, alpha 0.5: %s\n", e.msg);
			assert_int_equal(rc, 0);
		}
	}
}

static void dnnl_multiplies(void **state)
{
	struct fb_err why = {0};
	const struct fb_plugin *plugin = fb_plugin_open("dnnl", &why);
	if (!plugin)
		fb_test_skip("gemm-dnnl", "%s", why.msg);
	const struct gemm_place p = {plugin->gemm, &fb_mem_host, 0};
	every_kind(&p, GEMM_F32, GEMM_F32);
	every_kind(&p, GEMM_BF16, GEMM_F32);
	every_kind(&p, GEMM_BF16, GEMM_BF16);
}

/* oneDNN's `ref` is a triple loop: right, and a hundred times too slow to measure anything. */
static void dnnl_is_not_the_reference(void **state)
{
	struct fb_err why = {0};
	const struct fb_plugin *plugin = fb_plugin_open("dnnl", &why);
	if (!plugin)
		fb_test_skip("gemm-dnnl-impl", "%s", why.msg);
	for (int kind = 0; kind < 4; kind++) {
		struct gemm_plan *plan = NULL;
		struct gemm_shape s = gemm_dense(512, 512, 512, GEMM_F32, kind & 1, kind & 2, 0);
		assert_int_equal(plugin->gemm->create(0, &s, &plan, &why), 0);
		const char *impl = plugin->gemm->impl(plan);
		assert_true(strlen(impl) > 0);
		assert_null(strstr(impl, "ref"));
		plugin->gemm->destroy(plan);
	}
}

static void dnnl_refuses_an_empty_product(void **state)
{
	struct fb_err e = {0};
	const struct fb_plugin *plugin = fb_plugin_open("dnnl", &e);
	if (!plugin)
		fb_test_skip("gemm-dnnl-empty", "%s", e.msg);
	struct gemm_plan *plan = NULL;
	struct gemm_shape s = gemm_dense(0, 4, 4, GEMM_F32, false, false, 0);
	assert_int_equal(plugin->gemm->create(0, &s, &plan, &e), -EINVAL);
	assert_null(plan);
}

static void cuda_multiplies(void **state)
{
	struct fb_err why = {0};
	char found[256];
	const struct fb_plugin *plugin = fb_plugin_open("cuda", &why);
	if (!plugin || plugin->gemm->probe(found, sizeof(found), &why) != 0)
		fb_test_skip("gemm-cuda", "%s", why.msg);
	const struct gemm_place p = {plugin->gemm, plugin->mem, 0};
	every_kind(&p, GEMM_F32, GEMM_F32);
	every_kind(&p, GEMM_BF16, GEMM_F32);
	every_kind(&p, GEMM_BF16, GEMM_BF16);
}

/* A library that forgets one term of one sum. */
struct gemm_plan {
	struct gemm_shape s;
};
static int bad_create(
	int device, const struct gemm_shape *s, struct gemm_plan **p, struct fb_err *e)
{
	*p = malloc(sizeof(**p));
	assert_non_null(*p);
	(*p)->s = *s;
	return 0;
}
static int bad_run(struct gemm_plan *p, const void *a, const void *b, void *c, struct fb_err *e)
{
	const struct gemm_shape *s = &p->s;
	for (int64_t i = 0; i < s->m; i++)
		for (int64_t j = 0; j < s->n; j++) {
			float sum = 0;
			for (int64_t k = 0; k < s->k; k++)
				sum += ((const float *)a)[i * s->lda + k] *
				       ((const float *)b)[k * s->ldb + j];
			((float *)c)[i * s->ldc + j] = i == 3 && j == 5 ? sum + 1 : sum;
		}
	return 0;
}
static int bad_sync(struct gemm_plan *p, struct fb_err *e)
{
	return 0;
}
static void bad_destroy(struct gemm_plan *p)
{
	free(p);
}

static void a_wrong_product_is_found(void **state)
{
	static const struct gemm_ops bad = {.name = "bad",
		.create = bad_create,
		.run = bad_run,
		.sync = bad_sync,
		.destroy = bad_destroy};
	const struct gemm_place p = {&bad, &fb_mem_host, 0};
	struct fb_err e = {0};
	struct gemm_shape s = gemm_dense(8, 8, 8, GEMM_F32, false, false, 0);
	assert_int_equal(gemm_check(&p, &s, &e), -EBADMSG);
	assert_int_equal(e.exit, FB_EXIT_WRONG_DATA);
	assert_non_null(strstr(e.msg, "row 3, column 5"));
	fb_err_clear(&e);
	s = gemm_dense(3, 5, 8, GEMM_F32, false, false, 0); /* too small to hold the error */
	assert_int_equal(gemm_check(&p, &s, &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dnnl_multiplies),
		cmocka_unit_test(dnnl_is_not_the_reference),
		cmocka_unit_test(dnnl_refuses_an_empty_product),
		cmocka_unit_test(cuda_multiplies),
		cmocka_unit_test(a_wrong_product_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
