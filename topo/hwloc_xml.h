/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hwloc's XML files: what a file must be before hwloc sees it, and what of it becomes the model.
 */
#ifndef TOPO_HWLOC_XML_H
#define TOPO_HWLOC_XML_H

#include "topo/topo_priv.h"

/**
 * Refuse what hwloc must not see: no hwloc XML, format 3, entities, and more of anything than a
 * machine has (hwloc trusts the numbers in a file and takes memory by them).
 * @param xml  text[len] is '\0'
 * @param what the file's name, for messages
 * @return 0; -EINVAL, -ENOTSUP, -EFBIG (exit 2); -ENOMEM (exit 3)
 */
int topo_check_hwloc_xml(
	const char *xml, size_t len, const char *what, struct fb_err *e) FB_MUST_CHECK;

/**
 * Let hwloc read a checked text: first in a child process with bounded time and memory, for hwloc
 * trusts its files and may crash on one that is wrong in a way the check does not know.
 * @return 0; -EINVAL: hwloc refuses it or dies of it (exit 2); -ENOMEM, fork's errno (exit 3)
 */
int topo_import_hwloc_xml(const char *xml, size_t len, const char *what, struct hwloc_topology **hw,
	struct fb_err *e) FB_MUST_CHECK;

/** topo_load_hwloc_xml() of a text that is in memory already. */
int topo_parse_hwloc_xml(const char *xml, size_t len, const char *what, struct topo **out,
	struct fb_err *e) FB_MUST_CHECK;

/** NVLink and xGMI out of hwloc's bandwidth matrices; after GPUs are known. Each PCI object's
 * userdata holds its index in pci[], plus one. @return 0 or -ENOMEM */
int topo_read_fast(struct topo *t);

/** A PCI object's index in pci[], from its userdata; TOPO_UNKNOWN for others. */
int topo_hwloc_index(const void *userdata);

#endif
