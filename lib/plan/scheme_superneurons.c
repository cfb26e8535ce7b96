/* SPDX-License-Identifier: Apache-2.0
 *
 * scheme_superneurons.c - evicts least recently used tensors, prefetches at convolutions
 *
 * SuperNeurons (Wang, Ye, Zhao, Wu, Li, Song, Xu, Kraska: Superneurons: Dynamic GPU Memory Management for Training Deep
 * Neural Networks, PPoPP 2018). Its recomputation is in scheme_superneurons_drops.c.
 *
 *   liveness       dead content takes no room; the lifetimes of slots already have that
 *   tensor cache   tensors in the order of their last use. An op locks its operands; if one is missing and there is no
 *                  room, the least recently used ones that are not locked are evicted until there is. Nothing is moved
 *                  as long as there is room. An iteration begins with the tensors of the previous one, by their uses
 *   checkpoints    convolutions (and other products of matrices, which have their role in other networks): when one
 *                  starts, tensors needed from the next one on until the one after that are prefetched. In between,
 *                  and in a schedule without any, a tensor is fetched when it is used
 *
 * The paper copies out after the convolution that made a tensor, in advance, and drops the tensor when room is short;
 * here both are one: a tensor that the cache evicts in a gap leaves as soon as it is not in use. Blocks represent
 * tensors where tensors share them.
 */
#include "plan/swaps.h"

#include <stdio.h>

#define ITERATIONS 3
#define NONE UINT32_MAX

/* The tensor cache: a swap's tensor from its use on. Doubly linked in the order of use, oldest first. */
struct cache {
	struct um_scheme_input *s;
	const struct um_swaps *swaps;
	uint32_t *newer, *older; /* by swap */
	uint8_t *in, *out, *left; /* by swap: in the list; evicted now; evicted in this iteration, or before it began */
	uint32_t *ending, *first_ending; /* by op: swaps whose gap ends there */
	uint32_t *first_starting; /* by op: swaps from it on; they are in that order */
	uint32_t oldest, newest;
	int32_t room, absent, stuck; /* blocks, blocks, op */
};

static void unlink_swap(struct cache *c, uint32_t i)
{
	uint32_t a = c->older[i], b = c->newer[i];

	*(a == NONE ? &c->oldest : &c->newer[a]) = b;
	*(b == NONE ? &c->newest : &c->older[b]) = a;
	c->in[i] = 0;
}

static void link_newest(struct cache *c, uint32_t i)
{
	c->older[i] = c->newest;
	c->newer[i] = NONE;
	*(c->newest == NONE ? &c->oldest : &c->newer[c->newest]) = i;
	c->newest = i;
	c->in[i] = 1;
}

static int cache_init(struct cache *c)
{
	const struct um_swaps *w = c->swaps;
	int32_t n = c->s->b->n_ops;

	c->oldest = c->newest = NONE;
	c->newer = malloc((w->n + 1ull) * sizeof *c->newer);
	c->older = malloc((w->n + 1ull) * sizeof *c->older);
	c->in = calloc(w->n + 1ull, 1);
	c->out = calloc(w->n + 1ull, 1);
	c->left = calloc(w->n + 1ull, 1);
	c->ending = malloc((w->n + 1ull) * sizeof *c->ending);
	c->first_ending = calloc(n + 2ull, sizeof *c->first_ending);
	c->first_starting = calloc(n + 2ull, sizeof *c->first_starting);
	if (!c->newer || !c->older || !c->in || !c->out || !c->left || !c->ending || !c->first_ending ||
	    !c->first_starting)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->n; i++) {
		c->first_ending[w->at[i].to % n + 2]++;
		c->first_starting[w->at[i].from]++;
	}
	for (int32_t op = 0; op <= n; op++) {
		c->first_ending[op + 1] += c->first_ending[op];
		c->first_starting[op + 1] += c->first_starting[op];
	}
	for (uint32_t i = 0; i < w->n; i++)
		c->ending[c->first_ending[w->at[i].to % n + 1]++] = i;
	return 0;
}

static void cache_fini(struct cache *c)
{
	free(c->newer);
	free(c->older);
	free(c->in);
	free(c->out);
	free(c->left);
	free(c->ending);
	free(c->first_ending);
	free(c->first_starting);
}

