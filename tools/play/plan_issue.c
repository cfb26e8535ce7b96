/* SPDX-License-Identifier: Apache-2.0 */
#include "play/plan_issue.h"

#include "replay/cursor.h"
#include "replay/evict_policy.h"
#include "replay/executor.h"
#include "replay/lanes.h"
#include "replay/rehearsal.h"
#include "sim/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SPARE_BLOCKS 16 /* of a device for a plan that exceeds its budget in whole blocks */

struct issue {
	const struct um_play_options *o;
	struct um_plan plan; /* borrowed, with a schedule of its own */
	const uint64_t *ns; /* by op: of the trace */
	uint64_t *now; /* by op: in this iteration */
	uint64_t turns;
	struct um_compiled_plan program;
	struct um_cursor cursor;
	struct um_app_streams streams;
	struct um_gpu *gpu;
	struct um_executor *executor;
	struct um_executor_range memory; /* under all slots */
	struct um_touch *touch; /* buffer for those of one op */
	UM_VEC(uint64_t) hints; /* issued before each iteration of the plan; and at the end */
};

static int is_managed(const struct um_slot *s)
{
	return !(s->flags & UM_SLOT_UNMANAGED);
}

int um_plan_issue_can(const struct um_plan *plan)
{
	for (size_t i = 0; i < plan->sched.slots.n; i++)
		if (is_managed(&plan->sched.slots.at[i]) && plan->sched.slots.at[i].place == UINT64_MAX)
			return 0;
	return 1;
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

struct placed {
	uint64_t place;
	uint32_t slot;
};

static int by_place(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* Moves the slots together, by whole blocks, where no slot is in between. Returns the bytes in `*bytes`. 0 or
 * -ENOMEM. */
static int close_holes(struct um_schedule *s, uint64_t *bytes)
{
	struct placed *p = malloc((s->slots.n + 1) * sizeof *p);
	uint64_t end = 0, shift = 0;
	size_t n = 0;

	if (!p)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->slots.n; i++)
		if (is_managed(&s->slots.at[i]))
			p[n++] = (struct placed){s->slots.at[i].place, i};
	qsort(p, n, sizeof *p, by_place);
	for (size_t i = 0; i < n; i++) {
		struct um_slot *t = &s->slots.at[p[i].slot];
		uint64_t block = (t->place - shift) / UM_BLOCK_BYTES;

		if (block > end)
			shift += (block - end) * UM_BLOCK_BYTES;
		t->place -= shift;
		block = (t->place + t->bytes + UM_BLOCK_BYTES - 1) / UM_BLOCK_BYTES;
		end = block > end ? block : end;
	}
	free(p);
	*bytes = end * UM_BLOCK_BYTES;
	return 0;
}

/* Tensors that are alive at the first iteration were written by the CPU. */
static int fill(struct issue *p)
{
	for (size_t i = 0; i < p->plan.sched.slots.n; i++) {
		struct um_slot *t = &p->plan.sched.slots.at[i];

		if (!is_managed(t))
			continue;
		t->place += p->memory.addr;
		t->bound_addr = t->place;
		t->bound.v = um_slot_alive_first(t) ? i + 1 : 0;
		if (t->bound.v && !(t->flags & UM_SLOT_TRANSIENT) &&
		    um_sim_host_touch(p->gpu, (void *)(uintptr_t)t->place, t->bytes, UM_WRITE))
			return -EIO;
	}
	return 0;
}

static int open_device(struct issue *p)
{
	struct um_sim_options so = {.profile = p->o->profile, .capacity = p->plan.budget};
	void *base = NULL;
	int err = close_holes(&p->plan.sched, &p->memory.bytes);

	if (err)
		return err;
	/* places are block by block what they will be: counts the blocks in use */
	err = um_compiled_plan_build_steady(&p->plan, p->plan.budget / UM_BLOCK_BYTES, &p->program);
	if (!err && p->program.over)
		so.capacity = p->memory.bytes + SPARE_BLOCKS * UM_BLOCK_BYTES;
	um_compiled_plan_fini(&p->program);
	if (!err)
		err = um_sim_open(&p->gpu, &so);
	if (!err && p->gpu->api->cudaMallocManaged(p->gpu, &base, p->memory.bytes, 1))
		err = -ENOMEM;
	p->memory.addr = (uint64_t)(uintptr_t)base;
	return err ? err : fill(p);
}

/* --- the plan ----------------------------------------------------------------------------------------------------- */

/* The compiled plan discards only what the plan and the program's declarations allow. What the device holds when the
 * plan is adopted is live. */
static int may_discard(void *user, uint64_t addr, uint64_t bytes, enum um_executor_waits waits)
{
	(void)user;
	(void)addr;
	(void)bytes;
	return waits != UM_LATER_OPS_WAIT;
}

static int compile(struct issue *p)
{
	const struct um_profile *d = p->o->profile;
	uint64_t blocks = p->plan.budget / UM_BLOCK_BYTES;
	enum um_evict_policy policy = (enum um_evict_policy)p->o->evict;
	int err;

	p->program.run_out = um_evict_policy_runs(&p->plan, d, blocks);
	err = um_compiled_plan_build(&p->plan, blocks, &p->program);

	for (size_t i = 0; i < p->plan.sched.ops.n; i++)
		if (p->plan.sched.ops.at[i].paged || p->plan.sched.ops.at[i].stream == UM_STREAM_CPU)
			policy = UM_EVICT_LIBRARY;
	if (!err)
		err = um_evict_policy_choose(&p->program, &p->plan, d, blocks,
					     p->program.over ? UM_EVICT_LIBRARY : policy);
	if (!err)
		err = um_rehearse(&p->program, &p->plan, d, &p->plan.rehearsed_ns);
	if (!err)
		err = um_cursor_follow(&p->cursor, &p->plan.sched);
	return err;
}

static int open_executor(struct issue *p)
{
	const struct um_profile *d = p->o->profile;
	uint64_t link_ns = (uint64_t)((double)UM_BLOCK_BYTES * 1e9 / (d->d2h * d->eta));
	struct um_executor_host host = {.may_discard = may_discard,
					.user = p,
					.streams = &p->streams,
					.out_workers = um_lanes_out_workers(d->c_pf + d->c_pf_cpu, link_ns)};

	um_app_streams_put(&p->streams, 0, um_app_stream_of(NULL));
	return um_executor_open(&p->executor, p->gpu, &host);
}

/* --- iterations --------------------------------------------------------------------------------------------------- */

/* Tensors that are born before the op, each at its place or, while that is in use, at the other place of its
 * rotation. */
static int bear(struct issue *p, uint32_t op)
{
	const struct um_schedule *s = &p->plan.sched;
	struct um_cursor *c = &p->cursor;

	while (c->birth < s->births.n && s->slots.at[s->births.at[c->birth]].birth <= (int32_t)op) {
		uint32_t slot = s->births.at[c->birth], other = c->from[slot];
		const struct um_slot *is = &s->slots.at[slot];
		int taken = other != UM_NO_SLOT && c->slots[other].addr == is->place;
		struct um_tensor t = {.id = {s->slots.n + slot + 1},
				      .bytes = is->bytes,
				      .addr = um_cursor_place(c, is->bytes, taken)};

		if (is->flags & UM_SLOT_WORKSPACE)
			t.addr = is->place;
		if (is_managed(is))
			um_executor_claim(p->executor, t.addr, t.bytes);
		if (is->flags & UM_SLOT_WORKSPACE) {
			um_cursor_workspace(c, slot, &t);
			c->birth++;
		} else if (um_cursor_alloc(c, &t)) {
			return -EIO;
		}
	}
	return 0;
}

/* The announced op waits for its hints. */
static int await_hints(struct issue *p)
{
	struct um_executor_wait w;

	return um_executor_take_wait(p->executor, NULL, &w) && um_executor_wait(&w) ? -EIO : 0;
}

static int use_on_cpu(struct issue *p, const struct um_sched_op *o)
{
	const struct um_schedule *s = &p->plan.sched;
	int err = 0;

	for (uint32_t u = o->first_use; u < o->first_use + o->n_uses; u++) {
		uint64_t addr = p->cursor.slots[s->uses.at[u].slot].addr + s->uses.at[u].off;

		um_executor_guard_cpu(p->executor, addr, addr + s->uses.at[u].bytes);
	}
	if (await_hints(p) || p->gpu->api->cudaStreamSynchronize(p->gpu, NULL))
		return -EIO;
	for (uint32_t u = o->first_use; u < o->first_use + o->n_uses && !err; u++) {
		const struct um_sched_use *use = &s->uses.at[u];
		uint64_t addr = p->cursor.slots[use->slot].addr + use->off;

		if (um_sim_host_touch(p->gpu, (void *)(uintptr_t)addr, use->bytes, use->access))
			err = -EIO;
	}
	return err;
}

static int launch(struct issue *p, uint32_t op)
{
	const struct um_schedule *s = &p->plan.sched;
	const struct um_sched_op *o = &s->ops.at[op];
	struct um_sim_kernel k = {.name = o->name, .ns = p->now[op], .access = p->touch};

	for (uint32_t u = o->first_use; u < o->first_use + o->n_uses; u++) {
		const struct um_sched_use *use = &s->uses.at[u];

		if (is_managed(&s->slots.at[use->slot]))
			p->touch[k.n_access++] =
				(struct um_touch){(void *)(uintptr_t)(p->cursor.slots[use->slot].addr + use->off),
						  use->bytes, use->touched, use->access};
	}
	return await_hints(p) || um_sim_run(p->gpu, NULL, &k) ? -EIO : 0;
}

static int play_ops(struct issue *p)
{
	int err = 0;

	for (uint32_t op = 0; op < p->plan.sched.ops.n && !err; op++) {
		err = bear(p, op);
		if (err)
			break;
		um_cursor_advance(&p->cursor);
		if (um_executor_op(p->executor, op, 0, &p->cursor, NULL, 0))
			return -EIO;
		err = p->plan.sched.ops.at[op].stream == UM_STREAM_CPU ? use_on_cpu(p, &p->plan.sched.ops.at[op])
								       : launch(p, op);
	}
	return err ? err : bear(p, (uint32_t)p->plan.sched.ops.n);
}

/* All ops are in the default stream. */
static int mark(const struct issue *p)
{
	return um_sim_mark(p->gpu, (const um_stream[]){NULL}, 1);
}

static int begin(struct issue *p, uint64_t iteration)
{
	size_t n = p->plan.sched.ops.n;
	uint64_t blocks = p->plan.budget / UM_BLOCK_BYTES;

	memcpy(p->now, p->ns, n * sizeof *p->now);
	um_jitter_apply_turns(&p->o->jitter, iteration, p->turns, p->now, n);
	if (p->o->progress)
		p->o->progress(p->o->user, iteration, p->o->iterations);
	if (mark(p) || um_vec_push(&p->hints, um_executor_queued(p->executor)))
		return -ENOMEM;
	um_cursor_begin(&p->cursor);
	if (iteration)
		um_executor_begin(p->executor, &p->memory, 1);
	else
		return um_executor_adopt(p->executor, &p->program, blocks, &p->memory, 1, &p->cursor);
	return 0;
}

/* One iteration of the plan counts as the same number of equal iterations of the trace. */
static int collect(struct issue *p, struct um_play_result *out, uint64_t in_core_ns)
{
	for (unsigned k = 0; k + 1 < p->hints.n; k++) {
		struct um_tally a, b;

		if (um_sim_mark_at(p->gpu, k, &a) || um_sim_mark_at(p->gpu, k + 1, &b))
			return -EIO;
		struct um_play_iteration it = {.ns = (b.ns - a.ns) / p->turns,
					       .faults = (b.faults - a.faults) / p->turns,
					       .h2d_bytes = (b.h2d_bytes - a.h2d_bytes) / p->turns,
					       .d2h_bytes = (b.d2h_bytes - a.d2h_bytes) / p->turns,
					       .peak_resident_bytes = b.peak_resident_bytes,
					       .peak_prefetched_bytes = b.peak_prefetched_bytes,
					       .hints = (p->hints.at[k + 1] - p->hints.at[k]) / p->turns,
					       .hinted = 1};

		it.by.hints[UM_HINT_SCHEDULED] = it.hints;
		it.stall_ns = it.ns > in_core_ns ? it.ns - in_core_ns : 0;
		for (uint64_t i = 0; i < p->turns; i++)
			if (um_vec_push(&out->iterations, it))
				return -ENOMEM;
	}
	um_play_result_settle(out, p->o->means);
	out->in_core_ns = in_core_ns;
	out->first_hinted_iteration = 0;
	out->predicted_ns = p->plan.rehearsed_ns / p->turns;
	return 0;
}

static int play_all(struct issue *p, struct um_play_result *out)
{
	uint64_t in_core_ns = 0;
	int err = 0;

	for (size_t i = 0; i < p->plan.sched.ops.n; i++)
		in_core_ns += p->ns[i];
	for (uint64_t i = 0; i < p->o->iterations && !err; i += p->turns) {
		err = begin(p, i);
		err = err ? err : play_ops(p);
	}
	if (!err && (mark(p) || um_vec_push(&p->hints, um_executor_queued(p->executor))))
		err = -ENOMEM;
	if (!err && p->gpu->api->simulation->sync(p->gpu))
		err = -EIO;
	return err ? err : collect(p, out, in_core_ns / p->turns);
}

int um_plan_issue(const struct um_plan *plan, const struct um_play_options *o, const uint64_t *ns, uint64_t turns,
		  struct um_play_result *out)
{
	struct issue p = {.o = o, .plan = *plan, .ns = ns, .turns = turns};
	size_t most = 0;
	int err;

	um_schedule_init(&p.plan.sched);
	um_compiled_plan_init(&p.program);
	um_cursor_init(&p.cursor);
	p.plan.start = NULL;
	err = um_schedule_copy(&p.plan.sched, &plan->sched);
	if (!err) /* the start times of operations, from which it follows what is evicted in time */
		err = um_plan_prove(&p.plan, NULL, out->why, sizeof out->why);
	for (size_t i = 0; i < plan->sched.ops.n; i++)
		most = plan->sched.ops.at[i].n_uses > most ? plan->sched.ops.at[i].n_uses : most;
	p.touch = calloc(most + 1, sizeof *p.touch);
	p.now = calloc(plan->sched.ops.n + 1, sizeof *p.now);
	if (!p.touch || !p.now)
		err = -ENOMEM;
	if (!err)
		err = open_device(&p);
	if (!err)
		err = compile(&p);
	if (!err)
		err = open_executor(&p);
	if (!err)
		err = play_all(&p, out);
	um_executor_close(p.executor);
	if (p.gpu)
		p.gpu->api->close(p.gpu);
	um_cursor_fini(&p.cursor);
	um_compiled_plan_fini(&p.program);
	um_schedule_fini(&p.plan.sched);
	um_vec_fini(&p.hints);
	free(p.plan.start);
	free(p.touch);
	free(p.now);
	return err;
}
