#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the library marks for a profiler that is attached by NVTX: the same that its own log has, and `umadvise report`
# finds it in an export; UMADVISE_NVTX; nothing without a listener.

: "${top_srcdir:=.}" "${top_builddir:=.}" "${NM:=nm}"
. "$top_srcdir/tests/tap.sh"

spy=$top_builddir/tests/runtime/.libs/nvtx_spy.so
[ -e "$spy" ] || skip_all "no shared libraries are built"
$NM "$top_builddir/.libs/libum.a" 2>/dev/null | grep -q nvtxDomainCreateA ||
	skip_all "the headers of NVTX were missing when the library was built"
python3 -c 'import sqlite3' 2>/dev/null || skip_all "no python3 with sqlite3"
spy=$(cd "$(dirname "$spy")" && pwd)/nvtx_spy.so

spied() { # FILE COMMAND...
	local file=$1
	shift
	NVTX_INJECTION64_PATH=$spy NVTX_SPY=$file "$@"
}
count() { grep -cE "^[0-9]+ [0-9]+ $2" "$1"; }

want=$("$top_builddir/examples/cg")
got=$(spied "$tmp/spied" env UMADVISE_RUN_LOG="$tmp/own.umlog" "$top_builddir/examples/cg")
is $? 0 "a program runs with a tool attached"
is "$got" "$want" "the program computes the same with marks"
is "$(count "$tmp/spied" 'domain ')" 1 "one domain, though it has two contexts"

# What was seen as Nsight Systems would export it; of the second context, whose log was kept. Checks that each thing is
# told in its turn: `wrong` counts what is not.
cat >"$tmp/export.py" <<'EOF'
import re, sqlite3, sys
spied, path = sys.argv[1:]
db = sqlite3.connect(path)
db.execute("create table NVTX_EVENTS (start int, end int, eventType int, rangeId int, text text, globalTid int,"
           " endGlobalTid int, domainId int)")
open_range, rows, alive, seen, wrong = None, [], {}, set(), 0
for line in open(spied):
    ns, thread, kind, domain, rest = line.rstrip("\n").split(" ", 4)
    tid = 1 << 24 | int(thread)
    if kind == "domain":
        rows.append((int(ns), None, 75, None, rest, tid, None, int(domain)))
    elif kind == "start":
        number, text = rest.split(" ", 1)
        wrong += open_range is not None
        open_range = (int(number), len(rows))
        rows.append((int(ns), None, 60, int(number), text, tid, None, int(domain)))
    elif kind == "end":
        wrong += open_range is None or open_range[0] != int(rest)
        i, open_range = open_range[1], None
        rows[i] = rows[i][:1] + (int(ns),) + rows[i][2:6] + (tid, rows[i][7])
    else:
        word = rest.split()
        if word[0] == "tensor":
            wrong += word[1] in alive
            alive[word[1]] = int(word[2])
        elif word[0] == "tensor-end":
            wrong += not alive.pop(word[1], 0)
        elif word[0] == "op":
            wrong += word[1] in seen
            seen.add(op := word[1])
        elif word[0] == "use":
            lo, n = int(word[3], 16), int(word[4])
            wrong += word[1] != op or not any(int(a, 16) <= lo and lo + n <= int(a, 16) + b for a, b in alive.items())
        rows.append((int(ns), None, 34, None, rest, tid, None, int(domain)))
wrong += open_range is not None or len(alive) > 0
db.executemany("insert into NVTX_EVENTS values (?, ?, ?, ?, ?, ?, ?, ?)", rows)
db.commit()
print(wrong)
EOF
is "$(python3 "$tmp/export.py" "$tmp/spied" "$tmp/spied.sqlite")" 0 \
	"uses after their op, of tensors that are alive; ranges one after the other, ended; no op's number twice"

ok "the log: read" "$UMADVISE" report "$tmp/own.umlog" --format json -o "$tmp/own.umlog.json"
fails 3 "the export: read, though it has no faults nor migrations" "$UMADVISE" report "$tmp/spied.sqlite" \
	--format json -o "$tmp/spied.sqlite.json"
