/* SPDX-License-Identifier: Apache-2.0
 *
 * libs.h - shared by the stand-ins for CUDA's libraries (cuBLAS, cuBLASLt, cuSPARSE)
 *
 * in    calls of a library that become kernels: a name, floating-point operations, ranges, host code
 * out   the same kernels on the simulated device, in the order of their stream
 * owns  the connection to the stand-in driver in this process
 *
 * NVIDIA's own libraries contain its runtime and start on its driver only (export.c). These are written from the public
 * headers and compute on the host. They work with the stand-in driver only; with another one every handle is refused.
 *
 *     libs.c          connection to the driver, kernels, copies
 *     blas.c          cuBLAS: handles, modes, texts, copies
 *     blas_vector.c   vectors; compiled once for each type, as the next two
 *     blas_matrix.c   a matrix and vectors; triangles; sums of matrices
 *     blas_gemm.c     products
 *     blas_half.c     products of 16-bit types
 *     blas_mixed.c    forms whose types are parameters
 *     blas_lt.c       cuBLASLt
 *     sparse.c        cuSPARSE: handles, matrices, vectors
 *     sparse_product.c  its products
 *     sparse_solve.c  its triangular solvers, and incomplete LU
 *
 * UMADVISE_DRYRUN_COMPUTE=off: kernels of libraries move memory and take time, but compute nothing.
 */
#ifndef UM_STANDIN_LIBS_H
#define UM_STANDIN_LIBS_H

#include "base/vec.h"
#include "gpu/standin_table.h"
#include "model/event.h"

#define UM_EXPORT __attribute__((visibility("default")))

/* A function that programs see, declared and begun. */
#define UM_CALL(name, ...)                                                                                             \
	UM_EXPORT int name(__VA_ARGS__);                                                                               \
	int name(__VA_ARGS__)

enum um_data_type { UM_F32 = 0, UM_F64 = 1, UM_F16 = 2, UM_BF16 = 14 }; /* cudaDataType */

/* Opens the device, as the first call into a library does. CUDA error code; 35 where there is no stand-in driver. */
int um_libs_open(void);

/* One kernel: the caller sets name and flops, um_libs_touch fills the rest, um_libs_run frees it. */
struct um_libs_kernel {
	const char *name;
	double flops, bytes;
	UM_VEC(struct um_touch) touch;
	int no_memory; /* a range is missing: um_libs_run refuses */
};

/* `bytes` from `ptr` on, of which the kernel uses `touched`. NULL and 0 bytes are ignored. */
void um_libs_touch(struct um_libs_kernel *k, const void *ptr, uint64_t bytes, uint64_t touched, uint32_t access);

/* Vectors and matrices of elements of `size` bytes; matrices by column, `ld` elements apart. */
void um_libs_touch_vector(struct um_libs_kernel *k, const void *x, int64_t n, int64_t inc, size_t size,
			  uint32_t access);
void um_libs_touch_matrix(struct um_libs_kernel *k, const void *a, int64_t rows, int64_t cols, int64_t ld, size_t size,
			  uint32_t access);

/* Enqueues it: fn is called with a copy of `arg`. CUDA error code. */
int um_libs_run(void *stream, struct um_libs_kernel *k, void (*fn)(void *arg), const void *arg, size_t bytes);

/* Waits for a stream. CUDA error code. */
int um_libs_wait(void *stream);

/* `rows` pieces of `bytes` each; waits, or not. CUDA error code. */
struct um_libs_copy {
	void *to;
	const void *from;
	size_t to_pitch, from_pitch, bytes, rows;
};
int um_libs_copy(void *stream, const struct um_libs_copy *c, int wait);

/* A factor: its value at the call, or a pointer that the kernel reads. */
struct um_factor {
	const void *at; /* on the device, or NULL */
	double value;
	int type; /* enum um_data_type, not UM_BF16 */
};

struct um_factor um_factor_take(struct um_libs_kernel *k, const void *ptr, int type, int on_device);
double um_factor_value(const struct um_factor *f); /* value at execution */
int um_factor_is_zero(const struct um_factor *f); /* at the call: known to be 0? */

#endif
