// SPDX-License-Identifier: Apache-2.0
/* Options into parameters, parameters over the wire, and the tables of statuses, counters and
 * drivers. */
#include "bench/core/test.h"

#include <errno.h>
#include <string.h>

#include "bench/core/json.h"
#include "verbs/conn.h"
#include "verbs/counters.h"
#include "verbs/params.h"
#include "verbs/wc.h"

static int parse(
	enum verbs_bench_kind kind, char **argv, int argc, struct verbs_params *p, struct fb_err *e)
{
	struct verbs_options o = {0};
	struct fb_opt_spec spec = {.command = "verbs",
		.usage = "",
		.summary = "",
		.sets = {{"RDMA", kind == VERBS_LATENCY ? verbs_latency_opts : verbs_bandwidth_opts,
			&o}}};
	int rc = fb_opt_parse(&spec, argc, argv, e);

	if (rc == 0)
		rc = verbs_params_from_options(p, &o, kind, e);
	fb_opt_free(&spec);
	return rc;
}
#define PARSE(kind, p, e, ...)                                  \
	parse(kind, (char *[]){(char *)"x", __VA_ARGS__, NULL}, \
		(int)(sizeof((char *[]){(char *)"x", __VA_ARGS__}) / sizeof(char *)), p, e)
#define S(x) ((char *)(uintptr_t)x)

static void sizes(void **state)
{
	uint64_t v[VERBS_MAX_SIZES];
	struct fb_err e = {0};

	(void)state;
	assert_int_equal(verbs_parse_sizes("64K", v, VERBS_MAX_SIZES, &e), 1);
	assert_int_equal(v[0], 65536);
	assert_int_equal(verbs_parse_sizes("2:16", v, VERBS_MAX_SIZES, &e), 4);
	assert_int_equal(v[0], 2);
	assert_int_equal(v[3], 16);
	assert_int_equal(verbs_parse_sizes("3:20", v, VERBS_MAX_SIZES, &e), 5);
	assert_int_equal(v[1], 4);
	assert_int_equal(v[4], 20);
	assert_int_equal(verbs_parse_sizes("5:5", v, VERBS_MAX_SIZES, &e), 1);
	assert_int_equal(verbs_parse_sizes("1,2:8,1M", v, VERBS_MAX_SIZES, &e), 5);
	assert_int_equal(v[4], 1 << 20);
	assert_int_equal(verbs_parse_sizes("2:1G", v, VERBS_MAX_SIZES, &e), 30);
	assert_int_equal(e.code, 0);
	assert_true(verbs_parse_sizes("12Q", v, VERBS_MAX_SIZES, &e) < 0);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	assert_non_null(strstr(e.msg, "12Q"));
	fb_err_clear(&e);
	assert_true(verbs_parse_sizes("8:2", v, VERBS_MAX_SIZES, &e) < 0);
	fb_err_clear(&e);
	assert_true(verbs_parse_sizes("", v, VERBS_MAX_SIZES, &e) < 0);
	fb_err_clear(&e);
	assert_true(verbs_parse_sizes("1,", v, VERBS_MAX_SIZES, &e) < 0);
	fb_err_clear(&e);
	assert_true(verbs_parse_sizes("2G", v, VERBS_MAX_SIZES, &e) < 0);
	fb_err_clear(&e);
	assert_true(verbs_parse_sizes("1,2,3,4", v, 3, &e) < 0);
}

/* Two points of one name would pass for two launches. */
static void a_size_counts_once(void **state)
{
	static const struct {
		const char *text;
		int n;
		uint64_t first, last;
	} cases[] = {{"64,64", 1, 64, 64}, {"64K,65536,64KiB", 1, 65536, 65536},
		{"8:64,64:256", 6, 8, 256}, {"2:16,4:32", 5, 2, 32}, {"4,2:8,8", 3, 4, 8},
		{"2,4,8", 3, 2, 8}};
	uint64_t v[VERBS_MAX_SIZES];
	struct fb_err e = {0};

	(void)state;
	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_int_equal(
			verbs_parse_sizes(cases[i].text, v, VERBS_MAX_SIZES, &e), cases[i].n);
		assert_int_equal(v[0], cases[i].first);
		assert_int_equal(v[cases[i].n - 1], cases[i].last);
	}
	/* What comes again takes no room either. */
	assert_int_equal(verbs_parse_sizes("1,2,3,3,2,1", v, 3, &e), 3);
	assert_int_equal(e.code, 0);
}

