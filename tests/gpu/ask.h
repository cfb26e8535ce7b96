/* SPDX-License-Identifier: Apache-2.0
 *
 * ask.h - asks the guard about the device at hand, and ends the program where it says no
 *
 * Before a program allocates: how much managed memory it is about to have in all, and the budget that stands for a
 * small card. The rule is tools/probe/guard.h's.
 */
#ifndef ASK_H
#define ASK_H

#include "launch.h"

extern "C" {
#include "gpu/device.h"
#include "probe/guard.h"
}

static inline void ask(uint64_t managed, uint64_t budget)
{
	struct um_device_options options = {UM_VIA_ANY, -1, 0, 0};
	static struct um_gpu *device;
	char why[200] = "";

	if (!device && um_device_open(&device, &options, why, sizeof(why))) {
		printf("Bail out! %s\n", why);
		exit(3);
	}
	if (!um_probe_guard(device, managed, budget, why, sizeof(why)))
		return;
	printf("Bail out! %s\n", why);
	exit(3);
}

#endif
