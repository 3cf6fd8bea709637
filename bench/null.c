// SPDX-License-Identifier: Apache-2.0
/*
 * The null benchmark: it measures nothing. Its samples come from a seeded generator of a chosen
 * shape, so run control, statistics and output can be driven end to end, on any number of ranks,
 * with a known answer; it can also corrupt, fail, stall or hang at a chosen place.
 *
 * It is the worked example of CONTRIBUTING.md: a benchmark is an options table, a state, seven
 * small functions and a command, in this order below. Nothing here prints, writes files or decides
 * when to stop.
 */
#include "bench/null.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/core/clock.h"
#include "bench/core/gate.h"
#include "bench/core/json.h"
#include "bench/core/log.h"
#include "bench/core/result.h"
#include "bench/core/stats.h"
#include "bench/core/stop.h"
#include "bench/core/sysinfo.h"
#include "bench/core/units.h"
#include "bench/oob/oob.h"

/* ---- 1. The options: a struct, and a table that fills it. Help, plans and the document's config
 * come from the table. --------------------------------------------------------------------------
 */

enum shape { CONSTANT, NORMAL, LOGNORMAL, BIMODAL, DRIFT };
static const char *const shape_names[] = {
	"constant", "normal", "lognormal", "bimodal", "drift", NULL};
enum which { METRIC_TIME, METRIC_RATE, METRIC_BOTH };
static const char *const which_names[] = {"time", "rate", "both", NULL};
static const char *const combine_names[] = {"owner", "max", "sum", NULL};

struct null_cfg {
	int shape, which, combine;
	uint64_t mean_ns, points;
	double spread, launch_spread, bound;
	struct fb_opt_list sizes;
	bool sleep;
	char *corrupt, *fail, *stall, *hang;
	uint64_t seed, launch; /* not options of this table: the output's */
};

#define AT(member) .offset = offsetof(struct null_cfg, member)

static const struct fb_opt null_opts[] = {
	{.name = "dist",
		.type = FB_OPT_ENUM,
		AT(shape),
		.names = shape_names,
		.def = "normal",
		.help = "shape of the samples"},
	{.name = "mean",
		.type = FB_OPT_DURATION,
		AT(mean_ns),
		.arg = "TIME",
		.def = "1us",
		.help = "mean of the smallest size"},
	{.name = "spread",
		.type = FB_OPT_DOUBLE,
		AT(spread),
		.arg = "SHARE",
		.def = "0.03",
		.help = "deviation as a share of the mean"},
	{.name = "launch-spread",
		.type = FB_OPT_DOUBLE,
		AT(launch_spread),
		.arg = "SHARE",
		.def = "0",
		.help = "deviation of the mean from launch to launch, drawn by --seed and --launch"},
	{.name = "metric",
		.type = FB_OPT_ENUM,
		AT(which),
		.names = which_names,
		.def = "time",
		.help = "what to report"},
	{.name = "sizes",
		.type = FB_OPT_LIST,
		AT(sizes),
		.arg = "BYTES,...",
		.help = "one point for each size"},
	{.name = "points",
		.type = FB_OPT_U64,
		AT(points),
		.arg = "N",
		.def = "3",
		.min = 1,
		.max = 30,
		.help = "without --sizes: so many sizes, from 64 bytes on, each 4 times the last"},
	{.name = "combine",
		.type = FB_OPT_ENUM,
		AT(combine),
		.names = combine_names,
		.def = "max",
		.help = "how the ranks' samples become one"},
	{.name = "bound",
		.type = FB_OPT_RATE,
		AT(bound),
		.arg = "RATE",
		.help = "pretend that this is the physical bound of the bandwidth"},
	{.name = "sleep",
		.type = FB_OPT_FLAG,
		AT(sleep),
		.help = "really wait as long as each sample says"},
	{.name = "corrupt",
		.type = FB_OPT_STRING,
		AT(corrupt),
		.arg = "POINT:RANK:OFFSET",
		.help = "spoil one byte, which the check must find"},
	{.name = "fail",
		.type = FB_OPT_STRING,
		AT(fail),
		.arg = "POINT:RANK",
		.help = "fail there"},
	{.name = "stall",
		.type = FB_OPT_STRING,
		AT(stall),
		.arg = "POINT:RANK",
		.help = "wait there for what never comes"},
	{.name = "hang",
		.type = FB_OPT_STRING,
		AT(hang),
		.arg = "POINT:RANK",
		.hidden = true,
		.help = "wait there without looking at the deadline, as a driver call may"},
	{.name = NULL},
};

