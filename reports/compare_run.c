// SPDX-License-Identifier: Apache-2.0
/* See compare_run.h. */
#include "reports/compare_run.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/proc.h"
#include "bench/core/result.h"
#include "bench/core/units.h"

#define MAX_WORDS 128

/* The words of one child; owned. */
struct words {
	char *v[MAX_WORDS + 1];
	size_t n;
};

static int FB_PRINTF(2, 3) word(struct words *w, const char *fmt, ...)
{
	va_list ap;
	if (w->n == MAX_WORDS)
		return -E2BIG;
	va_start(ap, fmt);
	int n = vasprintf(&w->v[w->n], fmt, ap);
	va_end(ap);
	if (n < 0) {
		w->v[w->n] = NULL;
		return -ENOMEM;
	}
	w->v[++w->n] = NULL;
	return 0;
}

static void free_words(struct words *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->v[i]);
	memset(w, 0, sizeof(*w));
}

/* "null --mean 1us" into its words: at blanks, for there is no shell here. */
static int split(struct words *w, const char *text)
{
	int rc = 0;
	while (*text && rc == 0) {
		size_t skip = strspn(text, " \t"), n = strcspn(text + skip, " \t");
		if (n > 0)
			rc = word(w, "%.*s", (int)n, text + skip);
		text += skip + n;
	}
	return rc;
}

static bool is_file(const char *path, bool *program)
{
	struct stat st;
	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
		return false;
	*program = access(path, X_OK) == 0;
	return true;
}

/* One launch: what to run, and where its document will lie. */
static int make_words(const struct cmp_run *r, int side, uint64_t launch, const char *out,
	struct words *w, char *doc, size_t len)
{
	char self[4096];
	bool program = false, file = is_file(r->side[side], &program);
	int rc = fb_self_path(self, sizeof(self));
	snprintf(doc, len, "%s%s", out, file && !program ? "/run.json" : ".json");
	if (rc != 0)
		return rc;
	rc = word(w, "%s", program ? r->side[side] : self);
	if (file && !program) {
		const char *const plan[] = {"run", r->side[side], "--no-report", "--output", out};
		for (size_t i = 0; i < sizeof(plan) / sizeof(plan[0]) && rc == 0; i++)
			rc = word(w, "%s", plan[i]);
	} else {
		if (!file)
			rc = split(w, r->side[side]);
		for (const char *const *p = r->words; p && *p && rc == 0; p++)
			rc = word(w, "%s", *p);
		if (rc == 0)
			rc = word(w, "--quiet");
		if (rc == 0)
			rc = word(w, "--launch=%llu", (unsigned long long)launch + 1);
		if (rc == 0)
			rc = word(w, "--output=%s", doc);
	}
	/* Another seed for every launch of both sides: equal draws would be no second launch. */
	if (rc == 0)
		rc = word(w, "--seed=%llu",
			(unsigned long long)r->seed + 2ull * launch + (unsigned)side);
	return rc;
}

/* The last line of what a child said. */
static const char *last_line(char *text)
{
	size_t n = text ? strlen(text) : 0;
	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
		text[--n] = '\0';
	char *nl = text ? strrchr(text, '\n') : NULL;
	return nl ? nl + 1 : text ? text : "";
}

/* The cause among a child's lines: the first error, else the last line. */
static const char *cause(char *text)
{
	char *from = text ? strstr(text, "error: ") : NULL;
	if (!from)
		return last_line(text);
	from[strcspn(from, "\n")] = '\0';
	return from + 7;
}

static int launch_failed(const struct cmp_run *r, int side, uint64_t launch,
	struct fb_proc_result *done, struct fb_err *e)
{
	bool wrong = done->status == FB_EXIT_WRONG_DATA;
	fb_fail(e, wrong ? FB_EXIT_WRONG_DATA : FB_EXIT_UNMEASURED, EIO,
		"launch %llu of %s (%.100s) ended with status %d: %.400s",
		(unsigned long long)launch + 1, side ? "the candidate" : "the base", r->side[side],
		done->status, cause(done->err));
	fb_hint(e, "every launch must end with status 0 to be compared; try it alone first");
	return -EIO;
}

