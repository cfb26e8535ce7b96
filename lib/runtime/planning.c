/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/planning.h"

#include "base/clock.h"
#include "base/debug.h"
#include "learn/unroll.h"

#include <errno.h>

/* Limit of planning on a real device, in addition to UMADVISE_PLAN_TIME. In simulated time equal runs must give equal
 * plans: only the recorder's limits bound the planning. */
#define SPREAD 32 /* tensors stay where they are if their memory exceeds what they need at once by up to this share */
#define MOST_MS 60000u

/* In simulated time, in place of processor time. */
#define NS_PER_OP 25000u

/* Iterations for which a plan waits until its tensors are where they were when it was made: buffers that take turns
 * come back. After that it is compiled again. */
#define MOST_MISFITS 3

/* --- the schedule ------------------------------------------------------------------------------------------------- */

/* 1: a tensor that dies in the next iteration while its successor is alive. Where it lies now, between other tensors,
 * its successors will not. */
static int is_passed_on(const struct um_schedule *s, uint32_t i)
{
	const struct um_slot *t = &s->slots.at[i];

	return t->birth < 0 && t->death >= 0 && t->carry < s->slots.n && t->carry != i && t->place % UM_BLOCK_BYTES;
}

/* Sets bound_addr to the current addresses of the tensors. Slots that are freed and born again in every iteration are
 * placed anew; the new address counts from the next birth on. */
static void set_places(struct um_schedule *s)
{
	for (uint32_t i = 0; i < s->slots.n; i++) {
		struct um_slot *t = &s->slots.at[i];

		t->bound_addr = t->place;
		if (!t->bound.v || !((t->birth >= 0 && t->death <= t->birth) || is_passed_on(s, i)))
			continue;
		t->flags &= ~(unsigned)UM_SLOT_FIXED;
		t->place = UINT64_MAX;
	}
}

/* Joins several iterations into one if buffers rotate among places that differ. 0 or -ENOMEM. */
static int unroll(struct um_schedule *s, uint32_t *n_iterations)
{
	struct um_schedule all;
	int err;

	*n_iterations = um_unroll_iterations(s);
	if (*n_iterations == 1)
		return 0;
	um_schedule_init(&all);
	err = um_unroll_build(s, *n_iterations, &all);
	if (err)
		return err;
	um_schedule_fini(s);
	*s = all;
	return 0;
}

int um_planning_prepare(struct um_schedule *s, uint32_t *n_iterations)
{
	set_places(s);
	return unroll(s, n_iterations);
}

static int cmp_id(const void *a, const void *b)
{
	const struct um_tensor_id *x = a, *y = b;

	return x->v < y->v ? -1 : x->v > y->v;
}

/* Adds live tensors that the iteration does not use, as slots with a fixed address. */
static int add_unused_tensors(const struct um_plan_host *h, struct um_schedule *s)
{
	UM_VEC(struct um_tensor_id) known = {0};
	int err = um_vec_reserve(&known, s->slots.n + 1);

	for (size_t i = 0; i < s->slots.n && !err; i++)
		if (s->slots.at[i].bound.v)
			err = um_vec_push(&known, s->slots.at[i].bound);
	if (known.n)
		qsort(known.at, known.n, sizeof *known.at, cmp_id);
	for (struct um_tree_node *n = um_tree_first(&h->tensors->registry.live); n && !err; n = um_tree_next(n)) {
		const struct um_tensor *t = um_tree_entry(n, struct um_tensor, node);

		if (t->flags & (UM_TENSOR_ADOPTED | UM_TENSOR_UNMANAGED) ||
		    (known.n && bsearch(&t->id, known.at, known.n, sizeof t->id, cmp_id)))
			continue;
		struct um_slot slot = {.bytes = t->bytes,
				       .birth = -1,
				       .death = -1,
				       .carry = (uint32_t)s->slots.n,
				       .flags = UM_SLOT_FIXED,
				       .role = t->role,
				       .place = t->addr,
				       .bound = t->id,
				       .bound_addr = t->addr};

		err = um_vec_push(&s->slots, slot);
	}
	um_vec_fini(&known);
	return err;
}

