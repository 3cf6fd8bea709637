// SPDX-License-Identifier: Apache-2.0
/*
 * Options, the parameters made of them, and what follows from those. Their wire form is
 * params_wire.c's.
 */
#include "verbs/params_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/log.h"
#include "bench/core/units.h"
#include "bench/oob/oob.h"

#define OFF(f) offsetof(struct verbs_options, f)

static const char *const gid_type_words[] = {"auto", "v1", "v2", NULL};
static const char *const gid_family_words[] = {"auto", "4", "6", NULL};
static const char *const mtu_words[] = {"auto", "256", "512", "1024", "2048", "4096", NULL};

/* One line per option; designated, so that a new field of struct fb_opt keeps its default. */
#define STR(l, n, f, a, d, h)                                                              \
	{                                                                                  \
		.letter = l, .name = n, .type = FB_OPT_STRING, .offset = OFF(f), .arg = a, \
		.def = d, .help = h                                                        \
	}
#define FLAG(l, n, f, h)                                                                 \
	{                                                                                \
		.letter = l, .name = n, .type = FB_OPT_FLAG, .offset = OFF(f), .help = h \
	}
#define INT(l, n, f, lo, hi, d, h)                                                        \
	{                                                                                 \
		.letter = l, .name = n, .type = FB_OPT_INT, .offset = OFF(f), .arg = "N", \
		.def = d, .min = lo, .max = hi, .help = h                                 \
	}
#define ENUM(l, n, f, a, words, d, h)                                                    \
	{                                                                                \
		.letter = l, .name = n, .type = FB_OPT_ENUM, .offset = OFF(f), .arg = a, \
		.names = words, .def = d, .help = h                                      \
	}

/* Options that these commands share. DEF_SIZE: the default message size; DEVICES and PEER_DEVICES:
 * what --device and --peer-device name. */
