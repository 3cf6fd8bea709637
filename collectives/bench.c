// SPDX-License-Identifier: Apache-2.0
/*
 * The collective benchmark over any backend. What is timed is start() and wait() of one operation
 * between two readings of the clock; the barrier before it is the backend's own all_reduce of one
 * integer, so that ranks start as close together as the fabric under test lets them. The slowest
 * rank's time counts.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/sysinfo.h"
#include "bench/core/units.h"
#include "bench/oob/oob.h"
#include "collectives/coll_priv.h"
#include "collectives/local.h"

/* How long a wait lasts before run control is asked whether it may go on. */
#define SLICE_NS 100000000u
/* Operations queued on a device before a wait: enough to hide the launch, few enough to sample. */
#define QUEUE 16

static const char *const op_words[] = {
	"all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall", "all", NULL};
static const char *const backend_words[] = {"auto", "local", "mpi", "nccl", NULL};
static const char *const mode_words[] = {"isolated", "pipelined", NULL};

#define OFF(field) .offset = offsetof(struct coll_cfg, field)
const struct fb_opt coll_opts[] = {
	{.name = "op",
		.type = FB_OPT_ENUM,
		OFF(op),
		.arg = "OP",
		.names = op_words,
		.positional = true,
		.def = "all_reduce",
		.help = "the operation, or all of them"},
	{'b', "min-bytes", FB_OPT_SIZE, OFF(min), .arg = "BYTES", .def = "8",
		.help = "smallest size"},
	{'e', "max-bytes", FB_OPT_SIZE, OFF(max), .arg = "BYTES", .def = "32M",
		.help = "largest size"},
	{'i', "step", FB_OPT_SIZE, OFF(step), .arg = "BYTES", .def = "0",
		.help = "add this from one size to the next; 0: multiply by --factor"},
	{'f', "factor", FB_OPT_DOUBLE, OFF(factor), .arg = "FACTOR", .def = "2", .min = 1,
		.max = 1024, .help = "multiply by this from one size to the next"},
	{'c', "check", FB_OPT_INT, OFF(check), .arg = "0|1", .def = "1", .min = 0, .max = 1,
		.help = "check the data of the timed operations"},
	{'d', "dtype", FB_OPT_ENUM, OFF(dtype), .arg = "TYPE", .def = "float",
		.names = coll_dtype_names, .help = "type of the elements"},
	{'o', "redop", FB_OPT_ENUM, OFF(redop), .arg = "REDOP", .def = "sum",
		.names = coll_redop_names, .help = "the reduction"},
	{'r', "root", FB_OPT_INT, OFF(root), .arg = "RANK", .def = "0", .min = 0, .max = 1 << 20,
		.help = "root of broadcast"},
	{.name = "backend",
		.type = FB_OPT_ENUM,
		OFF(backend),
		.arg = "NAME",
		.def = "auto",
		.names = backend_words,
		.help = "local (threads), mpi, nccl, or auto: nccl with GPUs, mpi under its launcher, else "
			"local"},
	{.name = "mode",
		.type = FB_OPT_ENUM,
		OFF(mode),
		.arg = "MODE",
		.def = "isolated",
		.names = mode_words,
		.help = "isolated (a barrier before each operation) or pipelined (back to back)"},
	{.name = "allow-one-rank",
		.type = FB_OPT_FLAG,
		OFF(allow_one_rank),
		.help = "measure one rank alone: times only, there is no busbw"},
	{.name = "inject",
		.type = FB_OPT_STRING,
		OFF(inject),
		.arg = "RANK:OFFSET",
		.hidden = true,
		.help = "flip that received byte before the check, to prove that it is found"},
	{.name = NULL},
};

