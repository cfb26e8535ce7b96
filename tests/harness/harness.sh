#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# harness.sh - tap.h and tap.sh report what fails, where, and with both values

: "${top_srcdir:=.}" "${CC:=cc}"
. "$top_srcdir/tests/tap.sh"

cat >"$tmp/t.c" <<'END'
#include "tap.h"

int main(int argc, char **argv)
{
	if (argc > 1)
		tap_plan(atoi(argv[1]));
	ok(1, "holds # not a %s", "directive");
	is_u64(3, 3, "equal");
	skip(1, "no reason");
	if (argc > 2) {
		ok(0, "does not hold");
		is_int(-1, 1, "numbers differ");
		is_u64(UINT64_MAX, 0, "sizes differ");
		is_str("a", NULL, "texts differ");
	}
	return tap_done();
}
END
# shellcheck disable=SC2086 # CC is a list
ok "tap.h compiles without a warning" $CC -std=c11 -D_GNU_SOURCE -Wall -Wextra -Wshadow -Werror \
	-I"$top_srcdir/tests" -o "$tmp/t" "$tmp/t.c" || { tap_done; }

out=$("$tmp/t")
is $? 0 "a program whose checks hold succeeds"
is "$out" 'ok 1 - holds . not a directive
ok 2 - equal
ok 3 # SKIP no reason
1..3' "each check that holds is one line"

out=$("$tmp/t" 7 x)
is $? 1 "a program with a failed check fails"
like "$out" '^not ok 4 - does not hold$' "the failure is said"
like "$out" '^#   at .*t\.c:11$' "a failure names its file and line"
like "$out" '^#   got -1, want 1$' "a failure shows both numbers"
like "$out" '^#   got 18446744073709551615 \(0xf+\), want 0 \(0x0\)$' "a failure shows both sizes"
like "$out" '^#   got  "a"$' "a failure shows the text that it got"
like "$out" '^#   want NULL$' "a failure shows the text that it wants"

"$tmp/t" 5 >/dev/null
is $? 1 "a test that ends early fails"

cat >"$tmp/t.sh" <<'END'
. "$top_srcdir/tests/tap.sh"
ok "true is true" true
ok "false is not" false
is a b "is notices different texts"
like abc '^b' "like notices a mismatch"
fails 3 "fails notices another status" sh -c 'exit 4'
fails 4 "fails accepts the wanted status" sh -c 'exit 4'
tap_done
END
out=$(top_srcdir=$top_srcdir bash "$tmp/t.sh")
is $? 1 "a shell test with failures fails"
told=$(printf '%s\n' "$out" | sed -n 's/^\(ok\|not ok\) .*/\1/p' | tr '\n' ,)
is "$told" 'ok,not ok,not ok,not ok,not ok,ok,' "each is told"
like "$out" 't\.sh:3$' "a failure of a shell test has its line"
like "$out" 'status 4, want 3' "a failure of a shell test has both statuses"
is "$(printf '. "$top_srcdir/tests/tap.sh"\ntap_done\n' | top_srcdir=$top_srcdir bash 2>&1; echo $?)" '1..0
1' "no check at all is a failure"

# Which programs start threads.
cat >"$tmp/threads.c" <<'END'
#include <pthread.h>
static void *run(void *arg)
{
	return arg;
}
int main(int argc, char **argv)
{
	pthread_t t;
	(void)argv;
	return argc > 1 && (pthread_create(&t, NULL, run, NULL) || pthread_join(t, NULL));
}
END
module=${top_builddir:=.}/tests/harness/.libs/threads_seen.so
if [ ! -r "$module" ] || [ -n "${SANITIZE-}" ]; then
	skip 3 "nothing to preload"
else
	# shellcheck disable=SC2086 # CC is a list
	$CC -pthread -o "$tmp/threads" "$tmp/threads.c"
	seen() { LD_PRELOAD=$module UM_THREADS_SEEN=$tmp/seen "$tmp/threads" "$@"; }
	mkdir "$tmp/seen"
	ok "a program without threads runs" seen
	is "$(ls "$tmp/seen")" "" "a program without threads is not noted"
	seen yes
	is "$(ls "$tmp/seen")" "threads" "one that starts one is"
fi

# Failing allocations: a sample each day, all of them together.
cat >"$tmp/asks.c" <<'END'
#include <stdlib.h>
static volatile int kept;
#define ASK(n) do { char *p = malloc(n); kept += p != NULL; free(p); } while (0)
int main(void)
{
	ASK(1); ASK(2); ASK(3); ASK(4); ASK(5); ASK(6); ASK(7); ASK(8); ASK(9);
	return 0;
}
END
export UM_FAIL_MODULE=$top_builddir/tests/harness/.libs/failmalloc.so
if [ ! -r "$UM_FAIL_MODULE" ] || [ -n "${SANITIZE-}" ]; then
	skip 3 "nothing to preload"
