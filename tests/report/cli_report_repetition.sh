#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# umadvise report without marks of iterations: found by repetition, they are the true ones, of which the
# same recording still has the marks; and found in the program's own ranges.
. "${top_srcdir:=.}/tests/tap.sh"

python3 -c 'import sqlite3' 2>/dev/null || skip_all "no Python with SQLite"
data=$top_srcdir/tests/data

sql() { # FILE SQL
	python3 -c 'import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
c.executescript(sys.argv[2])
c.commit()' "$@"
}
# What Python makes of the JSON document ("d").
query() { # FILE EXPRESSION [OPTION]...
	"$UMADVISE" report "$1" --format json -q \
		--report summary,iterations,op-iterations,processes "${@:3}" 2>/dev/null |
		python3 -c 'import json, sys
d = json.load(sys.stdin)
S = d["summary"]
print(eval(sys.argv[1]))' "$2"
}

# --- the truth ------------------------------------------------------------------------------------------------------
same='sorted([(i["n"], i["mark"], i["ns"], i["begin_ns"], i["kernels"], i["gpu_page_faults"], i["fault_ns"],
    i["um_h2d_bytes"], i["um_h2d_prefetch_bytes"], i["um_d2h_bytes"], i["um_d2h_eviction_bytes"])
    for i in d["iterations"]] + [(c["name"], str(c["n"]), c["launches"], c["gpu_page_faults"], c["um_h2d_bytes"],
    c["um_d2h_bytes"]) for c in d["op_iterations"]], key = str)'
for case in vgg16:on-demand cg_laplace3d:on-demand transformer_varlen:on-demand dlrm:lookahead lstm_lm:infinite; do
	trace=${case%:*}
	run=$tmp/$trace.sqlite
	"$UMADVISE" simulate "$data/$trace.umtrace.gz" --strategy "${case#*:}" --oversubscribe 1.3 --iterations 6 \
		--export "$run" >/dev/null
	query "$run" "$same" >"$tmp/true"
	is "$(query "$run" 'S["iterations"], S["iterations_by"]')" "(6, 'marked')" "$trace: six are marked"
	sql "$run" "DROP TABLE NVTX_EVENTS"
	query "$run" "$same" >"$tmp/found"
	ok "$trace: found to the kernel, the fault and the byte" cmp "$tmp/true" "$tmp/found"
	is "$(query "$run" 'S["iterations_by"], d["processes"][0]["repetition_confidence"]')" "('repetition', 'high')" \
		"$trace: and it is said how"
done
run=$tmp/vgg16.sqlite
query "$run" "$same" >"$tmp/true"
sql "$run" "DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME"
query "$run" "$same" >"$tmp/found"
ok "the iterations are the same without calls" cmp "$tmp/true" "$tmp/found"
sql "$run" "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET correlationId = 0"
query "$run" "$same" >"$tmp/found"
ok "the iterations are the same without correlations" cmp "$tmp/true" "$tmp/found"
is "$(query "$run" 'S["iterations"], S["iterations_by"]' --iteration none)" "(0, None)" "none are wanted"
is "$(query "$run" 'S["iterations"], S["iterations_by"]' --iteration repetition)" "(6, 'repetition')" "only those are"
is "$(query "$run" 'S["iterations"], S["iterations_by"]' --iteration '[a]uto')" "(0, None)" "a range may be called auto"

# --- several files, of which each has its own -----------------------------------------------------------------------
one=$tmp/transformer_varlen.sqlite other=$tmp/cg_laplace3d.sqlite
of='sorted((i["n"], i["ns"], i["kernels"], i["gpu_page_faults"], i["um_h2d_bytes"]) for i in d["iterations"]
    if i.get("file", None) in (None, sys.argv[2]))'
of() { # FILE OF-FILE [OPTION]...
	"$UMADVISE" report "$1" "${@:3}" --format json -q --report iterations | python3 -c 'import json, sys
d = json.load(sys.stdin)
print(eval(sys.argv[1]))' "$of" "$2"
}
for file in "$one" "$other"; do
	is "$(of "$one" "$file" "$other" --merge)" "$(of "$file" "$file")" \
		"merged: ${file##*/} has the iterations that it has alone"
done

# --- ranges of the program ------------------------------------------------------------------------------------------
# Ten steps of kernels abcdef; in each, two ranges one behind the other; around all, an epoch. $2: SQL.
sample() { # FILE SQL
	python3 - "$@" <<'END'
import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
P = 1 << 48 | 10 << 24
c.executescript("""
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE NVTX_EVENTS (start INTEGER, "end" INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER,
	domainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, "end" INTEGER, globalTid INTEGER, correlationId INTEGER,
	nameId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, "end" INTEGER, deviceId INTEGER, streamId INTEGER,
	correlationId INTEGER, globalPid INTEGER, shortName INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, "end" INTEGER, deviceId INTEGER, streamId INTEGER,
	correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER, migrationCause INTEGER,
	virtualAddress INTEGER);
INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000');
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (5, 6, 0, 0, 0, %d, 4096, 11, 2, 4096);
""" % P)
c.executemany("INSERT INTO StringIds VALUES (?, ?)", ((10 + i, n) for i, n in enumerate("abcdef")))
def nvtx(start, end, text):
    c.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, ?, ?, 0)", (start, end, text, P + 1))
