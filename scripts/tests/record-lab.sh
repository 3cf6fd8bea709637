#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# scripts/record in a guest of the lab, which has a real RDMA device: what is recorded reads back as the guest itself
# does, by topo and by the checks, and names neither its addresses nor the guest. Prints "ok NAME", "not ok NAME: why"
# or "skip ID: reason". The same file is what runs in the guest, with --guest.

# shellcheck source=scripts/lab/tests.sh
source "$(dirname "$0")/../lab/tests.sh"

# ---- in the guest ----------------------------------------------------------------------------------------------------
# shellcheck disable=SC2317 # lab_guest calls it
guest() {
	cd "$top" || exit 3
	cat /sys/class/net/eth0/address >"$LAB_OUT/mac"
	export FABRICBENCH=$fb
	# The share with the host is slow with many files: only the archives go there.
	local node=/tmp/recorded/node
	mkdir /tmp/recorded
	run_case record scripts/record --tar "$LAB_OUT/node.tar.gz" $node
	run_case again scripts/record $node
	run_case names scripts/record --with-names --tar "$LAB_OUT/named.tar.gz" /tmp/recorded/named
	run_case topo-live "$fb" topo
	run_case topo-tree "$fb" topo --sysroot $node
	run_case check-live "$fb" check roce --json
	run_case check-tree "$fb" check roce --json --sysroot $node
}
lab_guest "$@"

# ---- on the host -----------------------------------------------------------------------------------------------------
lab_boot record 0 --guests 1 --timeout 300 -- "$self" --guest

mkdir "$work/unpacked"
for each in node named; do tar -C "$work/unpacked" -xzf "$cases/$each.tar.gz" || verdict "$each-unpacks" "no archive"; done

rc_of() { cut -d' ' -f1 "$cases/$1.rc" 2>/dev/null; }
# What a check says, but for when it was read and from where.
findings() { jq -c '[.checks[] | {id, subject, state}]' "$cases/$1.out" 2>/dev/null; }

why=
[[ $(rc_of record) == 0 ]] || why="status $(rc_of record): $(tail -n 2 "$cases/record.err")"
verdict ends "$why"

why=
[[ $(rc_of again) == 2 ]] || why="recorded into a folder that was not empty: status $(rc_of again)"
verdict refuses-a-full-folder "$why"

why=
cmp -s "$cases/topo-live.out" "$cases/topo-tree.out" || why=$(diff "$cases/topo-live.out" "$cases/topo-tree.out" | head -n 3 | tr '\n' ' ')
verdict topo-reads-it-as-the-node "$why"

why=
live=$(findings check-live) tree=$(findings check-tree)
[[ -n $live && $live != '[]' ]] || why="the guest was not judged: $(tail -n 2 "$cases/check-live.err")"
[[ -n $why || $live == "$tree" ]] || why=$(diff <(jq -c '.[]' <<<"$live") <(jq -c '.[]' <<<"$tree") | head -n 4 | tr '\n' ' ')
verdict check-reads-it-as-the-node "$why"

why=
mac=$(cat "$cases/mac")
if found=$(grep -rlF -e "$mac" -e "${mac//:/}" -e 10.77.0.1 -e guest0 -e 0a4d:0001 "$work/unpacked/node"); then why="identities in $found"; fi
verdict names-nobody "$why"

why=
grep -rqF "$mac" "$work/unpacked/named" || why="--with-names left the hardware address out"
verdict with-names "$why"
exit "$bad"
