/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_unfold.c - unfolds relaunches, and checks what cannot be checked afterwards
 */
#include "model/plan_unfold.h"

#include "base/diag.h"

struct unfolding {
	const struct um_plan *p;
	struct um_unfolded_plan *out;
	int32_t *first; /* by op: its first relaunch, or itself; one more entry. Launches */
	int32_t *begin, *end; /* by slot: the launches that use a scratch slot */
	char *why;
	size_t size;
};

int um_plan_recomputes(const struct um_plan *p)
{
	for (size_t i = 0; i < p->hints.n; i++)
		if (p->hints.at[i].kind == UM_HINT_RECOMPUTE)
			return 1;
	return 0;
}

uint32_t um_relaunch_access(const struct um_schedule *s, const struct um_sched_op *op, const struct um_sched_use *use)
{
	uint32_t access = 0;

	for (uint32_t i = op->first_relaunch; i < op->first_relaunch + op->n_relaunch; i++)
		if (s->relaunch.at[i] == use->slot)
			return use->access;
	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++)
		if (s->uses.at[u].slot == use->slot)
			access |= s->uses.at[u].access;
	return access & UM_WRITE ? 0 : access;
}

static int is_scratch(const struct unfolding *w, uint32_t slot)
{
	return (w->p->sched.slots.at[slot].flags & UM_SLOT_SCRATCH) != 0;
}

/* --- what must hold ----------------------------------------------------------------------------------------------- */

static int check_scratch_slots(const struct unfolding *w)
{
	const struct um_schedule *s = &w->p->sched;

	for (size_t i = 0; i < s->slots.n; i++) {
		const struct um_slot *t = &s->slots.at[i];

		if (!(t->flags & UM_SLOT_SCRATCH))
			continue;
		if (t->of >= s->slots.n || is_scratch(w, t->of) || s->slots.at[t->of].bytes != t->bytes ||
		    t->flags & UM_SLOT_UNMANAGED || t->carry != UM_NO_SLOT || t->birth < 0 || t->death <= t->birth)
			return um_refuse(w->why, w->size, "slot %zu cannot be scratch memory for slot %u", i, t->of);
	}
	for (size_t i = 0; i < s->uses.n; i++)
		if (is_scratch(w, s->uses.at[i].slot))
			return um_refuse(w->why, w->size, "an op uses slot %u, which is scratch memory",
					 s->uses.at[i].slot);
	for (size_t i = 0; i < s->slots.n; i++)
		if (s->slots.at[i].carry != UM_NO_SLOT && is_scratch(w, s->slots.at[i].carry))
			return um_refuse(w->why, w->size, "slot %zu carries scratch memory", i);
	return 0;
}

static int check_relaunch(const struct unfolding *w, size_t number)
{
	const struct um_hint *h = &w->p->hints.at[number];
	const struct um_schedule *s = &w->p->sched;
	const struct um_sched_op *op = h->slot < s->ops.n ? &s->ops.at[h->slot] : NULL;
	if (!op || (int32_t)h->slot >= h->at)
		return um_refuse(w->why, w->size, "hint %zu at op %d: op %u was not launched before", number, h->at,
				 h->slot);
	if (!op->relaunchable || op->paged || op->stream == UM_STREAM_CPU)
		return um_refuse(w->why, w->size, "hint %zu at op %d: op %u '%s' must not be launched again", number,
				 h->at, h->slot, op->name);
	if (h->first_scratch > w->p->scratch.n || h->n_scratch > w->p->scratch.n - h->first_scratch)
		return um_refuse(w->why, w->size, "hint %zu at op %d: its scratch slots are out of range", number,
				 h->at);
	for (uint64_t i = h->first_scratch; i < h->first_scratch + h->n_scratch; i++) {
		uint32_t slot = w->p->scratch.at[i];

		if (slot >= s->slots.n || !is_scratch(w, slot))
			return um_refuse(w->why, w->size, "hint %zu at op %d: slot %u is no scratch memory", number,
					 h->at, slot);
	}
	return 0;
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

static int number_launches(struct unfolding *w)
{
	const struct um_plan *p = w->p;
	size_t n = p->sched.ops.n, more = 0;
	int32_t at = 0;
	int err = 0;

	for (size_t i = 0; i < p->hints.n && !err; i++) {
		if (p->hints.at[i].kind != UM_HINT_RECOMPUTE)
			continue;
		err = check_relaunch(w, i);
		if (!err)
			w->first[p->hints.at[i].at]++;
		more++;
	}
	if (!err && (n + more >= INT32_MAX / 4 || p->sched.uses.n >= UINT32_MAX / 2))
		err = um_refuse(w->why, w->size, "%zu ops and %zu relaunches", n, more);
	if (err)
		return err;
	w->out->op = malloc((n + more + 1) * sizeof *w->out->op);
	w->out->launch = malloc((n + 1) * sizeof *w->out->launch);
	if (!w->out->op || !w->out->launch)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		int32_t relaunches = w->first[i];

		w->first[i] = at;
		for (int32_t k = 0; k <= relaunches; k++)
			w->out->op[at++] = (int32_t)i;
		w->out->launch[i] = at - 1;
	}
	w->first[n] = at;
	return 0;
}

