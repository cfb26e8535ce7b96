/* SPDX-License-Identifier: Apache-2.0
 *
 * blas_lt.c - cuBLASLt: a product of matrices as a call with descriptors
 *
 * Single precision; matrices by column or by row, batches, and epilogues: a bias, ReLU, GELU (its tanh form) with or
 * without the value before it, GELU's derivative.
 */
#include "standin/blas.h"

#include <math.h>
#include <stdlib.h>

#define COMPUTE_32F 68
#define COMPUTE_32F_FAST_TF32 77

enum epilogue { RELU = 2, BIAS = 4, GELU = 32, DGELU = 64, AUX = 128 };
enum order { BY_COLUMN, BY_ROW };

struct layout {
	uint64_t rows, cols;
	int64_t ld, stride;
	int32_t type, order, batch;
};

struct matmul {
	int64_t bias_stride, aux_ld, aux_stride;
	const void *bias;
	void *aux;
	int32_t compute, scale, pointer_mode, ta, tb, tc, fill, bias_type, aux_type, sm_count;
	uint32_t epilogue;
	int8_t fast;
};

struct preference {
	uint64_t workspace;
	uint32_t search;
};

struct algorithm {
	uint64_t data[8];
};

struct heuristic { /* cublasLtMatmulHeuristicResult_t */
	struct algorithm algo;
	size_t workspace;
	int state;
	float waves;
	int reserved[4];
};

/* --- descriptors -------------------------------------------------------------------------------------------------- */

struct field {
	size_t at, bytes;
};

#define FIELD(type, name)                                                                                              \
	{                                                                                                              \
		offsetof(struct type, name), sizeof(((struct type *)0)->name)                                          \
	}

static const struct field layout_fields[] = {
	[0] = FIELD(layout, type), [1] = FIELD(layout, order), [2] = FIELD(layout, rows),  [3] = FIELD(layout, cols),
	[4] = FIELD(layout, ld),   [5] = FIELD(layout, batch), [6] = FIELD(layout, stride)};

static const struct field matmul_fields[] = {
	[0] = FIELD(matmul, compute),	   [1] = FIELD(matmul, scale),	   [2] = FIELD(matmul, pointer_mode),
	[3] = FIELD(matmul, ta),	   [4] = FIELD(matmul, tb),	   [5] = FIELD(matmul, tc),
	[6] = FIELD(matmul, fill),	   [7] = FIELD(matmul, epilogue),  [8] = FIELD(matmul, bias),
	[10] = FIELD(matmul, bias_stride), [11] = FIELD(matmul, aux),	   [12] = FIELD(matmul, aux_ld),
	[13] = FIELD(matmul, aux_stride),  [15] = FIELD(matmul, sm_count), [22] = FIELD(matmul, aux_type),
	[25] = FIELD(matmul, fast),	   [26] = FIELD(matmul, bias_type)};

static const struct field preference_fields[] = {[0] = FIELD(preference, search), [1] = FIELD(preference, workspace)};

#define N(fields) (sizeof(fields) / sizeof *(fields))

static int set(void *desc, const struct field *fields, size_t n, int attribute, const void *from, size_t bytes)
{
	const struct field *f = &fields[attribute];

	if (!desc || !from || attribute < 0)
		return UM_BLAS_INVALID_VALUE;
	if ((size_t)attribute >= n || !f->bytes)
		return UM_BLAS_NOT_SUPPORTED;
	if (bytes != f->bytes)
		return UM_BLAS_INVALID_VALUE;
	memcpy((char *)desc + f->at, from, bytes);
	return UM_BLAS_OK;
}

static int get(const void *desc, const struct field *fields, size_t n, int attribute, void *to, size_t bytes,
	       size_t *written)
{
	const struct field *f = &fields[attribute];

	if (!desc || attribute < 0 || (!to && !written))
		return UM_BLAS_INVALID_VALUE;
	if ((size_t)attribute >= n || !f->bytes)
		return UM_BLAS_NOT_SUPPORTED;
	if (written)
		*written = f->bytes;
	if (!bytes && written)
		return UM_BLAS_OK;
	if (!to || bytes != f->bytes)
		return UM_BLAS_INVALID_VALUE;
	memcpy(to, (const char *)desc + f->at, bytes);
	return UM_BLAS_OK;
}

