/* SPDX-License-Identifier: Apache-2.0
 *
 * compiled_plan.c - compiles a plan into actions on whole blocks
 *
 * The blocks of the slots are numbered. A walk over the iteration tracks, for each block, which slot parts in it are
 * alive and which of them are wanted on the device, and writes actions. There are three walks, each started in the
 * final state of the previous one; the last one is the steady iteration. The first is made twice: blocks that it
 * brought only because an op touched them are prefetched ahead in the second pass.
 */
#include "replay/compiled_plan.h"

#include "replay/compiled_map.h"

#include <errno.h>
#include <limits.h>

#define SETTLING_WALKS 4

void um_compiled_plan_init(struct um_compiled_plan *p)
{
	memset(p, 0, sizeof *p);
	p->run_out = UM_RUN_OUT;
}

void um_compiled_iteration_fini(struct um_compiled_iteration *iteration)
{
	um_vec_fini(&iteration->actions);
	free(iteration->first);
	free(iteration->gate);
	um_vec_fini(&iteration->faults);
	memset(iteration, 0, sizeof *iteration);
}

void um_compiled_plan_fini(struct um_compiled_plan *p)
{
	for (int i = 0; i <= UM_COMPILED_PLAN_STEADY; i++)
		um_compiled_iteration_fini(&p->iterations[i]);
	um_vec_fini(&p->stays);
	um_vec_fini(&p->occupied);
	um_vec_fini(&p->blocks);
	um_vec_fini(&p->read_mostly);
	um_vec_fini(&p->host_resident);
	free(p->resident);
	free(p->from);
	free(p->rotating);
	memset(p, 0, sizeof *p);
}

/* Extends the lane's latest action, of the same op, if that makes one longer run of blocks. An in may be extended past
 * outs that make room for it, but not past one that waits for it. */
static int merge(struct um_compiled_plan_walk *b, const struct um_action *a, int lane)
{
	if (b->latest[lane] >= b->to->actions.n)
		return 0;
	struct um_action *was = &b->to->actions.at[b->latest[lane]];

	if (was->kind != a->kind || was->at != a->at || was->slot != a->slot ||
	    was->bytes + a->bytes > (lane ? b->out->run_out : UM_RUN_IN) * UM_BLOCK_BYTES ||
	    (!lane && b->outs_need >= b->n_in))
		return 0;
	if (a->addr + a->bytes == was->addr)
		was->addr = a->addr;
	else if (was->addr + was->bytes != a->addr)
		return 0;
	was->bytes += a->bytes;
	was->drops = a->drops;
	was->streams |= a->streams;
	if (a->room > was->room)
		was->room = a->room;
	return 1;
}

static void drop(struct um_compiled_plan_walk *b, struct um_action a, int frees)
{
	struct um_compiled_plan_drop d = {a, (uint32_t)b->drops.n, frees};

	d.action.drops = (uint32_t)b->n_in;
	if (a.room > b->outs_need)
		b->outs_need = a.room;
	if (um_vec_push(&b->drops, d))
		b->err = -ENOMEM;
}

static void emit(struct um_compiled_plan_walk *b, enum um_action_kind kind, uint32_t at, uint32_t slot,
		 struct um_compiled_plan_block *bl)
{
	struct um_compiled_iteration *p = b->to;
	struct um_action a = {.kind = kind,
			      .at = at,
			      .slot = slot,
			      .addr = bl->addr,
			      .bytes = UM_BLOCK_BYTES,
			      .drops = (uint32_t)b->drops.n,
			      .streams = bl->streams};
	int lane = kind != UM_ACTION_PREFETCH;
	int32_t *count = lane ? &b->n_out : &b->n_in, *last = lane ? &bl->last_out : &bl->last_in;
	int32_t other = lane ? bl->last_in : bl->last_out;

	if (slot >= b->n_slots)
		a.slot = UM_NO_SLOT; /* a twin keeps its place */
	/* A block must have been evicted before it returns, and have arrived before it is evicted; room is added when
	 * the walk is complete. */
	a.room = other == INT32_MIN ? INT32_MIN : other + 1;
	if (lane && kind != UM_ACTION_EVICT) {
		drop(b, a, bl->resident);
		return;
	}
	if (!merge(b, &a, lane)) {
		b->latest[lane] = p->actions.n;
		if ((!lane && um_vec_push(&b->again, 0u)) || um_vec_push(&p->actions, a)) {
			b->err = -ENOMEM;
			return;
		}
		++*count;
		if (!lane)
			b->outs_need = INT32_MIN;
	}
	if (!lane)
		b->again.at[b->n_in - 1] += bl->resident != 0;
	else if (a.room > b->outs_need)
		b->outs_need = a.room;
	*last = *count - 1;
}

