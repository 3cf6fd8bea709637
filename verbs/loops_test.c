// SPDX-License-Identifier: Apache-2.0
/*
 * The timed loops on a device made of functions. With --cost: what one iteration of a loop itself
 * costs, in ns (the device answers at once, and its own calls are counted in). With --run N: N
 * thousand iterations of the send loop, for an instruction counter.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/loops.h"
#include "verbs/null_device.h"

#define ITERS 1000

struct rig {
	struct null_device dev;
	struct verbs_lat lat;
	_Alignas(8) uint8_t out[64], in[64];
	uint64_t ns[ITERS];
	struct fb_sink sink;
	struct fb_err err;
	atomic_int stop;
};

static void rig_init(struct rig *r, enum ibv_wr_opcode opcode)
{
	memset(r, 0, sizeof *r);
	null_device_init(&r->dev);
	r->dev.echo_sends = true;
	r->dev.echo_to = &r->in[63];
	r->lat.qp = &r->dev.qp[0];
	r->lat.tx.cq = &r->dev.tx;
	r->lat.rx.cq = &r->dev.rx;
	r->lat.sge = (struct ibv_sge){.addr = (uintptr_t)r->out, .length = sizeof r->out};
	r->lat.wr = (struct ibv_send_wr){.sg_list = &r->lat.sge, .num_sge = 1, .opcode = opcode};
	r->lat.recv_last = &r->in[63];
	r->lat.send_last = &r->out[63];
	r->lat.signal_every = VERBS_SIGNAL_EVERY;
	r->lat.fetched = (uint64_t *)(void *)r->out;
	r->lat.lost_ns = 200000; /* a loss costs the test 0.2 ms */
	r->lat.silence_ns = VERBS_SILENCE(r->lat.lost_ns);
	r->lat.what = "send of 64 B from null0 to null0 on here";
	r->lat.wait = (struct verbs_wait){
		.stop = &r->stop, .deadline = fb_clock_ns() + 20000000u, .e = &r->err};
	r->sink = (struct fb_sink){.ns = r->ns, .cap = ITERS};
}

static void send_loop(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, IBV_WR_SEND);
	assert_int_equal(verbs_lat_choose(VERBS_SEND, false, true)(&r.lat, ITERS, &r.sink), 0);
	assert_int_equal(r.sink.n, ITERS);
	assert_int_equal(r.dev.posted, ITERS);
	assert_int_equal(r.dev.received, ITERS);
	/* One completion in sixteen gives the send queue back. */
	assert_int_equal(r.dev.signaled, ITERS / VERBS_SIGNAL_EVERY);
	assert_int_equal(r.dev.tx_head, r.dev.tx_tail);
}

static void software_devices_signal_each_send(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, IBV_WR_SEND);
	r.lat.signal_every = VERBS_SIGNAL_EVERY_SOFTWARE;
	assert_int_equal(verbs_lat_choose(VERBS_SEND, false, true)(&r.lat, ITERS, &r.sink), 0);
	assert_int_equal(r.dev.signaled, ITERS);
	assert_int_equal(r.dev.tx_head, r.dev.tx_tail);
}

static void send_server_answers_each(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, IBV_WR_SEND);
	r.dev.echo_sends = false;
	for (unsigned i = 0; i < 100; i++)
		r.dev.rx_id[r.dev.rx_tail++] = 0;
	assert_int_equal(verbs_lat_choose(VERBS_SEND, false, false)(&r.lat, 100, &r.sink), 0);
	assert_int_equal(r.dev.posted, 100);
	assert_int_equal(r.dev.received, 100);
	assert_int_equal(r.sink.n, 0);
}

static void write_loop_wraps_its_sequence(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, IBV_WR_RDMA_WRITE);
	assert_int_equal(verbs_lat_choose(VERBS_WRITE, false, true)(&r.lat, ITERS, &r.sink), 0);
	assert_int_equal(r.sink.n, ITERS);
	assert_int_equal(r.lat.seq, (uint8_t)ITERS);
	/* A second batch goes on from where the first ended. */
	r.sink.n = 0;
	assert_int_equal(verbs_lat_choose(VERBS_WRITE, false, true)(&r.lat, 10, &r.sink), 0);
	assert_int_equal(r.lat.seq, (uint8_t)(ITERS + 10));
}

