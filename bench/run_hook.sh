#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run_hook.sh - counts instructions of a launch under `umadvise run`, by callgrind
#
#     bench/run_hook.sh BUILD-FOLDER
#
# Needs valgrind and a build with -O2. A kernel of six pointers, 64 launches an iteration, on a driver that does
# nothing; the driver's own function is not counted, only the program's thread counts. The count is the difference of
# two runs with different numbers of iterations, after the plan is made. First all fits, then the device has half of
# the memory. Ends with 1 if the hook itself, without the op that it announces, exceeds CEILING.
set -eu
build=$(cd "${1:?usage: bench/run_hook.sh BUILD-FOLDER}" && pwd)
src=$(cd "$(dirname "$0")/.." && pwd)
make -s -C "$build" lib/inject/libumadvise-preload.la
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
${CC:-cc} -O2 -D_GNU_SOURCE -o "$tmp/app" "$src/bench/run_hook.c" -ldl

# Instructions with $1 iterations.
count() {
	LD_LIBRARY_PATH=$tmp LD_PRELOAD=$build/lib/inject/.libs/libumadvise-preload.so UMADVISE_PROFILE=a100 \
		valgrind --tool=callgrind --separate-threads=yes --toggle-collect=cuLaunchKernel \
		--callgrind-out-file="$tmp/out.$1" "$tmp/app" "$1" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
	grep 'umadvise run:' "$tmp/log" >"$tmp/line"
	sed -n 's/^\(summary\|totals\): *//p' "$tmp/out.$1-01" | head -n 1
}

measure() { # MIB
	local few many
	${CC:-cc} -O2 -D_GNU_SOURCE -DRUN_HOOK_MIB="$1" -shared -fPIC -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic \
		-o "$tmp/libcuda.so.1" "$src/bench/run_hook_driver.c"
	few=$(count 50)
	many=$(count 250)
	printf '%d instructions per launch of 6 pointers, %d MiB of 384 (%s)\n' $(((many - few) / (200 * 64))) "$1" \
		"$(sed 's/.*launches; //' "$tmp/line")"
}

breakdown() {
	for n in 50 250; do
		callgrind_annotate --threshold=100 "$tmp/out.$n-01" |
			sed -n "s/^ *\([0-9,]*\) ([^)]*) *[^ ]*:\([^' ]*\).*/$n \1 \2/p"
	done | awk -v ops=$((200 * 64)) '
		{ gsub(",", "", $2); sum[$3] += ($1 == 250 ? $2 : -$2) }
		END { for (f in sum) if (sum[f] >= ops / 2) printf "%8.1f  %s\n", sum[f] / ops, f }' | sort -rn
}

# Instructions of the hook, without those of the op that it announces.
own() {
	breakdown | awk '
		$2 ~ /^(cuLaunchKernel|announce|um_(inject|launch|ranges|function|session|driver)_)/ { n += $1 }
		END { printf "%d\n", n }'
}

measure 512
measure 192
hook=$(own)
echo "$hook of them in the hook itself"
breakdown | head -n "${LINES_SHOWN:-12}"
if [ "$hook" -gt "${CEILING:-800}" ]; then
	echo "bench/run_hook.sh: more than ${CEILING:-800}" >&2
	exit 1
fi
