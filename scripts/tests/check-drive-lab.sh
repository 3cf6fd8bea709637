#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check --drive and check --rendezvous in the lab: three guests, real packets over Soft-RoCE. Guests 0 and 1 write to
# guest 2 at once, with a victim beside them; the marking is seen on the wire, and seen to be wrong where something on
# the way rewrites it; a host that is not there and one that dies in mid-load are errors of their own; a path that is too narrow is
# named. Then all three compare themselves, whole, with one that differs, and with one that never comes.
# Prints "ok NAME", "not ok NAME: why" or "skip ID: reason". The same file runs in the guests: --server in 0 and 1,
# --client in 2; --heed is what a server does for each word of the client.

# shellcheck source=scripts/lab/tests.sh
source "$(dirname "$0")/../lab/tests.sh"

main_port=18515 victim_port=18516 doomed_port=18517 word_port=18600
case_limit=120
a_host=10.77.0.1 b_host=10.77.0.2
load=(-s 8K -t 8 -D 1s --interval 20ms --traffic-class 104 --connect-timeout 5s)

# ---- guests 0 and 1 --------------------------------------------------------------------------------------------------
# Rank 0 says how long is waited for the others; whose clock runs fast must not give up before it.
meet() { # PORT RANK
	local patience=60s
	[[ $2 != 0 ]] || patience=12s
	run_case "meet-$1" "$fb" check roce --rendezvous --ranks 3 --master $a_host -p "$1" --rank "$2" \
		--connect-timeout $patience -o "$LAB_OUT/meet-$1.json" --quiet
}

# Guest 0 bridges the others: p1 is its link to guest 1. In a packet on its way out of guest 1 the DSCP is cleared.
heed() {
	local word port
	read -r -t 60 word port || return
	case $word in
	narrow) ip link set p1 mtu 1500 ;;
	wide) ip link set p1 mtu 4200 ;;
	rewrite)
		tc qdisc add dev eth0 clsact &&
			tc filter add dev eth0 egress protocol ip u32 match ip dport 4791 0xffff \
				action pedit ex munge ip dsfield set 0x0 retain 0xfc pipe action csum ip
		;;
	right) tc qdisc del dev eth0 clsact ;;
	small) ip link set eth0 mtu 1500 ;;
	large) ip link set eth0 mtu 4200 ;;
	over) for _ in {1..150}; do [[ ! -s $LAB_OUT/meet-$port.rc ]] || break; sleep 0.2; done ;;
	meet) (meet "$port" "$FABRICBENCH_LAB_INDEX") >/dev/null 2>&1 </dev/null & ;;
	esac 2>>"$LAB_OUT/heed.err"
	echo "heard $?"
}

server() {
	local main victim doomed words deadline=$((SECONDS + 600))
	"$fb" verbs serve -p $main_port 2>"$LAB_OUT/serve.err" &
	main=$!
	"$fb" verbs serve -p $victim_port 2>"$LAB_OUT/victim.err" &
	victim=$!
	"$fb" verbs serve -p $doomed_port 2>"$LAB_OUT/doomed.err" &
	doomed=$!
	/lab/busybox nc -ll -p $word_port -e "$self" --heed 2>>"$LAB_OUT/heed.err" &
	words=$!
	# shellcheck disable=SC2064 # the ids are those of now
	trap "kill $main $victim $words 2>/dev/null; exit 0" TERM
	while ((SECONDS < deadline)); do
		if [[ -n $doomed ]] && grep -q ' came' "$LAB_OUT/doomed.err"; then
			sleep 5
			kill -KILL "$doomed"
			doomed=''
		fi
		sleep 0.2
	done
}

# ---- guest 2 ---------------------------------------------------------------------------------------------------------
# A word to a server; it has obeyed when this returns.
word() { # HOST WORD...
	local answer=nothing fd
	exec {fd}<>"/dev/tcp/$1/$word_port" || return
	shift
	echo "$*" >&"$fd"
	read -r -t 60 -u "$fd" answer
	exec {fd}>&-
	echo "$*: $answer" >>"$LAB_OUT/words"
}

client() {
	local host
	for host in $a_host $b_host; do
		lab_wait_for $host $main_port
		lab_wait_for $host $word_port
	done
	run_case drive "$fb" check roce --drive $a_host,$b_host --victim $a_host:$victim_port "${load[@]}" \
		--require R27,R28 -o "$LAB_OUT/drive.json" --quiet
	word $b_host rewrite
	run_case rewritten "$fb" check roce --drive $a_host,$b_host "${load[@]}" -o "$LAB_OUT/rewritten.json" --quiet
	word $b_host right
	word $a_host narrow
	run_case narrow "$fb" check roce --drive $b_host "${load[@]}" -o "$LAB_OUT/narrow.json" --quiet
	word $a_host wide
	run_case killed "$fb" check roce --drive $a_host,$b_host:18999,$b_host:$doomed_port --victim $a_host:$victim_port \
		"${load[@]}" -D 3s -o "$LAB_OUT/killed.json" --quiet
	word $a_host meet 18601
	word $b_host meet 18601
	meet 18601 2
	word $a_host over 18601
	word $b_host over 18601
	word $b_host small
	word $a_host meet 18602
	word $b_host meet 18602
	meet 18602 2
	word $a_host over 18602
	word $b_host large
	word $a_host meet 18603
	meet 18603 2
	word $a_host over 18603
}

