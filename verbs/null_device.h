/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A verbs device made of functions: posts and polls of libibverbs are calls through the context's
 * operations, so a fabricated context drives the product's own loops without hardware. It answers
 * every request at once (a send is answered by a send, a write by a write of the same last byte),
 * and can be told to fail or to fall silent. For tests and for measuring what a loop itself costs.
 */
#ifndef VERBS_NULL_DEVICE_H
#define VERBS_NULL_DEVICE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <string.h>

#define NULL_RING 16384

struct null_device {
	struct ibv_context ctx;
	struct ibv_qp qp[4];
	struct ibv_cq tx, rx;
	uint64_t tx_id[NULL_RING], rx_id[NULL_RING];
	uint32_t rx_imm[NULL_RING];
	unsigned tx_head, tx_tail, rx_head, rx_tail;
	volatile uint8_t *echo_to; /**< write: where the peer's answer lands */
	uint64_t posted, received; /**< work requests seen */
	uint64_t shared_received;  /**< receives posted to the shared receive queue */
	struct ibv_srq srq;
	uint64_t signaled;
	unsigned max_chain;
	uint64_t silent_after; /**< after so many sends nothing completes any more; 0: never */
	uint64_t fail_after;   /**< after so many sends the next one fails; 0: never */
	enum ibv_wc_status status;
	bool failed;
	bool echo_sends;  /**< a send makes a receive complete */
	bool keep_credit; /**< credit writes are looped back into this word */
	volatile uint64_t *credit_to;
	uint64_t lose_every; /**< every so many-th message is lost, and with it its answer; 0: none
			      */
	uint64_t lost;
	uint64_t word;      /**< what atomics work on */
	uint32_t wrong_imm; /**< flips these bits in the immediates of answers */
	unsigned arms;
};

static struct null_device *null_of(struct ibv_context *ctx)
{
	return (struct null_device *)(void *)ctx;
}

/* The word before, to the requester; a swap only when the comparison holds. */
static void null_atomic(struct null_device *d, const struct ibv_send_wr *wr)
{
	*(uint64_t *)(uintptr_t)wr->sg_list->addr = d->word;
	if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		d->word += wr->wr.atomic.compare_add;
	else if (d->word == wr->wr.atomic.compare_add)
		d->word = wr->wr.atomic.swap;
}

/* The peer's answer: memory first, then what completes here. */
static void null_answer(struct null_device *d, unsigned qp, const struct ibv_send_wr *wr)
{
	bool write = wr->opcode == IBV_WR_RDMA_WRITE || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;

	if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
		null_atomic(d, wr);
	if (d->echo_to && (write || d->echo_sends) && wr->num_sge && wr->sg_list->length)
		*d->echo_to = *((uint8_t *)(uintptr_t)wr->sg_list->addr + wr->sg_list->length - 1);
	if (d->credit_to && wr->wr_id >> 63)
		*d->credit_to = *(uint64_t *)(uintptr_t)wr->sg_list->addr;
	if (d->echo_sends && (wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM ||
				     wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)) {
		d->rx_imm[d->rx_tail % NULL_RING] = wr->imm_data ^ d->wrong_imm;
		d->rx_id[d->rx_tail++ % NULL_RING] = qp;
	}
}

static int null_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct null_device *d = null_of(qp->context);
	unsigned chain = 0;

	(void)bad;
	for (; wr; wr = wr->next, chain++) {
		d->posted++;
		if (d->silent_after && d->posted > d->silent_after)
			continue;
		if (d->fail_after && d->posted > d->fail_after) {
			d->failed = true;
			continue;
		}
		if (d->lose_every && d->posted % d->lose_every == 0)
			d->lost++;
		else
			null_answer(d, (unsigned)(qp - d->qp), wr);
		if (wr->send_flags & IBV_SEND_SIGNALED) {
			d->signaled++;
			d->tx_id[d->tx_tail++ % NULL_RING] = wr->wr_id;
		}
	}
	if (chain > d->max_chain)
		d->max_chain = chain;
	return 0;
}

static int null_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)wr;
	(void)bad;
	null_of(qp->context)->received++;
	return 0;
}

static int null_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)wr;
	(void)bad;
	null_of(srq->context)->shared_received++;
	return 0;
}

static int null_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct null_device *d = null_of(cq->context);
	int got = 0;

	if (cq == &d->tx && d->failed) {
		memset(wc, 0, sizeof *wc);
		wc->status = d->status;
		wc->vendor_err = 0x81;
		d->failed = false;
		d->silent_after = 1;
		return 1;
	}
	while (got < n) {
		if (cq == &d->tx) {
			if (d->tx_head == d->tx_tail)
				break;
			wc[got].wr_id = d->tx_id[d->tx_head++ % NULL_RING];
		} else {
			if (d->rx_head == d->rx_tail)
				break;
			wc[got].imm_data = d->rx_imm[d->rx_head % NULL_RING];
			wc[got].wr_id = d->rx_id[d->rx_head++ % NULL_RING];
		}
		wc[got++].status = IBV_WC_SUCCESS;
	}
	return got;
}

static int null_req_notify(struct ibv_cq *cq, int solicited)
{
	(void)solicited;
	null_of(cq->context)->arms++;
	return 0;
}

static void null_device_init(struct null_device *d)
{
	memset(d, 0, sizeof *d);
	d->ctx.ops.post_send = null_post_send;
	d->ctx.ops.post_recv = null_post_recv;
	d->ctx.ops.post_srq_recv = null_post_srq_recv;
	d->srq.context = &d->ctx;
	d->ctx.ops.poll_cq = null_poll_cq;
	d->ctx.ops.req_notify_cq = null_req_notify;
	for (unsigned q = 0; q < 4; q++) {
		d->qp[q].context = &d->ctx;
		d->qp[q].qp_num = q;
	}
	d->tx.context = d->rx.context = &d->ctx;
	d->status = IBV_WC_RETRY_EXC_ERR;
}

#endif
