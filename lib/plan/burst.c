/* SPDX-License-Identifier: Apache-2.0
 *
 * burst.c - finds the relaunches of a burst
 *
 * Content is requested by slot and version. A version that the slot's memory holds is read there. One that was dropped
 * from it, and those before it since the slot was last overwritten, are made again there. All others get scratch
 * memory.
 */
#include "plan/burst.h"

#include "model/plan_unfold.h"

int um_burst_init(struct um_burst *b, const struct um_versions *v)
{
	memset(b, 0, sizeof *b);
	b->v = v;
	b->role = calloc(v->s->slots.n + 1, 1);
	b->in = calloc(v->s->ops.n + 1, 1);
	return b->role && b->in ? 0 : -ENOMEM;
}

void um_burst_fini(struct um_burst *b)
{
	free(b->role);
	free(b->in);
	um_vec_fini(&b->slots);
	um_vec_fini(&b->ops);
	um_vec_fini(&b->queue);
	memset(b, 0, sizeof *b);
}

static void clear(struct um_burst *b)
{
	for (size_t i = 0; i < b->slots.n; i++)
		b->role[b->slots.at[i]] = 0;
	for (size_t i = 0; i < b->ops.n; i++)
		b->in[b->ops.at[i]] = 0;
	um_vec_clear(&b->slots);
	um_vec_clear(&b->ops);
	um_vec_clear(&b->queue);
}

static int add_role(struct um_burst *b, uint32_t slot, uint8_t role)
{
	if (!b->role[slot] && um_vec_push(&b->slots, slot))
		return -ENOMEM;
	b->role[slot] |= role;
	return 0;
}

/* The version that the slot's memory holds at the burst, or would hold if it was not dropped. UM_VERSION_NONE if the
 * slot is not alive. */
static uint32_t current(const struct um_burst *b, uint32_t slot)
{
	return um_slot_alive_at(&b->v->s->slots.at[slot], b->at) ? um_versions_at(b->v, slot, b->at) : UM_VERSION_NONE;
}

/* Does the slot's memory pass through a version while its content is made again? */
static int is_on_the_way(const struct um_burst *b, uint32_t slot, uint32_t version)
{
	uint32_t last;

	if (!(b->role[slot] & UM_BURST_OWN) || version >= UM_VERSION_OLDER)
		return 0;
	last = current(b, slot);
	return version <= last && version >= um_versions_base(b->v, slot, last);
}

static int add_op(struct um_burst *b, int32_t op)
{
	const struct um_schedule *s = b->v->s;
	const struct um_sched_op *o = &s->ops.at[op];

	if (b->in[op])
		return 0;
	if (b->ops.n >= b->most)
		return -EINVAL;
	b->in[op] = 1;
	if (um_vec_push(&b->ops, op))
		return -ENOMEM;
	for (uint32_t u = o->first_use; u < o->first_use + o->n_uses; u++) {
		uint32_t slot = s->uses.at[u].slot;

		if (!(um_relaunch_access(s, o, &s->uses.at[u]) & UM_READ))
			continue;
		if (b->v->touch[um_versions_find(b->v, slot, op)].undefined)
			return -EINVAL;
		if (um_vec_push(&b->queue, slot) || um_vec_push(&b->queue, um_versions_at(b->v, slot, op)))
			return -ENOMEM;
	}
	return 0;
}

/* All writers from the last whole overwrite on. */
static int add_writers(struct um_burst *b, uint32_t slot, uint32_t version)
{
	uint32_t base = um_versions_base(b->v, slot, version);
	int err = base == UINT32_MAX ? -EINVAL : 0;

	for (uint32_t t = base; !err && t <= version; t++)
		if (b->v->touch[t].writes)
			err = add_op(b, b->v->touch[t].op);
	return err;
}

static int request(struct um_burst *b, uint32_t slot, uint32_t version)
{
	if (version == UM_VERSION_NONE)
		return -EINVAL;
	if (is_on_the_way(b, slot, version))
		return 0;
	if (version != current(b, slot))
		return add_role(b, slot, UM_BURST_SCRATCH) ? -ENOMEM : add_writers(b, slot, version);
	if (!b->dropped[slot])
		return add_role(b, slot, UM_BURST_READ);
	return add_role(b, slot, UM_BURST_OWN) ? -ENOMEM : add_writers(b, slot, version);
}

static int by_op(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return x < y ? -1 : x > y;
}

int um_burst_is_scratch(const struct um_burst *b, int32_t op, uint32_t slot)
{
	uint32_t t = um_versions_find(b->v, slot, op), version = um_versions_at(b->v, slot, op);

	if (!(b->role[slot] & UM_BURST_SCRATCH))
		return 0;
	if (b->v->touch[t].writes && b->v->touch[t].again)
		version = t;
	if (b->role[slot] & UM_BURST_AGAIN && version == current(b, slot))
		return 0;
	return !is_on_the_way(b, slot, version) && (b->v->touch[t].writes || version != current(b, slot));
}

/* What relaunches write besides what was requested. `more`: content that returns on the way was dropped. */
static int add_outputs(struct um_burst *b, int *more)
{
	const struct um_schedule *s = b->v->s;

	for (size_t i = 0; i < b->ops.n; i++) {
		const struct um_sched_op *o = &s->ops.at[b->ops.at[i]];

		for (uint32_t k = o->first_relaunch; k < o->first_relaunch + o->n_relaunch; k++) {
			uint32_t slot = s->relaunch.at[k], t = um_versions_find(b->v, slot, b->ops.at[i]);
			int is_current = t == current(b, slot);

			if (is_on_the_way(b, slot, t))
				continue;
			if (is_current && b->dropped[slot]) {
				*more = 1;
				if (um_vec_push(&b->queue, slot) || um_vec_push(&b->queue, t))
					return -ENOMEM;
			} else if (add_role(b, slot,
					    is_current && b->v->touch[t].whole &&
							    s->slots.at[slot].bytes < b->scratch_from
						    ? UM_BURST_AGAIN
						    : UM_BURST_SCRATCH)) {
				return -ENOMEM;
			}
		}
	}
	return 0;
}

int um_burst_build(struct um_burst *b, int32_t at, const uint32_t *slots, uint32_t n)
{
	int more = 1, err = 0;

	clear(b);
	b->at = at;
	for (uint32_t i = 0; i < n && !err; i++)
		err = request(b, slots[i], current(b, slots[i]));
	while (!err && more) {
		more = 0;
		while (!err && b->queue.n) {
			b->queue.n -= 2;
			err = request(b, b->queue.at[b->queue.n], b->queue.at[b->queue.n + 1]);
		}
		if (!err)
			err = add_outputs(b, &more);
	}
	if (b->ops.n)
		qsort(b->ops.at, b->ops.n, sizeof *b->ops.at, by_op);
	return err;
}
