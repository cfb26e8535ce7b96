#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs of which most iterations are alike, in less memory than an op uses, or than two buffers that take turns: now
# and then one has an op or two more, or the CPU reads a result at its end.
. "${top_srcdir:=.}/tests/tap.sh"
. "$top_srcdir/tests/tools/trace_awk.sh"

# Particles: a list of pairs is built every `odd` iterations, and the CPU reads positions every `host` iterations.
particles() { # ODD HOST
	awk -v odd="$1" -v host="$2" "$trace_awk"'
	BEGIN {
		n = 0
		print "{\"umtrace\":1,\"source\":\"by hand\",\"workload\":\"particles\"}"
		x = alloc(24); v = alloc(24); f = alloc(24); kinds = alloc(8); cells = alloc(40); pairs = alloc(180)
		for (t = 0; t < n; t++)
			op("load", "", t, size[t], 0)
		for (i = 0; i < 24; i++) {
			out("\"iter\",\"n\":" i)
			op("move", x "," v "," f, x "," v, 120, 0)
			if (odd && i % odd == 0) {
				op("bin", x, cells, 64, 0)
				op("build", x "," cells, pairs, 244, 0)
			}
			op("force", x "," kinds "," pairs, f, 236, 8)
			op("finish", v "," f, v, 72, 0)
			if (host && i % host == host - 1)
				out("\"host\",\"name\":\"read\",\"r\":[" x "],\"w\":[]")
		}
	}'
}

# A lattice: two fields take turns, in ten slabs, and every `odd` iterations their moments are computed.
lattice() { # ODD
	awk -v odd="$1" "$trace_awk"'
	function slab(field, k) { return "[" field "," k * 14680064 ",14680064]" }
	BEGIN {
		n = 0
		print "{\"umtrace\":1,\"source\":\"by hand\",\"workload\":\"lattice\"}"
		f[0] = alloc(140); f[1] = alloc(140); moments = alloc(12); walls = alloc(8)
		for (t = 0; t < n; t++)
			op("load", "", t, size[t])
		for (i = 0; i < 24; i++) {
			out("\"iter\",\"n\":" i)
			for (k = 0; k < 10; k++)
				op("stream", slab(f[i % 2], k) "," walls, slab(f[1 - i % 2], k), 36)
			if (odd && i % odd == odd - 1)
				op("moments", f[1 - i % 2], moments, 152)
		}
	}'
}

# Two fields of the iterations from number $2 on: time in microseconds, faults, hints of the plan.
iterations() { # NAME FIRST
	"$UMADVISE" simulate "$tmp/$1.umtrace" --profile a100 --budget 200MiB --iterations 24 --per-iteration \
		--strategy lookahead -f csv 2>/dev/null |
		awk -F, -v first="$2" 'NR > 1 && $6 >= first { print $6, int($7 / 1000), $8, $11 }'
}

particles 0 0 >"$tmp/plain.umtrace"
particles 10 0 >"$tmp/odd.umtrace"
particles 0 7 >"$tmp/host.umtrace"
particles 10 7 >"$tmp/both.umtrace"
for kind in plain odd host both; do
	iterations $kind 2 >"$tmp/$kind.txt"
done

for kind in plain odd host both; do
	is "$(awk '{ n += $3 } END { print n }' "$tmp/$kind.txt")" 0 "$kind: no iteration from the third on faults"
done
steady=$(awk 'END { print $2 }' "$tmp/plain.txt")
first=$(awk -v s="$steady" '$1 == 3 { print int($2 * 100 / s) }' "$tmp/odd.txt")
ok "before there is a plan, iterations take at most 15 % longer ($first %)" test "$first" -le 115
# The nine iterations after the odd one, in per cent of as many without odd ones.
after=$(awk -v s="$steady" '$1 > 10 && $1 < 20 { t += $2 } END { print int(t * 100 / (9 * s)) }' "$tmp/odd.txt")
ok "ordinary iterations take at most 5 % longer than without odd ones ($after %)" test "$after" -le 105
planned=$(awk '$1 > 10 && $1 < 20 && $4 { n++ } END { print n }' "$tmp/odd.txt")
is "$planned" 9 "the plan begins with the first iteration after an odd one"
planned=$(awk '$1 > 6 && $4 { n++ } END { print n }' "$tmp/host.txt")
is "$planned" 17 "the plan goes on after the CPU has read a result"
next=$(awk -v s="$steady" '$1 == 8 { print int($2 * 100 / s) }' "$tmp/host.txt")
ok "the second iteration after that is as fast as without the access ($next %)" test "$next" -le 101

lattice 0 >"$tmp/plain.umtrace"
lattice 10 >"$tmp/odd.umtrace"
for kind in plain odd; do
	iterations $kind 3 >"$tmp/$kind.txt"
done
is "$(awk '{ n += $3 } END { print n }' "$tmp/odd.txt")" 0 \
	"what stays although the plan does not use it leaves room for its evictions to end: no page faults"
after=$(awk 'NR == FNR { s = $2; next } $1 > 10 && $1 < 19 { t += $2 } END { print int(t * 100 / (8 * s)) }' \
	"$tmp/plain.txt" "$tmp/odd.txt")
ok "the plan of buffers that take turns is not made anew after an odd iteration ($after %)" test "$after" -le 101
tap_done
