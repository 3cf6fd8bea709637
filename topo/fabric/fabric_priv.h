/* SPDX-License-Identifier: Apache-2.0 */
/* What the fabric's own files share: growth, lookups, lines of text, findings. */
#ifndef TOPO_FABRIC_FABRIC_PRIV_H
#define TOPO_FABRIC_FABRIC_PRIV_H

#include "topo/fabric/fabric.h"

/** Room for one more zeroed element behind the others: a pointer to it, NULL without memory. */
#define FABRIC_ADD(tab) fabric_add_to((void **)&(tab).v, &(tab).n, &(tab).cap, sizeof(*(tab).v))
void *fabric_add_to(void **v, size_t *n, size_t *cap, size_t size);

/** @return the value, -1: no such key */
int32_t fabric_map_get(const struct fabric_map *m, uint64_t key);
/** @return 0 or -ENOMEM */
int fabric_map_set(struct fabric_map *m, uint64_t key, int32_t value) FB_MUST_CHECK;
void fabric_map_free(struct fabric_map *m);
/** Key of a text; `salt` tells tables apart. */
uint64_t fabric_hash(const char *s, size_t len, uint64_t salt);

/** Find or make. @return index, -ENOMEM, -EFBIG */
int fabric_node_by_guid(struct fabric *f, uint64_t guid, enum fabric_kind kind);
int fabric_node_by_id(struct fabric *f, const char *id, size_t len, enum fabric_kind kind);
int fabric_port_of(struct fabric *f, int node, unsigned num);
/** The port with this GUID, or port `num` of the switch with it; -1: none. */
int fabric_find_port(const struct fabric *f, uint64_t guid, unsigned num);
int fabric_find_number(const struct fabric *f, int node, unsigned num);
int fabric_set_port_guid(struct fabric *f, int port, uint64_t guid) FB_MUST_CHECK;
/** Both ports are the ends of one cable; what contradicts that is kept as a conflict. */
int fabric_join(struct fabric *f, int a, int b, uint32_t line) FB_MUST_CHECK;
int fabric_conflict(struct fabric *f, int port, int first, int second, uint32_t line) FB_MUST_CHECK;
void fabric_set_name(struct fabric *f, int node, const char *s, size_t len);

/** Split "node3 mlx5_1", "node3-mlx5_1", "mlx5_1@node3". host has FABRIC_NAME bytes. @return false:
 * the description does not hold a host and the name of an HCA */
bool fabric_split_name(const char *name, char *host, char *hca, size_t hca_len);
/** "MT4129 ConnectX7   Mellanox Technologies", "" */
bool fabric_factory_name(const char *name);
/** Numbers inside are compared as numbers. */
int fabric_natural(const char *a, const char *b);

/** Steps of fabric_finish(). @return 0 or -ENOMEM */
int fabric_find_links(struct fabric *f);
int fabric_find_hosts(struct fabric *f);
int fabric_find_levels(struct fabric *f);
int fabric_find_rails(struct fabric *f);
int fabric_break_ties(struct fabric *f); /**< the end of fabric_find_rails() */

/* ---- lines ----------------------------------------------------------------------------------- */

#define FABRIC_LINE 1024

struct fabric_reader {
	struct fabric *f;
	const char *name; /**< of the file, for messages */
	const char *at, *end;
	const char *from; /**< the line at hand in the file's own text; NULL: that has colours */
	uint32_t line;
	bool cut; /**< the line at hand has no end: the file may be cut off */
	struct fb_err *e;
	char text[FABRIC_LINE]; /**< the line at hand, without its end */
};
/** @return 1; 0 at the end; -EINVAL: a line too long, or bytes that are no text */
int fabric_line(struct fabric_reader *r);
/** "name:line: why", exit 2. @return -EINVAL */
int fabric_bad(struct fabric_reader *r, const char *fmt, ...) FB_PRINTF(2, 3);
int fabric_no_memory(struct fabric_reader *r, int rc);
/** What the file is, where it is not what was asked for: fills the hint. */
void fabric_hint_kind(struct fabric_reader *r);

/** Each moves *s past what it took, or leaves it and returns false. */
bool fabric_take(const char **s, const char *word);
bool fabric_take_number(const char **s, unsigned max, unsigned *v);
bool fabric_take_hex(const char **s, uint64_t *v); /**< with or without 0x */
void fabric_take_space(const char **s);
/** "text" in double quotes; *text, *len point into the line. */
bool fabric_take_quoted(const char **s, const char **text, size_t *len);

int fabric_parse_ports(struct fabric_reader *r); /**< ibnetdiscover -p */

/* ---- judging --------------------------------------------------------------------------------- */

/* Rows of one check: what goes beyond them is told in one row, so that no file makes a document
 * without bounds. */
#define FABRIC_MAX_ROWS 1000

enum fabric_check {
	FAB_RAIL,
	FAB_EXPECT,
	FAB_SPEED,
	FAB_WIDTH,
	FAB_STATE,
	FAB_COUNTERS,
	FAB_GUID,
	FAB_NAMES,
	FAB_UPLINKS,
	FAB_PARALLEL,
	FAB_ADJACENCY,
	FAB_BLOCKING,
	FABRIC_CHECKS
};
struct fabric_judge {
	struct fabric *f;
	const struct fabric_rules *rules;
	struct fb_doc *doc;
	size_t rows[FABRIC_CHECKS]; /**< findings so far, of any state */
	size_t bad[FABRIC_CHECKS];  /**< warnings and failures */
	enum fb_check_state worst_hidden[FABRIC_CHECKS];
	bool *listed;   /**< by port: the cabling list rules here */
	bool *short_up; /**< by node: a leaf of which fab.uplinks spoke */
	bool failed;    /**< no memory */
};
/** Start a finding / keep it. */
void fabric_start(struct fabric_judge *j, enum fabric_check c, struct fb_finding *f,
	const char *fmt, ...) FB_PRINTF(4, 5);
void fabric_keep(struct fabric_judge *j, enum fabric_check c, const struct fb_finding *f);
/** One row for a check that found nothing bad, or could not look. */
void fabric_sum(struct fabric_judge *j, enum fabric_check c, enum fb_check_state s, const char *fmt,
	...) FB_PRINTF(4, 5);

void fabric_judge_rails(struct fabric_judge *j);
void fabric_judge_list(struct fabric_judge *j);
void fabric_judge_links(struct fabric_judge *j); /**< speed and width */
void fabric_judge_states(struct fabric_judge *j);
void fabric_judge_counters(struct fabric_judge *j);
void fabric_judge_guids(struct fabric_judge *j);
void fabric_judge_names(struct fabric_judge *j);
void fabric_judge_leaves(struct fabric_judge *j); /**< uplinks, parallel, adjacency, blocking */

/** What leads away from a switch. Rates are of the best that each link could do. */
struct fabric_ways {
	int down, up; /**< cables to hosts, to switches of its level or above */
	double down_gbps, up_gbps;
	int up_to; /**< switches that the cables upward reach */
};
void fabric_ways(const struct fabric *f, int node, struct fabric_ways *w);
/** Down over up; 0: no way up. By rate where it is told, else by cables. */
double fabric_blocking(const struct fabric_ways *w);
/** What belongs on a switch: names of rails, "mlx5_0", or "" */
void fabric_leaf_rails(const struct fabric *f, int leaf, char *buf, size_t len);

#define FABRIC_PORTS(f, n, p) for (int p = (f)->node.v[n].first; p >= 0; p = (f)->port.v[p].next)

#endif
