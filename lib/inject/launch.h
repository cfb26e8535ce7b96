/* SPDX-License-Identifier: Apache-2.0
 *
 * launch.h - the tensors that the parameters of a launch point into
 *
 * in    parameters as cuLaunchKernel takes them
 * out   uses of tensors
 * owns  nothing
 */
#ifndef UM_INJECT_LAUNCH_H
#define UM_INJECT_LAUNCH_H

#include "inject/leftovers.h"
#include "inject/session.h"

/* `f` NULL, or of unknown layout: only a buffer of parameters can be read. `now`: the launch is the thread's latest. 1,
 * or 0: not readable. Op path. */
int um_launch_scan(struct um_inject_uses *uses, const struct um_function_layout *f, void **params, void **extra,
		   int now);

#endif
