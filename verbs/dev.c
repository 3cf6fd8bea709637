// SPDX-License-Identifier: Apache-2.0
/*
 * Opening RDMA devices. Each way it can fail ends with what there is and what helps. GID tables are
 * read whole by ibv_query_gid_table(); an index is used only when a person gave it.
 */
#include "verbs/dev.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_vlan.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/core/json.h"
#include "bench/core/log.h"
#include "bench/core/sysroot.h"
#include "bench/core/units.h"

#include "version.h"

/* Vendor ids that the kernel's software devices report: rxe_param.h, siw.h. */
#define VENDOR_RXE 0xffffffu
#define VENDOR_SIW 0x626d74u

#define GID_TABLE_MAX 1024

static const struct fb_sysroot live = {.dir = NULL};

const char *verbs_port_state(enum ibv_port_state s)
{
	static const char *const names[] = {
		"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};

	return (unsigned)s < sizeof names / sizeof names[0] ? names[s] : "unknown";
}

void verbs_driver_name(unsigned vendor_id, const char *module, char *buf, size_t len)
{
	size_t n;

	if (!module || !*module) {
		snprintf(buf, len, "%s",
			vendor_id == VENDOR_RXE   ? "rxe"
			: vendor_id == VENDOR_SIW ? "siw"
						  : "unknown");
		return;
	}
	snprintf(buf, len, "%s", module);
	n = strlen(buf);
	if (n > 5 && !strcmp(buf + n - 5, "_core"))
		buf[n - 5] = '\0';
	else if (!strcmp(buf, "bnxt_en"))
		snprintf(buf, len, "bnxt_re");
	else if (!strcmp(buf, "ice") || !strcmp(buf, "i40e"))
		snprintf(buf, len, "irdma");
}

bool verbs_driver_software(const char *driver)
{
	return strcmp(driver, "rxe") == 0 || strcmp(driver, "siw") == 0;
}

double verbs_parse_rate_file(const char *text)
{
	char *end;
	double gb = strtod(text, &end);

	if (end == text || gb <= 0 || strncmp(end, " Gb/sec", 7) != 0)
		return 0;
	return gb * 1e9 / 8;
}

const char *verbs_device_names(char *buf, size_t len)
{
	int n = 0;
	size_t at = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	buf[0] = '\0';
	for (int i = 0; list && i < n && at < len; i++)
		at += (size_t)snprintf(
			buf + at, len - at, "%s%s", i ? ", " : "", ibv_get_device_name(list[i]));
	if (list)
		ibv_free_device_list(list);
	if (!buf[0])
		snprintf(buf, len, "none");
	return buf;
}

int verbs_any_device(struct fb_err *why)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	if (list)
		ibv_free_device_list(list);
	if (n > 0)
		return 0;
	fb_fail(why, FB_EXIT_SKIP, ENODEV, "this host has no RDMA device%s",
		fb_sysroot_exists(&live, "/sys/class/infiniband")
			? ""
			: " (the kernel has no ib_core loaded)");
	fb_hint(why,
		"Soft-RoCE on any Ethernet device, as root: modprobe rdma_rxe && rdma link add rxe0 type rxe "
		"netdev eth0; or the lab, as an ordinary user: scripts/lab/lab");
	return -ENODEV;
}

/* ---- one device ------------------------------------------------------------------------------ */

static void read_driver(struct verbs_dev *d)
{
	char path[128], target[512];
	const char *module = NULL;

	snprintf(path, sizeof path, "/sys/class/infiniband/%s/device/driver", d->name);
	if (fb_sysroot_realpath(&live, path, target, sizeof target) == 0) {
		module = strrchr(target, '/');
		module = module ? module + 1 : NULL;
	}
	verbs_driver_name(d->attr.vendor_id, module, d->driver, sizeof d->driver);
	d->software = verbs_driver_software(d->driver);
}

/* NUMA node of a class device, or of the nearest parent that has one: a virtio NIC leaves it to its
 * PCI function. */
