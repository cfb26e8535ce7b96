#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# sharing.sh - what it costs a program that other processes may use its device
#
#     bench/sharing.sh BUILD-FOLDER
#
# Instructions in umadv_iter by callgrind (the difference of two runs), and its processor time with the system's, for a
# context that takes no part, one that is alone on its device, and one beside 1, 7 and 63 others. Needs valgrind.
set -eu
build=${1:?usage: bench/sharing.sh BUILD-FOLDER}
src=$(cd "$(dirname "$0")/.." && pwd)
make -s -C "$build" libum.la
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -m 700 "$tmp/devices"
export XDG_RUNTIME_DIR=$tmp/devices
"$build/libtool" --silent --tag=CC --mode=link "${CC:-cc}" -std=c11 -O2 -D_GNU_SOURCE -pthread -I"$src/lib" \
	-I"$src/include" -o "$build/bench-sharing" "$src/bench/sharing.c" "$build/libum.la" -lm

# Instructions inside umadv_iter in $1 iterations beside $2 others.
count() {
	valgrind --tool=callgrind --separate-threads=yes --toggle-collect=umadv_iter --callgrind-out-file="$tmp/out" \
		"$build/bench-sharing" "$1" "$2" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
	sed -n 's/^\(summary\|totals\): *//p' "$tmp/out-01" | head -n 1
}

printf '%7s %13s   %s\n' others instructions "processor time"
for others in -1 0 1 7 63; do
	printf '%7s %13d   %s\n' "${others/-1/off}" $((($(count 1200 $others) - $(count 200 $others)) / 1000)) \
		"$("$build/bench-sharing" 20000 $others)"
done
