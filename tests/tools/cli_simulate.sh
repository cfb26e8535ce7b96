#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# umadvise simulate: its forms, its promises on the recorded workloads, and what it says of what it cannot do.
. "${top_srcdir:=.}/tests/tap.sh"

data=$top_srcdir/tests/data

simulate() { "$UMADVISE" simulate "$@"; }

# Runs Python over the JSON document in $1 ("d"); what it prints.
query() { python3 -c 'import json,sys
from math import prod
d = json.load(open(sys.argv[1]))
R = d["runs"]
def run(trace, strategy):
    return next(r for r in R if r["trace"] == trace and r["strategy"] == strategy)
exec(sys.argv[2])' "$1" "$2"; }

five=("$data"/resnet50.umtrace.gz "$data"/vgg16.umtrace.gz "$data"/gpt2_small.umtrace.gz
	"$data"/cg_laplace3d.umtrace.gz "$data"/lstm_lm.umtrace.gz)

ok "five workloads are simulated at 1.5x on v100" \
	simulate "${five[@]}" --profile v100 --oversubscribe 1.5 --format json \
	-o "$tmp/a.json"
is "$(query "$tmp/a.json" 'print(d["schema"], len(R))')" "umsimulate/1 20" "one document, a run per trace and strategy"
is "$(query "$tmp/a.json" 'print(" ".join(sorted(R[0])))')" \
	"$(printf '%s ' budget_bytes d2h_bytes faults first_hinted_iteration h2d_bytes hints host_bytes in_core_ns \
		irregular oversubscribe pattern pattern_most peak_resident_bytes planned_ns played_ns profile stall_ns \
		steady_most_ns steady_ns strategy sum_ns)trace" "the keys of a run"
is "$(query "$tmp/a.json" 'print([r["trace"] for r in R if r["strategy"]=="lookahead" and r["faults"]])')" "[]" \
	"lookahead: no fault in a steady iteration"
is "$(query "$tmp/a.json" 'print([r["trace"] for r in R if r["strategy"]=="infinite" and
    r["steady_ns"] != r["in_core_ns"]])')" "[]" "infinite: a steady iteration takes what its ops take"
is "$(query "$tmp/a.json" 'print([r["trace"] for r in R if r["peak_resident_bytes"] > r["budget_bytes"]])')" "[]" \
	"no strategy exceeds the budget"
is "$(query "$tmp/a.json" 'print([r["trace"] for r in R if r["strategy"]=="lookahead" and r["steady_ns"] > min(
    run(r["trace"], "on-demand")["steady_ns"], run(r["trace"], "prefetch-on-use")["steady_ns"])])')" "[]" \
	"lookahead: never slower than on-demand or prefetch-on-use"
is "$(query "$tmp/a.json" 'print(prod(run(t, "on-demand")["steady_ns"] / run(t, "lookahead")["steady_ns"]
    for t in {r["trace"] for r in R}) ** (1 / 5) >= 3)')" "True" \
	"lookahead is at least 3x faster than on-demand by geometric mean"
# The schedule of cg_laplace3d fits from the second iteration on, and its plan begins with the third. The others depart
# from their first guess, and wait for two fitting iterations in a row.
is "$(query "$tmp/a.json" 'print(sorted((r["trace"], r["first_hinted_iteration"]) for r in R
    if r["strategy"]=="lookahead"))')" \
	"[('cg_laplace3d', 2), ('gpt2_small', 4), ('lstm_lm', 4), ('resnet50', 4), ('vgg16', 4)]" \
	"lookahead: a plan begins once an iteration has fitted it, after a wrong guess once two have"

simulate --strategy autoswap --oversubscribe 1.5 --iterations 6 "$data/resnet50.umtrace.gz" -f json \
	-o "$tmp/scheme.json"
is "$(query "$tmp/scheme.json" 'print(R[0]["first_hinted_iteration"])')" "1" \
	"a published scheme, which predicts no op, follows its plan from the second iteration on"

