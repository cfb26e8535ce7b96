/* SPDX-License-Identifier: Apache-2.0
 *
 * rehearsal.c - simulates the workers, the driver and the link over a steady iteration
 *
 * The steady iteration is simulated several times. Of the next request of each lane, the one that can begin first does,
 * as soon as its worker is free and its waits are over; ops begin when the end of their waits is known. The program
 * takes no time, but it is held up by each op until the op's ins are submitted, and ins are queued by later ops only
 * then. An access of the CPU waits for evictions of its ranges. Page faults of a paged op are not simulated: they add a
 * time to it.
 */
#include "replay/rehearsal.h"

#include "model/host_resident.h"
#include "replay/lanes.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#define ITERATIONS 3 /* the last one counts */

/* Page faults of library kernels (doc/simulator.md). */
#define VISITS 3 /* until a block is whole */
#define BATCH_BLOCKS 3
#define VISIT_FAULTS 8

/* The last evictions before an access of the CPU that it waits for: number after them, as um_action.room. */
struct left_for {
	int32_t outs, drops;
};

/* Completion times of a lane's requests, over all iterations, each the maximum so far: when all requests up to it are
 * complete. */
struct track {
	uint64_t *at; /* at[k]: of the first k */
	uint32_t n;
};

enum lane { LANE_IN, LANE_OUT, LANE_DROP, LANES };

#define NEVER UINT64_MAX

struct rehearsal {
	const struct um_compiled_plan *p;
	const struct um_compiled_iteration *iteration;
	const struct um_plan *plan;
	const struct um_profile *profile;
	uint64_t *ns; /* by op */
	uint64_t in_ns, out_ns; /* to copy a block */
	unsigned n_out;
	uint32_t n[LANES]; /* requests of an iteration */
	uint32_t next[LANES]; /* the lane's next action, n: none left in this iteration */
	struct track over[LANES]; /* calls */
	struct track arrived; /* ins: blocks */
	uint64_t in_free[UM_LANES_IN], out_free[UM_LANES_OUT_MOST], drop_free[UM_LANES_DROP];
	uint64_t stream[UM_LANES_IN]; /* when it is idle */
	uint64_t in_turn; /* begin of the latest in */
	uint64_t h2d, d2h; /* engines */
	uint64_t readers, writer; /* hints share a lock of the driver, advice takes it alone: until when */
	uint64_t *left; /* by block: when its copy on the host was complete; 0: none */
	uint8_t *unmapped; /* by block: the host has no mapping of it, or a read-only one: no unmapping is needed */
	struct left_for *left_for; /* by op; NULL: the CPU accesses nothing */
	uint64_t *done; /* by op, over all iterations: end of the previous op */
	uint64_t *announced; /* likewise: when the program announces the op */
	uint32_t op; /* the next one, over all iterations */
	int stuck; /* unknown times count as over */
};

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void track_add(struct track *t, uint64_t at)
{
	t->at[t->n + 1] = later(t->at[t->n], at);
	t->n++;
}

/* Completion of the first `count` requests, counted from `iteration` on with `n` of them each. NEVER: not known
 * yet. */
static uint64_t track_at(const struct rehearsal *r, const struct track *t, uint32_t iteration, uint32_t n,
			 int32_t count)
{
	int64_t k = (int64_t)iteration * n + count;

	if (count == INT32_MIN || k <= 0)
		return 0;
	if (k > t->n)
		return r->stuck ? 0 : NEVER;
	return t->at[k];
}

/* A copy on one engine, slowed down to `duplex` by earlier work on the other one. */
static uint64_t copy_at(double duplex, uint64_t *engine, uint64_t other, uint64_t from, uint64_t ns)
{
	uint64_t begin = later(*engine, from), both = other > begin ? other - begin : 0;
	double done = (double)both * duplex;

	if (done > (double)ns)
		ns = (uint64_t)((double)ns / duplex);
	else
		ns += both - (uint64_t)done;
	return *engine = begin + ns;
}

