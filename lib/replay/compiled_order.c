/* SPDX-License-Identifier: Apache-2.0
 *
 * compiled_order.c - the waits of each action of a walk, and the order of all actions
 *
 * The walk placed drops where room was needed; here they move to the op from which on their blocks are dead.
 */
#include "replay/compiled_map.h"

#include <errno.h>

/* Blocks freed by the first k outs of an iteration, and those of them that are of supplied tensors. */
struct freed_by {
	int64_t all, supplied;
};

struct freed {
	struct freed_by *at;
	size_t n, cap;
};

static int is_supplied(const struct um_action *a, const struct um_schedule *s)
{
	return a->slot < s->slots.n && s->slots.at[a->slot].flags & UM_SLOT_SUPPLIED;
}

static int find_freed(struct freed *f, const struct um_compiled_iteration *iteration, const struct um_schedule *s)
{
	struct freed_by sum = {0, 0};
	int err = um_vec_push(f, sum);

	for (size_t i = 0; i < iteration->actions.n && !err; i++) {
		const struct um_action *a = &iteration->actions.at[i];
		int64_t blocks = (int64_t)(a->bytes / UM_BLOCK_BYTES);

		if (a->kind != UM_ACTION_EVICT)
			continue;
		sum.all += blocks;
		if (is_supplied(a, s))
			sum.supplied += blocks;
		err = um_vec_push(f, sum);
	}
	return err;
}

/* By outs up to m, relative to the beginning of this iteration. */
static struct freed_by freed_by(const struct freed *now, const struct freed *before, int64_t m)
{
	struct freed_by was, end;

	if (m >= 0)
		return now->at[m];
	was = before->at[m + (int64_t)before->n - 1];
	end = before->at[before->n - 1];
	return (struct freed_by){was.all - end.all, was.supplied - end.supplied};
}

static void note_most(uint64_t *most, int64_t n)
{
	if (n > (int64_t)*most)
		*most = (uint64_t)n;
}

/* Outs that no in waits for may end late. Those of supplied tensors, of which `leaving` blocks are on the device, may
 * be left out (executor_supplied.c). `supplied`: blocks of supplied tensors on the device. */
static void note_peak(struct um_compiled_plan *p, int64_t blocks, int64_t leaving, int64_t supplied)
{
	note_most(&p->peak, blocks - leaving);
	note_most(&p->peak_others, blocks - supplied);
	note_most(&p->supplied_leaving, leaving);
}

/* Blocks of tensors that pass from slot to slot are not counted apart. */
static int are_counted(const struct um_schedule *s)
{
	for (size_t i = 0; i < s->slots.n; i++)
		if (um_slot_is_first_step(&s->slots.at[i]))
			return 0;
	return 1;
}

/* The number of outs that each in waits for: the fewest that leave room for it and for all ins before it, with all
 * earlier drops complete. Blocks that are assumed resident have room already. Outs of the previous iteration, if there
 * is one, may be in flight if there is room without them (numbers <= 0). 0 or -ENOMEM. */
static int set_room(const struct um_compiled_plan_walk *b, const struct freed *now, const struct freed *before)
{
	struct um_compiled_iteration *p = b->to;
	int64_t in = 0, dropped = 0, room = (int64_t)b->capacity - (int64_t)b->start_resident;
	int64_t m = before ? 1 - (int64_t)before->n : 0; /* at most all outs of the previous iteration pending */
	int64_t seen = 0; /* outs issued no later than this in */
	int64_t blocks, supplied = 0;
	int counted = are_counted(&b->plan->sched);
	size_t next = 0, drops = 0, faults = 0, ins = 0;
	struct freed_by freed;

	for (size_t i = 0; i < p->actions.n; i++) {
		struct um_action *a = &p->actions.at[i];

		for (; next < p->actions.n && p->actions.at[next].at <= a->at; next++)
			seen += p->actions.at[next].kind == UM_ACTION_EVICT;
		if (a->kind != UM_ACTION_PREFETCH)
			continue;
		for (; faults < p->faults.n && p->faults.at[faults].op < a->at; faults++)
			in += p->faults.at[faults].blocks;
		blocks = (int64_t)(a->bytes / UM_BLOCK_BYTES) - b->again.at[ins++];
		in += blocks;
		supplied += counted && is_supplied(a, &b->plan->sched) ? blocks : 0;
		for (; drops < a->drops; drops++)
			dropped += b->drops.at[drops].frees;
		for (; m < seen; m++) {
			if (in <= room + freed_by(now, before, m).all + dropped)
				break;
		}
		freed = freed_by(now, before, m);
		if (a->room < m)
			a->room = (int32_t)m;
		blocks = in - room - dropped - freed.all + (int64_t)b->capacity;
		note_peak(b->out, blocks, freed_by(now, before, seen).supplied - freed.supplied,
			  counted ? supplied - freed.supplied : 0);
		if (p == b->out->iterations && um_vec_push(&b->out->occupied, (uint64_t)blocks))
			return -ENOMEM;
	}
	return 0;
}

