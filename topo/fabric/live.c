// SPDX-License-Identifier: Apache-2.0
/*
 * The live subnet through libibnetdisc, which is opened when it is asked for: the program itself
 * does not depend on it. What the library sends are read-only SMPs and PerfMgt Gets.
 *
 * The library prints its own warnings on standard error, such as of a node that does not answer:
 * they stay, since they name what is missing then. Where there is nothing to ask it is not called.
 * It cannot be interrupted; --timeout ends the whole command.
 */
#include <errno.h>

#include "topo/fabric/fabric_priv.h"

#ifndef HAVE_IBNETDISC

int fabric_read_live(struct fabric *f, const char *ca, int port, bool counters, struct fb_err *e)
{
	int rc = fb_fail(e, FB_EXIT_SKIP, EOPNOTSUPP,
		"--live is not possible: this program was built without libibnetdisc's headers");
	fb_hint(e,
		"install libibnetdisc-dev and build again, or save a dump (ibnetdiscover > FILE) and "
		"give it to --ibnetdiscover");
	return rc;
}

#else

#include <dlfcn.h>
#include <infiniband/ibnetdisc.h>
#include <infiniband/umad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/result.h"

#define LIBRARY    "libibnetdisc.so.5"
#define TIMEOUT_MS 1000
#define MAX_SILENT 16     /* nodes without an answer to PerfMgt, after which no other is asked */
#define EXT_SPEEDS 0x4000 /* CapabilityMask, IsExtendedSpeedsSupported (IBTA 1.4, 14.2.5.6) */
#define FDR10_BIT  1      /* of the vendor's extended PortInfo */

struct library {
	void *handle;
	ibnd_fabric_t *(*discover)(char *, int, ib_portid_t *, struct ibnd_config *);
	void (*destroy)(ibnd_fabric_t *);
	uint32_t (*field)(void *, int, enum MAD_FIELDS);
	uint64_t (*field64)(void *, int, enum MAD_FIELDS);
	struct ibmad_port *(*open)(char *, int, int *, int);
	void (*close)(struct ibmad_port *);
	uint8_t *(*query)(
		void *, ib_portid_t *, int, unsigned, unsigned, const struct ibmad_port *);
	struct umad_device_node *(*devices)(void);
	void (*free_devices)(struct umad_device_node *);
};

static int load(struct library *l, struct fb_err *e)
{
	struct {
		const char *name;
		void **to;
	} symbols[] = {{"ibnd_discover_fabric", (void **)&l->discover},
		{"ibnd_destroy_fabric", (void **)&l->destroy},
		{"mad_get_field", (void **)&l->field}, {"mad_get_field64", (void **)&l->field64},
		{"mad_rpc_open_port", (void **)&l->open},
		{"mad_rpc_close_port", (void **)&l->close}, {"pma_query_via", (void **)&l->query},
		{"umad_get_ca_device_list", (void **)&l->devices},
		{"umad_free_ca_device_list", (void **)&l->free_devices}};
	l->handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!l->handle) {
		fb_fail(e, FB_EXIT_SKIP, ENOENT, "--live is not possible: %s", dlerror());
		fb_hint(e,
			"apt-get install libibnetdisc5, or save a dump (ibnetdiscover > FILE) on a host "
			"that has it and give it to --ibnetdiscover");
		return -ENOENT;
	}
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		/* It also looks through the libraries that this one needs: libibmad, libibumad. */
		*symbols[i].to = dlsym(l->handle, symbols[i].name);
		if (*symbols[i].to)
			continue;
		fb_fail(e, FB_EXIT_SKIP, ENOENT, "--live is not possible: %s lacks %s", LIBRARY,
			symbols[i].name);
		fb_hint(e, "install rdma-core 44 or later");
		dlclose(l->handle);
		return -ENOENT;
	}
	return 0;
}

/* ---- into the model -------------------------------------------------------------------------- */

