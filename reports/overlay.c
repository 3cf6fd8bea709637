// SPDX-License-Identifier: Apache-2.0
/* What the page and the texts of an overlay share: its words. See overlay.h. */
#include "reports/overlay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"

static bool tells_its_machine(const struct overlay_run *r)
{
	const json_t *hosts = json_object_get(json_object_get(r->doc, "system"), "hosts");
	return json_array_size(hosts) > 0;
}

/* A plan's document has no options of its jobs; its plan.ini has. */
static bool tells_its_options(const struct overlay_run *r)
{
	const json_t *config = json_object_get(r->doc, "config");
	if (json_object_get(r->doc, "plan"))
		return r->plan != NULL;
	return json_object_size(json_object_get(config, "effective")) > 0;
}

enum overlay_likeness overlay_likeness(const struct overlay *o)
{
	if (o->n_facts > 0)
		return OVERLAY_DIFFERS;
	for (size_t i = 0; i < o->n; i++)
		if (!tells_its_machine(&o->run[i]) || !tells_its_options(&o->run[i]))
			return OVERLAY_UNKNOWN;
	return OVERLAY_ALIKE;
}

const char *overlay_words(const struct overlay *o)
{
	static const char *const words[] = {[OVERLAY_ALIKE] = "like for like",
		[OVERLAY_UNKNOWN] = "like for like as far as known",
		[OVERLAY_DIFFERS] = "not like for like"};
	return words[overlay_likeness(o)];
}

char *overlay_title(const struct overlay *o)
{
	struct fb_strbuf b = {0};
	for (size_t i = 0; i < o->n; i++)
		fb_strbuf_printf(&b, "%s%s",
			i == 0          ? ""
			: o->n == 2     ? " against "
			: i + 1 == o->n ? " and "
					: ", ",
			o->run[i].label);
	return fb_strbuf_take(&b);
}

void overlay_why(const struct overlay *o, struct fb_strbuf *b)
{
	size_t all = o->n_facts + o->facts_left;
	if (all == 1)
		fb_strbuf_printf(b, "One fact differs: what the charts show may be its doing. ");
	else if (all > 1)
		fb_strbuf_printf(b,
			"%zu facts differ: what the charts show may be the doing of any of them. ",
			all);
	else
		fb_strbuf_add(b, "No fact that the runs tell differs. ");
	for (size_t i = 0; i < o->n; i++) {
		if (!tells_its_machine(&o->run[i]))
			fb_strbuf_printf(
				b, "%s does not tell what machine it is from. ", o->run[i].label);
		if (!tells_its_options(&o->run[i]))
			fb_strbuf_printf(b, "%s does not tell its options. ", o->run[i].label);
	}
	if (o->shared == 0)
		fb_strbuf_add(b, "No two of the runs measured the same thing. ");
	fb_strbuf_add(b, "This page gives no verdict; fabricbench compare does.");
}

void overlay_cell(const struct overlay_fact *f, size_t run, struct fb_strbuf *b)
{
	size_t before = b->len;
	if (!f->has[run])
		fb_strbuf_add(b, "-");
	else if (!f->v[run])
		fb_strbuf_add(b, "absent");
	else if (strcmp(f->name, "hosts") == 0 && json_integer_value(f->v[run]) == 0)
		fb_strbuf_add(b, "not told");
	else
		rep_flat(b, f->v[run]);
	if (b->len == before)
		fb_strbuf_add(b, json_is_null(f->v[run]) ? "not known" : "none");
}

const char *overlay_hosts(const struct overlay_fact *f, char *buf, size_t len)
{
	buf[0] = '\0';
	if (f->hosts == 1)
		snprintf(buf, len, "host %ld", f->host);
	else if (f->hosts > 1)
		snprintf(buf, len, "%zu hosts, first %ld", f->hosts, f->host);
	return buf;
}

void overlay_fact_name(const struct overlay_fact *f, char *buf, size_t len)
{
	if (strcmp(f->name, "where") == 0)
		snprintf(buf, len, "measured on");
	else if (strncmp(f->name, "params.", 7) == 0)
		snprintf(buf, len, "parameter %s", f->name + 7);
	else if (strncmp(f->name, "facts.", 6) == 0)
		snprintf(buf, len, "result's %s", f->name + 6);
	else if (strncmp(f->name, "tool.", 5) == 0)
		snprintf(buf, len, "fabricbench %s", f->name + 5);
	else
		snprintf(buf, len, "%s", f->name);
}