/* Do both iterations free the same? */
static int frees_alike(const struct freed *a, const struct freed *b)
{
	return a->n == b->n && memcmp(a->at, b->at, a->n * sizeof *a->at) == 0;
}

static int add_room(struct um_compiled_plan_walk *b)
{
	struct um_compiled_plan *p = b->out;
	struct freed now = {0}, before = {0};
	int err = find_freed(&now, b->to, &b->plan->sched);

	if (!err && b->to != p->iterations)
		err = find_freed(&before, b->to - 1, &b->plan->sched);
	if (err)
		goto out;
	if (b->to == &p->iterations[UM_COMPILED_PLAN_STEADY]) {
		p->settled = frees_alike(&now, &before);
		err = set_room(b, &now, &now);
	} else {
		err = set_room(b, &now, b->to == p->iterations ? NULL : &before);
	}
out:
	um_vec_fini(&now);
	um_vec_fini(&before);
	return err;
}

static int cmp_drop(const void *a, const void *b)
{
	const struct um_compiled_plan_drop *x = a, *y = b;

	if (x->action.at != y->action.at)
		return x->action.at < y->action.at ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* Extends a drop by the following one, unless that must wait for an in that may wait for this one. */
static int merge_drop(struct um_action *was, const struct um_action *a)
{
	if (was->kind != a->kind || was->at != a->at || was->slot != a->slot ||
	    was->bytes >= UM_RUN_DROP * UM_BLOCK_BYTES || a->room > (int64_t)was->drops)
		return 0;
	if (a->addr + a->bytes == was->addr)
		was->addr = a->addr;
	else if (was->addr + was->bytes != a->addr)
		return 0;
	was->bytes += a->bytes;
	was->streams |= a->streams;
	if (a->room > was->room)
		was->room = a->room;
	return 1;
}

/* Sorts drops by time and merges neighbours; `done[k]`: the number of drops that completes the first k of the walk's
 * drops. */
static void sort_drops(struct um_compiled_plan_walk *b, uint32_t *done)
{
	struct um_compiled_plan_drop *d = b->drops.at;
	size_t n = b->drops.n, kept = 0;

	if (n)
		qsort(d, n, sizeof *d, cmp_drop);
	for (size_t i = 0; i < n; i++) {
		uint32_t number = d[i].number;

		if (!kept || !merge_drop(&d[kept - 1].action, &d[i].action))
			d[kept++] = d[i];
		done[number + 1] = (uint32_t)kept;
	}
	b->drops.n = kept;
	for (size_t i = 0; i < n; i++)
		if (done[i + 1] < done[i])
			done[i + 1] = done[i];
}

/* Inserts drops among the actions: before others of the same op. */
static int insert_drops(struct um_compiled_plan_walk *b)
{
	struct um_compiled_iteration *p = b->to;
	uint32_t *done = calloc(b->drops.n + 1, sizeof *done);
	size_t i = p->actions.n, k, a = 0;

	if (!done || um_vec_reserve(&p->actions, b->drops.n)) {
		free(done);
		return -ENOMEM;
	}
	sort_drops(b, done);
	for (size_t n = 0; n < i; n++)
		p->actions.at[n].drops = done[p->actions.at[n].drops];
	free(done);
	k = b->drops.n;
	p->actions.n = i + k;
	p->n_drop = (uint32_t)k;
	for (size_t n = i + k; k; n--) {
		if (i && p->actions.at[i - 1].at >= b->drops.at[k - 1].action.at)
			p->actions.at[n - 1] = p->actions.at[--i];
		else
			p->actions.at[n - 1] = b->drops.at[--k].action;
	}
	for (uint32_t op = 0; op <= b->out->n_ops; op++) {
		while (a < p->actions.n && p->actions.at[a].at < op)
			a++;
		p->first[op] = (uint32_t)a;
	}
	return 0;
}

int um_compiled_plan_order(struct um_compiled_plan_walk *b)
{
	int err = add_room(b);

	return err ? err : insert_drops(b);
}
