#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Real sessions, thousands of them, one after the other against one server in the lab: four queue pairs each, connected
# by exchange and by rdma_cm, some of them killed in the middle. Afterwards the server's host has no queue pair,
# completion queue, region or connection id more than before, and the server as many open files and as much memory as
# after the first few. SESSIONS=10000 sets how many. Prints "ok NAME", "not ok NAME: why" or "skip ID: reason".
# The same file runs in the guests: --server in guest 0, --client in guest 1.

# shellcheck source=scripts/lab/tests.sh
source "$(dirname "$0")/../lab/tests.sh"
port=18515 first_port=18516 last_port=18517
sessions=${SESSIONS:-300}
settle=40 # sessions before the first look: what is allocated once is there after them
killed=3
by_cm=$((sessions / 10))

# ---- guest 0 ---------------------------------------------------------------------------------------------------------
holds() { # PID: objects of the device, open files and memory of the server
	rdma resource show rxe0 | tr -s ' ' | sed 's/^[0-9]*: //'
	echo "files $(find "/proc/$1/fd" -mindepth 1 | wc -l) kib $(awk '/VmRSS/ { print $2 }' "/proc/$1/status")"
}

# The guests' clocks differ: a port that opens tells guest 1 that guest 0 has looked.
looked() { # PORT
	"$fb" verbs serve -p "$1" 2>>"$LAB_OUT/looked.err" &
	lookers+=("looked$1=$!")
	lab_serve_until_told "serve=$serve" "${lookers[@]}"
}

server() {
	local serve lookers=()
	modprobe rdma_ucm
	"$fb" verbs serve -p $port 2>"$LAB_OUT/serve.err" &
	serve=$!
	lab_serve_until_told serve=$serve
	until (($(grep -c ' after ' "$LAB_OUT/serve.err") == settle)); do sleep 0.3; done
	sleep 1
	holds $serve >"$LAB_OUT/first"
	looked $first_port
	until (($(grep -c ' after ' "$LAB_OUT/serve.err") >= settle + sessions + killed)); do sleep 2; done
	sleep 1
	holds $serve >"$LAB_OUT/last"
	looked $last_port
	while true; do sleep 0.5; done
}

# ---- guest 1 ---------------------------------------------------------------------------------------------------------
churn() { # NAME SESSIONS OPTION...
	local name=$1 count=$2
	shift 2
	run_case "$name" "$fb" verbs churn --sessions "$count" --op write -q 4 -s 4K -t 8 -n 8 -w 0 --quiet "$@" "$LAB_PEER"
}

client() {
	local i pid
	case_limit=$((300 + 2 * sessions))
	modprobe rdma_ucm
	lab_wait_for "$LAB_PEER" $port
	churn settle $((settle / 2))
	churn settle-cm $((settle / 2)) -R
	lab_wait_for "$LAB_PEER" $first_port
	churn exchange $((sessions - by_cm))
	churn rdma-cm $by_cm -R
	for ((i = 0; i < killed; i++)); do
		"$fb" verbs bandwidth --op write -q 4 -s 4K -D 20s --quiet "$LAB_PEER" >/dev/null 2>&1 &
		pid=$!
		sleep 2
		kill -KILL $pid
		wait $pid 2>/dev/null
	done
	lab_wait_for "$LAB_PEER" $last_port
}
lab_guest "$@"

# ---- host ------------------------------------------------------------------------------------------------------------
lab_boot verbs-sessions-lab 1 --guests 2 --timeout $((400 + 2 * sessions)) --env SESSIONS="$sessions" -- "$self" --server -- "$self" --client
a=$work/guest0

for name in settle settle-cm exchange rdma-cm; do
	read -r got took < <(status_of "$name")
	why=''
	if [[ $got != 0 ]]; then why="status $got after $(cat "$cases/$name.out" 2>/dev/null): $(said "$name")"; fi
	verdict "$name" "$why"
	echo "# $name: $(cat "$cases/$name.out" 2>/dev/null)" >&2
done
served=$(grep -c ' after ' "$a/serve.err" 2>/dev/null)
why=''
if [[ $served != $((settle + sessions + killed)) ]]; then why="the server counts ${served:-none} instead of $((settle + sessions + killed))"; fi
verdict all-served "$why"
first=$(head -n1 "$a/first" 2>/dev/null) last=$(head -n1 "$a/last" 2>/dev/null)
why=''
if [[ -z $first || $first != "$last" ]]; then why="'$first' after $settle sessions, '$last' after $sessions more"; fi
verdict no-object-left "$why"
read -r _ files0 _ kib0 < <(tail -n1 "$a/first")
read -r _ files1 _ kib1 < <(tail -n1 "$a/last")
echo "# $sessions sessions: $first; files $files0 -> $files1; $kib0 -> $kib1 KiB" >&2
why=''
if [[ -z ${files1:-} ]] || ((files1 > files0)); then why="$files0 open files after $settle sessions, ${files1:-?} after $sessions more"; fi
verdict no-file-left "$why"
why=''
# What malloc keeps for later comes and goes; 10,000 sessions that left something each would show far more.
if [[ -z ${kib1:-} ]] || ((kib1 > kib0 + 1024)); then why="$kib0 KiB after $settle sessions, ${kib1:-?} after $sessions more"; fi
verdict no-memory-left "$why"
server_ends 0
exit "$bad"
