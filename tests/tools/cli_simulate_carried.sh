#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Two networks, of which now one is trained and now the other one. The gradients of each live until its own next
# iteration, so that those of the other one are where a plan might place its tensors.
. "${top_srcdir:=.}/tests/tap.sh"

# Each `every`-th iteration is of another network, of OTHERS in turn. Layers, MiB of a weight and of an activation: of
# the network, and of each other one.
networks() { # EVERY LAYERS WEIGHT ACTIVATION LAYERS WEIGHT ACTIVATION [OTHERS]
	awk -v every="$1" -v first="$2 $3 $4" -v second="$5 $6 $7" -v others="${8:-1}" '
	function out(line) { print "{\"ev\":" line "}" }
	function alloc(mib) { out("\"alloc\",\"t\":" n ",\"bytes\":" mib * 1048576); return n++ }
	function drop(t) { out("\"free\",\"t\":" t) }
	function op(name, r, w) { out("\"op\",\"name\":\"" name "\",\"r\":[" r "],\"w\":[" w "],\"ns\":100000") }
	function init(x, shape,   k, part) {
		split(shape, part, " ")
		layers[x] = part[1]; weight[x] = part[2]; activation[x] = part[3]
		for (k = 0; k < layers[x]; k++)
			op("load", "", w[x, k] = alloc(weight[x]))
	}
	function train(x,   k) {
		for (k = 0; k < layers[x]; k++) {
			act[k] = alloc(activation[x])
			op("forward", w[x, k] (k ? "," act[k - 1] : ""), act[k])
		}
		for (k = 0; k < layers[x] && trained[x]; k++)
			drop(grad[x, k])
		for (k = layers[x] - 1; k >= 0; k--) {
			grad[x, k] = alloc(weight[x])
			op("backward", w[x, k] "," act[k], grad[x, k])
			drop(act[k])
		}
		for (k = 0; k < layers[x]; k++)
			op("sgd", w[x, k] "," grad[x, k], w[x, k])
		trained[x] = 1
	}
	BEGIN {
		n = 0
		print "{\"umtrace\":1,\"source\":\"by hand\",\"workload\":\"carried\"}"
		init(0, first)
		for (i = 1; i <= others; i++)
			init(i, second)
		for (i = 0; i < 40; i++) {
			out("\"iter\",\"n\":" i)
			train(i % every == every - 1 ? 1 + int(i / every) % others : 0)
		}
	}'
}
# Page faults of the iterations FIRST to LAST.
faults() { # FIRST LAST NETWORKS
	networks "${@:3}" >"$tmp/t.umtrace"
	played "$1" "$2"
}
played() { # FIRST LAST
	"$UMADVISE" simulate "$tmp/t.umtrace" --profile h100 --oversubscribe 1.5 --iterations 40 --per-iteration \
		--strategy lookahead -f csv 2>/dev/null |
		awk -F, -v first="$1" -v last="$2" '
			NR > 1 && $6 >= first && $6 <= last { n += $8 }
			END { print n + 0 }'
}
is "$(faults 0 39 2 8 20 40 12 12 60)" 0 \
	'two networks in turn: no place is where a gradient of the iteration before still is'
# Two blocks of 512 page faults at most, as the plan begins.
ok 'each third iteration is of another network: what is born at a place that stayed vacant is prefetched' \
	test "$(faults 0 39 3 8 20 40 12 12 60)" -le 1024
is "$(faults 6 10 6 8 40 60 10 50 30)" 0 \
	'after the first iteration of another network, a plan with gradients in its way is made anew before it begins'
is "$(faults 10 18 10 8 40 60 10 50 30)" 0 \
	'such a plan does not begin at once, even if most iterations fit it'
is "$(faults 20 39 10 8 20 40 6 36 24)" 0 \
	'each tenth iteration is of another network: its gradients are not where a waiting plan places its tensors'
is "$(faults 0 39 10 8 40 60 10 0.5 36)" 0 \
	'small gradients of another network do not displace a large activation of a plan that begins'
is "$(faults 0 39 5 8 40 60 6 0.125 20)" 0 \
	'a plan of five iterations does not place its tensors where gradients of its own still are'

# Time of the third iteration, in which a plan begins, in per cent of that of the fifth one.
begin() { # NETWORKS
	networks "$@" >"$tmp/t.umtrace"
	"$UMADVISE" simulate "$tmp/t.umtrace" --profile h100 --oversubscribe 1.5 --iterations 5 --per-iteration \
		--strategy lookahead -f csv 2>/dev/null |
		awk -F, 'NR > 1 { ns[$6] = $7 } END { printf "%d", 100 * ns[2] / ns[4] }'
}
ok 'dead memory stays for the first iteration of a plan that uses it' test "$(begin 10 16 2 80 4 4 30)" -le 125
ok 'dead memory makes room as a plan begins while tensors are evicted' test "$(begin 6 8 20 40 4 8 30)" -le 225

command -v python3 >/dev/null || { skip 1 "no python3"; tap_done; }
data=$top_srcdir/tests/data
python3 "$top_srcdir/bench/mixed.py" often "$data"/{alexnet_b200,vgg16,gpt2_small}.umtrace.gz --iterations 23 \
	>"$tmp/t.umtrace"
is "$(played 12 22)" 0 'after each iteration of other networks, a plan may be made anew for other places'
tap_done
