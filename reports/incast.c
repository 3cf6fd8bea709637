// SPDX-License-Identifier: Apache-2.0
/*
 * Results of verbs.incast gathered by step. They have no size to be drawn against: what varies is
 * the number of senders. Nothing of the document is believed: a number of senders out of range
 * leaves its result out.
 */
#include "reports/incast.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/log.h"

#define MAX_INCASTS 64
#define MAX_ROWS    64
#define GBPS        (8 / 1e9)

static const json_t *get(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

/* ---- gathering ------------------------------------------------------------------------------- */

/* The victim's results differ from the senders' in the operation, and in what only a probe has. */
static void key_of(const json_t *r, char *buf, size_t len)
{
	static const char *const shared[] = {
		"message_size", "depth", "rate", "traffic_class", "sl", "mtu", "device"};
	const json_t *params = get(r, "params");
	size_t n = (size_t)snprintf(buf, len, "%.40s/%lld/%.20s", fb_json_str(r, "job", ""),
		(long long)fb_json_int(r, "launch", 0), fb_json_str(r, "where", "?"));

	for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]) && n < len; i++) {
		const json_t *v = get(params, shared[i]);
		if (json_is_string(v))
			n += (size_t)snprintf(buf + n, len - n, "/%.24s", json_string_value(v));
		else
			n += (size_t)snprintf(
				buf + n, len - n, "/%lld", (long long)json_integer_value(v));
	}
}

static void title_of(struct rep_incast *x, const json_t *r)
{
	const json_t *params = get(r, "params"), *rate = get(params, "rate");
	const char *job = fb_json_str(r, "job", "");
	char limit[60] = "as fast as they can";

	if (json_is_integer(rate))
		snprintf(limit, sizeof(limit), "%.4g Gb/s each",
			(double)json_integer_value(rate) * GBPS);
	snprintf(x->f.title, sizeof(x->f.title),
		"Incast%s%.40s: messages of %lld B, depth %lld, %s", *job ? ", " : "", job,
		(long long)fb_json_int(params, "message_size", 0),
		(long long)fb_json_int(params, "depth", 0), limit);
	snprintf(x->f.where, sizeof(x->f.where), "%s", fb_json_str(r, "where", "?"));
}

static struct rep_incast *incast_for(struct rep_incasts *all, const json_t *r)
{
	char key[sizeof(all->v->key)];
	struct rep_incast *x;

	key_of(r, key, sizeof(key));
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->v[i].key, key) == 0)
			return &all->v[i];
	if (all->n == MAX_INCASTS)
		return NULL;
	x = &all->v[all->n];
	memset(x, 0, sizeof(*x));
	x->step = calloc(REP_INCAST_STEPS, sizeof(*x->step));
	if (!x->step)
		return NULL;
	for (size_t i = 0; i < REP_INCAST_STEPS; i++)
		x->step[i] = (struct rep_incast_step){
			false, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, 0, ""};
	memcpy(x->key, key, sizeof(key));
	snprintf(x->f.id, sizeof(x->f.id), "incast-%zu", ++all->n);
	title_of(x, r);
	return x;
}

static void add_senders(struct rep_incast_step *s, const json_t *per_rank)
{
	double sum = 0;
	size_t i, n = 0;
	const json_t *one;

	json_array_foreach (per_rank, i, one) {
		double v = fb_json_num(one, "value", NAN) * GBPS;
		if (!isfinite(v))
			continue;
		s->lowest = n == 0 || v < s->lowest ? v : s->lowest;
		s->highest = n == 0 || v > s->highest ? v : s->highest;
		sum += v;
		n++;
	}
	if (n > 0)
		s->mean = sum / (double)n;
}

static void add_validity(struct rep_incast_step *s, const json_t *validity)
{
	const char *state = fb_json_str(validity, "state", "valid");
	const int v = strcmp(state, "invalid") == 0 ? 2 : strcmp(state, "valid") == 0 ? 0 : 1;
	const char *why = json_string_value(json_array_get(get(validity, "reasons"), 0));

	if (v <= s->valid)
		return;
	s->valid = v;
	snprintf(s->why, sizeof(s->why), "%s", why ? why : state);
}

