// SPDX-License-Identifier: Apache-2.0
/*
 * `fabricbench mem`: latency and bandwidth from the CPUs of every NUMA node to the memory of every
 * NUMA node, beside what the kernel and the firmware say of the same pair.
 *
 * Latency is a chase: each load's address is the last one's value, over one random cycle through
 * all cache lines of a buffer larger than the caches. Bandwidth is reading, by as many threads as
 * the node has CPUs that we may use. Huge pages are asked for, so that the tables of pages are not
 * what is measured; where pages came to lie is looked up, never assumed.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/core/bench.h"
#include "bench/core/clock.h"
#include "bench/core/gate.h"
#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/stats.h"
#include "bench/core/sysinfo.h"
#include "bench/core/sysroot.h"
#include "bench/mem/mem.h"
#include "topo/affinity.h"
#include "topo/topo.h"

#define LINE        64  /* bytes; of every CPU this runs on */
#define LOADS       256 /* of one latency sample: a clock read costs as much as some loads */
#define MAX_THREADS 256
#define MIB         (1u << 20)

/* ---- options --------------------------------------------------------------------------------- */

struct mem_cfg {
	uint64_t size, threads;
	bool latency_only, bandwidth_only;
	uint64_t seed; /* the output's */
};

#define AT(member) .offset = offsetof(struct mem_cfg, member)
static const struct fb_opt mem_opts[] = {
	{.letter = 's',
		.name = "size",
		.type = FB_OPT_SIZE,
		AT(size),
		.arg = "BYTES",
		.def = "256M",
		.help = "buffer on each node; several times the last cache"},
	{.name = "threads",
		.type = FB_OPT_U64,
		AT(threads),
		.arg = "N",
		.def = "0",
		.max = MAX_THREADS,
		.help = "threads that read for bandwidth; 0: all CPUs of the node that we may use"},
	{.name = "latency-only", .type = FB_OPT_FLAG, AT(latency_only), .help = "no bandwidth"},
	{.name = "bandwidth-only", .type = FB_OPT_FLAG, AT(bandwidth_only), .help = "no latency"},
	{.name = NULL},
};
#undef AT

/* ---- state ----------------------------------------------------------------------------------- */

/* One reader of a crew. */
struct reader {
	pthread_t thread;
	struct crew *crew;
	const char *from;
	size_t len;
	uint64_t sum; /* so that no load can be left out */
};

/* Threads on one node's CPUs that read a buffer together, pass after pass. */
struct crew {
	const struct topo *topo;
	struct reader *v;
	size_t n;
	int node;
	pthread_mutex_t lock;
	pthread_cond_t change;
	unsigned turn; /* grows with every pass */
	size_t running;
	bool end;
};

struct mem_state {
	const struct mem_cfg *cfg;
	struct fb_run *run;
	struct topo *topo;
	struct fb_sysroot root;
	char *buffer; /* of the present point */
	size_t len;
	void **chase; /* where the present point's chase stands */
	struct crew crew;
	bool crew_runs;
	int cpu_node, memory_node, page_node; /* of the present point; page_node as looked up */
	bool huge;
	struct topo_binding cpus, memory;
};

static const struct topo_numa *node_at(const struct mem_state *st, size_t i)
{
	return &st->topo->numa[i];
}

static bool has_cpus(const struct topo_numa *n)
{
	return n->cpus && *n->cpus;
}

/* ---- the crew -------------------------------------------------------------------------------- */

static uint64_t read_all(const char *p, size_t len)
{
	uint64_t a = 0, b = 0, c = 0, d = 0;
	for (size_t i = 0; i + 32 <= len; i += 32) {
		const uint64_t *w = (const uint64_t *)(const void *)(p + i);
		a += w[0];
		b += w[1];
		c += w[2];
		d += w[3];
	}
	return a + b + c + d;
}

