/* SPDX-License-Identifier: Apache-2.0
 *
 * work_vector.h - vectors in a ring: every one adds its right neighbour, again and again
 */
#ifndef WORK_VECTOR_H
#define WORK_VECTOR_H

#include "work.h"

struct vector_add {
	float *y;
	const float *x;

	BODY void operator()(long i) const
	{
		y[i] = 0.5f * y[i] + x[i];
	}
};

static inline struct op vector_op(int y, int x, long n)
{
	return {"add", {{x, R}, {y, RW}}, 2.0 * (double)n, [=](const struct work &k, stream_t s) {
			each(s, n, (struct vector_add){k.at<float>(y), k.at<float>(x)});
		}};
}

/* `count` vectors of `n` floats. */
static inline struct work work_vector(int count, long n)
{
	struct work w;

	w.name = "vector";
	for (int v = 0; v < count; v++)
		work_fill(&w, w.add("y" + std::to_string(v), n * sizeof(float), UMADV_OTHER), 1);
	for (int v = 0; v < count; v++)
		w.step[0].push_back(vector_op(v, (v + 1) % count, n));
	w.step[1] = w.step[0];
	return w;
}

#endif
