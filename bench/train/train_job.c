// SPDX-License-Identifier: Apache-2.0
/*
 * Options settled into a job: what belongs together, what cannot be, and the engine's
 * configuration made of it. Everything wrong is refused here, before any rank starts.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/units.h"
#include "bench/train/train_priv.h"

#define DEFAULT_SEQ 128
#define PLAN_SEQ    8192

/* ---- model, strategy, batch ------------------------------------------------------------------ */

static int settle_shape(struct train_job *j, int ranks, struct fb_err *e)
{
	const struct train_opts *o = j->o;
	struct step_config *s = &j->step;
	struct train_batch b = {(int64_t)o->global_batch, (int64_t)o->micro_batch, o->accumulate};
	if (o->plan && b.global == 0 && b.micro == 0)
		b.micro = 1;
	int rc = model_find(o->model, &s->model, e);
	if (rc == 0)
		rc = strategy_parse(o->strategy, ranks, &s->strategy, e);
	if (rc == 0)
		rc = train_batch_settle(&b, ranks, e);
	if (rc != 0)
		return rc;
	s->ranks = ranks;
	s->micro_seqs = b.micro;
	s->micro_batches = b.accumulate;
	s->seq = (int64_t)o->seq;
	int64_t most = o->plan ? PLAN_SEQ : DEFAULT_SEQ;
	if (s->seq == 0)
		s->seq = s->model.positions < most ? s->model.positions : most;
	if (s->seq > s->model.positions) {
		fb_fail_usage(e, "--seq %lld: %s has %lld positions", (long long)s->seq,
			s->model.name, (long long)s->model.positions);
		fb_hint(e, "use at most that, or a model file with more positions");
		return -EINVAL;
	}
	s->sync_each = o->sync_each;
	s->recompute = (enum tr_recompute)o->recompute;
	s->overlap = o->overlap == 1;
	s->deterministic = o->deterministic;
	s->clip = o->clip > 0;
	s->offload_params = o->offload_params;
	return 0;
}

static int settle_types(struct train_job *j, struct fb_err *e)
{
	static const enum tr_dtype types[] = {TR_F32, TR_F32, TR_BF16, TR_F64};
	const struct train_opts *o = j->o;
	struct step_config *s = &j->step;
	bool bf16_wire = o->reduce == 1;
	s->work = o->plan && o->dtype == TRAIN_DTYPE_AUTO ? TR_BF16 : types[o->dtype];
	if (o->backend == TRAIN_REFERENCE) {
		if (o->dtype == TRAIN_FP32 || o->dtype == TRAIN_BF16) {
			fb_fail_usage(e, "--backend reference computes in fp64, not in the --dtype "
					 "given");
			fb_hint(e, "leave --dtype out, or use --backend cpu");
			return -EINVAL;
		}
		s->work = TR_F64;
	}
	if (o->deterministic && (s->work != TR_F32 || bf16_wire)) {
		fb_fail_usage(e, "--deterministic sums in fixed point, which is for fp32 alone");
		fb_hint(e, "leave out --dtype, --reduce-dtype and --backend");
		return -EINVAL;
	}
	if (s->work == TR_F64 && bf16_wire) {
		fb_fail_usage(e, "--reduce-dtype bf16 would spoil what fp64 is for");
		fb_hint(e, "leave --reduce-dtype out");
		return -EINVAL;
	}
	s->reduce = o->deterministic ? TR_I64 : bf16_wire ? TR_BF16 : tr_grad_dtype(s->work);
	return 0;
}

static int settle_optimizer(struct train_job *j, struct fb_err *e)
{
	const struct train_opts *o = j->o;
	int rc = 0;
	if (!(o->beta1 < 1) || !(o->beta2 < 1))
		rc = fb_fail_usage(e, "--beta1 and --beta2 must be below 1: at 1 AdamW's bias "
				      "correction divides by zero");
	else if (!(o->eps > 0))
		rc = fb_fail_usage(
			e, "--eps must be over 0: a gradient of zero would divide by it");
	if (rc != 0) {
		fb_hint(e, "leave it out: --beta1 0.9, --beta2 0.95 and --eps 1e-8 are usual");
		return rc;
	}
	j->adamw = (struct tr_adamw){.lr = o->lr,
		.beta1 = o->beta1,
		.beta2 = o->beta2,
		.eps = o->eps,
		.decay = o->decay};
	return 0;
}