static int add_launch(struct unfolding *w, const struct um_sched_op *op)
{
	struct um_sched_op x = *op;

	if (op->name && !(x.name = strdup(op->name))) /* an op may have none */
		return -ENOMEM;
	if (!um_vec_push(&w->out->plan.sched.ops, x))
		return 0;
	free(x.name);
	return -ENOMEM;
}

/* The scratch slot that a relaunch uses in place of a slot; or that slot. */
static uint32_t scratch_for(const struct unfolding *w, const struct um_hint *h, uint32_t slot)
{
	for (uint64_t i = h->first_scratch; i < h->first_scratch + h->n_scratch; i++)
		if (w->p->sched.slots.at[w->p->scratch.at[i]].of == slot)
			return w->p->scratch.at[i];
	return slot;
}

/* Uses of a relaunch follow those of the program's ops. */
static int add_relaunch(struct unfolding *w, const struct um_hint *h)
{
	const struct um_schedule *s = &w->p->sched;
	struct um_schedule *to = &w->out->plan.sched;
	struct um_sched_op op = s->ops.at[h->slot];
	int32_t at = (int32_t)to->ops.n;
	size_t first = to->uses.n;

	for (uint32_t u = op.first_use; u < op.first_use + op.n_uses; u++) {
		struct um_sched_use x = s->uses.at[u];

		x.access = um_relaunch_access(s, &op, &x);
		if (!x.access)
			continue;
		x.dead_after = 0;
		x.slot = scratch_for(w, h, x.slot);
		if (!um_slot_alive_at(&s->slots.at[x.slot], h->at))
			return um_refuse(w->why, w->size, "op %u '%s' again before op %d: slot %u is not alive",
					 h->slot, op.name, h->at, x.slot);
		if (x.slot != s->uses.at[u].slot) {
			w->begin[x.slot] = w->begin[x.slot] < 0 ? at : w->begin[x.slot];
			w->end[x.slot] = at + 1;
		}
		if (um_vec_push(&to->uses, x))
			return -ENOMEM;
	}
	op.again = (uint32_t)w->out->launch[h->slot] + 1;
	op.n_ws = 0; /* it has the algorithm of its op */
	op.first_use = (uint32_t)first;
	op.n_uses = (uint32_t)(to->uses.n - first);
	return add_launch(w, &op);
}

static int add_launches(struct unfolding *w)
{
	const struct um_plan *p = w->p;
	size_t hint = 0;
	int err = 0;

	for (int32_t i = 0; i < (int32_t)p->sched.ops.n && !err; i++) {
		for (; hint < p->hints.n && p->hints.at[hint].at <= i && !err; hint++)
			if (p->hints.at[hint].kind == UM_HINT_RECOMPUTE)
				err = add_relaunch(w, &p->hints.at[hint]);
		if (!err)
			err = add_launch(w, &p->sched.ops.at[i]);
	}
	return err;
}

/* --- slots and hints ---------------------------------------------------------------------------------------------- */

