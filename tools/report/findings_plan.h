/* SPDX-License-Identifier: Apache-2.0
 *
 * findings_plan.h - the finding for a run whose iterations take clearly more than its plan predicts
 *
 * in    the figures of a run log: prediction, measured iteration, counters
 * out   the finding's figures and texts
 * owns  nothing
 */
#ifndef UM_REPORT_FINDINGS_PLAN_H
#define UM_REPORT_FINDINGS_PLAN_H

#include "report/findings.h"

#define UM_FINDING_PLAN_PERCENT 10 /* above the prediction */

/* Fills the figures. 0: no run log, nothing measured, or near the prediction. */
int um_finding_plan(struct um_finding *f, const struct um_report *r);

/* Texts for um_finding_describe. They return asprintf's result. */
int um_finding_plan_evidence(const struct um_report *r, char **out);
int um_finding_plan_estimate(char **out);
int um_finding_plan_advice(const struct um_report *r, char **out);

#endif
