/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the claims share: a row with its columns read and checked, and the pieces of
 * arithmetic. In a row NAN and NULL mean "the column is empty"; what is not empty is within sane
 * limits, so that no rule has to look again.
 */
#ifndef PREDICT_CLAIMS_PRIV_H
#define PREDICT_CLAIMS_PRIV_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/core/err.h"
#include "bench/core/strbuf.h"
#include "bench/predict/claims.h"
#include "bench/train/model.h"

/* ---- claims_csv.c ---------------------------------------------------------------------------- */

#define CSV_MAX_FIELDS 64
#define CSV_MAX_RECORD 16384

/* Comma-separated values as RFC 4180 has them; lines that begin with '#' are comments. */
struct csv {
	const char *name; /* in messages */
	const char *text;
	size_t len, pos;
	unsigned line; /* of pos, from 1 */
};
struct csv_record {
	unsigned line; /* where it begins */
	size_t n;
	const char *field[CSV_MAX_FIELDS]; /* NUL-terminated, in store */
	char store[CSV_MAX_RECORD + CSV_MAX_FIELDS];
};
/* @return 1: a record; 0: the end; -EINVAL: a record that cannot be read, with line and column in
 * *e; the next call goes on with the line after the one it began on */
int csv_next(struct csv *c, struct csv_record *r, struct fb_err *e) FB_MUST_CHECK;
/* A foreign text for a message: at most 40 bytes, what does not print as \xNN. @return buf */
const char *csv_shown(const char *s, char *buf, size_t len);

/* ---- claims_subject.c: who is meant ---------------------------------------------------------- */

enum claim_dtype {
	DTYPE_NONE,
	DTYPE_F32,
	DTYPE_TF32,
	DTYPE_F16,
	DTYPE_BF16,
	DTYPE_F8,
};

/* A GPU by its data sheet. Rates in FLOP/s, dense. */
struct claim_gpu {
	const char *name;   /* "H100-SXM" */
	const char *peak;   /* its row in bench/train/peaks.h; NULL: none */
	double dense16;     /* bf16 and fp16; 0: of peaks.h */
	double dense8;      /* fp8; 0: it has none */
	double dense32;     /* fp32 where it has no tf32; 0: it has */
	double mem_gb[2];   /* the sizes it is sold with; the second may be 0 */
	double mem_rate[2]; /* GB/s of each, read and write together; the second 0: as the first */
	double nvlink_gbps; /* GB/s, all links, both directions together; 0: none */
	const char *link;   /* what that link is */
};
/* A GPU as people write it: "H100", "NVIDIA H100 80GB HBM3", "a100-sxm4-80gb". *mem_gb: the size
 * that the name itself states, or NAN. @return NULL: not known */
const struct claim_gpu *claim_gpu_find(const char *name, double *mem_gb);
/* Names for messages: "H100-SXM, H100-PCIe, ...". */
void claim_gpu_list(struct fb_strbuf *b);
/* Dense peak of tensor cores for that type; for DTYPE_NONE that of 16 bits. */
double claim_peak(const struct claim_gpu *g, enum claim_dtype d);

/* A model as people write it: the presets and published shapes. false: not known; *nearest gets
 * the closest name, or NULL. */
bool claim_model_find(const char *name, struct model *m, const char **nearest);

enum claim_scheme {
	SCHEME_NONE,
	SCHEME_DDP,
	SCHEME_ZERO1,
	SCHEME_ZERO2,
	SCHEME_ZERO3,
	SCHEME_SHARD_GRAD_OP,
	SCHEME_HYBRID,
	SCHEME_OFFLOAD,
	SCHEME_MEGATRON,
};
extern const char *const claim_scheme_words[];
/* *f: F of hybrid:F, or NAN. @return false: not known; *nearest as above */
bool claim_scheme_find(const char *text, enum claim_scheme *s, double *f, const char **nearest);

/* ---- claims_row.c: a row --------------------------------------------------------------------- */

enum claim_col {
	COL_ID,
	COL_KIND,
	COL_MODEL,
	COL_PARAMS,
	COL_GPU,
	COL_N_GPUS,
	COL_GPUS_PER_NODE,
	COL_MEM_GB,
	COL_SEQ_LEN,
	COL_TOKENS_PER_GPU,
	COL_DTYPE,
	COL_STRATEGY,
	COL_TP,
	COL_PP,
	COL_DP,
	COL_NIC,
	COL_QUANTITY,
	COL_VALUE,
	COL_UNIT,
	COL_SOURCE,
	COL_QUOTE,
	COL_COUNT
};
extern const char *const claim_col_names[];

enum claim_sense { SENSE_IS, SENSE_AT_MOST, SENSE_AT_LEAST };

struct claim {
	unsigned line;
	char *text[COL_COUNT]; /* as written; "" when empty */
	/* the subject */
	bool has_model;
	struct model model;
	double params; /* N; of the model, or the column's */
	const struct claim_gpu *gpu;
	double n_gpus, gpus_per_node, mem_gb, seq, tokens, tp, pp, dp, nic_gbps;
	enum claim_dtype work, reduce;
	enum claim_scheme scheme;
	double shard; /* F of hybrid:F */
	/* what is said of it, in the quantity's base unit */
	const struct claim_quantity *q;
	const char *base; /* of a comparison: what stands after "_vs_" */
	double arg;       /* of mfu_effect_of_1.6us: 1.6 */
	double value;     /* NAN: empty; of "55->20" the first */
	double to;        /* of "55->20" the second */
	bool yes;         /* of "fits" */
	bool unit_empty;
	enum claim_sense sense;
	/* the judgement */
	enum claim_verdict verdict;
	double factor; /* percent; NAN: none */
	struct fb_strbuf why;
};