/* Evicts the block: with a copy if a live part of it has content; otherwise it is dropped from `at` on, possibly in the
 * past. */
static void block_out(struct um_compiled_plan_walk *b, struct um_compiled_plan_block *bl, uint32_t at, uint32_t slot)
{
	emit(b,
	     !bl->away					 ? bl->faults & 1 ? UM_ACTION_DROP_WITH_COPY : UM_ACTION_DISCARD
	     : bl->read_mostly				 ? UM_ACTION_DROP_CLEAN
	     : um_compiled_plan_for_cpu(b, bl, at, slot) ? UM_ACTION_DROP_WITH_COPY
							 : UM_ACTION_EVICT,
	     at, slot, bl);
	if (bl->away && !bl->read_mostly)
		um_compiled_plan_start_out(b, at);
	b->out->for_cpu += bl->away && !bl->read_mostly && um_compiled_plan_for_cpu(b, bl, at, slot);
	bl->resident = bl->unsure = 0;
	bl->left |= b->finds_missing ? 0 : 2;
	b->resident--;
	um_compiled_plan_dead_remove(b, bl);
}

/* Discards the dead block that is needed last, as soon as it is dead. 0 if there is none. */
static int make_room(struct um_compiled_plan_walk *b)
{
	struct um_compiled_plan_block *bl = um_compiled_plan_dead_last(b);

	if (bl)
		block_out(b, bl, bl->since, bl->dead_slot);
	return bl != NULL;
}

/* No part of the block is wanted any more: live content is evicted now, dead content stays while there is room. */
static void block_unwanted(struct um_compiled_plan_walk *b, struct um_compiled_plan_block *bl, uint32_t at,
			   uint32_t slot, int is_marked)
{
	if (!bl->resident || bl->wanted)
		return;
	if (bl->away || is_marked || (bl->leaves_dead && um_compiled_plan_is_last(b, bl, at)))
		block_out(b, bl, at, slot);
	else
		um_compiled_plan_dead_add(b, bl, slot, at);
}

/* While missing blocks are searched: records the end of a block that no action prefetched. Of a supplied tensor it is
 * not known before. */
static void record_missing(struct um_compiled_plan_walk *b, uint32_t block, uint32_t slot, uint32_t at, int stays)
{
	const struct um_compiled_plan_block *bl = &b->blocks[block];
	const struct um_slot *s = &b->plan->sched.slots.at[slot];

	if (!b->finds_missing || bl->resident || bl->last_in != INT32_MIN || s->flags & UM_SLOT_SUPPLIED ||
	    (stays && !um_slot_alive_first(s)))
		return;
	if (um_vec_push(&b->ahead, ((struct um_compiled_plan_ahead){block, slot, at, stays})))
		b->err = -ENOMEM;
}

static void part_set(struct um_compiled_plan_walk *b, struct um_compiled_plan_part *p, int wanted, int away)
{
	struct um_compiled_plan_block *bl = &b->blocks[p->block];

	bl->wanted += (uint32_t)wanted - p->wanted;
	bl->away += (uint32_t)away - p->away;
	p->wanted = (uint8_t)wanted;
	p->away = (uint8_t)away;
	p->waste = 0;
}

/* The part's content on the host, if any, will be prefetched, or is unused. */
static void leave_host(struct um_compiled_plan_walk *b, const struct um_compiled_plan_part *p, uint32_t at, int wanted)
{
	struct um_compiled_plan_block *bl = &b->blocks[p->block];

	if (bl->resident || !p->away)
		return;
	if (wanted && !p->waste) {
		bl->fetch = 1;
	} else {
		bl->dead_on_host = 1;
		bl->since = at;
	}
}

/* Before a prefetch: if all content of the block on the host is unused, it is discarded and need not be copied. */
static void discard_dead_on_host(struct um_compiled_plan_walk *b, struct um_compiled_plan_block *bl, uint32_t slot)
{
	if (bl->dead_on_host && !bl->fetch && !bl->away)
		emit(b, UM_ACTION_DISCARD, bl->since, slot, bl);
	bl->dead_on_host = bl->fetch = 0;
}