static int settle_steps(struct train_job *j, struct fb_err *e)
{
	const struct train_opts *o = j->o;
	j->steps = o->steps;
	j->warmup = o->warmup >= 0 ? o->warmup : o->steps / 4 < 2 ? o->steps / 4 : 2;
	if (j->warmup >= j->steps) {
		fb_fail_usage(e, "--warmup %d of --steps %d: none is left to be timed", j->warmup,
			j->steps);
		fb_hint(e, "--steps counts the dropped ones too: use more of them");
		return -EINVAL;
	}
	return 0;
}

/* ---- files and folders ----------------------------------------------------------------------- */

static int settle_offload(struct train_job *j, struct fb_err *e)
{
	const struct train_opts *o = j->o;
	struct stat st;
	bool offload = j->step.strategy.kind == STRATEGY_OFFLOAD;
	if (!offload && (o->offload_to || o->offload_params)) {
		fb_fail_usage(e, "--offload-%s, but --strategy %s keeps everything on the device",
			o->offload_to ? "to" : "params", j->step.strategy.name);
		fb_hint(e, "use --strategy offload, or leave it out");
		return -EINVAL;
	}
	if (!o->offload_to || strcmp(o->offload_to, "host") == 0)
		return 0;
	if (stat(o->offload_to, &st) != 0 || !S_ISDIR(st.st_mode) ||
		access(o->offload_to, W_OK | X_OK) != 0) {
		fb_fail_usage(e, "--offload-to %s: %s", o->offload_to,
			stat(o->offload_to, &st) != 0 ? strerror(errno)
			: !S_ISDIR(st.st_mode)        ? "it is no folder"
						      : "it cannot be written");
		fb_hint(e, "name a folder with room for the state, or host");
		return -EINVAL;
	}
	j->offload = o->offload_to;
	j->step.offload_file = true;
	return 0;
}

/* Better refused now than after the last step. */
static int check_files(const struct train_opts *o, struct fb_err *e)
{
	char folder[4096];
	struct stat st;
	if (o->tokens && (stat(o->tokens, &st) != 0 || !S_ISREG(st.st_mode) ||
				 access(o->tokens, R_OK) != 0)) {
		fb_fail_usage(e, "--tokens %s: %s", o->tokens,
			stat(o->tokens, &st) != 0 ? strerror(errno)
			: S_ISREG(st.st_mode)     ? "it cannot be read"
						  : "it is no file");
		fb_hint(e, "leave it out for synthetic tokens");
		return -EINVAL;
	}
	if (!o->timeline)
		return 0;
	const char *slash = strrchr(o->timeline, '/');
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - o->timeline) + 1 : 1,
		slash ? o->timeline : ".");
	if (o->timeline[0] == '\0' || access(folder, W_OK | X_OK) != 0) {
		fb_fail_usage(e, "--timeline %s: its folder cannot be written: %s", o->timeline,
			strerror(o->timeline[0] ? errno : EINVAL));
		fb_hint(e, "give a path in a folder that exists and may be written");
		return -EINVAL;
	}
	return 0;
}

/* ---- link and injections --------------------------------------------------------------------- */

static int settle_link(struct train_job *j, struct fb_err *e)
{
	const struct train_opts *o = j->o;
	if (!o->link)
		return 0;
	if (!j->local && !o->plan) {
		fb_fail_usage(e, "--link shapes the messages of threads, and these ranks are "
				 "processes");
		fb_hint(e, "use --comm local --ranks N, or leave it out: the real link counts");
		return -EINVAL;
	}
	int rc = train_link_parse(o->link, &j->link, e);
	j->shaped = rc == 0;
	return rc;
}

enum p2p_channel train_inject_channel(enum train_inject_kind k)
{
	return k == INJECT_ALL_GATHER   ? P2P_GATHER
	       : k == INJECT_ALL_REDUCE ? P2P_REPLICATE
					: P2P_REDUCE;
}

/* Does a step of this strategy have that kind at all? An injection without effect would be taken
 * for a machine that does not mind. */
static bool has_kind(const struct train_job *j, int kind, const struct step_bytes *b)
{
	switch (kind) {
	case INJECT_ALL_GATHER: return b->all_gather > 0;
	case INJECT_REDUCE_SCATTER: return b->reduce_scatter > 0;
	case INJECT_ALL_REDUCE: return b->all_reduce > 0;
	case INJECT_STORAGE: return j->step.strategy.kind == STRATEGY_OFFLOAD;
	default: return true;
	}
}

