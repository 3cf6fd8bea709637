// SPDX-License-Identifier: Apache-2.0
/*
 * What a host does for the receiver of a drive besides sending: tell its facts, and answer probes
 * of the path.
 */
#include <stdio.h>
#include <string.h>

#include "bench/core/json.h"
#include "verbs/lossless/drive.h"
#include "verbs/lossless/summary.h"

static const struct fb_sysroot live = {.dir = NULL};

/* Absent, where they cannot be read: the receiver then says so. */
static void tell_facts(const struct verbs_dev *dev, json_t *answer)
{
	struct node_facts n;
	struct fb_err e = {0};
	if (facts_read(&live, NULL, &n, &e) < 0) {
		fb_json_set_str(answer, "why", e.msg);
		return;
	}
	json_object_set_new(answer, "fabric", summary_json(&n));
	fb_json_set_str(answer, "device", dev->name);
	fb_json_set_int(answer, "rdma_port", dev->port);
	facts_free(&n);
}

static void open_path(struct verbs_incast_end *x, const json_t *order, json_t *answer)
{
	const struct verbs_dev *dev = x->rail.dev;
	char why[160] = "";
	int port = 0;
	drive_echo_free(x->echo);
	x->echo = NULL;
	if (x->rail.local.link_layer == IBV_LINK_LAYER_ETHERNET)
		x->echo = drive_echo_open(&x->rail.local.gid, dev->netdev,
			(uint64_t)fb_json_int(order, "word", 0), &port, why, sizeof(why));
	else
		snprintf(why, sizeof(why), "its port is no Ethernet");
	if (x->echo)
		fb_json_set_int(answer, "port", port);
	else
		fb_json_set_str(answer, "why", why);
}

static void close_path(struct verbs_incast_end *x, json_t *answer)
{
	if (x->echo)
		drive_echo_tell(x->echo, answer);
	drive_echo_free(x->echo);
	x->echo = NULL;
}

bool drive_obey(struct verbs_incast_end *x, const char *what, const json_t *order, json_t *answer)
{
	if (strcmp(what, "facts") == 0)
		tell_facts(x->rail.dev, answer);
	else if (strcmp(what, "path-open") == 0)
		open_path(x, order, answer);
	else if (strcmp(what, "path-close") == 0)
		close_path(x, answer);
	else
		return false;
	return true;
}
