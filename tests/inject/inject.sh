#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# inject.sh - umadvise run of programs of the driver API under dryrun: how hooks are found, the same results as without
# it, its options, and what it says

: "${top_srcdir:=.}" "${top_builddir:=.}" "${CC:=cc}" "${SANITIZE=}"
. "$top_srcdir/tests/tap.sh"

driver=$(cd "$top_builddir/standin" 2>/dev/null && pwd)
library=$(cd "$top_builddir/lib/inject/.libs" 2>/dev/null && pwd)/libumadvise-preload.so
[ -e "$driver/libcuda.so.1" ] || skip_all "the stand-in driver was not built"
[ -e "$library" ] || skip_all "the library to preload was not built"
# With a sanitizer the preloaded library comes before the sanitizer's.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
build() { # NAME FLAG...
	# shellcheck disable=SC2086 # CC and flags are lists
	$CC $SANITIZE -std=c11 -D_GNU_SOURCE -I"$top_srcdir/include" -o "$tmp/$1" \
		"$top_srcdir/tests/inject/inject_app.c" -pthread "${@:2}"
}
build app || skip_all "no program can be built"
dry() { # BUDGET COMMAND...
	"$UMADVISE" dryrun --profile a100 --format json -o "$tmp/report" --budget "$1" -- "${@:2}"
}
run() { # BUDGET OPTION... PROGRAM ARGUMENT...
	dry "$1" "$UMADVISE" run "${@:2}" 2>"$tmp/err"
}
field() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" "$tmp/report" | head -n 1; }

# --- how hooks are found ----------------------------------------------------------------------------------------------

hooked="handle library
default library
next library
unhooked driver
asked library
asked, per thread library
asked, unhooked driver
missing driver
resolver library
by that library
other dlsym library
forms differ 1"
is "$(run 64MiB "$tmp/app" resolve)" "$hooked" "every way to find a function of the driver gives its hook"
if [ -z "$SANITIZE" ]; then
	ok "a program is built that has a dlsym of its own" build own -DOWN_DLSYM -rdynamic
	is "$(run 64MiB "$tmp/own" resolve)" "$hooked" "a program's own dlsym finds the hooks"
else
	skip 2 "a sanitizer calls the program's dlsym before it has begun"
fi
ok "a program is built that is linked with the driver" build linked -DLINKED -Wl,--no-as-needed "$driver/libcuda.so.1"
is "$(run 64MiB "$tmp/linked" resolve)" "$hooked
linked library" "a linked program calls the hooks"
is "$(dry 64MiB "$tmp/linked" resolve 2>/dev/null | grep -c library)" 0 \
	"without the library all functions are the driver's"
is "$(UMADVISE_DRYRUN_CUDA=12.4 LD_LIBRARY_PATH=$driver LD_PRELOAD=$library "$tmp/app" resolve)" "$hooked" \
	"the hooks are found under a driver of version 12.4"

# --- the same results, faster -----------------------------------------------------------------------------------------

want=$(dry 2GiB "$tmp/app" compute)
for way in plain extra next dlclose; do
	is "$(run 64MiB "$tmp/app" compute $way)" "$want" "$way: the result is the same with 2/3 of the memory"
	like "$(cat "$tmp/err")" "run: app: seen 100 % of 96.0 MiB and 100 % of 240 launches; [1-9][0-9]* hints in" \
		"$way: all memory and launches are seen"
	is "$(grep -c 'is not known' "$tmp/err")" 0 "$way: no form of a function is missed"
	[ $way != plain ] || plain=$(field device_ns)
	is "$(field device_ns)" "$plain" "$way: the same tensors are found, so it takes the same time"
done
fast=$(field device_ns)
UMADVISE_DISABLE=1 run 64MiB "$tmp/app" compute >/dev/null
slow=$(field device_ns)
ok "hints make it more than three times as fast ($fast of $slow ns)" test $((fast * 3)) -lt "$slow"
for program in own linked; do
	if [ ! -e "$tmp/$program" ]; then
		skip 2 "$program was not built"
		continue
	fi
	is "$(run 64MiB "$tmp/$program" compute)" "$want" "$program: the result is the same"
	like "$(cat "$tmp/err")" "100 % of 240 launches; [1-9][0-9]* hints" "$program: launches are seen"
done
# A device's driver frees no managed memory in stream order.
for way in pool default-pool free-async; do
	is "$(UMADVISE_DRYRUN_FAIL=cuMemFreeAsync:0:801 run 64MiB "$tmp/app" compute $way)" "$want" \
		"$way: the result is the same"
	like "$(cat "$tmp/err")" "seen 100 % of 96.0 MiB and 100 % of 240 launches; [1-9][0-9]* hints in" \
		"$way: all memory and launches are seen"
