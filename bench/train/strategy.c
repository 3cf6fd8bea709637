// SPDX-License-Identifier: Apache-2.0
/*
 * Strategies by name, and the closed forms of a step's bytes and memory. Everything here follows
 * from sizes alone: no task is counted and nothing is allocated. The schedule and the engine arrive
 * at the same figures by counting.
 */
#include "bench/train/strategy.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "bench/core/units.h"
#include "collectives/exchange.h"

const char *const strategy_words[] = {
	"ddp",
	"zero1",
	"zero2",
	"zero3",
	"fsdp",
	"shard-grad-op",
	"hybrid:F",
	"offload",
	NULL,
};

static const struct {
	const char *word;
	enum strategy_kind kind;
	bool optimizer, grads, params, keep;
} known[] = {
	{"ddp", STRATEGY_DDP, false, false, false, false},
	{"zero1", STRATEGY_ZERO1, true, false, false, false},
	{"zero2", STRATEGY_ZERO2, true, true, false, false},
	{"zero3", STRATEGY_ZERO3, true, true, true, false},
	{"fsdp", STRATEGY_ZERO3, true, true, true, false},
	{"shard-grad-op", STRATEGY_SHARD_GRAD_OP, true, true, true, true},
	{"hybrid", STRATEGY_HYBRID, true, true, true, false},
	{"offload", STRATEGY_OFFLOAD, true, true, true, false},
};
#define KNOWN ((int)(sizeof(known) / sizeof(known[0])))

/* ---- words ----------------------------------------------------------------------------------- */

static int unknown(const char *text, struct fb_err *e)
{
	const char *best = strategy_words[0];
	char small[48]; /* no word has capitals, and FSDP is not ddp */
	unsigned least = ~0u;
	size_t n = 0;
	for (; text[n] && n + 1 < sizeof(small); n++)
		small[n] = (char)tolower((unsigned char)text[n]);
	small[n] = '\0';
	for (int i = 0; strategy_words[i]; i++) {
		unsigned d = fb_edit_distance(small, strategy_words[i]);
		if (d < least) {
			least = d;
			best = strategy_words[i];
		}
	}
	int rc = fb_fail_usage(e, "unknown strategy \"%.40s\"; the nearest is \"%s\"", text, best);
	fb_hint(e, "strategies are ddp, zero1, zero2, zero3 (fsdp), shard-grad-op, hybrid:F and "
		   "offload");
	return rc;
}

/* "1, 2, 4, 8" of 8 */
static const char *divisors(int n, char *buf, size_t len)
{
	size_t at = 0;
	buf[0] = '\0';
	for (int d = 1; d <= n && at + 16 < len; d++)
		if (n % d == 0)
			at += (size_t)snprintf(buf + at, len - at, "%s%d", at ? ", " : "", d);
	return buf;
}

static int hybrid_group(const char *text, int ranks, int *shard, struct fb_err *e)
{
	char list[200];
	uint64_t f;
	struct fb_err why = {0};
	int rc;
	divisors(ranks, list, sizeof(list));
	if (fb_parse_u64(text, 1, INT32_MAX, &f, &why) != 0)
		rc = fb_fail_usage(e,
			"strategy hybrid%s%.20s: F is the number of ranks that share one copy, a "
			"whole number over 0",
			*text ? ":" : "", text);
	else if (ranks % (int64_t)f != 0)
		rc = fb_fail_usage(e,
			"strategy hybrid:%llu: groups of %llu do not divide %d ranks evenly",
			(unsigned long long)f, (unsigned long long)f, ranks);
	else
		rc = 0;
	if (rc != 0)
		fb_hint(e, "with %d ranks F may be %s", ranks, list);
	else
		*shard = (int)f;
	return rc;
}

