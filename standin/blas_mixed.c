/* SPDX-License-Identifier: Apache-2.0
 *
 * blas_mixed.c - cuBLAS: products with types as parameters (GemmEx and the like)
 *
 * Checks, touched ranges, and dispatch: single, double, and 16-bit types with single-precision sums.
 */
#include "standin/blas.h"

enum compute { /* cublasComputeType_t */
	       COMPUTE_16F = 64,
	       COMPUTE_16F_PEDANTIC = 65,
	       COMPUTE_32F = 68,
	       COMPUTE_32F_PEDANTIC = 69,
	       COMPUTE_64F = 70,
	       COMPUTE_64F_PEDANTIC = 71,
	       COMPUTE_32F_FAST_16F = 74,
	       COMPUTE_32F_FAST_16BF = 75,
	       COMPUTE_32F_FAST_TF32 = 77
};

static int check(const struct um_blas *h, int ta, int tb, const struct um_blas_gemm *g, const void *alpha,
		 const void *beta)
{
	int64_t rows_a = ta ? g->k : g->m, rows_b = tb ? g->n : g->k;

	if (!h)
		return UM_BLAS_NOT_INITIALIZED;
	if (ta < UM_OP_N || ta > UM_OP_C || tb < UM_OP_N || tb > UM_OP_C || !alpha || !beta)
		return UM_BLAS_INVALID_VALUE;
	if (g->m < 0 || g->n < 0 || g->k < 0 || g->batch < 0)
		return UM_BLAS_INVALID_VALUE;
	if (g->lda < (rows_a ? rows_a : 1) || g->ldb < (rows_b ? rows_b : 1) || g->ldc < (g->m ? g->m : 1))
		return UM_BLAS_INVALID_VALUE;
	return UM_BLAS_OK;
}

struct part {
	const void *at;
	int64_t rows, cols, ld, stride;
	uint32_t access;
};

/* Matrices `stride` apart count as one range; stride 0 means the same matrix. */
static void touch_strided(struct um_libs_kernel *k, const struct part *p, int64_t batch, size_t size)
{
	uint64_t one = ((uint64_t)(p->cols - 1) * (uint64_t)p->ld + (uint64_t)p->rows) * size;
	uint64_t step = (uint64_t)(p->stride < 0 ? -p->stride : p->stride) * size;
	uint64_t used = (uint64_t)p->rows * (uint64_t)p->cols * size * (uint64_t)(step ? batch : 1);
	uint64_t span = (uint64_t)(batch - 1) * step + one;
	const char *at = (const char *)p->at - (p->stride < 0 ? (uint64_t)(batch - 1) * step : 0);

	um_libs_touch(k, at, span, used < span ? used : span,
		      p->access == UM_WRITE && used < span ? UM_UPDATE : p->access);
}

/* The arrays of addresses are read at the time of the call. */
static void touch_listed(struct um_libs_kernel *k, const struct part *p, int64_t batch, size_t size)
{
	um_libs_touch(k, p->at, (uint64_t)batch * sizeof(void *), (uint64_t)batch * sizeof(void *), UM_READ);
	for (int64_t i = 0; i < batch; i++)
		um_libs_touch_matrix(k, ((void *const *)p->at)[i], p->rows, p->cols, p->ld, size, p->access);
}

void um_blas_gemm_touch(struct um_libs_kernel *k, const struct um_blas_gemm *g)
{
	const struct part parts[] = {
		{g->a, g->transpose_a ? g->k : g->m, g->transpose_a ? g->m : g->k, g->lda, g->stride_a, UM_READ},
		{g->b, g->transpose_b ? g->n : g->k, g->transpose_b ? g->k : g->n, g->ldb, g->stride_b, UM_READ},
		{g->c, g->m, g->n, g->ldc, g->stride_c, um_factor_is_zero(&g->beta) ? UM_WRITE : UM_UPDATE}};

	for (size_t i = 0; i < 3; i++) {
		if (!parts[i].rows || !parts[i].cols)
			continue;
		if (g->by_address)
			touch_listed(k, &parts[i], g->batch, i < 2 ? g->size_ab : g->size_c);
		else
			touch_strided(k, &parts[i], g->batch, i < 2 ? g->size_ab : g->size_c);
	}
}

int um_blas_gemm_launch(struct um_blas *h, const char *name, struct um_blas_gemm *g, const void *alpha,
			const void *beta, int factor, void (*run)(void *))
{
	struct um_libs_kernel k = {.name = name};
	int status = check(h, g->transpose_a, g->transpose_b, g, alpha, beta);

	if (status || g->m == 0 || g->n == 0 || g->batch == 0)
		return status;
	k.flops = 2.0 * (double)g->m * (double)g->n * (double)g->k * (double)g->batch;
	g->alpha = um_factor_take(&k, alpha, factor, h->device_scalars);
	g->beta = um_factor_take(&k, beta, factor, h->device_scalars);
	g->transpose_a = g->transpose_a != UM_OP_N;
	g->transpose_b = g->transpose_b != UM_OP_N;
	um_blas_gemm_touch(&k, g);
	return um_blas_status(um_libs_run(h->stream, &k, run, g, sizeof *g));
}

struct um_blas_matrices um_blas_gemm_at(const struct um_blas_gemm *g, int64_t i)
{
	const int64_t size_ab = (int64_t)g->size_ab, size_c = (int64_t)g->size_c;