#define COMMON_OPTS(DEF_SIZE, DEVICES, PEER_DEVICES)                                                        \
	{.name = "server",                                                                                  \
		.type = FB_OPT_STRING,                                                                      \
		.offset = OFF(server),                                                                      \
		.arg = "HOST",                                                                              \
		.positional = true,                                                                         \
		.help = "where `fabricbench verbs serve` listens"},                                         \
		FLAG(0, "loopback", loopback,                                                               \
			"run both ends in this process; allows traffic within one host, and labels "        \
			"it"),                                                                              \
		INT('p', "port", port, 1, 65535, "18515", "TCP port of the server"),                        \
		{.name = "token",                                                                           \
			.type = FB_OPT_STRING,                                                              \
			.offset = OFF(token),                                                               \
			.arg = "TEXT",                                                                      \
			.secret = true,                                                                     \
			.help = "shared word the server asks for (or FABRICBENCH_TOKEN)"},                  \
		{.name = "connect-timeout",                                                                 \
			.type = FB_OPT_DURATION,                                                            \
			.offset = OFF(connect_timeout_ns),                                                  \
			.arg = "TIME",                                                                      \
			.def = "10s",                                                                       \
			.help = "give the connection up after"},                                            \
		STR('d', "device", device, "NAME", NULL, DEVICES),                                          \
		STR(0, "peer-device", peer_device, "NAME", NULL, PEER_DEVICES),                             \
		INT('i', "ib-port", ib_port, 0, 255, "0",                                                   \
			"port of the device (0: the first ACTIVE)"),                                        \
		INT(0, "peer-ib-port", peer_ib_port, 0, 255, "0",                                           \
			"port of the server's device (0: the first ACTIVE)"),                               \
		INT('x', "gid-index", gid_index, -1, 255, "-1",                                             \
			"GID index (-1: by type and address, RoCE v2 and IPv4 first)"),                     \
		INT(0, "peer-gid-index", peer_gid_index, -1, 255, "-1",                                     \
			"the server's GID index (-1: of the client's type and family)"),                    \
		ENUM(0, "gid-type", gid_type, "TYPE", gid_type_words, "auto",                               \
			"RoCE version of the GID"),                                                         \
		ENUM(0, "gid-family", gid_family, "FAMILY", gid_family_words, "auto",                       \
			"address family of the GID: 4 or 6 (auto: IPv4 first)"),                            \
		STR(0, "gid", gid, "ADDRESS", NULL, "GID by its address: 10.0.0.1 or fd00::1"),             \
		STR(0, "peer-gid", peer_gid, "ADDRESS", NULL, "the server's GID by its address"),           \
		INT(0, "vlan", vlan, 0, 4094, "0", "GID of the netdev of this VLAN at both ends"),          \
		FLAG('R', "rdma-cm", rdma_cm,                                                               \
			"connect by the RDMA connection manager instead of exchanging queue pair numbers"), \
		INT(0, "pkey-index", pkey_index, 0, 65535, "0", "P_Key index at both ends"),                \
		STR(0, "pkey", pkey, "VALUE", NULL, "P_Key by its value at both ends: 0x8001"),             \
		STR(0, "op", op, "OPS", "send",                                                             \
			"send, send-imm, write, write-imm, read, fetch-add, cmp-swap; several by commas"),  \
		STR(0, "transport", transport, "NAME", "rc",                                                \
			"transport service: rc, uc, ud, or xrc where the device offers it"),                \
		STR('s', "size", size, "SIZES", NULL,                                                       \
			"message sizes: 64K; 2,64,4K; 2:64K for the powers of two between (" DEF_SIZE       \
			"; 8 for atomics)"),                                                                \
		FLAG('a', "all", all, "all powers of two from 2 to 8M"),                                    \
		STR(0, "min-size", min_size, "SIZE", NULL, "sweep from this size"),                         \
		STR(0, "max-size", max_size, "SIZE", NULL, "sweep up to this size"),                        \
		FLAG('e', "events", events, "sleep on completion events instead of polling"),               \
		INT('I', "inline", inline_max, -1, 65536, "-1",                                             \
			"largest message sent inline (-1: what the device takes; in bandwidth none)"),      \
		ENUM('m', "mtu", mtu, "BYTES", mtu_words, "auto",                                           \
			"path MTU (auto: both ends' active MTU, which must be equal)"),                     \
		INT('S', "sl", sl, 0, 15, "0", "service level"),                                            \
		INT(0, "traffic-class", traffic_class, 0, 255, "0",                                         \
			"traffic class byte (DSCP << 2; 106 is DSCP 26 with ECN); also --tclass"),          \
		{.name = "tclass",                                                                          \
			.type = FB_OPT_INT,                                                                 \
			.offset = OFF(traffic_class),                                                       \
			.arg = "N",                                                                         \
			.def = "0",                                                                         \
			.min = 0,                                                                           \
			.max = 255,                                                                         \
			.hidden = true,                                                                     \
			.help = "the name that perftest gives to --traffic-class"},                         \
		INT(0, "flow-label", flow_label, 0, 0xfffff, "0",                                           \
			"flow label (0: by QP numbers)"),                                                   \
		INT(0, "hop-limit", hop_limit, 1, 255, "64", "hop limit"),                                  \
		INT(0, "qp-timeout", qp_timeout, -1, 31, "-1",                                              \
			"ack timeout, 4.096 us * 2^N (-1: 14; 20 on Soft-RoCE)"),                           \
		INT(0, "retry", retry, -1, 7, "-1",                                                         \
			"retries before the connection fails (-1: 7; 6 on Soft-RoCE, where 7 is for "       \
			"ever)"),                                                                           \
		INT(0, "rnr-retry", rnr_retry, -1, 7, "-1",                                                 \
			"retries while the receiver is not ready, 7: for ever (-1: 6)"),                    \
		STR(0, "memory", memory, "host|huge|gpu[:N]", "host",                                       \
			"where the buffers are: ordinary memory, huge pages, or GPU N at both ends"),       \
		STR(0, "numa", numa, "auto|off|N", "auto",                                                  \
			"place thread and buffers on the NIC's NUMA node, nowhere, or on node N")

#define RAILS_OPTS(DEF_SIZE)                                                                   \
	COMMON_OPTS(DEF_SIZE,                                                                  \
		"RDMA device; several by commas; `all`: every ACTIVE one, singly and at once", \
		"the server's device (its first ACTIVE one; with --device all, all of them)")

