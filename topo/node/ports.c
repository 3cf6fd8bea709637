// SPDX-License-Identifier: Apache-2.0
/*
 * RDMA ports: state, rate, what each is for, firmware, counters, partitions and GIDs, and what of
 * PFC the file system tells. Deeper checks of one link layer are `check roce` and `check ib`.
 */
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/core/json.h"
#include "topo/node/node_priv.h"

#define IB_DIR "/sys/class/infiniband"

struct port {
	const struct node_dev *d;
	const struct topo_rdma *dev;
	const struct topo_rdma_port *p;
	char dir[128];     /* /sys/class/infiniband/D/ports/P */
	char subject[112]; /* "mlx5_0/1 (0000:0c:00.0)" */
};

/* Calls fn for every port of every RDMA device; a check that then has no finding is a skip. */
static void each_port(struct node_run *c, void (*fn)(struct node_run *c, const struct port *p),
	const char *without)
{
	struct node *n = c->n;
	size_t before = c->findings;
	for (size_t i = 0; i < n->n_dev; i++) {
		const struct node_dev *d = &n->dev[i];
		if (d->rdma < 0 || d->role == NODE_ROLE_AGGREGATION)
			continue;
		const struct topo_rdma *r = &n->t->rdma[d->rdma];
		for (size_t k = 0; k < r->n_ports; k++) {
			struct port p = {.d = d, .dev = r, .p = &r->ports[k]};
			snprintf(p.dir, sizeof(p.dir), IB_DIR "/%s/ports/%u", r->name, p.p->num);
			if (d->pci >= 0)
				snprintf(p.subject, sizeof(p.subject), "%s/%u (%s)", r->name,
					p.p->num, n->t->pci[d->pci].bdf);
			else
				snprintf(p.subject, sizeof(p.subject), "%s/%u", r->name, p.p->num);
			fn(c, &p);
		}
	}
	if (c->findings == before)
		node_skip(c, "not available: no %s port here", without);
}

static bool is_ethernet(const struct port *p)
{
	return strcmp(p->p->link_layer, "Ethernet") == 0;
}

/* ---- state, rate, role ----------------------------------------------------------------------- */

/* Is another port of the same card up? An unused second port is no fault. */
static bool twin_is_up(const struct node *n, const struct port *p)
{
	const char *own = p->d->pci >= 0 ? n->t->pci[p->d->pci].bdf : NULL;
	for (size_t i = 0; i < n->n_dev && own; i++) {
		const struct node_dev *d = &n->dev[i];
		if (d->rdma < 0 || d->pci < 0)
			continue;
		const char *bdf = n->t->pci[d->pci].bdf;
		size_t slot = strcspn(bdf, ".");
		const struct topo_rdma *r = &n->t->rdma[d->rdma];
		for (size_t k = 0; k < r->n_ports; k++)
			if (&r->ports[k] != p->p && strncmp(bdf, own, slot + 1) == 0 &&
				r->ports[k].state == 4)
				return true;
	}
	return false;
}

static void state_of(struct node_run *c, const struct port *p)
{
	struct fb_finding f = node_finding(c, p->subject);
	bool active = p->p->state == 4;
	bool up = !p->p->phys_state[0] || strcmp(p->p->phys_state, "LinkUp") == 0;
	const char *cause = p->p->state == 2   ? ": the link is up, and no subnet manager has "
						 "configured it"
			    : p->p->state == 3 ? ": armed, waiting for the subnet manager"
			    : strcmp(p->p->phys_state, "Polling") == 0
				    ? ": nothing answers: cable, or the port at the other end"
			    : strcmp(p->p->phys_state, "Disabled") == 0 ? ": somebody disabled it"
									: "";
	fb_find_read(&f, "%s/{state,phys_state}", p->dir);
	fb_find_expected(&f, "traffic needs an active port", "ACTIVE and LinkUp");
	if (p->p->state == 0) {
		fb_find(&f, FB_CHECK_SKIP, "%s",
			c->n->live ? "not available: the port tells no state" : "not recorded");
		node_emit(c, &f);
		return;
	}
	bool well = active && up;
	bool matters = !well && p->d->role == NODE_ROLE_COMPUTE && !twin_is_up(c->n, p);
	fb_find(&f,
		well      ? FB_CHECK_PASS
		: matters ? FB_CHECK_FAIL
			  : FB_CHECK_WARN,
		"%s, %s%s", p->p->state_name,
		p->p->phys_state[0] ? p->p->phys_state
				    : "physical "
				      "state not told",
		active && up ? "" : cause);
	fb_find_remedy(&f, NULL, "%s",
		p->p->state == 2 || p->p->state == 3
			? "sminfo; start opensm, or the switch's subnet manager"
			: "ibstat; then look at cable and switch port");
	node_emit(c, &f);
}

