// SPDX-License-Identifier: Apache-2.0
/*
 * What each tag of NCCL's topology XML means in the model. Only what the file says is filled in: an
 * empty or missing value is unknown, a value that is none of its kind refuses the file with its
 * line, and every attribute without a field of its own is kept for the export.
 *
 * Facts (NCCL's src/graph/xml.cc and topo.cc, RCCL's the same with <xgmi>): `affinity` is the
 * kernel's mask, 32-bit words from the highest; a <pci> is a device or a whole switch (its upstream
 * port; root and downstream ports are left out); link_speed and link_width are the lesser of the
 * best of both ends, never what is trained; `speed` is Mb/s; c2c's `bw` is MB/s of one link.
 */
#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/nccl_xml.h"

#define MAX_MBPS 10000000 /* 10 Tb/s */

/* ---- values -------------------------------------------------------------------------------- */

static const char *attr(const char *const *attrs, const char *name)
{
	for (const char *const *a = attrs; a && a[0]; a += 2)
		if (strcmp(a[0], name) == 0)
			return a[1] ? a[1] : "";
	return NULL;
}

/** @return 0 with *out unchanged when the attribute is missing or empty; -EINVAL when no number */
static int number(struct nccl_reader *r, const char *const *attrs, const char *name, long min,
	long max, long *out)
{
	const char *text = attr(attrs, name);
	char *end;

	if (!text || !*text)
		return 0;
	errno = 0;
	long v = strtol(text, &end, 0);

	if (end == text || *end || errno || v < min || v > max)
		return nccl_fail(r, EINVAL, "%s=\"%.40s\" is not a number of %ld to %ld", name,
			text, min, max);
	*out = v;
	return 0;
}

/** A PCI identifier, "0x15b3". @return as number() */
static int identifier(struct nccl_reader *r, const char *const *attrs, const char *name,
	unsigned digits, uint32_t *out)
{
	const char *text = attr(attrs, name);
	char *end;

	if (!text || !*text)
		return 0;
	const char *hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? text + 2 : text;
	size_t n = strspn(hex, "0123456789abcdefABCDEF");

	if (!n || n > digits || hex[n])
		return nccl_fail(
			r, EINVAL, "%s=\"%.40s\" is not %u hexadecimal digits", name, text, digits);
	*out = (uint32_t)strtoul(hex, &end, 16);
	/* A class cut short, "0x03", is how NCCL says "a GPU" of a device that sysfs hides. */
	if (digits == 6 && n < 6)
		*out <<= 4 * (6 - n);
	return 0;
}

bool nccl_address(const char *text, char bdf[24], uint64_t *key)
{
	unsigned domain = 0, bus, dev, fn;
	int used = 0;

	if (strspn(text, "0123456789abcdefABCDEF:.") != strlen(text) || strlen(text) > 16)
		return false;
	if (sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &dev, &fn, &used) != 4) {
		domain = 0;
		used = 0;
		if (sscanf(text, "%2x:%2x.%1x%n", &bus, &dev, &fn, &used) != 3)
			return false;
	}
	if (text[used] || dev > 0x1f || fn > 7)
		return false;
	snprintf(bdf, 24, "%04x:%02x:%02x.%x", domain, bus, dev, fn);
	*key = (uint64_t)domain << 16 | bus << 8 | dev << 3 | fn;
	return true;
}

static bool among(const char *name, const char *const *known)
{
	for (; *known; known++)
		if (strcmp(name, *known) == 0)
			return true;
	return false;
}

int nccl_keep(
	struct nccl_reader *r, enum topo_part part, int index, const char *name, const char *value)
{
	r->kept += strlen(value) + (name ? strlen(name) : 0) + sizeof(struct topo_extra);
	if (r->kept > NCCL_MAX_KEPT)
		return nccl_fail(r, EFBIG, "more than %u bytes of unknown tags and attributes",
			NCCL_MAX_KEPT);
	struct topo_extra *x =
		topo_grow((void **)&r->t->extra, &r->t->n_extra, sizeof(struct topo_extra));

