// SPDX-License-Identifier: Apache-2.0
/* Claims: names that people write, rows and files that cannot be read, and that the rest is judged.
 */
#include "bench/core/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/predict/claims_priv.h"

#define TOKENS "tokens_per_gpu_per_s"
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

/* ---- names ----------------------------------------------------------------------------------- */

static void test_models(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int64_t params;
	} known[] = {{"Llama-2-7B", 6738415616}, {"llama2 13b", 13015864320},
		{"Llama-2-70B", 68976648192}, {"Meta-Llama-3-8B", 8030261248},
		{"llama3.1-70B", 70553706496}, {"Llama-3.1-405B", 405853388800},
		{"GPT-3", 174604259328}, {"gpt2", 124439808}, {"MPT-7b", 6658859008},
		{"MPT-30B", 29975214080}, {"mpt-70b", 64862437376}, {"mpt-1b", 1315950592},
		{"mpt-3b", 2651837440}, {"mpt-13b", 12853954560}};
	struct model m;
	const char *nearest;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct fb_err e = {0};
		if (!claim_model_find(known[i].name, &m, &nearest))
			fail_msg("%s is not known", known[i].name);
		assert_int_equal(model_params(&m), known[i].params);
		assert_int_equal(model_check(&m, &e), 0);
	}
	assert_false(claim_model_find("lama3-70b", &m, &nearest));
	assert_string_equal(nearest, "llama3-70b");
	assert_false(claim_model_find("", &m, &nearest));
	assert_false(claim_model_find("/etc/passwd", &m, &nearest));
}

static void test_gpus(void **state)
{
	(void)state;
	static const struct {
		const char *name, *is;
		double dense, gb;
	} known[] = {{"H100", "H100-SXM", 989.4e12, NAN},
		{"NVIDIA H100 80GB HBM3", "H100-SXM", 989.4e12, 80},
		{"h100_sxm5", "H100-SXM", 989.4e12, NAN}, {"H100 PCIe", "H100-PCIe", 756e12, NAN},
		{"H100-NVL", "H100-NVL", 835.5e12, NAN}, {"H200", "H200-SXM", 989.4e12, NAN},
		{"A100-SXM4-80GB", "A100-SXM", 312e12, 80}, {"A100-40GB", "A100-SXM", 312e12, 40},
		{"B200", "B200", 2250e12, NAN}, {"GB200-NVL72", "GB200", 2500e12, NAN},
		{"Tesla V100-SXM2-32GB", "V100", 125e12, 32}, {"MI300X", "MI300X", 1307.4e12, NAN},
		{"NVIDIA GH200 144GB HBM3e", "GH200", 989.4e12, 144}, {"L40", "L40", 181e12, NAN},
		{"L4", "L4", 121e12, NAN}, {"NVIDIA A10", "A10", 125e12, NAN},
		{"AMD Instinct MI325X OAM 256GB", "MI325X", 1307.4e12, 256},
		{"MI355X", "MI355X", 2500e12, NAN}, {"Tesla T4", "T4", 65e12, NAN}};
	static const char *const unknown[] = {"H1000", "H10", "TPUv4", "H100 A100", "", "PCIe",
		"H100-96", "V100-PCIe-NVL", "H100 superb", "A10G", "L40X", "MI300A"};
	double gb;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const struct claim_gpu *g = claim_gpu_find(known[i].name, &gb);
		if (!g)
			fail_msg("%s is not known", known[i].name);
		assert_string_equal(g->name, known[i].is);
		assert_true(claim_peak(g, DTYPE_BF16) == known[i].dense);
		assert_true(claim_peak(g, DTYPE_F32) < known[i].dense);
		assert_true(gb == known[i].gb || (isnan(gb) && isnan(known[i].gb)));
	}
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		if (claim_gpu_find(unknown[i], &gb))
			fail_msg("\"%s\" is known", unknown[i]);
}

/* ---- rows that cannot be read ---------------------------------------------------------------- */

#define GOOD_ROW                                                                              \
	"good,throughput,llama3-70b,,H100,64,8,80,,,bf16,fsdp,,,,," TOKENS ",900,tok/s,\"a, " \
	"\"\"quoted\"\" source\",\n"

