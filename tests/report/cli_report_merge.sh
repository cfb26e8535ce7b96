#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# umadvise report --merge: several files as one report, whose processes stay apart though they have the same numbers.
: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"

python3 -c 'import sqlite3' 2>/dev/null || skip_all "no Python with SQLite"
trace=$top_srcdir/tests/data/alexnet_b200.umtrace.gz
report() { "$UMADVISE" report "$@"; }
simulate() { "$UMADVISE" simulate "$trace" --iterations 4 "$@" >/dev/null; }

# Three ranks: of one run, one of which has less memory; all are process 1 of theirs.
simulate --oversubscribe 1.25 --strategy on-demand --export "$tmp/slow.sqlite"
simulate --budget 16GiB --strategy on-demand --export "$tmp/well.sqlite"
cp "$tmp/well.sqlite" "$tmp/well2.sqlite"
ranks=("$tmp/slow.sqlite" "$tmp/well.sqlite" "$tmp/well2.sqlite")

tables=findings,causes,iterations,tensors,ops,op-iterations,tensor-iterations,reasons,processes,side-by-side
for f in "${ranks[@]}"; do
	report "$f" --report "$tables" --format json >"$f.json"
done
ok "several files as one report" report --merge "${ranks[@]}"
report --merge "${ranks[@]}" --report "$tables" --format json >"$tmp/all.json"

cat >"$tmp/compare.py" <<'END'
import json, sys
whole = json.load(open(sys.argv[1]))
files = sys.argv[2:]
parts = [json.load(open(f + ".json")) for f in files]
def check(what, good):
    if not good:
        sys.exit(what)
for key in whole["summary"]:
    if key in ("missing", "iteration_median_ns", "iteration_mad_ns"):
        continue
    values = [p["summary"][key] for p in parts]
    if key == "iterations_by":
        check(key, set(values) == {whole["summary"][key]})
        continue
    check(key, whole["summary"][key] == (max(values) if key == "duration_ns" else sum(values)))
check("files", whole["file"] is None and whole["files"] == files)
# What is of one iteration is, row by row, what it is in its file.
def rows(doc, table, file=None):
    keep = [{k: v for k, v in r.items() if k != "file"} for r in doc[table] if file is None or r["file"] == file]
    return sorted(json.dumps(r, sort_keys=True) for r in keep if r.get("n", 0) is not None)
for table in ("iterations", "op_iterations", "tensor_iterations", "processes"):
    for f, p in zip(files, parts):
        check("%s of %s" % (table, f), rows(whole, table, f) == rows(p, table) and rows(p, table))
# What has no iteration is summed up over all.
def sums(docs, table, names):
    out = {}
    for d in docs:
        for r in d[table]:
            row = out.setdefault(tuple(r[n] for n in names), {})
            for k, v in r.items():
                if isinstance(v, int) and k not in names and k not in ("bytes", "lives", "pid", "n", "iteration"):
                    row[k] = row.get(k, 0) + v
    return out
for table, names in (("causes", ("direction", "cause")), ("ops", ("name",)), ("tensors", ("name",)),
                     ("reasons", ("reason", "tensor", "op"))):
    check(table, sums([whole], table, names) == sums(parts, table, names))
for i, r in enumerate(whole["side_by_side"]):
    ns = [p["iterations"][i]["ns"] for p in parts]
    check("side by side", (r["n"], r["processes"], r["slowest_ns"], r["fastest_ns"], r["apart_ns"], r["file"]) ==
          (i, len(parts), max(ns), min(ns), max(ns) - min(ns), files[ns.index(max(ns))]))
check("all iterations side by side", len(whole["side_by_side"]) == 4)
# What one of them does to itself is found as it is in its own file.
for f in parts[0]["findings"]:
    check("finding", any(f["kind"] == g["kind"] and f["tensor"] == g["tensor"] and f["bytes"] == g["bytes"] and
                         f["saving_ns"] == g["saving_ns"] and g["processes"] == 1 and g["file"] == files[0]
                         for g in whole["findings"]))
