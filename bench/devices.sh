#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# devices.sh [TRACE...] - two and four devices behind one link: the time of an iteration on each, against the bound with
# its share of the link, and the slowest against the fastest; times are means over the second half of the iterations
#
#     PROFILE=v100 RATIOS=1.5,2 UMADVISE=umadvise bench/devices.sh traces/*.umtrace.gz
#
# Fails if a device takes more than 1.08 of the bound, or the slowest one more than 1.15 of the fastest.
# BOUND="--bound --bound-copies" also counts the copies to the host that the driver makes of clean blocks.
set -u
: "${UMADVISE:=umadvise}" "${PROFILE:=v100}" "${RATIOS:=1.5,2}" "${BOUND_TIME:=20}" "${ITERATIONS:=24}"
: "${BOUND:=--bound}"
read -ra bound <<<"$BOUND"
[ $# -gt 0 ] || {
	sed -n '3,10s/^# \{0,1\}//p' "$0"
	exit 2
}
echo "| trace | x memory | devices | share bound ms | slowest ms | x bound | slowest / fastest |"
echo "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
for trace; do
	for n in 2 4; do
		"$UMADVISE" simulate --profile "$PROFILE" --devices $n --per-link $n --strategy lookahead \
			--iterations "$ITERATIONS" --oversubscribe "$RATIOS" "${bound[@]}" \
			--bound-time "$BOUND_TIME" --format csv "$trace" || exit 1
	done
done | awk -F, -v most=1.08 -v spread=1.15 '
	function row() {
		if (!n)
			return
		printf "| %s | %.2f | %d | %.1f | %.1f | %.3f | %.3f |\n", trace, ratio, n, bound / 1e6, slow / 1e6,
			slow / bound, slow / fast
		if (!bound || slow > most * bound || slow > spread * fast)
			bad = 1
		n = 0
	}
	/^trace,/ { row(); next }
	{
		if ($1 != trace || $3 != ratio)
			row()
		trace = $1
		ratio = $3
		bound = $17
		slow = !n || $6 > slow ? $6 : slow
		fast = !n || $6 < fast ? $6 : fast
		n++
	}
	END { row(); exit bad }'