static unsigned best_bit(unsigned mask)
{
	unsigned best = 0;
	for (unsigned bit = 1; bit && bit <= mask; bit <<= 1)
		if (mask & bit)
			best = bit;
	return best;
}

/* Bits of LinkWidthSupported: 1x, 4x, 8x, 12x, 2x are not in order. */
static unsigned widest(unsigned mask)
{
	unsigned best = 0;
	for (unsigned bit = 1; bit <= 16; bit <<= 1)
		if ((mask & bit) && fabric_width_of_code(bit) > best)
			best = fabric_width_of_code(bit);
	return best;
}

static void read_port(const struct library *l, ibnd_port_t *from, struct fabric_port *p)
{
	ibnd_node_t *n = from->node;
	/* A switch's capabilities are those of its port 0. */
	ibnd_port_t *own = n->type == IB_NODE_SWITCH ? n->ports[0] : from;
	uint32_t mask = own ? l->field(own->info, 0, IB_PORT_CAPMASK_F) : 0;
	bool ext = (mask & EXT_SPEEDS) != 0;
	bool fdr10 = (l->field(from->ext_info, 0, IB_MLNX_EXT_PORT_LINK_SPEED_ACTIVE_F) &
			     FDR10_BIT) != 0;
	unsigned active = l->field(from->info, 0, IB_PORT_LINK_SPEED_ACTIVE_F);
	unsigned could = l->field(from->info, 0, IB_PORT_LINK_SPEED_SUPPORTED_F);
	unsigned ext_active = ext ? l->field(from->info, 0, IB_PORT_LINK_SPEED_EXT_ACTIVE_F) : 0;
	unsigned ext_could = ext ? l->field(from->info, 0, IB_PORT_LINK_SPEED_EXT_SUPPORTED_F) : 0;
	p->state = (uint8_t)l->field(from->info, 0, IB_PORT_STATE_F);
	p->lid = from->base_lid;
	/* IBTA 1.4, C14-24.2.1: of a port that is down only its states mean anything. */
	if (p->state <= FABRIC_DOWN)
		return;
	p->width =
		(uint8_t)fabric_width_of_code(l->field(from->info, 0, IB_PORT_LINK_WIDTH_ACTIVE_F));
	p->max_width = (uint8_t)widest(l->field(from->info, 0, IB_PORT_LINK_WIDTH_SUPPORTED_F));
	p->speed = (uint16_t)fabric_speed_of_codes(active, ext_active, fdr10);
	p->max_speed =
		(uint16_t)fabric_speed_of_codes(best_bit(could & 7), best_bit(ext_could), false);
}