static void read_loop_signals_each(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, IBV_WR_RDMA_READ);
	assert_int_equal(verbs_lat_choose(VERBS_READ, false, true)(&r.lat, ITERS, &r.sink), 0);
	assert_int_equal(r.dev.signaled, ITERS);
	assert_null(verbs_lat_choose(VERBS_READ, false, false));
	assert_null(verbs_lat_choose(VERBS_WRITE, true, true));
}

static void silence_ends_at_the_deadline(void **state)
{
	static const enum verbs_op ops[] = {VERBS_SEND, VERBS_WRITE, VERBS_READ};
	static const enum ibv_wr_opcode codes[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct rig r;
		rig_init(&r, codes[i]);
		r.dev.silent_after = 10;
		assert_int_equal(
			verbs_lat_choose(ops[i], false, true)(&r.lat, ITERS, &r.sink), -ETIMEDOUT);
		assert_int_equal(r.sink.n, 10);
		assert_int_equal(r.err.exit, FB_EXIT_UNMEASURED);
		assert_int_equal(atomic_load(&r.stop), 1);
	}
}

static void another_rail_stops_this_one(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, IBV_WR_SEND);
	r.lat.wait.deadline = UINT64_MAX;
	r.dev.silent_after = 10;
	atomic_store(&r.stop, 1);
	assert_int_equal(
		verbs_lat_choose(VERBS_SEND, false, true)(&r.lat, ITERS, &r.sink), -ECANCELED);
}

static void a_failed_send_is_explained(void **state)
{
	static const enum verbs_op ops[] = {VERBS_SEND, VERBS_WRITE, VERBS_READ};
	static const enum ibv_wr_opcode codes[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct rig r;
		rig_init(&r, codes[i]);
		r.lat.wait.deadline = UINT64_MAX;
		r.dev.fail_after = 16; /* right after a signalled one too */
		assert_int_equal(
			verbs_lat_choose(ops[i], false, true)(&r.lat, ITERS, &r.sink), -ETIMEDOUT);
		assert_non_null(strstr(r.err.msg, "IBV_WC_RETRY_EXC_ERR"));
		assert_non_null(strstr(r.err.msg, "0x81"));
		assert_true(r.err.hint[0]);
	}
}

static const enum verbs_op imm_ops[] = {VERBS_SEND_IMM, VERBS_WRITE_IMM};
static const enum ibv_wr_opcode imm_codes[] = {IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM};

static void immediates_are_checked_one_by_one(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned events = 0; events < 2; events++) {
			struct rig r;
			rig_init(&r, imm_codes[i]);
			assert_int_equal(
				verbs_lat_choose(imm_ops[i], events, true)(&r.lat, ITERS, &r.sink),
				0);
			assert_int_equal(r.sink.n, ITERS);
			assert_int_equal(r.dev.received, ITERS);
			assert_int_equal(r.lat.wrong, 0);
			r.dev.wrong_imm = htonl(1);
			assert_int_equal(
				verbs_lat_choose(imm_ops[i], events, true)(&r.lat, 10, &r.sink), 0);
			assert_int_equal(r.lat.wrong, 10);
		}
	}
}

static void immediate_server_expects_the_same_numbers(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, IBV_WR_RDMA_WRITE_WITH_IMM);
	r.dev.echo_sends = false;
	for (unsigned i = 0; i < 300; i++) {
		r.dev.rx_imm[r.dev.rx_tail] = verbs_imm((uint8_t)(i + 1));
		r.dev.rx_id[r.dev.rx_tail++] = 0;
	}
	assert_int_equal(verbs_lat_choose(VERBS_WRITE_IMM, false, false)(&r.lat, 300, &r.sink), 0);
	assert_int_equal(r.dev.posted, 300);
	assert_int_equal(r.lat.wrong, 0);
}

