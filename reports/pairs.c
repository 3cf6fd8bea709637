// SPDX-License-Identifier: Apache-2.0
/*
 * The matrix of pairs as a picture and a section. Nothing of the document is believed: a host or
 * rail out of range leaves its pair out. A fleet of more hosts than the picture has places shares
 * places, and each shows the worst pair in it: what is slow stays visible.
 */
#include "reports/pairs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/log.h"
#include "bench/core/units.h"

#define MAX_PLACES 256
#define MAX_MAPS   64
#define MAX_HOSTS  (1u << 20)
#define MAX_TICS   24
#define MAX_ROWS   32

static const json_t *get(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

/* ---- order ----------------------------------------------------------------------------------- */

struct seat {
	const char *rack, *name;
	size_t host;
};

static int by_rack(const void *a, const void *b)
{
	const struct seat *x = a, *y = b;
	int c = strcmp(x->rack, y->rack);

	return c ? c : (x->host > y->host) - (x->host < y->host);
}

/* One rail's matrix: share of the median in percent, NAN where no pair was measured. */
struct matrix {
	struct seat *seat;  /* in the picture's order */
	size_t *place_of;   /* of a host */
	size_t hosts, side; /* side: places */
	double *cell;
	double median, worst;
	size_t pairs;
	bool lower; /* the metric is better low: red is high */
};

static void matrix_free(struct matrix *x)
{
	free(x->seat);
	free(x->place_of);
	free(x->cell);
}

static int seat_hosts(struct matrix *x, const json_t *hosts)
{
	x->hosts = json_array_size(hosts);
	if (x->hosts < 2 || x->hosts > MAX_HOSTS)
		return -EINVAL;
	x->side = x->hosts < MAX_PLACES ? x->hosts : MAX_PLACES;
	x->seat = calloc(x->hosts, sizeof(*x->seat));
	x->place_of = calloc(x->hosts, sizeof(*x->place_of));
	x->cell = malloc(x->side * x->side * sizeof(*x->cell));
	if (!x->seat || !x->place_of || !x->cell)
		return -ENOMEM;
	for (size_t i = 0; i < x->hosts; i++) {
		const json_t *h = json_array_get(hosts, i);
		x->seat[i] =
			(struct seat){fb_json_str(h, "rack", ""), fb_json_str(h, "name", "?"), i};
	}
	qsort(x->seat, x->hosts, sizeof(*x->seat), by_rack);
	for (size_t i = 0; i < x->hosts; i++)
		x->place_of[x->seat[i].host] = i * x->side / x->hosts;
	for (size_t i = 0; i < x->side * x->side; i++)
		x->cell[i] = NAN;
	return 0;
}

/* A launch of this rail with a value? */
static bool launch_of(const json_t *m, size_t rail, size_t hosts, size_t *a, size_t *b, double *v)
{
	const json_t *ja = json_array_get(m, 0), *jb = json_array_get(m, 1),
		     *jr = json_array_get(m, 2), *jv = json_array_get(m, 6);

	if (!json_is_integer(ja) || !json_is_integer(jb) || !json_is_integer(jr) ||
		!json_is_number(jv) || (size_t)json_integer_value(jr) != rail)
		return false;
	*a = (size_t)json_integer_value(ja);
	*b = (size_t)json_integer_value(jb);
	*v = json_number_value(jv);
	return *a < hosts && *b<hosts && * v> 0;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int fill(struct matrix *x, const json_t *run, size_t rail)
{
	const json_t *all = get(run, "measured"), *m;
	double *values = calloc(json_array_size(all) + 1, sizeof(*values)), v;
	size_t i, a, b;

	if (!values)
		return -ENOMEM;
	json_array_foreach (all, i, m)
		if (launch_of(m, rail, x->hosts, &a, &b, &v))
			values[x->pairs++] = v;
	x->lower = strcmp(fb_json_str(run, "better", ""), "lower") == 0;
	qsort(values, x->pairs, sizeof(*values), by_value);
	x->median = x->pairs ? values[x->pairs / 2] : NAN;
	free(values);
	json_array_foreach (all, i, m) {
		if (!launch_of(m, rail, x->hosts, &a, &b, &v))
			continue;
		double share = 100 * v / x->median;
		size_t p = x->place_of[a], q = x->place_of[b];
		double *one = &x->cell[p * x->side + q], *two = &x->cell[q * x->side + p];
		if (isnan(*one) || (x->lower ? share > *one : share < *one))
			*one = *two = share;
		if (fabs(share - 100) > x->worst)
			x->worst = fabs(share - 100);
	}
	return 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

static void dat_text(struct fb_strbuf *b, const struct matrix *x)
{
	for (size_t p = 0; p < x->side; p++) {
		for (size_t q = 0; q < x->side; q++) {
			double v = x->cell[p * x->side + q];
			fb_strbuf_add(b, q ? "\t" : "");
			if (isnan(v))
				fb_strbuf_add(b, "NaN");
			else
				fb_strbuf_printf(b, "%.2f", v);
		}
		fb_strbuf_add(b, "\n");
	}
}

/* Where a rack begins; without racks, host names as far as there is room. */
static void tics(struct fb_strbuf *b, const struct matrix *x)
{
	bool racks = x->seat[x->hosts - 1].rack[0] != '\0';
	size_t marks = 0, step, seen = 0;

	for (size_t i = 0; i < x->hosts; i++)
		marks += !racks || i == 0 || strcmp(x->seat[i].rack, x->seat[i - 1].rack) != 0;
	step = (marks + MAX_TICS - 1) / MAX_TICS;
	fb_strbuf_add(b, "(");
	for (size_t i = 0; i < x->hosts; i++) {
		char name[40];
		if (racks && i > 0 && strcmp(x->seat[i].rack, x->seat[i - 1].rack) == 0)
			continue;
		if (seen++ % step != 0)
			continue;
		snprintf(name, sizeof(name), "%s", racks ? x->seat[i].rack : x->seat[i].name);
		fb_strbuf_add(b, seen > 1 ? ", " : "");
		rep_gp_quoted(b, name);
		fb_strbuf_printf(b, " %zu", i * x->side / x->hosts);
	}
	fb_strbuf_add(b, ")");
}

static void gp_text(struct fb_strbuf *b, struct rep_figure *f, const struct matrix *x)
{
	double span = x->worst < 10 ? 10 : x->worst > 50 ? 50 : ceil(x->worst);

	fb_strbuf_printf(b, "# Redraw with: gnuplot %s.gp\nset encoding utf8\n", f->id);
	f->width = 800;
	f->height = 720;
	rep_gp_terminal(b, f);
	fb_strbuf_add(b, "set datafile separator \"\\t\" missing 'NaN'\nset title ");
	rep_gp_quoted(b, f->title);
	fb_strbuf_printf(b,
		"\nset size square\nset cbrange [%g:%g]\nset cblabel 'Share of the median [%%]'\n"
		"set palette defined (0 '#b2182b', 1 '#f7d9c8', 2 '#f4f4f4', 3 '#cfe3f1', 4 '#2166ac')\n"
		"%s"
		"set tics out nomirror textcolor rgb '#333333'\nset xtics rotate ",
		100 - span, 100 + span, x->lower ? "set palette negative\n" : "");
	tics(b, x);
	fb_strbuf_add(b, "\nset ytics ");
	tics(b, x);
	fb_strbuf_printf(b, "\nset xrange [-0.5:%g]\nset yrange [%g:-0.5]\n", (double)x->side - 0.5,
		(double)x->side - 0.5);
	fb_strbuf_printf(b, "plot '%s.dat' matrix with image notitle\n", f->id);
}

/* ---- maps ------------------------------------------------------------------------------------ */

static int make_map(struct rep_maps *all, const json_t *run, size_t at, size_t rail, size_t first,
	const char *dir, char *why, size_t len, struct fb_err *e)
{
	struct rep_map *m = &all->v[all->n];
	struct matrix x = {0};
	struct fb_strbuf b = {0};
	struct fb_err one = {0};
	char level[40];
	int rc = seat_hosts(&x, get(run, "hosts"));

	if (rc == 0)
		rc = fill(&x, run, rail);
	if (rc == -EINVAL || (rc == 0 && x.pairs == 0)) {
		matrix_free(&x);
		return 0; /* nothing to draw */
	}
	memset(m, 0, sizeof(*m));
	m->run = at;
	snprintf(m->f.id, sizeof(m->f.id), "pairs-%zu", first + all->n);
	if (!strcmp(fb_json_str(run, "unit", ""), "ns"))
		fb_fmt_duration(x.median, level, sizeof(level));
	else
		fb_fmt_gbps(x.median, level, sizeof(level));
	snprintf(m->f.title, sizeof(m->f.title), "Pairs, %.40s, rail %zu: 100 %% is %s",
		fb_json_str(run, "metric", "?"), rail, level);
	if (rc == 0) {
		dat_text(&b, &x);
		rc = rep_write_part(dir, m->f.id, "dat", &b, e);
	}
	if (rc == 0) {
		gp_text(&b, &m->f, &x);
		rc = rep_write_part(dir, m->f.id, "gp", &b, e);
	}
	if (rc == 0 && rep_plot_draw(&m->f, dir, &one) != 0) {
		if (!why[0])
			fb_log_err(&one);
		snprintf(why, len, "%s", one.msg);
	}
	fb_strbuf_free(&b);
	matrix_free(&x);
	all->n += rc == 0;
	return rc == -ENOMEM
		       ? fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for a map of pairs")
		       : rc;
}

int rep_maps_make(struct rep_maps *m, const json_t *doc, const char *dir, char *why, size_t len,
	struct fb_err *e)
{
	const json_t *runs = get(doc, "pairs"), *run;
	size_t i;
	int rc = 0;

	memset(m, 0, sizeof(*m));
	if (json_array_size(runs) == 0)
		return 0;
	m->v = calloc(MAX_MAPS, sizeof(*m->v));
	if (!m->v)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the maps of pairs");
	json_array_foreach (runs, i, run)
		for (size_t rail = 0;
			rc == 0 && m->n < MAX_MAPS && rail < json_array_size(get(run, "rails"));
			rail++)
			rc = make_map(m, run, i, rail, 1, dir, why, len, e);
	return rc;
}

void rep_maps_free(struct rep_maps *m)
{
	free(m->v);
	memset(m, 0, sizeof(*m));
}

/* ---- the section ----------------------------------------------------------------------------- */

static bool is_good(const char *judged)
{
	return !strcmp(judged, "good") || !strcmp(judged, "cleared");
}

static void bad_hosts(struct fb_strbuf *b, const json_t *run)
{
	const json_t *h;
	size_t i, n = 0;

	json_array_foreach (get(run, "hosts"), i, h) {
		const char *judged = fb_json_str(h, "judged", "?");
		double score = fb_json_num(h, "score", NAN);
		if (is_good(judged) || ++n > MAX_ROWS)
			continue;
		if (n == 1)
			fb_strbuf_add(b,
				"<div class=\"wide\"><table><thead><tr><th>host</th><th>rack</th>"
				"<th>state</th><th>judged</th><th>share of the level [%]</th>"
				"<th>reason</th></tr></thead><tbody>\n");
		fb_strbuf_add(b, "<tr>");
		rep_tag(b, "td", NULL, "%s", fb_json_str(h, "name", "?"));
		rep_tag(b, "td", NULL, "%s", fb_json_str(h, "rack", "-"));
		rep_tag(b, "td", NULL, "%s", fb_json_str(h, "state", "?"));
		rep_tag(b, "td", "invalid", "%s", judged);
		rep_tag(b, "td", "n", isfinite(score) ? "%.1f" : "-", 100 * score);
		rep_tag(b, "td", "long", "%s", fb_json_str(h, "reason", ""));
		fb_strbuf_add(b, "</tr>\n");
	}
	if (n > 0)
		fb_strbuf_add(b, "</tbody></table></div>\n");
	if (n > MAX_ROWS)
		rep_tag(b, "p", "quiet", "And %zu more hosts in the document.", n - MAX_ROWS);
}

static const char *end_of(const json_t *run, const json_t *link, const char *key)
{
	int64_t i = fb_json_int(link, key, -1);

	return i < 0 ? "?" : fb_json_str(json_array_get(get(run, "hosts"), (size_t)i), "name", "?");
}

static void bad_links(struct fb_strbuf *b, const json_t *run)
{
	const json_t *l;
	size_t i, n = 0;

	json_array_foreach (get(run, "links"), i, l) {
		double score = fb_json_num(l, "score", NAN);
		const char *state = fb_json_str(l, "state", "?");
		if (!strcmp(state, "cleared") || json_is_true(get(l, "by_node")) || ++n > MAX_ROWS)
			continue;
		fb_strbuf_add(b, n == 1 ? "<ul class=\"reasons\">\n<li>" : "<li>");
		rep_text(b, "link %s - %s, rail %lld: %s", end_of(run, l, "a"), end_of(run, l, "b"),
			(long long)fb_json_int(l, "rail", 0), state);
		if (isfinite(score))
			rep_text(b, ", %.1f %% of what its hosts reach elsewhere", 100 * score);
		fb_strbuf_add(b, "</li>\n");
	}
	if (n > 0)
		fb_strbuf_add(b, "</ul>\n");
}

static void one_run(struct fb_strbuf *b, const json_t *run, size_t at, const struct rep_maps *m,
	const char *no_plots)
{
	const json_t *a = get(run, "account");

	rep_tag(b, "p", NULL,
		"%s: %s. %lld hosts: %lld measured, %lld failed, %lld unreachable, %lld not run. Measured %s.",
		fb_json_str(run, "metric", "?"), fb_json_str(run, "verdict", "?"),
		(long long)fb_json_int(a, "expected", 0), (long long)fb_json_int(a, "measured", 0),
		(long long)fb_json_int(a, "failed", 0), (long long)fb_json_int(a, "unreachable", 0),
		(long long)fb_json_int(a, "not_run", 0),
		get(run, "simulation") ? "on a simulated fleet"
				       : rep_where_text(fb_json_str(run, "where", "?")));
	bad_hosts(b, run);
	bad_links(b, run);
	fb_strbuf_add(b, "<div class=\"figures\">\n");
	for (size_t i = 0; m && i < m->n; i++) {
		if (m->v[i].run != at)
			continue;
		fb_strbuf_printf(b, "<figure id=\"%s\">\n", m->v[i].f.id);
		if (!rep_html_image(b, m->v[i].f.svg, m->v[i].f.title))
			rep_tag(b, "p", "quiet", "%s. No picture: %s. The data are in %s.dat.",
				m->v[i].f.title, no_plots ? no_plots : "it could not be drawn",
				m->v[i].f.id);
		rep_tag(b, "figcaption", NULL,
			"Each measured pair as a share of the rail's median, hosts sorted by rack where known; white was not measured. A row in another colour is a host, a lone dot is a link. Of more than %d hosts neighbours share a place, which shows the worst pair.",
			MAX_PLACES);
		fb_strbuf_add(b, "</figure>\n");
	}
	fb_strbuf_add(b, "</div>\n");
}

void rep_html_pairs(
	struct fb_strbuf *b, const json_t *doc, const struct rep_maps *m, const char *no_plots)
{
	const json_t *runs = get(doc, "pairs"), *run;
	size_t i;

	if (json_array_size(runs) == 0)
		return;
	rep_tag(b, "h2", NULL, "Pairs");
	fb_strbuf_add(b, "\n");
	json_array_foreach (runs, i, run)
		one_run(b, run, i, m, no_plots);
}
