/* SPDX-License-Identifier: Apache-2.0
 *
 * How long an iteration will take with the driver's work: a case worked by hand, and recorded workloads beside what the
 * simulated driver makes of them.
 */
#include "replay/evict_policy.h"
#include "replay/rehearsal.h"

#include "plan_make.h"
#include "play/player.h"

#include <unistd.h>

#define BASE (16 * MIB2)
#define SLOTS(...) ((const int[]){__VA_ARGS__, -1})

/* A block takes 1,000 ns on the link; the driver costs nothing. */
static struct um_profile link_alone(void)
{
	struct um_profile p = {
		.h2d = (double)MIB2 * 1e6, .d2h = (double)MIB2 * 1e6, .duplex = 1, .duplex_evict = 1, .eta = 1};

	return p;
}

static uint64_t rehearsed(const struct um_plan *plan, uint64_t blocks, const struct um_profile *profile)
{
	struct um_compiled_plan p;
	uint64_t ns = 0;

	um_compiled_plan_init(&p);
	if (um_compiled_plan_build_steady(plan, blocks, &p) || um_rehearse(&p, plan, profile, &ns))
		tap_bail("no memory");
	um_compiled_plan_fini(&p);
	return ns;
}

/* Two slots of two blocks that take turns in two blocks: out, in, op, out, in, op. An op takes 1,000 ns. */
static void turns(void)
{
	struct um_profile p = link_alone();
	struct um_plan plan;

	um_plan_init(&plan);
	make_slot(&plan, BASE, 2 * MIB2, -1, -1);
	make_slot(&plan, BASE + 2 * MIB2, 2 * MIB2, -1, -1);
	make_op(&plan, "a", SLOTS(0), UM_UPDATE);
	make_op(&plan, "b", SLOTS(1), UM_UPDATE);
	make_hint(&plan, UM_HINT_EVICT, 0, 1, 0, 2 * MIB2);
	make_hint(&plan, UM_HINT_PREFETCH, 0, 0, 0, 2 * MIB2);
	make_hint(&plan, UM_HINT_EVICT, 1, 0, 0, 2 * MIB2);
	make_hint(&plan, UM_HINT_PREFETCH, 1, 1, 0, 2 * MIB2);
	is_u64(rehearsed(&plan, 2, &p), 10000, "turns: two copies out, two in, an op; twice");
	is_u64(rehearsed(&plan, 4, &p), 5000, "with room for both, each op waits for its own copies");
	p.c_api = 10;
	is_u64(rehearsed(&plan, 2, &p), 10040, "four calls add their cost");
	p.c_pf = 100;
	is_u64(rehearsed(&plan, 2, &p), 10440, "the work on a range's first block comes before its copy");
	p.c_pf_cpu = 70;
	is_u64(rehearsed(&plan, 2, &p), 10580, "the mapping of its last block on the host behind it");
	p.c_unmap = 30;
	is_u64(rehearsed(&plan, 2, &p), 10640, "unmapping adds its cost when the block returns");
	p.o_seg = 5;
	is_u64(rehearsed(&plan, 2, &p), 10680, "each copy adds its cost");
	um_plan_fini(&plan);
}

/* Two slots of four blocks that take turns in four. */
static void runs(void)
{
	struct um_profile p = link_alone();
	struct um_plan plan;

	um_plan_init(&plan);
	make_slot(&plan, BASE, 4 * MIB2, -1, -1);
	make_slot(&plan, BASE + 4 * MIB2, 4 * MIB2, -1, -1);
	make_op(&plan, "a", SLOTS(0), UM_UPDATE);
	make_op(&plan, "b", SLOTS(1), UM_UPDATE);
	make_hint(&plan, UM_HINT_EVICT, 0, 1, 0, 4 * MIB2);
	make_hint(&plan, UM_HINT_PREFETCH, 0, 0, 0, 4 * MIB2);
	make_hint(&plan, UM_HINT_EVICT, 1, 0, 0, 4 * MIB2);
	make_hint(&plan, UM_HINT_PREFETCH, 1, 1, 0, 4 * MIB2);
	is_u64(um_evict_policy_runs(&plan, &p, 4), 2,
	       "evictions are as long as prefetches if these wait for their room");
	p.c_api = 5000;
	is_u64(um_evict_policy_runs(&plan, &p, 4), 4, "evictions are long if calls are slow");
	p.c_api = 0;
	p.c_pf_cpu = 3000;
	is_u64(um_evict_policy_runs(&plan, &p, 4), 1,
	       "evictions are short if several workers can share the driver's work");
	um_plan_fini(&plan);
}

