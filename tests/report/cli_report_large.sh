#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# umadvise report on tables that are large enough for a thread each: in order, in none, and with more names than are
# kept.
. "${top_srcdir:=.}/tests/tap.sh"

python3 -c 'import sqlite3' 2>/dev/null || skip_all "no Python with SQLite"
rows=70000

# An export of kernels and migrations, in an order and with as many names as asked for.
python3 - "$tmp" "$rows" <<'END_OF_PYTHON'
import sqlite3, sys
folder, rows = sys.argv[1], int(sys.argv[2])
P = 1 << 48 | 10 << 24
for name, step, names in ("ordered", 1, 100), ("mixed", 77773, 100), ("named", 1, rows):
    c = sqlite3.connect("%s/%s.sqlite" % (folder, name))
    c.executescript("""
    CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
    CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, "end" INTEGER, deviceId INTEGER, streamId INTEGER,
        correlationId INTEGER, globalPid INTEGER, shortName INTEGER);
    CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, "end" INTEGER, deviceId INTEGER, streamId INTEGER,
        correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER, migrationCause INTEGER);
    CREATE TABLE NVTX_EVENTS (start INTEGER, "end" INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER);
    """)
    c.executemany("INSERT INTO StringIds VALUES (?, ?)", ((i, "kernel_%d" % i) for i in range(names)))
    times = [i * step % rows * 100 for i in range(rows)]
    c.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 0, 0, ?, ?)",
                  ((t, t + 90, P, t // 100 % names) for t in times))
    c.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, 0, 0, 0, ?, 4096, 11, 2)",
                  ((t + 10, t + 20, P) for t in times))
    c.executemany("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, 'step ' || ?, ?)",
                  ((i * 1000, i * 1000 + 999, i, P + 1) for i in range(rows // 10)))
    c.commit()
END_OF_PYTHON
for file in ordered mixed named; do
	ok "$file: a report" "$UMADVISE" report "$tmp/$file.sqlite" --iteration 'step *' --format json -q \
		-o "$tmp/$file.json"
done
query() { # FILE EXPRESSION
	python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
print(eval(sys.argv[2]))' "$tmp/$1.json" "$2"
}

sums='[d["summary"][k] for k in ("kernels", "kernel_ns", "um_h2d_bytes", "iterations")]'
is "$(query ordered "$sums")" "[$rows, $((rows * 90)), $((rows * 4096)), $((rows / 10))]" \
	"sums of tables in order are right"
is "$(query mixed "$sums")" "[$rows, $((rows * 90)), $((rows * 4096)), $((rows / 10))]" \
	"sums of tables without order are the same"
for file in ordered mixed; do
	is "$(query "$file" 'set((i["kernels"], i["um_h2d_bytes"]) for i in d["iterations"])')" "{(10, 40960)}" \
		"$file: every iteration has what is its"
	is "$(query "$file" 'len(d["ops"]), set((o["launches"], o["um_h2d_bytes"]) for o in d["ops"])')" \
		"(100, {($((rows / 100)), $((rows * 4096 / 100)))})" "$file: and so has every kernel"
done
is "$(query named 'len(d["ops"]), len(set(o["name"] for o in d["ops"])), sum(o["launches"] for o in d["ops"])')" \
	"(65537, 65537, $rows)" "more names than there is room for"
tap_done
