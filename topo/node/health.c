// SPDX-License-Identifier: Apache-2.0
/*
 * What the GPU driver and the kernel log tell of GPUs: memory errors, Xids, remapped rows, what
 * holds clocks back, power limits, and whether each has joined its NVLink fabric.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/node/node_priv.h"

/* Corrected errors since the driver was loaded beyond which a board is worn: Azure's node checks.
 */
#define MANY_CORRECTED 20000000

typedef void (*judge_gpu)(struct node_run *c, const struct gpu_fact *g, struct fb_finding *f);

static void subject_of(const struct node *n, size_t i, char *buf, size_t len)
{
	const struct gpu_fact *g = &n->gpus.gpu[i];
	for (size_t k = 0; k < n->n_dev; k++)
		if (n->dev[k].gpu >= 0 && n->dev[k].pci >= 0 &&
			strcmp(n->t->pci[n->dev[k].pci].bdf, g->bdf) == 0) {
			snprintf(buf, len, "%s", n->dev[k].subject);
			return;
		}
	snprintf(buf, len, "GPU%zu%s%s%s", i, g->bdf[0] ? " (" : "", g->bdf, g->bdf[0] ? ")" : "");
}

static void each_gpu(struct node_run *c, judge_gpu judge)
{
	struct node *n = c->n;
	if (n->gpus.n == 0) {
		node_skip(c, "%s",
			n->t->n_gpus == 0 ? "not available: no GPU here"
			: n->gpus.why[0]  ? n->gpus.why
					  : "not available: the GPU driver tells nothing");
		return;
	}
	for (size_t i = 0; i < n->gpus.n; i++) {
		char subject[96];
		subject_of(n, i, subject, sizeof(subject));
		struct fb_finding f = node_finding(c, subject);
		fb_find_read(&f, "%s", n->gpus.read);
		judge(c, &n->gpus.gpu[i], &f);
		node_emit(c, &f);
	}
}

static void judge_ecc(struct node_run *c, const struct gpu_fact *g, struct fb_finding *f)
{
	int want = c->n->expect.ecc;
	int64_t volatile_bad = g->errors[GPU_UNCORRECTED_VOLATILE];
	int64_t ever = g->errors[GPU_UNCORRECTED_AGGREGATE];
	int64_t corrected = g->errors[GPU_CORRECTED_VOLATILE];
	fb_find_expected(f, want >= 0 ? c->n->expect.path : "memory errors must be seen",
		"ECC %s, no uncorrected error", want == 0 ? "off" : "on");
	if (g->ecc < 0 && volatile_bad < 0) {
		fb_find(f, FB_CHECK_SKIP, "not available: this GPU tells no ECC");
		return;
	}
	bool wrong = g->ecc >= 0 && want >= 0 && g->ecc != want;
	bool off = g->ecc == 0 && want < 0;
	bool pending = g->ecc >= 0 && g->ecc_pending >= 0 && g->ecc != g->ecc_pending;
	fb_find(f,
		volatile_bad > 0 || wrong                                  ? FB_CHECK_FAIL
		: off || pending || ever > 0 || corrected > MANY_CORRECTED ? FB_CHECK_WARN
									   : FB_CHECK_PASS,
		"ECC %s%s; uncorrected %lld now, %lld ever; corrected %lld now",
		g->ecc == 1   ? "on"
		: g->ecc == 0 ? "off"
			      : "not told",
		pending ? " until the next reset" : "",
		(long long)(volatile_bad < 0 ? 0 : volatile_bad), (long long)(ever < 0 ? 0 : ever),
		(long long)(corrected < 0 ? 0 : corrected));
	if (wrong || off)
		fb_find_remedy(f, "resets the GPU", "nvidia-smi -i %s -e %d; nvidia-smi -r -i %s",
			g->bdf, want != 0, g->bdf);
}

void node_gpu_ecc(struct node_run *c)
{
	each_gpu(c, judge_ecc);
}