/* `touched`: no hint prefetched it. Blocks that are only assumed resident are prefetched nevertheless. Dead blocks are
 * discarded before the walk waits for evictions in progress. */
static void want(struct um_compiled_plan_walk *b, uint32_t slot, uint64_t off, uint64_t bytes, uint32_t at, int touched)
{
	uint32_t from, to;

	um_compiled_plan_parts(b, slot, off, bytes, &from, &to);
	for (uint32_t k = from; k < to; k++) { /* first, so that none of them makes room for another */
		if (b->blocks[b->parts[k].block].host_resident)
			continue;
		leave_host(b, &b->parts[k], at, 1);
		part_set(b, &b->parts[k], 1, 0);
		um_compiled_plan_dead_remove(b, &b->blocks[b->parts[k].block]);
	}
	for (uint32_t k = from; k < to; k++) {
		struct um_compiled_plan_block *bl = &b->blocks[b->parts[k].block];

		if (bl->host_resident || (bl->resident && !bl->unsure))
			continue;
		if (touched)
			record_missing(b, b->parts[k].block, slot, at, 0);
		if (!bl->unsure) {
			while (b->resident + um_compiled_plan_leaving_at(b, at) >= b->capacity && make_room(b))
				continue;
			b->out->over += b->resident >= b->capacity;
			um_compiled_plan_come(b);
		}
		discard_dead_on_host(b, bl, bl->since < at && !b->moves[slot] ? UM_NO_SLOT : slot);
		emit(b, UM_ACTION_PREFETCH, at, slot, bl);
		bl->resident = 1;
		bl->unsure = 0;
	}
}

/* A tensor is born: its memory may be written. A block that died earlier can still be discarded before the birth. */
static void birth(struct um_compiled_plan_walk *b, uint32_t slot, uint32_t at)
{
	for (uint32_t k = b->slot_part[slot]; k < b->slot_part[slot + 1]; k++) {
		struct um_compiled_plan_block *bl = &b->blocks[b->parts[k].block];

		if (!bl->resident || (bl->dead_at && bl->since < at))
			continue;
		part_set(b, &b->parts[k], 1, 0);
		um_compiled_plan_dead_remove(b, bl);
	}
}

/* A hint evicts a range; a partly covered part stays. Content that the plan does not use and the program has not
 * declared dead is copied nevertheless: it is certainly unused only when it is overwritten or freed. */
static void unwant(struct um_compiled_plan_walk *b, const struct um_hint *h)
{
	uint32_t from, to, slot = um_compiled_plan_slot_at(b, h->slot, (uint32_t)h->at);
	const struct um_slot *sl = &b->plan->sched.slots.at[slot];
	int declared = b->marks[slot] & UM_MARKED_DEAD ||
		       (sl->flags & UM_SLOT_TRANSIENT && !(b->marks[slot] & UM_MARKED_USED));
	int waste = h->kind == UM_HINT_DISCARD && !declared;

	um_compiled_plan_parts(b, slot, h->off, h->bytes, &from, &to);
	for (uint32_t k = from; k < to; k++) {
		struct um_compiled_plan_block *bl = &b->blocks[b->parts[k].block];
		uint64_t lo = bl->addr > sl->place ? bl->addr - sl->place : 0;
		uint64_t hi = bl->addr + UM_BLOCK_BYTES - sl->place;

		if (hi > sl->bytes)
			hi = sl->bytes;
		if (h->off > lo || h->off + h->bytes < hi)
			continue;
		record_missing(b, b->parts[k].block, slot, (uint32_t)h->at, 1);
		part_set(b, &b->parts[k], 0, waste || h->kind == UM_HINT_EVICT);
		b->parts[k].waste = (uint8_t)waste;
		block_unwanted(b, bl, (uint32_t)h->at, slot, 1);
	}
}

/* The tensor dies, or leaves with its content. */
static void die(struct um_compiled_plan_walk *b, uint32_t slot, uint32_t at)
{
	int leaves = b->plan->sched.slots.at[slot].death < 0;

	for (uint32_t k = b->slot_part[slot]; k < b->slot_part[slot + 1]; k++) {
		record_missing(b, b->parts[k].block, slot, at, 1);
		if (!leaves)
			leave_host(b, &b->parts[k], at, 0);
		part_set(b, &b->parts[k], 0, leaves);
		block_unwanted(b, &b->blocks[b->parts[k].block], at, b->moves[slot] ? slot : UM_NO_SLOT, 0);
	}
}