static int move_lifetimes(struct unfolding *w)
{
	struct um_schedule *s = &w->out->plan.sched;

	for (size_t i = 0; i < s->slots.n; i++) {
		struct um_slot *t = &s->slots.at[i];
		int32_t birth = t->birth < 0 ? -1 : w->first[t->birth], death = t->death < 0 ? -1 : w->first[t->death];
		if (t->flags & UM_SLOT_SCRATCH && w->begin[i] < 0)
			return um_refuse(w->why, w->size, "slot %zu: no relaunch uses this scratch memory", i);
		t->birth = t->flags & UM_SLOT_SCRATCH ? w->begin[i] : birth;
		t->death = t->flags & UM_SLOT_SCRATCH ? w->end[i] : death;
	}
	return 0;
}

static int move_hints(struct unfolding *w)
{
	const struct um_plan *p = w->p;
	const struct um_slot *slots = w->out->plan.sched.slots.at;
	int32_t last = -1, launch = 0;
	for (size_t i = 0; i < p->hints.n; i++) {
		struct um_hint h = p->hints.at[i];
		if (h.at > last)
			launch = w->first[h.at];
		last = h.at;
		if (h.kind == UM_HINT_RECOMPUTE) {
			launch++;
			continue;
		}
		if (h.again > (uint32_t)(w->out->launch[h.after + 1] - w->first[h.after + 1]))
			return um_refuse(w->why, w->size, "hint %zu at op %d waits for op %d and %u relaunches", i,
					 h.at, h.after, h.again);
		if (h.after >= 0)
			h.after = w->out->launch[h.after] + (int32_t)h.again;
		h.at = launch;
		h.again = 0;
		if (h.after >= h.at)
			return um_refuse(w->why, w->size, "hint %zu at op %d waits for a later relaunch", i, last);
		if (h.kind != UM_HINT_ADVISE && is_scratch(w, h.slot) && !um_slot_alive_at(&slots[h.slot], h.at))
			return um_refuse(w->why, w->size, "hint %zu at op %d: no relaunch uses slot %u then", i, last,
					 h.slot);
		if (um_vec_push(&w->out->plan.hints, h))
			return -ENOMEM;
	}
	return 0;
}

static int copy_header(struct um_plan *to, const struct um_plan *from)
{
	to->budget = from->budget;
	to->host_budget = from->host_budget;
	to->host_wanted = from->host_wanted;
	to->h2d = from->h2d;
	to->d2h = from->d2h;
	to->remote = from->remote;
	to->predicted_ns = from->predicted_ns;
	to->rehearsed_ns = from->rehearsed_ns;
	to->in_core_ns = from->in_core_ns;
	to->bound_ns = from->bound_ns;
	return um_schedule_copy(&to->sched, &from->sched);
}

int um_plan_unfold(const struct um_plan *p, struct um_unfolded_plan *out, char *why, size_t size)
{
	struct unfolding w = {.p = p, .out = out, .why = why, .size = size};
	size_t slots = p->sched.slots.n;
	int err;

	memset(out, 0, sizeof *out);
	um_plan_init(&out->plan);
	w.first = calloc(p->sched.ops.n + 1, sizeof *w.first);
	w.begin = malloc((slots + 1) * sizeof *w.begin);
	w.end = malloc((slots + 1) * sizeof *w.end);
	err = w.first && w.begin && w.end ? copy_header(&out->plan, p) : -ENOMEM;
	for (size_t i = 0; !err && i < slots; i++)
		w.begin[i] = w.end[i] = -1;
	if (!err)
		err = check_scratch_slots(&w);
	if (!err)
		err = number_launches(&w);
	/* the copy's ops are replaced, its uses stay */
	for (size_t i = 0; !err && i < out->plan.sched.ops.n; i++)
		free(out->plan.sched.ops.at[i].name);
	if (!err)
		um_vec_clear(&out->plan.sched.ops);
	if (!err)
		err = add_launches(&w);
	if (!err)
		err = move_lifetimes(&w);
	if (!err)
		err = move_hints(&w);
	free(w.first);
	free(w.begin);
	free(w.end);
	if (err)
		um_unfolded_plan_fini(out);
	return err;
}

void um_unfolded_plan_fini(struct um_unfolded_plan *u)
{
	um_plan_fini(&u->plan);
	free(u->op);
	free(u->launch);
	memset(u, 0, sizeof *u);
}
