#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# plan_memory.sh - memory runs out while planning and proving: each allocation fails in turn

: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"
export top_builddir

[ -r "$top_builddir/tests/.libs/failmalloc.so" ] || skip_all "no failmalloc.so"
[ -z "${SANITIZE-}" ] || skip_all "a sanitizer has its own allocator"

# Every seventh: the rounds of the search do the same over and over.
ok "no crash, no leak, no wrong word, whichever allocation fails" \
	"$BASH" "$top_srcdir/tests/failmalloc.sh" -s 7 -x 3 "$top_builddir/tests/test_plan_memory"
tap_done
