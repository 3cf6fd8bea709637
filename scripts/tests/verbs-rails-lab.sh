#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Several rails with real packets, in one boot of the lab: two guests with two Soft-RoCE devices each, on links of their
# own. All at once, each alone by name, and all with one of them down or without an address.
# Prints "ok NAME", "not ok NAME: why" or "skip ID: reason".
# The same file is what runs in the guests: --server in guest 0, --client in guest 1.

# shellcheck source=scripts/lab/tests.sh
source "$(dirname "$0")/../lab/tests.sh"
port=18515

# ---- the guests ------------------------------------------------------------------------------------------------------
server() {
	exec "$fb" verbs serve -p $port -d all 2>"$LAB_OUT/serve.err"
}

taken() { # NAME COMMAND...: its document and peer added
	run_case "$@" -o "$LAB_OUT/$1.json" --quiet "$LAB_PEER"
}

client() {
	local all=(verbs bandwidth --op write -s 64K -n 60 -w 8)
	lab_wait_for "$LAB_PEER" $port
	taken all "$fb" "${all[@]}" -d all
	taken latency "$fb" verbs latency --op send -s 64 -n 60 -w 8 -d all
	taken second "$fb" "${all[@]}" -d rxe1 --peer-device rxe1
	taken named "$fb" "${all[@]}" -d rxe1,rxe0 --peer-device rxe1,rxe0
	taken unequal "$fb" "${all[@]}" -d rxe1
	# Machines name their devices differently, and what they take inline differs too.
	rdma link delete rxe1
	rdma link add odd1 type rxe netdev eth1
	sleep 1
	taken other-name "$fb" "${all[@]}" -d odd1 --peer-device rxe1
	taken other-names "$fb" verbs latency --op send,write -s 64 -n 60 -w 8 -d rxe0,odd1 --peer-device rxe0,rxe1
	taken other-load "$fb" verbs load --op send -s 64 -D 1s -d odd1 --peer-device rxe1
	ip link set eth1 down
	sleep 1
	taken down "$fb" "${all[@]}" -d all
	taken down-first "$fb" "${all[@]}" -d all --peer-device rxe0
	taken down-named "$fb" "${all[@]}" -d odd1 --peer-device rxe1
}

lab_guest "$@"

# ---- host ------------------------------------------------------------------------------------------------------------
lab_boot verbs-rails 1 --guests 2 --numa --timeout 240 -- "$self" --server -- "$self" --client

# Each alone, then all at once, in the order they were named.
in_turn() { # NAME CLIENT-DEVICES SERVER-DEVICES
	measured "$1" "[.results[] | select(.metric == \"bandwidth\" or .metric == \"latency\") | .params]
		| (map(.rail) | unique | length) == 3
		and (map(select(.rail != \"all\")) | [.[] | [.rail, .device, .peer_device]] | unique) == [[0, \"${2%,*}\", \"${3%,*}\"], [1, \"${2#*,}\", \"${3#*,}\"]]
		and (map(select(.rail == \"all\")) | length > 0 and all(.rails == 2))" '[.results[].params | [.rail, .device, .peer_device]]'
}
in_turn all rxe0,rxe1 rxe0,rxe1
in_turn latency rxe0,rxe1 rxe0,rxe1
in_turn named rxe1,rxe0 rxe1,rxe0
in_turn other-names rxe0,odd1 rxe0,rxe1
got=$(jq -c '[.results[] | select(.metric == "bandwidth") | .facts.rails | map(.device)]' "$cases/all.json" 2>&1)
verdict all-facts "$([[ $got = '[["rxe0"],["rxe1"],["rxe0","rxe1"]]' ]] || echo "the facts are of $got")"
one='[.results[].params | [.device, .peer_device]] | unique'
measured second "($one) == [[\"rxe1\", \"rxe1\"]]" "$one"
measured other-name "($one) == [[\"odd1\", \"rxe1\"]]" "$one"
measured other-load "($one) == [[\"odd1\", \"rxe1\"]]" "$one"
refused unequal 3 20 '1 rails at the client, 2 at the server' --peer-device
# Who asks for all is told what is missing.
refused down 3 20 'left out of all devices: odd1 port 1 is DOWN' '1 rails at the client'
refused down-named 3 20 'odd1 port 1 is DOWN'
measured down-first "($one) == [[\"rxe0\", \"rxe0\"]]" "$one"
why=''
grep -q 'left out of all devices: odd1' "$cases/down-first.err" || why=$(said down-first)
verdict down-told "$why"
exit $bad
