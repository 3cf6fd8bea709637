# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What the scripts share: words to people, the tree's place, a time limit. Sourced, never run; it changes
# nothing when it is read. Messages go to standard error, so that standard output stays the script's result.

# The exit statuses are the program's own (DESIGN.md, "Exit status").
# shellcheck disable=SC2034
readonly FB_FAILED=1 FB_USAGE=2 FB_NOT_MEASURED=3 FB_NOT_HERE=77

fb_say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# One message with cause and remedy, then the status that the cause deserves.
fb_die() { # STATUS MESSAGE...
	local status=$1
	shift
	fb_say "$@"
	exit "$status"
}

fb_have() { command -v "$1" >/dev/null 2>&1; }

# The top of the tree, from wherever a script was called.
fb_top() { (cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P); }

# Every process the machine may run at once for us: the CPUs of our affinity mask.
fb_cpus() { nproc 2>/dev/null || echo 1; }

# Runs a command so that a signal to the script reaches it, and waits until it has really ended: the program
# still writes a valid document on SIGTERM. Bash makes a background child deaf to SIGINT, hence always TERM.
fb_run() { # COMMAND...
	local pid status caught=1
	"$@" </dev/null &
	pid=$!
	trap 'caught=1; kill -TERM "$pid" 2>/dev/null || true' INT TERM HUP
	while [[ -n $caught ]]; do
		caught='' status=0
		# A signal ends this wait early; the next one answers with the child's own status.
		wait "$pid" || status=$?
	done
	trap - INT TERM HUP
	return "$status"
}
