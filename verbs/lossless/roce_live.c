// SPDX-License-Identifier: Apache-2.0
/*
 * R25-R42: MTU, limits, and what can only be seen while packets move. The live ones are called with
 * a window that has load; a counter that the driver does not have is a skip, never 0.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "verbs/lossless/checks_priv.h"
#include "verbs/lossless/drive.h"

/* ---- MTU ------------------------------------------------------------------------------------- */

/* The same port of another node with another value; NULL: none. */
static const struct node_facts *differs(const struct check_input *in,
	const struct fact_int *(*of)(const struct port_facts *p), int64_t *theirs)
{
	int64_t mine = of(in->port)->v;
	for (int i = 0; i < in->n_others; i++)
		for (int k = 0; k < in->others[i]->ports; k++) {
			const struct port_facts *o = &in->others[i]->port[k];
			if (strcmp(o->device, in->port->device) != 0 || o->port != in->port->port ||
				!fact_known(&of(o)->f) || of(o)->v == mine)
				continue;
			*theirs = of(o)->v;
			return in->others[i];
		}
	return NULL;
}

static const struct fact_int *netdev_mtu(const struct port_facts *p)
{
	return &p->netdev_mtu;
}
static const struct fact_int *active_mtu(const struct port_facts *p)
{
	return &p->active_mtu;
}

void roce_r25(const struct check_input *in, struct fb_finding *f)
{
	int64_t other = 0;
	if (!check_need(&in->port->netdev_mtu.f, f))
		return;
	long long mtu = (long long)in->port->netdev_mtu.v;
	const struct node_facts *odd = differs(in, netdev_mtu, &other);
	int want = in->profile->given ? in->profile->mtu : -1;
	fb_find_remedy(f, "the link may flap; the switch must carry it too",
		"ip link set %s mtu 9000", in->port->netdev);
	if (odd) {
		fb_find(f, FB_CHECK_FAIL, "%lld; %s has %lld", mtu, odd->host, (long long)other);
		fb_find_expected(f, "the other nodes", "equal everywhere");
		return;
	}
	fb_find(f,
		want > 0      ? mtu == want ? FB_CHECK_PASS : FB_CHECK_FAIL
		: mtu >= 4192 ? FB_CHECK_PASS
			      : FB_CHECK_WARN,
		"%lld", mtu);
	if (want > 0)
		fb_find_expected(f, CHECK_PROFILE_SOURCE(in), "%d", want);
	else
		fb_find_expected(
			f, "Linux ib_addr.h: 96 bytes of headers around 4096", "at least 4192");
}

void roce_r26(const struct check_input *in, struct fb_finding *f)
{
	int64_t other = 0;
	if (!check_need(&in->port->active_mtu.f, f))
		return;
	long long mtu = (long long)in->port->active_mtu.v;
	const struct node_facts *odd = differs(in, active_mtu, &other);
	if (odd)
		fb_find(f, FB_CHECK_FAIL, "%lld; %s has %lld", mtu, odd->host, (long long)other);
	else
		fb_find(f, mtu == 4096 ? FB_CHECK_PASS : FB_CHECK_WARN, "%lld", mtu);
	fb_find_expected(f, odd ? "the other nodes" : "the largest RDMA MTU has the least headers",
		odd ? "equal everywhere" : "4096");
	fb_find_remedy(f, "the link may flap; the switch must carry it too",
		"ip link set %s mtu 9000 gives an RDMA MTU of 4096",
		in->port->netdev[0] ? in->port->netdev : "IF");
}

void roce_r27(const struct check_input *in, struct fb_finding *f)
{
	if (in->drive) {
		drive_judge_path(in->drive, f);
		return;
	}
	fb_find(f, FB_CHECK_SKIP,
		"it needs a peer to probe the path: --drive HOST; or by hand ping -M do -s %lld PEER",
		fact_known(&in->port->netdev_mtu.f) ? (long long)in->port->netdev_mtu.v - 28
						    : 8972);
}

