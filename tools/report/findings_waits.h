/* SPDX-License-Identifier: Apache-2.0
 *
 * findings_waits.h - the finding for a run that waits for its prefetches: its tensors and advice
 *
 * in    the steady part's rows; of a run log, the figures of the plan and the hints
 * out   the finding's tensors and figures, and its texts
 * owns  nothing
 *
 * `late prefetch` covers stalls that an earlier prefetch would avoid. This finding covers the rest, in which the link
 * was busy.
 */
#ifndef UM_REPORT_FINDINGS_WAITS_H
#define UM_REPORT_FINDINGS_WAITS_H

#include "report/findings.h"

/* Fills the tensors, and the kernel that waited longest. `rows`: in order of their tensors; `of` iterations. */
void um_finding_waits(struct um_finding *f, const struct um_cause_row *rows, size_t n, uint64_t of);

/* The same from the last plan of a run log. 0: no run log, or a plan without stalls. */
int um_finding_planned_waits(struct um_finding *f, const struct um_report *r);

/* Texts for um_finding_describe. They return asprintf's result. */
int um_finding_waits_evidence(const struct um_finding *f, const struct um_report *r, char **out);
int um_finding_waits_estimate(const struct um_finding *f, const struct um_report *r, char **out);
int um_finding_waits_advice(const struct um_finding *f, const struct um_report *r, char **out);

#endif
