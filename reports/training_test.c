// SPDX-License-Identifier: Apache-2.0
/* Training in the report: rows, data of the pictures, tables; documents that make no sense. */
#include "bench/core/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/json.h"
#include "reports/training.h"

/* A step of a strategy, as `train` writes it. */
static json_t *step(const char *strategy, int ranks)
{
	json_t *r = json_pack("{s:s,s:s,s:s,s:i,s:i,s:i,s:{s:s,s:s,s:i,s:s,s:i,s:i,s:i}}", "case",
		"train/tiny", "metric", "step_time", "where", "cpu", "launch", 0, "value", 50000000,
		"n", 18, "params", "model", "tiny", "strategy", strategy, "ranks", ranks, "dtype",
		"fp32", "seq", 128, "micro_batch", 4, "accumulate", 1);
	assert_non_null(r);
	json_object_set_new(r, "split",
		json_pack("{s:{s:f},s:{s:f},s:{s:{s:f}},s:{s:f},s:{s:f},s:{s:f}}", "step", "mean",
			50e6, "compute", "mean", 30e6, "exposed", "all_gather", "mean", 12e6,
			"optimizer", "mean", 1e6, "storage", "mean", 0.0, "idle", "mean", 7e6));
	json_object_set_new(r, "loss", json_pack("[f,f,f]", 5.5, 5.25, 5.125));
	json_object_set_new(r, "tasks",
		json_pack("[[s,s,i,i,i,i],[s,s,i,i,i,i]]", "fwd", "compute", 0, 0, 1000000, 3000000,
			"all_gather", "gather", 1, 0, 0, 2000000));
	json_object_set_new(r, "mfu",
		json_pack("{s:{s:f,s:f,s:f,s:f},s:{s:n}}", "measured", "palm", 0.25, "6n", 0.2,
			"causal", 0.21, "flops", 1e11, "data_sheet", "palm"));
	json_object_set_new(r, "memory",
		json_pack("{s:b,s:{s:{s:f},s:{s:f}}}", "equal_on_all_ranks", 1, "kinds", "params",
			"counted", 1048576.0, "total", "counted", 3145728.0));
	json_object_set_new(r, "bytes",
		json_pack("{s:b,s:{s:{s:f}}}", "equal_on_all_ranks", 0, "kinds", "all_gather",
			"counted", 2048.0));
	json_object_set_new(r, "verdict",
		json_pack("{s:s,s:s,s:[{s:s,s:f,s:s}]}", "bound_by", "all_gather", "why",
			"because <of> this", "moves", "what", "a link twice as fast", "number", 0.5,
			"unit", "of the step time"));
	return r;
}

static json_t *document(json_t *first, json_t *second)
{
	json_t *doc = json_object(), *all = json_array();
	json_array_append_new(all, first);
	if (second)
		json_array_append_new(all, second);
	json_object_set_new(doc, "results", all);
	return doc;
}

static char *read_file(const char *dir, const char *name)
{
	char path[300], *text = NULL;
	size_t len;
	struct fb_err e = {0};
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return fb_read_file(path, 1 << 20, &text, &len, &e) == 0 ? text : NULL;
}

static void has(const char *dir, const char *name, const char *line)
{
	char *text = read_file(dir, name);
	if (!text)
		fail_msg("there is no %s", name);
	if (!strstr(text, line))
		fail_msg("%s has no \"%s\":\n%s", name, line, text);
	free(text);
}

static void remove_folder(const char *dir)
{
	static const char *const names[] = {"training-split", "training-mfu", "training-memory",
		"training-loss", "training-step-1", "training-step-2"};
	static const char *const exts[] = {"dat", "gp", "svg"};
	for (size_t i = 0; i < 6; i++)
		for (size_t k = 0; k < 3; k++) {
			char path[300];
			snprintf(path, sizeof(path), "%s/%s.%s", dir, names[i], exts[k]);
			unlink(path);
		}
	assert_int_equal(rmdir(dir), 0);
}

static void rows(void **state)
{
	struct rep_train_row r[REP_TRAIN_ROWS];
	size_t left;
	json_t *doc = document(step("fsdp", 2), step("ddp", 1));
	json_t *all = json_object_get(doc, "results");
	json_object_set_new(
		json_object_get(json_array_get(all, 1), "params"), "overlap", json_false());
	assert_int_equal(rep_train_rows(doc, r, &left), 2);
	assert_string_equal(r[0].label, "tiny fsdp, 2 ranks, fp32");
	assert_string_equal(r[1].label, "tiny ddp, 1 rank, fp32, no overlap");
	assert_int_equal(left, 0);
	for (int i = 0; i < 30; i++)
		json_array_append_new(all, step("zero1", 2));
	assert_int_equal(rep_train_rows(doc, r, &left), REP_TRAIN_ROWS);
	assert_int_equal(left, 32 - REP_TRAIN_ROWS);
	json_decref(doc);
}