static void judge_remap(struct node_run *c, const struct gpu_fact *g, struct fb_finding *f)
{
	fb_find_expected(f, "NVIDIA GPU memory error management", "nothing pending, no failure");
	if (g->remap_failed < 0 && g->remap_pending < 0 && g->retired_pending < 0) {
		fb_find(f, FB_CHECK_SKIP,
			"not available: this GPU tells neither remapped rows nor "
			"retired pages");
		return;
	}
	bool pending = g->remap_pending == 1 || g->retired_pending == 1;
	fb_find(f,
		g->remap_failed == 1 ? FB_CHECK_FAIL
		: pending            ? FB_CHECK_WARN
				     : FB_CHECK_PASS,
		"remapped rows: %lld after uncorrected errors, %lld after corrected ones%s%s",
		(long long)(g->remap_uncorrected < 0 ? 0 : g->remap_uncorrected),
		(long long)(g->remap_corrected < 0 ? 0 : g->remap_corrected),
		pending ? "; one waits for a reset" : "",
		g->remap_failed == 1 ? "; remapping failed: no spare row is left" : "");
	if (g->remap_failed == 1)
		fb_find_remedy(f, "the node leaves service", "replace the GPU (RMA)");
}

void node_gpu_remap(struct node_run *c)
{
	each_gpu(c, judge_remap);
}

static void judge_throttle(struct node_run *c, const struct gpu_fact *g, struct fb_finding *f)
{
	static const struct {
		int bit;
		const char *name;
	} reasons[] = {{GPU_HELD_HW_THERMAL, "hardware: heat"},
		{GPU_HELD_POWER_BRAKE, "hardware: the power brake"},
		{GPU_HELD_HW_SLOWDOWN, "hardware slowdown"}, {GPU_HELD_SW_THERMAL, "driver: heat"},
		{GPU_HELD_SW_POWER, "driver: power limit"}, {GPU_HELD_IDLE, "idle"}};
	const int hard = GPU_HELD_HW_THERMAL | GPU_HELD_POWER_BRAKE | GPU_HELD_HW_SLOWDOWN;
	char text[160] = "";
	size_t at = 0;
	fb_find_expected(f, "NVML, clocks' event reasons", "neither heat nor the power brake");
	if (g->throttle < 0) {
		fb_find(f, FB_CHECK_SKIP, "not available: this GPU tells no reasons");
		return;
	}
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]) && at < sizeof(text); i++)
		if (g->throttle & reasons[i].bit)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", at ? ", " : "",
				reasons[i].name);
	/* At its power limit a GPU may well be: that is gpu.power_cap's matter. */
	fb_find(f,
		g->throttle & hard                  ? FB_CHECK_FAIL
		: g->throttle & GPU_HELD_SW_THERMAL ? FB_CHECK_WARN
						    : FB_CHECK_PASS,
		"%s", at ? text : "nothing holds the clocks back");
}

void node_gpu_throttle(struct node_run *c)
{
	each_gpu(c, judge_throttle);
}

static void judge_power(struct node_run *c, const struct gpu_fact *g, struct fb_finding *f)
{
	struct node *n = c->n;
	double want = n->expect.power_cap, most = 0;
	if (g->power_limit < 0) {
		fb_find(f, FB_CHECK_SKIP, "not available: this GPU tells no power limit");
		return;
	}
	for (size_t i = 0; i < n->gpus.n; i++)
		if (n->gpus.gpu[i].power_limit > most)
			most = n->gpus.gpu[i].power_limit;
	bool given = want >= 0;
	const char *source = given ? n->expect.path : "the board's default";
	if (!given && g->power_default > 0) {
		want = g->power_default;
	} else if (!given) {
		want = most;
		source = "the other GPUs of this node";
	}
	bool low = g->power_limit < want - 0.5;
	bool uneven = !low && g->power_limit < most - 0.5;
	fb_find(f,
		low && given    ? FB_CHECK_FAIL
		: low || uneven ? FB_CHECK_WARN
				: FB_CHECK_PASS,
		"%.0f W%s", g->power_limit, uneven ? "; others of this node may take more" : "");
	fb_find_expected(f, source, "%.0f W", uneven ? most : want);
	if (low)
		fb_find_remedy(f, NULL, "nvidia-smi -i %s -pl %.0f", g->bdf, want);
}

