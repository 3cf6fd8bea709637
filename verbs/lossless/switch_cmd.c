// SPDX-License-Identifier: Apache-2.0
/*
 * `fabricbench check switch FILE...`: each file is a switch; all are judged together, so that both
 * ends of a cable are looked at where both are given.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/check_opts.h"
#include "bench/core/cmd.h"
#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/units.h"
#include "verbs/lossless/others.h"
#include "verbs/lossless/switch.h"
#include "verbs/lossless/switch_lldp.h"

#define MAX_SWITCHES 1024

struct switch_cfg {
	struct fb_opt_list files, others;
	char *profile;
};
struct command {
	struct switch_cfg cfg;
	struct fb_check_cfg judge;
	struct fb_output_cfg out;
};

#define O(field) offsetof(struct switch_cfg, field)
static const struct fb_opt opts[] = {
	{.name = "file",
		.type = FB_OPT_LIST,
		.offset = O(files),
		.arg = "FILE,...",
		.help = "a switch's config_db.json (SONiC), or nv show as JSON (NVIDIA); its LLDP "
			"neighbours",
		.positional = true},
	{.name = "profile",
		.type = FB_OPT_STRING,
		.offset = O(profile),
		.arg = "FILE",
		.help = "what the site has decided: an INI file, or the name of a shipped one; "
			"without it only consistency is judged"},
	{.name = "others",
		.type = FB_OPT_LIST,
		.offset = O(others),
		.arg = "DIR|FILE,...",
		.help = "hosts at the other ends: documents of check roce, recorded trees, or "
			"folders of them"},
	{.name = NULL},
};
#undef O

static const char notes[] =
	"Files are told apart by what is in them. SONiC: /etc/sonic/config_db.json after config save,\n"
	"or a dump of CONFIG_DB (sonic-db-dump, show techsupport).\n"
	"NVIDIA Cumulus Linux: nv show qos -o json, nv show qos roce -o json, nv config show -o json;\n"
	"with its ports, neighbours and watchdog:\n"
	"  jq -n --slurpfile q qos.json --slurpfile i interface.json \\\n"
	"    '{system: {hostname: \"leaf01\"}, qos: $q[0], interface: $i[0]}' > leaf01.json\n"
	"\n"
	"Neighbours: lldpctl (text, -f json, json0 or keyvalue), show lldp table (SONiC), nv show\n"
	"interface with lldp (NVIDIA). Such a file belongs to the switch that its own or its folder's\n"
	"name holds (leaf01-lldp.json), else to the one in the same folder, the only one, or, where\n"
	"every file is followed by its neighbours, the one before it. They come before\n"
	"DEVICE_NEIGHBOR.\n"
	"\n"
	"Ports that are down are left out. What a file does not hold is skip, with the section's name.\n"
	"\n"
	"Examples:\n"
	"  fabricbench check switch --profile dscp26-cnp48-6 leaf*.json spine*.json\n"
	"  fabricbench check switch leaf01.json leaf01-lldp.json --others results/\n"
	"  fabricbench check switch --explain S05\n"
	"\n"
	"Exit status: 0 ACCEPTED; 1 REJECTED: a check failed (with --strict, or warned); 3\n"
	"INCOMPLETE: what --require names could not be judged; 77 nothing could be judged; 2 usage,\n"
	"or a file that cannot be right.";

static void fill_spec(struct fb_opt_spec *spec, struct command *c)
{
	*spec = (struct fb_opt_spec){
		.command = "check switch",
		.usage = "FILE... [options]",
		.summary =
			"Do the switches keep RoCE lossless? DSCP map, PFC at both ends, headroom, "
			"ECN thresholds, watchdog, from their configuration files.",
		.notes = notes,
		.sets = {{"Checks", opts, &c->cfg}, {"Verdict", fb_check_opts, &c->judge},
			{"Output", fb_output_opts, &c->out}},
	};
}

/* ---- what checks there are ------------------------------------------------------------------- */

