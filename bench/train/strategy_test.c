// SPDX-License-Identifier: Apache-2.0
/*
 * Strategies' words, and the closed forms against published ones, against counts made another way,
 * and against the schedule's tasks.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "bench/core/test.h"
#include "bench/train/schedule_sum.h"
#include "bench/train/strategy.h"
#include "collectives/exchange.h"

static struct step_config config(const char *model, const char *strategy, int ranks)
{
	struct step_config c = {.ranks = ranks,
		.seq = 128,
		.micro_seqs = 2,
		.micro_batches = 1,
		.work = TR_BF16,
		.reduce = TR_F32,
		.overlap = true};
	struct fb_err e = {0};
	if (model_find(model, &c.model, &e) != 0 ||
		strategy_parse(strategy, ranks, &c.strategy, &e) != 0)
		fail_msg("%s", e.msg);
	return c;
}

static void near(double a, double b, double rel)
{
	if (!(fabs(a - b) <= rel * fabs(b)))
		fail_msg("%.17g is not %.17g", a, b);
}

/* ---- words ----------------------------------------------------------------------------------- */

static void words_say_what_is_sharded(void **state)
{
	static const struct {
		const char *word, *name;
		enum strategy_kind kind;
		int shard, optimizer, grads, params, keep;
	} all[] = {
		{"ddp", "ddp", STRATEGY_DDP, 1, 0, 0, 0, 0},
		{"zero1", "zero1", STRATEGY_ZERO1, 12, 1, 0, 0, 0},
		{"zero2", "zero2", STRATEGY_ZERO2, 12, 1, 1, 0, 0},
		{"zero3", "zero3", STRATEGY_ZERO3, 12, 1, 1, 1, 0},
		{"fsdp", "fsdp", STRATEGY_ZERO3, 12, 1, 1, 1, 0},
		{"shard-grad-op", "shard-grad-op", STRATEGY_SHARD_GRAD_OP, 12, 1, 1, 1, 1},
		{"hybrid:4", "hybrid:4", STRATEGY_HYBRID, 4, 1, 1, 1, 0},
		{"hybrid:12", "hybrid:12", STRATEGY_HYBRID, 12, 1, 1, 1, 0},
		{"hybrid:01", "hybrid:1", STRATEGY_HYBRID, 1, 1, 1, 1, 0},
		{"offload", "offload", STRATEGY_OFFLOAD, 12, 1, 1, 1, 0},
	};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct strategy s;
		struct fb_err e = {0};
		assert_int_equal(strategy_parse(all[i].word, 12, &s, &e), 0);
		assert_int_equal(s.kind, all[i].kind);
		assert_string_equal(s.name, all[i].name);
		assert_int_equal(s.shard, all[i].shard);
		assert_int_equal(s.replicate, 12 / all[i].shard);
		assert_int_equal(s.shard_optimizer, all[i].optimizer);
		assert_int_equal(s.shard_grads, all[i].grads);
		assert_int_equal(s.shard_params, all[i].params);
		assert_int_equal(s.keep_gathered, all[i].keep);
	}
	/* every word of the list is one that is understood */
	for (int i = 0; strategy_words[i]; i++) {
		struct strategy s;
		struct fb_err e = {0};
		const char *w =
			strcmp(strategy_words[i], "hybrid:F") == 0 ? "hybrid:3" : strategy_words[i];
		assert_int_equal(strategy_parse(w, 12, &s, &e), 0);
	}
}

static void wrong_words_are_refused(void **state)
{
	static const struct {
		const char *word, *says, *helps;
	} wrong[] = {
		{"zero4", "unknown strategy \"zero4\"; the nearest is \"zero", "shard-grad-op"},
		{"fdsp", "nearest is \"fsdp\"", "ddp"},
		{"shard_grad_op", "nearest is \"shard-grad-op\"", ""},
		{"ofload", "nearest is \"offload\"", ""},
		{"FSDP", "nearest is \"fsdp\"", ""},
		{"Hybrid:4", "nearest is \"hybrid:F\"", ""},
		{"", "unknown strategy \"\"", "zero3"},
		{"DDP", "unknown strategy \"DDP\"", ""},
		{"hybrid", "a whole number over 0", "F may be 1, 2, 3, 4, 6, 12"},
		{"hybrid:", "a whole number over 0", ""},
		{"hybrid:0", "a whole number over 0", ""},
		{"hybrid:-4", "a whole number over 0", ""},
		{"hybrid:4x", "a whole number over 0", ""},
		{"hybrid:99999999999999", "a whole number over 0", ""},
		{"hybrid:5", "groups of 5 do not divide 12 ranks", "F may be 1, 2, 3, 4, 6, 12"},
		{"hybrid:24", "groups of 24 do not divide 12 ranks", ""},
		{"hybrd:4", "nearest is \"hybrid:F\"", ""},
		{"ddp:4", "only hybrid takes a number", ""},
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct strategy s;
		struct fb_err e = {0};
		assert_int_equal(strategy_parse(wrong[i].word, 12, &s, &e), -EINVAL);
		assert_int_equal(e.exit, FB_EXIT_USAGE);
		if (!strstr(e.msg, wrong[i].says) || !strstr(e.hint, wrong[i].helps))
			fail_msg("%s: \"%s\" (%s)", wrong[i].word, e.msg, e.hint);
	}
}

