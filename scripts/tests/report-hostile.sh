#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Documents that mean harm, or are broken: report, compare, import, history and the fleet gate draw them escaped or
# refuse them with the place, in bounded time and memory, and run nothing that stands in them.

set -uo pipefail
# shellcheck source=scripts/tests/lib.sh
. "${0%/*}/lib.sh"
small=$top/reports/testdata/small.json
cd "$work" || exit 1

# The limits that hold for everything here: 1 GiB of address space, 60 s.
run() { # ARGUMENT...: sets rc
	rc=0
	(ulimit -v 1048576 && exec timeout 60 "$program" "$@") >out 2>err || rc=$?
}
refused() { # NAME TEXT COMMAND...: status 2, and the place is told
	local name=$1 text=$2
	shift 2
	run "$@"
	ends "$name" 2 "$text"
}
harmless() { # NAME PAGE: nothing ran; the page and its pictures are well-formed and hold no script
	local why=''
	if [[ -n $(find . -name 'owned*') ]]; then
		why='what stood in a document was run'
	elif [[ ! -s $2 ]]; then
		why="no page: $(tail -c 200 err)"
	elif grep -qiE '<(script|b|iframe|img onerror)[ >]|src="http|onload=[^&]*>' <(sed 's/"[^"]*"/""/g' "$2"); then
		why='markup of the document stands in the page'
	elif ! xmllint --huge --noout "$2" 2>xml; then
		why="the page is not well-formed: $(head -n1 xml)"
	else
		for svg in "${2%.html}".plots/*.svg; do
			if [[ -e $svg ]] && ! xmllint --noout "$svg" 2>xml; then why="$svg: $(head -n1 xml)"; fi
		done
	fi
	verdict "$1" "$why"
}

# Everything that a shell, gnuplot, a browser, XML, Markdown or printf might take for its own.
evil='"><script>alert(1)</script>'\''; system "touch owned1" `touch owned2` $(touch owned3)
!touch owned4
| ]]> --> &amp; %s%n \ ../../x {/=99 z} @'$'\u202e\uffff'

poison() { # FROM TO
	jq --arg x "$evil" '
		def all: walk(if type == "string" then $x else . end);
		.system.hosts |= map(all) | .tool |= all | .warnings = [$x]
		| .run.argv = [$x, $x] | .run.id = $x | .run.command = $x | .run.started = $x | .run.ended = $x
		| .config = {requested: {($x): $x}, effective: {($x): [$x, {($x): 1}]}}
		| .errors |= map(.message = $x | .remedy = $x | .job = $x) | .checks |= map(.id = $x | .title = $x | .observed = $x
			| .read = $x | .remedy = $x | .side_effect = $x | .subject = $x | .expected = {value: $x, source: $x})
		| .plan.title = $x | .plan.scope = $x | .verdict.scope = $x | .verdict.reasons = [$x]
		| (if .parts then .parts |= map(all) else . end)
		| .results |= map(.job = $x | .definition = $x | .sync = $x | .validity.reasons = [$x] | .measured_at = $x
			| .params.op = $x | .params.device = $x | .params.wait = $x | .params[$x] = $x | .facts = {($x): $x}
			| (if .bound then .bound.why = $x else . end) | .case |= sub("/[a-z]+"; "/" + $x))' "$1" >"$2"
}
poison "$small" poisoned.json
run report poisoned.json -o poisoned.html
ends report-texts 0
harmless report-texts-page poisoned.html
verdict report-texts-csv "$(grep -l '^=\|^@' poisoned.plots/*.csv 2>&1)"
run report poisoned.json --format png -o "it's \`a\` picture.png"
ends report-texts-png '0 77'
harmless report-texts-png-alone poisoned.html
verdict report-texts-png-drawn "$([[ $rc = 77 || $(grep -c '\.png$' out) -gt 1 ]] || echo 'no pictures, and status 0')"
mkdir -p dir/parts && cp poisoned.json dir/run.json
poison "$top/reports/testdata/every-key.json" every.json
run report every.json -o every.html
ends report-every-key 0
harmless report-every-key-page every.html

# Seven launches a side, as the gate needs them.
jq '.results |= [.[] as $r | range(7) as $l | $r | .launch = .launch * 10 + $l]' poisoned.json >launches.json
run compare launches.json launches.json --any-system --all --gate '*bandwidth*' --junit texts.xml --markdown texts.md --output texts.json
ends compare-texts '0 3'
verdict compare-texts-junit "$(xmllint --noout texts.xml 2>&1 | head -n2)"
verdict compare-texts-json "$(jq empty texts.json 2>&1)"
verdict compare-texts-markdown "$(grep -nE '<script|^!touch' texts.md | head -n2)"

# What is shown on a terminal does not steer it; what was cut within a character is still UTF-8.
jq '.results[].case = "\u001b[2J\u009b5n/x" | .results[].validity = {state: "invalid", reasons: ["\u001b]0;x\u0007"]}
	| .results |= .[:1] | .system.hosts[0].cpu.model = "\u00e9" * 300' "$small" >steers.json
jq '.system.hosts[0].cpu.model = "x" + .system.hosts[0].cpu.model' steers.json >other.json
run compare steers.json other.json --all --markdown steers.md
ends compare-terminal 3
verdict compare-terminal-safe "$(LC_ALL=C grep -cP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' out | grep -v '^0$')"
verdict compare-terminal-utf8 "$(iconv -f utf-8 -t utf-8 out steers.md 2>&1 >/dev/null)"
mkdir fleet
for n in 1 2 3 4 5 6 7 8; do jq --arg n "$n$evil" '.system.hosts[0].name = $n' poisoned.json >"fleet/$n.json"; done
run compare --fleet fleet --json
ends fleet-texts '0 1 3'
verdict fleet-texts-json "$(jq empty out 2>&1)"
mkdir history
for n in 1 2 3 4 5 6 7 8; do jq --arg n "2026-01-0$n" '.run.started = $n' poisoned.json >"history/$n.json"; done
run report --history history --json
ends history-texts 0
verdict history-texts-json "$(jq empty out 2>&1)"
run report --history history
verdict terminal-texts "$(grep -qP '[\x00-\x08\x0b-\x1f\x7f]' out && echo 'control characters reach the terminal')"

sample=$top/reports/testdata/import/perftest-write-bw.txt
name=$'import \'"<script>alert(1)</script>`touch owned5`.txt'
tr 'a-z' 'a-z' <"$sample" >"$work/x" && mkdir -p 'dir<b>' && cp x "dir<b>/${name//\//_}"
run import perftest "dir<b>/${name//\//_}" --quiet --output imported.json
ends import-name 0
run report imported.json -o imported.html
ends import-report 0
harmless import-page imported.html
head -c 300000 /dev/urandom >noise
for tool in perftest nccl-tests osu torchtitan megatron; do
	refused "import-noise-$tool" 'noise' import "$tool" noise --quiet
done
{ cat "$sample"; head -c 1000000 /dev/zero | tr '\0' 9; } >long.txt
run import perftest long.txt --quiet
ends import-long-line '0 2'
: >empty
refused import-empty 'empty' import osu empty --quiet

# --- what no document is ---------------------------------------------------------------------------

broken() { # NAME TEXT: report, compare, history and fleet refuse broken.json, and say what the report says
	refused "report-$1" "$2" report broken.json -o broken.html
	refused "compare-$1" "$2" compare "$small" broken.json
	mkdir -p "folder-$1" && cp broken.json "folder-$1/"
	refused "history-$1" "$2" report --history "folder-$1"
	refused "fleet-$1" "$2" compare --fleet "folder-$1"
}
sed 's/"value":1628/"value":NaN/' "$small" >broken.json
broken nan 'broken.json:[0-9]+:[0-9]+: .*'
sed 's/"value":1628/"value":1e999/' "$small" >broken.json
broken infinite 'broken.json:[0-9]+:[0-9]+: .*'
jq '.schema = "fabricbench/2"' "$small" >broken.json
broken version 'broken.json: schema: must be one of fabricbench/1; it is "fabricbench/2"'
jq 'del(.results[3].metric)' "$small" >broken.json
broken key 'broken.json: results\[3\].metric: missing'
jq '.results[2].hist.n = -1' "$small" >broken.json
broken negative 'broken.json: results\[2\].hist'
jq '.results[2].hist.buckets[0][1] = 9007199254740993' "$small" >broken.json
broken counts 'broken.json: results\[2\].hist'
sed 's/"schema"/"schema": "fabricbench\/1", "schema"/' "$small" >broken.json
broken twice 'broken.json:[0-9]+:[0-9]+: .*duplicate'
head -c 4000 "$small" >broken.json
broken cut 'broken.json:[0-9]+:[0-9]+'
sed 's/node_01/node\xff\xfe/' "$small" >broken.json
broken utf8 'broken.json:[0-9]+:[0-9]+: .*decode byte 0xff'
{ printf '{"schema":'; head -c 100000 /dev/zero | tr '\0' '['; } >broken.json
broken deep 'broken.json:[0-9]+:[0-9]+: .*depth'
truncate -s 70M broken.json
broken huge 'larger than|too large|more than'
rm -f broken.json && mkfifo broken.json
refused report-fifo 'not a regular file' report broken.json
rm -f broken.json

# --- much of it ------------------------------------------------------------------------------------

long() { head -c 1000000 /dev/zero | tr '\0' "$1"; }
long '<' >lt && long x >xs
jq --rawfile x xs --rawfile lt lt '.system.hosts[0].name = $x | .plan.title = $lt | .results[].params.op = $x | .results[0].case = $x
	| .results[1].metric = $x | .results[2].definition = $lt | .checks[0].observed = $x | .warnings = [$lt]' "$small" >long.json
run report long.json -o long.html
ends report-1mb-texts 0
harmless report-1mb-page long.html
run compare long.json long.json --json
ends compare-1mb-texts '0 3'

# Every result another operation on another device: as many figures as results, were there no bound.
jq -c '.results[0] as $r | .results = [range(10000) as $i | $r | .params.size = 8 | .params.op = "op\($i)" | .params.device = "d\($i)"
	| .case = "verbs.latency/op\($i)/8"]' "$small" >many.json
mkdir stand-in
printf '#!/bin/sh\necho >>"%s/started"\nexit 1\n' "$work" >stand-in/gnuplot
chmod +x stand-in/gnuplot
before=$(date +%s%N)
PATH=$work/stand-in:$PATH run report many.json -o many.html
ends report-10000-results 0
harmless report-10000-page many.html
verdict report-10000-counted "$(grep -q '10000 results\|10,000 results' many.html || echo 'the page does not tell how many there were')"
echo "# 10,000 results: $((($(date +%s%N) - before) / 1000000)) ms"
verdict report-10000-pictures "$(n=$(wc -l <started); [[ $n = 100 ]] || echo "gnuplot was started $n times, not 100")"
run compare many.json many.json --json
ends compare-10000-results '0 3'
verdict compare-10000-json "$(jq empty out 2>&1)"

verdict nothing-ran "$(find / -xdev -newer x -name 'owned[0-9]' 2>/dev/null | head -n3)"
exit "$bad"
