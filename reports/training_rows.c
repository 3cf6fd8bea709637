// SPDX-License-Identifier: Apache-2.0
/* The results of training steps as rows: what each is called, and what its time is made of. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/json.h"
#include "reports/training.h"

/* Okabe and Ito's colours, which colour-blind readers tell apart. */
const struct rep_train_kind rep_train_kinds[] = {
	{"compute", "compute", "#0072b2", 0},
	{"all_gather", "all-gather, exposed", "#e69f00", 1},
	{"reduce_scatter", "reduce-scatter, exposed", "#d55e00", 1},
	{"all_reduce", "all-reduce, exposed", "#cc79a7", 1},
	{"norm", "gradient norm, exposed", "#8c564b", 1},
	{"optimizer", "optimizer", "#56b4e9", 0},
	{"storage", "offload, exposed", "#009e73", 0},
	{"idle", "rest", "#c8ccd0", 0},
	{NULL, NULL, NULL, 0},
};

double rep_train_time(const json_t *result, const struct rep_train_kind *k)
{
	const json_t *split = json_object_get(result, "split");
	if (k->exposed)
		split = json_object_get(split, "exposed");
	return fb_json_num(json_object_get(split, k->key), "mean", NAN);
}

static void add(char *buf, size_t len, const char *fmt, ...) FB_PRINTF(3, 4);
static void add(char *buf, size_t len, const char *fmt, ...)
{
	size_t n = strlen(buf);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(buf + n, len - n, fmt, ap);
	va_end(ap);
}

static void make_label(struct rep_train_row *row)
{
	const json_t *p = json_object_get(row->r, "params"), *in, *v;
	size_t i, n = sizeof(row->label);
	int64_t launch = fb_json_int(row->r, "launch", 0);
	row->label[0] = '\0';
	if (*fb_json_str(p, REP_RUN, ""))
		add(row->label, n, "%.60s: ", fb_json_str(p, REP_RUN, ""));
	row->stem = strlen(row->label);
	add(row->label, n, "%.24s %.24s, %lld rank%s, %.8s", fb_json_str(p, "model", "?"),
		fb_json_str(p, "strategy", "?"), (long long)fb_json_int(p, "ranks", 0),
		fb_json_int(p, "ranks", 0) == 1 ? "" : "s", fb_json_str(p, "dtype", "?"));
	if (strcmp(fb_json_str(p, "messages", ""), "mpi") == 0)
		add(row->label, n, ", mpi");
	if (*fb_json_str(p, "link", ""))
		add(row->label, n, ", %.24s", fb_json_str(p, "link", ""));
	if (json_is_false(json_object_get(p, "overlap")))
		add(row->label, n, ", no overlap");
	in = json_object_get(p, "inject");
	json_array_foreach (in, i, v)
		if (json_is_string(v))
			add(row->label, n, ", %.30s", json_string_value(v));
	if (launch > 1)
		add(row->label, n, ", launch %lld", (long long)launch);
}

/* Of runs laid over each other: what is alike but for the run stands together. */
static void by_stem(struct rep_train_row *rows, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct rep_train_row row = rows[i];
		size_t at = i;
		for (size_t k = 0; k < i && row.stem > 0; k++)
			if (strcmp(rows[k].label + rows[k].stem, row.label + row.stem) == 0)
				at = k + 1;
		memmove(&rows[at + 1], &rows[at], (i - at) * sizeof(row));
		rows[at] = row;
	}
}

size_t rep_train_rows(const json_t *doc, struct rep_train_row *rows, size_t *left)
{
	const json_t *r;
	size_t i, n = 0;
	*left = 0;
	json_array_foreach (json_object_get(doc, "results"), i, r) {
		if (strcmp(rep_section_of(r), "Training") != 0 ||
			strcmp(fb_json_str(r, "metric", ""), "step_time") != 0 ||
			!json_is_object(json_object_get(r, "split")))
			continue;
		if (n == REP_TRAIN_ROWS) {
			++*left;
			continue;
		}
		rows[n].r = r;
		make_label(&rows[n++]);
	}
	by_stem(rows, n);
	return n;
}