	if (x) {
		*x = (struct topo_extra){part, index, name ? strdup(name) : NULL, strdup(value)};
		/* A line end in an attribute is a blank to whoever reads it again. */
		for (char *s = x->value; name && s && *s; s++)
			if (*s == '\t' || *s == '\n' || *s == '\r')
				*s = ' ';
	}
	return x && x->value && (x->name || !name) ? 0 : nccl_fail(r, ENOMEM, "no memory");
}

static int keep_others(struct nccl_reader *r, const struct nccl_frame *f, const char *const *attrs,
	const char *const *known, const char *prefix)
{
	char name[256];

	for (const char *const *a = attrs; a && a[0] && !r->rc; a += 2) {
		if (among(a[0], known))
			continue;
		if (snprintf(name, sizeof(name), "%s%s", prefix, a[0]) >= (int)sizeof(name))
			return nccl_fail(r, EINVAL, "an attribute's name of more than %zu bytes",
				sizeof(name) - 1);
		nccl_keep(r, f->part, f->at, name, a[1] ? a[1] : "");
	}
	return r->rc;
}

/* ---- system, cpu --------------------------------------------------------------------------- */

static int open_system(struct nccl_reader *r, const char *const *attrs, struct nccl_frame *f)
{
	static const char *const none[] = {NULL};
	const char *version = attr(attrs, "version");

	f->part = TOPO_PART_SYSTEM;
	if (!version || (strcmp(version, "1") != 0 && strcmp(version, "2") != 0))
		topo_warn(r->t, "%s: <system> of version \"%.20s\", read as NCCL's 1 and RCCL's 2",
			r->file, version ? version : "");
	return keep_others(r, f, attrs, none, "");
}

/** A mask of 32-bit words, "0000ffff,0000ffff", as a list; "" when there is none. */
static char *mask_list(struct nccl_reader *r, const char *mask)
{
	char text[2 * NCCL_MAX_MASK + 8], *list = NULL;
	size_t k = 0;

	if (strlen(mask) > NCCL_MAX_MASK) {
		nccl_fail(r, EFBIG, "an affinity of more than %d characters", NCCL_MAX_MASK);
		return NULL;
	}
	for (const char *s = mask; *s;) {
		s += s[0] == '0' && s[1] == 'x' ? 2 : 0;
		size_t n = strspn(s, "0123456789abcdefABCDEF");

		if (!n || n > 8 || (s[n] && (s[n] != ',' || !s[n + 1]))) {
			nccl_fail(r, EINVAL,
				"affinity=\"%.60s\" is not a mask of hexadecimal words", mask);
			return NULL;
		}
		k += (size_t)snprintf(
			text + k, sizeof(text) - k, "%s0x%.*s", k ? "," : "", (int)n, s);
		s += n + (s[n] == ',');
	}
	hwloc_bitmap_t set = hwloc_bitmap_alloc();

	if (!set || (k && hwloc_bitmap_sscanf(set, text) != 0) ||
		hwloc_bitmap_list_asprintf(&list, set) < 0) {
		list = NULL;
		nccl_fail(r, ENOMEM, "no memory");
	}
	hwloc_bitmap_free(set);
	return list;
}

/** One machine is one host: of a file that joins several (NVLink over racks), the first is read. */
static bool other_host(struct nccl_reader *r, const char *hash)
{
	char own[sizeof(r->host_hash)];

	topo_copy(own, sizeof(own), hash ? hash : "");
	if (!r->host_hash[0])
		topo_copy(r->host_hash, sizeof(r->host_hash), own);
	if (!own[0] || strcmp(r->host_hash, own) == 0)
		return false;
	if (!r->seen_other)
		topo_warn(r->t,
			"%s joins several hosts: this is the first, of host_hash \"%s\"; the others "
			"are left out",
			r->file, r->host_hash);
	r->seen_other = true;
	return true;
}

