// SPDX-License-Identifier: Apache-2.0
/*
 * The facts of one node and the helpers that checks read them with: files through the sysroot's
 * door, PCI configuration space, the kernel log, and which devices there are for which purpose.
 */
#include <ctype.h>
#include <errno.h>
#include <hwloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>

#include "bench/core/json.h"
#include "bench/core/sysinfo.h"
#include "topo/node/node_priv.h"

#define HIDDEN_FILE "/hidden" /* what `tree record` could not read, a path a line */
#define ENV_FILE    "/env"
#define LOG_FILE    "dmesg.txt"
#define LOG_MAX     (8u << 20)
#define CONFIG_MAX  4096
#define HEADER      64

/* Linux <sys/klog.h> has no names for them. */
#define KLOG_READ_ALL    3
#define KLOG_SIZE_BUFFER 10

/* ---- findings -------------------------------------------------------------------------------- */

struct fb_finding node_finding(const struct node_run *c, const char *subject)
{
	struct fb_finding f = {.state = FB_CHECK_ERROR};
	(void)c;
	snprintf(f.subject, sizeof(f.subject), "%s", subject ? subject : "this node");
	return f;
}

void node_emit(struct node_run *c, const struct fb_finding *f)
{
	fb_doc_add_check(c->doc, fb_finding_json(c->def, f));
	c->findings++;
}

void node_skip(struct node_run *c, const char *fmt, ...)
{
	char why[256];
	va_list ap;
	struct fb_finding f = node_finding(c, NULL);
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	fb_find(&f, FB_CHECK_SKIP, "%s", why);
	node_emit(c, &f);
}

/* ---- files ----------------------------------------------------------------------------------- */

static char *read_whole(const struct fb_sysroot *r, const char *path, size_t max, int *rc)
{
	char real[4096], *text = NULL;
	size_t len = 0;
	struct fb_err e = {0};
	*rc = fb_sysroot_path(r, path, real, sizeof(real));
	if (*rc == 0)
		*rc = fb_read_file(real, max, &text, &len, &e);
	return *rc == 0 ? text : NULL;
}

/* Was the path, or a folder above it, refused when the tree was recorded? */
static bool is_hidden(const struct node *n, const char *path)
{
	for (const char *line = n->hidden; line && *line;) {
		size_t len = strcspn(line, "\n");
		if (len > 1 && strncmp(path, line, len) == 0 &&
			(path[len] == '\0' || path[len] == '/'))
			return true;
		line += len + (line[len] == '\n');
	}
	return false;
}

const char *node_why(const struct node *n, const char *path, int rc, char *buf, size_t len)
{
	if (rc == -EACCES || rc == -EPERM || is_hidden(n, path))
		snprintf(buf, len, "not visible from here: needs root");
	else if (rc == -ENOENT || rc == -ENOTDIR)
		snprintf(buf, len, "%s", n->live ? "not available: no such file" : "not recorded");
	else if (rc == 0)
		snprintf(buf, len, "not available: the file is empty");
	else
		snprintf(buf, len, "not available: %s", strerror(-rc));
	return buf;
}

/* EBUSY: cpufreq while a policy changes. */
static int read_patiently(const struct node *n, const char *path, char *buf, size_t len)
{
	int rc = -EBUSY;
	for (int i = 0; i < 3 && rc == -EBUSY; i++)
		rc = fb_sysroot_read(n->r, path, buf, len);
	return rc;
}

static int read_or_skip(
	const struct node *n, struct fb_finding *f, char *buf, size_t len, const char *path)
{
	char why[160];
	fb_find_read(f, "%s", path);
	int rc = read_patiently(n, path, buf, len);
	if (rc > 0)
		return rc;
	fb_find(f, FB_CHECK_SKIP, "%s", node_why(n, path, rc, why, sizeof(why)));
	return rc < 0 ? rc : -ENODATA;
}