static int node_of(const char *class_path)
{
	char path[512], *slash;
	int64_t node;

	if (fb_sysroot_realpath(&live, class_path, path, sizeof path) != 0)
		return -1;
	do {
		if (fb_sysroot_read_i64(&live, &node, "%s/numa_node", path) == 0)
			return node < 0 ? -1 : (int)node;
		slash = strrchr(path, '/');
		if (slash)
			*slash = '\0';
	} while (slash && slash > path);
	return -1;
}

static void read_place(struct verbs_dev *d)
{
	char path[128], name[IF_NAMESIZE];

	if (d->gid.ifindex && if_indextoname(d->gid.ifindex, name))
		snprintf(d->netdev, sizeof d->netdev, "%s", name);
	snprintf(path, sizeof path, "/sys/class/infiniband/%s/device", d->name);
	d->numa_node = node_of(path);
	if (d->numa_node < 0 && d->netdev[0]) {
		/* A software device has no function of its own: its netdev's counts. */
		snprintf(path, sizeof path, "/sys/class/net/%s/device", d->netdev);
		d->numa_node = node_of(path);
	}
	if (fb_sysroot_readf(&live, d->line_rate_s, sizeof d->line_rate_s,
		    "/sys/class/infiniband/%s/ports/%u/rate", d->name, d->port) < 0)
		d->line_rate_s[0] = '\0';
	/* A software device reports a constant, whatever carries it. */
	d->line_rate = d->software ? 0 : verbs_parse_rate_file(d->line_rate_s);
}

static int find_port(struct verbs_dev *d, unsigned want, bool must, struct fb_err *e)
{
	unsigned last = d->attr.phys_port_cnt;
	struct ibv_port_attr seen = {0};
	unsigned seen_port = want ? want : 1;

	if (want > last) {
		fb_fail_usage(e, "--ib-port %u: %s has %u port(s)", want, d->name, last);
		fb_hint(e, "leave it out for the first ACTIVE one; ibv_devinfo lists them");
		return -EINVAL;
	}
	for (unsigned p = want ? want : 1; p <= (want ? want : last); p++) {
		struct ibv_port_attr a;
		if (ibv_query_port(d->ctx, (uint8_t)p, &a) != 0)
			continue;
		if (a.state == IBV_PORT_ACTIVE) {
			d->port = p;
			d->port_attr = a;
			return 0;
		}
		if (p == seen_port)
			seen = a;
	}
	if (must) {
		fb_fail(e, FB_EXIT_UNMEASURED, ENETDOWN, "%s port %u is %s, not ACTIVE", d->name,
			seen_port, verbs_port_state(seen.state));
		fb_hint(e,
			seen.link_layer == IBV_LINK_LAYER_INFINIBAND && seen.state == IBV_PORT_INIT
				? "no subnet manager has configured it: look with sminfo, start opensm"
				: "bring its link up: ip link set DEV up; look at the cable and at ibv_devinfo");
	}
	return -ENETDOWN;
}

static void list_gids(const struct verbs_gid *v, unsigned n, char *buf, size_t len)
{
	size_t at = 0;
	char s[INET6_ADDRSTRLEN];

	snprintf(buf, len, "none");
	for (unsigned i = 0; i < n && i < 8 && at < len; i++)
		at += (size_t)snprintf(buf + at, len - at, "%s%u: %s (%s%s)", i ? ", " : "",
			v[i].index, verbs_gid_str(&v[i].raw, s, sizeof s),
			verbs_gid_type_names[v[i].type], v[i].vlan ? ", VLAN" : "");
}

/* The VLAN of a netdev; 0 where it is none. /proc/net/vlan is for root alone, this call is not. */
static unsigned vlan_of(uint32_t ifindex)
{
	struct vlan_ioctl_args a = {.cmd = GET_VLAN_VID_CMD};
	char name[IF_NAMESIZE];
	unsigned vid = 0;
	int fd;

	if (!ifindex || !if_indextoname(ifindex, name))
		return 0;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	snprintf(a.device1, sizeof a.device1, "%s", name);
	if (ioctl(fd, SIOCGIFVLAN, &a) == 0)
		vid = (unsigned)a.u.VID;
	close(fd);
	return vid;
}

