#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The command `verbs pairs` from outside, on simulated fleets: what is put in is found and nothing else is, each
# verdict has its status, every host adds up, and a large document stays small and is read. Prints "ok NAME" or
# "not ok NAME: why".

set -uo pipefail
# shellcheck source=scripts/tests/lib.sh
. "${0%/*}/lib.sh" pairs

expect pairs-fine 0 '^ACCEPTED: 64 hosts: 64 measured, 0 failed, 0 unreachable, 0 not run' \
	"$program" verbs pairs --simulate hosts=64,noise=0.03,seed=1 -o "$work/fine.json"
expect pairs-slow-node 1 'n00007, rail 0: slow' \
	"$program" verbs pairs --simulate hosts=64,noise=0.03,slow-node=7:0.85,seed=1 -o "$work/slow.json"
expect pairs-slow-link 1 'link n00003 - n00009, rail 0: slow' \
	"$program" verbs pairs --full --simulate hosts=64,noise=0.03,slow-link=3-9:0.7,seed=1 -o "$work/link.json"
expect pairs-broken-link 1 'link n00003 - n00009, rail 0: failed' \
	"$program" verbs pairs --full --simulate hosts=32,broken-link=3-9,seed=1 -o "$work/broken-link-kept.json"
expect pairs-absent 3 '^INCOMPLETE: 16 hosts: 15 measured, 0 failed, 1 unreachable, 0 not run' \
	"$program" verbs pairs --simulate hosts=16,absent=5,seed=1 -o "$work/absent.json"
expect pairs-latency 1 'n00007, rail 1: slow' \
	"$program" verbs pairs --metric latency --simulate hosts=64,rails=2,slow-node=7:0.8,seed=1 -o "$work/latency.json"
expect pairs-two 3 'too few pairs to compare' "$program" verbs pairs --simulate hosts=2,seed=1 -o "$work/two.json"
expect pairs-odd 0 '^ACCEPTED: 9 hosts: 9 measured' "$program" verbs pairs --full --simulate hosts=9,noise=0.01,seed=1
expect pairs-bad-spec 2 'cannot read "slow-node=x:1"' "$program" verbs pairs --simulate hosts=8,slow-node=x:1
expect pairs-alone 2 'at least two hosts' env -u RANK -u WORLD_SIZE "$program" verbs pairs
printf 'a r1\nb r2\na r3\n' >"$work/twice"
expect pairs-twice 2 'a stands there twice' "$program" verbs pairs --expect-hosts "$work/twice"
printf 'a r1 x\n' >"$work/words"
expect pairs-words 2 'not a host and its rack' "$program" verbs pairs --expect-hosts "$work/words"
# Of two that contradict each other one would be ignored.
expect pairs-full-rounds 2 '--rounds and --full contradict' "$program" verbs pairs --full --rounds 2 --simulate hosts=8
expect pairs-latency-both 2 '--bidirectional and --metric latency' "$program" verbs pairs --metric latency -b --simulate hosts=8
expect pairs-latency-depth 2 '--depth and --metric latency' "$program" verbs pairs --metric latency -t 4 --simulate hosts=8
expect pairs-simulate-hosts 2 '--expect-hosts and --simulate' "$program" verbs pairs --expect-hosts "$work/twice" --simulate hosts=8
expect pairs-long 2 'does not end within --pair-timeout 20 s' "$program" verbs pairs -D 20s --simulate hosts=8
expect pairs-floor 2 '^fabricbench: error: --floor 1.5: a share' "$program" verbs pairs --floor 1.5 --simulate hosts=8
expect pairs-iters-duration 2 '--iters and --duration' "$program" verbs pairs -n 5 -D 1s --simulate hosts=8
expect pairs-dry-run 0 '10000 hosts, 1 rail: 3 rounds, 3 steps, 15000 pairs' \
	"$program" verbs pairs --dry-run --simulate hosts=10000
expect pairs-schedule 0 '9999 rounds, 9999 steps, 49995000 pairs' \
	"$program" verbs pairs --dry-run --full --simulate hosts=10000

# 200 fleets of 64, the bad parts anywhere: none missed, false alarms in under 1 %.
expect pairs-seeds 0 'missed_nodes 0 .* missed_links 0 ' \
	"$program" verbs pairs --simulate hosts=64,noise=0.03,slow-node=any:0.85,slow-link=any:0.7,seed=1,seeds=200
grep '^simulated:' "$work/out" | sed 's/^/# /'
expect pairs-seeds-full 0 'missed_nodes 0 .* missed_links 0 ' \
	"$program" verbs pairs --full --simulate hosts=64,noise=0.03,slow-node=any:0.85,slow-link=any:0.7,seed=1,seeds=200
grep '^simulated:' "$work/out" | sed 's/^/# /'

# 1,024 ranks and 125 rounds: under 20 MB, and read.
expect pairs-large 0 '^ACCEPTED: 1024 hosts: 1024 measured' "$program" verbs pairs --rounds 125 --simulate hosts=1024,racks=32,noise=0.02,seed=1 \
	-o "$work/large.json"
size=$(stat -c %s "$work/large.json" 2>/dev/null || echo 0)
verdict pairs-large-size "$( ((size > 1000000 && size < 20000000)) || echo "$size bytes")"
began=$(date +%s%N)
expect pairs-large-report 0 'large.html' "$program" report "$work/large.json" -o "$work/large.html"
echo "# $size bytes, reported in $((($(date +%s%N) - began) / 1000000)) ms"
if grep -q '<h2>Pairs</h2>' "$work/large.html" && [[ -s $work/large.plots/pairs-1.dat && -s $work/large.plots/pairs-1.gp ]]; then
	verdict pairs-large-map ''
else
	verdict pairs-large-map "no section Pairs, or no map"
fi
exit "$bad"
