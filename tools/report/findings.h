/* SPDX-License-Identifier: Apache-2.0
 *
 * findings.h - findings: what costs time in the steady part of a run, and the remedy
 *
 * in    a report with complete sums
 * out   findings, largest saving first
 * owns  their texts
 *
 * The steady part is the later half of each process's finished iterations: the first ones warm up. Without iterations
 * it is the whole recording, which then counts as one iteration. A finding occurs in at least half of the iterations of
 * the affected processes, for this tensor or for any. Its figures are means over these iterations: a cost in one
 * process of many counts fully, because the others wait for it. It is reported if it would save UM_FINDING_LOW of an
 * iteration; refused hints are always reported. Savings are estimates, and each finding names its method. Estimates do
 * not add up: one wait may have several causes.
 */
#ifndef UM_REPORT_FINDINGS_H
#define UM_REPORT_FINDINGS_H

#include "report/causes.h"

/* Shares of an iteration. */
#define UM_FINDING_LOW 0.005
#define UM_FINDING_MEDIUM 0.02
#define UM_FINDING_HIGH 0.10

#define UM_FINDING_WAITS 3u /* tensors named by a finding of waits */
#define UM_FINDINGS_EACH 5u /* tensors with a finding of their own per reason; others share one */

enum um_severity { UM_SEVERITY_LOW, UM_SEVERITY_MEDIUM, UM_SEVERITY_HIGH, UM_SEVERITIES };

struct um_finding {
	enum um_severity severity;
	enum um_reason reason;
	uint32_t tensor; /* row; UM_CAUSES_NONE: none is known, or `tensors` of them */
	uint32_t op; /* row of the op with the largest cost; UM_CAUSES_NONE: none */
	uint32_t caller; /* row of callers; UM_CAUSES_NONE: unknown */
	uint64_t tensors;
	uint64_t processes; /* affected processes */
	uint32_t process; /* row of the process with the largest cost; UM_CAUSES_NONE: in no iteration */
	uint64_t of; /* steady iterations of these processes */
	uint64_t first, last, iterations; /* first and last affected iteration, and their number; 0: none */
	uint64_t saving_ns; /* per iteration; 0: unknown */
	double share; /* saving_ns over the iteration; of waits: over the time from one iteration to the next */
	/* an iteration: */
	uint64_t bytes, faults, ns, n;
	uint64_t waited_ns, waited_bytes; /* devices were idle, without a fault, until these bytes were copied */
	uint64_t spare_ns; /* part that fits into idle time of the link */
	uint64_t longest_ns; /* longest wait of one iteration */
	uint32_t earlier; /* largest number of kernels to prefetch earlier */
	int full; /* the driver had to free memory for it */
	uint32_t top[UM_FINDING_WAITS]; /* of waits: the tensors with the longest waits; UM_CAUSES_NONE: no more */
	uint64_t top_ns[UM_FINDING_WAITS]; /* per iteration; of a run log: prefetched bytes in all */
	uint64_t resident_ns; /* of a run log: planned iteration with everything resident */
	char *evidence, *estimate, *advice;
};

struct um_finding_list {
	UM_VEC(struct um_finding) list;
	uint64_t iterations; /* of the steady part; 0: no iterations */
	uint64_t iteration_ns; /* their mean */
};

struct um_report;

int um_findings_build(struct um_finding_list *f, const struct um_report *r); /* 0 or -ENOMEM */
void um_findings_fini(struct um_finding_list *f); /* zeroed: empty */

const char *um_severity_name(enum um_severity severity);

/* Fills evidence, estimate and advice. 0 or -ENOMEM. */
int um_finding_describe(struct um_finding *f, const struct um_report *r, const struct um_hint_refusal *refusal);

/* Recorded time per copied byte, ns; 0: too few copies. */
double um_report_ns_per_byte(const struct um_report *r, enum um_activity_dir dir);

#endif
