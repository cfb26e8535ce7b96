#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# io_memory.sh - memory runs out while files are read and written: each allocation fails in turn

: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"
export top_builddir

module=$top_builddir/tests/.libs/failmalloc.so
[ -r "$module" ] || skip_all "no $module"
[ -z "${SANITIZE-}" ] || skip_all "a sanitizer has its own allocator"

# status 1 is a test that failed
ok "no crash, no leak, no half file, whichever allocation fails" \
	"$BASH" "$top_srcdir/tests/failmalloc.sh" -x 1 "$top_builddir/tests/test_io_memory"

# The tool may say that there is no memory (4), or that a file cannot be read (3).
ok "trace check says so" "$BASH" "$top_srcdir/tests/failmalloc.sh" -x 1 -x 2 \
	"$UMADVISE" trace check "$top_srcdir/tests/data/good-all-keys.umtrace.gz"
ok "trace stat says so" "$BASH" "$top_srcdir/tests/failmalloc.sh" -x 1 -x 2 \
	"$UMADVISE" trace stat "$top_srcdir/tests/data/good-all-keys.umtrace"
tap_done
