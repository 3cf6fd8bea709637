// SPDX-License-Identifier: Apache-2.0
/* A drive's findings: what probes of the path, packets on the wire and counters of all hosts make
 * of R27 to R33; hosts that fail; real datagrams over the loopback interface. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/test.h"
#include "verbs/lossless/checks_priv.h"
#include "verbs/lossless/drive.h"
#include "verbs/lossless/live.h"

#define SECOND 1000000000u

static json_t *values(const char *text)
{
	json_t *j = json_loads(text, 0, NULL);
	assert_non_null(j);
	return j;
}

/* Two senders and a victim; the receiver is a NIC with PFC on priority 3. */
struct scene {
	struct drive d;
	struct drive_peer peer[3];
	struct port_facts *port;
	struct port_window w;
	struct node_facts node;
	struct profile none;
	struct check_input in;
};

static void window(struct port_window *w, const char *stats, const char *counters)
{
	*w = (struct port_window){.ns = SECOND,
		.bytes = 1u << 30,
		.packets = 1000000,
		.traffic_known = true,
		.stats = values(stats),
		.counters = values(counters),
		.peer_prio_packets = {-1, -1, -1, -1, -1, -1, -1, -1},
		.sent_packets = 400000,
		.sent_dscp = 26};
}

static void scene_open(struct scene *s, const char *stats, const char *counters)
{
	memset(s, 0, sizeof(*s));
	s->port = calloc(1, sizeof(*s->port));
	assert_non_null(s->port);
	snprintf(s->port->device, sizeof(s->port->device), "mlx5_0");
	snprintf(s->port->family, sizeof(s->port->family), "mlx5");
	snprintf(s->port->netdev, sizeof(s->port->netdev), "eth2");
	s->port->port = 1;
	s->port->ethernet = true;
	s->port->dcb.pfc_f.state = FACT_KNOWN;
	s->port->dcb.pfc.en = 1u << 3;
	s->port->dscp2prio_f.state = FACT_KNOWN;
	for (int i = 0; i < 64; i++)
		s->port->dscp2prio[i] = (int8_t)(i / 8);
	profile_none(&s->none);
	s->node = (struct node_facts){.port = s->port, .ports = 1};
	window(&s->w, stats, counters);
	s->d = (struct drive){.peer = s->peer,
		.peers = 3,
		.dscp = 26,
		.victim_dscp = 26,
		.traffic_class = 106,
		.packets = 400000,
		.bytes = 400000ull * 4096,
		.size = 65536,
		.reads = 7};
	snprintf(s->d.class_by, sizeof(s->d.class_by), "--traffic-class");
	static const char *const names[] = {"a", "b", "v"};
	for (int i = 0; i < 3; i++) {
		s->peer[i] = (struct drive_peer){
			.name = names[i], .joined = true, .sent = i < 2 ? 12500 : 0};
		window(&s->peer[i].window, "{}", "{}");
		s->peer[i].path = (struct drive_path){.tried = true,
			.bytes = {100, 4156, 9000},
			.back = {true, true, true},
			.arrived = {1, 1, 1}};
	}
	s->peer[2].victim = true;
	s->in = (struct check_input){.node = &s->node,
		.port = s->port,
		.profile = &s->none,
		.window = &s->w,
		.drive = &s->d};
}

static void drop(struct port_window *w)
{
	json_decref(w->stats);
	json_decref(w->counters);
}

static void scene_close(struct scene *s)
{
	for (int i = 0; i < 3; i++)
		drop(&s->peer[i].window);
	drop(&s->w);
	free(s->port);
}

/* The host's counters instead of none. */
static void counted(struct scene *s, int host, const char *stats, const char *counters)
{
	drop(&s->peer[host].window);
	window(&s->peer[host].window, stats, counters);
}

static void expect(const struct scene *s,
	void (*check)(const struct check_input *in, struct fb_finding *f), enum fb_check_state want,
	const char *text)
{
	struct fb_finding f = {.state = FB_CHECK_ERROR};
	check(&s->in, &f);
	const char *said = f.reason[0] ? f.reason : f.observed;
	if (f.state != want || !strstr(said, text))
		fail_msg("%s: %s, not %s with \"%s\"", fb_check_state_names[f.state], said,
			fb_check_state_names[want], text);
}

/* ---- the path -------------------------------------------------------------------------------- */

static void paths_that_carry(void **state)
{
	struct scene s;
	scene_open(&s, "{}", "{}");
	expect(&s, roce_r27, FB_CHECK_PASS, "9000 B go there and back with 3 of 3 hosts");
	/* A firewall that eats UDP does not hide what RDMA has carried. */
	s.peer[0].path.back[DRIVE_SMALL] = s.peer[0].path.back[DRIVE_ROCE] =
		s.peer[0].path.back[DRIVE_FULL] = false;
	s.d.path_mtu = 4096;
	expect(&s, roce_r27, FB_CHECK_PASS, "RDMA at MTU 4096 has carried the load");
	scene_close(&s);
}

