/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse_solve.c - cuSPARSE: triangular solvers and incomplete LU
 *
 * op(A) y = alpha x, where one triangle of A counts; and the factors L and U on the matrix's own pattern (csrilu02).
 */
#include "standin/sparse.h"

#include <stdlib.h>

enum { LOWER, UPPER };

struct solve {
	struct um_sparse_matrix a;
	struct um_factor alpha;
	const void *x;
	void *y;
	int by_column; /* solved by columns in storage order: a transpose of rows */
};

/* --- triangles ---------------------------------------------------------------------------------------------------- */

/* Row i in storage order: its begin and number of entries. */
static int64_t row(const struct um_sparse_matrix *a, int64_t i, int64_t *n)
{
	int64_t from = um_index_at(a->major, a->major_type, i), to = um_index_at(a->major, a->major_type, i + 1);

	*n = to - from;
	return from - a->base;
}

/* The entries of row i in the triangle without the diagonal: sums them with y; by column, subtracts them from y. */
static double row_apply(const struct solve *s, int64_t i)
{
	const struct um_sparse_matrix *a = &s->a;
	double sum = 0, own = um_value_at(s->y, a->type, i);
	int64_t n, from = row(a, i, &n);

	for (int64_t e = from; e < from + n; e++) {
		int64_t j = um_index_at(a->minor, a->minor_type, e) - a->base;
		double v = um_value_at(a->values, a->type, e);

		if (a->fill == LOWER ? j >= i : j <= i)
			continue;
		if (s->by_column)
			um_value_set(s->y, a->type, j, um_value_at(s->y, a->type, j) - v * own);
		else
			sum += v * um_value_at(s->y, a->type, j);
	}
	return sum;
}

static double diagonal_of(const struct um_sparse_matrix *a, int64_t i)
{
	int64_t n, from = row(a, i, &n);

	for (int64_t e = from; e < from + n; e++)
		if (um_index_at(a->minor, a->minor_type, e) - a->base == i)
			return um_value_at(a->values, a->type, e);
	return 0;
}

static void solve(void *arg)
{
	const struct solve *s = arg;
	const struct um_sparse_matrix *a = &s->a;
	double alpha = um_factor_value(&s->alpha);
	int backward = (a->fill == UPPER) != s->by_column;

	for (int64_t i = 0; i < a->rows; i++)
		um_value_set(s->y, a->type, i, alpha * um_value_at(s->x, a->type, i));
	for (int64_t k = 0; k < a->rows; k++) {
		int64_t i = backward ? a->rows - 1 - k : k;
		double diagonal = a->diag ? 1 : diagonal_of(a, i), y = um_value_at(s->y, a->type, i);

		if (s->by_column) {
			um_value_set(s->y, a->type, i, y / diagonal);
			row_apply(s, i);
		} else {
			um_value_set(s->y, a->type, i, (y - row_apply(s, i)) / diagonal);
		}
	}
}

/* --- calls: analysis has nothing to find out ---------------------------------------------------------------------- */

struct plan { /* cusparseSpSVDescr_t */
	int analysed;
};

UM_CALL(cusparseSpSV_createDescr, struct plan **out)
{
	if (!out)
		return UM_SPARSE_INVALID_VALUE;
	*out = calloc(1, sizeof **out);
	return *out ? UM_SPARSE_OK : UM_SPARSE_ALLOC_FAILED;
}

UM_CALL(cusparseSpSV_destroyDescr, struct plan *p)
{
	free(p);
	return p ? UM_SPARSE_OK : UM_SPARSE_INVALID_VALUE;
}

static int check(const struct um_sparse *h, int op, const struct um_sparse_matrix *a, const struct um_dense_vector *x,
		 const struct um_dense_vector *y, int type, const struct plan *p)
{
	if (!h)
		return UM_SPARSE_NOT_INITIALIZED;
	if (!a || !x || !y || !p || op < UM_SPARSE_N || op > UM_SPARSE_C || a->rows != a->cols || x->n != a->rows ||
	    y->n != a->rows)
		return UM_SPARSE_INVALID_VALUE;
	if (a->format == UM_COO || a->type != type || x->type != type || y->type != type)
		return UM_SPARSE_NOT_SUPPORTED;
	return UM_SPARSE_OK;
}

#define BUFFER_BYTES 8 /* an allocation of 0 bytes is an error */

