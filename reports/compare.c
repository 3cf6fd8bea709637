// SPDX-License-Identifier: Apache-2.0
/*
 * The command: two sets of launches in, one verdict per metric out. The launches come from
 * documents, or are made here in turn (--run); --aa takes both sides from one and tells what this
 * host's noise lets a gate see.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "bench/core/json.h"
#include "bench/core/opt.h"
#include "reports/compare_expected.h"
#include "reports/compare_fleet.h"
#include "reports/compare_priv.h"
#include "reports/compare_run.h"
#include "reports/report.h"
#include "reports/report_priv.h"

struct compare_cfg {
	char *base, *cand, *base2, *cand2;
	double floor, share, z;
	uint64_t max_gated, launches, timeout, seed;
	struct fb_opt_list gates, allow;
	char *gate_file, *output, *junit, *markdown, *keep, *expected, *expected_file, *fleet;
	bool json, all, any_system, strict, run, aa, retry, quiet;
	const char *const *words; /* behind "--" */
};

#define O(field) offsetof(struct compare_cfg, field)
static const struct fb_opt compare_opts[] = {
	{.name = "base",
		.type = FB_OPT_STRING,
		.offset = O(base),
		.arg = "BASE",
		.help = "run directory or result document to compare with; with --run a plan, another build of this program, or a command of it",
		.positional = true},
	{.name = "candidate",
		.type = FB_OPT_STRING,
		.offset = O(cand),
		.arg = "CAND",
		.help = "the same, to be judged",
		.positional = true},
	{.name = "gate-file",
		.type = FB_OPT_STRING,
		.offset = O(gate_file),
		.arg = "FILE",
		.help = "which metrics gate, floors with reasons, waivers (INI, see below)"},
	{.name = "floor",
		.type = FB_OPT_DOUBLE,
		.offset = O(floor),
		.arg = "PCT",
		.help = "change that is allowed, in percent, the same for every metric; -1: by metric, see below",
		.def = "-1",
		.min = -1,
		.max = 1000},
	{.name = "gate",
		.type = FB_OPT_LIST,
		.offset = O(gates),
		.arg = "PATTERN",
		.help = "gate what matches \"CASE:METRIC\" with *, ? and [], and nothing else"},
	{.name = "max-gated",
		.type = FB_OPT_U64,
		.offset = O(max_gated),
		.arg = "N",
		.help = "without patterns: gate at most so many metrics, ends of sweeps first; 0: the gate file's, else 20",
		.def = "0",
		.min = 0,
		.max = 10000},
	{.name = "strict",
		.type = FB_OPT_FLAG,
		.offset = O(strict),
		.help = "what is INCONCLUSIVE fails"},
	{.name = "any-system",
		.type = FB_OPT_FLAG,
		.offset = O(any_system),
		.help = "compare although CPU, devices, firmware or versions differ"},
	{.name = "allow",
		.type = FB_OPT_LIST,
		.offset = O(allow),
		.arg = "FACT",
		.help = "a fact that may differ, as the verdict INCOMPARABLE names it: kernel.release, rdma[0].fw, env.NCCL_ALGO; with *, ? and []"},
	{.name = "second-base",
		.type = FB_OPT_STRING,
		.offset = O(base2),
		.arg = "BASE",
		.help = "the second block of launches, of a retry that was planned before the first was seen"},
	{.name = "second-candidate",
		.type = FB_OPT_STRING,
		.offset = O(cand2),
		.arg = "CAND",
		.help = "the same of the candidate"},
	{.name = "all",
		.type = FB_OPT_FLAG,
		.offset = O(all),
		.help = "list the metrics that are not gated too"},
	{.name = "json",
		.type = FB_OPT_FLAG,
		.offset = O(json),
		.help = "one JSON object on stdout instead of the table"},
	{.letter = 'o',
		.name = "output",
		.type = FB_OPT_STRING,
		.offset = O(output),
		.arg = "FILE",
		.help = "also write that JSON object"},
	{.name = "junit",
		.type = FB_OPT_STRING,
		.offset = O(junit),
		.arg = "FILE",
		.help = "also write JUnit XML"},
	{.name = "markdown",
		.type = FB_OPT_STRING,
		.offset = O(markdown),
		.arg = "FILE",
		.help = "also write a table for a pull request"},
	{0},
};

