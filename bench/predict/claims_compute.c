// SPDX-License-Identifier: Apache-2.0
/*
 * Tokens per second and MFU: model FLOPs against the dense peak, against the memory that the states
 * need, against the network of a fully sharded step, and against each other.
 *
 * The floor of what a token costs is 6 times the weights that are multiplied (training.md 1 calls
 * them M): no convention and no implementation does with less. Conventions above it differ by the
 * embedding and by attention; "impossible" is said against the floor only.
 */
#include <math.h>
#include <string.h>

#include "bench/predict/claims_priv.h"

#define HOST_RATE 300e9 /* bytes/s of a host's memory that an optimizer on the CPU may reach */
#define HOST_ADAM 28.0  /* bytes per parameter: m, v, w and g read, m, v, w and the copy written */

static const char *dtype_name(const struct claim *c)
{
	if (c->work == DTYPE_F8)
		return c->gpu->dense8 > 0 ? "fp8" : "16-bit (it has no fp8)";
	if (c->work == DTYPE_F32 || c->work == DTYPE_TF32)
		return c->gpu->dense32 > 0 ? "fp32" : "tf32";
	return c->work == DTYPE_F16 ? "fp16" : c->work == DTYPE_BF16 ? "bf16" : "16-bit";
}

/* FLOPs of a trained token. */
struct cost {
	double floor;        /* the products that cannot be left out */
	double six_n;        /* the convention of the factor */
	double palm, causal; /* NAN without model or sequence length */
};

static struct cost cost_of(const struct claim *c)
{
	struct cost f = {.six_n = 6 * c->params, .palm = NAN, .causal = NAN};
	/* Of a size alone: at most a tenth may be an embedding that is only looked up. */
	f.floor = c->has_model ? 6 * (double)model_matmul_params(&c->model) : 0.9 * f.six_n;
	if (c->has_model && isfinite(c->seq)) {
		f.palm = model_flops_per_token(&c->model, (int64_t)c->seq, MFU_PALM);
		f.causal = model_flops_per_token(&c->model, (int64_t)c->seq, MFU_CAUSAL);
		f.floor = f.causal;
	}
	return f;
}

/* ---- the network and the host ---------------------------------------------------------------- */

static double nodes_of(const struct claim *c)
{
	double n = c->n_gpus / c->gpus_per_node;
	return n < 1 ? 1 : n;
}

/* Seconds that one micro-batch of a fully sharded step needs on the wire. A bandwidth-optimal
 * gather or scatter moves (nodes-1)/nodes of the parameters into each node, over its NICs together
 * (training.md 2.1). 0: nothing has to move; NAN: not known. */
static double wire_seconds(const struct claim *c)
{
	double bytes = claim_wire_bytes(c->scheme), nodes = nodes_of(c);
	if (bytes == 0 || c->n_gpus <= c->gpus_per_node)
		return 0;
	return bytes * c->params * (nodes - 1) / nodes / (c->gpus_per_node * c->nic_gbps / 8 * 1e9);
}

/* Seconds that the optimizer of an offloaded step needs in the host's memory. */
static double host_seconds(const struct claim *c)
{
	return c->scheme == SCHEME_OFFLOAD ? HOST_ADAM * c->params / nodes_of(c) / HOST_RATE : 0;
}

/* Is the rate beyond what the wire can feed? Needs tokens_per_gpu. */
static bool beyond_wire(struct claim *c, double tok_s)
{
	double s = wire_seconds(c);
	if (!(s > 0) || !isfinite(c->tokens) || tok_s * s <= c->tokens)
		return false;
	claim_set(c, CLAIM_IMPOSSIBLE, 100 * tok_s * s / c->tokens);
	claim_say(c,
		"With %s tokens per GPU and micro-batch the wire allows %s tok/s at most: %s bytes "
		"per parameter cross the NICs of a node, which takes %s s.",
		NUM(c->tokens), NUM(c->tokens / s), NUM(claim_wire_bytes(c->scheme)), NUM(s));
	return true;
}

