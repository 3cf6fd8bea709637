// SPDX-License-Identifier: Apache-2.0
/*
 * The options of `fabricbench train`: their table, and the small languages of some of them (links,
 * injections, FLOP/s, racks). Nothing here knows what a run does with them.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/units.h"
#include "bench/train/train.h"

static const char *const dtype_words[] = {"auto", "fp32", "bf16", "fp64", NULL};
static const char *const reduce_words[] = {"fp32", "bf16", NULL};
static const char *const switch_words[] = {"off", "on", NULL};
static const char *const backend_words[] = {"cpu", "reference", NULL};
const char *const train_inject_names[] = {
	"all_gather", "reduce_scatter", "all_reduce", "rank", "gemm", "optimizer", "storage", NULL};

#define OPT(n, t, field) .name = n, .type = t, .offset = offsetof(struct train_opts, field)
const struct fb_opt train_opts[] = {
	{OPT("model", FB_OPT_STRING, model), .arg = "NAME|FILE", .def = "tiny",
		.help = "tiny, gpt2-124m, llama3-1b, llama3-8b, llama3-70b, llama3-405b, or a "
			"model file (.ini)"},
	{OPT("strategy", FB_OPT_STRING, strategy), .arg = "S", .def = "fsdp",
		.help = "ddp, zero1, zero2, zero3 (fsdp), shard-grad-op, hybrid:F or offload"},
	{OPT("plan", FB_OPT_FLAG, plan),
		.help = "run nothing: print bytes, memory and FLOPs of each step, and what fits"},
	{OPT("steps", FB_OPT_INT, steps), .arg = "N", .def = "20", .min = 1, .max = 10000000,
		.help = "training steps, those of --warmup included"},
	{.letter = 'w',
		OPT("warmup", FB_OPT_INT, warmup),
		.arg = "N",
		.def = "-1",
		.min = -1,
		.max = 10000000,
		.help = "steps that are trained but not timed; -1: 2, or a quarter of --steps where "
			"that is less"},
	{OPT("seq", FB_OPT_U64, seq), .arg = "TOKENS", .def = "0", .max = 1 << 24,
		.help = "tokens of a sequence; 0: as many as the model has positions, at most 128"},
	{OPT("micro-batch", FB_OPT_U64, micro_batch), .arg = "N", .def = "0", .max = 1 << 24,
		.help = "sequences of one micro-batch on one rank; 0: from --global-batch, else 4"},
	{OPT("global-batch", FB_OPT_U64, global_batch), .arg = "N", .def = "0", .max = 1 << 30,
		.help = "sequences of a step over all ranks; 0: ranks * micro-batch * accumulate"},
	{OPT("accumulate", FB_OPT_INT, accumulate), .arg = "N", .def = "0", .max = 1 << 20,
		.help = "micro-batches of a step; 0: from --global-batch, else 1"},
	{OPT("sync-each", FB_OPT_FLAG, sync_each),
		.help = "reduce gradients after each micro-batch, not after the last"},
	{OPT("dtype", FB_OPT_ENUM, dtype), .arg = "TYPE", .def = "auto", .names = dtype_words,
		.help = "parameters and activations: fp32, bf16 or fp64; auto: fp32, and fp64 with "
			"--backend reference"},
	{OPT("reduce-dtype", FB_OPT_ENUM, reduce), .arg = "TYPE", .def = "fp32",
		.names = reduce_words, .help = "gradients on the wire: fp32 or bf16"},
	{OPT("recompute", FB_OPT_ENUM, recompute), .arg = "WHAT", .def = "none",
		.names = tr_recompute_names,
		.help = "activations computed again in backward: none, selective or full"},
	{OPT("clip", FB_OPT_DOUBLE, clip), .arg = "NORM", .def = "0", .min = 0, .max = 1000000000,
		.help = "clip the gradient's norm to this; 0: not"},
	{OPT("overlap", FB_OPT_ENUM, overlap), .arg = "on|off", .def = "on", .names = switch_words,
		.help = "communicate while computing; off: wait for each collective at once"},
	{OPT("deterministic", FB_OPT_FLAG, deterministic),
		.help = "the same bits for every strategy, rank count and accumulation: slow, fp32, "
			"small models"},
	{OPT("batches", FB_OPT_U64, batches), .arg = "N", .def = "1", .min = 1, .max = 1 << 30,
		.help = "distinct batches, repeated in turn; 1: the same batch in every step"},
	{OPT("tokens", FB_OPT_STRING, tokens), .arg = "FILE",
		.help = "train on this file of uint16 or uint32 tokens, not on synthetic ones"},
	{OPT("lr", FB_OPT_DOUBLE, lr), .arg = "RATE", .def = "0.001", .min = 0, .max = 1000,
		.help = "learning rate of AdamW"},
	{OPT("beta1", FB_OPT_DOUBLE, beta1), .arg = "X", .def = "0.9", .min = 0, .max = 1,
		.help = "decay of AdamW's momentum"},
	{OPT("beta2", FB_OPT_DOUBLE, beta2), .arg = "X", .def = "0.95", .min = 0, .max = 1,
		.help = "decay of AdamW's variance"},
	{OPT("eps", FB_OPT_DOUBLE, eps), .arg = "X", .def = "1e-8", .min = 0, .max = 1,
		.help = "AdamW's epsilon"},
	{OPT("weight-decay", FB_OPT_DOUBLE, decay), .arg = "X", .def = "0.1", .min = 0, .max = 1000,
		.help = "AdamW's decoupled weight decay, matrices only"},
	{OPT("offload-to", FB_OPT_STRING, offload_to), .arg = "host|DIR",
		.help = "offload: the optimizer's state in host memory, or in a file in this folder"},
	{OPT("offload-params", FB_OPT_FLAG, offload_params), .help = "offload: parameters too"},
	{OPT("backend", FB_OPT_ENUM, backend), .arg = "NAME", .def = "cpu", .names = backend_words,
		.help = "cpu, or reference: plain C in fp64, which everything else is held against"},
	{OPT("link", FB_OPT_STRING, link), .arg = "LATENCY,RATE",
		.help = "threads only: the link out of each rank, as 5us,1GB/s; without it messages "
			"go at memory's speed"},
	{OPT("inject", FB_OPT_LIST, inject), .arg = "KIND:+LATENCY|xBANDWIDTH",
		.help = "slow one kind: all_gather, reduce_scatter, all_reduce, rank:N, gemm, "
			"optimizer or storage, as all_gather:+5ms or gemm:x0.5"},
	{OPT("ranks-per-node", FB_OPT_INT, ranks_per_node), .arg = "N", .def = "0", .max = 1 << 20,
		.help = "count bytes by tier with this many consecutive ranks on a node; 0: one node"},
	{OPT("rack-map", FB_OPT_STRING, rack_map), .arg = "FILE",
		.help = "the rack of each node, one name a line in the nodes' order"},
	{OPT("peak", FB_OPT_STRING, peak), .arg = "FLOPS",
		.help = "dense data-sheet peak of one rank's device in this type, as 989.4T: MFU's "
			"denominator; known by itself of some GPUs"},
	{OPT("timeline", FB_OPT_STRING, timeline), .arg = "FILE",
		.help = "write the last step of every rank as a Chrome trace (chrome://tracing, "
			"Perfetto)"},
	{OPT("step-timeout", FB_OPT_DURATION, step_timeout_ns), .arg = "TIME", .def = "60s",
		.min = 1000000, .max = INT64_MAX,
		.help = "a step that lasts longer is given up, and what it waited for is named"},
	{OPT("pin", FB_OPT_FLAG, pin), .def = "yes", .help = "keep each rank on a CPU of its own"},
	{OPT("label", FB_OPT_LIST, label), .arg = "KEY=VALUE",
		.help = "what is known of this run and cannot be seen from here, as loss=0.1 or "
			"cable=copper: stands in its results' params, a number in their case too"},
	{OPT("fail-rank", FB_OPT_STRING, fail_rank), .arg = "N:STEP", .hidden = true,
		.help = "that rank ends in that step as if it had died"},
	{.name = NULL},
};

/* ---- numbers --------------------------------------------------------------------------------- */