/* ---- 2. The state: everything that measure() touches is there before it starts. -------------- */

#define DATA_BYTES 4096

struct place {
	uint64_t point, rank, offset;
	bool set;
};

struct null_state {
	const struct null_cfg *cfg;
	struct fb_run *run; /* for fb_run_check() in long waits */
	int rank;
	struct fb_rng rng;
	double launch; /* this launch's own factor on the mean */
	double drift;  /* grows from batch to batch */
	struct place corrupt, fail, stall, hang;
	int64_t iterations; /* a counter, as a device has them */
	unsigned char data[DATA_BYTES];
};

/* "2:0:17" */
static int parse_place(const char *text, int fields, struct place *p, struct fb_err *e)
{
	unsigned long long v[3] = {0, 0, 0};
	int end = 0;
	if (!text)
		return 0;
	int n = fields == 3 ? sscanf(text, "%llu:%llu:%llu%n", &v[0], &v[1], &v[2], &end)
			    : sscanf(text, "%llu:%llu%n", &v[0], &v[1], &end);
	if (n != fields || text[end] != '\0' || v[2] >= DATA_BYTES) {
		fb_fail_usage(e, "\"%s\" is not a place", text);
		fb_hint(e, "write POINT:RANK%s, for example 1:0%s", fields == 3 ? ":OFFSET" : "",
			fields == 3 ? ":17 (offset below 4096)" : "");
		return -EINVAL;
	}
	*p = (struct place){.point = v[0], .rank = v[1], .offset = v[2], .set = true};
	return 0;
}

static bool here(const struct place *p, const struct null_state *st, const struct fb_point *point)
{
	return p->set && p->point == point->index && p->rank == (uint64_t)st->rank;
}

/* ---- 3. setup, teardown: all that is not timed. Connections and buffers belong here. --------- */

/* The launches of a plan's job have one seed: their number tells their draws apart. */
static uint64_t launch_stream(const struct null_cfg *cfg)
{
	return (cfg->launch & 0xfffff) << 40;
}

static int null_setup(struct fb_run *run, const void *cfg, void **out, struct fb_err *e)
{
	struct null_state *st = calloc(1, sizeof(*st));
	if (!st)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the null benchmark");
	st->cfg = cfg;
	st->run = run;
	st->rank = fb_run_oob(run) ? fb_oob_rank(fb_run_oob(run)) : 0;
	/* All ranks of one launch have one seed and number, and so one factor. */
	fb_rng_seed(&st->rng, st->cfg->seed, (UINT64_C(1) << 62) + launch_stream(st->cfg));
	st->launch = exp(st->cfg->launch_spread * fb_rng_normal(&st->rng));
	/* From here on teardown() frees it, also when this function fails. */
	*out = st;
	int rc = parse_place(st->cfg->corrupt, 3, &st->corrupt, e);
	if (rc == 0)
		rc = parse_place(st->cfg->fail, 2, &st->fail, e);
	if (rc == 0)
		rc = parse_place(st->cfg->stall, 2, &st->stall, e);
	if (rc == 0)
		rc = parse_place(st->cfg->hang, 2, &st->hang, e);
	return rc;
}

static void null_teardown(void *state)
{
	free(state);
}

/* ---- 4. points: the sweep. The name is the case of the result; params hold every factor. ----- */

