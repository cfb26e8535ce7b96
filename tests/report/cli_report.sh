#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# umadvise report: exports of all shapes, what belongs where, its forms, and what it says of files that are none.
. "${top_srcdir:=.}/tests/tap.sh"

python3 -c 'import sqlite3' 2>/dev/null || skip_all "no Python with SQLite"
data=$top_srcdir/tests/data
report() { "$UMADVISE" report "$@"; }

# A small export, as the schema 3.7.2 has it. $2: SQL that is run on it.
sample() { # FILE SQL
	rm -f "$1"
	python3 - "$1" "$2" <<'END'
import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
P, Q = 1 << 48 | 10 << 24, 1 << 48 | 20 << 24  # two processes
c.executescript("""
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.7.2'), ('EXPORT_PRODUCT_VERSION', '2023.4.4.54');
CREATE TABLE META_DATA_CAPTURE (name TEXT NOT NULL, value TEXT);
CREATE TABLE ANALYSIS_DETAILS (globalVid INTEGER, duration INTEGER, startTime INTEGER, stopTime INTEGER);
INSERT INTO ANALYSIS_DETAILS VALUES (0, 9000, 0, 9000);
CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, "end" INTEGER, eventType INTEGER NOT NULL, text TEXT,
	globalTid INTEGER, textId INTEGER, domainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, "end" INTEGER NOT NULL, globalTid INTEGER,
	correlationId INTEGER, nameId INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, "end" INTEGER NOT NULL, deviceId INTEGER NOT NULL,
	streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL,
	shortName INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, "end" INTEGER NOT NULL, deviceId INTEGER NOT NULL,
	streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL,
	copyKind INTEGER NOT NULL, migrationCause INTEGER, virtualAddress INTEGER);
CREATE TABLE CUDA_UM_GPU_PAGE_FAULT_EVENTS (start INTEGER NOT NULL, "end" INTEGER NOT NULL, globalPid INTEGER NOT NULL,
	deviceId INTEGER NOT NULL, address INTEGER NOT NULL, numberOfPageFaults INTEGER NOT NULL,
	faultAccessType INTEGER NOT NULL);
CREATE TABLE CUDA_UM_CPU_PAGE_FAULT_EVENTS (start INTEGER NOT NULL, globalPid INTEGER NOT NULL,
	address INTEGER NOT NULL);
""")
def add(table, *rows):
    for r in rows:
        c.execute("INSERT INTO %s VALUES (%s)" % (table, ",".join("?" * len(r))), r)
add("StringIds", (1, "step"), (2, "void scale<float>(float*)"), (3, "scale"), (4, "add"), (5, "cudaLaunchKernel_v7000"))
add("PROCESSES", (P, 10, "a"), (Q, 20, "b"))
# Both processes call their domain 1; the ranges of one are registered strings. The last one never ended.
add("NVTX_EVENTS", (0, None, 75, "mine", P + 1, None, 1), (0, None, 75, "yours", Q + 1, None, 1),
    (100, 200, 59, None, P + 1, 1, 1), (200, 300, 59, None, P + 1, 1, 1), (150, 250, 60, "step 7", Q + 1, None, 1),
    (160, 170, 59, "inner", P + 1, None, 0), (300, 9000, 59, None, P + 1, 1, 1),
    (310, None, 34, "mark", P + 1, None, 0))
# Equal correlations in two processes; launches run ahead of the GPU.
add("CUPTI_ACTIVITY_KIND_RUNTIME", (110, 112, P + 1, 1, 5), (120, 122, P + 2, 2, 5), (160, 162, Q + 1, 1, 5),
    (210, 212, P + 1, 3, 5))
add("CUPTI_ACTIVITY_KIND_KERNEL", (1000, 2000, 0, 7, 1, P, 2, 3), (2000, 2500, 0, 7, 2, P, 4, 4),
    (1000, 3000, 0, 7, 1, Q, 4, 4), (4000, 5000, 0, 7, 3, P, 2, 3))
add("CUDA_UM_GPU_PAGE_FAULT_EVENTS", (1100, 1300, P, 0, 4096, 5, 1), (1200, 1500, P, 0, 8192, 2, 2),
    (4100, 4200, P, 0, 4096, 1, 1))
add("CUDA_UM_CPU_PAGE_FAULT_EVENTS", (130, P, 4096), (230, P, 4096), (230, Q, 4096), (8000, Q, 4096))
add("CUPTI_ACTIVITY_KIND_MEMCPY",
    (500, 600, 0, 7, 9, P, 100, 1, None, None),           # the program's own
    (1150, 1160, 0, 0, 0, P, 4096, 11, 2, 4096),          # demand, for the first kernel
    (1160, 1170, 0, 0, 0, P, 61440, 11, 3, 8192),         # and its company
    (1400, 1410, 0, 0, 0, P, 65536, 12, 4, 1 << 20),      # evicted while faults are served
    (1800, 1810, 0, 0, 0, P, 65536, 12, 4, 2 << 20),      # and while not
    (3000, 3010, 0, 0, 0, P, 8192, 11, 1, 3 << 20),       # between kernels: of the next one's iteration
    (6000, 6010, 0, 0, 0, P, 4096, 12, 1, 3 << 20),       # after the last
    (6000, 6010, 0, 0, 0, P, 4096, 13, 0, 3 << 20))
c.executescript(sys.argv[2])
c.commit()
END
}
# What Python makes of the JSON document ("d").
query() { report "$1" "${@:3}" --format json 2>/dev/null | python3 -c 'import json,sys
d = json.load(sys.stdin)
S = d["summary"]
exec(sys.argv[1])' "$2"; }

sample "$tmp/a.sqlite" ""
ok "an export is read" report "$tmp/a.sqlite" --iteration 'mine:step'
is "$(query "$tmp/a.sqlite" 'print(d["schema"], S["gpu_page_faults"], S["cpu_page_faults"], S["um_h2d_bytes"],
    S["um_d2h_bytes"], S["um_d2d_bytes"], S["kernels"], S["copy_h2d_bytes"], S["missing"])')" \
	"umreport/1 8 4 73728 135168 4096 4 100 ['CUDA_GPU_MEMORY_USAGE_EVENTS']" "sums over the file"
