// SPDX-License-Identifier: Apache-2.0
/* R39: configuration space as bytes, of a function and of the bridge above it. */
#include "bench/core/test.h"

#include <string.h>
#include <unistd.h>

#include "verbs/lossless/checks_priv.h"
#include "verbs/lossless/test_tree.h"

#define GOOD "verbs/lossless/testdata/trees/vendor-good.tree"
#define CARD "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0"

struct machine {
	struct test_tree t;
	uint8_t card[4096], bridge[4096];
};

static void put(uint8_t *c, size_t at, unsigned v)
{
	c[at] = (uint8_t)v;
	c[at + 1] = (uint8_t)(v >> 8);
}

/* PCI Express at 0x40 behind power management at 0x60; ACS at 0x140 behind AER at 0x100. */
static void fill(struct machine *m, unsigned device_control, unsigned acs)
{
	memset(m->card, 0, sizeof(m->card));
	m->card[0x34] = 0x60;
	m->card[0x60] = 0x01;
	m->card[0x61] = 0x40;
	m->card[0x40] = 0x10;
	put(m->card, 0x48, device_control);
	memcpy(m->bridge, m->card, sizeof(m->bridge));
	put(m->bridge, 0x100, 0x0001);
	put(m->bridge, 0x102, 0x140 << 4 | 1);
	put(m->bridge, 0x140, 0x000d);
	put(m->bridge, 0x142, 1);
	put(m->bridge, 0x146, acs);
}

static void write_config(const struct machine *m, const char *dir, const uint8_t *c, size_t len)
{
	char path[512];
	snprintf(path, sizeof(path), "%s%s/config", m->t.dir, dir);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(c, 1, len, f), len);
	fclose(f);
}

static struct fb_finding judge(struct machine *m, size_t card_len, size_t bridge_len)
{
	struct fb_finding f = {.state = FB_CHECK_ERROR};
	struct fb_err e = {0};
	struct profile none;
	profile_none(&none);
	test_tree_make(&m->t, GOOD,
		"link /sys/class/infiniband/mlx5_0/device -> " CARD "\ndir " CARD "\nlink " CARD
		"/driver -> /sys/bus/pci/drivers/mlx5_core");
	write_config(m, CARD, m->card, card_len);
	if (bridge_len)
		write_config(m, "/sys/devices/pci0000:3a/0000:3a:00.0", m->bridge, bridge_len);
	assert_int_equal(facts_read(&m->t.root, NULL, &m->t.facts, &e), 0);
	struct check_input in = {
		.node = &m->t.facts, .port = &m->t.facts.port[0], .profile = &none};
	roce_r39(&in, &f);
	test_tree_close(&m->t);
	return f;
}

static void straight(void **state)
{
	struct machine m;
	(void)state;
	fill(&m, 0x0010, 0x0001);
	struct fb_finding f = judge(&m, 4096, 4096);
	assert_int_equal(f.state, FB_CHECK_PASS);
}

static void strictly_ordered(void **state)
{
	struct machine m;
	(void)state;
	fill(&m, 0xffef, 0);
	struct fb_finding f = judge(&m, 4096, 4096);
	assert_int_equal(f.state, FB_CHECK_WARN);
	assert_non_null(strstr(f.observed, "relaxed ordering off"));
}

static void redirected(void **state)
{
	struct machine m;
	(void)state;
	fill(&m, 0x0010, 0x001d);
	struct fb_finding f = judge(&m, 4096, 4096);
	assert_int_equal(f.state, FB_CHECK_WARN);
	assert_non_null(strstr(f.observed, "0000:3a:00.0"));
	assert_non_null(strstr(f.remedy, "0000:3a:00.0"));
}

static void not_for_everybody(void **state)
{
	struct machine m;
	(void)state;
	fill(&m, 0x0010, 0);
	assert_int_equal(judge(&m, 64, 4096).state, FB_CHECK_SKIP);
	assert_int_equal(judge(&m, 4096, 64).state, FB_CHECK_SKIP);
	assert_int_equal(judge(&m, 4096, 0).state, FB_CHECK_SKIP);
}

/* Root, where the extended space cannot be read: no ACS in 256 bytes is no answer. */
static void cut_short(void **state)
{
	struct machine m;
	(void)state;
	fill(&m, 0x0010, 0x001d);
	static const size_t lengths[] = {64, 256, 0x104, 0x144};
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct fb_finding f = judge(&m, 4096, lengths[i]);
		assert_int_equal(f.state, FB_CHECK_SKIP);
		assert_non_null(strstr(f.reason, "needs root"));
	}
	assert_int_equal(judge(&m, 4096, 0x148).state, FB_CHECK_WARN);
	/* A conventional bridge has no more than that. */
	m.bridge[0x34] = 0;
	assert_int_equal(judge(&m, 4096, 256).state, FB_CHECK_PASS);
}

/* Lists that point at themselves, outside, or at nothing. */
static void odd_lists_end(void **state)
{
	struct machine m;
	(void)state;
	fill(&m, 0x0010, 0x001d);
	m.card[0x61] = 0x60;
	assert_int_equal(judge(&m, 4096, 4096).state, FB_CHECK_ERROR);
	fill(&m, 0x0010, 0x001d);
	m.card[0x34] = 0xff;
	assert_int_equal(judge(&m, 4096, 4096).state, FB_CHECK_ERROR);
	fill(&m, 0x0010, 0x001d);
	put(m.bridge, 0x102, 0x100 << 4 | 1);
	assert_int_equal(judge(&m, 4096, 4096).state, FB_CHECK_PASS);
	fill(&m, 0x0010, 0x001d);
	put(m.bridge, 0x102, 0xfff << 4 | 1);
	assert_int_equal(judge(&m, 4096, 4096).state, FB_CHECK_PASS);
	for (size_t len = 65; len < 0x148; len += 13)
		assert_true(judge(&m, len, len).state != FB_CHECK_FAIL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(straight),
		cmocka_unit_test(strictly_ordered), cmocka_unit_test(redirected),
		cmocka_unit_test(not_for_everybody), cmocka_unit_test(cut_short),
		cmocka_unit_test(odd_lists_end)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