int node_read(
	const struct node *n, struct fb_finding *f, char *buf, size_t len, const char *fmt, ...)
{
	char path[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	return read_or_skip(n, f, buf, len, path);
}

bool node_read_i64(const struct node *n, struct fb_finding *f, int64_t *v, const char *fmt, ...)
{
	char path[512], buf[64], *end;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	if (read_or_skip(n, f, buf, sizeof(buf), path) < 0)
		return false;
	errno = 0;
	*v = strtoll(buf, &end, 0);
	if (errno != 0 || end == buf || *end != '\0') {
		fb_find(f, FB_CHECK_ERROR, "%s holds \"%.40s\", which is no number", path, buf);
		return false;
	}
	return true;
}

/* NAME=value of a file of such lines; NCCL also takes "NAME = value" in its own. */
static bool find_setting(const char *text, const char *name, char *buf, size_t len)
{
	size_t k = strlen(name);
	for (const char *line = text; line && *line;) {
		size_t n = strcspn(line, "\n");
		const char *v = line + k + strspn(line + (n > k ? k : 0), " \t");
		if (n > k && strncmp(line, name, k) == 0 && *v == '=') {
			v += 1 + strspn(v + 1, " \t");
			size_t m = line + n > v ? (size_t)(line + n - v) : 0;
			snprintf(buf, len, "%.*s", (int)m, v);
			return *buf != '\0';
		}
		line += n + (line[n] == '\n');
	}
	return false;
}

const char *node_env(const struct node *n, const char *name, char *buf, size_t len)
{
	static const char *const files[] = {ENV_FILE, "/etc/nccl.conf"};
	const char *own = n->live ? getenv(name) : NULL;
	if (own && *own) {
		snprintf(buf, len, "%s", own);
		return buf;
	}
	for (size_t i = n->live; i < 2; i++) {
		int rc;
		char *text = read_whole(n->r, files[i], 1u << 20, &rc);
		bool found = text && find_setting(text, name, buf, len);
		free(text);
		if (found)
			return buf;
	}
	return NULL;
}

/* ---- the kernel log -------------------------------------------------------------------------- */

static void read_live_log(struct node *n)
{
	int size = klogctl(KLOG_SIZE_BUFFER, NULL, 0);
	snprintf(n->log_read, sizeof(n->log_read), "the kernel log (dmesg)");
	if (size <= 0 || size > (int)LOG_MAX)
		size = 1 << 20;
	n->log = malloc((size_t)size + 1);
	int got = n->log ? klogctl(KLOG_READ_ALL, n->log, size) : -1;
	if (got >= 0) {
		n->log[got] = '\0';
		return;
	}
	snprintf(n->log_why, sizeof(n->log_why),
		errno == EPERM ? "not visible from here: the kernel log needs root"
			       : "not available: the kernel log cannot be read");
	free(n->log);
	n->log = NULL;
}

static void read_log(struct node *n)
{
	int rc = 0;
	if (n->live) {
		read_live_log(n);
	} else {
		snprintf(n->log_read, sizeof(n->log_read), "%s", LOG_FILE);
		n->log = read_whole(n->r, "/" LOG_FILE, LOG_MAX, &rc);
		if (!n->log)
			snprintf(n->log_why, sizeof(n->log_why),
				"not recorded: %s holds the kernel log", LOG_FILE);
	}
	n->log_from_boot = n->log && strstr(n->log, "Linux version ") != NULL;
}

/* ---- PCI ------------------------------------------------------------------------------------- */

unsigned node_u16(const struct node_config *c, size_t at)
{
	return at + 2 <= c->len ? c->bytes[at] | (unsigned)c->bytes[at + 1] << 8 : 0;
}

static unsigned find_express(const struct node_config *c)
{
	size_t at = c->bytes[0x34] & 0xfcu;
	for (int hops = 0; at >= HEADER && at + 12 <= c->len && at < 256 && hops < 48; hops++) {
		if (c->bytes[at] == 0x10)
			return (unsigned)at;
		at = c->bytes[at + 1] & 0xfcu;
	}
	return 0;
}

unsigned node_extended(const struct node_config *c, unsigned id)
{
	size_t at = 0x100;
	for (int hops = 0; at >= 0x100 && at + 8 <= c->len && hops < 96; hops++) {
		if (node_u16(c, at) == id)
			return (unsigned)at;
		at = node_u16(c, at + 2) >> 4 & 0xffcu;
	}
	return 0;
}

static void read_config(struct node *n, int pci, struct node_config *c)
{
	char real[4096], *text = NULL;
	struct fb_err e = {0};
	c->read = true;
	snprintf(c->path, sizeof(c->path), "/sys/bus/pci/devices/%s/config", n->t->pci[pci].bdf);
	int rc = fb_sysroot_path(n->r, c->path, real, sizeof(real));
	if (rc == 0)
		rc = fb_read_file(real, CONFIG_MAX, &text, &c->len, &e);
	if (rc == 0 && c->len > HEADER) {
		c->bytes = (uint8_t *)text;
		c->express = find_express(c);
		return;
	}
	free(text);
	if (rc == 0)
		snprintf(c->why, sizeof(c->why),
			"not visible from here: only root reads more than 64 bytes of PCI "
			"configuration space");
	else
		node_why(n, c->path, rc, c->why, sizeof(c->why));
}

const struct node_config *node_config(struct node *n, int pci, struct fb_finding *f)
{
	struct node_config *c = &n->config[pci];
	if (!c->read)
		read_config(n, pci, c);
	fb_find_read(f, "%s", c->path);
	if (!c->bytes)
		fb_find(f, FB_CHECK_SKIP, "%s", c->why);
	else if (!c->express)
		fb_find(f, FB_CHECK_SKIP, "not available: %s is no PCI Express function",
			n->t->pci[pci].bdf);
	else
		return c;
	return NULL;
}

size_t node_chain(const struct topo *t, int pci, int *chain, size_t max)
{
	size_t n = 0;
	for (; pci >= 0 && n < max; pci = t->pci[pci].parent)
		chain[n++] = pci;
	return n;
}

bool node_emulated(const struct topo_pci *p)
{
	/* QEMU's root ports, and its models of TI's switch: their links mean nothing. */
	return p->vendor == 0x1b36 ||
	       (p->vendor == 0x104c && (p->device == 0x8232 || p->device == 0x8233));
}

static struct topo_dev as_row(const struct node *n, const struct node_dev *d)
{
	const struct topo *t = n->t;
	struct topo_dev row = {.type = d->gpu >= 0    ? TOPO_DEV_GPU
				       : d->rdma >= 0 ? TOPO_DEV_RDMA
						      : TOPO_DEV_NETDEV,
		.index = (size_t)(d->gpu >= 0    ? d->gpu
				  : d->rdma >= 0 ? d->rdma
						 : d->nic),
		.name = d->name,
		.pci = d->pci,
		.numa = d->pci >= 0    ? t->pci[d->pci].numa
			: d->rdma >= 0 ? t->rdma[d->rdma].numa
			: d->nic >= 0  ? t->nics[d->nic].numa
				       : TOPO_UNKNOWN};
	return row;
}

enum topo_path node_path(const struct node *n, const struct node_dev *a, const struct node_dev *b)
{
	struct topo_dev x = as_row(n, a), y = as_row(n, b);
	return topo_path(n->t, &x, &y);
}

/* ---- CPUs ------------------------------------------------------------------------------------ */

unsigned node_common_cpus(const char *a, const char *b)
{
	hwloc_bitmap_t x = hwloc_bitmap_alloc(), y = hwloc_bitmap_alloc();
	int both = 0;
	if (x && y && hwloc_bitmap_list_sscanf(x, a) == 0 && hwloc_bitmap_list_sscanf(y, b) == 0) {
		hwloc_bitmap_and(x, x, y);
		both = hwloc_bitmap_weight(x);
	}
	hwloc_bitmap_free(x);
	hwloc_bitmap_free(y);
	return both > 0 ? (unsigned)both : 0;
}

bool node_own_memory(const struct topo *t, size_t i)
{
	if (!t->numa[i].cpus[0])
		return false;
	for (size_t k = 0; k < i; k++)
		if (strcmp(t->numa[k].cpus, t->numa[i].cpus) == 0)
			return false;
	return true;
}

/* ---- devices --------------------------------------------------------------------------------- */

size_t node_count_gpus(const struct node *n)
{
	return n->t->n_gpus;
}

size_t node_count_role(const struct node *n, enum node_role role)
{
	size_t k = 0;
	for (size_t i = 0; i < n->n_dev; i++)
		k += n->dev[i].role == role;
	return k;
}

static void add_device(struct node *n, const char *name, int pci, int gpu, int rdma, int nic)
{
	struct node_dev *d = &n->dev[n->n_dev++];
	const struct topo *t = n->t;
	snprintf(d->name, sizeof(d->name), "%s", name);
	if (pci >= 0)
		snprintf(d->subject, sizeof(d->subject), "%s (%s)", name, t->pci[pci].bdf);
	else
		snprintf(d->subject, sizeof(d->subject), "%s", name);
	d->pci = pci;
	d->gpu = gpu;
	d->rdma = rdma;
	d->nic = nic;
	d->function = pci >= 0 && t->pci[pci].physfn < 0 && !(rdma >= 0 && t->rdma[rdma].soft);
}

static int find_devices(struct node *n)
{
	struct topo_dev *rows = NULL;
	size_t n_rows = 0;
	int rc = topo_devices(n->t, &rows, &n_rows);
	if (rc == 0 && (n_rows > NODE_MAX_DEVICES || n->t->n_gpus > NODE_MAX_GPUS))
		rc = -EFBIG;
	if (rc < 0) {
		free(rows);
		return rc;
	}
	n->dev = calloc(n_rows + 1, sizeof(*n->dev));
	for (size_t i = 0; i < n_rows && n->dev; i++) {
		const struct topo_dev *d = &rows[i];
		add_device(n, d->name, d->pci, d->type == TOPO_DEV_GPU ? (int)d->index : -1,
			d->type == TOPO_DEV_RDMA ? (int)d->index : -1,
			d->type == TOPO_DEV_NETDEV ? (int)d->index : -1);
	}
	free(rows);
	if (!n->dev)
		return -ENOMEM;
	node_find_roles(n);
	return 0;
}

/* A host whose GPUs or NICs are given to virtual machines wants what a bare machine must not have.
 */
static void find_place(struct node *n)
{
	const struct topo *t = n->t;
	if (t->virtual_machine) {
		n->place = NODE_GUEST;
		snprintf(n->place_why, sizeof(n->place_why),
			"a virtual machine: /proc/cpuinfo says hypervisor");
		return;
	}
	for (size_t i = 0; i < t->n_pci; i++) {
		const struct topo_pci *p = &t->pci[i];
		unsigned base = p->class_code >> 16;
		if (strstr(p->driver, "vfio") && (base == 0x02 || base == 0x03 || base == 0x12)) {
			n->place = NODE_VM_HOST;
			snprintf(n->place_why, sizeof(n->place_why),
				"a virtual machines' host: %s is bound to %s", p->bdf, p->driver);
			return;
		}
	}
	snprintf(n->place_why, sizeof(n->place_why),
		"bare metal: no hypervisor below, no GPU or NIC bound to vfio");
}

/* `nvidia-smi nvlink -s` alone numbers GPUs by address, as we do, and does not tell it. */
static void adopt_addresses(struct node *n)
{
	const struct topo *t = n->t;
	for (size_t i = 0; i < n->gpus.n; i++)
		if (n->gpus.gpu[i].bdf[0] || n->gpus.n != t->n_gpus)
			return;
	for (size_t i = 0; i < n->gpus.n; i++)
		snprintf(n->gpus.gpu[i].bdf, sizeof(n->gpus.gpu[i].bdf), "%s",
			t->pci[t->gpus[i].pci].bdf);
}

/* ---- the node -------------------------------------------------------------------------------- */

static void name_node(struct node *n)
{
	char vendor[48], product[72];
	if (n->live)
		fb_host_name(n->host, sizeof(n->host));
	else if (fb_sysroot_read(n->r, "/proc/sys/kernel/hostname", n->host, sizeof(n->host)) <= 0)
		snprintf(n->host, sizeof(n->host), "recorded");
	int v = fb_sysroot_read(n->r, "/sys/class/dmi/id/sys_vendor", vendor, sizeof(vendor));
	int p = fb_sysroot_read(n->r, "/sys/class/dmi/id/product_name", product, sizeof(product));
	if (v > 0 && p > 0)
		snprintf(n->product, sizeof(n->product), "%s %s", vendor, product);
}

int node_open(struct node *n, const struct fb_sysroot *r, struct fb_err *e)
{
	char text[64];
	int ignored;
	*n = (struct node){.r = r, .live = fb_sysroot_is_live(r), .uptime_s = -1};
	node_expect_none(&n->expect);
	int rc = topo_load(r, &n->t, e);
	if (rc < 0)
		return rc;
	n->config = calloc(n->t->n_pci + 1, sizeof(*n->config));
	rc = n->config ? find_devices(n) : -ENOMEM;
	if (rc < 0) {
		node_close(n);
		return rc == -EFBIG ? fb_fail(e, FB_EXIT_USAGE, rc,
					      "no node has more than %d GPUs, or %d GPUs and "
					      "network devices",
					      NODE_MAX_GPUS, NODE_MAX_DEVICES)
				    : fb_fail(e, FB_EXIT_UNMEASURED, rc,
					      "no memory for the node's devices");
	}
	name_node(n);
	find_place(n);
	n->hidden = n->live ? NULL : read_whole(r, HIDDEN_FILE, 1u << 20, &ignored);
	read_log(n);
	gpu_facts_read(r, &n->gpus);
	adopt_addresses(n);
	if (fb_sysroot_read(r, "/proc/uptime", text, sizeof(text)) > 0)
		n->uptime_s = (int64_t)strtod(text, NULL);
	return 0;
}

void node_close(struct node *n)
{
	for (size_t i = 0; n->config && i < n->t->n_pci; i++)
		free(n->config[i].bytes);
	free(n->config);
	free(n->dev);
	free(n->log);
	free(n->hidden);
	gpu_facts_free(&n->gpus);
	node_expect_free(&n->expect);
	node_fleet_free(&n->fleet);
	json_decref(n->window.before);
	json_decref(n->summary);
	topo_free(n->t);
	*n = (struct node){.t = NULL};
}