static void cuts_cover_all_and_waste_less_than_a_rank(void **state)
{
	for (int64_t n = 1; n < 60; n++)
		for (int f = 1; f < 20; f++) {
			struct shard_cut c = shard_cut(n, f);
			assert_int_equal(c.elements, n);
			assert_int_equal(c.padded, c.per_rank * f);
			assert_in_range(c.padded, n, n + f - 1);
		}
	assert_int_equal(shard_cut(70553706496, 64).per_rank, 1102401664);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* A model whose every unit is a multiple of 64 ranks: no padding blurs the published forms. */
#define EVEN "llama3-70b"

/* ZeRO's and FSDP's volumes (SC20, VLDB23): in parameters sent, but for the share (G-1)/G. The
 * executor saves on them: the root is gathered once a step, the last block stays gathered. */
static void bytes_are_the_published_volumes(void **state)
{
	enum { G = 64 };
	struct step_bytes b;
	struct step_config c = config(EVEN, "ddp", G);
	struct model_unit block, root;
	model_unit(&c.model, 0, &block);
	model_unit(&c.model, c.model.layers, &root);
	assert_true(block.elements % G == 0 && root.elements % G == 0);
	double psi = (double)model_params(&c.model), u = (G - 1.0) / G;
	double saved = (double)(block.elements + root.elements);

	step_bytes(&c, &b);
	near(b.all_reduce, 2 * u * psi * 4, 1e-12);
	assert_true(b.all_gather == 0 && b.reduce_scatter == 0 && b.norm == 0);
	static const char *const zero12[] = {"zero1", "zero2"};
	for (int i = 0; i < 2; i++) {
		c = config(EVEN, zero12[i], G);
		step_bytes(&c, &b);
		near(b.all_gather, u * psi * 2, 1e-12);
		near(b.reduce_scatter, u * psi * 4, 1e-12);
		assert_true(b.all_reduce == 0);
	}
	static const char *const sharded[] = {"zero3", "fsdp", "offload", "hybrid:64"};
	for (int i = 0; i < 4; i++) {
		c = config(EVEN, sharded[i], G);
		step_bytes(&c, &b);
		near(b.all_gather, u * (2 * psi - saved) * 2, 1e-12);
		near(b.reduce_scatter, u * psi * 4, 1e-12);
		assert_true(b.all_reduce == 0);
	}
	c = config(EVEN, "shard-grad-op", G);
	step_bytes(&c, &b);
	near(b.all_gather, u * psi * 2, 1e-12);
	c = config(EVEN, "hybrid:8", G);
	c.reduce = TR_BF16;
	step_bytes(&c, &b);
	near(b.all_gather, 7.0 / 8 * (2 * psi - saved) * 2, 1e-12);
	near(b.reduce_scatter, 7.0 / 8 * psi * 2, 1e-12);
	near(b.all_reduce, 2 * 7.0 / 8 * psi / 8 * 2, 1e-12);
}

static void micro_batches_repeat_what_they_must(void **state)
{
	struct step_bytes one, four;
	static const struct {
		const char *strategy;
		bool sync;
		double reductions; /* of four micro-batches */
	} all[] = {
		{"ddp", false, 1},
		{"ddp", true, 4},
		{"zero1", false, 1},
		{"zero1", true, 4},
		{"zero2", false, 4}, /* its gradients are sharded: nowhere to add up whole ones */
		{"zero3", false, 1},
		{"zero3", true, 4},
		{"shard-grad-op", true, 4},
		{"hybrid:4", false, 1},
		{"hybrid:4", true, 4},
	};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct step_config c = config("tiny", all[i].strategy, 8);
		c.sync_each = all[i].sync;
		step_bytes(&c, &one);
		c.micro_batches = 4;
		step_bytes(&c, &four);
		near(four.reduce_scatter, all[i].reductions * one.reduce_scatter, 1e-15);
		near(four.all_reduce, all[i].reductions * one.all_reduce, 1e-15);
		if (!c.strategy.shard_params) {
			assert_true(four.all_gather == one.all_gather);
			continue;
		}
		/* blocks again in every micro-batch, the root once a step */
		double root = (c.strategy.shard - 1) * 2.0 *
			      (double)shard_cut(25850, c.strategy.shard).per_rank;
		near(four.all_gather - root, 4 * (one.all_gather - root), 1e-12);
	}
}

