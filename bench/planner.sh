#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# planner.sh - measures plans of recorded workloads
#
#     bench/planner.sh BUILD-FOLDER TRACE...
#
# Prints the time of a steady iteration over that in core and over the proven lower bound, MiB copied in and out, hints,
# and the planning time (ms, the least of three). PROFILES and RATIOS may be set; the last lines have the geometric mean
# and the worst of the second figure.
set -eu
build=${1:?usage: bench/planner.sh BUILD-FOLDER TRACE...}
shift
src=$(cd "$(dirname "$0")/.." && pwd)
make -s -C "$build" libumtools.la libum.la
"$build/libtool" --silent --tag=CC --mode=link "${CC:-cc}" -std=c11 -O2 -D_GNU_SOURCE \
	-I"$src/lib" -I"$src/tools" -I"$src/include" -I"$src/tests" -o "$build/bench-planner" \
	"$src/bench/planner.c" "$src/tests/fixture/plan_fixture.c" "$build/libumtools.la" "$build/libum.la" -lm
printf '%-28s %-8s %5s %9s %9s %8s %8s %7s %9s\n' \
	workload profile ratio "x core" "x bound" "in MiB" "out MiB" hints "plan ms"
for profile in ${PROFILES:-v100 a100 h100}; do
	for trace; do
		# shellcheck disable=SC2086 # a list of words
		"$build/bench-planner" "$trace" "$profile" ${RATIOS:-1.25 1.5 2 3}
	done
done | tee "$build/bench-planner.out"
awk 'NF == 9 { s += log($5); n++; if ($5 > worst) worst = $5 }
	END { if (n) printf "%d plans: x bound %.3f in the geometric mean, %.3f at worst\n", n, exp(s / n), worst }' \
	"$build/bench-planner.out"
