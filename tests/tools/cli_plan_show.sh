#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# umadvise plan --show, --diff, --svg: a plan whose every figure can be worked out by hand, and recorded workloads.
. "${top_srcdir:=.}/tests/tap.sh"

data=$top_srcdir/tests/data

plan() { "$UMADVISE" plan "$@"; }

# Three tensors of 4 MiB, room for two; 4 MiB take 4 ms on the link, each op 1 ms. $1: the hint that makes room for b
# and the one that takes it back.
small() {
	printf '{"umplan":1,"source":"x","workload":"small","signature":"ab","ops":3,"slots":3,"budget":8388608,'
	printf '"profile":"toy","h2d":1048576000,"d2h":1048576000,"strategy":"hand","predicted_ns":11000000}\n'
	cat <<-EOF
		{"ev":"slot","s":0,"bytes":4194304,"birth":-1,"death":-1,"name":"w","role":"param"}
		{"ev":"slot","s":1,"bytes":4194304,"birth":0,"death":3,"name":"<a>","role":"act"}
		{"ev":"slot","s":2,"bytes":4194304,"birth":1,"death":2,"role":"act"}
		{"ev":"op","i":0,"name":"make","r":[0],"w":[1],"ns":1000000}
		{"ev":"op","i":1,"name":"side","r":[],"w":[2],"ns":1000000}
		{"ev":"op","i":2,"name":"use","r":[0,1],"w":[],"ns":1000000}
		{"ev":"hint","at":0,"after":-1,"kind":"prefetch","s":0,"off":0,"bytes":4194304}
		{"ev":"hint","at":0,"after":-1,"kind":"prefetch","s":1,"off":0,"bytes":4194304}
		{"ev":"hint","at":1,"after":0,"kind":"evict","s":$1,"off":0,"bytes":4194304}
		{"ev":"hint","at":1,"after":0,"kind":"prefetch","s":2,"off":0,"bytes":4194304}
		{"ev":"hint","at":2,"after":1,"kind":"prefetch","s":$1,"off":0,"bytes":4194304}
	EOF
}
small 1 >"$tmp/a.umplan"
small 0 >"$tmp/w.umplan"

# make 0-1, a out 1-5, side 5-6, a in 6-10, use 10-11.
is "$(cd "$tmp" && plan --show a.umplan)" "a.umplan: small on toy, by hand
schedule   3 ops, 3 slots, 5 hints, signature 00000000000000ab
memory     8.0 MiB budget, 8.0 MiB resident at most, 12.0 MiB alive at most (1.50x) at op 1 'side'
link       1.05 GB/s in, 1.05 GB/s out; copied 4.0 MiB in, 4.0 MiB out
time       11.000 ms for ops and copies, 11.000 ms predicted; in core 3.000 ms (x 3.667), stalls
           8.000 ms

Tensors that take most of the link's time:
tensor  role  link ms  in MiB  out MiB  size MiB
<a>     act     8.000     4.0      4.0       4.0

Evictions: the op after which the tensor is evicted, the op before which it is prefetched and the op
that uses it next (+: of the next iteration). Ops over: number of ops in between that have more
alive than the budget, the largest excess, and its op.
tensor role evicted MiB out MiB in MiB after op before op used by op ops over over MiB at op
<a>    act          4.0     4.0    4.0        0         2          2        1      4.0 1 'side'" \
	"a plan by hand is shown"

# The weight is not written: it is evicted without a copy. make 0-1, side 1-2, w in 2-6, use 6-7.
is "$(cd "$tmp" && plan --diff a.umplan w.umplan)" \
	"plan time ms predicted ms in MiB out MiB peak MiB budget MiB hints strategy profile file
A     11.000       11.000    4.0     4.0      8.0        8.0     5 hand     toy     a.umplan
B      7.000       11.000    4.0     0.0      8.0        8.0     5 hand     toy     w.umplan

Evictions that differ (+: used in the next iteration):
tensor  role   A MiB  B MiB  after op  used by op
w       param    0.0    4.0         0           2
<a>     act      4.0    0.0         0           2
1 evicted in A only, 1 in B only, 0 in both with different bytes, 0 equal" "and compared with another one"
like "$(plan --diff "$tmp/a.umplan" "$tmp/a.umplan")" "^0 evicted in A only, 0 in B only, 0 in both .*, 1 equal" \
	"a plan compared with itself has no differences"

