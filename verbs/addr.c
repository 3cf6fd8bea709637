// SPDX-License-Identifier: Apache-2.0
/*
 * Addressing as pure functions. Sources: IBTA vol. 1 annexes A16 (RoCE) and A17 (RoCE v2); for GRH
 * on InfiniBand, 8.4 and 9.6; for the UDP source port, rdma_flow_label_to_udp_sport and
 * rdma_calc_flow_label in the kernel's ib_verbs.h.
 */
#include "verbs/addr.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/json.h"

const char *const verbs_gid_type_names[] = {"IB", "RoCE v1", "RoCE v2", NULL};
const char *const verbs_gid_family_names[] = {"IPv4", "IPv6", "link-local", "native", NULL};

enum verbs_gid_family verbs_gid_family_of(const union ibv_gid *gid, bool infiniband)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

	if (infiniband)
		return VERBS_GID_NATIVE;
	if (!memcmp(gid->raw, mapped, sizeof mapped))
		return VERBS_GID_IPV4;
	if (gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80)
		return VERBS_GID_LINK_LOCAL;
	return VERBS_GID_IPV6;
}

const char *verbs_gid_str(const union ibv_gid *gid, char *buf, size_t len)
{
	const char *r;

	if (verbs_gid_family_of(gid, false) == VERBS_GID_IPV4)
		r = inet_ntop(AF_INET, gid->raw + 12, buf, (socklen_t)len);
	else
		r = inet_ntop(AF_INET6, gid->raw, buf, (socklen_t)len);
	return r ? r : "?";
}

int verbs_gid_parse(const char *text, union ibv_gid *gid)
{
	memset(gid, 0, sizeof *gid);
	if (inet_pton(AF_INET6, text, gid->raw) == 1)
		return 0;
	if (inet_pton(AF_INET, text, gid->raw + 12) == 1) {
		gid->raw[10] = gid->raw[11] = 0xff;
		return 0;
	}
	return -EINVAL;
}

static bool family_fits(const struct verbs_gid *g, int want)
{
	if (want == VERBS_GID_ANY_IPV6)
		return g->family == VERBS_GID_IPV6 || g->family == VERBS_GID_LINK_LOCAL;
	return want < 0 || (int)g->family == want;
}

int verbs_gid_choose(const struct verbs_gid *v, unsigned n, const struct verbs_gid_want *want)
{
	int best = -1, best_score = -1;

	for (unsigned i = 0; i < n; i++) {
		int score;
		if (want->index >= 0 && v[i].index != (uint32_t)want->index)
			continue;
		if (want->type >= 0 && (int)v[i].type != want->type)
			continue;
		if (!family_fits(&v[i], want->family))
			continue;
		if (want->vlan && v[i].vlan != want->vlan)
			continue;
		if (want->by_address && memcmp(&v[i].raw, &want->addr, sizeof v[i].raw) != 0)
			continue;
		/* Types are ordered IB < v1 < v2, families best first. */
		score = (int)v[i].type * 16 + (VERBS_GID_NATIVE - (int)v[i].family) * 2 +
			!v[i].vlan;
		if (score > best_score || (score == best_score && v[i].index < v[best].index)) {
			best = (int)i;
			best_score = score;
		}
	}
	return best;
}

