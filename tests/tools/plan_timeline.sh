#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# plan_timeline.sh - plans over time: traces are well-formed, and say what the plan says
: "${top_srcdir:=.}"
. "$top_srcdir/tests/tap.sh"

command -v python3 >/dev/null || skip_all "no python3"
plan() { "$UMADVISE" plan "$@"; }
check() { python3 "$top_srcdir/tests/fixture/trace_check.py" "$1" >"$tmp/found" && cat "$tmp/found"; }
query() { check "$1" | python3 -c 'import json, sys
t = json.load(sys.stdin)
exec(sys.argv[1])' "$2"; }

# Two tensors of 4 MiB have room. <a> makes room for the third, 4 ms to the host, and comes back for use.
{
	printf '{"umplan":1,"source":"x","workload":"small","signature":"ab","ops":3,"slots":3,"budget":8388608,'
	printf '"profile":"toy","h2d":1048576000,"d2h":1048576000,"strategy":"hand","predicted_ns":11000000}\n'
	cat <<'END'
{"ev":"slot","s":0,"bytes":4194304,"birth":-1,"death":-1,"name":"w","role":"param"}
{"ev":"slot","s":1,"bytes":4194304,"birth":0,"death":3,"name":"<a>","role":"act"}
{"ev":"slot","s":2,"bytes":4194304,"birth":1,"death":2,"role":"act"}
{"ev":"op","i":0,"name":"make","r":[0],"w":[1],"ns":1000000}
{"ev":"op","i":1,"name":"side","r":[],"w":[2],"ns":1000000}
{"ev":"op","i":2,"name":"use","r":[0,1],"w":[],"ns":1000000}
{"ev":"hint","at":0,"after":-1,"kind":"prefetch","s":0,"off":0,"bytes":4194304}
{"ev":"hint","at":0,"after":-1,"kind":"prefetch","s":1,"off":0,"bytes":4194304}
{"ev":"hint","at":1,"after":0,"kind":"evict","s":1,"off":0,"bytes":4194304}
{"ev":"hint","at":1,"after":0,"kind":"prefetch","s":2,"off":0,"bytes":4194304}
{"ev":"hint","at":2,"after":1,"kind":"prefetch","s":1,"off":0,"bytes":4194304}
END
} >"$tmp/a.umplan"
ok "a plan by hand" plan --show "$tmp/a.umplan" --timeline "$tmp/a.json"
is "$(query "$tmp/a.json" 'print(t["slices"]["kernel"], t["slices"]["hint"], t["moved"])
print(*t["arrows"][::2], sep="\n")')" "6 10 {'migration to the host': 8388608, 'migration to the device': 8388608}
['prefetch <a>', 'make', 0]
['prefetch <a>', 'use', 4000000]
[\"prefetch slot 2 of op 1 'side'\", 'side', 0]
['prefetch w', 'make', 0]" "is drawn"
is "$(python3 -c 'import json, sys
for e in json.load(open(sys.argv[1]))["traceEvents"]:
    if e["ph"] == "X" and e["cat"] in ("kernel", "migration") and e["ts"] < 11000:
        print(e["name"], e["ts"], e["dur"])' "$tmp/a.json")" "make 0 1000
eviction <a> 1000 4000
side 5000 1000
prefetch <a> 6000 4000
use 10000 1000" "as it is carried out"

for w in resnet50 cg_laplace3d; do
	ok "$w" plan "$top_srcdir/tests/data/$w.umtrace.gz" --oversubscribe 1.5 -o "$tmp/p.umplan" \
		--timeline "$tmp/p.json.gz"
	plan --show "$tmp/p.umplan" >"$tmp/shown"
	moved=$(sed -n 's/^link .*copied \([0-9.]*\) MiB in, \([0-9.]*\) MiB out$/\1 \2/p' "$tmp/shown")
	is "$(query "$tmp/p.json.gz" 'W = t["moved"]
print(*("%.1f" % (W["migration to " + d] / 2 / 2**20) for d in ("the device", "the host")))')" "$moved" \
		"$w: two iterations of what the plan copies"
	is "$(query "$tmp/p.json.gz" 'A, C = t["arrows"], t["counters"]
print(len(A) > 10, all(a[0].startswith(("prefetch ", "recompute")) for a in A), max(a[2] for a in A) > 0,
      t["slices"]["range"],
      C["migrating bytes to the device"]["last"])
R = {}
for n in C:
    if n.startswith("resident "):
        R[n] = C[n]["points"]
print(len(set(R.values())))')" "True True True 2 0
1" "$w: arrows to what needs it; all roles have a value at each point"
	is "$(gzip -dc "$tmp/p.json.gz" | python3 -c 'import json, sys
E = [e for e in json.load(sys.stdin)["traceEvents"] if e["ph"] == "C"]
R = [sum(e["args"].values()) for e in E if e["name"] == "resident"]
B = {e["args"]["bytes"] for e in E if e["name"] == "budget"}
print(len(B), 0.95 * max(B) < max(R) <= max(B))')" "1 True" "$w: what is resident stays within the budget"
	ok "$w: shown later, the same" sh -c \
		'"$UMADVISE" plan --show "$1" --timeline - | cmp - "$2"' - "$tmp/p.umplan" <(gzip -dc "$tmp/p.json.gz")
done

fails 2 "a timeline of a comparison is refused" plan --diff "$tmp/a.umplan" "$tmp/a.umplan" --timeline "$tmp/x.json"
fails 2 "a timeline with the plan on standard output is refused" \
	plan "$top_srcdir/tests/data/cg_laplace3d.umtrace.gz" --oversubscribe 1.5 -o - \
	--timeline "$tmp/x.json"
fails 2 "a timeline of a simulation is refused" \
	"$UMADVISE" simulate "$top_srcdir/tests/data/cg_laplace3d.umtrace.gz" --timeline \
	"$tmp/x.json"
fails 3 "a folder that is not there" plan --show "$tmp/a.umplan" --timeline "$tmp/no/x.json"
fails 4 "a full device is reported" sh -c '"$UMADVISE" plan --show "$1" --timeline - >/dev/full' - "$tmp/a.umplan"
tap_done