const struct fb_opt verbs_latency_opts[] = {RAILS_OPTS("2"),
	{.name = "interval",
		.type = FB_OPT_DURATION,
		.offset = OFF(interval_ns),
		.arg = "TIME",
		.help = "begin iterations this far apart, after the warm-up; the waiting is in no "
			"sample"},
	{.name = NULL}};
const struct fb_opt verbs_load_opts[] = {COMMON_OPTS("64", "RDMA device (the first ACTIVE one)",
						 "the peer's device (its first ACTIVE one)"),
	{.name = NULL}};

const struct fb_opt verbs_bandwidth_opts[] = {RAILS_OPTS("64K"),
	INT('t', "depth", depth, 1, VERBS_MAX_DEPTH, "128", "messages in flight for each QP"),
	INT('r', "rx-depth", rx_depth, 0, VERBS_MAX_DEPTH, "0",
		"receives posted for each QP (0: twice --depth, at least 512; of many QPs fewer, at least "
		"--depth)"),
	INT('q', "qps", qps, 1, VERBS_MAX_QPS, "1", "queue pairs"),
	INT('l', "post-list", post_list, 1, 64, "1", "work requests in one post"),
	INT('Q', "cq-mod", cq_mod, 0, VERBS_MAX_DEPTH, "0",
		"one completion for so many messages (0: 16, at most a quarter of --depth)"),
	FLAG('b', "bidirectional", bidirectional, "both ends send at once; the figure is the sum"),
	{.name = "rate",
		.type = FB_OPT_RATE,
		.offset = OFF(rate),
		.arg = "RATE",
		.help = "send payload at this rate in each direction, by a schedule that does not wait "
			"for completions (open loop)"},
	{.name = "window",
		.type = FB_OPT_DURATION,
		.offset = OFF(window_ns),
		.arg = "TIME",
		.def = "100ms",
		.help = "length of the windows in which bytes are counted, to find the worst one"},
	{.name = NULL}};

/* ---- options -> parameters ------------------------------------------------------------------- */

/* A size that is there already, as where two ranges meet, is the same point: measured again it
 * would stand twice under one name, as if it were a second launch. */
static int add_size(uint64_t v, uint64_t *sizes, int max, int n, struct fb_err *e)
{
	if (v > VERBS_MAX_MSG)
		return fb_fail_usage(e, "a message of %llu bytes is above the limit of verbs, 1G",
			(unsigned long long)v);
	for (int i = 0; i < n; i++) {
		if (sizes[i] != v)
			continue;
		fb_warn("message size %llu is named more than once: measured once",
			(unsigned long long)v);
		return n;
	}
	if (n == max)
		return fb_fail_usage(e, "more than %d message sizes", max);
	sizes[n] = v;
	return n + 1;
}

static int add_range(uint64_t lo, uint64_t hi, uint64_t *sizes, int max, int n, struct fb_err *e)
{
	uint64_t p = 1;

	if (lo > hi)
		return fb_fail_usage(e, "the size range %llu:%llu runs backwards",
			(unsigned long long)lo, (unsigned long long)hi);
	n = add_size(lo, sizes, max, n, e);
	while (p <= lo)
		p <<= 1;
	for (; n >= 0 && p < hi; p <<= 1)
		n = add_size(p, sizes, max, n, e);
	if (n >= 0 && hi > lo)
		n = add_size(hi, sizes, max, n, e);
	return n;
}

int verbs_parse_sizes(const char *text, uint64_t *sizes, int max, struct fb_err *e)
{
	char word[64];
	int n = 0;

	for (const char *p = text;; p++) {
		size_t len = strcspn(p, ",");
		char *colon;
		uint64_t lo, hi;
		int rc;
		if (len >= sizeof word)
			return fb_fail_usage(e, "--size %s: not a size", text);
		memcpy(word, p, len);
		word[len] = '\0';
		colon = strchr(word, ':');
		if (colon)
			*colon = '\0';
		rc = fb_parse_size(word, &lo, e);
		if (rc == 0 && colon)
			rc = fb_parse_size(colon + 1, &hi, e);
		if (rc) {
			fb_hint(e, "sizes are 64, 64K, 8M; a list 2,64,4K; or a range 2:64K");
			return rc;
		}
		n = colon ? add_range(lo, hi, sizes, max, n, e) : add_size(lo, sizes, max, n, e);
		if (n < 0)
			return n;
		p += len;
		if (!*p)
			return n;
	}
}