static int open_cpu(struct nccl_reader *r, const char *const *attrs, struct nccl_frame *f)
{
	static const char *const known[] = {"numaid", "affinity", NULL};
	static const char *const only_id[] = {"numaid", NULL};
	struct topo *t = r->t;
	const char *mask = attr(attrs, "affinity");
	long id = -2;

	if (number(r, attrs, "numaid", -1, TOPO_MAX_CPU, &id))
		return r->rc;
	if (id == -2)
		return nccl_fail(r, EINVAL, "<cpu> without numaid");
	if (other_host(r, attr(attrs, "host_hash")))
		return 2;
	r->seen_cpu = true;
	f->part = TOPO_PART_NUMA;
	f->numa = f->at = TOPO_UNKNOWN;
	for (size_t i = 0; i < t->n_numa; i++)
		if (t->numa[i].os_index == id) {
			topo_warn(t, "%s: NUMA node %ld stands twice: read as one", r->file, id);
			f->numa = f->at = (int)i;
			return 0;
		}
	if (id < 0 && r->seen_nowhere)
		return 0;
	r->seen_nowhere |= id < 0;
	if (id >= 0) {
		if (t->n_numa >= TOPO_MAX_NUMA)
			return nccl_fail(r, EFBIG, "more than %d NUMA nodes", TOPO_MAX_NUMA);
		struct topo_numa *n = topo_grow((void **)&t->numa, &t->n_numa, sizeof(*n));

		if (!n)
			return nccl_fail(r, ENOMEM, "no memory");
		n->os_index = (int)id;
		n->package = TOPO_UNKNOWN;
		/* An offset moves the mask by a unit that no public file shows: kept, not read. */
		if (attr(attrs, "affinity_offset"))
			topo_warn(t, "%s: NUMA node %ld: its CPUs are not read (affinity_offset)",
				r->file, id);
		n->cpus = mask_list(r, mask && !attr(attrs, "affinity_offset") ? mask : "");
		if (!n->cpus)
			return r->rc;
		f->numa = f->at = (int)t->n_numa - 1;
	}
	return keep_others(
		r, f, attrs, id >= 0 && !attr(attrs, "affinity_offset") ? known : only_id, "");
}

/* ---- pci ----------------------------------------------------------------------------------- */

static int read_link(struct nccl_reader *r, const char *const *attrs, struct topo_link *link)
{
	const char *speed = attr(attrs, "link_speed");
	long width = 0;

	if (speed && *speed) {
		char *end;
		double v = strtod(speed, &end);

		if (end != speed && v > 0 && v < 1000 && strncmp(end, " GT/s", 5) == 0)
			link->max_gts = v;
	}
	if (number(r, attrs, "link_width", -1, 255, &width))
		return r->rc;
	if (width >= 1 && width <= 32)
		link->max_width = (unsigned)width;
	return 0;
}

static int read_function(struct nccl_reader *r, const char *const *attrs, struct topo_pci *p)
{
	uint32_t cls = p->class_code, vendor = p->vendor, device = p->device;
	struct topo_link link = p->link;

	if (identifier(r, attrs, "class", 6, &cls) || identifier(r, attrs, "vendor", 4, &vendor) ||
		identifier(r, attrs, "device", 4, &device) || read_link(r, attrs, &link))
		return r->rc;
	p->class_code = cls;
	p->vendor = (uint16_t)vendor;
	p->device = (uint16_t)device;
	p->link = link;
	return 0;
}

/** The same address again is the same function: its children stand together. */
static void again(struct nccl_reader *r, int i, const struct nccl_frame *f)
{
	struct topo_pci *p = &r->t->pci[i];
	struct nccl_mark *m = &r->marks[i];

	if (p->parent != f->pci || m->numa != f->numa)
		topo_warn(
			r->t, "%s: %s stands in two places: the first one counts", r->file, p->bdf);
	else if (!m->twice)
		topo_warn(r->t, "%s: %s stands more than once: read as one function", r->file,
			p->bdf);
	m->twice = true;
}