/* Two slots are dropped after use. The driver's work on a prefetch holds up the program, and with it the next op's
 * prefetch, unless that is issued before the op: where the place of its tensor is known before the birth. */
static uint64_t held_up(int places_known)
{
	struct um_profile p = link_alone();
	struct um_plan plan;
	uint64_t ns;

	um_plan_init(&plan);
	for (int i = 0; i < 2; i++)
		make_slot(&plan, BASE + (uint64_t)i * MIB2, MIB2, i, places_known ? 2 : i);
	make_op(&plan, "a", SLOTS(0), UM_WRITE);
	make_op(&plan, "b", SLOTS(1), UM_WRITE);
	make_op(&plan, "c", SLOTS(-1), UM_READ);
	for (int i = 0; i < 2; i++) {
		plan.sched.uses.at[i].dead_after = 1;
		make_hint(&plan, UM_HINT_PREFETCH, i, i, 0, MIB2);
	}
	for (int i = 0; i < 2; i++)
		make_hint(&plan, UM_HINT_DISCARD, 2, i, 0, MIB2);
	p.c_pf = 5000;
	ns = rehearsed(&plan, 2, &p);
	um_plan_fini(&plan);
	return ns;
}

/* Turns of what is only read: it goes without a copy, and its mapping on the host stays. */
static void read_mostly(void)
{
	struct um_profile p = link_alone();
	struct um_plan plan;

	um_plan_init(&plan);
	for (int i = 0; i < 2; i++)
		make_slot(&plan, BASE + (uint64_t)i * MIB2, MIB2, -1, -1);
	make_op(&plan, "a", SLOTS(0), UM_READ);
	make_op(&plan, "b", SLOTS(1), UM_READ);
	for (int i = 0; i < 2; i++) {
		make_hint(&plan, UM_HINT_ADVISE, 0, i, 0, MIB2);
		plan.hints.at[i].advice = UM_ADVICE_READ_MOSTLY;
	}
	for (int i = 0; i < 2; i++) {
		make_hint(&plan, UM_HINT_EVICT, i, !i, 0, MIB2);
		make_hint(&plan, UM_HINT_PREFETCH, i, i, 0, MIB2);
	}
	p.c_unmap = 30;
	is_u64(rehearsed(&plan, 1, &p), 4000, "read mostly: a copy in, an op; twice");
	p.c_adv = 100;
	is_u64(rehearsed(&plan, 1, &p), 4400, "the advice is taken away and given again");
	um_plan_fini(&plan);
}

/* What is born every time and then dropped is never copied. */
static void dropped(void)
{
	struct um_profile p = link_alone();
	struct um_plan plan;

	um_plan_init(&plan);
	make_slot(&plan, BASE, MIB2, 0, 1);
	make_slot(&plan, BASE + MIB2, MIB2, 1, 2);
	make_op(&plan, "a", SLOTS(0), UM_WRITE);
	make_op(&plan, "b", SLOTS(1), UM_WRITE);
	is_u64(rehearsed(&plan, 1, &p), 2000, "dead tensors free memory without a copy");
	p.c_disc_u = 300;
	is_u64(rehearsed(&plan, 1, &p), 2600, "a dropped block costs only its drop");
	p.c_zero = 50;
	p.c_pf = 100;
	is_u64(rehearsed(&plan, 1, &p), 2900, "the block that replaces it costs its fill");
	is_u64(rehearsed(&plan, 2, &p), 2000, "no work is added with room for both");
	um_plan_fini(&plan);
}