static bool only_atomics(const struct verbs_params *p)
{
	for (int i = 0; i < p->nops; i++)
		if (!verbs_ops[p->ops[i]].atomic)
			return false;
	return true;
}

static int take_sizes(struct verbs_params *p, const struct verbs_options *o, struct fb_err *e)
{
	const char *default_size = p->bench == VERBS_LATENCY ? "2" : "64K";
	const char *range = o->min_size ? "min-size" : o->max_size ? "max-size" : NULL;
	int rc;

	if (o->size && (o->all || range))
		return fb_fail_usage(e, "--size and --%s both choose the sizes: leave one out",
			o->all ? "all" : range);
	if (o->all && range)
		return fb_fail_usage(
			e, "--all and --%s both choose the sizes: leave one out", range);
	if (o->all) {
		p->nsizes = add_range(2, 8u << 20, p->sizes, VERBS_MAX_SIZES, 0, e);
	} else if (o->min_size || o->max_size) {
		uint64_t lo = 2, hi = 8u << 20;
		if (o->min_size && (rc = fb_parse_size(o->min_size, &lo, e)) != 0)
			return rc;
		if (o->max_size && (rc = fb_parse_size(o->max_size, &hi, e)) != 0)
			return rc;
		p->nsizes = add_range(lo, hi, p->sizes, VERBS_MAX_SIZES, 0, e);
	} else {
		const char *text = o->size ? o->size : only_atomics(p) ? "8" : default_size;
		p->nsizes = verbs_parse_sizes(text, p->sizes, VERBS_MAX_SIZES, e);
	}
	return p->nsizes < 0 ? p->nsizes : 0;
}

static int take_numa(struct verbs_params *p, const char *text, struct fb_err *e)
{
	uint64_t v;

	p->numa = VERBS_NUMA_AUTO;
	if (!text || !strcmp(text, "auto"))
		return 0;
	if (!strcmp(text, "off")) {
		p->numa = VERBS_NUMA_OFF;
		return 0;
	}
	if (fb_parse_u64(text, 0, 1023, &v, NULL) != 0) {
		fb_fail_usage(e, "--numa %s: neither a NUMA node nor auto nor off", text);
		fb_hint(e, "give --numa auto, --numa off, or a node's number");
		return -EINVAL;
	}
	p->numa = (int)v;
	return 0;
}

static int take_memory(struct verbs_params *p, const char *text, struct fb_err *e)
{
	uint64_t gpu = 0;

	if (!text || !strcmp(text, "host")) {
		p->memory = VERBS_MEM_HOST;
	} else if (!strcmp(text, "huge")) {
		p->memory = VERBS_MEM_HUGE;
	} else if (!strcmp(text, "gpu") ||
		   (!strncmp(text, "gpu:", 4) && fb_parse_u64(text + 4, 0, 255, &gpu, NULL) == 0)) {
		p->memory = VERBS_MEM_GPU;
		p->gpu = (int)gpu;
	} else {
		fb_fail_usage(e, "--memory %s: no such memory", text);
		fb_hint(e,
			"there are --memory host, --memory huge, --memory gpu and --memory gpu:N");
		return -EINVAL;
	}
	return 0;
}

/* The CPU polls the last byte of a write, checks the word of an atomic, and looks at a load's
 * buffers while it runs: it cannot reach a GPU's. */
int verbs_params_memory_fits(const struct verbs_params *p, struct fb_err *e)
{
	bool polls = p->bench != VERBS_LATENCY && p->bench != VERBS_BANDWIDTH;

	if (p->memory != VERBS_MEM_GPU)
		return 0;
	for (int i = 0; i < p->nops; i++) {
		const struct verbs_op_info *op = &verbs_ops[p->ops[i]];
		/* Over what acknowledges nothing, latency numbers messages in their last byte. */
		bool watched = p->bench == VERBS_LATENCY &&
			       (p->ops[i] == VERBS_WRITE || !verbs_transports[p->transport].acked);
		if (!polls && !op->atomic && !watched)
			continue;
		fb_fail_usage(e,
			"--memory gpu: %s %s needs memory that the CPU can read while it runs",
			op->name, verbs_bench_names[p->bench]);
		fb_hint(e,
			"with latency and bandwidth take --op send, read or write-imm; or --memory host");
		return -EINVAL;
	}
	return 0;
}

