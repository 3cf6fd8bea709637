#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check switch from outside: formats, profiles, both ends of a cable, statuses, what is refused, what is printed.

set -uo pipefail
# shellcheck source=scripts/tests/lib.sh
. "${0%/*}/lib.sh" check-switch
prefix=(check switch)
data=$top/verbs/lossless/testdata/switch
site26=$top/scripts/profiles/dscp26-cnp48-6.ini

run --list
ends list 0
verdict list-all "$([[ $(grep -c '^S[01][0-9]' "$work/out") = 12 ]] || echo 'not S01 to S12')"
run --explain S05
ends explain 0
says explain-source 'calculate_xoff'
run --explain S55
ends explain-unknown 2
timeout 60 "$program" check --explain S05 >"$work/out" 2>"$work/err"
says explain-in-the-group 'calculate_xoff'
run
ends no-file 2
says no-file-remedy 'remedy:'

# SONiC's default keeps DSCP 3 and 4 lossless, and DSCP 26 not.
run "$data/sonic-default.json" "$data/sonic-spine.json" --json -o "$work/default.json"
ends default 0
holds default-chain '[.checks[] | select(.id == "S02") | .state] == ["pass", "pass", "pass"]'
holds default-cable '[.checks[] | select(.id == "S03" and .state == "pass")] | length == 2'
holds default-switches '[.switches[] | [.name, .ports, .ports_up]] == [["leaf01", 3, 2], ["spine01", 1, 1]]'
holds default-evidence 'all(.checks[]; .evidence == "constructed" and (.read | length > 0))'
run "$data/sonic-default.json" --profile "$site26" --json
ends default-26 1
holds default-26-chain '[.checks[] | select(.id == "S02")][0] |
	.state == "fail" and (.observed | contains("DSCP 26 is class 1")) and (.remedy | contains("26 3"))'
run "$data/sonic-default.json" --profile "$top/scripts/profiles/sonic.ini"
ends default-its-profile 0
run "$data/sonic-roce26.json" --profile "$site26" --strict
ends roce26 0
run "$data/sonic-default.json" "$data/sonic-spine-pfc-missing.json" --json
ends one-end 1
holds one-end-both 'any(.checks[]; .id == "S03" and .state == "fail" and .subject == "leaf01 Ethernet0") and
	any(.checks[]; .id == "S03" and .state == "fail" and .subject == "spine01 Ethernet0")'

for fault in ecn-off:S08 kmin-over-kmax:S07 headroom-small:S05 no-watchdog:S10; do
	run "$data/sonic-${fault%:*}.json" --json
	ends "${fault%:*}" 1
	holds "${fault%:*}-alone" "[.checks[] | select(.state == \"fail\") | .id] | unique == [\"${fault#*:}\"]"
done

run "$data/nvidia-healthy.json" --profile "$site26"
ends nvidia 0
run "$data/nvidia-lossy.json" --profile "$site26"
ends nvidia-lossy 1
run "$data/nvidia-lossy.json"
ends nvidia-lossy-alone 0
run "$data/nvidia-lossy.json" --strict
ends nvidia-lossy-strict 1
run "$data/nvidia-roce-show.json" "$data/sonic-roce26.json" --json
ends both-formats 0
holds both-formats-told '[.switches[].format] == ["NVIDIA nv show", "SONiC config_db.json"]'

# Neighbours in files of their own, where neither configuration names any.
mkdir -p "$work/leaf01"
for s in sonic-default sonic-spine-pfc-missing; do jq 'del(.DEVICE_NEIGHBOR)' "$data/$s.json" >"$work/$s.json"; done
printf '%s\n' 'LocalPort    RemoteDevice    RemotePortID    Capability    RemotePortDescr' \
	'-----------  --------------  --------------  ------------  -----------------' \
	'Ethernet0    spine01         Ethernet0       BR            Eth1/1' >"$work/leaf01/lldp.txt"
jq -n '{lldp: {interface: [{Ethernet0: {chassis: {leaf01: {}}, port: {id: {type: "ifname", value: "Ethernet0"}}}}]}}' \
	>"$work/spine01.lldp.json"
