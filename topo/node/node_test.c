// SPDX-License-Identifier: Apache-2.0
/*
 * Every check on a node where it passes, on one where it does not, and on one that tells nothing.
 * The nodes are constructed (test_machine.h); each wrong one is the good one with one thing
 * changed. Nodes that lack something are inventory_test.c's.
 */
#include "topo/node/node_test.h"

#include <unistd.h>

#define MAX_CHECKS 64

/* A file of GPU or NIC i's function. */
static void set(const struct test_tree *tree, bool nic, int i, const char *file, const char *text)
{
	char bdf[16], dir[96];
	tree_join(dir, sizeof(dir), "/sys/bus/pci/devices/%s", machine_bdf(nic, i, bdf));
	tree_file(tree, dir, file, "%s", text);
}

static void set_port(const struct test_tree *tree, int i, const char *file, const char *text)
{
	char dir[96];
	tree_join(dir, sizeof(dir), "/sys/class/infiniband/mlx5_%d/ports/1", i);
	tree_file(tree, dir, file, "%s", text);
}

/* ---- every check in every state -------------------------------------------------------------- */

struct seen {
	bool good, bad, skip;
};
static struct seen *seen_all(void **state)
{
	return *state;
}

static void note(struct seen *seen, const struct examined *x)
{
	for (size_t i = 0; node_checks[i].def.id; i++) {
		const char *s = state_at(x, node_checks[i].def.id, NULL);
		seen[i].good = seen[i].good || rank(s) == 1 || rank(s) == 2;
		seen[i].bad = seen[i].bad || rank(s) >= 4;
		seen[i].skip = seen[i].skip || rank(s) == 0;
	}
}

/* A good node: no check has anything against it, with a matching expectation either. */
static void good(void **state)
{
	static const struct machine m = MACHINE("good");
	struct examined x;
	struct fb_err e = {0};
	tree_begin(&x, &m);
	open_node(&x);
	if (node_expect_read("hgx-h100", &x.node.expect, &e) != 0)
		fail_msg("%s", e.msg);
	run_all(&x);
	clean(&x);
	is(&x, "pci.link_width", "pass");
	is(&x, "pci.acs_baremetal", "pass");
	is(&x, "pci.mrrs", "pass");
	is(&x, "gpu.nic_path", "pass");
	is(&x, "gpu.nic_balance", "pass");
	is(&x, "inv.gpu_count", "pass");
	is(&x, "inv.nvlink_count", "pass");
	is(&x, "gpu.fabric_state", "pass");
	is(&x, "gdr.support", "pass");
	note(seen_all(state), &x);
	examined_end(&x);
}

static void break_pci(const struct test_tree *t)
{
	char bdf[16];
	set(t, false, 0, "current_link_width", "8\n");
	set(t, true, 0, "current_link_speed", "16.0 GT/s PCIe\n");
	tree_file(t, "/sys/bus/pci/devices/0000:11:00.0", "current_link_width", "8\n");
	set(t, false, 1, "revision", "0xff\n");
	set(t, true, 1, "aer_dev_fatal", "DLP 1\nTOTAL_ERR_FATAL 1\n");
	/* Requests of 128, payload of 128, ordering strict. */
	machine_config(t, machine_bdf(true, 0, bdf), 0, 0, 0);
	machine_config(t, "0000:12:00.0", MACHINE_CONTROL, 0x1d, 0);
	machine_config(t, "0000:40:01.0", MACHINE_CONTROL, 0x1d, 0);     /* a root port */
	tree_file(t, "/sys/kernel/iommu_groups/19", "type", "DMA-FQ\n"); /* GPU0, bus 13 */
	set(t, true, 4, "numa_node", "-1\n");
	tree_write(t, "/dmesg.txt",
		"[    0.0] Linux version 5.15\n"
		"[    4.1] mlx5_core 0000:15:00.0: 126.016 Gb/s available PCIe bandwidth, limited "
		"by 16.0 GT/s PCIe x8 link at 0000:12:02.0 (capable of 504.112 Gb/s with 32.0 GT/s "
		"PCIe x16 link)\n"
		"[   99.5] NVRM: Xid (PCI:0000:13:00): 79, pid='<unknown>', name=<unknown>, GPU has "
		"fallen off the bus.\n"
		"[  101.5] NVRM: Xid (PCI:0000:14:00): 31, pid=1, name=app, MMU Fault\n");
}