int coll_parse_inject(const char *text, int *rank, uint64_t *offset, struct fb_err *e)
{
	*rank = -1;
	*offset = 0;
	if (!text)
		return 0;
	char head[16];
	uint64_t r;
	const char *colon = strchr(text, ':');
	if (!colon || (size_t)(colon - text) >= sizeof(head))
		return fb_fail_usage(e, "--inject %s: it is RANK:OFFSET", text);
	memcpy(head, text, (size_t)(colon - text));
	head[colon - text] = '\0';
	int rc = fb_parse_u64(head, 0, 1 << 20, &r, e);
	if (rc == 0)
		rc = fb_parse_size(colon + 1, offset, e);
	if (rc == 0)
		*rank = (int)r;
	return rc;
}

static int check_one_rank(const struct coll_cfg *cfg, int ranks, struct fb_err *e)
{
	if (ranks > 1 || cfg->allow_one_rank)
		return 0;
	fb_fail_usage(e, "one rank alone moves no data over a bus: busbw would be 0");
	fb_hint(e,
		"start more: --ranks N (threads), mpirun -n N or srun -n N; or measure the time alone "
		"with --allow-one-rank");
	return -EINVAL;
}

int coll_check_cfg(const struct coll_cfg *cfg, int ranks, struct fb_err *e)
{
	int rank;
	uint64_t offset;
	if (cfg->min == 0 || cfg->min > cfg->max)
		return fb_fail_usage(e, "sizes from %llu to %llu bytes: there are none",
			(unsigned long long)cfg->min, (unsigned long long)cfg->max);
	if (cfg->max >= (uint64_t)1 << 48)
		return fb_fail_usage(e, "--max-bytes %llu is more than any memory holds",
			(unsigned long long)cfg->max);
	if (cfg->step == 0 && !(cfg->factor > 1) && cfg->min != cfg->max)
		return fb_fail_usage(e, "--factor must be over 1, or --step given");
	if (cfg->root >= ranks)
		return fb_fail_usage(e, "--root %d: ranks are 0 to %d", cfg->root, ranks - 1);
	int rc = coll_parse_inject(cfg->inject, &rank, &offset, e);
	if (rc == 0 && rank >= ranks)
		rc = fb_fail_usage(e, "--inject %s: ranks are 0 to %d", cfg->inject, ranks - 1);
	if (rc == 0 && rank >= 0 && !cfg->check)
		rc = fb_fail_usage(e, "--inject needs --check 1");
	return rc == 0 ? check_one_rank(cfg, ranks, e) : rc;
}

/* ---- set-up -----------------------------------------------------------------------------------
 */

static int first_op(const struct coll_state *s)
{
	return s->w.op == COLL_ALL_OPS ? 0 : s->w.op;
}

static int last_op(const struct coll_state *s)
{
	return s->w.op == COLL_ALL_OPS ? COLL_OP_COUNT - 1 : s->w.op;
}

/* Everyone follows rank 0's options; only the backend, which is chosen on each host, must agree. */
static int share_config(struct coll_state *s, const struct coll_cfg *cfg, struct fb_err *e)
{
	struct fb_oob *oob = fb_run_oob(s->run);
	struct coll_wire *w = &s->w;
	memset(w, 0, sizeof(*w));
	if (s->rank == 0) {
		snprintf(w->backend, sizeof(w->backend), "%s", cfg->ops->name);
		w->op = cfg->op;
		w->dtype = cfg->dtype;
		w->redop = cfg->redop;
		w->root = cfg->root;
		w->check = cfg->check;
		w->mode = cfg->mode;
		w->allow_one_rank = cfg->allow_one_rank;
		w->min = cfg->min;
		w->max = cfg->max;
		w->step = cfg->step;
		w->factor = cfg->factor;
		w->seed = cfg->seed;
		int rc = coll_parse_inject(cfg->inject, &w->inject_rank, &w->inject_offset, e);
		if (rc != 0)
			return rc;
	}
	int rc = fb_oob_bcast(oob, w, sizeof(*w), fb_run_deadline(s->run), e);
	if (rc == 0 && strcmp(w->backend, cfg->ops->name) != 0) {
		rc = fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
			"rank 0 uses the %s backend, rank %d has %s", w->backend, s->rank,
			cfg->ops->name);
		fb_hint(e, "name one with --backend on all ranks");
	}
	return rc;
}

