/* SPDX-License-Identifier: Apache-2.0
 *
 * The executor over the null device: threads, queues, counts, refusals, leaving and taking up again.
 */
#include "gpu/null.h"
#include "sim/sim.h"
#include "replay/executor_state.h"
#include "replay/evict_policy.h"

#include "plan_make.h"

#include <string.h>
#include <time.h>

#define BASE (16 * MIB2)
#define SLOTS(...) ((const int[]){__VA_ARGS__, -1})

static const struct um_app_streams streams = {.n = 1, .live = 1}; /* the default one */
static int allow = 1;

static int may_discard(void *user, uint64_t addr, uint64_t bytes, enum um_executor_waits waits)
{
	(void)waits;
	(void)user;
	(void)addr;
	(void)bytes;
	return allow;
}

/* Until the workers have made every call that was asked for: they are real threads here. */
static void wait_for_calls(struct um_executor *ex)
{
	struct um_executor_counts n;
	struct timespec ts = {0, 1000000};

	do {
		nanosleep(&ts, NULL);
		um_executor_counts(ex, &n);
	} while (n.issued + n.refused < um_executor_queued(ex));
}

static void make_turns(struct um_plan *plan)
{
	um_plan_init(plan);
	make_slot(plan, BASE, 2 * MIB2, -1, -1);
	make_slot(plan, BASE + 2 * MIB2, 2 * MIB2, -1, -1);
	plan->sched.slots.at[0].bound.v = 1;
	plan->sched.slots.at[1].bound.v = 2;
	for (int i = 0; i < 2; i++)
		plan->sched.slots.at[i].bound_addr = plan->sched.slots.at[i].place;
	make_op(plan, "a", SLOTS(0), UM_UPDATE);
	make_op(plan, "b", SLOTS(1), UM_UPDATE);
	plan->sched.uses.at[0].dead_after = 1;
	make_hint(plan, UM_HINT_EVICT, 0, 1, 0, 2 * MIB2);
	make_hint(plan, UM_HINT_PREFETCH, 0, 0, 0, 2 * MIB2);
	make_hint(plan, UM_HINT_DISCARD, 1, 0, 0, 2 * MIB2);
	make_hint(plan, UM_HINT_PREFETCH, 1, 1, 0, 2 * MIB2);
}

static void run(unsigned fail_nth)
{
	struct um_executor_host host = {.may_discard = may_discard, .streams = &streams};
	struct um_executor_range used = {BASE, 4 * MIB2};
	struct um_null_counts c;
	struct um_executor *ex;
	struct um_compiled_plan p;
	struct um_cursor cur;
	struct um_plan plan;
	struct um_gpu *gpu;

	make_turns(&plan);
	um_compiled_plan_init(&p);
	um_cursor_init(&cur);
	if (um_null_open(&gpu, 1ull << 30, fail_nth) || um_compiled_plan_build(&plan, 2, &p) ||
	    um_cursor_follow(&cur, &plan.sched))
		tap_bail("set-up");
	ok(um_executor_open(&ex, gpu, &host) == 0, "the executor opens");
	ok(!um_executor_active(ex), "follows nothing yet");
	for (int round = 0; round < 2; round++) {
		ok(um_executor_adopt(ex, &p, 2, &used, 1, &cur) == 0 && um_executor_active(ex), "takes a program up");
		for (int i = 0; i < 100; i++) {
			if (i)
				um_executor_begin(ex, &used, 1);
			if (um_executor_op(ex, 0, 0, &cur, NULL, 0) || um_executor_op(ex, 1, 0, &cur, NULL, 0))
				tap_bail("queues full after a few requests");
		}
		wait_for_calls(ex);
		um_executor_claim(ex, BASE, 4 * MIB2);
		um_executor_leave(ex);
		ok(!um_executor_active(ex), "the executor is not active after it left");
	}
	um_executor_close(ex);
	ex = NULL;
	um_null_counts(gpu, &c);
	ok(c.prefetches <= 2 * 201 && c.prefetches > 0, "%llu prefetches, at most one per in and one to start with",
	   (unsigned long long)c.prefetches);
	if (allow)
		ok(c.discards > 0, "dead memory is discarded (%llu)", (unsigned long long)c.discards);
	else
		is_u64(c.discards, 0, "what may not be discarded is sent away with a copy");
	ok(c.evicts > 0, "the executor issues evictions (%llu)", (unsigned long long)c.evicts);
	gpu->api->close(gpu);
	um_cursor_fini(&cur);
	um_compiled_plan_fini(&p);
	um_plan_fini(&plan);
}

