#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# umadvise plan --bound, simulate --bound: the figure is in the header and in the tables, and no plan is below it.
. "${top_srcdir:=.}/tests/tap.sh"

data=$top_srcdir/tests/data
number() { sed -n "1s/.*\"$1\":\([0-9]*\).*/\1/p" "$2"; }

# With sanitizers all is slow, and two show what they can show. gpt2_small and resnet50 have the largest programs.
workloads=(cg_laplace3d alexnet_b200)
[ -n "${SANITIZE-}" ] || workloads+=(vgg16 lstm_lm)
[ -n "${SANITIZE-}" ] || [ -z "${UM_TEST_ALL-}" ] || workloads+=(gpt2_small resnet50)
for w in "${workloads[@]}"; do
	for r in 1.25 1.5; do
		case $w in
		cg_laplace3d | alexnet_b200) ;;
		*) [ "$r" = 1.5 ] || continue ;; # one ratio: each takes seconds
		esac
		"$UMADVISE" plan "$data/$w.umtrace.gz" --oversubscribe "$r" -o "$tmp/a.umplan" >/dev/null
		said=$("$UMADVISE" plan "$data/$w.umtrace.gz" --oversubscribe "$r" --bound -o "$tmp/b.umplan" \
			2>/dev/null)
		like "$said" ', bound [0-9.]+ ms, x bound [0-9.]+$' "$w at ${r}x: is said"
		bound=$(number bound_ns "$tmp/b.umplan")
		ok "$w at ${r}x: no less than what the planner knows" test "$bound" -ge \
			"$(number bound_ns "$tmp/a.umplan")"
		ok "$w at ${r}x: no less than the ops take" test "$bound" -ge "$(number in_core_ns "$tmp/b.umplan")"
		ok "$w at ${r}x: no more than the plan takes" test "$bound" -le \
			"$(number predicted_ns "$tmp/b.umplan")"
		is "$(sed 's/"bound_ns":[0-9]*//' "$tmp/b.umplan")" "$(sed 's/"bound_ns":[0-9]*//' "$tmp/a.umplan")" \
			"$w at ${r}x: the plan itself is the same"
	done
done

run=("$UMADVISE" simulate "$data/vgg16.umtrace.gz" --oversubscribe 1.5 --strategy "infinite,lookahead")
table=$("${run[@]}" --bound --no-recompute 2>/dev/null)
like "$table" 'from +bound ms +x bound$' "a table has the columns"
like "$table" '^lookahead.* [0-9.]+ +1\.[0-9]+$' "the library is above it"
like "$table" '^infinite.* - +-$' "endless memory is not held to it"
like "$("${run[@]}" --bound --format csv 2>/dev/null | tail -n 1)" ',[0-9]{7,},library,,.$' \
	"csv has it before the pattern"
like "$("${run[@]}" --bound --format json 2>/dev/null)" '"bound_ns": [0-9]{7,}' "json has it"
is "$("${run[@]}" | grep -c bound)" 0 "without --bound nothing is said of a bound"

copied=$("${run[@]}" --bound --bound-copies --no-recompute 2>/dev/null)
like "$copied" '^lookahead.* [0-9.]+ +1\.[0-9]+$' "the library is above the bound that counts the driver's copies, too"

ms() { awk '$1 == "lookahead" { print $(NF - 1) }' <<<"$1"; }
ok "which is higher" awk -v a="$(ms "$copied")" -v b="$(ms "$table")" 'BEGIN { exit !(a > b && b > 0) }'
again=$("${run[@]}" --bound 2>/dev/null)
ok "computing again lowers the bound" awk -v a="$(ms "$again")" -v b="$(ms "$table")" 'BEGIN { exit !(a > 0 && a < b) }'

cut=$("${run[@]}" --bound --bound-time 1e-6 2>&1)
like "$cut" 'simulate: the bound stopped at --bound-time' "a note says that the bound's time ended"
like "$cut" '^lookahead.* [0-9.]+ +[1-9][0-9.]+$' "the bound proved so far counts"
for bad in 0 -1 soon 1e9 ''; do
	fails 2 "--bound-time '$bad' is refused" "$UMADVISE" plan "$data/cg_laplace3d.umtrace.gz" --bound-time "$bad" \
		-o "$tmp/c.umplan"
done
printf '%s\n' '{"umtrace":1,"workload":"triad"}' \
	'{"ev":"alloc","t":0,"bytes":67108864}' '{"ev":"alloc","t":1,"bytes":67108864}' \
	'{"ev":"alloc","t":2,"bytes":67108864}' >"$tmp/triad.umtrace"
for n in 0 1 2; do
	printf '%s\n' "{\"ev\":\"iter\",\"n\":$n}" \
		'{"ev":"op","name":"triad","r":[0,1],"w":[2],"flops":0,"bytes":201326592}'
done >>"$tmp/triad.umtrace"
said=$("$UMADVISE" plan "$tmp/triad.umtrace" --oversubscribe 1.5 --bound -o "$tmp/t.umplan" 2>&1 >/dev/null)
like "$said" 'operations above the budget .* is the time in core$' "an operation above the budget has no better bound"
is "$(number bound_ns "$tmp/t.umplan")" "$(number in_core_ns "$tmp/t.umplan")" "its bound is the time in core"
ok "what it uses beyond the budget stays on the host" grep -q '"advice":"accessed_by"' "$tmp/t.umplan"
tap_done
