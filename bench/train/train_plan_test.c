// SPDX-License-Identifier: Apache-2.0
/*
 * Plans: what is known to fit and not to fit, the law of tokens against network rate, figures that
 * equal the closed forms, and the text.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/test.h"
#include "bench/train/peaks.h"
#include "bench/train/train_plan.h"

static struct step_config config(const char *model, const char *strategy, int ranks, int64_t tokens)
{
	struct step_config c = {.ranks = ranks,
		.seq = tokens,
		.micro_seqs = 1,
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

static json_t *plan(const struct step_config *c)
{
	struct fb_err e = {0};
	json_t *j = NULL;
	if (train_plan_json(c, NULL, &j, &e) != 0)
		fail_msg("%s", e.msg);
	assert_non_null(j);
	return j;
}

static json_t *named(json_t *array, const char *key, const char *name)
{
	size_t i;
	json_t *x;
	json_array_foreach (array, i, x)
		if (strcmp(fb_json_str(x, key, ""), name) == 0)
			return x;
	return NULL;
}

static json_t *strategy_of(json_t *doc, const char *name)
{
	return named(json_object_get(doc, "strategies"), "strategy", name);
}

static json_t *fit_of(json_t *doc, const char *strategy, const char *gpu)
{
	json_t *f = named(json_object_get(strategy_of(doc, strategy), "fits"), "gpu", gpu);
	assert_non_null(f);
	return f;
}

static bool fits(json_t *doc, const char *strategy, const char *gpu, bool recompute)
{
	json_t *v = json_object_get(
		fit_of(doc, strategy, gpu), recompute ? "fits_full_recompute" : "fits");
	assert_true(json_is_boolean(v));
	return json_is_true(v);
}

static int64_t from_ranks(json_t *doc, const char *strategy, const char *gpu)
{
	return fb_json_int(fit_of(doc, strategy, gpu), "smallest_group", -1);
}

static void near(double a, double b, double rel)
{
	if (!(fabs(a - b) <= rel * fabs(b)))
		fail_msg("%.17g is not %.17g", a, b);
}

/* ---- what fits ------------------------------------------------------------------------------- */

/* 70 billion parameters on 64 GPUs: states of 18 bytes each, of which a group of 8 holds 159 GB a
 * rank whatever is recomputed, and 64 ranks 20 GB. */
static void hybrid_of_70b_does_not_fit_80_gb_and_zero3_does(void **state)
{
	struct step_config c = config("llama3-70b", "fsdp", 64, 8192);
	json_t *j = plan(&c);
	static const char *const gpus80[] = {
		"A100 SXM 80GB", "A100 PCIe 80GB", "H100 SXM 80GB", "H100 PCIe 80GB"};
	for (int i = 0; i < 4; i++) {
		assert_false(fits(j, "hybrid:8", gpus80[i], false));
		assert_false(fits(j, "hybrid:8", gpus80[i], true));
		assert_true(fits(j, "zero3", gpus80[i], true));
		/* 8192 tokens of all activations are 121 GB */
		assert_false(fits(j, "zero3", gpus80[i], false));
		assert_false(fits(j, "ddp", gpus80[i], true));
		assert_false(fits(j, "zero1", gpus80[i], true));
		assert_false(fits(j, "zero2", gpus80[i], true));
	}
	assert_false(fits(j, "hybrid:8", "H200 SXM 141GB", true));
	assert_false(fits(j, "zero3", "A100 40GB", false));
	assert_true(fits(j, "zero3", "B200 180GB", false));
	json_decref(j);

	c.seq = 512;
	j = plan(&c);
	assert_true(fits(j, "zero3", "H100 SXM 80GB", false));
	assert_false(fits(j, "hybrid:8", "H100 SXM 80GB", true));
	assert_int_equal(from_ranks(j, "ddp", "GB200 186GB"), -1);
	assert_non_null(
		fb_json_str(fit_of(j, "ddp", "GB200 186GB"), "smallest_group_reason", NULL));
	json_decref(j);
}

