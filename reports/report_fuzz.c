// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: the page, the plots' scripts, the table and the CSV of any document that the reader
 * accepts. The page must stay closed: every '<' begins a tag that ends, no script begins, every
 * element that opens closes. Bytes alone seldom make a document, so that values inside one are
 * exchanged as well: the mutator below knows JSON.
 */
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/result.h"
#include "reports/csv.h"
#include "reports/report_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

static void refuse(const char *why, const char *at)
{
	fprintf(stderr, "the page is broken: %s: %.200s\n", why, at);
	abort();
}

static void closed(const char *page)
{
	size_t depth = 0;
	for (const char *c = page + strlen("<!DOCTYPE html>"); (c = strchr(c, '<')) != NULL;) {
		const char *end = c + 1;
		bool quoted = false;
		if (strncmp(c, "<script", 7) == 0)
			refuse("a script", c);
		if (*end != '/' && !(*end >= 'a' && *end <= 'z'))
			refuse("no tag", c);
		for (; *end && (quoted || *end != '>'); end++) {
			quoted = quoted != (*end == '"');
			if (*end == '<')
				refuse("a tag in a tag", c);
		}
		if (!*end)
			refuse("a tag without end", c);
		if (c[1] == '/') {
			if (depth-- == 0)
				refuse("closed and never opened", c);
		} else if (end[-1] != '/') {
			depth++;
		}
		c = end;
	}
	if (depth != 0)
		refuse("not all elements are closed", "");
}

/* Outside single quotes nothing that a document says. */
static void quoted_only(const char *script)
{
	bool quoted = false;
	for (const char *c = script; *c; c++) {
		if (*c == '\'')
			quoted = !quoted;
		if ((quoted && *c == '\n') || (!quoted && *c == '`'))
			refuse("a script of a plot leaves its quotes", c);
	}
}

static void render(const json_t *doc)
{
	struct fb_err e = {0};
	struct rep_figures f = {0};
	struct fb_strbuf page = {0}, text = {0};
	if (rep_figures_build(doc, &f, &e) == 0) {
		struct rep_page p = {
			.doc = doc, .figures = &f, .data_name = "fuzz.json", .plots_name = "plots"};
		rep_html(&page, &p);
		if (page.s)
			closed(page.s);
		for (size_t i = 0; i < f.n; i++) {
			struct fb_strbuf script = {0};
			rep_gp_text(&script, &f.v[i]);
			if (script.s && strchr(script.s, '\n'))
				quoted_only(strchr(script.s, '\n'));
			fb_strbuf_free(&script);
			rep_dat_text(&text, &f.v[i]);
			rep_figure_csv(&text, &f.v[i]);
		}
		rep_csv_results(&text, doc);
		rep_csv_checks(&text, doc);
	}
	fb_strbuf_free(&text);
	fb_strbuf_free(&page);
	rep_figures_free(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fb_err e = {0};
	json_t *doc = fb_doc_parse((const char *)data, size, "fuzz", &e);
	if (doc)
		render(doc);
	json_decref(doc);
	return 0;
}

/* ---- values exchanged in a document ---------------------------------------------------------- */

static json_t *strange(unsigned r)
{
	static const char *const words[] = {"", "<script>alert(1)</script>", "\"'><b onload=x>",
		"`touch x`", "a\nb\tc", "%s%n", "'; system 'x", "hardware", "lab", "imported", "ns",
		"bytes/s", "latency", "busbw", "mfu", "verbs.latency/send", "verbs.bandwidth/write",
		"coll/all_reduce", "train/a", "rejected", "suspect", "\xf4\x8f\xbf\xbf", "../../x",
		"&amp;&#60;"};
	static const double numbers[] = {0, -1, 1e308, -1e308, 1e-308, 0.5, 1e18, 3};
	switch (r % 8) {
	case 0: return json_null();
	case 1: return json_true();
	case 2: return json_integer((json_int_t)(r & 1 ? INT64_MAX : INT64_MIN) >> (r >> 4 & 63));
	case 3: return json_real(numbers[(r >> 4) % (sizeof(numbers) / sizeof(numbers[0]))]);
	case 4: return r & 16 ? json_array() : json_object();
	default: return json_string(words[(r >> 4) % (sizeof(words) / sizeof(words[0]))]);
	}
}

/* Down to some value, and exchange, remove, double or add it. */
static void exchange(json_t *j, unsigned *r)
{
	for (unsigned depth = 0; depth < 12; depth++) {
		*r = *r * 1103515245u + 12345u;
		unsigned pick = *r >> 8, stop = *r >> 28;
		size_t n = json_is_object(j) ? json_object_size(j) : json_array_size(j);
		if (n == 0)
			return;
		size_t at = pick % n;
		const char *key = NULL;
		json_t *child = json_array_get(j, at);
		if (json_is_object(j)) {
			void *it = json_object_iter(j);
			while (at--)
				it = json_object_iter_next(j, it);
			key = json_object_iter_key(it);
			child = json_object_iter_value(it);
		}
		if ((json_is_object(child) || json_is_array(child)) && stop > 1) {
			j = child;
			continue;
		}
		*r = *r * 1103515245u + 12345u;
		if (key && stop == 2)
			json_object_del(j, key);
		else if (key)
			json_object_set_new(j, key, strange(*r >> 8));
		else if (stop == 2)
			json_array_append_new(j, json_deep_copy(child));
		else if (stop == 3)
			json_array_remove(j, pick % n);
		else
			json_array_set_new(j, pick % n, strange(*r >> 8));
		return;
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	json_t *doc =
		seed % 16 ? json_loadb((const char *)data, size, JSON_DECODE_ANY, NULL) : NULL;
	if (!doc)
		return LLVMFuzzerMutate(data, size, max);
	for (unsigned i = 0; i <= seed / 16 % 4; i++)
		exchange(doc, &seed);
	char *text = json_dumps(doc, JSON_COMPACT | JSON_ENCODE_ANY);
	size_t n = text ? strlen(text) : 0;
	json_decref(doc);
	if (n == 0 || n > max) {
		free(text);
		return LLVMFuzzerMutate(data, size, max);
	}
	memcpy(data, text, n);
	free(text);
	return n;
}
