// SPDX-License-Identifier: Apache-2.0
/*
 * Plans by libinih. The packaged library continues values over indented lines and cuts them at "
 * ;": both are switched off here by handing it prepared lines. Its buffers are 200 bytes a line and
 * 50 a name, and it cuts silently: longer input is refused by name before it gets there.
 */
#include "bench/core/plan.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/units.h"

#define MAX_JOBS     256
#define MAX_KEYS     64
#define MAX_LINE     190 /* libinih's buffer less our own marks */
#define MAX_KEY      48
#define INLINE_MARK  '\x01' /* stands for a ';' that libinih would take for a comment */
#define MAX_LAUNCHES 1000
#define MAX_RANKS    1048576

const char *const fb_launcher_names[] = {"local", "ssh", "mpirun", "srun", "lab", NULL};

struct reader {
	const char *text, *end, *name;
	unsigned line;
	struct fb_plan *plan;
	char section[41];
	struct fb_job *job; /* NULL inside [plan] */
	unsigned defaults_launches;
	uint64_t defaults_deadline_ns;
	struct fb_err *e;
	int rc;
};

static int bad(struct reader *r, const char *fmt, ...) FB_PRINTF(2, 3);
static int bad(struct reader *r, const char *fmt, ...)
{
	char why[400];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (r->rc == 0)
		r->rc = fb_fail_usage(r->e, "%s:%u: %s", r->name, r->line, why);
	return 0; /* libinih: an error on this line */
}

static int copy_line(struct reader *r, const char *s, size_t n, char *out, int cap)
{
	while (n > 0 &&
		isspace((unsigned char)*s)) { /* an indented line is a line, not a continuation */
		s++;
		n--;
	}
	while (n > 0 && isspace((unsigned char)s[n - 1]))
		n--;
	if (n > MAX_LINE || (int)n + 2 > cap) {
		bad(r, "the line has %zu bytes; a plan's line may have %d", n, MAX_LINE);
		return -1;
	}
	bool comment = n > 0 && (*s == ';' || *s == '#');
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		if (c < 0x20 && c != '\t') {
			bad(r, "control character 0x%02x", c);
			return -1;
		}
		out[i] = c == ';' && !comment && i > 0 && isspace((unsigned char)s[i - 1])
				 ? INLINE_MARK
				 : s[i];
	}
	out[n] = '\n';
	out[n + 1] = '\0';
	return 0;
}

/* libinih's fgets: one prepared line. Ends early once an error is recorded. */
static char *next_line(char *out, int cap, void *arg)
{
	struct reader *r = arg;
	if (r->rc != 0 || r->text >= r->end)
		return NULL;
	const char *nl = memchr(r->text, '\n', (size_t)(r->end - r->text));
	size_t n = (size_t)((nl ? nl : r->end) - r->text);
	r->line++;
	if (copy_line(r, r->text, n, out, cap) != 0)
		return NULL;
	r->text += n + (nl ? 1 : 0);
	return out;
}

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

static int enter_section(struct reader *r, const char *section)
{
	if (*section == '\0')
		return bad(r, "a key stands before the first [job]");
	if (strlen(section) > 40)
		return bad(r, "the job name \"%s...\" is longer than 40 characters", r->section);
	snprintf(r->section, sizeof(r->section), "%.40s", section);
	r->job = NULL;
	if (strcmp(section, "plan") == 0)
		return 1;
	if (!name_ok(section))
		return bad(r, "\"%s\" is no job name: letters, digits, '-', '_' and '.' only",
			section);
	if (find_job(r->plan, section))
		return bad(r, "there are two jobs named \"%s\"", section);
	if (r->plan->njobs >= MAX_JOBS)
		return bad(r, "more than %d jobs", MAX_JOBS);
	struct fb_job *jobs = realloc(r->plan->jobs, (r->plan->njobs + 1) * sizeof(*jobs));
	if (!jobs)
		return bad(r, "out of memory");
	r->plan->jobs = jobs;
	r->job = &jobs[r->plan->njobs++];
	memset(r->job, 0, sizeof(*r->job));
	memcpy(r->job->name, r->section, sizeof(r->section));
	r->job->line = r->line;
	r->job->require = true;
	r->job->ranks = 1;
	r->job->launches = r->defaults_launches;
	r->job->deadline_ns = r->defaults_deadline_ns;
	return 1;
}

