// SPDX-License-Identifier: Apache-2.0
/*
 * The plan's figures: one row a strategy, each from the closed forms, held against the memory of
 * known GPUs and the rates of known networks; and the same as JSON.
 */
#include "bench/train/train_plan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/train/train_plan_priv.h"

#define DEFAULT_NODE     8
#define MAX_MICRO_TOKENS ((int64_t)1 << 33)
#define MAX_RANKS        (1 << 24)
#define DEFAULT_SHARE    0.55 /* what the best published bf16 runs reach */

const double plan_nic_bits[PLAN_NICS] = {25e9, 50e9, 100e9, 200e9, 400e9, 800e9};

#define FIT_RULE                                                                             \
	"memory of a rank <= the GPU's memory less a reserve for the driver's context, the " \
	"communication library's buffers and fragmentation"
#define T_STAR_RULE                                                                                              \
	"share * dense peak (fp32: tf32's) * bytes out of a node per micro-batch / (FLOPs of a token by PaLM's " \
	"count * rate of the node's network cards); with fewer tokens sending is exposed, "                      \
	"whatever is overlapped; for many nodes, and (n-1)/n of it for n"

/* ---- tokens that hide the network ------------------------------------------------------------ */

double train_plan_node_bytes(const struct step_config *c, int ranks_per_node)
{
	const struct strategy *s = &c->strategy;
	double f = s->shard, r = s->replicate, g = ranks_per_node, sum = 0;
	struct step_bytes b;
	step_bytes(c, &b);
	/* A rank sends (n-1)/n of what a node must send of the whole, for there is one more node
	 * after each but the last. */
	if (f > g)
		sum += (b.all_gather + b.reduce_scatter) * f / (f - 1);
	/* Each rank's shard is reduced with its replicas on other nodes; replicas on the same node
	 * add up there first. */
	if (r > 1 && f * r > g)
		sum += fmin(f, g) * b.all_reduce * r / (r - 1);
	return sum;
}

double train_plan_t_star(
	const struct step_config *c, int ranks_per_node, double share, double peak, double nic)
{
	double bytes = train_plan_node_bytes(c, ranks_per_node) / c->micro_batches;
	return share * peak * bytes /
	       (model_flops_per_token(&c->model, c->seq, MFU_PALM) * nic * ranks_per_node);
}

/* ---- rows ------------------------------------------------------------------------------------ */

double plan_room(const struct gpu_peak *g)
{
	return g->capacity - TRAIN_PLAN_RESERVE;
}

double plan_peak(const struct gpu_peak *g, enum tr_dtype work)
{
	return work == TR_BF16 ? g->bf16 : work == TR_F32 ? g->tf32 : NAN;
}

double plan_sent(const struct step_bytes *b)
{
	return b->all_gather + b->reduce_scatter + b->all_reduce + b->norm;
}

static double total_memory(const struct step_config *c, enum tr_recompute r)
{
	struct step_config copy = *c;
	struct step_memory m;
	copy.recompute = r;
	step_memory(&copy, &m);
	return m.total;
}

/* The base on that many ranks by another strategy. */
static int config_of(const struct step_config *base, const char *word, int ranks,
	struct step_config *c, struct fb_err *e)
{
	*c = *base;
	c->ranks = ranks;
	int rc = strategy_parse(word, ranks, &c->strategy, e);
	if (rc == 0 && c->strategy.kind != STRATEGY_OFFLOAD)
		c->offload_params = c->offload_file = false;
	return rc;
}

static int find_smallest(const struct plan *p, struct plan_row *r, struct fb_err *e)
{
	for (int n = 1; n <= PLAN_MAX_RANKS; n *= 2) {
		struct step_config c;
		char word[24];
		/* What a hybrid's rank holds depends on its group, and on there being another. */
		bool hybrid = r->c.strategy.kind == STRATEGY_HYBRID;
		if (hybrid)
			snprintf(word, sizeof(word), "hybrid:%d", n);
		else
			snprintf(word, sizeof(word), "%s", r->c.strategy.name);
		int rc = config_of(&r->c, word, hybrid ? 2 * n : n, &c, e);
		if (rc != 0)
			return rc;
		double total = total_memory(&c, c.recompute);
		double full = total_memory(&c, TR_RECOMPUTE_FULL);
		for (int i = 0; i < p->gpus; i++) {
			double room = plan_room(p->gpu[i]);
			if (r->smallest[i] == 0 && total <= room)
				r->smallest[i] = n;
			if (r->smallest_full[i] == 0 && full <= room)
				r->smallest_full[i] = n;
		}
	}
	return 0;
}

