/* SPDX-License-Identifier: Apache-2.0
 *
 * Evictions that are left to the driver: cases worked by hand, and plans of recorded workloads, whose iterations are
 * gone through with a list of the driver's of our own.
 */
#include "replay/driver_evict.h"

#include "plan_make.h"
#include "play/player.h"
#include "replay/rehearsal.h"
#include "replay/evict_policy.h"

#include <limits.h>
#include <unistd.h>

#define BASE (16 * MIB2)
#define SLOTS(...) ((const int[]){__VA_ARGS__, -1})

/* An iteration as text: K keep, I in (evicts/there), L leave, D drop, each with block, blocks, room and drops. */
static const char *show(const struct um_compiled_iteration *iteration)
{
	static const char kinds[] = {
		[UM_ACTION_PREFETCH] = 'I',	  [UM_ACTION_EVICT] = 'O',	[UM_ACTION_DISCARD] = 'D',
		[UM_ACTION_DROP_WITH_COPY] = 'C', [UM_ACTION_DROP_CLEAN] = 'T', [UM_ACTION_LEAVE_TO_DRIVER] = 'L',
		[UM_ACTION_REFRESH] = 'K'};
	static char text[2000];
	size_t n = 0;

	*text = '\0';
	for (size_t i = 0; i < iteration->actions.n && n < sizeof text - 80; i++) {
		const struct um_action *a = &iteration->actions.at[i];

		n += (size_t)snprintf(text + n, sizeof text - n, "%s%u:%c%d", i ? " " : "", a->at, kinds[a->kind],
				      (int)((a->addr - BASE) / MIB2));
		if (a->bytes > MIB2)
			n += (size_t)snprintf(text + n, sizeof text - n, "+%d", (int)(a->bytes / MIB2) - 1);
		if (a->kind != UM_ACTION_REFRESH && a->room != INT32_MIN)
			n += (size_t)snprintf(text + n, sizeof text - n, "@%d", a->room);
		if (a->kind == UM_ACTION_PREFETCH)
			n += (size_t)snprintf(text + n, sizeof text - n, "(%u,%u)", a->evicts, a->resident);
	}
	return text;
}

/* Slot 0, of two blocks, is used by all ops; slots 1 and 2, of one, by every other one, where the other one is not. */
static void make_turns(struct um_plan *plan)
{
	um_plan_init(plan);
	make_slot(plan, BASE, 2 * MIB2, -1, -1);
	make_slot(plan, BASE + 2 * MIB2, MIB2, -1, -1);
	make_slot(plan, BASE + 3 * MIB2, MIB2, -1, -1);
	make_op(plan, "a", SLOTS(0, 1), UM_UPDATE);
	make_op(plan, "b", SLOTS(0, 2), UM_UPDATE);
	make_hint(plan, UM_HINT_PREFETCH, 0, 0, 0, 2 * MIB2);
	make_hint(plan, UM_HINT_EVICT, 0, 2, 0, MIB2);
	make_hint(plan, UM_HINT_PREFETCH, 0, 1, 0, MIB2);
	make_hint(plan, UM_HINT_EVICT, 1, 1, 0, MIB2);
	make_hint(plan, UM_HINT_PREFETCH, 1, 2, 0, MIB2);
}

static void turns(void)
{
	struct um_compiled_iteration iteration;
	struct um_compiled_plan p;
	struct um_plan plan;

	make_turns(&plan);
	um_compiled_plan_init(&p);
	is_int(um_compiled_plan_build(&plan, 3, &p), 0, "turns: the plan compiles");
	is_str(show(&p.iterations[UM_COMPILED_PLAN_STEADY]), "0:O3@0 0:I2@1(0,0) 1:O2@1 1:I3@2(0,0)",
	       "turns: as they were");
	is_int(um_driver_evict_build(&p, 3, &iteration), 0, "turns: the evictions are derived");
	/* Block 3 came last, behind 0 and 1: they must be behind it before it can be evicted. */
	is_str(show(&iteration), "0:L3@0 0:K0+1 0:I2@1(1,0) 1:L2@2 1:K0+1 1:I3@2(1,0)",
	       "turns: nothing is done for outs, what stays is asked for before each in");
	is_u64(iteration.n_in, 4, "turns: what is asked for again counts as in");
	is_u64(iteration.n_out, 2, "turns: an out is an out");
	is_int(iteration.gate[0], 2, "turns: op 0 waits for the second in");
	is_int(iteration.gate[1], 4, "turns: op 1 for the fourth");
	is_u64(iteration.first[1], 3, "turns: op 1 finds its actions");
	um_compiled_iteration_fini(&iteration);
	is_int(um_driver_evict_build(&p, 4, &iteration), 0, "turns: with room for all");
	is_str(show(&iteration), "0:L3@0 0:I2@1(0,1) 1:L2@1 1:I3@2(0,1)",
	       "turns: nothing is evicted, all is there still");
	um_compiled_iteration_fini(&iteration);
	is_int(um_driver_evict_build(&p, 2, &iteration), -ENOTSUP, "turns: without room there is no way");
	um_compiled_plan_fini(&p);
	um_plan_fini(&plan);
}

