/* SPDX-License-Identifier: Apache-2.0
 *
 * report_verdict.h - how far a run is from a time that no plan can beat
 *
 * in    the workload that ran (umtrace), the device, the memory that it had
 * out   the bound, and what the library plans (report/tables.h)
 * owns  nothing
 */
#ifndef UM_TOOLS_REPORT_VERDICT_H
#define UM_TOOLS_REPORT_VERDICT_H

#include "report_form.h"

/* All but `iteration_ns`, which is the run's. The exit code; what is wrong was said. */
int report_verdict_find(const struct report_args *a, struct um_verdict *out);

/* A line, where there is one. */
void report_verdict_show(FILE *to, const struct report_args *a, const struct um_verdict *v);

#endif
