#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The training step from outside: every strategy on several rank counts, threads and MPI; the loss falls, counts equal
# closed forms, two runs are the same; what is wrong is refused; what fails ends everywhere with its cause.
# Prints "ok NAME", "not ok NAME: why", "skip ID: reason".
set -uo pipefail
# shellcheck source=scripts/tests/lib.sh
. "${0%/*}/lib.sh" train
prefix=(train)

# One of two processes is killed in the middle of its steps: mpirun and the other end, and the document says so.
killed_rank() {
	local launcher child victim='' start
	env TMPDIR=/tmp OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated \
		OMPI_MCA_mpi_yield_when_idle=1 mpirun --oversubscribe -n 2 "$program" train --steps 1000000 --timeout 60s \
		--quiet --output "$work/killed.json" >"$work/out" 2>"$work/err" </dev/null &
	launcher=$!
	for _ in {1..100}; do
		sleep 0.2
		for child in $(cat "/proc/$launcher/task/"*/children 2>/dev/null); do
			if tr '\0' '\n' <"/proc/$child/environ" 2>/dev/null | grep -q '^OMPI_COMM_WORLD_RANK=1$'; then victim=$child; fi
		done
		if [[ -n $victim ]]; then break; fi
	done
	sleep 3
	start=$SECONDS
	kill -9 "${victim:-$launcher}"
	wait "$launcher"
	rc=$?
	if [[ -z $victim ]]; then
		echo 'not ok mpi-killed: rank 1 was not found'
	elif ((rc == 0 || SECONDS - start > 30)); then
		echo "not ok mpi-killed: status $rc after $((SECONDS - start)) s"
	else
		holds mpi-killed "$work/killed.json" '.run.outcome != "complete" and .run.exit == 3 and (.errors | length) > 0'
	fi
}

# A step that explains itself: the loss falls, counts are what the formulas say, and something bounds it.
sound='.results[0] | .metric == "step_time" and (.loss | length) == 50 and .loss[49] < .loss[0] - 1
	and .bytes.equal_on_all_ranks and .memory.equal_on_all_ranks and .flops.linear.equal and .flops.attention.equal
	and (.verdict.bound_by | length) > 0 and .validity.state == "valid"
	and (.split.per_rank | length) == .params.ranks and .split.compute.mean > 0 and .mfu.value == null and (.mfu.value_reason | test("peak")) and .mfu.measured.palm > 0'

# --- every strategy, one batch, 50 steps -----------------------------------------------------------

for strategy in ddp zero1 zero2 zero3 shard-grad-op offload hybrid:F; do
	for ranks in 1 2 3 4; do
		name=${strategy%:*}-$ranks
		words=$strategy
		if [[ $strategy = hybrid:F ]]; then
			words=hybrid:$((ranks % 2 == 0 ? 2 : 1))
		fi
		run --strategy "$words" --comm local --ranks "$ranks" --steps 50 --global-batch 12 --seq 32 --json \
			--output "$work/$name.json"
		if [[ $rc != 0 ]]; then
			ends "$name" 0
		else
			holds "$name" "$work/$name.json" "$sound"
		fi
	done
done