/* The plan of make_turns, compiled for two blocks, over the null device. */
struct scene {
	struct um_gpu *gpu;
	struct um_plan plan;
	struct um_compiled_plan program;
	struct um_cursor cursor;
	struct um_executor *ex;
};

static void scene_open(struct scene *s, const struct um_executor_host *host)
{
	make_turns(&s->plan);
	um_compiled_plan_init(&s->program);
	um_cursor_init(&s->cursor);
	if (um_null_open(&s->gpu, 1ull << 30, 0) || um_compiled_plan_build(&s->plan, 2, &s->program) ||
	    um_cursor_follow(&s->cursor, &s->plan.sched) || um_executor_open(&s->ex, s->gpu, host))
		tap_bail("set-up");
}

static void scene_close(struct scene *s)
{
	um_executor_close(s->ex);
	s->gpu->api->close(s->gpu);
	um_cursor_fini(&s->cursor);
	um_compiled_plan_fini(&s->program);
	um_plan_fini(&s->plan);
}

static void lie(struct um_cursor *c, int slot, uint64_t addr)
{
	c->n_moved -= c->slots[slot].off != 0;
	c->slots[slot].addr = addr;
	c->slots[slot].off = addr - c->sched->slots.at[slot].place;
	c->n_moved += c->slots[slot].off != 0;
}

/* A slot that lies elsewhere than planned: an in covers its blocks, an out only whole ones. */
static void moved(void)
{
	struct um_executor_host host = {.may_discard = may_discard, .streams = &streams};
	struct um_executor_counts n;
	struct scene s;

	scene_open(&s, &host);
	lie(&s.cursor, 0, 64 * MIB2 + MIB2 / 2);
	lie(&s.cursor, 1, UINT64_MAX); /* no tensor */
	um_executor_adopt(s.ex, &s.program, 1000, NULL, 0, &s.cursor);
	um_executor_op(s.ex, 0, 0, &s.cursor, NULL, 0);
	um_executor_op(s.ex, 1, 0, &s.cursor, NULL, 0);
	allow = 1;
	um_executor_claim(s.ex, BASE, 4 * MIB2);
	wait_for_calls(s.ex);
	um_executor_counts(s.ex, &n);
	is_u64(n.prefetch_bytes, 3 * MIB2, "in: the prefetch covers the three blocks that the slot touches");
	is_u64(n.discard_bytes, MIB2, "out: the one block that it covers as a whole");
	is_u64(n.evict_bytes, 0, "a slot without a tensor has nothing to evict");
	scene_close(&s);
}

/* Outs of one block each of such a slot. */
static void moved_in_blocks(void)
{
	struct um_executor_host host = {.may_discard = may_discard, .streams = &streams};
	struct um_action out = {.kind = UM_ACTION_EVICT, .slot = 0, .addr = BASE, .bytes = MIB2};
	struct um_executor_range first, second;
	struct scene s;

	scene_open(&s, &host);
	lie(&s.cursor, 0, 64 * MIB2 + MIB2 / 2);
	first = um_executor_locate(&out, &s.cursor);
	out.addr += MIB2;
	second = um_executor_locate(&out, &s.cursor);
	is_u64(first.bytes, 0, "the first of two outs has no whole block of the slot");
	is_u64(second.addr, 65 * MIB2, "the second out has the block that both overlap");
	is_u64(second.bytes, MIB2, "the second out has no other block");
	scene_close(&s);
}

/* The slot is adopted memory that ends in the middle of its last block. */
static void cut(void *user, uint64_t *addr, uint64_t *bytes, struct um_executor_range *whole)
{
	uint64_t end = *(uint64_t *)user;

	*whole = (struct um_executor_range){BASE, end - BASE};
	if (*addr + *bytes > end)
		*bytes = end > *addr ? end - *addr : 0;
}