static int check_injection(struct train_job *j, int k, const struct step_bytes *b, struct fb_err *e)
{
	const struct train_inject *in = &j->inject;
	const char *name = train_inject_names[k];
	if (!has_kind(j, k, b)) {
		fb_fail_usage(e, "--inject %s: %s on %d ranks has none", name,
			j->step.strategy.name, j->step.ranks);
		fb_hint(e, "choose a kind that the step has; --plan lists them with their bytes");
		return -EINVAL;
	}
	if (k <= INJECT_ALL_REDUCE && in->factor[k] != 1 && !j->shaped) {
		fb_fail_usage(e, "--inject %s:x%g: the link has no known rate to take a share of",
			name, in->factor[k]);
		fb_hint(e, "shape it: --comm local --link 5us,1GB/s; or inject +LATENCY");
		return -EINVAL;
	}
	if (k == INJECT_RANK && in->rank >= j->step.ranks) {
		fb_fail_usage(
			e, "--inject rank:%d: ranks are 0 to %d", in->rank, j->step.ranks - 1);
		fb_hint(e, "name one of these, or give more --ranks");
		return -EINVAL;
	}
	return 0;
}

static int settle_inject(struct train_job *j, struct fb_err *e)
{
	struct step_bytes b;
	int rc = 0;
	step_bytes(&j->step, &b);
	for (int k = 0; k < INJECT_KIND_COUNT; k++)
		j->inject.factor[k] = 1;
	j->inject.rank = -1;
	for (size_t i = 0; rc == 0 && i < j->o->inject.n; i++)
		rc = train_inject_add(&j->inject, j->o->inject.v[i], e);
	for (int k = 0; rc == 0 && k < INJECT_KIND_COUNT; k++)
		if (j->inject.delay_ns[k] > 0 || j->inject.factor[k] != 1)
			rc = check_injection(j, k, &b, e);
	for (int k = 0; rc == 0 && k <= INJECT_ALL_REDUCE; k++)
		if (j->inject.factor[k] != 1)
			j->link.slow[train_inject_channel((enum train_inject_kind)k)].rate_factor =
				j->inject.factor[k];
	return rc;
}

static int settle_tiers(struct train_job *j, struct fb_err *e)
{
	const struct train_opts *o = j->o;
	int per = o->ranks_per_node, nodes = per > 0 ? (j->step.ranks + per - 1) / per : 1;
	j->tiers = (struct exchange_tiers){.ranks_per_node = per, .nodes = nodes};
	if (!o->rack_map)
		return 0;
	if (per == 0) {
		fb_fail_usage(e, "--rack-map names the racks of nodes, and which ranks share one "
				 "is not known");
		fb_hint(e, "give --ranks-per-node N too");
		return -EINVAL;
	}
	int rc = train_rack_map(o->rack_map, nodes, &j->rack_of, e);
	j->tiers.rack_of = j->rack_of;
	return rc;
}

static int settle_fail(struct train_job *j, struct fb_err *e)
{
	char rank[16];
	uint64_t n, step;
	const char *text = j->o->fail_rank, *colon = text ? strchr(text, ':') : NULL;
	j->fail_rank = j->fail_step = -1;
	if (!text)
		return 0;
	if (!colon || (size_t)(colon - text) >= sizeof(rank))
		return fb_fail_usage(e, "--fail-rank %.40s: it is N:STEP", text);
	memcpy(rank, text, (size_t)(colon - text));
	rank[colon - text] = '\0';
	int rc = fb_parse_u64(rank, 0, (uint64_t)j->step.ranks - 1, &n, e);
	if (rc == 0)
		rc = fb_parse_u64(colon + 1, 0, (uint64_t)j->steps - 1, &step, e);
	if (rc != 0)
		return rc;
	j->fail_rank = (int)n;
	j->fail_step = (int)step;
	return 0;
}

static int settle_labels(struct train_job *j, struct fb_err *e)
{
	json_t *factors = train_factors(j);
	fb_json_set_str(factors, "link", ""); /* also where the run has none */
	fb_json_set_str(factors, "inject", "");
	int rc = train_labels_check(&j->o->label, factors, e);
	json_decref(factors);
	return rc;
}

