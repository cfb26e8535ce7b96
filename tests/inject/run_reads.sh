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

# One run for each MODE and value of UMADVISE_RUN_CONST, named by HOW.
copied() { # HOW MODE: bytes to the host
	run_as "$1" "$2"
	field d2h_bytes
}
device_ns() { # HOW MODE
	run_as "$1" "$2"
	field device_ns
}
run_as() { # HOW MODE: leaves its report and its output
	[ -e "$tmp/$1.$2" ] || {
		UMADVISE_RUN_CONST=$1 run 72MiB "$tmp/app" "$2" >"$tmp/out"
		mkdir "$tmp/$1.$2" && mv "$tmp/out" "$tmp/report" "$tmp/err" "$tmp/$1.$2"
	}
	cp "$tmp/$1.$2/report" "$tmp/report"
}

for mode in const cast plain struct change odd; do
	run_as on $mode
	is "$(cat "$tmp/on.$mode/out")" "$(dry 1GiB "$tmp/app" $mode)" "$mode: the result is the same"
	like "$(cat "$tmp/on.$mode/err")" \
		"seen 100 % of 1(12|05).0 MiB and 100 % of 360 launches; [1-9][0-9]* hints" \
		"$mode: all memory and launches are seen"
done
all=$(copied off const)
out=$(copied names const)
ok "what names call const leaves without a copy in most iterations" test $((out * 2)) -lt "$all"
ok "that takes less time" test "$(device_ns on const)" -lt "$(device_ns off const)"
is "$(copied names plain)" "$all" "a kernel without const may write all, if its code is not read"
is "$(copied on plain)" "$out" "its code says what it only reads"
is "$(copied on struct)" "$out" "so does the code of a kernel that takes a structure of pointers"
is "$(copied on change)" "$(copied off change)" "what such a kernel writes through its structure, the code says, too"
ok "code that writes what its name calls const is believed" test "$(device_ns on cast)" -lt "$(device_ns names cast)"
ok "so does the end of an allocation that ends inside a block" test $(($(copied on odd) * 2)) -lt "$(copied off odd)"

dry 1GiB "$tmp/app" small >"$tmp/want"
run 72MiB "$tmp/app" small >"$tmp/out"
is "$(cat "$tmp/out")" "$(cat "$tmp/want")" "small: the result is the same"
like "$(cat "$tmp/err")" "seen 100 % of 112.0 MiB" "small: small allocations count as seen"
is "$(field device_peak_bytes)" $((12 * 4096)) "small: they stay device memory"
run 72MiB --managed all "$tmp/app" small >/dev/null
is "$(field device_peak_bytes)" 0 "small: with --managed all they become managed memory"
tap_done