static int parse_count(
	struct reader *r, const char *key, const char *value, uint64_t max, unsigned *out)
{
	uint64_t v;
	struct fb_err e = {0};
	if (fb_parse_u64(value, 1, max, &v, &e) != 0)
		return bad(r, "%s = %s: %s", key, value, e.msg);
	*out = (unsigned)v;
	return 1;
}

static int parse_deadline(struct reader *r, const char *value, uint64_t *out)
{
	struct fb_err e = {0};
	if (fb_parse_duration(value, out, &e) != 0)
		return bad(r, "deadline = %s: %s", value, e.msg);
	if (*out == 0)
		return bad(r, "deadline = %s: a job needs some time", value);
	return 1;
}

static int set_string(struct reader *r, char **to, const char *key, const char *value)
{
	if (*to)
		return bad(r, "%s stands twice in [%s]", key, r->section);
	*to = strdup(value);
	return *to ? 1 : bad(r, "out of memory");
}

static int plan_key(struct reader *r, const char *key, const char *value)
{
	if (strcmp(key, "title") == 0)
		return set_string(r, &r->plan->title, key, value);
	if (strcmp(key, "scope") == 0)
		return set_string(r, &r->plan->scope, key, value);
	if (r->plan->njobs > 0)
		return bad(r, "[plan] gives defaults, so it stands before the first job");
	if (strcmp(key, "launches") == 0)
		return parse_count(r, key, value, MAX_LAUNCHES, &r->defaults_launches);
	if (strcmp(key, "deadline") == 0)
		return parse_deadline(r, value, &r->defaults_deadline_ns);
	return bad(r, "[plan] knows title, scope, launches and deadline, not \"%s\"", key);
}

static int parse_launcher(struct reader *r, const char *value)
{
	for (int i = 0; fb_launcher_names[i]; i++) {
		if (strcmp(value, fb_launcher_names[i]) == 0) {
			r->job->launcher = (enum fb_launcher)i;
			return 1;
		}
	}
	return bad(r, "launcher = %s: not one of local, ssh, mpirun, srun, lab", value);
}

static int parse_require(struct reader *r, const char *value)
{
	static const char *const yes[] = {"yes", "true", "1", "on"};
	static const char *const no[] = {"no", "false", "0", "off"};
	for (int i = 0; i < 4; i++) {
		if (strcmp(value, yes[i]) == 0 || strcmp(value, no[i]) == 0) {
			r->job->require = strcmp(value, yes[i]) == 0;
			return 1;
		}
	}
	return bad(r, "require = %s: yes or no", value);
}

