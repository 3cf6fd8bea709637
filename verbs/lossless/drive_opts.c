// SPDX-License-Identifier: Apache-2.0
/*
 * Options of --drive, under the names that `verbs incast` has for them, and what may be said of a
 * host.
 */
#include <errno.h>
#include <string.h>

#include "verbs/incast_run.h"
#include "verbs/lossless/drive.h"

#define O(field) .offset = offsetof(struct drive_cfg, field)
const struct fb_opt drive_opts[] = {
	{.name = "drive",
		.type = FB_OPT_LIST,
		O(hosts),
		.arg = "HOST[:PORT],...",
		.help = "make load: these hosts, each with `fabricbench verbs serve`, write to this "
			"node at once, and the live checks judge all of them"},
	{.name = "victim",
		.type = FB_OPT_STRING,
		O(victim),
		.arg = "HOST[:PORT]",
		.help = "a host that does not send: reads from it tell what others suffer (of three "
			"and more hosts the last)"},
	{.letter = 's',
		.name = "size",
		.type = FB_OPT_SIZE,
		O(size),
		.arg = "SIZE",
		.def = "64K",
		.help = "message size of the senders' writes"},
	{.letter = 't',
		.name = "depth",
		.type = FB_OPT_INT,
		O(depth),
		.arg = "N",
		.def = "64",
		.min = 1,
		.max = VERBS_MAX_DEPTH / 2,
		.help = "messages in flight of each sender"},
	{.name = "rate",
		.type = FB_OPT_RATE,
		O(rate),
		.arg = "RATE",
		.def = "0",
		.help = "rate of each sender (0: as fast as it goes)"},
	{.letter = 'D',
		.name = "duration",
		.type = FB_OPT_DURATION,
		O(duration_ns),
		.arg = "TIME",
		.def = "5s",
		.help = "length of the load"},
	{.name = "interval",
		.type = FB_OPT_DURATION,
		O(interval_ns),
		.arg = "TIME",
		.def = "0",
		.help = "a read from the victim is due every so often (0: 100us; 2ms on Soft-RoCE)"},
	{.name = "traffic-class",
		.type = FB_OPT_INT,
		O(traffic_class),
		.arg = "N",
		.def = "-1",
		.min = -1,
		.max = 255,
		.help = "traffic class byte of the load (-1: the profile's, else what this node "
			"sets, else 0)"},
	{.name = "victim-traffic-class",
		.type = FB_OPT_INT,
		O(victim_traffic_class),
		.arg = "N",
		.def = "-1",
		.min = -1,
		.max = 255,
		.help = "that of the victim's reads (-1: the senders')"},
	{.letter = 'x',
		.name = "gid-index",
		.type = FB_OPT_INT,
		O(gid_index),
		.arg = "N",
		.def = "-1",
		.min = -1,
		.max = 255,
		.help = "GID index (-1: by type and address, RoCE v2 and IPv4 first)"},
	{.name = "peer-device",
		.type = FB_OPT_STRING,
		O(peer_device),
		.arg = "NAME",
		.help = "the hosts' device (their first ACTIVE one)"},
	{.name = NULL},
};

const struct fb_check_def drive_checks[] = {
	{"drive.host", "the host took part in the load", "`verbs serve` on the host; --drive",
		"pass: it sent, or answered, all the time; error: it did not come, or failed on "
		"the way",
		"fabricbench verbs serve on the host; verbs incast --senders HOST alone tells more",
		NULL, "every host named has to be accounted for", "recorded"},
	{.id = NULL},
};

static int named_twice(const char *host, struct fb_err *e)
{
	fb_fail_usage(e, "--drive names %s twice", host);
	fb_hint(e, "name each host once; of several servers on one host, HOST:PORT");
	return -EINVAL;
}

int drive_check_options(const struct drive_cfg *c, struct fb_err *e)
{
	if (c->hosts.n == 0 && c->victim) {
		fb_fail_usage(e, "--victim without --drive");
		fb_hint(e, "name the hosts that send: --drive HOST,HOST");
		return -EINVAL;
	}
	if (c->hosts.n > VERBS_INCAST_MAX_SENDERS)
		return fb_fail_usage(e, "--drive names %zu hosts, more than %d", c->hosts.n,
			VERBS_INCAST_MAX_SENDERS);
	if (c->hosts.n > 0 && (c->duration_ns < 100000000u || c->duration_ns > 3600000000000ull))
		return fb_fail_usage(e, "--duration must be from 100ms to 1h");
	for (size_t i = 0; i < c->hosts.n; i++) {
		if (c->victim && strcmp(c->victim, c->hosts.v[i]) == 0)
			return fb_fail_usage(e,
				"%s is named by --drive and as the victim: a victim sends nothing",
				c->victim);
		for (size_t k = 0; k < i; k++)
			if (strcmp(c->hosts.v[i], c->hosts.v[k]) == 0)
				return named_twice(c->hosts.v[i], e);
	}
	return 0;
}
