#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Five iterations free each activation once the next one is made; the sixth begins alike, but keeps them all. Their
# places in the plan are taken then, and the memory that they get instead was discarded.
. "${top_srcdir:=.}/tests/tap.sh"

trace() {
	awk '
	function out(line) { print "{\"ev\":" line "}" }
	function alloc(mib) { out("\"alloc\",\"t\":" n ",\"bytes\":" mib * 1048576); return n++ }
	function drop(t) { out("\"free\",\"t\":" t) }
	function op(name, r, w) { out("\"op\",\"name\":\"" name "\",\"r\":[" r "],\"w\":[" w "],\"ns\":100000") }
	BEGIN {
		n = 0
		print "{\"umtrace\":1,\"source\":\"by hand\",\"workload\":\"kept\"}"
		for (k = 0; k < 12; k++)
			op("load", "", w[k] = alloc(20))
		for (k = 0; k < 12; k++)
			op("load", "", m[k] = alloc(28))
		for (i = 0; i < 24; i++) {
			out("\"iter\",\"n\":" i)
			keeps = i % 6 == 5
			for (k = 0; k < 12; k++) {
				act[k] = alloc(24)
				op("layer", w[k] (k ? "," act[k - 1] : ""), act[k])
				if (k && !keeps)
					drop(act[k - 1])
			}
			for (k = 11; k >= 0 && keeps; k--) {
				op("update", act[k] "," m[k], w[k] "," m[k])
				drop(act[k])
			}
			if (!keeps)
				drop(act[11])
		}
	}'
}
trace >"$tmp/kept.umtrace"
for profile in a100 h100; do
	faults=$("$UMADVISE" simulate "$tmp/kept.umtrace" --profile "$profile" --oversubscribe 1.5 --iterations 24 \
		--per-iteration --strategy lookahead -f csv 2>/dev/null |
		awk -F, 'NR > 1 && $6 >= 8 { n += $8 } END { print n }')
	is "$faults" 0 "$profile: what is born beside its planned place is prefetched before it is written"
done
tap_done
