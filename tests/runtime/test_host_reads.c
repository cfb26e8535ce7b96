/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads by the CPU in every iteration, on the simulated GPU: the program waits for evictions of what it is about to
 * read, and for no others. A block of which the CPU reads little stays on the device.
 */
#include "umadvise.h"

#include "replay/executor_state.h"
#include "runtime/context.h"
#include "sim/sim.h"
#include "tap.h"

#define MIB (1ull << 20)
#define LARGE (160 * MIB)
#define RESULT (36 * MIB) /* more than the workers of a lane evict at once */
#define PAGE (64ull << 10)
#define ITERATIONS 8

struct run {
	double read; /* sum of what the CPU read */
	/* of the last read: */
	uint32_t pending; /* other evictions when the CPU began to read */
	uint64_t faults; /* of the CPU */
	uint64_t moved; /* of the last iteration: bytes, in both directions */
	int err;
};

static void count(void *arg)
{
	*(float *)arg += 1;
}

static struct umadv *open_sim(const char *strategy, uint64_t budget)
{
	struct umadv_options o;
	struct umadv *adv = NULL;

	umadv_options_init(&o);
	o.device = UMADV_DEVICE_SIM;
	o.budget = budget;
	o.strategy = strategy;
	o.check = UMADV_CHECK_DISCARDS;
	if (umadv_open(&adv, &o))
		tap_bail("no simulated device");
	return adv;
}

static uint64_t cpu_faults(struct umadv *adv)
{
	struct um_tally t;

	um_sim_tally(adv->device.gpu, &t);
	return t.cpu_faults;
}

static uint32_t pending(const struct umadv *adv)
{
	const struct um_executor *ex = adv->replan.executor;

	return ex ? um_lanes_evict_queued(&ex->lanes, UM_LANE_OUT) - um_lanes_evict_done(&ex->lanes, UM_LANE_OUT) : 0;
}

/* The CPU reads the tensor, after the ops that it was given. */
static int look(struct umadv *adv, struct run *r, float *y, uint64_t bytes)
{
	struct um_gpu *gpu = adv->device.gpu;
	int err = umadv_host(adv, "look", UMADV_USES(UMADV_READ_RANGE(y, bytes)));
	uint64_t before = cpu_faults(adv);

	r->pending = pending(adv);
	if (!err)
		err = gpu->api->cudaStreamSynchronize(gpu, NULL) || um_sim_host_touch(gpu, y, bytes, UM_READ) ? -1 : 0;
	r->faults = cpu_faults(adv) - before;
	r->read += err ? 0 : *y;
	return err;
}

/* One op uses nearly all memory, and the next one other memory. The CPU reads a result in between. */
static int iterate(struct umadv *adv, struct run *r, float *const *large, float *y)
{
	int err = umadv_iter(adv, NULL);

	if (!err)
		err = umadv_op(adv, NULL, "first", UMADV_USES(UMADV_UPDATE(large[0]), UMADV_UPDATE(y)));
	if (!err)
		err = umadv_sim_run(adv, NULL, count, y);
	if (!err)
		err = look(adv, r, y, RESULT);
	if (!err)
		err = umadv_op(adv, NULL, "second", UMADV_USES(UMADV_UPDATE(large[1])));
	return err ? err : umadv_sim_run(adv, NULL, count, large[1]);
}

static struct run play(const char *strategy)
{
	struct umadv *adv = open_sim(strategy, LARGE + RESULT + 4 * MIB);
	float *large[2], *y;
	struct run r = {0};

	for (int i = 0; i < 2 && !r.err; i++)
		r.err = umadv_alloc(adv, (void **)&large[i], LARGE, "large", UMADV_PARAM);
	if (!r.err)
		r.err = umadv_alloc(adv, (void **)&y, RESULT, "result", UMADV_OTHER);
	for (int i = 0; i < ITERATIONS && !r.err; i++)
		r.err = iterate(adv, &r, large, y);
	if (!r.err)
		r.err = umadv_sim_sync(adv);
	umadv_close(adv);
	return r;
}

static void right_evictions(void)
{
	struct run plain = play("on-demand"), hints = play(NULL);

	is_int(plain.err | hints.err, 0, "a loop in which the CPU reads a result runs");
	ok(hints.read == plain.read, "the CPU reads the same as without hints (%.9g, %.9g)", hints.read, plain.read);
	is_u64(hints.faults, 0, "what the CPU reads was evicted before it reads");
	ok(hints.pending > 0, "evictions of other memory go on while the CPU reads (%u)", hints.pending);
}

static uint64_t moved(struct umadv *adv)
{
	struct um_tally t;

	umadv_sim_sync(adv);
	um_sim_tally(adv->device.gpu, &t);
	return t.h2d_bytes + t.d2h_bytes;
}

static int step(struct umadv *adv, struct run *r, float *large, float *small, float *loss, uint64_t bytes)
{
	int err = umadv_iter(adv, NULL);

	if (!err)
		err = umadv_op(adv, NULL, "forward", UMADV_USES(UMADV_UPDATE(large), UMADV_READ(small)));
	if (!err)
		err = umadv_sim_run(adv, NULL, count, large);
	if (!err)
		err = umadv_op(adv, NULL, "loss", UMADV_USES(UMADV_UPDATE(loss), UMADV_UPDATE(small)));
	if (!err)
		err = umadv_sim_run(adv, NULL, count, loss);
	return err ? err : look(adv, r, loss, bytes);
}

/* All fits. The CPU reads `bytes` of a tensor beside a small one. */
static struct run read_part(const char *strategy, uint64_t bytes)
{
	struct umadv *adv = open_sim(strategy, 64 * MIB);
	float *large, *small, *loss;
	struct run r = {.err = umadv_alloc(adv, (void **)&large, 8 * MIB, "large", UMADV_PARAM)};

	if (!r.err)
		r.err = umadv_alloc(adv, (void **)&small, MIB, "small", UMADV_PARAM);
	if (!r.err)
		r.err = umadv_alloc(adv, (void **)&loss, bytes, "loss", UMADV_OTHER);
	for (int i = 0; i < ITERATIONS && !r.err; i++) {
		uint64_t before = moved(adv);

		r.err = step(adv, &r, large, small, loss, bytes);
		r.moved = moved(adv) - before;
	}
	umadv_close(adv);
	return r;
}

static void parts(void)
{
	struct run plain = read_part("on-demand", 4), hints = read_part(NULL, 4), more = read_part(NULL, MIB / 2);

	is_int(plain.err | hints.err | more.err, 0, "a loop in which the CPU reads a loss runs");
	ok(hints.read == plain.read, "the CPU reads the same loss as without hints (%.9g, %.9g)", hints.read,
	   plain.read);
	ok(hints.moved && hints.moved <= 2 * PAGE, "only a page of the loss moves, not its block (%llu)",
	   (unsigned long long)hints.moved);
	is_u64(more.faults, 0, "a block of which the CPU reads much is evicted before");
}

int main(void)
{
	right_evictions();
	parts();
	return tap_done();
}