/* What the wire asks of the tokens, where they are not told. @return the tokens it takes, or 0 */
static double tokens_for_wire(struct claim *c, double tok_s)
{
	double s = wire_seconds(c);
	if (!(s > 0) || isfinite(c->tokens))
		return 0;
	claim_say(c,
		"At %s Gb/s per GPU it takes at least %s tokens per GPU and micro-batch "
		"(tokens_per_gpu is empty), else the wire is the limit.",
		NUM(c->nic_gbps), NUM(tok_s * s));
	return tok_s * s;
}

/* ---- rates against the peak ------------------------------------------------------------------ */

static void say_share(struct claim *c, double tok_s, const struct cost *f, double peak)
{
	claim_say(c,
		"%s tok/s x 6 x %se9 parameters are %s TFLOP/s per GPU, %s %% of the dense %s peak of "
		"%s, %s TFLOP/s (6N",
		NUM(tok_s), NUM(c->params / 1e9), NUM(tok_s * f->six_n / 1e12),
		NUM(100 * tok_s * f->six_n / peak), dtype_name(c), c->gpu->name, NUM(peak / 1e12));
	if (isfinite(f->causal))
		fb_strbuf_printf(&c->why,
			"; %s %% with causal, %s %% with full attention over %s tokens",
			NUM(100 * tok_s * f->causal / peak), NUM(100 * tok_s * f->palm / peak),
			NUM(c->seq));
	else
		fb_strbuf_add(&c->why, "; attention comes on top");
	fb_strbuf_printf(&c->why, ").");
}

/* The verdict on a rate that is over the peak. */
static void over_peak(struct claim *c, double tok_s, const struct cost *f, double peak)
{
	double share = 100 * tok_s * f->six_n / peak, floor = 100 * tok_s * f->floor / peak;
	double fp8 = c->gpu->dense8 > 0 ? 100 * tok_s * f->six_n / c->gpu->dense8 : NAN;
	if (c->work == DTYPE_NONE && fp8 <= 100) {
		claim_set(c, CLAIM_DEPENDS, NAN);
		claim_say(c,
			"Only in fp8, whose dense peak it would use to %s %%: column dtype is empty.",
			NUM(fp8));
		return;
	}
	if (floor <= 100) {
		claim_set(c, CLAIM_DEPENDS, share);
		claim_say(c,
			"The products that cannot be left out need %s %%: it depends on how much of the "
			"parameters is an embedding.",
			NUM(floor));
		return;
	}
	claim_set(c, CLAIM_IMPOSSIBLE, share > 100 ? share : floor);
	claim_say(c, "The ceiling at 100 %% is %s tok/s per GPU.", NUM(tok_s * 100 / share));
	if (c->work != DTYPE_F8 && fp8 <= 100)
		claim_say(c, "Even the fp8 peak would be used to %s %%.", NUM(fp8));
}

/* Adam in mixed precision keeps 16 bytes per parameter; all in 16 bits it is half of that, and
 * beyond twice the memory nothing helps. */
static void judge_overfull(struct claim *c, double factor)
{
	claim_set(c, factor > 200 ? CLAIM_IMPOSSIBLE : CLAIM_DEPENDS, factor);
	claim_say(c,
		"Its states in mixed precision are %s GB per GPU, %s %% of its memory: such a run %s.",
		GB(claim_states_floor(c) * c->params / 1e9), NUM(factor),
		factor > 200 ? "does not fit"
			     : "fits with 16-bit optimizer states at most, which halve them");
}

/* Hybrid without its F is read as the node, which may be too small. */
static void note_hybrid(struct claim *c)
{
	struct claim node = *c;
	if (c->scheme != SCHEME_HYBRID || isfinite(c->shard) || !isfinite(c->gpus_per_node))
		return;
	node.shard = c->gpus_per_node;
	double factor = claim_overfull(&node);
	if (factor > 0)
		claim_say(c,
			"Sharded within a node of %s, as hybrid means where no F is told, it would not "
			"even fit: %s GB per GPU of %s GB.",
			NUM(c->gpus_per_node), GB(claim_states(&node).least * c->params / 1e9),
			GB(claim_gpu_memory(c)));
}

/* What arithmetic allows, nobody may have reached. */
static void note_best(struct claim *c, double mfu)
{
	if (mfu > 66)
		claim_say(c, "No published run known to this program passes an MFU of 65.3 %% "
			     "(MegaScale).");
}

/* ---- who else speaks of the same ------------------------------------------------------------- */

