// SPDX-License-Identifier: Apache-2.0
/*
 * What there is to check in a fabric, and how findings become checks of the document: one row for
 * each thing that is wrong, one row for each check that found nothing. What stands in many rows is
 * counted beyond FABRIC_MAX_ROWS, never dropped in silence.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/result.h"
#include "topo/fabric/fabric_priv.h"

#define DUMP       "ibnetdiscover, iblinkinfo, or the live subnet"
#define RESEAT     "reseat or replace the cable and its modules; ibportstate LID PORT query"
#define LINK_FALLS "the link goes down"
#define RECORDED   "recorded"
#define BUILT      "constructed"

const struct fb_check_def fabric_checks[] = {
	[FAB_RAIL] = {"fab.rail", "each HCA on its rail's leaf",
		DUMP ": descriptions such as \"node3 mlx5_1\"",
		"fail: mis-cabled: the hosts with the same HCAs that share leaves with this one by "
		"their other HCAs have this HCA elsewhere, by majority; skip: one HCA a host, or no "
		"names",
		"move the cable to where the finding says it belongs", LINK_FALLS,
		"NCCL and rail-optimised fabrics: HCA i of every host on the leaf of rail i",
		BUILT},
	[FAB_EXPECT] = {"fab.expect", "cabling as listed", DUMP "; --expect FILE",
		"fail: mis-cabled (an end is elsewhere) or missing; warn: a cable that is not in the "
		"list; info: a list that leaves out more than it has; skip: no list",
		"move the cable to where the list has it, or correct the list", LINK_FALLS,
		"the site's own list", BUILT},
	[FAB_SPEED] = {"fab.speed", "each link as fast as both its ends", DUMP,
		"fail: slower than both ends could, by \"Could be\" or PortInfo; without these, slower "
		"than the best between the same devices, if a quarter of them are at most; ends that "
		"disagree; warn: up to half of them, then one row for all; or few, where the devices "
		"are not told",
		RESEAT, LINK_FALLS, "IBTA 1.4, 7.5 link initialisation: the best both ends can",
		BUILT},
	[FAB_WIDTH] = {"fab.width", "each link as wide as both its ends", DUMP,
		"as fab.speed, in lanes; 8x and 12x are wanted only where some link of the fabric has "
		"them",
		RESEAT, LINK_FALLS, "IBTA 1.4, 7.5 link initialisation: the best both ends can",
		BUILT},
	[FAB_STATE] = {"fab.state", "joined ports are active",
		"iblinkinfo, or the live subnet: PortState",
		"warn: up but Initialize or Armed; a port joined to its own switch; skip: the source "
		"tells no states",
		"sminfo; look at the subnet manager's log", NULL, "IBTA 1.4, 7.2.7 link states",
		BUILT},
	[FAB_COUNTERS] = {"fab.counters", "error counters under their thresholds",
		"--counters (ibqueryerrors, perfquery), or the live subnet: PortCounters",
		"fail: SymbolError, LinkErrorRecovery, LinkDowned, PortRcvErrors, LocalLinkIntegrity, "
		"ExcessiveBufferOverrun over 10; warn: others over 100 and over one in ten million of "
		"the packets, where those are told; PortRcvSwitchRelayErrors and PortXmitWait are no "
		"errors; skip: no counters",
		"clear them (ibclearerrors), let traffic run for an hour, look again; then reseat or "
		"replace the cable",
		"clearing loses the history", "infiniband-diags, etc/error_thresholds", RECORDED},
	[FAB_GUID] = {"fab.guid", "every GUID is one device's", DUMP,
		"fail: a node or port GUID of zero, of two devices, or a port with two other ends; "
		"warn: the same of aggregation nodes",
		"flint -d DEVICE -guid GUID sg burns a device's own GUID again",
		"the device restarts", "IBTA 1.4, 4.1.1 GUIDs are unique", RECORDED},
	[FAB_NAMES] = {"fab.names", "descriptions that tell hosts apart", DUMP,
		"warn: the maker's description, or one that two nodes have",
		"echo \"$(hostname -s) mlx5_0\" > /sys/class/infiniband/mlx5_0/node_desc, or start "
		"rdma-ndd",
		NULL, "rdma-core, rdma-ndd(8)", RECORDED},
	[FAB_UPLINKS] = {"fab.uplinks", "leaves with as many uplinks as the others", DUMP,
		"warn: fewer cables upward than most leaves of its part have", RESEAT, LINK_FALLS,
		"the other leaves", BUILT},
	[FAB_PARALLEL] = {"fab.parallel", "parallel links spread evenly", DUMP,
		"warn: a leaf has more cables to one spine than to another, beyond what does not "
		"divide",
		"move cables so that each spine has as many", LINK_FALLS,
		"fat-tree routing balances over spines, not over cables", BUILT},
	[FAB_ADJACENCY] = {"fab.adjacency", "every leaf reaches its spines", DUMP,
		"warn: most switches that share spines with this one are joined to a spine that it is "
		"not joined to",
		"look for the missing cable: ibportstate LID PORT query at both ends", NULL,
		"the other leaves", BUILT},
	[FAB_BLOCKING] = {"fab.blocking", "blocking factor of the leaves", DUMP,
		"sum of down over sum of up, by the best rate of each link; fail: more than --blocking; "
		"warn: over 1 and over 1.25 times what most leaves have, for another reason than "
		"fab.uplinks tells",
		"add uplinks, or move hosts to other leaves", LINK_FALLS,
		"down over up: 1 is non-blocking", BUILT},
	[FABRIC_CHECKS] = {.id = NULL},
};

void fabric_start(
	struct fabric_judge *j, enum fabric_check c, struct fb_finding *f, const char *fmt, ...)
{
	va_list ap;
	memset(f, 0, sizeof(*f));
	va_start(ap, fmt);
	vsnprintf(f->subject, sizeof(f->subject), fmt, ap);
	va_end(ap);
	fb_find_read(
		f, "%s", c == FAB_EXPECT && j->rules->list ? j->rules->list->name : j->f->source);
}

void fabric_keep(struct fabric_judge *j, enum fabric_check c, const struct fb_finding *f)
{
	j->bad[c] += f->state == FB_CHECK_WARN || f->state == FB_CHECK_FAIL;
	if (++j->rows[c] > FABRIC_MAX_ROWS) {
		if (f->state == FB_CHECK_FAIL || j->worst_hidden[c] == FB_CHECK_PASS)
			j->worst_hidden[c] = f->state;
		return;
	}
	json_t *o = fb_finding_json(&fabric_checks[c], f);
	j->failed = j->failed || !o;
	fb_doc_add_check(j->doc, o);
}

void fabric_sum(
	struct fabric_judge *j, enum fabric_check c, enum fb_check_state s, const char *fmt, ...)
{
	struct fb_finding f;
	char text[256];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fabric_start(j, c, &f, "fabric");
	fb_find(&f, s, "%s", text);
	fabric_keep(j, c, &f);
}

/* The rest of a check that has more rows than a document should. */
static void tell_hidden(struct fabric_judge *j, enum fabric_check c)
{
	struct fb_finding f;
	if (j->rows[c] <= FABRIC_MAX_ROWS)
		return;
	size_t more = j->rows[c] - FABRIC_MAX_ROWS;
	fabric_start(j, c, &f, "fabric");
	fb_find(&f, j->worst_hidden[c], "and %zu more", more);
	j->rows[c] = 0;
	fabric_keep(j, c, &f);
	j->rows[c] = FABRIC_MAX_ROWS + more;
}

