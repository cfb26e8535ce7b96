#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# device_abi.sh - lib/gpu/device_calls.h says what CUDA's headers say
#
# Of the toolkit, and of 12.x where CUDA12_HOME names a folder with include/cuda.h in it. Each kind of mismatch is
# planted once, and must not compile.

: "${top_srcdir:=.}" "${CXX=c++}" "${NVCC=}" "${CUDA_HOME=}" "${CUDA12_HOME=}"
. "$top_srcdir/tests/tap.sh"

[ -n "$CXX" ] || skip_all "no C++ compiler"
[ -n "$CUDA_HOME" ] || [ -z "$NVCC" ] || CUDA_HOME=$(cd "$(dirname "$(readlink -f "$NVCC")")/.." && pwd)
[ -e "$CUDA_HOME/include/cuda.h" ] || skip_all "no CUDA headers"
for f in cudaTypedefs.h cuda_runtime_api.h; do
	[ -e "$CUDA_HOME/include/$f" ] || skip_all "no $f among the CUDA headers"
done

# $1: our lib; $2...: include folders of CUDA, the second for what the first lacks
# shellcheck disable=SC2086 # CXX is a list
compiles() {
	local lib=$1 inc=() d
	shift
	for d; do
		inc+=(-isystem "$d")
	done
	$CXX -std=c++17 -Wall -Wextra -Werror -fsyntax-only -I"$lib" "${inc[@]}" \
		"$top_srcdir/tests/device/device_abi.cpp"
}

planted() { # NAME SED-SCRIPT INCLUDES...
	local name=$1 script=$2
	shift 2
	rm -rf "${tmp:?}/lib"
	mkdir -p "$tmp/lib/gpu"
	cp "$top_srcdir"/lib/gpu/gpu.h "$tmp/lib/gpu/"
	sed "$script" "$top_srcdir/lib/gpu/device_calls.h" >"$tmp/lib/gpu/device_calls.h"
	if cmp -s "$top_srcdir/lib/gpu/device_calls.h" "$tmp/lib/gpu/device_calls.h"; then
		is "unchanged" "changed" "planted: $name"
	elif compiles "$tmp/lib" "$@" 2>"$tmp/err"; then
		is "compiles" "an error" "seen: $name"
	else
		like "$(cat "$tmp/err")" 'static assertion|static_assert|PFN_|not been declared|no member' "seen: $name"
	fi
}

new=("$CUDA_HOME/include")
ok "our declarations are those of $(sed -n 's/^#define CUDA_VERSION //p' "$CUDA_HOME/include/cuda.h")" \
	compiles "$top_srcdir/lib" "${new[@]}"
planted "an argument too few" '/X(malloc_managed/s/(void \*\*, size_t, unsigned)/(void **, size_t)/' "${new[@]}"
planted "an argument too wide" '/X(malloc_managed/s/unsigned)/size_t)/' "${new[@]}"
planted "an argument too narrow" '/X(memory_info/s/size_t \*)/unsigned *)/' "${new[@]}"
planted "a value for a pointer" '/X(stream_create/s/um_stream \*/unsigned/' "${new[@]}"
planted "a pointer to the wrong thing" '/X(event_elapsed/s/float \*/size_t */' "${new[@]}"
planted "the old form of a hint under the new name" \
	'/X(prefetch, /{n;s/.*/	(const void *, size_t, int, um_stream)) \\/}' "${new[@]}"
planted "the new form at the old version" '/X(advise, /s/12020/8000/' "${new[@]}"
planted "a version that never was" '/X(stream_id/s/12000/12001/' "${new[@]}"
planted "a location by its address" '/X(advise, /s/struct um_location/struct um_location */' "${new[@]}"
planted "an address cut to 32 bits" '/X(copy, /s/uint64_t/uint32_t/' "${new[@]}"
planted "a wrong name" '/X(event_query/s/cudaEventQuery/cudaEventQuiry/' "${new[@]}"
planted "a wrong attribute" 's/CONCURRENT_MANAGED_ACCESS, 89/CONCURRENT_MANAGED_ACCESS, 88/' "${new[@]}"
planted "a wrong error code" 's/ILLEGAL_ADDRESS, 700/ILLEGAL_ADDRESS, 701/' "${new[@]}"

if [ -e "$CUDA12_HOME/include/cuda.h" ]; then
	old=("$CUDA12_HOME/include" "$CUDA_HOME/include")
	ok "our declarations are those of $(sed -n 's/^#define CUDA_VERSION //p' "$CUDA12_HOME/include/cuda.h")" \
		compiles "$top_srcdir/lib" "${old[@]}"
	planted "12: the new form under the plain name" \
		'/X(prefetch_old/s/int, um_stream/struct um_location, unsigned, um_stream/' "${old[@]}"
	planted "12: an advice too short" '/X(advise_old/s/int, int/int/' "${old[@]}"
else
	skip 3 "CUDA12_HOME names no CUDA 12 headers"
fi
tap_done
