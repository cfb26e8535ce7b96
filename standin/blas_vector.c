/* SPDX-License-Identifier: Apache-2.0
 *
 * blas_vector.c - cuBLAS: functions of vectors
 *
 * Sums are kept in double. A result on the host makes the call wait for it.
 */
#include "standin/blas.h"

#include <math.h>

struct vectors {
	int64_t n, incx, incy;
	const um_real *x;
	um_real *y;
	struct um_factor alpha, beta;
	void *result;
};

/* A vector with a negative step begins at its last element. */
static int64_t first(int64_t n, int64_t inc)
{
	return inc < 0 ? (1 - n) * inc : 0;
}

static int run(struct um_blas *h, struct um_libs_kernel *k, void (*fn)(void *arg), const struct vectors *v)
{
	return um_blas_status(um_libs_run(h->stream, k, fn, v, sizeof *v));
}

/* The same for a function with a result. */
static int run_result(struct um_blas *h, struct um_libs_kernel *k, void (*fn)(void *arg), const struct vectors *v,
		      size_t size)
{
	int status;

	if (h->device_scalars)
		um_libs_touch(k, v->result, size, size, UM_WRITE);
	else
		memset(v->result, 0, size); /* result without a computation */
	status = run(h, k, fn, v);
	return status || h->device_scalars ? status : um_blas_status(um_libs_wait(h->stream));
}

/* --- two vectors -------------------------------------------------------------------------------------------------- */

static void dot(void *arg)
{
	const struct vectors *v = arg;
	const um_real *x = v->x + first(v->n, v->incx), *y = v->y + first(v->n, v->incy);
	double part[4] = {0}; /* of every fourth element, as independent chains */
	int64_t i;

	for (i = 0; v->incx == 1 && v->incy == 1 && i + 4 <= v->n; i += 4)
		for (int j = 0; j < 4; j++)
			part[j] += (double)x[i + j] * (double)y[i + j];
	for (; i < v->n; i++)
		part[0] += (double)x[i * v->incx] * (double)y[i * v->incy];
	*(um_real *)v->result = (um_real)(part[0] + part[1] + (part[2] + part[3]));
}

UM_CALL(UM_S(dot_v2), struct um_blas *h, int n, const um_real *x, int incx, const um_real *y, int incy, um_real *result)
{
	struct vectors v = {.n = n, .incx = incx, .incy = incy, .x = x, .y = (um_real *)(uintptr_t)y, .result = result};
	struct um_libs_kernel k = {.name = UM_NAME("dot"), .flops = 2.0 * n};

	if (!h || !result)
		return h ? UM_BLAS_INVALID_VALUE : UM_BLAS_NOT_INITIALIZED;
	um_libs_touch_vector(&k, x, n, incx, sizeof *x, UM_READ);
	if (y != x || incy != incx)
		um_libs_touch_vector(&k, y, n, incy, sizeof *y, UM_READ);
	return run_result(h, &k, dot, &v, sizeof *result);
}

static void axpy(void *arg)
{
	const struct vectors *v = arg;
	const um_real *x = v->x + first(v->n, v->incx), alpha = (um_real)um_factor_value(&v->alpha);
	um_real *y = v->y + first(v->n, v->incy);

	for (int64_t i = 0; i < v->n; i++)
		y[i * v->incy] += alpha * x[i * v->incx];
}

UM_CALL(UM_S(axpy_v2), struct um_blas *h, int n, const um_real *alpha, const um_real *x, int incx, um_real *y, int incy)
{
	struct vectors v = {.n = n, .incx = incx, .incy = incy, .x = x, .y = y};
	struct um_libs_kernel k = {.name = UM_NAME("axpy"), .flops = 2.0 * n};

	if (!h || !alpha)
		return h ? UM_BLAS_INVALID_VALUE : UM_BLAS_NOT_INITIALIZED;
	if (n <= 0)
		return UM_BLAS_OK;
	v.alpha = um_factor_take(&k, alpha, UM_REAL_TYPE, h->device_scalars);
	um_libs_touch_vector(&k, x, n, incx, sizeof *x, UM_READ);
	um_libs_touch_vector(&k, y, n, incy, sizeof *y, UM_UPDATE);
	return run(h, &k, axpy, &v);
}