static void ends(void)
{
	uint64_t end = BASE + 3 * MIB2 + MIB2 / 2;
	struct um_executor_host host = {.may_discard = may_discard, .streams = &streams, .clip = cut, .user = &end};
	struct um_executor_range used = {BASE, 4 * MIB2};
	struct um_executor_counts n;
	struct scene s;

	scene_open(&s, &host);
	allow = 0;
	um_executor_adopt(s.ex, &s.program, 2, &used, 1, &s.cursor);
	um_executor_op(s.ex, 0, 0, &s.cursor, NULL, 0);
	um_executor_op(s.ex, 1, 0, &s.cursor, NULL, 0);
	wait_for_calls(s.ex);
	um_executor_counts(s.ex, &n);
	allow = 1;
	is_u64(n.prefetch_bytes, 4 * MIB2 - MIB2 / 2, "in: the prefetch of the last block ends with the memory");
	is_u64(n.evict_bytes, 6 * MIB2 - MIB2 / 2, "out: so, too, and what is not asked for at once");
	is_u64(n.refused, 0, "nothing is refused");
	scene_close(&s);
}

/* Behind the program's four blocks lie two more that nothing of it asks for, in which something lives until the second
 * iteration. */
static void outside(void)
{
	struct um_executor_host host = {.may_discard = may_discard, .streams = &streams};
	struct um_executor_range used = {BASE, 6 * MIB2};
	struct um_executor_counts n, before = {0};
	struct scene s;
	uint64_t gone[5] = {0};

	scene_open(&s, &host);
	allow = 0;
	um_executor_adopt(s.ex, &s.program, 2, &used, 1, &s.cursor);
	for (int i = 0; i < 5; i++) {
		allow = i == 2; /* where the third one begins it is dead */
		if (i)
			um_executor_begin(s.ex, &used, 1);
		allow = 0;
		um_executor_op(s.ex, 0, 0, &s.cursor, NULL, 0);
		um_executor_op(s.ex, 1, 0, &s.cursor, NULL, 0);
		wait_for_calls(s.ex);
		um_executor_counts(s.ex, &n);
		gone[i] = n.discard_bytes - before.discard_bytes;
		before = n;
	}
	allow = 1;
	is_u64(gone[1], 0, "outside the program: what is alive stays");
	is_u64(gone[2], 2 * MIB2, "the block is evicted after its death in the second iteration");
	is_u64(gone[3] + gone[4], 0, "later nothing is looked for");
	scene_close(&s);
}

static enum um_residency resides_until(void *user, uint64_t addr, uint64_t *last)
{
	*last = 1;
	return addr < *(uint64_t *)user ? UM_RESIDENT : UM_NOT_RESIDENT;
}

/* Blocks 4 and 5 are alive, the program does not use them, and only what lies before `end` may be on the device. With
 * `room` for so many blocks more than the program needs. Returns the number of blocks evicted at once. */
static uint64_t evicted_at_once(uint64_t end, uint64_t room)
{
	struct um_executor_host host = {
		.may_discard = may_discard, .residency = resides_until, .streams = &streams, .user = &end};
	struct um_executor_range used = {BASE, 6 * MIB2};
	struct um_executor_counts n;
	struct scene s;

	scene_open(&s, &host);
	allow = 0;
	um_executor_adopt(s.ex, &s.program, s.program.peak + room, &used, 1, &s.cursor);
	wait_for_calls(s.ex);
	um_executor_counts(s.ex, &n);
	allow = 1;
	scene_close(&s);
	return n.evict_bytes / MIB2;
}

static void stays(void)
{
	uint64_t n = evicted_at_once(UINT64_MAX, 0);

	ok(n >= 2, "a program without room to spare evicts what it does not use (%llu blocks)", (unsigned long long)n);
	is_u64(evicted_at_once(UINT64_MAX, 1), n - 1, "a block stays if the program leaves room for one");
	is_u64(evicted_at_once(BASE + 5 * MIB2, 0), n - 1, "a block that is not on the device is not evicted");
}

/* Blocks 2 and 3 take turns beside 0 and 1, and the driver is left to evict them. `at[i]` asks of iteration i, in
 * blocks, what was asked for and what was taken home; in iteration `astray` and from then on slot 1 lies elsewhere,
 * before iteration `anew` the program was left. */
