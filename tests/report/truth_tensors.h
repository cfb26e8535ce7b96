/* SPDX-License-Identifier: Apache-2.0
 *
 * truth_tensors.h - what each tensor cost in each iteration of a played workload, by the simulated device's own state
 *
 * in    what the device tells its watcher and writes into its log, and what its blocks hold when it does
 * out   faults and bytes by tensor, iteration and cause, compared with a report's
 *
 * Pages count as moved when they lie elsewhere afterwards, and as faulted when the fault handler says so of its own. To
 * whom they belong is found afterwards: the tensors that were alive at the launch, by counting launches, of the kernel
 * that ran then, or next.
 */
#ifndef UM_TESTS_TRUTH_TENSORS_H
#define UM_TESTS_TRUTH_TENSORS_H

#include "sim/state.h"
#include "io/umtrace.h"
#include "report/report.h"

void truth_tensors_begin(const struct um_trace *t); /* a play */
void truth_tensors_opened(struct um_sim *sim);
void truth_tensors_listen(const struct um_activity *a);

/* How many cells of the report are not those of the truth, and what else does not fit; some of it is told. */
unsigned truth_tensors_compare(const struct um_report *r);
void truth_tensors_fini(void);

#endif
