// SPDX-License-Identifier: Apache-2.0
/*
 * The fit of the loss model. It is linear in W and R, so that the normal equations of two unknowns
 * are all it takes; neither may be negative, and with two unknowns the best such pair is one of
 * four: free, one of them 0, both 0.
 */
#include "verbs/loss_fit.h"

#include <errno.h>
#include <math.h>

double verbs_loss_predict(double w, double r, double p)
{
	return 1 + w * p / (1 - p) + r * p * p;
}

/* Sums over the points: a and b are what W and R are multiplied by, y what they have to make, all
 * divided by the measured value, because errors are relative ones. */
struct sums {
	double aa, ab, bb, ay, by, yy;
	unsigned n, rates;
};

static bool says_something(const struct verbs_loss_point *x)
{
	return x->p > 0 && x->p < 1 && isfinite(x->inverse) && x->inverse > 0;
}

static void add_up(const struct verbs_loss_point *x, unsigned n, struct sums *s)
{
	*s = (struct sums){0};
	for (unsigned i = 0; i < n; i++) {
		double a, b, y;
		bool seen = false;
		if (!says_something(&x[i]))
			continue;
		a = x[i].p / (1 - x[i].p) / x[i].inverse;
		b = x[i].p * x[i].p / x[i].inverse;
		y = (x[i].inverse - 1) / x[i].inverse;
		s->aa += a * a;
		s->ab += a * b;
		s->bb += b * b;
		s->ay += a * y;
		s->by += b * y;
		s->yy += y * y;
		s->n++;
		for (unsigned k = 0; k < i; k++)
			seen = seen || (says_something(&x[k]) && x[k].p == x[i].p);
		s->rates += !seen;
	}
}

static double squares(const struct sums *s, double w, double r)
{
	return s->yy - 2 * w * s->ay - 2 * r * s->by + w * w * s->aa + 2 * w * r * s->ab +
	       r * r * s->bb;
}

int verbs_loss_fit(
	const struct verbs_loss_point *x, unsigned n, struct verbs_loss_model *m, struct fb_err *e)
{
	struct sums s;
	double det, w, r, r_alone;

	*m = (struct verbs_loss_model){0};
	add_up(x, n, &s);
	if (s.n == 0)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENODATA,
			"no rate with loss was measured, so that there is nothing to fit a model to");
	m->w_alone = fmax(s.ay / s.aa, 0);
	m->determined = s.rates >= 2;
	if (!m->determined) {
		m->w = m->w_alone;
		m->held_at_0 = s.ay < 0;
		return 0;
	}
	det = s.aa * s.bb - s.ab * s.ab;
	w = (s.ay * s.bb - s.by * s.ab) / det;
	r = (s.by * s.aa - s.ay * s.ab) / det;
	if (isfinite(w) && isfinite(r) && w >= 0 && r >= 0) {
		m->w = w;
		m->r = r;
		return 0;
	}
	m->held_at_0 = true;
	r_alone = fmax(s.by / s.bb, 0);
	if (squares(&s, m->w_alone, 0) <= squares(&s, 0, r_alone))
		m->w = m->w_alone;
	else
		m->r = r_alone;
	return 0;
}
