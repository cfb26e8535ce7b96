/* SPDX-License-Identifier: Apache-2.0
 *
 * worker.c - helper threads of libumadvise under the stand-in, run by the simulator
 *
 * Translates the event that a worker waits for, which is a handle of this driver.
 */
#include "standin/work.h"

struct proxy {
	struct um_worker sim; /* what the simulator runs */
	struct um_worker *worker;
	struct um_gpu *gpu;
};

/* A wait for an invalid event would never end: such a worker waits for a poke. */
static struct um_step step(void *arg)
{
	struct proxy *p = arg;
	struct um_standin *on = um_standin(); /* of the call that waits here */
	struct um_step s = p->worker->step(p->worker->arg);

	if (s.kind == UM_STEP_WAIT) {
		s.event = um_standin_event(s.event);
		s.kind = s.event ? UM_STEP_WAIT : UM_STEP_IDLE;
	}
	um_standin_on(on);
	return s;
}

int um_standin_worker_start(struct um_worker *worker)
{
	struct um_gpu *gpu;
	struct proxy *p;
	int err;

	if (!um_standin())
		return UM_CU_NOT_INITIALIZED;
	gpu = um_standin()->gpu;
	p = calloc(1, sizeof *p);
	if (!p)
		return UM_CUDA_NO_MEMORY;
	p->worker = worker;
	p->gpu = gpu;
	p->sim = (struct um_worker){.step = step, .arg = p, .name = worker->name};
	worker->impl = p;
	err = gpu->api->worker_start(gpu, &p->sim);
	if (err) {
		worker->impl = NULL;
		free(p);
	}
	return err;
}

void um_standin_worker_stop(struct um_worker *worker)
{
	struct proxy *p = worker->impl;

	if (!p)
		return;
	p->gpu->api->worker_stop(p->gpu, &p->sim); /* runs other workers, which may poke this one */
	worker->impl = NULL;
	free(p);
}

void um_standin_worker_poke(struct um_worker *worker)
{
	struct proxy *p = worker->impl;

	if (p) /* not stopped */
		p->gpu->api->worker_poke(p->gpu, &p->sim);
}
