#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# driver_evict.sh - compares eviction by workers of the library with eviction by the driver (bench/driver_evict.c)
#
#     bench/driver_evict.sh BUILD-FOLDER [PROFILE...]
#
# Prints the time per block in the simulator, in us; "!" marks evictions of blocks that should have stayed.
set -eu
build=${1:?usage: bench/driver_evict.sh BUILD-FOLDER [PROFILE...]}
shift
src=$(cd "$(dirname "$0")/.." && pwd)
[ $# -gt 0 ] || set -- v100 a100 h100 gh200
make -s -C "$build" libumtools.la libum.la
"$build/libtool" --silent --tag=CC --mode=link "${CC:-cc}" -std=c11 -O2 -D_GNU_SOURCE -Wall -Wextra \
	-I"$src/lib" -I"$src/tools" -I"$src/include" -o "$build/bench-driver-evict" \
	"$src/bench/driver_evict.c" "$build/libumtools.la" "$build/libum.la" -lm
"$build/bench-driver-evict" "$@"