#define MAX_DEFS 32
static void collect(struct fb_check_def *defs)
{
	size_t n = 0;
	for (const struct switch_check *c = switch_checks; c->def.id && n + 1 < MAX_DEFS; c++)
		defs[n++] = c->def;
	defs[n] = (struct fb_check_def){.id = NULL};
}

/* ---- the table ------------------------------------------------------------------------------- */

struct row {
	const json_t *check;
	const char *subject, *id, *state, *text;
	size_t host; /* length of the switch's name in subject */
	size_t at;   /* place in the document */
	bool printed;
};

static int by_switch_and_id(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	size_t n = x->host < y->host ? x->host : y->host;
	int d = strncmp(x->subject, y->subject, n);
	if (d == 0 && x->host != y->host)
		d = x->host < y->host ? -1 : 1;
	if (d == 0)
		d = strcmp(x->id, y->id);
	return d ? d : x->at < y->at ? -1 : 1;
}

static struct row *rows_of(const json_t *doc, size_t *n)
{
	const json_t *checks = json_object_get(doc, "checks"), *c;
	struct row *rows = calloc(json_array_size(checks) + 1, sizeof(*rows));
	size_t i;
	*n = rows ? json_array_size(checks) : 0;
	json_array_foreach (checks, i, c) {
		if (!rows)
			break;
		struct row *r = &rows[i];
		const char *space;
		r->check = c;
		r->at = i;
		r->subject = fb_json_str(c, "subject", "");
		r->id = fb_json_str(c, "id", "");
		r->state = fb_json_str(c, "state", "");
		r->text = fb_json_str(c, "observed", fb_json_str(c, "reason", ""));
		space = strrchr(r->subject, ' ');
		r->host = space ? (size_t)(space - r->subject) : strlen(r->subject);
	}
	if (rows)
		qsort(rows, *n, sizeof(*rows), by_switch_and_id);
	return rows;
}

/* Ports of which the same is said are one line; what is well is one line whatever is said of it. */
static void print_group(struct row *r, const struct row *end, FILE *out)
{
	bool bad = strcmp(r->state, "fail") == 0 || strcmp(r->state, "warn") == 0;
	size_t more = 0;
	for (struct row *o = r + 1; o < end; o++) {
		if (o->printed || strcmp(o->state, r->state) != 0 ||
			(bad && strcmp(o->text, r->text) != 0))
			continue;
		o->printed = true;
		more++;
	}
	fprintf(out, "  %-5s %-4s %s%s", r->state, r->id,
		r->subject[r->host] ? r->subject + r->host + 1 : "",
		r->subject[r->host] ? "" : "all ports");
	if (more)
		fprintf(out, " and %zu more", more);
	fprintf(out, ": %s: %s\n", fb_json_str(r->check, "title", ""), r->text);
	fb_check_print_mend(r->check, out);
}

static void print_table(const json_t *doc, FILE *out)
{
	size_t n, i;
	struct row *rows = rows_of(doc, &n);
	for (i = 0; i < n; i++) {
		bool next = i == 0 || rows[i].host != rows[i - 1].host ||
			    strncmp(rows[i].subject, rows[i - 1].subject, rows[i].host) != 0;
		size_t end = i + 1;
		if (next)
			fprintf(out, "%s%.*s\n", i ? "\n" : "", (int)rows[i].host, rows[i].subject);
		if (rows[i].printed)
			continue;
		while (end < n && rows[end].host == rows[i].host &&
			strncmp(rows[end].subject, rows[i].subject, rows[i].host) == 0 &&
			strcmp(rows[end].id, rows[i].id) == 0)
			end++;
		print_group(&rows[i], &rows[end], out);
	}
	free(rows);
	fb_check_print_end(doc, out);
}

/* ---- the command ----------------------------------------------------------------------------- */

struct switches {
	struct switch_facts *sw;
	const struct switch_facts **all;
	int n;
	struct switch_lldp *lldp;
	int *after; /* how many switches were given before it, less one */
	int n_lldp;
};

