// SPDX-License-Identifier: Apache-2.0
/* The loss model: constants put in come out, and what noise and nonsense make of the fit. */
#include "bench/core/test.h"

#include <errno.h>
#include <math.h>

#include "verbs/loss_fit.h"

static const double rates[] = {0.001, 0.005, 0.02};

static unsigned model_points(struct verbs_loss_point *x, double w, double r)
{
	for (unsigned i = 0; i < 3; i++)
		x[i] = (struct verbs_loss_point){rates[i], verbs_loss_predict(w, r, rates[i])};
	return 3;
}

static void formula(void **state)
{
	(void)state;
	assert_float_equal(verbs_loss_predict(110, 300, 0), 1, 0);
	/* 1 + 110 * 0.05/0.95 + 400 * 0.0025 = 7.789.. by hand */
	assert_float_equal(verbs_loss_predict(110, 400, 0.05), 1 + 110.0 / 19 + 1, 1e-12);
	/* Selective repeat, W = 1: 1 + p/(1-p) = 1/(1-p). */
	assert_float_equal(verbs_loss_predict(1, 0, 0.2), 1.25, 1e-12);
	/* Go-back-N as it is usually written: eta = (1-p)/(1-p+pW). */
	assert_float_equal(1 / verbs_loss_predict(119, 0, 0.01), 0.99 / (0.99 + 0.01 * 119), 1e-12);
}

static void known_constants(void **state)
{
	static const struct {
		double w, r;
	} in[] = {{110, 0}, {110, 400}, {30, 5000}, {0, 800}, {1, 0}};
	struct verbs_loss_point x[3];
	struct verbs_loss_model m;

	(void)state;
	for (unsigned i = 0; i < sizeof in / sizeof in[0]; i++) {
		unsigned n = model_points(x, in[i].w, in[i].r);
		assert_int_equal(verbs_loss_fit(x, n, &m, NULL), 0);
		assert_true(m.determined);
		assert_float_equal(m.w, in[i].w, 1e-6);
		assert_float_equal(m.r, in[i].r, 1e-4);
		assert_float_equal(verbs_loss_predict(m.w, m.r, 0.05),
			verbs_loss_predict(in[i].w, in[i].r, 0.05), 1e-6);
	}
}

/* Two points, W alone: the minimum of (1 - a W)^2-like terms is sum(ay)/sum(aa), by hand. */
static void w_alone(void **state)
{
	struct verbs_loss_point x[2] = {{0.01, 2}, {0.05, 8}};
	struct verbs_loss_model m;
	double a0 = 0.01 / 0.99 / 2, a1 = 0.05 / 0.95 / 8, y0 = 0.5, y1 = 7.0 / 8;

	(void)state;
	assert_int_equal(verbs_loss_fit(x, 2, &m, NULL), 0);
	assert_float_equal(m.w_alone, (a0 * y0 + a1 * y1) / (a0 * a0 + a1 * a1), 1e-9);
	/* Two unknowns through two points: no residual. */
	assert_float_equal(verbs_loss_predict(m.w, m.r, 0.01), 2, 1e-9);
	assert_float_equal(verbs_loss_predict(m.w, m.r, 0.05), 8, 1e-9);
}

/* Figures of one emulated link that perftest gave: packets sent per packet needed at five rates.
 * Three of them predict the other two. */
static void measured_link(void **state)
{
	struct verbs_loss_point x[3] = {{0.001, 1.12}, {0.005, 1.62}, {0.02, 3.02}};
	struct verbs_loss_model m;

	(void)state;
	assert_int_equal(verbs_loss_fit(x, 3, &m, NULL), 0);
	assert_true(m.w > 95 && m.w < 125);
	assert_true(fabs(verbs_loss_predict(m.w, m.r, 0.01) / 2.11 - 1) < 0.25);
	assert_true(fabs(verbs_loss_predict(m.w, m.r, 0.05) / 7.09 - 1) < 0.25);
}

/* What curves the wrong way holds R at 0, and W is then W alone. */
static void never_negative(void **state)
{
	struct verbs_loss_point x[3] = {{0.001, 1.2}, {0.005, 1.7}, {0.02, 2.4}};
	struct verbs_loss_point faster[2] = {{0.01, 0.9}, {0.02, 0.8}};
	struct verbs_loss_model m;

	(void)state;
	assert_int_equal(verbs_loss_fit(x, 3, &m, NULL), 0);
	assert_true(m.held_at_0);
	assert_float_equal(m.r, 0, 0);
	assert_float_equal(m.w, m.w_alone, 0);
	assert_true(m.w > 0);
	/* Loss that makes things better is noise: 0 and 0. */
	assert_int_equal(verbs_loss_fit(faster, 2, &m, NULL), 0);
	assert_true(m.held_at_0);
	assert_float_equal(m.w, 0, 0);
	assert_float_equal(m.r, 0, 0);
}

static void little_to_fit(void **state)
{
	struct verbs_loss_point x[4] = {{0, 1}, {0.01, NAN}, {0.02, 3}, {0.02, 3.2}};
	struct verbs_loss_model m;
	struct fb_err e = {0};

	(void)state;
	assert_int_equal(verbs_loss_fit(x, 2, &m, &e), -ENODATA);
	assert_int_equal(e.exit, FB_EXIT_UNMEASURED);
	/* One rate, twice: W alone, and R is not told. */
	assert_int_equal(verbs_loss_fit(x, 4, &m, NULL), 0);
	assert_false(m.determined);
	assert_float_equal(m.r, 0, 0);
	assert_float_equal(m.w, m.w_alone, 0);
	assert_true(m.w > 98 && m.w < 108);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formula),
		cmocka_unit_test(known_constants),
		cmocka_unit_test(w_alone),
		cmocka_unit_test(measured_link),
		cmocka_unit_test(never_negative),
		cmocka_unit_test(little_to_fit),
	};
	return cmocka_run_group_tests_name("verbs/loss_fit", tests, NULL, NULL);
}