static void leaves_to_driver(uint64_t (*at)[2], int n, int astray, int anew)
{
	struct um_executor_host host = {.may_discard = may_discard, .streams = &streams};
	const struct um_profile *gh200 = um_profile_find("gh200");
	struct um_executor_counts c, before = {0};
	struct scene s = {0};

	um_plan_init(&s.plan);
	make_slot(&s.plan, BASE, 2 * MIB2, -1, -1);
	make_slot(&s.plan, BASE + 2 * MIB2, MIB2, -1, -1);
	make_slot(&s.plan, BASE + 3 * MIB2, MIB2, -1, -1);
	for (size_t i = 0; i < 3; i++) {
		s.plan.sched.slots.at[i].bound.v = i + 1;
		s.plan.sched.slots.at[i].bound_addr = s.plan.sched.slots.at[i].place;
	}
	make_op(&s.plan, "a", SLOTS(0, 1), UM_UPDATE);
	make_op(&s.plan, "b", SLOTS(0, 2), UM_UPDATE);
	make_hint(&s.plan, UM_HINT_PREFETCH, 0, 0, 0, 2 * MIB2);
	make_hint(&s.plan, UM_HINT_EVICT, 0, 2, 0, MIB2);
	make_hint(&s.plan, UM_HINT_PREFETCH, 0, 1, 0, MIB2);
	make_hint(&s.plan, UM_HINT_EVICT, 1, 1, 0, MIB2);
	make_hint(&s.plan, UM_HINT_PREFETCH, 1, 2, 0, MIB2);
	um_compiled_plan_init(&s.program);
	um_cursor_init(&s.cursor);
	if (um_null_open(&s.gpu, 1ull << 30, 0) || um_compiled_plan_build(&s.plan, 3, &s.program) ||
	    um_evict_policy_choose(&s.program, &s.plan, gh200, 3, UM_EVICT_DRIVER) ||
	    um_cursor_follow(&s.cursor, &s.plan.sched) || um_executor_open(&s.ex, s.gpu, &host))
		tap_bail("set-up");
	um_executor_adopt(s.ex, &s.program, 1000, NULL, 0, &s.cursor);
	for (int i = 0; i < n; i++) {
		if (i == anew) {
			um_executor_leave(s.ex);
			um_executor_adopt(s.ex, &s.program, 1000, NULL, 0, &s.cursor);
		} else if (i) {
			um_executor_begin(s.ex, NULL, 0);
		}
		if (i == astray)
			lie(&s.cursor, 1, 64 * MIB2);
		if (um_executor_op(s.ex, 0, 0, &s.cursor, NULL, 0) || um_executor_op(s.ex, 1, 0, &s.cursor, NULL, 0))
			tap_bail("queues full after a few requests");
		wait_for_calls(s.ex);
		um_executor_counts(s.ex, &c);
		at[i][0] = (c.prefetch_bytes - before.prefetch_bytes) / MIB2;
		at[i][1] = (c.evict_bytes - before.evict_bytes) / MIB2;
		before = c;
	}
	scene_close(&s);
}

static void driver_evicts(void)
{
	uint64_t at[8][2];

	leaves_to_driver(at, 6, -1, -1);
	is_u64(at[1][0], 2, "two blocks come, before any iteration is steady");
	is_u64(at[1][1], 2, "two blocks are evicted before any iteration is steady");
	is_u64(at[2][0], 6, "the first steady iteration prefetches twice what stays");
	is_u64(at[2][1], 2, "evictions still prefetch to the host");
	for (int i = 3; i < 6; i++) {
		is_u64(at[i][0], 6, "iteration %d: two blocks come, two are asked for again, twice", i);
		is_u64(at[i][1], 0, "nothing is taken home");
	}
	leaves_to_driver(at, 8, 5, -1);
	is_u64(at[4][1], 0, "nothing is, until a tensor lies elsewhere");
	for (int i = 5; i < 8; i++)
		ok(at[i][0] <= 6 && at[i][1] > 0, "iteration %d: then it is again", i);
	is_u64(at[7][0], 2, "no block is prefetched twice");
	leaves_to_driver(at, 8, -1, 4);
	is_u64(at[3][1], 0, "nothing is taken home, until the program is left");
	for (int i = 4; i < 7; i++)
		ok(at[i][1] > 0, "iteration %d: taken up anew, it takes home what leaves", i);
	is_u64(at[7][1], 0, "evictions are left to the driver from the fourth iteration on");
}

/* On the simulated GPU the app is ahead of the device: what was asked for is still to come when memory changes hands.
 */
