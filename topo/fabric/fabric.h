/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An InfiniBand fabric as its dumps or the live subnet tell it: nodes, ports and what joins them,
 * and what is wrong with it.
 *
 * Nodes are known by GUID, never by their description, which is only what is shown. Arrays grow
 * while a fabric is read; indices, not pointers, are kept. What a source does not tell is 0 or -1
 * and is never judged.
 */
#ifndef TOPO_FABRIC_FABRIC_H
#define TOPO_FABRIC_FABRIC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/check.h"
#include "bench/core/err.h"

struct fb_doc;

/* A dump of 10,000 hosts with eight HCAs each is 45 MB. */
#define FABRIC_MAX_BYTES (128u << 20)
#define FABRIC_MAX_NODES 1000000
#define FABRIC_MAX_PORT  254 /* IBTA 1.4, 4.1.3: a port number is 8 bits, 255 means all */
#define FABRIC_NAME      65  /* NodeDescription is 64 bytes */
#define FABRIC_LABEL     128 /* fabric_label() */

enum fabric_kind { FABRIC_UNKNOWN, FABRIC_CA, FABRIC_SWITCH, FABRIC_ROUTER };
/** PortInfo's PortState; 0: not told. */
enum fabric_state { FABRIC_NO_STATE, FABRIC_DOWN, FABRIC_INIT, FABRIC_ARMED, FABRIC_ACTIVE };

/** A lane's speed: 0 not told; 1..9 SDR to XDR, in order; FABRIC_CODE | n: the code n, for which
 * there is no name here. */
enum fabric_speed {
	FABRIC_NO_SPEED,
	FABRIC_SDR,
	FABRIC_DDR,
	FABRIC_QDR,
	FABRIC_FDR10,
	FABRIC_FDR,
	FABRIC_EDR,
	FABRIC_HDR,
	FABRIC_NDR,
	FABRIC_XDR,
	FABRIC_SPEEDS,
	FABRIC_CODE = 0x100
};

/** PortCounters, by the names of infiniband-diags. */
enum fabric_counter {
	FABRIC_SYMBOL,
	FABRIC_RECOVERY,
	FABRIC_DOWNED,
	FABRIC_RCV,
	FABRIC_REMOTE,
	FABRIC_RELAY,
	FABRIC_DISCARD,
	FABRIC_XMIT_CONSTRAINT,
	FABRIC_RCV_CONSTRAINT,
	FABRIC_INTEGRITY,
	FABRIC_OVERRUN,
	FABRIC_VL15,
	FABRIC_WAIT,
	FABRIC_XMIT_PKTS,
	FABRIC_RCV_PKTS,
	FABRIC_COUNTERS
};
struct fabric_counters {
	uint32_t port;
	uint32_t told; /**< bit by enum fabric_counter */
	uint64_t v[FABRIC_COUNTERS];
};

struct fabric_port {
	uint64_t guid; /**< of CA ports; 0 not told */
	int32_t node;
	int32_t next; /**< next port of the node, -1 */
	int32_t peer; /**< port at the other end, -1 none */
	int32_t counters;
	int32_t hca; /**< index in hca[], -1 */
	uint32_t line;
	uint16_t lid;
	uint16_t speed, max_speed; /**< enum fabric_speed */
	uint8_t num;
	uint8_t width, max_width; /**< lanes; 0 not told, FABRIC_BAD_WIDTH: a code without name */
	uint8_t state;
};
#define FABRIC_BAD_WIDTH 255

struct fabric_node {
	uint64_t guid; /**< 0: not told, when named by an id (ibsim), else really zero */
	uint64_t sys_guid;
	uint32_t vendor, device;
	int32_t first; /**< port, -1 */
	int32_t level; /**< switches: 1 leaf, 2 spine, ...; 0: no host is below */
	int32_t host;  /**< CAs: index in host[] */
	int32_t part;  /**< number of the connected part that it is in */
	uint32_t line;
	uint16_t ports; /**< that it has; 0 not told */
	uint16_t lid;
	uint8_t kind;
	bool by_id;       /**< known by a text (ibsim) or a LID, not by a GUID */
	bool ids;         /**< vendor and device were told, be they 0 */
	bool defined;     /**< has a block of its own */
	bool aggregation; /**< SHARP's aggregation node inside a switch */
	bool factory;     /**< its description is the maker's */
	bool shared_name; /**< another node has the same description */
	bool ambiguous;   /**< another HCA claims the same place in the same host */
	char name[FABRIC_NAME];
};

/** A CA port that is joined to a switch. */
struct fabric_hca {
	int32_t port, node, host;
	int32_t leaf;   /**< node of the switch */
	int32_t rail;   /**< index in rail[], -1: cannot be told */
	int32_t target; /**< switch where it belongs: leaf, or another; -1: cannot be told */
};
struct fabric_host {
	char name[FABRIC_NAME];
	int32_t first, n; /**< in hca[], which is sorted by host */
};
struct fabric_rail {
	char name[40]; /**< "mlx5_0", "HCA-1", "mlx5_0/2": what the description calls the HCA */
	int32_t n;     /**< HCAs */
};
struct fabric_link {
	int32_t a, b; /**< ports; a is the switch's, or the nearer to the hosts */
};
/** What the file says twice, of a port or a node. */
struct fabric_conflict {
	int32_t port, first, second; /**< port -1: the block of node `first` stands twice */
	uint32_t line;
};

struct fabric_map {
	uint64_t *key;
	int32_t *value;
	size_t size, n;
};
#define FABRIC_TAB(type, name) \
	struct {               \
		type *v;       \
		size_t n, cap; \
	} name

