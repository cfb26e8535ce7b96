#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The stand-in driver and its runtimes under programs that know nothing of them: names and versions, faults, images of
# nvcc, kernels with host functions. What needs nvcc is skipped without it.
: "${top_srcdir:=.}" "${top_builddir:=.}" "${CC:=cc}" "${SANITIZE=}" "${NVCC=}" "${NM:=nm}"
. "$top_srcdir/tests/tap.sh"

here=$(cd "$top_builddir/standin" 2>/dev/null && pwd)
[ -e "$here/libcuda.so.1" ] || skip_all "the stand-in driver was not built"
# shellcheck disable=SC2086 # CC and flags are lists
$CC $SANITIZE -std=c11 -D_GNU_SOURCE -I"$top_srcdir/include" -o "$tmp/app" \
	"$top_srcdir/tests/standin/standin_app.c" -pthread -ldl ||
	skip_all "no program can be built"
under() { LD_LIBRARY_PATH=$here "$@"; }
app() { under "$tmp/app" "$@" 2>"$tmp/err"; }

# --- names -----------------------------------------------------------------------------------------------------------

is "$(app ask cuMemPrefetchAsync@8000 cuMemPrefetchAsync@7000 cuMemDiscardBatchAsync@13000 cuFuncGetParamInfo@12020 \
	cuFuncGetParamInfo@12040 cuMemGetDefaultMemPool@13000 cuTexObjectCreate@5000 cuNew@13010 other@12000)" \
	"cuMemPrefetchAsync@8000 0 there 0
cuMemPrefetchAsync@7000 0 NULL 2
cuMemDiscardBatchAsync@13000 0 there 0
cuFuncGetParamInfo@12020 0 NULL 2
cuFuncGetParamInfo@12040 0 there 0
cuMemGetDefaultMemPool@13000 0 there 0
cuTexObjectCreate@5000 0 there 0
cuNew@13010 0 NULL 1
other@12000 0 NULL 1" "names of 13.0"
is "$(UMADVISE_DRYRUN_CUDA=12.4 app ask cuMemPrefetchAsync@13000 cuMemDiscardBatchAsync@13000 \
	cuMemPrefetchBatchAsync@13000 cuMemDiscardAndPrefetchBatchAsync@13000 cuMemGetDefaultMemPool@13000 \
	cuLogsCurrent@12000 cuMemcpyBatchAsync@12040 cuFuncGetParamInfo@12020 cuFuncGetParamInfo@12040 cuNew@12090)" \
	"cuMemPrefetchAsync@13000 0 there 0
cuMemDiscardBatchAsync@13000 0 NULL 1
cuMemPrefetchBatchAsync@13000 0 NULL 1
cuMemDiscardAndPrefetchBatchAsync@13000 0 NULL 1
cuMemGetDefaultMemPool@13000 0 NULL 1
cuLogsCurrent@12000 0 NULL 1
cuMemcpyBatchAsync@12040 0 NULL 1
cuFuncGetParamInfo@12020 0 NULL 2
cuFuncGetParamInfo@12040 0 there 0
cuNew@12090 0 NULL 1" "names of 12.4"
is "$(UMADVISE_DRYRUN_MISSING=cuMemDiscardBatchAsync,cuInit app ask cuMemDiscardBatchAsync@13000 \
	cuMemPrefetchBatchAsync@13000)" "cuMemDiscardBatchAsync@13000 0 NULL 1
cuMemPrefetchBatchAsync@13000 0 there 0" "a function that is missing"
is "$(app call cuTexObjectCreate 2)" "801
801" "what is not there answers 801"
is "$(grep -c cuTexObjectCreate "$tmp/err")" 1 "the missing function is named once"
is "$($NM -D --defined-only "$here/libcuda.so.1" | awk '{ print $3 }' | grep -v '^cu[A-Z]')" "" \
	"the driver shows a driver's names only"

# --- a program of the driver API -------------------------------------------------------------------------------------

