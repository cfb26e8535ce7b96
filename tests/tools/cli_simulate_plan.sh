#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# umadvise simulate --plan: hints exactly as they are written. On a device where the driver's work costs nothing, the
# time is the one that the plan predicts.
. "${top_srcdir:=.}/tests/tap.sh"

data=$top_srcdir/tests/data

simulate() { "$UMADVISE" simulate "$@"; }

# $1: name, $2: bytes/s in either direction.
free_profile() {
	printf '%s\n' "name = $1" "capacity = 32 GiB" "flops = 13e12" "mem_bandwidth = 800e9" "launch_ns = 5000" \
		"h2d = $2" "d2h = $2" "duplex = 1" "eta = 1"
	for key in c_batch c_fault c_blk c_perm c_unmap c_dma c_dma_4k c_hostpop c_hostzero c_evict c_evict_unused \
		c_zero c_api c_pf c_pf_res c_pf_cpu c_disc c_disc_u c_adv c_adv_ab c_cpuf o_seg; do
		echo "$key = 0"
	done
}
free_profile toy 1048576000 >"$tmp/toy.profile"
free_profile free 12e9 >"$tmp/free.profile"

# Three tensors of 4 MiB, room for two; 4 MiB take 4 ms on the link, each op 1 ms. $1: the slot that makes room for b,
# $2: what the last prefetch waits for, $3: ms that `side` takes in the trace.
small() {
	printf '{"umplan":1,"source":"x","workload":"small","signature":"ab","ops":3,"slots":3,"budget":8388608,'
	printf '"profile":"toy","h2d":1048576000,"d2h":1048576000,"strategy":"hand","predicted_ns":11000000}\n'
	cat <<-EOF
		{"ev":"slot","s":0,"bytes":4194304,"birth":-1,"death":-1,"name":"w","role":"param"}
		{"ev":"slot","s":1,"bytes":4194304,"birth":0,"death":3,"name":"a","role":"act"}
		{"ev":"slot","s":2,"bytes":4194304,"birth":1,"death":2,"name":"b","role":"act"}
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
trace() { # ms that "side" takes
	awk -v side="$1" 'BEGIN {
		print "{\"umtrace\":1,\"source\":\"by hand\",\"workload\":\"small\"}"
		print "{\"ev\":\"alloc\",\"t\":0,\"bytes\":4194304,\"name\":\"w\",\"role\":\"param\"}"
		for (n = 0; n < 3; n++) {
			a = 2 * n + 1
			b = 2 * n + 2
			printf "{\"ev\":\"iter\",\"n\":%d}\n", n
			printf "{\"ev\":\"alloc\",\"t\":%d,\"bytes\":4194304}\n", a
			printf "{\"ev\":\"op\",\"name\":\"make\",\"r\":[0],\"w\":[%d],\"ns\":1000000}\n", a
			printf "{\"ev\":\"alloc\",\"t\":%d,\"bytes\":4194304}\n", b
			printf "{\"ev\":\"op\",\"name\":\"side\",\"r\":[],\"w\":[%d],\"ns\":%d000000}\n", b, side
			printf "{\"ev\":\"free\",\"t\":%d}\n", b
			printf "{\"ev\":\"op\",\"name\":\"use\",\"r\":[0,%d],\"w\":[],\"ns\":1000000}\n", a
			printf "{\"ev\":\"free\",\"t\":%d}\n", a
		}
	}'
}
small 1 >"$tmp/a.umplan"
small 0 >"$tmp/w.umplan"
trace 1 >"$tmp/small.umtrace"
trace 6 >"$tmp/slow.umtrace"

# strategy, time, x core, faults, in, out, stall, hints, peak of the row.
row() { simulate "$@" --profile "$tmp/toy.profile" --strategy infinite | awk '/^plan/ { print $2, $4, $5, $6, $9 }'; }