static void claims(void)
{
	struct um_sim_options so = {.profile = um_profile_find("v100"), .capacity = 64 * MIB2};
	struct um_executor_host host = {.may_discard = may_discard, .streams = &streams};
	struct um_sim_kernel kernel = {.ns = 5000000};
	struct um_executor_counts n;
	struct um_executor *ex;
	struct um_compiled_plan p;
	struct um_cursor cur;
	struct um_plan plan;
	struct um_gpu *gpu;

	void *mem;

	make_turns(&plan);
	um_compiled_plan_init(&p);
	um_cursor_init(&cur);
	if (um_sim_open(&gpu, &so) || gpu->api->cudaMallocManaged(gpu, &mem, 4 * MIB2, 1))
		tap_bail("set-up");
	for (uint64_t i = 0; i < 2; i++)
		plan.sched.slots.at[i].place = plan.sched.slots.at[i].bound_addr = (uintptr_t)mem + i * 2 * MIB2;
	if (um_compiled_plan_build(&plan, 2, &p) || um_cursor_follow(&cur, &plan.sched) ||
	    um_executor_open(&ex, gpu, &host))
		tap_bail("set-up");
	um_executor_adopt(ex, &p, 1000, NULL, 0, &cur);
	um_executor_op(ex, 0, 0, &cur, NULL, 0);
	um_sim_run(gpu, NULL, &kernel);
	um_executor_op(ex, 1, 0, &cur, NULL, 0); /* slot 0 is discarded once the kernel has run */
	um_executor_claim(ex, (uintptr_t)mem + 2 * MIB2, 2 * MIB2);
	um_executor_counts(ex, &n);
	is_u64(n.discard_bytes, 0, "memory that nothing was asked for changes hands at once");
	ok(um_sim_now(gpu) < kernel.ns, "the app stays ahead");
	um_executor_claim(ex, (uintptr_t)mem + MIB2 + 512, 512);
	um_executor_counts(ex, &n);
	is_u64(n.discard_bytes, 2 * MIB2, "memory that is to be discarded changes hands behind that");
	ok(um_sim_now(gpu) >= kernel.ns, "the copy completes after the kernel");
	um_executor_close(ex);
	gpu->api->close(gpu);
	um_cursor_fini(&cur);
	um_compiled_plan_fini(&p);
	um_plan_fini(&plan);
}

/* The announced op, of the CPU or not, waits as before its launch. */
static int waits(struct um_executor *ex)
{
	struct um_executor_wait w;
	int err;

	if (!um_executor_take_wait(ex, NULL, &w))
		return 0;
	err = um_executor_wait(&w);
	if (err)
		tap_bail("a wait failed");
	return 1;
}

/* Two slots of two blocks, on the simulated GPU. Op 0 runs for 5 ms; before op 1, slot 0 is discarded and slot 1 is
 * prefetched into its memory. */
struct pair {
	struct um_gpu *gpu;
	struct um_executor *ex;
	struct um_compiled_plan program;
	struct um_cursor cursor;
	struct um_plan plan;
	uint64_t addr;
};

#define KERNEL_NS 5000000

static void pair_open(struct pair *p)
{
	struct um_sim_options so = {.profile = um_profile_find("v100"), .capacity = 64 * MIB2};
	struct um_executor_host host = {.may_discard = may_discard, .streams = &streams};
	void *mem;

	memset(p, 0, sizeof *p);
	make_turns(&p->plan);
	um_compiled_plan_init(&p->program);
	um_cursor_init(&p->cursor);
	if (um_sim_open(&p->gpu, &so) || p->gpu->api->cudaMallocManaged(p->gpu, &mem, 4 * MIB2, 1))
		tap_bail("set-up");
	p->addr = (uintptr_t)mem;
	for (uint64_t i = 0; i < 2; i++)
		p->plan.sched.slots.at[i].place = p->plan.sched.slots.at[i].bound_addr = p->addr + i * 2 * MIB2;
	if (um_compiled_plan_build(&p->plan, 2, &p->program) || um_cursor_follow(&p->cursor, &p->plan.sched) ||
	    um_executor_open(&p->ex, p->gpu, &host))
		tap_bail("set-up");
	allow = 2; /* of live tensors */
	um_executor_adopt(p->ex, &p->program, 1000, NULL, 0, &p->cursor);
	um_executor_op(p->ex, 0, 0, &p->cursor, NULL, 0);
	waits(p->ex);
	um_sim_run(p->gpu, NULL, &(struct um_sim_kernel){.ns = KERNEL_NS});
	um_executor_op(p->ex, 1, 0, &p->cursor, NULL, 0);
}

