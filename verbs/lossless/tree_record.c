// SPDX-License-Identifier: Apache-2.0
/*
 * Recording this machine: the files that facts and topology read, the kernel's DCB answers, what
 * ethtool tells, limits, environment and the time. Nothing outside the new folder is written. What
 * may not be read is listed in it, so that hidden is never taken for absent.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench/core/anon.h"
#include "bench/core/json.h"
#include "bench/core/strbuf.h"
#include "verbs/lossless/ethtool.h"
#include "verbs/lossless/facts_priv.h"
#include "verbs/lossless/tree.h"
#include "verbs/lossless/tree_anon.h"
#include "verbs/lossless/tree_priv.h"

#define FILE_MAX    (256u << 10)
#define DEPTH_MAX   6
#define ETHERNET    1 /* ARPHRD_ETHER */
#define ETHTOOL_ALL "/ethtool/%s.%s"

struct recorder {
	struct fb_sysroot live, root;
	bool with_names;
	struct tree_anon anon;
	struct fb_anon words;
	struct fb_strbuf hidden;
	struct fb_err *e;
	char *buf; /* FILE_MAX */
};

/* ---- files ----------------------------------------------------------------------------------- */

/* Where it goes: interfaces may be named after their hardware address. */
static void shown_path(const struct recorder *c, const char *path, char *out, size_t len)
{
	snprintf(out, len, "%s", path);
	if (!c->with_names)
		tree_anon_in_place(&c->anon, out, strlen(out));
}

static int write_text(struct recorder *c, const char *path, const char *text, size_t len)
{
	char shown[4096];
	shown_path(c, path, shown, sizeof(shown));
	if (c->with_names)
		return tree_write(&c->root, shown, text, len, c->e);
	char *made = tree_anon_text(&c->anon, path, text, len);
	int rc = made && !c->anon.failed
			 ? tree_write(&c->root, shown, made, strlen(made), c->e)
			 : fb_fail(c->e, FB_EXIT_UNMEASURED, ENOMEM, "no memory for %s", path);
	free(made);
	return rc;
}

/* @return bytes, or -errno */
static ssize_t read_raw(const char *path, char *buf, size_t max)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	size_t n = 0;
	struct stat st;
	if (fd < 0)
		return -errno;
	ssize_t rc = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? 0 : -EINVAL;
	while (rc >= 0 && n < max) {
		rc = read(fd, buf + n, max - n);
		if (rc < 0 && errno != EINTR)
			rc = -errno;
		else if (rc < 0)
			rc = 0;
		else if (rc == 0)
			break;
		else
			n += (size_t)rc;
	}
	close(fd);
	return rc < 0 ? rc : (ssize_t)n;
}

static bool refused(int rc)
{
	return rc == -EACCES || rc == -EPERM;
}

/* A GID table has up to 1024 slots, nearly all of them zeros. */
static bool is_empty_slot(const char *path, const char *text, size_t n)
{
	if (!strstr(path, "/gids/"))
		return false;
	for (size_t i = 0; i < n; i++)
		if (text[i] != '0' && text[i] != ':' && text[i] != '\n')
			return false;
	return true;
}

/* One file; what is not there or has no value (EINVAL of an empty slot) is left out. */
static int copy_file(struct recorder *c, const char *path)
{
	char shown[4096];
	bool config = strlen(path) > 7 && strcmp(path + strlen(path) - 7, "/config") == 0;
	ssize_t n = read_raw(path, c->buf, FILE_MAX);
	if (refused((int)n)) {
		shown_path(c, path, shown, sizeof(shown));
		fb_strbuf_printf(&c->hidden, "%s\n", shown);
	}
	if (n < 0 || is_empty_slot(path, c->buf, (size_t)n))
		return 0;
	if (config && !c->with_names)
		tree_anon_config((uint8_t *)c->buf, (size_t)n);
	return config ? tree_write(&c->root, path, c->buf, (size_t)n, c->e)
		      : write_text(c, path, c->buf, (size_t)n);
}