is "$(query "$tmp/a.sqlite" 'print([(i["pid"], i["n"], i["name"], i["mark"], i["kernels"], i["gpu_page_faults"],
    i["cpu_page_faults"], i["um_h2d_bytes"], i["um_d2h_bytes"], i["ns"]) for i in d["iterations"]], sep="\n")' \
	--iteration 'mine:step' | sed 's/), (/)\n(/g')" \
	"[(10, 0, 'step', None, 2, 7, 1, 65536, 131072, 1500)
(10, 1, 'step', None, 1, 1, 1, 8192, 0, 1000)
(10, 2, 'step', 'unfinished', 0, 0, 0, 0, 0, 8700)]" \
	"events belong to iterations by correlation, by process, and between kernels to the next one"
is "$(query "$tmp/a.sqlite" 'print([(i["pid"], i["name"], i["kernels"], i["cpu_page_faults"])
    for i in d["iterations"]])' \
	--iteration 'step*' | grep -o "(20[^)]*)")" "(20, 'step 7', 1, 1)" "a domain's number is its process's"
is "$(query "$tmp/a.sqlite" 'print([(o["name"], o["launches"], o["gpu_page_faults"], o["fault_ns"], o["um_h2d_bytes"],
    o["um_d2h_bytes"]) for o in d["ops"]])')" "[('scale', 2, 8, 500, 65536, 65536), ('add', 2, 0, 0, 0, 0)]" \
	"kernels: groups of faults that overlap count once, evictions for faults alone"
is "$(query "$tmp/a.sqlite" 'print([(c["direction"], c["cause"], c["bytes"]) for c in d["causes"]][:3])')" \
	"[('to device', 'prefetch', 8192), ('to device', 'demand', 4096), ('to device', 'speculative', 61440)]" "causes"
