// SPDX-License-Identifier: Apache-2.0
/*
 * See live.h. The thread works on a copy made when a part begins: parts change under the hands of
 * the thread that runs them. It takes no signal, so that an interruption reaches who waits for it.
 */
#include "bench/run/live.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/log.h"
#include "bench/core/strbuf.h"
#include "bench/core/units.h"
#include "bench/run/run_priv.h"

#define TICK_NS 500000000l

/* ---- what is left ---------------------------------------------------------------------------- */

static bool has_ended(const struct run_part *p)
{
	return p->state != RUN_PENDING;
}

/* @return seconds; *bounded when only the deadline tells */
static double expected_seconds(const struct run *r, const struct run_part *p, bool *bounded)
{
	double sum = 0;
	uint64_t ns;
	size_t n = 0;
	for (size_t i = 0; i < r->nparts; i++) {
		const struct run_part *q = &r->parts[i];
		if (q->job == p->job && q->state == RUN_COMPLETE) {
			sum += q->seconds;
			n++;
		}
	}
	if (n > 0)
		return sum / (double)n;
	const char *t = run_job_key(p->job, "time");
	if (t && fb_parse_duration(t, &ns, NULL) == 0)
		return (double)ns / 1e9;
	*bounded = true;
	return (double)p->job->deadline_ns / 1e9;
}

/* Without part `but`; nparts: of all. */
static void left_but(const struct run *r, size_t but, struct live_left *left)
{
	*left = (struct live_left){0, false};
	for (size_t i = 0; i < r->nparts; i++)
		if (i != but && !has_ended(&r->parts[i]))
			left->seconds += expected_seconds(r, &r->parts[i], &left->bounded);
}

void live_left(const struct run *r, struct live_left *left)
{
	left_but(r, r->nparts, left);
}

void live_refine(struct live_state *s)
{
	if (!(s->deadline > 0) || s->point == 0)
		return;
	double all = s->part_gone * s->points / s->point;
	all = all < s->deadline ? all : s->deadline;
	s->left.seconds += all - s->expected;
	s->left.bounded = s->others_bounded;
	s->expected = all;
}

/* ---- texts ----------------------------------------------------------------------------------- */

const char *live_value(const json_t *r, char *buf, size_t len)
{
	const char *unit = fb_json_str(r, "unit", ""), *metric = fb_json_str(r, "metric", "");
	bool bus = strcmp(metric, "busbw") == 0 || strcmp(metric, "algbw") == 0;
	double v = fb_json_num(r, "value", NAN);
	int64_t size = fb_json_int(json_object_get(r, "params"), "size", -1);
	char number[48], bytes[32];
	buf[0] = '\0';
	if (!isfinite(v))
		return buf;
	if (strcmp(unit, "ns") == 0)
		fb_fmt_duration(v, number, sizeof(number));
	else if (strcmp(unit, "bytes/s") == 0 && !bus)
		fb_fmt_gbps(v, number, sizeof(number));
	else if (strcmp(unit, "bytes/s") == 0)
		snprintf(number, sizeof(number), "%.3g GB/s", v * 1e-9);
	else
		snprintf(number, sizeof(number), "%.3g%s%.16s", v, *unit ? " " : "", unit);
	snprintf(buf, len, "%.40s %s%s%s", metric, number, size >= 0 ? " at " : "",
		size >= 0 ? fb_fmt_size((uint64_t)size, bytes, sizeof(bytes)) : "");
	return buf;
}

