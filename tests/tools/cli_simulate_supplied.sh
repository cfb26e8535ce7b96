#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs that use other tensors in each iteration, all of which stay: a network is trained from input buffers in turn;
# a filter reads a window of the latest frames. A plan knows such a tensor only when an op uses it.
. "${top_srcdir:=.}/tests/tap.sh"

# $1: input buffers, $2: MiB of each, $3: 1 if each iteration writes its buffer. Six layers with optimizer state.
inputs() {
	awk -v buffers="$1" -v mib="$2" -v writes="$3" '
	function out(line) { print "{\"ev\":" line "}" }
	function alloc(mib) { out("\"alloc\",\"t\":" n ",\"bytes\":" mib * 1048576); return n++ }
	function drop(t) { out("\"free\",\"t\":" t) }
	function op(name, r, w, ns) {
		out("\"op\",\"name\":\"" name "\",\"r\":[" r "],\"w\":[" w "],\"ns\":" ns)
	}
	BEGIN {
		n = 0
		print "{\"umtrace\":1,\"source\":\"by hand\",\"workload\":\"inputs\"}"
		for (k = 0; k < buffers; k++)
			op("load", "", input[k] = alloc(mib), 20000)
		for (k = 0; k < 6; k++)
			op("load", "", (w[k] = alloc(20)) "," (m[k] = alloc(40)), 20000)
		for (i = 0; i < 16; i++) {
			out("\"iter\",\"n\":" i)
			x = input[i % buffers]
			if (writes)
				op("copy_h2d", "", x, 40000)
			for (k = 0; k < 6; k++) {
				act[k] = alloc(40)
				op("forward", w[k] "," (k ? act[k - 1] : x), act[k], 100000)
			}
			for (k = 5; k >= 0; k--) {
				g = alloc(20)
				op("backward", w[k] "," act[k] "," (k ? act[k - 1] : x), g, 200000)
				drop(act[k])
				op("adam", w[k] "," m[k] "," g, w[k] "," m[k], 50000)
				drop(g)
			}
		}
	}'
}
# $1: frames, $2: of which a window has so many. Each iteration overwrites the oldest frame.
window() {
	awk -v frames="$1" -v size="$2" '
	function out(line) { print "{\"ev\":" line "}" }
	function alloc(mib) { out("\"alloc\",\"t\":" n ",\"bytes\":" mib * 1048576); return n++ }
	function op(name, r, w) { out("\"op\",\"name\":\"" name "\",\"r\":[" r "],\"w\":[" w "],\"ns\":200000") }
	BEGIN {
		n = 0
		print "{\"umtrace\":1,\"source\":\"by hand\",\"workload\":\"window\"}"
		for (k = 0; k < frames; k++)
			op("load", "", frame[k] = alloc(32))
		for (k = 0; k < 4; k++)
			op("load", "", w[k] = alloc(20))
		for (i = 0; i < 24; i++) {
			out("\"iter\",\"n\":" i)
			op("copy_h2d", "", frame[i % frames])
			all = frame[i % frames]
			for (k = 1; k < size; k++)
				all = all "," frame[(i - k + frames * 24) % frames]
			y = alloc(32)
			op("align", all, y)
			for (k = 0; k < 4; k++)
				op("filter", w[k] "," y, y)
			out("\"free\",\"t\":" y)
		}
	}'
}
# Time of lookahead from the ninth iteration on, in per cent of the faster one of on-demand and prefetch-on-use; its
# page faults.
later() { # PROFILE X
	"$UMADVISE" simulate "$tmp/t.umtrace" --profile "$1" --oversubscribe "$2" --iterations 24 --per-iteration \
		--strategy on-demand,prefetch-on-use,lookahead -f csv 2>/dev/null |
		awk -F, '
		NR == 1 { for (i = 1; i <= NF; i++) col[$i] = i; next }
		$col["n"] >= 8 { ns[$col["strategy"]] += $col["ns"]; faults[$col["strategy"]] += $col["faults"] }
		END {
			least = ns["on-demand"] < ns["prefetch-on-use"] ? ns["on-demand"] : ns["prefetch-on-use"]
			print int(100 * ns["lookahead"] / least), faults["lookahead"]
		}'
}
check() { # PROFILE X WHAT
	read -r percent faults < <(later "$1" "$2")
	is "$faults" 0 "$1, $2x, $3: what an operation uses is resident"
	ok "$1, $2x, $3: no slower than either baseline, and far from it ($percent %)" test "$percent" -lt 60
}
inputs 2 48 1 >"$tmp/t.umtrace"
check h100 1.3 'two input buffers in turn, each overwritten'
inputs 8 48 0 >"$tmp/t.umtrace"
check a100 1.5 'eight batches in turn, only read'
window 9 6 >"$tmp/t.umtrace"
check h100 1.3 'a window of six frames out of nine'
tap_done