struct fabric {
	FABRIC_TAB(struct fabric_node, node);
	FABRIC_TAB(struct fabric_port, port);
	FABRIC_TAB(struct fabric_counters, counters);
	FABRIC_TAB(struct fabric_conflict, conflict);
	FABRIC_TAB(struct fabric_hca, hca);
	FABRIC_TAB(struct fabric_host, host);
	FABRIC_TAB(struct fabric_rail, rail);
	FABRIC_TAB(struct fabric_link, link);
	struct fabric_map by_guid, by_port_guid, by_number, by_id, by_lid;
	int parts;   /**< connected parts that hold a link */
	int levels;  /**< of switches */
	bool states; /**< the source tells port states */
	bool maxima; /**< the source tells what ports could do */
	bool counted;
	bool port_nodes; /**< the source names HCA ports: each is a node of its own */
	bool anonymous;
	char source[128];    /**< "ibnetdiscover", ... */
	unsigned unplaced;   /**< counters of ports that are not in the fabric */
	unsigned unresolved; /**< ends told by a LID that a line should have, and none has */
	unsigned noise;      /**< lines of a file that are its program's warnings */
	unsigned silent;     /**< nodes that did not answer for their counters */
	unsigned bare;       /**< blocks of HCAs without a port: the file may be cut off */
};

struct fabric *fabric_new(void);
void fabric_free(struct fabric *f);

/* ---- readers: each adds to f. @return 0; -EINVAL with "name:line: why" (exit 2); -ENOMEM ----- */

/** ibnetdiscover's output, plain, -g or -p, and ibsim's net files. */
int fabric_parse_discover(struct fabric *f, const char *text, size_t len, const char *name,
	struct fb_err *e) FB_MUST_CHECK;
/** iblinkinfo's output, with or without -l. */
int fabric_parse_linkinfo(struct fabric *f, const char *text, size_t len, const char *name,
	struct fb_err *e) FB_MUST_CHECK;
/** ibqueryerrors' or perfquery's output (-x or not); after fabric_finish(). */
int fabric_parse_counters(struct fabric *f, const char *text, size_t len, const char *name,
	struct fb_err *e) FB_MUST_CHECK;
/**
 * The subnet of a local HCA's port, by libibnetdisc, with its counters.
 * @param ca    device, NULL: the first with an active port
 * @param port  0: the first active one
 * @return 0; -EOPNOTSUPP (built without libibnetdisc), -ENOENT (library, device or permission is
 * missing): exit 77; -EIO: exit 3
 */
int fabric_read_live(
	struct fabric *f, const char *ca, int port, bool counters, struct fb_err *e) FB_MUST_CHECK;

/** After reading: kinds, links, hosts, levels, rails. @return 0, -ENOMEM; -EINVAL: no link (2) */
int fabric_finish(struct fabric *f, const char *name, struct fb_err *e) FB_MUST_CHECK;

/* ---- the cabling list ------------------------------------------------------------------------ */

struct fabric_end {
	int32_t node; /**< -1: not in the fabric */
	int16_t port; /**< 0: any */
	char *name;   /**< of a node that is not in the fabric, else NULL */
};
struct fabric_cable {
	struct fabric_end end[2];
	unsigned line;
};
struct fabric_list {
	FABRIC_TAB(struct fabric_cable, cable);
	const char *name;
};
/** A list of cables (its format: fabric_list_help), or a dump of a good day. Ends are looked up in
 * f, which is finished. @return as the readers */
int fabric_list_parse(const struct fabric *f, const char *text, size_t len, const char *name,
	struct fabric_list *l, struct fb_err *e) FB_MUST_CHECK;
void fabric_list_free(struct fabric_list *l);
extern const char fabric_list_help[];

/* ---- judging --------------------------------------------------------------------------------- */

struct fabric_rules {
	double blocking;                /**< the most that a leaf may have; 0: not given */
	const struct fabric_list *list; /**< NULL: none */
};
/** What there is to check; ends with id NULL. */
extern const struct fb_check_def fabric_checks[];
/** Judge f: findings become checks of doc, and its "fabric". @return 0 or -ENOMEM */
int fabric_judge(struct fabric *f, const struct fabric_rules *r, struct fb_doc *doc);
/** {source, switches, hosts, links, leaves[], rails[], ...}. New reference. */
json_t *fabric_json(const struct fabric *f);

/* ---- words ----------------------------------------------------------------------------------- */

/** "HDR", "code 16", "?". @return buf */
const char *fabric_speed_name(unsigned speed, char *buf, size_t len);
/** Data rate of a link in Gb/s; 0 where it is not told. */
double fabric_gbps(unsigned width, unsigned speed);
/** By name ("HDR"), by LinkSpeedActive or LinkSpeedExtActive. */
unsigned fabric_speed_of(const char *name, size_t len);
unsigned fabric_speed_of_codes(unsigned speed, unsigned ext, bool fdr10);
unsigned fabric_speed_of_gbps(double lane);
/** Lanes of PortInfo's code. */
unsigned fabric_width_of_code(unsigned code);
/** How a node is called: short and unmistakable. @return buf, FABRIC_LABEL bytes */
const char *fabric_label(const struct fabric *f, int node, char *buf);
/** "leaf0 port 4", "node3 mlx5_1". @return buf, FABRIC_LABEL bytes */
const char *fabric_port_label(const struct fabric *f, int port, char *buf);
extern const char *const fabric_counter_names[FABRIC_COUNTERS];

/** Of `topo fabric`. */
struct fb_opt_spec;
int fabric_run(int argc, char **argv);
const struct fb_opt_spec *fabric_spec(void);

#endif
