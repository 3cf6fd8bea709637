// SPDX-License-Identifier: Apache-2.0
/*
 * The plan for people: one table each for bytes, memory, what fits, how many ranks that takes, and
 * the tokens that hide the network. Units stand in headings and are chosen by a table's largest
 * figure.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/units.h"
#include "bench/train/train_plan_priv.h"

#define GIB 1073741824.0

struct unit {
	const char *name;
	double size;
};

static struct unit unit_for(double most)
{
	static const struct unit units[] = {{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}};
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (most >= 10 * units[i].size)
			return units[i];
	return (struct unit){"B", 1};
}

/* "8,030,261,248" */
static const char *grouped(int64_t v, char *buf, size_t len)
{
	char digits[32];
	int n = snprintf(digits, sizeof(digits), "%lld", (long long)v);
	size_t at = 0;
	for (int i = 0; i < n && at + 2 < len; i++) {
		if (i > 0 && (n - i) % 3 == 0)
			buf[at++] = ',';
		buf[at++] = digits[i];
	}
	buf[at] = '\0';
	return buf;
}

/* One row of figures in columns of that width: three digits, a dash for none. */
static void figures(FILE *out, const char *name, const double *v, size_t n, int width, double unit)
{
	fprintf(out, "  %-13s", name);
	for (size_t i = 0; i < n; i++) {
		double x = v[i] / unit;
		if (v[i] == 0)
			fprintf(out, " %*s", width, "-");
		else
			fprintf(out, " %*.*f", width, x >= 100 ? 0 : x >= 10 ? 1 : 2, x);
	}
	fprintf(out, "\n");
}

static void heads(FILE *out, const char *const *names, size_t n, int width)
{
	fprintf(out, "  %-13s", "strategy");
	for (size_t i = 0; i < n; i++)
		fprintf(out, " %*s", width, names[i]);
	fprintf(out, "\n");
}

static const char *row_name(const struct plan_row *r)
{
	return r->c.strategy.kind == STRATEGY_ZERO3 ? "zero3 = fsdp" : r->c.strategy.name;
}

/* ---- what is planned ------------------------------------------------------------------------- */

static void print_model(const struct model *m, FILE *out)
{
	struct model_unit block, root;
	char n[4][40];
	model_unit(m, 0, &block);
	model_unit(m, m->layers, &root);
	fprintf(out,
		"model %s: %s, %lld layers, hidden %lld, %lld heads of %lld (%lld key-value), ffn "
		"%lld, vocabulary %lld%s\n",
		m->name, model_family_names[m->family], (long long)m->layers, (long long)m->hidden,
		(long long)m->heads, (long long)m->head_dim, (long long)m->kv_heads,
		(long long)m->ffn, (long long)m->vocab, m->tied ? ", head tied to embedding" : "");
	fprintf(out, "parameters %s; in products %s; a block %s, the root %s\n",
		grouped(model_params(m), n[0], sizeof(n[0])),
		grouped(model_matmul_params(m), n[1], sizeof(n[1])),
		grouped(block.elements, n[2], sizeof(n[2])),
		grouped(root.elements, n[3], sizeof(n[3])));
}

