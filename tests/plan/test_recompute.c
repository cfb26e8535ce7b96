/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans that may launch ops again: where that is faster, they do; they are sound, and never slower than plans that only
 * swap. A byte is a nanosecond on the link.
 */
#include "io/plan_file.h"
#include "model/plan_launches.h"
#include "runtime/relaunches.h"
#include "fixture/plan_fixture.h"
#include "tap.h"

#include <limits.h>

#define B UM_BLOCK_BYTES

static struct um_plan p;
static struct um_plan_figures f;
static uint64_t grow;

static int build(struct um_plan_request *r, struct um_plan *to)
{
	return fx_build(r, to, &f, &grow);
}

static int relaunches(const struct um_plan *of)
{
	int n = 0;

	for (size_t i = 0; i < of->hints.n; i++)
		n += of->hints.at[i].kind == UM_HINT_RECOMPUTE;
	return n;
}

/* Slot i is made from slot 0 and used again on the way back. */
static void net(struct um_schedule *s, int n)
{
	char uses[32];

	fx_slot(s, B, -1, -1);
	for (int i = 1; i <= n; i++)
		fx_slot(s, B, i - 1, 2 * n - i + 1);
	for (int i = 1; i <= n; i++) {
		snprintf(uses, sizeof uses, "r0 w%d", i);
		fx_op(s, "make", B / 8, uses);
		fx_relaunch(s, uses + 4);
	}
	for (int i = n; i >= 1; i--) {
		snprintf(uses, sizeof uses, "r%d", i);
		fx_op(s, "use", B / 8, uses);
	}
}

static void by_hand(void)
{
	struct um_schedule s = {0};
	struct um_plan_request r;
	uint64_t swaps;

	net(&s, 8);
	r = fx_request(&s, 5 * B);
	is_int(build(&r, &p), 0, "a plan is made without relaunches");
	is_int(relaunches(&p), 0, "it launches nothing again, as that was not requested");
	swaps = p.predicted_ns;
	um_plan_fini(&p);
	r.recompute = 1;
	is_int(build(&r, &p), 0, "a plan is made that may launch ops again");
	ok(relaunches(&p) > 0 && p.predicted_ns < swaps, "it does, and is faster");
	is_u64(p.predicted_ns, f.ns, "the proof takes the predicted time");
	ok(p.predicted_ns == p.in_core_ns + f.again_ns + f.stall_ns, "which is that of the ops, relaunches and stalls");
	is_u64(p.bound_ns, p.in_core_ns, "the bound of copies does not hold for it");
	um_plan_fini(&p);
	for (size_t i = 0; i < s.ops.n; i++)
		s.ops.at[i].ns *= 100;
	is_int(build(&r, &p), 0, "a plan is made for slow ops");
	is_int(relaunches(&p), 0, "where copies cost nothing, nothing is launched again");
	um_plan_fini(&p);
	um_schedule_fini(&s);
}

static int by_relaunches(void *user, const struct um_plan *plan, uint64_t *ns)
{
	(void)user;
	*ns = plan->sched.ops.n;
	return 0;
}

static long asked, most_asked;

static int is_late(void *user)
{
	(void)user;
	return ++asked > most_asked;
}

static void requests(void)
{
	static const struct um_plan_rehearsal rehearsal = {.ns = by_relaunches};
	static const struct um_plan_effort effort = {NULL, is_late, NULL};
	struct um_schedule s = {0};
	struct um_plan_request r;

	net(&s, 8);
	r = fx_request(&s, 5 * B);
	r.recompute = 1;
	r.rehearsal = &rehearsal;
	is_int(build(&r, &p), 0, "a plan is rehearsed");
	is_int(relaunches(&p), 0, "relaunches that are slower in the rehearsal are not chosen");
	um_plan_fini(&p);
	r.rehearsal = NULL;
	r.effort = &effort;
	r.recompute = 0;
	most_asked = LONG_MAX;
	is_int(build(&r, &p), 0, "a plan is made in time");
	um_plan_fini(&p);
	most_asked = asked;
	asked = 0;
	r.recompute = 1;
	is_int(build(&r, &p), 0, "a plan is made when time is up after swaps were planned");
	is_int(relaunches(&p), 0, "the plan without relaunches is kept");
	um_plan_fini(&p);
	um_schedule_fini(&s);
}

/* With PLAN_DIR set: for tests/plan/plan_replay.sh. */
static void leave_file(uint64_t seed)
{
	const char *dir = getenv("PLAN_DIR");
	char path[4096];

	if (!dir || !relaunches(&p))
		return;
	snprintf(path, sizeof path, "%s/again%d.umplan", dir, (int)seed);
	if (um_plan_write(path, &p, NULL))
		tap_bail("a plan cannot be written");
}

