/* SPDX-License-Identifier: Apache-2.0
 *
 * blas_matrix.c - cuBLAS: matrix-vector functions, sums of matrices, triangular matrices; plain loops, by column
 */
#include "standin/blas.h"

struct matrices {
	int64_t m, n, lda, ldb, ldc, incx, incy; /* m x n: size of the result; of gemv, of the matrix */
	int ta, tb, right, upper, unit;
	int64_t k;
	struct um_factor alpha, beta;
	const um_real *a, *b;
	um_real *c;
};

static int run(struct um_blas *h, struct um_libs_kernel *k, void (*fn)(void *arg), const struct matrices *m)
{
	return um_blas_status(um_libs_run(h->stream, k, fn, m, sizeof *m));
}

static int64_t first(int64_t n, int64_t inc)
{
	return inc < 0 ? (1 - n) * inc : 0;
}

static void touch(struct um_libs_kernel *k, const void *a, int64_t rows, int64_t cols, int64_t ld, uint32_t access)
{
	um_libs_touch_matrix(k, a, rows, cols, ld, sizeof(um_real), access);
}

static void factors(struct um_blas *h, struct um_libs_kernel *k, struct matrices *m, const um_real *alpha,
		    const um_real *beta)
{
	m->alpha = um_factor_take(k, alpha, UM_REAL_TYPE, h->device_scalars);
	if (beta)
		m->beta = um_factor_take(k, beta, UM_REAL_TYPE, h->device_scalars);
}

static int op_bad(int op)
{
	return op < UM_OP_N || op > UM_OP_C;
}

static int ld_bad(int64_t ld, int64_t rows)
{
	return ld < (rows > 1 ? rows : 1);
}

/* --- a matrix and vectors ----------------------------------------------------------------------------------------- */

/* y = alpha op(A) x + beta y: x in b, y in c */
static void gemv(void *arg)
{
	const struct matrices *g = arg;
	int64_t len_x = g->ta ? g->m : g->n, len_y = g->ta ? g->n : g->m;
	const um_real *x = g->b + first(len_x, g->incx);
	um_real *y = g->c + first(len_y, g->incy);
	um_real alpha = (um_real)um_factor_value(&g->alpha), beta = (um_real)um_factor_value(&g->beta);

	for (int64_t i = 0; i < len_y; i++)
		y[i * g->incy] = beta == 0 ? 0 : beta * y[i * g->incy];
	for (int64_t j = 0; j < g->n; j++) {
		const um_real *col = g->a + j * g->lda;
		um_real sum = 0, factor = g->ta ? 0 : alpha * x[j * g->incx];

		for (int64_t i = 0; i < g->m; i++) {
			if (g->ta)
				sum += col[i] * x[i * g->incx];
			else
				y[i * g->incy] += factor * col[i];
		}
		if (g->ta)
			y[j * g->incy] += alpha * sum;
	}
}

UM_CALL(UM_S(gemv_v2), struct um_blas *h, int op, int m, int n, const um_real *alpha, const um_real *a, int lda,
	const um_real *x, int incx, const um_real *beta, um_real *y, int incy)
{
	struct matrices g = {.m = m, .n = n, .lda = lda, .incx = incx, .incy = incy, .ta = op, .a = a, .b = x, .c = y};
	struct um_libs_kernel k = {.name = UM_NAME("gemv"), .flops = 2.0 * m * n};

	if (!h)
		return UM_BLAS_NOT_INITIALIZED;
	if (op_bad(op) || m < 0 || n < 0 || ld_bad(lda, m) || !incx || !incy || !alpha || !beta)
		return UM_BLAS_INVALID_VALUE;
	if (!m || !n)
		return UM_BLAS_OK;
	factors(h, &k, &g, alpha, beta);
	touch(&k, a, m, n, lda, UM_READ);
	um_libs_touch_vector(&k, x, op ? m : n, incx, sizeof *x, UM_READ);
	um_libs_touch_vector(&k, y, op ? n : m, incy, sizeof *y, um_factor_is_zero(&g.beta) ? UM_WRITE : UM_UPDATE);
	return run(h, &k, gemv, &g);
}

/* A += alpha x y': x in a, y in b, A in c */
static void ger(void *arg)
{
	const struct matrices *g = arg;
	const um_real *x = g->a + first(g->m, g->incx), *y = g->b + first(g->n, g->incy);
	um_real alpha = (um_real)um_factor_value(&g->alpha);

	for (int64_t j = 0; j < g->n; j++) {
		um_real factor = alpha * y[j * g->incy], *col = g->c + j * g->ldc;

		for (int64_t i = 0; i < g->m; i++)
			col[i] += factor * x[i * g->incx];
	}
}

