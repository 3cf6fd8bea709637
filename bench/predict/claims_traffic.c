// SPDX-License-Identifier: Apache-2.0
/*
 * Traffic: bytes per parameter that a step sends, by strategy and setting (training.md 2.1, 2.3).
 * How many micro-batches a step has, in which type gradients are reduced, and whether they are
 * reduced after each micro-batch or after the last, stands in no column: a figure that holds under
 * some settings only depends on them, and they are listed.
 */
#include <math.h>
#include <string.h>

#include "bench/predict/claims_priv.h"

#define GATHER_BYTES 2.0 /* of a gathered parameter: bf16 */

/* When gradients are reduced across the data-parallel ranks (hybrid: across the replicas). */
enum defer {
	DEFER_NONE, /* after each micro-batch */
	DEFER_SELF, /* after the last, by the strategy in question alone */
	DEFER_BOTH, /* by what it is compared with too (no_sync) */
	DEFER_COUNT
};
static const char *const defer_names[] = {"reduced after each micro-batch",
	"its all-reduce deferred to the last", "both deferred to the last"};

struct setting {
	int micro;     /* M */
	double reduce; /* bytes of a reduced gradient */
	enum defer defer;
};

/* What one step sends per parameter, without the (ranks-1)/ranks that all have alike. Of hybrid:
 * what crosses between replicas. */
static double step_bytes_of(enum claim_scheme s, int micro, double bg, bool deferred)
{
	double m = micro, r = deferred ? 1 : m, bp = GATHER_BYTES;
	switch (s) {
	case SCHEME_ZERO1: return r * bg + bp;
	case SCHEME_ZERO2: return m * bg + bp; /* its gradients are sharded: no deferring */
	case SCHEME_ZERO3:
	case SCHEME_OFFLOAD: return m * 2 * bp + r * bg;
	case SCHEME_SHARD_GRAD_OP: return m * bp + r * bg;
	case SCHEME_DDP:
	case SCHEME_HYBRID: return 2 * r * bg;
	default: return NAN;
	}
}

double claim_step_bytes(enum claim_scheme s)
{
	return step_bytes_of(s, 1, GATHER_BYTES, true);
}

double claim_wire_bytes(enum claim_scheme s)
{
	switch (s) {
	case SCHEME_ZERO3:
	case SCHEME_OFFLOAD: return 3 * GATHER_BYTES;
	case SCHEME_SHARD_GRAD_OP: return 2 * GATHER_BYTES;
	case SCHEME_ZERO2: return GATHER_BYTES;
	default: return 0;
	}
}

static const char *bytes_name(double b)
{
	return b > 2 ? "fp32" : "bf16";
}

static const double reduces[] = {2, 4};

/* Is this type of reduced gradients allowed by column dtype? */
static bool reduce_allowed(const struct claim *c, double bg)
{
	if (c->reduce != DTYPE_NONE)
		return (c->reduce == DTYPE_F32) == (bg > 2);
	return true;
}

static enum claim_scheme base_scheme(const struct claim *c)
{
	enum claim_scheme s = SCHEME_NONE;
	const char *nearest;
	double f;
	return claim_scheme_find(c->base, &s, &f, &nearest) ? s : SCHEME_NONE;
}

/* ---- between nodes --------------------------------------------------------------------------- */

/* Per node and parameter, over all ranks of the node. Sharding over several nodes (F larger than a
 * node) sends the gathers between the nodes of a group too. */
static double between_nodes(const struct claim *c, enum claim_scheme s, const struct setting *t,
	bool deferred, double nodes)
{
	double all = step_bytes_of(s, t->micro, t->reduce, deferred);
	if (s != SCHEME_HYBRID)
		return all * (nodes - 1) / nodes;
	double per_group = c->shard / c->gpus_per_node; /* nodes of a shard group */
	if (!(per_group > 1))
		return all * (nodes - 1) / nodes;
	double replicas = nodes / per_group;
	double inside = step_bytes_of(SCHEME_ZERO3, t->micro, t->reduce, deferred);
	return inside * (per_group - 1) / per_group + all / per_group * (replicas - 1) / replicas;
}

static double inter_node_reduction(
	const struct claim *c, enum claim_scheme base, const struct setting *t, double nodes)
{
	double own = between_nodes(c, c->scheme, t, t->defer != DEFER_NONE, nodes);
	double other = between_nodes(c, base, t, t->defer == DEFER_BOTH, nodes);
	return 100 * (1 - own / other);
}

