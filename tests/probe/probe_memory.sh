#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# probe_memory.sh - memory runs out while probes run: allocations fail in turn

: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/harness/failmalloc.sh"
survives "no crash and no leak, whichever allocation fails" \
	-x 1 "$top_builddir/tests/probe/test_probe" once
tap_done
