// SPDX-License-Identifier: Apache-2.0
/* Addressing from fabricated attributes: GIDs, paths, and what two ends must have in common. */
#include "bench/core/test.h"

#include <errno.h>
#include <string.h>

#include "verbs/addr.h"
#include "verbs/dev.h"

static struct verbs_gid gid(uint32_t index, enum verbs_gid_type type, const char *text)
{
	struct verbs_gid g = {.index = index, .type = type};

	assert_int_equal(verbs_gid_parse(text, &g.raw), 0);
	g.family = verbs_gid_family_of(&g.raw, type == VERBS_GID_IB);
	return g;
}

static const struct verbs_gid_want any = {.index = -1, .type = -1, .family = -1};

static void families(void **state)
{
	union ibv_gid g;

	(void)state;
	assert_int_equal(verbs_gid_parse("10.0.0.1", &g), 0);
	assert_int_equal(verbs_gid_family_of(&g, false), VERBS_GID_IPV4);
	assert_int_equal(verbs_gid_parse("::ffff:10.0.0.1", &g), 0);
	assert_int_equal(verbs_gid_family_of(&g, false), VERBS_GID_IPV4);
	assert_int_equal(verbs_gid_parse("fe80::1", &g), 0);
	assert_int_equal(verbs_gid_family_of(&g, false), VERBS_GID_LINK_LOCAL);
	assert_int_equal(verbs_gid_family_of(&g, true), VERBS_GID_NATIVE);
	assert_int_equal(verbs_gid_parse("febf::1", &g), 0);
	assert_int_equal(verbs_gid_family_of(&g, false), VERBS_GID_LINK_LOCAL);
	assert_int_equal(verbs_gid_parse("fec0::1", &g), 0);
	assert_int_equal(verbs_gid_family_of(&g, false), VERBS_GID_IPV6);
	assert_int_equal(verbs_gid_parse("2001:db8::1", &g), 0);
	assert_int_equal(verbs_gid_family_of(&g, false), VERBS_GID_IPV6);
	assert_int_equal(verbs_gid_parse("not an address", &g), -EINVAL);
}

/* The table of a ConnectX port with one IPv4 and one IPv6 address, and with its addresses added in
 * another order: the choice stays the same address, at another index. */
static void choice_is_by_type_and_address(void **state)
{
	struct verbs_gid a[] = {gid(0, VERBS_GID_V1, "fe80::1"), gid(1, VERBS_GID_V2, "fe80::1"),
		gid(2, VERBS_GID_V1, "10.0.0.1"), gid(3, VERBS_GID_V2, "10.0.0.1"),
		gid(4, VERBS_GID_V1, "2001:db8::1"), gid(5, VERBS_GID_V2, "2001:db8::1")};
	struct verbs_gid b[] = {gid(0, VERBS_GID_V1, "fe80::1"), gid(1, VERBS_GID_V2, "fe80::1"),
		gid(2, VERBS_GID_V1, "2001:db8::1"), gid(3, VERBS_GID_V2, "2001:db8::1"),
		gid(7, VERBS_GID_V2, "10.0.1.1"), gid(5, VERBS_GID_V2, "10.0.0.1")};
	struct verbs_gid_want v1 = {.index = -1, .type = VERBS_GID_V1, .family = -1};
	struct verbs_gid_want v6 = {.index = -1, .type = -1, .family = VERBS_GID_IPV6};
	struct verbs_gid_want at = {.index = 4, .type = -1, .family = -1};

	(void)state;
	assert_int_equal(a[verbs_gid_choose(a, 6, &any)].index, 3);
	assert_int_equal(b[verbs_gid_choose(b, 6, &any)].index, 5);
	assert_int_equal(a[verbs_gid_choose(a, 6, &v1)].index, 2);
	assert_int_equal(a[verbs_gid_choose(a, 6, &v6)].index, 5);
	assert_int_equal(a[verbs_gid_choose(a, 6, &at)].index, 4);
	at.type = VERBS_GID_V2;
	assert_int_equal(verbs_gid_choose(a, 6, &at), -1);
	/* Without IPv4: global IPv6 before link-local; v2 before v1 even so. */
	assert_int_equal(a[verbs_gid_choose(a, 2, &any)].index, 1);
	assert_int_equal(b[verbs_gid_choose(b, 4, &any)].index, 3);
	assert_int_equal(verbs_gid_choose(a, 0, &any), -1);
}

static void mtus(void **state)
{
	(void)state;
	assert_int_equal(verbs_mtu_bytes(IBV_MTU_256), 256);
	assert_int_equal(verbs_mtu_bytes(IBV_MTU_4096), 4096);
	assert_int_equal(verbs_mtu_bytes((enum ibv_mtu)9), 0);
	assert_int_equal(verbs_mtu_enum(1024), IBV_MTU_1024);
	assert_int_equal(verbs_mtu_enum(1500), 0);
}

