/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Switches as their configuration tells them: SONiC's config_db.json and what NVIDIA's `nv show`
 * prints as JSON become one model, port by port, and the checks S01-S12 look at nothing else. What
 * a file does not tell is -1, empty or a section that is not there, never a default value, except
 * where the switch's own documentation names the default and the model says so.
 */
#ifndef VERBS_LOSSLESS_SWITCH_H
#define VERBS_LOSSLESS_SWITCH_H

#include "bench/core/check.h"
#include "bench/core/opt.h"
#include "verbs/lossless/profile.h"

struct fb_doc;

#define SWITCH_CLASSES   8 /* classes, priority groups, queues and PFC priorities: 0 to 7 */
#define SWITCH_MAX_PORTS 2048
#define SWITCH_MAX_BYTES (16u << 20)
/* 2048 ports have some 20 objects and 120 values each. */
#define SWITCH_MAX_OBJECTS 100000u
#define SWITCH_MAX_VALUES  500000u

/** What a file may or may not hold; each format has its own name for it. */
enum switch_section {
	SWITCH_PORTS,
	SWITCH_BINDINGS,    /**< which map a port uses */
	SWITCH_DSCP,        /**< DSCP to class */
	SWITCH_CLASS_QUEUE, /**< class to queue */
	SWITCH_CLASS_GROUP, /**< class to priority group */
	SWITCH_PFC,
	SWITCH_GROUPS, /**< buffer profile of a priority group */
	SWITCH_BUFFERS,
	SWITCH_POOLS,
	SWITCH_CABLES,
	SWITCH_QUEUES, /**< what a queue uses of WRED and scheduler profiles */
	SWITCH_WRED,
	SWITCH_SCHEDULERS,
	SWITCH_WATCHDOG,
	SWITCH_NEIGHBOURS,
	SWITCH_SECTIONS
};

/** Buffer of a priority group. */
struct switch_buffer {
	char name[64];       /**< empty: the group has none in the file */
	bool missing;        /**< named, but there is no such profile */
	bool lossless;       /**< has headroom */
	bool calculated;     /**< the switch reckons it from speed, cable length and MTU */
	int64_t size, xon;   /**< bytes; -1 not told */
	int64_t headroom;    /**< bytes after the pause was asked for; -1 not told */
	int64_t starts_at;   /**< bytes in the group at which a pause is asked for; -1 not told */
	char starts_how[96]; /**< how that was reckoned, or why it was not */
	int64_t pool_shared; /**< headroom that all ports share; -1: none, 0: not told */
};
/** WRED and ECN of a queue. */
struct switch_wred {
	char name[64];
	bool missing, marks; /**< marks: ECN is on for packets as RoCE sends them */
	char ecn[64];        /**< as the file says it */
	int64_t kmin, kmax;  /**< bytes; -1 not told */
	int pmax;            /**< per cent; -1 not told */
};
struct switch_scheduler {
	char name[64];
	bool known, strict;
	int weight;
	int share; /**< per cent of what strict queues leave, rounded; -1 not told */
};
struct switch_watchdog {
	bool on;
	char action[16];
	int64_t detect_ms, restore_ms; /**< -1 not told */
	int watched; /**< PFC priorities it looks at, bits; -1: all that have PFC */
};
struct switch_port {
	char name[64], alias[64];
	bool used;               /**< administratively up */
	int64_t speed_mbps, mtu; /**< -1 not told */
	bool mtu_default;        /**< not in the file: the switch's documented default */
	int64_t cable_m;         /**< -1 not told */
	char neighbour[64], neighbour_port[64];
	char neighbour_descr[64]; /**< LLDP: how that port is described, at times by its name */
	char dscp_map[64];        /**< name of the map; empty: none is bound */
	bool dscp_missing;        /**< bound, but there is no such map */
	char queue_map[64], group_map[64]; /**< names of the other maps; empty: none, or no names */
	int16_t dscp_class[64];
	int16_t class_queue[SWITCH_CLASSES], class_group[SWITCH_CLASSES]; /**< -1 not mapped */
	int16_t pfc_queue[SWITCH_CLASSES], pfc_group[SWITCH_CLASSES];     /**< by PFC priority */
	int pfc;                                     /**< bits by priority; -1 not told */
	bool pfc_one_way;                            /**< only sent, or only obeyed */
	int pause;                                   /**< global pause: 1 on, 0 off, -1 not told */
	struct switch_buffer buffer[SWITCH_CLASSES]; /**< by priority group */
	struct switch_wred wred[SWITCH_CLASSES];     /**< by queue */
	struct switch_scheduler scheduler[SWITCH_CLASSES]; /**< by queue */
	struct switch_watchdog watchdog;
};

