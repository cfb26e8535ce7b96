/* SPDX-License-Identifier: Apache-2.0
 *
 * rewrite.c - walks the ops, and brings dropped content back before the ops that need it
 *
 * Gaps that end soon and share a relaunch return together.
 */
#include "plan/rewrite.h"

#include "base/bisect.h"
#include "model/plan_unfold.h"
#include "plan/place.h"
#include "plan/place_stream.h"

#define MOST_RELAUNCHES 100000 /* of one burst */

struct link {
	uint32_t drop, next; /* next: 1 + link, 0: none */
};

struct rewrite {
	struct um_rewritten *out;
	const struct um_versions *v;
	const struct um_schedule *s;
	const struct um_rewrite_rule *rule;
	struct um_burst burst;
	struct um_drop *drop; /* by begin */
	uint32_t n;
	uint8_t *dropped; /* by slot */
	int32_t *until; /* by slot: the op that needs what is dropped */
	int32_t *launch; /* by op: its launch by the program; one more entry */
	uint32_t *scratch; /* by slot: its scratch slot in the burst at hand, 0: none */
	uint64_t *clock; /* by op */
	uint32_t *last; /* by slot: 1 + its last use so far, 0: none */
	uint32_t *sharing; /* by op: 1 + the first link to a gap that needs it again */
	UM_VEC(struct link) links;
	UM_VEC(uint32_t) back; /* slots that the burst at hand is for */
	UM_VEC(struct um_launch) launches;
};

/* --- launches ----------------------------------------------------------------------------------------------------- */

static int add_launch(struct rewrite *w, const struct um_sched_op *op, int32_t number, int again)
{
	struct um_sched_op x = *op;

	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++)
		w->last[w->out->plan.sched.uses.at[u].slot] = u + 1;
	x.relaunchable = 0;
	x.n_relaunch = 0;
	x.n_ws = 0;
	if (um_vec_push(&w->out->plan.sched.ops, x))
		return -ENOMEM;
	return um_vec_push(&w->launches, ((struct um_launch){number, again}));
}

static int grow_last(struct rewrite *w)
{
	uint32_t *last = realloc(w->last, (w->out->plan.sched.slots.n + 1) * sizeof *last);

	if (!last)
		return -ENOMEM;
	w->last = last;
	last[w->out->plan.sched.slots.n - 1] = 0;
	return 0;
}

/* The scratch slot for a slot in the burst at hand, used until the launch at hand. UINT32_MAX: out of memory. */
static uint32_t scratch_for(struct rewrite *w, uint32_t slot)
{
	struct um_schedule *to = &w->out->plan.sched;
	int32_t at = (int32_t)to->ops.n;

	if (!w->scratch[slot]) {
		struct um_slot t = {.bytes = w->s->slots.at[slot].bytes,
				    .birth = at,
				    .carry = UM_NO_SLOT,
				    .of = slot,
				    .flags = UM_SLOT_SCRATCH,
				    .role = UM_ROLE_WORKSPACE,
				    .place = UINT64_MAX};

		w->scratch[slot] = (uint32_t)to->slots.n;
		if (um_vec_push(&to->slots, t) || grow_last(w))
			return UINT32_MAX;
	}
	to->slots.at[w->scratch[slot]].death = at + 1;
	return w->scratch[slot];
}

static int add_relaunch(struct rewrite *w, int32_t number)
{
	struct um_schedule *to = &w->out->plan.sched;
	const struct um_sched_op *from = &w->s->ops.at[number];
	struct um_sched_op op = *from;
	size_t first = to->uses.n;

	for (uint32_t u = from->first_use; u < from->first_use + from->n_uses; u++) {
		struct um_sched_use x = w->s->uses.at[u];

		x.access = um_relaunch_access(w->s, from, &x);
		x.dead_after = 0;
		if (x.access && um_burst_is_scratch(&w->burst, number, x.slot))
			x.slot = scratch_for(w, x.slot);
		if (x.slot == UINT32_MAX || (x.access && um_vec_push(&to->uses, x)))
			return -ENOMEM;
		/* what it overwrites as a whole is dead since the last use */
		if (x.access == UM_WRITE && x.bytes == to->slots.at[x.slot].bytes && w->last[x.slot])
			to->uses.at[w->last[x.slot] - 1].dead_after = 1;
	}
	op.first_use = (uint32_t)first;
	op.n_uses = (uint32_t)(to->uses.n - first);
	w->out->again_ns += op.ns;
	return add_launch(w, &op, number, 1);
}

/* --- bursts ------------------------------------------------------------------------------------------------------- */

