// SPDX-License-Identifier: Apache-2.0
/*
 * Parts of the page that come from the document rather than from figures: verdict, parts, system,
 * checks, warnings and errors. A key that is absent leaves its row out; it is never shown as 0.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/units.h"
#include "reports/loss.h"
#include "reports/report_priv.h"

static const json_t *get(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

/* ---- verdict --------------------------------------------------------------------------------- */

static void accounted(struct fb_strbuf *b, const json_t *v)
{
	const char *key, *sep = "";
	const json_t *n;
	if (json_object_size(get(v, "accounted")) == 0)
		return;
	fb_strbuf_add(b, "<p class=\"quiet\">Every part is accounted for: ");
	json_object_foreach ((json_t *)get(v, "accounted"), key, n) {
		rep_text(b, "%s%lld %s", sep, (long long)json_integer_value(n), key);
		sep = ", ";
	}
	fb_strbuf_add(b, ".</p>\n");
}

void rep_html_reasons(struct fb_strbuf *b, const json_t *doc)
{
	const json_t *v = get(doc, "verdict"), *reasons = get(v, "reasons"), *reason;
	size_t i;
	if (json_array_size(reasons) > 0) {
		fb_strbuf_add(b, "<ul class=\"reasons\">\n");
		json_array_foreach (reasons, i, reason) {
			fb_strbuf_add(b, "<li>");
			rep_text(b, "%s", json_is_string(reason) ? json_string_value(reason) : "?");
			fb_strbuf_add(b, "</li>\n");
		}
		fb_strbuf_add(b, "</ul>\n");
	}
	accounted(b, v);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void head(struct fb_strbuf *b, const char *cls, const char *const *names)
{
	fb_strbuf_printf(b, "<div class=\"wide\"><table class=\"%s\"><thead><tr>", cls);
	for (; *names; names++)
		rep_tag(b, "th", NULL, "%s", *names);
	fb_strbuf_add(b, "</tr></thead><tbody>\n");
}

static void foot(struct fb_strbuf *b)
{
	fb_strbuf_add(b, "</tbody></table></div>\n");
}

void rep_html_parts(struct fb_strbuf *b, const json_t *doc)
{
	static const char *const names[] = {"job", "launch", "command", "launcher", "ranks",
		"state", "seconds", "reason", NULL};
	const json_t *parts = get(get(doc, "plan"), "parts"), *p;
	size_t i;
	if (json_array_size(parts) == 0)
		return;
	rep_tag(b, "h2", NULL, "Parts");
	head(b, "plain", names);
	json_array_foreach (parts, i, p) {
		const char *state = fb_json_str(p, "state", "?");
		double s = fb_json_num(p, "seconds", NAN);
		fb_strbuf_add(b, "<tr>");
		rep_tag(b, "td", NULL, "%s", fb_json_str(p, "job", "?"));
		rep_tag(b, "td", "n", "%lld", (long long)fb_json_int(p, "launch", 0));
		rep_tag(b, "td", "code", "%s", fb_json_str(p, "command", "?"));
		rep_tag(b, "td", NULL, "%s", fb_json_str(p, "launcher", "?"));
		rep_tag(b, "td", "n", "%lld", (long long)fb_json_int(p, "ranks", 1));
		rep_tag(b, "td", strcmp(state, "complete") == 0 ? "valid" : "suspect", "%s%s",
			state, json_is_true(get(p, "reused")) ? " (kept from before)" : "");
		rep_tag(b, "td", "n", isfinite(s) ? "%.1f" : "-", s);
		rep_tag(b, "td", "long", "%s", fb_json_str(p, "reason", ""));
		fb_strbuf_add(b, "</tr>\n");
	}
	foot(b);
}

/* ---- system ---------------------------------------------------------------------------------- */

static bool is_empty(const json_t *v)
{
	return json_is_null(v) || (json_is_string(v) && json_string_length(v) == 0) ||
	       (json_is_array(v) && json_array_size(v) == 0) ||
	       (json_is_object(v) && json_object_size(v) == 0);
}

void rep_flat(struct fb_strbuf *b, const json_t *v)
{
	const char *key, *sep = "";
	const json_t *x;
	size_t i;
	if (json_is_string(v))
		fb_strbuf_add(b, json_string_value(v));
	else if (json_is_integer(v))
		fb_strbuf_printf(b, "%lld", (long long)json_integer_value(v));
	else if (json_is_real(v))
		fb_strbuf_printf(b, "%.6g", json_real_value(v));
	else if (json_is_boolean(v))
		fb_strbuf_add(b, json_is_true(v) ? "yes" : "no");
	else if (json_is_array(v)) {
		json_array_foreach (v, i, x) {
			fb_strbuf_add(b, sep);
			rep_flat(b, x);
			sep = ", ";
		}
	} else if (json_is_object(v)) {
		json_object_foreach ((json_t *)v, key, x) {
			if (is_empty(x))
				continue;
			fb_strbuf_printf(b, "%s%s ", sep, key);
			rep_flat(b, x);
			sep = ", ";
		}
	}
}

static void flat_fact(struct fb_strbuf *b, const char *name, const json_t *v)
{
	struct fb_strbuf text = {0};
	rep_flat(&text, v);
	if (text.s)
		rep_fact(b, name, "%s", text.s);
	fb_strbuf_free(&text);
}

static const char *locked_limit(const json_t *mem, char *buf, size_t len)
{
	const char *text = fb_json_str(mem, "locked_memory_limit", "not known");
	uint64_t bytes;
	return fb_parse_size(text, &bytes, NULL) == 0 ? fb_fmt_size(bytes, buf, len) : text;
}

static void cpu_facts(struct fb_strbuf *b, const json_t *h)
{
	const json_t *cpu = get(h, "cpu"), *k = get(h, "kernel"), *clock = get(h, "clock");
	const char *model = fb_json_str(cpu, "model", "");
	char total[32], limit[32];
	if (*model && json_is_integer(get(cpu, "packages")) && json_is_integer(get(cpu, "cores")))
		rep_fact(b, "CPU", "%s: %lld package(s), %lld cores, %lld threads", model,
			(long long)fb_json_int(cpu, "packages", 0),
			(long long)fb_json_int(cpu, "cores", 0),
			(long long)fb_json_int(cpu, "threads", 0));
	else if (*model)
		rep_fact(b, "CPU", "%s: %lld threads; packages and cores are not visible here",
			model, (long long)fb_json_int(cpu, "threads", 0));
	flat_fact(b, "Frequency governor", get(cpu, "governor"));
	const json_t *mem = get(h, "memory");
	if (json_is_integer(get(mem, "total_bytes")))
		rep_fact(b, "Memory", "%s; transparent huge pages %s; locked memory limit %s",
			fb_fmt_size(
				(uint64_t)fb_json_int(mem, "total_bytes", 0), total, sizeof(total)),
			fb_json_str(mem, "transparent_huge_pages", "not known"),
			locked_limit(mem, limit, sizeof(limit)));
	rep_fact(b, "Operating system", "%s", fb_json_str(h, "os", ""));
	rep_fact(b, "Kernel", "%s %s", fb_json_str(k, "release", "not known"),
		fb_json_str(k, "machine", ""));
	flat_fact(b, "Boot options that matter", get(k, "boot"));
	rep_fact(b, "Container", "%s", fb_json_str(h, "container", ""));
	if (clock)
		rep_fact(b, "Clock",
			"%s; one read costs %.1f ns, resolution %lld ns, calibrated to %.2f ppm",
			fb_json_str(clock, "source", "?"), fb_json_num(clock, "read_cost_ns", NAN),
			(long long)fb_json_int(clock, "resolution_ns", 0),
			fb_json_num(clock, "calibration_ppm", NAN));
}

static void numa_facts(struct fb_strbuf *b, const json_t *h)
{
	const json_t *n;
	size_t i;
	json_array_foreach (get(h, "numa"), i, n) {
		char name[40], size[32];
		snprintf(
			name, sizeof(name), "NUMA node %lld", (long long)fb_json_int(n, "node", 0));
		rep_fact(b, name, "CPUs %s, %s, distances %s", fb_json_str(n, "cpus", "none"),
			fb_fmt_size(
				(uint64_t)fb_json_int(n, "memory_bytes", 0), size, sizeof(size)),
			fb_json_str(n, "distance", "not known"));
	}
}

/* One row per device: its name, then what is known of it. */
static void device_facts(struct fb_strbuf *b, const char *kind, const json_t *devs)
{
	const json_t *d;
	size_t i;
	json_array_foreach (devs, i, d) {
		char name[120];
		json_t *rest = json_copy((json_t *)d);
		const char *id = fb_json_str(d, "name", fb_json_str(d, "bdf", "?"));
		snprintf(name, sizeof(name), "%s %.80s", kind, id);
		json_object_del(rest, get(d, "name") ? "name" : "bdf");
		json_object_del(rest, "hw_counters");
		flat_fact(b, name, rest);
		json_decref(rest);
	}
	if (json_array_size(devs) == 0) {
		char name[60];
		snprintf(name, sizeof(name), "%ss", kind);
		rep_fact(b, name, "%s", json_is_array(devs) ? "none" : "not visible here: no /sys");
	}
}

void rep_html_system(struct fb_strbuf *b, const json_t *doc)
{
	const json_t *hosts = get(get(doc, "system"), "hosts"), *h;
	size_t i, n = json_array_size(hosts);
	rep_tag(b, "h2", NULL, "System");
	if (n == 0)
		rep_tag(b, "p", "quiet", "The document names no host.");
	json_array_foreach (hosts, i, h) {
		/* The first two say what the machines are; of more, one asks for. */
		fb_strbuf_add(b, i < 2 ? "<details open=\"open\"><summary>" : "<details><summary>");
		rep_text(b, "Host %s", fb_json_str(h, "name", "?"));
		fb_strbuf_add(b, "</summary>\n<table class=\"facts\">\n");
		cpu_facts(b, h);
		numa_facts(b, h);
		device_facts(b, "RDMA device", get(h, "rdma"));
		device_facts(b, "NIC", get(h, "nics"));
		device_facts(b, "GPU", get(h, "gpus"));
		flat_fact(b, "Libraries", get(h, "libraries"));
		flat_fact(b, "Environment", get(h, "env"));
		fb_strbuf_add(b, "</table>\n</details>\n");
	}
}

/* ---- checks, messages ------------------------------------------------------------------------ */

/* What was found, and below it, smaller, what was expected, by whom, and where it was read. */
static void found_cell(struct fb_strbuf *b, const json_t *c)
{
	struct fb_strbuf observed = {0}, expected = {0};
	const char *source = fb_json_str(get(c, "expected"), "source", "");
	const char *read = fb_json_str(c, "read", ""), *reason = fb_json_str(c, "reason", "");
	rep_flat(&observed, get(c, "observed"));
	rep_flat(&expected, get(get(c, "expected"), "value"));
	bool seen = observed.s && *observed.s, wanted = expected.s && *expected.s;
	fb_strbuf_add(b, "<td class=\"says\">");
	if (*reason)
		rep_text(b, "%s%s", reason, seen ? ": " : "");
	if (seen)
		rep_text(b, "%s", observed.s);
	if (wanted || *source)
		rep_tag(b, "div", "quiet", "expected: %s%s%s%s", wanted ? expected.s : "",
			*source && wanted ? " (" : "", source, *source && wanted ? ")" : "");
	if (*read)
		rep_tag(b, "div", "quiet", "read: %s", read);
	fb_strbuf_add(b, "</td>");
	fb_strbuf_free(&expected);
	fb_strbuf_free(&observed);
}

static void check_row(struct fb_strbuf *b, const json_t *c)
{
	const char *state = fb_json_str(c, "state", "?"), *title = fb_json_str(c, "title", "");
	const char *effect = fb_json_str(c, "side_effect", "");
	const char *cls = strcmp(state, "pass") == 0                                  ? "valid"
			  : strcmp(state, "fail") == 0 || strcmp(state, "error") == 0 ? "invalid"
			  : strcmp(state, "info") == 0                                ? ""
										      : "suspect";
	fb_strbuf_add(b, "<tr>");
	rep_tag(b, "td", NULL, "%s%s%s", fb_json_str(c, "id", "?"), *title ? " " : "", title);
	rep_tag(b, "td", NULL, "%s", fb_json_str(c, "subject", ""));
	rep_tag(b, "td", cls, "%s", state);
	found_cell(b, c);
	rep_tag(b, "td", "code", "%s%s%s", fb_json_str(c, "remedy", ""),
		*effect ? " \xe2\x80\x94 this disturbs: " : "", effect);
	fb_strbuf_add(b, "</tr>\n");
}

/* What asks for something comes first. */
enum check_rank { FAILED, WARNED, TOLD, PASSED, SKIPPED, CHECK_RANKS };

static enum check_rank rank_of(const json_t *c)
{
	const char *state = fb_json_str(c, "state", "?");
	return strcmp(state, "fail") == 0 || strcmp(state, "error") == 0 ? FAILED
	       : strcmp(state, "info") == 0                              ? TOLD
	       : strcmp(state, "pass") == 0                              ? PASSED
	       : strcmp(state, "skip") == 0                              ? SKIPPED
									 : WARNED;
}

static void check_rows(
	struct fb_strbuf *b, const json_t *checks, enum check_rank from, enum check_rank to)
{
	static const char *const names[] = {"check", "at", "state", "found", "remedy", NULL};
	const json_t *c;
	size_t i;
	head(b, "checks", names);
	for (enum check_rank r = from; r <= to; r++)
		json_array_foreach (checks, i, c)
			if (rank_of(c) == r)
				check_row(b, c);
	foot(b);
}

void rep_html_checks(struct fb_strbuf *b, const json_t *doc)
{
	const json_t *checks = get(doc, "checks"), *c;
	size_t n[CHECK_RANKS] = {0}, i;
	json_array_foreach (checks, i, c)
		n[rank_of(c)]++;
	if (json_array_size(checks) == 0)
		return;
	rep_tag(b, "h2", NULL, "Checks");
	if (n[FAILED] + n[WARNED] + n[TOLD] > 0)
		check_rows(b, checks, FAILED, TOLD);
	if (n[PASSED] + n[SKIPPED] == 0)
		return;
	fb_strbuf_add(b, "<details>");
	rep_tag(b, "summary", NULL, "%zu passed, %zu skipped", n[PASSED], n[SKIPPED]);
	check_rows(b, checks, PASSED, SKIPPED);
	fb_strbuf_add(b, "</details>\n");
}

static void one_error(struct fb_strbuf *b, const json_t *e)
{
	const char *job = fb_json_str(e, "job", ""), *point = fb_json_str(e, "point", "");
	const char *remedy = fb_json_str(e, "remedy", "");
	fb_strbuf_add(b, "<li>");
	if (*job)
		rep_tag(b, "span", "job", "%s", job);
	rep_text(b, "%s%s%s", fb_json_str(e, "message", "?"), *point ? " at " : "", point);
	if (*remedy)
		rep_tag(b, "div", "remedy", "Remedy: %s", remedy);
	fb_strbuf_add(b, "</li>\n");
}

void rep_html_messages(struct fb_strbuf *b, const json_t *doc)
{
	const json_t *errors = get(doc, "errors"), *warnings = get(doc, "warnings"), *m;
	size_t i;
	if (json_array_size(errors) > 0) {
		rep_tag(b, "h2", NULL, "Errors");
		fb_strbuf_add(b, "<ul class=\"errors\">\n");
		json_array_foreach (errors, i, m)
			one_error(b, m);
		fb_strbuf_add(b, "</ul>\n");
	}
	if (json_array_size(warnings) > 0) {
		rep_tag(b, "h2", NULL, "Warnings");
		fb_strbuf_add(b, "<ul class=\"warnings\">\n");
		json_array_foreach (warnings, i, m) {
			fb_strbuf_add(b, "<li>");
			rep_text(b, "%s",
				json_is_string(m) ? json_string_value(m)
						  : fb_json_str(m, "message", "?"));
			fb_strbuf_add(b, "</li>\n");
		}
		fb_strbuf_add(b, "</ul>\n");
	}
}

/* ---- values without a size ------------------------------------------------------------------- */

/* Times and rates of data as people read them; tokens/s and counts as they are. */
static struct rep_scale_for value_unit(const json_t *r)
{
	const char *unit = fb_json_str(r, "unit", "");
	if (strcmp(unit, "ns") == 0 || strcmp(unit, "bytes/s") == 0)
		return rep_people_unit(r);
	return (struct rep_scale_for){unit, 1};
}

void rep_html_values(struct fb_strbuf *b, const json_t *doc, const char *section)
{
	static const char *const names[] = {
		"case", "launch", "metric", "value", "unit", "bound", "measured", "validity", NULL};
	const json_t *results = get(doc, "results"), *r;
	size_t i, n = 0;
	json_array_foreach (results, i, r) {
		const json_t *validity = get(r, "validity");
		const char *state = fb_json_str(validity, "state", "valid");
		if (json_is_integer(get(get(r, "params"), "size")) ||
			strcmp(rep_section_of(r), section) != 0 || rep_loss_result(r))
			continue;
		if (n++ == 0)
			head(b, "plain", names);
		fb_strbuf_add(b, "<tr>");
		rep_tag(b, "td", NULL, "%s", fb_json_str(r, "case", "?"));
		rep_tag(b, "td", "n", "%lld", (long long)fb_json_int(r, "launch", 0));
		rep_tag(b, "td", NULL, "%s", fb_json_str(r, "metric", "?"));
		struct rep_scale_for s = value_unit(r);
		double v = fb_json_num(r, "value", NAN) * s.factor;
		if (isfinite(v))
			rep_tag(b, "td", "n", "%.6g", v);
		else
			rep_tag(b, "td", NULL, "%s",
				fb_json_str(r, "value_reason", "not measured"));
		rep_tag(b, "td", NULL, "%s", s.unit);
		double bound = fb_json_num(get(r, "bound"), "value", NAN) * s.factor;
		rep_tag(b, "td", "n", isfinite(bound) ? "%.6g" : "-", bound);
		rep_tag(b, "td", NULL, "%s", fb_json_str(r, "where", "?"));
		rep_tag(b, "td", state, "%s", state);
		fb_strbuf_add(b, "</tr>\n");
	}
	if (n > 0)
		foot(b);
}