static void options(void **state)
{
	struct verbs_params p;
	struct fb_err e = {0};

	(void)state;
	assert_int_equal(PARSE(VERBS_LATENCY, &p, &e, S("-a"), S("--op"), S("read,send")), 0);
	assert_int_equal(p.nsizes, 23);
	assert_int_equal(p.sizes[22], 8 << 20);
	assert_int_equal(p.nops, 2);
	assert_int_equal(p.ops[0], VERBS_READ);
	assert_int_equal(p.mtu, 0);
	assert_int_equal(p.numa, VERBS_NUMA_AUTO);

	assert_int_equal(
		PARSE(VERBS_LATENCY, &p, &e, S("-m"), S("2048"), S("--numa=3"), S("-I0")), 0);
	assert_int_equal(p.mtu, 2048);
	assert_int_equal(p.numa, 3);
	assert_int_equal(p.inline_max, 0);

	assert_int_equal(PARSE(VERBS_BANDWIDTH, &p, &e, S("-t4"), S("-q"), S("2"), S("-b")), 0);
	assert_int_equal(p.depth, 4);
	assert_int_equal(p.cq_mod, 1);
	assert_int_equal(p.rx_depth, 512);
	assert_int_equal(p.bidirectional, 1);
	/* Receives of many QPs fit into one completion queue of a small device. */
	assert_int_equal(PARSE(VERBS_BANDWIDTH, &p, &e, S("-q200"), S("-t2")), 0);
	assert_int_equal(p.rx_depth, 160);
	assert_int_equal(PARSE(VERBS_BANDWIDTH, &p, &e, S("-q128"), S("-t128")), 0);
	assert_int_equal(p.rx_depth, 250);
	assert_int_equal(PARSE(VERBS_BANDWIDTH, &p, &e, S("-q1024"), S("-t64")), 0);
	assert_int_equal(p.rx_depth, 64);
	assert_int_equal(PARSE(VERBS_BANDWIDTH, &p, &e, S("-t8192")), 0);
	assert_int_equal(p.rx_depth, 8192);
	assert_int_equal(PARSE(VERBS_BANDWIDTH, &p, &e, S("-t4"), S("-q"), S("2"), S("-b")), 0);
	assert_int_equal(p.sizes[0], 65536);
	assert_int_equal(PARSE(VERBS_BANDWIDTH, &p, &e, S("-d"), S("all")), 0);
	assert_int_equal(p.all_rails, 1);
	assert_string_equal(p.peer_device, "all");
	assert_int_equal(p.cq_mod, 16);
}

