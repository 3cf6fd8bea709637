/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the NCCL XML reader share: the stream of tags (nccl_xml.c), what each tag means
 * (nccl_xml_tags.c), and the order and places that are known only at the end (nccl_xml_end.c).
 *
 * While a file is read, arrays stand in the file's order and every index means that order;
 * nccl_finish() brings them into the model's and rewrites the indices.
 */
#ifndef TOPO_NCCL_XML_H
#define TOPO_NCCL_XML_H

#include "topo/topo_priv.h"

/* NCCL's own limits are 576 devices of a kind and 640 children; beyond these a file is no node. */
#define NCCL_MAX_PCI   4096
#define NCCL_MAX_NETS  4096
#define NCCL_MAX_TAGS  65536
#define NCCL_MAX_FAST  16384
#define NCCL_MAX_DEPTH 64
#define NCCL_MAX_KEPT  (4u << 20) /* bytes of what the model has no field for */
#define NCCL_MAX_MASK  2048       /* digits and commas of an affinity; NCCL's limit is 254 */

enum nccl_tag {
	NCCL_NONE,
	NCCL_SYSTEM,
	NCCL_CPU,
	NCCL_PCI,
	NCCL_GPU,
	NCCL_LINK, /* nvlink, xgmi, c2c */
	NCCL_NIC,
	NCCL_NET,
	NCCL_PCILINK,
};

struct nccl_frame {
	enum nccl_tag tag;
	int numa; /* index in numa[]; TOPO_UNKNOWN: <cpu numaid="-1"> */
	int pci;  /* index in pci[]; TOPO_UNKNOWN: directly under the cpu */
	enum topo_part part;
	int at; /* the tag's own index in its part */
};

/* Beside pci[], in the same order. */
struct nccl_mark {
	uint64_t key; /* the address as a number */
	int numa;     /* index in numa[] */
	bool gpu, nic, twice;
};

struct nccl_reader {
	struct topo *t;
	const char *file;
	struct fb_err *e;
	struct _xmlParserCtxt *xml; /* NULL when no line is to be told any more */
	int rc;                     /* first failure; the rest of the file is then skipped */
	int line;                   /* where the parser says; 0: where it stands */
	char why[128];              /* the parser's first complaint */
	struct nccl_frame stack[NCCL_MAX_DEPTH + 1];
	unsigned depth;
	unsigned tags;
	bool seen_cpu, seen_nowhere, seen_other; /* any <cpu>; numaid="-1"; of another host */
	struct nccl_mark *marks;
	size_t n_marks;
	int *dev; /* beside gpus[]: the file's number, or TOPO_UNKNOWN */
	size_t n_dev;
	char host_hash[32];
	size_t kept;
	/* A foreign element being copied: its XML so far, the text since its last tag, and how deep
	 * inside it we are. */
	struct fb_strbuf foreign, words;
	unsigned inside;
	bool tag_open, skip; /* skip: left out instead of copied */
};

/** The reader's core, on text in memory. Errors and ownership as topo_load_nccl_xml(). */
int nccl_xml_parse(const char *text, size_t len, const char *file, struct topo **out,
	struct fb_err *e) FB_MUST_CHECK;

/** Record a failure, with file and line, unless there is one. @return its negative errno */
int nccl_fail(struct nccl_reader *r, int code, const char *fmt, ...) FB_PRINTF(3, 4);

/**
 * A known tag opens under the one on top of the stack: fill the model and push its frame.
 * @param attrs name, value, ..., NULL; may be NULL
 * @return 0; 1: foreign here, the caller copies it whole; 2: the caller leaves it out whole; -errno
 * (recorded)
 */
int nccl_tag_open(struct nccl_reader *r, const char *name, const char *const *attrs);
/** Keep an attribute (name) or a foreign element (name NULL, or "nic/") for the export. */
int nccl_keep(
	struct nccl_reader *r, enum topo_part part, int index, const char *name, const char *value);
/** Sort, name, place, and warn. */
int nccl_finish(struct nccl_reader *r);

/**
 * "[[DDDD]DDDD:]BB:DD.F" in either case, as the model writes it ("0000:3b:00.0") and as a number in
 * the order of addresses. @return false when it is none
 */
bool nccl_address(const char *text, char bdf[24], uint64_t *key);
/** Is this function a GPU by its class alone? NCCL files often leave vendors out. */
bool nccl_gpu_class(const struct topo_pci *p);

#endif
