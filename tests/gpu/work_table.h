/* SPDX-License-Identifier: Apache-2.0
 *
 * work_table.h - look-ups in two tables that are most of the memory, and vectors that are used as wholes
 */
#ifndef WORK_TABLE_H
#define WORK_TABLE_H

#include "work_vector.h"

enum { TABLE_ROW = 64 }; /* floats */

/* Row i of the batch gets a row of the table, chosen as if by chance. */
struct table_look_up {
	float *y;
	const float *table;
	long rows;
	unsigned seed;

	BODY void operator()(long i) const
	{
		unsigned h = (unsigned)(i / TABLE_ROW) * 2654435761u + seed;

		h = (h ^ h >> 15) * 2246822519u;
		h = (h ^ h >> 13) * 3266489917u;
		y[i] = 0.5f * y[i] + table[(long)(h % (unsigned long)rows) * TABLE_ROW + i % TABLE_ROW];
	}
};

static inline struct op table_op(int y, int table, long n, long rows, unsigned seed)
{
	return {"look-up",
		{{table, R, (uint64_t)n * sizeof(float)}, {y, RW}},
		2.0 * (double)n,
		[=](const struct work &k, stream_t s) {
			each(s, n, (struct table_look_up){k.at<float>(y), k.at<float>(table), rows, seed});
		}};
}

/* Two tables of `rows` rows, `count` vectors of `n` floats, and a batch of n / 8 floats. */
static inline struct work work_table(long rows, int count, long n)
{
	struct work w = work_vector(count, n);
	int table[2], batch;

	w.name = "table";
	for (int &t : table)
		work_fill(&w, t = w.add("table", rows * TABLE_ROW * sizeof(float), UMADV_PARAM), 1);
	work_fill(&w, batch = w.add("batch", n / 8 * sizeof(float), UMADV_OTHER), 1);
	for (unsigned turn = 0; turn < 2; turn++)
		for (unsigned t = 0; t < 2; t++)
			w.step[turn].insert(w.step[turn].begin() + t,
					    table_op(batch, table[t], n / 8, rows, 4 * turn + t));
	return w;
}

#endif
