#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# failmalloc.sh - runs a command again and again, each time with another allocation that fails
#
#     failmalloc.sh [-s STEP] [-f FIRST] [-x STATUS]... COMMAND [ARGUMENT]...
#
# First the command runs untouched: it must succeed, and its allocations are counted. Then for n = FIRST, FIRST + STEP,
# ... up to that count it runs with its n-th allocation failing. It may then fail in its own way, with an exit status
# below 124; it may not hang, die of a signal, or show what a sanitizer or the C library says of broken memory. -x names
# a status that is refused as well. COMMAND is a program: of a script the allocations of its shell would count.
#
# Exit status: 0 all is well, 1 something broke (said how, with the number to repeat it by), 77 nothing to preload here.

step=1
first=1
refused=
while getopts s:f:x: option; do
	case $option in
	s) step=$OPTARG ;;
	f) first=$OPTARG ;;
	x) refused="$refused $OPTARG " ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || {
	echo "usage: failmalloc.sh [-s STEP] [-f FIRST] [-x STATUS] COMMAND [ARGUMENT]..." >&2
	exit 2
}

module=${top_builddir:=.}/tests/.libs/failmalloc.so
[ -r "$module" ] || {
	echo "failmalloc.sh: no $module" >&2
	exit 77
}
[ -z "${SANITIZE-}" ] || {
	echo "failmalloc.sh: a sanitizer has its own allocator" >&2
	exit 77
}

dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

# Runs the command with these settings in its environment; sets rc.
run() {
	rc=0
	timeout -k 5 120 env "$@" LD_PRELOAD="$module" "${command[@]}" >"$dir/out" 2>"$dir/err" </dev/null || rc=$?
}
command=("$@")

broken='AddressSanitizer|LeakSanitizer|ThreadSanitizer|runtime error:|Assertion .* failed|double free|corrupt'
broken="$broken|invalid pointer|stack smashing|free\\(\\):|malloc\\(\\):|realloc\\(\\):"

count_file=$dir/count
run UM_FAIL_COUNT_FILE="$count_file"
if [ "$rc" -ne 0 ] || [ ! -s "$count_file" ]; then
	echo "failmalloc.sh: untouched, the command ends with $rc: ${command[*]}"
	tail -n 20 "$dir/out" "$dir/err"
	exit 1
fi
total=$(sort -n "$count_file" | tail -n 1)

bad=0
runs=0
for ((n = first; n <= total; n += step)); do
	run UM_FAIL_AT="$n"
	runs=$((runs + 1))
	why=
	if [ "$rc" -ge 124 ]; then
		why="status $rc"
	elif [ "${refused#* "$rc" }" != "$refused" ]; then
		why="status $rc, which is refused"
	elif grep -Eq "$broken" "$dir/out" "$dir/err"; then
		why=$(grep -Ehm 1 "$broken" "$dir/out" "$dir/err")
	fi
	[ -n "$why" ] || continue
	bad=$((bad + 1))
	echo "allocation $n of $total: $why"
	echo "    UM_FAIL_AT=$n LD_PRELOAD=$module ${command[*]}"
	tail -n 5 "$dir/out" "$dir/err"
	[ "$bad" -lt 5 ] || break
done
echo "$runs runs, $total allocations, $bad broken"
[ "$bad" -eq 0 ]