/* A part that a paged op uses: its block counts as resident, and as unsure once the op has ended. */
static void fault_in(struct um_compiled_plan_walk *b, struct um_compiled_plan_part *p,
		     struct um_compiled_plan_faults *faults)
{
	struct um_compiled_plan_block *bl = &b->blocks[p->block];
	int copied = p->away && !p->waste;

	part_set(b, p, 1, 0);
	um_compiled_plan_dead_remove(b, bl);
	if (bl->resident)
		return;
	bl->resident = 1;
	bl->faults |= 2;
	bl->dead_on_host = bl->fetch = 0;
	um_compiled_plan_come(b);
	faults->blocks++;
	faults->copied += (uint32_t)copied;
}

/* Compiles an access of the CPU: the blocks of its ranges are on the host afterwards. */
static void use_on_host(struct um_compiled_plan_walk *b, uint32_t op)
{
	const struct um_sched_op *so = &b->plan->sched.ops.at[op];

	for (uint32_t u = so->first_use; u < so->first_use + so->n_uses; u++) {
		const struct um_sched_use *su = &b->plan->sched.uses.at[u];
		uint32_t from, to, slot = um_compiled_plan_slot_at(b, su->slot, op);

		um_compiled_plan_parts(b, slot, su->off, su->bytes, &from, &to);
		b->marks[slot] = UM_MARKED_USED;
		for (uint32_t k = from; k < to; k++) {
			struct um_compiled_plan_block *bl = &b->blocks[b->parts[k].block];

			if (bl->host_resident)
				continue;
			um_compiled_plan_dead_remove(b, bl);
			part_set(b, &b->parts[k], 0, 1);
			/* of a block that stays the CPU takes nothing else than what ops do not use */
			if (!bl->wanted || b->parts[k].used)
				bl->unsure = bl->resident;
		}
		if (su->dead_after)
			b->marks[slot] |= UM_MARKED_DEAD;
	}
	b->to->gate[op] = INT32_MIN;
}

/* After a paged op the driver may have evicted any block: each is prefetched before its next use. */
static void end_paged(struct um_compiled_plan_walk *b, const struct um_compiled_plan_faults *faults)
{
	for (uint32_t k = 0; k < b->n_blocks; k++)
		b->blocks[k].unsure = b->blocks[k].resident;
	if (um_vec_push(&b->to->faults, *faults))
		b->err = -ENOMEM;
}

/* An op touches blocks that earlier hints prefetched; the others become resident by a fault. */
static void touch(struct um_compiled_plan_walk *b, uint32_t op)
{
	const struct um_sched_op *so = &b->plan->sched.ops.at[op];
	int32_t gate = INT32_MIN;
	struct um_compiled_plan_faults faults = {.op = op};

	for (uint32_t u = 0; u < so->n_uses; u++) {
		const struct um_sched_use *su = &b->plan->sched.uses.at[so->first_use + u];
		uint32_t from, to, slot = um_compiled_plan_slot_at(b, su->slot, op);

		um_compiled_plan_parts(b, slot, su->off, su->bytes, &from, &to);
		b->marks[slot] = UM_MARKED_USED;
		for (uint32_t k = from; k < to; k++) {
			struct um_compiled_plan_block *bl = &b->blocks[b->parts[k].block];

			if (bl->host_resident)
				continue;
			if (so->paged)
				fault_in(b, &b->parts[k], &faults);
			else if (!bl->resident || bl->unsure || !b->parts[k].wanted)
				want(b, slot, su->off, su->bytes, op, 1);
			if (bl->last_in != INT32_MIN && bl->last_in + 1 > gate)
				gate = bl->last_in + 1;
		}
	}
	b->to->gate[op] = gate;
	if (so->paged)
		end_paged(b, &faults);
	for (uint32_t u = so->first_use; u < so->first_use + so->n_uses; u++)
		if (b->plan->sched.uses.at[u].dead_after)
			b->marks[um_compiled_plan_slot_at(b, b->plan->sched.uses.at[u].slot, op)] |= UM_MARKED_DEAD;
}