check("findings", parts[0]["findings"] and not parts[1]["findings"])
END
ok "sums are sums, rows are those of their files, findings those of the process" \
	python3 "$tmp/compare.py" "$tmp/all.json" "${ranks[@]}"

is "$(report --merge "${ranks[@]}" --report ranks,iterations --format json | python3 -c '
import json, sys
d = json.load(sys.stdin)
R = d["ranks"]
mean = {}
for f in d["files"]:
    ns = [i["ns"] for i in d["iterations"] if i["file"] == f and i["mark"] not in ("cold", "unfinished")]
    mean[f] = sum(ns) // len(ns)
want = sorted(d["files"], key=lambda f: -mean[f])
least, every = min(mean.values()), sum(mean.values()) / len(mean)
print([r["file"] for r in R] == want, all(r["iteration_ns"] == mean[r["file"]] for r in R),
      all(r["slower_ns"] == mean[r["file"]] - least for r in R),
      all(abs(r["above_mean_ns"] - (mean[r["file"]] - every)) <= 1 for r in R), [r["reason"] for r in R],
      R[0]["slower_percent"] == round(100 * R[0]["slower_ns"] / least), R[0]["rank"],
      R[0]["fault_ns"] > R[1]["fault_ns"])')" "True True True True ['page faults', None, None] True None True" \
	"ranks: the slowest first, by how much, and why"
is "$(report "$tmp/well.sqlite" --report ranks --format csv | wc -l)" 1 "one process has nothing to be compared with"

report --merge "${ranks[@]}" >"$tmp/all.txt"
is "$(head -1 "$tmp/all.txt")" "3 files: Nsight Systems simulated, schema 3.7.2" "the report names its files"
like "$(tr -s ' \n' ' ' <"$tmp/all.txt")" \
	" high demand.*, in 1 of 3 processes \(pid 1 of $tmp/slow.sqlite\): would save" "which process"
like "$(<"$tmp/all.txt")" $'\nside-by-side:.*\n  slowest in .*\n  '"$tmp/slow.sqlite +1 +0 +3 " \
	"the slowest of each is marked"
like "$(<"$tmp/all.txt")" $'\nprocesses:.*\n  '"$tmp/well2.sqlite +1 +simulated" "each process has its file"
like "$(report --merge "${ranks[@]}" --report iterations --format csv | sed -n 1p)" "^file,pid,n,name," \
	"csv has the file first"
like "$(report "${ranks[0]}" --report iterations --format csv | sed -n 1p)" "^pid,n,name," \
	"csv of one file is unchanged"
is "$(report --merge "${ranks[@]}" --report iterations --format csv | wc -l)" 13 "the merged report has all iterations"
fails 1 "--fail-on works with several files" report --merge "${ranks[@]}" --fail-on high
report --merge "${ranks[@]}" --format html >"$tmp/all.html"
is "$(grep -c "<h1><bdi>3 files</bdi></h1>" "$tmp/all.html")" 1 "the page names the number of files"
is "$(grep -c "<h3><bdi[^>]*>.*sqlite</bdi></h3>" "$tmp/all.html")" 3 "the page has the course of each file"
is "$(grep -c "<b>pid 1 of <bdi.*<span>median " "$tmp/all.html")" 3 "the iterations of each process are shown"
like "$(<"$tmp/all.html")" "<span>in 1 of 3 processes: pid 1 of <bdi" "the page names the process of a finding"

# The clocks have nothing to do with each other: one file long after the other, or rows in no order.
cp "$tmp/slow.sqlite" "$tmp/late.sqlite"
cp "$tmp/slow.sqlite" "$tmp/mixed.sqlite"
python3 - "$tmp/late.sqlite" "$tmp/mixed.sqlite" <<'END'
import sqlite3, sys
c, d = (sqlite3.connect(f) for f in sys.argv[1:])
for t, in c.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
    for column in c.execute('PRAGMA table_info("%s")' % t).fetchall():
        if column[1] in ("start", "end", "duration"):
            c.execute('UPDATE "%s" SET "%s" = "%s" + 900000000000' % (t, column[1], column[1]))
