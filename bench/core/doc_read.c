// SPDX-License-Identifier: Apache-2.0
/*
 * The reader of result documents. The shape is data: the tables below say the same as
 * reports/schema.json, and doc_read_test.c proves that they agree, key by key. What a schema cannot
 * say (histograms that add up, intervals in order) is checked after.
 *
 * Input is not trusted: its size is bounded, and nothing is believed before it is checked.
 */
#include "bench/core/result.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/hist.h"
#include "bench/core/json.h"

#define DOC_MAX_BYTES (64u << 20)

enum { T_STR = 1, T_INT = 2, T_REAL = 4, T_BOOL = 8, T_NULL = 16, T_OBJ = 32, T_ARR = 64 };
#define T_NUM (T_INT | T_REAL)
#define T_ANY (T_STR | T_NUM | T_BOOL | T_NULL | T_OBJ | T_ARR)

/** One key of an object. */
struct shape {
	const char *key; /* NULL ends the list */
	unsigned types;
	bool optional;
	bool natural;                  /* an integer here is at least 0 */
	const char *const *words;      /* T_STR: one of these; an empty list: not empty */
	const struct shape *keys;      /* T_OBJ: its keys */
	unsigned items;                /* T_ARR: types of its elements */
	const struct shape *item_keys; /* T_ARR of T_OBJ: their keys */
};

static const char *const not_empty[] = {NULL};
static const char *const schema_words[] = {FB_SCHEMA, NULL};
static const char *const outcome_words[] = {"complete", "failed", "interrupted", NULL};
static const char *const where_words[] = {"hardware", "lab", "cpu", "predicted", "imported", NULL};
static const char *const better_words[] = {"lower", "higher", NULL};
static const char *const load_words[] = {"closed", "open", NULL};
static const char *const valid_words[] = {"valid", "suspect", "invalid", NULL};
static const char *const state_words[] = {"pass", "warn", "fail", "info", "skip", "error", NULL};
static const char *const host_state_words[] = {
	"measured", "failed", "unreachable", "not run", NULL};
static const char *const family_words[] = {"llama", "gpt2", NULL};
static const char *const headline_words[] = {"palm", NULL};
static const char *const pairs_verdict_words[] = {
	"fine", "unjudged", "incomplete", "rejected", NULL};
static const char *const claim_words[] = {"possible", "impossible", "depends", "unsourced", NULL};
static const char *const loss_signal_words[] = {"packets", "goodput", "none", NULL};
static const char *const loss_direction_words[] = {"to-server", "to-client", NULL};
static const char *const evidence_words[] = {"hardware", "recorded", "constructed", NULL};