/* ---- where packets go ------------------------------------------------------------------------ */

/* The priority where most arrived. */
static int busiest(const struct port_window *w)
{
	int most = 0;
	for (int i = 1; i < 8; i++)
		if (w->peer_prio_packets[i] > w->peer_prio_packets[most])
			most = i;
	return most;
}

static void judge_priority(const struct check_input *in, int prio, struct fb_finding *f)
{
	const struct port_window *w = in->window;
	char when[96];
	int64_t right = w->peer_prio_packets[prio];
	int most = busiest(w);
	double share = (double)(right < w->sent_packets ? right : w->sent_packets) /
		       (double)w->sent_packets;
	fb_find_read(f, "ethtool -S: rx_prioN_packets, against what the senders' NICs sent");
	if (share >= 0.99)
		fb_find(f, FB_CHECK_PASS,
			"%s%lld packets of DSCP %d were sent, %lld arrived in priority %d",
			check_window_text(in, when, sizeof(when)), (long long)w->sent_packets,
			w->sent_dscp, (long long)right, prio);
	else
		fb_find(f, FB_CHECK_FAIL,
			"%s%lld packets of DSCP %d were sent, %lld arrived in priority %d (%.1f %%) "
			"and %lld in priority %d",
			check_window_text(in, when, sizeof(when)), (long long)w->sent_packets,
			w->sent_dscp, (long long)right, prio, 100 * share,
			(long long)w->peer_prio_packets[most], most);
	fb_find_expected(f, "the map of this port", "99 %% in priority %d", prio);
}

void roce_r28(const struct check_input *in, struct fb_finding *f)
{
	const struct port_window *w = in->window;
	const char *how = NULL, *why = NULL;
	if (in->drive && drive_judge_wire(in, f))
		return;
	if (w->sent_packets <= 0) {
		fb_find(f, FB_CHECK_SKIP,
			"not available: what arrived by priority is known with --drive only");
		return;
	}
	int prio = facts_dscp_priority(in->port, w->sent_dscp, &how, &why);
	if (prio >= 0 && w->peer_prio_packets[prio] >= 0)
		judge_priority(in, prio, f);
	else if (prio < 0)
		fb_find(f, FB_CHECK_SKIP, "not available: %s", why);
	else
		fb_find(f, FB_CHECK_SKIP, "not available: %s counts no packets by priority%s%s",
			in->port->family, in->drive ? ", and " : "",
			in->drive ? in->drive->sniff_why : "");
}

/* Sum over the lossless priorities; -1: none of the counters is there. */
static int64_t by_priority(
	const struct check_input *in, unsigned bits, const char *before, const char *after)
{
	int64_t sum = -1;
	for (int i = 0; i < 8; i++) {
		int64_t v = bits >> i & 1 ? check_grewf(in, "%s%d%s", before, i, after) : -1;
		if (v >= 0)
			sum = (sum < 0 ? 0 : sum) + v;
	}
	return sum;
}

/* PFC frames of a priority by the names of mlx5, bnxt_en and ice. */
static int64_t pauses_at(const struct check_input *in, int prio, bool tx)
{
	const char *way = tx ? "tx" : "rx";
	int64_t v = check_grewf(in, "%s_prio%d_pause", way, prio);
	if (v < 0)
		v = check_grewf(in, "%s_pfc_ena_frames_pri%d", way, prio);
	return v < 0 ? check_grewf(in, "%s_priority_%d_xoff.nic", way, prio) : v;
}

/* Microseconds in pause by the names of mlx5 and bnxt_en; ice has none. */
static int64_t paused_us(const struct check_input *in, int prio, bool tx)
{
	const char *way = tx ? "tx" : "rx";
	int64_t v = check_grewf(in, "%s_prio%d_pause_duration", way, prio);
	return v < 0 ? check_grewf(in, "pfc_pri%d_%s_duration_us", prio, way) : v;
}

