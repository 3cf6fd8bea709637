// SPDX-License-Identifier: Apache-2.0
/* Before anything runs: does every job name a command, and does that command know every option and
 * accept its value? */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/opt.h"
#include "bench/core/units.h"
#include "bench/run/run_priv.h"

static const struct fb_cmd *find_word(const struct fb_cmd *table, const char *word, size_t len)
{
	for (; table && table->name; table++)
		if (strlen(table->name) == len && strncmp(table->name, word, len) == 0)
			return table;
	return NULL;
}

static const char *nearest_word(const struct fb_cmd *table, const char *word)
{
	const char *best = NULL;
	unsigned least = 4;
	for (; table && table->name; table++) {
		unsigned d = fb_edit_distance(table->name, word);
		if (d < least) {
			least = d;
			best = table->name;
		}
	}
	return best;
}

/* "verbs latency" or "coll all_reduce": words down the groups; a word left over is the first
 * positional. */
static const struct fb_cmd *find_command(const struct fb_plan *p, const struct fb_job *j,
	const struct fb_cmd *table, const char **rest, struct fb_err *e)
{
	const struct fb_cmd *c = NULL;
	const char *s = j->command;
	*rest = "";
	while (*s && table) {
		size_t n = strcspn(s, " \t");
		const struct fb_cmd *next = find_word(table, s, n);
		/* What follows a command that has others beside it may be its own: "topo
		 * node.json". */
		if (!next && c && c->run && c->spec)
			break;
		if (!next) {
			char word[64];
			snprintf(word, sizeof(word), "%.*s", (int)n, s);
			const char *near = nearest_word(table, word);
			fb_fail_usage(e, "%s:%u: [%s] command = %s: there is no command \"%s\"",
				p->path, j->line, j->name, j->command, word);
			if (near)
				fb_hint(e, "did you mean \"%s\"?", near);
			return NULL;
		}
		c = next;
		table = c->sub;
		s += n;
		s += strspn(s, " \t");
	}
	*rest = s;
	if (!c || !c->spec || (c->sub && !c->run)) {
		fb_fail_usage(e, "%s:%u: [%s] command = %s cannot stand in a plan", p->path,
			j->line, j->name, j->command);
		return NULL;
	}
	return c;
}

#define SCRATCH 4096 /* more than any command's options take */

static int check_keys(
	const struct fb_plan *p, const struct fb_job *j, struct fb_opt_spec *spec, struct fb_err *e)
{
	for (size_t i = 0; i < j->nkeys; i++) {
		const struct fb_plan_key *k = &j->keys[i];
		const char *near = NULL;
		struct fb_err why = {0};
		if (run_is_launcher_key(k->name))
			continue;
		if (!fb_opt_find(spec, k->name, &near)) {
			fb_fail_usage(e, "%s:%u: [%s] %s: \"%s\" has no such option", p->path,
				k->line, j->name, k->name, j->command);
			if (near)
				fb_hint(e, "did you mean \"%s\"?", near);
			return e->code;
		}
		if (fb_opt_set_value(spec, k->name, k->value, &why) != 0) {
			fb_fail_usage(e, "%s:%u: [%s] %s", p->path, k->line, j->name, why.msg);
			fb_hint(e, "%s", why.hint);
			return e->code;
		}
	}
	return 0;
}

static int check_job(const struct fb_plan *p, const struct fb_job *j, const struct fb_cmd *commands,
	struct fb_err *e)
{
	const char *rest;
	const struct fb_cmd *c = find_command(p, j, commands, &rest, e);
	if (!c)
		return e->code;
	struct fb_opt_spec spec = *c->spec();
	size_t sets = sizeof(spec.sets) / sizeof(spec.sets[0]);
	char *scratch = calloc(sets, SCRATCH);
	if (!scratch)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "out of memory");
	spec.state = NULL;
	for (size_t i = 0; i < sets; i++)
		spec.sets[i].cfg = scratch + i * SCRATCH;
	int rc = fb_opt_defaults(&spec, e);
	if (rc == 0)
		rc = check_keys(p, j, &spec, e);
	fb_opt_free(&spec);
	free(scratch);
	return rc;
}

int run_check_plan(const struct fb_plan *p, const struct fb_cmd *commands, struct fb_err *e)
{
	int rc = 0;
	for (size_t i = 0; i < p->njobs && rc == 0; i++)
		rc = check_job(p, &p->jobs[i], commands, e);
	return rc;
}
