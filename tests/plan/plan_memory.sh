#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# plan_memory.sh - memory runs out while planning and proving: allocations fail in turn, plan by plan

: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/harness/failmalloc.sh"

for n in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
	survives "plan $n: no crash, no leak, no wrong word" -e 2 -x 3 "$top_builddir/tests/plan/test_plan_memory" $n
done
fails 3 "there is no other" "$top_builddir/tests/plan/test_plan_memory" 18
tap_done