void node_port_state(struct node_run *c)
{
	each_port(c, state_of, "RDMA");
}

/* Are they compared with the same others? */
static bool one_kind(const struct node *n, const struct port *a, const struct port *b)
{
	return a->d->role == b->d->role && (a->d->pci >= 0) == (b->d->pci >= 0) &&
	       (a->d->pci < 0 || n->t->pci[a->d->pci].device == n->t->pci[b->d->pci].device) &&
	       strcmp(a->p->link_layer, b->p->link_layer) == 0;
}

/* Of the ports of one kind the fastest, and how many are as fast: thousands ask the same. */
struct fastest {
	struct port like;
	uint64_t best;
	unsigned n;
};

/* Of all of p's kind, or of all but p itself. */
static void find_fastest(const struct node *n, const struct port *p, bool all, struct fastest *f)
{
	*f = (struct fastest){.like = *p};
	for (size_t i = 0; i < n->n_dev; i++) {
		const struct node_dev *d = &n->dev[i];
		bool placed = d->pci >= 0 && p->d->pci >= 0;
		if (d->rdma < 0 || d->role != p->d->role ||
			(placed && n->t->pci[d->pci].device != n->t->pci[p->d->pci].device))
			continue;
		const struct topo_rdma *r = &n->t->rdma[d->rdma];
		for (size_t k = 0; k < r->n_ports; k++) {
			uint64_t rate = r->ports[k].state == 4 ? r->ports[k].rate_bps : 0;
			if ((&r->ports[k] == p->p && !all) || rate < f->best ||
				strcmp(r->ports[k].link_layer, p->p->link_layer) != 0)
				continue;
			f->n = rate > f->best ? 1 : f->n + 1;
			f->best = rate;
		}
	}
}

/* The fastest active port of the same role on the same kind of card; 0: this is the only one. */
static uint64_t fastest_sibling(const struct node *n, const struct port *p, struct fastest *known)
{
	struct fastest others;
	if (!known->like.d || !one_kind(n, &known->like, p))
		find_fastest(n, p, true, known);
	if (known->n > 1 || p->p->state != 4 || p->p->rate_bps != known->best)
		return known->best;
	find_fastest(n, p, false, &others);
	return others.best;
}

/* "400 Gb/sec (4X NDR)": lanes and the speed's name. */
static unsigned lanes(const char *rate)
{
	const char *open = strchr(rate, '(');
	unsigned n = 0;
	return open && sscanf(open, "(%uX", &n) == 1 ? n : 0;
}