/* Steps over an op: ends gaps, makes room for it, begins gaps after it. Its load includes its operands and tensors that
 * must stay, which are in no list. */
static int step(struct cache *c, int32_t op, const struct um_load *load)
{
	const struct um_swaps *w = c->swaps;

	for (uint32_t k = c->first_ending[op]; k < c->first_ending[op + 1]; k++) {
		uint32_t i = c->ending[k];

		if (c->in[i])
			unlink_swap(c, i);
		if (c->out[i])
			c->absent -= (int32_t)w->at[i].n;
		c->out[i] = 0;
	}
	while (um_load_at(load, op) - c->absent > c->room) {
		uint32_t i = c->oldest;

		if (i == NONE) {
			c->stuck = op;
			return -E2BIG;
		}
		unlink_swap(c, i);
		c->out[i] = c->left[i] = 1;
		c->absent += (int32_t)w->at[i].n;
	}
	for (uint32_t i = c->first_starting[op]; i < c->first_starting[op + 1]; i++)
		if (!c->in[i])
			link_newest(c, i);
	return 0;
}

/* The first iteration begins with all tensors of the previous one, in the order of their uses; after some iterations
 * the list is limited by the room. The result is the set of tensors that are evicted in the last iteration, or before
 * it begins. */
static int find_evictions(struct cache *c, struct um_scheme_result *a)
{
	int32_t n = c->s->b->n_ops;
	int err = 0;

	for (uint32_t i = 0; i < c->swaps->n; i++)
		if (c->swaps->at[i].to > n)
			link_newest(c, i);
	for (int iteration = 0; !err && iteration < ITERATIONS; iteration++) {
		memcpy(c->left, c->out, c->swaps->n);
		for (int32_t op = 0; !err && op < n; op++)
			err = step(c, op, &a->choice.load);
	}
	for (uint32_t i = 0; !err && i < c->swaps->n; i++)
		if (c->left[i])
			um_swaps_take(c->swaps, i, a);
	return err;
}

/* By op: distance in ops to the last checkpoint but one at or before it, 0 if there is none in an iteration. The
 * operands of an op are prefetched when that checkpoint starts. */
static void find_checkpoints(const struct um_schedule *s, int32_t n, int32_t *back)
{
	int64_t last = -1, one_before = -1;

	for (int64_t i = 0; i < 2 * (int64_t)n; i++) {
		int32_t op = (int32_t)(i % n);

		if (um_scheme_is_product(s->ops.at[op].name)) {
			one_before = last;
			last = i;
		}
		back[op] = one_before >= 0 && i - one_before < n ? (int32_t)(i - one_before) : 0;
	}
}

static int prefetch(const struct um_swaps *w, const struct um_scheme_input *s, struct um_scheme_result *a)
{
	int32_t n = s->b->n_ops, *back = malloc((size_t)n * sizeof *back);

	if (!back)
		return -ENOMEM;
	find_checkpoints(s->sched, n, back);
	for (uint32_t i = 0; i < w->n; i++) {
		int32_t at = w->at[i].to - back[w->at[i].to % n];

		if (at < w->at[i].from)
			at = w->at[i].from;
		for (uint32_t k = w->at[i].first; k < w->at[i].first + w->at[i].n; k++)
			a->not_before[w->visit[k]] = at;
	}
	free(back);
	return 0;
}

int um_scheme_superneurons(struct um_scheme_input *s, int mode, struct um_scheme_result *a)
{
	struct um_swaps swaps;
	struct cache c = {.s = s, .swaps = &swaps, .room = s->carry.capacity};
	int err = um_swaps_build(&swaps, s, a->choice.keep_resident);

	(void)mode;
	if (!err)
		err = cache_init(&c);
	if (!err)
		err = find_evictions(&c, a);
	if (!err)
		err = prefetch(&swaps, s, a);
	if (err == -E2BIG)
		snprintf(s->why, s->why_size,
			 "superneurons: the locked tensors at op %d '%s' exceed the budget of %d MiB", c.stuck,
			 s->sched->ops.at[c.stuck].name, 2 * c.room);
	cache_fini(&c);
	um_swaps_fini(&swaps);
	return err;
}
