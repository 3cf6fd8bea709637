// SPDX-License-Identifier: Apache-2.0
/*
 * Claims: the article's file and its verdicts, published runs that must stay possible, and other
 * models, GPUs and settings with figures computed by hand.
 */
#include "bench/core/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/predict/claims_priv.h"

#define ARTICLE   FB_TESTDATA("bench/predict", "article_claims.csv")
#define PUBLISHED FB_TESTDATA("bench/predict", "published.csv")

#define HEADER                                                                               \
	"id,kind,model,params,gpu,n_gpus,gpus_per_node,mem_gb,seq_len,tokens_per_gpu,dtype," \
	"strategy,tp,pp,dp,nic_gbps_per_gpu,quantity,value,unit,source,quote\n"

static struct claims *judge(const char *text, size_t len)
{
	struct claims *c = NULL;
	struct fb_err e = {0};
	if (claims_judge(text, len, "t.csv", &c, &e) != 0)
		fail_msg("%s", e.msg);
	return c;
}

static char *slurp(const char *path, size_t *len)
{
	char *text = NULL;
	struct fb_err e = {0};
	if (fb_read_file(path, CLAIMS_MAX_BYTES, &text, len, &e) != 0)
		fail_msg("%s", e.msg);
	return text;
}

static struct claims *judge_file(const char *path)
{
	size_t len;
	char *text = slurp(path, &len);
	struct claims *c = judge(text, len);
	free(text);
	return c;
}

static const struct claim *find(const struct claims *c, const char *id)
{
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->row[i].text[COL_ID], id) == 0)
			return &c->row[i];
	fail_msg("no row %s", id);
	return NULL;
}

/** What a row must be judged. */
struct expected {
	const char *row; /* an id, or the row itself without its id */
	const char *verdict;
	double factor; /* percent, within half a point; 0: not looked at; NAN: must be none */
	const char *says[4];
};

static void assert_judged(const struct claim *c, const struct expected *x)
{
	const char *verdict = claim_verdict_names[c->verdict];
	if (strcmp(verdict, x->verdict) != 0)
		fail_msg("%s: %s, not %s: %s", x->row, verdict, x->verdict, c->why.s);
	if (isnan(x->factor) ? !isnan(c->factor)
			     : x->factor != 0 && !(fabs(c->factor - x->factor) <= 0.5))
		fail_msg("%s: factor %g, not %g: %s", x->row, c->factor, x->factor, c->why.s);
	for (size_t i = 0; i < 4 && x->says[i]; i++)
		if (!strstr(c->why.s, x->says[i]))
			fail_msg("%s: \"%s\" does not say \"%s\"", x->row, c->why.s, x->says[i]);
	assert_null(strstr(c->why.s, "nan"));
	assert_null(strstr(c->why.s, "inf"));
}

/* ---- files ----------------------------------------------------------------------------------- */

static const struct expected article[] = {
	{"fsdp-tokens", "impossible", 146.3, {"146 %", "2,337 tok/s", "1,267 tok/s"}},
	{"fsdp-mfu", "depends", NAN, {"1,267 tok/s", "2.70 times"}},
	{"fsdp-oom", "unsourced", NAN, {"2,995 trials"}},
	{"fsdp-fit", "impossible", 176.4, {"141.1 GB of 80 GB"}},
	{"zero3-tokens", "impossible", 127.5, {"128 %"}},
	{"zero3-mfu", "depends", NAN, {"1,136 tok/s"}},
	{"megatron-tokens", "impossible", 158.7, {"159 %"}},
	{"megatron-mfu", "depends", NAN, {"1,365 tok/s"}},
	{"hsdp-saving", "depends", NAN,
		{"33, 67, 83, 92 % (holds at M = 2, 4, 8)", "33, 60, 78, 88 % (holds at M = 4, 8)",
			"0, 50, 75, 88 % (holds at M = 4, 8)",
			"fp32 gradients, reduced after each micro-batch: 0, 0, 0, 0 %"}},
	{"zero1-memory", "impossible", 200, {"2x at most", "master"}},
	{"zero1-penalty", "possible", 100, {"1 times the bytes of ddp"}},
	{"single-80", "possible", 1411, {"1,129 GB of 80 GB"}},
	{"single-141", "possible", 800.6, {"1,129 GB of 141 GB"}},
	{"ib-tail", "depends", NAN, {"1.6 us", "8k: 0.38 %"}},
	{"roce-tail", "depends", NAN, {"1.6 us", "1k: 3.07 %, 2k: 1.54 %, 4k: 0.77 %, 8k: 0.38 %"}},
	{"latency-effect", "depends", NAN,
		{"1k: 3.07 %, 2k: 1.54 %, 4k: 0.77 %, 8k: 0.38 %", "value is empty"}},
	{"roce-collapse", "depends", NAN,
		{"UDP: no TCP", "4.29 s each", "3.02 GB/s (6 % of its line)", "3 time-outs"}},
	{"nvlink4", "possible", 100, {"900 GB/s", "NVLink 4"}},
	{"nvlink-mfu", "depends", NAN, {"model is empty", "574 TFLOP/s"}},
};
#define NARTICLE (sizeof(article) / sizeof(article[0]))

