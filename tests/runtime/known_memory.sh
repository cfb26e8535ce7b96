#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# known_memory.sh - memory runs out while what ops named is remembered: a program computes the same, or ends by itself

: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/harness/failmalloc.sh"

survives "tensors that stay where they are" -e 4 -x 1 "$top_builddir/tests/runtime/test_known" 5
survives "tensors that come and go" -e 4 -x 1 "$top_builddir/tests/runtime/test_known" 6
tap_done
