// SPDX-License-Identifier: Apache-2.0
/*
 * `verbs serve` against everybody who can reach its port: ten thousand sessions leave no descriptor
 * and no memory behind, and malformed, truncated, oversized, silent and unauthorised clients leave
 * it serving. The server is a process of its own, so that what it holds can be counted; devices are
 * not needed, because a session that ends for want of one has gone through everything before.
 */
#include "bench/core/test.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/oob/oob.h"
#include "verbs/params.h"
#include "verbs/serve.h"
#include "verbs/session.h"

#define SESSIONS 10000
#define TOKEN    "open sesame"

static pid_t server;
static int port;
static char log_path[] = "/tmp/fabricbench-serve.XXXXXX";

static void pause_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

/* "serving on 127.0.0.1 port 40123" */
static int port_in_log(void)
{
	char text[512] = "";
	const char *p;
	int fd = open(log_path, O_RDONLY);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	p = strstr(text, " port ");
	return p && strchr(p, '\n') ? (int)strtol(p + 6, NULL, 10) : 0;
}

static int start_server(void **state)
{
	int fd = mkstemp(log_path);

	assert_true(fd >= 0);
	server = fork();
	assert_true(server >= 0);
	if (server == 0) {
		char *argv[] = {(char *)"serve", (char *)"--port", (char *)"0", (char *)"--bind",
			(char *)"127.0.0.1", (char *)"--token", (char *)TOKEN, NULL};
		dup2(fd, 2);
		close(fd);
		_exit(verbs_serve_main(7, argv));
	}
	close(fd);
	for (int i = 0; i < 1000 && !(port = port_in_log()); i++)
		pause_ms(10);
	assert_true(port > 0);
	return 0;
}

static int stop_server(void **state)
{
	int status = -1;

	kill(server, SIGTERM);
	for (int i = 0; i < 1000 && waitpid(server, &status, WNOHANG) == 0; i++)
		pause_ms(10);
	unlink(log_path);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	kill(server, SIGKILL);
	return -1;
}

/* ---- what the server holds ------------------------------------------------------------------- */

