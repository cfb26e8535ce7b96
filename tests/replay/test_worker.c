/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers in threads of their own: what was put before sleep is asked for is done, however fast wake and sleep follow
 * each other; a worker that only watches does not fall asleep.
 */
#include "replay/worker.h"

#include "gpu/null.h"

#include "tap.h"

#include <unistd.h>

#define ROUNDS 3000

static atomic_uint put, done, polls, poll_until;

static struct um_step step(void *arg)
{
	unsigned d = atomic_load(&done);

	(void)arg;
	if (d != atomic_load(&put)) {
		atomic_store(&done, d + 1);
		return (struct um_step){.kind = UM_STEP_AGAIN};
	}
	if (atomic_load(&polls) < atomic_load(&poll_until)) {
		atomic_fetch_add(&polls, 1);
		return (struct um_step){.kind = UM_STEP_POLL};
	}
	return (struct um_step){.kind = UM_STEP_IDLE};
}

static int all_done(void *arg)
{
	(void)arg;
	return atomic_load(&done) == atomic_load(&put);
}

static int polled(void *arg)
{
	(void)arg;
	return atomic_load(&polls) == atomic_load(&poll_until);
}

int main(void)
{
	struct um_runner r;
	struct um_gpu *gpu;

	alarm(60); /* a missed wake waits for ever */
	if (um_null_open(&gpu, 1 << 30, 0) || um_runner_start(&r, gpu, "test", step, NULL))
		tap_bail("no worker");
	for (unsigned i = 0; i < ROUNDS; i++) {
		um_runner_wake(&r);
		atomic_fetch_add(&put, 1);
		um_runner_sleep(&r);
		if (i % 3 == 0)
			um_runner_until(&r, all_done, NULL);
	}
	um_runner_until(&r, all_done, NULL);
	is_u64(atomic_load(&done), ROUNDS, "all that was put while it was awake is done");
	um_runner_wake(&r);
	atomic_store(&poll_until, 100);
	um_runner_sleep(&r);
	um_runner_until(&r, polled, NULL);
	is_u64(atomic_load(&polls), 100, "watched events keep the worker awake");
	um_runner_stop(&r);
	um_runner_stop(&r);
	ok(1, "stopping twice succeeds");
	gpu->api->close(gpu);
	return tap_done();
}
