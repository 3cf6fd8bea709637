// SPDX-License-Identifier: Apache-2.0
/*
 * Running a table of checks on a port, and what checks have in common: what the node is meant to
 * use, and when nothing may be said.
 */
#include "verbs/lossless/checks.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/units.h"
#include "verbs/lossless/checks_priv.h"

/* ---- what is used ---------------------------------------------------------------------------- */

static void add_class(struct used_class *out, int max, int *n, long byte, const char *by)
{
	if (*n == max || byte <= 0 || byte > 255)
		return;
	out[*n].byte = (int)byte;
	snprintf(out[*n].by, sizeof(out[*n].by), "%s", by);
	(*n)++;
}

/* NCCL: NCCL_IB_TC for data, NCCL_IB_FIFO_TC for its own small messages. */
const char *const check_class_names[] = {
	"NCCL_IB_TC", "NCCL_IB_FIFO_TC", "UCX_IB_TRAFFIC_CLASS", NULL};

#define UCX_AUTO 106 /* UCX, uct_ib_iface: what "auto" is on RoCE v2 */

int check_class_of(const struct node_facts *n, const char *name, int *byte, const char **text)
{
	char *end;
	bool ucx = strncmp(name, "UCX_", 4) == 0;
	*text = n->env ? fb_json_str(n->env, name, NULL) : NULL;
	if (!*text || !**text)
		return 0;
	if (ucx && strcmp(*text, "auto") == 0) {
		*byte = UCX_AUTO;
		return 1;
	}
	long v = strtol(*text, &end, 0);
	if (end != *text && *end == '\0' && v == -1 && !ucx)
		return 0;
	if (end == *text || *end != '\0' || v < 0 || v > 255)
		return -EINVAL;
	*byte = (int)v;
	return 1;
}

int check_used_classes(const struct check_input *in, struct used_class *out, int max)
{
	const char *text;
	int n = 0, byte;
	for (const char *const *name = check_class_names; *name; name++)
		if (check_class_of(in->node, *name, &byte, &text) > 0)
			add_class(out, max, &n, byte, *name);
	if (fact_known(&in->port->cma_tos.f))
		add_class(out, max, &n, (long)in->port->cma_tos.v, "rdma_cm's default_roce_tos");
	if (fact_known(&in->port->traffic_class.f))
		add_class(out, max, &n, (long)in->port->traffic_class.v,
			"the driver's traffic_class");
	return n;
}

unsigned check_roce_priorities(const struct check_input *in, const char **source, const char **why)
{
	struct used_class used[8];
	unsigned bits = 0;
	const char *how = NULL;
	*why = NULL;
	if (in->profile->given && in->profile->roce_prio >= 0) {
		*source = CHECK_PROFILE_SOURCE(in);
		return 1u << in->profile->roce_prio;
	}
	*source = "the traffic classes that this node sets, through its own map";
	int n = check_used_classes(in, used, 8);
	if (n == 0)
		*why = "neither a profile nor a traffic class set on this node says which priority "
		       "RoCE uses";
	for (int i = 0; i < n; i++) {
		/* NCCL's own small messages may have a class of their own, which need not be
		 * lossless. */
		if (n > 1 && strcmp(used[i].by, "NCCL_IB_FIFO_TC") == 0)
			continue;
		/* What R09 to R11 prove to be a mistake counts as what was meant: one finding, and
		 * not one of each check that follows from it. */
		int dscp = check_byte_is_dscp(in, used[i].byte) ? used[i].byte : used[i].byte >> 2;
		int prio = facts_dscp_priority(in->port, dscp, &how, why);
		if (prio >= 0)
			bits |= 1u << prio;
	}
	return bits;
}

bool check_pfc(const struct check_input *in, struct fb_finding *f, unsigned *bits)
{
	if (!check_need(&in->port->dcb.pfc_f, f))
		return false;
	*bits = in->port->dcb.pfc.en;
	return true;
}

const char *check_bits_text(unsigned bits, char *buf, size_t len)
{
	size_t at = 0;
	int left = __builtin_popcount(bits & 0xffu);
	if (left == 0)
		snprintf(buf, len, "none");
	for (int i = 0; i < 8 && at < len; i++) {
		if (!(bits >> i & 1u))
			continue;
		left--;
		int n = snprintf(buf + at, len - at, "%d%s", i,
			left > 1    ? ", "
			: left == 1 ? " and "
				    : "");
		at += n > 0 ? (size_t)n : 0;
	}
	return buf;
}

/* ---- when nothing may be said ---------------------------------------------------------------- */

bool check_need(const struct fact *fact, struct fb_finding *f)
{
	static const char *const words[] = {[FACT_UNREAD] = "not read",
		[FACT_ABSENT] = "not available",
		[FACT_HIDDEN] = "not visible from here",
		[FACT_BROKEN] = "unreadable"};
	if (fact->read[0])
		fb_find_read(f, "%s", fact->read);
	if (fact_known(fact))
		return true;
	fb_find(f, fact->state == FACT_BROKEN ? FB_CHECK_ERROR : FB_CHECK_SKIP, "%s%s%s",
		words[fact->state], fact->why[0] ? ": " : "", fact->why);
	return false;
}

