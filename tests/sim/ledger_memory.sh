#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ledger_memory.sh - memory runs out while memory of the simulated GPU is named: each allocation fails in turn

: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/harness/failmalloc.sh"
export UM_TEST_EVERY=1 # they are few

survives "whichever allocation fails, a name is missing and nothing else differs" \
	-x 1 "$top_builddir/tests/sim/test_sim_ledger" names
tap_done
