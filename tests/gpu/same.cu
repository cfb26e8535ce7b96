/* SPDX-License-Identifier: Apache-2.0
 *
 * same.cu - same.h on CUDA; what the device's memory did is asked of the stand-in driver
 */
#include "same.h"
#include "standin_seen.h"

struct umadv *same_open(uint64_t budget)
{
	return run_open(UMADV_DEVICE_AUTO, budget, "lookahead", NULL);
}

void same_finish(struct umadv *)
{
	check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

void same_tally(struct umadv *, struct um_tally *out)
{
	const struct um_standin_table *table = standin_table();

	memset(out, 0, sizeof(*out));
	if (table)
		table->tally(out);
}

int main(int argc, char **argv)
{
	return same_main(argc, argv);
}