bool check_state(const struct fact_text *state, struct fb_finding *f)
{
	static const char *const names[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strstr(state->v, names[i]))
			return true;
	fb_find(f, FB_CHECK_ERROR, "unreadable: \"%.40s\" is no state of a port", state->v);
	return false;
}

bool check_software(const struct check_input *in, struct fb_finding *f)
{
	bool soft = strcmp(in->port->family, "rxe") == 0 || strcmp(in->port->family, "siw") == 0;
	if (soft)
		fb_find(f, FB_CHECK_SKIP, "not available: %s is software, it has none of this",
			in->port->family);
	return soft;
}

bool check_window(const struct check_input *in, struct fb_finding *f)
{
	const struct port_window *w = in->window;
	if (!w || w->ns == 0) {
		fb_find(f, FB_CHECK_SKIP, "%s",
			w && w->why ? w->why : "it needs a window: --watch, --during or --drive");
		return false;
	}
	if (!w->traffic_known) {
		fb_find(f, FB_CHECK_SKIP,
			"no load is known: the port counts neither bytes nor packets");
		return false;
	}
	if (w->bytes < CHECK_FLOOR_BYTES || w->packets < CHECK_FLOOR_PACKETS) {
		fb_find(f, FB_CHECK_SKIP,
			"no load: %llu bytes and %llu packets in %.1f s; under %u bytes or %u "
			"packets a zero proves nothing",
			(unsigned long long)w->bytes, (unsigned long long)w->packets,
			(double)w->ns / 1e9, CHECK_FLOOR_BYTES, CHECK_FLOOR_PACKETS);
		return false;
	}
	return true;
}

int64_t check_grew(const struct check_input *in, const char *name)
{
	const json_t *v = json_object_get(in->window->stats, name);
	if (!json_is_integer(v))
		v = json_object_get(in->window->counters, name);
	return json_is_integer(v) ? (int64_t)json_integer_value(v) : -1;
}

int64_t check_grewf(const struct check_input *in, const char *fmt, ...)
{
	char name[96];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	return check_grew(in, name);
}

const char *check_window_text(const struct check_input *in, char *buf, size_t len)
{
	char bytes[32];
	snprintf(buf, len, "in %.1f s with %s and %llu packets: ", (double)in->window->ns / 1e9,
		fb_fmt_size(in->window->bytes, bytes, sizeof(bytes)),
		(unsigned long long)in->window->packets);
	return buf;
}

/* ---- running --------------------------------------------------------------------------------- */

static void name_subject(const struct check_input *in, struct fb_finding *f)
{
	const struct port_facts *p = in->port;
	int at = in->host ? snprintf(f->subject, sizeof(f->subject), "%s ", in->host) : 0;
	size_t left = sizeof(f->subject) - (size_t)at;
	if (p->netdev[0])
		snprintf(f->subject + at, left, "%s/%d (%s)", p->device, p->port, p->netdev);
	else
		snprintf(f->subject + at, left, "%s/%d", p->device, p->port);
}

const struct port_check *checks_of(const struct port_facts *p, const char **why)
{
	*why = NULL;
	if (p->iwarp)
		*why = "iWARP: RDMA over TCP, neither RoCE nor InfiniBand";
	else if (!fact_known(&p->link_layer.f))
		*why = "the port's link layer is not known";
	else if (p->ethernet)
		return roce_checks;
	else if (strcmp(p->link_layer.v, "InfiniBand") == 0)
		return ib_checks;
	else
		*why = "the port's link layer is neither Ethernet nor InfiniBand";
	return NULL;
}

static void run_one(const struct port_check *c, const struct port_check *table,
	const struct check_input *in, struct fb_doc *doc)
{
	const char *why;
	const struct port_check *own = checks_of(in->port, &why);
	struct fb_finding f = {.state = FB_CHECK_ERROR};
	name_subject(in, &f);
	if (own != table)
		fb_find(&f, FB_CHECK_SKIP, "%s",
			own == roce_checks ? "the port's link layer is Ethernet"
			: own              ? "the port's link layer is InfiniBand"
					   : why);
	else if (!c->live || check_window(in, &f))
		c->run(in, &f);
	fb_doc_add_check(doc, fb_finding_json(&c->def, &f));
}

void checks_run(const struct port_check *table, const struct check_input *in, struct fb_doc *doc)
{
	for (const struct port_check *c = table; c->def.id; c++)
		run_one(c, table, in, doc);
}

void checks_run_live(const struct port_check *table, const struct check_input *in,
	const char *without, struct fb_doc *doc)
{
	for (const struct port_check *c = table; c->def.id; c++)
		if (c->live && !(without && strstr(without, c->def.id)))
			run_one(c, table, in, doc);
}
