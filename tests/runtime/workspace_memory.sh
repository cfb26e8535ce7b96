#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# workspace_memory.sh - memory runs out in a program that offers workspaces: allocations fail in turn

: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/harness/failmalloc.sh"

survives "it gets a smaller workspace, or an error, and goes on" -x 3 "$top_builddir/tests/runtime/test_workspace" alone
tap_done
