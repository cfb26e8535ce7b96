#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# plantime.sh - counts the instructions of planning, by callgrind
#
#     bench/plantime.sh BUILD-FOLDER [TRACE...]
#
# The count is the same on any machine and under any load, unlike the ms of bench/planner.sh; both are without
# rehearsals. Needs valgrind and a build with -O2. Default trace: gpt2_small of the tests. PROFILE (v100) and RATIOS
# ("1.5 2") may be set. Ends with 1 if a plan exceeds CEILING million.
set -eu
build=${1:?usage: bench/plantime.sh BUILD-FOLDER [TRACE...]}
shift
src=$(cd "$(dirname "$0")/.." && pwd)
[ $# -gt 0 ] || set -- "$src/tests/data/gpt2_small.umtrace.gz"
make -s -C "$build" libumtools.la libum.la
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$build/libtool" --silent --tag=CC --mode=link "${CC:-cc}" -std=c11 -O2 -D_GNU_SOURCE \
	-I"$src/lib" -I"$src/tools" -I"$src/include" -I"$src/tests" -o "$build/bench-planner" \
	"$src/bench/planner.c" "$src/tests/fixture/plan_fixture.c" "$build/libumtools.la" "$build/libum.la" -lm

# Instructions of one plan, in thousands: the program makes three.
count() {
	valgrind --tool=callgrind --toggle-collect=um_plan_build --callgrind-out-file="$tmp/out" \
		"$build/bench-planner" "$1" "${PROFILE:-v100}" "$2" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
	awk '/^(summary|totals):/ { printf "%d\n", $2 / 3000; exit }' "$tmp/out"
}

# Where they go.
breakdown() {
	callgrind_annotate --threshold=100 "$tmp/out" |
		sed -n 's/^ *\([0-9,]*\) ([^)]*) *[^ ]*:\([^ ]*\).*/\1 \2/p' |
		awk '{ gsub(",", "", $1); if ($1 + 0 > 6e6) printf "%14.1f  %s\n", $1 / 3e6, $2 }'
}

status=0
for trace; do
	for ratio in ${RATIOS:-1.5 2}; do
		k=$(count "$trace" "$ratio")
		printf '%-28s %5s %8d.%d M instructions\n' "$(basename "$trace" .umtrace.gz)" "$ratio" \
			$((k / 1000)) $((k % 1000 / 100))
		breakdown
		if [ "$k" -gt $((${CEILING:-250} * 1000)) ]; then
			echo "bench/plantime.sh: more than ${CEILING:-250}" >&2
			status=1
		fi
	done
done
exit "$status"