static int open_pci(struct nccl_reader *r, const char *const *attrs, struct nccl_frame *f)
{
	static const char *const known[] = {
		"busid", "class", "vendor", "device", "link_speed", "link_width", NULL};
	struct topo *t = r->t;
	const char *busid = attr(attrs, "busid");
	char bdf[24];
	uint64_t key;

	if (!busid)
		return nccl_fail(r, EINVAL, "<pci> without busid");
	if (!nccl_address(busid, bdf, &key))
		return nccl_fail(r, EINVAL, "busid=\"%.40s\" is not a PCI address", busid);
	int up = f->pci, here = TOPO_UNKNOWN;

	for (size_t i = 0; i < r->n_marks && here < 0; i++)
		if (r->marks[i].key == key)
			here = (int)i;
	f->part = TOPO_PART_PCI;
	if (here >= 0) {
		again(r, here, f);
		f->pci = f->at = here;
		return 0;
	}
	if (t->n_pci >= NCCL_MAX_PCI)
		return nccl_fail(
			r, EFBIG, "more than %d PCI devices: no machine has as many", NCCL_MAX_PCI);
	struct topo_pci *p = topo_grow((void **)&t->pci, &t->n_pci, sizeof(*p));
	struct nccl_mark *m = topo_grow((void **)&r->marks, &r->n_marks, sizeof(*m));

	if (!p || !m)
		return nccl_fail(r, ENOMEM, "no memory");
	m->key = key;
	m->numa = f->numa;
	topo_copy(p->bdf, sizeof(p->bdf), bdf);
	p->parent = up;
	p->physfn = p->numa = TOPO_UNKNOWN;
	if (up >= 0)
		t->pci[up].bridge = true;
	f->pci = f->at = (int)t->n_pci - 1;
	if (read_function(r, attrs, p))
		return r->rc;
	p->bridge = p->class_code >> 8 == 0x0604;
	return keep_others(r, f, attrs, known, "");
}

static int open_pcilink(struct nccl_reader *r, const char *const *attrs, struct nccl_frame *f)
{
	const char *target = attr(attrs, "target");
	char bdf[24];
	uint64_t key;

	/* Anything else in it would be lost: then it is foreign. */
	if (!target || attrs[2] || !nccl_address(target, bdf, &key))
		return 1;
	f->part = TOPO_PART_PCI;
	f->at = f->pci;
	return nccl_keep(r, f->part, f->at, "pcilink/target", bdf);
}

/* ---- gpu and its links --------------------------------------------------------------------- */

static int open_gpu(struct nccl_reader *r, const char *const *attrs, struct nccl_frame *f)
{
	static const char *const none[] = {NULL};
	struct topo *t = r->t;
	long dev = TOPO_UNKNOWN;

	/* One device may be several GPUs to NCCL (MLOPart); to the model it is one. */
	if (r->marks[f->pci].gpu) {
		topo_warn(t, "%s: %s holds several <gpu>: the first one counts", r->file,
			t->pci[f->pci].bdf);
		return 1;
	}
	if (number(r, attrs, "dev", -1, TOPO_MAX_CPU, &dev))
		return r->rc;
	struct topo_gpu *g = topo_grow((void **)&t->gpus, &t->n_gpus, sizeof(*g));
	int *d = topo_grow((void **)&r->dev, &r->n_dev, sizeof(*d));

	if (!g || !d)
		return nccl_fail(r, ENOMEM, "no memory");
	r->marks[f->pci].gpu = true;
	g->pci = f->pci;
	*d = (int)dev;
	f->part = TOPO_PART_GPU;
	f->at = (int)t->n_gpus - 1;
	return keep_others(r, f, attrs, none, "");
}

static int open_link(
	struct nccl_reader *r, const char *name, const char *const *attrs, struct nccl_frame *f)
{
	static const char *const known[] = {"target", "count", "tclass", NULL};
	static const char *const known_c2c[] = {"count", "bw", NULL};
	struct topo *t = r->t;
	long count = 0, bw = 0;
	uint32_t cls = 0;
	bool c2c = strcmp(name, "c2c") == 0;
	const char *target = c2c ? NULL : attr(attrs, "target");
	char bdf[24];
	uint64_t key;

	if (number(r, attrs, "count", 0, 65535, &count) ||
		(c2c && number(r, attrs, "bw", 0, 100000000, &bw)) ||
		(!c2c && identifier(r, attrs, "tclass", 6, &cls)))
		return r->rc;
	if (t->n_fast >= NCCL_MAX_FAST)
		return nccl_fail(r, EFBIG, "more than %d links between GPUs", NCCL_MAX_FAST);
	struct topo_fast *l = topo_grow((void **)&t->fast, &t->n_fast, sizeof(*l));