static void free_switches(struct switches *s)
{
	for (int i = 0; i < s->n; i++)
		switch_free(&s->sw[i]);
	for (int i = 0; i < s->n_lldp; i++)
		switch_lldp_free(&s->lldp[i]);
	free(s->sw);
	free(s->all);
	free(s->lldp);
	free(s->after);
}

/* Files without a host name: leaf01/qos.json and leaf02/qos.json are told apart by their paths. */
static void name_by_path(struct switch_facts *s)
{
	size_t n = strlen(s->path);
	const char *from = n < sizeof(s->name) ? s->path : s->path + n - sizeof(s->name) + 1;
	if (!s->named)
		snprintf(s->name, sizeof(s->name), "%.*s", (int)sizeof(s->name) - 1, from);
}

static int name_each(struct switches *s, struct fb_err *e)
{
	for (int i = 1; i < s->n; i++)
		for (int k = 0; k < i; k++) {
			struct switch_facts *a = &s->sw[k], *b = &s->sw[i];
			if (strcmp(a->name, b->name) != 0)
				continue;
			if (strcmp(a->path, b->path) != 0) {
				name_by_path(a);
				name_by_path(b);
			}
			if (strcmp(a->name, b->name) != 0)
				continue;
			fb_fail_usage(
				e, "%s and %s are both of switch %s", a->path, b->path, b->name);
			fb_hint(e, "give each switch once");
			return -EINVAL;
		}
	return 0;
}

/* A file: a switch, or the neighbours of one. */
static int read_one(const char *path, struct switches *s, struct fb_err *e)
{
	char *text = NULL;
	size_t len = 0;
	struct switch_lldp *l = &s->lldp[s->n_lldp];
	int rc = fb_read_file(path, SWITCH_MAX_BYTES, &text, &len, e);
	if (rc < 0)
		return rc;
	rc = switch_lldp_parse(text, len, path, l, e);
	if (rc == 0)
		s->after[s->n_lldp++] = s->n - 1;
	if (rc == 1)
		rc = switch_parse(text, len, path, &s->sw[s->n], e);
	else if (rc == 0)
		rc = 1;
	if (rc == 0) {
		s->all[s->n] = &s->sw[s->n];
		s->n++;
	}
	free(text);
	return rc < 0 ? rc : 0;
}

/* FILE LLDP FILE LLDP ...: each file of neighbours right behind its switch's. */
static bool in_pairs(const struct switches *s)
{
	for (int i = 0; i < s->n_lldp; i++)
		if (s->after[i] != i)
			return false;
	return s->n_lldp == s->n;
}

