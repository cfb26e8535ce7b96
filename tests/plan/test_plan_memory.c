/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory runs out somewhere in planning or proving: it is said, nothing is lost. By itself this test only runs the
 * plans; tests/plan/plan_memory.sh runs it with allocations failing in turn, and refuses status 3.
 */
#include "schemes/schemes.h"
#include "fixture/plan_fixture.h"
#include "tap.h"

long failmalloc_live(void) __attribute__((weak));

static long live(void)
{
	return failmalloc_live ? failmalloc_live() : 0;
}

static int wrong, evictions, relaunches, advice;

static const struct plan_case {
	uint64_t seed; /* of fx_random: with pairs that swap, ranges, lives through the end */
	const char *scheme; /* NULL is lookahead; others may have no plan */
	int thin; /* fx_thin */
	int rehearsed;
	int net; /* fx_net, with relaunches */
	int offers; /* fx_offers */
	int host; /* blocks of host memory; 0: no limit */
} cases[] = {
	{20, NULL, 0, 0, 0, 0, 0},	     {24, NULL, 0, 1, 0, 0, 0},
	{98, NULL, 1, 0, 0, 0, 0},	     {20, "autoswap-swdoa", 0, 0, 0, 0, 0},
	{20, "superneurons", 0, 0, 0, 0, 0}, {20, "appobmem", 0, 0, 0, 0, 0},
	{20, "vdnn-all", 0, 0, 0, 0, 0},     {20, "capuchin", 0, 0, 0, 0, 0},
	{20, "g10", 0, 0, 0, 0, 0},	     {20, "swapadvisor", 0, 0, 0, 0, 0},
	{45, NULL, 0, 0, 1, 0, 0},	     {58, NULL, 0, 1, 1, 0, 0},
	{45, "superneurons", 0, 0, 1, 0, 0}, {20, NULL, 0, 1, 0, 1, 0},
	{45, "superneurons", 0, 0, 1, 1, 0}, {24, NULL, 0, 1, 0, 0, 3},
	{45, "capuchin", 0, 0, 1, 0, 0},
};
#define CASES (sizeof cases / sizeof *cases)

static int by_hints(void *user, const struct um_plan *p, uint64_t *ns)
{
	(void)user;
	*ns = p->hints.n;
	return 0;
}

static int by_evictions(void *user, const struct um_plan *p, uint64_t *bytes)
{
	(void)user;
	*bytes = 0;
	for (size_t i = 0; i < p->hints.n; i++)
		*bytes += p->hints.at[i].kind == UM_HINT_EVICT ? UM_BLOCK_BYTES : 0;
	return 0;
}

static void try_plan(const struct plan_case *c)
{
	struct um_schedule s = {0};
	struct um_plan p;
	static const struct um_plan_rehearsal rehearsal = {.ns = by_hints, .host = by_evictions};
	struct um_plan_request r;
	struct um_plan_figures f;
	uint64_t grow;
	char why[200];
	long before;
	int err;

	if (c->net)
		fx_net(&s, c->seed);
	else
		fx_random(&s, c->seed);
	if (c->thin)
		fx_thin(&s, c->seed);
	if (c->offers)
		fx_offers(&s, c->seed, 0);
	/* A net, for those who plan for nets. */
	for (size_t i = 0; i < s.ops.n; i++)
		s.ops.at[i].phase = i < s.ops.n / 2 ? 'f' : 'b';
	r = fx_request(&s, fx_peak(&s) / 2 + 8 * FX_MIB);
	r.strategy = c->scheme;
	r.rehearsal = c->rehearsed ? &rehearsal : NULL;
	r.recompute = c->net;
	r.host_budget = (uint64_t)c->host * UM_BLOCK_BYTES;
	before = live();
	um_plan_init(&p);
	err = um_plan_build(&r, &p, &grow, why, sizeof why);
	wrong |= err && err != -ENOMEM && !(c->scheme && (err == -E2BIG || err == -EINVAL));
	if (!err) {
		err = um_plan_check(&p, &f, why, sizeof why);
		wrong |= err && err != -ENOMEM;
		for (size_t i = 0; i < p.hints.n; i++) {
			const struct um_hint *h = &p.hints.at[i];

			evictions += h->kind == UM_HINT_EVICT;
			relaunches += h->kind == UM_HINT_RECOMPUTE;
			advice |= h->kind == UM_HINT_ADVISE ? 1 << h->advice : 0;
		}
	} else {
		/* Nothing half made. */
		wrong |= p.hints.n || p.sched.ops.n || p.strategy;
	}
	um_plan_fini(&p);
	wrong |= live() != before;
	um_schedule_fini(&s);
}

/* With an argument only the case of that number. */
int main(int argc, char **argv)
{
	size_t only = argc > 1 ? strtoul(argv[1], NULL, 10) : CASES;

	um_schemes_add();
	for (size_t i = 0; i < CASES; i++)
		if (only == CASES || i == only)
			try_plan(&cases[i]);
	if (only == CASES) {
		ok(evictions > 0, "plans that have something to do");
		ok(relaunches > 0, "plans that launch ops again");
		ok(advice == (1 << UM_ADVICE_READ_MOSTLY | 1 << UM_ADVICE_PREFERRED | 1 << UM_ADVICE_ACCESSED_BY),
		   "the plan has advice of every kind");
	}
	ok(only <= CASES && !wrong, "memory runs out and is found again");
	tap_done();
	return only > CASES || wrong ? 3 : 0;
}
