/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training runs in the report: where a step's time went, MFU, memory and loss by run, and the tasks
 * of a step as a picture. Drawn from the results that `train` writes; nothing of them is believed.
 */
#ifndef REPORTS_TRAINING_H
#define REPORTS_TRAINING_H

#include "reports/report_priv.h"

struct rep_training {
	struct rep_figure *v; /* id, title and svg only */
	const char **caption;
	size_t n;
};

/* Writes and draws dir/training-*. @return 0, -ENOMEM, -errno of the files; a picture that gnuplot
 * cannot draw leaves its reason in `why`. */
int rep_training_make(struct rep_training *t, const json_t *doc, const char *dir, char *why,
	size_t len, struct fb_err *e) FB_MUST_CHECK;
void rep_training_free(struct rep_training *t);
/* The section's own part, after its heading. */
void rep_html_training(struct fb_strbuf *b, const struct rep_page *p);

/* training_rows.c: the results of steps, in the document's order. */
struct rep_train_row {
	const json_t *r; /* the step_time result */
	char label[180]; /* "tiny fsdp, 2 ranks, fp32" as far as rows differ; of several runs "RUN:
			    ..." */
	size_t stem;     /* where the label goes on behind the run's name */
};
#define REP_TRAIN_ROWS 24
/* @return how many of at most REP_TRAIN_ROWS; `left` is how many more there are */
size_t rep_train_rows(const json_t *doc, struct rep_train_row *rows, size_t *left);

/* Kinds of a step's time: their key, their colour, whether they stand in split.exposed. */
struct rep_train_kind {
	const char *key, *name, *colour;
	int exposed;
};
extern const struct rep_train_kind rep_train_kinds[]; /* ends with key NULL */
/* Mean over ranks of a kind, ns; NAN: absent. */
double rep_train_time(const json_t *result, const struct rep_train_kind *k);

#endif