# On-demand is a range over patterns.
for pattern in library narrow wide; do
	simulate "${five[@]}" --oversubscribe 1.5 --strategy on-demand --pattern $pattern -f json -o "$tmp/p_$pattern"
	is "$(query "$tmp/p_$pattern" 'print({(r["pattern"], r["steady_most_ns"], r["pattern_most"]) for r in R})')" \
		"{('$pattern', None, None)}" "--pattern $pattern: its own time, no range"
done
is "$(query "$tmp/a.json" 'each = lambda p: json.load(open(sys.argv[1].replace("a.json", "p_" + p)))["runs"]
P = {p: {r["trace"]: r["steady_ns"] for r in each(p)} for p in ("library", "narrow", "wide")}
print([r["trace"] for r in R if r["strategy"] == "on-demand" and
    ((r["steady_ns"], r["pattern"]) != min((P[p][r["trace"]], p) for p in P) or
     (r["steady_most_ns"], r["pattern_most"]) != max((P[p][r["trace"]], p) for p in P))])')" "[]" \
	"on-demand is the least time of the patterns and the most"
is "$(query "$tmp/a.json" 'print([r["trace"] for r in R if r["strategy"] == "on-demand" and
    r["steady_most_ns"] < 1.3 * r["steady_ns"]])')" "[]" "the most is at least 1.3 times the least"
is "$(query "$tmp/a.json" 'print({(r["pattern"], r["steady_most_ns"], r["pattern_most"]) for r in R
    if r["strategy"] != "on-demand"})')" "{('library', None, None)}" "other strategies have one pattern"
range=$(simulate "$data/cg_laplace3d.umtrace.gz" --oversubscribe 1.5 --strategy infinite,on-demand)
like "$range" "
on-demand, least +[0-9.]+ .*
on-demand, most +[0-9.]+ .*
  on-demand: least with pattern '[a-z]+', most with pattern 'narrow'" "the table has a row for each end"
is "$(simulate "$data/cg_laplace3d.umtrace.gz" --oversubscribe 0.9 --strategy on-demand | grep -c '^on-demand  ')" 1 \
	"where nothing is missing there is one row"
is "$(simulate "$data/cg_laplace3d.umtrace.gz" --oversubscribe 1.5 --strategy on-demand --per-iteration |
	grep -c '^  [0-9]')" 8 "iterations are shown of the least"

# With hardware coherence the driver's paging is another.
coherent=(simulate "$data/cg_laplace3d.umtrace.gz" --profile gh200 --oversubscribe 1.5 --strategy "on-demand,lookahead")
like "$("${coherent[@]}")" "
on-demand +- .*
lookahead +[0-9.]+ .*
  on-demand: not modelled on gh200" "gh200: on-demand has no figures, and a line says why"
"${coherent[@]}" -f csv | tr -d '\r' >"$tmp/gh200.csv"
is "$(awk -F, '{ print NF }' "$tmp/gh200.csv" | uniq | wc -l)" 1 "gh200: csv has the same columns in each row"
is "$(sed -n 2p "$tmp/gh200.csv" | cut -d, -f5-)" "on-demand,,,,,,,,,,,,,," "gh200: csv has no figures of on-demand"
"${coherent[@]}" -f json -o "$tmp/gh200.json"
is "$(query "$tmp/gh200.json" 'print([r["steady_ns"] is None for r in R])')" "[True, False]" "gh200: json has null"
fails 2 "an unknown pattern is refused" simulate "$data/cg_laplace3d.umtrace.gz" --pattern tiled

ok "buffers that swap are simulated at the program's places" \
	simulate "$data/stencil_slabs.umtrace.gz" --oversubscribe 1.5 \
	--format json --iterations 12 --per-iteration -o "$tmp/s.json"
is "$(query "$tmp/s.json" 'r, o = [run(R[0]["trace"], s) for s in ("lookahead", "on-demand")]
print([i["faults"] for i in r["iterations"][6:]], r["steady_ns"] * 3 < o["steady_ns"])')" \
	"[0, 0, 0, 0, 0, 0] True" "lookahead: no fault whoever's turn it is, and three times as fast as on-demand"

