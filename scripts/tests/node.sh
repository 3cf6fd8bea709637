#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check node from outside: statuses, forms, expectations, other nodes, learning, a plan, and that every refusal says
# what helps. The nodes are made here: four switches of two GPUs and two NICs.

set -uo pipefail
# shellcheck source=scripts/tests/lib.sh
. "${0%/*}/lib.sh" node

pci() { # TREE PATH CLASS VENDOR DEVICE NUMA
	local dir=$1/sys/devices/$2
	mkdir -p "$dir"
	printf '%s\n' "$3" >"$dir/class"
	printf '%s\n' "$4" >"$dir/vendor"
	printf '%s\n' "$5" >"$dir/device"
	printf '%s\n' "$6" >"$dir/numa_node"
	for end in current max; do
		echo 16 >"$dir/${end}_link_width"
		echo '32.0 GT/s PCIe' >"$dir/${end}_link_speed"
	done
	ln -s "../../../devices/$2" "$1/sys/bus/pci/devices/${2##*/}"
}
# Without the GPU or NIC of that number; - for none.
node() { # NAME GPU NIC
	local tree=$work/$1 i sw bus path bdf n
	mkdir -p "$tree/sys/bus/pci/devices" "$tree/sys/class/infiniband" "$tree/proc/sys/kernel"
	echo "$1" >"$tree/proc/sys/kernel/hostname"
	for sw in 0 1 2 3; do
		bus=$(((sw + 1) * 32))
		path=$(printf 'pci0000:%02x/0000:%02x:01.0' $bus $bus)
		pci "$tree" "$path" 0x060400 0x8086 0x352a $((sw / 2))
		path+=$(printf '/0000:%02x:00.0' $((bus + 1)))
		pci "$tree" "$path" 0x060400 0x1000 0xc030 $((sw / 2))
		for i in 0 1 2 3; do
			n=$((2 * sw + i % 2))
			pci "$tree" "$path$(printf '/0000:%02x:%02x.0' $((bus + 2)) $i)" 0x060400 0x1000 0xc030 $((sw / 2))
			bdf=$(printf '0000:%02x:00.0' $((bus + 3 + i)))
			if ((i < 2)); then
				[[ $n = "$2" ]] || pci "$tree" "$path$(printf '/0000:%02x:%02x.0' $((bus + 2)) $i)/$bdf" 0x030200 0x10de 0x2330 $((sw / 2))
			elif [[ $n != "$3" ]]; then
				pci "$tree" "$path$(printf '/0000:%02x:%02x.0' $((bus + 2)) $i)/$bdf" 0x020700 0x15b3 0x1021 $((sw / 2))
				port "$tree" "$path$(printf '/0000:%02x:%02x.0' $((bus + 2)) $i)/$bdf" "mlx5_$n"
			fi
		done
	done
}
port() { # TREE PATH NAME
	local dir=$1/sys/devices/$2/infiniband/$3
	mkdir -p "$dir/ports/1"
	echo '1: CA' >"$dir/node_type"
	echo '28.41.1000' >"$dir/fw_ver"
	echo '4: ACTIVE' >"$dir/ports/1/state"
	echo '5: LinkUp' >"$dir/ports/1/phys_state"
	echo InfiniBand >"$dir/ports/1/link_layer"
	echo '400 Gb/sec (4X NDR)' >"$dir/ports/1/rate"
	ln -s "../../devices/$2/infiniband/$3" "$1/sys/class/infiniband/$3"
	ln -s "../../../$(basename "$2")" "$dir/device"
}
node whole - -
node no-gpu 5 -
node no-nic - 2

# --- what there is ---
run check node --list
ends list 0
verdict list-all "$(n=$(grep -cE '^[a-z]+\.[a-z0-9_/]+ ' "$work/out"); ((n == 48)) || echo "$n checks, not 48")"
run check --explain pci.acs_baremetal
ends explain 0
says explain-source 'NCCL user guide'
run check node --explain gpu.xids
ends explain-unknown 2
says explain-nearest 'did you mean gpu.xid?'

# --- this machine, whatever it is ---
run check node --json
verdict here "$([[ $rc = 0 || $rc = 1 ]] || echo "status $rc: $(head -c 300 "$work/err")")"
holds here-all-told '[.checks[].id] | unique | length == 48'
holds here-reasons 'all(.checks[] | select(.state == "skip" or .state == "error"); .reason | length > 5)'

# --- statuses ---
run check node --sysroot "$work/whole"
ends whole 0
says whole-verdict ACCEPTED
run check node --sysroot "$work/no-gpu"
ends by-symmetry 0
says by-symmetry-where '1 GPUs below 0000:60:01.0, where 3 others of the same switch have 2'
run check node --sysroot "$work/no-gpu" --strict
ends by-symmetry-strict 1
run check node --sysroot "$work/no-nic"
says nic-by-symmetry '1 compute NICs below 0000:40:01.0'
run check node --sysroot "$work/no-gpu" --expect hgx-h100 --json
ends by-expectation 1
holds by-expectation-row '.checks[] | select(.id == "inv.gpu_count") | .state == "fail" and .observed == "7" and
	.expected == {value: "8", source: "hgx-h100.ini"} and .evidence == "constructed"'
