#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# umadvise diff: documents made by hand, whose numbers say what has to be said of them; then a simulation's exports.
. "${top_srcdir:=.}/tests/tap.sh"

python3 -c 'import json' 2>/dev/null || skip_all "no Python"
diff() { "$UMADVISE" diff "$@"; }

# A report: iterations of so many ms each, "cold" the first where it is asked for, and kernels name:ms:faults.
document() { # FILE "MS MS ..." "NAME:MS:FAULTS ..." [MARK]
	python3 - "$@" <<'END_OF_PYTHON'
import json, sys
file, times, ops = sys.argv[1], [float(t) for t in sys.argv[2].split()], [o.split(":") for o in sys.argv[3].split()]
mark = sys.argv[4] if len(sys.argv) > 4 else None
ops = [{"name": n, "launches": len(times), "ns": int(float(t) * 1e6), "gpu_page_faults": int(f)} for n, t, f in ops]
json.dump({"schema": "umreport/1", "file": file,
    "summary": {"kernel_ns": sum(o["ns"] for o in ops), "gpu_page_faults": sum(o["gpu_page_faults"] for o in ops),
                "iterations": len(times), "missing": []},
    "iterations": [{"n": i, "name": None, "mark": mark if i == 0 else None, "ns": int(t * 1e6)}
                   for i, t in enumerate(times)],
    "ops": ops, "something": [{"later": {"x": [1]}, "n": 1}], "more": "text"}, open(file, "w"))
END_OF_PYTHON
}
verdict() { diff "$tmp/$1.json" "$tmp/$2.json" "${@:3}" | head -n 1; }

document "$tmp/a.json" "100 101 99 100 100" "sgemm:50:0 add:40:7 old:1:0"
document "$tmp/same.json" "101 100 100 99 101" "sgemm:50:0 add:40:7 old:1:0"
document "$tmp/slow.json" "112 112 113 111 112" "sgemm:62:18220 add:40:7 fresh:1:0"
document "$tmp/noisy.json" "80 112 150 70 160" "sgemm:62:0 add:40:7 old:1:0"
document "$tmp/cold.json" "900 100 101 99 100" "sgemm:50:0 add:40:7 old:1:0" cold
document "$tmp/twice.json" "100 101 99 100 100 100 101 99 100 100" "sgemm:100:0 add:80:14 old:2:0"
document "$tmp/kernels.json" "" "sgemm:60:0 add:40:7 old:1:0"
document "$tmp/none.json" "" ""

is "$(verdict a slow)" \
	"B is 12.0 % slower (median 100.000 -> 112.000 ms, noise 0.0 %): sgemm: gpu_page_faults 0 -> 18220" \
	"the verdict says slower and why"
is "$(verdict slow a)" \
	"B is 10.7 % faster (median 112.000 -> 100.000 ms, noise 0.0 %): sgemm: gpu_page_faults 18220 -> 0" \
	"a faster run is reported as faster"
is "$(verdict a same)" "B is as fast as A (median 100.000 -> 100.000 ms, noise 1.7 %)" \
	"runs within the noise are reported as equally fast"
like "$(verdict a noisy)" "^B is as fast as A \(median 100.000 -> 112.000 ms, noise [5-9][0-9]" \
	"a change within the noise counts as equal"
like "$(verdict a slow --threshold 15)" "^B is as fast as A" "a change within the threshold counts as equal"
like "$(verdict a cold)" "^B is as fast as A" "a cold iteration does not count"
like "$(verdict a kernels)" "^B is 11.0 % slower \(kernels together 91.000 -> 101.000 ms, noise not known\)" \
	"without iterations in one, all kernels are compared"
like "$(verdict a none)" "^no verdict" "nothing to compare"

query() { # A B EXPRESSION [OPTION]...
	diff "$tmp/$1.json" "$tmp/$2.json" --format json "${@:4}" | python3 -c '
import json, sys
d = json.load(sys.stdin)
print(eval(sys.argv[1]))' "$3"
}
is "$(query a slow '[(c["row"], c["state"], c["gpu_page_faults"]) for c in d["changes"] if c["table"] == "ops"]')" \
	"[('sgemm', 'slower', [0, 18220]), ('fresh', 'new', [0, 0]), ('old', 'gone', [0, 0])]" "slower, new and gone"
is "$(query a same 'd["schema"], d["changes"], d["verdict"]["state"]')" "('umdiff/1', [], 'same')" \
	"runs within the noise have no changes"
is "$(query a twice 'd["per_iteration"], d["changes"], d["verdict"]["state"]')" "(True, [], 'same')" \
	"twice as many iterations: sums are per iteration"
is "$(query a none 'd["verdict"]["state"], d["verdict"]["a_ns"], d["verdict"]["noise_percent"]')" \
	"('unknown', None, None)" "what is not known is null"
is "$(diff "$tmp/a.json" "$tmp/slow.json" --format csv | grep sgemm)" \
	"$(printf 'ops,"sgemm",slower,ns,50000000,62000000,24\r\nops,"sgemm",slower,gpu_page_faults,0,18220,\r')" "csv"