is "$(query "$tmp/a.sqlite" 'print([(r["name"], r["domain"], r["ranges"], r["unfinished"]) for r in d["ranges"]])')" \
	"[('step', 'mine', 3, 1), ('step *', 'yours', 1, 0), ('inner', None, 1, 0)]" "ranges, by name and domain"
is "$(query "$tmp/a.sqlite" 'print([(p["pid"], p["name"], p["kernels"]) for p in d["processes"]])')" \
	"[(10, 'a', 3), (20, 'b', 1)]" "processes"
like "$(report "$tmp/a.sqlite")" "^note: no iterations: .* --iteration 'mine:step'" "a likely iteration is named"

is "$(query "$tmp/a.sqlite" 'print(S["gpu_page_faults"], S["kernels"])' --filter-time 2us/)" "1 2" \
	"only what begins late"
is "$(query "$tmp/a.sqlite" 'print(S["gpu_page_faults"], S["cpu_page_faults"])' --filter-time 120/1200)" "5 3" \
	"a window of time filters them"
is "$(query "$tmp/a.sqlite" 'print(S["cpu_page_faults"], S["kernels"])' --filter-nvtx 'yours:step*')" "2 0" \
	"a range filters them"
is "$(report "$tmp/a.sqlite" --report ops:rows=1 --format csv)" \
	"$(printf '%s\r\n' name,launches,ns,gpu_page_faults,fault_ns,um_h2d_bytes,um_d2h_bytes,prefetch_wait_ns \
		scale,2,2000,8,500,65536,65536,510)" "csv"
is "$(report "$tmp/a.sqlite" --report ops --no-header --timeunit us -q | tail -n 2 | tr -s ' ')" \
	" scale 2 2.000 8 0.500 0.1 0.1 0.510
 add 2 2.500 0 0.000 0.0 0.0 0.000" "a table without titles"
like "$(report --help-reports)" "^op-iterations +kernels" "the tables are listed"

# Shapes of files: each is the sample, changed.
shape() { # NAME SQL QUERY RESULT [OPTION]...
	sample "$tmp/s.sqlite" "$2"
	is "$(query "$tmp/s.sqlite" "$3" "${@:5}")" "$4" "$1"
}
shape "rows in no order" "CREATE TABLE k AS SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start DESC;
	DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL; INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT * FROM k" \
	'print(S["kernels"], [i["kernels"] for i in d["iterations"]])' "4 [2, 1, 0]" --iteration mine:step
shape "names as text" "CREATE TABLE k AS SELECT start, \"end\", deviceId, streamId, correlationId, globalPid,
	'void f()' AS demangledName, 'f' AS shortName FROM CUPTI_ACTIVITY_KIND_KERNEL;
	DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL; ALTER TABLE k RENAME TO CUPTI_ACTIVITY_KIND_KERNEL" \
	'print([(o["name"], o["launches"]) for o in d["ops"]])' "[('f', 4)]"
shape "no calls: by time, and said" "DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME;
	UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 150, \"end\" = 160 WHERE start = 1000" \
	'print([i["kernels"] for i in d["iterations"]], "by time" in d["notes"][0], S["missing"][0])' \
	"[1, 0, 2] True CUPTI_ACTIVITY_KIND_RUNTIME" --iteration mine:step
shape "columns that are not there, and tables" "ALTER TABLE CUPTI_ACTIVITY_KIND_MEMCPY DROP COLUMN migrationCause;
	ALTER TABLE CUPTI_ACTIVITY_KIND_MEMCPY DROP COLUMN virtualAddress; DROP TABLE StringIds; DROP TABLE PROCESSES;
	DROP TABLE ANALYSIS_DETAILS" 'print(S["um_h2d_bytes"], d["ops"][0]["name"], d["processes"][0]["pid"])' \
	"73728 (no name) 10"
