/* SPDX-License-Identifier: Apache-2.0
 *
 * same.h - what same.cu does, whichever world it is compiled for
 *
 * Every workload in a context of its own; prints what came out, what the library asked for and what the device's memory
 * did. The output must be the same to the byte on the simulated GPU in the process and under the stand-in driver.
 */
#ifndef SAME_H
#define SAME_H

#include "run.h"
#include "work_cg.h"
#include "work_stencil.h"
#include "work_train.h"
#include "work_vector.h"

#include "model/tally.h"

enum { SAME_ITERATIONS = 7 };

/* The world's own. */
struct umadv *same_open(uint64_t budget);
void same_finish(struct umadv *adv);
void same_tally(struct umadv *adv, struct um_tally *out); /* since the context was opened */

static inline void same_run(struct work w, double ratio)
{
	uint64_t budget = (uint64_t)((double)w.bytes() / ratio);
	struct umadv *adv = same_open(budget);
	struct runner r = {&w, adv, 0};
	struct umadv_stats s = {};
	struct um_tally t;

	run_place(&r);
	run_all(&r, SAME_ITERATIONS);
	same_finish(adv);
	s.struct_size = sizeof(s);
	must(umadv_stats_get(adv, &s), "umadv_stats_get");
	same_tally(adv, &t);
	printf("%s, budget %llu: checksum %016llx\n", w.name.c_str(), (unsigned long long)budget,
	       (unsigned long long)run_checksum(&r));
	printf("  hinted %llu of %llu, plans %llu, divergences %llu, hints %llu, refused %llu, dropped %llu\n",
	       (unsigned long long)s.hinted_iterations, (unsigned long long)s.iterations, (unsigned long long)s.plans,
	       (unsigned long long)s.divergences, (unsigned long long)s.hints_issued,
	       (unsigned long long)s.hints_refused, (unsigned long long)s.hints_dropped);
	printf("  bytes prefetched %llu, evicted %llu, discarded %llu, errors %llu, plan %llu ns\n",
	       (unsigned long long)s.prefetch_bytes, (unsigned long long)s.evict_bytes,
	       (unsigned long long)s.discard_bytes, (unsigned long long)s.errors, (unsigned long long)s.plan_ns);
	printf("  faults %llu, bytes in %llu, out %llu, evictions %llu, stalled %llu ns, at %llu ns\n",
	       (unsigned long long)t.faults, (unsigned long long)t.h2d_bytes, (unsigned long long)t.d2h_bytes,
	       (unsigned long long)t.evictions, (unsigned long long)t.stall_ns, (unsigned long long)t.ns);
	run_free(&r);
	umadv_close(adv);
}

static inline int same_main(int argc, char **argv)
{
	const char *which = argc > 1 ? argv[1] : "vector";
	double ratio = argc > 2 ? atof(argv[2]) : 1.5;

	setenv("UMADVISE_PLAN_THREAD", "off", 0); /* plans begin in known iterations */
	if (!strcmp(which, "vector"))
		same_run(work_vector(12, 1 << 20), ratio);
	else if (!strcmp(which, "stencil"))
		same_run(work_stencil(8, 8, 256), ratio);
	else if (!strcmp(which, "cg"))
		same_run(work_cg(8, 64), ratio);
	else if (!strcmp(which, "train"))
		same_run(work_train(8, 1024, 4), ratio);
	else
		return 2;
	return 0;
}

#endif
