/* SPDX-License-Identifier: Apache-2.0
 *
 * play_result.c - figures of a play: of one iteration where they are all alike, else means over all of them
 */
#include "play/player.h"

/* Iterations before this one learn: no figure includes them if others were played. */
#define LEARNS 2

void um_play_result_fini(struct um_play_result *r)
{
	um_vec_fini(&r->iterations);
}

static int are_alike(const struct um_play_result *r)
{
	for (size_t i = LEARNS + 1; i < r->iterations.n; i++)
		if (r->iterations.at[i].kind != r->iterations.at[LEARNS].kind)
			return 0;
	return 1;
}

void um_play_result_settle(struct um_play_result *r, int means)
{
	size_t n = r->iterations.n, first;

	r->irregular = !are_alike(r);
	first = r->irregular ? LEARNS : means ? n / 2 : n - 1;
	if (r->irregular)
		r->in_core_ns = 0;
	for (size_t i = first; i < n; i++) {
		const struct um_play_iteration *it = &r->iterations.at[i];

		r->steady_ns += it->ns;
		r->faults += it->faults;
		r->stall_ns += it->stall_ns;
		r->h2d_bytes += it->h2d_bytes;
		r->d2h_bytes += it->d2h_bytes;
		r->hints += it->hints;
		r->in_core_ns += r->irregular ? it->in_core_ns : 0;
		if (it->peak_resident_bytes > r->peak_resident_bytes)
			r->peak_resident_bytes = it->peak_resident_bytes;
	}
	for (size_t i = n > LEARNS ? LEARNS : 0; i < n; i++)
		r->sum_ns += r->iterations.at[i].ns;
	r->steady_ns /= n - first;
	r->faults /= n - first;
	r->stall_ns /= n - first;
	r->h2d_bytes /= n - first;
	r->d2h_bytes /= n - first;
	r->hints /= n - first;
	r->in_core_ns /= r->irregular ? n - first : 1;
}