static void copy(void *arg)
{
	const struct vectors *v = arg;
	const um_real *x = v->x + first(v->n, v->incx);
	um_real *y = v->y + first(v->n, v->incy);

	for (int64_t i = 0; i < v->n; i++)
		y[i * v->incy] = x[i * v->incx];
}

UM_CALL(UM_S(copy_v2), struct um_blas *h, int n, const um_real *x, int incx, um_real *y, int incy)
{
	struct vectors v = {.n = n, .incx = incx, .incy = incy, .x = x, .y = y};
	struct um_libs_kernel k = {.name = UM_NAME("copy")};

	if (!h)
		return UM_BLAS_NOT_INITIALIZED;
	if (n <= 0)
		return UM_BLAS_OK;
	um_libs_touch_vector(&k, x, n, incx, sizeof *x, UM_READ);
	um_libs_touch_vector(&k, y, n, incy, sizeof *y, UM_WRITE);
	return run(h, &k, copy, &v);
}

static void swap(void *arg)
{
	const struct vectors *v = arg;
	um_real *x = (um_real *)(uintptr_t)v->x + first(v->n, v->incx), *y = v->y + first(v->n, v->incy);

	for (int64_t i = 0; i < v->n; i++) {
		um_real was = x[i * v->incx];

		x[i * v->incx] = y[i * v->incy];
		y[i * v->incy] = was;
	}
}

UM_CALL(UM_S(swap_v2), struct um_blas *h, int n, um_real *x, int incx, um_real *y, int incy)
{
	struct vectors v = {.n = n, .incx = incx, .incy = incy, .x = x, .y = y};
	struct um_libs_kernel k = {.name = UM_NAME("swap")};

	if (!h)
		return UM_BLAS_NOT_INITIALIZED;
	if (n <= 0)
		return UM_BLAS_OK;
	um_libs_touch_vector(&k, x, n, incx, sizeof *x, UM_UPDATE);
	um_libs_touch_vector(&k, y, n, incy, sizeof *y, UM_UPDATE);
	return run(h, &k, swap, &v);
}

static void rot(void *arg)
{
	const struct vectors *v = arg;
	um_real *x = (um_real *)(uintptr_t)v->x + first(v->n, v->incx), *y = v->y + first(v->n, v->incy);
	um_real c = (um_real)um_factor_value(&v->alpha), s = (um_real)um_factor_value(&v->beta);

	for (int64_t i = 0; i < v->n; i++) {
		um_real a = x[i * v->incx], b = y[i * v->incy];

		x[i * v->incx] = c * a + s * b;
		y[i * v->incy] = c * b - s * a;
	}
}

UM_CALL(UM_S(rot_v2), struct um_blas *h, int n, um_real *x, int incx, um_real *y, int incy, const um_real *c,
	const um_real *s)
{
	struct vectors v = {.n = n, .incx = incx, .incy = incy, .x = x, .y = y};
	struct um_libs_kernel k = {.name = UM_NAME("rot"), .flops = 6.0 * n};

	if (!h || !c || !s)
		return h ? UM_BLAS_INVALID_VALUE : UM_BLAS_NOT_INITIALIZED;
	if (n <= 0)
		return UM_BLAS_OK;
	v.alpha = um_factor_take(&k, c, UM_REAL_TYPE, h->device_scalars);
	v.beta = um_factor_take(&k, s, UM_REAL_TYPE, h->device_scalars);
	um_libs_touch_vector(&k, x, n, incx, sizeof *x, UM_UPDATE);
	um_libs_touch_vector(&k, y, n, incy, sizeof *y, UM_UPDATE);
	return run(h, &k, rot, &v);
}

/* --- one vector: nothing is done where the step is not positive --------------------------------------------------- */

