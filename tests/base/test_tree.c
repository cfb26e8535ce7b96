/* SPDX-License-Identifier: Apache-2.0
 *
 * An ordered set against a plain sorted array: the same answers after every one of many changes, and balanced.
 */
#include "base/tree.h"
#include "fixture/random.h"
#include "tap.h"

#define N 400

static struct um_tree_node node[N];
static int in[N];

static uint32_t draw(uint32_t below)
{
	static uint64_t seed = 42;

	return test_random(&seed, below);
}

/* Keys in pairs that share `a`, so that `b` decides. */
static void set_key(int i)
{
	node[i].a = (uint64_t)(i / 2) * 10;
	node[i].b = i % 2 ? UINT64_MAX - 5 : 7;
}

/* Height, or -1 if order, links or balance are broken. */
static int check(const struct um_tree_node *n, const struct um_tree_node *parent)
{
	int l, r;

	if (!n)
		return 0;
	l = check(n->child[0], n);
	r = check(n->child[1], n);
	if (l < 0 || r < 0 || n->parent != parent || l - r > 1 || r - l > 1)
		return -1;
	return 1 + (l > r ? l : r);
}

/* Does the walk meet exactly the nodes that are in, in order? */
static int same_walk(const struct um_tree *t)
{
	const struct um_tree_node *n = um_tree_first(t);
	size_t count = 0;

	for (int i = 0; i < N; i++) {
		if (!in[i])
			continue;
		if (n != &node[i])
			return 0;
		n = um_tree_next(n);
		count++;
	}
	return n == NULL && count == t->n;
}

static const struct um_tree_node *slow_floor(uint64_t a, uint64_t b)
{
	for (int i = N - 1; i >= 0; i--)
		if (in[i] && (node[i].a < a || (node[i].a == a && node[i].b <= b)))
			return &node[i];
	return NULL;
}

static const struct um_tree_node *slow_ceil(uint64_t a, uint64_t b)
{
	for (int i = 0; i < N; i++)
		if (in[i] && (node[i].a > a || (node[i].a == a && node[i].b >= b)))
			return &node[i];
	return NULL;
}

static void random_changes(void)
{
	struct um_tree t = {0};
	int shape = 1, walk = 1, found = 1, returned = 1;

	for (int step = 0; step < 6000; step++) {
		/* first mostly in, then mostly out */
		int i = (int)draw(N), add = draw(10) < (step < 3000 ? 7u : 3u);
		uint64_t a = draw(N * 5 + 20), b = draw(3) ? 7 : UINT64_MAX;

		if (add && in[i]) {
			struct um_tree_node twin = node[i];

			returned &= um_tree_add(&t, &twin) < 0;
		} else if (add) {
			set_key(i);
			returned &= um_tree_add(&t, &node[i]) == 0;
			in[i] = 1;
		} else if (in[i]) {
			um_tree_remove(&t, &node[i]);
			in[i] = 0;
		}
		shape &= check(t.root, NULL) >= 0;
		walk &= step % 7 != 0 || same_walk(&t);
		found &= um_tree_floor(&t, a, b) == slow_floor(a, b);
		found &= um_tree_ceil(&t, a, b) == slow_ceil(a, b);
	}
	ok(returned, "an equal key is refused, a new one is not");
	ok(shape, "links are right and subtrees differ by one level at most, after every change");
	ok(walk, "walking meets every node in order, both ways");
	ok(found, "floor and ceil find what a scan finds");
	while (t.root)
		um_tree_remove(&t, t.root);
	is_u64(t.n, 0, "everything can be removed by the root");
}

static void ascending(void)
{
	struct um_tree t = {0};
	int height;

	for (int i = 0; i < N; i++) {
		set_key(i);
		um_tree_add(&t, &node[i]);
		in[i] = 1;
	}
	height = check(t.root, NULL);
	ok(height > 0 && height <= 12, "400 keys in ascending order stay within 12 levels");
	ok(same_walk(&t), "a walk visits all nodes in order");
}

int main(void)
{
	struct um_tree empty = {0};

	ok(!um_tree_first(&empty), "an empty tree has no first");
	ok(!um_tree_floor(&empty, 1, 1) && !um_tree_ceil(&empty, 1, 1), "an empty tree has no neighbours of a key");
	random_changes();
	ascending();
	return tap_done();
}
