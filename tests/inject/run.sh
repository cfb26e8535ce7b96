#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh - umadvise run of programs of nvcc under dryrun: forms of launches, graphs, memory in stream order, threads,
# NVTX; with the shared runtime, and with one linked into the program and another one into a library of it

: "${top_srcdir:=.}" "${top_builddir:=.}" "${NVCC=}" "${SANITIZE=}"
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/inject/nvcc.sh"
source=$top_srcdir/tests/inject/run_app.cu
build_shared app "$source"
field() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" "$tmp/report" | head -n 1; }

want=$(dry 1GiB "$tmp/app" plain)
like "$want" '^[0-9]+\.[0-9]{4}$' "the program computes a sum"
is "$(dry 96MiB "$tmp/app" plain)" "cudaMalloc((void **)&p, N * sizeof(float)): cudaErrorMemoryAllocation" \
	"without the library it needs more memory"
for mode in plain struct ex cooperative temporary async; do
	is "$(run 96MiB "$tmp/app" $mode)" "$want" "$mode: the result is the same"
	like "$(cat "$tmp/err")" "seen 100 % of 1(36|44).0 MiB and 100 % of 1[67]0 launches; [1-9][0-9]* hints" \
		"$mode: all memory and launches are seen"
	fast=$(field device_ns)
	case $mode in
	plain) plain=$fast ;;
	struct)
		UMADVISE_RUN_CONST=off run 96MiB "$tmp/app" struct >/dev/null
		without=$(field device_ns)
		UMADVISE_RUN_CONST=off run 96MiB "$tmp/app" plain >/dev/null
		is "$(field device_ns)" "$without" "$mode: the same tensors are found, so it takes the same time"
		;;
	ex | cooperative) is "$fast" "$plain" "$mode: the same tensors are found, so it takes the same time" ;;
	esac
	UMADVISE_DISABLE=1 run 96MiB "$tmp/app" $mode >/dev/null
	ok "$mode: hints make it at least twice as fast" test $((fast * 2)) -lt "$(field device_ns)"
done
is "$(run 96MiB --record "$tmp/c.umtrace" "$tmp/app" collective)" "$want" "collective: the result is the same"
is "$(grep -c ncclDevKernel_ "$tmp/c.umtrace") $(grep -c '"collective":true' "$tmp/c.umtrace") $(
	grep ncclDevKernel_ "$tmp/c.umtrace" | grep -c '"collective":true'
)" "10 10 10" "collective: kernels named as those of NCCL are recorded as collectives, and no others"
is "$(run 160MiB "$tmp/app" graph)" "$(dry 1GiB "$tmp/app" graph)" "graph: the result is the same"
like "$(cat "$tmp/err")" "100 % of 10 launches" "graph: its launches are seen"
is "$(run 192MiB "$tmp/app" threads 4)" "$(dry 1GiB "$tmp/app" threads 4)" "threads: the results are the same"
is "$(run 96MiB "$tmp/app" queries)" "$(dry 96MiB "$tmp/app" queries)" "questions about memory get the same answers"
is "$(run 96MiB "$tmp/app" reset)" "$want
$want" "reset: after a reset of the device it works again"
like "$(cat "$tmp/err")" "100 % of 320 launches" "reset: launches before and after are seen"
fails 7 "the exit status is the program's" run 96MiB "$tmp/app" fails
fails 134 "an abort is the program's" run 96MiB "$tmp/app" abort
run 96MiB --iteration 'step *[02468]' "$tmp/app" plain >/dev/null
like "$(cat "$tmp/err")" "hints in [0-9]+ of 5 iterations" "--iteration: each range that matches is an iteration"
run 96MiB --iteration 'step *[02468]' env NVTX_INJECTION64_PATH="$tmp/none.so" "$tmp/app" plain >/dev/null
like "$(cat "$tmp/err")" "hints in [0-9]+ of 5 iterations" \
	"--iteration: so it is where a profiler has set NVTX's variable after the tool"
spy=$(cd "$top_builddir/tests/runtime/.libs" 2>/dev/null && pwd)/nvtx_spy.so
if [ -e "$spy" ]; then
	NVTX_INJECTION64_PATH=$tmp/none.so run 96MiB --iteration 'step *[02468]' \
		env NVTX_INJECTION64_PATH="$spy" NVTX_SPY="$tmp/spied" "$tmp/app" plain >/dev/null
	like "$(cat "$tmp/err")" "hints in [0-9]+ of 5 iterations" "--iteration: so it is where another was set before"
	is "$(grep -c 'domain [0-9]* umadvise$' "$tmp/spied")" 1 "--iteration: calls are passed on to the latest"
else
	skip 2 "no tool for NVTX was built"
fi

