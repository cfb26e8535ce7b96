#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ptx_memory.sh - memory runs out while code is read: allocations fail in turn

: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/harness/failmalloc.sh"
survives "whichever allocation fails, the answer is right or there is none" \
	-x 1 "$top_builddir/tests/kernel/test_ptx" once
tap_done