static void rate_of(struct node_run *c, const struct port *p)
{
	struct node *n = c->n;
	struct fb_finding f = node_finding(c, p->subject);
	const struct expect_dev *x =
		p->d->pci >= 0 ? node_expect_find(&n->expect, n->t->pci[p->d->pci].bdf) : NULL;
	uint64_t want = x && x->rate_bps                  ? x->rate_bps
			: p->d->role == NODE_ROLE_COMPUTE ? n->expect.nic_rate_bps
							  : 0;
	const char *source = want ? n->expect.path : "the fastest of its siblings";
	uint64_t sibling = want ? 0 : fastest_sibling(n, p, c->own);
	want = want ? want : sibling;
	fb_find_read(&f, "%s/rate", p->dir);
	if (!p->p->rate_bps)
		fb_find(&f, FB_CHECK_SKIP, "%s",
			!p->p->rate[0] && !n->live ? "not recorded"
						   : "not available: the port tells no rate");
	else if (p->p->state != 4 && p->p->state != 0)
		fb_find(&f, FB_CHECK_SKIP, "not available: the port is not active");
	else if (!want)
		fb_find(&f, FB_CHECK_INFO, "%s; nothing to compare it with", p->p->rate);
	else
		fb_find(&f, p->p->rate_bps < want ? FB_CHECK_FAIL : FB_CHECK_PASS, "%s%s",
			p->p->rate,
			p->p->rate_bps >= want && lanes(p->p->rate) == 2
				? ": two lanes, by design of cards with two ports"
				: "");
	if (want)
		fb_find_expected(&f, source, "%.4g Gb/s", (double)want / 1e9);
	node_emit(c, &f);
}

void node_port_rate(struct node_run *c)
{
	struct fastest known = {.n = 0};
	c->own = &known;
	each_port(c, rate_of, "RDMA");
	c->own = NULL;
}

void node_port_role(struct node_run *c)
{
	size_t before = c->findings;
	for (size_t i = 0; i < c->n->n_dev; i++) {
		const struct node_dev *d = &c->n->dev[i];
		if (d->rdma < 0)
			continue;
		struct fb_finding f = node_finding(c, d->subject);
		fb_find(&f, FB_CHECK_INFO, "%s: %s", node_role_names[d->role], d->role_why);
		fb_find_read(&f, "name, link layer, bond, and the path to GPUs");
		node_emit(c, &f);
	}
	if (c->findings == before)
		node_skip(c, "not available: no RDMA device here");
}

/* ---- what most have -------------------------------------------------------------------------- */

/* How many devices have each of a few texts; a ninth text is left out. */
struct tally {
	struct {
		const char *text;
		const char *name; /* a device that has it */
		size_t n;
	} kind[8];
	size_t used;
};

static void tally(struct tally *y, const char *text, const char *name)
{
	size_t k = 0;
	while (k < y->used && strcmp(y->kind[k].text, text) != 0)
		k++;
	if (k == sizeof(y->kind) / sizeof(y->kind[0]))
		return;
	if (k == y->used) {
		y->kind[k].text = text;
		y->kind[k].name = name;
		y->used++;
	}
	y->kind[k].n++;
}

/* The kind that speaks against the first one: of another text, and no rarer, so that of many alike
 * only the odd one is named, and of two both. @return its index; -1: none */
static int tally_against_first(const struct tally *y)
{
	int best = -1;
	for (size_t k = 1; k < y->used; k++)
		if (y->kind[k].n >= y->kind[best < 0 ? 0 : (size_t)best].n)
			best = (int)k;
	return best;
}

/* ---- firmware -------------------------------------------------------------------------------- */

static bool same_board(const struct node *n, const struct node_dev *a, const struct node_dev *b)
{
	const struct topo_rdma *x = &n->t->rdma[a->rdma], *y = &n->t->rdma[b->rdma];
	if (x->board[0] && y->board[0])
		return strcmp(x->board, y->board) == 0;
	return a->pci >= 0 && b->pci >= 0 && n->t->pci[a->pci].vendor == n->t->pci[b->pci].vendor &&
	       n->t->pci[a->pci].device == n->t->pci[b->pci].device;
}

