# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What the tests from outside share: the program, a folder of their own, and the lines that scripts/test counts:
# "ok NAME", "not ok NAME: why", "skip ID: reason". Sourced, never run. An argument is the name under which
# scripts/keep-documents keeps the documents that the folder holds in the end; without one none are kept.
#
#   $top $program $work   the tree, the program, the folder
#   $prefix               words that `run` puts before its own
#   $rc                   the status of the last run; what it said stands in $work/out and $work/err
#   $bad                  0 until something was not ok: the test's own status
# shellcheck disable=SC2034 # each test uses some of these

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
program=$(readlink -f -- "${FABRICBENCH:-$top/build/fabricbench}") # tests change the folder
work=$(mktemp -d)
prefix=()
rc=0
bad=0
keep=${1:-}
leave() { # a test with more to undo has a trap of its own, which ends with this
	if [[ $keep ]]; then "$top/scripts/keep-documents" "$work" "$keep"; fi
	rm -rf "$work"
}
trap leave EXIT

verdict() { # NAME WHY: no reason, no complaint
	if [[ -z $2 ]]; then
		echo "ok $1"
	else
		# What a test shows may be hostile: no byte of it steers a terminal, or makes a line of its own.
		echo "not ok $1: $(tr '\n' ' ' <<<"$2" | tr -d '\000-\037')"
		bad=1
	fi
}

run() { # ARGUMENT...
	rc=0
	timeout -k 5 100 "$program" "${prefix[@]}" "$@" >"$work/out" 2>"$work/err" </dev/null || rc=$?
}

# As root, more ranks than cores, no ssh; PMIx's folder must have a short path, hence not TMPDIR.
mpi() { # MPIRUN'S ARGUMENTS
	rc=0
	env TMPDIR=/tmp OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated \
		OMPI_MCA_mpi_yield_when_idle=1 timeout -k 5 100 mpirun --oversubscribe "$@" \
		>"$work/out" 2>"$work/err" </dev/null || rc=$?
}

ends() { # NAME STATUS [PATTERN]: the last run ended so (one of "0 3"), and said so on standard error
	if [[ " $2 " != *" $rc "* ]]; then
		verdict "$1" "status $rc, not $2: $(tail -n 3 "$work/err" | head -c 300)"
	elif [[ -n ${3:-} ]] && ! grep -qE -- "$3" "$work/err"; then
		verdict "$1" "it does not say '$3': $(tail -n 3 "$work/err" | head -c 300)"
	else
		verdict "$1" ''
	fi
}

expect() { # NAME STATUS PATTERN COMMAND...: of any program; it ends so, and says so on either output
	local name=$1 want=$2 pattern=$3
	shift 3
	rc=0
	timeout -k 5 120 "$@" >"$work/out" 2>"$work/err" </dev/null || rc=$?
	if [[ $rc != "$want" ]]; then
		verdict "$name" "status $rc, not $want: $(tail -qn 3 "$work/err" "$work/out" | head -c 400)"
	elif ! grep -qE -- "$pattern" "$work/out" "$work/err"; then
		verdict "$name" "it does not say '$pattern': $(tail -qn 3 "$work/err" "$work/out" | head -c 400)"
	else
		verdict "$name" ''
	fi
}

holds() { # NAME [FILE] JQ-CONDITION: of the last run's document, or of another
	local file=$work/out said
	if [[ $# = 3 ]]; then file=$2; fi
	if said=$(jq -e "${@: -1}" "$file" 2>&1 >/dev/null); then
		verdict "$1" ''
	else
		verdict "$1" "${file##*/}: ${*: -1} does not hold: ${said:0:200}"
	fi
}

says() { # NAME TEXT: on either output
	verdict "$1" "$(grep -qF -- "$2" "$work/out" "$work/err" || echo "it does not say $2: $(head -c 300 "$work/err")")"
}

has_plugin() { # NAME
	"$program" features --json | jq -e --arg n "plug-in $1" \
		'.parts[] | select(.name == $n) | .state != "missing"' >/dev/null
}

# A port that nobody has now: bash can only ask by connecting.
free_port() {
	local port
	for ((;;)); do
		port=$((20000 + RANDOM % 12000))
		(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
	done
	echo "$port"
}