/* The smallest number of ranks is one on which it fits, and half of it is too few. */
static void smallest_groups_are_the_smallest(void **state)
{
	static const char *const words[] = {"zero1", "zero2", "zero3", "shard-grad-op", "offload"};
	static const char *const gpus[] = {"A100 40GB", "H100 SXM 80GB", "H200 SXM 141GB"};
	struct step_config c = config("llama3-8b", "ddp", 16, 4096);
	json_t *j = plan(&c);
	int checked = 0;
	for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++)
		for (size_t g = 0; g < sizeof(gpus) / sizeof(gpus[0]); g++) {
			int64_t n = from_ranks(j, words[w], gpus[g]);
			if (n < 0)
				continue;
			c = config("llama3-8b", words[w], (int)n, 4096);
			json_t *at = plan(&c);
			assert_true(fits(at, words[w], gpus[g], false));
			json_decref(at);
			checked++;
			if (n == 1)
				continue;
			c = config("llama3-8b", words[w], (int)n / 2, 4096);
			json_t *below = plan(&c);
			assert_false(fits(below, words[w], gpus[g], false));
			json_decref(below);
		}
	json_decref(j);
	assert_true(checked > 10);
	/* and with full recomputation */
	c = config("llama3-70b", "fsdp", 64, 8192);
	j = plan(&c);
	assert_int_equal(fb_json_int(fit_of(j, "zero3", "H100 SXM 80GB"),
				 "smallest_group_full_recompute", -1),
		32);
	assert_int_equal(from_ranks(j, "zero3", "H100 SXM 80GB"), -1);
	json_decref(j);
	for (int ranks = 16; ranks <= 32; ranks += 16) {
		c = config("llama3-70b", "fsdp", ranks, 8192);
		c.recompute = TR_RECOMPUTE_FULL;
		j = plan(&c);
		assert_int_equal(fits(j, "zero3", "H100 SXM 80GB", false), ranks == 32);
		json_decref(j);
	}
	/* hybrid: the group counts, not the number of groups */
	c = config("llama3-8b", "ddp", 16, 4096);
	j = plan(&c);
	int64_t f = from_ranks(j, "hybrid:8", "A100 40GB");
	json_decref(j);
	assert_int_equal(f, 16);
	c = config("llama3-8b", "hybrid:16", 64, 4096);
	j = plan(&c);
	assert_true(fits(j, "hybrid:16", "A100 40GB", false));
	assert_false(fits(j, "hybrid:8", "A100 40GB", false));
	json_decref(j);
}

static void the_reserve_is_what_the_rule_says(void **state)
{
	struct step_config c = config("llama3-8b", "zero3", 8, 4096);
	json_t *j = plan(&c), *r = strategy_of(j, "zero3");
	double total = fb_json_num(json_object_get(r, "memory_bytes"), "total", 0);
	double reserve = fb_json_num(json_object_get(j, "fit_rule"), "reserve_bytes", 0);
	assert_true(reserve >= 4e9 && reserve <= 6e9);
	size_t i;
	json_t *g;
	json_array_foreach (json_object_get(j, "gpus"), i, g) {
		double have = fb_json_num(g, "memory_bytes", 0);
		const char *name = fb_json_str(g, "gpu", "");
		assert_int_equal(fits(j, "zero3", name, false), total <= have - reserve);
		near(fb_json_num(fit_of(j, "zero3", name), "share_of_room", 0),
			total / (have - reserve), 1e-12);
	}
	assert_true(i >= 11);
	json_decref(j);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void rows_are_the_closed_forms(void **state)
{
	static const char *const words[] = {
		"ddp", "zero1", "zero2", "zero3", "shard-grad-op", "hybrid:8", "offload"};
	struct step_config base = config("llama3-8b", "offload", 32, 2048);
	base.offload_params = true;
	base.offload_file = true;
	base.clip = true;
	base.micro_batches = 2;
	json_t *j = plan(&base);
	assert_int_equal(json_array_size(json_object_get(j, "strategies")), 7);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct step_config c = base;
		struct step_bytes b;
		struct step_memory m;
		assert_int_equal(strategy_parse(words[i], 32, &c.strategy, NULL), 0);
		/* what only offload has must not weigh on the others */
		c.offload_params = c.offload_file = i == 6;
		step_bytes(&c, &b);
		step_memory(&c, &m);
		json_t *r = strategy_of(j, words[i]);
		assert_int_equal(fb_json_int(r, "shard", 0), c.strategy.shard);
		assert_int_equal(fb_json_int(r, "replicate", 0), c.strategy.replicate);
		json_t *x = json_object_get(r, "bytes_per_step");
		assert_true(fb_json_num(x, "all_gather", -1) == b.all_gather);
		assert_true(fb_json_num(x, "reduce_scatter", -1) == b.reduce_scatter);
		assert_true(fb_json_num(x, "all_reduce", -1) == b.all_reduce);
		assert_true(fb_json_num(x, "norm", -1) == b.norm);
		assert_true(fb_json_num(x, "offload_out", -1) == b.offload_out);
		assert_true(fb_json_num(x, "offload_in", -1) == b.offload_in);
		x = json_object_get(r, "memory_bytes");
		assert_true(fb_json_num(x, "params", -1) == m.params);
		assert_true(fb_json_num(x, "optimizer", -1) == m.optimizer);
		assert_true(fb_json_num(x, "grads", -1) == m.grads);
		assert_true(fb_json_num(x, "wire", -1) == m.wire);
		assert_true(fb_json_num(x, "activations", -1) == m.activations);
		assert_true(fb_json_num(x, "total", -1) == m.total);
		assert_true(fb_json_num(x, "host", -1) == m.host);
		assert_true(fb_json_num(x, "total_full_recompute", -1) < m.total);
	}
	json_decref(j);
}

