// SPDX-License-Identifier: Apache-2.0
/*
 * The command `verbs pairs`: who takes part, the run, the document. Rank 0 owns the schedule and
 * writes; the other ranks do what they are told. With --simulate the same run, judgement and
 * document, without hosts.
 */
#include "verbs/pairs_cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/clock.h"
#include "bench/core/cmd.h"
#include "bench/core/json.h"
#include "bench/core/log.h"
#include "bench/core/sysinfo.h"
#include "bench/core/tell.h"
#include "bench/core/units.h"
#include "verbs/pairs_doc.h"
#include "verbs/pairs_opts.h"
#include "verbs/pairs_ranks.h"
#include "verbs/pairs_sim.h"

/* So often a run is put on disk, at most: a large one takes a second to write. */
#define PUBLISH_NS 2000000000ull
/* Facts of so many hosts stand in the document; of a larger fleet, names. */
#define MAX_FACTS 128

static const char notes[] =
	"Start it on every host, with the same options: rank 0 keeps the schedule and writes the result.\n"
	"Each round is a set of disjoint pairs that measure at the same time. Hosts and links that look\n"
	"slow are measured again with good partners before they are named. A pair that fails is that\n"
	"pair's result. Scores are shares of the fleet's own level.\n\n"
	"Hosts file: HOST, or HOST RACK, a line. Without rank options each host finds itself in the file,\n"
	"and the first one is rank 0.\n\n"
	"--simulate: hosts=64,noise=0.03,slow-node=7:0.85,slow-link=3-9:0.7,seed=1; also absent=H,\n"
	"broken-link=A-B, rails=N, racks=N; seeds=N counts misses and false alarms; `any` draws one.\n\n"
	"Exit status: 0 accepted; 1 a host or link is slow or fails; 3 a host is missing, or a suspect\n"
	"could not be confirmed, or there is nothing to compare with (two hosts).\n\n"
	"Examples:\n"
	"  ssh:    scripts/launch --hosts n01,n02,n03,n04 -- fabricbench verbs pairs -d all\n"
	"  slurm:  srun --ntasks-per-node 1 fabricbench verbs pairs --expect-hosts hosts.txt\n"
	"  alone:  fabricbench verbs pairs --simulate hosts=64,slow-node=7:0.85";

static void make_spec(struct fb_opt_spec *spec, struct pairs_command *c)
{
	memset(spec, 0, sizeof *spec);
	spec->command = "verbs pairs";
	spec->usage = "[options]";
	spec->summary = "RDMA between all hosts, pair by pair: which host or link is slow.";
	spec->notes = notes;
	spec->sets[0] = (struct fb_opt_set){"Pairs", pairs_option_table, &c->o};
	spec->sets[1] = (struct fb_opt_set){"Ranks", fb_oob_opts, &c->oob};
	spec->sets[2] = (struct fb_opt_set){"Run control", fb_runctl_opts, &c->run};
	spec->sets[3] = (struct fb_opt_set){"Output", fb_output_opts, &c->out};
}

const struct fb_opt_spec *verbs_pairs_spec(void)
{
	static struct pairs_command scratch;
	static struct fb_opt_spec spec;

	make_spec(&spec, &scratch);
	return &spec;
}

/* ---- the run --------------------------------------------------------------------------------- */

struct session {
	const struct pairs_command *c;
	struct pairs_fleet fleet;
	struct pairs_run run;
	struct pairs_doc out;
	struct verbs_params params;
	uint64_t began, published;
	struct fb_tell tell;
};

static void init_session(struct session *s, const struct pairs_command *c)
{
	bool latency = c->o.metric == PAIRS_LATENCY;

	s->c = c;
	s->began = s->published = fb_clock_ns();
	fb_tell_take(&s->tell); /* each pair's session is run control's, with one point */
	s->run.fleet = &s->fleet;
	s->run.opts = pairs_opts_default(latency);
	s->run.opts.floor = c->o.floor;
	s->run.rounds = c->o.full ? 0 : (uint32_t)c->o.rounds;
	s->out.metric = latency ? "latency" : "bandwidth";
	s->out.unit = latency ? "ns" : "bytes/s";
	s->out.better = latency ? "lower" : "higher";
	s->out.params = json_object();
	fb_json_set_str(s->out.params, "op", verbs_ops[s->params.ops[0]].name);
	fb_json_set_int(s->out.params, "size", (int64_t)s->params.sizes[0]);
}

