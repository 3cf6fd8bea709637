// SPDX-License-Identifier: Apache-2.0
/*
 * Facts of a host. Every fact is read through the sysroot door; what cannot be read is absent,
 * never 0. Device facts (RDMA, NICs, GPUs) are in sysinfo_dev.c.
 */
#include "bench/core/sysinfo.h"

#include <ctype.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench/core/anon.h"
#include "bench/core/clock.h"
#include "bench/core/json.h"
#include "bench/core/sysinfo_dev.h"

#define FILE_MAX 65536

void fb_host_name(char *buf, size_t len)
{
	if (len == 0)
		return;
	if (gethostname(buf, len) < 0 || buf[0] == '\0')
		snprintf(buf, len, "unknown");
	buf[len - 1] = '\0';
}

const char *fb_where(const char *otherwise)
{
	const char *lab = getenv("FABRICBENCH_LAB");
	return lab && strcmp(lab, "1") == 0 ? "lab" : otherwise;
}

/* A file of one value as a string; absent when it cannot be read or is empty. */
static void set_file(json_t *j, const char *key, const struct fb_sysroot *r, const char *path)
{
	char buf[256];
	if (fb_sysroot_read(r, path, buf, sizeof(buf)) > 0)
		fb_json_set_str(j, key, buf);
}

/* Value after "name<blanks>:<blanks>" (or '=') at the start of a line; false when there is none. */
static bool field(const char *text, const char *name, char *buf, size_t len)
{
	size_t n = strlen(name);
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, n) != 0)
			continue;
		const char *v = line + n + strspn(line + n, " \t");
		if (*v != ':' && *v != '=')
			continue;
		v++;
		v += strspn(v, " \t\"");
		snprintf(buf, len, "%.*s", (int)strcspn(v, "\n\""), v);
		return true;
	}
	return false;
}

static void set_field(json_t *j, const char *key, const char *text, const char *name)
{
	char buf[256];
	if (field(text, name, buf, sizeof(buf)) && buf[0])
		fb_json_set_str(j, key, buf);
}

/* "123 kB" in bytes. */
static void set_kb(json_t *j, const char *key, const char *text, const char *name)
{
	char buf[64];
	if (field(text, name, buf, sizeof(buf)) && isdigit((unsigned char)buf[0]))
		fb_json_set_int(j, key, strtoll(buf, NULL, 10) * 1024);
}

/* What decides the speed of a GEMM or the trust in a clock; the whole list would drown it. */
static const char *const flags_of_interest[] = {"avx2", "fma", "avx512f", "avx512_bf16",
	"avx512_fp16", "avx512_vnni", "amx_tile", "amx_bf16", "amx_int8", "constant_tsc",
	"nonstop_tsc", "rdtscp", "hypervisor", "sve", "sve2", "asimd", NULL};

static json_t *cpu_flags(const char *cpuinfo)
{
	json_t *list = json_array();
	const char *start = strstr(cpuinfo, "\nflags");
	if (!start)
		start = strstr(cpuinfo, "\nFeatures");
	if (!start)
		return list;
	size_t len = strcspn(start + 1, "\n");
	for (const char *const *f = flags_of_interest; *f; f++) {
		size_t n = strlen(*f);
		const char *p = start + 1, *end = p + len;
		while ((p = memmem(p, (size_t)(end - p), *f, n)) != NULL) {
			bool starts = isspace((unsigned char)p[-1]);
			if (starts && (p + n == end || p[n] == ' ')) {
				json_array_append_new(list, json_string(*f));
				break;
			}
			p += n;
		}
	}
	return list;
}

/* Is this string already in the array? Adds it when not. */
static void add_once(json_t *set, const char *s)
{
	for (size_t i = 0; i < json_array_size(set); i++) {
		if (strcmp(json_string_value(json_array_get(set, i)), s) == 0)
			return;
	}
	json_array_append_new(set, json_string(s));
}

