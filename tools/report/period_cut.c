/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the begin of an iteration, which an anchor inside it does not show: before the first anchor that an iteration
 * follows, as far back as the preceding kernels equal those before the next anchor. After the last anchor, as far as
 * kernels equal those after the previous one, iterations end: if both agree, the cut is sure.
 */
#include "report/period_state.h"

#define RESYNC 48u /* longest run of additional or missing kernels */
#define LONGER 1.1 /* times the usual length: other kernels may follow */
#define ENOUGH 0.9 /* share of the usual length: complete */

size_t um_span_alike(const struct um_sequence *s, size_t sample, size_t unit, size_t from, size_t to)
{
	size_t alike = 0;

	for (size_t i = sample; i < sample + unit; i++)
		s->count[s->names[i]]++;
	for (size_t i = from; i < to; i++)
		if (s->count[s->names[i]]) {
			s->count[s->names[i]]--;
			alike++;
		}
	for (size_t i = from; i < to; i++)
		s->count[s->names[i]] = 0;
	for (size_t i = sample; i < sample + unit; i++)
		s->count[s->names[i]] = 0;
	return alike;
}

/* Number of equal kernels before both positions. */
static size_t same_before(const struct um_sequence *s, size_t a, size_t b, size_t most)
{
	size_t n = 0;

	while (n < a && n < b && n < most && s->names[a - 1 - n] == s->names[b - 1 - n])
		n++;
	return n;
}

static size_t same_from(const struct um_sequence *s, size_t a, size_t b, size_t most)
{
	size_t n = 0;

	while (b + n < s->n && n < most && s->names[a + n] == s->names[b + n])
		n++;
	return n;
}

/* --- one that is longer than usual -------------------------------------------------------------------------------- */

static int two_alike(const struct um_sequence *s, size_t a, size_t a_end, size_t b, size_t b_end)
{
	if (a >= a_end || b >= b_end || s->names[a] != s->names[b])
		return 0;
	return (a + 1 == a_end && b + 1 == b_end) ||
	       (a + 1 < a_end && b + 1 < b_end && s->names[a + 1] == s->names[b + 1]);
}

/* Skips as few differing kernels as possible. 0: no longer similar. */
static int resync(const struct um_sequence *s, size_t *a, size_t a_end, size_t *b, size_t b_end)
{
	for (size_t skip = 1; skip <= RESYNC; skip++)
		for (size_t in_a = 0; in_a <= skip; in_a++)
			if (two_alike(s, *a + in_a, a_end, *b + skip - in_a, b_end)) {
				*a += in_a;
				*b += skip - in_a;
				return 1;
			}
	return 0;
}

