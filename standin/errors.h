/* SPDX-License-Identifier: Apache-2.0
 *
 * errors.h - names of CUDA error codes
 *
 * in    a CUresult or cudaError_t: the numbers are the same
 * out   its name in the driver and in the runtime, and a short text
 * owns  nothing
 */
#ifndef UM_STANDIN_ERRORS_H
#define UM_STANDIN_ERRORS_H

struct um_error_text {
	int code;
	const char *driver; /* CUDA_ERROR_OUT_OF_MEMORY */
	const char *runtime; /* cudaErrorMemoryAllocation */
	const char *text;
};

/* NULL: unknown. */
const struct um_error_text *um_error_text(int code);

#endif
