/* SPDX-License-Identifier: Apache-2.0
 *
 * work_product.h - a matrix of most of the memory times a vector, and vectors that are used beside it
 *
 * With less memory than the matrix the product exceeds the budget alone. It reads each number of the matrix once.
 */
#ifndef WORK_PRODUCT_H
#define WORK_PRODUCT_H

#include "work_vector.h"

struct product_row {
	float *y;
	const float *a; /* column after column */
	const float *x;
	long rows, columns;

	BODY void operator()(long i) const
	{
		float sum = 0;

		for (long j = 0; j < columns; j++)
			sum += a[j * rows + i] * x[j];
		y[i] = 0.5f * y[i] + sum;
	}
};

/* A matrix of `rows` by `columns`, and `count` vectors of `n` floats, at least `rows`. */
static inline struct work work_product(long rows, long columns, int count, long n)
{
	struct work w = work_vector(count, n);
	int a = w.add("matrix", (uint64_t)rows * columns * sizeof(float), UMADV_PARAM);

	w.name = "product";
	work_fill(&w, a, 1);
	for (std::vector<struct op> &step : w.step)
		step.insert(step.begin(), {"product",
					   {{a, R}, {1, R}, {0, RW}},
					   2.0 * (double)rows * (double)columns,
					   [=](const struct work &k, stream_t s) {
						   each(s, rows,
							(struct product_row){k.at<float>(0), k.at<float>(a),
									     k.at<float>(1), rows, columns});
					   }});
	return w;
}

#endif
