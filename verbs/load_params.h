/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `verbs load` and `verbs incast` ask for beyond a connection: the background flow and the
 * probe's pace, as options, as parameters, and as they travel to the server.
 */
#ifndef VERBS_LOAD_PARAMS_H
#define VERBS_LOAD_PARAMS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/core/err.h"
#include "bench/core/opt.h"
#include "verbs/ops.h"

struct verbs_params;
struct verbs_options;

enum verbs_direction { VERBS_OUT, VERBS_IN, VERBS_BOTH };
extern const char *const verbs_direction_names[]; /**< "out", "in", "both", NULL */

/** Options of `verbs load` beside those of a connection. */
struct verbs_load_options {
	uint64_t interval_ns;
	double bg_rate;
	uint64_t bg_size;
	int bg_op;
	int bg_direction;
	int bg_traffic_class;
	int bg_sl;
	int bg_depth;
};
extern const struct fb_opt verbs_load_extra_opts[];

/** What one end of an incast does. */
enum verbs_role { VERBS_ROLE_SENDER, VERBS_ROLE_VICTIM };

struct verbs_load_params {
	uint64_t interval_ns; /**< of the probe; 0: by device */
	uint64_t bg_rate;     /**< bytes/s; 0: as fast as it goes */
	uint64_t bg_size;
	enum verbs_op bg_op;
	enum verbs_direction bg_direction; /**< where the bytes flow, seen from the client */
	int bg_traffic_class, bg_sl;
	int bg_depth;
	enum verbs_role role;
};
/** Time between two probes where none was given: NICs, and Soft-RoCE. */
#define VERBS_PROBE_NS          100000u
#define VERBS_PROBE_NS_SOFTWARE 2000000u

/** @return 0, or -EINVAL (exit 2) */
int verbs_load_from_options(struct verbs_load_params *l, const struct verbs_load_options *o,
	const struct verbs_params *p, struct fb_err *e) FB_MUST_CHECK;
/** All parameters of `verbs load`: the probe's as those of a latency test (64 bytes unless --size
 * says otherwise), and the background's. @return 0, or -EINVAL (exit 2) */
int verbs_load_params(struct verbs_params *p, const struct verbs_options *o,
	const struct verbs_load_options *lo, struct fb_err *e) FB_MUST_CHECK;
json_t *verbs_load_to_json(const struct verbs_load_params *l);
/** @return 0, or -EPROTO naming the key that is missing or out of range */
int verbs_load_from_json(
	struct verbs_load_params *l, const json_t *j, struct fb_err *e) FB_MUST_CHECK;

/**
 * Parameters of the background's own connection, from those of the session. `software`: this end's
 * NIC is its CPU, which then must not be spent on polling.
 */
void verbs_load_bg_params(struct verbs_params *bg, const struct verbs_params *p, bool software);

/** Does this end post the background's requests? The reader does, elsewhere the writer. */
bool verbs_load_issues(const struct verbs_load_params *l, bool client);
/** Does this end consume receives of the background? */
bool verbs_load_consumes(const struct verbs_load_params *l, bool client);

#endif
