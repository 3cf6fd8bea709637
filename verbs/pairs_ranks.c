// SPDX-License-Identifier: Apache-2.0
/*
 * Rank 0 and the hosts. Orders of a step go out to all first; then rank 0 measures its own pair,
 * and then reads the reports, each under the step's deadline. A report that comes too late is known
 * by its number and dropped.
 */
#include "verbs/pairs_ranks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/log.h"

#define OFFER_NS 20000000000ull /* opening devices and reading facts of a host */
#define SLACK_NS 10000000000ull /* a report may come so much after the pair's own end */
#define TELL_NS  2000000000ull
/* A follower hears nothing while other hosts' pairs run into their deadlines, one step after the
 * other: the command's own --timeout ends it before this does. */
#define IDLE_NS 86400000000000ull

/* ---- gathering ------------------------------------------------------------------------------- */

static int hear_offers(struct pairs_ranks *k, struct fb_err *e)
{
	int size = fb_oob_size(k->oob);
	uint64_t deadline = fb_deadline_in(OFFER_NS);

	k->offer = calloc((size_t)size, sizeof(json_t *));
	k->lost = calloc((size_t)size, sizeof *k->lost);
	k->owes = calloc((size_t)size, sizeof *k->owes);
	k->owes_until = calloc((size_t)size, sizeof *k->owes_until);
	k->why = calloc((size_t)size, sizeof *k->why);
	if (!k->offer || !k->lost || !k->owes || !k->owes_until || !k->why)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %d ranks", size);
	for (int i = 0; i < size; i++)
		k->owes[i] = -1;
	k->offer[0] = pairs_worker_offer(&k->worker);
	for (int i = 1; i < size; i++) {
		struct fb_err why = {0};
		int rc = fb_oob_hear(k->oob, i, &k->offer[i], deadline, &why);
		if (rc == -EINTR) {
			*e = why;
			return rc;
		}
		if (rc == 0)
			continue;
		k->lost[i] = true;
		snprintf(k->why[i], sizeof k->why[i], "%.200s", why.msg);
		if (rc != -ECONNRESET)
			fb_warn("rank %d: %s", i, why.msg);
	}
	return 0;
}

static const char *name_of(const struct pairs_ranks *k, int rank)
{
	return fb_json_str(k->offer[rank], "name", "?");
}

/* Sorted views, so that thousands of ranks are compared in no time. */
struct entry {
	const char *key;
	int rank;
};

static int by_key(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int c = strcmp(x->key, y->key);

	return c ? c : x->rank - y->rank;
}

static int check_twice(const struct pairs_ranks *k, struct fb_err *e)
{
	int size = fb_oob_size(k->oob), n = 0, rc = 0;
	struct entry *v = calloc((size_t)size, sizeof *v);

	if (!v)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %d ranks", size);
	for (int i = 0; i < size; i++)
		if (k->offer[i])
			v[n++] = (struct entry){
				fb_json_str(k->offer[i], "boot_id", name_of(k, i)), i};
	qsort(v, (size_t)n, sizeof *v, by_key);
	for (int i = 1; rc == 0 && i < n; i++) {
		if (strcmp(v[i].key, v[i - 1].key) != 0)
			continue;
		rc = fb_fail_usage(e, "ranks %d and %d are both on the host %s", v[i - 1].rank,
			v[i].rank, name_of(k, v[i].rank));
		fb_hint(e, "start one rank on each host; its rails are measured by --device all");
	}
	free(v);
	return rc;
}

static int match_names(struct pairs_ranks *k, struct pairs_fleet *f, struct fb_err *e)
{
	int size = fb_oob_size(k->oob);
	uint32_t expected = f->hosts;

	for (int i = 0; i < size; i++) {
		struct pairs_member *m = NULL;
		if (!k->offer[i])
			continue;
		for (uint32_t h = 0; h < expected && !m; h++)
			if (f->member[h].rank < 0 &&
				pairs_same_host(f->member[h].name, name_of(k, i)))
				m = &f->member[h];
		if (!m) {
			if (expected)
				fb_warn("%s joined, and is not in the file of expected hosts",
					name_of(k, i));
			m = pairs_fleet_add(f);
			if (!m)
				return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM,
					"no memory for %d ranks", size);
			snprintf(m->name, sizeof m->name, "%s", name_of(k, i));
		}
		m->rank = i;
	}
	for (uint32_t h = 0; h < expected; h++)
		if (f->member[h].rank < 0)
			snprintf(f->member[h].reason, sizeof f->member[h].reason, "%s never joined",
				f->member[h].name);
	return 0;
}