static void test_article(void **state)
{
	(void)state;
	struct claims *c = judge_file(ARTICLE);
	assert_int_equal(c->n, NARTICLE);
	assert_int_equal(claims_bad(c), 0);
	for (size_t i = 0; i < NARTICLE; i++)
		assert_judged(find(c, article[i].row), &article[i]);
	assert_int_equal(claims_with(c, CLAIM_IMPOSSIBLE), 5);
	claims_free(c);
}

/* Verdicts and factors are the same whatever the rows are called. */
static void test_ids_do_not_matter(void **state)
{
	(void)state;
	size_t len;
	struct fb_strbuf other = {0};
	char *text = slurp(ARTICLE, &len), *rest = text, *line;
	for (unsigned row = 0; (line = strsep(&rest, "\n")) != NULL; row++) {
		const char *comma = strchr(line, ',');
		if (line[0] == '#' || strncmp(line, "id,", 3) == 0 || !comma)
			fb_strbuf_printf(&other, "%s\n", line);
		else
			fb_strbuf_printf(&other, "row-%u%s\n", row, comma);
	}
	struct claims *a = judge_file(ARTICLE), *b = judge(other.s, other.len);
	assert_int_equal(a->n, NARTICLE);
	assert_int_equal(b->n, NARTICLE);
	for (size_t i = 0; i < a->n; i++) {
		assert_int_equal(a->row[i].verdict, b->row[i].verdict);
		assert_true(a->row[i].factor == b->row[i].factor ||
			    (isnan(a->row[i].factor) && isnan(b->row[i].factor)));
	}
	claims_free(a);
	claims_free(b);
	fb_strbuf_free(&other);
	free(text);
}

static void test_published_runs_are_possible(void **state)
{
	(void)state;
	struct claims *c = judge_file(PUBLISHED);
	assert_int_equal(claims_bad(c), 0);
	assert_int_equal(c->n, 12);
	for (size_t i = 0; i < c->n; i++)
		if (c->row[i].verdict != CLAIM_POSSIBLE)
			fail_msg("%s: %s", c->row[i].text[COL_ID], c->row[i].why.s);
	claims_free(c);
}

/* ---- other models, GPUs and settings --------------------------------------------------------- */

static void judge_each(const struct expected *x, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct fb_strbuf b = {0};
		fb_strbuf_printf(&b, HEADER "r1,%s\n", x[i].row);
		struct claims *c = judge(b.s, b.len);
		if (claims_bad(c) > 0)
			fail_msg("%s: %s", x[i].row, claims_error(c, 0)->msg);
		assert_int_equal(c->n, 1);
		assert_judged(&c->row[0], &x[i]);
		claims_free(c);
		fb_strbuf_free(&b);
	}
}
#define JUDGE_EACH(x) judge_each(x, sizeof(x) / sizeof((x)[0]))

#define TOKENS "tokens_per_gpu_per_s"

