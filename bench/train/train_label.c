// SPDX-License-Identifier: Apache-2.0
/*
 * --label KEY=VALUE: what the user knows of a run and the run cannot see (the loss of a link, the
 * name of a cable) stands in its results' params. A label never hides a factor of the run's own.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/train/train_priv.h"

#define MAX_LABELS 8
#define MAX_KEY    24
#define MAX_VALUE  80

static int bad(struct fb_err *e, const char *text, const char *why)
{
	fb_fail_usage(e, "--label %.60s: %s", text, why);
	fb_hint(e, "write KEY=VALUE, KEY of small letters, digits and _, as loss=0.1 or "
		   "cable=copper; commas part labels");
	return -EINVAL;
}

/* A number in its plain decimal form alone: 1e3, 0x10, nan and 007-like names of things are text.
 */
static bool number(const char *text, double *v)
{
	const char *s = text + (*text == '-');
	char *end;
	if (!isdigit((unsigned char)*s) || (s[0] == '0' && isdigit((unsigned char)s[1])))
		return false;
	if (s[strspn(s, "0123456789.")] != '\0')
		return false;
	*v = strtod(text, &end);
	return *end == '\0' && isfinite(*v);
}

/* The length of the key before '='; 0: there is none that may stand. */
static size_t key_of(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
	return n > 0 && n <= MAX_KEY && islower((unsigned char)text[0]) && text[n] == '=' ? n : 0;
}

int train_labels_check(const struct fb_opt_list *l, const json_t *factors, struct fb_err *e)
{
	char key[MAX_KEY + 1];
	if (l->n > MAX_LABELS)
		return fb_fail_usage(e, "--label: at most %d of them", MAX_LABELS);
	for (size_t i = 0; i < l->n; i++) {
		size_t n = key_of(l->v[i]), len = strlen(l->v[i] + n);
		if (n == 0)
			return bad(e, l->v[i], "that is no KEY=VALUE");
		if (len < 2 || len > MAX_VALUE + 1)
			return bad(e, l->v[i],
				len < 2 ? "there is no value" : "the value is too long");
		snprintf(key, sizeof(key), "%.*s", (int)n, l->v[i]);
		if (json_object_get(factors, key))
			return bad(e, l->v[i], "the run has a factor of that name");
		for (size_t k = 0; k < i; k++)
			if (strncmp(l->v[i], l->v[k], n + 1) == 0)
				return bad(e, l->v[i], "that key is given twice");
	}
	return 0;
}

void train_labels_into(const struct fb_opt_list *l, json_t *params)
{
	char key[MAX_KEY + 1];
	double v;
	for (size_t i = 0; i < l->n; i++) {
		size_t n = key_of(l->v[i]);
		snprintf(key, sizeof(key), "%.*s", (int)n, l->v[i]);
		if (number(l->v[i] + n + 1, &v))
			fb_json_set_real(params, key, v, NULL);
		else
			fb_json_set_str(params, key, l->v[i] + n + 1);
	}
}

const char *train_labels_case(const struct fb_opt_list *l, char *buf, size_t len)
{
	size_t at = 0;
	double v;
	buf[0] = '\0';
	for (size_t i = 0; i < l->n && at < len; i++)
		if (number(l->v[i] + key_of(l->v[i]) + 1, &v))
			at += (size_t)snprintf(buf + at, len - at, "/%s", l->v[i]);
	return buf;
}
