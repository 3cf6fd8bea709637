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

/* What a key that the command does not know may have been meant for: the command's option, or a
 * word of the plan itself when that is nearer. */
static const char *nearest_key(const char *name, const char *option)
{
	static const char *const own[] = {"command", "ranks", "launcher", "launches", "deadline",
		"require", "hosts", "hostfile", "ranks-per-host", "time"};
	const char *best = option;
	unsigned least = option ? fb_edit_distance(option, name) : 4;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		unsigned d = fb_edit_distance(own[i], name);
		if (d < least || (d == least && strlen(own[i]) > strlen(best ? best : ""))) {
			least = d;
			best = own[i];
		}
	}
	return least < 4 ? best : NULL;
}

/* Keys that tell the launcher something: those of another launcher would be left out silently. */
static int check_launcher_key(const struct fb_plan *p, const struct fb_job *j,
	const struct fb_plan_key *k, struct fb_err *e)
{
	bool by_host = strcmp(k->name, "ranks-per-host") == 0;
	struct fb_err why = {0};
	uint64_t v;
	if (strcmp(k->name, "time") == 0) {
		if (fb_parse_duration(k->value, &v, &why) == 0)
			return 0;
		return fb_fail_usage(e, "%s:%u: [%s] time = %s: %s", p->path, k->line, j->name,
			k->value, why.msg);
	}
	if (j->launcher != FB_LAUNCH_MPIRUN && j->launcher != FB_LAUNCH_SSH &&
		!(by_host && j->launcher == FB_LAUNCH_SRUN)) {
		fb_fail_usage(e, "%s:%u: [%s] %s says nothing to launcher = %s", p->path, k->line,
			j->name, k->name, fb_launcher_names[j->launcher]);
		fb_hint(e, "it is for launcher = mpirun or ssh%s",
			by_host ? " or srun" : "; srun has its hosts from the allocation");
		return e->code;
	}
	if (by_host && fb_parse_u64(k->value, 1, UINT32_MAX, &v, &why) != 0)
		return fb_fail_usage(e, "%s:%u: [%s] ranks-per-host = %s: %s", p->path, k->line,
			j->name, k->value, why.msg);
	return 0;
}

static int check_launcher(const struct fb_plan *p, const struct fb_job *j,
	const struct fb_opt_spec *spec, struct fb_err *e)
{
	bool hosts = run_job_key(j, "hosts"), file = run_job_key(j, "hostfile");
	if (hosts && file)
		return fb_fail_usage(e,
			"%s:%u: [%s] has hosts and hostfile: one of them tells where", p->path,
			j->line, j->name);
	if (j->launcher == FB_LAUNCH_SSH && !hosts && !file) {
		fb_fail_usage(e, "%s:%u: [%s] launcher = ssh: on which hosts?", p->path, j->line,
			j->name);
		fb_hint(e, "add hosts = A,B or hostfile = FILE");
		return e->code;
	}
	/* srun's and ssh's ranks find each other by what the launcher sets. */
	bool told =
		(j->launcher == FB_LAUNCH_LOCAL && j->ranks > 1) || j->launcher == FB_LAUNCH_MPIRUN;
	if (told && !fb_opt_find(spec, "comm", NULL))
		return fb_fail_usage(e,
			"%s:%u: [%s] ranks = %u, launcher = %s: \"%s\" is no command of several ranks",
			p->path, j->line, j->name, j->ranks, fb_launcher_names[j->launcher],
			j->command);
	return 0;
}

/* Words behind the command's own: "coll all_reduce". */
static int check_words(const struct fb_plan *p, const struct fb_job *j, struct fb_opt_spec *spec,
	const char *rest, struct fb_err *e)
{
	struct run_argv a = {0};
	struct fb_err why = {0};
	run_argv_add(&a, "%s", j->command);
	for (const char *s = rest; *s; s += strspn(s, " \t")) {
		size_t n = strcspn(s, " \t");
		run_argv_add(&a, "%.*s", (int)n, s);
		/* It would print its help, and measure nothing. */
		if (!a.failed &&
			(strcmp(a.v[a.n - 1], "--help") == 0 || strcmp(a.v[a.n - 1], "-h") == 0))
			a.failed = true;
		s += n;
	}
	int rc = a.failed ? -EINVAL : fb_opt_parse(spec, (int)a.n, a.v, &why);
	run_argv_free(&a);
	if (rc == 0)
		return 0;
	fb_fail_usage(e, "%s:%u: [%s] command = %s: %s", p->path, j->line, j->name, j->command,
		why.msg[0] ? why.msg : "cannot stand in a plan");
	fb_hint(e, "%s", why.hint);
	return e->code;
}

static int check_keys(
	const struct fb_plan *p, const struct fb_job *j, struct fb_opt_spec *spec, struct fb_err *e)
{
	for (size_t i = 0; i < j->nkeys; i++) {
		const struct fb_plan_key *k = &j->keys[i];
		const char *near = NULL;
		struct fb_err why = {0};
		if (run_is_launcher_key(k->name)) {
			if (check_launcher_key(p, j, k, e) != 0)
				return e->code;
			continue;
		}
		if (strcmp(k->name, "output") == 0) {
			fb_fail_usage(e,
				"%s:%u: [%s] output: a part's document lies in the run directory",
				p->path, k->line, j->name);
			fb_hint(e, "leave it out: parts/ has one for each launch");
			return e->code;
		}
		if (!fb_opt_find(spec, k->name, &near)) {
			fb_fail_usage(e, "%s:%u: [%s] %s: \"%s\" has no such option", p->path,
				k->line, j->name, k->name, j->command);
			near = nearest_key(k->name, near);
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
	int rc = 0;
	/* A server, or a command that writes a text: there would be nothing to join. */
	if (!fb_opt_find(&spec, "job", NULL) || !fb_opt_find(&spec, "output", NULL))
		rc = fb_fail_usage(e,
			"%s:%u: [%s] command = %s cannot stand in a plan: it writes no results",
			p->path, j->line, j->name, j->command);
	if (rc == 0)
		rc = check_words(p, j, &spec, rest, e);
	if (rc == 0)
		rc = check_launcher(p, j, &spec, e);
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