nvtx(100, 10900, "epoch 0")
for step in range(10):
    t = 200 + 1000 * step
    nvtx(t, t + 900, "step %d" % step)
    nvtx(t, t + 400, "forward")
    nvtx(t + 450, t + 850, "backward")
    for k in range(6):
        at, n = t + 10 + 140 * k, 1 + 6 * step + k
        c.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, 1)", (at, at + 5, P + 1, n))
        c.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 7, ?, ?, ?)",
                  (at + 10, at + 110, n, P, 10 + k))
c.executescript(sys.argv[2])
c.commit()
END
}
what='S["iterations_by"], S["iterations"], d["iterations"][0]["name"], d["iterations"][0]["kernels"]'
sample "$tmp/a.sqlite" ""
is "$(query "$tmp/a.sqlite" "$what")" "('ranges', 10, 'step 0', 6)" "the ranges that most of the work is in"
like "$("$UMADVISE" report "$tmp/a.sqlite" --report summary)" \
	"note: no --iteration given: using ranges 'step \*': 100.0 %" "a note names the ranges"
is "$(query "$tmp/a.sqlite" "$what" --iteration forward)" "('asked', 10, 'forward', 3)" "others can be asked for"
is "$(query "$tmp/a.sqlite" "$what" --iteration repetition)" "('repetition', 10, 'repetition', 6)" \
	"--iteration repetition finds what repeats"
sample "$tmp/b.sqlite" "DELETE FROM NVTX_EVENTS WHERE text LIKE 'step%'"
is "$(query "$tmp/b.sqlite" "$what")" "('repetition', 10, 'repetition', 6)" "ranges that are but parts are not taken"
sample "$tmp/c.sqlite" "UPDATE NVTX_EVENTS SET \"end\" = \"end\" - 800 WHERE text LIKE 'step%' AND start % 2000 > 1000"
is "$(query "$tmp/c.sqlite" 'S["iterations_by"]')" "repetition" "ranges of very different lengths are no iterations"
sample "$tmp/d.sqlite" "UPDATE NVTX_EVENTS SET globalTid = globalTid + start % 3 WHERE text LIKE 'step%'"
is "$(query "$tmp/d.sqlite" 'S["iterations_by"]')" "repetition" "ranges of several threads are no iterations"
sample "$tmp/e.sqlite" "DELETE FROM NVTX_EVENTS; DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE shortName <> 10"
is "$(query "$tmp/e.sqlite" 'S["iterations_by"]')" "None" "a report of one repeated kernel succeeds"
like "$("$UMADVISE" report "$tmp/e.sqlite" --report summary)" \
	"note: no iterations: kernels do not repeat regularly" \
		"a repeated kernel is not an iteration, and a note says so"
sample "$tmp/f.sqlite" "DELETE FROM NVTX_EVENTS;
	UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET shortName = 10;
	ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN gridX INTEGER;
	ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN blockZ INTEGER;
	UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET gridX = 1 + (correlationId - 1) % 3,
		blockZ = 1 + (correlationId - 1) % 6 / 3"
is "$(query "$tmp/f.sqlite" "$what")" "('repetition', 10, 'repetition', 6)" "kernels with other grids and blocks repeat"
sample "$tmp/g.sqlite" "DELETE FROM NVTX_EVENTS;
	UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET correlationId = (correlationId - 1) / 6 * 6 + 1"
is "$(query "$tmp/g.sqlite" "$what")" "('repetition', 10, 'repetition', 6)" "a graph of kernels is an iteration"

# Another process, where nothing repeats; and a second device, which has a copy of each kernel but the first.
sample "$tmp/h.sqlite" "DELETE FROM NVTX_EVENTS;
	INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT start + 20000, \"end\" + 20000, 0, 7, correlationId,
		globalPid + (1 << 24), 10 FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE correlationId < 10;
	INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT start, \"end\" - 1, 1, 7, correlationId, globalPid, shortName
		FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE shortName > 10"
is "$(query "$tmp/h.sqlite" '[(p["pid"], p["iterations"], p["iterations_by"]) for p in d["processes"]]')" \
	"[(10, 10, 'repetition'), (11, 0, None)]" "each process has its own"
is "$(query "$tmp/h.sqlite" 'set(i["kernels"] for i in d["iterations"])')" "{11}" \
	"iterations include work of other devices"

# Faults of the CPU: behind the last launch, behind a call that waits, and behind one that does not.
sample "$tmp/i.sqlite" "DELETE FROM NVTX_EVENTS; INSERT INTO StringIds VALUES (2, 'cudaDeviceSynchronize_v3020'),
		(3, 'cudaMalloc_v3020');
	UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET correlationId = correlationId * 10;
	UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET correlationId = correlationId * 10;
	INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1940, 1945, (1 << 48) + (10 << 24) + 1, 121, 2),
		(1960, 1965, (1 << 48) + (10 << 24) + 1, 122, 3);
	CREATE TABLE CUDA_UM_CPU_PAGE_FAULT_EVENTS (start INTEGER, globalPid INTEGER, address INTEGER);
	INSERT INTO CUDA_UM_CPU_PAGE_FAULT_EVENTS SELECT column1, (1 << 48) + (10 << 24), 4096
		FROM (VALUES (1930), (1935), (1950), (1970), (1971), (1972), (1973))"
is "$(query "$tmp/i.sqlite" '[i["cpu_page_faults"] for i in d["iterations"]][:4]')" "[0, 3, 4, 0]" \
	"an iteration begins with the first call behind the last launch that does not wait"
is "$(query "$tmp/a.sqlite" "$what" --filter-time 3150/7150)" "('ranges', 4, 'step 3', 6)" \
	"iterations of a part of the recording are found"
tap_done