static int differ(const struct um_plan *a, const struct um_plan *b)
{
	return a->hints.n != b->hints.n || a->predicted_ns != b->predicted_ns || a->scratch.n != b->scratch.n ||
	       (a->hints.n && memcmp(a->hints.at, b->hints.at, a->hints.n * sizeof *a->hints.at));
}

/* Scratch slots lie behind all others, in the addresses that are counted. */
static int misplaced(const struct um_plan *of, uint64_t from)
{
	int n = 0;

	for (size_t i = 0; i < of->sched.slots.n; i++) {
		const struct um_slot *t = &of->sched.slots.at[i];

		if (t->flags & UM_SLOT_SCRATCH)
			n += t->place < from || t->place + t->bytes > from + grow;
	}
	return n;
}

/* Programs by chance: their seeds are from 1 to this, at this step. */
static uint64_t last_seed(void)
{
	return getenv("UM_TEST_ALL") ? 60 : 21;
}

static uint64_t seed_step(void)
{
	return (uint64_t)tap_step(5);
}

/* A program by chance, with memory for three to six eighths of it. */
static struct um_plan_request request_by_chance(struct um_schedule *s, uint64_t seed)
{
	uint64_t draw = seed;

	fx_net(s, seed);
	return fx_request(s, fx_peak(s) / 8 * (3 + fx_draw(&draw, 4)));
}

static void by_chance(void)
{
	int n = 0, faster = 0, slower = 0, unsound = 0, other = 0, wrong_place = 0;

	for (uint64_t seed = 1; seed <= last_seed(); seed += seed_step()) {
		struct um_schedule s = {0};
		struct um_plan_request r = request_by_chance(&s, seed);
		struct um_plan swaps, twin;
		int err, with;

		err = build(&r, &swaps);
		r.recompute = 1;
		with = build(&r, &p);
		unsound += with != err;
		if (!err && !with) {
			n++;
			faster += p.predicted_ns < swaps.predicted_ns;
			slower += p.predicted_ns > swaps.predicted_ns;
			wrong_place += misplaced(&p, r.grow_at);
			leave_file(seed);
			build(&r, &twin);
			other += differ(&p, &twin);
			um_plan_fini(&twin);
		}
		um_plan_fini(&swaps);
		um_plan_fini(&p);
		um_schedule_fini(&s);
	}
	ok(faster > n / 4, "%d of %d plans by chance are faster with relaunches", faster, n);
	is_int(unsound, 0, "every plan is sound");
	is_int(slower, 0, "no plan is slower with relaunches");
	is_int(wrong_place, 0, "scratch memory has addresses of its own");
	is_int(other, 0, "planning again gives the same plan");
}

/* 1: some relaunch must not come earlier than planned. */
static int is_bound_to_time(const struct um_plan *of)
{
	uint64_t *ns = calloc(of->sched.ops.n + 1, sizeof *ns);
	struct um_relaunches again = {.next = 0};
	struct um_plan_launches launches;
	int err;

	if (!ns || um_plan_launches_build(&launches, of, ns))
		tap_bail("no memory");
	err = um_relaunches_build(&again, &launches.unfolded.plan.sched, launches.again);
	um_relaunches_fini(&again);
	um_plan_launches_fini(&launches);
	free(ns);
	return err != 0;
}

static int has_paged(const struct um_plan *of)
{
	size_t i = 0;

	while (i < of->sched.ops.n && !of->sched.ops.at[i].paged)
		i++;
	return i < of->sched.ops.n;
}

static void in_place(void)
{
	int of = 0, n = 0, scratch = 0, bound = 0, unsound = 0;

	for (uint64_t seed = 1; seed <= last_seed(); seed += seed_step(), of++) {
		struct um_schedule s = {0};
		struct um_plan_request r = request_by_chance(&s, seed);

		r.recompute = r.in_place = 1;
		unsound += build(&r, &p) == -1;
		n += relaunches(&p) > 0;
		scratch += p.scratch.n > 0;
		bound += relaunches(&p) && !has_paged(&p) && is_bound_to_time(&p);
		um_plan_fini(&p);
		um_schedule_fini(&s);
	}
	ok(n > of / 4, "%d of %d plans by chance have relaunches in place", n, of);
	is_int(unsound, 0, "every plan is sound");
	is_int(scratch, 0, "none uses scratch memory");
	is_int(bound, 0, "where no op is paged their relaunches may come at any time");
}

int main(void)
{
	by_hand();
	requests();
	by_chance();
	in_place();
	return tap_done();
}