static void fill_gid(const struct verbs_dev *d, const struct ibv_gid_entry *t, struct verbs_gid *g)
{
	bool ib = d->port_attr.link_layer == IBV_LINK_LAYER_INFINIBAND;

	*g = (struct verbs_gid){.raw = t->gid,
		.index = t->gid_index,
		.ifindex = t->ndev_ifindex,
		.vlan = vlan_of(t->ndev_ifindex),
		.type = (enum verbs_gid_type)t->gid_type,
		.family = verbs_gid_family_of(&t->gid, ib)};
}

int verbs_dev_gid_at(const struct verbs_dev *d, uint32_t index, struct verbs_gid *g)
{
	struct ibv_gid_entry t;
	int err = ibv_query_gid_ex(d->ctx, d->port, index, &t, 0);

	if (err)
		return err > 0 ? -err : -EIO;
	fill_gid(d, &t, g);
	return 0;
}

static const char *want_text(const struct verbs_gid_want *want, char *buf, size_t len)
{
	char gid[INET6_ADDRSTRLEN];
	size_t at = 0;

	buf[0] = '\0';
	if (want->index >= 0)
		at += (size_t)snprintf(buf + at, len - at, ", index %d", want->index);
	if (want->by_address && at < len)
		at += (size_t)snprintf(buf + at, len - at, ", address %s",
			verbs_gid_str(&want->addr, gid, sizeof gid));
	if (want->type >= 0 && at < len)
		at += (size_t)snprintf(
			buf + at, len - at, ", type %s", verbs_gid_type_names[want->type]);
	if (want->family >= 0 && at < len)
		at += (size_t)snprintf(buf + at, len - at, ", family %s",
			want->family == VERBS_GID_ANY_IPV6 ? "IPv6"
							   : verbs_gid_family_names[want->family]);
	if (want->vlan && at < len)
		snprintf(buf + at, len - at, ", VLAN %u", want->vlan);
	return buf[0] ? buf + 2 : "any";
}

static int find_gid(struct verbs_dev *d, const struct verbs_gid_want *want, struct fb_err *e)
{
	struct ibv_gid_entry *t = calloc(GID_TABLE_MAX, sizeof *t);
	struct verbs_gid *v = calloc(GID_TABLE_MAX, sizeof *v);
	unsigned n = 0;
	ssize_t got;
	int pick, rc = -ENOMEM;

	if (!t || !v) {
		fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the GID table of %s",
			d->name);
		goto out;
	}
	got = ibv_query_gid_table(d->ctx, t, GID_TABLE_MAX, 0);
	if (got < 0) {
		rc = fb_fail(e, FB_EXIT_UNMEASURED, (int)-got,
			"cannot read the GID table of %s: %s", d->name, strerror((int)-got));
		goto out;
	}
	for (ssize_t i = 0; i < got; i++) {
		if (t[i].port_num != d->port)
			continue;
		fill_gid(d, &t[i], &v[n++]);
	}
	pick = verbs_gid_choose(v, n, want);
	if (pick < 0) {
		char all[400], asked[200];
		list_gids(v, n, all, sizeof all);
		rc = fb_fail(e, FB_EXIT_UNMEASURED, EADDRNOTAVAIL,
			"%s port %u has no GID as asked for (%s); it has %s", d->name, d->port,
			want_text(want, asked, sizeof asked), all);
		fb_hint(e,
			"give its netdev an address (ip addr add), or choose with --gid, --gid-index, "
			"--gid-type, --gid-family or --vlan");
		goto out;
	}
	d->gid = v[pick];
	rc = 0;
out:
	free(v);
	free(t);
	return rc;
}

int verbs_pkey_choose(const uint16_t *table, unsigned n, unsigned want)
{
	int best = -1;

	for (unsigned i = 0; i < n; i++) {
		if (!(table[i] & 0x7fff) || (table[i] & 0x7fff) != (want & 0x7fff))
			continue;
		if (best < 0 || (table[i] & 0x8000 && !(table[best] & 0x8000)))
			best = (int)i;
	}
	return best;
}

