#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Input buffers in turn beside a plan that leaves room on the device: most of the program's memory is not used after the
# beginning. What fits there stays on the device between its uses.
. "${top_srcdir:=.}/tests/tap.sh"

# $1: input buffers, $2: MiB of tensors that only the beginning uses, $3: 1 if the CPU writes each buffer before.
inputs() {
	awk -v buffers="$1" -v idle="$2" -v host="$3" '
	function out(line) { print "{\"ev\":" line "}" }
	function alloc(mib) { out("\"alloc\",\"t\":" n ",\"bytes\":" mib * 1048576); return n++ }
	function op(name, r, w, ns) {
		out("\"op\",\"name\":\"" name "\",\"r\":[" r "],\"w\":[" w "],\"ns\":" ns)
	}
	BEGIN {
		n = 0
		print "{\"umtrace\":1,\"source\":\"by hand\",\"workload\":\"room\"}"
		for (k = 0; k < idle / 20; k++)
			op("load", "", alloc(20), 20000)
		for (k = 0; k < buffers; k++)
			op("load", "", input[k] = alloc(40), 20000)
		for (k = 0; k < 6; k++)
			op("load", "", w[k] = alloc(20), 20000)
		for (i = 0; i < 24; i++) {
			out("\"iter\",\"n\":" i)
			x = input[i % buffers]
			if (host)
				out("\"host\",\"name\":\"read_batch\",\"r\":[],\"w\":[" x "]")
			for (k = 0; k < 6; k++)
				op("layer", w[k] "," x, w[k], 20000)
		}
	}' >"$tmp/t.umtrace"
}
# Hints without a plan, from the third iteration on.
announced() { # X
	"$UMADVISE" simulate "$tmp/t.umtrace" --profile h100 --oversubscribe "$1" --iterations 24 --per-iteration \
		--strategy lookahead -f csv 2>"$tmp/err" |
		awk -F, '
		NR == 1 { for (i = 1; i <= NF; i++) col[$i] = i; next }
		$col["strategy"] == "lookahead" && $col["n"] >= 2 { n += $col["announced"] }
		END { print n + 0 }'
}
# From the 13th iteration on: time in per cent of on-demand, MiB copied in and out, page faults.
later() { # X
	"$UMADVISE" simulate "$tmp/t.umtrace" --profile h100 --oversubscribe "$1" --iterations 24 --per-iteration \
		--strategy on-demand,lookahead -f csv 2>"$tmp/err" |
		awk -F, '
		NR == 1 { for (i = 1; i <= NF; i++) col[$i] = i; next }
		$col["n"] < 12 { next }
		{ ns[$col["strategy"]] += $col["ns"] }
		$col["strategy"] == "lookahead" {
			in_ += $col["h2d_bytes"]; out += $col["d2h_bytes"]; faults += $col["faults"]
		}
		END { print int(100 * ns["lookahead"] / ns["on-demand"]), in_ / 1048576, out / 1048576, faults }'
}
inputs 3 240 0
read -r percent in out faults < <(later 1.5)
is "$in $out $faults" '0 0 0' 'buffers that all fit stay: nothing is copied'
ok "and iterations take no longer than on demand ($percent %)" test "$percent" -le 101
is "$(announced 1.5)" 0 'as the plan begins, other operations need no hint because a buffer is another one'
inputs 8 60 0
read -r percent in out faults < <(later 1.5)
is "$faults" 0 'of eight buffers that do not all fit, none is faulted in'
ok "and those that stay are not copied ($in MiB of 480)" test "$in" -gt 0 -a "$in" -lt 320
ok "which is faster than on demand ($percent %)" test "$percent" -lt 80
inputs 3 240 1
read -r percent in out faults < <(later 1.5)
is "$faults" 0 'a buffer that stayed and that the CPU wrote since is prefetched again'
tap_done
