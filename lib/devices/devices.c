/* SPDX-License-Identifier: Apache-2.0 */
#include "devices/devices.h"

#include "sim/sim.h"

#include <string.h>

static const struct um_simulator *const simulators[] = {&um_sim_simulator};

const struct um_simulator *um_simulator_find(const char *name)
{
	for (size_t i = 0; i < sizeof simulators / sizeof *simulators; i++)
		if (strcmp(simulators[i]->name, name) == 0)
			return simulators[i];
	return NULL;
}