shape "nothing of the format's own version" "DROP TABLE META_DATA_EXPORT; DROP TABLE META_DATA_CAPTURE" \
	'print(d["schema_version"] == "", S["kernels"])' "True 4"
shape "the older name of that table" "ALTER TABLE META_DATA_EXPORT RENAME TO EXPORT_META_DATA;
	UPDATE EXPORT_META_DATA SET value = '2.9.1' WHERE name = 'EXPORT_SCHEMA_VERSION'" \
	'print(d["schema_version"])' "2.9.1"
shape "a table of nothing: recorded" "DELETE FROM CUDA_UM_GPU_PAGE_FAULT_EVENTS" \
	'print(S["gpu_page_faults"], S["missing"])' "0 ['CUDA_GPU_MEMORY_USAGE_EVENTS']"
shape "a view is no table" "ALTER TABLE CUDA_UM_GPU_PAGE_FAULT_EVENTS RENAME TO x;
	CREATE VIEW CUDA_UM_GPU_PAGE_FAULT_EVENTS AS SELECT * FROM x" \
	'print(S["gpu_page_faults"], S["missing"][0])' "None CUDA_UM_GPU_PAGE_FAULT_EVENTS"
shape "numbers as texts, and such that cannot be" "UPDATE CUDA_UM_GPU_PAGE_FAULT_EVENTS SET numberOfPageFaults = 'many';
	UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET bytes = -5, migrationCause = 77; UPDATE NVTX_EVENTS SET text = x'ff00fe'
	WHERE text IS NOT NULL; UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET \"end\" = -1" \
	'print(S["gpu_page_faults"], S["um_h2d_bytes"], S["kernel_ns"])' "0 0 0"
for state in "true:none happened" "false:not recorded"; do
	shape "no table of faults: ${state#*:}" "DROP TABLE CUDA_UM_GPU_PAGE_FAULT_EVENTS;
		INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:COLLECT_UVM_GPU_PAGE_FAULTS', '${state%:*}')" \
		'm = d["missing"][0]; print(m["table"], m["state"], m["option"])' \
		"CUDA_UM_GPU_PAGE_FAULT_EVENTS ${state#*:} --cuda-um-gpu-page-faults=true"
done
none_of_faults='print(S["gpu_page_faults"], S["gpu_fault_groups"], S["fault_ns"],
	[x["fault_ns"] for t in ("ops", "tensors") for x in d[t]].count(0), S["um_h2d_bytes"] is None)'
shape "faults that were not recorded are null in each table" "DROP TABLE CUDA_UM_GPU_PAGE_FAULT_EVENTS;
	INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:COLLECT_UVM_GPU_PAGE_FAULTS', 'false')" \
	"$none_of_faults" "None None None 0 False"
like "$(report "$tmp/s.sqlite")" '  GPU page faults +-$' "they are - in a text"
is "$(report "$tmp/s.sqlite" --report summary --format csv | tail -n 1 | cut -d, -f1)" "" \
	"a missing value is an empty cell in CSV"
report "$tmp/s.sqlite" --format html -o "$tmp/s.html"
like "$(<"$tmp/s.html")" 'data-key="gpu_page_faults".*title="not recorded[^"]*">&ndash;' \
	"a missing value is a dash with a title on a page"
shape "faults that were recorded, and of which there was none, are 0" "DROP TABLE CUDA_UM_GPU_PAGE_FAULT_EVENTS;
	INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:COLLECT_UVM_GPU_PAGE_FAULTS', 'true')" \
	'print(S["gpu_page_faults"], S["fault_ns"])' "0 0"
shape "migrations that the system cannot trace are null" "DELETE FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind > 10;
	CREATE TABLE DIAGNOSTIC_EVENT (severity INTEGER, text TEXT);
	INSERT INTO DIAGNOSTIC_EVENT VALUES (2, 'CUDA device 0: Unified Memory cannot be traced on it')" \
	'print(S["um_h2d_bytes"], S["prefetch_wait_ns"], S["copy_h2d_bytes"] is None)' "None None False"