const char *overlay_places(
	const struct overlay *o, const struct overlay_row *r, char *buf, size_t len)
{
	const char *first = NULL;
	bool same = true;
	size_t n = 0;
	buf[0] = '\0';
	for (size_t i = 0; i < o->n; i++) {
		if (!r->side[i])
			continue;
		const char *where = fb_json_str(r->side[i]->first, "where", "?");
		same = same && (!first || strcmp(first, where) == 0);
		first = first ? first : where;
	}
	for (size_t i = 0; i < o->n && !same && n < len; i++)
		if (r->side[i])
			n += (size_t)snprintf(buf + n, len - n, "%s%.24s", n ? " / " : "",
				fb_json_str(r->side[i]->first, "where", "?"));
	if (same)
		snprintf(buf, len, "%.24s", first ? first : "?");
	return buf;
}

double overlay_median(const struct cmp_side *s)
{
	double m = NAN, *v = s && s->n > 0 ? malloc(s->n * sizeof(*v)) : NULL;
	if (v) {
		memcpy(v, s->v, s->n * sizeof(*v));
		fb_sort(v, s->n);
		m = fb_median_sorted(v, s->n);
	}
	free(v);
	return m;
}

/* Four digits: a change of a per mille is seen. */
static const char *four_digits(double v, char *buf, size_t len)
{
	int digits = v > 0 ? 3 - (int)floor(log10(v)) : 3;
	snprintf(buf, len, "%.*f", digits < 0 ? 0 : digits > 9 ? 9 : digits, v);
	return buf;
}

const char *overlay_ratio(const struct fb_ci *ci, char *buf, size_t len)
{
	char est[40], lo[40], hi[40];
	if (ci->valid)
		snprintf(buf, len, "%s [%s, %s]", four_digits(ci->est, est, sizeof(est)),
			four_digits(ci->lo, lo, sizeof(lo)), four_digits(ci->hi, hi, sizeof(hi)));
	else if (isfinite(ci->est))
		four_digits(ci->est, buf, len);
	else
		snprintf(buf, len, "-");
	return buf;
}

bool overlay_in_table(const struct overlay_row *r)
{
	return r->runs > 1 && strcmp(r->m->metric, "algbw") != 0;
}

/* A metric without its size and percentile: what belongs to one sweep. */
static void kind_of(const struct cmp_metric *m, char *buf, size_t len)
{
	const char *slash = strrchr(m->name, '/');
	size_t n = slash && m->size > 0 ? (size_t)(slash - m->name) : strlen(m->name);
	size_t k = m->time && strrchr(m->metric, ' ')
			   ? (size_t)(strrchr(m->metric, ' ') - m->metric)
			   : strlen(m->metric);
	snprintf(buf, len, "%.*s %.*s", (int)n, m->name, (int)k, m->metric);
}

size_t overlay_only(const struct overlay *o, struct overlay_only **v)
{
	size_t n = 0, last = 0;
	*v = o->n_rows > o->shared || o->n > 2 ? calloc(o->n_rows + 1, sizeof(**v)) : NULL;
	for (size_t i = 0; i < o->n_rows && *v; i++) {
		const struct overlay_row *r = &o->row[i];
		struct overlay_only x = {.n = 1};
		if (r->runs == o->n)
			continue;
		kind_of(r->m, x.what, sizeof(x.what));
		for (size_t k = 0; k < o->n; k++)
			x.has[k] = r->side[k] != NULL;
		/* Sweeps stand together: the one met last is mostly the one. */
		size_t at = n;
		for (size_t k = 0; k < n && at == n; k++) {
			size_t try = (last + k) % n;
			if (strcmp((*v)[try].what, x.what) == 0 &&
				memcmp((*v)[try].has, x.has, sizeof(x.has)) == 0)
				at = try;
		}
		if (at == n)
			(*v)[n++] = x;
		else
			(*v)[at].n++;
		last = at;
	}
	return n;
}

void overlay_names(const struct overlay *o, const bool *has, bool which, struct fb_strbuf *b)
{
	const char *sep = "";
	for (size_t i = 0; i < o->n; i++) {
		if (has[i] != which)
			continue;
		fb_strbuf_printf(b, "%s%s", sep, o->run[i].label);
		sep = ", ";
	}
}