else
	# shellcheck disable=SC2086 # CC is a list
	$CC -O0 -o "$tmp/asks" "$tmp/asks.c"
	all=${UM_TEST_ALL-}
	unset UM_TEST_ALL
	runs() { "$top_builddir/tests/harness/failrun" "$tmp/asks" | sed -n 's/^\([0-9]*\) runs.*/\1/p'; }
	is "$(UM_TEST_ALL=1 runs)" 9 "with UM_TEST_ALL each of nine allocations fails"
	is "$(for i in 0 1 2 3; do UM_FAIL_OFFSET=$i runs; done | tr '\n' ' ')" "3 2 2 2 " \
		"each of nine allocations fails in one of four samples"
	is "$(for i in 19000 19001; do UM_FAIL_OFFSET=$i runs; done | tr '\n' ' ')" "3 2 " "the offset rotates"
	[ -z "$all" ] || export UM_TEST_ALL="$all"
fi

# Times of tests.
timed=$top_srcdir/tests/harness/timed.sh
mkdir -p "$tmp/tests/one" "$tmp/tests/two"
# shellcheck disable=SC2016 # expanded there
fails 3 "timed.sh ends with the driver's status" sh "$timed" sh -c 'i=0
	while [ $i -lt 100000 ]; do i=$((i + 1)); done; exit 3' --log-file x --trs-file "$tmp/tests/one/t.trs"
like "$(cat "$tmp/tests/one/t.trs")" '^:um-seconds: [0-9]*\.[0-9]*[1-9]' "timed.sh notes a driver's processor time"
# shellcheck disable=SC2016 # expanded there
fails 124 "timed.sh ends a test that hangs" env UM_TEST_LIMIT=1 sh "$timed" sh -c 'shift 5; "$@"' - --log-file x \
	--trs-file "$tmp/tests/one/t.trs" -- sleep 60
# shellcheck disable=SC2016 # expanded there
is "$(sh "$timed" sh -c 'shift 3; "$@"' - --trs-file "$tmp/tests/one/t.trs" -- printf '%s,' 'a  b' -- c)" 'a  b,--,c,' \
	"timed.sh keeps a test's arguments"
echo ':um-seconds: 1.46' >"$tmp/tests/one/t.trs"
echo ':um-seconds: 2.34' >"$tmp/tests/one/u.trs"
echo ':um-seconds: 0.22' >"$tmp/tests/two/v.trs"
times=$(realpath "$top_srcdir/tests/harness/times.sh")
is "$(cd "$tmp" && sh "$times" tests/*/*.trs none.trs)" 'processor time of each group of tests:
     3.8 s  tests/one         2 tests, longest u 2.3 s
     0.2 s  tests/two         1 test, longest v 0.2 s
     4.0 s  together' "times.sh adds up the tests of a group"
is "$(sh "$times" "$tmp/none.trs")" "" "times.sh prints nothing without measured tests"

quick=$top_srcdir/quickstart
mkdir "$tmp/trs"
printf ':test-result: %s\n' 'PASS a' 'FAIL b' 'PASS c' 'SKIP d' >"$tmp/trs/a.trs"
printf '%s\n' 'PASS: a 1 - # PASS: 7' '# TOTAL: 17' '# PASS:  12' '# SKIP:  3' '# XFAIL: 1' '# FAIL:  0' '# XPASS: 0' \
	'# ERROR: 1' >"$tmp/log"
told() { # COMMAND: a function of quickstart's, and what it has in its sums then
	# shellcheck disable=SC2016 # expanded there
	bash -c 'eval "$(sed -n "/^passed=0/,/^result() /p" "$1" | sed "\$d")"
		"${@:2}"; echo "$?: $passed $failed $skipped"' - "$quick" "$@"
}
is "$(told count "$tmp/trs")" "   2 passed, 1 failed, 1 skipped
1: 2 1 1" "what the tests of a build say is counted, and kept"
is "$(told summed "$tmp/log")" "   13 passed, 1 failed, 3 skipped
1: 13 1 3" "the summary of a removed suite is counted"
mkdir "$tmp/out"
printf '%s\n' 'processor time of each group of tests:' '     3.5 s  tests/one         2 tests, longest u 2.3 s' \
	'     3.5 s  together' >"$tmp/out/plain.groups"
printf '     1.5 s  %s\n' tests/one tests/two together >"$tmp/out/asan.groups"
# shellcheck disable=SC2016 # expanded there
is "$(out=$tmp/out bash -c 'eval "$(sed -n "/^groups() /,/^}/p" "$1")"; groups plain asan' - "$quick")" \
	'seconds               sum    plain     asan
tests/one             5.0      3.5      1.5
tests/two             1.5      0.0      1.5
together              5.0      3.5      1.5' "quickstart shows the time of each group in each stage"
fails 2 "quickstart check refuses an unknown option" bash "$quick" check --everything
ok "quickstart prints its help" bash "$quick" --help
fails 2 "quickstart refuses what it does not know" bash "$quick" everything
tap_done