# make 0-1, a out 1-5, side 5-6, a in 6-10, use 10-11.
is "$(row "$tmp/small.umtrace" --plan "$tmp/a.umplan")" "11.000 0 4 4 8" "a plan by hand takes what it should"
is "$(simulate "$tmp/small.umtrace" --plan "$tmp/a.umplan" --profile "$tmp/toy.profile" --strategy infinite |
	tail -n 1)" \
	"  as predicted        11.000 (played: +0.0 %)" "the table shows the prediction and the played time"
like "$(simulate "$tmp/small.umtrace" --plan "$tmp/a.umplan" --strategy infinite)" " 8.0 MiB of device memory" \
	"the budget is the plan's"
is "$(row "$tmp/slow.umtrace" --plan "$tmp/a.umplan")" "16.000 0 4 4 8" "operations take what the trace says"
# make 0-1, side 1-2; w is clean, the driver copies it all the same 1-5, only then back 5-9; use 9-10.
is "$(row "$tmp/small.umtrace" --plan "$tmp/w.umplan")" "10.000 0 4 4 8" "clean pages are copied"
# The last prefetch waits for `make` only: a could return as soon as it is gone, but b has its room.
sed 's/"at":2,"after":1/"at":2,"after":0/' "$tmp/a.umplan" >"$tmp/early.umplan"
is "$(row "$tmp/small.umtrace" --plan "$tmp/early.umplan")" "11.000 0 4 4 8" "a prefetch waits for room"
# Half the budget more: then it need not wait, and returns while side runs: a out 1-5, a in 5-9, side 1-2, use 9-10.
sed 's/"budget":8388608/"budget":12582912/' "$tmp/early.umplan" >"$tmp/wide.umplan"
is "$(row "$tmp/small.umtrace" --plan "$tmp/wide.umplan")" "10.000 0 4 4 12" \
	"a plan for more memory causes no other copies"
# side takes 6 ms, 1-7: behind it a returns 7-11, use 11-12.
sed 's/"budget":8388608/"budget":12582912/' "$tmp/a.umplan" >"$tmp/late.umplan"
is "$(row "$tmp/slow.umtrace" --plan "$tmp/wide.umplan"), $(row "$tmp/slow.umtrace" --plan "$tmp/late.umplan")" \
	"10.000 0 4 4 12, 12.000 0 4 4 12" "after: behind its op, however long that takes"

