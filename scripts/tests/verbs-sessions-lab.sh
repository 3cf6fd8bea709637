#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Real sessions, one after the other, against one server in the lab: connected by exchange and by rdma_cm in turn, some
# of them killed in the middle. Afterwards the server's host has no queue pair, completion queue, region or connection
# id more than before, and the server as many open files and as much memory as after the first few. Prints "ok NAME",
# "not ok NAME: why" or "skip ID: reason". The same file runs in the guests: --server in guest 0, --client in guest 1.

set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
self=$here/$(basename "$0")
top=$(cd "$here/../.." && pwd)
fb=${FABRICBENCH:-$top/build/fabricbench}
port=18515
sessions=60

# ---- guest 0 ---------------------------------------------------------------------------------------------------------
holds() { # PID: objects of the device, open files and memory of the server
	rdma resource show rxe0 | tr -s ' ' | sed 's/^[0-9]*: //'
	echo "files $(find "/proc/$1/fd" -mindepth 1 | wc -l) kib $(awk '/VmRSS/ { print $2 }' "/proc/$1/status")"
}

server() {
	local serve done_now taken=''
	modprobe rdma_ucm
	"$fb" verbs serve -p $port 2>"$LAB_OUT/serve.err" &
	serve=$!
	# shellcheck disable=SC2064 # the ids are those of now
	trap "sleep 1; rdma resource show rxe0 | tr -s ' ' >$LAB_OUT/last.res; kill $serve; wait $serve; echo \$? >$LAB_OUT/serve.rc; exit 0" TERM
	while :; do
		done_now=$(grep -c ' after ' "$LAB_OUT/serve.err")
		if [[ -z $taken ]] && ((done_now == 4)); then
			taken=1
			holds $serve >"$LAB_OUT/first"
		fi
		if ((done_now >= sessions)); then
			sleep 1
			holds $serve >"$LAB_OUT/last"
		fi
		sleep 0.2
	done
}

# ---- guest 1 ---------------------------------------------------------------------------------------------------------
client() {
	local i pid bad=0 how
	modprobe rdma_ucm
	for ((i = 0; i < 100; i++)); do # guest 0 may boot later
		if (exec 3<>"/dev/tcp/$LAB_PEER/$port") 2>/dev/null; then break; fi
		sleep 0.2
	done
	for ((i = 1; i <= sessions; i++)); do
		how=()
		((i % 2)) || how=(-R)
		if ((i % 15 == 0)); then
			"$fb" verbs bandwidth --op write -q 4 -s 4K -D 20s "${how[@]}" --quiet "$LAB_PEER" >/dev/null 2>&1 &
			pid=$!
			sleep 1.5
			kill -KILL $pid
			wait $pid 2>/dev/null
		elif ! timeout -k 5 30 "$fb" verbs bandwidth --op write -q 4 -s 4K -t 8 -n 8 -w 0 "${how[@]}" --quiet "$LAB_PEER" >/dev/null 2>>"$LAB_OUT/client.err"; then
			bad=$((bad + 1))
			echo "session $i failed" >>"$LAB_OUT/client.err"
		fi
		# The first four are let settle, so that guest 0 can look between two sessions.
		if ((i == 4)); then sleep 2; fi
	done
	echo $bad >"$LAB_OUT/failed"
	sleep 4
}

case ${1:-} in
--server)
	server
	exit
	;;
--client)
	client
	exit
	;;
esac

# ---- host ------------------------------------------------------------------------------------------------------------
if ! reason=$("$top/scripts/lab/lab" --check 2>&1); then
	echo "skip lab: $reason"
	exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
"$top/scripts/lab/lab" --guests 2 --timeout 500 --out "$work" --quiet --env FABRICBENCH="$(readlink -f "$fb")" \
	-- "$self" --server -- "$self" --client >"$work/lab.log" 2>&1 || status=$?
a=$work/guest0 b=$work/guest1
bad=0

verdict() { # NAME WHY: an empty WHY is fine
	if [[ -z $2 ]]; then
		echo "ok verbs-sessions-lab-$1"
	else
		echo "not ok verbs-sessions-lab-$1: $2"
		bad=1
	fi
}

if [[ $status != 0 ]]; then
	verdict boot "the lab ended with status $status: $(tail -n 3 "$work/lab.log" | tr '\n' ' ')"
	exit 1
fi
why=''
if [[ $(cat "$b/failed" 2>/dev/null) != 0 ]]; then
	why="$(cat "$b/failed" 2>/dev/null) of $sessions failed: $(tail -n 3 "$b/client.err" | tr '\n' ' ' | cut -c1-300)"
fi
verdict all-served "$why"
first=$(head -n1 "$a/first" 2>/dev/null) last=$(head -n1 "$a/last" 2>/dev/null)
why=''
if [[ -z $first || $first != "$last" ]]; then why="'$first' after 4 sessions, '$last' after $sessions"; fi
verdict no-object-left "$why"
read -r _ files0 _ kib0 < <(tail -n1 "$a/first")
read -r _ files1 _ kib1 < <(tail -n1 "$a/last")
echo "# $sessions sessions: $first; files $files0 -> $files1; $kib0 -> $kib1 KiB" >&2
why=''
if [[ -z ${files1:-} ]] || ((files1 > files0)); then why="$files0 open files after 4 sessions, ${files1:-?} after $sessions"; fi
verdict no-file-left "$why"
why=''
if [[ -z ${kib1:-} ]] || ((kib1 > kib0 + 512)); then why="$kib0 KiB after 4 sessions, ${kib1:-?} after $sessions"; fi
verdict no-memory-left "$why"
why=''
if [[ $(cat "$a/serve.rc" 2>/dev/null) != 0 ]]; then why="the server ended with $(cat "$a/serve.rc" 2>/dev/null)"; fi
verdict server-ends "$why"
exit $bad
