/* SPDX-License-Identifier: Apache-2.0
 *
 * device_abi.cpp - our declarations of CUDA's functions against CUDA's own headers; compiles or does not
 *
 * Both sides are compared as a caller sees them: number of arguments, and of each its size and the kind of register
 * that it travels in; of a pointer also what it points to. An address may be an integer there (CUdeviceptr) and a
 * pointer here. Names, versions and argument lists are those of lib/gpu/device_calls.h themselves.
 */
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include "gpu/device_calls.h"

template <class A> using bare = typename std::remove_cv<A>::type;
template <class A> using target = bare<typename std::remove_pointer<A>::type>;
template <class A> constexpr bool number = std::is_integral<A>::value || std::is_enum<A>::value;

/* `ours` in the place of `theirs`. */
template <class A, class B> constexpr bool fits()
{
	using ours = bare<A>;
	using theirs = bare<B>;

	if constexpr (std::is_pointer<ours>::value && std::is_pointer<theirs>::value) {
		using p = target<ours>;
		using q = target<theirs>;

		if constexpr (std::is_void<p>::value || std::is_void<q>::value)
			/* a handle or any memory */
			return std::is_void<p>::value && (std::is_void<q>::value || std::is_class<q>::value);
		else
			return fits<p, q>();
	} else if constexpr (std::is_pointer<ours>::value) {
		return std::is_integral<theirs>::value && sizeof(theirs) == sizeof(ours);
	} else if constexpr (number<ours>) {
		return number<theirs> && sizeof(theirs) == sizeof(ours);
	} else if constexpr (std::is_class<ours>::value) {
		return std::is_class<theirs>::value && sizeof(theirs) == sizeof(ours);
	} else {
		return std::is_same<ours, theirs>::value; /* float */
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

#define SAME(field, theirs) static_assert(same<decltype(field), theirs>::value, #field)

/* --- the driver: each row's name, version and arguments --------------------------------------------------------- */

#define CU_BOTH(field, rt, cu, version, args) SAME(um_calls::field, PFN_##cu##_v##version);
UM_CALLS_BOTH(CU_BOTH)
UM_CALLS_NEW(CU_BOTH)
UM_CALLS_OLD(CU_BOTH)
#if CUDA_VERSION >= 13000
UM_CALLS_BATCH(CU_BOTH)
#endif

#define CU_ONLY(field, cu, version, args) SAME(um_driver_calls::field, PFN_##cu##_v##version);
UM_DRIVER_ONLY(CU_ONLY)
UM_DRIVER_OPTIONAL(CU_ONLY)
static_assert(same<um_proc_address, PFN_cuGetProcAddress_v12000>::value, UM_PROC_ADDRESS);

/* --- the runtime: its names mean other forms in 12 and 13 -------------------------------------------------------- */

#define RT_BOTH(field, rt, cu, version, args) SAME(um_calls::field, decltype(&::rt));
#define RT_V2(field, rt, cu, version, args) SAME(um_calls::field, decltype(&::rt##_v2));
UM_CALLS_BOTH(RT_BOTH)
#if CUDART_VERSION >= 13000
UM_CALLS_NEW(RT_BOTH)
UM_CALLS_BATCH(RT_BOTH)
#else
UM_CALLS_OLD(RT_BOTH)
UM_CALLS_NEW(RT_V2)
#endif

#define RT_ONLY(field, rt, args) SAME(um_runtime_calls::field, decltype(&::rt));
UM_RUNTIME_ONLY(RT_ONLY)

/* --- values ------------------------------------------------------------------------------------------------------- */

#define IS(ours, theirs) static_assert((int)(ours) == (int)(theirs), #ours)

#define ATTRIBUTE(name, number) IS(number, CU_DEVICE_ATTRIBUTE_##name);
UM_ATTRIBUTES(ATTRIBUTE)
#define CODE(name, number) IS(number, CUDA_ERROR_##name);
UM_END_CODES(CODE)
#if CUDA_VERSION >= 13000
UM_END_CODES_13(CODE)
#endif

/* That each code has the same number on both sides is said once, here. */
IS(UM_CUDA_OK, cudaSuccess);
IS(UM_CUDA_INVALID_VALUE, cudaErrorInvalidValue);
IS(UM_CUDA_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
IS(UM_CUDA_NO_MEMORY, cudaErrorMemoryAllocation);
IS(UM_CUDA_NO_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
IS(3, cudaErrorInitializationError);
IS(4, cudaErrorCudartUnloading);
IS(UM_CUDA_INVALID_DEVICE, cudaErrorInvalidDevice);
IS(201, cudaErrorDeviceUninitialized);
IS(UM_CUDA_NOT_READY, cudaErrorNotReady);
IS(UM_CUDA_NOT_READY, CUDA_ERROR_NOT_READY);
IS(700, cudaErrorIllegalAddress);
IS(UM_CUDA_LAUNCH_TIMEOUT, cudaErrorLaunchTimeout);
IS(709, cudaErrorContextIsDestroyed);
IS(UM_CUDA_LAUNCH_FAILURE, cudaErrorLaunchFailure);
IS(UM_CUDA_NOT_SUPPORTED, cudaErrorNotSupported);
IS(UM_CUDA_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
IS(UM_CUDA_CAPTURING, cudaErrorStreamCaptureUnsupported);
IS(UM_CUDA_CAPTURE_IMPLICIT, cudaErrorStreamCaptureImplicit);
IS(UM_CUDA_CAPTURE_IMPLICIT, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);

IS(UM_LOC_DEVICE, cudaMemLocationTypeDevice);
IS(UM_LOC_HOST, cudaMemLocationTypeHost);
IS(UM_LOC_HOST_NUMA, cudaMemLocationTypeHostNuma);
IS(UM_LOC_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
IS(UM_LOC_HOST, CU_MEM_LOCATION_TYPE_HOST);
IS(UM_LOC_HOST_NUMA, CU_MEM_LOCATION_TYPE_HOST_NUMA);
IS(offsetof(um_location, type), offsetof(cudaMemLocation, type));
IS(offsetof(um_location, id), offsetof(cudaMemLocation, id));
IS(offsetof(um_location, type), offsetof(CUmemLocation, type));
IS(offsetof(um_location, id), offsetof(CUmemLocation, id));
static_assert(std::is_trivially_copyable<cudaMemLocation>::value && alignof(cudaMemLocation) == alignof(um_location), "");
IS(-1, cudaCpuDeviceId);
IS(-1, CU_DEVICE_CPU);

IS(UM_ADV_SET_READ_MOSTLY, cudaMemAdviseSetReadMostly);
IS(UM_ADV_UNSET_READ_MOSTLY, cudaMemAdviseUnsetReadMostly);
IS(UM_ADV_SET_PREFERRED, cudaMemAdviseSetPreferredLocation);
IS(UM_ADV_UNSET_PREFERRED, cudaMemAdviseUnsetPreferredLocation);
IS(UM_ADV_SET_ACCESSED_BY, cudaMemAdviseSetAccessedBy);
IS(UM_ADV_UNSET_ACCESSED_BY, cudaMemAdviseUnsetAccessedBy);
IS(UM_ADV_SET_READ_MOSTLY, CU_MEM_ADVISE_SET_READ_MOSTLY);
IS(UM_ADV_UNSET_ACCESSED_BY, CU_MEM_ADVISE_UNSET_ACCESSED_BY);

IS(UM_EVENT_DISABLE_TIMING, cudaEventDisableTiming);
IS(UM_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING);
IS(UM_STREAM_NON_BLOCKING, cudaStreamNonBlocking);
IS(UM_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
IS(0, CU_STREAM_WRITE_VALUE_DEFAULT);
IS(0, cudaStreamCaptureStatusNone);
IS(0, CU_STREAM_CAPTURE_STATUS_NONE);
IS(UM_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
IS(UM_CAPTURE_RELAXED, cudaStreamCaptureModeRelaxed);
IS(UM_ATTACH_GLOBAL, cudaMemAttachGlobal);
IS(UM_ATTACH_GLOBAL, CU_MEM_ATTACH_GLOBAL);
IS(0, CU_GET_PROC_ADDRESS_DEFAULT);
