/* SPDX-License-Identifier: Apache-2.0
 *
 * return_deadlines.c - schedules returns backwards from their deadlines
 *
 * Backwards through the returns, from the one needed last; twice around, since the first returns of an iteration limit
 * the last ones of the previous one.
 */
#include "plan/return_deadlines.h"

static int64_t time_of(const uint64_t *start, int32_t n, int64_t position)
{
	int64_t before = 0;

	for (; position >= n; position -= n)
		before += (int64_t)start[n];
	return before + (int64_t)start[position];
}

int um_return_deadlines_build(const struct um_blocks *b, const struct um_choice *c, const uint64_t *start, uint64_t h2d,
			      int32_t *not_before)
{
	uint32_t *back = malloc((c->n_evicted + 1ull) * sizeof *back), k = 0;
	int64_t due, latest = INT64_MAX, at = INT64_MAX;
	int32_t n = b->n_ops;

	if (!back || um_choice_list_returns(c, b, 0, back, &k)) {
		free(back);
		return -ENOMEM;
	}
	memset(not_before, 0, b->n_visits * sizeof *not_before);
	for (uint32_t i = 2 * k; i-- > 0;) {
		const struct um_visit *x = &b->visit[back[i < k ? i : i - k]];
		int64_t need = (i < k ? n : 2ll * n) + x->end % n, ns;

		ns = (int64_t)((double)x->live * 1e9 / (double)h2d);
		due = time_of(start, n, need);
		latest = (due < latest ? due : latest) - ns;
		/* The last position that has started by then; never after the previous result, since neither needs nor
		 * times increase. */
		for (at = at < need ? at : need; at > 0 && time_of(start, n, at) > latest; at--)
			;
		not_before[back[i < k ? i : i - k]] = (int32_t)(x->end - (need - at));
	}
	free(back);
	return 0;
}
