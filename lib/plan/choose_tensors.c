/* SPDX-License-Identifier: Apache-2.0
 *
 * choose_tensors.c - ranks swaps of whole tensors by free time
 */
#include "plan/choose_tensors.h"

#include "plan/swaps.h"

int um_choose_tensors(struct um_scheme_input *s, int mode, struct um_scheme_result *a)
{
	struct um_swaps w = {0};
	uint32_t *order = NULL;
	double *time = NULL;
	int32_t stuck;
	int err;

	(void)mode;
	if (um_load_max(&a->choice.load, 0, s->b->n_ops) <= s->carry.capacity)
		return 0;
	err = um_swaps_build(&w, s, a->choice.keep_resident);
	if (!err)
		time = malloc((w.n + 1ull) * sizeof *time);
	for (uint32_t i = 0; time && i < w.n; i++)
		time[i] = (double)um_swap_absence(s, &w.at[i]) - (double)w.at[i].out_ns - (double)w.at[i].in_ns;
	if (time)
		order = um_swaps_rank(&w, time);
	if (!err)
		err = order ? um_swaps_choose(&w, order, w.n, s->carry.capacity, a, &stuck) : -ENOMEM;
	free(order);
	free(time);
	um_swaps_fini(&w);
	return err;
}
