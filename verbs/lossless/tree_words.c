// SPDX-License-Identifier: Apache-2.0
/*
 * Words of a .tree file: devices, ports and their addresses; files, folders and links; the node.
 */
#include "verbs/lossless/tree_words.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs/lossless/facts_priv.h"

int tree_wrong(struct tree_maker *m, const char *fmt, ...)
{
	char why[400];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return fb_fail_usage(m->e, "%s:%d: %s", m->file, m->line, why);
}

int tree_put(struct tree_maker *m, const char *path, const char *text)
{
	return tree_write(&m->root, path, text, strlen(text), m->e);
}
int tree_putf(struct tree_maker *m, const char *text, const char *fmt, ...)
{
	char path[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	return tree_put(m, path, text);
}

int tree_number(struct tree_maker *m, const char *s, long most, long *v)
{
	char *end;
	errno = 0;
	*v = strtol(s, &end, 0);
	if (end == s || *end || errno || *v < 0 || *v > most)
		return tree_wrong(m, "\"%s\" is no number up to %ld", s, most);
	return 0;
}

/* "0,0,0,3,0,0,6,0" */
int tree_eight(struct tree_maker *m, const char *s, long most, long v[8])
{
	for (int i = 0; i < 8; i++) {
		char *end;
		errno = 0;
		v[i] = strtol(s, &end, 0);
		if (end == s || errno || v[i] < 0 || v[i] > most || *end != (i < 7 ? ',' : '\0'))
			return tree_wrong(
				m, "eight numbers up to %ld, with commas, belong here", most);
		s = end + 1;
	}
	return 0;
}

int tree_want_net(struct tree_maker *m)
{
	return m->net ? 0 : tree_wrong(m, "\"netdev NAME\" belongs before this");
}
int tree_want_port(struct tree_maker *m)
{
	return m->port ? 0 : tree_wrong(m, "\"device\" and \"port\" belong before this");
}

int tree_put_text(struct tree_maker *m, const char *path, struct fb_strbuf *b)
{
	int rc = b->failed ? fb_fail(m->e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %s", path)
		 : b->len  ? tree_write(&m->root, path, b->s, b->len, m->e)
			   : 0;
	fb_strbuf_free(b);
	return rc;
}

/* ---- devices --------------------------------------------------------------------------------- */

int tree_do_netdev(struct tree_maker *m, char **w, int n)
{
	char path[128];
	m->net = NULL;
	if (n != 2 || strlen(w[1]) >= sizeof(m->all[0].name))
		return tree_wrong(m, "netdev NAME");
	for (int i = 0; i < m->nets; i++)
		if (strcmp(m->all[i].name, w[1]) == 0)
			m->net = &m->all[i];
	snprintf(path, sizeof(path), "/sys/class/net/%s", w[1]);
	if (m->net)
		return 0;
	if (m->nets == TREE_NETDEVS_MAX)
		return tree_wrong(m, "more than %d interfaces", TREE_NETDEVS_MAX);
	m->net = &m->all[m->nets++];
	*m->net = (struct tree_net){.rx = -1, .tx = -1, .autoneg = -1};
	snprintf(m->net->name, sizeof(m->net->name), "%s", w[1]);
	return tree_mkdir(&m->root, path, true, m->e);
}

static int soft_device(struct tree_maker *m, char *netdev)
{
	char word[] = "netdev", *select[] = {word, netdev};
	int rc = tree_putf(m, netdev, "/sys/class/infiniband/%s/parent", m->device);
	return rc < 0 ? rc : tree_do_netdev(m, select, 2);
}

/* device NAME DRIVER BDF [NETDEV...]; device NAME rxe|siw NETDEV */
int tree_do_device(struct tree_maker *m, char **w, int n)
{
	char dir[128], path[192];
	int rc = 0;
	if (n < 4 || strlen(w[1]) >= sizeof(m->device) || strlen(w[2]) >= sizeof(m->driver))
		return tree_wrong(
			m, "device NAME DRIVER BDF [NETDEV...], or device NAME rxe|siw NETDEV");
	snprintf(m->device, sizeof(m->device), "%s", w[1]);
	snprintf(m->driver, sizeof(m->driver), "%s", w[2]);
	m->port = 0;
	m->bdf[0] = '\0';
	bool siw = strcmp(w[2], "siw") == 0;
	rc = tree_putf(
		m, siw ? "4: RNIC\n" : "1: CA\n", "/sys/class/infiniband/%s/node_type", w[1]);
	if (rc == 0 && (siw || strcmp(w[2], "rxe") == 0))
		return soft_device(m, w[3]);
	if (strlen(w[3]) >= sizeof(m->bdf))
		return tree_wrong(m, "\"%s\" is no PCI address", w[3]);
	snprintf(m->bdf, sizeof(m->bdf), "%s", w[3]);
	snprintf(dir, sizeof(dir), "/sys/devices/pci%.7s/%s", m->bdf, m->bdf);
	snprintf(path, sizeof(path), "/sys/bus/pci/drivers/%s", m->driver);
	if (rc == 0)
		rc = tree_mkdir(&m->root, path, true, m->e);
	if (rc == 0)
		rc = tree_mkdir(&m->root, dir, true, m->e);
	char link[192];
	snprintf(link, sizeof(link), "%s/driver", dir);
	if (rc == 0)
		rc = tree_link(&m->root, link, path, m->e);
	snprintf(link, sizeof(link), "/sys/bus/pci/devices/%s", m->bdf);
	if (rc == 0)
		rc = tree_link(&m->root, link, dir, m->e);
	snprintf(link, sizeof(link), "/sys/class/infiniband/%s/device", m->device);
	if (rc == 0)
		rc = tree_link(&m->root, link, dir, m->e);
	for (int i = 4; i < n && rc == 0; i++) {
		char *select[] = {w[0], w[i]};
		rc = tree_do_netdev(m, select, 2);
		snprintf(path, sizeof(path), "%s/net/%.31s", dir, w[i]);
		if (rc == 0)
			rc = tree_mkdir(&m->root, path, true, m->e);
		snprintf(link, sizeof(link), "/sys/class/net/%.31s/device", w[i]);
		if (rc == 0)
			rc = tree_link(&m->root, link, dir, m->e);
	}
	return rc;
}

int tree_do_port(struct tree_maker *m, char **w, int n)
{
	long v;
	char path[128];
	if (n != 2 || !m->device[0])
		return tree_wrong(m, "port NUMBER, after \"device\"");
	int rc = tree_number(m, w[1], 255, &v);
	if (rc < 0)
		return rc;
	m->port = (int)v;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%d", m->device, m->port);
	return tree_mkdir(&m->root, path, true, m->e);
}

/* gid INDEX v1|v2|ib ADDRESS|none [NETDEV] */
int tree_do_gid(struct tree_maker *m, char **w, int n)
{
	struct in6_addr a = {0};
	char text[64];
	long index;
	int rc = tree_want_port(m);
	if (rc == 0 && (n < 4 || n > 5))
		rc = tree_wrong(m, "gid INDEX v1|v2|ib ADDRESS [NETDEV]");
	if (rc == 0)
		rc = tree_number(m, w[1], 65535, &index);
	if (rc == 0 && strcmp(w[3], "none") != 0 && inet_pton(AF_INET6, w[3], &a) != 1)
		rc = tree_wrong(
			m, "\"%s\" is no IPv6 address (an IPv4 one is ::ffff:A.B.C.D)", w[3]);
	if (rc < 0)
		return rc;
	size_t at = 0;
	for (int i = 0; i < 16; i += 2)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%02x%02x", i ? ":" : "",
			a.s6_addr[i], a.s6_addr[i + 1]);
	snprintf(text + at, sizeof(text) - at, "\n");
#define PORT_AT "/sys/class/infiniband/%s/ports/%d/"
	rc = tree_putf(m, text, PORT_AT "gids/%ld", m->device, m->port, index);
	if (rc == 0 && strcmp(w[3], "none") != 0)
		rc = tree_putf(m, strcmp(w[2], "v2") == 0 ? "RoCE v2\n" : "IB/RoCE v1\n",
			PORT_AT "gid_attrs/types/%ld", m->device, m->port, index);
	if (rc == 0 && n == 5)
		rc = tree_putf(m, w[4], PORT_AT "gid_attrs/ndevs/%ld", m->device, m->port, index);
	return rc;
}

int tree_do_pkey(struct tree_maker *m, char **w, int n)
{
	int rc = tree_want_port(m);
	if (rc == 0 && n != 3)
		rc = tree_wrong(m, "pkey INDEX 0xVALUE");
	return rc < 0 ? rc : tree_putf(m, w[2], PORT_AT "pkeys/%s", m->device, m->port, w[1]);
}

/* A name may hold blanks: irdma's do. */
int tree_do_counter(struct tree_maker *m, char **w, int n)
{
	char name[96] = "";
	size_t at = 0;
	int rc = tree_want_port(m);
	if (rc == 0 && n < 3)
		rc = tree_wrong(m, "counter NAME VALUE");
	for (int i = 1; i < n - 1 && at < sizeof(name); i++)
		at += (size_t)snprintf(
			name + at, sizeof(name) - at, "%s%s", i > 1 ? " " : "", w[i]);
	return rc < 0 ? rc
		      : tree_putf(m, w[n - 1], PORT_AT "hw_counters/%s", m->device, m->port, name);
}

int tree_do_active_mtu(struct tree_maker *m, char **w, int n)
{
	char path[128];
	int rc = tree_want_port(m);
	if (rc == 0 && n != 2)
		rc = tree_wrong(m, "active-mtu BYTES");
	snprintf(path, sizeof(path), FACTS_RECORDED_MTU, m->device, m->port);
	return rc < 0 ? rc : tree_put(m, path, w[1]);
}

/* ---- the node -------------------------------------------------------------------------------- */

/* A later line overrides an earlier one of that name. */
static void forget_env(struct fb_strbuf *env, const char *name, size_t n)
{
	char *line = env->s;
	if (!line)
		return;
	while (*line) {
		size_t k = strcspn(line, "\n");
		k += line[k] == '\n';
		if (strncmp(line, name, n) != 0 || line[n] != '=') {
			line += k;
			continue;
		}
		memmove(line, line + k, strlen(line + k) + 1);
		env->len -= k;
	}
}

int tree_do_env(struct tree_maker *m, char **w, int n)
{
	if (n < 2 || !strchr(w[1], '='))
		return tree_wrong(m, "env NAME=VALUE");
	forget_env(&m->env, w[1], strcspn(w[1], "="));
	fb_strbuf_printf(&m->env, "%s\n", w[1]);
	return 0;
}

int tree_do_hidden(struct tree_maker *m, char **w, int n)
{
	if (n != 2 || w[1][0] != '/')
		return tree_wrong(m, "hidden /PATH");
	fb_strbuf_printf(&m->hidden, "%s\n", w[1]);
	return 0;
}

/* memlock BYTES|unlimited [ipc-lock] */
int tree_do_memlock(struct tree_maker *m, char **w, int n)
{
	char text[256];
	if (n < 2 || n > 3 || (n == 3 && strcmp(w[2], "ipc-lock") != 0))
		return tree_wrong(m, "memlock BYTES|unlimited [ipc-lock]");
	snprintf(text, sizeof(text),
		"Limit                     Soft Limit           Hard Limit           Units\n"
		"Max locked memory         %-20.20s %-20.20s bytes\n",
		w[1], w[1]);
	int rc = tree_put(m, "/proc/self/limits", text);
	snprintf(text, sizeof(text), "Name:\tfabricbench\nCapEff:\t%016x\n", n == 3 ? 1 << 14 : 0);
	return rc < 0 ? rc : tree_put(m, "/proc/self/status", text);
}

/* recorded TIME (2026-01-31T12:00:00Z) */
int tree_do_recorded(struct tree_maker *m, char **w, int n)
{
	if (n != 2)
		return tree_wrong(m, "recorded 2026-01-31T12:00:00Z");
	return tree_put(m, FACTS_RECORDED_TIME, w[1]);
}

int tree_do_dir(struct tree_maker *m, char **w, int n)
{
	if (n != 2 || w[1][0] != '/')
		return tree_wrong(m, "dir /PATH");
	return tree_mkdir(&m->root, w[1], true, m->e);
}

int tree_do_link(struct tree_maker *m, char **w, int n)
{
	if (n != 4 || w[1][0] != '/' || strcmp(w[2], "->") != 0 || w[3][0] != '/')
		return tree_wrong(m, "link /PATH -> /TARGET");
	return tree_link(&m->root, w[1], w[3], m->e);
}

static int remove_all(struct tree_maker *m, const char *path)
{
	char real[4096], sub[512], **names = NULL;
	struct stat st;
	int rc = 0;
	if (fb_sysroot_path(&m->root, path, real, sizeof(real)) < 0 || lstat(real, &st) < 0)
		return tree_wrong(m, "there is no %s to remove", path);
	if (!S_ISDIR(st.st_mode))
		return unlink(real) == 0 ? 0 : tree_wrong(m, "cannot remove %s", path);
	fb_sysroot_list(&m->root, path, &names);
	for (char **p = names; p && *p && rc == 0; p++) {
		char link[4096 + 256];
		snprintf(link, sizeof(link), "%s/%.250s", real, *p);
		snprintf(sub, sizeof(sub), "%s/%s", path, *p);
		if (lstat(link, &st) == 0 && S_ISLNK(st.st_mode))
			unlink(link);
		else
			rc = remove_all(m, sub);
	}
	fb_sysroot_names_free(names);
	if (rc == 0 && rmdir(real) < 0)
		rc = tree_wrong(m, "cannot remove %s: %s", path, strerror(errno));
	return rc;
}

int tree_do_remove(struct tree_maker *m, char **w, int n)
{
	if (n != 2 || w[1][0] != '/')
		return tree_wrong(m, "remove /PATH");
	return remove_all(m, w[1]);
}
