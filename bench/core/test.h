/* SPDX-License-Identifier: Apache-2.0 */
/* What every unit test includes: cmocka with the headers it wants first, and the one door for
 * skips. */
#ifndef FB_CORE_TEST_H
#define FB_CORE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

/** Skip the running test with its reason: a line "SKIP id: reason" on stderr that scripts/test
 * counts and compares. */
#define fb_test_skip(id, ...)                     \
	do {                                      \
		fprintf(stderr, "SKIP %s: ", id); \
		fprintf(stderr, __VA_ARGS__);     \
		fprintf(stderr, "\n");            \
		skip();                           \
	} while (0)

/** Path of a test's data: the tests run with the top folder as current directory. */
#define FB_TESTDATA(module, file) module "/testdata/" file

#endif
