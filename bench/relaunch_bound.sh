#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# relaunch_bound.sh - plans with relaunches beside the bound of plans with the same relaunches (bench/relaunch_bound.c)
#
#     bench/relaunch_bound.sh BUILD-FOLDER TRACE... >table.md
#
# On the profiles of bench/recompute.sh, at 1.5, 2 and 3 times the memory. Combinations in which an operation does not
# fit have no row.
set -eu
build=${1:?usage: bench/relaunch_bound.sh BUILD-FOLDER TRACE...}
shift
src=$(cd "$(dirname "$0")/.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
make -s -C "$build" libum.la tools/umadvise
"$build/libtool" --silent --tag=CC --mode=link "${CC:-cc}" -std=c11 -O2 -D_GNU_SOURCE -Wall -Wextra \
	-I"$src/lib" -I"$src/include" -I"$src/tools" -o "$build/bench-relaunch-bound" "$src/bench/relaunch_bound.c" \
	"$src"/tools/bound/*.c "$build/libum.la" -ldl -lm

. "$src/bench/cards.sh"
card v100 "$tmp"
card a100 "$tmp"
echo '| trace | profile | x | plan ms | bound with its relaunches ms | ratio |'
echo '| --- | --- | --- | --- | --- | --- |'
for trace; do
	name=$(basename "$trace" .gz)
	for card in v100 a100; do
		for x in 1.5 2 3; do
			"$build/tools/umadvise" plan "$trace" --profile "$tmp/$card.profile" --oversubscribe $x \
				-o "$tmp/umplan" >/dev/null 2>&1 || continue
			! grep -q '"paged":true' "$tmp/umplan" || continue
			"$build/bench-relaunch-bound" "$tmp/umplan" 2>/dev/null |
				awk -v row="| ${name%.umtrace} | $card | $x" \
					'{ print row " | " $1 " | " $2 " | " $3 " |" }'
		done
	done
done
