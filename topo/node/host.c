// SPDX-License-Identifier: Apache-2.0
/*
 * Settings of the host that latency and registration depend on: CPU clocks and sleep states, where
 * this process may run, locked and huge memory, and where NICs' interrupts go.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "topo/node/node_priv.h"

#define CPU_DIR "/sys/devices/system/cpu"

/* ---- CPUs ------------------------------------------------------------------------------------ */

/* Calls fn for each cpuN; @return how many */
static unsigned each_cpu_dir(const struct node *n,
	void (*fn)(const struct node *n, const char *name, void *arg), void *arg)
{
	char **names;
	unsigned k = 0;
	int found = fb_sysroot_list(n->r, CPU_DIR, &names);
	for (int i = 0; i < found; i++) {
		if (strncmp(names[i], "cpu", 3) != 0 || names[i][3] < '0' || names[i][3] > '9')
			continue;
		fn(n, names[i], arg);
		k++;
	}
	if (found >= 0)
		fb_sysroot_names_free(names);
	return k;
}

struct governors {
	char name[8][24];
	unsigned count[8];
	int n, busy, last_rc;
};

static void governor_of(const struct node *n, const char *cpu, void *arg)
{
	struct governors *g = arg;
	char text[24];
	int rc = -16, i; /* EBUSY: the policy is changing */
	for (int tries = 0; tries < 3 && rc == -16; tries++)
		rc = fb_sysroot_readf(
			n->r, text, sizeof(text), CPU_DIR "/%s/cpufreq/scaling_governor", cpu);
	if (rc <= 0) {
		g->busy += rc == -16;
		g->last_rc = rc;
		return;
	}
	for (i = 0; i < g->n && strcmp(g->name[i], text) != 0; i++)
		;
	if (i == 8)
		return;
	if (i == g->n)
		snprintf(g->name[g->n++], sizeof(g->name[0]), "%s", text);
	g->count[i]++;
}

void node_cpu_governor(struct node_run *c)
{
	struct governors g = {.n = 0};
	struct fb_finding f = node_finding(c, NULL);
	char text[200] = "", why[160];
	size_t at = 0;
	bool slow = false;
	unsigned cpus = each_cpu_dir(c->n, governor_of, &g);
	fb_find_read(&f, CPU_DIR "/cpu*/cpufreq/scaling_governor");
	fb_find_expected(&f, "a clock that rises with load rises too late", "performance");
	for (int i = 0; i < g.n && at < sizeof(text); i++) {
		slow = slow || strcmp(g.name[i], "performance") != 0;
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s on %u CPUs",
			i ? ", " : "", g.name[i], g.count[i]);
	}
	if (g.n > 0)
		fb_find(&f, slow ? FB_CHECK_WARN : FB_CHECK_PASS, "%s", text);
	else if (g.busy)
		fb_find(&f, FB_CHECK_ERROR, "the files stay busy: the policy changes all the time");
	else if (cpus == 0 || !c->n->live)
		fb_find(&f, FB_CHECK_SKIP, "%s",
			node_why(c->n, CPU_DIR "/cpu0/cpufreq/scaling_governor", g.last_rc, why,
				sizeof(why)));
	else
		fb_find(&f, FB_CHECK_SKIP, "not available: %s",
			c->n->t->virtual_machine ? "the virtual machine's host decides"
						 : "no cpufreq driver is loaded");
	node_emit(c, &f);
}

struct sleeps {
	unsigned cpus, with; /* with states; with a deep one enabled */
	int64_t deepest;     /* us */
	char name[32];
};

static void sleeps_of(const struct node *n, const char *cpu, void *arg)
{
	struct sleeps *s = arg;
	bool any = false, deep = false;
	for (int i = 0; i < 16; i++) {
		int64_t latency, disabled = 0;
		char name[32] = "?";
		if (fb_sysroot_read_i64(
			    n->r, &latency, CPU_DIR "/%s/cpuidle/state%d/latency", cpu, i) != 0)
			break;
		any = true;
		if (latency <= 10)
			continue;
		if (fb_sysroot_read_i64(
			    n->r, &disabled, CPU_DIR "/%s/cpuidle/state%d/disable", cpu, i) == 0 &&
			disabled != 0)
			continue;
		deep = true;
		if (latency <= s->deepest)
			continue;
		s->deepest = latency;
		if (fb_sysroot_readf(n->r, name, sizeof(name), CPU_DIR "/%s/cpuidle/state%d/name",
			    cpu, i) > 0)
			snprintf(s->name, sizeof(s->name), "%s", name);
	}
	s->cpus += any;
	s->with += deep;
}

