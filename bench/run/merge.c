// SPDX-License-Identifier: Apache-2.0
/*
 * The run's own document: what the parts brought, what did not come, and the verdict. Every job of
 * the plan is accounted for: complete + failed + wrong data + skipped + missing + interrupted adds
 * up to the number of parts.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/run/run_priv.h"

static void move_all(
	struct fb_doc *doc, json_t *part, const char *key, void (*add)(struct fb_doc *, json_t *))
{
	size_t i;
	json_t *v, *from = json_object_get(part, key);
	json_array_foreach (from, i, v) {
		if (json_is_object(v))
			add(doc, json_incref(v));
	}
}

static void add_text_entries(struct fb_doc *doc, json_t *part, const char *key, const char *job)
{
	size_t i;
	json_t *v, *to = json_object_get(fb_doc_json(doc), key);
	json_array_foreach (json_object_get(part, key), i, v) {
		json_t *copy = json_deep_copy(v);
		if (json_is_object(copy) && !json_object_get(copy, "job"))
			fb_json_set_str(copy, "job", job);
		if (copy)
			json_array_append_new(to, copy);
	}
}

/* What most documents have none of, runs over pairs and claims, stands side by side. */
static void add_list(struct fb_doc *doc, const json_t *part, const char *key)
{
	json_t *root = fb_doc_json(doc), *from = json_object_get(part, key);
	if (json_array_size(from) == 0)
		return;
	if (!json_object_get(root, key))
		json_object_set_new(root, key, json_array());
	json_array_extend(json_object_get(root, key), from);
}

void run_merge_part(struct fb_doc *doc, const struct run *r, const struct run_part *p)
{
	struct fb_err e = {0};
	json_t *part = p->state == RUN_MISSING ? NULL : fb_doc_load(p->path, &e);
	bool told =
		false; /* the part says by itself that it did not end well, or how it was judged */
	(void)r;
	if (part) {
		const char *outcome = fb_json_str(json_object_get(part, "run"), "outcome", "");
		told = strcmp(outcome, "interrupted") != 0 ||
		       json_array_size(json_object_get(part, "errors")) > 0;
		json_t *system = json_object_get(part, "system");
		move_all(doc, system, "hosts", fb_doc_add_host);
		move_all(doc, part, "peers", fb_doc_add_peer);
		move_all(doc, part, "results", fb_doc_add_result);
		move_all(doc, part, "checks", fb_doc_add_check);
		add_list(doc, part, "pairs");
		add_list(doc, part, "claims");
		add_list(doc, part, "loss");
		add_text_entries(doc, part, "warnings", p->job->name);
		add_text_entries(doc, part, "errors", p->job->name);
		json_decref(part);
	}
	if (p->state != RUN_COMPLETE && !told) {
		struct fb_err miss = {0};
		fb_fail(&miss, (enum fb_exit)p->exit, EIO, "job %s, launch %u: %s: %s",
			p->job->name, p->launch, run_state_names[p->state], p->reason);
		fb_doc_error(doc, &miss);
	}
}

static json_t *part_entry(const struct run_part *p)
{
	json_t *o = json_object();
	char name[128];
	snprintf(
		name, sizeof(name), "parts/%02u-%s-%u.json", p->index + 1, p->job->name, p->launch);
	fb_json_set_str(o, "job", p->job->name);
	fb_json_set_int(o, "launch", p->launch);
	fb_json_set_str(o, "command", p->job->command);
	fb_json_set_str(o, "launcher", fb_launcher_names[p->job->launcher]);
	fb_json_set_int(o, "ranks", p->job->ranks);
	fb_json_set_bool(o, "require", p->job->require);
	fb_json_set_str(o, "state", run_state_names[p->state]);
	fb_json_set_int(o, "exit", p->exit);
	fb_json_set_real(o, "seconds", p->seconds, "not run");
	fb_json_set_bool(o, "reused", p->reused);
	fb_json_set_str(o, "part", name);
	if (p->reason[0])
		fb_json_set_str(o, "reason", p->reason);
	return o;
}

void run_set_plan(struct fb_doc *doc, const struct run *r)
{
	json_t *plan = json_object(), *parts = json_array();
	fb_json_set_str(plan, "title", r->plan.title ? r->plan.title : "Untitled plan");
	fb_json_set_str(plan, "scope", r->plan.scope);
	fb_json_set_int(plan, "jobs", (int64_t)r->plan.njobs);
	for (size_t i = 0; i < r->nparts; i++)
		json_array_append_new(parts, part_entry(&r->parts[i]));
	json_object_set_new(plan, "parts", parts);
	json_object_set_new(fb_doc_json(doc), "plan", plan);
}

struct tally {
	size_t by_state[RUN_INTERRUPTED + 1];
	bool wrong, rejected, incomplete;
};

static void count(const struct run *r, struct tally *t, json_t *reasons)
{
	for (size_t i = 0; i < r->nparts; i++) {
		const struct run_part *p = &r->parts[i];
		char text[800];
		t->by_state[p->state]++;
		if (p->state == RUN_COMPLETE)
			continue;
		bool judged = p->state == RUN_WRONG ||
			      (p->state == RUN_FAILED && p->exit == FB_EXIT_FAILED);
		/* A wrong byte or a failed check rejects whoever asked; what could not be measured
		 * matters only when required. */
		if (!judged && !p->job->require)
			continue;
		t->wrong = t->wrong || p->state == RUN_WRONG;
		t->rejected = t->rejected || judged;
		t->incomplete = t->incomplete || !judged;
		snprintf(text, sizeof(text), "%s, launch %u: %s%s%s", p->job->name, p->launch,
			run_state_names[p->state], p->reason[0] ? ": " : "", p->reason);
		json_array_append_new(reasons, json_string(text));
	}
}

int run_set_verdict(struct fb_doc *doc, const struct run *r)
{
	struct tally t = {0};
	json_t *v = json_object(), *reasons = json_array(), *accounted = json_object();
	count(r, &t, reasons);
	if (t.by_state[RUN_COMPLETE] == 0 && !t.rejected)
		t.incomplete = true; /* all skipped is never accepted */
	const char *state = t.rejected ? "REJECTED" : t.incomplete ? "INCOMPLETE" : "ACCEPTED";
	fb_json_set_str(v, "state", state);
	fb_json_set_str(v, "scope", r->plan.scope);
	fb_json_set_int(accounted, "parts", (int64_t)r->nparts);
	for (int s = 0; s <= RUN_INTERRUPTED; s++)
		if (t.by_state[s] > 0)
			fb_json_set_int(accounted, run_state_names[s], (int64_t)t.by_state[s]);
	json_object_set_new(v, "reasons", reasons);
	json_object_set_new(v, "accounted", accounted);
	json_object_set_new(fb_doc_json(doc), "verdict", v);
	if (t.wrong)
		return FB_EXIT_WRONG_DATA;
	return t.rejected ? FB_EXIT_FAILED : t.incomplete ? FB_EXIT_UNMEASURED : FB_EXIT_OK;
}
