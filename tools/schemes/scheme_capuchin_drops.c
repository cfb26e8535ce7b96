/* SPDX-License-Identifier: Apache-2.0
 *
 * scheme_capuchin_drops.c - the part of Capuchin that recomputes
 *
 *   overhead   of a swap the part of its copies that its gap does not hide (-FT in scheme_capuchin.c); of recomputation
 *              the time of the ops that make the tensor again from those that are there
 *   MSPS       memory saving per second: bytes / time to make them again
 *   choice     of the pairs of accesses around the peak the one with the most free time is swapped if that is hidden.
 *              Otherwise its overhead is compared with that of the recomputation with the highest MSPS
 *   update     a chosen tensor is no source any more: those that read it are made again from its own sources, in more
 *              time. A tensor that chosen ones read is made again once more for each of them
 *
 * The paper leaves open how copies that share the link hide each other: by FT alone nearly all pairs of a training are
 * hidden, and nothing would be recomputed. Here the copies of all chosen pairs around a peak go out before it and
 * return after it, one after the other. A pair's overhead is the time that its copies add to the latest one.
 *
 * Pairs around the end of the iteration are not recomputed, nor tensors of which most lies in blocks shared with
 * others. The plan of the rewritten iteration chooses its swaps anew. There a source that returns for one relaunch
 * stays until its own use, which is what the paper calls collective recomputation. */
#include "schemes/schemes.h"

#include "plan/blocks.h"
#include "plan/burst.h"
#include "plan/swaps.h"

#define MOST_RELAUNCHES 64 /* for one tensor */
#define NONE UINT32_MAX

enum state { OPEN, SWAPPED, DROPPED };

struct pair {
	enum state state;
	int can; /* its content can be made again */
	uint32_t next_of_slot; /* pair of the same slot; NONE: none */
	uint32_t first_source, n_sources; /* into sources: slots that its relaunches read */
	uint32_t repeats; /* by chosen pairs that read it */
	uint64_t again_ns; /* of its relaunches */
	int64_t free_ns; /* FT */
};

struct drops {
	struct um_scheme_input s;
	struct um_scheme_result a;
	struct um_swaps swaps;
	const struct um_versions *v;
	struct um_burst burst;
	struct pair *pair; /* by swap */
	uint32_t *of_slot; /* by slot: its first pair */
	uint8_t *dropped; /* by slot, for a burst */
	UM_VEC(uint32_t) sources;
	UM_VEC(uint32_t) chosen; /* pairs to be recomputed */
	uint32_t *by_need, *by_begin; /* swaps by the op that ends their gap; by that from which they are gone */
};

/* --- recomputation of one pair ------------------------------------------------------------------------------------ */

/* Is the content of the pair's tensor gone at op `at`? */
static int is_gone(const struct drops *x, uint32_t i, int32_t at)
{
	return x->pair[i].state == DROPPED && x->swaps.at[i].from <= at && at < x->swaps.at[i].to;
}

/* The pair of a slot in which op `at` lies; NONE: none. */
static uint32_t find_around(const struct drops *x, uint32_t slot, int32_t at)
{
	for (uint32_t i = x->of_slot[slot]; i != NONE; i = x->pair[i].next_of_slot)
		if (x->swaps.at[i].from <= at && at < x->swaps.at[i].to)
			return i;
	return NONE;
}

/* Finds the relaunches and sources of a pair among the chosen ones. 0, -ENOMEM, or -EINVAL: it cannot be made again. */
static int find_again(struct drops *x, uint32_t i)
{
	const struct um_swap *w = &x->swaps.at[i];
	struct pair *p = &x->pair[i];
	int err;

	for (size_t k = 0; k < x->chosen.n; k++)
		x->dropped[x->swaps.at[x->chosen.at[k]].slot] |= (uint8_t)is_gone(x, x->chosen.at[k], w->to);
	x->dropped[w->slot] = 1;
	err = um_burst_build(&x->burst, w->to, &w->slot, 1);
	for (size_t k = 0; k < x->chosen.n; k++)
		x->dropped[x->swaps.at[x->chosen.at[k]].slot] = 0;
	x->dropped[w->slot] = 0;
	if (err)
		return err;
	p->again_ns = 0;
	for (size_t k = 0; k < x->burst.ops.n; k++)
		p->again_ns += x->v->s->ops.at[x->burst.ops.at[k]].ns;
	p->first_source = (uint32_t)x->sources.n;
	for (size_t k = 0; k < x->burst.slots.n; k++)
		if (x->burst.role[x->burst.slots.at[k]] & UM_BURST_READ &&
		    um_vec_push(&x->sources, x->burst.slots.at[k]))
			return -ENOMEM;
	p->n_sources = (uint32_t)x->sources.n - p->first_source;
	return 0;
}