static uint64_t copy(const struct rehearsal *r, uint64_t *engine, uint64_t other, uint64_t from, uint64_t ns)
{
	return copy_at(r->profile->duplex, engine, other, from, ns);
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

/* The driver's work for an in, from `t` on. Returns its end on the calling thread; `*end`: arrival of the blocks. */
static uint64_t prefetch(struct rehearsal *r, const struct um_action *a, uint64_t t, uint64_t *end)
{
	const struct um_profile *p = r->profile;
	size_t i = um_compiled_plan_find(r->p, a->addr);
	unsigned evicts = a->evicts, there = a->kind == UM_ACTION_REFRESH ? UINT_MAX : a->resident;
	double duplex = evicts ? p->duplex_evict : p->duplex;

	*end = t = later(t, r->writer);
	for (uint64_t n = a->bytes / UM_BLOCK_BYTES; n && i < r->p->blocks.n; n--, i++) {
		uint64_t gone = 0;

		if (n <= there) {
			t += p->c_pf_res;
			r->left[i] = 0;
			continue;
		}
		t += p->c_pf + (evicts ? p->c_evict : p->c_evict_unused);
		if (evicts) {
			gone = copy_at(duplex, &r->d2h, r->h2d, t, r->out_ns);
			evicts--;
		}
		if (r->left[i]) {
			t += r->unmapped[i] ? 0 : p->c_unmap;
			*end = later(*end,
				     copy_at(duplex, &r->h2d, r->d2h, later(later(t, gone), r->left[i]), r->in_ns));
		} else {
			*end = later(*end, later(t, gone) + p->c_zero);
		}
		r->left[i] = 0;
	}
	*end = later(*end, t);
	r->readers = later(r->readers, t);
	return t;
}

static void in(struct rehearsal *r, const struct um_action *a, uint64_t t)
{
	uint32_t k = r->over[LANE_IN].n;
	uint64_t *worker = &r->in_free[k % UM_LANES_IN], *stream = &r->stream[k % UM_LANES_IN];

	r->in_turn = t;
	*worker = prefetch(r, a, t + r->profile->c_api, stream);
	track_add(&r->over[LANE_IN], *worker);
	track_add(&r->arrived, *stream);
}

/* Blocks its caller: the copies, then the mapping on the host. A block left to the driver is copied for the in that
 * takes its memory, long before it returns. */
static void evict(struct rehearsal *r, const struct um_action *a, uint64_t t)
{
	size_t first = um_compiled_plan_find(r->p, a->addr), end = first + a->bytes / UM_BLOCK_BYTES;
	int leave = a->kind == UM_ACTION_LEAVE_TO_DRIVER;

	if (end > r->p->blocks.n)
		end = r->p->blocks.n;
	if (!leave)
		t = later(t + r->profile->c_api, r->writer);
	for (size_t i = first; i < end; i++) {
		t += leave ? 0 : r->profile->c_pf;
		r->left[i] = leave ? t : copy(r, &r->d2h, r->h2d, t, r->out_ns);
		r->unmapped[i] = (uint8_t)leave;
	}
	for (size_t i = first; i < end && !leave; i++)
		t = later(t, r->left[i]) + r->profile->c_pf_cpu;
	r->readers = leave ? r->readers : later(r->readers, t);
	r->out_free[r->over[LANE_OUT].n % r->n_out] = t;
	track_add(&r->over[LANE_OUT], t);
}

/* As an eviction, by another worker. Of a block on the host nothing is left to copy, but it returns with a copy. */
static void drop_with_copy(struct rehearsal *r, const struct um_action *a, uint64_t t)
{
	const struct um_profile *p = r->profile;
	size_t i = um_compiled_plan_find(r->p, a->addr);

	t = later(t + p->c_api, r->writer);
	for (uint64_t n = a->bytes / UM_BLOCK_BYTES; n && i < r->p->blocks.n; n--, i++) {
		if (r->left[i]) {
			t += p->c_pf_res;
			continue;
		}
		t = copy(r, &r->d2h, r->h2d, t + p->c_pf, r->out_ns) + p->c_pf_cpu;
		r->left[i] = t;
		r->unmapped[i] = 0;
	}
	r->readers = later(r->readers, t);
	r->drop_free[r->over[LANE_DROP].n % UM_LANES_DROP] = t;
	track_add(&r->over[LANE_DROP], t);
}

static void drop(struct rehearsal *r, const struct um_action *a, uint64_t t)
{
	const struct um_profile *p = r->profile;
	uint64_t n = a->bytes / UM_BLOCK_BYTES;
	size_t i = um_compiled_plan_find(r->p, a->addr);
	int let = a->kind == UM_ACTION_DROP_CLEAN;

	if (a->kind == UM_ACTION_DROP_WITH_COPY) {
		drop_with_copy(r, a, t);
		return;
	}
	if (let) {
		t = r->writer = later(t, later(r->readers, r->writer)) + 2 * (p->c_api + n * p->c_adv);
	} else {
		t = later(t + p->c_api, r->writer) + n * p->c_disc_u;
		r->readers = later(r->readers, t);
	}
	for (; n && i < r->p->blocks.n; n--, i++) {
		r->left[i] = let ? t : 0;
		r->unmapped[i] = (uint8_t)let;
	}
	r->drop_free[r->over[LANE_DROP].n % UM_LANES_DROP] = t;
	track_add(&r->over[LANE_DROP], t);
}

/* --- order of requests -------------------------------------------------------------------------------------------- */

static enum lane lane_of(const struct um_action *a)
{
	if (a->kind == UM_ACTION_PREFETCH || a->kind == UM_ACTION_REFRESH)
		return LANE_IN;
	return a->kind == UM_ACTION_EVICT || a->kind == UM_ACTION_LEAVE_TO_DRIVER ? LANE_OUT : LANE_DROP;
}

/* Advances to the lane's next action, from `from` on or in the next iteration. */
static void seek(struct rehearsal *r, enum lane lane, uint32_t from)
{
	uint32_t n = (uint32_t)r->iteration->actions.n;

	if (r->over[lane].n >= ITERATIONS * (uint64_t)r->n[lane]) {
		r->next[lane] = n;
		return;
	}
	while (lane_of(&r->iteration->actions.at[from % n]) != lane)
		from++;
	r->next[lane] = from % n;
}

/* When the lane's next request can begin. */
static uint64_t begins(const struct rehearsal *r, enum lane lane)
{
	uint32_t k = r->over[lane].n, iteration = r->n[lane] ? k / r->n[lane] : 0, op;
	const struct um_action *a = &r->iteration->actions.at[r->next[lane]];
	uint64_t t;

	if (r->next[lane] >= r->iteration->actions.n)
		return NEVER;
	if (lane == LANE_IN) {
		t = later(r->in_turn, later(r->in_free[k % UM_LANES_IN], r->stream[k % UM_LANES_IN]));
		op = iteration * r->p->n_ops + a->at;
		if (op > r->op)
			return r->stuck ? t : NEVER;
		t = later(later(t, r->announced[op]),
			  track_at(r, &r->over[LANE_OUT], iteration, r->n[LANE_OUT], a->room));
		return later(t, track_at(r, &r->over[LANE_DROP], iteration, r->n[LANE_DROP], (int32_t)a->drops));
	}
	op = iteration * r->p->n_ops + a->at;
	if (op > r->op)
		return NEVER;
	t = lane == LANE_OUT ? r->out_free[k % r->n_out] : r->drop_free[k % UM_LANES_DROP];
	return later(later(t, r->done[op]), track_at(r, &r->over[LANE_IN], iteration, r->n[LANE_IN], a->room));
}

/* When the ranges of an access of the CPU have left; 0 for an op. */
static uint64_t left_at(const struct rehearsal *r, uint32_t op, uint32_t iteration)
{
	const struct left_for *f = r->left_for ? &r->left_for[op] : NULL;

	return f ? later(track_at(r, &r->over[LANE_OUT], iteration, r->n[LANE_OUT], f->outs),
			 track_at(r, &r->over[LANE_DROP], iteration, r->n[LANE_DROP], f->drops))
		 : 0;
}

/* The CPU's faults on blocks of its ranges that no eviction took off the device, from `t` on. Returns their end. */
static uint64_t evict_for_cpu(struct rehearsal *r, const struct um_sched_op *op, uint64_t t)
{
	const struct um_schedule *s = &r->plan->sched;

	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++) {
		const struct um_sched_use *use = &s->uses.at[u];
		uint64_t addr = s->slots.at[use->slot].place + use->off, end = addr + use->bytes;

		for (size_t i = um_compiled_plan_find(r->p, addr / UM_BLOCK_BYTES * UM_BLOCK_BYTES);
		     i < r->p->blocks.n && r->p->blocks.at[i] < end; i++) {
			if (r->left[i])
				continue;
			t = copy(r, &r->d2h, r->h2d, t + r->profile->c_cpuf, r->out_ns);
			r->left[i] = t;
			r->unmapped[i] = 0;
		}
	}
	return t;
}

