// SPDX-License-Identifier: Apache-2.0
/*
 * Ranges of interfaces in NVIDIA's configuration: `nv config show` writes ports that are alike as
 * one ("swp1-32"), and what only some of them have in entries of their own. Here each port gets one
 * entry, whose parts are shared with the file's, not copied.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/lossless/switch_priv.h"

bool switch_is_swp(const char *name)
{
	return strncmp(name, "swp", 3) == 0 && name[3] >= '0' && name[3] <= '9' &&
	       !strchr(name, '.');
}

#define MAX_MERGED 1000000

/* a, and what only b has. Objects that only one of them has are shared, not copied. */
static json_t *merged(struct switch_reader *r, const json_t *a, const json_t *b, int depth, int *n)
{
	json_t *both = json_copy((json_t *)a);
	void *it = json_object_iter((json_t *)b);
	for (; it && switch_ok(r); it = json_object_iter_next((json_t *)b, it)) {
		const char *key = json_object_iter_key(it);
		json_t *old = json_object_get(a, key), *v = json_object_iter_value(it);
		if (++*n > MAX_MERGED)
			switch_bad(r, "interface", "too many values for the same ports");
		else if (!old)
			json_object_set(both, key, v);
		else if (json_is_object(old) && json_is_object(v) && depth > 0)
			json_object_set_new(both, key, merged(r, old, v, depth - 1, n));
	}
	return both;
}

/* "swp1", "swp1-4", "swp1,swp9-10", "swp1s0-3": one name, or the first and last number at its end.
 * What a port's own entry says comes first. */
static void add_range(struct switch_reader *r, json_t *all, const char *text, size_t len,
	const json_t *entry, int *n)
{
	char first[64], name[96];
	snprintf(first, sizeof(first), "%.*s", (int)(len < 63 ? len : 63), text);
	char *dash = strrchr(first, '-');
	size_t at = dash ? (size_t)(dash - first) : strlen(first);
	long a = 0, b = 0;
	if (dash && dash[1] >= '0' && dash[1] <= '9') {
		while (at > 0 && first[at - 1] >= '0' && first[at - 1] <= '9')
			at--;
		a = strtol(first + at, NULL, 10);
		b = strtol(dash + 1, NULL, 10);
	}
	if (a < 0 || b < a || b - a >= SWITCH_MAX_PORTS) {
		switch_bad(r, "interface", "\"%s\" is not a range of ports", first);
		return;
	}
	for (long i = a; i <= b && switch_ok(r); i++) {
		if (dash)
			snprintf(name, sizeof(name), "%.*s%ld", (int)at, first, i);
		else
			snprintf(name, sizeof(name), "%s", first);
		const json_t *old = json_object_get(all, name);
		if (++*n > MAX_MERGED)
			switch_bad(r, "interface", "too many ports in ranges");
		else if (!old)
			json_object_set(all, name, (json_t *)entry);
		else if (json_is_object(old) && json_is_object(entry))
			json_object_set_new(all, name, merged(r, old, entry, 4, n));
	}
}

/* `nv config show` writes ports that are alike as one. @return NULL: no interfaces */
json_t *switch_port_by_port(struct switch_reader *r, const json_t *interface)
{
	if (!interface)
		return NULL;
	json_t *all = json_object();
	int n = 0;
	for (int ranges = 0; ranges <= 1; ranges++) {
		void *it = json_object_iter((json_t *)interface);
		for (; it && switch_ok(r); it = json_object_iter_next((json_t *)interface, it)) {
			const char *key = json_object_iter_key(it), *from = key;
			bool many = switch_is_swp(key) && strpbrk(key, ",-");
			if (many != (ranges == 1))
				continue;
			if (!many)
				json_object_set(all, key, json_object_iter_value(it));
			while (many && *from && switch_ok(r)) {
				size_t len = strcspn(from, ",");
				add_range(r, all, from, len, json_object_iter_value(it), &n);
				from += from[len] ? len + 1 : len;
			}
		}
	}
	return all;
}