static const struct shape tool_keys[] = {
	{.key = "name", .types = T_STR, .words = not_empty},
	{.key = "version", .types = T_STR, .words = not_empty},
	{.key = "git", .types = T_STR},
	{.key = "compiler", .types = T_STR},
	{.key = "cflags", .types = T_STR},
	{.key = "features", .types = T_OBJ},
	{.key = NULL},
};
static const struct shape run_keys[] = {
	{.key = "id", .types = T_STR, .words = not_empty},
	{.key = "command", .types = T_STR},
	{.key = "argv", .types = T_ARR, .items = T_STR},
	{.key = "started", .types = T_STR, .words = not_empty},
	{.key = "ended", .types = T_STR, .words = not_empty},
	{.key = "outcome", .types = T_STR, .words = outcome_words},
	{.key = "exit", .types = T_INT, .natural = true},
	{.key = "seed", .types = T_INT},
	{.key = "job", .types = T_STR | T_NULL},
	{.key = "launch", .types = T_INT, .natural = true},
	{.key = NULL},
};
static const struct shape host_keys[] = {
	{.key = "name", .types = T_STR, .words = not_empty},
	{.key = "kernel", .types = T_OBJ, .optional = true},
	{.key = "cpu", .types = T_OBJ, .optional = true},
	{.key = "numa", .types = T_ARR, .optional = true, .items = T_OBJ},
	{.key = "memory", .types = T_OBJ, .optional = true},
	{.key = "rdma", .types = T_ARR, .optional = true, .items = T_OBJ},
	{.key = "nics", .types = T_ARR, .optional = true, .items = T_OBJ},
	{.key = "gpus", .types = T_ARR, .optional = true, .items = T_OBJ},
	{.key = "env", .types = T_OBJ, .optional = true},
	{.key = NULL},
};
static const struct shape system_keys[] = {
	{.key = "hosts", .types = T_ARR, .items = T_OBJ, .item_keys = host_keys},
	{.key = NULL},
};
static const struct shape peer_keys[] = {
	{.key = "rank", .types = T_INT, .natural = true},
	{.key = NULL},
};
static const struct shape config_keys[] = {
	{.key = "requested", .types = T_OBJ},
	{.key = "effective", .types = T_OBJ},
	{.key = NULL},
};
static const struct shape ci_keys[] = {
	{.key = "lo", .types = T_NUM},
	{.key = "hi", .types = T_NUM},
	{.key = "level", .types = T_NUM},
	{.key = NULL},
};
static const struct shape bound_keys[] = {
	{.key = "value", .types = T_NUM},
	{.key = "why", .types = T_STR, .words = not_empty},
	{.key = NULL},
};
static const struct shape rank_keys[] = {
	{.key = "rank", .types = T_INT, .natural = true},
	{.key = NULL},
};
static const struct shape counters_keys[] = {
	{.key = "before", .types = T_OBJ},
	{.key = "after", .types = T_OBJ},
	{.key = "delta", .types = T_OBJ},
	{.key = "classes", .types = T_OBJ, .optional = true},
	{.key = "classes_by", .types = T_OBJ, .optional = true},
	{.key = "classes_note", .types = T_STR, .optional = true},
	{.key = NULL},
};
static const struct shape validity_keys[] = {
	{.key = "state", .types = T_STR, .words = valid_words},
	{.key = "reasons", .types = T_ARR, .items = T_STR},
	{.key = NULL},
};
/* Present and of these types; fb_hist_from_json() judges the rest. */
static const struct shape hist_keys[] = {
	{.key = "unit", .types = T_STR},
	{.key = "sub_bits", .types = T_INT},
	{.key = "n", .types = T_INT, .natural = true},
	{.key = "overflow", .types = T_INT, .natural = true},
	{.key = "min", .types = T_NUM | T_NULL},
	{.key = "max", .types = T_NUM | T_NULL},
	{.key = "sum", .types = T_NUM},
	{.key = "stddev", .types = T_NUM | T_NULL},
	{.key = "buckets", .types = T_ARR, .items = T_ARR},
	{.key = NULL},
};
static const struct shape stats_ci_keys[] = {
	{.key = "level", .types = T_NUM},
	{.key = NULL},
};
static const struct shape stats_keys[] = {
	{.key = "ci", .types = T_OBJ, .optional = true, .keys = stats_ci_keys},
	{.key = NULL},
};
static const struct shape interval_keys[] = {
	{.key = "t_ns", .types = T_INT, .natural = true},
	{.key = "bytes", .types = T_INT, .natural = true},
	{.key = NULL},
};
static const struct shape worst_keys[] = {
	{.key = "value", .types = T_NUM},
	{.key = "window_ns", .types = T_INT, .natural = true},
	{.key = "t_ns", .types = T_INT, .natural = true},
	{.key = NULL},
};
static const struct shape rate_keys[] = {
	{.key = "requested", .types = T_NUM},
	{.key = "achieved", .types = T_NUM | T_NULL},
	{.key = "share", .types = T_NUM | T_NULL},
	{.key = NULL},
};
/* ---- of a training step ---- */
static const struct shape by_convention_keys[] = {
	{.key = "6n", .types = T_NUM | T_NULL},
	{.key = "palm", .types = T_NUM | T_NULL},
	{.key = "causal", .types = T_NUM | T_NULL},
	{.key = "flops", .types = T_NUM | T_NULL, .optional = true},
	{.key = NULL},
};
static const struct shape model_keys[] = {
	{.key = "name", .types = T_STR, .words = not_empty},
	{.key = "family", .types = T_STR, .words = family_words},
	{.key = "params", .types = T_INT, .natural = true},
	{.key = "matmul_params", .types = T_INT, .natural = true},
	{.key = "flops_per_token", .types = T_OBJ, .keys = by_convention_keys},
	{.key = NULL},
};
static const struct shape peak_keys[] = {
	{.key = "flops", .types = T_NUM | T_NULL},
	{.key = "source", .types = T_STR, .optional = true},
	{.key = NULL},
};
static const struct shape mfu_keys[] = {
	{.key = "headline", .types = T_STR, .words = headline_words},
	{.key = "value", .types = T_NUM | T_NULL},
	{.key = "peak", .types = T_OBJ, .keys = peak_keys},
	{.key = "data_sheet", .types = T_OBJ, .keys = by_convention_keys},
	{.key = "measured", .types = T_OBJ, .keys = by_convention_keys},
	{.key = NULL},
};
static const struct shape hfu_keys[] = {
	{.key = "data_sheet", .types = T_NUM | T_NULL},
	{.key = "measured", .types = T_NUM | T_NULL},
	{.key = "flops_per_s", .types = T_NUM | T_NULL},
	{.key = NULL},
};
static const struct shape split_item_keys[] = {
	{.key = "mean", .types = T_NUM | T_NULL},
	{.key = "rank", .types = T_INT, .natural = true},
	{.key = "median", .types = T_NUM | T_NULL},
	{.key = "lo", .types = T_NUM, .optional = true},
	{.key = "hi", .types = T_NUM, .optional = true},
	{.key = NULL},
};
static const struct shape split_keys[] = {
	{.key = "step", .types = T_OBJ, .keys = split_item_keys},
	{.key = "compute", .types = T_OBJ, .keys = split_item_keys},
	{.key = "exposed", .types = T_OBJ},
	{.key = "optimizer", .types = T_OBJ, .keys = split_item_keys},
	{.key = "storage", .types = T_OBJ, .keys = split_item_keys},
	{.key = "idle", .types = T_OBJ, .keys = split_item_keys},
	{.key = "per_rank", .types = T_ARR, .items = T_OBJ, .item_keys = rank_keys},
	{.key = NULL},
};
static const struct shape move_keys[] = {
	{.key = "what", .types = T_STR, .words = not_empty},
	{.key = "number", .types = T_NUM},
	{.key = "unit", .types = T_STR, .words = not_empty},
	{.key = NULL},
};
static const struct shape verdict_keys[] = {
	{.key = "bound_by", .types = T_STR, .words = not_empty},
	{.key = "share", .types = T_NUM | T_NULL, .optional = true},
	{.key = "why", .types = T_STR, .words = not_empty},
	{.key = "moves", .types = T_ARR, .items = T_OBJ, .item_keys = move_keys},
	{.key = NULL},
};
static const struct shape tiers_keys[] = {
	{.key = "node", .types = T_NUM},
	{.key = "rack", .types = T_NUM},
	{.key = "far", .types = T_NUM},
	{.key = NULL},
};
static const struct shape bytes_keys[] = {
	{.key = "kinds", .types = T_OBJ},
	{.key = "equal_on_all_ranks", .types = T_BOOL},
	{.key = "tiers", .types = T_OBJ, .keys = tiers_keys},
	{.key = NULL},
};
static const struct shape memory_keys[] = {
	{.key = "kinds", .types = T_OBJ},
	{.key = "equal_on_all_ranks", .types = T_BOOL},
	{.key = NULL},
};
static const struct shape product_keys[] = {
	{.key = "m", .types = T_INT, .natural = true},
	{.key = "n", .types = T_INT, .natural = true},
	{.key = "k", .types = T_INT, .natural = true},
	{.key = "trans_a", .types = T_BOOL},
	{.key = "trans_b", .types = T_BOOL},
	{.key = "calls", .types = T_INT, .natural = true},
	{.key = "flops", .types = T_NUM},
	{.key = NULL},
};

