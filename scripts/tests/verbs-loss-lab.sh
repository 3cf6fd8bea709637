#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What loss does to a measurement, in one boot of the lab. The sender's netem drops 0, 0.1, 1 and 5 % of its packets:
# goodput falls, the classes of counters rise and the validity says so, nothing hangs, and the server serves on.
# Prints "ok NAME", "not ok NAME: why" or "skip ID: reason".
# The same file is what runs in the guests: --server in guest 0, --client in guest 1.

set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
self=$here/$(basename "$0")
top=$(cd "$here/../.." && pwd)
fb=${FABRICBENCH:-$top/build/fabricbench}
port=18515
losses=(0 0.1 1 5)

# ---- guest 0 ---------------------------------------------------------------------------------------------------------
server() {
	local serve
	"$fb" verbs serve -p $port 2>"$LAB_OUT/serve.err" &
	serve=$!
	# shellcheck disable=SC2064 # the id is that of now
	trap "kill $serve; wait $serve; echo \$? >$LAB_OUT/serve.rc; exit 0" TERM
	while true; do sleep 0.2; done
}

# ---- guest 1 ---------------------------------------------------------------------------------------------------------
run_case() { # NAME COMMAND...: status, messages and seconds of one case
	local name=$1 began=$SECONDS status=0
	shift
	timeout -k 5 90 "$@" >"$LAB_OUT/$name.out" 2>"$LAB_OUT/$name.err" </dev/null || status=$?
	echo "$status $((SECONDS - began))" >"$LAB_OUT/$name.rc"
}

bandwidth() { # NAME OPTION...
	local name=$1
	shift
	run_case "$name" "$fb" verbs bandwidth --op send -s 64K -t 8 --qp-timeout 16 --retry 6 --quiet -o "$LAB_OUT/$name.json" "$@" "$LAB_PEER"
}

client() {
	local i loss
	modprobe sch_netem
	for ((i = 0; i < 100; i++)); do # guest 0 may boot later
		if (exec 3<>"/dev/tcp/$LAB_PEER/$port") 2>/dev/null; then break; fi
		sleep 0.2
	done
	bandwidth before -n 50
	for loss in "${losses[@]}"; do
		tc qdisc replace dev eth0 root netem loss "$loss%"
		bandwidth "loss-$loss" -D 4s
	done
	tc qdisc del dev eth0 root
	bandwidth after -n 50
}

case ${1:-} in
--server)
	server
	exit
	;;
--client)
	client
	exit
	;;
esac

# ---- host ------------------------------------------------------------------------------------------------------------
if ! reason=$("$top/scripts/lab/lab" --check 2>&1); then
	echo "skip lab: $reason"
	exit 0
fi
work=$(mktemp -d)
trap '"$top/scripts/keep-documents" "$work" verbs-loss-lab; rm -rf "$work"' EXIT
status=0
"$top/scripts/lab/lab" --guests 2 --timeout 400 --out "$work" --quiet --env FABRICBENCH="$(readlink -f "$fb")" \
	-- "$self" --server -- "$self" --client >"$work/lab.log" 2>&1 || status=$?
a=$work/guest0 b=$work/guest1
bad=0
[[ -z ${KEEP:-} ]] || cp -r "$work" "$KEEP"

verdict() { # NAME WHY: an empty WHY is fine
	if [[ -z $2 ]]; then
		echo "ok verbs-loss-lab-$1"
	else
		echo "not ok verbs-loss-lab-$1: $2"
		bad=1
	fi
}

if [[ $status != 0 ]]; then
	verdict boot "the lab ended with status $status: $(tail -n 3 "$work/lab.log" | tr '\n' ' ')"
	exit 1
fi

said() { tr '\n' ' ' <"$b/$1.err" 2>/dev/null | cut -c1-400; }

measured() { # NAME FILTER
	local name=$1 got=''
	read -r got _ <"$b/$name.rc" 2>/dev/null
	if [[ $got != 0 ]]; then
		verdict "$name" "status ${got:-none}: $(said "$name")"
	elif ! jq -e ".run.outcome == \"complete\" and (.results[] | select(.metric == \"bandwidth\") | .value > 0 and $2)" "$b/$name.json" >/dev/null 2>&1; then
		verdict "$name" "the document does not hold: $2: $(jq -c '.results[0] | [.value, .counters.classes, .validity]' "$b/$name.json" 2>&1 | cut -c1-400)"
	else
		verdict "$name" ''
	fi
}

# Unknown is null and never 0: Soft-RoCE counts neither ECN nor CNP nor ICRC errors.
unknown='([.counters.classes | .ecn, .cnp_sent, .cnp_handled, .icrc] | all(. == null)) and (.counters.classes_note | startswith("not available"))'
quiet='.counters.classes.loss_seen == 0 and .counters.classes.nak == 0 and .counters.classes.retry_exhausted == 0'
counted='.counters.classes.loss_seen > 0 and .counters.classes.nak > 0 and .counters.classes.retry_exhausted == 0
	and .validity.state == "suspect" and ([.validity.reasons[] | select(test("counted during the point"))] | length > 0)'
measured before "$quiet and $unknown"
measured loss-0 "$quiet and $unknown"
for loss in 0.1 1 5; do measured "loss-$loss" "$counted and $unknown"; done

goodput() { jq '[.results[] | select(.metric == "bandwidth") | .value][0]' "$b/loss-$1.json" 2>/dev/null || echo 0; }
seen() { jq '[.results[] | select(.metric == "bandwidth") | .counters.classes.loss_seen][0] // 0' "$b/loss-$1.json" 2>/dev/null || echo 0; }
figures=''
for loss in "${losses[@]}"; do figures+="$loss %: $(goodput "$loss" | cut -d. -f1) B/s, $(seen "$loss") gaps; "; done
# Only what no noise of a shared machine can hide: 5 % costs go-back-N far more than a third.
why=''
if ! jq -ne --argjson a "$(goodput 0)" --argjson d "$(goodput 5)" '$a > $d * 1.5' >/dev/null; then
	why="$figures"
fi
echo "# $figures" >&2
verdict goodput-falls "$why"

measured after 'true'
why=''
if [[ $(cat "$a/serve.rc" 2>/dev/null) != 0 ]]; then why="the server ended with $(cat "$a/serve.rc" 2>/dev/null)"; fi
verdict server-ends "$why"
exit $bad
