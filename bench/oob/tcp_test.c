// SPDX-License-Identifier: Apache-2.0
/*
 * A client with a server, and N ranks, over loopback: what goes right, and each way it goes wrong
 * (nobody there, a foreign service, another version or token, busy, silent, flooded, dead).
 */
#include "bench/core/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/core/clock.h"
#include "bench/core/log.h"
#include "bench/oob/oob_listen.h"

#define S(n) fb_deadline_in((uint64_t)(n)*1000000000u)

static struct fb_oob_listener *door(const char *token, int *port)
{
	struct fb_oob_listener *l = NULL;
	struct fb_err e = {0};
	*port = 0;
	assert_int_equal(fb_oob_listen("127.0.0.1", port, token, &l, &e), 0);
	assert_true(*port > 0);
	return l;
}

/* ---- client and server -------------------------------------------------------------------------
 */

struct server {
	struct fb_oob_listener *l;
	int (*session)(struct fb_oob *o, struct fb_err *e);
	int accepted, rc;
	struct fb_err err;
	pthread_t thread;
};

static void *serve(void *p)
{
	struct server *s = p;
	struct fb_oob *o = NULL;
	s->accepted = fb_oob_accept(s->l, S(10), &o, &s->err);
	if (s->accepted == 0) {
		s->rc = s->session(o, &s->err);
		fb_oob_close(o);
	}
	return NULL;
}

static void start(struct server *s)
{
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static int echo_session(struct fb_oob *o, struct fb_err *e)
{
	static const char reply[] = "pong";
	char ask[5];
	struct fb_oob_part *parts;
	assert_int_equal(fb_oob_rank(o), 1);
	assert_int_equal(fb_oob_size(o), 2);
	int rc = fb_oob_bcast(o, ask, sizeof(ask), S(5), e);
	if (rc == 0 && strcmp(ask, "ping") == 0)
		rc = fb_oob_gather(o, reply, sizeof(reply), &parts, S(5), e);
	return rc;
}

static void client_and_server(void **state)
{
	struct fb_err e = {0};
	int port;
	struct server s = {.l = door(NULL, &port), .session = echo_session};
	struct fb_oob *o;
	char ask[5] = "ping", host[128], self[65];
	struct fb_oob_part *parts;
	for (int round = 0; round < 2; round++) { /* a server outlives its clients */
		start(&s);
		assert_int_equal(fb_oob_connect("localhost", port, NULL, S(5), &o, &e), 0);
		assert_int_equal(fb_oob_rank(o), 0);
		assert_int_equal(fb_oob_bcast(o, ask, sizeof(ask), S(5), &e), 0);
		assert_int_equal(fb_oob_gather(o, NULL, 0, &parts, S(5), &e), 0);
		assert_int_equal(parts[0].len, 0);
		assert_string_equal(parts[1].data, "pong");
		fb_oob_parts_free(o, parts);
		gethostname(self, sizeof(self));
		assert_non_null(strstr(fb_oob_peer(o, 1, host, sizeof(host)), self));
		pthread_join(s.thread, NULL);
		assert_int_equal(s.accepted, 0);
		assert_int_equal(s.rc, 0);
		/* the server has said good-bye */
		poll(NULL, 0, 20);
		assert_int_equal(fb_oob_lost(o, &e), -ECONNRESET);
		assert_non_null(strstr(e.msg, "has left"));
		fb_err_clear(&e);
		fb_oob_close(o);
	}
	fb_oob_listener_close(s.l);
}

static void nobody_listens(void **state)
{
	struct fb_err e = {0};
	struct fb_oob *o;
	int port;
	fb_oob_listener_close(door(NULL, &port));
	assert_int_equal(fb_oob_connect("127.0.0.1", port, NULL, S(5), &o, &e), -ECONNREFUSED);
	assert_int_equal(e.exit, FB_EXIT_UNMEASURED);
	assert_non_null(strstr(e.msg, "Connection refused"));
	assert_non_null(strstr(e.hint, "fabricbench verbs serve"));
	assert_non_null(strstr(e.hint, "-p"));
	assert_null(o);
}

static void unknown_host(void **state)
{
	struct fb_err e = {0};
	struct fb_oob *o;
	assert_true(fb_oob_connect("no-such-host.invalid", 1, NULL, S(5), &o, &e) < 0);
	assert_int_equal(e.exit, FB_EXIT_UNMEASURED);
	assert_true(e.hint[0] != '\0');
}

struct foreign {
	int fd;
	const char *says;
};
static void *foreign_main(void *p)
{
	struct foreign *f = p;
	char sink[256];
	int c = accept(f->fd, NULL, NULL);
	if (f->says)
		assert_int_equal(send(c, f->says, strlen(f->says), MSG_NOSIGNAL), strlen(f->says));
	while (recv(c, sink, sizeof(sink), 0) > 0)
		continue;
	close(c);
	return NULL;
}

static int meet_foreign(const char *says, uint64_t wait_ns, struct fb_err *e)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	struct foreign f = {.fd = socket(AF_INET, SOCK_STREAM, 0), .says = says};
	pthread_t t;
	struct fb_oob *o;
	assert_int_equal(bind(f.fd, (struct sockaddr *)&a, n), 0);
	assert_int_equal(listen(f.fd, 1), 0);
	assert_int_equal(getsockname(f.fd, (struct sockaddr *)&a, &n), 0);
	assert_int_equal(pthread_create(&t, NULL, foreign_main, &f), 0);
	int rc = fb_oob_connect(
		"127.0.0.1", ntohs(a.sin_port), NULL, fb_deadline_in(wait_ns), &o, e);
	pthread_join(t, NULL);
	close(f.fd);
	return rc;
}

