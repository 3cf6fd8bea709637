/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of switch configurations share: values of a JSON file, each checked, with the
 * place of the first one that cannot be right; and what the checks share. */
#ifndef VERBS_LOSSLESS_SWITCH_PRIV_H
#define VERBS_LOSSLESS_SWITCH_PRIV_H

#include <jansson.h>

#include "verbs/lossless/switch.h"

struct switch_reader {
	struct switch_facts *s;
	const char *name; /**< of the file */
	struct fb_err *e; /**< filled once; nothing is read after */
	json_t *index;    /**< port name -> its number */
};
/** May reading go on? */
bool switch_ok(const struct switch_reader *r);
/** Record "file: PLACE: why". */
void switch_bad(struct switch_reader *r, const char *place, const char *fmt, ...) FB_PRINTF(3, 4);
/** obj[key], which must be an object; NULL: not there, or wrong (recorded). @param place of obj */
const json_t *switch_object(
	struct switch_reader *r, const json_t *obj, const char *key, const char *place);
/** A whole number, or a text that is one, within min..max. @return def when it is not there */
int64_t switch_number(struct switch_reader *r, const json_t *obj, const char *key, int64_t min,
	int64_t max, int64_t def, const char *place);
/** Copy a text (numbers too). @return false: not there; longer than the place for it is an error */
bool switch_text(struct switch_reader *r, const json_t *obj, const char *key, char *buf, size_t len,
	const char *place);
/** Name the switch after obj["hostname"]; an empty one names nobody: the file's name stays. */
void switch_host(struct switch_reader *r, const json_t *obj, const char *place);
/** "3,4", "3-4", "0,2-4" into bits; 0 to max, at most 63. @return 0 on an error too */
uint64_t switch_bits(struct switch_reader *r, const char *text, int max, const char *place);
/** Make room for the ports that are keys of obj, those that `take` accepts; NULL: all. */
void switch_add_ports(
	struct switch_reader *r, const json_t *obj, bool (*take)(const char *), const char *place);
/** Would it make more objects and values of the text than any switch has? */
bool switch_too_many(const char *text, size_t len);
/** NULL: not a port of this switch */
struct switch_port *switch_find_port(const struct switch_reader *r, const char *name);
/** A port about which nothing is known. */
void switch_port_none(struct switch_port *p, const char *name);

void switch_read_sonic(struct switch_reader *r, const json_t *root);
void switch_read_nvue(struct switch_reader *r, const json_t *root);
/** Is it the name of a port of NVIDIA's, or of a range of them? */
bool switch_is_swp(const char *name);
/** NVIDIA's interfaces with ranges ("swp1-4") taken apart. @return to be freed; NULL: none */
json_t *switch_port_by_port(struct switch_reader *r, const json_t *interface);
/** Does it look like one? */
bool switch_is_sonic(const json_t *root);
bool switch_is_nvue(const json_t *root);
/** Shares of the queues that are not strict, from their weights. */
void switch_shares(struct switch_port *p);

/* ---- checks ---------------------------------------------------------------------------------- */

/** Is the section in the file? Else f is a skip that names it. */
bool switch_need(const struct switch_input *in, enum switch_section s, struct fb_finding *f);
/** Classes of RoCE that are lossless here: those of the profile's DSCPs, else all. 0: none, and f
 * is a skip. */
unsigned switch_roce(const struct switch_input *in, struct fb_finding *f);
bool switch_sonic_format(const struct switch_input *in);
/** Is any class led to a queue? */
bool switch_has_queues(const struct switch_port *p);
/** The other end of the port's cable among the switches given; NULL: it is not there. */
const struct switch_port *switch_peer(
	const struct switch_input *in, const struct switch_facts **sw);
/** Judge each class of switch_roce() by `one`, and keep the worst; what is alike is joined. */
void switch_each_class(const struct switch_input *in,
	void (*one)(const struct switch_input *, int c, struct fb_finding *), struct fb_finding *f);
#define SWITCH_PROFILE(in) ((in)->profile->name[0] ? (in)->profile->name : "the profile")

void switch_s01(const struct switch_input *in, struct fb_finding *f);
void switch_s02(const struct switch_input *in, struct fb_finding *f);
void switch_s03(const struct switch_input *in, struct fb_finding *f);
void switch_s04(const struct switch_input *in, struct fb_finding *f);
void switch_s05(const struct switch_input *in, struct fb_finding *f);
void switch_s06(const struct switch_input *in, struct fb_finding *f);
void switch_s07(const struct switch_input *in, struct fb_finding *f);
void switch_s08(const struct switch_input *in, struct fb_finding *f);
void switch_s09(const struct switch_input *in, struct fb_finding *f);
void switch_s10(const struct switch_input *in, struct fb_finding *f);
void switch_s11(const struct switch_input *in, struct fb_finding *f);
void switch_s12(const struct switch_input *in, struct fb_finding *f);

#endif
