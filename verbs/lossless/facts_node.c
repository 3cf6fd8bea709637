// SPDX-License-Identifier: Apache-2.0
/*
 * Facts that belong to no port: environment and NCCL's files, locked memory, time of a recording.
 * NCCL takes a variable from the environment, else from the user's file, else from /etc/nccl.conf.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "bench/core/sysinfo.h"
#include "verbs/lossless/facts_priv.h"

#define CAP_IPC_LOCK_BIT 14 /* linux/capability.h */
#define CONF_MAX         65536

static bool bears_on_roce(const char *name)
{
	return strncmp(name, "NCCL_", 5) == 0 || strncmp(name, "UCX_", 4) == 0;
}

/* NAME=VALUE lines; # starts a comment. What an earlier source said stands. */
static void add_lines(struct node_facts *n, char *text, const char *source)
{
	for (char *line = text; line && *line;) {
		char *end = line + strcspn(line, "\n"), *next = *end ? end + 1 : NULL;
		*end = '\0';
		line += strspn(line, " \t");
		char *eq = strchr(line, '=');
		if (eq && *line != '#') {
			char *last = eq, *value = eq + 1;
			while (last > line && isspace((unsigned char)last[-1]))
				last--;
			*last = '\0';
			value += strspn(value, " \t");
			for (char *p = end; p > value && isspace((unsigned char)p[-1]);)
				*--p = '\0';
			if (bears_on_roce(line) && !json_object_get(n->env, line)) {
				fb_json_set_str(n->env, line, value);
				fb_json_set_str(n->env_source, line, source);
			}
		}
		line = next;
	}
}

static void add_file(struct node_facts *n, const char *real, const char *source)
{
	char *text = NULL;
	size_t len;
	struct fb_err e = {0};
	if (fb_read_file(real, CONF_MAX, &text, &len, &e) == 0)
		add_lines(n, text, source);
	free(text);
}

static void add_recorded(struct node_facts *n, const struct facts_door *d, const char *path)
{
	char real[PATH_MAX];
	if (fb_sysroot_path(d->r, path, real, sizeof(real)) == 0)
		add_file(n, real, path);
}

static void add_live_env(struct node_facts *n)
{
	json_t *env = fb_sysinfo_env(), *value;
	const char *name;
	json_object_foreach (env, name, value)
		if (bears_on_roce(name)) {
			json_object_set(n->env, name, value);
			fb_json_set_str(n->env_source, name, "environment");
		}
	json_decref(env);
}

static void add_user_conf(struct node_facts *n)
{
	char path[PATH_MAX];
	const char *file = getenv("NCCL_CONF_FILE"), *home = getenv("HOME");
	if (file && *file) {
		add_file(n, file, file);
	} else if (home && *home) {
		int k = snprintf(path, sizeof(path), "%s/.nccl.conf", home);
		if (k > 0 && (size_t)k < sizeof(path))
			add_file(n, path, "~/.nccl.conf");
	}
}

static void read_env(const struct facts_door *d, struct node_facts *n)
{
	n->env = json_object();
	n->env_source = json_object();
	if (fb_sysroot_is_live(d->r)) {
		add_live_env(n);
		add_user_conf(n);
		add_file(n, "/etc/nccl.conf", "/etc/nccl.conf");
		fact_read_by(
			&n->env_f, "environment of this process, ~/.nccl.conf, /etc/nccl.conf");
		n->env_f.state = FACT_KNOWN;
		return;
	}
	fact_read_by(
		&n->env_f, "%s, %s, /etc/nccl.conf", FACTS_RECORDED_ENV, FACTS_RECORDED_NCCL_CONF);
	add_recorded(n, d, FACTS_RECORDED_ENV);
	add_recorded(n, d, FACTS_RECORDED_NCCL_CONF);
	add_recorded(n, d, "/etc/nccl.conf");
	if (fb_sysroot_exists(d->r, FACTS_RECORDED_ENV) || json_object_size(n->env) > 0)
		n->env_f.state = FACT_KNOWN;
	else
		fact_none(&n->env_f, FACT_HIDDEN, "not recorded");
}

static void read_memlock(const struct facts_door *d, struct fact_int *v)
{
	char text[8192], soft[32];
	if (facts_file(d, &v->f, text, sizeof(text), "/proc/self/limits") < 0)
		return;
	fact_read_by(&v->f, "/proc/self/limits: Max locked memory");
	const char *line = strstr(text, "Max locked memory");
	if (!line || sscanf(line, "Max locked memory %31s", soft) != 1) {
		fact_none(&v->f, FACT_BROKEN, "no line \"Max locked memory\"");
		return;
	}
	char *end;
	errno = 0;
	long long bytes = strtoll(soft, &end, 10);
	if (strcmp(soft, "unlimited") == 0)
		v->v = INT64_MAX;
	else if (*end == '\0' && errno == 0 && bytes >= 0)
		v->v = bytes;
	else
		fact_none(&v->f, FACT_BROKEN, "\"%.24s\" is no size", soft);
}

static void read_ipc_lock(const struct facts_door *d, struct fact_int *v)
{
	char text[8192];
	if (facts_file(d, &v->f, text, sizeof(text), "/proc/self/status") < 0)
		return;
	fact_read_by(&v->f, "/proc/self/status: CapEff");
	const char *line = strstr(text, "\nCapEff:");
	uint64_t caps;
	if (!line || sscanf(line, "\nCapEff: %" SCNx64, &caps) != 1)
		fact_none(&v->f, FACT_BROKEN, "no line \"CapEff\"");
	else
		v->v = (int64_t)(caps >> CAP_IPC_LOCK_BIT & 1);
}

void facts_read_node(const struct facts_door *d, struct node_facts *n)
{
	if (fb_sysroot_read(d->r, "/proc/sys/kernel/hostname", n->host, sizeof(n->host)) <= 0)
		snprintf(n->host, sizeof(n->host), "%s",
			fb_sysroot_is_live(d->r) ? "localhost" : "recorded");
	read_env(d, n);
	read_memlock(d, &n->memlock);
	read_ipc_lock(d, &n->ipc_lock);
	if (fb_sysroot_is_live(d->r)) {
		fact_read_by(&n->recorded.f, "the live machine");
		fact_none(&n->recorded.f, FACT_ABSENT, "read from the live machine");
	} else {
		facts_text(d, &n->recorded, FACTS_RECORDED_TIME);
	}
}
