#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check roce, ib and all from outside: statuses, forms, profiles, other nodes, a plan, and that --explain, --list and
# every refusal say what helps.

set -uo pipefail
# shellcheck source=scripts/tests/lib.sh
. "${0%/*}/lib.sh" check
trees=$top/verbs/lossless/testdata/trees

# Machines as text, made into folders.
for name in vendor-good pfc-off pfc-two healthy-dscp13 upstream upstream-root efa ib-hdr ib-init bare; do
	rm -rf "${work:?}/$name"
	"$program" tree expand "$trees/$name.tree" "$work/$name" >"$work/out" 2>"$work/err" || {
		echo "not ok check-trees: $name: $(head -c 200 "$work/err")"
		exit 0
	}
done

# --- what there is ---
run check --list
ends list 0
verdict list-all "$(n=$(grep -cE '^(R[0-9]{2}|I[0-9]{2}) ' "$work/out"); ((n == 55)) || echo "$n checks of RoCE and InfiniBand, not 55")"
run check --explain R15
ends explain 0
says explain-side-effect 'takes the link down'
run check --explain R155
ends explain-unknown 2
says explain-nearest 'did you mean R15?'
run check
ends no-command 2
run check roze
ends wrong-command 2
says wrong-command-hint 'check roce'

# --- statuses ---
run check roce --sysroot "$work/vendor-good"
ends good 0
says good-verdict 'ACCEPTED'
run check roce --sysroot "$work/pfc-off"
ends pfc-off 1
says pfc-off-remedy 'mlnx_qos -i eth2 --pfc 0,0,0,1,0,0,0,0'
says pfc-off-flap 'takes the link down'
run check roce --sysroot "$work/pfc-two"
ends warning 0
run check roce --sysroot "$work/pfc-two" --strict
ends warning-strict 1
run check roce --sysroot "$work/vendor-good" --require R18
ends required-skip 3
says required-skip-verdict 'INCOMPLETE'
run check roce --sysroot "$work/vendor-good" --require R15,R16
ends required-met 0
run check roce --sysroot "$work/vendor-good" --require R99
ends required-unknown 2
run check ib --sysroot "$work/vendor-good"
ends only-the-other-layer 77
run check all --sysroot "$work/efa"
ends efa-is-neither 77
says efa-says-why 'neither Ethernet nor InfiniBand'
mkdir -p "$work/empty/sys/class" "$work/empty/proc"
run check all --sysroot "$work/empty"
ends no-device 77
run check all --sysroot "$work/empty" --require R01
ends no-device-required 3
run check ib --sysroot "$work/ib-hdr"
ends ib-good 0
run check all --sysroot "$work/ib-init"
ends ib-init 1
says ib-init-cause 'no subnet manager'
run check roce mlx5_9 --sysroot "$work/vendor-good"
ends wrong-device 2
says wrong-device-names 'mlx5_0'
run check roce --sysroot "$work/nothing"
ends wrong-tree 2
run check roce --sysroot "$work/vendor-good" --sysrot x
ends wrong-option 2
run check roce --live
ends live-alone 2

# --- profiles ---
for name in dscp26-cnp48-6 dscp26-cnp48-7 sonic tc41-fifo185 tc52-fifo84 pfc-only; do
	run check roce --sysroot "$work/vendor-good" --profile $name --json
	verdict "profile-$name" "$([[ $rc = 0 || $rc = 1 ]] || echo "status $rc: $(head -c 300 "$work/err")")"
done
run check roce --sysroot "$work/vendor-good" --profile sonic --json
ends sonic-is-lossy-at-26 1
holds sonic-names-the-class "$work/out" '[.checks[] | select(.state == "fail") | .id] | contains(["R11", "R15"])'
run check roce --sysroot "$work/healthy-dscp13" --profile tc52-fifo84
ends dscp13 0
run check roce --sysroot "$work/vendor-good" --learn
ends learn 0
cp "$work/out" "$work/site.ini"
run check roce --sysroot "$work/vendor-good" --profile "$work/site.ini" --strict
ends learned-fits-its-node 0
run check roce --sysroot "$work/pfc-off" --profile "$work/site.ini"
ends learned-judges-others 1
printf 'roce-dscp = 106\n' >"$work/bad.ini"
run check roce --sysroot "$work/vendor-good" --profile "$work/bad.ini"
ends bad-profile 2
says bad-profile-line 'bad.ini:1: roce-dscp = 106'
run check roce --profile no-such-site
ends no-profile 2
says no-profile-names 'dscp26-cnp48-6'

