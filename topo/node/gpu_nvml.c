// SPDX-License-Identifier: Apache-2.0
/*
 * Facts of GPUs from the live driver, by NVML. The library comes with the driver and is opened by
 * name; its prototypes are written here after NVIDIA's NVML API reference, so that building needs
 * nothing of NVIDIA's. A call the library does not have, or a board that does not support it,
 * leaves its fact unknown.
 *
 * A broken driver can hold a call for ever: all calls are made by a thread of their own, which is
 * left behind when its time is over.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "topo/node/gpu.h"

#define LIBRARY   "libnvidia-ml.so.1"
#define DEADLINE  10000 /* ms */
#define MAX_LINKS 36    /* NVML_NVLINK_MAX_LINKS of the newest boards */

/* Names and values after the NVML API reference. */
typedef void *nvml_device;
struct nvml_pci {
	char bus_id_legacy[16];
	unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
	char bus_id[32];
};
struct nvml_memory {
	unsigned long long total, free, used;
};
struct nvml_bar1 {
	unsigned long long total, free, used;
};
struct nvml_utilization {
	unsigned gpu, memory;
};
struct nvml_fabric {
	unsigned char cluster[16];
	int status;
	unsigned clique;
	unsigned char state;
};
enum {
	NVML_OK = 0,
	NVML_CORRECTED = 0,
	NVML_UNCORRECTED = 1,
	NVML_VOLATILE = 0,
	NVML_AGGREGATE = 1
};
/* Clocks' event reasons. */
#define REASON_IDLE        0x01ull
#define REASON_SW_POWER    0x04ull
#define REASON_HW_SLOWDOWN 0x08ull
#define REASON_SW_THERMAL  0x20ull
#define REASON_HW_THERMAL  0x40ull
#define REASON_POWER_BRAKE 0x80ull

/* X(name, arguments): every function that is called. */
#define NVML_CALLS(X)                                                                     \
	X(nvmlInit_v2, (void))                                                            \
	X(nvmlShutdown, (void))                                                           \
	X(nvmlSystemGetDriverVersion, (char *, unsigned))                                 \
	X(nvmlDeviceGetCount_v2, (unsigned *))                                            \
	X(nvmlDeviceGetHandleByIndex_v2, (unsigned, nvml_device *))                       \
	X(nvmlDeviceGetPciInfo_v3, (nvml_device, struct nvml_pci *))                      \
	X(nvmlDeviceGetName, (nvml_device, char *, unsigned))                             \
	X(nvmlDeviceGetPerformanceState, (nvml_device, int *))                            \
	X(nvmlDeviceGetUtilizationRates, (nvml_device, struct nvml_utilization *))        \
	X(nvmlDeviceGetMemoryInfo, (nvml_device, struct nvml_memory *))                   \
	X(nvmlDeviceGetBAR1MemoryInfo, (nvml_device, struct nvml_bar1 *))                 \
	X(nvmlDeviceGetEccMode, (nvml_device, int *, int *))                              \
	X(nvmlDeviceGetTotalEccErrors, (nvml_device, int, int, unsigned long long *))     \
	X(nvmlDeviceGetRemappedRows,                                                      \
		(nvml_device, unsigned *, unsigned *, unsigned *, unsigned *))            \
	X(nvmlDeviceGetRetiredPagesPendingStatus, (nvml_device, int *))                   \
	X(nvmlDeviceGetCurrentClocksThrottleReasons, (nvml_device, unsigned long long *)) \
	X(nvmlDeviceGetEnforcedPowerLimit, (nvml_device, unsigned *))                     \
	X(nvmlDeviceGetPowerManagementDefaultLimit, (nvml_device, unsigned *))            \
	X(nvmlDeviceGetGpuFabricInfo, (nvml_device, struct nvml_fabric *))                \
	X(nvmlDeviceGetNvLinkState, (nvml_device, unsigned, int *))

struct nvml {
#define MEMBER(name, args) int(*name) args;
	NVML_CALLS(MEMBER)
#undef MEMBER
};

/* Is it there, and did it answer? */
#define ASK(f, ...) (n->f && n->f(__VA_ARGS__) == NVML_OK)

static void open_calls(void *lib, struct nvml *n)
{
	/* POSIX's own way of taking a function from dlsym(). */
#define TAKE(name, args) *(void **)(void *)&n->name = dlsym(lib, #name);
	NVML_CALLS(TAKE)
#undef TAKE
}

