#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The report for `nsys stats`, over a stand-in for nsysstats with what of that module it needs.
. "${top_srcdir:=.}/tests/tap.sh"

python3 -c 'import sqlite3' 2>/dev/null || skip_all "no Python with SQLite"
script=$top_srcdir/share/nsys/umadvise.py
cat >"$tmp/nsysstats.py" <<'END'
import sqlite3, sys, types

class StatsReport:
    statements, query, _arg_opts = [], None, []

    def __init__(self, file, args):
        self._dbfile, self._args = file, args
        self._db = sqlite3.connect("file:%s?mode=ro&immutable=1" % file, uri=True)

    @property
    def dbfile(self):
        return self._dbfile

    def setup(self):
        given = dict(arg.split("=", 1) for arg in self._args)
        self.parsed_args = types.SimpleNamespace(**{names[0]: how["type"](given.get(names[0], how["default"]))
                                                    for names, how in self._arg_opts})

    @classmethod
    def Main(cls):
        report = cls(sys.argv[1], sys.argv[2:])
        failure = report.setup()
        if failure is not None:
            sys.exit(failure)
        for statement in report.statements:
            report._db.execute(statement)
        cursor = report._db.execute(report.query)
        print("|".join(column[0] for column in cursor.description))
        for row in cursor:
            print("|".join("-" if value is None else str(value) for value in row))
END
stats() { PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$tmp UMADVISE=$UMADVISE python3 "$script" "$@"; }

cat >"$tmp/few.umtrace" <<'END'
{"umtrace":1,"source":"by hand","workload":"few"}
{"ev":"alloc","t":0,"bytes":33554432,"name":"it's \"x\", so","role":"param"}
{"ev":"iter","n":0}
{"ev":"op","name":"it's \"a\", too","r":[0],"w":[0],"ns":1000}
{"ev":"op","name":"b","r":[0],"w":[0],"ns":1000}
{"ev":"iter","n":1}
{"ev":"op","name":"it's \"a\", too","r":[0],"w":[0],"ns":1000}
{"ev":"op","name":"b","r":[0],"w":[0],"ns":1000}
END
ok "a workload is exported" "$UMADVISE" simulate "$tmp/few.umtrace" --strategy on-demand --export "$tmp/few.sqlite"

is "$(stats "$tmp/few.sqlite" table=ops | head -n 1)" \
	"Name|Launches|Time:dur_ns|Gpu page faults|Fault:dur_ns|Um h2d:mem_B|Um d2h:mem_B|Prefetch wait:dur_ns" \
	"columns have their units"
"$UMADVISE" report "$tmp/few.sqlite" -q --report ops --format csv >"$tmp/ops.csv"
is "$(stats "$tmp/few.sqlite" table=ops | tail -n +2)" "$(python3 -c 'import csv, sys
for row in list(csv.reader(open(sys.argv[1], newline="")))[1:]:
    print("|".join(v or "-" for v in row))' "$tmp/ops.csv")" "the rows are the tool's own"
like "$(stats "$tmp/few.sqlite" table=ops)" "^it's \"a\", too\|" "whatever is in a name"
is "$(stats "$tmp/few.sqlite" table=ops rows=1 | wc -l)" 2 "rows= limits the number of rows"
is "$(stats "$tmp/few.sqlite" | wc -l)" 2 "the summary, where no table is named"
is "$(stats "$tmp/few.sqlite" table=iterations 'iteration=no such' | wc -l)" 1 "without iterations there are no rows"
like "$(stats "$tmp/few.sqlite" table=nothing 2>&1)" "'nothing': expected a table" "a table that is none"
UMADVISE=$tmp/gone
like "$(stats "$tmp/few.sqlite" 2>&1)" "gone cannot be run" "a missing umadvise is reported"
tap_done
