#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run_reads.sh - umadvise run of a program that only reads most of its memory, as the names of its kernels say; of one
# whose names say so wrongly; of one with small allocations, and of one whose allocations end inside a block

: "${top_srcdir:=.}" "${top_builddir:=.}" "${NVCC=}" "${SANITIZE=}"
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/inject/nvcc.sh"
build_shared app "$top_srcdir/tests/inject/run_reads.cu"
field() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" "$tmp/report" | head -n 1; }

for mode in const cast odd; do
	is "$(run 72MiB "$tmp/app" $mode)" "$(dry 1GiB "$tmp/app" $mode)" "$mode: the result is the same"
	like "$(cat "$tmp/err")" "seen 100 % of 1(12|05).0 MiB and 100 % of 360 launches; [1-9][0-9]* hints" \
		"$mode: all memory and launches are seen"
done
run 72MiB "$tmp/app" const >/dev/null
out=$(field d2h_bytes) ns=$(field device_ns)
UMADVISE_RUN_CONST=off run 72MiB "$tmp/app" const >/dev/null
ok "what is only read leaves without a copy in most iterations" test $((out * 2)) -lt "$(field d2h_bytes)"
ok "that takes less time" test "$ns" -lt "$(field device_ns)"
run 72MiB "$tmp/app" odd >/dev/null
out=$(field d2h_bytes)
UMADVISE_RUN_CONST=off run 72MiB "$tmp/app" odd >/dev/null
ok "so does the end of an allocation that ends inside a block" test $((out * 2)) -lt "$(field d2h_bytes)"

is "$(run 72MiB "$tmp/app" small)" "$(dry 1GiB "$tmp/app" small)" "small: the result is the same"
run 72MiB "$tmp/app" small >/dev/null
like "$(cat "$tmp/err")" "seen 100 % of 112.0 MiB" "small: small allocations count as seen"
is "$(field device_peak_bytes)" $((12 * 4096)) "small: they stay device memory"
run 72MiB --managed all "$tmp/app" small >/dev/null
is "$(field device_peak_bytes)" 0 "small: with --managed all they become managed memory"
tap_done
