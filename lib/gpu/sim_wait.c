/* SPDX-License-Identifier: Apache-2.0
 *
 * The app waits for something that a worker does.
 */
#include "gpu/sim_state.h"

int um_sim_worker_wait(struct um_gpu *gpu, int (*done)(void *arg), void *arg)
{
	struct um_sim *sim = um_sim_of(gpu);
	int can = 1;

	um_sim_enter(sim);
	while (!done(arg) && !sim->lane && (can = um_sim_turn(sim, UM_SIM_FOREVER)))
		;
	if (!sim->lane)
		sim->app = um_sim_later(sim->app, sim->now);
	return um_sim_leave(sim, done(arg) ? UM_CUDA_OK : UM_CUDA_NOT_READY);
}
