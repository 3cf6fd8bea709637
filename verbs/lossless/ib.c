// SPDX-License-Identifier: Apache-2.0
/*
 * I01-I13: InfiniBand ports. Counters of an InfiniBand port saturate instead of wrapping, so one at
 * its largest value proves nothing but that it has to be reset.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "verbs/lossless/checks_priv.h"

void ib_i01(const struct check_input *in, struct fb_finding *f)
{
	const struct port_facts *p = in->port;
	if (!check_need(&p->state.f, f))
		return;
	if (!check_state(&p->state, f))
		return;
	bool active = strstr(p->state.v, "ACTIVE") && !strstr(p->state.v, "DEFER");
	bool init = strstr(p->state.v, "INIT") != NULL, armed = strstr(p->state.v, "ARMED") != NULL;
	bool up = !fact_known(&p->phys_state.f) || strstr(p->phys_state.v, "LinkUp");
	fb_find(f,
		active && up ? FB_CHECK_PASS
		: armed      ? FB_CHECK_WARN
			     : FB_CHECK_FAIL,
		"state %s, physical state %s%s", p->state.v,
		fact_known(&p->phys_state.f) ? p->phys_state.v : "not told",
		init ? ": the link is up, and no subnet manager has configured it" : "");
	fb_find_expected(f, "IBTA: traffic needs an active port", "ACTIVE and LinkUp");
	fb_find_remedy(f, NULL, "%s",
		init ? "sminfo; start opensm, or the switch's subnet manager"
		     : "ibstat; then look at cable and switch port");
}

void ib_i02(const struct check_input *in, struct fb_finding *f)
{
	const struct port_facts *p = in->port;
	if (!check_need(&p->sm_lid.f, f) || !check_need(&p->lid.f, f))
		return;
	bool good = p->sm_lid.v > 0 && p->lid.v > 0 && p->lid.v < 0xc000;
	fb_find(f, good ? FB_CHECK_PASS : FB_CHECK_FAIL, "LID %lld, subnet manager's LID %lld",
		(long long)p->lid.v, (long long)p->sm_lid.v);
	fb_find_expected(f, "IBTA: unicast LIDs are 1 to 49151", "both assigned");
	fb_find_remedy(f, NULL, "sminfo; start opensm, or the switch's subnet manager");
}

void ib_i03(const struct check_input *in, struct fb_finding *f)
{
	const struct port_facts *p = in->port;
	if (!check_need(&p->rate.f, f))
		return;
	char *end;
	double gbps = strtod(p->rate.v, &end);
	if (end == p->rate.v) {
		fb_find(f, FB_CHECK_ERROR, "unreadable: \"%.40s\" is no rate", p->rate.v);
		return;
	}
	/* Linux before XDR prints a speed it does not know as that of SDR. */
	if (strstr(p->rate.v, "SDR") || gbps <= 0) {
		fb_find(f, FB_CHECK_WARN,
			"%s: either the slowest speed, or one that this kernel does not know",
			p->rate.v);
		fb_find_remedy(
			f, NULL, "iblinkinfo -D 0, or ibv_devinfo -v, tell the speed's code");
		return;
	}
	double want = in->profile->rate_mbps > 0         ? (double)in->profile->rate_mbps / 1000
		      : fact_known(&p->max_speed_mbps.f) ? (double)p->max_speed_mbps.v / 1000
							 : 0;
	double fleet = 0;
	for (int i = 0; i < in->n_others; i++)
		for (int k = 0; k < in->others[i]->ports; k++) {
			const struct port_facts *o = &in->others[i]->port[k];
			double v = fact_known(&o->rate.f) ? strtod(o->rate.v, NULL) : 0;
			if (strcmp(o->device, p->device) == 0 && o->port == p->port && v > fleet)
				fleet = v;
		}
	const char *source = in->profile->rate_mbps > 0 ? CHECK_PROFILE_SOURCE(in)
			     : want > 0                 ? "the port's own best speed"
							: "the fastest of the other nodes";
	want = want > 0 ? want : fleet;
	fb_find(f,
		want <= 0      ? FB_CHECK_INFO
		: gbps >= want ? FB_CHECK_PASS
			       : FB_CHECK_FAIL,
		"%s", p->rate.v);
	if (want > 0)
		fb_find_expected(f, source, "%.0f Gb/s", want);
	fb_find_remedy(f, "the link goes down", "reseat the cable; ibdiagnet --ls 100 --lw 4x");
}