static const struct fb_opt absolute_opts[] = {
	{.name = "expected",
		.type = FB_OPT_STRING,
		.offset = O(expected),
		.arg = "KIND",
		.help = "judge BASE alone by what machines of this kind are expected to reach; an unknown one lists them"},
	{.name = "expected-file",
		.type = FB_OPT_STRING,
		.offset = O(expected_file),
		.arg = "FILE",
		.help = "a site's expectations instead of the built-in ones"},
	{.name = "fleet",
		.type = FB_OPT_STRING,
		.offset = O(fleet),
		.arg = "DIR",
		.help = "documents of many nodes, one each: which are odd?"},
	{.name = "fleet-share",
		.type = FB_OPT_DOUBLE,
		.offset = O(share),
		.arg = "PCT",
		.help = "an odd node is worse than the median by more than this",
		.def = "5",
		.min = 0,
		.max = 100},
	{.name = "fleet-z",
		.type = FB_OPT_DOUBLE,
		.offset = O(z),
		.arg = "Z",
		.help = "and further from it than this many robust deviations",
		.def = "3.5",
		.min = 0,
		.max = 1000},
	{0},
};

static const struct fb_opt run_opts[] = {
	{.name = "run",
		.type = FB_OPT_FLAG,
		.offset = O(run),
		.help = "launch BASE and CAND here, in turn and in random order, then compare"},
	{.name = "aa",
		.type = FB_OPT_FLAG,
		.offset = O(aa),
		.help = "launch BASE as both sides: this host's noise; exit 1 when a floor lies below it"},
	{.name = "launches",
		.type = FB_OPT_U64,
		.offset = O(launches),
		.arg = "N",
		.help = "launches of each side",
		.def = "10",
		.min = 2,
		.max = 1000},
	{.name = "retry",
		.type = FB_OPT_FLAG,
		.offset = O(retry),
		.help = "when REGRESSED or INCONCLUSIVE: as many launches again, once, all judged together, at half the error each time"},
	{.name = "launch-timeout",
		.type = FB_OPT_DURATION,
		.offset = O(timeout),
		.arg = "TIME",
		.help = "longest duration of one launch",
		.def = "1h"},
	{.name = "keep",
		.type = FB_OPT_STRING,
		.offset = O(keep),
		.arg = "DIR",
		.help = "keep the launches' documents there (made if it does not exist)"},
	{.name = "seed",
		.type = FB_OPT_U64,
		.offset = O(seed),
		.arg = "N",
		.help = "of the order, and with the launch's number of each launch",
		.def = "1"},
	{.name = "quiet", .type = FB_OPT_FLAG, .offset = O(quiet), .help = "no progress"},
	{0},
};
#undef O

static const char compare_notes[] =
	"A side is a run with several launches (launches = 10 in its plan), best taken in turn with\n"
	"the other side. Each launch gives one value per metric. The change is Hodges-Lehmann's\n"
	"ratio with its 95 % interval; the test is Mann-Whitney's against the base moved by the\n"
	"floor, adjusted by Holm over the gated metrics.\n"
	"\n"
	"Floors, relative and absolute (both must be exceeded): rates 1 %; p50 2 % and 20 ns;\n"
	"p99 5 % and 100 ns; p99.9 10 % and 100 ns. A gate file sets others, with reasons:\n"
	"  [gate]            metrics = PATTERN (again and again), max-gated = 20, level = 0.95\n"
	"  [floor KIND]      KIND: rate, p50, p99, p99.9, value; or any name with metric = PATTERN;\n"
	"                    relative = 2 %, absolute = 20ns, reason = ...\n"
	"  [waiver NAME]     metric = PATTERN, verdict = REGRESSED, reason = ..., owner = ...,\n"
	"                    expires = 2027-01-31; after that day the file is refused\n"
	"\n"
	"  PASS          not worse than the floor allows\n"
	"  REGRESSED     surely worse than the floor allows;  IMPROVED: as surely better\n"
	"  INCONCLUSIVE  the launches do not tell; at least 7 a side are needed\n"
	"  MISSING       only the base has it\n"
	"  INCOMPARABLE  another system, place or parameter, or launches of one side that differ\n"
	"                in one, in environment or build\n"
	"  INVALID       a launch was marked invalid, or the base records wrong data\n"
	"\n"
	"Exit status, of the gated metrics, the worst decides: 0 all PASS, IMPROVED, waived, or (with\n"
	"a warning) INCONCLUSIVE; 1 one REGRESSED or MISSING, with --strict INCONCLUSIVE; 2 unreadable\n"
	"input, an expired waiver; 3 one INCOMPARABLE or INVALID, a launch that failed, nothing to\n"
	"judge, or so few launches that the gate could not fail; 4 wrong data.\n"
	"\n"
	"Examples:\n"
	"  fabricbench compare results/main results/branch --gate-file gate.ini --junit gate.xml\n"
	"  fabricbench compare --run old/fabricbench new/fabricbench -- coll all_reduce --ranks 2\n"
	"  fabricbench compare --run main.ini branch.ini --launches 15\n"
	"  fabricbench compare results/today --expected azure-ndv5-h100\n"
	"  fabricbench compare --fleet nodes/\n"
	"  fabricbench compare --aa \"coll all_reduce --ranks 2\" --gate-file gate.ini";

