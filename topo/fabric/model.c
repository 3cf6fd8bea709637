// SPDX-License-Identifier: Apache-2.0
/*
 * The model's arrays and tables of places. Growth is by doubling, so that what a file costs in
 * memory is bounded by its size.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "topo/fabric/fabric_priv.h"

#define FIRST_SLOTS 64

void *fabric_add_to(void **v, size_t *n, size_t *cap, size_t size)
{
	if (*n == *cap) {
		size_t more = *cap ? *cap * 2 : 16;
		void *grown = realloc(*v, more * size);
		if (!grown)
			return NULL;
		*v = grown;
		*cap = more;
	}
	void *slot = (char *)*v + *n * size;
	memset(slot, 0, size);
	(*n)++;
	return slot;
}

/* ---- maps ------------------------------------------------------------------------------------ */

/* The mixer of splitmix64: neighbouring GUIDs must not share a chain. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static size_t slot_of(const struct fabric_map *m, uint64_t key)
{
	size_t i = mix(key) & (m->size - 1);
	while (m->value[i] >= 0 && m->key[i] != key)
		i = (i + 1) & (m->size - 1);
	return i;
}

int32_t fabric_map_get(const struct fabric_map *m, uint64_t key)
{
	return m->size ? m->value[slot_of(m, key)] : -1;
}

static int resize(struct fabric_map *m, size_t size)
{
	struct fabric_map wide = {.size = size, .n = m->n};
	wide.key = malloc(size * sizeof(*wide.key));
	wide.value = malloc(size * sizeof(*wide.value));
	if (!wide.key || !wide.value) {
		fabric_map_free(&wide);
		return -ENOMEM;
	}
	memset(wide.value, 0xff, size * sizeof(*wide.value));
	for (size_t i = 0; i < m->size; i++) {
		if (m->value[i] < 0)
			continue;
		size_t k = slot_of(&wide, m->key[i]);
		wide.key[k] = m->key[i];
		wide.value[k] = m->value[i];
	}
	fabric_map_free(m);
	*m = wide;
	return 0;
}

int fabric_map_set(struct fabric_map *m, uint64_t key, int32_t value)
{
	if (m->n * 2 >= m->size && resize(m, m->size ? m->size * 2 : FIRST_SLOTS) < 0)
		return -ENOMEM;
	size_t i = slot_of(m, key);
	m->n += m->value[i] < 0;
	m->key[i] = key;
	m->value[i] = value;
	return 0;
}

void fabric_map_free(struct fabric_map *m)
{
	free(m->key);
	free(m->value);
	memset(m, 0, sizeof(*m));
}

/* FNV-1a over 64 bits: a file would need a collision of 64 bits to mix two texts up. */
uint64_t fabric_hash(const char *s, size_t len, uint64_t salt)
{
	uint64_t h = 0xcbf29ce484222325ull ^ salt;
	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)s[i]) * 0x100000001b3ull;
	return mix(h);
}

/* ---- the fabric ------------------------------------------------------------------------------ */

struct fabric *fabric_new(void)
{
	return calloc(1, sizeof(struct fabric));
}

void fabric_free(struct fabric *f)
{
	if (!f)
		return;
	free(f->node.v);
	free(f->port.v);
	free(f->counters.v);
	free(f->conflict.v);
	free(f->hca.v);
	free(f->host.v);
	free(f->rail.v);
	free(f->link.v);
	fabric_map_free(&f->by_guid);
	fabric_map_free(&f->by_port_guid);
	fabric_map_free(&f->by_number);
	fabric_map_free(&f->by_id);
	fabric_map_free(&f->by_lid);
	free(f);
}

static int add_node(struct fabric *f, enum fabric_kind kind)
{
	if (f->node.n >= FABRIC_MAX_NODES)
		return -EFBIG;
	struct fabric_node *n = FABRIC_ADD(f->node);
	if (!n)
		return -ENOMEM;
	n->kind = (uint8_t)kind;
	n->first = -1;
	n->host = -1;
	return (int)f->node.n - 1;
}

static int node_by(struct fabric *f, struct fabric_map *m, uint64_t key, enum fabric_kind kind)
{
	int i = fabric_map_get(m, key);
	if (i < 0) {
		i = add_node(f, kind);
		if (i >= 0 && fabric_map_set(m, key, i) < 0)
			return -ENOMEM;
	} else if (f->node.v[i].kind == FABRIC_UNKNOWN) {
		f->node.v[i].kind = (uint8_t)kind;
	}
	return i;
}

int fabric_node_by_guid(struct fabric *f, uint64_t guid, enum fabric_kind kind)
{
	int i = node_by(f, &f->by_guid, guid, kind);
	if (i >= 0)
		f->node.v[i].guid = guid;
	return i;
}

