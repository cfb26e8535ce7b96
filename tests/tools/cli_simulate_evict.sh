#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# umadvise simulate --evict: whose way blocks leave, and which one is chosen.
. "${top_srcdir:=.}/tests/tap.sh"

data=$top_srcdir/tests/data

# A column of the one row: $1 its name; the rest is for simulate.
column() {
	local name=$1
	shift
	"$UMADVISE" simulate "$@" --strategy lookahead --format csv |
		awk -F, -v name="$name" 'NR == 1 { while ($++at != name && at <= NF) continue } NR == 2 { print $at }'
}

for w in alexnet_b200:1.25 resnet50:3; do
	args=("$data/${w%:*}.umtrace.gz" --oversubscribe "${w#*:}")
	library=$(column steady_ns "${args[@]}" --profile gh200 --evict library)
	driver=$(column steady_ns "${args[@]}" --profile gh200 --evict driver)
	is "$(column faults "${args[@]}" --profile gh200 --evict driver)" 0 "$w on gh200: nothing faults"
	best=$((driver < library ? driver : library))
	ok "$w on gh200: the faster way is chosen, but for 4 %" \
		test $(($(column steady_ns "${args[@]}" --profile gh200) * 100)) -le $((best * 104))
	[ "$w" != resnet50:3 ] || ok "the driver's evictions are the faster ones" test "$driver" -lt "$library"
	library=$(column steady_ns "${args[@]}" --profile v100 --evict library)
	is "$(column steady_ns "${args[@]}" --profile v100)" "$library" "$w on v100: the library's is"
	ok "$w on v100: the driver's way is slower" \
		test "$(column steady_ns "${args[@]}" --profile v100 --evict driver)" -gt "$library"
	is "$(column faults "${args[@]}" --profile v100 --evict driver)" 0 "$w on v100: nothing faults all the same"
done
fails 2 "an unknown eviction policy is refused" "$UMADVISE" simulate "$data/resnet50.umtrace.gz" --evict nobody
like "$("$UMADVISE" simulate "$data/resnet50.umtrace.gz" --evict nobody 2>&1)" "auto, library or driver" \
	"the message lists the policies"
fails 2 "a plan is not played" "$UMADVISE" plan "$data/resnet50.umtrace.gz" --evict library -o "$tmp/x"
tap_done
