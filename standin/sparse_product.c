/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_product.c - cuSPARSE: products of a sparse matrix with a vector or a dense matrix
 *
 * y = alpha op(A) x + beta y, entry by entry in storage order; sums of rows are kept in double.
 */
#include "standin/sparse.h"

#include <stdlib.h>

struct call {
	struct um_sparse_matrix a;
	struct um_factor alpha, beta;
	const void *x;
	void *y;
	int64_t n; /* columns of y */
	int64_t x_row, x_col, y_row, y_col; /* steps */
	int transpose, type;
};

static void add(const struct call *c, int64_t i, double v)
{
	if (c->type == UM_F64)
		((double *)c->y)[i] += v;
	else
		((float *)c->y)[i] += (float)v;
}

static size_t index_size(int type)
{
	return type == UM_INDEX_64 ? sizeof(int64_t) : sizeof(int32_t);
}

/* --- computing ---------------------------------------------------------------------------------------------------- */

static void scale(const struct call *c, int64_t rows, double beta)
{
	for (int64_t j = 0; j < c->n && beta != 1; j++)
		for (int64_t i = 0; i < rows; i++) {
			int64_t at = i * c->y_row + j * c->y_col;

			if (c->type == UM_F64)
				((double *)c->y)[at] = beta == 0 ? 0 : beta * ((double *)c->y)[at];
			else
				((float *)c->y)[at] = beta == 0 ? 0 : (float)(beta * (double)((float *)c->y)[at]);
		}
}

/* By rows (or columns) in storage order; `across`: the result has a row for each minor index. */
static void compressed(const struct call *c, double alpha, int across)
{
	const struct um_sparse_matrix *a = &c->a;
	int64_t majors = a->format == UM_CSR ? a->rows : a->cols;

	for (int64_t i = 0; i < majors; i++) {
		int64_t from = um_index_at(a->major, a->major_type, i) - a->base;
		int64_t to = um_index_at(a->major, a->major_type, i + 1) - a->base;

		for (int64_t j = 0; j < c->n; j++) {
			double sum = 0;

			for (int64_t e = from; e < to; e++) {
				int64_t k = um_index_at(a->minor, a->minor_type, e) - a->base;
				double v = um_value_at(a->values, a->type, e);

				if (across)
					add(c, k * c->y_row + j * c->y_col,
					    alpha * v * um_value_at(c->x, c->type, i * c->x_row + j * c->x_col));
				else
					sum += v * um_value_at(c->x, c->type, k * c->x_row + j * c->x_col);
			}
			if (!across)
				add(c, i * c->y_row + j * c->y_col, alpha * sum);
		}
	}
}

static void coordinates(const struct call *c, double alpha)
{
	const struct um_sparse_matrix *a = &c->a;

	for (int64_t e = 0; e < a->n; e++) {
		int64_t row = um_index_at(a->major, a->major_type, e) - a->base;
		int64_t col = um_index_at(a->minor, a->minor_type, e) - a->base;
		double v = alpha * um_value_at(a->values, a->type, e);

		for (int64_t j = 0; j < c->n; j++)
			add(c, (c->transpose ? col : row) * c->y_row + j * c->y_col,
			    v * um_value_at(c->x, c->type, (c->transpose ? row : col) * c->x_row + j * c->x_col));
	}
}

static void run(void *arg)
{
	const struct call *c = arg;
	double alpha = um_factor_value(&c->alpha);

	scale(c, c->transpose ? c->a.cols : c->a.rows, um_factor_value(&c->beta));
	if (c->a.format == UM_COO)
		coordinates(c, alpha);
	else
		compressed(c, alpha, (c->a.format == UM_CSC) != c->transpose);
}