static const struct shape result_keys[] = {
	{.key = "case", .types = T_STR, .words = not_empty},
	{.key = "job", .types = T_STR | T_NULL},
	{.key = "launch", .types = T_INT, .natural = true},
	{.key = "where", .types = T_STR, .words = where_words},
	{.key = "params", .types = T_OBJ},
	{.key = "metric", .types = T_STR, .words = not_empty},
	{.key = "unit", .types = T_STR, .words = not_empty},
	{.key = "better", .types = T_STR, .words = better_words},
	{.key = "load", .types = T_STR, .words = load_words},
	{.key = "sync", .types = T_STR},
	{.key = "value", .types = T_NUM | T_NULL},
	{.key = "value_reason", .types = T_STR, .optional = true, .words = not_empty},
	{.key = "ci", .types = T_OBJ | T_NULL, .keys = ci_keys},
	{.key = "bound", .types = T_OBJ | T_NULL, .keys = bound_keys},
	{.key = "n", .types = T_INT, .natural = true},
	{.key = "warmup_dropped", .types = T_INT, .natural = true},
	{.key = "hist", .types = T_OBJ, .optional = true, .keys = hist_keys},
	{.key = "samples", .types = T_ARR, .optional = true, .items = T_NUM},
	{.key = "line_rate", .types = T_NUM, .optional = true},
	{.key = "measured_at", .types = T_STR, .optional = true},
	{.key = "interval_ns", .types = T_INT, .optional = true, .natural = true},
	{.key = "intervals",
		.types = T_ARR,
		.optional = true,
		.items = T_OBJ,
		.item_keys = interval_keys},
	{.key = "worst_window", .types = T_OBJ | T_NULL, .optional = true, .keys = worst_keys},
	{.key = "rate", .types = T_OBJ, .optional = true, .keys = rate_keys},
	{.key = "stats", .types = T_OBJ, .keys = stats_keys},
	{.key = "per_rank", .types = T_ARR, .items = T_OBJ, .item_keys = rank_keys},
	{.key = "counters", .types = T_OBJ, .keys = counters_keys},
	{.key = "validity", .types = T_OBJ, .keys = validity_keys},
	{.key = "facts", .types = T_OBJ, .optional = true},
	{.key = "definition", .types = T_STR, .optional = true},
	{.key = "model", .types = T_OBJ, .optional = true, .keys = model_keys},
	{.key = "loss", .types = T_ARR, .optional = true, .items = T_NUM | T_NULL},
	{.key = "grad_norm", .types = T_ARR, .optional = true, .items = T_NUM | T_NULL},
	{.key = "mfu", .types = T_OBJ, .optional = true, .keys = mfu_keys},
	{.key = "hfu", .types = T_OBJ, .optional = true, .keys = hfu_keys},
	{.key = "split", .types = T_OBJ, .optional = true, .keys = split_keys},
	{.key = "verdict", .types = T_OBJ, .optional = true, .keys = verdict_keys},
	{.key = "bytes", .types = T_OBJ, .optional = true, .keys = bytes_keys},
	{.key = "memory", .types = T_OBJ, .optional = true, .keys = memory_keys},
	{.key = "flops", .types = T_OBJ, .optional = true},
	{.key = "products",
		.types = T_ARR,
		.optional = true,
		.items = T_OBJ,
		.item_keys = product_keys},
	{.key = "tasks", .types = T_ARR, .optional = true, .items = T_ARR},
	{.key = NULL},
};
static const struct shape expected_keys[] = {
	{.key = "value", .types = T_ANY},
	{.key = "source", .types = T_STR, .words = not_empty},
	{.key = NULL},
};
static const struct shape check_keys[] = {
	{.key = "id", .types = T_STR, .words = not_empty},
	{.key = "case", .types = T_STR, .optional = true, .words = not_empty},
	{.key = "title", .types = T_STR, .optional = true},
	{.key = "subject", .types = T_STR, .optional = true, .words = not_empty},
	{.key = "state", .types = T_STR, .words = state_words},
	{.key = "observed", .types = T_ANY},
	{.key = "expected", .types = T_OBJ | T_NULL, .keys = expected_keys},
	{.key = "read", .types = T_STR},
	{.key = "remedy", .types = T_STR | T_NULL},
	{.key = "side_effect", .types = T_STR | T_NULL},
	{.key = "evidence", .types = T_STR, .words = evidence_words},
	{.key = "reason", .types = T_STR, .optional = true, .words = not_empty},
	{.key = NULL},
};
static const struct shape error_keys[] = {
	{.key = "message", .types = T_STR, .words = not_empty},
	{.key = "remedy", .types = T_STR},
	{.key = "code", .types = T_INT},
	{.key = "exit", .types = T_INT, .natural = true},
	{.key = "job", .types = T_STR, .optional = true},
	{.key = "point", .types = T_STR, .optional = true},
	{.key = NULL},
};
static const struct shape account_keys[] = {
	{.key = "expected", .types = T_INT, .natural = true},
	{.key = "measured", .types = T_INT, .natural = true},
	{.key = "failed", .types = T_INT, .natural = true},
	{.key = "unreachable", .types = T_INT, .natural = true},
	{.key = "not_run", .types = T_INT, .natural = true},
	{.key = NULL},
};
static const struct shape pair_host_keys[] = {
	{.key = "name", .types = T_STR, .words = not_empty},
	{.key = "rack", .types = T_STR, .optional = true},
	{.key = "state", .types = T_STR, .words = host_state_words},
	{.key = "judged", .types = T_STR},
	{.key = "score", .types = T_NUM, .optional = true},
	{.key = "reason", .types = T_STR, .optional = true},
	{.key = "rails", .types = T_ARR, .items = T_OBJ},
	{.key = NULL},
};
static const struct shape pairs_keys[] = {
	{.key = "metric", .types = T_STR, .words = not_empty},
	{.key = "unit", .types = T_STR, .words = not_empty},
	{.key = "better", .types = T_STR, .words = better_words},
	{.key = "where", .types = T_STR, .words = where_words},
	{.key = "params", .types = T_OBJ, .optional = true},
	{.key = "schedule", .types = T_OBJ, .optional = true},
	{.key = "verdict", .types = T_STR, .words = pairs_verdict_words},
	{.key = "account", .types = T_OBJ, .keys = account_keys},
	{.key = "hosts", .types = T_ARR, .items = T_OBJ, .item_keys = pair_host_keys},
	{.key = "rails", .types = T_ARR, .items = T_OBJ},
	{.key = "links", .types = T_ARR, .items = T_OBJ},
	{.key = "measured", .types = T_ARR, .items = T_ARR},
	{.key = "simulation", .types = T_OBJ, .optional = true},
	{.key = NULL},
};
static const struct shape claim_keys[] = {
	{.key = "id", .types = T_STR, .words = not_empty},
	{.key = "line", .types = T_INT, .optional = true, .natural = true},
	{.key = "kind", .types = T_STR, .optional = true},
	{.key = "quantity", .types = T_STR, .optional = true},
	{.key = "claimed", .types = T_STR, .optional = true},
	{.key = "source", .types = T_STR, .optional = true},
	{.key = "verdict", .types = T_STR, .words = claim_words},
	{.key = "factor_pct", .types = T_NUM | T_NULL},
	{.key = "factor_pct_reason", .types = T_STR, .optional = true, .words = not_empty},
	{.key = "why", .types = T_STR, .words = not_empty},
	{.key = NULL},
};
static const struct shape fabric_port_keys[] = {
	{.key = "device", .types = T_STR, .words = not_empty},
	{.key = "port", .types = T_INT, .natural = true},
	{.key = "ethernet", .types = T_BOOL},
	{.key = "pfc", .types = T_ARR, .optional = true, .items = T_INT},
	{.key = "dscp_map", .types = T_OBJ, .optional = true},
	{.key = NULL},
};
static const struct shape fabric_leaf_keys[] = {
	{.key = "name", .types = T_STR, .words = not_empty},
	{.key = "down", .types = T_INT, .natural = true},
	{.key = "up", .types = T_INT, .natural = true},
	{.key = "spines", .types = T_INT, .natural = true},
	{.key = "blocking", .types = T_NUM | T_NULL},
	{.key = "rail", .types = T_STR, .optional = true},
	{.key = NULL},
};
static const struct shape fabric_rail_keys[] = {
	{.key = "rail", .types = T_STR, .words = not_empty},
	{.key = "hcas", .types = T_INT, .natural = true},
	{.key = "judged", .types = T_INT, .natural = true},
	{.key = "mis_cabled", .types = T_INT, .natural = true},
	{.key = NULL},
};
/* Of check: the node; of topo fabric: the InfiniBand fabric. */
static const struct shape fabric_keys[] = {
	{.key = "source", .types = T_STR, .optional = true},
	{.key = "switches", .types = T_INT, .optional = true, .natural = true},
	{.key = "hosts", .types = T_INT, .optional = true, .natural = true},
	{.key = "hcas", .types = T_INT, .optional = true, .natural = true},
	{.key = "links", .types = T_INT, .optional = true, .natural = true},
	{.key = "levels", .types = T_INT, .optional = true, .natural = true},
	{.key = "spines", .types = T_INT, .optional = true, .natural = true},
	{.key = "fabrics", .types = T_INT, .optional = true, .natural = true},
	{.key = "leaves_left_out", .types = T_INT, .optional = true, .natural = true},
	{.key = "leaves",
		.types = T_ARR,
		.optional = true,
		.items = T_OBJ,
		.item_keys = fabric_leaf_keys},
	{.key = "rails",
		.types = T_ARR,
		.optional = true,
		.items = T_OBJ,
		.item_keys = fabric_rail_keys},
	{.key = "host", .types = T_STR, .optional = true, .words = not_empty},
	{.key = "recorded", .types = T_STR, .optional = true},
	{.key = "age", .types = T_STR, .optional = true},
	{.key = "profile", .types = T_STR, .optional = true},
	{.key = "ports",
		.types = T_ARR,
		.optional = true,
		.items = T_OBJ,
		.item_keys = fabric_port_keys},
	{.key = NULL},
};
/* ---- of a sweep over packet loss ---- */
static const struct shape loss_point_keys[] = {
	{.key = "rate", .types = T_NUM},
	{.key = "turns", .types = T_INT, .natural = true},
	{.key = "goodput", .types = T_NUM | T_NULL},
	{.key = "packets_per_packet", .types = T_NUM | T_NULL},
	{.key = "eta", .types = T_NUM | T_NULL},
	{.key = "p50_ns", .types = T_NUM | T_NULL},
	{.key = "p99_ns", .types = T_NUM | T_NULL},
	{.key = "n", .types = T_INT, .natural = true},
	{.key = NULL},
};
static const struct shape loss_prediction_keys[] = {
	{.key = "rate", .types = T_NUM},
	{.key = "eta", .types = T_NUM | T_NULL},
	{.key = "predicted", .types = T_NUM},
	{.key = "error", .types = T_NUM | T_NULL},
	{.key = NULL},
};
static const struct shape loss_model_keys[] = {
	{.key = "W", .types = T_NUM | T_NULL},
	{.key = "R", .types = T_NUM | T_NULL},
	{.key = "W_alone", .types = T_NUM | T_NULL},
	{.key = "signal", .types = T_STR, .words = loss_signal_words},
	{.key = "direction", .types = T_STR, .words = loss_direction_words},
	{.key = "residuals", .types = T_ARR, .items = T_OBJ, .item_keys = loss_prediction_keys},
	{.key = "predicted", .types = T_ARR, .items = T_OBJ, .item_keys = loss_prediction_keys},
	{.key = NULL},
};
static const struct shape loss_keys[] = {
	{.key = "where", .types = T_STR, .words = where_words},
	{.key = "points", .types = T_ARR, .items = T_OBJ, .item_keys = loss_point_keys},
	{.key = "model", .types = T_OBJ, .keys = loss_model_keys},
	{.key = NULL},
};
static const struct shape doc_keys[] = {
	{.key = "schema", .types = T_STR, .words = schema_words},
	{.key = "tool", .types = T_OBJ, .keys = tool_keys},
	{.key = "run", .types = T_OBJ, .keys = run_keys},
	{.key = "system", .types = T_OBJ, .keys = system_keys},
	{.key = "peers", .types = T_ARR, .items = T_OBJ, .item_keys = peer_keys},
	{.key = "topology_ref", .types = T_STR | T_NULL},
	{.key = "config", .types = T_OBJ, .keys = config_keys},
	{.key = "results", .types = T_ARR, .items = T_OBJ, .item_keys = result_keys},
	{.key = "checks", .types = T_ARR, .items = T_OBJ, .item_keys = check_keys},
	{.key = "warnings", .types = T_ARR, .items = T_STR},
	{.key = "errors", .types = T_ARR, .items = T_OBJ, .item_keys = error_keys},
	{.key = "pairs", .types = T_ARR, .optional = true, .items = T_OBJ, .item_keys = pairs_keys},
	{.key = "fabric", .types = T_OBJ, .optional = true, .keys = fabric_keys},
	{.key = "claims",
		.types = T_ARR,
		.optional = true,
		.items = T_OBJ,
		.item_keys = claim_keys},
	{.key = "loss", .types = T_ARR, .optional = true, .items = T_OBJ, .item_keys = loss_keys},
	{.key = NULL},
};

