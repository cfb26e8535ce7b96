/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_host.h - the host memory of a plan's evicted data
 *
 * in    a plan whose schedule is valid and whose hints keep the static rules
 * out   bytes of host memory of the blocks that its hints evict
 *
 * The driver gives a block of managed memory 2 MiB of host memory when the block leaves the device, or when the CPU
 * accesses it, and keeps them until the allocation is freed. So the host memory of a plan is not what is off the device
 * at once: it is the blocks that leave at any time. A plan that evicts the same blocks in every gap needs least. Where
 * an op is paged, the driver may evict any block. Memory of freed tensors that is discarded is not counted here: how
 * much is depends on the room that the compiled plan finds (replay/compiled_plan.h: `host`).
 */
#ifndef UM_MODEL_PLAN_HOST_H
#define UM_MODEL_PLAN_HOST_H

#include "model/plan.h"

/* 0 or -ENOMEM. O((hints + uses) log). */
int um_plan_host_bytes(const struct um_plan *p, uint64_t *bytes);

/* Bytes of all managed blocks: the most that the driver can take of the host. 0 or -ENOMEM. */
int um_plan_managed_bytes(const struct um_schedule *s, uint64_t *bytes);

#endif