unsigned verbs_mtu_bytes(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

int verbs_mtu_enum(unsigned bytes)
{
	for (int m = IBV_MTU_256; m <= IBV_MTU_4096; m++)
		if (128u << m == bytes)
			return m;
	return 0;
}

/* ---- the wire form --------------------------------------------------------------------------- */

json_t *verbs_end_to_json(const struct verbs_end *x)
{
	char gid[INET6_ADDRSTRLEN];
	json_t *j = json_object();

	if (!j)
		return NULL;
	inet_ntop(AF_INET6, x->gid.raw, gid, sizeof gid);
	fb_json_set_str(j, "host", x->host);
	fb_json_set_str(j, "device", x->device);
	fb_json_set_str(j, "driver", x->driver);
	fb_json_set_str(j, "fw", x->fw);
	fb_json_set_str(j, "program", x->program);
	fb_json_set_str(j, "gid", gid);
	fb_json_set_int(j, "port", x->port);
	fb_json_set_int(j, "link_layer", x->link_layer);
	fb_json_set_int(j, "mtu", x->mtu);
	fb_json_set_int(j, "lid", x->lid);
	fb_json_set_int(j, "lmc", x->lmc);
	fb_json_set_int(j, "sm_sl", x->sm_sl);
	fb_json_set_int(j, "pkey", x->pkey);
	fb_json_set_int(j, "gid_index", x->gid_index);
	fb_json_set_int(j, "gid_type", x->gid_type);
	fb_json_set_int(j, "gid_family", x->gid_family);
	fb_json_set_int(j, "grh_required", x->grh_required);
	fb_json_set_int(j, "max_rd_atomic", x->max_rd_atomic);
	fb_json_set_int(j, "inline", x->inline_cap);
	fb_json_set_int(j, "addr", (int64_t)x->addr);
	fb_json_set_int(j, "length", (int64_t)x->length);
	fb_json_set_int(j, "credit_addr", (int64_t)x->credit_addr);
	fb_json_set_int(j, "rkey", x->rkey);
	fb_json_set_int(j, "credit_rkey", x->credit_rkey);
	fb_json_set_int(j, "nqp", x->nqp);
	return j;
}

static int get_num(
	const json_t *j, const char *key, int64_t min, int64_t max, int64_t *v, struct fb_err *e)
{
	const json_t *n = json_object_get(j, key);

	if (!json_is_integer(n))
		return fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
			"the peer's description of itself has no number '%s'", key);
	*v = json_integer_value(n);
	if (*v < min || *v > max)
		return fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
			"the peer's '%s' is out of range: %lld", key, (long long)*v);
	return 0;
}

static int get_str(const json_t *j, const char *key, char *buf, size_t len, struct fb_err *e)
{
	const char *s = fb_json_str(j, key, NULL);

	if (!s || strlen(s) >= len)
		return fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
			"the peer's description of itself has no usable '%s'", key);
	memcpy(buf, s, strlen(s) + 1);
	return 0;
}

int verbs_end_from_json(struct verbs_end *x, const json_t *j, struct fb_err *e)
{
	static const struct {
		const char *key;
		int64_t min, max;
	} nums[] = {{"port", 1, 255}, {"link_layer", 0, 2}, {"mtu", 256, 4096},
		{"lid", 0, 0xffffff}, {"lmc", 0, 7}, {"sm_sl", 0, 15}, {"pkey", 0, 0xffff},
		{"gid_index", 0, 65535}, {"gid_type", 0, 2}, {"gid_family", 0, 3},
		{"grh_required", 0, 1}, {"max_rd_atomic", 0, 255}, {"addr", INT64_MIN, INT64_MAX},
		{"length", 0, INT64_MAX}, {"credit_addr", INT64_MIN, INT64_MAX},
		{"rkey", 0, UINT32_MAX}, {"nqp", 1, 16384}, {"credit_rkey", 0, UINT32_MAX},
		{"inline", 0, 1 << 20}};
	int64_t v[sizeof nums / sizeof nums[0]];
	char gid[INET6_ADDRSTRLEN];
	int rc;

	memset(x, 0, sizeof *x);
	for (unsigned i = 0; i < sizeof nums / sizeof nums[0]; i++)
		if ((rc = get_num(j, nums[i].key, nums[i].min, nums[i].max, &v[i], e)) != 0)
			return rc;
	if ((rc = get_str(j, "host", x->host, sizeof x->host, e)) != 0 ||
		(rc = get_str(j, "device", x->device, sizeof x->device, e)) != 0 ||
		(rc = get_str(j, "driver", x->driver, sizeof x->driver, e)) != 0 ||
		(rc = get_str(j, "fw", x->fw, sizeof x->fw, e)) != 0 ||
		(rc = get_str(j, "program", x->program, sizeof x->program, e)) != 0 ||
		(rc = get_str(j, "gid", gid, sizeof gid, e)) != 0)
		return rc;
	if (verbs_gid_parse(gid, &x->gid) != 0)
		return fb_fail(e, FB_EXIT_UNMEASURED, EPROTO, "the peer's GID '%s' is none", gid);
	if (!verbs_mtu_enum((unsigned)v[2]))
		return fb_fail(e, FB_EXIT_UNMEASURED, EPROTO, "the peer's 'mtu' is none: %lld",
			(long long)v[2]);
	x->port = (unsigned)v[0];
	x->link_layer = (int)v[1];
	x->mtu = (unsigned)v[2];
	x->lid = (unsigned)v[3];
	x->lmc = (unsigned)v[4];
	x->sm_sl = (unsigned)v[5];
	x->pkey = (unsigned)v[6];
	x->gid_index = (unsigned)v[7];
	x->gid_type = (enum verbs_gid_type)v[8];
	x->gid_family = (enum verbs_gid_family)v[9];
	x->grh_required = v[10] != 0;
	x->max_rd_atomic = (unsigned)v[11];
	x->addr = (uint64_t)v[12];
	x->length = (uint64_t)v[13];
	x->credit_addr = (uint64_t)v[14];
	x->rkey = (uint32_t)v[15];
	x->nqp = (unsigned)v[16];
	x->credit_rkey = (uint32_t)v[17];
	x->inline_cap = (unsigned)v[18];
	return 0;
}

