/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shape of a result document as data: the same as reports/schema.json, and doc_read_test.c
 * proves that they agree, key by key. For doc_read.c alone.
 */
#ifndef FB_CORE_DOC_SHAPE_H
#define FB_CORE_DOC_SHAPE_H

#include <stdbool.h>

enum { T_STR = 1, T_INT = 2, T_REAL = 4, T_BOOL = 8, T_NULL = 16, T_OBJ = 32, T_ARR = 64 };
#define T_NUM (T_INT | T_REAL)
#define T_ANY (T_STR | T_NUM | T_BOOL | T_NULL | T_OBJ | T_ARR)

/** One key of an object. */
struct shape {
	const char *key; /* NULL ends the list */
	unsigned types;
	bool optional;
	bool natural;                  /* an integer here is at least 0 */
	const char *const *words;      /* T_STR: one of these; an empty list: not empty */
	const struct shape *keys;      /* T_OBJ: its keys */
	unsigned items;                /* T_ARR: types of its elements */
	const struct shape *item_keys; /* T_ARR of T_OBJ: their keys */
};

/** Of the whole document. */
extern const struct shape fb_doc_shape[];

#endif
