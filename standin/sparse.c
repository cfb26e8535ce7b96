/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse.c - cuSPARSE: handles, matrices and vectors of the generic API, and the old matrix descriptor
 */
#include "standin/sparse.h"

#include <stdlib.h>

#define SPARSE_VERSION 12600 /* 12.6.0: of CUDA 13.0 */

static const struct {
	const char *name, *text;
} statuses[] = {{"CUSPARSE_STATUS_SUCCESS", "success"},
		{"CUSPARSE_STATUS_NOT_INITIALIZED", "initialization error"},
		{"CUSPARSE_STATUS_ALLOC_FAILED", "insufficient resources"},
		{"CUSPARSE_STATUS_INVALID_VALUE", "invalid value"},
		{"CUSPARSE_STATUS_ARCH_MISMATCH", "architecture mismatch"},
		{"CUSPARSE_STATUS_MAPPING_ERROR", "texture mapping error"},
		{"CUSPARSE_STATUS_EXECUTION_FAILED", "kernel launch failure"},
		{"CUSPARSE_STATUS_INTERNAL_ERROR", "internal error"},
		{"CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED", "matrix type not supported"},
		{"CUSPARSE_STATUS_ZERO_PIVOT", "zero pivot"},
		{"CUSPARSE_STATUS_NOT_SUPPORTED", "operation not supported"},
		{"CUSPARSE_STATUS_INSUFFICIENT_RESOURCES", "insufficient resources"}};

#define N_STATUSES ((int)(sizeof statuses / sizeof *statuses))

UM_EXPORT const char *cusparseGetErrorName(int status);
const char *cusparseGetErrorName(int status)
{
	return status >= 0 && status < N_STATUSES ? statuses[status].name : "unrecognized error code";
}

UM_EXPORT const char *cusparseGetErrorString(int status);
const char *cusparseGetErrorString(int status)
{
	return status >= 0 && status < N_STATUSES ? statuses[status].text : "unrecognized error code";
}

/* --- handles ------------------------------------------------------------------------------------------------------ */

/* Allocates a copy of `from` for the program. */
static int create(void **out, const void *from, size_t bytes)
{
	void *p = out ? malloc(bytes) : NULL;

	if (!p)
		return out ? UM_SPARSE_ALLOC_FAILED : UM_SPARSE_INVALID_VALUE;
	*out = memcpy(p, from, bytes);
	return UM_SPARSE_OK;
}

static int destroy(const void *p)
{
	free((void *)(uintptr_t)p);
	return p ? UM_SPARSE_OK : UM_SPARSE_INVALID_VALUE;
}

UM_CALL(cusparseCreate, void **handle)
{
	const struct um_sparse h = {0};

	return um_libs_open() ? UM_SPARSE_NOT_INITIALIZED : create(handle, &h, sizeof h);
}

UM_CALL(cusparseDestroy, struct um_sparse *h)
{
	free(h);
	return h ? UM_SPARSE_OK : UM_SPARSE_NOT_INITIALIZED;
}

UM_CALL(cusparseGetVersion, const struct um_sparse *h, int *version)
{
	if (!h || !version)
		return h ? UM_SPARSE_INVALID_VALUE : UM_SPARSE_NOT_INITIALIZED;
	*version = SPARSE_VERSION;
	return UM_SPARSE_OK;
}

UM_CALL(cusparseGetProperty, int type, int *value)
{
	if (!value || type < 0 || type > 2)
		return UM_SPARSE_INVALID_VALUE;
	*value = type == 0 ? SPARSE_VERSION / 1000 : type == 1 ? SPARSE_VERSION / 100 % 10 : SPARSE_VERSION % 100;
	return UM_SPARSE_OK;
}

UM_CALL(cusparseSetStream, struct um_sparse *h, void *stream)
{
	if (!h)
		return UM_SPARSE_NOT_INITIALIZED;
	h->stream = stream;
	return UM_SPARSE_OK;
}

UM_CALL(cusparseGetStream, const struct um_sparse *h, void **stream)
{
	if (!h || !stream)
		return h ? UM_SPARSE_INVALID_VALUE : UM_SPARSE_NOT_INITIALIZED;
	*stream = h->stream;
	return UM_SPARSE_OK;
}

UM_CALL(cusparseSetPointerMode, struct um_sparse *h, int mode)
{
	if (!h || mode < 0 || mode > 1)
		return h ? UM_SPARSE_INVALID_VALUE : UM_SPARSE_NOT_INITIALIZED;
	h->device_scalars = mode;
	return UM_SPARSE_OK;
}

UM_CALL(cusparseGetPointerMode, const struct um_sparse *h, int *mode)
{
	if (!h || !mode)
		return h ? UM_SPARSE_INVALID_VALUE : UM_SPARSE_NOT_INITIALIZED;
	*mode = h->device_scalars;
	return UM_SPARSE_OK;
}

/* --- the old description of a matrix: kept for who asks back ------------------------------------------------------ */

