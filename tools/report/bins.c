/* SPDX-License-Identifier: Apache-2.0 */
#include "report/bins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int um_bins_init(struct um_bins *s, unsigned room)
{
	*s = (struct um_bins){.at = calloc(room, sizeof *s->at), .room = room};
	return s->at ? 0 : -ENOMEM;
}

void um_bins_fini(struct um_bins *s)
{
	free(s->at);
	*s = (struct um_bins){0};
}

void um_bins_clear(struct um_bins *s)
{
	memset(s->at, 0, s->n * sizeof *s->at);
	s->n = s->shift = 0;
}

static void bin_join(struct um_bin *to, const struct um_bin *later)
{
	for (unsigned r = 0; r < UM_BINS_ROWS; r++)
		to->sum[r] += later->sum[r];
	if (!later->has_level)
		return;
	to->most = to->has_level && to->most > later->most ? to->most : later->most;
	to->last = later->last;
	to->has_level = 1;
}

/* Joins groups of 2^by bins. */
static void widen(struct um_bins *s, unsigned by)
{
	int64_t first = s->first >> by;
	unsigned n = 0;

	for (unsigned i = 0; i < s->n; i++) {
		unsigned to = (unsigned)(((s->first + (int64_t)i) >> by) - first);

		n = to + 1;
		if (to == i)
			continue;
		bin_join(&s->at[to], &s->at[i]);
		memset(&s->at[i], 0, sizeof s->at[i]);
	}
	s->n = n;
	s->first = first;
	s->shift += by;
}

/* Makes room for all from `begin` to `end`. Returns the bin of `begin`, and the one of `end` in `*last`. */
static unsigned fit(struct um_bins *s, int64_t begin, int64_t end, unsigned *last)
{
	unsigned shift = s->shift;
	int64_t from = begin >> shift, to = end >> shift;

	if (s->n) {
		int64_t old_end = s->first + (int64_t)s->n - 1;

		from = from < s->first ? from : s->first;
		to = to > old_end ? to : old_end;
	}
	for (; (uint64_t)to - (uint64_t)from >= s->room; shift++) {
		from >>= 1;
		to >>= 1;
	}
	if (shift > s->shift && s->n)
		widen(s, shift - s->shift);
	s->shift = shift;
	if (s->n && from < s->first) {
		unsigned more = (unsigned)(s->first - from);

		memmove(s->at + more, s->at, s->n * sizeof *s->at);
		memset(s->at, 0, more * sizeof *s->at);
		s->n += more;
	}
	s->first = from;
	if (s->n < (unsigned)(to - from) + 1)
		s->n = (unsigned)(to - from) + 1;
	*last = (unsigned)((end >> shift) - from);
	return (unsigned)((begin >> shift) - from);
}

void um_bins_add(struct um_bins *s, unsigned row, int64_t begin, int64_t end, uint64_t amount)
{
	unsigned last, i;

	if (!amount)
		return;
	/* An interval excludes its end. */
	i = fit(s, begin, end > begin ? end - 1 : begin, &last);
	for (; i < last; i++) {
		uint64_t part = (uint64_t)um_bins_at(s, i + 1) - (uint64_t)begin;
		uint64_t all = (uint64_t)end - (uint64_t)begin;
		double share = (double)amount * ((double)part / (double)all);
		uint64_t now = share < (double)amount ? (uint64_t)share : amount;

		s->at[i].sum[row] += now;
		amount -= now;
		begin = um_bins_at(s, i + 1);
	}
	s->at[last].sum[row] += amount;
}

void um_bins_level(struct um_bins *s, int64_t t, uint64_t level)
{
	unsigned last;
	struct um_bin *b = &s->at[fit(s, t, t, &last)];

	bin_join(b, &(struct um_bin){.most = level, .last = level, .has_level = 1});
}

void um_bins_join(struct um_bins *to, const struct um_bins *from)
{
	unsigned last, i = 0;

	if (!from->n)
		return;
	/* Takes the wider bins of the two, so that each bin lies within one. */
	if (to->n && to->shift < from->shift)
		widen(to, from->shift - to->shift);
	else if (!to->n)
		to->shift = from->shift;
	fit(to, um_bins_at(from, 0), um_bins_at(from, from->n) - 1, &last);
	for (; i < from->n; i++)
		bin_join(&to->at[(um_bins_at(from, i) >> to->shift) - to->first], &from->at[i]);
}

uint64_t um_bins_total(const struct um_bins *s, unsigned row)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < s->n; i++)
		sum += s->at[i].sum[row];
	return sum;
}

int64_t um_bins_at(const struct um_bins *s, unsigned i)
{
	int64_t k = s->first + (int64_t)i;
	uint64_t at = (uint64_t)k << s->shift;

	/* The last bin ends at the largest time. */
	return k > 0 && at > INT64_MAX ? INT64_MAX : (int64_t)at;
}
