#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# learn_memory.sh - memory runs out while recording and learning: each allocation fails in turn

: "${top_srcdir:=.}" "${top_builddir:=.}"
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/harness/failmalloc.sh"
export UM_TEST_EVERY=1 # they are few
program=$top_builddir/tests/learn/test_learn_memory

# status 1 is a test that failed
survives "no crash, no leak, no wrong word, whichever allocation fails" \
	-x 1 "$program"

# The runner itself must notice: a program that dies, one that complains, one that is refused.
cat >"$tmp/weak.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
	char *p = malloc(100);
	(void)argc;
	if (!p && !strcmp(argv[1], "word"))
		return puts("free(): invalid pointer"), 0;
	if (!p && !strcmp(argv[1], "status"))
		return 3;
	if (!p && !strcmp(argv[1], "well"))
		return 4;
	*(volatile char *)p = 1;
	free(p);
	return 0;
}
END
if ${CC:-cc} -O0 -o "$tmp/weak" "$tmp/weak.c" 2>"$tmp/cc.err"; then
	runner() { "$top_builddir/tests/harness/failrun" "$@"; }
	ok "a program that copes passes" runner -x 3 "$tmp/weak" well
	fails 1 "one that dies is seen" runner "$tmp/weak" crash
	fails 1 "one whose memory is broken is seen" runner "$tmp/weak" word
	fails 1 "a refused status is seen" runner -x 3 "$tmp/weak" status
else
	skip 4 "no compiler"
fi
tap_done