/* Inline data is what the CPU copies into a request of its own. */
static int take_inline(struct verbs_params *p, int inline_max, struct fb_err *e)
{
	bool any = false;

	p->inline_max = inline_max;
	for (int i = 0; i < p->nops; i++)
		any = any || verbs_ops[p->ops[i]].inlines;
	if (inline_max > 0 && !any) {
		fb_fail_usage(e, "--inline %d: a %s sends no data that could be inline", inline_max,
			verbs_ops[p->ops[0]].name);
		fb_hint(e, "leave --inline out: sends and writes take it");
		return -EINVAL;
	}
	if (inline_max > 0 && p->memory == VERBS_MEM_GPU) {
		fb_fail_usage(e,
			"--inline %d: the CPU would have to read the message, which --memory gpu keeps "
			"from it",
			inline_max);
		fb_hint(e, "leave --inline out, or give --memory host");
		return -EINVAL;
	}
	return 0;
}

static int take_pkey(struct verbs_params *p, const struct verbs_options *o, struct fb_err *e)
{
	char *end;
	unsigned long v;

	p->pkey_index = o->pkey_index;
	p->pkey = VERBS_AUTO;
	if (!o->pkey)
		return 0;
	v = strtoul(o->pkey, &end, 0);
	if (end == o->pkey || *end || v < 1 || v > 0xffff || o->pkey[0] == '-') {
		fb_fail_usage(e, "--pkey %s: a P_Key is a number from 0x0001 to 0xffff", o->pkey);
		fb_hint(e,
			"the default partition is 0xffff; --pkey-index takes a place in the table");
		return -EINVAL;
	}
	if (o->pkey_index)
		return fb_fail_usage(
			e, "--pkey and --pkey-index both choose the P_Key: leave one out");
	p->pkey = (int)v;
	return 0;
}

int verbs_params_check_address(const char *name, const char *text, struct fb_err *e)
{
	union ibv_gid gid;

	if (!text || verbs_gid_parse(text, &gid) == 0)
		return 0;
	fb_fail_usage(e, "--%s %s: neither an IPv4 nor an IPv6 address", name, text);
	fb_hint(e,
		"GIDs are written as addresses: 10.0.0.1, fe80::1, fd00::1; ibv_devinfo -v lists them");
	return -EINVAL;
}

static int take_addressing(struct verbs_params *p, const struct verbs_options *o, struct fb_err *e)
{
	int rc = verbs_params_check_address("gid", o->gid, e);

	if (rc == 0)
		rc = verbs_params_check_address("peer-gid", o->peer_gid, e);
	if (rc == 0)
		rc = take_pkey(p, o, e);
	if (rc)
		return rc;
	if (o->gid && o->gid_index >= 0)
		return fb_fail_usage(e, "--gid and --gid-index both choose the GID: leave one out");
	if (o->peer_gid && o->peer_gid_index >= 0)
		return fb_fail_usage(
			e, "--peer-gid and --peer-gid-index both choose the GID: leave one out");
	if (o->peer_gid)
		snprintf(p->peer_gid, sizeof p->peer_gid, "%s", o->peer_gid);
	p->vlan = o->vlan;
	p->rdma_cm = o->rdma_cm;
	if (p->rdma_cm && p->transport != VERBS_RC) {
		fb_fail_usage(e, "--rdma-cm connects reliable connections; it cannot carry %s",
			verbs_transports[p->transport].name);
		fb_hint(e, "leave --rdma-cm out, or give --transport rc");
		return -EINVAL;
	}
	return 0;
}

/* Operations, the transport and the sizes: what the standard lets go together. Atomics have one
 * size; beside other operations the list of sizes is not theirs. */