static struct fb_opt_spec make_spec(struct compare_cfg *cfg)
{
	return (struct fb_opt_spec){
		.command = "compare",
		.usage = "BASE CAND [options] [-- WORDS OF A PROGRAM'S COMMAND]",
		.summary =
			"Has the candidate become slower than the base? Compares launches, metric by metric.",
		.notes = compare_notes,
		.sets = {{"Options", compare_opts, cfg}, {"Launches made here", run_opts, cfg},
			{"Without a base", absolute_opts, cfg}},
	};
}

/* ---- what to judge by ------------------------------------------------------------------------ */

struct judging {
	struct cmp_rules rules;
	struct gate gate;
	const char *patterns[GATE_MAX_PATTERNS];
};

static int make_rules(const struct compare_cfg *cfg, struct judging *j, struct fb_err *e)
{
	char today[16];
	time_t now = time(NULL);
	struct tm tm;
	int rc = cfg->gate_file ? gate_load(cfg->gate_file, &j->gate, e) : 0;
	if (rc != 0)
		return rc;
	gmtime_r(&now, &tm);
	strftime(today, sizeof(today), "%Y-%m-%d", &tm);
	j->rules = (struct cmp_rules){.floor_pct = cfg->floor,
		.level = j->gate.level > 0 ? j->gate.level : 0.95,
		.max_gated = cfg->max_gated      ? cfg->max_gated
			     : j->gate.max_gated ? j->gate.max_gated
						 : 20,
		.gates = cfg->gates.v,
		.ngates = cfg->gates.n,
		.any_system = cfg->any_system,
		.allow = cfg->allow.v,
		.nallow = cfg->allow.n,
		.gate = cfg->gate_file ? &j->gate : NULL,
		.strict = cfg->strict};
	if (cfg->gates.n == 0 && j->gate.n_patterns > 0) {
		for (size_t i = 0; i < j->gate.n_patterns; i++)
			j->patterns[i] = j->gate.pattern[i];
		j->rules.gates = j->patterns;
		j->rules.ngates = j->gate.n_patterns;
	}
	return gate_check_expiry(&j->gate, today, e);
}

/* Does the first block ask for the second? */
static bool undecided(const struct cmp *c)
{
	for (size_t i = 0; i < c->n; i++) {
		enum cmp_verdict v = cmp_effective(&c->v[i]);
		if (c->v[i].gated && (v == CMP_REGRESSED || v == CMP_INCONCLUSIVE))
			return true;
	}
	return false;
}

/* ---- documents ------------------------------------------------------------------------------- */

static int judge_documents(
	const struct compare_cfg *cfg, const struct judging *j, struct cmp *c, struct fb_err *e)
{
	struct cmp_rules rules = j->rules;
	int rc = 0;
	/* Two looks at the data share the error that one is allowed. */
	if (cfg->base2)
		rules.level = 1 - (1 - rules.level) / 2;
	for (int block = 0; block < (cfg->base2 ? 2 : 1) && rc == 0; block++) {
		if (block == 1 && !undecided(c))
			break;
		cmp_free(c);
		rc = cmp_add(c, cfg->base, false, e);
		if (rc == 0)
			rc = cmp_add(c, cfg->cand, true, e);
		if (rc == 0 && block == 1)
			rc = cmp_add(c, cfg->base2, false, e);
		if (rc == 0 && block == 1)
			rc = cmp_add(c, cfg->cand2, true, e);
		if (rc == 0) {
			cmp_close_load(c, &rules);
			rc = cmp_judge(c, &rules, e);
		}
	}
	return rc;
}

/* ---- launches -------------------------------------------------------------------------------- */

static int judge_launches(
	const struct compare_cfg *cfg, const struct judging *j, struct cmp *c, struct fb_err *e)
{
	struct cmp_rules rules = j->rules;
	struct cmp_run run = {.side = {cfg->base, cfg->aa ? cfg->base : cfg->cand},
		.words = cfg->words,
		.launches = cfg->launches,
		.timeout = cfg->timeout,
		.seed = cfg->seed,
		.quiet = cfg->quiet};
	char dir[4096];
	int rc = cmp_run_dir(cfg->keep, dir, sizeof(dir), e);
	if (rc != 0)
		return rc;
	run.dir = dir;
	if (cfg->retry)
		rules.level = 1 - (1 - rules.level) / 2;
	for (int block = 0; block < (cfg->retry ? 2 : 1) && rc == 0; block++) {
		if (block == 1 && !undecided(c))
			break;
		rc = cmp_run_launches(&run, (uint64_t)block * cfg->launches, c, e);
		if (rc == 0) {
			cmp_close_load(c, &rules);
			rc = cmp_judge(c, &rules, e);
		}
	}
	if (!cfg->keep)
		cmp_run_remove(dir);
	return rc;
}