static void end_session(struct session *s)
{
	fb_tell_close(&s->tell);
	pairs_run_free(&s->run);
	pairs_fleet_free(&s->fleet);
	json_decref(s->out.params);
}

static double seconds_since(uint64_t t)
{
	return (double)(fb_clock_ns() - t) / 1e9;
}

static int after_batch(struct pairs_run *r, struct fb_err *e)
{
	struct pairs_ranks *k = r->arg;
	struct session *s = (struct session *)((char *)r - offsetof(struct session, run));
	char name[40];
	int rc = 0;

	(void)k;
	pairs_doc_results(&s->out, r);
	fb_progress("step %" PRIu64 ", %" PRIu64 " in the rounds; %zu pairs", r->taken, r->steps,
		r->log.n);
	snprintf(name, sizeof(name), "%zu pairs", r->log.n);
	fb_tell_begin(&s->tell, (unsigned)r->taken,
		(unsigned)(r->taken > r->steps ? r->taken : r->steps), name);
	fb_tell_end(&s->tell, s->out.doc);
	if (fb_clock_ns() - s->published > PUBLISH_NS) {
		rc = fb_doc_publish(s->out.doc, e);
		s->published = fb_clock_ns();
	}
	return rc;
}

/* A plan, or who watches a log, learns why from standard error. */
static void say_verdict(struct fb_doc *doc)
{
	const json_t *v = json_object_get(fb_doc_json(doc), "verdict");
	const json_t *reasons = json_object_get(v, "reasons"), *one = json_array_get(reasons, 0);
	size_t n = json_array_size(reasons);

	if (n > 1)
		fb_error("%s: %s, and %zu more", fb_json_str(v, "state", "?"),
			json_string_value(one), n - 1);
	else if (n > 0)
		fb_error("%s: %s", fb_json_str(v, "state", "?"), json_string_value(one));
}

static int close_doc(struct session *s, struct fb_err *e, json_t *simulation, int status)
{
	fb_progress_end();
	pairs_doc_results(&s->out, &s->run);
	if (s->run.judgement.hosts)
		pairs_doc_section(&s->out, &s->run, simulation, seconds_since(s->began));
	else
		json_decref(simulation);
	if (e->code) {
		status = fb_cmd_fail(e);
		fb_doc_error(s->out.doc, e);
	} else if (status != FB_EXIT_OK) {
		say_verdict(s->out.doc);
	}
	return fb_doc_finish(s->out.doc, status);
}

static struct fb_doc *new_doc(const struct fb_opt_spec *spec, const struct fb_output_cfg *out,
	int argc, char **argv, struct fb_err *e)
{
	struct fb_doc *doc = fb_doc_new(spec->command, argc, argv, out, e);

	if (!doc)
		return NULL;
	fb_doc_set_config(doc, fb_opt_to_json(spec, true), fb_opt_to_json(spec, false));
	fb_doc_set_table(doc, pairs_doc_table);
	return doc;
}

/* ---- simulated ------------------------------------------------------------------------------- */

static json_t *tally_json(const struct pairs_sim *sim, const struct pairs_sim_tally *t)
{
	json_t *j = json_object();

	fb_json_set_int(j, "seed", (int64_t)sim->seed);
	fb_json_set_int(j, "seeds", (int64_t)t->fleets);
	fb_json_set_real(j, "noise", sim->noise, "none");
	fb_json_set_int(j, "bad_nodes", (int64_t)t->bad_nodes);
	fb_json_set_int(j, "missed_nodes", (int64_t)t->missed_nodes);
	fb_json_set_int(j, "false_nodes", (int64_t)t->false_nodes);
	fb_json_set_int(j, "bad_links", (int64_t)t->bad_links);
	fb_json_set_int(j, "unseen_links", (int64_t)t->unseen_links);
	fb_json_set_int(j, "missed_links", (int64_t)t->missed_links);
	fb_json_set_int(j, "false_links", (int64_t)t->false_links);
	fb_json_set_int(j, "false_alarm_fleets", (int64_t)t->false_fleets);
	return j;
}

/* One fleet after the other; the last one's measurements stay. */
static int simulate_all(
	struct session *s, struct pairs_sim *sim, struct pairs_sim_tally *t, struct fb_err *e)
{
	int rc = 0;