static void atomics_fetch_what_the_one_before_left(void **state)
{
	static const enum verbs_op ops[] = {VERBS_FETCH_ADD, VERBS_CMP_SWAP};
	static const enum ibv_wr_opcode codes[] = {
		IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct rig r;
		rig_init(&r, codes[i]);
		r.lat.sge.length = 8;
		r.lat.wr.wr.atomic.compare_add = 1;
		assert_int_equal(verbs_lat_choose(ops[i], i == 1, true)(&r.lat, ITERS, &r.sink), 0);
		assert_int_equal(r.sink.n, ITERS);
		assert_int_equal(r.dev.signaled, ITERS);
		assert_int_equal(r.dev.word, ITERS);
		assert_int_equal(r.lat.wrong, 0);
		/* Somebody else changes the word: seen at once. */
		r.dev.word += 5;
		assert_int_equal(verbs_lat_choose(ops[i], false, true)(&r.lat, 1, &r.sink), 0);
		assert_int_equal(r.lat.wrong, 1);
		assert_null(verbs_lat_choose(ops[i], false, false));
	}
}

/* ---- without acknowledgements ---------------------------------------------------------------- */

static const enum verbs_op lossy_ops[] = {VERBS_SEND, VERBS_SEND_IMM, VERBS_WRITE, VERBS_WRITE_IMM};
static const enum ibv_wr_opcode lossy_codes[] = {
	IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM};

static void a_lost_message_is_counted_and_no_sample(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned events = 0; events < 2; events++) {
			struct rig r;
			verbs_lat_loop loop = verbs_lat_choose_lossy(lossy_ops[i], events, true);
			if (lossy_ops[i] == VERBS_WRITE && events) {
				assert_null(loop);
				continue;
			}
			rig_init(&r, lossy_codes[i]);
			r.lat.wait.deadline = UINT64_MAX;
			r.lat.signal_every = VERBS_SIGNAL_EVERY_SOFTWARE;
			r.dev.lose_every = events ? 0 : 50;
			assert_int_equal(loop(&r.lat, 205, &r.sink), 0);
			assert_int_equal(r.lat.lost, events ? 0 : 4);
			assert_int_equal(r.sink.n, 205 - r.lat.lost);
			assert_int_equal(r.lat.wrong, 0);
			assert_int_equal(r.lat.seq, 205);
			/* The next batch goes on from there. */
			r.dev.lose_every = 0;
			r.sink.n = 0;
			assert_int_equal(loop(&r.lat, 100, &r.sink), 0);
			assert_int_equal(r.sink.n, 100);
			assert_int_equal(r.lat.seq, (uint8_t)305);
		}
	}
}

static void silence_of_a_lossy_peer_ends(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct rig r;
		rig_init(&r, lossy_codes[i]);
		r.lat.wait.deadline = UINT64_MAX;
		r.lat.signal_every = VERBS_SIGNAL_EVERY_SOFTWARE;
		r.dev.lose_every = 1;
		assert_int_equal(
			verbs_lat_choose_lossy(lossy_ops[i], false, true)(&r.lat, 100, &r.sink),
			-ETIMEDOUT);
		assert_int_equal(r.lat.lost, VERBS_LOST_IN_ROW);
		assert_int_equal(r.sink.n, 0);
		assert_non_null(strstr(r.err.msg, "in a row"));
		assert_true(r.err.hint[0]);
		/* The target just leaves, in step with what the requester asked for. */
		rig_init(&r, lossy_codes[i]);
		r.lat.wait.deadline = UINT64_MAX;
		assert_int_equal(
			verbs_lat_choose_lossy(lossy_ops[i], false, false)(&r.lat, 100, &r.sink),
			0);
		assert_int_equal(r.dev.posted, 0);
		assert_int_equal(r.lat.seq, 100);
	}
}

static void a_lossy_deadline_holds(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, IBV_WR_SEND);
	r.lat.lost_ns = UINT64_MAX / 16;
	r.dev.lose_every = 1;
	r.lat.signal_every = VERBS_SIGNAL_EVERY_SOFTWARE;
	assert_int_equal(
		verbs_lat_choose_lossy(VERBS_SEND, false, true)(&r.lat, 5, &r.sink), -ETIMEDOUT);
	assert_int_equal(r.err.exit, FB_EXIT_UNMEASURED);
}

