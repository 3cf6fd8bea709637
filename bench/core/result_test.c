// SPDX-License-Identifier: Apache-2.0
/* The writer: what a document holds at each moment of its life, and what becomes of the status. */
#include "bench/core/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/stop.h"
#include "bench/core/sysinfo.h"

struct fixture {
	char dir[64], path[96];
	struct fb_output_cfg out;
	struct fb_doc *doc;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	if (!f)
		return -1;
	snprintf(f->dir, sizeof(f->dir), "/tmp/fb-result-XXXXXX");
	if (!mkdtemp(f->dir)) {
		free(f);
		return -1;
	}
	snprintf(f->path, sizeof(f->path), "%s/out.json", f->dir);
	f->out.path = f->path;
	f->out.quiet = true;
	f->out.seed = 42;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	fb_doc_free(f->doc);
	unlink(f->path);
	int rc = rmdir(f->dir); /* fails if anything was left beside the document */
	free(f);
	return rc;
}

static void start(struct fixture *f)
{
	static char words[][16] = {"demo", "--master", "node07:18515", "--token", "secret"};
	char *argv[] = {words[0], words[1], words[2], words[3], words[4], NULL};
	struct fb_err e = {0};
	f->doc = fb_doc_new("demo", 5, argv, &f->out, &e);
	assert_non_null(f->doc);
}

static json_t *load(const struct fixture *f)
{
	struct fb_err e = {0};
	json_t *doc = fb_doc_load(f->path, &e);
	if (!doc)
		fail_msg("%s", e.msg);
	return doc;
}

static json_t *a_result(const char *name)
{
	return json_pack("{s:s,s:s,s:{},s:s,s:s,s:s,s:s,s:s,s:i,s:n,s:n,s:i,s:i,s:[],s:{},s:[],"
			 "s:{s:{},s:{},s:{}},s:{s:s,s:[]}}",
		"case", name, "where", "cpu", "params", "metric", "latency", "unit", "ns", "better",
		"lower", "load", "closed", "sync", "none", "value", 5, "ci", "bound", "n", 1,
		"warmup_dropped", 0, "samples", "stats", "per_rank", "counters", "before", "after",
		"delta", "validity", "state", "valid", "reasons");
}

static const char *outcome(json_t *doc)
{
	return fb_json_str(json_object_get(doc, "run"), "outcome", "");
}

static void test_life(void **state)
{
	struct fixture *f = *state;
	struct fb_err e = {0};
	static char job[] = "first";
	f->out.job = job;
	f->out.launch = 3;
	start(f);
	/* Valid from the first moment, and interrupted until it is finished. */
	json_t *doc = load(f);
	assert_string_equal(outcome(doc), "interrupted");
	json_decref(doc);
	fb_doc_add_result(f->doc, a_result("demo/1"));
	assert_int_equal(fb_doc_publish(f->doc, &e), 0);
	doc = load(f);
	json_t *r = json_array_get(json_object_get(doc, "results"), 0);
	assert_string_equal(outcome(doc), "interrupted");
	assert_string_equal(fb_json_str(r, "job", ""), "first");
	assert_int_equal(fb_json_int(r, "launch", 0), 3);
	json_decref(doc);
	assert_int_equal(fb_doc_finish(f->doc, FB_EXIT_FAILED), FB_EXIT_FAILED);
	doc = load(f);
	json_t *run = json_object_get(doc, "run");
	assert_string_equal(outcome(doc), "complete");
	assert_int_equal(fb_json_int(run, "exit", -1), 1);
	assert_int_equal(fb_json_int(run, "seed", 0), 42);
	/* A token is never written. */
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(run, "argv"), 4)), "(set)");
	json_decref(doc);
}

static void test_status(void **state)
{
	static const struct {
		int status;
		const char *outcome;
	} cases[] = {{0, "complete"}, {1, "complete"}, {77, "complete"}, {2, "failed"},
		{3, "failed"}, {4, "failed"}};
	struct fixture *f = *state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		start(f);
		assert_int_equal(fb_doc_finish(f->doc, cases[i].status), cases[i].status);
		json_t *doc = load(f);
		assert_string_equal(outcome(doc), cases[i].outcome);
		json_decref(doc);
		fb_doc_free(f->doc);
		f->doc = NULL;
	}
}