static int one_launch(
	const struct cmp_run *r, int side, uint64_t launch, struct cmp *c, struct fb_err *e)
{
	struct words w = {0};
	struct fb_proc_result done = {.status = -1};
	struct fb_proc_opts opts = {.deadline_ns = fb_clock_ns() + r->timeout, .capture = 1 << 16};
	struct fb_err read = {0};
	char out[4096], doc[4200];
	snprintf(out, sizeof(out), "%s/%s-%03llu", r->dir, side ? "candidate" : "base",
		(unsigned long long)launch + 1);
	int rc = make_words(r, side, launch, out, &w, doc, sizeof(doc));
	if (rc != 0)
		fb_fail_usage(e, "%.200s: %s", r->side[side],
			rc == -E2BIG ? "too many words" : strerror(-rc));
	else
		rc = fb_proc_run((const char *const *)w.v, &opts, &done, e);
	if (rc == 0 && done.status != 0)
		rc = launch_failed(r, side, launch, &done, e);
	if (rc == 0) {
		json_t *json = fb_doc_load(doc, &read);
		rc = json ? cmp_add_doc(c, json, side, e)
			  : fb_fail(e, FB_EXIT_UNMEASURED, EIO, "launch %llu of %.100s: %.500s",
				    (unsigned long long)launch + 1, r->side[side], read.msg);
	}
	fb_proc_result_free(&done);
	free_words(&w);
	return rc;
}

int cmp_run_launches(const struct cmp_run *r, uint64_t done, struct cmp *c, struct fb_err *e)
{
	struct fb_rng rng;
	char left[32];
	uint64_t began = fb_clock_ns();
	fb_rng_seed(&rng, r->seed, done);
	for (uint64_t i = 0; i < r->launches; i++) {
		int first = (int)(fb_rng_u32(&rng) & 1);
		for (int k = 0; k < 2; k++) {
			int side = first ^ k;
			uint64_t n = 2 * i + (uint64_t)k, all = 2 * r->launches;
			double each = n ? (double)(fb_clock_ns() - began) / (double)n : 0;
			if (!r->quiet && isatty(2))
				fprintf(stderr, "\r\033[Klaunch %llu of %llu (%s)%s%s",
					(unsigned long long)n + 1, (unsigned long long)all,
					side ? "candidate" : "base", n ? ", left: " : "",
					n ? fb_fmt_duration(
						    each * (double)(all - n), left, sizeof(left))
					  : "");
			int rc = one_launch(r, side, done + i, c, e);
			if (rc == 0 && fb_stop_requested())
				rc = fb_fail(e, FB_EXIT_UNMEASURED, EINTR, "interrupted");
			if (rc != 0)
				return rc;
		}
	}
	if (!r->quiet && isatty(2))
		fprintf(stderr, "\r\033[K");
	return 0;
}

/* ---- the folder ------------------------------------------------------------------------------ */

static bool is_empty(const char *path)
{
	DIR *d = opendir(path);
	const struct dirent *entry;
	bool empty = d != NULL;
	while (d && empty && (entry = readdir(d)))
		empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
	if (d)
		closedir(d);
	return empty;
}

int cmp_run_dir(const char *keep, char *dir, size_t len, struct fb_err *e)
{
	const char *tmp = getenv("TMPDIR");
	int n = keep ? snprintf(dir, len, "%s", keep)
		     : snprintf(dir, len, "%s/fabricbench-compare-XXXXXX",
			       tmp && *tmp ? tmp : "/tmp");
	if (n < 0 || (size_t)n >= len)
		return fb_fail_usage(e, "the folder's path is too long");
	if (keep && mkdir(dir, 0755) != 0 && errno != EEXIST)
		return fb_fail(e, FB_EXIT_USAGE, errno, "cannot make %s: %s", dir, strerror(errno));
	if (keep && !is_empty(dir)) {
		fb_fail(e, FB_EXIT_USAGE, ENOTEMPTY, "%s is not an empty folder", dir);
		fb_hint(e,
			"name a new one: launches of another comparison must not mix with these");
		return -ENOTEMPTY;
	}
	if (!keep && !mkdtemp(dir))
		return fb_fail(e, FB_EXIT_USAGE, errno, "cannot make %s: %s", dir, strerror(errno));
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

void cmp_run_remove(const char *dir)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