/* A plain decimal number at the start of text: no sign, blank, hexadecimal, inf or nan. */
static bool number(const char *text, double *v, const char **end)
{
	char *stop;
	if (!isdigit((unsigned char)text[0]) && text[0] != '.')
		return false;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return false;
	errno = 0;
	*v = strtod(text, &stop);
	*end = stop;
	return stop != text && errno == 0;
}

int train_flops_parse(const char *text, double *flops, struct fb_err *e)
{
	static const struct {
		const char *word;
		double times;
	} units[] = {{"", 1}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}};
	const char *rest;
	double v = 0, times = 0;
	if (number(text, &v, &rest)) {
		for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
			size_t n = strlen(units[i].word);
			const char *tail = rest + n;
			if (strncmp(rest, units[i].word, n) == 0 &&
				(*tail == '\0' || strcmp(tail, "FLOP/s") == 0 ||
					strcmp(tail, "FLOPS") == 0))
				times = units[i].times;
		}
	}
	if (times == 0 || v * times < 1e6 || v * times > 1e18) {
		fb_fail_usage(e, "--peak %.40s: that is no rate of one device in FLOP/s", text);
		fb_hint(e, "write it as 989.4T, 67e12 or 312TFLOP/s, dense and of the type in "
			   "--dtype");
		return -EINVAL;
	}
	*flops = v * times;
	return 0;
}