	if (!l)
		return nccl_fail(r, ENOMEM, "no memory");
	l->kind = c2c                         ? TOPO_FAST_C2C
		  : strcmp(name, "xgmi") == 0 ? TOPO_FAST_XGMI
					      : TOPO_FAST_NVLINK;
	l->gpu = f->at;
	l->peer = TOPO_UNKNOWN;
	l->peer_class = cls;
	l->count = (unsigned)count;
	l->bandwidth = (double)bw * 1e6 * (double)count;
	/* What a guest cannot see has no address: "fffffff:ffff:ff". */
	if (target)
		topo_copy(l->peer_bdf, sizeof(l->peer_bdf),
			nccl_address(target, bdf, &key) ? bdf : target);
	f->part = TOPO_PART_FAST;
	f->at = (int)t->n_fast - 1;
	return keep_others(r, f, attrs, c2c ? known_c2c : known, "");
}

/* ---- nic, net ------------------------------------------------------------------------------ */

static int open_nic(struct nccl_reader *r, const char *const *attrs, struct nccl_frame *f)
{
	static const char *const none[] = {NULL};

	/* The tag is no part of its own: its function's, or its cpu's. */
	f->part = f->pci >= 0 ? TOPO_PART_PCI : TOPO_PART_NUMA;
	f->at = f->pci >= 0 ? f->pci : f->numa;
	if (f->pci >= 0)
		r->marks[f->pci].nic = true;
	return keep_others(r, f, attrs, none, "nic/");
}

/**
 * NCCL's InfiniBand transport gives a port (from 1) and a GUID. Its socket transport gives port 0;
 * other plug-ins put a small number where the GUID stands.
 */
static bool is_rdma(const struct topo_pci *p, long port, const char *guid)
{
	if (p && p->class_code >> 8 == 0x0207)
		return true;
	if (port < 1)
		return false;
	return (guid && strtoull(guid, NULL, 16) > 0xffff) || (p && topo_does_rdma(p));
}

static int add_rdma(
	struct nccl_reader *r, const char *name, long port, long mbps, struct nccl_frame *f)
{
	struct topo *t = r->t;
	const struct topo_pci *p = f->pci >= 0 ? &t->pci[f->pci] : NULL;
	struct topo_rdma *d = topo_grow((void **)&t->rdma, &t->n_rdma, sizeof(*d));

	if (!d || !(d->ports = calloc(1, sizeof(*d->ports))))
		return nccl_fail(r, ENOMEM, "no memory");
	topo_copy(d->name, sizeof(d->name), name);
	d->nic = TOPO_UNKNOWN;
	d->pci = f->pci;
	d->numa = f->numa; /* an index until nccl_finish() */
	d->n_ports = 1;
	d->ports[0].num = port > 0 ? (unsigned)port : 1;
	d->ports[0].rate_bps = mbps > 0 ? (uint64_t)mbps * 1000000 : 0;
	/* ConnectX functions change their class with their ports' link layer; others say Ethernet
	 * whatever they carry. */
	if (p && p->class_code >> 8 == 0x0207)
		topo_copy(d->ports[0].link_layer, sizeof(d->ports[0].link_layer), "InfiniBand");
	else if (p && p->class_code >> 8 == 0x0200 && p->vendor == 0x15b3)
		topo_copy(d->ports[0].link_layer, sizeof(d->ports[0].link_layer), "Ethernet");
	f->part = TOPO_PART_RDMA;
	f->at = (int)t->n_rdma - 1;
	return 0;
}

static int add_nic(struct nccl_reader *r, const char *name, long mbps, struct nccl_frame *f)
{
	struct topo *t = r->t;
	struct topo_nic *n = topo_grow((void **)&t->nics, &t->n_nics, sizeof(*n));

	if (!n)
		return nccl_fail(r, ENOMEM, "no memory");
	topo_copy(n->name, sizeof(n->name), name);
	n->pci = f->pci;
	n->numa = f->numa; /* an index until nccl_finish() */
	n->rate_bps = mbps > 0 ? (uint64_t)mbps * 1000000 : 0;
	f->part = TOPO_PART_NIC;
	f->at = (int)t->n_nics - 1;
	return 0;
}