ok "the same simulation runs again" simulate "${five[@]}" --profile v100 --oversubscribe 1.5 --format json -o \
	"$tmp/b.json"
ok "gives the same bytes" cmp "$tmp/a.json" "$tmp/b.json"

ok "a simulation with room for all succeeds" simulate "${five[@]}" --oversubscribe 0.9 --format json -o "$tmp/c.json"
is "$(query "$tmp/c.json" 'print([(r["trace"], r["steady_ns"] / r["in_core_ns"]) for r in R
    if r["strategy"]=="lookahead" and r["steady_ns"] > 1.01 * r["in_core_ns"]])')" "[]" \
	"lookahead is within 1 % of infinite"
is "$(query "$tmp/c.json" 'print([(r["trace"], r["peak_resident_bytes"]) for r in R if r["strategy"]=="lookahead" and
    r["peak_resident_bytes"] > 1.03 * r["budget_bytes"] * 0.9 + (2 << 20)])')" "[]" \
	"what is resident stays within 3 % of what is alive"

ok "shapes that change" simulate "$data/transformer_varlen.umtrace.gz" --oversubscribe 1.5 --per-iteration \
	--format json --strategy on-demand,lookahead --iterations 16 -o "$tmp/v.json"
is "$(query "$tmp/v.json" 'ns = [sum(i["ns"] for i in r["iterations"]) for r in R]
print(ns[1] < 0.7 * ns[0])')" True \
	"lookahead takes less than 0.7 times as long as on-demand where no iteration repeats"
is "$(query "$tmp/v.json" 'print([(r["irregular"], r["sum_ns"] == sum(i["ns"] for i in r["iterations"][2:]),
    r["steady_ns"] == r["sum_ns"] // 14) for r in R])')" "[(True, True, True), (True, True, True)]" \
	"figures are means over the iterations from the third on where these are not all alike"
is "$(query "$tmp/s.json" 'print([(r["irregular"], r["sum_ns"] == sum(i["ns"] for i in r["iterations"][2:]),
    r["steady_ns"] == r["iterations"][-1]["ns"]) for r in R])' | uniq)" "$(query "$tmp/s.json" \
	'print([(False, True, True)] * len(R))')" "they are those of the last iteration where all are alike"
like "$(simulate "$data/transformer_varlen.umtrace.gz" --oversubscribe 1.5 --strategy on-demand)" \
	"not all alike: figures are means over all of them from the third on" "a note below the table says so"
is "$(simulate "$data/cg_laplace3d.umtrace.gz" --oversubscribe 1.5 --strategy on-demand | grep -c alike)" 0 \
	"there is no note where all are alike"
is "$(query "$tmp/v.json" 'print(" ".join(sorted(R[0]["iterations"][0])), len(R[0]["iterations"]))')" \
	"$(printf '%s ' announced announced_bytes d2h_bytes faults first_op h2d_bytes helped kind n ns predicted \
		predicted_bytes scheduled scheduled_bytes)stall_ns 16" "the keys of an iteration"
is "$(query "$tmp/s.json" 'print([[r[k] for k in ("h2d_bytes", "d2h_bytes")] ==
    [r["iterations"][-1][k] for k in ("h2d_bytes", "d2h_bytes")] for r in R] == [True] * len(R))')" True \
	"an iteration counts the bytes that were copied in it"
is "$(query "$tmp/v.json" 'print([i["helped"] for r in R for i in r["iterations"]] ==
    [i["ns"] < o["ns"] for r in R for i, o in zip(r["iterations"], R[0]["iterations"])])')" True \
	"an iteration is helped if it was faster than under on-demand"
is "$(query "$tmp/v.json" 'print(sum(i["predicted"] for i in R[1]["iterations"]) > 0,
    sum(i["announced_bytes"] for i in R[1]["iterations"]) > 0, len({i["kind"] for i in R[1]["iterations"]}) > 2)')" \
	"True True True" "its hints are of predicted ops and of those at hand, its kinds are several"