static void paths_that_are_narrow(void **state)
{
	struct scene s;
	scene_open(&s, "{}", "{}");
	struct drive_path *p = &s.peer[1].path;
	p->back[DRIVE_FULL] = false;
	p->arrived[DRIVE_FULL] = 0;
	expect(&s, roce_r27, FB_CHECK_FAIL, "b: 9000 B do not arrive there, 4156 B pass");
	p->arrived[DRIVE_FULL] = 3;
	expect(&s, roce_r27, FB_CHECK_FAIL, "b: 9000 B arrive there and do not come back");
	p->back[DRIVE_ROCE] = false;
	p->arrived[DRIVE_ROCE] = -1;
	expect(&s, roce_r27, FB_CHECK_FAIL,
		"4156 B (a full packet of RoCE) do not come back, 100 B");
	scene_close(&s);
}

static void paths_not_known(void **state)
{
	struct scene s;
	scene_open(&s, "{}", "{}");
	for (int i = 0; i < 3; i++) {
		s.peer[i].sent = 0;
		s.peer[i].path = (struct drive_path){.tried = false, .why = "no UDP socket there"};
	}
	expect(&s, roce_r27, FB_CHECK_SKIP, "no UDP socket there");
	s.peer[0].path.tried = true;
	expect(&s, roce_r27, FB_CHECK_SKIP, "not even a small datagram");
	s.in.drive = NULL;
	expect(&s, roce_r27, FB_CHECK_SKIP, "--drive HOST");
	scene_close(&s);
}

static void gid_of(const char *ipv4, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = gid->raw[11] = 0xff;
	assert_int_equal(inet_pton(AF_INET, ipv4, gid->raw + 12), 1);
}

static void real_datagrams(void **state)
{
	struct drive_route r = {.word = 77, .netdev_mtu = 9000, .rdma_mtu = 4096, .netdev = "lo"};
	struct drive_path p = {.tried = false};
	char why[160] = "";
	gid_of("127.0.0.1", &r.from);
	r.to = r.from;
	struct drive_echo *x = drive_echo_open(&r.to, "lo", r.word, &r.port, why, sizeof(why));
	if (!x) {
		fb_test_skip("drive-loopback", "%s", why);
		return;
	}
	drive_path_probe(&r, &p);
	json_t *answer = json_object();
	drive_echo_tell(x, answer);
	drive_echo_free(x);
	drive_path_arrived(answer, &p);
	json_decref(answer);
	assert_true(p.tried);
	for (int i = 0; i < DRIVE_PROBES; i++) {
		assert_true(p.back[i]);
		assert_true(p.arrived[i] > 0);
	}
	assert_int_equal(p.bytes[DRIVE_ROCE], 4156);
}

/* Another session's word is not answered, and not counted. */
static void strangers_get_no_answer(void **state)
{
	struct drive_route r = {.word = 5, .netdev_mtu = 1500, .rdma_mtu = 1024, .netdev = "lo"};
	struct drive_path p = {.tried = false};
	char why[160];
	gid_of("127.0.0.1", &r.from);
	r.to = r.from;
	struct drive_echo *x = drive_echo_open(&r.to, "lo", 6, &r.port, why, sizeof(why));
	if (!x) {
		fb_test_skip("drive-loopback", "%s", why);
		return;
	}
	drive_path_probe(&r, &p);
	assert_false(p.back[DRIVE_SMALL]);
	json_t *answer = json_object();
	drive_echo_tell(x, answer);
	assert_int_equal(json_array_size(json_object_get(answer, "arrived")), 0);
	json_decref(answer);
	drive_echo_free(x);
}

/* ---- the wire -------------------------------------------------------------------------------- */

static void priorities_of_a_nic(void **state)
{
	struct scene s;
	scene_open(&s, "{}", "{}");
	expect(&s, roce_r28, FB_CHECK_SKIP, "counts no packets by priority");
	s.w.peer_prio_packets[0] = 5000;
	s.w.peer_prio_packets[3] = 480000;
	expect(&s, roce_r28, FB_CHECK_PASS, "480000 arrived in priority 3");
	s.w.peer_prio_packets[3] = 0;
	s.w.peer_prio_packets[0] = 480000;
	expect(&s, roce_r28, FB_CHECK_FAIL, "and 480000 in priority 0");
	s.w.sent_packets = -1;
	expect(&s, roce_r28, FB_CHECK_SKIP, "--drive only");
	scene_close(&s);
}