static int open_net(struct nccl_reader *r, const char *const *attrs, struct nccl_frame *f)
{
	static const char *const known[] = {"name", "speed", NULL};
	static const char *const known_rdma[] = {"name", "port", "speed", NULL};
	struct topo *t = r->t;
	const struct topo_pci *p = f->pci >= 0 ? &t->pci[f->pci] : NULL;
	const char *name = attr(attrs, "name");
	long port = 0, mbps = 0;

	if (number(r, attrs, "port", -1, 65535, &port) ||
		number(r, attrs, "speed", -1, 1000000000, &mbps))
		return r->rc;
	if (p)
		r->marks[f->pci].nic = true;
	if (!name || !*name)
		name = p ? p->bdf : NULL;
	if (!name)
		return nccl_fail(r, EINVAL, "<net> without name and without a PCI device");
	if (t->n_rdma + t->n_nics >= NCCL_MAX_NETS)
		return nccl_fail(r, EFBIG, "more than %d network devices", NCCL_MAX_NETS);
	bool rdma = is_rdma(p, port, attr(attrs, "guid"));
	/* Old plug-ins mistake the unit: 200 Gb/s stand as 200000000. Kept, not believed. */
	bool absurd = mbps > MAX_MBPS;

	if (absurd) {
		topo_warn(t, "%s: %.40s of %ld Mb/s: no port is as fast; its rate is unknown",
			r->file, name, mbps);
		mbps = 0;
	}
	if (rdma ? add_rdma(r, name, port, mbps, f) : add_nic(r, name, mbps, f))
		return r->rc;
	if (absurd && nccl_keep(r, f->part, f->at, "speed", attr(attrs, "speed")))
		return r->rc;
	return keep_others(r, f, attrs, rdma ? known_rdma : known, "");
}

/* ---- which tag may stand in which ---------------------------------------------------------- */

static const struct {
	enum nccl_tag in, tag;
	const char *name;
} grammar[] = {
	{NCCL_NONE, NCCL_SYSTEM, "system"},
	{NCCL_SYSTEM, NCCL_CPU, "cpu"},
	{NCCL_CPU, NCCL_PCI, "pci"},
	{NCCL_CPU, NCCL_NIC, "nic"},
	{NCCL_CPU, NCCL_NET, "net"},
	{NCCL_PCI, NCCL_PCI, "pci"},
	{NCCL_PCI, NCCL_GPU, "gpu"},
	{NCCL_PCI, NCCL_NIC, "nic"},
	{NCCL_PCI, NCCL_NET, "net"},
	{NCCL_PCI, NCCL_PCILINK, "pcilink"},
	{NCCL_GPU, NCCL_LINK, "nvlink"},
	{NCCL_GPU, NCCL_LINK, "xgmi"},
	{NCCL_GPU, NCCL_LINK, "c2c"},
	{NCCL_NIC, NCCL_NET, "net"},
};

static int open_known(
	struct nccl_reader *r, const char *name, const char *const *attrs, struct nccl_frame *f)
{
	switch (f->tag) {
	case NCCL_SYSTEM: return open_system(r, attrs, f);
	case NCCL_CPU: return open_cpu(r, attrs, f);
	case NCCL_PCI: return open_pci(r, attrs, f);
	case NCCL_PCILINK: return open_pcilink(r, attrs, f);
	case NCCL_GPU: return open_gpu(r, attrs, f);
	case NCCL_LINK: return open_link(r, name, attrs, f);
	case NCCL_NIC: return open_nic(r, attrs, f);
	case NCCL_NET: return open_net(r, attrs, f);
	case NCCL_NONE: break;
	}
	return 1;
}

int nccl_tag_open(struct nccl_reader *r, const char *name, const char *const *attrs)
{
	/* Below a tag stand its function and its node, unless the tag sets others. */
	struct nccl_frame f = r->stack[r->depth];
	enum nccl_tag in = f.tag;

	if (!r->depth)
		f = (struct nccl_frame){.numa = TOPO_UNKNOWN, .pci = TOPO_UNKNOWN};
	f.tag = NCCL_NONE;
	for (size_t i = 0; i < sizeof(grammar) / sizeof(*grammar); i++)
		if (grammar[i].in == in && strcmp(grammar[i].name, name) == 0)
			f.tag = grammar[i].tag;
	if (f.tag == NCCL_CPU || f.tag == NCCL_SYSTEM)
		f.pci = TOPO_UNKNOWN;
	int rc = open_known(r, name, attrs, &f);

	if (rc == 0)
		r->stack[++r->depth] = f;
	return rc;
}
