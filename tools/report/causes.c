/* SPDX-License-Identifier: Apache-2.0 */
#include "report/causes_state.h"

const char *um_reason_name(enum um_reason reason)
{
	static const char *const names[UM_REASONS] = {"prefetched",
						      "demand",
						      "late prefetch",
						      "evicted before use",
						      "CPU touch",
						      "ping-pong",
						      "shared block",
						      "speculative overshoot",
						      "read-mostly collapse",
						      "discarded without prefetch",
						      "allocated in the iteration",
						      "clean write-back",
						      "evicted",
						      "sent home",
						      "dead write-back",
						      "redundant prefetch",
						      "refused hint",
						      "waited for prefetch",
						      "slower than planned"};

	return names[reason];
}

void um_causes_init(struct um_causes *c, um_causes_tensor_at *tensor_at, const void *user)
{
	*c = (struct um_causes){
		.tensor_at = tensor_at, .user = user, .call = {.row = UM_CAUSES_NONE}, .busy_until = INT64_MIN};
}

void um_causes_fini(struct um_causes *c)
{
	um_pages_fini(&c->pages);
	um_declared_uses_fini(&c->declared_uses);
	um_causes_waits_fini(c);
	um_hints_fini(&c->hints);
	for (size_t i = 0; i < c->callers.n; i++)
		free(c->callers.at[i]);
	um_vec_fini(&c->callers);
	um_vec_fini(&c->rows);
	um_vec_fini(&c->pending);
	um_vec_fini(&c->neighbour);
	um_index_fini(&c->row_index);
}

int um_causes_finish(struct um_causes *c)
{
	int err = um_causes_settle_all(c);

	for (size_t i = 0; i < c->pages.blocks.n; i++)
		um_causes_hint_end(c, &c->pages.blocks.at[i]);
	return err;
}

int um_causes_next_file(struct um_causes *c)
{
	int err = um_causes_finish(c);

	um_pages_fini(&c->pages);
	um_declared_uses_fini(&c->declared_uses);
	um_causes_waits_fini(c);
	c->call.row = UM_CAUSES_NONE;
	c->busy_until = INT64_MIN;
	c->undeclared = 0;
	c->hints.n_launchers = 0;
	return err;
}
