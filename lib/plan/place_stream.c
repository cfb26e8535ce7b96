/* SPDX-License-Identifier: Apache-2.0
 *
 * place_stream.c - a best-fit allocator over a schedule
 *
 * Free ranges are kept by address and by size. Slots that live for more than an eighth of the iteration take a range's
 * end, the others its beginning, so that short-lived slots are adjacent. A free needs at most one range record, which
 * the allocation before it reserved.
 */
#include "plan/place_stream.h"

#include "base/tree.h"
#include "base/vec.h"

struct range {
	struct um_tree_node by_addr, by_size; /* keys: (addr, 0) and (bytes, addr) */
	struct range *spare; /* the next one not in use */
};

struct stream {
	struct um_tree by_addr, by_size;
	struct range *range, *spare;
	uint32_t *dying; /* lives in the order of death */
};

static void put(struct stream *s, uint64_t addr, uint64_t bytes)
{
	struct range *r = s->spare;

	if (!bytes)
		return;
	s->spare = r->spare;
	r->by_addr.a = addr;
	r->by_addr.b = 0;
	r->by_size.a = bytes;
	r->by_size.b = addr;
	/* keys differ, because ranges do not overlap */
	um_tree_add(&s->by_addr, &r->by_addr);
	um_tree_add(&s->by_size, &r->by_size);
}

static void drop(struct stream *s, struct range *r)
{
	um_tree_remove(&s->by_addr, &r->by_addr);
	um_tree_remove(&s->by_size, &r->by_size);
	r->spare = s->spare;
	s->spare = r;
}

static int take(struct stream *s, struct um_place_life *x, int long_lived)
{
	struct um_tree_node *node = um_tree_ceil(&s->by_size, x->bytes, 0);
	struct range *r = node ? um_tree_entry(node, struct range, by_size) : NULL;
	uint64_t addr, bytes;

	if (!r)
		return -EINVAL;
	addr = r->by_addr.a;
	bytes = r->by_size.a;
	/* the last hole is practically unbounded: always from its beginning */
	long_lived = long_lived && bytes < 1ull << 46;
	x->place = long_lived ? addr + bytes - x->bytes : addr;
	drop(s, r);
	put(s, long_lived ? addr : addr + x->bytes, bytes - x->bytes);
	return 0;
}

static void give(struct stream *s, uint64_t addr, uint64_t bytes)
{
	struct um_tree_node *node = um_tree_floor(&s->by_addr, addr, 0);
	struct range *r = node ? um_tree_entry(node, struct range, by_addr) : NULL;

	if (r && r->by_addr.a + r->by_size.a == addr) {
		addr = r->by_addr.a;
		bytes += r->by_size.a;
		drop(s, r);
	}
	node = um_tree_ceil(&s->by_addr, addr + bytes, 0);
	r = node ? um_tree_entry(node, struct range, by_addr) : NULL;
	if (r && r->by_addr.a == addr + bytes) {
		bytes += r->by_size.a;
		drop(s, r);
	}
	put(s, addr, bytes);
}

/* Counting sort of deaths: within one position in the order of birth. */
static int sort_deaths(struct stream *s, const struct um_place_life *life, size_t n, int32_t n_ops)
{
	uint32_t *first = calloc(n_ops + 2ull, sizeof *first);

	s->dying = malloc((n + 1) * sizeof *s->dying);
	if (!first || !s->dying) {
		free(first);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		first[life[i].death + 1]++;
	for (int32_t i = 0; i <= n_ops; i++)
		first[i + 1] += first[i];
	for (size_t i = 0; i < n; i++)
		s->dying[first[life[i].death]++] = (uint32_t)i;
	free(first);
	return 0;
}

int um_place_stream(const struct um_place_hole *hole, size_t n_holes, struct um_place_life *life, size_t n,
		    int32_t n_ops)
{
	struct stream s = {.range = malloc((n + n_holes + 1) * sizeof *s.range)};
	int err = s.range ? sort_deaths(&s, life, n, n_ops) : -ENOMEM;
	size_t dead = 0;

	for (size_t i = 0; !err && i < n + n_holes + 1; i++) {
		s.range[i].spare = s.spare;
		s.spare = &s.range[i];
	}
	for (size_t i = 0; !err && i < n_holes; i++)
		put(&s, hole[i].addr, hole[i].end - hole[i].addr);
	for (size_t i = 0; !err && i < n; i++) {
		for (; dead < n && life[s.dying[dead]].death <= life[i].birth; dead++)
			give(&s, life[s.dying[dead]].place, life[s.dying[dead]].bytes);
		err = take(&s, &life[i], life[i].death - life[i].birth > n_ops / 8);
	}
	free(s.range);
	free(s.dying);
	return err;
}
