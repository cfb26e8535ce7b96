// SPDX-License-Identifier: Apache-2.0
//
// same_sim.cc - same.h on the simulated GPU in the process
#include "same.h"

struct umadv *launch_on;
extern "C" void same_sim_tally(struct umadv *adv, struct um_tally *out);

struct umadv *same_open(uint64_t budget)
{
	launch_on = run_open(UMADV_DEVICE_SIM, budget, "lookahead", NULL);
	return launch_on;
}

void same_finish(struct umadv *adv)
{
	must(umadv_sim_sync(adv), "umadv_sim_sync");
}

void same_tally(struct umadv *adv, struct um_tally *out)
{
	same_sim_tally(adv, out);
}

int main(int argc, char **argv)
{
	return same_main(argc, argv);
}
