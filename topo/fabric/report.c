// SPDX-License-Identifier: Apache-2.0
/*
 * A fabric as JSON, and the document as a table for people: what it is made of, its leaves, then
 * what is wrong, then what is well in one line each.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/check_opts.h"
#include "bench/core/json.h"
#include "topo/fabric/fabric_cmd.h"
#include "topo/fabric/fabric_priv.h"

/* ---- JSON ------------------------------------------------------------------------------------ */

static int count_switches(const struct fabric *f, int level)
{
	int n = 0;
	for (size_t i = 0; i < f->node.n; i++)
		n += f->node.v[i].kind == FABRIC_SWITCH && (!level || f->node.v[i].level == level);
	return n;
}

static int count_hosts(const struct fabric *f)
{
	int n = 0;
	for (size_t i = 0; i < f->host.n; i++)
		n += f->host.v[i].n > 0;
	return n;
}

static json_t *leaf_json(const struct fabric *f, int node)
{
	char text[FABRIC_LABEL], rails[400];
	struct fabric_ways w;
	json_t *o = json_object();
	fabric_ways(f, node, &w);
	fb_json_set_str(o, "name", fabric_label(f, node, text));
	if (!f->anonymous && !f->node.v[node].by_id) {
		snprintf(text, sizeof(text), "0x%016" PRIx64, f->node.v[node].guid);
		fb_json_set_str(o, "guid", text);
	}
	fabric_leaf_rails(f, node, rails, sizeof(rails));
	if (rails[0])
		fb_json_set_str(o, "rail", rails);
	fb_json_set_int(o, "down", w.down);
	fb_json_set_int(o, "up", w.up);
	fb_json_set_int(o, "spines", w.up_to);
	fb_json_set_real(o, "down_bps", w.down_gbps > 0 ? w.down_gbps * 1e9 : NAN,
		"the source tells no rate");
	fb_json_set_real(o, "up_bps", w.up_gbps > 0 ? w.up_gbps * 1e9 : NAN,
		w.up ? "the source tells no rate" : "no cable leads up");
	fb_json_set_real(o, "blocking", w.up ? fabric_blocking(&w) : NAN, "no cable leads up");
	return o;
}

/* HCAs of one name, and on which leaves they are. */
static json_t *rails_json(const struct fabric *f)
{
	json_t *list = json_array();
	int(*n)[2] = calloc(f->rail.n + 1, sizeof(*n));
	int *order = calloc(f->rail.n + 1, sizeof(*order));
	for (size_t i = 0; n && i < f->hca.n; i++) {
		const struct fabric_hca *c = &f->hca.v[i];
		if (c->rail < 0)
			continue;
		n[c->rail][0] += c->target >= 0;
		n[c->rail][1] += c->target >= 0 && c->target != c->leaf;
	}
	for (size_t i = 0; n && order && i < f->rail.n && i < FABRIC_MAX_ROWS; i++) {
		size_t k = i;
		/* By insertion: rails are few, and a file that has many gets only the first. */
		while (k > 0 &&
			fabric_natural(f->rail.v[order[k - 1]].name, f->rail.v[i].name) > 0) {
			order[k] = order[k - 1];
			k--;
		}
		order[k] = (int)i;
	}
	for (size_t i = 0; n && order && i < f->rail.n && i < FABRIC_MAX_ROWS; i++) {
		json_t *o = json_object();
		fb_json_set_str(o, "rail", f->rail.v[order[i]].name);
		fb_json_set_int(o, "hcas", f->rail.v[order[i]].n);
		fb_json_set_int(o, "judged", n[order[i]][0]);
		fb_json_set_int(o, "mis_cabled", n[order[i]][1]);
		json_array_append_new(list, o);
	}
	free(n);
	free(order);
	return list;
}

