# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What the tests in the lab share (scripts/tests/*-lab.sh). Such a test is one file for all its ends: the host's side
# boots guests that run the same file with --server, --client or --guest, and judges what they left behind.
# Sourced first, never run. It sets self, top and fb; the test gives functions server, client or guest, calls lab_guest
# with its own arguments, then lab_boot, and judges with verdict, measured and refused.

set -uo pipefail
# shellcheck disable=SC2034 # the tests boot it
self=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
fb=${FABRICBENCH:-$top/build/fabricbench}

# ---- in a guest ------------------------------------------------------------------------------------------------------

# The role that this file was started for in a guest, or nothing on the host.
lab_guest() { # ARGUMENT...
	case ${1:-} in
	--server | --client | --guest)
		"${1#--}"
		exit 0 # the host judges by what is left behind
		;;
	esac
}

# The other guests may boot later.
lab_wait_for() { # HOST PORT
	local i
	for ((i = 0; i < 150; i++)); do
		if (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null; then return; fi
		sleep 0.2
	done
}

# Status, messages and seconds of one case. A guest's clock may run several times too fast on a busy host, so the
# limit is only there against a hang.
run_case() { # NAME COMMAND...
	local name=$1 began=$SECONDS status=0
	shift
	timeout -k 5 "${case_limit:-60}" "$@" >"$LAB_OUT/$name.out" 2>"$LAB_OUT/$name.err" </dev/null || status=$?
	echo "$status $((SECONDS - began))" >"$LAB_OUT/$name.rc"
}

# End servers when the lab says so, and leave each one's status: 0 where it ended in order.
lab_serve_until_told() { # NAME=PID...
	# shellcheck disable=SC2064 # the ids are those of now
	trap "lab_end_servers $*; exit 0" TERM
}

lab_end_servers() { # NAME=PID...
	local each
	for each in "$@"; do kill "${each#*=}" 2>/dev/null; done
	for each in "$@"; do
		wait "${each#*=}"
		echo $? >"$LAB_OUT/${each%%=*}.rc"
	done
}

# ---- on the host -----------------------------------------------------------------------------------------------------

# Boots the guests; afterwards guest I's files lie in $work/guestI, and those of the cases where $cases says. Ends the
# test where there is no lab, or where it failed.
lab_boot() { # NAME CASES_GUEST LAB_OPTION... -- COMMAND...
	local reason status=0
	lab_name=$1
	if ! reason=$("$top/scripts/lab/lab" --check 2>&1); then
		echo "skip lab: $reason"
		exit 0
	fi
	work=$(mktemp -d)
	cases=$work/guest$2
	shift 2
	trap '"$top/scripts/keep-documents" "$work" "$lab_name"; rm -rf "$work"' EXIT
	"$top/scripts/lab/lab" --out "$work" --quiet --env FABRICBENCH="$(readlink -f "$fb")" "$@" >"$work/lab.log" 2>&1 || status=$?
	bad=0
	[[ -z ${KEEP:-} ]] || cp -r "$work" "$KEEP"
	if [[ $status != 0 ]]; then
		verdict boot "the lab ended with status $status: $(tail -n 3 "$work/lab.log" | tr '\n' ' ')"
		exit 1
	fi
}

verdict() { # NAME WHY: an empty WHY is fine
	if [[ -z $2 ]]; then
		echo "ok $lab_name-$1"
	else
		echo "not ok $lab_name-$1: $2"
		# shellcheck disable=SC2034 # the test's own exit status
		bad=1
	fi
}

said() { tr '\n' ' ' <"$cases/$1.err" 2>/dev/null | cut -c1-400; }

status_of() { # NAME: status and seconds
	local got=none took=0
	read -r got took <"$cases/$1.rc" 2>/dev/null
	echo "${got:-none} ${took:-0}"
}

# Status 0, and what the document holds.
measured() { # NAME FILTER [FILTER OF WHAT TO SHOW WHEN IT DOES NOT]
	local got
	read -r got _ < <(status_of "$1")
	if [[ $got != 0 ]]; then
		verdict "$1" "status $got: $(said "$1")"
	elif ! jq -e "$2" "$cases/$1.json" >/dev/null 2>&1; then
		verdict "$1" "the document does not hold: $2: $(jq -c "${3:-.run.outcome}" "$cases/$1.json" 2>&1 | cut -c1-500)"
	else
		verdict "$1" ''
	fi
}

# Status, at most so many seconds, and one message with these words and a remedy.
refused() { # NAME STATUS SECONDS WORD...
	local name=$1 want=$2 limit=$3 got took word
	shift 3
	read -r got took < <(status_of "$name")
	if [[ $got != "$want" ]]; then
		verdict "$name" "status $got instead of $want: $(said "$name")"
		return
	fi
	if ((took > limit)); then
		verdict "$name" "it took $took s: $(said "$name")"
		return
	fi
	if [[ $(grep -c 'error: ' "$cases/$name.err") != 1 ]] || ! grep -q 'remedy: ' "$cases/$name.err"; then
		verdict "$name" "not one message with a remedy: $(said "$name")"
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

# Did that server of guest I end in order when it was told to?
server_ends() { # GUEST [NAME]
	local rc why=''
	rc=$(cat "$work/guest$1/${2:-serve}.rc" 2>/dev/null)
	if [[ $rc != 0 ]]; then why="the server ended with ${rc:-nothing}"; fi
	verdict "${2:-server}-ends" "$why"
}