is "$(query "$tmp/s.json" 'print([(i["scheduled"] > 0, i["predicted"], i["announced"], i["kind"])
    for i in run(R[0]["trace"], "lookahead")["iterations"][-2:]])')" \
	"[(True, 0, 0, '#1'), (True, 0, 0, '#1')]" "all hints of a steady iteration are the plan's"
simulate "$data/transformer_varlen.umtrace.gz" --oversubscribe 1.5 --per-iteration --strategy lookahead,on-demand \
	--iterations 16 >"$tmp/v.table"
like "$(cat "$tmp/v.table")" "helped
lookahead .* [0-9]+ of 16
" "the table counts helped iterations, though on-demand comes last"
like "$(sed '1,/^Kinds/d' "$tmp/v.table")" "^  strategy +kind +met +hinted +helped +time ms +x on-demand
  lookahead +#1 +2 +" "a table by kind of iteration follows"
like "$(simulate "$data/cg_laplace3d.umtrace.gz" --oversubscribe 1.5 --per-iteration --strategy lookahead)" \
	"hints helped is known only if on-demand is among the strategies" \
	"without on-demand a note says what is missing"
simulate "$data/cg_laplace3d.umtrace.gz" --oversubscribe 1.5 --per-iteration --strategy on-demand,lookahead \
	--format csv >"$tmp/i.csv"
is "$(head -n 1 "$tmp/i.csv" | tr -d '\r' | cut -d, -f6-)" \
	"$(printf '%s,' n ns faults stall_ns helped scheduled predicted announced scheduled_bytes \
		predicted_bytes announced_bytes h2d_bytes)d2h_bytes" "csv: the columns of iterations"
is "$(tail -n 1 "$tmp/i.csv" | cut -d, -f10)" 1 "csv: hints helped the last iteration"

for percent in 0 25; do
	ok "kernels off by $percent %" simulate "${five[@]}" --oversubscribe 1.5 --strategy infinite,lookahead \
		--jitter $percent --iterations 12 --per-iteration --format json -o "$tmp/j$percent.json"
done
is "$(query "$tmp/j25.json" 'print([r["trace"] for r in R if r["strategy"]=="infinite" and
    abs(r["steady_ns"] / r["in_core_ns"] - 1) > 1e-3])')" "[]" "the sum of the kernels stays"
is "$(query "$tmp/j0.json" 'calm, off = d["runs"], json.load(open(sys.argv[1].replace("/j0.json", "/j25.json")))["runs"]
loss = [b["steady_ns"] / a["steady_ns"] for a, b in zip(calm, off) if a["strategy"] == "lookahead"]
print(len(loss), sum(x != 1 for x in loss), max(loss) < 1.03, sum(r["faults"] for r in off))')" "5 5 True 0" \
	"lookahead: less than 3 % slower, no fault"
is "$(query "$tmp/j0.json" 'second = lambda r: r["first_hinted_iteration"] + 1
print([(r["trace"], r["iterations"][:5]) for r in R if r["strategy"]=="lookahead" and
    (sum(i["faults"] for i in r["iterations"][second(r):]) > r["iterations"][0]["faults"] / 100 or
     r["iterations"][second(r)]["ns"] > 2 * r["steady_ns"])])')" "[]" \
	"lookahead: hardly a fault after the first iteration under a plan, and less than twice the steady time"
is "$(query "$tmp/j25.json" 'print(all(len({i["ns"] for i in r["iterations"][6:]}) > 3 for r in R
    if r["strategy"]=="lookahead"))')" True "each iteration has kernels of its own"
is "$(query "$tmp/j25.json" 'print(all(r["steady_ns"] == sum(i["ns"] for i in r["iterations"][6:]) // 6
    for r in R))')" True "the figures are means"