/* Finds the end of the usual kernels in [from, to): 1; 0: no clear end, *end is `to`. */
static int usual_end(const struct um_sequence *s, size_t sample, size_t unit, size_t from, size_t to, size_t *end)
{
	size_t a = sample, a_end = sample + unit, b = from, skips = 0;

	*end = to;
	while (a < a_end) {
		if (b >= to || (s->names[a] != s->names[b] && (skips++ > RESYNC || !resync(s, &a, a_end, &b, to))))
			return 0;
		a++;
		b++;
	}
	*end = b;
	return 1;
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

struct cut {
	const struct um_sequence *s;
	size_t unit, sample; /* sample: begin of a usual iteration */
	size_t *at, n; /* anchors */
	unsigned char *is; /* an iteration follows; otherwise too few kernels for one */
	size_t head; /* kernels of an iteration before its anchor */
	size_t model; /* an anchor that `head` precedes */
};

static int find_iterations(struct cut *c, const struct um_level *l)
{
	size_t found = 0;
	int err = um_anchor_places(c->s, &l->anchor, &c->at, &c->n);

	c->is = err ? NULL : calloc(c->n + 1, 1);
	if (!c->is)
		return -ENOMEM;
	for (size_t i = 0; i < c->n; i++) {
		size_t end = i + 1 < c->n ? c->at[i + 1] : c->s->n;

		if (i + 1 == c->n && end - c->at[i] > l->unit)
			end = c->at[i] + l->unit;
		c->is[i] = (double)um_span_alike(c->s, l->sample, l->unit, c->at[i], end) >=
			   UM_PERIOD_SIMILAR * (double)l->unit;
		found += c->is[i];
	}
	return found >= UM_PERIOD_LEAST ? 0 : -EAGAIN;
}

/* The first iteration from `from` on that another one follows; c->n: none. */
static size_t pair_from(const struct cut *c, size_t from)
{
	while (from + 1 < c->n && !(c->is[from] && c->is[from + 1]))
		from++;
	return from + 1 < c->n ? from : c->n;
}

/* Matches the kernels before `at` with those before the model's anchor, up to `head`, with small differences: their
 * number on both sides. */
static size_t go_back(const struct cut *c, size_t at, size_t head, size_t *of_model)
{
	const uint32_t *names = c->s->names;
	size_t model = c->at[c->model], n = 0, skips = 0;

	*of_model = 0;
	for (;;) {
		size_t same = same_before(c->s, at - n, model - *of_model, head - *of_model), skip, here = 0;

		n += same;
		*of_model += same;
		for (skip = 1; *of_model < head && skips < RESYNC && skip <= RESYNC; skip++) {
			for (here = 0; here <= skip; here++) {
				size_t a = n + here, b = *of_model + skip - here;

				if (a + 1 < at && b + 1 < head && names[at - 1 - a] == names[model - 1 - b] &&
				    names[at - 2 - a] == names[model - 2 - b])
					break;
			}
			if (here <= skip)
				break;
		}
		if (*of_model == head || skips == RESYNC || skip > RESYNC)
			return n;
		n += here;
		*of_model += skip - here;
		skips++;
	}
}

/* Is the begin of iterations known? The first one may lack kernels there. */
static int find_head(struct cut *c)
{
	size_t first = pair_from(c, 0), last = first, tail, head;

	if (first == c->n)
		return 0;
	for (size_t i = first; i < c->n; i = pair_from(c, i + 1))
		last = i;
	c->model = first + 1;
	c->head = same_before(c->s, c->at[first], c->at[first + 1], c->unit - 1);
	tail = same_from(c->s, c->at[last], c->at[last + 1], 2 * c->unit);
	if (tail > c->unit)
		return 0; /* the next kernels begin as they do */
	head = c->unit - tail;
	if (c->head < head && head <= c->at[first + 1]) {
		go_back(c, c->at[first], head, &tail);
		if (tail == head)
			c->head = head;
	}
	return c->head == head;
}

/* Other kernels may begin differently. */
static size_t begin_of(const struct cut *c, size_t i)
{
	size_t of_model, n;

	if (!c->head)
		return c->at[i];
	n = go_back(c, c->at[i], c->head, &of_model);
	return of_model == c->head || c->is[i] ? c->at[i] - n : c->at[i];
}

/* `sure`: the sequence ends with an iteration. */
static int add_spans(struct um_period *p, const struct cut *c, int *sure)
{
	size_t over = 0; /* the end of the previous one */

	for (size_t i = 0; i < c->n; i++) {
		struct um_period_span span = {begin_of(c, i), i + 1 < c->n ? begin_of(c, i + 1) : c->s->n, 1};

		span.from = span.from < over ? over : span.from;
		if (!c->is[i] || span.from >= span.to)
			continue;
		if (i + 1 == c->n || (double)(span.to - span.from) > LONGER * (double)c->unit)
			*sure |=
				usual_end(c->s, c->sample, c->unit, span.from, span.to, &span.to) && span.to == c->s->n;
		span.whole = i + 1 < c->n || (double)(span.to - span.from) >= ENOUGH * (double)c->unit;
		over = span.to;
		if (um_vec_push(&p->spans, span))
			return -ENOMEM;
	}
	return 0;
}

int um_period_cut(struct um_period *p, const struct um_sequence *s, const struct um_level *level, int *sure)
{
	struct cut c = {.s = s, .unit = level->unit, .sample = level->sample};
	int err = find_iterations(&c, level);

	*sure = 0;
	if (!err) {
		*sure = find_head(&c);
		c.sample -= c.head < c.sample ? c.head : c.sample;
		err = add_spans(p, &c, sure);
	}
	free(c.at);
	free(c.is);
	return err == -EAGAIN ? 0 : err;
}
