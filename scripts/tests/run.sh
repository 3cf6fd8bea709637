#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Plans end to end on the null benchmark: order, documents, verdicts, interruption, --resume, and what bad plans are told.

set -uo pipefail
# shellcheck source=scripts/tests/lib.sh
. "${0%/*}/lib.sh" run

check() { # NAME CONDITION...
	local name=$1
	shift
	if "$@" > /dev/null 2>&1; then
		verdict "$name" ''
	else
		verdict "$name" "$*; $(tail -n 3 "$work/err" 2> /dev/null)"
	fi
}
plan() { # PLAN DIR OPTION...
	local plan=$1 dir=$2
	shift 2
	run run "$plan" -o "$dir" --no-report "$@"
}
said() { grep -qF -- "$1" "$work/err" "$work/out"; }
has() { jq -e "$2" "$1"; }

cat > "$work/good.ini" <<'INI'
[plan]
title = Two jobs
launches = 2
[first]
command = null
points = 2
iters = 200
[second]
command = null
ranks = 3
points = 1
iters = 200
INI
plan "$work/good.ini" "$work/good"
check run-accepted test "$rc" -eq 0
check run-all-parts test "$(find "$work/good/parts" -name '*.json' | wc -l)" -eq 4
check run-verdict has "$work/good/run.json" '.verdict.state == "ACCEPTED" and .verdict.accounted.parts == 4 and .verdict.accounted.complete == 4'
check run-joined has "$work/good/run.json" '[.results[] | select(.job == "first")] | length >= 4'
check run-complete has "$work/good/run.json" '.run.outcome == "complete"'
check run-topology test -s "$work/good/topology.svg" -a -s "$work/good/topology.xml" -a -s "$work/good/topology.json"
check run-plain-lines grep -qE '^\[ 1/4\] first +launch 1  complete +[0-9.]+ s  latency .* at 256 B; at most [0-9:]+ left$' "$work/err"
check run-a-line-a-part test "$(grep -cE '^\[ [1-4]/4\] .* complete ' "$work/err")" -eq 4
check run-a-line-a-point test "$(grep -cE '^\[ [1-4]/4\] .* point ' "$work/err")" -eq 6
check run-points-in-turn grep -qE '^\[ 1/4\] first +launch 1  point 2/2 +latency [0-9.]+ [mun]?s at 256 B  null/normal/256$' "$work/err"
check run-no-escapes test "$(tr -cd '\r\033' < "$work/err" | wc -c)" -eq 0
plan "$work/good.ini" "$work/quiet" --parts-only --quiet
check run-quiet test ! -s "$work/err" -a "$rc" -eq 0
plan "$work/good.ini" "$work/good"
check run-never-overwrites test "$rc" -eq 2
plan "$work/good.ini" "$work/good" --resume
check resume-of-complete has "$work/good/run.json" '[.plan.parts[].reused] | all'

timeout 20 "$program" run "$work/good.ini" --dry-run > "$work/out" 2> "$work/err"
check dry-run-status test $? -eq 0
check dry-run-time said "time needed: about"
check dry-run-untold said '2 of 2 jobs do not say their time'

# A part that is rejected said why, and so does one that is not available here.
mkdir "$work/empty"
cat > "$work/why.ini" <<'INI'
[gate]
command = null
points = 1
iters = 2000
max-p50 = 1ns
[hosts]
command = verbs pairs
simulate = hosts=16,noise=0.01,slow-node=7:0.8,seed=1
INI
printf '[nothing]\ncommand = check all\nsysroot = %s\nrequire = no\n' "$work/empty" >> "$work/why.ini"
plan "$work/why.ini" "$work/why"
check why-rejected test "$rc" -eq 1
check why-gate has "$work/why/run.json" '.plan.parts[] | select(.job == "gate") | .state == "failed" and (.reason | test("null/normal/64: wanted at most 1.00 ns"))'
check why-pairs has "$work/why/run.json" '.plan.parts[] | select(.job == "hosts") | .state == "failed" and (.reason | test("n00007.*slow"))'
check why-skipped has "$work/why/run.json" '.plan.parts[] | select(.job == "nothing") | .state == "skipped" and (.reason | test("nothing could be judged here: not available"))'
check why-in-verdict has "$work/why/run.json" '.verdict.reasons | map(test("said nothing")) | any | not'