static void test_throughput(void **state)
{
	(void)state;
	static const struct expected rows[] = {
		/* 652 * 6 * 70.55e9 / 989.4e12; causal over 8192: 449.2e9 FLOP a token */
		{"throughput,llama3-70b,,H100-SXM,256,8,80,8192,,bf16,fsdp,8,1,32,400," TOKENS
		 ",652,tok/s,,",
			"possible", 27.9, {"29.6 % with causal", "668 tokens"}},
		{"throughput,,175e9,A100,1024,8,80,2048,,fp16,megatron,8,16,8,200," TOKENS
		 ",150,tok/s,,",
			"possible", 50.5, {"175e9"}},
		{"throughput,,175e9,A100,1024,8,80,2048,,fp16,megatron,8,16,8,200," TOKENS
		 ",450,tok/s,,",
			"impossible", 151.4, {"297 tok/s"}},
		/* How it is cut is not told: 18 bytes over all ranks are the least. */
		{"throughput,llama-65b,,A100-80GB,2048,8,80,2048,,bf16,megatron,,,,," TOKENS
		 ",380,tok/s,,",
			"possible", 47.7, {"65.3e9"}},
		{"throughput,llama-65b,,A100-80GB,4,4,80,2048,,bf16,megatron,,,,," TOKENS
		 ",380,tok/s,,",
			"impossible", 367.3, {"293.8 GB"}},
		{"throughput,house model,30B,A100,,,,,,bf16,,,,,," TOKENS ",1,ktok/s,,", "possible",
			57.7, {"30e9"}},
		/* fp8 has its own peak; where there is none, 16 bits are the best */
		{"throughput,llama3-8b,,B200,256,8,180,,,fp8,fsdp,1,1,256,," TOKENS
		 ",60000,tok/s,,",
			"possible", 64.2, {"fp8 peak of B200"}},
		{"throughput,llama2-7b,,A100,8,8,80,,,fp8,fsdp,1,1,8,," TOKENS ",9000,tok/s,,",
			"impossible", 116.6, {"it has no fp8"}},
		{"throughput,llama3-70b,,H100-SXM,64,8,80,,,,,,,,," TOKENS ",3420,tok/s,,",
			"depends", NAN, {"dtype is empty", "73.2 %"}},
		/* attention alone: 8B over 128k tokens */
		{"throughput,llama3-8b,,H200,256,8,,131072,,bf16,fsdp,1,1,256,," TOKENS
		 ",15000,tok/s,,",
			"impossible", 225, {"73 %", "225 % with causal"}},
		/* an embedding may be what 6N counts too much: 8.03 against 7.50e9 */
		{"throughput,llama3-8b,,H100,8,8,80,,,bf16,fsdp,1,1,8,," TOKENS ",21000,tok/s,,",
			"depends", 102.3, {"95.6 %", "embedding"}},
		/* the wire: 2048 tokens at 100 Gb/s per GPU */
		{"throughput,llama3-70b,,H100,64,8,80,,2048,bf16,fsdp,1,1,64,100," TOKENS
		 ",1000,tok/s,,",
			"impossible", 180.9, {"553 tok/s at most"}},
		{"throughput,llama3-70b,,H100,64,8,80,,4096,bf16,fsdp,1,1,64,100," TOKENS
		 ",1000,tok/s,,",
			"possible", 42.8, {NULL}},
		/* states that do not fit: 1129 GB */
		{"throughput,llama3-70b,,H100,64,8,80,,,bf16,ddp,1,1,64,400," TOKENS ",500,tok/s,,",
			"impossible", 1411, {"does not fit"}},
		/* of a whole cluster */
		{"throughput,llama3-70b,,H100,64,8,80,,,bf16,fsdp,,,,,tokens_per_s,64000,tok/s,,",
			"possible", 42.8, {NULL}},
		{"throughput,llama3-70b,,H100,,8,80,,,bf16,fsdp,,,,,tokens_per_s,64000,tok/s,,",
			"depends", NAN, {"n_gpus is empty"}},
		{"throughput,llama3-70b,,,64,8,80,,,bf16,fsdp,,,,," TOKENS ",1000,tok/s,,",
			"depends", NAN, {"gpu is empty", "423 TFLOP/s"}},
		{"throughput,,,H100,64,8,80,,,bf16,fsdp,,,,," TOKENS ",1000,tok/s,,", "depends",
			NAN, {"model is empty", "165e9"}},
		{"throughput,llama3-70b,,H100,64,8,80,,,bf16,fsdp,,,,," TOKENS ",1800,tok/s,,",
			"possible", 77, {"65.3 %"}},
		{"throughput,,,H100,,,,,,bf16,,,,,,tflops_per_gpu,1.2,PFLOP/s,,", "impossible",
			121.3, {NULL}},
		{"throughput,,,H100,,,,,,,,,,,,tflops_per_gpu,1200,TFLOP/s,,", "depends", NAN,
			{"fp8"}},
		{"throughput,,,A100,,,,,,bf16,,,,,,tflops_per_gpu,166,TFLOPs,,", "possible", 53.2,
			{NULL}},
		{"throughput,,,A100,,,,,,bf16,,,,,,tflops_per_gpu,166,PFLOPS,,", "impossible",
			53205, {NULL}},
		{"throughput,,,A100,,,,,,bf16,,,,,,tflops_per_gpu,166,TFLOP/s,,", "possible", 53.2,
			{NULL}},
	};
	JUDGE_EACH(rows);
}

