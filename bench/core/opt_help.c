// SPDX-License-Identifier: Apache-2.0
/* The help of an option table: aligned columns, wrapped, with words, ranges and defaults. */
#include "bench/core/opt_impl.h"

#include <string.h>

#include "bench/core/strbuf.h"
#include "bench/core/units.h"

#define WIDTH    96 /* columns of the help */
#define MAX_LEFT 34 /* a longer option stands on a line of its own */

const char *fb_opt_arg_name(const struct fb_opt *o)
{
	static const char *const names[] = {[FB_OPT_FLAG] = "",
		[FB_OPT_INT] = "N",
		[FB_OPT_U64] = "N",
		[FB_OPT_DOUBLE] = "X",
		[FB_OPT_SIZE] = "SIZE",
		[FB_OPT_DURATION] = "TIME",
		[FB_OPT_RATE] = "RATE",
		[FB_OPT_STRING] = "TEXT",
		[FB_OPT_ENUM] = "WORD",
		[FB_OPT_LIST] = "LIST"};
	return o->arg ? o->arg : names[o->type];
}

/* Columns of UTF-8 text: every byte but the continuations. */
static int columns(const char *s, size_t len)
{
	int n = 0;
	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)s[i] & 0xc0) != 0x80;
	return n;
}

/*
 * Print words from column `at`, later lines from `indent`; a line's own leading blanks stay. What a
 * line of plain text has too many goes before the words of the next one, so that no paragraph has a
 * line of one word.
 */
static void wrap(FILE *out, const char *s, int indent, int at)
{
	bool fresh = true, flows = false;
	int extra = 0;
	while (*s) {
		bool join = flows && *s == '\n' && s[1] && s[1] != '\n' && s[1] != ' ';
		if (*s == '\n' && !join) {
			fputc('\n', out);
			s++;
			extra = (int)strspn(s, " ");
			s += extra;
			at = indent + extra;
			if (*s && *s != '\n')
				fprintf(out, "%*s", at, "");
			fresh = true;
			flows = false;
			continue;
		}
		size_t gap = join ? 1 : strspn(s, " "), len = strcspn(s + gap, " \n");
		int width = columns(s + gap, len);
		if (!fresh && at + (int)gap + width > WIDTH) {
			flows = indent + extra == 0;
			at = indent + extra;
			fprintf(out, "\n%*s", at, "");
		} else if (!fresh) {
			fprintf(out, "%*s", (int)gap, "");
			at += (int)gap;
		}
		fwrite(s + gap, 1, len, out);
		at += width;
		s += gap + len;
		fresh = false;
	}
	fputc('\n', out);
}

static bool flag_on(const struct fb_opt *o)
{
	bool on = false;
	return o->type == FB_OPT_FLAG && o->def && fb_opt_flag_value(&on, o->def, NULL) == 0 && on;
}

/* "-s, --size SIZE": returns its columns. */
static int left_text(const struct fb_opt_spec *spec, const struct fb_opt *o, char *buf, size_t len)
{
	struct found f;
	char letter[8] = "    ";
	/* An earlier table may have the letter. "-x" would set a flag that --no-x shows unset. */
	if (fb_opt_by_letter(spec, o->letter, &f) && f.opt == o && !flag_on(o))
		snprintf(letter, sizeof(letter), "-%c, ", o->letter);
	const char *arg = fb_opt_arg_name(o);
	snprintf(buf, len, "%s--%s%s%s%s", letter, flag_on(o) ? "no-" : "", o->name,
		*arg ? " " : "", arg);
	return columns(buf, strlen(buf));
}

void fb_opt_limit_text(const struct fb_opt *o, int64_t limit, char *buf, size_t len)
{
	if (o->type == FB_OPT_SIZE && limit >= 0)
		fb_fmt_size_exact((uint64_t)limit, buf, len);
	else if (o->type == FB_OPT_DURATION)
		fb_fmt_duration((double)limit, buf, len);
	else
		snprintf(buf, len, "%lld", (long long)limit);
}

static void add_range(struct fb_strbuf *b, const struct fb_opt *o)
{
	int64_t min, max;
	char lo[32], hi[32];
	if (!fb_opt_range(o, &min, &max))
		return;
	fb_opt_limit_text(o, min, lo, sizeof(lo));
	fb_opt_limit_text(o, max, hi, sizeof(hi));
	if (max == INT64_MAX)
		fb_strbuf_printf(b, "at least %s; ", lo);
	else
		fb_strbuf_printf(b, "%s to %s; ", lo, hi);
}

/* "message size (1 to 1G; default 64K)" */
static void right_text(struct fb_strbuf *b, const struct fb_opt *o)
{
	struct fb_strbuf d = {0};
	if (o->type == FB_OPT_ENUM) {
		for (int i = 0; o->names[i]; i++)
			fb_strbuf_printf(&d, "%s%s", i ? ", " : "", o->names[i]);
		fb_strbuf_add(&d, "; ");
	} else if (o->type == FB_OPT_LIST) {
		fb_strbuf_add(&d, o->whole ? "repeated; " : "comma-separated or repeated; ");
	}
	add_range(&d, o);
	if (o->positional)
		fb_strbuf_add(&d, "also as a bare argument; ");
	if (flag_on(o))
		fb_strbuf_add(&d, "done unless this is given; ");
	else if (o->type == FB_OPT_ENUM)
		fb_strbuf_printf(&d, "default %s; ", o->def ? o->def : o->names[0]);
	else if (o->def && *o->def && o->type != FB_OPT_FLAG)
		fb_strbuf_printf(&d, "default %s; ", o->def);
	fb_strbuf_add(b, o->help ? o->help : "");
	if (d.len > 2)
		fb_strbuf_printf(b, "%s(%.*s)", b->len ? " " : "", (int)d.len - 2, d.s);
	fb_strbuf_free(&d);
}

static void help_option(FILE *out, const char *left, int width, int column, const char *right)
{
	fprintf(out, "  %s", left);
	if (2 + width + 2 > column)
		fprintf(out, "\n%*s", column, "");
	else
		fprintf(out, "%*s", column - 2 - width, "");
	wrap(out, right, column, column);
}

void fb_opt_help(const struct fb_opt_spec *spec, FILE *out)
{
	char left[128];
	int column = (int)strlen("    --help") + 4;
	for_each_set (spec, s) {
		for_each_opt (spec, s, o) {
			int w = o->hidden ? 0 : left_text(spec, o, left, sizeof(left));
			if (w <= MAX_LEFT - 4 && w + 4 > column)
				column = w + 4;
		}
	}
	fprintf(out, "Usage: fabricbench %s %s\n", spec->command,
		spec->usage ? spec->usage : "[options]");
	if (spec->summary) {
		fputc('\n', out);
		wrap(out, spec->summary, 0, 0);
	}
	for_each_set (spec, s) {
		bool titled = false;
		for_each_opt (spec, s, o) {
			if (o->hidden)
				continue;
			if (!titled)
				fprintf(out, "\n%s:\n",
					spec->sets[s].title ? spec->sets[s].title : "Options");
			titled = true;
			int w = left_text(spec, o, left, sizeof(left));
			struct fb_strbuf right = {0};
			right_text(&right, o);
			help_option(out, left, w, column, right.s ? right.s : "");
			fb_strbuf_free(&right);
		}
	}
	struct found f;
	const char *help = fb_opt_by_letter(spec, 'h', &f) ? "    --help" : "-h, --help";
	fputc('\n', out);
	help_option(out, help, (int)strlen(help), column, "print this text");
	if (spec->notes) {
		fputc('\n', out);
		wrap(out, spec->notes, 0, 0);
	}
}
