/* SPDX-License-Identifier: Apache-2.0
 *
 * work_cg.h - conjugate gradients on the Laplacian of a cube, the matrix in slices
 *
 * As examples/cg.cu, but with a tensor for each slice of the matrix and of the vectors that are used slice by slice.
 * Sums are folded in a fixed order.
 */
#ifndef WORK_CG_H
#define WORK_CG_H

#include "work.h"

enum { CG_WIDTH = 7, CG_PARTS = 1 << 13 };

struct cg_setup {
	double *value, *x, *r, *p;
	int *column;
	long first, rows, side;

	BODY void operator()(long i) const
	{
		long row = first + i, at[3] = {row % side, row / side % side, row / side / side}, step = 1;

		value[i] = 6.01;
		column[i] = (int)row;
		for (int k = 1; k < CG_WIDTH; k++) {
			int axis = (k - 1) / 2, way = k % 2 ? -1 : 1;
			int inside = at[axis] + way >= 0 && at[axis] + way < side;

			value[k * rows + i] = inside ? -1 : 0;
			column[k * rows + i] = (int)(inside ? row + way * step : row);
			step *= k % 2 ? 1 : side;
		}
		x[i] = 0;
		r[i] = p[row] = 1 + row % 7;
	}
};

struct cg_product {
	const double *value, *p;
	const int *column;
	double *q;
	long rows;

	BODY void operator()(long i) const
	{
		double sum = 0;

		for (int k = 0; k < CG_WIDTH; k++)
			sum += value[k * rows + i] * p[column[k * rows + i]];
		q[i] = sum;
	}
};

struct cg_dot {
	const double *a, *b;
	double *part;
	long rows;

	BODY void operator()(long t) const
	{
		double sum = 0;

		for (long i = t; i < rows; i += CG_PARTS)
			sum += a[i] * b[i];
		part[t] = sum;
	}
};

struct cg_fold {
	const double *in;
	double *out;
	long width;

	BODY void operator()(long t) const
	{
		double sum = 0;

		for (long i = 0; i < width; i++)
			sum += in[t * width + i];
		out[t] = sum;
	}
};

struct cg_descend {
	double *x, *r;
	const double *p, *q, *rr, *pq;

	BODY void operator()(long i) const
	{
		double alpha = *rr / *pq;

		x[i] += alpha * p[i];
		r[i] -= alpha * q[i];
	}
};

struct cg_turn {
	double *p;
	const double *r, *now, *next;

	BODY void operator()(long i) const
	{
		p[i] = r[i] + *next / *now * p[i];
	}
};

/* The tensors of one, as its operations know them. */
struct cg_tensors {
	std::vector<int> value, column, x, r, q;
	int p, part, fewer, scalar; /* scalar: r.r by turns, p.q */
	long slices, rows, side;
};

/* Adds the parts of all slices up into a scalar. */
static inline void cg_total(std::vector<struct op> *list, const struct cg_tensors &t, int which)
{
	const long fewer = 128, width = t.slices * CG_PARTS / fewer;
	const int part = t.part, sums = t.fewer, scalar = t.scalar;

	list->push_back({"fold", {{part, R}, {sums, W}}, 0, [=](const struct work &k, stream_t s) {
				 each(s, fewer, (struct cg_fold){k.at<double>(part), k.at<double>(sums), width});
			 }});
	list->push_back({"total", {{sums, R}, {scalar, RW}}, 0, [=](const struct work &k, stream_t s) {
				 each(s, 1, (struct cg_fold){k.at<double>(sums), k.at<double>(scalar) + which, fewer});
			 }});
}

static inline struct op cg_dot_op(const struct cg_tensors &t, int a, long a_from, int b, long slice)
{
	const int part = t.part;
	const long rows = t.rows;

	return {"dot", {{a, R}, {b, R}, {part, RW}}, 2.0 * (double)rows, [=](const struct work &k, stream_t s) {
			each(s, CG_PARTS,
			     (struct cg_dot){k.at<double>(a) + a_from, k.at<double>(b),
					     k.at<double>(part) + slice * CG_PARTS, rows});
		}};
}

