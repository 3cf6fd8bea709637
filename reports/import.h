/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the readers of other tools' output share. A file is one launch; its lines become results
 * marked "imported", each with what that tool does not tell. A reader fails with file and line when
 * the text is not what it claims to be, and reads nothing that it does not know.
 */
#ifndef REPORTS_IMPORT_H
#define REPORTS_IMPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/err.h"

/** Facts of the model and machine that training logs leave out; 0: not given. */
struct import_model {
	double params, peak; /**< parameters; FLOP/s of one GPU by its data sheet */
	uint64_t layers, hidden, seq, ranks;
};

struct import {
	const char *tool, *file;
	char *at;        /**< rest of the text, written to */
	unsigned line;   /**< of the line that import_line() gave last */
	bool inside;     /**< import_line() stands within a line, behind a bare "\r" */
	char from[48];   /**< whose line it is, where a launcher says: "[rank0]:", "3:"; else "" */
	uint64_t launch; /**< from 1 */
	const char
		*test; /**< --test: which collective, where the output does not say; may be NULL */
	const struct import_model *model;
	const char *const *unknown; /**< what the tool does not tell; NULL-terminated */
	json_t *results;            /**< array */
	json_t *seen;               /**< the cases and metrics of this file; import_add()'s own */
	struct fb_err *e;
};

struct import_value {
	const char *name;   /**< of the case, behind the tool's name: "write_bw/RC/65536" */
	const char *metric; /**< "bandwidth", "latency_p99" */
	const char *unit;   /**< "ns", "bytes/s", "1/s", "share" */
	bool lower;         /**< lower is better */
	double value;
	double samples; /**< iterations behind it; NaN: not told */
	json_t *params; /**< borrowed; copied into the result */
	const char *definition;
};

/** The next line without its end, a terminal's colours and what stands before it (mpirun's
 * "[1,0]<stdout>:", srun's "0: ", torchrun's "[rank0]:", pdsh's "node1: ", a log's time); NULL
 * behind the last. */
char *import_line(struct import *im);
/** Fill *e: "FILE:LINE: why" (exit 2). @return -EINVAL */
int import_bad(struct import *im, const char *fmt, ...) FB_PRINTF(2, 3);
/** A value that is not finite becomes null, invalid with that reason; one below 0 of a time or rate
 * is invalid. @return 0 or -ENOMEM; a second value of the same case and metric in this file is
 * -EINVAL */
int import_add(struct import *im, const struct import_value *v);

/** Fields of a line at blanks, in place; at most max. @return their number */
size_t import_fields(char *line, char **field, size_t max);
/** A whole field as a number: false when it is not one. "inf" and "nan" are none. */
bool import_number(const char *text, double *v);
/** The same, where tools print "nan" and "inf" for want of a figure: true with NaN for both. */
bool import_figure(const char *text, double *v);
/** Its whole part, at most 9e15 to either side; 0 of NaN: other tools' texts hold any figure. */
int64_t import_whole(double v);

/**
 * The results of one text as members of `results`.
 * @param text NUL-terminated, written to
 * @param test see struct import; may be NULL
 * @return 0; -EINVAL: an unknown tool, not its output, no result in it (exit 2); -EBADMSG: the tool
 * found wrong data (exit 4); -ENOMEM
 */
int import_text(const char *tool, const char *file, char *text, const char *test,
	const struct import_model *model, uint64_t launch, json_t *results,
	struct fb_err *e) FB_MUST_CHECK;

/** The readers. @return 0, or -errno with *im->e */
int import_perftest(struct import *im);
int import_nccl_tests(struct import *im);
int import_osu(struct import *im);
int import_torchtitan(struct import *im);
int import_megatron(struct import *im);

/** What each tool does not tell. NULL-terminated. */
extern const char *const import_perftest_unknown[],
	*const import_nccl_unknown[], *const import_osu_unknown[], *const import_training_unknown[];

#endif