	for (uint64_t i = 0; rc == 0 && i < sim->seeds; i++) {
		pairs_run_free(&s->run);
		pairs_fleet_free(&s->fleet);
		s->run.taken = 0;
		rc = pairs_sim_start(sim, sim->seed + i, &s->fleet, e);
		if (rc == 0)
			rc = pairs_run(&s->run, e);
		if (rc == 0)
			pairs_sim_count(sim, &s->run, t);
		if (rc == 0 && fb_stop_requested())
			rc = fb_fail(e, FB_EXIT_UNMEASURED, EINTR,
				"stopped after %" PRIu64 " of %" PRIu64 " fleets", i + 1,
				sim->seeds);
		fb_progress("fleet %" PRIu64 " of %" PRIu64, i + 1, sim->seeds);
	}
	return rc;
}

/* Many fleets are judged by what was found in them: no misses, false alarms in under 1 %. */
static int tally_status(const struct pairs_sim_tally *t)
{
	bool good = t->missed_nodes + t->missed_links == 0 && t->false_fleets * 100 < t->fleets;

	return good || (t->fleets < 100 && !t->missed_nodes && !t->missed_links && !t->false_fleets)
		       ? FB_EXIT_OK
		       : FB_EXIT_FAILED;
}

static int run_simulated(const struct fb_opt_spec *spec, const struct pairs_command *c,
	struct session *s, struct pairs_sim *sim, int argc, char **argv)
{
	struct pairs_sim_tally t = {0};
	struct fb_err e = {0};
	int status, rc;

	sim->lower_better = s->run.opts.lower_better;
	s->run.arg = sim;
	s->run.measure = pairs_sim_measure;
	s->out.where = "predicted";
	s->out.doc = new_doc(spec, &c->out, argc, argv, &e);
	if (!s->out.doc)
		return fb_cmd_fail(&e);
	rc = simulate_all(s, sim, &t, &e);
	status = rc               ? (int)e.exit
		 : sim->seeds > 1 ? tally_status(&t)
				  : (int)pairs_doc_exit(s->run.judgement.verdict);
	status = close_doc(s, &e, tally_json(sim, &t), status);
	fb_doc_free(s->out.doc);
	return status;
}

/* ---- dry run --------------------------------------------------------------------------------- */

/* Walk the schedule, and prove on the way that the pairs of each round are disjoint. */
static int walk(const struct pairs_schedule *sched, bool print, uint64_t *pairs, struct fb_err *e)
{
	uint64_t *seen = calloc(sched->hosts, sizeof *seen), steps = pairs_schedule_steps(sched);
	int rc = 0;

	if (!seen)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the schedule");
	for (uint64_t i = 0; rc == 0 && i < steps; i++) {
		struct pairs_step step = pairs_schedule_step(sched, i);
		if (print)
			printf("rail %u, round %u:", step.rail, step.round);
		for (uint32_t k = 0; k < pairs_per_round(sched->hosts); k++) {
			uint32_t a, b;
			pairs_slot(step.round, k, sched->hosts, &a, &b);
			if (seen[a] > i || seen[b] > i || a == b)
				rc = fb_fail(e, FB_EXIT_FAILED, EINVAL,
					"the schedule has host %u or %u twice in round %u", a, b,
					step.round);
			seen[a] = seen[b] = i + 1;
			++*pairs;
			if (print)
				printf(" %u-%u", a, b);
		}
		if (print)
			printf("\n");
	}
	free(seen);
	return rc;
}

static int dry_run(const struct pairs_command *c, uint32_t hosts, uint32_t rails)
{
	struct pairs_schedule sched;
	struct fb_err e = {0};
	uint64_t began = fb_clock_ns(), pairs = 0;
	int rc = pairs_schedule_init(
		&sched, hosts, rails, c->o.full ? 0 : (uint32_t)c->o.rounds, 0, &e);

	if (rc == 0)
		rc = walk(&sched, hosts <= 64 && !c->out.json && !c->out.quiet, &pairs, &e);
	if (rc)
		return fb_cmd_fail(&e);
	if (c->out.json)
		printf("{\"hosts\": %u, \"rails\": %u, \"rounds\": %u, \"steps\": %" PRIu64
		       ", \"pairs\": %" PRIu64 ", \"seconds\": %.3f}\n",
			hosts, rails, sched.rounds, pairs_schedule_steps(&sched), pairs,
			seconds_since(began));
	else
		printf("%u hosts, %u rail%s: %u rounds, %" PRIu64 " steps, %" PRIu64
		       " pairs, scheduled in %.3f s\n",
			hosts, rails, rails > 1 ? "s" : "", sched.rounds,
			pairs_schedule_steps(&sched), pairs, seconds_since(began));
	return FB_EXIT_OK;
}

