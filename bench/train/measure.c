// SPDX-License-Identifier: Apache-2.0
/* The steps of a run, summed up: see measure.h. */
#include "bench/train/measure.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEVEL 0.95

const char *const measure_item_names[] = {"step", "compute", "all_gather", "reduce_scatter",
	"all_reduce", "norm", "optimizer", "storage", "idle", NULL};
const char *const measure_bytes_names[] = {
	"all_gather", "reduce_scatter", "all_reduce", "norm", "offload_out", "offload_in", NULL};
const char *const measure_memory_names[] = {"params", "gathered", "master", "optimizer", "grads",
	"grad_units", "wire", "activations", "scratch", "total", "host", NULL};

double measure_of(const struct step_stats *s, enum measure_item i)
{
	const uint64_t *x = s->exposed_ns;
	switch (i) {
	case MEASURE_STEP: return (double)s->step_ns;
	case MEASURE_COMPUTE: return (double)s->compute_ns;
	case MEASURE_ALL_GATHER: return (double)(x[SCHED_GATHER] + x[SCHED_PARAM_GATHER]);
	case MEASURE_REDUCE_SCATTER: return (double)x[SCHED_REDUCE_SCATTER];
	case MEASURE_ALL_REDUCE: return (double)x[SCHED_ALL_REDUCE];
	case MEASURE_NORM: return (double)x[SCHED_NORM_REDUCE];
	case MEASURE_OPTIMIZER: return (double)s->optimizer_ns;
	case MEASURE_STORAGE: return (double)s->storage_ns;
	case MEASURE_IDLE: return (double)s->idle_ns;
	case MEASURE_ITEMS: break;
	}
	return NAN;
}

double measure_bytes_counted(const struct step_stats *s, enum measure_bytes k)
{
	const uint64_t *b = s->bytes;
	switch (k) {
	case BYTES_ALL_GATHER: return (double)(b[SCHED_GATHER] + b[SCHED_PARAM_GATHER]);
	case BYTES_REDUCE_SCATTER: return (double)b[SCHED_REDUCE_SCATTER];
	case BYTES_ALL_REDUCE: return (double)b[SCHED_ALL_REDUCE];
	case BYTES_NORM: return (double)b[SCHED_NORM_REDUCE];
	case BYTES_OFFLOAD_OUT: return (double)(b[SCHED_GRADS_OUT] + b[SCHED_STATE_OUT]);
	case BYTES_OFFLOAD_IN: return (double)(b[SCHED_STATE_IN] + b[SCHED_PARAMS_IN]);
	case BYTES_KINDS: break;
	}
	return NAN;
}

double measure_bytes_formula(const struct step_bytes *b, enum measure_bytes k)
{
	const double v[BYTES_KINDS] = {b->all_gather, b->reduce_scatter, b->all_reduce, b->norm,
		b->offload_out, b->offload_in};
	return v[k];
}

double measure_memory_of(const struct step_memory *m, int kind)
{
	const double v[MEASURE_MEMORY_KINDS] = {m->params, m->gathered, m->master, m->optimizer,
		m->grads, m->grad_units, m->wire, m->activations, m->scratch, m->total, m->host};
	return v[kind];
}

/* ---- one rank -------------------------------------------------------------------------------- */

int measure_open(struct measure *m, int steps, int warmup, int tasks, struct fb_err *e)
{
	*m = (struct measure){.cap = steps, .warmup = warmup, .tasks = tasks};
	m->v = calloc((size_t)steps, sizeof(*m->v));
	m->task = calloc((size_t)tasks * MEASURE_RING + 1, sizeof(*m->task));
	if (m->v && m->task)
		return 0;
	measure_close(m);
	return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the times of %d steps", steps);
}

void measure_close(struct measure *m)
{
	free(m->v);
	free(m->task);
	memset(m, 0, sizeof(*m));
}

void measure_add(struct measure *m, const struct step_stats *s, const struct task_time *times)
{
	if (m->n >= m->cap)
		return;
	m->v[m->n++] = *s;
	if (m->n <= m->warmup)
		return;
	for (int i = 0; i < m->tasks; i++)
		m->task[(size_t)i * MEASURE_RING + (size_t)(m->ring % MEASURE_RING)] =
			(double)(times[i].end - times[i].start);
	m->ring++;
}

struct fb_ci measure_ci(const struct measure *m, enum measure_item i)
{
	struct fb_ci none = {.est = NAN, .lo = NAN, .hi = NAN, .level = LEVEL};
	int n = m->n - m->warmup;
	double *v = n > 0 ? malloc((size_t)n * sizeof(*v)) : NULL;
	if (!v)
		return none;
	for (int k = 0; k < n; k++)
		v[k] = measure_of(&m->v[m->warmup + k], i);
	fb_sort(v, (size_t)n);
	struct fb_ci ci = fb_median_ci_sorted(v, (size_t)n, LEVEL);
	free(v);
	return ci;
}

void measure_tasks(const struct measure *m, double *out)
{
	int n = m->ring < MEASURE_RING ? m->ring : MEASURE_RING;
	for (int i = 0; i < m->tasks; i++) {
		double v[MEASURE_RING];
		memcpy(v, m->task + (size_t)i * MEASURE_RING, sizeof(v));
		fb_sort(v, (size_t)n);
		out[i] = n > 0 ? fb_median_sorted(v, (size_t)n) : NAN;
	}
}

void measure_facts(const struct measure *m, struct rank_facts *f)
{
	for (int i = 0; i < MEASURE_ITEMS; i++)
		f->item[i] = measure_ci(m, (enum measure_item)i);
	f->steady = m->n > m->warmup;
	f->compute_ns = 0;
	for (int k = m->warmup; k < m->n; k++) {
		const struct step_stats *s = &m->v[k];
		for (int b = 0; b < BYTES_KINDS; b++) {
			double now = measure_bytes_counted(s, (enum measure_bytes)b);
			if (k > m->warmup && now != f->bytes[b])
				f->steady = false;
			f->bytes[b] = now;
		}
		f->compute_ns += measure_of(s, MEASURE_COMPUTE) / (m->n - m->warmup);
		f->node_bytes = (double)s->node_bytes;
		f->rack_bytes = (double)s->rack_bytes;
		f->far_bytes = (double)s->far_bytes;
		f->tokens = (double)s->tokens;
	}
}

/* ---- all ranks ------------------------------------------------------------------------------- */

struct measure_over measure_over(const struct rank_facts *f, int ranks, enum measure_item i)
{
	struct measure_over o = {.worst = f[0].item[i]};
	for (int r = 0; r < ranks; r++) {
		o.mean += f[r].item[i].est / ranks;
		if (f[r].item[i].est > o.worst.est) {
			o.worst = f[r].item[i];
			o.rank = r;
		}
	}
	return o;
}
