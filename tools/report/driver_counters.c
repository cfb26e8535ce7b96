/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums the driver's counts in the library's own log, which has no kernels: by direction and cause, tensor, and the
 * iteration at that time. Reasons are not determined, because they need the uses of kernels.
 */
#include "report/report_state.h"
#include "report/tensors.h"

#include <errno.h>

int um_report_on_counted(struct um_report *r, uint32_t process, const struct um_activity *a)
{
	uint32_t iteration = um_report_iteration_at(r, process, a->begin);
	struct um_report_sums *both[] = {&r->all, um_report_sums_of(r, iteration)};
	const struct um_report_event e = {
		.address = a->address, .bytes = a->bytes, .dir = a->dir, .cause = a->cause, .faults = a->faults};

	for (unsigned i = 0; i < 2; i++) {
		if (a->kind == UM_ACT_CPU_FAULT) {
			both[i]->cpu_faults += a->faults;
		} else if (a->kind == UM_ACT_GPU_FAULT) {
			both[i]->fault_groups += a->records;
			both[i]->work.faults += a->faults;
		} else {
			struct um_report_moves *m = &both[i]->moves[a->dir][a->cause];

			m->bytes += a->bytes;
			m->n += a->records;
			m->ns += (uint64_t)a->end - (uint64_t)a->begin;
		}
	}
	if (a->kind == UM_ACT_CPU_FAULT)
		return um_report_tensors_cpu_fault(r, a->process, iteration, a) ? -ENOMEM : 0;
	if (a->records > 1 || !a->address)
		return um_report_tensors_charge_sum(r, a->process, iteration, &e, a->records) ? -ENOMEM : 0;
	return um_report_tensors_charge(r, a->process, iteration, &e, NULL) ? -ENOMEM : 0;
}