/** Where we are, for messages: "run.json: results[3].metric". */
struct reader {
	const char *name;
	char path[256];
	struct fb_err *e;
};

static unsigned type_of(const json_t *j)
{
	switch (json_typeof(j)) {
	case JSON_OBJECT: return T_OBJ;
	case JSON_ARRAY: return T_ARR;
	case JSON_STRING: return T_STR;
	case JSON_INTEGER: return T_INT;
	case JSON_REAL: return T_REAL;
	case JSON_TRUE:
	case JSON_FALSE: return T_BOOL;
	default: return T_NULL;
	}
}

static const char *type_names(unsigned types, char *buf, size_t len)
{
	static const struct {
		unsigned type;
		const char *name;
	} names[] = {{T_STR, "a string"}, {T_REAL, "a number"}, {T_INT, "an integer"},
		{T_BOOL, "true or false"}, {T_OBJ, "an object"}, {T_ARR, "an array"},
		{T_NULL, "null"}};
	if (types & T_REAL)
		types &= ~(unsigned)T_INT;
	buf[0] = '\0';
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t n = strlen(buf);
		if (types & names[i].type)
			snprintf(buf + n, len - n, "%s%s", n ? " or " : "", names[i].name);
	}
	return buf;
}

static int bad(const struct reader *r, const char *why)
{
	fb_fail(r->e, FB_EXIT_USAGE, EINVAL, "%s: %s: %s", r->name, r->path[0] ? r->path : "top",
		why);
	fb_hint(r->e, "it is not a result document of schema %s that fabricbench wrote", FB_SCHEMA);
	return -EINVAL;
}

