// SPDX-License-Identifier: Apache-2.0
/*
 * What a drive found: R27 and R28 from probes and packets, each host's part, and the live checks of
 * the hosts' own ports.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/strbuf.h"
#include "bench/core/units.h"
#include "verbs/lossless/checks_priv.h"
#include "verbs/lossless/drive.h"

#define NAMED 3 /* hosts that a finding names; the rest is counted */

/* ---- R27 ------------------------------------------------------------------------------------- */

/* Which one did not come back, where a smaller one did. */
static void say_lost(const struct drive_peer *p, struct fb_strbuf *b)
{
	const struct drive_path *h = &p->path;
	int lost = h->back[DRIVE_ROCE] ? DRIVE_FULL : DRIVE_ROCE;
	fb_strbuf_printf(b, "%s: %d B%s %s, %d B pass", p->name, h->bytes[lost],
		lost == DRIVE_ROCE ? " (a full packet of RoCE)" : "",
		h->arrived[lost] > 0   ? "arrive there and do not come back"
		: h->arrived[lost] < 0 ? "do not come back"
				       : "do not arrive there",
		h->bytes[lost - 1]);
	if (lost == DRIVE_FULL)
		fb_strbuf_printf(b, " (a full packet of RoCE)");
}

struct tally {
	int fine, lost, carried, unknown;
	const struct drive_peer *first_unknown;
};

static void sort_paths(const struct drive *d, struct tally *t, struct fb_strbuf *lost)
{
	for (int i = 0; i < d->peers; i++) {
		const struct drive_peer *p = &d->peer[i];
		if (!p->joined)
			continue;
		if (p->path.tried && p->path.back[DRIVE_FULL]) {
			t->fine++;
		} else if (p->path.tried && p->path.back[DRIVE_SMALL]) {
			if (t->lost++ < NAMED) {
				fb_strbuf_printf(lost, "%s", t->lost > 1 ? "; " : "");
				say_lost(p, lost);
			}
		} else if (p->sent > 0 && !p->lost) {
			t->carried++;
		} else {
			t->unknown++;
			t->first_unknown = t->first_unknown ? t->first_unknown : p;
		}
	}
}

static int full_bytes(const struct drive *d)
{
	for (int i = 0; i < d->peers; i++)
		if (d->peer[i].path.tried)
			return d->peer[i].path.bytes[DRIVE_FULL];
	return 0;
}

void drive_judge_path(const struct drive *d, struct fb_finding *f)
{
	struct tally t = {0};
	struct fb_strbuf lost = {0}, text = {0};
	sort_paths(d, &t, &lost);
	fb_find_read(f, "UDP that may not be divided (IP_PMTUDISC_PROBE), there and back; RDMA "
			"writes at the path's MTU");
	if (t.fine)
		fb_strbuf_printf(&text, "packets of %d B go there and back with %d of %d hosts",
			full_bytes(d), t.fine, d->peers);
	if (t.carried)
		fb_strbuf_printf(&text,
			"%sof %d no UDP comes back, and RDMA at MTU %u has carried the load",
			t.fine ? "; " : "", t.carried, d->path_mtu);
	if (t.unknown && t.fine + t.carried)
		fb_strbuf_printf(&text, "; %d not probed", t.unknown);
	if (t.lost)
		fb_find(f, FB_CHECK_FAIL, "%s%s", lost.s ? lost.s : "large packets are lost",
			t.lost > NAMED ? "; and more" : "");
	else if (t.fine + t.carried)
		fb_find(f, FB_CHECK_PASS, "%s", text.s ? text.s : "they pass");
	else
		fb_find(f, FB_CHECK_SKIP, "no host could be probed%s%s",
			t.first_unknown ? ": " : "",
			!t.first_unknown               ? ""
			: !t.first_unknown->path.tried ? t.first_unknown->path.why
						       : "not even a small datagram comes back (a "
							 "firewall?), and nothing was carried");
	fb_find_expected(f, "the interface's MTU, RFC 1191", "%d B, undivided", full_bytes(d));
	fb_strbuf_free(&lost);
	fb_strbuf_free(&text);
}

