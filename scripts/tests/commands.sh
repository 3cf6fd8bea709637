#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The two commands' own promises, in a tree made for it: scripts/test counts what ran and lets no skip appear or
# vanish; scripts/run works from any folder, gives the program's status and says where the report is, also after a signal.

set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
bad=0

verdict() { # NAME WHY
	if [[ -z $2 ]]; then
		echo "ok $1"
	else
		echo "not ok $1: $2"
		# Set apart, so that its lines are not taken for ours.
		printf '    %s\n' "${out//$'\n'/$'\n    '}"
		bad=1
	fi
}

executable() { # PATH: text on standard input
	mkdir -p "${1%/*}"
	cat >"$1"
	chmod +x "$1"
}

# A tree in which every step passes: the real commands, a makefile and tests that only say what they are told to.
new_tree() {
	rm -rf "$tree"
	mkdir -p "$tree/scripts/plans" "$tree/scripts/lab" "$tree/build" "$tree/reports/testdata"
	: >"$tree/reports/testdata/every-key.json"
	cp "$top/scripts/test" "$top/scripts/run" "$top/scripts/lib.sh" "$tree/scripts/"
	: >"$tree/scripts/expected-skips"
	: >"$tree/scripts/plans/quick.ini"
	executable "$tree/scripts/setup" <<<'#!/bin/sh'
	executable "$tree/scripts/dist" <<<$'#!/bin/sh\necho "ok features"'
	executable "$tree/scripts/check-schema" <<<$'#!/bin/sh\n[ "$1" = --self-test ] || echo "ok null.json"'
	executable "$tree/build/fabricbench" <<<'#!/bin/sh'
	executable "$tree/scripts/lab/selftest" <<<$'#!/bin/sh\necho "ok boots"'
	executable "$tree/scripts/tests/one.sh" <<<$'#!/bin/sh\necho "ok outside"'
	printf 'PASS a_test: 3 tests\n3 passed, 0 failed, 0 skipped\n' >"$tree/units"
	printf 'PASS a_fuzz: 5 s\n1 passed, 0 failed, 0 skipped\n' >"$tree/fuzzed"
	printf '%s:\n\t@%s\n' \
		'all tests check-layers check-headers format-check lint dist' 'true' check 'cat units' \
		fuzz 'cat fuzzed' >"$tree/Makefile"
}

run_test() { # ARGUMENT...: sets status, out
	status=0
	out=$(env -u B -u CI "$tree/scripts/test" "$@" 2>&1 </dev/null) || status=$?
}

expect() { # NAME STATUS LAST-LINE [TEXT]
	local why=''
	if [[ $status != "$2" ]]; then
		why="status $status, not $2"
	elif [[ $(tail -n1 <<<"$out") != "$3" ]]; then
		why="its last line is '$(tail -n1 <<<"$out")', not '$3'"
	elif [[ -n ${4:-} ]] && ! grep -qF -- "$4" <<<"$out"; then
		why="it does not say '$4'"
	fi
	verdict "$1" "$why"
}

# Linters may be missing where a person chose --no-install; the steps here only need their names.
for tool in clang clang-format clang-tidy cppcheck shellcheck codespell; do
	executable "$work/bin/$tool" <<<$'#!/bin/sh\nexit 0'
done
export PATH=$work/bin:$PATH

new_tree
run_test
expect all-pass 0 '18 passed, 0 failed, 0 skipped'

new_tree
printf 'FAIL b_test (exit 1)\n2 passed, 2 failed, 0 skipped\n' >"$tree/units"
run_test --only check
expect failed-units-are-counted 1 '2 passed, 2 failed, 0 skipped' 'FAIL check/b_test'

new_tree
echo 'PASS a_test: 3 tests' >"$tree/units"
run_test --only check
expect units-without-an-end-fail 1 '0 passed, 1 failed, 0 skipped' 'did not come to its end'

