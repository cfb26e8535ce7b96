/* SPDX-License-Identifier: Apache-2.0
 *
 * versions.c - lists the touches of each slot
 */
#include "plan/versions.h"

#include "base/bisect.h"

static int is_again(const struct um_schedule *s, const struct um_sched_op *op, uint32_t slot)
{
	for (uint32_t i = op->first_relaunch; i < op->first_relaunch + op->n_relaunch; i++)
		if (s->relaunch.at[i] == slot)
			return op->relaunchable && !op->paged && op->stream != UM_STREAM_CPU;
	return 0;
}

/* The last touch so far that is listed for a slot, or a new one. */
static struct um_slot_touch *touch_at(struct um_versions *v, uint32_t slot, int32_t op, uint32_t *n)
{
	struct um_slot_touch *t = v->touch + v->first[slot] + n[slot];

	if (n[slot] && t[-1].op == op)
		return t - 1;
	n[slot]++;
	*t = (struct um_slot_touch){.op = op};
	return t;
}

static void add_use(struct um_versions *v, int32_t op, const struct um_sched_use *u, uint32_t *n)
{
	const struct um_sched_op *o = &v->s->ops.at[op];
	struct um_slot_touch *t = touch_at(v, u->slot, op, n);
	int all = u->off == 0 && u->bytes == v->s->slots.at[u->slot].bytes;

	t->needs |= u->access & UM_READ || !all;
	t->writes |= (u->access & UM_WRITE) != 0;
	t->whole |= u->access == UM_WRITE && all;
	t->dead |= u->dead_after != 0;
	t->again = (uint8_t)is_again(v->s, o, u->slot);
}

/* --- bytes that were written -------------------------------------------------------------------------------------- */

/* The tensor of a slot that is born in one iteration and freed in the next: is it born between two ops? */
static int is_born_between(const struct um_slot *t, int32_t before, int32_t op)
{
	return t->birth >= 0 && before < t->birth && op >= t->birth;
}

/* `defined`: by slot: bytes from its begin that are known to have content. `last`: by slot: its last op. */
static void define_op(struct um_versions *v, int32_t op, uint64_t *defined, int32_t *last)
{
	const struct um_schedule *s = v->s;
	const struct um_sched_use *from = s->uses.at + s->ops.at[op].first_use, *to = from + s->ops.at[op].n_uses;

	for (const struct um_sched_use *u = from; u < to; u++) {
		if (is_born_between(&s->slots.at[u->slot], last[u->slot], op))
			defined[u->slot] = 0;
		last[u->slot] = op;
		if (u->access & UM_READ && u->off + u->bytes > defined[u->slot])
			v->touch[um_versions_find(v, u->slot, op)].undefined = 1;
	}
	for (const struct um_sched_use *u = from; u < to; u++)
		if (u->access & UM_WRITE && u->off <= defined[u->slot] && u->off + u->bytes > defined[u->slot])
			defined[u->slot] = u->off + u->bytes;
	for (const struct um_sched_use *u = from; u < to; u++)
		if (u->dead_after)
			defined[u->slot] = 0;
}

/* Iterations, until the next one begins with no less content than the one before. */
static int define(struct um_versions *v)
{
	const struct um_schedule *s = v->s;
	size_t slots = s->slots.n;
	uint64_t *begin = malloc((slots + 1) * sizeof *begin), *defined = malloc((slots + 1) * sizeof *defined);
	int32_t *last = malloc((slots + 1) * sizeof *last);
	int err = begin && defined && last ? 0 : -ENOMEM, less = 1;

	for (size_t i = 0; !err && i < slots; i++) {
		const struct um_slot *t = &s->slots.at[i];

		begin[i] = um_slot_alive_first(t) && !(t->flags & UM_SLOT_TRANSIENT) ? t->bytes : 0;
	}
	while (!err && less) {
		less = 0;
		memcpy(defined, begin, slots * sizeof *defined);
		for (size_t i = 0; i < slots; i++)
			last[i] = -1;
		for (size_t i = 0; i < s->ops.n; i++)
			define_op(v, (int32_t)i, defined, last);
		for (size_t i = 0; i < slots; i++) {
			uint32_t from = s->slots.at[i].carry;

			uint64_t bytes;

			if (from == UM_NO_SLOT)
				continue;
			bytes = is_born_between(&s->slots.at[from], last[from], (int32_t)s->ops.n) ? 0 : defined[from];
			if (bytes >= begin[i])
				continue;
			begin[i] = bytes;
			less = 1;
		}
	}
	free(begin);
	free(defined);
	free(last);
	return err;
}

