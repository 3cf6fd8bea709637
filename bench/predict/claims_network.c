// SPDX-License-Identifier: Apache-2.0
/*
 * The network: what a latency is of a step, what loss does to it, and what links and memories can
 * carry by their data sheets; and rates of events, which arithmetic does not know.
 *
 * Loss: go-back-N after InfiniBand's specification, as NICs do it for RoCE v2, which is UDP: no TCP
 * takes part. Goodput (1-p)/(1-p+pW) with W packets sent again per loss (training.md 8.3).
 */
#include <math.h>
#include <string.h>

#include "bench/predict/claims_priv.h"

#define SHARE_MFU      0.55  /* of a well tuned step: a slower one hides latency even better */
#define ROUND_TRIP     10e-6 /* seconds until a lost packet is known */
#define MTU_LARGE      4096.0
#define MTU_SMALL      1024.0
#define NCCL_TIMEOUT_S 4.294967296 /* 4.096 us x 2^20: NCCL_IB_TIMEOUT's default of 20 */

static const double token_counts[] = {1024, 2048, 4096, 8192};
static const char *const token_names[] = {"1k", "2k", "4k", "8k"};
#define NTOKENS (sizeof(token_counts) / sizeof(token_counts[0]))

/* ---- latency --------------------------------------------------------------------------------- */

/* Steps over the wire, one after the other, that one unit's collectives take in a ring. */
static double hops_of(const struct claim *c)
{
	double g = claim_data_ranks(c);
	switch (c->scheme) {
	case SCHEME_DDP: /* all-reduce: scatter and gather */
	case SCHEME_ZERO1:
	case SCHEME_ZERO2:
	case SCHEME_SHARD_GRAD_OP: return 2 * (g - 1);
	case SCHEME_HYBRID: { /* across the replicas; within the node no NIC takes part */
		double f = isfinite(c->shard) ? c->shard : c->gpus_per_node;
		return f <= c->gpus_per_node ? 2 * (g / f - 1) : 3 * (f - 1) + 2 * (g / f - 1);
	}
	default: return 3 * (g - 1); /* two gathers and a scatter */
	}
}

static double units_of(const struct claim *c)
{
	return (double)c->model.layers + 1; /* each block, and the root */
}

static double latency_seconds(const struct claim *c, double us)
{
	return hops_of(c) * units_of(c) * us * 1e-6;
}

/* A step's seconds with that many tokens per GPU, its GEMMs at SHARE_MFU, attention left out. */
static double step_seconds(const struct claim *c, double tokens)
{
	return 6 * c->params * tokens / (SHARE_MFU * claim_peak(c->gpu, c->work));
}

static bool can_share(const struct claim *c)
{
	return c->has_model && c->gpu && isfinite(c->n_gpus) && hops_of(c) > 0;
}

static void say_shares(struct claim *c, const struct claim *who, double us)
{
	double s = latency_seconds(who, us);
	claim_say(c,
		"In %s on %s %s with %s, rings of %s steps over each of %s units in turn make %s us into "
		"%s ms of a step if nothing is hidden. Share of the step at",
		who->model.name, NUM(who->n_gpus), who->gpu->name,
		*who->text[COL_STRATEGY] ? who->text[COL_STRATEGY] : "zero3", NUM(hops_of(who)),
		NUM(units_of(who)), NUM(us), NUM(1e3 * s));
	for (size_t i = 0; i < NTOKENS; i++)
		fb_strbuf_printf(&c->why, "%s %s: %.2f %%", i ? "," : "", token_names[i],
			100 * s / step_seconds(who, token_counts[i]));
	fb_strbuf_printf(&c->why, " (tokens per GPU; at %g %% MFU).", 100 * SHARE_MFU);
}

/* A row that tells enough to make a share of: this one, or the first of the file. */
static const struct claim *context(const struct claims *all, const struct claim *c)
{
	const struct claim *any = NULL;
	if (can_share(c))
		return c;
	for (size_t i = 0; i < all->n; i++) {
		const struct claim *o = &all->row[i];
		if (!can_share(o) || !(o->n_gpus > o->gpus_per_node))
			continue;
		if (o->scheme == SCHEME_ZERO3)
			return o;
		any = any ? any : o;
	}
	return any;
}