static int read_node(struct fabric *f, const struct library *l, ibnd_node_t *from)
{
	static const uint8_t kinds[] = {[IB_NODE_CA] = FABRIC_CA,
		[IB_NODE_SWITCH] = FABRIC_SWITCH,
		[IB_NODE_ROUTER] = FABRIC_ROUTER};
	int kind =
		from->type > 0 && from->type <= IB_NODE_ROUTER ? kinds[from->type] : FABRIC_UNKNOWN;
	int node = fabric_node_by_guid(f, from->guid, (enum fabric_kind)kind);
	if (node < 0)
		return node;
	struct fabric_node *n = &f->node.v[node];
	if (n->defined && fabric_conflict(f, -1, node, -1, 0) < 0)
		return -ENOMEM;
	n->defined = n->ids = true;
	n->ports = (uint16_t)from->numports;
	n->lid = from->smalid;
	n->sys_guid = l->field64(from->info, 0, IB_NODE_SYSTEM_GUID_F);
	n->vendor = l->field(from->info, 0, IB_NODE_VENDORID_F);
	n->device = l->field(from->info, 0, IB_NODE_DEVID_F);
	fabric_set_name(f, node, from->nodedesc, strnlen(from->nodedesc, FABRIC_NAME - 1));
	for (int i = 1; i <= from->numports && i <= FABRIC_MAX_PORT; i++) {
		ibnd_port_t *p = from->ports[i];
		int port = p ? fabric_port_of(f, node, (unsigned)i) : 0;
		if (port < 0)
			return port;
		if (!p)
			continue;
		read_port(l, p, &f->port.v[port]);
		if (kind == FABRIC_CA && fabric_set_port_guid(f, port, p->guid) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int join_node(struct fabric *f, ibnd_node_t *from)
{
	int node = fabric_map_get(&f->by_guid, from->guid);
	for (int i = 1; node >= 0 && i <= from->numports && i <= FABRIC_MAX_PORT; i++) {
		ibnd_port_t *p = from->ports[i], *r = p ? p->remoteport : NULL;
		int peer = r ? fabric_map_get(&f->by_guid, r->node->guid) : -1;
		if (peer < 0 || r->portnum < 0 || r->portnum > FABRIC_MAX_PORT)
			continue;
		int a = fabric_port_of(f, node, (unsigned)i);
		int b = fabric_port_of(f, peer, (unsigned)r->portnum);
		if (a < 0 || b < 0 || fabric_join(f, a, b, 0) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* ---- counters -------------------------------------------------------------------------------- */

static const struct {
	enum fabric_counter c;
	enum MAD_FIELDS field;
} fields[] = {
	{FABRIC_SYMBOL, IB_PC_ERR_SYM_F},
	{FABRIC_RECOVERY, IB_PC_LINK_RECOVERS_F},
	{FABRIC_DOWNED, IB_PC_LINK_DOWNED_F},
	{FABRIC_RCV, IB_PC_ERR_RCV_F},
	{FABRIC_REMOTE, IB_PC_ERR_PHYSRCV_F},
	{FABRIC_RELAY, IB_PC_ERR_SWITCH_REL_F},
	{FABRIC_DISCARD, IB_PC_XMT_DISCARDS_F},
	{FABRIC_XMIT_CONSTRAINT, IB_PC_ERR_XMTCONSTR_F},
	{FABRIC_RCV_CONSTRAINT, IB_PC_ERR_RCVCONSTR_F},
	{FABRIC_INTEGRITY, IB_PC_ERR_LOCALINTEG_F},
	{FABRIC_OVERRUN, IB_PC_ERR_EXCESS_OVR_F},
	{FABRIC_VL15, IB_PC_VL15_DROPPED_F},
	{FABRIC_XMIT_PKTS, IB_PC_XMT_PKTS_F},
	{FABRIC_RCV_PKTS, IB_PC_RCV_PKTS_F},
};

/* @return 0; -EIO: no answer; -ENOMEM */
static int query_port(
	struct fabric *f, const struct library *l, const struct ibmad_port *src, int port)
{
	const struct fabric_port *p = &f->port.v[port];
	const struct fabric_node *n = &f->node.v[p->node];
	uint8_t buf[1024] = {0};
	ib_portid_t to = {.lid = n->kind == FABRIC_SWITCH ? n->lid : p->lid,
		.qp = 1,
		.qkey = IB_DEFAULT_QP1_QKEY};
	if (to.lid == 0 || !l->query(buf, &to, p->num, TIMEOUT_MS, IB_GSI_PORT_COUNTERS, src))
		return -EIO;
	struct fabric_counters *c = FABRIC_ADD(f->counters);
	if (!c)
		return -ENOMEM;
	c->port = (uint32_t)port;
	f->port.v[port].counters = (int32_t)f->counters.n - 1;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		c->v[fields[i].c] = l->field(buf, 0, fields[i].field);
		c->told |= 1u << fields[i].c;
	}
	return 0;
}

static int read_counters(
	struct fabric *f, const struct library *l, const char *ca, int port, struct fb_err *e)
{
	int classes[] = {IB_SMI_CLASS, IB_SA_CLASS, IB_PERFORMANCE_CLASS};
	struct ibmad_port *src =
		l->open((char *)ca, port, classes, sizeof(classes) / sizeof(classes[0]));
	int rc = 0;
	if (!src)
		return 0; /* fab.counters says that there are none */
	for (size_t i = 0; i < f->node.n && rc == 0 && f->silent < MAX_SILENT; i++) {
		bool asked = true;
		FABRIC_PORTS (f, i, p) {
			if (f->port.v[p].peer < 0 || !asked || rc == -ENOMEM)
				continue;
			if (fb_stop_requested()) {
				rc = fb_fail(e, FB_EXIT_UNMEASURED, ETIMEDOUT,
					"stopped while reading port counters");
				fb_hint(e, "--no-live-counters leaves them out");
				break;
			}
			int one = query_port(f, l, src, p);
			asked = one == 0;
			f->silent += one == -EIO;
			rc = one == -ENOMEM ? one : rc;
		}
	}
	l->close(src);
	f->counted = f->counters.n > 0;
	return rc;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Is there the device that is asked for, or any? */
static int find_device(const struct library *l, const char *ca, struct fb_err *e)
{
	struct umad_device_node *list = l->devices();
	char names[200] = "";
	size_t n = 0;
	bool found = !ca && list;
	for (const struct umad_device_node *d = list; d; d = d->next) {
		found = found || strcmp(d->ca_name, ca) == 0;
		if (n + 24 < sizeof(names))
			n += (size_t)snprintf(
				names + n, sizeof(names) - n, "%s%.20s", n ? ", " : "", d->ca_name);
	}
	l->free_devices(list);
	if (found)
		return 0;
	if (n) {
		fb_fail_usage(e, "--ca %s: no such InfiniBand device", ca);
		fb_hint(e, "here are %s", names);
		return e->code;
	}
	fb_fail(e, FB_EXIT_SKIP, ENODEV,
		"--live is not possible: there is no InfiniBand management device here "
		"(/sys/class/infiniband_mad)");
	fb_hint(e,
		"modprobe ib_umad where there is an HCA; or save a dump on a host of the fabric: "
		"ibnetdiscover > FILE");
	return e->code;
}

static int no_fabric(const char *ca, struct fb_err *e)
{
	if (access("/dev/infiniband/umad0", R_OK | W_OK) < 0 && errno == EACCES) {
		fb_fail(e, FB_EXIT_SKIP, EACCES,
			"--live is not possible: /dev/infiniband/umad0: %s", strerror(errno));
		fb_hint(e,
			"run it as root, or let your group read and write /dev/infiniband/umad*");
	} else {
		fb_fail(e, FB_EXIT_UNMEASURED, EIO, "the subnet of %s could not be read",
			ca ? ca : "this host's HCA");
		fb_hint(e,
			"ibstat tells whether a port is Active; choose one with --ca and --port");
	}
	return e->code;
}

int fabric_read_live(struct fabric *f, const char *ca, int port, bool counters, struct fb_err *e)
{
	struct library l = {.handle = NULL};
	struct ibnd_config config = {.timeout_ms = TIMEOUT_MS, .retries = 2};
	int rc = load(&l, e);
	if (rc < 0)
		return rc;
	rc = find_device(&l, ca, e);
	if (rc < 0)
		goto close_library;
	ibnd_fabric_t *from = l.discover((char *)ca, port, NULL, &config);
	if (!from) {
		rc = no_fabric(ca, e);
		goto close_library;
	}
	for (ibnd_node_t *n = from->nodes; n && rc == 0; n = n->next)
		rc = read_node(f, &l, n);
	for (ibnd_node_t *n = from->nodes; n && rc == 0; n = n->next)
		rc = join_node(f, n);
	l.destroy(from);
	f->states = f->maxima = true;
	snprintf(f->source, sizeof(f->source), "live subnet");
	if (rc == 0 && counters)
		rc = read_counters(f, &l, ca, port, e);
	if (rc < 0)
		fb_fail(e, FB_EXIT_UNMEASURED, rc, "no memory for the subnet");
close_library:
	dlclose(l.handle);
	return rc;
}

#endif
