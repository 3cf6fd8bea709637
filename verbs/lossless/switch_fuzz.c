// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: any bytes as a switch's configuration. What is accepted has values within their
 * limits and can be judged; what is refused says where.
 */
#include <stdlib.h>
#include <string.h>

#include "verbs/lossless/switch_lldp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
	if (!ok)
		abort();
}

static void check_class(int v)
{
	check(v >= -1 && v < SWITCH_CLASSES);
}

static void check_port(const struct switch_port *p)
{
	check(p->name[0] || p->mtu == -1 || p->mtu >= 68);
	check(p->pfc >= -1 && p->pfc <= 255);
	check(p->mtu == -1 || (p->mtu >= 68 && p->mtu <= 65535));
	check(p->cable_m >= -1 && p->cable_m <= 100000);
	for (int d = 0; d < 64; d++)
		check_class(p->dscp_class[d]);
	for (int c = 0; c < SWITCH_CLASSES; c++) {
		check_class(p->class_queue[c]);
		check_class(p->class_group[c]);
		check_class(p->pfc_queue[c]);
		check_class(p->pfc_group[c]);
		check(p->scheduler[c].share >= -1 && p->scheduler[c].share <= 100);
	}
}

static void judge(const struct switch_facts *s)
{
	static const int dscps[] = {3, 26, 48};
	struct profile profile;
	profile_none(&profile);
	for (int given = 0; given < 2; given++) {
		profile.given = given;
		profile.roce_dscp[0] = dscps[given];
		profile.cnp_dscp = dscps[2];
		for (int i = 0; i < s->ports && i < 8; i++) {
			const struct switch_input in = {.sw = s,
				.port = &s->port[i],
				.all = &s,
				.n_all = 1,
				.profile = &profile};
			for (const struct switch_check *c = switch_checks; c->def.id; c++) {
				struct fb_finding f = {.state = FB_CHECK_ERROR};
				c->run(&in, &f);
				check(f.state == FB_CHECK_SKIP ? f.reason[0] : f.observed[0]);
			}
		}
	}
}

/* The same bytes as neighbours, at the ports of a switch that has whatever they name. */
static void as_neighbours(const char *text, size_t size)
{
	struct switch_lldp l;
	struct fb_err e = {0};
	if (switch_lldp_parse(text, size, "fuzz", &l, &e) == 0) {
		check(l.n >= 0 && l.n <= SWITCH_MAX_LINKS);
		for (int i = 0; i < l.n; i++)
			check(l.link[i].port[0] && l.link[i].host[0] && l.link[i].far_port[0]);
	} else {
		check(l.link == NULL && l.n == 0);
	}
	switch_lldp_free(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct switch_facts s;
	struct fb_err e = {0};
	char *text = malloc(size + 1);
	if (!text)
		return 0;
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	as_neighbours(text, size);
	int rc = switch_parse(text, size, "fuzz", &s, &e);
	if (rc < 0) {
		check(e.code < 0 && e.msg[0] && e.exit == FB_EXIT_USAGE);
		check(s.port == NULL && s.ports == 0);
	} else {
		check(s.vendor && s.name[0] && s.ports <= SWITCH_MAX_PORTS);
		for (int i = 0; i < s.ports; i++)
			check_port(&s.port[i]);
		judge(&s);
	}
	switch_free(&s);
	free(text);
	return 0;
}