static void test_mfu(void **state)
{
	(void)state;
	static const struct expected rows[] = {
		{"mfu,llama3-8b,,H100,64,8,80,,,bf16,fsdp,,,,400,mfu,45,%,,", "possible", 45,
			{"9,241 tok/s", "974 tokens"}},
		{"mfu,llama3-8b,,H100,64,8,80,,,bf16,fsdp,,,,400,mfu,0.45,fraction,,", "possible",
			45, {NULL}},
		{"mfu,llama3-8b,,H100,64,8,80,,,bf16,fsdp,,,,400,mfu,0.45,%,,", "possible", 0.45,
			{"its unit is fraction, and it is 45 %"}},
		{"mfu,llama3-8b,,H100,64,8,80,,,bf16,fsdp,,,,400,mfu,145,%,,", "impossible", 145,
			{NULL}},
		{"mfu,llama3-8b,,H100,64,8,80,,,bf16,fsdp,,,,25,mfu,45,%,,", "depends", NAN,
			{"tokens_per_gpu is empty"}},
		{"mfu,llama3-8b,,H100,64,8,80,,1024,bf16,fsdp,,,,100,mfu,60,%,,", "impossible", 507,
			{NULL}},
		{"mfu,llama3-70b,,H100,64,8,80,,,bf16,hybrid:4,,,,400,mfu,40,%,,", "impossible",
			352.8, {"does not fit"}},
		{"mfu,llama3-70b,,H100,64,8,80,,,bf16,offload,,,,400,mfu,48.6,%,,", "depends", NAN,
			{"0.823 s", "tokens_per_gpu is empty"}},
		{"mfu,,,A100,8,8,80,,,,,,,,,mfu,58,%,,", "depends", NAN,
			{"model is empty", "181 TFLOP/s"}},
	};
	JUDGE_EACH(rows);
}

/* Tokens and MFU of the same run, and of others. */
static void test_rows_of_one_subject(void **state)
{
	(void)state;
	static const char text[] = HEADER
		"a1,mfu,llama2-7b,,A100,256,8,80,4096,,bf16,zero3,,,,200,mfu,50,%,y,\n"
		"a2,throughput,llama2-7b,,A100,256,8,80,4096,,bf16,zero3,,,,200," TOKENS
		",3600,tok/s,y,\n"
		"b1,mfu,llama2-13b,,H200,256,8,141,4096,,bf16,zero3,,,,200,mfu,70,%,y,\n"
		"b2,throughput,llama2-13b,,H200,256,8,141,4096,,bf16,zero3,,,,200," TOKENS
		",3000,tok/s,y,\n"
		"c1,mfu,llama3-8b,,H100,128,8,80,,,bf16,zero3,,,,200,mfu,20,%,y,\n"
		"c2,throughput,llama3-8b,,H100,128,8,80,,,bf16,zero3,,,,200," TOKENS
		",8214,tok/s,y,\n"
		"d1,hfu,llama3-8b,,H100,128,8,80,,,bf16,zero3,,,,200,hfu,20,%,y,\n"
		"e1,mfu,llama3-8b,,H100,128,8,80,,,bf16,zero3,,,,200,mfu,55,%,another paper,\n";
	struct claims *c = judge(text, strlen(text));
	static const struct expected rows[] = {
		{"a1", "possible", 50, {"46.7 %", "Both agree"}},
		{"a2", "possible", 46.6, {"both agree"}},
		{"b1", "impossible", 295.6, {"8,868 tok/s", "one of the two rows is wrong"}},
		{"b2", "possible", 23.7, {"0.34 times"}},
		{"c1", "depends", 50, {"sparse peak"}},
		{"c2", "possible", 40, {NULL}},
		{"e1", "possible", 55, {"11,294 tok/s"}},
	};
	assert_int_equal(c->n, 7);
	assert_int_equal(claims_bad(c), 1); /* d1: hfu is no kind */
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_judged(find(c, rows[i].row), &rows[i]);
	claims_free(c);
}

