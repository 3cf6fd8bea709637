// SPDX-License-Identifier: Apache-2.0
/*
 * Is what arrived right? Two checks of the timed buffers. After every batch, outside the timed
 * part, windows of the receive buffer are compared with the pattern: all of it up to 1 MiB, 64
 * pieces of 4 KiB of a larger one; they were spoilt before the batch, so that a lost write shows.
 * After the last batch every byte is compared.
 */
#include <errno.h>
#include <string.h>

#include "bench/core/units.h"
#include "collectives/coll_priv.h"

#define WINDOW_ALL   (1u << 20)
#define WINDOW_BYTES 4096u
#define WINDOWS      64u
#define SPOIL        0xa5

static size_t elem_size(const struct coll_state *s)
{
	size_t n = coll_dtype_size(s->call.dtype);
	return n > 0 ? n : 1;
}

static size_t at_most(size_t a, size_t b)
{
	return a < b ? a : b;
}

int coll_fill(struct coll_state *s, struct fb_err *e)
{
	size_t elem = elem_size(s), per_chunk = COLL_CHUNK / elem;
	for (size_t i = 0; i < s->shape.send; i += per_chunk) {
		size_t n = at_most(per_chunk, s->shape.send - i);
		coll_pattern_send(&s->pattern, s->rank, i, n, s->want);
		int rc = s->ops->upload(s->comm, (char *)s->send + i * elem, s->want, n * elem, e);
		if (rc != 0)
			return rc;
	}
	memset(s->want, SPOIL, COLL_CHUNK);
	for (size_t at = 0, end = s->shape.recv * elem; at < end; at += COLL_CHUNK) {
		int rc = s->ops->upload(
			s->comm, (char *)s->recv + at, s->want, at_most(COLL_CHUNK, end - at), e);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* Windows of the receive buffer, in elements: how many, and the i-th. */
static unsigned windows(const struct coll_state *s)
{
	return s->shape.recv * elem_size(s) <= WINDOW_ALL ? 1 : WINDOWS;
}

static void window(const struct coll_state *s, unsigned i, size_t *first, size_t *n)
{
	size_t total = s->shape.recv;
	*first = 0;
	*n = total;
	if (windows(s) == 1)
		return;
	*n = WINDOW_BYTES / elem_size(s);
	*first = (total - *n) / (WINDOWS - 1) * i;
	if (i == WINDOWS - 1)
		*first = total - *n;
}

int coll_spoil_windows(struct coll_state *s, struct fb_err *e)
{
	size_t elem = elem_size(s), first, n;
	memset(s->want, SPOIL, COLL_CHUNK);
	for (unsigned i = 0; i < windows(s); i++) {
		window(s, i, &first, &n);
		int rc = s->ops->upload(
			s->comm, (char *)s->recv + first * elem, s->want, n * elem, e);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* Wrong elements of a piece; *where is the first one's index, set when *wrong was 0 before. */
static void compare(const struct coll_state *s, size_t first, size_t n, size_t *wrong,
	size_t *where, unsigned char (*sample)[2][8])
{
	size_t elem = elem_size(s);
	if (memcmp(s->got, s->want, n * elem) == 0)
		return;
	for (size_t i = 0; i < n; i++) {
		if (memcmp(s->got + i * elem, s->want + i * elem, elem) == 0)
			continue;
		if ((*wrong)++ == 0) {
			*where = first + i;
			memcpy((*sample)[0], s->want + i * elem, elem);
			memcpy((*sample)[1], s->got + i * elem, elem);
		}
	}
}

static int report(const struct coll_state *s, size_t wrong, size_t where, size_t looked,
	unsigned char (*sample)[2][8], struct fb_err *e)
{
	char size[32], want[64], got[64];
	size_t elem = elem_size(s), byte = 0;
	while (byte + 1 < elem && (*sample)[0][byte] == (*sample)[1][byte])
		byte++;
	fb_fail(e, FB_EXIT_WRONG_DATA, EBADMSG,
		"%s of %s over %s, %s: rank %d: wrong data at offset %zu (element %zu): expected %s, got %s; "
		"%zu of %zu elements looked at are wrong",
		coll_op_names[s->call.op], coll_dtype_names[s->call.dtype], s->ops->name,
		fb_fmt_size(s->shape.bytes, size, sizeof(size)), s->rank, where * elem + byte,
		where, coll_element_text(s->call.dtype, (*sample)[0], want, sizeof(want)),
		coll_element_text(s->call.dtype, (*sample)[1], got, sizeof(got)), wrong, looked);
	fb_hint(e,
		"run it again: an error that stays with one rank is that rank's memory, link or device; "
		"one that moves is the network or the library");
	return -EBADMSG;
}

int coll_check_windows(struct coll_state *s, struct fb_err *e)
{
	size_t elem = elem_size(s), first, n, wrong = 0, where = 0, looked = 0;
	unsigned char sample[2][8];
	for (unsigned i = 0; i < windows(s); i++) {
		window(s, i, &first, &n);
		int rc = s->ops->download(
			s->comm, s->got, (const char *)s->recv + first * elem, n * elem, e);
		if (rc != 0)
			return rc;
		coll_pattern_expect(&s->pattern, s->rank, first, n, s->want);
		compare(s, first, n, &wrong, &where, &sample);
		looked += n;
	}
	return wrong == 0 ? 0 : report(s, wrong, where, looked, &sample, e);
}

int coll_check_all(struct coll_state *s, struct fb_err *e)
{
	size_t elem = elem_size(s), per_chunk = COLL_CHUNK / elem, wrong = 0, where = 0;
	unsigned char sample[2][8];
	for (size_t i = 0; i < s->shape.recv; i += per_chunk) {
		size_t n = at_most(per_chunk, s->shape.recv - i);
		int rc = s->ops->download(
			s->comm, s->got, (const char *)s->recv + i * elem, n * elem, e);
		if (rc != 0)
			return rc;
		coll_pattern_expect(&s->pattern, s->rank, i, n, s->want);
		compare(s, i, n, &wrong, &where, &sample);
	}
	return wrong == 0 ? 0 : report(s, wrong, where, s->shape.recv, &sample, e);
}

int coll_inject(struct coll_state *s, struct fb_err *e)
{
	unsigned char byte;
	uint64_t at = s->w.inject_offset;
	if (s->w.inject_rank != s->rank || at >= s->shape.recv * elem_size(s))
		return 0;
	int rc = s->ops->download(s->comm, &byte, (const char *)s->recv + at, 1, e);
	if (rc != 0)
		return rc;
	byte ^= 0xff;
	return s->ops->upload(s->comm, (char *)s->recv + at, &byte, 1, e);
}