/* ---- output ---------------------------------------------------------------------------------- */

/* Steals o. path NULL: standard output */
static int print_json(json_t *o, const char *path, struct fb_err *e)
{
	char *text = json_dumps(o, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
	int rc = 0;
	json_decref(o);
	if (!text)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the JSON output");
	if (path)
		rc = fb_write_file_atomic(path, text, strlen(text), e);
	else
		printf("%s\n", text);
	free(text);
	return rc;
}

enum text_kind { JUNIT, MARKDOWN };

static int write_text(const struct cmp *c, const struct cmp_names *names, enum text_kind kind,
	const char *path, struct fb_err *e)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	if (!f)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %s", path);
	if (kind == JUNIT)
		cmp_junit(c, f);
	else
		cmp_markdown(c, names, f);
	int rc = fclose(f) == 0 ? fb_write_file_atomic(path, text, len, e)
				: fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %s", path);
	free(text);
	return rc;
}

static int output(const struct cmp *c, const struct compare_cfg *cfg, struct fb_err *e)
{
	struct cmp_names names = {cfg->base, cfg->aa ? cfg->base : cfg->cand};
	int rc = 0;
	if (cfg->json)
		rc = print_json(cmp_json(c, &names), NULL, e);
	else
		cmp_print_table(c, cfg->all, stdout);
	if (rc == 0 && cfg->output)
		rc = print_json(cmp_json(c, &names), cfg->output, e);
	if (rc == 0 && cfg->junit)
		rc = write_text(c, &names, JUNIT, cfg->junit, e);
	if (rc == 0 && cfg->markdown)
		rc = write_text(c, &names, MARKDOWN, cfg->markdown, e);
	return rc;
}

static int print_noise(const struct cmp *c, const struct compare_cfg *cfg, struct fb_err *e)
{
	int rc = 0;
	if (cfg->json)
		rc = print_json(cmp_noise_json(c, cfg->base), NULL, e);
	else
		cmp_noise_table(c, cfg->all, stdout);
	if (rc == 0 && cfg->output)
		rc = print_json(cmp_noise_json(c, cfg->base), cfg->output, e);
	return rc;
}

