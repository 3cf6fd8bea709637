#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Gates, limited rates, bytes over time and paced latency with real packets, in one boot of the lab: two guests over
# Soft-RoCE. Prints "ok NAME", "not ok NAME: why" or "skip ID: reason".
# The same file is what runs in the guests: --server in guest 0, --client in guest 1.

# shellcheck source=scripts/lab/tests.sh
source "$(dirname "$0")/../lab/tests.sh"
port=18515

# ---- the guests ------------------------------------------------------------------------------------------------------
server() {
	exec "$fb" verbs serve -p $port 2>"$LAB_OUT/serve.err"
}

gated() { # NAME COMMAND...: its document and peer added
	run_case "$@" -o "$LAB_OUT/$1.json" --quiet "$LAB_PEER"
}

# The link loses everything for 0.7 s in the middle of a point.
flap() {
	sleep 1.5
	tc qdisc add dev eth0 root netem loss 100%
	sleep 0.7
	tc qdisc del dev eth0 root
}

client() {
	local flapper
	lab_wait_for "$LAB_PEER" $port
	gated duration "$fb" verbs latency -s 64 -D 700ms -w 8
	gated interval "$fb" verbs latency --op send,read -s 64 --interval 50ms -n 30 -w 4
	# A warm-up at this pace would last 32 s.
	gated interval-slow "$fb" verbs latency -s 64 --interval 500ms -n 6 --point-timeout 10s
	gated rate-send "$fb" verbs bandwidth --op send -s 4K --rate 12Mb/s -D 1200ms -w 16
	gated rate-write "$fb" verbs bandwidth --op write -s 4K -q 2 --rate 12Mb/s -D 1200ms -w 16
	gated rate-both "$fb" verbs bandwidth -b --op send -s 4K --rate 4Mb/s -D 1200ms -w 16
	# Batches that do not divide by the queue pairs, at a rate: what the target expects of each must be what it got.
	gated rate-swap "$fb" verbs bandwidth --op cmp-swap -q 3 --rate 24Kb/s -D 700ms -w 16
	gated rate-lists "$fb" verbs bandwidth --op send,write-imm -s 1K -q 3 -l 4 --rate 8Mb/s -D 500ms -w 16
	# No link of the lab carries that; and a figure of another rate is not the one that was asked for.
	gated rate-missed "$fb" verbs bandwidth --op write,fetch-add -s 64K,64K --rate 4Tb/s -D 300ms -w 16
	gated gate-met "$fb" verbs bandwidth -s 4K,16K -n 200 -w 8 --min-bandwidth 10Kb/s --min-message-rate 1
	gated gate-missed "$fb" verbs latency -s 2,64 -n 60 -w 8 --max-p50 1us
	gated gate-rate "$fb" verbs bandwidth -s 4K -n 200 -w 8 --min-bandwidth 1Tb/s
	gated gate-messages "$fb" verbs bandwidth -s 4K -n 200 -w 8 --min-message-rate 1000000000
	gated gate-p99 "$fb" verbs latency -s 2 -n 60 -w 8 --max-p99 10s
	gated gate-share "$fb" verbs bandwidth -s 4K -n 200 -w 8 --min-share 1
	flap &
	flapper=$!
	gated flap "$fb" verbs bandwidth --op write -s 4K --rate 8Mb/s --qp-timeout 16 -D 4s -w 16
	wait $flapper
}

lab_guest "$@"

# ---- host ------------------------------------------------------------------------------------------------------------
lab_boot verbs-gates 1 --guests 2 --timeout 300 -- "$self" --server -- "$self" --client

