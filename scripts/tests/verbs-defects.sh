#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Thirteen things that the field's usual RDMA microbenchmark gets wrong, as far as a whole program shows them: the null
# benchmark's samples have a known shape, so what run control, gates and output make of them can be told exactly.
# verbs/defects_test.c has one unit test for each, and verbs-gates-lab.sh those that need packets.

set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
. "${0%/*}/lib.sh" verbs-defects

null() { # NAME STATUS FILTER ARGUMENT...
	local name=$1 want=$2 filter=$3 status=0 why=''
	shift 3
	"$program" null --quiet -o "$work/$name.json" "$@" >"$work/out" 2>"$work/err" || status=$?
	if [[ $status != "$want" ]]; then
		why="status $status instead of $want: $(head -c 300 "$work/err" | tr '\n' ' ')"
	elif ! jq -e "$filter" "$work/$name.json" >/dev/null 2>&1; then
		why="the document does not hold: $filter"
	fi
	verdict "verbs-defect-$name" "$why"
}

# A deviation of 30 ns at a mean of 1 us is not 0.
null 01-deviation 0 '.results[0].stats | .stddev > 25 and .stddev < 35 and .mad > 15 and .mad < 25' -n 20000 --points 1
# The maximum is a sample, and the histogram's own.
null 02-maximum 0 '.results[0] | .stats.max == .hist.max and .stats.max > .stats.p99_9' -n 20000 --points 1
null 03-few-samples 0 '.results[0].stats | has("p90") and (has("p99") or has("p99_9") | not) and (.ci | has("p99") | not)' \
	-n 500 --points 1
null 03-intervals 0 '.results[0].stats | .ci.p99.lo <= .p99 and .p99 <= .ci.p99.hi and .ci.p99_9.lo < .ci.p99_9.hi
	and .p99_9 < .max and (has("p99_99") | not)' -n 20000 --points 1
null 03-by-duration 0 '.results[0] | .n > 1000 and (.stats | has("p50") and has("p99"))' -D 100ms --points 1
# Of three sizes one is over the limit (a byte costs 40 ps): it fails, and is named.
null 06-each-size 1 '[.checks[] | select(.state == "fail")] | length == 1 and .[0].case == "null/normal/64K"' \
	-n 2000 --sizes 64,1K,64K --max-p50 2us
why=''
if ! grep -q 'null/normal/64K: --max-p50 missed: wanted at most 2.00 us, got' "$work/err"; then
	why="the miss is not named: $(head -c 300 "$work/err")"
fi
verdict verbs-defect-06-named "$why"
null 06-bandwidth 1 '[.checks[].state] == ["fail", "pass"]' -n 2000 --sizes 64,64K --metric rate --min-bandwidth 10Gb/s
null 07-latency-met 0 '[.checks[].state] | unique == ["pass"]' -n 2000 --max-p50 100us --max-p99 100us
null 07-latency-missed 1 '[.checks[] | .id] | unique == ["gate.max-p99"]' -n 2000 --max-p99 10ns
null 07-not-supported 3 '.checks[0] | .state == "skip" and (.reason | contains("needs 1000"))' -n 300 --max-p99 1s --points 1
null 08-all-sizes 0 '[.results[].params.size] == [64, 1024, 16384, 262144]' -n 50 --sizes 64,1K,16K,256K
null 09-json 0 '[.results[] | .. | objects | keys[] | select(contains("."))] == []' -n 20000 --metric both

for case in 'latency --max-p50 --max-p99 --interval' 'bandwidth --min-bandwidth --min-share --min-message-rate --rate --window'; do
	read -r command words <<<"$case"
	why=''
	"$program" verbs "$command" --help >"$work/help"
	for word in $words; do
		if ! grep -q -- "$word " "$work/help"; then why="no $word in its help"; fi
	done
	verdict "verbs-defect-07-options-of-$command" "$why"
done

# What a write's latency rests on stands where its option is explained.
why=''
"$program" verbs latency --help >"$work/help"
if ! tr '\n' ' ' <"$work/help" | grep -q 'last byte of the payload'; then why='its help does not say what write latency rests on'; fi
verdict verbs-defect-13-write-latency "$why"

exit "$bad"
