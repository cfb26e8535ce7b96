/* SPDX-License-Identifier: Apache-2.0 */
#include "model/workspace.h"

#include "base/diag.h"

#include <inttypes.h>

uint32_t um_workspace_pick(const struct um_workspace *ws, uint32_t n, uint64_t room)
{
	uint32_t best = UINT32_MAX, least = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct um_workspace *a = &ws[i], *l = &ws[least], *b = best < n ? &ws[best] : NULL;

		if (a->bytes < l->bytes || (a->bytes == l->bytes && a->ns < l->ns))
			least = i;
		if (a->bytes <= room && (!b || a->ns < b->ns || (a->ns == b->ns && a->bytes < b->bytes)))
			best = i;
	}
	return best < n ? best : least;
}

int um_schedule_offers(const struct um_schedule *s)
{
	size_t i = 0;

	while (i < s->ops.n && !s->ops.at[i].n_ws)
		i++;
	return i < s->ops.n;
}

uint64_t um_workspace_slower_ns(const struct um_schedule *s, const struct um_sched_op *op)
{
	const struct um_workspace *ws = op->n_ws ? &s->ws.at[op->first_ws] : NULL;

	return ws ? ws[op->choice].ns - ws[um_workspace_pick(ws, op->n_ws, UINT64_MAX)].ns : 0;
}

/* The last use of a workspace slot by the op, UINT32_MAX: none. `*n`: their number. */
static uint32_t find_use(const struct um_schedule *s, const struct um_sched_op *op, uint32_t *n)
{
	uint32_t found = UINT32_MAX;

	*n = 0;
	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++)
		if (s->slots.at[s->uses.at[u].slot].flags & UM_SLOT_WORKSPACE) {
			found = u;
			++*n;
		}
	return found;
}

uint32_t um_workspace_slot(const struct um_schedule *s, const struct um_sched_op *op)
{
	uint32_t n, use = find_use(s, op, &n);

	return use == UINT32_MAX ? UM_NO_SLOT : s->uses.at[use].slot;
}

/* --- check -------------------------------------------------------------------------------------------------------- */

static int check_op(const struct um_schedule *s, int32_t number, char *why, size_t size)
{
	const struct um_sched_op *op = &s->ops.at[number];
	uint32_t n, u = find_use(s, op, &n);
	const struct um_sched_use *use = n ? &s->uses.at[u] : NULL;
	const struct um_slot *t = n ? &s->slots.at[use->slot] : NULL;
	const struct um_workspace *ws = NULL;

	if (op->n_ws) {
		if (op->choice >= op->n_ws)
			return um_refuse(why, size, "op %d '%s' chooses workspace %u of %u", number, op->name,
					 op->choice, op->n_ws);
		ws = &s->ws.at[op->first_ws + op->choice];
	}
	if (n != (ws && ws->bytes))
		return um_refuse(why, size, "op %d '%s' has %u workspaces of %" PRIu64 " bytes", number, op->name, n,
				 ws ? ws->bytes : 0);
	if (n &&
	    (use->access != UM_WRITE || use->off || use->bytes != t->bytes || t->bytes != ws->bytes || t->birth < 0 ||
	     t->birth > number || t->death <= number || t->carry != UM_NO_SLOT || t->flags & UM_SLOT_UNMANAGED))
		return um_refuse(why, size, "slot %u cannot be the workspace of op %d '%s', %" PRIu64 " bytes",
				 use->slot, number, op->name, ws->bytes);
	return 0;
}

int um_workspace_check(const struct um_schedule *s, char *why, size_t size)
{
	uint8_t *used = calloc(s->slots.n + 1, 1);
	int err = used ? 0 : -ENOMEM;

	for (int32_t i = 0; !err && i < (int32_t)s->ops.n; i++)
		err = check_op(s, i, why, size);
	for (size_t u = 0; !err && u < s->uses.n; u++) {
		uint32_t slot = s->uses.at[u].slot;

		if (s->slots.at[slot].flags & UM_SLOT_WORKSPACE && used[slot]++)
			err = um_refuse(why, size, "slot %u is the workspace of two ops", slot);
	}
	free(used);
	return err;
}

/* --- apply -------------------------------------------------------------------------------------------------------- */

struct apply {
	const struct um_schedule *from;
	struct um_schedule *to;
	const uint32_t *choice;
	int relaunch;
	uint32_t *number; /* by slot of `from`: that of `to`, UM_NO_SLOT: none */
};

static uint32_t number_of(const struct apply *a, uint32_t slot)
{
	return slot < a->from->slots.n ? a->number[slot] : slot;
}

static int add_slots(struct apply *a)
{
	const struct um_schedule *s = a->from;
	uint32_t n = 0;

	for (size_t i = 0; i < s->slots.n; i++)
		a->number[i] = s->slots.at[i].flags & UM_SLOT_WORKSPACE ? UM_NO_SLOT : n++;
	for (size_t i = 0; i < s->slots.n; i++) {
		struct um_slot t = s->slots.at[i];

		if (a->number[i] == UM_NO_SLOT)
			continue;
		t.carry = number_of(a, t.carry);
		t.of = t.flags & UM_SLOT_SCRATCH ? number_of(a, t.of) : 0;
		if (a->choice && !(t.flags & UM_SLOT_FIXED))
			t.place = UINT64_MAX; /* workspaces may take it */
		if (t.name && !(t.name = strdup(t.name)))
			return -ENOMEM;
		if (!um_vec_push(&a->to->slots, t))
			continue;
		free(t.name);
		return -ENOMEM;
	}
	return 0;
}

