/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers of the device execute jobs in order, as the library's workers do: one launches, one prefetches, several
 * evict, and several allocate memory for births. The driver spends so much time on an eviction or on a prefetch without
 * a copy that a single worker would leave the link idle. Each job ends with an event and so has an end time.
 * um_plan_run decides what starts and receives the ends from here. Steps that take no time in a plan may take some on
 * the device; later steps then wait for them. Advice is given before the first iteration, for ranges with blocks of
 * their own.
 */
#include "play/plan_player.h"

#include "sim/sim.h"
#include "model/plan_run.h"
#include "play/plan_issue.h"
#include "model/plan_launches.h"
#include "play/plan_match.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 65536ull /* bytes that the driver copies together */

#define TAKERS 4
#define BEARERS 4

enum lane_id { LAUNCH, IN, OUT, BORN = OUT + TAKERS, LANES = BORN + BEARERS };

enum job_kind { JOB_OP, JOB_BRING, JOB_RENEW, JOB_TAKE, JOB_LET, JOB_DISCARD };

struct job {
	enum job_kind kind;
	uint64_t addr, bytes; /* op: addr is its number */
	uint64_t need[LANES]; /* jobs of each lane that must end before it */
};

struct play;

struct lane {
	struct play *p;
	struct um_worker worker;
	um_stream stream;
	um_event_handle event; /* after the job under way */
	UM_VEC(struct job) jobs;
	uint64_t gone; /* jobs already removed from `jobs` */
	uint64_t done, put; /* jobs, ever */
	int started, busy;
};

/* Memory of a tensor, which stays while the tensor passes through several slots. */
struct home {
	uint64_t addr;
	uint64_t last[LANES]; /* after the last job of each lane for it */
};

struct play {
	const struct um_plan *plan;
	const struct um_profile *profile;
	enum um_pattern pattern; /* of kernels */
	struct um_gpu *gpu;
	struct lane lane[LANES];
	struct home *home;
	uint32_t *at, *next; /* by slot: its memory, now and in the next iteration */
	uint8_t *mostly; /* by slot: its evicted ranges are read-mostly */
	const uint64_t *ns; /* by op: of the trace */
	uint64_t *now; /* likewise, in this iteration */
	struct um_touch *touch; /* buffer for those of one op */
	uint64_t in_begin, end[LANES]; /* the jobs under way: first, end */
	unsigned turn[LANES]; /* of OUT and BORN: worker of the next piece */
	uint64_t turns; /* iterations of the trace in one of the plan */
	int launched; /* the op under way was */
	int err;
};

/* --- the device's side ------------------------------------------------------------------------------------------- */

static int launch(struct play *p, uint32_t op, um_stream stream)
{
	const struct um_schedule *s = &p->plan->sched;
	const struct um_sched_op *o = &s->ops.at[op];
	struct um_sim_kernel k = {.name = o->name, .ns = p->now[op], .access = p->touch, .pattern = p->pattern};

	for (uint32_t u = o->first_use; u < o->first_use + o->n_uses; u++) {
		const struct um_sched_use *use = &s->uses.at[u];

		if (s->slots.at[use->slot].flags & UM_SLOT_UNMANAGED)
			continue;
		p->touch[k.n_access++] =
			(struct um_touch){(void *)(uintptr_t)(p->home[p->at[use->slot]].addr + use->off), use->bytes,
					  use->touched, use->access};
	}
	return um_sim_run(p->gpu, stream, &k);
}