void node_cpu_cstates(struct node_run *c)
{
	struct sleeps s = {.cpus = 0};
	struct fb_finding f = node_finding(c, NULL);
	each_cpu_dir(c->n, sleeps_of, &s);
	fb_find_read(&f, CPU_DIR "/cpu*/cpuidle/state*/{latency,disable}");
	fb_find_expected(
		&f, "waking up adds to every latency", "no enabled state over 10 us, in tests");
	if (s.cpus == 0)
		fb_find(&f, FB_CHECK_SKIP, "%s",
			c->n->live ? "not available: no idle states are told here"
				   : "not recorded");
	else if (s.with)
		fb_find(&f, FB_CHECK_WARN, "%u of %u CPUs may sleep so deep: %s wakes in %lld us",
			s.with, s.cpus, *s.name ? s.name : "a state", (long long)s.deepest);
	else
		fb_find(&f, FB_CHECK_PASS, "none over 10 us on %u CPUs", s.cpus);
	node_emit(c, &f);
}

void node_cpu_clocksource(struct node_run *c)
{
	char text[64];
	struct fb_finding f = node_finding(c, NULL);
	if (node_read(c->n, &f, text, sizeof(text),
		    "/sys/devices/system/clocksource/clocksource0/current_clocksource") > 0) {
		/* Hyper-V's page lets user space read the TSC itself. */
		bool good = strcmp(text, "tsc") == 0 || strcmp(text, "arch_sys_counter") == 0 ||
			    strcmp(text, "hyperv_clocksource_tsc_page") == 0;
		fb_find(&f, good ? FB_CHECK_PASS : FB_CHECK_WARN, "%s", text);
		fb_find_expected(&f, "reading another clock enters the kernel or a device",
			"tsc (on Arm: arch_sys_counter)");
	}
	node_emit(c, &f);
}

/* ---- where we may run ------------------------------------------------------------------------ */

/* cpulist of this process, or of the recording one. @return NULL: not told */
static const char *allowed_cpus(const struct node *n, char *buf, size_t len)
{
	static const char key[] = "Cpus_allowed_list:";
	char text[8192];
	if (n->live && n->t->allowed)
		return n->t->allowed;
	if (fb_sysroot_read(n->r, "/proc/self/status", text, sizeof(text)) <= 0)
		return NULL;
	const char *line = strstr(text, key);
	if (!line)
		return NULL;
	line += sizeof(key) - 1;
	line += strspn(line, " \t");
	snprintf(buf, len, "%.*s", (int)strcspn(line, "\n"), line);
	return buf;
}

static const char *local_cpus(const struct node *n, const struct node_dev *d)
{
	return d->pci >= 0    ? n->t->pci[d->pci].cpus
	       : d->rdma >= 0 ? n->t->rdma[d->rdma].cpus
			      : NULL;
}

