#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# log_memory.sh - memory runs out while the library writes its log: allocations fail in turn, few, since most are not
# the log's. Reading it is left out: jansson's parser asserts where a word has outgrown its buffer and there is no
# memory for a larger one.

: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/harness/failmalloc.sh"

survives "a program with a log" -e 8 -x 1 "$top_builddir/tests/runtime/test_log_sink" once
survives "what the driver counts, in a log" "$top_builddir/tests/io/test_log_driver_counters" write
if [ -x "$top_builddir/tests/device/test_counters" ] && [ -e "$top_builddir/tests/device/fake/libcupti.so.13" ]; then
	survives "what the driver counts" "$top_builddir/tests/device/test_counters" once
fi
tap_done