shape "what the profiler warned of" "CREATE TABLE DIAGNOSTIC_EVENT (severity INTEGER, text TEXT);
	INSERT INTO DIAGNOSTIC_EVENT VALUES (2, 'Unified Memory cannot be traced'), (4, 'CUDA is here'),
	(3, 'no OpenGL')" \
	'print([n for n in d["notes"] if "iterations" not in n])' "['Unified Memory cannot be traced']"
shape "allocations" "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER, globalPid INTEGER, deviceId INTEGER,
	address INTEGER, bytes INTEGER, memKind INTEGER, memoryOperationType INTEGER);
	INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS SELECT 10, globalPid, 0, 4096, 1000, 4, 0 FROM PROCESSES;
	INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS SELECT 20, globalPid, 0, 4096, 1000, 4, 1 FROM PROCESSES;
	INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS SELECT 30, globalPid, 0, 4096, 500, 2, 0 FROM PROCESSES" \
	'print([(p["managed_allocations"], p["managed_peak_bytes"]) for p in d["processes"]], S["missing"])' \
	"[(1, 1000), (1, 1000)] []"

shape "names of allocations" "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER, globalPid INTEGER,
	deviceId INTEGER, address INTEGER, bytes INTEGER, memKind INTEGER, memoryOperationType INTEGER, name TEXT);
	INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS SELECT 10, globalPid, 0, 4096, 65536, 6, 0, 'grid' FROM PROCESSES
	WHERE pid = 10; INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS SELECT 10, globalPid, 0, 1 << 20, 1 << 20, 4, 0, NULL
	FROM PROCESSES" \
	'print([(t["name"], t["lives"], t["gpu_page_faults"], t["cpu_page_faults"], t["um_h2d_bytes"],
	t["um_d2h_bytes"]) for t in d["tensors"]])' \
	"[('grid', 1, 8, 2, 65536, 0), ('(unknown)', 0, 0, 2, 8192, 69632), ('allocation #0 (1 MiB)', 2, 0, 0, 0,\
 65536)]"

# Marks: as texts and registered strings, of the one domain; the program's own marks and damaged ones are none.
marks="UPDATE NVTX_EVENTS SET text = 'umadvise' WHERE text = 'mine'; INSERT INTO StringIds VALUES
	(9, 'tensor 0x2000 61440 inner'); INSERT INTO NVTX_EVENTS SELECT 20, NULL, 34,
	'tensor 0x1000 65536 outer one', globalTid, NULL, 1 FROM NVTX_EVENTS WHERE text = 'umadvise';
	INSERT INTO NVTX_EVENTS SELECT 30, NULL, 34, NULL, globalTid, 9, 1 FROM NVTX_EVENTS WHERE text = 'umadvise';
	INSERT INTO NVTX_EVENTS SELECT 220, NULL, 34, 'tensor-end 0x2000', globalTid, NULL, 1 FROM NVTX_EVENTS
	WHERE text = 'umadvise';"
shape "tensors that are marked" "$marks" \
	'print([(t["name"], t["bytes"], t["lives"], t["gpu_page_faults"], t["fault_ns"], t["cpu_page_faults"],
	t["um_h2d_bytes"]) for t in d["tensors"] if t["lives"]])' \
	"[('outer one', 65536, 1, 6, 300, 2, 4096), ('inner', 61440, 1, 2, 200, 0, 61440)]"
is "$(query "$tmp/s.sqlite" 'print([(t["n"], t["gpu_page_faults"], t["um_h2d_demand_bytes"])
	for t in d["tensor_iterations"] if t["name"] == "outer one"])' --report tensor-iterations)" \
	"[(0, 5, 4096), (1, 1, 0)]" "by iteration"