run="load 0
no such kernel 500
kernel 0
parameter 8+4
alloc 0
stands for it 1
launch 0 sync 0
computed 325
in a buffer 0 computed 7
no parameters 1
too few 1
no blocks 1
unload 0
unload again 400
damaged 200"
is "$(app run)" "$run" "a kernel runs, as its parameters were"
is "$(UMADVISE_DRYRUN_CUDA=12.4 UMADVISE_DRYRUN_PROFILE=h100 app run)" "$run" "the program runs under version 12.4"
is "$(UMADVISE_DRYRUN_FAIL=cuMemAllocManaged:1:2,cuInit:2 app run | sed -n 5p)" "alloc 2" "a call that is made to fail"
is "$(UMADVISE_DRYRUN_FAIL=cuInit:0:100 app run)" "begin 100" "the injected error is returned at every call"
is "$(UMADVISE_DRYRUN_FAIL=cuLaunchKernel:3:700 app run | grep buffer)" "in a buffer 700 computed 325" \
	"the injected error is returned at the third call"
is "$(UMADVISE_DRYRUN_PROFILE=nobody app run)" "begin 100" "a profile that is not there: no device"
like "$(cat "$tmp/err")" nobody "the message names the unknown profile"

is "$(app wait)" "begin 0
called
called" "a host function runs while the program waits for it without a call"

# --- the names of the runtimes ---------------------------------------------------------------------------------------

compare() { # OURS REAL: what the real one has and ours has not
	$NM -D --defined-only "$1" | awk '{ sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort >"$tmp/ours"
	$NM -D --defined-only "$2" | awk '{ sub(/@.*/, "", $3); print $3 }' | grep cuda | LC_ALL=C sort >"$tmp/real"
	LC_ALL=C comm -13 "$tmp/ours" "$tmp/real"
}
real=$(dirname "${NVCC:-/none/bin/nvcc}")/../lib64/libcudart.so.13
if [ -e "$real" ]; then
	is "$(compare "$here/libcudart.so.13" "$real")" "" "the runtime has every name of the real one"
	is "$($NM -D --with-symbol-versions "$here/libcudart.so.13" | grep ' T ' | grep -cv '@@libcudart.so.13$')" 0 \
		"each name has its version"
else
	skip 2 "no CUDA runtime 13 here"
fi

# --- programs of nvcc ------------------------------------------------------------------------------------------------

if [ -z "$NVCC" ]; then
	skip 1 "no nvcc here"
	tap_done
	exit
fi
nvcc() { "$NVCC" -std=c++17 -I"$top_srcdir/include" -o "$1" "${@:2}" "$top_srcdir/tests/standin/standin_app.cu"; }

images() { # LABEL FLAGS...: an image of nvcc
	if ! nvcc "$tmp/image" "${@:2}" >"$tmp/log" 2>&1; then
		skip 1 "$1: $(head -n 1 "$tmp/log")"
		return
	fi
	is "$(app image "$tmp/image" _Z5mixed4PaircPKfs table)" \
		"load 0 kernel 0: 0+24 24+1 32+8 40+2 variable 0: 40 bytes, 1" "image: $1"
}
arch=$("$NVCC" --list-gpu-arch | sed -n 's/^compute_\([0-9]*\)$/\1/p' | head -n 1)
images "ELF" -cubin -arch="sm_$arch"
images "PTX" -ptx -arch="compute_$arch"
images "a fat binary" -fatbin -gencode "arch=compute_$arch,code=[sm_$arch,compute_$arch]"
images "a fat binary, not packed" -fatbin -arch="sm_$arch" -compress-mode=none
images "a fat binary, packed small" -fatbin -arch="sm_$arch" -compress-mode=size

if [ -n "$SANITIZE" ]; then
	skip 1 "a program of nvcc has no sanitizer, and one must come first"
	tap_done
	exit
fi
if ! nvcc "$tmp/shared" -arch="sm_$arch" -cudart shared >"$tmp/log" 2>&1; then
	skip 1 "nvcc links no program: $(head -n 1 "$tmp/log")"
	tap_done
	exit