/* The CPU reads what op a writes, before op b, which needs nothing that moves. */
static void for_cpu(void)
{
	struct um_profile p = link_alone();
	struct um_plan plan;

	um_plan_init(&plan);
	make_slot(&plan, BASE, MIB2, -1, -1);
	make_slot(&plan, BASE + MIB2, MIB2, -1, -1);
	make_op(&plan, "a", SLOTS(0), UM_UPDATE);
	make_op(&plan, "look", SLOTS(0), UM_READ);
	make_op(&plan, "b", SLOTS(1), UM_UPDATE);
	make_hint(&plan, UM_HINT_PREFETCH, 0, 0, 0, MIB2);
	make_hint(&plan, UM_HINT_EVICT, 1, 0, 0, MIB2);
	plan.sched.ops.at[2].ns = 3000;
	plan.sched.ops.at[1].stream = UM_STREAM_CPU;
	plan.sched.ops.at[1].ns = 0;
	is_u64(rehearsed(&plan, 2, &p), 5000,
	       "the CPU waits for the copy of what it reads, and the program for the CPU");
	p.c_pf_cpu = 70;
	is_u64(rehearsed(&plan, 2, &p), 5070, "the CPU waits for the mapping on the host");
	p.c_cpuf = 400;
	is_u64(rehearsed(&plan, 2, &p), 5070, "what was evicted for the CPU costs no fault");
	plan.hints.n = 1;
	is_u64(rehearsed(&plan, 2, &p), 5400, "what was not costs a fault and its copy");
	um_plan_fini(&plan);
}

/* Accesses over the link take the link's time. */
static void remote(void)
{
	struct um_profile p = link_alone();
	struct um_plan plan;

	um_plan_init(&plan);
	make_slot(&plan, BASE, 4 * MIB2, -1, -1);
	make_op(&plan, "look up", SLOTS(0), UM_READ);
	plan.sched.uses.at[0].touched = MIB2;
	for (int i = 0; i < 2; i++) {
		make_hint(&plan, UM_HINT_ADVISE, 0, 0, 0, 4 * MIB2);
		plan.hints.at[i].advice = i ? UM_ADVICE_ACCESSED_BY : UM_ADVICE_PREFERRED;
	}
	plan.remote = MIB2 * 200000; /* a block in 5,000 ns */
	is_u64(rehearsed(&plan, 1, &p), 5000, "an op takes the link's time for what it touches on the host");
	plan.remote = MIB2 * 2000000;
	is_u64(rehearsed(&plan, 1, &p), 1000, "a fast link does not delay the op");
	um_plan_fini(&plan);
}

static uint32_t count(const struct um_compiled_iteration *of, enum um_action_kind kind)
{
	uint32_t n = 0;

	for (size_t i = 0; i < of->actions.n; i++)
		n += of->actions.at[i].kind == kind;
	return n;
}

