// SPDX-License-Identifier: Apache-2.0
/*
 * Facts of a node: every RDMA port, and what does not belong to a port. What cannot be read is
 * never a value: each fact keeps its path and the reason.
 */
#include "verbs/lossless/facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "verbs/lossless/facts_priv.h"

#define HIDDEN_MAX (1u << 20)

/* ---- the door -------------------------------------------------------------------------------- */

void facts_door_open(struct facts_door *d, const struct fb_sysroot *r)
{
	char path[4096];
	struct fb_err e = {0};
	size_t len;
	*d = (struct facts_door){.r = r};
	if (!fb_sysroot_is_live(r) &&
		fb_sysroot_path(r, FACTS_RECORDED_HIDDEN, path, sizeof(path)) == 0 &&
		fb_read_file(path, HIDDEN_MAX, &d->hidden, &len, &e) < 0)
		d->hidden = NULL;
}

void facts_door_close(struct facts_door *d)
{
	free(d->hidden);
	d->hidden = NULL;
}

static bool listed(const struct facts_door *d, const char *path)
{
	for (const char *line = d->hidden; line && *line;) {
		size_t n = strcspn(line, "\n"), k = n;
		while (k > 1 && line[k - 1] == '/')
			k--;
		if (k > 0 && strncmp(line, path, k) == 0 && (path[k] == '\0' || path[k] == '/'))
			return true;
		line += n + (line[n] == '\n');
	}
	return false;
}

bool facts_is_hidden(const struct facts_door *d, const char *path)
{
	char folder[512], real[4096];
	const char *slash = strrchr(path, '/');
	if (!d->hidden || !slash)
		return false;
	if (listed(d, path))
		return true;
	/* The recorder writes where a class's links lead. */
	snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
	if (fb_sysroot_realpath(d->r, folder, real, sizeof(real)) < 0)
		return false;
	size_t n = strlen(real);
	snprintf(real + n, sizeof(real) - n, "%s", slash);
	return listed(d, real);
}

void fact_none(struct fact *f, enum fact_state s, const char *fmt, ...)
{
	va_list ap;
	f->state = s;
	va_start(ap, fmt);
	vsnprintf(f->why, sizeof(f->why), fmt, ap);
	va_end(ap);
}

void fact_read_by(struct fact *f, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(f->read, sizeof(f->read), fmt, ap);
	va_end(ap);
}

static void failed(const struct facts_door *d, struct fact *f, const char *path, int rc)
{
	bool live = fb_sysroot_is_live(d->r);
	if (rc == -EACCES || rc == -EPERM)
		fact_none(f, FACT_HIDDEN,
			"only root may read it: run as root, or scripts/record and --sysroot TREE --live");
	else if ((rc == -ENOENT || rc == -ENOTDIR) && facts_is_hidden(d, path))
		fact_none(f, FACT_HIDDEN, "not recorded: the recorder could not read it");
	else if (rc == -ENOENT || rc == -ENOTDIR)
		fact_none(f, FACT_ABSENT, live ? "there is no such file" : "no such file recorded");
	else if (rc == -EOPNOTSUPP || rc == -ENODEV)
		fact_none(f, FACT_ABSENT, "the driver does not have it (%s)", strerror(-rc));
	else
		fact_none(f, FACT_BROKEN, "cannot be read: %s", strerror(-rc));
}

static int FB_PRINTF(5, 0) read_file(const struct facts_door *d, struct fact *f, char *buf,
	size_t len, const char *fmt, va_list ap)
{
	char path[512];
	int n = vsnprintf(path, sizeof(path), fmt, ap);
	int rc = n < 0 || (size_t)n >= sizeof(path) ? -ENAMETOOLONG
						    : fb_sysroot_read(d->r, path, buf, len);
	fact_read_by(f, "%s", path);
	f->why[0] = '\0';
	if (rc < 0)
		failed(d, f, path, rc);
	else
		f->state = FACT_KNOWN;
	return rc;
}

int facts_file(
	const struct facts_door *d, struct fact *f, char *buf, size_t len, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int rc = read_file(d, f, buf, len, fmt, ap);
	va_end(ap);
	return rc;
}

void facts_text(const struct facts_door *d, struct fact_text *t, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	read_file(d, &t->f, t->v, sizeof(t->v), fmt, ap);
	va_end(ap);
}

