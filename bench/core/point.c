// SPDX-License-Identifier: Apache-2.0
/* Lists of points and the validity of a result: see bench.h. */
#include "bench/core/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"

struct fb_point *fb_point_add(struct fb_point_list *l, json_t *params, const char *name_fmt, ...)
{
	if (l->n == l->cap) {
		unsigned cap = l->cap ? 2 * l->cap : 32;
		struct fb_point *v = realloc(l->v, cap * sizeof(*v));
		if (!v) {
			json_decref(params);
			return NULL;
		}
		l->v = v;
		l->cap = cap;
	}
	struct fb_point *p = &l->v[l->n];
	memset(p, 0, sizeof(*p));
	p->index = l->n;
	p->params = params;
	va_list ap;
	va_start(ap, name_fmt);
	vsnprintf(p->name, sizeof(p->name), name_fmt, ap);
	va_end(ap);
	l->n++;
	return p;
}

void fb_points_free(struct fb_point_list *l)
{
	for (unsigned i = 0; i < l->n; i++)
		json_decref(l->v[i].params);
	free(l->v);
	memset(l, 0, sizeof(*l));
}

void fb_validity_add(struct fb_validity *v, enum fb_valid state, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (state > v->state)
		v->state = state;
	if (!v->reasons)
		v->reasons = json_array();
	json_t *holder = json_object();
	fb_json_set_str(holder, "reason", text);
	json_array_append(v->reasons, json_object_get(holder, "reason"));
	json_decref(holder);
}
