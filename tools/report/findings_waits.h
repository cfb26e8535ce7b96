/* SPDX-License-Identifier: Apache-2.0
 *
 * findings_waits.h - a finding for a run that waits for its prefetches: which tensors, and what to do
 *
 * in    the steady part's rows; of a run log, the figures of the plan and the hints
 * out   the finding's tensors and figures, and its texts
 * owns  nothing
 *
 * `late prefetch` is what an earlier prefetch would save. This is the rest of the wait: the link was busy meanwhile.
 */
#ifndef UM_REPORT_FINDINGS_WAITS_H
#define UM_REPORT_FINDINGS_WAITS_H

#include "report/findings.h"

/* Fills the tensors, and the kernel that waited longest. `rows`: in order of their tensors; `of` iterations. */
void um_finding_waits(struct um_finding *f, const struct um_cause_row *rows, size_t n, uint64_t of);

/* The same from the plan that a run log ends with. 0: it is none, or its plan waits for nothing. */
int um_finding_planned_waits(struct um_finding *f, const struct um_report *r);

/* Texts, as um_finding_describe asks for them: as asprintf answers. */
int um_finding_waits_evidence(const struct um_finding *f, const struct um_report *r, char **out);
int um_finding_waits_estimate(const struct um_finding *f, const struct um_report *r, char **out);
int um_finding_waits_advice(const struct um_finding *f, const struct um_report *r, char **out);

#endif
