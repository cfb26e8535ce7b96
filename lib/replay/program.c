/* SPDX-License-Identifier: Apache-2.0
 *
 * Method. The blocks under the slots get numbers. A walk over the iteration keeps, for each block, which slot parts in it
 * are alive and which of them are wanted on the device, and writes actions. Three walks, each started with what the one
 * before left; the last one is the steady iteration, and only its actions are kept.
 */
#include "replay/program.h"

#include <errno.h>
#include <limits.h>

/* A slot's share in a block. */
struct part {
	uint32_t block;
	uint8_t wanted, away;
};

struct block {
	uint64_t addr;
	uint32_t wanted; /* parts that are alive and wanted */
	uint32_t away; /* parts that are alive, hold content and are not wanted */
	int resident;
	int32_t last_in, last_out; /* numbers of its latest actions in their lanes; below zero: in the walk before */
	uint32_t dead_slot; /* where to look for the block: see um_action.slot */
	uint32_t dead_prev, dead_next; /* in the list of resident blocks with nothing wanted */
	int on_dead;
	uint32_t first_touch, n_touch; /* into touches: ops that touch the block, ascending */
};

#define NONE UINT32_MAX

struct build {
	const struct um_plan *plan;
	struct um_program *out;
	struct part *parts;
	uint32_t *slot_part; /* [slots + 1] */
	struct block *blocks;
	uint32_t n_blocks;
	uint32_t *touches;
	uint8_t *moves; /* by slot: its tensors take turns in several places */
	uint32_t *heir; /* by slot: what its tensor is in the next iteration, UM_NO_SLOT if nothing else */
	uint32_t *pos_head, *pos_next; /* deaths by position */
	uint32_t dead_head;
	uint64_t resident, capacity, start_resident;
	int32_t n_in, n_out; /* actions of this walk */
	int err;
};

void um_program_init(struct um_program *p)
{
	memset(p, 0, sizeof *p);
}

void um_program_fini(struct um_program *p)
{
	um_vec_fini(&p->actions);
	um_vec_fini(&p->start);
	free(p->first);
	free(p->gate);
	memset(p, 0, sizeof *p);
}

static int has_place(const struct um_slot *s)
{
	return s->place != UINT64_MAX && !(s->flags & UM_SLOT_UNMANAGED);
}

static uint64_t block_of(uint64_t addr)
{
	return addr / UM_BLOCK_BYTES;
}