static void test_errors(void **state)
{
	struct fixture *f = *state;
	struct fb_err e = {0}, again = {0}, none = {0};
	start(f);
	fb_fail(&e, FB_EXIT_UNMEASURED, EIO, "it broke");
	fb_hint(&e, "mend it");
	fb_fail(&again, FB_EXIT_UNMEASURED, EIO, "rank 1 on x: it broke");
	fb_doc_error_at(f->doc, &e, "demo/2");
	fb_doc_error(f->doc, &e);
	fb_doc_error(f->doc, &again);
	fb_doc_error(f->doc, &none);
	fb_doc_warn(f->doc, "%d warnings \xff", 1);
	fb_doc_finish(f->doc, 3);
	json_t *doc = load(f), *errors = json_object_get(doc, "errors");
	assert_int_equal(json_array_size(errors), 1);
	json_t *j = json_array_get(errors, 0);
	assert_string_equal(fb_json_str(j, "message", ""), "it broke");
	assert_string_equal(fb_json_str(j, "remedy", ""), "mend it");
	assert_string_equal(fb_json_str(j, "point", ""), "demo/2");
	assert_int_equal(fb_json_int(j, "code", 0), -EIO);
	assert_int_equal(fb_json_int(j, "exit", 0), 3);
	json_decref(doc);
}

static void test_hosts(void **state)
{
	struct fixture *f = *state;
	char name[256];
	start(f);
	fb_host_name(name, sizeof(name));
	fb_doc_add_host(f->doc, json_pack("{s:s}", "name", name));
	fb_doc_add_host(f->doc, json_pack("{s:s}", "name", "node08"));
	fb_doc_add_host(f->doc, json_pack("{s:s}", "name", "node08"));
	fb_doc_add_peer(f->doc, json_pack("{s:i}", "host", 1));
	json_t *hosts = json_object_get(json_object_get(fb_doc_json(f->doc), "system"), "hosts");
	assert_int_equal(json_array_size(hosts), 2);
	json_t *peers = json_object_get(fb_doc_json(f->doc), "peers");
	assert_int_equal(fb_json_int(json_array_get(peers, 0), "rank", -1), 1);
}

static void test_anonymous(void **state)
{
	struct fixture *f = *state;
	struct fb_err e = {0};
	char name[256], *text;
	size_t len;
	f->out.anonymous = true;
	start(f);
	fb_host_name(name, sizeof(name));
	fb_doc_add_host(f->doc,
		json_pack("{s:s,s:s}", "name", "node08.site.example", "mac", "00:11:22:33:44:55"));
	fb_doc_hide(f->doc, "node09:7000");
	fb_fail(&e, FB_EXIT_UNMEASURED, EIO, "rank 1 on node08: node09 (10.9.8.7) refused %s",
		name);
	fb_doc_error(f->doc, &e);
	fb_doc_set_config(f->doc, NULL, json_pack("{s:s}", "hosts", "node10,node11"));
	fb_doc_add_peer(f->doc, json_pack("{s:s}", "text", "by node08 at 00:11:22:33:44:55"));
	fb_doc_warn(f->doc, "node11 is slow");
	fb_doc_finish(f->doc, 3);
	assert_int_equal(fb_read_file(f->path, 1 << 20, &text, &len, &e), 0);
	static const char *const secrets[] = {
		"node0", "node1", "site.example", "10.9.8.7", "00:11:22:33:44:55"};
	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
		if (strstr(text, secrets[i]))
			fail_msg("%s is in: %s", secrets[i], text);
	}
	assert_non_null(strstr(text, "rank 1 on host1:"));
	char quoted[300];
	snprintf(quoted, sizeof(quoted), "\"%s\"", name);
	assert_null(strstr(text, quoted));
	free(text);
	json_decref(load(f));
}

