/* SPDX-License-Identifier: Apache-2.0
 *
 * blas.c - cuBLAS: handles, modes, error texts, and copies of vectors and matrices between host and device
 */
#include "standin/blas.h"

#include <stdio.h>
#include <stdlib.h>

#ifndef UM_CUDA_MAJOR
#define UM_CUDA_MAJOR 13
#endif
#define VERSION_MINOR (UM_CUDA_MAJOR == 13 ? 0 : 4)
#define VERSION_PATCH 2

const char *um_blas_status_name(int status)
{
	static const char *const names[] = {
		[0] = "CUBLAS_STATUS_SUCCESS",		 [1] = "CUBLAS_STATUS_NOT_INITIALIZED",
		[3] = "CUBLAS_STATUS_ALLOC_FAILED",	 [7] = "CUBLAS_STATUS_INVALID_VALUE",
		[8] = "CUBLAS_STATUS_ARCH_MISMATCH",	 [11] = "CUBLAS_STATUS_MAPPING_ERROR",
		[13] = "CUBLAS_STATUS_EXECUTION_FAILED", [14] = "CUBLAS_STATUS_INTERNAL_ERROR",
		[15] = "CUBLAS_STATUS_NOT_SUPPORTED",	 [16] = "CUBLAS_STATUS_LICENSE_ERROR"};

	return status >= 0 && (size_t)status < sizeof names / sizeof *names && names[status] ? names[status]
											     : "CUBLAS_STATUS_UNKNOWN";
}

const char *um_blas_status_text(int status)
{
	static const char *const texts[] = {[0] = "success",
					    [1] = "the library was not initialized",
					    [3] = "the resource allocation failed",
					    [7] = "an unsupported value or parameter was passed",
					    [8] = "a feature is absent from the device",
					    [11] = "an access to GPU memory space failed",
					    [13] = "the GPU program failed to execute",
					    [14] = "an internal operation failed",
					    [15] = "the functionality is not supported",
					    [16] = "the license is not valid"};

	return status >= 0 && (size_t)status < sizeof texts / sizeof *texts && texts[status] ? texts[status]
											     : "unknown status";
}

UM_EXPORT const char *cublasGetStatusName(int status);
const char *cublasGetStatusName(int status)
{
	return um_blas_status_name(status);
}

UM_EXPORT const char *cublasGetStatusString(int status);
const char *cublasGetStatusString(int status)
{
	return um_blas_status_text(status);
}

/* --- handles ------------------------------------------------------------------------------------------------------ */

UM_CALL(cublasCreate_v2, struct um_blas **handle)
{
	struct um_blas *h;

	if (!handle)
		return UM_BLAS_INVALID_VALUE;
	if (um_libs_open())
		return UM_BLAS_NOT_INITIALIZED;
	h = calloc(1, sizeof *h);
	if (!h)
		return UM_BLAS_ALLOC_FAILED;
	*handle = h;
	return UM_BLAS_OK;
}

UM_CALL(cublasDestroy_v2, struct um_blas *h)
{
	if (!h)
		return UM_BLAS_NOT_INITIALIZED;
	free(h);
	return UM_BLAS_OK;
}

/* Without a handle too: programs ask before they create one. */
UM_CALL(cublasGetVersion_v2, const struct um_blas *h, int *version)
{
	(void)h;
	if (!version)
		return UM_BLAS_INVALID_VALUE;
	*version = UM_CUDA_MAJOR * 10000 + VERSION_MINOR * 100 + VERSION_PATCH;
	return UM_BLAS_OK;
}

UM_CALL(cublasGetProperty, int type, int *value)
{
	if (!value || type < 0 || type > 2)
		return UM_BLAS_INVALID_VALUE;
	*value = type == 0 ? UM_CUDA_MAJOR : type == 1 ? VERSION_MINOR : VERSION_PATCH;
	return UM_BLAS_OK;
}

UM_EXPORT size_t cublasGetCudartVersion(void);
size_t cublasGetCudartVersion(void)
{
	return UM_CUDA_MAJOR == 13 ? 13000 : 12040;
}

/* The simulated kernels need no workspace. */
UM_CALL(cublasSetWorkspace_v2, const struct um_blas *h, void *workspace, size_t bytes)
{
	(void)workspace;
	(void)bytes;
	return h ? UM_BLAS_OK : UM_BLAS_NOT_INITIALIZED;
}