static int find_pkey(struct verbs_dev *d, const struct verbs_dev_want *want, struct fb_err *e)
{
	unsigned n = d->port_attr.pkey_tbl_len ? d->port_attr.pkey_tbl_len : 1;
	uint16_t *table, one;
	int at;

	if (!want->pkey) {
		if (ibv_query_pkey(d->ctx, (uint8_t)d->port, (int)want->pkey_index, &one) != 0)
			return fb_fail_usage(e, "--pkey-index %u: %s port %u has no such P_Key",
				want->pkey_index, d->name, d->port);
		d->pkey = ntohs(one);
		d->pkey_index = want->pkey_index;
		return 0;
	}
	table = calloc(n, sizeof *table);
	if (!table)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the P_Key table");
	for (unsigned i = 0; i < n; i++)
		if (ibv_query_pkey(d->ctx, (uint8_t)d->port, (int)i, &one) == 0)
			table[i] = ntohs(one);
	at = verbs_pkey_choose(table, n, want->pkey);
	if (at >= 0) {
		d->pkey_index = (unsigned)at;
		d->pkey = table[at];
	} else {
		fb_fail(e, FB_EXIT_UNMEASURED, ENOENT,
			"--pkey 0x%04x: %s port %u is not in that partition; its first P_Key is 0x%04x",
			want->pkey, d->name, d->port, table[0]);
		fb_hint(e,
			"cat /sys/class/infiniband/%s/ports/%u/pkeys/* lists them; partitions.conf "
			"of the subnet manager makes them",
			d->name, d->port);
	}
	free(table);
	return at < 0 ? -ENOENT : 0;
}

static int open_one(struct verbs_dev *d, struct ibv_device *dev, const struct verbs_dev_want *want,
	bool must, struct fb_err *e)
{
	int rc;

	memset(d, 0, sizeof *d);
	snprintf(d->name, sizeof d->name, "%s", ibv_get_device_name(dev));
	errno = 0;
	d->ctx = ibv_open_device(dev);
	if (!d->ctx) {
		int err = errno ? errno : EIO;
		fb_fail(e, FB_EXIT_UNMEASURED, err, "cannot open %s: %s", d->name, strerror(err));
		fb_hint(e,
			err == EACCES || err == EPERM
				? "look at the permissions of /dev/infiniband/uverbs*; containers need the "
				  "device passed in"
				: "modprobe ib_uverbs; look at dmesg");
		return -err;
	}
	if (ibv_query_device(d->ctx, &d->attr) != 0) {
		rc = fb_fail(e, FB_EXIT_UNMEASURED, errno, "cannot query %s: %s", d->name,
			strerror(errno));
		goto close;
	}
	rc = find_port(d, want->port, must, e);
	if (rc)
		goto close;
	rc = find_gid(d, &want->gid, e);
	if (rc)
		goto close;
	rc = find_pkey(d, want, e);
	if (rc)
		goto close;
	read_driver(d);
	read_place(d);
	return 0;
close:
	ibv_close_device(d->ctx);
	d->ctx = NULL;
	return rc;
}

/* ---- the set --------------------------------------------------------------------------------- */

static int no_such_device(const char *name, size_t len, const char *have, struct fb_err *e)
{
	fb_fail(e, FB_EXIT_USAGE, ENOENT,
		"there is no RDMA device '%.*s' on this host; there are: %s", (int)len, name, have);
	fb_hint(e, "choose one of them with --device, or leave it out for the first ACTIVE one");
	return -ENOENT;
}

static int open_named(struct verbs_node *n, struct ibv_device **list, int count, const char *name,
	size_t len, const struct verbs_dev_want *want, struct fb_err *e)
{
	char names[512];

	if (n->n == VERBS_MAX_RAILS)
		return fb_fail_usage(e, "--device: more than %d devices", VERBS_MAX_RAILS);
	for (unsigned i = 0; i < n->n; i++)
		if (strlen(n->dev[i].name) == len && !strncmp(n->dev[i].name, name, len))
			return fb_fail_usage(e, "--device names %.*s twice", (int)len, name);
	for (int i = 0; i < count; i++) {
		const char *have = ibv_get_device_name(list[i]);
		int rc;
		if (strlen(have) != len || strncmp(have, name, len) != 0)
			continue;
		rc = open_one(&n->dev[n->n], list[i], want, true, e);
		if (rc == 0)
			n->n++;
		return rc;
	}
	return no_such_device(name, len, verbs_device_names(names, sizeof names), e);
}