int train_link_parse(const char *text, struct p2p_link *l, struct fb_err *e)
{
	char latency[32];
	struct fb_err why = {0};
	const char *comma = strchr(text, ',');
	memset(l, 0, sizeof(*l));
	if (!comma || (size_t)(comma - text) >= sizeof(latency)) {
		fb_fail_usage(e, "--link %.60s: it is LATENCY,RATE", text);
		fb_hint(e, "for example --link 5us,1GB/s");
		return -EINVAL;
	}
	memcpy(latency, text, (size_t)(comma - text));
	latency[comma - text] = '\0';
	int rc = fb_parse_duration(latency, &l->latency_ns, &why);
	if (rc == 0)
		rc = fb_parse_rate(comma + 1, &l->rate, &why);
	if (rc == 0 && !(l->rate >= 1000))
		rc = fb_fail_usage(&why, "a rate below 1 kB/s ends no step in time");
	if (rc == 0 && l->latency_ns > 10000000000u)
		rc = fb_fail_usage(&why, "a latency over 10 s ends no step in time");
	if (rc != 0) {
		fb_fail_usage(e, "--link %.60s: %s", text, why.msg);
		fb_hint(e, "for example --link 5us,1GB/s");
	}
	return rc;
}

/* ---- --inject -------------------------------------------------------------------------------- */

static int inject_bad(struct fb_err *e, const char *text, const char *why)
{
	fb_fail_usage(e, "--inject %.60s: %s", text, why);
	fb_hint(e, "it is KIND:+LATENCY or KIND:xBANDWIDTH, KIND one of all_gather, "
		   "reduce_scatter, all_reduce, rank:N, gemm, optimizer, storage; for example "
		   "all_gather:+5ms or gemm:x0.5");
	return -EINVAL;
}

static int inject_unknown(const char *kind, const char *whole, struct fb_err *e)
{
	char why[80];
	const char *best = train_inject_names[0];
	for (int i = 1; i < INJECT_KIND_COUNT; i++)
		if (fb_edit_distance(kind, train_inject_names[i]) < fb_edit_distance(kind, best))
			best = train_inject_names[i];
	snprintf(why, sizeof(why), "there is no such kind; the nearest is %s%s", best,
		strcmp(best, train_inject_names[INJECT_RANK]) == 0 ? ":N" : "");
	return inject_bad(e, whole, why);
}