static int is_source(const struct drops *x, uint32_t i, uint32_t of)
{
	const struct pair *p = &x->pair[of];
	const struct um_swap *w = &x->swaps.at[i];

	if (!p->can || x->swaps.at[of].to < w->from || x->swaps.at[of].to >= w->to)
		return 0;
	for (uint32_t k = p->first_source; k < p->first_source + p->n_sources; k++)
		if (x->sources.at[k] == w->slot)
			return 1;
	return 0;
}

/* Is the pair that of a whole tensor between two neighbouring uses, the second of which needs what was made by ops that
 * may be launched again? */
static int is_candidate(const struct drops *x, const struct um_swap *w)
{
	const struct um_slot *t = &x->v->s->slots.at[w->slot];
	uint32_t k;

	if (w->to >= x->s.b->n_ops || t->flags & UM_SLOT_UNMANAGED || t->bytes < UM_DROP_LEAST ||
	    2 * w->live < t->bytes || !um_slot_alive_at(t, w->to))
		return 0;
	k = um_versions_find(x->v, w->slot, w->from - 1);
	return k != UINT32_MAX && k + 1 < x->v->first[w->slot + 1] && x->v->touch[k + 1].op == w->to &&
	       x->v->touch[k + 1].needs &&
	       um_versions_base(x->v, w->slot, um_versions_at(x->v, w->slot, w->to)) != UINT32_MAX;
}

static int find_pairs(struct drops *x)
{
	int err = 0;

	for (uint32_t i = 0; i < x->v->s->slots.n; i++)
		x->of_slot[i] = NONE;
	for (uint32_t i = 0; !err && i < x->swaps.n; i++) {
		const struct um_swap *w = &x->swaps.at[i];
		struct pair *p = &x->pair[i];

		p->free_ns = um_swap_absence(&x->s, w) - (int64_t)w->out_ns - (int64_t)w->in_ns;
		p->next_of_slot = NONE;
		if (!is_candidate(x, w))
			continue;
		err = find_again(x, i);
		p->can = !err;
		err = err == -EINVAL ? 0 : err;
		if (p->can) {
			p->next_of_slot = x->of_slot[w->slot];
			x->of_slot[w->slot] = i;
		}
	}
	return err;
}

static int sort_pairs(struct drops *x)
{
	double *key = malloc((x->swaps.n + 1ull) * sizeof *key);

	for (uint32_t i = 0; key && i < x->swaps.n; i++)
		key[i] = -(double)(x->swaps.at[i].to % x->s.b->n_ops);
	x->by_need = key ? um_swaps_rank(&x->swaps, key) : NULL;
	for (uint32_t i = 0; key && i < x->swaps.n; i++)
		key[i] = -(double)(x->swaps.at[i].from % x->s.b->n_ops);
	x->by_begin = key ? um_swaps_rank(&x->swaps, key) : NULL;
	free(key);
	return x->by_need && x->by_begin ? 0 : -ENOMEM;
}

/* --- choice ------------------------------------------------------------------------------------------------------- */

static int is_around(const struct drops *x, uint32_t i, int32_t op)
{
	const struct um_swap *w = &x->swaps.at[i];

	return (w->from <= op && op < w->to) || op + x->s.b->n_ops < w->to;
}

static int is_copied(const struct drops *x, uint32_t i, int32_t peak, uint32_t more)
{
	return (x->pair[i].state == SWAPPED || i == more) && is_around(x, i, peak);
}

/* A copy of a row: it follows those before it, and has `free_ns` from their begin on. */
static void add_copy(int64_t *sum, int64_t *late, uint64_t ns, int64_t free_ns)
{
	*sum += (int64_t)ns;
	*late = *sum - free_ns > *late ? *sum - free_ns : *late;
}