int strategy_parse(const char *text, int ranks, struct strategy *s, struct fb_err *e)
{
	const char *colon = strchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : strlen(text);
	int k = 0;
	memset(s, 0, sizeof(*s));
	if (ranks < 1)
		return fb_fail_usage(e, "strategy %.40s: %d ranks", text, ranks);
	while (k < KNOWN && !(strlen(known[k].word) == n && strncmp(known[k].word, text, n) == 0))
		k++;
	if (k == KNOWN)
		return unknown(text, e);
	bool hybrid = known[k].kind == STRATEGY_HYBRID;
	if (colon && !hybrid) {
		fb_fail_usage(e, "strategy \"%.40s\": only hybrid takes a number", text);
		fb_hint(e, "leave \"%.20s\" out, or use hybrid%.20s", colon, colon);
		return -EINVAL;
	}
	s->kind = known[k].kind;
	s->shard = s->kind == STRATEGY_DDP ? 1 : ranks;
	if (hybrid) {
		int rc = hybrid_group(colon ? colon + 1 : "", ranks, &s->shard, e);
		if (rc != 0)
			return rc;
	}
	s->replicate = ranks / s->shard;
	s->shard_optimizer = known[k].optimizer;
	s->shard_grads = known[k].grads;
	s->shard_params = known[k].params;
	s->keep_gathered = known[k].keep;
	if (hybrid)
		snprintf(s->name, sizeof(s->name), "hybrid:%d", s->shard);
	else
		snprintf(s->name, sizeof(s->name), "%s", known[k].word);
	return 0;
}

struct shard_cut shard_cut(int64_t elements, int shard)
{
	int64_t per_rank = (elements + shard - 1) / shard;
	return (struct shard_cut){elements, per_rank, per_rank * shard};
}

/* ---- the model, cut -------------------------------------------------------------------------- */

struct cuts {
	struct shard_cut block, root;
	double layers;
	double per_rank, padded; /* of all units */
	int64_t largest, largest_padded;
};

static struct cuts cut_model(const struct step_config *c)
{
	struct model_unit block, root;
	model_unit(&c->model, 0, &block);
	model_unit(&c->model, c->model.layers, &root);
	struct cuts k = {
		.block = shard_cut(block.elements, c->strategy.shard),
		.root = shard_cut(root.elements, c->strategy.shard),
		.layers = (double)c->model.layers,
	};
	bool r = k.root.per_rank > k.block.per_rank;
	k.per_rank = k.layers * (double)k.block.per_rank + (double)k.root.per_rank;
	k.padded = k.layers * (double)k.block.padded + (double)k.root.padded;
	k.largest = r ? k.root.per_rank : k.block.per_rank;
	k.largest_padded = r ? k.root.padded : k.block.padded;
	return k;
}