/* What the same board has on the other nodes, device by device. */
static void tally_fleet(const struct node *n, const struct topo_rdma *r, struct tally *y)
{
	for (size_t i = 0; i < n->fleet.n; i++) {
		const json_t *list = json_object_get(n->fleet.peer[i], "firmware"), *o;
		size_t k;
		json_array_foreach (list, k, o) {
			const char *fw = fb_json_str(o, "version", "");
			if (*fw && r->board[0] &&
				strcmp(fb_json_str(o, "board", ""), r->board) == 0)
				tally(y, fw, fb_json_str(n->fleet.peer[i], "host", "another node"));
		}
	}
}

/* What the devices of one board have in this node. Where the last one that was looked at is d's
 * twin, and all of its board were alike, they are so for d too: thousands ask the same. */
struct board_firmware {
	const struct node_dev *like;
	size_t n;
};

static bool twins(const struct node *n, const struct node_dev *a, const struct node_dev *b)
{
	const struct topo_rdma *x = &n->t->rdma[a->rdma], *y = &n->t->rdma[b->rdma];
	return strcmp(x->board, y->board) == 0 && strcmp(x->fw, y->fw) == 0 && a->pci >= 0 &&
	       b->pci >= 0 && n->t->pci[a->pci].vendor == n->t->pci[b->pci].vendor &&
	       n->t->pci[a->pci].device == n->t->pci[b->pci].device;
}

static void tally_board(
	struct node *n, const struct node_dev *d, struct board_firmware *known, struct tally *here)
{
	tally(here, n->t->rdma[d->rdma].fw, d->name);
	if (known->like && twins(n, known->like, d)) {
		here->kind[0].n = known->n;
		return;
	}
	for (size_t i = 0; i < n->n_dev; i++) {
		const struct node_dev *o = &n->dev[i];
		if (o != d && o->rdma >= 0 && same_board(n, d, o) && n->t->rdma[o->rdma].fw[0])
			tally(here, n->t->rdma[o->rdma].fw, o->name);
	}
	if (here->used == 1)
		*known = (struct board_firmware){d, here->kind[0].n};
}

static void firmware_of(struct node_run *c, const struct node_dev *d, struct board_firmware *known)
{
	struct node *n = c->n;
	const struct topo_rdma *r = &n->t->rdma[d->rdma];
	struct fb_finding f = node_finding(c, d->subject);
	struct tally here = {.used = 0};
	const char *board = r->board[0] ? r->board : "not told";
	fb_find_read(&f, IB_DIR "/%s/{fw_ver,board_id}", r->name);
	if (!r->fw[0]) {
		fb_find(&f, FB_CHECK_SKIP, "%s",
			n->live ? "not available: the driver tells no firmware" : "not recorded");
		node_emit(c, &f);
		return;
	}
	fb_find(&f, FB_CHECK_PASS, "firmware %s, board %s", r->fw, board);
	tally_board(n, d, known, &here);
	int usual = tally_against_first(&here);
	if (usual >= 0) {
		fb_find(&f, FB_CHECK_WARN, "firmware %s, board %s", r->fw, board);
		fb_find_expected(&f, "the same board in this node", "%s as on %s",
			here.kind[usual].text, here.kind[usual].name);
	} else {
		tally_fleet(n, r, &here);
		usual = tally_against_first(&here);
	}
	if (usual >= 0 && f.state == FB_CHECK_PASS) {
		fb_find(&f, FB_CHECK_WARN, "firmware %s, board %s", r->fw, board);
		fb_find_expected(&f, here.kind[usual].name, "%s", here.kind[usual].text);
	}
	if (n->expect.firmware[0] && d->role == NODE_ROLE_COMPUTE) {
		fb_find(&f, strcmp(r->fw, n->expect.firmware) ? FB_CHECK_WARN : f.state,
			"firmware %s, board %s", r->fw, board);
		fb_find_expected(&f, n->expect.path, "%s", n->expect.firmware);
	}
	node_emit(c, &f);
}

