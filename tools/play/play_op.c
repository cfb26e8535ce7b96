/* SPDX-License-Identifier: Apache-2.0 */
#include "play/play_op.h"

#include "base/hash.h"
#include "model/workspace.h"
#include "runtime/context.h"

#include <errno.h>

static uint32_t fastest(const struct um_op *op)
{
	return um_workspace_pick(op->ws, op->n_ws, UINT64_MAX);
}

uint64_t um_play_op_ns(const struct um_profile *profile, const struct um_op *op)
{
	return op->n_ws ? op->ws[fastest(op)].ns
			: um_profile_op_ns(profile, &op->cost, um_uses_touched(op->uses, op->n_uses));
}

uint64_t um_play_op_kind(uint64_t kind, const struct um_op *op)
{
	kind = um_hash_u64(kind, um_hash_str(op->name ? op->name : ""));
	for (uint32_t i = 0; i < op->n_uses; i++)
		kind = um_hash_u64(kind, op->uses[i].touched ^ (uint64_t)op->uses[i].access << 60);
	return kind;
}

int um_play_offer(struct umadv *adv, const struct um_op *op, int infinite, struct umadv_op_info *info,
		  struct um_play_workspace *workspace)
{
	size_t sizes[UM_MOST_WORKSPACES], choice = 0;
	uint64_t times[UM_MOST_WORKSPACES];
	int err = 0;

	adv->op.label = op->label;
	*workspace = (struct um_play_workspace){NULL, 0};
	if (!op->n_ws)
		return 0;
	for (uint32_t i = 0; i < op->n_ws; i++) {
		sizes[i] = op->ws[i].bytes;
		times[i] = op->ws[i].ns;
	}
	if (infinite)
		choice = fastest(op);
	else
		err = umadv_workspace(adv, sizes, times, op->n_ws, &choice, &workspace->ptr);
	if (err)
		return err;
	workspace->bytes = sizes[choice];
	info->flops = info->bytes = 0;
	info->ns = times[choice];
	return 0;
}