static void break_host(const struct test_tree *t)
{
	tree_file(t, "/proc/driver/nvidia", "version",
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15\n");
	tree_write(t, "/env", "NCCL_TOPO_FILE=/etc/topo.xml\n");
	tree_write(t, "/etc/topo.xml",
		"<system version=\"1\"><cpu numaid=\"0\" affinity=\"f\" arch=\"x86_64\">"
		"<pci busid=\"0000:99:00.0\" class=\"0x030200\" vendor=\"0x10de\" "
		"device=\"0x2330\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">"
		"<gpu dev=\"0\" sm=\"90\" rank=\"0\" gdr=\"1\"/></pci></cpu></system>\n");
	tree_file(t, "/sys/devices/system/node/node1", "meminfo",
		"Node 1 MemTotal:       50331648 kB\nNode 1 MemFree:  1 kB\n");
	tree_file(t, "/proc/sys/kernel", "numa_balancing", "1\n");
	tree_file(t, "/sys/devices/system/cpu/cpu3/cpufreq", "scaling_governor", "powersave\n");
	tree_file(t, "/sys/devices/system/cpu/cpu3/cpuidle/state1", "latency", "133\n");
	tree_file(t, "/sys/devices/system/cpu/cpu3/cpuidle/state1", "name", "C6\n");
	tree_file(
		t, "/sys/devices/system/clocksource/clocksource0", "current_clocksource", "hpet\n");
	tree_file(
		t, "/proc/self", "status", "CapEff:\t0000000000000000\nCpus_allowed_list:\t0-3\n");
	tree_file(t, "/proc/self", "limits",
		"Max locked memory         65536                65536                bytes\n");
	tree_file(t, "/sys/devices/system/node/node0/hugepages/hugepages-2048kB", "nr_hugepages",
		"1024\n");
	tree_file(t, "/proc/irq/100", "effective_affinity_list", "7\n");
}

static void break_ports(const struct test_tree *t)
{
	set_port(t, 1, "state", "2: INIT\n");
	set_port(t, 2, "rate", "200 Gb/sec (4X HDR)\n");
	tree_file(t, "/sys/class/infiniband/mlx5_3", "fw_ver", "28.36.1010\n");
	set_port(t, 4, "counters/link_downed", "255\n");
	set_port(t, 5, "hw_counters/local_ack_timeout_err", "7\n");
	set_port(t, 6, "pkeys/0", "0x8001\n");
}

static void break_gpus(const struct test_tree *t)
{
	static const char q[] = "/nvidia-smi-q.txt";
	change(t, q, "Total                             : 131072 MiB",
		"Total                             : 256 MiB");
	change(t, q, "DRAM Uncorrectable            : 0", "DRAM Uncorrectable            : 2");
	change(t, q, "Remapping Failure Occurred        : No",
		"Remapping Failure Occurred        : Yes");
	change(t, q, "HW Thermal Slowdown           : Not Active",
		"HW Thermal Slowdown           : Active");
	change(t, q, "Current Power Limit               : 700.00 W",
		"Current Power Limit               : 500.00 W");
	change(t, q, "Status                            : Success",
		"Status                            : Insufficient Resources");
}

/* One thing wrong for nearly every check. */
static void bad(void **state)
{
	static const struct machine m = MACHINE("bad");
	static const struct {
		const char *id, *state;
	} want[] = {{"pci.link_width", "fail"}, {"pci.link_speed", "fail"}, {"pci.chain", "warn"},
		{"pci.kernel_limited", "fail"}, {"pci.rev_ff", "fail"}, {"pci.aer", "fail"},
		{"pci.mrrs", "fail"}, {"pci.mps", "warn"}, {"pci.relaxed_ordering", "warn"},
		{"pci.acs_baremetal", "fail"}, {"iommu.mode", "warn"}, {"gdr.support", "fail"},
		{"gpu.bar1", "warn"}, {"topo.file", "fail"}, {"numa.dev_node", "warn"},
		{"numa.nodes_per_socket", "warn"}, {"numa.unbalanced", "warn"},
		{"numa.balancing", "warn"}, {"cpu.governor", "warn"}, {"cpu.cstates", "warn"},
		{"cpu.clocksource", "warn"}, {"cpu.affinity", "warn"}, {"mem.memlock", "fail"},
		{"mem.hugepages", "warn"}, {"irq.affinity", "warn"}, {"ib.port_state", "fail"},
		{"ib.rate", "fail"}, {"ib.fw_uniform", "warn"}, {"ib.counters", "warn"},
		{"ib.hw_counters", "warn"}, {"ib.pkey/gid", "warn"}, {"inv.memory", "fail"},
		{"inv.driver_versions", "fail"}, {"inv.gpu_count", "fail"},
		{"inv.nic_count", "fail"}, {"inv.nvlink_count", "fail"},
		{"topo.fingerprint", "fail"}, {"gpu.ecc", "fail"}, {"gpu.xid", "fail"},
		{"gpu.remap", "fail"}, {"gpu.throttle", "fail"}, {"gpu.power_cap", "fail"},
		{"gpu.fabric_state", "fail"}};
	struct examined x;
	tree_begin(&x, &m);
	break_pci(&x.tree);
	break_host(&x.tree);
	break_ports(&x.tree);
	break_gpus(&x.tree);
	open_node(&x);
	expect_text(&x, "[machine]\nnuma-per-socket = 4\nmemory = 128G\npower-cap = 700\n"
			"driver-nvidia = 555.1\ngpus = 9\nnics = 9\nnvlinks = 19\n"
			"fingerprint = of-another-kind\n");
	run_all(&x);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		is(&x, want[i].id, want[i].state);
	/* Each names the thing that was changed, and nothing else of its kind. */
	assert_string_equal(state_at(&x, "pci.link_width", "GPU0"), "fail");
	assert_string_equal(state_at(&x, "pci.link_width", "GPU1"), "pass");
	assert_string_equal(state_at(&x, "pci.link_speed", "mlx5_0"), "fail");
	assert_string_equal(state_at(&x, "pci.acs_baremetal", "0000:12:00.0"), "fail");
	assert_string_equal(state_at(&x, "pci.acs_baremetal", "0000:12:01.0"), "pass");
	assert_string_equal(state_at(&x, "pci.acs_baremetal", "0000:40:01.0"), "warn");
	assert_string_equal(state_at(&x, "gpu.xid", "GPU0"), "fail");
	assert_string_equal(state_at(&x, "gpu.xid", "GPU1"), "info");
	assert_string_equal(state_at(&x, "ib.rate", "mlx5_2"), "fail");
	assert_string_equal(state_at(&x, "ib.rate", "mlx5_3"), "pass");
	assert_string_equal(state_at(&x, "cpu.affinity", "mlx5_0"), "info");
	says(&x, "ib.port_state", "no subnet manager");
	says(&x, "ib.counters", "saturated");
	says(&x, "topo.file", "0000:99:00.0 is not in this node");
	says(&x, "cpu.cstates", "C6");
	says(&x, "gpu.fabric_state", "Insufficient Resources");
	note(seen_all(state), &x);
	examined_end(&x);
}

/* A recording that holds next to nothing: only skips, each with its reason. */
static void bare(void **state)
{
	struct examined x;
	tree_begin(&x, NULL);
	tree_mkdir(&x.tree, "/sys/class/net");
	open_node(&x);
	run_all(&x);
	const json_t *checks = json_object_get(fb_doc_json(x.doc), "checks"), *c;
	size_t i;
	json_array_foreach (checks, i, c) {
		if (strcmp(fb_json_str(c, "state", ""), "skip") != 0)
			fail_msg("%s is %s", fb_json_str(c, "id", ""), fb_json_str(c, "state", ""));
		assert_true(strlen(fb_json_str(c, "reason", "")) > 10);
	}
	assert_int_equal(fb_check_judge(x.doc, NULL), FB_EXIT_SKIP);
	note(seen_all(state), &x);
	examined_end(&x);
}

/* RoCE ports on a host of virtual machines, right and wrong. */
static void roce_on_vm_host(void **state)
{
	static const struct machine m = MACHINE("host");
	for (int wrong = 0; wrong < 2; wrong++) {
		struct examined x;
		char bdf[16], link[128], gone[256];
		tree_begin(&x, &m);
		for (int i = 0; i < 8; i++) {
			set_port(&x.tree, i, "link_layer", "Ethernet\n");
			set_port(&x.tree, i, "gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n");
			set_port(&x.tree, i, "gid_attrs/types/0",
				wrong && i == 3 ? "IB/RoCE v1\n" : "RoCE v2\n");
			set_port(&x.tree, i, "gid_attrs/ndevs/0", "eth2\n");
		}
		tree_write(&x.tree, "/ethtool/eth2.pause",
			wrong ? "Autonegotiate:\toff\nRX:\t\ton\nTX:\t\ton\n"
			      : "Autonegotiate:\toff\nRX:\t\toff\nTX:\t\toff\n");
		/* GPU7 is given to a guest. */
		tree_join(link, sizeof(link),
			"/sys/devices/pci0000:b0/0000:b0:01.0/0000:b1:00.0/0000:b2:01.0/%s/driver",
			machine_bdf(false, 7, bdf));
		tree_join(gone, sizeof(gone), "%s%s", x.tree.dir, link);
		assert_int_equal(unlink(gone), 0);
		tree_mkdir(&x.tree, "/sys/bus/pci/drivers/vfio-pci");
		tree_link(&x.tree, link, "/sys/bus/pci/drivers/vfio-pci");
		for (int sw = 0; sw < 4; sw++)
			for (int k = -1; k < 4; k++) {
				tree_join(bdf, sizeof(bdf), "0000:%02x:%02x.0",
					machine_bus(sw) + (k < 0 ? 1 : 2), k < 0 ? 0 : (unsigned)k);
				machine_config(&x.tree, bdf, MACHINE_CONTROL,
					wrong && sw == 0 ? 0x1d : 0x5d, 0);
			}
		open_node(&x);
		run_all(&x);
		is(&x, "pci.acs_baremetal", "skip");
		is(&x, "pci.acs_ats_vmhost", wrong ? "fail" : "pass");
		is(&x, "ib.pkey/gid", wrong ? "fail" : "pass");
		is(&x, "roce.pfc", wrong ? "warn" : "pass");
		note(seen_all(state), &x);
		examined_end(&x);
	}
}

/* One NIC of eight is set otherwise: it is named, and the seven are not. */
static void odd_one(void **state)
{
	static const struct machine m = MACHINE("odd");
	struct examined x;
	(void)state;
	tree_begin(&x, &m);
	tree_file(&x.tree, "/sys/class/infiniband/mlx5_6", "fw_ver", "28.36.1010\n");
	set_port(&x.tree, 3, "pkeys/0", "0x8001\n");
	open_node(&x);
	run_all(&x);
	for (int i = 0; i < 8; i++) {
		char at[16];
		snprintf(at, sizeof(at), "mlx5_%d", i);
		assert_string_equal(state_at(&x, "ib.fw_uniform", at), i == 6 ? "warn" : "pass");
		assert_string_equal(state_at(&x, "ib.pkey/gid", at), i == 3 ? "warn" : "pass");
	}
	examined_end(&x);

	/* Half and half: nobody is the rule, both are named. */
	tree_begin(&x, &m);
	for (int i = 0; i < 4; i++)
		set_port(&x.tree, i, "pkeys/0", "0x8001\n");
	open_node(&x);
	run_all(&x);
	assert_string_equal(state_at(&x, "ib.pkey/gid", "mlx5_0"), "warn");
	assert_string_equal(state_at(&x, "ib.pkey/gid", "mlx5_7"), "warn");
	examined_end(&x);
}

/* GPUs whose own NICs are gone: far ones, and too few near ones. */
static void far_nics(void **state)
{
	static const struct machine m = {"far", 4, 7, 0, -1};
	struct examined x;
	tree_begin(&x, &m);
	open_node(&x);
	run_all(&x);
	is(&x, "gpu.nic_path", "pass");
	is(&x, "gpu.nic_balance", "warn");
	says(&x, "gpu.nic_balance", "GPU1");
	note(seen_all(state), &x);
	examined_end(&x);

	tree_begin(&x, &m);
	set(&x.tree, true, 1, "class", "0x010802\n"); /* the other one is no NIC any more */
	char path[96];
	tree_join(path, sizeof(path), "%s/sys/class/infiniband/mlx5_1", x.tree.dir);
	unlink(path);
	open_node(&x);
	run_all(&x);
	is(&x, "gpu.nic_path", "warn");
	says(&x, "gpu.nic_path", "NODE");
	note(seen_all(state), &x);
	examined_end(&x);
}

/* A GPU's slow link is judged by what it is doing. */
static void idle_gpus(void **state)
{
	static const struct machine m = MACHINE("idle");
	static const struct {
		const char *from, *to, *state;
	} cases[] = {{"Performance State                     : P0",
			     "Performance State                     : P8", "info"},
		{"Gpu                               : 0 %",
			"Gpu                               : 97 %", "fail"},
		{NULL, NULL, "warn"}};
	for (size_t i = 0; i < 3; i++) {
		struct examined x;
		tree_begin(&x, &m);
		set(&x.tree, false, 0, "current_link_speed", "2.5 GT/s PCIe\n");
		if (cases[i].from)
			change(&x.tree, "/nvidia-smi-q.txt", cases[i].from, cases[i].to);
		else
			tree_write(&x.tree, "/nvidia-smi-q.txt", "");
		open_node(&x);
		run_all(&x);
		assert_string_equal(state_at(&x, "pci.link_speed", "GPU0"), cases[i].state);
		note(seen_all(state), &x);
		examined_end(&x);
	}
}

/* ---- recorded nodes -------------------------------------------------------------------------- */

/* Meta's labelled recordings, each a list of files. */
static void unpack(const struct test_tree *tree, const char *name)
{
	char path[256], *text = NULL;
	size_t len = 0;
	struct fb_err e = {0};
	const char *file;
	json_t *value;
	tree_join(path, sizeof(path), "topo/node/testdata/gcm-%s.json", name);
	if (fb_read_file(path, 1u << 20, &text, &len, &e) != 0)
		fail_msg("%s", e.msg);
	json_t *files = fb_json_parse(text, len, path, &e);
	assert_non_null(files);
	json_object_foreach (files, file, value) {
		char device[16], link[96], to[128];
		const char *at = strstr(file, "/infiniband/");
		tree_write(tree, file, json_string_value(value));
		if (!at || !strstr(file, "/node_type"))
			continue;
		tree_join(device, sizeof(device), "%.*s", (int)strcspn(at + 12, "/"), at + 12);
		tree_join(link, sizeof(link), "/sys/class/infiniband/%s", device);
		tree_join(to, sizeof(to), "%.*s/%s", (int)(at + 11 - file), file, device);
		tree_link(tree, link, to);
		tree_join(link, sizeof(link), "%s/device", to);
		tree_join(to, sizeof(to), "%.*s", (int)(at - file), file);
		tree_link(tree, link, to);
	}
	json_decref(files);
	free(text);
}

/* Right readings: MANIFEST of the recordings: healthy; LINK_RATE_MISMATCH; stuck in INIT. */
static void recorded(void **state)
{
	static const struct {
		const char *name, *state, *rate, *bad;
	} cases[] = {{"learn_good", "pass", "pass", NULL},
		{"learn_ib_intf_bad_rate", "pass", "fail", "mlx5_0"},
		{"learn_stuck_ib_intf", "fail", "skip", "mlx5_8"}};
	for (size_t i = 0; i < 3; i++) {
		struct examined x;
		struct fb_err e = {0};
		tree_begin(&x, NULL);
		unpack(&x.tree, cases[i].name);
		open_node(&x);
		if (node_expect_read("dgx-a100", &x.node.expect, &e) != 0)
			fail_msg("%s", e.msg);
		run_all(&x);
		is(&x, "inv.nic_count", "pass");
		if (!cases[i].bad) {
			/* The others do not tell links. */
			assert_string_equal(state_at(&x, "pci.link_width", "mlx5_8"), "pass");
			is(&x, "ib.port_state", "pass");
			is(&x, "ib.rate", "pass");
		} else {
			assert_string_equal(
				state_at(&x, "ib.port_state", cases[i].bad), cases[i].state);
			assert_string_equal(state_at(&x, "ib.rate", cases[i].bad), cases[i].rate);
		}
		if (i == 2)
			assert_string_equal(state_at(&x, "ib.port_state", "mlx5_0"), "pass");
		note(seen_all(state), &x);
		examined_end(&x);
	}
}

/* ---- windows --------------------------------------------------------------------------------- */

static void rising_counters(void **state)
{
	static const struct machine m = MACHINE("rising");
	struct examined x;
	tree_begin(&x, &m);
	set_port(&x.tree, 0, "counters/symbol_error", "5\n");
	open_node(&x);
	node_watch(&x.node, 1000000);
	set_port(&x.tree, 0, "counters/symbol_error", "6\n");
	set_port(&x.tree, 1, "hw_counters/local_ack_timeout_err", "1\n");
	set(&x.tree, true, 2, "aer_dev_nonfatal", "DLP 1\nTOTAL_ERR_NONFATAL 1\n");
	run_all(&x);
	assert_string_equal(state_at(&x, "ib.counters", "mlx5_0"), "fail");
	assert_string_equal(state_at(&x, "ib.counters", "mlx5_1"), "pass");
	assert_string_equal(state_at(&x, "ib.hw_counters", "mlx5_1"), "warn");
	assert_string_equal(state_at(&x, "pci.aer", "mlx5_2"), "fail");
	assert_string_equal(state_at(&x, "pci.aer", "mlx5_0"), "pass");
	note(seen_all(state), &x);
	examined_end(&x);
}

/* What only root may read was not recorded: that is no pass. */
static void not_root(void **state)
{
	static const struct machine m = MACHINE("user");
	struct examined x;
	char bdf[16], path[128];
	tree_begin(&x, &m);
	for (int i = 0; i < 8; i++) {
		tree_join(path, sizeof(path), "/sys/bus/pci/devices/%s/config",
			machine_bdf(true, i, bdf));
		machine_bytes(&x.tree, path, (const uint8_t *)"\xb3\x15\x21\x10", 4);
	}
	open_node(&x);
	run_all(&x);
	is(&x, "pci.mrrs", "skip");
	says(&x, "pci.mrrs", "only root");
	note(seen_all(state), &x);
	examined_end(&x);
}

static void all_states_seen(void **state)
{
	const struct seen *seen = seen_all(state);
	for (size_t i = 0; node_checks[i].def.id; i++) {
		const struct fb_check_def *d = &node_checks[i].def;
		bool judges = strcmp(d->id, "ib.role") != 0; /* it only tells */
		if (!seen[i].good || (judges && !seen[i].bad) || !seen[i].skip)
			fail_msg("%s: seen good %d, bad %d, skip %d", d->id, seen[i].good,
				seen[i].bad, seen[i].skip);
		assert_true(d->title && d->needs && d->rule && d->remedy && d->source);
	}
}

int main(void)
{
	static struct seen seen[MAX_CHECKS];
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(good, seen),
		cmocka_unit_test_prestate(bad, seen),
		cmocka_unit_test_prestate(bare, seen),
		cmocka_unit_test_prestate(roce_on_vm_host, seen),
		cmocka_unit_test(odd_one),
		cmocka_unit_test_prestate(far_nics, seen),
		cmocka_unit_test_prestate(idle_gpus, seen),
		cmocka_unit_test_prestate(recorded, seen),
		cmocka_unit_test_prestate(rising_counters, seen),
		cmocka_unit_test_prestate(not_root, seen),
		cmocka_unit_test_prestate(all_states_seen, seen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
