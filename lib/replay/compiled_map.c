/* SPDX-License-Identifier: Apache-2.0
 *
 * compiled_map.c - maps slots to blocks and back
 */
#include "replay/compiled_map.h"

#include "base/bisect.h"

#include <errno.h>

static int has_place(const struct um_slot *s)
{
	return s->place != UINT64_MAX && !(s->flags & UM_SLOT_UNMANAGED);
}

static uint64_t block_of(uint64_t addr)
{
	return addr / UM_BLOCK_BYTES;
}

/* The blocks of a slot. */
struct span {
	uint64_t first, last;
};

static int by_first(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

static uint32_t find_block(const uint64_t *sorted, uint32_t n, uint64_t addr)
{
	uint32_t lo = 0;

	UM_BISECT(lo, n, i, sorted[i] < addr)
	return lo;
}

/* The blocks with any slot, ascending: there are fewer slots than blocks, so slots are sorted. */
static int list_blocks(struct um_compiled_plan_walk *b, struct span *span, size_t n)
{
	uint64_t next = 0;

	if (n)
		qsort(span, n, sizeof *span, by_first);
	for (size_t i = 0; i < n; i++)
		for (next = span[i].first > next ? span[i].first : next; next <= span[i].last; next++)
			if (um_vec_push(&b->out->blocks, next * UM_BLOCK_BYTES))
				return -ENOMEM;
	b->n_blocks = (uint32_t)b->out->blocks.n;
	b->blocks = calloc(b->n_blocks + 1ull, sizeof *b->blocks);
	b->dead = malloc((b->n_blocks + 1ull) * sizeof *b->dead);
	if (!b->blocks || !b->dead)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->n_blocks; i++)
		b->blocks[i] = (struct um_compiled_plan_block){
			.addr = b->out->blocks.at[i], .last_in = INT32_MIN, .last_out = INT32_MIN};
	return 0;
}

/* Numbers the blocks and builds the parts of each slot. */
static int number_blocks(struct um_compiled_plan_walk *b)
{
	const struct um_schedule *s = &b->plan->sched;
	struct span *span = malloc((s->slots.n + 1) * sizeof *span);
	uint32_t n_parts = 0;
	size_t n = 0;
	int err = -ENOMEM;

	b->slot_part = calloc(s->slots.n + 1, sizeof *b->slot_part);
	if (!span || !b->slot_part)
		goto out;
	for (size_t i = 0; i < s->slots.n; i++) {
		const struct um_slot *sl = &s->slots.at[i];

		b->slot_part[i] = n_parts;
		if (!has_place(sl))
			continue;
		span[n] = (struct span){block_of(sl->place), block_of(sl->place + sl->bytes - 1)};
		n_parts += (uint32_t)(span[n].last - span[n].first + 1);
		n++;
	}
	b->slot_part[s->slots.n] = n_parts;
	b->parts = calloc(n_parts ? n_parts : 1, sizeof *b->parts);
	err = b->parts ? list_blocks(b, span, n) : -ENOMEM;
	for (size_t i = 0; !err && i < s->slots.n; i++) {
		uint64_t addr = block_of(s->slots.at[i].place) * UM_BLOCK_BYTES;
		uint32_t first;

		if (b->slot_part[i] == b->slot_part[i + 1])
			continue;
		first = find_block(b->out->blocks.at, b->n_blocks, addr);
		for (uint32_t k = b->slot_part[i]; k < b->slot_part[i + 1]; k++)
			b->parts[k].block = first + (k - b->slot_part[i]);
	}
out:
	free(span);
	return err;
}

void um_compiled_plan_parts(const struct um_compiled_plan_walk *b, uint32_t slot, uint64_t off, uint64_t bytes,
			    uint32_t *from, uint32_t *to)
{
	const struct um_slot *sl = &b->plan->sched.slots.at[slot];

	if (b->slot_part[slot] == b->slot_part[slot + 1] || !bytes) {
		*from = *to = 0;
		return;
	}
	uint64_t base = block_of(sl->place);

	*from = b->slot_part[slot] + (uint32_t)(block_of(sl->place + off) - base);
	*to = b->slot_part[slot] + (uint32_t)(block_of(sl->place + off + bytes - 1) - base) + 1;
}