static void marks_on_the_wire(void **state)
{
	struct scene s;
	scene_open(&s, "{}", "{}");
	s.d.sniffed = true;
	expect(&s, roce_r28, FB_CHECK_SKIP, "no packet of RoCE v2 was seen");
	s.d.wire.n[26][2] = 300000;
	s.d.wire.n[26][0] = 120000;
	expect(&s, roce_r28, FB_CHECK_PASS, "420000 of 420000 packets");
	/* The victim's may have a class of its own. */
	s.d.victim_dscp = 0;
	s.d.wire.n[0][0] = 90000;
	expect(&s, roce_r28, FB_CHECK_PASS, "420000 of 510000");
	s.d.wire.n[8][0] = 90000;
	expect(&s, roce_r28, FB_CHECK_FAIL, "90000 have DSCP 8");
	/* Fewer than were sent, and none missed: the others never came as RoCE. */
	memset(&s.d.wire, 0, sizeof(s.d.wire));
	s.d.wire.n[26][2] = 1000;
	expect(&s, roce_r28, FB_CHECK_FAIL, "1000 of 1000");
	s.d.wire_drops = 399000;
	expect(&s, roce_r28, FB_CHECK_PASS, "the sniffer missed 399000");
	scene_close(&s);
}

/* ---- counters of all hosts ------------------------------------------------------------------- */

static void pauses_anywhere_prove_pfc(void **state)
{
	struct scene s;
	scene_open(&s, "{\"rx_prio3_pause\": 0, \"rx_prio3_discards\": 0}", "{}");
	expect(&s, roce_r29, FB_CHECK_WARN, "it was not stressed");
	counted(&s, 0, "{\"rx_prio3_pause\": 9, \"rx_prio3_discards\": 0}", "{}");
	expect(&s, roce_r29, FB_CHECK_PASS, "9 pauses and 0 discards");
	counted(&s, 1, "{\"rx_prio3_discards\": 2}", "{}");
	expect(&s, roce_r29, FB_CHECK_FAIL, "9 pauses and 2 discards");
	scene_close(&s);
}

static void marks_are_obeyed_by_senders(void **state)
{
	struct scene s;
	scene_open(&s, "{}",
		"{\"np_ecn_marked_roce_packets\": 9, \"np_cnp_sent\": 4, \"rp_cnp_handled\": 0, "
		"\"rp_cnp_ignored\": 0}");
	counted(&s, 0, "{}", "{\"rp_cnp_handled\": 3, \"rp_cnp_ignored\": 0}");
	counted(&s, 1, "{}", "{\"rp_cnp_handled\": 0, \"rp_cnp_ignored\": 0}");
	expect(&s, roce_r33, FB_CHECK_PASS, "obeyed 3");
	counted(&s, 0, "{}", "{\"rp_cnp_handled\": 0, \"rp_cnp_ignored\": 0}");
	expect(&s, roce_r33, FB_CHECK_FAIL, "no sender got one");
	counted(&s, 0, "{}", "{\"rp_cnp_handled\": 3, \"rp_cnp_ignored\": 1}");
	expect(&s, roce_r33, FB_CHECK_FAIL, "not obeyed");
	/* Senders that do not count prove nothing. */
	counted(&s, 0, "{}", "{}");
	counted(&s, 1, "{}", "{}");
	expect(&s, roce_r33, FB_CHECK_PASS, "CNPs sent 4");
	scene_close(&s);
}

static void drops_of_software(void **state)
{
	struct scene s;
	scene_open(&s, "{\"netdev_rx_dropped\": 0, \"netdev_tx_dropped\": 0}", "{}");
	snprintf(s.port->family, sizeof(s.port->family), "rxe");
	expect(&s, roce_r30, FB_CHECK_PASS, "0 dropped by the whole interface");
	drop(&s.w);
	window(&s.w, "{\"netdev_rx_dropped\": 3, \"netdev_tx_dropped\": 1}", "{}");
	expect(&s, roce_r30, FB_CHECK_WARN, "4 dropped by the whole interface");
	scene_close(&s);
}

static void late_software_is_no_loss(void **state)
{
	struct scene s;
	scene_open(&s, "{}",
		"{\"out_of_seq_request\": 0, \"rcvd_seq_err\": 0, \"completer_retry_err\": 1}");
	expect(&s, roce_r31, FB_CHECK_FAIL, "timeouts 1");
	snprintf(s.port->family, sizeof(s.port->family), "rxe");
	expect(&s, roce_r31, FB_CHECK_WARN, "CPU was late");
	drop(&s.w);
	window(&s.w, "{}",
		"{\"out_of_seq_request\": 2, \"rcvd_seq_err\": 1, \"completer_retry_err\": 1}");
	expect(&s, roce_r31, FB_CHECK_FAIL, "gaps 2, NAKs 1, timeouts 1");
	scene_close(&s);
}