static int is_back(const struct rewrite *w, uint32_t slot)
{
	for (size_t i = 0; i < w->back.n; i++)
		if (w->back.at[i] == slot)
			return 1;
	return 0;
}

/* Adds gaps that end soon and need some of the burst's relaunches, too. */
static int add_sharing(struct rewrite *w, int32_t at)
{
	size_t ops = w->burst.ops.n;

	for (size_t i = 0; i < ops; i++) {
		for (uint32_t k = w->sharing[w->burst.ops.at[i]]; k; k = w->links.at[k - 1].next) {
			const struct um_drop *d = &w->drop[w->links.at[k - 1].drop];

			if (!w->dropped[d->slot] || w->until[d->slot] != d->to ||
			    w->clock[d->to] - w->clock[at] > w->rule->near_ns ||
			    w->burst.role[d->slot] & UM_BURST_OWN || is_back(w, d->slot))
				continue;
			if (um_vec_push(&w->back, d->slot))
				return -ENOMEM;
		}
	}
	return 0;
}

/* Relaunches for the slots in w->back, just before op `at`. */
static int add_burst(struct rewrite *w, int32_t at)
{
	size_t n;
	int err;

	do {
		n = w->back.n;
		err = um_burst_build(&w->burst, at, w->back.at, (uint32_t)n);
		if (!err)
			err = add_sharing(w, at);
	} while (!err && w->back.n > n);

	for (size_t i = 0; !err && i < w->burst.ops.n; i++)
		err = add_relaunch(w, w->burst.ops.at[i]);
	for (size_t i = 0; i < w->burst.slots.n; i++) {
		uint32_t slot = w->burst.slots.at[i];

		w->scratch[slot] = 0;
		if (w->burst.role[slot] & UM_BURST_OWN)
			w->dropped[slot] = 0;
	}
	return err;
}

/* Dropped slots that the op needs. */
static int find_needed(struct rewrite *w, int32_t at)
{
	const struct um_sched_op *op = &w->s->ops.at[at];

	um_vec_clear(&w->back);
	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++) {
		uint32_t slot = w->s->uses.at[u].slot;

		if (w->dropped[slot] && um_vec_push(&w->back, slot))
			return -ENOMEM;
	}
	return 0;
}

static int walk(struct rewrite *w)
{
	uint32_t next = 0;
	int err = 0;

	for (int32_t i = 0; !err && i < (int32_t)w->s->ops.n; i++) {
		w->launch[i] = (int32_t)w->out->plan.sched.ops.n; /* of its first relaunch, until they are known */
		err = find_needed(w, i);
		if (!err && w->back.n)
			err = add_burst(w, i);
		if (err)
			return err;
		w->launch[i] = (int32_t)w->out->plan.sched.ops.n;
		err = add_launch(w, &w->s->ops.at[i], i, 0);
		for (; next < w->n && w->drop[next].from == i; next++) {
			w->dropped[w->drop[next].slot] = 1;
			w->until[w->drop[next].slot] = w->drop[next].to;
		}
	}
	return err;
}

/* --- slots -------------------------------------------------------------------------------------------------------- */

/* The first relaunch before op `i`, or its own launch. */
static int32_t first_launch(const struct rewrite *w, int32_t i)
{
	return i ? w->launch[i - 1] + 1 : 0;
}

static void move_lifetimes(struct rewrite *w)
{
	for (size_t i = 0; i < w->s->slots.n; i++) {
		struct um_slot *t = &w->out->plan.sched.slots.at[i];

		if (t->birth >= 0 && first_launch(w, t->birth) < w->launch[t->birth])
			t->flags |= UM_SLOT_BEFORE_BURST;
		t->birth = t->birth < 0 ? -1 : first_launch(w, t->birth);
		t->death = t->death < 0 ? -1 : first_launch(w, t->death);
	}
}

/* Scratch slots are in the order of birth. */
static int place_scratch(struct rewrite *w)
{
	struct um_schedule *to = &w->out->plan.sched;
	size_t first = w->s->slots.n, n = to->slots.n - first;
	struct um_place_hole hole = {w->rule->scratch_at, UINT64_MAX / 2};
	struct um_place_life *life = malloc((n + 1) * sizeof *life);
	uint64_t top = hole.addr;
	int err = life ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < n; i++) {
		const struct um_slot *t = &to->slots.at[first + i];
		uint64_t bytes = (t->bytes + UM_PLACE_GRANULE - 1) / UM_PLACE_GRANULE * UM_PLACE_GRANULE;

		life[i] = (struct um_place_life){(uint32_t)(first + i), t->birth, t->death, bytes, 0};
	}
	if (!err && n)
		err = um_place_stream(&hole, 1, life, n, (int32_t)to->ops.n);
	for (size_t i = 0; !err && i < n; i++) {
		to->slots.at[life[i].slot].place = life[i].place;
		top = life[i].place + life[i].bytes > top ? life[i].place + life[i].bytes : top;
	}
	w->out->scratch_bytes = (top - hole.addr + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES * UM_BLOCK_BYTES;
	free(life);
	return err;
}