void ib_i04(const struct check_input *in, struct fb_finding *f)
{
	const struct port_facts *p = in->port;
	if (!check_need(&p->width.f, f))
		return;
	/* HDR100 and NDR200 are two lanes by design. */
	bool two = p->width.v == 2 && fact_known(&p->rate.f) &&
		   (strstr(p->rate.v, "HDR") || strstr(p->rate.v, "NDR"));
	fb_find(f,
		p->width.v >= 4 ? FB_CHECK_PASS
		: two           ? FB_CHECK_INFO
				: FB_CHECK_FAIL,
		"%lldX%s", (long long)p->width.v,
		two ? ": right for HDR100 and NDR200, half of a link otherwise" : "");
	fb_find_expected(f, "a port has four lanes", "4X");
	fb_find_remedy(f, "the link goes down", "reseat the cable");
}

/* ---- counters -------------------------------------------------------------------------------- */

static int64_t value(const struct check_input *in, const char *name)
{
	const json_t *v = json_object_get(in->port->counters, name);
	return json_is_integer(v) ? (int64_t)json_integer_value(v) : -1;
}

/* Linux sysfs.c, IBA 16.1.3.5: bits of each counter. */
static const struct {
	const char *name;
	int64_t full;
} sizes[] = {{"symbol_error", 0xffff}, {"link_error_recovery", 0xff}, {"link_downed", 0xff},
	{"port_rcv_errors", 0xffff}, {"port_rcv_remote_physical_errors", 0xffff},
	{"port_rcv_switch_relay_errors", 0xffff}, {"port_xmit_discards", 0xffff},
	{"port_xmit_constraint_errors", 0xff}, {"port_rcv_constraint_errors", 0xff},
	{"local_link_integrity_errors", 0xf}, {"excessive_buffer_overrun_errors", 0xf},
	{"VL15_dropped", 0xffff}};

static bool full(const struct check_input *in, const char *name)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (strcmp(sizes[i].name, name) == 0)
			return value(in, name) == sizes[i].full;
	return false;
}

/* One rule for counters of rare events: growth in the window fails, a saturated one warns, so does
 * more than the threshold since it was reset. */
static void rare(const struct check_input *in, struct fb_finding *f, const char *const *names,
	const int64_t *limits, size_t n)
{
	char text[200] = "";
	size_t at = 0, known = 0;
	bool grew = false, saturated = false, many = false;
	bool window = in->window && in->window->ns > 0;
	if (!check_need(&in->port->counters_f, f))
		return;
	for (size_t i = 0; i < n; i++) {
		int64_t v = value(in, names[i]), d = window ? check_grew(in, names[i]) : 0;
		if (v < 0)
			continue;
		known++;
		grew = grew || d > 0;
		saturated = saturated || full(in, names[i]);
		many = many || v > limits[i];
		int k = snprintf(text + at, sizeof(text) - at, "%s%s %lld", at ? ", " : "",
			names[i], (long long)v);
		at += k > 0 && at + (size_t)k < sizeof(text) ? (size_t)k : 0;
		if (d > 0) {
			k = snprintf(text + at, sizeof(text) - at, " (+%lld)", (long long)d);
			at += k > 0 && at + (size_t)k < sizeof(text) ? (size_t)k : 0;
		}
	}
	if (known == 0) {
		fb_find(f, FB_CHECK_SKIP, "not available: the driver has none of these counters");
		return;
	}
	fb_find(f,
		grew                ? FB_CHECK_FAIL
		: saturated || many ? FB_CHECK_WARN
				    : FB_CHECK_PASS,
		"%s%s", text,
		saturated ? "; saturated: it counts no further until it is reset" : "");
	fb_find_expected(f, "infiniband-diags' template of error thresholds", "%s",
		window ? "no growth" : "few since the last reset");
	fb_find_remedy(f, saturated ? "loses the old counts" : "the link goes down", "%s",
		saturated ? "perfquery -R" : "clean or change the cable");
}