static void *reader_main(void *arg)
{
	struct reader *r = arg;
	struct crew *c = r->crew;
	struct topo_binding bound;
	struct fb_err e = {0};
	unsigned seen = 0;
	/* Where binding is not allowed, that is in the point's validity. */
	(void)!topo_bind_thread_near(c->topo, NULL, c->node, &bound, &e);
	pthread_mutex_lock(&c->lock);
	for (;;) {
		while (c->turn == seen && !c->end)
			pthread_cond_wait(&c->change, &c->lock);
		if (c->end)
			break;
		seen = c->turn;
		pthread_mutex_unlock(&c->lock);
		r->sum += read_all(r->from, r->len);
		pthread_mutex_lock(&c->lock);
		if (--c->running == 0)
			pthread_cond_broadcast(&c->change);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* One pass of all readers. */
static void crew_pass(struct crew *c)
{
	pthread_mutex_lock(&c->lock);
	c->running = c->n;
	c->turn++;
	pthread_cond_broadcast(&c->change);
	while (c->running > 0)
		pthread_cond_wait(&c->change, &c->lock);
	pthread_mutex_unlock(&c->lock);
}

static void crew_end(struct crew *c)
{
	pthread_mutex_lock(&c->lock);
	c->end = true;
	pthread_cond_broadcast(&c->change);
	pthread_mutex_unlock(&c->lock);
	for (size_t i = 0; i < c->n; i++)
		pthread_join(c->v[i].thread, NULL);
	pthread_cond_destroy(&c->change);
	pthread_mutex_destroy(&c->lock);
	free(c->v);
	memset(c, 0, sizeof(*c));
}

static int crew_start(
	struct crew *c, const struct mem_state *st, int node, size_t n, struct fb_err *e)
{
	size_t share = st->len / n / LINE * LINE;
	memset(c, 0, sizeof(*c));
	c->v = calloc(n, sizeof(*c->v));
	if (!c->v)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %zu threads", n);
	c->topo = st->topo;
	c->node = node;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->change, NULL);
	for (; c->n < n; c->n++) {
		struct reader *r = &c->v[c->n];
		*r = (struct reader){.crew = c, .from = st->buffer + c->n * share, .len = share};
		int rc = pthread_create(&r->thread, NULL, reader_main, r);
		if (rc == 0)
			continue;
		fb_fail(e, FB_EXIT_UNMEASURED, rc, "cannot start thread %zu of %zu: %s", c->n + 1,
			n, strerror(rc));
		fb_hint(e, "allow more processes (ulimit -u), or give --threads");
		crew_end(c);
		return -rc;
	}
	return 0;
}

/* ---- setup ----------------------------------------------------------------------------------- */

static int mem_setup(struct fb_run *run, const void *cfg, void **out, struct fb_err *e)
{
	struct mem_state *st = calloc(1, sizeof(*st));
	if (!st)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the benchmark");
	st->cfg = cfg;
	st->run = run;
	*out = st;
	int rc = fb_sysroot_open(&st->root, NULL, e);
	if (rc == 0)
		rc = topo_load(&st->root, &st->topo, e);
	if (rc == 0 && st->topo->n_numa == 0)
		rc = fb_fail(e, FB_EXIT_SKIP, ENODEV, "no NUMA node is visible here");
	if (rc == 0 && st->cfg->size < 2u * MIB)
		rc = fb_fail_usage(e, "--size: at least 2M, or the caches are measured");
	return rc;
}

static void free_buffer(struct mem_state *st)
{
	if (st->crew_runs)
		crew_end(&st->crew);
	st->crew_runs = false;
	if (st->buffer)
		munmap(st->buffer, st->len);
	st->buffer = NULL;
}

static void mem_teardown(void *state)
{
	struct mem_state *st = state;
	free_buffer(st);
	topo_free(st->topo);
	fb_sysroot_close(&st->root);
	free(st);
}

/* ---- points ---------------------------------------------------------------------------------- */

/* user: 0 latency, 1 bandwidth; then the two nodes' indices. */
static int add_point(
	struct mem_state *st, struct fb_point_list *l, bool bandwidth, size_t cpu, size_t mem)
{
	json_t *params = json_object();
	fb_json_set_int(params, "cpu_node", node_at(st, cpu)->os_index);
	fb_json_set_int(params, "memory_node", node_at(st, mem)->os_index);
	fb_json_set_int(params, "buffer_bytes", (int64_t)st->cfg->size);
	struct fb_point *p =
		fb_point_add(l, params, "mem.numa/%s/%d-%d", bandwidth ? "bandwidth" : "latency",
			node_at(st, cpu)->os_index, node_at(st, mem)->os_index);
	if (!p)
		return -ENOMEM;
	/* A pass takes milliseconds: batches stay short, so that a point can be stopped. */
	p->max_batch = bandwidth ? 8 : 4096;
	p->user = (bandwidth ? 1u : 0u) | (uint64_t)cpu << 1 | (uint64_t)mem << 32;
	return 0;
}

static int mem_points(void *state, struct fb_point_list *l, struct fb_err *e)
{
	struct mem_state *st = state;
	int rc = 0;
	for (int kind = 0; kind < 2; kind++)
		for (size_t cpu = 0; cpu < st->topo->n_numa && rc == 0; cpu++)
			for (size_t mem = 0; mem < st->topo->n_numa && rc == 0; mem++) {
				if (!has_cpus(node_at(st, cpu)) || node_at(st, mem)->memory == 0 ||
					(kind ? st->cfg->latency_only : st->cfg->bandwidth_only))
					continue;
				rc = add_point(st, l, kind == 1, cpu, mem);
			}
	if (rc != 0)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the points");
	if (l->n == 0)
		return fb_fail(e, FB_EXIT_SKIP, ENODEV,
			"no node with CPUs, or none with memory, is visible here");
	return 0;
}

static bool is_bandwidth(const struct fb_point *p)
{
	return p->user & 1;
}

static int mem_metrics(void *state, const struct fb_point *p, struct fb_metric *m)
{
	const struct mem_state *st = state;
	if (is_bandwidth(p))
		*m = (struct fb_metric){.name = "memory_bandwidth",
			.unit = "bytes/s",
			.better = "higher",
			.kind = FB_METRIC_RATE,
			.per_unit = (double)st->cfg->size};
	else
		*m = (struct fb_metric){.name = "memory_latency",
			.unit = "ns",
			.better = "lower",
			.kind = FB_METRIC_TIME};
	return 1;
}

/* ---- a point's memory ------------------------------------------------------------------------ */

/* One random cycle through all lines (Sattolo): no prefetcher knows what comes next. */
static int make_chase(struct mem_state *st, struct fb_err *e)
{
	size_t n = st->len / LINE;
	uint32_t *order = malloc(n * sizeof(*order));
	struct fb_rng rng;
	if (!order)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the chase");
	fb_rng_seed(&rng, st->cfg->seed, 1);
	for (size_t i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	for (size_t i = n - 1; i > 0; i--) {
		size_t k = (size_t)(fb_rng_uniform(&rng) * (double)i);
		uint32_t keep = order[i];
		order[i] = order[k];
		order[k] = keep;
	}
	for (size_t i = 0; i < n; i++)
		*(void **)(void *)(st->buffer + (size_t)order[i] * LINE) =
			st->buffer + (size_t)order[(i + 1) % n] * LINE;
	free(order);
	st->chase = (void **)(void *)st->buffer;
	return 0;
}

static int make_buffer(struct mem_state *st, struct fb_err *e)
{
	st->len = st->cfg->size / MIB * MIB;
	int rc = topo_bind_memory(st->topo, st->memory_node, &st->memory, e);
	if (rc != 0)
		return rc;
	void *p = mmap(NULL, st->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) {
		topo_unbind_memory();
		fb_fail(e, FB_EXIT_UNMEASURED, errno, "no %zu bytes on node %d: %s", st->len,
			st->memory_node, strerror(errno));
		fb_hint(e, "give a smaller --size");
		return e->code;
	}
	st->buffer = p;
	st->huge = madvise(p, st->len, MADV_HUGEPAGE) == 0;
	memset(p, 1, st->len);
	topo_unbind_memory();
	st->page_node = topo_node_of_page(st->buffer + st->len / 2);
	return 0;
}

static size_t threads_for(const struct mem_state *st)
{
	char text[1024];
	size_t n = 0;
	if (st->cfg->threads)
		return (size_t)st->cfg->threads;
	topo_current_cpus(text, sizeof(text));
	/* "0-3,8" */
	for (const char *s = text; *s;) {
		char *end;
		unsigned long a = strtoul(s, &end, 10), b = a;
		if (*end == '-')
			b = strtoul(end + 1, &end, 10);
		n += b >= a ? b - a + 1 : 0;
		s = *end == ',' ? end + 1 : end + strlen(end);
	}
	return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : n;
}

static int mem_prepare(void *state, const struct fb_point *p, struct fb_err *e)
{
	struct mem_state *st = state;
	free_buffer(st);
	st->cpu_node = node_at(st, p->user >> 1 & 0x7fffffff)->os_index;
	st->memory_node = node_at(st, p->user >> 32)->os_index;
	int rc = topo_bind_thread_near(st->topo, NULL, st->cpu_node, &st->cpus, e);
	if (rc == 0)
		rc = make_buffer(st, e);
	if (rc == 0 && !is_bandwidth(p))
		rc = make_chase(st, e);
	if (rc == 0 && is_bandwidth(p)) {
		rc = crew_start(&st->crew, st, st->cpu_node, threads_for(st), e);
		st->crew_runs = rc == 0;
	}
	return rc;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static void chase(struct mem_state *st, uint64_t iters, struct fb_sink *s)
{
	void **p = st->chase;
	for (uint64_t i = 0; i < iters; i++) {
		uint64_t t0 = fb_clock_ns();
		for (int k = 0; k < LOADS; k++)
			p = *p;
		/* The last load must have come before the clock is read. */
		__asm__ volatile("" : "+r"(p) : : "memory");
		s->ns[i] = (fb_clock_ns() - t0 + LOADS / 2) / LOADS;
	}
	st->chase = p;
}

static void read_together(struct mem_state *st, uint64_t iters, struct fb_sink *s)
{
	uint64_t begin = fb_clock_ns(), last = begin;
	for (uint64_t i = 0; i < iters; i++) {
		crew_pass(&st->crew);
		uint64_t now = fb_clock_ns();
		s->ns[i] = now - last;
		last = now;
	}
	s->elapsed_ns = last - begin;
	/* What the threads leave over at the buffer's end is not read. */
	size_t share = st->len / st->crew.n / LINE * LINE;
	s->work = (double)iters * (double)(share * st->crew.n) / (double)st->cfg->size;
}

static int mem_measure(
	void *state, const struct fb_point *p, uint64_t iters, struct fb_sink *s, struct fb_err *e)
{
	struct mem_state *st = state;
	(void)e;
	if (is_bandwidth(p))
		read_together(st, iters, s);
	else
		chase(st, iters, s);
	s->n = iters;
	return 0;
}

static int mem_check(void *state, const struct fb_point *p, struct fb_validity *v, struct fb_err *e)
{
	struct mem_state *st = state;
	(void)p;
	(void)e;
	if (st->page_node != TOPO_UNKNOWN && st->page_node != st->memory_node)
		fb_validity_add(v, FB_INVALID, "the pages lie on node %d, not on node %d",
			st->page_node, st->memory_node);
	if (st->topo->n_numa > 1 && !st->cpus.bound)
		fb_validity_add(v, FB_SUSPECT, "the threads are not bound: %s", st->cpus.why);
	if (st->topo->n_numa > 1 && st->page_node == TOPO_UNKNOWN)
		fb_validity_add(
			v, FB_SUSPECT, "the kernel does not say on which node the pages lie");
	return 0;
}

/* What the kernel and the firmware say of the same pair. */
static json_t *mem_facts(void *state, const struct fb_point *p)
{
	const struct mem_state *st = state;
	const struct topo *t = st->topo;
	size_t cpu = p->user >> 1 & 0x7fffffff, mem = p->user >> 32, at = cpu * t->n_numa + mem;
	json_t *o = json_object();
	fb_json_set_str(o, "cpus", st->cpus.cpus);
	fb_json_set_bool(o, "huge_pages_asked", st->huge);
	if (st->crew_runs)
		fb_json_set_int(o, "threads", (int64_t)st->crew.n);
	if (st->page_node != TOPO_UNKNOWN)
		fb_json_set_int(o, "pages_on_node", st->page_node);
	if (t->distance)
		fb_json_set_int(o, "kernel_distance", t->distance[at]);
	if (t->latency_ns && isfinite(t->latency_ns[at]))
		json_object_set_new(o, "firmware_latency_ns", fb_json_real(t->latency_ns[at]));
	if (t->bandwidth && isfinite(t->bandwidth[at]))
		json_object_set_new(o, "firmware_bandwidth", fb_json_real(t->bandwidth[at]));
	return o;
}

static const struct fb_bench mem_bench = {
	.abi = FB_BENCH_ABI,
	.name = "mem.numa",
	.summary = "latency and bandwidth from each NUMA node's CPUs to each node's memory",
	.opts = mem_opts,
	.cfg_size = sizeof(struct mem_cfg),
	.combine = FB_COMBINE_OWNER,
	.load = "closed",
	.sync = "none",
	.definition =
		"latency: a load that waits for the last one, mean of 256; bandwidth: reading, "
		"all threads together",
	.setup = mem_setup,
	.points = mem_points,
	.metrics = mem_metrics,
	.prepare = mem_prepare,
	.measure = mem_measure,
	.check = mem_check,
	.facts = mem_facts,
	.teardown = mem_teardown,
};

/* ---- the command ----------------------------------------------------------------------------- */

struct mem_command {
	struct mem_cfg mem;
	struct fb_runctl_cfg runctl;
	struct fb_output_cfg output;
};

static const struct fb_opt_spec mem_spec = {
	.command = "mem",
	.usage = "[options]",
	.summary = "Memory latency and bandwidth between the NUMA nodes of this machine, measured.",
	.notes =
		"One row for each pair of a node with CPUs and a node with memory, beside the kernel's\n"
		"distance and what the firmware (HMAT) tells. One node: one row.",
	.sets = {{.title = "Memory", .opts = mem_opts},
		{.title = "Run control", .opts = fb_runctl_opts},
		{.title = "Output", .opts = fb_output_opts}},
};

static int mem_run(int argc, char **argv)
{
	struct mem_command c = {0};
	struct fb_opt_spec spec = mem_spec;
	struct fb_err e = {0};
	spec.sets[0].cfg = &c.mem;
	spec.sets[1].cfg = &c.runctl;
	spec.sets[2].cfg = &c.output;
	int rc = fb_opt_parse(&spec, argc, argv, &e);
	if (rc != 0)
		return rc > 0 ? FB_EXIT_OK : fb_cmd_fail(&e);
	c.mem.seed = c.output.seed;
	int status = FB_EXIT_OK;
	struct fb_doc *doc = fb_runctl_fit(&c.runctl, &e) == 0
				     ? fb_doc_new("mem", argc, argv, &c.output, &e)
				     : NULL;
	if (!doc) {
		status = fb_cmd_fail(&e);
		goto free_options;
	}
	fb_doc_set_config(doc, fb_opt_to_json(&spec, true), fb_opt_to_json(&spec, false));
	rc = fb_run_bench(doc, &mem_bench, &c.mem, &c.runctl, NULL, fb_where("cpu"), &e);
	if (rc < 0) {
		status = fb_cmd_fail(&e);
		fb_doc_error(doc, &e);
	}
	status = fb_doc_finish(doc, status);
	fb_doc_free(doc);
free_options:
	fb_opt_free(&spec);
	return status;
}

static const struct fb_opt_spec *get_spec(void)
{
	return &mem_spec;
}

const struct fb_cmd mem_cmd = {
	.name = "mem",
	.summary = "memory latency and bandwidth between NUMA nodes, measured",
	.run = mem_run,
	.spec = get_spec,
};