/* Go down to a key or an element. @return the old length, for up() */
static size_t down(struct reader *r, const char *key, size_t index)
{
	size_t n = strlen(r->path);
	if (key)
		snprintf(r->path + n, sizeof(r->path) - n, "%s%.64s", n ? "." : "", key);
	else
		snprintf(r->path + n, sizeof(r->path) - n, "[%zu]", index);
	return n;
}

static void up(struct reader *r, size_t n)
{
	r->path[n] = '\0';
}

static int check_type(const struct reader *r, const json_t *j, unsigned types)
{
	char names[128], why[192];
	if (type_of(j) & types)
		return 0;
	snprintf(why, sizeof(why), "must be %s", type_names(types, names, sizeof(names)));
	return bad(r, why);
}

static int check_word(const struct reader *r, const char *s, const char *const *words)
{
	char why[256] = "must be one of";
	if (!words[0])
		return *s ? 0 : bad(r, "must not be empty");
	for (const char *const *w = words; *w; w++) {
		if (strcmp(s, *w) == 0)
			return 0;
		size_t n = strlen(why);
		snprintf(why + n, sizeof(why) - n, "%s %s", w == words ? "" : ",", *w);
	}
	size_t n = strlen(why);
	snprintf(why + n, sizeof(why) - n, "; it is \"%.40s\"", s);
	return bad(r, why);
}