static struct verbs_end roce(void)
{
	struct verbs_end x = {.host = "node1",
		.device = "mlx5_0",
		.driver = "mlx5",
		.fw = "28.39.1002",
		.program = "0.1.0",
		.port = 1,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.mtu = 4096,
		.pkey = 0xffff,
		.gid_index = 3,
		.gid_type = VERBS_GID_V2,
		.gid_family = VERBS_GID_IPV4,
		.max_rd_atomic = 16,
		.inline_cap = 236,
		.nqp = 1};

	assert_int_equal(verbs_gid_parse("10.0.0.1", &x.gid), 0);
	return x;
}

static struct verbs_end infiniband(unsigned lid, const char *gid_text)
{
	struct verbs_end x = roce();

	x.link_layer = IBV_LINK_LAYER_INFINIBAND;
	x.gid_type = VERBS_GID_IB;
	x.gid_family = VERBS_GID_NATIVE;
	x.lid = lid;
	x.gid_index = 0;
	assert_int_equal(verbs_gid_parse(gid_text, &x.gid), 0);
	return x;
}

static void wire_form_keeps_everything(void **state)
{
	struct verbs_end a = roce(), b;
	struct fb_err e = {0};
	json_t *j;

	(void)state;
	a.addr = 0xffffe00012345678ull;
	a.length = 1 << 20;
	a.credit_addr = 0x7f0000001000ull;
	a.rkey = 0xfedcba98;
	a.lid = 7;
	a.grh_required = true;
	j = verbs_end_to_json(&a);
	assert_int_equal(verbs_end_from_json(&b, j, &e), 0);
	assert_memory_equal(&a, &b, sizeof a);
	json_decref(j);
}

static void wire_form_refuses_nonsense(void **state)
{
	static const struct {
		const char *key;
		json_t *(*make)(void);
	} none[] = {{"host", json_null}, {"mtu", json_null}, {"gid", json_null}};
	static const struct {
		const char *key;
		json_int_t v;
	} nums[] = {{"mtu", 1 << 20}, {"mtu", 0}, {"mtu", 1500}, {"gid_type", 9},
		{"gid_family", -1}, {"port", 0}, {"rkey", -1}, {"nqp", 0}, {"link_layer", 77}};
	struct verbs_end a = roce(), b;

	(void)state;
	for (unsigned i = 0; i < sizeof none / sizeof none[0]; i++) {
		struct fb_err e = {0};
		json_t *j = verbs_end_to_json(&a);
		json_object_set_new(j, none[i].key, none[i].make());
		assert_int_equal(verbs_end_from_json(&b, j, &e), -EPROTO);
		assert_non_null(strstr(e.msg, none[i].key));
		json_decref(j);
	}
	for (unsigned i = 0; i < sizeof nums / sizeof nums[0]; i++) {
		struct fb_err e = {0};
		json_t *j = verbs_end_to_json(&a);
		json_object_set_new(j, nums[i].key, json_integer(nums[i].v));
		assert_int_equal(verbs_end_from_json(&b, j, &e), -EPROTO);
		assert_non_null(strstr(e.msg, nums[i].key));
		json_decref(j);
	}
	{
		struct fb_err e = {0};
		json_t *j = verbs_end_to_json(&a);
		json_object_set_new(j, "gid", json_string("10.0.0.1.2"));
		assert_int_equal(verbs_end_from_json(&b, j, &e), -EPROTO);
		json_decref(j);
		fb_err_clear(&e);
		j = json_array();
		assert_int_equal(verbs_end_from_json(&b, j, &e), -EPROTO);
		json_decref(j);
	}
}

