#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# published.sh - published experiments with managed memory beside the simulator (bench/published.c)
#
#     bench/published.sh BUILD-FOLDER
#
# Prints a table in Markdown. "UNEXPLAINED" marks a difference of more than 25 % without a reason; then it ends with 1.
set -eu
build=${1:?usage: bench/published.sh BUILD-FOLDER}
src=$(cd "$(dirname "$0")/.." && pwd)
make -s -C "$build" libum.la
"$build/libtool" --silent --tag=CC --mode=link "${CC:-cc}" -std=c11 -O2 -D_GNU_SOURCE -Wall -Wextra \
	-I"$src/lib" -I"$src/include" -o "$build/bench-published" "$src/bench/published.c" "$build/libum.la" -lm
"$build/bench-published"