ok "a slower run succeeds without --fail-on" diff "$tmp/a.json" "$tmp/slow.json"
fails 1 "slower, with --fail-on" diff "$tmp/a.json" "$tmp/slow.json" --fail-on worse
ok "--fail-on accepts an equal run" diff "$tmp/a.json" "$tmp/same.json" --fail-on worse
ok "--fail-on accepts a faster run" diff "$tmp/slow.json" "$tmp/a.json" --fail-on worse
fails 3 "nothing that could be compared" diff "$tmp/a.json" "$tmp/none.json" --fail-on worse
fails 2 "a single file is refused" diff "$tmp/a.json"
fails 2 "three files are refused" diff "$tmp/a.json" "$tmp/a.json" "$tmp/a.json"
fails 2 "a threshold that is none" diff "$tmp/a.json" "$tmp/a.json" --threshold much
fails 2 "a level that is none" diff "$tmp/a.json" "$tmp/a.json" --fail-on often
fails 2 "a form that is none" diff "$tmp/a.json" "$tmp/a.json" --format xml
fails 3 "a file that is not there" diff "$tmp/a.json" "$tmp/gone.json"
printf '{"schema": "umreport/1", "summary": {' >"$tmp/cut.json"
fails 3 "a document that was cut off" diff "$tmp/a.json" "$tmp/cut.json"
like "$(diff "$tmp/a.json" "$tmp/cut.json" 2>&1)" "cut.json:1: .*expected one document" \
	"the reason for the refusal is reported"
printf '{"schema": "umreport/2", "summary": {}}' >"$tmp/new.json"
fails 3 "a schema to come" diff "$tmp/a.json" "$tmp/new.json"
ok "a comparison is written to a file" diff "$tmp/a.json" "$tmp/slow.json" -o "$tmp/out.txt"
ok "diff replaces an existing output file" diff "$tmp/a.json" "$tmp/slow.json" -o "$tmp/out.txt"

# Exports, and what report says of them.
cat >"$tmp/few.umtrace" <<'END'
{"umtrace":1,"source":"by hand","workload":"few"}
{"ev":"alloc","t":0,"bytes":33554432,"name":"x","role":"param"}
{"ev":"alloc","t":1,"bytes":33554432,"name":"y","role":"param"}
{"ev":"iter","n":0}
{"ev":"op","name":"a","r":[0],"w":[0],"ns":1000000}
{"ev":"op","name":"b","r":[1],"w":[1],"ns":1000000}
{"ev":"iter","n":1}
{"ev":"op","name":"a","r":[0],"w":[0],"ns":1000000}
{"ev":"op","name":"b","r":[1],"w":[1],"ns":1000000}
END
for s in infinite on-demand; do
	ok "$s: the workload is simulated" \
		"$UMADVISE" simulate "$tmp/few.umtrace" --strategy "$s" --oversubscribe 1.5 --iterations 6 \
		--export "$tmp/$s.sqlite"
	"$UMADVISE" report "$tmp/$s.sqlite" --format json -o "$tmp/$s.json" 2>/dev/null
done
like "$(diff "$tmp/infinite.sqlite" "$tmp/on-demand.sqlite" | grep -v ^note: | head -n 1)" \
	"^B is .* slower .*: [ab]: gpu_page_faults 0 -> " "exports are compared"
is "$(diff "$tmp/infinite.json" "$tmp/on-demand.sqlite" | head -n 1)" \
	"$(diff "$tmp/infinite.sqlite" "$tmp/on-demand.json" | head -n 1)" "an export is what its document is"
ok "an export is the same as its document" \
	diff "$tmp/on-demand.sqlite" "$tmp/on-demand.json" --fail-on worse --threshold 0

# Two runs that differ in what should be the same.
out=$(diff "$tmp/infinite.sqlite" "$tmp/on-demand.sqlite")
like "$(head -n 1 <<<"$out")" '^note: devices differ: A: v100, 32768\.0 MiB, B: v100, [0-9.]* MiB$' \
	"a difference of devices is said first"
is "$(query infinite on-demand '[x["what"] for x in d["differences"]]')" "['devices']" \
	"different devices are named in the document"
is "$(query a slow 'd["differences"]')" "[]" "runs that do not differ have no such line"
python3 - "$tmp/on-demand.json" "$tmp/other.json" "$tmp/unseen.json" <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
d["devices"][0].update(name="a100", driver="560.94")
d["processes"][0]["name"] = "/usr/bin/other"
d["summary"]["iterations_by"] = "repetition"
for i in d["iterations"]:
    i["name"] = "step %d" % i["n"]
json.dump(d, open(sys.argv[2], "w"))
d = json.load(open(sys.argv[1]))
d["devices"][0]["driver"] = "550.1"
d["summary"]["gpu_page_faults"] = None
for table in ("ops", "tensors"):
    for row in d[table]:
        row["gpu_page_faults"] = None
json.dump(d, open(sys.argv[3], "w"))
END
is "$(query unseen other '[(x["what"], x["b"]) for x in d["differences"]][1:]')" \
	"[('drivers', '560.94'), ('programs', '/usr/bin/other'), ('source of iterations', 'repetition'), \
('iteration marks', 'step *'), ('gpu_page_faults', 'recorded')]" \
	"differences of driver, program, iterations and recorded data are listed"
is "$(query unseen on-demand '[c for c in d["changes"]]')" "[]" "a value that one has not recorded is no change"
is "$(diff "$tmp/unseen.json" "$tmp/other.json" --format csv | grep -c '^differences,')" 6 "CSV has a row for each"
ok "the exit status is that of the verdict" diff "$tmp/on-demand.json" "$tmp/other.json" --fail-on worse
tap_done