int verbs_device_known(const char *names, struct fb_err *e)
{
	char all[512];
	int count = 0, rc = 0;
	struct ibv_device **list = ibv_get_device_list(&count);

	for (const char *p = names; rc == 0; p++) {
		size_t len = strcspn(p, ",");
		int i = 0;
		while (list && i < count &&
			(strlen(ibv_get_device_name(list[i])) != len ||
				strncmp(ibv_get_device_name(list[i]), p, len) != 0))
			i++;
		if (!list || i == count)
			rc = no_such_device(p, len, verbs_device_names(all, sizeof all), e);
		p += len;
		if (!*p)
			break;
	}
	if (list)
		ibv_free_device_list(list);
	return rc;
}

static int open_active(struct verbs_node *n, struct ibv_device **list, int count, bool all,
	const struct verbs_dev_want *want, struct fb_err *e)
{
	char names[512];
	struct fb_err last = {0}, left[VERBS_MAX_RAILS];
	unsigned n_left = 0;

	for (int i = 0; i < count && n->n < VERBS_MAX_RAILS && (all || n->n == 0); i++) {
		struct fb_err one = {0};
		int rc = open_one(&n->dev[n->n], list[i], want, true, &one);
		if (rc == 0)
			n->n++;
		else if (rc != -ENETDOWN || last.code == 0)
			last = one;
		/* Who asks for all is told which of them is missing. */
		if (rc && all && n_left < VERBS_MAX_RAILS)
			left[n_left++] = one;
	}
	for (unsigned i = 0; i < n_left && n->n > 0; i++)
		fb_warn("left out of all devices: %s", left[i].msg);
	if (n->n > 0)
		return 0;
	if (last.code) {
		fb_fail(e, last.exit, last.code, "no usable RDMA device (there are: %s): %s",
			verbs_device_names(names, sizeof names), last.msg);
		fb_hint(e, "%s", last.hint);
	} else {
		fb_fail(e, FB_EXIT_UNMEASURED, ENODEV, "no usable RDMA device");
	}
	return e ? e->code : -ENODEV;
}

int verbs_node_open(struct verbs_node *n, const struct verbs_dev_want *want, struct fb_err *e)
{
	int count = 0, rc;
	struct ibv_device **list;

	n->n = 0;
	rc = verbs_any_device(e);
	if (rc) { /* who names a device requires it */
		if (e && want->device && *want->device && strcmp(want->device, "all") != 0)
			e->exit = FB_EXIT_USAGE;
		return rc;
	}
	list = ibv_get_device_list(&count);
	if (!list)
		return fb_fail(e, FB_EXIT_UNMEASURED, errno, "cannot list RDMA devices: %s",
			strerror(errno));
	if (!want->device || !*want->device || !strcmp(want->device, "all")) {
		rc = open_active(n, list, count, want->device && *want->device, want, e);
	} else {
		const char *p = want->device;
		do {
			size_t len = strcspn(p, ",");
			rc = open_named(n, list, count, p, len, want, e);
			p += len;
		} while (rc == 0 && *p++ == ',');
	}
	ibv_free_device_list(list);
	if (rc)
		verbs_node_close(n);
	return rc;
}

void verbs_node_close(struct verbs_node *n)
{
	for (unsigned i = 0; i < n->n; i++)
		if (n->dev[i].ctx)
			ibv_close_device(n->dev[i].ctx);
	n->n = 0;
}

bool verbs_node_hardware(const struct verbs_node *n)
{
	for (unsigned i = 0; i < n->n; i++)
		if (n->dev[i].software)
			return false;
	return n->n > 0;
}

