#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# sharing_memory.sh - memory runs out while the budgets of two contexts on a device change: both go on, or end by
# themselves

: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/harness/failmalloc.sh"
unset UM_TEST_ALL # a sample: each allocation of these programs would take long

survives "two contexts share a device, and one has it again" -e 24 -x 1 \
	"$top_builddir/tests/runtime/test_sharing" memory
tap_done