done
is "$(run 64MiB "$tmp/app" beyond)" "1 1
1" "a program may go beyond an allocation within 2 MiB, and is told the size that it asked for"
for way in vfork fork threads capture; do
	is "$(run 64MiB "$tmp/app" compute $way)" "$(dry 2GiB "$tmp/app" compute $way 2>/dev/null)" \
		"$way: the results are the same"
done
is "$(run 2GiB --record "$tmp/change.umtrace" "$tmp/app" compute change)" "$(dry 2GiB "$tmp/app" compute change)" \
	"change: a graph whose nodes get other parameters computes the same"
is "$(grep '"name":"graph"' "$tmp/change.umtrace" | grep -o '"r":\[[0-9,]*\]' | tr '\n' ' ')" "$(
	for s in 0 1 2 3 4 5 6 7; do printf '"r":[%d,%d,%d] ' $((s % 6)) $(((s + 1) % 6)) $(((s + 2) % 6)); done
)" "change: a launch uses the tensors of the latest parameters only"
run 64MiB "$tmp/app" compute brief >/dev/null
like "$(cat "$tmp/err")" "prefetched; the plan was ready too late to be followed$" \
	"a program that ends before its plan is followed is told so"
steady() { # COMMAND...: device time of 200 iterations
	"$@" "$tmp/app" compute long >/dev/null
	local long
	long=$(field device_ns)
	"$@" "$tmp/app" compute >/dev/null
	echo $((long - $(field device_ns)))
}
alone=$(steady dry 2GiB)
with=$(steady run 2GiB)
ok "where all fits iterations take less than 1 % longer ($with of $alone ns)" test $((with * 100)) -lt $((alone * 101))
like "$(cat "$tmp/err")" "all of it fits in the budget of 1945.6 MiB" "the line says that all of it fits"

# --- several processes on a device ------------------------------------------------------------------------------------

other=$top_builddir/tests/runtime/test_sharing # another program on the device
file=$tmp/devices/umadvise-simulated-gpu0
mkfifo "$tmp/pipe"
mkdir -m 700 "$tmp/devices"
shared() { XDG_RUNTIME_DIR=$tmp/devices UMADVISE_SHARE_DEVICE=gpu0 UMADVISE_LOG=info "$@"; }
used() { # Waits until a program uses the device.
	local end=$((SECONDS + 30))
	until [ -e "$file" ] || [ "$SECONDS" -ge "$end" ]; do sleep 0.01; done
}
if [ -x "$other" ]; then
	long=$(dry 2GiB "$tmp/app" compute long)
	shared "$other" hold <"$tmp/pipe" &
	exec 7>"$tmp/pipe"
	used
	is "$(shared run 64MiB "$tmp/app" compute long)" "$long" \
		"with another program on the device the result is the same"
	like "$(cat "$tmp/err")" "1 other contexts use the device: 0 of 64 MiB are free" \
		"a program that joins begins with what is free"
	like "$(cat "$tmp/err")" "budget 32 MiB: 1 other contexts use the device" "then it gets its half"
	exec 7>&-
	wait
	is "$(ls -A "$tmp/devices")" "" "no file of the device is left"
	shared run 160MiB "$tmp/app" compute long >"$tmp/first" &
	first=$!
	used
	shared "$other" hold <"$tmp/pipe" &
	exec 7>"$tmp/pipe"
	wait $first
	exec 7>&-
	wait
	is "$(cat "$tmp/first")" "$long" \
		"a program whose memory all fits has the same result after another one has joined"
	like "$(cat "$tmp/err")" "budget 88 MiB: 1 other contexts use the device" "it leaves the other one its budget"
	like "$(cat "$tmp/err")" "[1-9][0-9]* hints in" "from then on it has hints"
	is "$(ls -A "$tmp/devices")" "" "no file of the device is left after it"
else
	skip 8 "no program to share the device with"
fi

# --- options ----------------------------------------------------------------------------------------------------------

is "$(run 64MiB --managed none "$tmp/app" compute)" "alloc: 2" "--managed none: the device's memory is the limit"
is "$(run 64MiB --managed 16MiB "$tmp/app" compute)" "alloc: 2" "--managed BYTES: smaller allocations stay as they are"
is "$(run 64MiB --managed 8MiB "$tmp/app" compute)" "$want" "--managed BYTES: larger allocations become managed"
is "$(run 64MiB --host 16MiB "$tmp/app" compute)" "alloc: 2" "--host limits the memory beyond the device's"
like "$(cat "$tmp/err")" "1 allocations refused" "the line says that an allocation was refused"
is "$(run 2GiB --budget 64MiB "$tmp/app" compute)" "$want" "--budget: the result is the same"
run 64MiB --quiet "$tmp/app" compute >/dev/null
is "$(grep -c 'umadvise run' "$tmp/err")" 0 "--quiet: there is no line at the end"
run 64MiB --record "$tmp/t.umtrace.gz" --run-log "$tmp/r.umlog" --plan "$tmp/p.umplan" "$tmp/app" compute >/dev/null
like "$("$UMADVISE" trace check "$tmp/t.umtrace.gz")" "ok" "--record writes a workload"
like "$("$UMADVISE" trace stat "$tmp/t.umtrace.gz")" \
	" 288 +12 +96 " "the workload has all launches, copies, fills, allocations and frees"