/* Ops that touch each block, ascending: to find the dead block that is needed last. */
static int list_touches(struct um_compiled_plan_walk *b)
{
	const struct um_schedule *s = &b->plan->sched;
	size_t total = 0;

	for (int fill = 0; fill < 2; fill++) {
		for (size_t i = 0; i < s->ops.n; i++)
			for (uint32_t u = 0; u < s->ops.at[i].n_uses; u++) {
				const struct um_sched_use *su = &s->uses.at[s->ops.at[i].first_use + u];
				uint32_t from, to;

				um_compiled_plan_parts(b, su->slot, su->off, su->bytes, &from, &to);
				for (uint32_t k = from; k < to; k++) {
					struct um_compiled_plan_block *bl = &b->blocks[b->parts[k].block];

					if (fill)
						b->touches[bl->first_touch + bl->n_touch] = (uint32_t)i;
					bl->n_touch++;
				}
			}
		if (fill)
			break;
		for (uint32_t k = 0; k < b->n_blocks; k++) {
			b->blocks[k].first_touch = (uint32_t)total;
			total += b->blocks[k].n_touch;
			b->blocks[k].n_touch = 0;
		}
		b->touches = malloc((total ? total : 1) * sizeof *b->touches);
		if (!b->touches)
			return -ENOMEM;
	}
	return 0;
}

uint32_t um_compiled_plan_next_touch(const struct um_compiled_plan_walk *b, const struct um_compiled_plan_block *bl,
				     uint32_t at)
{
	const uint32_t *t = b->touches + bl->first_touch;
	uint32_t lo = 0, n = (uint32_t)b->plan->sched.ops.n;

	if (!bl->n_touch)
		return UINT32_MAX;
	UM_BISECT(lo, bl->n_touch, i, t[i] < at)
	return lo < bl->n_touch ? t[lo] - at : t[0] + n - at;
}

/* Supplied tensors pass through several slots, a step in each iteration: is this the last one, whose tensor the next
 * iteration does not use? */
static int is_last_step(const struct um_compiled_plan_walk *b, uint32_t slot)
{
	const struct um_schedule *s = &b->plan->sched;

	if (b->successor[slot] != UM_NO_SLOT || s->slots.at[slot].birth >= 0 || s->slots.at[slot].death >= 0)
		return 0;
	for (size_t hops = 0; s->slots.at[slot].carry < s->slots.n && hops < s->slots.n; hops++)
		slot = s->slots.at[slot].carry;
	return um_slot_is_first_step(&s->slots.at[slot]);
}

/* The op before which the tensor of such a slot leaves: the one after its last use. */
static uint32_t leaves_at(const struct um_compiled_plan_walk *b, uint32_t slot)
{
	const struct um_compiled_plan_block *bl = &b->blocks[b->parts[b->slot_part[slot]].block];

	return b->slot_part[slot] == b->slot_part[slot + 1] || !bl->n_touch
		       ? (uint32_t)b->plan->sched.ops.n
		       : b->touches[bl->first_touch + bl->n_touch - 1] + 1;
}