static void add_result(struct rep_incast *x, const json_t *r)
{
	const int64_t n = fb_json_int(get(r, "params"), "senders", -1);
	const char *metric = fb_json_str(r, "metric", "");
	const double v = fb_json_num(r, "value", NAN);
	const json_t *stats = get(r, "stats");

	if (!x->step || n < 0 || n >= REP_INCAST_STEPS)
		return;
	struct rep_incast_step *s = &x->step[n];
	s->any = true;
	if ((unsigned)n > x->most)
		x->most = (unsigned)n;
	if (strcmp(metric, "goodput") == 0) {
		s->sum = v * GBPS;
		add_senders(s, get(r, "per_rank"));
	} else if (strcmp(metric, "fairness") == 0) {
		s->fairness = v;
	} else if (strcmp(metric, "latency") == 0) {
		s->p50 = v / 1e3;
		s->p99 = fb_json_num(stats, "p99", NAN) / 1e3;
		x->victim = true;
	} else if (strcmp(metric, "victim_p99_ratio") == 0) {
		s->p99_ratio = v;
	}
	add_validity(s, get(r, "validity"));
}

/* ---- files ----------------------------------------------------------------------------------- */

static void cell(struct fb_strbuf *b, double v)
{
	if (isfinite(v))
		fb_strbuf_printf(b, "\t%.6g", v);
	else
		fb_strbuf_add(b, "\tNaN");
}

static void dat_text(struct fb_strbuf *b, const struct rep_incast *x)
{
	fb_strbuf_add(b, "# columns: senders\tgoodput_Gb/s\tlowest_sender_Gb/s\tmean_sender_Gb/s\t"
			 "highest_sender_Gb/s\tfairness\tvictim_p50_us\tvictim_p99_us\tvalidity\n");
	for (unsigned n = 0; x->step && n <= x->most; n++) {
		const struct rep_incast_step *s = &x->step[n];
		if (!s->any)
			continue;
		fb_strbuf_printf(b, "%u", n);
		cell(b, s->sum);
		cell(b, s->lowest);
		cell(b, s->mean);
		cell(b, s->highest);
		cell(b, s->fairness);
		cell(b, s->p50);
		cell(b, s->p99);
		fb_strbuf_printf(b, "\t%d\n", s->valid);
	}
}

static void gp_text(struct fb_strbuf *b, struct rep_incast *x)
{
	const char *id = x->f.id;

	fb_strbuf_printf(
		b, "# Redraw with: gnuplot %s.gp\nset encoding utf8\nset colorsequence podo\n", id);
	x->f.width = 640;
	x->f.height = x->victim ? 760 : 520;
	rep_gp_terminal(b, &x->f);
	fb_strbuf_printf(b,
		"set datafile separator \"\\t\" missing 'NaN'\n"
		"set border 3 lc rgb '#888888'\nset tics nomirror out scale 0.8,0.4 textcolor rgb '#333333'\n"
		"set grid xtics ytics lc rgb '#e4e4e4' lw 1\nset key outside right top\n"
		"set xrange [%s:%g]\nset yrange [0:*]\nset xtics %u\nset lmargin 11\nset rmargin 20\n",
		x->victim ? "-0.2" : "0.8", (double)x->most + 0.2, x->most > 16 ? x->most / 8 : 1);
	fb_strbuf_printf(b, "set multiplot layout %d,1\nset title ", x->victim ? 3 : 2);
	rep_gp_quoted(b, x->f.title);
	fb_strbuf_printf(b,
		"\nset ylabel 'Goodput [Gb/s]'\n"
		"plot '%s.dat' using 1:2 with linespoints lc 6 pt 7 title 'all senders', \\\n"
		"  '' using 1:3:5 with filledcurves fs transparent solid 0.25 noborder lc 7 notitle, \\\n"
		"  '' using 1:4:3:5 with yerrorbars lc 7 pt 5 title 'each sender'\n",
		id);
	fb_strbuf_printf(b,
		"unset title\nset ylabel 'Jain fairness'\nset yrange [0:1.05]\n%s"
		"plot '%s.dat' using 1:6 with linespoints lc 4 pt 9 title 'fairness'\n",
		x->victim ? "" : "set xlabel 'Senders'\n", id);
	if (x->victim)
		fb_strbuf_printf(b,
			"set yrange [0:*]\nset ylabel 'Victim [us]'\nset xlabel 'Senders (0: the victim alone)'\n"
			"plot '%s.dat' using 1:7 with linespoints lc 6 pt 7 title 'p50', \\\n"
			"  '' using 1:8 with linespoints lc 7 pt 5 title 'p99'\n",
			id);
	fb_strbuf_add(b, "unset multiplot\n");
}