# Only what --help lists is suggested, and only where it is near.
for word in tune tree-s topoo; do
	"$program" "$word" > "$work/out" 2> "$work/err"
	check "no-command-$word" test $? -eq 2
	check "no-command-$word-words" said 'remedy: '
	check "no-command-$word-hidden" test "$(grep -c '"tree"' "$work/err")" -eq 0
done
"$program" verbs nonsense > "$work/out" 2> "$work/err"
check no-command-group said 'fabricbench verbs --help lists the commands'

bad() { # name, text, status wanted, words wanted
	printf '%s\n' "$2" > "$work/bad.ini"
	plan "$work/bad.ini" "$work/bad"
	check "bad-$1-status" test "$rc" -eq "$3"
	check "bad-$1-words" said "$4"
	rm -rf "$work/bad"
}
bad command '[a]
command = nul' 2 'did you mean "null"'
bad option '[a]
command = null
pionts = 3' 2 'did you mean "points"'
bad value '[a]
command = null
points = many' 2 'bad.ini:3'
bad nokey '[a]' 2 'has no command'
bad launcher '[a]
command = null
launcher = pbs' 2 'not one of local'
# All of it is told before anything runs, with the line.
bad twice '[a]
command = null
[a]
command = null' 2 'bad.ini:3: there are two sections [a]'
bad key-of-a-plan '[a]
command = null
launchess = 3' 2 'did you mean "launches"'
bad key-for-command '[a]
commandd = null' 2 'line 2: did you mean "command"'
bad word '[a]
command = coll all_reduc
ranks = 2' 2 'did you mean all_reduce'
bad extra-word '[a]
command = null more' 2 'unexpected argument "more"'
bad help '[a]
command = null --help' 2 'cannot stand in a plan'
bad server '[a]
command = verbs serve' 2 'cannot stand in a plan: it writes no results'
bad nested '[a]
command = run' 2 'cannot stand in a plan'
bad output '[a]
command = null
output = x.json' 2 'bad.ini:3: [a] output'
bad ssh-where '[a]
command = null
launcher = ssh' 2 'on which hosts?'
bad two-wheres '[a]
command = null
launcher = mpirun
hosts = a
hostfile = b' 2 'has hosts and hostfile'
bad hosts-of-none '[a]
command = null
hosts = a,b' 2 'bad.ini:3: [a] hosts says nothing to launcher = local'
bad per-host '[a]
command = null
launcher = mpirun
ranks-per-host = 0' 2 'bad.ini:4: [a] ranks-per-host = 0'
bad time '[a]
command = null
time = soon' 2 'bad.ini:3: [a] time = soon'
bad ranks-of-one '[a]
command = topo fabric
ranks = 2' 2 'is no command of several ranks'
plan "$work/nowhere.ini" "$work/none"
check bad-missing-plan test "$rc" -eq 2

run run "$work/good.ini" -o ''
check bad-empty-dir test "$rc" -eq 2

# A launcher that is not there is a part that is missing, with the reason, and no hang.
printf '[a]\ncommand = null\nlauncher = srun\nranks = 2\n' > "$work/gone.ini"
rc=0
timeout 60 env PATH=/nonexistent "$program" run "$work/gone.ini" -o "$work/gone-launcher" --parts-only > "$work/out" 2> "$work/err" || rc=$?
check launcher-missing-exit test "$rc" -eq 3
check launcher-missing-told has "$work/gone-launcher/run.json" '.plan.parts[0] | .state == "missing" and .reason == "srun is not installed or not in PATH"'

cat > "$work/fails.ini" <<'INI'
[good]
command = null
points = 1
iters = 50
[stuck]
command = null
points = 1
ranks = 2
stall = 0:1
deadline = 2s
[wrong]
command = null
points = 1
iters = 50
ranks = 2
corrupt = 0:1:17
INI
plan "$work/fails.ini" "$work/fails"
check wrong-data-exit test "$rc" -eq 4
check wrong-data-rejected has "$work/fails/run.json" '.verdict.state == "REJECTED"'
check missing-accounted has "$work/fails/run.json" '[.plan.parts[].state] | length == 3'
check deadline-named has "$work/fails/run.json" '.plan.parts[] | select(.job == "stuck") | .state != "complete" and (.reason | length > 0)'