/* --- the job ------------------------------------------------------------------------------------------------------ */

static uint64_t wall_ms(void)
{
	return um_clock_ns(CLOCK_MONOTONIC) / 1000000;
}

/* Where the limit of host memory matters. 0 or -ENOMEM. */
static int take_on_host(const struct um_plan_host *h, struct um_plan_device *d)
{
	const struct um_chosen_device *c = h->device;
	const struct um_tree_node *n = NULL;
	int err = 0;

	if (c->on_host && h->tensors->bytes_live_peak > c->host_budget)
		n = um_tree_first(&c->on_host->by_addr);
	for (; n && !err; n = um_tree_next(n))
		err = um_vec_push(&d->on_host, n->a);
	return err;
}

/* Does all memory that tensors use or have used fit, and is it hardly more than they needed at once? */
static int is_dense(const struct um_tensors *t, uint64_t budget)
{
	uint64_t used = um_tensors_count_used(t) * UM_BLOCK_BYTES;

	return used <= budget && used <= t->bytes_live_peak + t->bytes_live_peak / SPREAD;
}

static int take_device(const struct um_plan_host *h, struct um_plan_device *d)
{
	const struct um_chosen_device *c = h->device;
	const struct um_arena_pool *pool = &h->tensors->pool;
	int err = take_on_host(h, d);

	d->profile = c->profile;
	d->budget = c->budget;
	d->host_budget = c->host_budget;
	d->larger = c->larger;
	d->fits = is_dense(h->tensors, c->budget);
	d->can_discard = c->gpu->caps.discard;
	d->evict = (enum um_evict_policy)h->options->pub.evict;
	for (size_t i = 0; i < pool->regions.n && !err; i++) {
		const struct um_plan_room room = {pool->regions.at[i].addr, pool->regions.at[i].bytes};

		err = um_vec_push(&d->own, room);
		if (!err && pool->regions.at[i].heap == UM_ARENA_POOL_MAIN)
			err = um_vec_push(&d->rooms, room);
	}
	return err;
}

static int fill_job(const struct um_plan_host *h, struct um_schedule *s, struct um_plan_job *j)
{
	int err = add_unused_tensors(h, s);

	if (!err)
		err = take_device(h, &j->device);
	if (err)
		return err;
	j->sched = *s;
	um_schedule_init(s);
	j->strategy = um_strategy_name(h->options->strategy);
	j->plan_ms = h->options->pub.plan_ms;
	j->most_ms = h->device->real ? MOST_MS : 0;
	j->wall_ms = h->wall_ms ? h->wall_ms : wall_ms;
	return 0;
}

static int has_thread(const struct um_planning *p)
{
	const struct um_options *o = p->host.options;

	return !p->no_thread && (o->pub.plan_thread == UMADV_PLAN_THREAD_ON ||
				 (o->pub.plan_thread == UMADV_PLAN_THREAD_AUTO && p->host.device->real));
}

/* Starts the thread if there is to be one. Without it, plans are made by the caller. */
static void start_thread(struct um_planning *p)
{
	if (p->thread || !has_thread(p))
		return;
	p->thread = um_plan_thread_new();
	p->no_thread = !p->thread;
}

static uint64_t now_ns(const struct um_planning *p)
{
	struct um_gpu *gpu = p->host.device->gpu;

	return gpu->caps.virtual_time ? gpu->api->now(gpu) : um_clock_ns(CLOCK_MONOTONIC);
}

static void spend(struct um_planning *p, uint64_t ops, uint64_t cpu_ns)
{
	int is_virtual = p->host.device->gpu->caps.virtual_time;

	p->cpu_ns += is_virtual ? 0 : cpu_ns;
	um_plan_leash_spend(&p->leash, now_ns(p), is_virtual ? NS_PER_OP * ops : cpu_ns);
}