const char *live_clock(double seconds, char *buf, size_t len)
{
	unsigned long s = seconds > 0 ? (unsigned long)(seconds + 0.5) : 0;
	if (s >= 3600)
		snprintf(buf, len, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
	else
		snprintf(buf, len, "%lu:%02lu", s / 60, s % 60);
	return buf;
}

static const char *left_text(const struct live_left *left, double gone_since, char *buf, size_t len)
{
	char clock[32];
	double s = left->seconds - gone_since;
	snprintf(buf, len, "%s %s left", left->bounded ? "at most" : "about",
		live_clock(s > 0 ? s : 0, clock, sizeof(clock)));
	return buf;
}

/* At most `columns` characters of a line of UTF-8; what a terminal cannot hold would stay on it. */
static void cut(char *s, unsigned columns)
{
	size_t n = 0;
	for (; *s; s++)
		if (((unsigned char)*s & 0xc0) != 0x80 && n++ == columns) {
			*s = '\0';
			return;
		}
}

static size_t characters(const char *s)
{
	size_t n = 0;
	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

/* spare: how much is left out for want of room, 0 to 2. */
static void compose(const struct live_state *s, int spare, char *buf, size_t len)
{
	char gone[48] = "", left[64], point[48] = "", clock[32], line[400];
	/* A part that takes longer than it should does not eat what the others need. */
	double used = s->part_gone < s->expected ? s->part_gone : s->expected;
	if (s->points > 0)
		snprintf(point, sizeof(point), ", point %u/%u", s->point, s->points);
	if (spare < 1)
		snprintf(
			gone, sizeof(gone), "%s gone, ", live_clock(s->gone, clock, sizeof(clock)));
	bool whose = s->last[0] && spare < 2 && s->last_job[0];
	snprintf(line, sizeof(line), "[%zu/%zu] %s%s  %s%s%s%s%s%s", s->part, s->parts, s->name,
		point, gone, left_text(&s->left, used, left, sizeof(left)),
		s->last[0] ? "  last: " : "", whose ? s->last_job : "", whose ? " " : "", s->last);
	fb_safe_text(line, buf, len);
}

const char *live_line(const struct live_state *s, unsigned columns, char *buf, size_t len)
{
	compose(s, 0, buf, len);
	for (int spare = 1; spare <= 2 && columns > 0 && characters(buf) > columns; spare++)
		compose(s, spare, buf, len);
	if (columns > 0)
		cut(buf, columns);
	return buf;
}

const char *live_part_line(const struct run *r, const struct run_part *p, size_t i,
	const char *value, char *buf, size_t len)
{
	struct live_left left;
	char text[64] = "", line[1024];
	live_left(r, &left);
	if (left.seconds > 0)
		left_text(&left, 0, text, sizeof(text));
	snprintf(line, sizeof(line), "[%2zu/%zu] %-24s launch %u  %-11s %5.1f s%s%s%s%s%s%s", i + 1,
		r->nparts, p->job->name, p->launch, run_state_names[p->state], p->seconds,
		*value ? "  " : "", value, p->reason[0] ? "  " : "", p->reason,
		*text ? (*value || p->reason[0] ? "; " : "  ") : "", text);
	return fb_safe_text(line, buf, len);
}

const char *live_point_line(const struct run *r, const struct run_part *p, size_t i,
	const struct fb_told *t, char *buf, size_t len)
{
	char value[96], point[40], line[480];
	live_value(t->result, value, sizeof(value));
	snprintf(point, sizeof(point), "%u/%u", t->point, t->points);
	snprintf(line, sizeof(line), "[%2zu/%zu] %-24s launch %u  point %-7s %s%s%.96s", i + 1,
		r->nparts, p->job->name, p->launch, point, value, *value ? "  " : "", t->name);
	return fb_safe_text(line, buf, len);
}

/* ---- the terminal ---------------------------------------------------------------------------- */

static void show(struct live *l)
{
	struct winsize w;
	char line[250];
	unsigned columns =
		ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 1 ? w.ws_col - 1u : 79;
	uint64_t now = fb_clock_ns();
	l->state.gone = (double)(now - l->began) / 1e9;
	l->state.part_gone = (double)(now - l->part_began) / 1e9;
	fb_progress("%s", live_line(&l->state, columns, line, sizeof(line)));
}

static void *keep_showing(void *arg)
{
	struct live *l = arg;
	pthread_mutex_lock(&l->lock);
	while (!l->stop) {
		struct timespec t;
		if (l->shown)
			show(l);
		clock_gettime(CLOCK_MONOTONIC, &t);
		t.tv_nsec += TICK_NS;
		if (t.tv_nsec >= 1000000000l) {
			t.tv_nsec -= 1000000000l;
			t.tv_sec++;
		}
		pthread_cond_timedwait(&l->wake, &l->lock, &t);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

void live_start(struct live *l, const struct run *r, bool quiet)
{
	pthread_condattr_t attr;
	sigset_t all, old;
	memset(l, 0, sizeof(*l));
	l->quiet = quiet;
	l->began = l->part_began = fb_clock_ns();
	l->state.parts = r->nparts;
	if (quiet || !isatty(STDERR_FILENO))
		return;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->wake, &attr);
	pthread_condattr_destroy(&attr);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	l->thread = pthread_create(&l->id, NULL, keep_showing, l) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void live_begin(struct live *l, const struct run *r, size_t i, const char *what)
{
	bool bounded = false;
	l->run = r;
	l->part = i;
	if (!l->thread)
		return;
	pthread_mutex_lock(&l->lock);
	l->part_began = fb_clock_ns();
	l->state.part = i + 1;
	l->state.point = l->state.points = 0;
	if (what)
		snprintf(l->state.name, sizeof(l->state.name), "%s", what);
	else
		snprintf(l->state.name, sizeof(l->state.name), "%.40s, launch %u",
			r->parts[i].job->name, r->parts[i].launch);
	left_but(r, i, &l->state.left);
	l->state.others_bounded = l->state.left.bounded;
	l->state.expected = expected_seconds(r, &r->parts[i], &bounded);
	l->state.deadline = bounded ? l->state.expected : 0;
	l->state.left.seconds += l->state.expected;
	l->state.left.bounded = l->state.left.bounded || bounded;
	l->shown = true;
	pthread_cond_signal(&l->wake);
	pthread_mutex_unlock(&l->lock);
}

/* The thread shows it at its next turn: a thousand points a second are no reason to write as many
 * lines. */
static void note_point(struct live *l, const struct fb_told *t)
{
	char value[96];
	const struct run_part *p = &l->run->parts[l->part];
	pthread_mutex_lock(&l->lock);
	l->state.point = t->point;
	l->state.points = t->points;
	if (t->ended) {
		l->state.part_gone = (double)(fb_clock_ns() - l->part_began) / 1e9;
		live_refine(&l->state);
	}
	if (*live_value(t->result, value, sizeof(value))) {
		snprintf(l->state.last_job, sizeof(l->state.last_job), "%.30s", p->job->name);
		snprintf(l->state.last, sizeof(l->state.last), "%s", value);
	}
	pthread_mutex_unlock(&l->lock);
}

void live_point(struct live *l, const struct fb_told *t)
{
	char line[1024];
	if (l->quiet)
		return;
	if (l->thread)
		note_point(l, t);
	else if (t->ended)
		fprintf(stderr, "%s\n",
			live_point_line(
				l->run, &l->run->parts[l->part], l->part, t, line, sizeof(line)));
}

void live_end(struct live *l, const struct run *r, size_t i, const json_t *last)
{
	char value[96] = "", line[1024];
	const struct run_part *p = &r->parts[i];
	if (l->quiet)
		return;
	if (last)
		live_value(last, value, sizeof(value));
	if (l->thread) {
		pthread_mutex_lock(&l->lock);
		l->shown = false;
		if (*value) {
			snprintf(l->state.last_job, sizeof(l->state.last_job), "%.30s",
				p->job->name);
			snprintf(l->state.last, sizeof(l->state.last), "%s", value);
		}
	}
	fb_progress_end();
	fprintf(stderr, "%s\n", live_part_line(r, p, i, value, line, sizeof(line)));
	if (l->thread)
		pthread_mutex_unlock(&l->lock);
}

void live_stop(struct live *l)
{
	if (!l->thread)
		return;
	pthread_mutex_lock(&l->lock);
	l->stop = true;
	pthread_cond_signal(&l->wake);
	pthread_mutex_unlock(&l->lock);
	pthread_join(l->id, NULL);
	pthread_cond_destroy(&l->wake);
	pthread_mutex_destroy(&l->lock);
	l->thread = false;
	fb_progress_end();
}
