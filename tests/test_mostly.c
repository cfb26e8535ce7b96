/* SPDX-License-Identifier: Apache-2.0
 *
 * Read-mostly, from the plan's advice to the device: which blocks are, how they leave, and who ends it. A program that
 * only reads its weights (inference) and has room for half of them copies nothing to the host.
 */
#include "advisor.h"
#include "gpu/sim.h"
#include "replay/mostly.h"

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
} told;

static int advise(struct um_gpu *gpu, const void *ptr, size_t bytes, int advice, struct um_location where)
{
	(void)gpu;
	(void)where;
	told.n++;
	told.advice = advice;
	told.addr = (uint64_t)(uintptr_t)ptr / MIB2;
	told.bytes = bytes / MIB2;
	return told.code;
}

static int was_told(int n, int advice, uint64_t addr, uint64_t bytes)
{
	int good = told.n == n && (!n || (told.advice == advice && told.addr == addr && told.bytes == bytes));

	if (!good)
		diag("  %d calls, the last: advice %d, %llu + %llu", told.n, told.advice,
		     (unsigned long long)told.addr, (unsigned long long)told.bytes);
	told.n = 0;
	return good;
}

static void runs(void)
{
	const struct um_gpu_api api = {.cudaMemAdvise = advise}, nothing = {.cudaMemAdvise = NULL};
	struct um_gpu gpu = {.api = &api};
	const struct um_program_run one[] = {{4 * MIB2, 4 * MIB2}};
	const struct um_program_run two[] = {{4 * MIB2, 4 * MIB2}, {16 * MIB2, 2 * MIB2}};
	struct um_mostly m = {0};

	is_int(um_mostly_set(&m, &gpu, one, 1), 0, "runs: one");
	ok(was_told(1, UM_ADV_SET_READ_MOSTLY, 4, 4), "runs: advised in one call");
	is_int(um_mostly_set(&m, &gpu, two, 2), 0, "runs: another");
	ok(was_told(1, UM_ADV_SET_READ_MOSTLY, 16, 2), "runs: what was said is not said again");
	ok(um_mostly_has(&m, 5 * MIB2, 3 * MIB2) && !um_mostly_has(&m, 5 * MIB2, 4 * MIB2), "runs: all of a range");
	ok(um_mostly_touches(&m, 7 * MIB2 + 1, MIB2) && !um_mostly_touches(&m, 8 * MIB2, MIB2), "runs: any of it");
	um_mostly_clear(&m, &gpu, 8 * MIB2, 8 * MIB2);
	ok(was_told(0, 0, 0, 0), "runs: a write beside them");
	um_mostly_clear(&m, &gpu, 5 * MIB2 + 100, 8);
	ok(was_told(1, UM_ADV_UNSET_READ_MOSTLY, 5, 1), "runs: a write in the middle: its block");
	ok(um_mostly_has(&m, 4 * MIB2, MIB2) && um_mostly_has(&m, 6 * MIB2, 2 * MIB2) && m.runs.n == 3,
	   "runs: what is before and behind it stays");
	um_mostly_clear(&m, &gpu, 7 * MIB2, 10 * MIB2);
	ok(was_told(2, UM_ADV_UNSET_READ_MOSTLY, 16, 1) && m.runs.n == 3, "runs: the ends of two");
	is_int(um_mostly_set(&m, &gpu, NULL, 0), 0, "runs: none");
	ok(was_told(3, UM_ADV_UNSET_READ_MOSTLY, 17, 1) && m.runs.n == 0, "runs: all that was left is taken back");
	told.code = UM_CUDA_NOT_SUPPORTED;
	is_int(um_mostly_set(&m, &gpu, two, 2), 0, "runs: refused");
	ok(m.runs.n == 0 && m.refused == 2, "runs: they are not, and that is counted");
	gpu.api = &nothing;
	is_int(um_mostly_set(&m, &gpu, two, 2), 0, "runs: a device that takes no advice");
	is_u64(m.runs.n, 0, "runs: has none");
	um_mostly_fini(&m);
}

/* --- program ----------------------------------------------------------------------------------------------------- */

static unsigned count(const struct um_program *p, enum um_action_kind kind)
{
	unsigned n = 0;

	for (size_t i = 0; i < p->lap[UM_PROGRAM_STEADY].actions.n; i++)
		n += p->lap[UM_PROGRAM_STEADY].actions.at[i].kind == kind;
	return n;
}

/* Slot 0 has two blocks and the first half of a third one; whose is the other half? */
static void program(uint32_t access_of_other, unsigned lets, unsigned outs, uint64_t blocks, const char *name)
{
	struct um_plan plan;
	struct um_program p;

	um_plan_init(&plan);
	um_program_init(&p);
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
	ok(um_program_build(&plan, 3, &p) == 0, "%s: builds", name);
	is_u64(p.mostly.n, 1, "%s: one run", name);
	is_u64(p.mostly.n ? p.mostly.at[0].bytes / MIB2 : 0, blocks, "%s: of whole blocks that nobody writes", name);
	is_u64(count(&p, UM_ACTION_LET), lets, "%s: they leave without a copy", name);
	is_u64(count(&p, UM_ACTION_OUT), outs, "%s: the others with one", name);
	is_u64(p.over, 0, "%s: there is always room", name);
	um_program_fini(&p);
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
	if (um_advisor_open(&adv, &o, gpu, a100))
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

static void op(const char *name, void *w, uint32_t access, int i)
{
	struct umadv_use use[] = {{w, 0, 0, access}, {x[i % 2], 0, 0, UM_READ}, {x[(i + 1) % 2], 0, 0, UM_WRITE}};
	struct umadv_op_info info = {.struct_size = sizeof info, .uses = use, .n_uses = 3, .ns = 20000};
	struct um_sim_kernel k = {.name = name, .announced = 1};

	if (umadv_op_ex(adv, stream, name, &info) || um_sim_run(gpu, stream, &k))
		tap_bail("no op");
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
	is_u64(t.faults, 0, "nothing faults");
	umadv_close(adv);

	start(1);
	ns = play(8, &t);
	is_u64(t.d2h_bytes, 0, "with it nothing is");
	ok(t.h2d_bytes, "but weights come and go");
	is_u64(t.faults, 0, "nothing faults");
	ok(ns < plain * 9 / 10, "and that is faster by a tenth");
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
	is_u64(t.d2h_bytes, 0, "with all its advice");
	umadv_close(adv);
}

int main(void)
{
	runs();
	program(UM_READ, 2, 2, 3, "both read");
	program(UM_UPDATE, 1, 3, 2, "the other one written");
	inference();
	return tap_done();
}
