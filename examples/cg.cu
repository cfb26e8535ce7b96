/* SPDX-License-Identifier: Apache-2.0
 *
 * cg.cu - conjugate gradients in three dimensions, with a matrix that need not fit
 *
 * Solves A x = b for the Laplacian of a cube of `size` points a side, A a sparse matrix in slices: a slice holds seven
 * values and columns for each of its rows, one after the other, so an operation on it takes one range of each. Sums are
 * folded in a fixed order, without atomics: the result is the same in every run, to the last bit.
 *
 *     cg [--size 192] [--iterations 30] [--budget MIB] [--plain]
 */
#include "dual.h"

#include <math.h>

enum { SLICES = 8, WIDTH = 7, PARTS = 1 << 14, FEWER = 256 };

struct cg {
	struct dual d;
	long n, rows; /* unknowns, and those of a slice */
	int *column;
	double *value, *x, *r, *p, *q;
	double *part, *fewer; /* sums over parts of the slices; in the same tensor sums of those, */
	double *rr[2], *pq; /* r.r now and next, p.q */
};

/* --- kernels ----------------------------------------------------------------------------------------------------- */

struct setup {
	double *value, *x, *r, *p;
	int *column;
	long first, rows, side;

	__host__ __device__ void operator()(long i) const
	{
		long row = first + i, at[3] = {row % side, row / side % side, row / side / side}, step = 1;

		value[i] = 6.01;
		column[i] = (int)row;
		for (int k = 1; k < WIDTH; k++) {
			int axis = (k - 1) / 2, way = k % 2 ? -1 : 1;
			int inside = at[axis] + way >= 0 && at[axis] + way < side;

			value[k * rows + i] = inside ? -1 : 0;
			column[k * rows + i] = (int)(inside ? row + way * step : row);
			step *= k % 2 ? 1 : side;
		}
		x[row] = 0;
		r[row] = p[row] = 1 + row % 7; /* b - A 0 */
	}
};

struct product {
	const double *value, *p;
	const int *column;
	double *q;
	long rows;

	__host__ __device__ void operator()(long i) const
	{
		double sum = 0;

		for (int k = 0; k < WIDTH; k++)
			sum += value[k * rows + i] * p[column[k * rows + i]];
		q[i] = sum;
	}
};

struct dot {
	const double *a, *b;
	double *part;
	long rows;

	__host__ __device__ void operator()(long t) const
	{
		double sum = 0;

		for (long i = t; i < rows; i += PARTS)
			sum += a[i] * b[i];
		part[t] = sum;
	}
};

struct fold {
	const double *in;
	double *out;
	int width;

	__host__ __device__ void operator()(long t) const
	{
		double sum = 0;

		for (int i = 0; i < width; i++)
			sum += in[t * width + i];
		out[t] = sum;
	}
};

struct descend { /* x += alpha p, r -= alpha q */
	double *x, *r;
	const double *p, *q, *rr, *pq;

	__host__ __device__ void operator()(long i) const
	{
		double alpha = *rr / *pq;

		x[i] += alpha * p[i];
		r[i] -= alpha * q[i];
	}
};

struct turn { /* p = r + beta p */
	double *p;
	const double *r, *now, *next;

	__host__ __device__ void operator()(long i) const
	{
		p[i] = r[i] + *next / *now * p[i];
	}
};

/* --- the solver -------------------------------------------------------------------------------------------------- */

/* Adds up what dot() left of all slices. */
static void total(struct cg *c, double *sum)
{
	USES(&c->d, 0, "total", UMADV_UPDATE(c->part));
	each(0, FEWER, fold{c->part, c->fewer, SLICES * PARTS / FEWER});
	each(0, 1, fold{c->fewer, sum, FEWER});
}

