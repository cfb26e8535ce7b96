#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# log_memory.sh - memory runs out while the library writes its log: each 300th allocation fails in turn, each 15th
# where UM_TEST_EVERY is set (most are not the log's). Reading it is left out: jansson's parser asserts where a word has
# outgrown its buffer and there is no memory for a larger one.

: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"
export top_builddir

module=$top_builddir/tests/.libs/failmalloc.so
[ -r "$module" ] || skip_all "no $module"
[ -z "${SANITIZE-}" ] || skip_all "a sanitizer has its own allocator"
step=300
[ -z "${UM_TEST_EVERY-}" ] || step=15

ok "a program with a log" "$BASH" "$top_srcdir/tests/failmalloc.sh" -s "$step" -x 1 \
	"$top_builddir/tests/test_reporting" once
tap_done
