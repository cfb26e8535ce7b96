#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs with an op above the budget that streams: predicted hints leave its excess on the host, a plan leaves it to
# page faults.
. "${top_srcdir:=.}/tests/tap.sh"

# Sixteen layers of 16 MiB; between its passes an iteration combines two temporaries of 128 MiB into a third one.
awk '
	function out(line) { print "{\"ev\":" line "}" }
	function alloc(mib) { out("\"alloc\",\"t\":" n ",\"bytes\":" mib * 1048576); return n++ }
	function op(name, r, w, mib) {
		out("\"op\",\"name\":\"" name "\",\"r\":[" r "],\"w\":[" w "],\"flops\":0,\"bytes\":" mib * 1048576)
	}
	BEGIN {
		n = 0
		print "{\"umtrace\":1,\"source\":\"by hand\",\"workload\":\"above\"}"
		for (k = 0; k < 16; k++)
			w[k] = alloc(16)
		for (i = 0; i < 12; i++) {
			out("\"iter\",\"n\":" i)
			op("scores", w[0], x = alloc(128), 128)
			for (k = 0; k < 16; k++)
				op("layer" k, w[k], w[k], 32)
			op("targets", w[1], y = alloc(128), 128)
			op("difference", x "," y, z = alloc(128), 384)
			out("\"free\",\"t\":" x)
			out("\"free\",\"t\":" y)
			for (k = 16; k--;)
				op("back" k, z "," w[k], w[k], 32)
			out("\"free\",\"t\":" z)
		}
	}' >"$tmp/above.umtrace"
# Page faults and planned hints of the last iteration with a budget.
last() {
	"$UMADVISE" simulate "$tmp/above.umtrace" --profile v100 --budget "$1" --iterations 12 --per-iteration \
		--strategy lookahead -f json |
		python3 -c 'import json, sys
i = json.load(sys.stdin)["runs"][0]["iterations"][-1]
print(i["faults"], i["scheduled"])'
}
read -r faults hints < <(last 372MiB)
ok "no plan is followed that predicts more time than iterations take without it ($hints hints)" test "$hints" = 0
ok "they have no page faults ($faults)" test "$faults" = 0
read -r faults hints < <(last 330MiB)
ok "a plan that predicts less time is followed ($hints hints)" test "$hints" -gt 0
tap_done
