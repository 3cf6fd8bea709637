// SPDX-License-Identifier: Apache-2.0
/*
 * What the user's options and the launcher's environment say about ranks, brought to one answer.
 *
 * Options win over the environment, and the launcher nearest to the process wins over those around
 * it: mpirun, then PMI, then a Slurm step, then RANK/WORLD_SIZE, then a Kubernetes job's index. The
 * one thing never done is to run several independent copies where a launcher promised one job.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/units.h"
#include "bench/oob/oob_priv.h"

static const char *const kinds[] = {"auto", "local", "tcp", "mpi", NULL};

const struct fb_opt fb_oob_opts[] = {
	{.name = "comm",
		.type = FB_OPT_ENUM,
		.offset = offsetof(struct fb_oob_cfg, kind),
		.arg = "KIND",
		.help = "how ranks talk besides the fabric under test; local: threads of this process",
		.def = "auto",
		.names = kinds},
	{.name = "ranks",
		.type = FB_OPT_INT,
		.offset = offsetof(struct fb_oob_cfg, ranks),
		.arg = "N",
		.help = "number of ranks; 0: what the launcher's environment says, else 1",
		.def = "0",
		.min = 0,
		.max = OOB_MAX_RANKS},
	{.name = "rank",
		.type = FB_OPT_INT,
		.offset = offsetof(struct fb_oob_cfg, rank),
		.arg = "I",
		.help = "this process's rank; -1: what the launcher's environment says",
		.def = "-1",
		.min = -1,
		.max = OOB_MAX_RANKS - 1},
	{.name = "master",
		.type = FB_OPT_STRING,
		.offset = offsetof(struct fb_oob_cfg, master),
		.arg = "HOST[:PORT]",
		.help = "where rank 0 listens (tcp)"},
	{.name = "bind",
		.type = FB_OPT_STRING,
		.offset = offsetof(struct fb_oob_cfg, bind),
		.arg = "ADDRESS",
		.help = "the one address to listen on (default: any)"},
	{.letter = 'p',
		.name = "port",
		.type = FB_OPT_INT,
		.offset = offsetof(struct fb_oob_cfg, port),
		.arg = "PORT",
		.help = "TCP port of the control channel; 0: MASTER_PORT, else 18515",
		.def = "0",
		.min = 0,
		.max = 65535},
	{.name = "token",
		.type = FB_OPT_STRING,
		.offset = offsetof(struct fb_oob_cfg, token),
		.arg = "TEXT",
		.help = "refuse peers without this text (or FABRICBENCH_TOKEN); sent in clear: a guard against "
			"mistakes, not against attackers"},
	{.name = "connect-timeout",
		.type = FB_OPT_DURATION,
		.offset = offsetof(struct fb_oob_cfg, timeout_ns),
		.arg = "DURATION",
		.help = "longest wait for the other ranks to come",
		.def = "30s"},
	{.name = NULL},
};

/* ---- the launcher's word -----------------------------------------------------------------------
 */

struct launch {
	const char *name;
	int rank, size; /* -1: not said */
	bool pmi;       /* an MPI library would find its way in */
};

/* @return the variable's number, -1 when it is not set, -2 with *e when it is no number */
static int env_int(const char *name, struct fb_err *e)
{
	const char *s = getenv(name);
	uint64_t v;
	if (!s || s[0] == '\0')
		return -1;
	if (fb_parse_u64(s, 0, INT32_MAX, &v, NULL) != 0) {
		fb_fail_usage(e, "the environment's %s=%s is not a number", name, s);
		return -2;
	}
	return (int)v;
}

struct source {
	const char *name, *rank, *size, *size2;
	bool pmi;
};
static const struct source sources[] = {
	{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL, true},
	{"the launcher (PMI)", "PMI_RANK", "PMI_SIZE", NULL, true},
	{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", false},
	{"the environment", "RANK", "WORLD_SIZE", NULL, false},
	{"the job", "JOB_COMPLETION_INDEX", "WORLD_SIZE", NULL, false},
};

/* In a batch script Slurm sets rank and size of a step that does not exist. */
static bool slurm_batch_script(void)
{
	return getenv("SLURM_JOB_ID") && !getenv("SLURM_STEP_ID") && !getenv("SLURM_STEPID");
}

static int find_launch(struct launch *l, struct fb_err *e)
{
	*l = (struct launch){NULL, -1, -1, false};
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		const struct source *s = &sources[i];
		if (strcmp(s->rank, "SLURM_PROCID") == 0 && slurm_batch_script())
			continue;
		const int rank = env_int(s->rank, e);
		int size = env_int(s->size, e);
		if (size == -1 && s->size2)
			size = env_int(s->size2, e);
		if (rank == -2 || size == -2)
			return -EINVAL;
		if (rank < 0)
			continue;
		*l = (struct launch){s->name, rank, size, s->pmi};
		if (size > 0 && rank >= size)
			return fb_fail_usage(e,
				"%s says rank %d of %d ranks: the first is too large", s->name,
				rank, size);
		return 0;
	}
	return 0;
}

