#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cli_pool.sh - umadvise pool: the library's places beside other allocators

: "${top_srcdir:=.}" "${top_builddir:=.}" "${UMADVISE:=umadvise}"
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/harness/failmalloc.sh"

data=$top_srcdir/tests/data
pool() { "$UMADVISE" pool "$@"; }

# Two tensors that stay, of 2 MiB and 1 MiB; in each iteration 3 MiB and 1 MiB, one after the other.
awk 'BEGIN {
	print "{\"umtrace\":1,\"source\":\"by hand\",\"workload\":\"two <a> time\"}"
	print "{\"ev\":\"alloc\",\"t\":0,\"bytes\":2097152,\"name\":\"w\",\"role\":\"param\"}"
	print "{\"ev\":\"alloc\",\"t\":1,\"bytes\":1048576,\"name\":\"v\",\"role\":\"param\"}"
	for (n = 0; n < 3; n++) {
		printf "{\"ev\":\"iter\",\"n\":%d}\n", n
		for (i = 0; i < 2; i++) {
			t = 2 + 2 * n + i
			printf "{\"ev\":\"alloc\",\"t\":%d,\"bytes\":%d,\"role\":\"act\"}\n", t, i ? 1048576 : 3145728
			printf "{\"ev\":\"op\",\"name\":\"op\",\"r\":[0,1],\"w\":[%d],\"ns\":500000}\n", t
			printf "{\"ev\":\"free\",\"t\":%d}\n", t
		}
	}
}' >"$tmp/two.umtrace"

is "$(pool "$tmp/two.umtrace" 2>&1)" "\
two <a> time: 6.0 MiB alive at most; 2 births and 2 frees in an iteration
pool         footprint MiB  x alive  reserved MiB  x alive  steps  most steps
umadvise               8.0   1.3333           8.0   1.3333    1.0           1
smartpool              6.0   1.0000           6.0   1.0000    1.0           1
best-fit               6.0   1.0000           6.0   1.0000    1.5           2
caching                8.0   1.3333          22.0   3.6667    2.2           3
first-fit              6.0   1.0000           6.0   1.0000    1.5           2
cuda-malloc            8.0   1.3333           8.0   1.3333      -           -" \
	"each pool answers the births of a workload that can be counted by hand"
is "$(pool "$tmp/two.umtrace" --pool cuda-malloc,smartpool -f csv | tr -d '\r')" "\
trace,pool,alive_bytes,footprint_bytes,reserved_bytes,births,frees,elsewhere,steps,most_steps
two <a> time,cuda-malloc,6291456,8388608,8388608,2,2,0,,
two <a> time,smartpool,6291456,6291456,6291456,2,2,0,4,1" "csv has the chosen pools in their order"
is "$(pool "$tmp/two.umtrace" --pool smartpool,cuda-malloc -f json |
	python3 -c 'import json, sys
d = json.load(sys.stdin)
print(d["schema"], [(r["pool"], r["footprint_bytes"], r["steps"]) for r in d["rows"]])')" \
	"umpool/1 [('smartpool', 6291456, 4), ('cuda-malloc', 8388608, None)]" "json has the same figures"

# The bars, on recorded workloads.
figures() {
	pool "$data"/{alexnet_b200,cifar_vgg16_b100,gpt2_small,lstm_lm,resnet50,transformer_varlen,vgg16}.umtrace.gz \
		-f csv | tr -d '\r'
}
figures >"$tmp/figures.csv"
bar() { # POOL COLUMN: geometric mean and worst over the most bytes alive
	awk -F, -v pool="$1" -v column="$2" 'NR > 1 && $2 == pool { r = $column / $3; sum += log(r); n++
		if (r > worst) worst = r } END { printf "%.4f %.4f %d", exp(sum / n), worst, n }' "$tmp/figures.csv"
}
read -r mean worst n <<<"$(bar umadvise 4)"
is "$n" 7 "seven workloads are compared"
ok "the footprint is at most 1.01 of the bytes alive, in the geometric mean ($mean)" \
	awk "BEGIN { exit !($mean <= 1.01) }"