/* What is dropped is memory unused, which the driver takes before it evicts. */
static void dropped(void)
{
	struct um_compiled_iteration iteration;
	struct um_compiled_plan p;
	struct um_plan plan;

	um_plan_init(&plan);
	um_compiled_plan_init(&p);
	make_slot(&plan, BASE, MIB2, -1, -1);
	make_slot(&plan, BASE + MIB2, MIB2, 0, 1);
	make_slot(&plan, BASE + 2 * MIB2, MIB2, 1, 2);
	make_op(&plan, "a", SLOTS(0, 1), UM_UPDATE);
	make_op(&plan, "b", SLOTS(2), UM_UPDATE);
	make_op(&plan, "c", SLOTS(0), UM_UPDATE);
	is_int(um_compiled_plan_build(&plan, 2, &p), 0, "dropped: the plan compiles");
	is_int(um_driver_evict_build(&p, 2, &iteration), 0, "dropped: the evictions are derived");
	is_str(show(&iteration), show(&p.iterations[UM_COMPILED_PLAN_STEADY]),
	       "dropped: nothing is asked for again, nothing evicted");
	um_compiled_iteration_fini(&iteration);
	um_compiled_plan_fini(&p);
	um_plan_fini(&plan);
}

/* --- a list of the driver's of our own ---------------------------------------------------------------------------- */

enum { AWAY, MAY_GO, STAYS };

struct list {
	uint32_t *at; /* from head to tail */
	size_t n, unused;
	uint8_t *state; /* by block */
	int64_t *kept; /* by block: number of its last keep in the lane, plus 1 */
	const struct um_compiled_plan *p;
	unsigned bad, evicted, unclear, early;
};

static void list_remove(struct list *l, uint32_t k)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->at[i] == k) {
			memmove(l->at + i, l->at + i + 1, (--l->n - i) * sizeof *l->at);
			return;
		}
}

/* Several workers bring at once: not only the head may be evicted, as far as anything may. */
static int is_clear(const struct list *l)
{
	size_t may_go = 0;

	for (size_t i = 0; i < l->n; i++)
		may_go += l->state[l->at[i]] == MAY_GO;
	for (size_t i = 0; i < may_go && i < 8; i++)
		if (l->state[l->at[i]] != MAY_GO)
			return 0;
	return may_go > 0;
}

static void list_in(struct list *l, uint32_t k, int keeps)
{
	if (l->state[k] == AWAY) {
		l->bad += (unsigned)keeps;
		if (l->unused) {
			l->unused--;
		} else {
			l->bad += l->state[l->at[0]] != MAY_GO;
			l->state[l->at[0]] = AWAY;
			list_remove(l, l->at[0]);
			l->evicted++;
		}
	}
	list_remove(l, k);
	l->at[l->n++] = k;
	l->state[k] = STAYS;
}

static void list_away(struct list *l, const struct um_action *a, int home)
{
	uint32_t first = (uint32_t)um_compiled_plan_find(l->p, a->addr);

	for (uint32_t k = first; k < first + a->bytes / MIB2; k++) {
		if (l->state[k] == AWAY)
			continue;
		if (a->kind == UM_ACTION_LEAVE_TO_DRIVER && !home) {
			l->state[k] = MAY_GO;
			continue;
		}
		list_remove(l, k);
		l->state[k] = AWAY;
		l->unused++;
	}
}

/* What takes a block away is done behind the last time that it was asked for. */
static int is_behind(struct list *l, const struct um_action *a)
{
	uint32_t first = (uint32_t)um_compiled_plan_find(l->p, a->addr);
	int behind = 1;

	for (uint32_t k = first; k < first + a->bytes / MIB2; k++) {
		behind = behind && l->kept[k] <= a->room;
		l->kept[k] = INT32_MIN;
	}
	return behind;
}

