// SPDX-License-Identifier: Apache-2.0
/*
 * The document of a run over pairs. pairs.measured holds each launch as
 * [a, b, rail, round, phase, state, value]: hosts by their place in pairs.hosts, phase 0 rounds and
 * 1 confirmation, state 0 measured, 1 failed, 2 unreachable, 3 not run, value null unless measured.
 */
#include "verbs/pairs_doc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"

static const char *const state_names[] = {"measured", "failed", "unreachable", "not run"};

enum fb_exit pairs_doc_exit(enum pairs_verdict v)
{
	return v == PAIRS_FINE       ? FB_EXIT_OK
	       : v == PAIRS_REJECTED ? FB_EXIT_FAILED
				     : FB_EXIT_UNMEASURED;
}

const char *pairs_doc_verdict(enum pairs_verdict v)
{
	return v == PAIRS_FINE ? "ACCEPTED" : v == PAIRS_REJECTED ? "REJECTED" : "INCOMPLETE";
}

/* ---- results --------------------------------------------------------------------------------- */

/* What a result of a pair has when the pair gave none, or was simulated. */
static json_t *bare_result(const struct pairs_doc *d)
{
	json_t *j = json_object(), *validity = json_object();

	fb_json_set_str(j, "where", d->where);
	json_object_set_new(j, "params", json_object());
	fb_json_set_str(j, "metric", d->metric);
	fb_json_set_str(j, "unit", d->unit);
	fb_json_set_str(j, "better", d->better);
	fb_json_set_str(j, "load", "closed");
	fb_json_set_str(j, "sync", "none");
	json_object_set_new(j, "ci", json_null());
	json_object_set_new(j, "bound", json_null());
	fb_json_set_int(j, "n", 0);
	fb_json_set_int(j, "warmup_dropped", 0);
	fb_json_set_str(validity, "state", "valid");
	json_object_set_new(validity, "reasons", json_array());
	json_object_set_new(j, "validity", validity);
	return j;
}

static void complete(json_t *j)
{
	json_object_set_new(j, "samples", json_array());
	json_object_set_new(j, "stats", json_object());
	json_object_set_new(j, "per_rank", json_array());
	json_object_set_new(
		j, "counters", json_pack("{s:{},s:{},s:{}}", "before", "after", "delta"));
}

static void add_result(struct pairs_doc *d, const struct pairs_run *r, size_t i, const char *suffix)
{
	const struct pairs_measure *m = &r->log.m[i];
	const struct pairs_member *a = &r->fleet->member[m->a], *b = &r->fleet->member[m->b];
	json_t *own = r->log.result[i];
	json_t *j = own ? json_copy(own) : bare_result(d), *params;
	char text[2 * PAIRS_NAME + 64];

	snprintf(text, sizeof text, "verbs.pairs/%s/%s/%u%s", a->name, b->name, m->rail, suffix);
	fb_json_set_str(j, "case", text);
	params = json_copy(json_object_get(j, "params"));
	json_object_update(params, d->params);
	fb_json_set_str(params, "a", a->name);
	fb_json_set_str(params, "b", b->name);
	fb_json_set_int(params, "rail", m->rail);
	fb_json_set_int(params, "round", m->round);
	json_object_set_new(j, "params", params);
	if (m->state == PAIRS_MEASURED) {
		if (!own) {
			fb_json_set_real(j, "value", m->value, "not finite");
			fb_json_set_int(j, "n", 1);
		}
	} else {
		snprintf(text, sizeof text, "%s", state_names[m->state]);
		json_object_set_new(j, "value", json_null());
		fb_json_set_str(j, "value_reason", m->reason ? m->reason : text);
	}
	if (*suffix)
		fb_json_set_int(j, "launch", (int64_t)d->confirms++);
	complete(j);
	fb_doc_add_result(d->doc, j);
}

void pairs_doc_results(struct pairs_doc *d, const struct pairs_run *r)
{
	for (; d->written < r->log.n; d->written++) {
		const struct pairs_measure *m = &r->log.m[d->written];
		bool failed = m->state != PAIRS_MEASURED;
		if (m->phase == PAIRS_CONFIRM) {
			add_result(d, r, d->written, "/confirm");
		} else if (d->results < PAIRS_RESULTS_MAX) {
			d->results++;
			add_result(d, r, d->written, "");
		} else if (failed && d->failures < PAIRS_FAILURES_MAX) {
			d->failures++;
			add_result(d, r, d->written, "");
		}
	}
}

/* ---- the section ----------------------------------------------------------------------------- */