int verbs_params_fit(const struct verbs_params *p, bool events, struct fb_err *e)
{
	enum verbs_bench_kind bench = (enum verbs_bench_kind)p->bench;
	enum verbs_transport transport = (enum verbs_transport)p->transport;
	int rc;

	for (int i = 0; i < p->nops; i++) {
		enum verbs_op op = (enum verbs_op)p->ops[i];
		rc = verbs_combination(bench, op, transport, events, e);
		if (rc)
			return rc;
		if (verbs_ops[op].atomic && !only_atomics(p))
			continue;
		for (int k = 0; k < p->nsizes; k++) {
			rc = verbs_size_fits(
				bench, op, transport, p->sizes[k], (unsigned)p->mtu, e);
			if (rc)
				return rc;
		}
	}
	return 0;
}

static int take_ops(struct verbs_params *p, const struct verbs_options *o, struct fb_err *e)
{
	p->transport = verbs_parse_transport(o->transport, e);
	if (p->transport < 0)
		return p->transport;
	p->nops = verbs_parse_ops(o->op, p->ops, e);
	return p->nops < 0 ? p->nops : 0;
}

static int take_rate(struct verbs_params *p, const struct verbs_options *o, struct fb_err *e)
{
	if (o->rate > (double)VERBS_MAX_RATE)
		return fb_fail_usage(e, "--rate is above 100 Tb/s, which no link carries");
	p->rate = (uint64_t)o->rate;
	p->window_ns = o->window_ns;
	if (o->rate > 0 && !p->rate)
		return fb_fail_usage(e, "--rate is below one byte a second");
	if (p->window_ns > VERBS_MAX_TIME_NS)
		return fb_fail_usage(e, "--window is longer than a day");
	if (p->window_ns < VERBS_MIN_WINDOW_NS) {
		fb_fail_usage(
			e, "--window is shorter than 1 ms, which a burst of completions fills");
		fb_hint(e, "give --window 10ms or more");
		return -EINVAL;
	}
	if (p->rate && o->events) {
		fb_fail_usage(e, "--rate follows the clock and cannot sleep on --events");
		fb_hint(e, "leave --events out");
		return -EINVAL;
	}
	return 0;
}

/* One completion queue takes the receives of all QPs, and small devices have 32767 entries. */
#define RX_ALL 32000

static int default_rx_depth(int depth, int qps)
{
	int each = RX_ALL / qps, n = depth * 2 > 512 ? depth * 2 : 512;

	if (n > each)
		n = each > depth ? each : depth;
	return n < VERBS_MAX_DEPTH ? n : VERBS_MAX_DEPTH;
}

static int take_bandwidth(struct verbs_params *p, const struct verbs_options *o, struct fb_err *e)
{
	int rc = take_rate(p, o, e);

	if (rc)
		return rc;
	p->depth = o->depth;
	p->qps = o->qps;
	p->post_list = o->post_list;
	p->bidirectional = o->bidirectional;
	if (p->post_list > p->depth)
		return fb_fail_usage(
			e, "--post-list %d is above --depth %d", p->post_list, p->depth);
	/* At least four completions in a full window keep the pipe from draining between them. */
	p->cq_mod = o->cq_mod ? o->cq_mod : 16;
	if (!o->cq_mod && p->cq_mod > p->depth / 4)
		p->cq_mod = p->depth / 4 ? p->depth / 4 : 1;
	if (p->cq_mod > p->depth)
		return fb_fail_usage(e,
			"--cq-mod %d is above --depth %d: no completion would ever come", p->cq_mod,
			p->depth);
	p->rx_depth = o->rx_depth ? o->rx_depth : default_rx_depth(p->depth, p->qps);
	if (p->rx_depth < p->depth)
		return fb_fail_usage(e,
			"--rx-depth %d is below --depth %d: the window could never fill",
			p->rx_depth, p->depth);
	return 0;
}

int verbs_params_from_options(struct verbs_params *p, const struct verbs_options *o,
	enum verbs_bench_kind bench, struct fb_err *e)
{
	int rc;