/* Launches ops as long as the arrival of their blocks is known. The program waits for the ops before it uses their
 * results on the CPU. */
static void launch(struct rehearsal *r)
{
	for (; r->op < ITERATIONS * r->p->n_ops; r->op++) {
		uint32_t op = r->op % r->p->n_ops, iteration = r->op / r->p->n_ops;
		uint64_t t = later(track_at(r, &r->arrived, iteration, r->n[LANE_IN], r->iteration->gate[op]),
				   left_at(r, op, iteration));

		if (t == NEVER)
			return;
		t = later(r->done[r->op], t);
		if (r->left_for && r->plan->sched.ops.at[op].stream == UM_STREAM_CPU)
			t = evict_for_cpu(r, &r->plan->sched.ops.at[op], t);
		r->done[r->op + 1] = t + r->ns[op];
		t = track_at(r, &r->over[LANE_IN], iteration, r->n[LANE_IN], r->iteration->gate[op]);
		if (r->plan->sched.ops.at[op].stream == UM_STREAM_CPU)
			t = r->done[r->op + 1];
		r->announced[r->op + 1] = later(r->announced[r->op], t);
	}
}

/* Carries out the request that comes first in any lane; 0 if there is none. */
static int step(struct rehearsal *r)
{
	enum lane first = LANE_IN;
	uint64_t t = NEVER;

	for (enum lane lane = LANE_IN; lane < LANES; lane++) {
		uint64_t at = begins(r, lane);

		if (at < t) {
			t = at;
			first = lane;
		}
	}
	if (t == NEVER)
		return 0;

	const struct um_action *a = &r->iteration->actions.at[r->next[first]];

	if (first == LANE_IN)
		in(r, a, t);
	else if (first == LANE_OUT)
		evict(r, a, t);
	else
		drop(r, a, t);
	seek(r, first, r->next[first] + 1);
	return 1;
}