/* The row is refused with these words, and the rows around it are judged. */
static void refuse(const char *row, const char *const *says)
{
	struct fb_strbuf b = {0};
	fb_strbuf_printf(&b, HEADER GOOD_ROW "%s\n" GOOD_ROW, row);
	struct claims *c = judge(b.s, b.len);
	if (claims_bad(c) != 1 || c->n != 2)
		fail_msg("%s: %zu refused, %zu judged", row, claims_bad(c), c->n);
	const struct fb_err *e = claims_error(c, 0);
	assert_int_equal(e->exit, FB_EXIT_USAGE);
	for (size_t i = 0; i < 3 && says[i]; i++)
		if (!strstr(e->msg, says[i]) && !strstr(e->hint, says[i]))
			fail_msg("%s: \"%s\" (%s) does not say \"%s\"", row, e->msg, e->hint,
				says[i]);
	assert_non_null(strstr(e->msg, "t.csv: line 3"));
	assert_true(e->hint[0] != '\0');
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(c->row[i].verdict, CLAIM_POSSIBLE);
	assert_string_equal(c->row[1].text[COL_SOURCE], "a, \"quoted\" source");
	claims_free(c);
	fb_strbuf_free(&b);
}

static void test_bad_rows(void **state)
{
	(void)state;
	static const struct {
		const char *row, *says[3];
	} bad[] = {
#define THROUGHPUT(value, unit) \
	"x,throughput,llama3-70b,,H100,64,8,80,,,bf16,fsdp,,,,," TOKENS "," value "," unit ",,"
		{THROUGHPUT("-5", "tok/s"), {"column value", "\"-5\"", "decimal number"}},
		{THROUGHPUT("0", "tok/s"), {"column value", "\"0\""}},
		{THROUGHPUT("nan", "tok/s"), {"column value", "\"nan\""}},
		{THROUGHPUT("inf", "tok/s"), {"column value", "\"inf\""}},
		{THROUGHPUT("1e30", "tok/s"), {"column value", "\"1e30\""}},
		{THROUGHPUT("1e999", "tok/s"), {"column value"}},
		{THROUGHPUT("0x10", "tok/s"), {"column value"}},
		{THROUGHPUT("900 tok/s", "tok/s"), {"column value", "without unit"}},
		{THROUGHPUT("\"3,420\"", "tok/s"), {"column value", "separators"}},
		{THROUGHPUT("900", "GB/s"), {"column unit", "\"GB/s\"", "tok/s, tokens/s"}},
		{THROUGHPUT("900", "%"), {"column unit"}},
		{"x,throughput,lama3-70b,,H100,64,8,80,,,bf16,fsdp,,,,," TOKENS ",9,tok/s,,",
			{"column model", "did you mean llama3-70b"}},
		{"x,throughput,,70,H100,64,8,80,,,bf16,fsdp,,,,," TOKENS ",9,tok/s,,",
			{"column params", "70e9"}},
		{"x,throughput,,-7e9,H100,64,8,80,,,bf16,fsdp,,,,," TOKENS ",9,tok/s,,",
			{"column params"}},
		{"x,throughput,llama3-70b,7e9,H100,64,8,80,,,bf16,fsdp,,,,," TOKENS ",9,tok/s,,",
			{"column params", "contradicts"}},
		{"x,throughput,llama3-70b,,H1000,64,8,80,,,bf16,fsdp,,,,," TOKENS ",9,tok/s,,",
			{"column gpu", "H100-SXM"}},
		{"x,throughput,llama3-70b,,A100-40GB,64,8,80,,,bf16,fsdp,,,,," TOKENS ",9,tok/s,,",
			{"column mem_gb", "40 GB"}},
		{"x,throughput,llama3-70b,,H100,6.5,8,80,,,bf16,fsdp,,,,," TOKENS ",9,tok/s,,",
			{"column n_gpus", "whole number"}},
		{"x,throughput,llama3-70b,,H100,64,8,80,,,int3,fsdp,,,,," TOKENS ",9,tok/s,,",
			{"column dtype", "bf16"}},
		{"x,throughput,llama3-70b,,H100,64,8,80,,,bf16,zero4,,,,," TOKENS ",9,tok/s,,",
			{"column strategy", "did you mean"}},
		{"x,memory,llama3-70b,,H100,64,8,80,,,bf16,hybrid:48,,,,,fits,yes,bool,,",
			{"column strategy", "no multiple"}},
		{"x,memory,llama3-70b,,H100,64,8,80,,,bf16,zero3,,,,,fits,maybe,bool,,",
			{"column value", "yes or no"}},
		{"x,memory,llama3-70b,,H100,64,8,80,,,bf16,zero3,,,,,mfu,40,%,,",
			{"column kind", "write mfu"}},
		{"x,mfu,llama3-70b,,H100,64,8,80,,,bf16,megatron,8,3,1,,mfu,40,%,,",
			{"column n_gpus", "24"}},
		{"x,mfu,llama3-70b,,H100,64,8,80,,,bf16,fsdp,,,,,mfu_drop,20->55,%,,",
			{"column value", "55->20"}},
		{"x,mfu,llama3-70b,,H100,64,8,80,,,bf16,fsdp,,,,,mfu_effect_of_long,1,points,,",
			{"column quantity", "mfu_effect_of_1.6us"}},
		{"x,mfu,llama3-70b,,H100,64,8,80,,,bf16,fsdp,,,,,mfuu,40,%,,",
			{"column quantity", "tokens_per_gpu_per_s"}},
		{"x,traffic,,,,64,8,,,,,zero3,,,,,communication_vs_magic,1,x,,",
			{"column quantity"}},
		{"x,traffic,,,,64,8,,,,,zero3,,,,,,1,x,,", {"column quantity", "empty"}},
		{",mfu,llama3-70b,,H100,64,8,80,,,bf16,fsdp,,,,,mfu,40,%,,", {"column id"}},
		{"x,throughput,llama3-70b", {"3 columns", "21", "params"}},
		{THROUGHPUT("900", "tok/s") ",,", {"23 columns"}},
		{"\"x,throughput", {"column 1", "quote"}},
		{"x,\"throughput\"y,llama3-70b", {"column 2", "closing quote"}},
		{"x\x01,throughput", {"column 1", "control character"}},
		{"x,thr\xff"
		 "oughput",
			{"column 2", "UTF-8"}},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refuse(bad[i].row, bad[i].says);
}

/* What spreadsheets do to a file, and what hostile ones hold. */
static void test_csv(void **state)
{
	(void)state;
	static const char windows[] =
		"\xef\xbb\xbf# a comment\r\n\r\nid,kind,quantity,value,unit,gpu,note\r\n"
		"a,bandwidth,gpu_bandwidth_bidirectional, 900 , GB/s ,\"H100\",\"two\r\nlines\"\r\n"
		"b,mfu,mfu,50,% at most,,x";
	struct claims *c = judge(windows, sizeof(windows) - 1);
	assert_int_equal(c->n, 2);
	assert_int_equal(c->row[0].verdict, CLAIM_POSSIBLE);
	assert_int_equal(c->row[0].line, 4);
	assert_int_equal(c->row[1].line, 6);
	assert_int_equal(c->row[1].sense, SENSE_AT_MOST);
	claims_free(c);
	static const char nul[] = HEADER "x\0y,mfu\n" GOOD_ROW;
	c = judge(nul, sizeof(nul) - 1);
	assert_int_equal(c->n, 1);
	assert_int_equal(claims_bad(c), 1);
	claims_free(c);
	size_t len = sizeof(HEADER) + 100000;
	char *longer = malloc(len);
	assert_non_null(longer);
	memset(longer, 'x', len);
	memcpy(longer, HEADER "\"", sizeof(HEADER));
	c = judge(longer, len);
	assert_int_equal(claims_bad(c), 1);
	assert_non_null(strstr(claims_error(c, 0)->msg, "16 KiB"));
	claims_free(c);
	free(longer);
}

static void test_headers(void **state)
{
	(void)state;
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"", "empty"},
		{"\n\n# only a comment\n", "empty"},
		{"root:x:0:0\n", "no column id"},
		{"id,kind,quantity,value\na,b,c,d\n", "no column unit"},
		{"id;kind;quantity;value;unit\n", "no column id"},
		{"id,kind,quantity,value,unit,value\n", "value twice"},
		{"id,kind,quantity,value,unit,tokens_per_gpus\n", "tokens_per_gpus"},
		{"id,kind,\"quantity,value,unit\n", "quote"},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct claims *c = NULL;
		struct fb_err e = {0};
		assert_true(claims_judge(bad[i].text, strlen(bad[i].text), "t.csv", &c, &e) < 0);
		assert_int_equal(e.exit, FB_EXIT_USAGE);
		assert_non_null(strstr(e.msg, "t.csv"));
		if (!strstr(e.msg, bad[i].says))
			fail_msg("\"%s\" does not say \"%s\"", e.msg, bad[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_models),
		cmocka_unit_test(test_gpus),
		cmocka_unit_test(test_bad_rows),
		cmocka_unit_test(test_csv),
		cmocka_unit_test(test_headers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
