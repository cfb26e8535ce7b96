/* SPDX-License-Identifier: Apache-2.0
 *
 * wakeups.c - replays N iterations of the op path's program: wakeups N. Prints the hint calls, the 2 MiB blocks that
 * they move, and the wake-ups of helper threads. Ops and copies take time here, as sleeps: a copy lasts COPY_NS a
 * block, an op OP_NS.
 */
#include "../tests/runtime/oppath_app.h"
#include "replay/executor_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define OP_NS 400000
#define COPY_NS 80000

static struct um_gpu_api table;
static const struct um_gpu_api *null_api;

static void nap(long ns)
{
	struct timespec t = {0, ns};

	nanosleep(&t, NULL);
}

/* Whoever waits for a copy calls this. */
static int event_sync(struct um_gpu *gpu, um_event_handle event)
{
	nap(COPY_NS);
	return null_api->cudaEventSynchronize(gpu, event);
}

static int ops(const struct app *a)
{
	int err = 0;

	for (int i = 0; i < 2 * APP_LAYERS && !err; i++) {
		int k = i < APP_LAYERS ? i : 2 * APP_LAYERS - 1 - i;

		err = i < APP_LAYERS
			      ? umadv_op(a->adv, NULL, "forward",
					 UMADV_USES(UMADV_READ(a->y[k]), UMADV_READ(a->w[k]), UMADV_WRITE(a->y[k + 1])))
			      : umadv_op(a->adv, NULL, "backward",
					 UMADV_USES(UMADV_READ(a->y[k + 1]), UMADV_UPDATE(a->w[k]),
						    UMADV_READ(a->y[k])));
		nap(OP_NS);
	}
	return err;
}

int main(int argc, char **argv)
{
	struct umadv_stats s = {.struct_size = sizeof s};
	int n = argc > 1 ? atoi(argv[1]) : 0;
	struct app a;
	int err;

	setenv("UMADVISE_PLAN_THREAD", "off", 0); /* plans begin in known iterations */
	err = app_open(&a);
	if (err)
		return 1;
	null_api = a.adv->device.gpu->api;
	table = *null_api;
	table.cudaEventSynchronize = event_sync;
	a.adv->device.gpu->api = &table;
	for (int i = 0; i < 5 + n && !err; i++) {
		err = umadv_iter(a.adv, NULL);
		if (!err)
			err = ops(&a);
	}
	umadv_stats_get(a.adv, &s);
	printf("%d %llu %llu %llu %llu\n", 2 * APP_LAYERS, (unsigned long long)s.hints_issued,
	       (unsigned long long)((s.prefetch_bytes + s.evict_bytes + s.discard_bytes) / UM_BLOCK_BYTES),
	       (unsigned long long)atomic_load(&a.adv->replan.executor->lanes.group.wakes),
	       (unsigned long long)s.gates_late);
	umadv_close(a.adv);
	return err != 0;
}