static int add_point(const struct null_cfg *cfg, uint64_t size, struct fb_point_list *l)
{
	char text[32];
	json_t *params = json_object();
	fb_json_set_int(params, "size", (int64_t)size);
	fb_json_set_str(params, "dist", shape_names[cfg->shape]);
	/* Not the mean: what the samples are is what a real benchmark would find out. */
	struct fb_point *p = fb_point_add(l, params, "null/%s/%s", shape_names[cfg->shape],
		fb_fmt_size_exact(size, text, sizeof(text)));
	if (!p)
		return -ENOMEM;
	p->size = size;
	return 0;
}

static int null_points(void *state, struct fb_point_list *l, struct fb_err *e)
{
	const struct null_cfg *cfg = ((struct null_state *)state)->cfg;
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < cfg->sizes.n; i++) {
		uint64_t size;
		rc = fb_parse_size(cfg->sizes.v[i], &size, e);
		if (rc == 0)
			rc = add_point(cfg, size, l);
	}
	for (uint64_t i = 0; rc == 0 && cfg->sizes.n == 0 && i < cfg->points; i++)
		rc = add_point(cfg, UINT64_C(64) << (2 * i), l);
	return rc;
}

/* ---- 5. metrics: what a point reports. With bytes per unit of work, run control makes a rate. -
 */

static int null_metrics(void *state, const struct fb_point *p, struct fb_metric *m)
{
	const struct null_cfg *cfg = ((struct null_state *)state)->cfg;
	int n = 0;
	if (cfg->which != METRIC_RATE)
		m[n++] = (struct fb_metric){
			.name = "latency", .unit = "ns", .better = "lower", .kind = FB_METRIC_TIME};
	if (cfg->which != METRIC_TIME) {
		m[n] = (struct fb_metric){.name = "bandwidth",
			.unit = "bytes/s",
			.better = "higher",
			.kind = FB_METRIC_RATE,
			.per_unit = (double)p->size,
			.bound = cfg->bound,
			.line_rate = cfg->bound};
		snprintf(m[n].bound_why, sizeof(m[n].bound_why), "given by --bound");
		n++;
	}
	return n;
}

/* ---- 6. prepare and measure. ----------------------------------------------------------------- */

static int null_prepare(void *state, const struct fb_point *p, struct fb_err *e)
{
	struct null_state *st = state;
	/* Each point and rank has a stream of its own: a point gives the same samples whether or
	 * not others were measured before it. */
	fb_rng_seed(&st->rng, st->cfg->seed,
		launch_stream(st->cfg) + ((uint64_t)p->index << 20) + (uint64_t)st->rank);
	st->drift = 0;
	for (size_t i = 0; i < DATA_BYTES; i++)
		st->data[i] = (unsigned char)(i * 7 + p->index);
	return 0;
}

static double sample(struct null_state *st, double mean)
{
	double spread = st->cfg->spread;
	switch (st->cfg->shape) {
	case NORMAL: return mean * (1 + spread * fb_rng_normal(&st->rng));
	case LOGNORMAL: return mean * exp(spread * fb_rng_normal(&st->rng));
	case BIMODAL:
		/* One in five takes the slow path, twice as long. */
		return mean * (fb_rng_uniform(&st->rng) < 0.2 ? 2 : 1) *
		       (1 + spread * fb_rng_normal(&st->rng));
	case DRIFT: st->drift += 1e-6; return mean * (1 + st->drift);
	default: return mean;
	}
}

/* Wait in slices, so that a stop, a deadline or a lost rank is seen within a millisecond. */
static int wait_ns(struct null_state *st, uint64_t ns, struct fb_err *e)
{
	uint64_t end = fb_clock_ns() + ns;
	for (uint64_t now = fb_clock_ns(); now < end; now = fb_clock_ns()) {
		uint64_t left = end - now;
		struct timespec slice = {.tv_nsec = (long)(left < 1000000 ? left : 1000000)};
		int rc = fb_run_check(st->run, e);
		if (rc < 0)
			return rc;
		nanosleep(&slice, NULL);
	}
	return 0;
}

