#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Three streams, and a tensor that is born before the first operation of each iteration, while the device still uses the
# place that a plan has for it.
. "${top_srcdir:=.}/tests/tap.sh"

awk '
function out(line) { print "{\"ev\":" line "}" }
function op(name, r, w, stream) {
	out("\"op\",\"name\":\"" name "\",\"r\":[" r "],\"w\":[" w "],\"ns\":100000,\"stream\":" stream)
}
BEGIN {
	split("40 80 48 160 480 72", mib)
	print "{\"umtrace\":1,\"source\":\"by hand\",\"workload\":\"births\"}"
	for (t = 0; t < 6; t++) {
		out("\"alloc\",\"t\":" t ",\"bytes\":" mib[t + 1] * 1048576)
		op("load", "", t, 0)
	}
	for (i = 0; i < 10; i++) {
		out("\"iter\",\"n\":" i)
		out("\"alloc\",\"t\":" t ",\"bytes\":41943040")
		op("make", 1, t, 2)
		op("use", 5, t, 1)
		op("use", t, "", 2)
		out("\"free\",\"t\":" t++)
		op("part", "", 2, 2)
		op("step", 0, 1, 0)
	}
}' >"$tmp/t.umtrace"
# Page faults of all iterations together.
faults() { # RATIO
	"$UMADVISE" simulate "$tmp/t.umtrace" --oversubscribe "$1" --iterations 10 --per-iteration \
		--strategy lookahead -f csv 2>/dev/null |
		awk -F, '
		NR == 1 { for (i = 1; i <= NF; i++) col[$i] = i; next }
		{ sum += $col["faults"] }
		END { print sum }'
}
for x in 1.5 2.5; do
	is "$(faults "$x")" 0 "${x}x: a tensor born elsewhere just before a plan begins has its planned place later"
done
tap_done