/* ---- hosts ----------------------------------------------------------------------------------- */

static void failed_hosts_are_errors(void **state)
{
	struct scene s;
	struct fb_output_cfg quiet = {.quiet = true};
	char name[] = "check", *argv[] = {name, NULL};
	struct fb_err e = {0};
	struct fb_doc *doc = fb_doc_new("check", 1, argv, &quiet, &e);
	assert_non_null(doc);
	scene_open(&s, "{}", "{}");
	s.peer[1].lost = true;
	fb_fail(&s.peer[1].why, FB_EXIT_UNMEASURED, 104, "it is gone");
	drive_tell(&s.d, &s.none, doc);
	const json_t *checks = json_object_get(fb_doc_json(doc), "checks"), *c;
	size_t i, n[FB_CHECK_STATES] = {0};
	json_array_foreach (checks, i, c)
		for (int k = 0; k < FB_CHECK_STATES; k++)
			n[k] += strcmp(fb_json_str(c, "state", ""), fb_check_state_names[k]) == 0;
	assert_int_equal(n[FB_CHECK_PASS], 2);
	assert_int_equal(n[FB_CHECK_ERROR], 1);
	const char *id[] = {drive_checks[0].id};
	const struct fb_check_judge j = {.require = id, .n_require = 1};
	assert_int_equal(fb_check_judge(doc, &j), FB_EXIT_UNMEASURED);
	json_t *fabric = json_object();
	drive_describe(&s.d, fabric);
	const json_t *hosts = json_object_get(json_object_get(fabric, "drive"), "hosts");
	assert_string_equal(fb_json_str(json_array_get(hosts, 1), "state", ""), "error");
	json_decref(fabric);
	scene_close(&s);
	fb_doc_free(doc);
}

static void options(void **state)
{
	const char *two[] = {"a", "b"}, *twice[] = {"a", "a"};
	char a[] = "a", c[] = "c";
	struct fb_err e = {0};
	struct drive_cfg cfg = {.hosts = {.v = two, .n = 2}, .duration_ns = SECOND};
	assert_int_equal(drive_check_options(&cfg, &e), 0);
	cfg.victim = c;
	assert_int_equal(drive_check_options(&cfg, &e), 0);
	cfg.victim = a;
	assert_true(drive_check_options(&cfg, &e) < 0);
	assert_non_null(strstr(e.msg, "sends nothing"));
	fb_err_clear(&e);
	cfg = (struct drive_cfg){.hosts = {.v = twice, .n = 2}, .duration_ns = SECOND};
	assert_true(drive_check_options(&cfg, &e) < 0);
	assert_non_null(strstr(e.msg, "twice"));
	fb_err_clear(&e);
	cfg = (struct drive_cfg){.hosts = {.v = two, .n = 2}, .duration_ns = 5};
	assert_true(drive_check_options(&cfg, &e) < 0);
	fb_err_clear(&e);
	cfg = (struct drive_cfg){.victim = a};
	assert_true(drive_check_options(&cfg, &e) < 0);
	assert_non_null(strstr(e.hint, "--drive"));
}

static void readings_travel(void **state)
{
	struct live_reading x = {.at = 9,
				    .stats = values("{\"s\": 1}"),
				    .counters = values("{\"c\": 2}"),
				    .netdev_bytes = 3,
				    .netdev_packets = 4},
			    y;
	json_t *j = live_reading_json(&x);
	assert_true(live_reading_from(j, &y));
	assert_int_equal(y.at, 9);
	assert_int_equal(fb_json_int(y.stats, "s", 0), 1);
	assert_int_equal(fb_json_int(y.counters, "c", 0), 2);
	assert_int_equal(y.netdev_bytes, 3);
	assert_int_equal(y.netdev_packets, 4);
	live_reading_free(&y);
	json_decref(j);
	live_reading_free(&x);
	assert_false(live_reading_from(NULL, &y));
	j = values("{\"at\": -1, \"stats\": 5}");
	assert_false(live_reading_from(j, &y));
	json_decref(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_that_carry),
		cmocka_unit_test(paths_that_are_narrow),
		cmocka_unit_test(paths_not_known),
		cmocka_unit_test(real_datagrams),
		cmocka_unit_test(strangers_get_no_answer),
		cmocka_unit_test(priorities_of_a_nic),
		cmocka_unit_test(marks_on_the_wire),
		cmocka_unit_test(pauses_anywhere_prove_pfc),
		cmocka_unit_test(marks_are_obeyed_by_senders),
		cmocka_unit_test(drops_of_software),
		cmocka_unit_test(late_software_is_no_loss),
		cmocka_unit_test(failed_hosts_are_errors),
		cmocka_unit_test(options),
		cmocka_unit_test(readings_travel),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
