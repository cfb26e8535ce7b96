/* SPDX-License-Identifier: Apache-2.0
 *
 * Advice, from the plan to the device: which blocks it is given for, how those that are read mostly leave, and who ends
 * it. A program that only reads its weights (inference) and has room for half of them copies nothing to the host; one
 * that looks up a little in large tables leaves them there.
 */
#include "runtime/context.h"
#include "sim/sim.h"
#include "io/umtrace.h"
#include "play/player.h"
#include "replay/advice_state.h"

#include "plan_make.h"

#define MIB (1ull << 20)
#define BASE (16 * MIB2)
#define WEIGHTS 12
#define WEIGHT (8 * MIB)
#define SLOTS(...) ((const int[]){__VA_ARGS__, -1})

/* --- runs -------------------------------------------------------------------------------------------------------- */

static struct {
	int n, advice;
	uint64_t addr, bytes;
	int code;
} called;

static int advise(struct um_gpu *gpu, const void *ptr, size_t bytes, int advice, struct um_location where)
{
	(void)gpu;
	(void)where;
	called.n++;
	called.advice = advice;
	called.addr = (uint64_t)(uintptr_t)ptr / MIB2;
	called.bytes = bytes / MIB2;
	return called.code;
}

static int was_called(int n, int advice, uint64_t addr, uint64_t bytes)
{
	int good = called.n == n && (!n || (called.advice == advice && called.addr == addr && called.bytes == bytes));

	if (!good)
		diag("  %d calls, the last: advice %d, %llu + %llu", called.n, called.advice,
		     (unsigned long long)called.addr, (unsigned long long)called.bytes);
	called.n = 0;
	return good;
}

static void runs(void)
{
	const struct um_gpu_api api = {.cudaMemAdvise = advise}, nothing = {.cudaMemAdvise = NULL};
	struct um_gpu gpu = {.api = &api};
	const struct um_compiled_plan_run one[] = {{4 * MIB2, 4 * MIB2}};
	const struct um_compiled_plan_run two[] = {{4 * MIB2, 4 * MIB2}, {16 * MIB2, 2 * MIB2}};
	struct um_advice_state m = {0};

	is_int(um_advice_state_set(&m, &gpu, one, 1), 0, "runs: advice for one range is given");
	ok(was_called(1, UM_ADV_SET_READ_MOSTLY, 4, 4), "runs: advised in one call");
	is_int(um_advice_state_set(&m, &gpu, two, 2), 0, "runs: advice for further ranges is given");
	ok(was_called(1, UM_ADV_SET_READ_MOSTLY, 16, 2), "runs: what was said is not said again");
	ok(um_advice_state_has(&m, 5 * MIB2, 3 * MIB2) && !um_advice_state_has(&m, 5 * MIB2, 4 * MIB2),
	   "runs: all of a range");
	ok(um_advice_state_touches(&m, 7 * MIB2 + 1, MIB2) && !um_advice_state_touches(&m, 8 * MIB2, MIB2),
	   "runs: any of it");
	um_advice_state_clear(&m, &gpu, 8 * MIB2, 8 * MIB2);
	ok(was_called(0, 0, 0, 0), "runs: a write beside them");
	um_advice_state_clear(&m, &gpu, 5 * MIB2 + 100, 8);
	ok(was_called(1, UM_ADV_UNSET_READ_MOSTLY, 5, 1), "runs: a write in the middle: its block");
	ok(um_advice_state_has(&m, 4 * MIB2, MIB2) && um_advice_state_has(&m, 6 * MIB2, 2 * MIB2) && m.runs.n == 3,
	   "runs: what is before and behind it stays");
	um_advice_state_clear(&m, &gpu, 7 * MIB2, 10 * MIB2);
	ok(was_called(2, UM_ADV_UNSET_READ_MOSTLY, 16, 1) && m.runs.n == 3, "runs: the ends of two");
	is_int(um_advice_state_set(&m, &gpu, NULL, 0), 0, "runs: all advice is taken back");
	ok(was_called(3, UM_ADV_UNSET_READ_MOSTLY, 17, 1) && m.runs.n == 0, "runs: all that was left is taken back");
	called.code = UM_CUDA_NOT_SUPPORTED;
	is_int(um_advice_state_set(&m, &gpu, two, 2), 0, "runs: refused advice is no error");
	ok(m.runs.n == 0 && m.refused == 2, "runs: they are not, and that is counted");
	gpu.api = &nothing;
	is_int(um_advice_state_set(&m, &gpu, two, 2), 0, "runs: a device that takes no advice");
	is_u64(m.runs.n, 0, "runs: has none");
	um_advice_state_fini(&m);
}