static void read_errors(const struct nvml *n, nvml_device dev, struct gpu_fact *f)
{
	static const struct {
		int type, counter;
	} kinds[GPU_COUNTS] = {[GPU_CORRECTED_VOLATILE] = {NVML_CORRECTED, NVML_VOLATILE},
		[GPU_UNCORRECTED_VOLATILE] = {NVML_UNCORRECTED, NVML_VOLATILE},
		[GPU_CORRECTED_AGGREGATE] = {NVML_CORRECTED, NVML_AGGREGATE},
		[GPU_UNCORRECTED_AGGREGATE] = {NVML_UNCORRECTED, NVML_AGGREGATE}};
	unsigned corr, uncorr, pending, failed;
	unsigned long long v;
	int now, later, retired;
	if (ASK(nvmlDeviceGetEccMode, dev, &now, &later)) {
		f->ecc = now != 0;
		f->ecc_pending = later != 0;
	}
	for (int i = 0; i < GPU_COUNTS; i++)
		if (ASK(nvmlDeviceGetTotalEccErrors, dev, kinds[i].type, kinds[i].counter, &v))
			f->errors[i] = (int64_t)v;
	if (ASK(nvmlDeviceGetRemappedRows, dev, &corr, &uncorr, &pending, &failed)) {
		f->remap_corrected = corr;
		f->remap_uncorrected = uncorr;
		f->remap_pending = pending != 0;
		f->remap_failed = failed != 0;
	}
	if (ASK(nvmlDeviceGetRetiredPagesPendingStatus, dev, &retired))
		f->retired_pending = retired != 0;
}

static void read_state(const struct nvml *n, nvml_device dev, struct gpu_fact *f)
{
	struct nvml_utilization use;
	unsigned mw;
	unsigned long long why;
	if (ASK(nvmlDeviceGetPerformanceState, dev, &f->pstate) && f->pstate > 15)
		f->pstate = -1;
	if (ASK(nvmlDeviceGetUtilizationRates, dev, &use))
		f->util = (int)use.gpu;
	if (ASK(nvmlDeviceGetCurrentClocksThrottleReasons, dev, &why))
		f->throttle = (why & REASON_IDLE ? GPU_HELD_IDLE : 0) |
			      (why & REASON_SW_POWER ? GPU_HELD_SW_POWER : 0) |
			      (why & REASON_HW_SLOWDOWN ? GPU_HELD_HW_SLOWDOWN : 0) |
			      (why & REASON_SW_THERMAL ? GPU_HELD_SW_THERMAL : 0) |
			      (why & REASON_HW_THERMAL ? GPU_HELD_HW_THERMAL : 0) |
			      (why & REASON_POWER_BRAKE ? GPU_HELD_POWER_BRAKE : 0);
	if (ASK(nvmlDeviceGetEnforcedPowerLimit, dev, &mw))
		f->power_limit = mw / 1000.0;
	if (ASK(nvmlDeviceGetPowerManagementDefaultLimit, dev, &mw))
		f->power_default = mw / 1000.0;
}

static void read_fabric(const struct nvml *n, nvml_device dev, struct gpu_fact *f)
{
	struct nvml_fabric fabric;
	memset(&fabric, 0, sizeof(fabric));
	if (!ASK(nvmlDeviceGetGpuFabricInfo, dev, &fabric))
		return;
	/* 0 not supported, 1 not started, 2 in progress, 3 completed */
	f->fabric = fabric.state <= 3 ? (enum gpu_fabric)fabric.state : GPU_FABRIC_UNKNOWN;
	if (f->fabric == GPU_FABRIC_COMPLETED)
		snprintf(f->fabric_status, sizeof(f->fabric_status), "%s",
			fabric.status == NVML_OK ? "Success" : "failed");
	if (f->fabric == GPU_FABRIC_COMPLETED && fabric.status != NVML_OK)
		snprintf(
			f->fabric_status, sizeof(f->fabric_status), "NVML error %d", fabric.status);
	f->clique = fabric.clique;
	f->cluster_zero = 1;
	for (size_t i = 0; i < sizeof(fabric.cluster); i++)
		if (fabric.cluster[i])
			f->cluster_zero = 0;
}

static void read_links(const struct nvml *n, nvml_device dev, struct gpu_fact *f)
{
	for (unsigned i = 0; i < MAX_LINKS; i++) {
		int up = 0;
		if (!ASK(nvmlDeviceGetNvLinkState, dev, i, &up))
			continue;
		if (f->links < 0)
			f->links = f->links_down = 0;
		f->links += up != 0;
		f->links_down += up == 0;
	}
}

