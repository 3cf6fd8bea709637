// SPDX-License-Identifier: Apache-2.0
/*
 * `fabricbench import TOOL FILE...`: what other tools printed, as a result document that compare
 * and report take. Nothing is known of the system it came from, and the document says so.
 */
#include "reports/import.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/log.h"
#include "bench/core/opt.h"
#include "bench/core/result.h"
#include "bench/core/units.h"
#include "reports/report.h"

#define MAX_FILE    (64u << 20)
#define MAX_RESULTS 200000

static const struct tool {
	const char *name, *what;
	int (*read)(struct import *im);
	const char *const *unknown;
} tools[] = {
	{"perftest", "ib_write_bw and its kin, text or --out_json", import_perftest,
		import_perftest_unknown},
	{"nccl-tests", "all_reduce_perf and its kin, text or JSON (-J; of rccl-tests -Z json)",
		import_nccl_tests, import_nccl_unknown},
	{"osu", "OSU micro-benchmarks", import_osu, import_osu_unknown},
	{"torchtitan", "training log of torchtitan", import_torchtitan, import_training_unknown},
	{"megatron", "training log of Megatron-LM and NeMo", import_megatron,
		import_training_unknown},
};
#define N_TOOLS (sizeof(tools) / sizeof(tools[0]))

/* ---- what readers use ------------------------------------------------------------------------ */

/* Colours of a terminal, and where a progress bar moves its cursor (ECMA-48's control sequences),
 * in place. One that does not end as it must takes nothing along of what follows. */
static void strip_colours(char *s)
{
	char *to = s;
	while (*s) {
		if (s[0] != '\033' || s[1] != '[') {
			*to++ = *s++;
			continue;
		}
		s += 2;
		while (*s >= 0x20 && *s <= 0x3f)
			s++;
		if (*s >= 0x40 && *s <= 0x7e)
			s++;
	}
	*to = '\0';
}

/*
 * "2026-01-01T00:00:00.123Z ": when a line was written (kubectl logs --timestamps, GitHub Actions).
 * It is no part of whose line it is.
 */
static size_t time_prefix(const char *s)
{
	static const char form[] = "0000-00-00T00:00:00";
	size_t n = 0;
	for (; form[n]; n++)
		if (form[n] == '0' ? !isdigit((unsigned char)s[n]) : s[n] != form[n])
			return 0;
	n += strspn(s + n, "0123456789.:+-");
	n += s[n] == 'Z';
	return s[n] == ' ' ? n + 1 : 0;
}

/* "node-12: " (pdsh, clush). A name ends in a digit here, for many a word stands before a colon. */
static size_t host_prefix(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
	return n > 1 && isalnum((unsigned char)s[0]) && isdigit((unsigned char)s[n - 1]) &&
			       strncmp(s + n, ": ", 2) == 0
		       ? n + 2
		       : 0;
}

/*
 * The length of what a launcher wrote before a line: "[1,0]<stdout>:" and "[host@1,0]<stdout>: "
 * (mpirun), "  3: " (srun -l), "[3] " (mpiexec -prepend-rank), "[rank0]:" and "[default0]:"
 * (torchrun), "[pod/name/container] " (kubectl logs); 0: nothing.
 */
static size_t launcher_prefix(const char *s)
{
	size_t blank = strspn(s, " "), digits = strspn(s + blank, "0123456789"), n;
	if (digits > 0 && s[blank + digits] == ':' && strchr(" \t", s[blank + digits + 1]))
		return blank + digits + 1 + (s[blank + digits + 1] == ' ');
	s += blank;
	if (*s != '[')
		return blank == 0 ? host_prefix(s) : 0;
	n = 1 + strcspn(s + 1, "] \t");
	if (s[n] != ']' || n > 200)
		return 0;
	if (strncmp(s + n, "]<stdout>:", 10) == 0 || strncmp(s + n, "]<stderr>:", 10) == 0)
		return blank + n + 10;
	if (strncmp(s, "[pod/", 5) == 0 || (n > 1 && strspn(s + 1, "0123456789") == n - 1))
		return s[n + 1] == ' ' ? blank + n + 2 : 0;
	return isdigit((unsigned char)s[n - 1]) && isalpha((unsigned char)s[1]) && s[n + 1] == ':'
		       ? blank + n + 2
		       : 0;
}

