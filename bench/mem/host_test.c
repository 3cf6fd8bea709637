// SPDX-License-Identifier: Apache-2.0
/* Host memory through the table: contents, alignment, refusals. */
#include <errno.h>
#include <string.h>

#include "bench/core/test.h"
#include "bench/mem/mem.h"

static void holds_what_was_copied(void **state)
{
	struct fb_err e = {0};
	void *a = NULL, *b = NULL;
	unsigned char back[5000];
	assert_int_equal(fb_mem_host.alloc(0, 5000, &a, &e), 0);
	assert_int_equal(fb_mem_host.alloc(0, 5000, &b, &e), 0);
	assert_int_equal((uintptr_t)a % 4096, 0);
	assert_int_equal(fb_mem_host.fill(0, a, 0x5a, 5000, &e), 0);
	assert_int_equal(fb_mem_host.fill(0, b, 0, 5000, &e), 0);
	assert_int_equal(fb_mem_host.copy(0, b, a, 4999, &e), 0);
	assert_int_equal(fb_mem_host.copy(0, back, b, 5000, &e), 0);
	assert_int_equal(back[0], 0x5a);
	assert_int_equal(back[4998], 0x5a);
	assert_int_equal(back[4999], 0);
	uint64_t ns = 0;
	assert_int_equal(fb_mem_host.copy_time(0, b, a, 5000, 100, &ns, &e), 0);
	fb_mem_host.free(0, a);
	fb_mem_host.free(0, b);
}

static void refuses_what_it_is_not(void **state)
{
	struct fb_err e = {0};
	void *p = NULL;
	char text[64];
	int fd;
	uint64_t offset;
	assert_int_equal(fb_mem_host.alloc(1, 16, &p, &e), -ENODEV);
	fb_err_clear(&e);
	assert_int_equal(fb_mem_host.describe(-1, text, sizeof(text), &e), -ENODEV);
	fb_err_clear(&e);
	assert_int_equal(fb_mem_host.dmabuf_fd(0, text, 4, &fd, &offset, &e), -EOPNOTSUPP);
	assert_int_not_equal(e.msg[0], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holds_what_was_copied),
		cmocka_unit_test(refuses_what_it_is_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
