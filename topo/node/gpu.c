// SPDX-License-Identifier: Apache-2.0
/*
 * Facts of GPUs from text: `nvidia-smi -q` (sections by indentation, key : value) and `nvidia-smi
 * nvlink -s`. Versions differ in words, not in shape: old and new names of a key are both known.
 */
#include "topo/node/gpu.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"

#define MAX_LEVELS 8
#define MAX_TEXT   (16u << 20)

/* ---- the list -------------------------------------------------------------------------------- */

struct gpu_fact *gpu_facts_add(struct gpu_facts *g)
{
	struct gpu_fact *more = g->n < GPU_MAX ? realloc(g->gpu, (g->n + 1) * sizeof(*more)) : NULL;
	if (!more)
		return NULL;
	g->gpu = more;
	struct gpu_fact *f = &g->gpu[g->n++];
	*f = (struct gpu_fact){.pstate = -1,
		.util = -1,
		.ecc = -1,
		.ecc_pending = -1,
		.errors = {-1, -1, -1, -1},
		.remap_corrected = -1,
		.remap_uncorrected = -1,
		.remap_pending = -1,
		.remap_failed = -1,
		.retired_pending = -1,
		.throttle = -1,
		.power_limit = -1,
		.power_default = -1,
		.fabric = GPU_FABRIC_UNKNOWN,
		.clique = -1,
		.cluster_zero = -1,
		.links = -1,
		.links_down = -1};
	return f;
}

void gpu_facts_free(struct gpu_facts *g)
{
	free(g->gpu);
	*g = (struct gpu_facts){.n = 0};
}

const struct gpu_fact *gpu_facts_find(const struct gpu_facts *g, const char *bdf)
{
	for (size_t i = 0; i < g->n; i++)
		if (strcmp(g->gpu[i].bdf, bdf) == 0)
			return &g->gpu[i];
	return NULL;
}

bool gpu_bdf(const char *text, char *bdf, size_t len)
{
	unsigned domain, bus, dev, fn;
	int end = 0;
	if (sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &dev, &fn, &end) != 4 || end < 10 ||
		fn > 7 || dev > 31)
		return false;
	int n = snprintf(bdf, len, "%04x:%02x:%02x.%x", domain, bus, dev, fn);
	return n > 0 && (size_t)n < len;
}

/* ---- nvidia-smi -q --------------------------------------------------------------------------- */

struct q_reader {
	struct gpu_facts *g;
	struct gpu_fact *gpu; /* NULL: before the first */
	char section[MAX_LEVELS][48];
	int depth;
};

static int yes_no(const char *v)
{
	if (strcmp(v, "Yes") == 0 || strcmp(v, "Enabled") == 0 || strcmp(v, "Active") == 0)
		return 1;
	if (strcmp(v, "No") == 0 || strcmp(v, "Disabled") == 0 || strcmp(v, "Not Active") == 0)
		return 0;
	return -1;
}

static int64_t count(const char *v)
{
	char *end;
	errno = 0;
	long long n = strtoll(v, &end, 10);
	return end == v || n < 0 || errno != 0 ? -1 : n;
}

static int64_t mebibytes(const char *v)
{
	int64_t n = count(v);
	return n >= 0 && n < (1 << 30) && strstr(v, "MiB") ? n << 20 : 0;
}

static double watts(const char *v)
{
	char *end;
	double w = strtod(v, &end);
	return end != v && w >= 0 && w < 1e6 && strstr(end, "W") ? w : -1;
}

static bool in(const struct q_reader *q, const char *name)
{
	for (int i = 0; i < q->depth; i++)
		if (strcmp(q->section[i], name) == 0)
			return true;
	return false;
}

static bool at(const struct q_reader *q, const char *name)
{
	return q->depth > 0 && strcmp(q->section[q->depth - 1], name) == 0;
}

/* Several lines of one kind (SRAM, DRAM) make one count. */
static void add_errors(int64_t *sum, const char *v)
{
	int64_t n = count(v);
	if (n >= 0)
		*sum = (*sum < 0 ? 0 : *sum) + n;
}