/* By how much the latest return around a peak is late for its use, if all begin after the peak. */
static int64_t return_lateness(const struct drops *x, int32_t peak, uint32_t more)
{
	const uint64_t *clock = x->s.clock;
	int32_t n = x->s.b->n_ops;
	int64_t sum = 0, late = 0;

	for (int around = 0; around < 2; around++) {
		for (uint32_t k = 0; k < x->swaps.n; k++) {
			const struct um_swap *w = &x->swaps.at[x->by_need[k]];
			int64_t free_ns = (int64_t)clock[w->to % n] - (int64_t)clock[peak + 1];

			if ((w->to % n <= peak) != around || !is_copied(x, x->by_need[k], peak, more))
				continue;
			add_copy(&sum, &late, w->in_ns, free_ns + (around ? (int64_t)clock[n] : 0));
		}
	}
	return late;
}

/* By how much the last eviction around a peak ends after its begin. */
static int64_t eviction_lateness(const struct drops *x, int32_t peak, uint32_t more)
{
	const uint64_t *clock = x->s.clock;
	int32_t n = x->s.b->n_ops;
	int64_t sum = 0, late = 0;

	for (int around = 0; around < 2; around++) {
		for (uint32_t k = x->swaps.n; k-- > 0;) {
			const struct um_swap *w = &x->swaps.at[x->by_begin[k]];
			int64_t free_ns = (int64_t)clock[peak] - (int64_t)clock[w->from % n];

			if ((w->from % n > peak) != around || !is_copied(x, x->by_begin[k], peak, more))
				continue;
			add_copy(&sum, &late, w->out_ns, free_ns + (around ? (int64_t)clock[n] : 0));
		}
	}
	return late;
}

/* Time of the pair's copies that no op hides. */
static int64_t swap_overhead(const struct drops *x, uint32_t i, int32_t peak)
{
	int64_t own = -x->pair[i].free_ns, late;

	if (!x->swaps.at[i].live)
		return 0;
	late = return_lateness(x, peak, i) - return_lateness(x, peak, NONE) + eviction_lateness(x, peak, i) -
	       eviction_lateness(x, peak, NONE);
	return late > own ? late : own;
}

static int64_t again_ns(const struct pair *p)
{
	return (int64_t)p->again_ns * (1 + p->repeats) + 1;
}

/* The pairs around a peak with the most free time, and with the highest MSPS. NONE: none. */
static void find_best(const struct drops *x, int32_t peak, uint32_t *swap, uint32_t *drop)
{
	double highest = 0;

	*swap = *drop = NONE;
	for (uint32_t i = 0; i < x->swaps.n; i++) {
		const struct pair *p = &x->pair[i];
		double msps = p->can ? (double)x->swaps.at[i].bytes / (double)again_ns(p) : 0;

		if (p->state != OPEN || !is_around(x, i, peak))
			continue;
		if (*swap == NONE || p->free_ns > x->pair[*swap].free_ns)
			*swap = i;
		if (msps > highest) {
			highest = msps;
			*drop = i;
		}
	}
}

/* Counts how often chosen pairs make open ones again. */
static void count_repeats(struct drops *x)
{
	for (uint32_t i = 0; i < x->swaps.n; i++)
		x->pair[i].repeats = 0;
	for (size_t k = 0; k < x->chosen.n; k++) {
		const struct pair *p = &x->pair[x->chosen.at[k]];

		for (uint32_t j = p->first_source; j < p->first_source + p->n_sources; j++) {
			uint32_t i = find_around(x, x->sources.at[j], x->swaps.at[x->chosen.at[k]].to);

			if (i != NONE)
				x->pair[i].repeats++;
		}
	}
}

/* Recomputes pair `i`, unless a chosen one could not be made again without it. 0 or -ENOMEM. */
static int drop(struct drops *x, uint32_t i)
{
	int err = um_vec_push(&x->chosen, i) ? -ENOMEM : 0;

	x->pair[i].state = DROPPED;
	for (size_t k = 0; !err && k + 1 < x->chosen.n; k++)
		if (is_source(x, i, x->chosen.at[k]))
			err = find_again(x, x->chosen.at[k]);
	if (err == -EINVAL) {
		x->pair[i].state = OPEN;
		x->pair[i].can = 0;
		x->chosen.n--;
		err = 0;
		for (size_t k = 0; !err && k < x->chosen.n; k++)
			err = find_again(x, x->chosen.at[k]);
		return err;
	}
	for (uint32_t k = 0; !err && k < x->swaps.n; k++) {
		if (x->pair[k].state != OPEN || !is_source(x, i, k))
			continue;
		err = find_again(x, k);
		x->pair[k].can = !err;
		err = err == -EINVAL ? 0 : err;
	}
	if (!err) {
		count_repeats(x);
		um_swaps_take(&x->swaps, i, &x->a);
	}
	return err;
}