/* The driver pages an op of three blocks with memory for two; another op needs two blocks. */
static void paged(void)
{
	struct um_profile p = link_alone();
	struct um_compiled_plan program;
	uint32_t drops, copies, faults;
	uint64_t ns;
	struct um_plan plan;

	um_plan_init(&plan);
	make_slot(&plan, BASE, 3 * MIB2, 0, 1);
	make_slot(&plan, BASE + 3 * MIB2, 2 * MIB2, -1, -1);
	make_op(&plan, "large", SLOTS(0), UM_WRITE);
	make_op(&plan, "small", SLOTS(1), UM_UPDATE);
	make_hint(&plan, UM_HINT_EVICT, 0, 1, 0, 2 * MIB2);
	make_hint(&plan, UM_HINT_PREFETCH, 1, 1, 0, 2 * MIB2);
	plan.sched.ops.at[0].paged = 1;
	um_compiled_plan_init(&program);
	if (um_compiled_plan_build(&plan, 2, &program))
		tap_bail("no memory");

	const struct um_compiled_iteration *steady = &program.iterations[UM_COMPILED_PLAN_STEADY];

	drops = count(steady, UM_ACTION_DISCARD);
	copies = count(steady, UM_ACTION_DROP_WITH_COPY);
	faults = steady->faults.n == 1 && steady->faults.at[0].op == 0 ? steady->faults.at[0].blocks : 0;
	ok(faults > 0 && !steady->faults.at[0].copied, "the large op faults on %u blocks without content", faults);
	ok(copies && drops < 3, "blocks that it will fault on are copied out, not discarded: %u, and %u", copies,
	   drops);
	is_u64(count(&program.iterations[0], UM_ACTION_DROP_WITH_COPY), copies, "so they are in the first iteration");
	um_compiled_plan_fini(&program);
	ns = rehearsed(&plan, 2, &p);
	p.c_batch = 10000;
	is_u64(rehearsed(&plan, 2, &p), ns + (faults + 2) / 3 * 3 * 10000ull, "three batches serve three blocks");
	p.c_batch = 0;
	p.c_blk = 10000;
	is_u64(rehearsed(&plan, 2, &p), ns + faults * 30000ull, "each block is visited three times");
	um_plan_fini(&plan);
}

static int keep_plan(void *user, struct um_plan *plan)
{
	uint64_t *ns = user;

	*ns = rehearsed(plan, plan->budget / UM_BLOCK_BYTES, um_profile_find(plan->profile));
	return 0;
}

static void beside_play(const char *name, const char *profile, uint64_t percent)
{
	const char *top = getenv("top_srcdir");
	struct um_play_options o = {.profile = um_profile_find(profile),
				    .strategy = UM_PLAY_LOOKAHEAD,
				    .iterations = 6,
				    .planned = keep_plan};
	struct um_play_result r;
	char path[512], plan[64];
	struct um_trace *t;
	struct um_diag d;
	uint64_t ns = 0, off;

	snprintf(path, sizeof path, "%s/tests/data/%s.umtrace.gz", top ? top : ".", name);
	snprintf(plan, sizeof plan, "/tmp/um-rehearsal-%ld.umplan", (long)getpid());
	if (um_trace_load(&t, path, &d))
		tap_bail(d.text);
	o.budget = um_trace_peak_bytes(t) * 2 / 3;
	o.save_plan = plan;
	o.planned_user = &ns;
	is_int(um_play(t, &o, &r), 0, "%s on %s: the trace is played", name, profile);
	remove(plan);
	off = ns > r.steady_ns ? ns - r.steady_ns : r.steady_ns - ns;
	ok(off * 100 <= r.steady_ns * percent, "rehearsed at %.3f ms, played in %.3f, planned for %.3f",
	   (double)ns / 1e6, (double)r.steady_ns / 1e6, (double)r.planned_ns / 1e6);
	um_play_result_fini(&r);
	um_trace_free(t);
}

int main(void)
{
	static const char *const profiles[] = {"v100", "a100", "h100"};
	const char *sanitize = getenv("SANITIZE");

	turns();
	runs();
	is_u64(held_up(0), 11000, "an op's prefetch is issued after that of the op before");
	is_u64(held_up(1), 7000, "both are issued at once where the places are known");
	read_mostly();
	dropped();
	for_cpu();
	remote();
	paged();
	for (int i = 0; i < 3; i += tap_step(3)) {
		/* The faster the link, the more it matters who of several workers comes first. */
		uint64_t percent = i < 2 ? 2 : 6;

		beside_play("alexnet_b200", profiles[i], percent);
		if (tap_few())
			continue;
		if (!sanitize || !*sanitize)
			beside_play("resnet50", profiles[i], percent);
		beside_play("cg_laplace3d", profiles[i], percent);
	}
	return tap_done();
}