/* Adds the memory that the plan needs. 0 or -ENOMEM. */
static int grow(struct um_planning *p, struct um_plan_job *j)
{
	uint64_t addr;

	j->err = um_arena_pool_grow(&p->host.tensors->pool, j->grow, UM_ARENA_POOL_MAIN, &addr);
	if (!j->err)
		j->err = um_plan_job_move(j, addr);
	return j->err;
}

static void become_ready(struct um_planning *p)
{
	const struct um_plan_job *j = p->job;

	p->state = UM_PLANNING_READY;
	p->misfits = p->held = 0;
	p->failed_key = j->err && j->err != -ENOMEM ? p->order.key : 0;
	if (j->err == -ETIMEDOUT)
		p->late_ops = j->sched.ops.n;
}

/* --- orders ------------------------------------------------------------------------------------------------------- */

int um_planning_may_make(struct um_planning *p, size_t ops)
{
	if (p->host.device->starved || p->state == UM_PLANNING_MAKES || p->cancelled ||
	    (p->late_ops && ops >= p->late_ops))
		return 0;
	return um_plan_leash_allows(&p->leash, now_ns(p));
}

int um_planning_may_succeed(const struct um_planning *p, uint64_t key)
{
	return key != p->failed_key || !p->leash.debt_ns;
}

static int may_relaunch(const struct um_schedule *s)
{
	size_t i = 0;

	while (i < s->ops.n && !s->ops.at[i].n_relaunch)
		i++;
	return i < s->ops.n;
}

/* 0, or -ENOMEM and the job is empty. */
static int take_order(struct um_planning *p, struct um_plan_job *j, struct um_schedule *s,
		      const struct um_planning_order *order)
{
	int err = fill_job(&p->host, s, j);

	if (err) {
		um_plan_job_fini(j);
		return err;
	}
	j->relaunches = p->relaunches && order->n_iterations == 1 && may_relaunch(&j->sched);
	p->job = j;
	p->order = *order;
	return 0;
}

int um_planning_make_here(struct um_planning *p, struct um_schedule *s, const struct um_planning_order *order)
{
	uint64_t begin = um_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct um_plan_job *j = &p->own;
	int err;

	um_planning_drop(p);
	err = take_order(p, j, s, order);
	if (err)
		return err;
	err = um_plan_job_search(j);
	if (!err && j->grow)
		err = grow(p, j);
	if (!err)
		um_plan_job_compile(j);
	spend(p, j->sched.ops.n, um_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin);
	become_ready(p);
	p->fresh = 1;
	return 0;
}

int um_planning_make(struct um_planning *p, struct um_schedule *s, const struct um_planning_order *order)
{
	int err;

	start_thread(p);
	if (!p->thread)
		return um_planning_make_here(p, s, order);
	um_planning_drop(p);
	um_assert(p->state == UM_PLANNING_IDLE && !p->cancelled);
	err = take_order(p, &p->thread->job, s, order);
	if (err)
		return err;
	p->state = UM_PLANNING_MAKES;
	p->fresh = 0;
	um_plan_thread_run(p->thread, UM_PLAN_SEARCH);
	return 0;
}

enum um_planning_state um_planning_poll(struct um_planning *p)
{
	struct um_plan_job *j;

	if ((p->state != UM_PLANNING_MAKES && !p->cancelled) || !um_plan_thread_is_idle(p->thread))
		return p->state;
	j = &p->thread->job;
	spend(p, j->sched.ops.n, p->thread->cpu_ns);
	if (p->cancelled) {
		p->cancelled = 0;
		um_plan_job_fini(j);
	} else if (!j->err && j->grow && !grow(p, j)) {
		um_plan_thread_run(p->thread, UM_PLAN_COMPILE);
	} else {
		become_ready(p);
	}
	return p->state;
}