/* Another latency of the same kind in the file: the pair is compared. */
static const struct claim *other_latency(const struct claims *all, const struct claim *c)
{
	for (size_t i = 0; i < all->n; i++) {
		const struct claim *o = &all->row[i];
		if (o != c && o->q == c->q && isfinite(o->value) && o->value != c->value)
			return o;
	}
	return NULL;
}

void claim_rule_latency(const struct claims *all, struct claim *c)
{
	const struct claim *who = context(all, c), *other = other_latency(all, c);
	claim_set(c, CLAIM_DEPENDS, NAN);
	claim_say(c,
		"A latency depends on size, load and percentile, none of which is told. What it costs "
		"depends on the tokens per GPU.");
	if (!who) {
		claim_say(c,
			"Columns model, gpu and n_gpus are empty here and in all rows: no share of a step "
			"can be given.");
		return;
	}
	double us = other ? fabs(other->value - c->value) : c->value;
	if (other)
		claim_say(c, "Against the %s us of row %.40s it is a difference of %s us.",
			NUM(other->value), other->text[COL_ID], NUM(us));
	say_shares(c, who, us);
}

static bool effect_lack(struct claim *c)
{
	if (!c->has_model)
		claim_empty(c, COL_MODEL, "its layers set the number of collectives");
	if (!c->gpu)
		claim_empty(c, COL_GPU, "it sets the time of a step");
	if (!isfinite(c->n_gpus))
		claim_empty(c, COL_N_GPUS, "it sets the steps of a ring");
	else if (!(hops_of(c) > 0))
		claim_empty(c, COL_GPUS_PER_NODE, "it sets what stays within a node");
	return !can_share(c);
}

void claim_rule_latency_effect(const struct claims *all, struct claim *c)
{
	(void)all;
	if (effect_lack(c))
		return;
	if (c->n_gpus <= c->gpus_per_node) {
		claim_set(c, c->value > 0 ? CLAIM_IMPOSSIBLE : CLAIM_POSSIBLE, NAN);
		claim_say(
			c, "%s GPUs are one node: no NIC takes part in the step.", NUM(c->n_gpus));
		return;
	}
	say_shares(c, c, c->arg);
	if (!isfinite(c->tokens) || !isfinite(c->value)) {
		claim_empty(c, isfinite(c->tokens) ? COL_VALUE : COL_TOKENS_PER_GPU,
			isfinite(c->tokens)
				? "no effect is claimed; it depends on the tokens per GPU as "
				  "listed"
				: "the share depends on it");
		return;
	}
	/* MFU is lost at most as the step gets longer. */
	double s = latency_seconds(c, c->arg), step = step_seconds(c, c->tokens);
	double points = 100 * SHARE_MFU * s / (step + s);
	bool met = claim_met(c, points, 0.1) || (c->sense != SENSE_AT_LEAST && c->value <= points);
	claim_set(c, met ? CLAIM_POSSIBLE : CLAIM_IMPOSSIBLE, 100 * c->value / points);
	claim_say(c, "At %s tokens that is %s points of MFU at the most, and %s are claimed.",
		NUM(c->tokens), NUM(points), NUM(c->value));
}

/* ---- loss ------------------------------------------------------------------------------------ */

/* The loss at which go-back-N leaves that share of the line, W packets sent again per loss. */
static double loss_for(double goodput, double w)
{
	return 1 / (1 + goodput * w / (1 - goodput));
}

static bool drop_lack(struct claim *c)
{
	if (!isfinite(c->params))
		claim_empty(c, COL_MODEL, "a step's time is that of its model");
	if (!c->gpu)
		claim_empty(c, COL_GPU, "it sets the time of a step");
	if (!isfinite(c->nic_gbps))
		claim_empty(c, COL_NIC, "the loss acts on its packets");
	if (!isfinite(c->gpus_per_node))
		claim_empty(c, COL_GPUS_PER_NODE, "a node's NICs carry its traffic together");
	return !isfinite(c->params) || !c->gpu || !isfinite(c->nic_gbps) ||
	       !isfinite(c->gpus_per_node);
}

