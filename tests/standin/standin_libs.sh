#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The stand-ins for cuBLAS, cuBLASLt and cuSPARSE under a program that was built with CUDA's headers and linked to its
# libraries: results against plain loops, modes, injected faults, and no driver but the stand-in.
: "${top_srcdir:=.}" "${top_builddir:=.}" "${CXX=c++}" "${SANITIZE=}" "${NVCC=}" "${CUDA_HOME=}" "${UMADVISE:=}"
. "$top_srcdir/tests/tap.sh"

here=$(cd "$top_builddir/standin" 2>/dev/null && pwd)
[ -e "$here/libs13/.libs/libcublas.so.13" ] || skip_all "the stand-in driver was not built"
[ -n "$CXX" ] || skip_all "no C++ compiler"
[ -n "$CUDA_HOME" ] || [ -z "$NVCC" ] || CUDA_HOME=$(cd "$(dirname "$(readlink -f "$NVCC")")/.." && pwd)
for f in include/cublas_v2.h include/cublasLt.h include/cusparse.h lib64/libcublas.so.13 lib64/libcusparse.so; do
	[ -e "$CUDA_HOME/$f" ] || skip_all "no $f of CUDA 13"
done
# shellcheck disable=SC2086 # CXX and flags are lists
$CXX $SANITIZE -std=c++17 -Wno-deprecated-declarations -isystem "$CUDA_HOME/include" -o "$tmp/app" \
	"$top_srcdir/tests/standin/libs_app.cpp" -L"$CUDA_HOME/lib64" -lcublas -lcublasLt -lcusparse -lcudart ||
	skip_all "no program can be built"

dryrun() { "$UMADVISE" dryrun --format json -o "$tmp/r.json" "$@"; }
figure() { sed -n "s/^ \{1,3\}\"$1\": \"\\{0,1\\}\\([^\",]*\\)\"\\{0,1\\},\\{0,1\\}\$/\\1/p" "$tmp/r.json"; }

is "$(dryrun "$tmp/app" 2>/dev/null)" "all is right" "results are those of plain loops"
is "$(figure kernels)" "$(figure kernels_computed)" "each call is a kernel that computes"
ok "library calls take device time" test "$(figure device_ns)" -gt 0
ok "library calls cause faults" test "$(figure faults)" -gt 0
cp "$tmp/r.json" "$tmp/a.json"
dryrun "$tmp/app" >"$tmp/out" 2>&1
is "$(grep -v '"pid"' "$tmp/r.json")" "$(grep -v '"pid"' "$tmp/a.json")" "a second run has the same report, to the byte"

UMADVISE_DRYRUN_COMPUTE=off dryrun "$tmp/app" >"$tmp/out" 2>&1
like "$(cat "$tmp/out")" 'not all is right' "without computing, results are missing"
is "$(figure kernels_computed)" 0 "the report says that no kernel computed"
is "$(figure kernels)" "$(sed -n 's/^ *"kernels": \([0-9]*\).*/\1/p' "$tmp/a.json")" "the kernels are the same"

is "$(UMADVISE_DRYRUN_FAIL=cublasSgemm:1 dryrun "$tmp/app" 2>/dev/null | sort -u)" "not all is right
wrong: gemm" "a call that fails is seen by who checks it"
is "$(UMADVISE_DRYRUN_FAIL=cusparseSpMV:0:2 dryrun "$tmp/app" 2>/dev/null | sort -u)" "not all is right
wrong: SpMV" "in cuSPARSE as well"

# What the headers declare is there, if configure found them; a call of what is not done is refused and named once.
if [ -e "$top_builddir/standin/names_cublas.h" ]; then
	cat >"$tmp/absent.cpp" <<'END'
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cusparse.h>
int main()
{
	cublasHandle_t blas;
	cublasLtMatrixTransformDesc_t desc;
	cusparseHandle_t sparse;

	if (cublasCreate(&blas) || cusparseCreate(&sparse))
		return 1;
	for (int i = 0; i < 3; i++)
		if (cublasCaxpy(blas, 0, nullptr, nullptr, 1, nullptr, 1) != CUBLAS_STATUS_NOT_SUPPORTED ||
		    cublasLtMatrixTransformDescCreate(&desc, CUDA_R_32F) != CUBLAS_STATUS_NOT_SUPPORTED ||
		    cusparseSpVecSetValues(nullptr, nullptr) != CUSPARSE_STATUS_NOT_SUPPORTED)
			return 2;
	return cublasDestroy(blas) || cusparseDestroy(sparse);
}
END
	# shellcheck disable=SC2086 # CXX and flags are lists
	$CXX $SANITIZE -std=c++17 -Wl,-z,now -isystem "$CUDA_HOME/include" -o "$tmp/absent" "$tmp/absent.cpp" \
		-L"$CUDA_HOME/lib64" -lcublas -lcublasLt -lcusparse -lcudart
	dryrun "$tmp/absent" 2>"$tmp/err"
	is "$?" 0 "functions that are not done answer so"
	is "$(grep 'not support' "$tmp/err")" "umadvise: the stand-in does not support cublasCaxpy_v2
umadvise: the stand-in does not support cublasLtMatrixTransformDescCreate
umadvise: the stand-in does not support cusparseSpVecSetValues" "each is named once"
else
	skip 2 "built without the headers of cuBLAS and cuSPARSE"
fi

mkdir "$tmp/lib"
ln -s "$here"/libs13/.libs/lib*.so.13 "$here/libs12/.libs/libcusparse.so.12" "$here/rt13/.libs/libcudart.so.13" \
	"$tmp/lib"
is "$(LD_LIBRARY_PATH=$tmp/lib "$tmp/app" 2>/dev/null)" "no device" "without the stand-in driver there is no device"
tap_done