cat > "$work/optional.ini" <<'INI'
[good]
command = null
points = 1
iters = 50
[gone]
command = null
points = 1
ranks = 2
stall = 0:1
deadline = 2s
require = no
INI
plan "$work/optional.ini" "$work/optional"
check optional-accepted test "$rc" -eq 0
sed 's/require = no/require = yes/' "$work/optional.ini" > "$work/required.ini"
plan "$work/required.ini" "$work/required"
check required-incomplete has "$work/required/run.json" '.verdict.state == "INCOMPLETE"'
check required-exit test "$rc" -eq 3

# A child that is killed, as by a library that aborts, leaves a document that says nothing of it: the run does.
cat > "$work/killed.ini" <<'INI'
[killed]
command = null
points = 8
duration = 2s
sleep = yes
INI
"$program" run "$work/killed.ini" -o "$work/killed" --no-report > "$work/out" 2> "$work/err" &
pid=$!
for _ in $(seq 100); do
	if [[ -s $work/killed/parts/01-killed-1.json ]]; then break; fi
	sleep 0.1
done
for file in /proc/[0-9]*/cmdline; do
	if { tr '\0' ' ' < "$file"; } 2> /dev/null | grep -qF -- "--output=$work/killed/parts/"; then
		file=${file%/cmdline}
		kill -KILL "${file#/proc/}"
	fi
done
wait "$pid"
check killed-exit test $? -eq 3
check killed-is-an-error has "$work/killed/run.json" '.plan.parts[0].state == "interrupted" and (.errors | length) == 1 and (.errors[0].message | test("killed, launch 1: interrupted"))'

# SIGTERM in mid-run: a valid document within half a second, then --resume completes it.
cat > "$work/long.ini" <<'INI'
[quick]
command = null
points = 2
iters = 100
[long]
command = null
points = 8
duration = 600ms
sleep = yes
INI
"$program" run "$work/long.ini" -o "$work/long" --no-report > "$work/out" 2> "$work/err" &
pid=$!
for _ in $(seq 100); do
	[ "$(jq '.results | length' "$work/long/parts/02-long-1.json" 2> /dev/null || echo 0)" -ge 2 ] && break
	sleep 0.1
done
kill -TERM "$pid"
before=$(date +%s%N)
wait "$pid"
rc=$?
took=$((($(date +%s%N) - before) / 1000000))
check interrupt-exit test "$rc" -eq 3
check interrupt-fast test "$took" -lt 3000
check interrupt-valid has "$work/long/run.json" '.run.outcome == "interrupted"'
check interrupt-keeps-points has "$work/long/run.json" '([.results[] | select(.job == "quick")] | length >= 2) and ([.results[] | select(.job == "long")] | length >= 2)'
sed -i 's/points = 8/points = 3/' "$work/long.ini"
plan "$work/long.ini" "$work/long" --resume
check resume-refuses-other-plan test "$rc" -eq 2
plan "$work/long/plan.ini" "$work/long" --resume
check resume-completes has "$work/long/run.json" '.run.outcome == "complete" and .verdict.state == "ACCEPTED"'
check resume-kept has "$work/long/run.json" '.plan.parts[] | select(.job == "quick") | .reused'

# What was measured under a plan that nobody has any more is not joined with a new one.
rm "$work/long/plan.ini"
plan "$work/long.ini" "$work/long" --resume
check resume-without-plan test "$rc" -eq 2
check resume-without-plan-words said 'nothing tells what'

# A disk that is full, here a limit on a file's size: told, with what had fitted kept, and --resume goes on.
cat > "$work/full.ini" <<'INI'
[quick]
command = null
points = 1
iters = 50
INI
plan "$work/full.ini" "$work/fits" --parts-only
printf '[large]\ncommand = null\npoints = 12\niters = 3000\n' >> "$work/full.ini"
(
	ulimit -f $(($(stat -c %s "$work/fits/run.json") / 1024 + 3))
	plan "$work/full.ini" "$work/full" --parts-only
	exit "$rc"
)
check full-exit test $? -eq 3
check full-words said 'File too large'
check full-keeps has "$work/full/run.json" '[.results[].job] == ["quick"]'
check full-leaves-nothing-half test "$(find "$work/full" -name '*.tmp*' | wc -l)" -eq 0
plan "$work/full.ini" "$work/full" --parts-only --resume
check full-resumes has "$work/full/run.json" '.verdict.state == "ACCEPTED" and ([.plan.parts[].reused] == [true, false])'

