// SPDX-License-Identifier: Apache-2.0
/*
 * DCB answers: whole, refused, cut off at every length, wrongly nested, with attributes of newer
 * kernels. A fact is known only with the value that the whole answer gives.
 */
#include "bench/core/test.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/dcbnl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/lossless/dcb.h"
#include "verbs/lossless/test_tree.h"
#include "verbs/lossless/tree_priv.h"

/* Every attribute, each value another one. */
static void fill(struct dcb_facts *d)
{
	memset(d, 0, sizeof(*d));
	struct fact *const f[] = {&d->ets_f, &d->pfc_f, &d->app_f, &d->buffer_f, &d->peer_pfc_f,
		&d->peer_ets_f, &d->peer_app_f, &d->trust_f};
	for (size_t i = 0; i < sizeof(f) / sizeof(f[0]); i++)
		f[i]->state = FACT_KNOWN;
	d->ets.willing = 1;
	d->ets.cap = 8;
	for (int i = 0; i < 8; i++) {
		d->ets.tc_tx_bw[i] = (uint8_t)(10 + i);
		d->ets.tsa[i] = (uint8_t)(i % 2 ? 2 : 0);
		d->ets.prio_tc[i] = (uint8_t)(7 - i);
		d->pfc.sent[i] = 1000u + (unsigned)i;
		d->pfc.received[i] = 1ull << (32 + i);
		d->buffer.prio2buffer[i] = (uint8_t)i;
		d->buffer.size[i] = 4096u * (unsigned)i;
	}
	d->peer_ets = d->ets;
	d->peer_ets.willing = 0;
	d->pfc.cap = 8;
	d->pfc.en = 0x08;
	d->pfc.delay = 7;
	d->peer_pfc.en = 0x18;
	d->buffer.total = 262016;
	d->apps = 3;
	d->app[0] = (struct dcb_app_entry){5, 3, 26};
	d->app[1] = (struct dcb_app_entry){5, 6, 48};
	d->app[2] = (struct dcb_app_entry){3, 3, 4791};
	d->peer_apps = 1;
	d->peer_app[0] = (struct dcb_app_entry){3, 4, 4791};
	d->trusts = 2;
	d->trust[0] = 5;
	d->trust[1] = 255;
}

static bool same_app(const struct dcb_app_entry *a, int na, const struct dcb_app_entry *b, int nb)
{
	bool same = na == nb;
	for (int i = 0; i < na && same; i++)
		same = a[i].selector == b[i].selector && a[i].priority == b[i].priority &&
		       a[i].protocol == b[i].protocol;
	return same;
}

/* Each fact that got known has the value of `whole`. */
static void assert_no_other_value(const struct dcb_facts *got, const struct dcb_facts *whole)
{
	if (fact_known(&got->ets_f))
		assert_memory_equal(&got->ets, &whole->ets, sizeof(got->ets));
	if (fact_known(&got->peer_ets_f))
		assert_memory_equal(&got->peer_ets, &whole->peer_ets, sizeof(got->peer_ets));
	if (fact_known(&got->pfc_f)) {
		assert_int_equal(got->pfc.en, whole->pfc.en);
		assert_int_equal(got->pfc.delay, whole->pfc.delay);
		assert_memory_equal(got->pfc.sent, whole->pfc.sent, sizeof(got->pfc.sent));
		assert_memory_equal(
			got->pfc.received, whole->pfc.received, sizeof(got->pfc.received));
	}
	if (fact_known(&got->peer_pfc_f))
		assert_int_equal(got->peer_pfc.en, whole->peer_pfc.en);
	if (fact_known(&got->buffer_f)) {
		assert_memory_equal(got->buffer.prio2buffer, whole->buffer.prio2buffer, 8);
		assert_memory_equal(got->buffer.size, whole->buffer.size, sizeof(got->buffer.size));
		assert_int_equal(got->buffer.total, whole->buffer.total);
	}
	if (fact_known(&got->app_f))
		assert_true(same_app(got->app, got->apps, whole->app, whole->apps));
	if (fact_known(&got->peer_app_f))
		assert_true(
			same_app(got->peer_app, got->peer_apps, whole->peer_app, whole->peer_apps));
	if (fact_known(&got->trust_f)) {
		assert_int_equal(got->trusts, whole->trusts);
		assert_memory_equal(got->trust, whole->trust, (size_t)got->trusts);
	}
}

