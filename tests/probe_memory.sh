#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# probe_memory.sh - memory runs out while probes run: allocations fail in turn

: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"
export top_builddir

[ -r "$top_builddir/tests/.libs/failmalloc.so" ] || skip_all "no failmalloc.so"
[ -z "${SANITIZE-}" ] || skip_all "a sanitizer has its own allocator"
ok "no crash and no leak, whichever allocation fails" \
	"$BASH" "$top_srcdir/tests/failmalloc.sh" -s 19 -x 1 "$top_builddir/tests/test_probe" once
tap_done