/* ---- real hosts ------------------------------------------------------------------------------ */

/* Without a launcher, a host's place in the file is its rank. */
static void rank_from_file(struct fb_oob_cfg *cfg, const struct pairs_fleet *f)
{
	char own[PAIRS_NAME];

	fb_host_name(own, sizeof own);
	for (uint32_t i = 0; i < f->hosts && f->hosts > 1; i++) {
		if (!pairs_same_host(f->member[i].name, own))
			continue;
		cfg->kind = FB_OOB_TCP;
		cfg->rank = (int)i;
		cfg->ranks = (int)f->hosts;
		cfg->master = f->member[0].name;
		return;
	}
}

static int settle_ranks(const struct pairs_command *c, struct fb_oob_cfg *cfg,
	struct pairs_fleet *f, struct fb_err *e)
{
	struct fb_oob_cfg env = c->oob;
	int rc = fb_oob_from_env(&env, e);

	if (rc)
		return rc;
	*cfg = env;
	/* The master's name is borrowed: members must not be added before the ranks have met. */
	if (env.ranks <= 1 && c->oob.rank < 0)
		rank_from_file(cfg, f);
	cfg->some = c->o.expect_hosts != NULL;
	if (cfg->ranks > 1)
		return 0;
	fb_fail_usage(e, "pairs need at least two hosts, and here is one rank");
	fb_hint(e,
		"start it on every host: scripts/launch --hosts A,B,C -- fabricbench verbs pairs; or "
		"srun, mpirun, --master/--ranks/--rank, or --expect-hosts FILE on each of its hosts");
	return -EINVAL;
}

/* Hosts of the fleet into system.hosts[], where alone their facts stand; ranks as peers. */
static void add_hosts(struct session *s, const struct pairs_ranks *k)
{
	const struct pairs_fleet *f = &s->fleet;
	int size = fb_oob_size(k->oob);

	for (int i = 1; i < size; i++) {
		json_t *host = json_object_get(k->offer[i], "host"), *peer = json_object();
		if (host && f->hosts <= MAX_FACTS)
			fb_doc_add_host(s->out.doc, json_incref(host));
		fb_json_set_int(peer, "rank", i);
		fb_doc_add_peer(s->out.doc, peer);
	}
	for (uint32_t h = 0; h < f->hosts; h++) {
		json_t *name = json_object();
		fb_json_set_str(name, "name", f->member[h].name);
		if (f->member[h].rank != 0 && (f->absent[h] || f->hosts > MAX_FACTS))
			fb_doc_add_host(s->out.doc, name);
		else
			json_decref(name);
	}
}

static const char *where_of(const struct pairs_ranks *k)
{
	const json_t *d;
	size_t i;

	for (int r = 0; r < fb_oob_size(k->oob); r++)
		json_array_foreach (json_object_get(k->offer[r], "devices"), i, d)
			if (json_is_true(json_object_get(d, "software")))
				return fb_where("cpu");
	return fb_where("hardware");
}

static int lead(struct session *s, struct pairs_ranks *k, struct fb_err *e)
{
	const struct pairs_command *c = s->c;
	int rc = pairs_ranks_gather(k, &s->fleet, e);

	if (rc)
		return rc;
	add_hosts(s, k);
	s->out.where = where_of(k);
	s->run.arg = k;
	s->run.measure = pairs_ranks_measure;
	s->run.progress = after_batch;
	if (s->fleet.hosts < 2)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENODATA, "only one host joined");
	(void)c;
	return pairs_run(&s->run, e);
}

static struct verbs_dev_want want_of(const struct pairs_options *o)
{
	return (struct verbs_dev_want){.device = o->device,
		.port = (unsigned)o->ib_port,
		.gid = {.index = o->gid_index,
			.type = o->gid_type ? o->gid_type : -1,
			.family = -1}};
}

static int run_leader(struct session *s, const struct fb_oob_cfg *cfg,
	const struct verbs_dev_want *want, struct fb_err *e)
{
	struct fb_runctl_cfg run = s->c->run;
	struct pairs_ranks k = {
		.params = s->params, .run = &run, .pair_timeout_ns = s->c->o.pair_timeout_ns};
	int rc, status = FB_EXIT_UNMEASURED;

	if (run.point_timeout_ns > k.pair_timeout_ns)
		run.point_timeout_ns = k.pair_timeout_ns;
	rc = pairs_worker_open(&k.worker, want, e);
	k.worker.doc = s->out.doc;
	if (rc == 0)
		rc = fb_oob_open(cfg, &k.oob, e);
	if (rc == 0)
		rc = lead(s, &k, e);
	if (rc == 0)
		status = k.wrong_data ? FB_EXIT_WRONG_DATA
				      : (int)pairs_doc_exit(s->run.judgement.verdict);
	s->run.arg = NULL; /* k ends with this function */
	pairs_ranks_end(&k);
	pairs_worker_close(&k.worker);
	fb_oob_close(k.oob);
	return status;
}

