/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/iteration_finder.h"

#include "base/hash.h"

void um_iteration_finder_init(struct um_iteration_finder *f)
{
	um_op_period_init(&f->period);
	f->on = 1;
}

void um_iteration_finder_fini(struct um_iteration_finder *f)
{
	um_op_period_fini(&f->period);
	f->on = 0;
	f->step = UM_OP_PERIOD_GOES_ON;
}

uint64_t um_iteration_finder_key(const char *name, unsigned stream, const struct um_use *uses, uint32_t n)
{
	uint64_t h = um_hash_fold(um_hash_str(name), stream);

	for (const struct um_use *u = uses, *end = uses + n; u < end; u++) {
		h = um_hash_fold(h, u->tensor->bytes << 2 | u->access);
		h = um_hash_fold(h, u->off);
		h = um_hash_fold(h, u->bytes);
	}
	h = um_hash_u64(h, n);
	return h + !h;
}

void um_iteration_finder_op(struct um_iteration_finder *f, uint64_t key, const struct um_use *uses, uint32_t n,
			    uint64_t ops, uint64_t live)
{
	struct um_op_trait op = {.key = key, .live = live, .born = f->born};
	uint64_t oldest = ops;

	for (const struct um_use *u = uses, *end = uses + n; u < end; u++) {
		const struct um_tensor *t = u->tensor;
		uint64_t last = t->used_op > t->born_op ? t->used_op : t->born_op;

		if (last < oldest)
			oldest = last;
	}
	op.reuse_distance = ops + 1 - oldest > UINT32_MAX ? UINT32_MAX : (uint32_t)(ops + 1 - oldest);
	f->step = um_op_period_feed(&f->period, &op);
}