static json_t *node_json(const struct pairs_node *n, uint32_t rail)
{
	json_t *j = json_object();

	fb_json_set_int(j, "rail", rail);
	fb_json_set_str(j, "state", pairs_node_state_name(n->state));
	if (isfinite(n->effect)) {
		fb_json_set_real(j, "score", 1 + n->effect, "");
		fb_json_set_real(j, "z", n->z, "too few pairs");
	}
	if (isfinite(n->confirmed)) {
		fb_json_set_real(j, "confirmed", 1 + n->confirmed, "");
		fb_json_set_real(j, "confirmed_z", n->confirmed_z, "too few launches");
	}
	fb_json_set_int(j, "pairs", n->pairs);
	if (n->tried)
		fb_json_set_int(j, "partners", n->partners);
	if (n->missed)
		fb_json_set_int(j, "missed", n->missed);
	return j;
}

/* A host's score is that of its worst rail: 1 is the fleet's level. */
static json_t *host_json(const struct pairs_run *r, uint32_t h, double sign)
{
	const struct pairs_judgement *j = &r->judgement;
	const struct pairs_member *m = &r->fleet->member[h];
	json_t *o = json_object(), *rails = json_array();
	double worst = NAN;

	fb_json_set_str(o, "name", m->name);
	if (m->rack[0])
		fb_json_set_str(o, "rack", m->rack);
	fb_json_set_str(o, "state", state_names[j->host[h].state]);
	fb_json_set_str(o, "judged", pairs_node_state_name(j->host[h].worst));
	for (uint32_t rail = 0; rail < j->rails; rail++) {
		const struct pairs_node *n = &j->node[rail * j->hosts + h];
		if (isfinite(n->effect) && !(sign * n->effect >= sign * worst))
			worst = n->effect;
		json_array_append_new(rails, node_json(n, rail));
	}
	if (isfinite(worst))
		fb_json_set_real(o, "score", 1 + worst, "");
	if (m->reason[0])
		fb_json_set_str(o, "reason", m->reason);
	json_object_set_new(o, "rails", rails);
	return o;
}

static json_t *link_json(const struct pairs_link *l)
{
	json_t *j = json_object();

	fb_json_set_int(j, "rail", l->rail);
	fb_json_set_int(j, "a", l->a);
	fb_json_set_int(j, "b", l->b);
	fb_json_set_str(j, "state", pairs_link_state_name(l->state));
	if (isfinite(l->effect))
		fb_json_set_real(j, "score", 1 + l->effect, "");
	if (isfinite(l->z))
		fb_json_set_real(j, "z", l->z, "");
	fb_json_set_bool(j, "by_node", l->by_node);
	fb_json_set_int(j, "rounds", l->rounds);
	fb_json_set_int(j, "confirm", l->confirm);
	fb_json_set_int(j, "missed", l->missed);
	return j;
}

static json_t *rail_json(const struct pairs_rail *x)
{
	json_t *j = json_object();

	fb_json_set_real(j, "level", x->level, "no pair was measured");
	fb_json_set_real(j, "noise", x->sigma, "no pair was measured");
	fb_json_set_int(j, "links", (int64_t)x->links);
	fb_json_set_bool(j, "judged", x->judged);
	fb_json_set_bool(j, "off_level", x->off_level);
	return j;
}

/* Six digits say more than any pair's noise, and keep thousands of them small. */
static json_t *short_number(double v)
{
	char text[32];
	double digits;

	snprintf(text, sizeof text, "%.6g", v);
	digits = strtod(text, NULL);
	if (fabs(digits) >= 1000 && fabs(digits) < 9e15)
		return json_integer(llround(digits));
	return fb_json_real(digits);
}

static json_t *measured_json(const struct pairs_log *l)
{
	json_t *all = json_array();

	for (size_t i = 0; i < l->n; i++) {
		const struct pairs_measure *m = &l->m[i];
		json_t *v = json_array();
		json_array_append_new(v, json_integer(m->a));
		json_array_append_new(v, json_integer(m->b));
		json_array_append_new(v, json_integer(m->rail));
		json_array_append_new(v, json_integer(m->round));
		json_array_append_new(v, json_integer(m->phase));
		json_array_append_new(v, json_integer(m->state));
		json_array_append_new(
			v, m->state == PAIRS_MEASURED ? short_number(m->value) : json_null());
		json_array_append_new(all, v);
	}
	return all;
}

static json_t *account_json(const struct pairs_account *a)
{
	json_t *j = json_object();

	fb_json_set_int(j, "expected", a->expected);
	fb_json_set_int(j, "measured", a->measured);
	fb_json_set_int(j, "failed", a->failed);
	fb_json_set_int(j, "unreachable", a->unreachable);
	fb_json_set_int(j, "not_run", a->not_run);
	return j;
}

static void say(json_t *reasons, const char *fmt, ...) FB_PRINTF(2, 3);
static void say(json_t *reasons, const char *fmt, ...)
{
	char text[1024];
	json_t *o = json_object();
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	/* Through the setter that mends what is no UTF-8. */
	fb_json_set_str(o, "s", text);
	json_array_append(reasons, json_object_get(o, "s"));
	json_decref(o);
}

#define MAX_REASONS 64

