// SPDX-License-Identifier: Apache-2.0
/*
 * S07-S12: marking before pausing, the class of CNPs, the watchdog, MTU and shares.
 */
#include <stdio.h>
#include <string.h>

#include "verbs/lossless/checks_priv.h"
#include "verbs/lossless/switch_priv.h"

/* ---- S07, S08: ECN --------------------------------------------------------------------------- */

static void thresholds_remedy(const struct switch_input *in, int q, const struct switch_wred *w,
	int64_t kmin, int64_t kmax, struct fb_finding *f)
{
	if (switch_sonic_format(in))
		fb_find_remedy(f, "all queues with this profile",
			"ecnconfig -p %s -gmin %lld -gmax %lld", w->name, (long long)kmin,
			(long long)kmax);
	else
		fb_find_remedy(f, "all ports with this profile",
			"nv set qos congestion-control %s traffic-class %d min-threshold %lld; nv "
			"set qos congestion-control %s traffic-class %d max-threshold %lld; nv "
			"config apply",
			w->name[0] ? w->name : "default-global", q, (long long)kmin,
			w->name[0] ? w->name : "default-global", q, (long long)kmax);
}

static void s07(const struct switch_input *in, int c, struct fb_finding *f)
{
	const struct switch_port *p = in->port;
	int q = p->class_queue[c];
	const struct switch_wred *w = &p->wred[q];
	const struct switch_buffer *b = &p->buffer[p->class_group[c]];
	if (!switch_need(in, SWITCH_QUEUES, f) || !switch_need(in, SWITCH_WRED, f))
		return;
	fb_find_read(f, "%s|%s, %s, %s in %.140s", in->sw->vendor->sections[SWITCH_WRED], w->name,
		in->sw->vendor->sections[SWITCH_BUFFERS], in->sw->vendor->sections[SWITCH_POOLS],
		in->sw->path);
	if (w->name[0] && w->marks && (w->kmin < 0 || w->kmax < 0)) {
		fb_find(f, FB_CHECK_SKIP, "not available: %s of %s is not in the file",
			w->kmin < 0 ? "Kmin" : "Kmax", w->name);
		return;
	}
	if (!w->name[0] || !w->marks) {
		fb_find(f, FB_CHECK_SKIP, "%s %d has no thresholds at which it marks: see S08",
			in->sw->vendor->queue_word, q);
		return;
	}
	long long kmin = w->kmin, kmax = w->kmax, start = b->starts_at;
	static const char why[] = "ECN must slow senders before PFC stops them";
	if (start >= 0)
		fb_find_expected(f, why, "Kmin < Kmax < %lld B (%s)", start, b->starts_how);
	else
		fb_find_expected(f, why, "Kmin < Kmax < where PFC starts");
	if (kmin >= kmax) {
		fb_find(f, FB_CHECK_FAIL, "Kmin %lld B is not below Kmax %lld B", kmin, kmax);
		thresholds_remedy(in, q, w, kmax, kmin > kmax ? kmin : 2 * kmin, f);
	} else if (start < 0) {
		fb_find(f, FB_CHECK_SKIP,
			"not available: where PFC starts (%s); Kmin %lld B is below Kmax %lld B",
			b->starts_how[0] ? b->starts_how : "the switch reckons it while it runs",
			kmin, kmax);
	} else {
		fb_find(f,
			kmin >= start   ? FB_CHECK_FAIL
			: kmax >= start ? FB_CHECK_WARN
					: FB_CHECK_PASS,
			"Kmin %lld B, Kmax %lld B; PFC starts at %lld B", kmin, kmax, start);
		thresholds_remedy(in, q, w, start / 4, start / 2, f);
	}
}

void switch_s07(const struct switch_input *in, struct fb_finding *f)
{
	switch_each_class(in, s07, f);
}

static void s08(const struct switch_input *in, int c, struct fb_finding *f)
{
	int q = in->port->class_queue[c];
	const struct switch_wred *w = &in->port->wred[q];
	bool wanted = strcmp(in->profile->congestion, "pfc-only") != 0;
	if (!switch_need(in, SWITCH_QUEUES, f) || (w->name[0] && !switch_need(in, SWITCH_WRED, f)))
		return;
	if (w->name[0] && w->missing)
		fb_find(f, FB_CHECK_FAIL, "%s %d names %s, which %s does not have",
			in->sw->vendor->queue_word, q, w->name,
			in->sw->vendor->sections[SWITCH_WRED]);
	else if (w->marks)
		fb_find(f, wanted ? FB_CHECK_PASS : FB_CHECK_WARN, "%s %d marks by %s (%s)",
			in->sw->vendor->queue_word, q, w->name, w->ecn);
	else
		fb_find(f, wanted ? FB_CHECK_FAIL : FB_CHECK_PASS, "%s %d does not mark%s%s%s%s",
			in->sw->vendor->queue_word, q, w->name[0] ? ": " : "", w->name,
			w->ecn[0] ? ", ECN is " : "", w->ecn);
	fb_find_expected(f,
		in->profile->congestion[0] ? SWITCH_PROFILE(in) : "DCQCN slows senders by marks",
		wanted ? "ECN on" : "ECN off");
	if (switch_sonic_format(in))
		fb_find_remedy(f, NULL, "ecnconfig -q %d %s", q, wanted ? "on" : "off");
	else
		fb_find_remedy(f, NULL,
			"nv set qos congestion-control default-global traffic-class %d ecn %s; nv "
			"config apply",
			q, wanted ? "enable" : "disable");
}

