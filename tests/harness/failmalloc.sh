# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# failmalloc.sh - for shell tests in which allocations fail, after tap.sh:
#
#     . "$top_srcdir/tests/harness/failmalloc.sh"
#
#     survives "report" -s 5 -x 1 "$UMADVISE" report x.sqlite     a check; options are those of failrun.c
#
# The test is skipped where nothing can be preloaded.

: "${top_builddir:=.}"
export UM_FAIL_MODULE=$top_builddir/tests/harness/.libs/failmalloc.so
[ -r "$UM_FAIL_MODULE" ] || skip_all "no $UM_FAIL_MODULE"
[ -z "${SANITIZE-}" ] || skip_all "a sanitizer has its own allocator"

survives() { # NAME OPTION... COMMAND...
	local name=$1
	shift
	ok "$name" "$top_builddir/tests/harness/failrun" "$@"
}
