/* SPDX-License-Identifier: Apache-2.0
 *
 * findings.h - what costs time in the steady part of a run, and what to do about it
 *
 * in    a report whose sums are made
 * out   findings, the one that would save most first
 * owns  their texts
 *
 * The steady part is the later half of each process's finished iterations: what happens in the first ones alone is
 * warming up. Without iterations it is all of the recording, and "an iteration" is that.
 * A finding is of what happens in at least half of the iterations of those processes that have it at all, to this
 * tensor or to any. Its figures are means over these: what one process of many does to itself counts as much, for the
 * others wait for it. It is reported where it would save UM_FINDING_LOW of an iteration; hints that were refused
 * always. What is saved is estimated, and each finding says how. Estimates do not add up: one wait may have several
 * causes.
 */
#ifndef UM_REPORT_FINDINGS_H
#define UM_REPORT_FINDINGS_H

#include "report/causes.h"

/* Shares of an iteration. */
#define UM_FINDING_LOW 0.005
#define UM_FINDING_MEDIUM 0.02
#define UM_FINDING_HIGH 0.10

#define UM_FINDING_WAITS 3u /* tensors that a finding of waits names */
#define UM_FINDINGS_EACH 5u /* tensors that are named for the same reason; others are one finding together */

enum um_severity { UM_SEVERITY_LOW, UM_SEVERITY_MEDIUM, UM_SEVERITY_HIGH, UM_SEVERITIES };

struct um_finding {
	enum um_severity severity;
	enum um_reason reason;
	uint32_t tensor; /* row; UM_CAUSES_NONE: none is known, or `tensors` of them */
	uint32_t op; /* row: where it costs most; UM_CAUSES_NONE: in none */
	uint32_t caller; /* row of callers: who does it; UM_CAUSES_NONE: not known */
	uint64_t tensors;
	uint64_t processes; /* that have it in iterations */
	uint32_t process; /* row: where it costs most; UM_CAUSES_NONE: in no iteration */
	uint64_t of; /* iterations of the steady part that those processes have */
	uint64_t first, last, iterations; /* in which it happens: numbers, and in how many. None: 0 iterations */
	uint64_t saving_ns; /* an iteration; 0: not known */
	double share; /* saving_ns of an iteration; of waits: of the time from one iteration to the next */
	/* an iteration: */
	uint64_t bytes, faults, ns, n;
	uint64_t waited_ns, waited_bytes; /* devices stood still, without a fault, until so much had come */
	uint64_t spare_ns; /* of that, it could have come while the link was idle */
	uint64_t longest_ns; /* of a wait in one iteration */
	uint32_t earlier; /* asked for so many kernels earlier, it would have come in time: at most */
	int full; /* the driver had to make room for it */
	uint32_t top[UM_FINDING_WAITS]; /* of waits: the tensors waited for longest; UM_CAUSES_NONE: no more */
	uint64_t top_ns[UM_FINDING_WAITS]; /* an iteration; of a run log: bytes asked for, in all */
	uint64_t resident_ns; /* of a run log: an iteration of the plan, if everything were resident */
	char *evidence, *estimate, *advice;
};

struct um_finding_list {
	UM_VEC(struct um_finding) list;
	uint64_t iterations; /* of the steady part; 0: there are none */
	uint64_t iteration_ns; /* their mean */
};

struct um_report;

int um_findings_build(struct um_finding_list *f, const struct um_report *r); /* 0 or -ENOMEM */
void um_findings_fini(struct um_finding_list *f); /* one of zeroes is empty */

const char *um_severity_name(enum um_severity severity);

/* Fills evidence, estimate and advice. 0 or -ENOMEM. */
int um_finding_describe(struct um_finding *f, const struct um_report *r, const struct um_hint_refusal *refusal);

/* ns for a byte on its way, as this recording has it; 0: it has too few. */
double um_report_ns_per_byte(const struct um_report *r, enum um_activity_dir dir);

#endif