# Ranges name operations.
labels() { # FILE: the different labels of ops
	sed -n 's/.*"ev":"op".*"label":"\([^"]*\)".*/\1/p' "$1" | sort -u | tr '\n' ';'
}
of_layers() { seq -s ';' -f "$1net/layer %g/aten::addmm" 0 7; }
is "$(run 96MiB --record "$tmp/r.umtrace" "$tmp/app" ranges)" "$want" "ranges: the result is the same"
slow=$(field device_ns)
is "$(labels "$tmp/r.umtrace")" "step;$(of_layers step/);" \
	"ranges: a workload has the range of each op, without numbers that count"
run 96MiB --record "$tmp/plain.umtrace" "$tmp/app" plain >/dev/null
is "$slow" "$(field device_ns)" "ranges: their texts do not change what is learnt"
without_labels() { sed 's/"label":"[^"]*",//' "$1" | cksum; }
is "$(without_labels "$tmp/r.umtrace")" "$(without_labels "$tmp/plain.umtrace")" \
	"ranges: ops have the names of their kernels"
run 96MiB --iteration 'step *' --run-log "$tmp/r.umlog" "$tmp/app" ranges >/dev/null
like "$(cat "$tmp/err")" "hints in [0-9]+ of 10 iterations" "ranges: those of --iteration are still iterations"
like "$("$UMADVISE" report "$tmp/r.umlog")" " net/layer 7/aten::addmm/_Z7forwardPKfS0_Pfi +10 " \
	"ranges: a report of the run log names the layers"
is "$("$UMADVISE" report "$tmp/r.umlog" | grep -c 'step')" 0 "ranges: those that are iterations name no operation"
"$UMADVISE" simulate "$tmp/r.umtrace" --budget 96MiB --strategy lookahead --export "$tmp/r.sqlite" >/dev/null
ok "ranges: a simulated run of the workload has them" \
	grep -aq "op [0-9]* step/net/layer 7/aten::addmm/_Z7forwardPKfS0_Pfi" "$tmp/r.sqlite"
if [ -e "$spy" ]; then
	rm -f "$tmp/spied"
	NVTX_INJECTION64_PATH=$spy NVTX_SPY=$tmp/spied \
		run 96MiB --record "$tmp/spied.umtrace" "$tmp/app" ranges >/dev/null
	is "$(labels "$tmp/spied.umtrace")" "step;$(of_layers step/);" "ranges: so it is beside a profiler"
	is "$(grep -c ' push .* layer [0-7]$' "$tmp/spied") $(grep -c ' pop ' "$tmp/spied")" "80 80" \
		"ranges: the profiler has each range and its end"
else
	skip 2 "no tool for NVTX was built"
fi
run 96MiB --iteration 'step *' --plan "$tmp/p.umplan" "$tmp/app" plain >/dev/null
cold=$(field device_ns)
run 96MiB --iteration 'step *' --plan "$tmp/p.umplan" "$tmp/app" plain >/dev/null
ok "--plan with --iteration: the next run is faster" test "$(field device_ns)" -lt "$cold"

# Two runtimes in one process.
if build linked "$source" -L"$driver/rt13/.libs" -L"$driver" -l:libcuda.so.1 >"$tmp/log" 2>&1; then
	is "$(run 96MiB "$tmp/linked" plain)" "$want" "a program with the runtime linked in gives the same result"
	like "$(cat "$tmp/err")" "seen 100 % of 136.0 MiB and 100 % of 160 launches" "its launches are seen"
else
	skip 2 "nvcc links no runtime in: $(head -n 1 "$tmp/log")"
fi
if build libwork.so "$source" -DAS_LIBRARY -shared -Xcompiler -fPIC -L"$driver/rt13/.libs" -L"$driver" -l:libcuda.so.1 \
	>"$tmp/log" 2>&1 && build two "$source" -DWITH_LIBRARY -L"$driver/rt13/.libs" -L"$driver" -l:libcuda.so.1 \
	-L"$tmp" -lwork -Xlinker -rpath="$tmp" >"$tmp/log" 2>&1; then
	is "$(run 96MiB "$tmp/two" plain)" "$want
$want" "a program and its library, each with a runtime linked in, give the same results"
	like "$(cat "$tmp/err")" "100 % of 320 launches" "launches of both are seen"
else
	skip 2 "nvcc links no library: $(head -n 1 "$tmp/log")"
fi

# The stand-in's cuBLAS launches without cuLaunchKernel.
if build blas "$top_srcdir/tests/inject/run_blas.cu" -cudart shared -lcublas >"$tmp/log" 2>&1; then
	is "$(run 32MiB "$tmp/blas")" "$(dry 1GiB "$tmp/blas")" "products of cuBLAS are the same"
	like "$(cat "$tmp/err")" "100 % of 4[0-9] launches; [1-9][0-9]* hints" "its kernels are seen"
else
	skip 2 "nvcc links no cuBLAS: $(head -n 1 "$tmp/log")"
fi
tap_done