static double size_of(enum tr_dtype t)
{
	return (double)tr_dtype_size(t);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Elements per rank that are gathered in a step. A block's parameters are gathered forward and
 * again backward, but for the last block, which stays; the root's once a step, since they do not
 * change before its end. */
static double gathered_elements(const struct step_config *c, const struct cuts *k)
{
	double blocks = c->strategy.keep_gathered ? k->layers : 2 * k->layers - 1;
	if (c->strategy.shard_params)
		return c->micro_batches * blocks * (double)k->block.per_rank +
		       (double)k->root.per_rank;
	/* the new parameters, after the update */
	return c->strategy.shard_optimizer ? k->per_rank : 0;
}

void step_bytes(const struct step_config *c, struct step_bytes *b)
{
	const struct strategy *s = &c->strategy;
	struct cuts k = cut_model(c);
	double others = s->shard - 1, replicas = s->replicate;
	double work = size_of(c->work), wire = size_of(c->reduce);
	double state = 3 * size_of(tr_grad_dtype(c->work));
	double gathered = gathered_elements(c, &k), n = step_reductions(c);
	memset(b, 0, sizeof(*b));
	b->all_gather = others * gathered * work;
	if (s->shard_optimizer)
		b->reduce_scatter = n * others * k.per_rank * wire;
	if (s->kind == STRATEGY_DDP || s->kind == STRATEGY_HYBRID)
		b->all_reduce =
			n * 2 * (replicas - 1) * wire *
			(k.layers * (double)shard_cut(k.block.per_rank, s->replicate).per_rank +
				(double)shard_cut(k.root.per_rank, s->replicate).per_rank);
	/* one number of 8 bytes, there and back */
	b->norm = c->clip ? 2 * others * 8 : 0;
	if (s->kind != STRATEGY_OFFLOAD)
		return;
	b->offload_out = k.per_rank * size_of(step_sum_dtype(c));
	b->offload_in = c->offload_params ? gathered * work : k.per_rank * work;
	if (c->offload_file) {
		b->offload_out += k.per_rank * state;
		b->offload_in += k.per_rank * state;
	}
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Staging of a reduce-scatter of `count` elements per rank, see exchange.h. */
static double exchange_staging(int ranks, int64_t count, double element)
{
	double blocks = ranks <= 1 ? 0 : ranks <= EXCHANGE_DIRECT ? ranks - 1 : 2;
	return blocks * (double)count * element;
}

static void states(const struct step_config *c, const struct cuts *k, struct step_memory *m)
{
	enum tr_dtype G = tr_grad_dtype(c->work);
	double work = size_of(c->work), g = size_of(G), sum = size_of(step_sum_dtype(c));
	bool same = c->work == G, offload = c->strategy.kind == STRATEGY_OFFLOAD;
	double blocks = c->model.layers < 2 ? 1 : 2;
	double units = blocks * (double)k->block.padded + (double)k->root.padded;
	if (!c->strategy.shard_params) {
		m->params = k->padded * work;
		m->master = same ? 0 : k->per_rank * g;
	} else if (offload) {
		*(c->offload_params ? &m->host : &m->params) += k->per_rank * work;
		m->host += c->offload_file ? 0 : k->per_rank * g;
	} else {
		m->params = k->per_rank * work;
		m->master = same ? 0 : k->per_rank * g;
	}
	if (c->strategy.shard_params)
		m->gathered = (c->strategy.keep_gathered ? k->padded : units) * work;
	if (c->offload_params)
		m->gathered += (double)k->largest * work;
	if (!offload)
		m->optimizer = 2 * k->per_rank * g;
	else if (!c->offload_file)
		m->host += 2 * k->per_rank * g;
	if (offload)
		m->host += 2 * (double)k->largest * (sum + (c->offload_file ? 3 * g : 0));
	/* Gradients: whole until the step's end, or two units' and the root's under way. */
	m->grads = (step_grads_whole(c) ? k->padded : k->per_rank) * sum;
	if (!step_grads_whole(c)) {
		m->grad_units = units * sum;
		if (c->strategy.kind == STRATEGY_HYBRID && c->strategy.replicate > 1 &&
			c->micro_batches > 1)
			m->grads += k->per_rank * sum; /* of one micro-batch */
	}
	if (c->deterministic)
		m->grad_units += (double)(k->largest_padded + k->largest) * g;
}

static void wire(const struct step_config *c, const struct cuts *k, struct step_memory *m)
{
	double size = size_of(c->reduce);
	bool cast = c->reduce != step_sum_dtype(c), scatter = c->strategy.shard_optimizer;
	if (cast && scatter)
		m->wire += (double)k->largest_padded * size;
	if (cast && (!scatter || c->strategy.replicate > 1))
		m->wire += (double)k->largest * size;
	if (scatter && (cast || (!step_grads_whole(c) && c->micro_batches > 1)))
		m->wire += (double)k->largest * size;
	m->wire += exchange_staging(c->strategy.shard, k->largest, size);
	/* An all-reduce begins as a reduce-scatter of its n-th parts. */
	m->wire += exchange_staging(
		c->strategy.replicate, shard_cut(k->largest, c->strategy.replicate).per_rank, size);
}

void step_memory(const struct step_config *c, struct step_memory *m)
{
	struct cuts k = cut_model(c);
	/* With sums in fixed point each sequence goes through the net by itself. */
	int64_t chunks = c->deterministic ? c->micro_seqs : 1;
	const struct net net = {
		.m = &c->model,
		.work = c->work,
		.seqs = c->micro_seqs / chunks,
		.seq = c->seq,
		.recompute = c->recompute,
	};
	double layers = (double)c->model.layers, n = (double)chunks;
	memset(m, 0, sizeof(*m));
	states(c, &k, m);
	wire(c, &k, m);
	/* Every block's input and the last one's output, what each keeps, and one gradient. */
	m->activations = (layers + 2) * n * (double)net_x_bytes(&net) +
			 layers * n * (double)net_saved_bytes(&net);
	m->scratch = (double)net_scratch_bytes(&net);
	m->total = m->params + m->gathered + m->master + m->optimizer + m->grads + m->grad_units +
		   m->wire + m->activations + m->scratch;
}