static bool same(double a, double b)
{
	return a == b || (!isfinite(a) && !isfinite(b));
}

static bool agree(double a, double b) /* or one of them is not told */
{
	return !isfinite(a) || !isfinite(b) || a == b;
}

static bool same_subject(const struct claim *a, const struct claim *b)
{
	return isfinite(a->params) && a->params == b->params && a->gpu == b->gpu &&
	       same(a->n_gpus, b->n_gpus) && a->scheme == b->scheme && same(a->shard, b->shard) &&
	       same(a->tp, b->tp) && same(a->pp, b->pp) && same(a->dp, b->dp) &&
	       agree(a->seq, b->seq) && agree(a->tokens, b->tokens) &&
	       (a->work == b->work || a->work == DTYPE_NONE || b->work == DTYPE_NONE) &&
	       strcmp(a->text[COL_SOURCE], b->text[COL_SOURCE]) == 0;
}

/* A claim on tokens, per GPU; NAN: it is on the whole cluster, whose size is not told. */
static double rate_of(const struct claim *c)
{
	return strcmp(c->q->name, "tokens_per_s") == 0 ? c->value / c->n_gpus : c->value;
}

static const struct claim *partner(const struct claims *all, const struct claim *c,
	void (*rule)(const struct claims *, struct claim *))
{
	for (size_t i = 0; i < all->n; i++) {
		const struct claim *o = &all->row[i];
		if (o != c && o->q->rule == rule && isfinite(o->value) && !o->unit_empty &&
			same_subject(o, c))
			return o;
	}
	return NULL;
}

/* ---- tokens per second ----------------------------------------------------------------------- */

/* What is not told, with what the rest still says. @return true when it ends the judgement */
static bool tokens_lack(struct claim *c, double tok_s)
{
	if (!isfinite(tok_s)) {
		claim_empty(c, COL_N_GPUS, "a rate of the whole cluster is judged per GPU");
		return true;
	}
	if (!isfinite(c->params))
		claim_empty(c, COL_MODEL, "a token's FLOPs are those of its model");
	if (!c->gpu)
		claim_empty(c, COL_GPU, "the peak is that of its GPU");
	if (c->gpu && !isfinite(c->params))
		claim_say(c, "At %s tok/s the dense %s peak of %s carries at most %se9 parameters.",
			NUM(tok_s), dtype_name(c), c->gpu->name,
			NUM(claim_peak(c->gpu, c->work) / (6e9 * tok_s)));
	if (!c->gpu && isfinite(c->params))
		claim_say(c, "It takes a dense peak of at least %s TFLOP/s per GPU.",
			NUM(tok_s * cost_of(c).six_n / 1e12));
	return !c->gpu || !isfinite(c->params);
}

/* The MFU that would agree with tokens whose 6N share is `implied`, in any convention. Attention is
 * not known without shape and sequence length: of a shape that is not known h is that of a usual
 * one (N = 12 L h^2, h = 100 L), twice over; a length that is not told is the model's longest. */
static void agreement(
	const struct claim *c, const struct cost *f, double implied, double *lo, double *hi)
{
	double h = cbrt(c->params * 100 / 12);
	*lo = 0.93 * implied;
	if (isfinite(f->causal)) {
		*lo = 0.95 * implied * fmin(1, f->causal / f->six_n);
		*hi = 1.05 * implied * f->palm / f->six_n;
	} else if (c->has_model) {
		int64_t longest = c->model.positions > 8192 ? c->model.positions : 8192;
		*hi = 1.05 * implied * model_flops_per_token(&c->model, longest, MFU_PALM) /
		      f->six_n;
	} else if (isfinite(c->seq)) {
		*hi = 1.05 * implied * (1 + 2 * c->seq / (6 * h));
	} else {
		*hi = 1.35 * implied;
	}
}

static void say_stated_mfu(const struct claims *all, struct claim *c, double tok_s, double share)
{
	const struct claim *o = partner(all, c, claim_rule_mfu);
	struct claim both = *c;
	double lo, hi;
	if (!o || strcmp(o->q->name, "mfu") != 0)
		return;
	both.seq = isfinite(c->seq) ? c->seq : o->seq;
	struct cost f = cost_of(&both);
	agreement(&both, &f, share, &lo, &hi);
	if (o->value >= lo && o->value <= hi) {
		claim_say(c, "Row %.40s states an MFU of %s %% for the same: both agree.",
			o->text[COL_ID], NUM(o->value));
		return;
	}
	double other = tok_s * o->value / share;
	claim_say(c,
		"Row %.40s states an MFU of %s %% for the same, which is %s tok/s: here it is %.2f "
		"times that.",
		o->text[COL_ID], NUM(o->value), NUM(other), tok_s / other);
}