static void ecc_line(struct q_reader *q, const char *key, const char *v)
{
	bool vol = in(q, "Volatile");
	if (!vol && !in(q, "Aggregate"))
		return;
	/* Before Ampere "Single Bit" and "Double Bit" have a Total each; the parts are not added.
	 */
	bool old = in(q, "Single Bit") || in(q, "Double Bit");
	if (old && strcmp(key, "Total") != 0)
		return;
	bool uncorrected = old ? in(q, "Double Bit") : strstr(key, "Uncorrectable") != NULL;
	if (!old && !uncorrected && !strstr(key, "Correctable"))
		return;
	/* "SRAM Uncorrectable Parity" and "SEC-DED" add up; "Threshold Exceeded" is no count. */
	add_errors(&q->gpu->errors[uncorrected ? vol ? GPU_UNCORRECTED_VOLATILE
						     : GPU_UNCORRECTED_AGGREGATE
				   : vol       ? GPU_CORRECTED_VOLATILE
					       : GPU_CORRECTED_AGGREGATE],
		v);
}

static void throttle_line(struct q_reader *q, const char *key, const char *v)
{
	static const struct {
		const char *key;
		int bit;
	} reasons[] = {{"HW Slowdown", GPU_HELD_HW_SLOWDOWN},
		{"HW Thermal Slowdown", GPU_HELD_HW_THERMAL},
		{"HW Power Brake Slowdown", GPU_HELD_POWER_BRAKE},
		{"SW Thermal Slowdown", GPU_HELD_SW_THERMAL}, {"SW Power Cap", GPU_HELD_SW_POWER},
		{"Idle", GPU_HELD_IDLE}};
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		int on = strcmp(key, reasons[i].key) == 0 ? yes_no(v) : -1;
		if (on >= 0)
			q->gpu->throttle = (q->gpu->throttle < 0 ? 0 : q->gpu->throttle) |
					   (on ? reasons[i].bit : 0);
	}
}

static void fabric_line(struct gpu_fact *f, const char *key, const char *v)
{
	if (strcmp(key, "State") == 0)
		f->fabric = strcmp(v, "Completed") == 0     ? GPU_FABRIC_COMPLETED
			    : strcmp(v, "In Progress") == 0 ? GPU_FABRIC_IN_PROGRESS
			    : strcmp(v, "Not Started") == 0 ? GPU_FABRIC_NOT_STARTED
							    : GPU_FABRIC_NONE;
	else if (strcmp(key, "Status") == 0 && strcmp(v, "N/A") != 0)
		snprintf(f->fabric_status, sizeof(f->fabric_status), "%s", v);
	else if (strcmp(key, "CliqueId") == 0)
		f->clique = count(v);
	else if (strcmp(key, "ClusterUUID") == 0 && isxdigit((unsigned char)*v))
		f->cluster_zero = strspn(v, "0-") == strlen(v);
}

static void power_line(struct gpu_fact *f, const char *key, const char *v)
{
	double w = watts(v);
	if (w < 0)
		return;
	/* New drivers: Current and Requested; old ones: Power Limit and Enforced. */
	if (strcmp(key, "Current Power Limit") == 0 || strcmp(key, "Enforced Power Limit") == 0)
		f->power_limit = w;
	else if (strcmp(key, "Default Power Limit") == 0)
		f->power_default = w;
}