#define MODE(what, type, field)                                                                                        \
	UM_CALL(cublasSet##what, struct um_blas *h, type value)                                                        \
	{                                                                                                              \
		if (!h)                                                                                                \
			return UM_BLAS_NOT_INITIALIZED;                                                                \
		h->field = value;                                                                                      \
		return UM_BLAS_OK;                                                                                     \
	}                                                                                                              \
	UM_CALL(cublasGet##what, const struct um_blas *h, type *value)                                                 \
	{                                                                                                              \
		if (!h)                                                                                                \
			return UM_BLAS_NOT_INITIALIZED;                                                                \
		if (!value)                                                                                            \
			return UM_BLAS_INVALID_VALUE;                                                                  \
		*value = h->field;                                                                                     \
		return UM_BLAS_OK;                                                                                     \
	}

MODE(Stream_v2, void *, stream)
MODE(PointerMode_v2, int, device_scalars)
MODE(MathMode, int, math)
MODE(AtomicsMode, int, atomics)
MODE(SmCountTarget, int, sm_count)

UM_CALL(cublasLoggerConfigure, int on, int to_stdout, int to_stderr, const char *file)
{
	(void)on;
	(void)to_stdout;
	(void)to_stderr;
	(void)file;
	return UM_BLAS_OK;
}

UM_EXPORT void cublasXerbla(const char *name, int argument);
void cublasXerbla(const char *name, int argument)
{
	fprintf(stderr, "** On entry to %s, parameter number %d had an illegal value\n", name, argument);
}

/* --- copies ------------------------------------------------------------------------------------------------------- */

static int vector(int n, int size, const void *x, int incx, void *y, int incy, void *stream, int wait)
{
	struct um_libs_copy c = {y, x, 0, 0, 0, 0};

	if (n < 0 || size <= 0 || incx <= 0 || incy <= 0)
		return UM_BLAS_INVALID_VALUE;
	c.from_pitch = (size_t)incx * (size_t)size;
	c.to_pitch = (size_t)incy * (size_t)size;
	c.bytes = (size_t)size;
	c.rows = (size_t)n;
	if (incx == 1 && incy == 1) {
		c.bytes *= c.rows;
		c.from_pitch = c.to_pitch = c.bytes;
		c.rows = n > 0;
	}
	return um_blas_status(um_libs_copy(stream, &c, wait));
}

static int matrix(int rows, int cols, int size, const void *a, int lda, void *b, int ldb, void *stream, int wait)
{
	if (rows < 0 || cols < 0 || size <= 0 || lda <= 0 || ldb <= 0 || lda < rows || ldb < rows)
		return UM_BLAS_INVALID_VALUE;
	return um_blas_status(um_libs_copy(stream,
					   &(struct um_libs_copy){.to = b,
								  .from = a,
								  .to_pitch = (size_t)ldb * (size_t)size,
								  .from_pitch = (size_t)lda * (size_t)size,
								  .bytes = (size_t)rows * (size_t)size,
								  .rows = (size_t)cols},
					   wait));
}

#define COPIES(direction)                                                                                              \
	UM_CALL(cublas##direction##Vector, int n, int size, const void *x, int incx, void *y, int incy)                \
	{                                                                                                              \
		return vector(n, size, x, incx, y, incy, NULL, 1);                                                     \
	}                                                                                                              \
	UM_CALL(cublas##direction##VectorAsync, int n, int size, const void *x, int incx, void *y, int incy,           \
		void *stream)                                                                                          \
	{                                                                                                              \
		return vector(n, size, x, incx, y, incy, stream, 0);                                                   \
	}                                                                                                              \
	UM_CALL(cublas##direction##Matrix, int rows, int cols, int size, const void *a, int lda, void *b, int ldb)     \
	{                                                                                                              \
		return matrix(rows, cols, size, a, lda, b, ldb, NULL, 1);                                              \
	}                                                                                                              \
	UM_CALL(cublas##direction##MatrixAsync, int rows, int cols, int size, const void *a, int lda, void *b,         \
		int ldb, void *stream)                                                                                 \
	{                                                                                                              \
		return matrix(rows, cols, size, a, lda, b, ldb, stream, 0);                                            \
	}

COPIES(Set)
COPIES(Get)
