// SPDX-License-Identifier: Apache-2.0
/*
 * Joining the ranks by whatever the options and the environment say. Where a launcher promised
 * several ranks and the way to them is missing, this fails: it never goes on alone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/clock.h"
#include "bench/core/plugin.h"
#include "bench/oob/oob_priv.h"

static int open_local(const struct fb_oob_cfg *cfg, struct fb_oob *o, struct fb_err *e)
{
	if (cfg->ranks > 1) {
		fb_fail_usage(e, "this command does not run %d local ranks", cfg->ranks);
		fb_hint(e,
			"start each rank with --comm tcp --rank I, or by scripts/launch --local %d",
			cfg->ranks);
		return -EINVAL;
	}
	return oob_local_open(o, e);
}

static int open_mpi(const struct fb_oob_cfg *cfg, struct fb_oob *o, struct fb_err *e)
{
	struct fb_err why = {0};
	const struct fb_plugin *p = fb_plugin_open("mpi", &why);
	if (!p || !p->oob) {
		fb_fail(e, FB_EXIT_UNMEASURED, ENODEV,
			"an MPI launcher started %d ranks, and the MPI plug-in cannot be used: %s",
			cfg->ranks, p ? "it has no control channel" : why.msg);
		fb_hint(e,
			"apt-get install openmpi-bin libopenmpi-dev && make mpi (another MPI: make mpi "
			"MPICC=/path/mpicc); without MPI: scripts/launch, or --comm tcp");
		return -ENODEV;
	}
	int rc = p->oob->open(fb_clock_ns, cfg->timeout_ns, o, e);
	if (rc == 0 && o->size != cfg->ranks) {
		rc = fb_fail(e, FB_EXIT_UNMEASURED, EPROTO,
			"the launcher promised %d ranks, and MPI has %d: the plug-in is built for another MPI "
			"than the launcher's",
			cfg->ranks, o->size);
		fb_hint(e, "rebuild it with the launcher's compiler: make mpi MPICC=/path/mpicc");
		o->ops->close(o);
	}
	return rc;
}

int fb_oob_open(const struct fb_oob_cfg *user, struct fb_oob **o, struct fb_err *e)
{
	struct fb_oob_cfg cfg = *user;
	*o = NULL;
	int rc = fb_oob_from_env(&cfg, e);
	if (rc != 0)
		return rc;
	struct fb_oob *new = oob_new(e);
	if (!new)
		return -ENOMEM;
	if (cfg.kind == FB_OOB_MPI)
		rc = open_mpi(&cfg, new, e);
	else if (cfg.kind == FB_OOB_TCP)
		rc = oob_tcp_meet(&cfg, NULL, new, e);
	else
		rc = open_local(&cfg, new, e);
	if (rc != 0) {
		oob_delete(new);
		return rc;
	}
	*o = new;
	return 0;
}