static void noted_runs(void)
{
	const struct um_gpu_api api = {.cudaMemAdvise = advise};
	struct um_gpu gpu = {.api = &api};
	struct um_advice_state m = {0};

	called.code = 0;
	called.n = 0;
	for (uint64_t block = 4; block <= 8; block += 2)
		is_int(um_advice_state_note(&m, block * MIB2, MIB2), 0, "noted: a block by itself");
	is_u64(m.runs.n, 3, "noted: it is a run");
	um_advice_state_note(&m, 5 * MIB2, MIB2);
	ok(m.runs.n == 2 && um_advice_state_has(&m, 4 * MIB2, 3 * MIB2), "noted: a block between two runs joins them");
	um_advice_state_note(&m, 9 * MIB2, MIB2);
	um_advice_state_note(&m, 3 * MIB2, MIB2);
	ok(m.runs.n == 2 && um_advice_state_has(&m, 3 * MIB2, 4 * MIB2) && um_advice_state_has(&m, 8 * MIB2, 2 * MIB2),
	   "noted: runs grow at both ends");
	ok(!um_advice_state_touches(&m, 7 * MIB2, MIB2), "noted: what is between them is not");
	ok(was_called(0, 0, 0, 0), "noted: the device is not called");
	um_advice_state_clear(&m, &gpu, 9 * MIB2, 8);
	ok(was_called(1, UM_ADV_UNSET_READ_MOSTLY, 9, 1), "noted: a write takes the advice back");
	um_advice_state_set(&m, &gpu, &(struct um_compiled_plan_run){8 * MIB2, MIB2}, 1);
	ok(was_called(2, UM_ADV_SET_READ_MOSTLY, 8, 1), "noted: a plan advises it again");
	um_advice_state_fini(&m);
}

static void far_runs(void)
{
	const struct um_gpu_api api = {.cudaMemAdvise = advise};
	struct um_gpu gpu = {.api = &api};
	const struct um_compiled_plan_run one = {4 * MIB2, 4 * MIB2};
	struct um_advice_state m = {.host_resident = 1};

	called.code = 0;
	called.n = 0;
	is_int(um_advice_state_set(&m, &gpu, &one, 1), 0, "far: advice for one range is given");
	ok(was_called(2, UM_ADV_SET_ACCESSED_BY, 4, 4), "far: two calls, so that nothing faults in between");
	um_advice_state_clear(&m, &gpu, 7 * MIB2, 8);
	ok(was_called(3, UM_ADV_UNSET_PREFERRED, 7, 1), "far: the preferred location is taken back");
	ok(um_advice_state_has(&m, 4 * MIB2, 3 * MIB2) && !um_advice_state_has(&m, 7 * MIB2, 1), "far: for one block");
	called.code = UM_CUDA_NOT_SUPPORTED;
	um_advice_state_set(&m, &gpu, NULL, 0);
	is_int(um_advice_state_set(&m, &gpu, &one, 1), 0, "far: refused advice is no error");
	is_u64(m.runs.n, 0, "far: it is not");
	um_advice_state_fini(&m);
}