int fabric_judge(struct fabric *f, const struct fabric_rules *r, struct fb_doc *doc)
{
	static void (*const judges[])(struct fabric_judge *) = {fabric_judge_list,
		fabric_judge_rails, fabric_judge_links, fabric_judge_states, fabric_judge_counters,
		fabric_judge_guids, fabric_judge_names, fabric_judge_leaves};
	struct fabric_judge j = {.f = f, .rules = r, .doc = doc};
	j.listed = calloc(f->port.n + 1, sizeof(*j.listed));
	j.short_up = calloc(f->node.n + 1, sizeof(*j.short_up));
	int rc = j.listed && j.short_up ? 0 : -ENOMEM;
	for (size_t i = 0; i < sizeof(judges) / sizeof(judges[0]) && rc == 0; i++) {
		judges[i](&j);
		rc = j.failed ? -ENOMEM : 0;
	}
	for (int c = 0; c < FABRIC_CHECKS && rc == 0; c++)
		tell_hidden(&j, (enum fabric_check)c);
	json_t *o = rc == 0 ? fabric_json(f) : NULL;
	if (o)
		json_object_set_new(fb_doc_json(doc), "fabric", o);
	free(j.listed);
	free(j.short_up);
	return rc == 0 && !o ? -ENOMEM : rc;
}
