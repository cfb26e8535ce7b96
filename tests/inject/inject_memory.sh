#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# inject_memory.sh - allocations fail in a program under the preloaded library: it does not crash or hang, and if it
# ends well its result is the same

: "${top_srcdir:=.}" "${top_builddir:=.}" "${CC:=cc}" "${SANITIZE=}"
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/harness/failmalloc.sh"

driver=$(cd "$top_builddir/standin" 2>/dev/null && pwd)
library=$(cd "$top_builddir/lib/inject/.libs" 2>/dev/null && pwd)/libumadvise-preload.so
[ -e "$driver/libcuda.so.1" ] || skip_all "the stand-in driver was not built"
[ -e "$library" ] || skip_all "the library to preload was not built"
$CC -std=c11 -D_GNU_SOURCE -I"$top_srcdir/include" -o "$tmp/app" "$top_srcdir/tests/inject/inject_app.c" -pthread ||
	skip_all "no program can be built"
export LD_LIBRARY_PATH=$driver UMADVISE_DRYRUN_PROFILE=a100 UMADVISE_DRYRUN_MEMORY=$((64 << 20))
export UM_FAIL_MODULE="$UM_FAIL_MODULE:$library" UMADVISE_RUN_QUIET=1 UMADVISE_LOG=error
unset UM_TEST_ALL # a sample: each allocation of these programs would take too long
want=$(LD_PRELOAD=$library "$tmp/app" compute short)
survives "any allocation of a program that outgrows its memory may fail" -e 3 -x 9 "$tmp/app" compute short "$want"
survives "any allocation of a program that captures may fail" -x 9 "$tmp/app" compute graph
tap_done
