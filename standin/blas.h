/* SPDX-License-Identifier: Apache-2.0
 *
 * blas.h - the stand-in for cuBLAS: handles, codes, and the real type that a file is compiled for
 *
 * in    calls of cublas_v2.h
 * out   kernels (libs.h)
 * owns  handles
 *
 * Matrices are stored by column. UM_BLAS_DOUBLE: 0 or 1; files of typed functions are compiled for each.
 */
#ifndef UM_STANDIN_BLAS_H
#define UM_STANDIN_BLAS_H

#include "standin/libs.h"

enum um_blas_status { /* cublasStatus_t */
		      UM_BLAS_OK = 0,
		      UM_BLAS_NOT_INITIALIZED = 1,
		      UM_BLAS_ALLOC_FAILED = 3,
		      UM_BLAS_INVALID_VALUE = 7,
		      UM_BLAS_EXECUTION_FAILED = 13,
		      UM_BLAS_NOT_SUPPORTED = 15
};

enum um_blas_op { UM_OP_N, UM_OP_T, UM_OP_C }; /* cublasOperation_t; C is T for real types */
enum um_blas_side { UM_LEFT, UM_RIGHT };
enum um_blas_fill { UM_LOWER, UM_UPPER };
enum um_blas_diag { UM_NON_UNIT, UM_UNIT };

struct um_blas { /* what a cublasHandle_t points to */
	void *stream;
	int device_scalars; /* cublasPointerMode_t */
	int math, atomics, sm_count;
};

static inline int um_blas_status(int cuda)
{
	return !cuda ? UM_BLAS_OK : cuda == UM_CUDA_NO_MEMORY ? UM_BLAS_ALLOC_FAILED : UM_BLAS_EXECUTION_FAILED;
}

const char *um_blas_status_name(int status);
const char *um_blas_status_text(int status);

#ifndef UM_BLAS_DOUBLE
#define UM_BLAS_DOUBLE 0
#endif

#if UM_BLAS_DOUBLE
typedef double um_real;
#define UM_REAL_TYPE UM_F64
#define UM_S(name) cublasD##name
#define UM_I(name) cublasId##name
#define UM_IN(name) um_d##name
#define UM_NAME(name) "cublasD" name
#define UM_I_NAME(name) "cublasId" name
#else
typedef float um_real;
#define UM_REAL_TYPE UM_F32
#define UM_S(name) cublasS##name
#define UM_I(name) cublasIs##name
#define UM_IN(name) um_s##name
#define UM_NAME(name) "cublasS" name
#define UM_I_NAME(name) "cublasIs" name
#endif

/* --- products (blas_gemm.c) --------------------------------------------------------------------------------------- */

/* C = alpha op(A) op(B) + beta C; C has m x n elements, sums have k terms. For other files of the library: float um_s*,
 * double um_d*. Safe to call on any thread. */
#define UM_PRODUCT_SHAPE                                                                                               \
	int transpose_a, transpose_b;                                                                                  \
	int64_t m, n, k, lda, ldb, ldc

struct um_sproduct {
	UM_PRODUCT_SHAPE;
	float alpha, beta;
	const float *a, *b;
	float *c;
};

struct um_dproduct {
	UM_PRODUCT_SHAPE;
	double alpha, beta;
	const double *a, *b;
	double *c;
};

void um_sproduct(const struct um_sproduct *p);
void um_dproduct(const struct um_dproduct *p);

/* The same with types of elements that are parameters: UM_F32, UM_F16, UM_BF16. C may be D; sums are floats, and
 * `follow`, if there is one, is asked for what becomes of the element at row i, column j. */
struct um_mixed {
	UM_PRODUCT_SHAPE;
	int64_t ldd;
	int type_ab, type_c;
	float alpha, beta;
	const void *a, *b, *c;
	void *d;
	float (*follow)(const void *arg, float x, int64_t i, int64_t j);
	const void *arg;
};

void um_mixed_product(const struct um_mixed *p);

/* Elements of these types; the size of others is 0. */
size_t um_type_size(int type);
float um_type_load(const void *from, int type, int64_t i);
void um_type_store(void *to, int type, int64_t i, float x);

/* As a kernel: `batch` products, `stride` elements apart. cublasStatus_t. */
struct um_blas_gemm {
	UM_PRODUCT_SHAPE;
	struct um_factor alpha, beta;
	const void *a, *b; /* batches by address: arrays of addresses */
	void *c;
	int64_t stride_a, stride_b, stride_c, batch;
	int by_address;
	int type_ab, type_c; /* of functions with types as parameters */
	size_t size_ab, size_c; /* bytes of an element */
};

/* The product of a function with the usual parameters; further fields by name. */
#define UM_BLAS_GEMM(c_, ...)                                                                                          \
	(&(struct um_blas_gemm){.transpose_a = ta,                                                                     \
				.transpose_b = tb,                                                                     \
				.m = m,                                                                                \
				.n = n,                                                                                \
				.k = k,                                                                                \
				.lda = lda,                                                                            \
				.ldb = ldb,                                                                            \
				.ldc = ldc,                                                                            \
				.a = a,                                                                                \
				.b = b,                                                                                \
				.c = (c_),                                                                             \
				__VA_ARGS__})

/* Enters the ranges that the kernel touches. */
void um_blas_gemm_touch(struct um_libs_kernel *k, const struct um_blas_gemm *g);
/* Checks a call, and enqueues `run` as its kernel; the factors are of type `factor`. cublasStatus_t. */
int um_blas_gemm_launch(struct um_blas *h, const char *name, struct um_blas_gemm *g, const void *alpha,
			const void *beta, int factor, void (*run)(void *));

/* The matrices of product number i of a batch. */
struct um_blas_matrices {
	const void *a, *b;
	void *c;
};
struct um_blas_matrices um_blas_gemm_at(const struct um_blas_gemm *g, int64_t i);

int um_sgemm(struct um_blas *h, const char *name, struct um_blas_gemm *g, const void *alpha, const void *beta);
int um_dgemm(struct um_blas *h, const char *name, struct um_blas_gemm *g, const void *alpha, const void *beta);

#endif