/* Packages, cores and hardware threads that are online, and the governors in use. */
static void count_cpus(json_t *cpu, const struct fb_sysroot *r)
{
	char **names = NULL;
	json_t *packages = json_object(), *cores = json_object(), *governors = json_array();
	int threads = 0;
	if (fb_sysroot_list(r, "/sys/devices/system/cpu", &names) < 0)
		names = NULL;
	for (char **p = names; p && *p; p++) {
		int64_t package, core, online = 1;
		char key[48], governor[32];
		if (strncmp(*p, "cpu", 3) != 0 || !isdigit((unsigned char)(*p)[3]))
			continue;
		/* cpu0 has no such file on most machines and cannot be taken offline. */
		fb_sysroot_read_i64(r, &online, "/sys/devices/system/cpu/%s/online", *p);
		if (!online)
			continue;
		threads++;
		if (fb_sysroot_read_i64(r, &package,
			    "/sys/devices/system/cpu/%s/topology/physical_package_id", *p) == 0 &&
			fb_sysroot_read_i64(
				r, &core, "/sys/devices/system/cpu/%s/topology/core_id", *p) == 0) {
			snprintf(key, sizeof(key), "%lld", (long long)package);
			json_object_set_new(packages, key, json_true());
			snprintf(
				key, sizeof(key), "%lld/%lld", (long long)package, (long long)core);
			json_object_set_new(cores, key, json_true());
		}
		if (fb_sysroot_readf(r, governor, sizeof(governor),
			    "/sys/devices/system/cpu/%s/cpufreq/scaling_governor", *p) > 0)
			add_once(governors, governor);
	}
	fb_sysroot_names_free(names);
	if (threads > 0)
		fb_json_set_int(cpu, "threads", threads);
	if (json_object_size(cores) > 0) {
		fb_json_set_int(cpu, "packages", (int64_t)json_object_size(packages));
		fb_json_set_int(cpu, "cores", (int64_t)json_object_size(cores));
	}
	if (json_array_size(governors) > 0)
		json_object_set(cpu, "governors", governors);
	json_decref(governors);
	json_decref(packages);
	json_decref(cores);
}

/* "processor : N" stands once for each online thread in /proc/cpuinfo. */
static void count_processors(json_t *cpu, const char *cpuinfo)
{
	int threads = 0;
	for (const char *p = cpuinfo; (p = strstr(p, "processor")); p++)
		if ((p == cpuinfo || p[-1] == '\n') && strspn(p + 9, "\t ") + 9 < strlen(p) &&
			p[9 + strspn(p + 9, "\t ")] == ':')
			threads++;
	if (threads > 0)
		fb_json_set_int(cpu, "threads", threads);
}

static json_t *cpu_facts(const struct fb_sysroot *r, char *text)
{
	json_t *cpu = json_object();
	text[0] = '\0';
	if (fb_sysroot_read(r, "/proc/cpuinfo", text, FILE_MAX) > 0) {
		set_field(cpu, "model", text, "model name");
		set_field(cpu, "vendor", text, "vendor_id");
		set_field(cpu, "microcode", text, "microcode");
		json_object_set_new(cpu, "flags", cpu_flags(text));
	}
	count_cpus(cpu, r);
	if (!json_object_get(cpu, "threads")) /* no /sys: the kernel's own list is all there is */
		count_processors(cpu, text);
	set_file(cpu, "online", r, "/sys/devices/system/cpu/online");
	set_file(cpu, "isolated", r, "/sys/devices/system/cpu/isolated");
	set_file(cpu, "smt", r, "/sys/devices/system/cpu/smt/control");
	return cpu;
}

static json_t *numa_facts(const struct fb_sysroot *r, char *text)
{
	json_t *nodes = json_array();
	char **names = NULL;
	if (fb_sysroot_list(r, "/sys/devices/system/node", &names) < 0)
		return nodes;
	for (char **p = names; *p; p++) {
		char buf[512], total[32];
		if (strncmp(*p, "node", 4) != 0 || !isdigit((unsigned char)(*p)[4]))
			continue;
		json_t *node = json_object();
		fb_json_set_int(node, "node", strtol(*p + 4, NULL, 10));
		if (fb_sysroot_readf(
			    r, buf, sizeof(buf), "/sys/devices/system/node/%s/cpulist", *p) >= 0)
			fb_json_set_str(node, "cpus", buf);
		if (fb_sysroot_readf(
			    r, buf, sizeof(buf), "/sys/devices/system/node/%s/distance", *p) > 0)
			fb_json_set_str(node, "distance", buf);
		/* "Node 0 MemTotal:  16315280 kB" */
		if (fb_sysroot_readf(r, text, FILE_MAX, "/sys/devices/system/node/%s/meminfo", *p) >
			0) {
			snprintf(buf, sizeof(buf), "Node %s MemTotal", *p + 4);
			if (field(text, buf, total, sizeof(total)))
				set_kb(node, "memory_bytes", text, buf);
		}
		json_array_append_new(nodes, node);
	}
	fb_sysroot_names_free(names);
	return nodes;
}