static void model_and_flops_are_told(void **state)
{
	struct step_config c = config("llama3-70b", "fsdp", 64, 8192);
	json_t *j = plan(&c), *m = json_object_get(j, "model");
	assert_int_equal(fb_json_int(m, "parameters", 0), 70553706496);
	assert_int_equal(fb_json_int(m, "matmul_parameters", 0), 69501714432);
	assert_int_equal(fb_json_int(m, "block_parameters", 0), 855654400);
	json_t *f = json_object_get(j, "flops_per_token");
	near(fb_json_num(f, "6n", 0), 423.32e9, 1e-4);
	near(fb_json_num(f, "palm", 0), 423.32e9 + 12.0 * 80 * 64 * 128 * 8192, 1e-4);
	near(fb_json_num(f, "causal", 0), 449.22e9, 1e-4);
	json_t *k = json_object_get(j, "config");
	assert_string_equal(fb_json_str(k, "dtype", ""), "bf16");
	assert_string_equal(fb_json_str(k, "state_dtype", ""), "fp32");
	assert_int_equal(fb_json_int(k, "tokens_per_step", 0), 64 * 8192);
	json_decref(j);
}

static void a_hybrid_of_the_users_own_has_a_row_once(void **state)
{
	struct step_config c = config("tiny", "hybrid:4", 16, 32);
	json_t *j = plan(&c);
	assert_non_null(strategy_of(j, "hybrid:8"));
	assert_non_null(strategy_of(j, "hybrid:4"));
	assert_int_equal(json_array_size(json_object_get(j, "strategies")), 8);
	json_decref(j);
	c = config("tiny", "hybrid:8", 16, 32);
	j = plan(&c);
	assert_int_equal(json_array_size(json_object_get(j, "strategies")), 7);
	json_decref(j);
	/* within one node, or where nodes would be cut, groups of a node are none */
	c = config("tiny", "ddp", 8, 32);
	j = plan(&c);
	assert_null(strategy_of(j, "hybrid:8"));
	json_decref(j);
	c = config("tiny", "ddp", 12, 32);
	j = plan(&c);
	assert_null(strategy_of(j, "hybrid:8"));
	json_decref(j);
}

/* ---- the network ----------------------------------------------------------------------------- */

static void bytes_out_of_a_node_are_the_least_that_must_leave(void **state)
{
	struct step_config c = config("llama3-70b", "zero3", 64, 2048);
	struct model_unit block, root;
	model_unit(&c.model, 0, &block);
	model_unit(&c.model, c.model.layers, &root);
	const double psi = (double)model_params(&c.model);
	const double gathers = 2 * psi - (double)block.elements - (double)root.elements;
	/* gathered forward and back in bf16, reduced in fp32 */
	near(train_plan_node_bytes(&c, 8), 2 * gathers + 4 * psi, 1e-9);
	/* a node of one rank sends what the rank sends, but for the last node's share */
	near(train_plan_node_bytes(&c, 1), 2 * gathers + 4 * psi, 1e-9);
	assert_true(train_plan_node_bytes(&c, 64) == 0);
	/* replicas: there and back, of the whole gradient, whatever the groups */
	static const char *const within[] = {"ddp", "hybrid:2", "hybrid:8"};
	for (int i = 0; i < 3; i++) {
		c = config("llama3-70b", within[i], 64, 2048);
		near(train_plan_node_bytes(&c, 8), 2 * 4 * psi, 1e-9);
		assert_true(train_plan_node_bytes(&c, 64) == 0);
	}
	/* groups of two nodes: all of the group's, and each node's half of the gradient */
	c = config("llama3-70b", "hybrid:16", 64, 2048);
	near(train_plan_node_bytes(&c, 8), 2 * gathers + 4 * psi + 2 * 4 * psi / 2, 1e-9);
}