if [[ ${1:-} = --heed ]]; then
	heed
	exit 0
fi
lab_guest "$@"

# ---- host ------------------------------------------------------------------------------------------------------------
lab_boot check-drive 2 --guests 3 --timeout 300 -- "$self" --server -- "$self" --server -- "$self" --client

holds() { # NAME STATUS DOCUMENT FILTER [FILTER OF WHAT TO SHOW]
	local got
	read -r got _ < <(status_of "$1")
	if [[ $got != "$2" ]]; then
		verdict "$1" "status $got instead of $2: $(said "$1") $(jq -c '.verdict.reasons' "$3" 2>/dev/null | cut -c1-500)"
	elif ! jq -e "$4" "$3" >/dev/null 2>&1; then
		verdict "$1" "the document does not hold: $4: $(jq -c "${5:-.verdict}" "$3" 2>&1 | cut -c1-600)"
	else
		verdict "$1" ''
	fi
}

one() { echo "([.checks[] | select(.id == \"$1\")] | first)"; } # ID: the receiver's own comes first
hosts='[.checks[] | select(.id == "drive.host") | .state]'

holds drive 0 "$cases/drive.json" ".verdict.state == \"ACCEPTED\" and ([.checks[] | select(.state == \"fail\" or .state == \"error\")] | length == 0)
	and ($hosts == [\"pass\", \"pass\", \"pass\"])
	and ($(one R27) | .state == \"pass\" and (.observed | test(\"4200 B\")))
	and ($(one R28) | .state == \"pass\" and (.observed | test(\"DSCP 26 \\\\(100\")))
	and ($(one R29) | .state == \"skip\") and ($(one R30) | .state == \"pass\" or .state == \"warn\")
	and ($(one R31) | (.state == \"pass\" or .state == \"warn\") and (.observed | test(\"MiB and [0-9]+ packets\")))
	and ([.checks[] | select(.id == \"R31\") | .subject] | length == 4)
	and ($(one R32) | .state == \"pass\")
	and (.fabric.drive | .bytes > 1000000 and .victim_reads > 0 and (.hosts | length == 3))
	and ([.results[] | select(.metric == \"goodput\") | .value > 0] | length == 1 and all)
	and ($(one equal.mtu) | .state == \"pass\")" '[.checks[] | select(.id | test("R2[78]|R3[0-2]|drive")) | [.id, .subject, .state, .observed, .reason]]'
holds rewritten 1 "$cases/rewritten.json" "($(one R28) | .state == \"fail\" and (.observed | test(\"have DSCP 0\"))) and ($hosts == [\"pass\", \"pass\"])" \
	'[.checks[] | select(.id == "R28" or .id == "drive.host")]'
holds narrow 1 "$cases/narrow.json" "($(one R27) | .state == \"fail\" and (.observed | test(\"do not arrive there, 100 B pass\")))" \
	'[.checks[] | select(.id == "R27")]'
holds killed 3 "$cases/killed.json" ".verdict.state == \"INCOMPLETE\" and ($hosts == [\"pass\", \"error\", \"error\", \"pass\"]) and ($(one R28) | .state == \"pass\")
	and ($(one R31) | .state == \"pass\" or .state == \"warn\")" '[.checks[] | select(.id | test("R28|R31|drive"))]'
read -r _ took < <(status_of killed)
verdict killed-in-time "$([[ $took -le 110 ]] || echo "it took $took s")"

zero=$work/guest0
cases=$zero # rank 0 alone judges
holds meet-18601 0 "$zero/meet-18601.json" ".verdict.state == \"ACCEPTED\" and ([.checks[] | select(.id | startswith(\"equal\")) | .state] | all(. == \"pass\" or . == \"skip\"))
	and ($(one rendezvous.ranks) | .state == \"pass\") and (.fabric.ranks | length == 2) and (.system.hosts | length == 3)"
holds meet-18602 1 "$zero/meet-18602.json" "($(one equal.mtu) | .state == \"fail\" and (.observed | test(\"guest1: 1500\")))" '[.checks[] | select(.id | startswith("equal"))]'
holds meet-18603 3 "$zero/meet-18603.json" '.verdict.state == "INCOMPLETE" and ([.checks[] | select(.id == "rendezvous.ranks" and .state == "error") | .subject] | any(test("rank 1")))' \
	'[.checks[] | select(.id == "rendezvous.ranks")]'
others=$(cat "$work"/guest[12]/meet-18601.rc 2>/dev/null | cut -d' ' -f1 | tr '\n' ' ')
verdict ranks-silent "$([[ $others = '0 0 ' && ! -e $work/guest2/meet-18601.json ]] || echo "ranks 1 and 2 ended with $others")"
exit $bad
