#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `verbs loss-sweep` from outside, in one boot of the lab, short: two guests, two turns at three rates. Packets sent per
# needed rise, W is about what Soft-RoCE keeps in flight, and the rate that was not fitted is predicted within 40 %: short
# points on a busy machine see a few dozen losses, and stall a clean link too. scripts/lab/loss-sweep is the experiment in
# full, where 25 % holds. Loss in either direction is made and taken away, by netem and by a command, also when the sweep
# is killed, and refused where it cannot be. Prints "ok NAME", "not ok NAME: why" or "skip ID: reason". The same file runs
# in the guests: --server in guest 0, --client in guest 1.

# shellcheck source=scripts/lab/tests.sh
source "$(dirname "$0")/../lab/tests.sh"
case_limit=240
port=18515 strict_port=18516 # the second lets nobody make loss

# ---- guest 0 ---------------------------------------------------------------------------------------------------------
server() {
	local serve strict
	modprobe sch_netem
	"$fb" verbs serve -p $port --allow-netem eth0 2>"$LAB_OUT/serve.err" &
	serve=$!
	"$fb" verbs serve -p $strict_port 2>"$LAB_OUT/strict.err" &
	strict=$!
	lab_serve_until_told serve=$serve strict=$strict
	while true; do
		tc -j qdisc show dev eth0 root >"$LAB_OUT/qdisc.now" 2>/dev/null
		if [[ -s $LAB_OUT/qdisc.now ]]; then jq -r '.[0].kind' "$LAB_OUT/qdisc.now" >>"$LAB_OUT/qdiscs"; fi
		sleep 0.2
	done
}

# ---- guest 1 ---------------------------------------------------------------------------------------------------------
sweep() { # NAME OPTION...
	local name=$1
	shift
	run_case "$name" "$fb" verbs loss-sweep -p $port -o "$LAB_OUT/$name.json" "$@" "$LAB_PEER"
	tc -j qdisc show dev eth0 root | jq -r '.[0].kind' >"$LAB_OUT/$name.qdisc"
}
short=(--turns 1 -D 500ms --probes 20 --quiet)

client() {
	local pid i
	modprobe sch_netem
	lab_wait_for "$LAB_PEER" $strict_port
	sweep sweep --netem eth0 --turns 2 --rates 0.5,1,2 --fit-rates 0.5,2 -D 2s --probes 50
	sweep to-client "${short[@]}" --rates 5 --netem eth0 --direction to-client --op send
	printf '#!/bin/sh\nset -e\necho "$1" >>"$LAB_OUT/told"\ntc qdisc replace dev eth0 root netem loss "$1%%"\n' >/run/lose
	chmod +x /run/lose
	sweep command "${short[@]}" --rates 5 --loss-command /run/lose
	tc qdisc del dev eth0 root
	sweep given "${short[@]}" --given --rates 0
	run_case two-links "$fb" verbs loss-sweep -o "$LAB_OUT/two-links.json" "${short[@]}" --given --rates 0,20 "$LAB_PEER:$port,$LAB_PEER:$strict_port"
	sweep not-allowed "${short[@]}" --netem eth0 --direction to-client -p $strict_port
	sweep no-device "${short[@]}" --netem nosuch0
	sweep no-way "${short[@]}"
	tc qdisc add dev eth0 root pfifo limit 1000
	sweep configured "${short[@]}" --netem eth0
	tc qdisc del dev eth0 root
	run_case no-root setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps -all \
		"$fb" verbs loss-sweep --netem eth0 "$LAB_PEER"
	# Stopped, and killed without a word: the loss goes all the same.
	for i in TERM KILL; do
		"$fb" verbs loss-sweep -p $port --netem eth0 --rates 5 --turns 9 --quiet -o "$LAB_OUT/stopped-$i.json" "$LAB_PEER" \
			2>"$LAB_OUT/stopped-$i.err" &
		pid=$!
		until tc qdisc show dev eth0 | grep -q 'loss 5%'; do sleep 0.1; done
		kill -$i $pid
		wait $pid
		echo "$? 0" >"$LAB_OUT/stopped-$i.rc"
		for ((pid = 0; pid < 100; pid++)); do
			if ! tc qdisc show dev eth0 | grep -q netem; then break; fi
			sleep 0.1
		done
		tc -j qdisc show dev eth0 root | jq -r '.[0].kind' >"$LAB_OUT/stopped-$i.qdisc"
	done
	sweep again "${short[@]}" --rates 5 --netem eth0
}
lab_guest "$@"

