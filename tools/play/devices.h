/* SPDX-License-Identifier: Apache-2.0
 *
 * devices.h - plays a trace on several simulated devices of one process at the same time
 *
 * in    as um_play, the number of devices, and how many of them share a link
 * out   a result for each device
 * owns  the devices, and a stack for each program, while they play
 *
 * Each device has a program of its own, as ranks or threads with a device each. Their calls are made in the order of
 * simulated time. Deterministic.
 */
#ifndef UM_PLAY_DEVICES_H
#define UM_PLAY_DEVICES_H

#include "play/player.h"

struct um_play_devices {
	unsigned n, per_link;
};

/* `out`: a result for each, to be ended by um_play_result_fini, also on failure. 0, or as um_play. `watch`, `opened`
 * and `gpu` of the options are not used; a plan is saved, and `planned` called, for the first device. */
int um_play_on_devices(const struct um_trace *trace, const struct um_play_options *o, const struct um_play_devices *d,
		       struct um_play_result *out);

#endif
