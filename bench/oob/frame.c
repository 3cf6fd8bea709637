// SPDX-License-Identifier: Apache-2.0
/*
 * Every byte of the tcp control channel: frames, hello, refusal, welcome. Pure functions over
 * buffers, so that a fuzz target can feed them (control_fuzz.c). Lengths are checked before use,
 * and texts from a peer lose their control characters here, before they reach a terminal or a
 * document.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/oob/oob_priv.h"
#include "version.h"

static const uint8_t magic[4] = {'F', 'B', 'O', 'C'};

/* ---- reading and writing -----------------------------------------------------------------------
 */

struct cur {
	const uint8_t *p;
	size_t left;
	bool bad;
};

static const uint8_t *take(struct cur *c, size_t n)
{
	if (c->bad || c->left < n) {
		c->bad = true;
		return NULL;
	}
	const uint8_t *p = c->p;
	c->p += n;
	c->left -= n;
	return p;
}

static uint32_t take_be(struct cur *c, unsigned bytes)
{
	const uint8_t *p = take(c, bytes);
	uint32_t v = 0;
	for (unsigned i = 0; p && i < bytes; i++)
		v = v << 8 | p[i];
	return v;
}

/* A text of at most cap-1 bytes; a longer one is an error, not cut. */
static void take_str(struct cur *c, unsigned len_bytes, char *out, size_t cap)
{
	const size_t n = take_be(c, len_bytes);
	out[0] = '\0';
	if (n >= cap)
		c->bad = true;
	const uint8_t *p = take(c, n);
	if (!p)
		return;
	for (size_t i = 0; i < n; i++)
		out[i] = p[i] < 0x20 || p[i] == 0x7f ? '?' : (char)p[i];
	out[n] = '\0';
}

static void put_be(struct fb_strbuf *b, uint32_t v, unsigned bytes)
{
	uint8_t p[4];
	for (unsigned i = 0; i < bytes; i++)
		p[i] = (uint8_t)(v >> (8 * (bytes - 1 - i)));
	fb_strbuf_addn(b, p, bytes);
}

static void put_str(struct fb_strbuf *b, unsigned len_bytes, const char *s)
{
	size_t n = strlen(s);
	if (len_bytes == 1 && n > 255)
		n = 255;
	put_be(b, (uint32_t)n, len_bytes);
	fb_strbuf_addn(b, s, n);
}

/* ---- frames ------------------------------------------------------------------------------------
 */

uint16_t oob_protocol(void)
{
	const char *s = getenv("FABRICBENCH_TEST_PROTOCOL"); /* test switch: play another version */
	if (s && isdigit((unsigned char)s[0]))
		return (uint16_t)strtoul(s, NULL, 10);
	return OOB_PROTOCOL;
}

bool oob_is_ours(const uint8_t *p, size_t n)
{
	return memcmp(p, magic, n < sizeof(magic) ? n : sizeof(magic)) == 0;
}

void oob_hdr_put(uint8_t p[OOB_HDR], enum oob_frame type, uint32_t len)
{
	const uint16_t protocol = oob_protocol();
	memcpy(p, magic, sizeof(magic));
	p[4] = (uint8_t)(protocol >> 8);
	p[5] = (uint8_t)protocol;
	p[6] = (uint8_t)type;
	p[7] = 0;
	for (int i = 0; i < 4; i++)
		p[8 + i] = (uint8_t)(len >> (24 - 8 * i));
}

int oob_hdr_get(const uint8_t p[OOB_HDR], struct oob_hdr *h)
{
	struct cur c = {p, OOB_HDR, false};
	if (!oob_is_ours(take(&c, sizeof(magic)), sizeof(magic)))
		return -EPROTO;
	h->protocol = (uint16_t)take_be(&c, 2);
	h->type = (uint8_t)take_be(&c, 1);
	take_be(&c, 1);
	h->len = take_be(&c, 4);
	return 0;
}

uint32_t oob_frame_limit(uint8_t type)
{
	switch (type) {
	case OOB_HELLO: return OOB_MAX_HELLO;
	case OOB_WELCOME: return OOB_MAX_WELCOME;
	case OOB_REFUSE:
	case OOB_ABORT: return 4096;
	case OOB_DATA: return OOB_MAX_DATA;
	default: return 0;
	}
}

/* ---- bodies ------------------------------------------------------------------------------------
 */

