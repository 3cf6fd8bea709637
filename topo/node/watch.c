// SPDX-License-Identifier: Apache-2.0
/*
 * A window: counters of ports and of PCI error reporting read twice, so that what rises now can be
 * told from what happened once. Ends by its own deadline, or when the program must stop.
 */
#include <string.h>
#include <time.h>

#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "topo/node/node_priv.h"

static void keep(struct node *n, const char *path)
{
	int64_t v;
	char text[2048];
	const char *total;
	if (fb_sysroot_read_i64(n->r, &v, "%s", path) == 0) {
		fb_json_set_int(n->window.before, path, v);
	} else if (fb_sysroot_read(n->r, path, text, sizeof(text)) > 0 &&
		   (total = strstr(text, "TOTAL_ERR")) != NULL) {
		total += strcspn(total, " \n");
		fb_json_set_int(n->window.before, path, strtoll(total, NULL, 10));
	}
}

static void keep_folder(struct node *n, const char *dir)
{
	char path[300], **names;
	int k = fb_sysroot_list(n->r, dir, &names);
	for (int i = 0; i < k; i++) {
		snprintf(path, sizeof(path), "%.180s/%.100s", dir, names[i]);
		keep(n, path);
	}
	if (k >= 0)
		fb_sysroot_names_free(names);
}

static void keep_all(struct node *n)
{
	static const char *const aer[] = {"correctable", "nonfatal", "fatal"};
	char path[200];
	for (size_t i = 0; i < n->n_dev; i++) {
		const struct node_dev *d = &n->dev[i];
		for (int k = 0; k < 3 && d->pci >= 0; k++) {
			snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/aer_dev_%s",
				n->t->pci[d->pci].bdf, aer[k]);
			keep(n, path);
		}
		for (size_t k = 0; d->rdma >= 0 && k < n->t->rdma[d->rdma].n_ports; k++) {
			const struct topo_rdma *r = &n->t->rdma[d->rdma];
			static const char *const folders[] = {"counters", "hw_counters"};
			for (int j = 0; j < 2; j++) {
				snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%u/%s",
					r->name, r->ports[k].num, folders[j]);
				keep_folder(n, path);
			}
		}
	}
}

void node_watch(struct node *n, uint64_t ns)
{
	n->window.before = json_object();
	keep_all(n);
	uint64_t start = fb_clock_ns(), now = start;
	while (now - start < ns && !fb_stop_requested()) {
		const struct timespec nap = {.tv_nsec = 20000000};
		nanosleep(&nap, NULL);
		now = fb_clock_ns();
	}
	n->window.ns = now - start;
}

int64_t node_grew(const struct node *n, const char *path, int64_t now)
{
	const json_t *v = json_object_get(n->window.before, path);
	if (n->window.ns == 0 || !json_is_integer(v) || json_integer_value(v) > now)
		return -1;
	return now - (int64_t)json_integer_value(v);
}
