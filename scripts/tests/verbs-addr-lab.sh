#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Addressing and memory in one boot of the lab: IPv4, link-local and unique local IPv6 GIDs, a GID by its address, a
# VLAN's GID, P_Keys, rdma_cm, huge pages; what cannot be had is refused with its reason. Marking is counted on the
# wire: guest 0 counts the packets of each DSCP and ECN beside the server. Prints "ok NAME", "not ok NAME: why" or
# "skip ID: reason". The same file is what runs in the guests: --server in guest 0, --client in guest 1.

# shellcheck source=scripts/lab/tests.sh
source "$(dirname "$0")/../lab/tests.sh"
port=18515
marked=4 # sessions whose packets are counted apart

# ---- in both guests --------------------------------------------------------------------------------------------------
addresses() { # NUMBER
	ip -6 addr add "fd00:77::$1/64" dev eth0 nodad
	modprobe 8021q
	ip link add link eth0 name eth0.100 type vlan id 100
	ip addr add "10.100.0.$1/24" dev eth0.100
	ip link set eth0.100 up
	modprobe rdma_ucm
	echo 8 >/proc/sys/vm/nr_hugepages
	# Duplicate address detection of the link-local address takes a second or two.
	local i
	for ((i = 0; i < 100; i++)); do
		if ! ip -6 addr show dev eth0 tentative | grep -q inet6; then break; fi
		sleep 0.1
	done
	ip addr show >"$LAB_OUT/addresses"
	ls /dev/infiniband >"$LAB_OUT/devices"
}

# ---- guest 0 ---------------------------------------------------------------------------------------------------------
server() {
	local serve sniff count=0 now deadline=$((SECONDS + 20000))
	addresses 1
	"$fb" verbs sniff -I eth0 --seconds 500s >"$LAB_OUT/sniff.0" 2>"$LAB_OUT/sniff.err" &
	sniff=$!
	sleep 0.5
	"$fb" verbs serve -p $port 2>"$LAB_OUT/serve.err" &
	serve=$!
	lab_serve_until_told serve=$serve
	# A new count for each of the first sessions: sniff.0 is the first one's.
	while ((SECONDS < deadline)); do
		now=$(grep -c ' after ' "$LAB_OUT/serve.err")
		if ((now > count && count < marked)); then
			kill $sniff
			wait $sniff
			count=$now
			"$fb" verbs sniff -I eth0 --seconds 500s >"$LAB_OUT/sniff.$count" 2>>"$LAB_OUT/sniff.err" &
			sniff=$!
		fi
		sleep 0.1
	done
}

# ---- guest 1 ---------------------------------------------------------------------------------------------------------
latency() { # NAME OPTION...
	local name=$1
	shift
	run_case "$name" "$fb" verbs latency --op send,write,read -s 64,4K -n 20 -w 4 --quiet -o "$LAB_OUT/$name.json" "$@" "$LAB_PEER"
}

client() {
	addresses 2
	lab_wait_for "$LAB_PEER" $port
	# Guest 0 counts what comes in each of these four; it needs a moment between them.
	latency unmarked
	sleep 1.5
	latency tclass --tclass 106
	sleep 1.5
	latency cm-tclass -R --traffic-class 106
	sleep 1.5
	latency vlan-tclass --vlan 100 --traffic-class 104
	sleep 1.5
	latency ipv4
	latency gid-ipv4 --gid 10.77.0.2 --peer-gid 10.77.0.1
	latency ipv6 --gid-family 6
	latency link-local --gid "$(ip -6 -o addr show dev eth0 scope link | awk '{ sub("/.*", "", $4); print $4; exit }')"
	latency gid-ipv6 --gid fd00:77::2
	latency vlan --vlan 100
	latency pkey --pkey 0xffff
	latency huge --memory huge
	latency cm -R
	latency cm-ipv6 -R --gid-family 6
	latency cm-vlan -R --vlan 100
	run_case cm-many "$fb" verbs bandwidth -R -q 8 -b --op send,write -s 4K -t 16 --max-time 60ms --min-iters 8 --quiet -o "$LAB_OUT/cm-many.json" "$LAB_PEER"
	run_case control-ipv6 "$fb" verbs latency -n 20 --quiet -o "$LAB_OUT/control-ipv6.json" fd00:77::1
	run_case no-gid "$fb" verbs latency --gid 10.9.9.9 "$LAB_PEER"
	run_case no-peer-gid "$fb" verbs latency --peer-gid 10.9.9.9 "$LAB_PEER"
	run_case no-vlan "$fb" verbs latency --vlan 7 "$LAB_PEER"
	run_case no-pkey "$fb" verbs latency --pkey 0x8001 "$LAB_PEER"
	run_case no-gpu "$fb" verbs latency --memory gpu "$LAB_PEER"
	run_case gpu-write "$fb" verbs latency --memory gpu --op write "$LAB_PEER"
	run_case no-huge "$fb" verbs bandwidth --memory huge -q 8 -t 8 -s 8M "$LAB_PEER"
	run_case cm-uc "$fb" verbs latency -R --transport uc "$LAB_PEER"
	run_case families "$fb" verbs latency --gid-family 6 --peer-gid 10.77.0.1 "$LAB_PEER"
}

