#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# simulate_memory.sh - memory runs out during a whole run: recording, learning, planning, replaying, simulating
#
# The library goes on without hints, or the tool says that there is no memory (status 4): every other status is refused.

: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/harness/failmalloc.sh"

# A chain: each op reads its weight and what the op before made, and makes the next; two iterations.
awk 'BEGIN {
	print "{\"umtrace\":1,\"source\":\"by hand\",\"workload\":\"chain\"}"
	for (t = 0; t < 6; t++)
		printf "{\"ev\":\"alloc\",\"t\":%d,\"bytes\":4194304,\"name\":\"w%d\",\"role\":\"param\"}\n", t, t
	for (n = 0; n < 2; n++) {
		printf "{\"ev\":\"iter\",\"n\":%d}\n", n
		for (i = 0; i < 6; i++) {
			printf "{\"ev\":\"alloc\",\"t\":%d,\"bytes\":4194304,\"name\":\"a%d\",\"role\":\"act\"}\n", t, i
			printf "{\"ev\":\"op\",\"name\":\"op%d\",\"r\":[%d%s],\"w\":[%d],\"ns\":500000}\n", i, i,
				i ? "," t - 1 : "", t
			if (i > 1)
				printf "{\"ev\":\"free\",\"t\":%d}\n", t - 2
			t++
		}
		printf "{\"ev\":\"op\",\"name\":\"update\",\"r\":[0,%d],\"w\":[0],\"ns\":500000}\n", t - 1
		printf "{\"ev\":\"free\",\"t\":%d}\n{\"ev\":\"free\",\"t\":%d}\n", t - 2, t - 1
	}
}' >"$tmp/chain.umtrace"

# Else the loops below would fail allocations of a run that never gets to a plan.
like "$("$UMADVISE" simulate "$tmp/chain.umtrace" --oversubscribe 1.5 --iterations 4 --strategy lookahead 2>&1)" \
	"^lookahead +[0-9.]+ +[0-9.]+ +0 +[1-9][0-9]* +[1-9][0-9]* .* 2$" "the run plans, evicts and does not fault"

# Reading the trace is the matter of io_memory.sh; the parser below may then say no to the text (status 3).
UM_FAIL_COUNT_FILE="$tmp/count" LD_PRELOAD="$UM_FAIL_MODULE" "$UMADVISE" trace check "$tmp/chain.umtrace" \
	>/dev/null 2>&1
read=$(sort -n "$tmp/count" | tail -n 1)
ok "reading is counted" test "$read" -gt 100

each() { # NAME ARGUMENT...
	survives "$1" -e 2 -f "$((read + 10))" -x 1 -x 2 -x 3 "$UMADVISE" "${@:2}"
}
each "simulate, all strategies" simulate "$tmp/chain.umtrace" --oversubscribe 1.5 --iterations 4
each "simulate, as JSON into a file" simulate "$tmp/chain.umtrace" --oversubscribe 1.5 --iterations 3 \
	--strategy lookahead --per-iteration --format json -o "$tmp/out.json"
is "$(ls "$tmp"/out.json.*tmp* 2>/dev/null)" "" "no half file is left behind"
each "simulate, evictions left to the driver" simulate "$tmp/chain.umtrace" --oversubscribe 1.5 --iterations 4 \
	--strategy lookahead --evict driver
sed '/"op[135]"/s/}$/,"stream":1}/' "$tmp/chain.umtrace" >"$tmp/streams.umtrace"
each "simulate, two streams" simulate "$tmp/streams.umtrace" --oversubscribe 1.5 --iterations 3 --strategy lookahead
each "simulate, a driver that learns" simulate "$tmp/chain.umtrace" --oversubscribe 1.5 \
	--iterations 3 --strategy deepum
sed 's/"name":"a5","role":"act"/"name":"a5","role":"grad"/' "$tmp/chain.umtrace" >"$tmp/gradient.umtrace"
each "simulate, several GPUs" simulate "$tmp/gradient.umtrace" --ranks 2 --oversubscribe 1.5 --iterations 3 \
	-o "$tmp/out.txt" --svg "$tmp/out.svg"
is "$(ls "$tmp"/out.svg?* "$tmp"/out.txt?* 2>/dev/null)" "" "no half drawing is left behind"
each "plan" plan "$tmp/chain.umtrace" --oversubscribe 1.5 --iterations 4 -o "$tmp/out.umplan"
is "$(ls "$tmp"/out.umplan?* 2>/dev/null)" "" "no half plan is left behind"
# With an access of the CPU there is no linear program, whose solver does not survive.
sed 's/^{"ev":"op","name":"update"/{"ev":"host","name":"look","r":[1],"w":[]}\n&/' "$tmp/chain.umtrace" \
	>"$tmp/host.umtrace"
each "plan --at-most-slower survives failing allocations" plan "$tmp/host.umtrace" --at-most-slower 10 \
	--iterations 4 -f json
ok "a plan is made" "$UMADVISE" plan "$tmp/chain.umtrace" --oversubscribe 1.5 --iterations 3 -o "$tmp/chain.umplan"
# Behind the reading of the trace there is that of the plan: the parser may say no to the text (status 3).
survives "simulate, a plan" -f "$((read + 10))" -x 1 -x 2 \
	"$UMADVISE" simulate "$tmp/chain.umtrace" --plan "$tmp/chain.umplan" --iterations 3 --strategy infinite
survives "plan --show and --timeline" -x 1 -x 2 "$UMADVISE" plan \
	--show "$tmp/chain.umplan" --timeline "$tmp/out.json"
is "$(ls "$tmp"/out.json?* 2>/dev/null)" "" "no half timeline is left behind"
survives "plan --show and --svg" -x 1 -x 2 "$UMADVISE" plan \
	--show "$tmp/chain.umplan" --svg "$tmp/out.svg"
is "$(ls "$tmp"/out.svg?* 2>/dev/null)" "" "no half drawing is left behind"
survives "plan --diff survives failing allocations" -x 1 -x 2 "$UMADVISE" plan \
	--diff "$tmp/chain.umplan" "$tmp/chain.umplan"
tap_done