/* What the drop asks for with that many tokens: goodput, loss, stalls. */
static void say_drop_at(struct claim *c, double tokens)
{
	double line = c->nic_gbps / 8 * 1e9, wire = claim_step_bytes(c->scheme);
	double peak = claim_peak(c->gpu, c->work);
	double step = 6 * c->params * tokens / (c->value / 100 * peak);
	double slow = step * c->value / c->to; /* the step the network has to take */
	double goodput = wire * c->params / (c->gpus_per_node * slow) / line;
	double stalls = (slow - step) / NCCL_TIMEOUT_S;
	claim_say(c, "%s tokens per GPU:", NUM(tokens));
	if (goodput < 1)
		fb_strbuf_printf(&c->why,
			" goodput of a NIC down to %s GB/s (%.0f %% of its line), which is %s %% loss with "
			"an MTU of 4096 and %s %% with 1024;",
			NUM(goodput * line / 1e9), 100 * goodput,
			NUM(100 * loss_for(goodput, line * ROUND_TRIP / MTU_LARGE)),
			NUM(100 * loss_for(goodput, line * ROUND_TRIP / MTU_SMALL)));
	else if (goodput >= 1)
		fb_strbuf_add(&c->why, " so slow without any loss;");
	fb_strbuf_printf(&c->why, " or %.0f time-out%s in a step of %s s.", ceil(stalls),
		stalls > 1 ? "s" : "", NUM(step));
}

void claim_rule_mfu_drop(const struct claims *all, struct claim *c)
{
	(void)all;
	claim_say(c,
		"RoCE v2 is UDP: no TCP takes part. A lost packet makes the NIC go back and send "
		"everything since it again; a lost last packet is found by time-out only, %.2f s each "
		"with NCCL's NCCL_IB_TIMEOUT of 20.",
		NCCL_TIMEOUT_S);
	if (c->value > 100) {
		claim_set(c, CLAIM_IMPOSSIBLE, c->value);
		return;
	}
	if (c->n_gpus <= c->gpus_per_node) {
		claim_set(c, CLAIM_IMPOSSIBLE, NAN);
		claim_say(
			c, "%s GPUs are one node: no NIC takes part in the step.", NUM(c->n_gpus));
		return;
	}
	if (drop_lack(c))
		return;
	claim_set(c, CLAIM_DEPENDS, NAN);
	claim_say(c, "From %s to %s %% depends on loss rate, time-outs and tokens.", NUM(c->value),
		NUM(c->to));
	if (isfinite(c->tokens)) {
		say_drop_at(c, c->tokens);
	} else {
		claim_say(c, "Column tokens_per_gpu is empty; it takes, at");
		for (size_t i = 1; i < NTOKENS; i++)
			say_drop_at(c, token_counts[i]);
	}
	claim_say(
		c, "Read out_of_sequence, packet_seq_err and local_ack_timeout_err around a step.");
}

/* ---- data sheets ----------------------------------------------------------------------------- */

static void judge_sheet(struct claim *c, double sheet, const char *what)
{
	double share = 100 * c->value / sheet;
	claim_set(c, share > 101 ? CLAIM_IMPOSSIBLE : CLAIM_POSSIBLE, share);
	claim_say(c, "%s has %s GB/s by its data sheet (%s): %s GB/s is %s.", c->gpu->name,
		NUM(sheet), what, NUM(c->value),
		share > 101  ? "more than there is"
		: share > 99 ? "what it states"
			     : "less");
}

static void no_link(struct claim *c)
{
	claim_set(c, CLAIM_IMPOSSIBLE, NAN);
	claim_say(c, "%s has no links between GPUs but PCIe.", c->gpu->name);
}

static void judge_link(struct claim *c, double directions)
{
	if (!c->gpu)
		claim_empty(c, COL_GPU, "its links are in its data sheet");
	else if (c->gpu->nvlink_gbps <= 0)
		no_link(c);
	else
		judge_sheet(c, c->gpu->nvlink_gbps * directions / 2, c->gpu->link);
}

void claim_rule_gpu_bandwidth(const struct claims *all, struct claim *c)
{
	(void)all;
	judge_link(c, 2);
	if (c->gpu && c->gpu->nvlink_gbps > 0)
		claim_say(c, "Both directions together; one carries %s GB/s.",
			NUM(c->gpu->nvlink_gbps / 2));
}