static void scal(void *arg)
{
	const struct vectors *v = arg;
	um_real alpha = (um_real)um_factor_value(&v->alpha);

	for (int64_t i = 0; i < v->n; i++)
		v->y[i * v->incy] *= alpha;
}

UM_CALL(UM_S(scal_v2), struct um_blas *h, int n, const um_real *alpha, um_real *x, int incx)
{
	struct vectors v = {.n = n, .incy = incx, .y = x};
	struct um_libs_kernel k = {.name = UM_NAME("scal"), .flops = n};

	if (!h || !alpha)
		return h ? UM_BLAS_INVALID_VALUE : UM_BLAS_NOT_INITIALIZED;
	if (n <= 0 || incx <= 0)
		return UM_BLAS_OK;
	v.alpha = um_factor_take(&k, alpha, UM_REAL_TYPE, h->device_scalars);
	um_libs_touch_vector(&k, x, n, incx, sizeof *x, UM_UPDATE);
	return run(h, &k, scal, &v);
}

static int reduce(struct um_blas *h, const char *name, void (*fn)(void *arg), int n, const um_real *x, int incx,
		  void *result, size_t size)
{
	struct vectors v = {.n = incx > 0 ? n : 0, .incx = incx, .x = x, .result = result};
	struct um_libs_kernel k = {.name = name, .flops = 2.0 * n};

	if (!h || !result)
		return h ? UM_BLAS_INVALID_VALUE : UM_BLAS_NOT_INITIALIZED;
	um_libs_touch_vector(&k, x, v.n, incx, sizeof *x, UM_READ);
	return run_result(h, &k, fn, &v, size);
}

/* Scaled by the largest, so that no square overflows or underflows. */
static void nrm2(void *arg)
{
	const struct vectors *v = arg;
	double sum = 0, most = 0;

	for (int64_t i = 0; i < v->n; i++)
		most = fmax(most, fabs((double)v->x[i * v->incx]));
	if (UM_REAL_TYPE == UM_F32)
		most = 1; /* a double holds any square of a float */
	for (int64_t i = 0; i < v->n && most > 0; i++) {
		double e = (double)v->x[i * v->incx] / most;

		sum += e * e;
	}
	*(um_real *)v->result = (um_real)(most * sqrt(sum));
}

UM_CALL(UM_S(nrm2_v2), struct um_blas *h, int n, const um_real *x, int incx, um_real *result)
{
	return reduce(h, UM_NAME("nrm2"), nrm2, n, x, incx, result, sizeof *result);
}

static void asum(void *arg)
{
	const struct vectors *v = arg;
	double sum = 0;

	for (int64_t i = 0; i < v->n; i++)
		sum += fabs((double)v->x[i * v->incx]);
	*(um_real *)v->result = (um_real)sum;
}

UM_CALL(UM_S(asum_v2), struct um_blas *h, int n, const um_real *x, int incx, um_real *result)
{
	return reduce(h, UM_NAME("asum"), asum, n, x, incx, result, sizeof *result);
}

/* The first of the largest (sign 1) or smallest (-1), counted from 1; 0: none. */
static void extreme(const struct vectors *v, int sign)
{
	int64_t best = 0;

	for (int64_t i = 1; i < v->n; i++)
		if (sign * fabs((double)v->x[i * v->incx]) > sign * fabs((double)v->x[best * v->incx]))
			best = i;
	*(int *)v->result = v->n > 0 ? (int)best + 1 : 0;
}

static void amax(void *arg)
{
	extreme(arg, 1);
}

static void amin(void *arg)
{
	extreme(arg, -1);
}

UM_CALL(UM_I(amax_v2), struct um_blas *h, int n, const um_real *x, int incx, int *result)
{
	return reduce(h, UM_I_NAME("amax"), amax, n, x, incx, result, sizeof *result);
}

UM_CALL(UM_I(amin_v2), struct um_blas *h, int n, const um_real *x, int incx, int *result)
{
	return reduce(h, UM_I_NAME("amin"), amin, n, x, incx, result, sizeof *result);
}
