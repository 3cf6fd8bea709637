/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fabric made to measure, as ibnetdiscover would print it: rails of leaves, spines for each group
 * of leaves, cores above them; and what may be wrong with it. HCA c = host * rails + rail.
 */
#ifndef TOPO_FABRIC_TEST_FABRIC_H
#define TOPO_FABRIC_TEST_FABRIC_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct made {
	int hosts, rails;
	int down;                     /**< hosts of a leaf */
	int pod;                      /**< leaves of one rail under the same spines */
	int spines;                   /**< of each pod and rail */
	int parallel;                 /**< cables between a leaf and each of its spines */
	int cores;                    /**< above each spine; 0: none */
	int swapped[4][2], n_swapped; /**< pairs of HCAs that have each other's cables */
	int slow;                     /**< an HCA with an EDR link; -1 */
	int narrow;                   /**< an HCA with a 1x link; -1 */
	int factory;      /**< this HCA and all after it have the maker's description; -1 */
	int no_cable[2];  /**< leaf, spine without cables between them; -1 */
	int one_cable[2]; /**< leaf, spine with one cable less; -1 */
	const char *rate; /**< "4xHDR" */
};

static inline struct made made_small(void)
{
	return (struct made){.hosts = 16,
		.rails = 2,
		.down = 8,
		.pod = 2,
		.spines = 4,
		.parallel = 2,
		.slow = -1,
		.narrow = -1,
		.factory = -1,
		.no_cable = {-1, -1},
		.one_cable = {-1, -1},
		.rate = "4xHDR"};
}

static inline int made_groups(const struct made *m)
{
	return (m->hosts + m->down - 1) / m->down;
}

/* Which HCA's place this one has. */
static inline int made_place(const struct made *m, int c)
{
	for (int i = 0; i < m->n_swapped; i++)
		for (int k = 0; k < 2; k++)
			if (m->swapped[i][k] == c)
				return m->swapped[i][1 - k];
	return c;
}

static inline int made_leaf(const struct made *m, int place)
{
	return place / m->rails / m->down * m->rails + place % m->rails;
}

static inline int made_leaf_port(const struct made *m, int place)
{
	return place / m->rails % m->down + 1;
}

static inline const char *made_rate(const struct made *m, int c)
{
	return c == m->slow ? "4xEDR" : c == m->narrow ? "1xHDR" : m->rate;
}

static inline uint64_t made_hca(int c)
{
	return 0x1000000000000000u + (uint64_t)c * 2;
}

static inline void made_name(const struct made *m, int c, char *buf, size_t len)
{
	if (m->factory >= 0 && c >= m->factory)
		snprintf(buf, len, "MT4129 ConnectX7   Mellanox Technologies");
	else
		snprintf(buf, len, "node%d mlx5_%d", c / m->rails, c % m->rails);
}

#define MADE_LEAF  0x2000000000000000u
#define MADE_SPINE 0x3000000000000000u
#define MADE_CORE  0x4000000000000000u

/* Spine s of a leaf, by number. */
static inline int made_spine(const struct made *m, int leaf, int s)
{
	int pod = leaf / m->rails / m->pod;
	return (pod * m->rails + leaf % m->rails) * m->spines + s;
}

static inline int made_cables(const struct made *m, int leaf, int s)
{
	if (m->no_cable[0] == leaf && m->no_cable[1] == s)
		return 0;
	return m->parallel - (m->one_cable[0] == leaf && m->one_cable[1] == s);
}

static inline void made_switch_head(
	FILE *out, uint64_t guid, const char *name, int number, int device)
{
	fprintf(out,
		"\nvendid=0x2c9\ndevid=0x%x\nsysimgguid=0x%" PRIx64 "\nswitchguid=0x%" PRIx64
		"(%" PRIx64 ")\nSwitch\t254 \"S-%016" PRIx64
		"\"\t\t# \"%s%d\" enhanced port 0 lid %d lmc 0\n",
		(unsigned)device, guid, guid, guid, guid, name, number, 1 + number % 40000);
}

static inline void made_to_switch(FILE *out, int port, uint64_t guid, int peer_port,
	const char *name, int number, const char *rate)
{
	fprintf(out, "[%d]\t\"S-%016" PRIx64 "\"[%d]\t\t# \"%s%d\" lid %d %s\n", port, guid,
		peer_port, name, number, 1 + number % 40000, rate);
}