static bool is_folder(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int check_words(const struct compare_cfg *cfg, struct fb_err *e)
{
	bool launches = cfg->run || cfg->aa;
	if (cfg->run && cfg->aa)
		return fb_fail_usage(e, "--run and --aa exclude each other");
	if (cfg->aa && cfg->cand)
		return fb_fail_usage(
			e, "--aa launches one thing twice: give one, not %s", cfg->cand);
	if (!cfg->base || (!cfg->cand && !cfg->aa))
		return fb_fail_usage(e, "compare: which two? Usage: fabricbench compare BASE CAND");
	const char *folder = launches && is_folder(cfg->base)                ? cfg->base
			     : launches && cfg->cand && is_folder(cfg->cand) ? cfg->cand
									     : NULL;
	if (folder) {
		fb_fail_usage(e, "%.200s is a folder: it cannot be launched", folder);
		fb_hint(e, "runs that are there already are compared without --run");
		return e->code;
	}
	if (!launches && (cfg->words || cfg->retry || cfg->keep))
		return fb_fail_usage(e, "%s needs --run or --aa",
			cfg->words   ? "what stands behind --"
			: cfg->retry ? "--retry"
				     : "--keep");
	if (!cfg->base2 != !cfg->cand2 || (cfg->base2 && launches))
		return fb_fail_usage(e, "--second-base and --second-candidate belong together, and "
					"not to --run");
	return 0;
}

/* ---- without a base -------------------------------------------------------------------------- */

/* An option that only a comparison of two sides heeds would be lost without a word. */
static int check_alone(const struct compare_cfg *cfg, struct fb_err *e)
{
	const char *lost = cfg->run                      ? "--run"
			   : cfg->aa                     ? "--aa"
			   : cfg->gate_file              ? "--gate-file"
			   : cfg->gates.n > 0            ? "--gate"
			   : cfg->allow.n > 0            ? "--allow"
			   : cfg->any_system             ? "--any-system"
			   : cfg->strict                 ? "--strict"
			   : cfg->floor >= 0             ? "--floor"
			   : cfg->max_gated              ? "--max-gated"
			   : cfg->base2 || cfg->cand2    ? "--second-base"
			   : cfg->retry                  ? "--retry"
			   : cfg->keep                   ? "--keep"
			   : cfg->junit                  ? "--junit"
			   : cfg->markdown               ? "--markdown"
			   : cfg->words                  ? "what stands behind --"
			   : cfg->fleet && cfg->expected ? "--expected"
							 : NULL;
	if (!lost)
		return 0;
	return fb_fail_usage(
		e, "%s does not go with %s", lost, cfg->fleet ? "--fleet" : "--expected");
}

static int judge_expected(const struct compare_cfg *cfg, struct fb_err *e)
{
	struct cmp c = {0};
	struct expected x = {0};
	if (!cfg->base || cfg->cand)
		return fb_fail_usage(e, "--expected judges one run");
	if (!cfg->expected)
		return fb_fail_usage(e, "--expected-file: by which kind of it? --expected KIND");
	int rc = expected_load(cfg->expected_file, &x, e);
	if (rc == 0)
		rc = cmp_add(&c, cfg->base, false, e);
	if (rc == 0)
		rc = expected_judge(&x, cfg->expected, c.base, e);
	if (rc == 0 && cfg->json)
		rc = print_json(expected_json(&x, cfg->expected), NULL, e);
	else if (rc == 0)
		expected_print(&x, stdout);
	if (rc == 0 && cfg->output)
		rc = print_json(expected_json(&x, cfg->expected), cfg->output, e);
	if (rc == 0)
		rc = expected_status(&x);
	expected_free(&x);
	cmp_free(&c);
	return rc;
}

static int judge_fleet(const struct compare_cfg *cfg, struct fb_err *e)
{
	struct fleet f = {0};
	if (cfg->base)
		return fb_fail_usage(e, "--fleet takes a folder, and nothing besides");
	int rc = fleet_load(cfg->fleet, &f, e);
	if (rc != 0)
		return rc;
	rc = fleet_judge(&f, cfg->share / 100, cfg->z);
	if (rc != 0)
		fb_fail(e, FB_EXIT_UNMEASURED, rc, "out of memory");
	else if (cfg->json)
		rc = print_json(fleet_json(&f, cfg->fleet), NULL, e);
	else
		fleet_print(&f, stdout);
	if (rc == 0 && cfg->output)
		rc = print_json(fleet_json(&f, cfg->fleet), cfg->output, e);
	if (rc == 0)
		rc = fleet_status(&f);
	fleet_free(&f);
	return rc;
}

static int compare(const struct compare_cfg *cfg, struct fb_err *e)
{
	if ((cfg->expected || cfg->expected_file || cfg->fleet) && check_alone(cfg, e) != 0)
		return e->code;
	if (cfg->expected || cfg->expected_file)
		return judge_expected(cfg, e);
	if (cfg->fleet)
		return judge_fleet(cfg, e);

	struct cmp c = {0};
	struct judging j = {0};
	int rc = check_words(cfg, e);
	if (rc == 0)
		rc = make_rules(cfg, &j, e);
	if (rc == 0 && (cfg->run || cfg->aa))
		rc = judge_launches(cfg, &j, &c, e);
	else if (rc == 0)
		rc = judge_documents(cfg, &j, &c, e);
	if (rc == 0 && cfg->aa)
		rc = print_noise(&c, cfg, e);
	else if (rc == 0)
		rc = output(&c, cfg, e);
	if (rc == 0)
		rc = cfg->aa ? cmp_noise_status(&c) : cmp_status(&c);
	cmp_free(&c);
	gate_free(&j.gate);
	return rc;
}

static int compare_main(int argc, char **argv)
{
	struct compare_cfg cfg = {0};
	struct fb_err e = {0};
	struct fb_opt_spec spec = make_spec(&cfg);
	int n = 0;
	while (n < argc && strcmp(argv[n], "--") != 0)
		n++;
	if (n < argc)
		cfg.words = (const char *const *)argv + n + 1;
	int rc = fb_opt_parse(&spec, n, argv, &e);
	if (rc == 1)
		return FB_EXIT_OK;
	if (rc == 0)
		rc = compare(&cfg, &e);
	fb_opt_free(&spec);
	return rc < 0 ? fb_cmd_fail(&e) : rc;
}

const struct fb_cmd compare_cmd = {
	.name = "compare",
	.summary = "has a candidate become slower than its base? verdict per metric",
	.run = compare_main,
};