# The same as JSON, and into a file.
query() { python3 -c 'import json, sys; d = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"; }
is "$(plan --show "$tmp/a.umplan" -f json | query \
	'[d["schema"], *[d["plan"][k] for k in "ns stall_ns h2d_bytes d2h_bytes peak_bytes bound_ns".split()]]')" \
	"['umplan-show/1', 11000000, 8000000, 4194304, 4194304, 8388608, None]" "--show --format json has the figures"
is "$(plan --show "$tmp/a.umplan" -f json | query '[list(x.values()) for x in d["tensors"] + d["leaves"]]')" \
	"[['<a>', 'act', 4194304, 4194304, 4194304], ['<a>', 'act', 4194304, 0, 4194304, 4194304, 0, 2, 2, 1, False]]" \
	"--show --format json has tensors that move and what leaves"
is "$(plan --diff "$tmp/a.umplan" "$tmp/w.umplan" -f json | query \
	'[d["schema"], d["a"]["ns"], d["b"]["ns"], d["only_a"], d["only_b"], d["both"], d["alike"]]')" \
	"['umplan-diff/1', 11000000, 7000000, 1, 1, 0, 0]" "--diff --format json has both plans and the counts"
is "$(plan --diff "$tmp/a.umplan" "$tmp/w.umplan" -f json | query '[list(x.values()) for x in d["differences"]]')" \
	"[['w', 'param', 0, 4194304, 0, 2], ['<a>', 'act', 4194304, 0, 0, 2]]" \
	"--diff --format json has the differences"
plan --show "$tmp/a.umplan" -o "$tmp/show.txt"
is "$(<"$tmp/show.txt")" "$(plan --show "$tmp/a.umplan")" "--show -o writes what standard output would have"

sed 's/"at":2\(.*\)"s":1/"at":2\1"s":2/' "$tmp/a.umplan" >"$tmp/dead.umplan"
fails 1 "an unsound plan" plan --show "$tmp/dead.umplan"
like "$(plan --show "$tmp/dead.umplan" 2>&1)" "^umadvise plan: .* is not sound: hint 4 at op 2: slot 2 is not alive" \
	"the reason is printed"
is "$(plan --show "$tmp/dead.umplan" 2>/dev/null)" "" "a plan with dead slots prints nothing else"
grep -v '"at":2' "$tmp/a.umplan" >"$tmp/absent.umplan"
like "$(plan --show "$tmp/absent.umplan" 2>&1)" "not sound: op 2 'use': 4194304 bytes of slot 1 are absent" \
	"a use of bytes that are not prefetched is refused"
fails 1 "an unsound plan in a comparison" plan --diff "$tmp/a.umplan" "$tmp/absent.umplan"

# --- the drawing ---

# Its root, then bands, bars and titles, by a real parser; what is counted must hold of a drawing of any plan.
svg() {
	python3 - "$1" "$2" <<-'EOF'
		import re, sys, xml.etree.ElementTree as E
		root = E.parse(sys.argv[1]).getroot()
		ns = "{http://www.w3.org/2000/svg}"
		titles = [t.text for t in root.iter(ns + "title")]
		raw = open(sys.argv[1]).read()
		exec(sys.argv[2])
	EOF
}
ok "a plan is shown and drawn" plan --show "$tmp/a.umplan" --svg "$tmp/a.svg"
is "$(svg "$tmp/a.svg" 'print("\n".join(sorted(titles)))')" "<a>, 4.0 MiB: 1.000 to 5.000 ms
<a>, 4.0 MiB: 6.000 to 10.000 ms
act: 4.0 MiB resident at most
alive: 12.0 MiB at most, at op 1
budget: 8.0 MiB
op 0 make: 0.000 to 1.000 ms
op 1 side: 5.000 to 6.000 ms
op 2 use: 10.000 to 11.000 ms
param: 4.0 MiB resident at most" "each band, op and copy has its title"
is "$(svg "$tmp/a.svg" 'print(root.tag == ns + "svg", "script" in raw, re.findall("(?:href|src|url)", raw),
    len(re.findall("http", raw)))')" "True False [] 1" "no script, nothing from elsewhere"
