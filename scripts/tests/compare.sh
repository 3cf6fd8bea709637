#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The gate end to end, on the null benchmark: launches taken in turn, each verdict with its exit status, the gate file,
# the retry, a host that drifts, a launch that fails.

set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
. "${0%/*}/lib.sh" compare

quick='null -n 300 --points 1 --launch-spread 0.003'
turns=("$program" compare --quiet --run)

# --- launches taken in turn ------------------------------------------------------------------------

expect regressed 1 'REGRESSED: worse by more than the floor' "${turns[@]}" "$quick --mean 10us" "$quick --mean 10.5us"
expect improved 0 '1 IMPROVED' "${turns[@]}" "$quick --mean 10us" "$quick --mean 9.5us"
expect same 0 'ACCEPTED: 1 of 1 metrics gated, 1 PASS' "${turns[@]}" "$quick --mean 10us" "$quick --mean 10us"
expect unsure 0 'Warning: what is INCONCLUSIVE' "${turns[@]}" "$quick --launch-spread 0.05" "$quick --launch-spread 0.05"
expect unsure-strict 1 '^REJECTED' "${turns[@]}" "$quick --launch-spread 0.05" "$quick --launch-spread 0.05" --strict
expect failed-launch 3 'launch 1 of the candidate .* ended with status 2: unknown option --meen' \
	"${turns[@]}" "$quick" "$quick --meen 10us"
expect no-reach 3 'this gate cannot fail: 2 and 2 launches' "${turns[@]}" "$quick" "$quick" --launches 2
expect missing 1 '1 MISSING' "${turns[@]}" "$quick --points 2" "$quick"
expect noise 0 'holds' "$program" compare --quiet --aa "$quick"
expect noise-refused 1 'refused: below the noise' "$program" compare --quiet --aa "$quick --launch-spread 0.05"
expect words 2 'needs --run or --aa' "$program" compare a b -- null

# Two builds and a plan.
cat >"$work/slow" <<-END
	#!/bin/sh
	exec "$program" "\$@" --mean 10.6us
END
chmod +x "$work/slow"
expect builds 1 '2 REGRESSED' "${turns[@]}" "$program" "$work/slow" --launches 8 --keep "$work/kept" -- null -n 200 --points 2 --mean 10us
if [[ $(find "$work/kept" -name 'base-*.json' | wc -l) = 8 && $(find "$work/kept" -name 'candidate-*.json' | wc -l) = 8 ]]; then
	verdict kept ''
else
	verdict kept "it is: $(ls "$work/kept")"
fi
expect not-empty 2 'not an empty folder' "${turns[@]}" "$program" "$program" --keep "$work/kept" -- null
for side in a b; do
	printf '[one]\ncommand = null\niters = 300\npoints = 1\nmean = %s\n' "$([[ $side = a ]] && echo 10us || echo 11us)" >"$work/$side.ini"
done
expect plans 1 'REGRESSED' "${turns[@]}" "$work/a.ini" "$work/b.ini" --launches 7

# A host that slows down by 3 % while it measures: in turn, both sides see it.
cat >"$work/drifting" <<-END
	#!/bin/bash
	n=\$(cat "$work/count" 2>/dev/null || echo 0)
	echo \$((n + 1)) >"$work/count"
	exec "$program" "\$@" --mean \$((10000 + 300 * n / 20))ns
END
chmod +x "$work/drifting"
expect drift 0 '^ACCEPTED' "${turns[@]}" "$work/drifting" "$work/drifting" -- null -n 300 --points 1 --launch-spread 0.003

# The same build often: real launches, but few; `scripts/bench aa` has a hundred.
if FABRICBENCH=$program "$top/scripts/bench-aa" 6 2 1 >"$work/aa"; then
	verdict same-build-often ''
else
	verdict same-build-often "it is: $(cat "$work/aa")"
fi

# A retry that was planned: half the error each time, twice the launches.
rm -f "$work/count"
expect retry 1 'change \[97.5 % interval\]' "${turns[@]}" "$quick --mean 10us" "$quick --mean 10.6us" --launches 8 --retry --output "$work/retry.json"
if [[ $(jq -c '.metrics[0] | [.base.launches, .candidate.launches, .ratio.level]' "$work/retry.json") = '[16,16,0.975]' ]]; then
	verdict retry-pooled ''
else
	verdict retry-pooled "it is: $(jq -c '.metrics[0]' "$work/retry.json" | head -c 300)"
fi

# --- documents and the gate file -------------------------------------------------------------------