shape "marks that say nothing, and of others" "$marks INSERT INTO NVTX_EVENTS SELECT 40, NULL, 34, 'tensor 1 x y',
	globalTid, NULL, 1 FROM NVTX_EVENTS WHERE text = 'umadvise'; INSERT INTO NVTX_EVENTS SELECT 50, NULL, 34,
	'tensor 0x1000 65536 theirs', globalTid, NULL, 1 FROM NVTX_EVENTS WHERE text = 'yours';
	INSERT INTO NVTX_EVENTS SELECT 60, NULL, 34, 'tensor 0x1000 65536 nobody', globalTid, NULL, 0 FROM NVTX_EVENTS
	WHERE text = 'umadvise'" \
	'print([t["name"] for t in d["tensors"] if t["lives"]], [n for n in d["notes"] if "mark" in n])' \
	"['outer one', 'inner'] ['1 marks of the domain umadvise are not understood']"

# What is refused, in one line, with status 3.
refused() { # NAME FILE PATTERN
	local out rc=0
	out=$(report "$2" 2>&1) || rc=$?
	is "$rc $(printf '%s\n' "$out" | wc -l)" "3 1" "$1: status and lines"
	like "$out" "^umadvise report: .*$3" "$1: the reason"
}
: >"$tmp/empty.sqlite"
printf 'PK\3\4 this is no database' >"$tmp/run.nsys-rep"
printf 'kernel,faults\n' >"$tmp/text.sqlite"
head -c 20000 "$tmp/a.sqlite" >"$tmp/cut.sqlite"
gzip -c "$tmp/a.sqlite" >"$tmp/a.sqlite.gz"
python3 -c 'import sqlite3,sys; c = sqlite3.connect(sys.argv[1]); c.execute("CREATE TABLE t (x)"); c.commit()' \
	"$tmp/other.sqlite"
refused "a file that is not there" "$tmp/none.sqlite" 'none.sqlite: cannot be read: No such file'
refused "a folder" "$tmp" 'is not a regular file'
refused "an empty one" "$tmp/empty.sqlite" 'is empty'
refused "a report that was not exported" "$tmp/run.nsys-rep" "nsys export --type sqlite"
refused "a text" "$tmp/text.sqlite" 'is not a SQLite file'
refused "a compressed one" "$tmp/a.sqlite.gz" 'is compressed'
refused "one that was cut off" "$tmp/cut.sqlite" 'truncated: 20000 of [0-9]+ bytes'
refused "another database" "$tmp/other.sqlite" 'is not an export of Nsight Systems'
sample "$tmp/new.sqlite" "UPDATE META_DATA_EXPORT SET value = '4.0.1' WHERE name = 'EXPORT_SCHEMA_VERSION'"
refused "a schema to come" "$tmp/new.sqlite" 'has schema 4.0.1, newer'
sample "$tmp/odd.sqlite" "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME COLUMN start TO began"
refused "a column without which nothing goes" "$tmp/odd.sqlite" 'CUPTI_ACTIVITY_KIND_KERNEL has no column start'
sample "$tmp/late.sqlite" "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET \"end\" = 9223372036854775807 WHERE correlationId = 2"
refused "a time that cannot be" "$tmp/late.sqlite" \
	'damaged: table CUPTI_ACTIVITY_KIND_KERNEL, row [0-9]+: 0 bytes from 2000 to 9223372036854775807 ns'
sample "$tmp/more.sqlite" "UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET bytes = 1 << 50 WHERE copyKind = 11"
refused "a migration that cannot be" "$tmp/more.sqlite" \
	'damaged: table CUPTI_ACTIVITY_KIND_MEMCPY, row [0-9]+: 1125899906842624 bytes'
sample "$tmp/bare.sqlite" "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL; DROP TABLE CUPTI_ACTIVITY_KIND_MEMCPY;
	DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME; DROP TABLE CUDA_UM_GPU_PAGE_FAULT_EVENTS;
	DROP TABLE CUDA_UM_CPU_PAGE_FAULT_EVENTS"