static void test_memory(void **state)
{
	(void)state;
	static const struct expected rows[] = {
		{"memory,llama3-70b,,H100,64,8,80,,,bf16,hybrid:8,,,,,fits,no,bool,,", "possible",
			176.4, {"141.1 GB"}},
		{"memory,llama3-70b,,H100,64,8,80,,,bf16,hybrid:16,,,,,fits,yes,bool,,", "depends",
			88.2, {"70.55 GB"}},
		{"memory,llama3-70b,,H100,64,8,80,,,bf16,hybrid:32,,,,,fits,yes,bool,,", "possible",
			44.1, {"35.28 GB"}},
		{"memory,llama3-70b,,H200,64,8,141,,,bf16,hybrid:8,,,,,fits,yes,bool,,",
			"impossible", 100, {"141.1 GB of 141 GB"}},
		{"memory,llama3-70b,,B200,64,8,180,,,bf16,hybrid,,,,,fits,yes,bool,,", "possible",
			78.4, {"F is not told"}},
		{"memory,llama3-70b,,H100,64,8,80,,,bf16,zero1,,,,,fits,yes,bool,,", "impossible",
			369.3, {"295.4 GB"}},
		{"memory,llama3-70b,,H100,64,8,80,,,bf16,zero2,,,,,fits,yes,bool,,", "impossible",
			195.7, {"156.5 GB"}},
		{"memory,llama3-70b,,H100,64,8,80,,,bf16,zero3,,,,,fits,yes,bool,,", "possible", 22,
			{"17.64 GB"}},
		{"memory,llama3-70b,,H100,64,8,80,,,bf16,zero3,,,,,fits,no,bool,,", "impossible",
			22, {"It fits"}},
		{"memory,llama3-70b,,H100,64,8,80,,,bf16,shard-grad-op,,,,,fits,yes,bool,,",
			"impossible", 198.4, {"158.7 GB"}},
		{"memory,llama3-70b,,H100,16,8,80,,,bf16,offload,,,,,fits,yes,bool,,", "possible",
			22, {"host holds another 423 GB"}},
		{"memory,llama3-70b,,H100,64,8,80,,,bf16,megatron,8,2,4,,fits,yes,bool,,",
			"possible", 49.6, {"39.69 GB", "distributed optimizer only"}},
		{"memory,llama3-70b,,H100,64,8,80,,,bf16,megatron,8,2,4,,fits,no,bool,,", "depends",
			49.6, {NULL}},
		/* 64 / 4 are tp x pp; without any of them nothing says how they are cut */
		{"memory,llama3-70b,,H100,64,8,80,,,bf16,megatron,,,4,,fits,yes,bool,,", "possible",
			49.6, {"39.69 GB", "distributed optimizer only"}},
		{"memory,llama3-70b,,H100,64,8,80,,,bf16,megatron,,,,,fits,yes,bool,,", "depends",
			NAN, {"tp is empty"}},
		{"memory,llama3-70b,,H100,64,8,80,,,bf16,megatron,8,,,,fits,yes,bool,,", "depends",
			NAN, {"pp is empty"}},
		{"memory,gpt2-124m,,V100,1,1,16,,,fp16,ddp,,,,,fits,yes,bool,,", "possible", 12.4,
			{NULL}},
		/* sold with 40 and 80 GB: 43.75 fit in one of them */
		{"memory,,175e9,A100,64,8,,,,bf16,fsdp,,,,,fits,yes,bool,,", "depends", NAN,
			{"mem_gb is empty"}},
		{"memory,,175e9,A100-40GB,64,8,,,,bf16,fsdp,,,,,fits,yes,bool,,", "impossible",
			109.4, {NULL}},
		{"memory,llama3-8b,,H100,,,80,,,bf16,zero3,,,,,fits,yes,bool,,", "depends", NAN,
			{"n_gpus is empty"}},
		{"memory,llama3-8b,,H100,8,8,80,,,bf16,,,,,,fits,yes,bool,,", "depends", NAN,
			{"strategy is empty", "16.06 GB"}},
		{"memory,,,H100,64,8,80,,,bf16,hybrid:8,,,,,fits,yes,bool,,", "depends", NAN,
			{"model is empty", "40e9"}},
		{"memory,llama3-8b,,,8,8,,,,bf16,zero3,,,,,fits,yes,bool,,", "depends", NAN,
			{"mem_gb is empty"}},
		/* reductions: 16 over 4 + 12/G, 2 + 14/G, 16/G */
		{"memory,,,,64,,,,,fp16,zero1,,,,,state_memory_reduction,4,x at most,,", "possible",
			104.7, {NULL}},
		{"memory,,,,8,,,,,fp16,zero1,,,,,state_memory_reduction,4,x,,", "depends", 137.5,
			{"more ranks"}},
		{"memory,,,,64,,,,,fp16,zero1,,,,,state_memory_reduction,6,x,,", "impossible",
			157.1, {"limit of 4"}},
		{"memory,,,,,,,,,fp16,zero1,,,,,state_memory_reduction,2,x,,momentum and variance",
			"possible", 100, {NULL}},
		{"memory,,,,,,,,,fp16,zero1,,,,,state_memory_reduction,4,x,,Shards Momentum and fp32 "
		 "master",
			"possible", 100, {NULL}},
		{"memory,,,,,,,,,fp16,zero2,,,,,state_memory_reduction,8,x,,", "possible", 100,
			{NULL}},
		{"memory,,,,64,,,,,fp16,fsdp,,,,,state_memory_reduction,64,x,,", "possible", 100,
			{NULL}},
		{"memory,,,,64,,,,,fp16,fsdp,,,,,state_memory_reduction,100,x,,", "impossible",
			156.3, {NULL}},
		{"memory,llama3-70b,,,64,,,,,bf16,zero3,,,,,state_memory_per_gpu,17.6,GB,,",
			"possible", 99.8, {"17.64 GB"}},
		{"memory,llama3-70b,,,64,,,,,bf16,zero2,,,,,state_memory_per_gpu,17.6,GB,,",
			"impossible", 11.2, {"156.5 GB"}},
	};
	JUDGE_EACH(rows);
}

