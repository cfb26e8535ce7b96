/* SPDX-License-Identifier: Apache-2.0 */
#include "pool/calls.h"

struct live {
	struct um_tree_node node; /* (address, 0) */
	uint32_t tensor;
};

static int add(struct um_pool_calls *c, const struct um_activity *a)
{
	struct um_pool_tensor t = {a->bytes, a->address, (uint32_t)c->calls.n, UM_POOL_NEVER};
	struct live *l = malloc(sizeof *l);

	if (!l)
		return -ENOMEM;
	*l = (struct live){{.a = a->address}, (uint32_t)c->tensors.n};
	if (um_vec_push(&c->calls, ((struct um_pool_call){l->tensor, c->ops, 0})) || um_vec_push(&c->tensors, t) ||
	    um_tree_add(&c->live, &l->node)) {
		free(l);
		return -ENOMEM;
	}
	return 0;
}

static int end(struct um_pool_calls *c, const struct um_activity *a)
{
	struct um_tree_node *node = um_tree_floor(&c->live, a->address, 0);
	struct live *l = node && node->a == a->address ? um_tree_entry(node, struct live, node) : NULL;
	int err = 0;

	if (!l)
		return 0;
	c->tensors.at[l->tensor].death = (uint32_t)c->calls.n;
	err = um_vec_push(&c->calls, ((struct um_pool_call){l->tensor, c->ops, 1}));
	um_tree_remove(&c->live, node);
	free(l);
	return err;
}

static int feed(struct um_activity_sink *sink, const struct um_activity *a)
{
	struct um_pool_calls *c = (struct um_pool_calls *)sink;

	switch (a->kind) {
	case UM_ACT_TENSOR:
		return add(c, a);
	case UM_ACT_TENSOR_END:
		return end(c, a);
	case UM_ACT_OP:
		c->ops++;
		return 0;
	case UM_ACT_RANGE:
		return um_vec_push(&c->ends, (uint32_t)c->calls.n);
	default:
		return 0;
	}
}

void um_pool_calls_init(struct um_pool_calls *c)
{
	memset(c, 0, sizeof *c);
	c->sink.feed = feed;
}

void um_pool_calls_fini(struct um_pool_calls *c)
{
	while (c->live.root) {
		struct um_tree_node *node = c->live.root;

		um_tree_remove(&c->live, node);
		free(um_tree_entry(node, struct live, node));
	}
	um_vec_fini(&c->tensors);
	um_vec_fini(&c->calls);
	um_vec_fini(&c->ends);
}

int um_pool_calls_windows(const struct um_pool_calls *c, size_t period, struct um_pool_window *before,
			  struct um_pool_window *last)
{
	size_t n = c->ends.n;

	if (!period || n < 2 * period + 1)
		return -ENODATA;
	*last = (struct um_pool_window){c->ends.at[n - 1 - period], c->ends.at[n - 1]};
	*before = (struct um_pool_window){c->ends.at[n - 1 - 2 * period], last->from};
	return 0;
}
