#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# relaunch_memory.sh - memory runs out while content is dropped and made anew: a program computes the same, or ends by
# itself

: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/harness/failmalloc.sh"
unset UM_TEST_ALL # a sample: each allocation of these programs would take hours

survives "an iteration that repeats" -e 48 -x 3 "$top_builddir/tests/runtime/test_relaunches" 0
survives "one that differs now and then, with tensors that come and go" -e 48 -x 3 \
	"$top_builddir/tests/runtime/test_relaunches" 3
tap_done