# ---- host ------------------------------------------------------------------------------------------------------------
lab_boot verbs-loss-sweep-lab 1 --guests 2 --timeout 500 -- "$self" --server -- "$self" --client

clean() { # NAME: no netem is left
	local kind why=''
	kind=$(cat "$cases/$1.qdisc" 2>/dev/null)
	if [[ -z $kind || $kind == netem ]]; then why="afterwards eth0 has ${kind:-nothing that was read}"; fi
	verdict "$1-clean" "$why"
}

of() { printf '[.results[] | select(.metric == "%s")]' "$1"; }
point='def point(r): .loss[0].points[] | select(.rate == r);'
whole='.run.outcome == "complete" and ([.results[] | .where == "lab" and (.value != null or .value_reason != null)] | all)'
measured sweep "$point $whole and ($(of goodput) | length == 8 and all(.counters.after | has(\"sender\") and has(\"receiver\")))
	and ([$(of goodput)[].params | [.turn, .loss]] | length == (unique | length))
	and ($(of packets_per_packet) | length == 8 and all(.value >= 0.999))
	and ($(of latency) | length == 8 and all(.hist.n == 50))
	and (point(0).naks == 0) and (point(2).naks > 0) and (point(2).packets_per_packet > point(0).packets_per_packet + 0.5)
	and (.loss[0].model | .signal == \"packets\" and .direction == \"to-server\" and .W_alone > 30 and .W_alone < 200 and .W >= 0 and .R >= 0
		and (.residuals | map(.rate) == [0.5, 2]) and (.predicted | map(.rate) == [1])
		and (.predicted[0] | (.error | fabs) <= 0.4 and has(\"error_alone\")))" '.loss[0]'
jq -c '.loss[0] | [.points[] | [.rate, .goodput, .packets_per_packet]], .model' "$cases/sweep.json" >&2
if ! grep -q 'packets resent per loss' "$cases/sweep.out"; then why='the table tells no model'; else why=''; fi
verdict table "$why"
clean sweep
measured to-client "$whole and (.loss[0].model.direction == \"to-client\") and ($(of goodput) | map(.params.loss) == [0, 5] or map(.params.loss) == [5, 0])
	and ($(of goodput) | all(.params.op == \"send\" and .value > 0)) and ([.loss[0].points[] | select(.rate == 5) | .packets_per_packet > 1.5] | all)" '.loss[0]'
why=''
if ! grep -q netem "$work/guest0/qdiscs"; then why='the server never had netem'; fi
if [[ $(tail -n 1 "$work/guest0/qdiscs") == netem ]]; then why='the server still has netem'; fi
verdict to-client-server "$why"
clean to-client
measured command "$whole and (.loss[0].made_by == \"command\")"
why=''
if [[ $(tr '\n' ' ' <"$cases/told") != '0 '*' 5 '*'0 ' ]]; then why="the command was told $(tr '\n' ' ' <"$cases/told")"; fi
verdict command-told "$why"
measured given "$whole and (.loss[0].made_by == \"given\") and (.loss[0].model | .W == null and (.W_reason | length > 0))" '.loss[0]'
# The second link does not lose what it is said to: that is told.
measured two-links "$whole and (.peers | length == 2) and ($(of goodput) | map(.params.loss) | sort == [0, 20])
	and ([.results[] | select(.validity.reasons | tostring | test(\"saw no gap\")) | [.metric, .params.loss]] == [[\"goodput\", 20]])" \
	'[.results[] | [.metric, .params.loss, .validity]]'
refused not-allowed 3 60 'does not let clients make loss' --allow-netem
refused no-device 2 20 nosuch0
refused no-way 2 5 'how packets get lost' --given
refused configured 2 20 pfifo
refused no-root 77 20 CAP_NET_ADMIN
for i in TERM KILL; do clean "stopped-$i"; done
why=''
if [[ $(status_of stopped-TERM) != '3 0' ]]; then why="status $(status_of stopped-TERM)"; fi
if ! jq -e '.run.outcome == "interrupted"' "$cases/stopped-TERM.json" >/dev/null 2>&1; then why+=' no document that was interrupted'; fi
verdict stopped "$why"
measured again "$whole"
clean again
server_ends 0
server_ends 0 strict
exit "$bad"