/* ---- do two ends fit ------------------------------------------------------------------------- */

static const char *end_str(const struct verbs_end *x, char *buf, size_t len)
{
	snprintf(buf, len, "%s port %u on %s", x->device, x->port, x->host);
	return buf;
}

static int misfit(const struct verbs_end *a, const struct verbs_end *b, const char *what,
	const char *va, const char *vb, const char *hint, struct fb_err *e)
{
	char na[160], nb[160];

	fb_fail(e, FB_EXIT_UNMEASURED, EPROTO, "%s differs: %s here (%s), %s there (%s)", what, va,
		end_str(a, na, sizeof na), vb, end_str(b, nb, sizeof nb));
	fb_hint(e, "%s", hint);
	return -EPROTO;
}

static const char *link_name(int layer)
{
	return layer == IBV_LINK_LAYER_INFINIBAND ? "InfiniBand"
	       : layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet"
						  : "unknown";
}

static int fit_pkeys(const struct verbs_end *a, const struct verbs_end *b, struct fb_err *e)
{
	char va[16], vb[16];

	snprintf(va, sizeof va, "0x%04x", a->pkey);
	snprintf(vb, sizeof vb, "0x%04x", b->pkey);
	if ((a->pkey & 0x7fff) != (b->pkey & 0x7fff))
		return misfit(a, b, "partition (P_Key)", va, vb,
			"choose an index of the same partition with --pkey-index; see partitions.conf of the "
			"subnet manager",
			e);
	if (!(a->pkey & 0x8000) && !(b->pkey & 0x8000))
		return misfit(a, b, "full membership of the partition", va, vb,
			"two limited members cannot talk: make one a full member in partitions.conf",
			e);
	return 0;
}

static int fit_gids(const struct verbs_end *a, const struct verbs_end *b, struct fb_err *e)
{
	if (a->gid_type != b->gid_type)
		return misfit(a, b, "GID type", verbs_gid_type_names[a->gid_type],
			verbs_gid_type_names[b->gid_type],
			"choose a GID of the same type at both ends: --gid-type v2, or --gid-index and "
			"--peer-gid-index",
			e);
	if ((a->gid_family == VERBS_GID_IPV4) != (b->gid_family == VERBS_GID_IPV4))
		return misfit(a, b, "address family of the GID",
			verbs_gid_family_names[a->gid_family],
			verbs_gid_family_names[b->gid_family],
			"give both netdevs an address of one family, or choose with --gid-index and "
			"--peer-gid-index",
			e);
	return 0;
}

