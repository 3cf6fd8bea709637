// SPDX-License-Identifier: Apache-2.0
/* See value_table.h. */
#include "reports/value_table.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/core/stats.h"
#include "bench/core/sysroot.h"
#include "reports/compare_priv.h"

#define MAX_ROWS 20000

static int out_of_memory(struct fb_err *e)
{
	return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "out of memory");
}

static int new_row(struct value_table *t, const char *name, const char *path, struct fb_err *e)
{
	for (size_t i = 0; i < t->n_rows; i++)
		if (strcmp(t->row[i], name) == 0) {
			fb_fail_usage(e, "%s: there is another document of %s", path, name);
			fb_hint(e, "each may stand there once");
			return -EINVAL;
		}
	if (t->n_rows == MAX_ROWS)
		return fb_fail_usage(e, "more than %d documents", MAX_ROWS);
	char(*v)[128] = realloc(t->row, (t->n_rows + 1) * sizeof(*v));
	if (!v)
		return out_of_memory(e);
	t->row = v;
	snprintf(v[t->n_rows++], sizeof(*v), "%s", name);
	/* Every column grows with the rows; what the document has is set next. */
	for (size_t i = 0; i < t->n_columns; i++) {
		double *c = realloc(t->column[i].v, t->n_rows * sizeof(*c));
		if (!c)
			return out_of_memory(e);
		c[t->n_rows - 1] = NAN;
		t->column[i].v = c;
	}
	return 0;
}

static struct value_column *column_of(struct value_table *t, const struct cmp_metric *m)
{
	for (size_t i = 0; i < t->n_columns; i++)
		if (strcmp(t->column[i].metric, m->metric) == 0 &&
			strcmp(t->column[i].name, m->name) == 0)
			return &t->column[i];
	double *v = malloc(t->n_rows * sizeof(*v));
	struct value_column *c = realloc(t->column, (t->n_columns + 1) * sizeof(*c));
	if (c)
		t->column = c;
	if (!c || !v) {
		free(v);
		return NULL;
	}
	for (size_t i = 0; i < t->n_rows; i++)
		v[i] = NAN;
	c = &c[t->n_columns++];
	*c = (struct value_column){.lower = m->lower, .v = v};
	snprintf(c->name, sizeof(c->name), "%s", m->name);
	snprintf(c->metric, sizeof(c->metric), "%s", m->metric);
	snprintf(c->unit, sizeof(c->unit), "%s", m->unit);
	return c;
}

/* `compare` knows how a document becomes values. */
static int add_document(
	struct value_table *t, const char *path, value_row_name *name, struct fb_err *e)
{
	struct cmp c = {0};
	char row[128];
	int rc = cmp_add(&c, path, false, e);
	if (rc == 0) {
		name(c.base, path, row, sizeof(row));
		rc = new_row(t, row, path, e);
	}
	for (size_t i = 0; i < c.n && rc == 0; i++) {
		struct cmp_side *s = &c.v[i].base;
		/* What was marked invalid was not measured. */
		if (s->n == 0 || s->invalid)
			continue;
		struct value_column *column = column_of(t, &c.v[i]);
		if (!column) {
			rc = out_of_memory(e);
			break;
		}
		fb_sort(s->v, s->n);
		column->v[t->n_rows - 1] = fb_median_sorted(s->v, s->n);
	}
	cmp_free(&c);
	return rc;
}

static bool is_document(const char *dir, const char *name, char *path, size_t len)
{
	struct stat st;
	size_t n = strlen(name);
	char run[4200];
	if (snprintf(path, len, "%s/%s", dir, name) >= (int)len || stat(path, &st) != 0)
		return false;
	if (!S_ISDIR(st.st_mode))
		return S_ISREG(st.st_mode) && n > 5 && strcmp(name + n - 5, ".json") == 0;
	return snprintf(run, sizeof(run), "%s/run.json", path) < (int)sizeof(run) &&
	       stat(run, &st) == 0;
}

struct ordered {
	const char *name;
	size_t from;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct ordered *)a)->name, ((const struct ordered *)b)->name);
}

/* Rows and every column in the order of the rows' names. */
static int sort_rows(struct value_table *t, struct fb_err *e)
{
	struct ordered *order = calloc(t->n_rows + 1, sizeof(*order));
	char(*row)[128] = malloc((t->n_rows + 1) * sizeof(*row));
	double *v = malloc((t->n_rows + 1) * sizeof(*v));
	int rc = 0;
	if (!order || !row || !v) {
		rc = out_of_memory(e);
		goto free_all;
	}
	for (size_t i = 0; i < t->n_rows; i++)
		order[i] = (struct ordered){t->row[i], i};
	qsort(order, t->n_rows, sizeof(*order), by_name);
	for (size_t c = 0; c < t->n_columns; c++) {
		for (size_t i = 0; i < t->n_rows; i++)
			v[i] = t->column[c].v[order[i].from];
		memcpy(t->column[c].v, v, t->n_rows * sizeof(*v));
	}
	for (size_t i = 0; i < t->n_rows; i++)
		memcpy(row[i], order[i].name, sizeof(*row));
	memcpy(t->row, row, t->n_rows * sizeof(*row));
free_all:
	free(order);
	free(row);
	free(v);
	return rc;
}

int value_table_load(const char *dir, value_row_name *name, struct value_table *t, struct fb_err *e)
{
	struct fb_sysroot live = {0};
	char **names = NULL, path[4096];
	memset(t, 0, sizeof(*t));
	int n = fb_sysroot_list(&live, dir, &names), rc = 0;
	if (n < 0)
		return fb_fail(
			e, FB_EXIT_USAGE, -n, "cannot read the folder %s: %s", dir, strerror(-n));
	for (int i = 0; i < n && rc == 0; i++)
		if (is_document(dir, names[i], path, sizeof(path)))
			rc = add_document(t, path, name, e);
	fb_sysroot_names_free(names);
	if (rc == 0 && t->n_rows == 0) {
		rc = fb_fail(e, FB_EXIT_USAGE, ENODATA, "%s holds no result document", dir);
		fb_hint(e, "*.json documents, or run directories");
	}
	if (rc == 0)
		rc = sort_rows(t, e);
	if (rc != 0)
		value_table_free(t);
	return rc;
}

void value_table_free(struct value_table *t)
{
	for (size_t i = 0; i < t->n_columns; i++)
		free(t->column[i].v);
	free(t->column);
	free(t->row);
	memset(t, 0, sizeof(*t));
}