static void foreign_services(void **state)
{
	struct fb_err e = {0};
	assert_int_equal(
		meet_foreign("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", 5000000000u, &e), -EPROTO);
	assert_non_null(strstr(
		e.msg, "answered, but is not fabricbench (\"SSH-2.0-OpenSSH_9.2p1 De...\")"));
	fb_err_clear(&e);
	assert_int_equal(meet_foreign("HTTP/1.1 400 Bad\r\n", 5000000000u, &e), -EPROTO);
	assert_non_null(strstr(e.msg, "(\"HTTP/1.1 400 Bad\")"));
	fb_err_clear(&e);
	assert_int_equal(meet_foreign(NULL, 200000000u, &e), -ETIMEDOUT);
	assert_non_null(strstr(e.msg, "said nothing"));
	assert_non_null(strstr(e.hint, "verbs serve"));
}

static void token_decides(void **state)
{
	struct fb_err e = {0};
	int port;
	struct server s = {.l = door("abcde", &port), .session = echo_session};
	struct fb_oob *o;
	static const char *const wrong[] = {NULL, "wrong", "abcd", "abcdef"};
	fb_log_set_level(FB_LOG_ERROR);
	start(&s);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(
			fb_oob_connect("127.0.0.1", port, wrong[i], S(5), &o, &e), -EACCES);
		assert_non_null(strstr(e.msg, "token"));
		assert_non_null(strstr(e.hint, "--token"));
		fb_err_clear(&e);
	}
	/* none of them ended the server's wait */
	assert_int_equal(fb_oob_connect("127.0.0.1", port, "abcde", S(5), &o, &e), 0);
	fb_oob_close(o);
	pthread_join(s.thread, NULL);
	assert_int_equal(s.accepted, 0);
	assert_int_equal(s.rc, -ECONNRESET);
	fb_oob_listener_close(s.l);
}

/* A process of its own plays the other version: the switch is in the environment. */
static void another_version(void **state)
{
	struct fb_err e = {0};
	int port, status;
	struct server s = {.l = door(NULL, &port), .session = echo_session};
	fb_log_set_level(FB_LOG_ERROR);
	pid_t pid = fork();
	if (pid == 0) {
		struct fb_oob *o;
		setenv("FABRICBENCH_TEST_PROTOCOL", "0", 1);
		int rc = fb_oob_connect("127.0.0.1", port, NULL, S(5), &o, &e);
		const bool named = strstr(e.msg, "(protocol 1), this is fabricbench") ||
				   strstr(e.msg, "(protocol 1), this is ");
		_exit(rc == -EPROTO && named && strstr(e.msg, "(protocol 0)") && e.hint[0] ? 7 : 1);
	}
	struct fb_oob *o;
	assert_int_equal(fb_oob_accept(s.l, fb_deadline_in(700000000u), &o, &e), -ETIMEDOUT);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
	fb_oob_listener_close(s.l);
}

static int slow_session(struct fb_oob *o, struct fb_err *e)
{
	char word[5];
	return fb_oob_bcast(o, word, sizeof(word), S(10), e);
}