void ib_i05(const struct check_input *in, struct fb_finding *f)
{
	static const char *const names[] = {"link_downed", "link_error_recovery"};
	static const int64_t limits[] = {10, 10};
	rare(in, f, names, limits, 2);
}

void ib_i06(const struct check_input *in, struct fb_finding *f)
{
	static const char *const names[] = {
		"symbol_error", "port_rcv_errors", "local_link_integrity_errors"};
	static const int64_t limits[] = {10, 10, 10};
	rare(in, f, names, limits, 3);
}

void ib_i07(const struct check_input *in, struct fb_finding *f)
{
	int64_t ticks = check_grew(in, "port_xmit_wait");
	fb_find_read(f, "counters/port_xmit_wait of %s/%d", in->port->device, in->port->port);
	if (ticks < 0) {
		fb_find(f, FB_CHECK_SKIP, "not available: the driver does not count waits");
		return;
	}
	/* A tick is the time of four bytes on one lane: at most the link's rate / 4 / lanes. */
	double gbps = fact_known(&in->port->rate.f) ? strtod(in->port->rate.v, NULL) : 0;
	double lanes = fact_known(&in->port->width.f) && in->port->width.v > 0
			       ? (double)in->port->width.v
			       : 4;
	if (gbps <= 0) {
		fb_find(f, FB_CHECK_SKIP, "not available: the port's rate is not known");
		return;
	}
	double tick_ns = 32 / (gbps / lanes);
	double share = (double)ticks * tick_ns / (double)in->window->ns;
	fb_find(f,
		share <= 0.01  ? FB_CHECK_PASS
		: share <= 0.1 ? FB_CHECK_WARN
			       : FB_CHECK_FAIL,
		"%.2f %% of the time packets waited for credits (%lld ticks)", 100 * share,
		(long long)ticks);
	fb_find_expected(f, "waiting is congestion or a slow receiver: our own limits",
		"at most 1 %%, fail over 10 %%");
}

void ib_i08(const struct check_input *in, struct fb_finding *f)
{
	int64_t lost = check_grew(in, "port_xmit_discards"), vl15 = check_grew(in, "VL15_dropped");
	fb_find_read(f, "counters of %s/%d", in->port->device, in->port->port);
	if (lost < 0) {
		fb_find(f, FB_CHECK_SKIP, "not available: the driver does not count discards");
		return;
	}
	fb_find(f,
		lost > 0   ? FB_CHECK_FAIL
		: vl15 > 0 ? FB_CHECK_WARN
			   : FB_CHECK_PASS,
		"%lld discarded, %lld management packets dropped", (long long)lost,
		(long long)(vl15 < 0 ? 0 : vl15));
	fb_find_expected(f,
		"credits keep InfiniBand lossless; a packet that waits too long is dropped", "0");
}

/* ---- subnet ---------------------------------------------------------------------------------- */

void ib_i09(const struct check_input *in, struct fb_finding *f)
{
	const struct port_facts *p = in->port;
	if (!check_need(&p->pkeys_f, f))
		return;
	int want =
		in->profile->given && in->profile->pkey >= 0 ? in->profile->pkey & 0x7fff : 0x7fff;
	int found = -1;
	for (int i = 0; i < p->pkeys; i++)
		if ((p->pkey[i] & 0x7fff) == want && (found < 0 || (p->pkey[i] & 0x8000)))
			found = p->pkey[i];
	fb_find_expected(f,
		in->profile->given && in->profile->pkey >= 0 ? CHECK_PROFILE_SOURCE(in)
							     : "IBTA: the default partition",
		"0x%04x, full member", want | 0x8000);
	fb_find_remedy(
		f, NULL, "the subnet manager's partitions.conf: ALL=full or this port's GUID");
	if (found < 0)
		fb_find(f, FB_CHECK_FAIL, "the port is in %d partitions, and not in this one",
			p->pkeys);
	else
		fb_find(f, found & 0x8000 ? FB_CHECK_PASS : FB_CHECK_WARN, "0x%04x, %s", found,
			found & 0x8000 ? "full member"
				       : "limited member: two of those cannot talk");
}

