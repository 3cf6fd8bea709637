// SPDX-License-Identifier: Apache-2.0
/*
 * The writer of the result document.
 *
 * One thread (the command's) adds to the document. What it publishes is kept as text under a lock,
 * so that the watching thread can leave a valid document when the command does not end by itself
 * (stop.h). Every text that leaves goes through render(), where --anonymous is obeyed.
 */
#include "bench/core/result.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/core/anon.h"
#include "bench/core/clock.h"
#include "bench/core/cmd.h"
#include "bench/core/json.h"
#include "bench/core/log.h"
#include "bench/core/stats.h"
#include "bench/core/stop.h"
#include "bench/core/strbuf.h"
#include "bench/core/sysinfo.h"
#include "bench/core/sysroot.h"
#include "bench/core/units.h"
#include "version.h"

#define TEXT_FLAGS (JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15))

struct fb_doc {
	json_t *root;
	struct fb_anon anon;
	bool json, anonymous, quiet;
	char *path;
	uint64_t timeout_ns;
	void (*table)(const json_t *doc, FILE *out);
	pthread_mutex_t lock; /* guards text */
	char *text;           /* the last published document */
	size_t len;
};

const struct fb_opt fb_output_opts[] = {
	{.name = "json",
		.type = FB_OPT_FLAG,
		.offset = offsetof(struct fb_output_cfg, json),
		.help = "print the result document on stdout instead of the table"},
	{.letter = 'o',
		.name = "output",
		.type = FB_OPT_STRING,
		.offset = offsetof(struct fb_output_cfg, path),
		.arg = "FILE",
		.help = "write the result document to this file, after every point"},
	{.name = "anonymous",
		.type = FB_OPT_FLAG,
		.offset = offsetof(struct fb_output_cfg, anonymous),
		.help = "leave out host names, GUIDs, MAC and IP addresses"},
	{.name = "quiet",
		.type = FB_OPT_FLAG,
		.offset = offsetof(struct fb_output_cfg, quiet),
		.help = "no table and no progress"},
	{.name = "timeout",
		.type = FB_OPT_DURATION,
		.offset = offsetof(struct fb_output_cfg, timeout),
		.arg = "TIME",
		.def = "10m",
		.help = "the whole command ends within this time (0: no limit)"},
	{.name = "seed",
		.type = FB_OPT_U64,
		.offset = offsetof(struct fb_output_cfg, seed),
		.arg = "N",
		.def = "1",
		.help = "seed of everything random, recorded in the document"},
	{.name = "job",
		.type = FB_OPT_STRING,
		.offset = offsetof(struct fb_output_cfg, job),
		.arg = "NAME",
		.help = "name of the job in the document; a plan sets it"},
	{.name = "launch",
		.type = FB_OPT_U64,
		.offset = offsetof(struct fb_output_cfg, launch),
		.arg = "N",
		.def = "0",
		.help = "number of this launch of the job; a plan sets it"},
	{.name = "run-id",
		.type = FB_OPT_STRING,
		.offset = offsetof(struct fb_output_cfg, run_id),
		.arg = "ID",
		.help = "identity of the run in the document; a plan sets it"},
	{.name = NULL},
};

/* ---- text ------------------------------------------------------------------------------------ */

/* RFC 3339 in UTC with milliseconds. */
static void now_utc(char *buf, size_t len)
{
	struct timespec ts;
	struct tm tm;
	char date[32];
	clock_gettime(CLOCK_REALTIME, &ts);
	gmtime_r(&ts.tv_sec, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf, len, "%s.%03ldZ", date, ts.tv_nsec / 1000000);
}

static void set_now(json_t *obj, const char *key)
{
	char buf[48];
	now_utc(buf, sizeof(buf));
	fb_json_set_str(obj, key, buf);
}

static bool add_json(struct fb_strbuf *b, const json_t *j)
{
	char *s = json_dumps(j, TEXT_FLAGS);
	if (!s)
		return false;
	fb_strbuf_add(b, s);
	free(s);
	return true;
}

