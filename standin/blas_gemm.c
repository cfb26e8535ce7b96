/* SPDX-License-Identifier: Apache-2.0
 *
 * blas_gemm.c - cuBLAS: products of matrices on the host
 *
 * A block of op(A) is packed so that the innermost loops read memory in ascending order, then every few columns of
 * op(B) are multiplied with it, a tile of C at a time in registers: 16-byte vectors, which every 64-bit machine has.
 * Packed edges are padded with zeros, so that there is one kind of tile.
 */
#include "standin/blas.h"

#include <pthread.h>

#define LANES ((int)(16 / sizeof(um_real)))
#define TILE_M (2 * LANES)
#define TILE_N 4
#define BLOCK_M 96 /* rows of op(A) in a block: a multiple of TILE_M */
#define BLOCK_K 256

#if UM_BLAS_DOUBLE
typedef struct um_dproduct product;
#define PRODUCT um_dproduct
#else
typedef struct um_sproduct product;
#define PRODUCT um_sproduct
#endif

typedef um_real lanes __attribute__((vector_size(16)));

/* One product at a time: the simulator runs kernels one after the other anyway. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static lanes packed_a[BLOCK_M * BLOCK_K * sizeof(um_real) / sizeof(lanes)];
static um_real packed_b[BLOCK_K * TILE_N];

/* Rows i.. of op(A), columns l..: strips of TILE_M rows, each by column. */
static void pack_a(const product *p, int64_t i, int64_t rows, int64_t l, int64_t depth)
{
	int64_t by_row = p->transpose_a ? p->lda : 1, by_col = p->transpose_a ? 1 : p->lda;
	um_real *to = (um_real *)packed_a;

	for (int64_t strip = 0; strip < rows; strip += TILE_M)
		for (int64_t d = 0; d < depth; d++) {
			const um_real *from = p->a + (l + d) * by_col + (i + strip) * by_row;

			for (int r = 0; r < TILE_M; r++)
				*to++ = strip + r < rows ? from[r * by_row] : 0;
		}
}

/* Rows l.. of op(B), columns j..: by row. */
static void pack_b(const product *p, int64_t l, int64_t depth, int64_t j, int64_t cols)
{
	int64_t by_row = p->transpose_b ? p->ldb : 1, by_col = p->transpose_b ? 1 : p->ldb;

	for (int64_t d = 0; d < depth; d++)
		for (int c = 0; c < TILE_N; c++)
			packed_b[d * TILE_N + c] = c < cols ? p->b[(l + d) * by_row + (j + c) * by_col] : 0;
}

/* The first rows x cols of a tile. */
static void add(const product *p, int64_t i, int64_t rows, int64_t j, int64_t cols, lanes tile[TILE_N][2])
{
	for (int64_t c = 0; c < cols; c++) {
		um_real *to = p->c + i + (j + c) * p->ldc;
		const um_real *from = (const um_real *)tile[c];

		for (int64_t r = 0; r < rows; r++)
			to[r] += p->alpha * from[r];
	}
}

static void tile_multiply(const lanes *a, int64_t depth, lanes tile[TILE_N][2])
{
	lanes c00 = {0}, c01 = {0}, c10 = {0}, c11 = {0}, c20 = {0}, c21 = {0}, c30 = {0}, c31 = {0};
	const um_real *b = packed_b;

	for (int64_t d = 0; d < depth; d++, a += 2, b += TILE_N) {
		lanes a0 = a[0], a1 = a[1];

		c00 += a0 * b[0];
		c01 += a1 * b[0];
		c10 += a0 * b[1];
		c11 += a1 * b[1];
		c20 += a0 * b[2];
		c21 += a1 * b[2];
		c30 += a0 * b[3];
		c31 += a1 * b[3];
	}
	tile[0][0] = c00;
	tile[0][1] = c01;
	tile[1][0] = c10;
	tile[1][1] = c11;
	tile[2][0] = c20;
	tile[2][1] = c21;
	tile[3][0] = c30;
	tile[3][1] = c31;
}

