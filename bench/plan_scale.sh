#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# plan_scale.sh - measures planning of a generated iteration as it grows
#
#     bench/plan_scale.sh BUILD-FOLDER [OPS...]
#
# Prints the time to plan, to prove and to compile, and the peak memory of the process. OPS: 10,000, 100,000 and
# 1,000,000 by default, each in its own process. RATIO may be set: memory demand over the budget.
set -eu
build=${1:?usage: bench/plan_scale.sh BUILD-FOLDER [OPS...]}
shift
[ $# -gt 0 ] || set -- 10000 100000 1000000
src=$(cd "$(dirname "$0")/.." && pwd)
make -s -C "$build" libumtools.la libum.la
"$build/libtool" --silent --tag=CC --mode=link "${CC:-cc}" -std=c11 -O2 -D_GNU_SOURCE \
	-I"$src/lib" -I"$src/tools" -I"$src/include" -I"$src/tests" -o "$build/bench-plan-scale" \
	"$src/bench/plan_scale.c" "$src/tests/fixture/plan_fixture.c" "$build/libumtools.la" "$build/libum.la" -lm
first=1
for ops; do
	"$build/bench-plan-scale" "${RATIO:-2}" "$ops" | tail -n +"$first"
	first=2
done
