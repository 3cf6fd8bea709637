// SPDX-License-Identifier: Apache-2.0
/* A/A: what this host's noise lets a gate see, from two sets of launches of one thing. */
#include <math.h>

#include "bench/core/json.h"
#include "reports/compare_priv.h"

double cmp_noise_floor(const struct cmp_metric *m)
{
	if (!isfinite(m->noise) || !m->ratio.valid)
		return NAN;
	/* 1.96 spreads of Hodges-Lehmann's estimate; see compare_power.c. */
	double chance =
		1.96 * m->noise * sqrt((1 / (double)m->base.n + 1 / (double)m->cand.n) * M_PI / 3);
	double seen = fabs(m->ratio.est - 1);
	return seen > chance ? seen : chance;
}

static bool enough(const struct cmp_metric *m)
{
	return m->floor >= cmp_noise_floor(m);
}

int cmp_noise_status(const struct cmp *c)
{
	bool judged = false, below = false;
	for (size_t i = 0; i < c->n; i++) {
		const struct cmp_metric *m = &c->v[i];
		if (!m->gated || !isfinite(cmp_noise_floor(m)))
			continue;
		judged = true;
		below = below || !enough(m);
	}
	return c->wrong_data ? FB_EXIT_WRONG_DATA
	       : below       ? FB_EXIT_FAILED
	       : judged      ? FB_EXIT_OK
			     : FB_EXIT_UNMEASURED;
}

json_t *cmp_noise_json(const struct cmp *c, const char *what)
{
	json_t *o = json_object(), *metrics = json_array();
	fb_json_set_str(o, "schema", "fabricbench-noise/1");
	fb_json_set_str(o, "what", what);
	fb_json_set_int(o, "exit", cmp_noise_status(c));
	for (size_t i = 0; i < c->n; i++) {
		const struct cmp_metric *m = &c->v[i];
		json_t *v = json_object();
		fb_json_set_str(v, "case", m->name);
		fb_json_set_str(v, "metric", m->metric);
		fb_json_set_bool(v, "gated", m->gated);
		fb_json_set_int(v, "launches", (int64_t)m->base.n);
		json_object_set_new(v, "noise", fb_json_real(m->noise));
		json_object_set_new(v, "noise_floor", fb_json_real(cmp_noise_floor(m)));
		json_object_set_new(v, "floor", fb_json_real(m->floor));
		fb_json_set_bool(v, "floor_holds", enough(m));
		json_object_set_new(v, "launches_97", fb_json_real(m->need97));
		json_array_append_new(metrics, v);
	}
	json_object_set_new(o, "metrics", metrics);
	return o;
}

void cmp_noise_table(const struct cmp *c, bool all, FILE *out)
{
	fprintf(out, "  %-60s %9s %9s %9s  %s\n", "metric (* gated)", "noise", "its floor", "floor",
		"");
	for (size_t i = 0; i < c->n; i++) {
		const struct cmp_metric *m = &c->v[i];
		char name[240];
		double least = cmp_noise_floor(m);
		if (!all && !m->gated)
			continue;
		snprintf(name, sizeof(name), "%s %s", m->name, m->metric);
		fprintf(out, "%c %-60s ", m->gated ? '*' : ' ', name);
		if (!isfinite(least)) {
			fprintf(out, "%9s %9s %8.2f%%  not to be judged: %s\n", "-", "-",
				100 * m->floor, m->why[0] ? m->why : "too few launches");
			continue;
		}
		fprintf(out, "%8.2f%% %8.2f%% %8.2f%%  ", 100 * m->noise, 100 * least,
			100 * m->floor);
		if (enough(m))
			fprintf(out, "holds\n");
		else
			fprintf(out, "refused: below the noise; %.2g %% or %.0f launches a side\n",
				100 * least, m->need97);
	}
	fprintf(out,
		"\nNoise: deviation from launch to launch. Its floor: the change that so many launches "
		"show by chance.\nA gate with a floor below it cannot tell a change from this host's "
		"moods.\n");
}
