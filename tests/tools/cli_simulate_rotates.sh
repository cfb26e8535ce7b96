#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs whose tensors take turns at two or three places: the cache of a decoder grows into new memory in each
# iteration, and the old one is freed; a scheme in time makes the next state from two. What dead memory stays resident
# at the end of an iteration is where the next one bears a tensor.
. "${top_srcdir:=.}/tests/tap.sh"

# $1: weights in MiB, $2: caches or states in MiB, $3: places of each; four layers.
trace() {
	awk -v w="$1" -v state="$2" -v places="$3" '
	function out(line) { print "{\"ev\":" line "}" }
	function alloc(mib) { out("\"alloc\",\"t\":" n ",\"bytes\":" mib * 1048576); return n++ }
	function op(name, r, w) { out("\"op\",\"name\":\"" name "\",\"r\":[" r "],\"w\":[" w "],\"ns\":60000") }
	BEGIN {
		n = 0
		print "{\"umtrace\":1,\"source\":\"by hand\",\"workload\":\"decode\"}"
		for (k = 0; k < 4; k++) {
			weight[k] = alloc(w)
			old[k] = alloc(state)
			last[k] = places == 3 ? alloc(state) : old[k]
			op("load", "", weight[k] "," old[k] (places == 3 ? "," last[k] : ""))
		}
		for (i = 0; i < 10; i++) {
			out("\"iter\",\"n\":" i)
			for (k = 0; k < 4; k++) {
				new = alloc(state)
				op("step", old[k] (places == 3 ? "," last[k] : ""), new)
				out("\"free\",\"t\":" old[k])
				x = alloc(2)
				op("use", weight[k] "," new, x)
				out("\"free\",\"t\":" x)
				old[k] = places == 3 ? last[k] : new
				last[k] = new
			}
		}
	}'
}
# Time of the last ten iterations, in per cent of the planned one, and their page faults.
steady() { # PROFILE X WEIGHT STATE PLACES
	trace "$3" "$4" "$5" >"$tmp/turns.umtrace"
	local args=("$tmp/turns.umtrace" --profile "$1" --oversubscribe "$2" --iterations 20 --strategy lookahead)
	local planned
	planned=$("$UMADVISE" simulate "${args[@]}" -f csv 2>/dev/null | awk -F, 'END { print $15 / 1e6 }')
	"$UMADVISE" simulate "${args[@]}" --per-iteration 2>/dev/null | awk -v planned="$planned" '
		$1 ~ /^[0-9]+$/ && $1 >= 10 && NF > 8 { ms += $2; faults += $4; n++ }
		END { print int(ms / n / planned * 100), faults }'
}
for case in 'h100 1.3 30 20 2' 'v100 1.3 64 34 2' 'v100 1.3 16 34 3'; do
	# shellcheck disable=SC2086
	read -r percent faults < <(steady $case)
	is "$faults" 0 "$case: dead memory leaves the device as planned, so the driver evicts nothing"
	ok "$case: iterations take about what the plan says ($percent %)" test "$percent" -lt 140
done
tap_done
