/* SPDX-License-Identifier: Apache-2.0
 *
 * Gaps of several orders: each is in the pool once, and each order is as drops.h makes it.
 */
#include "fixture/plan_fixture.h"
#include "plan/drop_pool.h"
#include "tap.h"

#define ORDERS 3

static struct um_drop_pool pool;
static struct um_versions v;
static struct um_drops_rule rule[ORDERS];

static void build(uint64_t seed, struct um_schedule *s)
{
	fx_net(s, seed);
	for (int i = 0; i < ORDERS; i++)
		rule[i] = (struct um_drops_rule){fx_peak(s) / 2, i ? 0.1 * i : 1, 0.3 + 0.2 * i, 1000, 0};
	if (um_versions_build(&v, s) || um_drop_pool_build(&pool, &v, rule, ORDERS))
		tap_bail("no memory");
}

/* Is gap `i` another one than gap `k` of the pool, or has it other shared relaunches? */
static int differs(const struct um_drops *d, uint32_t i, uint32_t k)
{
	const struct um_drop *a = &d->at[i], *b = &pool.all.at[k];
	size_t bytes = a->n_shared * sizeof *d->shared;

	if (a->slot != b->slot || a->from != b->from || a->to != b->to || a->bytes != b->bytes)
		return 1;
	return a->n_shared != b->n_shared ||
	       (bytes && memcmp(d->shared + a->first_shared, pool.all.shared + b->first_shared, bytes));
}

/* Gaps of an order that are not those of drops.h, or with another sum. */
static int compare(int order)
{
	const struct um_drop_order *o = &pool.order[order];
	struct um_drops d;
	uint64_t bytes = 0;
	int n = 0;

	if (um_drops_build(&d, &v, &rule[order]))
		tap_bail("no memory");
	n += d.n != o->n;
	for (uint32_t i = 0; !n && i < d.n; i++) {
		n += differs(&d, i, o->at[i]) || o->bytes[i] != bytes;
		bytes += d.at[i].bytes;
	}
	n += o->bytes[o->n] != bytes;
	um_drops_fini(&d);
	return n;
}

/* Gaps that are not after the one before, by slot and begin. */
static int unsorted(void)
{
	int n = 0;

	for (uint32_t i = 1; i < pool.all.n; i++) {
		const struct um_drop *a = &pool.all.at[i - 1], *b = &pool.all.at[i];

		n += a->slot > b->slot || (a->slot == b->slot && a->from >= b->from);
	}
	return n;
}

int main(void)
{
	int differ = 0, twice = 0, shorter = 0, n = 0;

	for (uint64_t seed = 1; seed <= 30; seed++, n++) {
		struct um_schedule s = {0};
		uint32_t sum = 0;

		build(seed, &s);
		for (int i = 0; i < ORDERS; i++) {
			differ += compare(i);
			sum += pool.order[i].n;
		}
		twice += unsorted();
		shorter += pool.all.n < sum;
		um_drop_pool_fini(&pool);
		um_versions_fini(&v);
		um_schedule_fini(&s);
	}
	is_int(differ, 0, "the orders of %d programs are as without a pool", n);
	is_int(twice, 0, "no gap is in the pool twice");
	ok(shorter > n / 2, "%d programs have gaps in several orders", shorter);
	return tap_done();
}