int pairs_ranks_gather(struct pairs_ranks *k, struct pairs_fleet *f, struct fb_err *e)
{
	int rc = hear_offers(k, e), size = fb_oob_size(k->oob);
	const json_t *why = NULL;

	if (rc == 0)
		rc = check_twice(k, e);
	if (rc == 0)
		rc = match_names(k, f, e);
	if (rc)
		return rc;
	for (int i = 0; i < size; i++) {
		size_t n = json_array_size(json_object_get(k->offer[i], "devices"));
		if (n > f->rails)
			f->rails = (uint32_t)(n < VERBS_MAX_RAILS ? n : VERBS_MAX_RAILS);
		if (!why)
			why = json_object_get(k->offer[i], "error");
	}
	if (f->rails == 0) {
		rc = fb_fail(e, (enum fb_exit)fb_json_int(why, "exit", FB_EXIT_SKIP),
			(int)fb_json_int(why, "code", -ENODEV), "no host has an RDMA device: %s",
			fb_json_str(why, "message", "none was found"));
		fb_hint(e, "%s", fb_json_str(why, "remedy", ""));
		return rc;
	}
	return pairs_fleet_seal(f, e);
}

/* ---- one step -------------------------------------------------------------------------------- */

/* A pair in progress. */
struct flight {
	struct pairs_measure *m;
	json_t **result;
	int client, server; /* ranks */
	int64_t id;
	json_t *own; /* rank 0's order */
	bool up;
};

static void settle(struct flight *x, enum pairs_state state, const char *fmt, ...) FB_PRINTF(3, 4);
static void settle(struct flight *x, enum pairs_state state, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	x->m->state = state;
	x->m->reason = strdup(text);
	x->up = false;
}

static json_t *device_of(const struct pairs_ranks *k, int rank, uint32_t rail)
{
	return json_object_get(
		json_array_get(json_object_get(k->offer[rank], "devices"), rail), "name");
}

static json_t *make_order(struct pairs_ranks *k, const struct flight *x, bool client)
{
	int mine = client ? x->client : x->server, other = client ? x->server : x->client;
	json_t *j = json_object(), *peer = json_object();
	static const char *const keys[] = {"name", "addresses", "port", "token"};

	fb_json_set_str(j, "do", "pair");
	fb_json_set_int(j, "pair", x->id);
	fb_json_set_bool(j, "client", client);
	fb_json_set_int(j, "seconds", (int64_t)((k->pair_timeout_ns + 999999999u) / 1000000000u));
	json_object_set(j, "device", device_of(k, mine, x->m->rail));
	if (!client)
		goto without_peer;
	json_object_set(j, "peer_device", device_of(k, other, x->m->rail));
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		json_object_set(peer, keys[i], json_object_get(k->offer[other], keys[i]));
	json_object_set(j, "peer", peer);
	json_object_set_new(j, "params", verbs_params_to_json(&k->params));
	json_object_set_new(j, "run", pairs_runctl_to_json(k->run));
without_peer:
	json_decref(peer);
	return j;
}

/* A host whose pair was given up at this end is still in it, until its own deadline. */
static bool still_silent(struct pairs_ranks *k, int rank)
{
	while (k->owes[rank] >= 0 && !k->lost[rank]) {
		json_t *late = NULL;
		struct fb_err e = {0};
		int rc = fb_oob_hear(k->oob, rank, &late, k->owes_until[rank], &e);
		if (rc == 0 && fb_json_int(late, "pair", -1) == k->owes[rank])
			k->owes[rank] = -1;
		json_decref(late);
		if (rc == 0)
			continue;
		k->lost[rank] = rc == -ECONNRESET;
		snprintf(k->why[rank], sizeof k->why[rank], "%.200s", e.msg);
		break;
	}
	return k->owes[rank] >= 0;
}

