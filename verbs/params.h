/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client asks for (options) and what both ends then run (parameters). The parameters travel
 * to the server as JSON; the server needs no options of its own and believes nothing it has not
 * checked.
 */
#ifndef VERBS_PARAMS_H
#define VERBS_PARAMS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/core/err.h"
#include "bench/core/opt.h"
#include "verbs/dev.h"
#include "verbs/load_params.h"
#include "verbs/memory.h"
#include "verbs/ops.h"

#define VERBS_MAX_SIZES 64
#define VERBS_MAX_QPS   1024
#define VERBS_MAX_DEPTH 8192
#define VERBS_MAX_MSG   (1ull << 30)
#define VERBS_AUTO      (-1)
/** Shortest window of the series of bytes over time. */
#define VERBS_MIN_WINDOW_NS 1000000u
/** Longest window and longest interval: a day. */
#define VERBS_MAX_TIME_NS 86400000000000ull
/** Highest rate, bytes/s: 100 Tb/s, so that arithmetic on bytes and ns stays far from its limits.
 */
#define VERBS_MAX_RATE 12500000000000ull

/** Options of `verbs latency` and `verbs bandwidth`. */
struct verbs_options {
	char *server;
	bool loopback;
	int port;
	char *token;
	uint64_t connect_timeout_ns;
	char *device;
	char *peer_device;
	int ib_port;
	int peer_ib_port;
	int gid_index;
	int peer_gid_index;
	int gid_type;
	int gid_family;
	char *gid;
	char *peer_gid;
	int vlan;
	bool rdma_cm;
	int pkey_index;
	char *pkey;
	char *op;
	char *transport;
	char *size;
	bool all;
	char *min_size;
	char *max_size;
	bool events;
	int inline_max;
	int mtu;
	int sl;
	int traffic_class;
	int flow_label;
	int hop_limit;
	int qp_timeout;
	int retry;
	int rnr_retry;
	char *numa;
	char *memory;
	/* bandwidth */
	int depth;
	int rx_depth;
	int qps;
	int post_list;
	int cq_mod;
	bool bidirectional;
	double rate;          /**< bytes/s of payload, 0: as fast as possible */
	uint64_t window_ns;   /**< of the series of bytes over time */
	uint64_t interval_ns; /**< latency: from the start of one iteration to the next */
};
/** Tables over struct verbs_options; the second is bandwidth's own. */
extern const struct fb_opt verbs_latency_opts[];
extern const struct fb_opt verbs_bandwidth_opts[];
extern const struct fb_opt verbs_load_opts[]; /**< of `verbs load`, beside load_params.h's */
/** verbs_load_opts for a command that decides some of them itself, or has a meaning of its own for
 * them: `but` ends with NULL. @param out has room for `cap` rows, the last of which ends it */
void verbs_opts_without(const char *const *but, struct fb_opt *out, size_t cap);

/** What both ends run. */
struct verbs_params {
	int bench; /**< enum verbs_bench_kind */
	int ops[VERBS_NUM_OPS];
	int nops;
	int transport;
	uint64_t sizes[VERBS_MAX_SIZES];
	int nsizes;
	int events;
	int inline_max; /**< VERBS_AUTO: as much as the device takes */
	int mtu;        /**< bytes, 0: the common active MTU */
	int sl, traffic_class, flow_label, hop_limit;
	int qp_timeout, retry, rnr_retry; /**< VERBS_AUTO: by driver */
	int depth, rx_depth, qps, post_list, cq_mod;
	int bidirectional;
	int loopback;
	int numa; /**< -1: the NIC's node; -2: off; else the node */
	int all_rails;
	/* for the server's side */
	char peer_device[256];
	int peer_ib_port, peer_gid_index;
	char peer_gid[64];        /**< address; empty: by type and family */
	int gid_type, gid_family; /**< the client's: the server takes one of the same; -1: any */
	int pkey_index;
	int pkey; /**< value; VERBS_AUTO: by index */
	int vlan; /**< 0: any */
	int rdma_cm;
	int memory;                    /**< enum verbs_memory */
	int gpu;                       /**< with VERBS_MEM_GPU */
	struct verbs_load_params load; /**< with VERBS_LOAD, VERBS_INCAST and VERBS_LOSS */
	uint64_t rate;                 /**< bytes/s of payload, each direction; 0: no limit */
	uint64_t window_ns;            /**< of the series of bytes over time */
	uint64_t interval_ns; /**< latency: from the start of one iteration to the next; 0: none */
};
#define VERBS_NUMA_AUTO (-1)
#define VERBS_NUMA_OFF  (-2)

/** From options to parameters, with every rule that needs no device. @return 0 or -EINVAL (exit 2)
 */
int verbs_params_from_options(struct verbs_params *p, const struct verbs_options *o,
	enum verbs_bench_kind bench, struct fb_err *e) FB_MUST_CHECK;
/**
 * Sizes: "64K"; "2,64,4K"; "2:64K" is every power of two from 2 to 64K (a limit that is none is
 * included too). In the order given; one that comes again, as where ranges meet, is left out and
 * told. @return how many, or -EINVAL
 */
int verbs_parse_sizes(const char *text, uint64_t *sizes, int max, struct fb_err *e) FB_MUST_CHECK;

/** The form in which a client sends them. @return new reference, NULL without memory */
json_t *verbs_params_to_json(const struct verbs_params *p);
/** @return 0, or -EPROTO with the key that is missing, of a wrong type or out of range */
int verbs_params_from_json(struct verbs_params *p, const json_t *j, struct fb_err *e) FB_MUST_CHECK;

/** What a client wants of its own devices. */
void verbs_params_want(
	const struct verbs_options *o, const struct verbs_params *p, struct verbs_dev_want *want);
/** And of the server's, which takes its own device where the client has named none. */
void verbs_params_peer_want(const struct verbs_params *p, const char *device, unsigned port,
	struct verbs_dev_want *want);

/**
 * What both ends must do alike, as each end does it: depths, moderation, direction, traffic class,
 * where the MTU comes from. The client's order settles them; this shows that the server has
 * understood it.
 * @return new reference
 */
json_t *verbs_params_settings(const struct verbs_params *p);
/** @return 0, or -EPROTO with the first that differs and both values */
int verbs_params_settings_fit(
	const struct verbs_params *p, const json_t *theirs, struct fb_err *e) FB_MUST_CHECK;

uint64_t verbs_params_max_size(const struct verbs_params *p);

#endif