# A folder that cannot be written: /proc for everybody, root too.
plan "$work/good.ini" /proc/nowhere
check read-only-exit test "$rc" -eq 3
check read-only-words said 'give -o a folder where you may write'

# A signal while the report is drawn ends that as well, and all that was measured stays.
mkdir "$work/bin"
printf '#!/bin/sh\n: >"%s/drawing"\nexec sleep 60\n' "$work" > "$work/bin/gnuplot"
chmod +x "$work/bin/gnuplot"
PATH=$work/bin:$PATH "$program" run "$work/full.ini" -o "$work/drawn" > "$work/out" 2> "$work/err" &
pid=$!
for _ in $(seq 300); do
	if [[ -e $work/drawing ]]; then break; fi
	sleep 0.1
done
kill -TERM "$pid"
wait "$pid"
check report-stopped-exit test $? -eq 3
check report-stopped-words said "\`fabricbench report $work/drawn\` makes it from run.json"
check report-stopped-keeps has "$work/drawn/run.json" '.run.outcome == "complete" and .verdict.state == "ACCEPTED"'
left=''
for file in /proc/[0-9]*/cmdline; do
	if { tr '\0' ' ' < "$file"; } 2> /dev/null | grep -qF -- "report $work/drawn"; then left=$file; fi
done
check report-stopped-leaves-no-child test -z "$left"

# On a terminal: one line, with the point of how many, the time left and the last value; nothing of it is left behind,
# and no line a point.
cat > "$work/points.ini" <<'INI'
[slow]
command = null
points = 4
duration = 700ms
sleep = yes
INI
terminal() { # OPTION...: what a terminal of 100 columns gets, in $work/screen; each state of the line on its own
	rm -rf "$work/seen"
	timeout 60 script -qec "stty cols 100; '$program' run '$work/points.ini' -o '$work/seen' --parts-only $*" "$work/typescript" \
		< /dev/null > /dev/null 2>&1
	rc=$?
	tr '\r' '\n' < "$work/typescript" | grep -v '^Script ' > "$work/screen"
}
if ! command -v script > /dev/null; then
	echo 'skip run-terminal: there is no script(1) to make a terminal'
else
	terminal
	erase=$'\033\\[K'
	check terminal-status test "$rc" -eq 0
	check terminal-point grep -qE "^$erase\\[1/1\\] slow, launch 1, point 2/4 .*0:0[0-9] gone, .* left  last: slow latency [0-9.]+ [mun]?s at 64 B\$" "$work/screen"
	check terminal-learns-the-time grep -qE "point [34]/4 .* about 0:0[0-9] left " "$work/screen"
	check terminal-no-line-a-point test "$(grep -cE '^(.\[K)?\[ 1/1\]' "$work/screen")" -eq 1
	check terminal-ends-clean test "$(grep -a . "$work/screen" | grep -cE ' complete +[0-9.]+ s  latency ')" -eq 1
	terminal --quiet
	check terminal-quiet test "$rc" -eq 0 -a "$(grep -c . "$work/screen")" -eq 0
fi

# Ranks that mpirun starts have none of our descriptors.
cat > "$work/mpi.ini" <<'INI'
[ranks]
command = null
launcher = mpirun
ranks = 2
points = 3
iters = 100
INI
if ! command -v mpirun > /dev/null || ! "$program" features | grep -qE '^plug-in mpi +found'; then
	echo 'skip run-points-mpi: there is no mpirun, or no MPI plug-in'
else
	plan "$work/mpi.ini" "$work/mpi" --parts-only
	check mpi-points test "$(grep -cE '^\[ 1/1\] ranks +launch 1  point [123]/3 +latency ' "$work/err")" -eq 3
fi

exit "$bad"