void claim_rule_tokens(const struct claims *all, struct claim *c)
{
	double tok_s = rate_of(c);
	if (tokens_lack(c, tok_s))
		return;
	struct cost f = cost_of(c);
	double peak = claim_peak(c->gpu, c->work), share = 100 * tok_s * f.six_n / peak;
	double overfull = claim_overfull(c);
	say_share(c, tok_s, &f, peak);
	if (share > 100 || tok_s * f.floor > peak) {
		over_peak(c, tok_s, &f, peak);
	} else if (overfull > 0) {
		judge_overfull(c, overfull);
	} else if (!beyond_wire(c, tok_s)) {
		claim_set(c, CLAIM_POSSIBLE, share);
		tokens_for_wire(c, tok_s);
		note_best(c, share);
	}
	if (c->verdict != CLAIM_POSSIBLE)
		note_hybrid(c);
	say_stated_mfu(all, c, tok_s, share);
}

void claim_rule_tflops(const struct claims *all, struct claim *c)
{
	(void)all;
	if (!c->gpu) {
		claim_empty(c, COL_GPU, "the peak is that of its GPU");
		return;
	}
	double peak = claim_peak(c->gpu, c->work) / 1e12, share = 100 * c->value / peak;
	claim_say(c, "%s TFLOP/s are %s %% of the dense %s peak of %s, %s TFLOP/s.", NUM(c->value),
		NUM(share), dtype_name(c), c->gpu->name, NUM(peak));
	claim_set(c, share > 100 ? CLAIM_IMPOSSIBLE : CLAIM_POSSIBLE, share);
	if (share > 100 && c->work == DTYPE_NONE && c->value * 1e12 <= c->gpu->dense8) {
		claim_set(c, CLAIM_DEPENDS, NAN);
		claim_say(c, "Only in fp8 (%s TFLOP/s): column dtype is empty.",
			NUM(c->gpu->dense8 / 1e12));
	}
}

/* ---- MFU ------------------------------------------------------------------------------------- */

/* Two shares that differ by a known mistake. @return what it is, or NULL */
static const char *known_mistake(double stated, double implied)
{
	double r = implied / stated;
	if (fabs(r - 2) < 0.05)
		return "Half of what it is: it was taken against the sparse peak, of which no dense product "
		       "can reach more than half.";
	if (fabs(1 / r - 4.0 / 3) < 0.05)
		return "Four thirds of it: it counts the recomputation, and is an HFU.";
	return NULL;
}

/* Against the tokens that another row states of the same run. @return false: none does */
static bool mfu_by_tokens(const struct claims *all, struct claim *c)
{
	const struct claim *o = partner(all, c, claim_rule_tokens);
	double tok_s = o ? rate_of(o) : NAN;
	if (!isfinite(tok_s) || !c->gpu || strcmp(c->q->name, "mfu") != 0)
		return false;
	struct claim both = *c;
	both.seq = isfinite(c->seq) ? c->seq : o->seq;
	struct cost f = cost_of(&both);
	double peak = claim_peak(c->gpu, c->work), implied = 100 * tok_s * f.six_n / peak;
	double lo, hi;
	agreement(&both, &f, implied, &lo, &hi);
	double fits = tok_s * c->value / implied;
	const char *mistake = NULL;
	const double by[] = {implied, implied * f.causal / f.six_n, implied * f.palm / f.six_n};
	for (size_t i = 0; i < 3 && !mistake; i++)
		mistake = known_mistake(c->value, by[i]);
	claim_say(c, "Row %.40s states %s tok/s for the same, which is %s %% (6N).",
		o->text[COL_ID], NUM(tok_s), NUM(implied));
	if (c->value >= lo && c->value <= hi) {
		claim_set(c, CLAIM_POSSIBLE, c->value);
		claim_say(c, "Both agree.");
	} else if (tok_s * f.floor > peak) {
		claim_set(c, CLAIM_DEPENDS, NAN);
		claim_say(c,
			"More than the peak allows: %s %% can only hold with %s tok/s, %.2f times fewer.",
			NUM(c->value), NUM(fits), tok_s / fits);
	} else if (mistake) {
		claim_set(c, CLAIM_DEPENDS, 100 * c->value / implied);
		claim_say(c, "%s", mistake);
	} else {
		claim_set(c, CLAIM_IMPOSSIBLE, 100 * c->value / implied);
		claim_say(c, "%s %% would be %s tok/s: one of the two rows is wrong.",
			NUM(c->value), NUM(fits));
	}
	return true;
}

