// SPDX-License-Identifier: Apache-2.0
/*
 * Control messages from a hostile peer. The first byte chooses: the parsers over a buffer, or a
 * connection that reads the bytes through a socket as frames. What a parser accepts has to come out
 * as terminated text within its bounds.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/oob/oob_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool truth)
{
	if (!truth)
		abort();
}

static bool clean(const char *s, size_t cap)
{
	const size_t n = strnlen(s, cap);
	if (n == cap)
		return false;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			return false;
	return true;
}

static void bodies(const uint8_t *p, size_t n)
{
	struct oob_hello h;
	struct fb_err e;
	char version[OOB_VERSION], hosts[8][OOB_HOST], text[40];
	for (uint16_t protocol = OOB_PROTOCOL; protocol <= OOB_PROTOCOL + 1; protocol++)
		if (oob_hello_get(p, n, protocol, &h) == 0)
			must(clean(h.version, OOB_VERSION) && clean(h.host, OOB_HOST) &&
				clean(h.token, OOB_TOKEN));
	if (oob_err_get(p, n, version, &e) == 0)
		must(e.code <= 0 && clean(e.msg, sizeof(e.msg)) && clean(e.hint, sizeof(e.hint)));
	if (oob_welcome_get(p, n, hosts, 8) == 0)
		for (int i = 0; i < 8; i++)
			must(clean(hosts[i], OOB_HOST));
	must(clean(oob_printable(p, n, text, sizeof(text)), sizeof(text)));
}

static void stream(const uint8_t *p, size_t n)
{
	int fd[2];
	struct oob_conn c;
	if (n > 4096 || socketpair(AF_UNIX, SOCK_STREAM, 0, fd) != 0)
		return;
	oob_conn_init(&c, fd[0]);
	must(send(fd[1], p, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n);
	close(fd[1]);
	while (oob_conn_read(&c, OOB_MAX_DATA) == 1) {
		const struct oob_hdr h = c.h;
		uint8_t *body = oob_conn_take(&c);
		must(h.len <= oob_frame_limit(h.type));
		bodies(body, h.len);
		if (oob_conn_push(&c, body, h.len) != 0)
			free(body);
	}
	oob_conn_close(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct oob_hdr h;
	if (size < 1)
		return 0;
	if (data[0] & 1) {
		stream(data + 1, size - 1);
		return 0;
	}
	bodies(data + 1, size - 1);
	if (size > OOB_HDR)
		(void)oob_hdr_get(data + 1, &h);
	return 0;
}
