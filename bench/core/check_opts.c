// SPDX-License-Identifier: Apache-2.0
/*
 * Options, refusals and printing that all kinds of `check` have in common.
 */
#include "bench/core/check_opts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/cmd.h"
#include "bench/core/json.h"
#include "bench/core/log.h"
#include "bench/core/units.h"

static const char *const formats[] = {"table", "json", "junit", "markdown", NULL};

#define O(field) offsetof(struct fb_check_cfg, field)
const struct fb_opt fb_check_opts[] = {
	{.name = "require",
		.type = FB_OPT_LIST,
		.offset = O(require),
		.arg = "ID,...",
		.help = "these checks must be judged, or the verdict is INCOMPLETE"},
	{.name = "strict", .type = FB_OPT_FLAG, .offset = O(strict), .help = "a warning fails too"},
	{.name = "format",
		.type = FB_OPT_ENUM,
		.offset = O(format),
		.arg = "FORMAT",
		.help = "what is printed",
		.def = "table",
		.names = formats},
	{.name = "junit",
		.type = FB_OPT_STRING,
		.offset = O(junit),
		.arg = "FILE",
		.help = "also write JUnit XML there"},
	{.name = "markdown",
		.type = FB_OPT_STRING,
		.offset = O(markdown),
		.arg = "FILE",
		.help = "also write a Markdown table there"},
	{.name = "list",
		.type = FB_OPT_FLAG,
		.offset = O(list),
		.help = "print what checks there are"},
	{.name = "explain",
		.type = FB_OPT_STRING,
		.offset = O(explain),
		.arg = "ID",
		.help = "print all that is known of one check"},
	{.name = NULL},
};
#undef O

/* A required check that does not exist would be missing for ever. */
static int check_required(const char *id, const struct fb_check_def *defs, struct fb_err *e)
{
	const char *nearest = defs[0].id;
	unsigned least = ~0u;
	for (const struct fb_check_def *d = defs; d->id; d++) {
		unsigned distance = fb_edit_distance(d->id, id);
		nearest = distance < least ? d->id : nearest;
		least = distance < least ? distance : least;
	}
	if (least == 0)
		return 0;
	fb_fail_usage(e, "--require %.100s: this command has no such check", id);
	fb_hint(e, "did you mean %s? --list prints them all", nearest ? nearest : "another");
	return -EINVAL;
}

int fb_check_prepare(const struct fb_check_cfg *c, struct fb_output_cfg *out,
	const struct fb_check_def *defs, struct fb_err *e)
{
	if (out->json && c->format != FB_CHECK_TABLE && c->format != FB_CHECK_JSON)
		return fb_fail_usage(
			e, "--json and --format %s exclude each other", formats[c->format]);
	if (c->format == FB_CHECK_JSON)
		out->json = true;
	int rc = 0;
	for (size_t i = 0; i < c->require.n && rc == 0; i++)
		rc = check_required(c->require.v[i], defs, e);
	return rc;
}

int fb_check_verdict(const struct fb_check_cfg *c, struct fb_doc *doc)
{
	const struct fb_check_judge j = {
		.strict = c->strict, .require = c->require.v, .n_require = c->require.n};
	return fb_check_judge(doc, &j);
}

static int save(const char *path, const struct fb_doc *doc,
	void (*print)(const json_t *doc, FILE *out), struct fb_err *e)
{
	char *text = NULL;
	size_t len = 0;
	json_t *shown = fb_doc_visible(doc);
	FILE *out = shown ? open_memstream(&text, &len) : NULL;
	int rc = -ENOMEM;
	if (out) {
		print(shown, out);
		rc = fclose(out) == 0 ? 0 : -ENOMEM;
	}
	json_decref(shown);
	if (rc == 0)
		rc = fb_write_file_atomic(path, text, len, e);
	else
		rc = fb_fail(e, FB_EXIT_UNMEASURED, rc, "no memory for %s", path);
	free(text);
	return rc;
}