static inline void cg_start(struct work *w, const struct cg_tensors &t)
{
	for (long i = 0; i < t.slices; i++) {
		const int value = t.value[i], column = t.column[i], x = t.x[i], r = t.r[i], p = t.p;
		const long rows = t.rows, side = t.side;

		w->setup.push_back({"setup",
				    {{value, W}, {column, W}, {x, W}, {r, W}, {p, RW}},
				    0,
				    [=](const struct work &k, stream_t s) {
					    each(s, rows,
						 (struct cg_setup){k.at<double>(value), k.at<double>(x),
								   k.at<double>(r), k.at<double>(p), k.at<int>(column),
								   i * rows, rows, side});
				    }});
		w->setup.push_back(cg_dot_op(t, r, 0, r, i));
	}
	cg_total(&w->setup, t, 0);
}

static inline void cg_step(std::vector<struct op> *list, const struct cg_tensors &t, int now)
{
	const int p = t.p, scalar = t.scalar, next = 1 - now;
	const long rows = t.rows;

	for (long i = 0; i < t.slices; i++) {
		const int value = t.value[i], column = t.column[i], q = t.q[i];

		list->push_back({"product",
				 {{value, R}, {column, R}, {p, R}, {q, W}},
				 14.0 * (double)rows,
				 [=](const struct work &k, stream_t s) {
					 each(s, rows,
					      (struct cg_product){k.at<double>(value), k.at<double>(p),
								  k.at<int>(column), k.at<double>(q), rows});
				 }});
		list->push_back(cg_dot_op(t, p, i * rows, q, i));
	}
	cg_total(list, t, 2);
	for (long i = 0; i < t.slices; i++) {
		const int x = t.x[i], r = t.r[i], q = t.q[i];

		list->push_back({"descend",
				 {{x, RW}, {r, RW}, {p, R}, {q, R}, {scalar, R}},
				 4.0 * (double)rows,
				 [=](const struct work &k, stream_t s) {
					 each(s, rows,
					      (struct cg_descend){k.at<double>(x), k.at<double>(r),
								  k.at<double>(p) + i * rows, k.at<double>(q),
								  k.at<double>(scalar) + now,
								  k.at<double>(scalar) + 2});
				 }});
		list->push_back(cg_dot_op(t, r, 0, r, i));
	}
	cg_total(list, t, next);
	for (long i = 0; i < t.slices; i++) {
		const int r = t.r[i];

		list->push_back({"turn",
				 {{p, RW}, {r, R}, {scalar, R}},
				 2.0 * (double)rows,
				 [=](const struct work &k, stream_t s) {
					 each(s, rows,
					      (struct cg_turn){k.at<double>(p) + i * rows, k.at<double>(r),
							       k.at<double>(scalar) + now,
							       k.at<double>(scalar) + next});
				 }});
	}
}

/* A cube of `side` points a side, `slices` slices (a divisor of side cubed). */
static inline struct work work_cg(long slices, long side)
{
	struct cg_tensors t;
	struct work w;

	w.name = "cg";
	t.slices = slices;
	t.side = side;
	t.rows = side * side * side / slices;
	for (long i = 0; i < slices; i++) {
		std::string n = std::to_string(i);

		t.value.push_back(w.add("value" + n, t.rows * CG_WIDTH * sizeof(double), UMADV_PARAM));
		t.column.push_back(w.add("column" + n, t.rows * CG_WIDTH * sizeof(int), UMADV_PARAM));
		t.x.push_back(w.add("x" + n, t.rows * sizeof(double), UMADV_OTHER));
		t.r.push_back(w.add("r" + n, t.rows * sizeof(double), UMADV_OTHER));
		t.q.push_back(w.add("q" + n, t.rows * sizeof(double), UMADV_WORKSPACE, true));
	}
	t.p = w.add("p", slices * t.rows * sizeof(double), UMADV_OTHER);
	t.part = w.add("part", slices * CG_PARTS * sizeof(double), UMADV_OTHER);
	t.fewer = w.add("fewer", 128 * sizeof(double), UMADV_OTHER);
	t.scalar = w.add("scalar", 3 * sizeof(double), UMADV_OTHER);
	cg_start(&w, t);
	cg_step(&w.step[0], t, 0);
	cg_step(&w.step[1], t, 1);
	return w;
}

#endif
