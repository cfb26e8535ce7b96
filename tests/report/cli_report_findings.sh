#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# umadvise report: findings first, --fail-on for scripts, and the verdict on the distance to the bound.
. "${top_srcdir:=.}/tests/tap.sh"

trace=$top_srcdir/tests/data/alexnet_b200.umtrace.gz
report() { "$UMADVISE" report "$@"; }

"$UMADVISE" simulate "$trace" --budget 1GiB --strategy on-demand --iterations 4 --export "$tmp/slow.sqlite" >"$tmp/out"
"$UMADVISE" simulate "$trace" --budget 8GiB --strategy on-demand --iterations 4 --export "$tmp/well.sqlite" >"$tmp/out"

ok "findings alone fail nothing" report "$tmp/slow.sqlite" -o "$tmp/slow.txt"
out=$(<"$tmp/slow.txt")
like "$(sed -n 2p <<<"$out")" '^A steady iteration takes [0-9.]* ms \(mean of [0-9]*\): kernels run for' \
	"the first sentence is of steady iterations"
is "$(grep -A1 '^$' <<<"$out" | sed -n 2p)" \
	"findings: what costs time in the later half of the iterations (2), and what to do" \
	"findings come first"
like "$out" "  high       demand: .*would save [0-9.]* ms" "the most expensive finding comes first"
like "$out" "  do         prefetch each" "a finding says what to do"
like "$out" "  estimated  kernel time" "a finding says how its saving is estimated"
like "$(report "$tmp/well.sqlite")" "findings: none in the later half" "none where all is well"

# The first iterations of a plan learn: they are counted apart, and what the others wait for is a finding.
"$UMADVISE" simulate "$top_srcdir/tests/data/resnet50.umtrace.gz" --budget 1GiB --strategy autoswap --iterations 8 \
	--export "$tmp/plan.sqlite" >"$tmp/out"
out=$(report "$tmp/plan.sqlite")
like "$(sed -n '2,/^$/p' <<<"$out" | tr '\n' ' ')" \
	'waits [0-9.]* ms for prefetches.*Before them, [0-9]+ cold iterations? took [0-9.]* ms' \
	"cold iterations are counted apart"
like "$out" '  (high|medium|low) +waited for prefetch: .* % of the time of an iteration' "waits are a finding"

for level in low medium high; do
	fails 1 "--fail-on $level fails with a high finding" report "$tmp/slow.sqlite" --fail-on "$level"
	ok "--fail-on $level, and all is well" report "$tmp/well.sqlite" --fail-on "$level"
done
fails 2 "an unknown level is refused" report "$tmp/slow.sqlite" --fail-on much
like "$(report "$tmp/slow.sqlite" --fail-on much 2>&1)" \
	"^umadvise report: --fail-on 'much': expected low, medium or high" "the message names the accepted levels"

report "$tmp/slow.sqlite" --report findings --format csv >"$tmp/f.csv"
like "$(head -1 "$tmp/f.csv")" "^severity,kind,tensor,tensors,op,caller,first_iteration," "findings are written as csv"
like "$(sed -n 2p "$tmp/f.csv")" "^high,demand," "csv has the most expensive finding"

# Names may have commas: from the end.
came=$(report "$tmp/slow.sqlite" --report causes --format csv |
	awk -F, '$1 == "to device" { b += $3 } END { printf "%d", b }')
is "$(report "$tmp/slow.sqlite" --report reasons --format csv |
	awk -F, '/^(demand|late prefetch|evicted before use|prefetched),/ { b += $(NF - 2) } END { printf "%d", b }')" \
	"$came" "reasons: each byte that came has one"

report "$tmp/slow.sqlite" --workload "$trace" --budget 1GiB --report summary >"$tmp/v.txt"
like "$(<"$tmp/v.txt")" "verdict: an iteration takes .* ms, [1-9][0-9]*\.[0-9]* times the lower bound of" \
	"the verdict compares the run with the bound"
like "$(report "$tmp/slow.sqlite" --workload "$trace" --budget 1GiB --format json)" \
	'"verdict": {"device": "v100", "budget_bytes": 1073741824, "iteration_ns": [0-9]*, "plan_ns": [0-9]*, "bound' \
	"json has the verdict"
fails 3 "a workload that is not there" report "$tmp/slow.sqlite" --workload "$tmp/none.umtrace"
fails 2 "a budget of 0 is refused" report "$tmp/slow.sqlite" --workload "$trace" --budget 0
fails 3 "a device that is not known" report "$tmp/slow.sqlite" --workload "$trace" --profile nothing-like-it
tap_done
