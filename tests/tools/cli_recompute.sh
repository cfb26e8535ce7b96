#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# umadvise plan, simulate: --recompute is the default where the trace allows it, and plans with it are shown and played.
. "${top_srcdir:=.}/tests/tap.sh"

trace=$top_srcdir/tests/data/resnet50.umtrace.gz
plan() { "$UMADVISE" plan "$@"; }
number() { sed -n "1s/.*\"$1\":\([0-9]*\).*/\1/p" "$2"; }
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0 && a < b) }'; }

said=$(plan "$trace" --oversubscribe 2 -o "$tmp/again.umplan")
like "$said" 'in core 47\.[0-9]+ ms, .*, launched again [0-9.]+ ms$' "a plan says how long it launches again"
ok "it is the default where operations may be launched again" grep -q '"kind":"recompute"' "$tmp/again.umplan"
plan "$trace" --oversubscribe 2 --recompute -o "$tmp/same.umplan" >/dev/null
ok "--recompute is the default" cmp -s "$tmp/again.umplan" "$tmp/same.umplan"
like "$(plan "$trace" --oversubscribe 2 --no-recompute -o "$tmp/swaps.umplan")" 'of 768\.6 MiB$' \
	"without relaunches nothing is said of them"
is "$(grep -c '"kind":"recompute"' "$tmp/swaps.umplan")" 0 "--no-recompute launches nothing again"
ok "the plan takes less than two thirds of the time" less "$(($(number predicted_ns "$tmp/again.umplan") * 3 / 2))" \
	"$(number predicted_ns "$tmp/swaps.umplan")"

# The search for the gaps is near its best.
for limit in '2 108' '3 117'; do
	plan "$trace" --profile a100 --oversubscribe "${limit% *}" -o "$tmp/near.umplan" >/dev/null
	ok "at ${limit% *}x a plan takes at most ${limit#* } % of the time in core" less \
		"$(($(number predicted_ns "$tmp/near.umplan") * 100))" \
		"$(($(number in_core_ns "$tmp/near.umplan") * ${limit#* }))"
done

# Neither an order's prefix nor changes of single gaps lead to this one.
plan "$top_srcdir/tests/data/cifar_vgg16_b100.umtrace.gz" --oversubscribe 2 -o "$tmp/short.umplan" >/dev/null
ok "gaps are replaced by others: a plan of 354 operations takes at most 124 % of the time in core" less \
	"$(($(number predicted_ns "$tmp/short.umplan") * 100))" "$(($(number in_core_ns "$tmp/short.umplan") * 124))"

# What cannot be launched again, and what fits, is planned as before.
zcat "$trace" | sed 's/,"relaunch":\[[^]]*\]//' >"$tmp/none.umtrace"
plan "$tmp/none.umtrace" --oversubscribe 2 -o "$tmp/none.umplan" >/dev/null
is "$(grep '"hint"' "$tmp/none.umplan" | cksum)" "$(grep '"hint"' "$tmp/swaps.umplan" | cksum)" \
	"a trace without relaunch gets the plan of --no-recompute"
like "$(plan "$trace" --oversubscribe 1 -o "$tmp/fits.umplan")" 'of 1537\.3 MiB$' "what fits launches nothing again"
plan "$trace" --oversubscribe 2 --strategy superneurons -o "$tmp/layers.umplan" >/dev/null
ok "superneurons makes cheap layers again" grep -q '"kind":"recompute"' "$tmp/layers.umplan"
is "$(plan --show "$tmp/layers.umplan" | grep -c '^convolution .* again')" 0 "but no convolution"
plan "$trace" --oversubscribe 2 --strategy capuchin -o "$tmp/pairs.umplan" >/dev/null
ok "capuchin makes tensors again" grep -q '"kind":"recompute"' "$tmp/pairs.umplan"
plan "$trace" --oversubscribe 2 --strategy capuchin --no-recompute -o "$tmp/pairs.umplan" >/dev/null
plan "$tmp/none.umtrace" --oversubscribe 2 --strategy capuchin -o "$tmp/none.umplan" >/dev/null
is "$(grep '"hint"' "$tmp/none.umplan" | cksum)" "$(grep '"hint"' "$tmp/pairs.umplan" | cksum)" \
	"without relaunch its plan is that of --no-recompute"