jitter() { simulate "$data/cg_laplace3d.umtrace.gz" --oversubscribe 1.1 --strategy lookahead --jitter 25 "$@"; }
is "$(jitter --seed 0)" "$(jitter)" "the same seed gives the same kernels"
ok "another seed gives other figures" test "$(jitter --seed 1)" != "$(jitter)"
fails 2 "jitter of 100 % is refused" jitter --jitter 100
fails 2 "negative jitter is refused" jitter --jitter -1
fails 2 "a seed that is none" jitter --seed x
is "$("$UMADVISE" plan "$data/cg_laplace3d.umtrace.gz" --jitter 5 -o "$tmp/p" 2>&1)" \
	"umadvise plan: unknown option '--jitter': it is an option of umadvise simulate" "a plan has none"

ok "a trace with an op that exceeds the budget is played under all strategies" \
	simulate "$data/lstm_lm.umtrace.gz" --oversubscribe 3
fails 2 "a missing trace is refused" simulate
fails 2 "an unknown option is refused" simulate --nonesuch x
fails 2 "an unknown strategy is refused" simulate "$data/cg_laplace3d.umtrace.gz" --strategy belady
fails 2 "a ratio of 0 is refused" simulate "$data/cg_laplace3d.umtrace.gz" --oversubscribe 0
fails 2 "a ratio that is none" simulate "$data/cg_laplace3d.umtrace.gz" --oversubscribe nan
fails 2 "two budgets are refused" simulate "$data/cg_laplace3d.umtrace.gz" --oversubscribe 2 --budget 1GiB
fails 2 "a budget below one block is refused" simulate "$data/cg_laplace3d.umtrace.gz" --budget 1
fails 1 "a ratio that leaves less than one block is refused" simulate "$data/good-all-keys.umtrace" --oversubscribe 1000
fails 2 "a budget that is none" simulate "$data/cg_laplace3d.umtrace.gz" --budget 1XB
fails 2 "zero iterations are refused" simulate "$data/cg_laplace3d.umtrace.gz" --iterations 0
fails 2 "an unknown format is refused" simulate "$data/cg_laplace3d.umtrace.gz" --format yaml
fails 3 "a trace that is not there" simulate "$tmp/none"
fails 3 "a trace that is none" simulate "$top_srcdir/README.md"
fails 3 "a profile that is not there" simulate "$data/cg_laplace3d.umtrace.gz" --profile nonesuch
fails 4 "an output that cannot be" simulate "$data/cg_laplace3d.umtrace.gz" --strategy infinite -o "$tmp/no/such/folder"
fails 4 "a full device is reported" \
	sh -c "'$UMADVISE' simulate '$data/cg_laplace3d.umtrace.gz' --strategy infinite >/dev/full"

is "$(query "$tmp/a.json" 'print([r["trace"] for r in R if (r["strategy"] == "lookahead") !=
    bool(r["planned_ns"] and r["in_core_ns"] <= r["planned_ns"] < r["steady_ns"] * 1.1)])')" "[]" \
	"what was planned is told of lookahead, and of no other"

deepum=(simulate "$data/resnet50.umtrace.gz" --oversubscribe 1.5 --strategy "on-demand,deepum")
"${deepum[@]}" >"$tmp/deepum"
is "$(awk '/^on-demand, least/ { ns = $3; faults = $5 }
	/^deepum/ { print $4 * 4 < faults && $2 * 2 < ns }' "$tmp/deepum")" 1 \
	"deepum: less than a quarter of the driver's own faults, and less than half of its time"
is "$("${deepum[@]}")" "$(cat "$tmp/deepum")" "deepum gives the same table each time"

ok "umadvise simulate prints its help" simulate --help
# --- several devices: --devices --------------------------------------------------------------------------------------

two() { simulate "$data/cifar_vgg16_b100.umtrace.gz" --oversubscribe 2 --iterations 16 --no-recompute "$@"; }
steady() { query "$1" 'print(*[r["steady_ns"] for r in R])'; }
two --strategy lookahead --format json >"$tmp/d1"
two --strategy lookahead --devices 2 --per-link 1 --format json >"$tmp/d2"
two --strategy lookahead --devices 2 --per-link 2 --bound --bound-time 5 --format json >"$tmp/d3"
is "$(query "$tmp/d2" 'print(*[(r["strategy"], r["device"]) for r in R])')" "('lookahead', 0) ('lookahead', 1)" \
	"--devices: a row for each"