static void refusals(void **state)
{
	static const struct {
		enum verbs_bench_kind kind;
		const char *a, *b, *says;
	} cases[] = {
		{VERBS_LATENCY, "--op=wrte", "-s2", "did you mean --op write"},
		{VERBS_LATENCY, "--op=write", "-e", "completes nothing at the receiver"},
		{VERBS_LATENCY, "--op=write", "-s0", "cannot be measured"},
		{VERBS_LATENCY, "--size=12Q", "-n1", "12Q"},
		{VERBS_LATENCY, "--numa=near", "-s2", "near"},
		{VERBS_LATENCY, "--transport=uc", "--op=read", "uc has no read operation"},
		{VERBS_LATENCY, "--transport=uc", "--op=fetch-add",
			"uc has no fetch-add operation"},
		{VERBS_LATENCY, "--transport=uc", "--op=cmp-swap", "nothing comes back"},
		{VERBS_LATENCY, "--transport=ud", "--op=read", "ud has no read operation"},
		{VERBS_BANDWIDTH, "--transport=ud", "--op=write", "ud has no write operation"},
		{VERBS_BANDWIDTH, "--transport=ud", "--op=write-imm",
			"ud has no write-imm operation"},
		{VERBS_BANDWIDTH, "--transport=ud", "--op=cmp-swap", "datagrams carry sends alone"},
		{VERBS_LATENCY, "--transport=ud", "-s8K",
			"8192 bytes does not fit into one packet"},
		{VERBS_BANDWIDTH, "--transport=ud", "-s64K", "does not fit into one packet"},
		{VERBS_LATENCY, "--transport=ud", "-s0", "an empty send over ud"},
		{VERBS_LATENCY, "--transport=dc", "-s2", "left out: one vendor's own"},
		{VERBS_LATENCY, "--transport=srd", "-s2", "left out: one vendor's own"},
		{VERBS_LATENCY, "--transport=rd", "-s2", "there are rc, uc, ud and xrc"},
		{VERBS_LATENCY, "--op=fetch-ad", "-s8", "did you mean --op fetch-add"},
		{VERBS_LATENCY, "--op=fetch-add", "-s16", "works on 8 bytes"},
		{VERBS_BANDWIDTH, "--op=cmp-swap,fetch-add", "-s4", "works on 8 bytes"},
		{VERBS_BANDWIDTH, "--op=send", "-s0", "cannot be measured"},
		{VERBS_BANDWIDTH, "--depth=4", "--cq-mod=8", "--cq-mod 8"},
		{VERBS_BANDWIDTH, "--depth=4", "--post-list=8", "--post-list 8"},
		{VERBS_BANDWIDTH, "--depth=64", "--rx-depth=8", "--rx-depth 8"},
		/* Of each of these pairs one would be ignored. */
		{VERBS_LATENCY, "-a", "-s64", "--size and --all"},
		{VERBS_LATENCY, "-s64", "--min-size=2", "--size and --min-size"},
		{VERBS_BANDWIDTH, "-s64", "--max-size=1M", "--size and --max-size"},
		{VERBS_BANDWIDTH, "-a", "--max-size=1M", "--all and --max-size"},
		{VERBS_LATENCY, "--op=read", "-I64", "a read sends no data"},
		{VERBS_BANDWIDTH, "--op=fetch-add,read", "--inline=8", "leave --inline out"},
		{VERBS_LATENCY, "--memory=gpu", "-I64", "--memory gpu keeps"},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct verbs_params p;
		struct fb_err e = {0};
		char *argv[] = {S("x"), S(cases[i].a), S(cases[i].b), NULL};
		int argc = strcmp(cases[i].b, "-n1") ? 3 : 2;
		assert_int_equal(parse(cases[i].kind, argv, argc, &p, &e), -EINVAL);
		assert_int_equal(e.exit, FB_EXIT_USAGE);
		if (!strstr(e.msg, cases[i].says) && !strstr(e.hint, cases[i].says))
			fail_msg("%s %s: \"%s\" / \"%s\"", cases[i].a, cases[i].b, e.msg, e.hint);
	}
}

/* What goes together, of the same options. */
static void acceptances(void **state)
{
	struct verbs_params p;
	struct fb_err e = {0};

	(void)state;
	assert_int_equal(PARSE(VERBS_LATENCY, &p, &e, S("--min-size=4"), S("--max-size=64")), 0);
	assert_int_equal(p.nsizes, 5);
	assert_int_equal(PARSE(VERBS_LATENCY, &p, &e, S("--op=read,send"), S("-I64")), 0);
	assert_int_equal(p.inline_max, 64);
	assert_int_equal(PARSE(VERBS_LATENCY, &p, &e, S("--op=read"), S("-I0")), 0);
	assert_int_equal(PARSE(VERBS_LATENCY, &p, &e, S("--memory=gpu"), S("-I-1")), 0);
}

/* A message that the port cannot carry is refused before anything starts. */
static void the_port_has_a_limit(void **state)
{
	struct fb_err e = {0};

	(void)state;
	assert_int_equal(verbs_port_takes(8u << 20, "x0", 1, 8u << 20, &e), 0);
	assert_int_equal(verbs_port_takes(0, "x0", 1, 1u << 30, &e), 0);
	assert_int_equal(verbs_port_takes(8u << 20, "x0", 1, (8u << 20) + 1, &e), -EINVAL);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	assert_non_null(strstr(e.msg, "8388608 (max_msg_sz)"));
	assert_non_null(strstr(e.hint, "--size 8M"));
}

