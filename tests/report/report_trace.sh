#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# report_trace.sh - runs over time: traces of reports and simulations are well-formed and say what the report says
: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"

python3 -c 'import sqlite3' 2>/dev/null || skip_all "no Python with SQLite"
data=$top_srcdir/tests/data
check() { python3 "$top_srcdir/tests/fixture/trace_check.py" "$1" >"$tmp/found" && cat "$tmp/found"; }
# What Python makes of what is in a trace ("t") and, where one is named, in a report ("S": its summary).
query() { # TRACE QUERY [REPORT]
	check "$1" | python3 -c 'import json, sys
t = json.load(sys.stdin)
S = json.load(open(sys.argv[2]))["summary"] if len(sys.argv) > 2 else None
exec(sys.argv[1])' "$2" "${@:3}"
}

# The same run as an export and as a trace.
run() { # NAME TRACE OPTION...
	"$UMADVISE" simulate "$data/$2" --iterations 3 --export "$tmp/$1.sqlite" "${@:3}" >/dev/null &&
		"$UMADVISE" simulate "$data/$2" --iterations 3 --export "$tmp/$1.json.gz" "${@:3}" >/dev/null &&
		"$UMADVISE" report "$tmp/$1.sqlite" --format perfetto -o "$tmp/$1.report.json" &&
		"$UMADVISE" report "$tmp/$1.sqlite" --format json -o "$tmp/$1.json"
}
sums='W = t["moved"]
print(t["faults"] == S["gpu_page_faults"], t["cpu_faults"] == S["cpu_page_faults"],
      W.get("migration to the device", 0) == S["um_h2d_bytes"], W.get("migration to the host", 0) == S["um_d2h_bytes"],
      t["slices"]["kernel"] == S["kernels"],
      t["counters"].get("page faults so far faults", {"last": 0})["last"] == t["faults"])'
all_true="True True True True True True"
for s in on-demand lookahead; do
	ok "$s: a run, three ways" run "$s" resnet50.umtrace.gz --oversubscribe 1.5 --strategy "$s"
	ok "$s: the trace is well-formed" check "$tmp/$s.report.json"
	is "$(query "$tmp/$s.report.json" "$sums" "$tmp/$s.json")" "$all_true" "$s: its sums are the report's"
	ok "$s: simulate writes the same" sh -c 'gzip -dc "$1" | cmp - "$2"' - "$tmp/$s.json.gz" "$tmp/$s.report.json"
done
is "$(compgen -G "$tmp/*json*sqlite*")" "" "no export is left beside a trace"
is "$(query "$tmp/on-demand.json.gz" '
most = t["counters"]["resident bytes"]
print(most["last"], 1000 << 20 < most["most"] < 1025 << 20, t["counters"]["migrating bytes to the device"]["last"])')" \
	"0 True 0" "what is resident fills the device and no more, and nothing is at the end"
is "$(query "$tmp/lookahead.json.gz" '
A = t["arrows"]
print(len(A) > 100, all(a[0].startswith("prefetch ") for a in A), max(a[2] for a in A) > 1000000)')" "True True True" \
	"arrows from prefetches to kernels, ahead of them"
is "$(query "$tmp/lookahead.json.gz" 'print(t["slices"]["kernel"] - t["named"])')" 0 "each kernel knows its operation"
is "$(query "$tmp/on-demand.json.gz" 'print(t["arrows"], t["slices"]["hint"], t["slices"]["range"])')" "[] 0 3" \
	"without hints there are no arrows"

fails 2 "a trace needs a file" "$UMADVISE" report "$tmp/lookahead.sqlite" --format perfetto
fails 2 "tables in a perfetto trace are refused" \
	"$UMADVISE" report "$tmp/lookahead.sqlite" --format perfetto --report ops -o "$tmp/x.json"
cp "$tmp/lookahead.json" "$tmp/link.json"
ok "an existing trace file is replaced" "$UMADVISE" report "$tmp/lookahead.sqlite" --format perfetto -o "$tmp/link.json"
ok "report writes a trace with --force-overwrite" "$UMADVISE" report "$tmp/lookahead.sqlite" --format perfetto \
	--force-overwrite -o "$tmp/lookahead.report.json"
fails 4 "a folder that is not there" "$UMADVISE" report "$tmp/lookahead.sqlite" --format perfetto -o "$tmp/no/x.json"
"$UMADVISE" report "$tmp/lookahead.sqlite" --format perfetto -o - >"$tmp/out.json"
ok "standard output equals the file" cmp "$tmp/out.json" "$tmp/lookahead.report.json"
"$UMADVISE" report "$tmp/lookahead.sqlite" --format perfetto -o "$tmp/part.json" --filter-nvtx 'iteration 2'
"$UMADVISE" report "$tmp/lookahead.sqlite" --format json -o "$tmp/part.report" --filter-nvtx 'iteration 2'
is "$(query "$tmp/part.json" "$sums" "$tmp/part.report")" "$all_true" "filtered activities are not drawn"

# The library's own log: no kernels, and so no more than what was announced.
vector=$top_builddir/examples/vector
if [ -x "$vector" ]; then
	UMADVISE_RUN_LOG=$tmp/own.umlog UMADVISE_BUDGET=4MiB "$vector" >/dev/null
	ok "a log becomes a trace" "$UMADVISE" report "$tmp/own.umlog" --format perfetto -o "$tmp/own.json"
	is "$(query "$tmp/own.json" 'C = t["slices"]
print(C["range"], C["op"] > 100, C["hint"] > 100, C["kernel"], any(n.startswith("hints") for n in t["names"]))')" \
		"6 True True 0 True" "has iterations, operations and hints"
else
	skip 2 "the example was not built"
fi

# Rows in no order of time.
cp "$tmp/on-demand.sqlite" "$tmp/mixed.sqlite"
python3 -c 'import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
for t in "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY":
    c.execute("CREATE TABLE x AS SELECT * FROM %s ORDER BY start DESC" % t)
    c.execute("DROP TABLE %s" % t)
    c.execute("ALTER TABLE x RENAME TO %s" % t)
c.commit()' "$tmp/mixed.sqlite"
ok "rows in no order" "$UMADVISE" report "$tmp/mixed.sqlite" --format perfetto -o "$tmp/mixed.json"
is "$(query "$tmp/mixed.json" "$sums" "$tmp/on-demand.json")" "$all_true" "rows out of order are sorted"
fails 3 "a trace out of order is refused where it cannot be written again" \
	"$UMADVISE" report "$tmp/mixed.sqlite" --format perfetto -o -
head -c 60000 "$tmp/on-demand.sqlite" >"$tmp/cut.sqlite"
fails 3 "a damaged file is refused" "$UMADVISE" report "$tmp/cut.sqlite" --format perfetto -o "$tmp/cut.json"
is "$(compgen -G "$tmp/*cut.json*")" "" "leaves no trace"
tap_done