void node_gpu_power_cap(struct node_run *c)
{
	each_gpu(c, judge_power);
}

static void judge_fabric(struct node_run *c, const struct gpu_fact *g, struct fb_finding *f)
{
	static const char *const words[] = {"on none", "not started", "in progress", "completed"};
	int want = c->n->expect.fabric;
	bool cluster = want == EXPECT_FABRIC_CLUSTER;
	fb_find_expected(f, want >= 0 ? c->n->expect.path : "the fabric manager",
		want == EXPECT_FABRIC_NO ? "on none"
		: cluster ? "completed, Success, and a cluster's UUID that is not zero"
			  : "completed, Success");
	if (g->fabric == GPU_FABRIC_UNKNOWN ||
		(g->fabric == GPU_FABRIC_NONE && want == EXPECT_FABRIC_ANY)) {
		fb_find(f, FB_CHECK_SKIP, "not available: this GPU is on no NVLink fabric");
		return;
	}
	if (g->fabric == GPU_FABRIC_NONE) {
		fb_find(f, want == EXPECT_FABRIC_NO ? FB_CHECK_PASS : FB_CHECK_FAIL, "on none");
		return;
	}
	/* What is good is asserted; what is bad is not listed: there are always new words for it.
	 */
	bool good = g->fabric == GPU_FABRIC_COMPLETED &&
		    (!g->fabric_status[0] || strcmp(g->fabric_status, "Success") == 0) &&
		    (!cluster || g->cluster_zero == 0);
	fb_find(f, good ? FB_CHECK_PASS : FB_CHECK_FAIL, "%s%s%s%s", words[g->fabric],
		g->fabric_status[0] ? ", " : "", g->fabric_status,
		cluster && g->cluster_zero != 0 ? ", no cluster's UUID" : "");
}

void node_gpu_fabric_state(struct node_run *c)
{
	each_gpu(c, judge_fabric);
}

/* ---- Xids ------------------------------------------------------------------------------------ */

/* NVIDIA, "XID Errors": those that are the hardware's or end the GPU's service; what an
 * application's mistake causes too is told only. */
static const struct xid {
	int code;
	enum fb_check_state state;
	const char *what;
} xids[] = {
	{13, FB_CHECK_INFO, "graphics engine exception: mostly an application's"},
	{31, FB_CHECK_INFO, "memory page fault: mostly an application's"},
	{43, FB_CHECK_INFO, "an application was stopped"},
	{45, FB_CHECK_INFO, "clean-up after another error"},
	{48, FB_CHECK_FAIL, "double bit ECC error"},
	{61, FB_CHECK_FAIL, "internal micro-controller halt"},
	{62, FB_CHECK_FAIL, "internal micro-controller halt"},
	{63, FB_CHECK_WARN, "a row was remapped: reset the GPU"},
	{64, FB_CHECK_FAIL, "remapping a row failed"},
	{69, FB_CHECK_INFO, "graphics engine exception"},
	{74, FB_CHECK_FAIL, "NVLink error"},
	{79, FB_CHECK_FAIL, "the GPU has fallen off the bus"},
	{92, FB_CHECK_WARN, "many single bit ECC errors"},
	{94, FB_CHECK_WARN, "contained memory error: the application died, reset the GPU"},
	{95, FB_CHECK_FAIL, "uncontained memory error"},
	{109, FB_CHECK_WARN, "context switch timed out"},
	{119, FB_CHECK_FAIL, "GSP timed out"},
	{120, FB_CHECK_FAIL, "GSP error"},
	{121, FB_CHECK_WARN, "C2C link error, corrected"},
	{136, FB_CHECK_FAIL, "link training failed"},
	{140, FB_CHECK_FAIL, "unrecovered ECC error"},
	{143, FB_CHECK_FAIL, "GPU initialization failed"},
};

/* Xid 154 tells what it needs in words: "(Node Reboot Required)". */
static enum fb_check_state of_action(const char *line, size_t len)
{
	return memmem(line, len, "Required", 8)           ? FB_CHECK_FAIL
	       : memmem(line, len, "(None)", 6)           ? FB_CHECK_INFO
	       : memmem(line, len, "Drain and Reset", 15) ? FB_CHECK_WARN
							  : FB_CHECK_WARN;
}

