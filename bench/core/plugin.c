// SPDX-License-Identifier: Apache-2.0
/*
 * Finding and opening plug-ins, each once. The table of what is open is global because a plug-in
 * is: CUDA and MPI do not survive dlclose(), so none is ever closed.
 */
#include "bench/core/plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/log.h"
#include "bench/core/proc.h"
#include "bench/core/strbuf.h"
#include "version.h"

#ifndef FB_PREFIX
#define FB_PREFIX "/usr/local"
#endif

const char *const fb_plugin_names[] = {"mpi", "dnnl", "cuda", "nccl", NULL};
enum { PLUGIN_COUNT = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct fb_plugin *opened[PLUGIN_COUNT];

/* What would bring a plug-in that is not there. */
static const char *remedy(const char *name)
{
	static const char *const lines[PLUGIN_COUNT] = {
		"apt-get install openmpi-bin libopenmpi-dev && make mpi (another MPI: make mpi "
		"MPICC=/path/mpicc)",
		"apt-get install libdnnl-dev && make dnnl",
		"install the CUDA Toolkit, then make cuda (CUDA_HOME=/path if it is not found)",
		"install the CUDA Toolkit and NCCL 2.24 or later, then make nccl (NCCL_HOME=/path if it is not "
		"found)",
	};
	for (int i = 0; i < PLUGIN_COUNT; i++)
		if (strcmp(fb_plugin_names[i], name) == 0)
			return lines[i];
	return "";
}

/* One file: 1 when it is not there, 0 with *p, or a negative errno with *why. */
static int try_file(
	const char *path, const char *name, const struct fb_plugin **p, struct fb_err *why)
{
	if (access(path, F_OK) != 0)
		return 1;
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!so) {
		int rc = fb_fail(why, FB_EXIT_SKIP, ELIBACC, "the plug-in %s does not load: %s",
			path, dlerror());
		fb_hint(why, "install the library it names, or rebuild it here: %s", remedy(name));
		return rc;
	}
	const struct fb_plugin *(*entry)(void);
	void *sym = dlsym(so, FB_PLUGIN_SYMBOL);
	if (!sym) {
		int rc = fb_fail(why, FB_EXIT_SKIP, ENOEXEC,
			"%s is no plug-in of fabricbench: it has no %s()", path, FB_PLUGIN_SYMBOL);
		fb_hint(why, "rebuild it: make %s", name);
		return rc;
	}
	memcpy(&entry, &sym, sizeof(entry));
	const struct fb_plugin *got = entry();
	if (!got || got->abi != FB_PLUGIN_ABI || strcmp(got->name, name) != 0) {
		int rc = fb_fail(why, FB_EXIT_SKIP, ENOEXEC,
			"%s is plug-in \"%s\" of interface %u; this program needs \"%s\" of interface %d",
			path, got ? got->name : "?", got ? got->abi : 0, name, FB_PLUGIN_ABI);
		fb_hint(why, "rebuild it with this program: make %s", name);
		return rc;
	}
	fb_debug("plug-in %s: %s", name, path);
	*p = got;
	return 0;
}

/* The folders to search, in order, one after another in `list`, separated by newlines. */
static void folders(struct fb_strbuf *list)
{
	char self[4096];
	const char *env = getenv("FABRICBENCH_PLUGINS");
	for (const char *s = env; s && *s;) {
		const size_t n = strcspn(s, ":");
		if (n > 0) {
			fb_strbuf_addn(list, s, n);
			fb_strbuf_add(list, "\n");
		}
		s += n + (s[n] == ':');
	}
	if (fb_self_path(self, sizeof(self)) == 0) {
		char *slash = strrchr(self, '/');
		if (slash && slash > self)
			*slash = '\0';
		fb_strbuf_printf(list, "%s\n%s/../lib/fabricbench\n", self, self);
	}
	fb_strbuf_add(list, FB_PREFIX "/lib/fabricbench\n");
}

static int find(const char *name, const struct fb_plugin **p, struct fb_err *why)
{
	struct fb_strbuf list = {0}, said = {0};
	folders(&list);
	char *all = fb_strbuf_take(&list), *rest = all;
	int rc = all ? 1 : fb_fail(why, FB_EXIT_SKIP, ENOMEM, "no memory to look for plug-ins");
	for (char *dir; rc == 1 && (dir = strsep(&rest, "\n")) && *dir != '\0';) {
		char path[4352];
		snprintf(path, sizeof(path), "%s/fabricbench-%s.so", dir, name);
		rc = try_file(path, name, p, why);
		fb_strbuf_printf(&said, "%s%s", said.len > 0 ? ", " : "", dir);
	}
	if (rc == 1) {
		rc = fb_fail(why, FB_EXIT_SKIP, ENOENT, "fabricbench-%s.so was not found in %s",
			name, said.s ? said.s : "any folder");
		fb_hint(why, "%s; or name its folder in FABRICBENCH_PLUGINS", remedy(name));
	}
	free(all);
	fb_strbuf_free(&said);
	return rc;
}

const struct fb_plugin *fb_plugin_open(const char *name, struct fb_err *why)
{
	int i = 0;
	while (i < PLUGIN_COUNT && strcmp(fb_plugin_names[i], name) != 0)
		i++;
	if (i == PLUGIN_COUNT) {
		fb_fail_usage(why, "there is no plug-in \"%s\": mpi, dnnl, cuda and nccl are known",
			name);
		return NULL;
	}
	pthread_mutex_lock(&lock);
	if (!opened[i] && find(name, &opened[i], why) != 0)
		opened[i] = NULL;
	const struct fb_plugin *p = opened[i];
	pthread_mutex_unlock(&lock);
	return p;
}
