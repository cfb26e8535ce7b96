#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Instructions per umadv_op while replaying, by callgrind: three tensors an op, hints due at most ops, on the app's
# thread. Two runs that differ in replayed iterations only; their difference is what those cost.
# Usage: bench/oppath.sh BUILD-FOLDER     (needs valgrind; build with -O2)
set -eu
build=${1:?usage: bench/oppath.sh BUILD-FOLDER}
src=$(cd "$(dirname "$0")/.." && pwd)
make -s -C "$build" libum.la
"$build/libtool" --silent --tag=CC --mode=link "${CC:-cc}" -std=c11 -O2 -D_GNU_SOURCE -pthread \
	-I"$src/lib" -I"$src/include" -I"$src/tests" -o "$build/bench-oppath" "$src/bench/oppath.c" \
	"$build/libum.la" -lm
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Instructions inside umadv_op on the app's thread with $1 iterations replayed.
count() {
	valgrind --tool=callgrind --separate-threads=yes --toggle-collect=umadv_op --callgrind-out-file="$tmp/out.$1" \
		"$build/bench-oppath" "$1" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
	sed -n 's/^\(summary\|totals\): *//p' "$tmp/out.$1-01" 2>/dev/null | head -n 1
}

few=$(count 10)
many=$(count 60)
ops=$((50 * 64))
echo "$(((many - few) / ops)) instructions per umadv_op while replaying (3 tensors; mean over $ops ops)"
