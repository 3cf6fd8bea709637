#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# scripts/lab/loss-train from outside: a training step over MPI and UCX on Soft-RoCE, without loss and with 1 % of the
# packets of one direction lost. The documents carry the loss, the transport and the counters of both ends; the bytes
# went over rxe; packets were lost where they were to be, and repeated. What is wrong is refused, and guests that do not
# come up leave every run an entry with the reason. Prints "ok NAME", "not ok NAME: why" or "skip ID: reason".
set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
command=$top/scripts/lab/loss-train
export FABRICBENCH=${FABRICBENCH:-$top/build/fabricbench}
work=$(mktemp -d)
trap '"$top/scripts/keep-documents" "$work" train-loss-lab; rm -rf "$work"' EXIT

verdict() { # NAME WHY: an empty WHY is fine
	if [[ -z $2 ]]; then echo "ok train-loss-$1"; else echo "not ok train-loss-$1: $2"; fi
}

run() { # ARGUMENT...: the status in $rc
	rc=0
	timeout -k 30 580 "$command" "$@" >"$work/out" 2>"$work/err" </dev/null || rc=$?
}

holds() { # NAME FILTER SHOWN
	if jq -e "$2" "$work/run/run.json" >/dev/null 2>&1; then
		verdict "$1" ''
	else
		verdict "$1" "$2 does not hold: $(jq -c "$3" "$work/run/run.json" 2>&1 | cut -c1-600)"
	fi
}

bad() { # NAME TEXT ARGUMENT...
	local name=$1 text=$2
	shift 2
	run "$@"
	if [[ $rc != 2 ]]; then
		verdict "$name" "status $rc, not 2"
	elif ! grep -qF -- "$text" "$work/err"; then
		verdict "$name" "it does not say \"$text\": $(cat "$work/err")"
	else
		verdict "$name" ''
	fi
}
bad option 'unknown option "--rate"' --rate 1
bad rate '"100" is no percentage' --rates 0,100
bad twice '1 stands there twice' --rates 1,1
bad steps 'the first 4 are dropped' --steps 4

if ! reason=$("$top/scripts/lab/lab" --check 2>&1); then
	echo "skip lab: $reason"
	exit 0
fi
reason=$("$command" --check 2>&1)
case $? in
0) ;;
77)
	echo "skip train-loss-mpi: ${reason#loss-train: }"
	exit 0
	;;
*)
	verdict check "$reason"
	exit 0
	;;
esac
bad train 'zero9' --rates 0 --out "$work/never" --train --strategy=zero9

# The guests have no time to boot: every run is missing, and says why.
run --rates 0,1 --turns 2 --timeout 1 --out "$work/late"
if [[ $rc != 3 ]]; then
	verdict late "status $rc, not 3: $(tail -n 2 "$work/err" | tr '\n' ' ')"
elif ! jq -e '(.results | length) == 0 and (.plan.parts | length) == 4 and (.plan.parts | all(.state == "missing")) and (.errors | length) == 4
	and all(.errors[]; .message | test("did not come up"))' "$work/late/run.json" >/dev/null; then
	verdict late "$(jq -c '.plan.parts, .errors' "$work/late/run.json" | cut -c1-600)"
else
	verdict late ''
fi

# Seconds here are the guests': their clock may run several times too fast on a busy host.
run --rates 0,1 --turns 1 --steps 8 --point 240 --timeout 560 --keep --out "$work/run"
sed 's/^/# /' "$work/out"
if [[ $rc != 0 ]]; then
	verdict run "status $rc: $(tail -n 3 "$work/err" | tr '\n' ' ') $(grep -v '^ ' "$work/out" | tr '\n' ' ' | cut -c1-400)"
	exit 0
fi
verdict run ''
steps='[.results[] | select(.metric == "step_time")]'
holds labels "$steps | length == 2 and ([.[].params.loss] | sort) == [0, 1] and all(.[].params; .transport == \"mpi over ucx rc_verbs on rxe0\"
	and .direction == \"rank 0 to rank 1\" and .messages == \"mpi\" and .ranks == 2) and all(.[]; .where == \"lab\" and .n == 4)" "$steps | map([.params, .where, .n])"
holds metrics "$steps | all(.[]; .value > 0 and .mfu.measured.palm > 0 and .bytes.equal_on_all_ranks and ([.split.exposed[].mean] | add) > 0)" \
	"$steps | map([.value, .mfu, .bytes, .split.exposed])"
# Every byte of the gradients left by rxe0: no packet holds more than 4096 of them.
holds over-rxe "$steps | all(.[]; . as \$r | [\"rxe0/1\", \"rank1/rxe0/1\"] | all(.[]; \$r.counters.delta[.].sent_pkts * 4096
	>= \$r.bytes.kinds.all_reduce.counted * (\$r.n + \$r.warmup_dropped)))" "$steps | map([.bytes.kinds.all_reduce, .counters.delta])"
# Packets under way at a reading count on one side only.
lost='(.counters.delta | .["rxe0/1"].sent_pkts - .["rank1/rxe0/1"].rcvd_pkts)'
back='(.counters.delta | .["rank1/rxe0/1"].sent_pkts - .["rxe0/1"].rcvd_pkts)'
repeats='(.counters.delta | .["rank1/rxe0/1"].out_of_seq_request + .["rxe0/1"].rcvd_seq_err + .["rxe0/1"].completer_retry_err)'
holds lossless "${steps}[] | select(.params.loss == 0) | $lost <= 2 and $lost >= -2" "$steps | map(.counters.delta)"
holds lossy "${steps}[] | select(.params.loss == 1) | $lost > 2 and $back <= 2 and $back >= -2 and $repeats > 0" "$steps | map(.counters.delta)"
if grep -qE '^ +0 +1/1 ' "$work/out" && grep -qE '^ +1 +1/1 ' "$work/out"; then verdict table ''; else verdict table "$(cat "$work/out")"; fi
if grep -q 'loss-training' "$work/run/report.html"; then verdict report ''; else verdict report 'the page has no figure of the step against loss'; fi
if [[ -s $work/run/lab/guest1/stderr ]]; then verdict logs ''; else verdict logs 'no logs of the guests were kept'; fi
