#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# times.sh - processor time of each group of tests, as timed.sh left it
#
#     times.sh FILE.trs...
#
# A line for each group (the directory of its tests): seconds, number of tests, and the test that took longest. The
# names of .trs files are relative to the build's folder.

n=$#
for trs in "$@"; do
	[ ! -e "$trs" ] || set -- "$@" "$trs"
done
shift "$n"
grep -qs '^:um-seconds: ' /dev/null "$@" || exit 0
awk '
	/^:um-seconds: / {
		group = FILENAME
		sub(/\/[^\/]*$/, "", group)
		test = FILENAME
		sub(/.*\//, "", test)
		sub(/\.trs$/, "", test)
		sum[group] += $2
		all += $2
		n[group]++
		if (!(group in most) || $2 + 0 > most[group]) {
			most[group] = $2 + 0
			name[group] = test
		}
	}
	END {
		printf "processor time of each group of tests:\n"
		for (group in sum)
			printf "%8.1f s  %-14s  %3d test%s, longest %s %.1f s\n", sum[group], group, n[group],
				n[group] == 1 ? "" : "s", name[group], most[group] | "sort -k1,1nr -k3"
		close("sort -k1,1nr -k3")
		printf "%8.1f s  together\n", all
	}' "$@"
