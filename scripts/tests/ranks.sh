#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Ranks that meet, and each way they do not: missing, dead, foreign, of another version, under a launcher
# whose plug-in is missing. And scripts/launch, which starts them and ends what it started. The null benchmark
# stands for the work.

set -uo pipefail
# shellcheck source=scripts/tests/lib.sh
. "${0%/*}/lib.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated
export OMPI_MCA_btl_base_warn_component_unused=0

skip() { echo "skip $1: $2"; }

# Sets status and took (seconds); both streams go to $work/out.
attempt() { # SECONDS COMMAND...
	local limit=$1 begin=$SECONDS
	shift
	status=0
	timeout -k 5 "$limit" "$@" >"$work/out" 2>&1 </dev/null || status=$?
	took=$((SECONDS - begin))
}

# Why the attempt was not as it should be: status, then texts that must stand in the output.
why() { # STATUS TEXT...
	local want=$1 text
	shift
	if [[ $status != "$want" ]]; then
		echo "status $status instead of $want after $took s: $(tail -n 3 "$work/out" | tr '\n' ' ' | cut -c1-300)"
		return
	fi
	for text in "$@"; do
		if ! grep -qF -- "$text" "$work/out"; then
			echo "\"$text\" is not in its output: $(tail -n 3 "$work/out" | tr '\n' ' ' | cut -c1-300)"
			return
		fi
	done
}

null=(null --comm tcp --points 1 -n 20 -w 0 --quiet)

# --- tcp -------------------------------------------------------------------------------------------

meet() {
	attempt 60 "$top/scripts/launch" --local 8 --timeout 50 -- "$program" null --points 1 -n 20 -w 0 -o "$work/doc.json"
	local text
	text=$(why 0)
	if [[ -z $text && ! -s $work/doc.json ]]; then text='rank 0 wrote no document'; fi
	verdict ranks/meet "$text"
}

never_comes() {
	local port
	port=$(free_port)
	attempt 30 "$top/scripts/launch" --local 2 --port "$port" --timeout 20 -- \
		"$program" "${null[@]}" --ranks 4 --connect-timeout 2s
	verdict ranks/never-comes "$(why 3 'ranks 2, 3 of 4 never came within 2.0 s' 'remedy: ')"
	attempt 30 "$program" "${null[@]}" --ranks 2 --rank 1 --master "127.0.0.1:$port" --connect-timeout 1s
	verdict ranks/no-rank-0 "$(why 3 "cannot connect to 127.0.0.1 port $port" 'rank 0 never listened there')"
}

# Rank 2 is killed in the middle of a point; everybody else names it.
dead_rank() {
	local port i pid pids=() text=''
	port=$(free_port)
	for i in 0 1 2; do
		"$program" "${null[@]}" --sleep --mean 500ms -n 200 --ranks 3 --rank "$i" --master "127.0.0.1:$port" \
			>"$work/dead.$i" 2>&1 </dev/null &
		pids+=($!)
	done
	sleep 2
	disown "${pids[2]}" # its death is no news to print
	kill -KILL "${pids[2]}"
	local begin=$SECONDS
	for i in 0 1; do
		pid=${pids[i]}
		status=0
		wait "$pid" || status=$?
		cp "$work/dead.$i" "$work/out"
		if [[ -z $text ]]; then text=$(why 3 'rank 2 on ' 'is gone'); fi
	done
	took=$((SECONDS - begin))
	if [[ -z $text && $took -gt 20 ]]; then text="it took $took s to notice"; fi
	verdict ranks/dead "$text"
}

# A foreign rank is refused by name and told why, and the others still meet.
foreign() {
	local port first text
	port=$(free_port)
	"$program" "${null[@]}" --ranks 2 --rank 0 --master "127.0.0.1:$port" --token right --connect-timeout 20s \
		>"$work/root" 2>&1 </dev/null &
	first=$!
	attempt 30 "$program" "${null[@]}" --ranks 2 --rank 1 --master "127.0.0.1:$port" --token wrong
	verdict ranks/token "$(why 3 'refused: the token is not the one expected here' 'remedy: ')"
	attempt 30 env FABRICBENCH_TEST_PROTOCOL=0 "$program" "${null[@]}" --ranks 2 --rank 1 --master "127.0.0.1:$port" \
		--token right
	verdict ranks/version "$(why 3 '(protocol 1), this is ' '(protocol 0)')"
	attempt 30 "$program" "${null[@]}" --ranks 2 --rank 1 --master "127.0.0.1:$port" --token right
	text=$(why 0)
	status=0
	wait "$first" || status=$?
	cp "$work/root" "$work/out"
	if [[ -z $text ]]; then text=$(why 0 'refused rank 1 on ' 'its token is another one' '(protocol 0)'); fi
	verdict ranks/refused-by-name "$text"
}

usage_errors() {
	attempt 20 "$program" "${null[@]}"
	verdict ranks/which-rank "$(why 2 'which rank is this process?' 'remedy: ')"
	attempt 20 env RANK=4 WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 "$program" "${null[@]}"
	verdict ranks/contradiction "$(why 2 'rank 4 of 4')"
	attempt 20 "$program" "${null[@]}" --ranks 2 --rank 0 --bind 192.0.2.1
	verdict ranks/bind "$(why 2 'cannot listen on 192.0.2.1' '--bind')"
}

