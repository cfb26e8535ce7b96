#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A program whose phases take turns: training, and products with matrices. The data of either phase fit on the device,
# those of both do not.
. "${top_srcdir:=.}/tests/tap.sh"
. "$top_srcdir/tests/tools/trace_awk.sh"

# Iterations of each phase, in turn.
phases() { # LENGTH
	awk -v length_of="$1" "$trace_awk"'
	function train(  i) {
		for (i = 0; i < 16; i++) {
			act[i] = alloc(40)
			op("layer", w[i], act[i], 60, 120)
		}
		for (i = 15; i >= 0; i--) {
			op("backward", w[i] "," act[i], grad, 80, 240)
			out("\"free\",\"t\":" act[i])
		}
		for (i = 0; i < 16; i++)
			op("update", grad "," w[i] "," m[i], w[i] "," m[i], 80, 1)
	}
	BEGIN {
		n = 0
		print "{\"umtrace\":1,\"source\":\"by hand\",\"workload\":\"phases\"}"
		for (i = 0; i < 16; i++) {
			w[i] = alloc(20)
			m[i] = alloc(40)
		}
		grad = alloc(20)
		for (i = 0; i < 10; i++)
			a[i] = alloc(60)
		y = alloc(60)
		for (t = 0; t < n; t++)
			op("load", "", t, size[t], 0)
		for (i = 0; i < 6 * length_of; i++) {
			out("\"iter\",\"n\":" i)
			if (int(i / length_of) % 2 == 0)
				train()
			else
				for (k = 0; k < 30; k++)
					op("product", a[k % 10] "," y, y, 180, 0)
		}
	}'
}

phases 7 >"$tmp/phases.umtrace"
# By iteration: MiB copied to the device and to the host.
"$UMADVISE" simulate "$tmp/phases.umtrace" --profile h100 --oversubscribe 1.3 --iterations 42 --per-iteration \
	--strategy lookahead -f csv 2>/dev/null |
	awk -F, 'NR > 1 { print $6, int($17 / 1048576), int($18 / 1048576) }' >"$tmp/copies.txt"

# The second time. Before, iterations of either phase followed plans.
is "$(awk '$1 == 14 { print $2 }' "$tmp/copies.txt")" 0 \
	"a phase that comes again evicts the data of the other one alone"
is "$(awk '$1 > 14 && $1 < 21 { n += $2 + $3 } END { print n + 0 }' "$tmp/copies.txt")" 0 \
	"its other iterations copy nothing"
# The data of the products leave in its first one.
is "$(awk '$1 > 28 && $1 < 34 { n += $2 } END { print n + 0 }' "$tmp/copies.txt")" 0 \
	"when training comes for the third time, its other iterations prefetch nothing until its end is expected"
tap_done