document() { # FILE LAUNCHES ARGUMENT...: a run of several launches
	local file=$1 launches=$2
	shift 2
	printf '[one]\ncommand = null\niters = 300\npoints = 1\nlaunches = %s\n' "$launches" >"$work/plan.ini"
	printf '%s\n' "$@" >>"$work/plan.ini"
	"$program" run "$work/plan.ini" --no-report -o "$file" >/dev/null 2>&1
}
document "$work/base" 8 'mean = 10us'
document "$work/slower" 8 'mean = 11us'
document "$work/one" 1 'mean = 11us'
expect documents 1 'REGRESSED' "$program" compare "$work/base" "$work/slower"
expect single 0 'INCONCLUSIVE: needs at least 7 launches a side, has 1 and 1' "$program" compare "$work/one" "$work/one"
# Launches of one job have one seed, and still are launches.
document "$work/spread" 8 'launch-spread = 0.01'
if [[ $(jq '[.results[].value] | unique | length' "$work/spread/run.json") -gt 2 ]]; then
	verdict launches-differ ''
else
	verdict launches-differ "it is: $(jq -c '[.results[].value]' "$work/spread/run.json")"
fi
# Each way in which nothing, or too little, can be judged, with real documents.
jq '.system.hosts[0].kernel.release = "9.9"' "$work/base/run.json" >"$work/kernel.json"
expect incomparable 3 'INCOMPARABLE: kernel.release: .* against "9.9"' "$program" compare "$work/base" "$work/kernel.json"
expect allowed 0 '^ACCEPTED' "$program" compare "$work/base" "$work/kernel.json" --allow kernel.release
jq '.results[3].validity = {"state": "invalid", "reasons": ["a pause storm"]}' "$work/base/run.json" >"$work/invalid.json"
expect invalid 3 'INVALID: candidate, launch .*: a pause storm' "$program" compare "$work/base" "$work/invalid.json"
# Launches that are unlike the first of their side are not averaged with it.
jq '.results[3].params.size = 8' "$work/base/run.json" >"$work/mixed.json"
expect mixed 3 "INCOMPARABLE: candidate, launch 2/one#4 is unlike the side's first: parameter size: 64 against 8" \
	"$program" compare "$work/base" "$work/mixed.json"
expect mixed-base 3 "INCOMPARABLE: base, launch 1/one#4 is unlike" "$program" compare "$work/mixed.json" "$work/base"
jq '.results[3].params.qps = 4' "$work/base/run.json" >"$work/mixed.json"
expect mixed-new 3 'parameter qps: absent against 4' "$program" compare "$work/base" "$work/mixed.json"
jq '.system.hosts[0].env.NCCL_ALGO = "Tree"' "$work/base/run.json" >"$work/mixed.json"
expect mixed-env 3 "document 2 \\(launch 1\\) is unlike the side's first: env.NCCL_ALGO: absent against \"Tree\"" "$program" compare \
	"$work/base" "$work/slower" --second-base "$work/mixed.json" --second-candidate "$work/slower"
expect tuned 0 '^ACCEPTED' "$program" compare "$work/base" "$work/mixed.json"
jq '.run.exit = 4 | .errors = [{"message": "byte 7", "remedy": "", "code": -74, "exit": 4}]' "$work/base/run.json" >"$work/wrong.json"
expect wrong-data 4 'records wrong data' "$program" compare "$work/base" "$work/wrong.json"
jq '.results = []' "$work/base/run.json" >"$work/nothing.json"
expect gone 1 '1 MISSING' "$program" compare "$work/base" "$work/nothing.json"
expect new 3 '1 only in the candidate' "$program" compare "$work/nothing.json" "$work/base"
cat >"$work/gate.ini" <<-END
	[gate]
	metrics = null*:latency p50
	[floor p50]
	relative = 2 %
	reason = what this host carries
	[waiver known]
	metric = null*:latency p50
	verdict = REGRESSED
	reason = <a fault & its | number>
	owner = ann
	expires = 2999-12-31
END
expect waived 0 'REGRESSED.*waived until 2999-12-31 by ann' "$program" compare "$work/base" "$work/slower" --gate-file "$work/gate.ini" \
	--junit "$work/gate.xml" --markdown "$work/gate.md" --output "$work/gate.json"
if xmllint --noout "$work/gate.xml" && [[ $(jq -r '.metrics[] | select(.gated) | .waiver.owner' "$work/gate.json") = ann ]] &&
	grep -q 'fault &amp; its \\| number' "$work/gate.md"; then
	verdict outputs ''
else
	verdict outputs "it is: $(cat "$work/gate.md")"
fi
sed -i 's/2999-12-31/2026-01-31/' "$work/gate.ini"
expect expired 2 'the waiver "known" of ann .* ended on 2026-01-31' "$program" compare "$work/base" "$work/slower" --gate-file "$work/gate.ini"
sed -i 's/2026-01-31/2999-12-31/; /^owner/d' "$work/gate.ini"
expect no-owner 2 '\[waiver known\] needs metric, verdict, reason, owner and expires' \
	"$program" compare "$work/base" "$work/slower" --gate-file "$work/gate.ini"
