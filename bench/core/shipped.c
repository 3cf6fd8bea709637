// SPDX-License-Identifier: Apache-2.0
/*
 * Where shipped files lie, beside the running program or under the prefix it was built for.
 */
#include "bench/core/shipped.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/proc.h"
#include "bench/core/sysroot.h"
#include "version.h"

/* From the program's folder, nearest first: of what is installed, of the tree. The last hops serve
 * tests, whose programs lie deeper in the build folder. */
static const char *const places[] = {
	"../share/fabricbench", "../../scripts", "../../../../scripts", "../../../../../scripts"};
#define N_PLACES (sizeof(places) / sizeof(places[0]))

static bool place(size_t i, const char *kind, char *buf, size_t len)
{
	char program[PATH_MAX];
	if (i == N_PLACES)
		return snprintf(buf, len, "%s/share/fabricbench/%s", FB_PREFIX, kind) < (int)len;
	if (fb_self_path(program, sizeof(program)) != 0)
		return false;
	char *slash = strrchr(program, '/');
	if (slash)
		*slash = '\0';
	return snprintf(buf, len, "%s/%s/%s", program, places[i], kind) < (int)len;
}

bool fb_shipped(const char *kind, const char *name, char *path, size_t len)
{
	char dir[PATH_MAX];
	for (size_t i = 0; i <= N_PLACES; i++)
		if (place(i, kind, dir, sizeof(dir)) &&
			snprintf(path, len, "%s/%s.ini", dir, name) < (int)len &&
			access(path, R_OK) == 0)
			return true;
	return false;
}

void fb_shipped_names(const char *kind, struct fb_strbuf *out)
{
	struct fb_sysroot live = {.dir = NULL};
	char dir[PATH_MAX], **names = NULL;
	for (size_t i = 0; i <= N_PLACES && out->len == 0; i++) {
		if (!place(i, kind, dir, sizeof(dir)) || fb_sysroot_list(&live, dir, &names) < 0)
			continue;
		for (char **n = names; *n; n++) {
			size_t len = strlen(*n);
			if (len > 4 && strcmp(*n + len - 4, ".ini") == 0)
				fb_strbuf_printf(
					out, "%s%.*s", out->len ? ", " : "", (int)(len - 4), *n);
		}
		fb_sysroot_names_free(names);
		names = NULL;
	}
}
