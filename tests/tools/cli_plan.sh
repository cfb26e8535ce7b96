#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# umadvise plan: what it writes is sound, by a second implementation that knows the format alone.
. "${top_srcdir:=.}/tests/tap.sh"

data=$top_srcdir/tests/data

for w in resnet50 vgg16 gpt2_small cg_laplace3d lstm_lm alexnet_b200 cifar_vgg16_b100; do
	ok "$w: a plan at 1.5x" "$UMADVISE" plan "$data/$w.umtrace.gz" --oversubscribe 1.5 -o "$tmp/$w.umplan.gz"
	ok "$w: is sound" python3 "$top_srcdir/tests/fixture/umplan_replay.py" "$tmp/$w.umplan.gz"
done
for r in 0.9 1.25 2; do
	ok "resnet50 at ${r}x" "$UMADVISE" plan "$data/resnet50.umtrace.gz" --profile a100 --oversubscribe "$r" \
		-o "$tmp/r.umplan"
	ok "resnet50 at ${r}x: is sound" python3 "$top_srcdir/tests/fixture/umplan_replay.py" "$tmp/r.umplan"
done
like "$(head -n 1 "$tmp/r.umplan")" '"workload":"resnet50"' "the header names the workload"
like "$(head -n 1 "$tmp/r.umplan")" '"profile":"a100"' "the header has the device profile"
like "$("$UMADVISE" plan "$data/cg_laplace3d.umtrace.gz" --oversubscribe 1.5 -o - | head -n 1)" '^\{"umplan":1,' \
	"a plan is written to standard output"

# Host memory: less of it, and the plan evicts into less.
host() {
	"$UMADVISE" plan "$data/stencil_slabs.umtrace.gz" --oversubscribe 1.5 --no-recompute -o "$tmp/h.umplan" "$@"
}
taken() { sed -n 's/.*host memory \([0-9]*\).*/\1/p' <<<"$1"; }

free=$(taken "$(host --host-memory 1GiB 2>"$tmp/err")")
is "$(cat "$tmp/err")" "" "host memory that is plenty is not mentioned"
out=$(host --host-memory 60MiB 2>"$tmp/err")
ok "a plan keeps 60 MiB of host memory, otherwise $free" test "$(taken "$out")" -le 60 -a "$free" -gt 60
like "$(cat "$tmp/err")" \
	': host memory: evicted data would take [0-9]+ MiB, 60 MiB are available \(as stated\): the plan is limited' \
	"one line says what is needed, what there is and what the plan takes"
like "$(head -n 1 "$tmp/h.umplan")" '"host_budget":62914560' "the header has the host budget"
ok "the plan is sound" python3 "$top_srcdir/tests/fixture/umplan_replay.py" "$tmp/h.umplan"
like "$("$UMADVISE" plan --show "$tmp/h.umplan")" 'host +[0-9.]+ MiB of host memory for evicted blocks, 60.0 MiB all' \
	"--show has the host memory"
sed 's/"host_budget":62914560/"host_budget":2097152/' "$tmp/h.umplan" >"$tmp/less.umplan"
fails 1 "a plan that exceeds its host budget is refused" "$UMADVISE" plan --show "$tmp/less.umplan"
host --host-memory 2MiB >/dev/null 2>"$tmp/err"
like "$(cat "$tmp/err")" 'evicted data take at least [0-9]+ MiB, 2 MiB are available' "one line says what is too much"
fails 2 "no host memory" host --host-memory 0

predicted() { sed -n '1s/.*"predicted_ns":\([0-9]*\).*/\1/p' "$1"; }
"$UMADVISE" plan "$data/alexnet_b200.umtrace.gz" --oversubscribe 1.5 -o "$tmp/usual.umplan" >/dev/null
ok "more time to plan" "$UMADVISE" plan "$data/alexnet_b200.umtrace.gz" --oversubscribe 1.5 --plan-time 300 \
	-o "$tmp/longer.umplan"
ok "the plan of a longer search is sound" python3 "$top_srcdir/tests/fixture/umplan_replay.py" "$tmp/longer.umplan"
ok "the plan of a longer search is no slower" \
	test "$(predicted "$tmp/longer.umplan")" -le "$(predicted "$tmp/usual.umplan")"
