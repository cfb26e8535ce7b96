/* SPDX-License-Identifier: Apache-2.0
 *
 * chosen_device.h - the device of a context, its profile and its memory budget
 *
 * in    options, the environment
 * out   a table of device functions, a profile, a budget
 * owns  the device
 *
 * Start path.
 */
#ifndef UM_RUNTIME_CHOSEN_DEVICE_H
#define UM_RUNTIME_CHOSEN_DEVICE_H

#include "gpu/gpu.h"
#include "model/profile.h"
#include "replay/block_lru.h"
#include "runtime/notices.h"
#include "runtime/options.h"

struct um_chosen_device {
	struct um_gpu *gpu; /* NULL: not open */
	int simulated; /* the simulated GPU of this process, for umadv_sim_* */
	int real; /* time is real, so that ops are measured */
	int cuda; /* opened by um_device_open: errors may be sticky */
	int profile_ignored; /* the profile named by UMADVISE_PROFILE cannot be read */
	void *evicted; /* memory of the measurement of evictions, freed at close; NULL: none */
	struct um_profile profile;
	struct um_profile unadjusted; /* the same before um_chosen_device_evicts_at, if evictions were measured */
	unsigned evicters; /* threads that evict by um_gpu_api.evict; 0: prefetches evict */
	double evict_rate; /* as measured, bytes/s; 0: not known */
	uint64_t budget; /* bytes of managed memory that hints may make resident */
	uint64_t most; /* the same while the context has the device for itself and has no unmanaged memory */
	uint64_t granted; /* bytes of the device that the context may use; UINT64_MAX: all */
	uint64_t unmanaged; /* bytes of UMADV_COMM */
	uint64_t joint; /* bytes that contexts of other devices use, too (context_joint.c) */
	uint64_t host_budget; /* bytes of host memory for evicted data; 0: no limit */
	struct um_block_lru *on_host; /* blocks that have host memory, as many as may; NULL: no limit */
	char host_limit[260]; /* where that comes from */
	int limited; /* the requested budget is less than the device's memory */
	/* The device has more memory than the budget, so its driver does not evict in time to keep the budget. The
	 * default budget is not a limit: it leaves room for other allocations. */
	int larger;
	int starved; /* not even a block is granted: hints make nothing resident */
};

/* Takes ownership of `gpu`, also on failure; NULL: as the options say. `profile`: of the device; NULL: as the options
 * say. 0, -ENOMEM, -EINVAL, -ENODEV. With a budget below one block the strategy becomes on-demand. */
int um_chosen_device_open(struct um_chosen_device *d, struct um_options *options, struct um_gpu *gpu,
			  const struct um_profile *profile, struct um_notices *notices);
void um_chosen_device_close(struct um_chosen_device *d);

/* Evictions reach this rate in bytes/s (0: not known), one after the other where prefetches make them: plans and
 * predictions reckon with it. Where the library makes all evictions it takes the place of the rate of copies. */
void um_chosen_device_evicts_at(struct um_chosen_device *d, double rate);

/* Bytes of the device that its contexts may use, all together. */
uint64_t um_chosen_device_whole(const struct um_chosen_device *d);
/* All contexts of the device have `bytes` together, whatever was free when this one was opened. `asked`: the requested
 * budget, 0: none. */
void um_chosen_device_shares(struct um_chosen_device *d, uint64_t bytes, uint64_t asked);
/* Other contexts use the device, too: this one's share is `bytes`, unmanaged memory included. */
void um_chosen_device_grant(struct um_chosen_device *d, uint64_t bytes);
/* Bytes of the device that the context may use while it has the device for itself. */
uint64_t um_chosen_device_most(const struct um_chosen_device *d);

/* Unmanaged memory was allocated (`bytes`), or freed (their negative): where the budget is the device's memory, less is
 * left for managed memory, at least one block. Plans made from then on keep it. */
void um_chosen_device_take(struct um_chosen_device *d, int64_t bytes);

/* `bytes` of the context's memory are shared with other devices: the budget is less by them, but at least a half stays.
 */
void um_chosen_device_join(struct um_chosen_device *d, uint64_t bytes);

/* The CUDA error after which the device takes no calls any more, or 0. */
int um_chosen_device_lost(const struct um_chosen_device *d);

#endif
