/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers in threads of their own: work is never missed, however short the pauses between two pieces of it; a worker
 * without work sleeps; a worker that does not return from a call of the device is left behind.
 */
#include "replay/worker.h"

#include "base/clock.h"
#include "gpu/null.h"

#include "tap.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

#define ROUNDS 3000

static atomic_uint put, done, steps, blocks;

static struct um_step step(void *arg)
{
	unsigned d = atomic_load(&done);

	(void)arg;
	atomic_fetch_add(&steps, 1);
	while (atomic_load(&blocks)) /* a call that does not return */
		usleep(1000);
	if (d == atomic_load(&put))
		return (struct um_step){.kind = UM_STEP_IDLE};
	atomic_store(&done, d + 1);
	return (struct um_step){.kind = UM_STEP_AGAIN};
}

static void give(struct um_runner *r, unsigned n)
{
	atomic_fetch_add(&put, n);
	if (um_runner_sleepers(r->group, r->gpu) & r->bit)
		um_runner_wake(r);
}

static void wait_done(void)
{
	while (atomic_load(&done) != atomic_load(&put))
		sched_yield();
}

static void wait_asleep(struct um_runner *r)
{
	while (!(um_runner_sleepers(r->group, r->gpu) & r->bit))
		sched_yield();
	usleep(1000); /* its last look is over, too, mostly */
}

static struct um_runner r;
static struct um_runner_group group;

int main(void)
{
	struct um_gpu *gpu;
	unsigned before;
	uint64_t wakes;

	alarm(60); /* a missed wake waits for ever */
	if (um_null_open(&gpu, 1 << 30, 0) || um_runner_start(&r, gpu, &group, 3, "test", step, NULL))
		tap_bail("no worker");
	for (unsigned i = 0; i < ROUNDS; i++) {
		give(&r, 1 + i % 2);
		if (i % 3)
			wait_done();
		if (i % 64 == 0)
			wait_asleep(&r);
	}
	wait_done();
	is_u64(atomic_load(&done), ROUNDS + ROUNDS / 2, "all work that was given is done");
	wait_asleep(&r);
	before = atomic_load(&steps);
	usleep(20000);
	is_u64(atomic_load(&steps), before, "a worker without work does not look for any");
	wakes = atomic_load(&group.wakes);
	give(&r, 1);
	wait_done();
	is_u64(atomic_load(&group.wakes), wakes + 1, "work wakes a sleeping worker once");
	is_int(um_runner_stop(&r), 0, "a sleeping worker is stopped");
	is_int(um_runner_stop(&r), 0, "stopping twice succeeds");

	atomic_store(&blocks, 1);
	before = atomic_load(&steps);
	if (um_runner_start(&r, gpu, &group, 3, "test", step, NULL))
		tap_bail("no worker");
	while (atomic_load(&steps) == before)
		sched_yield();
	is_int(um_runner_stop(&r), -ETIMEDOUT, "a worker in a call that does not return is left behind");
	atomic_store(&blocks, 0);
	usleep(20000);
	gpu->api->close(gpu);
	return tap_done();
}