/* T* of 70B on H100s at 55 % with bf16 on the wire. The law of three times the parameters is an
 * upper bound: the root is gathered once, the last block once. 6N against PaLM's count at a short
 * sequence differ by 0.3 %. */
static void tokens_follow_the_law(void **state)
{
	static const struct {
		double gbits, full, hybrid;
	} law[] = {
		{400, 1360, 907},
		{200, 2720, 1813},
		{100, 5440, 3626},
		{50, 10879, 7253},
		{25, 21758, 14505},
	};
	struct step_config full = config("llama3-70b", "fsdp", 512, 128);
	struct step_config hybrid = config("llama3-70b", "hybrid:8", 512, 128);
	full.reduce = hybrid.reduce = TR_BF16;
	for (size_t i = 0; i < sizeof(law) / sizeof(law[0]); i++) {
		double nic = law[i].gbits * 1e9 / 8;
		double t = train_plan_t_star(&full, 8, 0.55, 989.4e12, nic);
		assert_true(t < law[i].full && t > 0.97 * law[i].full);
		near(train_plan_t_star(&hybrid, 8, 0.55, 989.4e12, nic), law[i].hybrid, 5e-3);
	}
	/* it does not depend on the size of micro-batches, nor on the model but little */
	double t = train_plan_t_star(&full, 8, 0.55, 989.4e12, 50e9);
	full.micro_seqs = 16;
	near(train_plan_t_star(&full, 8, 0.55, 989.4e12, 50e9), t, 1e-12);
	struct step_config big = config("llama3-405b", "fsdp", 512, 128);
	big.reduce = TR_BF16;
	near(train_plan_t_star(&big, 8, 0.55, 989.4e12, 50e9), t, 0.03);
	/* adding micro-batches up before reducing needs fewer tokens in each */
	hybrid.micro_batches = 4;
	near(train_plan_t_star(&hybrid, 8, 0.55, 989.4e12, 50e9), 907 / 4.0, 5e-3);
}

static void the_plan_tells_t_star_of_every_gpu(void **state)
{
	struct step_config c = config("llama3-70b", "fsdp", 64, 4096);
	json_t *j = plan(&c), *rule = json_object_get(j, "t_star_rule");
	json_t *nics = json_object_get(rule, "nic_bytes_per_s");
	double share = fb_json_num(rule, "share_of_peak", 0);
	assert_int_equal(json_array_size(nics), 6);
	size_t i, n;
	json_t *g, *nic;
	json_array_foreach (json_object_get(j, "gpus"), i, g) {
		json_t *t = named(json_object_get(strategy_of(j, "zero3"), "t_star"), "gpu",
			fb_json_str(g, "gpu", ""));
		assert_non_null(t);
		json_array_foreach (nics, n, nic)
			near(json_number_value(json_array_get(json_object_get(t, "tokens"), n)),
				train_plan_t_star(&c, 8, share,
					fb_json_num(g, "bf16_flops_per_s", 0),
					json_number_value(nic)),
				1e-12);
	}
	json_decref(j);
	/* fp64 has no peak here: null, and why */
	c.work = c.reduce = TR_F64;
	j = plan(&c);
	g = json_array_get(json_object_get(strategy_of(j, "zero3"), "t_star"), 0);
	assert_true(json_is_null(json_array_get(json_object_get(g, "tokens"), 0)));
	assert_non_null(fb_json_str(g, "tokens_reason", NULL));
	json_decref(j);
}

/* ---- text ------------------------------------------------------------------------------------ */

static char *printed(const struct step_config *c, const struct train_plan_opts *o)
{
	struct fb_err e = {0};
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	assert_non_null(f);
	if (train_plan_print(c, o, f, &e) != 0)
		fail_msg("%s", e.msg);
	fclose(f);
	return text;
}

static void has(const char *text, const char *what)
{
	if (!strstr(text, what))
		fail_msg("\"%s\" stands nowhere in:\n%s", what, text);
}

/* The words of the line that begins so, after a heading. */
static void line_of(const char *text, const char *after, const char *begin, char *out, size_t len)
{
	const char *s = strstr(text, after);
	assert_non_null(s);
	s = strstr(s, begin);
	assert_non_null(s);
	snprintf(out, len, "%.*s", (int)strcspn(s, "\n"), s);
}

