#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A run that is stopped leaves a valid document: by signal, by its deadline, by a full disk, by a rank that dies.
# The null benchmark stands for a measurement: --sleep really waits, --hang looks at nothing, as a driver call may.

set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
. "${0%/*}/lib.sh"

# The second point lasts a minute unless something ends it; the first is over at once.
start_long() { # ARGUMENT...: sets pid once the first point is on disk
	rm -f "$work/out.json"
	"$program" null --points 2 -n 20 -w 0 "$@" -o "$work/out.json" >"$work/stdout" 2>"$work/stderr" &
	pid=$!
	local i
	for ((i = 0; i < 500; i++)); do
		if grep -q '"case":"null/normal/64"' "$work/out.json" 2>/dev/null; then return 0; fi
		sleep 0.02
	done
	return 0 # the verdict will say that there is no result
}

now_ms() { echo $(($(date +%s%N) / 1000000)); }

# Waits for pid; sets status and took, in ms.
reap() {
	status=0
	local begin
	begin=$(now_ms)
	wait "$pid" || status=$?
	took=$(($(now_ms) - begin))
}

why_document() { # FILE OUTCOME ERROR: prints why it is not as it must be
	local said
	# scripts/test holds every document that a test makes against the schema.
	if [[ -n ${FABRICBENCH_DOCUMENTS:-} ]]; then
		mkdir -p "$FABRICBENCH_DOCUMENTS"
		cp "$1" "$FABRICBENCH_DOCUMENTS/interrupt-$RANDOM$RANDOM.json"
	fi
	if ! said=$("$top/scripts/check-schema" "$1" 2>&1); then
		case $said in
		skip*) ;; # python3-jsonschema is missing; scripts/test has a step of its own for that
		*)
			echo "$said"
			return
			;;
		esac
	fi
	if ! grep -q "\"outcome\":\"$2\"" "$1"; then
		echo "its outcome is not $2: $(grep -o '"outcome":"[^"]*"' "$1")"
	elif ! grep -q '"case":"null/normal/64"' "$1"; then
		echo 'the finished point is not in it'
	elif grep -q '"case":"null/normal/256"' "$1"; then
		echo 'a point that did not finish is in it'
	elif ! grep -q "$3" "$1"; then
		echo "no error says \"$3\""
	fi
}

# Half a second is promised, and a busy machine gets as much again to notice the end. One that is busier still may be
# late, but not three times in a row.
interrupted() { # NAME SIGNAL ARGUMENT...
	local name=$1 signal=$2 why=''
	shift 2
	for _ in 1 2 3; do
		start_long "$@"
		kill -"$signal" "$pid"
		reap
		if ((took <= 1000)); then break; fi
	done
	if [[ $status != 3 ]]; then
		why="status $status, not 3"
	elif ((took > 1000)); then
		why="it took $took ms, three times in a row more than a second"
	else
		why=$(why_document "$work/out.json" interrupted "stopped by SIG$signal")
	fi
	verdict "$name" "$why"
}

interrupted sigterm TERM --stall 1:0
interrupted sigint INT --stall 1:0
interrupted sighup HUP --stall 1:0
interrupted sigterm-while-hanging TERM --hang 1:0
interrupted sigterm-several-ranks TERM --comm local --ranks 3 --stall 1:2

# On stdout stands one document, also when the watching thread wrote it.
start_long --hang 1:0 --json
kill -TERM "$pid"
reap
verdict json-while-hanging "$(why_document "$work/stdout" interrupted 'stopped by SIGTERM')"

why=''
start_long --stall 1:0 --timeout 1s
reap
if [[ $status != 3 ]]; then why="status $status, not 3"; fi
verdict deadline "${why:-$(why_document "$work/out.json" failed "deadline")}"

why=''
start_long --hang 1:0 --timeout 1s
reap
if [[ $status != 3 ]]; then why="status $status, not 3"; fi
verdict deadline-while-hanging "${why:-$(why_document "$work/out.json" failed "deadline of 1")}"

why=''
start_long --stall 1:0 --point-timeout 500ms
reap
if [[ $status != 3 ]]; then why="status $status, not 3"; fi
verdict point-timeout "${why:-$(why_document "$work/out.json" failed 'null/normal/256 did not end within its 0.5 s')}"

expect disk-full 3 'cannot write /dev/full: No space left' "$program" null --points 1 -n 10 -o /dev/full
# shellcheck disable=SC2016 # the variable is that shell's
expect stdout-full 3 'cannot write to stdout: No space left' bash -c '"$0" null --points 1 -n 10 --json >/dev/full' "$program"
expect no-folder 3 'cannot write .*no/such' "$program" null --points 1 -n 10 -o "$work/no/such/out.json"
expect wrong-data 4 'rank 0, offset 17: expected 0x78, got 0x38' "$program" null -n 10 --corrupt 1:0:17
expect unknown-option 2 '--metric' "$program" null --metrics time
expect bad-size 2 '12Q' "$program" null --sizes 12Q

exit "$bad"