run check node --sysroot "$work/whole" --require gpu.ecc
ends required-skip 3
run check node --sysroot "$work/whole" --require inv.gpu_count,ib.rate
ends required-met 0
run check node --sysroot "$work/whole" --require inv.gpu_cont
ends required-unknown 2
says required-nearest 'inv.gpu_count'
mkdir -p "$work/empty/sys/class/net"
run check node --sysroot "$work/empty"
ends nothing-but-skips 77
run check node --sysroot "$work/nowhere"
ends wrong-tree 2
run check node --sysroot "$work/whole" --watch 1s
ends watch-a-recording 2
says watch-why 'leave one of them out'

# --- learning ---
run check node --sysroot "$work/whole" --learn
ends learn 0
cp "$work/out" "$work/machine.ini"
run check node --sysroot "$work/whole" --expect "$work/machine.ini" --strict
ends learned-fits-its-node 0
run check node --sysroot "$work/no-nic" --expect "$work/machine.ini"
ends learned-judges-others 1
says learned-names-it 'missing: 0000:45:00.0 (mlx5_2)'
printf '[machine]\ngpu = 8\n' >"$work/bad.ini"
run check node --sysroot "$work/whole" --expect "$work/bad.ini"
ends bad-expectation 2
says bad-expectation-line 'bad.ini:2: there is no key "gpu"'
run check node --expect hgx-h1000
ends no-expectation 2
says no-expectation-names 'hgx-h100'

# --- other nodes ---
mkdir -p "$work/fleet" "$work/documents"
for i in 1 2 3; do
	cp -R "$work/whole" "$work/fleet/n$i"
	echo "n$i" >"$work/fleet/n$i/proc/sys/kernel/hostname"
	run check node --sysroot "$work/fleet/n$i" -o "$work/documents/n$i.json" --quiet
done
for others in fleet documents; do
	run check node --sysroot "$work/no-gpu" --others "$work/$others" --json
	ends "$others" 1
	holds "$others-count" '.checks[] | select(.id == "inv.gpu_count") | .state == "fail" and .expected.value == "8" and
		.expected.source == "most of 4 nodes of its kind"'
	holds "$others-shape" '.checks[] | select(.id == "topo.fingerprint") | .state == "fail"'
	run check node --sysroot "$work/whole" --others "$work/$others" --strict
	ends "$others-good" 0
done
run check node --sysroot "$work/no-gpu" --others "$work/documents" --json --anonymous
verdict anonymous "$(! grep -qE '"n[123]"|no-gpu' "$work/out" || echo "a host's name is there")"
run check node --others "$work/machine.ini"
ends others-no-document 2
# What a folder holds besides is told, and changes nothing; where nothing else is there, it is the reason.
mkdir -p "$work/mixed/empty" "$work/alien"
cp "$work/documents"/n*.json "$work/mixed"
run check roce --sysroot "$work/whole" -o "$work/alien/n7.json" --quiet
cp "$work/alien/n7.json" "$work/mixed/n7.json"
echo '[1]' >"$work/mixed/list.json"
for i in 1 2 3; do echo text >"$work/mixed/notes$i.txt"; done
run check node --sysroot "$work/whole" --others "$work/mixed" --strict --json
ends others-mixed 0
holds others-mixed-told '[.warnings[] | select(test("^--others: .* 6 \\(")) | test("mixed/n7.json: a document of check roce") and
	test("empty: a folder without sys/") and test("list.json: no document of fabricbench") and test("; \\.\\.\\.\\)$")] == [true]'
run check node --sysroot "$work/whole" --others "$work/mixed" --json --anonymous
verdict others-mixed-anonymous "$(! grep -qE '[/"]n[1237]\b' "$work/out" || echo "a host's name is there")"
run check node --sysroot "$work/whole" --others "$work/documents" --json
holds others-all-taken '(.warnings // []) | all(startswith("--others") | not)'
run check node --sysroot "$work/whole" --others "$work/alien"
ends others-alien 2 'n7.json: a document of check roce'

# --- forms ---
run check node --sysroot "$work/no-gpu" --format markdown
says markdown '| warn | inv.gpu\_count'
run check node --sysroot "$work/no-gpu" --expect hgx-h100 --junit "$work/node.xml" --markdown "$work/node.md"
ends files 1
says files-table 'inv.gpu_count: all GPUs are there'
verdict files-junit "$(grep -q '<failure message="7">' "$work/node.xml" || echo "no failure in node.xml")"
verdict files-markdown "$(grep -qF '**REJECTED**' "$work/node.md" || echo "no verdict in node.md")"
verdict files-junit-is-xml "$(xmllint --noout "$work/node.xml" 2>&1 || ! command -v xmllint >/dev/null || echo "no XML")"

# --- recorded, in a plan ---
if [[ ! -d /sys/devices/system/cpu ]]; then
	echo 'skip node-recorded: /sys is not mounted here: there is no machine to record'
elif "$top/scripts/record" "$work/recorded" >"$work/out" 2>"$work/err"; then
	run check node --sysroot "$work/recorded" --json
	verdict recorded "$([[ $rc = 0 || $rc = 1 ]] || echo "status $rc: $(head -c 300 "$work/err")")"
	holds recorded-clock '.checks[] | select(.id == "cpu.clocksource") | .state != "skip"'
else
	verdict recorded "$(head -c 300 "$work/err")"
fi
cat >"$work/plan.ini" <<-TEXT
	[plan]
	title = the node

	[node]
	command = check node
	sysroot = $work/whole
	expect = $work/machine.ini
TEXT
run run "$work/plan.ini" --output "$work/run"
ends plan 0
exit $bad