static int check_object(struct reader *r, const json_t *j, const struct shape *keys);

static int check_value(struct reader *r, const json_t *j, const struct shape *s)
{
	int rc = check_type(r, j, s->types);
	if (rc < 0)
		return rc;
	if (json_is_string(j) && s->words)
		return check_word(r, json_string_value(j), s->words);
	if (json_is_integer(j) && s->natural && json_integer_value(j) < 0)
		return bad(r, "must not be negative");
	if (json_is_object(j) && s->keys)
		return check_object(r, j, s->keys);
	if (!json_is_array(j))
		return 0;
	for (size_t i = 0; i < json_array_size(j) && rc == 0; i++) {
		const json_t *item = json_array_get(j, i);
		size_t n = down(r, NULL, i);
		if (s->items)
			rc = check_type(r, item, s->items);
		if (rc == 0 && s->item_keys)
			rc = check_object(r, item, s->item_keys);
		if (rc == 0)
			up(r, n);
	}
	return rc;
}

static int check_object(struct reader *r, const json_t *j, const struct shape *keys)
{
	for (const struct shape *s = keys; s->key; s++) {
		const json_t *v = json_object_get(j, s->key);
		size_t n = down(r, s->key, 0);
		if (!v && !s->optional)
			return bad(r, "missing");
		if (v && check_value(r, v, s) < 0)
			return -EINVAL;
		up(r, n);
	}
	return 0;
}

