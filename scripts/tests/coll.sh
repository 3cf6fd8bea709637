#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Collectives from outside: every operation on every type between threads, MPI ranks, wrong bytes found and
# located, wrong words refused, backends that are not here. Prints "ok NAME", "not ok NAME: why", "skip ID: reason".
set -uo pipefail
# shellcheck source=scripts/tests/lib.sh
. "${0%/*}/lib.sh" coll

fast=(-n 20 -w 2)

# --- threads: every operation on every type, every reduction --------------------------------------

for dtype in int8 uint8 int32 int64 float double half bfloat16; do
	run coll all --comm local --ranks 3 -d $dtype -b 4099 -e 300K -f 8 "${fast[@]}" --output "$work/$dtype.json" --quiet
	ends "local-all-$dtype" 0
done
for redop in prod max min; do
	for dtype in int32 bfloat16; do
		run coll reduce_scatter --ranks 4 -d $dtype -o $redop -b 64K -e 64K "${fast[@]}" --quiet
		ends "local-$redop-$dtype" 0
	done
done
run coll broadcast --ranks 4 -r 3 -b 1M -e 1M "${fast[@]}" --quiet
ends local-broadcast-root 0
run coll all_reduce --ranks 64 -b 4K -e 4K "${fast[@]}" --quiet
ends local-64-ranks 0
run coll all --ranks 2 --mode pipelined -b 64K -e 64K "${fast[@]}" --output "$work/pipe.json" --quiet
ends local-pipelined 0
holds pipelined-says-so "$work/pipe.json" '[.results[].sync] | unique == ["pipelined"]'

# --- gates: each point's busbw and time -----------------------------------------------------------

run coll all_reduce --comm local --ranks 2 -b 4K -e 64K -f 4 "${fast[@]}" --output "$work/gates-met.json" --quiet \
	--min-bandwidth 1Kb/s --max-p50 100s
ends gates-met 0
holds gates-met-checks "$work/gates-met.json" '[.checks[] | .state == "pass" and (.id | startswith("gate."))] | length >= 6 and all'
run coll all_reduce --comm local --ranks 2 -b 4K "${fast[@]}" --output "$work/gates-missed.json" --quiet --min-bandwidth 1000Tb/s
ends gates-missed 1 '--min-bandwidth missed'
holds gates-missed-checks "$work/gates-missed.json" '[.checks[] | select(.id == "gate.min-bandwidth")] | length >= 1 and all(.state == "fail" and .expected.value == 125000000000000)'
run coll all_reduce --comm local --ranks 2 -b 4K "${fast[@]}" --output "$work/gates-open.json" --quiet --max-p99 1s
ends gates-not-judged 3 'cannot support p99'

# --- what the document says ----------------------------------------------------------------------

holds all-operations "$work/float.json" '[.results[].params.op] | unique | length == 5'
holds outcome "$work/float.json" '.run.outcome == "complete"'
holds times-and-rates "$work/float.json" '[.results[].metric] | unique == ["algbw", "busbw", "time"]'
# 4099 bytes over 3 ranks: 341 floats, 340 after rounding to 16 bytes: 4080 bytes.
holds effective-size "$work/float.json" \
	'[.results[] | select(.params.op == "alltoall" and .params.requested_size == 4099) | .params.size] | unique == [4080]'
# shellcheck disable=SC2016 # jq's own variables
holds busbw-is-algbw-times-factor "$work/float.json" \
	'[.results[] | select(.params.op == "all_reduce" and .params.requested_size == 4099)] |
	 (.[] | select(.metric == "algbw").value) as $a | (.[] | select(.metric == "busbw").value) as $b |
	 ($b / $a - 4 / 3) | fabs < 1e-9'
holds no-bound-on-a-cpu "$work/float.json" '[.results[] | .bound // empty] | length == 0'
holds measured-on-the-cpu "$work/float.json" '[.results[].where] | unique | . == ["cpu"] or . == ["lab"]'

# --- MPI -----------------------------------------------------------------------------------------

if ! has_plugin mpi || ! command -v mpirun >/dev/null; then
	echo "skip coll-mpi: the MPI plug-in or mpirun is not here"
