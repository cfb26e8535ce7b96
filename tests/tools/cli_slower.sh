#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# umadvise plan and simulate --at-most-slower: the least memory that costs no more than a share of time
. "${top_srcdir:=.}/tests/tap.sh"

data=$top_srcdir/tests/data
trace=$tmp/net.umtrace
device=(--profile 1080ti --no-recompute)
mib=1048576

# A net of eight layers, small: each search makes a plan for each of many budgets.
awk -v layers=8 'BEGIN {
	tensor = "{\"ev\":\"alloc\",\"t\":%d,\"bytes\":%d,\"name\":\"%s%d\",\"role\":\"%s\"}\n"
	print "{\"umtrace\":1,\"source\":\"by hand\",\"workload\":\"net\"}"
	for (t = 0; t < layers; t++)
		printf tensor, t, 4194304, "w", t, "param"
	for (n = 0; n < 3; n++) {
		printf "{\"ev\":\"iter\",\"n\":%d}\n", n
		for (i = 0; i < layers; i++) {
			act = t++
			printf tensor, act, 16777216, "a", i, "act"
			printf "{\"ev\":\"op\",\"name\":\"forward%d\",\"r\":[%d%s],\"w\":[%d],\"ns\":%d,\"ph\":\"f\"," \
				"\"relaunch\":[%d]}\n", i, i, i ? "," act - 1 : "", act, 300000 + i % 3 * 200000, act
		}
		for (i = layers - 1; i >= 0; i--) {
			grad = t++
			printf tensor, grad, 16777216, "g", i, "grad"
			printf "{\"ev\":\"op\",\"name\":\"backward%d\",\"r\":[%d,%d%s],\"w\":[%d,%d],\"ns\":900000," \
				"\"ph\":\"b\"}\n", i, i, act, i < layers - 1 ? "," grad - 1 : "", grad, i
			printf "{\"ev\":\"free\",\"t\":%d}\n", act--
			if (i < layers - 1)
				printf "{\"ev\":\"free\",\"t\":%d}\n", grad - 1
		}
		printf "{\"ev\":\"free\",\"t\":%d}\n", grad
	}
}' >"$trace"

# Fields of the one row of csv.
field() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR == 2 { print $at[name] }' "$2"; }

"$UMADVISE" plan "$trace" "${device[@]}" --at-most-slower 1% -f csv 2>/dev/null >"$tmp/plan.csv"
is $? 0 "plan --at-most-slower ends with 0"
sed -i 's/\r$//' "$tmp/plan.csv"
is "$(head -n 1 "$tmp/plan.csv")" "trace,profile,strategy,at_most_slower,in_core_ns,alive_bytes,step_bytes,\
budget_bytes,steady_ns,bound_bytes,tried" "csv has a heading"
budget=$(field budget_bytes "$tmp/plan.csv") bound=$(field bound_bytes "$tmp/plan.csv")
core=$(field in_core_ns "$tmp/plan.csv")
is "$(field step_bytes "$tmp/plan.csv")" $((2 * mib)) "budgets are whole blocks"
ok "memory is saved" test "$budget" -lt "$(field alive_bytes "$tmp/plan.csv")"
ok "the bound allows no more than that" test "$bound" -le "$budget"

# Each budget from the bound on, by `plan --budget`.
planned_ns() {
	"$UMADVISE" plan "$trace" "${device[@]}" --budget "$1" -o "$tmp/p.umplan" |
		sed 's/.*steady iteration \([0-9]*\)\.\([0-9]*\) ms.*/\1\2/; s/$/000/'
}
limit=$((core * 101 / 100))
over=0 tried=0
for ((b = bound; b < budget; b += 2 * mib)); do
	tried=$((tried + 1))
	[ "$(planned_ns "$b")" -le "$limit" ] || over=$((over + 1))
done
is "$over" "$tried" "plans for all budgets from the bound up to the result take more than 1 % longer"
ok "the plan for the result takes no more" test "$(planned_ns "$budget")" -le "$limit"
is "$(field tried "$tmp/plan.csv")" $((tried + 1)) "each of them was tried"
"$UMADVISE" plan "$trace" "${device[@]}" --budget $((bound - 2 * mib)) --bound -o "$tmp/p.umplan" >/dev/null 2>&1
ok "the bound of a block less is more than 1 % longer" \
	test "$(sed -n '1s/.*"bound_ns":\([0-9]*\).*/\1/p' "$tmp/p.umplan")" -gt "$limit"