void node_fw_uniform(struct node_run *c)
{
	struct board_firmware known = {.like = NULL};
	size_t before = c->findings;
	for (size_t i = 0; i < c->n->n_dev; i++) {
		const struct node_dev *d = &c->n->dev[i];
		if (d->rdma >= 0 && d->function && d->role != NODE_ROLE_AGGREGATION)
			firmware_of(c, d, &known);
	}
	if (c->findings == before)
		node_skip(c, "not available: no RDMA hardware here");
}

/* ---- counters -------------------------------------------------------------------------------- */

/* IBA 16.1.3.5 and Linux drivers/infiniband/core/sysfs.c: where each stops counting, and how many
 * since the last reset are too many (infiniband-diags, error_thresholds; an overrun is one too
 * many). */
static const struct counter {
	const char *name;
	int64_t full, limit;
} errors[] = {{"link_downed", 0xff, 10}, {"symbol_error", 0xffff, 10},
	{"link_error_recovery", 0xff, 10}, {"local_link_integrity_errors", 0xf, 10},
	{"excessive_buffer_overrun_errors", 0xf, 0}};

static void counters_of(struct node_run *c, const struct port *p)
{
	struct node *n = c->n;
	struct fb_finding f = node_finding(c, p->subject);
	char text[220] = "", path[200];
	size_t at = 0, told = 0;
	bool grew = false, full = false, many = false;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		int64_t v, d;
		snprintf(path, sizeof(path), "%s/counters/%s", p->dir, errors[i].name);
		if (fb_sysroot_read_i64(n->r, &v, "%s", path) != 0)
			continue;
		d = node_grew(n, path, v);
		told++;
		grew = grew || d > 0;
		full = full || v == errors[i].full;
		many = many || (v > errors[i].limit && v != errors[i].full);
		if (at < sizeof(text))
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s %lld%s",
				at ? ", " : "", errors[i].name, (long long)v,
				d > 0                 ? " and rising"
				: v == errors[i].full ? " (saturated)"
						      : "");
	}
	fb_find_read(&f, "%s/counters/*", p->dir);
	fb_find_expected(&f, "infiniband-diags' error thresholds", "%s",
		n->window.ns ? "no growth in the window" : "few since the last reset");
	if (told == 0) {
		char why[160];
		snprintf(path, sizeof(path), "%s/counters/symbol_error", p->dir);
		fb_find(&f, FB_CHECK_SKIP, "%s", node_why(n, path, -2, why, sizeof(why)));
	} else {
		fb_find(&f,
			grew           ? FB_CHECK_FAIL
			: full || many ? FB_CHECK_WARN
				       : FB_CHECK_PASS,
			"%s%s", text, full && !grew ? "; saturated: clear first" : "");
	}
	if (full)
		fb_find_remedy(&f, "loses the old counts", "perfquery -R, then look again");
	node_emit(c, &f);
}

void node_port_counters(struct node_run *c)
{
	each_port(c, counters_of, "RDMA");
}

/* Timeouts lose time whatever the fabric; gaps lose none where routes are adaptive. */
static const char *const timeouts[] = {
	"local_ack_timeout_err", "rnr_nak_retry_err", "roce_adp_retrans_to"};
static const char *const others[] = {"out_of_sequence", "packet_seq_err", "np_cnp_sent",
	"rp_cnp_handled", "np_ecn_marked_roce_packets"};

static void add_counter(const struct node *n, const struct port *p, const char *name, char *text,
	size_t len, size_t *at, int64_t *judged)
{
	char path[200];
	int64_t v;
	snprintf(path, sizeof(path), "%s/hw_counters/%s", p->dir, name);
	*judged = -1;
	if (fb_sysroot_read_i64(n->r, &v, "%s", path) != 0)
		return;
	*judged = n->window.ns ? node_grew(n, path, v) : v;
	if (*at < len)
		*at += (size_t)snprintf(text + *at, len - *at, "%s%s %lld", *at ? ", " : "", name,
			(long long)*judged);
}

