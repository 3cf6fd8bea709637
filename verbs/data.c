// SPDX-License-Identifier: Apache-2.0
/*
 * What messages carry: filled before a point, looked at after it. The pattern tells the sender, the
 * queue pair and the offset; which slots must hold it is the benchmarks' to know.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/log.h"
#include "verbs/state.h"

void verbs_state_prepare(struct verbs_state *s, const struct fb_point *p)
{
	unsigned first, count = verbs_point_rails(s, p, &first);
	struct fb_err why = {0};

	for (unsigned i = first; i < first + count; i++) {
		struct verbs_rail *r = &s->rail[i];
		for (unsigned q = 0; q < r->nqp; q++) {
			verbs_pattern_fill(r->host + verbs_send_off(r, q), p->size, s->rank, q);
			memset(r->host + verbs_recv_off(r, q), 0, r->slots * r->span);
		}
		if (verbs_rail_push(r, &why) != 0)
			fb_warn("filling the buffers: %s",
				why.msg); /* the check of the data fails then */
	}
	s->longest = 0;
	verbs_place_back(&s->placed);
	s->placed.moved = false;
	s->thread_node[first] = verbs_place_thread(
		verbs_place_node(s->job->p.numa, s->rail[first].dev->numa_node), &s->placed);
	snprintf(s->what, sizeof s->what, "%s of %llu B from %s to %s on %s",
		verbs_ops[verbs_point_op(p)].name, (unsigned long long)p->size,
		s->rail[first].dev->name, s->rail[first].remote.device, s->rail[first].remote.host);
}

int verbs_state_check_slot(struct verbs_state *s, const struct verbs_rail *r, unsigned q,
	unsigned slot, size_t bytes, struct fb_err *e)
{
	const uint8_t *got = r->host + verbs_slot_off(r, q, slot) + r->grh;
	unsigned peer = s->rank ^ 1;
	size_t at = verbs_pattern_check(got, bytes, peer, q);
	uint8_t want, *all;

	if (!at)
		return 0;
	all = malloc(at);
	if (!all)
		return fb_fail(e, FB_EXIT_WRONG_DATA, EBADMSG, "wrong data at byte %zu of a %s",
			at - 1, s->what);
	verbs_pattern_fill(all, at, peer, q);
	want = all[at - 1];
	free(all);
	fb_fail(e, FB_EXIT_WRONG_DATA, EBADMSG,
		"wrong data: byte %zu of the message on %s, queue pair %u, is 0x%02x and should be "
		"0x%02x (%s)",
		at - 1, r->dev->name, q, got[at - 1], want, s->what);
	fb_hint(e,
		"look at counters of corruption (icrc), memory errors (edac) and IOMMU messages in "
		"dmesg at both ends");
	return -EBADMSG;
}

int verbs_state_check_data(
	struct verbs_state *s, const struct fb_point *p, size_t bytes, struct fb_err *e)
{
	unsigned first, count = verbs_point_rails(s, p, &first);

	for (unsigned i = first; i < first + count; i++) {
		struct verbs_rail *r = &s->rail[i];
		int rc = verbs_rail_pull(r, e);
		for (unsigned q = 0; rc == 0 && q < r->nqp && q < s->longest; q++)
			for (unsigned k = 0;
				rc == 0 && k < verbs_slots_written(s, r, q, s->longest); k++)
				rc = verbs_state_check_slot(s, r, q, k, bytes, e);
		if (rc)
			return rc;
	}
	return 0;
}

/** A few milliseconds' worth of looking. */
#define LOOK_BYTES (1u << 20)

int verbs_state_look(struct verbs_state *s, struct verbs_rail *r, unsigned *next, size_t size,
	bool again, verbs_slots_fn slots, void *arg, struct fb_err *e)
{
	size_t left = size > LOOK_BYTES ? size : LOOK_BYTES;
	int rc = verbs_rail_pull(r, e);

	for (unsigned i = 0; rc == 0 && i < r->nqp; i++) {
		unsigned first = 0, q = *next, n = slots(arg, q, &first);
		for (unsigned k = 0; rc == 0 && k < n && left >= size; k++) {
			unsigned slot = (first + k) % r->slots;
			left -= size;
			rc = verbs_state_check_slot(s, r, q, slot, size, e);
			if (rc == 0 && again && r->host == r->buf)
				memset(r->buf + verbs_slot_off(r, q, slot), 0, r->span);
		}
		*next = q + 1 < r->nqp ? q + 1 : 0;
		if (left < size)
			break;
	}
	return rc;
}

unsigned verbs_slots_written(
	const struct verbs_state *s, const struct verbs_rail *r, unsigned q, uint64_t iters)
{
	const struct verbs_params *p = &s->job->p;
	uint64_t list = (uint64_t)p->post_list;
	uint64_t mine = verbs_dealt(iters, r->nqp, p->rate ? (unsigned)p->post_list : 1, q);

	/* Chains go to the slots in turn, and a full queue may cut one short: so many are enough
	 * whatever their lengths. */
	if (mine >= r->slots * list)
		return r->slots;
	return list == 1 ? (unsigned)mine : mine > 0;
}

int verbs_state_wrong_values(
	struct verbs_state *s, enum verbs_op op, uint64_t wrong, struct fb_err *e)
{
	fb_fail(e, FB_EXIT_WRONG_DATA, EBADMSG, "wrong data: %llu %s not the expected one (%s)",
		(unsigned long long)wrong,
		verbs_ops[op].atomic ? "times the value that an atomic fetched was"
				     : "times the immediate of a message was",
		s->what);
	fb_hint(e,
		"does another program use this device's memory or queue pairs? compare firmware of "
		"both NICs (ethtool -i)");
	return -EBADMSG;
}

int verbs_state_check_words(struct verbs_state *s, const struct fb_point *p, const uint64_t *done,
	unsigned n, struct fb_err *e)
{
	unsigned first, count = verbs_point_rails(s, p, &first);

	for (unsigned i = first; i < first + count; i++) {
		const struct verbs_rail *r = &s->rail[i];
		for (unsigned q = 0; q < n; q++) {
			uint64_t got =
				*(const volatile uint64_t *)(const void *)(r->buf +
									   verbs_recv_off(r, q));
			if (got == done[q])
				continue;
			fb_fail(e, FB_EXIT_WRONG_DATA, EBADMSG,
				"wrong data: word %u on %s holds %llu after %llu atomics (%s)", q,
				r->dev->name, (unsigned long long)got, (unsigned long long)done[q],
				s->what);
			fb_hint(e,
				"does the device keep atomics of several queue pairs apart? look "
				"at atomic_cap in ibv_devinfo -v at both ends");
			return -EBADMSG;
		}
	}
	return 0;
}
