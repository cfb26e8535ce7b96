#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# device_standin.sh - the table filled from CUDA, over the stand-in driver
#
# Bare, with a shared and with a static runtime of the toolkit in the program, with the runtime that LIBCUDART12 names,
# as of 12.4, with every function made to fail and every optional one missing.

: "${top_srcdir:=.}" "${top_builddir:=.}" "${CC:=cc}" "${NVCC=}" "${SANITIZE=}" "${CUDA_HOME=}" "${LIBCUDART12=}"
. "$top_srcdir/tests/tap.sh"

app=$top_builddir/tests/device/device_app
standin=$top_builddir/standin
if [ ! -e "$standin/libcuda.so.1" ] || [ ! -x "$app" ]; then
	skip_all "the stand-in driver was not built"
fi
[ -n "$CUDA_HOME" ] || [ -z "$NVCC" ] || CUDA_HOME=$(cd "$(dirname "$(readlink -f "$NVCC")")/.." && pwd)

over() { # VARIABLE=VALUE... COMMAND: over the stand-in; what both streams say goes to $out
	out=$(env LD_LIBRARY_PATH="$standin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$@" 2>&1)
	rc=$?
}

# --- bare -----------------------------------------------------------------------------------------------------------

over "$app" info
is "$out" "via driver driver 13000 runtime 0 own 0 standin 1
concurrent 1 discard 1 batch 1 virtual 1 workers 1
name v100 (simulated)
why " "bare: the driver, with everything, nothing said"
over "$app" table
is "$rc" 0 "every entry is called"
is "$(grep -v ' 0$' <<<"$out")" "pending no
last error as before" "the calls leave no error behind"
entries=$(grep -c ' 0$' <<<"$out")
over UMADVISE_DRYRUN_THREADS=real "$app" info
like "$out" "virtual 0 workers 0" "threads of the library's own where that is asked for"
over UMADVISE_DRYRUN_PROFILE=a100 "$app" link
is "$out" "timed 1 h2d 23" "the link of a device without a profile is timed: 23 of 24 GB/s"
over UMADVISE_DRYRUN_PROFILE=a100 UMADVISE_DRYRUN_THREADS=real "$app" link
is "$out" "timed 1 h2d 23" "it is timed by polling where there is a clock"
over UM_TEST_VIA=runtime "$app" info
like "$out" "not opened: this process has no shared CUDA runtime" "a message reports the missing runtime"

# --- the same work in process and over the driver -------------------------------------------------------------------

"$app" same sim >"$tmp/sim" 2>&1
over UMADVISE_DRYRUN_MEMORY=$((40 << 20)) UMADVISE_DRYRUN_LOG="$tmp/log" "$app" same device
is "$out" "$(cat "$tmp/sim")" "the same calls give the same clock and sums as in process"
like "$out" "^now [1-9].* faults [1-9].* out [1-9].* evictions [1-9]" "the calls copied, faulted and evicted"
UM_TEST_LOG=$tmp/simlog "$app" same sim >"$tmp/sim"
ok "the event logs are the same to the byte" cmp "$tmp/simlog" "$tmp/log"
ok "the log of the run has lines" test -s "$tmp/log"

# --- a child, and the end of the process ----------------------------------------------------------------------------

over "$app" fork
is "$rc $(grep -v ' 0$' <<<"$out")" "0 child: all quiet" "a forked child calls nothing, the parent goes on"
over "$app" exit
is "$rc $out" "0 late: all quiet" "the process ends while helpers call"

# --- capture --------------------------------------------------------------------------------------------------------

over "$app" capture
if grep -q '^begin 801' <<<"$out"; then
	skip 4 "this stand-in does not capture"
else
	is "$(sed -n 1,3p <<<"$out")" "begin 0
capturing 0
status 1" "a stream captures"
	is "$(sed -n 4,7p <<<"$out")" "record 900
wait 900
sync 900
prefetch 900" "nothing is called on it"
	is "$(sed '1,7d' <<<"$out" | grep -v ' 0$')" "graph 1" "all else goes on, and the capture ends well"
	is "$(grep -c '^end 0$' <<<"$out")" 1 "it was not broken"
fi

# --- failures -------------------------------------------------------------------------------------------------------