/* The kind that the text up to `end` names; `rank:N` has a number of its own. */
static int inject_kind(const char *text, size_t len, struct train_inject *in, struct fb_err *e,
	const char *whole, int *kind)
{
	char head[24];
	uint64_t rank;
	if (len >= sizeof(head))
		return inject_bad(e, whole, "there is no such kind");
	memcpy(head, text, len);
	head[len] = '\0';
	for (*kind = 0; *kind < INJECT_KIND_COUNT; ++*kind)
		if (*kind != INJECT_RANK && strcmp(head, train_inject_names[*kind]) == 0)
			return 0;
	if (strcmp(head, "rank") == 0)
		return inject_bad(e, whole, "which rank? rank:N");
	if (strncmp(head, "rank:", 5) != 0)
		return inject_unknown(head, whole, e);
	if (fb_parse_u64(head + 5, 0, 1 << 20, &rank, NULL) != 0)
		return inject_bad(e, whole, "the rank is no number");
	if (in->rank >= 0)
		return inject_bad(e, whole, "only one rank can be slowed, and once");
	*kind = INJECT_RANK;
	in->rank = (int)rank;
	return 0;
}

static int inject_factor(
	struct train_inject *in, int kind, const char *text, const char *whole, struct fb_err *e)
{
	const char *end;
	double v;
	if (kind == INJECT_RANK || kind == INJECT_OPTIMIZER)
		return inject_bad(e, whole,
			"xBANDWIDTH is for collectives, gemm and storage; this kind takes +LATENCY");
	if (!number(text, &v, &end) || *end != '\0')
		return inject_bad(e, whole, "what follows x is no number");
	if (!(v > 0) || v > 1)
		return inject_bad(e, whole,
			"the share of bandwidth that is left must be over 0 and at most 1");
	if (in->factor[kind] != 1)
		return inject_bad(e, whole, "this kind's bandwidth is given twice");
	in->factor[kind] = v;
	return 0;
}

int train_inject_add(struct train_inject *in, const char *text, struct fb_err *e)
{
	struct fb_err why = {0};
	const char *colon = strrchr(text, ':');
	int kind, rc;
	if (!colon)
		return inject_bad(e, text, "there is no ':'");
	rc = inject_kind(text, (size_t)(colon - text), in, e, text, &kind);
	if (rc != 0)
		return rc;
	if (colon[1] == 'x')
		return inject_factor(in, kind, colon + 2, text, e);
	if (colon[1] != '+')
		return inject_bad(e, text, "after the ':' stands + or x");
	if (fb_parse_duration(colon + 2, &in->delay_ns[kind], &why) != 0)
		return inject_bad(e, text, why.msg);
	if (in->delay_ns[kind] == 0 || in->delay_ns[kind] > 10000000000u)
		return inject_bad(e, text, "the latency must be over 0 and at most 10 s");
	return 0;
}

/* ---- the batch ------------------------------------------------------------------------------- */

static int batch_bad(const struct train_batch *b, int ranks, const char *why, struct fb_err *e)
{
	int64_t micro = b->micro ? b->micro : 1;
	int64_t part = (int64_t)ranks * micro * (b->accumulate ? b->accumulate : 1);
	int64_t up = (b->global + part - 1) / part * part;
	fb_fail_usage(e, "--global-batch %lld: %s", (long long)b->global, why);
	if (b->micro == 0 && b->accumulate == 0)
		fb_hint(e,
			"ranks * micro-batch * accumulate must equal it: with %d ranks use a "
			"multiple of %d, such as --global-batch %lld, or other --ranks",
			ranks, ranks, (long long)up);
	else
		fb_hint(e,
			"ranks * micro-batch * accumulate must equal it: with %d ranks%s%s use "
			"--global-batch %lld, or leave one of the three out",
			ranks, b->micro ? ", that --micro-batch" : "",
			b->accumulate ? ", that --accumulate" : "", (long long)up);
	return -EINVAL;
}