static int option_key(struct reader *r, const char *key, const char *value)
{
	struct fb_job *j = r->job;
	for (size_t i = 0; i < j->nkeys; i++)
		if (strcmp(j->keys[i].name, key) == 0)
			return bad(r, "%s stands twice in [%s] (first in line %u)", key, j->name,
				j->keys[i].line);
	if (j->nkeys >= MAX_KEYS)
		return bad(r, "more than %d keys in [%s]", MAX_KEYS, j->name);
	struct fb_plan_key *keys = realloc(j->keys, (j->nkeys + 1) * sizeof(*keys));
	if (!keys)
		return bad(r, "out of memory");
	j->keys = keys;
	struct fb_plan_key k = {.name = strdup(key), .value = strdup(value), .line = r->line};
	if (!k.name || !k.value) {
		free(k.name);
		free(k.value);
		return bad(r, "out of memory");
	}
	keys[j->nkeys++] = k;
	return 1;
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

static int on_key(void *user, const char *section, const char *key, const char *value)
{
	struct reader *r = user;
	char buf[256];
	if (r->rc != 0)
		return 0;
	if (strlen(section) > 40)
		return bad(r, "the job name \"%.40s...\" is longer than 40 characters", section);
	if (strcmp(section, r->section) != 0 || r->section[0] == '\0') {
		if (!enter_section(r, section))
			return 0;
	}
	if (strlen(key) > MAX_KEY)
		return bad(r, "the key \"%.20s...\" is longer than %d characters", key, MAX_KEY);
	snprintf(buf, sizeof(buf), "%s", value);
	for (char *c = buf; *c; c++)
		if (*c == INLINE_MARK)
			*c = ';';
	return r->job ? job_key(r, key, buf) : plan_key(r, key, buf);
}

/* The next "[name]" from *s on: its name and line; false at the end. libinih itself does not report
 * sections. */
static bool next_section(
	const char **s, const char *end, unsigned *line, char *name, size_t cap, size_t *len)
{
	while (*s < end) {
		const char *nl = memchr(*s, '\n', (size_t)(end - *s));
		const char *stop = nl ? nl : end;
		const char *c = *s;
		*s = nl ? nl + 1 : end;
		(*line)++;
		while (c < stop && isspace((unsigned char)*c))
			c++;
		const char *close =
			c < stop && *c == '[' ? memchr(c, ']', (size_t)(stop - c)) : NULL;
		if (close) {
			*len = (size_t)(close - c - 1);
			snprintf(name, cap, "%.*s", (int)(*len < cap ? *len : cap - 1), c + 1);
			return true;
		}
	}
	return false;
}

/* A section that opens twice would merge silently, and one without keys would vanish: neither may.
 */
static int check_sections(struct reader *r, const char *text)
{
	char name[41], other[41];
	size_t len, other_len, n = 0;
	unsigned line = 0;
	for (const char *s = text; next_section(&s, r->end, &line, name, sizeof(name), &len);) {
		unsigned first = 0;
		const char *t = text;
		if (len > 40)
			return fb_fail_usage(r->e,
				"%s:%u: the job name is longer than 40 characters", r->name, line);
		if (++n > MAX_JOBS + 1)
			return fb_fail_usage(
				r->e, "%s:%u: more than %d jobs", r->name, line, MAX_JOBS);
		while (next_section(&t, s, &first, other, sizeof(other), &other_len) &&
			first < line)
			if (strcmp(other, name) == 0)
				return fb_fail_usage(r->e, "%s:%u: there are two sections [%s]",
					r->name, line, name);
	}
	return 0;
}

static int check_complete(struct reader *r, const char *text)
{
	char name[41];
	size_t len;
	unsigned line = 0;
	for (const char *s = text; next_section(&s, r->end, &line, name, sizeof(name), &len);) {
		const struct fb_job *j = find_job(r->plan, name);
		if (strcmp(name, "plan") != 0 && (!j || !j->command || !*j->command))
			return fb_fail_usage(
				r->e, "%s:%u: [%s] has no command", r->name, line, name);
	}
	if (r->plan->njobs == 0)
		return fb_fail_usage(r->e,
			"%s: no job: a plan needs at least one [name] with command = ...", r->name);
	return 0;
}

int fb_plan_parse(
	const char *text, size_t len, const char *name, struct fb_plan *p, struct fb_err *e)
{
	struct reader r = {.text = text, .end = text + len, .name = name, .plan = p, .e = e};
	r.defaults_launches = 1;
	r.defaults_deadline_ns = 10ull * 60 * 1000000000;
	memset(p, 0, sizeof(*p));
	if (memchr(text, '\0', len))
		return fb_fail_usage(e, "%s: contains a NUL byte: not a text file", name);
	int rc = check_sections(&r, text);
	if (rc != 0)
		return rc;
	p->path = strdup(name);
	if (!p->path)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "%s: out of memory", name);
	rc = ini_parse_stream(next_line, &r, on_key, &r);
	if (r.rc == 0 && rc != 0) {
		r.line = rc > 0 ? (unsigned)rc : r.line;
		bad(&r, "neither [name] nor key = value");
	}
	if (r.rc == 0)
		r.rc = check_complete(&r, text);
	if (r.rc != 0)
		fb_plan_free(p);
	return r.rc;
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
