// SPDX-License-Identifier: Apache-2.0
/*
 * The text of a .tree file: files, folders, links, and words for what would be long (a device, a
 * GID, DCB tables, ethtool's texts). testdata/README.md describes each. Later lines override
 * earlier ones, included files' too.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/json.h"
#include "verbs/lossless/facts_priv.h"
#include "verbs/lossless/tree.h"
#include "verbs/lossless/tree_words.h"

#define FILE_MAX  (1u << 20)
#define NEST_MAX  8
#define WORDS_MAX 64

static int do_file(struct tree_maker *m, const char *file);

static int do_include(struct tree_maker *m, char **w, int n)
{
	char path[512];
	const char *slash = strrchr(m->file, '/');
	if (n != 2)
		return tree_wrong(m, "include FILE.tree");
	snprintf(path, sizeof(path), "%.*s%s", slash ? (int)(slash + 1 - m->file) : 0, m->file,
		w[1]);
	return do_file(m, path);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* @port/state: a path under what is selected. */
static int full_path(struct tree_maker *m, const char *s, char *out, size_t len)
{
	const char *slash = strchr(s, '/');
	size_t k = slash ? (size_t)(slash - s) : strlen(s);
	const char *rest = s + k;
	int rc = 0;
#define IS(word) (strlen(word) == k && strncmp(s, word, k) == 0)
	if (*s == '/') {
		snprintf(out, len, "%s", s);
	} else if (IS("@dev") && m->device[0]) {
		snprintf(out, len, "/sys/class/infiniband/%s%s", m->device, rest);
	} else if (IS("@pci") && m->bdf[0]) {
		snprintf(out, len, "/sys/devices/pci%.7s/%s%s", m->bdf, m->bdf, rest);
	} else if (IS("@cc") && m->bdf[0]) {
		snprintf(out, len, "/sys/kernel/debug/mlx5/%s/cc_params%s", m->bdf, rest);
	} else if (IS("@net") && m->net) {
		snprintf(out, len, "/sys/class/net/%s%s", m->net->name, rest);
	} else if (IS("@port") && m->port) {
		snprintf(out, len, "/sys/class/infiniband/%s/ports/%d%s", m->device, m->port, rest);
	} else if (IS("@tc") && m->port) {
		snprintf(out, len, "/sys/class/infiniband/%s/tc/%d%s", m->device, m->port, rest);
	} else if (IS("@cma") && m->port) {
		snprintf(out, len, "/sys/kernel/config/rdma_cm/%s/ports/%d%s", m->device, m->port,
			rest);
	} else {
		rc = tree_wrong(m,
			"\"%s\": a path begins with /, or with @dev, @port, @pci, @net, @cc, "
			"@cma, @tc of what is selected",
			s);
	}
#undef IS
	return rc;
}