static void test_traffic(void **state)
{
	(void)state;
	static const struct expected rows[] = {
		{"traffic,,,,,8,,,,,hybrid:8,,,,,inter_node_reduction_vs_zero3,33,%,,", "depends",
			NAN, {"33, 33, 33, 33 % (holds at M = 1, 2, 4, 8)", "7 of these 24"}},
		{"traffic,,,,,8,,,,,hsdp,,,,,inter_node_reduction_vs_fsdp,98,% at least,,",
			"depends", NAN, {"32 micro-batches"}},
		{"traffic,,,,,8,,,,,hybrid:8,,,,,inter_node_reduction_vs_zero3,100,%,,",
			"impossible", 109.1, {"under no setting"}},
		{"traffic,,,,,8,,,,bf16/fp32,hybrid:8,,,,,inter_node_reduction_vs_zero3,50,%,,",
			"depends", NAN, {"0, 50, 75, 88 % (holds at M = 2)"}},
		{"traffic,,,,64,8,,,,,hybrid:8,,,,,inter_node_reduction_vs_shard_grad_op,50,%,,",
			"depends", NAN, {"fp32 gradients, reduced after each micro-batch: -33"}},
		{"traffic,,,,8,8,,,,,hybrid:8,,,,,inter_node_reduction_vs_zero3,33,%,,",
			"impossible", NAN, {"one node"}},
		{"traffic,,,,,,,,,,hybrid:8,,,,,inter_node_reduction_vs_zero3,33,%,,", "depends",
			NAN, {"gpus_per_node is empty"}},
		{"traffic,,,,,8,,,,,,,,,,inter_node_reduction_vs_zero3,33,%,,", "depends", NAN,
			{"strategy is empty"}},
		{"traffic,,,,,8,,,,,zero3,,,,,communication_vs_ddp,1.5,x,,", "possible", 100,
			{"6 against 4 bytes"}},
		{"traffic,,,,,8,,,,,zero3,,,,,communication_vs_ddp,1,x,,", "depends", 66.7, {NULL}},
		{"traffic,,,,,8,,,,bf16/bf16,zero3,,,,,communication_vs_ddp,1,x,,", "impossible",
			66.7, {NULL}},
		{"traffic,,,,,8,,,,,shard-grad-op,,,,,communication_vs_ddp,1,x,,", "possible", 100,
			{NULL}},
		{"traffic,,,,,8,,,,,megatron,8,2,4,,communication_vs_ddp,1,x,,", "depends", NAN,
			{"activations"}},
	};
	JUDGE_EACH(rows);
}

