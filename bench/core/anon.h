/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --anonymous: a copy of a JSON value without what identifies a site. Known host names become
 * "host0", "host1", ...; MAC, IPv4, IPv6 addresses and GUIDs in any text become "[mac]", "[ip]",
 * "[guid]"; keys that hold nothing else (guid, mac, gids, serial, ...) are left out.
 */
#ifndef FB_CORE_ANON_H
#define FB_CORE_ANON_H

#include <jansson.h>
#include <stddef.h>

struct fb_anon {
	struct fb_anon_name {
		char *from, *to;
	} * v;
	size_t n;
};

/** Hide `name` (and its first label, when it is a full name) as `as`. Numeric addresses, loopback
 * names and "" need no hiding. @return 0 or -ENOMEM */
int fb_anon_hide(struct fb_anon *a, const char *name, const char *as);
/** The copy. New reference, NULL without memory. */
json_t *fb_anon_copy(const struct fb_anon *a, const json_t *j);
void fb_anon_free(struct fb_anon *a);

#endif