static void start(struct cg *c)
{
	for (long s = 0, at = 0; s < SLICES; s++, at += c->rows) {
		double *value = c->value + at * WIDTH;
		int *column = c->column + at * WIDTH;
		size_t bytes = c->rows * sizeof(double);

		USES(&c->d, 0, "setup", UMADV_WRITE_RANGE(value, bytes * WIDTH),
		     UMADV_WRITE_RANGE(column, bytes * WIDTH / 2), UMADV_WRITE_RANGE(c->x + at, bytes),
		     UMADV_WRITE_RANGE(c->r + at, bytes), UMADV_WRITE_RANGE(c->p + at, bytes), UMADV_UPDATE(c->part));
		each(0, c->rows, setup{value, c->x, c->r, c->p, column, at, c->rows, c->d.size});
		each(0, PARTS, dot{c->r + at, c->r + at, c->part + s * PARTS, c->rows});
	}
	total(c, c->rr[0]);
}

static void iteration(struct cg *c, double *now, double *next)
{
	size_t bytes = c->rows * sizeof(double);

	dual_iter(&c->d);
	for (long s = 0, at = 0; s < SLICES; s++, at += c->rows) {
		const double *value = c->value + at * WIDTH;
		const int *column = c->column + at * WIDTH;

		USES(&c->d, 0, "product", UMADV_READ_RANGE(value, bytes * WIDTH),
		     UMADV_READ_RANGE(column, bytes * WIDTH / 2), UMADV_READ(c->p), UMADV_WRITE_RANGE(c->q + at, bytes),
		     UMADV_UPDATE(c->part));
		each(0, c->rows, product{value, c->p, column, c->q + at, c->rows});
		each(0, PARTS, dot{c->p + at, c->q + at, c->part + s * PARTS, c->rows});
	}
	total(c, c->pq);
	for (long s = 0, at = 0; s < SLICES; s++, at += c->rows) {
		USES(&c->d, 0, "descend", UMADV_UPDATE_RANGE(c->x + at, bytes), UMADV_UPDATE_RANGE(c->r + at, bytes),
		     UMADV_READ_RANGE(c->p + at, bytes), UMADV_READ_RANGE(c->q + at, bytes), UMADV_UPDATE(c->part));
		each(0, c->rows, descend{c->x + at, c->r + at, c->p + at, c->q + at, now, c->pq});
		each(0, PARTS, dot{c->r + at, c->r + at, c->part + s * PARTS, c->rows});
	}
	total(c, next);
	USES(&c->d, 0, "turn", UMADV_UPDATE(c->p), UMADV_READ(c->r), UMADV_READ(c->part));
	each(0, c->n, turn{c->p, c->r, now, next});
}

int main(int argc, char **argv)
{
	struct cg c = {};

	c.d = dual_open("cg", 192, 30, argc, argv);
	c.d.size = (c.d.size + SLICES - 1) / SLICES * SLICES;
	c.n = c.d.size * c.d.size * c.d.size;
	c.rows = c.n / SLICES;
	c.value = dual_alloc<double>(&c.d, c.n * WIDTH, "A.value", UMADV_PARAM);
	c.column = dual_alloc<int>(&c.d, c.n * WIDTH, "A.column", UMADV_PARAM);
	c.x = dual_alloc<double>(&c.d, c.n, "x", UMADV_OTHER);
	c.r = dual_alloc<double>(&c.d, c.n, "r", UMADV_OTHER);
	c.p = dual_alloc<double>(&c.d, c.n, "p", UMADV_OTHER);
	c.q = dual_alloc<double>(&c.d, c.n, "q", UMADV_OTHER);
	c.part = dual_alloc<double>(&c.d, SLICES * PARTS + FEWER + 3, "part", UMADV_OTHER);
	c.fewer = c.part + SLICES * PARTS;
	c.pq = c.fewer + FEWER;
	c.rr[0] = c.pq + 1;
	c.rr[1] = c.pq + 2;
	dual_transient(&c.d, c.q); /* written before it is read, in every iteration */
	start(&c);
	for (int i = 0; i < c.d.iterations; i++)
		iteration(&c, c.rr[i % 2], c.rr[1 - i % 2]);
	check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
	return dual_close(&c.d, dual_checksum(c.x, c.n * sizeof(double)), sqrt(*c.rr[c.d.iterations % 2]));
}
