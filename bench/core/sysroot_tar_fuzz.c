// SPDX-License-Identifier: Apache-2.0
/* Fuzz target: any bytes as a recording's tar file. Nothing may be left behind. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/core/sysroot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fb_sysroot r;
	struct fb_err e = {0};
	struct stat st;
	char path[64], temp[512];
	int fd = memfd_create("tar", 0);

	if (fd < 0)
		return 0;
	if (size && write(fd, data, size) != (ssize_t)size) {
		close(fd);
		return 0;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fb_sysroot_open(&r, path, &e) == 0) {
		if (!r.dir || !r.temp)
			abort();
		snprintf(temp, sizeof(temp), "%s", r.temp);
		fb_sysroot_close(&r);
		if (stat(temp, &st) == 0)
			abort();
	} else if (e.code == 0 || e.msg[0] == '\0' || r.dir || r.temp) {
		abort();
	}
	close(fd);
	return 0;
}