# --- forms ---
run check roce --sysroot "$work/pfc-off" --format junit
ends junit 1
verdict junit-is-xml "$(xmllint --noout "$work/out" 2>&1 || ! command -v xmllint >/dev/null || echo "no XML")"
says junit-failure '<failure message="PFC on priority none">'
run check roce --sysroot "$work/pfc-off" --format markdown
says markdown-row '| fail | R15 PFC on the RoCE priority |'
run check roce --sysroot "$work/pfc-off" --format json -o "$work/pfc-off.json"
holds json-verdict "$work/out" '.verdict.state == "REJECTED" and .verdict.accounted.fail == 1'
holds json-check "$work/out" '.checks[] | select(.id == "R15") | .subject == "mlx5_0/1 (eth2)" and .state == "fail" and
	(.side_effect | test("link down")) and .evidence == "constructed"'
holds json-age "$work/out" 'all(.checks[]; .read | test("recorded: "))'
run check roce --sysroot "$work/pfc-off" --format junit --json
ends two-forms 2

# --- windows ---
run check roce --sysroot "$work/vendor-good" --watch 1s
ends watch-a-recording 2
says watch-a-recording-why 'leave one of them out'
run check roce --during
ends during-nothing 2
says during-nothing-how '--during -- COMMAND'
run check roce --watch 1
verdict watch "$([[ $rc = 0 || $rc = 1 || $rc = 77 ]] || echo "status $rc: $(head -c 300 "$work/err")")"

# --- a recording beside what may be read ---
run check roce --sysroot "$work/upstream" --json
holds hidden "$work/out" '.checks[] | select(.id == "R24") | .state == "skip" and (.reason | test("not visible from here"))'
run check roce --sysroot "$work/upstream-root" --json
holds by-root "$work/out" '.checks[] | select(.id == "R24") | .state == "info"'

# --- between nodes ---
for i in 1 2 3; do
	rm -rf "$work/fleet/n$i"
	mkdir -p "$work/fleet"
	cp -R "$work/vendor-good" "$work/fleet/n$i"
	echo "node$i" >"$work/fleet/n$i/proc/sys/kernel/hostname"
done
echo 1500 >"$work/fleet/n2/sys/class/net/eth2/mtu"
run check roce --sysroot "$work/fleet/n1" --others "$work/fleet" --json
ends fleet-odd 1
holds fleet-odd-named "$work/out" '.checks[] | select(.id == "equal.mtu") | .state == "fail" and .observed == "node2: 1500" and .expected.value == "9000"'
mkdir -p "$work/documents"
for i in 1 2 3; do
	run check roce --sysroot "$work/fleet/n$i" -o "$work/documents/n$i.json" --quiet
done
run check roce --sysroot "$work/fleet/n1" --others "$work/documents" --json
holds fleet-documents "$work/out" '.checks[] | select(.id == "equal.mtu") | .observed == "node2: 1500"'
holds fleet-not-itself "$work/out" '.checks[] | select(.id == "equal.pfc") | .observed == "3, equal on 3 nodes"'
run check roce --sysroot "$work/fleet/n1" --others "$work/documents" --json --anonymous
verdict fleet-anonymous "$(! grep -q 'node[123]' "$work/out" || echo "a host's name is there: $(grep -om1 '.\{30\}node[123]' "$work/out")")"
run check roce --sysroot "$work/fleet/n1" --others "$work/nowhere"
ends others-missing 2
run check node --sysroot "$work/fleet/n1" -o "$work/documents/n4.json" --quiet
run check roce --sysroot "$work/fleet/n1" --others "$work/documents" --json
holds others-passed-over "$work/out" '[.warnings[] | select(test("1 \\(.*/documents/n4.json: a document of check node\\)$"))] | length == 1'

# --- in a plan ---
cat >"$work/plan.ini" <<-TEXT
	[plan]
	title = the checks

	[fabric]
	command = check roce
	sysroot = $work/vendor-good
	profile = dscp26-cnp48-6
TEXT
run run "$work/plan.ini" --output "$work/run"
ends plan 0
holds plan-checks "$work/run/run.json" '[.checks[] | select(.id == "R15")] | length == 1'
verdict plan-report "$(grep -q 'PFC on the RoCE priority' "$work/run/report.html" || echo "the report does not name the checks")"
exit $bad