# The last one has buffers that swap: an iteration of its plan is two of the trace's. And much that is clean, which a
# umplan drops and the driver copies: least by g10. By lookahead the play takes longer by no more than the bytes
# that the driver copies in either direction beyond those of the plan.
for w in resnet50 gpt2_small lstm_lm alexnet_b200 stencil_slabs:g10 cg_laplace3d dlrm stencil_slabs; do
	by=${w#*:} most=0.02
	[ "$by" != g10 ] || most=0.06
	[ "$by" != "$w" ] || by=lookahead
	t=${w%:*}
	"$UMADVISE" plan "$data/$t.umtrace.gz" --profile "$tmp/free.profile" --oversubscribe 1.5 --strategy "$by" \
		-o "$tmp/p.umplan.gz" >/dev/null
	ok "$w: the trace is played with the plan" \
		simulate "$data/$t.umtrace.gz" --profile "$tmp/free.profile" --plan "$tmp/p.umplan.gz" \
		--strategy infinite --iterations 8 --format json -o "$tmp/r.json"
	is "$(python3 "$top_srcdir/tests/fixture/umplan_replay.py" "$tmp/p.umplan.gz" |
		python3 -c 'import json, re, sys
r, most, clean = json.load(open(sys.argv[1]))["runs"][1], float(sys.argv[2]), sys.argv[3] == "stencil_slabs"
line = sys.stdin.read()
ns, h2d, d2h = (int(re.search(key + " (\d+)", line).group(1)) for key in ("ns", "h2d", "d2h"))
more = r["h2d_bytes"] + r["d2h_bytes"] - (h2d + d2h) / round(ns / r["predicted_ns"]) if clean else 0
off = r["steady_ns"] / r["predicted_ns"] - 1
print(r["strategy"], r["faults"], r["peak_resident_bytes"] <= r["budget_bytes"],
      -most < off < most + more / 12 / r["predicted_ns"] or off)' "$tmp/r.json" "$most" "$w")" \
		"plan 0 True True" "$w: no fault, within the budget, and $most of what is predicted"
done
# Where the driver's work costs time, a plan is played as fast as by lookahead, which made it, and as predicted.
for w in resnet50:h100 cifar_vgg16_b100:a100 lstm_lm:h100 stencil_slabs:v100; do
	t=${w%:*} on=${w#*:}
	"$UMADVISE" plan "$data/$t.umtrace.gz" --profile "$on" --oversubscribe 1.5 --no-recompute \
		-o "$tmp/p.umplan.gz" >/dev/null
	simulate "$data/$t.umtrace.gz" --profile "$on" --plan "$tmp/p.umplan.gz" --strategy lookahead \
		--no-recompute --format json -o "$tmp/r.json"
	is "$(python3 -c 'import json, sys
a, b = json.load(open(sys.argv[1]))["runs"]
print(abs(b["steady_ns"] / a["played_ns"] - 1) < 0.02, abs(b["predicted_ns"] / b["steady_ns"] - 1) < 0.02)' \
		"$tmp/r.json")" "True True" "$w: a plan takes as long as lookahead, and as predicted"
done
# Kernels that are off, 3 ms together: side hides behind the copies, 8 ms; what it takes less the others take more.
is "$(row "$tmp/small.umtrace" --plan "$tmp/a.umplan" --jitter 0)" "11.000 0 4 4 8" \
	"without jitter the mean is the same"
is "$(simulate "$tmp/small.umtrace" --plan "$tmp/wide.umplan" --profile "$tmp/toy.profile" --strategy infinite \
	--jitter 40 --per-iteration --format json | python3 -c 'import json, sys
i, p = json.load(sys.stdin)["runs"]
t = [x["ns"] for x in p["iterations"][1:]]
print(i["steady_ns"], len(set(t)), 9e6 < min(t), max(t) < 11e6, sum(t[3:]) // 4 == p["steady_ns"], p["faults"])')" \
	"3000000 7 True True True 0" "jitter: other kernels in each iteration, the sum stays"
simulate "$data/resnet50.umtrace.gz" --plan "$tmp/p.umplan.gz" --strategy infinite >"$tmp/other" 2>&1
like "$(cat "$tmp/other")" "gz: the plan is not of this trace: ops in an iteration \(1000, planned are" \
	"a plan of another workload"
like "$(simulate "$tmp/small.umtrace" --plan "$tmp/a.umplan" --strategy infinite --iterations 2 --per-iteration)" \
	"^  1 +[0-9]" "--per-iteration has every iteration"
is "$(simulate "$tmp/small.umtrace" --plan "$tmp/a.umplan" --strategy infinite --format csv | cut -d, -f5 | tr -d '\r' |
	tr '\n' ' ')" "strategy infinite plan " "csv"
grep -v '"at":2' "$tmp/a.umplan" >"$tmp/absent.umplan"
fails 1 "a plan that is not sound" simulate "$tmp/small.umtrace" --plan "$tmp/absent.umplan" --strategy infinite
fails 1 "a plan of another trace" simulate "$data/cg_laplace3d.umtrace.gz" --plan "$tmp/a.umplan" --strategy infinite
fails 3 "a plan that is not there" simulate "$tmp/small.umtrace" --plan "$tmp/none"
fails 3 "a plan that is none" simulate "$tmp/small.umtrace" --plan "$tmp/small.umtrace"
fails 2 "a plan for planning" "$UMADVISE" plan "$tmp/small.umtrace" --plan "$tmp/a.umplan" -o "$tmp/x"
tap_done