/* A leaf's hosts stand on ports 1.., its spines behind them. */
static inline void made_write_leaf(const struct made *m, int leaf, FILE *out)
{
	int first = leaf / m->rails * m->down;
	made_switch_head(out, MADE_LEAF + (unsigned)leaf, "leaf", leaf, 0xd2f0);
	for (int i = 0; i < m->down && first + i < m->hosts; i++) {
		char name[64];
		/* The HCA that has this place: a swap is its own reverse. */
		int c = made_place(m, (first + i) * m->rails + leaf % m->rails);
		made_name(m, c, name, sizeof(name));
		fprintf(out, "[%d]\t\"H-%016" PRIx64 "\"[1](%" PRIx64 ") \t\t# \"%s\" lid %d %s\n",
			i + 1, made_hca(c), made_hca(c) + 1, name, 1 + c % 40000, made_rate(m, c));
	}
	for (int s = 0; s < m->spines; s++)
		for (int k = 0; k < made_cables(m, leaf, s); k++)
			made_to_switch(out, m->down + 1 + s * m->parallel + k,
				MADE_SPINE + (unsigned)made_spine(m, leaf, s),
				1 + leaf / m->rails % m->pod * m->parallel + k, "spine",
				made_spine(m, leaf, s), m->rate);
}

static inline void made_write_spine(const struct made *m, int spine, FILE *out)
{
	int s = spine % m->spines, rail = spine / m->spines % m->rails;
	int pod = spine / m->spines / m->rails, leaves = made_groups(m);
	made_switch_head(out, MADE_SPINE + (unsigned)spine, "spine", spine, 0xd2f0);
	for (int i = 0; i < m->pod && pod * m->pod + i < leaves; i++) {
		int leaf = (pod * m->pod + i) * m->rails + rail;
		for (int k = 0; k < made_cables(m, leaf, s); k++)
			made_to_switch(out, 1 + i * m->parallel + k, MADE_LEAF + (unsigned)leaf,
				m->down + 1 + s * m->parallel + k, "leaf", leaf, m->rate);
	}
	for (int c = 0; c < m->cores; c++)
		made_to_switch(out, 200 + c, MADE_CORE + (unsigned)(s * m->cores + c),
			1 + pod * m->rails + rail, "core", s * m->cores + c, m->rate);
}

static inline void made_write(const struct made *m, FILE *out)
{
	int groups = made_groups(m), pods = (groups + m->pod - 1) / m->pod;
	fprintf(out, "#\n# Topology file: made\n#\n");
	for (int l = 0; l < groups * m->rails; l++)
		made_write_leaf(m, l, out);
	for (int s = 0; s < pods * m->rails * m->spines; s++)
		made_write_spine(m, s, out);
	for (int c = 0; c < m->spines * m->cores; c++) {
		made_switch_head(out, MADE_CORE + (unsigned)c, "core", c, 0xd2f0);
		for (int p = 0; p < pods * m->rails; p++)
			made_to_switch(out, 1 + p,
				MADE_SPINE + (unsigned)(p * m->spines + c / m->cores),
				200 + c % m->cores, "spine", p * m->spines + c / m->cores, m->rate);
	}
	for (int c = 0; c < m->hosts * m->rails; c++) {
		char name[64];
		int place = made_place(m, c), leaf = made_leaf(m, place);
		made_name(m, c, name, sizeof(name));
		fprintf(out,
			"\nvendid=0x2c9\ndevid=0x101b\nsysimgguid=0x%" PRIx64 "\ncaguid=0x%" PRIx64
			"\nCa\t1 \"H-%016" PRIx64 "\"\t\t# \"%s\"\n[1](%" PRIx64
			") \t\"S-%016" PRIx64 "\"[%d]\t\t# lid %d lmc 0 \"leaf%d\" lid %d %s\n",
			made_hca(c), made_hca(c), made_hca(c), name, made_hca(c) + 1,
			(uint64_t)(MADE_LEAF + (unsigned)leaf), made_leaf_port(m, place),
			1 + c % 40000, leaf, 1 + leaf % 40000, made_rate(m, c));
	}
}

/* 10,000 hosts of eight rails: what a large site has. */
static inline struct made made_large(void)
{
	struct made m = made_small();
	m.hosts = 10000;
	m.rails = 8;
	m.down = 32;
	m.pod = 32;
	m.spines = 32;
	m.parallel = 1;
	m.cores = 32;
	m.rate = "4xNDR";
	return m;
}

#endif
