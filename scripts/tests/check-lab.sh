#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check in the lab: a guest's Soft-RoCE port answers what can be answered without hardware, everything else is skipped
# with its reason, and nothing fails that is right. Prints "ok NAME", "not ok NAME: why" or "skip ID: reason".
# The same file is what runs in the guests (--guest).

# shellcheck source=scripts/lab/tests.sh
source "$(dirname "$0")/../lab/tests.sh"

# ---- the guest -------------------------------------------------------------------------------------------------------
guest() {
	run_case root "$fb" check all -o "$LAB_OUT/root.json" --quiet
	run_case required "$fb" check roce --require R01,R02,R03,R06,R25,R26,R42 -o "$LAB_OUT/required.json" --quiet
	run_case pfc "$fb" check roce --require R15 -o "$LAB_OUT/pfc.json" --quiet
	run_case ib "$fb" check ib -o "$LAB_OUT/ib.json" --quiet
	run_case learn "$fb" check roce --learn
	# A window with nothing on the wire proves nothing.
	run_case idle "$fb" check roce --watch 500ms -o "$LAB_OUT/idle.json" --quiet
	# Without CAP_IPC_LOCK the limit of locked memory is judged.
	run_case user bash -c "ulimit -l 64; exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all -- '$fb' check roce --json"
	cp "$LAB_OUT/user.out" "$LAB_OUT/user.json"
	ip link set eth0 mtu 1500
	run_case mtu "$fb" check roce -o "$LAB_OUT/mtu.json" --quiet
	ip link set eth0 mtu 4200
	sed "s/guest0/another/g" "$LAB_OUT/mtu.json" >"$LAB_OUT/another.json" # the node itself is not compared with itself
	run_case others "$fb" check roce --others "$LAB_OUT/another.json" -o "$LAB_OUT/others.json" --quiet
	ip link set eth0 down
	run_case down "$fb" check roce -o "$LAB_OUT/down.json" --quiet
	ip link set eth0 up
}

lab_guest "$@"

# ---- host ------------------------------------------------------------------------------------------------------------
lab_boot check 0 --guests 1 --timeout 240 -- "$self" --guest

exits() { # NAME STATUS
	local got
	read -r got _ < <(status_of "$1")
	[[ $got = "$2" ]] || echo "status $got, not $2: $(said "$1")"
}

state() { # ID
	echo "[.checks[] | select(.id == \"$1\")] | first | .state"
}

measured root '[.checks[] | select(.state == "fail" or .state == "error")] | length == 0' '.verdict'
for id in R01 R02 R03 R06 R25 R26; do
	measured root "($(state $id)) == \"pass\"" "[.checks[] | select(.id == \"$id\")]"
done
measured root "($(state R42)) == \"info\"" '[.checks[] | select(.id == "R42")]'
measured root 'all(.checks[]; .state != "skip" or (.reason | length > 10))' '.verdict'
measured root '[.checks[] | select(.id | startswith("I"))] | length == 0' '.verdict'
measured required '.verdict.state == "ACCEPTED"' .verdict
verdict pfc "$(exits pfc 3)"
measured idle '[.checks[] | select(.id == "R31" or .id == "R32") | .state == "skip" and (.reason | test("no load"))] | all' \
	'[.checks[] | select(.id == "R31")]'
verdict ib "$(exits ib 77)"
verdict learn "$(grep -q '^mtu = 4200$' "$cases/learn.out" || echo "not the MTU of this node: $(tr '\n' ' ' <"$cases/learn.out" | cut -c1-300)")"
verdict user "$(jq -e "($(state R42)) == \"fail\" and ([.checks[] | select(.state == \"fail\")] | length == 1)" "$cases/user.json" >/dev/null 2>&1 ||
	echo "locked memory of 64 KiB is not what fails: $(jq -c '[.checks[] | select(.state == "fail") | .id]' "$cases/user.json" 2>&1)")"
verdict mtu "$(jq -e "($(state R25)) == \"warn\" and ($(state R26)) == \"warn\"" "$cases/mtu.json" >/dev/null || echo 'an MTU of 1500 is no warning')"
verdict others "$(jq -e '[.checks[] | select(.id == "equal.mtu")] | first | .state == "fail" and (.observed | test("1500"))' "$cases/others.json" >/dev/null ||
	echo "the other MTU is not named: $(jq -c '[.checks[] | select(.id | startswith("equal"))]' "$cases/others.json" 2>&1 | cut -c1-400)")"
verdict down "$(jq -e "($(state R01)) == \"fail\"" "$cases/down.json" >/dev/null || echo 'a link that is down is no failure')"
exit $bad