UM_CALL(UM_S(ger_v2), struct um_blas *h, int m, int n, const um_real *alpha, const um_real *x, int incx,
	const um_real *y, int incy, um_real *a, int lda)
{
	struct matrices g = {.m = m, .n = n, .ldc = lda, .incx = incx, .incy = incy, .a = x, .b = y, .c = a};
	struct um_libs_kernel k = {.name = UM_NAME("ger"), .flops = 2.0 * m * n};

	if (!h)
		return UM_BLAS_NOT_INITIALIZED;
	if (m < 0 || n < 0 || ld_bad(lda, m) || !incx || !incy || !alpha)
		return UM_BLAS_INVALID_VALUE;
	if (!m || !n)
		return UM_BLAS_OK;
	factors(h, &k, &g, alpha, NULL);
	um_libs_touch_vector(&k, x, m, incx, sizeof *x, UM_READ);
	um_libs_touch_vector(&k, y, n, incy, sizeof *y, UM_READ);
	touch(&k, a, m, n, lda, UM_UPDATE);
	return run(h, &k, ger, &g);
}

/* --- sums, diagonals ---------------------------------------------------------------------------------------------- */

/* C = alpha op(A) + beta op(B); C may be A or B. A factor of 0 keeps its matrix from being read. */
static void geam(void *arg)
{
	const struct matrices *g = arg;
	um_real alpha = (um_real)um_factor_value(&g->alpha), beta = (um_real)um_factor_value(&g->beta);

	for (int64_t j = 0; j < g->n; j++)
		for (int64_t i = 0; i < g->m; i++) {
			um_real a = alpha == 0 ? 0 : alpha * g->a[g->ta ? j + i * g->lda : i + j * g->lda];
			um_real b = beta == 0 ? 0 : beta * g->b[g->tb ? j + i * g->ldb : i + j * g->ldb];

			g->c[i + j * g->ldc] = a + b;
		}
}

UM_CALL(UM_S(geam), struct um_blas *h, int ta, int tb, int m, int n, const um_real *alpha, const um_real *a, int lda,
	const um_real *beta, const um_real *b, int ldb, um_real *c, int ldc)
{
	struct matrices g = {
		.m = m, .n = n, .lda = lda, .ldb = ldb, .ldc = ldc, .ta = ta, .tb = tb, .a = a, .b = b, .c = c};
	struct um_libs_kernel k = {.name = UM_NAME("geam"), .flops = 2.0 * m * n};

	if (!h)
		return UM_BLAS_NOT_INITIALIZED;
	if (op_bad(ta) || op_bad(tb) || m < 0 || n < 0 || !alpha || !beta || ld_bad(ldc, m))
		return UM_BLAS_INVALID_VALUE;
	if ((a && ld_bad(lda, ta ? n : m)) || (b && ld_bad(ldb, tb ? n : m)) || (c == a && (ta || lda != ldc)) ||
	    (c == b && (tb || ldb != ldc)))
		return UM_BLAS_INVALID_VALUE;
	if (!m || !n)
		return UM_BLAS_OK;
	factors(h, &k, &g, alpha, beta);
	if (a != c && !um_factor_is_zero(&g.alpha))
		touch(&k, a, ta ? n : m, ta ? m : n, lda, UM_READ);
	if (b != c && !um_factor_is_zero(&g.beta))
		touch(&k, b, tb ? n : m, tb ? m : n, ldb, UM_READ);
	touch(&k, c, m, n, ldc, a == c || b == c ? UM_UPDATE : UM_WRITE);
	return run(h, &k, geam, &g);
}

/* C = diag(x) A, or A diag(x): x in b */
static void dgmm(void *arg)
{
	const struct matrices *g = arg;
	const um_real *x = g->b + first(g->right ? g->n : g->m, g->incx);

	for (int64_t j = 0; j < g->n; j++)
		for (int64_t i = 0; i < g->m; i++)
			g->c[i + j * g->ldc] = g->a[i + j * g->lda] * x[(g->right ? j : i) * g->incx];
}

UM_CALL(UM_S(dgmm), struct um_blas *h, int side, int m, int n, const um_real *a, int lda, const um_real *x, int incx,
	um_real *c, int ldc)
{
	struct matrices g = {.m = m,
			     .n = n,
			     .lda = lda,
			     .ldc = ldc,
			     .incx = incx,
			     .right = side == UM_RIGHT,
			     .a = a,
			     .b = x,
			     .c = c};
	struct um_libs_kernel k = {.name = UM_NAME("dgmm"), .flops = (double)m * n};

	if (!h)
		return UM_BLAS_NOT_INITIALIZED;
	if (m < 0 || n < 0 || ld_bad(lda, m) || ld_bad(ldc, m) || (side != UM_LEFT && side != UM_RIGHT))
		return UM_BLAS_INVALID_VALUE;
	if (!m || !n)
		return UM_BLAS_OK;
	if (a != c)
		touch(&k, a, m, n, lda, UM_READ);
	um_libs_touch_vector(&k, x, side == UM_LEFT ? m : n, incx, sizeof *x, UM_READ);
	touch(&k, c, m, n, ldc, a == c ? UM_UPDATE : UM_WRITE);
	return run(h, &k, dgmm, &g);
}