int train_batch_settle(struct train_batch *b, int ranks, struct fb_err *e)
{
	char why[160];
	if (b->global == 0) {
		b->micro = b->micro ? b->micro : TRAIN_DEFAULT_MICRO;
		b->accumulate = b->accumulate ? b->accumulate : 1;
		b->global = (int64_t)ranks * b->micro * b->accumulate;
		return 0;
	}
	if (b->micro == 0) { /* as large as possible: it is the better batch */
		int64_t part = (int64_t)ranks * (b->accumulate ? b->accumulate : 1);
		if (b->accumulate)
			snprintf(why, sizeof(why), "%d ranks * %d micro-batches do not divide it",
				ranks, b->accumulate);
		else
			snprintf(why, sizeof(why), "%d ranks do not divide it", ranks);
		if (b->global % part != 0)
			return batch_bad(b, ranks, why, e);
		b->micro = b->global / part;
		b->accumulate = b->accumulate ? b->accumulate : 1;
		return 0;
	}
	if (b->accumulate == 0) {
		int64_t part = ranks * b->micro;
		snprintf(why, sizeof(why), "%d ranks * %lld sequences do not divide it", ranks,
			(long long)b->micro);
		if (b->global % part != 0 || b->global / part > 1 << 20)
			return batch_bad(b, ranks, why, e);
		b->accumulate = (int)(b->global / part);
		return 0;
	}
	int64_t product = (int64_t)ranks * b->micro * b->accumulate;
	snprintf(why, sizeof(why), "%d ranks * %lld sequences * %d micro-batches = %lld", ranks,
		(long long)b->micro, b->accumulate, (long long)product);
	return product == b->global ? 0 : batch_bad(b, ranks, why, e);
}

/* ---- racks ----------------------------------------------------------------------------------- */

#define RACK_LINES "one line a node, in the order of their ranks; see --ranks-per-node"

/* The number of this rack: that of the first node in one of this name. */
static int rack_number(char *const *names, const int *rack, int n, const char *name)
{
	int most = -1;
	for (int i = 0; i < n; i++) {
		if (strcmp(names[i], name) == 0)
			return rack[i];
		most = rack[i] > most ? rack[i] : most;
	}
	return most + 1;
}

/* The next line that says something, without blanks around; NULL at the end. */
static char *next_line(char **at, unsigned *line)
{
	while (**at) {
		char *s = *at, *end = s + strcspn(s, "\n");
		*at = *end ? end + 1 : end;
		++*line;
		*end = '\0';
		s[strcspn(s, "#")] = '\0';
		s += strspn(s, " \t\r");
		for (size_t n = strlen(s); n > 0 && strchr(" \t\r", s[n - 1]); n--)
			s[n - 1] = '\0';
		if (*s)
			return s;
	}
	return NULL;
}

int train_rack_map(const char *path, int nodes, int **rack_of, struct fb_err *e)
{
	char *text = NULL, *at, *word, **names = NULL;
	struct fb_err why = {0};
	size_t len;
	unsigned line = 0;
	int n = 0, rc = fb_read_file(path, 16u << 20, &text, &len, &why);
	*rack_of = NULL;
	if (rc != 0) {
		fb_fail_usage(e, "--rack-map: %s", why.msg);
		fb_hint(e, "%s", RACK_LINES);
		return -EINVAL;
	}
	names = calloc((size_t)nodes, sizeof(*names));
	*rack_of = calloc((size_t)nodes, sizeof(**rack_of));
	if (!names || !*rack_of) {
		rc = fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %d nodes", nodes);
		goto free_all;
	}
	for (at = text; (word = next_line(&at, &line)) != NULL; n++) {
		if (strpbrk(word, " \t"))
			rc = fb_fail_usage(e, "%s:%u: one rack's name a line, not \"%.40s\"", path,
				line, word);
		else if (n >= nodes)
			rc = fb_fail_usage(e, "%s:%u: there are only %d nodes", path, line, nodes);
		if (rc != 0) {
			fb_hint(e, "%s", RACK_LINES);
			goto free_all;
		}
		names[n] = word;
		(*rack_of)[n] = rack_number(names, *rack_of, n, word);
	}
	if (n < nodes) {
		rc = fb_fail_usage(e, "%s: racks of %d nodes, and there are %d", path, n, nodes);
		fb_hint(e, "%s", RACK_LINES);
	}
free_all:
	if (rc != 0) {
		free(*rack_of);
		*rack_of = NULL;
	}
	free(names);
	free(text);
	return rc;
}
