/* SPDX-License-Identifier: Apache-2.0
 *
 * sparse.h - the stand-in for cuSPARSE: structs of its handles
 *
 * in    calls of cusparse.h's generic API
 * out   kernels (libs.h)
 * owns  handles and descriptors; never the memory that they point to
 */
#ifndef UM_STANDIN_SPARSE_H
#define UM_STANDIN_SPARSE_H

#include "standin/libs.h"

enum um_sparse_status { /* cusparseStatus_t */
			UM_SPARSE_OK = 0,
			UM_SPARSE_NOT_INITIALIZED = 1,
			UM_SPARSE_ALLOC_FAILED = 2,
			UM_SPARSE_INVALID_VALUE = 3,
			UM_SPARSE_EXECUTION_FAILED = 6,
			UM_SPARSE_ZERO_PIVOT = 9,
			UM_SPARSE_NOT_SUPPORTED = 10
};

enum um_sparse_format { UM_CSR = 1, UM_CSC = 2, UM_COO = 3 }; /* cusparseFormat_t */
enum um_sparse_index { UM_INDEX_32 = 2, UM_INDEX_64 = 3 }; /* cusparseIndexType_t */
enum um_sparse_order { UM_BY_COLUMN = 1, UM_BY_ROW = 2 }; /* cusparseOrder_t */
enum um_sparse_op { UM_SPARSE_N, UM_SPARSE_T, UM_SPARSE_C }; /* cusparseOperation_t */

struct um_sparse { /* cusparseHandle_t */
	void *stream;
	int device_scalars;
};

struct um_sparse_matrix { /* cusparseSpMatDescr_t */
	enum um_sparse_format format;
	int64_t rows, cols, n; /* n: entries */
	void *major; /* CSR: offsets of rows; CSC: of columns; COO: the row of each entry */
	void *minor; /* CSR, COO: the column of each entry; CSC: its row */
	void *values;
	int major_type, minor_type, base, type; /* indices, first index, values */
	int fill, diag; /* attributes */
};

struct um_sparse_description { /* cusparseMatDescr_t: description of a matrix for the old functions */
	int type, fill, diag, base;
};

struct um_dense_vector { /* cusparseDnVecDescr_t */
	int64_t n;
	void *values;
	int type;
};

struct um_dense_matrix { /* cusparseDnMatDescr_t */
	int64_t rows, cols, ld;
	void *values;
	int type, order;
};

/* Elements whose type is in a field. */
static inline int64_t um_index_at(const void *p, int type, int64_t i)
{
	return type == UM_INDEX_64 ? ((const int64_t *)p)[i] : ((const int32_t *)p)[i];
}

static inline double um_value_at(const void *p, int type, int64_t i)
{
	return type == UM_F64 ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

static inline void um_value_set(void *p, int type, int64_t i, double v)
{
	if (type == UM_F64)
		((double *)p)[i] = v;
	else
		((float *)p)[i] = (float)v;
}

static inline size_t um_value_size(int type)
{
	return type == UM_F64 ? sizeof(double) : sizeof(float);
}

/* sparse_product.c: reads its indices and accesses its values as given. */
void um_sparse_touch(struct um_libs_kernel *k, const struct um_sparse_matrix *a, uint32_t values);

static inline int um_sparse_status(int cuda)
{
	return !cuda ? UM_SPARSE_OK : cuda == UM_CUDA_NO_MEMORY ? UM_SPARSE_ALLOC_FAILED : UM_SPARSE_EXECUTION_FAILED;
}

#endif