char *import_line(struct import *im)
{
	char *line = im->at;
	size_t n, from = 0;
	if (!*line)
		return NULL;
	/* "\r\n" ends a line; "\r" alone is a progress bar that writes over itself. */
	im->line += !im->inside;
	im->at += strcspn(line, "\r\n");
	im->inside = im->at[0] == '\r' && im->at[1] != '\n';
	n = im->at[0] == '\r' && im->at[1] == '\n' ? 2 : im->at[0] != '\0';
	*im->at = '\0';
	im->at += n;
	strip_colours(line);
	im->from[0] = '\0';
	line += time_prefix(line);
	for (int i = 0; i < 3 && (n = launcher_prefix(line)) > 0; i++) {
		for (size_t k = 0; k < n && from + 1 < sizeof(im->from); k++)
			if (line[k] != ' ')
				im->from[from++] = line[k];
		im->from[from] = '\0';
		line += n;
	}
	return line;
}

int import_bad(struct import *im, const char *fmt, ...)
{
	char why[500];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return fb_fail_usage(im->e, "%s:%u: %s", im->file, im->line, why);
}

size_t import_fields(char *line, char **field, size_t max)
{
	size_t n = 0;
	while (n < max) {
		line += strspn(line, " \t");
		if (!*line)
			break;
		field[n++] = line;
		line += strcspn(line, " \t");
		if (*line)
			*line++ = '\0';
	}
	return n;
}

bool import_number(const char *text, double *v)
{
	char *end;
	*v = strtod(text, &end);
	return end != text && *end == '\0' && isfinite(*v);
}

bool import_figure(const char *text, double *v)
{
	char *end;
	*v = strtod(text, &end);
	if (!isfinite(*v))
		*v = NAN;
	return end != text && *end == '\0';
}

/* Did this file give that case and metric before? Remembered for the next time. */
static bool is_twice(struct import *im, const char *name, const char *metric)
{
	char key[300];
	snprintf(key, sizeof(key), "%s\n%s", name, metric);
	if (json_object_get(im->seen, key))
		return true;
	json_object_set_new(im->seen, key, json_true());
	return false;
}

static json_t *import_facts(const struct import *im)
{
	json_t *o = json_object(), *unknown = json_array();
	fb_json_set_str(o, "tool", im->tool);
	fb_json_set_str(o, "file", im->file);
	fb_json_set_int(o, "line", im->line);
	for (const char *const *u = im->unknown; *u; u++)
		json_array_append_new(unknown, json_string(*u));
	json_object_set_new(o, "unknown", unknown);
	return o;
}

int64_t import_whole(double v)
{
	if (!(v > -9e15))
		return isnan(v) ? 0 : (int64_t)-9e15;
	return v < 9e15 ? (int64_t)v : (int64_t)9e15;
}

/* What is wrong with a value, or NULL. Tools have printed both (perftest's issue 82). */
static const char *wrong_with(const struct import_value *v)
{
	bool amount = strcmp(v->unit, "ns") == 0 || strcmp(v->unit, "bytes/s") == 0 ||
		      strcmp(v->unit, "1/s") == 0;
	return !isfinite(v->value)          ? "the tool printed no number"
	       : amount && !(v->value >= 0) ? "the tool printed a time or rate below 0"
					    : NULL;
}

static json_t *validity(const char *wrong)
{
	return wrong ? json_pack("{s:s,s:[s]}", "state", "invalid", "reasons", wrong)
		     : json_pack("{s:s,s:[]}", "state", "valid", "reasons");
}

int import_add(struct import *im, const struct import_value *v)
{
	char name[200];
	const char *wrong = wrong_with(v);
	snprintf(name, sizeof(name), "%s.%.150s", im->tool, v->name);
	if (is_twice(im, name, v->metric)) {
		import_bad(im, "%s of %s stands twice", v->metric, v->name);
		fb_hint(im->e, "a file is one launch: give each launch a file of its own");
		return im->e->code;
	}
	if (json_array_size(im->results) >= MAX_RESULTS)
		return import_bad(im, "more than %d results", MAX_RESULTS);
	json_t *r = json_object();
	fb_json_set_str(r, "case", name);
	fb_json_set_str(r, "where", "imported");
	json_object_set_new(r, "params", v->params ? json_deep_copy(v->params) : json_object());
	fb_json_set_str(r, "metric", v->metric);
	fb_json_set_str(r, "unit", v->unit);
	fb_json_set_str(r, "better", v->lower ? "lower" : "higher");
	fb_json_set_str(r, "load", "closed");
	fb_json_set_str(r, "sync", "unknown");
	fb_json_set_str(r, "definition", v->definition);
	json_object_set_new(r, "value", fb_json_real(v->value));
	if (!isfinite(v->value))
		fb_json_set_str(r, "value_reason", wrong);
	json_object_set_new(r, "ci", json_null());
	json_object_set_new(r, "bound", json_null());
	fb_json_set_int(r, "n", import_whole(v->samples));
	fb_json_set_int(r, "warmup_dropped", 0);
	json_object_set_new(r, "samples", json_array());
	json_object_set_new(r, "stats", json_object());
	json_object_set_new(r, "per_rank", json_array());
	json_object_set_new(
		r, "counters", json_pack("{s:{},s:{},s:{}}", "before", "after", "delta"));
	json_object_set_new(r, "validity", validity(wrong));
	json_object_set_new(r, "imported", import_facts(im));
	json_object_set_new(r, "job", json_null());
	fb_json_set_int(r, "launch", (int64_t)im->launch);
	return json_array_append_new(im->results, r) == 0
		       ? 0
		       : fb_fail(im->e, FB_EXIT_UNMEASURED, ENOMEM, "out of memory");
}