expect() { # NAME STATUS FILTER WORD...: status, document and messages
	local name=$1 want=$2 filter=$3 got='' word
	shift 3
	read -r got _ <"$cases/$name.rc" 2>/dev/null
	if [[ $got != "$want" ]]; then
		verdict "$name" "status ${got:-none} instead of $want: $(said "$name")"
		return
	fi
	if ! jq -e "$filter" "$cases/$name.json" >/dev/null 2>&1; then
		verdict "$name" "the document does not hold: $filter: $(jq -c '[.results[] | {value, rate, measured_at, worst_window, worst_window_reason, n}]' "$cases/$name.json" 2>&1 | cut -c1-600)"
		return
	fi
	for word in "$@"; do
		if ! grep -qF -- "$word" "$cases/$name.err"; then
			verdict "$name" "nothing about \"$word\": $(said "$name")"
			return
		fi
	done
	verdict "$name" ''
}

# Percentiles by duration, each with its interval, and none that the sample does not support.
expect duration 0 '.results[0] | .load == "closed" and .stats.min <= .stats.p50 and .stats.p50 <= .stats.max
	and .stats.ci.p50.lo <= .stats.p50 and .stats.p50 <= .stats.ci.p50.hi
	and ((.n >= 100) == (.stats | has("p90"))) and ((.n >= 1000) == (.stats | has("p99")))
	and ((.stats.ci | has("p99")) == (.stats | has("p99"))) and .stats.max == .hist.max'
# Thirty iterations 50 ms apart last 1.5 s; none of that is in a sample. (A busy host's guest answers in ticks of 4 ms.)
expect interval 0 '[.results[] | .params.interval_ns == 50000000 and .n == 30 and .stats.p50 < 15000000] | all'
expect interval-slow 0 '.results[0] | .n == 6 and .warmup_dropped == 64'

rated='.metric == "bandwidth" and .load == "open" and .rate.share > 0.2 and .rate.share < 1.02'
series='(.intervals | length) >= 5 and (.intervals | length) <= 600 and ([.intervals[].bytes] | add) <= .n * 4096 * (.params.direction | if . == "both" then 2 else 1 end)'
expect rate-send 0 ".results[0] | $rated and .params.rate == 1500000 and .measured_at == \"receiver\" and $series"
expect rate-write 0 ".results[0] | $rated and (.measured_at | startswith(\"sender\")) and $series"
expect rate-both 0 ".results[0] | $rated and .rate.requested == 1000000 and $series"

expect rate-swap 0 '.results[0] | .metric == "message_rate" and .n > 16 and .rate.requested == 3000
	and (.rate.achieved - 8 * .value | fabs) < 1'
expect rate-lists 0 '[.results[] | select(.metric == "bandwidth") | .rate.share > 0.2] | length == 2 and all'

expect rate-missed 0 '(.results | map(.metric)) == ["bandwidth", "message_rate", "message_rate"]
	and ([.results[] | .validity.state == "suspect" and (.validity.reasons | any(test("^achieved .* of requested 4000 Gb/s")))] | all)
	and ([.results[] | select(.rate != null) | .rate.share < 0.1 and .rate.requested == 500000000000] | length == 2 and all)' \
	'message size 65536 is named more than once'

expect gate-met 0 '[.checks[] | .state == "pass" and (.id | startswith("gate."))] | length == 4 and all'
expect gate-missed 1 '([.checks[] | select(.id == "gate.max-p50" and .state == "fail")] | length == 2)
	and ([.checks[].case] | unique | length == 2) and .run.exit == 1' \
	'verbs.latency/send/rc/poll/2: --max-p50 missed' 'verbs.latency/send/rc/poll/64: --max-p50 missed' 'wanted at most 1.00 us, got'
expect gate-rate 1 '.checks[0] | .state == "fail" and .expected.value == 125000000000 and .observed < 1e9' 'wanted at least'
expect gate-messages 1 '.checks[0].id == "gate.min-message-rate" and .checks[0].state == "fail"' '--min-message-rate missed'
expect gate-p99 3 '.checks[0].state == "skip" and .run.outcome == "failed"' 'cannot support p99, which needs 1000'
expect gate-share 3 '.checks[0].state == "skip"' 'line rate is not known'
# Whatever the average says, a window of the outage shows.
expect flap 0 '.results[0] | .worst_window.value < 0.2 * .value and .worst_window.window_ns == 100000000'
exit "$bad"