/* Can this rank take part in this pair at all? Else the pair is settled. */
static bool able(struct pairs_ranks *k, struct flight *x, int rank)
{
	const char *name = name_of(k, rank);

	if (rank && (still_silent(k, rank) || k->lost[rank])) {
		settle(x, PAIRS_UNREACHABLE, "%s: %s", name,
			k->why[rank][0] ? k->why[rank] : "it has left");
		return false;
	}
	if (!device_of(k, rank, x->m->rail)) {
		const json_t *why = json_object_get(k->offer[rank], "error");
		settle(x, PAIRS_FAILED, "%s has no device for rail %u%s%s", name, x->m->rail,
			why ? ": " : "", fb_json_str(why, "message", ""));
		return false;
	}
	return true;
}

static bool tell(struct pairs_ranks *k, struct flight *x, int rank, bool client)
{
	json_t *order = make_order(k, x, client);
	struct fb_err e = {0};
	int rc;

	if (rank == 0) {
		x->own = order;
		return true;
	}
	rc = order ? fb_oob_tell(k->oob, rank, order, fb_deadline_in(TELL_NS), &e) : -ENOMEM;
	json_decref(order);
	if (rc) {
		k->lost[rank] = true;
		snprintf(k->why[rank], sizeof k->why[rank], "%.200s", e.msg);
		settle(x, PAIRS_UNREACHABLE, "%s: %s", name_of(k, rank), e.msg);
		return false;
	}
	k->owes[rank] = x->id;
	k->owes_until[rank] = fb_deadline_in(2 * k->pair_timeout_ns + SLACK_NS);
	return true;
}

static int start(struct pairs_ranks *k, struct flight *x)
{
	x->id = k->next_id++;
	/* Rank 0 is always the client: others have to reach it at the rendezvous only. */
	if (x->server == 0) {
		x->server = x->client;
		x->client = 0;
	}
	x->up = true;
	if (!able(k, x, x->client) || !able(k, x, x->server))
		return 0;
	/* The server first: it should listen for this pair when the client dials. */
	return tell(k, x, x->server, false) && tell(k, x, x->client, true);
}

/* The report of this pair. @return 0 (*report may be NULL: none came, k->why says it), -EINTR */
static int hear(struct pairs_ranks *k, const struct flight *x, int rank, uint64_t deadline,
	json_t **report, struct fb_err *e)
{
	struct fb_err why = {0};
	int rc;

	*report = NULL;
	do {
		json_decref(*report);
		rc = fb_oob_hear(k->oob, rank, report, deadline, &why);
	} while (rc == 0 && fb_json_int(*report, "pair", -1) != x->id);
	if (rc == 0) {
		k->owes[rank] = -1;
		return 0;
	}
	if (rc == -EINTR) {
		*e = why;
		return rc;
	}
	snprintf(k->why[rank], sizeof k->why[rank], "%.200s", why.msg);
	if (rc != -ETIMEDOUT)
		k->lost[rank] = true;
	return 0;
}

static void conclude(struct pairs_ranks *k, struct flight *x, const json_t *c, const json_t *s)
{
	const char *state = fb_json_str(c, "state", "");
	const json_t *why = json_object_get(c ? c : s, "error");

	if (json_is_true(json_object_get(c, "wrong")) || json_is_true(json_object_get(s, "wrong")))
		k->wrong_data = true;
	if (!c) {
		settle(x, PAIRS_FAILED, "no report from %s: %s", name_of(k, x->client),
			k->why[x->client]);
		return;
	}
	if (!s) {
		settle(x, PAIRS_FAILED, "no report from %s: %s%s%s", name_of(k, x->server),
			k->why[x->server], why ? "; " : "", fb_json_str(why, "message", ""));
		return;
	}
	if (strcmp(state, "measured") != 0) {
		/* Neither end is more right; the server's own words count when the client only
		 * saw it go. */
		settle(x, strcmp(state, "unreachable") ? PAIRS_FAILED : PAIRS_UNREACHABLE, "%s",
			fb_json_str(why, "message", "the pair failed without a word"));
		return;
	}
	x->m->value = fb_json_num(c, "value", 0);
	if (!(x->m->value > 0)) {
		settle(x, PAIRS_FAILED, "%s reported no value", name_of(k, x->client));
		return;
	}
	x->m->state = PAIRS_MEASURED;
	json_t *r = json_object_get(c, "result");
	*x->result = json_is_object(r) ? json_incref(r) : NULL;
	x->up = false;
}

