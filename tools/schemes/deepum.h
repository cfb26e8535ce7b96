/* SPDX-License-Identifier: Apache-2.0
 *
 * deepum.h - DeepUM, a driver that prefetches expected faults, on the simulated device
 */
#ifndef UM_SCHEMES_DEEPUM_H
#define UM_SCHEMES_DEEPUM_H

/* "deepum"; see gpu/sim.h. */
struct um_sim_driver;
extern const struct um_sim_driver um_deepum_driver;

#endif