static void pair_close(struct pair *p)
{
	allow = 1;
	um_executor_close(p->ex);
	p->gpu->api->close(p->gpu);
	um_cursor_fini(&p->cursor);
	um_compiled_plan_fini(&p->program);
	um_plan_fini(&p->plan);
}

static int is_ahead(const struct pair *p)
{
	return um_sim_now(p->gpu) < KERNEL_NS;
}

/* The caller returns as soon as the prefetch has been submitted; the copy is waited for by the stream. */
static void submitted(void)
{
	struct um_executor_counts n;
	struct pair p;
	uint64_t at;

	pair_open(&p);
	ok(is_ahead(&p), "announcing an op does not wait for its prefetches");
	ok(waits(p.ex), "an op whose prefetch was not submitted waits");
	at = um_sim_now(p.gpu);
	ok(at >= KERNEL_NS, "it waits for the room that its prefetch needs");
	um_executor_counts(p.ex, &n);
	is_u64(n.prefetch_bytes, 4 * MIB2, "its prefetch has been submitted");
	is_u64(n.waits.gates_late, 2, "both ops that had to wait for a submission are counted");
	ok(n.waits.host_wait_ns >= KERNEL_NS && n.waits.host_wait_ns <= at, "and so is the time");
	is_u64(n.waits.gates_waited, 2, "both streams wait for the copies");
	is_u64(n.waits.stuck, 0, "no wait ended by the limit");
	um_sim_run(p.gpu, NULL, &(struct um_sim_kernel){.ns = 1000});
	p.gpu->api->cudaStreamSynchronize(p.gpu, NULL);
	ok(um_sim_now(p.gpu) >= at + 2 * 100000, "the op starts after the copies of two blocks");
	um_executor_guard(p.ex, 0, NULL, 0);
	ok(!waits(p.ex), "an op without prefetches does not wait");
	pair_close(&p);
}

/* An op that writes what is still to be discarded waits, whatever else it needs. */
static void guards(void)
{
	struct um_tensor t = {.bytes = 2 * MIB2};
	struct um_use u = {.tensor = &t, .bytes = 2 * MIB2, .access = UM_READ};
	struct pair p;

	pair_open(&p);
	p.ex->need.ins = 0; /* its prefetch would cover the discard */
	t.addr = p.addr;
	um_executor_guard(p.ex, 0, &u, 1);
	ok(!waits(p.ex), "an op that reads what is to be discarded does not wait");
	u.access = UM_WRITE;
	t.addr += 2 * MIB2;
	um_executor_guard(p.ex, 0, &u, 1);
	ok(!waits(p.ex) && is_ahead(&p), "an op that writes other memory does not wait");
	t.addr -= 2 * MIB2;
	um_executor_guard(p.ex, 0, &u, 1);
	ok(waits(p.ex) && !is_ahead(&p), "an op that writes what is to be discarded waits until that was submitted");
	pair_close(&p);
}

/* While ops do not wait for prefetches, since too many waits have ended by the limit, they do wait for discards. */
static void stuck(void)
{
	struct um_tensor t = {.bytes = 2 * MIB2};
	struct um_use u = {.tensor = &t, .bytes = 2 * MIB2, .access = UM_WRITE};
	struct pair p;
	int waited;

	pair_open(&p);
	t.addr = p.addr;
	atomic_store(&p.ex->lanes.level, UM_LANES_STUCK_MOST);
	ok(um_executor_stuck(p.ex), "after some waits that ended by the limit, ops do not wait");
	waits(p.ex);
	ok(is_ahead(&p), "an op does not wait for its prefetches then");
	um_executor_guard(p.ex, 0, &u, 1);
	waited = waits(p.ex);
	ok(waited && !is_ahead(&p), "an op waits for a discard of what it writes in spite of that");
	for (int i = 0; i <= UM_LANES_STUCK_OPS; i++) {
		p.ex->need = (struct um_lanes_need){.ins = 1, .in = um_lanes_in_queued(&p.ex->lanes) + 1};
		um_lanes_hold(&p.ex->lanes);
		um_lanes_await(&p.ex->lanes, &p.ex->need, NULL, 0);
	}
	is_u64(atomic_load(&p.ex->lanes.stuck), 1, "one op in %d waits again", UM_LANES_STUCK_OPS + 1);
	p.ex->need = (struct um_lanes_need){0};
	pair_close(&p);
}

