#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# oppath.sh - counts instructions per umadv_op during replay, by callgrind
#
#     bench/oppath.sh BUILD-FOLDER
#
# Needs valgrind and a build with -O2. The program uses three tensors per op, with hints due at most ops; only its own
# thread counts. The count is the difference of two runs with different numbers of replayed iterations. Valgrind runs
# one thread at a time. In the first measurement the helper threads run between two ops and then sleep, so nearly every
# op wakes one. In the second they run only between two iterations, so nearly every op waits for them. Ends with 1 if
# the first exceeds CEILING.
set -eu
build=${1:?usage: bench/oppath.sh BUILD-FOLDER}
src=$(cd "$(dirname "$0")/.." && pwd)
make -s -C "$build" libumtools.la libum.la
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
ops=$((200 * 64))

# The program, with these options of the compiler.
link() {
	"$build/libtool" --silent --tag=CC --mode=link "${CC:-cc}" -std=c11 -O2 -D_GNU_SOURCE -pthread "$@" \
		-I"$src/lib" -I"$src/tools" -I"$src/include" -I"$src/tests" \
		-o "$build/bench-oppath" "$src/bench/oppath.c" \
		"$build/libumtools.la" "$build/libum.la" -lm
}

# Instructions inside umadv_op_ex on the app's thread with $1 iterations replayed, $mode.
count() {
	valgrind --tool=callgrind --separate-threads=yes --toggle-collect=umadv_op_ex \
		--callgrind-out-file="$tmp/out.$1" "$build/bench-oppath" "$1" "$mode" >"$tmp/log" 2>&1 ||
		{ cat "$tmp/log" >&2; exit 1; }
	sed -n 's/^.* \([0-9]*\) hints.*/\1/p' "$tmp/log" >"$tmp/hints.$1"
	sed -n 's/^.* \([0-9]*\) waits.*/\1/p' "$tmp/log" >"$tmp/waits.$1"
	sed -n 's/^\(summary\|totals\): *//p' "$tmp/out.$1-01" 2>/dev/null | head -n 1
}

measure() {
	local few many
	few=$(count 10)
	many=$(count 210)
	mean=$(((many - few) / ops))
	hints=$((($(cat "$tmp/hints.210") - $(cat "$tmp/hints.10")) * 100 / ops))
	waits=$((($(cat "$tmp/waits.210") - $(cat "$tmp/waits.10")) * 100 / ops))
	printf '%d instructions per umadv_op_ex while replaying (3 tensors, %d.%02d hints, %d.%02d waits; %d ops)\n' \
		"$mean" $((hints / 100)) $((hints % 100)) $((waits / 100)) $((waits % 100)) "$ops"
}

# What an op costs in each function, the largest first.
breakdown() {
	for n in 10 210; do
		callgrind_annotate --threshold=100 "$tmp/out.$n-01" |
			sed -n "s/^ *\([0-9,]*\) ([^)]*) *[^ ]*:\([^' ]*\).*/$n \1 \2/p"
	done | awk -v ops="$ops" '
		{ gsub(",", "", $2); sum[$3] += ($1 == 210 ? $2 : -$2) }
		END { for (f in sum) if (sum[f] >= ops / 2) printf "%8.1f  %s\n", sum[f] / ops, f }' | sort -rn
}

link
mode=
measure
breakdown
most=$mean
mode=late
measure
mode=
link -DAPP_BUDGET=1073741824 # all fits: nothing is to be moved
measure
if [ "$most" -gt "${CEILING:-1100}" ]; then
	echo "bench/oppath.sh: more than ${CEILING:-1100}" >&2
	exit 1
fi
