#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A guest with two NUMA nodes, each with a PCIe switch that holds a NIC and a display: distances, path types, what the
# firmware tells, the switch whose uplink is too narrow, an access control bit that is flipped, and memory measured from
# node to node. The display stands for a GPU and the NIC's Soft-RoCE device for hardware (FABRICBENCH_STAND_INS).
# Prints "ok NAME", "not ok NAME: why" or "skip ID: reason". The same file runs in the guest, with --guest.

# shellcheck source=scripts/lab/tests.sh
source "$(dirname "$0")/../lab/tests.sh"

# ---- in the guest ----------------------------------------------------------------------------------------------------
# shellcheck disable=SC2317 # lab_guest calls it
guest() {
	export FABRICBENCH_STAND_INS=1
	local root=/sys/bus/pci/devices/0000:10:00.0/config
	printf '[machine]\nplace = bare-metal\n' >/tmp/bare.ini
	run_case json "$fb" topo --json
	run_case matrix "$fb" topo --matrix
	run_case plan "$fb" topo --plan
	run_case node "$fb" check node --expect /tmp/bare.ini --json
	# The root port's access control: capability at 0x148, control at +6: source validation, redirects, forwarding.
	printf '\035' | dd of=$root bs=1 seek=$((0x14e)) conv=notrunc 2>/dev/null
	run_case flipped "$fb" check node --expect /tmp/bare.ini --json
	run_case mem "$fb" mem --size 4M --max-time 200ms --warmup 2 --json
}
lab_guest "$@"

# ---- on the host -----------------------------------------------------------------------------------------------------
lab_boot topo-numa 0 --numa --guests 1 --timeout 300 -- "$self" --guest

holds() { # NAME FILE JQ-FILTER: the filter must give true
	why=
	[[ $(jq -r "$3" "$cases/$2.out" 2>/dev/null) == true ]] ||
		why="not so in $2: $3; $(tail -n 2 "$cases/$2.err" 2>/dev/null)"
	verdict "$1" "$why"
}
state() { # CASE ID SUBJECT
	jq -r --arg id "$2" --arg at "$3" '[.checks[] | select(.id == $id and (.subject | contains($at))) | .state] | join(" ")' \
		"$cases/$1.out"
}

holds nodes json '(.numa_nodes | length) == 2 and .numa_nodes[0].distances == [10, 21] and .numa_nodes[1].cpus == "2-3"'
holds firmware json '.numa_nodes[0].access | any(.from == 0 and .latency_ns == 90)'
holds stands-ins json '(.gpus | length) == 2 and (.warnings | any(test("stand for GPUs")))'
holds near json '.gpus[0].nics[0] == {name: "rxe0", path: "PIX"} and .gpus[1].nics[0] == {name: "rxe1", path: "PIX"}'
holds far json '[.paths[] | select(.a == "GPU0" and .b == "rxe1") | .type] == ["SYS"]'
holds other-port json '[.paths[] | select(.a == "GPU0" and .b == "eth2") | .type] == ["PHB"]'
why=
grep -qE '^GPU0.*PIX.*SYS' "$cases/matrix.out" || why=$(grep '^GPU0' "$cases/matrix.out" | head -n 2 | tr '\n' ' ')
verdict matrix "$why"
why=
grep -qE 'GPU0.*rxe0' "$cases/plan.out" && grep -qE 'GPU1.*rxe1' "$cases/plan.out" || why=$(head -n 6 "$cases/plan.out" | tr '\n' ' ')
verdict plan "$why"

# The port could do 16 GT/s x16, and the link is trained to 2.5 GT/s x1, which is all that the switch on it can do.
holds slow-uplink node '[.checks[] | select(.id == "pci.chain" and (.subject | contains("0000:11:00.0")))
	| .state == "info" and (.observed | test("2.5 GT/s x1.*below what its slot can carry"))] == [true]'
why=
[[ $(state node pci.acs_baremetal 0000:10:00.0) == pass ]] || why="before: $(state node pci.acs_baremetal 0000:10:00.0)"
[[ $(state flipped pci.acs_baremetal 0000:10:00.0) =~ warn|fail ]] || why="after: $(state flipped pci.acs_baremetal 0000:10:00.0)"
verdict flipped-acs-bit "$why"
why=
differs=$(diff <(jq -r '.checks[] | "\(.id) \(.subject) \(.state)"' "$cases/node.out") \
	<(jq -r '.checks[] | "\(.id) \(.subject) \(.state)"' "$cases/flipped.out") | grep -c '^>' || true)
[[ $differs == 1 ]] || why="$differs findings differ after one bit was flipped"
verdict nothing-else "$why"

holds memory mem '[.results[].params | [.cpu_node, .memory_node]] | unique == [[0,0],[0,1],[1,0],[1,1]]'
holds memory-where mem '.results | all(.facts.pages_on_node == .params.memory_node and .validity.state != "invalid")'
holds memory-beside mem '.results | all(.facts.kernel_distance == (if .params.cpu_node == .params.memory_node then 10 else 21 end))'
