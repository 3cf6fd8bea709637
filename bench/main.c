// SPDX-License-Identifier: Apache-2.0
/*
 * fabricbench: the table of commands. The only file that knows every module, and the only one that
 * may end the process.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/mem/mem.h"
#include "bench/core/clock.h"
#include "bench/core/cmd.h"
#include "bench/core/err.h"
#include "bench/core/log.h"
#include "bench/core/units.h"
#include "bench/features.h"
#include "bench/null.h"
#include "bench/predict/claims.h"
#include "bench/run/run.h"
#include "bench/train/gpu_check.h"
#include "bench/train/train.h"
#include "collectives/coll.h"
#include "reports/report.h"
#include "topo/topo.h"
#include "verbs/lossless/check_cmd.h"
#include "verbs/lossless/tree.h"
#include "verbs/verbs.h"
#include "version.h"

static void list(const struct fb_cmd *table, const char *before, FILE *out)
{
	for (; table->name; table++) {
		char name[64];
		snprintf(name, sizeof(name), "%s%s", before, table->name);
		if (table->sub && table->spec)
			fprintf(out, "  %-18s %s\n", name, table->summary);
		if (table->sub) {
			char group[66];
			snprintf(group, sizeof(group), "%s ", name);
			list(table->sub, group, out);
		} else if (table->summary) { /* without one: hidden, for tests */
			fprintf(out, "  %-18s %s\n", name, table->summary);
		}
	}
}

static void help(const struct fb_cmd *commands, FILE *out)
{
	fprintf(out,
		"fabricbench %s: is this cluster's fabric as fast and as lossless as it must be, and what does it cost?\n\n"
		"Usage: fabricbench COMMAND [options]      fabricbench COMMAND --help\n\n",
		FB_VERSION);
	list(commands, "", out);
	fprintf(out,
		"\nExit status: 0 fine; 1 a check or gate failed; 2 usage or unreadable input; 3 could not measure or judge;\n"
		"4 wrong data; 77 not available here and nobody required it.\n");
}

/* Those for tests have no summary, and neither has a group of them. */
static bool shown(const struct fb_cmd *c)
{
	return c->summary || (c->sub && c->sub->summary);
}

static int unknown(const struct fb_cmd *table, const char *group, const char *word)
{
	/* A third of the letters may be wrong: further away it is another word. */
	const char *best = NULL;
	unsigned least = (unsigned)strlen(word) / 3 + 2;
	for (const struct fb_cmd *c = table; c->name; c++) {
		unsigned d = fb_edit_distance(c->name, word);
		if (shown(c) && d < least) {
			least = d;
			best = c->name;
		}
	}
	fprintf(stderr, "fabricbench: error: there is no command \"%s%s\"\n", group, word);
	if (best)
		fprintf(stderr, "  remedy: did you mean \"%s%s\"?\n", group, best);
	else
		fprintf(stderr, "  remedy: fabricbench %s--help lists the commands\n", group);
	return FB_EXIT_USAGE;
}

static bool is_word(const struct fb_cmd *table, const char *word)
{
	while (table->name && strcmp(table->name, word) != 0)
		table++;
	return table->name != NULL;
}

static int dispatch(const struct fb_cmd *commands, const struct fb_cmd *table, const char *group,
	int argc, char **argv)
{
	char next[64];
	if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
		strcmp(argv[1], "help") == 0) {
		FILE *out = argc < 2 ? stderr : stdout;
		if (table == commands) {
			help(commands, out);
		} else {
			fprintf(out, "Usage: fabricbench %sCOMMAND [options]\n\n", group);
			list(table, group, out);
			while (table->name)
				table++;
			fprintf(out, "\nfabricbench %sCOMMAND --help tells the options of one.\n",
				group);
			if (table->summary)
				fprintf(out, "%s\n", table->summary);
		}
		return argc < 2 ? FB_EXIT_USAGE : FB_EXIT_OK;
	}
	for (const struct fb_cmd *c = table; c->name; c++) {
		if (strcmp(c->name, argv[1]) != 0)
			continue;
		if (c->run == NULL && !c->sub) /* run: the one command that must know all others */
			return run_plan_main(argc - 1, argv + 1, commands);
		/* A group may have options of its own, "check --list"; or be a command that has
		 * other commands beside it: "topo", "topo fabric". */
		bool own = c->sub && c->run && argc > 2 && argv[2][0] == '-' &&
			   strcmp(argv[2], "-h") != 0 && strcmp(argv[2], "--help") != 0;
		if (c->sub && c->run && c->spec)
			own = argc < 3 || !is_word(c->sub, argv[2]);
		if (!c->sub || own)
			return c->run(argc - 1, argv + 1);
		snprintf(next, sizeof(next), "%s%s ", group, c->name);
		return dispatch(commands, c->sub, next, argc - 1, argv + 1);
	}
	return unknown(table, group, argv[1]);
}

int main(int argc, char **argv)
{
	fb_log_init();
	/* A limit on a file's size (ulimit -f) is then an error of write(), told like a full disk,
	 * and not a death without a word. */
	signal(SIGXFSZ, SIG_IGN);
	if (argc >= 2 && strcmp(argv[1], "--version") == 0) {
		printf("fabricbench %s (%s)\n", FB_VERSION, FB_GIT);
		return FB_EXIT_OK;
	}
	const struct fb_cmd commands[] = {
		topo_cmd,
		check_cmd,
		verbs_cmd,
		coll_cmd,
		train_cmd,
		mem_cmd,
		null_cmd,
		gpu_check_cmd,
		tree_cmd,
		claims_cmd,
		report_cmd,
		compare_cmd,
		import_cmd,
		features_cmd,
		{.name = "run", .summary = "run a plan: every job, one verdict, one report"},
		{.name = NULL},
	};
	fb_clock_init();
	return dispatch(commands, commands, "", argc, argv);
}