static bool traffic_lack(struct claim *c, enum claim_scheme base)
{
	if (c->scheme == SCHEME_NONE) {
		claim_empty(c, COL_STRATEGY, "it decides what is sent");
		return true;
	}
	if (c->scheme == SCHEME_MEGATRON || base == SCHEME_MEGATRON) {
		claim_set(c, CLAIM_DEPENDS, NAN);
		claim_say(c,
			"Tensor and pipeline parallelism send activations: it depends on layers, sequence "
			"and micro-batches, not on parameters alone.");
		return true;
	}
	return false;
}

/* Is that reduction what is claimed? Within 2 points; but all of it is all of it. */
static bool reduction_met(const struct claim *c, double v)
{
	if (c->value > 99.99)
		return v >= 100;
	if (c->sense != SENSE_IS)
		return v >= c->value - 2;
	return fabs(v - c->value) <= 2;
}

/* Micro-batches at which the claim is first reached with everything in bf16, deferred by itself. */
static int micro_needed(const struct claim *c, enum claim_scheme base, double nodes)
{
	for (int m = 1; m <= 4096; m *= 2) {
		struct setting t = {m, reduce_allowed(c, 2) ? 2 : 4, DEFER_SELF};
		double v = inter_node_reduction(c, base, &t, nodes);
		if (c->value > 99.99 ? v >= 100 : v >= c->value - 2)
			return m;
	}
	return 0;
}

/* Of all settings that were looked at. */
struct tally {
	int met, tried;
	double best;
};

/* One line of settings: "bf16 gradients, deferred: 33, 67, 83, 92 % (met by 2, 4, 8)". */
static void say_settings(struct claim *c, enum claim_scheme base, double nodes,
	const struct setting *which, struct tally *tally)
{
	char by[32] = "";
	const char *sep = ": ";
	claim_say(c, "%s gradients, %s", bytes_name(which->reduce), defer_names[which->defer]);
	for (int m = 1; m <= 8; m *= 2) {
		struct setting t = {m, which->reduce, which->defer};
		double v = inter_node_reduction(c, base, &t, nodes);
		size_t n = strlen(by);
		fb_strbuf_printf(&c->why, "%s%.0f", sep, v + 0.0);
		sep = ", ";
		tally->tried++;
		tally->best = fmax(tally->best, v);
		if (!reduction_met(c, v))
			continue;
		snprintf(by + n, sizeof(by) - n, "%s%d", n ? ", " : "", m);
		tally->met++;
	}
	fb_strbuf_printf(&c->why, " %%%s%s%s;", *by ? " (holds at M = " : "", by, *by ? ")" : "");
}

static void end_list(struct claim *c)
{
	if (c->why.len > 0 && c->why.s[c->why.len - 1] == ';')
		c->why.s[c->why.len - 1] = '.';
}

void claim_rule_inter_node(const struct claims *all, struct claim *c)
{
	enum claim_scheme base = base_scheme(c);
	double nodes = c->n_gpus / c->gpus_per_node;
	struct tally t = {0};
	(void)all;
	if (traffic_lack(c, base))
		return;
	if (c->scheme == SCHEME_HYBRID && !isfinite(c->gpus_per_node)) {
		claim_empty(c, COL_GPUS_PER_NODE,
			"whether a shard group stays within a node decides what crosses");
		return;
	}
	if (nodes <= 1) {
		claim_set(c, CLAIM_IMPOSSIBLE, NAN);
		claim_say(
			c, "%s GPUs are one node: nothing crosses between nodes.", NUM(c->n_gpus));
		return;
	}
	if (!isfinite(nodes))
		nodes = 1e6; /* its (nodes-1)/nodes is nearly the same on both sides */
	if (c->scheme == SCHEME_HYBRID && !isfinite(c->shard))
		c->shard = c->gpus_per_node;
	if (c->scheme == SCHEME_HYBRID && c->shard >= c->n_gpus) {
		claim_set(c, CLAIM_IMPOSSIBLE, NAN);
		claim_say(c, "F is all %s GPUs: that is zero3 itself.", NUM(c->n_gpus));
		return;
	}
	claim_say(c,
		"Bytes between nodes saved against %s at M = 1, 2, 4, 8 micro-batches:", c->base);
	for (size_t i = 0; i < 2; i++) {
		for (int d = 0; d < DEFER_COUNT; d++) {
			struct setting which = {1, reduces[i], (enum defer)d};
			/* zero2's gradients are sharded: it has nothing to defer */
			if (reduce_allowed(c, reduces[i]) &&
				!(d == DEFER_BOTH && base == SCHEME_ZERO2))
				say_settings(c, base, nodes, &which, &t);
		}
	}
	end_list(c);
	if (t.met == t.tried) {
		claim_set(c, CLAIM_POSSIBLE, NAN);
		claim_say(c, "It holds under each of them.");
		return;
	}
	int m = micro_needed(c, base, nodes);
	bool ever = t.met > 0 || m > 0;
	claim_set(c, ever ? CLAIM_DEPENDS : CLAIM_IMPOSSIBLE,
		ever || t.best <= 0 ? NAN : 100 * c->value / t.best);
	if (t.met > 0)
		claim_say(c, "%s %% holds under %d of these %d settings only.", NUM(c->value),
			t.met, t.tried);
	else if (m > 0)
		claim_say(c, "%s %% takes %d micro-batches or more and a deferred all-reduce.",
			NUM(c->value), m);
	else
		claim_say(c, "%s %% is reached under no setting.", NUM(c->value));
	if (c->scheme == SCHEME_HYBRID)
		claim_say(c, "A reduction in the switches (SHARP) halves the all-reduce besides.");
}