# entry of the table, function of the driver
calls="stream_create cuStreamCreate
malloc_managed cuMemAllocManaged
malloc cuMemAlloc_v2
host_alloc cuMemHostAlloc
memory_info cuMemGetInfo_v2
event_create cuEventCreate
event_record cuEventRecord
stream_wait cuStreamWaitEvent
prefetch cuMemPrefetchAsync_v2
advise cuMemAdvise_v2
prefetch_batch cuMemPrefetchBatchAsync
discard_batch cuMemDiscardBatchAsync
renew_batch cuMemDiscardAndPrefetchBatchAsync
capturing cuStreamIsCapturing
module_load cuModuleLoadData
function cuModuleGetFunction
launch cuLaunchKernel
copy cuMemcpyAsync
event_sync cuEventSynchronize
event_query cuEventQuery
event_elapsed cuEventElapsedTime
stream_sync cuStreamSynchronize
device_sync cuCtxSynchronize
event_destroy cuEventDestroy_v2
free cuMemFree_v2
host_free cuMemFreeHost
stream_destroy cuStreamDestroy_v2"

# Where a function fails its entry says so, and leaves nothing behind.
failing() { # VIA ENTRY FUNCTION
	over UMADVISE_DRYRUN_FAIL="$3:0:801" "$app" table
	is "$rc $(grep -c "^$2 801$" <<<"$out") $(grep '^last\|^lost' <<<"$out")" \
		"0 $(grep -c "^$2 " <<<"$out") last error as before
lost 0" "$1: $3 fails: $2 says so, and no more"
}

# Where a sticky error comes, nothing is called after it.
sticky() { # VIA ENTRY FUNCTION
	local seen after
	case $3 in
	# Also asked when the device is opened, or before each call on a stream.
	cuMemGetInfo_v2 | cuStreamIsCapturing) return ;;
	esac
	over UMADVISE_DRYRUN_FAIL="$3:1:719" "$app" table
	seen=$(grep -n " 719$" <<<"$out" | grep -v ':lost' | head -n 1)
	after=$(sed "1,${seen%%:*}d" <<<"$out" | grep -v -- ' -1$' | grep -v '^last error')
	is "$rc ${seen#*:} $after" "0 $2 719 lost 719" "$1: $3 meets a sticky error: nothing is called after it"
}

while read -r entry fn; do
	failing driver "$entry" "$fn"
	sticky driver "$entry" "$fn"
done <<<"$calls"

for fn in cuInit cuDevicePrimaryCtxRetain; do
	over UMADVISE_DRYRUN_FAIL="$fn:1:999" "$app" info
	is "$rc $out" "3 not opened: $fn failed: CUDA error 999" "$fn fails: said"
done
over UMADVISE_DRYRUN_FAIL=cuInit:1:100 "$app" info
like "$out" "not opened: no CUDA device is visible" "a message reports the missing device"

# --- functions that are not there -----------------------------------------------------------------------------------

for fn in cuMemPrefetchBatchAsync cuMemDiscardBatchAsync cuMemDiscardAndPrefetchBatchAsync \
	cuThreadExchangeStreamCaptureMode; do
	over UMADVISE_DRYRUN_MISSING="$fn" "$app" table
	is "$rc $(grep -v ' 0$' <<<"$out")" "0 pending no
last error as before" "without $fn all else works"
	over UMADVISE_DRYRUN_MISSING="$fn" "$app" info
	case $fn in
	cuMemDiscardBatch*) want="concurrent 1 discard 0 batch 0 virtual 1 workers 1" ;;
	cuMemPrefetchBatch*) want="concurrent 1 discard 1 batch 0 virtual 1 workers 1" ;;
	*) want="concurrent 1 discard 1 batch 1 virtual 1 workers 1" ;;
	esac
	is "$(sed -n 2p <<<"$out")" "$want" "$fn: the capabilities without it are known"
done
for fn in cuMemAllocManaged cuEventRecord cuStreamIsCapturing cuDevicePrimaryCtxRetain; do
	over UMADVISE_DRYRUN_MISSING="$fn" "$app" info
	is "$rc $out" "3 not opened: the CUDA driver has no $fn" "without $fn: said"
done

# --- 12.4 -----------------------------------------------------------------------------------------------------------

over UMADVISE_DRYRUN_CUDA=12.4 "$app" info
like "$out" "via driver driver 12040 .*" "a driver of 12.4 is used"
like "$out" "why no discards: they need a driver of CUDA 13.0, this one is 12.4" "12.4: what it lacks"
over UMADVISE_DRYRUN_CUDA=12.4 "$app" table
is "$rc $(grep -c ' 0$' <<<"$out")" "0 $((entries - 3))" "12.4: all but the three batch calls"

# --- with a runtime in the program ----------------------------------------------------------------------------------