struct seen {
	char bdf[24];
	int code, count;
	enum fb_check_state state;
	char what[120];
};

static void note(struct seen *list, size_t *n, size_t max, const char *line, size_t len)
{
	static const char key[] = "NVRM: Xid (PCI:";
	const char *at = memmem(line, len, key, sizeof(key) - 1);
	char text[200], bdf[24] = "";
	unsigned domain, bus, dev;
	int code, end = 0;
	size_t i;
	if (!at)
		return;
	at += sizeof(key) - 1;
	snprintf(text, sizeof(text), "%.*s", (int)(line + len - at), at);
	if (sscanf(text, "%8x:%2x:%2x%n", &domain, &bus, &dev, &end) != 3)
		return;
	snprintf(bdf, sizeof(bdf), "%04x:%02x:%02x.0", domain, bus, dev & 0x1f);
	const char *close = strchr(text + end, ')');
	if (!close || sscanf(close, "): %d", &code) != 1)
		return;
	for (i = 0; i < *n && (list[i].code != code || strcmp(list[i].bdf, bdf) != 0); i++)
		;
	if (i == max)
		return;
	if (i == *n) {
		struct seen *s = &list[(*n)++];
		*s = (struct seen){.code = code, .state = FB_CHECK_WARN};
		snprintf(s->bdf, sizeof(s->bdf), "%s", bdf);
		snprintf(s->what, sizeof(s->what), "not in our list of Xids");
		for (size_t k = 0; k < sizeof(xids) / sizeof(xids[0]); k++)
			if (xids[k].code == code) {
				s->state = xids[k].state;
				snprintf(s->what, sizeof(s->what), "%s", xids[k].what);
			}
		if (code == 154) {
			s->state = of_action(line, len);
			snprintf(s->what, sizeof(s->what), "%.100s",
				strchr(close, ',') ? strchr(close, ',') + 2 : "recovery action");
		}
	}
	list[i].count++;
}

static void tell_xid(struct node_run *c, const struct seen *s)
{
	char subject[96];
	snprintf(subject, sizeof(subject), "GPU %.23s", s->bdf);
	for (size_t k = 0; k < c->n->n_dev; k++)
		if (c->n->dev[k].pci >= 0 &&
			strcmp(c->n->t->pci[c->n->dev[k].pci].bdf, s->bdf) == 0)
			snprintf(subject, sizeof(subject), "%s", c->n->dev[k].subject);
	struct fb_finding f = node_finding(c, subject);
	fb_find(&f, s->state, "Xid %d, %d times: %s", s->code, s->count, s->what);
	fb_find_read(&f, "%s", c->n->log_read);
	fb_find_expected(&f, "NVIDIA, XID Errors", "none of the hardware's");
	node_emit(c, &f);
}

void node_gpu_xid(struct node_run *c)
{
	struct node *n = c->n;
	struct seen list[64];
	size_t k = 0;
	bool nvidia = n->gpus.n > 0;
	for (size_t i = 0; i < n->t->n_gpus; i++)
		nvidia = nvidia || n->t->pci[n->t->gpus[i].pci].vendor == 0x10de;
	if (!n->log) {
		node_skip(c, "%s", nvidia ? n->log_why : "not available: no NVIDIA GPU here");
		return;
	}
	for (const char *line = n->log; *line;) {
		size_t len = strcspn(line, "\n");
		note(list, &k, sizeof(list) / sizeof(list[0]), line, len);
		line += len + (line[len] == '\n');
	}
	for (size_t i = 0; i < k; i++)
		tell_xid(c, &list[i]);
	if (k > 0)
		return;
	if (!nvidia) {
		node_skip(c, "not available: no NVIDIA GPU here");
		return;
	}
	struct fb_finding f = node_finding(c, NULL);
	fb_find(&f, FB_CHECK_PASS, "none%s",
		n->log_from_boot ? " since boot"
				 : ", in a log that no longer reaches back to boot");
	fb_find_read(&f, "%s", n->log_read);
	node_emit(c, &f);
}