/* Advice that has ended, but is still to be withdrawn. */
static void ended_runs(void)
{
	const struct um_gpu_api api = {.cudaMemAdvise = advise};
	struct um_gpu gpu = {.api = &api};
	const struct um_compiled_plan_run one = {4 * MIB2, 4 * MIB2};
	struct um_advice_state m = {.host_resident = 1};

	called.code = 0;
	um_advice_state_set(&m, &gpu, &one, 1);
	called.n = 0;
	um_advice_state_end(&m, &gpu, 5 * MIB2 + 8, 2 * MIB2 - 8);
	ok(was_called(0, 0, 0, 0), "ended: advice that ends is not withdrawn at once");
	ok(!um_advice_state_touches(&m, 5 * MIB2, 2 * MIB2) && um_advice_state_has(&m, 7 * MIB2, MIB2),
	   "ended: exactly these blocks are not advised any more");
	um_advice_state_withdraw(&m, &gpu);
	ok(was_called(0, 0, 0, 0), "ended: the first withdrawal only makes it due");
	is_int(um_advice_state_add(&m, &gpu, 5 * MIB2, MIB2), 0, "ended: a block is advised again");
	called.n = 0;
	um_advice_state_withdraw(&m, &gpu);
	ok(was_called(3, UM_ADV_UNSET_PREFERRED, 6, 1), "ended: the second withdrawal is of the other block only");
	um_advice_state_set(&m, &gpu, NULL, 0);
	ok(was_called(0, 0, 0, 0), "ended: without a plan all advice ends, and is not withdrawn at once");
	um_advice_state_clear(&m, &gpu, 4 * MIB2, 2 * MIB2);
	ok(was_called(6, UM_ADV_UNSET_PREFERRED, 5, 1), "ended: clearing a range withdraws its ended advice at once");
	um_advice_state_withdraw(&m, &gpu);
	um_advice_state_withdraw(&m, &gpu);
	ok(was_called(3, UM_ADV_UNSET_PREFERRED, 7, 1) && !um_advice_state_any_ended(&m),
	   "ended: the rest is withdrawn");
	um_advice_state_fini(&m);
}

/* --- program ----------------------------------------------------------------------------------------------------- */

/* Blocks: how many go in one action is the lanes' affair. */
static uint64_t count(const struct um_compiled_plan *p, enum um_action_kind kind)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < p->iterations[UM_COMPILED_PLAN_STEADY].actions.n; i++)
		if (p->iterations[UM_COMPILED_PLAN_STEADY].actions.at[i].kind == kind)
			bytes += p->iterations[UM_COMPILED_PLAN_STEADY].actions.at[i].bytes;
	return bytes / MIB2;
}

/* Slot 0 has two blocks and the first half of a third one; whose is the other half? */
static void program(uint32_t access_of_other, uint64_t lets, uint64_t outs, uint64_t blocks, const char *name)
{
	struct um_plan plan;
	struct um_compiled_plan p;

	um_plan_init(&plan);
	um_compiled_plan_init(&p);
	make_slot(&plan, BASE, 2 * MIB2 + MIB2 / 2, -1, -1);
	make_slot(&plan, BASE + 2 * MIB2 + MIB2 / 2, MIB2 / 2, -1, -1);
	make_slot(&plan, BASE + 4 * MIB2, 3 * MIB2, -1, -1);
	make_op(&plan, "a", SLOTS(0), UM_READ);
	make_op(&plan, "b", SLOTS(1), access_of_other);
	make_op(&plan, "c", SLOTS(2), UM_UPDATE);
	make_hint(&plan, UM_HINT_ADVISE, 0, 0, 0, 2 * MIB2 + MIB2 / 2);
	make_hint(&plan, UM_HINT_ADVISE, 0, 1, 0, MIB2 / 2);
	plan.hints.at[0].advice = UM_ADVICE_READ_MOSTLY;
	plan.hints.at[1].advice = access_of_other & UM_WRITE ? UM_ADVICE_ACCESSED_BY : UM_ADVICE_READ_MOSTLY;
	make_hint(&plan, UM_HINT_EVICT, 0, 2, 0, 3 * MIB2);
	make_hint(&plan, UM_HINT_PREFETCH, 0, 0, 0, 2 * MIB2 + MIB2 / 2);
	make_hint(&plan, UM_HINT_PREFETCH, 1, 1, 0, MIB2 / 2);
	make_hint(&plan, UM_HINT_EVICT, 2, 0, 0, 2 * MIB2 + MIB2 / 2);
	make_hint(&plan, UM_HINT_EVICT, 2, 1, 0, MIB2 / 2);
	make_hint(&plan, UM_HINT_PREFETCH, 2, 2, 0, 3 * MIB2);
	ok(um_compiled_plan_build(&plan, 3, &p) == 0, "%s: the plan compiles", name);
	is_u64(p.read_mostly.n, 1, "%s: one run", name);
	is_u64(p.read_mostly.n ? p.read_mostly.at[0].bytes / MIB2 : 0, blocks,
	       "%s: of whole blocks that are not written", name);
	is_u64(count(&p, UM_ACTION_DROP_CLEAN), lets, "%s: they leave without a copy", name);
	is_u64(count(&p, UM_ACTION_EVICT), outs, "%s: the others use one", name);
	is_u64(p.over, 0, "%s: there is always room", name);
	um_compiled_plan_fini(&p);
	um_plan_fini(&plan);
}