static void gpu_line(struct q_reader *q, const char *key, const char *v)
{
	struct gpu_fact *f = q->gpu;
	if (q->depth == 0 && strcmp(key, "Product Name") == 0)
		snprintf(f->model, sizeof(f->model), "%s", v);
	else if (q->depth == 0 && strcmp(key, "Performance State") == 0 && *v == 'P')
		f->pstate = (int)count(v + 1);
	else if (at(q, "FB Memory Usage") && strcmp(key, "Total") == 0)
		f->memory = mebibytes(v);
	else if (at(q, "BAR1 Memory Usage") && strcmp(key, "Total") == 0)
		f->bar1 = mebibytes(v);
	else if (at(q, "Utilization") && strcasecmp(key, "Gpu") == 0)
		f->util = (int)count(v);
	else if ((at(q, "ECC Mode") || at(q, "Ecc Mode")) && strcmp(key, "Current") == 0)
		f->ecc = yes_no(v);
	else if ((at(q, "ECC Mode") || at(q, "Ecc Mode")) && strcmp(key, "Pending") == 0)
		f->ecc_pending = yes_no(v);
	else if (in(q, "ECC Errors"))
		ecc_line(q, key, v);
	else if (at(q, "Retired Pages") && strncmp(key, "Pending", 7) == 0)
		f->retired_pending = yes_no(v);
	else if (at(q, "Remapped Rows") && strcmp(key, "Correctable Error") == 0)
		f->remap_corrected = count(v);
	else if (at(q, "Remapped Rows") && strcmp(key, "Uncorrectable Error") == 0)
		f->remap_uncorrected = count(v);
	else if (at(q, "Remapped Rows") && strcmp(key, "Pending") == 0)
		f->remap_pending = yes_no(v);
	else if (at(q, "Remapped Rows") && strcmp(key, "Remapping Failure Occurred") == 0)
		f->remap_failed = yes_no(v);
	else if (in(q, "Clocks Event Reasons") || in(q, "Clocks Throttle Reasons"))
		throttle_line(q, key, v);
	else if (at(q, "GPU Power Readings") || at(q, "Power Readings"))
		power_line(f, key, v);
	else if (at(q, "Fabric"))
		fabric_line(f, key, v);
}

/* One line: its key and value; a line without a colon, or "HW Slowdown", opens a section. */
static int q_line(struct q_reader *q, const char *line, size_t n)
{
	char text[256], *colon, *v;
	size_t indent = 0, len = n < sizeof(text) ? n : sizeof(text) - 1;
	memcpy(text, line, len);
	text[len] = '\0';
	while (text[indent] == ' ')
		indent++;
	while (len > indent && isspace((unsigned char)text[len - 1]))
		text[--len] = '\0';
	if (len == indent || text[indent] == '=')
		return 0;
	if (indent == 0 && strncmp(text, "GPU ", 4) == 0) {
		char bdf[24];
		if (!gpu_bdf(text + 4, bdf, sizeof(bdf)))
			return 0;
		q->gpu = gpu_facts_add(q->g);
		if (!q->gpu)
			return q->g->n >= GPU_MAX ? -EFBIG : -ENOMEM;
		snprintf(q->gpu->bdf, sizeof(q->gpu->bdf), "%s", bdf);
		return 0;
	}
	colon = strstr(text, " : ");
	v = colon ? colon + 3 : NULL;
	for (char *end = colon; end && end > text + indent && end[-1] == ' '; end--)
		end[-1] = '\0';
	if (colon)
		*colon = '\0';
	int level = (int)(indent / 4) - 1;
	if (level < 0) {
		if (v && strcmp(text, "Driver Version") == 0)
			snprintf(q->g->driver, sizeof(q->g->driver), "%s", v);
		return 0;
	}
	q->depth = level < MAX_LEVELS ? level : MAX_LEVELS - 1;
	if (v && q->gpu)
		gpu_line(q, text + indent, v);
	/* Every line may have others below it. */
	snprintf(q->section[q->depth], sizeof(q->section[0]), "%.47s", text + indent);
	return 0;
}

int gpu_parse_q(const char *text, struct gpu_facts *g)
{
	struct q_reader q = {.g = g};
	int rc = 0;
	if (!strstr(text, "Driver Version") && !strstr(text, "NVSMI LOG"))
		return -EINVAL;
	for (const char *line = text; *line && rc == 0;) {
		size_t n = strcspn(line, "\n");
		rc = q_line(&q, line, n);
		line += n + (line[n] == '\n');
	}
	return rc;
}

/* ---- nvidia-smi nvlink -s -------------------------------------------------------------------- */

/* "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-...)", then "Link 0: 25 GB/s" or "Link 0: <inactive>".
 */