UM_CALL(cusparseSpSV_bufferSize, const struct um_sparse *h, int op, const void *alpha, const struct um_sparse_matrix *a,
	const struct um_dense_vector *x, const struct um_dense_vector *y, int type, int algorithm, const struct plan *p,
	size_t *bytes)
{
	int status = check(h, op, a, x, y, type, p);

	(void)alpha;
	(void)algorithm;
	if (!status && !bytes)
		status = UM_SPARSE_INVALID_VALUE;
	if (!status)
		*bytes = BUFFER_BYTES;
	return status;
}

UM_CALL(cusparseSpSV_analysis, const struct um_sparse *h, int op, const void *alpha, const struct um_sparse_matrix *a,
	const struct um_dense_vector *x, const struct um_dense_vector *y, int type, int algorithm, struct plan *p,
	void *buffer)
{
	int status = check(h, op, a, x, y, type, p);

	(void)alpha;
	(void)algorithm;
	(void)buffer;
	if (!status)
		p->analysed = 1;
	return status;
}

UM_CALL(cusparseSpSV_solve, const struct um_sparse *h, int op, const void *alpha, const struct um_sparse_matrix *a,
	const struct um_dense_vector *x, const struct um_dense_vector *y, int type, int algorithm, const struct plan *p)
{
	struct um_libs_kernel k = {.name = "cusparseSpSV"};
	int status = check(h, op, a, x, y, type, p);
	struct solve s;

	(void)algorithm;
	if (!status && (!alpha || !p->analysed))
		status = UM_SPARSE_INVALID_VALUE;
	if (status)
		return status;
	k.flops = 2.0 * (double)a->n;
	s = (struct solve){.a = *a,
			   .alpha = um_factor_take(&k, alpha, type, h->device_scalars),
			   .x = x->values,
			   .y = y->values,
			   .by_column = op != UM_SPARSE_N};
	if (a->format == UM_CSC) { /* the rows of its transpose */
		s.by_column = !s.by_column;
		s.a.fill = !a->fill;
	}
	um_sparse_touch(&k, a, UM_READ);
	um_libs_touch_vector(&k, x->values, x->n, 1, um_value_size(type), UM_READ);
	um_libs_touch_vector(&k, y->values, y->n, 1, um_value_size(type), UM_UPDATE);
	return um_sparse_status(um_libs_run(h->stream, &k, solve, &s, sizeof s));
}

/* --- incomplete LU ------------------------------------------------------------------------------------------------ */

struct pivots { /* csrilu02Info_t */
	int zero; /* the first row without a pivot, or -1 */
};

struct factors {
	struct um_sparse_matrix a; /* rows with ascending columns */
	struct pivots *found;
};

/* Row i minus factor times row k, right of column k, on the entries of row i. */
static void row_subtract(const struct um_sparse_matrix *a, int64_t i, int64_t k, double factor)
{
	int64_t n_i, n_k, e = row(a, i, &n_i), f = row(a, k, &n_k), end = e + n_i, end_k = f + n_k;

	while (e < end && f < end_k) {
		int64_t p = um_index_at(a->minor, a->minor_type, e), q = um_index_at(a->minor, a->minor_type, f);

		if (q - a->base <= k || q < p) {
			f++;
		} else if (p < q) {
			e++;
		} else {
			um_value_set(a->values, a->type, e,
				     um_value_at(a->values, a->type, e) - factor * um_value_at(a->values, a->type, f));
			e++;
			f++;
		}
	}
}

static void factorize(void *arg)
{
	const struct factors *l = arg;
	const struct um_sparse_matrix *a = &l->a;

	l->found->zero = -1;
	for (int64_t i = 0; i < a->rows; i++) {
		int64_t n, from = row(a, i, &n);

		for (int64_t e = from; e < from + n; e++) {
			int64_t k = um_index_at(a->minor, a->minor_type, e) - a->base;
			double factor;

			if (k >= i)
				break;
			factor = um_value_at(a->values, a->type, e) / diagonal_of(a, k);
			um_value_set(a->values, a->type, e, factor);
			row_subtract(a, i, k, factor);
		}
		if (l->found->zero < 0 && diagonal_of(a, i) == 0)
			l->found->zero = (int)i + a->base;
	}
}