static int64_t pauses(const struct check_input *in, unsigned bits, bool tx)
{
	int64_t sum = -1;
	for (int i = 0; i < 8; i++) {
		int64_t v = bits >> i & 1 ? pauses_at(in, i, tx) : -1;
		if (v >= 0)
			sum = (sum < 0 ? 0 : sum) + v;
	}
	return sum;
}

static int64_t plus(int64_t a, int64_t b)
{
	return a < 0 ? b : b < 0 ? a : a + b;
}

static bool lossless(const struct check_input *in, struct fb_finding *f, unsigned *bits)
{
	if (!check_pfc(in, f, bits))
		return false;
	if (*bits)
		return true;
	fb_find(f, FB_CHECK_SKIP, "no priority has PFC: nothing is meant to be lossless (R15)");
	return false;
}

void roce_r29(const struct check_input *in, struct fb_finding *f)
{
	unsigned bits = 0;
	char when[96];
	if (!lossless(in, f, &bits))
		return;
	int64_t paused = plus(pauses(in, bits, false), pauses(in, bits, true));
	int64_t lost = by_priority(in, bits, "rx_prio", "_discards");
	for (int i = 0; in->drive && i < in->drive->peers; i++) {
		/* PFC acts where the senders are told to stop; one node's pauses are proof. */
		const struct check_input peer = {.window = &in->drive->peer[i].window};
		if (!in->drive->peer[i].window.ns)
			continue;
		paused = plus(paused, plus(pauses(&peer, bits, false), pauses(&peer, bits, true)));
		lost = plus(lost, by_priority(&peer, bits, "rx_prio", "_discards"));
	}
	fb_find_read(f, "ethtool -S: rx_prioN_pause, tx_prioN_pause, rx_prioN_discards");
	if (paused < 0 || lost < 0) {
		fb_find(f, FB_CHECK_SKIP, "not available: the driver counts no %s by priority",
			paused < 0 ? "pauses" : "discards");
		return;
	}
	fb_find(f,
		lost > 0     ? FB_CHECK_FAIL
		: paused > 0 ? FB_CHECK_PASS
			     : FB_CHECK_WARN,
		"%s%lld pauses and %lld discards on lossless priorities%s%s",
		check_window_text(in, when, sizeof(when)), (long long)paused, (long long)lost,
		in->drive ? ", all hosts together" : "",
		paused || lost ? "" : ": it was not stressed");
	fb_find_expected(f, "PFC pauses before it drops", "pauses, and no discards");
}

/* Sum of those that the port has; -1: none of them. */
static int64_t any_of(const struct check_input *in, const char *const *names, size_t n)
{
	int64_t sum = -1;
	for (size_t i = 0; i < n; i++)
		sum = plus(sum, check_grew(in, names[i]));
	return sum;
}
/* Soft-RoCE has no priorities, and its packets are the interface's. */
static bool interface_drops(const struct check_input *in, struct fb_finding *f)
{
	static const char *const names[] = {"netdev_rx_dropped", "netdev_rx_missed_errors",
		"netdev_rx_fifo_errors", "netdev_tx_dropped", "netdev_tx_fifo_errors"};
	char when[96];
	int64_t lost = any_of(in, names, sizeof(names) / sizeof(names[0]));
	if (strcmp(in->port->family, "rxe") != 0 || lost < 0)
		return false;
	fb_find_read(f,
		"/sys/class/net/%s/statistics: rx_dropped, rx_missed_errors, "
		"{rx,tx}_fifo_errors, tx_dropped",
		in->port->netdev);
	fb_find(f, lost ? FB_CHECK_WARN : FB_CHECK_PASS,
		"%s%lld dropped by the whole interface: software has no priorities",
		check_window_text(in, when, sizeof(when)), (long long)lost);
	fb_find_expected(f, "lossless is without drops", "0");
	return true;
}

