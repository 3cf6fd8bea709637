#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# topo's plan, rankfile, fingerprint and comparison from outside: statuses, forms, and a recorded eight-GPU node that
# lost one thing at a time.

set -uo pipefail
# shellcheck source=scripts/tests/lib.sh
. "${0%/*}/lib.sh" topo-plan
data=$top/topo/testdata

counts() { # NAME NUMBER REGEX
	verdict "$1" "$(n=$(grep -cE -- "$3" "$work/out"); [[ $n = "$2" ]] || echo "$n lines of $3, not $2")"
}

good=$data/nccl/topo_8p_940.xml

# --- plan ---
run topo --nccl-xml "$good" --plan
ends plan 0
says plan-hca 'export NCCL_IB_HCA="=mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_7"'
counts plan-rows 8 '^  GPU[0-7] +mlx5_[0-7] +PXB '
run topo --nccl-xml "$good" --plan --json -o "$work/node.json"
ends plan-json 0
holds plan-keys "$work/node.json" '.plan | length == 8 and all(.[]; .nics | length == 1)'
holds plan-rails "$work/node.json" '[.nics[].rail] == [0, 1, 2, 3, 4, 5, 6, 7]'
holds plan-sure "$work/node.json" '.ambiguous == []'
run topo --nccl-xml "$good" --rankfile "$work/ranks"
ends rankfile-without-cores 3
says rankfile-says-why 'the cores near GPU0 are not known'
mkdir "$work/power9"
tar -xzf "$data/hwloc-nvidiagpunumanodes.tar.gz" -C "$work/power9"
run topo --sysroot "$work/power9" --plan --rankfile "$work/ranks" --hosts n1,n2
ends rankfile 0
verdict rankfile-ranks "$(n=$(grep -cE '^rank [0-9]+=n[12] slot=[0-9,-]+$' "$work/ranks"); [[ $n = 12 ]] || echo "$n ranks, not 12")"

# --- matrix ---
run topo --nccl-xml "$good" --matrix
ends matrix 0
counts matrix-smi 1 $'^GPU0\t X \tNV1\tNV1\tNV1\tNV1\tNV1\tNV1\tNV1\tPXB\t'
says matrix-nccl 'How NCCL classes them'
cp "$work/out" "$work/matrix.txt"
run topo --smi "$work/matrix.txt" --plan
ends matrix-read-back 0
counts matrix-same-plan 8 '^  GPU[0-7] +mlx5_[0-7] +PXB '

# --- fingerprint and comparison ---
sed 's/"0000:/"0005:/g' "$good" >"$work/renumbered.xml"
sed '/<pci busid="0000:1e:00.0"/,/<\/pci>/d' "$good" >"$work/no-gpu.xml"
sed '/<pci busid="0000:10:00.0"/,/<\/pci>/d' "$good" >"$work/no-nic.xml"
sed '0,/<xgmi target="0000:15:00.0"/{/<xgmi target="0000:15:00.0"/d}' "$good" >"$work/no-link.xml"
run topo --nccl-xml "$good" --fingerprint
ends fingerprint 0
print=$(cat "$work/out")
verdict fingerprint-form "$([[ $print =~ ^1-[0-9a-f]{32}-[0-9a-f]{16}$ ]] || echo "$print")"
run topo --nccl-xml "$work/renumbered.xml" --fingerprint
verdict fingerprint-renumbered "$([[ $(cat "$work/out") = "$print" ]] || cat "$work/out")"
run topo --compare "$good" "$work/renumbered.xml" "$work/node.json"
ends compare-alike 0
run topo --compare "$good" "$work/renumbered.xml" "$work/no-gpu.xml"
ends compare-gpu 1
counts compare-gpu-only 1 '^  (missing|extra|moved|replaced|changed|order|cpus) '
says compare-gpu-named 'missing   GPU2 at 0000:1e:00.0'
run topo --compare "$good" "$work/renumbered.xml" "$work/no-nic.xml"
ends compare-nic 1
counts compare-nic-only 1 '^  (missing|extra|moved|replaced|changed|order|cpus) '
says compare-nic-named 'missing   mlx5_1 at 0000:10:00.0'
run topo --compare "$good" "$work/renumbered.xml" "$work/no-link.xml"
ends compare-link 1
counts compare-link-only 1 '^  (missing|extra|moved|replaced|changed|order|cpus) '
says compare-link-named 'GPU0: 0 xGMI links to GPU1 instead of 1'
mkdir "$work/fleet"
for i in 1 2 3; do cp "$work/node.json" "$work/fleet/n$i.json"; done
"$program" topo --nccl-xml "$work/no-nic.xml" --json -o "$work/fleet/n4.json" >/dev/null 2>&1
run topo --compare "$work/fleet" --json
ends compare-fleet 1
cp "$work/out" "$work/fleet.txt"
holds compare-fleet-json "$work/fleet.txt" '.reference_nodes == 3 and ([.nodes[] | select(.differences != [])] | length == 1)'

# --- refusals ---
run topo --compare "$good"
ends compare-one 2
run topo --compare "$good" "$work/power9"
ends compare-sources 3
says compare-sources-why 'they do not tell the same things'
run topo --compare "$good" "$work/fleet.txt"
ends compare-no-topology 2
run topo --compare "$good" "$work/nothing.json"
ends compare-nothing 2
run topo --compare "$good" "$good" --svg "$work/x.svg"
ends compare-alone 2

exit "$bad"
