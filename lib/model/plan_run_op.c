/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_run_op.c - starts the ops of a run
 */
#include "model/plan_run_state.h"

#include <inttypes.h>

/* 1: the atom is accessed on the host. */
static int is_host_resident(const struct um_plan_run *r, uint32_t slot, uint32_t atom)
{
	return r->host_resident && atom >= r->host_atoms[slot].lo && atom < r->host_atoms[slot].hi;
}

/* Advances over resident bytes; 1 if all of the op's bytes are resident. `*lost`: some bytes that it reads may have
 * been discarded; valid only for a complete pass. */
static int advance_use(struct um_plan_run *r, const struct um_sched_op *op, int *lost)
{
	*lost = 0;
	for (; r->seen_use < op->n_uses; r->seen_use++, r->seen_atom = 0) {
		uint32_t u = op->first_use + r->seen_use;
		struct um_atom_range a = r->atoms.use[u];
		int looked = r->how[u] & UM_USE_READS ? UM_ATOM_LOST : 0;

		if (!(r->how[u] & UM_USE_MANAGED)) {
			*lost |= looked;
			continue;
		}
		for (uint32_t i = a.lo + r->seen_atom; i < a.hi; i++) {
			*lost |= r->state[i] & looked;
			if (r->state[i] & UM_ATOM_RESIDENT || is_host_resident(r, r->plan->sched.uses.at[u].slot, i))
				continue;
			r->seen_atom = i - a.lo;
			return 0;
		}
	}
	return 1;
}

/* 1: all bytes of the op are resident. Repeats the pass from the start to confirm. */
static int all_resident(struct um_plan_run *r, const struct um_sched_op *op, int *lost)
{
	int whole = r->seen_use == 0 && r->seen_atom == 0;

	for (;;) {
		if (!advance_use(r, op, lost))
			return 0;
		r->seen_use = r->seen_atom = 0;
		if (whole)
			return 1;
		whole = 1;
	}
}

/* Records absent bytes that no hint prefetches as a fault, and makes them resident at once so that the run
 * continues. */
static void fault(struct um_plan_run *r, const struct um_sched_op *op)
{
	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++) {
		const struct um_sched_use *use = &r->plan->sched.uses.at[u];
		uint64_t bytes = 0;

		if (um_plan_run_slot(r, use->slot)->flags & UM_SLOT_UNMANAGED)
			continue;
		for (uint32_t i = r->atoms.use[u].lo; i < r->atoms.use[u].hi; i++) {
			if (r->state[i] & UM_ATOM_RESIDENT || is_host_resident(r, use->slot, i))
				continue;
			bytes += r->atoms.bytes[i];
			if (!(r->state[i] & (UM_ATOM_COMING | UM_ATOM_LEAVING)))
				um_plan_run_take(r, r->atoms.bytes[i]);
			r->state[i] &= (uint8_t) ~(UM_ATOM_COMING | UM_ATOM_LEAVING);
			r->state[i] |= UM_ATOM_RESIDENT;
		}
		if (bytes)
			um_plan_run_note(r, ": %" PRIu64 " bytes of slot %u are absent and not in flight", bytes,
					 use->slot);
	}
	r->seen_use = r->seen_atom = 0;
}

/* Records a fault if the op reads discarded bytes. */
static void check_lost(struct um_plan_run *r, const struct um_sched_op *op)
{
	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++) {
		uint64_t lost = 0;

		for (uint32_t i = r->atoms.use[u].lo; r->how[u] & UM_USE_READS && i < r->atoms.use[u].hi; i++)
			if (r->state[i] & UM_ATOM_LOST)
				lost += r->atoms.bytes[i];
		if (lost)
			um_plan_run_note(r, " reads %" PRIu64 " bytes of slot %u that were discarded", lost,
					 r->plan->sched.uses.at[u].slot);
	}
}

static void touch(struct um_plan_run *r, const struct um_sched_op *op)
{
	uint32_t from = op->first_use, to = from + op->n_uses;
	int dead = 0;

	for (uint32_t u = from; u < to; u++) {
		dead |= r->how[u] & UM_USE_DEAD;
		if (!(r->how[u] & UM_USE_WRITES))
			continue;
		for (uint32_t i = r->atoms.use[u].lo; i < r->atoms.use[u].hi; i++)
			r->state[i] = (r->state[i] & (uint8_t) ~(UM_ATOM_FRESH | UM_ATOM_LOST)) | UM_ATOM_LIVE;
	}
	for (uint32_t u = dead ? from : to; u < to; u++) {
		uint32_t slot = r->plan->sched.uses.at[u].slot;

		/* declared dead: neither live nor lost */
		for (uint32_t i = r->atoms.first[slot]; r->how[u] & UM_USE_DEAD && i < r->atoms.first[slot + 1]; i++)
			r->state[i] &= (uint8_t) ~(UM_ATOM_LIVE | UM_ATOM_FRESH | UM_ATOM_LOST);
	}
	if (r->content)
		um_plan_content_launch(r);
}

/* Moves the absent bytes of a paged op: in, if it needs their content, and out, the bytes that it writes beyond the
 * budget. Returns the link's time. */
static uint64_t page(struct um_plan_run *r, const struct um_sched_op *op)
{
	uint64_t in = 0, all = 0, written = 0, out;

	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++) {
		for (uint32_t i = r->atoms.use[u].lo; r->how[u] & UM_USE_MANAGED && i < r->atoms.use[u].hi; i++) {
			int needed = r->how[u] & UM_USE_READS && r->state[i] & UM_ATOM_LIVE;

			if (is_host_resident(r, r->plan->sched.uses.at[u].slot, i))
				continue;
			in += needed && !(r->state[i] & UM_ATOM_RESIDENT) ? r->atoms.bytes[i] : 0;
			r->state[i] |= UM_ATOM_RESIDENT;
			all += r->atoms.bytes[i];
			written += r->how[u] & UM_USE_WRITES ? r->atoms.bytes[i] : 0;
		}
	}
	out = all > r->plan->budget ? all - r->plan->budget : 0;
	out = out < written ? out : written;
	r->tally.h2d_bytes += in;
	r->tally.d2h_bytes += out;
	return um_plan_run_copy_ns(in, r->plan->h2d) + um_plan_run_copy_ns(out, r->plan->d2h);
}