/* One key a line, and one element a line in the long arrays: compact, yet it can be read, searched
 * and compared by lines. */
static char *to_text(const json_t *root, size_t *len)
{
	struct fb_strbuf b = {0};
	const char *key, *sep = "{\n";
	json_t *v;
	bool good = true;
	json_object_foreach ((json_t *)root, key, v) {
		fb_strbuf_printf(&b, "%s\"%s\": ", sep, key);
		sep = ",\n";
		if (!json_is_array(v) || json_array_size(v) == 0) {
			good = add_json(&b, v) && good;
			continue;
		}
		for (size_t i = 0; i < json_array_size(v); i++) {
			fb_strbuf_add(&b, i == 0 ? "[\n  " : ",\n  ");
			good = add_json(&b, json_array_get(v, i)) && good;
		}
		fb_strbuf_add(&b, "\n]");
	}
	fb_strbuf_add(&b, "\n}\n");
	*len = b.len;
	char *s = fb_strbuf_take(&b);
	if (!good) {
		free(s);
		return NULL;
	}
	return s;
}

/* A host of the anonymous copy keeps its place: "host0" is hosts[0] everywhere. */
json_t *fb_doc_visible(const struct fb_doc *d)
{
	return d->anonymous ? fb_anon_copy(&d->anon, d->root) : json_incref(d->root);
}

/* The document as text becomes the snapshot. @return 0, -ENOMEM */
static int render(struct fb_doc *d)
{
	size_t len = 0;
	if (!d->path && !d->json) /* nobody will read it, and there may be 60,000 checks in it */
		return 0;
	json_t *j = fb_doc_visible(d);
	char *text = j ? to_text(j, &len) : NULL;
	json_decref(j);
	if (!text)
		return -ENOMEM;
	pthread_mutex_lock(&d->lock);
	char *old = d->text;
	d->text = text;
	d->len = len;
	pthread_mutex_unlock(&d->lock);
	free(old);
	return 0;
}

/* ---- the watching thread's side -------------------------------------------------------------- */

/* Write without ever waiting long: a reader that does not read must not keep us alive. A pipe that
 * poll() calls writable takes PIPE_BUF bytes at once. */
static void write_stdout_bounded(const char *p, size_t len)
{
	uint64_t deadline = fb_deadline_in(80000000);
	while (len > 0) {
		struct pollfd fd = {.fd = STDOUT_FILENO, .events = POLLOUT};
		if (poll(&fd, 1, fb_deadline_poll_ms(deadline)) <= 0)
			return;
		ssize_t n = write(STDOUT_FILENO, p, len < 4096 ? len : 4096);
		if (n <= 0)
			return;
		p += n;
		len -= (size_t)n;
	}
}

static json_t *error_json(const struct fb_err *e)
{
	json_t *j = json_object();
	fb_json_set_str(j, "message", e->msg);
	fb_json_set_str(j, "remedy", e->hint);
	fb_json_set_int(j, "code", e->code);
	fb_json_set_int(j, "exit", e->exit);
	return j;
}

static void stop_error(const struct fb_doc *d, struct fb_err *e)
{
	int sig;
	char len[32];
	fb_err_clear(e);
	if (fb_stop_reason(&sig) == FB_STOP_SIGNAL) {
		fb_fail(e, FB_EXIT_UNMEASURED, EINTR, "stopped by %s", fb_stop_signal_name(sig));
		fb_hint(e, "the finished points are kept; run it again for the others");
		return;
	}
	fb_fail(e, FB_EXIT_UNMEASURED, ETIMEDOUT, "the command's deadline of %s passed",
		fb_fmt_duration((double)d->timeout_ns, len, sizeof(len)));
	fb_hint(e, "give it longer with --timeout, or fewer points");
}

static const char *stop_outcome(void)
{
	return fb_stop_reason(NULL) == FB_STOP_SIGNAL ? "interrupted" : "failed";
}

/* The command has not ended in time: complete the last published text with the reason. Works from
 * that text alone, never from the tree that the command may be changing at this moment. */
