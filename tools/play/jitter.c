/* SPDX-License-Identifier: Apache-2.0 */
#include "play/jitter.h"

#include "base/hash.h"

static double factor(const struct um_jitter *j, uint64_t iteration, size_t op)
{
	uint64_t h = um_hash_u64(um_hash_u64(um_hash_u64(0, j->seed), iteration), op);

	return 1 + j->share * ((double)(h >> 11) * 0x1p-52 - 1);
}

void um_jitter_apply(const struct um_jitter *j, uint64_t iteration, uint64_t *ns, size_t n)
{
	double before = 0, after = 0;

	if (!(j->share > 0))
		return;
	for (size_t i = 0; i < n; i++) {
		before += (double)ns[i];
		after += (double)ns[i] * factor(j, iteration, i);
	}
	for (size_t i = 0; i < n && after > 0; i++)
		ns[i] = (uint64_t)((double)ns[i] * factor(j, iteration, i) * (before / after) + 0.5);
}

void um_jitter_apply_turns(const struct um_jitter *j, uint64_t iteration, uint64_t turns, uint64_t *ns, size_t n)
{
	for (uint64_t k = 0; k < turns; k++) {
		size_t from = n / turns * k, to = k + 1 < turns ? n / turns * (k + 1) : n;

		um_jitter_apply(j, iteration + k, ns + from, to - from);
	}
}
