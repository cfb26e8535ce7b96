/* SPDX-License-Identifier: Apache-2.0
 *
 * node.h - the simulated devices of one process: what they have in common, and the memory that they share
 *
 * in    devices that are opened beside one another
 * out   one lock, one event loop, twins of shared memory
 * owns  the node, until its last device is closed
 *
 * All of it is guarded by the node's lock.
 */
#ifndef UM_SIM_NODE_H
#define UM_SIM_NODE_H

#include "sim/sim.h"

#include <pthread.h>

struct um_sim;
struct um_sim_block;
struct um_sim_lane;
struct um_sim_mem;
struct um_sim_share;

/* The program of a device, if it takes turns with others. */
struct um_sim_program {
	const struct um_sim_turns *turns; /* NULL: it does not */
	uint64_t seen; /* while it yields: node->changes */
	int waits; /* likewise: for something to happen */
};

/* What they have in common. */
struct um_sim_node {
	uint64_t id; /* no other node of the process has it */
	struct um_sim *sim[UM_SIM_DEVICES_MAX]; /* NULL: closed */
	unsigned n, open; /* devices that were opened; of them, open */
	pthread_mutex_t lock; /* recursive: workers call from inside the loop */
	pthread_cond_t changed; /* signalled when something was enqueued, or happened */
	unsigned waiting; /* threads that wait for news */
	uint64_t changes; /* number of signals */
	uint64_t seq;
	struct um_sim_lane *lane; /* the worker whose step() is running; NULL: the program calls */
	int stepping; /* a stream's command is taking effect: host code may run */
	uint32_t mem_serial;
	int follow_stale; /* some block has stale pages */
	int follow_ran; /* host code touched managed memory in a device's name */
	uint64_t follow_faults; /* page faults of the process at the last look */
};

/* Memory that all devices use has a twin, and blocks, on each of them. One of them has a block at a time (`active`):
 * there the host's part of its state is current. Elsewhere only duplicates of read-mostly pages are resident. */
struct um_sim_share {
	struct um_sim_mem *twin[UM_SIM_DEVICES_MAX];
	uint8_t active[]; /* [blocks] the device */
};

/* node.c */
int um_sim_node_join(struct um_sim *sim, struct um_gpu *beside); /* NULL: a new node. 0, -ENOMEM, -EINVAL */
void um_sim_node_leave(struct um_sim *sim); /* locked; unlocks */
/* Programs that take turns: is something to be done on another device before time `at`? Lets the others go on; with
 * `waits`, 1: something has happened, and the caller's wait may have ended. */
int um_sim_turn_of_other(const struct um_sim *sim, uint64_t at);
int um_sim_turn_give(struct um_sim *sim, int waits);
struct um_sim *um_sim_beside(const struct um_sim *sim, int device); /* the process's device, or NULL */
/* A thread that goes on to another device takes its time along. */
void um_sim_carry_in(struct um_sim *sim);
void um_sim_carry_out(const struct um_sim *sim);
/* allocations.c */
struct um_sim_mem *um_sim_mem_any(struct um_sim **sim, uint64_t addr); /* of any device: the one that allocated it */
int um_sim_mem_blocks(struct um_sim_mem *m); /* 0 or -ENOMEM */
int um_sim_mem_add(struct um_sim *sim, struct um_sim_mem *m); /* -ENOMEM: not added */
void um_sim_mem_remove(struct um_sim *sim, struct um_sim_mem *m); /* and frees it, but for its twins */
void um_sim_mem_free(struct um_sim_mem *m); /* not added, or not completely made */
/* share.c. Gives new memory twins on the other devices. 0 or -ENOMEM: it has none. */
int um_sim_share_make(struct um_sim *sim, struct um_sim_mem *m);
/* The device is being closed: its own memory ends, that of others loses its twin here. */
void um_sim_mem_leave(struct um_sim *sim, struct um_sim_mem *m);
void um_sim_share_end(struct um_sim_node *node, struct um_sim_share *share, const struct um_sim_mem *m);
/* The block on the device that has it, and that device. */
struct um_sim_block *um_sim_active(struct um_sim **sim, struct um_sim_block *b);
/* From now on this device has the block: what others have of it leaves to the host, but for duplicates. */
void um_sim_own(struct um_sim *sim, struct um_sim_block *b, uint64_t *t);
void um_sim_alone(struct um_sim *sim, struct um_sim_block *b, uint32_t pages); /* duplicates elsewhere end */
uint32_t um_sim_elsewhere(const struct um_sim *sim, const struct um_sim_block *b); /* pages with duplicates there */

#endif