static int issue(struct play *p, const struct job *j, um_stream stream)
{
	const struct um_gpu_api *api = p->gpu->api;
	struct um_location here = um_on_device(p->gpu->caps.device);
	void *ptr = (void *)(uintptr_t)j->addr;
	size_t bytes = j->bytes;
	int err;

	switch (j->kind) {
	case JOB_OP:
		return launch(p, (uint32_t)j->addr, stream);
	case JOB_BRING:
		return api->cudaMemPrefetchAsync(p->gpu, ptr, bytes, here, 0, stream);
	case JOB_RENEW:
		/* Not in one call: that would leave pages read-only that a neighbour's fault has mapped since the last
		 * discard, and a write would fault. The plain discard unmaps. */
		err = api->cudaMemDiscardBatchAsync(p->gpu, &ptr, &bytes, 1, 0, stream);
		return err ? err : api->cudaMemPrefetchAsync(p->gpu, ptr, bytes, here, 0, stream);
	case JOB_LET: /* a duplicate ends, and the host's copy stays */
		return api->cudaMemAdvise(p->gpu, ptr, bytes, UM_ADV_UNSET_READ_MOSTLY, here) ||
		       api->cudaMemAdvise(p->gpu, ptr, bytes, UM_ADV_SET_READ_MOSTLY, here);
	case JOB_TAKE:
		return api->cudaMemPrefetchAsync(p->gpu, ptr, bytes, um_on_host(), 0, stream);
	default:
		return api->cudaMemDiscardBatchAsync(p->gpu, &ptr, &bytes, 1, 0, stream);
	}
}

static struct um_step step(void *arg)
{
	struct lane *l = arg;
	struct play *p = l->p;
	const struct job *j;

	if (l->busy) {
		if (p->gpu->api->cudaEventQuery(p->gpu, l->event) == UM_CUDA_NOT_READY)
			return (struct um_step){.kind = UM_STEP_WAIT, .event = l->event};
		l->busy = 0;
		l->done++;
		for (int i = 0; i < LANES; i++)
			p->gpu->api->worker_poke(p->gpu, &p->lane[i].worker);
	}
	if (l->done == l->put)
		return (struct um_step){.kind = UM_STEP_IDLE};
	j = &l->jobs.at[l->done - l->gone];
	for (int i = 0; i < LANES; i++)
		if (p->lane[i].done < j->need[i])
			return (struct um_step){.kind = UM_STEP_IDLE};
	if (issue(p, j, l->stream) || p->gpu->api->cudaEventRecord(p->gpu, l->event, l->stream))
		p->err = -EIO;
	l->busy = 1;
	return (struct um_step){.kind = UM_STEP_WAIT, .event = l->event};
}

/* --- the plan's side --------------------------------------------------------------------------------------------- */

static void put(struct play *p, unsigned id, struct job j)
{
	struct lane *l = &p->lane[id];

	if (l->done == l->put) {
		l->gone = l->put;
		um_vec_clear(&l->jobs);
	}
	if (um_vec_push(&l->jobs, j))
		p->err = -ENOMEM;
	else
		l->put++;
}

/* The call for one atom, -1: none. Dead content must be discarded, because the driver would copy it. */
static int job_for(enum um_hint_kind kind, const struct um_hint *h, unsigned state)
{
	int there = (state & UM_ATOM_RESIDENT) != 0, live = (state & UM_ATOM_LIVE) != 0;

	if (kind == UM_HINT_PREFETCH)
		return there ? -1 : live ? JOB_BRING : JOB_RENEW;
	if (kind == UM_HINT_DISCARD)
		return JOB_DISCARD;
	if (!there)
		return -1;
	return live && (h->copy || state & UM_ATOM_FRESH) ? JOB_TAKE : JOB_DISCARD;
}

/* Discards need pages of 4 KiB and leave partial pages of 64 KiB alone; the tensor's last page is its own. */
static void round_out(struct job *j, int last)
{
	uint64_t unit = last ? PAGE : 4096, end = (j->addr + j->bytes + unit - 1) / unit * unit;

	j->addr = j->addr / 4096 * 4096;
	j->bytes = end - j->addr;
}

/* Advice applies to whole blocks at the end of a tensor. */
static void round_advice(struct job *j, const struct um_hint *h, const struct um_slot *s)
{
	uint64_t end = j->addr + j->bytes;

	if (!h->off)
		j->addr &= ~(UM_BLOCK_BYTES - 1);
	if (h->off + h->bytes == s->bytes)
		end = (end + UM_BLOCK_BYTES - 1) & ~(UM_BLOCK_BYTES - 1);
	j->bytes = end - j->addr;
}