static int known_facts(const struct dcb_facts *d)
{
	return fact_known(&d->ets_f) + fact_known(&d->pfc_f) + fact_known(&d->app_f) +
	       fact_known(&d->buffer_f) + fact_known(&d->peer_pfc_f) + fact_known(&d->peer_ets_f) +
	       fact_known(&d->peer_app_f) + fact_known(&d->trust_f);
}

static struct dcb_facts whole, got;
static _Alignas(8) char answer[16384], changed[16384];

static size_t whole_answer(void)
{
	fill(&whole);
	size_t n = tree_dcb_ieee(&whole, "eth2", answer, sizeof(answer));
	assert_true(n > 0);
	return n;
}

static void every_attribute(void **state)
{
	size_t n = whole_answer();
	memset(&got, 0, sizeof(got));
	dcb_parse(answer, n, false, &got);
	assert_int_equal(known_facts(&got), 8);
	assert_true(fact_known(&got.ieee));
	assert_no_other_value(&got, &whole);
	/* At an odd address too. */
	memcpy(changed + 1, answer, n);
	memset(&got, 0, sizeof(got));
	dcb_parse(changed + 1, n, false, &got);
	assert_int_equal(known_facts(&got), 8);
}

static void one_attribute_alone(void **state)
{
	for (int k = 0; k < 8; k++) {
		fill(&whole);
		struct fact *const f[] = {&whole.ets_f, &whole.pfc_f, &whole.app_f, &whole.buffer_f,
			&whole.peer_pfc_f, &whole.peer_ets_f, &whole.peer_app_f, &whole.trust_f};
		struct fact *const g[] = {&got.ets_f, &got.pfc_f, &got.app_f, &got.buffer_f,
			&got.peer_pfc_f, &got.peer_ets_f, &got.peer_app_f, &got.trust_f};
		for (int i = 0; i < 8; i++)
			f[i]->state = i == k ? FACT_KNOWN : FACT_ABSENT;
		size_t n = tree_dcb_ieee(&whole, "eth2", answer, sizeof(answer));
		memset(&got, 0, sizeof(got));
		dcb_parse(answer, n, false, &got);
		for (int i = 0; i < 8; i++)
			assert_int_equal(g[i]->state, i == k ? FACT_KNOWN : FACT_ABSENT);
		assert_no_other_value(&got, &whole);
	}
}

static void unknown_attributes(void **state)
{
	struct nlmsghdr *h = (void *)answer;
	whole_answer();
	/* After the table of IEEE, and inside it: the last attribute's nest grows with it. */
	struct nlattr *ieee = mnl_nlmsg_get_payload_tail(h);
	struct nlattr *a;
	mnl_attr_for_each(a, h, sizeof(struct dcbmsg)) if (mnl_attr_get_type(a) == DCB_ATTR_IEEE)
		ieee = a;
	size_t before = h->nlmsg_len;
	mnl_attr_put_u32(h, 200, 0xffffffff);
	mnl_attr_put(h, 12, 40, answer); /* the rewrite table, of another size than any */
	ieee->nla_len = (uint16_t)(ieee->nla_len + (h->nlmsg_len - before));
	mnl_attr_put_u32(h, 99, 1);
	memset(&got, 0, sizeof(got));
	dcb_parse(answer, h->nlmsg_len, false, &got);
	assert_int_equal(known_facts(&got), 8);
	assert_no_other_value(&got, &whole);
}

static void truncated_everywhere(void **state)
{
	size_t n = whole_answer();
	for (size_t k = 0; k < n; k++) {
		char *exact = malloc(k ? k : 1);
		assert_non_null(exact);
		memcpy(exact, answer, k);
		memset(&got, 0, sizeof(got));
		dcb_parse(exact, k, false, &got);
		assert_int_equal(known_facts(&got), 0);
		assert_int_equal(got.ieee.state, FACT_BROKEN);
		assert_int_equal(got.pfc_f.state, FACT_BROKEN);
		/* The same with a header that says so: what lies before the cut stands. */
		if (k >= sizeof(struct nlmsghdr)) {
			((struct nlmsghdr *)(void *)exact)->nlmsg_len = (uint32_t)k;
			memset(&got, 0, sizeof(got));
			dcb_parse(exact, k, false, &got);
			assert_no_other_value(&got, &whole);
			assert_int_not_equal(got.ieee.state, FACT_KNOWN);
			assert_int_not_equal(got.ieee.state, FACT_UNREAD);
			assert_int_not_equal(got.trust_f.state, FACT_ABSENT);
		}
		free(exact);
	}
}