static void busy_server(void **state)
{
	struct fb_err e = {0};
	int port;
	struct server s = {.l = door(NULL, &port), .session = slow_session};
	struct fb_oob *o, *second;
	start(&s);
	assert_int_equal(fb_oob_connect("127.0.0.1", port, NULL, S(5), &o, &e), 0);
	assert_int_equal(fb_oob_connect("127.0.0.1", port, NULL, S(5), &second, &e), -EBUSY);
	assert_non_null(strstr(e.msg, "busy with rank 0 on"));
	fb_err_clear(&e);
	char word[5] = "done";
	assert_int_equal(fb_oob_bcast(o, word, sizeof(word), S(5), &e), 0);
	pthread_join(s.thread, NULL);
	assert_int_equal(s.rc, 0);
	fb_oob_close(o);
	fb_oob_listener_close(s.l);
}

/* Still busy with a client that has said good-bye. */
static int lingering_session(struct fb_oob *o, struct fb_err *e)
{
	char word[5];
	int rc = fb_oob_bcast(o, word, sizeof(word), S(5), e);
	for (int i = 0; i < 30 && rc == 0; i++) {
		struct fb_err left = {0};
		(void)fb_oob_lost(o, &left);
		poll(NULL, 0, 10);
	}
	return rc;
}

static void *serve_twice(void *p)
{
	serve(p);
	return serve(p);
}

/* A client that comes right after another one waits at the door, and is not told "busy". */
static void the_next_client_waits(void **state)
{
	struct fb_err e = {0};
	int port;
	struct server s = {.l = door(NULL, &port), .session = lingering_session};
	struct fb_oob *o;
	char word[5] = "done";
	assert_int_equal(pthread_create(&s.thread, NULL, serve_twice, &s), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fb_oob_connect("127.0.0.1", port, NULL, S(5), &o, &e), 0);
		assert_int_equal(fb_oob_bcast(o, word, sizeof(word), S(5), &e), 0);
		fb_oob_close(o);
	}
	pthread_join(s.thread, NULL);
	assert_int_equal(s.rc, 0);
	fb_oob_listener_close(s.l);
}