void switch_s08(const struct switch_input *in, struct fb_finding *f)
{
	switch_each_class(in, s08, f);
}

/* ---- S09: CNPs ------------------------------------------------------------------------------- */

static void cnp_remedy(
	const struct switch_input *in, int dscp, int to, int q, bool map, struct fb_finding *f)
{
	const struct switch_port *p = in->port;
	if (map && switch_sonic_format(in))
		fb_find_remedy(f, "all ports with this map",
			"sonic-db-cli CONFIG_DB hset 'DSCP_TO_TC_MAP|%s' %d %d",
			p->dscp_map[0] ? p->dscp_map : "AZURE", dscp, to);
	else if (map)
		fb_find_remedy(f, "all ports with this profile",
			"nv set qos mapping default-global dscp %d switch-priority %d; nv config "
			"apply",
			dscp, to);
	else if (switch_sonic_format(in))
		fb_find_remedy(f, "queue by queue",
			"sonic-db-cli CONFIG_DB hset 'SCHEDULER|cnp' type STRICT; sonic-db-cli "
			"CONFIG_DB hset 'QUEUE|%s|%d' scheduler cnp",
			p->name, q);
	else
		fb_find_remedy(f, "all ports with this profile",
			"nv set qos egress-scheduler default-global traffic-class %d mode strict; "
			"nv config apply",
			q);
}

void switch_s09(const struct switch_input *in, struct fb_finding *f)
{
	const struct switch_port *p = in->port;
	const struct profile *w = in->profile;
	bool told = w->given && w->cnp_dscp >= 0;
	int dscp = told ? w->cnp_dscp : 48, to = w->cnp_prio >= 0 ? w->cnp_prio : 6;
	if (!switch_need(in, SWITCH_DSCP, f) || !switch_need(in, SWITCH_CLASS_QUEUE, f) ||
		!switch_need(in, SWITCH_PFC, f))
		return;
	if (!p->dscp_map[0] || p->dscp_missing) {
		fb_find(f, FB_CHECK_SKIP, "no DSCP is looked at on this port: see S01");
		return;
	}
	int c = p->dscp_class[dscp];
	int q = c >= 0 ? p->class_queue[c] : -1;
	if (!switch_has_queues(p)) {
		fb_find(f, FB_CHECK_SKIP, "no %s has a %s on this port: see S02",
			in->sw->vendor->class_word, in->sw->vendor->queue_word);
		return;
	}
	char class[32] = "a class";
	if (told && w->cnp_prio >= 0)
		snprintf(class, sizeof(class), "%.20s %d", in->sw->vendor->class_word, w->cnp_prio);
	fb_find_expected(f, told ? SWITCH_PROFILE(in) : "the adapters' default",
		"DSCP %d in %s without PFC, strict, not the bulk's", dscp, class);
	if (q < 0) {
		fb_find(f, told ? FB_CHECK_FAIL : FB_CHECK_SKIP, "DSCP %d has no %s here%s", dscp,
			in->sw->vendor->queue_word,
			told ? "" : ", and no profile says which DSCP CNPs have");
		cnp_remedy(in, dscp, to, q, true, f);
		return;
	}
	const struct switch_scheduler *s = &p->scheduler[q];
	bool lossless = (switch_lossless(p) >> c & 1) || (p->pfc > 0 && (p->pfc >> c & 1));
	bool wrong = told && w->cnp_prio >= 0 && c != w->cnp_prio;
	int bulk = p->dscp_class[0] >= 0 ? p->class_queue[p->dscp_class[0]] : -1;
	bool weak = q == bulk || (s->known && !s->strict);
	/* Without a profile 48 is only what adapters take unless told otherwise. */
	fb_find(f,
		(lossless || wrong) && told   ? FB_CHECK_FAIL
		: lossless || wrong || weak   ? FB_CHECK_WARN
		: told || !in->profile->given ? FB_CHECK_PASS
					      : FB_CHECK_INFO,
		"DSCP %d is %s %d, %s %d: %s%s", dscp, in->sw->vendor->class_word, c,
		in->sw->vendor->queue_word, q,
		lossless   ? "lossless, a pause would hold CNPs back"
		: s->known ? (s->strict ? "strict" : "not strict, waits its turn")
			   : "its scheduler is not told",
		q == bulk ? ", shared with the bulk" : "");
	cnp_remedy(in, dscp, to, q, lossless || wrong || q == bulk, f);
}