lab_guest "$@"

# ---- host ------------------------------------------------------------------------------------------------------------
lab_boot verbs-addr-lab 1 --guests 2 --timeout 400 -- "$self" --server -- "$self" --client

of_rails() { # NAME FILTER: of each rail of each result the filter holds
	measured "$1" ".run.outcome == \"complete\" and (.results | length > 0) and
		([.results[] | .value > 0 and .validity.state != \"invalid\" and (.facts.rails[0] | .gid_read == \"ibv_query_qp\"
		and .gid_type == \"RoCE v2\" and $2)] | all)" '.results[0].facts.rails[0]'
}

v4='.gid_family == "IPv4" and .peer.gid_family == "IPv4"'
v6='.gid_family == "IPv6" and .peer.gid_family == "IPv6"'
exchange='.connected_by == "exchange"' cm='.connected_by == "rdma_cm"'
of_rails ipv4 "$v4 and $exchange and .memory == \"host memory\""
of_rails gid-ipv4 "$v4 and $exchange"
of_rails ipv6 "$v6 and $exchange"
of_rails link-local '.gid_family == "link-local" and .peer.gid_family == "link-local"'
of_rails gid-ipv6 "$v6"
of_rails vlan "$v4 and .vlan == 100 and .netdev == \"eth0.100\""
of_rails pkey "$v4"
of_rails huge "$v4 and .memory == \"huge pages of 2 MiB\""
of_rails cm "$v4 and $cm"
of_rails cm-ipv6 "$v6 and $cm"
of_rails cm-vlan "$v4 and $cm and .vlan == 100"
of_rails cm-many "$v4 and $cm"
of_rails control-ipv6 "$v4"
of_rails unmarked "$v4 and .traffic_class == 0"
of_rails tclass "$v4 and $exchange and .traffic_class == 106"
of_rails cm-tclass "$v4 and $cm and .traffic_class == 106"
of_rails vlan-tclass "$v4 and .vlan == 100 and .traffic_class == 104"
refused no-gid 3 40 10.9.9.9 10.77.0.2
refused no-peer-gid 3 40 10.9.9.9 10.77.0.1 guest0
refused no-vlan 3 40 'VLAN 7'
refused no-pkey 3 40 0x8001 0xffff
refused no-gpu 3 40 '--memory gpu'
refused gpu-write 2 40 'the CPU can read'
refused no-huge 3 40 'huge pages' vm.nr_hugepages=
refused cm-uc 2 40 --rdma-cm uc
refused families 3 40 IPv6 IPv4

# On the wire: every packet of the first session unmarked, every one of the others marked as asked for.
counted() { # NAME FILE DSCP ECN
	local why=''
	if ! jq -e --argjson d "$3" --argjson c "$4" '.dropped == 0 and (.roce | length == 1) and .roce[0].dscp == $d and .roce[0].ecn == $c
		and .roce[0].packets > 100' "$work/guest0/$2" >/dev/null 2>&1; then
		why="guest 0 counted $(cat "$work/guest0/$2" "$work/guest0/sniff.err" 2>&1 | cut -c1-200)"
	fi
	verdict "$1" "$why"
}
counted wire-unmarked sniff.0 0 0
counted wire-tclass sniff.1 26 2
counted wire-cm-tclass sniff.2 26 2
counted wire-vlan-tclass sniff.3 26 0
server_ends 0
exit "$bad"