static int list_deaths(struct um_compiled_plan_walk *b)
{
	const struct um_schedule *s = &b->plan->sched;

	b->pos_head = malloc((s->ops.n + 1) * sizeof *b->pos_head);
	b->pos_next = malloc((s->slots.n + 1) * sizeof *b->pos_next);
	b->moves = calloc(s->slots.n + 1, sizeof *b->moves);
	b->successor = malloc((s->slots.n + 1) * sizeof *b->successor);
	b->marks = calloc(s->slots.n + 1, sizeof *b->marks);
	if (!b->pos_head || !b->pos_next || !b->moves || !b->successor || !b->marks)
		return -ENOMEM;
	for (size_t i = 0; i < s->slots.n; i++)
		b->successor[i] = UM_NO_SLOT;
	for (uint32_t i = 0; i < s->slots.n; i++) {
		uint32_t c = s->slots.at[i].carry;
		uint8_t places;

		if (c >= s->slots.n || c == i)
			continue;
		places = s->slots.at[c].carry < s->slots.n ? 3 : 2;
		b->moves[i] = b->moves[i] > places ? b->moves[i] : places;
		b->moves[c] = b->moves[c] > places ? b->moves[c] : places;
		b->successor[c] = i;
	}
	for (size_t i = 0; i <= s->ops.n; i++)
		b->pos_head[i] = UM_NONE;
	for (uint32_t i = 0; i < s->slots.n; i++) {
		int32_t death = s->slots.at[i].death;

		if (is_last_step(b, i))
			death = (int32_t)leaves_at(b, i);
		if (death < 0 || (b->successor[i] != UM_NO_SLOT && (size_t)death == s->ops.n))
			continue;
		/* A free after the last op takes effect when the next iteration begins. A rotating slot then has
		 * another tensor. */
		if ((size_t)death == s->ops.n && !b->moves[i])
			death = 0;
		b->pos_next[i] = b->pos_head[death];
		b->pos_head[death] = i;
	}
	return 0;
}

int um_compiled_plan_has_twin(const struct um_schedule *sched, uint32_t slot)
{
	const struct um_slot *s = &sched->slots.at[slot];
	int again = s->carry == slot && s->birth >= 0 && s->death <= s->birth;
	int passed_on = s->carry != slot && s->birth < 0 && s->death >= 0;

	return has_place(s) && (again || passed_on) && (size_t)s->death < sched->ops.n && s->bound.v &&
	       s->bound_addr != s->place && s->bound_addr < UINT64_MAX - s->bytes;
}

static int add_twins(struct um_compiled_plan_walk *b, const struct um_plan *plan)
{
	const struct um_schedule *s = &plan->sched;
	struct um_slot *slots = malloc((2 * s->slots.n + 1) * sizeof *slots);
	size_t n = s->slots.n;

	b->seen = *plan;
	b->seen.sched.slots.at = slots;
	b->plan = &b->seen;
	b->n_slots = (uint32_t)n;
	b->twin = malloc((n + 1) * sizeof *b->twin);
	if (!slots || !b->twin)
		return -ENOMEM;
	if (n)
		memcpy(slots, s->slots.at, n * sizeof *slots);
	for (uint32_t i = 0; i < s->slots.n; i++) {
		b->twin[i] = UM_NONE;
		if (!um_compiled_plan_has_twin(s, i))
			continue;
		b->twin[i] = (uint32_t)n;
		slots[n++] = (struct um_slot){.bytes = slots[i].bytes,
					      .birth = -1,
					      .death = slots[i].death,
					      .carry = UM_NO_SLOT,
					      .place = slots[i].bound_addr};
	}
	b->seen.sched.slots.n = n;
	return 0;
}

uint32_t um_compiled_plan_slot_at(const struct um_compiled_plan_walk *b, uint32_t slot, uint32_t at)
{
	uint32_t twin = b->ops_before ? UM_NONE : b->twin[slot];

	return twin != UM_NONE && um_compiled_plan_is_before(&b->plan->sched.slots.at[slot], at) ? twin : slot;
}

/* Start times of ops from the plan's proof, or as if no op waited. */
static int set_clock(struct um_compiled_plan_walk *b)
{
	const struct um_schedule *s = &b->plan->sched;
	uint64_t at = 0;

	b->clock = malloc((s->ops.n + 1) * sizeof *b->clock);
	if (!b->clock)
		return -ENOMEM;
	for (size_t i = 0; i <= s->ops.n; i++) {
		b->clock[i] = (double)(b->plan->start ? b->plan->start[i] : at);
		at += i < s->ops.n ? s->ops.at[i].ns : 0;
	}
	return 0;
}

static uint8_t streams_of(const struct um_sched_op *op)
{
	return op->stream == UM_STREAM_CPU ? 0 : op->stream < 8 ? (uint8_t)(1 << op->stream) : UM_ACTION_ALL_STREAMS;
}