ok "and at most 1.03 at worst ($worst)" awk "BEGIN { exit !($worst <= 1.03) }"
ok "every planned birth and free takes one step" \
	awk -F, '$2 == "umadvise" && $9 != $6 + $7 { exit 1 }' "$tmp/figures.csv"
# Published for VGG-16 on CIFAR-10 (Zhang et al. 2019): SmartPool 1.012, cnmem 1.113.
vgg=$(awk -F, '$1 == "cifar_vgg16" && $2 == "smartpool" { printf "%.3f", $5 / $3 }' "$tmp/figures.csv")
ok "smartpool packs VGG-16 as published, within 1.2 % of the bytes alive ($vgg)" awk "BEGIN { exit !($vgg <= 1.012) }"
is "$(figures | cksum)" "$(cksum <"$tmp/figures.csv")" "the same command prints the same figures"

# The picture.
svg=$(pool "$tmp/two.umtrace" --svg "$tmp/two.svg" -o "$tmp/two.txt" 2>&1)
is "$svg" "" "a picture is drawn beside the table"
is "$(python3 - "$tmp/two.svg" <<'END'
import sys, xml.etree.ElementTree as E
ns = "{http://www.w3.org/2000/svg}"
root = E.parse(sys.argv[1]).getroot()
titles = [r.find(ns + "title").text for r in root.iter(ns + "rect") if r.find(ns + "title") is not None]
print(sorted(titles), next(root.iter(ns + "text")).text)
END
)" "['long-lived: 1.000 MiB, ops 1 to 2', 'long-lived: 3.000 MiB, ops 0 to 1', 'stays: 1.000 MiB, ops 0 to 2', \
'stays: 2.000 MiB, ops 0 to 2'] two <a> time, umadvise" "it has a rectangle for each tensor of the iteration"

# Mistakes.
wrong() { # STATUS PATTERN ARGUMENT...
	local got rc=0
	got=$(pool "${@:3}" 2>&1 >"$tmp/out") || rc=$?
	is "$rc $(wc -l <<<"$got") $(wc -c <"$tmp/out")" "$1 1 0" "pool ${*:3}: status $1, one line, no output"
	like "$got" "$2" "it says why: $2"
}
wrong 2 "no trace given" -f csv
wrong 2 "'bets-fit'.*did you mean 'best-fit'" "$tmp/two.umtrace" --pool bets-fit
wrong 2 "'': expected umadvise, smartpool" "$tmp/two.umtrace" --pool umadvise,
wrong 2 "'3': expected a number, 4 to 1000000" "$tmp/two.umtrace" --iterations 3
wrong 2 "'xml': expected table, json or csv" "$tmp/two.umtrace" -f xml
wrong 2 "--svg: expected one trace" "$tmp/two.umtrace" "$tmp/two.umtrace" --svg "$tmp/x.svg"
wrong 3 "cannot open" "$tmp/none.umtrace"
is "$(pool "$data/good-bare-header.umtrace" "$tmp/two.umtrace" --pool smartpool -f csv 2>"$tmp/err" | wc -l)" 2 \
	"a workload without operations does not stop the next one"
like "$(cat "$tmp/err")" "no iterations and no operations" "and is named"
like "$(pool --help)" "umadvise pool resnet50.umtrace.gz" "--help ends with examples"

# Memory runs out after the trace is read.
UM_FAIL_COUNT_FILE="$tmp/count" LD_PRELOAD="$UM_FAIL_MODULE" "$UMADVISE" trace check "$tmp/two.umtrace" >/dev/null 2>&1
survives "pool survives failing allocations" -f "$(($(sort -n "$tmp/count" | tail -n 1) + 10))" -x 1 -x 2 -x 3 \
	"$UMADVISE" pool "$tmp/two.umtrace" --iterations 4 -f json --svg "$tmp/fail.svg"
is "$(ls "$tmp"/fail.svg?* 2>/dev/null)" "" "no half picture is left behind"
tap_done