struct claims {
	struct claim *row;
	size_t n, room;
	struct fb_err *error;
	size_t nerrors, error_room;
	bool failed; /* memory ran out on the way */
};

struct claim_unit {
	const char *name; /* NULL ends a list */
	double scale;     /* to the base unit */
};
enum claim_form { FORM_NUMBER, FORM_BOOL, FORM_DROP };

/* What can be claimed. */
struct claim_quantity {
	const char *name; /* ends with '_' when a comparison or an argument follows */
	const char *kind;
	enum claim_form form;
	const struct claim_unit *units; /* the first is the base */
	double min, max;                /* of the value in the base unit: outside it is absurd */
	void (*rule)(const struct claims *all, struct claim *c);
};
/* claims_rules.c */
extern const struct claim_quantity claim_quantities[]; /* ends with name NULL */

/* Where each known column stands in this file's records; -1: the file has it not. */
struct claim_header {
	int at[COL_COUNT];
	size_t n;
};
int claim_header_read(const struct csv *csv, const struct csv_record *r, struct claim_header *h,
	struct fb_err *e) FB_MUST_CHECK;
/* @return 0; -EINVAL with line, column, value and remedy (exit 2); -ENOMEM. The row is freed on
 * error. */
int claim_row_read(const char *file, const struct claim_header *h, const struct csv_record *r,
	struct claim *c, struct fb_err *e) FB_MUST_CHECK;
void claim_row_free(struct claim *c);

/* ---- claims_rules.c and its siblings: judgements --------------------------------------------- */

/* A sentence more to `why`. */
void claim_say(struct claim *c, const char *fmt, ...) FB_PRINTF(2, 3);
void claim_set(struct claim *c, enum claim_verdict v, double factor_pct);
/* Depends, for that column is empty; needed: what it is needed for. */
void claim_empty(struct claim *c, enum claim_col col, const char *needed);

/* So many significant digits below 1000, whole with commas above: "0.384", "54.2", "3,420". */
const char *claim_num(char *buf, size_t len, int digits, double v);
#define NUM(v) claim_num((char[40]){0}, 40, 3, v)
#define GB(v)  claim_num((char[40]){0}, 40, 4, v)

/* Is what is claimed met by v, within the share `slack`? By the sense of the claim. */
bool claim_met(const struct claim *c, double v, double slack);

void claim_rule_tokens(const struct claims *all, struct claim *c);
void claim_rule_tflops(const struct claims *all, struct claim *c);
void claim_rule_mfu(const struct claims *all, struct claim *c);

/* claims_memory.c: bytes of model states on one GPU per parameter, as Adam with mixed precision
 * keeps them. least: with everything sharded that the scheme can shard; most: with what it may
 * leave whole. Source: Rajbhandari et al., ZeRO (SC20), section 3; Megatron-LM's distributed
 * optimizer. missing: the column without which it is not known, or COL_COUNT. */
struct claim_states {
	double least, most;
	enum claim_col missing;
};
struct claim_states claim_states(const struct claim *c);
/* The least bytes per parameter on one GPU, whatever an empty tp, pp or dp of Megatron's would say.
 * NAN: not known. */
double claim_states_floor(const struct claim *c);
/* GB of one GPU: the column, the GPU's name, or its data sheet when all sizes are one. NAN: not
 * known. */
double claim_gpu_memory(const struct claim *c);
/* Ranks over which states are sharded: dp, or what tp and pp leave of n_gpus. NAN: not known. */
double claim_data_ranks(const struct claim *c);
/* Do the states alone overfill the GPU? The factor in percent; 0: no, or not known. */
double claim_overfull(const struct claim *c);
void claim_rule_fits(const struct claims *all, struct claim *c);
void claim_rule_state_reduction(const struct claims *all, struct claim *c);
void claim_rule_state_memory(const struct claims *all, struct claim *c);

/* claims_traffic.c */
void claim_rule_inter_node(const struct claims *all, struct claim *c);
void claim_rule_communication(const struct claims *all, struct claim *c);
/* Bytes per parameter and micro-batch that the scheme must send between nodes at the least, with 2
 * bytes an element; 0: none must be sent in every micro-batch. */
double claim_wire_bytes(enum claim_scheme s);
/* The same of a step of one micro-batch; of hybrid what crosses between replicas; NAN: it is no
 * matter of parameters alone. */
double claim_step_bytes(enum claim_scheme s);

/* claims_network.c */
void claim_rule_latency(const struct claims *all, struct claim *c);
void claim_rule_latency_effect(const struct claims *all, struct claim *c);
void claim_rule_mfu_drop(const struct claims *all, struct claim *c);
void claim_rule_gpu_bandwidth(const struct claims *all, struct claim *c);
void claim_rule_gpu_bandwidth_one_way(const struct claims *all, struct claim *c);
void claim_rule_memory_bandwidth(const struct claims *all, struct claim *c);
void claim_rule_nic(const struct claims *all, struct claim *c);
void claim_rule_rate(const struct claims *all, struct claim *c);

#endif