void claim_rule_gpu_bandwidth_one_way(const struct claims *all, struct claim *c)
{
	(void)all;
	judge_link(c, 1);
	if (c->gpu && c->gpu->nvlink_gbps > 0)
		claim_say(c, "One direction; data sheets print both together, %s GB/s.",
			NUM(c->gpu->nvlink_gbps));
}

void claim_rule_memory_bandwidth(const struct claims *all, struct claim *c)
{
	static const char what[] = "its memory, read and write together";
	(void)all;
	if (!c->gpu) {
		claim_empty(c, COL_GPU, "its memory is in its data sheet");
		return;
	}
	/* Of two sizes the larger is the faster. */
	const double *gb = c->gpu->mem_gb, *rate = c->gpu->mem_rate;
	bool told = isfinite(c->mem_gb) || rate[1] == 0;
	bool second = rate[1] > 0 && !(fabs(c->mem_gb - gb[0]) < fabs(c->mem_gb - gb[1]));
	if (told || c->value > 1.01 * rate[1] || c->value <= 1.01 * rate[0]) {
		judge_sheet(c, told || c->value > 1.01 * rate[1] ? rate[second] : rate[0], what);
		return;
	}
	claim_empty(c, COL_MEM_GB, "this GPU has more than one size");
	claim_say(c, "With %s GB it has %s GB/s, with %s GB %s GB/s.", GB(gb[0]), NUM(rate[0]),
		GB(gb[1]), NUM(rate[1]));
}

void claim_rule_nic(const struct claims *all, struct claim *c)
{
	(void)all;
	if (!isfinite(c->nic_gbps)) {
		claim_empty(c, COL_NIC, "the line rate is the bound");
		return;
	}
	double line = c->nic_gbps / 8, share = 100 * c->value / line;
	claim_set(c, share > 100 ? CLAIM_IMPOSSIBLE : CLAIM_POSSIBLE, share);
	claim_say(c, "%s GB/s is %s %% of the line of %s Gb/s (%s GB/s).", NUM(c->value),
		NUM(share), NUM(c->nic_gbps), NUM(line));
}

/* ---- rates of events ------------------------------------------------------------------------- */

/* Does the source say where to look (an address, a paper, a year), and not only which part of the
 * same text it stands in? */
static bool names_a_source(const char *s)
{
	static const char *const marks[] = {
		"http", "arxiv", "arXiv", "doi:", "doi.org", "github.com", "et al", NULL};
	for (const char *const *m = marks; *m; m++)
		if (strstr(s, *m))
			return true;
	for (const char *p = s; *p; p++) {
		size_t n = strspn(p, "0123456789");
		if (n == 4 && (strncmp(p, "19", 2) == 0 || strncmp(p, "20", 2) == 0))
			return true;
		p += n > 0 ? n - 1 : 0;
	}
	return false;
}

void claim_rule_rate(const struct claims *all, struct claim *c)
{
	bool sourced = names_a_source(c->text[COL_SOURCE]);
	(void)all;
	claim_set(c, sourced ? CLAIM_DEPENDS : CLAIM_UNSOURCED, NAN);
	claim_say(c, "How often something happens follows from no arithmetic: it must be counted.");
	if (sourced)
		claim_say(c, "It depends on what %.80s counted, and where.", c->text[COL_SOURCE]);
	else if (*c->text[COL_SOURCE])
		claim_say(c, "\"%.60s\" is where it is claimed, not who counted it.",
			c->text[COL_SOURCE]);
	else
		claim_say(c, "Column source is empty.");
	/* The rule of three: no event in n trials leaves up to 3/n at 95 %. */
	if (strcmp(c->text[COL_UNIT], "%") == 0 || strncmp(c->text[COL_UNIT], "% ", 2) == 0)
		if (c->value > 0 && c->value < 100)
			claim_say(c,
				"To show %s %% at most takes %s trials without a single event (95 %% "
				"confidence).",
				NUM(c->value), NUM(ceil(log(0.05) / log1p(-c->value / 100))));
}