/* Time that page faults on blocks add to an op: their batches, and the copies that the batches wait for. */
static uint64_t faults_ns(const struct rehearsal *r, const struct um_compiled_plan_faults *f)
{
	const struct um_profile *p = r->profile;
	uint64_t batches = ((uint64_t)f->blocks + BATCH_BLOCKS - 1) / BATCH_BLOCKS * VISITS;

	return batches * p->c_batch + f->blocks * (VISITS * (p->c_blk + VISIT_FAULTS * p->c_fault) + p->c_evict) +
	       f->blocks * r->out_ns + f->copied * r->in_ns;
}

/* Times of ops, with accesses over the link and page faults. 0 or -ENOMEM. */
static int find_times(struct rehearsal *r)
{
	const struct um_schedule *s = &r->plan->sched;
	struct um_host_resident *ranges;

	if (um_host_resident_find(r->plan, &ranges))
		return -ENOMEM;
	for (size_t i = 0; i < s->ops.n; i++) {
		const struct um_sched_op *op = &s->ops.at[i];
		int remote = ranges && op->stream != UM_STREAM_CPU;

		r->ns[i] = later(op->ns, remote ? um_host_resident_ns(s, op, ranges, r->plan->remote) : 0);
	}
	free(ranges);
	for (size_t i = 0; i < r->iteration->faults.n; i++)
		r->ns[r->iteration->faults.at[i].op] += faults_ns(r, &r->iteration->faults.at[i]);
	return 0;
}

/* By block: numbers after its last eviction so far, in each lane. */
static void note_eviction(const struct rehearsal *r, const struct um_action *a, struct left_for *last,
			  struct left_for *n)
{
	size_t i = um_compiled_plan_find(r->p, a->addr), end = i + a->bytes / UM_BLOCK_BYTES;
	enum lane lane = lane_of(a);

	n->outs += lane == LANE_OUT;
	n->drops += lane == LANE_DROP;
	for (; lane != LANE_IN && i < end && i < r->p->blocks.n; i++)
		*(lane == LANE_OUT ? &last[i].outs : &last[i].drops) = lane == LANE_OUT ? n->outs : n->drops;
}

static void find_left(const struct rehearsal *r, const struct um_sched_op *op, const struct left_for *last,
		      struct left_for *out)
{
	const struct um_schedule *s = &r->plan->sched;

	for (uint32_t u = op->first_use; u < op->first_use + op->n_uses; u++) {
		const struct um_sched_use *use = &s->uses.at[u];
		uint64_t addr = s->slots.at[use->slot].place + use->off;

		for (size_t i = um_compiled_plan_find(r->p, addr / UM_BLOCK_BYTES * UM_BLOCK_BYTES);
		     i < r->p->blocks.n && r->p->blocks.at[i] < addr + use->bytes; i++) {
			out->outs = last[i].outs > out->outs ? last[i].outs : out->outs;
			out->drops = last[i].drops > out->drops ? last[i].drops : out->drops;
		}
	}
}