/* The names of `list` (ends with NULL) in a folder. */
static int copy_list(struct recorder *c, const char *folder, const char *const *list)
{
	char path[4096];
	int rc = 0;
	for (; *list && rc == 0; list++) {
		snprintf(path, sizeof(path), "%.3900s/%.100s", folder, *list);
		rc = copy_file(c, path);
	}
	return rc;
}

/* A folder with all in it; links are not followed. */
static int copy_folder(struct recorder *c, const char *folder, int depth)
{
	char path[4096], **names = NULL;
	int n = fb_sysroot_list(&c->live, folder, &names), rc = 0;
	if (refused(n)) {
		shown_path(c, folder, path, sizeof(path));
		fb_strbuf_printf(&c->hidden, "%s\n", path);
	}
	if (n >= 0) {
		shown_path(c, folder, path, sizeof(path));
		rc = tree_mkdir(&c->root, path, true, c->e);
	}
	for (int i = 0; i < n && rc == 0; i++) {
		struct stat st;
		snprintf(path, sizeof(path), "%.3800s/%.250s", folder, names[i]);
		if (strcmp(names[i], "power") == 0 || strcmp(names[i], "uevent") == 0 ||
			strncmp(names[i], "cm_", 3) == 0 || /* connection managers' counters */
			lstat(path, &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
			rc = copy_folder(c, path, depth + 1);
		else if (S_ISREG(st.st_mode) && (st.st_mode & 0444))
			rc = copy_file(c, path);
	}
	fb_sysroot_names_free(names);
	return rc;
}

/* A link of sysfs, to where it really leads. *real gets that; empty: there is no such link. */
static int copy_link(struct recorder *c, const char *path, char *real, size_t len)
{
	struct stat st;
	char shown[4096], target[4096];
	real[0] = '\0';
	if (lstat(path, &st) < 0 || fb_sysroot_realpath(&c->live, path, real, len) < 0)
		return 0;
	if (!S_ISLNK(st.st_mode))
		return 0;
	shown_path(c, path, shown, sizeof(shown));
	shown_path(c, real, target, sizeof(target));
	int rc = tree_mkdir(&c->root, target, true, c->e);
	return rc < 0 ? rc : tree_link(&c->root, shown, target, c->e);
}

/* ---- the machine ----------------------------------------------------------------------------- */

static int for_each_in(struct recorder *c, const char *folder,
	int (*fn)(struct recorder *c, const char *path, const char *name))
{
	char path[512], **names = NULL;
	int n = fb_sysroot_list(&c->live, folder, &names), rc = 0;
	for (int i = 0; i < n && rc == 0; i++) {
		snprintf(path, sizeof(path), "%.250s/%.200s", folder, names[i]);
		rc = fn(c, path, names[i]);
	}
	fb_sysroot_names_free(names);
	return rc;
}

static int record_cpu(struct recorder *c, const char *path, const char *name)
{
	static const char *const files[] = {"online", "cpufreq/scaling_governor", NULL};
	char sub[600];
	if (strncmp(name, "cpu", 3) != 0 || strspn(name + 3, "0123456789") == 0)
		return 0;
	static const char *const idle[] = {"name", "latency", "disable", NULL};
	int rc = copy_list(c, path, files);
	for (int i = 0; i < 16 && rc == 0; i++) {
		snprintf(sub, sizeof(sub), "%s/cpuidle/state%d", path, i);
		if (access(sub, F_OK) != 0)
			break;
		rc = copy_list(c, sub, idle);
	}
	snprintf(sub, sizeof(sub), "%s/topology", path);
	if (rc == 0)
		rc = copy_folder(c, sub, DEPTH_MAX - 1);
	snprintf(sub, sizeof(sub), "%s/cache", path);
	return rc == 0 && access(sub, F_OK) == 0 ? copy_folder(c, sub, DEPTH_MAX - 1) : rc;
}

static int record_node(struct recorder *c, const char *path, const char *name)
{
	static const char *const files[] = {"cpulist", "cpumap", "distance", "meminfo", NULL};
	char sub[600];
	if (strncmp(name, "node", 4) != 0)
		return 0;
	snprintf(sub, sizeof(sub), "%s/hugepages", path);
	int rc = copy_list(c, path, files);
	return rc == 0 && access(sub, F_OK) == 0 ? copy_folder(c, sub, DEPTH_MAX - 1) : rc;
}

/* Of a network function: its interrupts, and which CPUs take them. */
static int record_interrupts(struct recorder *c, const char *function)
{
	static const char *const files[] = {"effective_affinity_list", "smp_affinity_list", NULL};
	char path[4200], **names = NULL;
	int64_t cls = 0;
	int rc = 0;
	if (fb_sysroot_read_i64(&c->live, &cls, "%s/class", function) != 0 || cls >> 16 != 0x02)
		return 0;
	snprintf(path, sizeof(path), "%s/msi_irqs", function);
	int n = fb_sysroot_list(&c->live, path, &names);
	if (n > 0)
		rc = copy_folder(c, path, DEPTH_MAX);
	for (int i = 0; i < n && rc == 0; i++) {
		snprintf(path, sizeof(path), "/proc/irq/%.20s", names[i]);
		rc = copy_list(c, path, files);
	}
	fb_sysroot_names_free(names);
	return rc;
}

static int record_group(struct recorder *c, const char *path, const char *name)
{
	static const char *const files[] = {"type", NULL};
	(void)name;
	return copy_list(c, path, files);
}

static int record_pci(struct recorder *c, const char *path, const char *name)
{
	static const char *const files[] = {"class", "vendor", "device", "subsystem_vendor",
		"subsystem_device", "revision", "numa_node", "local_cpulist", "local_cpus",
		"current_link_speed", "current_link_width", "max_link_speed", "max_link_width",
		"config", "resource", "aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal",
		NULL};
	char real[4096], driver[4096], link[4200];
	(void)name;
	int rc = copy_link(c, path, real, sizeof(real));
	if (rc == 0 && real[0])
		rc = copy_list(c, real, files);
	static const char *const links[] = {"driver", "physfn", "iommu_group", NULL};
	for (const char *const *l = links; *l && rc == 0 && real[0]; l++) {
		snprintf(link, sizeof(link), "%s/%s", real, *l);
		rc = copy_link(c, link, driver, sizeof(driver));
	}
	return rc == 0 && real[0] ? record_interrupts(c, real) : rc;
}

static int record_net(struct recorder *c, const char *path, const char *name)
{
	static const char *const files[] = {"address", "mtu", "operstate", "carrier", "speed",
		"duplex", "dev_port", "dev_id", "type", "ifindex", "flags", "phys_port_name", NULL};
	static const char *const folders[] = {"qos", "ecn", "bonding", NULL};
	char real[4096], sub[4200], device[4096];
	(void)name;
	int rc = copy_link(c, path, real, sizeof(real));
	if (rc < 0 || !real[0])
		return rc;
	rc = copy_list(c, real, files);
	for (const char *const *f = folders; *f && rc == 0; f++) {
		snprintf(sub, sizeof(sub), "%s/%s", real, *f);
		if (access(sub, F_OK) == 0)
			rc = copy_folder(c, sub, 1);
	}
	snprintf(sub, sizeof(sub), "%s/device", real);
	if (rc == 0)
		rc = copy_link(c, sub, device, sizeof(device));
	/* virtio and the like stand between the interface and the PCI function */
	if (rc == 0 && device[0]) {
		char link[4200], driver[4096];
		snprintf(link, sizeof(link), "%s/driver", device);
		rc = copy_link(c, link, driver, sizeof(driver));
	}
	return rc;
}

static int record_rdma(struct recorder *c, const char *path, const char *name)
{
	static const char *const files[] = {"node_type", "fw_ver", "hca_type", "hw_rev", "board_id",
		"node_guid", "sys_image_guid", "parent", "node_desc", NULL};
	static const char *const folders[] = {"ports", "tc", NULL};
	char real[4096], sub[4200], device[4096];
	(void)name;
	int rc = copy_link(c, path, real, sizeof(real));
	if (rc < 0 || !real[0])
		return rc;
	rc = copy_list(c, real, files);
	for (const char *const *f = folders; *f && rc == 0; f++) {
		snprintf(sub, sizeof(sub), "%s/%s", real, *f);
		if (access(sub, F_OK) == 0)
			rc = copy_folder(c, sub, 1);
	}
	snprintf(sub, sizeof(sub), "%s/device", real);
	return rc == 0 ? copy_link(c, sub, device, sizeof(device)) : rc;
}

/* Which IOMMUs there are: their names alone. */
static int record_iommu(struct recorder *c, const char *path, const char *name)
{
	(void)name;
	return tree_mkdir(&c->root, path, true, c->e);
}

static int record_system(struct recorder *c)
{
	static const char *const files[] = {"/proc/meminfo", "/proc/sys/kernel/osrelease",
		"/proc/sys/kernel/version", "/proc/self/limits", "/etc/os-release",
		"/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name",
		"/sys/devices/system/cpu/online", "/sys/devices/system/cpu/possible",
		"/sys/devices/system/cpu/present", "/sys/devices/system/cpu/isolated",
		"/sys/devices/system/cpu/smt/control", "/sys/devices/system/node/online",
		"/sys/devices/system/node/possible", "/sys/kernel/mm/transparent_hugepage/enabled",
		"/sys/devices/system/clocksource/clocksource0/current_clocksource", "/proc/uptime",
		"/proc/sys/kernel/numa_balancing", "/proc/driver/nvidia/version",
		"/sys/module/nvidia/version", "/sys/module/mlx5_core/version",
		"/sys/module/amdgpu/version", "/sys/module/bnxt_re/version",
		"/sys/module/efa/version", "/sys/kernel/mm/memory_peers/nv_mem/version", NULL};
	/* That they are there is what is told. */
	static const char *const folders[] = {"/sys/module/nvidia_peermem",
		"/sys/module/nv_peer_mem", "/sys/class/iommu", "/run/irqbalance", NULL};
	int rc = 0;
	for (const char *const *f = files; *f && rc == 0; f++)
		rc = copy_file(c, *f);
	if (rc == 0 && c->with_names)
		rc = copy_file(c, "/proc/sys/kernel/hostname");
	if (rc == 0)
		rc = for_each_in(c, "/sys/devices/system/cpu", record_cpu);
	if (rc == 0)
		rc = for_each_in(c, "/sys/devices/system/node", record_node);
	if (rc == 0)
		rc = copy_folder(c, "/sys/kernel/mm/hugepages", DEPTH_MAX - 1);
	for (const char *const *f = folders; *f && rc == 0; f++)
		if (access(*f, F_OK) == 0)
			rc = tree_mkdir(&c->root, *f, true, c->e);
	if (rc == 0)
		rc = for_each_in(c, "/sys/class/iommu", record_iommu);
	if (rc == 0)
		rc = for_each_in(c, "/sys/kernel/iommu_groups", record_group);
	return rc;
}

/* Lines of a file that begin with one of the words (or, `without`, that begin with none). */
static int copy_lines(struct recorder *c, const char *path, const char *const *words, bool without)
{
	struct fb_strbuf b = {0};
	ssize_t n = read_raw(path, c->buf, FILE_MAX - 1);
	int rc = 0;
	if (n < 0)
		return 0;
	c->buf[n] = '\0';
	for (const char *line = c->buf; *line;) {
		size_t k = strcspn(line, "\n");
		bool found = false;
		for (const char *const *w = words; *w; w++)
			found = found || strncmp(line, *w, strlen(*w)) == 0;
		if (found != without)
			fb_strbuf_printf(&b, "%.*s\n", (int)k, line);
		line += k + (line[k] == '\n');
	}
	if (b.len > 0)
		rc = write_text(c, path, b.s, b.len);
	fb_strbuf_free(&b);
	return rc;
}

static int record_process(struct recorder *c)
{
	static const char *const status[] = {
		"Name:", "CapEff:", "Cpus_allowed", "Mems_allowed", NULL};
	static const char *const serial[] = {"Serial", NULL};
	int rc = copy_lines(c, "/proc/self/status", status, false);
	return rc < 0 ? rc : copy_lines(c, "/proc/cpuinfo", serial, true);
}

/* ---- the network's doors --------------------------------------------------------------------- */

static int record_dcb(struct recorder *c, const char *netdev)
{
	char path[128], refusal[16384];
	int rc = 0;
	for (int k = 0; k < 2 && rc == 0; k++) {
		void *answer = NULL;
		size_t len = 0;
		int asked = dcb_ask(netdev, k == 1, &answer, &len);
		const char *bytes = answer;
		snprintf(path, sizeof(path), "/netlink/dcb/%s.%s", netdev, k ? "dcbx" : "ieee");
		if (asked < 0) {
			len = tree_dcb_error(-asked, refusal, sizeof(refusal));
			bytes = refusal;
		}
		char shown[256];
		shown_path(c, path, shown, sizeof(shown));
		if (!c->with_names && answer)
			tree_anon_in_place(&c->anon, answer, len);
		rc = tree_write(&c->root, shown, bytes, len, c->e);
		free(answer);
	}
	return rc;
}

static int record_ethtool(struct recorder *c, const char *netdev)
{
	static const char *const kinds[] = {"link", "pause", "stats"};
	char *text[3] = {NULL, NULL, NULL}, path[128];
	int rc = ethtool_text(netdev, &text[0], &text[1], &text[2]) < 0 ? -ENODEV : 0;
	for (int k = 0; k < 3; k++) {
		snprintf(path, sizeof(path), ETHTOOL_ALL, netdev, kinds[k]);
		if (rc == 0 && text[k])
			rc = write_text(c, path, text[k], strlen(text[k]));
		free(text[k]);
	}
	return rc == -ENODEV ? 0 : rc;
}

static int record_netdev(struct recorder *c, const char *path, const char *name)
{
	int64_t type = 0;
	bool hardware = fb_sysroot_exists(&c->live, "%s/device", path);
	if (!hardware && !fb_sysroot_exists(&c->live, "%s/bonding", path))
		return 0;
	if (fb_sysroot_read_i64(&c->live, &type, "%s/type", path) != 0 || type != ETHERNET)
		return 0;
	int rc = record_dcb(c, name);
	return rc < 0 ? rc : record_ethtool(c, name);
}

static int record_ports(struct recorder *c, const struct node_facts *n)
{
	char path[256], text[32];
	int rc = 0;
	for (int i = 0; i < n->ports && rc == 0; i++) {
		const struct port_facts *p = &n->port[i];
		if (fact_known(&p->active_mtu.f) &&
			strncmp(p->active_mtu.f.read, "ibv_query_port", 14) == 0) {
			snprintf(path, sizeof(path), FACTS_RECORDED_MTU, p->device, p->port);
			int k = snprintf(text, sizeof(text), "%lld\n", (long long)p->active_mtu.v);
			rc = tree_write(&c->root, path, text, (size_t)k, c->e);
		}
		/* A software device's interface may have no device behind it. */
		snprintf(path, sizeof(path), "/sys/class/net/%s/device", p->netdev);
		if (rc == 0 && p->netdev[0] && p->ethernet && access(path, F_OK) != 0) {
			rc = record_dcb(c, p->netdev);
			if (rc == 0)
				rc = record_ethtool(c, p->netdev);
		}
		if (rc == 0 && p->bdf[0] && strcmp(p->family, "mlx5") == 0) {
			snprintf(path, sizeof(path), "/sys/kernel/debug/mlx5/%s/cc_params", p->bdf);
			rc = copy_folder(c, path, DEPTH_MAX);
		}
		snprintf(path, sizeof(path), "/sys/kernel/config/rdma_cm/%s", p->device);
		if (rc == 0 && access(path, F_OK) == 0)
			rc = copy_folder(c, path, 1);
	}
	/* An ordinary user may not even look: not "absent". */
	if (rc == 0 && access("/sys/kernel/debug", X_OK) != 0 && errno == EACCES)
		fb_strbuf_add(&c->hidden, "/sys/kernel/debug\n");
	return rc;
}

/* ---- environment, time ----------------------------------------------------------------------- */

static int record_env(struct recorder *c, const struct node_facts *n)
{
	static const struct {
		const char *source, *path;
	} files[] = {{"environment", FACTS_RECORDED_ENV}, {"/etc/nccl.conf", "/etc/nccl.conf"},
		{NULL, FACTS_RECORDED_NCCL_CONF}};
	json_t *env = c->with_names ? json_incref(n->env) : fb_anon_copy(&c->words, n->env), *value;
	const char *name;
	int rc = env ? 0 : fb_fail(c->e, FB_EXIT_UNMEASURED, ENOMEM, "no memory");
	for (size_t i = 0; i < 3 && rc == 0; i++) {
		struct fb_strbuf b = {0};
		json_object_foreach (env, name, value) {
			const char *source = fb_json_str(n->env_source, name, "");
			bool user = strcmp(source, files[0].source) != 0 &&
				    strcmp(source, files[1].source) != 0;
			if (files[i].source ? strcmp(source, files[i].source) == 0 : user)
				fb_strbuf_printf(&b, "%s=%s\n", name, json_string_value(value));
		}
		/* An empty environment is known too. */
		if (b.len > 0 || i == 0)
			rc = tree_write(&c->root, files[i].path, b.len ? b.s : "", b.len, c->e);
		fb_strbuf_free(&b);
	}
	json_decref(env);
	return rc;
}

static int record_end(struct recorder *c)
{
	char text[32];
	time_t now = time(NULL);
	struct tm tm;
	gmtime_r(&now, &tm);
	size_t n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ\n", &tm);
	int rc = tree_write(&c->root, FACTS_RECORDED_TIME, text, n, c->e);
	if (rc == 0 && c->hidden.failed)
		rc = fb_fail(c->e, FB_EXIT_UNMEASURED, ENOMEM, "no memory");
	if (rc == 0 && c->hidden.len > 0)
		rc = tree_write(&c->root, FACTS_RECORDED_HIDDEN, c->hidden.s, c->hidden.len, c->e);
	return rc;
}

/* All hardware addresses first: names may hold them. */
static int learn_address(struct recorder *c, const char *path, const char *name)
{
	char text[64], file[600];
	(void)name;
	snprintf(file, sizeof(file), "%s/address", path);
	ssize_t n = read_raw(file, text, sizeof(text));
	if (n > 0)
		free(tree_anon_text(&c->anon, file, text, (size_t)n));
	return 0;
}

static int record_all(struct recorder *c)
{
	struct node_facts n;
	int rc = facts_read(&c->live, NULL, &n, c->e);
	if (rc < 0)
		return rc;
	if (!c->with_names) {
		fb_anon_hide(&c->words, n.host, "host0");
		rc = for_each_in(c, "/sys/class/net", learn_address);
	}
	if (rc == 0)
		rc = record_system(c);
	if (rc == 0)
		rc = record_process(c);
	if (rc == 0)
		rc = for_each_in(c, "/sys/bus/pci/devices", record_pci);
	if (rc == 0)
		rc = for_each_in(c, "/sys/class/net", record_net);
	if (rc == 0)
		rc = for_each_in(c, "/sys/class/infiniband", record_rdma);
	if (rc == 0)
		rc = for_each_in(c, "/sys/class/net", record_netdev);
	if (rc == 0)
		rc = record_ports(c, &n);
	if (rc == 0)
		rc = record_env(c, &n);
	if (rc == 0)
		rc = record_end(c);
	facts_free(&n);
	return rc;
}

int tree_record(const char *dir, bool with_names, struct fb_err *e)
{
	struct recorder c = {.with_names = with_names, .e = e};
	int rc = tree_open(&c.root, dir, e);
	if (rc < 0)
		return rc;
	c.buf = malloc(FILE_MAX);
	rc = c.buf ? record_all(&c)
		   : fb_fail(e, FB_EXIT_UNMEASURED, ENOMEM, "no memory to record with");
	free(c.buf);
	fb_strbuf_free(&c.hidden);
	tree_anon_free(&c.anon);
	fb_anon_free(&c.words);
	fb_sysroot_close(&c.root);
	return rc;
}
