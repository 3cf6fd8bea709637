#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# features and gpu-check from outside, where there are GPUs and where there are none, with plug-ins and without.
# Prints "ok NAME", "not ok NAME: why", "skip ID: reason".
set -uo pipefail
# shellcheck source=scripts/tests/lib.sh
. "${0%/*}/lib.sh"

run() { # PROGRAM ARGUMENTS: the status in $rc
	timeout -k 5 150 "$@" >"$work/out" 2>"$work/err" </dev/null
	rc=$?
}

# --- features ------------------------------------------------------------------------------------

run "$program" features --json
ends features 0
cp "$work/out" "$work/features.json"
holds features-schema "$work/features.json" '.schema == "fabricbench-features/1"'
holds features-parts "$work/features.json" '[.parts[].name] | contains(["fabricbench", "plug-in mpi", "plug-in dnnl",
	"plug-in cuda", "plug-in nccl", "NVIDIA GPUs", "RDMA devices", "lab", "plots", "transport DC", "transport SRD"])'
holds features-say-why "$work/features.json" \
	'[.parts[] | select(.state != "found") | select((.reason // "") == "" or (.remedy // "") == "")] | length == 0'
holds features-proven "$work/features.json" '[.parts[] | .proven_on |
	IN("none", "one node", "one GPU", "N GPUs", "N nodes", "lab")] | all'
run "$program" features --jsno
ends features-unknown-option 2 'json'

# A copy alone in a folder finds no plug-in, and still runs.
cp -L "$program" "$work/alone"
run env FABRICBENCH_PLUGINS="$work/none" "$work/alone" features --json
ends features-without-plugins 0
holds features-names-missing "$work/out" '[.parts[] | select(.name | startswith("plug-in")) | .state] | unique == ["missing"]'
run env FABRICBENCH_PLUGINS="$work/none" "$work/alone" coll all_reduce --ranks 2 -b 8 -e 64 -n 5 -w 1 --quiet
ends coll-without-plugins 0

# --- gpu-check -----------------------------------------------------------------------------------

if "$program" features --json | jq -e '.parts[] | select(.name == "plug-in dnnl") | .state == "found"' >/dev/null; then
	run "$program" gpu-check --on cpu --check-size 48M --copy-size 16M --gemm-size 256 --nccl-max 1M -n 5 -w 1 \
		--output "$work/cpu.json" --quiet
	ends gpu-check-on-cpu 0
	holds gpu-check-complete "$work/cpu.json" '.run.outcome == "complete"'
	holds gpu-check-checks "$work/cpu.json" \
		'[.checks[] | select(.state == "pass") | .id] == ["cpu.0.memory", "cpu.0.gemm.f32", "cpu.0.gemm.bf16",
		"cpu.local.float", "cpu.local.bfloat16"]'
	holds gpu-check-measures "$work/cpu.json" \
		'[.results[].metric] | unique | contains(["memory_bandwidth", "rate", "time"])'
	holds gpu-check-no-bound-on-cpu "$work/cpu.json" '[.results[] | .bound // empty] | length == 0'
	if [[ -x $top/scripts/check-schema ]] && python3 -c 'import jsonschema' 2>/dev/null; then
		run "$top/scripts/check-schema" "$work/cpu.json"
		ends gpu-check-schema 0
	fi
else
	echo "skip gpu-check-cpu: the oneDNN plug-in is not here"
fi

if compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
	run "$program" gpu-check --check-size 64M --copy-size 256M --gemm-size 2048 --nccl-max 16M -n 10 -w 2 \
		--output "$work/gpu.json" --quiet
	ends gpu-check-on-gpu 0
else
	run "$program" gpu-check
	ends gpu-check-no-gpu 77 'no CUDA device|plug-in|was not found'
	run "$top/scripts/gpu-check"
	ends gpu-check-script-no-gpu 77 'no NVIDIA GPU'
	echo "skip gpu-check-gpu: there is no NVIDIA GPU"
fi
exit 0