new_tree
echo '0 passed, 0 failed, 0 skipped' >"$tree/units"
run_test --only check
expect no-unit-fails 1 '0 passed, 1 failed, 0 skipped' 'no test ran'

new_tree
printf 'PASS a_test: 3 tests\nSKIP gpu_copy: no GPU\n3 passed, 0 failed, 1 skipped\n' >"$tree/units"
run_test --only check
expect unexpected-skip-fails 1 '3 passed, 1 failed, 1 skipped' 'SKIP gpu_copy: no GPU'
echo 'gpu_copy | may | always | a reason' >"$tree/scripts/expected-skips"
run_test --only check
expect expected-skip-passes 0 '3 passed, 0 failed, 1 skipped'
echo 'gpu_* | may | no-install | only then' >"$tree/scripts/expected-skips"
run_test --only check
expect skip-whose-condition-fails 1 '3 passed, 1 failed, 1 skipped'
run_test --no-install --only check
expect skip-whose-condition-holds 0 '3 passed, 0 failed, 1 skipped'

new_tree
echo 'gpu_copy | must | always | a reason' >"$tree/scripts/expected-skips"
run_test
expect vanished-skip-fails 1 '18 passed, 1 failed, 0 skipped' 'should have been skipped'
run_test --only check
expect vanished-skip-is-not-asked-of-a-part 0 '3 passed, 0 failed, 0 skipped'

new_tree
executable "$tree/scripts/tests/one.sh" <<<$'#!/bin/sh\necho "not ok peer: it hung"\nexit 1'
run_test --only e2e
expect failed-script 1 '0 passed, 1 failed, 0 skipped' 'FAIL one/peer: it hung'
executable "$tree/scripts/tests/one.sh" <<<$'#!/bin/sh\necho "ok first"\nexit 9'
run_test --only e2e
expect script-that-dies 1 '1 passed, 1 failed, 0 skipped' 'status 9'
executable "$tree/scripts/tests/one.sh" <<<$'#!/bin/sh\nexit 0'
run_test --only e2e
expect script-without-a-test 1 '0 passed, 1 failed, 0 skipped' 'tested nothing'

new_tree
executable "$tree/scripts/lab/selftest" <<<$'#!/bin/sh\necho "lab: no QEMU here"\nexit 77'
run_test --only lab
expect lab-skip-has-its-reason 1 '0 passed, 1 failed, 1 skipped' 'SKIP lab: lab: no QEMU here'

new_tree
sed -i 's/^all tests /tests /; $a all:\n\t@echo "main.c:1: error: no such thing"; false' "$tree/Makefile"
run_test --only e2e
expect no-program-no-test 1 '0 passed, 1 failed, 0 skipped' 'no program to test'

new_tree
run_test --only 'nothing*'
verdict no-such-step "$([[ $status = 2 ]] || echo "status $status, not 2")"

# --- scripts/run -----------------------------------------------------------------------------------

# A program that leaves a report and ends as it is told; "wait" ends on a signal alone, with its own status.
fake_program() { # STATUS|wait
	executable "$tree/build/fabricbench" <<-PROGRAM
		#!/bin/bash
		mkdir -p "\$4" && echo "\$2" >"\$4/plan" && echo report >"\$4/report.html"
		if [[ $1 = wait ]]; then
			trap 'echo ended >"\$4/signal"; exit 3' TERM
			echo \$\$ >'$work/started'
			for ((i = 0; i < 600; i++)); do sleep 0.1; done
			exit 9
		fi
		exit $1
	PROGRAM
}

run_run() { # ARGUMENT...: sets status, out (standard output), from a folder that is not the tree
	status=0
	out=$(cd "$work" && "$tree/scripts/run" "$@" 2>"$work/err" </dev/null) || status=$?
}

new_tree
fake_program 0
run_run -o here
expect run-from-anywhere 0 "report: $work/here/report.html"
verdict run-takes-quick.ini "$([[ $(cat "$work/here/plan") = "$tree/scripts/plans/quick.ini" ]] || cat "$work/here/plan")"
run_run
expect run-into-results 0 "report: $(echo "$tree"/results/*/report.html)"
: >"$work/own.ini"
run_run -o here own.ini
verdict run-takes-a-plan "$([[ $(cat "$work/here/plan") = "$work/own.ini" ]] || cat "$work/here/plan")"