/* A paged op has ended: the driver may have evicted any byte. */
void um_plan_run_forget_resident(struct um_plan_run *r)
{
	r->used = 0;
	for (uint32_t i = 0; i < r->atoms.n; i++) {
		r->state[i] &= (uint8_t) ~(UM_ATOM_RESIDENT | UM_ATOM_COMING);
		if (r->state[i] & UM_ATOM_LEAVING)
			r->used += r->atoms.bytes[i];
		else if (r->state[i] & UM_ATOM_LIVE)
			r->state[i] |= UM_ATOM_FRESH;
	}
}

/* 1: an eviction of a range of the CPU access is issued but not begun. Any eviction of the previous iteration
 * counts. */
static int has_eviction_pending(const struct um_plan_run *r)
{
	const struct um_plan_engine *e = &r->d2h;

	if (e->head < e->n && e->iter < r->iter)
		return 1;
	for (uint32_t k = e->head; k < e->n && r->plan->hints.at[e->queue[k]].at <= r->pos; k++)
		if (um_plan_run_op_uses(r, r->atoms.hint[e->queue[k]]))
			return 1;
	return 0;
}

/* Starts an access of the CPU: moves its ranges to the host, with a copy if the host's copy is stale. 0: an eviction of
 * them is in progress. */
static int start_cpu(struct um_plan_run *r, const struct um_sched_op *op)
{
	uint64_t stale = 0;

	if (has_eviction_pending(r))
		return 0;
	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++)
		for (uint32_t i = r->atoms.use[u].lo; r->how[u] & UM_USE_MANAGED && i < r->atoms.use[u].hi; i++)
			if (r->state[i] & UM_ATOM_LEAVING)
				return 0;
	check_lost(r, op);
	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++)
		for (uint32_t i = r->atoms.use[u].lo; r->how[u] & UM_USE_MANAGED && i < r->atoms.use[u].hi; i++) {
			if (r->state[i] & UM_ATOM_RESIDENT && r->state[i] & UM_ATOM_LIVE &&
			    !(r->state[i] & UM_ATOM_FRESH))
				stale += r->atoms.bytes[i];
			um_plan_run_drop(r, i);
		}
	touch(r, op);
	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++)
		for (uint32_t i = r->atoms.use[u].lo; i < r->atoms.use[u].hi; i++)
			r->state[i] |= r->state[i] & UM_ATOM_LIVE ? UM_ATOM_FRESH : 0;
	r->tally.d2h_bytes += stale;
	r->running = 1;
	if (r->start)
		r->start[r->pos] = r->now - r->begin;
	r->op_end = r->now + op->ns + um_plan_run_copy_ns(stale, r->plan->d2h);
	return 1;
}

/* Makes room for what a relaunch writes without reading it, where no prefetch does: 0 if there is none yet. */
static int make_room(struct um_plan_run *r, const struct um_sched_op *op)
{
	uint64_t bytes = 0;

	for (int fill = 0; fill < 2; fill++) {
		for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++) {
			if ((r->how[u] & (UM_USE_MANAGED | UM_USE_READS)) != UM_USE_MANAGED)
				continue;
			for (uint32_t i = r->atoms.use[u].lo; i < r->atoms.use[u].hi; i++) {
				if (r->state[i] & UM_ATOM_RESIDENT ||
				    is_host_resident(r, r->plan->sched.uses.at[u].slot, i))
					continue;
				if (r->state[i] & (UM_ATOM_COMING | UM_ATOM_LEAVING))
					return 0;
				bytes += r->atoms.bytes[i];
				if (!fill)
					continue;
				um_plan_run_take(r, r->atoms.bytes[i]);
				r->state[i] |= UM_ATOM_RESIDENT;
			}
		}
		if (!fill && (bytes > r->plan->budget || r->used > r->plan->budget - bytes))
			return 0;
	}
	return 1;
}

int um_plan_run_op(struct um_plan_run *r)
{
	const struct um_sched_op *op;
	uint64_t ns, paging;
	int lost;

	if (r->pos >= (int32_t)r->plan->sched.ops.n)
		return 0;
	op = &r->plan->sched.ops.at[r->pos];
	if (op->stream == UM_STREAM_CPU)
		return start_cpu(r, op);
	if (!all_resident(r, op, &lost)) {
		if (r->h2d.n && (r->h2d.iter < r->iter || r->h2d.head < r->due[r->pos]))
			return 0;
		if (op->again && !make_room(r, op))
			return 0;
		if (!op->paged)
			fault(r, op);
		lost = 1;
	}
	r->seen_use = r->seen_atom = 0;
	if (r->used > r->plan->budget)
		um_plan_run_note(r, ": %" PRIu64 " bytes resident, %" PRIu64 " allowed", r->used, r->plan->budget);
	if (lost && !op->again)
		check_lost(r, op);
	paging = op->paged ? page(r, op) : 0;
	touch(r, op);
	r->running = 1;
	if (r->start)
		r->start[r->pos] = r->now - r->begin;
	ns = r->host_resident ? um_host_resident_ns(&r->plan->sched, op, r->host_resident, r->plan->remote) : 0;
	r->op_end = r->now + (ns > op->ns ? ns : op->ns) + paging;
	return 1;
}