static int run_follower(const struct fb_opt_spec *spec, const struct pairs_command *c,
	const struct fb_oob_cfg *cfg, const struct verbs_dev_want *want)
{
	struct fb_output_cfg silent = {.quiet = true, .timeout = c->out.timeout};
	struct pairs_worker w;
	struct fb_oob *oob = NULL;
	struct fb_err e = {0};
	/* A document that nobody reads: what each pair's session writes is taken out of it. */
	struct fb_doc *doc = fb_doc_new(spec->command, 0, NULL, &silent, &e);
	int rc = doc ? pairs_worker_open(&w, want, &e) : -ENOMEM;

	if (rc == 0) {
		w.doc = doc;
		json_t *peer = json_object();
		fb_json_set_int(peer, "rank", cfg->rank);
		fb_doc_add_peer(doc, peer);
		rc = fb_oob_open(cfg, &oob, &e);
		if (rc == 0)
			rc = pairs_ranks_follow(oob, &w, &e);
		fb_oob_close(oob);
		pairs_worker_close(&w);
	}
	fb_progress_end();
	fb_doc_free(doc);
	return rc ? fb_cmd_fail(&e) : FB_EXIT_OK;
}

static int run_real(const struct fb_opt_spec *spec, const struct pairs_command *c,
	struct session *s, int argc, char **argv)
{
	struct verbs_dev_want want = want_of(&c->o);
	struct fb_oob_cfg cfg;
	struct fb_err e = {0};
	int status, rc = settle_ranks(c, &cfg, &s->fleet, &e);

	if (rc)
		return fb_cmd_fail(&e);
	if (c->o.dry_run)
		return dry_run(c, s->fleet.hosts ? s->fleet.hosts : (uint32_t)cfg.ranks, 1);
	if (cfg.rank > 0)
		return run_follower(spec, c, &cfg, &want);
	s->out.doc = new_doc(spec, &c->out, argc, argv, &e);
	if (!s->out.doc)
		return fb_cmd_fail(&e);
	s->out.where = fb_where("hardware");
	status = run_leader(s, &cfg, &want, &e);
	status = close_doc(s, &e, NULL, status);
	fb_doc_free(s->out.doc);
	return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int run_command(
	const struct fb_opt_spec *spec, const struct pairs_command *c, int argc, char **argv)
{
	struct session s = {.c = c};
	struct pairs_sim sim;
	struct fb_err e = {0};
	const bool simulate = c->o.simulate != NULL;
	json_t *given = fb_opt_to_json(spec, true);
	int status, rc = pairs_opts_fit(&c->o, &c->run, given, &e);

	json_decref(given);
	if (rc == 0)
		rc = pairs_make_params(&c->o, &s.params, &e);
	if (rc == 0 && simulate)
		rc = pairs_sim_parse(&sim, c->o.simulate, &e);
	else if (rc == 0 && c->o.expect_hosts)
		rc = pairs_fleet_read(&s.fleet, c->o.expect_hosts, &e);
	if (rc) {
		pairs_fleet_free(&s.fleet);
		return fb_cmd_fail(&e);
	}
	init_session(&s, c);
	if (simulate && c->o.dry_run)
		status = dry_run(c, sim.hosts, sim.rails);
	else if (simulate)
		status = run_simulated(spec, c, &s, &sim, argc, argv);
	else
		status = run_real(spec, c, &s, argc, argv);
	end_session(&s);
	return status;
}

int verbs_pairs_main(int argc, char **argv)
{
	struct pairs_command c;
	struct fb_opt_spec spec;
	struct fb_err e = {0};
	int rc, status;

	memset(&c, 0, sizeof c);
	make_spec(&spec, &c);
	rc = fb_opt_parse(&spec, argc, argv, &e);
	if (rc == 1)
		return FB_EXIT_OK;
	status = rc ? fb_cmd_fail(&e) : run_command(&spec, &c, argc, argv);
	fb_opt_free(&spec);
	return status;
}
