/* SPDX-License-Identifier: Apache-2.0
 *
 * Binary search and priority queues against a look at every element.
 */
#include "base/bisect.h"
#include "base/pqueue.h"
#include "fixture/random.h"
#include "tap.h"

#define N 100

struct entry {
	uint32_t key, place; /* where `moved` was told that it lies */
};

static uint32_t place_of[1 << 8]; /* by key */

static int before(const struct entry *a, const struct entry *b)
{
	return a->key < b->key;
}

static void moved(struct entry *x, size_t i)
{
	place_of[x->key] = (uint32_t)i;
}

UM_PQUEUE_TRACKED(queue, struct entry, before, moved)

static int bisect_is_scan(void)
{
	uint32_t sorted[N] = {0};

	for (int n = 0; n <= N; n++) {
		for (uint32_t want = 0; want < 12; want++) {
			int lo = 0, scan = 0;

			UM_BISECT(lo, n, i, sorted[i] < want)
			while (scan < n && sorted[scan] < want)
				scan++;
			if (lo != scan)
				return 0;
		}
		if (n < N)
			sorted[n] = (uint32_t)n / 10;
	}
	return 1;
}

/* Keys 0 .. N - 1 are added in a random order; some of those inside are removed by their place. */
static int queue_is_sorted(uint64_t seed)
{
	struct entry at[N];
	size_t n = 0;
	uint32_t key[N], last = 0;

	for (uint32_t i = 0; i < N; i++) {
		uint32_t k = test_random(&seed, i + 1);

		key[i] = key[k];
		key[k] = i;
	}
	for (uint32_t i = 0; i < N; i++) {
		at[n] = (struct entry){.key = key[i]};
		queue_rise(at, n++);
	}
	for (uint32_t i = 0; i < N; i += 7) {
		uint32_t k = place_of[i];

		if (at[k].key != i)
			return 0;
		at[k] = at[--n];
		queue_sink(at, n, k);
		queue_rise(at, k);
	}
	for (uint32_t want = 0; n; want = last + 1) {
		want += want % 7 == 0;
		last = at[0].key;
		if (last != want || place_of[last] != 0)
			return 0;
		at[0] = at[--n];
		queue_sink(at, n, 0);
	}
	return last == N - 1;
}

int main(void)
{
	int right = 1;

	ok(bisect_is_scan(), "a bisection ends where a scan ends, in empty arrays and with equal elements too");
	for (uint64_t seed = 1; seed <= 50; seed++)
		right &= queue_is_sorted(seed);
	ok(right, "a queue gives its elements in order, and each knows its place after others were removed");
	return tap_done();
}
