// SPDX-License-Identifier: Apache-2.0
/* What messages carry: every message that the last ones of a batch left in a slot is looked at, and
 * one wrong byte in any of them is found. */
#include "bench/core/test.h"

#include <errno.h>
#include <string.h>

#include "verbs/null_device.h"
#include "verbs/state.h"

#define NQP   3
#define SLOTS 4
#define SPAN  256
#define SIZE  200

struct rig {
	uint8_t mem[NQP * (1 + SLOTS) * SPAN + 2 * NQP * 8];
	struct verbs_dev dev;
	struct verbs_job job;
	struct verbs_state s;
	unsigned first, n;
};

static struct verbs_rail *rig_open(struct rig *r, int post_list)
{
	memset(r, 0, sizeof *r);
	r->job.p.post_list = post_list;
	snprintf(r->dev.name, sizeof r->dev.name, "null0");
	r->s.job = &r->job;
	r->s.n = 1;
	r->s.rail[0] = (struct verbs_rail){.dev = &r->dev,
		.nqp = NQP,
		.slots = SLOTS,
		.span = SPAN,
		.buf = r->mem,
		.host = r->mem};
	return &r->s.rail[0];
}

/* The peer of rank 0 is rank 1. */
static void arrive(struct verbs_rail *r, unsigned q, unsigned slot)
{
	verbs_pattern_fill(r->buf + verbs_slot_off(r, q, slot), SIZE, 1, q);
}

static unsigned some(void *arg, unsigned q, unsigned *first)
{
	struct rig *r = arg;

	(void)q;
	*first = r->first;
	return r->n;
}

static void layout(void **state)
{
	struct rig r;
	struct verbs_rail *rail = rig_open(&r, 1);

	(void)state;
	assert_int_equal(verbs_send_off(rail, 2), 2 * SPAN);
	assert_int_equal(verbs_recv_off(rail, 0), 3 * SPAN);
	assert_int_equal(verbs_slot_off(rail, 2, 3), (3 + 2 * 4 + 3) * SPAN);
	assert_int_equal(verbs_credit_off(rail, 0), 15 * SPAN);
	assert_int_equal(verbs_credit_off(rail, 2 * NQP), sizeof r.mem);
	assert_int_equal(verbs_credit_src_off(rail, 1), 15 * SPAN + 4 * 8);
}

static void written_slots(void **state)
{
	struct rig r;
	struct verbs_rail *rail = rig_open(&r, 1);

	(void)state;
	assert_int_equal(verbs_slots_written(&r.s, rail, 0, 0), 0);
	assert_int_equal(verbs_slots_written(&r.s, rail, 0, 4), 2);
	assert_int_equal(verbs_slots_written(&r.s, rail, 1, 4), 1);
	assert_int_equal(verbs_slots_written(&r.s, rail, 0, 1000), SLOTS);
	/* In chains of eight the first slot is sure, and all of them after four whole chains. */
	rail = rig_open(&r, 8);
	assert_int_equal(verbs_slots_written(&r.s, rail, 0, 1), 1);
	assert_int_equal(verbs_slots_written(&r.s, rail, 1, 1), 0);
	assert_int_equal(verbs_slots_written(&r.s, rail, 0, 3 * 31), 1);
	assert_int_equal(verbs_slots_written(&r.s, rail, 0, 3 * 32), SLOTS);
}

/* A wrong byte in any message of the sample, not only in the last one. */
static void finds_each(void **state)
{
	struct rig r;

	(void)state;
	for (unsigned q = 0; q < NQP; q++) {
		for (unsigned slot = 0; slot < SLOTS; slot++) {
			struct verbs_rail *rail = rig_open(&r, 1);
			struct fb_err e = {0};
			char want[64];
			unsigned next = 1;
			for (unsigned i = 0; i < NQP * SLOTS; i++)
				arrive(rail, i / SLOTS, i % SLOTS);
			r.first = 2;
			r.n = SLOTS;
			assert_int_equal(
				verbs_state_look(&r.s, rail, &next, SIZE, false, some, &r, &e), 0);
			rail->buf[verbs_slot_off(rail, q, slot) + 77] ^= 0x10;
			assert_int_equal(
				verbs_state_look(&r.s, rail, &next, SIZE, false, some, &r, &e),
				-EBADMSG);
			assert_int_equal(e.exit, FB_EXIT_WRONG_DATA);
			snprintf(want, sizeof want,
				"byte 77 of the message on null0, queue pair %u", q);
			assert_non_null(strstr(e.msg, want));
		}
	}
}