static void operations_and_transports(void **state)
{
	struct verbs_params p;
	struct fb_err e = {0};

	(void)state;
	/* What only completes at the receiver can wait for events; what the standard has, goes. */
	assert_int_equal(PARSE(VERBS_LATENCY, &p, &e, S("-e"), S("--op"),
				 S("send,send-imm,write-imm,read,fetch-add,cmp-swap")),
		0);
	assert_int_equal(p.nops, 6);
	assert_int_equal(p.transport, VERBS_RC);
	assert_int_equal(PARSE(VERBS_LATENCY, &p, &e, S("--transport=uc"), S("--op"),
				 S("send,send-imm,write,write-imm"), S("-s1M")),
		0);
	assert_int_equal(p.transport, VERBS_UC);
	assert_int_equal(
		PARSE(VERBS_LATENCY, &p, &e, S("--transport=ud"), S("--op=send-imm"), S("-s4096")),
		0);
	assert_int_equal(PARSE(VERBS_BANDWIDTH, &p, &e, S("--transport=xrc"), S("--op=read")), 0);
	/* The size of an atomic is known: alone they need none, beside others it is not asked. */
	assert_int_equal(PARSE(VERBS_BANDWIDTH, &p, &e, S("--op=cmp-swap,fetch-add")), 0);
	assert_int_equal(p.nsizes, 1);
	assert_int_equal(p.sizes[0], 8);
	assert_int_equal(PARSE(VERBS_LATENCY, &p, &e, S("--op=send,fetch-add"), S("-s2")), 0);
	assert_int_equal(p.sizes[0], 2);
	assert_int_equal(verbs_params_max_size(&p), 8);
	/* A smaller path MTU that was asked for is a limit for datagrams too. */
	assert_int_equal(
		PARSE(VERBS_LATENCY, &p, &e, S("--transport=ud"), S("-s2048"), S("-m1024")),
		-EINVAL);
	assert_non_null(strstr(e.msg, "the path MTU is 1024 bytes"));
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	fb_err_clear(&e);
	assert_int_equal(
		verbs_size_fits(VERBS_LATENCY, VERBS_SEND, VERBS_UD, 4096, 2048, &e), -EINVAL);
	fb_err_clear(&e);
	assert_int_equal(verbs_size_fits(VERBS_LATENCY, VERBS_SEND, VERBS_UD, 2048, 2048, &e), 0);
}

static void what_a_device_lacks(void **state)
{
	struct ibv_device_attr a = {.atomic_cap = IBV_ATOMIC_NONE};
	struct fb_err e = {0};

	(void)state;
	assert_int_equal(verbs_device_offers(&a, "rxe0", VERBS_SEND, VERBS_RC, &e), 0);
	assert_int_equal(verbs_device_offers(&a, "rxe0", VERBS_SEND, VERBS_XRC, &e), -EOPNOTSUPP);
	assert_int_equal(e.exit, FB_EXIT_SKIP);
	assert_non_null(strstr(e.msg, "rxe0 does not offer the transport xrc"));
	assert_non_null(strstr(e.msg, "IBV_DEVICE_XRC"));
	fb_err_clear(&e);
	assert_int_equal(
		verbs_device_offers(&a, "efa0", VERBS_CMP_SWAP, VERBS_RC, &e), -EOPNOTSUPP);
	assert_int_equal(e.exit, FB_EXIT_SKIP);
	assert_non_null(strstr(e.msg, "efa0 does not offer cmp-swap"));
	fb_err_clear(&e);
	a.atomic_cap = IBV_ATOMIC_HCA;
	a.device_cap_flags = IBV_DEVICE_XRC;
	assert_int_equal(verbs_device_offers(&a, "mlx5_0", VERBS_CMP_SWAP, VERBS_XRC, &e), 0);
}

/* Each transport's row against IBTA vol. 1, 11.2.5, as ibv_modify_qp(3) has it. */
static void rows_agree(void **state)
{
	(void)state;
	for (int t = 0; t < VERBS_NUM_TRANSPORTS; t++) {
		const struct verbs_transport_info *i = &verbs_transports[t];
		struct fb_err e = {0};
		assert_string_equal(verbs_transport_names[t], i->name);
		assert_int_equal(verbs_parse_transport(i->name, &e), t);
		assert_int_equal(!!(i->init_mask & IBV_QP_QKEY), i->datagram);
		assert_int_equal(!!(i->rtr_mask & IBV_QP_AV), !i->datagram);
		assert_int_equal(!!(i->rts_mask & IBV_QP_RETRY_CNT), i->acked);
		for (int o = 0; o < VERBS_NUM_OPS; o++) {
			const struct verbs_op_info *op = &verbs_ops[o];
			unsigned remote = op->access;
			assert_true(op->name && op->latency && op->bandwidth);
			if (i->ops & 1u << o)
				assert_int_equal(remote & ~(unsigned)i->qp_access, 0);
		}
	}
	assert_null(verbs_transport_names[VERBS_NUM_TRANSPORTS]);
}

