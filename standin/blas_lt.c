/* SPDX-License-Identifier: Apache-2.0
 *
 * blas_lt.c - cuBLASLt: a product of matrices as a call with descriptors
 *
 * Single precision and 16-bit types; matrices by column or by row, batches, and epilogues: a bias, ReLU, GELU (its tanh
 * form) with or without the value before it, GELU's derivative.
 */
#include "standin/blas.h"

#include <math.h>
#include <stdlib.h>

#define COMPUTE_16F 64
#define COMPUTE_16F_PEDANTIC 65
#define COMPUTE_32F 68
#define COMPUTE_32F_PEDANTIC 69
#define COMPUTE_32F_FAST_TF32 77

enum epilogue { RELU = 2, BIAS = 4, GELU = 32, DGELU = 64, AUX = 128 };
enum order { BY_COLUMN, BY_ROW };

#define SAME_AS_D (-1) /* type of a bias or of the value before GELU */

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

struct preference { /* kept, but there is one algorithm */
	uint64_t workspace;
	uint32_t search, reductions, alignment_a, alignment_b, alignment_c, alignment_d;
	float waves;
	uint64_t implementations;
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

static const struct field preference_fields[] = {
	[0] = FIELD(preference, search),	  [1] = FIELD(preference, workspace),
	[3] = FIELD(preference, reductions),	  [5] = FIELD(preference, alignment_a),
	[6] = FIELD(preference, alignment_b),	  [7] = FIELD(preference, alignment_c),
	[8] = FIELD(preference, alignment_d),	  [9] = FIELD(preference, waves),
	[12] = FIELD(preference, implementations)};

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
	const struct matmul m = {
		.compute = compute, .scale = scale, .epilogue = 1, .bias_type = SAME_AS_D, .aux_type = SAME_AS_D};

	return create(out, &m, sizeof m);
}

UM_CALL(cublasLtMatmulDescInit_internal, void *out, size_t size, int compute, int scale)
{
	const struct matmul m = {
		.compute = compute, .scale = scale, .epilogue = 1, .bias_type = SAME_AS_D, .aux_type = SAME_AS_D};

	return init(out, size, &m, sizeof m);
}

/* As the header says. */
static const struct preference any = {.reductions = 7,
				      .alignment_a = 256,
				      .alignment_b = 256,
				      .alignment_c = 256,
				      .alignment_d = 256,
				      .implementations = UINT64_MAX};

UM_CALL(cublasLtMatmulPreferenceCreate, void **out)
{
	return create(out, &any, sizeof any);
}