/* What was looked at must be written again: a message that never came is not mistaken for one. */
static void looks_at_new_ones(void **state)
{
	struct rig r;
	struct verbs_rail *rail = rig_open(&r, 1);
	struct fb_err e = {0};
	unsigned next = 0;

	(void)state;
	r.first = 3;
	r.n = 2; /* slots 3 and 0 */
	for (unsigned q = 0; q < NQP; q++) {
		arrive(rail, q, 3);
		arrive(rail, q, 0);
	}
	assert_int_equal(verbs_state_look(&r.s, rail, &next, SIZE, true, some, &r, &e), 0);
	for (unsigned q = 0; q < NQP; q++)
		arrive(rail, q, 3);
	arrive(rail, 0, 0);
	arrive(rail, 1, 0);
	assert_int_equal(verbs_state_look(&r.s, rail, &next, SIZE, true, some, &r, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "queue pair 2"));
}

/* Messages too large to look at all of them: each call takes the queue pair that comes next. */
static void takes_turns(void **state)
{
	static uint8_t mem[8u << 20];
	struct rig r;
	struct verbs_rail *rail = rig_open(&r, 1);
	struct fb_err e = {0};
	unsigned next = 0;
	const size_t size = 1u << 20;

	(void)state;
	*rail = (struct verbs_rail){
		.dev = &r.dev, .nqp = 3, .slots = 1, .span = size, .buf = mem, .host = mem};
	for (unsigned q = 0; q < 3; q++)
		verbs_pattern_fill(mem + verbs_slot_off(rail, q, 0), size, 1, q);
	mem[verbs_slot_off(rail, 1, 0) + 5] ^= 1;
	r.n = 1;
	assert_int_equal(verbs_state_look(&r.s, rail, &next, size, false, some, &r, &e), 0);
	assert_int_equal(next, 1);
	assert_int_equal(verbs_state_look(&r.s, rail, &next, size, false, some, &r, &e), -EBADMSG);
}

/* ---- the loops use the slots in turn -----------------------------------------------------------
 */

static uint64_t sent_to[64], received_at[64];
static unsigned nsent, nreceived;

static int note_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	for (const struct ibv_send_wr *w = wr; w && !(w->wr_id >> 63); w = w->next)
		if (nsent < 64)
			sent_to[nsent++] = w->wr.rdma.remote_addr;
	return null_post_send(qp, wr, bad);
}

static int note_receive(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	if (nreceived < 64)
		received_at[nreceived++] = wr->sg_list->addr;
	return null_post_recv(qp, wr, bad);
}

static void loops_take_turns(void **state)
{
	static struct null_device d;
	static uint8_t data[64];
	struct ibv_send_wr chain[3][2];
	struct ibv_sge sge = {.addr = (uintptr_t)data, .length = sizeof data};
	uint64_t credit_in = 0, credit_out = 0, elapsed = 0;
	struct fb_err err = {0};
	atomic_int stop = 0;
	struct verbs_bw_qp q = {.chain = chain[0],
		.credit_in = &credit_in,
		.credit_out = &credit_out,
		.rx_base = 1000,
		.rx_slot = 1};
	struct verbs_bw b = {.qp = &q,
		.nqp = 1,
		.depth = 4,
		.rx_depth = 4,
		.post_list = 2,
		.cq_mod = 1,
		.slots = 3,
		.span = 100,
		.what = "a send",
		.wait = {.stop = &stop, .deadline = fb_clock_ns() + 1000000000u, .e = &err}};

	(void)state;
	null_device_init(&d);
	d.ctx.ops.post_send = note_send;
	d.ctx.ops.post_recv = note_receive;
	d.echo_sends = true;
	d.credit_to = &credit_in;
	q.qp = &d.qp[0];
	q.credit_sge = (struct ibv_sge){.addr = (uintptr_t)&credit_out, .length = 8};
	q.credit_wr = (struct ibv_send_wr){.wr_id = VERBS_WR_CREDIT,
		.sg_list = &q.credit_sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED};
	q.rsge = (struct ibv_sge){.addr = 1100, .length = 64};
	q.rwr = (struct ibv_recv_wr){.sg_list = &q.rsge, .num_sge = 1};
	b.tx.cq = &d.tx;
	b.rx.cq = &d.rx;
	for (unsigned c = 0; c < 3; c++)
		for (unsigned k = 0; k < 2; k++)
			chain[c][k] = (struct ibv_send_wr){.sg_list = &sge,
				.num_sge = 1,
				.opcode = IBV_WR_SEND,
				.wr.rdma.remote_addr = 10 * (c + 1) + k};
	for (unsigned batch = 0; batch < 2; batch++) {
		static const uint64_t want[] = {10, 11, 20, 21, 30, 31, 10, 11};
		nsent = 0;
		assert_int_equal(verbs_bw_choose(true, false, true, true)(&b, 8, &elapsed), 0);
		assert_int_equal(nsent, 8);
		for (unsigned i = 0; i < 8; i++)
			assert_int_equal(sent_to[i], want[i]);
	}
	assert_int_equal(nreceived, 16);
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(received_at[i], 1000 + 100 * ((1 + i) % 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layout),
		cmocka_unit_test(written_slots),
		cmocka_unit_test(finds_each),
		cmocka_unit_test(looks_at_new_ones),
		cmocka_unit_test(takes_turns),
		cmocka_unit_test(loops_take_turns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
