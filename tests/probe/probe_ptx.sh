#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# probe_ptx.sh - the probes' kernels compile for every device that this toolkit knows

: "${top_srcdir:=.}" "${top_builddir:=.}" "${NVCC=}"
. "$top_srcdir/tests/tap.sh"

[ -n "$NVCC" ] || skip_all "no nvcc"
ptxas=$(dirname "$NVCC")/ptxas
[ -x "$ptxas" ] || skip_all "no ptxas beside nvcc"
"$top_builddir/tests/probe/test_probe" ptx >"$tmp/probe.ptx"
like "$(cat "$tmp/probe.ptx")" '\.target sm_60' "the kernels are for devices from Pascal on"
while read -r arch; do
	ok "compiles for $arch" "$ptxas" -Werror -arch="$arch" -o "$tmp/out" "$tmp/probe.ptx"
done < <("$NVCC" --list-gpu-code | grep -E '^sm_[0-9]+$')
sed 's/ld.volatile.global.u32/ld.volatile.global.x32/' "$tmp/probe.ptx" >"$tmp/bad.ptx"
fails 255 "an unknown instruction is refused" "$ptxas" -arch=sm_80 -o "$tmp/out" "$tmp/bad.ptx"
tap_done
