#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# umadvise simulate --ranks: one batch on several GPUs
. "${top_srcdir:=.}/tests/tap.sh"

data=$top_srcdir/tests/data
trace=$data/cifar_vgg16_b100.umtrace.gz
simulate() { "$UMADVISE" simulate "$trace" --profile 1080ti --oversubscribe 3 "$@"; }

simulate --ranks 6 -f csv --svg "$tmp/r.svg" 2>"$tmp/err" | tr -d '\r' >"$tmp/r.csv"
is "$(cat "$tmp/err")" "" "--ranks says nothing on stderr"
is "$(head -n 1 "$tmp/r.csv")" "trace,profile,strategy,gpus,budget_bytes,peak_bytes,ring_bytes_per_s,reduced_bytes,\
collective_ns,exposed_ns,in_core_ns,steady_ns,gpu_hours" "csv has a heading"
# Field $2 of the row with $1 GPUs.
field() {
	awk -F, -v n="$1" -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } $4 == n { print $at[name] }' \
		"$tmp/r.csv"
}
is "$(cut -d, -f4 "$tmp/r.csv" | tail -n +2 | xargs)" "1 2 4 6" "rows are powers of two, and the number that is asked"
is "$(cut -d, -f3 "$tmp/r.csv" | tail -n +2 | sort -u)" "lookahead" "the strategy is lookahead"
is "$(($(field 1 peak_bytes) / 3))" "$(field 1 budget_bytes)" "--oversubscribe is that of one GPU"
is "$(cut -d, -f5 "$tmp/r.csv" | tail -n +2 | sort -u | wc -l)" 1 "each GPU has the same memory"
ok "more GPUs need less memory each" test "$(field 4 peak_bytes)" -lt "$(field 2 peak_bytes)"
ok "but more than a share, since parameters are replicated" \
	test $(($(field 4 peak_bytes) * 4)) -gt "$(field 1 peak_bytes)"
is "$(field 1 reduced_bytes)" 0 "one GPU reduces nothing"
# Bytes of the parameters, read from the trace.
params=$(python3 -c '
import gzip, json, sys
events = map(json.loads, gzip.open(sys.argv[1]))
print(sum(e["bytes"] for e in events if e.get("role") == "param"))' "$trace")
is "$(field 2 reduced_bytes)" "$params" "gradients of all parameters are reduced"
ok "a ring of four takes one and a half times that of two" \
	test $(($(field 4 collective_ns) - $(field 2 collective_ns) * 3 / 2)) -le 10
ok "steps take longer than with all data resident" test "$(field 2 steady_ns)" -ge "$(field 2 in_core_ns)"
alone=$(simulate --strategy lookahead -f csv | tail -n 1)
is "$(field 1 steady_ns)" "$(cut -d, -f6 <<<"$alone")" "one GPU takes the time of simulate without --ranks"
ok "--svg draws the rows" grep -q 'lookahead on 6: .* GPU-hours' "$tmp/r.svg"
ok "the drawing is XML" python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$tmp/r.svg"

# What shares a link, and how fast the ring is.
simulate --ranks 2 --per-link 2 -f csv | tr -d '\r' >"$tmp/shared.csv"
shared=$(tail -n 1 "$tmp/shared.csv" | cut -d, -f12)
ok "two GPUs that share a link take longer" test "$shared" -gt "$(field 2 steady_ns)"
fast=$(simulate --ranks 4 --collective ring,100GB/s -f csv | tail -n 1 | cut -d, -f10)
ok "a faster ring exposes less" test "$fast" -lt "$(field 4 exposed_ns)"
is "$(simulate --ranks 2 --collective ring,12e9 -f csv | tail -n 1)" \
	"$(simulate --ranks 2 --collective ring,12GB/s -f csv | tail -n 1)" "a rate may be in bytes per second"

# The fewest GPUs.
table=$("$UMADVISE" simulate "$trace" --profile 1080ti --budget 260MiB --ranks 4)
like "$table" "^cifar_vgg16 on 1 to 4 GPUs \(1080ti\) with 260.0 MiB each" "a table has a title"
like "$table" "lookahead: 1 GPU is the fewest whose step takes at most 10 % longer" "the fewest GPUs are named"
like "$("$UMADVISE" simulate "$trace" --profile 1080ti --budget 260MiB --ranks 4 --at-most-slower 1%)" \
	"lookahead: 4 GPUs are the fewest whose step takes at most 1 % longer" "--at-most-slower chooses the limit"
like "$(simulate --ranks 2 --at-most-slower 1)" "on no number of GPUs" "there may be none"
is "$(simulate --ranks 2 --strategy lookahead,on-demand -f json | python3 -c '
import json, sys
d = json.load(sys.stdin)
print(d["schema"], [(r["strategy"], r["gpus"], r["fewest"]) for r in d["rows"]])')" "umranks/1 \
[('lookahead', 1, False), ('lookahead', 2, False), ('on-demand', 1, False), ('on-demand', 2, False)]" \
	"json has the rows of each strategy"

# What is refused.
refuses() {
	local name=$1 want=$2
	shift 2
	"$UMADVISE" simulate "$@" >"$tmp/out" 2>"$tmp/err"
	is "$?" 2 "$name: exit code"
	like "$(cat "$tmp/err")" "$want" "$name: message"
}
refuses "a kind of collective" "expected ring,RATE" "$trace" --ranks 2 --collective tree,3
refuses "a rate" "expected ring,RATE" "$trace" --ranks 2 --collective ring,0
refuses "no ranks" "expected --ranks or --devices" "$trace" --per-link 2
refuses "two traces" "expected one trace" "$trace" "$trace" --ranks 2
refuses "another mode" "jitter cannot be used with --ranks" "$trace" --ranks 2 --jitter 1
"$UMADVISE" simulate "$data/gpt2_like" --ranks 2 >"$tmp/out" 2>&1
is "$?" 3 "a trace that is not there is refused"
printf '%s\n' '{"umtrace":1,"source":"test"}' '{"ev":"alloc","t":0,"bytes":64,"role":"param"}' '{"ev":"iter","n":0}' \
	'{"ev":"op","name":"a","r":[0],"w":[0]}' >"$tmp/none.umtrace"
"$UMADVISE" simulate "$tmp/none.umtrace" --ranks 2 >"$tmp/out" 2>"$tmp/err"
is "$?" 3 "a trace without a batch is refused"
like "$(cat "$tmp/err")" "no operation uses a tensor with the role input or act" "the message says what is missing"
is "$(cat "$tmp/out")" "" "then nothing is written"
tap_done
