#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tensors that live several iterations: a queue. Iterations without a plan need no copies, once those of the set-up are
# done. A plan places each tensor of the queue elsewhere than the one before.
. "${top_srcdir:=.}/tests/tap.sh"

awk '
function out(line) { print "{\"ev\":" line "}" }
function op(name, r, w) { out("\"op\",\"name\":\"" name "\",\"r\":[" r "],\"w\":[" w "],\"ns\":20000") }
BEGIN {
	n = split("20 10 16 16 16 40 60 60", mib)
	print "{\"umtrace\":1,\"source\":\"by hand\",\"workload\":\"queue\"}"
	for (t = 0; t < n; t++) {
		out("\"alloc\",\"t\":" t ",\"bytes\":" mib[t + 1] * 1048576)
		op("load", "", t)
	}
	for (i = 0; i < 16; i++) {
		out("\"iter\",\"n\":" i)
		out("\"alloc\",\"t\":" t ",\"bytes\":20971520")
		op("make", 0, t)
		made = t++
		out("\"alloc\",\"t\":" t ",\"bytes\":10485760")
		op("push", 1, t)
		queue[i] = t++
		if (i >= 2) {
			op("pop", queue[i - 2], made)
			out("\"free\",\"t\":" queue[i - 2])
		}
		op("step", "2,3," made, made)
		op("step", "2,4," made, made)
		op("store", made, 0)
		out("\"free\",\"t\":" made)
		op("part", 5, 5)
	}
}' >"$tmp/t.umtrace"
# Of the last ten iterations, those that take longer than their ops: seven of 20 us.
late() { # RATIO
	"$UMADVISE" simulate "$tmp/t.umtrace" --profile h100 --oversubscribe "$1" --iterations 16 --per-iteration \
		--strategy lookahead -f csv 2>/dev/null |
		awk -F, '
		NR == 1 { for (i = 1; i <= NF; i++) col[$i] = i; next }
		NR > 7 { n++; late += $col["ns"] > 155000 }
		END { print n, late }'
}
for x in 1.2 1.5 1.7; do
	is "$(late "$x")" "10 0" "${x}x: a plan waits while iterations without it need no copies"
done
tap_done