/* tiny on 3 ranks, by hand: blocks of 24700 and a root of 25850 become 8234 and 8617 a rank. */
static void padding_is_sent_too(void **state)
{
	struct step_bytes b;
	struct step_config c = config("tiny", "zero3", 3);
	c.clip = true;
	step_bytes(&c, &b);
	assert_true(b.all_gather == 2 * (3 * 8234 + 8617) * 2);
	assert_true(b.reduce_scatter == 2 * (2 * 8234 + 8617) * 4);
	assert_true(b.norm == 2 * 2 * 8);
	c = config("tiny", "ddp", 3);
	c.clip = true;
	step_bytes(&c, &b);
	assert_true(b.all_reduce == 2 * 2 * (2 * 8234 + 8617) * 4);
	assert_true(b.norm == 0); /* all have the whole gradient */
	c = config("tiny", "hybrid:2", 6);
	step_bytes(&c, &b); /* halves of 12350 and 12925 in thirds of 4117 and 4309 */
	assert_true(b.all_reduce == 2 * 2 * (2 * 4117 + 4309) * 4);
	c = config("tiny", "zero3", 1);
	c.clip = true;
	step_bytes(&c, &b);
	assert_true(b.all_gather + b.reduce_scatter + b.all_reduce + b.norm == 0);
}

static void offload_moves_gradients_out_and_parameters_in(void **state)
{
	struct step_bytes b;
	struct step_config c = config("tiny", "offload", 3);
	const double shard = 2 * 8234 + 8617, gathered = 3 * 8234 + 8617;
	step_bytes(&c, &b);
	assert_true(b.offload_out == 4 * shard && b.offload_in == 2 * shard);
	c.offload_file = true;
	step_bytes(&c, &b);
	assert_true(b.offload_out == (4 + 12) * shard && b.offload_in == (2 + 12) * shard);
	c.offload_params = true;
	step_bytes(&c, &b);
	assert_true(b.offload_in == 2 * gathered + 12 * shard);
	c = config("tiny", "zero3", 3);
	step_bytes(&c, &b);
	assert_true(b.offload_out == 0 && b.offload_in == 0);
}

static void set_variant(struct step_config *c, unsigned v)
{
	c->micro_batches = v & 1 ? 3 : 1;
	c->sync_each = v & 2;
	c->clip = v & 4;
	c->overlap = v & 8;
	c->offload_params = c->strategy.kind == STRATEGY_OFFLOAD && (v & 16);
	c->offload_file = c->strategy.kind == STRATEGY_OFFLOAD && (v & 32);
	c->recompute = v & 1 ? TR_RECOMPUTE_FULL : TR_RECOMPUTE_NONE;
	if (v & 2)
		c->reduce = TR_BF16;
	if (v & 64) {
		c->work = TR_F32;
		c->reduce = TR_I64;
		c->deterministic = true;
	}
}

static const char *const all_words[] = {"ddp", "zero1", "zero2", "zero3", "shard-grad-op",
	"hybrid:1", "hybrid:2", "hybrid:4", "offload"};
#define WORDS (sizeof(all_words) / sizeof(all_words[0]))

static bool same_bytes(const struct step_bytes *a, const struct step_bytes *b)
{
	return a->all_gather == b->all_gather && a->reduce_scatter == b->reduce_scatter &&
	       a->all_reduce == b->all_reduce && a->norm == b->norm &&
	       a->offload_out == b->offload_out && a->offload_in == b->offload_in;
}