static const struct tool *find_tool(const char *name, struct fb_err *e)
{
	const char *nearest = tools[0].name;
	unsigned least = 1000;
	for (size_t i = 0; i < N_TOOLS && name; i++) {
		unsigned d = fb_edit_distance(name, tools[i].name);
		if (strcmp(name, tools[i].name) == 0)
			return &tools[i];
		if (d < least) {
			least = d;
			nearest = tools[i].name;
		}
	}
	if (!name) {
		fb_fail_usage(e, "import: of which tool?");
		fb_hint(e, "fabricbench import TOOL FILE...; tools: perftest, nccl-tests, osu, "
			   "torchtitan, megatron");
	} else {
		fb_fail_usage(e, "output of \"%.60s\" cannot be imported", name);
		fb_hint(e,
			"did you mean %s? Tools: perftest, nccl-tests, osu, torchtitan, megatron",
			nearest);
	}
	return NULL;
}

int import_text(const char *tool, const char *file, char *text, const char *test,
	const struct import_model *model, uint64_t launch, json_t *results, struct fb_err *e)
{
	const struct tool *t = find_tool(tool, e);
	struct import im = {.file = file,
		.at = text,
		.launch = launch,
		.test = test,
		.model = model,
		.results = results,
		.e = e};
	size_t before = json_array_size(results);
	if (!t)
		return e->code;
	if (strncmp(text, "\xef\xbb\xbf", 3) == 0)
		im.at += 3; /* an editor's mark of UTF-8 */
	im.tool = t->name;
	im.unknown = t->unknown;
	im.seen = json_object();
	int rc = t->read(&im);
	json_decref(im.seen);
	if (rc == 0 && json_array_size(results) == before) {
		rc = fb_fail_usage(e, "%s: holds no result of %s", file, t->name);
		fb_hint(e, "give what %s printed (%s)", t->name, t->what);
	}
	return rc;
}

/* ---- the command ----------------------------------------------------------------------------- */

struct import_cfg {
	char *tool, *test;
	struct fb_opt_list files;
	double params, peak;
	uint64_t layers, hidden, seq, ranks;
	struct fb_output_cfg out;
};

#define O(field) offsetof(struct import_cfg, field)
static const struct fb_opt import_opts[] = {
	{.name = "tool",
		.type = FB_OPT_STRING,
		.offset = O(tool),
		.arg = "TOOL",
		.help = "perftest, nccl-tests, osu, torchtitan or megatron",
		.positional = true},
	{.name = "file",
		.type = FB_OPT_LIST,
		.offset = O(files),
		.arg = "FILE",
		.help = "what it printed; each file is one launch",
		.positional = true},
	{.name = "test",
		.type = FB_OPT_STRING,
		.offset = O(test),
		.arg = "NAME",
		.help = "of nccl-tests: all_reduce, ..., where its output does not say"},
	{.name = "params",
		.type = FB_OPT_DOUBLE,
		.offset = O(params),
		.arg = "N",
		.help = "of training logs: the model's parameters, such as 8.03e9, for MFU by 6N"},
	{.name = "layers",
		.type = FB_OPT_U64,
		.offset = O(layers),
		.arg = "L",
		.help = "its layers; with --hidden and --seq, for MFU with attention (6N + 12 L h s)",
		.max = 100000},
	{.name = "hidden",
		.type = FB_OPT_U64,
		.offset = O(hidden),
		.arg = "H",
		.help = "its hidden size",
		.max = 10000000},
	{.name = "seq",
		.type = FB_OPT_U64,
		.offset = O(seq),
		.arg = "S",
		.help = "tokens of a sequence",
		.max = 100000000},
	{.name = "ranks",
		.type = FB_OPT_U64,
		.offset = O(ranks),
		.arg = "N",
		.help = "GPUs, for logs that tell the whole job's rate",
		.max = 10000000},
	{.name = "peak",
		.type = FB_OPT_DOUBLE,
		.offset = O(peak),
		.arg = "FLOPS",
		.help = "FLOP/s of one GPU by its data sheet, such as 989e12"},
	{0},
};
#undef O

