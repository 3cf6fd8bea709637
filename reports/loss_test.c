// SPDX-License-Identifier: Apache-2.0
/* Sweeps over packet loss and training steps at the same rates: values of documents where they
 * belong, the model's line beside them, and what cannot be trusted left out. */
#include "bench/core/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/json.h"
#include "bench/core/strbuf.h"
#include "reports/loss.h"
#include "reports/test_files.h"

static json_t *read_sample(void)
{
	json_t *all = sample(FB_TESTDATA("reports", "every-key.json"));
	json_t *doc = json_pack("{s:O, s:[], s:{s:{}}}", "loss", json_object_get(all, "loss"),
		"results", "config", "effective");
	json_decref(all);
	assert_non_null(doc);
	return doc;
}

/* compute 80, exposed 15 + 5 ms of 100 without loss. */
static json_t *step(double ms, double palm)
{
	return json_pack(
		"{s:s, s:s, s:f, s:{s:s, s:s, s:i}, s:{s:{s:n}, s:{s:f}}, s:{s:{s:{s:f}, s:{s:f}}}}",
		"case", "train.step/tiny", "metric", "step_time", "value", ms * 1e6, "params",
		"model", "tiny", "strategy", "fsdp", "ranks", 2, "mfu", "data_sheet", "palm",
		"measured", "palm", palm, "split", "exposed", "all_gather", "mean", 15e6,
		"reduce_scatter", "mean", 5e6);
}

static json_t *labelled(double ms, double palm, double loss)
{
	json_t *r = step(ms, palm), *p = json_object_get(r, "params");
	json_object_set_new(p, "loss", json_real(loss));
	json_object_set_new(p, "transport", json_string("ucx <rc>"));
	return r;
}

static void make(struct rep_losses *x, const json_t *doc, char *dir, size_t len)
{
	struct fb_err e = {0};
	char why[512] = "";
	snprintf(dir, len, "/tmp/fb-loss-XXXXXX");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(rep_losses_make(x, doc, dir, why, sizeof(why), &e), 0);
}

static void clean(const char *dir)
{
	static const char *const names[] = {"loss-1.dat", "loss-1.gp", "loss-1.svg",
		"loss-training.dat", "loss-training.gp", "loss-training.svg", NULL};
	remove_folder(dir, names);
}

static char *page(const struct rep_losses *x)
{
	struct fb_strbuf b = {0};
	rep_html_losses(&b, x, "no pictures in a test");
	char *text = fb_strbuf_take(&b);
	assert_non_null(text);
	return text;
}

static void formulas(void **state)
{
	(void)state;
	assert_float_equal(rep_loss_inverse(110, 400, 5), 1 + 110.0 / 19 + 1, 1e-12);
	assert_float_equal(rep_loss_inverse(110, NAN, 5), 1 + 110.0 / 19, 1e-12);
	assert_float_equal(rep_loss_inverse(110, 400, 0), 1, 0);
	assert_true(isnan(rep_loss_inverse(NAN, 0, 1)));
	assert_true(isnan(rep_loss_inverse(1, 0, 100)));
	assert_float_equal(rep_loss_step_predicted(100, 20, 3), 140, 0);
}

static void a_sweep(void **state)
{
	(void)state;
	struct rep_losses x;
	json_t *doc = read_sample();
	char dir[64], text[32768], *html;
	make(&x, doc, dir, sizeof(dir));
	assert_int_equal(x.n, 1);
	assert_int_equal(x.nsteps, 0);
	assert_float_equal(x.v[0].most, 2, 0);
	assert_float_equal(x.v[0].lossless, 25.5e6, 0);
	file(dir, "loss-1.dat", text, sizeof(text));
	/* 10.4 MB/s = 0.0832 Gb/s; 2.11 packets; 0.6, 270 and 540 ms */
	assert_non_null(strstr(text, "\n1\t0.0832\t2.11\t0.6\t270\t540\n"));
	/* The line's last point: W = 98.98 at 2 % is 3.02, and the goodput 0.204 Gb/s over that. */
	assert_non_null(strstr(text, "\n2\t0.0675"));
	assert_non_null(strstr(text, "\t3.02\t3.02\n"));
	file(dir, "loss-1.gp", text, sizeof(text));
	assert_non_null(strstr(text, "layout 3,1"));
	assert_non_null(strstr(text, "title 'model'"));
	assert_non_null(strstr(text, "lost to-server"));
	html = page(&x);
	assert_non_null(strstr(html, "Independent loss in an emulator, not congestion."));
	assert_non_null(strstr(html, "Why PFC and ECN matter"));
	assert_non_null(strstr(html, "W = 99.0 packets resent per loss"));
	assert_non_null(strstr(html, "<td class=\"n\">+5.5</td>"));
	assert_null(strstr(html, "TCP"));
	free(html);
	rep_losses_free(&x);
	clean(dir);
	json_decref(doc);
}