/* A table that begins and ends in the middle of a block. */
static void far_program(void)
{
	struct um_plan plan;
	struct um_compiled_plan p;

	um_plan_init(&plan);
	um_compiled_plan_init(&p);
	make_slot(&plan, BASE + MIB2 / 2, 3 * MIB2, -1, -1);
	make_slot(&plan, BASE + 8 * MIB2, MIB2, -1, -1);
	make_op(&plan, "a", SLOTS(0, 1), UM_READ);
	make_op(&plan, "b", SLOTS(1), UM_UPDATE);
	plan.sched.uses.at[0].touched = 4096;
	plan.remote = 1000000000;
	for (int i = 0; i < 2; i++) {
		make_hint(&plan, UM_HINT_ADVISE, 0, 0, MIB2 / 2, 2 * MIB2);
		plan.hints.at[i].advice = i ? UM_ADVICE_PREFERRED : UM_ADVICE_ACCESSED_BY;
	}
	ok(um_compiled_plan_build(&plan, 3, &p) == 0, "far: the plan compiles");
	is_u64(p.host_resident.n, 1, "far: the plan has one run of host memory");
	is_u64(p.host_resident.n ? p.host_resident.at[0].addr - BASE : 0, MIB2,
	       "far: without the block that the table begins in");
	is_u64(p.host_resident.n ? p.host_resident.at[0].bytes : 0, 2 * MIB2, "far: nor the one that it ends in");
	is_u64(p.iterations[0].n_in, 3, "far: these two are brought, and the other slot");
	is_u64(p.over, 0, "far: there is room");
	um_compiled_plan_fini(&p);
	um_plan_fini(&plan);
}

/* --- a whole program ---------------------------------------------------------------------------------------------- */

static struct um_gpu *gpu;
static struct um_gpu_api api;
static struct umadv *adv;
static um_stream stream;
static void *weight[WEIGHTS], *x[2];
static struct um_tally before;

static void start(int advice)
{
	const struct um_profile *a100 = um_profile_find("a100");
	struct um_sim_options so = {.profile = a100, .capacity = WEIGHTS / 2 * WEIGHT + 8 * MIB};
	struct umadv_options o;
	int err;

	if (um_sim_open(&gpu, &so))
		tap_bail("no simulated device");
	api = *gpu->api;
	if (!advice)
		api.cudaMemAdvise = NULL;
	gpu->api = &api;
	umadv_options_init(&o);
	o.budget = so.capacity;
	o.log_level = UMADV_LOG_ERROR;
	o.referee = UMADV_REFEREE_OFF; /* plans are followed even where they gain nothing */
	if (um_context_open(&adv, &o, gpu, a100))
		tap_bail("no context");
	err = gpu->api->cudaStreamCreateWithFlags(gpu, &stream, UM_STREAM_NON_BLOCKING);
	for (int i = 0; i < WEIGHTS; i++)
		err |= umadv_alloc(adv, &weight[i], WEIGHT, "weight", UMADV_PARAM);
	for (int i = 0; i < 2; i++)
		err |= umadv_alloc(adv, &x[i], 2 * MIB, "x", UMADV_ACT);
	if (err)
		tap_bail("no program");
	for (int i = 0; i < WEIGHTS; i++)
		um_sim_host_touch(gpu, weight[i], WEIGHT, UM_WRITE);
}

static void launch_cost(const char *name, const struct umadv_use *use, size_t n, double bytes)
{
	struct umadv_op_info info = {.struct_size = sizeof info, .uses = use, .n_uses = n, .bytes = bytes, .ns = 20000};
	struct um_sim_kernel k = {.name = name, .announced = 1};

	if (umadv_op_ex(adv, stream, name, &info) || um_sim_run(gpu, stream, &k))
		tap_bail("no op");
}

static void launch(const char *name, const struct umadv_use *use, size_t n)
{
	launch_cost(name, use, n, 0);
}

static void op(const char *name, void *w, uint32_t access, int i)
{
	struct umadv_use use[] = {umadv_use_(w, 0, 0, access), UMADV_READ(x[i % 2]), UMADV_WRITE(x[(i + 1) % 2])};

	launch(name, use, 3);
}

