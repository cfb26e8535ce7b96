#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs whose tensors all fit on the device, with little room beside them: input buffers in turn, iterations of
# several kinds, iterations that leave out operations. Hints can only slow them down.
. "${top_srcdir:=.}/tests/tap.sh"

# Input buffers in turn, MiB of each; each ODD-th iteration (0: none) is of another network; each SKIP-th one (0: none)
# leaves out a layer. Six layers of 20 MiB with activations of 40, the other network four of 30 with 50.
program() { # BUFFERS MIB ODD SKIP
	awk -v buffers="$1" -v mib="$2" -v odd="$3" -v skip="$4" '
	function out(line) { print "{\"ev\":" line "}" }
	function alloc(mib) { out("\"alloc\",\"t\":" n ",\"bytes\":" mib * 1048576); return n++ }
	function drop(t) { out("\"free\",\"t\":" t) }
	function op(name, r, w) { out("\"op\",\"name\":\"" name "\",\"r\":[" r "],\"w\":[" w "],\"ns\":100000") }
	function train(x, layers, activation, left_out,   k, g, last) {
		last = input[i % buffers]
		for (k = 0; k < layers; k++) {
			act[k] = alloc(activation)
			if (k != left_out)
				op("forward", weight[x, k] "," last, act[k])
			last = act[k]
		}
		for (k = layers - 1; k >= 0; k--) {
			g = alloc(20)
			if (k != left_out)
				op("backward", weight[x, k] "," act[k], g)
			drop(act[k])
			op("adam", g, weight[x, k])
			drop(g)
		}
	}
	BEGIN {
		n = 0
		print "{\"umtrace\":1,\"source\":\"by hand\",\"workload\":\"fits\"}"
		for (k = 0; k < buffers; k++)
			op("load", "", input[k] = alloc(mib))
		for (k = 0; k < 6; k++)
			op("load", "", weight[0, k] = alloc(20))
		for (k = 0; odd && k < 4; k++)
			op("load", "", weight[1, k] = alloc(30))
		for (i = 0; i < 24; i++) {
			out("\"iter\",\"n\":" i)
			if (odd && i % odd == odd - 1)
				train(1, 4, 50, -1)
			else
				train(0, 6, 40, skip && i % skip == skip - 1 ? 3 : -1)
		}
	}'
}
# Time of lookahead from the third iteration on, in thousandths of the time on demand. RATIO: the most bytes of tensors
# alive at once, over the memory of the device.
slower() { # PROFILE RATIO
	"$UMADVISE" simulate "$tmp/t.umtrace" --profile "$1" --oversubscribe "$2" --iterations 24 --per-iteration \
		--strategy on-demand,lookahead -f csv 2>/dev/null |
		awk -F, '
		NR == 1 { for (i = 1; i <= NF; i++) col[$i] = i; next }
		$col["n"] >= 2 { ns[$col["strategy"]] += $col["ns"] }
		END { print int(1000 * ns["lookahead"] / ns["on-demand"]) }'
}
check() { # WHAT BUFFERS MIB ODD SKIP
	local x per_mille
	program "${@:2}" >"$tmp/t.umtrace"
	for x in 0.95 0.8 0.5; do
		per_mille=$(slower h100 "$x")
		ok "$1, ${x}x of the memory: no slower than on demand ($per_mille per mille)" test "$per_mille" -le 1010
	done
}
check 'three batches in turn' 3 48 0 0
check 'each third iteration is of another network' 1 48 3 0
check 'each seventh iteration is of another network, eight batches in turn' 8 16 7 0
check 'each fourth iteration leaves out a layer' 2 30 0 4
tap_done
