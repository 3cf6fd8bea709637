// SPDX-License-Identifier: Apache-2.0
/*
 * Ranks of a check: two messages of each to rank 0, and one word back that it may go.
 */
#include "verbs/lossless/ranks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/sysinfo.h"
#include "verbs/lossless/summary.h"

#define TELL_NS 20000000000ull
/* Reading the facts of a node. */
#define FACTS_NS 60000000000ull
/* Beyond so many nodes their facts make the document too large; names stand in the findings. */
#define MAX_HOSTS 1024

const struct fb_check_def ranks_checks[] = {
	{"rendezvous.ranks", "every rank came",
		"--rendezvous; --ranks or the launcher's environment",
		"pass: all told what they are and what they found; error: one did not",
		"start the same command on each node: scripts/launch, srun, or --master, --ranks, "
		"--rank",
		NULL, "the launcher's promise", "constructed"},
	{.id = NULL},
};

int ranks_meet(const struct fb_oob_cfg *user, struct ranks *k, struct fb_err *e)
{
	struct fb_oob_cfg cfg = *user;
	*k = (struct ranks){.size = 0};
	int rc = fb_oob_from_env(&cfg, e);
	if (rc < 0)
		return rc;
	if (cfg.ranks < 2) {
		fb_fail_usage(e, "--rendezvous compares nodes, and here is one rank");
		fb_hint(e,
			"start it on every node: scripts/launch --hosts A,B,C -- fabricbench check "
			"roce --rendezvous; or srun, or --master/--ranks/--rank");
		return -EINVAL;
	}
	cfg.some = true;
	rc = fb_oob_open(&cfg, &k->oob, e);
	if (rc < 0)
		return rc;
	k->rank = fb_oob_rank(k->oob);
	k->size = fb_oob_size(k->oob);
	k->node = calloc((size_t)k->size, sizeof(struct node_facts *));
	k->why = calloc((size_t)k->size, sizeof(*k->why));
	if (k->node && k->why)
		return 0;
	ranks_end(k);
	return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the ranks");
}

void ranks_end(struct ranks *k)
{
	for (int i = 0; k->node && i < k->size; i++) {
		if (k->node[i])
			facts_free(k->node[i]);
		free(k->node[i]);
	}
	free(k->node);
	free(k->why);
	fb_oob_close(k->oob);
	*k = (struct ranks){.size = 0};
}

/* ---- what each is ---------------------------------------------------------------------------- */

static int tell(struct ranks *k, json_t *j, struct fb_err *e)
{
	int rc = fb_oob_tell(k->oob, 0, j, fb_deadline_in(TELL_NS), e);
	json_decref(j);
	return rc;
}

/* Two nodes of one name are told apart by their ranks. */
static void name_node(struct ranks *k, const struct node_facts *own, int rank)
{
	struct node_facts *n = k->node[rank];
	bool twice = strcmp(n->host, own->host) == 0;
	for (int i = 1; i < rank && !twice; i++)
		twice = k->node[i] && strcmp(k->node[i]->host, n->host) == 0;
	if (twice) {
		char name[64];
		snprintf(name, sizeof(name), "%.40s (rank %d)", n->host, rank);
		snprintf(n->host, sizeof(n->host), "%s", name);
	}
}

static void take_facts(struct ranks *k, const struct node_facts *own, int rank, const json_t *j,
	struct fb_doc *doc)
{
	struct node_facts *n = calloc(1, sizeof(*n));
	struct fb_err why = {0};
	char name[32];
	snprintf(name, sizeof(name), "rank %d", rank);
	if (!n || summary_read(json_object_get(j, "fabric"), name, n, &why) < 0) {
		snprintf(k->why[rank], sizeof(k->why[rank]), "%.250s",
			n ? why.msg : "no memory for its facts");
		free(n);
		return;
	}
	k->node[rank] = n;
	name_node(k, own, rank);
	fb_doc_hide(doc, n->host);
	json_t *host = json_object_get(j, "host");
	if (rank <= MAX_HOSTS && json_is_object(host))
		fb_doc_add_host(doc, json_incref(host));
}

/* The next message of a rank. @return 0, whether it came or not; -EINTR */
static int hear(struct ranks *k, int rank, uint64_t deadline, json_t **j, struct fb_err *e)
{
	struct fb_err why = {0};
	int rc = fb_oob_hear(k->oob, rank, j, deadline, &why);
	if (rc == -EINTR) {
		*e = why;
		return rc;
	}
	if (rc < 0) {
		*j = NULL;
		snprintf(k->why[rank], sizeof(k->why[rank]), "%.250s", why.msg);
	}
	return 0;
}