/* Blocks of slots that rotate have had other slots in the iteration before. */
static void find_streams(struct um_compiled_plan_walk *b)
{
	const struct um_schedule *s = &b->plan->sched;
	uint8_t all = 0;

	for (size_t i = 0; i < s->ops.n; i++)
		all |= streams_of(&s->ops.at[i]);
	for (size_t i = 0; i < s->ops.n; i++)
		for (uint32_t u = 0; u < s->ops.at[i].n_uses; u++) {
			const struct um_sched_use *su = &s->uses.at[s->ops.at[i].first_use + u];
			uint8_t streams = b->moves[su->slot] ? all : streams_of(&s->ops.at[i]);
			uint32_t from, to;

			um_compiled_plan_parts(b, su->slot, su->off, su->bytes, &from, &to);
			for (uint32_t k = from; k < to; k++) {
				b->blocks[b->parts[k].block].streams |= streams;
				b->parts[k].used |= s->ops.at[i].stream != UM_STREAM_CPU;
			}
		}
}

int um_compiled_plan_map(struct um_compiled_plan_walk *b, const struct um_plan *plan)
{
	int err = add_twins(b, plan);

	if (!err)
		err = number_blocks(b);
	if (!err)
		err = list_touches(b);
	if (!err)
		err = set_clock(b);
	if (!err)
		err = list_deaths(b);
	if (!err)
		find_streams(b);
	return err;
}

void um_compiled_plan_choose_ahead(struct um_compiled_plan_walk *b)
{
	int64_t most = INT64_MIN; /* maximum resident so far, less the blocks prefetched ahead and touched by then */
	size_t n = 0;
	uint32_t op = 0;

	for (size_t i = 0; i < b->ahead.n; i++) {
		struct um_compiled_plan_ahead x = b->ahead.at[i];

		for (; op < x.op; op++)
			if ((int64_t)b->level[op] - (int64_t)n > most)
				most = (int64_t)b->level[op] - (int64_t)n;
		if (b->blocks[x.block].unsure || (x.op && (int64_t)n + most >= (int64_t)b->capacity))
			continue;
		b->blocks[x.block].unsure = 1; /* once each */
		b->ahead.at[n++] = x;
	}
	b->ahead.n = n;
}

void um_compiled_plan_note_begin(struct um_compiled_plan_walk *b)
{
	for (uint32_t k = 0; k < b->n_blocks; k++)
		b->blocks[k].began_resident = b->blocks[k].resident;
}

int um_compiled_plan_loses(struct um_compiled_plan_walk *b)
{
	int loses = 0;

	for (uint32_t i = 0; i < b->n_slots; i++)
		for (uint32_t k = b->slot_part[i]; b->moves[i] && k < b->slot_part[i + 1]; k++)
			b->blocks[b->parts[k].block].began_resident = 0;
	for (uint32_t k = 0; k < b->n_blocks; k++)
		if (b->blocks[k].began_resident && !b->blocks[k].resident)
			loses = b->blocks[k].leaves_dead = 1;
	return loses;
}

size_t um_compiled_plan_find(const struct um_compiled_plan *p, uint64_t addr)
{
	return find_block(p->blocks.at, (uint32_t)p->blocks.n, addr);
}

/* Blocks that left in the latest walk, or stay on the host. */
static void count_left(struct um_compiled_plan_walk *b)
{
	b->out->host = 0;
	for (uint32_t k = 0; b->blocks && k < b->n_blocks; k++)
		b->out->host += b->blocks[k].left & 2 || b->blocks[k].host_resident;
}

void um_compiled_plan_unmap(struct um_compiled_plan_walk *b)
{
	count_left(b);
	free(b->slot_part);
	free(b->parts);
	free(b->blocks);
	free(b->dead);
	free(b->touches);
	free(b->pos_head);
	free(b->pos_next);
	free(b->moves);
	free(b->successor);
	free(b->marks);
	free(b->clock);
	um_vec_fini(&b->again);
	um_vec_fini(&b->drops);
	um_vec_fini(&b->leaving);
	free(b->seen.sched.slots.at);
	free(b->twin);
	free(b->level);
	um_vec_fini(&b->ahead);
}
