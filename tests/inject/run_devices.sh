#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run_devices.sh - umadvise run of a program for two devices: each has a plan of its own

: "${top_srcdir:=.}" "${top_builddir:=.}" "${NVCC=}" "${SANITIZE=}"
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/inject/nvcc.sh"
app=$tmp/devices
build_shared devices "$top_srcdir/tests/inject/run_devices.cu"
on_two() { # BUDGET COMMAND...
	"$UMADVISE" dryrun --devices 2 --profile a100 --format json -o "$tmp/report" --budget "$1" -- "${@:2}"
}
hints() { sed -n 's/.*"hints": *\([0-9]*\).*/\1/p' "$tmp/report"; }

is "$(dry 1GiB "$app" turns)" "1 devices" "one device is not enough for the program"
for mode in turns threads copy; do
	want=$(on_two 1GiB "$app" $mode)
	like "$want" $'^[0-9]+\\.[0-9]{4}\n[0-9]+\\.[0-9]{4}$' "$mode: the program computes a sum on each device"
	is "$(on_two 1GiB "$UMADVISE" run "$app" $mode 2>"$tmp/err")" "$want" "$mode: in memory the sums are the same"
	is "$(on_two 96MiB "$UMADVISE" run "$app" $mode 2>"$tmp/err")" "$want" \
		"$mode: with two thirds of the memory the sums are the same"
	like "$(cat "$tmp/err")" "seen 100 % of 288.0 MiB and 100 % of 192 launches; [1-9][0-9]* hints" \
		"$mode: memory and launches of both devices are seen"
	ok "$mode: both devices get hints" test "$(hints | grep -c '^[1-9][0-9][0-9]')" -ge 2
done
tap_done