static int cmp_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint32_t find_block(const uint64_t *sorted, uint32_t n, uint64_t block)
{
	uint32_t lo = 0, hi = n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (sorted[mid] < block)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Numbers the blocks and lays out the parts of each slot. */
static int number_blocks(struct build *b)
{
	const struct um_schedule *s = &b->plan->sched;
	UM_VEC(uint64_t) all = {0};
	uint32_t n_parts = 0;
	int err = -ENOMEM;

	b->slot_part = calloc(s->slots.n + 1, sizeof *b->slot_part);
	if (!b->slot_part)
		return -ENOMEM;
	for (size_t i = 0; i < s->slots.n; i++) {
		const struct um_slot *sl = &s->slots.at[i];

		b->slot_part[i] = n_parts;
		if (!has_place(sl))
			continue;
		for (uint64_t k = block_of(sl->place); k <= block_of(sl->place + sl->bytes - 1); k++, n_parts++)
			if (um_vec_push(&all, k))
				goto out;
	}
	b->slot_part[s->slots.n] = n_parts;
	b->parts = calloc(n_parts ? n_parts : 1, sizeof *b->parts);
	if (!b->parts)
		goto out;
	if (all.n)
		qsort(all.at, all.n, sizeof *all.at, cmp_u64);
	size_t n = 0;
	for (size_t i = 0; i < all.n; i++)
		if (!n || all.at[n - 1] != all.at[i])
			all.at[n++] = all.at[i];
	b->n_blocks = (uint32_t)n;
	b->blocks = calloc(n ? n : 1, sizeof *b->blocks);
	if (!b->blocks)
		goto out;
	for (size_t i = 0; i < n; i++)
		b->blocks[i] = (struct block){.addr = all.at[i] * UM_BLOCK_BYTES, .last_in = INT32_MIN, .last_out = INT32_MIN};
	for (size_t i = 0; i < s->slots.n; i++) {
		if (b->slot_part[i] == b->slot_part[i + 1])
			continue;
		uint32_t first = find_block(all.at, b->n_blocks, block_of(s->slots.at[i].place));

		for (uint32_t k = b->slot_part[i]; k < b->slot_part[i + 1]; k++)
			b->parts[k].block = first + (k - b->slot_part[i]);
	}
	if (n) {
		b->out->lo = b->blocks[0].addr;
		b->out->hi = b->blocks[n - 1].addr + UM_BLOCK_BYTES;
	}
	err = 0;
out:
	um_vec_fini(&all);
	return err;
}

/* The parts under a range of a slot. */
static void range_parts(const struct build *b, uint32_t slot, uint64_t off, uint64_t bytes, uint32_t *from, uint32_t *to)
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
static int list_touches(struct build *b)
{
	const struct um_schedule *s = &b->plan->sched;
	size_t total = 0;

	for (int fill = 0; fill < 2; fill++) {
		for (size_t i = 0; i < s->ops.n; i++)
			for (uint32_t u = 0; u < s->ops.at[i].n_uses; u++) {
				const struct um_sched_use *su = &s->uses.at[s->ops.at[i].first_use + u];
				uint32_t from, to;

				range_parts(b, su->slot, su->off, su->bytes, &from, &to);
				for (uint32_t k = from; k < to; k++) {
					struct block *bl = &b->blocks[b->parts[k].block];

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

/* Distance in ops from `at` to the next op that touches the block, around the iteration's end. */
static uint32_t next_touch(const struct build *b, const struct block *bl, uint32_t at)
{
	const uint32_t *t = b->touches + bl->first_touch;
	uint32_t lo = 0, hi = bl->n_touch, n = (uint32_t)b->plan->sched.ops.n;

	if (!hi)
		return UINT32_MAX;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (t[mid] < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < bl->n_touch ? t[lo] - at : t[0] + n - at;
}

static void dead_add(struct build *b, struct block *bl, uint32_t slot)
{
	uint32_t k = (uint32_t)(bl - b->blocks);

	if (bl->on_dead)
		return;
	bl->on_dead = 1;
	bl->dead_slot = slot;
	bl->dead_prev = NONE;
	bl->dead_next = b->dead_head;
	if (b->dead_head != NONE)
		b->blocks[b->dead_head].dead_prev = k;
	b->dead_head = k;
}

static void dead_remove(struct build *b, struct block *bl)
{
	if (!bl->on_dead)
		return;
	bl->on_dead = 0;
	if (bl->dead_prev != NONE)
		b->blocks[bl->dead_prev].dead_next = bl->dead_next;
	else
		b->dead_head = bl->dead_next;
	if (bl->dead_next != NONE)
		b->blocks[bl->dead_next].dead_prev = bl->dead_prev;
}

/* Appends to the action before where that makes one longer run of blocks. */
static int merge(struct um_program *p, const struct um_action *a)
{
	if (!p->actions.n)
		return 0;
	struct um_action *was = &p->actions.at[p->actions.n - 1];

	if (was->kind != a->kind || was->at != a->at || was->slot != a->slot || was->addr + was->bytes != a->addr ||
	    was->bytes + a->bytes > UM_RUN_BLOCKS * UM_BLOCK_BYTES)
		return 0;
	was->bytes += a->bytes;
	if (a->room > was->room)
		was->room = a->room;
	return 1;
}

static void emit(struct build *b, enum um_action_kind kind, uint32_t at, uint32_t slot, struct block *bl)
{
	struct um_program *p = b->out;
	struct um_action a = {.kind = kind, .at = at, .slot = slot, .addr = bl->addr, .bytes = UM_BLOCK_BYTES};
	int32_t *count = kind == UM_ACTION_IN ? &b->n_in : &b->n_out;

	/* A block must have left before it returns; room is added when the walk is complete. */
	if (kind == UM_ACTION_IN)
		a.room = bl->last_out == INT32_MIN ? INT32_MIN : bl->last_out + 1;
	if (!merge(p, &a)) {
		if (um_vec_push(&p->actions, a)) {
			b->err = -ENOMEM;
			return;
		}
		++*count;
	}
	*(kind == UM_ACTION_IN ? &bl->last_in : &bl->last_out) = *count - 1;
}

/* The block leaves: with a copy if anything alive in it holds content. */
static void block_out(struct build *b, struct block *bl, uint32_t at, uint32_t slot)
{
	emit(b, bl->away ? UM_ACTION_OUT : UM_ACTION_DISCARD, at, slot, bl);
	bl->resident = 0;
	b->resident--;
	dead_remove(b, bl);
}

/* Discards the dead block that is needed last. 0 if there is none. */
static int make_room(struct build *b, uint32_t at)
{
	struct block *best = NULL;
	uint32_t best_far = 0;
	unsigned looked = 0;

	for (uint32_t k = b->dead_head; k != NONE && looked < 256; k = b->blocks[k].dead_next, looked++) {
		uint32_t far = next_touch(b, &b->blocks[k], at);

		if (!best || far > best_far) {
			best = &b->blocks[k];
			best_far = far;
		}
	}
	if (best)
		block_out(b, best, at, best->dead_slot);
	return best != NULL;
}

/* Nothing in the block is wanted any more: what is alive in it leaves now, what is dead stays while room lasts. */
static void block_unwanted(struct build *b, struct block *bl, uint32_t at, uint32_t slot, int told)
{
	if (!bl->resident || bl->wanted)
		return;
	if (bl->away || told)
		block_out(b, bl, at, slot);
	else
		dead_add(b, bl, slot);
}

static void part_set(struct build *b, struct part *p, int wanted, int away)
{
	struct block *bl = &b->blocks[p->block];

	bl->wanted += (uint32_t)wanted - p->wanted;
	bl->away += (uint32_t)away - p->away;
	p->wanted = (uint8_t)wanted;
	p->away = (uint8_t)away;
}

static void want(struct build *b, uint32_t slot, uint64_t off, uint64_t bytes, uint32_t at)
{
	uint32_t from, to;

	range_parts(b, slot, off, bytes, &from, &to);
	for (uint32_t k = from; k < to; k++) {
		struct block *bl = &b->blocks[b->parts[k].block];

		part_set(b, &b->parts[k], 1, 0);
		dead_remove(b, bl);
		if (bl->resident)
			continue;
		while (b->resident >= b->capacity && make_room(b, at))
			continue;
		b->out->over += b->resident >= b->capacity;
		emit(b, UM_ACTION_IN, at, slot, bl);
		bl->resident = 1;
		b->resident++;
	}
}

/* A hint sends a range away; a part that is covered only in part stays. */
static void unwant(struct build *b, const struct um_hint *h)
{
	const struct um_slot *sl = &b->plan->sched.slots.at[h->slot];
	uint32_t from, to;

	range_parts(b, h->slot, h->off, h->bytes, &from, &to);
	for (uint32_t k = from; k < to; k++) {
		struct block *bl = &b->blocks[b->parts[k].block];
		uint64_t lo = bl->addr > sl->place ? bl->addr - sl->place : 0;
		uint64_t hi = bl->addr + UM_BLOCK_BYTES - sl->place;

		if (hi > sl->bytes)
			hi = sl->bytes;
		if (h->off > lo || h->off + h->bytes < hi)
			continue;
		part_set(b, &b->parts[k], 0, h->kind == UM_HINT_EVICT);
		block_unwanted(b, bl, (uint32_t)h->at, h->slot, 1);
	}
}

static void die(struct build *b, uint32_t slot, uint32_t at)
{
	for (uint32_t k = b->slot_part[slot]; k < b->slot_part[slot + 1]; k++) {
		part_set(b, &b->parts[k], 0, 0);
		block_unwanted(b, &b->blocks[b->parts[k].block], at, b->moves[slot] ? slot : UM_NO_SLOT, 0);
	}
}

/* An op touches what the hints before it brought; what no hint brought comes by a fault and is resident all the same. */
static void touch(struct build *b, uint32_t op)
{
	const struct um_sched_op *so = &b->plan->sched.ops.at[op];
	int32_t gate = INT32_MIN;

	for (uint32_t u = 0; u < so->n_uses; u++) {
		const struct um_sched_use *su = &b->plan->sched.uses.at[so->first_use + u];
		uint32_t from, to;

		range_parts(b, su->slot, su->off, su->bytes, &from, &to);
		for (uint32_t k = from; k < to; k++) {
			struct block *bl = &b->blocks[b->parts[k].block];

			if (!bl->resident || !b->parts[k].wanted)
				want(b, su->slot, su->off, su->bytes, op);
			if (bl->last_in != INT32_MIN && bl->last_in + 1 > gate)
				gate = bl->last_in + 1;
		}
	}
	b->out->gate[op] = gate;
}

static void walk(struct build *b)
{
	const struct um_plan *plan = b->plan;
	uint32_t n_ops = (uint32_t)plan->sched.ops.n;
	size_t h = 0;

	um_vec_clear(&b->out->actions);
	b->out->over = 0;
	b->n_in = b->n_out = 0;
	b->start_resident = b->resident;
	for (uint32_t op = 0; op <= n_ops; op++) {
		b->out->first[op] = (uint32_t)b->out->actions.n;
		if (op == n_ops)
			break;
		for (uint32_t s = b->pos_head[op]; s != NONE; s = b->pos_next[s])
			die(b, s, op);
		for (; h < plan->hints.n && (uint32_t)plan->hints.at[h].at == op; h++) {
			const struct um_hint *hint = &plan->hints.at[h];

			if (hint->kind == UM_HINT_PREFETCH)
				want(b, hint->slot, hint->off, hint->bytes, op);
			else if (hint->kind == UM_HINT_EVICT || hint->kind == UM_HINT_DISCARD)
				unwant(b, hint);
		}
		touch(b, op);
	}
}

/* Slots that take turns in places: who lies, when the next iteration begins, where `slot` was planned? The one that it is
 * carried from; and what is to be born takes the place that the oldest one left. */
static uint32_t turn_of(const struct build *b, uint32_t slot)
{
	const struct um_schedule *s = &b->plan->sched;

	if (s->slots.at[slot].carry < s->slots.n)
		return s->slots.at[slot].carry;
	for (size_t hops = 0; b->heir[slot] != UM_NO_SLOT && hops < s->slots.n; hops++)
		slot = b->heir[slot];
	return slot;
}

/* The state of a slot's parts, and of their blocks, which are its own. */
struct turn {
	struct part part;
	struct block block;
};

static int take_turns(struct build *b)
{
	const struct um_schedule *s = &b->plan->sched;
	struct turn *was = calloc(b->slot_part[s->slots.n] + 1ull, sizeof *was);

	if (!was)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->slot_part[s->slots.n]; i++)
		was[i] = (struct turn){b->parts[i], b->blocks[b->parts[i].block]};
	for (uint32_t i = 0; i < s->slots.n; i++) {
		uint32_t from = b->moves[i] ? turn_of(b, i) : i, n = b->slot_part[i + 1] - b->slot_part[i];

		if (from == i || b->slot_part[from + 1] - b->slot_part[from] != n ||
		    (s->slots.at[i].place - s->slots.at[from].place) % UM_BLOCK_BYTES)
			continue;
		for (uint32_t k = 0; k < n; k++) {
			struct part *p = &b->parts[b->slot_part[i] + k];
			struct block *bl = &b->blocks[p->block];
			const struct turn *t = &was[b->slot_part[from] + k];

			dead_remove(b, bl);
			p->wanted = t->part.wanted;
			p->away = t->part.away;
			bl->wanted = t->block.wanted;
			bl->away = t->block.away;
			bl->resident = t->block.resident;
			bl->last_in = t->block.last_in;
			bl->last_out = t->block.last_out;
			if (bl->resident && !bl->wanted && !bl->away)
				dead_add(b, bl, i);
		}
	}
	free(was);
	return 0;
}

/* Turns the numbers of this walk into numbers of "the walk before". */
static void next_walk(struct build *b)
{
	um_vec_clear(&b->out->start);
	for (uint32_t k = 0; k < b->n_blocks; k++) {
		struct block *bl = &b->blocks[k];

		if (bl->last_in != INT32_MIN)
			bl->last_in -= b->n_in;
		if (bl->last_out != INT32_MIN)
			bl->last_out -= b->n_out;
	}
	if (take_turns(b))
		b->err = -ENOMEM;
}

static int cmp_start(const void *a, const void *b)
{
	const struct um_start_block *x = a, *y = b;

	if (x->first_op != y->first_op)
		return x->first_op < y->first_op ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* What is resident now is what the steady iteration begins with. Dead blocks need not be brought. */
static int list_start(struct build *b)
{
	for (uint32_t k = 0; k < b->n_blocks; k++) {
		const struct block *bl = &b->blocks[k];

		if (bl->resident && bl->wanted) {
			struct um_start_block s = {bl->addr, bl->n_touch ? b->touches[bl->first_touch] : UINT32_MAX};

			if (um_vec_push(&b->out->start, s))
				return -ENOMEM;
		}
	}
	if (b->out->start.n)
		qsort(b->out->start.at, b->out->start.n, sizeof *b->out->start.at, cmp_start);
	return 0;
}

/* How many outs each in waits for: the fewest that leave room for it and for all ins before it. Outs of the iteration before
 * may still be on their way if there is room without them (numbers <= 0). */
static int add_room(struct build *b)
{
	struct um_program *p = b->out;
	UM_VEC(int64_t) freed = {0}; /* blocks freed by the first k outs */
	int64_t sum = 0, in = 0, room = (int64_t)b->capacity - (int64_t)b->start_resident;
	int err = um_vec_push(&freed, 0);

	for (size_t i = 0; i < p->actions.n && !err; i++)
		if (p->actions.at[i].kind != UM_ACTION_IN)
			err = um_vec_push(&freed, sum += (int64_t)(p->actions.at[i].bytes / UM_BLOCK_BYTES));
	int64_t m = 1 - (int64_t)freed.n; /* all outs of the iteration before pending, at most */
	int64_t seen = 0; /* outs before this in, in order of issue */

	for (size_t i = 0; i < p->actions.n && !err; i++) {
		struct um_action *a = &p->actions.at[i];

		if (a->kind != UM_ACTION_IN) {
			seen++;
			continue;
		}
		in += (int64_t)(a->bytes / UM_BLOCK_BYTES);
		for (; m < seen; m++) {
			/* Freed by outs up to m, relative to the beginning of this iteration. */
			int64_t got = m >= 0 ? freed.at[m] : freed.at[m + (int64_t)freed.n - 1] - sum;

			if (in <= room + got)
				break;
		}
		if (a->room < m)
			a->room = (int32_t)m;
	}
	um_vec_fini(&freed);
	return err;
}

static int list_deaths(struct build *b)
{
	const struct um_schedule *s = &b->plan->sched;

	b->pos_head = malloc((s->ops.n + 1) * sizeof *b->pos_head);
	b->pos_next = malloc((s->slots.n + 1) * sizeof *b->pos_next);
	b->moves = calloc(s->slots.n + 1, sizeof *b->moves);
	b->heir = malloc((s->slots.n + 1) * sizeof *b->heir);
	if (!b->pos_head || !b->pos_next || !b->moves || !b->heir)
		return -ENOMEM;
	for (size_t i = 0; i < s->slots.n; i++)
		b->heir[i] = UM_NO_SLOT;
	for (uint32_t i = 0; i < s->slots.n; i++) {
		uint32_t c = s->slots.at[i].carry;

		if (c >= s->slots.n || c == i)
			continue;
		b->moves[i] = b->moves[c] = 1;
		b->heir[c] = i;
	}
	for (size_t i = 0; i <= s->ops.n; i++)
		b->pos_head[i] = NONE;
	for (uint32_t i = 0; i < s->slots.n; i++) {
		int32_t death = s->slots.at[i].death;

		if (death < 0)
			continue;
		if ((size_t)death == s->ops.n)
			death = 0; /* what is freed after the last op is noticed when the next iteration begins */
		b->pos_next[i] = b->pos_head[death];
		b->pos_head[death] = i;
	}
	return 0;
}

int um_program_build(const struct um_plan *plan, uint64_t capacity_blocks, struct um_program *out)
{
	size_t n_ops = plan->sched.ops.n;
	struct build b = {.plan = plan, .out = out, .capacity = capacity_blocks, .dead_head = NONE};
	int err = -ENOMEM;

	out->n_ops = (uint32_t)n_ops;
	out->first = calloc(n_ops + 2, sizeof *out->first);
	out->gate = calloc(n_ops + 1, sizeof *out->gate);
	if (!out->first || !out->gate || !n_ops)
		goto out;
	if (number_blocks(&b) || list_touches(&b) || list_deaths(&b))
		goto out;
	walk(&b);
	next_walk(&b);
	walk(&b);
	next_walk(&b);
	if (b.err || list_start(&b))
		goto out;
	walk(&b);
	out->n_in = (uint32_t)b.n_in;
	out->n_out = (uint32_t)b.n_out;
	err = b.err ? b.err : add_room(&b);
out:
	free(b.slot_part);
	free(b.parts);
	free(b.blocks);
	free(b.touches);
	free(b.pos_head);
	free(b.pos_next);
	free(b.moves);
	free(b.heir);
	if (err)
		um_program_fini(out);
	return err;
}
