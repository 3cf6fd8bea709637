// SPDX-License-Identifier: Apache-2.0
/*
 * Run control before the first point: its options, the exchanges that everything else uses, the
 * owner's settings and every host's facts, setup on all ranks, and proof that all of them have the
 * same list of points.
 */
#include "bench/runctl_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/sysinfo.h"

#define MAX_BATCH    100000u
#define MAX_GATHERED (4u << 20)     /* samples of all ranks in one batch */
#define SLACK_NS     30000000000ull /* a follower waits so much longer than a point may last */

const struct fb_opt fb_runctl_opts[] = {
	{.letter = 'n',
		.name = "iters",
		.type = FB_OPT_U64,
		.offset = offsetof(struct fb_runctl_cfg, iters),
		.arg = "N",
		.help = "exactly so many iterations per point; 0: until the interval is narrow",
		.def = "0",
		.max = 1000000000000},
	{.letter = 'D',
		.name = "duration",
		.type = FB_OPT_DURATION,
		.offset = offsetof(struct fb_runctl_cfg, duration_ns),
		.arg = "TIME",
		.help = "measure each point for so long; 0: until the interval is narrow",
		.def = "0"},
	{.letter = 'w',
		.name = "warmup",
		.type = FB_OPT_U64,
		.offset = offsetof(struct fb_runctl_cfg, warmup),
		.arg = "N",
		.help = "iterations dropped at the start of each point",
		.def = "64",
		.max = 1000000000},
	{.name = "ci",
		.type = FB_OPT_DOUBLE,
		.offset = offsetof(struct fb_runctl_cfg, ci_width),
		.arg = "SHARE",
		.help = "stop once the median's 95 % interval is narrower than this share of it",
		.def = "0.02"},
	{.name = "min-iters",
		.type = FB_OPT_U64,
		.offset = offsetof(struct fb_runctl_cfg, min_iters),
		.arg = "N",
		.help = "iterations before the interval may stop a point",
		.def = "100"},
	{.name = "max-iters",
		.type = FB_OPT_U64,
		.offset = offsetof(struct fb_runctl_cfg, max_iters),
		.arg = "N",
		.help = "iterations after which a point ends, however wide its interval",
		.def = "1000000"},
	{.name = "max-time",
		.type = FB_OPT_DURATION,
		.offset = offsetof(struct fb_runctl_cfg, max_time_ns),
		.arg = "TIME",
		.help = "time after which a point ends, however wide its interval",
		.def = "1s"},
	{.name = "point-timeout",
		.type = FB_OPT_DURATION,
		.offset = offsetof(struct fb_runctl_cfg, point_timeout_ns),
		.arg = "TIME",
		.help = "a point that lasts longer, not counting --duration, is given up, and the "
			"run with it",
		.def = "60s"},
	{.name = NULL},
};

int fb_runctl_fit(const struct fb_runctl_cfg *rc, struct fb_err *e)
{
	if (rc->iters == 0 || rc->duration_ns == 0)
		return 0;
	fb_fail_usage(e, "--iters and --duration both say when a point is over");
	fb_hint(e, "leave one of them out");
	return -EINVAL;
}

/* ---- exchanges ------------------------------------------------------------------------------- */

/* Of all exchanges within a point: its own deadline comes first, in measure(). */
uint64_t runctl_patience(const struct fb_run *run)
{
	return fb_deadline_in(run->rc.point_timeout_ns + SLACK_NS);
}

int runctl_send(struct fb_run *run, void *buf, uint32_t len, struct fb_err *e)
{
	if (run->size == 1)
		return 0;
	int rc = fb_oob_bcast(run->oob, buf, len, runctl_patience(run), e);
	run->broken = run->broken || rc < 0;
	return rc;
}

int runctl_gather_json(struct fb_run *run, const json_t *mine, json_t **all, struct fb_err *e)
{
	if (run->size == 1) {
		*all = json_pack("[O]", mine);
		return 0;
	}
	int rc = fb_oob_gather_json(run->oob, mine, all, runctl_patience(run), e);
	run->broken = run->broken || rc < 0;
	return rc;
}

/* All ranks end with one error, or with none; each brings its own. */
int runctl_agree(struct fb_run *run, const struct fb_err *mine, struct fb_err *e)
{
	struct fb_err one = *mine;
	int rc = run->size > 1 ? fb_oob_agree(run->oob, &one, runctl_patience(run)) : one.code;
	if (rc < 0 && e && e->code == 0)
		*e = one;
	return rc;
}

/* ---- before the first point ------------------------------------------------------------------ */

/* The owner's settings, and its host name, to all. */
struct hello {
	struct fb_runctl_cfg rc;
	uint64_t want_hosts;
	char host[256];
};