static void data(void **state)
{
	char dir[] = "/tmp/fabricbench-training.XXXXXX", why[300] = "";
	struct rep_training t;
	struct fb_err e = {0};
	json_t *doc = document(step("fsdp", 2), NULL);
	assert_non_null(mkdtemp(dir));
	assert_int_equal(rep_training_make(&t, doc, dir, why, sizeof(why), &e), 0);
	assert_int_equal(t.n, 5);
	/* A box: its middle, its row, from, to. Stacked: the gather follows compute. */
	has(dir, "training-split.dat", "15\t0\t0\t30\t");
	has(dir, "training-split.dat", "36\t0\t30\t42\t");
	has(dir, "training-split.gp", "'tiny fsdp, 2 ranks, fp32' 0");
	has(dir, "training-mfu.dat", "12.5\t");
	has(dir, "training-memory.dat", "0.5\t0\t0\t1\t");
	has(dir, "training-loss.dat", "1\t5.25");
	has(dir, "training-step-1.dat", "2\t0\t1\t3\t");
	has(dir, "training-step-1.dat", "1\t1\t0\t2\t");
	rep_training_free(&t);
	json_decref(doc);
	remove_folder(dir);
}

static void page(void **state)
{
	struct fb_strbuf b = {0};
	json_t *doc = document(step("fsdp", 2), NULL);
	struct rep_page p = {.doc = doc};
	rep_html_training(&b, &p);
	char *text = fb_strbuf_take(&b);
	assert_non_null(text);
	assert_non_null(strstr(text, "because &lt;of&gt; this"));
	assert_non_null(strstr(text, "<strong>0.50</strong> of the step time"));
	assert_non_null(strstr(text, "not equal")); /* bytes */
	assert_non_null(strstr(text, ">equal<"));   /* memory */
	assert_non_null(strstr(text, "25.0"));      /* MFU of the own products */
	free(text);
	json_decref(doc);
}

/* Whatever stands in a document: no picture is drawn of nonsense, and nothing breaks. */
static void nonsense(void **state)
{
	static const char *const bad[] = {"{}", "[]", "null", "\"x\"", "-1", "[[1,2],[3]]",
		"{\"exposed\": 3, \"compute\": {\"mean\": \"x\"}}",
		"[[\"fwd\",\"nowhere\",0,0,1,2],[\"fwd\",\"compute\",0,0,5,1],[\"fwd\",\"compute\",0,0,-5,1]]"};
	static const char *const keys[] = {
		"split", "loss", "tasks", "mfu", "memory", "bytes", "verdict", "params", "value"};
	for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			struct fb_strbuf b = {0};
			struct rep_train_row r[REP_TRAIN_ROWS];
			size_t left;
			json_t *one = step("fsdp", 2);
			json_object_set_new(
				one, keys[k], json_loads(bad[i], JSON_DECODE_ANY, NULL));
			json_t *doc = document(one, NULL);
			struct rep_page p = {.doc = doc};
			rep_html_training(&b, &p);
			size_t n = rep_train_rows(doc, r, &left);
			assert_true(n <= 1);
			for (const struct rep_train_kind *q = rep_train_kinds; n && q->key; q++)
				(void)rep_train_time(r[0].r, q);
			fb_strbuf_free(&b);
			json_decref(doc);
		}
}

/* The same for the files of pictures, with what could hurt gnuplot in a name. */
static void nonsense_data(void **state)
{
	char dir[] = "/tmp/fabricbench-training.XXXXXX", why[300] = "";
	struct rep_training t;
	struct fb_err e = {0};
	json_t *one = step("x'; system \"true\" #`true`", 2);
	json_object_set_new(one, "loss", json_loads("[null, 1, \"x\"]", 0, NULL));
	json_object_set_new(one, "tasks", json_loads("[[\"fwd\",\"compute\",0,0,5,1]]", 0, NULL));
	json_object_set_new(one, "mfu", json_null());
	json_t *doc = document(one, NULL);
	assert_non_null(mkdtemp(dir));
	assert_int_equal(rep_training_make(&t, doc, dir, why, sizeof(why), &e), 0);
	assert_int_equal(t.n, 3); /* split, memory, loss */
	has(dir, "training-split.gp", "'tiny x\xe2\x80\x99; system");
	rep_training_free(&t);
	json_decref(doc);
	remove_folder(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows),
		cmocka_unit_test(data),
		cmocka_unit_test(page),
		cmocka_unit_test(nonsense),
		cmocka_unit_test(nonsense_data),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