static void hw_counters_of(struct node_run *c, const struct port *p)
{
	struct node *n = c->n;
	struct fb_finding f = node_finding(c, p->subject);
	char text[220] = "", why[160], path[200];
	size_t at = 0;
	bool late = false, gaps = false;
	int64_t v;
	for (size_t i = 0; i < sizeof(timeouts) / sizeof(timeouts[0]); i++) {
		add_counter(n, p, timeouts[i], text, sizeof(text), &at, &v);
		late = late || v > 0;
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		add_counter(n, p, others[i], text, sizeof(text), &at, &v);
		gaps = gaps || (i == 0 && v > 0 && is_ethernet(p) && n->window.ns > 0 &&
				       (double)v > (double)n->window.ns / 1e9);
	}
	fb_find_read(&f, "%s/hw_counters/*", p->dir);
	fb_find_expected(&f, "a timeout costs milliseconds", "no timeouts%s",
		is_ethernet(p) ? ", gaps under one a second" : "");
	snprintf(path, sizeof(path), "%s/hw_counters/out_of_sequence", p->dir);
	if (at == 0)
		fb_find(&f, FB_CHECK_SKIP, "%s", node_why(n, path, -2, why, sizeof(why)));
	else
		fb_find(&f, late || gaps ? FB_CHECK_WARN : FB_CHECK_PASS, "%s%s", text,
			n->window.ns ? " in the window" : " since the driver was loaded");
	node_emit(c, &f);
}

void node_hw_counters(struct node_run *c)
{
	each_port(c, hw_counters_of, "RDMA");
}

/* ---- partitions and GIDs --------------------------------------------------------------------- */

/* All partition keys of a port, sorted as the table has them. @return how many, -1: not told */
static int pkeys_text(const struct node *n, const struct port *p, char *buf, size_t len)
{
	char dir[160], **names, key[16];
	int used = 0;
	size_t at = 0;
	buf[0] = '\0';
	snprintf(dir, sizeof(dir), "%s/pkeys", p->dir);
	int k = fb_sysroot_list(n->r, dir, &names);
	for (int i = 0; i < k; i++) {
		if (fb_sysroot_readf(n->r, key, sizeof(key), "%s/%s", dir, names[i]) <= 0 ||
			strtoul(key, NULL, 16) == 0)
			continue;
		used++;
		if (at < len)
			at += (size_t)snprintf(buf + at, len - at, "%s%s", at ? " " : "", key);
	}
	if (k >= 0)
		fb_sysroot_names_free(names);
	return k < 0 ? -1 : used;
}

/* The keys of each RDMA device's first port, by device. */
struct pkeys {
	bool told;
	char text[96];
};

static void read_pkeys(const struct node *n, struct pkeys *keys)
{
	for (size_t i = 0; i < n->n_dev; i++) {
		const struct node_dev *d = &n->dev[i];
		const struct topo_rdma *r = d->rdma >= 0 ? &n->t->rdma[d->rdma] : NULL;
		if (!r || r->n_ports == 0)
			continue;
		struct port p = {.d = d, .dev = r, .p = r->ports};
		snprintf(p.dir, sizeof(p.dir), IB_DIR "/%s/ports/%u", r->name, p.p->num);
		keys[i].told = pkeys_text(n, &p, keys[i].text, sizeof(keys[i].text)) >= 0;
	}
}

/* All devices' keys, and the last port of which all others of its kind have the same. */
struct partitions {
	struct pkeys *keys;
	const struct node_dev *like;
	const char *layer, *text;
};

static bool known_alike(const struct partitions *own, const struct port *p, const char *text)
{
	return own->like && own->like->role == p->d->role &&
	       strcmp(own->layer, p->p->link_layer) == 0 && strcmp(own->text, text) == 0;
}