expect second-block 1 'REGRESSED' "$program" compare "$work/base" "$work/slower" --second-base "$work/base" --second-candidate "$work/slower"
expect typo 1 "no metric that the gate's pattern null\\*:latncy p50 matches" "$program" compare "$work/base" "$work/slower" \
	--gate 'null*:latency p50' --gate 'null*:latncy p50'
expect run-folder 2 'base is a folder: it cannot be launched' "${turns[@]}" "$work/base" "$work/slower"
expect nothing 3 '^INCOMPLETE: 0 of' "$program" compare "$work/base" "$work/slower" --gate 'verbs*:x'

# --- history ---------------------------------------------------------------------------------------

mkdir "$work/history"
for n in $(seq 10 33); do
	"$program" null -n 200 --points 1 --seed "$n" --launch-spread 0.003 --mean "$((n < 22 ? 10000 : 10800))ns" --quiet \
		--output "$work/history/$n.json"
	# One a second is too slow: the dates are set.
	sed -i "s/\"started\":\"[^\"]*\"/\"started\":\"2026-01-${n}T00:00:00Z\"/" "$work/history/$n.json"
done
run report --history "$work/history"
verdict history "$(tr '\n' ' ' <"$work/out" | grep -qE 'WORSE .*latency p50: .*between 2026-01-21T' || head -c 400 "$work/out" "$work/err")"
"$program" report --history "$work/history" --json >"$work/history.json" || bad=1
if [[ $(jq -r '.changes | length, .[0].direction, (.[0].first_after | .[0:10])' "$work/history.json" | tr '\n' ' ') = '1 worse 2026-01-22 ' ]]; then
	verdict history-json ''
else
	verdict history-json "it is: $(jq -c .changes "$work/history.json")"
fi
expect history-empty 2 'cannot read the folder' "$program" report --history "$work/nothing"

# --- other tools' output ---------------------------------------------------------------------------

sample=$top/reports/testdata/import/perftest-write-bw.txt
for n in 1 2 3 4 5 6 7 8; do
	sed "s/ 0.32 / 0.3$n /" "$sample" >"$work/fast$n.txt"
	sed "s/ 0.32 / 0.1$n /" "$sample" >"$work/slow$n.txt"
done
expect import 0 'measured on: imported' "$program" import perftest "$work"/fast?.txt --output "$work/fast.json"
expect import 0 'measured on: imported' "$program" import perftest "$work"/slow?.txt --output "$work/slow.json"
expect import-one 0 'RDMA_Write_BW' "$program" import perftest "$sample" --output "$work/one.json"
expect imported-regressed 1 'RDMA_Write_BW/RC/65536 bandwidth .* REGRESSED' "$program" compare "$work/fast.json" "$work/slow.json"
expect imported-single 0 'bandwidth .*INCONCLUSIVE' "$program" compare "$work/one.json" "$work/one.json"
expect imported-report 0 '' "$program" report "$work/fast.json" -o "$work/report"
# Of an invalid JSON, its unit; of a figure that is none, its reason; of wrong values, the status.
cat >"$work/bw.json.txt" <<-END
	{
	test_info: {
	test: RDMA_Write_BW_Test,
	Connection_type: RC,
	Mtu: 4096
	},
	results: {
	MsgSize: 65536,
	n_iterations: 5000,
	BW_peak: nan,
	BW_average: 196.40,
	MsgRate: 0.374603,
	}
	}
END
"$program" import perftest "$work/bw.json.txt" --quiet --output "$work/bw.json" || bad=1
if [[ $(jq -c '[.results[] | [.metric, .value, .value_reason, .validity.state]]' "$work/bw.json") = \
	'[["bandwidth_peak",null,"the tool printed no number","invalid"],["bandwidth",24550000000,null,"valid"],["message_rate",374603,null,"valid"]]' ]]; then
	verdict import-json ''
else
	verdict import-json "it is: $(jq -c '[.results[] | [.metric, .value, .value_reason, .validity.state]]' "$work/bw.json")"
fi
expect import-nan 3 'bandwidth_peak .*INVALID: .*the tool printed no number' "$program" compare "$work/bw.json" "$work/bw.json"
printf '%s\n' '[1,0]<stdout>:# all_reduce_perf' '[1,0]<stdout>:  8  2  float  sum  -1  9.0  1.0  1.9  3  9.0  1.0  1.9  0' >"$work/wrong.txt"
expect import-wrong 4 '8 bytes: 3 values came out wrong' "$program" import nccl-tests "$work/wrong.txt"
truncate -s 80M "$work/large.txt"
expect import-large 2 'large.txt' "$program" import osu "$work/large.txt"
expect import-refused 2 "figures without a header" "$program" import osu "$sample"

# What was cut for a test is no document that a run makes.
rm -f "$work"/kernel.json "$work"/invalid.json "$work"/mixed.json "$work"/wrong.json "$work"/nothing.json
exit "$bad"
