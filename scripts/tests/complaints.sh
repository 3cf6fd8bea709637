#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Twenty complaints that users of other tools filed, and the right behaviour here: one named test each. In brackets
# the tool that was complained about.

set -uo pipefail
# shellcheck source=scripts/tests/lib.sh
. "${0%/*}/lib.sh"
small=$top/reports/testdata/small.json
cd "$work" || exit 1

null() { run null --points 1 --quiet "$@"; }

# 1 (iperf): an error stands in the document, stdout holds one document, and the rest goes to stderr.
null -n 100 --fail 0:0 --json
holds 01-errors-are-in-the-document out '.errors | length > 0 and .[0].message != ""'
# 2 (iperf, memtier): no NaN; null and its reason. A rate without a sample has none.
"$program" null --points 2 -n 50 --fail 1:0 --metric both --quiet --json >two.json 2>/dev/null
verdict 02-no-nan "$(grep -oiE '[:,[]-?(nan|inf)' two.json out; jq -r '.results[] | select(.value == null and (.value_reason // "") == "") | .case' two.json)"
# 3 (iperf): no key twice. jansson's reader refuses it, and a copy that was spoiled so is refused.
sed 's/"schema"/"schema": "x", "schema"/' "$small" >twice.json
run report twice.json
verdict 03-no-key-twice "$([[ $rc = 2 ]] && grep -q duplicate err || echo "status $rc: $(cat err)")"
# 4 (iperf): an error at the other end leaves a document too, at both ends.
null -n 100 --ranks 2 --comm local --fail 0:1 -o far.json
holds 04-far-errors-leave-a-document far.json '(.run.outcome == "failed") and (.errors | length > 0)'
# 5 (iperf): stopped by a signal, the document is whole and says so.
"$program" null --points 2 -n 20 --sleep --mean 20ms --quiet -o stopped.json >/dev/null 2>&1 &
pid=$!
for _ in $(seq 200); do if [[ -s stopped.json ]]; then break; fi; sleep 0.02; done
kill -TERM "$pid"
wait "$pid" 2>/dev/null
rc=$?
holds 05-stopped-is-written stopped.json '.run.outcome == "interrupted" and .run.ended != null'
# 6 (iperf): what the ranks exchange has a length and a bound (bench/oob): the values of 32 ranks arrive whole.
null -n 2000 --ranks 32 --comm local -o ranks.json
holds 06-exchange-is-bounded ranks.json '.run.outcome == "complete" and (.results[0].per_rank | length == 32)'
# 7 (iperf): what was asked for and what was done.
null -n 123 -o asked.json
holds 07-requested-and-effective asked.json '.config.requested.iters == 123 and .config.effective.iters == 123 and .config.effective.warmup == 64'
# 8 (iperf): what a value is stands in the page; of a rate the side that measured it too (measured_at, scripts/tests/verbs-*).
run report "$small" -o side.html
verdict 08-says-what-a-value-is "$(grep -q 'One value: half of the round trip' side.html || echo 'no definition stands in the page')"
# 9 (perftest): valid JSON from every command that has --json.
why=
for words in 'null -n 50 --points 1' 'coll all_reduce --comm local --ranks 2 -b 1K -e 1K' "import perftest $top/reports/testdata/import/perftest-write-bw.txt" \
	'train --plan --model llama3-8b --ranks 8'; do
	# shellcheck disable=SC2086 # words
	timeout 60 "$program" $words --json >out 2>err
	if ! jq empty out 2>/dev/null || [[ $(jq -s length out) != 1 ]]; then why="$why $words: $(head -c 100 err)"; fi
done
verdict 09-json-is-json "$why"
# 10 (perftest): every point is an element of its own.
null -n 100 --metric both -o both.json
holds 10-results-are-a-list both.json '[.results[].metric] == ["latency", "bandwidth"]'
# 11 (perftest): measured for a time, there are percentiles as well.
null -D 0.2s -o time.json
holds 11-duration-has-percentiles time.json '.results[0] | .stats.p99 > 0 and .hist.min > 0 and .n == .hist.n'
# 12 (perftest): a figure over its bound is invalid, and nothing is negative.
null -n 5000 --metric rate --bound 100Mbps -o over.json
holds 12-over-the-bound-is-invalid over.json '.results[0].validity | .state == "invalid" and (.reasons | length > 0)'
# 13 (perftest): a rate can be computed again from what stands beside it.
null -n 5000 --metric both --dist constant -o rate.json
holds 13-one-formula rate.json '(.results[0].value as $ns | .results[1] | (64e9 / $ns) as $want | .value / $want | . > 0.98 and . < 1.02)'
# 14 (fio): a percentile in the overflow is not printed, and the overflow is counted.
null -n 2000 --dist constant --mean 100s -o over.json --timeout 50s
holds 14-no-percentile-of-the-overflow over.json '.results[0] | .hist.overflow == .n and (.stats.p99 == null)'
# 15 (fio): the summary is the histogram's.
null -n 5000 -o hist.json
holds 15-summary-is-the-histogram hist.json '.results[0] | .hist.n == .n and (.hist.buckets | map(.[1]) | add) == .n and .hist.min == .stats.min and .hist.max == .stats.max'
# 16 (fio): the text is the document's.
"$program" null --points 1 -n 5000 --dist constant --mean 5us -o same.json >same.txt 2>/dev/null
verdict 16-text-is-the-document "$(grep -qE '64 B +5[,]?000 +5\.00 +5\.00' same.txt || tail -n 2 same.txt)$(jq -e '.results[0].value | . > 4980 and . < 5020' same.json >/dev/null || echo 'not 5 us')"
# 17 (nccl-tests): no average over sizes; the bound and the share of it stand at the sizes.
run report "$small" -o bound.html
verdict 17-bound-and-no-average "$(grep -q '% of bound' bound.html || echo 'no share of the bound')$(grep -oiE 'average bus|avg bus' bound.html)"
# 18 (Go's benchstat): exit 1 when worse; what only one side has is MISSING and enters no mean.
null -n 300 --points 2 -o base.json
null -n 300 -o cand.json
run compare base.json cand.json --gate '*' --all
verdict 18-missing-is-told "$([[ $rc = 1 ]] && grep -q MISSING out || echo "status $rc: $(tail -n 2 out)")"
# 19 (several): one launch proves nothing, and the noise of this host is measured before a floor is believed.
run compare cand.json cand.json --gate '*'
why=$([[ $rc = 0 ]] && grep -q 'INCONCLUSIVE' out || echo "one launch: status $rc")
run compare --quiet --aa 'null -n 300 --points 1 --launch-spread 0.05'
verdict 19-noise-first "$why$([[ $rc = 1 ]] && grep -q 'below the noise' out err || echo "--aa: status $rc")"
# 20 (wrk, hyperfine): the load is named, outliers stay in, and every series drawn has its rows.
null -n 5000 --dist bimodal -o tail.json
run report "$small" -o series.html
verdict 20-load-is-named-outliers-stay "$(grep -q 'closed loop' series.html || echo 'the page names no load')$(jq -e '.results[0] | .load == "closed" and .n == 5000 and .hist.max == .stats.max' tail.json >/dev/null || echo 'samples were dropped')$(
	for f in series.plots/*.csv; do [[ -s $f ]] || echo "$f is empty"; done)"
exit "$bad"