/* ---- S10: the watchdog ----------------------------------------------------------------------- */

/* Limits: SONiC, sonic-pfcwd.yang. */
#define DETECT_MIN  100
#define DETECT_MAX  5000
#define RESTORE_MAX 60000

static void watchdog_times(const struct switch_input *in, struct fb_finding *f)
{
	const struct switch_watchdog *w = &in->port->watchdog;
	char text[128];
	bool known = strcmp(w->action, "drop") == 0 || strcmp(w->action, "forward") == 0;
	snprintf(text, sizeof(text), "after %lld ms, %s, back after %lld ms",
		(long long)w->detect_ms, w->action, (long long)w->restore_ms);
	if (w->detect_ms < 0)
		fb_find(f, FB_CHECK_FAIL, "it has no detection_time, so it does not run");
	else if (w->detect_ms < DETECT_MIN || w->detect_ms > DETECT_MAX)
		fb_find(f, FB_CHECK_FAIL, "%s: detection is not from %d to %d ms", text, DETECT_MIN,
			DETECT_MAX);
	else if (in->sw->poll_ms > w->detect_ms)
		fb_find(f, FB_CHECK_FAIL, "%s: it looks every %lld ms only", text,
			(long long)in->sw->poll_ms);
	else if (!known)
		fb_find(f, FB_CHECK_WARN, "%s: it tells of a storm and does not end it", text);
	else if (w->restore_ms > RESTORE_MAX || (w->restore_ms >= 0 && w->restore_ms < DETECT_MIN))
		fb_find(f, FB_CHECK_WARN, "%s: restoration is not from %d to %d ms", text,
			DETECT_MIN, RESTORE_MAX);
	else
		fb_find(f, FB_CHECK_PASS, "%s", text);
}

/* As SONiC writes them: "3,4". */
static const char *bits_list(unsigned bits, char *buf, size_t len)
{
	size_t at = 0;
	buf[0] = '\0';
	for (int i = 0; i < SWITCH_CLASSES && at + 3 < len; i++)
		if (bits >> i & 1)
			at += (size_t)snprintf(buf + at, len - at, "%s%d", at ? "," : "", i);
	return buf;
}

void switch_s10(const struct switch_input *in, struct fb_finding *f)
{
	const struct switch_port *p = in->port;
	char pfc[64], watched[64];
	if (!switch_need(in, SWITCH_PFC, f))
		return;
	if (p->pfc <= 0) {
		fb_find(f, FB_CHECK_SKIP, "PFC is not on at this port: nothing to watch");
		return;
	}
	/* A whole configuration without the section says that no watchdog was configured. */
	if (!switch_need(in, SWITCH_WATCHDOG, f) && !in->sw->whole)
		return;
	if (!p->watchdog.on)
		fb_find(f, FB_CHECK_FAIL, "PFC without a watchdog: a storm here stops the fabric%s",
			in->sw->has[SWITCH_WATCHDOG] ? "" : " (the section is not there at all)");
	else if (p->watchdog.watched >= 0 && (p->pfc & ~p->watchdog.watched) != 0)
		fb_find(f, FB_CHECK_FAIL, "PFC is on: %s; watched: %s (pfcwd_sw_enable)",
			check_bits_text((unsigned)p->pfc, pfc, sizeof(pfc)),
			check_bits_text((unsigned)p->watchdog.watched, watched, sizeof(watched)));
	else
		watchdog_times(in, f);
	fb_find_expected(f, "SONiC sonic-pfcwd.yang; Guo et al., SIGCOMM 2016, 4.3",
		"on; detection %d to %d ms; drop or forward", DETECT_MIN, DETECT_MAX);
	if (switch_sonic_format(in) && p->watchdog.on && p->watchdog.watched >= 0 &&
		(p->pfc & ~p->watchdog.watched) != 0)
		fb_find_remedy(f, NULL,
			"sonic-db-cli CONFIG_DB hset 'PORT_QOS_MAP|%s' pfcwd_sw_enable %s", p->name,
			bits_list((unsigned)p->pfc, pfc, sizeof(pfc)));
	else if (switch_sonic_format(in))
		fb_find_remedy(f, NULL, "pfcwd start --action drop %s 200 --restoration-time 200",
			p->name);
	else
		fb_find_remedy(
			f, NULL, "nv set interface %s qos pfc-watchdog; nv config apply", p->name);
}

/* ---- S11: MTU -------------------------------------------------------------------------------- */