fails 3 "no data of unified memory: a report, and status 3" report "$tmp/bare.sqlite"
like "$(report "$tmp/bare.sqlite" 2>&1 >/dev/null)" \
	'nsys profile --trace=cuda,nvtx --cuda-um-gpu-page-faults=true --cuda-um-cpu-page-faults=true$' \
	"the switches are named"
is "$(query "$tmp/bare.sqlite" 'print(S["gpu_page_faults"], len(S["missing"]))')" "None 6" \
	"the report lists what is missing"

# The command line.
fails 2 "a missing file is refused" report
fails 2 "an option that is none" report "$tmp/a.sqlite" --nonsense
fails 2 "a table that is none" report "$tmp/a.sqlite" --report summary,what
fails 2 "a table given twice is refused" report "$tmp/a.sqlite" --report ops,ops
fails 2 "rows that are no number" report "$tmp/a.sqlite" --report ops:rows=x
fails 2 "a form that is none" report "$tmp/a.sqlite" --format xml
fails 2 "a unit that is none" report "$tmp/a.sqlite" --timeunit h
fails 2 "a window that is none" report "$tmp/a.sqlite" --filter-time 5
fails 2 "two tables as csv are refused" report "$tmp/a.sqlite" --report ops,causes --format csv
ok "a report is written to a file" report "$tmp/a.sqlite" -o "$tmp/out.txt"
ok "report replaces an existing output file" report "$tmp/a.sqlite" -o "$tmp/out.txt"
ok "report accepts --force-overwrite" report "$tmp/a.sqlite" -o "$tmp/out.txt" --force-overwrite
fails 3 "nothing to write" report "$tmp/empty.sqlite" -o "$tmp/none.txt"
ok "leaves no file" test ! -e "$tmp/none.txt"
mkdir "$tmp/a ?%20#b"
cp "$tmp/a.sqlite" "$tmp/a ?%20#b/x;y.sqlite"
ok "a path with special characters is read" report "$tmp/a ?%20#b/x;y.sqlite"
is "$(ls "$tmp/a ?%20#b")" "x;y.sqlite" "no file is left beside the export"
is "$(report "$tmp/a.sqlite" "$tmp/a.sqlite" --format json | grep -c umreport/1)" "2" "two files give two documents"

# From a simulation, and of one.
vgg=("$data/vgg16.umtrace.gz" --oversubscribe 1.5 --iterations 3)
ok "a simulation is exported" "$UMADVISE" simulate "${vgg[@]}" --strategy on-demand --per-iteration --format json \
	--export "$tmp/vgg.sqlite" -o "$tmp/vgg.json"
is "$(query "$tmp/vgg.sqlite" 'print([i["gpu_page_faults"] for i in d["iterations"]], [i["name"] for i in
    d["iterations"]][2], S["missing"], len(d["devices"]))')" \
	"$(python3 -c 'import json,sys
r = json.load(open(sys.argv[1]))["runs"][0]
print([i["faults"] for i in r["iterations"]], "iteration 2", ["CUDA_UM_CPU_PAGE_FAULT_EVENTS"], 1)' "$tmp/vgg.json")" \
	"its iterations are found by themselves"
ok "the workload is simulated again" "$UMADVISE" simulate "${vgg[@]}" --strategy on-demand --export "$tmp/vgg2.sqlite"
ok "gives the same bytes" cmp "$tmp/vgg.sqlite" "$tmp/vgg2.sqlite"
fails 2 "two strategies are refused" "$UMADVISE" simulate "${vgg[@]}" --export "$tmp/x.sqlite"
fails 2 "two traces are refused" "$UMADVISE" simulate "${vgg[@]}" "$data/alexnet_b200.umtrace.gz" --strategy on-demand \
	--export "$tmp/x.sqlite"
fails 2 "a plan is not exported" "$UMADVISE" plan "$data/vgg16.umtrace.gz" --export "$tmp/x.sqlite" -o "$tmp/x.umplan"
fails 3 "a file that cannot be written is reported" "$UMADVISE" simulate "${vgg[@]}" --strategy on-demand \
	--export "$tmp/no/x.sqlite"
tap_done