/* A queue is full, and nothing can move. */
/* Op 0 uses another tensor than its slot had, of three blocks that begin within a block. */
static void replaces(void)
{
	struct um_executor_host host = {.may_discard = may_discard, .streams = &streams};
	struct um_executor_range used = {BASE, 4 * MIB2}, was = {BASE + MIB2 / 2, 3 * MIB2},
				 now = {BASE + 8 * MIB2 + MIB2 / 2, 2 * MIB2};
	struct um_executor_counts n, before;
	struct um_executor_wait w;
	uint32_t in, out;
	struct scene s;

	scene_open(&s, &host);
	um_executor_adopt(s.ex, &s.program, 2, &used, 1, &s.cursor);
	um_executor_op(s.ex, 0, 0, &s.cursor, NULL, 0);
	wait_for_calls(s.ex);
	um_executor_counts(s.ex, &before);
	in = s.ex->in_base;
	out = s.ex->out_base + s.ex->drop_base;
	allow = 0;
	is_int(um_executor_replace(s.ex, was, now), 0, "a tensor takes the place of another one");
	ok(um_executor_take_wait(s.ex, NULL, &w), "the op waits for it");
	while (um_executor_wait(&w))
		continue;
	wait_for_calls(s.ex);
	um_executor_counts(s.ex, &n);
	is_u64(n.evict_bytes - before.evict_bytes, 2 * MIB2, "the whole blocks of the previous tensor are evicted");
	is_u64(n.prefetch_bytes - before.prefetch_bytes, 3 * MIB2, "all blocks of the new tensor are prefetched");
	is_u64(s.ex->in_base - in, 2, "later actions of the plan do not count these prefetches as their own");
	is_u64(s.ex->out_base + s.ex->drop_base - out, 1, "nor the evictions");
	is_int(um_executor_op(s.ex, 1, 0, &s.cursor, NULL, 0), 0, "the plan goes on");
	allow = 1;
	um_executor_leave(s.ex);
	is_int(um_executor_replace(s.ex, was, now), 0, "without a plan, no tensor is moved");
	scene_close(&s);
}

static void queue_full(void)
{
	struct um_executor_room never;
	uint32_t in, n = 0;
	struct pair p;

	pair_open(&p);
	never = um_executor_room_now(p.ex);
	never.outs++;
	while (n <= UM_LANES_QUEUE && !um_executor_bring(p.ex, p.addr, MIB2, 1, &never, &in))
		n++;
	ok(n >= UM_LANES_QUEUE - 8 && n <= UM_LANES_QUEUE, "a queue takes %u requests that cannot begin", n);
	um_executor_cancel(p.ex);
	never = um_executor_room_now(p.ex);
	is_int(um_executor_bring(p.ex, p.addr, MIB2, 1, &never, &in), 0, "it has room after they were dropped");
	pair_close(&p);
}

/* The CPU comes after the end of a discard, not only after its submission. */
static void guards_cpu(void)
{
	struct um_executor_counts n;
	struct pair p;

	pair_open(&p);
	p.ex->need.ins = 0;
	um_executor_guard_cpu(p.ex, p.addr + 2 * MIB2, p.addr + 3 * MIB2);
	ok(!waits(p.ex) && is_ahead(&p), "an access of the CPU to other memory does not wait");
	um_executor_guard_cpu(p.ex, p.addr + MIB2 + 8, p.addr + MIB2 + 16);
	ok(waits(p.ex), "an access of the CPU to what is to be discarded waits");
	um_executor_counts(p.ex, &n);
	is_u64(n.discard_bytes, 2 * MIB2, "the discard is over");
	pair_close(&p);
}

int main(void)
{
	run(0);
	run(3);
	allow = 0;
	run(0);
	allow = 1;
	moved();
	moved_in_blocks();
	ends();
	outside();
	stays();
	claims();
	submitted();
	guards();
	stuck();
	guards_cpu();
	replaces();
	queue_full();
	driver_evicts();
	return tap_done();
}
