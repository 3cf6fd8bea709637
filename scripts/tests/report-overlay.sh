#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs laid over each other, from documents of the null benchmark, of collectives between threads and of a plan: what
# the page calls itself, one curve per run, the other texts, anonymous documents, what is refused. Chromium looks at it.

set -uo pipefail
# shellcheck source=scripts/tests/lib.sh
. "${0%/*}/lib.sh"
cd "$work" || exit 1

lacks() { # FILE TEXT...: the first text that the file has not
	local file=$1 text
	shift
	for text; do
		if ! grep -qF -- "$text" "$file"; then
			printf 'no "%s" in %s' "$text" "$file"
			return
		fi
	done
}

"$program" null --quiet -n 1500 --points 3 --mean 10us -o before.json
"$program" null --quiet -n 1500 --points 3 --mean 11us -o after.json
"$program" null --quiet -n 1500 --points 3 --mean 10us -o again.json
coll=("$program" coll all_reduce --comm local --ranks 2 -n 200 -b 1K -e 16K --quiet)
"${coll[@]}" --output coll-1.json
"${coll[@]}" --anonymous --output coll-2.json

expect like 0 'again\.html' "$program" report before.json again.json -o again.html
why=$(lacks again.html '>like for like<' '<h1>before against again</h1>')
if grep -q 'not like for like' again.html; then why='two runs of the same options are not like for like'; fi
verdict like-page "$why"

expect three 0 'three\.html' "$program" report before.json after.json again.json --label 'old,new,old again' -o three.html
verdict three-page "$(lacks three.html '>not like for like<' 'config.mean' 'old, new and old again' 'Other side by side')"
curves=$(grep -c "^# series " three.plots/null-latency.dat)
verdict three-curves "$([[ $curves = 3 ]] || echo "$curves curves for three runs")"
rows=$(grep -c '^"null/normal/64","latency p50"' three.plots/values.csv)
verdict three-values "$([[ $rows = 3 ]] || echo "$rows lines of values.csv for three runs")"
expect markdown 0 ': \*\*not like for like\*\*' "$program" report before.json after.json --format md -o -

expect collectives 0 'coll\.html' "$program" report coll-1.json coll-2.json -o coll.html
verdict collectives-page "$(lacks coll.html 'Collectives side by side' 'busbw [GB/s], more is better' '>CPU</span>')"
verdict collectives-chart "$([[ -s coll.plots/coll-busbw-all-reduce.csv ]] || echo 'no chart of busbw')"
expect disjoint 0 'disjoint\.html' "$program" report before.json coll-1.json -o disjoint.html
verdict disjoint-page "$(lacks disjoint.html 'Not in every run' 'No two of the runs measured the same thing.')"

"${coll[@]}" --anonymous --output coll-3.json
"$program" report coll-2.json coll-3.json -o anonymous.html >text 2>&1
why=$(lacks anonymous.html '<td>host0</td>')
if grep -qF "<td>$(uname -n)</td>" anonymous.html; then why='the name of this host'; fi
verdict anonymous "$why"

mkdir plan
printf '[gate]\ncommand = null\niters = 300\npoints = 2\nlaunches = 5\n' >plan/plan.ini
for mean in 10us 12us; do
	{ cat plan/plan.ini && echo "mean = $mean"; } >plan.ini
	"$program" run plan.ini -o "run-$mean" --no-report >text 2>&1 || verdict "plan-$mean" "$(tail -c 300 text)"
done
expect runs 0 'run-10us/overlay\.html' "$program" report run-10us run-12us
verdict runs-page "$(lacks run-10us/overlay.html 'plan.gate.mean' 'run-12us / run-10us [95 %]' '1.200 [1.')"
expect twice 0 'overlay\.html' "$program" report run-10us run-10us/
verdict twice-page "$(lacks run-10us/overlay.html '<h1>run-10us against run-10us (2)</h1>' '>like for like<')"

mkdir empty
expect no-run 2 'run\.json' "$program" report run-10us empty
expect nothing 2 'cannot read nowhere' "$program" report before.json nowhere
expect one-only 2 '--junit takes one run' "$program" report before.json after.json --junit x.xml

"$top/scripts/look-at-report" three.html >text 2>&1
sed 's/^\(ok\|not ok\) /\1 look-/' text
if grep -q '^not ok' text; then bad=1; fi
exit "$bad"
