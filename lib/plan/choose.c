/* SPDX-License-Identifier: Apache-2.0
 *
 * choose.c - Belady's rule on a circular iteration
 *
 * One sweep around the circle, from the op with minimum load on: where too many blocks are resident at an op, the block
 * with the best gap around it is evicted for the whole gap. For the plain rule (latest end first) that is Belady's rule
 * on a circle, optimal in blocks moved except for the beginning of the first round; excess evictions from there are
 * undone afterwards, the last one first.
 */
#include "plan/choose.h"

#include "base/pqueue.h"

/* A gap with too many hints for the room that it frees is chosen last. */
#define MANY_PARTS 16

#define HOST_BONUS 256 /* iterations: before dead content */

struct candidate {
	int64_t key; /* the largest is evicted first */
	int64_t end; /* in ops from the sweep's start; unused from here on */
	uint32_t visit;
};

struct sweep {
	struct um_choice *c;
	const struct um_blocks *b;
	const struct um_choose_rule *rule;
	int32_t limit;
	int32_t *too_many; /* by step: the next step, or itself, with too many blocks initially; n_ops: none. One more
			     entry */
	UM_VEC(struct candidate) heap;
	UM_VEC(uint32_t) taken; /* in the order of choice */
	uint32_t n_host; /* blocks that have left */
};

int um_choice_init(struct um_choice *c, const struct um_blocks *b, uint8_t *keep_resident)
{
	int32_t least;
	int paged = 0;

	memset(c, 0, sizeof *c);
	c->keep_resident = keep_resident;
	c->evicted = calloc(b->n_visits + 1ull, 1);
	c->next = malloc((b->n_visits + 1ull) * sizeof *c->next);
	c->first = malloc((b->n_touches + 1ull) * sizeof *c->first);
	c->gone = malloc((b->n_visits + 1ull) * sizeof *c->gone);
	c->left = malloc((b->n_touches + 1ull) * sizeof *c->left);
	if (!c->evicted || !c->next || !c->first || !c->gone || !c->left || um_load_init(&c->load, b->n_ops)) {
		um_choice_fini(c);
		return -ENOMEM;
	}
	memcpy(c->load.max + c->load.size, b->baseline.load, (size_t)b->n_ops * sizeof *b->baseline.load);
	um_load_fill(&c->load);
	for (uint32_t v = 0; v < b->n_visits; v++) {
		if (!um_choice_must_leave(b, v))
			continue;
		c->evicted[v] = 1;
		um_load_add(&c->load, b->visit[v].op + 1, b->visit[v].held, -1);
		paged = 1;
	}
	least = um_load_at(&c->load, 0);
	for (int32_t i = 1; i < b->n_ops; i++) {
		int32_t load = paged ? um_load_at(&c->load, i) : b->baseline.load[i];

		c->min_load_op = load < least ? i : c->min_load_op;
		least = load < least ? load : least;
	}
	return 0;
}

void um_choice_fini(struct um_choice *c)
{
	free(c->evicted);
	free(c->next);
	free(c->first);
	free(c->gone);
	free(c->left);
	um_load_fini(&c->load);
	memset(c, 0, sizeof *c);
}

/* --- a heap ------------------------------------------------------------------------------------------------------- */

static int before(const struct candidate *a, const struct candidate *b)
{
	return a->key != b->key ? a->key > b->key : a->visit < b->visit;
}

UM_PQUEUE(candidates, struct candidate, before)

/* --- the sweep ---------------------------------------------------------------------------------------------------- */

/* The time at a position, also after the iteration's end or before its begin. */
static int64_t time_at(const struct sweep *s, int64_t op)
{
	const uint64_t *clock = s->rule->clock;
	int64_t n = s->b->n_ops, before = 0;

	/* at most a round or two: cheaper than a division */
	for (; op < 0; op += n)
		before -= (int64_t)clock[n];
	for (; op >= n; op -= n)
		before += (int64_t)clock[n];
	return before + (int64_t)clock[op];
}

static int is_written(const struct um_blocks *b, uint32_t v)
{
	for (uint32_t t = b->visit[v].first_touch; t < b->visit[v + 1].first_touch; t++)
		if (b->touch[t].writes)
			return 1;
	return 0;
}