void switch_s11(const struct switch_input *in, struct fb_finding *f)
{
	const struct switch_port *p = in->port;
	const struct switch_facts *sw = NULL;
	const struct switch_port *peer = switch_peer(in, &sw);
	bool told = in->profile->given && in->profile->mtu >= 0;
	int need = told ? in->profile->mtu : 4200;
	if (!switch_need(in, SWITCH_PORTS, f))
		return;
	if (p->mtu < 0) {
		fb_find(f, FB_CHECK_SKIP, "not available: %s has no MTU for this port",
			in->sw->vendor->sections[SWITCH_PORTS]);
		return;
	}
	bool differs = peer && peer->mtu >= 0 && peer->mtu != p->mtu;
	fb_find(f, p->mtu < need || differs ? FB_CHECK_FAIL : FB_CHECK_PASS, "MTU %lld%s",
		(long long)p->mtu, p->mtu_default ? ", the default: the file names none" : "");
	if (differs) {
		size_t n = strlen(f->observed);
		snprintf(f->observed + n, sizeof(f->observed) - n, "; %lld at %s %s",
			(long long)peer->mtu, p->neighbour, p->neighbour_port);
	}
	fb_find_expected(f, told ? SWITCH_PROFILE(in) : "RDMA MTU 4096 with its headers",
		"at least %d, the same at both ends", need);
	int64_t to = differs && peer->mtu > p->mtu ? peer->mtu : need > 9100 ? need : 9100;
	if (switch_sonic_format(in))
		fb_find_remedy(f, "the link goes down and up", "config interface mtu %s %lld",
			p->name, (long long)to);
	else
		fb_find_remedy(f, NULL, "nv set interface %s link mtu %lld; nv config apply",
			p->name, (long long)(to > 9216 ? to : 9216));
}

/* ---- S12: shares and global pause ------------------------------------------------------------ */

static void share_remedy(const struct switch_input *in, int q, int share, struct fb_finding *f)
{
	const struct switch_scheduler *s = &in->port->scheduler[q];
	if (switch_sonic_format(in))
		fb_find_remedy(f, "all queues with this scheduler",
			"sonic-db-cli CONFIG_DB hset 'SCHEDULER|%s' type DWRR weight %d",
			s->name[0] ? s->name : "scheduler.1", share);
	else
		fb_find_remedy(f, "all ports with this profile",
			"nv set qos egress-scheduler default-global traffic-class %d mode dwrr; nv "
			"set qos egress-scheduler default-global traffic-class %d bw-percent %d; "
			"nv config apply",
			q, q, share);
}

static void s12(const struct switch_input *in, int c, struct fb_finding *f)
{
	const struct switch_port *p = in->port;
	int q = p->class_queue[c], want = in->profile->given ? in->profile->ets_share : -1;
	const struct switch_scheduler *s = &p->scheduler[q];
	if (!switch_need(in, SWITCH_SCHEDULERS, f) || !switch_need(in, SWITCH_QUEUES, f))
		return;
	fb_find_read(f, "%s in %.200s", in->sw->vendor->sections[SWITCH_SCHEDULERS], in->sw->path);
	if (want >= 0)
		fb_find_expected(f, SWITCH_PROFILE(in), "DWRR with at least %d %%", want);
	else
		fb_find_expected(f, "IEEE 802.1Qaz: a strict queue can starve all others", "DWRR");
	share_remedy(in, q, want >= 0 ? want : 50, f);
	if (!s->known)
		fb_find(f, FB_CHECK_SKIP, "not available: %s %d has no scheduler in the file",
			in->sw->vendor->queue_word, q);
	else if (s->strict)
		fb_find(f, FB_CHECK_WARN, "%s %d is strict: it can starve the others, CNPs too",
			in->sw->vendor->queue_word, q);
	else if (s->share <= 0 || (want >= 0 && s->share < want))
		fb_find(f, FB_CHECK_FAIL, "%s %d: %d %%", in->sw->vendor->queue_word, q,
			s->share < 0 ? 0 : s->share);
	else
		fb_find(f, want >= 0 ? FB_CHECK_PASS : FB_CHECK_INFO, "%s %d: DWRR with %d %%",
			in->sw->vendor->queue_word, q, s->share);
}

void switch_s12(const struct switch_input *in, struct fb_finding *f)
{
	const struct switch_port *p = in->port;
	if (p->pause != 1) {
		switch_each_class(in, s12, f);
		return;
	}
	fb_find(f, FB_CHECK_FAIL, "global pause is on%s", p->pfc > 0 ? ", beside PFC" : "");
	fb_find_read(f, "qos|link-pause in %.200s", in->sw->path);
	fb_find_expected(f, "IEEE 802.1Q-2018, 36.1.1", "PFC alone");
	fb_find_remedy(f, NULL,
		"nv unset interface %s qos link-pause; nv unset qos link-pause; nv config apply",
		p->name);
}