UM_CALL(cusparseCreateCsrilu02Info, struct pivots **out)
{
	if (!out)
		return UM_SPARSE_INVALID_VALUE;
	*out = malloc(sizeof **out);
	if (!*out)
		return UM_SPARSE_ALLOC_FAILED;
	(*out)->zero = -1;
	return UM_SPARSE_OK;
}

UM_CALL(cusparseDestroyCsrilu02Info, struct pivots *found)
{
	free(found);
	return found ? UM_SPARSE_OK : UM_SPARSE_INVALID_VALUE;
}

UM_CALL(cusparseXcsrilu02_zeroPivot, const struct um_sparse *h, const struct pivots *found, int *position)
{
	int err;

	if (!h || !found || !position)
		return h ? UM_SPARSE_INVALID_VALUE : UM_SPARSE_NOT_INITIALIZED;
	err = um_libs_wait(h->stream);
	*position = found->zero;
	return err ? um_sparse_status(err) : found->zero < 0 ? UM_SPARSE_OK : UM_SPARSE_ZERO_PIVOT;
}

static int lu_check(const struct um_sparse *h, int rows, int n, const struct um_sparse_description *d, const void *info)
{
	if (!h)
		return UM_SPARSE_NOT_INITIALIZED;
	return rows < 0 || n < 0 || !d || !info ? UM_SPARSE_INVALID_VALUE : UM_SPARSE_OK;
}

static int lu(const struct um_sparse *h, const char *name, const struct um_sparse_matrix *a,
	      const struct um_sparse_description *d, struct pivots *found)
{
	struct um_libs_kernel k = {.name = name, .flops = 2.0 * (double)a->n};
	int status = lu_check(h, (int)a->rows, (int)a->n, d, found);
	struct factors l;

	if (status)
		return status;
	l = (struct factors){*a, found};
	l.a.base = d->base;
	um_sparse_touch(&k, a, UM_UPDATE);
	return um_sparse_status(um_libs_run(h->stream, &k, factorize, &l, sizeof l));
}

#define FACTORIZATION(letter, real, which)                                                                             \
	UM_CALL(cusparse##letter##csrilu02_bufferSize, const struct um_sparse *h, int rows, int n,                     \
		const struct um_sparse_description *d, real *values, const int *offsets, const int *cols,              \
		const struct pivots *found, int *bytes)                                                                \
	{                                                                                                              \
		(void)values;                                                                                          \
		(void)offsets;                                                                                         \
		(void)cols;                                                                                            \
		if (bytes)                                                                                             \
			*bytes = BUFFER_BYTES;                                                                         \
		return bytes ? lu_check(h, rows, n, d, found) : UM_SPARSE_INVALID_VALUE;                               \
	}                                                                                                              \
	UM_CALL(cusparse##letter##csrilu02_analysis, const struct um_sparse *h, int rows, int n,                       \
		const struct um_sparse_description *d, const real *values, const int *offsets, const int *cols,        \
		const struct pivots *found, int policy, void *buffer)                                                  \
	{                                                                                                              \
		(void)values;                                                                                          \
		(void)offsets;                                                                                         \
		(void)cols;                                                                                            \
		(void)policy;                                                                                          \
		(void)buffer;                                                                                          \
		return lu_check(h, rows, n, d, found);                                                                 \
	}                                                                                                              \
	UM_CALL(cusparse##letter##csrilu02, const struct um_sparse *h, int rows, int n,                                \
		const struct um_sparse_description *d, real *values, const int *offsets, const int *cols,              \
		struct pivots *found, int policy, void *buffer)                                                        \
	{                                                                                                              \
		const struct um_sparse_matrix a = {.format = UM_CSR,                                                   \
						   .rows = rows,                                                       \
						   .cols = rows,                                                       \
						   .n = n,                                                             \
						   .major = (void *)(uintptr_t)offsets,                                \
						   .minor = (void *)(uintptr_t)cols,                                   \
						   .values = values,                                                   \
						   .major_type = UM_INDEX_32,                                          \
						   .minor_type = UM_INDEX_32,                                          \
						   .type = which};                                                     \
                                                                                                                       \
		(void)policy;                                                                                          \
		(void)buffer;                                                                                          \
		return lu(h, "cusparse" #letter "csrilu02", &a, d, found);                                             \
	}

FACTORIZATION(S, float, UM_F32)
FACTORIZATION(D, double, UM_F64)
