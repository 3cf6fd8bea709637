// SPDX-License-Identifier: Apache-2.0
/* What a point tells and what a listener hears: nobody there, a full pipe, a pipe of others,
 * nonsense. */
#include "bench/core/tell.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/proc.h"
#include "bench/core/result.h"
#include "bench/core/test.h"

struct heard {
	unsigned n, ended;
	unsigned point, points;
	char name[128], metric[64];
	double value;
};

static void hear(void *arg, const struct fb_told *t)
{
	struct heard *h = arg;
	h->n++;
	h->ended += t->ended;
	h->point = t->point;
	h->points = t->points;
	snprintf(h->name, sizeof(h->name), "%s", t->name);
	snprintf(h->metric, sizeof(h->metric), "%s", fb_json_str(t->result, "metric", ""));
	h->value = fb_json_num(t->result, "value", -1);
}

static void listen_here(struct fb_listen *l)
{
	assert_int_equal(fb_listen_open(l), 0);
	assert_memory_equal(l->env, FB_TELL_ENV "=", strlen(FB_TELL_ENV) + 1);
	assert_int_equal(setenv(FB_TELL_ENV, l->env + strlen(FB_TELL_ENV) + 1, 1), 0);
}

static struct fb_doc *doc_of(const char *metric, double value, int size)
{
	struct fb_output_cfg out = {.quiet = true};
	struct fb_err e = {0};
	struct fb_doc *d = fb_doc_new("null", 0, NULL, &out, &e);
	assert_non_null(d);
	fb_doc_add_result(d, json_pack("{s:s,s:s,s:f,s:{s:i}}", "metric", metric, "unit", "ns",
				     "value", value, "params", "size", size));
	return d;
}

static void there_and_back(void **state)
{
	struct fb_listen l;
	struct fb_tell t;
	struct heard h = {0};
	struct fb_doc *d = doc_of("latency", 1630, 64);
	listen_here(&l);
	fb_tell_open(&t);
	assert_true(t.fd >= 0);
	fb_tell_begin(&t, 2, 7, "null/normal/64");
	fb_listen_read(&l, hear, &h);
	assert_int_equal(h.n, 1);
	assert_int_equal(h.ended, 0);
	assert_int_equal(h.point, 2);
	assert_int_equal(h.points, 7);
	assert_string_equal(h.name, "null/normal/64");
	assert_string_equal(h.metric, "");
	fb_tell_end(&t, d);
	fb_listen_read(&l, hear, &h);
	assert_int_equal(h.n, 2);
	assert_int_equal(h.ended, 1);
	assert_int_equal(h.point, 2);
	assert_string_equal(h.metric, "latency");
	assert_float_equal(h.value, 1630, 0);
	fb_tell_end(&t, NULL); /* a point that gave nothing has ended too */
	fb_listen_read(&l, hear, &h);
	assert_int_equal(h.ended, 2);
	assert_string_equal(h.metric, "");
	/* A long name is cut, also within a character, and told all the same. */
	char name[160] = "";
	for (size_t i = 0; i < 50; i++)
		memcpy(name + 2 * i, "\xc3\xa9", 3);
	fb_tell_begin(&t, 3, 7, name);
	fb_tell_end(&t, d);
	fb_listen_read(&l, hear, &h);
	assert_int_equal(h.point, 3);
	assert_int_equal(h.ended, 3);
	assert_memory_equal(h.name, name, 90);
	fb_tell_begin(&t, 4, 7, "lone \xff byte");
	fb_listen_read(&l, hear, &h);
	assert_int_equal(h.point, 4);
	fb_doc_free(d);
	fb_tell_close(&t);
	fb_tell_take(&t);
	assert_true(t.fd >= 0);
	struct fb_tell other;
	fb_tell_open(&other);
	assert_int_equal(other.fd, -1);
	fb_tell_close(&t);
	fb_listen_close(&l);
}

static void nobody_listens(void **state)
{
	struct fb_listen l;
	struct fb_tell t;
	char other[128];
	static const char *const wheres[] = {"", "/etc/passwd 7", "/proc/self/fd/0 x", "/proc/self",
		"/proc/self/status 5", "/proc/1/fd/99999 5", "%s%s%n 3"};
	unsetenv(FB_TELL_ENV);
	fb_tell_open(&t);
	assert_int_equal(t.fd, -1);
	fb_tell_begin(&t, 1, 1, "x");
	fb_tell_end(&t, NULL);
	fb_tell_close(&t);
	for (size_t i = 0; i < sizeof(wheres) / sizeof(wheres[0]); i++) {
		setenv(FB_TELL_ENV, wheres[i], 1);
		fb_tell_open(&t);
		assert_int_equal(t.fd, -1);
	}
	/* The number is another pipe's: as it would be on another host. */
	listen_here(&l);
	snprintf(other, sizeof(other), "/proc/%ld/fd/%d 1", (long)getpid(), l.w);
	setenv(FB_TELL_ENV, other, 1);
	fb_tell_open(&t);
	assert_int_equal(t.fd, -1);
	fb_listen_close(&l);
}

