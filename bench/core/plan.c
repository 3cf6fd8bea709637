// SPDX-License-Identifier: Apache-2.0
/* What a plan's sections and keys mean; ini.h reads them. */
#include "bench/core/plan.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/ini.h"
#include "bench/core/json.h"
#include "bench/core/units.h"

#define MAX_JOBS     256
#define MAX_KEYS     64
#define MAX_NAME     40
#define MAX_KEY      48
#define MAX_LAUNCHES 1000
#define MAX_RANKS    1048576

const char *const fb_launcher_names[] = {"local", "ssh", "mpirun", "srun", "lab", NULL};

struct reader {
	struct fb_ini *ini; /* where we are, for messages */
	struct fb_plan *plan;
	struct fb_job *job; /* NULL inside [plan], and before the first section */
	bool had_plan;
	unsigned defaults_launches;
	uint64_t defaults_deadline_ns;
};

static struct fb_job *find_job(struct fb_plan *p, const char *name)
{
	for (size_t i = 0; i < p->njobs; i++)
		if (strcmp(p->jobs[i].name, name) == 0)
			return &p->jobs[i];
	return NULL;
}

static int name_ok(const char *s)
{
	for (const char *c = s; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-_.", *c))
			return 0;
	return *s != '\0' && *s != '.' && *s != '-';
}

/* A section that opens twice would merge silently: it may not. */
static int on_section(struct fb_ini *ini, void *arg, const char *section)
{
	struct reader *r = arg;
	bool plan = strcmp(section, "plan") == 0;
	r->ini = ini;
	r->job = NULL;
	if (strlen(section) > MAX_NAME)
		return fb_ini_bad(ini, "the job name \"%.40s...\" is longer than %d characters",
			section, MAX_NAME);
	if (!name_ok(section))
		return fb_ini_bad(ini,
			"\"%s\" is no job name: letters, digits, '-', '_' and '.' only", section);
	if (plan ? r->had_plan : find_job(r->plan, section) != NULL)
		return fb_ini_bad(ini, "there are two sections [%s]", section);
	if (plan) {
		r->had_plan = true;
		return 0;
	}
	if (r->plan->njobs >= MAX_JOBS)
		return fb_ini_bad(ini, "more than %d jobs", MAX_JOBS);
	struct fb_job *jobs = realloc(r->plan->jobs, (r->plan->njobs + 1) * sizeof(*jobs));
	if (!jobs)
		return fb_ini_bad(ini, "out of memory");
	r->plan->jobs = jobs;
	r->job = &jobs[r->plan->njobs++];
	*r->job = (struct fb_job){.line = ini->line,
		.require = true,
		.ranks = 1,
		.launches = r->defaults_launches,
		.deadline_ns = r->defaults_deadline_ns};
	snprintf(r->job->name, sizeof(r->job->name), "%s", section);
	return 0;
}

static int parse_count(
	struct reader *r, const char *key, const char *value, uint64_t max, unsigned *out)
{
	uint64_t v;
	struct fb_err e = {0};
	if (fb_parse_u64(value, 1, max, &v, &e) != 0)
		return fb_ini_bad(r->ini, "%s = %s: %s", key, value, e.msg);
	*out = (unsigned)v;
	return 0;
}

static int parse_deadline(struct reader *r, const char *value, uint64_t *out)
{
	struct fb_err e = {0};
	if (fb_parse_duration(value, out, &e) != 0)
		return fb_ini_bad(r->ini, "deadline = %s: %s", value, e.msg);
	if (*out == 0)
		return fb_ini_bad(r->ini, "deadline = %s: a job needs some time", value);
	return 0;
}

static int set_string(struct reader *r, char **to, const char *key, const char *value)
{
	if (*to)
		return fb_ini_bad(
			r->ini, "%s stands twice in [%s]", key, r->job ? r->job->name : "plan");
	*to = strdup(value);
	return *to ? 0 : fb_ini_bad(r->ini, "out of memory");
}

static int plan_key(struct reader *r, const char *key, const char *value)
{
	if (strcmp(key, "title") == 0)
		return set_string(r, &r->plan->title, key, value);
	if (strcmp(key, "scope") == 0)
		return set_string(r, &r->plan->scope, key, value);
	if (r->plan->njobs > 0)
		return fb_ini_bad(
			r->ini, "[plan] gives defaults, so it stands before the first job");
	if (strcmp(key, "launches") == 0)
		return parse_count(r, key, value, MAX_LAUNCHES, &r->defaults_launches);
	if (strcmp(key, "deadline") == 0)
		return parse_deadline(r, value, &r->defaults_deadline_ns);
	return fb_ini_bad(
		r->ini, "[plan] knows title, scope, launches and deadline, not \"%s\"", key);
}

static int parse_launcher(struct reader *r, const char *value)
{
	for (int i = 0; fb_launcher_names[i]; i++) {
		if (strcmp(value, fb_launcher_names[i]) == 0) {
			r->job->launcher = (enum fb_launcher)i;
			return 0;
		}
	}
	return fb_ini_bad(r->ini, "launcher = %s: not one of local, ssh, mpirun, srun, lab", value);
}

static int parse_require(struct reader *r, const char *value)
{
	static const char *const yes[] = {"yes", "true", "1", "on"};
	static const char *const no[] = {"no", "false", "0", "off"};
	for (int i = 0; i < 4; i++) {
		if (strcmp(value, yes[i]) == 0 || strcmp(value, no[i]) == 0) {
			r->job->require = strcmp(value, yes[i]) == 0;
			return 0;
		}
	}
	return fb_ini_bad(r->ini, "require = %s: yes or no", value);
}

static int option_key(struct reader *r, const char *key, const char *value)
{
	struct fb_job *j = r->job;
	for (size_t i = 0; i < j->nkeys; i++)
		if (strcmp(j->keys[i].name, key) == 0)
			return fb_ini_bad(r->ini, "%s stands twice in [%s] (first in line %u)", key,
				j->name, j->keys[i].line);
	if (j->nkeys >= MAX_KEYS)
		return fb_ini_bad(r->ini, "more than %d keys in [%s]", MAX_KEYS, j->name);
	struct fb_plan_key *keys = realloc(j->keys, (j->nkeys + 1) * sizeof(*keys));
	if (!keys)
		return fb_ini_bad(r->ini, "out of memory");
	j->keys = keys;
	struct fb_plan_key k = {.name = strdup(key), .value = strdup(value), .line = r->ini->line};
	if (!k.name || !k.value) {
		free(k.name);
		free(k.value);
		return fb_ini_bad(r->ini, "out of memory");
	}
	keys[j->nkeys++] = k;
	return 0;
}

static int job_key(struct reader *r, const char *key, const char *value)
{
	if (strcmp(key, "command") == 0)
		return set_string(r, &r->job->command, key, value);
	if (strcmp(key, "ranks") == 0)
		return parse_count(r, key, value, MAX_RANKS, &r->job->ranks);
	if (strcmp(key, "launches") == 0)
		return parse_count(r, key, value, MAX_LAUNCHES, &r->job->launches);
	if (strcmp(key, "launcher") == 0)
		return parse_launcher(r, value);
	if (strcmp(key, "deadline") == 0)
		return parse_deadline(r, value, &r->job->deadline_ns);
	if (strcmp(key, "require") == 0)
		return parse_require(r, value);
	return option_key(r, key, value);
}

static int on_key(
	struct fb_ini *ini, void *arg, const char *section, const char *key, const char *value)
{
	struct reader *r = arg;
	r->ini = ini;
	if (*section == '\0')
		return fb_ini_bad(ini, "a key stands before the first [job]");
	if (strlen(key) > MAX_KEY)
		return fb_ini_bad(
			ini, "the key \"%.20s...\" is longer than %d characters", key, MAX_KEY);
	return r->job ? job_key(r, key, value) : plan_key(r, key, value);
}

static int check_complete(const struct fb_plan *p, const char *name, struct fb_err *e)
{
	for (size_t i = 0; i < p->njobs; i++) {
		const struct fb_job *j = &p->jobs[i];
		if (j->command && *j->command)
			continue;
		fb_fail_usage(e, "%s:%u: [%s] has no command", name, j->line, j->name);
		for (size_t k = 0; k < j->nkeys; k++)
			if (fb_edit_distance(j->keys[k].name, "command") <= 2)
				fb_hint(e, "line %u: did you mean \"command\"?", j->keys[k].line);
		return e->code;
	}
	if (p->njobs == 0)
		return fb_fail_usage(
			e, "%s: no job: a plan needs at least one [name] with command = ...", name);
	return 0;
}

int fb_plan_parse(
	const char *text, size_t len, const char *name, struct fb_plan *p, struct fb_err *e)
{
	static const struct fb_ini_form form = {
		.key = on_key, .section = on_section, .semicolons = true};
	struct reader r = {
		.plan = p, .defaults_launches = 1, .defaults_deadline_ns = 10ull * 60 * 1000000000};
	memset(p, 0, sizeof(*p));
	if (memchr(text, '\0', len))
		return fb_fail_usage(e, "%s: contains a NUL byte: not a text file", name);
	p->path = strdup(name);
	if (!p->path)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "%s: out of memory", name);
	int rc = fb_ini_parse_form(text, len, name, &form, &r, e);
	if (rc == 0)
		rc = check_complete(p, name, e);
	if (rc != 0)
		fb_plan_free(p);
	return rc;
}

int fb_plan_load(const char *path, struct fb_plan *p, struct fb_err *e)
{
	char *text = NULL;
	size_t len = 0;
	memset(p, 0, sizeof(*p));
	int rc = fb_read_file(path, 1u << 20, &text, &len, e);
	if (rc == 0)
		rc = fb_plan_parse(text, len, path, p, e);
	else if (e)
		e->exit = FB_EXIT_USAGE;
	free(text);
	return rc;
}

void fb_plan_free(struct fb_plan *p)
{
	for (size_t i = 0; i < p->njobs; i++) {
		struct fb_job *j = &p->jobs[i];
		for (size_t k = 0; k < j->nkeys; k++) {
			free(j->keys[k].name);
			free(j->keys[k].value);
		}
		free(j->keys);
		free(j->command);
	}
	free(p->jobs);
	free(p->path);
	free(p->title);
	free(p->scope);
	memset(p, 0, sizeof(*p));
}
