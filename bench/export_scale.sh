#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# export_scale.sh - measures `umadvise report` on a large export, beside scans of its tables by SQLite's shell
#
#     bench/export_scale.sh BUILD-FOLDER [EVENTS]
#
# Prints time, processor time and peak memory. EVENTS: 20,000,000 by default, a file of 2 GB, made in TMPDIR and removed
# again. RUNS (default 3): repetitions, of which the fastest counts.
set -eu
build=${1:?usage: bench/export_scale.sh BUILD-FOLDER [EVENTS]}
events=${2:-20000000}
src=$(cd "$(dirname "$0")/.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
make -s -C "$build" tools/umadvise
"${CC:-cc}" -std=c11 -O2 -D_GNU_SOURCE -I"$src/lib" -I"$src/tools" -o "$tmp/make" "$src/bench/export_scale.c" \
	"$src/tools/formats/nsys_schema.c" -lsqlite3
"$tmp/make" "$tmp/run.sqlite" "$events"
python3 "$src/bench/export_scale.py" "$tmp/run.sqlite" "${RUNS:-3}" "$build/tools/umadvise"