static void last_words(void *arg)
{
	struct fb_doc *d = arg;
	struct fb_err e;
	pthread_mutex_lock(&d->lock);
	stop_error(d, &e);
	json_t *j = d->text ? json_loadb(d->text, d->len, 0, NULL) : NULL;
	json_array_append_new(json_object_get(j, "errors"), error_json(&e));
	json_t *run = json_object_get(j, "run");
	fb_json_set_str(run, "outcome", stop_outcome());
	set_now(run, "ended");
	size_t len = 0;
	char *text = j ? to_text(j, &len) : NULL;
	if (text && d->path && fb_write_file_atomic(d->path, text, len, NULL) < 0)
		fb_error("cannot write %s in its last form", d->path);
	fb_log_err(&e);
	if (d->json)
		write_stdout_bounded(text ? text : d->text, text ? len : d->len);
	free(text);
	json_decref(j);
	pthread_mutex_unlock(&d->lock);
}

/* ---- the command's side ---------------------------------------------------------------------- */

static json_t *tool_json(void)
{
	json_t *j = json_object();
	fb_json_set_str(j, "name", "fabricbench");
	fb_json_set_str(j, "version", FB_VERSION);
	fb_json_set_str(j, "git", FB_GIT);
#if defined(__clang__)
	fb_json_set_str(j, "compiler", __VERSION__);
#else
	fb_json_set_str(j, "compiler", "gcc " __VERSION__);
#endif
	fb_json_set_str(j, "cflags", FB_CFLAGS);
	json_object_set_new(j, "features", json_object());
	return j;
}

static json_t *run_json(const char *command, int argc, char **argv, const struct fb_output_cfg *out)
{
	json_t *j = json_object(), *av = json_array();
	char id[80], date[48];
	now_utc(date, sizeof(date));
	snprintf(id, sizeof(id), "%s-%ld", date, (long)getpid());
	fb_json_set_str(j, "id", out->run_id ? out->run_id : id);
	fb_json_set_str(j, "command", command);
	for (int i = 0; i < argc; i++) {
		json_t *word = json_object();
		bool secret = i > 0 && strcmp(argv[i - 1], "--token") == 0;
		if (strncmp(argv[i], "--token=", 8) == 0)
			fb_json_set_str(word, "w", "--token=(set)");
		else
			fb_json_set_str(word, "w", secret ? "(set)" : argv[i]);
		json_array_append(av, json_object_get(word, "w"));
		json_decref(word);
	}
	json_object_set_new(j, "argv", av);
	fb_json_set_str(j, "started", date);
	fb_json_set_str(j, "ended", date);
	fb_json_set_str(j, "outcome", "interrupted");
	fb_json_set_int(j, "exit", FB_EXIT_UNMEASURED);
	fb_json_set_int(j, "seed", (int64_t)out->seed);
	json_object_set_new(j, "job", out->job ? json_string(out->job) : json_null());
	fb_json_set_int(j, "launch", (int64_t)out->launch);
	return j;
}

static json_t *skeleton(const char *command, int argc, char **argv, const struct fb_output_cfg *out)
{
	json_t *root = json_object(), *system = json_object(), *config = json_object();
	fb_json_set_str(root, "schema", FB_SCHEMA);
	json_object_set_new(root, "tool", tool_json());
	json_object_set_new(root, "run", run_json(command, argc, argv, out));
	json_object_set_new(system, "hosts", json_array());
	json_object_set_new(root, "system", system);
	json_object_set_new(root, "peers", json_array());
	json_object_set_new(root, "topology_ref", json_null());
	json_object_set_new(config, "requested", json_object());
	json_object_set_new(config, "effective", json_object());
	json_object_set_new(root, "config", config);
	json_object_set_new(root, "results", json_array());
	json_object_set_new(root, "checks", json_array());
	json_object_set_new(root, "warnings", json_array());
	json_object_set_new(root, "errors", json_array());
	return root;
}