/* Blocks by what they are in the next iteration. */
static void list_turn(struct list *l, uint32_t n_in)
{
	size_t n = l->p->blocks.n;
	uint8_t *state = calloc(n + 1, 1);
	int64_t *kept = calloc(n + 1, sizeof *kept);
	uint32_t *successor = calloc(n + 1, sizeof *successor);

	for (uint32_t k = 0; k < n; k++) {
		successor[l->p->from[k]] = k;
		state[k] = l->state[l->p->from[k]];
		kept[k] = l->kept[l->p->from[k]] - n_in;
	}
	for (size_t i = 0; i < l->n; i++)
		l->at[i] = successor[l->at[i]];
	memcpy(l->state, state, n);
	memcpy(l->kept, kept, n * sizeof *kept);
	free(state);
	free(kept);
	free(successor);
}

/* Actions that take away as soon as they may, or none before an in waits for it. */
static void go_round(struct list *l, const struct um_compiled_iteration *iteration, int home, int late, size_t *outs,
		     size_t *drops)
{
	size_t n_in = 0, out = 0, drop = 0;

	for (size_t i = 0; i < iteration->actions.n; i++) {
		const struct um_action *a = &iteration->actions.at[i];

		if (a->kind == UM_ACTION_PREFETCH || a->kind == UM_ACTION_REFRESH) {
			uint32_t first = (uint32_t)um_compiled_plan_find(l->p, a->addr);

			n_in++;
			for (size_t k = 0; late && a->kind == UM_ACTION_PREFETCH && k < i; k++) {
				const struct um_action *b = &iteration->actions.at[k];

				if (b->kind == UM_ACTION_PREFETCH || b->kind == UM_ACTION_REFRESH)
					continue;
				if (b->kind == UM_ACTION_LEAVE_TO_DRIVER || b->kind == UM_ACTION_EVICT) {
					if ((int64_t)out++ < a->room && out > *outs)
						*outs = out, list_away(l, b, home);
				} else if (drop++ < a->drops && drop > *drops) {
					*drops = drop;
					list_away(l, b, home);
				}
			}
			out = drop = 0;
			if (late && *outs && a->kind == UM_ACTION_PREFETCH && a->evicts && !l->unused && !is_clear(l))
				l->unclear++;
			for (uint32_t k = first; k < first + a->bytes / MIB2; k++) {
				list_in(l, k, a->kind == UM_ACTION_REFRESH);
				if (a->kind == UM_ACTION_REFRESH)
					l->kept[k] = (int64_t)n_in;
			}
		} else {
			l->bad += (int64_t)a->room > (int64_t)n_in;
			l->early += !is_behind(l, a);
			if (!late)
				list_away(l, a, home);
		}
	}
	for (size_t k = 0; late && k < iteration->actions.n; k++) { /* the rest, before the next iteration begins */
		const struct um_action *b = &iteration->actions.at[k];

		if (b->kind == UM_ACTION_LEAVE_TO_DRIVER || b->kind == UM_ACTION_EVICT) {
			if (out++ >= *outs)
				list_away(l, b, home);
		} else if (b->kind != UM_ACTION_PREFETCH && b->kind != UM_ACTION_REFRESH && drop++ >= *drops) {
			list_away(l, b, home);
		}
	}
	*outs = *drops = 0;
	list_turn(l, iteration->n_in);
}

/* Several iterations, the first with outs that are taken home; with `more` blocks than were planned for. */
static void follow(const struct um_compiled_plan *p, const struct um_compiled_iteration *iteration, uint64_t capacity,
		   uint64_t more, int late, const char *name)
{
	struct list l = {.at = calloc(2 * p->blocks.n + 1, sizeof *l.at),
			 .state = calloc(p->blocks.n + 1, 1),
			 .kept = calloc(p->blocks.n + 1, sizeof *l.kept),
			 .p = p,
			 .unused = capacity + more};
	size_t outs = 0, drops = 0;

	for (uint32_t k = 0; k < p->blocks.n; k++)
		if (p->resident[k]) {
			l.at[l.n++] = k;
			l.state[k] = STAYS;
			l.unused--;
		}
	list_turn(&l, 0);
	for (uint32_t k = 0; k < p->blocks.n; k++)
		l.kept[k] = INT32_MIN;
	for (int i = 0; i < 4; i++) {
		l.unclear = 0; /* it is as foreseen in the last one */
		go_round(&l, iteration, !i, late, &outs, &drops);
	}
	is_u64(l.bad, 0, "%s: nothing that stays is evicted%s%s", name, more ? ", with more room" : "",
	       late ? ", with what leaves in time only" : "");
	is_u64(l.early, 0, "%s: what leaves does so behind what asked for it", name);
	if (!more)
		is_u64(l.unclear, 0, "%s: nor is anything that stays near the head", name);
	if (!more)
		ok(l.evicted > 0, "%s: %u blocks are", name, l.evicted);
	free(l.at);
	free(l.state);
	free(l.kept);
}