is "$(steady "$tmp/d2")" "$(steady "$tmp/d1") $(steady "$tmp/d1")" "devices with a link each take the time of one"
ok "two on one link take longer, and neither starves" query "$tmp/d3" 'import sys
t = [r["steady_ns"] for r in R]
sys.exit(not (max(t) <= 1.15 * min(t) and min(t) > 1.2 * '"$(steady "$tmp/d1")"'))'
ok "each takes no more than 1.2 of the bound with its share of the link" query "$tmp/d3" 'import sys
sys.exit(not all(r["bound_ns"] and r["steady_ns"] <= 1.2 * r["bound_ns"] for r in R))'
two --strategy lookahead --devices 2 --per-link 2 --bound --bound-time 5 --format json >"$tmp/d4"
is "$(steady "$tmp/d4")" "$(steady "$tmp/d3")" "the same devices take the same time again"
like "$(two --strategy on-demand --devices 3 --per-link 3)" "^on-demand, device 2 " "the table names the devices"
is "$(two --strategy on-demand --devices 2 --format csv | tr -d '\r' | sed 's/.*,//' | paste -sd ' ')" "device 0 1" \
	"csv: it has a column for them"
two --devices 2 --per-iteration 2>"$tmp/e"
is "$? $(wc -l <"$tmp/e")" "2 1" "--devices with --per-iteration is refused with one line"

simulate --list-strategies >"$tmp/names"
is "$(head -n 4 "$tmp/names" | tr '\n' ' ')" "infinite on-demand prefetch-on-use lookahead " "names of strategies"
ok "each of them is one" simulate "$data/cg_laplace3d.umtrace.gz" --strategy "$(paste -sd, "$tmp/names")"
simulate "$data/cg_laplace3d.umtrace.gz" --budget 776MiB --strategy on-demand,lookahead --format csv >"$tmp/c.csv"
is "$(wc -l <"$tmp/c.csv")" 3 "csv: a heading and a row per run"
is "$(head -n 1 "$tmp/c.csv" | tr -d '\r')" \
	"$(printf '%s,' trace profile oversubscribe budget_bytes strategy steady_ns in_core_ns faults h2d_bytes \
		d2h_bytes stall_ns hints peak_resident_bytes first_hinted_iteration planned_ns played_ns pattern \
		steady_most_ns)pattern_most" "csv: its columns"
like "$(simulate "$data/cg_laplace3d.umtrace.gz" --oversubscribe 1.5)" "^lookahead +[0-9.]+ +[0-9.]+ +0 " \
	"the table has lookahead without faults"
cat >"$tmp/my.profile" <<-EOF
	name = my-card
	capacity = 1 GiB
	flops = 1e12
	mem_bandwidth = 100e9
	launch_ns = 5000
	h2d = 6e9
	d2h = 6e9
EOF
like "$(simulate "$data/cg_laplace3d.umtrace.gz" --profile "$tmp/my.profile" --strategy on-demand)" \
	"on my-card: .* 1024.0 MiB of device memory" "a profile of one's own, and its capacity"

# The same ops, with a cost and without: they read 8 MiB and write 8 MiB.
for cost in '' ',"bytes":16777216'; do
	cat >"$tmp/cost.umtrace" <<-EOF
		{"umtrace":1,"source":"test","workload":"cost"}
		{"ev":"alloc","t":0,"bytes":8388608,"name":"x"}
		{"ev":"alloc","t":1,"bytes":8388608,"name":"y"}
		{"ev":"alloc","t":2,"bytes":8388608,"name":"z"}
		$(for i in 0 1 2 3 4 5; do
			printf '{"ev":"iter","n":%d}\n' $i
			printf '{"ev":"op","name":"%s","r":[%d],"w":[%d]%s}\n' a 0 1 "$cost" b 1 2 "$cost" c 2 0 "$cost"
		done)
	EOF
	n=${cost:+told}
	ok "ops that read and write 16 MiB, with a cost or without${cost:+: $cost}" simulate "$tmp/cost.umtrace" \
		--profile "$tmp/my.profile" --oversubscribe 1.5 --format csv -o "$tmp/cost$n.csv"
	ok "a plan for them" "$UMADVISE" plan "$tmp/cost.umtrace" --profile "$tmp/my.profile" --oversubscribe 1.5 \
		-o "$tmp/cost$n.umplan"