/* A share of 1 that was taken for one of 100. */
static void note_small(struct claim *c)
{
	if (c->value <= 1 && !strstr(c->text[COL_UNIT], "fraction"))
		claim_say(c,
			"So little is seldom published: if a share of 1 is meant, its unit is "
			"fraction, and it is %s %%.",
			NUM(100 * c->value));
}

static void mfu_without_model(struct claim *c)
{
	double gb = claim_gpu_memory(c);
	claim_empty(c, COL_MODEL, "neither tokens nor memory can be checked");
	if (!c->gpu)
		return;
	claim_say(c, "%s %% is %s TFLOP/s per %s in %s.", NUM(c->value),
		NUM(c->value / 100 * claim_peak(c->gpu, c->work) / 1e12), c->gpu->name,
		dtype_name(c));
	if (isfinite(gb) && isfinite(c->n_gpus))
		claim_say(c,
			"%s of them hold the states of at most %se9 parameters, 16 bytes each, sharded "
			"over all.",
			NUM(c->n_gpus), NUM(c->n_gpus * gb / 16));
}

/* The optimizer on the CPU: what it takes even if it reaches all of the host's memory rate. */
static void mfu_offloaded(struct claim *c, double peak)
{
	double s = host_seconds(c), m = c->value / 100;
	if (!(s > 0))
		return;
	double need = m / (1 - m) * s * peak / (6 * c->params);
	claim_say(c,
		"The optimizer moves %g bytes per parameter in the host's memory: %s s per step at "
		"300 GB/s a node, so it takes more than %s tokens per GPU and step. DeepSpeed's own "
		"charts of Llama-3-70B with ZeRO-3 offload show 1 to 26 %%.",
		HOST_ADAM, NUM(s), NUM(need));
	if (isfinite(c->tokens) && c->tokens >= need)
		return;
	claim_set(c, CLAIM_DEPENDS, NAN);
	claim_say(c, isfinite(c->tokens)
			     ? "It depends on the micro-batches of a step."
			     : "It depends on the tokens of a step: tokens_per_gpu is empty.");
}

void claim_rule_mfu(const struct claims *all, struct claim *c)
{
	bool hfu = strcmp(c->q->name, "hfu") == 0;
	if (c->value > 100) {
		claim_set(c, CLAIM_IMPOSSIBLE, c->value);
		claim_say(c, "%s is a share of the dense peak: %s %% is more than there is.",
			hfu ? "HFU" : "MFU", NUM(c->value));
		return;
	}
	if (mfu_by_tokens(all, c)) {
		note_hybrid(c);
		return;
	}
	if (!isfinite(c->params)) {
		mfu_without_model(c);
		return;
	}
	if (!c->gpu) {
		claim_empty(c, COL_GPU, "a share is one of its GPU's peak");
		return;
	}
	double peak = claim_peak(c->gpu, c->work), tok_s = c->value / 100 * peak / (6 * c->params);
	double overfull = claim_overfull(c);
	claim_say(c, "%s %% of the dense %s peak of %s is %s tok/s per GPU (6N).", NUM(c->value),
		dtype_name(c), c->gpu->name, NUM(tok_s));
	note_small(c);
	if (overfull > 0) {
		judge_overfull(c, overfull);
		return;
	}
	if (beyond_wire(c, tok_s))
		return;
	claim_set(c, CLAIM_POSSIBLE, c->value);
	if (tokens_for_wire(c, tok_s) > 8192)
		claim_set(c, CLAIM_DEPENDS, NAN);
	mfu_offloaded(c, peak);
	note_hybrid(c);
	note_best(c, c->value);
}
