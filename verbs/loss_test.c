// SPDX-License-Identifier: Apache-2.0
/* A loss sweep without a network: what counters say, what tc prints, the order of rates, rates as
 * people write them; and loss made by a command, which ends however its maker ends. */
#include "bench/core/test.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/core/json.h"
#include "verbs/loss_cmd.h"
#include "verbs/loss_run.h"

static void packets(void **state)
{
	static const struct {
		const char *driver, *counter;
	} known[] = {{"rxe", "sent_pkts"}, {"mlx5", "port_xmit_packets"},
		{"mlx4", "port_xmit_packets"}, {"bnxt_re", "tx_pkts"}, {"efa", "tx_pkts"},
		{"irdma", "TxUDP"}};
	json_t *before, *after;

	(void)state;
	for (unsigned i = 0; i < sizeof known / sizeof known[0]; i++) {
		before = json_pack("{s:i,s:i}", known[i].counter, 1000, "other", 5);
		after = json_pack("{s:i,s:i}", known[i].counter, 3120, "other", 99);
		assert_int_equal(verbs_loss_packets(known[i].driver, before, after), 2120);
		/* A reset on the way, and a counter that only one read has. */
		assert_int_equal(verbs_loss_packets(known[i].driver, after, before), -1);
		json_object_del(before, known[i].counter);
		assert_int_equal(verbs_loss_packets(known[i].driver, before, after), -1);
		/* Not available is never 0. */
		assert_int_equal(verbs_loss_packets("siw", after, after), -1);
		json_decref(before);
		json_decref(after);
	}
}

static void qdiscs(void **state)
{
	char kind[32];
	double loss;

	(void)state;
	assert_int_equal(verbs_loss_read_qdisc("[{\"kind\":\"noqueue\",\"handle\":\"0:\",\"root\":"
					       "true,\"refcnt\":2,\"options\":{}}]",
				 &loss, kind, sizeof kind),
		1);
	assert_int_equal(verbs_loss_read_qdisc(
				 "[{\"kind\":\"mq\",\"handle\":\"0:\",\"root\":true},{\"kind\":"
				 "\"fq_codel\",\"handle\":\"0:\",\"parent\":\":1\"}]",
				 &loss, kind, sizeof kind),
		1);
	assert_int_equal(verbs_loss_read_qdisc("[]", &loss, kind, sizeof kind), 1);
	assert_int_equal(
		verbs_loss_read_qdisc("[{\"kind\":\"htb\",\"handle\":\"1:\",\"root\":true}]", &loss,
			kind, sizeof kind),
		-EBUSY);
	assert_string_equal(kind, "htb");
	assert_int_equal(
		verbs_loss_read_qdisc(
			"[{\"kind\":\"netem\",\"handle\":\"8001:\",\"root\":true,\"options\":{"
			"\"limit\":1000,\"loss-random\":{\"loss\":0.005,\"correlation\":0}}}]",
			&loss, kind, sizeof kind),
		0);
	assert_float_equal(loss, 0.005, 1e-12);
	/* At 0 % tc tells no loss at all. */
	assert_int_equal(verbs_loss_read_qdisc("[{\"kind\":\"netem\",\"handle\":\"8001:\",\"root\":"
					       "true,\"options\":{\"limit\":1000}}]",
				 &loss, kind, sizeof kind),
		0);
	assert_float_equal(loss, 0, 0);
	assert_int_equal(verbs_loss_read_qdisc("qdisc noqueue", &loss, kind, sizeof kind), -EPROTO);
	assert_int_equal(verbs_loss_read_qdisc("{}", &loss, kind, sizeof kind), -EPROTO);
}

/* Every turn has each rate once; no two turns in a row begin with the same. */
static void order(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 7; n++)
		for (unsigned t = 0; t < 9; t++) {
			unsigned seen = 0;
			for (unsigned i = 0; i < n; i++) {
				unsigned at = verbs_loss_order(n, t, i);
				assert_true(at < n);
				seen |= 1u << at;
			}
			assert_int_equal(seen, (1u << n) - 1);
			if (n > 2)
				assert_int_not_equal(
					verbs_loss_order(n, t, 0), verbs_loss_order(n, t + 1, 0));
		}
}

static void rates(void **state)
{
	static const char *good[] = {"0.1", "2", "0", "99.9"};
	static const char *bad[] = {"", "x", "100", "-1", "0x1", "1%", "nan", "1e400"};
	struct fb_opt_list list = {good, 4};
	struct fb_err e = {0};
	double r[8];
	char buf[40];

	(void)state;
	assert_int_equal(verbs_loss_parse_rates(&list, "rates", r, 8, &e), 4);
	assert_float_equal(r[0], 0.1, 0);
	assert_float_equal(r[3], 99.9, 0);
	assert_int_equal(verbs_loss_parse_rates(&list, "rates", r, 3, &e), -EINVAL);
	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct fb_opt_list one = {&bad[i], 1};
		fb_err_clear(&e);
		assert_int_equal(verbs_loss_parse_rates(&one, "fit-rates", r, 8, &e), -EINVAL);
		assert_int_equal(e.exit, FB_EXIT_USAGE);
		assert_non_null(strstr(e.msg, "--fit-rates"));
	}
	good[1] = "0.10";
	fb_err_clear(&e);
	assert_int_equal(verbs_loss_parse_rates(&list, "rates", r, 8, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "twice"));
	assert_string_equal(verbs_loss_percent(0, buf, sizeof buf), "0");
	assert_string_equal(verbs_loss_percent(0.1, buf, sizeof buf), "0.1");
	assert_string_equal(verbs_loss_percent(10, buf, sizeof buf), "10");
	assert_string_equal(verbs_loss_percent(0.000125, buf, sizeof buf), "0.000125");
}

