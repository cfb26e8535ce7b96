#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# alloc_async_memory.sh - memory runs out in a program that allocates in stream order: allocations fail in turn

: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/harness/failmalloc.sh"

survives "it gets an error and goes on, and live tensors share no memory" -x 3 \
	"$top_builddir/tests/runtime/test_alloc_async" alone
tap_done