plan --show "$tmp/a.umplan" --svg - >"$tmp/b.svg"
ok "the picture on standard output equals the file" cmp "$tmp/a.svg" "$tmp/b.svg"

ok "a recorded workload is planned and drawn" plan "$data/resnet50.umtrace.gz" --oversubscribe 1.5 \
	-o "$tmp/r.umplan.gz" --svg "$tmp/r.svg"
is "$(svg "$tmp/r.svg" 'print(sum("resident at most" in t for t in titles) >= 4, len(titles) > 100,
    len(raw) < 500000)')" \
	"True True True" "with several roles, and of a size that a browser takes"
plan --show "$tmp/r.umplan.gz" >"$tmp/r.txt"
is "$(sed -n '/^tensor .*link ms/,/^$/p' "$tmp/r.txt" | wc -l)" 12 "the ten that cost most"
# Bytes copied are those of the departures, and those of the header.
is "$(python3 - "$tmp/r.txt" <<-'EOF'
	import re, sys
	text = open(sys.argv[1]).read()
	into, out = map(float, re.search(r"copied ([\d.]+) MiB in, ([\d.]+) MiB out", text).groups())
	rows = [re.findall(r" [\d.]+\.\d\b", l[16:]) for l in text.split("at op\n")[-1].splitlines()
	        if re.search(r" [\d.]+\.\d ", l[16:])]
	print(abs(sum(float(r[1]) for r in rows) - out) < 1 + 0.05 * len(rows), len(rows) > 20,
	      abs(sum(float(r[2]) for r in rows) - into) < 1 + 0.05 * len(rows))
EOF
)" "True True True" "what leaves adds up to what is copied"
ok "a plan at 2x" plan "$data/resnet50.umtrace.gz" --oversubscribe 2 -o "$tmp/r2.umplan.gz"
like "$(plan --diff "$tmp/r.umplan.gz" "$tmp/r2.umplan.gz")" "[0-9]+ evicted in A only, [0-9]+ in B only" \
	"plans of two budgets are compared"
fails 1 "plans of different schedules" plan --diff "$tmp/r.umplan.gz" "$tmp/a.umplan"
like "$(plan --diff "$tmp/r.umplan.gz" "$tmp/a.umplan" 2>&1)" "different schedules: .*same number of ops \(1000 ops" \
	"plans of different schedules are reported"

fails 2 "a missing file is refused" plan --show
fails 2 "two files are refused" plan --show "$tmp/a.umplan" "$tmp/w.umplan"
fails 2 "one file to compare" plan --diff "$tmp/a.umplan"
fails 2 "a comparison cannot be drawn" plan --diff "$tmp/a.umplan" "$tmp/w.umplan" --svg "$tmp/x.svg"
fails 2 "--show and --diff exclude each other" plan --show "$tmp/a.umplan" --diff "$tmp/w.umplan"
fails 2 "an unknown option is refused" plan --show "$tmp/a.umplan" --nonesuch
fails 2 "a drawing needs the plan in a file" \
	plan "$data/cg_laplace3d.umtrace.gz" --oversubscribe 1.5 -o - --svg "$tmp/x.svg"
fails 2 "a simulation cannot be drawn" "$UMADVISE" simulate "$data/cg_laplace3d.umtrace.gz" --svg "$tmp/x.svg"
fails 3 "a file that is not there" plan --show "$tmp/none"
fails 3 "a file that is none" plan --show "$data/resnet50.umtrace.gz"
fails 4 "a drawing into no folder is refused" plan --show "$tmp/a.umplan" --svg "$tmp/no/such/folder.svg"
fails 4 "a full device is reported" sh -c "'$UMADVISE' plan --show '$tmp/a.umplan' >/dev/full"
fails 4 "a drawing to a full device is reported" sh -c "'$UMADVISE' plan --show '$tmp/a.umplan' --svg - >/dev/full"
is "$(ls "$tmp"/x* "$tmp"/*.tmp 2>/dev/null)" "" "nothing is left behind"
ok "umadvise plan --show prints its help" plan --show --help
tap_done
