/* SPDX-License-Identifier: Apache-2.0
 *
 * same_sim_tally.c - looks into a context; the headers behind it are C
 */
#include "runtime/context.h"
#include "sim/sim.h"

void same_sim_tally(struct umadv *adv, struct um_tally *out);

void same_sim_tally(struct umadv *adv, struct um_tally *out)
{
	um_sim_tally(adv->device.gpu, out);
}
