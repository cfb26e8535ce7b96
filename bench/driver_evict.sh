#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Who takes blocks away: workers of the library, or the driver (bench/driver_evict.c). Time of a block, us, in the
# simulator; "!" where something that was kept has been evicted.
# Usage: bench/driver_evict.sh BUILD-FOLDER [PROFILE...]
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
