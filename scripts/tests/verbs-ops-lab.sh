#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Every operation over every transport that Soft-RoCE has, in one boot of the lab: latency by polling and by events,
# bandwidth in one direction and in both, over real packets. Payloads, immediates and the final value of atomics are
# verified by the program itself (exit 4 where they are wrong), the counts by this script. What cannot go is refused by
# name. Loss on unacknowledged transports ends in a figure with its losses told, or in an error, and never in a hang.
# Prints "ok NAME", "not ok NAME: why" or "skip ID: reason". The same file runs in the guests: --server and --client.

# shellcheck source=scripts/lab/tests.sh
source "$(dirname "$0")/../lab/tests.sh"
port=18515
case_limit=150

# name, what is measured, transport, operations, options
list_cases() {
	cat <<-'EOF'
		rc-poll latency rc send,send-imm,write,write-imm,read,fetch-add,cmp-swap -s 4096
		rc-events latency rc send,send-imm,write-imm,read,fetch-add,cmp-swap -s 64 -e
		uc-poll latency uc send,send-imm,write,write-imm -s 8192
		uc-events latency uc send,send-imm,write-imm -s 64 -e
		ud-poll latency ud send,send-imm -s 4096
		ud-events latency ud send,send-imm -s 64 -e
		rc-bw bandwidth rc send,send-imm,write,write-imm,read,fetch-add,cmp-swap -s 4096 -q 3 -l 2 -t 16
		rc-both bandwidth rc write-imm,fetch-add,cmp-swap -s 4096 -b -t 16
		rc-bw-events bandwidth rc send-imm,write-imm,cmp-swap -s 4096 -e -t 16
		uc-bw bandwidth uc send,send-imm,write,write-imm -s 8192 -q 2 -t 16
		uc-bw-events bandwidth uc send-imm,write-imm -s 4096 -e -t 16
		ud-bw bandwidth ud send,send-imm -s 4096 -q 2 -t 16
		ud-both bandwidth ud send-imm -s 1024 -b -t 16
		ud-bw-events bandwidth ud send -s 4096 -e -t 16
	EOF
}

# ---- guests ----------------------------------------------------------------------------------------------------------
measure() { # NAME BENCH TRANSPORT OPS OPTION...
	local name=$1 bench=$2 transport=$3 ops=$4
	shift 4
	run_case "$name" "$fb" verbs "$bench" -p $port --transport "$transport" --op "$ops" "$@" -n 48 -w 8 --quiet \
		-o "$LAB_OUT/$name.json" "$LAB_PEER"
}

lossy() { # UC and UD while one packet in five is lost on the way there
	if ! tc qdisc add dev eth0 root netem loss 20% 2>"$LAB_OUT/netem.err"; then return; fi
	measure lossy-latency latency ud send -s 64 -n 24 -w 1
	measure lossy-uc latency uc write-imm -s 64 -n 24 -w 1
	measure lossy-bw bandwidth ud send -s 1024 -n 200 -w 8 -t 16
	tc qdisc del dev eth0 root
	: >"$LAB_OUT/netem"
}

server() {
	exec "$fb" verbs serve -p $port 2>"$LAB_OUT/serve.err"
}

client() {
	local line
	lab_wait_for "$LAB_PEER" $port
	while read -r -a line; do
		measure "${line[@]}"
	done < <(list_cases)
	measure xrc latency xrc send -s 64
	measure ud-mtu latency ud send -s 4096 -m 2048
	measure ud-write latency ud write -s 64
	measure uc-read bandwidth uc read -s 64
	measure uc-atomic latency uc fetch-add
	measure dc latency dc send
	measure srd latency srd send
	measure atomic-size latency rc cmp-swap -s 16
	measure ud-inline latency ud send -s 64 -I 60000
	lossy
}

lab_guest "$@"

# ---- host ------------------------------------------------------------------------------------------------------------
lab_boot verbs-ops 1 --guests 2 --timeout 900 -- "$self" --server -- "$self" --client

# One result for each operation and metric, every one with its samples and none of it invalid.
verified() { # NAME BENCH TRANSPORT OPS
	local name=$1 bench=$2 transport=$3 ops=$4 got=''
	read -r got _ <"$cases/$name.rc" 2>/dev/null
	if [[ $got != 0 ]]; then
		verdict "$name" "status ${got:-none}: $(said "$name")"
		return
	fi
	# shellcheck disable=SC2016
	if ! jq -e --arg ops "$ops" --arg transport "$transport" --arg bench "$bench" '
		($ops | split(",")) as $want
		| .run.outcome == "complete"
		and ([.results[].params.op] | unique == ($want | sort))
		and ([.results[] | .params.transport == $transport and .n > 0 and .value > 0
			and .validity.state != "invalid" and (.case | startswith("verbs." + $bench))] | all)
		and ([.results[] | select(.params.op == "fetch-add" or .params.op == "cmp-swap")
			| .params.size == 8 and (.metric == "latency" or .metric == "message_rate")] | all)
		and ([.results[] | select(.metric == "latency") | .hist.n == .n] | all)' "$cases/$name.json" >/dev/null 2>&1; then
		verdict "$name" "the document does not hold $ops over $transport"
	else
		verdict "$name" ''
	fi
}

while read -r -a line; do
	verified "${line[@]:0:4}"
done < <(list_cases)
refused xrc 77 10 'IBV_DEVICE_XRC'
refused ud-mtu 2 10 'the path MTU is 2048 bytes'
refused ud-write 2 10 'the transport ud has no write operation'
refused uc-read 2 10 'the transport uc has no read operation'
refused uc-atomic 2 10 'the transport uc has no fetch-add operation'
refused dc 2 10 "left out: one vendor's own"
refused srd 2 10 "left out: one vendor's own"
refused atomic-size 2 10 'works on 8 bytes'
refused ud-inline 2 10 'takes at most 512 bytes inline'

# With loss: a figure that tells its losses, or an error that does; in time in both cases.
told() { # NAME
	local name=$1 got='' took=0
	read -r got took <"$cases/$name.rc" 2>/dev/null
	if [[ $got == 0 ]] && jq -e '[.results[] | .validity.state == "suspect" and (.validity.reasons | map(test("messages lost")) | any)]
		| length > 0 and all' "$cases/$name.json" >/dev/null 2>&1; then
		verdict "$name" ''
	else
		verdict "$name" "status ${got:-none} after $took s, losses not told: $(said "$name")"
	fi
}
if [[ -e $cases/netem ]]; then
	told lossy-latency
	told lossy-uc
	told lossy-bw
else
	echo "skip verbs-ops-lossy: no netem in this guest: $(head -c 200 "$cases/netem.err")"
fi
exit "$bad"