static json_t *memory_facts(const struct fb_sysroot *r, char *text)
{
	json_t *mem = json_object();
	char **names = NULL, buf[128];
	if (fb_sysroot_read(r, "/proc/meminfo", text, FILE_MAX) > 0)
		set_kb(mem, "total_bytes", text, "MemTotal");
	if (fb_sysroot_list(r, "/sys/kernel/mm/hugepages", &names) > 0) {
		json_t *huge = json_object();
		for (char **p = names; *p; p++) {
			int64_t count;
			if (fb_sysroot_read_i64(r, &count,
				    "/sys/kernel/mm/hugepages/%s/nr_hugepages", *p) == 0 &&
				strncmp(*p, "hugepages-", 10) == 0)
				fb_json_set_int(huge, *p + 10, count);
		}
		json_object_set_new(mem, "huge_pages", huge);
	}
	fb_sysroot_names_free(names);
	/* "always [madvise] never": the word in brackets is the one in force. */
	if (fb_sysroot_read(r, "/sys/kernel/mm/transparent_hugepage/enabled", buf, sizeof(buf)) >
		0) {
		char *open = strchr(buf, '['), *close = strchr(buf, ']');
		if (open && close && close > open) {
			*close = '\0';
			fb_json_set_str(mem, "transparent_huge_pages", open + 1);
		}
	}
	if (fb_sysroot_read(r, "/proc/self/limits", text, FILE_MAX) > 0) {
		const char *line = strstr(text, "Max locked memory");
		char soft[32] = "";
		if (line && sscanf(line, "Max locked memory %31s", soft) == 1)
			fb_json_set_str(mem, "locked_memory_limit", soft);
	}
	return mem;
}

static json_t *kernel_facts(const struct fb_sysroot *r, char *text)
{
	json_t *k = json_object();
	struct utsname u;
	set_file(k, "release", r, "/proc/sys/kernel/osrelease");
	set_file(k, "build", r, "/proc/sys/kernel/version");
	set_file(k, "clocksource", r,
		"/sys/devices/system/clocksource/clocksource0/current_clocksource");
	if (fb_sysroot_is_live(r) && uname(&u) == 0)
		fb_json_set_str(k, "machine", u.machine);
	/* The whole command line may hold paths and identities: only what moves a measurement. */
	static const char *const words[] = {"isolcpus", "iommu", "intel_iommu", "amd_iommu", "nohz",
		"nohz_full", "rcu_nocbs", "hugepages", "hugepagesz", "default_hugepagesz",
		"transparent_hugepage", "mitigations", "tsc", "pci", NULL};
	json_t *boot = json_array();
	char *w, *left = text;
	if (fb_sysroot_read(r, "/proc/cmdline", text, FILE_MAX) > 0) {
		while ((w = strsep(&left, " \n")) != NULL) {
			size_t n = strcspn(w, "=");
			for (const char *const *o = words; *o; o++) {
				if (strlen(*o) == n && strncmp(*o, w, n) == 0)
					json_array_append_new(boot, json_string(w));
			}
		}
	}
	json_object_set_new(k, "boot", boot);
	return k;
}

/* Facts of this very process; a recording has none of them. */
static void live_facts(json_t *host, char *text)
{
	const struct fb_sysroot live = {.dir = NULL};
	json_t *set = json_object(), *clock = json_object(), *libs = json_object();
	if (fb_sysroot_read(&live, "/proc/self/status", text, FILE_MAX) > 0) {
		set_field(set, "cpus", text, "Cpus_allowed_list");
		set_field(set, "mems", text, "Mems_allowed_list");
	}
	json_object_set_new(host, "cpuset", set);

	const struct fb_clock_info *ci = fb_clock_info();
	fb_json_set_str(clock, "source", ci->source);
	fb_json_set_real(clock, "ticks_per_ns", ci->ticks_per_ns, NULL);
	fb_json_set_real(clock, "read_cost_ns", (double)ci->read_cost_ps / 1000, NULL);
	fb_json_set_int(clock, "resolution_ns", (int64_t)ci->resolution_ns);
	fb_json_set_real(clock, "calibration_ppm", ci->calibration_ppm, NULL);
	json_object_set_new(host, "clock", clock);

	fb_json_set_str(libs, "libc", gnu_get_libc_version());
	fb_json_set_str(libs, "jansson", JANSSON_VERSION);
	json_object_set_new(host, "libraries", libs);
	json_object_set_new(host, "env", fb_sysinfo_env());
}