UM_CALL(cusparseCreateMatDescr, void **out)
{
	const struct um_sparse_description d = {0};

	return create(out, &d, sizeof d);
}

UM_CALL(cusparseDestroyMatDescr, struct um_sparse_description *d)
{
	return destroy(d);
}

#define PROPERTY(name, field)                                                                                          \
	UM_CALL(cusparseSet##name, struct um_sparse_description *d, int value)                                         \
	{                                                                                                              \
		if (!d)                                                                                                \
			return UM_SPARSE_INVALID_VALUE;                                                                \
		d->field = value;                                                                                      \
		return UM_SPARSE_OK;                                                                                   \
	}                                                                                                              \
	UM_CALL(cusparseGet##name, const struct um_sparse_description *d)                                              \
	{                                                                                                              \
		return d ? d->field : 0;                                                                               \
	}

PROPERTY(MatType, type)
PROPERTY(MatFillMode, fill)
PROPERTY(MatDiagType, diag)
PROPERTY(MatIndexBase, base)

/* --- sparse matrices ---------------------------------------------------------------------------------------------- */

static int matrix_create(void **out, const struct um_sparse_matrix *m)
{
	if (m->rows < 0 || m->cols < 0 || m->n < 0 || m->base < 0 || m->base > 1)
		return UM_SPARSE_INVALID_VALUE;
	if (m->major_type < UM_INDEX_32 || m->major_type > UM_INDEX_64 || m->minor_type < UM_INDEX_32 ||
	    m->minor_type > UM_INDEX_64 || (m->type != UM_F32 && m->type != UM_F64))
		return UM_SPARSE_NOT_SUPPORTED;
	return create(out, m, sizeof *m);
}

#define WRITABLE(ptr) ((void *)(uintptr_t)(ptr))

#define COMPRESSED(name, kind)                                                                                         \
	UM_CALL(name, void **out, int64_t rows, int64_t cols, int64_t n, const void *major, const void *minor,         \
		const void *values, int major_type, int minor_type, int base, int type)                                \
	{                                                                                                              \
		return matrix_create(out, &(struct um_sparse_matrix){.format = (kind),                                 \
								     .rows = rows,                                     \
								     .cols = cols,                                     \
								     .n = n,                                           \
								     .major = WRITABLE(major),                         \
								     .minor = WRITABLE(minor),                         \
								     .values = WRITABLE(values),                       \
								     .major_type = major_type,                         \
								     .minor_type = minor_type,                         \
								     .base = base,                                     \
								     .type = type});                                   \
	}

COMPRESSED(cusparseCreateCsr, UM_CSR)
COMPRESSED(cusparseCreateConstCsr, UM_CSR)
COMPRESSED(cusparseCreateCsc, UM_CSC)
COMPRESSED(cusparseCreateConstCsc, UM_CSC)

#define COORDINATES(name)                                                                                              \
	UM_CALL(name, void **out, int64_t rows, int64_t cols, int64_t n, const void *row, const void *col,             \
		const void *values, int index_type, int base, int type)                                                \
	{                                                                                                              \
		return matrix_create(out, &(struct um_sparse_matrix){.format = UM_COO,                                 \
								     .rows = rows,                                     \
								     .cols = cols,                                     \
								     .n = n,                                           \
								     .major = WRITABLE(row),                           \
								     .minor = WRITABLE(col),                           \
								     .values = WRITABLE(values),                       \
								     .major_type = index_type,                         \
								     .minor_type = index_type,                         \
								     .base = base,                                     \
								     .type = type});                                   \
	}

COORDINATES(cusparseCreateCoo)
COORDINATES(cusparseCreateConstCoo)

UM_CALL(cusparseDestroySpMat, const struct um_sparse_matrix *m)
{
	return destroy(m);
}

static int pointers_set(struct um_sparse_matrix *m, enum um_sparse_format format, void *major, void *minor,
			void *values)
{
	if (!m || m->format != format)
		return UM_SPARSE_INVALID_VALUE;
	m->major = major;
	m->minor = minor;
	m->values = values;
	return UM_SPARSE_OK;
}

UM_CALL(cusparseCsrSetPointers, struct um_sparse_matrix *m, void *offsets, void *cols, void *values)
{
	return pointers_set(m, UM_CSR, offsets, cols, values);
}

UM_CALL(cusparseCscSetPointers, struct um_sparse_matrix *m, void *offsets, void *rows, void *values)
{
	return pointers_set(m, UM_CSC, offsets, rows, values);
}

UM_CALL(cusparseCooSetPointers, struct um_sparse_matrix *m, void *rows, void *cols, void *values)
{
	return pointers_set(m, UM_COO, rows, cols, values);
}

UM_CALL(cusparseSpMatGetFormat, const struct um_sparse_matrix *m, int *format)
{
	if (!m || !format)
		return UM_SPARSE_INVALID_VALUE;
	*format = (int)m->format;
	return UM_SPARSE_OK;
}

UM_CALL(cusparseSpMatGetIndexBase, const struct um_sparse_matrix *m, int *base)
{
	if (!m || !base)
		return UM_SPARSE_INVALID_VALUE;
	*base = m->base;
	return UM_SPARSE_OK;
}

UM_CALL(cusparseSpMatGetSize, const struct um_sparse_matrix *m, int64_t *rows, int64_t *cols, int64_t *n)
{
	if (!m || !rows || !cols || !n)
		return UM_SPARSE_INVALID_VALUE;
	*rows = m->rows;
	*cols = m->cols;
	*n = m->n;
	return UM_SPARSE_OK;
}

/* Values are read and replaced alike in all three kinds of descriptor. */
#define VALUES(kind, type)                                                                                             \
	UM_CALL(cusparse##kind##GetValues, const struct type *d, void **values)                                        \
	{                                                                                                              \
		if (!d || !values)                                                                                     \
			return UM_SPARSE_INVALID_VALUE;                                                                \
		*values = d->values;                                                                                   \
		return UM_SPARSE_OK;                                                                                   \
	}                                                                                                              \
	UM_CALL(cusparse##kind##SetValues, struct type *d, void *values)                                               \
	{                                                                                                              \
		if (!d)                                                                                                \
			return UM_SPARSE_INVALID_VALUE;                                                                \
		d->values = values;                                                                                    \
		return UM_SPARSE_OK;                                                                                   \
	}

VALUES(SpMat, um_sparse_matrix)
VALUES(DnVec, um_dense_vector)
VALUES(DnMat, um_dense_matrix)

/* Attributes of a triangle: 0 its side, 1 its diagonal. */
UM_CALL(cusparseSpMatSetAttribute, struct um_sparse_matrix *m, int attribute, const void *data, size_t bytes)
{
	if (!m || !data || bytes != sizeof(int) || attribute < 0 || attribute > 1)
		return UM_SPARSE_INVALID_VALUE;
	memcpy(attribute ? &m->diag : &m->fill, data, bytes);
	return UM_SPARSE_OK;
}

UM_CALL(cusparseSpMatGetAttribute, const struct um_sparse_matrix *m, int attribute, void *data, size_t bytes)
{
	if (!m || !data || bytes != sizeof(int) || attribute < 0 || attribute > 1)
		return UM_SPARSE_INVALID_VALUE;
	memcpy(data, attribute ? &m->diag : &m->fill, bytes);
	return UM_SPARSE_OK;
}

/* --- dense vectors and matrices ----------------------------------------------------------------------------------- */

#define VECTOR(name)                                                                                                   \
	UM_CALL(name, void **out, int64_t n, const void *values, int type)                                             \
	{                                                                                                              \
		const struct um_dense_vector v = {n, WRITABLE(values), type};                                          \
                                                                                                                       \
		return n < 0 ? UM_SPARSE_INVALID_VALUE : create(out, &v, sizeof v);                                    \
	}

VECTOR(cusparseCreateDnVec)
VECTOR(cusparseCreateConstDnVec)

UM_CALL(cusparseDestroyDnVec, const struct um_dense_vector *v)
{
	return destroy(v);
}

UM_CALL(cusparseDnVecGet, const struct um_dense_vector *v, int64_t *n, void **values, int *type)
{
	if (!v || !n || !values || !type)
		return UM_SPARSE_INVALID_VALUE;
	*n = v->n;
	*values = v->values;
	*type = v->type;
	return UM_SPARSE_OK;
}

#define MATRIX(name)                                                                                                   \
	UM_CALL(name, void **out, int64_t rows, int64_t cols, int64_t ld, const void *values, int type, int order)     \
	{                                                                                                              \
		const struct um_dense_matrix m = {rows, cols, ld, WRITABLE(values), type, order};                      \
                                                                                                                       \
		if (rows < 0 || cols < 0 || (order != UM_BY_COLUMN && order != UM_BY_ROW) ||                           \
		    ld < (order == UM_BY_ROW ? cols : rows))                                                           \
			return UM_SPARSE_INVALID_VALUE;                                                                \
		return create(out, &m, sizeof m);                                                                      \
	}

MATRIX(cusparseCreateDnMat)
MATRIX(cusparseCreateConstDnMat)

UM_CALL(cusparseDestroyDnMat, const struct um_dense_matrix *m)
{
	return destroy(m);
}

UM_CALL(cusparseDnMatGet, const struct um_dense_matrix *m, int64_t *rows, int64_t *cols, int64_t *ld, void **values,
	int *type, int *order)
{
	if (!m || !rows || !cols || !ld || !values || !type || !order)
		return UM_SPARSE_INVALID_VALUE;
	*rows = m->rows;
	*cols = m->cols;
	*ld = m->ld;
	*values = m->values;
	*type = m->type;
	*order = m->order;
	return UM_SPARSE_OK;
}
