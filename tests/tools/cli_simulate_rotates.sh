#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs whose tensors take turns at two places: the cache of a decoder grows into new memory in each iteration, and
# the old one is freed. What dead memory stays resident at the end of an iteration is where the next one bears a tensor.
. "${top_srcdir:=.}/tests/tap.sh"

# $1: weights in MiB, $2: cache in MiB; four layers.
trace() {
	awk -v w="$1" -v cache="$2" '
	function out(line) { print "{\"ev\":" line "}" }
	function alloc(mib) { out("\"alloc\",\"t\":" n ",\"bytes\":" mib * 1048576); return n++ }
	function op(name, r, w) { out("\"op\",\"name\":\"" name "\",\"r\":[" r "],\"w\":[" w "],\"ns\":60000") }
	BEGIN {
		n = 0
		print "{\"umtrace\":1,\"source\":\"by hand\",\"workload\":\"decode\"}"
		for (k = 0; k < 4; k++) {
			weight[k] = alloc(w)
			old[k] = alloc(cache)
			op("load", "", weight[k] "," old[k])
		}
		for (i = 0; i < 10; i++) {
			out("\"iter\",\"n\":" i)
			for (k = 0; k < 4; k++) {
				new = alloc(cache)
				op("append", old[k], new)
				out("\"free\",\"t\":" old[k])
				x = alloc(2)
				op("attend", weight[k] "," new, x)
				out("\"free\",\"t\":" x)
				old[k] = new
			}
		}
	}'
}
# Steady time, in per cent of the planned one, and page faults.
steady() { # PROFILE WEIGHT CACHE
	trace "$2" "$3" >"$tmp/decode.umtrace"
	"$UMADVISE" simulate "$tmp/decode.umtrace" --profile "$1" --oversubscribe 1.3 --strategy lookahead -f csv \
		2>"$tmp/err" | awk -F, 'END { print int($6 / $15 * 100), $8 }'
}
for case in 'h100 30 20' 'v100 64 34'; do
	# shellcheck disable=SC2086
	read -r percent faults < <(steady $case)
	is "$faults" 0 "$case: dead caches leave the device as planned, so the driver evicts nothing"
	ok "$case: an iteration takes what the plan says ($percent %)" test "$percent" -lt 110
done
tap_done
