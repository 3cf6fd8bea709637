/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests only: a sample document, and files that were made in a folder of a test's own.
 */
#ifndef REPORTS_TEST_FILES_H
#define REPORTS_TEST_FILES_H

#include <stdio.h>
#include <unistd.h>

#include "bench/core/json.h"
#include "bench/core/result.h"
#include "bench/core/test.h"

/** A document of reports/testdata. The caller drops the reference. */
static inline json_t *sample(const char *path)
{
	struct fb_err e = {0};
	json_t *doc = fb_doc_load(path, &e);
	if (!doc)
		fail_msg("%s", e.msg);
	return doc;
}

/** The small run that most tests begin from. */
static inline json_t *small(void)
{
	return sample(FB_TESTDATA("reports", "small.json"));
}

/** A file of at most 16 MiB, whole; free() it. */
static inline char *slurp(const char *path)
{
	char *text = NULL;
	size_t len;
	struct fb_err e = {0};
	if (fb_read_file(path, 1u << 24, &text, &len, &e) != 0)
		fail_msg("%s", e.msg);
	return text;
}

/** The text of a file, cut at len - 1 bytes. */
static inline void file(const char *dir, const char *name, char *buf, size_t len)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	buf[fread(buf, 1, len - 1, f)] = '\0';
	fclose(f);
}

/** Remove these files (ends with NULL), and the folder, in which nothing else may be. */
static inline void remove_folder(const char *dir, const char *const *names)
{
	char path[256];
	for (; *names; names++) {
		snprintf(path, sizeof(path), "%s/%s", dir, *names);
		unlink(path);
	}
	assert_int_equal(rmdir(dir), 0);
}

#endif
