/* SPDX-License-Identifier: Apache-2.0
 *
 * scheme_case.h - what tests of published schemes share
 */
#ifndef UM_TESTS_SCHEME_CASE_H
#define UM_TESTS_SCHEME_CASE_H

#include "plan/scheme.h"
#include "fixture/plan_fixture.h"
#include "tap.h"

#define B UM_BLOCK_BYTES

/* What a scheme is asked, from a schedule that has times. */
struct scheme_case {
	struct um_schedule sched;
	struct um_blocks blocks;
	struct um_scheme_input s;
	struct um_scheme_result a;
	uint8_t *keep_resident;
	uint64_t *clock;
};

void scheme_case_init(struct scheme_case *x, const struct um_schedule *s, int32_t capacity);
void scheme_case_fini(struct scheme_case *x);

/* A plan of the scheme's, proved. */
struct scheme_plan {
	struct um_plan plan;
	struct um_plan_figures f;
	char why[300];
};

int scheme_plan(struct scheme_plan *p, const struct um_schedule *s, const char *scheme, uint64_t budget);
void scheme_plan_fini(struct scheme_plan *p);

int scheme_leaves(const struct scheme_plan *p, uint32_t slot); /* with a copy? */
int32_t scheme_returns_after(const struct scheme_plan *p, uint32_t slot); /* `after` of its last return */

/* "1 0": the ops that a plan of the scheme's launches again; "no plan". Valid until the next call. */
const char *scheme_launched_again(const struct um_schedule *s, const char *scheme, uint64_t budget);

/* A recorded workload at 1.5 times what there is: sound, and not faster than can be. Here, since a test counts its own
 * lines. */
static inline void scheme_recorded_one(const char *scheme, const char *name)
{
	struct um_schedule s = {0};
	struct scheme_plan p;
	const char *dir = getenv("top_srcdir");
	char path[4096];

	snprintf(path, sizeof path, "%s/tests/data/%s.umtrace.gz", dir ? dir : ".", name);
	if (fx_trace(&s, path)) {
		ok(0, "%s is read", name);
		return;
	}
	for (size_t i = 0; i < s.ops.n; i++)
		s.ops.at[i].ns = um_profile_op_ns(um_profile_find("a100"), &s.ops.at[i].cost, 0) * 24;
	is_int(scheme_plan(&p, &s, scheme, fx_peak(&s) / 3 * 2), 0, "%s: %s", scheme, name);
	ok(p.f.ns >= p.plan.bound_ns && p.f.h2d_bytes, "sound, %.2f of its time in core, at least %.2f",
	   (double)p.f.ns / (double)p.plan.in_core_ns, (double)p.plan.bound_ns / (double)p.plan.in_core_ns);
	is_str(p.plan.strategy, scheme, "by its name");
	scheme_plan_fini(&p);
	um_schedule_fini(&s);
}

static inline void scheme_recorded(const char *scheme)
{
	scheme_recorded_one(scheme, "alexnet_b200");
	scheme_recorded_one(scheme, "cifar_vgg16_b100");
	scheme_recorded_one(scheme, "resnet50");
	scheme_recorded_one(scheme, "vgg16");
	scheme_recorded_one(scheme, "gpt2_small");
	scheme_recorded_one(scheme, "cg_laplace3d");
}

#endif
