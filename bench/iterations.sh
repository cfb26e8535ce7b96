#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# iterations.sh - memory and cost of iterations that are alike, of four sizes, alike by threes, or all different
#
#     bench/iterations.sh BUILD-FOLDER [ITERATIONS]
#
# Heap in use by the library after a thirtieth, a third and all of 30,000 iterations, and plans that began, without a
# planning thread, so that neither is a matter of chance. With it: mean and longest processor time of umadv_iter, that
# of planning in all, and thousands of instructions in umadv_iter per iteration by callgrind, where valgrind is
# installed (the difference of two runs, so that the first iterations do not count). Ends with 1 if the heap grows by
# more than a tenth from the third on.
set -eu
build=${1:?usage: bench/iterations.sh BUILD-FOLDER [ITERATIONS]}
n=${2:-30000}
few=200 many=400
src=$(cd "$(dirname "$0")/.." && pwd)
make -s -C "$build" libumtools.la libum.la
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$build/libtool" --silent --tag=CC --mode=link "${CC:-cc}" -std=c11 -O2 -D_GNU_SOURCE -pthread \
	-I"$src/lib" -I"$src/tools" -I"$src/include" -I"$src/tests" \
	-o "$build/bench-iterations" "$src/bench/iterations.c" "$build/libumtools.la" "$build/libum.la" -lm

# Instructions inside umadv_iter on the program's thread in $2 iterations of kind $1.
count() {
	valgrind --tool=callgrind --separate-threads=yes --toggle-collect=umadv_iter \
		--callgrind-out-file="$tmp/out" "$build/bench-iterations" "$1" "$2" >"$tmp/log" 2>&1 ||
		{ cat "$tmp/log" >&2; exit 1; }
	sed -n 's/^\(summary\|totals\): *//p' "$tmp/out-01" | head -n 1
}

printf '%-9s %33s %6s %17s %11s %13s\n' kind "heap KiB after 1/30, 1/3, all" plans "umadv_iter us" "planning ms" \
	"instructions"
for kind in same buckets drift distinct; do
	UMADVISE_PLAN_THREAD=off "$build/bench-iterations" "$kind" "$n" >"$tmp/figures"
	"$build/bench-iterations" "$kind" "$n" >>"$tmp/figures"
	each=-
	if command -v valgrind >/dev/null; then
		each=$((($(count $kind $many) - $(count $kind $few)) / (many - few) / 1000))k
	fi
	awk -v each="$each" 'NR == 1 { printf "%-9s %13.1f %9.1f %9.1f %6d ", $1, $2, $3, $4, $5 }
		NR == 2 { printf "%8.1f %8.1f %11.1f %13s\n", $6, $7, $8, each }
		NR == 1 && $4 > 1.1 * $3 { grows = 1 } END { exit grows }' "$tmp/figures" || grows=1
done
[ -z "${grows:-}" ] || { echo "iterations.sh: the heap grows" >&2; exit 1; }
