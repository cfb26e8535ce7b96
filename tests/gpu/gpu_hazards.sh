#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# gpu_hazards.sh - hazards.cu over the stand-in driver, with its hazards on and off

: "${top_srcdir:=.}" "${top_builddir:=.}" "${NVCC=}" "${SANITIZE=}" "${MAKE:=make}"
. "$top_srcdir/tests/tap.sh"

standin=$top_builddir/standin
[ -n "$NVCC" ] || skip_all "no nvcc"
[ -e "$standin/libcuda.so.1" ] || skip_all "no stand-in driver"
[ -z "$SANITIZE" ] || skip_all "nvcc's programs are not built with sanitizers"

bin=$tmp/bin
build() {
	"$MAKE" -s -f "$top_srcdir/tests/gpu/programs.mk" SRC="$top_srcdir" OUT="$bin" NVCC="$NVCC" \
		LIBUM="$top_builddir/.libs/libumtools.a $top_builddir/.libs/libum.a" STANDIN="$standin" \
		NVCCFLAGS=-O1 "$bin/hazards-shared"
}
ok "hazards.cu is built" build || tap_done
export LD_LIBRARY_PATH=$standin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export UMADVISE_DRYRUN_CPU=off # no case needs the CPU's accesses

out=''
hazards() { # HAZARDS ARGUMENTS...
	local list=$1
	shift
	out=$(UMADVISE_DRYRUN_HAZARDS=$list "$bin/hazards-shared" "$@" 2>&1)
}
passes() { # HAZARDS CASES
	hazards "$1" --only "$2" --patience 1000 --limit 30
	is $? 0 "$2 with hazards '$1': $(printf '%s\n' "$out" | grep -c '^ok') checks" ||
		diag "$(printf '%s\n' "$out" | grep -E '^not ok|^# ' | head -n 30)"
}
says() { # PATTERN LABEL
	ok "$2" grep -qE "$1" <<<"$out" || diag "$out"
}

# Without hazards everything goes on beside a gate; with them what was found is the stand-in's settings.
passes '' T1,T2,T3,T7
says '^# T1 connections 1: .* 16 of 16 writes, 16 of 16 events, 4 of 4 discards' \
	"streams are independent without hazards"
says '^# T2 cudaFree waits beside a gate; meanwhile: .*event record returns' "no call holds a lock without hazards"
hazards on,depth=100 --only T1,T2,T3,T4,T7 --patience 200 --limit 30
is $? 0 "every call returns after the gate was opened" || diag "$out"
says '^# T1 connections 1: beside a gate 0 of 16 writes, 0 of 16 events, 0 of 4' "one connection: nothing goes on"
says '^# T1 connections 8: beside a gate 14 of 16 writes' "eight connections: every eighth stream waits"
says '^# T1 connections 32: beside a gate 16 of 16 writes' "32 connections: all streams go on"
says '^# T2 nothing returns .* launch returns$' "calls return where no other one waits"
for call in cudaFree cudaFreeHost "first launch of a kernel" "module load"; do
	says "^# T2 $call waits .*: prefetch waits, .*discard waits, event record waits, value write waits" \
		"$call holds the driver's lock"
done
says '^# T2 cudaDeviceSynchronize waits .* launch returns$' "cudaDeviceSynchronize does not hold it"
says '^# T3 launches behind a gate: 99 of 5000 return' "the launch queue has 100 entries"
says '^# T3 with a full launch queue: prefetch waits' "a launch into a full queue holds the driver's lock"
says '^# T4 prefetch to the host on a busy stream: returns, not done then' "a prefetch to the host is deferred"

# What is printed when something hangs.
hazards on,queues=1 --only hang --limit 1
is $? 124 "a case that hangs ends the program with status 124"
says '^Bail out! hang hangs$' "the case is named"
says '^#   thread [0-9]+ did not return from cudaStreamSynchronize\(gated\)' "the call is named"
says 'cuStreamSynchronize' "its stack is printed"

# The library neither hangs nor waits for a time limit.
passes '' T5,T6,T8,T9,T10
for list in queues=1,depth=8 queues=1,depth=1000 queues=8,depth=8 queues=32,depth=1000; do
	passes "on,timeout=4000,$list" T5,T6,T8
	ok "no deadlock with $list" eval '! grep "umadvise: hazard" <<<"$out"'
done
tap_done