static void test_network(void **state)
{
	(void)state;
	static const struct expected rows[] = {
		/* 3 * 255 steps, 33 units, 2 us: 50.5 ms; 4096 tokens at 55 %: 363 ms */
		{"mfu,llama3-8b,,H100,256,8,80,,4096,bf16,zero3,1,1,256,400,mfu_effect_of_2us,10,points,,",
			"impossible", 148.9, {"50.5 ms", "6.72 points"}},
		{"mfu,llama3-8b,,A100,128,8,80,,16384,bf16,zero3,1,1,128,400,mfu_effect_of_1600ns,0.1,"
		 "points,,",
			"possible", 41.8, {"0.239 points"}},
		{"mfu,llama3-8b,,A100,8,8,80,,16384,bf16,zero3,1,1,8,400,mfu_effect_of_2us,1,points,,",
			"impossible", NAN, {"one node"}},
		{"mfu,,,A100,16,8,80,,16384,bf16,zero3,1,1,16,400,mfu_effect_of_2us,1,points,,",
			"depends", NAN, {"model is empty"}},
		{"latency,,,,,,,,,,,,,,400,tail_latency,5,us,,", "depends", NAN, {"percentile"}},
		{"latency,llama3-70b,,H100,64,8,,,,,fsdp,,,,400,latency,2800,ns,,", "depends", NAN,
			{"2.8 us into 42.9 ms", "8k: 0.67 %"}},
		/* 40 % of 312e12 FLOP/s over 8 * 4096 tokens: 3.81e9 bytes/s */
		{"mfu,llama2-70b,,A100,64,8,80,,4096,bf16,zero3,1,1,64,200,mfu_drop,50->40,%,,",
			"depends", NAN, {"3.81 GB/s (15 % of its line)", "1 time-out"}},
		{"mfu,llama3-70b,,H100,8,8,80,,,bf16,zero3,1,1,8,400,mfu_drop,50->40,%,,",
			"impossible", NAN, {"one node"}},
		{"mfu,llama3-70b,,H100,64,8,80,,,bf16,zero3,1,1,64,,mfu_drop,50 to 40,%,,",
			"depends", NAN, {"nic_gbps_per_gpu is empty"}},
		{"bandwidth,,,A100,8,8,,,,,,,,,,gpu_bandwidth_bidirectional,600,GB/s,,", "possible",
			100, {NULL}},
		{"bandwidth,,,L40S,8,8,,,,,,,,,,gpu_bandwidth_bidirectional,600,GB/s,,",
			"impossible", NAN, {"no links"}},
		{"bandwidth,,,V100,8,8,,,,,,,,,,gpu_bandwidth_bidirectional,600,GB/s,,",
			"impossible", 200, {"300 GB/s"}},
		{"bandwidth,,,B200,8,8,,,,,,,,,,gpu_bandwidth_bidirectional,1.8,TB/s,,", "possible",
			100, {NULL}},
		{"bandwidth,,,H200,8,8,,,,,,,,,,gpu_bandwidth_unidirectional,3600,Gb/s,,",
			"possible", 100, {NULL}},
		{"bandwidth,,,H100,8,8,,,,,,,,,,gpu_bandwidth_unidirectional,900,GB/s,,",
			"impossible", 200, {"450 GB/s"}},
		{"bandwidth,,,,8,8,,,,,,,,,,gpu_bandwidth_bidirectional,900,GB/s,,", "depends", NAN,
			{"gpu is empty"}},
		/* of A100 the 80 GB are faster than the 40 */
		{"bandwidth,,,A100-80GB,,,,,,,,,,,,memory_bandwidth,2039,GB/s,,", "possible", 100,
			{NULL}},
		{"bandwidth,,,A100-PCIe,,,80,,,,,,,,,memory_bandwidth,2039,GB/s,,", "impossible",
			105.4, {"1,935 GB/s"}},
		{"bandwidth,,,A100-40GB,,,,,,,,,,,,memory_bandwidth,2039,GB/s,,", "impossible",
			131.1, {"1,555 GB/s"}},
		{"bandwidth,,,A100,,,,,,,,,,,,memory_bandwidth,2039,GB/s,,", "depends", NAN,
			{"mem_gb is empty", "1,555", "2,039"}},
		{"bandwidth,,,A100,,,,,,,,,,,,memory_bandwidth,1.5,TB/s,,", "possible", 96.5,
			{NULL}},
		{"bandwidth,,,A100,,,,,,,,,,,,memory_bandwidth,3,TB/s,,", "impossible", 147.1,
			{"2,039 GB/s"}},
		{"bandwidth,,,GH200,,,144,,,,,,,,,memory_bandwidth,4.9,TB/s,,", "possible", 100,
			{NULL}},
		{"bandwidth,,,MI300X,,,,,,,,,,,,memory_bandwidth,9,TB/s,,", "impossible", 169,
			{"5,325 GB/s"}},
		{"bandwidth,,,L40S,,,,,,,,,,,,memory_bandwidth,800,GB/s,,", "possible", 92.6,
			{NULL}},
		{"bandwidth,,,H100,8,8,,,,,,,,,,memory_bandwidth,3.35,TB/s,,", "possible", 100,
			{NULL}},
		{"bandwidth,,,H100,8,8,,,,,,,,,400,nic_bandwidth,60,GB/s,,", "impossible", 120,
			{"50 GB/s"}},
		{"rate,,,H100,,,,,,,,,,,,node_failure_rate,0.5,%,,", "unsourced", NAN,
			{"source is empty", "598 trials"}},
		{"rate,,,H100,,,,,,,,,,,,failures,6.5,per 1000 node-days,arXiv 2410.21680,",
			"depends", NAN, {"arXiv 2410.21680"}},
		{"mfu,llama3-8b,,H100,64,8,80,,,bf16,fsdp,,,,400,mfu,,%,,", "depends", NAN,
			{"value is empty"}},
		{"mfu,llama3-8b,,H100,64,8,80,,,bf16,fsdp,,,,400,mfu,45,,,", "depends", NAN,
			{"unit is empty"}},
	};
	JUDGE_EACH(rows);
}