static void test_disk_full(void **state)
{
	struct fixture *f = *state;
	struct fb_err e = {0};
	/* Known before anything is measured. */
	static char full[] = "/dev/full";
	f->out.path = full;
	assert_null(fb_doc_new("demo", 0, NULL, &f->out, &e));
	assert_int_equal(e.code, -ENOSPC);
	assert_int_equal(e.exit, FB_EXIT_UNMEASURED);
	/* It fails later: a folder that is taken away under the run. */
	f->out.path = f->path;
	start(f);
	unlink(f->path);
	assert_int_equal(rmdir(f->dir), 0);
	assert_int_equal(fb_doc_finish(f->doc, 0), FB_EXIT_UNMEASURED);
	assert_int_equal(mkdir(f->dir, 0700), 0);
}

/* Wait for the watching thread, at most two seconds. */
static bool stop_comes(void)
{
	uint64_t deadline = fb_deadline_in(2000000000);
	while (!fb_stop_requested() && fb_clock_ns() < deadline) {
		struct timespec ms = {.tv_nsec = 1000000};
		nanosleep(&ms, NULL);
	}
	return fb_stop_requested();
}

static void test_signal(void **state)
{
	struct fixture *f = *state;
	int sig;
	start(f);
	assert_false(fb_stop_requested());
	fb_doc_add_result(f->doc, a_result("demo/1"));
	assert_int_equal(kill(getpid(), SIGTERM), 0);
	assert_true(stop_comes());
	assert_int_equal(fb_stop_reason(&sig), FB_STOP_SIGNAL);
	assert_int_equal(sig, SIGTERM);
	assert_int_equal(fb_doc_finish(f->doc, 0), FB_EXIT_UNMEASURED);
	json_t *doc = load(f);
	assert_string_equal(outcome(doc), "interrupted");
	assert_int_equal(json_array_size(json_object_get(doc, "results")), 1);
	assert_string_equal(
		fb_json_str(json_array_get(json_object_get(doc, "errors"), 0), "message", ""),
		"stopped by SIGTERM");
	json_decref(doc);
}

static void test_deadline(void **state)
{
	struct fixture *f = *state;
	f->out.timeout = 20000000;
	start(f);
	assert_true(stop_comes());
	assert_int_equal(fb_stop_reason(NULL), FB_STOP_DEADLINE);
	assert_int_equal(fb_doc_finish(f->doc, 0), FB_EXIT_UNMEASURED);
	json_t *doc = load(f);
	assert_string_equal(outcome(doc), "failed");
	assert_non_null(strstr(
		fb_json_str(json_array_get(json_object_get(doc, "errors"), 0), "message", ""),
		"the command's deadline of 20"));
	json_decref(doc);
}

/* A --timeout of 0 is none, also for who counts by the clock. */
static void test_no_timeout(void **state)
{
	(void)state;
	struct fb_output_cfg out = {.timeout = 0};
	assert_true(fb_output_deadline(&out) == UINT64_MAX);
	out.timeout = 3600000000000;
	uint64_t until = fb_output_deadline(&out);
	struct fb_err e = {0};
	assert_int_equal(fb_timeout_fits(0, 1000000, "points", 3600000000000, "fewer", &e), 0);
	assert_int_equal(fb_timeout_fits(2000, 2, "points", 1000, "fewer", &e), 0);
	assert_int_equal(
		fb_timeout_fits(2000000000, 3, "steps", 1000000000, "fewer steps", &e), -EINVAL);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	assert_non_null(strstr(e.msg, "3 steps of 1.00 s each need 3.00 s"));
	assert_true(
		until > fb_clock_ns() + 3500000000000 && until <= fb_deadline_in(3600000000000));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_life),
		TEST(test_status),
		TEST(test_errors),
		TEST(test_hosts),
		TEST(test_anonymous),
		TEST(test_disk_full),
		TEST(test_signal),
		TEST(test_deadline),
		cmocka_unit_test(test_no_timeout),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