	memset(p, 0, sizeof *p);
	if (o->interval_ns > VERBS_MAX_TIME_NS)
		return fb_fail_usage(e, "--interval is longer than a day");
	p->bench = (int)bench;
	p->mtu = o->mtu ? 128 << o->mtu : 0;
	rc = take_ops(p, o, e);
	if (rc == 0)
		rc = take_sizes(p, o, e);
	if (rc == 0)
		rc = verbs_params_fit(p, o->events, e);
	if (rc == 0)
		rc = take_numa(p, o->numa, e);
	if (rc == 0)
		rc = take_memory(p, o->memory, e);
	if (rc == 0)
		rc = verbs_params_memory_fits(p, e);
	if (rc == 0)
		rc = take_inline(p, o->inline_max, e);
	if (rc == 0)
		rc = take_addressing(p, o, e);
	if (rc)
		return rc;
	p->events = o->events;
	p->sl = o->sl;
	p->traffic_class = o->traffic_class;
	p->flow_label = o->flow_label;
	p->hop_limit = o->hop_limit;
	p->qp_timeout = o->qp_timeout;
	p->retry = o->retry;
	p->rnr_retry = o->rnr_retry;
	p->loopback = o->loopback;
	p->interval_ns = o->interval_ns;
	p->all_rails = o->device && (!strcmp(o->device, "all") || strchr(o->device, ','));
	p->peer_ib_port = o->peer_ib_port;
	p->peer_gid_index = o->peer_gid_index;
	p->gid_type = p->gid_family = -1;
	if (o->peer_device)
		snprintf(p->peer_device, sizeof p->peer_device, "%s", o->peer_device);
	else if (p->all_rails)
		snprintf(p->peer_device, sizeof p->peer_device, "all");
	/* A ping-pong has one message in flight; the queues need room for unsignalled ones only. */
	p->depth = p->rx_depth = 64;
	p->qps = p->post_list = p->cq_mod = 1;
	return bench == VERBS_BANDWIDTH ? take_bandwidth(p, o, e) : 0;
}

/* ---- what follows from them ------------------------------------------------------------------ */

static void want_gid(struct verbs_gid_want *g, const char *address, int vlan)
{
	g->vlan = (unsigned)vlan;
	g->by_address = address && *address && verbs_gid_parse(address, &g->addr) == 0;
}

void verbs_params_want(
	const struct verbs_options *o, const struct verbs_params *p, struct verbs_dev_want *want)
{
	*want = (struct verbs_dev_want){.device = o->device,
		.port = (unsigned)o->ib_port,
		.pkey_index = (unsigned)p->pkey_index,
		.pkey = p->pkey > 0 ? (unsigned)p->pkey : 0,
		.gid = {.index = o->gid_index,
			.type = o->gid_type ? o->gid_type : -1,
			.family = o->gid_family == 0   ? -1
				  : o->gid_family == 1 ? VERBS_GID_IPV4
						       : VERBS_GID_ANY_IPV6}};
	want_gid(&want->gid, o->gid, p->vlan);
}

void verbs_params_peer_want(const struct verbs_params *p, const char *device, unsigned port,
	struct verbs_dev_want *want)
{
	bool chosen = p->peer_gid_index >= 0 || p->peer_gid[0];

	*want = (struct verbs_dev_want){.device = p->peer_device[0] ? p->peer_device : device,
		.port = p->peer_ib_port ? (unsigned)p->peer_ib_port : port,
		.pkey_index = (unsigned)p->pkey_index,
		.pkey = p->pkey > 0 ? (unsigned)p->pkey : 0,
		.gid = {.index = p->peer_gid_index,
			.type = p->peer_gid_index >= 0 ? -1 : p->gid_type,
			.family = chosen ? -1 : p->gid_family}};
	want_gid(&want->gid, p->peer_gid, p->peer_gid_index >= 0 ? 0 : p->vlan);
}

uint64_t verbs_params_max_size(const struct verbs_params *p)
{
	uint64_t max = 1;

	for (int i = 0; i < p->nsizes; i++)
		if (p->sizes[i] > max)
			max = p->sizes[i];
	for (int i = 0; i < p->nops; i++)
		if (verbs_ops[p->ops[i]].atomic && max < 8)
			max = 8;
	return max;
}

void verbs_opts_without(const char *const *but, struct fb_opt *out, size_t cap)
{
	size_t n = 0;

	for (const struct fb_opt *p = verbs_load_opts; p->name && n + 1 < cap; p++) {
		const char *const *own = but;
		while (*own && strcmp(*own, p->name) != 0)
			own++;
		if (!*own)
			out[n++] = *p;
	}
	out[n] = (struct fb_opt){.name = NULL};
}