static void FB_PRINTF(3, 0)
	read_int(const struct facts_door *d, struct fact_int *v, const char *fmt, va_list ap)
{
	char text[64], *end;
	if (read_file(d, &v->f, text, sizeof(text), fmt, ap) < 0)
		return;
	errno = 0;
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	long long x = strtoll(text, &end, hex ? 16 : 10);
	if (end == text || *end != '\0' || errno != 0)
		fact_none(&v->f, FACT_BROKEN, "\"%.40s\" is no number", text);
	else
		v->v = x;
}

void facts_int(const struct facts_door *d, struct fact_int *v, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	read_int(d, v, fmt, ap);
	va_end(ap);
}

void facts_int_in(const struct facts_door *d, struct fact_int *v, int64_t least, int64_t most,
	const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	read_int(d, v, fmt, ap);
	va_end(ap);
	if (fact_known(&v->f) && (v->v < least || v->v > most))
		fact_none(&v->f, FACT_BROKEN, "%lld cannot be: %lld to %lld", (long long)v->v,
			(long long)least, (long long)most);
}

/* ---- the node -------------------------------------------------------------------------------- */

static int add_port(struct node_facts *n, const char *device, int port)
{
	struct port_facts *more = realloc(n->port, ((size_t)n->ports + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	n->port = more;
	struct port_facts *p = &n->port[n->ports++];
	memset(p, 0, sizeof(*p));
	snprintf(p->device, sizeof(p->device), "%s", device);
	p->port = port;
	return 0;
}

static int add_device(const struct facts_door *d, const char *device, struct node_facts *n)
{
	char path[512], **names = NULL;
	int rc = 0;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports", device);
	fb_sysroot_list(d->r, path, &names);
	for (char **p = names; p && *p && rc == 0; p++) {
		char *end;
		long port = strtol(*p, &end, 10);
		if (*end == '\0' && port > 0 && port < 256)
			rc = add_port(n, device, (int)port);
	}
	fb_sysroot_names_free(names);
	return rc;
}

static int unknown_device(const char *device, char **names, struct fb_err *e)
{
	char all[400] = "none";
	size_t at = 0;
	for (char **p = names; p && *p && at < sizeof(all); p++)
		at += (size_t)snprintf(
			all + at, sizeof(all) - at, "%s%s", p == names ? "" : ", ", *p);
	fb_fail(e, FB_EXIT_USAGE, ENODEV, "there is no RDMA device \"%s\" here; there are: %s",
		device, all);
	fb_hint(e, "name one of them with --device, or leave it out for all");
	return -ENODEV;
}

static int add_ports(
	const struct facts_door *d, const char *device, struct node_facts *n, struct fb_err *e)
{
	char **names = NULL;
	bool found = false;
	int rc = fb_sysroot_list(d->r, "/sys/class/infiniband", &names);
	if (rc == -ENOMEM)
		goto no_memory;
	rc = 0;
	for (char **p = names; p && *p && rc == 0; p++) {
		if (device && strcmp(*p, device) != 0)
			continue;
		found = true;
		rc = add_device(d, *p, n);
	}
	if (rc == 0 && device && !found)
		rc = unknown_device(device, names, e);
	fb_sysroot_names_free(names);
no_memory:
	if (rc == -ENOMEM)
		fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for the facts of a node");
	return rc;
}

int facts_read(
	const struct fb_sysroot *r, const char *device, struct node_facts *n, struct fb_err *e)
{
	struct facts_door d;
	memset(n, 0, sizeof(*n));
	facts_door_open(&d, r);
	int rc = add_ports(&d, device, n, e);
	if (rc == 0) {
		facts_read_node(&d, n);
		for (int i = 0; i < n->ports; i++) {
			facts_read_port(&d, &n->port[i]);
			facts_read_qos(&d, &n->port[i]);
		}
	}
	facts_door_close(&d);
	if (rc < 0)
		facts_free(n);
	return rc;
}

void facts_free(struct node_facts *n)
{
	for (int i = 0; i < n->ports; i++) {
		json_decref(n->port[i].stats);
		json_decref(n->port[i].counters);
	}
	free(n->port);
	json_decref(n->env);
	json_decref(n->env_source);
	memset(n, 0, sizeof(*n));
}
