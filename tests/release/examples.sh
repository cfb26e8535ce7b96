#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# examples.sh - the examples compute the right thing, and hints do not change it

: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"

out=$("$top_builddir/examples/vector" 2>&1)
is $? 0 "the vector example succeeds" || diag "$out"
like "$out" '^0 wrong elements' "its numbers are right"
like "$out" ' [1-9][0-9]* of 6 iterations hinted' "hints were given"

out=$("$top_builddir/examples/cg" 2>&1)
is $? 0 "the cg example succeeds" || diag "$out"
like "$out" '^the results are the same' "the cg example has the same results with hints, to the last bit"
times=$(printf '%s\n' "$out" | awk '/simulated/ { print $2 }' | tr '\n' ' ')
ok "the cg example is faster with hints ($times)" \
	awk -v t="$times" 'BEGIN { split(t, a, " "); exit !(a[2] > 0 && a[2] < a[1]) }'
out=$("$top_builddir/examples/train" 2>&1)
is $? 0 "the train example succeeds" || diag "$out"
like "$out" '^the weights are the same' "it trains the same weights with a third of the memory, to the last bit"
ok "each step takes as long as predicted, within 8 %" awk '
	/simulated/ { n++; off = $2 / $9 - 1; wrong += off < -0.08 || off > 0.08 }
	END { exit n != 4 || wrong }' <<<"$out"
like "$out" '3.0x: .* [1-9][0-9]* operations launched again' "operations are launched again"
if [ -x "$top_builddir/examples/nvtx" ]; then
	for iteration in 'Step *' ''; do
		out=$(UMADVISE_ITERATION=$iteration "$top_builddir/examples/nvtx" 2>&1)
		like "$out" '^0 wrong elements, 1[0-9] iterations, ([89]|1[0-9]) of them hinted' \
			"the example with NVTX ranges is right, and has hints with UMADVISE_ITERATION='$iteration'"
	done
else
	skip 2 "no headers of NVTX"
fi
tap_done