/* ---- all that a rank sends ------------------------------------------------------------------- */

/* Times what `base` sends. Hybrid sends within the group too. */
static double times_of(const struct claim *c, enum claim_scheme base, const struct setting *t)
{
	double own = step_bytes_of(c->scheme, t->micro, t->reduce, t->defer != DEFER_NONE);
	if (c->scheme == SCHEME_HYBRID) /* in shares of the group, whose size is large */
		own = step_bytes_of(SCHEME_ZERO3, t->micro, t->reduce, false) +
		      own / (isfinite(c->shard) ? c->shard : 8);
	return own / step_bytes_of(base, t->micro, t->reduce, t->defer != DEFER_NONE);
}

/* One line: "fp32 gradients, reduced after each micro-batch: 0.75, ..." */
static int say_times(struct claim *c, enum claim_scheme base, double reduce, enum defer d)
{
	const char *sep = ": ";
	int met = 0;
	claim_say(c, "%s gradients, %s", bytes_name(reduce),
		d == DEFER_NONE ? defer_names[d] : "after the last where it can be");
	for (int m = 1; m <= 8; m *= 2) {
		struct setting t = {m, reduce, d};
		double v = times_of(c, base, &t);
		fb_strbuf_printf(&c->why, "%s%s", sep, NUM(v));
		sep = ", ";
		met += claim_met(c, v, 0.03);
	}
	fb_strbuf_add(&c->why, ";");
	return met;
}

void claim_rule_communication(const struct claims *all, struct claim *c)
{
	enum claim_scheme base = base_scheme(c);
	int met = 0;
	(void)all;
	if (traffic_lack(c, base))
		return;
	/* As the papers count: one micro-batch, gradients reduced in the type of the parameters. */
	struct setting one = {1, c->reduce == DTYPE_F32 ? 4 : 2, DEFER_SELF};
	double plain = times_of(c, base, &one);
	claim_say(c,
		"One micro-batch with %s gradients sends %s times the bytes of %s (%s against %s bytes "
		"per parameter and step).",
		bytes_name(one.reduce), NUM(plain), c->base,
		NUM(plain * step_bytes_of(base, 1, one.reduce, true)),
		NUM(step_bytes_of(base, 1, one.reduce, true)));
	claim_say(c, "At 1, 2, 4, 8 micro-batches:");
	for (size_t i = 0; i < 2; i++)
		for (int d = DEFER_NONE; d <= DEFER_SELF; d++)
			if (reduce_allowed(c, reduces[i]))
				met += say_times(c, base, reduces[i], (enum defer)d);
	end_list(c);
	bool holds = claim_met(c, plain, 0.03) || (c->sense == SENSE_AT_MOST && plain <= c->value);
	claim_set(c,
		holds     ? CLAIM_POSSIBLE
		: met > 0 ? CLAIM_DEPENDS
			  : CLAIM_IMPOSSIBLE,
		100 * c->value / plain);
	if (!holds)
		claim_say(c,
			met > 0 ? "%s times holds under some of these settings only."
				: "%s times holds under none of them.",
			NUM(c->value));
}
