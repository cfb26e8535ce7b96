/* SPDX-License-Identifier: Apache-2.0
 *
 * Problems planted in small programs on the simulated GPU, each exported and read back: the report must find it, under
 * its name and with its tensor, and must not find it, or anything else, where it was not planted.
 */
#include "planted.h"

/* --- the problems ------------------------------------------------------------------------------------------------- */

static struct tensor *a, *b, *c;

static void two(void)
{
	a = tensor("weights", 40);
	b = tensor("other", 40);
}

static void demand(void)
{
	kernel("first", a, 3);
	kernel("second", b, 3);
}

static void one_with_other(void)
{
	a = tensor("weights", 24);
	b = tensor("other", 8);
}

static void late(void)
{
	kernel("first", a, 3);
	prefetch_on(a, a->bytes, p.side);
	kernel("second", b, 3);
	send_home(a);
}

static void early(void)
{
	prefetch(a);
	prefetch(b);
	kernel("second", b, 3);
	kernel("first", a, 3);
	send_home(a);
	send_home(b);
}

static void one(void)
{
	a = tensor("weights", 96);
}

/* 18 of the 32 pages of each block. */
static void overshoot(void)
{
	struct um_touch touch[48];
	unsigned n = (unsigned)(a->bytes / BLOCK);

	op("sparse");
	for (unsigned i = 0; i < n; i++) {
		touch[i] = (struct um_touch){.ptr = a->at + i * BLOCK, .bytes = 18 * 65536, .access = 3};
		use(a, i * BLOCK, 18 * 65536, 3);
	}
	launch("sparse", touch, n);
}

static void cpu_touch(void)
{
	kernel("first", a, 3);
	cpu(a, 8 * MIB);
}

static void ping_pong(void)
{
	for (int i = 0; i < 3; i++) {
		kernel("first", a, 3);
		cpu(a, 8 * MIB);
	}
}

/* Block by block, a tensor that the CPU works on and one of the GPU's. */
static void shared_setup(void)
{
	char *at = managed(BLOCK);
	uint64_t exported = p.allocated;

	um_sim_host_touch(p.gpu, at, BLOCK, 2);
	b = name("of the CPU", at, exported, 20 * 65536);
	a = name("weights", at + 20 * 65536, exported + 20 * 65536, 12 * 65536);
}

static void shared(void)
{
	kernel("first", a, 3);
	cpu(b, b->bytes);
}

static void read_mostly_setup(void)
{
	one_with_other();
	p.gpu->api->cudaMemAdvise(p.gpu, a->at, a->bytes, UM_ADV_SET_READ_MOSTLY, um_on_device(0));
}

static void collapse(void)
{
	kernel("reads", a, 1);
	kernel("writes", a, 3);
}

static void discarded(void)
{
	void *at = a->at;
	size_t bytes = a->bytes;
	int64_t now;

	kernel("reads", a, 1);
	um_sim_sync(p.gpu);
	now = (int64_t)um_sim_now(p.gpu);
	if (p.gpu->api->cudaMemDiscardBatchAsync(p.gpu, &at, &bytes, 1, 0, p.side))
		tap_bail("cannot discard");
	um_sim_sync(p.gpu);
	hint(UM_HINT_DISCARD, a, 0, now);
	kernel("writes", a, 2);
}

static void fresh(void)
{
	char *at = managed(32 * MIB);
	struct tensor *t = name("scratch", at, p.allocated, 32 * MIB);

	kernel("first", t, 2);
	um_sim_sync(p.gpu);
	p.gpu->api->cudaFree(p.gpu, at);
	p.n--;
}

static void clean(void)
{
	kernel("first", a, 1);
	kernel("second", b, 1);
}

static void dead_setup(void)
{
	a = tensor("weights", 32);
	b = tensor("scratch", 32);
}

static void dead(void)
{
	kernel("makes", b, 2);
	kernel("takes", b, 1);
	kernel("first", a, 3);
}

static void redundant(void)
{
	prefetch(a);
	kernel("first", a, 3);
}