static void requests(void **state)
{
	static uint8_t memory[4096];
	uint32_t qpn[2] = {77, 78};
	struct ibv_mr mr = {.lkey = 5};
	struct verbs_rail r = {.nqp = 2,
		.span = 64,
		.slots = 1,
		.buf = memory,
		.mr = &mr,
		.remote_qpn = qpn,
		.remote = {.addr = 1 << 20, .rkey = 9}};
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	(void)state;
	verbs_request(&r, 1, VERBS_WRITE_IMM, &wr, &sge, 64);
	assert_int_equal(wr.opcode, IBV_WR_RDMA_WRITE_WITH_IMM);
	assert_int_equal(wr.imm_data, verbs_imm(1));
	assert_int_equal(wr.wr.rdma.remote_addr, (1 << 20) + 3 * 64);
	assert_int_equal(sge.addr, (uintptr_t)memory + 64);
	verbs_request(&r, 1, VERBS_READ, &wr, &sge, 64);
	assert_int_equal(wr.wr.rdma.remote_addr, (1 << 20) + 64);
	assert_int_equal(sge.addr, (uintptr_t)memory + 3 * 64);
	/* Adds of all QPs meet in one word; each swap has its own. Both are 8-byte aligned. */
	verbs_request(&r, 1, VERBS_FETCH_ADD, &wr, &sge, 8);
	assert_int_equal(wr.wr.atomic.remote_addr, (1 << 20) + 2 * 64);
	assert_int_equal(wr.wr.atomic.compare_add, 1);
	verbs_request(&r, 1, VERBS_CMP_SWAP, &wr, &sge, 8);
	assert_int_equal(wr.wr.atomic.remote_addr, (1 << 20) + 3 * 64);
	assert_int_equal(wr.wr.atomic.rkey, 9);
	r.transport = VERBS_UD;
	r.grh = VERBS_GRH;
	verbs_request(&r, 1, VERBS_SEND, &wr, &sge, 0);
	assert_int_equal(wr.num_sge, 0);
	assert_int_equal(wr.wr.ud.remote_qpn, 78);
	assert_int_equal(wr.wr.ud.remote_qkey, VERBS_QKEY);
	assert_int_equal(verbs_data_off(&r, 0), 2 * 64 + 40);
}

static void wire_form(void **state)
{
	struct verbs_params p, q;
	struct fb_err e = {0};
	json_t *j;
	static const char *const needed[] = {"bench", "depth", "ops", "sizes", "peer_device", "qps",
		"cq_mod", "transport", "numa"};

	(void)state;
	assert_int_equal(PARSE(VERBS_BANDWIDTH, &p, &e, S("-t32"), S("-s1K:64K"), S("--op"),
				 S("send,write"), S("--peer-device"), S("mlx5_1")),
		0);
	j = verbs_params_to_json(&p);
	assert_int_equal(verbs_params_from_json(&q, j, &e), 0);
	assert_memory_equal(&p, &q, sizeof p);
	for (unsigned i = 0; i < sizeof needed / sizeof needed[0]; i++) {
		json_t *k = json_copy(j);
		fb_err_clear(&e);
		json_object_del(k, needed[i]);
		assert_int_equal(verbs_params_from_json(&q, k, &e), -EPROTO);
		assert_non_null(strstr(e.msg, needed[i]));
		json_decref(k);
	}
	json_object_set_new(j, "qps", json_integer(1 << 20));
	fb_err_clear(&e);
	assert_int_equal(verbs_params_from_json(&q, j, &e), -EPROTO);
	json_object_set_new(j, "qps", json_integer(1));
	json_object_set_new(j, "mtu", json_integer(1500));
	fb_err_clear(&e);
	assert_int_equal(verbs_params_from_json(&q, j, &e), -EPROTO);
	json_object_set_new(j, "mtu", json_integer(0));
	json_object_set_new(j, "ops", json_pack("[s]", "erase"));
	fb_err_clear(&e);
	assert_int_equal(verbs_params_from_json(&q, j, &e), -EPROTO);
	json_decref(j);
}

static void every_status_is_explained(void **state)
{
	(void)state;
	for (int s = IBV_WC_SUCCESS; s <= IBV_WC_TM_RNDV_INCOMPLETE; s++) {
		const struct verbs_wc_info *i = verbs_wc_lookup((enum ibv_wc_status)s);
		assert_int_equal(i->status, s);
		assert_int_equal(strncmp(i->name, "IBV_WC_", 7), 0);
		assert_true(strlen(i->causes) > 5 && strlen(i->next) > 5);
	}
	assert_string_equal(verbs_wc_lookup((enum ibv_wc_status)99)->name, "unknown status");
}

