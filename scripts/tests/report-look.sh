#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The page in a browser, by scripts/look-at-report: of a small run, and of a page that was spoiled in each of the ways
# that it has to find.

set -uo pipefail
# shellcheck source=scripts/tests/lib.sh
. "${0%/*}/lib.sh"

"$program" report "$top/reports/testdata/small.json" -o "$work/small.html" >/dev/null 2>&1
rc=0
"$top/scripts/look-at-report" "$work/small.html" >"$work/out" 2>&1 || rc=$?
cat "$work/out"
if [[ $rc = 77 ]]; then exit 0; fi
if [[ $rc != 0 ]]; then bad=1; fi

sed -e 's|</header>|<p style="color: #bbb; background: #fff">pale</p><div style="width: 3000px">wide</div><p>\&#xfffd;</p><img src="data:image/gif;base64,R0lGODlhAQABAAAAACw="/><p onclick="0"></p></header>|' \
	-e 's|<div class="verdict">|<div style="height: 900px"></div>&|' \
	-e 's|break-inside: avoid|break-inside: auto|g; s|@media screen and|@media all and|; s|:root { color-scheme: light; }||' \
	"$work/small.html" >"$work/spoiled.html"
"$top/scripts/look-at-report" "$work/spoiled.html" >"$work/out" 2>&1
for check in first-screen overflow contrast glyphs images inert; do
	verdict "finds-$check" "$(grep -q "^not ok $check-1280-light: " "$work/out" || echo 'the spoiled page passed')"
done
for check in sheet-print-light paper-print-dark breaks-print-light; do
	verdict "finds-$check" "$(grep -q "^not ok $check: " "$work/out" || echo 'the spoiled page passed')"
done
exit "$bad"
