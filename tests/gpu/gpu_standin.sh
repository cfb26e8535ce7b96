#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# gpu_standin.sh - programs that nvcc compiled, over the stand-in driver: the tests of tests/gpu, small

: "${top_srcdir:=.}" "${top_builddir:=.}" "${NVCC=}" "${CXX=}" "${SANITIZE=}" "${CC:=cc}" "${MAKE:=make}"
. "$top_srcdir/tests/tap.sh"

standin=$top_builddir/standin
[ -n "$NVCC" ] || skip_all "no nvcc"
[ -e "$standin/libcuda.so.1" ] || skip_all "no stand-in driver"
[ -z "$SANITIZE" ] || skip_all "nvcc's programs are not built with sanitizers"

bin=$tmp/bin
lib="$top_builddir/.libs/libumtools.a $top_builddir/.libs/libum.a"
build() {
	"$MAKE" -s -j2 -f "$top_srcdir/tests/gpu/programs.mk" SRC="$top_srcdir" OUT="$bin" NVCC="$NVCC" LIBUM="$lib" \
		STANDIN="$standin" NVCCFLAGS=-O1 KINDS=shared \
		PROGRAMS="correct same special${UM_TEST_ALL:+ speed} cg stencil train" all \
		"$bin/correct-static" "$bin/special-static" "$bin/train-static"
}
ok "the programs build" build || tap_done

export LD_LIBRARY_PATH=$standin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export UMADVISE_DRYRUN_CPU=off # nothing here asks what the CPU touches

# Their own checks, one line each here.
passes() { # NAME COMMAND...
	local name=$1 rc
	shift
	"$@" >"$tmp/out" 2>&1
	rc=$?
	[ $rc -eq 0 ] || grep -E '^(not ok|#   |Bail)' "$tmp/out" | head -n 20 | sed 's/^/# /'
	is $rc 0 "$name: $(grep -c '^ok' "$tmp/out") checks"
}
passes "six workloads under three budgets" "$bin/correct-shared" --size 32
passes "what is not a plain loop" "$bin/special-shared" --size 32
UMADVISE_DRYRUN_HAZARDS=destroyed passes "no call has the handle of a destroyed stream" "$bin/special-shared" --size 32
passes "the same with a static runtime" "$bin/correct-static" --size 24 --only train
passes "and what is not a plain loop" "$bin/special-static" --size 32
for name in cuMemPrefetchAsync_v2,cuMemPrefetchBatchAsync cuMemDiscardBatchAsync,cuMemDiscardAndPrefetchBatchAsync; do
	# Large enough that something dead is in the way.
	UMADVISE_DRYRUN_FAIL=${name//,/:0:1,}:0:1 passes "hints fail: $name" "$bin/correct-shared" --size 48 \
		--only train --expect-refused
	UMADVISE_DRYRUN_MISSING=$name passes "hints are missing: $name" "$bin/correct-shared" --size 24 --only train
done
UMADVISE_DRYRUN_MEMORY=$((160 << 20)) fails 3 "the guard refuses a small device" "$bin/correct-shared" --size 24

# The same program on the simulated GPU in the process: results, hints and what memory did, to the byte.
if [ -z "$CXX" ]; then
	skip 4 "no C++ compiler"
else
	inc="-I$top_srcdir/lib -I$top_srcdir/include -I$top_srcdir/tests/gpu"
	in_process() {
		# shellcheck disable=SC2086 # lists
		$CC -std=c11 -D_GNU_SOURCE -O1 $inc -c -o "$tmp/tally.o" "$top_srcdir/tests/gpu/same_sim_tally.c" &&
			$CXX -std=c++17 -D_GNU_SOURCE -O1 $inc -o "$tmp/same-sim" "$top_srcdir/tests/gpu/same_sim.cc" \
				"$tmp/tally.o" $lib -ljansson -lz -lpthread -ldl
	}
	if ok "the same program is built without nvcc" in_process; then
		for work in vector stencil cg train; do
			want=$("$tmp/same-sim" "$work" 1.5)
			memory=$(printf '%s\n' "$want" | sed -n 's/.*budget \([0-9]*\):.*/\1/p')
			got=$(UMADVISE_DRYRUN_MEMORY=$memory "$bin/same-shared" "$work" 1.5 2>"$tmp/err")
			is "$got" "$want" "$work: the same to the byte"
		done
	fi
fi

# Examples: the first line is the checksum.
example() { # NAME ARGUMENTS... (size and iterations first)
	local name=$1 plain
	shift
	plain=$("$bin/$name-shared" --plain "${@:1:4}" 2>"$tmp/err" | head -n 1)
	got=$("$bin/$name-shared" "$@" 2>"$tmp/err")
	like "$plain" "^$name: checksum [0-9a-f]{16}, result" "$name runs without the library"
	is "$(printf '%s\n' "$got" | head -n 1)" "$plain" "$name with the library: the same"
	like "$got" "^$name: [1-9][0-9]* of $4 iterations hinted" "$name: hints were given"
}
example cg --size 64 --iterations 5 --budget 18
example stencil --size 128 --iterations 5 --budget 16
small=(--size 16 --iterations 6 --budget 26)
example train "${small[@]}"
like "$got" '; [1-9][0-9]* operations launched again' "train: operations are launched again"
static=$("$bin/train-static" "${small[@]}" 2>"$tmp/err")
is "$static" "$got" "train with a static runtime: the same"
UMADVISE_DRYRUN_MISSING=cuFuncGetParamInfo example train "${small[@]}"
like "$got" '; 0 operations launched again' "train, with a driver that does not know parameters: none is launched again"
is "$(grep -c "parameters of the kernel of op 'forward' are not known (CUDA error 801" "$tmp/err")" 1 "one line says so"

# All ways to run a workload come to the same numbers, and hints pay. Times are simulated. Compiling it takes long.
[ -n "${UM_TEST_ALL-}" ] || tap_done
for work in vector cg; do
	out=$("$bin/speed-shared" --work $work --size 32 --rounds 1 --iterations 4 --check 2>&1)
	is $? 0 "speed, $work: all five ways have the same results" || diag "$out"
	ms() { printf '%s\n' "$out" | sed -n "s/.*\"mode\": \"$1\", \"median_ms\": \([0-9.]*\).*/\1/p"; }
	ok "speed, $work: in core < umadvise < plain ($(ms in-core) $(ms umadvise) $(ms plain))" \
		awk -v c="$(ms in-core)" -v u="$(ms umadvise)" -v p="$(ms plain)" \
		'BEGIN { exit !(c > 0 && c < u && u < p) }'
done
tap_done
