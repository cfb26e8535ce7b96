#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# plan_job_memory.sh - memory runs out in a planning job: allocations fail in turn

: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/harness/failmalloc.sh"

survives "a planning job reports it, and leaves nothing behind" -x 3 "$top_builddir/tests/runtime/test_plan_job" 1
survives "a program whose plans a thread makes goes on" -e 4 -x 3 "$top_builddir/tests/runtime/test_planning" 1
tap_done