static int tell(const struct fb_check_kind *k, struct fb_err *e)
{
	const char *id = k->judge->explain;
	const struct fb_check_def *tables[] = {id ? k->all : k->listed};
	if (id)
		return fb_check_explain(tables, 1, id, stdout, e);
	fb_check_list(tables, 1, stdout);
	return 0;
}

static int make_document(struct fb_opt_spec *spec, const struct fb_check_kind *k, int argc,
	char **argv, struct fb_err *e)
{
	const struct fb_check_cfg *c = k->judge;
	struct fb_doc *doc = fb_doc_new(spec->command, argc, argv, k->out, e);
	if (!doc)
		return (int)e->exit;
	fb_doc_set_config(doc, fb_opt_to_json(spec, true), fb_opt_to_json(spec, false));
	fb_doc_set_table(doc, c->format == FB_CHECK_JUNIT      ? fb_check_junit
			      : c->format == FB_CHECK_MARKDOWN ? fb_check_markdown
							       : k->table);
	int status = k->work(k->command, doc, e);
	if (e->code == 0 && c->junit && save(c->junit, doc, fb_check_junit, e) < 0)
		status = (int)e->exit;
	if (e->code == 0 && c->markdown && save(c->markdown, doc, fb_check_markdown, e) < 0)
		status = (int)e->exit;
	if (e->code != 0) {
		fb_doc_error(doc, e);
		fb_doc_set_table(doc, NULL);
	}
	status = fb_doc_finish(doc, status);
	fb_doc_free(doc);
	return status;
}

int fb_check_command(
	struct fb_opt_spec *spec, const struct fb_check_kind *kind, int argc, char **argv)
{
	struct fb_err e = {0};
	int status = FB_EXIT_OK;
	int rc = fb_opt_parse(spec, argc, argv, &e);
	if (rc != 0)
		return rc == 1 ? FB_EXIT_OK : fb_cmd_fail(&e);
	if (kind->judge->list || kind->judge->explain)
		rc = tell(kind, &e);
	else if ((rc = kind->prepare(kind->command, &e)) == 0)
		status = kind->learning && *kind->learning
				 ? kind->learn(kind->command, &e)
				 : make_document(spec, kind, argc, argv, &e);
	if (e.code != 0)
		fb_log_err(&e);
	if (rc != 0)
		status = (int)e.exit;
	fb_opt_free(spec);
	return status;
}

void fb_check_print_mend(const json_t *check, FILE *out)
{
	const char *state = fb_json_str(check, "state", "");
	const json_t *expected = json_object_get(check, "expected");
	if (strcmp(state, "fail") != 0 && strcmp(state, "warn") != 0)
		return;
	if (json_is_object(expected))
		fprintf(out, "             expected %s (%s)\n", fb_json_str(expected, "value", ""),
			fb_json_str(expected, "source", ""));
	if (fb_json_str(check, "remedy", NULL))
		fprintf(out, "             remedy: %s\n", fb_json_str(check, "remedy", ""));
	if (fb_json_str(check, "side_effect", NULL))
		fprintf(out, "             this disturbs: %s\n",
			fb_json_str(check, "side_effect", ""));
}

void fb_check_print_end(const json_t *doc, FILE *out)
{
	const json_t *verdict = json_object_get(doc, "verdict"), *w;
	const json_t *counts = json_object_get(verdict, "accounted");
	size_t i;
	json_array_foreach (json_object_get(doc, "warnings"), i, w)
		fprintf(out, "\nwarning: %s\n", json_string_value(w));
	fprintf(out, "\n%s:", fb_json_str(verdict, "state", "not judged"));
	for (int s = 0; s < FB_CHECK_STATES; s++)
		fprintf(out, "%s %lld %s", s ? "," : "",
			(long long)fb_json_int(counts, fb_check_state_names[s], 0),
			fb_check_state_names[s]);
	fputc('\n', out);
}
