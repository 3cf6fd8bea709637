#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# RDMA from outside, in one boot of the lab: two guests, real packets over Soft-RoCE. Every operation is measured in
# every direction, the server outlives its clients, and each way to fail ends in time with its status and with one
# message that names cause and remedy. Prints "ok NAME", "not ok NAME: why" or "skip ID: reason".
# The same file is what runs in the guests: --server in guest 0, --client in guest 1.

# shellcheck source=scripts/lab/tests.sh
source "$(dirname "$0")/../lab/tests.sh"

main_port=18515 other_port=18516 doomed_port=18517 own_port=18518

# ---- guest 0 ---------------------------------------------------------------------------------------------------------
open_files() { find "/proc/$1/fd" -mindepth 1 2>/dev/null | wc -l; }

sessions() { grep -c "$1" "$LAB_OUT/serve.err"; } # lines of that kind

server() {
	local out=$LAB_OUT main other doomed deadline=$((SECONDS + 600)) files done_before=0 done_now
	"$fb" verbs serve -p $main_port 2>"$out/serve.err" &
	main=$!
	FABRICBENCH_TEST_PROTOCOL=9 "$fb" verbs serve -p $other_port 2>"$out/other.err" &
	other=$!
	"$fb" verbs serve -p $doomed_port 2>"$out/doomed.err" &
	doomed=$!
	lab_serve_until_told serve=$main other=$other
	while ((SECONDS < deadline)); do
		if [[ -n $doomed ]] && grep -q ' came' "$out/doomed.err"; then
			sleep 2
			kill -KILL $doomed
			doomed=''
		fi
		# Between two sessions: what the first has left open stands for all.
		done_now=$(sessions ' after ')
		if ((done_now > done_before)) && ((done_now == $(sessions ' came'))); then
			files=$(open_files $main)
			if ((done_now == $(sessions ' came') && files > 0)); then
				[[ -s $out/files.first ]] || echo "$files" >"$out/files.first"
				echo "$files" >"$out/files.last"
				done_before=$done_now
			fi
		fi
		sleep 0.2
	done
}

# ---- guest 1 ---------------------------------------------------------------------------------------------------------
client_measures() {
	local quick=(--max-time 60ms -w 8 --min-iters 8 --quiet)
	run_case latency "$fb" verbs latency --op send,write,read -s 2:64K "${quick[@]}" -o "$LAB_OUT/latency.json" "$LAB_PEER"
	run_case events "$fb" verbs latency -e --op send,read -s 2,64K "${quick[@]}" -o "$LAB_OUT/events.json" "$LAB_PEER"
	run_case bandwidth "$fb" verbs bandwidth --op send,write,read -s 4K,64K -t 32 "${quick[@]}" -o "$LAB_OUT/bandwidth.json" "$LAB_PEER"
	run_case both "$fb" verbs bandwidth -b -q 2 -l 4 --op send,write,read -s 64K -t 16 "${quick[@]}" -o "$LAB_OUT/both.json" "$LAB_PEER"
	# Fewer messages than queue pairs: those that carried nothing hold nothing to check.
	run_case few "$fb" verbs bandwidth -q 4 -n 2 -w 0 --op send,write -s 4K --quiet -o "$LAB_OUT/few.json" "$LAB_PEER"
	run_case bw-events "$fb" verbs bandwidth -e --op send,write -s 16K -t 16 "${quick[@]}" -o "$LAB_OUT/bw-events.json" "$LAB_PEER"
}

client_refusals() {
	run_case wrong-port "$fb" verbs latency -p 18999 --connect-timeout 5s "$LAB_PEER"
	run_case other-version "$fb" verbs latency -p $other_port "$LAB_PEER"
	run_case no-device "$fb" verbs latency -d nosuch0 "$LAB_PEER"
	run_case bad-op "$fb" verbs latency --op wrte "$LAB_PEER"
	run_case bad-size "$fb" verbs latency -s 12Q "$LAB_PEER"
	run_case write-events "$fb" verbs latency -e --op write "$LAB_PEER"
	run_case mtu "$fb" verbs latency --gid-type v1 "$LAB_PEER"
	chmod 666 /dev/infiniband/uverbs*
	run_case memlock setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all \
		sh -c "ulimit -l 64; exec $fb verbs latency -s 1M --job memlock $LAB_PEER"
}