static void wrong_lengths(void **state)
{
	size_t n = whole_answer();
	const struct nlmsghdr *h = (const void *)answer;
	const struct nlattr *a;
	/* Every attribute, at every depth, made shorter and longer by up to 8 bytes. */
	mnl_attr_for_each(a, h, sizeof(struct dcbmsg))
	{
		if (mnl_attr_get_type(a) != DCB_ATTR_IEEE)
			continue;
		const struct nlattr *b;
		mnl_attr_for_each_nested(b, a)
		{
			for (int by = -8; by <= 8; by++) {
				size_t at = (size_t)((const char *)b - answer);
				memcpy(changed, answer, n);
				struct nlattr *x = (void *)(changed + at);
				x->nla_len = (uint16_t)(x->nla_len + by);
				memset(&got, 0, sizeof(got));
				dcb_parse(changed, n, false, &got);
				assert_int_not_equal(got.ieee.state, FACT_UNREAD);
				/* Tables may lose or gain entries; fixed ones never change. */
				if (fact_known(&got.ets_f))
					assert_memory_equal(&got.ets, &whole.ets, sizeof(got.ets));
				if (fact_known(&got.pfc_f))
					assert_int_equal(got.pfc.en, whole.pfc.en);
			}
		}
	}
}

/* A table where a structure belongs, and the other way round. */
static void wrong_nesting(void **state)
{
	fill(&whole);
	struct nlmsghdr *h = mnl_nlmsg_put_header(answer);
	h->nlmsg_type = RTM_GETDCB;
	mnl_nlmsg_put_extra_header(h, sizeof(struct dcbmsg));
	struct nlattr *ieee = mnl_attr_nest_start(h, DCB_ATTR_IEEE);
	struct nlattr *pfc = mnl_attr_nest_start(h, DCB_ATTR_IEEE_PFC);
	mnl_attr_put_u8(h, 1, 8);
	mnl_attr_nest_end(h, pfc);
	struct ieee_pfc x = {.pfc_en = 0xff};
	mnl_attr_put(h, DCB_ATTR_IEEE_APP_TABLE, sizeof(x), &x);
	struct ieee_ets y = {.willing = 1};
	mnl_attr_put(h, DCB_ATTR_IEEE_ETS, sizeof(y), &y);
	mnl_attr_nest_end(h, ieee);
	/* PFC outside its table is no PFC. */
	x.pfc_en = 0x08;
	mnl_attr_put(h, DCB_ATTR_IEEE_PFC, sizeof(x), &x);
	memset(&got, 0, sizeof(got));
	dcb_parse(answer, h->nlmsg_len, false, &got);
	assert_int_equal(got.pfc_f.state, FACT_BROKEN);
	assert_int_equal(got.app_f.state, FACT_BROKEN);
	assert_int_equal(got.ets_f.state, FACT_KNOWN);
	assert_int_equal(got.ets.willing, 1);
	assert_int_equal(got.buffer_f.state, FACT_ABSENT);
}

