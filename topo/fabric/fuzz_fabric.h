/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of every fabric that a reader accepted, whatever it read. */
#ifndef TOPO_FABRIC_FUZZ_FABRIC_H
#define TOPO_FABRIC_FUZZ_FABRIC_H

#include <stdlib.h>
#include <string.h>

#include "bench/core/result.h"
#include "topo/fabric/fabric_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void check(bool ok)
{
	if (!ok)
		abort();
}

static inline char *copy_input(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	check(text != NULL);
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

static inline void check_error(int rc, const struct fb_err *e)
{
	check(rc == e->code && e->msg[0] && e->exit == FB_EXIT_USAGE);
}

static inline void check_model(const struct fabric *f, size_t size)
{
	check(f->link.n > 0 && f->node.n <= size && f->port.n <= size);
	for (size_t i = 0; i < f->port.n; i++) {
		const struct fabric_port *p = &f->port.v[i];
		check(p->node >= 0 && (size_t)p->node < f->node.n);
		check(p->peer == -1 || (p->peer != (int)i && f->port.v[p->peer].peer == (int)i));
		check(p->num <= FABRIC_MAX_PORT);
	}
	for (size_t i = 0; i < f->hca.n; i++) {
		const struct fabric_hca *c = &f->hca.v[i];
		check(f->port.v[c->port].hca == (int)i && f->port.v[c->port].node == c->node);
		check(c->host >= 0 && (size_t)c->host < f->host.n && c->rail < (int)f->rail.n);
		check(f->node.v[c->leaf].kind == FABRIC_SWITCH);
	}
}

static inline void judge(struct fabric *f, const struct fabric_list *l)
{
	static char word[] = "fabric";
	static char *argv[] = {word, NULL};
	static struct fb_output_cfg out = {.quiet = true};
	/* One document for all inputs: making it starts a thread and reads this host's facts. */
	static struct fb_doc *doc;
	const struct fabric_rules rules = {.blocking = 1, .list = l};
	struct fb_err e = {0};
	if (!doc)
		doc = fb_doc_new("topo fabric", 1, argv, &out, &e);
	check(doc != NULL);
	json_array_clear(json_object_get(fb_doc_json(doc), "checks"));
	check(fabric_judge(f, &rules, doc) == 0);
	check(json_array_size(json_object_get(fb_doc_json(doc), "checks")) >= FABRIC_CHECKS);
}

/* A small fabric for readers that add to one. */
static inline struct fabric *small_fabric(void)
{
	static const char text[] =
		"Switch\t36 \"S-0000000000200000\"\t\t# \"leaf0\" base port 0 lid 1 lmc 0\n"
		"[1]\t\"H-0000000000000020\"[1](21) \t\t# \"node0 mlx5_0\" lid 2 4xHDR\n"
		"[3]\t\"H-0000000000000030\"[1](31) \t\t# \"node1 mlx5_0\" lid 3 4xHDR\n"
		"[5]\t\"S-0000000000200001\"[1]\t\t# \"spine0\" lid 4 4xHDR\n";
	struct fabric *f = fabric_new();
	struct fb_err e = {0};
	check(f && fabric_parse_discover(f, text, sizeof(text) - 1, "small", &e) == 0 &&
		fabric_finish(f, "small", &e) == 0);
	return f;
}

#endif