static int plug_in(struct switches *s, struct fb_err *e)
{
	bool pairs = in_pairs(s);
	for (int i = 0; i < s->n_lldp; i++) {
		int owner = switch_lldp_owner(&s->lldp[i], s->sw, s->n, pairs ? i : -1, e);
		int rc = owner < 0 ? owner : switch_lldp_apply(&s->lldp[i], &s->sw[owner], e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int read_switches(const struct fb_opt_list *files, struct switches *s, struct fb_err *e)
{
	s->sw = calloc(files->n, sizeof(*s->sw));
	s->all = calloc(files->n, sizeof(*s->all));
	s->lldp = calloc(files->n, sizeof(*s->lldp));
	s->after = calloc(files->n, sizeof(*s->after));
	if (!s->sw || !s->all || !s->lldp || !s->after)
		return fb_fail(
			e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %zu switches", files->n);
	for (size_t i = 0; i < files->n; i++) {
		int rc = read_one(files->v[i], s, e);
		if (rc < 0)
			return rc;
	}
	int rc = plug_in(s, e);
	switch_pair(s->sw, s->n);
	return rc < 0 ? rc : name_each(s, e);
}

static void describe(const struct switches *s, struct fb_doc *doc)
{
	json_t *list = json_array();
	for (int i = 0; i < s->n; i++) {
		const struct switch_facts *sw = &s->sw[i];
		json_t *o = json_object();
		int used = 0;
		for (int k = 0; k < s->sw[i].ports; k++) {
			used += s->sw[i].port[k].used;
			if (s->sw[i].port[k].neighbour[0])
				fb_doc_hide(doc, s->sw[i].port[k].neighbour);
		}
		fb_json_set_str(o, "name", s->sw[i].name);
		fb_json_set_str(o, "format", s->sw[i].vendor->format);
		fb_json_set_str(o, "lldp", s->sw[i].lldp[0] ? s->sw[i].lldp : NULL);
		fb_json_set_int(o, "ports", s->sw[i].ports);
		fb_json_set_int(o, "ports_up", used);
		json_array_append_new(list, o);
		fb_doc_hide(doc, s->sw[i].name);
		char names[256] = "";
		for (int k = 0; k < SWITCH_SECTIONS; k++) {
			size_t n = strlen(names);
			if ((sw->implied >> k & 1) && !strstr(names, sw->vendor->sections[k]))
				snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "",
					sw->vendor->sections[k]);
		}
		if (names[0])
			fb_doc_warn(doc,
				"%s: taken as `nv set qos roce` sets it, since the file does not say: "
				"%s",
				sw->name, names);
	}
	json_object_set_new(fb_doc_json(doc), "switches", list);
}

static int work(void *arg, struct fb_doc *doc, struct fb_err *e)
{
	const struct command *command = arg;
	const struct switch_cfg *c = &command->cfg;
	struct switches s = {0};
	struct others hosts = {0};
	struct profile profile;
	profile_none(&profile);
	int rc = c->profile ? profile_read(c->profile, &profile, e) : 0;
	if (rc == 0)
		rc = read_switches(&c->files, &s, e);
	if (rc == 0)
		rc = others_read(&c->others, "", NULL, &hosts, e);
	if (rc == 0) {
		describe(&s, doc);
		for (int i = 0; i < s.n_lldp; i++)
			if (s.lldp[i].n == 0)
				fb_doc_warn(
					doc, "%s names no neighbour of any port", s.lldp[i].path);
		fb_others_tell(&hosts.passed, doc);
		switch_run((const struct switch_facts *const *)s.all, s.n,
			(const struct node_facts *const *)hosts.node, hosts.n, &profile, doc);
	}
	others_free(&hosts);
	free_switches(&s);
	return rc == 0 ? fb_check_verdict(&command->judge, doc) : (int)e->exit;
}

static int prepare(void *arg, struct fb_err *e)
{
	struct command *c = arg;
	if (c->cfg.files.n == 0) {
		fb_fail_usage(e, "no file is given");
		fb_hint(e, "fabricbench check switch config_db.json; copy it from the switch: scp "
			   "SWITCH:/etc/sonic/config_db.json .");
		return -EINVAL;
	}
	if (c->cfg.files.n > (size_t)2 * MAX_SWITCHES)
		return fb_fail_usage(
			e, "%zu files: at most %d at once", c->cfg.files.n, 2 * MAX_SWITCHES);
	struct fb_check_def defs[MAX_DEFS];
	collect(defs);
	return fb_check_prepare(&c->judge, &c->out, defs, e);
}

int check_switch_run(int argc, char **argv)
{
	struct command c = {0};
	struct fb_opt_spec spec;
	struct fb_check_def defs[MAX_DEFS];
	const struct fb_check_kind kind = {.command = &c,
		.judge = &c.judge,
		.out = &c.out,
		.listed = defs,
		.all = defs,
		.prepare = prepare,
		.work = work,
		.table = print_table};
	fill_spec(&spec, &c);
	collect(defs);
	return fb_check_command(&spec, &kind, argc, argv);
}

const struct fb_opt_spec *check_switch_spec(void)
{
	static struct command scratch;
	static struct fb_opt_spec spec;
	scratch = (struct command){0};
	fill_spec(&spec, &scratch);
	return &spec;
}
