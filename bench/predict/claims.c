// SPDX-License-Identifier: Apache-2.0
/*
 * `fabricbench claims FILE`: the command, its table and its statuses. That a claim is impossible is
 * a finding and no failure, unless --strict says so.
 */
#include "bench/predict/claims.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/log.h"
#include "bench/core/opt.h"
#include "bench/core/result.h"

#define WIDTH     108 /* columns of the table */
#define ID_MAX    24
#define MAX_ERROR 100 /* bad rows told one by one */

struct claims_cfg {
	char *file;
	bool strict;
};

struct command {
	struct claims_cfg claims;
	struct fb_output_cfg out;
};

static const struct fb_opt opts[] = {
	{.name = "file",
		.type = FB_OPT_STRING,
		.offset = offsetof(struct claims_cfg, file),
		.arg = "FILE",
		.help = "the claims, as CSV",
		.positional = true},
	{.name = "strict",
		.type = FB_OPT_FLAG,
		.offset = offsetof(struct claims_cfg, strict),
		.help = "end with status 1 when a claim is impossible"},
	{.name = NULL},
};

static const char notes[] =
	"FILE has a header and one claim a row. Columns (id, kind, quantity, value and unit are needed,\n"
	"the others may be missing or empty): id, kind, model, params, gpu, n_gpus, gpus_per_node,\n"
	"mem_gb, seq_len, tokens_per_gpu, dtype, strategy, tp, pp, dp, nic_gbps_per_gpu, quantity,\n"
	"value, unit, source, quote. Lines that begin with # are comments.\n"
	"\n"
	"Kinds and quantities:\n"
	"  throughput  tokens_per_gpu_per_s, tokens_per_s [tok/s], tflops_per_gpu [TFLOP/s]\n"
	"  mfu         mfu, hfu [%], mfu_drop [%, as 55->20], mfu_effect_of_1.6us [points]\n"
	"  memory      fits [yes or no], state_memory_reduction [x], state_memory_per_gpu [GB]\n"
	"  traffic     inter_node_reduction_vs_STRATEGY [%], communication_vs_STRATEGY [x]\n"
	"  latency     latency, tail_latency [us]\n"
	"  bandwidth   gpu_bandwidth_bidirectional, gpu_bandwidth_unidirectional, memory_bandwidth,\n"
	"              nic_bandwidth [GB/s, Gb/s]\n"
	"  rate        any name [%, 1/day, per 1000 node-days]\n"
	"A unit may end with \"at most\" or \"at least\".\n"
	"\n"
	"Verdicts:\n"
	"  possible    arithmetic does not forbid it\n"
	"  impossible  it needs more than there is; the factor is what is claimed over what can be\n"
	"  depends     it holds under a condition, which is named; also where a needed column is empty\n"
	"  unsourced   only counting could tell, and nobody is named who did\n"
	"\n"
	"Exit status: 0 every row was judged, whatever was found; 1 with --strict, when a claim is\n"
	"impossible; 2 the file cannot be read, or a row of it (the rest is judged all the same).";

static void fill_spec(struct fb_opt_spec *spec, struct command *c)
{
	*spec = (struct fb_opt_spec){
		.command = "claims",
		.usage = "FILE [options]",
		.summary =
			"Judge published figures by arithmetic: throughput, MFU, memory, traffic, "
			"latency, bandwidth.",
		.notes = notes,
		.sets = {{"Claims", opts, &c->claims}, {"Output", fb_output_opts, &c->out}},
	};
}

static const struct fb_opt_spec *spec_for_plans(void)
{
	static struct command scratch;
	static struct fb_opt_spec spec;
	fill_spec(&spec, &scratch);
	return &spec;
}

/* ---- table ----------------------------------------------------------------------------------- */

/* Bytes of the text that fit into `room` columns, cut at a blank where there is one. */
static size_t line_of(const char *s, size_t room)
{
	size_t n = 0, columns = 0, blank = 0;
	while (s[n] && columns < room) {
		if (s[n] == ' ')
			blank = n;
		/* bytes that follow in a UTF-8 sequence take no column of their own */
		do
			n++;
		while (((unsigned char)s[n] & 0xc0) == 0x80);
		columns++;
	}
	return !s[n] || s[n] == ' ' || blank == 0 ? n : blank;
}

static void print_row(const json_t *c, int id_width, FILE *out)
{
	char factor[24] = "-";
	double f = fb_json_num(c, "factor_pct", NAN);
	const char *why = fb_json_str(c, "why", "");
	int indent = id_width + 2 + 10 + 2 + 9 + 2;
	if (isfinite(f))
		snprintf(factor, sizeof(factor), f >= 99.5 || f == 0 ? "%.0f %%" : "%.3g %%", f);
	fprintf(out, "%-*s  %-10s  %9s  ", id_width, fb_json_str(c, "id", "?"),
		fb_json_str(c, "verdict", "?"), factor);
	for (bool first = true; first || *why; first = false) {
		size_t n = line_of(why, (size_t)(WIDTH - indent));
		fprintf(out, "%*s%.*s\n", first ? 0 : indent, "", (int)n, why);
		why += n;
		why += strspn(why, " ");
	}
}