static int nvlink_line(const char *line, size_t n, struct gpu_facts *g, size_t *at_gpu)
{
	char text[200];
	unsigned index, link;
	int end = 0;
	snprintf(text, sizeof(text), "%.*s", (int)(n < sizeof(text) ? n : sizeof(text) - 1), line);
	const char *s = text + strspn(text, " \t");
	if (sscanf(s, "GPU %u:%n", &index, &end) == 1 && end > 0) {
		if (index >= GPU_MAX)
			return -EFBIG;
		while (g->n <= index)
			if (!gpu_facts_add(g))
				return -ENOMEM;
		*at_gpu = index;
		if (g->gpu[index].links < 0)
			g->gpu[index].links = g->gpu[index].links_down = 0;
		return 1;
	}
	if (*at_gpu == GPU_MAX || sscanf(s, "Link %u:%n", &link, &end) != 1 || end == 0)
		return 0;
	if (strstr(s + end, "inactive") || strstr(s + end, "Disabled"))
		g->gpu[*at_gpu].links_down++;
	else if (strstr(s + end, "GB/s"))
		g->gpu[*at_gpu].links++;
	return 0;
}

int gpu_parse_nvlink(const char *text, struct gpu_facts *g)
{
	size_t at_gpu = GPU_MAX;
	bool any = false;
	int rc = 0;
	for (const char *line = text; *line && rc >= 0;) {
		size_t n = strcspn(line, "\n");
		rc = nvlink_line(line, n, g, &at_gpu);
		any = any || rc == 1;
		line += n + (line[n] == '\n');
	}
	return rc < 0 ? rc : any ? 0 : -EINVAL;
}

/* ---- from where ------------------------------------------------------------------------------ */

static char *recorded(const struct fb_sysroot *r, const char *path)
{
	char real[4096], *text = NULL;
	size_t len = 0;
	struct fb_err e = {0};
	if (fb_sysroot_path(r, path, real, sizeof(real)) != 0 ||
		fb_read_file(real, MAX_TEXT, &text, &len, &e) != 0)
		return NULL;
	return text;
}

static void read_recorded(const struct fb_sysroot *r, struct gpu_facts *g)
{
	char *q = recorded(r, "/" GPU_Q_FILE), *links = recorded(r, "/" GPU_NVLINK_FILE);
	int rc = q ? gpu_parse_q(q, g) : -ENOENT;
	snprintf(g->read, sizeof(g->read), "%s", GPU_Q_FILE);
	snprintf(g->links_read, sizeof(g->links_read), "%s", GPU_NVLINK_FILE);
	g->told = rc == 0;
	if (rc == -ENOENT)
		snprintf(g->why, sizeof(g->why), "not recorded: %s holds what nvidia-smi -q prints",
			GPU_Q_FILE);
	else if (rc < 0)
		snprintf(g->why, sizeof(g->why), "unreadable: %s is not what nvidia-smi -q prints",
			GPU_Q_FILE);
	else if (g->n == 0)
		snprintf(g->why, sizeof(g->why), "not available: the driver sees no GPU");
	if (links && gpu_parse_nvlink(links, g) < 0)
		snprintf(g->links_read, sizeof(g->links_read), "%s, which is unreadable",
			GPU_NVLINK_FILE);
	free(q);
	free(links);
}

/* nvidia-smi numbers GPUs by address, and so do we. */
static int by_bdf(const void *a, const void *b)
{
	const struct gpu_fact *x = a, *y = b;
	unsigned long dx = strtoul(x->bdf, NULL, 16), dy = strtoul(y->bdf, NULL, 16);
	return dx != dy ? (dx < dy ? -1 : 1) : strcmp(x->bdf, y->bdf);
}

void gpu_facts_read(const struct fb_sysroot *r, struct gpu_facts *g)
{
	*g = (struct gpu_facts){.n = 0};
	if (fb_sysroot_is_live(r))
		gpu_facts_nvml(g);
	else
		read_recorded(r, g);
	if (g->n > 1)
		qsort(g->gpu, g->n, sizeof(*g->gpu), by_bdf);
}