static void the_schedule_counts_the_same_bytes(void **state)
{
	static const int ranks[] = {1, 2, 3, 4, 8, 12, 16};
	int compared = 0;
	for (size_t r = 0; r < sizeof(ranks) / sizeof(ranks[0]); r++)
		for (size_t w = 0; w < WORDS; w++)
			for (unsigned v = 0; v < 128; v++) {
				struct strategy s;
				if (strategy_parse(all_words[w], ranks[r], &s, NULL) != 0)
					continue;
				struct step_config c = config("tiny", all_words[w], ranks[r]);
				struct step_bytes a, b;
				struct schedule sched;
				set_variant(&c, v);
				assert_int_equal(schedule_build(&c, &sched, NULL), 0);
				step_bytes(&c, &a);
				schedule_bytes(&c, &sched, &b);
				schedule_free(&sched);
				if (!same_bytes(&a, &b))
					fail_msg("%s on %d ranks, variant %u: %g %g %g %g %g %g, "
						 "not %g %g %g %g %g %g",
						all_words[w], ranks[r], v, a.all_gather,
						a.reduce_scatter, a.all_reduce, a.norm,
						a.offload_out, a.offload_in, b.all_gather,
						b.reduce_scatter, b.all_reduce, b.norm,
						b.offload_out, b.offload_in);
				compared++;
			}
	assert_true(compared > 5000);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static double lasting(const struct step_memory *m)
{
	return m->params + m->master + m->optimizer + m->grads;
}

/* ZeRO's table, with fp32 gradients: 2 + 4 + 8 and 4 bytes a parameter, cut where sharded. */
static void states_are_zeros_table(void **state)
{
	enum { G = 64 };
	static const struct {
		const char *strategy;
		double whole, sharded; /* bytes a parameter; the second divided by the group */
		int group;
	} table[] = {
		{"ddp", 18, 0, 1},
		{"zero1", 2 + 4, 12, G},
		{"zero2", 2, 16, G},
		{"zero3", 0, 18, G},
		{"shard-grad-op", 0, 18, G},
		{"hybrid:8", 0, 18, 8},
		{"hybrid:16", 0, 18, 16},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct step_memory m;
		struct step_config c = config(EVEN, table[i].strategy, G);
		double psi = (double)model_params(&c.model);
		step_memory(&c, &m);
		near(lasting(&m), psi * (table[i].whole + table[i].sharded / table[i].group),
			1e-12);
		assert_true(m.host == 0);
		near(m.total,
			lasting(&m) + m.gathered + m.grad_units + m.wire + m.activations +
				m.scratch,
			1e-15);
	}
	/* fp32 needs no second copy: 4 + 8 + 4 */
	struct step_memory m;
	struct step_config c = config(EVEN, "zero3", G);
	c.work = TR_F32;
	step_memory(&c, &m);
	near(lasting(&m), (double)model_params(&c.model) * 16 / G, 1e-12);
	assert_true(m.master == 0);
}

static void units_under_way_are_two_and_the_root(void **state)
{
	struct step_memory m;
	struct step_config c = config(EVEN, "zero3", 64);
	struct model_unit block, root;
	model_unit(&c.model, 0, &block);
	model_unit(&c.model, c.model.layers, &root);
	double units = 2 * (double)block.elements + (double)root.elements;
	step_memory(&c, &m);
	near(m.gathered, units * 2, 1e-12);
	near(m.grad_units, units * 4, 1e-12);
	/* a ring above 8 ranks stages two blocks, of the root's shard, in fp32 */
	near(m.wire, 2 * (double)root.elements / 64 * 4, 1e-12);
	c.reduce = TR_BF16; /* and the cast of a whole unit and of what comes of it */
	step_memory(&c, &m);
	near(m.wire, (double)root.elements * (1 + 3.0 / 64) * 2, 1e-12);
	c = config(EVEN, "shard-grad-op", 64);
	step_memory(&c, &m);
	near(m.gathered, (double)model_params(&c.model) * 2, 1e-12);
	c = config(EVEN, "zero1", 64);
	step_memory(&c, &m);
	assert_true(m.gathered == 0 && m.grad_units == 0);
	/* adding micro-batches up whole costs a whole gradient; reducing each does not */
	c = config(EVEN, "zero3", 64);
	c.micro_batches = 2;
	step_memory(&c, &m);
	near(m.grads, (double)model_params(&c.model) * 4, 1e-12);
	assert_true(m.grad_units == 0);
	c.sync_each = true;
	step_memory(&c, &m);
	near(m.grads, (double)model_params(&c.model) * 4 / 64, 1e-12);
	/* one block has one slot */
	c = config("tiny", "zero3", 1);
	c.model.layers = 1;
	step_memory(&c, &m);
	near(m.gathered, (24700 + 25850) * 2, 1e-15);
}

static void exchange_scratch_is_the_exchanges_own(void **state)
{
	for (int n = 1; n <= 12; n++) {
		struct step_memory m;
		const size_t part = (size_t)shard_cut(25850, n).per_rank;
		const struct exchange_group g = {.size = n};
		const double scratch = (double)exchange_scratch(&g, part, COLL_FLOAT);
		struct step_config c = config("tiny", "zero3", n);
		step_memory(&c, &m);
		assert_true(m.wire == scratch);
		c = config("tiny", "ddp", n); /* an all-reduce begins as a reduce-scatter */
		step_memory(&c, &m);
		assert_true(m.wire == scratch);
		if (n % 4 != 0)
			continue;
		c = config("tiny", "hybrid:4", n);
		step_memory(&c, &m);
		const int64_t shard = shard_cut(25850, 4).per_rank;
		const struct exchange_group four = {.size = 4}, others = {.size = n / 4};
		assert_true(m.wire == (double)exchange_scratch(&four, (size_t)shard, COLL_FLOAT) +
					      (double)exchange_scratch(&others,
						      (size_t)shard_cut(shard, n / 4).per_rank,
						      COLL_FLOAT));
	}
}

static void offload_leaves_the_device_little(void **state)
{
	struct step_memory zero3, m;
	struct step_config c = config(EVEN, "zero3", 64);
	const double shard = (double)model_params(&c.model) / 64;
	struct model_unit root;
	model_unit(&c.model, c.model.layers, &root);
	const double most = (double)root.elements / 64;
	step_memory(&c, &zero3);
	c = config(EVEN, "offload", 64);
	step_memory(&c, &m);
	near(m.host, 12 * shard + 2 * 4 * most, 1e-12);
	near(zero3.total - m.total, 12 * shard, 1e-12);
	c.offload_params = true;
	step_memory(&c, &m);
	near(m.host, 14 * shard + 2 * 4 * most, 1e-12);
	assert_true(m.params == 0);
	c.offload_file = true; /* the file's bytes are no memory: two units' state pass through */
	step_memory(&c, &m);
	near(m.host, 2 * shard + 2 * (4 + 12) * most, 1e-12);
	/* and is the same for any kind of work */
	c.work = c.reduce = TR_F32;
	step_memory(&c, &m);
	near(m.host, 4 * shard + 2 * (4 + 12) * most, 1e-12);
}

static void activations_follow_tokens_and_recomputation(void **state)
{
	struct step_memory none, selective, full, twice;
	struct step_config c = config("llama3-8b", "zero3", 8);
	const double t = 2 * 128, h = 4096, x = t * h * 2;
	step_memory(&c, &none);
	c.recompute = TR_RECOMPUTE_SELECTIVE;
	step_memory(&c, &selective);
	c.recompute = TR_RECOMPUTE_FULL;
	step_memory(&c, &full);
	/* q and o, k and v, the residual, gate and up; the softmax's sums in fp32 */
	const double kept = t * (2 * h + 2 * 1024 + h + 2 * 14336) * 2 + t * 32 * 4;
	near(none.activations, 34 * x + 32 * kept, 1e-12);
	near(none.activations - selective.activations, 32 * (t * h * 2 + t * 32 * 4), 1e-12);
	near(full.activations, 34 * x, 1e-12);
	assert_true(full.scratch > none.scratch);
	/* another micro-batch reuses it; another sequence does not */
	c.recompute = TR_RECOMPUTE_NONE;
	c.micro_batches = 5;
	c.sync_each = true;
	step_memory(&c, &twice);
	near(twice.activations, none.activations, 1e-15);
	c.micro_seqs = 4;
	step_memory(&c, &twice);
	near(twice.activations, 2 * none.activations, 1e-12);
	/* one sequence at a time through the net, but all are kept */
	struct step_memory det, one;
	c = config("tiny", "zero3", 4);
	c.work = TR_F32;
	c.reduce = TR_I64;
	c.deterministic = true;
	c.micro_seqs = 3;
	step_memory(&c, &det);
	c.micro_seqs = 1;
	step_memory(&c, &one);
	near(det.activations, 3 * one.activations, 1e-15);
	near(det.scratch, one.scratch, 1e-15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_say_what_is_sharded),
		cmocka_unit_test(wrong_words_are_refused),
		cmocka_unit_test(cuts_cover_all_and_waste_less_than_a_rank),
		cmocka_unit_test(bytes_are_the_published_volumes),
		cmocka_unit_test(micro_batches_repeat_what_they_must),
		cmocka_unit_test(padding_is_sent_too),
		cmocka_unit_test(offload_moves_gradients_out_and_parameters_in),
		cmocka_unit_test(the_schedule_counts_the_same_bytes),
		cmocka_unit_test(states_are_zeros_table),
		cmocka_unit_test(units_under_way_are_two_and_the_root),
		cmocka_unit_test(exchange_scratch_is_the_exchanges_own),
		cmocka_unit_test(offload_leaves_the_device_little),
		cmocka_unit_test(activations_follow_tokens_and_recomputation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
