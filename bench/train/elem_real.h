/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of elem.h that is one text for float and double; elem.h includes it twice. Alone it is
 * elem.h.
 */
#ifndef ELEM_REAL
#include "bench/train/elem.h"
#else

ELEM_FN ELEM_REAL ELEM(sigmoid)(ELEM_REAL x)
{
	return (ELEM_REAL)1 / ((ELEM_REAL)1 + ELEM(exp)(-x));
}

ELEM_FN ELEM_REAL ELEM(silu)(ELEM_REAL x)
{
	return x * ELEM(sigmoid)(x);
}
/** dg of h = silu(g) * u */
ELEM_FN ELEM_REAL ELEM(swiglu_dg)(ELEM_REAL dh, ELEM_REAL g, ELEM_REAL u)
{
	ELEM_REAL s = ELEM(sigmoid)(g);
	return dh * u * s * ((ELEM_REAL)1 + g * ((ELEM_REAL)1 - s));
}
ELEM_FN ELEM_REAL ELEM(swiglu_du)(ELEM_REAL dh, ELEM_REAL g)
{
	return dh * ELEM(silu)(g);
}

/** tanh(x) as 2 sigmoid(2x) - 1: absolute error at most 3 units of the last place of 1. */
ELEM_FN ELEM_REAL ELEM(tanh)(ELEM_REAL x)
{
	return (ELEM_REAL)2 * ELEM(sigmoid)((ELEM_REAL)2 * x) - (ELEM_REAL)1;
}

/* GELU's tanh form is x/2 (1 + tanh(z)), z = sqrt(2/pi) (x + 0.044715 x^3); with 1 + tanh(z) =
 * 2 sigmoid(2z) nothing cancels where x is far below 0. */
ELEM_FN ELEM_REAL ELEM(gelu_2z)(ELEM_REAL x)
{
	return (ELEM_REAL)1.59576912160573071176 * (x + (ELEM_REAL)0.044715 * x * x * x);
}
ELEM_FN ELEM_REAL ELEM(gelu)(ELEM_REAL x)
{
	return x * ELEM(sigmoid)(ELEM(gelu_2z)(x));
}
ELEM_FN ELEM_REAL ELEM(gelu_dx)(ELEM_REAL dy, ELEM_REAL x)
{
	ELEM_REAL s = ELEM(sigmoid)(ELEM(gelu_2z)(x));
	/* Beyond 100 the slope of the sigmoid is 0; x^2 must not overflow there, 0 * inf is NaN. */
	ELEM_REAL c = x > (ELEM_REAL)100 ? (ELEM_REAL)100 : x;
	c = c < (ELEM_REAL)-100 ? (ELEM_REAL)-100 : c;
	ELEM_REAL dz = (ELEM_REAL)1.59576912160573071176 *
		       ((ELEM_REAL)1 + (ELEM_REAL)(3 * 0.044715) * c * c);
	return dy * (s + c * dz * (s * ((ELEM_REAL)1 - s)));
}

/** A norm's output; RMSNorm has mean 0 and b 0. */
ELEM_FN ELEM_REAL ELEM(norm)(ELEM_REAL x, ELEM_REAL mean, ELEM_REAL rstd, ELEM_REAL w, ELEM_REAL b)
{
	return (x - mean) * rstd * w + b;
}
/** Its dx: xhat = (x - mean) * rstd, s0 = mean of w*dy (0 for RMSNorm), s1 = mean of w*dy*xhat. */
ELEM_FN ELEM_REAL ELEM(norm_dx)(
	ELEM_REAL dy, ELEM_REAL xhat, ELEM_REAL w, ELEM_REAL rstd, ELEM_REAL s0, ELEM_REAL s1)
{
	return (w * dy - s0 - xhat * s1) * rstd;
}

/** First half of a rotated pair; the second is rope(b, -a, ...). */
ELEM_FN ELEM_REAL ELEM(rope)(ELEM_REAL a, ELEM_REAL b, ELEM_REAL cosine, ELEM_REAL sine)
{
	return a * cosine - b * sine;
}

/** dS of attention: p * (dp - D) * scale */
ELEM_FN ELEM_REAL ELEM(attn_ds)(ELEM_REAL p, ELEM_REAL dp, ELEM_REAL D, ELEM_REAL scale)
{
	return p * (dp - D) * scale;
}

/** AdamW's constants of a step: rates and bias corrections 1 / (1 - beta^t). */
struct ELEM(adam) {
	ELEM_REAL lr, beta1, beta2, rest1, rest2, fix1, fix2, eps, decay, grad_scale;
};
ELEM_FN void ELEM(adamw)(
	const struct ELEM(adam) * a, ELEM_REAL grad, ELEM_REAL *p, ELEM_REAL *m, ELEM_REAL *v)
{
	ELEM_REAL g = grad * a->grad_scale;
	ELEM_REAL m1 = a->beta1 * *m + a->rest1 * g;
	ELEM_REAL v1 = a->beta2 * *v + a->rest2 * (g * g);
	ELEM_REAL step = m1 * a->fix1 / (ELEM_SQRT(v1 * a->fix2) + a->eps);
	*m = m1;
	*v = v1;
	*p = *p - a->lr * (step + a->decay * *p);
}

#endif