/* One piece per worker, cut at block boundaries. */
static void put_pieces(struct play *p, enum lane_id id, unsigned workers, struct job j)
{
	uint64_t end = j.addr + j.bytes, first = j.addr / UM_BLOCK_BYTES;
	uint64_t blocks = (end - 1) / UM_BLOCK_BYTES - first + 1, each = (blocks + workers - 1) / workers;

	while (j.addr < end) {
		uint64_t stop = (first += each) * UM_BLOCK_BYTES;

		j.bytes = (stop < end ? stop : end) - j.addr;
		put(p, id + p->turn[id], j);
		p->turn[id] = (p->turn[id] + 1) % workers;
		j.addr += j.bytes;
	}
}

static void on_hint(void *user, const struct um_plan_run *r, uint32_t hint, uint32_t slot, struct um_atom_range a)
{
	struct play *p = user;
	const struct um_hint *h = &p->plan->hints.at[hint];
	struct home *home = &p->home[p->at[slot]];
	int in = h->kind == UM_HINT_PREFETCH;

	if (in)
		p->in_begin = p->lane[IN].put;
	for (uint32_t i = a.lo, end; i < a.hi; i = end) {
		int kind = job_for(h->kind, h, r->state[i]);
		struct job j = {.addr = home->addr + r->atoms.off[i]};

		for (end = i; end < a.hi && job_for(h->kind, h, r->state[end]) == kind; end++)
			j.bytes += r->atoms.bytes[end];
		if (kind < 0)
			continue;
		j.kind = (enum job_kind)kind;
		if (kind == JOB_TAKE && p->mostly[h->slot]) {
			j.kind = JOB_LET;
			round_advice(&j, h, &p->plan->sched.slots.at[h->slot]);
		}
		memcpy(j.need, home->last, sizeof j.need); /* in order, on any worker */
		if (kind == JOB_DISCARD || kind == JOB_RENEW)
			round_out(&j, end == r->atoms.first[slot + 1]);
		if (kind == JOB_RENEW)
			put_pieces(p, BORN, BEARERS, j);
		else if (in)
			put(p, IN, j);
		else
			put_pieces(p, OUT, TAKERS, j);
	}
	for (int k = IN; k < LANES; k++) {
		int took = k >= OUT && k < BORN;

		if (in == took)
			continue;
		home->last[k] = p->lane[k].put;
		if (h->kind != UM_HINT_DISCARD && k < BORN)
			p->end[k] = p->lane[k].put;
	}
}

static int has_ended(const struct play *p, enum lane_id id)
{
	for (int k = id; k < (id == OUT ? BORN : (int)id + 1); k++)
		if (p->lane[k].done < p->end[k])
			return 0;
	return 1;
}

struct waiting {
	const struct play *p;
	const struct um_plan_run *r;
};

static int something_ended(void *arg)
{
	const struct waiting *w = arg;

	return w->p->err || (w->r->running && has_ended(w->p, LAUNCH)) || (w->r->h2d.busy && has_ended(w->p, IN)) ||
	       (w->r->d2h.busy && has_ended(w->p, OUT));
}

/* Starts an op after all earlier copies, but not after the copy under way. */
static void put_op(struct play *p, const struct um_plan_run *r)
{
	struct job j = {.kind = JOB_OP, .addr = (uint64_t)r->pos};

	j.need[IN] = r->h2d.busy ? p->in_begin : p->lane[IN].put;
	for (int k = BORN; k < LANES; k++)
		j.need[k] = p->lane[k].put;
	put(p, LAUNCH, j);
	p->end[LAUNCH] = p->lane[LAUNCH].put;
	p->launched = 1;
}

static uint64_t end_of(const struct play *p, enum lane_id id, uint64_t now)
{
	return p->err || has_ended(p, id) ? now : UINT64_MAX - 1;
}

