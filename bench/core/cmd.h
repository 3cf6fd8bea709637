/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of the program: each module exports one or more of these; main.c's table names them all.
 */
#ifndef FB_CORE_CMD_H
#define FB_CORE_CMD_H

struct fb_opt_spec;

struct fb_cmd {
	const char *name;    /**< "topo", or the second word under a group: "latency" */
	const char *summary; /**< NULL: not in the help */
	/** argv[0] is the command's own name. @return the exit status */
	int (*run)(int argc, char **argv);
	const struct fb_cmd *sub; /**< group: table of second words, ends with name NULL, whose
				    summary stands below the list; run is then NULL, or what
				    "NAME --option" runs */
	/**
	 * The option tables of the command, so that a plan can check its keys before anything runs.
	 * The sets' cfg may be NULL: the caller copies the spec and puts scratch memory there.
	 * NULL: the command cannot stand in a plan.
	 */
	const struct fb_opt_spec *(*spec)(void);
};

struct fb_err;
/** Print an error with its remedy on stderr. @return its exit status */
int fb_cmd_fail(const struct fb_err *e);

#endif