json_t *fabric_json(const struct fabric *f)
{
	json_t *o = json_object(), *leaves = json_array();
	size_t left_out = 0;
	fb_json_set_str(o, "source", f->source);
	fb_json_set_int(o, "switches", count_switches(f, 0));
	fb_json_set_int(o, "hosts", count_hosts(f));
	fb_json_set_int(o, "hcas", (int64_t)f->hca.n);
	fb_json_set_int(o, "links", (int64_t)f->link.n);
	fb_json_set_int(o, "levels", f->levels);
	fb_json_set_int(o, "spines", count_switches(f, 2));
	fb_json_set_int(o, "fabrics", f->parts);
	for (size_t i = 0; i < f->node.n; i++) {
		if (f->node.v[i].kind != FABRIC_SWITCH || f->node.v[i].level != 1)
			continue;
		if (json_array_size(leaves) < 20000)
			json_array_append_new(leaves, leaf_json(f, (int)i));
		else
			left_out++;
	}
	json_object_set_new(o, "leaves", leaves);
	if (left_out)
		fb_json_set_int(o, "leaves_left_out", (int64_t)left_out);
	json_object_set_new(o, "rails", rails_json(f));
	return o;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define MAX_LEAVES_SHOWN 40

static void print_leaves(const json_t *fabric, FILE *out)
{
	const json_t *leaves = json_object_get(fabric, "leaves"), *o;
	size_t i, n = json_array_size(leaves);
	if (n == 0)
		return;
	fprintf(out, "\n  %-32s %5s %5s %7s %9s  %s\n", "leaf", "down", "up", "spines", "blocking",
		"rail");
	json_array_foreach (leaves, i, o) {
		char blocking[24] = "-";
		if (i == MAX_LEAVES_SHOWN) {
			fprintf(out, "  and %zu more: --json has them all\n", n - i);
			break;
		}
		if (json_is_number(json_object_get(o, "blocking")))
			snprintf(blocking, sizeof(blocking), "%.3g:1",
				fb_json_num(o, "blocking", 0));
		fprintf(out, "  %-32s %5lld %5lld %7lld %9s  %s\n", fb_json_str(o, "name", "?"),
			(long long)fb_json_int(o, "down", 0), (long long)fb_json_int(o, "up", 0),
			(long long)fb_json_int(o, "spines", 0), blocking,
			fb_json_str(o, "rail", "-"));
	}
}

static void print_checks(const json_t *doc, const char *state, FILE *out)
{
	const json_t *c;
	size_t i;
	json_array_foreach (json_object_get(doc, "checks"), i, c) {
		if (strcmp(fb_json_str(c, "state", ""), state) != 0)
			continue;
		const char *subject = fb_json_str(c, "subject", "fabric");
		fprintf(out, "  %-5s %-13s %s: %s\n", state, fb_json_str(c, "id", ""),
			strcmp(subject, "fabric") == 0 ? fb_json_str(c, "title", "") : subject,
			fb_json_str(c, "observed", fb_json_str(c, "reason", "")));
		fb_check_print_mend(c, out);
	}
}

void fabric_print(const json_t *doc, FILE *out)
{
	const json_t *fabric = json_object_get(doc, "fabric");
	if (json_is_object(fabric)) {
		long long parts = fb_json_int(fabric, "fabrics", 1);
		fprintf(out,
			"%s: %lld hosts with %lld HCAs, %lld switches in %lld levels, %lld cables%s",
			fb_json_str(fabric, "source", "fabric"),
			(long long)fb_json_int(fabric, "hosts", 0),
			(long long)fb_json_int(fabric, "hcas", 0),
			(long long)fb_json_int(fabric, "switches", 0),
			(long long)fb_json_int(fabric, "levels", 0),
			(long long)fb_json_int(fabric, "links", 0), parts > 1 ? "" : "\n");
		if (parts > 1)
			fprintf(out, ", %lld fabrics\n", parts);
		print_leaves(fabric, out);
		fputc('\n', out);
	}
	for (int s = 0; s < FB_CHECK_STATES; s++) {
		static const enum fb_check_state order[] = {FB_CHECK_FAIL, FB_CHECK_ERROR,
			FB_CHECK_WARN, FB_CHECK_INFO, FB_CHECK_PASS, FB_CHECK_SKIP};
		print_checks(doc, fb_check_state_names[order[s]], out);
	}
	fb_check_print_end(doc, out);
}
