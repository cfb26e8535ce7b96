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

# A gh200 whose CPU maps memory slowly.
printf '%s\n' 'name = slow' 'capacity = 96 GiB' 'flops = 250e12' 'mem_bandwidth = 3.3e12' 'launch_ns = 3000' \
	'h2d = 370e9' 'd2h = 297e9' 'duplex = 0.9' 'c_pf_cpu = 240000' >"$tmp/slow"

for w in alexnet_b200:1.25 resnet50:3; do
	args=("$data/${w%:*}.umtrace.gz" --oversubscribe "${w#*:}")
	for profile in gh200 "$tmp/slow"; do
		name="$w on ${profile##*/}"
		library=$(column steady_ns "${args[@]}" --profile "$profile" --evict library)
		driver=$(column steady_ns "${args[@]}" --profile "$profile" --evict driver)
		is "$(column faults "${args[@]}" --profile "$profile" --evict driver)" 0 "$name: nothing faults"
		best=$((driver < library ? driver : library))
		ok "$name: the faster way is chosen, but for 4 %" \
			test $(($(column steady_ns "${args[@]}" --profile "$profile") * 100)) -le $((best * 104))
	done
	ok "$name: the driver's evictions are the faster ones" test "$driver" -lt "$library"
	library=$(column steady_ns "${args[@]}" --profile v100 --evict library)
	is "$(column steady_ns "${args[@]}" --profile v100)" "$library" "$w on v100: the library's is"
	ok "$w on v100: the driver's way is slower" \
		test "$(column steady_ns "${args[@]}" --profile v100 --evict driver)" -gt "$library"
	is "$(column faults "${args[@]}" --profile v100 --evict driver)" 0 "$w on v100: nothing faults all the same"
done

# The driver makes one prefetch to the host at a time, and other calls wait for it.
{ cat "$tmp/slow" && echo 'serial_host = yes'; } >"$tmp/serial"
args=("$data/resnet50.umtrace.gz" --oversubscribe 2 --iterations 12)
library=$(column steady_ns "${args[@]}" --profile "$tmp/serial" --evict library)
ok "evictions one after the other take longer than side by side" \
	test "$library" -gt $(($(column steady_ns "${args[@]}" --profile "$tmp/slow" --evict library) * 11 / 10))
ok "they are left to the driver" test "$(column steady_ns "${args[@]}" --profile "$tmp/serial")" -lt "$library"
like "$("$UMADVISE" simulate "${args[@]}" --profile <(sed 's/yes/perhaps/' "$tmp/serial") 2>&1)" \
	"serial_host.*perhaps|perhaps.*serial_host" "the key takes yes or no"
fails 2 "an unknown eviction policy is refused" "$UMADVISE" simulate "$data/resnet50.umtrace.gz" --evict nobody
like "$("$UMADVISE" simulate "$data/resnet50.umtrace.gz" --evict nobody 2>&1)" "auto, library or driver" \
	"the message lists the policies"
fails 2 "a plan is not played" "$UMADVISE" plan "$data/resnet50.umtrace.gz" --evict library -o "$tmp/x"
tap_done