is "$(python3 - "$tmp/own.umlog.json" "$tmp/spied.sqlite.json" <<'EOF'
import json, sys
own, spied = (json.load(open(f)) for f in sys.argv[1:])
ops = {a["name"]: a["announced"] for a in own["announced"]}
names = {t["name"] for t in own["tensors"]}
print(len(own["iterations"]), len(spied["iterations"]), names - {t["name"] for t in spied["tensors"]})
EOF
)" "20 40 set()" "iterations of both contexts, tensors by name"
sed -n 's/^[0-9]* [0-9]* mark 1 hint [^ ]* \([a-z]*\) .* 0$/\1/p' "$tmp/spied" | LC_ALL=C sort | uniq -c |
	awk '{ print $2, $1 }' >"$tmp/hints"
ok "hints have more than one kind" test "$(wc -l <"$tmp/hints")" -gt 1
like "$("$UMADVISE" report "$tmp/spied.sqlite" --report hints)" "prefetch +A-" \
	"hints of the recording have their tensor"

# One context: to the number what its log has.
ok "a program with one context runs" \
	spied "$tmp/one" env UMADVISE_RUN_LOG="$tmp/one.umlog" "$top_builddir/examples/vector"
"$UMADVISE" report "$tmp/one.umlog" --format json -o "$tmp/one.json"
python3 "$tmp/export.py" "$tmp/one" "$tmp/one.sqlite" >/dev/null
"$UMADVISE" report "$tmp/one.sqlite" --format json -o "$tmp/two.json"
is "$(python3 - "$tmp/one.json" "$tmp/two.json" <<'EOF'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:])
tensors = lambda d: [(t["name"], t["lives"]) for t in sorted(d["tensors"], key=lambda t: t["name"])]
# By kind: a prefetch that begins before its tensor, with the block, may be attributed to the tensor or to none.
hints = lambda d: {k: (sum(h["issued"] for h in d["hints"] if h["hint"] == k),
                       sum(h["bytes"] for h in d["hints"] if h["hint"] == k)) for k in {h["hint"] for h in d["hints"]}}
print(len(a["iterations"]), len(b["iterations"]), tensors(a) == tensors(b) or (tensors(a), tensors(b)),
      hints(a) == hints(b) or (hints(a), hints(b)), sum(h["issued"] for h in b["hints"]) > 100)
EOF
)" "6 6 True True True" "the recording has the iterations, the tensors and the hints of each kind that the log has"
is "$(count "$tmp/one" 'mark 1 op [0-9]+ ')" "$((24 + 24 * 6))" "every op has a mark"
is "$(count "$tmp/one" 'mark 1 use ')" "$((24 + 24 * 6 * 2))" "every use has a mark"
is "$(sed -n 's/.* start 1 [0-9]* //p' "$tmp/one" | tr '\n' ' ')" \
	"iteration 0 iteration 1 iteration 2 iteration 3 iteration 4 iteration 5 " "iterations by name"

ok "the program runs with UMADVISE_NVTX=iterations" spied "$tmp/few" env UMADVISE_NVTX=iterations \
	"$top_builddir/examples/vector"
is "$(count "$tmp/few" 'start'), $(count "$tmp/few" 'mark')" "6, 0" "marks them alone"
ok "the program runs with UMADVISE_NVTX=off" spied "$tmp/off" env UMADVISE_NVTX=off "$top_builddir/examples/vector"
ok "UMADVISE_NVTX=off makes no marks" test ! -e "$tmp/off"
ok "a tool that does not attach" env NVTX_INJECTION64_PATH="$spy" "$top_builddir/examples/vector"
ok "a tool that is not there" env NVTX_INJECTION64_PATH="$tmp/none.so" "$top_builddir/examples/vector"
ok "the tool of this project plays without marks" spied "$tmp/tool" "$UMADVISE" simulate \
	"$top_srcdir/tests/data/cg_laplace3d.umtrace.gz" --iterations 3
ok "the tool makes no marks under a profiler" test ! -e "$tmp/tool"
tap_done