fails 2 "no time to plan" "$UMADVISE" plan "$data/alexnet_b200.umtrace.gz" --plan-time 0 -o "$tmp/x"

for s in vdnn capuchin g10 swapadvisor; do
	ok "resnet50: a plan by $s" "$UMADVISE" plan "$data/resnet50.umtrace.gz" --oversubscribe 1.5 --strategy "$s" \
		-o "$tmp/$s.umplan"
	ok "$s: is sound" python3 "$top_srcdir/tests/fixture/umplan_replay.py" "$tmp/$s.umplan"
	like "$(head -n 1 "$tmp/$s.umplan")" "\"strategy\":\"$s\"" "the header names it"
done
is "$("$UMADVISE" plan "$data/vgg16.umtrace.gz" --oversubscribe 1.5 --strategy vdnn -o "$tmp/x" 2>&1 |
	sed 's/.*umtrace.gz: //; s/ at op .*//')" "no plan, no hints: vdnn: feature maps alone make no room" \
	"a missing plan is explained in one line"
# Collectives stay collectives.
iteration='{"ev":"iter","n":%d}
{"ev":"op","name":"a","r":[0],"w":[0],"ns":1000}
{"ev":"op","name":"b","r":[0],"w":[0],"ns":1000,"collective":true}
{"ev":"op","name":"ncclKernel_x","r":[0],"w":[0],"ns":1000}
{"ev":"op","name":"d","r":[0],"w":[0],"ns":1000,"collective":false}
'
{
	printf '{"umtrace":1,"source":"by hand","workload":"collective"}\n'
	printf '{"ev":"alloc","t":0,"bytes":4194304,"name":"t"}\n'
	# shellcheck disable=SC2059
	printf "$iteration" 0 1 2
} >"$tmp/c.umtrace"
"$UMADVISE" plan "$tmp/c.umtrace" --budget 4MiB -o "$tmp/c.umplan" >/dev/null 2>&1
is "$(sed -n '/"collective":true/s/.*"name":"\([^"]*\)".*/\1/p' "$tmp/c.umplan" | paste -sd' ')" "b ncclKernel_x" \
	"a plan says which ops are collectives"
sed 's/"collective":true/"collective":1/' "$tmp/c.umtrace" >"$tmp/d.umtrace"
like "$("$UMADVISE" plan "$tmp/d.umtrace" --budget 4MiB -o "$tmp/x" 2>&1)" '`collective` is 1: want true or false' \
	"another value of the key is refused"
fails 2 "a strategy without plans is refused" "$UMADVISE" plan "$data/vgg16.umtrace.gz" --strategy on-demand -o "$tmp/x"
fails 2 "a driver without plans is refused" "$UMADVISE" plan "$data/vgg16.umtrace.gz" --strategy deepum -o "$tmp/x"
fails 2 "two strategies are refused" "$UMADVISE" plan "$data/vgg16.umtrace.gz" --strategy vdnn,lookahead -o "$tmp/x"
fails 2 "a missing output is refused" "$UMADVISE" plan "$data/cg_laplace3d.umtrace.gz"
fails 2 "two traces are refused" "$UMADVISE" plan "$data/cg_laplace3d.umtrace.gz" "$data/vgg16.umtrace.gz" -o "$tmp/x"
ok "an op that exceeds the budget is planned around" \
	"$UMADVISE" plan "$data/lstm_lm.umtrace.gz" --oversubscribe 3 -o "$tmp/big"
fails 1 "one iteration is too few" "$UMADVISE" plan "$data/cg_laplace3d.umtrace.gz" --iterations 1 -o "$tmp/x"
is "$(ls "$tmp"/x* 2>/dev/null)" "" "a refused plan leaves no file"
fails 4 "plan -o into a missing folder exits as the other verbs do" \
	"$UMADVISE" plan "$data/cg_laplace3d.umtrace.gz" -o "$tmp/no/such/folder"
ok "umadvise plan prints its help" "$UMADVISE" plan --help
tap_done
