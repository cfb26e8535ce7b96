/* SPDX-License-Identifier: Apache-2.0
 *
 * errors.c - names and texts of CUDA error codes, including those that can be injected
 */
#include "standin/errors.h"

#include <stddef.h>

static const struct um_error_text texts[] = {
	{0, "CUDA_SUCCESS", "cudaSuccess", "no error"},
	{1, "CUDA_ERROR_INVALID_VALUE", "cudaErrorInvalidValue", "invalid argument"},
	{2, "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation", "out of memory"},
	{3, "CUDA_ERROR_NOT_INITIALIZED", "cudaErrorInitializationError", "initialization error"},
	{4, "CUDA_ERROR_DEINITIALIZED", "cudaErrorCudartUnloading", "driver shutting down"},
	{13, "UNKNOWN", "cudaErrorInvalidSymbol", "invalid device symbol"},
	{35, "UNKNOWN", "cudaErrorInsufficientDriver", "CUDA driver version is insufficient for CUDA runtime version"},
	{46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "cudaErrorDevicesUnavailable", "devices are busy or unavailable"},
	{98, "UNKNOWN", "cudaErrorInvalidDeviceFunction", "invalid device function"},
	{100, "CUDA_ERROR_NO_DEVICE", "cudaErrorNoDevice", "no CUDA-capable device is detected"},
	{101, "CUDA_ERROR_INVALID_DEVICE", "cudaErrorInvalidDevice", "invalid device ordinal"},
	{200, "CUDA_ERROR_INVALID_IMAGE", "cudaErrorInvalidKernelImage", "device kernel image is invalid"},
	{201, "CUDA_ERROR_INVALID_CONTEXT", "cudaErrorDeviceUninitialized", "invalid device context"},
	{209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "cudaErrorNoKernelImageForDevice", "no kernel image for the device"},
	{217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "cudaErrorPeerAccessUnsupported",
	 "peer access is not supported between these two devices"},
	{301, "CUDA_ERROR_FILE_NOT_FOUND", "cudaErrorFileNotFound", "file not found"},
	{400, "CUDA_ERROR_INVALID_HANDLE", "cudaErrorInvalidResourceHandle", "invalid resource handle"},
	{500, "CUDA_ERROR_NOT_FOUND", "cudaErrorSymbolNotFound", "named symbol not found"},
	{600, "CUDA_ERROR_NOT_READY", "cudaErrorNotReady", "device not ready"},
	{700, "CUDA_ERROR_ILLEGAL_ADDRESS", "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
	{702, "CUDA_ERROR_LAUNCH_TIMEOUT", "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
	{705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "cudaErrorPeerAccessNotEnabled",
	 "peer access has not been enabled"},
	{719, "CUDA_ERROR_LAUNCH_FAILED", "cudaErrorLaunchFailure", "unspecified launch failure"},
	{800, "CUDA_ERROR_NOT_PERMITTED", "cudaErrorNotPermitted", "operation not permitted"},
	{801, "CUDA_ERROR_NOT_SUPPORTED", "cudaErrorNotSupported", "operation not supported"},
	{900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "cudaErrorStreamCaptureUnsupported",
	 "operation not permitted when stream is capturing"},
	{901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "cudaErrorStreamCaptureInvalidated",
	 "operation failed due to a previous error during capture"},
	{902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "cudaErrorStreamCaptureMerge", "two captures would become one"},
	{903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "cudaErrorStreamCaptureUnmatched",
	 "capture was not begun in this stream"},
	{904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "cudaErrorStreamCaptureUnjoined",
	 "capturing stream has unjoined work"},
	{905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "cudaErrorStreamCaptureIsolation",
	 "dependency on uncaptured work in another stream"},
	{906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "cudaErrorStreamCaptureImplicit",
	 "operation would depend on a capturing legacy stream"},
	{907, "CUDA_ERROR_CAPTURED_EVENT", "cudaErrorCapturedEvent", "operation not permitted on a captured event"},
	{908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "cudaErrorStreamCaptureWrongThread",
	 "attempt to end a capture of another thread"},
	{910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "cudaErrorGraphExecUpdateFailure",
	 "the graph differs too much from the one to update"},
	{999, "CUDA_ERROR_UNKNOWN", "cudaErrorUnknown", "unknown error"},
};

const struct um_error_text *um_error_text(int code)
{
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		if (texts[i].code == code)
			return &texts[i];
	return NULL;
}
