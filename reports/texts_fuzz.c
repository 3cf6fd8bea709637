// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: the texts for machines and pull requests, of a document whose names and texts are
 * anybody's. What it holds them to: no text of the document becomes a line, a row or an element.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "reports/junit.h"
#include "reports/markdown.h"
#include "reports/prometheus.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at, *end;
};

/* Up to the next NUL; the document's texts in turn. */
static void put_next(struct input *in, json_t *o, const char *key)
{
	char text[600];
	size_t n = 0;
	while (in->at < in->end && *in->at && n + 1 < sizeof(text))
		text[n++] = (char)*in->at++;
	if (in->at < in->end)
		in->at++;
	text[n] = '\0';
	fb_json_set_str(o, key, text);
}

static json_t *result_of(struct input *in)
{
	static const char *const keys[] = {"case", "metric", "unit", "job", "where", "load"};
	json_t *r = json_pack("{s:f,s:{s:i},s:{}}", "value", 1.5, "params", "size", 8, "validity");
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		put_next(in, r, keys[i]);
	put_next(in, json_object_get(r, "params"), "device");
	put_next(in, json_object_get(r, "validity"), "state");
	return r;
}

static json_t *check_of(struct input *in)
{
	static const char *const keys[] = {"id", "title", "subject", "observed", "remedy"};
	json_t *c = json_pack("{s:s}", "state", "fail");
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		put_next(in, c, keys[i]);
	return c;
}

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void hold_prometheus(const char *s)
{
	while (*s) {
		const char *nl = strchr(s, '\n');
		must(nl && (strncmp(s, "# HELP fabricbench_", 19) == 0 ||
				   strncmp(s, "# TYPE fabricbench_", 19) == 0 ||
				   strncmp(s, "fabricbench_", 12) == 0));
		s = nl + 1;
	}
}

/* Headings and tables are ours: as many as the document's shape makes. */
static void hold_markdown(const char *s)
{
	for (; *s; s = strchr(s, '\n') + 1) {
		must(strchr(s, '\n') != NULL);
		must(*s != '#' || strncmp(s, "## ", 3) == 0 || strncmp(s, "### ", 4) == 0);
		must(*s != '<' && *s != '`');
	}
}

static void hold_all(const json_t *doc)
{
	struct fb_strbuf b = {0};
	struct fb_err e = {0};
	char *text = NULL;
	size_t len;
	if (rep_prometheus(&b, doc, &e) == 0 && b.s)
		hold_prometheus(b.s);
	fb_strbuf_free(&b);
	FILE *f = open_memstream(&text, &len);
	must(f && rep_markdown(f, doc, "run.json", &e) == 0);
	fclose(f);
	hold_markdown(text);
	free(text);
	f = open_memstream(&text, &len);
	must(f != NULL);
	rep_junit(f, doc);
	fclose(f);
	must(strstr(text, "</testsuites>\n") == text + len - 14);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};
	json_t *doc = json_pack("{s:{},s:{},s:{},s:{s:[]},s:{},s:[],s:[],s:[],s:[]}", "tool", "run",
		"verdict", "plan", "parts", "system", "results", "checks", "errors", "warnings");
	json_t *error = json_object(), *part = json_object();
	put_next(&in, json_object_get(doc, "tool"), "version");
	put_next(&in, json_object_get(doc, "run"), "started");
	put_next(&in, json_object_get(doc, "verdict"), "state");
	put_next(&in, json_object_get(doc, "verdict"), "scope");
	put_next(&in, json_object_get(doc, "plan"), "title");
	put_next(&in, part, "job");
	put_next(&in, part, "state");
	put_next(&in, part, "reason");
	put_next(&in, error, "message");
	put_next(&in, error, "remedy");
	json_array_append_new(json_object_get(json_object_get(doc, "plan"), "parts"), part);
	json_array_append_new(json_object_get(doc, "errors"), error);
	for (int i = 0; i < 2; i++) {
		json_array_append_new(json_object_get(doc, "checks"), check_of(&in));
		json_array_append_new(json_object_get(doc, "results"), result_of(&in));
	}
	hold_all(doc);
	json_decref(doc);
	return 0;
}