static void judge_pkeys(struct node_run *c, const struct port *p, struct fb_finding *f)
{
	struct node *n = c->n;
	struct partitions *all = c->own;
	const struct pkeys *keys = all->keys;
	struct tally here = {.used = 0};
	char own[96], why[160];
	int k = pkeys_text(n, p, own, sizeof(own));
	fb_find_read(f, "%s/pkeys/*", p->dir);
	fb_find_expected(f, "NICs of one job must share a partition", "the same keys on all");
	if (k < 0) {
		fb_find(f, FB_CHECK_SKIP, "%s", node_why(n, f->read, -2, why, sizeof(why)));
		return;
	}
	fb_find(f, FB_CHECK_PASS, "%s", k ? own : "none");
	tally(&here, own, p->dev->name);
	if (known_alike(all, p, own))
		return;
	for (size_t i = 0; i < n->n_dev; i++) {
		const struct node_dev *d = &n->dev[i];
		if (d->rdma < 0 || d == p->d || d->role != p->d->role || !keys[i].told)
			continue;
		const struct topo_rdma *r = &n->t->rdma[d->rdma];
		if (strcmp(r->ports[0].link_layer, p->p->link_layer) == 0)
			tally(&here, keys[i].text, r->name);
	}
	int usual = tally_against_first(&here);
	const char *text = usual >= 0 ? here.kind[usual].text : NULL;
	/* keys[] is of first ports. */
	if (here.used == 1 && p->p == p->dev->ports && keys[p->d - n->dev].told) {
		all->like = p->d;
		all->layer = p->p->link_layer;
		all->text = keys[p->d - n->dev].text;
	}
	if (text)
		fb_find(f, FB_CHECK_WARN, "%s; %s has %s", k ? own : "none", here.kind[usual].name,
			*text ? text : "none");
}

/* Is there a RoCE v2 GID? @return 1, 0, -1: the types are not told */
static int has_v2(const struct node *n, const struct port *p, unsigned *gids)
{
	char dir[160], **names, type[32], gid[64];
	int found = 0;
	*gids = 0;
	snprintf(dir, sizeof(dir), "%s/gid_attrs/types", p->dir);
	int k = fb_sysroot_list(n->r, dir, &names);
	for (int i = 0; i < k && i < 1024; i++) {
		/* An unused slot answers EINVAL, or has a GID of zeros. */
		if (fb_sysroot_readf(n->r, type, sizeof(type), "%s/%s", dir, names[i]) <= 0)
			continue;
		if (fb_sysroot_readf(n->r, gid, sizeof(gid), "%s/gids/%s", p->dir, names[i]) > 0 &&
			strspn(gid, "0:") == strlen(gid))
			continue;
		(*gids)++;
		found = found || strstr(type, "v2") != NULL;
	}
	if (k >= 0)
		fb_sysroot_names_free(names);
	return k < 0 ? -1 : found;
}

static void pkey_gid_of(struct node_run *c, const struct port *p)
{
	struct fb_finding f = node_finding(c, p->subject);
	if (!is_ethernet(p)) {
		judge_pkeys(c, p, &f);
	} else if (p->dev->node_type == 4) {
		fb_find(&f, FB_CHECK_SKIP, "not available: iWARP has neither");
	} else {
		char why[160];
		unsigned gids;
		int v2 = has_v2(c->n, p, &gids);
		fb_find_read(&f, "%s/gid_attrs/types/*, gids/*", p->dir);
		fb_find_expected(&f, "RoCE that can be routed and marked", "a RoCE v2 GID");
		if (v2 < 0)
			fb_find(&f, FB_CHECK_SKIP, "%s",
				node_why(c->n, f.read, -2, why, sizeof(why)));
		else
			fb_find(&f, v2 ? FB_CHECK_PASS : FB_CHECK_FAIL, "%u GIDs, %s", gids,
				v2 ? "RoCE v2 among them" : "none of RoCE v2");
	}
	node_emit(c, &f);
}

