/* SPDX-License-Identifier: Apache-2.0
 *
 * slower.h - --at-most-slower of plan and simulate: the least memory that costs no more than a share of time
 */
#ifndef UM_TOOLS_SLOWER_H
#define UM_TOOLS_SLOWER_H

#include "play_args.h"

/* For all traces: by the plan's own time, or (`played`) by that of the simulated device. The exit code. */
int slower_main(const struct play_args *a, int played);

#endif