	if (g->by_address)
		return (struct um_blas_matrices){((const void *const *)g->a)[i], ((const void *const *)g->b)[i],
						 ((void *const *)g->c)[i]};
	return (struct um_blas_matrices){(const char *)g->a + i * g->stride_a * size_ab,
					 (const char *)g->b + i * g->stride_b * size_ab,
					 (char *)g->c + i * g->stride_c * size_c};
}

/* --- types as parameters ------------------------------------------------------------------------------------------ */

static int is_16_bit(int type)
{
	return type == UM_F16 || type == UM_BF16;
}

/* The type of the factors of a call, or -1: not supported. */
static int type_of(int a, int b, int c, int compute)
{
	if (a != b)
		return -1;
	switch (compute) {
	case COMPUTE_16F:
	case COMPUTE_16F_PEDANTIC:
		return a == UM_F16 && c == UM_F16 ? UM_F16 : -1;
	case COMPUTE_32F:
	case COMPUTE_32F_PEDANTIC:
		if (is_16_bit(a) && (c == a || c == UM_F32))
			return UM_F32;
		/* fall through */
	case COMPUTE_32F_FAST_16F:
	case COMPUTE_32F_FAST_16BF:
	case COMPUTE_32F_FAST_TF32:
		return a == UM_F32 && c == UM_F32 ? UM_F32 : -1;
	case COMPUTE_64F:
	case COMPUTE_64F_PEDANTIC:
		return a == UM_F64 && c == UM_F64 ? UM_F64 : -1;
	default:
		return -1;
	}
}

static void run(void *arg)
{
	const struct um_blas_gemm *g = arg;
	struct um_mixed p = {.transpose_a = g->transpose_a,
			     .transpose_b = g->transpose_b,
			     .m = g->m,
			     .n = g->n,
			     .k = g->k,
			     .lda = g->lda,
			     .ldb = g->ldb,
			     .ldc = g->ldc,
			     .ldd = g->ldc,
			     .type_ab = g->type_ab,
			     .type_c = g->type_c,
			     .alpha = (float)um_factor_value(&g->alpha),
			     .beta = (float)um_factor_value(&g->beta)};

	for (int64_t i = 0; i < g->batch; i++) {
		const struct um_blas_matrices at = um_blas_gemm_at(g, i);

		p.a = at.a;
		p.b = at.b;
		p.d = at.c;
		p.c = p.d;
		um_mixed_product(&p);
	}
}

/* As um_sgemm, of 16-bit types. */
static int mixed_gemm(struct um_blas *h, const char *name, int type, struct um_blas_gemm *g, const void *alpha,
		      const void *beta)
{
	g->size_ab = um_type_size(g->type_ab);
	g->size_c = um_type_size(g->type_c);
	return um_blas_gemm_launch(h, name, g, alpha, beta, type, run);
}

static int gemm(struct um_blas *h, const char *name, int type, struct um_blas_gemm *g, const void *alpha,
		const void *beta)
{
	if (!h)
		return UM_BLAS_NOT_INITIALIZED;
	if (type < 0)
		return UM_BLAS_NOT_SUPPORTED;
	return type == UM_F64	       ? um_dgemm(h, name, g, alpha, beta)
	       : is_16_bit(g->type_ab) ? mixed_gemm(h, name, type, g, alpha, beta)
				       : um_sgemm(h, name, g, alpha, beta);
}

UM_CALL(cublasGemmEx, struct um_blas *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a,
	int type_a, int lda, const void *b, int type_b, int ldb, const void *beta, void *c, int type_c, int ldc,
	int compute, int algorithm)
{
	(void)algorithm;
	return gemm(h, "cublasGemmEx", type_of(type_a, type_b, type_c, compute),
		    UM_BLAS_GEMM(c, .batch = 1, .type_ab = type_a, .type_c = type_c), alpha, beta);
}

UM_CALL(cublasGemmStridedBatchedEx, struct um_blas *h, int ta, int tb, int m, int n, int k, const void *alpha,
	const void *a, int type_a, int lda, long long stride_a, const void *b, int type_b, int ldb, long long stride_b,
	const void *beta, void *c, int type_c, int ldc, long long stride_c, int batch, int compute, int algorithm)
{
	(void)algorithm;
	return gemm(h, "cublasGemmStridedBatchedEx", type_of(type_a, type_b, type_c, compute),
		    UM_BLAS_GEMM(c, .stride_a = stride_a, .stride_b = stride_b, .stride_c = stride_c, .batch = batch,
				 .type_ab = type_a, .type_c = type_c),
		    alpha, beta);
}

UM_CALL(cublasGemmBatchedEx, struct um_blas *h, int ta, int tb, int m, int n, int k, const void *alpha,
	const void *const a[], int type_a, int lda, const void *const b[], int type_b, int ldb, const void *beta,
	void *const c[], int type_c, int ldc, int batch, int compute, int algorithm)
{
	(void)algorithm;
	return gemm(h, "cublasGemmBatchedEx", type_of(type_a, type_b, type_c, compute),
		    UM_BLAS_GEMM((void *)(uintptr_t)c, .batch = batch, .by_address = 1, .type_ab = type_a,
				 .type_c = type_c),
		    alpha, beta);
}

UM_CALL(cublasSgemmEx, struct um_blas *h, int ta, int tb, int m, int n, int k, const float *alpha, const void *a,
	int type_a, int lda, const void *b, int type_b, int ldb, const float *beta, void *c, int type_c, int ldc)
{
	return cublasGemmEx(h, ta, tb, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c, type_c, ldc,
			    COMPUTE_32F, 0);
}