static int add_row(struct plan *p, const char *word, struct fb_err *e)
{
	struct plan_row *r = &p->row[p->rows];
	int rc = config_of(p->base, word, p->base->ranks, &r->c, e);
	if (rc != 0)
		return rc;
	for (int i = 0; i < p->rows; i++)
		if (strcmp(p->row[i].c.strategy.name, r->c.strategy.name) == 0)
			return 0;
	step_bytes(&r->c, &r->bytes);
	step_memory(&r->c, &r->memory);
	r->full = total_memory(&r->c, TR_RECOMPUTE_FULL);
	r->node_bytes = train_plan_node_bytes(&r->c, p->ranks_per_node);
	rc = find_smallest(p, r, e);
	p->rows++;
	return rc;
}

static int by_memory(const void *a, const void *b)
{
	const struct gpu_peak *x = *(const struct gpu_peak *const *)a;
	const struct gpu_peak *y = *(const struct gpu_peak *const *)b;
	if (x->capacity != y->capacity)
		return x->capacity < y->capacity ? -1 : 1;
	return x->bf16 < y->bf16 ? -1 : x->bf16 > y->bf16;
}

static void find_gpus(struct plan *p)
{
	size_t n;
	const struct gpu_peak *all = gpu_peak_all(&n);
	for (size_t i = 0; i < n && p->gpus < PLAN_GPUS; i++)
		if (all[i].label)
			p->gpu[p->gpus++] = &all[i];
	qsort(p->gpu, (size_t)p->gpus, sizeof(p->gpu[0]), by_memory);
}

/* Bytes of activations are counted in 64 bits. */
static int check_tokens(const struct step_config *c, struct fb_err *e)
{
	int64_t tokens, step;
	bool fit = !__builtin_mul_overflow(c->micro_seqs, c->seq, &tokens) &&
		   tokens <= MAX_MICRO_TOKENS &&
		   !__builtin_mul_overflow(tokens, (int64_t)c->micro_batches * c->ranks, &step) &&
		   c->ranks <= MAX_RANKS;
	if (fit)
		return 0;
	fb_fail_usage(e,
		"%d ranks with %d micro-batches of %lld sequences of %lld tokens: that is no step",
		c->ranks, c->micro_batches, (long long)c->micro_seqs, (long long)c->seq);
	fb_hint(e,
		"at most %lld tokens of a micro-batch, %d ranks and 2^63 tokens in all: use a "
		"smaller --micro-batch, --accumulate or --seq",
		(long long)MAX_MICRO_TOKENS, MAX_RANKS);
	return -EINVAL;
}