void claims_print(const json_t *doc, FILE *out)
{
	const json_t *list = json_object_get(doc, "claims"), *c;
	int id_width = 2, by_verdict[CLAIM_UNSOURCED + 1] = {0};
	size_t i;
	json_array_foreach (list, i, c) {
		int n = (int)strnlen(fb_json_str(c, "id", "?"), ID_MAX);
		id_width = n > id_width ? n : id_width;
		for (int v = 0; v <= CLAIM_UNSOURCED; v++)
			by_verdict[v] +=
				strcmp(fb_json_str(c, "verdict", ""), claim_verdict_names[v]) == 0;
	}
	fprintf(out, "\n%-*s  %-10s  %9s  %s\n", id_width, "id", "verdict", "factor", "why");
	fprintf(out, "%.*s  ----------  ---------  ---\n", id_width, "------------------------");
	json_array_foreach (list, i, c)
		print_row(c, id_width, out);
	fprintf(out, "\n%zu judged:", json_array_size(list));
	for (int v = 0; v <= CLAIM_UNSOURCED; v++)
		fprintf(out, "%s %d %s", v ? "," : "", by_verdict[v], claim_verdict_names[v]);
	size_t bad = json_array_size(json_object_get(doc, "errors"));
	if (bad > 0)
		fprintf(out, "; %zu could not be read", bad);
	fputs("\n", out);
	json_array_foreach (json_object_get(doc, "warnings"), i, c)
		fprintf(out, "warning: %s\n", json_string_value(c));
}

/* ---- the command ----------------------------------------------------------------------------- */

static void warn_of_twins(struct fb_doc *doc, const json_t *list)
{
	json_t *seen = json_object(), *c;
	size_t i;
	json_array_foreach (list, i, c) {
		const char *id = fb_json_str(c, "id", "");
		if (json_object_get(seen, id))
			fb_doc_warn(doc, "line %lld: id \"%.60s\" stands twice in the file",
				(long long)fb_json_int(c, "line", 0), id);
		fb_json_set_bool(seen, id, true);
	}
	json_decref(seen);
}

static void tell_errors(struct fb_doc *doc, const struct claims *all)
{
	size_t n = claims_bad(all);
	for (size_t i = 0; i < n && i < MAX_ERROR; i++) {
		fb_doc_error(doc, claims_error(all, i));
		fb_log_err(claims_error(all, i));
	}
	if (n > MAX_ERROR) {
		struct fb_err more = {0};
		fb_fail_usage(&more, "%zu more rows could not be read", n - MAX_ERROR);
		fb_doc_error(doc, &more);
		fb_log_err(&more);
	}
}

static int work(struct command *c, struct fb_doc *doc, struct fb_err *e)
{
	struct claims *all = NULL;
	char *text = NULL;
	size_t len = 0;
	if (fb_read_file(c->claims.file, CLAIMS_MAX_BYTES, &text, &len, e) < 0)
		return e->exit;
	int rc = claims_judge(text, len, c->claims.file, &all, e);
	free(text);
	if (rc < 0)
		return e->exit;
	json_t *list = claims_json(all);
	warn_of_twins(doc, list);
	json_object_set_new(fb_doc_json(doc), "claims", list);
	tell_errors(doc, all);
	int status = claims_bad(all) > 0                                          ? FB_EXIT_USAGE
		     : c->claims.strict && claims_with(all, CLAIM_IMPOSSIBLE) > 0 ? FB_EXIT_FAILED
										  : FB_EXIT_OK;
	claims_free(all);
	return status;
}

static int claims_run(int argc, char **argv)
{
	struct command c = {0};
	struct fb_opt_spec spec;
	struct fb_err e = {0};
	fill_spec(&spec, &c);
	int rc = fb_opt_parse(&spec, argc, argv, &e);
	if (rc != 0)
		return rc == 1 ? FB_EXIT_OK : fb_cmd_fail(&e);
	int status;
	struct fb_doc *doc = NULL;
	if (!c.claims.file) {
		fb_fail_usage(&e, "claims needs a file");
		fb_hint(&e, "fabricbench claims FILE; fabricbench claims --help lists its columns");
		status = fb_cmd_fail(&e);
		goto free_options;
	}
	doc = fb_doc_new("claims", argc, argv, &c.out, &e);
	if (!doc) {
		status = fb_cmd_fail(&e);
		goto free_options;
	}
	fb_doc_set_config(doc, fb_opt_to_json(&spec, true), fb_opt_to_json(&spec, false));
	fb_doc_set_table(doc, claims_print);
	status = work(&c, doc, &e);
	if (e.code != 0) {
		fb_doc_error(doc, &e);
		fb_log_err(&e);
		fb_doc_set_table(doc, NULL);
	}
	status = fb_doc_finish(doc, status);
	fb_doc_free(doc);
free_options:
	fb_opt_free(&spec);
	return status;
}

const struct fb_cmd claims_cmd = {
	.name = "claims",
	.summary = "judge published figures by arithmetic",
	.run = claims_run,
	.spec = spec_for_plans,
};
