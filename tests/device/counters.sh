#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# counters.sh - UMADVISE_COUNTERS: what a program's own log has of migrations and faults, by way of the stand-in for
# CUPTI, is what the simulated device itself has counted, to the byte and the fault; and what is said where there are
# none.

: "${top_srcdir:=.}" "${top_builddir:=.}" "${SANITIZE=}"
. "$top_srcdir/tests/tap.sh"

app=$top_builddir/tests/device/counters_app
standin=$top_builddir/standin
if [ ! -e "$standin/libcuda.so.1" ] || [ ! -x "$app" ]; then
	skip_all "the stand-in driver was not built"
fi
dry() { "$UMADVISE" dryrun -o "$tmp/d" --format csv env "$@" 2>&1; }
if [ ! -e "$standin/libs13/.libs/libcupti.so.13" ]; then
	is "$(dry UMADVISE_RUN_LOG="$tmp/n.umlog" UMADVISE_COUNTERS=on "$app" 1)" \
		"umadvise: no counters of unified memory: the headers of CUPTI were missing when the library was built
errors 1" "without CUPTI's headers that is said, once, and the program runs"
	tap_done
	exit
fi
python3 -c '' 2>/dev/null || skip_all "no python3"

# Prints what the report has, and what the device has: whole, by allocation, and the sums of iterations.
cat >"$tmp/compare.py" <<'EOF2'
import json, sys
device, report = (json.load(open(f)) for f in sys.argv[1:3])
device, tensors = device["processes"][0], {t["name"]: t for t in report["tensors"]}
keys = {"faults": "gpu_page_faults", "cpu_faults": "cpu_page_faults", "h2d_bytes": "um_h2d_bytes",
        "d2h_bytes": "um_d2h_bytes"}
wrong = [k for k in keys if device[k] != report["summary"][keys[k]]]
some = [k for k in keys if device[k]]
for a in device["top_allocations"]:
    name = "array %d" % a["number"]
    wrong += [name + " " + k for k in keys if a[k] != tensors[name][keys[k]]]
    wrong += [name + " causes"] * (tensors[name]["um_h2d_bytes"] !=
                                   tensors[name]["um_h2d_demand_bytes"] + tensors[name]["um_h2d_prefetch_bytes"])
# What is outside iterations is the CPU's, before the first.
for k in ("faults", "h2d_bytes", "d2h_bytes"):
    wrong += ["iterations " + k] * (sum(i[keys[k]] for i in report["iterations"]) != device[k])
print(" ".join(wrong) or "the same", len(device["top_allocations"]), len(report["iterations"]), len(some),
      ",".join(m["table"] for m in report["missing"]))
EOF2
log=$tmp/own.umlog
counted() { # ITERATIONS [VARIABLE=VALUE...]: over 16 MiB, with the CPU; $out is what the program says
	local n=$1
	shift
	rm -f "$log"
	out=$(env UMADVISE_RUN_LOG="$log" UMADVISE_COUNTERS=on "$@" "$UMADVISE" dryrun --budget 16MiB --format json \
		-o "$tmp/device.json" "$app" "$n" "$how" 2>&1)
}
compared() {
	"$UMADVISE" report "$log" --format json >"$tmp/report.json" &&
		python3 "$tmp/compare.py" "$tmp/device.json" "$tmp/report.json"
}

# --- the truth ------------------------------------------------------------------------------------------------------

how=
# The CPU's faults are seen where a process's page tables are.
counted 6 UMADVISE_STRATEGY=on-demand
is "$out" "errors 0" "a program runs with counters"
like "$(compared)" "^the same 6 6 [34] kernels\$" "on demand: by tensor, iteration and cause what the device has"
counted 6
like "$(compared)" "^the same 6 6 [34] kernels\$" "with plan and hints the log has what the device has"
counted 6 UMADVISE_STRATEGY=prefetch-on-use
like "$(compared)" "^the same 6 6 [23] kernels\$" "prefetched on use"
cp "$tmp/device.json" "$tmp/with.json"
like "$("$UMADVISE" report "$log" --report causes)" "to device +prefetch" "causes are the driver's own"
counted 6 UMADVISE_STRATEGY=prefetch-on-use UMADVISE_COUNTERS=off
is "$(grep -v '"pid"' "$tmp/device.json")" "$(grep -v '"pid"' "$tmp/with.json")" "the device does the same without"
like "$("$UMADVISE" report "$log" --format json)" '^ "summary": .*"um_h2d_bytes": null, ' \
	"the log of a run without counters has no bytes"
