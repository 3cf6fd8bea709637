// SPDX-License-Identifier: Apache-2.0
/*
 * What nvidia-smi prints, in the words of old and new drivers; what is none of it; and machine.ini,
 * of which every mistake is told with its line.
 */
#include "bench/core/test.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/core/json.h"
#include "topo/node/expect.h"
#include "topo/node/gpu.h"

/* ---- nvidia-smi ------------------------------------------------------------------------------ */

static void recorded_links(void **state)
{
	char *text = NULL;
	size_t len = 0;
	struct fb_err e = {0};
	struct gpu_facts g = {.n = 0};
	(void)state;
	if (fb_read_file(FB_TESTDATA("topo/node", "nvlink-a100.txt"), 1u << 20, &text, &len, &e))
		fail_msg("%s", e.msg);
	assert_int_equal(gpu_parse_nvlink(text, &g), 0);
	assert_int_equal(g.n, 8);
	for (size_t i = 0; i < g.n; i++) {
		assert_int_equal(g.gpu[i].links, 12);
		assert_int_equal(g.gpu[i].links_down, 0);
	}
	gpu_facts_free(&g);
	free(text);
}

/* Before Ampere and before driver 510: other words, totals of their own, pages instead of rows. */
static const char old_q[] = "==============NVSMI LOG==============\n"
			    "\n"
			    "Driver Version                            : 450.80.02\n"
			    "Attached GPUs                             : 2\n"
			    "GPU 00000000:3B:00.0\n"
			    "    Product Name                          : Tesla V100-SXM2-32GB\n"
			    "    Performance State                     : P0\n"
			    "    Clocks Throttle Reasons\n"
			    "        Idle                              : Not Active\n"
			    "        SW Power Cap                      : Active\n"
			    "        HW Slowdown                       : Active\n"
			    "            HW Thermal Slowdown           : Not Active\n"
			    "            HW Power Brake Slowdown       : Active\n"
			    "    FB Memory Usage\n"
			    "        Total                             : 32510 MiB\n"
			    "    Utilization\n"
			    "        Gpu                               : 42 %\n"
			    "    Ecc Mode\n"
			    "        Current                           : Disabled\n"
			    "        Pending                           : Enabled\n"
			    "    ECC Errors\n"
			    "        Volatile\n"
			    "            Single Bit\n"
			    "                Device Memory             : 3\n"
			    "                Register File             : 1\n"
			    "                Total                     : 4\n"
			    "            Double Bit\n"
			    "                Device Memory             : 1\n"
			    "                Total                     : 1\n"
			    "        Aggregate\n"
			    "            Single Bit\n"
			    "                Total                     : 9\n"
			    "            Double Bit\n"
			    "                Total                     : N/A\n"
			    "    Retired Pages\n"
			    "        Single Bit ECC                    : 0\n"
			    "        Pending Page Blacklist            : Yes\n"
			    "    Remapped Rows                         : N/A\n"
			    "    Power Readings\n"
			    "        Power Draw                        : 40.00 W\n"
			    "        Power Limit                       : 250.00 W\n"
			    "        Default Power Limit               : 300.00 W\n"
			    "        Enforced Power Limit              : 250.00 W\n"
			    "GPU 00000001:00:00.0\n"
			    "    Product Name                          : Tesla V100-SXM2-32GB\n"
			    "    Fabric\n"
			    "        State                             : N/A\n"
			    "        Status                            : N/A\n";

static void old_words(void **state)
{
	struct gpu_facts g = {.n = 0};
	(void)state;
	assert_int_equal(gpu_parse_q(old_q, &g), 0);
	assert_int_equal(g.n, 2);
	const struct gpu_fact *f = &g.gpu[0];
	assert_string_equal(g.driver, "450.80.02");
	assert_string_equal(f->bdf, "0000:3b:00.0");
	assert_string_equal(g.gpu[1].bdf, "0001:00:00.0");
	assert_int_equal(
		f->throttle, GPU_HELD_SW_POWER | GPU_HELD_HW_SLOWDOWN | GPU_HELD_POWER_BRAKE);
	assert_int_equal(f->pstate, 0);
	assert_int_equal(f->util, 42);
	assert_int_equal(f->ecc, 0);
	assert_int_equal(f->ecc_pending, 1);
	assert_int_equal(f->errors[GPU_CORRECTED_VOLATILE], 4);
	assert_int_equal(f->errors[GPU_UNCORRECTED_VOLATILE], 1);
	assert_int_equal(f->errors[GPU_CORRECTED_AGGREGATE], 9);
	assert_int_equal(f->errors[GPU_UNCORRECTED_AGGREGATE], -1);
	assert_int_equal(f->retired_pending, 1);
	assert_int_equal(f->remap_failed, -1);
	assert_true(f->power_limit == 250 && f->power_default == 300);
	assert_true(f->memory == 32510ll << 20);
	assert_int_equal(f->fabric, GPU_FABRIC_UNKNOWN);
	assert_int_equal(g.gpu[1].fabric, GPU_FABRIC_NONE);
	assert_int_equal(g.gpu[1].throttle, -1);
	gpu_facts_free(&g);
}