static void set_container(json_t *host, const struct fb_sysroot *r)
{
	const char *kind = NULL;
	if (fb_sysroot_is_live(r) && getenv("KUBERNETES_SERVICE_HOST"))
		kind = "kubernetes";
	else if (fb_sysroot_exists(r, "/.dockerenv"))
		kind = "docker";
	else if (fb_sysroot_exists(r, "/run/.containerenv"))
		kind = "podman";
	else if (fb_sysroot_exists(r, "/.singularity.d"))
		kind = "apptainer";
	json_object_set_new(host, "container", kind ? json_string(kind) : json_null());
}

json_t *fb_sysinfo_host(const struct fb_sysroot *r, bool anonymous)
{
	char name[256];
	char *text = malloc(FILE_MAX);
	json_t *host = json_object();
	if (!text || !host)
		goto free_all;
	if (fb_sysroot_is_live(r))
		fb_host_name(name, sizeof(name));
	else if (fb_sysroot_read(r, "/proc/sys/kernel/hostname", name, sizeof(name)) <= 0)
		snprintf(name, sizeof(name), "recorded");
	fb_json_set_str(host, "name", name);
	if (fb_sysroot_read(r, "/etc/os-release", text, FILE_MAX) > 0)
		set_field(host, "os", text, "PRETTY_NAME");
	set_file(host, "vendor", r, "/sys/class/dmi/id/sys_vendor");
	set_file(host, "product", r, "/sys/class/dmi/id/product_name");
	json_object_set_new(host, "kernel", kernel_facts(r, text));
	json_object_set_new(host, "cpu", cpu_facts(r, text));
	json_object_set_new(host, "numa", numa_facts(r, text));
	json_object_set_new(host, "memory", memory_facts(r, text));
	set_container(host, r);
	if (fb_sysroot_exists(
		    r, "/sys/class")) { /* without /sys nothing is known: absent, not none */
		json_object_set_new(host, "rdma", fb_sysinfo_rdma(r));
		json_object_set_new(host, "nics", fb_sysinfo_nics(r));
	}
	if (fb_sysroot_exists(r, "/sys/bus/pci"))
		json_object_set_new(host, "gpus", fb_sysinfo_gpus(r));
	if (fb_sysroot_is_live(r))
		live_facts(host, text);
	free(text);
	if (anonymous) {
		struct fb_anon a = {0};
		fb_anon_hide(&a, name, "host0");
		json_t *copy = fb_anon_copy(&a, host);
		fb_anon_free(&a);
		json_decref(host);
		return copy;
	}
	return host;

free_all:
	free(text);
	json_decref(host);
	return NULL;
}

static bool env_wanted(const char *name, size_t len)
{
	static const char *const exact[] = {"CUDA_VISIBLE_DEVICES", "FABRICBENCH_LAB",
		"OMPI_MCA_btl", "OMPI_MCA_coll", "OMPI_MCA_pml", NULL};
	static const char *const starts[] = {"NCCL_", "UCX_", "OMP_", "OMPI_MCA_btl_",
		"OMPI_MCA_coll_", "OMPI_MCA_pml_", "OMPI_MCA_mpi_", "OMPI_MCA_hwloc_", NULL};
	for (const char *const *p = exact; *p; p++) {
		if (strlen(*p) == len && strncmp(name, *p, len) == 0)
			return true;
	}
	for (const char *const *p = starts; *p; p++) {
		if (len > strlen(*p) && strncmp(name, *p, strlen(*p)) == 0)
			return true;
	}
	return false;
}

/* URIs hold addresses and sometimes passwords, key paths lead to secrets. */
static bool env_secret(const char *name, const char *value)
{
	static const char *const in_value[] = {"://", ".pem", ".key", "/.ssh", "id_rsa", NULL};
	static const char *const in_name[] = {"KEY", "TOKEN", "SECRET", "PASS", NULL};
	for (const char *const *p = in_value; *p; p++) {
		if (strstr(value, *p))
			return true;
	}
	for (const char *const *p = in_name; *p; p++) {
		if (memmem(name, strcspn(name, "="), *p, strlen(*p)))
			return true;
	}
	return false;
}

json_t *fb_sysinfo_env(void)
{
	extern char **environ;
	json_t *env = json_object();
	for (char **p = environ; p && *p; p++) {
		size_t len = strcspn(*p, "=");
		char name[128];
		if ((*p)[len] != '=' || len >= sizeof(name) || !env_wanted(*p, len))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)len, *p);
		if (!env_secret(*p, *p + len + 1))
			fb_json_set_str(env, name, *p + len + 1);
	}
	return env;
}