static void the_text_says_it_all(void **state)
{
	struct step_config c = config("llama3-70b", "fsdp", 64, 512);
	char *text = printed(&c, NULL), line[200];
	has(text, "parameters 70,553,706,496; in products 69,501,714,432");
	has(text, "64 ranks, 8 a node; micro-batch 1 x 512 = 512 tokens");
	has(text, "bf16 work, fp32 master");
	has(text, "6n 423.3, palm 427.3, causal 419.0");
	has(text, "Bytes a rank sends in a step, and all that leaves a node, in GB");
	has(text, "H100 SXM 80GB");
	line_of(text, "What fits on 64 ranks", "  zero3 = fsdp", line, sizeof(line));
	assert_string_equal(line, "  zero3 = fsdp        no      yes      yes      yes      yes   "
				  "   yes      yes      yes");
	line_of(text, "What fits on 64 ranks", "  hybrid:8", line, sizeof(line));
	assert_non_null(strstr(line, "hybrid:8            no       no       no       no       no"));
	line_of(text, "Ranks from which on", "  ddp", line, sizeof(line));
	assert_null(strpbrk(line, "0123456789"));
	line_of(text, "Ranks from which on", "  hybrid:F", line, sizeof(line));
	assert_non_null(strstr(line, " 256/128 "));
	line_of(text, "T*: tokens", "  zero3 = fsdp", line, sizeof(line));
	assert_int_equal(strtol(line + 15, NULL, 10), 28448);
	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "inf"));
	free(text);
	/* every table has every strategy, and no line is out of hand */
	text = printed(&c, &(struct train_plan_opts){.ranks_per_node = 4, .share = 0.4});
	has(text, "64 ranks, 4 a node");
	has(text, "hybrid:4");
	has(text, "at 40 % of its");
	int rows = 0;
	for (const char *s = text; *s;) {
		size_t n = strcspn(s, "\n");
		rows += strncmp(s, "  shard-grad-op", 15) == 0;
		assert_true(n <= 125);
		s += n + (s[n] == '\n');
	}
	assert_int_equal(rows, 5);
	free(text);
}

static void small_and_odd_plans_are_printed_too(void **state)
{
	struct step_config c = config("tiny", "ddp", 1, 16);
	char *text = printed(&c, NULL);
	has(text, "in B\n"); /* one rank sends nothing */
	has(text, "in kB");
	has(text, "nothing leaves it");
	free(text);
	c = config("gpt2-124m", "hybrid:3", 24, 1024);
	c.work = c.reduce = TR_F64;
	c.micro_batches = 3;
	c.sync_each = true;
	text = printed(&c, NULL);
	has(text, "tied to embedding");
	has(text, "hybrid:3");
	has(text, "after each micro-batch");
	assert_null(strstr(text, "T*")); /* no peak for fp64 */
	free(text);
}

static void impossible_plans_are_refused(void **state)
{
	struct step_config c = config("gpt2-124m", "ddp", 4, 2048);
	struct fb_err e = {0};
	json_t *j = NULL;
	assert_int_equal(train_plan_json(&c, NULL, &j, &e), -EINVAL);
	assert_null(j);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	assert_non_null(strstr(e.msg, "2048 tokens, but gpt2-124m has 1024 positions"));
	assert_non_null(strstr(e.hint, "--seq 1024"));
	fb_err_clear(&e);
	c.seq = 64;
	c.ranks = 0;
	assert_int_equal(train_plan_print(&c, NULL, stdout, &e), -EINVAL);
	fb_err_clear(&e);
	c.ranks = 4;
	c.micro_seqs = (int64_t)1 << 40;
	assert_int_equal(train_plan_json(&c, NULL, &j, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "that is no step"));
	fb_err_clear(&e);
	c.micro_seqs = 1;
	c.model.heads = 5;
	c.model.kv_heads = 2;
	assert_int_equal(train_plan_json(&c, NULL, &j, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "no multiple of kv-heads"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hybrid_of_70b_does_not_fit_80_gb_and_zero3_does),
		cmocka_unit_test(smallest_groups_are_the_smallest),
		cmocka_unit_test(the_reserve_is_what_the_rule_says),
		cmocka_unit_test(rows_are_the_closed_forms),
		cmocka_unit_test(model_and_flops_are_told),
		cmocka_unit_test(a_hybrid_of_the_users_own_has_a_row_once),
		cmocka_unit_test(bytes_out_of_a_node_are_the_least_that_must_leave),
		cmocka_unit_test(tokens_follow_the_law),
		cmocka_unit_test(the_plan_tells_t_star_of_every_gpu),
		cmocka_unit_test(the_text_says_it_all),
		cmocka_unit_test(small_and_odd_plans_are_printed_too),
		cmocka_unit_test(impossible_plans_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