/* --- everything --------------------------------------------------------------------------------------------------- */

static int by_from(const void *a, const void *b)
{
	const struct um_drop *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static int find_sharing(struct rewrite *w, const struct um_drops *drops)
{
	for (uint32_t i = 0; i < w->n; i++) {
		const struct um_drop *d = &w->drop[i];

		for (uint32_t k = d->first_shared; k < d->first_shared + d->n_shared; k++) {
			if (um_vec_push(&w->links, ((struct link){i, w->sharing[drops->shared[k]]})))
				return -ENOMEM;
			w->sharing[drops->shared[k]] = (uint32_t)w->links.n;
		}
	}
	return 0;
}

static int prepare(struct rewrite *w, const struct um_plan *from, const struct um_drops *drops)
{
	struct um_plan *to = &w->out->plan;
	size_t slots = w->s->slots.n, ops = w->s->ops.n;

	um_plan_init(to);
	to->budget = from->budget;
	to->host_budget = from->host_budget;
	to->h2d = from->h2d;
	to->d2h = from->d2h;
	if (um_burst_init(&w->burst, w->v))
		return -ENOMEM;
	w->drop = malloc((w->n + 1ull) * sizeof *w->drop);
	w->dropped = calloc(slots + 1, 1);
	w->until = calloc(slots + 1, sizeof *w->until);
	w->launch = calloc(ops + 1, sizeof *w->launch);
	w->scratch = calloc(slots + 1, sizeof *w->scratch);
	w->sharing = calloc(ops + 1, sizeof *w->sharing);
	w->clock = calloc(ops + 1, sizeof *w->clock);
	w->last = calloc(slots + 1, sizeof *w->last);
	if (!w->drop || !w->dropped || !w->until || !w->launch || !w->scratch || !w->sharing || !w->clock || !w->last ||
	    um_vec_reserve(&to->sched.slots, slots + 1) || um_vec_reserve(&to->sched.ops, ops + 1) ||
	    um_vec_reserve(&to->sched.uses, w->s->uses.n + 1))
		return -ENOMEM;
	if (w->n) {
		memcpy(w->drop, drops->at, w->n * sizeof *w->drop);
		qsort(w->drop, w->n, sizeof *w->drop, by_from);
	}
	memcpy(to->sched.slots.at, w->s->slots.at, slots * sizeof *w->s->slots.at);
	if (w->s->uses.n)
		memcpy(to->sched.uses.at, w->s->uses.at, w->s->uses.n * sizeof *w->s->uses.at);
	for (size_t i = 0; i < slots; i++)
		to->sched.slots.at[i].flags &= ~(unsigned)UM_SLOT_WORKSPACE; /* as others: nothing is chosen any more */
	to->sched.slots.n = slots;
	to->sched.uses.n = w->s->uses.n;
	w->burst.dropped = w->dropped;
	w->burst.scratch_from = w->rule->scratch_from;
	w->burst.most = MOST_RELAUNCHES;
	for (size_t i = 0; i < ops; i++)
		w->clock[i + 1] = w->clock[i] + w->s->ops.at[i].ns;
	return find_sharing(w, drops);
}

int um_rewrite_build(struct um_rewritten *out, const struct um_plan *from, const struct um_versions *v,
		     const struct um_drops *drops, uint32_t n, const struct um_rewrite_rule *rule)
{
	struct rewrite w = {.out = out, .v = v, .s = &from->sched, .rule = rule, .n = n};
	int err;

	memset(out, 0, sizeof *out);
	err = prepare(&w, from, drops);
	if (!err)
		err = walk(&w);
	if (!err) {
		w.launch[w.s->ops.n] = (int32_t)out->plan.sched.ops.n;
		move_lifetimes(&w);
		err = um_schedule_merge_births(&out->plan.sched, w.s->births.at, w.s->births.n, (uint32_t)w.s->slots.n);
		if (!err)
			err = place_scratch(&w);
	}
	out->launch = w.launches.at;
	for (size_t i = 0; i < out->plan.sched.ops.n; i++)
		out->plan.in_core_ns += out->plan.sched.ops.at[i].ns;
	um_burst_fini(&w.burst);
	um_vec_fini(&w.back);
	um_vec_fini(&w.links);
	free(w.drop);
	free(w.dropped);
	free(w.until);
	free(w.launch);
	free(w.scratch);
	free(w.sharing);
	free(w.clock);
	free(w.last);
	if (err)
		um_rewritten_fini(out);
	return err;
}

void um_rewritten_fini(struct um_rewritten *w)
{
	/* the names are borrowed */
	um_vec_clear(&w->plan.sched.ops);
	um_vec_clear(&w->plan.sched.slots);
	um_plan_fini(&w->plan);
	free(w->launch);
	memset(w, 0, sizeof *w);
}

/* --- back --------------------------------------------------------------------------------------------------------- */

struct fold {
	const struct um_rewritten *w;
	struct um_plan *to;
	int32_t *next; /* by launch: the op of the program that it is, or precedes; one more entry */
	int32_t *own; /* by op: its launch by the program */
};

/* Lists the scratch slots of a relaunch. */
static int fold_relaunch(struct fold *f, int32_t launch)
{
	const struct um_schedule *s = &f->w->plan.sched;
	const struct um_sched_op *op = &s->ops.at[launch];
	struct um_hint h = {.kind = UM_HINT_RECOMPUTE,
			    .at = f->next[launch],
			    .after = -1,
			    .slot = (uint32_t)f->w->launch[launch].op,
			    .copy = 1};

	h.first_scratch = f->to->scratch.n;
	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++) {
		uint32_t slot = s->uses.at[u].slot;
		int known = !(s->slots.at[slot].flags & UM_SLOT_SCRATCH);

		for (size_t k = h.first_scratch; k < f->to->scratch.n && !known; k++)
			known = f->to->scratch.at[k] == slot;
		if (!known && um_vec_push(&f->to->scratch, slot))
			return -ENOMEM;
	}
	h.n_scratch = f->to->scratch.n - h.first_scratch;
	return um_vec_push(&f->to->hints, h);
}