/* --- triangles ---------------------------------------------------------------------------------------------------- */

/* Element (i, j) of op(A); the triangle's side depends on op. */
static um_real at(const struct matrices *g, int64_t i, int64_t j)
{
	return g->ta ? g->a[j + i * g->lda] : g->a[i + j * g->lda];
}

/* Solves op(A) x = b in place; b's elements are `step` apart. */
static void solve(const struct matrices *g, int64_t n, um_real *x, int64_t step)
{
	int backward = g->upper != g->ta;

	for (int64_t k = 0; k < n; k++) {
		int64_t i = backward ? n - 1 - k : k;
		um_real sum = x[i * step];

		for (int64_t j = backward ? i + 1 : 0; j < (backward ? n : i); j++)
			sum -= at(g, i, j) * x[j * step];
		x[i * step] = g->unit ? sum : sum / at(g, i, i);
	}
}

/* op(A) X = alpha B, or X op(A) = alpha B, which is op(A)' X' = alpha B'; B in c */
static void trsm(void *arg)
{
	struct matrices g = *(const struct matrices *)arg;
	um_real alpha = (um_real)um_factor_value(&g.alpha);

	for (int64_t j = 0; j < g.n; j++)
		for (int64_t i = 0; i < g.m; i++)
			g.c[i + j * g.ldc] = alpha == 0 ? 0 : alpha * g.c[i + j * g.ldc];
	if (g.right)
		g.ta = !g.ta;
	for (int64_t i = 0; i < (g.right ? g.m : g.n); i++)
		solve(&g, g.right ? g.n : g.m, g.c + (g.right ? i : i * g.ldc), g.right ? g.ldc : 1);
}

UM_CALL(UM_S(trsm_v2), struct um_blas *h, int side, int fill, int op, int diag, int m, int n, const um_real *alpha,
	const um_real *a, int lda, um_real *b, int ldb)
{
	struct matrices g = {.m = m,
			     .n = n,
			     .lda = lda,
			     .ldc = ldb,
			     .ta = op != UM_OP_N,
			     .right = side == UM_RIGHT,
			     .upper = fill == UM_UPPER,
			     .unit = diag == UM_UNIT,
			     .a = a,
			     .c = b};
	int order = side == UM_LEFT ? m : n;
	struct um_libs_kernel k = {.name = UM_NAME("trsm"), .flops = (double)m * n * order};

	if (!h)
		return UM_BLAS_NOT_INITIALIZED;
	if (op_bad(op) || m < 0 || n < 0 || (side != UM_LEFT && side != UM_RIGHT) || !alpha || ld_bad(lda, order) ||
	    ld_bad(ldb, m) || (fill != UM_UPPER && fill != UM_LOWER))
		return UM_BLAS_INVALID_VALUE;
	if (!m || !n)
		return UM_BLAS_OK;
	factors(h, &k, &g, alpha, NULL);
	touch(&k, a, order, order, lda, UM_READ);
	touch(&k, b, m, n, ldb, UM_UPDATE);
	return run(h, &k, trsm, &g);
}

/* One triangle of C = alpha op(A) op(A)' + beta C */
static void syrk(void *arg)
{
	const struct matrices *g = arg;
	um_real alpha = (um_real)um_factor_value(&g->alpha), beta = (um_real)um_factor_value(&g->beta);

	for (int64_t j = 0; j < g->n; j++)
		for (int64_t i = g->upper ? 0 : j; i < (g->upper ? j + 1 : g->n); i++) {
			um_real sum = 0, *c = g->c + i + j * g->ldc;

			for (int64_t l = 0; l < g->k; l++)
				sum += at(g, i, l) * at(g, j, l);
			*c = alpha * sum + (beta == 0 ? 0 : beta * *c);
		}
}

UM_CALL(UM_S(syrk_v2), struct um_blas *h, int fill, int op, int n, int k, const um_real *alpha, const um_real *a,
	int lda, const um_real *beta, um_real *c, int ldc)
{
	struct matrices g = {.m = n,
			     .n = n,
			     .k = k,
			     .lda = lda,
			     .ldc = ldc,
			     .ta = op != UM_OP_N,
			     .upper = fill == UM_UPPER,
			     .a = a,
			     .c = c};
	struct um_libs_kernel kernel = {.name = UM_NAME("syrk"), .flops = (double)n * n * k};

	if (!h)
		return UM_BLAS_NOT_INITIALIZED;
	if (op_bad(op) || n < 0 || k < 0 || !alpha || !beta || ld_bad(lda, op ? k : n) || ld_bad(ldc, n) ||
	    (fill != UM_UPPER && fill != UM_LOWER))
		return UM_BLAS_INVALID_VALUE;
	if (!n)
		return UM_BLAS_OK;
	factors(h, &kernel, &g, alpha, beta);
	touch(&kernel, a, op ? k : n, op ? n : k, lda, UM_READ);
	touch(&kernel, c, n, n, ldc, UM_UPDATE);
	return run(h, &kernel, syrk, &g);
}
