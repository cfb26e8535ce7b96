/* SPDX-License-Identifier: Apache-2.0
 *
 * unroll.c - joins several iterations with rotating buffers into one schedule
 */
#include "learn/unroll.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Does the slot pass its tensor on, at an address that the program chose and that is not a block boundary? */
static int is_unaligned_rotation(const struct um_schedule *s, uint32_t i)
{
	const struct um_slot *t = &s->slots.at[i];

	return t->carry != i && t->carry < s->slots.n && t->flags & UM_SLOT_FIXED && t->place % UM_BLOCK_BYTES;
}

/* Number of iterations until slot i has its initial tensor again; 0: never, or more than UM_UNROLL_MOST. */
static uint32_t iterations_of(const struct um_schedule *s, uint32_t i)
{
	uint32_t at = i;

	for (uint32_t k = 1; k <= UM_UNROLL_MOST; k++) {
		at = s->slots.at[at].carry;
		if (at == i)
			return k;
		if (at >= s->slots.n)
			return 0;
	}
	return 0;
}

static uint32_t common(uint32_t a, uint32_t b)
{
	uint32_t x = a, y = b;

	while (y) {
		uint32_t rest = x % y;

		x = y;
		y = rest;
	}
	return a / x * b;
}

uint32_t um_unroll_iterations(const struct um_schedule *s)
{
	uint32_t n_iterations = 1;
	int unaligned = 0;

	for (uint32_t i = 0; i < s->slots.n; i++) {
		const struct um_slot *t = &s->slots.at[i];
		uint32_t iteration = t->birth < 0 && t->death < 0 ? iterations_of(s, i) : 0;

		/* no unrolling with lives that cross the iteration boundary, or with tensors of unknown origin */
		if (t->flags & UM_SLOT_SUPPLIED ||
		    (t->birth < 0 ? t->carry != UM_NO_SLOT && !iteration : t->death <= t->birth))
			return 1;
		if (iteration)
			n_iterations = common(n_iterations, iteration);
		if (n_iterations > UM_UNROLL_MOST)
			return 1;
		unaligned |= is_unaligned_rotation(s, i);
	}
	return unaligned ? n_iterations : 1;
}

/* The slot of each tensor in each iteration: slots alive before all iterations keep their numbers, births follow. */
struct unroll {
	const struct um_schedule *s;
	struct um_schedule *out;
	uint32_t n, n_iterations;
	uint32_t *now, *next; /* by slot: the slot of `out` in this iteration, in the next */
};

static int add_slot(struct unroll *u, uint32_t i, uint32_t iteration)
{
	struct um_slot t = u->s->slots.at[i];
	int32_t from = (int32_t)(iteration * u->n);

	if (t.birth >= 0) {
		t.birth += from;
		t.born_ord += iteration * (uint32_t)u->s->births.n;
	}
	if (t.death >= 0)
		t.death += from;
	t.carry = t.birth < 0 ? (uint32_t)u->out->slots.n : UM_NO_SLOT;
	if (t.name && !(t.name = strdup(t.name)))
		return -ENOMEM;
	u->now[i] = (uint32_t)u->out->slots.n;
	u->out->slots.at[u->out->slots.n++] = t;
	return 0;
}

static int add_ops(struct unroll *u)
{
	const struct um_schedule *s = u->s;
	struct um_schedule *out = u->out;

	for (size_t i = 0; i < s->ops.n; i++) {
		struct um_sched_op op = s->ops.at[i];

		op.name = strdup(op.name);
		if (!op.name)
			return -ENOMEM;
		op.first_use = (uint32_t)out->uses.n;
		op.first_relaunch = (uint32_t)out->relaunch.n;
		op.first_ws = (uint32_t)out->ws.n;
		for (uint32_t k = 0; k < op.n_uses; k++) {
			struct um_sched_use use = s->uses.at[s->ops.at[i].first_use + k];

			use.slot = u->now[use.slot];
			out->uses.at[out->uses.n++] = use;
		}
		for (uint32_t k = 0; k < op.n_relaunch; k++)
			out->relaunch.at[out->relaunch.n++] = u->now[s->relaunch.at[s->ops.at[i].first_relaunch + k]];
		for (uint32_t k = 0; k < op.n_ws; k++)
			out->ws.at[out->ws.n++] = s->ws.at[s->ops.at[i].first_ws + k];
		out->ops.at[out->ops.n++] = op;
	}
	for (size_t i = 0; i < s->births.n; i++)
		out->births.at[out->births.n++] = u->now[s->births.at[i]];
	return 0;
}

static int add_iteration(struct unroll *u, uint32_t iteration)
{
	const struct um_schedule *s = u->s;
	int err = 0;

	for (uint32_t i = 0; i < s->slots.n && !err; i++)
		if (!iteration || s->slots.at[i].birth >= 0)
			err = add_slot(u, i, iteration);
	if (!err)
		err = add_ops(u);
	for (uint32_t i = 0; i < s->slots.n && !err; i++) {
		uint32_t from = s->slots.at[i].carry;

		u->next[i] = u->now[from < s->slots.n ? from : i];
	}
	uint32_t *was = u->now;

	u->now = u->next;
	u->next = was;
	return err;
}

int um_unroll_build(const struct um_schedule *s, uint32_t n_iterations, struct um_schedule *out)
{
	struct unroll u = {.s = s, .out = out, .n = (uint32_t)s->ops.n, .n_iterations = n_iterations};
	size_t n = n_iterations;
	int err = 0;

	u.now = malloc((s->slots.n + 1) * sizeof *u.now);
	u.next = malloc((s->slots.n + 1) * sizeof *u.next);
	if (!u.now || !u.next || um_vec_reserve(&out->slots, n * s->slots.n + 1) ||
	    um_vec_reserve(&out->ops, n * s->ops.n + 1) || um_vec_reserve(&out->uses, n * s->uses.n + 1) ||
	    um_vec_reserve(&out->relaunch, n * s->relaunch.n + 1) ||
	    um_vec_reserve(&out->births, n * s->births.n + 1) || um_vec_reserve(&out->ws, n * s->ws.n + 1))
		err = -ENOMEM;
	out->signature = s->signature;
	for (uint32_t iteration = 0; iteration < n_iterations && !err; iteration++)
		err = add_iteration(&u, iteration);
	free(u.now);
	free(u.next);
	if (err) {
		um_schedule_fini(out);
		um_schedule_init(out);
	}
	return err;
}