/* Facts of hosts other than the owner's come into system.hosts[], once each. */
static int exchange_hosts(struct fb_run *run, const struct hello *h, struct fb_err *e)
{
	char name[256];
	const struct fb_sysroot live = {.dir = NULL};
	json_t *all = NULL, *mine = NULL;
	fb_host_name(name, sizeof(name));
	if (strcmp(name, h->host) != 0)
		mine = fb_sysinfo_host(&live, false);
	if (!mine)
		mine = json_pack("{s:s}", "name", name);
	int rc = runctl_gather_json(run, mine, &all, e);
	json_decref(mine);
	for (size_t r = 0; rc == 0 && r < json_array_size(all); r++) {
		if (strcmp(fb_json_str(json_array_get(all, r), "name", ""), h->host) != 0)
			fb_doc_add_host(run->doc, json_incref(json_array_get(all, r)));
	}
	for (size_t r = 1; rc == 0 && r < json_array_size(all); r++) {
		const char *host = fb_json_str(json_array_get(all, r), "name", "");
		const json_t *hosts =
			json_object_get(json_object_get(fb_doc_json(run->doc), "system"), "hosts");
		json_t *peer = json_object();
		fb_json_set_int(peer, "rank", (int64_t)r);
		for (size_t i = 0; i < json_array_size(hosts); i++) {
			if (strcmp(fb_json_str(json_array_get(hosts, i), "name", ""), host) == 0)
				fb_json_set_int(peer, "host", (int64_t)i);
		}
		fb_doc_add_peer(run->doc, peer);
	}
	json_decref(all);
	return rc;
}

int runctl_hello(struct fb_run *run, const struct fb_runctl_cfg *rc, struct fb_err *e)
{
	struct hello h;
	memset(&h, 0, sizeof(h));
	if (run->rank == 0) {
		h.rc = *rc;
		fb_host_name(h.host, sizeof(h.host));
		h.want_hosts =
			json_array_size(json_object_get(fb_doc_json(run->doc), "peers")) == 0;
	}
	int err = runctl_send(run, &h, sizeof(h), e);
	if (err < 0)
		return err;
	run->rc = h.rc;
	run->deadline = fb_deadline_in(run->rc.point_timeout_ns);
	return run->size > 1 && h.want_hosts ? exchange_hosts(run, &h, e) : 0;
}

static uint64_t fnv(uint64_t h, const void *p, size_t n)
{
	const unsigned char *s = p;
	for (size_t i = 0; i < n; i++)
		h = (h ^ s[i]) * 0x100000001b3u;
	return h;
}

static uint64_t hash_points(const struct fb_point_list *l)
{
	uint64_t h = 0xcbf29ce484222325u;
	for (unsigned i = 0; i < l->n; i++) {
		const struct fb_point *p = &l->v[i];
		char *params =
			p->params ? json_dumps(p->params, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
		h = fnv(h, p->name, strlen(p->name) + 1);
		if (params)
			h = fnv(h, params, strlen(params) + 1);
		h = fnv(h, &p->size, sizeof(p->size));
		h = fnv(h, &p->max_batch, sizeof(p->max_batch));
		free(params);
	}
	return h;
}

/* Ranks with another list would measure something else under the same name. */
static int compare_points(struct fb_run *run, struct fb_err *e)
{
	uint64_t mine[2] = {hash_points(&run->points), run->points.n}, owner[2];
	memcpy(owner, mine, sizeof(owner));
	int rc = runctl_send(run, owner, sizeof(owner), e);
	if (rc < 0)
		return rc;
	fb_err_clear(&run->local);
	if (memcmp(owner, mine, sizeof(owner)) != 0) {
		fb_fail(&run->local, FB_EXIT_UNMEASURED, EPROTO,
			"it built another list of points: %llu points where rank 0 has %llu",
			(unsigned long long)mine[1], (unsigned long long)owner[1]);
		fb_hint(&run->local, "start all ranks with the same options and version");
	}
	return runctl_agree(run, &run->local, e);
}

static int allocate(struct fb_run *run, struct fb_err *e)
{
	size_t cap = MAX_BATCH;
	if (run->b->combine == FB_COMBINE_MAX && (size_t)run->size * cap > MAX_GATHERED)
		cap = MAX_GATHERED / (size_t)run->size;
	run->cap = cap < 64 ? 64 : cap;
	run->buf = malloc(sizeof(struct batch_status) + run->cap * sizeof(uint64_t));
	if (run->rank == 0) {
		run->combined = malloc(run->cap * sizeof(uint64_t));
		run->acc = malloc(sizeof(*run->acc));
		if (run->acc && acc_init(run->acc, run->size, run->b->combine, e) < 0) {
			free(run->acc);
			run->acc = NULL;
		}
	}
	if (!run->buf || (run->rank == 0 && (!run->combined || !run->acc)))
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the samples");
	/* Page faults belong here, not into the first batch. */
	memset(run->buf, 0, sizeof(struct batch_status) + run->cap * sizeof(uint64_t));
	return 0;
}

/* Setup and points on this rank, then one outcome for all. */
int runctl_set_up(struct fb_run *run, const void *cfg, struct fb_err *e)
{
	struct fb_err *mine = &run->local;
	int rc = allocate(run, mine);
	if (rc == 0)
		rc = run->b->setup(run, cfg, &run->st, mine);
	if (rc == 0)
		rc = run->b->points(run->st, &run->points, mine);
	if (rc == 0 && run->points.n == 0)
		rc = fb_fail_usage(
			mine, "%s: these options leave no point to measure", run->b->name);
	if (rc < 0)
		fb_fail(mine, FB_EXIT_UNMEASURED, rc, "%s: cannot set up: %s", run->b->name,
			strerror(-rc));
	rc = runctl_agree(run, mine, e);
	return rc < 0 ? rc : compare_points(run, e);
}
