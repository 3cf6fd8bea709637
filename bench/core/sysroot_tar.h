/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded trees that come as one tar file, packed by gzip, bzip2, xz, zstd or not at all. What the
 * file holds is not trusted: nothing is written outside the private folder, no device is made, no
 * link leads out, and both size and number are bounded.
 */
#ifndef FB_CORE_SYSROOT_TAR_H
#define FB_CORE_SYSROOT_TAR_H

#include <stdbool.h>

#include "bench/core/err.h"

/** Beyond these a file is no recording of one machine. */
#define FB_SYSROOT_TAR_MAX_BYTES   (512ull << 20)
#define FB_SYSROOT_TAR_MAX_FILE    (32ull << 20)
#define FB_SYSROOT_TAR_MAX_ENTRIES 500000u

/** Was libarchive there when this program was built? Without it only folders are read. */
bool fb_sysroot_tar_supported(void);

/**
 * Unpack `file` into a new private folder below $TMPDIR; without it below /dev/shm where that has
 * room for any recording, else below /tmp.
 * @param temp receives the private folder, for fb_sysroot_tar_remove(); caller frees
 * @param top receives the folder in it that holds sys/ or proc/ (folders above them, such as
 * hwloc-gather-topology makes, are passed by, and what lies beside the only folder that holds
 * them); caller frees
 * @return 0; -EINVAL: no tar file, damaged, or an entry that leads out (exit 2); -EFBIG: beyond the
 * limits above (exit 2); -ENOTSUP: built without libarchive (exit 2); -ENOMEM, and errno of the
 * private folder (exit 3)
 */
int fb_sysroot_tar_unpack(
	const char *file, char **temp, char **top, struct fb_err *e) FB_MUST_CHECK;
/** Remove a private folder with all it holds; no link is followed. NULL: nothing. */
void fb_sysroot_tar_remove(const char *temp);

#endif
