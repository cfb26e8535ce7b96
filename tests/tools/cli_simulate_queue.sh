#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tensors that live several iterations: a queue. Iterations without a plan need no copies, once those of the set-up are
# done. A plan places each tensor of the queue elsewhere than the one before, and guesses when it is freed.
. "${top_srcdir:=.}/tests/tap.sh"

program() { # SIZES_IN_MIB ITERATIONS
	awk -v sizes="$1" -v iterations="$2" '
function out(line) { print "{\"ev\":" line "}" }
function op(name, r, w) { out("\"op\",\"name\":\"" name "\",\"r\":[" r "],\"w\":[" w "],\"ns\":20000") }
BEGIN {
	n = split(sizes, mib)
	print "{\"umtrace\":1,\"source\":\"by hand\",\"workload\":\"queue\"}"
	for (t = 0; t < n; t++) {
		out("\"alloc\",\"t\":" t ",\"bytes\":" mib[t + 1] * 1048576)
		op("load", "", t)
	}
	for (i = 0; i < iterations; i++) {
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
		if (n > 8)
			op("part", 6, 6)
	}
}' >"$tmp/t.umtrace"
}
program '20 10 16 16 16 40 60 60' 16
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

# Time, in per cent of that of prefetch-on-use.
share() { # RATIO
	"$UMADVISE" simulate "$tmp/t.umtrace" --profile h100 --oversubscribe "$1" --iterations 24 --per-iteration \
		--strategy lookahead,prefetch-on-use -f csv 2>/dev/null |
		awk -F, '
		NR == 1 { for (i = 1; i <= NF; i++) col[$i] = i; next }
		{ ns[$col["strategy"]] += $col["ns"] }
		END { printf "%d", 100 * ns["lookahead"] / ns["prefetch-on-use"] }'
}
program '40 20 32 32 32 80 20 20 0.5' 100
for x in 1.2 1.5 1.7; do
	percent=$(share "$x")
	ok "${x}x: a plan that guesses when the queue frees its tensors waits ($percent %)" test "$percent" -lt 60
done
# Of 100 iterations, those under a plan.
planned() { # RATIO
	"$UMADVISE" simulate "$tmp/t.umtrace" --profile v100 --oversubscribe "$1" --iterations 100 --per-iteration \
		--strategy lookahead -f csv 2>/dev/null |
		awk -F, '
		NR == 1 { for (i = 1; i <= NF; i++) col[$i] = i; next }
		{ n += $col["scheduled"] > 0 }
		END { print n + 0 }'
}
ok 'it begins when iterations without it have taken too long' test "$(planned 1.5)" -gt 0
tap_done