c.commit()
d.executescript("""CREATE TABLE k AS SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start DESC;
DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL;
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT * FROM k;
DROP TABLE k;""")
END
strip() { python3 -c 'import json, sys
def cut(x):
    if isinstance(x, list):
        return [cut(y) for y in x]
    if isinstance(x, dict):
        return {k: cut(v) for k, v in x.items() if k not in ("file", "files", "begin_ns")}
    return x
print(json.dumps(cut(json.load(sys.stdin)), indent=1))' | cksum; }
want=$(report --merge "$tmp/slow.sqlite" "$tmp/well.sqlite" --format json | strip)
is "$(report --merge "$tmp/late.sqlite" "$tmp/well.sqlite" --format json | strip)" "$want" \
	"no time of one is one of the other"
is "$(report --merge "$tmp/mixed.sqlite" "$tmp/well.sqlite" --format json | strip)" "$want" "rows in no order of time"
swap=$(report --merge "$tmp/well.sqlite" "$tmp/slow.sqlite" --format json | strip)
is "$(report --merge "$tmp/well.sqlite" "$tmp/mixed.sqlite" --format json | strip)" "$swap" \
	"tensors of the last file have the same rows"

# Processes of one file stay apart, too.
python3 - "$tmp/slow.sqlite" "$tmp/two.sqlite" <<'END'
import shutil, sqlite3, sys
shutil.copy(sys.argv[1], sys.argv[2])
c = sqlite3.connect(sys.argv[2])
for t, in c.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
    for column in c.execute('PRAGMA table_info("%s")' % t).fetchall():
        if column[1] in ("globalPid", "globalTid"):
            rows = ", ".join('"%s"' % x[1] for x in c.execute('PRAGMA table_info("%s")' % t).fetchall())
            other = rows.replace('"%s"' % column[1], '"%s" + (1 << 24)' % column[1])
            other = other.replace('"pid"', '"pid" + 1')
            c.execute('INSERT INTO "%s" (%s) SELECT %s FROM "%s"' % (t, rows, other, t))
c.commit()
END
like "$(report "$tmp/two.sqlite")" $'\nside-by-side:.*\n.*\n +1 +0 +2 .* 0\\.000 ' \
	"two processes of one file are side by side"
pids=$(report --merge "$tmp/two.sqlite" "$tmp/well.sqlite" --report processes --format csv | cut -d, -f2)
is "${pids//$'\n'/ } " \
	"pid 1 2 1 " "and beside that of another"

# The library's own logs.
for i in 1 2; do
	UMADVISE_RUN_LOG=$tmp/$i.umlog "$top_builddir/examples/vector" >"$tmp/said" 2>&1
done
is "$(report --merge "$tmp/1.umlog" "$tmp/2.umlog" --format json | python3 -c 'import json, sys
d = json.load(sys.stdin)
S = d["side_by_side"]
print(d["library"]["iterations"], len(S), d["summary"]["processes"], S[0]["processes"])')" \
	"12 6 2 2" "logs of two processes"
fails 2 "a log and an export are refused together" report --merge "$tmp/1.umlog" "$tmp/well.sqlite"

# What cannot be.
head -c 20000 "$tmp/slow.sqlite" >"$tmp/cut.sqlite"
fails 3 "a damaged file among them is refused" report --merge "$tmp/well.sqlite" "$tmp/cut.sqlite"
is "$(report --merge "$tmp/well.sqlite" "$tmp/cut.sqlite" 2>/dev/null)" "" \
	"then there is no report: its sums would be wrong"
fails 2 "a file given twice is refused" report --merge "$tmp/well.sqlite" "$tmp/../$(basename "$tmp")/well.sqlite"
fails 2 "a missing file is refused" report --merge
fails 2 "several files as perfetto are refused" report --merge "${ranks[@]}" --format perfetto -o "$tmp/x.json"
fails 2 "several files as csv without --merge are refused" report "${ranks[@]}" --format csv
like "$(report "${ranks[@]}" --format csv 2>&1)" "or --merge" "the message suggests --merge"
tap_done