/* --- touches ------------------------------------------------------------------------------------------------------ */

/* A slot has at most one touch a use; gaps are closed at the end. */
static void list_touches(struct um_versions *v, uint32_t *n)
{
	const struct um_schedule *s = v->s;

	for (size_t i = 0; i < s->uses.n; i++)
		v->first[s->uses.at[i].slot + 1]++;
	for (size_t i = 0; i < s->slots.n; i++)
		v->first[i + 1] += v->first[i];
	for (size_t i = 0; i < s->ops.n; i++)
		for (uint32_t u = s->ops.at[i].first_use; u < s->ops.at[i].first_use + s->ops.at[i].n_uses; u++)
			add_use(v, (int32_t)i, &s->uses.at[u], n);
	for (uint32_t i = 0, at = 0; i < s->slots.n; i++) {
		for (uint32_t k = 0; k < n[i]; k++) {
			v->touch[at + k] = v->touch[v->first[i] + k];
			v->touch[at + k].whole &= !v->touch[at + k].needs;
		}
		v->first[i] = at;
		at += n[i];
		v->first[s->slots.n] = at;
	}
}

int um_versions_build(struct um_versions *v, const struct um_schedule *s)
{
	uint32_t *n = calloc(s->slots.n + 1, sizeof *n);
	int err = 0;

	memset(v, 0, sizeof *v);
	v->s = s;
	v->first = calloc(s->slots.n + 2, sizeof *v->first);
	v->touch = malloc((s->uses.n + 1) * sizeof *v->touch);
	if (!n || !v->first || !v->touch)
		err = -ENOMEM;
	if (!err) {
		list_touches(v, n);
		err = define(v);
	}
	free(n);
	if (err)
		um_versions_fini(v);
	return err;
}

void um_versions_fini(struct um_versions *v)
{
	free(v->first);
	free(v->touch);
	memset(v, 0, sizeof *v);
}

uint32_t um_versions_from(const struct um_versions *v, uint32_t slot, int32_t op)
{
	uint32_t lo = v->first[slot], hi = v->first[slot + 1];

	UM_BISECT(lo, hi, i, v->touch[i].op < op)
	return lo;
}

uint32_t um_versions_find(const struct um_versions *v, uint32_t slot, int32_t op)
{
	uint32_t t = um_versions_from(v, slot, op);

	return t < v->first[slot + 1] && v->touch[t].op == op ? t : UINT32_MAX;
}

/* The first touch of the slot's tensor at `op`: that of the tensor born in this iteration, or of the older one. */
static uint32_t life_of(const struct um_versions *v, uint32_t slot, int32_t op, int *older)
{
	const struct um_slot *t = &v->s->slots.at[slot];

	*older = t->birth < 0 || (t->death <= t->birth && op < t->birth);
	return *older ? v->first[slot] : um_versions_from(v, slot, t->birth);
}

uint32_t um_versions_at(const struct um_versions *v, uint32_t slot, int32_t op)
{
	int older;
	uint32_t first = life_of(v, slot, op, &older);

	for (uint32_t t = um_versions_from(v, slot, op); t-- > first;) {
		if (v->touch[t].dead)
			return UM_VERSION_NONE;
		if (v->touch[t].writes)
			return t;
	}
	return older && !(v->s->slots.at[slot].flags & UM_SLOT_TRANSIENT) ? UM_VERSION_OLDER : UM_VERSION_NONE;
}

uint32_t um_versions_base(const struct um_versions *v, uint32_t slot, uint32_t version)
{
	int older;

	if (version >= UM_VERSION_OLDER)
		return UINT32_MAX;
	for (uint32_t t = version, first = life_of(v, slot, v->touch[version].op, &older);; t--) {
		if (v->touch[t].writes && !v->touch[t].again)
			return UINT32_MAX;
		if (v->touch[t].writes && v->touch[t].whole)
			return t;
		if (t == first || (t < version && v->touch[t].dead))
			return UINT32_MAX;
	}
}
