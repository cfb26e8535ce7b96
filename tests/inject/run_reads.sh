#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run_reads.sh - umadvise run of a program that only reads most of its memory, as the names of its kernels or their PTX
# code say; of one whose names say so wrongly; of one with small allocations, and of one whose allocations end inside a
# block

: "${top_srcdir:=.}" "${top_builddir:=.}" "${NVCC=}" "${SANITIZE=}"
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/inject/nvcc.sh"
build_shared app "$top_srcdir/tests/inject/run_reads.cu"
field() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" "$tmp/report" | head -n 1; }

for mode in const cast plain struct change odd; do
	is "$(run 72MiB "$tmp/app" $mode)" "$(dry 1GiB "$tmp/app" $mode)" "$mode: the result is the same"
	like "$(cat "$tmp/err")" "seen 100 % of 1(12|05).0 MiB and 100 % of 360 launches; [1-9][0-9]* hints" \
		"$mode: all memory and launches are seen"
done
copied() { # HOW MODE: bytes to the host; HOW is a value of UMADVISE_RUN_CONST
	UMADVISE_RUN_CONST=$1 run 72MiB "$tmp/app" "$2" >/dev/null
	field d2h_bytes
}
all=$(copied off const)
out=$(copied names const)
ok "what names call const leaves without a copy in most iterations" test $((out * 2)) -lt "$all"
run 72MiB "$tmp/app" const >/dev/null
ns=$(field device_ns)
UMADVISE_RUN_CONST=off run 72MiB "$tmp/app" const >/dev/null
ok "that takes less time" test "$ns" -lt "$(field device_ns)"
is "$(copied names plain)" "$all" "a kernel without const may write all, if its code is not read"
is "$(copied on plain)" "$out" "its code says what it only reads"
is "$(copied on struct)" "$out" "so does the code of a kernel that takes a structure of pointers"
is "$(copied on change)" "$(copied off change)" "what such a kernel writes through its structure, the code says, too"
UMADVISE_RUN_CONST=names run 72MiB "$tmp/app" cast >/dev/null
ns=$(field device_ns)
run 72MiB "$tmp/app" cast >/dev/null
ok "code that writes what its name calls const is believed" test "$(field device_ns)" -lt "$ns"

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