static void refused(void)
{
	prefetch_on(a, a->bytes + 64 * MIB, NULL);
	kernel("first", a, 3);
}

static void none_setup(void)
{
}

/* What it should be: asked for ahead, in time, and sent home where the room is needed. */
static void orderly_setup(void)
{
	a = tensor("weights", 24);
	b = tensor("other", 24);
	c = tensor("third", 24);
	prefetch(a);
}

static void orderly(void)
{
	struct tensor *const turn[] = {a, b, c};

	for (int i = 0; i < 3; i++) {
		if (prefetch_on(turn[(i + 1) % 3], turn[i]->bytes, p.side))
			tap_bail("cannot prefetch");
		kernel("works", turn[i], 3);
		um_sim_sync(p.gpu);
		send_home(turn[i]);
	}
}

static void in_core(void)
{
	kernel("first", a, 3);
	kernel("second", b, 1);
}

/* --- found or not ------------------------------------------------------------------------------------------------- */

/* Hints of a plant are judged as what was planted. */
static void judged(enum um_reason reason)
{
	struct um_hint_row h = hints_of("weights");

	if (reason == UM_REASON_LATE)
		ok(h.issued == ITERATIONS && h.late == ITERATIONS, "each prefetch was late");
	else if (reason == UM_REASON_EARLY)
		is_u64(h.early, ITERATIONS, "each prefetch was evicted before use");
	else if (reason == UM_REASON_REDUNDANT)
		ok(h.redundant == ITERATIONS - 1, "each prefetch but the first was redundant");
	else if (reason == UM_REASON_REFUSED)
		ok(h.refused == ITERATIONS && h.issued == ITERATIONS, "each prefetch was refused");
}

static void planted(void)
{
	static const struct {
		enum um_reason reason;
		const char *tensor;
		uint64_t capacity;
		void (*setup)(void), (*iteration)(void);
	} plants[] = {
		{UM_REASON_DEMAND, "weights", 64 * MIB, two, demand},
		{UM_REASON_LATE, "weights", 64 * MIB, one_with_other, late},
		{UM_REASON_EARLY, "weights", 64 * MIB, two, early},
		{UM_REASON_OVERSHOOT, "weights", 64 * MIB, one, overshoot},
		{UM_REASON_CPU, "weights", 64 * MIB, one_with_other, cpu_touch},
		{UM_REASON_PING_PONG, "weights", 64 * MIB, one_with_other, ping_pong},
		{UM_REASON_SHARED, "weights", 64 * MIB, shared_setup, shared},
		{UM_REASON_COLLAPSE, "weights", 64 * MIB, read_mostly_setup, collapse},
		{UM_REASON_DISCARDED, "weights", 64 * MIB, one_with_other, discarded},
		{UM_REASON_FRESH, "scratch", 64 * MIB, none_setup, fresh},
		{UM_REASON_CLEAN, "weights", 64 * MIB, two, clean},
		{UM_REASON_DEAD, "scratch", 48 * MIB, dead_setup, dead},
		{UM_REASON_REDUNDANT, "weights", 64 * MIB, one_with_other, redundant},
		{UM_REASON_REFUSED, "weights", 64 * MIB, one_with_other, refused},
	};

	for (size_t i = 0; i < sizeof plants / sizeof *plants; i++) {
		const struct um_finding *f;

		play(plants[i].capacity, plants[i].setup, plants[i].iteration);
		f = found(plants[i].reason, plants[i].tensor);
		if (!ok(f != NULL, "planted: %s of %s", um_reason_name(plants[i].reason), plants[i].tensor))
			say();
		ok(f && (f->saving_ns || plants[i].reason == UM_REASON_REFUSED) && *f->evidence && *f->advice &&
			   *f->estimate,
		   "%s: with its figures and what to do", um_reason_name(plants[i].reason));
		if (f && (f->reason == UM_REASON_CPU || f->reason == UM_REASON_PING_PONG))
			ok(strstr(f->evidence, "checkpoint of app") != NULL, "%s: the finding names the CPU's function",
			   um_reason_name(f->reason));
		judged(plants[i].reason);
		forget();
	}
}