int fabric_node_by_id(struct fabric *f, const char *id, size_t len, enum fabric_kind kind)
{
	int i = node_by(f, &f->by_id, fabric_hash(id, len, 1), kind);
	if (i >= 0)
		f->node.v[i].by_id = true;
	if (i >= 0 && !f->node.v[i].name[0])
		fabric_set_name(f, i, id, len);
	return i;
}

static uint64_t number_key(int node, unsigned num)
{
	return (uint64_t)(uint32_t)node << 8 | num;
}

int fabric_find_number(const struct fabric *f, int node, unsigned num)
{
	return fabric_map_get(&f->by_number, number_key(node, num));
}

int fabric_port_of(struct fabric *f, int node, unsigned num)
{
	int i = fabric_find_number(f, node, num);
	if (i >= 0)
		return i;
	struct fabric_port *p = FABRIC_ADD(f->port);
	i = (int)f->port.n - 1;
	if (!p || fabric_map_set(&f->by_number, number_key(node, num), i) < 0)
		return -ENOMEM;
	*p = (struct fabric_port){.node = node,
		.num = (uint8_t)num,
		.peer = -1,
		.counters = -1,
		.hca = -1,
		.next = f->node.v[node].first};
	f->node.v[node].first = i;
	return i;
}

int fabric_set_port_guid(struct fabric *f, int port, uint64_t guid)
{
	struct fabric_port *p = &f->port.v[port];
	if (guid == 0 || p->guid == guid)
		return 0;
	p->guid = guid;
	/* The first to have it keeps it; fab.guid tells of the other. */
	if (fabric_map_get(&f->by_port_guid, guid) >= 0)
		return 0;
	return fabric_map_set(&f->by_port_guid, guid, port);
}

int fabric_find_port(const struct fabric *f, uint64_t guid, unsigned num)
{
	int node = fabric_map_get(&f->by_guid, guid), port = -1;
	if (node >= 0)
		port = fabric_find_number(f, node, num);
	return port >= 0 ? port : fabric_map_get(&f->by_port_guid, guid);
}

int fabric_conflict(struct fabric *f, int port, int first, int second, uint32_t line)
{
	struct fabric_conflict *c = FABRIC_ADD(f->conflict);
	if (!c)
		return -ENOMEM;
	*c = (struct fabric_conflict){.port = port, .first = first, .second = second, .line = line};
	return 0;
}

/* Is q the port that p names: the same, or a second device with the same GUID? */
static bool same_place(const struct fabric *f, int p, int q)
{
	const struct fabric_port *a = &f->port.v[p], *b = &f->port.v[q];
	const struct fabric_node *m = &f->node.v[a->node], *n = &f->node.v[b->node];
	return p == q || (a->num == b->num && m->guid == n->guid && !m->by_id && !n->by_id);
}

/* A second device with the GUID of port's node, which the tables do not know. */
static int twin_of(struct fabric *f, int port)
{
	int node = add_node(f, (enum fabric_kind)f->node.v[f->port.v[port].node].kind);
	if (node < 0)
		return node;
	const struct fabric_node *n = &f->node.v[f->port.v[port].node];
	f->node.v[node] = *n;
	f->node.v[node].first = -1;
	int twin = fabric_port_of(f, node, f->port.v[port].num);
	if (twin >= 0)
		f->port.v[twin].guid = f->port.v[port].guid;
	return twin;
}

int fabric_join(struct fabric *f, int a, int b, uint32_t line)
{
	int pa = f->port.v[a].peer, pb = f->port.v[b].peer, rc;
	if (a == b)
		return fabric_conflict(f, a, a, a, line);
	if ((pa >= 0 && same_place(f, pa, b)) || (pb >= 0 && same_place(f, pb, a)))
		return 0;
	if (pa >= 0 || pb >= 0) {
		rc = pa >= 0 ? fabric_conflict(f, a, pa, b, line)
			     : fabric_conflict(f, b, pb, a, line);
		if (rc < 0 || (pa >= 0 && pb >= 0))
			return rc;
		rc = twin_of(f, pa >= 0 ? a : b);
		if (rc < 0)
			return rc;
		*(pa >= 0 ? &a : &b) = rc;
	}
	f->port.v[a].peer = b;
	f->port.v[b].peer = a;
	f->port.v[a].line = f->port.v[b].line = line;
	return 0;
}

void fabric_set_name(struct fabric *f, int node, const char *s, size_t len)
{
	char *to = f->node.v[node].name;
	size_t k = 0;
	while (len > 0 && (*s == ' ' || *s == '\t')) {
		s++;
		len--;
	}
	while (len > 0 && (s[len - 1] == ' ' || s[len - 1] == '\t'))
		len--;
	for (; k < len && k < FABRIC_NAME - 1; k++)
		to[k] = (unsigned char)s[k] < 0x20 || s[k] == 0x7f ? '?' : s[k];
	to[k] = '\0';
}
