#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# paged.sh - umadvise run of a program with a paged optimizer, which prefetches its state and waits for the device

: "${top_srcdir:=.}" "${top_builddir:=.}" "${NVCC=}" "${SANITIZE=}"
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/inject/nvcc.sh"
app=$tmp/paged
build_shared paged "$top_srcdir/tests/inject/run_paged.cu"
field() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" "$tmp/report" | head -n 1; }
left() { sed -n 's/.*; \([0-9]*\) prefetches of the program left to the plan.*/\1/p' "$tmp/err"; }
issued() { sed -n 's/.*; \([0-9]*\) hints in .*/\1/p' "$tmp/err"; }

want=$(dry 1GiB "$app" paged)
like "$want" '^[0-9]+\.[0-9]{4}$' "the program computes a sum"
for mode in paged global batch side brief none; do
	is "$(run 96MiB "$app" $mode)" "$want" "$mode: the result is the same"
	like "$(cat "$tmp/err")" "seen 100 % of 128.0 MiB and 100 % of 192 launches; [1-9][0-9]* hints" \
		"$mode: all memory and launches are seen"
done

run 96MiB "$app" paged 48 >/dev/null
ours=$(field device_ns)
ok "most prefetches of the program are left to the plan" test $(($(left) * 3)) -gt $((48 * 16 * 2))
ok "so the driver gets fewer of them" test $(($(field hints) - $(issued))) -lt $((48 * 16 / 2))
run 96MiB "$app" batch 48 >/dev/null
ok "prefetches of several ranges are left to the plan" test $(($(left) * 3)) -gt $((48 * 16 * 2))
dry 96MiB "$app" paged 48 >/dev/null
ok "it is 1.5 times as fast as the program's own paging" test $((ours * 3)) -lt $(($(field device_ns) * 2))
UMADVISE_DISABLE=1 run 96MiB "$app" paged >/dev/null
is "$(left)" "" "without hints the program's prefetches are passed on"
run 1GiB "$app" paged >/dev/null
is "$(left)" "" "where all fits the program's prefetches are passed on"
like "$(cat "$tmp/err")" "100 % of 128.0 MiB .* fits" "where all fits its managed memory is seen"

is "$(run 96MiB "$app" refused)" "$(dry 1GiB "$app" refused)" "prefetches that CUDA refuses are refused"

# Waiting for the device.
for name in cuEventCreate cuEventRecord cuStreamWaitEvent cuStreamSynchronize cuStreamCreate; do
	for mode in side brief; do
		is "$(UMADVISE_DRYRUN_FAIL=$name:0 run 96MiB "$app" $mode)" "$(UMADVISE_DRYRUN_FAIL=$name:0 dry 1GiB \
			"$app" $mode)" "$mode: the result is the same where $name fails"
	done
done
tap_done
