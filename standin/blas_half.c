/* SPDX-License-Identifier: Apache-2.0
 *
 * blas_half.c - products of 16-bit and single-precision matrices, summed in single precision
 *
 * A block of C at a time: blocks of A and B become floats, their product is summed in a block of floats, which becomes
 * C's type at the end. So memory is bounded however large the matrices are.
 */
#include "standin/blas.h"
#include "standin/half.h"

#include <pthread.h>

#define BLOCK_M 96
#define BLOCK_N 256
#define BLOCK_K 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static float block_a[BLOCK_M * BLOCK_K], block_b[BLOCK_K * BLOCK_N], sums[BLOCK_M * BLOCK_N];

size_t um_type_size(int type)
{
	return type == UM_F32 ? sizeof(float) : type == UM_F16 || type == UM_BF16 ? sizeof(uint16_t) : 0;
}

static const void *at(const void *matrix, int type, int64_t i)
{
	return (const char *)matrix + i * (int64_t)um_type_size(type);
}

float um_type_load(const void *from, int type, int64_t i)
{
	return type == UM_F32	? ((const float *)from)[i]
	       : type == UM_F16 ? um_half_load(((const uint16_t *)from)[i])
				: um_bfloat_load(((const uint16_t *)from)[i]);
}

void um_type_store(void *to, int type, int64_t i, float x)
{
	if (type == UM_F32)
		((float *)to)[i] = x;
	else
		((uint16_t *)to)[i] = type == UM_F16 ? um_half_store(x) : um_bfloat_store(x);
}

/* A block of rows x cols as floats, *ld apart: where they are, or converted in `room`. */
static const float *fetch(const void *from, int type, int64_t rows, int64_t cols, int64_t *ld, float *room)
{
	const uint16_t *column = from;
	float *to = room;

	if (type == UM_F32)
		return from;
	for (int64_t j = 0; j < cols; j++, column += *ld, to += rows)
		if (type == UM_F16)
			for (int64_t i = 0; i < rows; i++)
				to[i] = um_half_load(column[i]);
		else
			for (int64_t i = 0; i < rows; i++)
				to[i] = um_bfloat_load(column[i]);
	*ld = rows;
	return room;
}

/* Adds terms l.. to the block of C at row i, column j. */
static void add_terms(const struct um_mixed *p, struct um_sproduct *block, int64_t i, int64_t j, int64_t l)
{
	const void *a = at(p->a, p->type_ab, p->transpose_a ? l + i * p->lda : i + l * p->lda);
	const void *b = at(p->b, p->type_ab, p->transpose_b ? j + l * p->ldb : l + j * p->ldb);
	int64_t k = p->k - l < BLOCK_K ? p->k - l : BLOCK_K;

	block->k = k;
	block->beta = l > 0;
	block->lda = p->lda;
	block->ldb = p->ldb;
	block->a = p->transpose_a ? fetch(a, p->type_ab, k, block->m, &block->lda, block_a)
				  : fetch(a, p->type_ab, block->m, k, &block->lda, block_a);
	block->b = p->transpose_b ? fetch(b, p->type_ab, block->n, k, &block->ldb, block_b)
				  : fetch(b, p->type_ab, k, block->n, &block->ldb, block_b);
	um_sproduct(block);
}

/* With beta 0 the old C is ignored, because it may be NaN. */
static void finish(const struct um_mixed *p, int64_t i, int64_t rows, int64_t j, int64_t cols)
{
	for (int64_t c = 0; c < cols; c++)
		for (int64_t r = 0; r < rows; r++) {
			float x = sums[r + c * BLOCK_M];

			if (p->beta != 0)
				x += p->beta * um_type_load(p->c, p->type_c, i + r + (j + c) * p->ldc);
			if (p->follow)
				x = p->follow(p->arg, x, i + r, j + c);
			um_type_store(p->d, p->type_c, i + r + (j + c) * p->ldd, x);
		}
}

void um_mixed_product(const struct um_mixed *p)
{
	struct um_sproduct block = {.transpose_a = p->transpose_a,
				    .transpose_b = p->transpose_b,
				    .alpha = p->alpha,
				    .ldc = BLOCK_M,
				    .c = sums};

	pthread_mutex_lock(&lock);
	for (int64_t j = 0; j < p->n; j += BLOCK_N)
		for (int64_t i = 0; i < p->m; i += BLOCK_M) {
			int64_t l = 0;

			block.m = p->m - i < BLOCK_M ? p->m - i : BLOCK_M;
			block.n = p->n - j < BLOCK_N ? p->n - j : BLOCK_N;
			do
				add_terms(p, &block, i, j, l);
			while ((l += BLOCK_K) < p->k);
			finish(p, i, block.m, j, block.n);
		}
	pthread_mutex_unlock(&lock);
}
