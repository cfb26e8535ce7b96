/* SPDX-License-Identifier: Apache-2.0
 *
 * Backwards through the returns, from the last one needed on; a second time around, since the first of an iteration
 * leave no time to the last of the one before.
 */
#include "plan/late.h"

struct back {
	int32_t need;
	uint32_t visit;
};

static int by_need(const void *a, const void *b)
{
	const struct back *x = a, *y = b;

	if (x->need != y->need)
		return x->need < y->need ? -1 : 1;
	return x->visit < y->visit ? -1 : x->visit > y->visit;
}

static int64_t time_of(const uint64_t *start, int32_t n, int64_t position)
{
	return position / n * (int64_t)start[n] + (int64_t)start[position % n];
}

/* The last position up to `to` that has started at `time`. */
static int64_t position_at(const uint64_t *start, int32_t n, int64_t to, int64_t time)
{
	int64_t lo = 0, hi = to;

	while (lo < hi) {
		int64_t mid = lo + (hi - lo + 1) / 2;

		if (time_of(start, n, mid) <= time)
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo;
}

int um_late_build(const struct um_blocks *b, const struct um_choice *c, const uint64_t *start, uint64_t h2d,
                  int32_t *not_before)
{
	struct back *back = malloc((c->n_away + 1ull) * sizeof *back);
	int64_t due, latest = INT64_MAX;
	int32_t n = b->n_ops;
	uint32_t k = 0;

	if (!back)
		return -ENOMEM;
	for (uint32_t v = 0; v < b->n_visits; v++) {
		not_before[v] = 0;
		if (c->away[v] && b->visit[v].live && b->after[v] != UINT32_MAX)
			back[k++] = (struct back){b->visit[v].end % n, v};
	}
	qsort(back, k, sizeof *back, by_need);
	for (uint32_t i = 2 * k; i-- > 0;) {
		const struct um_visit *x = &b->visit[back[i % k].visit];
		int64_t need = (i < k ? n : 2ll * n) + back[i % k].need, ns, at;

		ns = (int64_t)((double)x->live * 1e9 / (double)h2d);
		due = time_of(start, n, need);
		latest = (due < latest ? due : latest) - ns;
		at = position_at(start, n, need, latest);
		not_before[back[i % k].visit] = (int32_t)(x->end - (need - at));
	}
	free(back);
	return 0;
}