static int dial_raw(int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void strangers_do_not_hold_up(void **state)
{
	struct fb_err e = {0};
	int port, fd[3 * OOB_GUESTS];
	struct server s = {.l = door(NULL, &port), .session = slow_session};
	struct fb_oob *o;
	fb_log_set_level(FB_LOG_ERROR);
	for (int i = 0; i < 3 * OOB_GUESTS; i++) /* silent ones, more than are held */
		fd[i] = dial_raw(port);
	int http = dial_raw(port);
	assert_int_equal(send(http, "GET / HTTP/1.0\r\n\r\n", 18, 0), 18);
	int liar = dial_raw(port); /* a frame that claims 4 GiB */
	assert_int_equal(send(liar, "FBOC\0\1\1\0\xff\xff\xff\xff", 12, 0), 12);
	start(&s);
	assert_int_equal(fb_oob_connect("127.0.0.1", port, NULL, S(5), &o, &e), 0);
	char word[5] = "done";
	assert_int_equal(fb_oob_bcast(o, word, sizeof(word), S(5), &e), 0);
	pthread_join(s.thread, NULL);
	assert_int_equal(s.rc, 0);
	assert_true(s.l->guests <= OOB_GUESTS);
	for (int i = 0; i < 3 * OOB_GUESTS; i++)
		close(fd[i]);
	close(http);
	close(liar);
	fb_oob_close(o);
	fb_oob_listener_close(s.l);
}

static void half_open_is_dropped(void **state)
{
	int port;
	struct fb_oob_listener *l = door(NULL, &port);
	struct oob_guest g;
	struct oob_hello h;
	fb_log_set_level(FB_LOG_ERROR);
	int fd = dial_raw(port);
	assert_int_equal(send(fd, "FBO", 3, 0), 3);
	assert_int_equal(oob_greet(l, 1000, &g, &h), 0);
	assert_int_equal(l->guests, 1);
	l->guest[0].since -= OOB_HALF_OPEN_NS; /* five seconds later */
	assert_int_equal(oob_greet(l, 10, &g, &h), 0);
	assert_int_equal(l->guests, 0);
	char byte;
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	close(fd);
	fb_oob_listener_close(l);
}

static void accept_times_out(void **state)
{
	struct fb_err e = {0};
	int port;
	struct fb_oob *o;
	struct fb_oob_listener *l = door(NULL, &port);
	assert_int_equal(fb_oob_accept(l, fb_deadline_in(50000000u), &o, &e), -ETIMEDOUT);
	fb_oob_listener_close(l);
}

static void cannot_listen(void **state)
{
	struct fb_err e = {0};
	int port, same;
	struct fb_oob_listener *l = door(NULL, &port), *second;
	same = port;
	assert_int_equal(fb_oob_listen("127.0.0.1", &same, NULL, &second, &e), -EADDRINUSE);
	assert_non_null(strstr(e.hint, "ss -ltnp"));
	fb_err_clear(&e);
	same = 0;
	assert_int_equal(fb_oob_listen("192.0.2.1", &same, NULL, &second, &e), -EADDRNOTAVAIL);
	assert_int_equal(e.exit, FB_EXIT_USAGE);
	fb_oob_listener_close(l);
}

/* ---- a dead peer -------------------------------------------------------------------------------
 */

static int die_without_goodbye(struct fb_oob *o, struct fb_err *e)
{
	struct oob_tcp *t = o->priv;
	close(t->conn[0].fd); /* what the kernel does for a killed process */
	t->conn[0].fd = -1;
	return 0;
}

static void dead_server(void **state)
{
	struct fb_err e = {0};
	int port;
	struct server s = {.l = door(NULL, &port), .session = die_without_goodbye};
	struct fb_oob *o;
	start(&s);
	assert_int_equal(fb_oob_connect("127.0.0.1", port, NULL, S(5), &o, &e), 0);
	uint64_t begin = fb_clock_ns();
	assert_int_equal(fb_oob_barrier(o, S(10), &e), -ECONNRESET);
	assert_true(fb_clock_ns() - begin < 2000000000u);
	assert_non_null(strstr(e.msg, "rank 1 on"));
	assert_non_null(strstr(e.msg, "is gone"));
	/* the handle stays broken, with the same cause */
	struct fb_err again = {0};
	assert_int_equal(fb_oob_barrier(o, S(10), &again), -ECONNRESET);
	assert_string_equal(again.msg, e.msg);
	pthread_join(s.thread, NULL);
	fb_oob_close(o);
	fb_oob_listener_close(s.l);
}

static int silent_session(struct fb_oob *o, struct fb_err *e)
{
	poll(NULL, 0, 300);
	return 0;
}

static void silent_peer_times_out(void **state)
{
	struct fb_err e = {0};
	int port;
	struct server s = {.l = door(NULL, &port), .session = silent_session};
	struct fb_oob *o;
	start(&s);
	assert_int_equal(fb_oob_connect("127.0.0.1", port, NULL, S(5), &o, &e), 0);
	assert_int_equal(fb_oob_lost(o, &e), 0);
	assert_int_equal(fb_oob_barrier(o, fb_deadline_in(100000000u), &e), -ETIMEDOUT);
	assert_non_null(strstr(e.msg, "sent nothing within 0."));
	pthread_join(s.thread, NULL);
	fb_oob_close(o);
	fb_oob_listener_close(s.l);
}

/* ---- a lost link: the loopback interface of a network of our own ------------------------------
 */

static int set_loopback(bool up)
{
	struct ifreq r = {.ifr_name = "lo"};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	r.ifr_flags = up ? IFF_UP : 0;
	int rc = ioctl(fd, SIOCSIFFLAGS, &r);
	close(fd);
	return rc;
}

/* Three seconds instead of twenty. */
static void impatient(struct fb_oob *o)
{
	struct oob_tcp *t = o->priv;
	static const int one = 1, two = 2;
	const int fd = t->conn[1 - o->rank].fd;
	t->silent_ms = 1500;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &one, sizeof(one));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &one, sizeof(one));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &two, sizeof(two));
}

/* Its answer to the barrier is under way for ever. */
static int cut_off_session(struct fb_oob *o, struct fb_err *e)
{
	impatient(o);
	int rc = fb_oob_barrier(o, S(10), e);
	set_loopback(false);
	return rc == 0 ? fb_oob_barrier(o, S(20), e) : rc;
}

