#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# headers.sh - every header compiles alone and twice; the public one in C, C++ and CUDA

: "${top_srcdir:=.}" "${top_builddir:=.}" "${CC:=cc}" "${CXX=}" "${NVCC=}" "${SANITIZE=}"
. "$top_srcdir/tests/tap.sh"

warn='-Wall -Wextra -Werror -Wshadow'
# shellcheck disable=SC2086 # CC and flags are lists
alone() { # HEADER
	printf '#include "%s"\n#include "%s"\nextern int um_headers_;\n' "$1" "$1" >"$tmp/h.c"
	$CC -std=c11 -D_GNU_SOURCE $warn -Wstrict-prototypes -I"$top_srcdir/lib" -I"$top_srcdir/tools" -I"$top_srcdir" \
		-I"$top_srcdir/include" -fsyntax-only "$tmp/h.c"
}

while read -r h; do
	ok "$h compiles alone and twice" alone "$h"
done < <(cd "$top_srcdir" && find lib tools/*/ standin -name '*.h' | sed 's,^lib/,,; s,^tools/,,' | LC_ALL=C sort)

cat >"$tmp/use.c" <<'END'
#include <umadvise.h>
#include <stdio.h>

int main(void)
{
	static char x[64], w[64], y[64];
	struct umadv_options o;
	struct umadv *adv;
	int err;

	umadv_options_init(&o);
	o.device = UMADV_DEVICE_NONE;
	err = umadv_open(&adv, &o);
	if (err)
		return 1;
	err = umadv_op(adv, NULL, "op", UMADV_USES(UMADV_READ(x), UMADV_LOOKUP(w, 8), UMADV_WRITE_RANGE(y, 8)));
	err |= umadv_host(adv, "loss", UMADV_USES(UMADV_READ_RANGE(y, 8)));
	umadv_close(adv);
	puts(umadv_version());
	return err != 0;
}
END
public() { # COMPILER STANDARD LANGUAGE
	# shellcheck disable=SC2086
	$1 -std="$2" -x "$3" $warn -Wpedantic -I"$top_srcdir/include" -fsyntax-only "$tmp/use.c"
}
cat >"$tmp/lambda.cc" <<'END'
#include <umadvise.hpp>

struct stream;

int main()
{
	umadv_options o;
	umadv *adv;
	float x = 0, *p = &x;
	int err;

	umadv_options_init(&o);
	o.device = UMADV_DEVICE_NONE;
	if (umadv_open(&adv, &o))
		return 1;
	stream *typed = nullptr;
	void *untyped = nullptr;
	err = umadvise::launch(adv, typed, "one", {UMADV_WRITE(p)}, [=](stream *) { *p += 1; });
	err |= umadvise::launch(adv, untyped, "two", {UMADV_UPDATE(p)}, [=](void *) {
		*p += 2;
		return 0;
	});
	err |= !umadvise::launch(adv, untyped, "fails", {UMADV_UPDATE(p)}, [](void *) { return 1; });
	umadv_close(adv);
	return err || x != 3;
}
END
lambda() { # STANDARD ARGUMENT...
	# shellcheck disable=SC2086 # lists
	$CXX -std="$1" $warn -Wpedantic -I"$top_srcdir/include" "$tmp/lambda.cc" "${@:2}"
}
ok "umadvise.h in strict C11" public "$CC" c11 c
ok "umadvise.h in C17" public "$CC" c17 c
if [ -n "$CXX" ]; then
	ok "umadvise.h in C++11" public "$CXX" c++11 c++
	ok "umadvise.h in C++17" public "$CXX" c++17 c++
	ok "umadvise.hpp in C++11" lambda c++11 -fsyntax-only
	ok "umadvise.hpp in C++20" lambda c++20 -fsyntax-only
else
	skip 4 "no C++ compiler"
fi

# The lambda is called.
lib=$top_builddir/.libs/libumadvise.so
if [ -z "$CXX" ] || [ ! -e "$lib" ] || [ -n "$SANITIZE" ]; then
	skip 2 "no C++ compiler, or no plain shared library was built"
else
	ok "a C++ program links with the library" lambda c++17 -o "$tmp/lambda" "$lib"
	ok "its lambdas are launched, and errors of theirs reported" \
		env LD_LIBRARY_PATH="$top_builddir/.libs" "$tmp/lambda"
fi

# nvcc: compile and link, against the library that was built; what it makes needs no GPU to start.
if [ -z "$NVCC" ]; then
	skip 4 "no nvcc"
elif [ ! -e "$lib" ] || [ -n "$SANITIZE" ]; then
	skip 4 "no plain shared library was built"
else
	{
		cat "$tmp/use.c"
		cat <<'END'
__global__ void scale(float *x)
{
	x[threadIdx.x] *= 2;
}

int launch(struct umadv *adv, cudaStream_t stream, float *x)
{
	umadv_op(adv, stream, "scale", UMADV_USES(UMADV_UPDATE(x)));
	scale<<<1, 32, 0, stream>>>(x);
	return cudaGetLastError() != cudaSuccess;
}
END
	} >"$tmp/use.cu"
	cat >"$tmp/cuda.c" <<'END'
#include <umadvise_cuda.h>

int launch(struct umadv *adv, const void *kernel, float *x)
{
	void *args[] = {&x};
	dim3 one = {1, 1, 1};

	return umadv_cuda_launch(adv, "scale", UMADV_USES(UMADV_UPDATE(x)), kernel, one, one, args, 0, NULL);
}
END
	cuda=$(cd "$(dirname "$(readlink -f "$NVCC")")/.." && pwd)
	# shellcheck disable=SC2086 # lists
	ok "umadvise_cuda.h in C11" $CC -std=c11 $warn -I"$top_srcdir/include" -isystem "$cuda/include" -fsyntax-only \
		"$tmp/cuda.c"
	ok "umadvise.h in CUDA C++17" "$NVCC" -std=c++17 -I"$top_srcdir/include" -c -o "$tmp/use.o" "$tmp/use.cu" &&
		ok "a CUDA program links with the library" "$NVCC" -o "$tmp/use" "$tmp/use.o" "$lib" &&
		ok "a CUDA program runs without a GPU" env LD_LIBRARY_PATH="$top_builddir/.libs" "$tmp/use"
fi
tap_done
