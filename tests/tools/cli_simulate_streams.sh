#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs on two streams: when an iteration has ended, and which ops wait for those of the other stream.
. "${top_srcdir:=.}/tests/tap.sh"

# A long op and a short one in each iteration, with these uses and streams.
program() { # LONG_R LONG_W LONG_STREAM SHORT_R SHORT_W SHORT_STREAM
	echo '{"umtrace":1,"source":"by hand","workload":"streams"}'
	for t in 0 1 2; do
		echo "{\"ev\":\"alloc\",\"t\":$t,\"bytes\":4194304,\"name\":\"x$t\"}"
		echo "{\"ev\":\"op\",\"name\":\"load\",\"r\":[],\"w\":[$t]}"
	done
	for n in 0 1 2; do
		echo "{\"ev\":\"iter\",\"n\":$n}"
		echo "{\"ev\":\"op\",\"name\":\"long\",\"r\":[$1],\"w\":[$2],\"ns\":4000000,\"stream\":$3}"
		echo "{\"ev\":\"op\",\"name\":\"short\",\"r\":[$4],\"w\":[$5],\"ns\":1000000,\"stream\":$6}"
	done
}

# Tenths of milliseconds of an iteration, with everything resident.
time_of() { # NAME
	"$UMADVISE" simulate "$tmp/$1.umtrace" --profile a100 --iterations 8 --per-iteration --strategy infinite \
		-f csv 2>/dev/null | awk -F, '$6 == 6 { print int($7 / 100000 + 0.5) }'
}

program 0 "" 0 1 "" 0 >"$tmp/one.umtrace"
is "$(time_of one)" 50 "ops of one stream run one after the other"
program 0 "" 1 1 "" 0 >"$tmp/apart.umtrace"
is "$(time_of apart)" 40 "an iteration has ended when the ops of all its streams have"
program 0 "" 1 0 "" 0 >"$tmp/both_read.umtrace"
is "$(time_of both_read)" 40 "ops that read the same tensor do not wait for each other"
program "" 0 1 0 1 0 >"$tmp/read.umtrace"
is "$(time_of read)" 50 "an op waits for that of another stream which writes what it reads"
program 0 1 1 2 0 0 >"$tmp/write.umtrace"
is "$(time_of write)" 50 "an op waits for that of another stream which reads what it writes"
program 1 0 1 2 0 0 >"$tmp/write_both.umtrace"
is "$(time_of write_both)" 50 "an op waits for that of another stream which writes the same tensor"

# The short op reads what the long one of the iteration before has written to a new tensor, and the long one what the
# short one has.
handed_on() {
	program "" "" 1 "" "" 0 | sed -n 1,7p
	echo '{"ev":"alloc","t":10,"bytes":4194304,"name":"next"}'
	echo '{"ev":"op","name":"load","r":[],"w":[10]}'
	for n in 0 1 2; do
		echo "{\"ev\":\"iter\",\"n\":$n}"
		echo "{\"ev\":\"alloc\",\"t\":$((20 + n)),\"bytes\":4194304,\"name\":\"y\"}"
		echo "{\"ev\":\"op\",\"name\":\"short\",\"r\":[$((10 + n))],\"w\":[$((20 + n))],\"ns\":1000000}"
		echo "{\"ev\":\"free\",\"t\":$((10 + n))}"
		echo "{\"ev\":\"alloc\",\"t\":$((11 + n)),\"bytes\":4194304,\"name\":\"next\"}"
		printf '{"ev":"op","name":"long","r":[%d],"w":[%d],"ns":4000000,"stream":1}\n' $((20 + n)) $((11 + n))
		echo "{\"ev\":\"free\",\"t\":$((20 + n))}"
	done
}
handed_on >"$tmp/handed_on.umtrace"
is "$(time_of handed_on)" 50 "it is so in iterations that are played again, where other tensors take part"
# As above, but the short op reads nothing.
handed_on | sed '/"short"/s/"r":.[0-9]*./"r":[]/' >"$tmp/born.umtrace"
is "$(time_of born)" 40 "an op does not wait for those that used a tensor of an earlier iteration in this one's place"

# The CPU reads a result after each op.
program "" 0 1 "" 1 0 | sed '/"long"/a {"ev":"host","name":"read","r":[0],"w":[]}
	/"short"/a {"ev":"host","name":"read","r":[1],"w":[]}' >"$tmp/host.umtrace"
is "$(time_of host)" 50 "the CPU waits for the ops of all streams before it reads"
tap_done
