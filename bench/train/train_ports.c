// SPDX-License-Identifier: Apache-2.0
/*
 * Counters of a host's RDMA ports around the steps, as the kernel's drivers name them: what the
 * step's messages made of packets, retransmissions and time-outs stands beside its time. Read by
 * one rank of each host, outside the timed steps; the names are not interpreted here.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "bench/core/json.h"
#include "bench/train/train_priv.h"

#define FOLDER   "/sys/class/infiniband"
#define LIFESPAN 10 /* ms that the kernel caches hw_counters for, by default */

static void read_folder(const struct fb_sysroot *r, const char *port, const char *which, json_t *to)
{
	char path[320], **names;
	int64_t v;
	snprintf(path, sizeof(path), "%.200s/%s", port, which);
	int n = fb_sysroot_list(r, path, &names);
	if (n < 0)
		return;
	for (int i = 0; i < n; i++)
		if (strcmp(names[i], "lifespan") != 0 &&
			fb_sysroot_read_i64(r, &v, "%s/%s", path, names[i]) == 0)
			fb_json_set_int(to, names[i], v);
	fb_sysroot_names_free(names);
}

static void read_device(const struct fb_sysroot *r, const char *device, json_t *to)
{
	char path[200], key[160], **ports;
	snprintf(path, sizeof(path), FOLDER "/%.100s/ports", device);
	int n = fb_sysroot_list(r, path, &ports);
	if (n < 0)
		return;
	for (int i = 0; i < n; i++) {
		json_t *c = json_object();
		snprintf(path, sizeof(path), FOLDER "/%.100s/ports/%.20s", device, ports[i]);
		snprintf(key, sizeof(key), "%.100s/%.20s", device, ports[i]);
		read_folder(r, path, "hw_counters", c);
		read_folder(r, path, "counters", c);
		if (json_object_size(c) > 0)
			json_object_set(to, key, c);
		json_decref(c);
	}
	fb_sysroot_names_free(ports);
}

json_t *train_ports_read(const struct fb_sysroot *r)
{
	json_t *all = json_object();
	char **devices;
	int n = fb_sysroot_list(r, FOLDER, &devices);
	if (n < 0)
		return all;
	for (int i = 0; i < n; i++)
		read_device(r, devices[i], all);
	fb_sysroot_names_free(devices);
	return all;
}

int train_ports(void *st, json_t **out, struct fb_err *e)
{
	static const struct fb_sysroot live;
	/* What the kernel read before the last step ended is not what it sent. */
	static const struct timespec newer = {0, (LIFESPAN + 1) * 1000000};
	const struct train_state *s = st;
	if (s->reads_host && fb_sysroot_exists(&live, FOLDER))
		nanosleep(&newer, NULL);
	*out = s->reads_host ? train_ports_read(&live) : json_object();
	return *out ? 0 : fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for counters");
}