done
ok "an op without a cost is simulated as one that moves each byte it touches once" \
	cmp "$tmp/cost.csv" "$tmp/costtold.csv"
is "$(head -n 2 "$tmp/cost.csv" | tail -n 1 | cut -d, -f7)" 518316 "three launches, and 48 MiB at 100 GB/s"
is "$(grep -o '"ns":[0-9]*' "$tmp/cost.umplan" | paste -sd ' ')" '"ns":172772 "ns":172772 "ns":172772' \
	"a plan counts on the same times"
is "$(sed 's/,"bytes":16777216//' "$tmp/costtold.umplan" | cmp - "$tmp/cost.umplan")" "" \
	"a plan is the same with a cost and without"

# Others that were ahead: AutoSwap with its weights, or without advice for what is only read.
for w in alexnet_b200:a100:1.25:24e9 resnet50:h100:1.25:52e9 cg_laplace3d:h100:3:52e9; do
	IFS=: read -r trace device ratio rate <<<"$w"
	printf '%s\n' "name = ideal-$device" "capacity = 40 GiB" "flops = 1e12" "mem_bandwidth = 1e12" \
		"launch_ns = 3000" "h2d = $rate" "d2h = $rate" "duplex = 1" "eta = 1" >"$tmp/ideal.profile"
	is "$(simulate "$data/$trace.umtrace.gz" --profile "$tmp/ideal.profile" --oversubscribe "$ratio" \
		--strategy lookahead,autoswap,autoswap-doa --format csv |
		awk -F, '$5 == "lookahead" { own = $6 }
			$5 ~ /autoswap/ && (!best || $6 < best) { best = $6 }
			END { print own <= best * 1.01 ? "ahead" : own / best }')" ahead \
		"$trace at $ratio with the link of ideal $device: no more than 1 % behind AutoSwap"
done

# Each iteration replaces tensors by others, as decoding does with its cache: they are born at two places in turn.
awk 'function alloc(name) {
		printf "{\"ev\":\"alloc\",\"t\":%d,\"bytes\":8388608,\"name\":\"%s\"}\n", t, name
		return t++
	}
	function op(name, r, w) {
		printf "{\"ev\":\"op\",\"name\":\"%s\",\"r\":[%s],\"w\":[%d],\"ns\":300000}\n", name, r, w
	}
	BEGIN {
		print "{\"umtrace\":1,\"source\":\"test\"}"
		for (i = 0; i < 4; i++) {
			op("init", "", w[i] = alloc("weight"))
			op("init", "", c[i] = alloc("cache"))
		}
		x = alloc("x")
		for (n = 0; n < 10; n++) {
			printf "{\"ev\":\"iter\",\"n\":%d}\n", n
			for (i = 0; i < 4; i++) {
				op("cat", c[i], new = alloc("cache"))
				printf "{\"ev\":\"free\",\"t\":%d}\n", c[i]
				op("attend", (c[i] = new) "," w[i], x)
			}
		}
	}' >"$tmp/cache.umtrace"
simulate "$tmp/cache.umtrace" --profile h100 --oversubscribe 2 --strategy lookahead --iterations 13 --per-iteration \
	--format json -o "$tmp/cache.json"
is "$(query "$tmp/cache.json" 'print(len({i["ns"] for i in d["runs"][0]["iterations"][-4:]}))')" 1 \
	"places that two tensors take in turn: each second iteration takes as long as the others"
tap_done
