/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_fixture.h - schedules and plans for tests of the planner and of the proof
 *
 * By hand: fx_slot and fx_op build a schedule line by line, fx_hint a plan on top of it. From a file: fx_trace takes a
 * recorded workload through the registry, the recorder and the learner, as the front desk does. By chance: fx_random,
 * the same for the same seed everywhere. All of them end the test when there is no memory.
 */
#ifndef UM_TESTS_PLAN_FIXTURE_H
#define UM_TESTS_PLAN_FIXTURE_H

#include "model/plan.h"
#include "model/profile.h"
#include "plan/planner.h"

#define FX_MIB (1ull << 20)

/* Returns the slot's number. It carries itself if it lives through an iteration's end. */
uint32_t fx_slot(struct um_schedule *s, uint64_t bytes, int32_t birth, int32_t death);

/* `uses`: "r0 w1 u2 w3@4096+512", the last a range. Returns the op's number. */
int32_t fx_op(struct um_schedule *s, const char *name, uint64_t ns, const char *uses);

/* The last one is what a hint on the whole slot needs. */
void fx_hint(struct um_plan *p, enum um_hint_kind kind, int32_t at, int32_t after, uint32_t slot);
void fx_hint_part(struct um_plan *p, enum um_hint_kind kind, int32_t at, int32_t after, uint32_t slot, uint64_t off,
		  uint64_t bytes);

/* 1 GB/s in both directions: a byte is a nanosecond. */
const struct um_profile *fx_profile(void);
struct um_plan_request fx_request(const struct um_schedule *s, uint64_t budget);

/* The most bytes alive at once. */
uint64_t fx_peak(const struct um_schedule *s);

/* What the iteration behind the last recorded one is expected to be; places are those of a best-fit heap. 0 or -1. */
int fx_trace(struct um_schedule *s, const char *path);

/* A schedule of some ops over slots of all kinds of lifetimes, small and large, and ranges. */
void fx_random(struct um_schedule *s, uint64_t seed);
void fx_thin(struct um_schedule *s, uint64_t seed); /* ops only look up a little in some of its slots */
uint64_t fx_draw(uint64_t *state, uint64_t below);

#endif