/* ---- R28 ------------------------------------------------------------------------------------- */

static uint64_t of_dscp(const struct verbs_sniffed *s, int dscp)
{
	uint64_t n = 0;
	for (int ecn = 0; ecn < VERBS_SNIFF_ECN; ecn++)
		n += s->n[dscp & 63][ecn];
	return n;
}

/* The DSCP with most packets that was not asked for; -1: none. */
static int stranger(const struct drive *d)
{
	int most = -1;
	for (int i = 0; i < VERBS_SNIFF_DSCP; i++)
		if (i != d->dscp && i != d->victim_dscp && of_dscp(&d->wire, i) > 0 &&
			(most < 0 || of_dscp(&d->wire, i) > of_dscp(&d->wire, most)))
			most = i;
	return most;
}

bool drive_judge_wire(const struct check_input *in, struct fb_finding *f)
{
	const struct drive *d = in->drive;
	char when[96];
	uint64_t all = 0, right = of_dscp(&d->wire, d->dscp), others;
	if (!d->sniffed)
		return false;
	for (int i = 0; i < VERBS_SNIFF_DSCP; i++)
		all += of_dscp(&d->wire, i);
	others = d->victim_dscp == d->dscp ? 0 : of_dscp(&d->wire, d->victim_dscp);
	if (all == 0) {
		fb_find(f, FB_CHECK_SKIP, "not available: no packet of RoCE v2 was seen at %s",
			d->where);
		return true;
	}
	double share = (double)(right + others) / (double)all;
	/* What the kernel had no room to show may have been right. */
	bool enough = (double)(right + d->wire_drops) >= 0.99 * (double)d->packets;
	int other = stranger(d);
	char strange[64] = "";
	if (other >= 0)
		snprintf(strange, sizeof(strange), "; %llu have DSCP %d",
			(unsigned long long)of_dscp(&d->wire, other), other);
	fb_find(f, share >= 0.99 && enough ? FB_CHECK_PASS : FB_CHECK_FAIL,
		"%s%llu of %llu packets of RoCE v2 that arrived have DSCP %d (%.1f %%)%s; %llu and "
		"more were sent, the sniffer missed %u",
		check_window_text(in, when, sizeof(when)), (unsigned long long)right,
		(unsigned long long)all, d->dscp, 100 * (double)right / (double)all, strange,
		(unsigned long long)d->packets, d->wire_drops);
	fb_find_expected(f, d->class_by, "DSCP %d (traffic class %d)", d->dscp, d->traffic_class);
	fb_find_read(f, "an AF_PACKET socket at the interface of %s", d->where);
	fb_find_remedy(f, NULL,
		"see R08 to R11 for who sets it; else a switch or a firewall on the way rewrites "
		"it");
	return true;
}

/* ---- across hosts ---------------------------------------------------------------------------- */

int64_t drive_grew(const struct drive *d, const char *const *names, size_t n)
{
	int64_t sum = -1;
	for (int i = 0; i < d->peers; i++) {
		const struct check_input in = {.window = &d->peer[i].window};
		for (size_t k = 0; k < n && d->peer[i].window.ns; k++) {
			int64_t v = check_grew(&in, names[k]);
			if (v >= 0)
				sum = (sum < 0 ? 0 : sum) + v;
		}
	}
	return sum;
}

static void tell_host(const struct drive *d, const struct drive_peer *p, struct fb_doc *doc)
{
	struct fb_finding f = {.state = FB_CHECK_ERROR};
	char bytes[32], rate[32];
	snprintf(f.subject, sizeof(f.subject), "%.150s", p->name);
	fb_find_read(&f, "its session with verbs serve");
	if (p->lost)
		fb_find(&f, FB_CHECK_ERROR, "%s%s%s", p->why.msg, p->why.hint[0] ? "; " : "",
			p->why.hint);
	else if (p->victim && d->reads == 0)
		fb_find(&f, FB_CHECK_SKIP, "%s",
			d->packets ? "no read from it was answered: no load reached it"
				   : "there was no load");
	else if (p->victim)
		fb_find(&f, FB_CHECK_PASS, "it answered %llu reads beside the load",
			(unsigned long long)d->reads);
	else
		fb_find(&f, p->sent ? FB_CHECK_PASS : FB_CHECK_ERROR,
			"it sent %s in %llu messages, %s",
			fb_fmt_size(p->sent * d->size, bytes, sizeof(bytes)),
			(unsigned long long)p->sent, fb_fmt_gbps(p->rate, rate, sizeof(rate)));
	fb_doc_add_check(doc, fb_finding_json(&drive_checks[0], &f));
}