/* First step of the first walk: blocks that may stay count as resident, known missing ones are prefetched. */
static void prefetch_ahead(struct um_compiled_plan_walk *b)
{
	for (size_t i = 0; i < 2 * b->ahead.n && !b->finds_missing && !b->ops_before; i++) {
		const struct um_compiled_plan_ahead *x = &b->ahead.at[i % b->ahead.n];
		struct um_compiled_plan_block *bl = &b->blocks[x->block];

		if (x->stays != (i < b->ahead.n))
			continue;
		if (!x->stays)
			emit(b, UM_ACTION_PREFETCH, 0, x->slot, bl);
		else if (um_vec_push(&b->out->stays,
				     ((struct um_action){.slot = x->slot < b->n_slots ? x->slot : UM_NO_SLOT,
							 .addr = bl->addr,
							 .bytes = UM_BLOCK_BYTES})))
			b->err = -ENOMEM;
		bl->resident = 1;
		bl->unsure = x->stays;
		um_compiled_plan_come(b);
		b->start_resident += (uint64_t)x->stays;
	}
}

/* In the second walk: releases memory that only had tensors that have moved since. */
static void forget_twins(struct um_compiled_plan_walk *b)
{
	if (b->ops_before != b->plan->sched.ops.n)
		return;
	for (uint32_t k = b->slot_part[b->n_slots]; k < b->slot_part[b->plan->sched.slots.n]; k++) {
		struct um_compiled_plan_block *bl = &b->blocks[b->parts[k].block];

		if (bl->dead_at && !bl->n_touch)
			block_out(b, bl, 0, UM_NO_SLOT);
	}
}

/* Dead memory of three places or more leaves before the next iteration, which does not know in which of them it lies.
 * Of two, or if it is freed after the last op, it is the place of what is born next. */
static void drop_rotating(struct um_compiled_plan_walk *b)
{
	for (uint32_t k = 0; k < b->n_blocks; k++) {
		struct um_compiled_plan_block *bl = &b->blocks[k];

		if (bl->dead_at && bl->dead_slot != UM_NO_SLOT && b->moves[bl->dead_slot] > 2 &&
		    bl->since < b->plan->sched.ops.n)
			block_out(b, bl, bl->since, bl->dead_slot);
	}
}

static void walk(struct um_compiled_plan_walk *b)
{
	const struct um_plan *plan = b->plan;
	uint32_t n_ops = (uint32_t)plan->sched.ops.n;
	size_t h = 0, born = 0;

	um_vec_clear(&b->to->actions);
	um_vec_clear(&b->again);
	um_vec_clear(&b->drops);
	um_vec_clear(&b->to->faults);
	b->out->over = b->out->for_cpu = 0;
	b->n_in = b->n_out = 0;
	b->latest[0] = b->latest[1] = SIZE_MAX;
	b->outs_need = INT32_MIN;
	b->start_resident = b->resident;
	um_compiled_plan_note_begin(b);
	prefetch_ahead(b);
	forget_twins(b);
	for (uint32_t op = 0; op <= n_ops; op++) {
		for (uint32_t s = b->pos_head[op]; s != UM_NONE; s = b->pos_next[s])
			if (s < b->n_slots ? b->ops_before || b->twin[s] == UM_NONE : !b->ops_before)
				die(b, s, op);
		if (op == n_ops) /* that was freed after the last op */
			break;
		for (; born < plan->sched.births.n; born++) {
			uint32_t s = plan->sched.births.at[born];

			if (plan->sched.slots.at[s].birth > (int32_t)op)
				break;
			birth(b, s, op);
		}
		for (; h < plan->hints.n && (uint32_t)plan->hints.at[h].at == op; h++) {
			const struct um_hint *hint = &plan->hints.at[h];

			if (hint->kind == UM_HINT_PREFETCH)
				want(b, um_compiled_plan_slot_at(b, hint->slot, op), hint->off, hint->bytes, op, 0);
			else if (hint->kind == UM_HINT_EVICT || hint->kind == UM_HINT_DISCARD)
				unwant(b, hint);
		}
		if (plan->sched.ops.at[op].stream == UM_STREAM_CPU)
			use_on_host(b, op);
		else
			touch(b, op);
		if (b->finds_missing)
			b->level[op] = b->resident - b->n_dead;
	}
	drop_rotating(b);
}