/* \n and \t of a value. */
static void unescape(char *s)
{
	char *to = s;
	for (; *s; s++) {
		if (*s == '\\' && (s[1] == 'n' || s[1] == 't')) {
			*to++ = s[1] == 'n' ? '\n' : '\t';
			s++;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

static const struct {
	const char *word;
	int (*run)(struct tree_maker *m, char **w, int n);
} words[] = {{"device", tree_do_device}, {"port", tree_do_port}, {"netdev", tree_do_netdev},
	{"gid", tree_do_gid}, {"pkey", tree_do_pkey}, {"counter", tree_do_counter},
	{"active-mtu", tree_do_active_mtu}, {"pfc", tree_do_pfc}, {"peer-pfc", tree_do_pfc},
	{"pfc-cap", tree_do_pfc_field}, {"pfc-delay", tree_do_pfc_field}, {"app", tree_do_app},
	{"peer-app", tree_do_app}, {"ets", tree_do_ets}, {"peer-ets", tree_do_ets},
	{"buffer", tree_do_buffer}, {"dcbx", tree_do_dcbx}, {"apptrust", tree_do_apptrust},
	{"no-dcb", tree_do_no_dcb}, {"stat", tree_do_stat}, {"pause", tree_do_pause},
	{"speed", tree_do_speed}, {"env", tree_do_env}, {"hidden", tree_do_hidden},
	{"memlock", tree_do_memlock}, {"recorded", tree_do_recorded}, {"dir", tree_do_dir},
	{"link", tree_do_link}, {"remove", tree_do_remove}, {"include", do_include}};

static int do_line(struct tree_maker *m, char *line)
{
	char path[512], *w[WORDS_MAX], *eq = NULL;
	int n = 0;
	if (line[0] == '/' || line[0] == '@')
		eq = strstr(line, " =");
	if (eq) {
		char *value = eq + 2 + strspn(eq + 2, " \t");
		*eq = '\0';
		unescape(value);
		int rc = full_path(m, line, path, sizeof(path));
		size_t k = strlen(value);
		value[k] = '\n'; /* over the line's end: the buffer has room */
		return rc < 0 ? rc : tree_write(&m->root, path, value, k + 1, m->e);
	}
	char expanded[4][512];
	for (char *s = line; *s && n < WORDS_MAX;) {
		size_t k = strcspn(s, " \t");
		char *next = s + k + strspn(s + k, " \t");
		s[k] = '\0';
		w[n++] = s;
		s = next;
	}
	for (int i = 1; i < n && i < 4; i++) {
		if (w[i][0] != '@')
			continue;
		int rc = full_path(m, w[i], expanded[i], sizeof(expanded[i]));
		if (rc < 0)
			return rc;
		w[i] = expanded[i];
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].word, w[0]) == 0)
			return words[i].run(m, w, n);
	return tree_wrong(m, "\"%s\" is no word of this format", w[0]);
}

static int do_file(struct tree_maker *m, const char *file)
{
	char *text = NULL;
	size_t len;
	const char *outer = m->file;
	int outer_line = m->line, rc;
	if (m->depth == NEST_MAX)
		return tree_wrong(m, "includes are nested too deep");
	rc = fb_read_file(file, FILE_MAX, &text, &len, m->e);
	if (rc < 0) {
		if (m->e)
			m->e->exit = FB_EXIT_USAGE;
		return rc;
	}
	m->file = file;
	m->line = 0;
	m->depth++;
	for (char *line = text; line && rc == 0;) {
		char *end = line + strcspn(line, "\n"), *next = *end ? end + 1 : NULL;
		*end = '\0';
		while (end > line && isspace((unsigned char)end[-1]))
			*--end = '\0';
		line += strspn(line, " \t");
		m->line++;
		if (*line && *line != '#')
			rc = do_line(m, line);
		line = next;
	}
	m->depth--;
	m->file = outer;
	m->line = outer_line;
	free(text);
	return rc;
}

int tree_expand(const char *file, const char *dir, struct fb_err *e)
{
	struct tree_maker *m = calloc(1, sizeof(*m));
	if (!m)
		return fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %s", file);
	m->e = e;
	m->file = file;
	int rc = tree_open(&m->root, dir, e);
	if (rc < 0)
		goto free_maker;
	rc = do_file(m, file);
	for (int i = 0; i < m->nets && rc == 0; i++) {
		rc = tree_put_dcb(m, &m->all[i]);
		if (rc == 0)
			rc = tree_put_ethtool(m, &m->all[i]);
	}
	if (rc == 0)
		rc = tree_put_text(m, FACTS_RECORDED_HIDDEN, &m->hidden);
	if (rc == 0)
		rc = tree_put_text(m, FACTS_RECORDED_ENV, &m->env);
	fb_sysroot_close(&m->root);
free_maker:
	for (int i = 0; i < m->nets; i++)
		json_decref(m->all[i].stats);
	fb_strbuf_free(&m->hidden);
	fb_strbuf_free(&m->env);
	free(m);
	return rc;
}
