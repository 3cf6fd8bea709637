#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The null benchmark end to end: repeatable samples, bounds, several ranks by threads and by tcp, a rank that dies,
# and what an anonymous document keeps to itself.

set -euo pipefail
# shellcheck source=scripts/tests/lib.sh
. "${0%/*}/lib.sh"

null() { # FILE ARGUMENT...: sets status
	local file=$1
	shift
	status=0
	"$program" null --quiet -o "$file" "$@" >"$work/stdout" 2>"$work/stderr" || status=$?
	if [[ -n ${FABRICBENCH_DOCUMENTS:-} && -r $file ]]; then
		mkdir -p "$FABRICBENCH_DOCUMENTS"
		cp "$file" "$FABRICBENCH_DOCUMENTS/null-${file##*/}"
	fi
}

histograms() { grep -o '"hist":{[^}]*}' "$1"; }

for dist in constant normal lognormal bimodal drift; do
	null "$work/$dist.json" --dist "$dist" -n 2000 --metric both
	why=''
	if [[ $status != 0 ]]; then
		why="status $status: $(head -c 300 "$work/stderr")"
	elif [[ $(grep -c '"metric":"latency"' "$work/$dist.json") != 3 || $(grep -c '"metric":"bandwidth"' "$work/$dist.json") != 3 ]]; then
		why='it has not three points of two metrics'
	elif [[ $dist = drift ]] && ! grep -q '"state":"suspect"' "$work/$dist.json"; then
		why='its drift is not suspect'
	fi
	verdict "dist-$dist" "$why"
done

null "$work/seed1.json" -n 5000 --seed 1
null "$work/seed1-again.json" -n 5000 --seed 1
null "$work/seed2.json" -n 5000 --seed 2
why=''
if [[ $(histograms "$work/seed1.json") != "$(histograms "$work/seed1-again.json")" ]]; then
	why='the same seed gave other samples'
elif [[ $(histograms "$work/seed1.json") = "$(histograms "$work/seed2.json")" ]]; then
	why='another seed gave the same samples'
fi
verdict repeatable "$why"

refused() { # NAME WORD ARGUMENT...: before anything starts, with that word
	local name=$1 word=$2 why=''
	shift 2
	null "$work/$name.json" "$@"
	if [[ $status != 2 ]]; then
		why="status $status: $(head -c 300 "$work/stderr")"
	elif ! grep -qF -- "$word" "$work/stderr"; then
		why="nothing about $word: $(head -c 300 "$work/stderr")"
	fi
	verdict "$name" "$why"
}
refused iters-and-duration '--iters and --duration' -n 5 -D 1s
refused gate-of-nothing '"0" is below' -n 5 --max-p50 0
refused too-long-for-timeout '3 points of 1.00 s each need 3.00 s, and --timeout ends the command after 2.00 s' -D 1s --timeout 2s

# 64 bytes in about 1 us are 0.51 Gb/s.
null "$work/bound.json" --metric rate --points 1 -n 1000 --bound 500Mb/s
why=''
if ! grep -q '"state":"invalid","reasons":\["10[0-9.]* % of the physical bound: given by --bound"\]' "$work/bound.json"; then
	why="$(grep -o '"validity":{[^}]*}' "$work/bound.json")"
fi
verdict over-the-bound "$why"

null "$work/ranks.json" --comm local --ranks 8 -n 500
why=''
if [[ $status != 0 ]]; then
	why="status $status: $(head -c 300 "$work/stderr")"
elif ! grep -q '"rank":7,"p50_ns":' "$work/ranks.json"; then
	why='rank 7 is not in per_rank'
fi
verdict eight-local-ranks "$why"

# A port of the kernel's own choice may be taken again by another; three attempts are plenty.
pick_port() { echo $((20000 + (RANDOM * 32768 + RANDOM) % 30000)); }

tcp_pair() { # FILE ARGUMENT...: both ranks; sets status, peer_status
	local file=$1 port
	shift
	for _ in 1 2 3; do
		port=$(pick_port)
		"$program" null --quiet --comm tcp --ranks 2 --rank 1 --master "127.0.0.1:$port" --connect-timeout 10s "$@" \
			>"$work/peer.out" 2>"$work/peer.err" &
		peer=$!
		if [[ -n ${kill_peer_after:-} ]]; then
			(sleep "$kill_peer_after" && kill -KILL "$peer") &
		fi
		null "$file" --comm tcp --ranks 2 --rank 0 --master "127.0.0.1:$port" --connect-timeout 10s "$@"
		peer_status=0
		wait "$peer" || peer_status=$?
		if ! grep -q 'in use' "$work/stderr"; then break; fi
	done
}

tcp_pair "$work/tcp.json" -n 500 --anonymous
why=''
if [[ $status != 0 || $peer_status != 0 ]]; then
	why="status $status and $peer_status: $(head -c 300 "$work/stderr" "$work/peer.err" | tr '\n' ' ')"
elif grep -q '127\.0\.0\.1' "$work/tcp.json"; then
	why='an address is in the anonymous document'
elif grep -qF "\"name\":\"$(hostname)\"" "$work/tcp.json"; then
	why='the host name is in the anonymous document'
fi
verdict tcp-anonymous "$why"

kill_peer_after=2 tcp_pair "$work/killed.json" -n 20 -w 0 --stall 1:1 --point-timeout 30s
why=''
if [[ $status != 3 ]]; then
	why="status $status, not 3"
elif ! grep -q 'rank 1 on ' "$work/stderr"; then
	why="it does not name the rank: $(head -c 300 "$work/stderr")"
elif ! grep -q '"case":"null/normal/64"' "$work/killed.json" || grep -q '"case":"null/normal/256"' "$work/killed.json"; then
	why='not exactly the finished point is kept'
fi
verdict rank-killed "$why"

tcp_pair "$work/corrupt.json" -n 20 --corrupt 1:1:5
why=''
if [[ $status != 4 || $peer_status != 4 ]]; then
	why="status $status and $peer_status, not 4"
elif ! grep -q 'rank 1, offset 5: expected 0x24, got 0x64' "$work/stderr"; then
	why="it does not locate the byte: $(head -c 300 "$work/stderr")"
fi
verdict corrupt-on-another-rank "$why"

exit "$bad"