/* --- recorded workloads ------------------------------------------------------------------------------------------- */

/* Is the driver's way ahead by so much that it is taken? */
static int is_ahead(const struct um_compiled_plan *p, const struct um_compiled_iteration *iteration,
		    const struct um_plan *plan, const struct um_profile *profile)
{
	struct um_compiled_plan as = *p;
	uint64_t home = 0, driver = 0;

	as.iterations[UM_COMPILED_PLAN_STEADY] = *iteration;
	if (um_rehearse(p, plan, profile, &home) || um_rehearse(&as, plan, profile, &driver))
		tap_bail("no memory");
	return driver * 100 <= home * 97;
}

static int look(void *user, struct um_plan *plan)
{
	const char *name = user;
	uint64_t capacity = plan->budget / MIB2;
	const struct um_profile *v100 = um_profile_find("v100"), *gh200 = um_profile_find("gh200");
	struct um_compiled_iteration iteration;
	struct um_compiled_plan p;
	int ahead;

	um_compiled_plan_init(&p);
	is_int(um_compiled_plan_build(plan, capacity, &p), 0, "%s: the plan compiles", name);
	is_int(um_driver_evict_build(&p, capacity, &iteration), 0, "%s: the evictions are derived", name);
	for (int late = 0; late < 2; late++)
		for (uint64_t more = 0; more <= 40; more += 20)
			follow(&p, &iteration, capacity, more, late, name);
	ahead = is_ahead(&p, &iteration, plan, gh200);
	um_compiled_iteration_fini(&iteration);
	ok(!um_evict_policy_choose(&p, plan, v100, capacity, UM_EVICT_AUTO) && !p.driver_evicts,
	   "%s: v100 evicts by the library", name);
	ok(!um_evict_policy_choose(&p, plan, gh200, capacity, UM_EVICT_LIBRARY) && !p.driver_evicts,
	   "%s: the option disables it", name);
	is_int(um_evict_policy_choose(&p, plan, gh200, capacity, UM_EVICT_AUTO), 0, "%s: gh200 rehearses it", name);
	is_int(p.driver_evicts, ahead, "%s: with what is faster chosen", name);
	um_compiled_plan_fini(&p);
	is_int(um_compiled_plan_build(plan, capacity, &p), 0, "%s: builds again", name);
	ok(!um_evict_policy_choose(&p, plan, v100, capacity, UM_EVICT_DRIVER) && p.driver_evicts,
	   "%s: on v100 where it must be", name);
	um_compiled_plan_fini(&p);
	return 0;
}

static void recorded(const char *name, double ratio)
{
	const char *top = getenv("top_srcdir");
	struct um_play_options o = {.profile = um_profile_find("gh200"),
				    .strategy = UM_PLAY_LOOKAHEAD,
				    .iterations = 6,
				    .planned = look,
				    .planned_user = (void *)(uintptr_t)name};
	struct um_play_result r;
	struct um_trace *t;
	struct um_diag d;
	char path[512];

	snprintf(path, sizeof path, "%s/tests/data/%s.umtrace.gz", top ? top : ".", name);
	if (um_trace_load(&t, path, &d))
		tap_bail(d.text);
	o.budget = (uint64_t)((double)um_trace_peak_bytes(t) / ratio);
	is_int(um_play(t, &o, &r), 0, "%s: the workload is played", name);
	um_play_result_fini(&r);
	um_trace_free(t);
}

int main(void)
{
	turns();
	dropped();
	recorded("resnet50", 3);
	if (!tap_few()) {
		recorded("alexnet_b200", 1.25);
		recorded("lstm_lm", 1.5);
	}
	return tap_done();
}