static void misfits_name_both_values(void **state)
{
	struct verbs_end a = roce(), b = roce();
	struct fb_err e = {0};

	(void)state;
	assert_int_equal(verbs_ends_fit(&a, &b, 0, &e), 4096);
	assert_int_equal(verbs_ends_fit(&a, &b, 1024, &e), 1024);

	b.gid_type = VERBS_GID_V1;
	assert_int_equal(verbs_ends_fit(&a, &b, 0, &e), -EPROTO);
	assert_non_null(strstr(e.msg, "RoCE v2"));
	assert_non_null(strstr(e.msg, "RoCE v1"));
	assert_true(e.hint[0]);

	b = roce();
	b.mtu = 1024;
	fb_err_clear(&e);
	assert_int_equal(verbs_ends_fit(&a, &b, 0, &e), -EPROTO);
	assert_non_null(strstr(e.msg, "4096"));
	assert_non_null(strstr(e.msg, "1024"));
	assert_non_null(strstr(e.hint, "--mtu 1024"));
	fb_err_clear(&e);
	assert_int_equal(verbs_ends_fit(&a, &b, 1024, &e), 1024);
	assert_int_equal(verbs_ends_fit(&a, &b, 2048, &e), -EPROTO);

	b = roce();
	b.link_layer = IBV_LINK_LAYER_INFINIBAND;
	fb_err_clear(&e);
	assert_int_equal(verbs_ends_fit(&a, &b, 0, &e), -EPROTO);
	assert_non_null(strstr(e.msg, "InfiniBand"));
	assert_non_null(strstr(e.msg, "Ethernet"));

	b = roce();
	b.gid_family = VERBS_GID_IPV6;
	fb_err_clear(&e);
	assert_int_equal(verbs_ends_fit(&a, &b, 0, &e), -EPROTO);
	assert_non_null(strstr(e.msg, "IPv6"));
	/* Global and link-local IPv6 may meet on one link. */
	a.gid_family = VERBS_GID_LINK_LOCAL;
	fb_err_clear(&e);
	assert_int_equal(verbs_ends_fit(&a, &b, 0, &e), 4096);
}

static void partitions(void **state)
{
	struct verbs_end a = infiniband(1, "fe80::1"), b = infiniband(2, "fe80::2");
	struct fb_err e = {0};

	(void)state;
	b.pkey = 0x7fff; /* a limited member may talk to a full one */
	assert_int_equal(verbs_ends_fit(&a, &b, 0, &e), 4096);
	a.pkey = 0x7fff;
	assert_int_equal(verbs_ends_fit(&a, &b, 0, &e), -EPROTO);
	fb_err_clear(&e);
	a.pkey = 0x8001;
	assert_int_equal(verbs_ends_fit(&a, &b, 0, &e), -EPROTO);
	assert_non_null(strstr(e.msg, "0x8001"));
}

static void roce_paths_have_a_grh(void **state)
{
	struct verbs_end a = roce(), b = roce();
	struct verbs_path_want want = {
		.sl = 3, .traffic_class = 106, .flow_label = 5, .hop_limit = 64};
	struct ibv_ah_attr ah;
	bool grh;

	(void)state;
	assert_int_equal(verbs_path(&a, &b, &want, &ah, NULL), 0);
	assert_int_equal(ah.is_global, 1);
	assert_int_equal(ah.grh.sgid_index, 3);
	assert_int_equal(ah.grh.traffic_class, 106);
	assert_int_equal(ah.grh.flow_label, 5);
	assert_int_equal(ah.grh.hop_limit, 64);
	assert_int_equal(ah.sl, 3);
	assert_memory_equal(&ah.grh.dgid, &b.gid, sizeof b.gid);
	assert_int_equal(verbs_wire_of(&a, &b, &grh), FB_LINK_ROCE_V2_IPV4);
	a.gid_family = VERBS_GID_IPV6;
	assert_int_equal(verbs_wire_of(&a, &b, &grh), FB_LINK_ROCE_V2_IPV6);
	a.gid_type = VERBS_GID_V1;
	assert_int_equal(verbs_wire_of(&a, &b, &grh), FB_LINK_ROCE_V1);
}

static void infiniband_needs_a_grh_across_subnets_only(void **state)
{
	struct verbs_end a = infiniband(17, "fe80::1"), b = infiniband(42, "fe80::2");
	struct verbs_path_want want = {.sl = 1, .hop_limit = 64};
	struct ibv_ah_attr ah;
	struct fb_err e = {0};
	bool grh = true;

	(void)state;
	assert_int_equal(verbs_path(&a, &b, &want, &ah, &e), 0);
	assert_int_equal(ah.is_global, 0);
	assert_int_equal(ah.dlid, 42);
	assert_int_equal(ah.sl, 1);
	assert_int_equal(verbs_wire_of(&a, &b, &grh), FB_LINK_INFINIBAND);
	assert_false(grh);

	b = infiniband(42, "fec0:0:0:1::2");
	assert_int_equal(verbs_path(&a, &b, &want, &ah, &e), 0);
	assert_int_equal(ah.is_global, 1);
	verbs_wire_of(&a, &b, &grh);
	assert_true(grh);

	b = infiniband(42, "fe80::2");
	b.grh_required = true;
	assert_int_equal(verbs_path(&a, &b, &want, &ah, &e), 0);
	assert_int_equal(ah.is_global, 1);

	b = infiniband(0, "fe80::2");
	assert_int_equal(verbs_path(&a, &b, &want, &ah, &e), -EPROTO);
	assert_non_null(strstr(e.msg, "subnet manager"));
}

