#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What `umadvise report` costs on a large export, beside scans of the same tables by SQLite's own shell: time, processor
# time and the most memory.
# Usage: bench/export_scale.sh BUILD-FOLDER [EVENTS]     (default: 20,000,000 events, a file of 2 GB, made in TMPDIR
# and removed again). RUNS may be set: of so many, the quickest is told (default 3).
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
