#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Plans of a training step from outside: parameters and FLOPs of the presets, what fits which GPU, the tokens that
# hide the network, models from files, and what is refused. Nothing is trained here. Prints "ok NAME" or
# "not ok NAME: why".
set -uo pipefail
# shellcheck source=scripts/tests/lib.sh
. "${0%/*}/lib.sh" train-plan

plan() { # NAME ARGUMENTS: the status in $rc, the document in NAME.json, the text in NAME.txt
	local name=$1
	shift
	timeout -k 5 60 "$program" train --plan "$@" >"$work/$name.txt" 2>"$work/err" </dev/null
	rc=$?
	if [[ $rc == 0 ]]; then
		timeout -k 5 60 "$program" train --plan "$@" --json >"$work/$name.json" 2>"$work/err" </dev/null
		rc=$?
	fi
}

holds() { # NAME DOCUMENT JQ-CONDITION
	local said
	if said=$(jq -e "$3" "$work/$2.json" 2>&1); then
		echo "ok $1"
	else
		echo "not ok $1: $3 does not hold: ${said:0:200}"
	fi
}

shows() { # NAME TEXT PATTERN
	if grep -qE -- "$3" "$work/$2.txt"; then
		echo "ok $1"
	else
		echo "not ok $1: no line matches '$3'"
	fi
}

fit() { # STRATEGY GPU: the jq path of its answer
	printf '.train_plan.strategies[] | select(.strategy == "%s") | .fits[] | select(.gpu == "%s")' "$1" "$2"
}

# --- presets --------------------------------------------------------------------------------------

while read -r model parameters; do
	plan "$model" --model "$model"
	ends "plan-$model" 0
	holds "parameters-$model" "$model" ".train_plan.model.parameters == $parameters"
done <<-'TABLE'
	tiny 75250
	gpt2-124m 124439808
	llama3-1b 1235814400
	llama3-8b 8030261248
	llama3-70b 70553706496
	llama3-405b 405853388800
TABLE

# --- what fits ------------------------------------------------------------------------------------

shows text-parameters llama3-70b 'parameters 70,553,706,496; in products 69,501,714,432'
shows text-types llama3-70b '^bf16 work, fp32 master'
shows text-table llama3-70b '^What fits on 64 ranks'
holds default-is-a-gpus llama3-70b '.train_plan.config | .dtype == "bf16" and .state_dtype == "fp32" and .ranks == 64'
holds hybrid-does-not-fit llama3-70b "$(fit hybrid:8 'H100 SXM 80GB') | .fits == false and .fits_full_recompute == false"
holds zero3-fits llama3-70b "$(fit zero3 'H100 SXM 80GB') | .fits_full_recompute"
holds ddp-never-fits llama3-70b "$(fit ddp 'GB200 186GB') | .smallest_group == null and .smallest_group_reason != null"
holds zero3-from-32 llama3-70b "$(fit zero3 'A100 SXM 80GB') | .smallest_group_full_recompute == 32"
plan short --model llama3-70b --ranks 64 --seq 512 --micro-batch 1 --strategy fsdp
holds zero3-fits-short-sequences short "$(fit zero3 'H100 SXM 80GB') | .fits"

# A group of 8 keeps an eighth of 18 bytes a parameter, 64 ranks keep a 64th.
holds states-are-sharded llama3-70b '[.train_plan.strategies[] | select(.strategy == ("zero3", "hybrid:8")) | .shard as $f
	| .memory_bytes | (.params + .master + .optimizer + .grads) * $f / 70553706496 - 18 | fabs < 1e-6] | length == 2 and all'
holds totals-add-up llama3-70b '[.train_plan.strategies[].memory_bytes | (.params + .gathered + .master + .optimizer
	+ .grads + .grad_units + .wire + .activations + .scratch) / .total - 1 | fabs < 1e-12] | all'

# --- tokens that hide the network -----------------------------------------------------------------

# eff * peak / B for three times bf16's bytes: 1360 tokens at 400 Gb/s a GPU, 907 in groups of a node.
plan law --model llama3-70b --ranks 512 --seq 128 --reduce-dtype bf16
holds law-of-tokens law '[.train_plan.strategies[] | select(.strategy == "zero3") | .t_star[]
	| select(.gpu == "H100 SXM 80GB").tokens[4]] | .[0] > 1320 and .[0] < 1360'
holds law-of-tokens-in-groups law '[.train_plan.strategies[] | select(.strategy == "hybrid:8") | .t_star[]
	| select(.gpu == "H100 SXM 80GB").tokens[4]] | .[0] > 900 and .[0] < 912'
plan node --model llama3-8b --ranks 8
holds nothing-leaves-a-node node '[.train_plan.strategies[].bytes_per_step.out_of_node] | all(. == 0)'
shows text-one-node node 'nothing leaves it'

# --- a model from a file --------------------------------------------------------------------------

cat >"$work/llama2-7b.ini" <<-'INI'
	[model]
	family = llama
	layers = 32
	hidden = 4096
	heads = 32
	ffn = 11008
	vocab = 32000
	positions = 4096
INI
plan file --model "$work/llama2-7b.ini"
ends model-file 0
holds model-file-parameters file '.train_plan.model | .name == "llama2-7b" and .parameters == 6738415616'

# --- refused --------------------------------------------------------------------------------------

plan bad --model llama3-80b
ends unknown-model 2 'nearest is "llama3-8b"'
plan bad --model "$work/none.ini"
ends no-such-file 2 'none.ini'
sed 's/heads = 32/heads = 0/' "$work/llama2-7b.ini" >"$work/bad.ini"
plan bad --model "$work/bad.ini"
ends impossible-value 2 'bad.ini:5: heads = 0'
sed 's/heads/head/' "$work/llama2-7b.ini" >"$work/bad.ini"
plan bad --model "$work/bad.ini"
ends unknown-key 2 'bad.ini:5: unknown key "head"'
plan bad --model tiny --strategy zero4
ends unknown-strategy 2 'unknown strategy "zero4"; the nearest is "zero'
plan bad --model tiny --ranks 8 --strategy hybrid:3
ends group-does-not-divide 2 'groups of 3 do not divide 8 ranks'
plan bad --model gpt2-124m --seq 4096
ends sequence-too-long 2 '1024 positions'
exit 0