static const char import_notes[] =
	"Results are marked \"imported\", each with what its tool does not tell: samples, counters,\n"
	"firmware. compare, report and history take the document; one file is one launch, and one\n"
	"launch is INCONCLUSIVE. The system it came from is unknown, and no fact of this host stands\n"
	"in the document. Status 2: a file that is not what its tool prints, with the line.\n"
	"\n"
	"Examples:\n"
	"  fabricbench import perftest run1.txt run2.txt run3.txt -o before.json\n"
	"  fabricbench import nccl-tests all_reduce.log --test all_reduce -o nccl.json\n"
	"  fabricbench import torchtitan train.log --params 8.03e9 --peak 989e12 -o mfu.json";

static struct fb_opt_spec make_spec(struct import_cfg *cfg)
{
	return (struct fb_opt_spec){
		.command = "import",
		.usage = "TOOL FILE... [options]",
		.summary = "Results of perftest, nccl-tests, OSU and training logs as a document.",
		.notes = import_notes,
		.sets = {{"Import", import_opts, cfg}, {"Output", fb_output_opts, &cfg->out}},
	};
}

static int import_file(const struct import_cfg *cfg, const char *path, uint64_t launch,
	json_t *results, struct fb_err *e)
{
	struct import_model model = {
		cfg->params, cfg->peak, cfg->layers, cfg->hidden, cfg->seq, cfg->ranks};
	char *text = NULL;
	size_t len = 0;
	int rc = fb_read_file(path, MAX_FILE, &text, &len, e);
	if (rc == 0 && strlen(text) != len)
		rc = fb_fail_usage(e, "%s: has a NUL byte: it is no text", path);
	if (rc == 0)
		rc = import_text(cfg->tool, path, text, cfg->test, &model, launch, results, e);
	free(text);
	return rc;
}

/* What is wrong with the words alone needs no document to say so. */
static int check_words(const struct import_cfg *cfg, struct fb_err *e)
{
	const struct tool *tool = find_tool(cfg->tool, e);
	if (!tool)
		return e->code;
	if (cfg->files.n > 0)
		return 0;
	fb_fail_usage(e, "import %s: which files?", tool->name);
	fb_hint(e, "fabricbench import %s FILE... -o DOC.json", tool->name);
	return e->code;
}

static int import_files(const struct import_cfg *cfg, struct fb_doc *doc, struct fb_err *e)
{
	json_t *results = json_array(), *r;
	size_t i;
	int rc = 0;
	for (i = 0; i < cfg->files.n && rc == 0; i++)
		rc = import_file(cfg, cfg->files.v[i], i + 1, results, e);
	if (rc == 0) {
		json_array_foreach (results, i, r)
			fb_doc_add_result(doc, json_incref(r));
		fb_doc_warn(doc,
			"imported: nothing is known of the system, its firmware and its counters");
	}
	json_decref(results);
	return rc;
}

static int import_main(int argc, char **argv)
{
	struct import_cfg cfg = {0};
	struct fb_opt_spec spec = make_spec(&cfg);
	struct fb_err e = {0};
	int rc = fb_opt_parse(&spec, argc, argv, &e);
	if (rc != 0)
		return rc == 1 ? FB_EXIT_OK : fb_cmd_fail(&e);
	struct fb_doc *doc =
		check_words(&cfg, &e) == 0 ? fb_doc_new("import", argc, argv, &cfg.out, &e) : NULL;
	int status = FB_EXIT_OK;
	if (!doc) {
		status = fb_cmd_fail(&e);
		goto free_options;
	}
	fb_doc_set_config(doc, fb_opt_to_json(&spec, true), fb_opt_to_json(&spec, false));
	/* This host is not where it was measured. */
	json_array_clear(json_object_get(json_object_get(fb_doc_json(doc), "system"), "hosts"));
	rc = import_files(&cfg, doc, &e);
	if (rc != 0) {
		fb_doc_error(doc, &e);
		fb_log_err(&e);
		status = (int)e.exit;
	}
	status = fb_doc_finish(doc, status);
	fb_doc_free(doc);
free_options:
	fb_opt_free(&spec);
	return status;
}

const struct fb_cmd import_cmd = {
	.name = "import",
	.summary = "results of perftest, nccl-tests, OSU and training logs as a document",
	.run = import_main,
};