static void no_text_of_nvidia_smi(void **state)
{
	static const char *const texts[] = {
		"", "NVIDIA-SMI has failed: the driver does not answer.\n", "GPU 0\n"};
	struct gpu_facts g = {.n = 0};
	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(gpu_parse_q(texts[i], &g), -EINVAL);
		assert_int_equal(gpu_parse_nvlink(texts[i], &g), -EINVAL);
	}
	assert_int_equal(g.n, 0);
	/* One GPU too many is no machine. */
	assert_int_equal(gpu_parse_nvlink("GPU 4000000000: x\n", &g), -EFBIG);
	gpu_facts_free(&g);
}

static void addresses(void **state)
{
	char bdf[24];
	(void)state;
	assert_true(gpu_bdf("00000000:3B:00.0", bdf, sizeof(bdf)));
	assert_string_equal(bdf, "0000:3b:00.0");
	assert_true(gpu_bdf("0001a2b3:07:1f.7", bdf, sizeof(bdf)));
	assert_string_equal(bdf, "1a2b3:07:1f.7");
	assert_false(gpu_bdf("GPU", bdf, sizeof(bdf)));
	assert_false(gpu_bdf("0000:3b:00", bdf, sizeof(bdf)));
	assert_false(gpu_bdf("0000:3b:00.9", bdf, sizeof(bdf)));
}

/* ---- NVML ------------------------------------------------------------------------------------ */

/*
 * A library of our own with NVML's names, in this program: GPU 0 is well, GPU 1 is not, and of GPU
 * 2 nothing is supported. What a real driver answers is not proven by it, only that answers are
 * kept apart and put where they belong.
 */
#define FAKE __attribute__((visibility("default"), used)) int
typedef void *device;
static atomic_bool stuck;

FAKE nvmlInit_v2(void);
FAKE nvmlInit_v2(void)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	while (atomic_load(&stuck))
		nanosleep(&nap, NULL);
	return 0;
}
FAKE nvmlShutdown(void);
FAKE nvmlShutdown(void)
{
	return 0;
}
FAKE nvmlSystemGetDriverVersion(char *text, unsigned len);
FAKE nvmlSystemGetDriverVersion(char *text, unsigned len)
{
	snprintf(text, len, "999.1");
	return 0;
}
FAKE nvmlDeviceGetCount_v2(unsigned *n);
FAKE nvmlDeviceGetCount_v2(unsigned *n)
{
	*n = 3;
	return 0;
}
static char handles[3];
FAKE nvmlDeviceGetHandleByIndex_v2(unsigned i, device *d);
FAKE nvmlDeviceGetHandleByIndex_v2(unsigned i, device *d)
{
	*d = &handles[i];
	return 0;
}
static int index_of(device d)
{
	return (int)((char *)d - handles);
}
struct fake_pci {
	char legacy[16];
	unsigned numbers[5];
	char bus_id[32];
};
FAKE nvmlDeviceGetPciInfo_v3(device d, struct fake_pci *p);
FAKE nvmlDeviceGetPciInfo_v3(device d, struct fake_pci *p)
{
	snprintf(p->bus_id, sizeof(p->bus_id), "00000000:%02X:00.0", 0x1a + index_of(d));
	return 0;
}
FAKE nvmlDeviceGetEccMode(device d, int *now, int *later);
FAKE nvmlDeviceGetEccMode(device d, int *now, int *later)
{
	*now = 1;
	*later = index_of(d) == 0;
	return index_of(d) == 2 ? 3 : 0; /* not supported */
}
FAKE nvmlDeviceGetTotalEccErrors(device d, int type, int counter, unsigned long long *v);
FAKE nvmlDeviceGetTotalEccErrors(device d, int type, int counter, unsigned long long *v)
{
	*v = (unsigned long long)index_of(d) * (unsigned)(1 + type + 10 * counter);
	return index_of(d) == 2 ? 3 : 0;
}
FAKE nvmlDeviceGetRemappedRows(
	device d, unsigned *corr, unsigned *uncorr, unsigned *pending, unsigned *failed);