fake_program 4
run_run -o here
expect run-gives-the-status 4 "report: $work/here/report.html"

run_run -o here no-such.ini
verdict run-without-a-plan "$([[ $status = 2 ]] && grep -q 'no plan can be read' "$work/err" || echo "status $status")"
run_run --nothing
verdict run-usage "$([[ $status = 2 ]] || echo "status $status, not 2")"

fake_program wait
rm -f "$work/started"
"$tree/scripts/run" -o "$work/stopped" >"$work/out" 2>&1 </dev/null &
pid=$!
for ((i = 0; i < 100; i++)); do
	if [[ -s $work/started ]]; then break; fi
	sleep 0.1
done
kill -TERM "$pid"
status=0
wait "$pid" || status=$?
out=$(cat "$work/out")
expect run-hands-on-a-signal 3 "report: $work/stopped/report.html"
verdict run-waits-for-the-program "$([[ -s $work/stopped/signal ]] || echo 'the program was not told to end')"

executable "$tree/scripts/setup" <<<$'#!/bin/sh\nexit 3'
run_run -o here
verdict run-stops-with-setup "$([[ $status = 3 ]] || echo "status $status, not 3")"

new_tree
sed -i 's/^all tests /tests /; $a all:\n\t@false' "$tree/Makefile"
run_run -o here
verdict run-without-a-build "$([[ $status = 3 ]] && grep -q 'the build failed' "$work/err" || echo "status $status")"

# --- scripts/fuzz: programs that only say what libFuzzer would ---
executable "$tree/build/o/a_fuzz" <<<$'#!/bin/sh\nprintf "%s\\n" "$@" >seen'
executable "$tree/build/o/b_fuzz" <<'SH'
#!/bin/sh
for word; do case $word in -artifact_prefix=*) prefix=${word#*=} ;; esac; done
echo bad >"${prefix}crash-77"
echo "artifact_prefix='$prefix'; Test unit written to ${prefix}crash-77"
exit 1
SH
executable "$tree/build/o/c_fuzz" <<<$'#!/bin/sh\nexit 1'
fuzz() { # ARGUMENT...: sets status, out
	status=0
	out=$(cd "$tree" && "$top/scripts/fuzz" "$@" 2>&1) || status=$?
}
seed() { sed -n 's/^-seed=//p' "$tree/seen"; }
FUZZ_SEED=7 fuzz 5 build/o/a_fuzz
expect fuzz-nothing-found 0 '1 passed, 0 failed, 0 skipped' 'PASS a_fuzz: 5 s, no finding'
verdict fuzz-seed "$([[ $(seed) = 7 ]] || echo "seed $(seed), not 7")"
FUZZ_SEED='' fuzz 5 build/o/a_fuzz
first=$(seed)
FUZZ_SEED='' fuzz 5 build/o/a_fuzz
verdict fuzz-draws "$([[ $first =~ ^[0-9]+$ && $first != "$(seed)" ]] || echo "seeds $first and $(seed)")"
FUZZ_SEED=7 fuzz 5 build/o/a_fuzz build/o/b_fuzz build/o/c_fuzz
expect fuzz-finding 1 '1 passed, 2 failed, 0 skipped' \
	'FAIL b_fuzz: found build/fuzz/b_fuzz-crash-77 (seed 7); replay: build/o/b_fuzz build/fuzz/b_fuzz-crash-77'
verdict fuzz-finding-is-there "$([[ -s $tree/build/fuzz/b_fuzz-crash-77 ]] || echo 'there is no such input')"
expect fuzz-without-input 1 '1 passed, 2 failed, 0 skipped' 'FAIL c_fuzz: it left no input to replay (seed 7)'
exit "$bad"