/* A call that failed, in a program that says nothing. */
static void mute_refused(void)
{
	const struct um_activity call = {.kind = UM_ACT_CALL,
					 .begin = (int64_t)um_sim_now(p.gpu),
					 .end = (int64_t)um_sim_now(p.gpu) + 1000,
					 .process = 1,
					 .thread = 1,
					 .correlation = 1u << 30,
					 .name = "cudaMemPrefetchAsync_v8000",
					 .error = 101};

	um_activity_feed(p.writer, &call);
	kernel("first", a, 3);
}

/* Programs that have never heard of us: no tensors, ops and hints in the export. */
static void mute(void)
{
	static const struct {
		enum um_reason reason;
		void (*setup)(void), (*iteration)(void);
	} plants[] = {
		{UM_REASON_DEMAND, two, demand},
		{UM_REASON_CPU, one_with_other, cpu_touch},
		{UM_REASON_PING_PONG, one_with_other, ping_pong},
		{UM_REASON_COLLAPSE, read_mostly_setup, collapse},
		{UM_REASON_FRESH, none_setup, fresh},
		{UM_REASON_REFUSED, one_with_other, mute_refused},
	};

	p.speechless = 1;
	for (size_t i = 0; i < sizeof plants / sizeof *plants; i++) {
		int there = 0;

		play(64 * MIB, plants[i].setup, plants[i].iteration);
		for (size_t k = 0; k < report.findings.list.n; k++)
			there |= report.findings.list.at[k].reason == plants[i].reason;
		if (!ok(there, "the finding is made in a program without the library: %s",
			um_reason_name(plants[i].reason)))
			say();
		forget();
	}
	play(64 * MIB, one_with_other, in_core);
	none_found("all fits, in a program that says nothing");
	play(64 * MIB, orderly_setup, orderly);
	none_found("asked for in time, in a program that says nothing");
	p.speechless = 0;
}

/* Findings of other reasons: what each would save of an iteration, summed. */
static double share_besides(enum um_reason reason)
{
	double sum = 0;

	for (size_t i = 0; i < report.findings.list.n; i++)
		if (report.findings.list.at[i].reason != reason)
			sum += report.findings.list.at[i].share;
	return sum;
}

int main(void)
{
	planted_begin();
	planted();
	mute();
	p.faultless = 1;
	play(64 * MIB, two, demand);
	if (!ok(found(UM_REASON_DEMAND, "weights") != NULL, "demand, where page faults were not recorded"))
		say();
	forget();
	p.faultless = 0;
	play(64 * MIB, one_with_other, in_core);
	none_found("all fits");
	play(64 * MIB, orderly_setup, orderly);
	ok(hints_of("weights").useful == ITERATIONS && hints_of("third").useful == ITERATIONS,
	   "each prefetch was useful");
	none_found("asked for in time");
	workload("stencil_slabs", UM_PLAY_LOOKAHEAD, 2);
	ok(found(UM_REASON_WAITED, NULL) && found(UM_REASON_WAITED, NULL)->severity == UM_SEVERITY_HIGH &&
		   found(UM_REASON_WAITED, NULL)->share <= 1,
	   "a run that waits for prefetches most of its time has a finding of high severity");
	ok(share_besides(UM_REASON_WAITED) < 0.06,
	   "its other findings are worth less than 6 %% of an iteration together");
	forget();
	if (!tap_few()) {
		none_in_workload("alexnet_b200", UM_PLAY_ON_DEMAND, 0.5);
		none_in_workload("alexnet_b200", UM_PLAY_LOOKAHEAD, 0.5);
		none_in_workload("alexnet_b200", UM_PLAY_LOOKAHEAD, 1.5);
		none_in_workload("cg_laplace3d", UM_PLAY_LOOKAHEAD, 1.5);
	}
	planted_end();
	return tap_done();
}