static void a_failure_names_cause_and_next_check(void **state)
{
	struct ibv_wc wc = {.status = IBV_WC_RETRY_EXC_ERR, .vendor_err = 0x81};
	struct fb_err e = {0};

	(void)state;
	assert_int_equal(
		verbs_wc_fail(&e, &wc, "send of 2 B from rxe0 to rxe0 on node2"), -ETIMEDOUT);
	assert_int_equal(e.exit, FB_EXIT_UNMEASURED);
	assert_non_null(strstr(e.msg, "rxe0 on node2"));
	assert_non_null(strstr(e.msg, "IBV_WC_RETRY_EXC_ERR"));
	assert_non_null(strstr(e.msg, "0x81"));
	assert_non_null(strstr(e.hint, "ping"));
}

static void counters(void **state)
{
	json_t *a = json_pack("{s:i,s:i,s:i,s:i}", "out_of_seq_request", 1, "rcvd_seq_err", 5,
		"sent_pkts", 100, "rcvd_rnr_err", 9);
	json_t *b = json_pack("{s:i,s:i,s:i,s:i}", "out_of_seq_request", 4, "rcvd_seq_err", 5,
		"sent_pkts", 900, "rcvd_rnr_err", 2);
	int64_t g[VERBS_NUM_CLASSES];
	char text[256];

	(void)state;
	verbs_counters_classify("rxe", a, b, g);
	assert_int_equal(g[VERBS_LOSS_SEEN], 3);
	assert_int_equal(g[VERBS_NAK], 0);
	assert_int_equal(g[VERBS_RNR], -1); /* went backwards: a reset, not a number */
	assert_int_equal(g[VERBS_CNP_SENT], -1);
	assert_int_equal(g[VERBS_TIMEOUT], -1); /* not there: not available, never 0 */
	assert_non_null(strstr(verbs_loss_text(g, text, sizeof text), "3"));
	verbs_counters_classify("rxe", a, a, g);
	assert_string_equal(verbs_loss_text(g, text, sizeof text), "");
	verbs_counters_classify("newdrv", a, b, g);
	for (int c = 0; c < VERBS_NUM_CLASSES; c++)
		assert_int_equal(g[c], -1);
	assert_int_equal(verbs_counter_class("mlx5", "np_cnp_sent"), VERBS_CNP_SENT);
	assert_int_equal(verbs_counter_class("mlx5", "sent_pkts"), -1);
	json_decref(a);
	json_decref(b);
}

static void drivers(void **state)
{
	struct verbs_params p = {
		.qp_timeout = VERBS_AUTO, .retry = VERBS_AUTO, .rnr_retry = VERBS_AUTO};
	unsigned t, r, n;
	char s[32];

	(void)state;
	verbs_driver_name(0x2c9, "mlx5_core", s, sizeof s);
	assert_string_equal(s, "mlx5");
	verbs_driver_name(0, "bnxt_en", s, sizeof s);
	assert_string_equal(s, "bnxt_re");
	verbs_driver_name(0xffffff, NULL, s, sizeof s);
	assert_string_equal(s, "rxe");
	verbs_driver_name(0x626d74, "", s, sizeof s);
	assert_string_equal(s, "siw");

	/* rxe: 7 retries would be for ever, and a short timeout retransmits on a clean link. */
	verbs_qp_defaults("rxe", &p, &t, &r, &n);
	assert_int_equal(t, 20);
	assert_int_equal(r, 6);
	assert_int_equal(n, 6);
	verbs_qp_defaults("mlx5", &p, &t, &r, &n);
	assert_int_equal(t, 14);
	assert_int_equal(r, 7);
	p.qp_timeout = 18;
	p.retry = 0;
	verbs_qp_defaults("mlx5", &p, &t, &r, &n);
	assert_int_equal(t, 18);
	assert_int_equal(r, 0);

	assert_true(verbs_parse_rate_file("100 Gb/sec (4X EDR)") == 12.5e9);
	assert_true(verbs_parse_rate_file("2.5 Gb/sec (1X SDR)") == 312.5e6);
	assert_true(verbs_parse_rate_file("") == 0);
	assert_true(verbs_parse_rate_file("100 Mb/sec") == 0);
}