void um_sparse_touch(struct um_libs_kernel *k, const struct um_sparse_matrix *a, uint32_t values)
{
	int64_t majors = a->format == UM_COO ? a->n : (a->format == UM_CSR ? a->rows : a->cols) + 1;

	um_libs_touch_vector(k, a->major, majors, 1, index_size(a->major_type), UM_READ);
	um_libs_touch_vector(k, a->minor, a->n, 1, index_size(a->minor_type), UM_READ);
	um_libs_touch_vector(k, a->values, a->n, 1, um_value_size(a->type), values);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

/* Supported types: the same for all operands. */
static int types_bad(const struct um_sparse_matrix *a, int x, int y, int compute)
{
	return a->type != compute || x != compute || y != compute || (compute != UM_F32 && compute != UM_F64);
}

static int vector_check(const struct um_sparse *h, int op, const struct um_sparse_matrix *a,
			const struct um_dense_vector *x, const struct um_dense_vector *y, int type)
{
	if (!h)
		return UM_SPARSE_NOT_INITIALIZED;
	if (!a || !x || !y || op < UM_SPARSE_N || op > UM_SPARSE_C || x->n != (op ? a->rows : a->cols) ||
	    y->n != (op ? a->cols : a->rows))
		return UM_SPARSE_INVALID_VALUE;
	return types_bad(a, x->type, y->type, type) ? UM_SPARSE_NOT_SUPPORTED : UM_SPARSE_OK;
}

/* Not 0: programs allocate this size, and an allocation of 0 bytes is an error. */
#define BUFFER_BYTES 8

UM_CALL(cusparseSpMV_bufferSize, const struct um_sparse *h, int op, const void *alpha, const struct um_sparse_matrix *a,
	const struct um_dense_vector *x, const void *beta, const struct um_dense_vector *y, int type, int algorithm,
	size_t *bytes)
{
	int status = vector_check(h, op, a, x, y, type);

	(void)alpha;
	(void)beta;
	(void)algorithm;
	if (!status && !bytes)
		status = UM_SPARSE_INVALID_VALUE;
	if (!status)
		*bytes = BUFFER_BYTES;
	return status;
}

UM_CALL(cusparseSpMV_preprocess, const struct um_sparse *h, int op, const void *alpha, const struct um_sparse_matrix *a,
	const struct um_dense_vector *x, const void *beta, const struct um_dense_vector *y, int type, int algorithm,
	void *buffer)
{
	(void)alpha;
	(void)beta;
	(void)algorithm;
	(void)buffer;
	return vector_check(h, op, a, x, y, type);
}

UM_CALL(cusparseSpMV, const struct um_sparse *h, int op, const void *alpha, const struct um_sparse_matrix *a,
	const struct um_dense_vector *x, const void *beta, const struct um_dense_vector *y, int type, int algorithm,
	void *buffer)
{
	struct um_libs_kernel k = {.name = "cusparseSpMV"};
	int status = vector_check(h, op, a, x, y, type);
	struct call c;

	(void)algorithm;
	(void)buffer;
	if (!status && (!alpha || !beta))
		status = UM_SPARSE_INVALID_VALUE;
	if (status)
		return status;
	k.flops = 2.0 * (double)a->n;
	c = (struct call){.a = *a,
			  .alpha = um_factor_take(&k, alpha, type, h->device_scalars),
			  .beta = um_factor_take(&k, beta, type, h->device_scalars),
			  .x = x->values,
			  .y = y->values,
			  .n = 1,
			  .x_row = 1,
			  .y_row = 1,
			  .transpose = op != UM_SPARSE_N,
			  .type = type};
	um_sparse_touch(&k, a, UM_READ);
	um_libs_touch_vector(&k, x->values, x->n, 1, um_value_size(type), UM_READ);
	um_libs_touch_vector(&k, y->values, y->n, 1, um_value_size(type),
			     um_factor_is_zero(&c.beta) ? UM_WRITE : UM_UPDATE);
	return um_sparse_status(um_libs_run(h->stream, &k, run, &c, sizeof c));
}

static int matrix_check(const struct um_sparse *h, int op, int op_b, const struct um_sparse_matrix *a,
			const struct um_dense_matrix *b, const struct um_dense_matrix *c, int type)
{
	if (!h)
		return UM_SPARSE_NOT_INITIALIZED;
	if (!a || !b || !c || op < UM_SPARSE_N || op > UM_SPARSE_C || op_b < UM_SPARSE_N || op_b > UM_SPARSE_C)
		return UM_SPARSE_INVALID_VALUE;
	if ((op_b ? b->cols : b->rows) != (op ? a->rows : a->cols) || c->rows != (op ? a->cols : a->rows) ||
	    c->cols != (op_b ? b->rows : b->cols))
		return UM_SPARSE_INVALID_VALUE;
	return types_bad(a, b->type, c->type, type) ? UM_SPARSE_NOT_SUPPORTED : UM_SPARSE_OK;
}

UM_CALL(cusparseSpMM_bufferSize, const struct um_sparse *h, int op, int op_b, const void *alpha,
	const struct um_sparse_matrix *a, const struct um_dense_matrix *b, const void *beta,
	const struct um_dense_matrix *c, int type, int algorithm, size_t *bytes)
{
	int status = matrix_check(h, op, op_b, a, b, c, type);

	(void)alpha;
	(void)beta;
	(void)algorithm;
	if (!status && !bytes)
		status = UM_SPARSE_INVALID_VALUE;
	if (!status)
		*bytes = BUFFER_BYTES;
	return status;
}

UM_CALL(cusparseSpMM_preprocess, const struct um_sparse *h, int op, int op_b, const void *alpha,
	const struct um_sparse_matrix *a, const struct um_dense_matrix *b, const void *beta,
	const struct um_dense_matrix *c, int type, int algorithm, void *buffer)
{
	(void)alpha;
	(void)beta;
	(void)algorithm;
	(void)buffer;
	return matrix_check(h, op, op_b, a, b, c, type);
}

static void touch_dense(struct um_libs_kernel *k, const struct um_dense_matrix *m, uint32_t access)
{
	int by_row = m->order == UM_BY_ROW;

	um_libs_touch_matrix(k, m->values, by_row ? m->cols : m->rows, by_row ? m->rows : m->cols, m->ld,
			     um_value_size(m->type), access);
}

UM_CALL(cusparseSpMM, const struct um_sparse *h, int op, int op_b, const void *alpha, const struct um_sparse_matrix *a,
	const struct um_dense_matrix *b, const void *beta, const struct um_dense_matrix *c, int type, int algorithm,
	void *buffer)
{
	struct um_libs_kernel k = {.name = "cusparseSpMM"};
	int status = matrix_check(h, op, op_b, a, b, c, type), flip;
	struct call g;

	(void)algorithm;
	(void)buffer;
	if (!status && (!alpha || !beta))
		status = UM_SPARSE_INVALID_VALUE;
	if (status)
		return status;
	flip = (b->order == UM_BY_ROW) != (op_b != UM_SPARSE_N);
	k.flops = 2.0 * (double)a->n * (double)c->cols;
	g = (struct call){.a = *a,
			  .alpha = um_factor_take(&k, alpha, type, h->device_scalars),
			  .beta = um_factor_take(&k, beta, type, h->device_scalars),
			  .x = b->values,
			  .y = c->values,
			  .n = c->cols,
			  .x_row = flip ? b->ld : 1,
			  .x_col = flip ? 1 : b->ld,
			  .y_row = c->order == UM_BY_ROW ? c->ld : 1,
			  .y_col = c->order == UM_BY_ROW ? 1 : c->ld,
			  .transpose = op != UM_SPARSE_N,
			  .type = type};
	um_sparse_touch(&k, a, UM_READ);
	touch_dense(&k, b, UM_READ);
	touch_dense(&k, c, um_factor_is_zero(&g.beta) ? UM_WRITE : UM_UPDATE);
	return um_sparse_status(um_libs_run(h->stream, &k, run, &g, sizeof g));
}