static int misbehave(struct null_state *st, const struct fb_point *p, struct fb_err *e)
{
	if (here(&st->fail, st, p)) {
		fb_fail(e, FB_EXIT_UNMEASURED, EIO, "%s: failed as --fail %s asked", p->name,
			st->cfg->fail);
		fb_hint(e, "leave --fail out");
		return -EIO;
	}
	if (here(&st->stall, st, p))
		return wait_ns(st, UINT64_C(3600000000000), e);
	if (here(&st->hang, st, p)) {
		struct timespec minute = {.tv_sec = 60};
		nanosleep(&minute, NULL);
	}
	return 0;
}

static int null_measure(
	void *state, const struct fb_point *p, uint64_t iters, struct fb_sink *s, struct fb_err *e)
{
	struct null_state *st = state;
	int rc = misbehave(st, p, e);
	if (rc < 0)
		return rc;
	/* A rank is a little slower than the one before it; a byte costs what it costs at 25 GB/s.
	 */
	double mean = ((double)st->cfg->mean_ns + (double)p->size / 25) * (1 + 0.01 * st->rank) *
		      st->launch;
	for (uint64_t i = 0; i < iters; i++) {
		double v = sample(st, mean);
		s->ns[i] = v > 0 ? (uint64_t)llround(v) : 0;
	}
	s->n = iters;
	/* A real benchmark sets this from its clock, around the loop: for us the sum is right. */
	s->elapsed_ns = 0;
	st->iterations += (int64_t)iters;
	for (uint64_t i = 0; st->cfg->sleep && rc == 0 && i < iters; i++)
		rc = wait_ns(st, s->ns[i], e);
	return rc;
}

/* ---- 7. check and counters: after the last batch, nothing timed. ----------------------------- */

static int null_check(
	void *state, const struct fb_point *p, struct fb_validity *v, struct fb_err *e)
{
	struct null_state *st = state;
	if (here(&st->corrupt, st, p))
		st->data[st->corrupt.offset] ^= 0x40;
	for (size_t i = 0; i < DATA_BYTES; i++) {
		unsigned char want = (unsigned char)(i * 7 + p->index);
		if (st->data[i] == want)
			continue;
		fb_fail(e, FB_EXIT_WRONG_DATA, EBADMSG,
			"%s: wrong data at rank %d, offset %zu: expected 0x%02x, got 0x%02x",
			p->name, st->rank, i, want, st->data[i]);
		fb_hint(e, "no figure of this machine can be trusted until the cause is found");
		return -EBADMSG;
	}
	if (st->cfg->shape == DRIFT)
		fb_validity_add(v, FB_SUSPECT, "the samples drift, as --dist drift asked");
	return 0;
}

static int null_counters(void *state, json_t **out, struct fb_err *e)
{
	struct null_state *st = state;
	*out = json_pack("{s:{s:I}}", "null", "iterations", (json_int_t)st->iterations);
	return *out ? 0 : fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for counters");
}

const struct fb_bench null_bench = {
	.abi = FB_BENCH_ABI,
	.name = "null",
	.summary = "samples of a programmed shape; measures nothing",
	.opts = null_opts,
	.cfg_size = sizeof(struct null_cfg),
	.combine = FB_COMBINE_MAX,
	.load = "closed",
	.sync = "none",
	.definition = "programmed samples, nothing is measured",
	.setup = null_setup,
	.points = null_points,
	.metrics = null_metrics,
	.prepare = null_prepare,
	.measure = null_measure,
	.check = null_check,
	.counters = null_counters,
	.teardown = null_teardown,
};

/* ---- The command: parse, join the ranks, run, finish. ---------------------------------------- */

struct null_command {
	struct null_cfg null;
	struct fb_runctl_cfg runctl;
	struct fb_gate_cfg gates;
	struct fb_output_cfg output;
	struct fb_oob_cfg oob;
	struct fb_bench bench; /* null_bench with --combine */
	struct fb_doc *doc;    /* rank 0 only */
};