int ranks_facts(struct ranks *k, const struct node_facts *own, struct fb_doc *doc,
	uint64_t deadline, struct fb_err *e)
{
	static const struct fb_sysroot live = {.dir = NULL};
	uint64_t until = fb_deadline_in(FACTS_NS);
	if (k->rank > 0) {
		json_t *j = json_object();
		json_object_set_new(j, "fabric", summary_json(own));
		json_object_set_new(j, "host", fb_sysinfo_host(&live, false));
		return tell(k, j, e);
	}
	for (int i = 1; i < k->size; i++) {
		json_t *j = NULL;
		int rc = hear(k, i, until < deadline ? until : deadline, &j, e);
		if (rc < 0)
			return rc;
		if (!j && strstr(k->why[i], "has left"))
			snprintf(k->why[i], sizeof(k->why[i]),
				"it never came, or left before it told anything");
		if (j)
			take_facts(k, own, i, j, doc);
		json_decref(j);
	}
	return 0;
}

/* ---- what each found ------------------------------------------------------------------------- */

static bool is_bad(const char *state)
{
	return strcmp(state, "fail") == 0 || strcmp(state, "warn") == 0 ||
	       strcmp(state, "error") == 0;
}

static json_t *own_findings(struct fb_doc *doc)
{
	json_t *j = json_object(), *bad = json_array(), *counts = json_object(), *c;
	size_t i;
	json_array_foreach (json_object_get(fb_doc_json(doc), "checks"), i, c) {
		const char *state = fb_json_str(c, "state", "error");
		fb_json_set_int(counts, state, fb_json_int(counts, state, 0) + 1);
		if (is_bad(state))
			json_array_append(bad, c);
	}
	json_object_set_new(j, "counts", counts);
	json_object_set_new(j, "findings", bad);
	return j;
}

/* Another node's finding becomes one of ours, under its name. */
static void take_findings(struct ranks *k, int rank, const json_t *j, struct fb_doc *doc)
{
	json_t *c;
	size_t i;
	json_array_foreach (json_object_get(j, "findings"), i, c) {
		char subject[256];
		json_t *copy = json_is_object(c) ? json_deep_copy(c) : NULL;
		if (!copy || !is_bad(fb_json_str(copy, "state", ""))) {
			json_decref(copy);
			continue;
		}
		snprintf(subject, sizeof(subject), "%s %.160s", k->node[rank]->host,
			fb_json_str(copy, "subject", ""));
		fb_json_set_str(copy, "subject", subject);
		fb_doc_add_check(doc, copy);
	}
}

static int hear_findings(
	struct ranks *k, struct fb_doc *doc, uint64_t deadline, json_t *ranks, struct fb_err *e)
{
	for (int i = 1; i < k->size; i++) {
		json_t *j = NULL, *one = json_object();
		int rc = k->node[i] ? hear(k, i, deadline, &j, e) : 0;
		fb_json_set_int(one, "rank", i);
		if (k->node[i])
			fb_json_set_str(one, "host", k->node[i]->host);
		if (j) {
			json_t *counts = json_object_get(j, "counts");
			take_findings(k, i, j, doc);
			if (json_is_object(counts))
				json_object_set(one, "counts", counts);
		}
		fb_json_set_str(one, "state", j ? "measured" : "unreachable");
		json_array_append_new(ranks, one);
		json_decref(j);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static void say_missing(const struct ranks *k, struct fb_doc *doc)
{
	struct fb_finding f = {.state = FB_CHECK_ERROR};
	int came = 1;
	for (int i = 1; i < k->size; i++) {
		struct fb_finding missing = {.state = FB_CHECK_ERROR};
		if (k->why[i][0] == '\0') {
			came++;
			continue;
		}
		snprintf(missing.subject, sizeof(missing.subject), "rank %d%s%.64s", i,
			k->node[i] ? " on " : "", k->node[i] ? k->node[i]->host : "");
		fb_find(&missing, FB_CHECK_ERROR, "%s", k->why[i]);
		fb_find_read(&missing, "the rendezvous");
		fb_doc_add_check(doc, fb_finding_json(&ranks_checks[0], &missing));
	}
	snprintf(f.subject, sizeof(f.subject), "all ranks");
	fb_find_read(&f, "the rendezvous");
	if (came == k->size)
		fb_find(&f, FB_CHECK_PASS, "all %d", k->size);
	else
		fb_find(&f, FB_CHECK_ERROR, "%d of %d told what they are and found", came, k->size);
	fb_doc_add_check(doc, fb_finding_json(&ranks_checks[0], &f));
}

int ranks_findings(struct ranks *k, struct fb_doc *doc, uint64_t deadline, struct fb_err *e)
{
	json_t *end = NULL;
	if (k->rank > 0) {
		int rc = tell(k, own_findings(doc), e);
		if (rc == 0)
			rc = fb_oob_hear(k->oob, 0, &end, deadline, e);
		json_decref(end);
		return rc;
	}
	json_t *ranks = json_array();
	int rc = hear_findings(k, doc, deadline, ranks, e);
	json_object_set_new(json_object_get(fb_doc_json(doc), "fabric"), "ranks", ranks);
	if (rc == 0)
		say_missing(k, doc);
	end = json_pack("{s:s}", "do", "end");
	for (int i = 1; i < k->size && end; i++) {
		struct fb_err ignored = {0};
		if (k->why[i][0] == '\0')
			(void)!fb_oob_tell(k->oob, i, end, fb_deadline_in(TELL_NS / 10), &ignored);
	}
	json_decref(end);
	return rc;
}