plan "$trace" --oversubscribe 2 --strategy autoswap-swdoa -o "$tmp/scheme.umplan" >/dev/null
is "$(grep -c '"kind":"recompute"' "$tmp/scheme.umplan")" 0 "another scheme launches nothing again"

# Shown.
show=$(plan --show "$tmp/again.umplan")
like "$show" '^schedule +1000 ops, 1146 slots' "operations and slots are those of the program"
like "$show" '^again +[0-9]+ ops are launched again, [0-9.]+ ms \([0-9.]+ % of in core\)' \
	"the header has the relaunches"
like "$show" '^native_batch_norm +[0-9]+ +[0-9.]+ +[0-9.]+$' "a table has them by operation"
like "$show" ' again +[0-9]+ ' "the table of evictions says what is made again"
query() { python3 -c 'import json, sys; d = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"; }
again=$(grep -c '"kind":"recompute"' "$tmp/again.umplan")
plan --show "$tmp/again.umplan" -f json >"$tmp/show.json"
is "$(query '(d["plan"]["relaunches"], d["plan"]["relaunch_ns"] > 0)' <"$tmp/show.json")" "($again, True)" \
	"JSON has the relaunches"
is "$(query 'd["plan"]["relaunched_bytes"] - sum(e["dropped_bytes"] for e in d["leaves"] if e["again"])' \
	<"$tmp/show.json")" 0 "and what they make again"
plan --show "$tmp/again.umplan" --svg "$tmp/a.svg" --timeline "$tmp/a.json" >/dev/null
ok "the drawing has relaunches in a colour of their own" grep -q 'launched again' "$tmp/a.svg"
is "$(query 'sum(e["name"].startswith("recompute") for e in d["traceEvents"]) > 20' <"$tmp/a.json")" True \
	"the timeline has them as hints"
is "$(plan --diff "$tmp/again.umplan" "$tmp/again.umplan" | tail -n 1)" \
	"$(plan --diff "$tmp/again.umplan" "$tmp/again.umplan" | tail -n 1)" "a plan is compared with itself"
like "$(plan --diff "$tmp/again.umplan" "$tmp/swaps.umplan" | tail -n 1)" '^[1-9][0-9]* evicted in A only, [1-9]' \
	"and with one without relaunches"

# Played.
run=("$UMADVISE" simulate "$trace" --oversubscribe 2 --strategy lookahead)
ms() { awk '$1 == "lookahead" { print $2 }' <<<"$1"; }
table=$("${run[@]}")
like "$table" '^  launched again .*: [0-9]+ operations by lookahead$' "a note below the table says so"
without=$("${run[@]}" --no-recompute)
is "$(grep -c 'launched again' <<<"$without")" 0 "there is none with --no-recompute"
ok "lookahead takes less than half of the time" less "$(awk -v t="$(ms "$table")" 'BEGIN { print 2 * t }')" \
	"$(ms "$without")"
like "$("${run[@]}" -f json)" '"relaunches": [1-9]' "JSON has the number of relaunches"
like "$("${run[@]}" --bound)" '^lookahead .* 1\.[0-9]+$' "it is above the bound"
played=$("$UMADVISE" simulate "$trace" --plan "$tmp/again.umplan" --strategy infinite --jitter 25)
like "$played" '^plan ' "a file is played"
ok "with jitter within 8 % of what was predicted" less "$(
	sed -n 's/.*(played: \([-+][0-9.]*\) %)/\1/p' <<<"$played" | awk '{ print $1 + 100 }'
)" 108
tap_done