static void print_config(const struct plan *p, FILE *out)
{
	const struct step_config *c = p->base;
	char n[2][40];
	int64_t tokens = c->micro_seqs * c->seq;
	fprintf(out,
		"%d ranks, %d a node; micro-batch %lld x %lld = %s tokens, %d a step, %s tokens a "
		"step\n",
		c->ranks, p->ranks_per_node, (long long)c->micro_seqs, (long long)c->seq,
		grouped(tokens, n[0], sizeof(n[0])), c->micro_batches,
		grouped(tokens * c->micro_batches * c->ranks, n[1], sizeof(n[1])));
	fprintf(out,
		"%s work, %s master, momentum and variance, gradients kept in %s and reduced in "
		"%s%s; recomputation %s\n",
		tr_dtype_names[c->work], tr_dtype_names[tr_grad_dtype(c->work)],
		tr_dtype_names[step_sum_dtype(c)], tr_dtype_names[c->reduce],
		c->micro_batches == 1 ? ""
		: c->sync_each        ? " after each micro-batch"
				      : " after the last micro-batch",
		tr_recompute_names[c->recompute]);
	fprintf(out, "GFLOP per trained token:");
	for (int i = 0; i < MFU_CONVENTION_COUNT; i++)
		fprintf(out, "%s %s %#.4g", i ? "," : "", mfu_convention_names[i],
			model_flops_per_token(&c->model, c->seq, (enum mfu_convention)i) / 1e9);
	fprintf(out, " (forward and backward)\n");
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void print_bytes(const struct plan *p, FILE *out)
{
	static const char *const names[] = {"all-gather", "red.-scat.", "all-reduce", "sent",
		"offl. out", "offl. in", "node out"};
	const size_t n = sizeof(names) / sizeof(names[0]);
	double most = 0;
	for (int i = 0; i < p->rows; i++)
		most = fmax(most, plan_sent(&p->row[i].bytes));
	struct unit u = unit_for(most);
	fprintf(out, "\nBytes a rank sends in a step, and all that leaves a node, in %s\n", u.name);
	heads(out, names, n, 10);
	for (int i = 0; i < p->rows; i++) {
		const struct plan_row *r = &p->row[i];
		const struct step_bytes *b = &r->bytes;
		const double v[] = {b->all_gather, b->reduce_scatter, b->all_reduce, plan_sent(b),
			b->offload_out, b->offload_in, r->node_bytes};
		figures(out, row_name(r), v, n, 10, u.size);
	}
}

static void print_memory(const struct plan *p, FILE *out)
{
	static const char *const names[] = {"params", "gathered", "master", "optim.", "grads",
		"g. units", "wire", "acts", "scratch", "total", "host"};
	const size_t n = sizeof(names) / sizeof(names[0]);
	double most = 0;
	for (int i = 0; i < p->rows; i++)
		most = fmax(most, p->row[i].memory.total);
	struct unit u = unit_for(most);
	fprintf(out,
		"\nMemory of a rank, in %s (g. units: whole gradients under way; host: beside the "
		"total)\n",
		u.name);
	heads(out, names, n, 8);
	for (int i = 0; i < p->rows; i++) {
		const struct step_memory *m = &p->row[i].memory;
		const double v[] = {m->params, m->gathered, m->master, m->optimizer, m->grads,
			m->grad_units, m->wire, m->activations, m->scratch, m->total, m->host};
		figures(out, row_name(&p->row[i]), v, n, 8, u.size);
	}
}

/* GPUs of one memory size are one column. */
static bool first_of_size(const struct plan *p, int i)
{
	return i == 0 || p->gpu[i]->capacity != p->gpu[i - 1]->capacity;
}

static void gpu_heads(const struct plan *p, FILE *out)
{
	fprintf(out, "  %-13s", "strategy");
	for (int i = 0; i < p->gpus; i++)
		if (first_of_size(p, i))
			fprintf(out, " %6.0fGB", p->gpu[i]->capacity / GIB);
	fprintf(out, "\n");
}

static void print_sizes(const struct plan *p, FILE *out)
{
	int column = fprintf(out, "  GPUs:");
	for (int i = 0; i < p->gpus; i++) {
		if (column + (int)strlen(p->gpu[i]->label) > 98)
			column = fprintf(out, "\n       ") - 1;
		column += fprintf(out, " %s%s", p->gpu[i]->label, i + 1 < p->gpus ? "," : "\n");
	}
}

static void print_fits(const struct plan *p, FILE *out)
{
	fprintf(out,
		"\nWhat fits on %d ranks: yes; recomp: with --recompute full; no. A fit leaves "
		"%.0f GB of the GPU's memory\n"
		"(a data sheet's GB are 2^30 bytes) for its context, communication buffers and "
		"fragmentation.\n",
		p->base->ranks, TRAIN_PLAN_RESERVE / 1e9);
	gpu_heads(p, out);
	for (int k = 0; k < p->rows; k++) {
		const struct plan_row *r = &p->row[k];
		fprintf(out, "  %-13s", row_name(r));
		for (int i = 0; i < p->gpus; i++)
			if (first_of_size(p, i))
				fprintf(out, " %8s",
					r->memory.total <= plan_room(p->gpu[i]) ? "yes"
					: r->full <= plan_room(p->gpu[i])       ? "recomp"
										: "no");
		fprintf(out, "\n");
	}
	print_sizes(p, out);
}

/* "16", "2048/32": fewer with full recomputation; "-/32", "-": none. */
static const char *ranks_cell(int ranks, int full, char *buf, size_t len)
{
	char n[16] = "-";
	if (ranks > 0)
		snprintf(n, sizeof(n), "%d", ranks);
	if (full != ranks)
		snprintf(buf, len, "%s/%d", n, full);
	else
		snprintf(buf, len, "%s", n);
	return buf;
}

static void print_ranks(const struct plan *p, FILE *out)
{
	bool hybrid = false;
	char cell[40];
	fprintf(out,
		"\nRanks from which on it fits, powers of two (hybrid: ranks of a group; /: with "
		"--recompute full;\n-: none up to %d)\n",
		PLAN_MAX_RANKS);
	gpu_heads(p, out);
	for (int k = 0; k < p->rows; k++) {
		const struct plan_row *r = &p->row[k];
		bool h = r->c.strategy.kind == STRATEGY_HYBRID;
		if (h && hybrid)
			continue; /* groups of any size have one answer */
		hybrid = hybrid || h;
		fprintf(out, "  %-13s", h ? "hybrid:F" : row_name(r));
		for (int i = 0; i < p->gpus; i++)
			if (first_of_size(p, i))
				fprintf(out, " %8s",
					ranks_cell(r->smallest[i], r->smallest_full[i], cell,
						sizeof(cell)));
		fprintf(out, "\n");
	}
}

static void print_t_star(const struct plan *p, FILE *out)
{
	const struct gpu_peak *g = gpu_peak_of(PLAN_GPU);
	double peak = plan_peak(g, p->base->work), most = 0;
	int64_t tokens = p->base->micro_seqs * p->base->seq;
	for (int k = 0; k < p->rows; k++)
		most = fmax(most, p->row[k].node_bytes);
	if (isnan(peak))
		return;
	if (most == 0) {
		fprintf(out, "\nT*: %d ranks are one node, and nothing leaves it.\n",
			p->base->ranks);
		return;
	}
	fprintf(out,
		"\nT*: tokens of a micro-batch from which on sending can hide behind computing, by "
		"network rate of each rank.\n"
		"For an %s at %.0f %% of its %.4g TFLOP/s (others in proportion) and many nodes; "
		"this plan has %lld tokens.\n",
		g->label, 100 * p->share, peak / 1e12, (long long)tokens);
	fprintf(out, "  %-13s", "strategy");
	for (int n = 0; n < PLAN_NICS; n++)
		fprintf(out, " %4.0f Gb/s", plan_nic_bits[n] / 1e9);
	fprintf(out, "\n");
	for (int k = 0; k < p->rows; k++) {
		const struct plan_row *r = &p->row[k];
		fprintf(out, "  %-13s", row_name(r));
		for (int n = 0; n < PLAN_NICS; n++)
			fprintf(out, " %9.0f",
				ceil(train_plan_t_star(&r->c, p->ranks_per_node, p->share, peak,
					plan_nic_bits[n] / 8)));
		fprintf(out, "\n");
	}
}

int train_plan_print(const struct step_config *base, const struct train_plan_opts *o, FILE *out,
	struct fb_err *e)
{
	struct plan *p = calloc(1, sizeof(*p));
	if (!p)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a plan");
	int rc = plan_make(base, o, p, e);
	if (rc == 0) {
		print_model(&base->model, out);
		print_config(p, out);
		print_bytes(p, out);
		print_memory(p, out);
		print_fits(p, out);
		print_ranks(p, out);
		print_t_star(p, out);
	}
	free(p);
	return rc;
}