like "$("$UMADVISE" report "$tmp/r.umlog" 2>&1)" "iteration" "--run-log writes a run log that umadvise report reads"
like "$("$UMADVISE" plan --show "$tmp/p.umplan")" \
	"ops, 12 slots" "--plan writes the plan of the iteration that was found"
is "$(run 64MiB --plan "$tmp/p.umplan" "$tmp/app" compute)" "$want" "--plan reads a plan that is there"

jax() { # VARIABLE=VALUE...: what JAX reads, as run sets it
	env -u XLA_PYTHON_CLIENT_ALLOCATOR -u XLA_PYTHON_CLIENT_PREALLOCATE -u TF_GPU_ALLOCATOR "$@" \
		sh -c 'echo "$XLA_PYTHON_CLIENT_ALLOCATOR $XLA_PYTHON_CLIENT_PREALLOCATE"'
}
is "$(jax "$UMADVISE" run)" "cuda_async false" "each buffer of JAX is an allocation"
is "$(jax "$UMADVISE" run --managed none)" " " "with --managed none JAX's allocator is not set"
is "$(jax XLA_PYTHON_CLIENT_ALLOCATOR=platform "$UMADVISE" run)" "platform " "an allocator of JAX that is chosen stays"
is "$(jax XLA_PYTHON_CLIENT_PREALLOCATE=true "$UMADVISE" run)" " true" "so it does where preallocation is chosen"

# --- programs ---------------------------------------------------------------------------------------------------------

fails 3 "the exit status is the program's" run 64MiB --managed none "$tmp/app" compute
printf '#!/bin/sh\nkill -TERM $$\n' >"$tmp/killed"
chmod +x "$tmp/killed"
ok "a signal ends the program as without the library" \
	bash -c "'$UMADVISE' run '$tmp/killed'; [ \$? = 143 ]"
printf '#!/bin/sh\n"%s" compute && exec "%s" compute\n' "$tmp/app" "$tmp/app" >"$tmp/script"
chmod +x "$tmp/script"
is "$(run 64MiB "$tmp/script")" "$want
$want" "programs that a script starts give the same results"
is "$(grep -c '100 % of 240 launches' "$tmp/err")" 2 "both are seen"
is "$("$UMADVISE" run true 2>&1)" "" "a program without CUDA gets no line"
fails 127 "a program that is not there exits with status 127" "$UMADVISE" run "$tmp/nobody"
fails 2 "a command without a program is a usage error" "$UMADVISE" run
fails 2 "a size that is none is a usage error" "$UMADVISE" run --managed much true
cp "$tmp/app" "$tmp/privileged" && chmod u+s "$tmp/privileged"
fails 126 "a set-uid program is refused" "$UMADVISE" run "$tmp/privileged" compute
like "$(cat "$tmp/.tap")" "privileged is set-uid or set-gid: the loader ignores LD_PRELOAD" "the message says why"
if echo 'int main(void) { return 0; }' >"$tmp/s.c" && $CC -static -o "$tmp/static" "$tmp/s.c" 2>/dev/null; then
	like "$("$UMADVISE" run "$tmp/static" 2>&1)" "linked statically" "a static program runs, and a line says so"
else
	skip 1 "no static C library"
fi

# --- what goes wrong --------------------------------------------------------------------------------------------------

is "$(UMADVISE_DRYRUN_FAIL=cuMemAllocManaged:0:2 run 2GiB "$tmp/app" compute)" "$want" \
	"without managed memory allocations are device memory"
is "$(UMADVISE_DRYRUN_MISSING=cuFuncGetParamInfo,cuKernelGetParamInfo run 64MiB "$tmp/app" compute)" "$want" \
	"a driver that does not tell parameters gives the same result"
like "$(cat "$tmp/err")" "and 0 % of 240 launches;.*the driver does not tell the parameters" \
	"the line says why launches are not seen"
so=$(cd "$top_builddir/.libs" 2>/dev/null && pwd)/libumadvise.so.0
if [ -e "$so" ]; then
	is "$(LD_PRELOAD=$so run 64MiB "$tmp/app" compute)" "alloc: 2" \
		"a program that has loaded libumadvise keeps its device memory"
	like "$(cat "$tmp/err")" "no hints: the program uses libumadvise by itself" "the line says why"
else
	skip 2 "no shared library was built"
fi
is "$(UMADVISE_DRYRUN_FAIL=cuLaunchKernel:7:719 run 64MiB "$tmp/app" compute)" "launch: 719" \
	"an error of a launch reaches the program"
tap_done
