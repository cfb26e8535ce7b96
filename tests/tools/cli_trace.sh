#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cli_trace.sh - umadvise trace check and stat

: "${top_srcdir:=.}" "${UMADVISE:=umadvise}"
. "$top_srcdir/tests/tap.sh"

data=$top_srcdir/tests/data
trace() { "$UMADVISE" trace "$@"; }

# --- check
out=$(trace check "$data/vgg16.umtrace.gz" "$data/good-all-keys.umtrace" 2>"$tmp/err")
is "$?" 0 "good traces end with 0"
is "$out" "$data/vgg16.umtrace.gz: ok (1515 events, 3 iterations)
$data/good-all-keys.umtrace: ok (12 events, 2 iterations)" "a line each"
is "$(cat "$tmp/err")" "" "stderr stays empty"

out=$(trace check "$data/bad-id-again.umtrace" "$data/good-bare-header.umtrace" 2>"$tmp/err")
is "$?" 3 "a refused trace ends with 3"
is "$out" "$data/good-bare-header.umtrace: ok (2 events, 0 iterations)" "the other is done all the same"
is "$(cat "$tmp/err")" "$data/bad-id-again.umtrace:3: tensor 0 again: want a number that was never used" \
	"the refusal has file, line and reason"
fails 3 "a missing file is refused" trace check "$tmp/nobody"
is "$(trace check - <"$data/good-all-keys.umtrace.gz")" "-: ok (12 events, 2 iterations)" \
	"gzip is read from standard input"

# --- stat: figures that were counted by other means when the traces were made
want="\
alexnet_b200 ABB 104-120 272 2006 238 886 1324 12.4
cg_laplace3d A_x_60 25 59 1164 821 206 0 2.2
cifar_vgg16_b100 ABB 297-354 973 506 57 75 188 2.9
gpt2_small ABB 1828-2124 3685 5112 475 1178 1643 40.7
lstm_lm ABB 5846-5891 13947 3048 356 1560 1459 37.7
resnet50 ABB 839-1000 2576 1537 97 147 392 13.9
transformer_varlen ABCDEFGH 1236-1436 6133 7934 160 3000 1956 48.4
vgg16 ABB 186-218 478 2678 528 1176 1484 17.3"
files=()
for name in $(printf '%s\n' "$want" | cut -d' ' -f1); do
	files+=("$data/$name.umtrace.gz")
done
got=$(trace stat --format csv "${files[@]}" | tr -d '\r' | sed 's/A x 60/A_x_60/' | awk -F, 'NR > 1 {
	sub(/.*\//, "", $1); sub(/\.umtrace\.gz$/, "", $1)
	printf "%s %s %s %d %.0f %.0f %.0f %.0f %.1f\n", $1, $5, $6 == $7 ? $6 : $6 "-" $7, $8, $9 / 1048576,
		$10 / 1048576, $11 / 1048576, $13 / 1e9, $14 / 1e9
}')
is "$got" "$want" "the recorded traces have their figures"

is "$(trace stat --format csv "$data/good-all-keys.umtrace" | tr -d '\r' | sed "s,$data/,,")" "\
file,workload,events,iterations,shape,ops_min,ops_max,tensors,peak_bytes,params_bytes,largest_op_bytes,largest_op,\
last_flop,last_moved_bytes
good-all-keys.umtrace,sample,12,2,AB,0,3,4,5243904,1048576,4194304,fill,0,0" "csv"
is "$(trace stat -f json - <"$data/good-all-keys.umtrace")" '{"schema":"umtrace-stat/1","traces":[
{"file":"-","workload":"sample","events":12,"iterations":2,"shape":"AB",'\
'"ops_min":0,"ops_max":3,"tensors":4,"peak_bytes":5243904,"params_bytes":1048576,'\
'"largest_op_bytes":4194304,"largest_op":"fill","last_flop":0,"last_moved_bytes":0}
]}' "json"

printf '{"umtrace":1,"workload":"a,\\"b\\"\\n"}\n' >"$tmp/odd.umtrace"
is "$(trace stat -f csv "$tmp/odd.umtrace" | sed -n '2,3p' | tr -d '\r' | sed "s,$tmp/,,")" \
	'odd.umtrace,"a,""b""\x0a",0,0,,0,0,0,0,0,0,,0,0' "csv quotes what must be quoted, and escapes a newline"
like "$(trace stat -f json "$tmp/odd.umtrace")" '"workload":"a,\\"b\\"\\u000a"' "a workload's name is escaped in json"
lines=$(trace stat "$tmp/odd.umtrace" | wc -l)
is "$lines" 2 "a name does not break a table"

out=$(trace stat "$data/bad-empty.umtrace" "$data/vgg16.umtrace.gz" 2>"$tmp/err")
is "$?" 3 "stat of a refused trace ends with 3"
like "$out" 'vgg16' "the other is counted all the same"
is "$(cat "$tmp/err")" "$data/bad-empty.umtrace: empty file: want a umtrace header" \
	"a file without a line has no line number"

# --- usage
ok "umadvise trace prints its help" trace --help
like "$(trace --help)" 'Examples:' "help has examples"
fails 2 "a missing verb is refused" trace
fails 2 "an unknown verb is refused" trace frobnicate "$data/vgg16.umtrace.gz"
fails 2 "a missing file is refused" trace check
fails 2 "an unknown option is refused" trace stat --frobnicate "$data/vgg16.umtrace.gz"
fails 2 "an unknown format is refused" trace stat --format xml "$data/vgg16.umtrace.gz"
fails 2 "a format without a value is refused" trace stat "$data/vgg16.umtrace.gz" --format
fails 2 "check has no formats" trace check --format json "$data/vgg16.umtrace.gz"
if [ -w /dev/full ]; then
	fails 4 "a full device is reported for the table" \
		sh -c '"$1" trace stat "$2" >/dev/full' - "$UMADVISE" "$data/vgg16.umtrace.gz"
	fails 4 "a full device is reported for the lines" \
		sh -c '"$1" trace check "$2" >/dev/full' - "$UMADVISE" "$data/vgg16.umtrace.gz"
else
	skip 2 "no /dev/full"
fi
tap_done