/* Renumbers this walk's actions as those of the previous walk. */
static void next_walk(struct um_compiled_plan_walk *b)
{
	um_compiled_plan_next_leaving(b);
	for (size_t i = 0; i < b->plan->sched.slots.n; i++)
		b->marks[i] = b->plan->sched.slots.at[i].carry == i ? b->marks[i] & UM_MARKED_DEAD : 0;
	b->ops_before += b->plan->sched.ops.n;
	for (uint32_t k = 0; k < b->n_blocks; k++) {
		struct um_compiled_plan_block *bl = &b->blocks[k];

		if (bl->last_in != INT32_MIN)
			bl->last_in -= b->n_in;
		if (bl->last_out != INT32_MIN)
			bl->last_out -= b->n_out;
		bl->faults >>= 1;
		bl->since = 0; /* possibly the very end; time does not go back */
	}
	if (um_compiled_plan_turn(b))
		b->err = -ENOMEM;
}

/* A walk from an empty device, to find missing blocks; then the state is restored. */
static int find_missing(struct um_compiled_plan_walk *b)
{
	b->level = calloc(b->plan->sched.ops.n + 1, sizeof *b->level);
	if (!b->level)
		return -ENOMEM;
	b->finds_missing = 1;
	walk(b);
	b->finds_missing = 0;
	um_compiled_plan_choose_ahead(b);
	for (uint32_t k = 0; k < b->n_blocks; k++) {
		struct um_compiled_plan_block *bl = &b->blocks[k];

		um_compiled_plan_dead_remove(b, bl);
		bl->wanted = bl->away = 0;
		bl->resident = bl->unsure = bl->dead_on_host = bl->fetch = 0;
		bl->faults >>= 1;
		bl->last_in = bl->last_out = INT32_MIN;
	}
	for (uint32_t k = 0; k < b->slot_part[b->plan->sched.slots.n]; k++)
		b->parts[k].wanted = b->parts[k].away = b->parts[k].waste = 0;
	memset(b->marks, 0, b->plan->sched.slots.n);
	um_vec_clear(&b->leaving);
	b->gone = 0;
	b->resident = 0;
	return b->err;
}

static int build_iteration(struct um_compiled_plan_walk *b, struct um_compiled_iteration *iteration, int finds_missing)
{
	b->to = iteration;
	iteration->first = calloc(b->plan->sched.ops.n + 2, sizeof *iteration->first);
	iteration->gate = calloc(b->plan->sched.ops.n + 1, sizeof *iteration->gate);
	if (!iteration->first || !iteration->gate)
		return -ENOMEM;
	if (finds_missing && find_missing(b))
		return -ENOMEM;
	walk(b);
	iteration->n_in = (uint32_t)b->n_in;
	iteration->n_out = (uint32_t)b->n_out;
	return b->err ? b->err : um_compiled_plan_order(b);
}

/* Walks again while the steady iteration ends without blocks that it begins with. */
static int settle(struct um_compiled_plan_walk *b)
{
	struct um_compiled_iteration *steady = &b->out->iterations[UM_COMPILED_PLAN_STEADY];
	int err = b->err;

	for (int i = 0; i < SETTLING_WALKS && !err && um_compiled_plan_loses(b); i++) {
		um_compiled_iteration_fini(steady);
		next_walk(b);
		err = b->err ? b->err : build_iteration(b, steady, 0);
	}
	return err;
}

/* Builds the iterations from `first` on. */
static int build(const struct um_plan *plan, uint64_t capacity_blocks, int first, struct um_compiled_plan *out)
{
	struct um_compiled_plan_walk b = {.out = out, .capacity = capacity_blocks};
	int err = plan->sched.ops.n ? um_compiled_plan_map(&b, plan) : -ENOMEM;

	if (!err)
		err = um_compiled_plan_advice(&b);
	out->n_ops = (uint32_t)plan->sched.ops.n;
	for (int i = first; i <= UM_COMPILED_PLAN_STEADY && !err; i++) {
		if (i > first)
			next_walk(&b);
		err = b.err ? b.err : build_iteration(&b, &out->iterations[i], !i);
	}
	if (!err)
		err = settle(&b);
	if (!err)
		err = first ? um_compiled_plan_issue_early(out, plan) : um_compiled_plan_end(&b);
	um_compiled_plan_unmap(&b);
	if (err)
		um_compiled_plan_fini(out);
	return err;
}

int um_compiled_plan_build(const struct um_plan *plan, uint64_t capacity_blocks, struct um_compiled_plan *out)
{
	return build(plan, capacity_blocks, 0, out);
}

int um_compiled_plan_build_steady(const struct um_plan *plan, uint64_t capacity_blocks, struct um_compiled_plan *out)
{
	return build(plan, capacity_blocks, UM_COMPILED_PLAN_STEADY - 1, out);
}