/* Plays `n` iterations; `*last`: what the last one cost. Returns its time. */
static uint64_t play(int n, struct um_tally *last)
{
	uint64_t begin = 0;

	for (int k = 0; k < n; k++) {
		um_sim_sync(gpu);
		begin = um_sim_now(gpu);
		um_sim_tally(gpu, &before);
		umadv_iter(adv, NULL);
		for (int i = 0; i < WEIGHTS; i++)
			op("layer", weight[i], UM_READ, i);
	}
	um_sim_sync(gpu);
	um_sim_tally(gpu, last);
	last->d2h_bytes -= before.d2h_bytes;
	last->h2d_bytes -= before.h2d_bytes;
	last->faults -= before.faults;
	return um_sim_now(gpu) - begin;
}

static void inference(void)
{
	struct um_tally t;
	uint64_t ns, plain;
	void *p;

	start(0);
	plain = play(8, &t);
	ok(t.d2h_bytes && t.d2h_bytes >= t.h2d_bytes * 9 / 10, "without advice what was only read is copied back");
	is_u64(t.faults, 0, "no access of the planned iteration faults");
	umadv_close(adv);

	start(1);
	ns = play(8, &t);
	is_u64(t.d2h_bytes, 0, "with advice no weight is copied back");
	ok(t.h2d_bytes, "with advice weights are still copied in");
	is_u64(t.faults, 0, "no access with advice faults");
	ok(ns < plain * 9 / 10, "advice makes the iteration faster by a tenth");
	if (ns >= plain * 9 / 10)
		diag("  %llu ns, %llu without", (unsigned long long)ns, (unsigned long long)plain);

	/* An iteration of another kind writes a weight; another weight makes room for something new. */
	umadv_iter(adv, NULL);
	um_sim_tally(gpu, &before);
	op("update", weight[3], UM_UPDATE, 0);
	umadv_free(adv, weight[5]);
	if (umadv_alloc(adv, &p, WEIGHT, "new", UMADV_PARAM))
		tap_bail("no memory");
	is_u64((uint64_t)(uintptr_t)p, (uint64_t)(uintptr_t)weight[5], "a tensor takes another one's place");
	op("fill", p, UM_WRITE, 1);
	um_sim_sync(gpu);
	um_sim_tally(gpu, &t);
	ok(t.faults - before.faults <= 2 * WEIGHT / 65536, "who writes does not fault on every 4 KiB page");
	weight[5] = p;
	play(8, &t);
	is_u64(t.faults, 0, "the plan is taken up again");
	is_u64(t.d2h_bytes, 0, "nothing is copied out with advice of every kind");
	umadv_close(adv);
}

/* What lookahead makes of a trace, in half of the memory that it needs. */
static void look(const char *name, double b_remote, struct um_play_result *out)
{
	const char *top = getenv("top_srcdir");
	struct um_profile profile = *um_profile_find("v100");
	struct um_trace *t;
	struct um_diag d;
	char path[512];

	profile.b_remote = b_remote;
	snprintf(path, sizeof path, "%s/tests/data/%s.umtrace.gz", top ? top : ".", name);
	if (um_trace_load(&t, path, &d))
		tap_bail(d.text);

	struct um_play_options o = {.profile = &profile,
				    .budget = um_trace_peak_bytes(t) / 2,
				    .strategy = UM_PLAY_LOOKAHEAD,
				    .iterations = 6};

	if (um_play(t, &o, out))
		tap_bail("not played");
	um_trace_free(t);
}

static void look_ups(void)
{
	struct um_play_result with, without;

	look("dlrm", 0.8, &with);
	look("dlrm", 0.001, &without);
	is_u64(with.faults, 0, "look-ups: no fault");
	is_u64(with.h2d_bytes + with.d2h_bytes, 0, "look-ups: all tables stay where they are");
	ok(without.h2d_bytes, "look-ups: where the link is too slow for that, they come");
	ok(with.steady_ns * 3 / 2 < without.steady_ns, "look-ups: which takes half as long again");
	ok(with.steady_ns <= with.planned_ns + with.planned_ns / 100, "look-ups: as fast as was planned");
	um_play_result_fini(&with);
	um_play_result_fini(&without);
}

/* An op goes all through a table that stays on the host by the plan. With `own` it is the program's own memory, which
 * it takes back instead. */