void fb_doc_tell(struct fb_doc *d, bool aloud, bool *told, const struct fb_err *e)
{
	struct fb_err unwritten = {0};
	if (*told)
		return;
	*told = true;
	if (aloud)
		fb_cmd_fail(e);
	if (!d)
		return;
	fb_doc_error(d, e);
	if (fb_doc_publish(d, &unwritten) != 0)
		fb_debug("%s", unwritten.msg);
}

void fb_doc_hide(struct fb_doc *d, const char *host)
{
	char as[24];
	char *name = strdup(host);
	if (!name)
		return;
	/* A port after the last colon is no part of the name; two colons make it an address. */
	char *colon = strchr(name, ':');
	if (colon && !strchr(colon + 1, ':'))
		*colon = '\0';
	snprintf(as, sizeof(as), "host%zu",
		json_array_size(json_object_get(json_object_get(d->root, "system"), "hosts")));
	fb_anon_hide(&d->anon, name, as);
	free(name);
}

static const char *const host_options[] = {
	"master", "bind", "host", "hosts", "server", "peer", "peers", "interface", NULL};

/* A value of one of those options may be a list: a,b,c. */
static void hide_list(struct fb_doc *d, const char *value)
{
	char *list = strdup(value), *save = list, *one;
	while (list && (one = strsep(&list, ",")) != NULL) {
		if (*one)
			fb_doc_hide(d, one);
	}
	free(save);
}

static void hide_argv(struct fb_doc *d, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		for (const char *const *o = host_options; *o; o++) {
			size_t n = strlen(*o);
			if (strncmp(argv[i], "--", 2) != 0 || strncmp(argv[i] + 2, *o, n) != 0)
				continue;
			const char *after = argv[i] + 2 + n;
			if (*after == '=')
				hide_list(d, after + 1);
			else if (*after == '\0' && i + 1 < argc)
				hide_list(d, argv[i + 1]);
		}
	}
}

/* Everything from here on may be stopped, and leaves a document. */
static int start_watch(struct fb_doc *d, struct fb_err *e)
{
	int rc = fb_stop_watch(e);
	if (rc < 0)
		return rc;
	if (d->timeout_ns > 0)
		fb_stop_set_deadline(fb_deadline_in(d->timeout_ns));
	/* An output that cannot be written is better known now than after the measurement. */
	rc = fb_doc_publish(d, e);
	if (rc == 0)
		fb_stop_set_last_words(last_words, d);
	return rc;
}

struct fb_doc *fb_doc_new(const char *command, int argc, char **argv,
	const struct fb_output_cfg *out, struct fb_err *e)
{
	struct fb_doc *d = calloc(1, sizeof(*d));
	if (!d) {
		fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the result document");
		return NULL;
	}
	pthread_mutex_init(&d->lock, NULL);
	d->json = out->json;
	d->anonymous = out->anonymous;
	d->quiet = out->quiet;
	d->timeout_ns = out->timeout;
	d->path = out->path ? strdup(out->path) : NULL;
	d->root = skeleton(command, argc, argv, out);
	const struct fb_sysroot live = {.dir = NULL};
	json_t *host = fb_sysinfo_host(&live, false);
	if (!d->root || !host || (out->path && !d->path)) {
		json_decref(host);
		fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the result document");
		goto free_doc;
	}
	fb_doc_add_host(d, host);
	hide_argv(d, argc, argv);
	if (start_watch(d, e) < 0)
		goto free_doc;
	return d;

free_doc:
	fb_doc_free(d);
	return NULL;
}

void fb_doc_free(struct fb_doc *d)
{
	if (!d)
		return;
	fb_stop_unwatch();
	json_decref(d->root);
	fb_anon_free(&d->anon);
	pthread_mutex_destroy(&d->lock);
	free(d->path);
	free(d->text);
	free(d);
}

json_t *fb_doc_json(struct fb_doc *d)
{
	return d->root;
}

uint64_t fb_output_deadline(const struct fb_output_cfg *out)
{
	return out->timeout > 0 ? fb_deadline_in(out->timeout) : UINT64_MAX;
}