static void block_multiply(const product *p, int64_t i, int64_t rows, int64_t l, int64_t depth)
{
	lanes tile[TILE_N][2];

	for (int64_t j = 0; j < p->n; j += TILE_N) {
		int64_t cols = p->n - j < TILE_N ? p->n - j : TILE_N;
		const lanes *strip = packed_a;

		pack_b(p, l, depth, j, cols);
		for (int64_t r = 0; r < rows; r += TILE_M, strip += 2 * depth) {
			tile_multiply(strip, depth, tile);
			add(p, i + r, rows - r < TILE_M ? rows - r : TILE_M, j, cols, tile);
		}
	}
}

/* With beta 0 the old C is ignored, because it may be NaN. */
static void scale(const product *p)
{
	for (int64_t j = 0; j < p->n && p->beta != 1; j++)
		for (int64_t i = 0; i < p->m; i++) {
			um_real *c = p->c + i + j * p->ldc;

			*c = p->beta == 0 ? 0 : p->beta * *c;
		}
}

void PRODUCT(const product *p)
{
	scale(p);
	if (p->alpha == 0)
		return;
	pthread_mutex_lock(&lock);
	for (int64_t l = 0; l < p->k; l += BLOCK_K) {
		int64_t depth = p->k - l < BLOCK_K ? p->k - l : BLOCK_K;

		for (int64_t i = 0; i < p->m; i += BLOCK_M) {
			int64_t rows = p->m - i < BLOCK_M ? p->m - i : BLOCK_M;

			pack_a(p, i, rows, l, depth);
			block_multiply(p, i, rows, l, depth);
		}
	}
	pthread_mutex_unlock(&lock);
}

/* --- as kernels --------------------------------------------------------------------------------------------------- */

static void run(void *arg)
{
	const struct um_blas_gemm *g = arg;
	product p = {.transpose_a = g->transpose_a,
		     .transpose_b = g->transpose_b,
		     .m = g->m,
		     .n = g->n,
		     .k = g->k,
		     .lda = g->lda,
		     .ldb = g->ldb,
		     .ldc = g->ldc,
		     .alpha = (um_real)um_factor_value(&g->alpha),
		     .beta = (um_real)um_factor_value(&g->beta)};

	for (int64_t i = 0; i < g->batch; i++) {
		const struct um_blas_matrices at = um_blas_gemm_at(g, i);

		p.a = at.a;
		p.b = at.b;
		p.c = at.c;
		PRODUCT(&p);
	}
}

int UM_IN(gemm)(struct um_blas *h, const char *name, struct um_blas_gemm *g, const void *alpha, const void *beta)
{
	g->size_ab = g->size_c = sizeof(um_real);
	return um_blas_gemm_launch(h, name, g, alpha, beta, UM_REAL_TYPE, run);
}

UM_CALL(UM_S(gemm_v2), struct um_blas *h, int ta, int tb, int m, int n, int k, const um_real *alpha, const um_real *a,
	int lda, const um_real *b, int ldb, const um_real *beta, um_real *c, int ldc)
{
	return UM_IN(gemm)(h, UM_NAME("gemm"), UM_BLAS_GEMM(c, .batch = 1), alpha, beta);
}

UM_CALL(UM_S(gemmStridedBatched), struct um_blas *h, int ta, int tb, int m, int n, int k, const um_real *alpha,
	const um_real *a, int lda, long long stride_a, const um_real *b, int ldb, long long stride_b,
	const um_real *beta, um_real *c, int ldc, long long stride_c, int batch)
{
	return UM_IN(gemm)(
		h, UM_NAME("gemmStridedBatched"),
		UM_BLAS_GEMM(c, .stride_a = stride_a, .stride_b = stride_b, .stride_c = stride_c, .batch = batch),
		alpha, beta);
}

UM_CALL(UM_S(gemmBatched), struct um_blas *h, int ta, int tb, int m, int n, int k, const um_real *alpha,
	const um_real *const a[], int lda, const um_real *const b[], int ldb, const um_real *beta, um_real *const c[],
	int ldc, int batch)
{
	return UM_IN(gemm)(h, UM_NAME("gemmBatched"),
			   UM_BLAS_GEMM((void *)(uintptr_t)c, .batch = batch, .by_address = 1), alpha, beta);
}