static void on_pass(void *user, struct um_plan_run *r)
{
	struct play *p = user;
	struct waiting w = {p, r};
	uint64_t now;

	if (r->running && !p->launched)
		put_op(p, r);
	if (!r->running && !r->h2d.busy && !r->d2h.busy)
		return;
	for (int i = 0; i < LANES; i++)
		p->gpu->api->worker_poke(p->gpu, &p->lane[i].worker);
	if (p->gpu->api->worker_wait(p->gpu, something_ended, &w) && !p->err)
		p->err = -EIO;
	now = um_sim_now(p->gpu);
	if (r->running) {
		r->op_end = end_of(p, LAUNCH, now);
		p->launched = r->op_end != now;
	}
	r->h2d.end = end_of(p, IN, now);
	r->d2h.end = end_of(p, OUT, now);
}

/* --- iterations -------------------------------------------------------------------------------------------------- */

/* Passes tensors to their slots of the next iteration. A tensor without a successor leaves its memory to the tensor
 * that is born at the other end of its chain of slots. */
static void rename_homes(struct play *p, const uint32_t *successor)
{
	uint32_t *swap = p->at;

	for (uint32_t i = 0; i < p->plan->sched.slots.n; i++) {
		uint32_t from = p->plan->sched.slots.at[i].carry;

		if (from == UM_NO_SLOT)
			for (from = i; successor[from] != UM_NO_SLOT;)
				from = successor[from];
		p->next[i] = p->at[from];
	}
	p->at = p->next;
	p->next = swap;
}

/* Reports one iteration of the plan as the same number of equal iterations of the trace. */
static int add_iteration(struct play *p, const struct um_plan_run *r, struct um_tally *before, uint64_t in_core,
			 struct um_play_result *out)
{
	struct um_tally now;
	struct um_play_iteration it = {
		.ns = r->tally.ns / p->turns, .peak_resident_bytes = r->tally.peak_bytes, .hinted = 1};
	int err = 0;

	um_sim_tally(p->gpu, &now);
	it.faults = (now.faults - before->faults) / p->turns;
	it.h2d_bytes = (now.h2d_bytes - before->h2d_bytes) / p->turns;
	it.d2h_bytes = (now.d2h_bytes - before->d2h_bytes) / p->turns;
	it.hints = (now.hints - before->hints) / p->turns;
	it.by.hints[UM_HINT_SCHEDULED] = it.hints;
	it.stall_ns = it.ns > in_core ? it.ns - in_core : 0;
	*before = now;
	out->host_bytes = now.host_bytes;
	for (uint64_t k = 0; k < p->turns && !err; k++)
		err = um_vec_push(&out->iterations, it);
	return err;
}

/* Times of the ops in the plan's iteration that begins with the trace's `iteration`. */
static void take_times(struct play *p, const struct um_play_options *o, uint64_t iteration)
{
	size_t n = p->plan->sched.ops.n;

	memcpy(p->now, p->ns, n * sizeof *p->ns);
	um_jitter_apply_turns(&o->jitter, iteration, p->turns, p->now, n);
}

static int play_all(struct play *p, const struct um_play_options *o, struct um_play_result *out)
{
	struct um_plan_watch watch = {on_hint, on_pass, p};
	struct um_plan_run r;
	struct um_tally before;
	uint64_t in_core = 0;
	int err = um_plan_run_init(&r, p->plan);

	if (err)
		return err;
	for (size_t i = 0; i < p->plan->sched.ops.n; i++)
		in_core += p->ns[i];
	in_core /= p->turns;
	um_sim_tally(p->gpu, &before);
	r.watch = &watch;
	r.now = um_sim_now(p->gpu);
	for (uint64_t i = 0; i < o->iterations && !err; i += p->turns) {
		take_times(p, o, i);
		if (o->progress)
			o->progress(o->user, i, o->iterations);
		um_plan_run_iteration(&r);
		err = p->err ? p->err : r.tally.stuck ? -EIO : add_iteration(p, &r, &before, in_core, out);
		rename_homes(p, r.successor);
	}
	if (!err) {
		um_play_result_settle(out, o->means);
		out->in_core_ns = in_core;
		out->first_hinted_iteration = 0;
		out->predicted_ns = p->plan->predicted_ns / p->turns;
	}
	um_plan_run_fini(&r);
	return err;
}