/* ---- what a schema cannot say ---------------------------------------------------------------- */

static int check_hist(struct reader *r, const json_t *result)
{
	struct fb_err why = {0};
	const json_t *hist = json_object_get(result, "hist");
	struct fb_hist *h = malloc(sizeof(*h));
	size_t n = down(r, "hist", 0);
	if (!h)
		return fb_fail(r->e, FB_EXIT_UNMEASURED, ENOMEM, "no memory to read %s", r->name);
	int rc = fb_hist_from_json(h, hist, &why);
	uint64_t count = rc == 0 ? h->n : 0;
	free(h);
	if (rc < 0)
		return bad(r, why.msg);
	up(r, n);
	if ((json_int_t)count != json_integer_value(json_object_get(result, "n"))) {
		down(r, "n", 0);
		return bad(r, "differs from the histogram's count");
	}
	return 0;
}

static int check_result(struct reader *r, const json_t *result)
{
	const json_t *hist = json_object_get(result, "hist");
	const json_t *ci = json_object_get(result, "ci");
	if (!hist && !json_object_get(result, "samples"))
		return bad(r, "has neither hist nor samples");
	if (json_is_null(json_object_get(result, "value")) &&
		!json_object_get(result, "value_reason")) {
		down(r, "value_reason", 0);
		return bad(r, "missing: a value of null needs its reason");
	}
	if (json_is_object(ci) && fb_json_num(ci, "lo", 0) > fb_json_num(ci, "hi", 0)) {
		down(r, "ci", 0);
		return bad(r, "its lower end is above its upper end");
	}
	return hist ? check_hist(r, result) : 0;
}

