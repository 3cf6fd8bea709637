// SPDX-License-Identifier: Apache-2.0
/*
 * The overview as a gnuplot script: places are given in pixels of a picture of 1920 x 1080 from its
 * upper left corner, and become gnuplot's shares of the screen in one function. Texts of the
 * document stand in single quotes, cut to the room they have.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/json.h"
#include "reports/headline.h"
#include "reports/png.h"

#define WIDTH    1920
#define HEIGHT   1080
#define MARGIN   48
#define GAP      18
#define CHARTS   372 /* where the charts begin */
#define LINE     26
#define FOOT     40
#define SHOWN    3    /* findings */
#define MOST     1.45 /* times a chart's own size: larger letters would shout */
#define FLATTEST 0.85 /* times a chart's own height, so that it fills what there is */
#define TALLEST  1.35
#define BOLDER   1.12 /* bold letters are so much wider */

static const json_t *get(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

/* ---- panels ---------------------------------------------------------------------------------- */

static bool on_hardware(const struct rep_chart *c)
{
	return strcmp(c->f->where, "hardware") == 0 && !c->f->loopback;
}

static bool is_before(const struct rep_chart *a, const struct rep_chart *b)
{
	if (a->kind != b->kind)
		return a->kind < b->kind;
	return on_hardware(a) && !on_hardware(b);
}

/* The best chart that is not taken; `fresh`: of a kind that is not. */
static const struct rep_chart *best(const struct rep_chart *v, size_t n,
	const struct rep_chart *const *taken, size_t ntaken, bool fresh)
{
	const struct rep_chart *b = NULL;
	for (size_t i = 0; i < n; i++) {
		bool out = false;
		for (size_t k = 0; k < ntaken; k++)
			out = out || taken[k] == &v[i] || (fresh && taken[k]->kind == v[i].kind);
		if (!out && (!b || is_before(&v[i], b)))
			b = &v[i];
	}
	return b;
}

static size_t foot_height(size_t findings)
{
	size_t shown = findings < SHOWN ? findings : SHOWN;
	return FOOT + (shown ? 2 * LINE * shown + 12 : 0);
}

size_t rep_panels(
	const struct rep_chart *v, size_t n, size_t findings, struct rep_panel p[REP_PANELS])
{
	const struct rep_chart *taken[REP_PANELS];
	size_t k = 0;
	for (const struct rep_chart *c; k < REP_PANELS; taken[k++] = c) {
		c = best(v, n, taken, k, true);
		if (!c)
			c = best(v, n, taken, k, false);
		if (!c)
			break;
	}
	int high = HEIGHT - CHARTS - (int)foot_height(findings) - GAP;
	for (size_t i = 0; i < k; i++) {
		int wide = (WIDTH - 2 * MARGIN - GAP * ((int)k - 1)) / (int)k;
		const struct rep_figure *f = taken[i]->f;
		double s = fmin((double)wide / f->width, (double)high / (f->height * FLATTEST));
		s = s < MOST ? s : MOST;
		p[i].f = f;
		p[i].scale = s;
		p[i].w = (int)(f->width * s);
		p[i].h = (int)fmin(high, f->height * s * TALLEST);
		p[i].x = MARGIN + (wide + GAP) * (int)i + (wide - p[i].w) / 2;
		p[i].y = CHARTS + (high - p[i].h) / 2;
	}
	return k;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

struct at {
	double x, y;
};

static struct at at(double x, double y)
{
	return (struct at){x / WIDTH, 1 - y / HEIGHT};
}

/* Width of the character at s in shares of the letters' size, a little too wide rather than too
 * narrow: DejaVu Sans has no table here. */
static double letter(const unsigned char *s)
{
	if (*s >= 0xe2)
		return 1; /* what may be as wide as it is high */
	if (*s >= 0x80)
		return 0.7;
	if (strchr(" iljtfI.,:;'|!/()[]-", *s))
		return 0.4;
	if (*s == 'm' || *s == 'w' || *s == 'M' || *s == 'W' || *s == '@' || *s == '%')
		return 1;
	return *s >= 'A' && *s <= 'Z' ? 0.74 : 0.64;
}

static double width_of(const char *text)
{
	double w = 0;
	for (const unsigned char *s = (const unsigned char *)text; *s; s++)
		if ((*s & 0xc0) != 0x80)
			w += letter(s);
	return w;
}

/* As much as fits into `room` times the letters' size, with "..." where more was left out. */
static void fit(struct fb_strbuf *b, const char *text, double room)
{
	double w = 0;
	size_t end = 0;
	if (width_of(text) <= room) {
		rep_gp_quoted(b, text);
		return;
	}
	for (size_t i = 0; text[i]; i++) {
		if (((unsigned char)text[i] & 0xc0) == 0x80)
			continue;
		w += letter((const unsigned char *)text + i);
		end = i;
		if (w > room - 1.2)
			break;
	}
	struct fb_strbuf cut = {0};
	fb_strbuf_addn(&cut, text, end);
	fb_strbuf_add(&cut, "...");
	rep_gp_quoted(b, cut.s ? cut.s : "");
	b->failed = b->failed || cut.failed;
	fb_strbuf_free(&cut);
}

struct type {
	int size; /* pixels */
	bool bold;
	const char *colour, *align;
};

/* The letters' middle stands at y. */
static void text(struct fb_strbuf *b, double x, double y, double room, struct type t, const char *s)
{
	struct at p = at(x, y);
	if (!*s)
		return;
	fb_strbuf_add(b, "set label ");
	fit(b, s, room / t.size / (t.bold ? BOLDER : 1));
	fb_strbuf_printf(b, " at screen %.5f, %.5f %s font 'DejaVu Sans%s,%d' textcolor rgb '%s'\n",
		p.x, p.y, t.align, t.bold ? ":Bold" : "", t.size, t.colour);
}

/* fill NULL: a border alone */
static void box(struct fb_strbuf *b, double x, double y, double w, double h, const char *fill,
	const char *border)
{
	struct at p = at(x, y + h), q = at(x + w, y);
	fb_strbuf_printf(b, "set object rectangle from screen %.5f, %.5f to screen %.5f, %.5f ",
		p.x, p.y, q.x, q.y);
	if (fill)
		fb_strbuf_printf(b, "fillcolor rgb '%s' fillstyle solid 1 noborder\n", fill);
	else
		fb_strbuf_printf(b, "fillstyle empty border linecolor rgb '%s'\n", border);
}

/* ---- the head -------------------------------------------------------------------------------- */

static void title_row(struct fb_strbuf *b, const json_t *doc)
{
	const json_t *run = get(doc, "run"), *hosts = get(get(doc, "system"), "hosts"), *h;
	const char *command = fb_json_str(run, "command", "run");
	char when[32];
	size_t i;
	struct fb_strbuf who = {0};
	snprintf(when, sizeof(when), "%.16s UTC", fb_json_str(run, "started", "?"));
	fb_strbuf_add(&who, when);
	json_array_foreach (hosts, i, h) {
		if (i == 3) {
			fb_strbuf_printf(&who, " and %zu more", json_array_size(hosts) - i);
			break;
		}
		fb_strbuf_printf(
			&who, "%s%.40s", i ? ", " : " \xc2\xb7 ", fb_json_str(h, "name", "?"));
	}
	double own = who.s ? fmin(width_of(who.s) * 16, 640) : 0;
	text(b, WIDTH - MARGIN, 54, 640, (struct type){16, false, "#5b6773", "right"},
		who.s ? who.s : "");
	text(b, MARGIN, 54, WIDTH - 2 * MARGIN - own - 40,
		(struct type){32, true, "#1f2933", "left"},
		fb_json_str(get(doc, "plan"), "title", command));
	b->failed = b->failed || who.failed;
	fb_strbuf_free(&who);
}

static const char *verdict_colour(const char *state)
{
	if (strcmp(state, "ACCEPTED") == 0 || strcmp(state, "complete") == 0)
		return "#1b7f4b";
	return strcmp(state, "REJECTED") == 0 || strcmp(state, "failed") == 0 ? "#b3261e"
									      : "#8f5100";
}

static void verdict_row(struct fb_strbuf *b, const json_t *doc)
{
	const json_t *v = get(doc, "verdict");
	const char *state = fb_json_str(v, "state", fb_json_str(get(doc, "run"), "outcome", "?"));
	const char *scope = v ? fb_json_str(v, "scope", fb_json_str(get(doc, "plan"), "scope", ""))
			      : "One command's document: an outcome, but no plan's verdict.";
	struct fb_strbuf line = {0};
	size_t n = strlen(state);
	double x = MARGIN, w = 22 * 0.8 * (double)(n < 20 ? n : 20) + 44;
	box(b, x, 88, w, 48, verdict_colour(state), NULL);
	text(b, x + w / 2, 112, w, (struct type){22, true, "#ffffff", "center"}, state);
	x += w + 16;
	for (size_t i = 0; i < REP_PLACES; i++) {
		const struct rep_place *p = &rep_places[i];
		const char *colour = i == 0 ? "#1b7f4b" : "#5b6773";
		if (!rep_has_place(doc, p))
			continue;
		w = 14 * 0.8 * (double)strlen(p->word) + 22;
		box(b, x, 96, w, 32, NULL, colour);
		text(b, x + w / 2, 112, w, (struct type){14, true, colour, "center"}, p->word);
		x += w + 10;
	}
	rep_scope_line(&line, doc);
	text(b, x + 8, 112, WIDTH - MARGIN - x - 8, (struct type){16, false, "#5b6773", "left"},
		line.s ? line.s : "");
	text(b, MARGIN, 166, WIDTH - 2 * MARGIN, (struct type){18, false, "#1f2933", "left"},
		scope);
	b->failed = b->failed || line.failed;
	fb_strbuf_free(&line);
}

/* Why the verdict is what it is, or, of an accepted run, what has changed. */
static void reason_row(struct fb_strbuf *b, const json_t *doc, const struct rep_since *since)
{
	const json_t *reasons = get(get(doc, "verdict"), "reasons");
	size_t n = json_array_size(reasons);
	const char *first = json_string_value(json_array_get(reasons, 0));
	char line[1024] = "";
	if (first && n > 1)
		snprintf(line, sizeof(line), "%.900s (and %zu more)", first, n - 1);
	else if (first)
		snprintf(line, sizeof(line), "%.1000s", first);
	else if (since && since->dir[0])
		snprintf(line, sizeof(line), "Since the last accepted run (%s, %.16s): %s%s%s",
			since->dir, since->started, since->facts[0] ? "another system: " : "",
			since->facts[0]      ? since->facts
			: since->n_moved > 0 ? since->moved[0]
					     : "no metric moved by more than its floor",
			!since->facts[0] && since->n_moved > 1 ? "; and more" : "");
	text(b, MARGIN, 196, WIDTH - 2 * MARGIN, (struct type){16, false, "#5b6773", "left"}, line);
}

static void tiles(struct fb_strbuf *b, const json_t *doc)
{
	struct rep_headline h[REP_HEADLINES];
	double w = (WIDTH - 2.0 * MARGIN - 3 * GAP) / 4;
	if (rep_headlines(doc, h) != 0) {
		b->failed = true;
		return;
	}
	for (size_t i = 0; i < REP_HEADLINES; i++) {
		double x = MARGIN + (w + GAP) * (double)i;
		char value[96] = "none", note[160] = "not measured on hardware", a[32], m[32];
		if (h[i].n > 0) {
			snprintf(value, sizeof(value), "%s %s worst",
				rep_num(h[i].worst, a, sizeof(a)), h[i].unit);
			int n = snprintf(note, sizeof(note), "median %s",
				rep_num(h[i].median, m, sizeof(m)));
			if (isfinite(h[i].bound))
				n += snprintf(note + n, sizeof(note) - (size_t)n, ", bound %s",
					rep_num(h[i].bound, a, sizeof(a)));
			snprintf(note + n, sizeof(note) - (size_t)n, ", n %zu", h[i].n);
		}
		box(b, x, 220, w, 128, NULL, "#dfe4e9");
		box(b, x, 220, w, 4, "#0b5394", NULL);
		text(b, x + 18, 246, w - 30, (struct type){16, false, "#1f2933", "left"},
			h[i].title);
		text(b, x + 18, 286, w - 30,
			(struct type){30, h[i].n > 0, h[i].n ? "#1f2933" : "#5b6773", "left"},
			value);
		text(b, x + 18, 326, w - 30, (struct type){15, false, "#5b6773", "left"}, note);
	}
}

/* ---- the foot -------------------------------------------------------------------------------- */

static void piece(struct fb_strbuf *b, const char *before, const char *s)
{
	if (s && *s)
		fb_strbuf_printf(b, "%s%s%s", b->len ? "  \xc2\xb7  " : "", before, s);
}

static void findings(struct fb_strbuf *b, const json_t *doc)
{
	struct rep_finding v[REP_FINDINGS];
	size_t all, n = rep_findings(doc, v, &all), shown = n < SHOWN ? n : SHOWN;
	double y = HEIGHT - (double)foot_height(n) + LINE / 2.0, room = WIDTH - 2 * MARGIN - 30;
	for (size_t i = 0; i < shown; i++, y += 2 * LINE) {
		struct fb_strbuf what = {0}, more = {0};
		char number[8];
		piece(&what, "", v[i].what);
		piece(&what, "", v[i].where);
		piece(&more, "", v[i].observed);
		piece(&more, "expected ", v[i].expected);
		piece(&more, "costs ", v[i].cost);
		piece(&more, "do: ", v[i].command);
		piece(&more, "most to gain: ", v[i].gain);
		snprintf(number, sizeof(number), "%zu.", i + 1);
		text(b, MARGIN, y, 60,
			(struct type){16, true, v[i].rank <= 2 ? "#b3261e" : "#1f2933", "left"},
			number);
		text(b, MARGIN + 30, y, room, (struct type){16, true, "#1f2933", "left"},
			what.s ? what.s : "");
		text(b, MARGIN + 30, y + LINE - 3, room,
			(struct type){15, false, "#465260", "left"}, more.s ? more.s : "");
		b->failed = b->failed || what.failed || more.failed;
		fb_strbuf_free(&what);
		fb_strbuf_free(&more);
	}
	if (all > shown) {
		char line[80];
		snprintf(line, sizeof(line), "%zu more findings in the report", all - shown);
		text(b, WIDTH - MARGIN, HEIGHT - 22, 500,
			(struct type){13, false, "#5b6773", "right"}, line);
	}
}

static void versions(struct fb_strbuf *b, const json_t *doc)
{
	const json_t *tool = get(doc, "tool");
	const json_t *host = json_array_get(get(get(doc, "system"), "hosts"), 0);
	const char *git = fb_json_str(tool, "git", "");
	struct fb_strbuf line = {0};
	fb_strbuf_printf(&line, "fabricbench %s%s%s%s", fb_json_str(tool, "version", "?"),
		*git ? " (" : "", git, *git ? ")" : "");
	piece(&line, "kernel ", fb_json_str(get(host, "kernel"), "release", ""));
	piece(&line, "run ", fb_json_str(get(doc, "run"), "id", ""));
	text(b, MARGIN, HEIGHT - 22, 1300, (struct type){13, false, "#5b6773", "left"},
		line.s ? line.s : "");
	b->failed = b->failed || line.failed;
	fb_strbuf_free(&line);
}

/* ---- the script ------------------------------------------------------------------------------ */

static void panel(struct fb_strbuf *b, const struct rep_panel *p, size_t i)
{
	struct at low = at(p->x, p->y + p->h), high = at(p->x + p->w, p->y);
	fb_strbuf_printf(b,
		"\n# %s\nset lmargin at screen %.6f\nset rmargin at screen %.6f\n"
		"set bmargin at screen %.6f\nset tmargin at screen %.6f\n"
		"set xrange [-0.5:%g]\nset yrange [-0.5:%g]\n"
		"plot 'report_panel_%zu.png' binary filetype=png with rgbimage notitle\n",
		p->f->id, low.x, high.x, low.y, high.y, p->w - 0.5, p->h - 0.5, i + 1);
}

void rep_overview_gp(struct fb_strbuf *b, const json_t *doc, const struct rep_since *since,
	const struct rep_panel *p, size_t n)
{
	fb_strbuf_printf(b,
		"# Redraw with: gnuplot report_overview.gp\nset encoding utf8\n"
		"if (strstrt(GPVAL_TERMINALS, 'pngcairo')) {\n"
		"\tset terminal pngcairo size %d,%d font 'DejaVu Sans,16' fontscale 0.75 noenhanced background '#ffffff'\n"
		"} else {\n"
		"\tset terminal png size %d,%d font 'DejaVu Sans,16' fontscale 0.75 noenhanced background '#ffffff'\n"
		"}\n"
		"set output 'report_overview.png'\nset multiplot\n"
		"unset border\nunset tics\nunset key\n",
		WIDTH, HEIGHT, WIDTH, HEIGHT);
	title_row(b, doc);
	verdict_row(b, doc);
	reason_row(b, doc, since);
	tiles(b, doc);
	findings(b, doc);
	versions(b, doc);
	if (n == 0)
		text(b, WIDTH / 2.0, CHARTS + 200, WIDTH,
			(struct type){18, false, "#5b6773", "center"},
			"No chart: the document has no result against a size.");
	fb_strbuf_add(b, "plot [0:1] [0:1] NaN notitle\nunset label\nunset object\n");
	for (size_t i = 0; i < n; i++)
		panel(b, &p[i], i);
	fb_strbuf_add(b, "unset multiplot\n");
}