/* ---- all of it ------------------------------------------------------------------------------- */

int train_job_settle(
	struct train_job *j, const struct train_opts *o, int ranks, bool local, struct fb_err *e)
{
	int (*const parts[])(struct train_job *, struct fb_err *) = {settle_types, settle_optimizer,
		settle_steps, settle_offload, settle_link, settle_inject, settle_tiers, settle_fail,
		settle_labels};
	memset(j, 0, sizeof(*j));
	j->o = o;
	j->local = local;
	int rc = settle_shape(j, ranks, e);
	for (size_t i = 0; rc == 0 && i < sizeof(parts) / sizeof(parts[0]); i++)
		rc = parts[i](j, e);
	if (rc == 0)
		rc = check_files(o, e);
	if (rc == 0 && o->peak) {
		rc = train_flops_parse(o->peak, &j->peak, e);
		j->peak_source = "--peak, as the user states it";
	} else {
		j->peak_source = "the data-sheet peak of a CPU is not known here; state it with "
				 "--peak FLOPS";
	}
	if (rc != 0)
		train_job_free(j);
	return rc;
}

void train_job_free(struct train_job *j)
{
	free(j->rack_of);
	j->rack_of = NULL;
	j->tiers.rack_of = NULL;
	json_decref(j->effective);
	j->effective = NULL;
}

/* ---- the engine's side ----------------------------------------------------------------------- */

static void inject_into(const struct train_job *j, int rank, struct engine_config *c)
{
	const struct train_inject *in = &j->inject;
	const uint64_t *ns = in->delay_ns;
	c->exchange_delay_ns[SCHED_GATHER] = ns[INJECT_ALL_GATHER];
	c->exchange_delay_ns[SCHED_PARAM_GATHER] = ns[INJECT_ALL_GATHER];
	c->exchange_delay_ns[SCHED_REDUCE_SCATTER] = ns[INJECT_REDUCE_SCATTER];
	c->exchange_delay_ns[SCHED_ALL_REDUCE] = ns[INJECT_ALL_REDUCE];
	if (rank == in->rank)
		c->rank_delay_ns = ns[INJECT_RANK];
	c->optimizer_delay_ns = ns[INJECT_OPTIMIZER];
	c->storage_delay_ns = ns[INJECT_STORAGE];
	c->storage_slow = 1 / in->factor[INJECT_STORAGE] - 1;
	c->dev.gemm_delay_ns = ns[INJECT_GEMM];
	c->dev.gemm_slow = 1 / in->factor[INJECT_GEMM] - 1;
}

void train_engine_config(const struct train_job *j, int rank, int core, struct engine_config *c)
{
	*c = (struct engine_config){.step = j->step,
		.adamw = j->adamw,
		.clip_norm = j->o->clip,
		.seed = j->seed,
		.batches = j->o->batches,
		.token_file = j->o->tokens,
		.dev_ops = &tr_cpu,
		.offload_file = j->offload,
		.tiers = j->tiers};
	c->dev = (struct tr_dev_cfg){.work = j->step.work,
		.gemm = j->step.work == TR_F64 ? NULL : j->gemm,
		.core = core};
	inject_into(j, rank, c);
}

/* How often the engine looks at the network from within a product. */
#define POLL_NS 20000

void train_machine(const struct train_job *j, struct sched_machine *m)
{
	const struct train_inject *in = &j->inject;
	static const struct {
		enum sched_op op;
		enum train_inject_kind kind;
	} slowed[] = {{SCHED_GATHER, INJECT_ALL_GATHER}, {SCHED_PARAM_GATHER, INJECT_ALL_GATHER},
		{SCHED_REDUCE_SCATTER, INJECT_REDUCE_SCATTER},
		{SCHED_ALL_REDUCE, INJECT_ALL_REDUCE}};
	memset(m, 0, sizeof(*m));
	m->poll_ns = POLL_NS;
	m->copies_inline = true;
	for (size_t i = 0; i < sizeof(slowed) / sizeof(slowed[0]); i++) {
		m->add_ns[slowed[i].op] = (double)in->delay_ns[slowed[i].kind];
		m->factor[slowed[i].op] = 1 / in->factor[slowed[i].kind];
	}
	if (!j->shaped)
		return;
	m->latency_ns = (double)j->link.latency_ns;
	m->ns_per_byte = 1e9 / j->link.rate;
	m->shared_link = true;
}