static void patterns(void **state)
{
	uint8_t a[4096];

	(void)state;
	verbs_pattern_fill(a, sizeof a, 1, 3);
	assert_int_equal(verbs_pattern_check(a, sizeof a, 1, 3), 0);
	a[4095] ^= 1;
	assert_int_equal(verbs_pattern_check(a, sizeof a, 1, 3), 4096);
	assert_int_not_equal(verbs_pattern_check(a, 64, 0, 3), 0);
	assert_int_not_equal(verbs_pattern_check(a, 64, 1, 2), 0);
	memset(a, 0, sizeof a);
	assert_int_not_equal(verbs_pattern_check(a, 64, 1, 3), 0);
}

static void settings_are_compared(void **state)
{
	struct verbs_params a, b;
	struct fb_err e = {0};
	json_t *j;

	assert_int_equal(
		PARSE(VERBS_BANDWIDTH, &a, &e, S("--depth=32"), S("--cq-mod=4"), S("--tclass=106")),
		0);
	b = a;
	j = verbs_params_settings(&b);
	assert_int_equal(verbs_params_settings_fit(&a, j, &e), 0);
	json_decref(j);
	b.cq_mod = 8;
	j = verbs_params_settings(&b);
	assert_int_equal(verbs_params_settings_fit(&a, j, &e), -EPROTO);
	assert_non_null(strstr(e.msg, "'cq_mod': 4 here, 8 there"));
	json_decref(j);
	b = a;
	b.traffic_class = 104;
	j = verbs_params_settings(&b);
	fb_err_clear(&e);
	assert_int_equal(verbs_params_settings_fit(&a, j, &e), -EPROTO);
	assert_non_null(strstr(e.msg, "'traffic_class': 106 here, 104 there"));
	json_decref(j);
	fb_err_clear(&e);
	assert_int_equal(verbs_params_settings_fit(&a, NULL, &e), -EPROTO);
}

static void addressing_and_memory(void **state)
{
	struct verbs_params p, q;
	struct fb_err e = {0};
	json_t *j;

	assert_int_equal(
		PARSE(VERBS_LATENCY, &p, &e, S("-R"), S("--peer-gid=fd00::1"), S("--vlan=7"),
			S("--pkey=0x8001"), S("--memory=gpu:3"), S("--op=send,read")),
		0);
	j = verbs_params_to_json(&p);
	assert_int_equal(verbs_params_from_json(&q, j, &e), 0);
	json_decref(j);
	assert_true(q.rdma_cm && q.vlan == 7 && q.pkey == 0x8001 && q.memory == VERBS_MEM_GPU &&
		    q.gpu == 3);
	assert_string_equal(q.peer_gid, "fd00::1");
	assert_int_equal(PARSE(VERBS_LATENCY, &p, &e, S("--memory=gpu"), S("--op=write")), -EINVAL);
	assert_non_null(strstr(e.msg, "the CPU can read"));
	fb_err_clear(&e);
	assert_int_equal(PARSE(VERBS_LATENCY, &p, &e, S("--gid=10.0.0"), S("--op=send")), -EINVAL);
	assert_non_null(strstr(e.msg, "10.0.0"));
	fb_err_clear(&e);
	assert_int_equal(
		PARSE(VERBS_LATENCY, &p, &e, S("--pkey=0x10000"), S("--op=send")), -EINVAL);
	fb_err_clear(&e);
	assert_int_equal(PARSE(VERBS_LATENCY, &p, &e, S("--memory=disk"), S("--op=send")), -EINVAL);
	fb_err_clear(&e);
	assert_int_equal(PARSE(VERBS_LATENCY, &p, &e, S("-R"), S("--transport=ud")), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_are_compared),
		cmocka_unit_test(addressing_and_memory),
		cmocka_unit_test(sizes),
		cmocka_unit_test(a_size_counts_once),
		cmocka_unit_test(options),
		cmocka_unit_test(refusals),
		cmocka_unit_test(acceptances),
		cmocka_unit_test(the_port_has_a_limit),
		cmocka_unit_test(operations_and_transports),
		cmocka_unit_test(what_a_device_lacks),
		cmocka_unit_test(rows_agree),
		cmocka_unit_test(requests),
		cmocka_unit_test(wire_form),
		cmocka_unit_test(every_status_is_explained),
		cmocka_unit_test(a_failure_names_cause_and_next_check),
		cmocka_unit_test(counters),
		cmocka_unit_test(drivers),
		cmocka_unit_test(patterns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