/* Hosts that are not fine, in words; then links. */
static void host_reasons(const struct pairs_run *r, json_t *reasons)
{
	const struct pairs_judgement *j = &r->judgement;

	for (uint32_t k = 0; k < j->hosts * j->rails; k++) {
		uint32_t at = j->ranking[k], h = at % j->hosts;
		const struct pairs_node *n = &j->node[at];
		const char *name = r->fleet->member[h].name;
		if (json_array_size(reasons) >= MAX_REASONS || n->state <= PAIRS_NODE_UNJUDGED)
			return;
		if (n->state == PAIRS_NODE_SLOW)
			say(reasons,
				"%s, rail %u: slow, %.1f %% of the fleet's level against %u good hosts",
				name, at / j->hosts, 100 * (1 + n->confirmed), n->partners);
		else if (r->fleet->absent[h])
			say(reasons, "%s: unreachable, it never joined", name);
		else
			say(reasons, "%s, rail %u: %s, %u of its launches missed", name,
				at / j->hosts, pairs_node_state_name(n->state), n->missed);
	}
}

static void link_reasons(const struct pairs_run *r, json_t *reasons)
{
	const struct pairs_judgement *j = &r->judgement;

	for (size_t i = 0; i < j->links && json_array_size(reasons) < MAX_REASONS; i++) {
		const struct pairs_link *l = &j->link[i];
		const char *a = r->fleet->member[l->a].name, *b = r->fleet->member[l->b].name;
		if (l->by_node || l->state < PAIRS_LINK_SUSPECT)
			continue;
		if (l->state == PAIRS_LINK_FAILED)
			say(reasons,
				"link %s - %s, rail %u: failed %u times, while both hosts work with others",
				a, b, l->rail, l->missed);
		else
			say(reasons,
				"link %s - %s, rail %u: %s, %.1f %% of what its hosts reach elsewhere",
				a, b, l->rail, pairs_link_state_name(l->state),
				100 * (1 + l->effect));
	}
}

static json_t *verdict_json(const struct pairs_run *r)
{
	const struct pairs_judgement *j = &r->judgement;
	json_t *v = json_object(), *reasons = json_array();
	char scope[256];

	fb_json_set_str(v, "state", pairs_doc_verdict(j->verdict));
	snprintf(scope, sizeof scope, "%u hosts in %u rounds of pairs on %u rail%s", j->hosts,
		r->schedule.rounds, j->rails, j->rails > 1 ? "s" : "");
	fb_json_set_str(v, "scope", scope);
	if (j->verdict == PAIRS_UNJUDGED)
		say(reasons,
			"all hosts were measured, but there are too few pairs to compare them");
	host_reasons(r, reasons);
	link_reasons(r, reasons);
	json_object_set_new(v, "reasons", reasons);
	json_object_set_new(v, "accounted", account_json(&j->account));
	return v;
}

void pairs_doc_section(
	struct pairs_doc *d, const struct pairs_run *r, json_t *simulation, double seconds)
{
	const struct pairs_judgement *j = &r->judgement;
	double sign = strcmp(d->better, "lower") == 0 ? -1 : 1;
	json_t *s = json_object(), *hosts = json_array(), *rails = json_array(),
	       *links = json_array(), *schedule = json_object(), *list = json_array();
	json_t *root = fb_doc_json(d->doc);

	json_object_set(s, "job", json_object_get(json_object_get(root, "run"), "job"));
	fb_json_set_str(s, "metric", d->metric);
	fb_json_set_str(s, "unit", d->unit);
	fb_json_set_str(s, "better", d->better);
	fb_json_set_str(s, "where", d->where);
	json_object_set(s, "params", d->params);
	fb_json_set_int(schedule, "rounds", r->schedule.rounds);
	fb_json_set_int(schedule, "steps", (int64_t)r->steps);
	fb_json_set_int(schedule, "taken", (int64_t)r->taken);
	fb_json_set_int(schedule, "stages", r->stages);
	fb_json_set_real(schedule, "seconds", seconds, "not known");
	json_object_set_new(s, "schedule", schedule);
	fb_json_set_str(s, "verdict", pairs_verdict_name(j->verdict));
	json_object_set_new(s, "account", account_json(&j->account));
	for (uint32_t h = 0; h < j->hosts; h++)
		json_array_append_new(hosts, host_json(r, h, sign));
	for (uint32_t i = 0; i < j->rails; i++)
		json_array_append_new(rails, rail_json(&j->rail[i]));
	for (size_t i = 0; i < j->links; i++)
		json_array_append_new(links, link_json(&j->link[i]));
	json_object_set_new(s, "hosts", hosts);
	json_object_set_new(s, "rails", rails);
	json_object_set_new(s, "links", links);
	json_object_set_new(s, "measured", measured_json(&r->log));
	if (simulation)
		json_object_set_new(s, "simulation", simulation);
	json_array_append_new(list, s);
	json_object_set_new(root, "pairs", list);
	json_object_set_new(root, "verdict", verdict_json(r));
}
