#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check --rendezvous and --drive from outside, without a network under test: each rank is a recorded machine, three
# meet on this one; all equal, one that differs, one that never comes; and every way to ask for what does not go.
# Prints "ok NAME" or "not ok NAME: why".

set -uo pipefail
# shellcheck source=scripts/tests/lib.sh
. "${0%/*}/lib.sh" check-ranks
trees=$top/verbs/lossless/testdata/trees

machine() { # NAME TREE [LINE]
	printf 'include %s\n/proc/sys/kernel/hostname = %s\n%s\n' "$(realpath --relative-to="$work" "$trees/$2.tree")" "$1" "${3:-}" >"$work/$1.tree"
	"$program" tree expand "$work/$1.tree" "$work/$1" >"$work/out" 2>&1 || {
		echo "not ok check-ranks-trees: $1: $(head -c 200 "$work/out")"
		exit 1
	}
}

# All ranks at once, each a machine; '-' is one that does not come. Statuses stand in $statuses, rank 0's document in NAME.json.
meet() { # NAME MACHINE...
	local name=$1 port pid pids=() i=0 node
	port=$(free_port)
	shift
	for node in "$@"; do
		if [[ $node != - ]]; then
			timeout 60 "$program" check roce --sysroot "$work/$node" --rendezvous --comm tcp --ranks $# --rank $i \
				--master "127.0.0.1:$port" --connect-timeout 4s -o "$work/$name-$i.json" \
				>"$work/$name-$i.out" 2>"$work/$name-$i.err" </dev/null &
			pids+=($!)
		fi
		i=$((i + 1))
	done
	statuses=''
	for pid in "${pids[@]}"; do
		wait "$pid"
		statuses+="$? "
	done
}

holds() { # NAME FILTER
	verdict "$1" "$(jq -e "$2" "$work/$1-0.json" >/dev/null 2>&1 || echo "not $2: $(jq -c .verdict "$work/$1-0.json" 2>&1 | cut -c1-300)")"
}

ended() { # NAME STATUSES
	verdict "$1-status" "$([[ $statuses = "$2 " ]] || echo "ranks ended with $statuses, not $2: $(head -c 300 "$work/$1-0.err")")"
}

machine a vendor-good
machine b vendor-good
machine c vendor-good
machine odd vendor-good '@net/mtu = 1500'

meet ranks-equal a b c
ended ranks-equal '0 0 0'
holds ranks-equal '.verdict.state == "ACCEPTED" and ([.checks[] | select(.id | startswith("equal")) | .state] | all(. == "pass"))
	and ([.checks[] | select(.id == "rendezvous.ranks") | .state] == ["pass"]) and (.fabric.ranks | length == 2)'
verdict ranks-silent "$([[ ! -e $work/ranks-equal-1.json && ! -s $work/ranks-equal-1.out ]] || echo 'rank 1 writes too')"

meet ranks-odd a b odd
ended ranks-odd '1 0 0'
holds ranks-odd '([.checks[] | select(.id == "equal.mtu")][0] | .state == "fail" and (.observed | test("odd: 1500")))
	and ([.checks[] | select(.id == "R25" and (.subject | startswith("odd "))) | .state] == ["warn"])'

meet ranks-missing a - c
ended ranks-missing '3 0'
holds ranks-missing '.verdict.state == "INCOMPLETE" and ([.checks[] | select(.id == "rendezvous.ranks" and .state == "error") | .subject] | index("rank 1") != null)
	and ([.checks[] | select(.id == "equal.mtu")][0] | .state == "pass" and (.observed | test("2 nodes")))'

refused() { # NAME TEXT ARGUMENT...
	local name=$1 text=$2 rc=0
	shift 2
	timeout 20 "$program" check roce "$@" >"$work/out" 2>"$work/err" </dev/null || rc=$?
	verdict "$name" "$([[ $rc = 2 ]] && grep -qF -- "$text" "$work/err" || echo "status $rc: $(head -c 300 "$work/err")")"
}
refused one-rank 'here is one rank' --sysroot "$work/a" --rendezvous
refused drive-recorded 'makes load on this machine' --sysroot "$work/a" --drive x
refused drive-watched 'makes load on this machine' --watch 1s --drive x
refused drive-twice 'names x twice' --drive x,x
refused victim-alone '--victim without --drive' --victim x
exit $bad