static void all_through(int own)
{
	struct um_tally t;
	struct um_sim_range_attributes said;
	struct umadv_use use = {0};
	void *table;

	start(1);
	if (own ? gpu->api->cudaMallocManaged(gpu, &table, 96 * MIB, 1) ||
			    umadv_adopt(adv, table, 96 * MIB, "table", UMADV_PARAM)
		: umadv_alloc(adv, &table, 96 * MIB, "table", UMADV_PARAM))
		tap_bail("no table");
	um_sim_host_touch(gpu, table, 96 * MIB, UM_WRITE);
	for (int k = 0; k < 6; k++) {
		um_sim_sync(gpu);
		um_sim_tally(gpu, &before);
		umadv_iter(adv, NULL);
		for (int i = 0; i < 4; i++) {
			use = UMADV_LOOKUP(table, MIB);
			launch("look up", &use, 1);
			op("layer", weight[i], UM_UPDATE, i);
		}
	}
	um_sim_sync(gpu);
	um_sim_tally(gpu, &t);
	/* What the program's own memory has on the device when the plan is taken up goes when its room is wanted. */
	ok(own ? t.remote_bytes > before.remote_bytes : t.remote_bytes - before.remote_bytes == 4 * MIB,
	   "looked-up rows are read over the link");
	is_u64(t.faults - before.faults, 0, "looking up the table causes no fault");
	um_sim_range_attributes(gpu, table, 96 * MIB, &said);
	ok(said.accessed_gpu && said.preferred == -1, "since the driver was told so");
	if (own) {
		is_int(umadv_disown(adv, table, 96 * MIB), 0, "the program takes it back");
		um_sim_range_attributes(gpu, table, 96 * MIB, &said);
		ok(!said.accessed_gpu && said.preferred == -2, "closing takes the advice back");
		umadv_close(adv);
		return;
	}
	before = t;
	umadv_iter(adv, NULL);
	use.touched = 0;
	launch_cost("sum", &use, 1, 96 * MIB);
	um_sim_sync(gpu);
	um_sim_tally(gpu, &t);
	is_u64(t.remote_bytes - before.remote_bytes, 96 * MIB, "an op that reads each byte once reads over the link");
	is_u64(t.faults - before.faults, 0, "an op that reads each byte once causes no fault in the table");
	before = t;
	launch("all of it", &use, 1);
	um_sim_sync(gpu);
	um_sim_tally(gpu, &t);
	is_u64(t.remote_bytes - before.remote_bytes, 0, "an op of unknown cost reads all of the table on the device");
	ok(t.h2d_bytes - before.h2d_bytes >= 96 * MIB, "the pages of the table migrate for it");
	umadv_close(adv);
}

#define AHEAD 100 /* ops */

/* A program that is far ahead of the device uses a table as a whole, or gives its place to another one. */
static void ends_ahead(int reborn)
{
	struct um_tally t;
	struct umadv_use use = {0};
	void *table, *other;

	start(1);
	if (umadv_alloc(adv, &table, 96 * MIB, "table", UMADV_PARAM))
		tap_bail("no table");
	um_sim_host_touch(gpu, table, 96 * MIB, UM_WRITE);
	use = UMADV_LOOKUP(table, MIB);
	for (int k = 0; k < 6; k++) {
		um_sim_sync(gpu);
		umadv_iter(adv, NULL);
		for (int i = 0; i < 4; i++) {
			launch("look up", &use, 1);
			op("layer", weight[i], UM_UPDATE, i);
		}
	}
	um_sim_sync(gpu);
	um_sim_tally(gpu, &before);
	umadv_iter(adv, NULL);
	for (int i = 0; i < AHEAD; i++)
		launch("look up", &use, 1);
	if (reborn) {
		umadv_free(adv, table);
		if (umadv_alloc(adv, &other, 96 * MIB, "other", UMADV_PARAM) || other != table)
			tap_bail("no other table");
	} else {
		use.touched = 0;
		launch("all of it", &use, 1);
	}
	um_sim_sync(gpu);
	um_sim_tally(gpu, &t);
	ok(t.remote_bytes - before.remote_bytes >= AHEAD * MIB, "earlier look-ups read over the link until %s",
	   reborn ? "another tensor takes the table's place" : "an op uses all of the table");
	umadv_close(adv);
}

int main(void)
{
	runs();
	noted_runs();
	far_runs();
	ended_runs();
	far_program();
	program(UM_READ, 3, 3, 3, "both read");
	program(UM_UPDATE, 2, 4, 2, "the other one written");
	inference();
	ends_ahead(0);
	ends_ahead(1);
	look_ups();
	all_through(0);
	all_through(1);
	return tap_done();
}