void node_pkey_gid(struct node_run *c)
{
	struct partitions own = {.keys = calloc(c->n->n_dev + 1, sizeof(struct pkeys))};
	if (!own.keys) {
		node_skip(c, "no memory");
		return;
	}
	read_pkeys(c->n, own.keys);
	c->own = &own;
	each_port(c, pkey_gid_of, "RDMA");
	c->own = NULL;
	free(own.keys);
}

/* ---- PFC ------------------------------------------------------------------------------------- */

/* "RX:	on" in what ethtool -a prints. */
static bool says_on(const char *text, const char *key)
{
	const char *at = strstr(text, key);
	at = at ? at + strlen(key) : "";
	return strncmp(at + strspn(at, " \t"), "on", 2) == 0;
}

/* Global 802.3x pause, from the driver or recorded beside sys/. @return 1, 0, -1: not told */
static int global_pause(const struct node *n, const char *netdev)
{
	char text[512];
	struct ethtool_pauseparam p = {.cmd = ETHTOOL_GPAUSEPARAM};
	struct ifreq ifr = {.ifr_data = (char *)&p};
	if (!n->live)
		return fb_sysroot_readf(n->r, text, sizeof(text), "/ethtool/%s.pause", netdev) <= 0
			       ? -1
			       : says_on(text, "RX:") || says_on(text, "TX:");
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%.15s", netdev);
	int rc = ioctl(fd, SIOCETHTOOL, &ifr);
	close(fd);
	return rc < 0 ? -1 : p.rx_pause || p.tx_pause;
}

/* The vendor's stack: on which priorities congestion control is on, in bits; -1: not told. */
static int ecn_bits(const struct node *n, const char *netdev)
{
	int bits = 0, told = 0;
	for (int i = 0; i < 8; i++) {
		int64_t np, rp;
		if (fb_sysroot_read_i64(
			    n->r, &np, "/sys/class/net/%s/ecn/roce_np/enable/%d", netdev, i) != 0 ||
			fb_sysroot_read_i64(n->r, &rp, "/sys/class/net/%s/ecn/roce_rp/enable/%d",
				netdev, i) != 0)
			continue;
		told++;
		bits |= np && rp ? 1 << i : 0;
	}
	return told ? bits : -1;
}

static void pfc_of(struct node_run *c, const struct port *p)
{
	struct fb_finding f = node_finding(c, p->subject);
	const char *netdev = p->p->netdev;
	char trust[16], text[64];
	if (!is_ethernet(p) || p->dev->node_type == 4 || !netdev[0])
		return;
	int pause = global_pause(c->n, netdev), ecn = ecn_bits(c->n, netdev);
	int rc = fb_sysroot_readf(
		c->n->r, trust, sizeof(trust), "/sys/class/net/%s/qos/trust", netdev);
	fb_find_read(&f, "/sys/class/net/%s/{qos/trust,ecn/roce_*/enable/*}, ethtool -a", netdev);
	fb_find_expected(&f, "a pause of the whole link stops what PFC would let through",
		"global pause off; PFC itself: check roce, R15");
	if (ecn >= 0)
		snprintf(text, sizeof(text), "0x%02x", (unsigned)ecn);
	if (pause == 1)
		fb_find(&f, FB_CHECK_WARN, "global 802.3x pause is on");
	else if (rc > 0 || ecn >= 0)
		fb_find(&f, FB_CHECK_INFO, "trust %s, congestion control on priorities %s",
			rc > 0 ? trust : "not told", ecn >= 0 ? text : "not told");
	else if (pause == 0)
		fb_find(&f, FB_CHECK_PASS, "global 802.3x pause is off");
	else
		fb_find(&f, FB_CHECK_SKIP,
			"not visible from here: the kernel tells PFC by netlink only; fabricbench "
			"check roce (R15) asks");
	fb_find_remedy(&f, "the link may flap", "ethtool -A %s rx off tx off", netdev);
	node_emit(c, &f);
}

void node_roce_pfc(struct node_run *c)
{
	each_port(c, pfc_of, "RoCE");
}