/* Ranks on this host, and which of them this one is: by comparing host names. */
static int find_neighbours(struct coll_state *s, struct fb_err *e)
{
	char name[64] = "";
	fb_host_name(name, sizeof(name));
	char *all = calloc((size_t)s->ranks, sizeof(name));
	if (!all)
		return fb_fail(
			e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %d host names", s->ranks);
	int rc = fb_oob_allgather(
		fb_run_oob(s->run), name, sizeof(name), all, fb_run_deadline(s->run), e);
	for (int r = 0; rc == 0 && r < s->ranks; r++) {
		if (memcmp(all + (size_t)r * sizeof(name), name, sizeof(name)) != 0)
			continue;
		s->host_ranks++;
		s->local_rank += r < s->rank;
	}
	free(all);
	return rc;
}

static int env_bcast(void *arg, void *buf, uint32_t len, struct fb_err *e)
{
	struct coll_state *s = arg;
	return fb_oob_bcast(fb_run_oob(s->run), buf, len, fb_run_deadline(s->run), e);
}

static uint64_t env_now(void)
{
	return fb_clock_ns();
}

static int open_backend(struct coll_state *s, const struct coll_cfg *cfg, struct fb_err *e)
{
	int rc = find_neighbours(s, e);
	if (rc != 0)
		return rc;
	/* A launcher may show each of its processes one device only, as number 0. */
	int devices = s->ops->devices ? s->ops->devices() : 0;
	int device = devices > 0 && !cfg->group ? s->local_rank % devices : s->local_rank;
	uint64_t now = fb_clock_ns(), deadline = fb_run_deadline(s->run);
	const struct coll_env env = {.rank = s->rank,
		.size = s->ranks,
		.local_rank = device,
		.now = env_now,
		.timeout_ns = deadline > now ? deadline - now : 1,
		.bcast = env_bcast,
		.arg = s,
		.shared = cfg->group};
	rc = s->ops->open(&env, &s->comm, e);
	if (rc == 0 && s->ops->describe && s->ops->describe(s->comm, s->what, sizeof(s->what)) < 0)
		s->what[0] = '\0';
	return rc;
}

/* Calls what(size) for every size of the sweep; an empty or repeated effective size is left out. */
static int each_size(struct coll_state *s, enum coll_op op,
	int (*what)(struct coll_state *s, enum coll_op op, uint64_t requested,
		const struct coll_shape *shape, void *arg, struct fb_err *e),
	void *arg, struct fb_err *e)
{
	uint64_t last = 0;
	for (uint64_t size = s->w.min; size <= s->w.max;
		size = coll_next_size(size, s->w.step, s->w.factor)) {
		struct coll_shape shape =
			coll_shape_of(op, (enum coll_dtype)s->w.dtype, s->ranks, size);
		if (shape.bytes != 0 && shape.bytes != last) {
			int rc = what(s, op, size, &shape, arg, e);
			if (rc != 0)
				return rc;
		}
		last = shape.bytes;
	}
	return 0;
}

static int largest(struct coll_state *s, enum coll_op op, uint64_t requested,
	const struct coll_shape *shape, void *arg, struct fb_err *e)
{
	size_t *cap = arg;
	if (shape->bytes > *cap)
		*cap = shape->bytes;
	return 0;
}

static int alloc_buffers(struct coll_state *s, struct fb_err *e)
{
	int rc = 0;
	for (int op = first_op(s); op <= last_op(s) && rc == 0; op++)
		rc = each_size(s, (enum coll_op)op, largest, &s->cap, e);
	if (rc != 0)
		return rc;
	if (s->cap == 0) {
		fb_fail_usage(e,
			"--max-bytes %llu is less than 16 bytes for each of %d ranks: nothing is left "
			"of it after rounding down",
			(unsigned long long)s->w.max, s->ranks);
		fb_hint(e, "give at least -e %d", 16 * s->ranks);
		return -EINVAL;
	}
	s->got = malloc(COLL_CHUNK);
	s->want = malloc(COLL_CHUNK);
	if (!s->got || !s->want)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the check");
	rc = s->ops->alloc(s->comm, s->cap, &s->send, e);
	if (rc == 0)
		rc = s->ops->alloc(s->comm, s->cap, &s->recv, e);
	if (rc == 0)
		rc = s->ops->alloc(s->comm, 2 * sizeof(int32_t), &s->barrier, e);
	const int32_t zero[2] = {0, 0};
	if (rc == 0)
		rc = s->ops->upload(s->comm, s->barrier, zero, sizeof(zero), e);
	return rc;
}

static void teardown(void *st)
{
	struct coll_state *s = st;
	if (!s)
		return;
	if (s->comm) {
		/* Freeing device memory waits for what runs there: end that first. */
		if (s->failed)
			s->ops->abort(s->comm);
		s->ops->free(s->comm, s->send);
		s->ops->free(s->comm, s->recv);
		s->ops->free(s->comm, s->barrier);
		s->ops->close(s->comm);
	}
	if (s->pattern_ready)
		coll_pattern_free(&s->pattern);
	free(s->got);
	free(s->want);
	free(s);
}

static int setup(struct fb_run *run, const void *cfg_arg, void **st, struct fb_err *e)
{
	const struct coll_cfg *cfg = cfg_arg;
	struct coll_state *s = calloc(1, sizeof(*s));
	if (!s)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the benchmark");
	s->run = run;
	s->ops = cfg->ops;
	s->rank = fb_oob_rank(fb_run_oob(run));
	s->ranks = fb_oob_size(fb_run_oob(run));
	int rc = share_config(s, cfg, e);
	if (rc == 0)
		rc = open_backend(s, cfg, e);
	if (rc == 0)
		rc = alloc_buffers(s, e);
	if (rc != 0) {
		s->failed = true;
		teardown(s);
		return rc;
	}
	*st = s;
	return 0;
}

/* ---- the sweep --------------------------------------------------------------------------------
 */

static int add_point(struct coll_state *s, enum coll_op op, uint64_t requested,
	const struct coll_shape *shape, void *arg, struct fb_err *e)
{
	const char *redop = coll_op_reduces(op) ? coll_redop_names[s->w.redop] : NULL;
	json_t *p = json_object();
	fb_json_set_str(p, "op", coll_op_names[op]);
	fb_json_set_str(p, "dtype", coll_dtype_names[s->w.dtype]);
	fb_json_set_str(p, "redop", redop);
	if (op == COLL_BROADCAST)
		fb_json_set_int(p, "root", s->w.root);
	fb_json_set_int(p, "ranks", s->ranks);
	fb_json_set_int(p, "size", (int64_t)shape->bytes);
	fb_json_set_int(p, "requested_size", (int64_t)requested);
	fb_json_set_int(p, "count", (int64_t)shape->count);
	fb_json_set_str(p, "backend", s->ops->name);
	fb_json_set_str(p, "memory", s->ops->memory);
	fb_json_set_str(p, "placement", "out-of-place");
	fb_json_set_str(p, "mode", mode_words[s->w.mode]);
	struct fb_point *pt = fb_point_add(arg, p, "coll/%s/%s/%s%s%s/%s/%d/%llu",
		coll_op_names[op], coll_dtype_names[s->w.dtype], redop ? redop : "",
		redop ? "/" : "", s->ops->name, mode_words[s->w.mode], s->ranks,
		(unsigned long long)shape->bytes);
	if (!pt)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the list of sizes");
	pt->size = shape->bytes;
	pt->user = coll_point_pack(op, requested);
	return 0;
}

static int points(void *st, struct fb_point_list *l, struct fb_err *e)
{
	struct coll_state *s = st;
	int rc = 0;
	for (int op = first_op(s); op <= last_op(s) && rc == 0; op++)
		rc = each_size(s, (enum coll_op)op, add_point, l, e);
	return rc;
}

static int metrics(void *st, const struct fb_point *p, struct fb_metric *m)
{
	struct coll_state *s = st;
	enum coll_op op = (enum coll_op)(p->user >> 56);
	double factor = coll_bus_factor(op, s->ranks);
	m[0] = (struct fb_metric){
		.name = "time", .unit = "ns", .better = "lower", .kind = FB_METRIC_TIME};
	m[1] = (struct fb_metric){.name = "algbw",
		.unit = "bytes/s",
		.better = "higher",
		.kind = FB_METRIC_RATE,
		.per_unit = (double)p->size};
	m[2] = m[1];
	m[2].name = "busbw";
	m[2].per_unit = (double)p->size * factor;
	/* One rank: its algbw is a copy on the spot, and there is no bus. */
	return factor > 0 ? 3 : 1;
}

static json_t *facts(void *st, const struct fb_point *p)
{
	struct coll_state *s = st;
	json_t *f = json_object();
	if (s->what[0] != '\0')
		fb_json_set_str(f, "backend_facts", s->what);
	fb_json_set_bool(f, "checked", s->w.check);
	if (s->ranks == 1) {
		json_object_set_new(f, "busbw", json_null());
		fb_json_set_str(f, "busbw_reason",
			"one rank: no data crosses a bus, so there is no bus bandwidth");
	}
	return f;
}

/* ---- timing -----------------------------------------------------------------------------------
 */

/* A wait that has lasted a slice: ask whether to go on, and wait on. */
static int wait_on(struct coll_state *s, int rc, struct fb_err *e)
{
	while (rc == -ETIMEDOUT) {
		fb_err_clear(e);
		rc = fb_run_check(s->run, e);
		if (rc == 0)
			rc = s->ops->wait(s->comm, fb_deadline_in(SLICE_NS), e);
		else
			return rc;
	}
	return rc;
}

static int barrier(struct coll_state *s, struct fb_err *e)
{
	const struct coll_call call = {.op = COLL_ALL_REDUCE,
		.dtype = COLL_INT32,
		.redop = COLL_MAX,
		.count = 1,
		.send = s->barrier,
		.recv = (int32_t *)s->barrier + 1};
	int rc = s->ops->start(s->comm, &call, e);
	if (rc != 0)
		return rc;
	rc = s->ops->wait(s->comm, fb_deadline_in(SLICE_NS), e);
	return rc == 0 ? 0 : wait_on(s, rc, e);
}

static int measure_isolated(
	struct coll_state *s, uint64_t iters, struct fb_sink *sink, struct fb_err *e)
{
	const struct coll_ops *ops = s->ops;
	for (uint64_t i = 0; i < iters; i++) {
		int rc = barrier(s, e);
		if (rc != 0)
			return rc;
		uint64_t begin = fb_clock_ns();
		rc = ops->start(s->comm, &s->call, e);
		if (rc == 0) {
			rc = ops->wait(s->comm, begin + SLICE_NS, e);
			if (rc != 0)
				rc = wait_on(s, rc, e);
		}
		uint64_t end = fb_clock_ns();
		if (rc != 0)
			return rc;
		sink->ns[i] = end - begin;
	}
	sink->n = iters;
	return 0;
}

/* Operations back to back, a wait after every `group`: a sample is the mean of its group. */
static int measure_pipelined(
	struct coll_state *s, uint64_t iters, struct fb_sink *sink, struct fb_err *e)
{
	const struct coll_ops *ops = s->ops;
	int rc = barrier(s, e);
	uint64_t first = fb_clock_ns(), begin = first;
	const uint64_t depth = s->group > 0 ? s->group : 1;
	size_t n = 0;
	for (uint64_t left = iters; left > 0 && rc == 0;) {
		uint64_t group = left < depth ? left : depth;
		for (uint64_t k = 0; k < group && rc == 0; k++)
			rc = ops->start(s->comm, &s->call, e);
		if (rc == 0) {
			rc = ops->wait(s->comm, begin + SLICE_NS, e);
			if (rc != 0)
				rc = wait_on(s, rc, e);
		}
		uint64_t end = fb_clock_ns();
		/* cppcheck-suppress zerodivcond; group is 1 to left, and left is not 0 in here */
		sink->ns[n++] = (end - begin) / group;
		begin = end;
		left -= group;
	}
	sink->n = n;
	sink->elapsed_ns = begin - first;
	sink->work = (double)iters;
	return rc;
}

static int prepare(void *st, const struct fb_point *p, struct fb_err *e)
{
	struct coll_state *s = st;
	enum coll_op op = (enum coll_op)(p->user >> 56);
	uint64_t requested = p->user & (((uint64_t)1 << 56) - 1);
	s->shape = coll_shape_of(op, (enum coll_dtype)s->w.dtype, s->ranks, requested);
	s->call = (struct coll_call){.op = op,
		.dtype = (enum coll_dtype)s->w.dtype,
		.redop = (enum coll_redop)s->w.redop,
		.root = s->w.root,
		.count = s->shape.count,
		.send = s->send,
		.recv = s->recv};
	s->measure = s->w.mode == COLL_PIPELINED ? measure_pipelined : measure_isolated;
	s->group = strcmp(s->ops->memory, "device") == 0 ? QUEUE : 1;
	if (s->pattern_ready)
		coll_pattern_free(&s->pattern);
	s->pattern_ready = false;
	int rc = coll_pattern_init(&s->pattern, &s->call, s->ranks, s->w.seed, e);
	if (rc != 0)
		return rc;
	s->pattern_ready = true;
	return coll_fill(s, e);
}

static int measure(
	void *st, const struct fb_point *p, uint64_t iters, struct fb_sink *sink, struct fb_err *e)
{
	struct coll_state *s = st;
	int rc = s->w.check ? coll_spoil_windows(s, e) : 0;
	if (rc == 0)
		rc = s->measure(s, iters, sink, e);
	if (rc != 0) {
		s->failed = true;
		if (s->ops->abort)
			s->ops->abort(s->comm);
		return rc;
	}
	return s->w.check ? coll_check_windows(s, e) : 0;
}

static int check(void *st, const struct fb_point *p, struct fb_validity *v, struct fb_err *e)
{
	struct coll_state *s = st;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	/* Said once per host: it is a fact of the host. */
	if (s->local_rank == 0 && strcmp(s->ops->memory, "host") == 0 && s->host_ranks > cpus)
		fb_validity_add(v, FB_SUSPECT,
			"%d ranks share %ld CPUs: the figures show that it works, not how fast",
			s->host_ranks, cpus);
	if (!s->w.check)
		return 0;
	int rc = coll_inject(s, e);
	return rc == 0 ? coll_check_all(s, e) : rc;
}

const struct fb_bench coll_bench = {
	.abi = FB_BENCH_ABI,
	.name = "coll",
	.summary =
		"Collective operations: time of the slowest rank, algbw and busbw by nccl-tests' rules",
	.opts = coll_opts,
	.cfg_size = sizeof(struct coll_cfg),
	.combine = FB_COMBINE_MAX,
	.load = "closed",
	.sync = "isolated",
	.definition =
		"time of one operation on the slowest rank, out of place; algbw = size / time; busbw = "
		"algbw x 2(n-1)/n for all_reduce, (n-1)/n for all_gather, reduce_scatter and "
		"alltoall, 1 for broadcast",
	.setup = setup,
	.points = points,
	.metrics = metrics,
	.prepare = prepare,
	.measure = measure,
	.check = check,
	.facts = facts,
	.teardown = teardown,
};
