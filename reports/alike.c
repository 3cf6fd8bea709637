// SPDX-License-Identifier: Apache-2.0
/* See alike.h. */
#include "reports/alike.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/result.h"

struct walk {
	size_t n;
	bool judged;
	long host;
	alike_visit *visit;
	void *arg;
	bool enough;
};

static const json_t *get(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

static void look(struct walk *w, const char *name, const json_t *const *v, const bool *has)
{
	size_t first = 0;
	while (first < w->n && !has[first])
		first++;
	for (size_t i = first + 1; i < w->n && !w->enough; i++) {
		if (!has[i] || fb_json_same(v[first], v[i]))
			continue;
		struct alike_fact f = {name, w->host, w->judged, v, has};
		w->enough = w->visit(w->arg, &f);
		return;
	}
}

/* One key of an object that each run has, or has not. */
static void look_key(
	struct walk *w, const char *name, const json_t *const *o, const bool *has, const char *key)
{
	const json_t *v[ALIKE_MAX] = {NULL};
	for (size_t i = 0; i < w->n; i++)
		v[i] = get(o[i], key);
	look(w, name, v, has);
}

/* OF.KEY for each key; a NULL ends them. */
static void look_keys(struct walk *w, const json_t *const *hosts, const bool *has, const char *of,
	const char *const *keys)
{
	const json_t *o[ALIKE_MAX] = {NULL};
	for (size_t i = 0; i < w->n; i++)
		o[i] = get(hosts[i], of);
	for (; *keys && !w->enough; keys++) {
		char name[64];
		snprintf(name, sizeof(name), "%s.%s", of, *keys);
		look_key(w, name, o, has, *keys);
	}
}

/* Every key that any of the objects has, once: a run that has it not shows it absent, or takes no
 * part (`all` false). */
static void look_all(struct walk *w, const char *of, const json_t *const *o, const bool *has,
	bool all, bool (*wanted)(const char *key))
{
	json_t *seen = json_object(), *v;
	const char *key;
	for (size_t i = 0; i < w->n; i++) {
		json_object_foreach ((json_t *)o[i], key, v) {
			bool here[ALIKE_MAX] = {false};
			char name[128];
			if (w->enough || json_object_get(seen, key) || (wanted && !wanted(key)))
				continue;
			json_object_set_new_nocheck(seen, key, json_true());
			for (size_t k = 0; k < w->n; k++)
				here[k] = has[k] && (all || get(o[k], key));
			snprintf(name, sizeof(name), "%s.%.90s", of, key);
			look_key(w, name, o, here, key);
		}
	}
	json_decref(seen);
}

/* ---- lists: hosts, devices, ports ------------------------------------------------------------ */

/* How many each run has. @return the most of them */
static size_t look_count(
	struct walk *w, const char *name, const json_t *const *lists, const bool *has)
{
	json_t *count[ALIKE_MAX] = {NULL};
	const json_t *v[ALIKE_MAX] = {NULL};
	size_t most = 0;
	for (size_t i = 0; i < w->n; i++) {
		size_t n = json_array_size(lists[i]);
		most = has[i] && n > most ? n : most;
		v[i] = count[i] = json_integer((json_int_t)n);
	}
	look(w, name, v, has);
	for (size_t i = 0; i < w->n; i++)
		json_decref(count[i]);
	return most;
}

/* The k-th of each list, as far as they go. */
static void take(struct walk *w, const json_t *const *lists, size_t k, const json_t **o, bool *has)
{
	for (size_t i = 0; i < w->n; i++) {
		o[i] = json_array_get(lists[i], k);
		has[i] = o[i] != NULL;
	}
}

static void look_ports(
	struct walk *w, const char *of, const json_t *const *devices, const bool *has_device)
{
	static const char *const keys[] = {"link_layer", "rate", "active_mtu", "mtu", NULL};
	const json_t *ports[ALIKE_MAX] = {NULL}, *port[ALIKE_MAX] = {NULL};
	char list[64];
	for (size_t i = 0; i < w->n; i++)
		ports[i] = get(devices[i], "ports");
	snprintf(list, sizeof(list), "%s.ports", of);
	size_t most = look_count(w, list, ports, has_device);
	for (size_t p = 0; p < most; p++) {
		bool has[ALIKE_MAX] = {false};
		take(w, ports, p, port, has);
		for (size_t k = 0; keys[k] && !w->enough; k++) {
			char name[96];
			snprintf(name, sizeof(name), "%s.ports[%zu].%s", of, p, keys[k]);
			look_key(w, name, port, has, keys[k]);
		}
	}
}

static void look_devices(
	struct walk *w, const json_t *const *hosts, const bool *has_host, const char *list)
{
	/* What makes another machine of it; names, addresses and states may change. */
	static const char *const keys[] = {"fw", "firmware", "board", "driver", "driver_version",
		"link_layer", "rate", "active_mtu", "mtu", "speed_mbps", "vendor_id", "device_id",
		"model", "clocks", "power_cap", "link", NULL};
	const json_t *lists[ALIKE_MAX] = {NULL}, *device[ALIKE_MAX] = {NULL};
	for (size_t i = 0; i < w->n; i++)
		lists[i] = get(hosts[i], list);
	size_t most = look_count(w, list, lists, has_host);
	for (size_t d = 0; d < most && !w->enough; d++) {
		bool has[ALIKE_MAX] = {false};
		char of[48];
		snprintf(of, sizeof(of), "%s[%zu]", list, d);
		take(w, lists, d, device, has);
		for (size_t k = 0; keys[k] && !w->enough; k++) {
			char name[80];
			snprintf(name, sizeof(name), "%s.%s", of, keys[k]);
			look_key(w, name, device, has, keys[k]);
		}
		look_ports(w, of, device, has);
	}
}

void alike_systems(const json_t *const *docs, size_t n, alike_visit *visit, void *arg)
{
	static const char *const cpu[] = {
		"model", "packages", "cores", "threads", "smt", "microcode", "governors", NULL};
	static const char *const kernel[] = {"release", "clocksource", "boot", NULL};
	struct walk w = {.n = n, .judged = true, .host = -1, .visit = visit, .arg = arg};
	const json_t *hosts[ALIKE_MAX] = {NULL}, *host[ALIKE_MAX] = {NULL},
		     *libraries[ALIKE_MAX] = {NULL};
	bool all[ALIKE_MAX] = {false}, has[ALIKE_MAX] = {false};
	for (size_t i = 0; i < n; i++) {
		hosts[i] = get(get(docs[i], "system"), "hosts");
		all[i] = true;
	}
	size_t most = look_count(&w, "hosts", hosts, all);
	for (size_t h = 0; h < most && !w.enough; h++) {
		w.host = (long)h;
		take(&w, hosts, h, host, has);
		look_keys(&w, host, has, "cpu", cpu);
		look_devices(&w, host, has, "rdma");
		look_devices(&w, host, has, "nics");
		look_devices(&w, host, has, "gpus");
		look_keys(&w, host, has, "kernel", kernel);
		/* What one has not loaded decides nothing. */
		for (size_t i = 0; i < n; i++)
			libraries[i] = get(host[i], "libraries");
		look_all(&w, "libraries", libraries, has, false, NULL);
	}
}

/* ---- settings -------------------------------------------------------------------------------- */

void alike_objects(const char *of, const json_t *const *o, size_t n, alike_visit *visit, void *arg)
{
	struct walk w = {.n = n, .host = -1, .visit = visit, .arg = arg};
	bool has[ALIKE_MAX] = {false};
	for (size_t i = 0; i < n; i++)
		has[i] = o[i] != NULL;
	look_all(&w, of, o, has, true, NULL);
}

bool alike_is_setting(const char *option)
{
	/* Who and where, and how long to wait for it; no figure depends on these. */
	static const char *const others[] = {"server", "host", "hosts", "bind", "master", "port",
		"rank", "token", "senders", "victim", "expect-hosts", "netem", "timeline", "title",
		"scope", "deadline", "require", "connect-timeout", "point-timeout", "step-timeout",
		"file", "resume", "dry-run", NULL};
	for (size_t i = 0; others[i]; i++)
		if (strcmp(option, others[i]) == 0)
			return false;
	for (const struct fb_opt *o = fb_output_opts; o->name; o++)
		if (strcmp(option, o->name) == 0)
			return false;
	return true;
}

void alike_settings(const json_t *const *docs, size_t n, alike_visit *visit, void *arg)
{
	static const char *const tool[] = {"version", "git", "dirty", "compiler", "cflags", NULL};
	static const char *const memory[] = {"total_bytes", "transparent_huge_pages", NULL};
	struct walk w = {.n = n, .host = -1, .visit = visit, .arg = arg};
	const json_t *hosts[ALIKE_MAX] = {NULL}, *host[ALIKE_MAX] = {NULL}, *o[ALIKE_MAX] = {NULL};
	bool has[ALIKE_MAX] = {false};
	size_t most = 0;
	for (size_t i = 0; i < n; i++) {
		hosts[i] = get(get(docs[i], "system"), "hosts");
		most = json_array_size(hosts[i]) > most ? json_array_size(hosts[i]) : most;
		has[i] = get(docs[i], "tool") != NULL;
	}
	look_keys(&w, docs, has, "tool", tool);
	for (size_t h = 0; h < most && !w.enough; h++) {
		w.host = (long)h;
		take(&w, hosts, h, host, has);
		look_key(&w, "os", host, has, "os");
		look_key(&w, "container", host, has, "container");
		look_keys(&w, host, has, "memory", memory);
		for (size_t i = 0; i < n; i++)
			o[i] = get(host[i], "env");
		look_all(&w, "env", o, has, true, NULL);
	}
	w.host = -1;
	/* Two commands share few options, and a plan's document has none: what one does not know
	 * decides nothing. */
	for (size_t i = 0; i < n; i++) {
		o[i] = get(get(docs[i], "config"), "effective");
		has[i] = true;
	}
	look_all(&w, "config", o, has, false, alike_is_setting);
}

/* ---- results --------------------------------------------------------------------------------- */

static void look_rails(struct walk *w, const json_t *const *facts, const char *whose)
{
	static const char *const keys[] = {
		"driver", "fw", "link_layer", "gid_type", "active_mtu", "path_mtu", NULL};
	const json_t *rails[ALIKE_MAX] = {NULL}, *rail[ALIKE_MAX] = {NULL};
	size_t most = 0;
	for (size_t i = 0; i < w->n; i++) {
		rails[i] = get(facts[i], "rails");
		most = json_array_size(rails[i]) > most ? json_array_size(rails[i]) : most;
	}
	for (size_t r = 0; r < most && !w->enough; r++) {
		bool has[ALIKE_MAX] = {false};
		take(w, rails, r, rail, has);
		for (size_t i = 0; i < w->n && *whose; i++)
			has[i] = (rail[i] = get(rail[i], whose)) != NULL;
		for (size_t k = 0; keys[k] && !w->enough; k++) {
			char name[96];
			snprintf(name, sizeof(name), "facts.rails[%zu].%s%s%s", r, whose,
				*whose ? "." : "", keys[k]);
			look_key(w, name, rail, has, keys[k]);
		}
	}
}

/* A parameter that only a later run knows is an older program's silence. */
static void look_params(struct walk *w, const json_t *const *params, const bool *has)
{
	json_t *first = NULL, *v;
	const char *key;
	for (size_t i = 0; i < w->n && !first; i++)
		first = has[i] ? (json_t *)params[i] : NULL;
	json_object_foreach (first, key, v) {
		char name[128];
		if (w->enough)
			return;
		snprintf(name, sizeof(name), "params.%.100s", key);
		look_key(w, name, params, has, key);
	}
}

static void look_results(struct walk *w, const json_t *const *results, bool one_side)
{
	const json_t *params[ALIKE_MAX] = {NULL}, *facts[ALIKE_MAX] = {NULL};
	bool has[ALIKE_MAX] = {false}, told[ALIKE_MAX] = {false};
	for (size_t i = 0; i < w->n; i++) {
		has[i] = results[i] != NULL;
		params[i] = get(results[i], "params");
		facts[i] = get(results[i], "facts");
		told[i] = facts[i] != NULL;
	}
	w->judged = true;
	look_key(w, "where", results, has, "where");
	look_key(w, "unit", results, has, "unit");
	look_key(w, "better", results, has, "better");
	if (one_side)
		look_all(w, "params", params, has, true, NULL);
	else
		look_params(w, params, has);
	w->judged = one_side;
	look_key(w, "load", results, has, "load");
	look_key(w, "sync", results, has, "sync");
	look_key(w, "facts.loopback", facts, told, "loopback");
	look_key(w, "facts.backend_facts", facts, told, "backend_facts");
	look_rails(w, facts, "");
	look_rails(w, facts, "peer");
}

void alike_results(const json_t *const *results, size_t n, alike_visit *visit, void *arg)
{
	struct walk w = {.n = n, .host = -1, .visit = visit, .arg = arg};
	look_results(&w, results, false);
}

void alike_launches(const json_t *first, const json_t *other, alike_visit *visit, void *arg)
{
	struct walk w = {.n = 2, .host = -1, .visit = visit, .arg = arg};
	const json_t *const results[ALIKE_MAX] = {first, other};
	look_results(&w, results, true);
}

/* ---- words ----------------------------------------------------------------------------------- */

const char *alike_words(const struct alike_fact *f, char *buf, size_t len)
{
	char v[2][64];
	bool where = strcmp(f->name, "where") == 0;
	size_t prefix = strncmp(f->name, "params.", 7) == 0 ? 7 : 0;
	for (size_t i = 0; i < 2; i++) {
		char *s = f->v[i] && !(where && json_is_string(f->v[i]))
				  ? json_dumps(f->v[i], JSON_ENCODE_ANY | JSON_COMPACT)
				  : NULL;
		snprintf(v[i], sizeof(v[i]), "%.60s",
			s          ? s
			: !f->v[i] ? "absent"
			: where    ? json_string_value(f->v[i])
				   : "?");
		free(s);
	}
	snprintf(buf, len, "%s%.60s%s %s against %s",
		where    ? "measured on"
		: prefix ? "parameter "
			 : "",
		where ? "" : f->name + prefix, where ? "" : ":", v[0], v[1]);
	return buf;
}