json_t *verbs_dev_facts(const struct verbs_dev *d)
{
	json_t *j = json_object();

	if (!j)
		return NULL;
	fb_json_set_str(j, "device", d->name);
	fb_json_set_int(j, "port", d->port);
	fb_json_set_str(j, "driver", d->driver);
	fb_json_set_str(j, "fw", d->attr.fw_ver);
	fb_json_set_str(j, "link_layer",
		d->port_attr.link_layer == IBV_LINK_LAYER_INFINIBAND ? "InfiniBand" : "Ethernet");
	fb_json_set_int(j, "gid_index", d->gid.index);
	fb_json_set_str(j, "gid_type", verbs_gid_type_names[d->gid.type]);
	fb_json_set_str(j, "gid_family", verbs_gid_family_names[d->gid.family]);
	fb_json_set_int(j, "active_mtu", verbs_mtu_bytes(d->port_attr.active_mtu));
	if (d->gid.vlan)
		fb_json_set_int(j, "vlan", d->gid.vlan);
	if (d->netdev[0])
		fb_json_set_str(j, "netdev", d->netdev);
	if (d->numa_node >= 0)
		fb_json_set_int(j, "numa_node", d->numa_node);
	if (d->line_rate_s[0] && !d->software)
		fb_json_set_str(j, "rate", d->line_rate_s);
	return j;
}

void verbs_dev_end(const struct verbs_dev *d, struct verbs_end *x)
{
	memset(x, 0, sizeof *x);
	snprintf(x->device, sizeof x->device, "%s", d->name);
	snprintf(x->driver, sizeof x->driver, "%s", d->driver);
	snprintf(x->fw, sizeof x->fw, "%s", d->attr.fw_ver);
	snprintf(x->program, sizeof x->program, "%s", FB_VERSION);
	x->port = d->port;
	x->link_layer = d->port_attr.link_layer == IBV_LINK_LAYER_INFINIBAND
				? IBV_LINK_LAYER_INFINIBAND
				: IBV_LINK_LAYER_ETHERNET;
	x->mtu = verbs_mtu_bytes(d->port_attr.active_mtu);
	x->lid = d->port_attr.lid;
	x->lmc = d->port_attr.lmc;
	x->sm_sl = d->port_attr.sm_sl;
	x->pkey = d->pkey;
	x->gid = d->gid.raw;
	x->gid_index = d->gid.index;
	x->gid_type = d->gid.type;
	x->gid_family = d->gid.family;
	x->grh_required = (d->port_attr.flags & IBV_QPF_GRH_REQUIRED) != 0;
	x->max_rd_atomic = (unsigned)(d->attr.max_qp_rd_atom > 0 ? d->attr.max_qp_rd_atom : 1);
	if (x->max_rd_atomic > 128)
		x->max_rd_atomic = 128;
}

/* ---- locked memory --------------------------------------------------------------------------- */

static bool may_lock_anything(void)
{
	char text[4096];
	const char *p;
	unsigned long long caps;

	if (fb_sysroot_read(&live, "/proc/self/status", text, sizeof text) < 0)
		return false;
	p = strstr(text, "\nCapEff:");
	if (!p)
		return false;
	caps = strtoull(p + 8, NULL, 16);
	return caps >> 14 & 1; /* CAP_IPC_LOCK, linux/capability.h */
}

int verbs_memlock_check(uint64_t bytes, struct fb_err *e)
{
	struct rlimit r;
	char have[32], need[32];

	if (getrlimit(RLIMIT_MEMLOCK, &r) != 0 || r.rlim_cur == RLIM_INFINITY ||
		(uint64_t)r.rlim_cur >= bytes || may_lock_anything())
		return 0;
	fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM,
		"locked memory is limited to %s (RLIMIT_MEMLOCK) and %s must be registered with the device",
		fb_fmt_size(r.rlim_cur, have, sizeof have), fb_fmt_size(bytes, need, sizeof need));
	fb_hint(e,
		"raise it: ulimit -l unlimited in the shell that starts this; for good, '* - memlock "
		"unlimited' in /etc/security/limits.d/rdma.conf, LimitMEMLOCK=infinity for a service");
	return -ENOMEM;
}