static int choose(struct drops *x)
{
	struct um_load *load = &x->a.choice.load;
	int err = 0;

	while (!err && um_load_max(load, 0, load->n) > x->s.carry.capacity) {
		int32_t peak = (int32_t)um_load_last(load, 0, load->n, um_load_max(load, 0, load->n));
		uint32_t s, d;
		int64_t swap_ns;

		find_best(x, peak, &s, &d);
		if (s == NONE)
			break; /* the plan fails, and says where */
		swap_ns = swap_overhead(x, s, peak);
		if (swap_ns > 0 && d != NONE && again_ns(&x->pair[d]) < swap_ns) {
			err = drop(x, d);
			continue;
		}
		x->pair[s].state = SWAPPED;
		um_swaps_take(&x->swaps, s, &x->a);
	}
	return err;
}

static int list(const struct drops *x, struct um_drops *d)
{
	d->at = malloc((x->chosen.n + 1) * sizeof *d->at);
	if (!d->at)
		return -ENOMEM;
	for (size_t i = 0; i < x->chosen.n; i++) {
		const struct um_swap *w = &x->swaps.at[x->chosen.at[i]];

		d->at[d->n++] = (struct um_drop){w->slot, w->from - 1, w->to, x->v->s->slots.at[w->slot].bytes, 0, 0};
	}
	return 0;
}

static int find_drops(struct drops *x, struct um_drops *d)
{
	size_t slots = x->v->s->slots.n;
	int err = um_burst_init(&x->burst, x->v);

	x->burst.dropped = x->dropped = calloc(slots + 1, 1);
	x->burst.scratch_from = UM_DROP_LEAST;
	x->burst.most = MOST_RELAUNCHES;
	x->of_slot = malloc((slots + 1) * sizeof *x->of_slot);
	x->pair = calloc(x->swaps.n + 1ull, sizeof *x->pair);
	if (!x->dropped || !x->of_slot || !x->pair)
		err = -ENOMEM;
	if (!err)
		err = find_pairs(x);
	if (!err)
		err = sort_pairs(x);
	if (!err)
		err = choose(x);
	return err ? err : list(x, d);
}

int um_capuchin_drops(const struct um_versions *v, const struct um_plan *plan, const struct um_profile *profile,
		      struct um_drops *d)
{
	struct drops x = {.v = v};
	struct um_blocks b;
	uint64_t *clock = calloc(v->s->ops.n + 1, sizeof *clock), blocks = plan->budget / UM_BLOCK_BYTES;
	uint8_t *keep_resident = NULL;
	int err = um_blocks_build(&b, v->s, NULL);

	memset(d, 0, sizeof *d);
	if (!err)
		keep_resident = calloc(b.n_visits + 1ull, 1);
	if (!err && (!clock || !keep_resident))
		err = -ENOMEM;
	for (size_t i = 0; !err && i < v->s->ops.n; i++)
		clock[i + 1] = clock[i] + v->s->ops.at[i].ns;
	x.s = (struct um_scheme_input){.b = &b,
				       .sched = v->s,
				       .clock = clock,
				       .carry = {{plan->budget, plan->h2d, plan->d2h, 1, 0}, INT32_MAX, 1, NULL},
				       .fixed_ns = profile->o_seg};
	if (blocks < INT32_MAX)
		x.s.carry.capacity = (int32_t)blocks;
	if (!err)
		err = um_scheme_result_init(&x.a, &b, keep_resident);
	if (!err) {
		err = um_swaps_build(&x.swaps, &x.s, keep_resident);
		if (!err)
			err = find_drops(&x, d);
		um_scheme_result_fini(&x.a);
	}
	um_swaps_fini(&x.swaps);
	um_burst_fini(&x.burst);
	um_vec_fini(&x.sources);
	um_vec_fini(&x.chosen);
	free(x.by_need);
	free(x.by_begin);
	free(x.pair);
	free(x.of_slot);
	free(x.dropped);
	free(keep_resident);
	free(clock);
	um_blocks_fini(&b);
	return err;
}
