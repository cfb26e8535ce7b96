/* SPDX-License-Identifier: Apache-2.0
 *
 * warm_start.h - binds the slots of a saved plan to live tensors, by name and size
 *
 * Start path: O(slots x tensors).
 */
#ifndef UM_RUNTIME_WARM_START_H
#define UM_RUNTIME_WARM_START_H

#include "model/schedule.h"
#include "record/registry.h"

void um_warm_start_bind(struct um_schedule *s, struct um_registry *registry);

#endif