uint64_t fb_doc_timeout(const struct fb_doc *d)
{
	return d->timeout_ns;
}

int fb_timeout_fits(uint64_t timeout_ns, uint64_t n, const char *what, uint64_t each_ns,
	const char *fewer, struct fb_err *e)
{
	double need = (double)each_ns * (double)n;
	char each[32], all[32], limit[32];
	if (timeout_ns == 0 || need <= (double)timeout_ns)
		return 0;
	fb_fail_usage(e, "%llu %s of %s each need %s, and --timeout ends the command after %s",
		(unsigned long long)n, what, fb_fmt_duration((double)each_ns, each, sizeof(each)),
		fb_fmt_duration(need, all, sizeof(all)),
		fb_fmt_duration((double)timeout_ns, limit, sizeof(limit)));
	fb_hint(e, "give a longer --timeout, a shorter --duration, or %s", fewer);
	return -EINVAL;
}

void fb_doc_set_config(struct fb_doc *d, json_t *requested, json_t *effective)
{
	json_t *config = json_object_get(d->root, "config");
	for (const char *const *o = host_options; *o; o++) {
		const char *value = fb_json_str(effective, *o, NULL);
		if (value)
			hide_list(d, value);
	}
	json_object_set_new(config, "requested", requested ? requested : json_object());
	json_object_set_new(config, "effective", effective ? effective : json_object());
}

static json_t *array_of(struct fb_doc *d, const char *key)
{
	return json_object_get(d->root, key);
}

void fb_doc_add_host(struct fb_doc *d, json_t *host)
{
	json_t *hosts = json_object_get(json_object_get(d->root, "system"), "hosts");
	const char *name = fb_json_str(host, "name", "");
	for (size_t i = 0; i < json_array_size(hosts); i++) {
		if (strcmp(fb_json_str(json_array_get(hosts, i), "name", ""), name) == 0) {
			json_decref(host);
			return;
		}
	}
	fb_doc_hide(d, name);
	json_array_append_new(hosts, host);
}

void fb_doc_add_peer(struct fb_doc *d, json_t *peer)
{
	json_t *peers = array_of(d, "peers");
	if (!json_object_get(peer, "rank"))
		fb_json_set_int(peer, "rank", (int64_t)json_array_size(peers) + 1);
	json_array_append_new(peers, peer);
}

void fb_doc_set_topology(struct fb_doc *d, const char *ref)
{
	json_object_set_new(d->root, "topology_ref", ref ? json_string(ref) : json_null());
}

void fb_doc_add_result(struct fb_doc *d, json_t *result)
{
	const json_t *run = json_object_get(d->root, "run");
	if (!json_object_get(result, "job"))
		json_object_set(result, "job", json_object_get(run, "job"));
	if (!json_object_get(result, "launch"))
		json_object_set(result, "launch", json_object_get(run, "launch"));
	json_array_append_new(array_of(d, "results"), result);
}

void fb_doc_add_check(struct fb_doc *d, json_t *check)
{
	json_array_append_new(array_of(d, "checks"), check);
}

void fb_doc_warn(struct fb_doc *d, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_t *word = json_object();
	fb_json_set_str(word, "w", text);
	json_array_append(array_of(d, "warnings"), json_object_get(word, "w"));
	json_decref(word);
}

/* The same error may be reported by run control and again by the command that called it. */
static bool has_error(const json_t *errors, const struct fb_err *e)
{
	for (size_t i = 0; i < json_array_size(errors); i++) {
		const json_t *j = json_array_get(errors, i);
		/* On its way back it may have gained a "rank 1 on HOST: " before it. */
		if (fb_json_int(j, "code", 0) == e->code &&
			strstr(e->msg, fb_json_str(j, "message", "")))
			return true;
	}
	return false;
}

