#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# placepath.sh - counts instructions per birth and per free under a plan, by callgrind
#
#     bench/placepath.sh BUILD-FOLDER
#
# Needs valgrind and a build with -O2. A loop of layers with two births each runs on the null device; only the program's
# thread counts, and the count is the difference of two runs with different numbers of iterations. `place` is what the
# pool takes: from the request to the planned address, and from the free until the address can be given out again.
# `call` is all of umadv_alloc or umadv_free: also the lock, the name, the map of addresses, the recorder, the cursor.
# Ends with 1 if a place takes more than CEILING.
set -eu
build=${1:?usage: bench/placepath.sh BUILD-FOLDER}
src=$(cd "$(dirname "$0")/.." && pwd)
make -s -C "$build" libumtools.la libum.la
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

link() { # layers
	"$build/libtool" --silent --tag=CC --mode=link "${CC:-cc}" -std=c11 -O2 -D_GNU_SOURCE -pthread \
		-DAPP_LAYERS="$1" -DAPP_BUDGET=137438953472 \
		-I"$src/lib" -I"$src/tools" -I"$src/include" -I"$src/tests" \
		-o "$build/bench-placepath" "$src/bench/placepath.c" "$build/libumtools.la" "$build/libum.la" -lm
}

# Instructions in these functions ($2...) on the program's thread with $1 iterations replayed.
count() {
	local n=$1 toggles=() f
	shift
	for f; do toggles+=("--toggle-collect=$f"); done
	valgrind --tool=callgrind --separate-threads=yes "${toggles[@]}" --callgrind-out-file="$tmp/out.$n" \
		"$build/bench-placepath" "$n" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
	sed -n 's/^\(summary\|totals\): *//p' "$tmp/out.$n-01" | head -n 1
}

per_call() { # layers, functions
	local births=$((2 * $1))
	shift
	echo $((($(count 12 "$@") - $(count 2 "$@")) / (10 * births)))
}

worst=0
printf '%8s %14s %14s %14s %14s\n' births 'place, birth' 'place, free' 'call, birth' 'call, free'
for layers in 32 1000; do
	link "$layers"
	take=$(per_call "$layers" um_cursor_place um_arena_pool_alloc_at)
	give=$(per_call "$layers" um_arena_pool_free)
	printf '%8d %14d %14d %14d %14d\n' $((2 * layers)) "$take" "$give" \
		"$(per_call "$layers" umadv_alloc)" "$(per_call "$layers" umadv_free)"
	for i in "$take" "$give"; do [ "$i" -le "$worst" ] || worst=$i; done
done
grep 'births planned' "$tmp/log"
if [ "$worst" -gt "${CEILING:-300}" ]; then
	echo "bench/placepath.sh: more than ${CEILING:-300}" >&2
	exit 1
fi