/* Without structs to fill, so that a plan can look at it; a run fills a copy. */
static const struct fb_opt_spec null_spec = {
	.command = "null",
	.usage = "[options]",
	.summary = "Drives run control, statistics and output with programmed samples; "
		   "measures nothing.",
	.notes = "Samples depend on --seed, --launch, the point and the rank alone: with -n a run "
		 "can be repeated exactly.",
	.sets = {{.title = "Samples", .opts = null_opts},
		{.title = "Run control", .opts = fb_runctl_opts},
		{.title = "Ranks", .opts = fb_oob_opts}, {.title = "Gates", .opts = fb_gate_opts},
		{.title = "Output", .opts = fb_output_opts}},
};

static int null_rank(struct fb_oob *oob, void *arg, struct fb_err *e)
{
	struct null_command *c = arg;
	return fb_run_bench(fb_oob_rank(oob) == 0 ? c->doc : NULL, &c->bench, &c->null, &c->runctl,
		oob, fb_where("cpu"), e);
}

static int join_and_run(struct null_command *c, struct fb_err *e)
{
	struct fb_oob *oob;
	if (c->oob.kind == FB_OOB_LOCAL && c->oob.ranks > 1)
		return fb_oob_local_run(c->oob.ranks, null_rank, c, e);
	int rc = fb_oob_open(&c->oob, &oob, e);
	if (rc < 0)
		return rc;
	rc = null_rank(oob, c, e);
	fb_oob_close(oob);
	return rc;
}

/* The document is there before the ranks meet, so that a rank that never comes is in it. */
static int null_run_parsed(struct null_command *c, struct fb_opt_spec *spec, int argc, char **argv)
{
	struct fb_err e = {0};
	int rc = fb_oob_from_env(&c->oob, &e);
	if (rc == 0)
		rc = fb_stop_watch(&e);
	if (rc < 0)
		return fb_cmd_fail(&e);
	if (c->oob.rank <= 0) {
		c->doc = fb_doc_new("null", argc, argv, &c->output, &e);
		if (!c->doc)
			return fb_cmd_fail(&e);
		fb_doc_set_config(c->doc, fb_opt_to_json(spec, true), fb_opt_to_json(spec, false));
	}
	rc = join_and_run(c, &e);
	int status = FB_EXIT_OK;
	if (rc < 0)
		status = fb_cmd_fail(&e);
	if (c->doc) {
		fb_doc_error(c->doc, &e);
		status = fb_gate_judge(c->doc, &c->gates, "bandwidth", status);
		status = fb_doc_finish(c->doc, status);
		fb_doc_free(c->doc);
	}
	return status;
}

static int null_run(int argc, char **argv)
{
	static const enum fb_combine combine[] = {
		FB_COMBINE_OWNER, FB_COMBINE_MAX, FB_COMBINE_SUM_RATE};
	struct null_command c = {.bench = null_bench};
	struct fb_opt_spec spec = null_spec;
	spec.sets[0].cfg = &c.null;
	spec.sets[1].cfg = &c.runctl;
	spec.sets[2].cfg = &c.oob;
	spec.sets[3].cfg = &c.gates;
	spec.sets[4].cfg = &c.output;
	struct fb_err e = {0};
	int rc = fb_opt_parse(&spec, argc, argv, &e);
	if (rc != 0)
		return rc > 0 ? FB_EXIT_OK : fb_cmd_fail(&e);
	c.null.seed = c.output.seed;
	c.null.launch = c.output.launch;
	c.bench.combine = combine[c.null.combine];
	int status = fb_runctl_fit(&c.runctl, &e) == 0 ? null_run_parsed(&c, &spec, argc, argv)
						       : fb_cmd_fail(&e);
	fb_opt_free(&spec);
	return status;
}

static const struct fb_opt_spec *get_spec(void)
{
	return &null_spec;
}

const struct fb_cmd null_cmd = {
	.name = "null",
	.summary = "programmed samples through run control and output; measures nothing",
	.run = null_run,
	.spec = get_spec,
};