static void read_gpu(const struct nvml *n, nvml_device dev, struct gpu_facts *g)
{
	struct nvml_pci pci;
	struct nvml_memory memory;
	struct nvml_bar1 bar1;
	memset(&pci, 0, sizeof(pci));
	struct gpu_fact *f = gpu_facts_add(g);
	if (!f)
		return;
	if (ASK(nvmlDeviceGetPciInfo_v3, dev, &pci)) {
		pci.bus_id[sizeof(pci.bus_id) - 1] = '\0';
		if (!gpu_bdf(pci.bus_id, f->bdf, sizeof(f->bdf)))
			f->bdf[0] = '\0';
	}
	if (!ASK(nvmlDeviceGetName, dev, f->model, sizeof(f->model)))
		f->model[0] = '\0';
	if (ASK(nvmlDeviceGetMemoryInfo, dev, &memory))
		f->memory = (int64_t)memory.total;
	if (ASK(nvmlDeviceGetBAR1MemoryInfo, dev, &bar1))
		f->bar1 = (int64_t)bar1.total;
	read_errors(n, dev, f);
	read_state(n, dev, f);
	read_fabric(n, dev, f);
	read_links(n, dev, f);
}

static void read_all(void *lib, struct gpu_facts *g)
{
	struct nvml calls, *n = &calls;
	unsigned count = 0;
	open_calls(lib, n);
	if (!ASK(nvmlInit_v2)) {
		snprintf(g->why, sizeof(g->why),
			"not available: NVML is here, and its driver does not answer");
		return;
	}
	if (!ASK(nvmlSystemGetDriverVersion, g->driver, sizeof(g->driver)))
		g->driver[0] = '\0';
	g->told = ASK(nvmlDeviceGetCount_v2, &count);
	for (unsigned i = 0; i < count && i < GPU_MAX; i++) {
		nvml_device dev;
		if (ASK(nvmlDeviceGetHandleByIndex_v2, i, &dev))
			read_gpu(n, dev, g);
	}
	if (g->n == 0)
		snprintf(g->why, sizeof(g->why), "not available: the driver sees no GPU");
	if (n->nvmlShutdown)
		n->nvmlShutdown();
}

/* ---- the thread ------------------------------------------------------------------------------ */

struct job {
	pthread_mutex_t lock;
	pthread_cond_t done_cond;
	bool done, left; /* left: nobody waits any more; the thread frees */
	void *lib;
	struct gpu_facts facts;
};

static void job_free(struct job *j)
{
	gpu_facts_free(&j->facts);
	pthread_cond_destroy(&j->done_cond);
	pthread_mutex_destroy(&j->lock);
	free(j);
}

static void *job_main(void *arg)
{
	struct job *j = arg;
	read_all(j->lib, &j->facts);
	pthread_mutex_lock(&j->lock);
	j->done = true;
	bool left = j->left;
	pthread_cond_signal(&j->done_cond);
	pthread_mutex_unlock(&j->lock);
	if (left)
		job_free(j);
	return NULL;
}

static void wait_for(struct job *j, unsigned deadline_ms, struct gpu_facts *g)
{
	struct timespec end;
	int rc = 0;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += (end.tv_nsec / 1000000 + deadline_ms) / 1000;
	end.tv_nsec = (end.tv_nsec / 1000000 + deadline_ms) % 1000 * 1000000;
	pthread_mutex_lock(&j->lock);
	while (!j->done && rc == 0)
		rc = pthread_cond_timedwait(&j->done_cond, &j->lock, &end);
	bool done = j->done;
	j->left = !done;
	if (done) {
		*g = j->facts;
		j->facts = (struct gpu_facts){.n = 0};
	} else {
		snprintf(g->why, sizeof(g->why),
			"not available: NVML did not answer within %u ms: is the driver stuck? See dmesg",
			deadline_ms);
	}
	pthread_mutex_unlock(&j->lock);
	if (done)
		job_free(j);
}

void gpu_facts_ask(void *library, unsigned deadline_ms, struct gpu_facts *g)
{
	pthread_t thread;
	pthread_attr_t attr;
	struct job *j = calloc(1, sizeof(*j));
	snprintf(g->why, sizeof(g->why), "not available: no thread for NVML");
	if (!j)
		return;
	pthread_mutex_init(&j->lock, NULL);
	pthread_cond_init(&j->done_cond, NULL);
	j->lib = library;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, job_main, j) == 0)
		wait_for(j, deadline_ms, g);
	else
		job_free(j);
	pthread_attr_destroy(&attr);
}

void gpu_facts_nvml(struct gpu_facts *g)
{
	void *library = NULL;
	/* Without the driver the library can do nothing: do not even load it. */
	if (access("/proc/driver/nvidia/version", R_OK) != 0 && access("/dev/nvidiactl", F_OK) != 0)
		snprintf(g->why, sizeof(g->why), "not available: no NVIDIA driver is loaded");
	else if (!(library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL)))
		snprintf(g->why, sizeof(g->why), "not available: there is no %s", LIBRARY);
	else
		/* It stays open: a thread that is left behind may be in it. */
		gpu_facts_ask(library, DEADLINE, g);
	snprintf(g->read, sizeof(g->read), "NVML");
	snprintf(g->links_read, sizeof(g->links_read), "nvmlDeviceGetNvLinkState");
}
