/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Made identities for a recording: the same real one always becomes the same made one of the same
 * kind, so that what is equal stays equal and what differs differs.
 */
#ifndef VERBS_LOSSLESS_TREE_ANON_H
#define VERBS_LOSSLESS_TREE_ANON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tree_anon {
	struct tree_anon_id {
		uint8_t from[20], to[20];
		size_t len;
	} * v;
	size_t n;
	bool failed; /**< no memory: nothing may be written any more */
};
void tree_anon_free(struct tree_anon *a);

/** A GID: zero stays; IPv4-mapped, link-local and global ones become others of their form. */
void tree_anon_gid(struct tree_anon *a, uint8_t raw[16]);
/** 6 or 20 bytes of a hardware address, 8 of a GUID: locally administered ones. */
void tree_anon_bytes(struct tree_anon *a, uint8_t *raw, size_t len);
/**
 * The text of a file by its name: GIDs, GUIDs and hardware addresses are replaced, "node_desc" and
 * other names become "". Others are left alone, but for hardware addresses known by now.
 * @return a new string (caller frees), NULL without memory
 */
char *tree_anon_text(struct tree_anon *a, const char *path, const char *text, size_t len);
/** Known hardware addresses inside text or bytes, written as 12 hex digits ("enx..."): in place. */
void tree_anon_in_place(const struct tree_anon *a, char *s, size_t len);
/** PCI configuration space: the Device Serial Number, which holds the hardware address, becomes 0.
 */
void tree_anon_config(uint8_t *config, size_t len);

#endif