void roce_r30(const struct check_input *in, struct fb_finding *f)
{
	unsigned bits = 0;
	char when[96];
	if (interface_drops(in, f))
		return;
	if (!lossless(in, f, &bits))
		return;
	int64_t mine = plus(by_priority(in, bits, "rx_prio", "_discards"),
		by_priority(in, bits, "rx_prio", "_buf_discard"));
	int64_t port = check_grew(in, "rx_discards_phy");
	fb_find_read(f, "ethtool -S: rx_prioN_discards, rx_prioN_buf_discard, rx_discards_phy");
	if (mine < 0 && port < 0) {
		fb_find(f, FB_CHECK_SKIP, "not available: the driver counts no discards");
		return;
	}
	fb_find(f,
		mine > 0   ? FB_CHECK_FAIL
		: port > 0 ? FB_CHECK_WARN
			   : FB_CHECK_PASS,
		"%s%lld dropped on lossless priorities, %lld on the whole port",
		check_window_text(in, when, sizeof(when)), (long long)(mine < 0 ? 0 : mine),
		(long long)(port < 0 ? 0 : port));
	fb_find_expected(f, "lossless is without drops", "0");
}

/* ---- loss ------------------------------------------------------------------------------------ */

#define ANY_OF(in, ...)                                \
	any_of(in, (const char *const[]){__VA_ARGS__}, \
		sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

void roce_r31(const struct check_input *in, struct fb_finding *f)
{
	char when[96];
	bool routed = in->profile->adaptive_routing == 1;
	int64_t gaps = ANY_OF(in, "out_of_sequence", "oos_drop_count", "out_of_seq_request");
	int64_t naks = ANY_OF(
		in, "packet_seq_err", "implied_nak_seq_err", "seq_err_naks_rcvd", "rcvd_seq_err");
	int64_t timeouts = ANY_OF(in, "local_ack_timeout_err", "to_retransmits",
		"roce_adp_retrans_to", "retry_exceeded_err", "completer_retry_err");
	fb_find_read(f, "hw_counters of %s/%d", in->port->device, in->port->port);
	if (gaps < 0 && naks < 0 && timeouts < 0) {
		fb_find(f, FB_CHECK_SKIP, "not available: %s has no counters of loss",
			in->port->family);
		return;
	}
	/* Adaptive routing reorders, and reordering looks like loss in the first two. A gap alone
	 * is either: a loss would be followed by a NAK or a timeout, of the sender. */
	int64_t lost = naks < 0 ? 0 : naks, seen = lost + (gaps < 0 ? 0 : gaps);
	double share = (double)lost / (double)in->window->packets;
	/* Where the CPU is the NIC it may be late itself; a loss shows in gaps and NAKs too, but
	 * for the last packets of a message. */
	bool late = timeouts > 0 && seen == 0 && strcmp(in->port->family, "rxe") == 0;
	enum fb_check_state s = late            ? FB_CHECK_WARN
				: timeouts > 0  ? FB_CHECK_FAIL
				: seen == 0     ? FB_CHECK_PASS
				: routed        ? FB_CHECK_INFO
				: share <= 1e-7 ? FB_CHECK_WARN
						: FB_CHECK_FAIL;
	fb_find(f, s, "%sgaps %lld, NAKs %lld, timeouts %lld%s",
		check_window_text(in, when, sizeof(when)), (long long)gaps, (long long)naks,
		(long long)timeouts,
		late     ? ": a tail was lost, or this software's CPU was late"
		: routed ? " (gaps and NAKs are reordering under adaptive routing)"
			 : "");
	fb_find_expected(f, routed ? CHECK_PROFILE_SOURCE(in) : "lossless is without loss",
		routed ? "no timeouts" : "none");
}

void roce_r32(const struct check_input *in, struct fb_finding *f)
{
	char when[96];
	int64_t rnr = ANY_OF(in, "rnr_nak_retry_err", "out_of_buffer", "rnr_naks_rcvd",
		"rx_out_of_buffer", "rcvd_rnr_err", "send_rnr_err");
	fb_find_read(f, "hw_counters of %s/%d", in->port->device, in->port->port);
	if (rnr < 0) {
		fb_find(f, FB_CHECK_SKIP, "not available: %s does not count it", in->port->family);
		return;
	}
	fb_find(f, rnr ? FB_CHECK_WARN : FB_CHECK_PASS, "%s%lld times the receiver was not ready",
		check_window_text(in, when, sizeof(when)), (long long)rnr);
	fb_find_expected(f, "the receiver's program, not the fabric", "0");
	fb_find_remedy(f, NULL, "post more receives: a larger receive depth in the application");
}

void roce_r33(const struct check_input *in, struct fb_finding *f)
{
	char when[96];
	int64_t marked = ANY_OF(in, "np_ecn_marked_roce_packets", "RxECNMrkd");
	int64_t sent = ANY_OF(in, "np_cnp_sent", "cnpSent");
	int64_t handled = ANY_OF(in, "rp_cnp_handled", "cnpHandled");
	int64_t ignored = ANY_OF(in, "rp_cnp_ignored", "cnpIgnored");
	fb_find_read(f, "hw_counters of %s/%d", in->port->device, in->port->port);
	if (marked < 0 || sent < 0) {
		fb_find(f, FB_CHECK_SKIP, "not available: %s does not count marks and CNPs",
			in->port->family);
		return;
	}
	static const char *const obeys[] = {"rp_cnp_handled", "cnpHandled"};
	static const char *const ignores[] = {"rp_cnp_ignored", "cnpIgnored"};
	/* Marks are answered here; who has to obey is the senders. */
	int64_t there = in->drive ? drive_grew(in->drive, obeys, 2) : -1;
	ignored = in->drive ? plus(ignored, drive_grew(in->drive, ignores, 2)) : ignored;
	handled = plus(handled, there);
	bool lost = sent > 0 && there == 0;
	bool dumb = marked > 0 && sent == 0, deaf = ignored > 0 || lost;
	fb_find(f,
		dumb || deaf            ? FB_CHECK_FAIL
		: marked || handled > 0 ? FB_CHECK_PASS
					: FB_CHECK_WARN,
		"%smarks %lld, CNPs sent %lld, obeyed %lld, ignored %lld%s%s",
		check_window_text(in, when, sizeof(when)), (long long)marked, (long long)sent,
		(long long)handled, (long long)ignored, in->drive ? ", all hosts together" : "",
		dumb     ? ": marks are not answered"
		: lost   ? ": no sender got one: is the CNPs' class dropped?"
		: deaf   ? ": CNPs are not obeyed"
		: marked ? ""
			 : ": no congestion was signalled");
	fb_find_expected(f, "DCQCN: mark, CNP, obey", "each mark answered, none ignored");
}

/* ---- pauses ---------------------------------------------------------------------------------- */

void roce_r34(const struct check_input *in, struct fb_finding *f)
{
	char when[96];
	double worst = -1;
	int prio = -1;
	bool told = true;
	for (int i = 0; i < 8; i++)
		for (int tx = 0; tx < 2; tx++) {
			int64_t us = paused_us(in, i, tx);
			double share = us < 0 ? -1 : (double)us * 1000 / (double)in->window->ns;
			if (share > worst) {
				worst = share;
				prio = i;
				told = !tx;
			}
		}
	fb_find_read(f, "ethtool -S: rx_prioN_pause_duration, tx_prioN_pause_duration");
	if (prio < 0) {
		fb_find(f, FB_CHECK_SKIP,
			"not available: the driver has no pause durations (PFC off?)");
		return;
	}
	fb_find(f,
		worst <= 0.01  ? FB_CHECK_PASS
		: worst <= 0.1 ? FB_CHECK_WARN
			       : FB_CHECK_FAIL,
		"%sat worst priority %d, %.2f %% of the time %s",
		check_window_text(in, when, sizeof(when)), prio, 100 * worst,
		told ? "told to stop: congestion downstream"
		     : "stopping others: this node is slow");
	fb_find_expected(f, "a paused link carries nothing: our own limits",
		"at most 1 %%, fail over 10 %%");
}

void roce_r35(const struct check_input *in, struct fb_finding *f)
{
	unsigned bits = 0;
	char when[96];
	if (!lossless(in, f, &bits))
		return;
	int64_t paused = pauses(in, bits, true);
	int64_t stalled = check_grew(in, "outbound_pci_stalled_wr");
	int64_t storm = check_grew(in, "tx_pause_storm_error_events");
	fb_find_read(f, "ethtool -S: tx_prioN_pause, outbound_pci_stalled_wr");
	if (paused < 0) {
		fb_find(f, FB_CHECK_SKIP, "not available: the driver counts no pauses it sends");
		return;
	}
	fb_find(f,
		storm > 0               ? FB_CHECK_FAIL
		: paused || stalled > 0 ? FB_CHECK_WARN
					: FB_CHECK_PASS,
		"%sthis node paused the switch %lld times; PCIe stalled %lld, storms %lld",
		check_window_text(in, when, sizeof(when)), (long long)paused, (long long)stalled,
		(long long)storm);
	fb_find_expected(f, "a receiver that keeps up never pauses", "0");
	fb_find_remedy(f, "a reboot",
		"iommu=pt on the kernel's command line; huge pages; look at the PCIe slot (R05)");
}

void roce_r36(const struct check_input *in, struct fb_finding *f)
{
	char when[96];
	int64_t warn = check_grew(in, "tx_pause_storm_warning_events");
	int64_t error = check_grew(in, "tx_pause_storm_error_events");
	fb_find_read(f, "ethtool -S: tx_pause_storm_warning_events, tx_pause_storm_error_events");
	if (warn < 0 && error < 0) {
		fb_find(f, FB_CHECK_SKIP, "not available: the driver does not count storms");
		return;
	}
	fb_find(f,
		error > 0  ? FB_CHECK_FAIL
		: warn > 0 ? FB_CHECK_WARN
			   : FB_CHECK_PASS,
		"%s%lld warnings, %lld errors", check_window_text(in, when, sizeof(when)),
		(long long)(warn < 0 ? 0 : warn), (long long)(error < 0 ? 0 : error));
	fb_find_expected(f, "a storm stops the whole fabric", "0 and 0");
	fb_find_remedy(f, "the node leaves the fabric",
		"reset the NIC; a PFC watchdog on the switch contains it");
}

/* ---- bits ------------------------------------------------------------------------------------ */

void roce_r37(const struct check_input *in, struct fb_finding *f)
{
	char when[96];
	int64_t symbols = ANY_OF(in, "rx_pcs_symbol_err_phy", "rx_symbol_err_phy");
	int64_t crc = ANY_OF(in, "rx_crc_errors_phy", "rx_crc_errors");
	int64_t corrected = check_grew(in, "rx_corrected_bits_phy");
	fb_find_read(
		f, "ethtool -S: rx_pcs_symbol_err_phy, rx_crc_errors_phy, rx_corrected_bits_phy");
	if (symbols < 0 && crc < 0 && corrected < 0) {
		fb_find(f, FB_CHECK_SKIP, "not available: the driver counts no bit errors");
		return;
	}
	double bits = 8 * (double)in->window->bytes;
	double rate = corrected > 0 ? (double)corrected / bits : 0;
	fb_find(f,
		symbols > 0 || crc > 0 ? FB_CHECK_FAIL
		: rate > 1e-8          ? FB_CHECK_WARN
				       : FB_CHECK_PASS,
		"%ssymbol errors %lld, CRC errors %lld, %.1e of all bits corrected",
		check_window_text(in, when, sizeof(when)), (long long)symbols, (long long)crc,
		rate);
	fb_find_expected(
		f, "FEC corrects, the link loses nothing", "no errors, at most 1e-8 corrected");
	fb_find_remedy(f, "the link goes down", "clean or change cable and optic");
}

void roce_r38(const struct check_input *in, struct fb_finding *f)
{
	char when[96];
	int64_t icrc = ANY_OF(in, "rx_icrc_encapsulated", "rx_icrc_errors");
	fb_find_read(f, "hw_counters: rx_icrc_encapsulated");
	if (icrc < 0) {
		fb_find(f, FB_CHECK_SKIP, "not available: %s does not count it", in->port->family);
		return;
	}
	fb_find(f, icrc ? FB_CHECK_FAIL : FB_CHECK_PASS, "%s%lld packets with a wrong ICRC",
		check_window_text(in, when, sizeof(when)), (long long)icrc);
	fb_find_expected(f, "nothing on the way may rewrite a RoCE packet", "0");
}

/* ---- what is only told ----------------------------------------------------------------------- */

void roce_r39(const struct check_input *in, struct fb_finding *f)
{
	const struct fact_int *order = &in->port->relaxed_ordering;
	const struct fact_text *acs = &in->port->acs_redirect;
	if (check_software(in, f) || !check_need(&order->f, f) || !check_need(&acs->f, f))
		return;
	fb_find_read(f, "%s; %s", order->f.read, acs->f.read);
	fb_find(f, order->v && !acs->v[0] ? FB_CHECK_PASS : FB_CHECK_WARN,
		"relaxed ordering %s; ACS redirects at %s", order->v ? "on" : "off",
		acs->v[0] ? acs->v : "no bridge above");
	fb_find_expected(f, "a GPU's memory is reached straight, not by way of the root",
		"relaxed ordering on, no redirection");
	if (!acs->v[0])
		fb_find_remedy(f, "what relied on strict ordering",
			"PCI_WR_ORDERING=per_mkey by mlxconfig; setpci -s %s CAP_EXP+8.w=0010:0010",
			in->port->bdf);
	else
		fb_find_remedy(f, "isolation between guests of this node",
			"ACS off in the BIOS; or setpci -s %.40s ECAP_ACS+6.w=0:c", acs->v);
}

void roce_r40(const struct check_input *in, struct fb_finding *f)
{
	if (check_software(in, f))
		return;
	if (check_need(&in->port->loss_recovery.f, f))
		fb_find(f, FB_CHECK_INFO, "%s", in->port->loss_recovery.v);
}

void roce_r41(const struct check_input *in, struct fb_finding *f)
{
	/* Two of n flows on one of m equal paths: 1 - m!/((m-n)! m^n). */
	const char *text = fb_json_str(in->node->env, "NCCL_IB_QPS_PER_CONNECTION", "1");
	long asked = strtol(text, NULL, 10);
	int qps = asked >= 1 && asked <= 128 ? (int)asked : 1; /* NCCL's own bounds */
	double none = 1;
	int flows = 4 * qps;
	for (int i = 1; i < flows; i++)
		none *= i < 16 ? 1 - i / 16.0 : 0;
	fb_find(f, FB_CHECK_INFO,
		"%d QPs a connection: 4 connections over 16 equal paths share one with "
		"probability %.0f %%",
		qps, 100 * (1 - none));
	fb_find_read(f, "NCCL_IB_QPS_PER_CONNECTION");
}

void roce_r42(const struct check_input *in, struct fb_finding *f)
{
	const struct node_facts *n = in->node;
	if (!check_need(&n->memlock.f, f))
		return;
	long long limit = (long long)n->memlock.v;
	if (fact_known(&n->ipc_lock.f) && n->ipc_lock.v) {
		fb_find(f, FB_CHECK_INFO,
			"not judged: CAP_IPC_LOCK is effective, locked memory has no limit");
		return;
	}
	if (n->memlock.v == INT64_MAX)
		fb_find(f, FB_CHECK_PASS, "unlimited");
	else
		fb_find(f, FB_CHECK_FAIL, "%lld bytes", limit);
	fb_find_expected(f, "registered buffers are locked memory", "unlimited");
	fb_find_remedy(f, "new logins only",
		"echo '* - memlock unlimited' > /etc/security/limits.d/rdma.conf; for services "
		"LimitMEMLOCK=infinity");
}