/* A reader that does not read costs lines, and no time; when it reads again it gets the next. */
static void a_full_pipe(void **state)
{
	struct fb_listen l;
	struct fb_tell t;
	struct heard h = {0};
	listen_here(&l);
	fb_tell_open(&t);
	uint64_t began = fb_clock_ns();
	for (unsigned i = 1; i <= 20000; i++)
		fb_tell_begin(&t, i, 20000, "null/normal/64");
	assert_true(fb_clock_ns() - began < 5000000000u);
	assert_true(t.fd >= 0);
	fb_listen_read(&l, hear, &h);
	assert_in_range(h.n, 100, 19999);
	assert_int_equal(h.point, h.n); /* the first ones, each whole */
	fb_tell_begin(&t, 20000, 20000, "last");
	fb_listen_read(&l, hear, &h);
	assert_int_equal(h.point, 20000);
	/* The listener ends: no signal, no error. */
	fb_listen_close(&l);
	signal(SIGPIPE, SIG_DFL);
	fb_tell_begin(&t, 1, 2, "to nobody");
	fb_tell_close(&t);
}

static void bytes(struct fb_listen *l, struct heard *h, const char *s)
{
	fb_listen_bytes(l, s, strlen(s), hear, h);
}

static void nonsense(void **state)
{
	static const char *const lines[] = {"\n\n\n", "nothing\n", "[1,2]\n", "{}\n", "\"x\"\n",
		"{\"point\":0,\"points\":3}\n", "{\"point\":4,\"points\":3}\n",
		"{\"point\":-1,\"points\":3}\n", "{\"point\":1.5,\"points\":3}\n",
		"{\"point\":\"1\",\"points\":\"3\"}\n", "{\"point\":1,\"points\":99999999999}\n",
		"{\"point\":1,\"points\":2,\"point\":1}\n", "{\"point\":1,\"points\":2\n"};
	struct fb_listen l = {.r = -1, .w = -1};
	struct heard h = {0};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		bytes(&l, &h, lines[i]);
	fb_listen_bytes(&l, "\0\x1b\xff\n", 4, hear, &h);
	assert_int_equal(h.n, 0);
	/* Too long: dropped to its end, and no further. */
	for (int i = 0; i < 3000; i++)
		bytes(&l, &h, "x{}");
	assert_true(l.len <= FB_TELL_MAX);
	bytes(&l, &h, "\n{\"point\":1,\"points\":2,\"na");
	assert_int_equal(h.n, 0);
	bytes(&l, &h, "me\":\"a\\u001b[2J\"}\n{\"point\":2,\"points\":2,\"result\":[]}\n");
	assert_int_equal(h.n, 2);
	assert_int_equal(h.point, 2);
	assert_int_equal(h.ended, 0); /* a result that is none */
	assert_string_equal(h.name, "");
	bytes(&l, &h, "{\"point\":1,\"points\":2,\"name\":7,\"result\":{\"value\":null}}\n");
	assert_int_equal(h.ended, 1);
	assert_string_equal(h.name, "");
}

struct watching {
	struct fb_listen l;
	struct heard h;
	unsigned calls;
};

static void watched(void *arg)
{
	struct watching *w = arg;
	w->calls++;
	fb_listen_read(&w->l, hear, &w->h);
}

/* A child that has closed all it inherited, as mpirun's ranks have, finds the pipe. */
static void beside_a_child(void **state)
{
	struct watching w = {.calls = 0};
	struct fb_err e = {0};
	struct fb_proc_result r;
	assert_int_equal(fb_listen_open(&w.l), 0);
	const char *const env[] = {w.l.env, NULL};
	const char *const argv[] = {"sh", "-c",
		"for n in 1 2 3; do echo \"{\\\"point\\\":$n,\\\"points\\\":3}\" >\"${" FB_TELL_ENV
		"% *}\"; sleep 0.05; done",
		NULL};
	struct fb_proc_opts o = {.env = env,
		.capture = 1000,
		.deadline_ns = fb_deadline_in(20000000000ull),
		.watch = w.l.r,
		.watched = watched,
		.watch_arg = &w};
	assert_int_equal(fb_proc_run(argv, &o, &r, &e), 0);
	assert_string_equal(r.err, "");
	assert_int_equal(w.h.n, 3);
	assert_int_equal(w.h.point, 3);
	assert_true(w.calls >= 3); /* as they came, and not at the end */
	fb_proc_result_free(&r);
	fb_listen_close(&w.l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(nobody_listens),
		cmocka_unit_test(a_full_pipe),
		cmocka_unit_test(nonsense),
		cmocka_unit_test(beside_a_child),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
