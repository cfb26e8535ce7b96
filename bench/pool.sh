#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# pool.sh - memory and instructions of allocators on recorded workloads
#
#     bench/pool.sh BUILD-FOLDER [TRACE...]
#
# Prints the table of `umadvise pool` as Markdown, and beside each pool the instructions of a birth and of a free, by
# callgrind: the difference of two plays of different lengths. The library's are those of bench/placepath.sh, whose
# device costs nothing; cuda-malloc's are the driver's, which is not there. MEMORY_ONLY=1 leaves the instructions out.
# The last line has the geometric mean and the worst of the library's footprint; ends with 1 if they exceed 1.01 and
# 1.03.
set -eu
build=${1:?usage: bench/pool.sh BUILD-FOLDER [TRACE...]}
shift
src=$(cd "$(dirname "$0")/.." && pwd)
[ $# -gt 0 ] || set -- "$src"/tests/data/{alexnet_b200,cifar_vgg16_b100,gpt2_small,lstm_lm,resnet50,vgg16}.umtrace.gz
make -s -C "$build" tools/umadvise
tool=$build/tools/umadvise
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Instructions in function $3 with pool $2 on $1, in a play of $4 iterations.
count() {
	valgrind --tool=callgrind --toggle-collect="$3" --callgrind-out-file="$tmp/out" \
		"$tool" pool "$1" --pool "$2" --iterations "$4" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
	sed -n 's/^\(summary\|totals\): *//p' "$tmp/out" | head -n 1
}

instructions() { # trace, pool, births
	local f few many out=""
	for f in alloc_piece free_piece; do
		case $2 in best-fit | first-fit | caching) ;; *) break ;; esac
		[ "$3" -gt 0 ] || break
		few=$(count "$1" "$2" "$f" 5)
		many=$(count "$1" "$2" "$f" 8)
		out="$out $(((many - few) / (3 * $3)))"
	done
	echo "${out:- - -}"
}

echo "| workload | alive MiB | pool | footprint MiB | x alive | reserved MiB | x alive | steps" \
	"| instructions per birth | per free | elsewhere |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
for trace; do
	"$tool" pool "$trace" -f csv 2>/dev/null | tr -d '\r' | tail -n +2 >"$tmp/rows"
	while IFS=, read -r name pool alive footprint reserved births frees elsewhere steps _; do
		cost="- -"
		[ -n "${MEMORY_ONLY:-}" ] || cost=$(instructions "$trace" "$pool" "$births")
		name=$(basename "$trace" .gz)
		awk -v OFS=" | " -v name="${name%.umtrace}" -v pool="$pool" -v alive="$alive" -v f="$footprint" \
			-v r="$reserved" -v calls=$((births + frees)) -v steps="${steps:-0}" -v cost="$cost" \
			-v elsewhere="$elsewhere" 'BEGIN {
			split(cost, c, " ")
			print "| " name, sprintf("%.1f", alive / 1048576), pool, sprintf("%.1f", f / 1048576),
				sprintf("%.4f", f / alive), sprintf("%.1f", r / 1048576), sprintf("%.4f", r / alive),
				steps ? sprintf("%.1f", steps / calls) : "-", c[1], c[2], elsewhere " |"
		}'
	done <"$tmp/rows"
done | tee "$tmp/table"
awk -F' [|] ' '$3 == "umadvise" { s += log($5); n++; if ($5 > worst) worst = $5 }
	END {
		printf "\n%d workloads: footprint of umadvise %.4f in the geometric mean, %.4f at worst\n", n,
			exp(s / n), worst
		exit exp(s / n) > 1.01 || worst > 1.03
	}' "$tmp/table"