#define DESCRIPTOR(name, type, fields)                                                                                 \
	UM_CALL(cublasLt##name##Destroy, struct type *desc)                                                            \
	{                                                                                                              \
		free(desc);                                                                                            \
		return UM_BLAS_OK;                                                                                     \
	}                                                                                                              \
	UM_CALL(cublasLt##name##SetAttribute, struct type *desc, int attribute, const void *from, size_t bytes)        \
	{                                                                                                              \
		return set(desc, fields, N(fields), attribute, from, bytes);                                           \
	}                                                                                                              \
	UM_CALL(cublasLt##name##GetAttribute, const struct type *desc, int attribute, void *to, size_t bytes,          \
		size_t *written)                                                                                       \
	{                                                                                                              \
		return get(desc, fields, N(fields), attribute, to, bytes, written);                                    \
	}

/* `desc` is the caller's memory where it has a size. */
static int init(void *desc, size_t size, const void *from, size_t bytes)
{
	if (!desc || size < bytes)
		return UM_BLAS_INVALID_VALUE;
	memset(desc, 0, size);
	memcpy(desc, from, bytes);
	return UM_BLAS_OK;
}

static int create(void **out, const void *from, size_t bytes)
{
	void *p = out ? malloc(bytes) : NULL;

	if (!p)
		return out ? UM_BLAS_ALLOC_FAILED : UM_BLAS_INVALID_VALUE;
	*out = memcpy(p, from, bytes);
	return UM_BLAS_OK;
}

static struct layout layout_of(int type, uint64_t rows, uint64_t cols, int64_t ld)
{
	return (struct layout){.rows = rows, .cols = cols, .ld = ld, .type = type, .batch = 1};
}

UM_CALL(cublasLtMatrixLayoutCreate, void **out, int type, uint64_t rows, uint64_t cols, int64_t ld)
{
	const struct layout l = layout_of(type, rows, cols, ld);

	return create(out, &l, sizeof l);
}

UM_CALL(cublasLtMatrixLayoutInit_internal, void *out, size_t size, int type, uint64_t rows, uint64_t cols, int64_t ld)
{
	const struct layout l = layout_of(type, rows, cols, ld);

	return init(out, size, &l, sizeof l);
}

UM_CALL(cublasLtMatmulDescCreate, void **out, int compute, int scale)
{
	const struct matmul m = {.compute = compute, .scale = scale, .epilogue = 1};

	return create(out, &m, sizeof m);
}

UM_CALL(cublasLtMatmulDescInit_internal, void *out, size_t size, int compute, int scale)
{
	const struct matmul m = {.compute = compute, .scale = scale, .epilogue = 1};

	return init(out, size, &m, sizeof m);
}

UM_CALL(cublasLtMatmulPreferenceCreate, void **out)
{
	const struct preference p = {0};

	return create(out, &p, sizeof p);
}

UM_CALL(cublasLtMatmulPreferenceInit_internal, void *out, size_t size)
{
	const struct preference p = {0};

	return init(out, size, &p, sizeof p);
}

DESCRIPTOR(MatrixLayout, layout, layout_fields)
DESCRIPTOR(MatmulDesc, matmul, matmul_fields)
DESCRIPTOR(MatmulPreference, preference, preference_fields)

/* --- handles ------------------------------------------------------------------------------------------------------ */

/* A cublasHandle_t is also valid as a cublasLtHandle_t, so the handle has no state. */
UM_CALL(cublasLtCreate, void **handle)
{
	if (!handle)
		return UM_BLAS_INVALID_VALUE;
	if (um_libs_open())
		return UM_BLAS_NOT_INITIALIZED;
	*handle = malloc(1);
	return *handle ? UM_BLAS_OK : UM_BLAS_ALLOC_FAILED;
}

UM_CALL(cublasLtDestroy, void *handle)
{
	free(handle);
	return handle ? UM_BLAS_OK : UM_BLAS_NOT_INITIALIZED;
}

UM_EXPORT size_t cublasLtGetVersion(void);
size_t cublasLtGetVersion(void)
{
	return UM_CUDA_MAJOR == 13 ? 130002 : 120402;
}

UM_EXPORT size_t cublasLtGetCudartVersion(void);
size_t cublasLtGetCudartVersion(void)
{
	return UM_CUDA_MAJOR == 13 ? 13000 : 12040;
}

UM_EXPORT const char *cublasLtGetStatusName(int status);
const char *cublasLtGetStatusName(int status)
{
	return um_blas_status_name(status);
}

UM_EXPORT const char *cublasLtGetStatusString(int status);
const char *cublasLtGetStatusString(int status)
{
	return um_blas_status_text(status);
}

/* --- the product -------------------------------------------------------------------------------------------------- */

struct call {
	struct um_sproduct p; /* of column-major matrices; alpha, beta, addresses are set at execution */
	struct um_factor alpha, beta;
	const float *a, *b, *c;
	float *d;
	int64_t ldc, stride_a, stride_b, stride_c, stride_d, batch;
	struct matmul m;
	int by_row; /* D is computed as its transpose: a bias then belongs to a column */
};

#define GELU_FACTOR 0.7978845608028654f /* sqrt(2 / pi) */
#define GELU_CUBE 0.044715f

static float gelu(float x)
{
	return 0.5f * x * (1 + tanhf(GELU_FACTOR * (x + GELU_CUBE * x * x * x)));
}

static float gelu_slope(float x)
{
	float t = tanhf(GELU_FACTOR * (x + GELU_CUBE * x * x * x));

	return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * GELU_FACTOR * (1 + 3 * GELU_CUBE * x * x);
}

static void follow(const struct call *g, float *d, int64_t batch)
{
	const float *bias = g->m.epilogue & BIAS ? (const float *)g->m.bias + batch * g->m.bias_stride : NULL;
	float *aux = g->m.aux ? (float *)g->m.aux + batch * g->m.aux_stride : NULL;

	for (int64_t j = 0; j < g->p.n; j++)
		for (int64_t i = 0; i < g->p.m; i++) {
			float x = d[i + j * g->p.ldc] + (bias ? bias[g->by_row ? j : i] : 0);

			if (g->m.epilogue & GELU && g->m.epilogue & AUX)
				aux[i + j * g->m.aux_ld] = x;
			if (g->m.epilogue & DGELU)
				x *= gelu_slope(aux[i + j * g->m.aux_ld]);
			if (g->m.epilogue & GELU)
				x = gelu(x);
			if (g->m.epilogue & RELU && !(x > 0))
				x = 0;
			d[i + j * g->p.ldc] = x;
		}
}

static void run(void *arg)
{
	const struct call *g = arg;
	struct um_sproduct p = g->p;

	p.alpha = (float)um_factor_value(&g->alpha);
	p.beta = (float)um_factor_value(&g->beta);
	for (int64_t l = 0; l < g->batch; l++) {
		const float *c = g->c + l * g->stride_c;

		p.a = g->a + l * g->stride_a;
		p.b = g->b + l * g->stride_b;
		p.c = g->d + l * g->stride_d;
		for (int64_t j = 0; p.beta != 0 && c != p.c && j < p.n; j++)
			memcpy(p.c + j * p.ldc, c + j * g->ldc, (size_t)p.m * sizeof *c);
		um_sproduct(&p);
		if (g->m.epilogue & (RELU | BIAS | GELU | DGELU))
			follow(g, p.c, l);
	}
}

static int supported(const struct matmul *m, const struct layout *l[4])
{
	static const uint32_t known[] = {
		1, RELU, BIAS, RELU | BIAS, GELU, GELU | BIAS, GELU | AUX, GELU | AUX | BIAS, DGELU | AUX};
	int found = 0;

	for (size_t i = 0; i < N(known); i++)
		found |= m->epilogue == known[i];
	for (int i = 0; i < 4; i++)
		if (l[i]->type != UM_F32 || (l[i]->order != BY_COLUMN && l[i]->order != BY_ROW))
			return 0;
	return found && m->compute >= COMPUTE_32F && m->compute <= COMPUTE_32F_FAST_TF32 && m->scale == UM_F32 &&
	       m->pointer_mode >= 0 && m->pointer_mode <= 1 && !m->tc && m->bias_type == UM_F32 &&
	       m->aux_type == UM_F32 && l[2]->order == l[3]->order;
}

static int fits(const struct layout *l)
{
	return l->ld >= (int64_t)(l->order == BY_ROW ? l->cols : l->rows) && l->batch >= 1;
}

/* Converts to matrices by column: a matrix by row is the transpose of one by column. */
static int shape(struct call *g, const struct matmul *m, const struct layout *a, const struct layout *b,
		 const struct layout *d)
{
	int ta = (m->ta != UM_OP_N) != (a->order == BY_ROW), tb = (m->tb != UM_OP_N) != (b->order == BY_ROW);
	uint64_t rows = m->ta ? a->cols : a->rows, sum = m->ta ? a->rows : a->cols;
	uint64_t cols = m->tb ? b->rows : b->cols;

	if (rows != d->rows || cols != d->cols || sum != (m->tb ? b->cols : b->rows))
		return 0;
	g->by_row = d->order == BY_ROW;
	g->p = (struct um_sproduct){.transpose_a = g->by_row ? !tb : ta,
				    .transpose_b = g->by_row ? !ta : tb,
				    .m = (int64_t)(g->by_row ? cols : rows),
				    .n = (int64_t)(g->by_row ? rows : cols),
				    .k = (int64_t)sum,
				    .lda = g->by_row ? b->ld : a->ld,
				    .ldb = g->by_row ? a->ld : b->ld,
				    .ldc = d->ld};
	return 1;
}

static void touch(struct um_libs_kernel *k, const struct call *g)
{
	const struct um_blas_gemm product =
		(struct um_blas_gemm){.transpose_a = g->p.transpose_a,
				      .transpose_b = g->p.transpose_b,
				      .m = g->p.m,
				      .n = g->p.n,
				      .k = g->p.k,
				      .lda = g->p.lda,
				      .ldb = g->p.ldb,
				      .ldc = g->p.ldc,
				      .beta = g->c == g->d ? g->beta : (struct um_factor){0},
				      .a = g->a,
				      .b = g->b,
				      .c = g->d,
				      .stride_a = g->stride_a,
				      .stride_b = g->stride_b,
				      .stride_c = g->stride_d,
				      .batch = g->batch};
	const size_t size = sizeof(float);

	um_blas_gemm_touch(k, &product, size);
	if (!um_factor_is_zero(&g->beta) && g->c != g->d)
		um_libs_touch_matrix(k, g->c, g->p.m, g->p.n * g->batch, g->ldc, size, UM_READ);
	if (g->m.epilogue & BIAS)
		um_libs_touch_vector(k, g->m.bias, g->by_row ? g->p.n : g->p.m, 1, size, UM_READ);
	if (g->m.epilogue & AUX)
		um_libs_touch_matrix(k, g->m.aux, g->p.m, g->p.n * g->batch, g->m.aux_ld, size,
				     g->m.epilogue & GELU ? UM_WRITE : UM_READ);
}

UM_CALL(cublasLtMatmul, void *handle, const struct matmul *m, const void *alpha, const void *a, const struct layout *la,
	const void *b, const struct layout *lb, const void *beta, const void *c, const struct layout *lc, void *d,
	const struct layout *ld, const struct algorithm *algo, void *workspace, size_t workspace_bytes, void *stream)
{
	const struct layout *l[] = {la, lb, lc, ld};
	struct um_libs_kernel k = {.name = "cublasLtMatmul"};
	struct call g;

	(void)algo;
	(void)workspace;
	(void)workspace_bytes;
	if (!handle)
		return UM_BLAS_NOT_INITIALIZED;
	if (!m || !la || !lb || !lc || !ld || !alpha || !beta || !a || !b || !d)
		return UM_BLAS_INVALID_VALUE;
	if (!supported(m, l))
		return UM_BLAS_NOT_SUPPORTED;
	if (!fits(la) || !fits(lb) || !fits(lc) || !fits(ld) || (m->epilogue & BIAS && !m->bias) ||
	    (m->epilogue & AUX && !m->aux))
		return UM_BLAS_INVALID_VALUE;
	g = (struct call){.a = a,
			  .b = b,
			  .c = c,
			  .d = d,
			  .ldc = lc->ld,
			  .stride_a = la->stride,
			  .stride_b = lb->stride,
			  .stride_c = lc->stride,
			  .stride_d = ld->stride,
			  .batch = ld->batch,
			  .m = *m};
	if (!shape(&g, m, la, lb, ld) || lc->rows != ld->rows || lc->cols != ld->cols)
		return UM_BLAS_INVALID_VALUE;
	if (g.by_row) {
		g.a = b;
		g.b = a;
		g.stride_a = lb->stride;
		g.stride_b = la->stride;
	}
	if (!g.p.m || !g.p.n)
		return UM_BLAS_OK;
	g.alpha = um_factor_take(&k, alpha, UM_F32, m->pointer_mode == 1);
	g.beta = um_factor_take(&k, beta, UM_F32, m->pointer_mode == 1);
	if (!um_factor_is_zero(&g.beta) && !c)
		return UM_BLAS_INVALID_VALUE;
	k.flops = 2.0 * (double)g.p.m * (double)g.p.n * (double)g.p.k * (double)g.batch;
	touch(&k, &g);
	return um_blas_status(um_libs_run(stream, &k, run, &g, sizeof g));
}

/* Returns the only algorithm. */
UM_CALL(cublasLtMatmulAlgoGetHeuristic, void *handle, const struct matmul *m, const struct layout *a,
	const struct layout *b, const struct layout *c, const struct layout *d, const struct preference *preference,
	int wanted, struct heuristic *results, int *n)
{
	const struct layout *l[] = {a, b, c, d};

	if (!handle)
		return UM_BLAS_NOT_INITIALIZED;
	if (!m || !a || !b || !c || !d || !preference || wanted < 1 || !results || !n)
		return UM_BLAS_INVALID_VALUE;
	*n = 0;
	if (!supported(m, l))
		return UM_BLAS_NOT_SUPPORTED;
	results[0] = (struct heuristic){.algo.data[0] = 1, .waves = 1};
	*n = 1;
	return UM_BLAS_OK;
}