/* Requests 1, 2, (3 lost), 4, a copy of 4, a late 2: four of the batch, three answers. */
static void a_lossy_target_counts_by_number(void **state)
{
	struct rig r;
	verbs_lat_loop loop = verbs_lat_choose_lossy(VERBS_WRITE, false, false);

	(void)state;
	rig_init(&r, IBV_WR_RDMA_WRITE);
	r.lat.wait.deadline = UINT64_MAX;
	r.dev.echo_to = NULL;
	r.in[63] = 1;
	assert_int_equal(loop(&r.lat, 1, &r.sink), 0);
	assert_int_equal(r.dev.posted, 1);
	r.in[63] = 3; /* 2 was lost */
	assert_int_equal(loop(&r.lat, 2, &r.sink), 0);
	assert_int_equal(r.dev.posted, 2);
	assert_int_equal(r.lat.seq, 3);
	r.in[63] = 2; /* late: not answered, and the batch ends by silence */
	assert_int_equal(loop(&r.lat, 1, &r.sink), 0);
	assert_int_equal(r.dev.posted, 2);
	assert_int_equal(r.lat.seq, 4);
	r.in[63] = 5;
	assert_int_equal(loop(&r.lat, 1, &r.sink), 0);
	assert_int_equal(r.dev.posted, 3);
	assert_int_equal(r.in[63], 5); /* the requester's memory: never written here */
}

/* ---- bandwidth ------------------------------------------------------------------------------- */

struct bw_rig {
	struct null_device dev;
	struct verbs_bw b;
	struct verbs_bw_qp qp[4];
	struct ibv_sge sge[4];
	struct ibv_send_wr chain[4][8];
	uint8_t data[64];
	uint64_t credit_in[4], credit_out[4];
	struct fb_err err;
	atomic_int stop;
};

static void bw_init(struct bw_rig *r, unsigned nqp, unsigned depth, unsigned list, unsigned mod,
	enum ibv_wr_opcode opcode)
{
	memset(r, 0, sizeof *r);
	null_device_init(&r->dev);
	r->b = (struct verbs_bw){.qp = r->qp,
		.nqp = nqp,
		.depth = depth,
		.rx_depth = depth * 2,
		.post_list = list,
		.cq_mod = mod,
		.tx.cq = &r->dev.tx,
		.rx.cq = &r->dev.rx,
		.what = "write of 64 B",
		.wait = {.stop = &r->stop, .deadline = fb_clock_ns() + 20000000u, .e = &r->err}};
	for (unsigned q = 0; q < nqp; q++) {
		struct verbs_bw_qp *b = &r->qp[q];
		b->qp = &r->dev.qp[q];
		b->chain = r->chain[q];
		r->sge[q] = (struct ibv_sge){.addr = (uintptr_t)r->data, .length = sizeof r->data};
		for (unsigned k = 0; k < list; k++)
			b->chain[k] = (struct ibv_send_wr){
				.sg_list = &r->sge[q], .num_sge = 1, .opcode = opcode};
		b->imm = verbs_imm(q);
		b->credit_in = &r->credit_in[q];
		b->credit_out = &r->credit_out[q];
		b->credit_sge = (struct ibv_sge){.addr = (uintptr_t)b->credit_out, .length = 8};
		b->credit_wr = (struct ibv_send_wr){.wr_id = VERBS_WR_CREDIT | (uint64_t)q << 32,
			.sg_list = &b->credit_sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED};
	}
}

static void writes_are_counted_exactly(void **state)
{
	static const struct {
		unsigned qps, depth, list, mod;
		uint64_t iters;
	} cases[] = {{1, 128, 1, 16, 1000}, {1, 1, 1, 1, 7}, {3, 8, 4, 3, 1001}, {4, 8, 8, 8, 3},
		{2, 5, 5, 5, 999}, {1, 8, 8, 1, 1},
		/* What is left of the window holds no whole chain, and nothing in it is signalled.
		 */
		{1, 10, 4, 10, 1000}, {2, 7, 4, 7, 999}, {1, 13, 8, 13, 1000}};

	(void)state;
	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct bw_rig r;
		uint64_t elapsed = 0;
		bw_init(&r, cases[i].qps, cases[i].depth, cases[i].list, cases[i].mod,
			IBV_WR_RDMA_WRITE);
		assert_int_equal(
			verbs_bw_choose(false, false, true, false)(&r.b, cases[i].iters, &elapsed),
			0);
		assert_int_equal(r.dev.posted, cases[i].iters);
		assert_true(r.dev.max_chain <= cases[i].list);
		for (unsigned q = 0; q < cases[i].qps; q++) {
			assert_int_equal(r.qp[q].in_flight, 0);
			assert_int_equal(r.qp[q].left, 0);
		}
	}
}