/* Has the block left the device before, and may no other one leave freely? */
static int is_favoured(const struct sweep *s, uint32_t v)
{
	const struct um_choose_rule *r = s->rule;

	return r->free_host != UINT32_MAX && s->n_host >= r->free_host && r->host[s->b->visit[v].block];
}

/* `after`: ops from the sweep's start to the gap's visit, negative for gaps that are open when it starts. */
static int offer(struct sweep *s, uint32_t v, int64_t after)
{
	const struct um_visit *x = &s->b->visit[v];
	struct candidate c = {.visit = v, .end = after + x->held - x->op};
	int64_t iteration_ns = (int64_t)s->rule->clock[s->b->n_ops];

	if (!s->b->visit[v].can_leave || s->c->evicted[v] || s->c->keep_resident[v])
		return 0;
	/* the load only falls: a gap that is useless now stays useless */
	if (s->too_many[after < 0 ? 0 : after + 1] >= c.end)
		return 0;
	c.key = time_at(s, s->c->min_load_op + c.end);
	if (s->rule->begin)
		c.key -= time_at(s, s->c->min_load_op + after) / 16 * s->rule->begin;
	if (s->rule->clean && !is_written(s->b, v))
		c.key += iteration_ns / 16 * s->rule->clean;
	c.key -= s->rule->penalty[v];
	if (!x->live && !(s->rule->copies && x->overwritten))
		c.key += 64 * iteration_ns;
	else if (x->parts > MANY_PARTS)
		c.key -= 64 * iteration_ns;
	if (is_favoured(s, v))
		c.key += HOST_BONUS * iteration_ns;
	if (um_vec_push(&s->heap, c))
		return -ENOMEM;
	candidates_rise(s->heap.at, s->heap.n - 1);
	return 0;
}

/* The block leaves the device. With the last one that may leave freely, gaps of blocks that have left come first. */
static void leave(struct sweep *s, uint32_t block)
{
	const struct um_choose_rule *r = s->rule;
	int64_t iteration_ns = (int64_t)r->clock[s->b->n_ops];

	if (r->free_host == UINT32_MAX || r->host[block])
		return;
	r->host[block] = 1;
	if (++s->n_host != r->free_host)
		return;
	for (size_t i = 0; i < s->heap.n; i++) {
		if (is_favoured(s, s->heap.at[i].visit))
			s->heap.at[i].key += HOST_BONUS * iteration_ns;
		candidates_rise(s->heap.at, i);
	}
}

static int give_up(struct sweep *s, uint32_t v)
{
	const struct um_visit *x = &s->b->visit[v];

	if (um_vec_push(&s->taken, v))
		return -ENOMEM;
	s->c->evicted[v] = 1;
	um_load_add(&s->c->load, x->op + 1, x->held, -1);
	leave(s, x->block);
	return 0;
}

static int sweep_op(struct sweep *s, int32_t step)
{
	int32_t op = (s->c->min_load_op + step) % s->b->n_ops;
	int32_t over = um_load_at(&s->c->load, op) - s->limit;

	while (over > 0) {
		struct candidate c;

		if (!s->heap.n)
			return -E2BIG;
		c = s->heap.at[0];
		s->heap.at[0] = s->heap.at[--s->heap.n];
		candidates_sink(s->heap.at, s->heap.n, 0);
		if (c.end <= step || s->c->evicted[c.visit])
			continue;
		if (give_up(s, c.visit))
			return -ENOMEM;
		over--;
	}
	return 0;
}

static int find_crowded(struct sweep *s)
{
	int32_t n = s->b->n_ops;

	s->too_many = malloc((n + 1ull) * sizeof *s->too_many);
	if (!s->too_many)
		return -ENOMEM;
	s->too_many[n] = n;
	for (int32_t i = n; i-- > 0;) {
		int32_t op = s->c->min_load_op + i < n ? s->c->min_load_op + i : s->c->min_load_op + i - n;

		s->too_many[i] = um_load_at(&s->c->load, op) > s->limit ? i : s->too_many[i + 1];
	}
	return 0;
}