/* --- beginning and end ------------------------------------------------------------------------------------------- */

struct order {
	uint64_t place;
	uint32_t slot;
};

static int by_place(const void *a, const void *b)
{
	const struct order *x = a, *y = b;

	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* Bytes in all; tensors with adjacent places in the plan are adjacent. */
static int settle(struct play *p, uint64_t *bytes)
{
	const struct um_schedule *s = &p->plan->sched;
	struct order *o = malloc((s->slots.n + 1) * sizeof *o);
	uint8_t *advised = calloc(s->slots.n + 1, 1);

	if (!o || !advised) {
		free(o);
		free(advised);
		return -ENOMEM;
	}
	*bytes = 0;
	for (size_t i = 0; i < p->plan->hints.n; i++)
		if (p->plan->hints.at[i].kind == UM_HINT_ADVISE)
			advised[p->plan->hints.at[i].slot] = 1;
	for (uint32_t i = 0; i < s->slots.n; i++)
		o[i] = (struct order){s->slots.at[i].place, i};
	qsort(o, s->slots.n, sizeof *o, by_place);
	for (uint32_t i = 0; i < s->slots.n; i++) {
		uint64_t whole = advised[o[i].slot] ? UM_BLOCK_BYTES : PAGE;

		/* Blocks of its own, at the planned offset. */
		if (advised[o[i].slot])
			*bytes = (*bytes + whole - 1) / whole * whole + o[i].place % whole;
		p->home[o[i].slot].addr = *bytes;
		p->at[o[i].slot] = o[i].slot;
		*bytes = (*bytes + s->slots.at[o[i].slot].bytes + whole - 1) / whole * whole;
	}
	free(advised);
	free(o);
	return 0;
}

/* Tensors that are alive at the first iteration were written by the CPU. */
static int fill(struct play *p, char *base)
{
	const struct um_schedule *s = &p->plan->sched;

	for (uint32_t i = 0; i < s->slots.n; i++) {
		const struct um_slot *t = &s->slots.at[i];

		p->home[i].addr += (uint64_t)(uintptr_t)base;
		if (um_slot_alive_first(t) && !(t->flags & (UM_SLOT_TRANSIENT | UM_SLOT_UNMANAGED)) &&
		    um_sim_host_touch(p->gpu, (void *)(uintptr_t)p->home[i].addr, t->bytes, UM_WRITE))
			return -EIO;
	}
	return 0;
}

/* Gives read-mostly and host-resident advice; a plan has no other. */
static int advise(struct play *p)
{
	for (size_t i = 0; i < p->plan->hints.n; i++) {
		const struct um_hint *h = &p->plan->hints.at[i];
		struct job j = {.addr = p->home[h->slot].addr + h->off, .bytes = h->bytes};
		int mostly = h->advice == UM_ADVICE_READ_MOSTLY, host = h->advice == UM_ADVICE_PREFERRED;

		if (h->kind != UM_HINT_ADVISE || h->advice % 2 == 0 || (!mostly && !p->plan->remote))
			continue;
		if (mostly)
			round_advice(&j, h, &p->plan->sched.slots.at[h->slot]);
		p->mostly[h->slot] |= (uint8_t)mostly;
		if (p->gpu->api->cudaMemAdvise(p->gpu, (void *)(uintptr_t)j.addr, j.bytes, h->advice,
					       host ? um_on_host() : um_on_device(p->gpu->caps.device)))
			return -EIO;
	}
	return 0;
}

static int start(struct play *p)
{
	uint64_t bytes = 0;
	void *base = NULL;
	int err = settle(p, &bytes);
	struct um_sim_options so = {.profile = p->profile, .capacity = bytes + 16 * UM_BLOCK_BYTES};

	if (!err)
		err = um_sim_open(&p->gpu, &so);
	if (!err && p->gpu->api->cudaMallocManaged(p->gpu, &base, bytes + UM_BLOCK_BYTES, 1))
		err = -ENOMEM;
	if (!err)
		err = fill(p, base);
	if (!err)
		err = advise(p);
	for (int i = 0; i < LANES && !err; i++) {
		struct lane *l = &p->lane[i];

		l->p = p;
		l->worker = (struct um_worker){.step = step, .arg = l, .name = "plan"};
		if (p->gpu->api->cudaStreamCreateWithFlags(p->gpu, &l->stream, UM_STREAM_NON_BLOCKING) ||
		    p->gpu->api->cudaEventCreateWithFlags(p->gpu, &l->event, UM_EVENT_DISABLE_TIMING) ||
		    p->gpu->api->worker_start(p->gpu, &l->worker))
			err = -ENOMEM;
		l->started = !err;
	}
	return err;
}

static void stop(struct play *p)
{
	for (int i = 0; i < LANES; i++) {
		if (p->lane[i].started)
			p->gpu->api->worker_stop(p->gpu, &p->lane[i].worker);
		if (p->lane[i].event)
			p->gpu->api->cudaEventDestroy(p->gpu, p->lane[i].event);
		if (p->lane[i].stream)
			p->gpu->api->cudaStreamDestroy(p->gpu, p->lane[i].stream);
		um_vec_fini(&p->lane[i].jobs);
	}
	if (p->gpu)
		p->gpu->api->close(p->gpu);
	free(p->home);
	free(p->mostly);
	free(p->at);
	free(p->next);
	free(p->now);
	free(p->touch);
}

/* `ns`: by op. */
static int play_plan(const struct um_plan *plan, const struct um_play_options *o, const uint64_t *ns, uint64_t turns,
		     struct um_play_result *out)
{
	struct play p = {.plan = plan, .profile = o->profile, .ns = ns, .turns = turns};
	size_t slots = plan->sched.slots.n, most = 0;
	int err = 0;

	if (um_plan_issue_can(plan))
		return um_plan_issue(plan, o, ns, turns, out);
	for (size_t i = 0; i < plan->sched.ops.n; i++)
		most = plan->sched.ops.at[i].n_uses > most ? plan->sched.ops.at[i].n_uses : most;
	p.home = calloc(slots + 1, sizeof *p.home);
	p.mostly = calloc(slots + 1, 1);
	p.at = calloc(slots + 1, sizeof *p.at);
	p.next = calloc(slots + 1, sizeof *p.next);
	p.now = calloc(plan->sched.ops.n + 1, sizeof *p.now);
	p.touch = calloc(most + 1, sizeof *p.touch);
	if (!p.home || !p.mostly || !p.at || !p.next || !p.now || !p.touch)
		err = -ENOMEM;
	if (!err)
		err = start(&p);
	if (!err)
		err = play_all(&p, o, out);
	stop(&p);
	return err;
}

int um_plan_player_run(const struct um_trace *trace, const struct um_plan *plan, const struct um_play_options *o,
		       struct um_play_result *out)
{
	uint64_t *ns = calloc(plan->sched.ops.n + 1, sizeof *ns), turns = 1, slower;
	struct um_plan_launches all;
	int err;

	memset(out, 0, sizeof *out);
	out->first_hinted_iteration = -1;
	err = ns ? um_plan_check(plan, &out->plan, out->why, sizeof out->why) : -ENOMEM;
	err = err == -EINVAL ? -ENODATA : err;
	if (!err)
		err = um_plan_match(plan, trace, o->profile, ns, &turns, out->why, sizeof out->why);
	if (!err)
		err = um_plan_launches_build(&all, plan, ns);
	free(ns);
	if (err)
		return err;
	slower = out->plan.slower_ns;
	err = play_plan(&all.unfolded.plan, o, all.ns, turns, out);
	out->in_core_ns = (all.core_ns > slower ? all.core_ns - slower : all.core_ns) / turns;
	out->relaunches = all.unfolded.plan.sched.ops.n - plan->sched.ops.n;
	um_plan_launches_fini(&all);
	return err;
}