static int check_check(struct reader *r, const json_t *check)
{
	const char *state = fb_json_str(check, "state", "");
	if ((strcmp(state, "skip") == 0 || strcmp(state, "error") == 0) &&
		!json_object_get(check, "reason")) {
		down(r, "reason", 0);
		return bad(r, "missing: a check that ends skip or error needs its reason");
	}
	return 0;
}

static int check_claim(struct reader *r, const json_t *claim)
{
	if (json_is_null(json_object_get(claim, "factor_pct")) &&
		!json_object_get(claim, "factor_pct_reason")) {
		down(r, "factor_pct_reason", 0);
		return bad(r, "missing: a factor of null needs its reason");
	}
	return 0;
}

static int check_each(struct reader *r, const json_t *doc, const char *key,
	int (*fn)(struct reader *r, const json_t *j))
{
	const json_t *list = json_object_get(doc, key);
	for (size_t i = 0; i < json_array_size(list); i++) {
		r->path[0] = '\0';
		down(r, key, 0);
		down(r, NULL, i);
		int rc = fn(r, json_array_get(list, i));
		if (rc < 0)
			return rc;
	}
	return 0;
}

int fb_doc_validate(const json_t *doc, const char *name, struct fb_err *e)
{
	struct reader r = {.name = name, .e = e};
	if (!json_is_object(doc))
		return bad(&r, "must be an object");
	int rc = check_object(&r, doc, doc_keys);
	if (rc == 0)
		rc = check_each(&r, doc, "results", check_result);
	if (rc == 0)
		rc = check_each(&r, doc, "checks", check_check);
	if (rc == 0)
		rc = check_each(&r, doc, "claims", check_claim);
	return rc;
}

json_t *fb_doc_parse(const char *text, size_t len, const char *name, struct fb_err *e)
{
	if (len > DOC_MAX_BYTES) {
		fb_fail(e, FB_EXIT_USAGE, EFBIG, "%s: larger than %u MiB", name,
			DOC_MAX_BYTES >> 20);
		return NULL;
	}
	json_t *doc = fb_json_parse(text, len, name, e);
	if (doc && fb_doc_validate(doc, name, e) < 0) {
		json_decref(doc);
		return NULL;
	}
	return doc;
}

json_t *fb_doc_load(const char *path, struct fb_err *e)
{
	char *text;
	size_t len;
	if (fb_read_file(path, DOC_MAX_BYTES, &text, &len, e) < 0)
		return NULL;
	json_t *doc = fb_doc_parse(text, len, path, e);
	free(text);
	return doc;
}