/* The live checks of a host's own port; what the receiver's tell of all hosts is not said again. */
static void check_host(
	const struct drive_peer *p, const struct profile *profile, struct fb_doc *doc)
{
	const char *why;
	if (!p->port || p->lost || !checks_of(p->port, &why))
		return;
	const struct check_input in = {.node = p->facts,
		.port = p->port,
		.profile = profile,
		.window = &p->window,
		.host = p->facts->host};
	checks_run_live(checks_of(p->port, &why), &in, "R28 R29 R33", doc);
}

void drive_tell(const struct drive *d, const struct profile *profile, struct fb_doc *doc)
{
	for (int i = 0; i < d->peers; i++) {
		tell_host(d, &d->peer[i], doc);
		check_host(&d->peer[i], profile, doc);
	}
}

/* ---- into the document ----------------------------------------------------------------------- */

static json_t *path_json(const struct drive_path *p)
{
	json_t *all = json_array();
	for (int i = 0; p->tried && i < DRIVE_PROBES; i++) {
		json_t *one = json_object();
		fb_json_set_int(one, "bytes", p->bytes[i]);
		fb_json_set_bool(one, "back", p->back[i]);
		if (p->arrived[i] >= 0)
			fb_json_set_int(one, "arrived", p->arrived[i]);
		json_array_append_new(all, one);
	}
	return all;
}

static json_t *host_json(const struct drive *d, const struct drive_peer *p)
{
	json_t *j = json_object();
	fb_json_set_str(j, "host", p->name);
	fb_json_set_str(j, "part", p->victim ? "victim" : "sender");
	fb_json_set_str(j, "state", p->lost ? "error" : "measured");
	if (!p->victim)
		fb_json_set_int(j, "bytes", (int64_t)(p->sent * d->size));
	json_object_set_new(j, "path", path_json(&p->path));
	return j;
}

static json_t *wire_json(const struct drive *d)
{
	json_t *j = json_object(), *by = json_object();
	for (int i = 0; i < VERBS_SNIFF_DSCP; i++) {
		char key[8];
		snprintf(key, sizeof(key), "%d", i);
		if (of_dscp(&d->wire, i) > 0)
			fb_json_set_int(by, key, (int64_t)of_dscp(&d->wire, i));
	}
	json_object_set_new(j, "packets_by_dscp", by);
	fb_json_set_int(j, "missed", d->wire_drops);
	return j;
}

void drive_describe(const struct drive *d, json_t *fabric)
{
	json_t *j = json_object(), *hosts = json_array();
	fb_json_set_str(j, "receiver", d->where);
	fb_json_set_int(j, "traffic_class", d->traffic_class);
	fb_json_set_str(j, "traffic_class_by", d->class_by);
	fb_json_set_int(j, "size", (int64_t)d->size);
	fb_json_set_int(j, "duration_ns", (int64_t)d->duration_ns);
	fb_json_set_int(j, "bytes", (int64_t)d->bytes);
	fb_json_set_int(j, "packets", (int64_t)d->packets);
	fb_json_set_int(j, "victim_reads", (int64_t)d->reads);
	for (int i = 0; i < d->peers; i++)
		json_array_append_new(hosts, host_json(d, &d->peer[i]));
	json_object_set_new(j, "hosts", hosts);
	if (d->sniffed)
		json_object_set_new(j, "wire", wire_json(d));
	json_object_set_new(fabric, "drive", j);
}