static int descriptors(void)
{
	char path[64];
	DIR *d;
	int n = 0;

	snprintf(path, sizeof path, "/proc/%d/fd", (int)server);
	d = opendir(path);
	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static long resident_kib(void)
{
	char path[64], text[4096];
	const char *p;
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/status", (int)server);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	n = read(fd, text, sizeof text - 1);
	close(fd);
	assert_true(n > 0);
	text[n] = '\0';
	p = strstr(text, "VmRSS:");
	assert_non_null(p);
	return strtol(p + 6, NULL, 10);
}

/* The last session may still be on its way out. */
static int settled_descriptors(int want)
{
	int n = descriptors();

	for (int i = 0; i < 700 && n > want; i++) {
		pause_ms(10);
		n = descriptors();
	}
	return n;
}

/* ---- clients --------------------------------------------------------------------------------- */

static json_t *order(void)
{
	char *argv[] = {(char *)"x"};
	struct verbs_options o = {0};
	struct fb_opt_spec spec = {
		.command = "x", .usage = "", .sets = {{"RDMA", verbs_latency_opts, &o}}};
	struct verbs_params p;
	struct fb_err e = {0};
	json_t *j = json_object();

	assert_int_equal(fb_opt_parse(&spec, 1, argv, &e), 0);
	assert_int_equal(verbs_params_from_options(&p, &o, VERBS_LATENCY, &e), 0);
	fb_opt_free(&spec);
	/* A device that no host has: the session ends there, with or without RDMA here. */
	snprintf(p.peer_device, sizeof p.peer_device, "nosuch0");
	fb_json_set_int(j, "verbs", VERBS_SESSION_VERSION);
	fb_json_set_str(j, "host", "test");
	fb_json_set_str(j, "boot_id", "another");
	fb_json_set_int(j, "rails", 1);
	fb_json_set_int(j, "seconds", 10);
	fb_json_set_bool(j, "hardware", false);
	json_object_set_new(j, "params", verbs_params_to_json(&p));
	return j;
}

/* One whole session up to the server's refusal. @return its text in *e */
static void session(json_t *ord, struct fb_err *e)
{
	uint64_t deadline = fb_deadline_in(20000000000ull);
	struct fb_oob *o = NULL;
	json_t *j = json_incref(ord);
	int rc;

	/* The session before is closed here, but its server may not have come back to the door. */
	for (int i = 0; i < 2000; i++) {
		fb_err_clear(e);
		rc = fb_oob_connect("127.0.0.1", port, TOKEN, deadline, &o, e);
		if (rc != -EBUSY)
			break;
		pause_ms(1);
	}
	if (rc)
		fail_msg("connect: %s", e->msg);
	assert_int_equal(fb_oob_bcast_json(o, &j, deadline, e), 0);
	json_decref(j);
	assert_int_not_equal(fb_oob_agree(o, e, deadline), 0);
	fb_oob_close(o);
}

static void still_serves(void)
{
	json_t *ord = order();
	struct fb_err e = {0};

	session(ord, &e);
	if (!strstr(e.msg, "RDMA device"))
		fail_msg("the server said: %s", e.msg);
	json_decref(ord);
}

static int raw(const void *bytes, size_t len)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
	if (len)
		(void)!send(fd, bytes, len, MSG_NOSIGNAL);
	return fd;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void ten_thousand_sessions(void **state)
{
	json_t *ord = order();
	struct fb_err e = {0};
	int files;
	long before, after;

	for (int i = 0; i < 200; i++) /* what is allocated once is there after these */
		session(ord, &e);
	files = descriptors();
	before = resident_kib();
	for (int i = 200; i < SESSIONS; i++)
		session(ord, &e);
	after = resident_kib();
	assert_non_null(strstr(e.msg, "RDMA device"));
	assert_true(settled_descriptors(files) <= files);
	/* A leak of 100 bytes a session would be 1 MiB; an allocator's own growth is below. The
	 * sanitizer keeps what was freed for a while (its quarantine), so that its figure says
	 * nothing. */
#if !defined(__SANITIZE_ADDRESS__)
	if (after - before > 1024)
		fail_msg("%ld KiB more after %d sessions", after - before, SESSIONS);
#endif
	print_message("%d sessions: %d descriptors, %ld KiB before, %ld KiB after\n", SESSIONS,
		files, before, after);
	json_decref(ord);
}

static void malformed_and_oversized(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} bad[] = {
		{"GET / HTTP/1.1\r\n\r\n", 18},
		{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11},
		{"FBOC", 4},                          /* cut in the header */
		{"FBOC\0\1\1\0\0\0\0\0", 12},         /* a hello of nothing */
		{"FBOC\0\1\1\0\xff\xff\xff\xff", 12}, /* and one of 4 GiB */
		{"FBOC\0\1\4\0\0\0\0\4abcd", 16},     /* data before a hello */
		{"FBOC\0\1\1\0\0\0\0\x08\xff\xff\xff\xff\xff\xff\xff",
			19},                      /* strings beyond the body */
		{"FBOC\0\x63\x63\0\0\0\0\0", 12}, /* no such type or protocol */
	};
	int files;

	still_serves();
	files = settled_descriptors(0x7fffffff);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		int fd = raw(bad[i].bytes, bad[i].len);
		shutdown(fd, SHUT_WR);
		close(fd);
		still_serves();
	}
	assert_true(settled_descriptors(files) <= files);
}

/* A proper hello, and then an order that is none. */
static void nonsense_orders(void **state)
{
	json_t *bad[] = {json_array(), json_object(), json_pack("{s:i}", "verbs", 99), order()};

	json_object_set_new(json_object_get(bad[3], "params"), "depth", json_integer(1 << 30));
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct fb_err e = {0};
		session(bad[i], &e);
		assert_int_not_equal(e.code, 0);
		json_decref(bad[i]);
		still_serves();
	}
}

static void wrong_token(void **state)
{
	struct fb_err e = {0};
	struct fb_oob *o = NULL;

	assert_int_equal(fb_oob_connect("127.0.0.1", port, "close sesame",
				 fb_deadline_in(10000000000ull), &o, &e),
		-EACCES);
	fb_err_clear(&e);
	assert_int_equal(
		fb_oob_connect("127.0.0.1", port, NULL, fb_deadline_in(10000000000ull), &o, &e),
		-EACCES);
	still_serves();
}

/* More silent connections than the server holds at once, and a client among them. */
static void flood_of_half_open(void **state)
{
	enum { MANY = 300 };
	int fd[MANY], files;

	still_serves();
	files = settled_descriptors(0x7fffffff);
	for (int i = 0; i < MANY; i++)
		fd[i] = raw("FB", i % 3 ? 0 : 2);
	still_serves();
	for (int i = 0; i < MANY; i++)
		close(fd[i]);
	still_serves();
	assert_true(settled_descriptors(files) <= files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ten_thousand_sessions),
		cmocka_unit_test(malformed_and_oversized),
		cmocka_unit_test(nonsense_orders),
		cmocka_unit_test(wrong_token),
		cmocka_unit_test(flood_of_half_open),
	};

	return cmocka_run_group_tests(tests, start_server, stop_server);
}