void fb_doc_error_at(struct fb_doc *d, const struct fb_err *e, const char *point)
{
	json_t *errors = array_of(d, "errors");
	if (e->code == 0 || has_error(errors, e))
		return;
	json_t *j = error_json(e);
	const char *job = fb_json_str(json_object_get(d->root, "run"), "job", NULL);
	fb_json_set_str(j, "job", job);
	fb_json_set_str(j, "point", point);
	json_array_append_new(errors, j);
}

void fb_doc_error(struct fb_doc *d, const struct fb_err *e)
{
	fb_doc_error_at(d, e, NULL);
}

int fb_doc_publish(struct fb_doc *d, struct fb_err *e)
{
	set_now(json_object_get(d->root, "run"), "ended");
	if (render(d) < 0)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the result document");
	/* Only this thread replaces d->text, so it may read it without the lock. */
	return d->path ? fb_write_file_atomic(d->path, d->text, d->len, e) : 0;
}

void fb_doc_set_table(struct fb_doc *d, void (*print)(const json_t *doc, FILE *out))
{
	d->table = print;
}

static int write_stdout(const struct fb_doc *d, struct fb_err *e)
{
	errno = 0;
	if (d->json) {
		if (fwrite(d->text, 1, d->len, stdout) < d->len)
			return fb_fail(e, FB_EXIT_UNMEASURED, errno, "cannot write to stdout: %s",
				strerror(errno));
	} else if (!d->quiet) {
		json_t *j = fb_doc_visible(d);
		(d->table ? d->table : fb_table_print)(j, stdout);
		json_decref(j);
	}
	if (fflush(stdout) != 0 || ferror(stdout)) {
		int rc = fb_fail(e, FB_EXIT_UNMEASURED, errno, "cannot write to stdout: %s",
			strerror(errno));
		fb_hint(e, "let its reader live until the end, or free space where it is kept");
		return rc;
	}
	return 0;
}

static void close_run(struct fb_doc *d, int status)
{
	json_t *run = json_object_get(d->root, "run");
	const char *outcome =
		status == FB_EXIT_OK || status == FB_EXIT_FAILED || status == FB_EXIT_SKIP
			? "complete"
			: "failed";
	if (fb_stop_reason(NULL) == FB_STOP_SIGNAL && status != FB_EXIT_WRONG_DATA)
		outcome = "interrupted";
	fb_json_set_str(run, "outcome", outcome);
	fb_json_set_int(run, "exit", status);
}

/* Whoever waited when the signal came reports it in his own words: one error says it for all. */
static void add_stop_error(struct fb_doc *d)
{
	struct fb_err e;
	char point[128] = "";
	json_t *errors = array_of(d, "errors");
	stop_error(d, &e);
	for (size_t i = json_array_size(errors); i-- > 0;) {
		const json_t *j = json_array_get(errors, i);
		if (fb_json_int(j, "code", 0) != -EINTR &&
			!strstr(fb_json_str(j, "message", ""), "the command's deadline"))
			continue;
		const char *at = fb_json_str(j, "point", NULL);
		if (at)
			snprintf(point, sizeof(point), "%s", at);
		json_array_remove(errors, i);
	}
	fb_doc_error_at(d, &e, point[0] ? point : NULL);
}

int fb_doc_finish(struct fb_doc *d, int status)
{
	struct fb_err e = {0};
	fb_stop_set_last_words(NULL, NULL);
	fb_progress_end();
	if (fb_stop_requested()) {
		add_stop_error(d);
		if (status != FB_EXIT_WRONG_DATA)
			status = FB_EXIT_UNMEASURED;
	}
	close_run(d, status);
	fb_err_clear(&e);
	if (fb_doc_publish(d, &e) < 0) {
		fb_log_err(&e);
		fb_doc_error(d, &e);
		if (status != FB_EXIT_WRONG_DATA)
			status = FB_EXIT_UNMEASURED;
		close_run(d, status);
		if (render(d) < 0)
			return status;
	}
	fb_err_clear(&e);
	if (write_stdout(d, &e) < 0) {
		fb_log_err(&e);
		if (status != FB_EXIT_WRONG_DATA)
			status = FB_EXIT_UNMEASURED;
	}
	return status;
}
