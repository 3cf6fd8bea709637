// SPDX-License-Identifier: Apache-2.0
/* See doc_shape.h. Objects stand before those that hold them. */
#include "bench/core/doc_shape.h"

#include "bench/core/result.h"

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
const struct shape fb_doc_shape[] = {
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
