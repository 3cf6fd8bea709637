/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many documents as one table: a row for each, a column for each metric, in it the median over that
 * document's launches. What the fleet gate and the history stand on.
 */
#ifndef REPORTS_VALUE_TABLE_H
#define REPORTS_VALUE_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "bench/core/err.h"

struct value_column {
	char name[160], metric[56], unit[16];
	bool lower; /* lower is better */
	double *v;  /* by row; NaN: the document has none */
};

struct value_table {
	char (*row)[128];
	size_t n_rows;
	struct value_column *column;
	size_t n_columns;
};

/** What a document is called: its row's name, by which rows are told apart and sorted. */
typedef void value_row_name(const json_t *doc, const char *path, char *name, size_t len);

/**
 * Every *.json of a folder and the run.json of every folder in it; rows sorted by name.
 * @return 0; -errno; -EINVAL: a file that is no document, or two of one name (exit 2); -ENODATA:
 * none (exit 2); -ENOMEM
 */
int value_table_load(const char *dir, value_row_name *name, struct value_table *t,
	struct fb_err *e) FB_MUST_CHECK;
void value_table_free(struct value_table *t);

#endif
