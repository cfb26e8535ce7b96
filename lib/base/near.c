/* SPDX-License-Identifier: Apache-2.0
 *
 * near.c - distance between two words
 *
 * The optimal string alignment distance, row by row: only the current row and the two before it are kept.
 */
#include "base/near.h"

#include <string.h>

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

unsigned um_near_distance(const char *a, size_t n, const char *b)
{
	unsigned rows[3][UM_NEAR_MOST + 1];
	size_t m = strnlen(b, UM_NEAR_MOST);

	n = n < UM_NEAR_MOST ? n : UM_NEAR_MOST;
	for (unsigned j = 0; j <= m; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= n; i++) {
		unsigned *row = rows[i % 3];
		const unsigned *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], before[j - 2] + 1);
		}
	}
	return rows[n % 3][m];
}
