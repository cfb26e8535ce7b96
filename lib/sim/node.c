/* SPDX-License-Identifier: Apache-2.0
 *
 * node.c - the simulated devices of one process: what they have in common
 */
#include "sim/state.h"

#include <stdatomic.h>

static int lock_init(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;
	int err;

	if (pthread_mutexattr_init(&attr))
		return -ENOMEM;
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	err = pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
	return err ? -ENOMEM : 0;
}

static struct um_sim_node *node_new(void)
{
	static _Atomic uint64_t nodes;
	struct um_sim_node *node = calloc(1, sizeof *node);

	if (!node)
		return NULL;
	if (lock_init(&node->lock))
		goto free_node;
	if (pthread_cond_init(&node->changed, NULL))
		goto destroy_lock;
	node->id = atomic_fetch_add(&nodes, 1) + 1;
	return node;

destroy_lock:
	pthread_mutex_destroy(&node->lock);
free_node:
	free(node);
	return NULL;
}

/* Memory has a twin on each device from its allocation on, so no device comes later. */
int um_sim_node_join(struct um_sim *sim, struct um_gpu *beside)
{
	struct um_sim_node *node = beside ? um_sim_of(beside)->node : node_new();
	int err = 0;

	if (!node)
		return -ENOMEM;
	pthread_mutex_lock(&node->lock);
	if (node->n == UM_SIM_DEVICES_MAX || node->mem_serial)
		err = -EINVAL;
	if (!err) {
		sim->gpu.caps.device = (int)node->n;
		node->sim[node->n++] = sim;
		node->open++;
		sim->node = node;
	}
	pthread_mutex_unlock(&node->lock);
	return err;
}

void um_sim_node_leave(struct um_sim *sim)
{
	struct um_sim_node *node = sim->node;

	int last;

	node->sim[um_sim_device(sim)] = NULL;
	last = --node->open == 0;
	pthread_mutex_unlock(&node->lock);
	if (!last)
		return;
	pthread_cond_destroy(&node->changed);
	pthread_mutex_destroy(&node->lock);
	free(node);
}

struct um_sim *um_sim_beside(const struct um_sim *sim, int device)
{
	return device >= 0 && (unsigned)device < sim->node->n ? sim->node->sim[device] : NULL;
}

static _Thread_local struct {
	uint64_t node, at;
} carried;

void um_sim_take_turns(struct um_gpu *gpu, const struct um_sim_turns *turns)
{
	struct um_sim *sim = um_sim_of(gpu);

	pthread_mutex_lock(&sim->node->lock);
	sim->program.turns = turns;
	pthread_mutex_unlock(&sim->node->lock);
}

/* A program that waits has to look first whether what has happened ends its wait; another one is ahead of time `at`, or
 * has still to do what it does before. */
int um_sim_turn_of_other(const struct um_sim *sim, uint64_t at)
{
	const struct um_sim_node *node = sim->node;

	if (!sim->program.turns || node->lane || node->stepping)
		return 0;
	for (unsigned d = 0; d < node->n; d++) {
		const struct um_sim *o = node->sim[d];
		const struct um_sim_program *p = o ? &o->program : NULL;

		if (o && o != sim && p->turns && (p->waits ? p->seen != node->changes : o->app < at))
			return 1;
	}
	return 0;
}

int um_sim_turn_give(struct um_sim *sim, int waits)
{
	sim->program.seen = sim->node->changes;
	sim->program.waits = waits;
	sim->program.turns->yield(sim->program.turns->user);
	sim->program.waits = 0;
	return waits && sim->program.seen != sim->node->changes;
}

void um_sim_carry_in(struct um_sim *sim)
{
	if (sim->node->n > 1 && !sim->program.turns && carried.node == sim->node->id)
		sim->app = um_sim_later(sim->app, carried.at);
}

void um_sim_carry_out(const struct um_sim *sim)
{
	if (sim->node->n > 1) {
		carried.node = sim->node->id;
		carried.at = sim->app;
	}
}
