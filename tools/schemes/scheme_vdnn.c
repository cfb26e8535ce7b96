/* SPDX-License-Identifier: Apache-2.0
 *
 * vDNN (Rhu, Gimelshein, Clemons, Zulfiqar, Keckler: vDNN: Virtualized Deep Neural Networks for Scalable,
 * Memory-Efficient Neural Network Design, MICRO 2016).
 *
 *   offload    the input of a layer is evicted after the layer's forward op if that is its last forward use and a
 *              backward op uses it again, with or without need
 *   policies   vdnn-all: every layer's input; vdnn-conv: that of convolutions; vdnn: nothing if all fits, else the
 *              choice of vdnn-conv, else that of vdnn-all: the paper's dynamic policy without its choice of algorithms
 *   prefetch   when a backward op starts, the next offloaded tensor without a prefetch is prefetched, unless a
 *              convolution's backward op lies between; others migrate on use
 *
 * Weights, gradients and the optimizer's state never leave: where feature maps alone make no room there is no plan.
 *
 * Ours: a layer is an op, and its kind is read off the op's name, with other products of matrices in the place of
 * convolutions; forward and backward are the phases that the program said; a tensor whose role it did not say is a
 * feature map if it is born in the iteration. The paper waits for an offload at the end of its layer; here it goes on
 * behind it, and who needs the room waits. Content that is dead goes where there is no room without that: a framework
 * would have freed it. */
#include "schemes/schemes.h"

#include "plan/swaps.h"

#include <stdio.h>

struct vdnn {
	struct um_scheme_input *s;
	struct um_scheme_result *a;
	struct um_swaps swaps;
	int32_t *products; /* by op: products of matrices before it; one more */
	uint32_t *map; /* feature maps that are offloaded: swaps by need */
	uint32_t n_maps;
	int32_t stuck; /* op */
};

static const struct um_sched_op *op_at(const struct vdnn *x, int32_t position)
{
	return &x->s->sched->ops.at[position % x->s->b->n_ops];
}

/* Last used by a forward op, and next by a backward one of the same iteration. */
static int is_map(const struct vdnn *x, const struct um_swap *w)
{
	const struct um_slot *slot = &x->s->sched->slots.at[w->slot];
	int data = slot->role == UM_ROLE_ACT || slot->role == UM_ROLE_INPUT;

	return w->live && (data || (slot->role == UM_ROLE_OTHER && slot->birth >= 0)) && w->to < x->s->b->n_ops &&
	       op_at(x, w->from - 1)->phase == 'f' && op_at(x, w->to)->phase == 'b';
}

static int by_need(const void *a, const void *b, void *swaps)
{
	const struct um_swap *at = ((const struct um_swaps *)swaps)->at;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;

	if (at[i].to != at[k].to)
		return at[i].to < at[k].to ? -1 : 1;
	return i < k ? -1 : i > k;
}

static int count_products(struct vdnn *x)
{
	int32_t n = x->s->b->n_ops;

	x->products = calloc(n + 1ull, sizeof *x->products);
	x->map = malloc((x->swaps.n + 1ull) * sizeof *x->map);
	if (!x->products || !x->map)
		return -ENOMEM;
	for (int32_t op = 0; op < n; op++)
		x->products[op + 1] = x->products[op] + um_scheme_is_product(op_at(x, op)->name);
	return 0;
}

/* Adds all feature maps, or inputs of convolutions, to the offloaded ones. */
static void offload(struct vdnn *x, int all)
{
	for (uint32_t i = 0; i < x->swaps.n; i++) {
		const struct um_swap *w = &x->swaps.at[i];

		if (!is_map(x, w) || x->a->choice.evicted[x->swaps.visit[w->first]])
			continue;
		if (!all && !um_scheme_is_product(op_at(x, w->from - 1)->name))
			continue;
		um_swaps_take(&x->swaps, i, x->a);
		x->map[x->n_maps++] = i;
	}
	qsort_r(x->map, x->n_maps, sizeof *x->map, by_need, &x->swaps);
}

static int fits(const struct vdnn *x)
{
	return um_load_max(&x->a->choice.load, 0, x->s->b->n_ops) <= x->s->carry.capacity;
}

/* Discards dead content if memory is short. -E2BIG: not enough. */
static int drop_dead(struct vdnn *x)
{
	uint32_t *dead = malloc((x->swaps.n + 1ull) * sizeof *dead), n = 0;
	int err;

	if (!dead)
		return -ENOMEM;
	for (uint32_t i = 0; i < x->swaps.n; i++)
		if (!x->swaps.at[i].live)
			dead[n++] = i;
	err = um_swaps_choose(&x->swaps, dead, n, x->s->carry.capacity, x->a, &x->stuck);
	free(dead);
	return err;
}

/* Prefetches those needed by one op, at op `at` or later. */
static uint32_t ask_for(struct vdnn *x, uint32_t i, int32_t at)
{
	int32_t need = x->swaps.at[x->map[i]].to;

	for (; i < x->n_maps && x->swaps.at[x->map[i]].to == need; i++) {
		const struct um_swap *w = &x->swaps.at[x->map[i]];

		for (uint32_t k = w->first; k < w->first + w->n; k++)
			x->a->not_before[x->swaps.visit[k]] = at;
	}
	return i;
}

static void prefetch(struct vdnn *x)
{
	uint32_t next = 0;

	for (int32_t op = 0; op < x->s->b->n_ops && next < x->n_maps; op++) {
		int32_t need;

		if (op_at(x, op)->phase != 'b')
			continue;
		while (next < x->n_maps && x->swaps.at[x->map[next]].to <= op)
			next = ask_for(x, next, x->swaps.at[x->map[next]].to);
		if (next == x->n_maps)
			return;
		need = x->swaps.at[x->map[next]].to;
		if (x->products[need] == x->products[op + 1])
			next = ask_for(x, next, op);
	}
}

static int decide(struct vdnn *x, int mode)
{
	int err;

	if (mode == UM_VDNN_AS_NEEDED && fits(x))
		return 0;
	offload(x, mode == UM_VDNN_ALL);
	err = drop_dead(x);
	if (err == -E2BIG && mode == UM_VDNN_AS_NEEDED) {
		offload(x, 1);
		err = drop_dead(x);
	}
	prefetch(x);
	return err;
}

int um_scheme_vdnn(struct um_scheme_input *s, int mode, struct um_scheme_result *a)
{
	struct vdnn x = {.s = s, .a = a};
	int err = um_swaps_build(&x.swaps, s, a->choice.keep_resident);

	if (!err)
		err = count_products(&x);
	if (!err)
		err = decide(&x, mode);
	if (err == -E2BIG)
		snprintf(s->why, s->why_size, "vdnn: feature maps alone make no room at op %d '%s' in %d MiB", x.stuck,
			 s->sched->ops.at[x.stuck].name, 2 * s->carry.capacity);
	free(x.products);
	free(x.map);
	um_swaps_fini(&x.swaps);
	return err;
}
