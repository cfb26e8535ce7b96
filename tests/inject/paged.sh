#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# paged.sh - umadvise run of a program with a paged optimizer, which prefetches its state and waits for the device

: "${top_srcdir:=.}" "${top_builddir:=.}" "${NVCC=}" "${SANITIZE=}"
. "$top_srcdir/tests/tap.sh"

driver=$(cd "$top_builddir/standin" 2>/dev/null && pwd)
[ -e "$driver/libcuda.so.1" ] || skip_all "the stand-in driver was not built"
[ -e "$top_builddir/lib/inject/.libs/libumadvise-preload.so" ] || skip_all "the library to preload was not built"
[ -n "$NVCC" ] || skip_all "no nvcc here"
[ -z "$SANITIZE" ] || skip_all "a program of nvcc has no sanitizer, and one must come first"
case $("$NVCC" --version) in
*"release 13."*) ;;
*) skip_all "nvcc is not of version 13" ;;
esac
arch=$("$NVCC" --list-gpu-arch | sed -n 's/^compute_\([0-9]*\)$/\1/p' | head -n 1)
app=$tmp/paged
"$NVCC" -std=c++17 -arch="sm_$arch" -I"$top_srcdir/include" -o "$app" "$top_srcdir/tests/inject/run_paged.cu" \
	-cudart shared -L"$driver" -l:libcuda.so.1 >"$tmp/log" 2>&1 ||
	skip_all "nvcc links no program: $(head -n 1 "$tmp/log")"
dry() { # BUDGET COMMAND...
	"$UMADVISE" dryrun --profile a100 --format json -o "$tmp/report" --budget "$1" -- "${@:2}"
}
run() { # BUDGET PROGRAM ARGUMENT...
	dry "$1" "$UMADVISE" run "${@:2}" 2>"$tmp/err"
}
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
