#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The commands under `verbs` from outside, without a device: each option that cannot be had, and each two that contradict
# each other, end with status 2 and with their names before anything is opened or reached. Prints "ok NAME" or
# "not ok NAME: why".

set -uo pipefail
# shellcheck source=scripts/tests/lib.sh
source "$(dirname "$0")/lib.sh"
prefix=(verbs)

refused() { # NAME WORD COMMAND...
	local name=verbs-options-$1 word=$2
	run "${@:3}"
	if ((rc != 2)); then
		ends "$name" 2
	else
		says "$name" "$word"
	fi
}

refused nobody 'no server named' latency
refused both-ends 'leave one of them out' latency --loopback h
refused two-servers 'every place for a bare argument is taken' latency h i
refused command 'did you mean "verbs incast"?' incasts h
refused option 'did you mean --size?' latency h --sizes 4
refused op 'did you mean --op write?' latency h --op wrte
refused size 'unknown suffix "Q"' latency h -s 12Q
refused mtu 'did you mean 1024?' latency h -m 1500
refused dc '--transport dc is left out' latency h --transport dc
refused srd '--transport srd is left out' bandwidth h --transport srd
refused all-size '--size and --all' latency h -a -s 64
refused all-max '--all and --max-size' bandwidth h -a --max-size 1M
refused count-time '--iters and --duration' bandwidth h -n 5 -D 1s
refused gid-twice '--gid and --gid-index' latency h --gid 10.0.0.1 -x 3
refused pkey-twice '--pkey and --pkey-index' latency h --pkey 0x8001 --pkey-index 1
refused cm-ud '--rdma-cm connects reliable connections' latency h -R --transport ud
refused ud-size 'does not fit into one packet' latency h --transport ud -s 8K
refused write-events 'no event to wait for' latency h --op write -e
refused read-inline 'a read sends no data' latency h --op read -I 64
refused rate-events '--rate follows the clock' bandwidth h --rate 1Gb/s -e
refused moderation '--cq-mod 16 is above --depth 8' bandwidth h -t 8 -Q 16
refused list '--post-list 16 is above --depth 8' bandwidth h -t 8 -l 16
refused receives '--rx-depth 8 is below --depth 16' bandwidth h -t 16 -r 8
refused pace '--iters 100 at --interval last 100 s' latency h -n 100 --interval 1s
refused pace-one '--interval 120 s is longer than --point-timeout' latency h --interval 2m
refused pace-day '--interval is longer than a day' latency h --interval 100h
refused rate-most '--rate is above 100 Tb/s' bandwidth h --rate 99999999999999999Tb/s
refused window-most '--window is longer than a day' bandwidth h --window 100h
refused load-pace '--iters 1000 at --interval last 1000 s' load h -n 1000 --interval 1s
refused load-op 'a probe is a send, a write or a read' load h --op fetch-add
refused load-rails 'one device here' load h -d all
refused load-gpu '--memory gpu' load h --memory gpu
refused no-sender 'no sender named' incast
refused sender-twice 'named twice' incast --senders a,a
refused victim-sends 'as a sender and as the victim' incast --senders a --victim a
refused victim-none '--victim-size is the victim' incast --senders a --victim-size 8
refused victim-no-class '--victim-traffic-class is the victim' incast --senders a --victim-traffic-class 0
refused victim-no-pace '--interval is the victim' incast --senders a --interval 1ms
refused pairs-atomic '--op fetch-add has no bandwidth' pairs --op fetch-add --simulate hosts=8
refused fit-unmeasured '--fit-rates 3: not among --rates' loss-sweep h --given --rates 1 --fit-rates 3
refused fit-nothing '--fit-rates 0: the model' loss-sweep h --given --rates 0,1 --fit-rates 0
refused incast-rails 'one device here' incast --senders a -d x,y
refused incast-gpu '--memory gpu' incast --senders a --memory gpu
refused incast-long '3 steps of 1500 s each need 4500 s' incast --senders a,b --victim c --ramp -D 25m
refused serve-device 'mlx5_9' serve -p 0 -d mlx5_9
refused serve-address '--bind wants an address of this machine' serve -p 0 --bind 192.0.2.1
exit "$bad"