like "$("$UMADVISE" report "$log" --report missing --format csv | cut -d, -f2 | paste -sd ' ')" \
	"kernels.* migrations.* faults" "the log tells what the counters count"

# More of an iteration than its log keeps one by one.
counted 6 UMADVISE_STRATEGY=on-demand UMADVISE_RUN_LOG_SIZE=1MiB
like "$(compared)" "^the same 6 6 [34] kernels\$" "what is kept in sum is by tensor, iteration and cause, too"
ok "some records stand for several events" grep -q '"um":"[^"]*".*"address":.*"records":' <(zcat "$log")

# Many iterations in a file that is too small for them: single records, then parts, become sums.
counted 1200 UMADVISE_STRATEGY=on-demand UMADVISE_RUN_LOG_SIZE=256KiB
ok "a small file stays below its limit" test "$(stat -c %s "$log")" -le 262144
"$UMADVISE" report "$log" --format json >"$tmp/report.json"
is "$(python3 - "$tmp/device.json" "$tmp/report.json" <<'EOF2'
import json, sys
device, report = (json.load(open(f)) for f in sys.argv[1:3])
device, s, l = device["processes"][0], report["summary"], report["library"]
print([device[a] - s[b] for a, b in (("faults", "gpu_page_faults"), ("cpu_faults", "cpu_page_faults"),
      ("h2d_bytes", "um_h2d_bytes"), ("d2h_bytes", "um_d2h_bytes"))], l["counters_summed"] > 0,
      l["iterations"] > l["iterations_kept"], sum("only sums are known" in n for n in report["notes"]))
EOF2
)" "[0, 0, 0, 0] True True 1" "all the same the sums are exact, and it is told which are nothing else"

# --- where there are none -------------------------------------------------------------------------------------------

why="umadvise: no counters of unified memory:"
for how in two fork; do
	counted 4
	like "$(compared)" "^the same 6 4 " "$how: the first context's log has all"
	# The program waits for the device after each iteration, so its link idles where the prediction's does not.
	out=$(grep -v '^umadvise: an iteration under the plan takes .* (+[0-9]* %)' <<<"$out")
	[ $how = fork ] || is "$out" "$why another context of this process uses them
umadvise: the run log of this context is $log.2: another context or process writes $log
errors 0" "the second context says why it has no counters, and where its log is"
done
how=keep
counted 4
ok "a context that is left open: its log reads" "$UMADVISE" report "$log" -o "$tmp/r"
how=
for fail in RegisterCallbacks:1:39 ConfigureUnifiedMemoryCounter:1:30 Enable:1:31; do
	counted 2 UMADVISE_DRYRUN_FAIL="cuptiActivity$fail"
	like "$out" "^$why .*\(CUPTI error ${fail##*:}\)
errors 1\$" "cuptiActivity$fail: one line, counted, and the program runs"
	is "$("$UMADVISE" report "$log" --report iterations | grep -c 'iteration [0-9]')" 2 \
		"the report of the log has two iterations"
done
counted 4 UMADVISE_DRYRUN_FAIL=cuptiActivityFlushAll:2:999
like "$out" "^umadvise: counters of unified memory may be missing: CUPTI error 999
errors 1\$" "a flush that fails is told"
like "$(compared)" "^the same" "activities of the failed flush come with the next one"
is "$(dry UMADVISE_COUNTERS=on "$app" 1)" "$why they need a run log: set UMADVISE_RUN_LOG
errors 1" "no log: told"
is "$(dry UMADVISE_RUN_LOG="$tmp/none/x" UMADVISE_COUNTERS=on "$app" 1)" \
	"umadvise: no run log is written: $tmp/none/x: cannot write: No such file or directory
errors 1" "no log that can be written: told"
is "$(env UMADVISE_RUN_LOG="$tmp/v.umlog" UMADVISE_COUNTERS=on "$top_builddir/examples/vector" 2>&1 >/dev/null)" \
	"$why the context has no CUDA device" "a simulated device in the program itself"
like "$(dry UMADVISE_COUNTERS=some "$app" 1)" "UMADVISE_COUNTERS=some is ignored: accepted values: on or off" \
	"a value of UMADVISE_COUNTERS that is not accepted is named"
tap_done