/* All relaunches before a launch, from `*done` on. */
static int fold_relaunches(struct fold *f, int32_t launch, int32_t *done)
{
	int err = 0;

	for (; !err && *done < launch; ++*done)
		if (f->w->launch[*done].again)
			err = fold_relaunch(f, *done);
	return err;
}

static int fold_hints(struct fold *f)
{
	const struct um_plan *p = &f->w->plan;
	int32_t done = 0;
	int err = 0;

	for (size_t i = 0; !err && i < p->hints.n; i++) {
		struct um_hint h = p->hints.at[i];

		err = fold_relaunches(f, h.at, &done);
		h.at = f->next[h.at];
		if (h.after >= 0) {
			int32_t op = f->next[h.after];

			h.again = f->w->launch[h.after].again ? (uint32_t)(h.after - f->own[op - 1]) : 0;
			h.after = h.again ? op - 1 : op;
		}
		if (!err)
			err = um_vec_push(&f->to->hints, h);
	}
	return err ? err : fold_relaunches(f, (int32_t)p->sched.ops.n, &done);
}

static int fold_slots(struct fold *f)
{
	const struct um_schedule *s = &f->w->plan.sched;
	size_t first = f->to->sched.slots.n;

	if (um_vec_reserve(&f->to->sched.slots, s->slots.n - first))
		return -ENOMEM;
	for (size_t i = first; i < s->slots.n; i++) {
		struct um_slot t = s->slots.at[i];

		t.birth = f->next[t.birth];
		t.death = f->next[t.death - 1] + 1;
		f->to->sched.slots.at[f->to->sched.slots.n++] = t;
	}
	return 0;
}

int um_rewritten_fold(const struct um_rewritten *w, struct um_plan *to)
{
	struct fold f = {.w = w, .to = to};
	int32_t n = (int32_t)w->plan.sched.ops.n, op = (int32_t)to->sched.ops.n;
	int err;

	f.next = malloc((n + 1ull) * sizeof *f.next);
	f.own = malloc((op + 1ull) * sizeof *f.own);
	err = f.next && f.own ? 0 : -ENOMEM;
	for (int32_t i = n; !err && i-- > 0; f.next[i] = op)
		if (!w->launch[i].again)
			f.own[--op] = i;
	um_vec_clear(&to->hints);
	um_vec_clear(&to->scratch);
	if (!err)
		err = fold_slots(&f);
	if (!err)
		err = fold_hints(&f);
	free(f.next);
	free(f.own);
	return err;
}