client_deaths() {
	local pid i
	run_case server-killed "$fb" verbs latency -p $doomed_port -D 40s --quiet -o "$LAB_OUT/server-killed.json" "$LAB_PEER"
	"$fb" verbs latency -D 40s --quiet "$LAB_PEER" >/dev/null 2>&1 &
	pid=$!
	sleep 3
	kill -KILL $pid
	wait $pid 2>/dev/null
	for i in 1 2 3 4 5 6; do
		run_case "again$i" "$fb" verbs latency --op write -s 8 -n 20 -w 4 --quiet "$LAB_PEER"
	done
	"$fb" verbs latency -s 2,4,8 -D 3s --quiet -o "$LAB_OUT/stopped.json" "$LAB_PEER" >/dev/null 2>"$LAB_OUT/stopped.err" &
	pid=$!
	for ((i = 0; i < 150; i++)); do
		if grep -q '"case":"verbs.latency/send/rc/poll/2"' "$LAB_OUT/stopped.json" 2>/dev/null; then break; fi
		sleep 0.2
	done
	kill -TERM $pid
	wait $pid
	echo "$? 0" >"$LAB_OUT/stopped.rc"
}

client_alone() {
	local pid
	"$fb" verbs serve -p $own_port --bind 10.77.0.2 2>/dev/null &
	pid=$!
	sleep 1
	run_case same-host "$fb" verbs latency -p $own_port 10.77.0.2
	kill $pid
	wait $pid
	run_case loopback "$fb" verbs latency --loopback --op send,write,read -s 64 -n 50 --quiet -o "$LAB_OUT/loopback.json"
}

client() {
	lab_wait_for "$LAB_PEER" $main_port
	client_measures
	client_refusals
	client_deaths
	client_alone
}

lab_guest "$@"

# ---- host ------------------------------------------------------------------------------------------------------------
lab_boot verbs-lab 1 --guests 2 --timeout 400 -- "$self" --server -- "$self" --client

common='.run.outcome == "complete" and ([.results[] | .where == "lab" and .n > 0 and .value > 0 and .validity.state != "invalid"
	and (.facts.rails[0] | .gid_type == "RoCE v2" and .gid_family == "IPv4" and .driver == "rxe" and .retry == 6)
	and (.counters.after | has("rxe0/1") and has("rank1/rxe0/1"))] | all)'
measured latency "$common and (.results | length == 48) and ([.results[] | .metric == \"latency\" and .hist.n == .n] | all)
	and ([.results[].params.op] | unique == [\"read\", \"send\", \"write\"])"
measured events "$common and ([.results[].params.completion] | unique == [\"events\"]) and (.results | length == 4)"
measured bandwidth "$common and (.results | length == 12) and ([.results[] | .bound == null or .bound.value == null] | all)"
measured both "$common and (.results | length == 6) and ([.results[].params.direction] | unique == [\"both\"])"
measured few "$common and (.results | length == 4)"
measured bw-events "$common and (.results | length == 4)"
refused wrong-port 3 20 18999 'verbs serve'
refused other-version 3 20 9
refused no-device 2 5 nosuch0 rxe0
refused bad-op 2 5 wrte 'did you mean'
refused bad-size 2 5 12Q
refused write-events 2 5 'completes nothing at the receiver'
refused mtu 3 20 'RoCE v1' 'RoCE v2'
refused memlock 3 20 RLIMIT_MEMLOCK 'ulimit -l' limits.d
refused server-killed 3 30 guest0
refused same-host 2 20 'same host' --loopback
measured loopback '.run.outcome == "complete" and (.results | length == 3) and ([.results[].params.loopback] | all)'

why=''
for i in 1 2 3 4 5 6; do
	read -r got _ <"$cases/again$i.rc" 2>/dev/null
	if [[ ${got:-none} != 0 ]]; then why="session $i after the client's death: $(said "again$i")"; fi
done
verdict client-killed "$why"

why=''
read -r got _ <"$cases/stopped.rc" 2>/dev/null
if [[ ${got:-none} != 3 ]]; then
	why="status ${got:-none}: $(said stopped)"
elif ! jq -e '.run.outcome == "interrupted" and (.results | length >= 1)' "$cases/stopped.json" >/dev/null 2>&1; then
	why='the document is not an interrupted one with its finished points'
fi
verdict sigterm "$why"

why=''
first=$(cat "$work/guest0/files.first" 2>/dev/null) last=$(cat "$work/guest0/files.last" 2>/dev/null)
if [[ -z $first || $first != "$last" ]]; then why="${first:-?} open files after the first session, ${last:-?} at the end"; fi
verdict server-releases "$why"
server_ends 0
server_ends 0 other
exit "$bad"