else
	mpi -n 2 "$program" coll all_reduce -b 8 -e 4M "${fast[@]}" --output "$work/mpi.json" --quiet
	ends mpi-all-reduce 0
	holds mpi-one-document "$work/mpi.json" \
		'[.results[].params | .backend == "mpi" and .ranks == 2] | all'
	holds mpi-every-size "$work/mpi.json" '[.results[] | select(.metric == "time")] | length == 20'
	mpi -n 3 "$program" coll all -d int32 -b 1000 -e 100K -f 10 "${fast[@]}" --quiet
	ends mpi-all-operations 0
	mpi -n 2 "$program" coll all_reduce -b 64K -e 64K "${fast[@]}" --inject 1:1026 --quiet
	ends mpi-wrong-byte 4 'rank 1: wrong data at offset 1026 \(element 256\): expected .*, got '
	mpi -n 2 "$program" coll all_reduce -d bfloat16 "${fast[@]}"
	ends mpi-no-bfloat16 2 'mpi backend has no all_reduce of bfloat16'
	mpi -n 2 "$program" coll --backend local
	ends mpi-not-local 2 'threads of one process'
fi
run coll --backend mpi
if has_plugin mpi; then ends mpi-without-launcher 3 'mpirun'; else ends mpi-without-plugin 3 'plug-in'; fi

# --- wrong bytes are found, located, and only where they are --------------------------------------

for op in all_reduce all_gather reduce_scatter broadcast alltoall; do
	run coll $op --ranks 2 -b 4M -e 4M "${fast[@]}" --inject 1:1048577 --output "$work/bad.json" --quiet
	ends "wrong-byte-$op" 4 'rank 1: wrong data at offset 1048577 \(element 262144\): expected .*, got .*; 1 of'
done
holds wrong-byte-in-the-document "$work/bad.json" '.errors[0].exit == 4 and .run.outcome == "failed"'
holds wrong-byte-is-invalid "$work/bad.json" '[.results[].validity.state] | unique == ["invalid"]'
run coll --ranks 2 -b 8 -e 8 -n 5 --inject 5:0
ends inject-unknown-rank 2 'ranks are 0 to 1'

# --- words and numbers ---------------------------------------------------------------------------

run coll all_redcue
ends unknown-operation 2 'did you mean all_reduce'
run coll -d flota
ends unknown-dtype 2 'did you mean float'
run coll -o summ
ends unknown-redop 2 'did you mean sum'
run coll -b 12Q
ends bad-size 2 '12Q'
run coll -b 2M -e 1M
ends no-sizes 2 'there are none'
run coll alltoall --ranks 4 -b 8 -e 32
ends rounded-to-nothing 2 'after rounding down'
run coll broadcast --ranks 2 -r 2
ends root-beyond 2 'ranks are 0 to 1'
run coll --ranks 1
ends one-rank-refused 2 'allow-one-rank'
run coll --ranks 1 --allow-one-rank -b 1M -e 1M "${fast[@]}" --output "$work/one.json" --quiet
ends one-rank-allowed 0
holds one-rank-has-no-busbw "$work/one.json" '[.results[].metric] == ["time"] and
	([.. | .busbw_reason? // empty] | length == 1)'

# --- NCCL ----------------------------------------------------------------------------------------

run coll --comm tcp --rank 0 --ranks 2 --connect-timeout 1s
if compgen -G '/dev/nvidia[0-9]*' >/dev/null && has_plugin nccl; then
	gpus=$(compgen -G '/dev/nvidia[0-9]*' | wc -l)
	run coll all --backend nccl --comm local --allow-one-rank --ranks "$gpus" -b 1M -e 64M -f 8 "${fast[@]}" --quiet
	ends nccl-all-operations 0
	run coll all --backend nccl --comm local --ranks 999
	ends nccl-too-many-ranks 3 'GPUs'
else
	echo "skip coll-nccl: there is no GPU, or no NCCL plug-in"
	ends no-backend-between-processes 77 'no backend between these processes'
	run coll --backend nccl --ranks 2
	ends nccl-ordered 3 'no CUDA device|plug-in|was not found'
fi
exit 0
