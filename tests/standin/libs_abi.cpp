/* SPDX-License-Identifier: Apache-2.0
 *
 * libs_abi.cpp - declarations of our stand-ins against the headers of cuBLAS, cuBLASLt and cuSPARSE; compiles or does not
 *
 * ours.h holds our declarations, a namespace a file; same.h names each of them once (tests/standin/libs_abi.sh writes both).
 * Compared is what a caller sees: the number of arguments, and of each its size and the kind of register that it
 * travels in; of a pointer also what it points to. What is opaque on one side may be anything on the other.
 */
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ours.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cusparse.h>

template <class A> using bare = typename std::remove_cv<A>::type;
template <class A> using target = bare<typename std::remove_pointer<A>::type>;
template <class A> constexpr bool number = std::is_integral<A>::value || std::is_enum<A>::value;
template <class A> constexpr bool opaque = std::is_void<A>::value || std::is_class<A>::value;

/* `ours` in the place of `theirs`. */
template <class A, class B> constexpr bool fits()
{
	using ours = bare<A>;
	using theirs = bare<B>;

	if constexpr (std::is_pointer<ours>::value && std::is_pointer<theirs>::value) {
		using p = target<ours>;
		using q = target<theirs>;

		if constexpr (opaque<p> && opaque<q>)
			return true;
		else if constexpr (std::is_void<p>::value || std::is_void<q>::value)
			return std::is_void<p>::value == std::is_void<q>::value;
		else
			return fits<p, q>();
	} else if constexpr (number<ours>) {
		return number<theirs> && sizeof(theirs) == sizeof(ours);
	} else {
		return std::is_same<ours, theirs>::value;
	}
}

template <class A, class B> struct same : std::false_type {
};
template <class R, class... A, class S, class... B> struct same<R (*)(A...), S (*)(B...)> {
	static constexpr bool all()
	{
		if constexpr (sizeof...(A) == sizeof...(B))
			return fits<R, S>() && (fits<A, B>() && ...);
		else
			return false;
	}
	static constexpr bool value = all();
};

/* In C++ the header has a second function of each of these names, for the types of old: the address picks the first. */
#define OPS cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int
#define COMPUTE cublasComputeType_t, cublasGemmAlgo_t
using in = const void *;
using list = const void *const *;
cublasStatus_t (*gemm)(OPS, in, in, cudaDataType, int, in, cudaDataType, int, in, void *, cudaDataType, int,
                       COMPUTE) = &cublasGemmEx;
cublasStatus_t (*strided)(OPS, in, in, cudaDataType, int, long long, in, cudaDataType, int, long long, in, void *,
                          cudaDataType, int, long long, int, COMPUTE) = &cublasGemmStridedBatchedEx;
cublasStatus_t (*batched)(OPS, in, list, cudaDataType, int, list, cudaDataType, int, in, void *const *, cudaDataType,
                          int, int, COMPUTE) = &cublasGemmBatchedEx;
static_assert(same<decltype(&mixed::cublasGemmEx), decltype(gemm)>::value, "cublasGemmEx");
static_assert(same<decltype(&mixed::cublasGemmStridedBatchedEx), decltype(strided)>::value, "cublasGemmStridedBatchedEx");
static_assert(same<decltype(&mixed::cublasGemmBatchedEx), decltype(batched)>::value, "cublasGemmBatchedEx");

#define SAME(space, name) static_assert(same<decltype(&space::name), decltype(&::name)>::value, #name)
#include "same.h"