fi
want="count: cudaSuccess
runtime 13000 driver 13000 devices 1
a100 (simulated) 8.0, 108, 1024 threads, 1, memory 67108864, reserved 0
managed: cudaSuccess
device: cudaSuccess
device, 0 bytes: cudaSuccess
none 1
managed, 0 bytes: cudaErrorInvalidValue
copy: cudaSuccess
stand for kernels 1 1
launch: cudaSuccess
wait: cudaSuccess
id: cudaSuccess
another stream has another one: 1
mixed 388.5 fill 2.5 2.5, time passed 1
table 1 2 3 then 42
constant 16 bytes, managed 8 at its address 1
symbol of nobody: cudaErrorInvalidSymbol
prefetch: cudaSuccess
advise: cudaSuccess
batch: cudaSuccess
discard: cudaSuccess
pool: cudaSuccess
keeps 1, is not the device's 1
from it: cudaSuccess
set: cudaSuccess
back: cudaSuccess
trim: cudaSuccess
no pool: cudaSuccess
update: cudaSuccess
result 0, fills with 2
update by more nodes: cudaErrorGraphExecUpdateFailure
result 2
kinds 3 2 0
blocks 8
too many threads: cudaErrorInvalidValue
last: cudaErrorInvalidValue
last again: cudaSuccess
absent: cudaErrorNotSupported
free: cudaSuccess
free twice: cudaErrorInvalidValue"
export UMADVISE_DRYRUN_PROFILE=a100 UMADVISE_DRYRUN_MEMORY=67108864
case $("$NVCC" --version) in
*"release 13."*)
	is "$(under "$tmp/shared" 2>"$tmp/err")" "$want" "a program with the shared runtime runs"
	is "$(cat "$tmp/err")" "umadvise: the stand-in does not support cudaMallocMipmappedArray" \
		"a missing function is reported"
	is "$(UMADVISE_DRYRUN_FAIL=cuLaunchKernel:1:719 under "$tmp/shared" 2>/dev/null | grep '^launch')" \
		"launch: cudaErrorLaunchFailure" "a launch that fails"
	is "$(UMADVISE_DRYRUN_MISSING=cuMemDiscardBatchAsync under "$tmp/shared" 2>/dev/null | grep '^discard')" \
		"discard: cudaErrorNotSupported" "a function that the driver has not"
	is "$(UMADVISE_DRYRUN_CUDA=12.4 under "$tmp/shared" 2>/dev/null)" "count: cudaErrorInsufficientDriver" \
		"a driver that is older than the runtime"
	unset UMADVISE_DRYRUN_PROFILE UMADVISE_DRYRUN_MEMORY
	is "$("$UMADVISE" dryrun --profile a100 --budget 67108864 -- "$tmp/shared" 2>"$tmp/err")" "$want" \
		"the program runs the same under dryrun"
	like "$(cat "$tmp/err")" '^ *(mixed\(Pair, char, float const\*, short\)|_Z5mixed4PaircPKfs) +1 +1 ' \
		"its kernel is in the table"
	;;
*)
	skip 7 "nvcc is not of version 13"
	;;
esac
if nvcc "$tmp/linked" -arch="sm_$arch" -L"$here/rt13/.libs" >"$tmp/log" 2>&1; then
	is "$(UMADVISE_DRYRUN_PROFILE=a100 UMADVISE_DRYRUN_MEMORY=67108864 under "$tmp/linked" 2>"$tmp/err")" "$want" \
		"a program with the stand-in's runtime linked in"
else
	skip 1 "nvcc links no runtime in"
fi
if nvcc "$tmp/static" -arch="sm_$arch" -cudart static >"$tmp/log" 2>&1; then
	is "$(under "$tmp/static" 2>"$tmp/err")" "count: cudaErrorNotSupported" "NVIDIA's own runtime does not start"
	like "$(cat "$tmp/err")" "link the shared one" "the message says to link the shared runtime"
	for i in cupy cupy_backends; do
		mkdir "$tmp/$i" && cp "$tmp/static" "$tmp/$i/module.so"
		under "$tmp/$i/module.so" >/dev/null 2>"$tmp/$i/err"
	done
	like "$(cat "$tmp/cupy/err")" "inside module.so, .*[.] CuPy does without its cub: CUPY_ACCELERATORS= " \
		"the message on CuPy's cub says how to do without"
	like "$(cat "$tmp/cupy_backends/err")" "inside module.so, .*: build this module of CuPy with the shared one" \
		"the message on CuPy's runtime says to build it"
else
	skip 4 "nvcc links no static runtime"
fi
tap_done
