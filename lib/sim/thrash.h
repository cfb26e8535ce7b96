/* SPDX-License-Identifier: Apache-2.0
 *
 * thrash.h - the detector of pages for which CPU and GPU fight
 *
 * in: copies and faults. out: pages that may not be served now, or are pinned. The state is the block's, freed with it.
 */
#ifndef UM_SIM_THRASH_H
#define UM_SIM_THRASH_H

#include <stdint.h>

struct um_sim;
struct um_sim_block;
struct um_sim_thrash;

struct um_sim_pin { /* a page that is pinned because of thrashing */
	struct um_sim_block *block;
	unsigned page;
	uint64_t until; /* ns */
};

void um_sim_thrash_init(struct um_sim *sim);
/* Pages were copied for a fault, to the GPU or to the CPU; or for another reason. */
void um_sim_thrash_moved(struct um_sim *sim, struct um_sim_block *b, uint32_t pages, int to_gpu, uint64_t t);
void um_sim_thrash_reset(struct um_sim *sim, struct um_sim_block *b, uint32_t pages);
void um_sim_thrash_free(struct um_sim *sim, struct um_sim_block *b); /* memory is freed */
/* A fault of the GPU or of the CPU: returns the pages that may not be served now, and lengthens `*until` to the end of
 * their period. Pins pages that are due. */
uint32_t um_sim_thrash_throttled(struct um_sim *sim, struct um_sim_block *b, uint32_t pages, int gpu, uint64_t t,
				 uint64_t *until);
/* Pages pinned to the host; of `pages`, those pinned to the host that the processor fought for. */
uint32_t um_sim_thrash_pinned(const struct um_sim_block *b);
uint32_t um_sim_thrash_users(const struct um_sim_block *b, uint32_t pages, int gpu);
uint32_t um_sim_thrash_pages(const struct um_sim_block *b); /* pages excluded from the density prefetcher */
void um_sim_thrash_expire(struct um_sim *sim, uint64_t t);

#endif