# --- mpirun ----------------------------------------------------------------------------------------

under_mpirun() {
	if ! command -v mpirun >/dev/null; then
		skip ranks/mpirun 'mpirun is not here: apt-get install openmpi-bin'
		return
	fi
	# Neither beside the program nor in a named folder: never two independent copies.
	cp -L "$program" "$work/fabricbench"
	attempt 60 env FABRICBENCH_PLUGINS=/nonexistent mpirun --oversubscribe -n 2 "$work/fabricbench" null --points 1 \
		-n 20 -w 0
	verdict ranks/mpi-plugin-missing "$(why 3 'an MPI launcher started 2 ranks' 'make mpi')"
	attempt 30 mpirun --oversubscribe -n 2 "$program" null --comm local --points 1 -n 20 -w 0
	verdict ranks/mpirun-local "$(why 2 'mpirun started 2 processes')"
	if [[ ! -e $(dirname "$(readlink -f "$program")")/fabricbench-mpi.so ]]; then
		skip ranks/mpirun 'the mpi plug-in was not built: apt-get install libopenmpi-dev'
		return
	fi
	attempt 60 mpirun --oversubscribe -n 2 "$program" null --points 1 -n 20 -w 0 -o "$work/mpi.json"
	verdict ranks/mpirun "$(why 0)"
	attempt 60 mpirun --oversubscribe -n 1 "$program" null --points 1 --connect-timeout 2s : -n 1 sleep 30
	verdict ranks/mpirun-never-comes "$(why 3 'MPI_Init_thread did not end within 2 s' 'remedy: ')"
}

# --- scripts/launch --------------------------------------------------------------------------------

# A remote shell without a network, in a session of its own as sshd's children are.
fake_ssh() {
	cat >"$work/ssh" <<'SSH'
#!/bin/sh
while [ $# -gt 0 ]; do
	case $1 in -T) shift ;; -o) shift 2 ;; *) break ;; esac
done
host=$1
shift
if [ "$host" = down ]; then echo 'ssh: connect to host down port 22: No route to host' >&2; exit 255; fi
exec setsid --wait sh -c "$*"
SSH
	chmod +x "$work/ssh"
}

# Does "sleep SECONDS" run? Its own duration names it.
sleeps() { # SECONDS
	local file argv
	for file in /proc/[0-9]*/cmdline; do
		{ mapfile -d '' -t argv <"$file"; } 2>/dev/null || continue
		if [[ ${argv[0]:-} = sleep && ${argv[1]:-} = "$1" ]]; then return 0; fi
	done
	return 1
}

left_over() { # SECONDS
	local i
	for ((i = 0; i < 50; i++)); do
		if ! sleeps "$1"; then return; fi
		sleep 0.1
	done
	echo "sleep $1 still runs"
}

launch() {
	local text pid launch=("$top/scripts/launch") mark=$((100000 + $$ % 100000))
	fake_ssh
	export FABRICBENCH_SSH=$work/ssh
	# shellcheck disable=SC2016 # the ranks expand it
	attempt 20 "${launch[@]}" --hosts n1,me@n2 --ranks-per-host 2 --env 'X=a  $b' -- \
		sh -c 'echo "$RANK/$WORLD_SIZE $LOCAL_RANK $MASTER_ADDR:$MASTER_PORT [$X] [$1]"' sh "it's \"q\" *"
	verdict launch/argv "$(why 0 "n1/0: 0/4 0 n1:18515 [a  \$b] [it's \"q\" *]" 'me@n2/3: 3/4 1 n1:18515')"
	# shellcheck disable=SC2016
	attempt 20 "${launch[@]}" --local 5 -- sh -c 'exit $RANK'
	verdict launch/worst-status "$(why 4 'ended with status')"
	attempt 20 "${launch[@]}" --hosts n1,n2 --timeout 1 -- sleep $((mark + 1))
	text=$(why 3 '2 ranks had not ended after 1 s')
	verdict launch/timeout "${text:-$(left_over $((mark + 1)))}"
	attempt 20 "${launch[@]}" --hosts n1,down --grace 0 -- sleep $((mark + 2))
	text=$(why 3 'down/1: ssh: connect to host down' 'down/1 ended with status 255')
	verdict launch/host-down "${text:-$(left_over $((mark + 2)))}"
	# killed outright, it cannot clean up: the far watchers do
	"${launch[@]}" --hosts n1,n2 -- sleep $((mark + 3)) >/dev/null 2>&1 &
	pid=$!
	sleep 1
	text=''
	if ! sleeps $((mark + 3)); then text='its ranks never started'; fi
	disown "$pid"
	kill -KILL "$pid"
	verdict launch/killed "${text:-$(left_over $((mark + 3)))}"
	attempt 20 "${launch[@]}" --local 2
	verdict launch/no-command "$(why 2 'no command')"
	attempt 20 "${launch[@]}" --local 2 --srun -- true
	verdict launch/two-ways "$(why 2 'exclude each other')"
	unset FABRICBENCH_SSH
}

meet
never_comes
dead_rank
foreign
usage_errors
under_mpirun
launch
exit "$bad"