/* @return 0; 77: not allowed here; else where it went wrong */
static int cut_off(void)
{
	struct fb_err e = {0};
	struct server s = {.session = cut_off_session};
	struct fb_oob *o;
	int port = 0;
	if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		return 77;
	if (set_loopback(true) != 0)
		return 77;
	if (fb_oob_listen("127.0.0.1", &port, NULL, &s.l, &e) != 0)
		return 1;
	if (pthread_create(&s.thread, NULL, serve, &s) != 0)
		return 2;
	if (fb_oob_connect("127.0.0.1", port, NULL, S(5), &o, &e) != 0)
		return 3;
	impatient(o);
	if (fb_oob_barrier(o, S(10), &e) != 0)
		return 4;
	/* This end only waits, and has nothing under way. */
	if (fb_oob_barrier(o, S(20), &e) != -ECONNRESET || !strstr(e.msg, "is gone"))
		return 5;
	pthread_join(s.thread, NULL);
	if (s.rc != -ECONNRESET || !strstr(s.err.msg, "is gone: Connection timed out"))
		return 6;
	fb_oob_close(o);
	fb_oob_listener_close(s.l);
	return 0;
}

static void lost_link(void **state)
{
	int status;
	const pid_t child = fork();
	if (child == 0)
		_exit(cut_off());
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		fb_test_skip("oob-lost-link", "no network namespace may be made here");
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* A rank that measures does not read: a window that stays closed is no silence. */
static void closed_window(void **state)
{
	int port;
	struct fb_oob_listener *l = door(NULL, &port);
	struct oob_conn c;
	struct fb_err e = {0};
	static const uint8_t hdr[OOB_HDR];
	static char junk[16 << 20];
	size_t done = 0;
	int fd;
	assert_int_equal(oob_dial("127.0.0.1", port, false, S(5), &fd, &e), 0);
	oob_conn_init(&c, fd);
	assert_int_equal(oob_conn_write(&c, hdr, junk, sizeof(junk), &done), 0);
	poll(NULL, 0, 700); /* several probes */
	assert_false(oob_conn_silent(&c, 0));
	oob_conn_close(&c);
	fb_oob_listener_close(l);
}

static int big_session(struct fb_oob *o, struct fb_err *e)
{
	const uint32_t n = FB_OOB_MAX_MSG;
	unsigned char *m = malloc(n);
	struct fb_oob_part *parts;
	int rc = fb_oob_bcast(o, m, n, S(20), e);
	if (rc == 0)
		rc = fb_oob_gather(o, m, n, &parts, S(20), e);
	free(m);
	return rc;
}

static void largest_message(void **state)
{
	struct fb_err e = {0};
	int port;
	const uint32_t n = FB_OOB_MAX_MSG;
	struct server s = {.l = door(NULL, &port), .session = big_session};
	struct fb_oob *o;
	struct fb_oob_part *parts;
	unsigned char *m = malloc(n);
	for (uint32_t i = 0; i < n; i++)
		m[i] = (unsigned char)(i * 2654435761u >> 24);
	start(&s);
	assert_int_equal(fb_oob_connect("127.0.0.1", port, NULL, S(5), &o, &e), 0);
	assert_int_equal(fb_oob_bcast(o, m, n, S(20), &e), 0);
	assert_int_equal(fb_oob_gather(o, NULL, 0, &parts, S(20), &e), 0);
	assert_int_equal(parts[1].len, n);
	assert_memory_equal(parts[1].data, m, n);
	fb_oob_parts_free(o, parts);
	pthread_join(s.thread, NULL);
	/* and one byte more is refused before it is sent */
	assert_int_equal(fb_oob_bcast(o, m, n + 1, S(20), &e), -EMSGSIZE);
	fb_oob_close(o);
	fb_oob_listener_close(s.l);
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(client_and_server),
		cmocka_unit_test(nobody_listens),
		cmocka_unit_test(unknown_host),
		cmocka_unit_test(foreign_services),
		cmocka_unit_test(token_decides),
		cmocka_unit_test(another_version),
		cmocka_unit_test(busy_server),
		cmocka_unit_test(the_next_client_waits),
		cmocka_unit_test(strangers_do_not_hold_up),
		cmocka_unit_test(half_open_is_dropped),
		cmocka_unit_test(accept_times_out),
		cmocka_unit_test(cannot_listen),
		cmocka_unit_test(dead_server),
		cmocka_unit_test(silent_peer_times_out),
		cmocka_unit_test(lost_link),
		cmocka_unit_test(closed_window),
		cmocka_unit_test(largest_message),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