/* The workspace of op `at`, the last one of `to`. */
static int add_workspace(struct apply *a, struct um_sched_op *op, int32_t at, uint64_t bytes)
{
	struct um_schedule *to = a->to;
	const struct um_slot t = {.bytes = bytes,
				  .birth = at,
				  .death = at + 1,
				  .carry = UM_NO_SLOT,
				  .flags = UM_SLOT_WORKSPACE,
				  .role = UM_ROLE_WORKSPACE,
				  .place = UINT64_MAX};
	const struct um_sched_use use = {(uint32_t)to->slots.n, UM_WRITE, 0, bytes, bytes, 0};

	if (um_vec_push(&to->slots, t) || um_vec_push(&to->uses, use))
		return -ENOMEM;
	op->n_uses++;
	op->relaunchable &= a->relaunch != 0;
	if (!op->relaunchable) {
		op->n_relaunch = 0;
		return 0;
	}
	op->n_relaunch++;
	return um_vec_push(&to->relaunch, use.slot);
}

/* Copies the lists of an op, without the workspace that it has. */
static int add_lists(struct apply *a, const struct um_sched_op *from, struct um_sched_op *op)
{
	const struct um_schedule *s = a->from;
	struct um_schedule *to = a->to;

	op->first_use = (uint32_t)to->uses.n;
	op->first_relaunch = (uint32_t)to->relaunch.n;
	op->first_ws = (uint32_t)to->ws.n;
	if (um_vec_reserve(&to->uses, from->n_uses) || um_vec_reserve(&to->relaunch, from->n_relaunch) ||
	    um_vec_reserve(&to->ws, from->n_ws))
		return -ENOMEM;
	for (uint32_t k = from->first_use; k < from->first_use + from->n_uses; k++) {
		struct um_sched_use use = s->uses.at[k];

		use.slot = number_of(a, use.slot);
		if (use.slot != UM_NO_SLOT)
			to->uses.at[to->uses.n++] = use;
	}
	for (uint32_t k = from->first_relaunch; k < from->first_relaunch + from->n_relaunch; k++)
		if (number_of(a, s->relaunch.at[k]) != UM_NO_SLOT)
			to->relaunch.at[to->relaunch.n++] = number_of(a, s->relaunch.at[k]);
	for (uint32_t k = 0; k < from->n_ws; k++)
		to->ws.at[to->ws.n++] = s->ws.at[from->first_ws + k];
	op->n_uses = (uint32_t)to->uses.n - op->first_use;
	op->n_relaunch = (uint32_t)to->relaunch.n - op->first_relaunch;
	return 0;
}

static int add_op(struct apply *a, int32_t at)
{
	const struct um_sched_op *from = &a->from->ops.at[at];
	struct um_sched_op op = *from;
	int err = add_lists(a, from, &op);

	if (!err && op.n_ws) {
		const struct um_workspace *ws = &a->from->ws.at[from->first_ws];

		op.choice = a->choice ? a->choice[at] : um_workspace_pick(ws, op.n_ws, UINT64_MAX);
		ws += op.choice;
		op.ns = op.cost.ns = ws->ns;
		if (a->choice && ws->bytes)
			err = add_workspace(a, &op, at, ws->bytes);
		if (!a->choice)
			op.n_ws = 0;
	}
	if (err)
		return err;
	if (op.name && !(op.name = strdup(op.name)))
		return -ENOMEM;
	if (!um_vec_push(&a->to->ops, op))
		return 0;
	free(op.name);
	return -ENOMEM;
}

/* The births of `from`, with those of workspaces, the slots from `workspace` on. */
static int add_births(struct apply *a, uint32_t workspace)
{
	const struct um_schedule *s = a->from;
	uint32_t *program = malloc((s->births.n + 1) * sizeof *program);
	int err = program ? 0 : -ENOMEM;

	for (size_t i = 0; program && i < s->births.n; i++)
		program[i] = number_of(a, s->births.at[i]);
	if (!err)
		err = um_schedule_merge_births(a->to, program, s->births.n, workspace);
	free(program);
	return err;
}

int um_workspace_apply(const struct um_schedule *from, const uint32_t *choice, int relaunch, struct um_schedule *to)
{
	struct apply a = {from, to, choice, relaunch, malloc((from->slots.n + 1) * sizeof *a.number)};
	uint32_t first;
	int err = a.number ? add_slots(&a) : -ENOMEM;

	first = (uint32_t)to->slots.n;
	for (int32_t i = 0; !err && i < (int32_t)from->ops.n; i++)
		err = add_op(&a, i);
	if (!err)
		err = add_births(&a, first);
	to->signature = from->signature;
	free(a.number);
	if (err) {
		um_schedule_fini(to);
		um_schedule_init(to);
	}
	return err;
}
