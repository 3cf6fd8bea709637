/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must be equal before figures of several runs are like for like. One list for all who ask:
 * `compare` refuses where a fact that counts for it differs, and an overlaid report lists every
 * fact. Names are those that `compare --allow` takes.
 */
#ifndef REPORTS_ALIKE_H
#define REPORTS_ALIKE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/** So many runs are held side by side. */
#define ALIKE_MAX 8

/** A fact that is not the same in all runs. */
struct alike_fact {
	const char *name;       /**< "cpu.model", "rdma[0].fw", "params.mtu", "where" */
	long host;              /**< place in system.hosts; -1: no host's */
	bool judged;            /**< compare refuses over it; the others are only told */
	const json_t *const *v; /**< by run; NULL: absent */
	const bool *has;        /**< by run; false: the run has no such thing, and takes no part */
};

/** Called for each such fact, in order. @return true: enough, no more are asked for */
typedef bool alike_visit(void *arg, const struct alike_fact *f);

/**
 * Hosts, processors, devices with their ports, kernels, libraries: what `compare` judges. Hosts and
 * devices are met by their place; what is beyond the fewest is left out, their number is a fact.
 * @param n documents, 2 to ALIKE_MAX
 */
void alike_systems(const json_t *const *docs, size_t n, alike_visit *visit, void *arg);
/**
 * The rest of a document's facts, which are told and not judged: versions and builds of
 * fabricbench, operating systems, memory, the environment, the command's options. Addresses, names
 * and what only says where output goes are none.
 */
void alike_settings(const json_t *const *docs, size_t n, alike_visit *visit, void *arg);
/** The same for objects of any facts: OF.KEY for every key of any of them; a run whose object is
 * NULL takes no part. */
void alike_objects(const char *of, const json_t *const *o, size_t n, alike_visit *visit, void *arg);
/** Is this option of a command or plan one of those settings? */
bool alike_is_setting(const char *option);
/**
 * Results of one case and metric: the kind of place, unit, sense and parameters (judged; those
 * that the first has), the load, and what was found on the way: the library behind a collective,
 * each rail's device, firmware, link layer, GID type and MTU.
 * @param results by run; NULL: the run has none
 */
void alike_results(const json_t *const *results, size_t n, alike_visit *visit, void *arg);
/** Results of two launches of one side, whose values are taken together: the same facts, all of
 * them judged, and the parameters that either has. */
void alike_launches(const json_t *first, const json_t *other, alike_visit *visit, void *arg);
/** A fact of two, for people: "kernel.release: "6.1" against "6.2"", "parameter mtu: 1024 against
 * absent", "measured on lab against hardware". Long values are cut. @return buf */
const char *alike_words(const struct alike_fact *f, char *buf, size_t len);

#endif
