#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A program that is far ahead of the device: advice on memory takes effect when it is called, and operations launched
# before the call still run under it.
. "${top_srcdir:=.}/tests/tap.sh"

# $1: the program. `tables`: look-ups in tables that stay on the host, 14 iterations of them; then an operation
# multiplies each table as a whole. `alternate`: the same, but from the sixth iteration on one table is multiplied in
# each. `weights`: 8 iterations train a third of the weights, the next 12 only read all of them, and so on.
trace() {
	awk -v program="$1" '
	function out(line) { print "{\"ev\":" line "}" }
	function op(name, r, w, mib, more) {
		out("\"op\",\"name\":\"" name "\",\"r\":[" r "],\"w\":[" w "],\"bytes\":" mib * 1048576 more)
	}
	function alloc(mib) { out("\"alloc\",\"t\":" n ",\"bytes\":" mib * 1048576); return n++ }
	function tables(i) {
		touched = (i + 1) * (program == "tables" ? 196608 : 98304)
		for (k = 0; k < 12; k++)
			op("look_up", t[k], x, 1.5, ",\"touched\":{\"" t[k] "\":" touched "}")
		for (k = 0; k < 12; k++)
			if (program == "tables" ? i == 14 : i > 5 && i % 12 == k)
				op("multiply", t[k], x, 25, ",\"flops\":4000000000")
	}
	function weights(i) {
		train = i % 20 < 8
		y = alloc(1)
		op("fill", "", y, 1)
		for (k = 0; k < (train ? 10 : 30); k++)
			op("linear", y "," t[k], y, 22, train ? ",\"flops\":230686720" : "")
		for (k = 0; train && k < 10; k++)
			op("update", t[k], t[k], 40, ",\"flops\":419430400")
		out("\"free\",\"t\":" y)
	}
	BEGIN {
		n = 0
		print "{\"umtrace\":1,\"source\":\"by hand\",\"workload\":\"" program "\"}"
		for (k = 0; k < (program == "weights" ? 30 : 12); k++) {
			t[k] = alloc(program == "weights" ? 20 : 24)
			op("load", "", t[k], 24)
		}
		x = alloc(1)
		for (i = 0; i < 24; i++) {
			out("\"iter\",\"n\":" i)
			if (program == "weights")
				weights(i)
			else
				tables(i)
		}
	}'
}
# Number of iterations, and the page faults in those from $4 to $5.
faults() { # PROGRAM PROFILE X FROM TO
	trace "$1" >"$tmp/$1.umtrace"
	"$UMADVISE" simulate "$tmp/$1.umtrace" --profile "$2" --oversubscribe "$3" --iterations 24 --per-iteration \
		--strategy lookahead 2>/dev/null | awk -v from="$4" -v to="$5" '
		$1 ~ /^[0-9]+$/ && NF > 7 { if ($1 >= from && $1 <= to) faults += $4; n++ }
		END { print n, faults + 0 }'
}
for case in 'h100 1.5' 'a100 1.5' 'h100 2'; do
	# shellcheck disable=SC2086
	is "$(faults tables $case 3 13)" '24 0' \
		"$case: look-ups cause no fault although the table is used as a whole soon after"
done
for case in 'h100 1.5' 'a100 1.5'; do
	# shellcheck disable=SC2086
	is "$(faults alternate $case 8 23)" '24 0' \
		"$case: after its use as a whole a table is looked up without a fault"
done
is "$(faults weights h100 1.3 20 23)" '24 0' "updates cause no fault although the plan of what follows only reads"
tap_done