void um_planning_done(struct um_planning *p)
{
	um_plan_job_fini(p->job);
	p->state = UM_PLANNING_IDLE;
}

void um_planning_drop(struct um_planning *p)
{
	um_planning_poll(p);
	if (p->state == UM_PLANNING_MAKES) {
		atomic_store_explicit(&p->job->cancelled, 1, memory_order_relaxed);
		p->cancelled = 1;
	} else if (p->state == UM_PLANNING_READY) {
		p->unused += !p->job->err;
		um_plan_job_fini(p->job);
	}
	p->state = UM_PLANNING_IDLE;
}

/* --- the plan ----------------------------------------------------------------------------------------------------- */

/* Are the tensors that stay where they are at the places that the plan has for them? */
static int is_in_place(const struct um_schedule *s, const struct um_schedule *latest)
{
	for (size_t i = 0; i < latest->slots.n; i++)
		if (s->slots.at[i].bound.v && s->slots.at[i].flags & UM_SLOT_FIXED &&
		    !(s->slots.at[i].flags & UM_SLOT_SUPPLIED) &&
		    s->slots.at[i].bound_addr != latest->slots.at[i].place)
			return 0;
	return 1;
}

int um_planning_bind_slot(struct um_schedule *s, uint32_t slot, struct um_tensor_id id, uint64_t addr)
{
	struct um_slot *t = &s->slots.at[slot];
	uint64_t was = um_compiled_plan_has_twin(s, slot) ? t->bound_addr : UINT64_MAX, is;

	t->bound = id;
	t->bound_addr = addr;
	is = um_compiled_plan_has_twin(s, slot) ? addr : UINT64_MAX;
	return is != was;
}

/* Would the program hold if the slots were bound to these tensors? */
static int holds(struct um_schedule *s, const struct um_schedule *latest)
{
	int other = 0;

	for (uint32_t i = 0; i < latest->slots.n && !other; i++) {
		struct um_slot *t = &s->slots.at[i];
		const struct um_tensor_id id = t->bound;
		uint64_t addr = t->bound_addr;

		other = um_planning_bind_slot(s, i, latest->slots.at[i].bound, latest->slots.at[i].place);
		t->bound = id;
		t->bound_addr = addr;
	}
	return !other;
}

int um_planning_compile_again(struct um_planning *p, const struct um_plan *plan, struct um_compiled_plan *program)
{
	struct um_plan_device d = {.rooms = {0}};
	int err = take_device(&p->host, &d);

	if (!err)
		err = um_plan_compile_again(&d, plan, program);
	um_plan_device_fini(&d);
	return err;
}

int um_planning_bind(struct um_planning *p, const struct um_schedule *latest)
{
	struct um_plan_job *j = p->job;
	struct um_schedule *s = &j->plan.sched;
	unsigned most = p->order.n_iterations > MOST_MISFITS ? p->order.n_iterations : MOST_MISFITS;
	int other = 0, err;

	if ((!is_in_place(s, latest) || !holds(s, latest)) && p->misfits++ < most)
		return 0;
	for (uint32_t i = 0; i < latest->slots.n; i++)
		other |= um_planning_bind_slot(s, i, latest->slots.at[i].bound, latest->slots.at[i].place);
	err = other ? um_planning_compile_again(p, &j->plan, &j->program) : 0;
	return err ? err : 1;
}

/* --- open, close -------------------------------------------------------------------------------------------------- */

void um_planning_init(struct um_planning *p, const struct um_plan_host *host)
{
	memset(p, 0, sizeof *p);
	p->host = *host;
	um_plan_job_init(&p->own);
}

int um_planning_close(struct um_planning *p)
{
	int err = um_plan_thread_free(p->thread);

	p->thread = NULL;
	p->no_thread = 1;
	p->cancelled = 0;
	p->state = UM_PLANNING_IDLE;
	um_plan_job_fini(&p->own);
	return err;
}

void um_planning_fini(struct um_planning *p)
{
	um_planning_close(p);
}