int plan_make(const struct step_config *base, const struct train_plan_opts *o, struct plan *p,
	struct fb_err *e)
{
	static const char *const words[] = {
		"ddp", "zero1", "zero2", "zero3", "shard-grad-op", NULL, "offload"};
	char hybrid[24];
	memset(p, 0, sizeof(*p));
	p->base = base;
	p->ranks_per_node = o && o->ranks_per_node > 0 ? o->ranks_per_node : DEFAULT_NODE;
	p->share = o && o->share > 0 ? o->share : DEFAULT_SHARE;
	if (base->ranks < 1 || base->micro_seqs < 1 || base->micro_batches < 1 || base->seq < 1)
		return fb_fail_usage(e, "a plan needs a rank, a sequence and a token at least");
	if (base->seq > base->model.positions) {
		fb_fail_usage(e, "sequences of %lld tokens, but %s has %lld positions",
			(long long)base->seq, base->model.name, (long long)base->model.positions);
		fb_hint(e, "use --seq %lld at most", (long long)base->model.positions);
		return -EINVAL;
	}
	int rc = model_check(&base->model, e);
	if (rc == 0)
		rc = check_tokens(base, e);
	find_gpus(p);
	int g = p->ranks_per_node;
	bool groups = g > 1 && g < base->ranks && base->ranks % g == 0;
	snprintf(hybrid, sizeof(hybrid), "hybrid:%d", g);
	for (size_t i = 0; rc == 0 && i < sizeof(words) / sizeof(words[0]); i++) {
		if (words[i])
			rc = add_row(p, words[i], e);
		else if (groups)
			rc = add_row(p, hybrid, e);
		if (rc == 0 && !words[i] && base->strategy.kind == STRATEGY_HYBRID)
			rc = add_row(p, base->strategy.name, e);
	}
	return rc;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *model_json(const struct model *m)
{
	struct model_unit block, root;
	json_t *j = json_object();
	model_unit(m, 0, &block);
	model_unit(m, m->layers, &root);
	fb_json_set_str(j, "name", m->name);
	fb_json_set_str(j, "family", model_family_names[m->family]);
	fb_json_set_int(j, "layers", m->layers);
	fb_json_set_int(j, "hidden", m->hidden);
	fb_json_set_int(j, "heads", m->heads);
	fb_json_set_int(j, "kv_heads", m->kv_heads);
	fb_json_set_int(j, "head_dim", m->head_dim);
	fb_json_set_int(j, "ffn", m->ffn);
	fb_json_set_int(j, "vocab", m->vocab);
	fb_json_set_bool(j, "tied", m->tied);
	fb_json_set_int(j, "parameters", model_params(m));
	fb_json_set_int(j, "matmul_parameters", model_matmul_params(m));
	fb_json_set_int(j, "block_parameters", block.elements);
	fb_json_set_int(j, "root_parameters", root.elements);
	return j;
}

static json_t *config_json(const struct plan *p)
{
	const struct step_config *c = p->base;
	json_t *j = json_object();
	fb_json_set_int(j, "ranks", c->ranks);
	fb_json_set_int(j, "ranks_per_node", p->ranks_per_node);
	fb_json_set_int(j, "seq", c->seq);
	fb_json_set_int(j, "micro_batch", c->micro_seqs);
	fb_json_set_int(j, "accumulate", c->micro_batches);
	fb_json_set_int(j, "tokens_per_micro_batch", c->micro_seqs * c->seq);
	fb_json_set_int(j, "tokens_per_step", c->micro_seqs * c->seq * c->micro_batches * c->ranks);
	fb_json_set_str(j, "dtype", tr_dtype_names[c->work]);
	fb_json_set_str(j, "state_dtype", tr_dtype_names[tr_grad_dtype(c->work)]);
	fb_json_set_str(j, "reduce_dtype", tr_dtype_names[c->reduce]);
	fb_json_set_str(j, "recompute", tr_recompute_names[c->recompute]);
	fb_json_set_bool(j, "sync_each", c->sync_each);
	fb_json_set_bool(j, "clip", c->clip);
	return j;
}

struct figure {
	const char *key;
	double value;
};
static json_t *figures_json(const struct figure *f)
{
	json_t *j = json_object();
	for (; f->key; f++)
		fb_json_set_real(j, f->key, f->value, NULL);
	return j;
}

static json_t *bytes_json(const struct plan_row *r)
{
	const struct step_bytes *b = &r->bytes;
	const struct figure f[] = {
		{"all_gather", b->all_gather},
		{"reduce_scatter", b->reduce_scatter},
		{"all_reduce", b->all_reduce},
		{"norm", b->norm},
		{"sent", plan_sent(b)},
		{"offload_out", b->offload_out},
		{"offload_in", b->offload_in},
		{"out_of_node", r->node_bytes},
		{NULL, 0},
	};
	return figures_json(f);
}

static json_t *memory_json(const struct plan_row *r)
{
	const struct step_memory *m = &r->memory;
	const struct figure f[] = {
		{"params", m->params},
		{"gathered", m->gathered},
		{"master", m->master},
		{"optimizer", m->optimizer},
		{"grads", m->grads},
		{"grad_units", m->grad_units},
		{"wire", m->wire},
		{"activations", m->activations},
		{"scratch", m->scratch},
		{"total", m->total},
		{"total_full_recompute", r->full},
		{"host", m->host},
		{NULL, 0},
	};
	return figures_json(f);
}

static void set_ranks(json_t *j, const char *key, int ranks)
{
	if (ranks > 0)
		fb_json_set_int(j, key, ranks);
	else
		fb_json_set_real(j, key, NAN, "no number of ranks makes it fit");
}

static json_t *fits_json(const struct plan *p, const struct plan_row *r)
{
	json_t *all = json_array();
	for (int i = 0; i < p->gpus; i++) {
		json_t *j = json_object();
		double room = plan_room(p->gpu[i]);
		fb_json_set_str(j, "gpu", p->gpu[i]->label);
		fb_json_set_bool(j, "fits", r->memory.total <= room);
		fb_json_set_bool(j, "fits_full_recompute", r->full <= room);
		fb_json_set_real(j, "share_of_room", r->memory.total / room, NULL);
		set_ranks(j, "smallest_group", r->smallest[i]);
		set_ranks(j, "smallest_group_full_recompute", r->smallest_full[i]);
		json_array_append_new(all, j);
	}
	return all;
}

/* By GPU, tokens at each of the rule's network rates. */
static json_t *t_star_json(const struct plan *p, const struct plan_row *r)
{
	json_t *all = json_array();
	for (int i = 0; i < p->gpus; i++) {
		double peak = plan_peak(p->gpu[i], r->c.work);
		json_t *j = json_object(), *tokens = json_array();
		for (int n = 0; n < PLAN_NICS; n++)
			json_array_append_new(
				tokens, fb_json_real(train_plan_t_star(&r->c, p->ranks_per_node,
						p->share, peak, plan_nic_bits[n] / 8)));
		fb_json_set_str(j, "gpu", p->gpu[i]->label);
		json_object_set_new(j, "tokens", tokens);
		if (isnan(peak))
			fb_json_set_str(j, "tokens_reason", "no peak of that type is known here");
		json_array_append_new(all, j);
	}
	return all;
}

static json_t *t_star_rule_json(const struct plan *p)
{
	json_t *j = json_object(), *nics = json_array();
	for (int n = 0; n < PLAN_NICS; n++)
		json_array_append_new(nics, fb_json_real(plan_nic_bits[n] / 8));
	fb_json_set_str(j, "rule", T_STAR_RULE);
	fb_json_set_real(j, "share_of_peak", p->share, NULL);
	json_object_set_new(j, "nic_bytes_per_s", nics);
	return j;
}

static json_t *row_json(const struct plan *p, const struct plan_row *r)
{
	json_t *j = json_object();
	fb_json_set_str(j, "strategy", r->c.strategy.name);
	fb_json_set_int(j, "shard", r->c.strategy.shard);
	fb_json_set_int(j, "replicate", r->c.strategy.replicate);
	json_object_set_new(j, "bytes_per_step", bytes_json(r));
	json_object_set_new(j, "memory_bytes", memory_json(r));
	json_object_set_new(j, "fits", fits_json(p, r));
	json_object_set_new(j, "t_star", t_star_json(p, r));
	return j;
}

static json_t *gpus_json(const struct plan *p)
{
	json_t *all = json_array();
	for (int i = 0; i < p->gpus; i++) {
		json_t *j = json_object();
		fb_json_set_str(j, "gpu", p->gpu[i]->label);
		fb_json_set_real(j, "memory_bytes", p->gpu[i]->capacity, NULL);
		fb_json_set_real(j, "bf16_flops_per_s", p->gpu[i]->bf16, NULL);
		fb_json_set_str(j, "source", p->gpu[i]->source);
		json_array_append_new(all, j);
	}
	return all;
}

int train_plan_json(const struct step_config *base, const struct train_plan_opts *o, json_t **doc,
	struct fb_err *e)
{
	struct plan *p = calloc(1, sizeof(*p));
	*doc = NULL;
	if (!p)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a plan");
	int rc = plan_make(base, o, p, e);
	if (rc != 0)
		goto free_plan;
	json_t *j = json_object(), *flops = json_object(), *fit = json_object();
	json_t *rows = json_array();
	for (int i = 0; i < MFU_CONVENTION_COUNT; i++)
		fb_json_set_real(flops, mfu_convention_names[i],
			model_flops_per_token(&base->model, base->seq, (enum mfu_convention)i),
			NULL);
	fb_json_set_real(fit, "reserve_bytes", TRAIN_PLAN_RESERVE, NULL);
	fb_json_set_str(fit, "rule", FIT_RULE);
	for (int i = 0; i < p->rows; i++)
		json_array_append_new(rows, row_json(p, &p->row[i]));
	json_object_set_new(j, "model", model_json(&base->model));
	json_object_set_new(j, "config", config_json(p));
	json_object_set_new(j, "flops_per_token", flops);
	json_object_set_new(j, "fit_rule", fit);
	json_object_set_new(j, "t_star_rule", t_star_rule_json(p));
	json_object_set_new(j, "gpus", gpus_json(p));
	json_object_set_new(j, "strategies", rows);
	if (!j)
		rc = fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a plan");
	*doc = j;
free_plan:
	free(p);
	return rc;
}