int verbs_ends_fit(
	const struct verbs_end *a, const struct verbs_end *b, unsigned mtu, struct fb_err *e)
{
	char va[16], vb[16];
	unsigned common = a->mtu < b->mtu ? a->mtu : b->mtu;
	int rc;

	if (a->link_layer != b->link_layer)
		return misfit(a, b, "link layer", link_name(a->link_layer),
			link_name(b->link_layer),
			"choose devices of the same fabric with --device and --peer-device", e);
	rc = a->link_layer == IBV_LINK_LAYER_INFINIBAND ? fit_pkeys(a, b, e) : fit_gids(a, b, e);
	if (rc)
		return rc;
	snprintf(va, sizeof va, "%u", a->mtu);
	snprintf(vb, sizeof vb, "%u", b->mtu);
	if (!mtu && a->mtu != b->mtu) {
		char hint[160];
		snprintf(hint, sizeof hint,
			"make them equal (ip link set DEV mtu 4200 gives 4096), or give --mtu %u",
			common);
		return misfit(a, b, "active MTU", va, vb, hint, e);
	}
	if (mtu > common) {
		char hint[96];
		snprintf(hint, sizeof hint, "give --mtu %u or less", common);
		fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
			"--mtu %u is above the active MTU: %s here, %s there", mtu, va, vb);
		fb_hint(e, "%s", hint);
		return -EPROTO;
	}
	return (int)(mtu ? mtu : common);
}

int verbs_used_fits(const struct verbs_gid *used, const struct verbs_end *peer,
	const struct verbs_gid *wanted, unsigned used_tc, unsigned tc, const char *device,
	struct fb_err *e)
{
	if (used->type != wanted->type || used->type != peer->gid_type) {
		bool here = used->type != wanted->type;
		fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
			"rdma_cm uses GID %u of type %s on %s, and not %s as %s (GID %u)",
			used->index, verbs_gid_type_names[used->type], device,
			verbs_gid_type_names[here ? wanted->type : peer->gid_type],
			here ? "wanted" : "the peer does", here ? wanted->index : peer->gid_index);
		fb_hint(e,
			"the port's default_roce_mode decides (rdma_cm in configfs; cma_roce_mode -d %s "
			"-m 2 for v2), at both ends; or leave --rdma-cm out",
			device);
		return -EPROTO;
	}
	if (tc && used_tc != tc) {
		fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
			"rdma_cm has given %s the traffic class %u, and not %u as asked for",
			device, used_tc, tc);
		fb_hint(e,
			"leave --rdma-cm out, or set default_roce_tos in configfs (cma_roce_tos)");
		return -EPROTO;
	}
	return 0;
}

/* ---- the path -------------------------------------------------------------------------------- */

static bool needs_grh(const struct verbs_end *l, const struct verbs_end *r)
{
	if (l->link_layer != IBV_LINK_LAYER_INFINIBAND)
		return true;
	/* A LID is unique within a subnet only; the upper 64 bits of the GID name the subnet. */
	return l->gid.global.subnet_prefix != r->gid.global.subnet_prefix || l->grh_required ||
	       r->grh_required;
}

int verbs_path(const struct verbs_end *l, const struct verbs_end *r,
	const struct verbs_path_want *want, struct ibv_ah_attr *ah, struct fb_err *e)
{
	bool infiniband = l->link_layer == IBV_LINK_LAYER_INFINIBAND;

	memset(ah, 0, sizeof *ah);
	ah->port_num = (uint8_t)l->port;
	ah->sl = (uint8_t)want->sl;
	if (infiniband) {
		const struct verbs_end *bad = !l->lid ? l : r;
		if (!l->lid || !r->lid) {
			fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
				"%s port %u on %s has no LID: no subnet manager has configured it",
				bad->device, bad->port, bad->host);
			fb_hint(e,
				"start a subnet manager (opensm, or the switch's) and look with sminfo");
			return -EPROTO;
		}
		ah->dlid = (uint16_t)r->lid;
	}
	if (needs_grh(l, r)) {
		ah->is_global = 1;
		ah->grh.dgid = r->gid;
		ah->grh.sgid_index = (uint8_t)l->gid_index;
		ah->grh.hop_limit = (uint8_t)want->hop_limit;
		ah->grh.traffic_class = (uint8_t)want->traffic_class;
		ah->grh.flow_label = want->flow_label;
	}
	return 0;
}

enum fb_link_layer verbs_wire_of(const struct verbs_end *l, const struct verbs_end *r, bool *grh)
{
	*grh = needs_grh(l, r);
	if (l->link_layer == IBV_LINK_LAYER_INFINIBAND)
		return FB_LINK_INFINIBAND;
	if (l->gid_type == VERBS_GID_V1)
		return FB_LINK_ROCE_V1;
	return l->gid_family == VERBS_GID_IPV4 ? FB_LINK_ROCE_V2_IPV4 : FB_LINK_ROCE_V2_IPV6;
}
