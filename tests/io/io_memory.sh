#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# io_memory.sh - memory runs out while files are read and written: each allocation fails in turn

: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/harness/failmalloc.sh"
export UM_TEST_EVERY=1 # they are few

# status 1 is a test that failed
survives "no crash, no leak, no half file, whichever allocation fails" \
	-x 1 "$top_builddir/tests/io/test_io_memory"

# The tool may say that there is no memory (4), or that a file cannot be read (3).
survives "trace check says so" -x 1 -x 2 \
	"$UMADVISE" trace check "$top_srcdir/tests/data/good-all-keys.umtrace.gz"
survives "trace stat says so" -x 1 -x 2 \
	"$UMADVISE" trace stat "$top_srcdir/tests/data/good-all-keys.umtrace"
tap_done
