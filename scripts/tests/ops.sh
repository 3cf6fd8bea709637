#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What schedulers and CI call: the prolog's check on fit and unfit recorded machines, the validation job with a
# srun of our own for two ranks of this machine, the report's forms for machines, and that the examples for
# Kubernetes and CI are well-formed.

set -uo pipefail
# shellcheck source=scripts/tests/lib.sh
. "${0%/*}/lib.sh" ops
trees=$top/verbs/lossless/testdata/trees
export FABRICBENCH=$program

run() { # COMMAND...: of any program; sets rc, and leaves $work/out and $work/err
	rc=0
	timeout 120 "$@" >"$work/out" 2>"$work/err" </dev/null || rc=$?
}
for name in vendor-good pfc-off pfc-two bare; do
	"$program" tree expand "$trees/$name.tree" "$work/$name" >"$work/out" 2>"$work/err" || {
		echo "not ok ops-trees: $name: $(head -c 200 "$work/err")"
		exit 0
	}
done
prolog=$top/scripts/slurm/prolog-check

# --- prolog-check ---
run "$prolog" --checks roce -- --sysroot "$work/vendor-good"
ends prolog-fit 0
verdict prolog-fit-silent "$(head -c 100 "$work/out")"
run "$prolog" --checks roce --retry 0 -- --sysroot "$work/pfc-off"
ends prolog-unfit 1
verdict prolog-one-line "$(n=$(wc -l <"$work/out"); ((n == 1)) || echo "$n lines")"
verdict prolog-drain-text "$(grep -qE '^\[node_problem\] fabricbench: R[0-9]+ PFC on the RoCE priority at mlx5_0/1 \(eth2\): .*expected priority 3$' "$work/out" || cat "$work/out")"
run "$prolog" --checks roce -- --sysroot "$work/pfc-two"
ends prolog-warning-is-fit 0
run "$prolog" --checks roce --retry 0 -- --sysroot "$work/pfc-two" --strict
verdict prolog-options-reach-check "$([[ $rc = 1 ]] || echo "status $rc")"
mkdir -p "$work/empty/sys/class" "$work/empty/proc"
run "$prolog" --checks roce -- --sysroot "$work/empty"
ends prolog-nothing-here 0
run "$prolog" --checks roce --retry 0 --require -- --sysroot "$work/empty"
ends prolog-nothing-required 1
says prolog-nothing-words 'no device of the fabric is here'
run "$prolog" --checks roce -- --sysrot x
ends prolog-unreadable 3
run "$prolog" --dedline 3
ends prolog-usage 2
run env FABRICBENCH="$work/none" "$prolog"
ends prolog-no-program 3
says prolog-no-program-words '[node_problem] fabricbench: not checked:'
run env FABRICBENCH="$work/none" "$prolog" --open
ends prolog-open 0
verdict prolog-open-silent "$(head -c 100 "$work/out")"
printf '#!/bin/sh\nexec sleep 60\n' >"$work/hangs"
# A fault at the first look alone, and hostile text in a row of the table.
cat >"$work/once" <<'SH'
#!/bin/sh
if [ -e "$0.seen" ]; then exit 0; fi
: >"$0.seen"
echo '| fail | R01 port active | mlx5\_0 | down | up |  |'
exit 1
SH
cat >"$work/hostile" <<'SH'
#!/bin/sh
printf '| fail | R01 a\\|b | `id` "x" $(id) | \033[31m\tdown | &lt;up> |  |\n| fail | R02 c | d | e | f |  |\n'
exit 1
SH
chmod +x "$work/hangs" "$work/once" "$work/hostile"
begin=$SECONDS
run env FABRICBENCH="$work/hangs" "$prolog" --deadline 2
ends prolog-deadline 3
verdict prolog-deadline-kept "$( ((SECONDS - begin < 10)) || echo "$((SECONDS - begin)) s")"
run env FABRICBENCH="$work/once" "$prolog" --checks roce --retry 0
ends prolog-second-look 0
says prolog-second-look-told 'gone at the second look'
run env FABRICBENCH="$work/hostile" "$prolog" --checks roce --retry 0
ends prolog-hostile 1
verdict prolog-hostile-plain "$(LC_ALL=C grep -q '[^ -~]' "$work/out" && echo 'an unprintable byte'; grep -q '["`\\]' "$work/out" && echo 'a quote')"
says prolog-counts '(1 more)'
# slurmd starts a Prolog with nearly no environment: what it finds there its children must find too.
printf '#!/bin/sh\nenv >"$0.env"\n' >"$work/tells"
chmod +x "$work/tells"
run env -i FABRICBENCH="$work/tells" "$prolog" --checks roce
ends prolog-no-environment 0
verdict prolog-path "$(grep -q '^PATH=/usr/local/sbin:' "$work/tells.env" || cat "$work/tells.env")"
mkdir -p "$work/bin"
# shellcheck disable=SC2016 # the variables are the script's own
printf '#!/bin/sh\nfor a in "$@"; do echo "$a"; done >"%s"\n' "$work/scontrol.args" >"$work/bin/scontrol"
chmod +x "$work/bin/scontrol"
run env PATH="$work/bin:$PATH" SLURMD_NODENAME=n17 "$prolog" --checks roce --retry 0 --drain -- --sysroot "$work/pfc-off"
ends prolog-drains 1
verdict prolog-drains-how "$( (grep -qx 'NodeName=n17' "$work/scontrol.args" && grep -q '^Reason=\[node_problem\]' "$work/scontrol.args") || cat "$work/scontrol.args")"

# --- validate.sbatch: srun made here starts its ranks on this machine with Slurm's variables ---
cat >"$work/bin/srun" <<'SH'
#!/usr/bin/env bash
n=1
while [[ $1 == --* ]]; do
	case $1 in
	--ntasks=*) n=${1#*=} ;;
	--mpi=list) echo 'MPI plugin types are... none'; exit 0 ;;
	esac
	shift
done
pids=() worst=0
for ((i = 0; i < n; i++)); do
	SLURM_STEP_ID=0 SLURM_PROCID=$i SLURM_STEP_NUM_TASKS=$n SLURM_LOCALID=$i SLURM_STEP_NODELIST=127.0.0.1 "$@" &
	pids+=($!)
done
for pid in "${pids[@]}"; do
	status=0
	wait "$pid" || status=$?
	((status > worst)) && worst=$status
done
exit "$worst"
SH
chmod +x "$work/bin/srun"
validate() { # OUT VARIABLE=VALUE...
	local out=$1
	shift
	# What this test itself may have inherited from a job is none of the faked one.
	run env -u RANK -u WORLD_SIZE -u MASTER_ADDR -u OMPI_COMM_WORLD_RANK -u PMI_RANK PATH="$work/bin:$PATH" \
		SLURM_JOB_ID="$((RANDOM + 1))" SLURM_JOB_NUM_NODES=2 OUT="$out" CHECK=roce "$@" bash "$top/scripts/slurm/validate.sbatch"
}
validate "$work/good" STEPS='check coll' CHECK_OPTIONS="--sysroot $work/vendor-good"
ends validate-accepted 0
says validate-verdict 'verdict: ACCEPTED (2 nodes, 1 steps'
says validate-no-mpi 'coll: left out'
verdict validate-ranks "$(jq -e '.checks[] | select(.id == "rendezvous.ranks") | .state == "pass"' "$work/good/check.json" 2>&1 >/dev/null)"
verdict validate-junit "$(grep -q '<testsuite name="fabricbench check"' "$work/good/check.xml" || head -n 3 "$work/good/check.xml")"
verdict validate-markdown "$(grep -q '^## .*\*\*ACCEPTED\*\*' "$work/good/check.md" || head -n 3 "$work/good/check.md")"
validate "$work/bad" STEPS=check CHECK_OPTIONS="--sysroot $work/pfc-off"
ends validate-rejected 1
says validate-rejected-verdict 'verdict: REJECTED (status 1'
validate "$work/none" STEPS=check CHECK_OPTIONS="--sysroot $work/nowhere"
verdict validate-unreadable "$([[ $rc = 2 || $rc = 3 ]] || echo "status $rc")"
says validate-incomplete 'verdict: INCOMPLETE'
validate "$work/steps" STEPS='check pears'
ends validate-wrong-step 2
run env -u SLURM_JOB_ID bash "$top/scripts/slurm/validate.sbatch"
ends validate-no-allocation 2

# --- the report for machines ---
cat >"$work/plan.ini" <<'INI'
[plan]
title = For machines
launches = 2
[first]
command = null
points = 2
iters = 200
INI
run "$program" run "$work/plan.ini" -o "$work/run" --parts-only --quiet
run "$program" report "$work/run" --prometheus "$work/node.prom" --junit "$work/run.xml"
ends report-machines 0
verdict report-no-page "$([[ ! -e $work/run/report.html ]] || echo 'a page nobody asked for')"
verdict report-prometheus "$(grep -qE '^fabricbench_verdict\{state="ACCEPTED"\} 1$' "$work/node.prom" || head -n 5 "$work/node.prom")"
verdict report-prometheus-nothing-left "$(find "$work" -maxdepth 1 -name '*.tmp*')"
if command -v promtool >/dev/null; then
	verdict report-promtool "$(promtool check metrics <"$work/node.prom" 2>&1 | grep -i error)"
fi
if command -v xmllint >/dev/null; then
	verdict report-junit "$(xmllint --noout "$work/run.xml" 2>&1)"
else
	echo 'skip report-junit: xmllint is not here'
fi
run "$program" report "$work/run" --format md -o -
ends report-markdown 0
verdict report-markdown-head "$(head -n 1 "$work/out" | grep -qxF '## For machines: **ACCEPTED**' || head -n 1 "$work/out")"
run "$program" report "$work/run" --format md --plots-only
ends report-markdown-no-plots 2
run "$program" report "$work/run" --prometheus "$work/nowhere/x.prom"
ends report-unwritable 3

# --- the examples' gate: it gates what gate.ini names, and leaves what CI keeps (the verdict is the machine's) ---
mkdir -p "$work/gate"
run "$program" compare --run "$program" "$program" --gate-file "$top/scripts/ci/gate.ini" --launches 7 --quiet \
	--output "$work/gate.compare" --junit "$work/gate/compare.xml" --markdown "$work/gate/compare.md" \
	-- coll all_reduce --ranks 2 --backend local --min-bytes 8 --max-bytes 8 --max-time 20ms
verdict ci-gate-status "$([[ $rc = 0 || $rc = 1 ]] || echo "status $rc: $(head -c 300 "$work/err")")"
verdict ci-gate-gates "$(jq -e '.gated == 1 and ([.metrics[] | select(.gated) | .metric] == ["busbw"])' "$work/gate.compare" 2>&1 | grep -vx true)"
verdict ci-gate-junit "$(grep -q 'tests="1"' "$work/gate/compare.xml" || head -n 3 "$work/gate/compare.xml")"
verdict ci-gate-markdown "$(grep -q '^| coll/' "$work/gate/compare.md" || head -n 5 "$work/gate/compare.md")"

# --- Kubernetes and CI ---
if python3 -c 'import yaml' 2>/dev/null; then
	for file in "$top"/scripts/k8s/*.yaml "$top"/scripts/ci/*.yml; do
		verdict "yaml-${file##*/}" "$(python3 -c 'import sys, yaml; list(yaml.safe_load_all(open(sys.argv[1])))' "$file" 2>&1)"
	done
	shown=$(python3 -c 'import sys, yaml, json; print(json.dumps([d for f in sys.argv[1:] for d in yaml.safe_load_all(open(f))]))' "$top"/scripts/k8s/*.yaml)
	verdict k8s-ranks "$(jq -e '.[] | select(.kind == "Job") | .spec as $s | $s.completionMode == "Indexed" and $s.completions == $s.parallelism and
		([$s.template.spec.containers[0].env[] | select(.name == "WORLD_SIZE") | .value] == [$s.completions | tostring])' <<<"$shown" 2>&1 | grep -vx true)"
	verdict k8s-headless "$(jq -e '([.[] | select(.kind == "Service") | .metadata.name][0]) as $n | any(.[]; .kind == "Service" and .spec.clusterIP == "None") and
		any(.[]; .kind == "Job" and .spec.template.spec.subdomain == $n)' <<<"$shown" 2>&1 | grep -vx true)"
	# What a container or a step runs has to be a script that a shell can read.
	n=0
	while IFS= read -r body; do
		n=$((n + 1))
		verdict "k8s-script-$n" "$(base64 -d <<<"$body" | sh -n 2>&1)"
	done < <(jq -r '.[] | .spec.template.spec? // empty | .containers[] | .args[0] | @base64' <<<"$shown")
	verdict k8s-scripts "$( ((n >= 2)) || echo "$n scripts")"
else
	echo 'skip ops-yaml: python3-yaml is not here'
fi
exit "$bad"
