#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# claims from outside: the article's file, whatever its rows are called; statuses; rows that cannot be read; a plan; the page.

set -uo pipefail
# shellcheck source=scripts/tests/lib.sh
. "${0%/*}/lib.sh" claims
data=$top/bench/predict/testdata
header='id,kind,model,params,gpu,n_gpus,gpus_per_node,mem_gb,seq_len,tokens_per_gpu,dtype,strategy,tp,pp,dp,nic_gbps_per_gpu,quantity,value,unit,source,quote'

run claims "$data/article_claims.csv" --json
ends article 0
cp "$work/out" "$work/article.json"
holds article-all-rows "$work/article.json" '.claims | length == 19'
holds article-tokens "$work/article.json" \
	'[.claims[] | select(.quantity == "tokens_per_gpu_per_s") | [.verdict, (.factor_pct | round)]] ==
	[["impossible", 146], ["impossible", 128], ["impossible", 159]]'
holds article-keys "$work/article.json" 'all(.claims[]; has("id") and has("verdict") and has("factor_pct") and has("why"))'
# Rows by any other name are judged the same.
awk -F, 'BEGIN { OFS = "," } /^#/ || /^id,/ { print; next } { $1 = "r" NR; print }' "$data/article_claims.csv" >"$work/renamed.csv"
run claims "$work/renamed.csv" --json
verdict names-do-not-matter "$(cmp <(jq -c '.claims[] | [.verdict, .factor_pct]' "$work/out") \
	<(jq -c '.claims[] | [.verdict, .factor_pct]' "$work/article.json") 2>&1)"

run claims "$data/article_claims.csv"
ends table 0
says table-counts '19 judged: 4 possible, 5 impossible, 9 depends, 1 unsourced'
run claims --strict "$data/article_claims.csv"
ends strict-finds 1
run claims --strict "$data/published.csv"
ends strict-finds-nothing 0

printf '%s\nneg,throughput,llama3-70b,,H100,64,8,80,,,bf16,fsdp,,,,,tokens_per_gpu_per_s,-5,tok/s,,\n%s\n' "$header" \
	'fine,throughput,llama2-70b,,A100-80GB,128,8,,4096,,bf16,fsdp,1,1,128,200,tokens_per_gpu_per_s,410,tok/s,,' >"$work/bad.csv"
run claims "$work/bad.csv" --json
ends bad-row 2
says bad-row-is-named 'line 2, column value: "-5"'
holds bad-row-rest-is-judged "$work/out" \
	'(.claims | length == 1) and .claims[0].verdict == "possible" and (.errors | length == 1) and .run.exit == 2'
run claims "$work/no-such-file.csv"
ends no-file 2
says no-file-remedy 'remedy:'
run claims "$top/README.md"
ends no-header 2
says no-header-remedy 'the first line names the columns'
run claims
ends no-argument 2
head -c 65536 /dev/urandom >"$work/noise.csv"
run claims "$work/noise.csv"
ends noise 2

cat >"$work/plan.ini" <<-INI
	[plan]
	title = Claims of an article
	[claims]
	command = claims
	file = $data/article_claims.csv
INI
run run "$work/plan.ini" -o "$work/dir"
ends plan 0
holds plan-keeps-claims "$work/dir/run.json" '(.claims | length == 19) and .verdict.state == "ACCEPTED"'
verdict plan-page "$(grep -q '<h2>Claims</h2>' "$work/dir/report.html" || echo 'the page has no section of claims')"
sed -i 's/^command.*/&\nstrict = yes/' "$work/plan.ini"
run run "$work/plan.ini" -o "$work/strict" --no-report
ends plan-strict 1
run claims "$data/article_claims.csv" -o "$work/one.json" --quiet
run report "$work/one.json"
ends page 0
verdict page-of-claims "$(grep -q 'loss scaling' "$work/one.html" || echo 'the page does not say why bf16 stands for FP16')"
exit "$bad"