/* ---- a command that writes down what it is told ---------------------------------------------- */

struct recorder {
	char dir[64], command[128], log[128];
};

static void record(struct recorder *r, int status)
{
	FILE *f;

	snprintf(r->dir, sizeof r->dir, "/tmp/fb-loss-XXXXXX");
	assert_non_null(mkdtemp(r->dir));
	snprintf(r->command, sizeof r->command, "%s/lose", r->dir);
	snprintf(r->log, sizeof r->log, "%s/log", r->dir);
	f = fopen(r->command, "w");
	assert_non_null(f);
	fprintf(f, "#!/bin/sh\necho \"$1\" >>%s\nexit %d\n", r->log, status);
	fclose(f);
	assert_int_equal(chmod(r->command, 0755), 0);
}

static const char *recorded(const struct recorder *r, char *buf, size_t len)
{
	FILE *f = fopen(r->log, "r");

	buf[0] = '\0';
	if (f) {
		buf[fread(buf, 1, len - 1, f)] = '\0';
		fclose(f);
	}
	return buf;
}

static void forget(const struct recorder *r)
{
	unlink(r->log);
	unlink(r->command);
	assert_int_equal(rmdir(r->dir), 0);
}

static void a_command(void **state)
{
	struct verbs_loss_maker m;
	struct fb_err e = {0};
	struct recorder r = {.dir = ""};
	char text[256];

	(void)state;
	record(&r, 0);
	assert_int_equal(verbs_loss_maker_open(&m, VERBS_LOSS_COMMAND, r.command, &e), 0);
	assert_int_equal(verbs_loss_maker_set(&m, 0.5, &e), 0);
	assert_int_equal(verbs_loss_maker_set(&m, 2, &e), 0);
	assert_int_equal(verbs_loss_maker_close(&m, &e), 0);
	assert_int_equal(verbs_loss_maker_close(&m, &e), 0); /* once is enough */
	assert_string_equal(recorded(&r, text, sizeof text), "0\n0.5\n2\n0\n");
	forget(&r);

	record(&r, 7);
	assert_int_equal(verbs_loss_maker_open(&m, VERBS_LOSS_COMMAND, r.command, &e), -EIO);
	assert_non_null(strstr(e.msg, "status 7"));
	assert_int_equal(m.guard, 0);
	forget(&r);
	fb_err_clear(&e);
	assert_int_equal(verbs_loss_maker_open(&m, VERBS_LOSS_COMMAND, r.command, &e), -ENOENT);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	fb_err_clear(&e);
	assert_int_equal(verbs_loss_maker_open(&m, VERBS_LOSS_GIVEN, NULL, &e), 0);
	assert_int_equal(verbs_loss_maker_set(&m, 3, &e), 0);
	assert_int_equal(verbs_loss_maker_close(&m, &e), 0);
}

/* SIGKILL in the middle: the guard still takes the loss away. */
static void a_killed_maker(void **state)
{
	static const struct timespec pause = {0, 10000000};
	struct verbs_loss_maker m;
	struct fb_err e = {0};
	struct recorder r = {.dir = ""};
	char text[256];
	pid_t pid;

	(void)state;
	record(&r, 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (verbs_loss_maker_open(&m, VERBS_LOSS_COMMAND, r.command, &e) == 0 &&
			verbs_loss_maker_set(&m, 5, &e) == 0)
			kill(getpid(), SIGKILL);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &m.guard_fd, 0), pid);
	assert_true(WIFSIGNALED(m.guard_fd));
	/* Twice, a second apart: see the guard. The test's own deadline is the runner's. */
	while (strcmp(recorded(&r, text, sizeof text), "0\n5\n0\n0\n") != 0)
		nanosleep(&pause, NULL);
	forget(&r);
}

static void netem_refused(void **state)
{
	struct verbs_loss_maker m;
	struct fb_err e = {0};

	(void)state;
	assert_true(verbs_loss_maker_open(&m, VERBS_LOSS_NETEM, "no-such-dev0", &e) < 0);
	/* No such device; or, where tc is not installed, not available. */
	assert_true(e.exit == FB_EXIT_USAGE || e.exit == FB_EXIT_SKIP);
	assert_true(e.hint[0]);
	assert_int_equal(m.guard, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets),
		cmocka_unit_test(qdiscs),
		cmocka_unit_test(order),
		cmocka_unit_test(rates),
		cmocka_unit_test(a_command),
		cmocka_unit_test(a_killed_maker),
		cmocka_unit_test(netem_refused),
	};
	return cmocka_run_group_tests_name("verbs/loss", tests, NULL, NULL);
}