/* By a limited rate too, each batch is dealt out from the first queue pair on: the target counts on
 * it. */
static void a_rate_deals_as_the_target_expects(void **state)
{
	static const struct {
		unsigned qps, list;
		uint64_t iters;
	} cases[] = {{2, 1, 107}, {3, 4, 101}, {4, 8, 7}, {3, 2, 1}};

	(void)state;
	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct bw_rig r;
		uint64_t elapsed = 0, all = 0;
		bw_init(&r, cases[i].qps, 8, cases[i].list, 4, IBV_WR_RDMA_WRITE);
		r.b.meter.gap_ns = 10;
		r.b.wait.deadline = UINT64_MAX;
		for (unsigned k = 0; k < 3; k++)
			assert_int_equal(verbs_bw_choose_paced(false, false, false)(
						 &r.b, cases[i].iters, &elapsed),
				0);
		for (unsigned q = 0; q < cases[i].qps; q++) {
			uint64_t one = verbs_dealt(cases[i].iters, cases[i].qps, cases[i].list, q);
			assert_int_equal(r.qp[q].sent, 3 * one);
			all += one;
		}
		assert_int_equal(all, cases[i].iters);
	}
}

static void sender_stops_without_credits(void **state)
{
	struct bw_rig r;
	uint64_t elapsed = 0;

	(void)state;
	bw_init(&r, 1, 8, 1, 1, IBV_WR_SEND);
	/* The peer consumes nothing: after rx_depth sends there is no receive to hit. */
	assert_int_equal(
		verbs_bw_choose(true, false, true, false)(&r.b, 100, &elapsed), -ETIMEDOUT);
	assert_int_equal(r.dev.posted, 16);
}

static void credits_let_any_number_through(void **state)
{
	struct bw_rig r;
	uint64_t elapsed = 0;

	(void)state;
	/* Both ends are this one: its sends arrive here, its credits come back here. */
	bw_init(&r, 1, 8, 8, 4, IBV_WR_SEND);
	r.dev.echo_sends = true;
	r.dev.credit_to = &r.credit_in[0];
	assert_int_equal(verbs_bw_choose(true, false, true, true)(&r.b, 10001, &elapsed), 0);
	assert_int_equal(r.qp[0].sent, 10001);
	assert_int_equal(r.qp[0].consumed, 10001);
	assert_int_equal(r.dev.received, 10001);
	assert_true(elapsed > 0);
}

static void a_failed_write_is_explained(void **state)
{
	struct bw_rig r;
	uint64_t elapsed = 0;

	(void)state;
	bw_init(&r, 1, 8, 1, 4, IBV_WR_RDMA_WRITE);
	r.dev.fail_after = 20;
	r.dev.status = IBV_WC_REM_ACCESS_ERR;
	assert_int_equal(verbs_bw_choose(false, false, true, false)(&r.b, 100, &elapsed), -EIO);
	assert_non_null(strstr(r.err.msg, "IBV_WC_REM_ACCESS_ERR"));
}

static void nothing_to_do_has_no_loop(void **state)
{
	(void)state;
	assert_null(verbs_bw_choose(false, false, false, false));
	assert_null(verbs_bw_choose(false, true, false, true));
	assert_null(verbs_bw_choose(true, false, false, false));
	assert_non_null(verbs_bw_choose(true, true, false, true));
}

static void swaps_compare_with_the_one_before(void **state)
{
	struct bw_rig r;
	uint64_t elapsed = 0;

	(void)state;
	bw_init(&r, 1, 8, 4, 4, IBV_WR_ATOMIC_CMP_AND_SWP);
	assert_int_equal(verbs_bw_choose_swap(false)(&r.b, 1001, &elapsed), 0);
	assert_int_equal(r.dev.word, 1001);
	assert_int_equal(verbs_bw_choose_swap(true)(&r.b, 10, &elapsed), 0);
	assert_int_equal(r.dev.word, 1011);
	assert_int_equal(r.qp[0].next_swap, 1011);
}