/* What accesses of the CPU wait for, of this iteration and the one before. 0 or -ENOMEM. */
static int find_all_left(struct rehearsal *r)
{
	const struct um_schedule *s = &r->plan->sched;
	const struct um_compiled_iteration *p = r->iteration;
	struct left_for *last = malloc((r->p->blocks.n + 1) * sizeof *last);

	r->left_for = malloc((s->ops.n + 1) * sizeof *r->left_for);
	if (!last || !r->left_for) {
		free(last);
		return -ENOMEM;
	}
	for (size_t i = 0; i < r->p->blocks.n; i++)
		last[i] = (struct left_for){INT32_MIN, INT32_MIN};
	for (int turn = 0; turn < 2; turn++) {
		struct left_for n = {turn ? 0 : -(int32_t)p->n_out, turn ? 0 : -(int32_t)p->n_drop};
		size_t a = 0;

		for (uint32_t op = 0; op < s->ops.n; op++) {
			for (; a < p->actions.n && p->actions.at[a].at <= op; a++)
				note_eviction(r, &p->actions.at[a], last, &n);
			r->left_for[op] = (struct left_for){INT32_MIN, INT32_MIN};
			if (s->ops.at[op].stream == UM_STREAM_CPU)
				find_left(r, &s->ops.at[op], last, &r->left_for[op]);
		}
	}
	free(last);
	return 0;
}

static int prepare(struct rehearsal *r)
{
	const struct um_profile *p = r->profile;
	double eta = p->eta > 0 ? p->eta : 1;

	r->in_ns = p->o_seg + (uint64_t)((double)UM_BLOCK_BYTES * 1e9 / (p->h2d * eta));
	r->out_ns = p->o_seg + (uint64_t)((double)UM_BLOCK_BYTES * 1e9 / (p->d2h * eta));
	r->n_out = um_lanes_out_workers_on(p, r->out_ns);
	r->n[LANE_IN] = r->iteration->n_in;
	r->n[LANE_OUT] = r->iteration->n_out;
	r->n[LANE_DROP] = r->iteration->n_drop;
	r->ns = calloc(r->p->n_ops + 1ull, sizeof *r->ns);
	r->left = calloc(r->p->blocks.n + 1, sizeof *r->left);
	r->unmapped = calloc(r->p->blocks.n + 1, 1);
	r->done = calloc(ITERATIONS * (size_t)r->p->n_ops + 1, sizeof *r->done);
	r->announced = calloc(ITERATIONS * (size_t)r->p->n_ops + 1, sizeof *r->announced);
	r->arrived.at = calloc(ITERATIONS * (size_t)r->iteration->n_in + 1, sizeof *r->arrived.at);
	for (enum lane lane = LANE_IN; lane < LANES; lane++) {
		r->over[lane].at = calloc(ITERATIONS * (size_t)r->n[lane] + 1, sizeof *r->over[lane].at);
		if (!r->over[lane].at)
			return -ENOMEM;
		seek(r, lane, 0);
	}
	if (um_schedule_uses_cpu(&r->plan->sched) && find_all_left(r))
		return -ENOMEM;
	return r->ns && r->left && r->unmapped && r->done && r->announced && r->arrived.at ? find_times(r) : -ENOMEM;
}

int um_rehearse(const struct um_compiled_plan *program, const struct um_plan *plan, const struct um_profile *profile,
		uint64_t *ns)
{
	struct rehearsal r = {.p = program,
			      .iteration = &program->iterations[UM_COMPILED_PLAN_STEADY],
			      .plan = plan,
			      .profile = profile};
	uint32_t end = ITERATIONS * program->n_ops;
	int err = prepare(&r);

	while (!err && r.op < end) {
		launch(&r);
		r.stuck = r.op < end && !step(&r);
	}
	if (!err)
		*ns = r.done[end] - r.done[end - program->n_ops];
	free(r.ns);
	free(r.left);
	free(r.unmapped);
	free(r.left_for);
	free(r.done);
	free(r.announced);
	free(r.arrived.at);
	for (enum lane lane = LANE_IN; lane < LANES; lane++)
		free(r.over[lane].at);
	return err;
}