# NVIDIA's start on NVIDIA's driver only, so what is seen of them here is that they are found and known, and that a
# runtime which does not start is done without. Those of the stand-in start.
with_runtime() { # LIBRARY VERSION NAME
	over UM_TEST_LOAD="$1" "$app" info
	like "$out" "^via runtime driver 13000 runtime $2 own ($2|0) " "$3: found, and its version"
	over UM_TEST_LOAD="$1" UM_TEST_VIA=driver "$app" info
	like "$out" "^via driver driver 13000 runtime 0 " "$3: left alone where the driver was asked for"
	over UM_TEST_LOAD="$1" "$app" table
	is "$rc $(grep -c ' 0$' <<<"$out") $(grep '^last' <<<"$out")" "0 $entries last error as before" \
		"$3: every entry works, the last error stays"
	over UM_TEST_PENDING=1 UM_TEST_LOAD="$1" "$app" table
	is "$rc $(grep -c ' 0$' <<<"$out") $(grep '^last\|^pending' <<<"$out")" "0 $entries pending yes
last error as before" "$3: an error of the program's stays, too"
}
too_new() { # LIBRARY NAME
	over UMADVISE_DRYRUN_CUDA=12.4 UM_TEST_LOAD="$1" "$app" info
	is "$rc $out" "3 not opened: the driver (CUDA 12.4) is older than this program's CUDA runtime (13.0)" \
		"$2 on a driver of 12.4: said"
}
started() { # LIBRARY VERSION NAME
	with_runtime "$@"
	over UM_TEST_LOAD="$1" UMADVISE_DRYRUN_MEMORY=$((40 << 20)) UMADVISE_DRYRUN_LOG="$tmp/log" \
		"$app" same device
	is "$out" "$(cat "$tmp/sim")" "$3: the same calls give the same clock and sums as in process"
	ok "both runs have the same log" cmp "$tmp/simlog" "$tmp/log"
	over UM_TEST_LOAD="$1" "$app" fork
	is "$rc $(grep -v ' 0$' <<<"$out")" "0 child: all quiet" "$3: a forked child calls nothing"
	over UM_TEST_LOAD="$1" "$app" exit
	is "$rc $out" "0 late: all quiet" "$3: the process ends while helpers call"
	over UM_TEST_LOAD="$1" "$app" capture
	is "$(sed -n 4,7p <<<"$out")" "record 900
wait 900
sync 900
prefetch 900" "$3: nothing is called on a stream that captures"
	is "$(sed '1,7d' <<<"$out" | grep -v ' 0$')" "graph 1" "$3: all else goes on, and the capture ends well"
	export UM_TEST_LOAD=$1
	while read -r entry fn; do
		failing "$3" "$entry" "$fn"
		sticky "$3" "$entry" "$fn"
	done <<<"$calls"
	unset UM_TEST_LOAD
}

for v in 13 12; do
	lib=$standin/libcudart.so.$v
	if [ -e "$lib" ]; then
		started "$lib" "$([ $v = 13 ] && echo 13000 || echo 12040)" "the stand-in's runtime $v"
	else
		skip 1 "no runtime $v of the stand-in"
	fi
done
[ ! -e "$standin/libcudart.so.13" ] || too_new "$standin/libcudart.so.13" "the stand-in's runtime 13"

# What NVIDIA's libraries keep to the end is not ours.
export ASAN_OPTIONS=detect_leaks=0
shared=$CUDA_HOME/lib64/libcudart.so.13
if [ -n "$CUDA_HOME" ] && [ -e "$shared" ]; then
	with_runtime "$shared" 13000 "NVIDIA's runtime 13.0"
	too_new "$shared" "NVIDIA's runtime 13.0"
else
	skip 5 "no shared CUDA runtime 13"
fi
if [ -n "$LIBCUDART12" ] && [ -e "$LIBCUDART12" ]; then
	with_runtime "$LIBCUDART12" 12040 "NVIDIA's runtime 12"
else
	skip 4 "LIBCUDART12 names no CUDA runtime"
fi

static=$CUDA_HOME/lib64/libcudart_static.a
# shellcheck disable=SC2086 # CC and flags are lists
build_static() {
	$CC -std=gnu11 -D_GNU_SOURCE -DSTATIC_RUNTIME -O1 $SANITIZE -I"$top_srcdir/lib" -o "$tmp/static" \
		"$top_srcdir/tests/device/device_app.c" "$top_builddir/.libs/libum.a" "$static" \
		-lz -ljansson -lm -ldl -lrt -pthread
}
if [ -n "$CUDA_HOME" ] && [ -e "$static" ] && [ -e "$top_builddir/.libs/libum.a" ]; then
	ok "a program with the static runtime is built" build_static
	over "$tmp/static" info
	like "$out" "^via driver driver 13000 runtime 0 " "the static runtime: the driver is used"
	over "$tmp/static" table
	is "$rc $(grep -c ' 0$' <<<"$out") $(grep '^last' <<<"$out")" "0 $entries last error as before" \
		"the static runtime: every entry works, the last error stays"
else
	skip 3 "no static CUDA runtime"
fi
tap_done
