// SPDX-License-Identifier: Apache-2.0
/* R40: the vendor's tool as a child, here a script of ours with its words; and none of it. The
 * answer's form is that of NVIDIA's "Adaptive Retransmission: Parameters Control", sample usage. */
#include "bench/core/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs/lossless/checks_priv.h"
#include "verbs/lossless/facts_priv.h"

struct bin {
	char dir[64], tool[96], *path;
};

static int setup(void **state)
{
	struct bin *b = calloc(1, sizeof(*b));
	const char *path = getenv("PATH");
	if (!b)
		return -1;
	snprintf(b->dir, sizeof(b->dir), "/tmp/fb-fw-XXXXXX");
	b->path = strdup(path ? path : "");
	*state = b;
	return b->path && mkdtemp(b->dir) ? 0 : -1;
}

static int teardown(void **state)
{
	struct bin *b = *state;
	setenv("PATH", b->path, 1);
	if (b->tool[0])
		unlink(b->tool);
	rmdir(b->dir);
	free(b->path);
	free(b);
	return 0;
}

static void tool(struct bin *b, const char *name, const char *script)
{
	char path[256];
	snprintf(b->tool, sizeof(b->tool), "%s/%s", b->dir, name);
	FILE *f = fopen(b->tool, "w");
	assert_non_null(f);
	fprintf(f, "#!/bin/sh\n%s\n", script);
	fclose(f);
	assert_int_equal(chmod(b->tool, 0755), 0);
	snprintf(path, sizeof(path), "%s:/usr/bin:/bin", b->dir);
	setenv("PATH", path, 1);
}

static void the_register_is_told(void **state)
{
	struct bin *b = *state;
	struct fact_text t = {.v = ""};
	tool(b, "mstreg",
		"[ \"$*\" = '-d 0000:3b:00.0 --yes --reg_name ROCE_ACCL --get' ] || exit 9\n"
		"echo 'Sending access register...'\necho\n"
		"echo 'Field Name                                 | Data'\n"
		"echo '============================================================'\n"
		"echo 'roce_adp_retrans_field_select              | 0x00000001'\n"
		"echo 'selective_repeat_forced_en_field_select    | 0x00000001'\n"
		"echo 'roce_adp_retrans_en                        | 0x00000001'\n"
		"echo 'roce_tx_window_en                          | 0x00000000'\n"
		"echo 'roce_slow_restart_en                       | 0x00000001'\n"
		"echo 'adaptive_routing_forced_en                 | 0x00000000'\n"
		"echo 'selective_repeat_forced_en                 | 0x00000000'");
	facts_fw_ask("0000:3b:00.0", &t);
	assert_int_equal(t.f.state, FACT_KNOWN);
	assert_string_equal(t.v, "ADP retransmission on, TX window off, slow restart on, selective "
				 "repeat off, forced AR off");
	assert_non_null(strstr(t.f.read, "mstreg -d 0000:3b:00.0"));
	struct port_facts *p = calloc(1, sizeof(*p));
	struct fb_finding f = {.state = FB_CHECK_ERROR};
	assert_non_null(p);
	p->loss_recovery = t;
	const struct check_input in = {.port = p};
	roce_r40(&in, &f);
	assert_int_equal(f.state, FB_CHECK_INFO);
	free(p);
}

static void what_goes_wrong_is_told(void **state)
{
	struct bin *b = *state;
	struct fact_text t = {.v = ""};
	tool(b, "mlxreg", "echo '-E- Failed to open device: permission denied' >&2; exit 1");
	facts_fw_ask("0000:3b:00.0", &t);
	assert_int_equal(t.f.state, FACT_HIDDEN);
	assert_non_null(strstr(t.f.why, "permission denied"));
	tool(b, "mlxreg", "echo 'no such register'");
	facts_fw_ask("0000:3b:00.0", &t);
	assert_int_equal(t.f.state, FACT_BROKEN);
}

static void without_the_tool(void **state)
{
	struct bin *b = *state;
	struct fact_text t = {.v = ""};
	setenv("PATH", b->dir, 1);
	facts_fw_ask("0000:3b:00.0", &t);
	assert_int_equal(t.f.state, FACT_ABSENT);
	assert_non_null(strstr(t.f.why, "mstflint"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_register_is_told), TEST(what_goes_wrong_is_told), TEST(without_the_tool)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
