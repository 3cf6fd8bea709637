#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `topo fabric` from outside: files of infiniband-diags, a cabling list, refusals and exit statuses; then, with ibsim
# and opensm, live subnets: a healthy one of two rails, and one with HCAs swapped, an EDR link and symbol errors.

set -uo pipefail
# shellcheck source=scripts/tests/lib.sh
. "${0%/*}/lib.sh" fabric
prefix=(topo fabric)
data=$top/topo/fabric/testdata
started=()
# opensm before ibsim: without its simulator it waits for answers and hears no signal.
stop_subnet() {
	local i k
	for ((k = ${#started[@]} - 1; k >= 0; k--)); do
		kill "${started[k]}" 2>/dev/null
		for ((i = 0; i < 30; i++)); do
			kill -0 "${started[k]}" 2>/dev/null || break
			sleep 0.1
		done
		kill -KILL "${started[k]}" 2>/dev/null
		wait "${started[k]}" 2>/dev/null
	done
	started=()
}
trap 'stop_subnet; leave' EXIT
export PATH=$PATH:/usr/sbin

found() { # NAME JQ-LIST: ids of all that warns or fails
	holds "$1" "[.checks[] | select(.state == \"fail\" or .state == \"warn\") | .id] == $2"
}

# --- files -------------------------------------------------------------------------------------------

run --list
ends list 0
verdict list-all "$([[ $(grep -c '^fab\.' "$work/out") = 12 ]] || echo 'not twelve checks')"
run --explain fab.rail
ends explain 0
says explain-rule majority
run --explain fab.rial
ends explain-unknown 2
says explain-nearest fab.rail
run
ends nothing-given 2
says nothing-given-remedy '--ibnetdiscover fabric.txt'
run --ibnetdiscover "$work/none"
ends no-such-file 2
: >"$work/empty"
run --ibnetdiscover "$work/empty"
ends empty 2
run --ibnetdiscover "$data/topograph_ibnetdiscover_bad.txt"
ends no-port-line 2
says no-port-line-why '1 HCA has no port line'
run --ibnetdiscover "$data/superbench_hostfile.txt"
ends other-file 2
says other-file-place 'superbench_hostfile.txt:1:'
run --live --ibnetdiscover "$data/superbench_ibnetdiscover.txt"
ends live-and-file 2

run --ibnetdiscover "$data/superbench_ibnetdiscover.txt" --json -o "$work/superbench.json"
ends healthy 0
found healthy-nothing '[]'
holds fabric-block '.fabric | .switches == 8 and .hosts == 10 and .links == 18 and (.leaves | length) == 5 and .levels == 3'
run --ibnetdiscover "$data/rail2_misrail_edr.ibnetdiscover.txt" --json
ends mis-cabled 1
found mis-cabled-found '["fab.rail", "fab.rail", "fab.speed"]'
cp "$work/out" "$work/mis-cabled.json"
holds mis-cabled-words '[.checks[] | select(.id == "fab.rail")][0] | .observed |
	contains("mis-cabled") and contains("node3") and contains("mlx5_0") and contains("leaf1 port 4")'
run --iblinkinfo "$data/rail2_misrail_edr.iblinkinfo-l.txt" --counters "$data/rail2_misrail_edr.ibqueryerrors.txt" --json
ends linkinfo 1
found linkinfo-found '["fab.rail", "fab.rail", "fab.speed", "fab.counters"]'
run --ibnetdiscover "$data/rail2_misrail_edr.ibnetdiscover.txt" --iblinkinfo "$data/rail2_misrail_edr.iblinkinfo-l.txt" --json
found both-files '["fab.rail", "fab.rail", "fab.speed"]'
holds both-files-counts '.fabric | .switches == 4 and .hosts == 4 and .hcas == 8 and .links == 12'
run --ibnetdiscover "$data/ibexporter_ibnetdiscover_p_test2.txt"
ends warnings-only 0
run --ibnetdiscover "$data/ibexporter_ibnetdiscover_p_test2.txt" --strict
ends warnings-strict 1
run --ibnetdiscover "$data/superbench_ibnetdiscover.txt" --require fab.counters
ends required-skip 3
run --ibnetdiscover "$data/superbench_ibnetdiscover.txt" --blocking 1.5
ends blocking 1
run --ibnetdiscover "$data/rail2_misrail_edr.ibnetdiscover.txt"
says table-mis-cabled 'mis-cabled: host node3, HCA mlx5_0 is on switch leaf1 port 4'
run --ibnetdiscover "$data/rail2_misrail_edr.ibnetdiscover.txt" --anonymous --json
ends anonymous 1
verdict anonymous-names "$(jq '.checks, .fabric' "$work/out" | grep -m1 -E 'leaf1|node3|0x[0-9a-f]{6}')"

# The cabling list: as it is; the list that a site would keep; a dump of a good day.
grep -v '^#' "$data/rail2_misrail_edr.ibnetdiscover.txt" >"$work/now.txt"
run --ibnetdiscover "$data/rail2_misrail_edr.ibnetdiscover.txt" --expect "$work/now.txt" --json
found expect-same '["fab.speed"]'
printf 'node,port,peer,peer_port\nleaf0,4,node3 mlx5_0,1\nleaf1,4,node3 mlx5_1,1\n' >"$work/cables.csv"
run --ibnetdiscover "$data/rail2_misrail_edr.ibnetdiscover.txt" --expect "$work/cables.csv" --json
ends expect-moved 1
holds expect-moved-two '[.checks[] | select(.id == "fab.expect" and .state == "fail") | .observed] == [
	"mis-cabled: node3 mlx5_0 is on leaf1 port 4", "mis-cabled: node3 mlx5_1 is on leaf0 port 4"]'
printf 'leaf0;4;node3\n' >"$work/bad.csv"
run --ibnetdiscover "$data/rail2_misrail_edr.ibnetdiscover.txt" --expect "$work/bad.csv"
ends expect-refused 2
says expect-refused-place 'bad.csv:1:'

head -c 65536 /dev/urandom >"$work/noise"
run --ibnetdiscover "$work/noise"
ends noise 2
cat >"$work/plan.ini" <<-INI
	[plan]
	title = Fabric
	[cabling]
	command = topo fabric
	ibnetdiscover = $data/superbench_ibnetdiscover.txt
INI
timeout 120 "$program" run "$work/plan.ini" -o "$work/dir" --no-report >"$work/out" 2>"$work/err"
rc=$?
ends plan 0

# --- live, on ibsim ----------------------------------------------------------------------------------

missing=''
for tool in ibsim opensm jq; do
	command -v "$tool" >/dev/null || missing+=" $tool"
done
umad=$(compgen -G '/usr/lib*/umad2sim/libumad2sim.so' || compgen -G '/usr/lib/*/umad2sim/libumad2sim.so')
[[ -n $umad ]] || missing+=' libumad2sim'
[[ $(ldconfig -p 2>/dev/null) == *libibnetdisc.so.5* ]] || missing+=' libibnetdisc5'
if [[ -n $missing ]]; then
	echo "skip fabric-live: there is no${missing// /, }" | sed 's/no, /no /'
	exit "$bad"
fi
run --live
if grep -q 'built without libibnetdisc' "$work/err"; then
	ends live-refused 77
	echo "skip fabric-live: this program was built without libibnetdisc's headers"
	exit "$bad"
fi
if [[ ! -d /sys/class/infiniband_mad ]]; then
	ends live-no-device 77
	says live-no-device-remedy 'ibnetdiscover > FILE'
fi

# Two rails, two leaves, two spines, HOSTS hosts; SWAPPED has its HCAs the other way round; EDR has a slow rail 0.
net() { # HOSTS SWAPPED EDR
	local rail host hca rate
	for rail in 0 1; do
		printf 'Switch 64 "leaf%d"  # "leaf%d"\n' "$rail" "$rail"
		for ((host = 0; host < $1; host++)); do
			hca=$rail rate=4xHDR
			if [[ $host = "$2" ]]; then hca=$((1 - rail)); fi
			if [[ $host = "$3" && $rail = 0 ]]; then rate=4xEDR; fi
			printf '[%d] "node%d-mlx5_%d"[1]  # "node%d mlx5_%d" lid 0 %s\n' $((host + 1)) "$host" "$hca" "$host" "$hca" "$rate"
		done
		printf '[33] "spine0"[%d]  # "spine0" lid 0 4xHDR\n[34] "spine1"[%d]  # "spine1" lid 0 4xHDR\n\n' $((rail + 1)) $((rail + 1))
	done
	for rail in 0 1; do
		printf 'Switch 64 "spine%d"  # "spine%d"\n[1] "leaf0"[%d]  # "leaf0" lid 0 4xHDR\n[2] "leaf1"[%d]  # "leaf1" lid 0 4xHDR\n\n' \
			"$rail" "$rail" $((33 + rail)) $((33 + rail))
	done
	for ((host = 0; host < $1; host++)); do
		for hca in 0 1; do
			rail=$hca rate=4xHDR
			if [[ $host = "$2" ]]; then rail=$((1 - hca)); fi
			if [[ $host = "$3" && $rail = 0 ]]; then rate=4xEDR; fi
			printf 'Hca 1 "node%d-mlx5_%d"  # "node%d mlx5_%d"\n[1] "leaf%d"[%d]  # lid 0 lmc 0 "leaf%d" lid 0 %s\n\n' \
				"$host" "$hca" "$host" "$hca" "$rail" $((host + 1)) "$rail" "$rate"
		done
	done
}

in_sim() { # COMMAND...: with the simulated HCA of node1
	timeout 10 env LD_PRELOAD="$umad" SIM_HOST=node1-mlx5_0 IBSIM_SOCKNAME="$socket" "$@"
}

start_subnet() { # NET: an ibsim and an opensm of its own; waits until every joined port is active
	local i
	socket=fabricbench$$-$((++subnets))
	rm -f "$work/commands"
	mkfifo "$work/commands"
	IBSIM_SOCKNAME=$socket ibsim -s "$1" <>"$work/commands" >"$work/ibsim.log" 2>&1 &
	started=("$!")
	mkdir -p "$work/osm$subnets"
	for ((i = 0; i < 40; i++)); do
		grep -q 'Network simulator ready\|sim>\|ready' "$work/ibsim.log" && break
		sleep 0.1
	done
	env LD_PRELOAD="$umad" SIM_HOST=node0-mlx5_0 IBSIM_SOCKNAME="$socket" OSM_TMP_DIR="$work/osm$subnets" \
		OSM_CACHE_DIR="$work/osm$subnets" opensm -f "$work/osm$subnets/log" -s 0 -e >"$work/opensm.log" 2>&1 &
	started+=("$!")
	for ((i = 0; i < 40; i++)); do
		# What it finds wrong is its status, and not the question here.
		in_sim "$program" topo fabric --live --no-live-counters --json >"$work/up" 2>/dev/null
		if jq -e '[.checks[] | select(.id == "fab.state") | .state] == ["pass"]' "$work/up" >/dev/null 2>&1; then
			return 0
		fi
		sleep 0.25
	done
	return 1
}

live() { # ARGUMENT...
	in_sim "$program" topo fabric --live "$@" >"$work/out" 2>"$work/err"
	rc=$?
}

subnets=0
net 4 none none >"$work/healthy.net"
if ! start_subnet "$work/healthy.net"; then
	cp "$work/ibsim.log" "$work/out"
	cp "$work/opensm.log" "$work/err"
	verdict live-subnet 'the simulated subnet did not come up in time'
	exit 1
fi
live --json
ends live-healthy 0
found live-healthy-nothing '[]'
holds live-healthy-judged '[.checks[] | select(.state == "pass") | .id] |
	contains(["fab.rail", "fab.speed", "fab.width", "fab.state", "fab.counters", "fab.guid", "fab.uplinks", "fab.adjacency", "fab.blocking"])'
holds live-healthy-fabric '.fabric | .switches == 4 and .hosts == 4 and .hcas == 8 and .links == 12 and .spines == 2'
echo 'PerformanceSet "leaf0"[3] PortCounters.SymbolErrorCounter=5000' >"$work/commands"
sleep 0.3
live --json
ends live-symbols 1
found live-symbols-alone '["fab.counters"]'
holds live-symbols-where '[.checks[] | select(.state == "fail")][0] | .subject == "leaf0 port 3" and (.observed | contains("5000"))'
live --expect "$work/healthy.net" --no-live-counters --json
ends live-as-net 0
holds live-as-net-judged '[.checks[] | select(.id == "fab.expect") | .state] == ["pass"]'
stop_subnet

net 4 3 none >"$work/swapped.net"
start_subnet "$work/swapped.net" || verdict live-swapped-subnet 'the simulated subnet did not come up'
live --json
ends live-swapped 1
found live-swapped-two '["fab.rail", "fab.rail"]'
holds live-swapped-words '[.checks[] | select(.id == "fab.rail") | .observed] | all(contains("mis-cabled: host node3"))'
stop_subnet

net 4 none 1 >"$work/edr.net"
start_subnet "$work/edr.net" || verdict live-edr-subnet 'the simulated subnet did not come up'
live --json
ends live-edr 1
found live-edr-alone '["fab.speed"]'
holds live-edr-where '[.checks[] | select(.id == "fab.speed")][0] |
	.subject == "leaf0 port 2 - node1 mlx5_0" and (.observed | contains("4x EDR")) and .expected.value == "HDR"'
stop_subnet
exit "$bad"
