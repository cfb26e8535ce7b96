/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of prefetched blocks: with a limit, which refuses, and without one, which forgets what the driver evicts.
 */
#include "replay/block_limit.h"

#include "tap.h"

#include <errno.h>

#define BLOCK UM_BLOCK_BYTES

/* The blocks that are visited, as digits. */
static char seen[32];

static void visit(void *user, uint64_t addr)
{
	size_t n = strlen(seen);

	(void)user;
	if (n < sizeof seen - 1)
		seen[n] = (char)('0' + addr / BLOCK);
}

static const char *visited(struct um_block_limit *l)
{
	memset(seen, 0, sizeof seen);
	um_block_limit_visit(l, visit, NULL);
	return seen;
}

static void watched(void)
{
	struct um_block_limit l;

	um_block_limit_init(&l);
	is_int(um_block_limit_watch(&l, 3), 0, "a list without a limit opens");
	is_str(visited(&l), "", "at first no block is listed");
	um_block_limit_add(&l, BLOCK, 2 * BLOCK);
	um_block_limit_add(&l, 3 * BLOCK, 1);
	is_str(visited(&l), "123", "blocks are visited in the order of their prefetches");
	is_int(um_block_limit_add(&l, 4 * BLOCK, BLOCK), 0, "a prefetch is not refused where the list is full");
	is_str(visited(&l), "234", "the block that was prefetched least recently is forgotten for it");
	um_block_limit_add(&l, 2 * BLOCK, BLOCK);
	is_str(visited(&l), "342", "a block that is prefetched again becomes the latest one");
	is_int(um_block_limit_has(&l, 3 * BLOCK), 1, "a block can be looked up");
	is_int(um_block_limit_has(&l, BLOCK), 0, "a forgotten one is not in the list");
	um_block_limit_remove(&l, 3 * BLOCK, 2 * BLOCK);
	is_str(visited(&l), "2", "evicted blocks are not visited");
	um_block_limit_add(&l, 5 * BLOCK, 4 * BLOCK);
	is_str(visited(&l), "678", "of a range beyond the memory the last blocks stay");
	is_u64(l.refused, 0, "nothing was refused");
	um_block_limit_fini(&l);
}

static void limited(void)
{
	struct um_block_limit l;

	um_block_limit_init(&l);
	is_int(um_block_limit_add(&l, BLOCK, BLOCK), 0, "without a list everything fits");
	is_str(visited(&l), "", "and no block is visited");
	is_int(um_block_limit_has(&l, BLOCK), 0, "none is in the list");
	is_int(um_block_limit_set(&l, 2), 0, "a limit of two blocks is set");
	is_int(um_block_limit_add(&l, BLOCK, 2 * BLOCK), 0, "two blocks fit");
	is_int(um_block_limit_add(&l, 3 * BLOCK, BLOCK), -ENOSPC, "a third one is refused");
	is_str(visited(&l), "12", "and not listed");
	is_u64(l.refused, 1, "the refusal is counted");
	um_block_limit_fini(&l);
}

int main(void)
{
	watched();
	limited();
	return tap_done();
}