/* ---- what leaves ----------------------------------------------------------------------------- */

static void test_json_and_table(void **state)
{
	(void)state;
	struct claims *c = judge_file(ARTICLE);
	json_t *doc = json_object(), *list = claims_json(c), *one;
	size_t i, len = 0;
	assert_int_equal(json_array_size(list), NARTICLE);
	json_array_foreach (list, i, one) {
		assert_string_equal(fb_json_str(one, "id", ""), article[i].row);
		assert_string_equal(fb_json_str(one, "verdict", ""), article[i].verdict);
		assert_true(json_is_null(json_object_get(one, "factor_pct")) ==
			    json_is_string(json_object_get(one, "factor_pct_reason")));
	}
	one = json_array_get(list, 0);
	assert_true(fb_json_num(one, "factor_pct", 0) == 146.33);
	assert_string_equal(fb_json_str(one, "claimed", ""), "3420 tok/s");
	assert_int_equal(fb_json_int(one, "line", 0), 3);
	json_object_set_new(doc, "claims", list);
	char *text = NULL;
	FILE *out = open_memstream(&text, &len);
	assert_non_null(out);
	claims_print(doc, out);
	fclose(out);
	assert_non_null(
		strstr(text, "19 judged: 4 possible, 5 impossible, 9 depends, 1 unsourced"));
	assert_non_null(strstr(text, "fsdp-tokens      impossible      146 %"));
	char *rest = text, *line;
	while ((line = strsep(&rest, "\n")) != NULL)
		assert_true(strlen(line) <= 108);
	free(text);
	json_decref(doc);
	claims_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_article),
		cmocka_unit_test(test_ids_do_not_matter),
		cmocka_unit_test(test_published_runs_are_possible),
		cmocka_unit_test(test_throughput),
		cmocka_unit_test(test_mfu),
		cmocka_unit_test(test_rows_of_one_subject),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_traffic),
		cmocka_unit_test(test_network),
		cmocka_unit_test(test_json_and_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