static void choice_by_address_family_and_vlan(void **state)
{
	struct verbs_gid a[] = {gid(0, VERBS_GID_V1, "10.0.0.1"), gid(1, VERBS_GID_V2, "10.0.0.1"),
		gid(2, VERBS_GID_V2, "10.100.0.1"), gid(3, VERBS_GID_V2, "fe80::1"),
		gid(4, VERBS_GID_V2, "fd00::1"), gid(5, VERBS_GID_V2, "10.0.0.0")};
	struct verbs_gid_want address = any, six = any, vlan = any, gone = any;

	a[2].vlan = 100;
	address.by_address = true;
	/* The v1 entry of an address has the same bytes: the type decides. */
	assert_int_equal(verbs_gid_parse("10.0.0.1", &address.addr), 0);
	assert_int_equal(a[verbs_gid_choose(a, 6, &address)].index, 1);
	assert_int_equal(verbs_gid_parse("10.0.0.9", &address.addr), 0);
	assert_int_equal(verbs_gid_choose(a, 6, &address), -1);
	six.family = VERBS_GID_ANY_IPV6;
	assert_int_equal(a[verbs_gid_choose(a, 6, &six)].index, 4);
	assert_int_equal(a[verbs_gid_choose(a, 4, &six)].index, 3);
	vlan.vlan = 100;
	assert_int_equal(a[verbs_gid_choose(a, 6, &vlan)].index, 2);
	gone.vlan = 101;
	assert_int_equal(verbs_gid_choose(a, 6, &gone), -1);
	/* Unasked, the untagged one wins even behind the VLAN's. */
	a[1].vlan = 100;
	assert_int_equal(a[verbs_gid_choose(a, 6, &any)].index, 5);
}

static void pkeys_by_value(void **state)
{
	static const uint16_t table[] = {0x7fff, 0x0001, 0, 0xffff, 0x8001};

	assert_int_equal(verbs_pkey_choose(table, 5, 0xffff), 3);
	assert_int_equal(verbs_pkey_choose(table, 5, 0x7fff), 3); /* a full member first */
	assert_int_equal(verbs_pkey_choose(table, 3, 0xffff), 0);
	assert_int_equal(verbs_pkey_choose(table, 5, 0x8001), 4);
	assert_int_equal(verbs_pkey_choose(table, 5, 0x8002), -1);
	assert_int_equal(
		verbs_pkey_choose(table, 5, 0x8000), -1); /* an empty place is no partition */
}

/* What rdma_cm has chosen by itself is held against what was wanted and what the peer has. */
static void manager_choices(void **state)
{
	struct verbs_gid wanted = gid(3, VERBS_GID_V2, "10.0.0.1"),
			 v1 = gid(2, VERBS_GID_V1, "10.0.0.1");
	struct verbs_end peer = {.gid_index = 5, .gid_type = VERBS_GID_V2};
	struct fb_err e = {0};

	assert_int_equal(verbs_used_fits(&wanted, &peer, &wanted, 106, 106, "x0", &e), 0);
	assert_int_equal(verbs_used_fits(&wanted, &peer, &wanted, 104, 0, "x0", &e), 0);
	assert_int_equal(verbs_used_fits(&v1, &peer, &wanted, 0, 0, "x0", &e), -EPROTO);
	assert_non_null(strstr(e.msg, "RoCE v1"));
	assert_non_null(strstr(e.msg, "RoCE v2"));
	assert_non_null(strstr(e.hint, "default_roce_mode"));
	fb_err_clear(&e);
	peer.gid_type = VERBS_GID_V1;
	assert_int_equal(verbs_used_fits(&wanted, &peer, &wanted, 0, 0, "x0", &e), -EPROTO);
	assert_non_null(strstr(e.msg, "the peer does"));
	fb_err_clear(&e);
	peer.gid_type = VERBS_GID_V2;
	assert_int_equal(verbs_used_fits(&wanted, &peer, &wanted, 0, 106, "x0", &e), -EPROTO);
	assert_non_null(strstr(e.msg, "106"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(families),
		cmocka_unit_test(choice_is_by_type_and_address),
		cmocka_unit_test(mtus),
		cmocka_unit_test(wire_form_keeps_everything),
		cmocka_unit_test(wire_form_refuses_nonsense),
		cmocka_unit_test(misfits_name_both_values),
		cmocka_unit_test(partitions),
		cmocka_unit_test(roce_paths_have_a_grh),
		cmocka_unit_test(infiniband_needs_a_grh_across_subnets_only),
		cmocka_unit_test(choice_by_address_family_and_vlan),
		cmocka_unit_test(pkeys_by_value),
		cmocka_unit_test(manager_choices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