void node_cpu_affinity(struct node_run *c)
{
	struct node *n = c->n;
	char buf[2048];
	const char *allowed = allowed_cpus(n, buf, sizeof(buf));
	size_t before = c->findings;
	for (size_t i = 0; i < n->n_dev && allowed; i++) {
		const struct node_dev *d = &n->dev[i];
		const char *local = local_cpus(n, d);
		if (d->rdma < 0 || d->role == NODE_ROLE_AGGREGATION)
			continue;
		struct fb_finding f = node_finding(c, d->subject);
		fb_find_read(&f, n->live ? "sched_getaffinity and local_cpulist"
					 : "/proc/self/status Cpus_allowed_list and local_cpulist");
		fb_find_expected(&f, "threads should run near their NIC", "some of %.100s",
			local ? local : "?");
		unsigned both = local ? node_common_cpus(allowed, local) : 0;
		if (!local)
			fb_find(&f, FB_CHECK_SKIP,
				"not available: which CPUs are near is not told");
		else if (both == 0)
			fb_find(&f, FB_CHECK_WARN,
				"none of the CPUs near it is allowed to this process");
		else
			fb_find(&f, FB_CHECK_INFO, "%u CPUs near it may be used", both);
		node_emit(c, &f);
	}
	if (c->findings > before)
		return;
	if (!allowed)
		node_skip(c, "%s",
			n->live ? "not available: the kernel does not tell"
				: "not recorded: /proc/self/status");
	else
		node_skip(c, "not available: no RDMA device here");
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* @return bytes; -1: unlimited; -2: not told */
static int64_t memlock(const struct node *n)
{
	struct rlimit limit;
	char text[4096];
	if (n->live)
		return getrlimit(RLIMIT_MEMLOCK, &limit) != 0 ? -2
		       : limit.rlim_cur == RLIM_INFINITY      ? -1
							      : (int64_t)limit.rlim_cur;
	if (fb_sysroot_read(n->r, "/proc/self/limits", text, sizeof(text)) <= 0)
		return -2;
	const char *line = strstr(text, "Max locked memory");
	if (!line)
		return -2;
	line += strlen("Max locked memory");
	line += strspn(line, " ");
	return strncmp(line, "unlimited", 9) == 0 ? -1 : (int64_t)strtoll(line, NULL, 10);
}

#define CAP_IPC_LOCK_BIT 14
static bool may_lock_all(const struct node *n)
{
	char text[8192];
	if (fb_sysroot_read(n->r, "/proc/self/status", text, sizeof(text)) <= 0)
		return false;
	const char *line = strstr(text, "CapEff:");
	return line && (strtoull(line + 7, NULL, 16) >> CAP_IPC_LOCK_BIT & 1);
}

void node_memlock(struct node_run *c)
{
	struct node *n = c->n;
	struct fb_finding f = node_finding(c, NULL);
	/* What a job registers is not known here: any small limit is too small. */
	uint64_t need = n->expect.memlock ? n->expect.memlock : 1ull << 30;
	int64_t limit = memlock(n);
	bool any = false;
	for (size_t i = 0; i < n->n_dev; i++)
		any = any || n->dev[i].rdma >= 0;
	fb_find_read(&f, n->live ? "getrlimit(RLIMIT_MEMLOCK)" : "/proc/self/limits");
	fb_find_expected(&f,
		n->expect.memlock ? n->expect.path : "registered memory is locked memory",
		n->expect.memlock ? "%llu bytes" : "unlimited (at least %llu bytes)",
		(unsigned long long)need);
	if (!any)
		fb_find(&f, FB_CHECK_SKIP,
			"not available: no RDMA device here, nothing registers memory");
	else if (limit == -2)
		fb_find(&f, FB_CHECK_SKIP, "%s",
			n->live ? "not available: getrlimit failed" : "not recorded");
	else if (limit == -1)
		fb_find(&f, FB_CHECK_PASS, "unlimited");
	else if (may_lock_all(n))
		fb_find(&f, FB_CHECK_INFO,
			"%lld bytes; not judged: CAP_IPC_LOCK is effective, there is no limit",
			(long long)limit);
	else
		fb_find(&f, (uint64_t)limit < need ? FB_CHECK_FAIL : FB_CHECK_PASS, "%lld bytes",
			(long long)limit);
	node_emit(c, &f);
}

struct huge {
	int64_t total, nodes, empty_local;
	bool told;
	char where[24];
};

static void huge_of_node(const struct node *n, int numa, struct huge *h)
{
	char dir[96], **names;
	int64_t pages = 0, v;
	bool local = false;
	snprintf(dir, sizeof(dir), "/sys/devices/system/node/node%d/hugepages", numa);
	int k = fb_sysroot_list(n->r, dir, &names);
	for (int i = 0; i < k; i++)
		if (fb_sysroot_read_i64(n->r, &v, "%s/%s/nr_hugepages", dir, names[i]) == 0 &&
			v >= 0) {
			pages += v;
			h->told = true;
		}
	if (k >= 0)
		fb_sysroot_names_free(names);
	for (size_t i = 0; i < n->n_dev; i++)
		local = local || (n->dev[i].role == NODE_ROLE_COMPUTE && n->dev[i].pci >= 0 &&
					 n->t->pci[n->dev[i].pci].numa == numa);
	h->total += pages;
	h->nodes += pages > 0;
	if (pages == 0 && local) {
		h->empty_local++;
		snprintf(h->where, sizeof(h->where), "node %d", numa);
	}
}

void node_hugepages(struct node_run *c)
{
	struct huge h = {.total = 0};
	char thp[128];
	struct fb_finding f = node_finding(c, NULL);
	for (size_t i = 0; i < c->n->t->n_numa; i++)
		huge_of_node(c->n, c->n->t->numa[i].os_index, &h);
	int rc = fb_sysroot_read(
		c->n->r, "/sys/kernel/mm/transparent_hugepage/enabled", thp, sizeof(thp));
	fb_find_read(&f, "/sys/devices/system/node/node*/hugepages/*/nr_hugepages, "
			 "/sys/kernel/mm/transparent_hugepage/enabled");
	const char *word = rc > 0 ? strchr(thp, '[') : NULL;
	char mode[24] = "not told";
	if (word)
		snprintf(mode, sizeof(mode), "%.*s", (int)strcspn(word + 1, "]"), word + 1);
	if (!h.told && !word)
		fb_find(&f, FB_CHECK_SKIP, "%s",
			c->n->live ? "not available: the kernel has no huge pages"
				   : "not recorded");
	else if (h.total > 0 && h.empty_local > 0)
		fb_find(&f, FB_CHECK_WARN, "%lld reserved, none on %s, where a NIC is",
			(long long)h.total, h.where);
	else
		fb_find(&f, FB_CHECK_INFO, "%lld reserved on %lld nodes; transparent: %s",
			(long long)h.total, (long long)h.nodes, mode);
	fb_find_expected(&f, "memory near the NIC", "where some are reserved, on its node too");
	node_emit(c, &f);
}

/* ---- interrupts ------------------------------------------------------------------------------ */

/* Is any CPU of the list outside `local`? */
static bool outside(const char *list, const char *local)
{
	return node_common_cpus(list, local) < node_common_cpus(list, list);
}

static void interrupts_of(struct node_run *c, const struct node_dev *d)
{
	struct node *n = c->n;
	char path[96], **names, cpus[512], why[160];
	const char *local = local_cpus(n, d);
	unsigned total = 0, away = 0;
	struct fb_finding f = node_finding(c, d->subject);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/msi_irqs", n->t->pci[d->pci].bdf);
	int k = fb_sysroot_list(n->r, path, &names);
	fb_find_read(&f, "%s, /proc/irq/N/effective_affinity_list, local_cpulist", path);
	fb_find_expected(&f, "completions should arrive near the NIC", "CPUs of %.120s",
		local ? local : "?");
	for (int i = 0; i < k; i++) {
		int rc = fb_sysroot_readf(
			n->r, cpus, sizeof(cpus), "/proc/irq/%s/effective_affinity_list", names[i]);
		if (rc <= 0)
			rc = fb_sysroot_readf(n->r, cpus, sizeof(cpus),
				"/proc/irq/%s/smp_affinity_list", names[i]);
		if (rc <= 0)
			continue;
		total++;
		away += local && outside(cpus, local);
	}
	if (k >= 0)
		fb_sysroot_names_free(names);
	if (k < 0)
		fb_find(&f, FB_CHECK_SKIP, "%s", node_why(n, path, k, why, sizeof(why)));
	else if (!local)
		fb_find(&f, FB_CHECK_SKIP, "not available: which CPUs are near is not told");
	else if (total == 0)
		fb_find(&f, FB_CHECK_SKIP, "%s",
			n->live ? "not available: no interrupt tells its CPUs"
				: "not recorded: /proc/irq/N/effective_affinity_list");
	else
		fb_find(&f, away ? FB_CHECK_WARN : FB_CHECK_PASS,
			"%u of %u interrupts go elsewhere", away, total);
	if (away)
		fb_find_remedy(&f, "moves interrupts while traffic runs",
			"set_irq_affinity_cpulist.sh %.120s %s (mlnx-tools); systemctl stop "
			"irqbalance",
			local ? local : "", d->name);
	node_emit(c, &f);
}

void node_irq_affinity(struct node_run *c)
{
	struct node *n = c->n;
	size_t before = c->findings;
	for (size_t i = 0; i < n->n_dev; i++)
		if (n->dev[i].role == NODE_ROLE_COMPUTE && n->dev[i].pci >= 0)
			interrupts_of(c, &n->dev[i]);
	if (c->findings == before) {
		node_skip(c, "not available: no compute NIC here");
		return;
	}
	if (fb_sysroot_exists(n->r, "/run/irqbalance") ||
		fb_sysroot_exists(n->r, "/run/irqbalance.pid")) {
		struct fb_finding f = node_finding(c, NULL);
		fb_find(&f, FB_CHECK_INFO, "irqbalance runs: it may move them at any time");
		fb_find_read(&f, "/run/irqbalance");
		node_emit(c, &f);
	}
}