UM_CALL(cublasLtMatmulPreferenceInit_internal, void *out, size_t size)
{
	return init(out, size, &any, sizeof any);
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
	struct um_mixed p; /* of column-major matrices; factors, addresses of a batch are set at execution */
	struct um_factor alpha, beta;
	int64_t stride_a, stride_b, stride_c, stride_d, batch;
	struct matmul m; /* with the types of bias and aux */
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

struct element { /* what follow knows of it */
	const struct call *g;
	int64_t batch;
};

static float follow(const void *arg, float x, int64_t i, int64_t j)
{
	const struct element *e = arg;
	const struct matmul *m = &e->g->m;
	int64_t aux = i + j * m->aux_ld + e->batch * m->aux_stride;

	if (m->epilogue & BIAS)
		x += um_type_load(m->bias, m->bias_type, (e->g->by_row ? j : i) + e->batch * m->bias_stride);
	if (m->epilogue & GELU && m->epilogue & AUX)
		um_type_store(m->aux, m->aux_type, aux, x);
	if (m->epilogue & DGELU)
		x *= gelu_slope(um_type_load(m->aux, m->aux_type, aux));
	if (m->epilogue & GELU)
		x = gelu(x);
	return m->epilogue & RELU && !(x > 0) ? 0 : x;
}

static void run(void *arg)
{
	const struct call *g = arg;
	const int64_t size_ab = (int64_t)um_type_size(g->p.type_ab), size_c = (int64_t)um_type_size(g->p.type_c);

	for (int64_t l = 0; l < g->batch; l++) {
		const struct element e = {g, l};
		struct um_mixed p = g->p;

		p.alpha = (float)um_factor_value(&g->alpha);
		p.beta = (float)um_factor_value(&g->beta);
		p.a = (const char *)g->p.a + l * g->stride_a * size_ab;
		p.b = (const char *)g->p.b + l * g->stride_b * size_ab;
		p.c = g->p.c ? (const char *)g->p.c + l * g->stride_c * size_c : NULL;
		p.d = (char *)g->p.d + l * g->stride_d * size_c;
		p.follow = g->m.epilogue & (RELU | BIAS | GELU | DGELU) ? follow : NULL;
		p.arg = &e;
		um_mixed_product(&p);
	}
}

/* May A and B, and C and D, have these types? */
static int types_go(const struct matmul *m, int ab, int cd)
{
	if (m->compute == COMPUTE_16F || m->compute == COMPUTE_16F_PEDANTIC)
		return m->scale == UM_F16 && ab == UM_F16 && cd == UM_F16;
	if (m->compute < COMPUTE_32F || m->compute > COMPUTE_32F_FAST_TF32 || m->scale != UM_F32)
		return 0;
	if (m->compute <= COMPUTE_32F_PEDANTIC && (ab == UM_F16 || ab == UM_BF16) && cd == ab)
		return 1;
	return cd == UM_F32 && (ab == UM_F32 || (m->compute <= COMPUTE_32F_PEDANTIC && um_type_size(ab)));
}

/* The type of a bias, or of the value before GELU. */
static int other_type(int type, int d)
{
	return type == SAME_AS_D ? d : type;
}

static int supported(const struct matmul *m, const struct layout *l[4])
{
	static const uint32_t known[] = {
		1, RELU, BIAS, RELU | BIAS, GELU, GELU | BIAS, GELU | AUX, GELU | AUX | BIAS, DGELU | AUX};
	int found = 0;

	for (size_t i = 0; i < N(known); i++)
		found |= m->epilogue == known[i];
	for (int i = 0; i < 4; i++)
		if (l[i]->order != BY_COLUMN && l[i]->order != BY_ROW)
			return 0;
	return found && l[0]->type == l[1]->type && l[2]->type == l[3]->type && types_go(m, l[0]->type, l[3]->type) &&
	       m->pointer_mode >= 0 && m->pointer_mode <= 1 && !m->tc && l[2]->order == l[3]->order &&
	       um_type_size(other_type(m->bias_type, l[3]->type)) && um_type_size(other_type(m->aux_type, l[3]->type));
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
	g->p.transpose_a = g->by_row ? !tb : ta;
	g->p.transpose_b = g->by_row ? !ta : tb;
	g->p.m = (int64_t)(g->by_row ? cols : rows);
	g->p.n = (int64_t)(g->by_row ? rows : cols);
	g->p.k = (int64_t)sum;
	g->p.lda = g->by_row ? b->ld : a->ld;
	g->p.ldb = g->by_row ? a->ld : b->ld;
	g->p.ldd = d->ld;
	return 1;
}

static void touch(struct um_libs_kernel *k, const struct call *g)
{
	const struct um_mixed *p = &g->p;
	const struct um_blas_gemm product =
		(struct um_blas_gemm){.transpose_a = p->transpose_a,
				      .transpose_b = p->transpose_b,
				      .m = p->m,
				      .n = p->n,
				      .k = p->k,
				      .lda = p->lda,
				      .ldb = p->ldb,
				      .ldc = p->ldd,
				      .beta = p->c == p->d ? g->beta : (struct um_factor){0},
				      .a = p->a,
				      .b = p->b,
				      .c = p->d,
				      .stride_a = g->stride_a,
				      .stride_b = g->stride_b,
				      .stride_c = g->stride_d,
				      .batch = g->batch,
				      .size_ab = um_type_size(p->type_ab),
				      .size_c = um_type_size(p->type_c)};

	um_blas_gemm_touch(k, &product);
	if (!um_factor_is_zero(&g->beta) && p->c != p->d)
		um_libs_touch_matrix(k, p->c, p->m, p->n * g->batch, p->ldc, product.size_c, UM_READ);
	if (g->m.epilogue & BIAS)
		um_libs_touch_vector(k, g->m.bias, g->by_row ? p->n : p->m, 1, um_type_size(g->m.bias_type), UM_READ);
	if (g->m.epilogue & AUX)
		um_libs_touch_matrix(k, g->m.aux, p->m, p->n * g->batch, g->m.aux_ld, um_type_size(g->m.aux_type),
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
	g = (struct call){.p = {.type_ab = la->type, .type_c = ld->type, .ldc = lc->ld, .a = a, .b = b, .c = c, .d = d},
			  .stride_a = la->stride,
			  .stride_b = lb->stride,
			  .stride_c = lc->stride,
			  .stride_d = ld->stride,
			  .batch = ld->batch,
			  .m = *m};
	g.m.bias_type = other_type(m->bias_type, ld->type);
	g.m.aux_type = other_type(m->aux_type, ld->type);
	if (!shape(&g, m, la, lb, ld) || lc->rows != ld->rows || lc->cols != ld->cols)
		return UM_BLAS_INVALID_VALUE;
	if (g.by_row) {
		g.p.a = b;
		g.p.b = a;
		g.stride_a = lb->stride;
		g.stride_b = la->stride;
	}
	if (!g.p.m || !g.p.n)
		return UM_BLAS_OK;
	g.alpha = um_factor_take(&k, alpha, m->scale, m->pointer_mode == 1);
	g.beta = um_factor_take(&k, beta, m->scale, m->pointer_mode == 1);
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
