#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# wakeups.sh - wake-ups and system calls of the library per iteration, on real threads
#
#     bench/wakeups.sh BUILD-FOLDER
#
# Needs strace. Counts are differences of two runs with different numbers of replayed iterations. Sleeps stand for ops
# and copies, and are not counted.
set -eu
build=${1:?usage: bench/wakeups.sh BUILD-FOLDER}
src=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$build" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
few=20 many=120
command -v strace >/dev/null || { echo "bench/wakeups.sh: strace is needed" >&2; exit 1; }
"$build/libtool" --silent --tag=CC --mode=link "${CC:-cc}" -std=c11 -O2 -D_GNU_SOURCE -pthread \
	-I"$src/lib" -I"$src/tools" -I"$src/include" -I"$src/tests" \
	-o "$build/bench-wakeups" "$src/bench/wakeups.c" "$build/libumtools.la" "$build/libum.la" -lm

for n in $few $many; do
	"$build/bench-wakeups" "$n" >"$tmp/counts.$n"
	strace -f -c -o "$tmp/calls.$n" "$build/bench-wakeups" "$n" >/dev/null
	awk '$NF ~ /^[a-z_0-9]+$/ && $4 ~ /^[0-9]+$/ { print $NF, $4 }' "$tmp/calls.$n" |
		grep -v "nanosleep\|total" >"$tmp/list.$n"
done
paste "$tmp/counts.$few" "$tmp/counts.$many" | awk -v n=$((many - few)) '{
	printf "an iteration: %d ops, %.1f late, %.1f hint calls for %.1f blocks, %.1f wake-ups\n",
		$1, ($10 - $5) / n, ($7 - $2) / n, ($8 - $3) / n, ($9 - $4) / n }'
awk -v n=$((many - few)) 'NR == FNR { was[$1] = $2; next }
	($2 - was[$1]) / n >= 0.05 { printf "%8.1f system calls %s\n", ($2 - was[$1]) / n, $1 }' \
	"$tmp/list.$few" "$tmp/list.$many"
