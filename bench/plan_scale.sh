#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What planning a generated iteration costs as it grows: time to plan, to prove and to compile, and the most memory that
# the process had.
# Usage: bench/plan_scale.sh BUILD-FOLDER [OPS...]     (default: 10,000, 100,000 and 1,000,000 ops, each in a process
# of its own). RATIO may be set: how many times the memory is exceeded.
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
