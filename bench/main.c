// SPDX-License-Identifier: Apache-2.0
/*
 * fabricbench: the table of commands. The only file that knows every module, and the only one that
 * may end the process.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core/cmd.h"
#include "bench/core/err.h"
#include "bench/core/log.h"

int main(int argc, char **argv)
{
	fb_log_init();
	(void)argc;
	(void)argv;
	return FB_EXIT_USAGE;
}
