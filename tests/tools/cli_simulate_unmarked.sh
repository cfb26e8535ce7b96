#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# umadvise simulate and plan on recorded workloads without `iter` lines.
. "${top_srcdir:=.}/tests/tap.sh"

data=$top_srcdir/tests/data

# The workload $1 without its `iter` lines.
unmark() { gzip -dc "$data/$1.umtrace.gz" | grep -v '"ev": *"iter"' >"$tmp/$1.umtrace"; }

simulate() { "$UMADVISE" simulate --profile a100 --oversubscribe 1.5 --iterations 10 -f json --per-iteration "$@"; }

# Runs Python over two documents: iterations of lookahead with marks (a) and without (b).
query() { python3 -c 'import json,sys
a, b = (json.load(open(f))["runs"][-1]["iterations"] for f in sys.argv[1:3])
exec(sys.argv[3])' "$tmp/a.json" "$tmp/b.json" "$1"; }

for t in resnet50 vgg16 gpt2_small dlrm; do
	unmark "$t"
	simulate --strategy lookahead "$data/$t.umtrace.gz" -o "$tmp/a.json"
	ok "$t without marks is simulated" simulate --strategy lookahead "$tmp/$t.umtrace" -o "$tmp/b.json"
	is "$(query 'print(min(abs(i["first_op"] - b[0]["first_op"]) for i in a) <= 8)')" "True" \
		"$t: iterations are found where they were marked"
	is "$(query 'print(b[-1]["ns"] <= 1.03 * a[-1]["ns"])')" "True" \
		"$t: a steady iteration takes as long as with marks"
	is "$(query 'print(b[3]["scheduled"] > 0, sum(i["predicted"] + i["announced"] for i in b[5:]))')" "True 0" \
		"$t: hints of a plan begin with the fourth period, and are the only ones from the sixth on"
done

ok "a plan is made of a workload without marks" "$UMADVISE" plan "$tmp/resnet50.umtrace" --oversubscribe 1.5 \
	-o "$tmp/p.umplan"
like "$("$UMADVISE" plan "$tmp/resnet50.umtrace" --oversubscribe 1.5 -o "$tmp/p.umplan" 2>&1)" \
	"note: .* marks no iterations: 2 were found in its operations" "a note says how many iterations were found"
ok "the plan is played on that workload" "$UMADVISE" simulate "$tmp/resnet50.umtrace" --plan "$tmp/p.umplan" \
	--strategy infinite

# Ops in random order, on tensors of equal size.
python3 - >"$tmp/random.umtrace" <<'PY'
import random
random.seed(7)
print('{"umtrace":1,"workload":"random"}')
for t in range(40):
    print('{"ev":"alloc","t":%d,"bytes":8388608}' % t)
for i in range(6000):
    print('{"ev":"op","name":"op","r":[%d],"w":[%d],"ns":300000}' % (random.randrange(40), random.randrange(40)))
PY
ok "a random workload is simulated" simulate --strategy prefetch-on-use,lookahead "$tmp/random.umtrace" -o "$tmp/b.json"
cp "$tmp/b.json" "$tmp/a.json"
is "$(query 'print(len(b))')" "1" "no period is found in it: it is one iteration, played once"
like "$("$UMADVISE" simulate --strategy infinite "$tmp/random.umtrace" 2>&1)" "its operations do not repeat" \
	"a note says that nothing repeats"
fails 1 "no plan is made of it" "$UMADVISE" plan "$tmp/random.umtrace" --oversubscribe 1.5 -o "$tmp/q.umplan"
printf '{"umtrace":1}\n{"ev":"alloc","t":0,"bytes":4096}\n' >"$tmp/none.umtrace"
fails 3 "a trace without ops is refused" "$UMADVISE" simulate "$tmp/none.umtrace"

tap_done