static int make_one(struct rep_incast *x, const char *dir, char *why, size_t len, struct fb_err *e)
{
	struct fb_strbuf b = {0};
	struct fb_err one = {0};
	int rc;

	dat_text(&b, x);
	rc = rep_write_part(dir, x->f.id, "dat", &b, e);
	if (rc != 0)
		return rc;
	gp_text(&b, x);
	rc = rep_write_part(dir, x->f.id, "gp", &b, e);
	if (rc == 0 && rep_plot_draw(&x->f, dir, &one) != 0) {
		if (!why[0])
			fb_log_err(&one);
		snprintf(why, len, "%s", one.msg);
	}
	return rc;
}

int rep_incasts_make(struct rep_incasts *all, const json_t *doc, const char *dir, char *why,
	size_t len, struct fb_err *e)
{
	const json_t *r;
	size_t i;
	int rc = 0;

	memset(all, 0, sizeof(*all));
	all->v = calloc(MAX_INCASTS, sizeof(*all->v));
	if (!all->v)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the incasts");
	json_array_foreach (get(doc, "results"), i, r) {
		struct rep_incast *x;
		if (strncmp(fb_json_str(r, "case", ""), "verbs.incast/", 13) != 0)
			continue;
		x = incast_for(all, r);
		if (x)
			add_result(x, r);
	}
	for (i = 0; rc == 0 && i < all->n; i++)
		rc = make_one(&all->v[i], dir, why, len, e);
	return rc;
}

void rep_incasts_free(struct rep_incasts *all)
{
	for (size_t i = 0; i < all->n; i++)
		free(all->v[i].step);
	free(all->v);
	memset(all, 0, sizeof(*all));
}

/* ---- the section ----------------------------------------------------------------------------- */

static void value(struct fb_strbuf *b, double v)
{
	char text[32];

	rep_tag(b, "td", "n", "%s", rep_num(v, text, sizeof(text)));
}

static void table(struct fb_strbuf *b, const struct rep_incast *x)
{
	static const char *const states[] = {"valid", "suspect", "invalid"};
	unsigned rows = 0;

	fb_strbuf_add(b,
		"<div class=\"wide\"><table><thead><tr><th>senders</th><th>goodput [Gb/s]</th>"
		"<th>lowest sender</th><th>mean</th><th>highest</th><th>fairness</th>"
		"<th>victim p50 [us]</th><th>p99 [us]</th><th>p99 over alone</th><th>validity</th>"
		"</tr></thead><tbody>\n");
	for (unsigned n = 0; n <= x->most && rows < MAX_ROWS; n++) {
		const struct rep_incast_step *s = &x->step[n];
		if (!s->any)
			continue;
		rows++;
		fb_strbuf_add(b, "<tr>");
		rep_tag(b, "td", "n", "%u", n);
		value(b, s->sum);
		value(b, s->lowest);
		value(b, s->mean);
		value(b, s->highest);
		value(b, s->fairness);
		value(b, s->p50);
		value(b, s->p99);
		value(b, s->p99_ratio);
		rep_tag(b, "td", states[s->valid], "%s%s%s", states[s->valid],
			s->why[0] ? ": " : "", s->why);
		fb_strbuf_add(b, "</tr>\n");
	}
	fb_strbuf_add(b, "</tbody></table></div>\n");
}

void rep_html_incasts(struct fb_strbuf *b, const struct rep_incasts *all, const char *no_plots)
{
	if (!all || all->n == 0)
		return;
	rep_tag(b, "h2", NULL, "Incast");
	fb_strbuf_add(b, "\n<div class=\"figures\">\n");
	for (size_t i = 0; i < all->n; i++) {
		const struct rep_incast *x = &all->v[i];
		fb_strbuf_printf(b, "<figure id=\"%s\">\n", x->f.id);
		if (!rep_html_image(b, x->f.svg, x->f.title))
			rep_tag(b, "p", "quiet", "%s. No picture: %s. The data are in %s.dat.",
				x->f.title, no_plots ? no_plots : "it could not be drawn", x->f.id);
		rep_tag(b, "figcaption", NULL,
			"Measured %s. Bars span the lowest and the highest sender. Fairness is Jain's index: 1 when all get the same, 1/N when one gets everything. The victim reads from a host that sends no incast, open loop, and shares the receiver's last hop.",
			rep_where_text(x->f.where));
		table(b, x);
		fb_strbuf_add(b, "</figure>\n");
	}
	fb_strbuf_add(b, "</div>\n");
}
