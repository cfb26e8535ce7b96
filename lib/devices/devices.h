/* SPDX-License-Identifier: Apache-2.0
 *
 * devices.h - the simulated devices that are linked into this library, by name
 *
 * in    the name of a simulator
 * out   its open function
 * owns  the list: a new simulator is one row in devices.c
 *
 * The runtime knows simulators only through this list and the tables that they fill. Start path; any thread.
 */
#ifndef UM_DEVICES_DEVICES_H
#define UM_DEVICES_DEVICES_H

#include "gpu/simulation.h"

/* NULL: none of that name. */
const struct um_simulator *um_simulator_find(const char *name);

#endif
