/* SPDX-License-Identifier: Apache-2.0
 *
 * report_verdict.h - compares a run with the lower bound of its workload
 *
 * in    the workload of the run (umtrace), its device and memory
 * out   the bound and the library's planned time (report/tables.h)
 * owns  nothing
 */
#ifndef UM_TOOLS_REPORT_VERDICT_H
#define UM_TOOLS_REPORT_VERDICT_H

#include "report_form.h"

/* Fills all but `iteration_ns`, which is the run's. 0, or the exit code after an error message. */
int report_verdict_find(const struct report_args *a, struct um_verdict *out);

/* Prints the verdict, if there is one. */
void report_verdict_show(FILE *to, const struct report_args *a, const struct um_verdict *v);

#endif