run "$work/sonic-default.json" "$work/sonic-spine-pfc-missing.json" "$work/leaf01/lldp.txt" "$work/spine01.lldp.json" --json
ends lldp-files 1
holds lldp-both-ends '[.checks[] | select(.id == "S03" and .state == "fail") | .subject] == ["leaf01 Ethernet0", "spine01 Ethernet0"]'
holds lldp-told '[.switches[].lldp | split("/")[-1]] == ["lldp.txt", "spine01.lldp.json"] and
	any(.checks[]; .id == "S03" and (.read | contains("LLDP in")))'
cp "$work/spine01.lldp.json" "$work/lldp.json"
run "$work/sonic-default.json" "$work/sonic-spine-pfc-missing.json" "$work/lldp.json"
ends lldp-whose 2 'lldp.json holds neighbours .LLDP., and does not say of which of 2 switches'
run "$work/lldp.json"
ends lldp-alone 2 "no switch's configuration is given"
run "$work/sonic-default.json" "$work/leaf01/lldp.txt" "$work/lldp.json"
ends lldp-twice 2 'are both neighbours'
run "$work/sonic-default.json" "$work/leaf01/lldp.txt" "$work/sonic-spine-pfc-missing.json" "$work/lldp.json" --json
holds lldp-in-pairs '[.switches[].lldp | split("/")[-1]] == ["lldp.txt", "lldp.json"]'
echo '{"lldp": {"interface": {"eth7": {"chassis": {"x": {}}, "port": {"descr": "y"}}}}}' >"$work/alien.json"
run "$work/sonic-default.json" "$work/alien.json"
ends lldp-alien 2 'eth7.*leaf01 has none'
echo '{"lldp": {}}' >"$work/nobody.json"
run "$data/sonic-default.json" "$work/nobody.json"
ends lldp-nobody 0
says lldp-nobody-told 'names no neighbour of any port'

# What is not there is skip with the section's name; what is required and skipped is not accepted.
run "$data/sonic-qos-only.json" --require S10 --json
ends required-skip 3
holds skip-names-section 'all(.checks[] | select(.id == "S10"); .state == "skip" and (.reason | contains("PFC_WD")))'
run "$data/sonic-all-down.json"
ends nothing-judged 77
run "$data/sonic-default.json" --require S99
ends require-unknown 2

# Forms.
run "$data/sonic-ecn-off.json"
says table-groups 'Ethernet0 and 1 more'
run "$data/sonic-ecn-off.json" --format junit
verdict junit "$(grep -q '<testsuite' "$work/out" || echo 'no testsuite')"
run "$data/sonic-ecn-off.json" --format markdown
says markdown 'S08'
run "$data/sonic-default.json" --anonymous --json
verdict anonymous "$(grep -qE 'leaf01|spine01|gpu01' "$work/out" && echo 'a name is left')"

# What cannot be right, each within a second: the place is named.
refused() { # NAME TEXT PLACE
	printf '%s' "$2" >"$work/bad.json"
	run "$work/bad.json"
	ends "$1" 2
	says "$1-place" "$3"
}
refused malformed '{"PORT": {' 'bad.json:1:'
refused wrong-type '{"PORT": {"Ethernet0": {"mtu": []}}}' 'PORT|Ethernet0|mtu'
refused out-of-range '{"PORT": {"Ethernet0": {"speed": "-1"}}}' 'PORT|Ethernet0|speed'
refused other '{"a": 1}' 'neither a SONiC configuration'
run "$work/no-such-file.json"
ends missing-file 2
run "$data/sonic-default.json" "$data/sonic-default.json"
ends twice 2
head -c $((17 << 20)) /dev/zero | tr '\0' ' ' >"$work/large.json"
run "$work/large.json"
ends too-large 2
head -c 65536 /dev/urandom >"$work/noise.json"
run "$work/noise.json"
ends noise 2

cat >"$work/plan.ini" <<-INI
	[plan]
	title = Switches
	[leaf]
	command = check switch
	file = $data/sonic-roce26.json
	profile = $site26
INI
timeout 120 "$program" run "$work/plan.ini" -o "$work/dir" --no-report >"$work/out" 2>"$work/err"
rc=$?
ends plan 0
exit "$bad"