static void adds_of_all_queue_pairs_meet(void **state)
{
	struct bw_rig r;
	uint64_t elapsed = 0;

	(void)state;
	bw_init(&r, 4, 8, 1, 4, IBV_WR_ATOMIC_FETCH_AND_ADD);
	for (unsigned q = 0; q < 4; q++)
		r.chain[q][0].wr.atomic.compare_add = 1;
	assert_int_equal(verbs_bw_choose(false, false, true, false)(&r.b, 1003, &elapsed), 0);
	assert_int_equal(r.dev.word, 1003);
}

static void bandwidth_checks_immediates(void **state)
{
	struct bw_rig r;
	uint64_t elapsed = 0;

	(void)state;
	bw_init(&r, 1, 8, 8, 4, IBV_WR_SEND_WITH_IMM);
	for (unsigned k = 0; k < 8; k++)
		r.chain[0][k].imm_data = verbs_imm(0);
	r.dev.echo_sends = true;
	r.dev.credit_to = &r.credit_in[0];
	r.b.imm_mask = UINT32_MAX;
	assert_int_equal(verbs_bw_choose(true, false, true, true)(&r.b, 101, &elapsed), 0);
	assert_int_equal(r.b.wrong, 0);
	r.dev.wrong_imm = htonl(4);
	assert_int_equal(verbs_bw_choose(true, false, true, true)(&r.b, 101, &elapsed), 0);
	assert_int_equal(r.b.wrong, htonl(4));
	/* Without immediates the field holds anything. */
	r.b.wrong = r.b.imm_mask = 0;
	assert_int_equal(verbs_bw_choose(true, false, true, true)(&r.b, 101, &elapsed), 0);
	assert_int_equal(r.b.wrong, 0);
}

static void the_receiver_counts_what_came(void **state)
{
	struct bw_rig r;
	uint64_t elapsed = 0;

	(void)state;
	bw_init(&r, 1, 8, 4, 4, IBV_WR_SEND);
	r.b.wait.deadline = UINT64_MAX;
	r.dev.echo_sends = true;
	/* Nothing is lost: it ends with the last message. */
	assert_int_equal(verbs_bw_choose_lossy(false, true, true)(&r.b, 1000, &elapsed), 0);
	assert_int_equal(r.b.taken, 1000);
	/* Every hundredth is: it ends when nothing more comes, and the wait is in no time. */
	r.dev.lose_every = 100;
	assert_int_equal(verbs_bw_choose_lossy(false, true, true)(&r.b, 1000, &elapsed), 0);
	assert_int_equal(r.b.taken, 990);
	assert_int_equal(r.dev.lost, 10);
	assert_true(elapsed < VERBS_QUIET_NS && r.b.taken_ns < VERBS_QUIET_NS);
	/* One end only sends, and never waits for the other. */
	r.dev.echo_sends = false;
	assert_int_equal(verbs_bw_choose_lossy(true, true, false)(&r.b, 100, &elapsed), 0);
	assert_int_equal(r.b.taken, 0);
	assert_int_equal(verbs_bw_drain(&r.b), 0);
	r.dev.rx_tail += 7;
	assert_int_equal(verbs_bw_drain(&r.b), 7);
}