void oob_hello_put(struct fb_strbuf *b, const struct oob_hello *h)
{
	put_str(b, 1, h->version);
	put_str(b, 1, h->host);
	put_be(b, h->role, 1);
	put_be(b, (uint32_t)h->rank, 4);
	put_be(b, (uint32_t)h->size, 4);
	put_str(b, 1, h->token);
}

int oob_hello_get(const void *body, size_t len, uint16_t protocol, struct oob_hello *h)
{
	struct cur c = {body, len, false};
	memset(h, 0, sizeof(*h));
	take_str(&c, 1, h->version, sizeof(h->version));
	take_str(&c, 1, h->host, sizeof(h->host));
	if (protocol != oob_protocol())
		return c.bad ? -EPROTO : 0;
	h->role = (uint8_t)take_be(&c, 1);
	h->rank = (int)take_be(&c, 4);
	h->size = (int)take_be(&c, 4);
	take_str(&c, 1, h->token, sizeof(h->token));
	return c.bad || c.left != 0 ? -EPROTO : 0;
}

void oob_err_put(struct fb_strbuf *b, const struct fb_err *why)
{
	put_str(b, 1, FB_VERSION);
	put_be(b, (uint32_t)why->code, 4);
	put_be(b, (uint32_t)why->exit, 4);
	put_str(b, 2, why->msg);
	put_str(b, 2, why->hint);
}

int oob_err_get(const void *body, size_t len, char version[OOB_VERSION], struct fb_err *why)
{
	struct cur c = {body, len, false};
	memset(why, 0, sizeof(*why));
	take_str(&c, 1, version, OOB_VERSION);
	const int code = (int)take_be(&c, 4);
	const uint32_t status = take_be(&c, 4);
	take_str(&c, 2, why->msg, sizeof(why->msg));
	take_str(&c, 2, why->hint, sizeof(why->hint));
	/* A code is a negative errno, and an exit status one of ours: a peer's bytes decide no
	 * more. */
	if (c.bad || c.left != 0 || code > 0 || code < -4095) {
		memset(why, 0, sizeof(*why));
		return -EPROTO;
	}
	why->code = code;
	why->exit = status == FB_EXIT_FAILED || status == FB_EXIT_USAGE ||
				    status == FB_EXIT_WRONG_DATA || status == FB_EXIT_SKIP
			    ? (enum fb_exit)status
			    : FB_EXIT_UNMEASURED;
	return 0;
}

void oob_welcome_put(struct fb_strbuf *b, const char (*hosts)[OOB_HOST], int size)
{
	put_str(b, 1, FB_VERSION);
	put_be(b, (uint32_t)size, 4);
	for (int i = 0; i < size; i++)
		put_str(b, 1, hosts[i]);
}

int oob_welcome_get(const void *body, size_t len, char (*hosts)[OOB_HOST], int size)
{
	struct cur c = {body, len, false};
	char version[OOB_VERSION];
	take_str(&c, 1, version, sizeof(version));
	if (take_be(&c, 4) != (uint32_t)size)
		return -EPROTO;
	for (int i = 0; i < size && !c.bad; i++)
		take_str(&c, 1, hosts[i], OOB_HOST);
	return c.bad || c.left != 0 ? -EPROTO : 0;
}

/* ---- words -------------------------------------------------------------------------------------
 */

const char *oob_printable(const void *p, size_t n, char *buf, size_t len)
{
	const unsigned char *s = p;
	size_t k = 0;
	for (; k < n && k < 24 && k + 4 < len && s[k] != '\r' && s[k] != '\n'; k++)
		buf[k] = s[k] < 0x20 || s[k] >= 0x7f ? '?' : (char)s[k];
	buf[k] = '\0';
	if (k < n && k == 24)
		snprintf(buf + k, len - k, "...");
	return buf;
}

bool oob_token_equal(const char *a, const char *b)
{
	const size_t n = strlen(a), m = strlen(b);
	unsigned char diff = n != m;
	for (size_t i = 0; i < n; i++)
		diff |= (unsigned char)(a[i] ^ b[m > 0 ? i % m : 0]);
	return diff == 0;
}

void oob_missing(struct fb_strbuf *b, const bool *has, int n)
{
	bool first = true;
	for (int i = 0; i < n; i++) {
		if (has[i])
			continue;
		int last = i;
		while (last + 1 < n && !has[last + 1])
			last++;
		fb_strbuf_printf(b, first ? "%d" : ", %d", i);
		if (last > i)
			fb_strbuf_printf(b, last == i + 1 ? ", %d" : "-%d", last);
		first = false;
		i = last;
	}
}