void ib_i10(const struct check_input *in, struct fb_finding *f)
{
	const struct port_facts *p = in->port;
	if (!check_need(&p->active_mtu.f, f))
		return;
	const char *sl = fb_json_str(in->node->env, "NCCL_IB_SL", NULL);
	int want = in->profile->given ? in->profile->sl : -1;
	char *end = NULL;
	/* NCCL takes 0 where nothing is said, and where it cannot read what is. */
	long asked = sl ? strtol(sl, &end, 0) : 0;
	bool number = !sl || !*sl || (end != sl && *end == '\0');
	bool wrong = !number || (want >= 0 && asked != want);
	fb_find(f, p->active_mtu.v == 4096 && !wrong ? FB_CHECK_PASS : FB_CHECK_WARN,
		"MTU %lld, NCCL_IB_SL %s", (long long)p->active_mtu.v, sl ? sl : "not set");
	if (want >= 0)
		fb_find_expected(f, CHECK_PROFILE_SOURCE(in), "4096 and service level %d", want);
	else
		fb_find_expected(f, "the largest MTU has the least headers", "4096");
	fb_find_remedy(f, "new jobs only", "export NCCL_IB_SL=%d; the subnet manager sets the MTU",
		want >= 0 ? want : 0);
}

void ib_i11(const struct check_input *in, struct fb_finding *f)
{
	static const char *const names[] = {"excessive_buffer_overrun_errors",
		"port_rcv_constraint_errors", "port_xmit_constraint_errors"};
	static const int64_t limits[] = {0, 0, 0};
	rare(in, f, names, limits, 3);
}

void ib_i12(const struct check_input *in, struct fb_finding *f)
{
	int64_t gaps = check_grew(in, "out_of_sequence"), naks = check_grew(in, "packet_seq_err");
	int64_t timeouts = check_grew(in, "local_ack_timeout_err");
	fb_find_read(f, "hw_counters of %s/%d", in->port->device, in->port->port);
	if (timeouts < 0) {
		fb_find(f, FB_CHECK_SKIP, "not available: %s does not count timeouts",
			in->port->family);
		return;
	}
	bool routed = in->profile->adaptive_routing != 0;
	fb_find(f,
		timeouts > 0                        ? FB_CHECK_FAIL
		: (gaps > 0 || naks > 0) && !routed ? FB_CHECK_WARN
						    : FB_CHECK_PASS,
		"gaps %lld, NAKs %lld, timeouts %lld%s", (long long)gaps, (long long)naks,
		(long long)timeouts,
		gaps > 0 ? " (adaptive routing reorders: gaps alone are no loss)" : "");
	fb_find_expected(f, "credits keep InfiniBand lossless", "no timeouts");
}

void ib_i13(const struct check_input *in, struct fb_finding *f)
{
	const struct port_facts *p = in->port;
	if (!check_need(&p->fw.f, f))
		return;
	const char *board = fact_known(&p->board.f) ? p->board.v : "";
	fb_find(f, in->n_others ? FB_CHECK_PASS : FB_CHECK_INFO, "firmware %s, board %s", p->fw.v,
		*board ? board : "not told");
	for (int i = 0; i < in->n_others; i++)
		for (int k = 0; k < in->others[i]->ports; k++) {
			const struct port_facts *o = &in->others[i]->port[k];
			/* Another board has firmware of its own. */
			if (strcmp(o->device, p->device) != 0 || !fact_known(&o->fw.f) ||
				strcmp(o->fw.v, p->fw.v) == 0 ||
				(fact_known(&o->board.f) && strcmp(o->board.v, board) != 0))
				continue;
			fb_find(f, FB_CHECK_WARN, "firmware %s; %s has %s", p->fw.v,
				in->others[i]->host, o->fw.v);
			fb_find_expected(f, "the other nodes", "equal on equal boards");
		}
	fb_find_remedy(f, "the NIC restarts", "mlxfwmanager --online -u");
}
