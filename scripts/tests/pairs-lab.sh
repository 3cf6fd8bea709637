#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Pairs of hosts with real packets, in one boot of the lab: three guests meet by tcp and measure each other over
# Soft-RoCE; then again with a fourth host in the file that never joins, and once with a guest that is killed in the
# middle. Prints "ok NAME", "not ok NAME: why" or "skip ID: reason". The same file runs in the guests: --guest.

# shellcheck source=scripts/lab/tests.sh
source "$(dirname "$0")/../lab/tests.sh"
case_limit=120

# ---- a guest ---------------------------------------------------------------------------------------------------------
guest() {
	local i=$FABRICBENCH_LAB_INDEX pid
	local quick=(--size 16K --depth 8 --max-time 200ms -w 4 --min-iters 8 --pair-timeout 20s)
	printf 'guest0 r1\nguest1 r1\nguest2 r2\n' >/tmp/three
	printf 'guest0 r1\nguest1 r1\nguest2 r2\nguest3 r2\n' >/tmp/four
	hostname "guest$i" 2>/dev/null || true
	run_case all "$fb" verbs pairs --master 10.77.0.1:18600 --ranks 3 --rank "$i" --full "${quick[@]}" \
		-o "$LAB_OUT/all.json"
	# A host's place in the file is its rank; guest3 does not exist.
	run_case absent "$fb" verbs pairs --metric latency --expect-hosts /tmp/four -p 18601 --connect-timeout 12s \
		--full --max-time 200ms -w 4 --min-iters 8 --pair-timeout 20s -o "$LAB_OUT/absent.json"
	# One guest dies after it has joined.
	if ((i == 2)); then
		"$fb" verbs pairs --expect-hosts /tmp/three -p 18602 --full -D 3s "${quick[@]}" >/dev/null 2>&1 &
		pid=$!
		sleep 5
		kill -KILL $pid
		wait $pid 2>/dev/null
	else
		run_case killed "$fb" verbs pairs --expect-hosts /tmp/three -p 18602 --full -D 3s "${quick[@]}" \
			-o "$LAB_OUT/killed.json"
	fi
}

lab_guest "$@"

# ---- host ------------------------------------------------------------------------------------------------------------
lab_boot pairs-lab 0 --guests 3 --wait-all --timeout 420 -- "$self" --guest -- "$self" --guest -- "$self" --guest
a=$work/guest0

ok() { echo "ok $1"; }

not_ok() { # NAME WHY
	bad=1
	echo "not ok $1: $2"
	tail -n 5 "$work/lab.log" "$a"/*.err 2>/dev/null | sed 's/^/# /' | tail -n 40
}

exit_of() { # GUEST CASE
	local s=none
	if [[ -s $work/guest$1/$2.rc ]]; then read -r s _ <"$work/guest$1/$2.rc"; fi
	echo "$s"
}

has() { grep -q -e "$2" "$1" 2>/dev/null; } # FILE PATTERN

# Three guests on two cores are noisy: any verdict is honest, but each host has to be measured and to add up.
check_all() {
	local s
	s=$(exit_of 0 all)
	if [[ $s != [013] ]]; then
		not_ok pairs-all "status $s"
	elif ! has "$a/all.json" '"account":{"expected":3,"measured":3,"failed":0,"unreachable":0,"not_run":0}'; then
		not_ok pairs-all "not all three guests were measured"
	elif ! has "$a/all.json" '"verbs.pairs/guest0/guest1/0"' || ! has "$a/all.json" '"verbs.pairs/guest1/guest2/0"'; then
		not_ok pairs-all "a pair is missing from the results"
	elif [[ $(exit_of 1 all) != 0 || $(exit_of 2 all) != 0 ]]; then
		not_ok pairs-all "guests 1 and 2 ended $(exit_of 1 all) and $(exit_of 2 all)"
	else
		ok pairs-all
	fi
}

check_absent() {
	local s
	s=$(exit_of 0 absent)
	if [[ $s != [13] ]]; then
		not_ok pairs-absent "status $s where a host is missing"
	elif ! has "$a/absent.json" '"account":{"expected":4,"measured":3,"failed":0,"unreachable":1,"not_run":0}'; then
		not_ok pairs-absent "the hosts do not add up to 3 measured, 1 unreachable"
	elif ! has "$a/absent.out" 'guest3: unreachable, it never joined'; then
		not_ok pairs-absent "the missing host is not named"
	else
		ok pairs-absent
	fi
}

check_killed() {
	local s
	s=$(exit_of 0 killed)
	if [[ $s != [13] ]]; then
		not_ok pairs-killed "status $s where a host died"
	elif ! has "$a/killed.json" '"expected":3'; then
		not_ok pairs-killed "there is no account of three hosts"
	elif ! has "$a/killed.json" '"value_reason":'; then
		not_ok pairs-killed "no pair tells why it has no value"
	else
		ok pairs-killed
	fi
}

check_all
check_absent
check_killed
exit "$bad"
