// SPDX-License-Identifier: Apache-2.0
/*
 * Lines of a text file and what stands in them. A line is bounded, a byte that no text holds ends
 * the reading, and every refusal names file and line.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "topo/fabric/fabric_priv.h"

int fabric_bad(struct fabric_reader *r, const char *fmt, ...)
{
	char why[400];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return fb_fail_usage(r->e, "%s:%u: %s", r->name, r->line, why);
}

int fabric_no_memory(struct fabric_reader *r, int rc)
{
	if (rc == -EFBIG)
		return fabric_bad(r, "more than %d nodes are no fabric", FABRIC_MAX_NODES);
	return fb_fail(r->e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the fabric of %s", r->name);
}

static bool starts(const char *s, const char *word)
{
	return strncmp(s, word, strlen(word)) == 0;
}

/* What the tools write to standard error while they look, where both went to one file:
 *   ibwarn: [2817] mad_rpc: _do_madrpc failed; dport (DR path slid 65535; dlid 65535; 0,1)
 *   src/query_smp.c:196; umad (DR path slid 0; dlid 0; 0,1 Attr 0x11:0) bad status 110; ...
 *   DR path slid 0; dlid 0; 0,1 -> new Switch {0000000000200002} portnum 0 lid 0-0 ""  (-s) */
static bool is_noise(const char *s)
{
	return starts(s, "ibwarn: [") || starts(s, "ibdebug: [") || starts(s, "DR path slid ") ||
	       ((starts(s, "src/") || starts(s, "./") || starts(s, "../")) && strstr(s, ".c:"));
}

/* What was written for a terminal and kept, as by script(1): "ESC [ 31 m", "ESC [ K". */
static bool drop_colours(char *s)
{
	char *to = strchr(s, '\033');
	if (!to)
		return false;
	for (const char *p = to; *p; p++) {
		size_t n = p[0] == '\033' && p[1] == '[' ? strspn(p + 2, "0123456789;") + 2 : 0;
		if (n && (p[n] == 'm' || p[n] == 'K'))
			p += n;
		else
			*to++ = *p;
	}
	*to = '\0';
	return true;
}

static int next_line(struct fabric_reader *r)
{
	if (r->at >= r->end)
		return 0;
	const char *nl = memchr(r->at, '\n', (size_t)(r->end - r->at));
	const char *stop = nl ? nl : r->end;
	size_t len = (size_t)(stop - r->at);
	r->line++;
	r->cut = !nl;
	if (memchr(r->at, '\0', len < FABRIC_LINE ? len : FABRIC_LINE)) {
		int rc = fabric_bad(r, "this is no text: it holds a byte of zero");
		fb_hint(r->e, "a file of --cache is binary: run ibnetdiscover without --cache");
		return rc;
	}
	if (len >= FABRIC_LINE)
		return fabric_bad(r, "a line of %zu bytes: no such line is longer than %d", len,
			FABRIC_LINE - 1);
	memcpy(r->text, r->at, len);
	r->from = r->at;
	while (len > 0 && isspace((unsigned char)r->text[len - 1]))
		len--;
	r->text[len] = '\0';
	if (drop_colours(r->text))
		r->from = NULL;
	r->at = nl ? nl + 1 : r->end;
	return 1;
}

int fabric_line(struct fabric_reader *r)
{
	int rc;
	while ((rc = next_line(r)) > 0 && is_noise(r->text))
		/* With -s what is told so is no warning. */
		if (r->f && !starts(r->text, "DR path "))
			r->f->noise++;
	return rc;
}

void fabric_hint_kind(struct fabric_reader *r)
{
	const char *s = r->text;
	if (starts(s, "Errors for") || starts(s, "   GUID") || starts(s, "# Port"))
		fb_hint(r->e, "counters go to --counters, beside the fabric's own file");
	else if (strstr(s, "==(") || starts(s, "CA: ") || starts(s, "Switch: "))
		fb_hint(r->e, "this is iblinkinfo's output: give it to --iblinkinfo");
	else if (starts(s, "vendid=") || starts(s, "Switch\t") || starts(s, "# Topology file"))
		fb_hint(r->e, "this is ibnetdiscover's output: give it to --ibnetdiscover");
	else
		fb_hint(r->e, "make it anew: ibnetdiscover > FILE, ibnetdiscover -p > FILE, or "
			      "iblinkinfo -l > FILE for --iblinkinfo");
}

void fabric_take_space(const char **s)
{
	while (**s == ' ' || **s == '\t')
		(*s)++;
}

bool fabric_take(const char **s, const char *word)
{
	if (!starts(*s, word))
		return false;
	*s += strlen(word);
	return true;
}

bool fabric_take_number(const char **s, unsigned max, unsigned *v)
{
	const char *p = *s;
	uint64_t n = 0;
	if (!isdigit((unsigned char)*p))
		return false;
	for (; isdigit((unsigned char)*p); p++) {
		n = n * 10 + (uint64_t)(*p - '0');
		if (n > max)
			return false;
	}
	*v = (unsigned)n;
	*s = p;
	return true;
}

bool fabric_take_hex(const char **s, uint64_t *v)
{
	const char *p = *s;
	uint64_t n = 0;
	int digits = 0;
	if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
		p += 2;
	for (; isxdigit((unsigned char)*p); p++) {
		char c = *p;
		if (++digits > 16)
			return false;
		n = n << 4 | (uint64_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	if (digits == 0)
		return false;
	*v = n;
	*s = p;
	return true;
}

bool fabric_take_quoted(const char **s, const char **text, size_t *len)
{
	const char *end = **s == '"' ? strchr(*s + 1, '"') : NULL;
	if (!end)
		return false;
	*text = *s + 1;
	*len = (size_t)(end - *text);
	*s = end + 1;
	return true;
}