# Another number of ranks, or another strategy, is no other training.
first() { jq -c '.results[0].loss[0:6] | map(. * 1e5 | round)' "$1"; }
same=$(first "$work/ddp-1.json")
for f in "$work"/*-[1234].json; do
	if [[ $(first "$f") != "$same" ]]; then
		echo "not ok one-training: $(basename "$f" .json) has losses $(first "$f"), one rank $same"
		same=''
		break
	fi
done
if [[ -n $same ]]; then echo 'ok one-training'; fi

run --strategy fsdp --ranks 2 --steps 10 --clip 1 --accumulate 2 --json --output "$work/a.json" --seed 7
run --strategy fsdp --ranks 2 --steps 10 --clip 1 --accumulate 2 --json --output "$work/b.json" --seed 7
if [[ $(jq -c '.results[0] | .loss, .grad_norm' "$work/a.json") = "$(jq -c '.results[0] | .loss, .grad_norm' "$work/b.json")" ]]; then
	echo 'ok one-seed-one-run'
else
	echo 'not ok one-seed-one-run: two runs of one seed differ'
fi
holds grad-norms "$work/a.json" '.results[0].grad_norm | length == 10 and all(. > 0)'
run --strategy fsdp --ranks 2 --steps 10 --json --output "$work/c.json" --seed 8
if [[ $(jq -c '.results[0].loss' "$work/a.json") != "$(jq -c '.results[0].loss' "$work/c.json")" ]]; then
	echo 'ok other-seed-other-run'
else
	echo 'not ok other-seed-other-run: two seeds give one training'
fi

# --- kinds of step ---------------------------------------------------------------------------------

for kind in '--dtype bf16' '--dtype bf16 --reduce-dtype bf16' '--recompute full' '--recompute selective' '--overlap off' \
	'--deterministic' '--backend reference' '--accumulate 3' '--accumulate 3 --sync-each' '--no-pin' '--batches 3'; do
	read -r -a words <<<"$kind"
	run --strategy zero3 --ranks 2 --steps 12 --micro-batch 2 --seq 16 "${words[@]}" --quiet --output "$work/kind.json"
	if [[ $rc != 0 ]]; then
		ends "kind$kind" 0
	else
		holds "kind$kind" "$work/kind.json" '.results[0] | .bytes.equal_on_all_ranks and .memory.equal_on_all_ranks
			and .flops.linear.equal and .validity.state == "valid"'
	fi
done
printf '[model]\nfamily = gpt2\nlayers = 1\nhidden = 24\nheads = 2\nvocab = 50\npositions = 32\n' >"$work/small.ini"
run --model "$work/small.ini" --ranks 2 --steps 4 --quiet --output "$work/gpt2.json"
ends model-file 0
run --strategy offload --offload-to "$work" --offload-params --ranks 2 --steps 4 --quiet --output "$work/file.json"
ends offload-file 0
holds offload-bytes "$work/file.json" '.results[0].bytes | .equal_on_all_ranks and .kinds.offload_in.counted > 0'
run --ranks 4 --steps 4 --ranks-per-node 2 --quiet --output "$work/tiers.json"
holds tiers "$work/tiers.json" '.results[0].bytes.tiers | .node > 0 and .rack > 0 and .far == 0'
printf 'left\nright\n' >"$work/racks"
run --ranks 4 --steps 4 --ranks-per-node 2 --rack-map "$work/racks" --quiet --output "$work/racks.json"
holds racks "$work/racks.json" '.results[0].bytes.tiers | .node > 0 and .rack == 0 and .far > 0'
run --ranks 2 --steps 4 --timeline "$work/trace.json" --quiet
holds timeline "$work/trace.json" '(.traceEvents // .) | length > 20'
rm -f "$work/trace.json"

run --ranks 2 --steps 6
ends table 0
if [[ $(wc -l <"$work/out") -le 24 ]] && grep -q '^  bound by ' "$work/out" && grep -q 'equal to the formula' "$work/out"; then
	echo 'ok table-text'
else
	echo "not ok table-text: $(head -c 200 "$work/out")"
fi

# --- MFU -------------------------------------------------------------------------------------------

run --ranks 2 --steps 6 --peak 100T --quiet --output "$work/peak.json"
holds mfu "$work/peak.json" '.results | map(.metric) == ["step_time", "tokens_per_s", "mfu"]'
holds mfu-conventions "$work/peak.json" '.results[0].mfu | .value == .data_sheet.palm and .data_sheet["6n"] < .data_sheet.palm
	and .peak.flops == 1e14 and .value < 1'
run --ranks 2 --steps 6 --peak 1000000 --quiet --output "$work/impossible.json"
ends mfu-impossible-refused 3 'MFU is [0-9]+ % .* cannot be'
holds mfu-impossible "$work/impossible.json" '.results[0].validity | .state == "invalid" and (.reasons[0] | test("cannot be"))'
holds mfu-impossible-untold "$work/impossible.json" '.results[0].mfu | .value == null and .data_sheet.causal == null and (.value_reason | test("refused"))'

# --- processes -------------------------------------------------------------------------------------

if has_plugin mpi && command -v mpirun >/dev/null; then
	for strategy in ddp zero1 zero2 zero3 shard-grad-op offload hybrid:2; do
		mpi -n 2 "$program" train --strategy "$strategy" --comm mpi --ranks 2 --steps 50 --global-batch 12 --seq 32 --json \
			--output "$work/mpi.json"
		if [[ $rc != 0 ]]; then
			ends "mpi-${strategy%:*}" 0
		else
			holds "mpi-${strategy%:*}" "$work/mpi.json" "$sound"
			if [[ $(first "$work/mpi.json") != "$(first "$work/ddp-2.json")" ]]; then
				echo "not ok mpi-${strategy%:*}-losses: $(first "$work/mpi.json") are not those of threads"
			fi
		fi
	done
	# In fixed point the gradients of processes are one rank's to the last bit: so is the clipped norm of each step, and
	# the loss of the next, which every weight that they moved has a part in.
	exact=(--deterministic --clip 0.5 --steps 8 --global-batch 12 --seq 32 --seed 5 --json --output)
	steps() { jq -c '.results[0] | .loss, .grad_norm' "$1"; }
	run --strategy ddp --ranks 1 "${exact[@]}" "$work/exact.json"
	for strategy in ddp zero1 zero2 zero3 shard-grad-op offload hybrid:2; do
		mpi -n 2 "$program" train --strategy "$strategy" --comm mpi --ranks 2 "${exact[@]}" "$work/mpi.json"
		if [[ $rc = 0 && $(steps "$work/mpi.json") = "$(steps "$work/exact.json")" ]]; then
			echo "ok mpi-${strategy%:*}-exact"
		else
			echo "not ok mpi-${strategy%:*}-exact: status $rc, $(steps "$work/mpi.json" | head -c 200), one rank $(steps "$work/exact.json" | head -c 200)"
		fi
	done
	mpi -n 1 "$program" train --seq 64 --quiet : -n 1 "$program" train --seq 32 --quiet
	ends mpi-other-options 2 'rank 0 has --seq 64, rank 1 has 32'
	killed_rank
	mpi -n 2 "$program" train --link 5us,1GB/s
	ends mpi-no-link 2 'these ranks are processes'
else
	echo 'skip train-mpi: there is no MPI here'
fi

# --- refused ---------------------------------------------------------------------------------------

bad() { # NAME TEXT ARGUMENTS
	local name=$1 text=$2
	shift 2
	run --ranks 2 "$@"
	ends "bad-$name" 2 "$text"
	if ! grep -q '^  remedy: ' "$work/err"; then verdict "bad-$name-remedy" 'it names no remedy'; fi
}
bad model 'nearest is "tiny"' --model tinny
bad strategy 'nearest' --strategy zeor1
bad hybrid 'hybrid:3' --strategy hybrid:3
bad option 'did you mean' --stratgy ddp
bad batch 'ranks \* micro-batch \* accumulate' --global-batch 9
bad seq 'positions' --seq 100000
bad steps 'none is left' --steps 4 --warmup 4
bad link '5us,1GB/s' --link fast
bad inject 'KIND:\+LATENCY' --inject all_gather
bad inject-kind 'has none' --strategy ddp --inject all_gather:+1ms
bad inject-rank 'ranks are 0 to 1' --inject rank:2:+1ms
bad inject-rate 'no known rate' --inject all_gather:x0.5
bad offload 'use --strategy offload' --offload-to host
bad folder 'No such file' --strategy offload --offload-to /no/where
bad tokens 'No such file' --tokens /no/where
bad timeline 'cannot be written' --timeline /no/where/trace.json
bad racks 'ranks-per-node' --rack-map /dev/null
echo left >"$work/one-rack"
bad racks-few 'racks of 1 nodes, and there are 2' --rack-map "$work/one-rack" --ranks-per-node 1
bad ranks 'at most 64 threads' --ranks 65
bad steps-huge 'not within 1 to 10000000' --steps 99999999999
bad batch-alone '2 ranks do not divide it' --global-batch 7
bad hybrid-bare 'strategy hybrid: F is' --strategy hybrid
bad zero-number 'only hybrid takes a number' --strategy zero1:2
bad beta '--beta1 and --beta2 must be below 1' --beta2 1
bad eps '--eps must be over 0' --eps 0
bad step-timeout 'below 1.00 ms' --step-timeout 0
bad model-folder 'not a regular file' --model "$work/"
bad plan-size 'that is no step' --plan --micro-batch 16777216 --accumulate 1048576 --model llama3-8b

# Token files: those of tiny have 2 bytes a token.
numbers() { # BYTES COUNT FILE: small tokens
	local i
	for ((i = 0; i < $2; i++)); do printf '\\x%02x' $((i * 37 % 200)); for ((j = 1; j < $1; j++)); do printf '\\x00'; done; done |
		xargs -0 printf '%b' >"$3"
}
numbers 2 2000 "$work/u16"
numbers 4 2000 "$work/u32"
head -c 100 "$work/u16" >"$work/short"
head -c 3001 "$work/u16" >"$work/torn"
printf 'a text is no file of tokens %.0s' {1..200} >"$work/text"
run --tokens "$work/u16" --ranks 2 --steps 4 --seq 64 --quiet --output "$work/tokens.json"
ends tokens 0
bad tokens-short 'holds 50 tokens of 2 bytes' --tokens "$work/short" --seq 64
bad tokens-wide 'holds uint32 tokens' --tokens "$work/u32" --seq 64
bad tokens-torn 'no whole tokens' --tokens "$work/torn" --seq 64
bad tokens-text 'vocabulary ends at 257' --tokens "$work/text" --seq 64
run --comm mpi --ranks 2 --steps 2
ends mpi-without-launcher 2 'start it by mpirun'
bad peak '989.4T' --peak lots
bad reference 'fp64' --backend reference --dtype bf16
bad label 'factor of that name' --label seq=4
bad large 'this machine has' --model llama3-405b

# --- what fails ------------------------------------------------------------------------------------

start=$SECONDS
run --ranks 3 --steps 50 --fail-rank 1:5
ends rank-lost 3 'rank 1 ended in step 5'
if ((SECONDS - start > 30)); then echo "not ok rank-lost-in-time: $((SECONDS - start)) s"; fi
run --ranks 2 --steps 200 --lr 1000 --output "$work/nan.json"
ends nan 4 'step [0-9]+: the loss is'
holds nan-document "$work/nan.json" '.run.exit == 4 and (.errors | length) == 1 and (.results | length) == 0'
run --ranks 2 --steps 100000 --timeout 2s
ends timeout 3

mkdir "$work/small"
if unshare -m true 2>/dev/null; then
	# shellcheck disable=SC2016
	timeout -k 5 100 unshare -m sh -c 'mount -t tmpfs -o size=64k small "$1/small" && exec "$2" train --strategy offload \
		--offload-to "$1/small" --ranks 2' sh "$work" "$program" >"$work/out" 2>"$work/err" </dev/null
	rc=$?
	ends disk-full 3 'no room for .* of optimizer state'
else
	echo 'skip train-disk: no file system may be mounted here'
fi

# --- in a plan -------------------------------------------------------------------------------------

cat >"$work/plan.ini" <<'INI'
[step]
command = train
ranks = 2
strategy = zero2
steps = 5
INI
timeout -k 5 100 "$program" run "$work/plan.ini" -o "$work/plan" >"$work/out" 2>"$work/err" </dev/null
rc=$?
ends plan 0
if grep -q 'id="training-split"' "$work/plan/report.html"; then
	echo 'ok report'
else
	echo 'not ok report: it has no figure of the step'
fi
sed -i 's/zero2/zero9/' "$work/plan.ini"
timeout -k 5 100 "$program" run "$work/plan.ini" -o "$work/plan2" >"$work/out" 2>"$work/err" </dev/null
rc=$?
if [[ $rc = 0 ]]; then echo 'not ok plan-refused: an unknown strategy was accepted'; else echo 'ok plan-refused'; fi