table=$("$UMADVISE" plan "$trace" "${device[@]}" --at-most-slower 1 2>/dev/null)
like "$table" "least memory on 1080ti with which iterations are planned at most 1 % longer" "a table has a title"
like "$table" "^net +lookahead .* $((budget / mib)).0 " "it has the budget in MiB"
json=$("$UMADVISE" plan "$trace" "${device[@]}" --at-most-slower 1% -f json 2>/dev/null | python3 -c '
import json, sys
d = json.load(sys.stdin)
print(d["schema"], d["time"], d["rows"][0]["budget_bytes"], d["rows"][0]["at_most_slower"])')
is "$json" "umleast/1 planned $budget 0.01" "json has the same budget"
"$UMADVISE" plan "$trace" "${device[@]}" --at-most-slower 1% -o "$tmp/least.umplan" >/dev/null 2>&1
like "$(head -n 1 "$tmp/least.umplan")" "\"budget\":$budget," "-o writes the plan for this budget"

# More than one, and as played.
rows=$("$UMADVISE" plan "$trace" "$data/cg_laplace3d.umtrace.gz" "${device[@]}" --at-most-slower 5 \
	--strategy lookahead,appobmem -f csv 2>/dev/null | cut -d, -f1,3 | tail -n +2)
is "$rows" "net,lookahead
net,appobmem
cg_laplace3d,lookahead
cg_laplace3d,appobmem" "each workload and strategy has a row"
"$UMADVISE" simulate "$trace" "${device[@]}" --at-most-slower 1% -f csv -o "$tmp/played.csv" 2>/dev/null
played=$(field budget_bytes <(tr -d '\r' <"$tmp/played.csv"))
ns() {
	"$UMADVISE" simulate "$trace" "${device[@]}" --budget "$1" --strategy lookahead -f csv | tail -n 1 | cut -d, -f6
}
ok "simulate finds a budget in which iterations are played in time" test "$(ns "$played")" -le "$limit"
ok "and a block less takes longer" test "$(ns $((played - 2 * mib)))" -gt "$limit"
is "$("$UMADVISE" simulate "$data/cifar_vgg16_b100.umtrace.gz" "${device[@]}" --at-most-slower 1% \
	--strategy on-demand -f csv 2>/dev/null | tail -n 1 | cut -d, -f3,9 | tr -d '\r')" "on-demand," \
	"where no budget is enough the field is empty"

# With relaunches, which are the default.
least() { "$UMADVISE" "$1" "$trace" --profile 1080ti --at-most-slower "${@:2}" -f csv 2>/dev/null | tr -d '\r'; }
least plan 10% >"$tmp/again.csv"
least plan 10% --no-recompute >"$tmp/swaps.csv"
ok "plans that launch operations again need less memory" test "$(field budget_bytes "$tmp/again.csv")" -lt \
	"$(field budget_bytes "$tmp/swaps.csv")"
ok "their bound allows less memory, too" test "$(field bound_bytes "$tmp/again.csv")" -lt \
	"$(field bound_bytes "$tmp/swaps.csv")"
least simulate 10% --iterations 4 --bound-time 1 >"$tmp/again.csv"
played=$(field budget_bytes "$tmp/again.csv")
ok "simulate finds a budget in which iterations with relaunches are played in time" \
	test "$(field steady_ns "$tmp/again.csv")" -le $((core * 11 / 10))
ok "without relaunches they take longer in that memory" test "$(ns "$played")" -gt $((core * 11 / 10))

# Mistakes.
wrong() { # PATTERN ARGUMENT...
	local got rc=0
	got=$("$UMADVISE" "${@:2}" 2>&1 >"$tmp/out") || rc=$?
	is "$rc $(wc -l <<<"$got") $(wc -c <"$tmp/out")" "2 1 0" "${*:2}: status 2, one line, no output"
	like "$got" "$1" "it says why: $1"
}
wrong "--at-most-slower.*--budget|--budget.*--at-most-slower" plan "$trace" --at-most-slower 1% --budget 1GiB
for text in 1x % 1%% "" nan -1 1001; do
	wrong "'$text': expected a percentage up to 1000" plan "$trace" --at-most-slower "$text"
done
wrong "expected strategies that plan" plan "$trace" --at-most-slower 1% --strategy on-demand
wrong "infinite has no limit" simulate "$trace" --at-most-slower 1% --strategy lookahead,infinite
wrong "expected one trace and one --strategy" plan "$trace" "$trace" --at-most-slower 1% -o "$tmp/x.umplan"
wrong "figures to standard output: expected -o FILE" plan "$trace" --at-most-slower 1% -o -
wrong "--format csv" plan --show "$tmp/least.umplan" -f csv
wrong "--export" simulate "$trace" --at-most-slower 1% --strategy lookahead --export "$tmp/x.sqlite"
tap_done
