#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cli_workspace.sh - workloads whose ops have algorithms with workspaces: planned, shown, simulated

. "${top_srcdir:=.}/tests/tap.sh"

trace=$top_srcdir/tests/data/good-workspace.umtrace

plan() { # BUDGET OPTION...
	"$UMADVISE" plan "$trace" --profile v100 --budget "$@" -o "$tmp/p.umplan" >"$tmp/out" 2>&1
}
key() { sed -n "1s/.*\"$1\":\([0-9]*\).*/\1/p" "${2-$tmp/p.umplan}"; }
choices() { sed -n 's/.*"choice":\([0-9]*\).*/\1/p' "$tmp/p.umplan" | tr -d '\n'; }
steady() { # STRATEGY BUDGET: ms
	"$UMADVISE" simulate "$trace" --profile v100 --budget "$2" --strategy "$1" --pattern wide --format csv |
		awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "steady_ns") k = i } NR == 2 { print $k }'
}
least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a <= b) }'; }

ok "a plan with all the memory is made" plan 110MiB
is "$(choices)" 222222222222 "each op takes its fastest algorithm"
is "$(key predicted_ns)" "$(key in_core_ns)" "and the iteration the time in core"
is "$(key in_core_ns)" 12200000 "which is the sum of the shortest times"

ok "a plan with half of the memory is made" plan 48MiB --no-recompute
ok "some ops take less than the fastest" grep -q '"choice":[01]' "$tmp/p.umplan"
ok "the tool says so" grep -q 'in core 12.200 ms' "$tmp/out"
"$UMADVISE" plan --show "$tmp/p.umplan" >"$tmp/shown"
ok "plan --show counts the algorithms" grep -q '^workspaces 12 ops choose an algorithm: ' "$tmp/shown"
ok "and measures against the fastest" grep -q 'in core 12.200' "$tmp/shown"
cp "$tmp/p.umplan" "$tmp/swaps.umplan"
ok "a plan with relaunches is made" plan 48MiB
ok "it is not slower" least "$(key predicted_ns)" "$(key predicted_ns "$tmp/swaps.umplan")"
"$UMADVISE" plan "$trace" --profile v100 --budget 40MiB --no-recompute -o "$tmp/q.umplan" >/dev/null
fails 1 "a workspace that alone exceeds the budget is not taken" grep '"paged":true' "$tmp/q.umplan"

"$UMADVISE" simulate "$trace" --profile v100 --budget 48MiB --no-recompute --plan "$tmp/swaps.umplan" \
	--strategy infinite >"$tmp/sim" 2>&1
ok "the plan is played" grep -q '^plan ' "$tmp/sim"
ok "as predicted, within 5 %" awk '/as predicted/ { gsub(/[+%)]/, ""); exit !($NF < 5 && $NF > -5) }' "$tmp/sim"
ok "the trace is played faster with the plan than without hints" least "$(steady lookahead 64MiB)" \
	"$(steady on-demand 64MiB)"
is "$(steady infinite 64MiB)" 12200000 "unlimited memory takes the fastest"

sed 's/,"ws":\[\[0,3000000\][^]]*\],\[[^]]*\]\]/,"ns":3000000/' "$trace" >"$tmp/small.umtrace"
"$UMADVISE" plan "$tmp/small.umtrace" --profile v100 --budget 48MiB --no-recompute -o "$tmp/small.umplan" >/dev/null
ok "a choice is not slower than the smallest workspaces" least "$(key predicted_ns "$tmp/swaps.umplan")" \
	"$(key predicted_ns "$tmp/small.umplan")"
sed 's/"ws":\[\[0,3000000\],\[[^]]*\],/"ws":[/' "$trace" >"$tmp/fast.umtrace"
"$UMADVISE" plan "$tmp/fast.umtrace" --profile v100 --budget 48MiB --no-recompute -o "$tmp/fast.umplan" >/dev/null
ok "it is 5 % faster than the fastest algorithms" least "$(($(key predicted_ns "$tmp/swaps.umplan") * 21 / 20))" \
	"$(key predicted_ns "$tmp/fast.umplan")"
fails 1 "a plan of another trace is refused" "$UMADVISE" simulate "$tmp/small.umtrace" --profile v100 --budget 48MiB \
	--plan "$tmp/swaps.umplan"
tap_done