/* The first host of Slurm's list: "node[03-17,20],x7" -> "node03". */
static bool first_slurm_host(const char *list, char *out, size_t cap)
{
	size_t n = 0;
	const char *p = list;
	for (; *p && *p != ',' && *p != '['; p++)
		if (n + 1 < cap)
			out[n++] = *p;
	if (*p == '[') {
		for (p++; isdigit((unsigned char)*p); p++)
			if (n + 1 < cap)
				out[n++] = *p;
		while (*p && *p != ']')
			p++;
		for (p += *p == ']'; *p && *p != ','; p++)
			if (n + 1 < cap)
				out[n++] = *p;
	}
	out[n] = '\0';
	return n > 0;
}

/* ---- settling
 * ------------------------------------------------------------------------------------
 */

static int settle_kind(struct fb_oob_cfg *cfg, const struct launch *l, struct fb_err *e)
{
	const bool several = l->size > 1;
	if (cfg->kind == FB_OOB_LOCAL && several)
		return fb_fail_usage(e,
			"--comm local makes ranks of one process, but %s started %d processes",
			l->name, l->size);
	if (cfg->kind == FB_OOB_MPI && !l->pmi) {
		fb_fail_usage(e, "--comm mpi, but no MPI launcher started this process");
		fb_hint(e, "start it by mpirun -n N, or use --comm tcp");
		return -EINVAL;
	}
	if (cfg->kind != FB_OOB_AUTO)
		return 0;
	if (cfg->rank >= 0 || cfg->master)
		cfg->kind = FB_OOB_TCP;
	else if (l->pmi && several)
		cfg->kind = FB_OOB_MPI;
	else if (l->rank >= 0 && several)
		cfg->kind = FB_OOB_TCP;
	else
		cfg->kind = FB_OOB_LOCAL;
	return 0;
}

static int settle_ranks(struct fb_oob_cfg *cfg, const struct launch *l, struct fb_err *e)
{
	if (cfg->kind == FB_OOB_LOCAL) {
		cfg->ranks = cfg->ranks > 0 ? cfg->ranks : 1;
		cfg->rank = 0;
		return 0;
	}
	if (cfg->kind == FB_OOB_MPI && cfg->ranks > 0 && cfg->ranks != l->size)
		return fb_fail_usage(
			e, "--ranks %d, but %s started %d", cfg->ranks, l->name, l->size);
	if (cfg->ranks == 0 && l->size > 0)
		cfg->ranks = l->size;
	if (cfg->rank < 0)
		cfg->rank = l->rank;
	if (cfg->rank < 0) {
		fb_fail_usage(e, "which rank is this process? Neither --rank nor a launcher says");
		fb_hint(e,
			"give --rank I --ranks N --master HOST, or start it by scripts/launch, srun or "
			"mpirun");
		return -EINVAL;
	}
	if (cfg->ranks == 0) {
		fb_fail_usage(
			e, "rank %d of how many? Neither --ranks nor WORLD_SIZE says", cfg->rank);
		fb_hint(e, "add --ranks N");
		return -EINVAL;
	}
	if (cfg->rank >= cfg->ranks)
		return fb_fail_usage(
			e, "rank %d of %d ranks: they are counted from 0", cfg->rank, cfg->ranks);
	return 0;
}

/* MASTER_ADDR, or the first host of the Slurm step. What has to be made lives in a per-thread
 * buffer, as getenv()'s answers do in the environment. */
static int settle_master(struct fb_oob_cfg *cfg, struct fb_err *e)
{
	static _Thread_local char slurm_host[256];
	if (cfg->kind != FB_OOB_TCP)
		return 0;
	if (!cfg->master)
		cfg->master = getenv("MASTER_ADDR");
	if (cfg->port == 0) {
		const int port = env_int("MASTER_PORT", e);
		if (port == -2)
			return -EINVAL;
		if (port > 65535)
			return fb_fail_usage(
				e, "the environment's MASTER_PORT=%d is no port", port);
		cfg->port = port > 0 ? port : 0;
	}
	if (cfg->master && cfg->master[0] == '\0')
		cfg->master = NULL;
	if (cfg->master || cfg->rank == 0)
		return 0;
	const char *nodes = getenv("SLURM_STEP_NODELIST");
	if (!nodes)
		nodes = getenv("SLURM_JOB_NODELIST");
	if (nodes && first_slurm_host(nodes, slurm_host, sizeof(slurm_host))) {
		cfg->master = slurm_host;
		return 0;
	}
	fb_fail_usage(e, "rank %d does not know where rank 0 is", cfg->rank);
	fb_hint(e, "give --master HOST[:PORT], or set MASTER_ADDR and MASTER_PORT");
	return -EINVAL;
}

int fb_oob_from_env(struct fb_oob_cfg *cfg, struct fb_err *e)
{
	struct launch l;
	int rc = find_launch(&l, e);
	if (rc == 0)
		rc = settle_kind(cfg, &l, e);
	if (rc == 0)
		rc = settle_ranks(cfg, &l, e);
	if (rc == 0)
		rc = settle_master(cfg, e);
	if (rc != 0)
		return rc;
	if (!cfg->token)
		cfg->token = getenv("FABRICBENCH_TOKEN");
	if (cfg->token && strlen(cfg->token) >= OOB_TOKEN)
		return fb_fail_usage(e, "the token has %zu characters: at most %d are allowed",
			strlen(cfg->token), OOB_TOKEN - 1);
	if (cfg->timeout_ns == 0)
		cfg->timeout_ns = 30000000000u;
	return 0;
}