static void training(void **state)
{
	(void)state;
	struct rep_losses x;
	struct fb_err e = {0};
	json_t *doc = read_sample(), *other, *results = json_object_get(doc, "results");
	char dir[64], text[32768], *html;
	json_array_append_new(results, labelled(104, 0.04, 0));
	json_array_append_new(results, labelled(96, 0.04, 0));
	json_array_append_new(results, labelled(130, 0.03, 1));
	json_array_append_new(results, labelled(300, 0.01, 100)); /* no rate */
	/* One that tells it in its configuration alone. */
	other = json_pack("{s:[o], s:{s:{s:f, s:s}}}", "results", step(150, 0.02), "config",
		"effective", "loss", 2.0, "transport", "ucx <rc>");
	assert_int_equal(rep_loss_join(doc, other, &e), 0);
	json_decref(other);
	make(&x, doc, dir, sizeof(dir));
	assert_int_equal(x.nsteps, 4);
	assert_int_equal(x.ngroups, 1);
	assert_float_equal(x.group[0].step, 100e6, 1);
	assert_float_equal(x.group[0].exposed, 20e6, 1);
	assert_float_equal(x.step[3].rate, 2, 0);
	assert_float_equal(x.step[3].step, 150e6, 1);
	assert_true(x.step[2].own_peak);
	file(dir, "loss-training.dat", text, sizeof(text));
	assert_non_null(strstr(text, "\n1\t130\t3\n"));
	/* At 2 % 1/eta is 3.02: 80 + 20 * 3.02 ms, and the MFU as much less. */
	assert_non_null(strstr(text, "\n2\t140.4\t2.849\n"));
	file(dir, "loss-training.gp", text, sizeof(text));
	assert_non_null(strstr(text, "title 'predicted'"));
	assert_non_null(strstr(text, "'tiny fsdp, 2 ranks over ucx <rc>'"));
	html = page(&x);
	assert_non_null(strstr(html, "ucx &lt;rc&gt;"));
	assert_non_null(strstr(html, "step = compute + exposed communication"));
	free(html);
	rep_losses_free(&x);
	clean(dir);
	json_decref(doc);
}

/* Steps at one rate are no curve, and without a sweep nothing predicts them. */
static void little(void **state)
{
	(void)state;
	struct rep_losses x;
	json_t *doc = json_pack("{s:[]}", "results"), *results = json_object_get(doc, "results");
	char dir[64], text[8192], *html;
	json_array_append_new(results, labelled(100, 0.04, 0));
	make(&x, doc, dir, sizeof(dir));
	assert_int_equal(x.nsteps, 0);
	rep_losses_free(&x);
	clean(dir);
	json_array_append_new(results, labelled(130, 0.03, 0.5));
	make(&x, doc, dir, sizeof(dir));
	assert_int_equal(x.nsteps, 2);
	file(dir, "loss-training.gp", text, sizeof(text));
	assert_null(strstr(text, "title 'predicted'"));
	html = page(&x);
	assert_non_null(strstr(html, "no sweep in this document"));
	free(html);
	rep_losses_free(&x);
	clean(dir);
	json_decref(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formulas),
		cmocka_unit_test(a_sweep),
		cmocka_unit_test(training),
		cmocka_unit_test(little),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