FAKE nvmlDeviceGetRemappedRows(
	device d, unsigned *corr, unsigned *uncorr, unsigned *pending, unsigned *failed)
{
	*corr = *uncorr = *pending = 0;
	*failed = (unsigned)index_of(d);
	return index_of(d) == 2 ? 3 : 0;
}
FAKE nvmlDeviceGetCurrentClocksThrottleReasons(device d, unsigned long long *why);
FAKE nvmlDeviceGetCurrentClocksThrottleReasons(device d, unsigned long long *why)
{
	*why = index_of(d) ? 0x40 | 0x80 : 0x01;
	return 0;
}
FAKE nvmlDeviceGetNvLinkState(device d, unsigned link, int *up);
FAKE nvmlDeviceGetNvLinkState(device d, unsigned link, int *up)
{
	*up = !(index_of(d) == 1 && link == 4);
	return index_of(d) == 2 ? 3 : link < 18 ? 0 : 2;
}

static void asked(void **state)
{
	struct gpu_facts g = {.n = 0};
	void *self = dlopen(NULL, RTLD_NOW);
	(void)state;
	assert_non_null(self);
	gpu_facts_ask(self, 10000, &g);
	assert_true(g.told);
	assert_int_equal(g.n, 3);
	assert_string_equal(g.driver, "999.1");
	assert_string_equal(g.gpu[2].bdf, "0000:1c:00.0");
	assert_int_equal(g.gpu[0].links, 18);
	assert_int_equal(g.gpu[0].links_down, 0);
	assert_int_equal(g.gpu[1].links, 17);
	assert_int_equal(g.gpu[1].links_down, 1);
	assert_int_equal(g.gpu[2].links, -1);
	assert_int_equal(g.gpu[0].throttle, GPU_HELD_IDLE);
	assert_int_equal(g.gpu[1].throttle, GPU_HELD_HW_THERMAL | GPU_HELD_POWER_BRAKE);
	assert_int_equal(g.gpu[1].ecc, 1);
	assert_int_equal(g.gpu[1].ecc_pending, 0);
	assert_int_equal(g.gpu[1].errors[GPU_CORRECTED_VOLATILE], 1);
	assert_int_equal(g.gpu[1].errors[GPU_UNCORRECTED_VOLATILE], 2);
	assert_int_equal(g.gpu[1].errors[GPU_CORRECTED_AGGREGATE], 11);
	assert_int_equal(g.gpu[1].errors[GPU_UNCORRECTED_AGGREGATE], 12);
	assert_int_equal(g.gpu[1].remap_failed, 1);
	assert_int_equal(g.gpu[2].ecc, -1);
	assert_int_equal(g.gpu[2].errors[GPU_UNCORRECTED_VOLATILE], -1);
	/* Calls that this library does not have. */
	assert_int_equal(g.gpu[0].pstate, -1);
	assert_int_equal(g.gpu[0].fabric, GPU_FABRIC_UNKNOWN);
	assert_true(g.gpu[0].power_limit < 0);
	gpu_facts_free(&g);
}

static void stuck_driver(void **state)
{
	struct gpu_facts g = {.n = 0};
	(void)state;
	atomic_store(&stuck, true);
	gpu_facts_ask(dlopen(NULL, RTLD_NOW), 50, &g);
	assert_int_equal(g.n, 0);
	assert_false(g.told);
	assert_non_null(strstr(g.why, "did not answer within 50 ms"));
	/* Let the thread that was left behind end before the program does. */
	atomic_store(&stuck, false);
	gpu_facts_ask(dlopen(NULL, RTLD_NOW), 10000, &g);
	assert_int_equal(g.n, 3);
	gpu_facts_free(&g);
}

/* ---- machine.ini ----------------------------------------------------------------------------- */

static void expectation(void **state)
{
	static const char text[] = "# a comment\n"
				   "[machine]\n"
				   "name = Some machine\n"
				   "gpus = 8\n"
				   "nic-rate = 400Gb/s\n"
				   "gpu-link = 32 GT/s x16\n"
				   "gpu-nic-path = NODE\n"
				   "memory = 2T\n"
				   "ecc = yes\n"
				   "fabric = cluster\n"
				   "place = vm-host\n"
				   "[gpu 00000000:07:00.0]\n"
				   "slot = GPU_0\n"
				   "numa = 3\n"
				   "[nic 0000:0C:00.0]\n"
				   "link = 16.0 GT/s x8\n"
				   "rate = 200Gb/s\n";
	struct node_expect x;
	struct fb_err e = {0};
	(void)state;
	if (node_expect_parse(text, strlen(text), "machine.ini", &x, &e) != 0)
		fail_msg("%s", e.msg);
	assert_int_equal(x.gpus, 8);
	assert_int_equal(x.nics, 1); /* those that are named */
	assert_int_equal(x.nvlinks, -1);
	assert_true(x.nic_rate_bps == 400000000000ull);
	assert_true(x.gpu_link.gts == 32 && x.gpu_link.width == 16);
	assert_int_equal(x.gpu_nic_path, TOPO_PATH_NODE);
	assert_true(x.memory == 2ull << 40);
	assert_int_equal(x.ecc, 1);
	assert_int_equal(x.fabric, EXPECT_FABRIC_CLUSTER);
	assert_int_equal(x.place, EXPECT_PLACE_HOST);
	const struct expect_dev *d = node_expect_find(&x, "0000:07:00.0");
	assert_true(d && !d->nic && d->numa == 3);
	d = node_expect_find(&x, "0000:0c:00.0");
	assert_true(d && d->nic && d->link.gts == 16 && d->link.width == 8 && d->numa == -1);
	node_expect_free(&x);
}

