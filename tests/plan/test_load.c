/* SPDX-License-Identifier: Apache-2.0
 *
 * The load's tree against an array that is gone through op by op: ranges of all lengths, across the iteration's end and
 * longer than it, for iterations of one op to some that fill their tree and some that do not.
 */
#include "plan/load.h"
#include "fixture/plan_fixture.h"
#include "tap.h"

#define MOST_OPS 65
#define STEPS 400

struct plain {
	int32_t n, at[MOST_OPS];
};

static void plain_add(struct plain *p, int64_t from, int64_t to, int32_t delta)
{
	for (; from < to; from++)
		p->at[from % p->n] += delta;
}

static int32_t plain_max(const struct plain *p, int64_t from, int64_t to)
{
	int32_t most = INT32_MIN;

	for (; from < to; from++)
		most = p->at[from % p->n] > most ? p->at[from % p->n] : most;
	return most;
}

static int64_t plain_last(const struct plain *p, int64_t from, int64_t to, int32_t limit)
{
	while (to > from && p->at[(to - 1) % p->n] < limit)
		to--;
	return to - 1;
}

/* Steps in which the two differ. */
static int differ(int32_t n, uint64_t *seed)
{
	struct plain p = {.n = n};
	struct um_load l;
	int bad = 0;

	if (um_load_init(&l, n))
		tap_bail("no memory");
	for (int i = 0; i < STEPS; i++) {
		int64_t from = (int64_t)fx_draw(seed, 3ull * (uint64_t)n);
		int64_t to = from + (int64_t)fx_draw(seed, 2ull * (uint64_t)n + 1);
		int64_t end = from + (int64_t)fx_draw(seed, (uint64_t)n + 1);
		int32_t delta = (int32_t)fx_draw(seed, 7) - 3, limit = (int32_t)fx_draw(seed, 9) - 4;
		int32_t op = (int32_t)fx_draw(seed, (uint64_t)n);

		um_load_add(&l, from, to, delta);
		plain_add(&p, from, to, delta);
		/* A whole lap includes leaves that stand for no op and stay at 0. */
		bad += to - from < n && um_load_max(&l, from, to) != plain_max(&p, from, to);
		bad += um_load_last(&l, from, end, limit) != plain_last(&p, from, end, limit);
		bad += um_load_at(&l, op) != p.at[op];
	}
	um_load_fini(&l);
	return bad;
}

int main(void)
{
	uint64_t seed = 1;

	for (int32_t n = 1; n <= MOST_OPS; n++)
		is_int(differ(n, &seed), 0, "a load of %d ops agrees with the array", n);
	return tap_done();
}
