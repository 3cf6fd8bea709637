// SPDX-License-Identifier: Apache-2.0
/*
 * `verbs serve`: one client after the other, for as long as it lives. The client owns the
 * configuration; whatever a session has opened is released when it ends, however it ends.
 */
#include "verbs/serve.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/clock.h"
#include "bench/core/cmd.h"
#include "bench/core/log.h"
#include "bench/core/result.h"
#include "bench/core/stop.h"
#include "bench/oob/oob.h"
#include "verbs/dev.h"
#include "verbs/session.h"

struct serve_options {
	char *device;
	int ib_port;
	int port;
	char *bind;
	char *token;
	char *netem;
	bool once;
	uint64_t idle_timeout_ns;
};
#define OFF(f) offsetof(struct serve_options, f)

static const struct fb_opt opts[] = {
	{.letter = 'd',
		.name = "device",
		.type = FB_OPT_STRING,
		.offset = OFF(device),
		.arg = "NAME",
		.help = "device for clients that ask for none (the first ACTIVE one)"},
	{.letter = 'i',
		.name = "ib-port",
		.type = FB_OPT_INT,
		.offset = OFF(ib_port),
		.arg = "N",
		.def = "0",
		.min = 0,
		.max = 255,
		.help = "port of that device (0: the first ACTIVE)"},
	{.letter = 'p',
		.name = "port",
		.type = FB_OPT_INT,
		.offset = OFF(port),
		.arg = "PORT",
		.def = "18515",
		.min = 0,
		.max = 65535,
		.help = "TCP port to listen on (0: any free one, which is printed)"},
	{.name = "bind",
		.type = FB_OPT_STRING,
		.offset = OFF(bind),
		.arg = "ADDRESS",
		.help = "the one address to listen on (all)"},
	{.name = "token",
		.type = FB_OPT_STRING,
		.offset = OFF(token),
		.arg = "TEXT",
		.secret = true,
		.help = "refuse clients without this word (or FABRICBENCH_TOKEN)"},
	{.name = "allow-netem",
		.type = FB_OPT_STRING,
		.offset = OFF(netem),
		.arg = "DEV",
		.help = "let `verbs loss-sweep` clients lose packets that leave by this network device "
			"(root); it ends with their session"},
	{.name = "once",
		.type = FB_OPT_FLAG,
		.offset = OFF(once),
		.help = "end after the first session"},
	{.name = "idle-timeout",
		.type = FB_OPT_DURATION,
		.offset = OFF(idle_timeout_ns),
		.arg = "TIME",
		.def = "0s",
		.help = "end when no client came for so long (0: stay)"},
	{.name = NULL}};

/* A server has no document that must be whole within half a second, but queue pairs, regions and
 * clients to part from in order, which takes a busy machine longer. */
#define END_NS 5000000000ull
/* "Stay" is a deadline too: accept is called again after each. */
#define ACCEPT_SLICE_NS 3600000000000ull

static struct serve_options scratch;
static const struct fb_opt_spec plan_spec = {.command = "verbs serve",
	.usage = "[options]",
	.summary = "Serve RDMA benchmarks to clients, one after the other.",
	.notes = "The client owns the whole configuration; this server needs no option.\n"
		 "It ends on SIGINT or SIGTERM.",
	.sets = {{"Server", opts, &scratch}}};

const struct fb_opt_spec *verbs_serve_spec(void)
{
	return &plan_spec;
}

static int serve_one(const struct serve_options *o, struct fb_oob *oob)
{
	struct verbs_server srv = {
		.device = o->device, .port = (unsigned)o->ib_port, .netem = o->netem};
	struct fb_err e = {0};
	char line[1024];
	int rc = verbs_session_server(&srv, oob, line, sizeof line, &e);

	if (rc)
		fb_oob_abort(oob, &e);
	fb_oob_close(oob);
	fb_info("%s", line);
	return rc ? (int)e.exit : FB_EXIT_OK;
}

static int serve(const struct serve_options *o, struct fb_oob_listener *l)
{
	uint64_t idle_since = fb_clock_ns();
	int status = FB_EXIT_OK;

	while (!fb_stop_requested()) {
		struct fb_err e = {0};
		struct fb_oob *oob = NULL;
		uint64_t deadline = o->idle_timeout_ns ? idle_since + o->idle_timeout_ns
						       : fb_deadline_in(ACCEPT_SLICE_NS);
		int rc = fb_oob_accept(l, deadline, &oob, &e);
		if (rc == -ETIMEDOUT && !o->idle_timeout_ns)
			continue;
		if (rc == -ETIMEDOUT) {
			fb_info("no client for the time of --idle-timeout: ending");
			return status;
		}
		if (rc == -EINTR)
			break;
		if (rc)
			return fb_cmd_fail(&e);
		status = serve_one(o, oob);
		if (o->once)
			return status;
		idle_since = fb_clock_ns();
	}
	return FB_EXIT_OK;
}

int verbs_serve_main(int argc, char **argv)
{
	struct serve_options o = {0};
	struct fb_opt_spec spec = plan_spec;
	struct fb_oob_listener *l = NULL;
	struct fb_err e = {0};
	int rc, status;

	spec.sets[0].cfg = &o;
	rc = fb_opt_parse(&spec, argc, argv, &e);
	if (rc == 1)
		return FB_EXIT_OK;
	if (rc) {
		status = fb_cmd_fail(&e);
		goto free_options;
	}
	/* Its clients would learn it one by one. */
	if (o.device && *o.device && strcmp(o.device, "all") != 0 &&
		verbs_device_known(o.device, &e) != 0) {
		status = fb_cmd_fail(&e);
		goto free_options;
	}
	if (fb_log_enabled(FB_LOG_WARN) && !fb_log_enabled(FB_LOG_INFO))
		fb_log_set_level(
			FB_LOG_INFO); /* one line a session is what a server is watched by */
	rc = fb_stop_watch(&e);
	if (rc == 0) {
		fb_stop_set_grace(END_NS);
		rc = fb_oob_listen(o.bind, &o.port, o.token, &l, &e);
	}
	if (rc) {
		status = fb_cmd_fail(&e);
		goto free_options;
	}
	fb_info("serving on %s port %d", o.bind ? o.bind : "all addresses,", o.port);
	status = serve(&o, l);
	fb_oob_listener_close(l);
free_options:
	fb_opt_free(&spec);
	return status;
}