static void expectation_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {{"", "says nothing"}, {"[machine]\ngpu = 8\n", ":2: there is no key \"gpu\""},
		{"[machine]\ngpus = 8\ngpus = 8\n", ":3: gpus stands twice"},
		{"[machine]\ngpus = many\n", ":2: gpus = many: it may be a number from 0 to 256"},
		{"[machine]\ngpus = -1\n", "gpus = -1"}, {"gpus = 8\n", "keys stand in [machine]"},
		{"[gpus]\nnuma = 1\n", "[gpus]"},
		{"[gpu 7]\nnuma = 1\n", "a PCI address such as 0000:3b:00.0"},
		{"[gpu 0000:07:00.0]\nrate = 5\n[nic 0000:07:00.0]\nnuma = 1\n", "rate = 5"},
		{"[gpu 0000:07:00.0]\nnuma = 1\n[nic 0000:07:00.0]\nnuma = 1\n",
			"both gpu and nic"},
		{"[machine]\ngpu-link = 32 x16\n", "a link such as 32 GT/s x16"},
		{"[machine]\ngpu-link = 32 GT/s x16 or so\n", "a link such as"},
		{"[machine]\ngpu-nic-path = NV\n", "PIX, PXB, PHB, NODE or SYS"},
		{"[machine]\nmemory = 0\n", "a size such as 2T"},
		{"[machine]\nmemory = 99999999T\n", "a size such as 2T"},
		{"[machine]\necc = maybe\n", "yes or no"},
		{"[machine]\ngpus = 0\n[gpu 0000:07:00.0]\nnuma = 1\n",
			"gpus = 0, and 1 sections"}};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct node_expect x;
		struct fb_err e = {0};
		int rc = node_expect_parse(cases[i].text, strlen(cases[i].text), "m.ini", &x, &e);
		if (rc >= 0 || e.exit != FB_EXIT_USAGE || !strstr(e.msg, cases[i].says))
			fail_msg("\"%s\" gives %d, \"%s\"", cases[i].text, rc, e.msg);
	}
}

static void shipped_expectations(void **state)
{
	static const struct {
		const char *name;
		int gpus, nvlinks, fabric;
	} all[] = {{"hgx-a100", 8, 12, EXPECT_FABRIC_ANY}, {"dgx-a100", 8, 12, EXPECT_FABRIC_ANY},
		{"hgx-h100", 8, 18, EXPECT_FABRIC_YES}, {"dgx-h100", 8, 18, EXPECT_FABRIC_YES},
		{"hgx-h200", 8, 18, EXPECT_FABRIC_YES}, {"dgx-h200", 8, 18, EXPECT_FABRIC_YES},
		{"hgx-b200", 8, 18, EXPECT_FABRIC_YES}, {"dgx-b200", 8, 18, EXPECT_FABRIC_YES},
		{"gb200-nvl72", 4, 18, EXPECT_FABRIC_CLUSTER}};
	struct node_expect x;
	struct fb_err e = {0};
	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (node_expect_read(all[i].name, &x, &e) != 0)
			fail_msg("%s", e.msg);
		assert_int_equal(x.gpus, all[i].gpus);
		assert_int_equal(x.nvlinks, all[i].nvlinks);
		assert_int_equal(x.fabric, all[i].fabric);
		assert_true(x.source[0] != '\0');
		node_expect_free(&x);
	}
	assert_int_equal(node_expect_read("hgx-h1000", &x, &e), -ENOENT);
	assert_non_null(strstr(e.hint, "hgx-h100"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recorded_links),
		cmocka_unit_test(old_words),
		cmocka_unit_test(no_text_of_nvidia_smi),
		cmocka_unit_test(addresses),
		cmocka_unit_test(asked),
		cmocka_unit_test(stuck_driver),
		cmocka_unit_test(expectation),
		cmocka_unit_test(expectation_refused),
		cmocka_unit_test(shipped_expectations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
