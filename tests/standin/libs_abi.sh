#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# libs_abi.sh - the stand-ins for cuBLAS, cuBLASLt and cuSPARSE say what CUDA's headers say
#
# Their functions are taken from the preprocessed sources, each is compared with the header's of the same name. Kinds of
# mismatch are planted, and must not compile. Names and their versions are compared with the real libraries' where those
# are.

: "${top_srcdir:=.}" "${top_builddir:=.}" "${CC:=cc}" "${CXX=c++}" "${NVCC=}" "${CUDA_HOME=}" "${NM:=nm}"
. "$top_srcdir/tests/tap.sh"

[ -n "$CXX" ] || skip_all "no C++ compiler"
[ -n "$CUDA_HOME" ] || [ -z "$NVCC" ] || CUDA_HOME=$(cd "$(dirname "$(readlink -f "$NVCC")")/.." && pwd)
for f in cublas_v2.h cublasLt.h cusparse.h; do
	[ -e "$CUDA_HOME/include/$f" ] || skip_all "no $f among the CUDA headers"
done

# shellcheck disable=SC2086 # CC is a list
functions() { # FILE DOUBLE: one declaration a line
	$CC -std=c11 -D_GNU_SOURCE -DUM_CUDA_MAJOR=13 -DUM_BLAS_DOUBLE="$2" -I"$top_srcdir" -I"$top_srcdir/lib" -E -P \
		"$top_srcdir/standin/$1" | tr '\n' ' ' |
		grep -o '__attribute__((visibility("default")))[^;{]*;' |
		sed 's/^__attribute__((visibility("default"))) *//; s/  */ /g'
}

declared() { # NAMESPACE REAL FILE DOUBLE
	functions "$3" "$4" >"$tmp/$1"
	printf 'namespace %s {\nusing um_real = %s;\n' "$1" "$2"
	cat "$tmp/$1"
	printf '}\n'
}

compared() { # NAMESPACE; some have overloads in C++, libs_abi.cpp names them itself
	sed -n "s/^[^(]*[ *]\([A-Za-z0-9_]*\) *(.*/SAME($1, \1);/p" "$tmp/$1" | grep -v 'cublasGemm.*Ex'
}

{
	declared s_vector float blas_vector.c 0
	declared d_vector double blas_vector.c 1
	declared s_matrix float blas_matrix.c 0
	declared d_matrix double blas_matrix.c 1
	declared s_gemm float blas_gemm.c 0
	declared d_gemm double blas_gemm.c 1
	declared blas float blas.c 0
	declared mixed float blas_mixed.c 0
	declared lt float blas_lt.c 0
	declared sparse float sparse.c 0
	declared product float sparse_product.c 0
	declared solve float sparse_solve.c 0
} >"$tmp/ours.h"
for n in s_vector d_vector s_matrix d_matrix s_gemm d_gemm blas mixed lt sparse product solve; do
	compared $n
done >"$tmp/same.h"
ok "there are functions to compare" test "$(wc -l <"$tmp/same.h")" -gt 140

# shellcheck disable=SC2086 # CXX is a list
compiles() { # FOLDER
	$CXX -std=c++17 -Wall -Wextra -Werror -Wno-deprecated-declarations -fsyntax-only -I"$1" \
		-isystem "$CUDA_HOME/include" "$top_srcdir/tests/standin/libs_abi.cpp"
}
ok "our functions are those of the headers" compiles "$tmp"

planted() { # NAME SED-SCRIPT
	mkdir -p "$tmp/planted"
	cp "$tmp/same.h" "$tmp/planted/"
	sed "$2" "$tmp/ours.h" >"$tmp/planted/ours.h"
	if cmp -s "$tmp/ours.h" "$tmp/planted/ours.h"; then
		is "unchanged" "changed" "planted: $1"
	elif compiles "$tmp/planted" 2>"$tmp/err"; then
		is "compiles" "an error" "seen: $1"
	else
		like "$(cat "$tmp/err")" 'static assertion|static_assert' "seen: $1"
	fi
}
planted "an argument too few" '/ cublasSdot_v2(/s/, int incy//'
planted "an argument too wide" '/ cublasSgemm_v2(/s/int lda/int64_t lda/'
planted "an argument too narrow" '/ cublasSgemmStridedBatched(/s/long long stride_a/int stride_a/'
planted "a value for a pointer" '/ cublasSscal_v2(/s/const um_real \*alpha/um_real alpha/'
planted "a pointer to the wrong thing" '/ cublasDnrm2_v2(/s/um_real \*result/float *result/'
planted "a result too wide" '/ cusparseCreateCsr(/s/^int/long/'

names() { # LIBRARY TYPES; a W is a function that is not done
	$NM -D --defined-only --with-symbol-versions "$1" | awk -v t="$2" 'index(t, $2) { print $3 }' | LC_ALL=C sort
}
for l in libcublas.so.13 libcublasLt.so.13 libcusparse.so.12 libcupti.so.13; do
	real=$CUDA_HOME/lib64/$l
	[ -e "$real" ] || real=$CUDA_HOME/extras/CUPTI/lib64/$l
	ours=$top_builddir/standin/libs${l##*.}/.libs/$l
	if [ -e "$ours" ] && [ -e "$real" ]; then
		names "$ours" T >"$tmp/ours"
		names "$real" T >"$tmp/theirs"
		ok "$l has functions" test -s "$tmp/ours"
		is "$(LC_ALL=C comm -23 "$tmp/ours" "$tmp/theirs")" "" "every function exists in the real library"
	else
		skip 2 "no two $l to compare"
	fi
	header=${l#lib}
	header=$top_builddir/standin/names_${header%.so*}.h
	if [ -e "$ours" ] && [ -e "$real" ] && [ -e "$header" ]; then
		sed 's/X(\(.*\))/\1@@'"$l/" "$header" | LC_ALL=C sort >"$tmp/declared"
		names "$ours" TW >"$tmp/ours"
		LC_ALL=C comm -12 "$tmp/theirs" "$tmp/declared" >"$tmp/wanted"
		ok "the header of $l declares functions" test -s "$tmp/wanted"
		is "$(LC_ALL=C comm -13 "$tmp/ours" "$tmp/wanted")" "" "each of them is there, with its version"
	else
		skip 2 "no header of $l"
	fi
done
tap_done