static void too_many_entries(void **state)
{
	fill(&whole);
	whole.apps = DCB_MAX_APP;
	struct nlmsghdr *h = (void *)answer;
	assert_true(tree_dcb_ieee(&whole, "eth2", answer, sizeof(answer)) > 0);
	memset(&got, 0, sizeof(got));
	dcb_parse(answer, h->nlmsg_len, false, &got);
	assert_int_equal(got.app_f.state, FACT_KNOWN);
	assert_int_equal(got.apps, DCB_MAX_APP);
	/* A second table goes on where the first ended. */
	struct nlattr *ieee = mnl_attr_nest_start(h, DCB_ATTR_IEEE);
	for (int k = 0; k < 2; k++) {
		struct nlattr *t = mnl_attr_nest_start(h, DCB_ATTR_IEEE_APP_TABLE);
		for (int i = 0; i < 100; i++)
			mnl_attr_put(h, DCB_ATTR_IEEE_APP, sizeof(struct dcb_app),
				&(struct dcb_app){.selector = 5, .protocol = (uint16_t)i});
		mnl_attr_nest_end(h, t);
	}
	mnl_attr_nest_end(h, ieee);
	memset(&got, 0, sizeof(got));
	dcb_parse(answer, h->nlmsg_len, false, &got);
	assert_int_equal(got.app_f.state, FACT_BROKEN);
	assert_true(got.apps <= DCB_MAX_APP);
}

static void refusals(void **state)
{
	static const struct {
		int code;
		enum fact_state state;
	} cases[] = {{EOPNOTSUPP, FACT_ABSENT}, {ENODEV, FACT_ABSENT}, {EPERM, FACT_HIDDEN},
		{EACCES, FACT_HIDDEN}, {EINVAL, FACT_BROKEN}, {-100000, FACT_BROKEN}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n = tree_dcb_error(cases[i].code, answer, sizeof(answer));
		memset(&got, 0, sizeof(got));
		dcb_parse(answer, n, false, &got);
		assert_int_equal(got.ieee.state, cases[i].state);
		assert_int_equal(got.pfc_f.state, cases[i].state);
		assert_true(got.pfc_f.why[0]);
	}
	/* An acknowledgement says nothing of PFC. */
	size_t n = tree_dcb_error(0, answer, sizeof(answer));
	memset(&got, 0, sizeof(got));
	dcb_parse(answer, n, false, &got);
	assert_int_equal(got.pfc_f.state, FACT_BROKEN);
}

static void recorded(void **state)
{
	struct test_tree t;
	test_tree_make(&t, NULL,
		"netdev eth0\npfc 3 4\napp dscp 26 3\ndcbx host ieee\n"
		"netdev eth1\nno-dcb\nnetdev eth2\nno-dcb EPERM\nnetdev eth3\n");
	memset(&got, 0, sizeof(got));
	dcb_read(&t.root, "eth0", &got);
	assert_int_equal(got.pfc.en, 0x18);
	assert_int_equal(got.apps, 1);
	assert_int_equal(got.dcbx, 9);
	assert_string_equal(got.pfc_f.read, "/netlink/dcb/eth0.ieee");
	assert_string_equal(got.dcbx_f.read, "/netlink/dcb/eth0.dcbx");
	static const struct {
		const char *name;
		enum fact_state state;
	} others[] = {{"eth1", FACT_ABSENT}, {"eth2", FACT_HIDDEN}, {"eth3", FACT_HIDDEN},
		{"no-such", FACT_HIDDEN}};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		memset(&got, 0, sizeof(got));
		dcb_read(&t.root, others[i].name, &got);
		assert_int_equal(got.pfc_f.state, others[i].state);
		assert_int_equal(got.dcbx_f.state, others[i].state);
	}
	test_tree_close(&t);
}

/* The kernel here: loopback has no DCB, a name that is none neither. */
static void live(void **state)
{
	const struct fb_sysroot here = {.dir = NULL};
	memset(&got, 0, sizeof(got));
	dcb_read(&here, "lo", &got);
	if (got.pfc_f.state == FACT_BROKEN)
		fb_test_skip("dcb-live", "this kernel answers no DCB question: %s", got.pfc_f.why);
	assert_int_equal(got.pfc_f.state, FACT_ABSENT);
	memset(&got, 0, sizeof(got));
	dcb_read(&here, "no-such-name-that-is-too-long-for-any", &got);
	assert_false(fact_known(&got.pfc_f));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_attribute),
		cmocka_unit_test(one_attribute_alone), cmocka_unit_test(unknown_attributes),
		cmocka_unit_test(truncated_everywhere), cmocka_unit_test(wrong_lengths),
		cmocka_unit_test(wrong_nesting), cmocka_unit_test(too_many_entries),
		cmocka_unit_test(refusals), cmocka_unit_test(recorded), cmocka_unit_test(live)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
