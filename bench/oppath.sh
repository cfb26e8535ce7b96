#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Instructions per umadv_op while replaying: three tensors an op, hints due at most ops, on the app's thread.
# Usage: bench/oppath.sh BUILD-FOLDER     (needs valgrind)
# umadv_iter, once in 64 ops, is counted apart. Worker threads are not counted.
set -eu
build=${1:?usage: bench/oppath.sh BUILD-FOLDER}
make -s -C "$build" bench/oppath
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
valgrind --tool=callgrind --separate-threads=yes --toggle-collect=umadv_op --callgrind-out-file="$tmp/out" \
	"$build/bench/oppath" 20 2>"$tmp/log" || { cat "$tmp/log"; exit 1; }
# Thread 1 is the app's.
main=$(ls "$tmp"/out-01 2>/dev/null || ls "$tmp"/out)
total=$(sed -n 's/^\(summary\|totals\): *//p' "$main" | head -n 1)
ops=$(( 25 * 64 ))
echo "instructions in umadv_op over $ops ops (5 iterations learning, 20 replaying): $total, $(( total / ops )) per op"