/** How a vendor's switch is spoken of and to. */
struct switch_vendor {
	const char *format;                    /**< "SONiC config_db.json" */
	const char *sections[SWITCH_SECTIONS]; /**< their names in the file */
	const char *class_word, *queue_word;   /**< "class" and "queue"; "switch priority", ... */
};
extern const struct switch_vendor switch_sonic, switch_nvue;

struct switch_facts {
	const struct switch_vendor *vendor;
	char name[64]; /**< host name, else the file's */
	bool named;    /**< the file tells the host name */
	char path[256];
	char lldp[256]; /**< the file of its neighbours; empty: the same, or none */
	bool has[SWITCH_SECTIONS];
	bool whole;       /**< the whole configuration: what is not there is not configured */
	unsigned implied; /**< sections (bits) filled by what NVIDIA documents for `nv set qos roce`
			   */
	int64_t poll_ms;  /**< watchdog; -1 not told */
	bool group_seen[SWITCH_CLASSES]; /**< some port has a buffer for this group */
	struct switch_port *port;
	int ports;
};

/**
 * Read one file; its format is told by what is in it.
 * @return 0; -EINVAL with "file: PLACE: why", -ENOENT, -EFBIG (exit 2); -ENOMEM
 */
int switch_read(const char *path, struct switch_facts *s, struct fb_err *e) FB_MUST_CHECK;
/** The same from memory; `name` stands in messages and is the switch's name if none is told. */
int switch_parse(const char *text, size_t len, const char *name, struct switch_facts *s,
	struct fb_err *e) FB_MUST_CHECK;
void switch_free(struct switch_facts *s);
/** Where one end of a cable names the other and the other names none, note it there too. A port
 * that the other end does not know by its identity, and does by its description, is named by that.
 */
void switch_pair(struct switch_facts *sw, int n);
/** The same host, also where one name is "leaf01" and the other "leaf01.example.com"? */
bool switch_same_host(const char *a, const char *b);
/** The port of s that has this name or alias; NULL: none */
struct switch_port *switch_named_port(const struct switch_facts *s, const char *name);

/** Classes whose queue and priority group both have the same PFC priority. @return bits by class */
unsigned switch_lossless(const struct switch_port *p);
/** PFC priority of a class's queue and group; -1: none */
int switch_pfc_priority(const struct switch_port *p, int c);

struct switch_input {
	const struct switch_facts *sw;
	const struct switch_port *port;
	const struct switch_facts *const *all; /**< every switch given */
	int n_all;
	const struct node_facts *const *hosts; /**< nodes given by --others */
	int n_hosts;
	const struct profile *profile;
};
struct switch_check {
	struct fb_check_def def;
	void (*run)(const struct switch_input *in, struct fb_finding *f);
};
extern const struct switch_check switch_checks[]; /**< S01..S12, then def.id NULL */

/** Run all checks on every used port of all[i]: findings as checks of the document. A switch
 * without a used port gives one skip for each check. */
void switch_run(const struct switch_facts *const *all, int n_all,
	const struct node_facts *const *hosts, int n_hosts, const struct profile *profile,
	struct fb_doc *doc);

/** Of `check switch`: a row of the group's table. */
int check_switch_run(int argc, char **argv);
const struct fb_opt_spec *check_switch_spec(void);

#endif