static void shared_receive_queues_take_the_receives(void **state)
{
	static const enum verbs_op ops[] = {VERBS_SEND, VERBS_SEND_IMM, VERBS_WRITE_IMM};
	static const enum ibv_wr_opcode codes[] = {
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM};
	struct bw_rig b;
	uint64_t elapsed = 0;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned events = 0; events < 2; events++) {
			struct rig r;
			rig_init(&r, codes[i]);
			r.lat.srq = &r.dev.srq;
			assert_int_equal(verbs_lat_choose_shared(ops[i], events, true)(
						 &r.lat, ITERS, &r.sink),
				0);
			assert_int_equal(r.sink.n, ITERS);
			assert_int_equal(r.dev.received, 0);
			assert_int_equal(r.dev.shared_received, ITERS);
		}
	}
	/* Those that take none are the same as ever. */
	assert_ptr_equal(verbs_lat_choose_shared(VERBS_READ, true, true),
		verbs_lat_choose(VERBS_READ, true, true));
	bw_init(&b, 1, 8, 8, 4, IBV_WR_SEND);
	b.qp[0].srq = &b.dev.srq;
	b.dev.echo_sends = true;
	b.dev.credit_to = &b.credit_in[0];
	assert_int_equal(verbs_bw_choose_shared(false, true, true)(&b.b, 1001, &elapsed), 0);
	assert_int_equal(b.dev.received, 0);
	assert_int_equal(b.dev.shared_received, 1001);
}

/* ---- the cost of a loop ---------------------------------------------------------------------- */

static double cost(enum verbs_op op, enum ibv_wr_opcode opcode, unsigned rounds)
{
	static struct rig r;
	double best = 1e9;

	rig_init(&r, opcode);
	r.lat.wait.deadline = UINT64_MAX;
	for (unsigned i = 0; i < rounds; i++) {
		uint64_t t0 = fb_clock_ns();
		double each;
		if (verbs_lat_choose(op, false, true)(&r.lat, ITERS, &r.sink) != 0)
			return -1;
		each = (double)(fb_clock_ns() - t0) / ITERS;
		if (each < best)
			best = each;
	}
	return best;
}

static int print_cost(unsigned rounds)
{
	fb_clock_init();
	printf("  one iteration of our loop on a device that answers at once, in ns (aim: 30), its clock read "
	       "included:\n"
	       "  send %.1f  write %.1f  read %.1f  clock %.1f\n",
		cost(VERBS_SEND, IBV_WR_SEND, rounds), cost(VERBS_WRITE, IBV_WR_RDMA_WRITE, rounds),
		cost(VERBS_READ, IBV_WR_RDMA_READ, rounds),
		(double)fb_clock_info()->read_cost_ps / 1000);
	return 0;
}

/* For an instruction counter outside: rounds of the send loop and nothing else. */
static int run_only(unsigned rounds)
{
	return cost(VERBS_SEND, IBV_WR_SEND, rounds) < 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send_loop),
		cmocka_unit_test(software_devices_signal_each_send),
		cmocka_unit_test(send_server_answers_each),
		cmocka_unit_test(write_loop_wraps_its_sequence),
		cmocka_unit_test(read_loop_signals_each),
		cmocka_unit_test(silence_ends_at_the_deadline),
		cmocka_unit_test(another_rail_stops_this_one),
		cmocka_unit_test(a_failed_send_is_explained),
		cmocka_unit_test(immediates_are_checked_one_by_one),
		cmocka_unit_test(immediate_server_expects_the_same_numbers),
		cmocka_unit_test(atomics_fetch_what_the_one_before_left),
		cmocka_unit_test(a_lost_message_is_counted_and_no_sample),
		cmocka_unit_test(silence_of_a_lossy_peer_ends),
		cmocka_unit_test(a_lossy_deadline_holds),
		cmocka_unit_test(a_lossy_target_counts_by_number),
		cmocka_unit_test(shared_receive_queues_take_the_receives),
		cmocka_unit_test(swaps_compare_with_the_one_before),
		cmocka_unit_test(adds_of_all_queue_pairs_meet),
		cmocka_unit_test(bandwidth_checks_immediates),
		cmocka_unit_test(the_receiver_counts_what_came),
		cmocka_unit_test(writes_are_counted_exactly),
		cmocka_unit_test(a_rate_deals_as_the_target_expects),
		cmocka_unit_test(sender_stops_without_credits),
		cmocka_unit_test(credits_let_any_number_through),
		cmocka_unit_test(a_failed_write_is_explained),
		cmocka_unit_test(nothing_to_do_has_no_loop),
	};

	if (argc > 1 && !strcmp(argv[1], "--cost"))
		return print_cost(argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 2000);
	if (argc > 2 && !strcmp(argv[1], "--run"))
		return run_only((unsigned)strtoul(argv[2], NULL, 10));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
