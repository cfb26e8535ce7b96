#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tables and sentences on a terminal fit 100 columns, long names included; CSV and JSON keep each name as a whole.
. "${top_srcdir:=.}/tests/tap.sh"

data=$top_srcdir/tests/data
long=$(printf 'layer.%.0s' {1..40})weight

fits() { # NAME COMMAND...
	local name=$1
	shift
	"$@" >"$tmp/shown" 2>&1
	is "$(awk 'length($0) > 100' "$tmp/shown" | head -n 2)" "" "$name: no line is longer than 100 columns"
	ok "$name: something is shown" test -s "$tmp/shown"
}

# A workload, its plans and its run, with a name of 246 characters for tensors, operations and the file.
mkdir -p "$tmp/$long"
gzip -dc "$data/resnet50.umtrace.gz" |
	sed "s/\"name\":\"convolution\"/\"name\":\"$long\"/; s/\"workload\":\"resnet50\"/\"workload\":\"$long\"/" \
		>"$tmp/$long/net.umtrace"
trace=$tmp/$long/net.umtrace
"$UMADVISE" plan "$trace" --oversubscribe 1.5 -o "$tmp/$long/a.umplan" >/dev/null
"$UMADVISE" plan "$trace" --oversubscribe 2 -o "$tmp/$long/b.umplan" >/dev/null
"$UMADVISE" simulate "$trace" --oversubscribe 1.5 --strategy on-demand --export "$tmp/long.sqlite" >/dev/null

fits "trace stat" "$UMADVISE" trace stat "$trace" "$data/resnet50.umtrace.gz" "$data/alexnet_b200.umtrace.gz"
like "$(<"$tmp/shown")" 'layer\.lay.*\.\.\.' "trace stat shortens a long name in the middle"
like "$("$UMADVISE" trace stat "$trace" --format csv)" "$long" "trace stat keeps the whole name in CSV"
like "$("$UMADVISE" trace stat "$trace" --format json)" "$long" "trace stat keeps the whole name in JSON"
fits "plan --show" "$UMADVISE" plan --show "$tmp/$long/a.umplan"
fits "plan --diff" "$UMADVISE" plan --diff "$tmp/$long/a.umplan" "$tmp/$long/b.umplan"
fits "report" "$UMADVISE" report "$tmp/long.sqlite"
tables=$("$UMADVISE" report --help-reports | cut -d' ' -f1 | paste -sd,)
fits "report of every table" "$UMADVISE" report "$tmp/long.sqlite" --report "$tables"
like "$(<"$tmp/shown")" 'layer\.lay.*\.\.\..*weight' "report shortens a long name in the middle"
like "$("$UMADVISE" report "$tmp/long.sqlite" --report ops --format csv)" "$long" \
	"report keeps the whole name in CSV"
like "$("$UMADVISE" report "$tmp/long.sqlite" --format json)" "$long" "report keeps the whole name in JSON"
fits "report --workload" "$UMADVISE" report "$tmp/long.sqlite" --workload "$trace" --budget 1GiB

# A column that is empty in each row is not shown.
"$UMADVISE" report "$tmp/long.sqlite" --report ops >"$tmp/ops"
if grep -q 'prefetches' "$tmp/ops"; then ok "no run without prefetches has a column of them" false; else
	ok "no run without prefetches has a column of them" true
fi
tap_done