static int sweep(struct sweep *s)
{
	const struct um_blocks *b = s->b;
	int32_t min_load_op = s->c->min_load_op;
	int err = find_crowded(s);

	for (uint32_t v = 0; !err && v < b->n_visits; v++) {
		const struct um_visit *x = &b->visit[v];

		if (x->op < min_load_op && x->held > min_load_op)
			err = offer(s, v, x->op - min_load_op);
		else if (x->op >= min_load_op && x->held > b->n_ops + min_load_op)
			err = offer(s, v, x->op - min_load_op - b->n_ops);
	}
	for (int32_t i = 0; !err && s->too_many[i] < b->n_ops; i++) {
		int32_t op = (min_load_op + i) % b->n_ops;

		if (s->too_many[i] == i)
			err = sweep_op(s, i);
		for (uint32_t k = b->first_of_op[op]; !err && k < b->first_of_op[op + 1]; k++)
			err = offer(s, b->of_op[k], i);
	}
	return err;
}

/* Undoes evictions that turn out not to be needed. */
static void keep_spare(struct sweep *s)
{
	for (int live = 1; live >= 0; live--) {
		for (size_t i = s->taken.n; i-- > 0;) {
			const struct um_visit *x = &s->b->visit[s->taken.at[i]];

			if (!s->c->evicted[s->taken.at[i]] || (x->live > 0) != live ||
			    um_load_max(&s->c->load, x->op + 1, x->held) >= s->limit)
				continue;
			s->c->evicted[s->taken.at[i]] = 0;
			um_load_add(&s->c->load, x->op + 1, x->held, 1);
		}
	}
}

static uint32_t first_behind(const struct um_choice *c, const struct um_blocks *b, const struct um_touch *t,
			     uint32_t from, int rotates)
{
	uint32_t v = c->next[t->visit];
	int32_t wrap = 0;

	if (v == UINT32_MAX && t->until > b->n_ops && !rotates) {
		v = c->next[from];
		wrap = b->n_ops;
	}
	return v != UINT32_MAX && b->visit[v].op + wrap < t->until ? v : UINT32_MAX;
}

void um_choice_settle(struct um_choice *c, const struct um_blocks *b)
{
	c->n_evicted = c->n_left = 0;
	for (uint32_t i = 0; i < b->n_blocks; i++) {
		uint32_t lo = b->block[i].first_visit, hi = b->block[i + 1].first_visit, last = UINT32_MAX;
		uint32_t from = b->visit[lo].first_touch, to = b->visit[hi].first_touch;

		for (uint32_t v = hi; v-- > lo;)
			c->next[v] = last = c->evicted[v] ? v : last;
		if (last == UINT32_MAX) {
			memset(c->first + from, 0xff, (to - from) * sizeof *c->first);
			continue;
		}
		for (uint32_t t = from; t < to; t++) {
			c->first[t] = first_behind(c, b, &b->touch[t], lo, b->block[i].rotates);
			if (c->first[t] != UINT32_MAX)
				c->left[c->n_left++] = t;
		}
		for (uint32_t v = lo; v < hi; v++)
			if (c->evicted[v])
				c->gone[c->n_evicted++] = v;
	}
}

/* Counting sort: returns are listed by visit. */
int um_choice_list_returns(const struct um_choice *c, const struct um_blocks *b, int32_t from, uint32_t *back,
			   uint32_t *n)
{
	uint32_t *at = calloc(b->n_ops + 1ull, sizeof *at);

	if (!at)
		return -ENOMEM;
	for (int fill = 0; fill < 2; fill++) {
		for (uint32_t i = 0; i < c->n_evicted; i++) {
			uint32_t v = c->gone[i];

			if (!um_choice_returns(b, v))
				continue;
			if (fill)
				back[at[(b->visit[v].end + b->n_ops - from) % b->n_ops]++] = v;
			else
				at[(b->visit[v].end + b->n_ops - from) % b->n_ops + 1]++;
		}
		for (int32_t i = 0; !fill && i < b->n_ops; i++)
			at[i + 1] += at[i];
	}
	*n = at[b->n_ops];
	free(at);
	return 0;
}

int um_choice_build(struct um_choice *c, const struct um_blocks *b, int32_t limit, const struct um_choose_rule *rule)
{
	struct sweep s = {.c = c, .b = b, .rule = rule, .limit = limit};
	int err;

	for (uint32_t i = 0; rule->free_host != UINT32_MAX && i < b->n_blocks; i++)
		s.n_host += rule->host[i];
	err = sweep(&s);

	if (!err)
		keep_spare(&s);
	um_choice_settle(c, b);
	free(s.too_many);
	um_vec_fini(&s.heap);
	um_vec_fini(&s.taken);
	return err;
}
