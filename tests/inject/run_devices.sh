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
device_ns() { sed -n 's/.*"device_ns": *\([0-9]*\).*/\1/p' "$tmp/report" | sort -n | tail -n 1; }
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

# --- memory of both devices ------------------------------------------------------------------------------------------

for budget in 1GiB 128MiB 96MiB; do
	want=$(on_two $budget "$app" managed)
	alone=$(device_ns)
	is "$(on_two $budget "$UMADVISE" run "$app" managed 2>"$tmp/err")" "$want" \
		"managed memory of both devices, $budget each: the sums are the same"
	ok "it takes less than four fifths of the time" test $((5 * $(device_ns))) -lt $((4 * alone))
	like "$(cat "$tmp/err")" "100 % of 216 launches" "all launches are seen"
done
for mode in halves whole; do
	want=$(on_two 192MiB "$app" $mode)
	alone=$(device_ns)
	is "$(on_two 192MiB "$UMADVISE" run "$app" $mode 2>"$tmp/err")" "$want" \
		"arrays that both devices write, $mode: the sums are the same"
	ok "what the driver pages takes the driver's time" test $((100 * $(device_ns))) -le $((102 * alone))
done
is "$(sed -n 's/.*"hints_refused": *\([0-9]*\).*/\1/p' "$tmp/report" | sort -u)" 0 "no hint is refused"
tap_done
