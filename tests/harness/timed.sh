#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# timed.sh - runs a test's driver: ends a test that hangs, and notes the test's processor time
#
#     timed.sh DRIVER [ARGUMENT]... --trs-file FILE [ARGUMENT]... -- TEST [ARGUMENT]...
#
# A test that takes UM_TEST_LIMIT seconds (900 unless set) is killed, and its driver reports status 124 as an error.
# Adds ":um-seconds: N" to FILE: user and system time of the driver and all that it waited for. Automake ignores the
# line; times.sh adds them up.

limit=
command -v timeout >/dev/null && limit="timeout -k 10 ${UM_TEST_LIMIT:-900}"
n=$#
while [ "$n" -gt 0 ]; do
	set -- "$@" "$1"
	# shellcheck disable=SC2086 # words
	[ "$1" != -- ] || set -- "$@" $limit
	[ "$1" != -- ] || limit=
	shift
	n=$((n - 1))
done

"$@"
rc=$?
while [ $# -gt 0 ] && [ "$1" != --trs-file ]; do
	shift
done
[ $# -ge 2 ] || exit $rc
trs=$2
times >"$trs.times" # not into a pipe: a shell of its own would have no children
awk '
	NR == 2 { # children: 0m1.234s 0m0.056s
		for (i = 1; i <= 2; i++) {
			split($i, part, "m")
			s += 60 * part[1] + part[2]
		}
		printf ":um-seconds: %.2f\n", s
	}' "$trs.times" >>"$trs"
rm -f "$trs.times"
exit $rc