static int finish(
	struct pairs_ranks *k, struct flight *x, json_t *own, uint64_t deadline, struct fb_err *e)
{
	json_t *c = x->client == 0 ? json_incref(own) : NULL, *s = NULL;
	int rc = 0;

	if (x->client != 0)
		rc = hear(k, x, x->client, deadline, &c, e);
	if (rc == 0)
		rc = hear(k, x, x->server, deadline, &s, e);
	if (rc == 0)
		conclude(k, x, c, s);
	else
		settle(x, PAIRS_NOT_RUN, "the run was stopped");
	json_decref(c);
	json_decref(s);
	return rc;
}

/* Rank 0's own pair runs between telling the others and hearing from them. */
static json_t *run_own(struct pairs_ranks *k, struct flight *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].up && v[i].own)
			return pairs_worker_do(&k->worker, v[i].own);
	return NULL;
}

int pairs_ranks_measure(struct pairs_run *r, size_t first, size_t n, struct fb_err *e)
{
	struct pairs_ranks *k = r->arg;
	struct flight *v = calloc(n, sizeof *v);
	uint64_t deadline;
	json_t *own;
	int rc = 0;

	if (!v)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %zu pairs", n);
	for (size_t i = 0; i < n; i++) {
		struct pairs_measure *m = &r->log.m[first + i];
		v[i] = (struct flight){.m = m,
			.result = &r->log.result[first + i],
			.client = r->fleet->member[m->a].rank,
			.server = r->fleet->member[m->b].rank};
		(void)!start(k, &v[i]);
	}
	deadline = fb_deadline_in(2 * k->pair_timeout_ns + SLACK_NS);
	own = run_own(k, v, n);
	for (size_t i = 0; i < n; i++) {
		if (v[i].up && rc == 0)
			rc = finish(k, &v[i], own, deadline, e);
		else if (v[i].up)
			settle(&v[i], PAIRS_NOT_RUN, "the run was stopped");
		json_decref(v[i].own);
	}
	json_decref(own);
	free(v);
	if (rc == 0 && fb_stop_requested())
		rc = fb_fail(
			e, FB_EXIT_UNMEASURED, EINTR, "stopped before all pairs were measured");
	return rc;
}

void pairs_ranks_end(struct pairs_ranks *k)
{
	int size = k->oob ? fb_oob_size(k->oob) : 0;
	json_t *end = json_pack("{s:s}", "do", "end");
	struct fb_err e = {0};

	for (int i = 1; i < size && end && k->lost; i++)
		if (!k->lost[i])
			(void)!fb_oob_tell(k->oob, i, end, fb_deadline_in(TELL_NS / 10), &e);
	json_decref(end);
	for (int i = 0; i < size && k->offer; i++)
		json_decref(k->offer[i]);
	free(k->offer);
	free(k->lost);
	free(k->owes);
	free(k->owes_until);
	free(k->why);
	k->offer = NULL;
	k->lost = NULL;
	k->owes = NULL;
	k->owes_until = NULL;
	k->why = NULL;
}

/* ---- all other ranks ------------------------------------------------------------------------- */

int pairs_ranks_follow(struct fb_oob *o, struct pairs_worker *w, struct fb_err *e)
{
	json_t *offer = pairs_worker_offer(w);
	int rc = offer ? fb_oob_tell(o, 0, offer, fb_deadline_in(OFFER_NS), e) : -ENOMEM;

	json_decref(offer);
	while (rc == 0) {
		json_t *order = NULL, *report;
		rc = fb_oob_hear(o, 0, &order, fb_deadline_in(IDLE_NS), e);
		if (rc)
			return rc;
		const char *what = fb_json_str(order, "do", "?");
		if (strcmp(what, "pair") != 0) {
			if (strcmp(what, "end") != 0)
				rc = fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
					"rank 0 sent an order that makes no sense (%.40s)", what);
			json_decref(order);
			return rc;
		}
		report = pairs_worker_do(w, order);
		json_decref(order);
		rc = report ? fb_oob_tell(o, 0, report, fb_deadline_in(OFFER_NS), e) : -ENOMEM;
		json_decref(report);
	}
	return rc;
}
